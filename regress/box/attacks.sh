#!/bin/sh
# attacks.sh: a box whose root is hostile: the kernel's surface, /proc, pid 1,
# the network, neighbours, the record.  What runs in the box is attack/.  Each
# check says the number of the attack; what the host does without our
# protection, it says as control.
. "$(dirname "$0")/lib.sh"
. "$top/regress/box/attack/lib.sh"
attack_init
box_serve

ok "create a" wb create --name a --network none --memory 536870912 --pids 300 \
    --cpus 1
ok "create b" wb create --name b --network none --memory 536870912 --pids 300 \
    --cpus 1
put a; put b

# ---- the kernel's surface
"$attack" control >"$work/control" 2>/dev/null
n=$(wc -l <"$work/control")
if [ "$n" -ge 30 ]; then
	pass "control: $n of the calls below are done on the host"
else
	skip "control: only $n calls work on this host"
fi
mounts=$(run a -- cat /proc/self/mountinfo)
attack a calls
attack a listed
attack a work
is "B04 the box's mounts are as they were" \
    "$(run a -- cat /proc/self/mountinfo)" "$mounts"
is "B16 its name, too" "$(run a -- hostname)" a
attack a proc
attack a fds
run a -- wb run -- /root/attack fds >"$work/wbfds" 2>&1
like "B25 nor has a session of wb's more" "$(cat "$work/wbfds")" \
    '^ok - B25 descriptors: 0 1 2 $'
attack a own
attack a pid1
is "B13 B52 the box is still there" "$(state a)" READY
alive B52 a
s=$(bg a -- sleep 60)
run a -- /root/attack kill >"$work/killed" 2>&1
like "B13 everybody is killed but pid 1" "$(ended a "$s")" '"signal": *9'
alive B13 a

