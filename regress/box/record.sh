#!/bin/sh
# record.sh: what happened is in the record, byte for byte, and the chain is
# whole: through the API, over kills, with a reader in another language.
. "$(dirname "$0")/lib.sh"
box_serve
verify=$top/regress/box/verify-chain.py
export_to() { "$WB_BIN" events export >"$1"; }
# lines of the file that hold both strings
both() { grep -F -- "$2" "$1" | grep -Fc -- "$3"; }
pid_of() { pgrep -f "^$WB_PREFIX/libexec/workbox/$1" | while read -r p; do
	q=$p; while [ "$q" -gt 1 ]; do
		[ "$q" = "$serve_pid" ] && { echo "$p"; break; }
		q=$(awk '{ print $4 }' "/proc/$q/stat" 2>/dev/null || echo 0)
	done; done | head -n 1; }

ok "create" wb create --name rec --network none
ok "exec" wb exec rec -- sh -c 'exit 0'
wb exec rec -- sh -c 'exit 7' >/dev/null 2>&1
# bytes that are no text come from within the box: JSON cannot bring them
wb exec rec -- sh -c 'wb run -- echo "$(printf "a\377b")"' >/dev/null 2>&1
WORKBOX_TOKEN=wrong-wrong-wrong-wrong "$WB_BIN" sandbox list >/dev/null 2>&1
told() {
	export_to "$work/a"
	[ "$(grep -Fc '"type":"session.ended"' "$work/a")" -ge 4 ] &&
	    grep -Fq '"type":"auth.failed"' "$work/a"
}
# the box's own session when it has ended, a refused key in a moment
await told
is "one server.started" "$(grep -Fc '"type":"server.started"' "$work/a")" 1
is "one sandbox.created" \
    "$(both "$work/a" '"type":"sandbox.created"' '"name":"rec"')" 1
is "one proof.verified" "$(grep -Fc '"type":"proof.verified"' "$work/a")" 1
is "the way to READY" "$(sed -n 's/.*"to":"\([A-Z]*\)".*/\1/p' "$work/a" |
    tr '\n' ' ')" "PROVISIONING BOOTSTRAPPING READY "
is "four sessions started" "$(grep -Fc '"type":"session.started"' "$work/a")" 4
is "four sessions ended" "$(grep -Fc '"type":"session.ended"' "$work/a")" 4
is "the exit code is told" \
    "$(both "$work/a" '"type":"session.ended"' '"exitCode":7')" 1
is "arguments that are text" "$(both "$work/a" '"type":"session.started"' \
    '"argv":["sh","-c","exit 7"]')" 1
is "arguments that are bytes" "$(both "$work/a" '"type":"session.started"' \
    '"argv":["echo",{"base64":"Yf9i"}]')" 1
is "one refused key" \
    "$(both "$work/a" '"type":"auth.failed"' '"outcome":"denied"')" 1
is "no key in the record" \
    "$(grep -Fc -e wrong-wrong -e "$WB_TOKEN" "$work/a")" 0

# the answer of the API is the stored line: the chain holds over it
if command -v python3 >/dev/null; then
	ok "the chain, in another language" sh -c "'$verify' <'$work/a'"
	sed '3s/"ok"/"no"/' "$work/a" >"$work/b"
	no "a changed line is seen" 1 sh -c "'$verify' <'$work/b'"
	sed 3d "$work/a" >"$work/b"
	no "a missing line is seen" 1 sh -c "'$verify' <'$work/b'"
	for l in nonsense '"text"' '{"seq":4}' "$(printf '\377')"; do
		{ head -n 3 "$work/a"; echo "$l"; } >"$work/b"
		no "a line that is no record is seen: $l" 1 sh \
		    -c "'$verify' <'$work/b'"
		like "  in one line" "$(printf '%s\n' "$out" | tr '\n' '~')" \
		    '^record 4: [a-zA-Z ]+~$'
	done
	awk 'NR == 2 { held = $0; next } { print } NR == 3 { print held }' \
	    "$work/a" >"$work/b"
	no "lines in another order are seen" 1 sh -c "'$verify' <'$work/b'"
else
	skip "the chain, in another language: no python3"
fi

# stored is killed while sessions are recorded: nothing told is lost
i=0
while [ $i -lt 3 ]; do
	p=$(pid_of stored)
	for k in 1 2 3 4 5; do wb exec rec -- true >/dev/null 2>&1 &&
	    echo ok; done >"$work/oks" &
	job=$!
	kill -KILL "$p"
	back() {
		q=$(pid_of stored)
		[ -n "$q" ] && [ "$q" != "$p" ] && answers
	}
	await back || fail "no restart of stored"
	wait $job
	export_to "$work/c"
	head -c "$(wc -c <"$work/a")" "$work/c" | cmp -s - "$work/a" &&
	    pass "what was there is there ($i)" || fail "the record changed"
	started=$(grep -Fc '"type":"session.started"' "$work/c")
	want=$(($(grep -Fc '"type":"session.started"' "$work/a") + $(wc \
	    -l <"$work/oks")))
	[ "$started" -ge "$want" ] && pass "every answered exec is in it ($i)" \
	    || fail "$started sessions recorded, $want answered"
	cp "$work/c" "$work/a"
	i=$((i + 1))
done
ok "remove" wb rm rec
export_to "$work/c"
is "the way out" "$(sed -n 's/.*"to":"\([A-Z]*\)".*/\1/p' "$work/c" |
    sed -n '4,$p' | tr '\n' ' ' | sed 's/DRAINING DELETING.*/gone/')" "gone"
# how an end reads that is no exit code: a signal, no start, nobody's word
ok "another" wb create --name end --network none
ended() {
	"$WB_BIN" events export >"$work/c"
	grep -F '"type":"session.ended"' "$work/c" |
	    sed -n "s/.*\(\"actor\":\"[a-z]*\"\).*\"outcome\":\(\"[a-z]*\",\"reason\":[^,]*,\"data\":{.*}\),\"prev\".*/\1 \2/p" | tail -n 1
}
wb exec end -- sh -c 'kill -9 $$' >/dev/null 2>&1
is "the end by a signal" "$(ended)" \
    '"actor":"runner" "ok","reason":null,"data":{"exitCode":137,"signal":9,"leftBehind":0}'
wb exec end -- nothing-here >/dev/null 2>&1
is "a command that did not start" "$(ended)" \
    '"actor":"runner" "failed","reason":"command-not-found","data":{"exitCode":127,"signal":0,"leftBehind":0}'
wb run end -- sleep 1000 >/dev/null
kill -KILL $(find /sys/fs/cgroup -path \
    "*/$WB_CGROUP/*/box/runner/cgroup.procs" -exec cat {} + | sort -u |
    while read -r p; do grep -qs \
    "$(wb inspect end | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -n 1)" \
    "/proc/$p/cgroup" && echo "$p"; done)
lost() { ended | grep -Fq '"reason":"lost"'; }
await lost
is "a session whose sandbox was killed" "$(ended)" \
    '"actor":"apid" "failed","reason":"lost","data":{"exitCode":0,"signal":0,"leftBehind":0}'
ok "it goes" wb rm end
! command -v python3 >/dev/null ||
    ok "the chain over three kills" sh -c "'$verify' <'$work/c'"
box_done
