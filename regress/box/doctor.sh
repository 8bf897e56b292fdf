#!/bin/sh
# doctor.sh: each check of doctor finds its fault: the fault is made, by files
# of another system (--root), in a private mount namespace, or by a system
# call that fails (strace); the line, its cause and its cure are seen.  A row
# of checks.def for which no fault is made here is a failure.
. "$(dirname "$0")/lib.sh"
box_state
conf=$work/workbox.conf
port=$(free_port "${WB_PORT:-18790}")
WB_SOCKET=none
box_conf
WORKBOX_TOKEN=$(new_token)
export WORKBOX_TOKEN
seen= refused=

doctor() { timeout -k 5 60 "$WB_BIN" doctor --config "$conf" "$@" </dev/null; }

# A check's line, and what it says to mend it, as one text.
line() {	# name, doctor's output on stdin
	sed -n "/^[a-z]* *$1: /{N;s/\n *cure: / => /;s/\n.*//;p;}"
}

# The check NAME says STATUS, and cause and cure as the pattern has them.
fault() {	# name what status pattern output
	seen="$seen $1 "
	l=$(printf '%s\n\n' "$5" | line "$1")
	like "$1: $2" "$l" "^$3 *$1: $4\$"
}

# The same and serve refuses by the same line: what comes before `doctor' or
# `serve' makes the fault.
refuses() {	# name pattern-of-its-line command...
	n=$1 p=$2; shift 2
	refused="$refused $n "
	out=$(timeout -k 5 60 "$@" 2>&1 </dev/null)
	is "$n: serve refuses" "$?" 125
	like "$n: by name, with the same words" "$out" \
	    "^workbox serve: $n: $p\$"
	[ -n "$(printf '%s\n' "$out" | grep '^workbox serve: cure: .')" ] &&
	    pass "$n: and with the cure" ||
	    fail "$n: serve tells no cure" "$out"
}

