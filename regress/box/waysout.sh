#!/bin/sh
# waysout.sh: a way out of every state, and of every step in it.  A table says
# how a box is brought there and held, by daemons that are stopped with SIGSTOP;
# then it is removed while it is held, and let go; nothing may be left.  What
# may be released is also brought back instead.  steps.sh kills daemons at each
# step; here they live.
. "$(dirname "$0")/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: waits in every state, 70 s (long lane)"; exit 77; }
WB_CONF_MORE='restart-limit = 1000'
box_serve
held=
hold() {	# daemon...
	for d in "$@"; do
		p=$(daemon_pids "$d" | head -n 1)
		kill -STOP "$p" && held="$held $p"
	done
}
let_go() {
	# shellcheck disable=SC2086	# pids
	[ -z "$held" ] || kill -CONT $held
	held=
}
box_after() { let_go; }
trap 'let_go; box_cleanup; exit 1' INT TERM HUP
trap 'let_go; box_cleanup' EXIT
health() { wb inspect "$1" | field health; }
part() { wb inspect "$1" | field healthReason; }
of() { wb inspect "$1" | field id; }
procs() {	# id: of its pid 1
	cat "/sys/fs/cgroup/$WB_CGROUP/$1/box/runner/cgroup.procs" \
	    /sys/fs/cgroup/*/"$WB_CGROUP/$1/box/runner/cgroup.procs" \
	    2>/dev/null | head -n 1
}
make() { wb create --name "$1" --network none --memory 128M --pids 128 >/dev/null; }

# ---- the table: how a box comes to be in a state, and is held there ------------
# each: reach_WORD NAME, after which the state is the one in the row
reach_requested() {	# stored has not written it yet
	hold stored
	curl -s -m 60 -o "$work/made" -X POST -d "{\"name\": \"$1\"}" \
	    -H "Authorization: Bearer $WB_TOKEN" \
	    -H 'Content-Type: application/json' "$WB_URL/v1/sandboxes" &
}
reach_making() { hold maker; wb create --name "$1" --network none --no-wait >/dev/null; }
reach_netns() { hold netd; wb create --name "$1" --network none --no-wait >/dev/null; }
reach_booting() {	# READY is not written
	p=$(daemon_pids stored | head -n 1)
	wb create --name "$1" --network none --cpus 0.01 --no-wait >/dev/null
	kill -STOP "$p" && held=$p
}
reach_ready() { make "$1"; }
reach_running() { make "$1"; wb run "$1" -- sleep 3600 >/dev/null; }
look() {	# at all boxes, now
	curl -s -o /dev/null -X POST -H "Authorization: Bearer $WB_TOKEN" \
	    "$WB_URL/v1/reconcile"
}
reach_suspect() {	# of what may be released, and what never may
	make "$1"
	echo 200 >"$(knob "$(of "$1")" pids.max)"
	look
	[ "$(health "$1"),$(part "$1")" = SUSPECT,pids ] || wb rm "$1"
}
reach_never() {
	make "$1"
	nsenter -t "$(procs "$(of "$1")")" -m mount -t tmpfs none /root
	look
	[ "$(health "$1"),$(part "$1")" = SUSPECT,mounts ] || wb rm "$1"
}
reach_stall() {	# its runner does not answer the server that comes
	make "$1"
	kill -STOP "$(procs "$(of "$1")")"
	set_again
}
reach_draining() {
	make "$1"
	wb run "$1" -- sh -c 'trap "" TERM; while :; do sleep 1; done' >/dev/null
	wb rm "$1" --grace 300 >/dev/null 2>&1 &
}
reach_killing() {	# the maker is to kill it, and does not yet
	make "$1"; hold maker; wb rm "$1" --grace 0 >/dev/null 2>&1 &
}
reach_deleting() {	# netd is to free its network, and does not yet
	make "$1"; hold netd; wb rm "$1" --grace 0 >/dev/null 2>&1 &
}
reach_stopped() { make "$1"; kill -KILL "$(procs "$(of "$1")")"; }
reach_limit() {
	make "$1"
	echo 200 >"$(knob "$(of "$1")" pids.max)"
	set_again
}
reach_mount() {
	make "$1"
	nsenter -t "$(procs "$(of "$1")")" -m mount -t tmpfs none /root
	set_again
}
rows='requested REQUESTED
making PROVISIONING
netns PROVISIONING
booting BOOTSTRAPPING
ready READY
running READY
suspect READY
never READY
draining DRAINING
killing DRAINING
deleting DELETING
stopped STOPPED
limit QUARANTINED
stall QUARANTINED
mount QUARANTINED'
# every state that one can be in is in the table
states=$(sed -n 's/^STATE([0-9], \([A-Z]*\))$/\1/p' "$top/common/states.def")
like "there are states" "$(echo "$states" | grep -c .)" '^[1-9]'
for s in $states; do
	[ "$s" != DELETED ] || continue
	echo "$rows" | grep -q "[ |]$s" && pass "a row brings a box to $s" ||
	    fail "no row brings a box to $s"
done

gone() {	# id
	[ ! -e "$WB_STATE/sandboxes/$1" ] && [ -z "$(procs "$1")" ] &&
	    [ -z "$(ls -d /sys/fs/cgroup/"$WB_CGROUP/$1" \
	    /sys/fs/cgroup/*/"$WB_CGROUP/$1" 2>/dev/null)" ] &&
	    in_state "$1" DELETED
}
named() { id=$(of "$1" 2>/dev/null) && [ -n "$id" ]; }
reached() {
	s=$(state "$1" 2>/dev/null) && echo "$2" | grep -qw "$s"
}
# its id first: a name goes with DELETING
id_of() {
	await named "$1" || id=$(wb list --format json | jq -r \
	    ".items[] | select(.name == \"$1\") | .id")
	echo "$id"
}
echo "$rows" | while read -r word want; do
	n=box-$word
	"reach_$word" "$n" 2>"$work/err"
	id=$(id_of "$n")
	await reached "$id" "$want"
	echo "$word $want $id $(state "$id")" >>"$work/reached"
	timeout -k 5 60 "$WB_BIN" sandbox rm "$id" --grace 0 >"$work/rm" 2>&1 &
	rm=$!
	let_go
	wait $rm; rc=$?
	await gone "$id" && g=gone || g=left
	echo "$word $rc $g" >>"$work/out"
