# steps.sh: what quickstart.sh, install.sh and regress/run.sh have in common.
# Sourced with $top set to the source directory.  Every step can be repeated:
# what is there already is left as it is.

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "${0##*/}: $*" >&2; exit 1; }

need_root() {
	[ "$(id -u)" = 0 ] || die "run as root (boxes need mounts, cgroups and uids)"
}

# The package manager at hand: its column in etc/packages.
pkg_column() {
	if command -v apt-get >/dev/null; then echo 2
	elif command -v dnf >/dev/null; then echo 3
	elif command -v pacman >/dev/null; then echo 4
	elif command -v apk >/dev/null; then echo 5
	else die "no apt-get, dnf, pacman or apk: install by hand what etc/packages lists"
	fi
}

pkg_list() {	# kinds...
	for kind in "$@"; do
		awk -v k="$kind" -v c="$(pkg_column)" \
		    '$1 == k && $c != "-" { print $c }' "$top/etc/packages"
	done
}

pkg_missing() {	# names...
	case $(pkg_column) in
	2)	for p in "$@"; do
			dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null |
			    grep -qx installed || echo "$p"
		done ;;
	3)	for p in "$@"; do rpm -q "$p" >/dev/null 2>&1 || echo "$p"; done ;;
	4)	for p in "$@"; do pacman -Q "$p" >/dev/null 2>&1 || echo "$p"; done ;;
	5)	for p in "$@"; do apk info -e "$p" >/dev/null 2>&1 || echo "$p"; done ;;
	esac
}

# Installs what is missing of the kinds; $pkg_new gathers the names.
step_packages() {	# kinds...
	want=$(pkg_missing $(pkg_list "$@"))
	[ -n "$want" ] || return 0
	say "packages: $(echo $want)"
	[ "$(pkg_column)" = 2 ] || say "untested: names of packages but Debian's (etc/packages)"
	case $(pkg_column) in
	2)	apt-get update -qq || say "apt-get update failed: trying with the lists that are there"
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		    --no-install-recommends $want >"$work/packages.log" 2>&1 ;;
	3)	dnf install -y -q $want >"$work/packages.log" 2>&1 ;;
	4)	pacman -Sy --noconfirm --needed $want >"$work/packages.log" 2>&1 ;;
	5)	apk add -q $want >"$work/packages.log" 2>&1 ;;
	esac || { tail -n 20 "$work/packages.log" >&2; die "packages could not be installed: $work/packages.log"; }
	pkg_new="${pkg_new:+$pkg_new }$(echo $want)"
}

step_node() {
	command -v npx >/dev/null || step_packages node
}

# Configures and builds in DIR, installs under PREFIX.
step_build() {	# dir prefix [configure options...]
	b_dir=$1; b_prefix=$2; shift 2
	mkdir -p "$b_dir"
	say "build: $b_dir"
	(
		set -e
		if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
			cd "$top" && autoreconf -i
		fi
		cd "$b_dir"
		if [ ! -f config.status ] || [ "$top/configure" -nt config.status ] ||
		    [ "$(cat .options 2>/dev/null)" != "$b_prefix $*" ]; then
			"$top/configure" -q --prefix="$b_prefix" "$@"
			echo "$b_prefix $*" >.options
		fi
		make -s -j"$(nproc)"
		# What is the same stays as it is, where install(1) can tell.
		if install --help 2>&1 | grep -q -e '-C, --compare'; then
			make -s install INSTALL='install -C'
		else
			make -s install
		fi
	) >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2; die "build failed: $work/build.log"; }
}

# The users that the daemons become; $users_new gathers the names.
step_users() {
	if ! getent group workbox >/dev/null; then
		if command -v groupadd >/dev/null; then groupadd -r workbox
		else addgroup -S workbox; fi
	fi
	for u in _workbox-netd _workbox-stored _workbox-apid _workbox-proxyd; do
		getent passwd "$u" >/dev/null && continue
		if command -v useradd >/dev/null; then
			useradd -r -U -M -d /nonexistent -s /usr/sbin/nologin "$u" 2>/dev/null ||
			    useradd -r -U -M -d /nonexistent -s /sbin/nologin "$u"
		else
			addgroup -S "$u" && adduser -S -D -H -h /nonexistent -G "$u" "$u"
		fi || die "user $u could not be made"
		users_new="${users_new:+$users_new }$u"
	done
}

# A key: 48 hexadecimal digits.
new_token() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# A TCP port on 127.0.0.1 that nobody listens on, from the number given up.
free_port() {
	port=$1
	while awk -v p="$(printf ':%04X' "$port")" \
	    '$4 == "0A" && index($2, p) { f = 1 } END { exit !f }' \
	    /proc/net/tcp /proc/net/tcp6 2>/dev/null; do
		port=$((port + 1))
	done
	echo "$port"
}

# Starts `workbox serve ARGS' in the background and waits until it says that
# it is ready.  Sets $serve_pid.  The log goes to $work/serve.log.
start_serve() {	# workbox-command args...
	cmd=$1; shift
	rm -f "$work/ready"
	mkfifo "$work/ready"
	setsid "$cmd" serve --ready-fd 5 "$@" </dev/null >>"$work/serve.log" 2>&1 5>"$work/ready" &
	serve_pid=$!
	read -r _ <"$work/ready" || { cat "$work/serve.log" >&2; rm -f "$work/ready"; die "serve did not become ready"; }
	rm -f "$work/ready"
}

stop_serve() {
	kill -TERM "$serve_pid" 2>/dev/null || return 0
	wait "$serve_pid"
}

# What is on the host of a server: its processes and those of its boxes, their
# namespaces, its mounts, cgroups and rules.  Nothing, when it never ran.  Only
# what is its own is looked for: a busy host changes in other ways meanwhile.
host_facts() {	# prefix state cgroup first-uid
	for e in /proc/[0-9]*/exe; do
		case $(readlink "$e" 2>/dev/null) in
		"$1"/libexec/workbox/*) echo "process $e" ;;
		esac
	done
	# uids of networks, then of boxes, lie together: 65536 times 1001
	ps -eo uid=,pid=,args= |
	    awk -v u="$4" '$1 >= u && $1 < u + 65600000 { print "process", $0 }'
	lsns -n -o UID,NS,TYPE 2>/dev/null |
	    awk -v u="$4" '$1 >= u && $1 < u + 65600000 { print "namespace", $0 }'
	grep -F -e "$2" -e workbox- /proc/self/mountinfo | sed 's/^/mount /'
	find /sys/fs/cgroup -type d -name "$3" 2>/dev/null | sed 's/^/cgroup /'
	if command -v nft >/dev/null; then nft list tables 2>/dev/null | grep workbox | sed 's/^/rule /'; fi
}