# The cgroups of doctors that have gone: another one may be at work here.
no_cgroup() {
	for g in /sys/fs/cgroup/workbox-doctor-* \
	    /sys/fs/cgroup/*/workbox-doctor-*; do
		[ ! -e "$g" ] || kill -0 "${g##*-}" 2>/dev/null || return 1
	done
}
all=$(doctor)
is "this host can do it" "$?" 0
like "the last line counts" "$(printf '%s\n' "$all" | tail -n 1)" \
    '^[0-9]+ ok, [0-9]+ warning, 0 failed, 0 skipped$'
rows=$(sed -n 's/^CHECK("\([a-z0-9-]*\)".*/\1/p' "$top/workbox/checks.def")
is "a line for each row, in their order" "$(printf '%s\n' "$all" | sed \
    -n 's/^\(ok\|warning\|failed\|skipped\) *\([a-z0-9-]*\): .*/\2/p')" "$rows"

# ---- files of another system
R=$work/root
put() {		# path text
	[ -d "$R/${1%/*}" ] || mkdir -p "$R/${1%/*}"
	printf '%s\n' "$2" >"$R/$1"
}
ns() {		# kind number
	[ -d "$R/proc/self/ns" ] || mkdir -p "$R/proc/self/ns"
	ln -sfn "$1:[$2]" "$R/proc/self/ns/$1"
}
# A system in which nothing is wrong: each fault is then one file.
whole() {
	mkdir -p "$R/var/lib/workbox/rootfs/minimal"
	ln -s minimal "$R/var/lib/workbox/rootfs/default"
	put var/lib/workbox/runtime/runner r
	put var/lib/workbox/runtime/wb w
	put var/lib/workbox/runtime/SHA256SUMS \
	    "$(cd "$R/var/lib/workbox/runtime" && sha256sum runner wb)"
	for p in "$WB_PREFIX/libexec/workbox"/*; do
		put "${p#/}" ''
	done
	put usr/bin/slirp4netns ''
	chmod 755 "$R$WB_PREFIX/libexec/workbox"/* "$R/usr/bin/slirp4netns"
	put etc/passwd "root:x:0:0::/:/bin/sh
_workbox-netd:x:201:201::/:/bin/false
_workbox-stored:x:202:202::/:/bin/false
_workbox-apid:x:203:203::/:/bin/false
_workbox-proxyd:x:204:204::/:/bin/false"
	put etc/group "root:x:0:
workbox:x:200:"
	put etc/subuid alice:100000:65536
	put etc/subgid alice:100000:65536
	put etc/workbox/workbox.conf 'disk-floor = 1'
	put etc/workbox/token 0123456789abcdef0123456789abcdef
	chmod 600 "$R/etc/workbox/token"
	put proc/self/mounts 'none /sys/fs/cgroup cgroup2 rw,nsdelegate,favordynmods 0 0
/dev/sda1 / ext4 rw 0 0'
	put sys/fs/cgroup/cgroup.controllers 'cpuset cpu io memory pids'
	put proc/self/attr/current unconfined
	ns pid 4026531836
	ns user 4026531837
	put proc/sys/user/max_user_namespaces 100000
	put proc/sys/fs/suid_dumpable 0
	put proc/sys/fs/file-max 9223372036854775807
	put proc/sys/kernel/pid_max 4194304
	put proc/sys/kernel/osrelease 6.12.0
	put proc/cpuinfo 'flags		: fpu vme'
	put proc/meminfo 'MemTotal:       16000000 kB
MemAvailable:   12000000 kB'
	put proc/stat "cpu 1 2 3
btime 1790000000"
	put proc/uptime '1000.25 900.00'
}
good() {
	rm -rf "$R"
	[ -d "$R.whole" ] || { whole; mv "$R" "$R.whole"; }
	cp -a "$R.whole" "$R"
}
at() { timeout -k 5 60 "$WB_BIN" doctor --root "$R" "$@" </dev/null 2>&1; }
# One changed file, one line of another kind than ok; all others as before.
seems() {	# name what status pattern
	out=$(at)
	r=$?
	fault "$1" "$2" "$3" "$4" "$out"
	is "$1: and nothing else" "$(printf '%s\n' "$out" |
	    sed -n "/^\(warning\|failed\) /{/^$3 *$1: /d;p;}")" ''
	[ "$3" = failed ] && want=1 || want=0
	is "$1: exit code" "$r" $want
	good
}
good
out=$(at)
is "another system in which nothing is wrong" \
    "$? $(printf '%s\n' "$out" | grep -E '^(warning|failed) ')" '0 '
is "what is tried is skipped" \
    "$(printf '%s\n' "$out" | sed -n 's/^skipped *\([a-z0-9-]*\): .*/\1/p')" \
    "$(sed -n 's/^CHECK("\([a-z0-9-]*\)",.*C_TRY.*/\1/p' \
    "$top/workbox/checks.def")"
like "which is counted" "$out" \
    '^[0-9]+ ok, 0 warning, 0 failed, [1-9][0-9]* skipped$'

rm "$R$WB_PREFIX/libexec/workbox/stored"
seems programs "one is missing" failed \
    ".*/stored: No such file or directory => install again, or set libexec-dir"
sed -i /_workbox-stored/d "$R/etc/passwd"
seems users "one is missing" failed \
    'there is no user _workbox-stored => sh etc/install.sh, or useradd --system --user-group _workbox-stored'
sed -i s/:201:201:/:0:0:/ "$R/etc/passwd"
seems users "one is root" failed 'user _workbox-netd has uid 0 => .*useradd .*'
sed -i s/:203:203:/:202:202:/ "$R/etc/passwd"
seems users "two are one" failed \
    '_workbox-stored and _workbox-apid have one uid => usermod --uid, .*'
sed -i /workbox/d "$R/etc/group"
seems users "no group" warning \
    'there is no group workbox: only root .* => groupadd --system workbox'
put etc/subuid bob:1879000000:65536
seems uid-ranges "subuid" failed \
    '/etc/subuid gives 1879000000-1879065535 to bob; uid-base stands for 1879048192-1944584191 => set uid-base to uids that nobody has, or give bob others'
put etc/subgid carol:1878982656:1
seems uid-ranges "subgid" failed \
    '/etc/subgid gives 1878982656-1878982656 to carol; net-uid-base stands for .* => set net-uid-base to uids .*'
echo 'dave:x:1879048192:100::/:/bin/sh' >>"$R/etc/passwd"
seems uid-ranges "a user" failed \
    '/etc/passwd gives 1879048192-1879048192 to dave; uid-base .* => .* or give dave others'
echo 'erin:x:1944584191:' >>"$R/etc/group"
seems uid-ranges "a group, on the last of them" failed \
    '/etc/group gives .* to erin; uid-base .* => .*'
put etc/subuid 'zoe:1944584192:65536'
is "uid-ranges: one behind is none" "$(at | line uid-ranges | cut -c1-3)" 'ok '
good
put proc/sys/kernel/unprivileged_userns_clone 0
seems user-namespaces "Debian's switch" warning \
    'kernel.unprivileged_userns_clone is 0: .* => sysctl -w kernel.unprivileged_userns_clone=1'
put proc/sys/kernel/apparmor_restrict_unprivileged_userns 1
seems user-namespaces "Ubuntu's switch" warning \
    'kernel.apparmor_restrict_unprivileged_userns is 1: .* => sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile .*/netd'
put proc/sys/user/max_user_namespaces 1009
seems user-namespaces "too few" warning \
    'user.max_user_namespaces is 1009: max-boxes = 1000 and egress-pool = 4 need 1010 => sysctl -w user.max_user_namespaces=2020'
put proc/sys/user/max_user_namespaces 1010
is "user-namespaces: just enough" \
    "$(at | line user-namespaces | cut -c1-3)" 'ok '
good
put proc/self/mounts '/dev/sda1 / ext4 rw 0 0'
seems cgroup "no tree" failed \
    'there is no cgroup v2 tree => mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with systemd.unified_cgroup_hierarchy=1'
put proc/self/mounts 'none /sys/fs/cgroup/memory cgroup rw,memory 0 0
/dev/sda1 / ext4 rw 0 0'
mkdir -p "$R/sys/fs/cgroup/memory"
seems cgroup "v1 alone" failed 'v1 alone: there is no cgroup v2 tree => .*'
put sys/fs/cgroup/cgroup.controllers 'cpuset cpu io memoryx pids'
seems cgroup "a controller is missing" failed \
    'neither the v2 tree at /sys/fs/cgroup nor a v1 hierarchy has the controller memory => boot with cgroup_enable=memory, or a kernel that has it'
hybrid() {
	put proc/self/mounts 'none /sys/fs/cgroup/unified cgroup2 rw,favordynmods 0 0
none /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0
none /sys/fs/cgroup/memory cgroup rw,memory 0 0
/dev/sda1 / ext4 rw 0 0'
	put sys/fs/cgroup/unified/cgroup.controllers "$1"
	put sys/fs/cgroup/memory/release_agent "$2"
	mkdir -p "$R/sys/fs/cgroup/cpu"
}
hybrid pids ''
like "cgroup: hybrid" "$(at | line cgroup)" \
    '^ok +cgroup: hybrid: v2 at /sys/fs/cgroup/unified, and v1$'
hybrid hugetlb ''
seems cgroup "hybrid, a controller is missing" failed \
    'neither the v2 tree at /sys/fs/cgroup/unified nor a v1 hierarchy has the controller pids => .*'
hybrid pids /sbin/agent
seems release-agent "a program" warning \
    'the memory hierarchy starts /sbin/agent when a cgroup empties => empty release_agent in the root of that hierarchy'
sed -i s/,favordynmods// "$R/proc/self/mounts"
seems favordynmods "not there, for information" \
    ok '/sys/fs/cgroup lacks it: an exec waits some 5 to 30 ms for RCU => mount -o remount,favordynmods /sys/fs/cgroup'
sed -i s/,favordynmods// "$R/proc/self/mounts"
put sys/kernel/rcu_expedited 1
like "favordynmods: not where RCU is expedited" "$(at | line favordynmods)" \
    'not needed: rcu_expedited is on$'
good
rm "$R/usr/bin/slirp4netns"
seems slirp4netns "not there" warning \
    'there is no slirp4netns, .* => install the package slirp4netns; .*'
put sys/fs/selinux/enforce 1
put proc/self/attr/current system_u:system_r:container_t:s0
seems selinux "a confined domain" warning \
    'enforcing, and system_u:system_r:container_t:s0 may be refused .* => .*ausearch -m avc .*'
put sys/fs/selinux/enforce 1
put proc/self/attr/current unconfined_u:unconfined_r:unconfined_t:s0
like "selinux: one that is not" "$(at | line selinux)" \
    '^ok .*enforcing; .*unconfined_t'
put sys/fs/selinux/enforce 0
like "selinux: permissive" "$(at | line selinux)" '^ok .*permissive'
good
put sys/module/apparmor/parameters/enabled Y
put proc/self/attr/current 'docker-default (enforce)'
seems apparmor "a profile" warning \
    'the profile docker-default \(enforce\) confines this, .* => .*aa-exec -p unconfined.*'
put sys/module/apparmor/parameters/enabled Y
like "apparmor: none" "$(at | line apparmor)" '^ok .*active; no profile'
good
put proc/sys/kernel/osrelease 5.15.167.4-microsoft-standard-WSL2
seems machine WSL2 warning \
    'WSL \(5.15.167.4-microsoft-standard-WSL2\): Windows ends it, .* => .*vmIdleTimeout.*'
ns pid 4026532200
: >"$R/.dockerenv"
seems machine "a container" warning \
    'container \(docker\): all sandboxes share its limits .* => run it on the host; .*'
ns user 4026532201
put run/systemd/container lxc
seems machine "a container of users" warning 'container \(lxc\): .*'' => .*'
: >"$R/.dockerenv"
like "machine: an image that was booted is none" "$(at | line machine)" \
    '^ok .*no virtual machine, no container$'
put proc/cpuinfo 'flags		: fpu hypervisor lahf_lm'
put sys/class/dmi/id/sys_vendor QEMU
seems machine "a virtual machine, told" \
    ok 'a virtual machine \(QEMU\), which is enough; sandboxes slow down when its own host is busy'
put proc/sys/fs/suid_dumpable 1
seems dumpable "set" warning \
    'fs.suid_dumpable is 1: .* => sysctl -w fs.suid_dumpable=0'
put proc/sys/kernel/pid_max 32768
seems pid-max "too few" warning \
    '32768: 8 sandboxes at their limit of 4096 processes use it up; max-boxes is 1000 => sysctl -w kernel.pid_max=4194304'
rm "$R/proc/sys/kernel/pid_max"
seems pid-max "not there" failed 'kernel.pid_max cannot be read => mount /proc'
put proc/sys/fs/file-max 100000
seems file-max "too few" warning \
    '100000: one sandbox .* => sysctl -w fs.file-max=9223372036854775807'
put proc/meminfo 'MemAvailable:   1000000 kB'
seems memory "too little" warning \
    '976 MiB free, less than the 2048 MiB of one sandbox => add memory, or set default-memory'
put proc/stat 'btime 0'
seems clock "unset" failed 'it is 1000 seconds since 1970, .* => set it .*'
chmod 775 "$R/var/lib/workbox"
seems state "others can write it" failed \
    '.*/var/lib/workbox: expected a directory that only root can write => chown root .* && chmod go-w .*/var/lib/workbox'
for t in tmpfs nfs4 9p; do
	put proc/self/mounts "none /sys/fs/cgroup cgroup2 rw,favordynmods 0 0
/dev/sda1 / ext4 rw 0 0
none /var/lib $t rw 0 0"
	seems filesystem "$t" warning \
	    "/var/lib/workbox is on $t, which .* => a state directory on ext4, xfs or btrfs"
done
put proc/self/mounts "none /sys/fs/cgroup cgroup2 rw,favordynmods 0 0
/dev/sda1 / zfs rw 0 0
none /var/lib/work ext4 rw 0 0"
seems filesystem "one that nobody has tried" warning \
    "/var/lib/workbox is on zfs, which nobody has tried => .*"
put etc/workbox/workbox.conf 'disk-floor = 8T'
seems disk "too little" failed \
    '[0-9]+ MiB free at .*; creates are refused below 8388608 MiB => free space, or set disk-floor'
chmod 666 "$R/etc/workbox/workbox.conf"
seems config "others can write it" failed \
    '/etc/workbox/workbox.conf: expected a file that only root can write => chown root .* && chmod go-w .*'
chmod 777 "$R/etc/workbox"
seems config "others can replace it" failed \
    '/etc/workbox: expected a directory that only root can write => .*chmod go-w /etc/workbox'
chmod 604 "$R/etc/workbox/token"
seems token "others can read it" warning \
    '/etc/workbox/token: others than root .* => chown root /etc/workbox/token && chmod 600 /etc/workbox/token'
chown 201 "$R/etc/workbox/token"
seems token "it is another's" warning \
    '/etc/workbox/token: others than root .* => .*'
echo '0123456789abcdef 0123456789abcdef' >"$R/etc/workbox/token"
seems token "a blank in it, as serve refuses it" warning \
    '/etc/workbox/token: expected a key of 16 to 255 .* => .*'
: >"$R/etc/workbox/token"
seems token "it is empty" warning \
    '/etc/workbox/token: expected a key of 16 to 255 .* => \(umask 077; openssl rand -hex 24 >/etc/workbox/token\)'
put etc/workbox/workbox.conf 'listen = {"192.0.2.1:8790"}'
seems tls "plain HTTP beyond the loopback" failed \
    '192.0.2.1:8790: expected a loopback address for plain HTTP => tls-certificate and tls-key, or, .*plain-http-beyond-loopback = yes'
put etc/workbox/workbox.conf 'listen = {"192.0.2.1:8790"}
plain-http-beyond-loopback = yes'
seems tls "it is wanted so" warning \
    'the key of the API crosses the network in clear at 192.0.2.1:8790, .* => tls-certificate and tls-key, .*'
put etc/workbox/workbox.conf 'tls-certificate = /etc/cert
tls-key = /etc/key'
seems tls "no file" failed \
    'tls-certificate: /etc/cert: No such file or directory => a file that root can read'
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 \
    -subj /CN=x -keyout "$R/etc/key" -out "$R/etc/cert" 2>/dev/null
cp "$R/etc/key" "$R/etc/cert" "$work"
put etc/workbox/workbox.conf 'tls-certificate = /etc/cert
tls-key = /etc/key'
seems tls "it ends soon" warning \
    'tls-certificate: /etc/cert: it ends in [89] days: CN = x, .* => a new certificate'
chmod 644 "$work/key"
cp "$work/key" "$work/cert" "$R/etc"
put etc/workbox/workbox.conf 'tls-certificate = /etc/cert
tls-key = /etc/key'
seems tls "others can read the key" failed \
    'tls-key: /etc/key: others than its owner can read it => chmod 600 /etc/key'
echo x >>"$R/var/lib/workbox/runtime/wb"
seems runtime "not whole" warning \
    '.*/runtime/wb is not what SHA256SUMS says => workbox runtime install'
rm -r "$R/var/lib/workbox/rootfs/minimal"
seems rootfs "none" warning \
    'there is no default root file system in .* => workbox rootfs build minimal, .*'

# ---- what --root must not do
mkdir "$work/outside"
echo 'alice:1879048192:1' >"$work/outside/subuid"
ln -sfn "$work/outside/subuid" "$R/etc/subuid"
like "no link leads out" "$(at | line uid-ranges)" '^ok '
good
mkdir -p "$work/outside/workbox" "$R/run/systemd"
ns pid 1
for l in C C.UTF-8; do
	printf '\033[31mevil\001\302\233\342\200\256\377' \
	    >"$R/run/systemd/container"
	out=$(LC_ALL=$l at --format json)
	is "what is no text ends neither a terminal nor JSON, $l" \
	    "$(printf '%s' "$out" |
	    jq -r '.checks[] | select(.name == "machine") | .detail' | cut -d: -f1)" 'container (\x1b[31mevil\x01\u009b\u202e\xff)'
	like "as every command has it, $l" "$(LC_ALL=$l at | line machine)" \
	    'container \(\\x1b\[31mevil\\x01\\u009b\\u202e\\xff\)'
done
good
# links to what is good, were it followed
ln -sfn "$WB_PREFIX/libexec/workbox/stored" "$work/outside/stored"
ln -sfn "$work/outside/stored" "$R$WB_PREFIX/libexec/workbox/stored"
seems programs "one is a link out" failed \
    '.*/stored: No such file or directory => .*'
for f in SHA256SUMS wb; do
	cp "$R/var/lib/workbox/runtime/$f" "$work/outside/$f"
	ln -sfn "$work/outside/$f" "$R/var/lib/workbox/runtime/$f"
	seems runtime "$f is a link out" warning \
	    ".*/runtime(/SHA256SUMS: Too many levels of symbolic links|/wb is not what SHA256SUMS says) => .*"
done
cp "$R/sys/fs/cgroup/cgroup.controllers" "$work/outside/controllers"
ln -sfn "$work/outside/controllers" "$R/sys/fs/cgroup/cgroup.controllers"
seems cgroup "a link out" failed 'neither the v2 tree at /sys/fs/cgroup nor .*'
ln -sfn "$work/outside" "$R/var/lib/workbox/rootfs/default"
seems rootfs "a link out" warning 'there is no default root file system in .*'
ln -sfn ../../outside "$R/var/lib/workbox/rootfs/default"
seems rootfs "a link up" warning 'there is no default root file system in .*'
cp -a "$R/var/lib/workbox" "$work/outside"
rm -r "$R/var/lib"
ln -s "$work/outside" "$R/var/lib"
like "the state directory lies behind a link out" "$(at | line state)" \
    '^warning .* is not there => workbox runtime install$'
like "and nothing of it is seen" "$(at | line runtime)" \
    '^warning .*: No such file or directory => '
good
# what makes its reader wait, has no end, or is nothing of that system's: a
# device without a driver, which only its opening would tell
for f in etc/passwd etc/group etc/subuid etc/workbox/token proc/stat \
    proc/uptime proc/meminfo proc/cpuinfo \
    proc/self/mounts proc/self/attr/current sys/fs/cgroup/cgroup.controllers \
    var/lib/workbox/runtime/SHA256SUMS var/lib/workbox/runtime/wb \
    etc/workbox/workbox.conf; do
	for k in fifo zeros node; do
		rm "$R/$f"
		case $k in
		fifo) mkfifo "$R/$f" ;;
		zeros) truncate -s 1T "$R/$f" ;;
		node) mknod "$R/$f" c 60 0 ||
		    { skip "$f: no device nodes"; good; continue; } ;;
		esac
		out=$(timeout -k 5 20 "$WB_BIN" doctor --root "$R" \
		    </dev/null 2>&1)
		r=$?
		case $k,$out in
		*'No such device'*) fail "$f: the node was opened" "$out" ;;
		esac
		case $f,$r in
		*.conf,2|*[!f],[01]) pass "$f: a $k" ;;
		*) fail "$f: a $k" "exit $r" "$out" ;;
		esac
		good
	done
