#!/bin/sh
# reload.sh: SIGHUP: what of the configuration is taken up while all goes on,
# and what is named and waits for the next start.
. "$(dirname "$0")/lib.sh"
WB_DIRECT=1
WB_CONF_MORE='default-memory = 134217728
max-memory = 268435456
default-cpu-milli = 500
max-cpu-milli = 1000'
box_state
WB_CONF='max-pids = 300
default-pids = 200'
box_serve
wb create --name a --network none --pids 300 >/dev/null
conf=$work/workbox.conf
url=http://127.0.0.1:$port
# a session that goes on, and a client that reads it all the time
s=$(wb run a -- sh -c 'i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo $i; usleep 20000; done' | field sessionId)
curl -sN -H "Authorization: Bearer $WB_TOKEN" \
    "$url/v1/sandboxes/a/sessions/$s/output?follow=1" >"$work/stream" &
reads=$!
hosts() { curl -so /dev/null -w '%{http_code}' -H "Authorization: Bearer $WB_TOKEN" -H "Host: $1" "$url/v1/sandboxes"; }
pids() { for d in maker stored apid netd uplinkd proxyd; do box_pid "$d"; done | xargs; }

# the words whose change has been seen to count
taken=
takes() { taken="$taken$1
"; }
# how often the record has this address for one whose key is refused
asked_by() { "$WB_BIN" events export | grep '"auth.failed"' | grep -c "\"peer\":\"$1[:\"]"; }
asks_for() { curl -so /dev/null -H "Authorization: Bearer wrong" -H "X-Forwarded-For: $1" "$url/v1/sandboxes"; }

before=$(pids)
asks_for 192.0.2.7
await eval '[ "$(asked_by 127.0.0.1)" -gt 0 ]' && pass "who asks is the peer" ||
    fail "the record has not who asked"
is "  and not who it says it is" "$(asked_by 192.0.2.7)" 0
no "more memory than max-memory is refused" 125 wb create --name big \
    --network none --memory 402653184
no "more processors than max-cpu-milli, too" 125 wb create --name big \
    --network none --cpus 1.5
is "a host that is not allowed is refused" "$(hosts box.example)" 421
is "nothing is told on debug" "$(log ': debug: ')" 0
cat >>"$conf" <<'C'
allowed-host = { "box.example" }
C
sed -i 's/^max-pids.*//; s/^default-pids.*//; s/^log-level.*//; s/^max-boxes.*//
    s/^default-memory.*//; s/^max-memory.*//; s/^default-cpu.*//; s/^max-cpu.*//' "$conf"
cat >>"$conf" <<'C'
max-pids = 299
default-pids = 128
log-level = "debug"
max-boxes = 33
trusted-proxy = { "127.0.0.1" }
default-network = "none"
default-memory = 201326592
max-memory = 536870912
default-cpu-milli = 700
max-cpu-milli = 1500
C
hup
like "what was taken up is told" "$(grep 'reader.*reload' "$work/serve.log")" \
    'info: reload: .*: allowed-host, trusted-proxy, log-level, default-network, default-memory, default-cpu-milli, default-pids, max-memory, max-cpu-milli, max-pids$'
like "  and what waits" "$(grep 'reader.*reload' "$work/serve.log")" \
    'warning: reload: .*next start.*: max-boxes'
await eval '[ "$(hosts box.example)" = 200 ]' && pass "allowed-host" ||
    fail "allowed-host: $(hosts box.example)"
takes allowed-host
no "max-pids: one more is refused" 125 wb create --name b --network none --pids 300
ok "  as many are not" wb create --name b --network none --pids 299
takes max-pids
ok "default-pids" wb create --name c
like "  is what one has who says nothing" "$(wb inspect c)" '"pids": 128'
takes default-pids
like "default-network" "$(wb inspect c)" '"network": "none"'
takes default-network
like "default-memory" "$(wb inspect c)" '"memoryBytes": 201326592'
takes default-memory
like "default-cpu-milli" "$(wb inspect c)" '"cpus": 0\.7[,}]?$'
takes default-cpu-milli
# raised: what was refused is made, and can be used
ok "max-memory and max-cpu-milli, raised" wb create --name big \
    --memory 402653184 --cpus 1.5
is "  a box has more than the ceiling of before" "$(wb exec big -- \
    dd if=/dev/zero of=/dev/null bs=300M count=1 2>/dev/null && echo fits)" fits
no "  one byte more than that of now is refused" 125 wb create --name huge \
    --memory 536870913
takes max-memory
like "  its processors are told" "$(wb inspect big)" '"cpus": 1\.5[,}]?$'
no "  more than that of now are refused" 125 wb create --name huge --cpus 1.6
takes max-cpu-milli
ok "  and it goes" wb rm big --grace 0
asks_for 192.0.2.7
await eval '[ "$(asked_by 192.0.2.7)" -gt 0 ]' && pass "trusted-proxy" ||
    fail "trusted-proxy: the record has not whom it speaks for"
takes trusted-proxy
like "one that has more keeps it" "$(wb inspect a)" '"pids": 300'
for d in privd apid; do
	await eval "[ \$(log '^$d.*: debug: ') -gt 0 ]" &&
	    pass "log-level, in $d" || fail "$d tells nothing on debug"
done
takes log-level

# ---- one form of line, of whoever speaks; the command's URLs come before
is "every line of the log has the one form" "$(grep -vE \
    '^(workbox|reader|privd|maker|netd|netd-maker|uplinkd|proxyd|stored|apid)\[[0-9]+\]: (error|warning|info|debug): .|^workbox serve: https?://[^ ]*$' \
    "$work/serve.log")" ""

# ---- above what was the most at the start
sed -i 's/^max-pids = 299$/max-pids = 400/' "$conf"
hup
await eval 'wb create --name more --network none --pids 350 >/dev/null 2>&1' &&
    pass "max-pids, more than at the start" ||
    fail "max-pids: $(wb create --name more --network none --pids 350 2>&1)"
sed -i 's/^max-pids = 400$/max-pids = 299/' "$conf"
hup

# ---- what is no good changes nothing
cp "$conf" "$work/good.conf"
echo 'max-pids = "many"' >>"$conf"
sed -i 's/^max-pids = 299$//' "$conf"
hup
like "a file that is no good is refused by name" \
    "$(grep 'reader\[' "$work/serve.log" | tail -n 2)" 'max-pids: expected'
like "  and nothing changes" "$(grep 'reader\[' "$work/serve.log" | tail -n 1)" \
    'stays as it was'
no "  the bound is that of before" 125 wb create --name d --network none --pids 300
cp "$work/good.conf" "$conf"

# ---- nothing was ended for it, and the next set of daemons has it, too
is "no process was ended" "$(pids)" "$before"
wait $reads
is "no byte of the stream was lost" "$(tail -n 1 "$work/stream" | grep -c exitCode)" 1
is "  nor one repeated" \
    "$(sed -n 's/.*"data": *"\([^"]*\)".*/\1/p' "$work/stream" | tr -d '\n' | sed 's/\\n/ /g' | xargs)" \
    "$(seq 400 | xargs)"
kill -9 "$(box_pid apid)"
await answers
await eval '[ "$(hosts box.example)" = 200 ]' && pass "daemons that start again have it" ||
    fail "daemons that start again do not: $(hosts box.example)"
no "  with the bounds" 125 wb create --name d --network none --pids 300

# ---- the key
reader=$(pgrep -P "$serve_pid" -x workbox)
box_stop
gone() { [ ! -e "/proc/$reader" ]; }
await gone && pass "who reads the configuration ends with the server" ||
    fail "process $reader is still there"
code() { curl -so /dev/null -w '%{http_code}' -H "Authorization: Bearer $1" "$url/v1/sandboxes"; }
printf '%s' "$WB_TOKEN" >"$work/token"
chmod 600 "$work/token"
start_serve "$WB_BIN" --config "$conf" --token-file "$work/token"
new=$(new_token)
printf '%s' "$new" >"$work/token"
hup
await eval '[ "$(code "$new")" = 200 ]' && pass "another key is taken" ||
    fail "another key: $(code "$new")"
is "  and the one before is none any more" "$(code "$WB_TOKEN")" 401
printf 'short' >"$work/token"
hup
like "one that is no good is refused" \
    "$(grep 'reader\[' "$work/serve.log" | tail -n 2)" 'expected a key of'
is "  and the one before stays" "$(code "$new")" 200
printf '%s' "$WB_TOKEN" >"$work/token"
hup
await answers && pass "  and back" || fail "the key does not come back"
reader=$(pgrep -P "$serve_pid" -x workbox)
is "who reads has no capability but to read" \
    "$(sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$reader/status")" 0000000000000004
is "  and three descriptors, its socket and the root" "$(ls "/proc/$reader/fd" | wc -l)" 5
kill -9 "$reader"
await eval '[ $(log "the reader of the configuration has ended") = 1 ]' &&
    pass "one that was ended is told" || fail "nobody tells that the reader has ended"
ok "  and the server goes on" wb create --name e --network none

# ---- what is for all boxes, or the server's end
box_stop
start_serve "$WB_BIN" --config "$conf"
sed -i 's/^disk-floor.*/disk-floor = 4611686018427387904/' "$conf"
hup
floor() { ! wb create --name f >"$work/floor" 2>&1 && grep -q disk-floor "$work/floor"; }
await floor && pass "disk-floor: creates are refused by its name" ||
    fail "disk-floor" "$(cat "$work/floor")"
sed -i 's/^disk-floor.*/disk-floor = 67108864/' "$conf"
hup
await wb create --name g && pass "  and back" || fail "creates are refused still"
takes disk-floor
echo 'restart-limit = 1' >>"$conf"
hup
kill -9 "$(box_pid apid)"
await answers && pass "restart-limit: one start more is had" ||
    fail "the daemons do not start again"
last=$serve_pid
kill -9 "$(box_pid apid)"
ended() { ! kill -0 "$last"; }
await ended && pass "  and no second" || fail "the server is still there"
wait "$last"
takes restart-limit
start_serve "$WB_BIN" --config "$conf"

is "every word that is taken up at once was seen to be" \
    "$(printf %s "$taken" | sort)" \
    "$(sed -n 's/^C_NOW("\([^"]*\)".*/\1/p' "$top/common/conf.def" | sort)"
box_done
