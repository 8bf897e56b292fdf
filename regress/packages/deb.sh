#!/bin/sh
# deb.sh: the Debian package, from `make dist' on: built, looked at by lintian,
# and in a Debian of its own installed, upgraded, removed, installed again and
# purged, with a sandbox in it that is to notice nothing before the purge.
# WB_BUILD: a build directory.
. "$(dirname "$0")/../box/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds a package (long lane)"; exit 77; }
for c in dpkg-buildpackage dh lintian mmdebstrap; do
	command -v $c >/dev/null || { echo "skip: no $c"; exit 77; }
done
version=$(sed -n 's/^AC_INIT(\[workbox\], \[\(.*\)\])/\1/p' "$top/configure.ac")
arch=$(dpkg --print-architecture)

# ---- built

ok "make dist" make -s -C "$WB_BUILD" dist
mkdir "$work/src"
tar -xf "$WB_BUILD/workbox-$version.tar.gz" -C "$work/src" \
    --strip-components=1
rm -f "$WB_BUILD/workbox-$version.tar.gz"
is "the package's version is the program's" "$(cd "$work/src" &&
    dpkg-parsechangelog -S Version)" "$version"
ok "dpkg-buildpackage" sh -c "cd '$work/src' && DEB_BUILD_OPTIONS='nocheck
    parallel=$(nproc)' dpkg-buildpackage -us -uc"
deb=$work/workbox_${version}_$arch.deb
[ -f "$deb" ] || box_done
ok "lintian finds no error, nor a warning" lintian --allow-root \
    --fail-on error,warning "$work/workbox_${version}_$arch.changes"
field_of() { dpkg-deb -f "$deb" "$1"; }
lists() {	# class: those of etc/packages that any Debian has anyway left out
	awk -v k="$1" '$1 == k { print $2 }' "$top/etc/packages" |
	    grep -v -x -e autoconf -e automake -e gcc -e libc6-dev -e make
}
words() { tr ',|' '\n\n' | sed 's/^ *//; s/[ (].*//'; }
is "it is built of what etc/packages lists" "$(sed -n \
    '/^Build-Depends:/,/^$/p' "$top/debian/control" |
    sed 's/^Build-Depends://' | words | grep -v -e '^$' -e '^debhelper-' \
    -e '^check$' | sort)" "$(lists build | sort)"
is "and runs with it" "$(for p in $(lists run); do
	{ field_of Depends; field_of Recommends; field_of Suggests; } |
	    words | grep -qxF "$p" || echo "$p"
done)" ''

# A later one: another version, and a runner of another sum.
dpkg-deb -R "$deb" "$work/later"
sed -i "s/^Version: .*/Version: $version+later1/" "$work/later/DEBIAN/control"
printf '\0' >>"$work/later/usr/libexec/workbox/runner"
ok "a later one" dpkg-deb --root-owner-group -b "$work/later" \
    "$work/later.deb"

# ---- a Debian for it

root=$work/root
mmdebstrap --quiet --variant=minbase \
    --include=ca-certificates,busybox-static,procps bookworm "$root" \
    >"$work/mmdebstrap.log" 2>&1 ||
    { tail -n 5 "$work/mmdebstrap.log"; echo "skip: no Debian here"; exit 77; }
cp "$deb" "$root/first.deb"
cp "$work/later.deb" "$root/later.deb"
cp "$top/debian/tests/box" "$root/box"
# What a package asks of systemd, done by hand for workbox.service alone, since
# pid 1 there is none; what is asked is noted.
cat >"$root/usr/local/bin/systemctl" <<'END'
#!/bin/sh
case $1 in --root=*) exec /usr/bin/systemctl "$@" ;; esac
echo "$*" >>/run/asked
verb= unit=
for a; do
	case $a in
	-*)	;;
	*)	[ -n "$verb" ] && unit=$a || verb=$a ;;
	esac
done
up() { kill -0 "$(cat /run/server)"; } 2>/dev/null
stop() {
	up || return 0
	kill "$(cat /run/server)"
	while up; do sleep 0.1; done
}
start() {
	! up || return 0
	rm -f /run/ready
	mkfifo /run/ready
	env -i PATH="$PATH" setsid /usr/bin/workbox serve --ready-fd 5 \
	    </dev/null >>/run/server.log 2>&1 5>/run/ready &
	echo $! >/run/server
	read -r _ </run/ready
}
case "$verb $unit" in
'start workbox.service')	start ;;
'stop workbox.service')		stop ;;
'restart workbox.service')	stop; start ;;
'is-active workbox.service')	up ;;
is-enabled*)			exec /usr/bin/systemctl --root=/ "$@" ;;
daemon-reload*)			;;
*)				exit 1 ;;
esac
END
chmod 755 "$root/usr/local/bin/systemctl"

