#!/bin/sh
# soak.sh: 50 boxes, clients that come and go, and daemons that are killed at
# random moments: every byte of every session arrives, no box is lost, the
# record is whole, and nothing is left behind.  For WB_SOAK seconds (600);
# WB_SEED repeats a run as far as its random numbers go.
. "$(dirname "$0")/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: takes ${WB_SOAK:-600} s (long lane)"; exit 77; }
PY=/usr/bin/python3
[ -x $PY ] || { echo "skip: $PY is not there"; exit 77; }
WB_DIRECT=1	# clients by the hundred
WB_UIDS=268369920	# of no other test: see the end
WB_CONF_MORE='restart-limit = 1000'
seed=${WB_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
box_state
head -c 4194304 /dev/urandom >"$WB_STATE/rootfs/minimal/noise"
host_facts "$WB_PREFIX" "$WB_STATE" "$WB_CGROUP" "$WB_UIDS" >"$work/before"
box_serve
echo "# seed $seed"
PYTHONDONTWRITEBYTECODE=1 timeout -k 5 $((${WB_SOAK:-600} + 900)) \
    $PY "$top/regress/box/soak.py" "$seed" "${WB_SOAK:-600}" "$serve_pid" \
    "$WB_STATE/rootfs/minimal/noise" "$WB_URL" >"$work/soak" 2>&1 </dev/null
r=$?
cat "$work/soak"
passed=$((passed + $(grep -c '^ok - ' "$work/soak")))
failed=$((failed + $(grep -c '^not ok - ' "$work/soak")))
is "the clients end" "$r" 0

"$WB_BIN" events export >"$work/record"
ok "the chain of the record is whole" sh \
    -c "$PY '$top/regress/box/verify-chain.py' <'$work/record'"
n=$(grep -c '"type":"session.ended"' "$work/record")
[ "$n" -ge 50 ] &&
    [ "$n" = "$(grep -c '"type":"session.started"' "$work/record")" ] &&
    pass "each of $n sessions is on it with its end" ||
    fail "sessions on the record" "$(sed -n 's/.*"type":"\([a-z.]*\)".*/\1/p' \
    "$work/record" | sort | uniq -c)"
is "each ended with 0" "$(grep '"type":"session.ended"' "$work/record" |
    grep -vc '"exitCode":0')" 0

i=0
while [ $i -lt 50 ]; do
	"$WB_BIN" sandbox rm soak-$i --grace 0 >>"$work/rm" 2>&1 ||
	    fail "remove soak-$i"
	i=$((i + 1))
done
box_stop
is "no tree is left" "$(ls "$WB_STATE/sandboxes")" ""
is "nothing is left on the host" "$(host_facts "$WB_PREFIX" "$WB_STATE" \
    "$WB_CGROUP" "$WB_UIDS" | diff "$work/before" -)" ""
box_done
