#!/bin/sh
# run.sh SECONDS [TARGET...]: gives each harness (all, when none is named)
# SECONDS of libFuzzer with AddressSanitizer and UBSan, merges what is new
# into fuzz/corpus, and keeps fuzz/LEDGER.  Needs clang with its runtime.
#
# A corpus has the smallest inputs that reach what is known to be reached.  A
# reproducer of a fault stays in build/fuzz/TARGET.crash-...; once mended, it
# goes into the corpus by:	run.sh 0 TARGET FILE...
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
. "$top/etc/steps.sh"
build=${WB_FUZZ_BUILD:-$top/build/fuzz}
work=$build
room=81920	# bytes of a corpus in the tree
options="-max_len=4096 -timeout=20 -rss_limit_mb=1024 -print_final_stats=0"
header='# target	CPU seconds so far	edges	CPU seconds since the last new edge
# Added up over the runs of run.sh; edges as clang counts them.  Done is a
# target with 3600 seconds and no new edge in the last 600.'

case ${1-} in
''|*[!0-9]*) die "usage: run.sh SECONDS [TARGET...]" ;;
esac
seconds=$1; shift
mkdir -p "$build" "$here/corpus"
[ "$(id -u)" != 0 ] || step_packages build test fuzz
command -v clang >/dev/null || { echo "skip: no clang"; exit 77; }
all=$(cd "$here" && ls ./*_fuzz.c | sed 's,^\./,,; s/_fuzz\.c$//')

step_fuzz() {
	(
		set -e
		[ -x "$top/configure" ] || { cd "$top" && autoreconf -i; }
		cd "$build"
		[ -f config.status ] && [ config.status -nt "$top/configure" ] ||
		    "$top/configure" -q --enable-sanitizers CC=clang \
		    CFLAGS='-O1 -g -fsanitize=fuzzer-no-link -DWB_LIBFUZZER'
		make -s am--refresh
		make -s -C common libcommon.a
		make -s -C apid schemas.h
		make -s -C regress LDFLAGS=-fsanitize=fuzzer \
		    $(for t in $all; do echo "${t}_fuzz"; done)
		# these two have a main() of their own
		make -s -C regress fuzz_pack fuzz_seed
	) >"$build/build.log" 2>&1 || { tail -n 30 "$build/build.log" >&2; die "build failed: $build/build.log"; }
}

# Reads a fuzzer's output: how many edges, the CPU time of the last new one.
# By lines, as they come: mawk would wait for more, until the process is gone.
lines=$(awk -W version 2>&1 </dev/null | grep -q '^mawk' && echo "-W interactive")
watch_log() {	# pid
	awk $lines -v pid="$1" '
	function cpu(	s, v) {
		s = ""
		getline s <("/proc/" pid "/stat")
		close("/proc/" pid "/stat")
		sub(/.*\) /, "", s)
		split(s, v, " ")
		return (v[12] + v[13]) / 100
	}
	match($0, / cov: [0-9]+/) {
		c = substr($0, RSTART + 6, RLENGTH - 6) + 0
		if (/INITED/) edges = c
		if (c > edges) { edges = c; if ((t = cpu()) > 0) at = t }
	}
	/^#/ { next }
	{ print >"/dev/stderr" }
	END { print edges + 0, at + 0 }'
}

# The smallest set of inputs from FROM that has what all of them have.
minimise() {	# target from to how
	t=$1 from=$2 to=$3; shift 3
	rm -rf "$to"
	mkdir "$to"
	"$build/regress/${t}_fuzz" $options "$@" -detect_leaks=0 "$to" \
	    "$from" >"$build/$t.merge.log" 2>&1 ||
	    { tail -n 20 "$build/$t.merge.log" >&2; die "$t: merge failed"; }
}

# Inputs that differ in counts are kept while there is room for them.
merge() {	# target
	minimise "$1" "$build/$1.in" "$build/$1.min" -merge=1
	rm -rf "$build/$1.in"
	mv "$build/$1.min" "$build/$1.in"
	"$build/regress/fuzz_pack" pack "$build/$1.in" "$build/$1.pack"
	if [ "$(wc -c <"$build/$1.pack")" -gt "$room" ]; then
		minimise "$1" "$build/$1.in" "$build/$1.min" -set_cover_merge=1 -use_counters=0
		"$build/regress/fuzz_pack" pack "$build/$1.min" "$build/$1.pack"
	fi
	mv "$build/$1.pack" "$here/corpus/$1"
}

# What a run before left here, the corpus, and first bodies of each message.
unpack() {	# target
	mkdir -p "$build/$1.in"
	"$build/regress/fuzz_seed" "$1" "$build/$1.in"
	[ ! -f "$here/corpus/$1" ] ||
	    "$build/regress/fuzz_pack" unpack "$build/$1.in" "$here/corpus/$1"
}

ledger() {	# target cpu edges cpu-of-last-new
	awk -v t="$1" -v cpu="$2" -v edges="$3" -v at="$4" -v h="$header" '
	BEGIN { FS = OFS = "\t"; print h }
	/^#/ { next }
	$1 == t { was = $2; since = $4; next }
	{ print }
	END { print t, int(was + cpu + 0.5), edges,
	    int((at > 0 ? cpu - at : since + cpu) + 0.5) }' \
	    "$here/LEDGER" >"$here/LEDGER.new" 2>/dev/null
	{ grep '^#' "$here/LEDGER.new"; grep -v '^#' "$here/LEDGER.new" | sort; } >"$here/LEDGER.sorted"
	rm -f "$here/LEDGER.new"
	mv "$here/LEDGER.sorted" "$here/LEDGER"
}

# Children's CPU seconds of the shell that wrote `times' into the file.
cpu_used() {	# file
	awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' "$1"
}

run() {	# target
	say "fuzz: $1"
	unpack "$1"
	rm -f "$build/$1.fifo"
	mkfifo "$build/$1.fifo"
	(
		"$build/regress/$1_fuzz" $options -max_total_time="$seconds" \
		    -artifact_prefix="$build/$1." "$build/$1.in" \
		    >"$build/$1.fifo" 2>&1 &
		watch_log $! <"$build/$1.fifo" >"$build/$1.edges" 2>"$build/$1.log"
		wait $!
		echo $? >"$build/$1.rc"
		times >"$build/$1.times"
	)
	read -r edges at <"$build/$1.edges"
	merge "$1"
	ledger "$1" "$(cpu_used "$build/$1.times")" "$edges" "$at"
	grep -P "^$1\t" "$here/LEDGER"
	[ "$(cat "$build/$1.rc")" = 0 ] || { tail -n 40 "$build/$1.log"; say "not ok - $1: $(ls "$build/$1".crash-* "$build/$1".leak-* "$build/$1".timeout-* "$build/$1".oom-* 2>/dev/null)"; bad=1; }
}

bad=0
touch "$here/LEDGER"
step_fuzz
if [ "$seconds" = 0 ]; then
	t=$1; shift
	unpack "$t"
	cp "$@" "$build/$t.in/"
	merge "$t"
	exit
fi
for t in ${@:-$all}; do
	run "$t"
done
exit $bad
