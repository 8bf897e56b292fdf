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
BENCH_ROOT=$root BENCH_WORK=$work/floor BENCH_SERVER_PID=$serve_pid \
    "$build/regress/pairs" "$@"
failed=$?
box_cleanup
exit "$failed"