# ---- secrets
hex() { od -An -v -tx1 | tr -d ' \n'; echo; }
{
	printf %s "$WB_TOKEN" | hex
	for f in "$WB_STATE"/sandboxes/*/host-token; do hex <"$f"; hex <"$f" |
	    tr -d '\n' | hex; done
	printf %s "$WB_STATE" | hex
} >"$work/secrets"
printf %s "$WB_TOKEN" | wb exec a -- sh -c 'cat >/root/planted'
wb exec a -- /root/attack find / <"$work/secrets" | grep -q '^not ok' &&
    pass "control: B12 a key that was planted is found" ||
    fail "B12 the search finds nothing"
run a -- rm /root/planted
checks B12 wb exec a -- /root/attack find / <"$work/secrets"
attack a find /proc
is "B22 only processes of the box are in /proc" \
    "$(run a -- sh -c \
    'cat /proc/[0-9]*/status 2>/dev/null | sed -n "s/^CapBnd:.//p" | sort -u')" 00000000800000fb

# ---- out by a directory
p=$(pid1_of a)
checks B50 "$attack" dotdot "$p"

# ---- the network
attack a net "$port"
name=workbox-attack-$$
/usr/bin/python3 - "$name" "$work/listening" 2>/dev/null <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind('\0' + sys.argv[1])
s.listen(5)
open(sys.argv[2], 'w').close()
while True:
    s.accept()
END
listener=$!
await test -e "$work/listening"
"$attack" abstract "$name" | grep -q '^not ok - ' &&
    pass "B38 control: the host reaches it" ||
    skip "B38 control: nobody listens"
attack a abstract "$name"
kill "$listener"
"$attack" path "$WB_STATE/api.sock" | grep -q '^not ok - ' &&
    pass "B38 control: the host reaches the server's socket" ||
    fail "B38 nobody listens"
attack a path "$WB_STATE/api.sock"
attack a pass /run/workbox/runner.sock
alive B38 a
slab() { awk '$1 == "SUnreclaim:" { print $2 }' /proc/meminfo; }
was=$(slab)
attack a connect 30000
grew=$(($(slab) - was))
[ $grew -lt 32768 ] &&
    pass "N14 30,000 flows: $grew KiB more of the kernel's memory" ||
    fail "N14 30,000 flows leave $grew KiB"

# ---- neighbours
run b -- /root/attack watch 2 >"$work/watch.out" 2>&1 &
watcher=$!
await grep -q watching "$work/watch.out"
run a -- sh -c \
    'wb status; cat /etc/passwd /bin/busybox; echo >/dev/null; head -c 1 /dev/urandom' >/dev/null 2>&1
wait "$watcher"
out=$(cat "$work/watch.out")
like "B51 a box sees nothing of what its neighbour opens" "$out" '^ok - B51'
bg a --name take -- /root/attack take /tmp/taken >/dev/null
await run a -- test -e /tmp/taken
run a -- /root/attack give | grep -q '^not ok - ' &&
    pass "B51 control: the box has used up its own" ||
    fail "B51 nothing was used up"
attack b give
checks "B51 on the host" "$attack" give
alive B51 a
run a -- killall attack

# ---- crashes
like "B54 a crash leaves no handler and no core" \
    "$(run a -- sh -c \
    'ulimit -c unlimited; ulimit -c 0; grep core /proc/self/limits; cd /root; sh -c "kill -SEGV \$\$"; ls' 2>&1)" 'core file size +1 +1'

# ---- what the host keeps of it for ever
was=$("$WB_BIN" events export | wc -c)
flood() { run a --timeout "$1" -- sh -c 'x=$(head -c 30000 /dev/zero | tr "\0" x)
    for j in 1 2 3; do (while :; do wb run -- true "$x"; done) & done; wait' >/dev/null 2>&1; }
flood 4
grew=$(($("$WB_BIN" events export | wc -c) - was))
[ $grew -lt 1000000 ] &&
    pass "B46 a flood of wb's sessions leaves $grew bytes of record" ||
    fail "B46 a flood of wb's sessions leaves $grew bytes of record"
was=$("$WB_BIN" events export | wc -c) t0=$(date +%s)
flood 12
t=$(($(date +%s) - t0))
grew=$(($("$WB_BIN" events export | wc -c) - was))
[ $grew -lt $((65536 + t * 6144)) ] &&
    pass "B46 and one that goes on for $t s $grew more" ||
    fail "B46 and one that goes on for $t s $grew more"
like "B46 what is left out is told" \
    "$(cat "$WB_STATE"/sandboxes/*/launch.log)" "not on the record"
is "B46 wb works again" "$(run a -- wb run -- echo yes)" yes

# ---- the record
esc=$(printf 'x\033]0;t\007\n{"seq":1,"prev":"0"}\r')
run b -- sh -c : "$esc" >/dev/null 2>&1
"$WB_BIN" events export >"$work/events" 2>/dev/null
is "L01 text of an argument makes no line of its own" \
    "$(grep -c '^{"seq":1,' "$work/events")" 1
tr -d '\n' <"$work/events" | LC_ALL=C grep -q '[[:cntrl:]]' &&
    fail "a control character reached the record" ||
    pass "L01 no control character reaches the record"
LC_ALL=C tr -d '\n\t' <"$work/serve.log" | LC_ALL=C grep -q '[[:cntrl:]]' &&
    fail "a control character reached the log" || pass "nor the log"
grep -q "$WB_TOKEN" "$work/events" "$work/serve.log" &&
    fail "the key is in the record or the log" ||
    pass "B12 the key is in neither"

# ---- ids that are guessed
answer() {
	curl -s -o "$work/answer" -w '%{http_code} ' \
	    -H "Authorization: Bearer $WB_TOKEN" "$WB_URL/v1/$1"
	sed 's/"message": *"[^"]*"//; s/[0-9A-Z]\{26\}/ID/g' "$work/answer" |
	    grep -o '"code": *"[^"]*"'
}
none=$(answer sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV)
like "A42 a sandbox that never was" "$none" '^404 "code": *"not-found"'
id=$(wb inspect b | field id)
s=$(bg b -- true)
is "A42 a session under another sandbox" "$(answer "sandboxes/a/sessions/$s")" \
    "$none"
is "A42 and under none" \
    "$(answer "sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV/sessions/$s")" "$none"
like "A42 control: under its own" \
    "$(curl -s -H "Authorization: Bearer $WB_TOKEN" \
    "$WB_URL/v1/sandboxes/b/sessions/$s")" "$s"
is "A42 one letter beside" "$(answer "sandboxes/${id%?}$(printf %s \
    "${id#"${id%?}"}" | tr 0-9A-Z 1-9A-Z0)")" "$none"

alive "at the end" b
attack_done
