#!/bin/sh
# attacks_fs.sh: a box whose root is hostile: files, nodes, links, programs
# that gain, mounts, and the tree that it leaves behind.
. "$(dirname "$0")/lib.sh"
. "$top/regress/box/attack/lib.sh"
attack_init
# a root file system with nodes in it, as somebody may have crafted one
cp -a "$WB_STATE/rootfs/minimal" "$WB_STATE/rootfs/crafted"
mkdir "$WB_STATE/rootfs/crafted/nodes" "$WB_STATE/rootfs/crafted/host"
disk=$(sed -n 's/^ *\([0-9]*\) *\([0-9]*\) .*/\1 \2/p' /proc/partitions |
    head -n 1)
[ -z "$disk" ] || mknod "$WB_STATE/rootfs/crafted/nodes/disk" b $disk
mknod "$WB_STATE/rootfs/crafted/nodes/mem" c 1 1
mknod "$WB_STATE/rootfs/crafted/nodes/zero" c 1 5
cp "$attack" "$WB_STATE/rootfs/crafted/nodes/attack"
chmod 6755 "$WB_STATE/rootfs/crafted/nodes/attack"
box_serve

ok "create a" wb create --name a --network none --memory 268435456 --pids 300 \
    --cpus 1
ok "create c" wb create --name c --network none --memory 268435456 --pids 300 \
    --cpus 1 --rootfs crafted
put a

# ---- nodes
attack a nodes
control "B26 the host makes and reads one" sh \
    -c "mknod $work/zero c 1 5 && head -c 1 $work/zero"
for n in disk mem zero; do
	[ -e "$WB_STATE/rootfs/crafted/nodes/$n" ] || continue
	like "B26 a node in the root file system, $n, is dead" \
	    "$(run c -- head -c 1 /nodes/$n 2>&1)" 'Permission denied'
done
control "B26 on the host it is not" head -c 1 \
    "$WB_STATE/rootfs/crafted/nodes/zero"
like "B26 nor when it is copied up" \
    "$(run c -- sh -c \
    'chmod 777 /nodes/zero; mv /nodes/zero /root/zero; head -c 1 /root/zero' 2>&1)" 'Permission denied'

# ---- programs that gain
"$attack" gain "$work/gain" | grep -q '^not ok' &&
    pass "control: B18 B27 on the host they do" ||
    skip "control: B18 the host mounts $work nosuid"
attack a gain /usr/gain
attack a gain /tmp/gain
like "B18 one of the root file system's gains nothing" \
    "$(run c -- sh -c \
    'cp /nodes/attack /tmp/a; su agent -c "/nodes/attack gain -"; echo $?' 2>&1)" '^0$'
