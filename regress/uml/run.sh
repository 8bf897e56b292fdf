#!/bin/sh
# uml/run.sh [short|long]: the box suite on a real cgroup v2 host: Debian's
# User Mode Linux on this build tree (hostfs as root, an ext4 image as state
# directory).  Prints the guest's lines; exit as the suite in the guest.
#
# What that kernel lacks is named in the guest's configuration: nftables of
# the families ip and ip6, Landlock; SO_PEERPIDFD is missing too, so that the
# fallback is what runs.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/etc/steps.sh"
lane=${1:-short}
prefix=${WB_PREFIX:-$top/build/inst}
command -v linux.uml >/dev/null || { echo "skip: no linux.uml (package user-mode-linux)"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skip: needs root"; exit 77; }

dir=$(mktemp -d /var/tmp/wb-uml.XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
truncate -s 3G "$dir/disk"
mkfs.ext4 -q -F "$dir/disk" || die "mkfs.ext4 failed"

# a compiler takes minutes in there
(work=$dir . "$top/regress/box/attack/lib.sh" && attack_build "$dir/attack") ||
    die "attack does not build"

${CC:-cc} -O1 -shared -fPIC -o "$dir/fpregs.so" "$top/regress/uml/fpregs.c" ||
    die "fpregs.c does not build"

# Whether this command line reaches the guest: TOP, PREFIX and LANE as
# variables of its init.
LD_PRELOAD=$dir/fpregs.so timeout -k 5 "$([ "$lane" = long ] && echo 1800 || echo 800)" linux.uml mem=2G rootfstype=hostfs root=/ ro quiet \
    init="$top/regress/uml/init.sh" ubd0="$dir/disk" con=null con0=null,fd:1 \
    uml_dir="$dir" WB_TOP="$top" WB_PREFIX="$prefix" WB_LANE="$lane" \
    WB_ATTACK="$dir/attack" \
    >"$dir/out" 2>"$dir/err" </dev/null
tr -d '\r' <"$dir/out" | grep -v -e '^SELinux' -e '^mmapper' -e '^reboot:' -e '^sysrq:'
if grep -q '^guest: exit 0' "$dir/out"; then
	exit 0
fi
sed 's/^/# /' "$dir/err" | tail -n 20
exit 1
