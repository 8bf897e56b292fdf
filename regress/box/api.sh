#!/bin/sh
# api.sh: the API by hand, with curl: the path, the errors, streams, clients
# that go away, a restart.
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || { echo "skip: curl is not there"; exit 77; }
box_serve

# api METHOD PATH [BODY [curl's options...]]: $code, $body.
# $key and $type: what is sent as key and type of the body.
api() {
	m=$1 p=$2; shift 2
	b=${1-}; [ $# -eq 0 ] || shift
	[ -z "$b" ] || set -- "$@" -H "Content-Type: $type" --data-binary "$b"
	code=$(curl -sS --max-time 30 -o "$work/body" -w '%{http_code}' \
	    -X "$m" -H "Authorization:$key" "$@" "$WB_URL$p" \
	    2>"$work/curl.err") || : >"$work/body"
	body=$(tr '\0' '?' <"$work/body")
}
key=" Bearer $WB_TOKEN" type=application/json
# want TEXT STATUS METHOD PATH [BODY...]
want() {
	t=$1 s=$2; shift 2
	api "$@"
	[ "$code" = "$s" ] && pass "$t" ||
	    fail "$t" "$code, expected $s" "$(printf %.500s "$body")"
}
# the first member of a name in $body: text, number or word
j() {
	printf '%s\n' "$body" | grep -o "\"$1\":\(\"[^\"]*\"\|[^,}]*\)" |
	    head -n 1 | sed 's/^[^:]*://; s/^"//; s/"$//'
}
# member NAME VALUE
member() { is "  $1" "$(j "$1" | cut -c1-200)" "$2"; }

# ---- the service
key=
want "healthz needs no key" 200 GET /healthz
want "all else does" 401 GET /v1/sandboxes
member code unauthorized
key=" Bearer ${WB_TOKEN}x"
want "a wrong key" 401 GET /v1/sandboxes
key=" Basic $WB_TOKEN"
want "another scheme" 401 GET /v1/sandboxes
like "  is told which" "$body" 'Expected another scheme: .*Bearer'
key=" bearer $WB_TOKEN"
want "version" 200 GET /v1/version
member api v1

# ---- creating
want "create" 201 POST /v1/sandboxes \
    '{"name":"demo","network":"none","labels":{"team":"a","x":""},"env":{"FROM_BOX":"yes","BOTH":"box"}}'
member state READY
member health HEALTHY
member network none
member rootfs minimal
id=$(j id)
like "an id" "$id" '^[0-7][0-9A-HJKMNP-TV-Z]{25}$'
want "create without a name" 201 POST /v1/sandboxes \
    '{"network":"none","limits":{"cpus":0.5,"memoryBytes":268435456,"pids":256}}'
like "  a pleasant one is made up" "$(j name)" '^[a-z]+-[a-z]+-[0-9]{2}$'
like "  its limits are told" "$body" '"cpus":0.5[,}]'
other=$(j id)
want "create at once" 202 POST '/v1/sandboxes?wait=0' \
    '{"name":"soon","network":"none"}'
is_ready() { api GET "/v1/sandboxes/$1"; [ "$(j state)" = READY ]; }
await is_ready soon && pass "  and it becomes READY" ||
    fail "never READY" "$body"

want "network left out" 201 POST /v1/sandboxes '{"name":"plain"}'
member network egress
want "  and it goes" 200 DELETE '/v1/sandboxes/plain?graceSeconds=0'
want "another network" 422 POST /v1/sandboxes '{"name":"x","network":"vpn"}'
member code network-unsupported
want "name taken" 409 POST /v1/sandboxes '{"name":"demo","network":"none"}'
member code name-taken
want "name of 26" 400 POST /v1/sandboxes \
    '{"name":"abcdefghijklmnopqrstuvwxyz","network":"none"}'
want "name with capitals" 400 POST /v1/sandboxes \
    '{"name":"Demo","network":"none"}'
want "rootfs unknown" 422 POST /v1/sandboxes \
    '{"name":"x","rootfs":"nonesuch","network":"none"}'
member code rootfs-unknown
want "  the name is free again" 404 GET /v1/sandboxes/x
want "memory above the ceiling" 422 POST /v1/sandboxes \
    '{"network":"none","limits":{"memoryBytes":99999999999999}}'
member code limit-above-ceiling
member field limits.memoryBytes
for n in memoryBytes:1:17179869184 cpus:5000:64 pids:100:32768; do
	f=${n%%:*} v=${n#*:} v=${v%:*} max=${n##*:}
	want "$f $v" 400 POST /v1/sandboxes \
	    "{\"network\":\"none\",\"limits\":{\"$f\":$v}}"
	member field "limits.$f"
	like "  says what this server allows" "$body" \
	    "Expected: [0-9.]+ to $max\\."
done
want "unknown field" 400 POST /v1/sandboxes '{"network":"none","colour":"red"}'
want "not JSON" 400 POST /v1/sandboxes '{"network":'
want "a member that stands twice" 400 POST /v1/sandboxes \
    '{"network":"none","network":"none"}'
member field network
like "  is named" "$body" 'the member \\"network\\" stands twice'
want "  one below, with what is escaped" 400 POST /v1/sandboxes \
    '{"env":{"x":"\"{","A":"","A":""},"network":"none"}'
like "  is named, too" "$body" 'the member \\"A\\" stands twice'
is "  and is no member of the body" "$(j field)" ""
want "a NUL in text" 400 POST /v1/sandboxes \
    '{"network":"none","env":{"A":"\u0000"}}'
like "  in our own words" "$body" 'text holds no '
want "a NUL in a name" 400 POST /v1/sandboxes \
    '{"network":"none","env":{"\u0000":""}}'
like "  likewise" "$body" 'text holds no '
want "not an object" 400 POST /v1/sandboxes '[]'
for t8 in utf-8 '"UTF-8" ; x=y'; do
	type="application/json ;charset=$t8"
	want "charset $t8" 400 POST /v1/sandboxes '[]'
done
for t8 in latin1 utf-80 '' 'utf-8;charset=utf-16'; do
	type="application/json; x=y; charset=$t8"
	want "charset '$t8'" 415 POST /v1/sandboxes '[]'
done
type=text/plain
want "another type of body" 415 POST /v1/sandboxes '{}'
type=application/json

# ---- lists of hosts
want "allowlist" 201 POST /v1/sandboxes \
    '{"name":"list","network":"allowlist","allow":["B.example.","a.example:443,80","*.x.example:22","b.example"]}'
member network allowlist
list=$(j id)
want "  its list" 200 GET /v1/sandboxes/list/network
is "  in canonical form" "$body" \
    '{"network":"allowlist","allow":["*.x.example:22","a.example","b.example"]}'
want "  changed" 200 PUT /v1/sandboxes/list/network \
    '{"network":"allowlist","add":["c.example"],"remove":["a.example"]}'
want "  it is so" 200 GET /v1/sandboxes/list/network
is "  with what came" "$body" \
    '{"network":"allowlist","allow":["*.x.example:22","b.example","c.example"]}'
want "an entry that is none" 400 PUT /v1/sandboxes/list/network \
    '{"network":"allowlist","allow":["a.example","10.0.0.1"]}'
member field 'allow[1]'
want "a name that is not on it" 200 POST /v1/sandboxes/list/exec \
    '{"argv":["nslookup","a.example"]}'
told() {
	api GET /v1/sandboxes/list/denials && printf '%s' "$body" |
	    grep -q '"name":"a.example","entry":"a.example"'
}
await told && pass "  is told, with the entry" ||
    fail "  is told, with the entry" "$body"
want "one that is" 200 POST /v1/sandboxes/list/exec \
    '{"argv":["nslookup","c.example"]}'
like "  has an address" "$(j stdout)" '198\.18\.[0-9]+\.[0-9]+'
want "what was done by name" 200 GET /v1/sandboxes/list
like "  is told" "$body" \
    '"names":\[\{"name":"c.example","connections":0,"open":0,"sentBytes":0,"receivedBytes":0\}\]'
want "of nothing" 404 PUT /v1/sandboxes/nothing/network '{"network":"none"}'
want "another kind" 200 PUT /v1/sandboxes/list/network '{"network":"none"}'
want "  has no list" 200 GET /v1/sandboxes/list/network
is "  which is said" "$body" '{"network":"none","allow":null}'
api GET '/v1/events?after=0'
is "  all of it is on the record" "$(printf '%s\n' "$body" |
    grep '"type":"sandbox.network"' | grep -c "$list")" 3
want "  and it goes" 200 DELETE '/v1/sandboxes/list?graceSeconds=0'

# ---- what there is
want "reconcile" 200 POST /v1/reconcile
is "  each sandbox is attached" "$(printf '%s\n' "$body" |
    grep -o '"verdict":"attached","reason":null' | wc -l)" 3