done
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	rm "$R/etc/passwd"
	mknod "$R/etc/passwd" c 1 3
	timeout -k 5 60 strace -f -qq -o "$work/opens" -e \
	    trace=open,openat,openat2 "$WB_BIN" doctor --root "$R" >/dev/null \
	    2>&1 </dev/null
	like "a node is looked at" "$(cat "$work/opens")" \
	    '"/etc/passwd", \{flags=[A-Z_|]*O_PATH'
	is "and not opened" \
	    "$(grep '/etc/passwd"' "$work/opens" | grep -v O_PATH)" ''
	good
	# a root that gets another name on the way
	timeout -k 5 60 strace -qq -o /dev/null -e trace=openat2 -e \
	    inject=openat2:delay_enter=3000000:when=1 "$WB_BIN" doctor \
	    --root "$R" >"$work/moved" 2>&1 </dev/null &
	t=$!
	rooted() {
		for p in $(descendants $t); do readlink "/proc/$p/fd"/*; done \
		    2>/dev/null | grep -qx "$R"
	}
	await rooted && pass "a root is open" || fail "no root is open"
	mv "$R" "$work/elsewhere.root"
	wait $t
	is "a root that is moved: exit code" "$?" 2
	is "is told" "$(cat "$work/moved")" \
	    "workbox doctor: state-dir /var/lib/workbox below --root: expected to lie in $R, not at $work/elsewhere.root/var/lib/workbox"
	rm -r "$work/elsewhere.root"
	good
else
	skip "which files are opened: no strace"
fi
is "--root / is this system" "$(doctor --root / | line filesystem)" \
    "$(doctor | line filesystem)"
put proc/stat "cpu 1 2 3
intr $(head -c 100000 /dev/zero | tr '\0' 7)
btime 1790000000"
like "a line of any length may come first" "$(at | line clock)" '^ok '
good
no "a root that is not there" 2 "$WB_BIN" doctor --root "$work/nothing"
is "is named" "$out" \
    "workbox doctor: --root $work/nothing: No such file or directory"
put etc/workbox/workbox.conf 'nonsense = 1'
no "a configuration there that is wrong" 2 "$WB_BIN" doctor --root "$R"
like "is told with its place" "$out" \
    "^workbox doctor: $R/etc/workbox/workbox.conf:1: .*nonsense"
good
no "a command line that is wrong" 125 "$WB_BIN" doctor --format yaml
no "no root, no tries" 2 setpriv --reuid 65534 --regid 65534 \
    --clear-groups "$WB_BIN" doctor
setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null &&
    like "which is said" "$out" \
    'expected to be run as root|Permission denied|failed to execute'

# ---- as JSON
out=$(at --format json)
is "the shape" "$(printf '%s' "$out" | jq -c '[.checks[] | keys] | unique')" \
    '[["cure","detail","name","status"]]'
is "every status is one of four" \
    "$(printf '%s' "$out" |
    jq -r '[.checks[].status] | unique | map(select(. != "ok" and . != "warning" and . != "failed" and . != "skipped")) | length')" 0
is "the counts count" \
    "$(printf '%s' "$out" | jq -c '[.ok, .warning, .failed, .skipped]')" \
    "$(printf '%s' "$out" |
    jq -c '[.checks[].status] as $s | ["ok", "warning", "failed", "skipped"] | map(. as $w | $s | map(select(. == $w)) | length)')"

# ---- faults of the running system: capabilities, mounts, limits
without() {	# capability
	setpriv --bounding-set "-$1" --inh-caps "-$1" timeout -k 5 60 \
	    "$WB_BIN" doctor --config "$conf" </dev/null 2>&1
}
fault capabilities "one is taken away" failed \
    'root lacks CAP_SETFCAP => run where root has it: .*' "$(without setfcap)"
refuses capabilities 'root lacks CAP_SETFCAP' setpriv \
    --bounding-set -setfcap --inh-caps -setfcap "$WB_BIN" serve --config "$conf"

# In a mount namespace of its own: first what is mounted, then the program.
mounted() {	# shell-commands program args...
	m=$1; shift
	unshare -m --propagation private sh -c \
	    "$m"' || exit 99; exec timeout -k 5 60 "$@"' sh "$@" </dev/null 2>&1
}
some=$(for p in /proc/scsi /proc/acpi /proc/fs /proc/driver; do [ -d "$p" ] &&
    echo $p; done | head -n 1)
fault nested "a part of /proc is covered" failed \
    'proc in a user namespace: Operation not permitted => .*umount what covers a part of /proc.*' \
    "$(mounted "mount -t tmpfs none $some" "$WB_BIN" doctor --config "$conf")"
refuses nested 'proc in a user namespace: Operation not permitted' unshare -m \
    --propagation private sh -c 'mount -t tmpfs none "$1"; shift; exec "$@"' \
    sh "$some" "$WB_BIN" serve --config "$conf"
mkdir "$work/ram"
fault overlay "a file system that is not idmapped" failed \
    'idmapped mount: Invalid argument => a state directory on ext4, xfs or btrfs .*' \
    "$(mounted "mount -t ramfs none $work/ram" "$WB_BIN" doctor \
    --config "$conf" --state "$work/ram/state")"
fault overlay "a container's own layer" failed \
    'idmapped mount: Invalid argument => .*' \
    "$(mounted "mount -t tmpfs none $work/ram && mkdir $work/ram/u $work/ram/w $work/ram/m && mount -t overlay -o lowerdir=$WB_STATE,upperdir=$work/ram/u,workdir=$work/ram/w none $work/ram/m" "$WB_BIN" doctor --config "$conf" --state "$work/ram/m")"
refuses overlay 'idmapped mount: Invalid argument' unshare -m --propagation \
    private sh -c 'mount -t ramfs none "$1" && mkdir "$1/s"; s=$1/s; shift; exec "$@" --state "$s" --socket none' sh "$work/ram" "$WB_BIN" serve --config "$conf"
no_inodes="mount -t tmpfs -o nr_inodes=100 none $work/ram && i=0"'; while (: >'"$work/ram"'/$i) 2>/dev/null; do i=$((i + 1)); done'
out=$(mounted "$no_inodes" "$WB_BIN" doctor --config "$conf" \
    --state "$work/ram/state")
like "overlay: no inodes are no proof against it" \
    "$(printf '%s\n\n' "$out" | line overlay)" \
    "^warning overlay: not tried: the file system of $work/ram is full: .*No space left on device => free space and inodes .*"
fault disk "no inodes" failed \
    "0 of 100 inodes free at $work/ram; creates are refused below [0-9]+ => remove files or sandboxes, or make the file system with more inodes" "$out"
like "overlay: serve warns, and goes on to what it finds next" \
    "$(mounted "$no_inodes" "$WB_BIN" serve --config "$conf" --socket none \
    --state "$work/ram/state")" "^workbox serve: warning: overlay: not tried: the file system of $work/ram is full: "
fault filesystem "and of the running system" warning \
    "$work/ram is on ramfs, which lives in memory: .* => .*" \
    "$(mounted "mount -t ramfs none $work/ram" "$WB_BIN" doctor \
    --config "$conf" --state "$work/ram/state")"
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
fault limits "the tree cannot be written" failed \
    'mkdir in .*: Read-only file system => mount the cgroup tree so that it can be written .*' \
    "$(mounted "mount --bind $v2 $v2 && mount -o remount,bind,ro $v2" \
    "$WB_BIN" doctor --config "$conf")"
refuses limits 'mkdir in .*: Read-only file system' unshare -m --propagation \
    private sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"; shift; exec "$@"' sh "$v2" "$WB_BIN" serve --config "$conf"
refuses cgroup '(v1 alone: )?there is no cgroup v2 tree' unshare -m \
    --propagation private sh -c 'umount -l "$1"; shift; exec "$@"' sh "$v2" \
    "$WB_BIN" serve --config "$conf"
fault tun "the device is another" warning \
    'tun device: Inappropriate ioctl for device => modprobe tun .*' \
    "$(mounted 'mount --bind /dev/null /dev/net/tun' "$WB_BIN" doctor \
    --config "$conf")"
fault tun "there is none" warning \
    '/dev/net/tun: No such file or directory => modprobe tun .*' \
    "$(mounted 'mount -t tmpfs none /dev/net' "$WB_BIN" doctor \
    --config "$conf")"
if [ -e /usr/bin/slirp4netns ]; then
	fault slirp4netns "it does not run" warning \
	    'it does not run => install the package slirp4netns; .*' \
	    "$(mounted 'mount --bind /bin/false /usr/bin/slirp4netns' \
	    "$WB_BIN" doctor --config "$conf")"
else
	skip "a slirp4netns that does not run: there is none"
fi
refuses programs '.*/netd: No such file or directory' unshare -m --propagation \
    private sh -c 'mkdir "$1/few"; cp "$2"/[!n]* "$1/few"; mount --bind "$1/few" "$2"; shift 2; exec "$@"' sh "$work" "$WB_PREFIX/libexec/workbox" "$WB_BIN" serve --config "$conf"
grep -v '^_workbox-apid:' /etc/passwd >"$work/passwd"
refuses users 'there is no user _workbox-apid' unshare -m --propagation \
    private sh -c 'mount --bind "$1" /etc/passwd; shift; exec "$@"' sh \
    "$work/passwd" "$WB_BIN" serve --config "$conf"
cp /etc/passwd "$work/passwd"
echo "frank:x:$WB_UIDS:100::/:/bin/sh" >>"$work/passwd"
refuses uid-ranges \
    "the user database gives $WB_UIDS-$WB_UIDS to frank; net-uid-base .*" \
    unshare -m --propagation private sh -c \
    'mount --bind "$1" /etc/passwd; shift; exec "$@"' sh "$work/passwd" \
    "$WB_BIN" serve --config "$conf"
# a process of another has them, or is in the cgroup
setpriv --reuid $((WB_UIDS + 65536 + 7)) --regid 65534 --clear-groups sleep \
    600 &
stranger=$!
alien() { [ "$(ps -o comm= -p $stranger)" = sleep ]; }
await alien || fail "no process with a uid of sandboxes"
fault uid-ranges "a process has one" failed \
    "process $stranger in cgroup /.* has uid $((WB_UIDS + 65543)); uid-base stands for $((WB_UIDS + 65536))-$((WB_UIDS + 16777215)) => set uid-base to uids that no other server has, or end process $stranger: kill -KILL $stranger" "$(doctor)"
refuses uid-ranges \
    "process $stranger in cgroup /.* has uid $((WB_UIDS + 65543)); uid-base .*" "$WB_BIN" serve --config "$conf"
kill $stranger
wait $stranger 2>/dev/null
sleep 600 &
stranger=$!
g=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)/$WB_CGROUP
other=01JAAAAAAAAAAAAAAAAAAAAAAA
mkdir -p "$g/$other/box"
echo $stranger >"$g/$other/box/cgroup.procs"
lies="process $stranger lies in cgroup /.*$WB_CGROUP/$other/box, and $WB_STATE has no such sandbox"
fault uid-ranges "a sandbox of another state directory is in the cgroup" \
    failed "$lies => set cgroup to a name that no other server has, or end process $stranger: kill -KILL $stranger" "$(doctor)"
