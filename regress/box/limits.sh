#!/bin/sh
# limits.sh: the limits of a box hold from its first instruction, on this
# host's kind of cgroups, and what meets them is the command, not the box.
. "$(dirname "$0")/lib.sh"
box_serve

ok "create with limits" wb create --name lim --network none \
    --memory 67108864 --cpus 1 --pids 256

# the network for whom nobody names one; without netfilter there is but one
case ${WB_CONF-} in *'netfilter = "none"'*) given=none ;;
    *) given=egress ;; esac
like "the default network is $given" "$(wb create --name plain)" \
    "\"network\": \"$given\""
ok "  and it goes" wb rm --grace 0 plain

# memory: a tmpfs is charged to the box and has no swap to go to
wb exec lim -- sh -c 'head -c 90000000 /dev/zero >/dev/shm/x' >/dev/null 2>&1
r=$?
[ $r -ne 0 ] && pass "90 MB into 64 MiB fails (exit $r)" ||
    fail "memory is not limited"
is "the box is whole afterwards" "$(wb exec lim -- echo alive)" alive
wb exec lim -- rm -f /dev/shm/x >/dev/null 2>&1
wb exec lim -- dd if=/dev/zero of=/dev/null bs=70M count=1 >/dev/null 2>&1
r=$?
[ $r -ne 0 ] && pass "70 MB of a process fail (exit $r)" ||
    fail "memory of a process is not limited"
is "the box is whole after that too" "$(wb exec lim -- echo alive)" alive
told() {	# the end of a session, as far as it is told
	s=$(wb run lim -- "$@" | sed -n 's/.*"sessionId": *"\([^"]*\).*/\1/p')
	wb wait lim "$s" 2>&1 | tr -d '\n' | sed \
	    -n 's/.*"signal": *\([0-9a-z]*\).*"reason": *\([a-z"]*\).*/\1 \2/p'
}
is "it is told what ended it" \
    "$(told dd if=/dev/zero of=/dev/null bs=70M count=1)" '9 "oom"'
is "a shell ends with its child, and is told so" \
    "$(told sh -c 'sleep 1; dd if=/dev/zero of=/dev/null bs=70M count=1; sleep 100')" '9 "oom"'
is "who ends otherwise is not" "$(told sh -c 'kill -9 $$')" '9 null'

# processes
out=$(wb exec lim --name bomb -- sh -c \
    'i=0; while [ $i -lt 400 ]; do sleep 100 & i=$((i + 1)); done; wait' 2>&1)
like "a fork bomb stops at the limit" "$out" "fork|temporarily|Resource"
is "an exec works while it lasts" "$(wb exec lim -- echo alive 2>&1)" alive
# what it left behind holds memory
ok "what it left behind ends" wb kill lim bomb --signal KILL

# limits of one session, where the kernel counts by session
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	out=$(wb exec lim --pids 8 -- sh -c \
	    'i=0; while [ $i -lt 20 ]; do sleep 100 & i=$((i + 1)); done; wait' 2>&1)
	like "a session has fewer processes than its box" "$out" \
	    "fork|temporarily|Resource"
	s=$(wb run lim --memory 16M -- dd if=/dev/zero of=/dev/null bs=30M \
	    count=1 | sed -n 's/.*"sessionId": *"\([^"]*\).*/\1/p')
	like "and less memory" "$(wb wait lim "$s" 2>&1)" '"reason": "oom"'
	is "which another needs not know" "$(wb exec lim -- dd if=/dev/zero \
	    of=/dev/null bs=30M count=1 2>/dev/null && echo fits)" fits
else
	no "a session's own limits are refused on cgroup v1" 125 wb exec lim \
	    --pids 8 -- true
	like "and it says why" "$out" "limits: .*cgroup v1"
fi
no "a session's limit above its box's" 125 wb exec lim --memory 1G -- true
like "is refused by name" "$out" "limits.memoryBytes"

# ceilings
no "more memory than the ceiling is refused" 125 wb create --name big \
    --network none --memory 99999999999999
like "and says so" "$out" "limit-above-ceiling|limits.memoryBytes"
box_done
