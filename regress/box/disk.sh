#!/bin/sh
# disk.sh: the state directory on a file system of its own that boxes fill:
# who writes most is frozen, the others and the record go on.
. "$(dirname "$0")/lib.sh"
MIB=1048576
field() {
	sed -n 's/.*"'"$1"'": "\{0,1\}\([^",]*\).*/\1/p' | sed 's/^null$//' |
	    head -n 1
}
box_disk 2G
WB_FLOOR=536870912
box_serve

fallocate -l 300M "$WB_STATE/room"
free() { echo $(($(stat -f -c '%a * %S' "$WB_STATE") / MIB)); }
health() { wb inspect "$1" | field healthReason; }
is_frozen() { [ "$(health "$1")" = disk-floor ]; }
fine() { [ -z "$(health "$1")" ] && "$WB_BIN" sandbox exec -n "$1" -- true; }
events() { "$WB_BIN" events export | grep -c "\"type\":\"$1\""; }

for n in writer slow idle; do ok "create $n" wb create --name $n \
    --network none; done
ok "little is written" wb exec -n slow -- sh \
    -c 'head -c 1000000 /dev/zero >/root/f'
sleep 3
is "nobody is frozen" "$(events sandbox.frozen)" 0
"$WB_BIN" sandbox run slow --name drip -- sh -c \
    'while :; do head -c 20000 /dev/zero >>/root/drip; sleep 0.2; done' \
    >/dev/null
"$WB_BIN" sandbox run writer --name fill -- sh -c \
    'while :; do head -c 100000000 /dev/zero >>/root/fill || sleep 1; done' \
    >/dev/null
await is_frozen writer &&
    pass "who fills the disk is frozen, with $(free) MiB left" ||
    fail "not frozen" "$(free) MiB left" "$(wb inspect writer)"
left=$(free)
[ "$left" -ge 512 ] && pass "before what is kept was touched" ||
    fail "only $left MiB are left"
once() { [ "$(events sandbox.frozen)" = 1 ]; }
await once && pass "nobody else" ||
    fail "frozen" "$("$WB_BIN" events export | grep frozen)"
like "it is on the record" \
    "$("$WB_BIN" events export | grep '"type":"sandbox.frozen"')" \
    '"outcome":"denied","reason":"disk-floor","data":\{"freeBytes":[0-9]+,"bytesPerSecond":[0-9]+\}'
like "a command in it is told why" \
    "$("$WB_BIN" sandbox exec -n writer -- true 2>&1)" 'frozen'
ok "the slow one goes on" wb exec -n slow -- true
ok "another can be made" wb create --name later --network none
ok "  and used" wb exec -n later -- sh -c 'echo yes >/root/f; sync; cat /root/f'
a=$(free)
sleep 3
[ $(($(free) + 8)) -ge "$a" ] && pass "nothing more is written" ||
    fail "$a MiB, then $(free)"
# a restart of the daemons, and of all
pid=$(daemon_pids apid)
kill -9 "$pid"
back() { "$WB_BIN" sandbox exec -n idle -- true; }
await back && pass "the daemons start again" || fail "they do not"
await is_frozen writer && pass "  and it is frozen still" ||
    fail "  not frozen" "$(wb inspect writer)"
is "  nobody condemned it" "$(wb inspect writer | field state)" READY
box_stop
box_serve
await back && pass "the server starts again" || fail "it does not"
await is_frozen writer && pass "  and it is frozen soon" ||
    fail "  not frozen" "$(wb inspect writer)"
[ "$(free)" -ge 512 ] && pass "  before what is kept was touched" ||
    fail "only $(free) MiB are left"
# room comes back
before=$(free)
rm "$WB_STATE/room"
thawed() { [ "$(events sandbox.thawed)" -ge 1 ]; }
await thawed && pass "with room it goes on" ||
    fail "it stays frozen" "$before MiB, then $(free)" "$(wb inspect writer)"
await is_frozen writer && pass "and is frozen again" ||
    fail "not frozen again" "$(free) MiB"
ok "a frozen box can be removed" wb rm writer
"$WB_BIN" sandbox run later --name fill -- sh -c \
    'while :; do head -c 100000000 /dev/zero >>/root/fill || sleep 1; done' \
    >/dev/null
t0=$(date +%s)
ok "one that is being removed" wb rm later --grace 60
[ $(($(date +%s) - t0)) -lt 40 ] && pass "  has no time to fill the disk" ||
    fail "  takes $(($(date +%s) - t0)) s"
like "the slow one was never stopped" "$("$WB_BIN" events export |
    grep 'sandbox.frozen' | grep -c "$(wb inspect slow | field id)")" 0
await fine slow && pass "  and is whole" || fail "slow" "$(wb inspect slow)"
# nobody writes, and the disk is full all the same: nobody is frozen
n=$(events sandbox.frozen)
ok "the slow one ends" wb rm slow
fallocate -l $((($(free) - 300) * MIB)) "$WB_STATE/ballast"
sleep 4
is "who does not write is not frozen" "$(events sandbox.frozen)" "$n"
like "creates are refused" "$(wb create --network none 2>&1)" 'disk-floor'
ok "  the others go on" wb exec -n idle -- true
rm "$WB_STATE/ballast"
ok "  and with room a sandbox is made" wb create --name last --network none
# no block is free, then no inode: the server starts, so that boxes can go
starts_full() {		# what
	box_stop
	eat >"$work/eaten" 2>&1
	: >"$work/serve.log"
	box_serve
	await back && pass "no free $1: the server starts" ||
	    fail "no free $1: no start" "$(tail -n 3 "$work/serve.log")"
	like "  and says what it could not try" "$(cat "$work/serve.log")" \
	    "^workbox serve: warning: overlay: not tried: the file system of $WB_STATE is full: .*No space left on device\$"
	like "  as doctor does" "$("$WB_BIN" doctor \
	    --config "$work/workbox.conf" 2>&1)" '^warning overlay: not tried: '
}
eat() {
	dd if=/dev/zero of="$WB_STATE/ballast" bs=1M
	dd if=/dev/zero of="$WB_STATE/ballast2" bs=4k
}
starts_full block
ok "  and removes a box" wb rm last
rm "$WB_STATE/ballast" "$WB_STATE/ballast2"
again() { wb create --name again --network none; }
await again && pass "  and with room makes one" ||
    fail "  makes none" "$(again 2>&1)"
eat() {
	mkdir "$WB_STATE/many" &&
	    seq -f "$WB_STATE/many/%.0f" 200000 | xargs touch
}
starts_full inode
like "  which counts them" \
    "$("$WB_BIN" doctor --config "$work/workbox.conf" 2>&1)" \
    '^failed *disk: [0-9]+ of [0-9]+ inodes free at .*; creates are refused below '
like "  creates are refused" "$(wb create --network none 2>&1)" 'disk-floor'
ok "  and removes a box" wb rm again
rm -r "$WB_STATE/many"
ok "  and with inodes makes one" wb create --name more --network none
box_done