cat >"$work/enter" <<END
set -e
mount --bind "$root" "$root"
cd "$root"
mount --rbind /sys sys
mount --rbind /dev dev
mount -t proc proc proc
mount -t tmpfs tmpfs run
mkdir run/old
cp -L /etc/resolv.conf etc/resolv.conf
pivot_root . run/old
umount -l run/old
rmdir run/old
echo up
exec >/dev/null 2>&1
# reaps, too
while :; do sleep 3600; done
END
box_after() {
	[ -z "$ns" ] || kill -KILL "$ns"
	for t in /sys/fs/cgroup/"$WB_CGROUP" /sys/fs/cgroup/*/"$WB_CGROUP"; do
		for _ in $(seq 100); do
			[ -d "$t" ] || break
			find "$t" -depth -type d -exec rmdir {} + 2>/dev/null
			sleep 0.05	# for what was killed to be gone
		done
	done
	cp "$root/run/server.log" "$work/serve.log" 2>/dev/null
}
enter "$work/enter" "root of its own"
in_root() {
	nsenter -t "$ns" -m -p env -i -C / LC_ALL=C HOME=/root TMPDIR=/tmp \
	    DEBIAN_FRONTEND=noninteractive \
	    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	    "$@"
}
ok "what it depends on is to be had" in_root sh -c \
    'apt-get update -qq && apt-get satisfy -y -qq --no-install-recommends \
    "$(dpkg-deb -f /first.deb Depends)"'
# All that is there, but what notes that packages came and went.
what() {
	in_root sh -c 'find / -xdev ! -path "/var/lib/dpkg/*" \
	    ! -path "/var/log/*" ! -path "/var/cache/*" \
	    ! -path "/etc/*-" ! -path "/etc/.pwd.lock" ! -path /var/lib/dpkg \
	    -printf "%p %y %m %u\n"
	    cat /etc/passwd /etc/group; ls -A /run' | sort
}
accounts() {
	in_root sh -c 'grep -c "^_workbox-" /etc/passwd
	    grep -c -e "^_workbox-" -e "^workbox:" /etc/group' | tr '\n' ' '
}
asked() { in_root cat /run/asked 2>/dev/null; }
what >"$work/before"

# ---- installed

ok "install, where no init runs" in_root dpkg -i /first.deb
is "users and groups are made" "$(accounts)" '4 5 '
is "the key is root's alone" \
    "$(in_root stat -c '%a %u %s' /etc/workbox/token)" '600 0 48'
is "the runtime is there" "$(in_root sh -c 'cd /var/lib/workbox/runtime &&
    sha256sum --quiet -c SHA256SUMS && echo good')" good
is "the service is enabled, its group is not" "$(in_root sh -c 'cd \
    /etc/systemd/system/multi-user.target.wants && ls -d workbox*')" \
    workbox.service
is "nothing is started" "$(asked)" ''
ok "dpkg finds each file as it was packed" in_root dpkg -V workbox

WB_PORT=$(free_port "${WB_PORT:-18790}")
in_root sh -c 'cat >>/etc/workbox/workbox.conf' <<END
cgroup = "$WB_CGROUP"
listen = {"127.0.0.1:$WB_PORT"}
net-uid-base = $WB_UIDS
uid-base = $((WB_UIDS + 65536))
max-boxes = 255
disk-floor = 67108864
END
workbox() {
	in_root env WORKBOX_SERVER=unix:/run/workbox/api.sock workbox \
	    sandbox "$@"
}
runner() {	# as the host sees it
	cat /sys/fs/cgroup/"$WB_CGROUP"/*/box/runner/cgroup.procs \
	    /sys/fs/cgroup/*/"$WB_CGROUP"/*/box/runner/cgroup.procs 2>/dev/null
}
state_of() {
	workbox inspect "$1" |
	    jq -r '.state + " " + (.health | if type == "object" then .state
	    else . end)'
}
in_root mkdir -p /run/systemd/system
ok "the server starts" in_root systemctl start workbox.service
ok "the package's own test" in_root env \
    WORKBOX_SERVER=unix:/run/workbox/api.sock sh /box

# ---- upgraded

ok "a sandbox" workbox create --name stays
ok "a session that counts" workbox run stays --name count -- sh -c \
    'i=0; while i=$((i + 1)); do echo $i; sleep 0.02; done'