suid=$(find "$WB_STATE"/sandboxes/*/upper -name gain | head -n 1)
[ -n "$suid" ] && [ "$(stat -c %u "$suid")" -ge "$WB_UIDS" ] &&
    pass "B27 a setuid file of the box's root is nobody's on the host" ||
    fail "B27 owner" "$suid"
is "B27 and out of the reach of others" "$(stat -c %a "$WB_STATE/sandboxes")" \
    700
if command -v setpriv >/dev/null; then
	nobody() {
		setpriv --reuid 65534 --regid 65534 --clear-groups sh \
		    -c 'exec "$0" gain -' "$1" 2>/dev/null
		echo $?
	}
	is "B27 another user cannot run it" "$(nobody "$suid")" 126
	cp -p "$suid" "$work/moved"
	chmod 6755 "$work/moved"
	chmod 755 "$work"
	is "B27 moved where he can, it makes him nobody" \
	    "$(nobody "$work/moved")" 0
	chmod 700 "$work"
fi

# ---- what runs is not written
runtime() {
	sha256sum "/proc/$(pid1_of a)/root/opt/workbox/runner" \
	    "/proc/$(pid1_of a)/root/opt/workbox/wb"
}
was=$(runtime)
like "B24 control: they are read" "$was" 'runner'
run a -- sh -c \
    'printf "#!/proc/self/exe\n" >/root/exe; chmod 755 /root/exe; cp /root/exe /root/sh-exe' >/dev/null 2>&1
bg a --timeout 6 -- sh -c \
    'while :; do for p in /proc/[0-9]*; do : >>$p/exe; done; done' >/dev/null \
    2>&1
for i in 1 2 3 4 5 6; do
	run a -- /root/exe >/dev/null 2>&1
	run a --cwd /proc/self -- ./exe >/dev/null 2>&1
	run a -- /opt/workbox/runner >/dev/null 2>&1
done
is "B24 runner and wb are as they were" "$(runtime | cut -d ' ' -f 1)" \
    "$(printf '%s\n' "$was" | cut -d ' ' -f 1)"
alive B24 a

# ---- the working directory
like "B25 no working directory through a descriptor" \
    "$(run a --cwd /proc/self/fd/7 -- pwd 2>&1)" bad-cwd
like "B25 nor through pid 1" "$(run a --cwd /proc/1/root -- pwd 2>&1)" bad-cwd
is "B25 dots end at the box's root" "$(run a --cwd /../../../../.. -- sh \
    -c 'pwd; cat etc/hostname' | tr '\n' ' ')" "/ a "
bg a --name swap -- /root/attack swap /root/moving >/dev/null
await run a -- test -L /root/moving
odd= n=0 refused=0
while [ $n -lt 40 ]; do
	n=$((n + 1))
	case $(run a --cwd /root/moving -- sh \
	    -c 'readlink /proc/self/cwd' 2>&1) in
	/tmp) ;;
	*bad-cwd*) refused=$((refused + 1)) ;;
	*) odd="$odd x" ;;
	esac
done
is "B25 a link that moves: $refused of 40 refused, others in the box" "$odd" ""
run a -- killall attack >/dev/null 2>&1

# ---- mounts
mounts=$(run c -- cat /proc/self/mountinfo)
host=$(wc -l </proc/self/mountinfo)
mkdir "$work/shared"
mkfifo "$work/go"
mount -t tmpfs wb-canary "$work/shared" && mount --make-shared "$work/shared" &&
    mkdir "$work/shared/sub"
unshare -m --propagation slave sh \
    -c ": >$work/slave; read _ <$work/go; test -e $work/shared/sub/x" &
slave=$!
await test -e "$work/slave"
mount -t tmpfs wb-canary "$WB_STATE/rootfs/crafted/host"
mount --bind "$WB_STATE/rootfs/crafted/host" "$work/shared/sub"
echo x >"$WB_STATE/rootfs/crafted/host/x"
echo >"$work/go"
wait "$slave" && pass "control: B31 a slave of the mount sees it" ||
    fail "B31 nobody sees the mount"
is "B31 a mount of the host's does not reach the box" \
    "$(run c -- cat /proc/self/mountinfo)" "$mounts"
is "B31 nor what is in it" "$(run c -- ls -A /host)" ""
run c -- sh -c 'echo y >/host/y' >/dev/null 2>&1
is "B31 nor a file of the box's the mount" \
    "$(ls -A "$WB_STATE/rootfs/crafted/host")" x
umount "$work/shared/sub" "$WB_STATE/rootfs/crafted/host" "$work/shared"
is "B31 the host has as many mounts as before" \
    "$(wc -l </proc/self/mountinfo)" "$host"

# ---- what it leaves behind
run a -- sh -c \
    "ln -s $work/canary.d /root/link; ln -s $work/canary.d/canary /root/file; ln -s /etc/shadow /root/shadow; ln -s \"\$(printf 'a\n{\"seq\":1}')\" /root/nl; mkdir /root/d; ln -s / /root/d/slash" >/dev/null 2>&1
find -L "$WB_STATE"/sandboxes/*/upper/root/link -name canary 2>/dev/null |
    grep -q . && pass "control: B29 who follows links reaches the host" ||
    fail "B29 the link leads nowhere"
attack a tree /root/tree
id=$(wb inspect a | field id)
ok "B29 B44 a hostile tree is removed" wb rm a --grace 0
removed() { [ ! -e "$WB_STATE/sandboxes/$id" ]; }
await removed && pass "  all of it" || fail "  something stays" \
    "$(find "$WB_STATE/sandboxes/$id" -maxdepth 3 | head -n 5)"
is "B29 and nothing else" "$(cat "$work/canary.d/canary")" "workbox canary"
alive "at the end" c
attack_done
