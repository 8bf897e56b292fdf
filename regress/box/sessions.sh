#!/bin/sh
# sessions.sh: sessions by number and name, from the host and in the box: who
# waits for whom, what is kept, what is told, and how to come back.
. "$(dirname "$0")/lib.sh"
PY=/usr/bin/python3
[ -x $PY ] || { echo "skip: $PY is not there"; exit 77; }
box_serve
sid() { sed -n 's/.*"sessionId": *"\([0-9A-Z]*\)".*/\1/p'; }
# row BOX SESSION COLUMN: of ps --all
row() {
	wb ps "$1" --all | awk -v s="$2" -v c="$3" \
	    '$1 == s || $7 == s { v = $c } END { print v }'
}
ms() { echo $(($(date +%s%N) / 1000000)); }
# slow BYTES-A-SECOND: what comes, no faster than that; its digest
slow() { $PY -c '
import hashlib, os, sys, time
rate, done, h, t0 = int(sys.argv[1]), 0, hashlib.sha256(), time.monotonic()
while True:
    b = os.read(0, 65536)
    if not b:
        break
    h.update(b)
    done += len(b)
    time.sleep(max(0, t0 + done / rate - time.monotonic()))  # the rate itself
print(h.hexdigest(), done)
' "$1"; }
dropped() {
	sed -n 's/.*: \([0-9]*\) bytes of output were dropped.*/\1/p' "$1" |
	    awk '{ n += $1 } END { print n + 0 }'
}

ok "create a small one" wb create --name a --network none --memory 32M --cpus 1
ok "and its neighbour" wb create --name b --network none --memory 256M

# ---- by name, by the beginning of its id, by id
one=$(wb run b --name job -- sh -c 'echo one; exit 1' | sid)
no "wait by name" 1 wb wait b job
two=$(wb run b --name job -- sh -c 'echo two; exit 2' | sid)
no "of two that have ended the newest is meant" 2 wb wait b job
three=$(wb run b --name job -- sh -c 'echo three; exec sleep 1000' | sid)
four=$(wb run b --name other -- sh -c 'echo four; exit 4' | sid)
no "another" 4 wb wait b other
is "the one that runs comes first" \
    "$(wb ps b | awk '$7 == "job" { print $1 }')" "$three"
said() { [ "$(wb logs b "$1")" = "$2" ]; }
await said job three && pass "logs by name" ||
    fail "logs by name" "$(wb logs b job)"
is "logs by id" "$(wb logs b "$one")" one
is "logs by the beginning of an id" \
    "$(wb logs b "$(echo "$two" | cut -c1-25)")" two
no "logs by too little of it" 125 wb logs b "$(echo "$two" | cut -c1-11)"
no "exec under a name that runs" 125 wb exec b --name job -- true
is "exec under a name" "$(wb exec b --name job2 -- echo x)" x
is "which it then has" "$(row b job2 2)" ended

# ---- ps, kill
no "kill by name" 0 wb kill b job
no "its code" 143 wb wait b job
no "kill of what has ended" 125 wb kill b job
like "is told" "$out" 'no process is left \(ended\)'
is "ps: none runs" "$(wb ps b | wc -l)" 1
is "ps --all: state, code" "$(row b "$two" 2) $(row b "$two" 3)" 'ended 2'
is "a signal is a code, too" "$(row b "$three" 3)" 143
is "ps as JSON" "$(wb ps b --all --format json | grep -c '"sessionId"')" \
    "$(($(wb ps b --all | wc -l) - 1))"
wb run b --name hard -- sh \
    -c 'trap "" TERM; echo up; while :; do sleep 0.05; done' >/dev/null
await said hard up
ok "kill with TERM is passed on" wb kill b hard
is "and may be ignored" "$(row b hard 2)" running
ok "kill by number" wb kill b hard --signal 9
no "is not" 137 wb wait b hard
wb run b --name sub -- sh \
    -c 'trap "exit 7" USR1; echo up; while :; do sleep 0.05; done' >/dev/null
await said sub up
ok "kill by a signal's name" wb kill b sub -s SIGUSR1
no "arrives as that" 7 wb wait b sub
no "a signal that is none" 125 wb kill b sub -s NOPE

# ---- what is left behind
t0=$(ms)
is "a child in the background holds nothing up" \
    "$(wb exec b --name left -- sh -c 'sleep 1000 & echo ok')" ok
[ $(($(ms) - t0)) -lt 10000 ] && pass "it returned after $(($(ms) - t0)) ms" ||
    fail "it took $(($(ms) - t0)) ms"
is "it lives, and is listed" \
    "$(wb ps b | awk '$7 == "left" { print $2, $3, $6 }')" 'ended 0 1'
ok "kill reaches it" wb kill b left
none() { [ "$(row b left 6)" = 0 ]; }
await none && pass "and it is gone" || fail "it stays" "$(wb ps b --all)"
is "so is its line" "$(wb ps b | grep -c left)" 0
wb exec b --name left2 -- sh -c \
    '(trap "" TERM; echo deaf; while :; do sleep 0.1; done) & sleep 1000 & while :; do sleep 0.05; [ $(pidof sleep | wc -w) -lt 2 ] || break; done' >/dev/null
like "several are left" "$(row b left2 6)" '^[23]$'
ok "KILL ends them all" wb kill b left2 -s KILL
none2() { [ "$(row b left2 6)" = 0 ]; }
await none2 && pass "deaf ones too" || fail "left2 stays" "$(wb ps b --all)"
wb run b --name tree -- sh \
    -c '(trap "" TERM; exec setsid sleep 1000) & echo up; wait' >/dev/null
await said tree up
ok "KILL while the command runs" wb kill b tree -s KILL
no "ends it" 137 wb wait b tree
none3() { [ "$(row b tree 6)" = 0 ]; }
await none3 && pass "and what has left its process group" ||
    fail "tree stays" "$(wb ps b --all)"

# ---- why it ended
no "memory" 137 wb exec a --name big -- tail /dev/zero
like "is told" "$out" ': oom$'
is "and listed" "$(row a big 2)" oom
wb exec b --name late --timeout 0.3 -- sleep 1000 >"$work/out" 2>&1
is "time" "$?" 143
like "is told apart from it" "$(cat "$work/out")" ': timeout$'
is "and listed" "$(row b late 2)" timeout

# ---- wait for a while
wb run b --name long -- sleep 1000 >/dev/null
no "wait --timeout" 124 wb wait b long --timeout 1
is "says so" "$out" "workbox sandbox wait: b long: running after 1 s"
no "wait --timeout 0 only looks" 124 wb wait b long --timeout 0
wb kill b long -s INT
no "the end in time" 130 wb wait b long --timeout 30

# ---- run --follow
wb run b -f -- sh -c 'seq 3; echo err >&2; exit 9' >"$work/out" 2>"$work/err"
is "run --follow: its code" "$?" 9
is "its output" "$(tr '\n' ' ' <"$work/out")" '1 2 3 '
like "its error output, behind its id" "$(tr '\n' ' ' <"$work/err")" \
    '^workbox sandbox run: session [0-9A-Z]{26} err $'
"$WB_BIN" sandbox run b --name stay --follow -- sh -c \
    'echo up; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo more; exit 3' \
    >"$work/out" 2>"$work/err" </dev/null &
p=$!
await grep -q up "$work/out"
kill -TERM $p
wait $p
is "a signal ends the follower" "$?" 143
like "it tells how to come back" "$(tail -n 1 "$work/err")" \
    "left running: session [0-9A-Z]{26} of b; workbox sandbox logs --follow --after 1 b [0-9A-Z]{26} goes on with it\$"
is "the command goes on" "$(row b stay 2)" running
wb exec b -- touch /tmp/go
is "and so it is" "$(eval "\"\$WB_BIN\" $(sed \
    -n 's/.*; workbox \(.*\) goes on.*/\1/p' "$work/err")")" more
