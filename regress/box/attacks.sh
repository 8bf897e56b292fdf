#!/bin/sh
# attacks.sh: a box whose root is hostile, its neighbours, and the server.
# What runs in the box is attack.c.  Each check says the number of the attack;
# what the host does without our protection, it says as control.
. "$(dirname "$0")/lib.sh"
attack=$work/attack
cc=${CC:-$(command -v cc || command -v gcc || command -v clang)} || :
[ -n "$cc" ] || { echo "skip: no C compiler"; exit 77; }
$cc -std=gnu17 -O1 -static -o "$attack" "$top/regress/box/attack.c" ||
    { echo "not ok - attack.c does not build"; exit 1; }
# what must not change
canary=$work/canary
echo "workbox canary" >"$canary"
before=$(sha256sum "$canary" "$WB_BIN" /etc/passwd /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname)
box_serve

wb() { "$WB_BIN" sandbox "$@"; }
run() { timeout 40 "$WB_BIN" sandbox exec -n "$@"; }
# put BOX: the program into it
put() { wb exec "$1" -- sh -c 'cat >/root/attack; chmod 755 /root/attack' <"$attack"; }
# attack BOX WHAT...: its checks become ours; less than one is a failure
attack() {
	b=$1; shift
	run "$b" -- /root/attack "$@" >"$work/attack.out" 2>&1
	r=$?
	grep '^not ok - ' "$work/attack.out"
	p=$(grep -c '^ok - ' "$work/attack.out")
	f=$(grep -c '^not ok - ' "$work/attack.out")
	passed=$((passed + p)) failed=$((failed + f))
	grep '^ok - ' "$work/attack.out"
	if [ $((p + f)) = 0 ]; then
		fail "attack $1 made no check" "exit $r" "$(head -n 5 "$work/attack.out")"
	elif [ "$f" = 0 ] && [ $r != 0 ]; then
		fail "attack $1 ended with $r" "$(tail -n 5 "$work/attack.out")"
	fi
}
alive() { is "$1: $2 is whole" "$(run "$2" -- echo alive 2>&1)" alive; }
state() { wb inspect "$1" | sed -n 's/.*"state": *"\([A-Z]*\)".*/\1/p' | head -n 1; }

ok "create a" wb create --name a --network none --memory 536870912 --pids 300 --cpus 1
ok "create b" wb create --name b --network none --memory 536870912 --pids 300 --cpus 1
put a; put b

# ---- the kernel's surface
"$attack" control >"$work/control" 2>/dev/null
n=$(wc -l <"$work/control")
if [ "$n" -ge 30 ]; then
	pass "control: $n of the calls below are done on the host"
else
	skip "control: only $n calls work on this host"
fi
attack a calls
attack a proc
attack a fds
attack a pid1
is "B13 B52 the box is still there" "$(state a)" READY
alive B52 a

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
"$attack" abstract "$name" | grep -q '^not ok - ' && pass "B38 control: the host reaches it" || skip "B38 control: nobody listens"
attack a abstract "$name"
kill "$listener"

# ---- neighbours
run b -- /root/attack watch 2 >"$work/watch.out" 2>&1 &
watcher=$!
await grep -q watching "$work/watch.out"
run a -- sh -c 'wb status; cat /etc/passwd /bin/busybox; echo >/dev/null; head -c 1 /dev/urandom' >/dev/null 2>&1
wait "$watcher"
out=$(cat "$work/watch.out")
like "B51 a box sees nothing of what its neighbour opens" "$out" '^ok - B51'
"$WB_BIN" sandbox run a --name take -- /root/attack take /tmp/taken >/dev/null
await run a -- test -e /tmp/taken
run a -- /root/attack give | grep -q '^not ok - ' && pass "B51 control: the box has used up its own" || fail "B51 nothing was used up"
attack b give
alive B51 a
run a -- killall attack

# ---- storms
"$WB_BIN" sandbox run a --name freeze -- /root/attack freeze 2 >/dev/null
for i in 1 2 3; do run a -- true >/dev/null 2>&1; done
wb wait a freeze >/dev/null 2>&1
alive "B44 who stops every new process stops no runner" a
"$WB_BIN" sandbox run a --name orphans --timeout 20 -- /root/attack orphans 400 >/dev/null
wb wait a orphans >/dev/null 2>&1
gone() { [ "$(run a -- sh -c 'ls -d /proc/[0-9]* | wc -l')" -lt 12 ]; }
await gone && pass "B44 orphans are reaped" || fail "B44 orphans stay" "$(run a -- ps)"
"$WB_BIN" sandbox run a --name bomb --timeout 4 -- sh -c 'b() { b | b & }; b; sleep 3' >/dev/null 2>&1
alive "B39 while a fork bomb goes off" a
alive "B39 its neighbour" b
wb wait a bomb >/dev/null 2>&1
run a --timeout 8 -- sh -c 'for i in 1 2 3 4 5 6 7 8; do head -c 100000000 /dev/zero >/dev/shm/$i; done' >/dev/null 2>&1
alive "B35 B40 after 800 MB of shm in 512" a
run a -- sh -c 'rm -f /dev/shm/*'
size() { run a -- sh -c "head -c $2 /dev/zero >$1/x; stat -c %s $1/x; rm -f $1/x" 2>/dev/null; }
is "B35 /run takes an eighth of the memory" "$(size /run 200000000)" 67108864
is "B35 /dev takes nothing to speak of" "$(size /dev 200000)" 65536

