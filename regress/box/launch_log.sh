#!/bin/sh
# launch_log.sh: a box's launch.log: who may read it, what it shows of bytes
# that steer a terminal.
. "$(dirname "$0")/lib.sh"
box_serve
ok "a box" wb create --name b --network none
id=$(wb inspect b | field id)
log=$WB_STATE/sandboxes/$id/launch.log
is "the file is root's alone" "$(stat -c '%u %a' "$log")" "0 600"
printf 'first \033[31mred\n\303\244 second\n' >>"$log"
is "its lines, with what is not printable written out" \
    "$(wb launch-log b | tail -n 2)" 'first \x1b[31mred
\xc3\xa4 second'
is "  and as JSON, as they are" \
    "$(wb launch-log b --format json | jq -r '.lines[-2]' | od -An -c | tr -d ' \n')" \
    'first033[31mred\n'
get() { curl -s -o /dev/null -w '%{http_code}' "$@" \
    "$WB_URL/v1/sandboxes/$id/launch-log"; }
is "without a key: nothing" "$(get)" 401
is "with it" "$(get -H "Authorization: Bearer $WB_TOKEN")" 200
no "a box that is not there" 125 wb launch-log nobody
is "the box has no such file" \
    "$(wb exec b -- sh -c 'find / -xdev -name launch.log | wc -l')" 0

# ---- a client of another daemon's set reads the same
kill -KILL "$(box_pid apid)"
await eval 'wb launch-log b >/dev/null 2>&1' ||
    fail "the log does not come back"
is "it is there after the daemons have come back" \
    "$(wb launch-log b | grep -c second)" 1
wb rm --grace 0 b >/dev/null
await [ ! -e "$log" ] && pass "it goes with the box" || fail "it stays"
box_done