like "  times are told" "$body" \
    '"startedAt":"[0-9T:.-]+Z","finishedAt":"[0-9T:.-]+Z"'
api GET '/v1/events?after=0'
like "  it is on the record" "$body" \
    '"type":"reconcile.done","tenant":[^}]*"actor":"token"'

# ---- at most once
idem() { k=$1; shift; want "$@" -H "Idempotency-Key: $k" -D "$work/head"; }
replayed() {
	grep -qi '^Idempotent-Replayed: true' "$work/head" && echo yes ||
	    echo no
}
idem one "create with a key" 201 POST /v1/sandboxes \
    '{"name":"once","network":"none"}'
once=$(j id)
is "  is no repeat" "$(replayed)" no
idem one "  the repeat" 201 POST /v1/sandboxes \
    '{"network":"none","name":"once"}'
member id "$once"
is "  which says so" "$(replayed)" yes
idem one "  at once" 202 POST '/v1/sandboxes?wait=0' \
    '{"network":"none","name":"once"}'
idem one "  another body" 422 POST /v1/sandboxes \
    '{"name":"twice","network":"none"}'
member code idempotency-key-reused
idem refused "a request that is refused" 409 POST /v1/sandboxes \
    '{"name":"once","network":"none"}'
idem refused "  leaves its key unused" 201 POST /v1/sandboxes \
    '{"name":"later","network":"none"}'
