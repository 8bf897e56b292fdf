#!/bin/sh
# musl.sh: with another C library.  Everything is compiled against musl; what
# links nothing but libraries that Debian has without glibc in them is linked
# too: runner and wb, maker, privd and uplinkd; all but the last serve a
# sandbox.  uplinkd's filter is for the calls that glibc makes of its own:
# musl's open(3) is open(2), which nobody may there.
#
# Not the rest: Debian's static libevent, lmdb, c-ares, libcurl, libidn2 and
# libarchive are made for glibc, whose own calls they make (those of
# _FORTIFY_SOURCE, arc4random), and of libmnl there is none.
. "$(dirname "$0")/../box/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds all of it (long lane)"; exit 77; }
command -v musl-gcc >/dev/null || { echo "skip: no musl-gcc"; exit 77; }
libdir=/usr/lib/$(gcc -print-multiarch)
linked='runner wb maker privd uplinkd'
[ -x "$top/configure" ] || ok "autoreconf" sh -c "cd '$top' && autoreconf -i"

# The headers of libraries and of the kernel, and of glibc none.
mkdir -p "$work/inc" "$work/lib" "$work/b"
for h in archive.h archive_entry.h ares.h ares_build.h ares_nameser.h \
    ares_rules.h ares_version.h asm asm-generic confuse.h curl event2 idn2.h \
    jansson.h jansson_config.h libmnl libnftnl linux lmdb.h msgpack msgpack.h \
    mtd openssl sha2.h sha256.h sha512.h zconf.h zlib.h; do
	for d in /usr/include "/usr/include/${libdir##*/}"; do
		[ ! -e "$d/$h" ] || cp -rs "$d/$h" "$work/inc/"
	done
done
cp "$libdir/libmsgpackc.a" "$libdir/libmd.a" "$work/lib/"
# libmd has one call of glibc's, where it reads a file by its name
cat >"$work/chk.c" <<'END'
#include <unistd.h>

ssize_t	__read_chk(int, void *, size_t, size_t);

ssize_t
__read_chk(int fd, void *buf, size_t len, size_t size)
{
	if (len > size)
		__builtin_trap();
	return read(fd, buf, len);
}
END
ok "a call that libmd has" sh -c "cd '$work' && musl-gcc -O2 -c chk.c &&
    ar r lib/libmd.a chk.o"

configure() {
	cd "$work/b" && "$top/configure" -q CC=musl-gcc CC_FOR_BUILD=gcc \
	    CFLAGS_FOR_BUILD=-O1 "CPPFLAGS=-isystem $work/inc" \
	    "LDFLAGS=-L$work/lib -static" CURL_CFLAGS=' ' CURL_LIBS=-lcurl \
	    --prefix="$work/inst" --disable-tests --enable-werror
}
ok "configure" configure
ok "what all share" make -s -C "$work/b/common"
for d in maker privd netd uplinkd proxyd stored apid runner wb workbox; do
	case " $linked " in
	*" $d "*)	ok "$d" make -s -C "$work/b/$d"; continue ;;
	esac
	# every file of it, and at most no library to link
	out=$(make -s -k -C "$work/b/$d" 2>&1)
	is "$d is compiled" "$(printf '%s\n' "$out" |
	    grep -E 'error: |warning: ' | grep -v 'ld returned 1')" ''
	objects=$(make -s -C "$work/b/$d" --eval "objects: ; @echo \$(${d}_OBJECTS)" objects)
	# shellcheck disable=SC2086	# names of files
	made=$(cd "$work/b/$d" && ls -- $objects 2>/dev/null | wc -l)
	[ "$made" -gt 5 ] && [ "$made" = "$(echo "$objects" | wc -w)" ] &&
	    pass "each file: $made" || fail "each file: $made of $objects"
done
mkdir -p "$work/libexec"
cp "$WB_PREFIX"/libexec/workbox/* "$work/libexec/"
for d in $linked; do
	[ $d = uplinkd ] || cp "$work/b/$d/$d" "$work/libexec/$d" || box_done
	is "nothing of glibc is in $d" \
	    "$(grep -c 'GNU C Library' "$work/b/$d/$d")" 0
done

# A server with these, and a sandbox.
WB_CONF="libexec-dir = \"$work/libexec\""
mkdir -p "$WB_STATE"
port=$(free_port "${WB_PORT:-18790}")
box_conf
ok "the runtime" "$WB_BIN" runtime install --config "$work/workbox.conf"
ok "a root file system" "$WB_BIN" rootfs build minimal \
    --config "$work/workbox.conf"
box_serve
cmp -s "$WB_STATE/runtime/runner" "$work/b/runner/runner" &&
    pass "it is this runner" || fail "it is another runner"
is "and this privd" "$(readlink "/proc/$(box_pid privd ||
    echo "$serve_pid")/exe")" "$work/libexec/privd"
ok "create" wb create --name m
is "its proof is good" "$(state m)" READY
is "exec" "$(wb exec m -- id -u)" 0
like "wb in the box" "$(wb exec m -- wb status)" m
is "a session by wb" "$(wb exec m -- wb run -- echo hello)" hello
is "output, whole" "$(wb exec m -- sh -c 'seq 100000' | cksum)" \
    "$(seq 100000 | cksum)"
is "input" "$(seq 1000 | wb exec m -- sort -n | cksum)" "$(seq 1000 | cksum)"
no "a status" 7 wb exec m -- sh -c 'exit 7'
no "a signal, by its name" 143 wb exec m -- sh -c 'kill -TERM $$'
box_stop
box_serve
is "a server that comes back finds it" "$(state m)" READY
is "exec again" "$(wb exec m -- echo again)" again
ok "remove" wb rm m
none_left "$WB_BIN"
box_done