refuses uid-ranges "$lies" "$WB_BIN" serve --config "$conf"
mkdir -p "$WB_STATE/sandboxes/$other"
like "uid-ranges: not one of ours" "$(doctor | line uid-ranges)" '^ok '
rmdir "$WB_STATE/sandboxes/$other" "$WB_STATE/sandboxes"
kill $stranger
wait $stranger 2>/dev/null
rmdir "$g/$other/box" "$g/$other" "$g"
chmod 666 "$conf"
refuses config "$conf: expected a file that only root can write" "$WB_BIN" \
    serve --config "$conf"
chmod 644 "$conf"
sed "\$atls-certificate = \"$work/cert\"" "$conf" >"$work/tls.conf"
echo "tls-key = \"$work/key\"" >>"$work/tls.conf"
refuses tls "tls-key: $work/key: others than its owner can read it" \
    "$WB_BIN" serve --config "$work/tls.conf"
mkdir -m 777 "$work/open"
cp -r "$WB_STATE/runtime" "$work/open/runtime"
refuses state "$work/open: expected a directory that only root can write" \
    "$WB_BIN" serve --config "$conf" --state "$work/open" --socket none
is "and nothing was made there" "$(ls -A "$work/open")" runtime
sed 's/^max-boxes = .*/max-boxes = 4096/' "$conf" >"$work/many.conf"
few() {
	prlimit --nofile=4096:4096 \
	    setpriv --bounding-set -sys_resource --inh-caps -sys_resource \
	    timeout -k 5 60 "$@" </dev/null 2>&1
}
fault descriptors "too few" failed \
    'the hard limit is 4096, max-boxes needs 24848 => raise the hard limit .* or lower max-boxes' "$(few "$WB_BIN" doctor --config "$work/many.conf")"