workbox logs stays count --follow >"$work/count" 2>"$work/count.err" &
reader=$!
counted() { [ "$(wc -l <"$work/count")" -gt "$1" ]; }
await counted 10
before=$(runner)
was=$(in_root cat /run/server)
key=$(in_root cat /etc/workbox/token)
sum=$(in_root sha256sum /var/lib/workbox/runtime/runner)
in_root rm -f /run/asked
ok "upgrade, with the sandbox up" in_root dpkg -i /later.deb
is "systemd was asked for the server alone" "$(asked |
    grep -v -e daemon-reload -e is-enabled -e is-active)" \
    '--quiet --system restart workbox.service'
[ "$(in_root cat /run/server)" != "$was" ] && pass "which is another" ||
    fail "it is the one of before"
is "the sandbox is as it was" "$(state_of stays)" 'READY HEALTHY'
is "with the same runner" "$(runner)" "$before"
lines=$(wc -l <"$work/count")
await counted $((lines + 10)) && pass "its session goes on" ||
    fail "its session stands" "$(tail -n 3 "$work/count" "$work/count.err")"
unlike() { [ "$2" != "$3" ] && pass "$1" || fail "$1" "both: $2"; }
unlike "sandboxes from now on have another" \
    "$(in_root sha256sum /var/lib/workbox/runtime/runner)" "$sum"
is "the configuration is the operator's" "$(in_root grep -c "$WB_CGROUP" \
    /etc/workbox/workbox.conf)" 1
is "the key is the same" "$(in_root cat /etc/workbox/token)" "$key"
ok "the new runner makes one, too" in_root env \
    WORKBOX_SERVER=unix:/run/workbox/api.sock sh /box

# ---- removed, and back

kill "$reader"
wait "$reader" 2>/dev/null
in_root rm -f /run/asked
ok "remove, with the sandbox up" in_root dpkg -r workbox
is "systemd was asked for the server alone" "$(asked |
    grep -v daemon-reload)" 'stop workbox.service'
is "no program is left, nor a server" "$(in_root sh -c 'ls -d \
    /usr/bin/workbox /usr/libexec/workbox 2>/dev/null
    pgrep -x privd')" ''
is "the sandbox runs on" "$(runner)" "$before"
is "state, configuration, key and users stay" "$(in_root sh -c 'ls -d \
    /etc/workbox/workbox.conf /var/lib/workbox/db && cat \
    /etc/workbox/token'; accounts)" "/etc/workbox/workbox.conf
/var/lib/workbox/db
$key""4 5 "
ok "install again" in_root dpkg -i /later.deb
is "the sandbox is as it was" "$(state_of stays)" 'READY HEALTHY'
is "with the same runner" "$(runner)" "$before"
rm -f "$work/count"
workbox logs stays count --follow >"$work/count" 2>"$work/count.err" &
reader=$!
await counted "$lines" || fail "the session's output is not all there" \
    "$lines lines, now $(wc -l <"$work/count")" "$(cat "$work/count.err")"
kill "$reader"
wait "$reader" 2>/dev/null
is "its session has lost nothing" \
    "$(awk '$1 != NR { print NR; exit }' "$work/count")" ''

# ---- purged

ok "remove" in_root dpkg -r workbox
mkfifo "$work/held"
in_root flock /var/lib/workbox/lock sh -c 'echo; exec sleep infinity' \
    >"$work/held" &
read -r _ <"$work/held"
no "purge where a server runs" 1 in_root dpkg -P workbox
like "says so" "$out" 'a server still runs on /var/lib/workbox: end it'
is "and takes nothing" "$(in_root ls -d /var/lib/workbox/db; runner)" \
    "/var/lib/workbox/db
$before"
in_root pkill -x sleep -P "$(in_root pgrep -x flock)"
await in_root flock -n /var/lib/workbox/lock true ||
    fail "the lock is still held"
ok "purge, with the sandbox up" in_root dpkg -P workbox
is "the sandbox has ended" "$(runner; find /sys/fs/cgroup -type d \
    -name "$WB_CGROUP")" ''
is "nobody runs as one of its users" "$(ps -eo uid=,args= |
    awk -v u="$WB_UIDS" '$1 >= u && $1 < u + 16777216')" ''
is "no user is left" "$(accounts)" '0 0 '
in_root rm -rf /run/systemd/system /run/asked /run/server /run/ready
in_root mv /run/server.log /server.log
cp "$root/server.log" "$work/serve.log"
in_root rm -f /server.log
what >"$work/after"
diff "$work/before" "$work/after" >"$work/diff" && pass "all is as it was" ||
    fail "it is not" "$(cat "$work/diff")"
ok "and again" in_root dpkg -P workbox
box_done
