#!/bin/sh
# allow_crowd.sh: 500 boxes with the network `allowlist' live at one time, each
# with a list of 1,000 entries: what proxyd needs for one, how long it takes
# from `create' to the first byte by name, what netd may do on the host, and
# that nothing is left.
#
# In the small internet of inet.sh.  WB_CROWD: another number of boxes, 503 at
# most.
[ "${WB_LANE-fast}" = long ] || { echo "skip: 500 boxes (long lane)"; exit 77; }
n=${WB_CROWD:-500}
WB_BOXES=$((n + 8))
. "$(dirname "$0")/inet.sh"

WB_CONF_MORE='egress-pool = 0
egress-connections = 64
default-memory = 67108864'
inet_up
inet_serve egress_net.py
box_serve
from_box() {
	timeout 20 "$WB_BIN" sandbox exec -n "$1" -- wget \
	    -q -O - http://www.example.org/ 2>&1
}
pss() {
	awk '/^Pss:/ { print $2 }' \
	    "/proc/$(daemon_pids proxyd | tail -n 1)/smaps_rollup"
}
now() { echo $(($(date +%s%N) / 1000000)); }
# of: the number at so many hundredths of those in a file
at() {
	sort -n "$2" | awk -v p="$1" \
	    '{ v[NR] = $1 } END { print v[int((NR - 1) * p / 100) + 1] }'
}

seq 999 | sed 's/.*/host&.crowd.example.org/' >"$work/list"
echo www.example.org >>"$work/list"

# ---- they come
before=$(pss)
made=0 reached=0
for i in $(seq "$n"); do
	t0=$(now)
	wb create --name "b$i" --network allowlist --allow-file "$work/list" \
	    >/dev/null 2>"$work/create.err" && made=$((made + 1)) ||
	    { cat "$work/create.err"; break; }
	echo $(($(now) - t0)) >>"$work/create"
	case $(from_box "b$i") in reached*) reached=$((reached + 1)) ;; esac
	echo $(($(now) - t0)) >>"$work/first"
done
is "boxes with 1,000 entries each" "$made" "$n"
is "  each of which reaches a host by its name" "$reached" "$n"
echo "# create: p50 $(at 50 "$work/create") ms, p95 $(at 95 "$work/create") ms"
echo "# from create to the first byte: p50 $(at 50 "$work/first") ms, p95 $(at \
    95 "$work/first") ms"
is "  all are READY" "$(wb list --format json | grep -c '"state": "READY"')" \
    "$n"
is "  with that network" \
    "$(wb list --format json | grep -c '"network": "allowlist"')" "$n"
is "  and no slirp4netns" "$(slirps)" ""

# ---- what they cost
after=$(pss)
each=$(((after - before) * 1024 / n))
echo "# proxyd: $before KiB before, $after KiB with $n boxes: $each bytes each"
[ "$each" -le 65536 ] && [ "$each" -gt 0 ] &&
    pass "proxyd needs 64 KiB at most for each" ||
    fail "proxyd needs $each bytes for each"
p=$(daemon_pids proxyd | tail -n 1)
echo "# proxyd has $(ls "/proc/$p/fd" | wc -l) descriptors"
is "  and no capability" "$(awk '/^Cap(Eff|Prm|Bnd|Amb)/ { print $2 }' \
    "/proc/$p/status" | sort -u)" 0000000000000000

# ---- what netd may do on the host meanwhile
for p in $(daemon_pids netd); do
	is "netd's capabilities are not the host's (pid $p)" "$(readlink \
	    "/proc/$p/ns/user" | grep -c "^$(readlink /proc/self/ns/user)$")" 0
done
p=$(daemon_pids netd | tail -n 1)
is "  what it may there: nothing" \
    "$(nsenter -t "$p" -U --preserve-credentials -n -- ip link add nope type \
    dummy 2>&1 >/dev/null | grep -c 'not permitted\|denied')" 1

# ---- one changes, the others do not notice
t0=$(now)
ok "one loses an entry" wb network b1 --remove www.example.org
echo "# an entry less among $n: $(($(now) - t0)) ms"
like "  and reaches nobody" "$(from_box b1)" "bad address"
like "  its neighbour does" "$(from_box b2)" '^reached'

# ---- the daemons end and come back, all at once
all=$(descendants "$serve_pid" | while read -r p; do
	case $(readlink "/proc/$p/exe") in "$WB_PREFIX"/libexec/*) echo "$p" ;; esac; done)
kill -KILL "$serve_pid" $all
wait "$serve_pid" 2>/dev/null
t0=$(now)
start_serve "$WB_BIN" --config "$work/workbox.conf"
echo "# serving again with $n boxes: $(($(now) - t0)) ms"
is "all are there" "$(wb list --format json | grep -c '"state": "READY"')" "$n"
whole() {
	wb list --format json | grep -c '"health": "HEALTHY"' | grep -qx "$n"
}
await whole && pass "  and are healthy" ||
    fail "not healthy" "$(wb list | grep -v HEALTHY | head)"
echo "# all are healthy after $(($(now) - t0)) ms"
for i in 2 $((n / 2)) "$n"; do
	like "  b$i reaches the host by its name" "$(from_box "b$i")" '^reached'
done

# ---- nothing is left
seq "$n" | sed 's/^/b/' |
    xargs -n 50 "$WB_BIN" sandbox rm --grace 0 >/dev/null 2>"$work/rm.err" &&
    pass "removed" || fail "remove" "$(cat "$work/rm.err")"
echo "# proxyd: $(pss) KiB behind them"
inet_done
