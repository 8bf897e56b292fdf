#!/bin/sh
# distcheck.sh: what `make dist' packs is built in a directory of its own,
# checked, installed, and taken back until nothing is left.  Of the tests a few
# run, since the lane has all of them.  WB_BUILD: a build directory.
. "$(dirname "$0")/../box/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds all of it twice (long lane)"; exit 77; }

# Below another root, with the service files of each init.
there() { (cd "$work/dest" && find . ! -type d | sort); }
dest() {
	make -s -C "$WB_BUILD" "$1" DESTDIR="$work/dest" systemd_dir=/lib \
	    openrc_dir=/etc runit_dir=/etc/sv s6_dir=/etc/s6/sv
}
mkdir "$work/dest"
ok "install, below another root" dest install
prefix=$(sed -n 's/^prefix = //p' "$WB_BUILD/Makefile")
for f in "$prefix/bin/workbox" "$prefix/libexec/workbox/privd" \
    /lib/systemd/system/workbox.service /etc/init.d/workbox \
    /etc/sv/workbox/run /etc/s6/sv/workbox/run; do
	ok "$f is there" test -s "$work/dest/$f"
done
is "no file knows of that root" "$(grep -rl "$work/dest" "$work/dest")" ''
ok "uninstall" dest uninstall
is "leaves nothing" "$(there)" ''

ok "make distcheck" make -s -j"$(nproc)" -C "$WB_BUILD" distcheck \
    TESTS="common_test conf_test confine_test hosts_test route_test wire_fuzz"
like "of these tests each has passed" "$out" 'PASS: +6$'
rm -f "$WB_BUILD"/workbox-*.tar.gz
box_done
