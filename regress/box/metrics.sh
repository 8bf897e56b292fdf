#!/bin/sh
# metrics.sh: what the server tells Prometheus about itself: it is of the form,
# and it is true.
. "$(dirname "$0")/lib.sh"
box_state
box_serve
metrics() {
	curl -sS -H "Authorization: Bearer $WB_TOKEN" "$WB_URL/metrics" \
	    >"$work/metrics"
}
value() {
	awk -v key="$1 " 'index($0, key) == 1 { print $NF }' "$work/metrics"
}
is "nobody is told without the key" "$(curl -s -o "$work/problem" \
    -w '%{http_code}' "$WB_URL/metrics")" 401
is "it is text of that version" "$(curl -s -o "$work/metrics" \
    -w '%{http_code} %{content_type}' -H "Authorization: Bearer $WB_TOKEN" \
    "$WB_URL/metrics")" "200 text/plain; version=0.0.4; charset=utf-8"
is "there is no sandbox" "$(value 'workbox_sandboxes{state="READY"}')" 0
is "  and no series of one" "$(grep -c workbox_sandbox_ "$work/metrics")" 0

ok "create a" wb create --name a --network none
ok "create b" wb create --name b --network none
id=$(wb inspect a | field id)
head -c 100000 /dev/zero | wb exec a -- sh -c \
    'cat >/dev/null; head -c 200000 /dev/zero' >/dev/null
wb run a --name busy -- sh -c 'while :; do :; done' >/dev/null
# nothing but a look at the box tells what it uses
used() {
	metrics
	[ "$(value "workbox_sandbox_sessions{id=\"$id\",name=\"a\"}")" = 1 ] &&
	    value "workbox_sandbox_cpu_seconds_total{id=\"$id\",name=\"a\"}" |
	    grep -q '[1-9]'
}
await used && pass "what it uses is told" ||
    fail "what it uses is not told" "$(grep _sandbox_ "$work/metrics")"
is "two are READY" "$(value 'workbox_sandboxes{state="READY"}')" 2
is "  and whole" "$(value 'workbox_sandboxes_health{health="HEALTHY"}')" 2
is "  it took its time" "$(value workbox_ready_seconds_count)" 2
is "  less than 10 s" "$(value 'workbox_ready_seconds_bucket{le="10"}')" 2
is "two commands began" "$(value workbox_sessions_started_total)" 2
is "  and are timed" "$(value workbox_exec_seconds_count)" 2
is "bytes of output" "$(value workbox_output_bytes_total)" 200000
is "bytes of input" "$(value workbox_input_bytes_total)" 100000
commits=$(value workbox_commit_seconds_count)
# REQUESTED and READY of each, the start of each command, the end of one
[ "${commits:-0}" -ge 6 ] && pass "$commits commits are timed" ||
    fail "commits" "$commits"
[ "$(value "workbox_sandbox_memory_bytes{id=\"$id\",name=\"a\"}")" -gt 100000 ] &&
    pass "memory in use" || fail "memory in use" "$(grep memory "$work/metrics")"
like "requests that wait, of each daemon" \
    "$(sed -n 's/^workbox_requests_waiting{to="\(.*\)"} .*/\1/p' \
    "$work/metrics" | tr '\n' ' ')" '^privd stored netd runners $'

# of the dashboard: names alone
sed -n 's/^# TYPE \([a-z_]*\) histogram/\1_bucket/p
    s/^# TYPE \([a-z_]*\) .*/\1/p' "$work/metrics" | sort >"$work/names"
is "the dashboard asks for nothing else" "$(/usr/bin/python3 -c 'import json, sys
for p in json.load(open(sys.argv[1]))["panels"]:
    for t in p["targets"]:
        print(t["expr"])' "$top/etc/grafana.json" | grep -o 'workbox_[a-z_]*' |
    sort -u | comm -23 - "$work/names")" ""

cpu=$(value workbox_cpu_seconds_total)
wb rm --grace 0 a
is_gone() { metrics; ! grep -q "$id" "$work/metrics"; }
await is_gone && pass "what is gone has no series" ||
    fail "what is gone has a series" "$(grep "$id" "$work/metrics")"
[ -n "$cpu" ] && [ -n "$(value workbox_cpu_seconds_total)" ] && [ "$(awk -v a="$cpu" -v b="$(value workbox_cpu_seconds_total)" \
    'BEGIN { print (b >= a) }')" = 1 ] && pass "  and stays in the sum" ||
    fail "  and is not in the sum" "$cpu" "$(value workbox_cpu_seconds_total)"
wb rm --grace 0 b
box_stop
box_done