sed 's/^max-boxes = .*/max-boxes = 255/' "$conf" >"$work/less.conf"
fault descriptors "too few for proxyd" warning \
    'the hard limit is 4096, proxyd needs 65536 .*egress-connections' \
    "$(few "$WB_BIN" doctor --config "$work/less.conf")"
refuses descriptors 'the hard limit is 4096, .*' prlimit --nofile=4096:4096 \
    setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$WB_BIN" \
    serve --config "$work/many.conf"

# In a user namespace with every id: what root of a container sees.
inside() {	# shell-commands program args...
	i=$1; shift
	mkfifo "$work/up" "$work/go"
	timeout -k 5 60 unshare -U -m sh -c \
	    "echo up >\"$work/up\"; read -r _ <\"$work/go\"; "'exec sh -c "$@"' sh "$i || exit 99; "'exec "$0" "$@"' "$@" </dev/null 2>&1 &
	u=$!
	read -r _ <"$work/up"
	p=$(pgrep -P "$u")
	echo '0 0 4294967295' >"/proc/$p/uid_map" &&
	    echo '0 0 4294967295' >"/proc/$p/gid_map"
	echo go >"$work/go"
	wait "$u"
	r=$?
	rm "$work/up" "$work/go"
	return $r
}
fault namespaces "no user namespace" failed \
    'user namespace: No space left on device => sysctl -w user.max_user_namespaces=530' \
    "$(inside 'echo 0 >/proc/sys/user/max_user_namespaces' "$WB_BIN" doctor \
    --config "$conf")"