no "it was never touched" 3 wb wait b stay

# ---- numbers: what is dropped is told, what is kept is whole
total=20000000
wb run a --name much -- sh -c "head -c $total /dev/zero | tr '\\0' x" >/dev/null
ok "more output than is kept" wb wait a much
wb logs a much >"$work/out" 2>"$work/err"
is "what was dropped and what is kept are all of it" \
    "$(($(wc -c <"$work/out") + $(dropped "$work/err")))" $total
like "in the numbers, too" "$(row a much 5)" '^[1-9][0-9]+-[1-9][0-9]+$'
gone=$(dropped "$work/err")
is "and the session says how much" "$(wb ps a --all --format json |
    sed -n 's/.*"droppedBytes": \([1-9][0-9]*\).*/\1/p')" "$gone"
is "looked at by itself, too" \
    "$(curl -s -H "Authorization: Bearer $WB_TOKEN" \
    "$WB_URL/v1/sandboxes/a/sessions/much" | sed -n 's/.*"droppedBytes":\([0-9]*\).*/\1/p')" "$gone"
last=$(row a much 5 | sed 's/.*-//')
is "the last chunk by its number" "$(wb logs a much --after $((last - 1)) 2>&1 |
    cmp - "$work/out" 2>&1 | grep -c EOF)" 1
