#!/bin/sh
# bench/run.sh [ROW...]: starts a private server and prints the table; without
# a name the rows that take less than a minute each (not P3, P9, P12, P21, P22, P29
# and P31).
# What peers need: packages of class `bench' in etc/packages.
#
# With one of P3, P12, P21, P22 and P29 all of it is in a network namespace of its
# own, joined to another, "the internet": nothing leaves the machine.
#
# WB_DEBIAN: for P31, a root file system that `workbox rootfs build debian
# --include' has made with the packages below; otherwise it is built (4
# minutes, and an archive of packages).  BENCH_N: pairs (100).
[ $# -gt 0 ] || set -- P1 P2 P7 P8 P10 P11 P13 P14 P17 P26 P32 P33
far="" lacks=""
for row; do
	case $row in P3|P12|P21|P22|P29) far=1 ;; esac
done
for c in ip nsenter slirp4netns; do
	command -v $c >/dev/null || lacks="$lacks $c"
done
[ -z "$far" ] || [ -n "$lacks" ] || [ -n "${WB_INSIDE-}" ] || [ "$(id -u)" != 0 ] ||
    WB_INSIDE=1 exec unshare -n sh "$0" "$@"
. "$(dirname "$0")/../box/lib.sh"
WB_DIRECT=1
WB_BOXES=232	# P22 has 201
build=${WB_BUILD:-$top/build/test}
none_pid= full_pid= orders_pid=
tools=gcc,libc6-dev,libidn2-dev,libmnl-dev,libmsgpack-dev,libmd-dev,libseccomp-dev,git,nodejs,npm
failed=0

