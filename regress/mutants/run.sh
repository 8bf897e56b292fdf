#!/bin/sh
# run.sh [NAME...]: takes away one protection after the other, and sees that
# the test that is said to watch over it fails.
#
# NAME.patch, beside this file, is a `diff -u' behind these lines:
#
#	Protects: what is lost with it
#	Build: directories that are built again, in their order, if any
#	Test: PROGRAM TEST
#
# PROGRAM is one of regress/Makefile.am's, or a script below regress/; TEST
# the one function of it that is run.  The tree is copied and built once.  A
# patch that does not apply, does not build, or is told by anything but a
# failed assertion of that test (or a `not ok - ' of the script) is a fault
# here, and so is a test that does not pass without a patch.
set -u
export CK_TIMEOUT_MULTIPLIER=4	# nothing here is about time
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
dir=${WB_BUILD:-$top/build/test}/mutants
src=$dir/src obj=$dir/obj logs=$dir/logs
failed=0 applied=
stale=		# directories built with a patch that is no longer there
mkdir -p "$src" "$obj" "$logs"

ok() { echo "ok - $*"; }
not_ok() { echo "not ok - $*"; failed=$((failed + 1)); }
die() { echo "mutants: $*" >&2; exit 1; }

head_of() {	# patch key
	sed -n "/^--- /q; s/^$2: //p" "$1"
}

# What differs is copied: its time is now, so that make sees it; what is
# generated comes last, not older than what it was made from.
copy_tree() {
	(cd "$top" && find . -name .git -prune -o -path ./build -prune -o \
	    -name autom4te.cache -prune -o -type f -print |
	    awk '/\/(aclocal.m4|configure|Makefile.in)$/ { l = l $0 "\n"; next }
		{ print } END { printf "%s", l }') >"$dir/files"
	while read -r f; do
		cmp -s "$top/$f" "$src/$f" && continue
		mkdir -p "$src/${f%/*}" && cp "$top/$f" "$src/$f" || exit 1
	done <"$dir/files"
}

build_tree() {
	[ -f "$obj/config.status" ] || (cd "$obj" &&
	    "$src/configure" -q CFLAGS=-O0) || exit 1
	make -s -C "$obj" -j"$(nproc)" || exit 1
	${CC:-cc} -O0 -c -o "$dir/only.o" "$here/only.c" &&
	    ar rcD "$dir/libonly.a" "$dir/only.o"
}

build_test() {	# program
	case $1 in
	*.sh)		return 0 ;;
	mech_test)	set -- "$1" mech_probe ;;
	privd_test)	set -- "$1" privd_fake ;;
	esac
	make -s -C "$obj/regress" -j"$(nproc)" \
	    LDFLAGS=-Wl,--wrap=_tcase_add_test LIBS="$dir/libonly.a" "$@"
}

build_dirs() {	# directories...
	for d in "$@"; do
		make -s -C "$obj/$d" || return 1
	done
}

run_test() (	# program test
	export WB_BUILD="$obj" WB_ONLY="$2"
	case $1 in
	*.sh)	exec timeout -k 5 300 sh "$src/regress/$1" ;;
	*)	cd "$obj/regress" && exec timeout -k 5 300 "./$1" ;;
	esac
)

# Whether a test passes without a patch; a line a test is remembered.
passes() {	# program test
	p_log=$logs/$(echo "$1" | tr / -).$2
	! grep -qx "$1 $2" "$dir/passed" || return 0
	{ build_dirs $stale && stale= && build_test "$1"; } >"$p_log" 2>&1 \
	    </dev/null &&
	    run_test "$1" "$2" >>"$p_log" 2>&1 </dev/null
	p_r=$?
	if [ $p_r = 77 ]; then
		echo "skip - $name: $1: $(tail -n 1 "$p_log")"
	elif [ $p_r != 0 ] || grep -q '^[0-9]*%: Checks: 0' "$p_log"; then
		not_ok "$name: $1 $2 fails without a patch"
		tail -n 5 "$p_log"
	else
		echo "$1 $2" >>"$dir/passed"
		return 0
	fi
	return 1
}

revert() {
	[ -z "$applied" ] || patch -s -R -p1 -d "$src" <"$applied" >/dev/null
	applied=
}
trap revert EXIT
trap 'exit 1' HUP INT TERM

caught() {	# log program test
	case $2 in
	*.sh)	grep -q '^not ok - ' "$1" ;;
	*)	grep -q ":F:[^:]*:$3:" "$1" ;;
	esac
}

mutant() {	# patch
	name=$(basename "$1" .patch)
	log=$logs/$name
	build=$(head_of "$1" Build)
	set -- "$1" $(head_of "$1" Test)
	[ $# = 3 ] || { not_ok "$name names no test"; return; }
	passes "$2" "$3" || return
	if ! patch -s -p1 -F0 -d "$src" --dry-run <"$1" >"$log" 2>&1; then
		not_ok "$name does not apply"
		return
	fi
	# nothing is linked with what two patches changed
	[ "$stale" = "$build" ] || build_dirs $stale >"$log" 2>&1 </dev/null
	patch -s -p1 -F0 -d "$src" <"$1" >>"$log" 2>&1
	applied=$1
	if ! { build_dirs $build && build_test "$2"; } >"$log" 2>&1 \
	    </dev/null; then
		not_ok "$name does not build"
		tail -n 5 "$log"
	else
		echo "---- $2 $3" >>"$log"
		run_test "$2" "$3" >>"$log" 2>&1 </dev/null
		r=$?
		if [ $r = 0 ]; then
			not_ok "$name survives $2 $3"
		elif caught "$log" "$2" "$3"; then
			ok "$name: caught by $2 $3"
		else
			not_ok "$name: $2 $3 ends with $r, without an assertion"
			tail -n 5 "$log"
		fi
	fi
	revert
	stale=$build
}

[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
copy_tree
build_tree >"$logs/build" 2>&1 </dev/null || {
	tail -n 20 "$logs/build"
	die "the tree does not build"
}
: >"$dir/passed"
[ $# -gt 0 ] || set -- $(cd "$here" && ls -- *.patch)
for m in "$@"; do
	mutant "$here/${m%.patch}.patch"
done
[ "$failed" = 0 ]