is "behind the last: nothing" "$(wb logs a much --after "$last" 2>&1)" ''
wb exec a -- sh -c 'wb logs much' >"$work/out2" 2>"$work/err2"
is "in the box the same" \
    "$(($(wc -c <"$work/out2") + $(dropped "$work/err2")))" $total

# ---- a reader is waited for: more than a small sandbox keeps, slowly read
mib=8
[ "${WB_LANE-fast}" != long ] || mib=256
head -c $((mib * 1048576)) /dev/urandom >"$work/random"
want=$(sha256sum <"$work/random" | cut -d ' ' -f 1)
ok "$mib MiB go in" sh \
    -c "\"$WB_BIN\" sandbox exec a -- sh -c 'cat >/random' <'$work/random'"
t0=$(ms)
got=$(wb exec a --name slow -- cat /random 2>"$work/err" | slow 1048576)
is "and come out to a reader of 1 MiB/s, whole" "$got" \
    "$want $((mib * 1048576))"
is "nothing is told of" "$(cat "$work/err")" ''
[ $(($(ms) - t0)) -ge $(((mib - 1) * 1000)) ] &&
    pass "which took $(($(ms) - t0)) ms" ||
    fail "the reader was too fast: $(($(ms) - t0)) ms"
wb exec a -- rm /random
# who never reads holds its own command only
mkfifo "$work/fifo"
wb exec b --name held -- sh -c \
    'head -c 30000000 /dev/zero; echo done >/tmp/held' 2>/dev/null |
    { read -r _ <"$work/fifo"; wc -c >"$work/count"; } &
reader=$!
full() { [ "$(row b held 5)" != - ]; }
await full
is "a command whose reader does not read waits" "$(wb exec b -- sh \
    -c 'cat /tmp/held 2>/dev/null; pidof head >/dev/null && echo waits')" waits
echo go >"$work/fifo"
wait $reader
is "and goes on when it reads" "$(cat "$work/count")" 30000000
wb exec b -- tar -c / 2>"$work/err" | tar -t >"$work/list" 2>"$work/err2"
is "tar of a whole sandbox through exec" \
    "$? $(grep -c '^etc/passwd$' "$work/list") $(cat "$work/err2")" '0 1 '
is "the other way" \
    "$(tar -C "$top/regress/box" -c lib.sh sessions.sh |
    wb exec b --cwd /tmp -- sh -c 'tar -x; cat lib.sh sessions.sh' | sha256sum)" "$(cat "$top/regress/box/lib.sh" "$top/regress/box/sessions.sh" | sha256sum)"

# ---- who comes back before its old connection is seen to have ended is waited
# for in its place: it does not read for longer than a reader may be unheard of
# by the server's own port: what its kernel and the client's take is all there is
heir() {
	PYTHONDONTWRITEBYTECODE=1 timeout 100 /usr/bin/python3 \
	    "$top/regress/box/heir.py" "$1" "http://127.0.0.1:$port" 2>&1
}
is "a reader that comes back early misses nothing" "$(heir early)" \
    "30000000 of 30000000, 0 gaps"
# who is beside one that stands still, and has read all that there is, goes on
# when that one goes
is "a reader beside one that stands still goes on without it" \
    "$(heir beside)" "stands still, 30000000 of 30000000, 0 gaps"
# also when it came back twice since, further than that one has ever been
is "  and misses nothing when it came back meanwhile" "$(heir ahead)" \
    "stands still, 30000000 of 30000000, 0 gaps"
# nobody is waited for who has missed some of it already
is "a reader beside one that has missed much goes on when the holder goes" \
    "$(heir missed)" "30000000 of 30000000, 0 gaps"

# ---- many that do not read, and one who does not stop: the server holds little
pss() { awk '/^Pss:/ { print $2 }' "/proc/$(box_pid apid)/smaps_rollup"; }
for i in 1 2 3 4; do wb run a --name "yes$i" -- yes >/dev/null; done
idle=16
before=$(pss)
$PY - "$port" $idle "$work/connected" <<'END' &
import os, socket, sys, signal
socks = []
for i in range(int(sys.argv[2])):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(('127.0.0.1', int(sys.argv[1])))
    s.sendall(b'GET /v1/sandboxes/a/sessions/yes%d/output?follow=1 HTTP/1.1\r\n'
              b'Host: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n' %
              (i % 4 + 1, os.environ['WB_TOKEN'].encode()))
    s.recv(1)
    socks.append(s)
