#!/bin/sh
# crowd.sh: 200 boxes with the network `egress' live at one time: what netd
# may do on the host, how soon an address that the host gets is sealed in all
# of them, the network of one changed among them, and that nothing is left.
#
# In the small internet of inet.sh.  WB_CROWD: another number of boxes.
[ "${WB_LANE-fast}" = long ] || { echo "skip: 200 boxes (long lane)"; exit 77; }
n=${WB_CROWD:-200}
WB_BOXES=$((n + 8))
. "$(dirname "$0")/inet.sh"

WB_CONF_MORE='egress-connections = 64
default-memory = 67108864
log-level = debug'
inet_up
inet_serve egress_net.py
box_serve
from_box() {
	timeout 20 "$WB_BIN" sandbox exec -n "$2" -- wget -q -O - "http://$1/" \
	    2>&1
}

# ---- they come
t0=$(date +%s%N)
made=0
for i in $(seq "$n"); do
	wb create --name "b$i" >/dev/null 2>"$work/create.err" &&
	    made=$((made + 1)) || { cat "$work/create.err"; break; }
done
is "boxes with the default network" "$made" "$n"
echo "# $n creates, one after another: $((($(date +%s%N) - t0) / 1000000)) ms"
is "  which is egress" \
    "$(wb list --format json | grep -c '"network": "egress"')" "$n"
for i in 1 $((n / 2)) "$n"; do
	is "b$i reaches the internet" "$(from_box 203.0.113.10 "b$i")" \
	    "reached 203.0.113.10"
done
live=$(slirps | wc -l)
[ "$live" -ge "$n" ] && [ "$live" -le $((n + 4)) ] &&
    pass "one slirp4netns each, and the pool's" || fail "$live slirp4netns"
is "no two share a uid" "$(for p in $(slirps); do awk '/^Uid:/ { print $2 }' \
    "/proc/$p/status"; done | sort | uniq -d)" ""

# ---- what netd may do on the host meanwhile
for p in $(daemon_pids netd); do
	is "netd's capabilities are not the host's (pid $p)" "$(readlink \
	    "/proc/$p/ns/user" | grep -c "^$(readlink /proc/self/ns/user)$")" 0
	echo "# netd $p: $(awk '/^Uid|^CapEff/ { printf "%s %s  ", $1, $2 }' \
	    "/proc/$p/status")$(awk '/^VmRSS/ { print $2, $3 }' "/proc/$p/status"), $(ls "/proc/$p/fd" | wc -l) descriptors"
done
p=$(daemon_pids netd | tail -n 1)
is "  what it may there: nothing" \
    "$(nsenter -t "$p" -U --preserve-credentials -n -- ip link add nope type \
    dummy 2>&1 >/dev/null | grep -c 'Operation not permitted\|not permitted\|denied')" 1

# ---- an address of the host's is sealed in all of them
mark=$(wc -l <"$work/serve.log")
news() {
	tail -n "+$((mark + 1))" "$work/serve.log" |
	    grep -q "intervals, in $n networks"
}
ip addr add 203.0.113.3/24 dev net0
await news && pass "the host's new address goes into $n networks" ||
    fail "it does not go into $n networks"
took=$(tail -n "+$((mark + 1))" "$work/serve.log" |
    sed -n "s/.*intervals, in $n networks \([0-9]*\) ms after the news/\1/p" |
    tail -n 1)
[ "${took:-999}" -le 50 ] && pass "  within 50 ms: $took" ||
    fail "  not within 50 ms: $took"
in_set() {	# box: whether its set has the address
	pid=$(wb proof "$1" --format json | tr -d ' \n' |
	    sed -n 's/.*"field":"hostPid"[^}]*"host":\([0-9]*\).*/\1/p')
	nsenter -t "$pid" -n nft list set ip workbox host4 2>/dev/null |
	    grep -q '203\.0\.113\.3'
}
lack=
for i in $(seq "$n"); do in_set "b$i" || lack="$lack b$i"; done
is "  in each of them" "$lack" ""
is "it answers the host" "$(from_host 203.0.113.3)" "reached 203.0.113.3"
like "  and no box" "$(from_box 203.0.113.3 "b$n")" "can't connect"
ip addr del 203.0.113.3/24 dev net0

# ---- one changes, the others do not notice
t0=$(date +%s%N)
ok "one becomes none" wb network b1 none
echo "# egress to none among $n: $((($(date +%s%N) - t0) / 1000000)) ms"
like "  and reaches nobody" "$(from_box 203.0.113.10 b1)" "can't connect"
is "  its neighbour does" "$(from_box 203.0.113.10 b2)" "reached 203.0.113.10"
t0=$(date +%s%N)
ok "and egress again" wb network b1 egress
echo "# none to egress among $n: $((($(date +%s%N) - t0) / 1000000)) ms"
is "  which reaches it" "$(from_box 203.0.113.10 b1)" "reached 203.0.113.10"

# ---- the daemons end and come back, all at once
all=$(descendants "$serve_pid" | while read -r p; do
	case $(readlink "/proc/$p/exe") in "$WB_PREFIX"/libexec/*) echo "$p" ;; esac; done)
kill -KILL "$serve_pid" $all
wait "$serve_pid" 2>/dev/null
t0=$(date +%s%N)
start_serve "$WB_BIN" --config "$work/workbox.conf"
echo "# serving again with $n boxes: $((($(date +%s%N) - t0) / 1000000)) ms"
is "all are there" "$(wb list --format json | grep -c '"state": "READY"')" "$n"
is "  and reach the internet" "$(from_box 203.0.113.10 "b$n")" \
    "reached 203.0.113.10"
whole() {
	wb list --format json | grep -c '"health": "HEALTHY"' | grep -qx "$n"
}
await whole && pass "  and are healthy" ||
    fail "not healthy" "$(wb list | grep -v HEALTHY | head)"
# all ways out die together
kill -KILL $(slirps)
back() {
	from_box 203.0.113.10 "b$n" | grep -q reached && from_box 203.0.113.10 \
	    b1 | grep -q reached && [ "$(slirps | wc -l)" -ge "$n" ]
}
t0=$(date +%s%N)
await back && pass "when every slirp4netns is killed each box gets another" ||
    fail "ways out are missing" "$(slirps | wc -l)"
echo "# $n ways out again: $((($(date +%s%N) - t0) / 1000000)) ms"
await whole && pass "  and all are healthy" ||
    fail "not healthy" "$(wb list | grep -v HEALTHY | head)"

# ---- nothing is left
seq "$n" | sed 's/^/b/' |
    xargs -n 50 "$WB_BIN" sandbox rm --grace 0 >/dev/null 2>"$work/rm.err" &&
    pass "removed" || fail "remove" "$(cat "$work/rm.err")"
few() { [ "$(slirps | wc -l)" -le 4 ]; }
await few && pass "their slirp4netns are gone" ||
    fail "left" "$(slirps | wc -l)"
inet_done
