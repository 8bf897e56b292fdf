#!/bin/sh
# badinput.sh: the table BAD INPUT of workbox-api(7): each of its rows against
# a running server, and clients that go within a request.  badinput.py has the
# requests.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
WB_DIRECT=1		# badinput.py looks itself
box_state
mkdir -p "$work/bare/bin" "$work/bare/etc"
cp "$WB_STATE/rootfs/minimal/bin/busybox" "$work/bare/bin/echo"
tar -C "$work/bare" -czf "$work/bare.tar.gz" .
ok "a root file system without a shell" "$WB_BIN" rootfs import bare \
    "$work/bare.tar.gz" --state "$WB_STATE"

box_serve

# A sandbox with a session, of which the next start finds that it is not what
# was asked for.
first() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -n 1; }
ok "create" wb create --name sealed --network none
id=$(wb inspect sealed | first id)
SEALED_SESSION=$(wb run sealed -- sleep 1000 | first sessionId)
box_stop
find /sys/fs/cgroup -path "*/$WB_CGROUP/$id/box/pids.max" |
    while read -r f; do echo 4000 >"$f"; done
box_serve
like "a sandbox is QUARANTINED" "$(wb inspect sealed)" '"state": *"QUARANTINED"'

export WB_PORT SEALED_SESSION
PYTHONDONTWRITEBYTECODE=1 timeout -k 5 "${WB_TIME:-300}" python3 \
    "$top/regress/box/badinput.py" "$top/apid/workbox-api.7" >"$work/badinput" \
    2>&1
got=$?
cat "$work/badinput"
passed=$((passed + $(grep -c '^ok - ' "$work/badinput")))
failed=$((failed + $(grep -c '^not ok - ' "$work/badinput")))
skipped=$((skipped + $(grep -c '^skip - ' "$work/badinput")))
[ $got = 0 ] || grep -q '^not ok - ' "$work/badinput" ||
    fail "badinput.py ended with $got"
is "no daemon has complained" "$(grep -E \
    '^(privd|apid|stored|netd)\[[0-9]+\]: (fatal|error)' "$work/serve.log")" ""
is "no daemon was started anew" \
    "$(grep -c 'serving, generation' "$work/serve.log")" 2
box_done
