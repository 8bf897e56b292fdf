#!/bin/sh
# traitor.sh: S02, a daemon in an attacker's hands, under the real server: what
# PRIVSEP says of each that it cannot reach, it does not reach, and boxes and
# the rest of the server live on.  The hands are regress/hostile/traitor.c.
. "$(dirname "$0")/lib.sh"
build=${WB_BUILD:-$top/build/test}
[ -d "$build/regress" ] || { echo "skip: no build tree (WB_BUILD)"; exit 77; }
make -s -C "$build/regress" traitor >"$work/make.log" 2>&1 ||
    { cat "$work/make.log"; echo "not ok - traitor does not build"; exit 1; }
. "$top/regress/box/attack/lib.sh"
traitor=$build/regress/traitor
box_state
ln -s ../../../etc "$WB_STATE/rootfs/evil"
WB_CONF_MORE='restart-limit = 1000'
box_serve

# pid of a daemon of ours, once the server answers
daemon() {
	back() {
		answers && pid=$(box_pid "$1") &&
		    [ -n "$pid" ]
	}
	await back "$1"
	echo "$pid"
}
# what must be so after each: the same boxes live, nothing new runs or is there
ids() { for d in "$WB_STATE"/sandboxes/*; do echo "${d##*/}"; done | sort; }
settled() { [ "$(ids)" = "$before" ]; }
after() {
	like "$1: the set is back" "$(daemon apid)" '^[0-9]+$'
	await settled
	is "$1: no box more or less" "$(ids)" "$before"
	is "$1: the box lives" "$(run victim -- cat /root/mark 2>&1)" mark
	is "$1: its session goes on" "$(state_of_session)" running
}
state_of_session() {
	curl -s -H "Authorization: Bearer $WB_TOKEN" \
	    "$WB_URL/v1/sandboxes/$id/sessions/$sid" | field state
}

ok "a box" wb create --name victim --network none
id=$(wb inspect victim | field id)
run victim -- sh -c 'echo mark >/root/mark'
sid=$(bg victim --name long -- sleep 3600)
like "a session" "$sid" '^[0-9A-Z]{26}$'
ok "a box to lose" wb create --name lost --network none
lost=$(wb inspect lost | field id)
before=$(ids)

# ---- apid
"$WB_BIN" events export >"$work/earlier"
for what in privd record network; do
	checks "apid to $what" "$traitor" "$(daemon apid)" $what "$id" "$lost"
	after "apid to $what"
done
log=$(stat -c %s "$WB_STATE/sandboxes/$id/launch.log")
[ "$log" -le 61440 ] && pass "launch.log is bounded: $log" ||
    fail "launch.log has $log bytes"
"$WB_BIN" events export >"$work/later"
cmp -s "$work/earlier" - <<-! && pass "what was on the record is on it, byte for byte" || fail "the record differs"
$(head -n "$(wc -l <"$work/earlier")" "$work/later")
!
ok "and its chain is whole" sh \
    -c "/usr/bin/python3 $top/regress/box/verify-chain.py <$work/later"
wb inspect lost >"$work/lost"
is "the box whose nonce was guessed" "$(field state <"$work/lost")" QUARANTINED
is "and why" "$(field stateReason <"$work/lost")" nonce
checks "apid without end" "$traitor" "$(daemon apid)" flood "$serve_pid"
after "apid without end"

# the set comes back later each time; under a new server at once
fresh() {
	stop_serve
	start_serve "$WB_BIN" --config "$work/workbox.conf"
}

# ---- proxyd
n=$("$traitor" 0 proxyd - list)
i=0
while [ $i -lt "$n" ]; do
	checks "proxyd, word $i" "$traitor" "$(daemon proxyd)" proxyd "$id" $i
	i=$((i + 1))
	[ $((i % 3)) != 0 ] || fresh
done
after "proxyd speaks out of turn"

# ---- netd
home=$(readlink /proc/self/ns/net)
gift() {	# text file
	fresh
	p=$(daemon netd)
	what=$2
	[ "$what" != own ] || what=/proc/$p/ns/net
	rm -f "$work/gift.out"
	timeout 60 "$traitor" "$p" netns "$what" >"$work/gift.out" 2>&1 &
	giver=$!
	gives() { grep -q ready "$work/gift.out" 2>/dev/null; }
	await gives
	no_box=$("$WB_BIN" sandbox create --name gift --network none 2>&1)
	r=$?
	[ $r != 0 ] && pass "$1: no box comes of it" ||
	    fail "$1: a box was made" "$no_box"
	kill -KILL "$p" 2>/dev/null
	wait "$giver"
	like "$1: it was given" "$(cat "$work/gift.out")" '^ok - given'
	daemon netd >/dev/null
	wb rm gift --grace 0 >/dev/null 2>&1
	after "$1"
}
gift "netd gives the host's network" /proc/self/ns/net
gift "netd gives a file" "$work/workbox.conf"
gift "netd gives another kind of namespace" /proc/self/ns/uts
gift "netd gives its own network" own
like "  which is told" "$(grep -c 'quarantined: ns_owners' "$work/serve.log")" \
    '^[1-9]'

for p in $(pgrep -x runner); do
	[ "$(readlink "/proc/$p/ns/net")" != "$home" ] ||
	    fail "a box is in the host's network"
done
pass "no box is in the host's network"

# ---- any of them breaks the contract: the set goes and comes back.  The fast
# lane takes a third of the ways.
step=1
[ "${WB_LANE-fast}" = long ] || step=3
made=0
for role in apid stored netd uplinkd proxyd; do
	n=$("$traitor" 0 break $role list)
	i=0
	while [ $i -lt "$n" ]; do
		checks "$role, break $i" "$traitor" "$(daemon $role)" break \
		    $role $i
		i=$((i + step)) made=$((made + 1))
		[ $((made % 3)) != 0 ] || fresh
	done
	after "$role breaks the contract"
done
ok "remove" wb rm lost --grace 0
ok "remove" wb rm victim --grace 0
box_done
