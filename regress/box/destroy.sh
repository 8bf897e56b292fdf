#!/bin/sh
# destroy.sh: B48: commands, streams of output and uploads under way while
# their sandbox is removed: each client gets one clean end, and nothing is left.
# destroy.py has the clients.  WB_COUNT: how many sandboxes.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
count=${WB_COUNT:-$([ "${WB_LANE-fast}" = long ] && echo 1000 || echo 10)}
WB_DIRECT=1		# it is about descriptors, and destroy.py looks itself
box_serve
export WB_PORT PYTHONDONTWRITEBYTECODE=1
destroy() { timeout -k 5 3000 python3 "$top/regress/box/destroy.py" "$@"; }

# what is made once stays: pools, first pages, the parent cgroup
destroy 2 1 >"$work/warm" 2>&1 || fail "warm-up" "$(cat "$work/warm")"
await settled

destroy "$count" >"$work/destroy" 2>&1
got=$?
cat "$work/destroy"
passed=$((passed + $(grep -c '^ok - ' "$work/destroy")))
failed=$((failed + $(grep -c '^not ok - ' "$work/destroy")))
[ $got = 0 ] || grep -q '^not ok - ' "$work/destroy" ||
    fail "destroy.py ended with $got"
if await quiet; then
	pass "equal before and after: mounts, namespaces, cgroups, rules, descriptors, files"
else
	fail "left behind" "$(diff "$work/before" "$work/now")"
fi
is "no process or file has a uid of the boxes" "$(uids_in_use | tr '\n' ' ')" \
    "0 0 "
is "no daemon has complained" \
    "$(grep -E '^(privd|apid|stored|netd|maker)\[[0-9]+\]: (fatal|error)' \
    "$work/serve.log")" ""
is "no daemon was started anew" \
    "$(grep -c 'serving, generation' "$work/serve.log")" 1
box_done
