#!/bin/sh
# bench/run.sh [ROW...]: starts a private server and prints the table.
. "$(dirname "$0")/../box/lib.sh"
WB_DIRECT=1
build=${WB_BUILD:-$top/build/test}
box_state
root=$WB_STATE/rootfs/minimal
make -s -C "$build/regress" pairs ready >"$work/make.log" 2>&1 || { cat "$work/make.log"; exit 1; }
install -m 755 "$build/regress/ready" "$root/ready"
box_serve
mkdir -p "$work/floor"
export BENCH_ROOT="$root" BENCH_WORK="$work/floor" BENCH_SERVER_PID="$serve_pid"
export BENCH_BOXES="$WB_STATE/sandboxes" BENCH_CGROUP="$WB_CGROUP"
[ $# -gt 0 ] || set -- P1 P2 P7 P8 P10 P11 P13
others=; removal=
for row; do
	case $row in P10) removal=P10 ;; *) others="$others $row" ;; esac
done
failed=0
# shellcheck disable=SC2086
[ -z "$others" ] || "$build/regress/pairs" $others || failed=1
# crun wants a cgroup v2 at its place: in a mount namespace of its own
if [ -n "$removal" ] && ! command -v crun >/dev/null; then
	echo "P10: skipped, no crun here (apt install crun)"
elif [ -n "$removal" ]; then
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
fi
box_cleanup
exit "$failed"