# ---- crashes
like "B54 a crash leaves no handler and no core" \
    "$(run a -- sh -c 'ulimit -c unlimited; ulimit -c 0; grep core /proc/self/limits; cd /root; sh -c "kill -SEGV \$\$"; ls' 2>&1)" 'core file size +1 +1'

like "B25 no working directory through a descriptor" "$(run a --cwd /proc/self/fd/7 -- pwd 2>&1)" bad-cwd
like "B25 nor through pid 1" "$(run a --cwd /proc/1/root -- pwd 2>&1)" bad-cwd
is "B25 dots end at the box's root" "$(run a --cwd /../../../../.. -- sh -c 'pwd; cat etc/hostname' | tr '\n' ' ')" "/ a "

# ---- what the host keeps of it for ever
was=$("$WB_BIN" events export | wc -c)
run a --timeout 4 -- sh -c 'x=$(head -c 30000 /dev/zero | tr "\0" x)
    for j in 1 2 3; do (while :; do wb run -- true "$x"; done) & done; wait' >/dev/null 2>&1
grew=$(($("$WB_BIN" events export | wc -c) - was))
[ $grew -lt 1000000 ] && pass "B46 a flood of wb's sessions leaves $grew bytes of record" || fail "B46 a flood of wb's sessions leaves $grew bytes of record"
like "B46 what is left out is told" "$(cat "$WB_STATE"/sandboxes/*/launch.log)" "not on the record"
is "B46 wb works again" "$(run a -- wb run -- echo yes)" yes

# ---- what it leaves behind
run a -- sh -c 'cp /bin/busybox /root/suid; chmod 6755 /root/suid; ln -s /etc/shadow /root/link; ln -s "$(printf "a\n{\"seq\":1}")" /root/nl' >/dev/null 2>&1
suid=$(find "$WB_STATE/sandboxes" -name suid | head -n 1)
[ -n "$suid" ] && [ "$(stat -c %u "$suid")" -ge "$WB_UIDS" ] &&
    pass "B27 a setuid file of the box's root is nobody's on the host" || fail "B27 owner of suid" "$suid"
is "B27 and out of the reach of others" "$(stat -c %a "$WB_STATE/sandboxes")" 700
attack a tree /root/tree
ok "B29 B44 a hostile tree is removed" wb rm a --grace 0
id=${suid#"$WB_STATE/sandboxes/"} id=${id%%/*}
removed() { [ ! -e "$WB_STATE/sandboxes/$id" ]; }
await removed && pass "  all of it" || fail "  something stays" "$(find "$WB_STATE/sandboxes/$id" -maxdepth 3 | head -n 5)"

# ---- the record
esc=$(printf 'x\033]0;t\007\n{"seq":1,"prev":"0"}\r')
run b -- sh -c : "$esc" >/dev/null 2>&1
"$WB_BIN" events export >"$work/events" 2>/dev/null
is "L01 text of an argument makes no line of its own" \
    "$(grep -c '^{"seq":1,' "$work/events")" 1
tr -d '\n' <"$work/events" | LC_ALL=C grep -q '[[:cntrl:]]' &&
    fail "a control character reached the record" || pass "L01 no control character reaches the record"
LC_ALL=C tr -d '\n\t' <"$work/serve.log" | LC_ALL=C grep -q '[[:cntrl:]]' &&
    fail "a control character reached the log" || pass "nor the log"
grep -q "$WB_TOKEN" "$work/events" "$work/serve.log" && fail "the key is in the record or the log" || pass "B12 the key is in neither"

# ---- the host
alive "at the end" b
is "the host is as it was" "$(sha256sum "$canary" "$WB_BIN" /etc/passwd /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname)" "$before"
for d in privd apid stored netd; do
	grep -Eq "^$d\[[0-9]+\]: (fatal|error)" "$work/serve.log" && fail "$d complained" "$(grep "^$d" "$work/serve.log" | grep -E 'fatal|error')"
done
is "no daemon was started anew" "$(grep -c 'serving, generation' "$work/serve.log")" 1
box_done
