#!/bin/sh
# attacks_mem.sh: memory of every kind and processor time: what meets the limit
# is the session that took it; it is told so, and nobody else notices.
. "$(dirname "$0")/lib.sh"
. "$top/regress/box/attack/lib.sh"
attack_init
box_serve
mib=1048576
mb=256
[ -z "${WB_OWN_HOST-}" ] || mb=96	# a guest: each page takes its time
limit=$((mb * mib)) more=$((mb * 3 / 2))

ok "create m" wb create --name m --network none --memory $limit --pids 600 \
    --cpus 1
ok "create n" wb create --name n --network none --memory $limit --pids 300 \
    --cpus 1
put m
memory() { wb inspect "$1" | field memoryBytes; }
running() {
	curl -s -H "Authorization: Bearer $WB_TOKEN" \
	    "$WB_URL/v1/sandboxes/$1/sessions/$2" | field state
}
bystander=$(bg m --name bystander -- sleep 600)
busy=$(bg m --name busy -- sh -c 'while :; do /bin/true; sleep 0.01; done')
other=$(bg n --name other -- sleep 600)
host_kills() { awk '$1 == "oom_kill" { print $2 }' /proc/vmstat; }
was=$(host_kills)

# ---- taken by the leader, and by a child of one that sleeps on
[ -n "${WB_OWN_HOST-}" ] && kinds='anon memfd shm' ||
    kinds='anon memfd shm tables'
for kind in $kinds; do
	for who in '' :child; do
		s=$(bg m -- /root/attack mem $kind:$more$who)
		out=$(ended m "$s")
		is "B40 $more MiB of $kind in $mb${who:+, by a child}: the session ends so" \
		    "$(echo "$out" | field signal) $(echo "$out" |
		    field reason)" "9 oom"
	done
	alive "B40 $kind" m
	# later kinds may outlive their process for a moment, and then the
	# kernel does choose another
	[ $kind != anon ] || is "B40 one whose processes come and go lives" \
	    "$(running m "$busy")" running
done
is "B40 a bystander in the box lives" "$(running m "$bystander")" running
is "B40 its neighbour's session lives" "$(running n "$other")" running
for kind in pipes sockets; do	# descriptors or the user's share end first
	s=$(bg m -- /root/attack mem $kind:$more)
	like "B40 $more MiB of $kind are not to be had" \
	    "$(ended m "$s" | tr -d '\n' |
	    sed -n 's/.*"exitCode": *\([0-9]*\).*"reason": *\([a-z"]*\).*/\1 \2/p')" '^([1-9][0-9]* null|[0-9]* "oom")'
	alive "B40 $kind" m
done
is "B40 its neighbour's session lives on" "$(running n "$other")" running
like "B40 a shell whose child it was says so, too" \
    "$(s=$(bg m -- sh -c \
    '/root/attack mem anon:'$more'; echo goes on; sleep 100'); ended m "$s")" '"reason": *"oom"'

# ---- in a small box, beside one that forks all the time, and one of large ones
if [ -z "${WB_OWN_HOST-}" ]; then
	ok "create s" wb create --name s --network none --memory 32M
	put s
	forks=$(bg s --name forks -- sh -c 'while :; do /bin/true; done')
	pipes=$(bg s --name pipes -- sh -c \
	    'while :; do cat /root/attack | wc -c; sleep 0.05; done')
	# long enough for the runner to have seen how much that is, twice
	often() { [ "$(wb logs s "$pipes" 2>/dev/null | wc -l)" -ge 45 ]; }
	await often || fail "B40 nothing is written" "$(wb logs s "$pipes")"
	for i in 1 2 3; do
		s=$(bg s -- sh -c '/root/attack mem anon:60; sleep 2')
		is "B40 a child in 32 MiB beside them: $i" \
		    "$(ended s "$s" | field reason)" oom
	done
	is "B40 and they live" "$(running s "$forks") $(running s "$pipes")" \
	    "running running"
	ok "remove s" wb rm --grace 0 s
fi
[ "$(host_kills)" -gt "$was" ] &&
    pass "control: the kernel's killer was at work $(($(host_kills) - was)) times" || fail "B40 nobody was killed"
s=$(bg m -- sh -c 'kill -9 $$')
like "B40 control: who is killed otherwise is not told so" "$(ended m "$s")" \
    '"reason": *null'
s=$(bg m --timeout 1 -- sleep 100)
like "B40 nor who was too slow" "$(ended m "$s")" '"reason": *"timeout"'

