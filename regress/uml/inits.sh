#!/bin/sh
# uml/inits.sh [systemd|openrc]...: the service files under inits that are
# pid 1: a Debian in User Mode Linux on a disk image, into which the project
# is installed from its build tree.  systemd.sh and openrc.sh are what runs in
# there.  Prints the guests' lines; fails when a check did, or was not made.
#
# What the guest's kernel lacks is in its configuration, as in run.sh.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/etc/steps.sh"
WB_PREFIX=${WB_PREFIX:-$top/build/inst}
WB_BUILD=${WB_BUILD:-$top/build/test}
[ "$(id -u)" = 0 ] || { echo "skip: needs root"; exit 77; }
for c in linux.uml mmdebstrap mkfs.ext4; do
	command -v $c >/dev/null || { echo "skip: no $c"; exit 77; }
done
[ -f "$WB_BUILD/etc/Makefile" ] || { echo "skip: no build tree (WB_BUILD)"; exit 77; }

dir=$(mktemp -d /var/tmp/wb-inits.XXXXXX)
uml=
trap 'rm -rf "$dir"' EXIT
trap '[ -z "$uml" ] || { kill "$uml"; wait "$uml"; }; exit 1' INT TERM HUP
root=$dir/root
step() { "$@" >"$dir/log" 2>&1 || { tail -n 20 "$dir/log"; die "failed: $*"; }; }

# the packages of the libraries that the programs are linked with
libraries() {
	ldd "$WB_PREFIX/bin/workbox" "$WB_PREFIX"/libexec/workbox/* \
	    2>/dev/null | awk '$2 == "=>" { print $3 }' | sort -u |
	while read -r f; do
		dpkg-query -S "*$f" 2>/dev/null
	done | sed 's/:.*//' | sort -u | tr '\n' ,
}
step mmdebstrap --mode=root --variant=minbase --format=directory \
    --aptopt='APT::Install-Recommends "false"' --include="$(libraries)$(:
    )systemd-sysv,openrc,initscripts,curl,iproute2,jq,procps" \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"

step make -s -C "$WB_BUILD" install DESTDIR="$root"
mkdir -p "$root/etc/workbox" "$root/host" "$root/lib/wb-test"
new_token >"$root/etc/workbox/token"
chmod 600 "$root/etc/workbox/token"
printf 'netfilter = "none"\nlandlock = "none"\n' \
    >"$root/etc/workbox/workbox.conf"
step "$WB_PREFIX/bin/workbox" runtime install --state "$root/var/lib/workbox"
step "$WB_PREFIX/bin/workbox" rootfs build minimal \
    --state "$root/var/lib/workbox"
for m in overlay tun; do
	cp "$(find /usr/lib/uml/modules -name $m.ko | head -n 1)" \
	    "$root/lib/wb-test" || die "no module $m"
done

# What both inits start before anything else, and last.
cat >"$root/lib/wb-test/first" <<END
#!/bin/sh
mount -t hostfs -o ro none /host
for m in overlay tun; do /host/bin/busybox insmod /lib/wb-test/\$m.ko; done
END
cat >"$root/lib/wb-test/last" <<END
#!/bin/sh
exec >/dev/console 2>&1 </dev/null
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
export WB_PREFIX='$WB_PREFIX' WB_BUILD='$WB_BUILD' WB_WORK=/var/wb-work
mkdir -p \$WB_WORK
sh "/host$top/regress/uml/\$1.sh"
echo "guest: exit \$?"
sync
echo o >/proc/sysrq-trigger
END
chmod 755 "$root/lib/wb-test/first" "$root/lib/wb-test/last"

# ---- each init's part