none_stop() {
	# a server that did not start again ends the script in the middle of P26
	[ -z "$orders_pid" ] || { pkill -P "$orders_pid"; kill "$orders_pid"; orders_pid=; } 2>/dev/null
	[ -z "$full_pid" ] || { serve_pid=$full_pid; full_pid=; }
	[ -z "$none_pid" ] || { full=$serve_pid serve_pid=$none_pid; stop_serve; serve_pid=$full; none_pid=; }
	rmdir "/sys/fs/cgroup/$WB_CGROUP-none" /sys/fs/cgroup/*/"$WB_CGROUP-none" 2>/dev/null
}
trap 'none_stop; box_cleanup; exit 1' INT TERM HUP
trap 'none_stop; box_cleanup' EXIT

# P10: crun wants a cgroup v2 at its place: in a mount namespace of its own
run_P10() {
	command -v crun >/dev/null || { echo "P10: skipped, no crun here (apt install crun)"; return; }
	export BENCH_CGROUPS="$work/cgroups" BENCH_BUNDLE="$work/bundle"
	mkdir -p "$BENCH_CGROUPS" "$BENCH_BUNDLE"
	# its root of a user namespace must get at its root file system
	open=$(mktemp -d /tmp/wb-bench.XXXXXX)
	chmod 755 "$open"
	mkdir "$open/proc" "$open/dev"
	install -m 755 "$build/regress/ready" "$open/ready"
	sed "s|@ROOT@|$open|" "$top/regress/bench/crun.json" >"$BENCH_BUNDLE/config.json"
	unshare -m --propagation private sh -c 'mount --rbind /sys/fs/cgroup "$BENCH_CGROUPS" &&
	    mount -t cgroup2 none /sys/fs/cgroup && exec "$0" P10' "$build/regress/pairs" || failed=1
	rm -rf "$open"
}

# P9: bytes that are no text, and text of as many
run_P9() {
	export BENCH_BIG=/big
	head -c 268435456 /dev/urandom >"$root/big"
	base64 -w 76 "$root/big" | head -c 268435456 >"$root/big.txt"
	"$build/regress/pairs" P9 || failed=1
	rm "$root/big" "$root/big.txt"
}

# P26: this shell restarts the server with boxes and another that has none
again() {	# full|none
	if [ "$1" = full ]; then
		stop_serve
		start_serve "$WB_BIN" --config "$work/workbox.conf"
		echo "$serve_pid" >&4
		return
	fi
	full_pid=$serve_pid serve_pid=$none_pid none_pid=
	stop_serve
	start_serve "$WB_BIN" --config "$work/none.conf"
	none_pid=$serve_pid serve_pid=$full_pid full_pid=
	echo "$none_pid" >&4
}
run_P26() {
	mkdir "$work/none"
	cp -a "$WB_STATE/runtime" "$WB_STATE/rootfs" "$work/none"
	none=$(free_port $((port + 1)))
	# its uids are what WB_BOXES leaves of ours
	sed -e "s|$WB_STATE|$work/none|; s|:$port\"|:$none\"|; s|^cgroup = .*|cgroup = \"$WB_CGROUP-none\"|" \
	    -e "s|^net-uid-base = .*|net-uid-base = $((WB_UIDS + 65536 * (WB_BOXES + 1)))|" \
	    -e "s|^uid-base = .*|uid-base = $((WB_UIDS + 65536 * (WB_BOXES + 2)))|" \
	    -e "s|^max-boxes = .*|max-boxes = 16|" "$work/workbox.conf" >"$work/none.conf"
	full_pid=$serve_pid
	start_serve "$WB_BIN" --config "$work/none.conf"
	none_pid=$serve_pid serve_pid=$full_pid full_pid=
	mkfifo "$work/orders" "$work/done"
	exec 3<>"$work/orders" 4<>"$work/done"
	BENCH_ORDERS=$work/orders BENCH_DONE=$work/done BENCH_URL_NONE=http://127.0.0.1:$none
	export BENCH_ORDERS BENCH_DONE BENCH_URL_NONE
	{ "$build/regress/pairs" P26 3<&- 4<&-; echo "end $?" >&3; } &
	orders_pid=$!
	while read -r order rc <&3 && [ "$order" != end ]; do again "$order"; done
	wait "$orders_pid"
	orders_pid=
	[ "$rc" = 0 ] || failed=1
	exec 3<&- 4<&-
	none_stop
}

# P31: the same Debian as a root file system and, for the host, as a copy
run_P31() {
	tree=$WB_STATE/rootfs/tools
	if [ -n "${WB_DEBIAN-}" ]; then
		cp -a "$WB_DEBIAN" "$tree"
	elif [ -n "${WB_INSIDE-}" ]; then
		echo "P31: skipped, beside rows of the network it wants WB_DEBIAN: no archive is reached from here"
		return
	elif ! command -v mmdebstrap >/dev/null ||
	    ! "$WB_BIN" rootfs build debian --name tools --state "$WB_STATE" --include $tools >"$work/tools.log" 2>&1; then
		tail -n 3 "$work/tools.log" 2>/dev/null
		echo "P31: skipped, no Debian to be had (mmdebstrap and a package archive, or WB_DEBIAN)"
		return
	fi
	for p in usr/bin/gcc usr/bin/git usr/bin/npm usr/include/idn2.h usr/include/libmnl/libmnl.h \
	    usr/include/msgpack.h usr/include/sha2.h usr/include/seccomp.h; do
		[ -e "$tree/$p" ] || { echo "P31: skipped, no /$p in the Debian"; return; }
	done
	mkdir -p "$tree/bench/src"
	cp "$top"/common/*.[ch] "$top"/common/*.def "$build"/common/*.[ch] "$tree/bench/src" 2>/dev/null
	rm -f "$tree/bench/src/mkfilter.c"
	cp "$top/regress/bench/npm.js" "$tree/bench"
	export BENCH_TOOLS="$work/tools"
	cp -a "$tree" "$BENCH_TOOLS"
	sync -f "$work"
	unshare -m --propagation private sh -c 'mount --bind /dev "$BENCH_TOOLS/dev" &&
	    mount -t proc none "$BENCH_TOOLS/proc" && exec "$0" P31' "$build/regress/pairs" || failed=1
}

# P3, P12, P21, P22: an internet of one host, which is a process that talks.
inet= names=
box_after() { [ -z "$names" ] || { kill "$names" 2>/dev/null; names=; }; [ -z "$inet" ] || { kill "$inet" 2>/dev/null; wait "$inet" 2>/dev/null; inet=; }; }
there() { [ "$(readlink "/proc/$inet/ns/net")" != "$(readlink /proc/self/ns/net)" ] && grep -q ready "$work/talk"; }
# a name server that has one name, and no IPv6
names_py='
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("203.0.113.10", 53))
while True:
    q, a = s.recvfrom(512)
    v4 = q[12:].split(b"\0", 1)[1][:2] == b"\0\1"
    s.sendto(q[:2] + b"\x81\x80\0\1" + (b"\0\1" if v4 else b"\0\0") + b"\0\0\0\0" + q[12:].split(b"\0", 1)[0] + b"\0" + q[12:].split(b"\0", 1)[1][:4] +
             (b"\xc0\x0c\0\1\0\1\0\0\0\5\0\4" + socket.inet_aton("203.0.113.10") if v4 else b""), a)
'
far_up() {
	unshare -n "$build/regress/talk" serve 0.0.0.0 7 >"$work/talk" 2>&1 &
	inet=$!
	await there && ip link add net0 type veth peer name net1 netns "$inet" &&
	    nsenter -t "$inet" -n ip addr add 203.0.113.10/24 dev net1 &&
	    nsenter -t "$inet" -n ip link set net1 up &&
	    ip addr add 203.0.113.2/24 dev net0 && ip link set net0 up &&
	    ip route add default via 203.0.113.10 || return 1
	nsenter -t "$inet" -n /usr/bin/python3 -c "$names_py" &
	names=$!
}
# the server, with so many networks prepared
again_with() {
	box_stop
	WB_CONF_MORE="egress-dns = 203.0.113.10
egress-pool = $1"
	box_conf
	start_serve "$WB_BIN" --config "$work/workbox.conf"
	export BENCH_POOL="$1" BENCH_FAR=203.0.113.10:7
}
far_run() {	# pool row...
	again_with "$1"; shift
	"$build/regress/pairs" "$@" || failed=1
}
run_far() {
	if [ -n "$lacks" ]; then
		for row; do echo "$row: skipped, not here:$lacks (packages of class run and test in etc/packages)"; done
		return
	fi
	far_up || { cat "$work/talk"; echo "$*: no small internet"; failed=1; return; }
	install -m 755 "$build/regress/talk" "$root/talk"
	many= pooled=
	for row; do
		case $row in P22) many=$row ;; *) pooled="$pooled $row" ;; esac
	done
	# shellcheck disable=SC2086	# a list
	[ -z "$pooled" ] || far_run 8 $pooled
	case "$pooled " in *' P3 '*) far_run 0 P3 ;; esac
	[ -z "$many" ] || far_run 2 P22
}

[ -z "${WB_INSIDE-}" ] || ip link set lo up
box_state
root=$WB_STATE/rootfs/minimal
make -s -C "$build/regress" pairs ready talk >"$work/make.log" 2>&1 || { cat "$work/make.log"; exit 1; }
install -m 755 "$build/regress/ready" "$root/ready"
box_serve
mkdir -p "$work/floor"
export BENCH_ROOT="$root" BENCH_WORK="$work/floor" BENCH_SERVER_PID="$serve_pid"
export BENCH_BOXES="$WB_STATE/sandboxes" BENCH_CGROUP="$WB_CGROUP"
others= prepared= far=
for row; do
	case $row in
	P3|P12|P21|P22|P29) far="$far $row" ;;
	P9|P10|P26|P31) prepared="$prepared $row" ;;
	*) others="$others $row" ;;
	esac
done
# shellcheck disable=SC2086
[ -z "$others" ] || "$build/regress/pairs" $others || failed=1
for row in $prepared; do "run_$row"; done
# shellcheck disable=SC2086
[ -z "$far" ] || run_far $far
none_stop
box_cleanup
exit "$failed"