later=$(j id)
run='{"argv":["sh","-c","echo x >>/tmp/n; wc -l </tmp/n; exit 3"]}'
idem run "exec with a key" 200 POST /v1/sandboxes/once/exec "$run"
member exitCode 3
idem run "  the repeat" 200 POST /v1/sandboxes/once/exec "$run"
member exitCode 3
is "  ran nothing" "$(j stdout)" '1\n'
is "  and says so" "$(replayed)" yes
idem run "  as a stream" 200 POST '/v1/sandboxes/once/exec?stream=1' "$run"
like "  the same output" "$body" '"data":"1\\n"'
idem run "  under another path" 422 POST /v1/sandboxes/once/sessions "$run"
# a repeat need not wait for the end: it follows the same command
long='{"argv":["sh","-c","echo early; until [ -e /tmp/late ]; do usleep 20000; done; echo late"]}'
(api POST '/v1/sandboxes/once/exec?stream=1' "$long" \
    -H 'Idempotency-Key: long'; printf '%s\n' "$body" >"$work/long") &
first=$!
early() { curl -sN --max-time 1 -o "$work/early" \
    -H "Authorization: Bearer $WB_TOKEN" -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: long' -d "$long" \
    "$WB_URL/v1/sandboxes/once/exec?stream=1"; grep -q early "$work/early"; }
await early && pass "a repeat of a command that runs hears its output" ||
    fail "a repeat hears nothing"
is "  not its end" "$(grep -c late "$work/early")" 0
"$WB_BIN" sandbox exec once -- touch /tmp/late
wait $first
like "  nor does it disturb the first" "$(cat "$work/long")" '"data":"late'
idem no "a command that is not there" 422 POST /v1/sandboxes/once/exec \
    '{"argv":["nothing-here"]}'
idem no "  is not looked for again" 422 POST /v1/sandboxes/once/exec \
    '{"argv":["nothing-here"]}'
member code command-not-found
is "  and says so" "$(replayed)" yes
idem bg "a session with a key" 201 POST /v1/sandboxes/once/sessions \
    '{"argv":["sleep","2"]}'
bg=$(j sessionId)
idem bg "  the repeat" 201 POST /v1/sandboxes/once/sessions \
    '{"argv":["sleep","2"]}'
member sessionId "$bg"
# one that closes its half counts as gone, and hears that the command goes on,
# first or behind others
half() { /usr/bin/python3 -c '
import os, socket, sys
port, head, body = [a.encode() for a in sys.argv[1:4]]
if body:
    head += b"\r\nContent-Type: application/json\r\nContent-Length: %d" % len(body)
s = socket.create_connection(("127.0.0.1", int(port)), 20)
s.sendall(b"%s\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n\r\n%s"
    % (head, port, os.environb[b"WB_TOKEN"], body))
s.shutdown(socket.SHUT_WR)
sys.stdout.buffer.write(s.makefile("rb").read())' "$WB_PORT" "$@"; }
keyed=$(printf 'POST /v1/sandboxes/once/exec HTTP/1.1\r\nIdempotency-Key: half')
halves='{"argv":["sh","-c","echo x >>/tmp/half; until [ -e /tmp/go ]; do usleep 20000; done"]}'
stays='{"argv":["sh","-c","until [ -e /tmp/go ]; do usleep 20000; done"]}'
half "$keyed" "$halves" >"$work/half.1" & first=$!
half "$keyed" "$halves" >"$work/half.2" & again=$!
wait $first $again
is "half-closed requests with a key are answered" \
    "$(sed -n 's/^HTTP.1.1 \([0-9]*\) .*/\1/p' "$work/half.1" "$work/half.2" |
    tr '\n' ' ')" "499 499 "
# nothing in the answer says that it may be sent again
went() {	# name request-line [body]
	out=$(half "$2" "${3-}")
	like "$1: 499 client-gone" "$out" '"code":"client-gone"'
	like "  names the command, which goes on" "$out" \
	    '"sessionId":"[0-9A-Z]{26}"'
	is "  and invites no repeat" \
	    "$(printf '%s\n' "$out" | grep -ci -e '^retry-after' -e stopping)" 0
}
went "half-closed exec" 'POST /v1/sandboxes/once/exec HTTP/1.1' "$stays"
went "half-closed exec as a stream" \
    'POST /v1/sandboxes/once/exec?stream=1 HTTP/1.1' "$stays"
"$WB_BIN" sandbox run once --name silent -- sleep 1000 >/dev/null
out=$(half 'GET /v1/sandboxes/once/sessions/silent/output?follow=1 HTTP/1.1' '')
is "half-closed follow: no 503" \
    "$(printf '%s\n' "$out" | grep -ci -e '^HTTP/1.1 503' -e '^retry-after')" 0
is "  it ran once" "$("$WB_BIN" sandbox exec once -- cat /tmp/half)" x
"$WB_BIN" sandbox exec once -- touch /tmp/go
idem half "  and is there for who asks again" 200 POST /v1/sandboxes/once/exec \
    "$halves"
idem "$(printf %0256d 0)" "a key that is too long" 400 POST /v1/sandboxes \
    '{"network":"none"}'
member field Idempotency-Key
for n in "" "$(printf %064d 0)"; do
	want "a name of ${#n} characters" 400 POST /v1/sandboxes \
	    "{\"network\":\"none\",\"name\":\"$n\"}"
	member detail "Expected: 1 to 63 characters."
done
want "a number that is too large" 400 POST /v1/sandboxes \
    '{"network":"none","limits":{"pids":9223372036854775808}}'
member detail "Line 1, column 54: this number is too large: expected at most 9223372036854775807."
want "an empty key" 400 POST /v1/sandboxes '{"network":"none"}' \
    -H 'Idempotency-Key;'
for i in $(seq 1000); do
	printf 'url = "%s/v1/sandboxes"\nrequest = POST\ndata = {"name":"many","network":"none"}\nheader = "Idempotency-Key: many"\nheader = "Authorization: Bearer %s"\nheader = "Content-Type: application/json"\noutput = %s/many.%s\nwrite-out = "%%{http_code}\\n"\n%s\n' \
	    "$WB_URL" "$WB_TOKEN" "$work" "$i" "$([ "$i" = 1000 ] || echo next)"
done >"$work/many.conf"
curl -sS --parallel --parallel-max 250 -K "$work/many.conf" >"$work/many" \
    2>"$work/curl.err"
is "1,000 parallel creates with one key" "$(grep -c 201 "$work/many")" 1000
is "  make one sandbox" \
    "$(cat "$work"/many.*[0-9] | grep -o '"id":"[^"]*"' | sort -u | wc -l)" 1
rm -f "$work"/many.*
# its tree takes longer than the answer
"$WB_BIN" sandbox exec later -- \
    sh -c 'i=0; while [ $i -lt 20000 ]; do : >/root/$i; i=$((i + 1)); done'
want "removing" 200 DELETE "/v1/sandboxes/$later?graceSeconds=0"
idem refused "a repeat for a sandbox that was removed" 410 POST /v1/sandboxes \
    '{"name":"later","network":"none"}'
member sandboxId "$later"
for n in once many; do want "removing $n" 200 DELETE \
    "/v1/sandboxes/$n?graceSeconds=0"; done
idem run "a repeat of a command in one" 410 POST /v1/sandboxes/once/exec "$run"
member code gone

# ---- looking
none_ends() {	# a tree may be removed after the answer
	api GET '/v1/sandboxes?state=DELETING' && [ "$(count)" = 0 ]
}
for ref in demo "$id" "$(printf %.20s "$id")"; do
	want "get $ref" 200 GET "/v1/sandboxes/$ref"
	member id "$id"
done
want "a short prefix is none" 404 GET "/v1/sandboxes/$(printf %.11s "$id")"
want "nobody" 404 GET /v1/sandboxes/nobody
like "  is named" "$body" 'no sandbox \\"nobody\\"'
count() { printf '%s\n' "$body" | grep -o '"state":"' | wc -l | tr -d ' '; }
await none_ends
want "list" 200 GET /v1/sandboxes
is "  all three" "$(count)" 3
want "list by label" 200 GET '/v1/sandboxes?label=team=a&label=x'
is "  one" "$(count)" 1
want "list by another value" 200 GET '/v1/sandboxes?label=team=b'
is "  none" "$(count)" 0
want "list by name" 200 GET '/v1/sandboxes?name=demo'
is "  one" "$(count)" 1
want "list by state" 200 GET '/v1/sandboxes?state=QUARANTINED'
is "  none" "$(count)" 0
want "list by what is no state" 400 GET '/v1/sandboxes?state=ready'
member field state
want "list of what is deleted" 400 GET '/v1/sandboxes?state=DELETED'
member field state
for l in '' = =b team\&label=; do
	want "list by label '$l'" 400 GET "/v1/sandboxes?label=$l"
	member field label
done
want "list, first page" 200 GET '/v1/sandboxes?limit=2'
is "  two" "$(count)" 2
next=$(j nextCursor)
want "list, second page" 200 GET "/v1/sandboxes?limit=2&after=$next"
is "  one" "$(count)" 1
member nextCursor null
want "bad cursor" 400 GET '/v1/sandboxes?after=x'
want "proof" 200 GET /v1/sandboxes/demo/proof
member verdict verified
sha=$(sha256sum <"$work/body" | cut -d' ' -f1)
want "denials of a network that counts none" 200 GET /v1/sandboxes/demo/denials
member sandboxId "$id"
member totals null
want "more denials than there can be" 400 GET \
    '/v1/sandboxes/demo/denials?limit=257'
member field limit
want "denials of nobody" 404 GET /v1/sandboxes/nobody/denials
want "records" 200 GET /v1/events
is "  say which root file system it was given" \
    "$(grep "\"sandboxId\":\"$id\"" "$work/body" |
    grep -o '"to":"[A-Z]*","reason":null,"rootfs":"minimal"')" '"to":"BOOTSTRAPPING","reason":null,"rootfs":"minimal"'
like "  hold the hash of the proof as it is served" "$body" \
    "\"sha256\":\"$sha\""

# ---- exec
E=/v1/sandboxes/demo/exec
want "exec" 200 POST $E '{"argv":["sh","-c","echo out; echo err >&2; exit 3"]}'
member exitCode 3
member stdout 'out\n'
member stderr 'err\n'
member truncated false
member signal null
want "exec with input, place and environment" 200 POST $E \
    '{"argv":["sh","-c","cat; pwd; echo $FROM_BOX $BOTH $OWN"],"stdin":"in\n","cwd":"/tmp","env":{"OWN":"1","BOTH":"exec"}}'
member stdout 'in\n/tmp\nyes exec 1\n'
want "exec of bytes" 200 POST $E '{"argv":["printf","\\377\\000a"]}'
member stdoutEncoding base64
member stdout /wBh
want "exec that a signal ends" 200 POST $E '{"argv":["sh","-c","kill -9 $$"]}'
member signal 9
member exitCode null
want "exec over its time" 200 POST $E \
    '{"argv":["sleep","1000"],"timeoutSeconds":0.3}'
member reason timeout
want "exec of 3 MiB" 200 POST $E \
    '{"argv":["sh","-c","head -c 3145728 /dev/zero | tr \"\\0\" x"]}'
member truncated true
is "  1 MiB is collected" "$(j stdout | wc -c | tr -d ' ')" 1048577
{ printf '{"argv":["wc","-c"],"stdin":"'; head -c 500000 /dev/zero |
    tr '\0' y; printf '"}'; } >"$work/big"
want "exec with 500 kB of input" 200 POST $E "@$work/big"
member stdout '500000\n'
want "no such command" 422 POST $E '{"argv":["nonesuch"]}'
member code command-not-found
member field 'argv[0]'
want "not executable" 422 POST $E '{"argv":["/etc/passwd"]}'
member code command-not-executable
member field 'argv[0]'
want "no such directory" 422 POST $E '{"argv":["true"],"cwd":"/nonesuch"}'
member code bad-cwd
member field cwd
want "as a user" 200 POST $E \
    '{"argv":["sh","-c","id; echo $HOME $USER $LOGNAME; pwd"],"user":"agent","labels":{"for":"api"}}'
like "  of the box's passwd, in HOME" \
    "$(j stdout)" '^uid=1000\(agent\) gid=1000\(agent\).*\\n/home/agent agent agent\\n/home/agent\\n$'
want "the session" 200 GET "/v1/sandboxes/demo/sessions/$(j sessionId)"
member user agent
like "  has its labels" "$body" '"labels":\{"for":"api"\}'
want "as a number that has no entry, and a group's name" 200 POST $E \
    '{"argv":["sh","-c","id; echo $HOME $USER-"],"user":"4242:nogroup"}'
like "  the home is /" "$(j stdout)" \
    '^uid=4242 gid=65534\(nogroup\)[^,]*\\n/ -\\n$'
want "the box's environment is stronger than the user's" 200 POST $E \
    '{"argv":["sh","-c","echo $HOME"],"user":"agent","env":{"HOME":"/tmp"}}'
is "  as told" "$(j stdout)" '/tmp\n'
for u in nonesuch agent:nonesuch 65536 1000:65536 :1000 -1 agent: ; do
	want "user '$u'" 422 POST $E '{"argv":["true"],"user":"'"$u"'"}'
	member code user-unknown
	member field user
done
want "user with a blank" 400 POST $E '{"argv":["true"],"user":"a b"}'
want "groups of /etc/group, once" 200 POST $E \
    '{"argv":["sh","-c","cp -a /etc/group /tmp/g; echo more:x:77:x,agent >>/etc/group"]}'
want "  for who is in them" 200 POST $E '{"argv":["id","-G"],"user":"agent"}'
is "  as told" "$(j stdout)" '1000 77\n'
want "  not with a group of one's own" 200 POST $E \
    '{"argv":["id","-G"],"user":"agent:5"}'
is "  as told" "$(j stdout)" '5\n'
want "a passwd that would wait" 200 POST $E \
    '{"argv":["sh","-c","mv /etc/passwd /etc/p; mkfifo /etc/passwd"]}'
want "  is none" 422 POST $E '{"argv":["true"],"user":"agent"}'
want "a passwd without end" 200 POST $E \
    '{"argv":["sh","-c","rm /etc/passwd; ln -s /dev/zero /etc/passwd"]}'
want "  is none" 422 POST $E '{"argv":["true"],"user":"agent"}'
want "a passwd of one long line" 200 POST $E \
    '{"argv":["sh","-c","rm /etc/passwd; { head -c 9000000 /dev/zero | tr \\\\0 x; echo; cat /etc/p; } >/etc/passwd"]}'
want "  has nobody behind it" 422 POST $E '{"argv":["true"],"user":"agent"}'
want "as it was" 200 POST $E \
    '{"argv":["sh","-c","mv /etc/p /etc/passwd; mv /tmp/g /etc/group"]}'
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	want "limits of its own" 200 POST $E \
	    '{"argv":["sh","-c","for i in 1 2 3 4 5 6; do sleep 1 & done"],"limits":{"pids":4}}'
	like "  hold" "$(j stderr)" "fork"
	want "memory of its own" 200 POST $E \
	    '{"argv":["sh","-c","head -c 100000000 /dev/zero | tail"],"limits":{"memoryBytes":16777216}}'
	member reason oom
else
	want "limits of a session, on cgroup v1" 422 POST $E \
	    '{"argv":["true"],"limits":{"pids":4}}'
	member code limit-unsupported
	member field limits
fi
want "more than the box has" 422 POST $E \
    '{"argv":["true"],"limits":{"pids":4194304}}'
member code limit-above-ceiling
member field limits.pids
want "no command" 400 POST $E '{"argv":[]}'
want "an empty name" 400 POST $E '{"argv":[""]}'
want "a name that runs" 201 POST /v1/sandboxes/demo/sessions \
    '{"argv":["sleep","1000"],"name":"mine"}'
mine=$(j sessionId)
want "  is taken" 409 POST $E '{"argv":["true"],"name":"mine"}'
member field name
want "signal" 204 POST "/v1/sandboxes/demo/sessions/$mine/signal" \
    '{"signal":"TERM"}'
want "  ends it" 200 GET "/v1/sandboxes/demo/sessions/$mine?wait=10"
member signal 15
for n in 0 -1 65; do
	want "signal $n" 400 POST "/v1/sandboxes/demo/sessions/$mine/signal" \
	    "{\"signal\":$n}"
	like "  says the bounds" "$body" 'a number from 1 to 64'
done
want "a signal that is none" 400 POST \
    "/v1/sandboxes/demo/sessions/$mine/signal" '{"signal":"FOO"}'
want "a signal to what has ended" 409 POST \
    "/v1/sandboxes/demo/sessions/$mine/signal" '{"signal":15}'

want "exec as a stream" 200 POST "$E?stream=1" \
    '{"argv":["sh","-c","echo a; sleep 0.1; echo b >&2; exit 7"]}'
like "  begins with the session" "$(head -n 1 "$work/body")" \
    '^\{"start":\{"sessionId":"[0-9A-Z]{26}"\}\}$'
like "  chunks" "$(sed -n 2p "$work/body")" \
    '^\{"seq":1,"stream":"stdout","data":"a\\n","encoding":"utf-8"\}$'
like "  of both streams" "$(sed -n 3p "$work/body")" \
    '^\{"seq":2,"stream":"stderr","data":"b\\n",'
like "  ends with the result" "$(tail -n 1 "$work/body")" \
    '^\{"end":\{.*"exitCode":7,'
frames=application/vnd.workbox.output
split='{"argv":["sh","-c","printf \"a\\\\000\\\\377\"; until [ -e /tmp/split ]; do usleep 20000; done; echo b >&2; exit 7"]}'
hex() { od -An -v -tx1 "$work/body" | tr -d ' \n'; }
told='01000000000000030000000000000001'6100ff'02000000000000020000000000000002'620a
: >"$work/body"
(api POST "$E?stream=1" "$split" -N -H "Accept: text/html, $frames;v=1, */*" \
    -D "$work/head"; echo "$code" >"$work/code") &
first=$!
comes() { hex | grep -q 6100ff; }	# before what is written next
await comes && pass "a frame comes when there is output" ||
    fail "no frame" "$(hex)"
"$WB_BIN" sandbox exec demo -- touch /tmp/split
wait $first
is "exec as frames" "$(cat "$work/code")" 200
like "  says so" "$(cat "$work/head")" "^Content-Type: $frames"
like "  bytes as they are, both streams" "$(hex)" \
    "$told"'0{8}[0-9a-f]{8}0{16}7b22656e64223a'
like "  begins with the session" "$(hex)" \
    '^0{8}[0-9a-f]{8}0{16}7b227374617274223a'
sid=$(tr -cd '[:print:]' <"$work/body" |
    sed -n 's/.*{"start":{"sessionId":"\([0-9A-Z]*\)"}}.*/\1/p')
want "its output again, as frames" 200 GET \
    "/v1/sandboxes/demo/sessions/$sid/output?after=1" '' -H "Accept: $frames" \
    -H 'Accept: x/y'
like "  from the number" "$(hex)" '^02000000000000020000000000000002620a0{8}'
for a in '*/*' "$frames;q=0" "$frames;a=b; q=0.00" "x$frames" "${frames}s" \
    application/x-ndjson; do
	want "Accept: $a" 200 POST "$E?stream=1" '{"argv":["true"]}' \
	    -H "Accept: $a"
	like "  is lines" "$(head -n 1 "$work/body")" '^\{"start"'
done
want "not as a stream, it is no frame" 200 POST "$E" '{"argv":["true"]}' \
    -H "Accept: $frames"
like "  but JSON" "$body" '"exitCode":0'
want "a stream that cannot begin is a problem" 422 POST "$E?stream=1" \
    '{"argv":["nonesuch"]}'

# ---- sessions
S=/v1/sandboxes/demo/sessions
want "run" 201 POST $S \
    '{"argv":["sh","-c","while read l; do echo got $l; done; echo bye"],"stdinOpen":true,"name":"reader"}'
sid=$(j sessionId)
member state running
curl -sSN --max-time 30 -H "Authorization: Bearer $WB_TOKEN" \
    "$WB_URL$S/$sid/output?follow=1" >"$work/follow" 2>&1 &
follow=$!
raw() {
	api POST "$S/$sid/stdin?$1" '' \
	    -H 'Content-Type: application/octet-stream' --data-binary "$2"
}
raw offset=0 'one
'
is "stdin" "$code $body" '200 {"offset":4}'
raw offset=0 'one
'
is "the same once more" "$code $(j code) $(j expected)" "409 bad-offset 4"
raw offset=4 'two
'
is "what comes next" "$code $body" '200 {"offset":8}'
want "stdin without a number" 400 POST "$S/$sid/stdin"
want "a wait that is over first" 200 GET "$S/$sid?wait=1"
member state running
raw 'offset=8&eof=1' ''
is "the end of input" "$code" 200
want "wait" 200 GET "$S/$sid?wait=20"
member state ended
member exitCode 0
wait $follow
is "the follower has it all" "$(grep -o '"data":"[^"]*"' "$work/follow" |
    tr -d '\n')" '"data":"got one\n""data":"got two\n""data":"bye\n"'
like "  and the end" "$(tail -n 1 "$work/follow")" '^\{"end":'
want "output after a number" 200 GET "$S/$sid/output?after=2"
like "  begins with the next" "$(head -n 1 "$work/body")" '^\{"seq":3,'
want "output after all" 200 GET "$S/$sid/output?after=99"
want "stdin of what has ended" 409 POST "$S/$sid/stdin?offset=8"
member code ended
want "no such session" 404 GET "$S/01K8ZZZZZZZZZZZZZZZZZZZZZZ"
like "  is named" "$body" 'no session \\"01K8ZZZZZZZZZZZZZZZZZZZZZZ\\"'
want "no session of a name" 404 GET "$S/nobody/output"
like "  is named" "$body" 'no session \\"nobody\\"'
want "no sandbox of an id" 404 GET /v1/sandboxes/01K8ZZZZZZZZZZZZZZZZZZZZZZ
like "  is named" "$body" 'no sandbox \\"01K8ZZZZZZZZZZZZZZZZZZZZZZ\\"'
want "sessions" 200 GET "$S?limit=2"
is "  a page of two" \
    "$(printf '%s\n' "$body" | grep -o '"sandboxId"' | wc -l | tr -d ' ')" 2
like "  goes on" "$(j nextCursor)" '^[0-9A-Z]{26}$'

# what is left behind does not hold the session
want "a child that stays" 200 POST $E \
    '{"argv":["sh","-c","sleep 1000 & echo ok"]}'
member leftBehind 1
member stdout 'ok\n'

# a client that goes away loses only the connection
printf '{"argv":["sh","-c","sleep 1; echo survived > /tmp/mark"],"name":"orphan"}' >"$work/req"
timeout 0.3 curl -sS -o /dev/null -X POST -H "Authorization: Bearer $WB_TOKEN" \
    -H 'Content-Type: application/json' --data-binary "@$work/req" "$WB_URL$E" \
    2>/dev/null
survived() {
	api POST $E '{"argv":["cat","/tmp/mark"]}'
	[ "$(j stdout)" = 'survived\n' ]
}
await survived && pass "the command of a client that went on goes on" ||
    fail "it did not go on" "$body"

# one that never reads holds nothing but its queue
curl -sSN --max-time 60 --limit-rate 1 -H "Authorization: Bearer $WB_TOKEN" -H \
    'Content-Type: application/json' -X POST \
    -d '{"argv":["yes"],"name":"yes"}' "$WB_URL$E?stream=1" >/dev/null 2>&1 &
slow=$!
rss() { sed -n 's/^VmRSS: *\([0-9]*\) kB/\1/p' "/proc/$(box_pid apid)/status"; }
before=$(rss)
n=0; while [ $n -lt 20 ]; do api POST $E '{"argv":["true"]}'; n=$((n + 1)); done
is "commands beside a client that does not read" "$code" 200
after=$(rss)
[ $((after - before)) -lt 4096 ] && pass "apid holds little for it" ||
    fail "apid has grown" "$before KiB to $after KiB"
kill $slow 2>/dev/null; wait $slow 2>/dev/null

# ---- records
curl -sSN --max-time 20 -H "Authorization: Bearer $WB_TOKEN" \
    "$WB_URL/v1/events?follow=1" >"$work/events" 2>/dev/null &
tail=$!
api GET /v1/events
last=$(tail -n 1 "$work/body" | grep -o '^{"seq":[0-9]*' | grep -o '[0-9]*')
want "records after a number" 200 GET "/v1/events?after=$((last - 2))"
is "  two" "$(grep -c . "$work/body")" 2
want "three records" 200 GET '/v1/events?limit=3'
is "  three" "$(grep -c . "$work/body")" 3

# ---- restart: boxes, their names, their output
stop_serve >/dev/null
start_serve "$WB_BIN" --config "$work/workbox.conf"
want "after a restart" 200 GET "/v1/sandboxes/$id"
member state READY
member health HEALTHY
want "output from before it" 200 GET "$S/$sid/output"
is "  is whole" "$(grep -c '"seq"' "$work/body")" 3
want "exec after it" 200 POST $E '{"argv":["echo","again"]}'
member stdout 'again\n'

# ---- removing
want "a session that will not end" 201 POST $S \
    '{"argv":["sh","-c","trap \"\" TERM; while :; do sleep 1; done"]}'
want "remove in a second" 200 DELETE '/v1/sandboxes/demo?graceSeconds=1'
like "  DELETING or DELETED" "$(j state)" '^DELET(ING|ED)$'
want "its name is free" 404 GET /v1/sandboxes/demo
deleted() { api GET "/v1/sandboxes/$id"; [ "$(j state)" = DELETED ]; }
await deleted && pass "its id tells DELETED" || fail "never DELETED" "$body"
want "once more is no error" 200 DELETE "/v1/sandboxes/$id"
want "no command any more" 404 POST $E '{"argv":["true"]}'
want "remove at once" 200 DELETE "/v1/sandboxes/$other?graceSeconds=0"
want "the last" 200 DELETE "/v1/sandboxes/soon"
emptied() { api GET /v1/sandboxes; [ "$(count)" = 0 ]; }
await emptied && pass "the list is empty" ||
    fail "the list is not empty" "$body"
kill $tail 2>/dev/null; wait $tail 2>/dev/null
like "the follower of records saw it" "$(cat "$work/events")" \
    '"type":"session.started"'
is "nothing of them is on disk" \
    "$(ls "$WB_STATE/sandboxes" | wc -l | tr -d " ")" 0
box_done