# Only its own files: systemd would take another's for its own, too.
files() {	# what variable=directory...
	step make -s -C "$WB_BUILD/etc" "$1" DESTDIR="$root" "$2"
}
unit() { cat >"$root/etc/systemd/system/$1"; }
prepare_systemd() {
	files install systemd_dir=/usr/lib
	unit wb-first.service <<-END
	[Unit]
	DefaultDependencies=no
	Before=sysinit.target
	[Service]
	Type=oneshot
	RemainAfterExit=yes
	ExecStart=/lib/wb-test/first
	[Install]
	WantedBy=sysinit.target
	END
	unit wb-last.service <<-END
	[Unit]
	After=multi-user.target
	[Service]
	ExecStart=/lib/wb-test/last systemd
	[Install]
	WantedBy=graphical.target
	END
	# A build below /tmp is to be seen there.
	mkdir -p "$root/etc/tmpfiles.d"
	ln -sf /dev/null "$root/etc/tmpfiles.d/tmp.conf"
	case $WB_PREFIX in
	/tmp/*)	mkdir -p "$root/etc/systemd/system/workbox.service.d"
		printf '[Service]\nPrivateTmp=no\n' |
		    unit workbox.service.d/where.conf ;;
	esac
	step chroot "$root" systemctl mask apt-daily.timer \
	    apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	    fstrim.timer
	step chroot "$root" systemctl enable wb-first wb-last \
	    workbox.socket workbox.service
	step chroot "$root" systemctl set-default graphical.target
}
prepare_openrc() {
	files uninstall systemd_dir=/usr/lib
	files install openrc_dir=/etc
	cat >"$root/etc/init.d/wb-first" <<-END
	#!/sbin/openrc-run
	depend() { before localmount; }
	start() { /lib/wb-test/first; ip link set lo up; }
	END
	cat >"$root/etc/init.d/wb-last" <<-END
	#!/sbin/openrc-run
	depend() { after workbox; }
	start() { /lib/wb-test/last openrc & }
	END
	chmod 755 "$root/etc/init.d/wb-first" "$root/etc/init.d/wb-last"
	# as OpenRC has it by default from 0.51 on
	printf 'rc_cgroup_mode=unified\nrc_cgroup_cleanup=yes\n' \
	    >>"$root/etc/rc.conf"
	for u in netd stored apid proxyd; do
		step chroot "$root" useradd --system --user-group _workbox-$u
	done
	case $WB_PREFIX in
	/tmp/*)	echo TMPTIME=infinite >>"$root/etc/default/rcS" ;;
	esac
	step chroot "$root" rc-update add wb-first boot
	step chroot "$root" rc-update add wb-last default
	step chroot "$root" rc-update add workbox default
}

# ---- a guest of each

${CC:-cc} -O1 -shared -fPIC -o "$dir/fpregs.so" "$top/regress/uml/fpregs.c" ||
    die "fpregs.c does not build"
failed=0
guest() {	# init program words-of-the-kernel's-command-line
	"prepare_$1"
	rm -f "$dir/disk"
	truncate -s 2G "$dir/disk"
	step mkfs.ext4 -q -F -d "$root" "$dir/disk"
	init=$1 program=$2; shift 2
	LD_PRELOAD=$dir/fpregs.so timeout -k 5 1500 nice -n 10 linux.uml \
	    mem=1536M root=/dev/ubda rw quiet init="$program" \
	    ubd0="$dir/disk" con=null con0=null,fd:1 uml_dir="$dir" "$@" \
	    >"$dir/out" 2>"$dir/err" </dev/null &
	uml=$!
	wait $uml
	uml=
	tr -d '\r' <"$dir/out" | grep -a -E '^(ok|not ok|skip|#|guest:) ' |
	    sed -E "s/^(ok|not ok|skip) - /&$init: /"
	grep -aq '^guest: exit 0' "$dir/out" && return
	failed=1
	echo "not ok - $init: the guest ended well"
	tail -n 30 "$dir/out" "$dir/err" | tr -d '\r' | sed 's/^/# /'
}
for i in ${*:-systemd openrc}; do
	case $i in
	systemd) guest systemd /lib/systemd/systemd systemd.show_status=0 ;;
	openrc)	guest openrc /sbin/openrc-init ;;
	*)	die "usage: inits.sh [systemd|openrc]..." ;;
	esac
done
exit $failed
