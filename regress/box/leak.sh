#!/bin/sh
# leak.sh: boxes created and removed, and nothing of them is left: mounts,
# namespaces, cgroups, rules, descriptors of every daemon, uid ranges, files.
. "$(dirname "$0")/lib.sh"
count=${WB_COUNT:-200}
box_serve


one() {
	wb create --name "$1" --network none >/dev/null &&
	[ "$(wb exec "$1" -- echo "in $1")" = "in $1" ] &&
	wb rm "$1" >/dev/null
}

# Warm up: what is made once stays (pools, first pages, the parent cgroup).
for i in 1 2 3; do one "warm-$i" || fail "warm-up"; done
await settled

i=0 bad=0
while [ $i -lt "$count" ]; do
	one "a-$i" || bad=$((bad + 1)) &
	one "b-$i" || echo bad >>"$work/bad"
	wait $! || bad=$((bad + 1))
	i=$((i + 2))
done
[ ! -e "$work/bad" ] || bad=$((bad + $(wc -l <"$work/bad")))
is "$count boxes created, used and removed" "$bad" 0
if await quiet; then
	pass "equal before and after: mounts, namespaces, cgroups, rules, descriptors, files"
else
	fail "left behind" "$(diff "$work/before" "$work/now")"
fi
is "no process or file has a uid of the boxes" "$(uids_in_use | tr '\n' ' ')" \
    "0 0 "
box_done