fault namespaces "no network namespace" failed \
    'network namespace: No space left on device => a kernel with this kind of namespace; sysctl -a -r user.max_ .*' \
    "$(inside 'echo 0 >/proc/sys/user/max_net_namespaces' "$WB_BIN" doctor \
    --config "$conf")"
out=$(inside 'echo 0 >/proc/sys/user/max_user_namespaces' "$WB_BIN" serve \
    --config "$conf")
is "namespaces: serve refuses" "$?" 125
refused="$refused namespaces "
like "namespaces: by name" "$out" \
    '^workbox serve: namespaces: user namespace: No space left on device$'
like "namespaces: and with the cure" "$out" \
    '^workbox serve: cure: sysctl -w user.max_user_namespaces=530$'
out=$(inside : "$WB_BIN" doctor --config "$conf")
fault overlay "the host's file system in a container" failed \
    'idmapped mount: Operation not permitted => .*mounted by the host \(not by a container\).*' "$out"
fault machine "of the running system" warning 'container \(.*\): .* => .*' \
    "$out"

# ---- what the kernel does not have: the call fails
if ! command -v strace >/dev/null ||
    ! strace -o /dev/null true 2>/dev/null; then
	skip "calls that fail: no strace"
	seen="$seen seccomp landlock peerpidfd nftables denials relay clock "
	refused="$refused seccomp landlock peerpidfd nftables "
