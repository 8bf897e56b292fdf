#!/bin/sh
# elf.sh: how every installed program is built: position-independent or static
# as it is meant to be, relocations read-only from the start, no executable
# stack, canaries, fortified calls, branch targets marked, no path to look
# for libraries in, nothing set-uid.  WB_PREFIX: where they are installed.
top=$(cd "$(dirname "$0")/../.." && pwd)
set -u
prefix=${WB_PREFIX:-$top/build/inst}
command -v readelf >/dev/null && command -v objdump >/dev/null ||
    { echo "skip: no binutils"; exit 77; }
[ -x "$prefix/bin/workbox" ] || { echo "skip: $prefix is not there"; exit 77; }
failed=0

check() {	# name; the rest is a command that succeeds
	what=$1; shift
	if "$@" >/dev/null 2>&1; then
		echo "ok - $name: $what"
	else
		echo "not ok - $name: $what"
		failed=1
	fi
}

has() { printf '%s\n' "$1" | grep -Eq "$2"; }
has_not() { ! has "$@"; }

# What each is meant to be; one that stands in no line fails.
kind_of() {
	case $1 in
	privd|maker)	echo static-pie ;;	# little to map, an empty root
	runner|wb)	echo static ;;		# in a box, at a fixed address
	*)		echo pie ;;
	esac
}

elf() {	# file
	name=${1##*/}
	head=$(readelf -hW "$1")
	segs=$(readelf -lW "$1")
	dyn=$(readelf -dW "$1")
	syms=$(readelf -sW "$1")
	case $(kind_of "$name") in
	pie)
		check "is position-independent" has "$head" 'Type: +DYN'
		check "is dynamic" has "$segs" INTERP
		check "binds at the start" has "$dyn" BIND_NOW ;;
	static-pie)
		check "is position-independent" has "$head" 'Type: +DYN'
		check "is static" has_not "$segs" INTERP ;;
	static)
		check "is at a fixed address" has "$head" 'Type: +EXEC'
		check "is static" has_not "$segs" INTERP ;;
	esac
	check "relocations are read-only" has "$segs" GNU_RELRO
	check "its stack is not executable" has "$segs" 'GNU_STACK.* RW  '
	check "nothing is both written and executed" has_not "$segs" ' RWE '
	check "has no text relocations" has_not "$dyn" TEXTREL
	check "has no path for libraries" has_not "$dyn" 'R(UN)?PATH'
	check "has canaries" has "$syms" '__stack_chk_fail'
	check "its calls are fortified" has "$syms" \
	    '__(mem|str|v?s|v?f|d|explicit)[a-z_]*_chk'
	if has "$head" 'X86-64'; then	# where the compiler has the option
		check "marks branch targets" has "$(objdump \
		    -d --no-show-raw-insn --disassemble=main "$1")" endbr64
	fi
	check "is not set-uid or set-gid" test -z "$(find "$1" -perm /6000)"
	check "has no file capabilities" test -z "$(getcap "$1" 2>/dev/null)"
}

found=
for f in "$prefix"/bin/* "$prefix"/libexec/workbox/*; do
	[ "$(head -c 4 "$f" | tail -c 3)" = ELF ] || continue
	elf "$f"
	found="$found ${f##*/}"
done
name=all
for p in workbox apid maker netd privd proxyd runner stored uplinkd wb; do
	check "$p is there" has "$found " " $p "
done
exit $failed