open(sys.argv[3], 'w').close()
signal.pause()
END
hold=$!
await test -e "$work/connected" &&
    pass "$idle clients read one byte, and no more" ||
    fail "they do not connect"
n=0 most=0 bad=0 rounds=10
[ "${WB_LANE-fast}" != long ] || rounds=60
while [ $n -lt $rounds ]; do
	[ "$(wb exec b -- echo fine)" = fine ] || bad=$((bad + 1))
	now=$(pss)
	[ "$now" -le $most ] || most=$now
	n=$((n + 1))
done
is "$rounds commands in the neighbour meanwhile" "$bad" 0
grew=$((most - before))
[ $grew -lt 16384 ] && pass "the server's memory grew by $grew KiB" ||
    fail "the server's memory grew by $grew KiB"
# some of it is not theirs: what the commands beside them need for a while
[ $grew -lt $((idle * 512 + 2048)) ] && pass "less than 512 KiB for each" ||
    fail "$((grew / idle)) KiB for each of $idle"
is "the writer was not held up by them" "$(row a yes1 2)" running
kill $hold
wait $hold 2>/dev/null
for i in 1 2 3 4; do wb kill a "yes$i"; done

# ---- in the box
in_box() { wb exec b -- sh -c "$1"; }
is "wb run --detach prints the id" "$(in_box 'id=$(wb run --detach --name d1 -- sh -c "cat; echo in; exit 5"); wb wait d1; echo $?; wb logs $id; wb wait $(echo $id | cut -c1-25); echo $?')" '5
in
5'
is "which the host knows" "$(row b d1 3)" 5
is "wb of a name that was used again" \
    "$(in_box 'wb run --detach --name d2 true >/dev/null; wb wait d2; wb run --detach --name d2 -- sh -c "echo second; exec sleep 1000" >/dev/null; until [ "$(wb logs d2)" = second ]; do sleep 0.05; done; wb kill d2; wb wait d2; echo $?')" 143
is "wb ps" "$(in_box 'wb run --detach --name d3 sleep 1000 >/dev/null; wb ps' |
    awk '$7 == "d3" { print $2, $3, $6 } $7 == "d1" { print $2, $3, $5, $6 }' | sort | tr '\n' ' ')" 'ended 5 1-1 0 running - 0 '
is "wb kill by number, wb wait" \
    "$(in_box 'wb kill --signal 9 d3; wb wait d3; echo $?')" 137
is "wb logs --follow to the end" \
    "$(in_box 'wb run --detach --name d4 -- sh -c "for i in 1 2 3; do echo \$i; sleep 0.1; done; echo e >&2" >/dev/null; wb logs -f d4 2>&1' | tr '\n' ' ')" '1 2 3 e '
is "wb logs --after" "$(in_box 'wb logs --after 3 d4 2>&1')" e
is "what wb left behind" \
    "$(in_box 'wb run --name d5 -- sh -c "sleep 1000 >/dev/null 2>&1 & echo ok"; wb ps | grep "d5$"' | awk '{ print $1 == "ok" ? "" : $2 " " $6 }' | tr -d '\n')" 'ended 1'
ok "ends by wb kill" in_box \
    'wb kill d5 && until wb ps | grep -q "ended .* 0  d5$"; do sleep 0.05; done'
for c in 'wait none' 'logs none' 'kill none' 'logs --after x d1' \
    'kill -s NOPE d1' 'run --name A true' 'run --detach' 'ps x' 'wait' \
    'wait d1 d2' 'logs --what d1' 'run --detach=1 true' 'kill d1' 'wait Z' \
    'kill --signal'; do
	no "wb $c" 125 in_box "wb $c"
	is "is one line" "$(printf '%s\n' "$out" | wc -l)" 1
done
no "wb run --detach of a command that is not there" 127 in_box \
    'wb run --detach nosuchcommand'
as_agent() { wb exec b --cwd / -- su -s /bin/sh agent -c "$1"; }
is "another user has sessions of its own" \
    "$(as_agent 'wb run --detach --name mine -- sleep 1000 >/dev/null; wb ps' |
    awk 'NR > 1 { print $7 }')" mine
for c in 'logs d1' 'wait d1' 'kill d4' "logs $one"; do
	no "and no other's: wb $c" 125 as_agent "wb $c"
done
is "root has that one, too" "$(in_box 'wb kill mine; wb wait mine; echo $?')" \
    143