else
	inject() {	# call:how program args...
		j=$1; shift
		timeout -k 5 90 strace -f -qq -o /dev/null -e "trace=${j%%:*}" \
		    -e "inject=$j" "$@" </dev/null 2>&1
	}
	fails() {	# name pattern call:how
		fault "$1" "no $3" failed "$2 => $4" \
		    "$(inject "$3" "$WB_BIN" doctor --config "$conf")"
		refuses "$1" "$2" strace -f -qq -o /dev/null -e \
		    "trace=${3%%:*}" -e "inject=$3" "$WB_BIN" serve \
		    --config "$conf"
	}
	fails seccomp 'seccomp action kill-process: Operation not supported' \
	    seccomp:error=EOPNOTSUPP 'a kernel with CONFIG_SECCOMP_FILTER'
	fails landlock 'Landlock: Operation not supported' \
	    landlock_create_ruleset:error=EOPNOTSUPP \
	    'boot with landlock in lsm=, or landlock = none in the configuration'
	fails nftables 'netfilter by netlink: Protocol not supported' \
	    socket:error=EPROTONOSUPPORT \
	    'a kernel with nf_tables .*, or netfilter = none for sandboxes without a network'
	out=$(inject sendto:error=EOPNOTSUPP:when=2 "$WB_BIN" doctor \
	    --config "$conf")
	fault denials "no NFLOG" warning \
	    'NFLOG: Operation not supported => .*modprobe nfnetlink_log.*' \
	    "$out"
	like "denials: that alone is no reason against allowlist's way" \
	    "$(echo "$out" | line relay)" '^ok '
	fault relay "no netfilter" warning \
	    'netfilter by netlink: Operation not supported => .*nft_tproxy.*' \
	    "$(inject sendto:error=EOPNOTSUPP "$WB_BIN" doctor \
	    --config "$conf")"
	out=$(timeout -k 5 90 strace -f -qq -o /dev/null -e \
	    trace=getsockopt,pidfd_open -e inject=getsockopt:error=ENOPROTOOPT \
	    -e inject=pidfd_open:error=ENOSYS "$WB_BIN" doctor \
	    --config "$conf" </dev/null 2>&1)
	fault peerpidfd "neither way" failed \
	    'pidfd_open: Function not implemented => kernel 6.1 or later' "$out"
	refuses peerpidfd 'pidfd_open: Function not implemented' strace -f -qq \
	    -o /dev/null -e trace=getsockopt,pidfd_open -e \
	    inject=getsockopt:error=ENOPROTOOPT \
	    -e inject=pidfd_open:error=ENOSYS "$WB_BIN" serve --config "$conf"
	like "peerpidfd: the older way" \
	    "$(inject getsockopt:error=ENOPROTOOPT "$WB_BIN" doctor --config \
	    "$conf" | line peerpidfd)" '^ok .*this kernel has no SO_PEERPIDFD'
	fault overlay "no overlayfs" failed \
	    'overlayfs over an idmapped layer: No such device => .*overlayfs \(modprobe overlay\)' "$(inject mount:error=ENODEV:when=2 "$WB_BIN" doctor --config "$conf")"
	(cat "$conf"; echo 'landlock = "none"'; echo 'netfilter = "none"') \
	    >"$work/none.conf"
	like "landlock: configured without" \
	    "$(inject landlock_create_ruleset:error=ENOSYS "$WB_BIN" doctor \
	    --config "$work/none.conf" | line landlock)" '^warning .* => configured with landlock none'
	like "nftables: configured without" \
	    "$(inject socket:error=EPROTONOSUPPORT "$WB_BIN" doctor --config \
	    "$work/none.conf" | line nftables)" '^warning .* => configured with netfilter none'
	fault clock "nothing keeps it" warning \
	    'nothing keeps it synchronised: .* => let chrony or systemd-timesyncd keep it' "$(inject clock_adjtime,adjtimex:error=EPERM "$WB_BIN" doctor --config "$conf")"

	# ---- an interrupt in the middle of a check
	timeout -k 5 90 strace -f -qq -o /dev/null -e trace=move_mount -e \
	    inject=move_mount:delay_enter=8000000 "$WB_BIN" doctor \
	    --config "$conf" >"$work/int" 2>&1 </dev/null &
	t=$!
	await sh -c "ls -A '$WB_STATE' | grep -q '^.build-'" &&
	    pass "a check is at work" || fail "no check at work"
	for c in $(descendants $t); do
		[ "$(readlink "/proc/$c/exe")" = "$WB_BIN" ] &&
		    { kill -TERM "$c"; break; }
	done
	wait $t
	is "is interrupted" "$?" 143
	is "and has undone what it did" "$(ls -A "$WB_STATE" | grep build-)" ''
	is "before it told the rest" "$(line limits <"$work/int")" ''
	# killed while the process that makes a user namespace waits for its end
	timeout -k 5 60 strace -f -qq -o /dev/null -e trace=kill -e \
	    inject=kill:delay_enter=3000000 "$WB_BIN" doctor --config "$conf" \
	    >"$work/int" 2>&1 </dev/null &
	t=$!
	below_doctor() { [ "$(descendants $t | wc -l)" -ge 4 ]; }
	await below_doctor && pass "a try is at work" || fail "no try at work"
	left=$(descendants $t)
	for c in $left; do
		[ "$(readlink "/proc/$c/exe")" = "$WB_BIN" ] &&
		    { kill -KILL "$c"; break; }
	done
	gone() {
		for c in $left; do ! kill -0 "$c" 2>/dev/null || return 1; done
	}
	await gone && pass "a killed one takes its processes along" ||
	    { fail "a killed one leaves processes"; kill -KILL $left; }
	wait $t
