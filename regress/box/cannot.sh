#!/bin/sh
# cannot.sh: README's table "What does not work in a box, and what to do": each
# row is tried, and what to do instead works.
. "$(dirname "$0")/lib.sh"
. "$top/regress/box/attack/lib.sh"
rows=0
# row TEXT: README has a row that begins so
row() {
	rows=$((rows + 1))
	t=$1
	grep -q "^    $t" "$top/README" && pass "row: $t" ||
	    fail "README has no row: $t"
}
attack_init
echo one >"$WB_STATE/rootfs/minimal/etc/linked"
ln "$WB_STATE/rootfs/minimal/etc/linked" "$WB_STATE/rootfs/minimal/etc/linked2"
box_serve
ok "create a" wb create --name a --network none --memory 268435456 --pids 128 \
    --cpus 1
put a
in_box() { run a -- sh -c "$*" 2>&1; }

row 'sudo, su to root '
in_box 'cp /root/attack /bin/busybox /usr/; chmod 6755 /usr/attack /usr/busybox' >/dev/null
is "$t: not by setuid" "$(in_box 'su agent -c "/usr/attack gain -"; echo $?')" 0
like "$t: nor by password" \
    "$(in_box 'su agent -c "echo x | /usr/busybox su root -c id"')" \
    "must be suid|incorrect|can't set|not permitted|Permission denied"
is "$t: a box's commands are root already" "$(in_box 'id -u')" 0
is "$t: and become others" "$(in_box 'su agent -c "id -u"')" 1000

row 'nested containers,'
like "$t: unshare -r" "$(in_box 'unshare -r true')" 'not permitted'
like "$t: unshare -n" "$(in_box 'unshare -n true')" 'not permitted'
like "$t: nsenter" "$(in_box 'nsenter -t 1 -n true')" \
    'ermission denied|not permitted'
ok "$t: make another box" wb create --name nested --network none \
    --memory 134217728 --pids 128 --cpus 1

row 'mount, FUSE, loop '
like "$t: a tmpfs" "$(in_box 'mount -t tmpfs x /tmp')" 'denied|not permitted'
like "$t: a bind" "$(in_box 'mount -o bind /etc /tmp')" 'denied|not permitted'
like "$t: no mount goes" "$(in_box 'umount -l /proc')" \
    'not permitted|denied|Invalid'
is "$t: no FUSE, no loop, no TUN" \
    "$(in_box 'ls -d /dev/fuse /dev/loop* /dev/net /dev/kvm 2>/dev/null')" ""
ok "$t: what is needed is built into a root file system" wb exec a -- cat \
    /etc/linked

row 'perf, bpf, io_uring '
"$attack" control | sort >"$work/control"
grep -q 'io_uring_setup' "$work/control" &&
    pass "control: io_uring on the host" ||
    skip "control: the host has no io_uring"
run a -- /root/attack calls >"$work/calls"
for c in 'B09 io_uring_setup: Function not implemented' \
    'B07 perf_event_open: Operation not permitted' \
    'B07 bpf MAP_CREATE: Operation not permitted'; do
	grep -q "^ok - $c" "$work/calls" && pass "$t: $c" || fail "$t: $c"
done

row 'fallocate(2) '
for c in 'B33 fallocate: Operation not supported' 'holes may be made: '; do
	grep -q "^ok - $c" "$work/calls" && pass "$t: $c" || fail "$t: $c"
done
is "$t: posix_fallocate" "$(in_box \
    'busybox fallocate -l 100000 /root/f && stat -c %s /root/f')" 100000

row 'ping '
attack a ping 127.0.0.1
attack a ping ::1
like "$t: nobody else" "$(in_box 'ping -c 1 -W 1 1.1.1.1; echo $?')" '^[1-9]'

row 'ports below 8 '
serves() {
	in_box "nc -l -p $1 -e true & sleep 0.2; kill \$!" | grep -q -i denied
}
serves 7 && pass "$t: 7 is refused" || fail "$t: 7 is bound"
is "$t: 8 is a box's" \
    "$(in_box '(echo there | nc -l -p 8 >/dev/null) & for i in 1 2 3 4 5 6 7 8 9; do nc 127.0.0.1 8 </dev/null 2>/dev/null && break; usleep 50000; done')" there

row 'hard links in the '
is "$t: one file at first" \
    "$(in_box 'cmp /etc/linked /etc/linked2 && stat -c %h /etc/linked')" 2
is "$t: two when one is written" \
    "$(in_box 'echo two >>/etc/linked; cat /etc/linked2')" one
is "$t: those that the box makes stay" \
    "$(in_box 'echo a >/root/x; ln /root/x /root/y; echo b >>/root/y; tail -n 1 /root/x')" b

# none is left out: a row begins at the fifth column
is "every row of the table is tried" \
    "$(awk '/^What does not work in a box/ { t = 1; next } /^Figures/ { t = 0 } t && /^    [^ ]/' "$top/README" | grep -vc '^    \(unshare, bwrap\|root file system\)')" $rows
attack_done