# ---- what is no reason to end
s=$(bg m -- /root/attack mem cache:$((mb * 2)))
is "B40 $((mb * 2)) MiB of page cache are written" \
    "$(ended m "$s" | field exitCode)" 0
s=$(bg m -- /root/attack mem mlock:$more)
is "B40 mlock of more than may be is refused" \
    "$(ended m "$s" | field exitCode)" 12

# ---- file systems in memory
size() {
	run m -- sh -c \
	    "head -c $2 /dev/zero >$1/x; stat -c %s $1/x; rm -f $1/x" \
	    2>/dev/null
}
is "B35 /dev/shm takes half of the memory" "$(size /dev/shm 200000000)" \
    $((limit / 2))
is "B35 /run takes an eighth" "$(size /run 200000000)" $((limit / 8))
is "B35 /dev takes nothing to speak of" "$(size /dev 200000)" 65536
free=$(df --output=avail -B1 "$WB_STATE" | tail -n 1)
wb exec m -- sh -c 'head -c '$((limit / 5 * 2))' /dev/zero >/dev/shm/x' \
    >/dev/null 2>&1
held=$(memory m)
[ "${held:-0}" -gt $((limit / 5 * 2)) ] &&
    pass "B35 and it is the box's: $((held / mib)) MiB of $mb" ||
    fail "B35 charged to nobody" "$held"
[ $((free - $(df --output=avail -B1 "$WB_STATE" | tail -n 1))) -lt \
    $((limit / 5)) ] && pass "B35 the host's disk has not got it" ||
    fail "B35 the disk fills"
run m -- rm -f /dev/shm/x
t=$(size /tmp 200000000)
is "B35 /tmp takes as much as /dev/shm" "$t" $((limit / 2))

# ---- no swap
id=$(wb inspect m | field id)
swap() {
	for f in $(find /sys/fs/cgroup -path "*/$WB_CGROUP/$id/box*" \
	    -name 'memory.swap.current' 2>/dev/null); do cat "$f"; done
	for d in $(find /sys/fs/cgroup -path "*/$WB_CGROUP/$id/box" -type d \
	    2>/dev/null); do
		[ ! -e "$d/memory.memsw.limit_in_bytes" ] ||
		    echo $(($(cat "$d/memory.memsw.limit_in_bytes") - $(cat "$d/memory.limit_in_bytes")))
		[ ! -e "$d/memory.swap.max" ] || cat "$d/memory.swap.max"
	done
}
is "B40 swap stays 0" "$(swap | sort -u)" 0

# ---- sockets' buffers
# unread KIND: MiB that sockets of that kind hold, 0 TCP, 1 UDP
unread() {
	s=$(bg m -- /root/attack buffers "$1")
	said() {
		wb logs m "$s" 2>/dev/null | grep -q . ||
		    [ "$(running m "$s")" != running ]
	}
	await said
	wb logs m "$s" 2>/dev/null
	run m -- killall attack >/dev/null 2>&1
}
held=$(unread 0)
[ "${held:-0}" -lt 64 ] &&
    pass "N15 TCP: ${held:-fewer than that} MiB unread in a box of $mb" ||
    fail "N15 TCP holds $held MiB"
alive N15 m
"$attack" buffers 2 >"$work/unread" 2>/dev/null &
holder=$!
await test -s "$work/unread"
[ "$(cat "$work/unread")" -gt 300 ] &&
    pass "control: N15 TCP holds $(cat "$work/unread") MiB on the host" ||
    skip "control: N15 this host's TCP holds $(cat "$work/unread") MiB"
kill "$holder"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	held=$(unread 1)
	[ "${held:-0}" -lt $mb ] &&
	    pass "N15 UDP: ${held:-fewer} MiB unread in a box of $mb" ||
	    fail "N15 UDP holds $held MiB"
else
	skip "N15 UDP is charged to nobody on cgroup v1 (PRIVSEP)"
fi

# ---- processor
got=$(run m -- /root/attack spin 3)
[ "$got" -gt 10 ] && [ "$got" -lt 1150 ] &&
    pass "B41 64 threads get $got thousandths of one processor" ||
    fail "B41 64 threads get $got"
if [ "$(nproc)" -gt 1 ]; then
	got=$("$attack" spin 1)
	[ "$got" -gt 1150 ] && pass "control: B41 $got on the host" ||
	    skip "control: B41 the host has $got to give"
fi

alive "at the end" m
is "the box never was anything but READY" "$("$WB_BIN" events export |
    grep -c '"state":"\(SUSPECT\|QUARANTINED\|STOPPED\)"')" 0
attack_done