# ---- the server is away for a while: no byte is lost, and it is told once
tick='i=0; while [ $i -lt 250 ]; do echo $i; i=$((i + 1)); sleep 0.02; done; exit 6'
wb run b --name ticks -- sh -c "$tick" >/dev/null
wb logs b ticks --follow >"$work/l.out" 2>"$work/l.err" </dev/null &
l=$!
wb wait b ticks >"$work/w.out" 2>"$work/w.err" </dev/null &
w=$!
wb exec b -- sh -c "$tick" >"$work/x.out" 2>"$work/x.err" </dev/null &
x=$!
wb run b --follow -- sh -c "$tick" >"$work/f.out" 2>"$work/f.err" </dev/null &
f=$!
"$WB_BIN" sandbox exec b -- sh -c \
    'trap "echo got; exit 3" TERM; echo on; while :; do sleep 0.05; done' \
    >"$work/s.out" 2>"$work/s.err" </dev/null &
s=$!
# wait prints nothing before the end: that it is there shows in its connection
connections() {
	awk -v p=":$(printf %04X "$port")\$" \
	    '$3 ~ p && $4 == "01" { n++ } END { print n + 0 }' /proc/net/tcp
}
flowing() {
	[ -s "$work/l.out" ] && [ -s "$work/x.out" ] && [ -s "$work/f.out" ] &&
	    [ -s "$work/s.out" ] && [ "$(connections)" -ge 5 ]
}
await flowing && pass "five are connected" ||
    fail "not all are connected: $(connections)"
stop_serve
told() {
	grep -q 'is away, trying again' "$work/l.err" &&
	    grep -q 'is away' "$work/x.err" &&
	    grep -q 'is away' "$work/f.err" && grep -q 'is away' "$work/w.err"
}
await told && pass "a server that is away is told of" ||
    fail "nothing is told" "$(cat "$work"/[lxfw].err)"
kill -TERM $s
start_serve "$WB_BIN" --config "$work/workbox.conf"
wait $s; is "a signal that nobody took comes when the server is back" \
    "$? $(tail -n 1 "$work/s.out")" '3 got'
wait $l; is "logs --follow ends well" "$?" 0
wait $w; is "wait has the code" "$?" 6
wait $x; is "so has exec" "$?" 6
wait $f; is "so has run --follow" "$?" 6
want=$(seq 0 249 | sha256sum)
for o in l x f; do
	is "every line once ($o)" "$(sha256sum <"$work/$o.out")" "$want"
done
for o in l x f w; do
	is "told once, and that it is back ($o)" \
	    "$(grep -c 'is away, trying again' "$work/$o.err") $(grep \
	    -c 'connected again$' "$work/$o.err")" '1 1'
done

# ---- the server goes away in the moment of the start: it is done once
up() {
	[ -n "$(daemon_pids apid)" ] && [ -n "$(daemon_pids stored)" ] &&
	    wb list >/dev/null 2>&1
}
n=0
for stop in stored none; do
	n=$((n + 1))
	await up || fail "the daemons are not back"
	stored=$(daemon_pids stored) apid=$(daemon_pids apid)
	[ $stop = none ] || kill -STOP "$stored"	# before it is recorded
	wb exec -n b -- sh -c \
	    'echo x >>/root/once; sleep 0.5; wc -l </root/once' >"$work/once" \
	    2>&1 &
	x=$!
	connected() { [ "$(connections)" -ge 1 ]; }
	await connected
	[ $stop = stored ] || await wb exec -n b -- test -e /root/once
	kill -KILL "$apid" "$stored"
	wait $x; is "exec, the daemons killed under it ($stop stopped)" "$?" 0
	is "and ran once" "$(cat "$work/once")" $n
	[ $n = 2 ] || wb exec -n b -- true
done
await up
kill -STOP "$(daemon_pids stored)"
wb create --name made --network none >"$work/made" 2>&1 &
x=$!
await connected
kill -KILL "$(daemon_pids apid)" "$(daemon_pids stored)"
wait $x; is "create, the daemons killed under it" "$?" 0
is "makes one sandbox" "$(wb list | grep -c '^made ')" 1
wb rm made >/dev/null

# ---- names of before the restart
no "a name of before it" 2 wb wait b "$two"
no "the newest of that name" 143 wb wait b job
is "its output is there, too" "$(wb logs b job)" three
is "wb's, too" "$(wb logs b d1)" in
no "no such name" 125 wb logs b nosuch
wb run b --name job -- sleep 1000 >/dev/null
is "one that runs comes before it" \
    "$(wb ps b | awk '$7 == "job" { print $2 }')" running
no "and is meant" 124 wb wait b job --timeout 0
ok "remove" wb rm --grace 0 a b
box_done