done
while read -r word want id s; do
	like "$word: is brought to $want" "$s" "^($want)\$"
	set -- $(grep "^$word " "$work/out")
	is "$word: rm ends it" "$2 $3" "0 gone"
done <"$work/reached"
is "each row was seen" "$(wc -l <"$work/reached")" "$(echo "$rows" | wc -l)"

# ---- the other way out, where there is one --------------------------------------
reach_limit back
is "a limit" "$(state back)" QUARANTINED
ok "release" wb release back
is "it is back" "$(state back)" READY
ok "rm" wb rm back --grace 0
reach_stall back
is "a runner that does not answer" \
    "$(await in_state back QUARANTINED; wb inspect back | field stateReason)" stall
no "is not released while it does not: it is frozen again" 125 wb release back
is "as it was" "$(state back)" QUARANTINED
kill -CONT "$(procs "$(of back)")"
ok "and is when it may answer" wb release back
is "it works" "$(wb exec back -- echo yes)" yes
ok "rm" wb rm back --grace 0
reach_suspect back
is "SUSPECT by a limit" "$(health back),$(part back)" SUSPECT,pids
no "release takes its proof, which differs" 125 wb release back
is "so it is quarantined by that" \
    "$(wb inspect back | field state),$(wb inspect back | field stateReason)" \
    QUARANTINED,pids
ok "and released from there" wb release back
is "and stays what it is" "$(look; health back)" HEALTHY
ok "rm" wb rm back --grace 0
reach_suspect back
echo 128 >"$(knob "$(of back)" pids.max)"
ok "SUSPECT, and mended meanwhile: released" wb release back
is "it works" "$(wb exec back -- echo yes)" yes
is "both are on the record" "$("$WB_BIN" events export |
    jq -r 'select(.type == "sandbox.released") | .data.from' | sort | uniq -c | tr -s ' \n' ' ')" \
    " 3 QUARANTINED 1 SUSPECT "
ok "rm" wb rm back --grace 0
reach_never back
is "SUSPECT by what never is released" "$(health back),$(part back)" SUSPECT,mounts
no "is refused" 125 wb release back
like "by its name" "$out" 'mounts can never be released'
ok "rm" wb rm back --grace 0
none_left "$WB_BIN"
box_done