fi
mkdir "$WB_STATE/.build-deadbeef" "$v2/workbox-doctor-2147483000"
doctor >/dev/null
is "what a killed one left goes with the next" \
    "$(ls -A "$WB_STATE" | grep build-; ls "$v2" | grep doctor-2147483000)" ''

# ---- the table
for n in $rows; do
	case $seen in *" $n "*) pass "$n has a fault here" ;;
	    *) fail "no fault is made for $n" ;; esac
done
fatal=$(sed \
    -n 's/^CHECK("\([a-z0-9-]*\)", C_FATAL.*/\1/p' "$top/workbox/checks.def")
for n in $fatal; do
	case $refused in *" $n "*) pass "serve's refusal by $n is seen" ;;
	    *) fail "serve's refusal by $n is not seen" ;; esac
done
await no_cgroup && pass "no cgroup is left" || fail "left" \
    "$(ls -d /sys/fs/cgroup/workbox-doctor-* /sys/fs/cgroup/*/workbox-doctor-*)"
is "nor anything in the state directory" "$(ls -A "$WB_STATE" | tr '\n' ' ')" \
    'rootfs runtime '

# ---- a command line that is wrong
no "a cgroup that is no path below" 125 "$WB_BIN" doctor --config "$conf" \
    --cgroup ../x
no "a configuration that is not there: nothing can be checked" 2 "$WB_BIN" \
    doctor --config "$work/none"

# ---- doctor --bundle: a secret in every place, and in none of what is saved
unset WORKBOX_TOKEN
WB_TOKEN=canary-token-$(new_token)
box_serve
conf=$work/workbox.conf
echo '# canary-comment' >>"$conf"
c=canary
ok "a box" wb create --name $c-name --network none --label $c-label=$c-value \
    --env CANARY=$c-boxenv
box=$c-name
echo $c-stdin | wb exec $box --env E=$c-env -- sh -c \
    "cat >/root/$c-file; echo $c-output; : $c-argv" >/dev/null
wb run $box --name $c-session -- sh -c "echo $c-later; exec sleep 3600" >/dev/null
wb exec $box -- sh -c "mkdir /root/$c-dir; exec $c-missing" >/dev/null 2>&1
sup=$work/support.tar.gz
ok "a bundle" doctor --bundle "$sup"
is "is its owner's alone" "$(stat -c %a "$sup")" 600
no "and no file that is there" 125 doctor --bundle "$sup"
no "nor of another system" 125 doctor --bundle "$sup.2" --root "$work"
mkdir "$work/sup" && tar -xzf "$sup" -C "$work/sup"
d=$work/sup/workbox-support
found=$(grep -rail "$c" "$d"; find "$d" -iname "*$c*"; grep -raoi "canary.*" "$d" | head -n 5)
is "no secret of any place is in it" "$found" ''
wb inspect $box >"$work/control"
is "control: so it would be found" "$(grep -ail "$c" "$work/control")" \
    "$work/control"
is "nor the key in another form" "$(grep -ral "$(printf %s "$WB_TOKEN" | base64 -w 0 | cut -c 1-40)" "$d")" ''
for f in doctor.json versions.json configuration.json mounts.txt cgroups.txt \
    server.json sandboxes.json metrics.txt manifest.json; do
	[ -s "$d/$f" ] && pass "it has $f" || fail "it has no $f"
done
is "with doctor's results" "$(jq '.checks | length' "$d/doctor.json")" \
    "$(printf '%s\n' "$rows" | wc -l)"
is "the box by its id" "$(jq -r '.[].id' "$d/sandboxes.json")" \
    "$(wb inspect $box | field id)"
like "its control groups" "$(cat "$d/cgroups.txt")" \
    "/$(wb inspect $box | field id)/box/(pids.max|cgroup.events)"
is "its state" "$(jq -r '.[].state' "$d/sandboxes.json")" READY
like "metrics of it, without its name" "$(grep '^workbox_sandbox_' "$d/metrics.txt")" \
    '^workbox_sandbox_[a-z_]*[{]id="[0-9A-Z]{26}"[}] '
is "the configuration as it is understood" \
    "$(jq -r '."state-dir"' "$d/configuration.json")" "$WB_STATE"
bad=$(jq -r '.members | to_entries[] | .value.sha256 + "  " + .key' \
    "$d/manifest.json" | (cd "$d" && sha256sum -c --quiet 2>&1))
is "each member is what the manifest says" "$bad" ""
like "to standard output, nothing but the archive" \
    "$(doctor --bundle - 2>/dev/null | tar -tz | tail -n 1)" 'manifest.json$'
(WORKBOX_SERVER=http://127.0.0.1:1; doctor --bundle "$sup.3") >/dev/null 2>&1
like "where no server answers, that is told" \
    "$(tar -xzOf "$sup.3" workbox-support/manifest.json | jq -r .missing.server)" \
    'did not answer'
# of a log, the daemons' lines alone: planted where nobody else sees it
cat >"$work/planted.log" <<-EOF
	2026-01-01T00:00:00Z privd[12]: info: planted one
	reader[13]: warning: planted two
	apid[14]: debug: $c-debug
	sshd[15]: info: $c-other
	hookd[16]: info: $c-nobody
	$c-plain
EOF
ok "a bundle where there is a log" unshare -m sh -c "mount -t tmpfs none /var/log &&
    cp '$work/planted.log' /var/log/workbox.log &&
    exec timeout -k 5 60 '$WB_BIN' doctor --config '$conf' --bundle '$sup.4'"
tar -xzOf "$sup.4" workbox-support/log/workbox.log >"$work/told.log"
is "of which the daemons' lines are told" "$(cat "$work/told.log")" \
    "$(head -n 2 "$work/planted.log")"
is "control: the canary was in it" "$(grep -c "$c" "$work/planted.log")" 4
# the name in force is not that of the configuration
sed "s/^cgroup = .*/cgroup = \"wb-not-this\"/" "$conf" >"$work/other.conf"
"$WB_BIN" doctor --config "$work/other.conf" --bundle "$sup.5" >/dev/null 2>&1 </dev/null
like "its control group, by the name in force" \
    "$(tar -xzOf "$sup.5" workbox-support/cgroups.txt)" \
    "/$(wb inspect $box | field id)/box/pids.max: "
ok "remove" wb rm $box --grace 0

# ---- nothing to suggest, and why
ok "a box without a list" wb create --name nolist --network none
like "what it lacked" "$(wb denials nolist --suggest 2>&1)" \
    'nothing to suggest: the network is none, which has no list'
ok "remove" wb rm nolist --grace 0
box_done
