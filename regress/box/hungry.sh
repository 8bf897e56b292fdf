#!/bin/sh
# hungry.sh: a box that uses up its processor time is late in all it does, its
# first process too: at a restart it may be suspect for a while, but it is
# neither condemned nor left standing.
. "$(dirname "$0")/lib.sh"
WB_CONF_MORE='restart-limit = 1000'
box_serve
look() { wb inspect hungry | sed -n "s/.*\"$1\": *\"\([A-Za-z]*\)\".*/\1/p"; }
ok "create" wb create --name hungry --network none --cpus 0.2 --pids 256
wb run hungry --name loops -- sh -c \
    'i=0; while [ $i -lt 10 ]; do while :; do :; done & i=$((i + 1)); done; echo all; wait' >/dev/null
said() { wb logs hungry loops | grep -q all; }
await said && pass "ten loops" || fail "the loops do not start"

for d in apid stored netd apid; do
	p=$(box_pid "$d" || daemon_pids "$d" | head -n 1)
	kill -KILL "$p"
	again() {
		q=$(daemon_pids "$d" | head -n 1)
		[ -n "$q" ] && [ "$q" != "$p" ] && answers
	}
	await again && pass "$d is back" || fail "$d is not back"
	is "the box is not condemned" "$(look state)" READY
done
whole() { [ "$(look health)" = HEALTHY ]; }
tries=0
until whole || [ $tries -gt 8 ]; do await whole; tries=$((tries + 1)); done
is "it is whole again" "$(look state) $(look health)" "READY HEALTHY"
ok "and ends what it is told to end" wb kill hungry loops -s KILL
no "the loops are gone" 137 wb wait hungry loops --timeout 60
is "it takes commands" "$(wb exec hungry -- echo alive 2>&1)" alive
for p in $(pgrep -P "$serve_pid") $(descendants "$serve_pid"); do
	is "$p traces nobody" "$(grep -l "^TracerPid:[[:space:]]*$p\$" \
	    /proc/[0-9]*/status 2>/dev/null)" ""
done
box_done
