#!/bin/sh
# arm64.sh: all of it for another processor, built here, and its unit tests
# and corpora run by qemu-user, as nobody.  Libraries are unpacked into a
# directory: this host's dpkg hears nothing of them.
#
# What wants root says so and is left out; what an emulator of programs has
# not is named below.
. "$(dirname "$0")/../box/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds all of it (long lane)"; exit 77; }
for c in aarch64-linux-gnu-gcc qemu-aarch64 mmdebstrap; do
	command -v $c >/dev/null || { echo "skip: no $c"; exit 77; }
done
[ "$(uname -m)" = x86_64 ] || { echo "skip: not x86-64"; exit 77; }
[ -x "$top/configure" ] || ok "autoreconf" sh -c "cd '$top' && autoreconf -i"

# test, the lines of its faults, and what qemu 7.2 lacks for them
lacks='client_test	terminal:	ioctl TIOCGPTPEER
confine_test	filters:by_the_kernel	seccomp(2)
look_test	look:	openat2(2)
proto_test	descriptor missing, not due	ioctls of nsfs
room_test	Function not implemented|taken:odd_names	openat2(2)'

chmod 755 "$work"
sys=$work/sys
libs=$(awk '$1 == "build" && $2 ~ /^(lib|linux|zlib).*-dev$/ { print $2 }' \
    "$top/etc/packages" | tr '\n' ',')
mmdebstrap --quiet --architectures=arm64 --variant=extract \
    --include="${libs}check,libgcc-12-dev" bookworm "$sys" \
    >"$work/mmdebstrap.log" 2>&1 ||
    { tail -n 5 "$work/mmdebstrap.log"; echo "skip: no libraries"; exit 77; }
mkdir "$work/b" "$work/cwd"
pc=$sys/usr/lib/aarch64-linux-gnu/pkgconfig:$sys/usr/share/pkgconfig
build() {
	cd "$work/b" && env PKG_CONFIG_SYSROOT_DIR="$sys" \
	    PKG_CONFIG_LIBDIR="$pc" \
	    "$top/configure" -q --host=aarch64-linux-gnu \
	    --build="$(gcc -dumpmachine)" --enable-werror \
	    CC="aarch64-linux-gnu-gcc --sysroot=$sys" &&
	    make -s -k -j"$(nproc)" && make -s -k -j"$(nproc)" check TESTS=
}
ok "configure, programs and tests" build
for f in privd maker netd uplinkd proxyd stored apid runner wb workbox; do
	like "$f is for it" "$(od -An -tx2 -j18 -N2 "$work/b/$f/$f")" ' 00b7$'
done

# Every program of the other processor is given to qemu, in a user namespace
# of nobody's own, whose root says so; what is started is nobody again, in one
# more.
cat >"$work/in" <<'END'
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || exit 77
z='\x00\x00\x00\x00' f='\xff\xff\xff\xff'
magic="\\x7fELF\\x02\\x01\\x01\\x00$z$z\\x02\\x00\\xb7\\x00"
mask="$f\\xff\\xff\\xff\\x00$f$f\\xfe\\xff\\xff\\xff"
printf '%s' ":q:M::$magic:$mask:$(command -v qemu-aarch64):F" \
    >/proc/sys/fs/binfmt_misc/register || exit 77
cd "$1" || exit 77
shift
exec unshare -U --map-user=65534 --map-group=65534 "$@"
END
chown -R 65534:65534 "$work/cwd" "$work/b/regress"
chown 65534:65534 "$work/b"
arm() {
	timeout -k 5 900 setpriv --reuid 65534 --regid 65534 --clear-groups \
	    unshare -U -m -r \
	    env -i PATH="$PATH" TMPDIR="$work/cwd" QEMU_LD_PREFIX="$sys" \
	    CK_TIMEOUT_MULTIPLIER=10 \
	    sh "$work/in" "$work/cwd" "$@"
}
out=$(arm true 2>&1) || { echo "skip: no binfmt_misc here: $out"; exit 77; }

like "workbox" "$(arm "$work/b/workbox/workbox" version 2>&1)" '^workbox [0-9]'
is "wb's help is the same" "$(arm "$work/b/wb/wb" --help)" \
    "$("$WB_BUILD/wb/wb" --help)"
is "a runner that is no pid 1" \
    "$(arm "$work/b/runner/runner" 2>&1; echo $?)" \
    "$("$WB_BUILD/runner/runner" 2>&1; echo $?)"

tests=$(make -s -C "$work/b/regress" -f Makefile -f - all-tests <<'END'
all-tests:
	@echo $(TESTS)
END
)
for t in $tests; do
	arm "$work/b/regress/$t" >"$work/out" 2>&1
	r=$?
	[ $r != 77 ] || { skip "$t: $(tail -n 1 "$work/out")"; continue; }
	[ $r != 0 ] || { pass "$t"; continue; }
	# every fault has to be of what is lacking, and one there has to be
	known=$(printf '%s\n' "$lacks" |
	    awk -F '\t' -v t="$t" '$1 == t { print $2 }')
	bad=$(grep -aE ':[FE]:' "$work/out" | grep -avE "${known:-^$}")
	if [ -n "$known" ] && [ -z "$bad" ] &&
	    grep -aqE ':[FE]:' "$work/out"; then
		pass "$t, but for $(printf '%s\n' "$lacks" |
		    awk -F '\t' -v t="$t" '$1 == t { print $3 }')"
	else
		fail "$t" "exit $r" "${bad:-$(tail -n 5 "$work/out")}"
	fi
done
box_done
