#!/bin/sh
# lint.sh [TOOL...]: gcc -fanalyzer, cppcheck and clang-tidy over the sources
# of all programs, with the flags that the build gives them.  Fails on every
# finding that is not in lint.accepted, where each has a reason.  A finding
# is told as
#
#	check-id file: the line of source that it stands at
#
# which is also how it is accepted: line numbers change too often.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/steps.sh"
build=$top/build/lint
accepted=$top/regress/lint.accepted
tools=${*:-analyzer cppcheck tidy}
for c in gcc cppcheck clang-tidy; do
	command -v $c >/dev/null || { echo "skip: no $c"; exit 77; }
done
mkdir -p "$build"
work=$build
[ -x "$top/configure" ] || (cd "$top" && autoreconf -i) || die "autoreconf failed"

# A build from nothing, of which the log tells how each file is compiled; the
# one before will do when no source has changed since.
fresh() {
	[ -f "$build/built" ] &&
	    [ -z "$(find "$top/configure" "$top"/[!b]*/ -name '*.[ch]' -newer "$build/built" -o \
	    -name '*.def' -newer "$build/built" -o -name Makefile.in -newer "$build/built")" ]
}
fresh || (
	cd "$build" || exit 1
	rm -f built
	[ -f config.status ] && [ config.status -nt "$top/configure" ] ||
	    "$top/configure" -q --disable-tests CC=gcc CFLAGS='-O2 -g' || exit 1
	make -s clean
	touch built.new
	make -j"$(nproc)" --output-sync=line V=1 CFLAGS='-O2 -g -fanalyzer' &&
	    mv built.new built
) >"$build/build.log" 2>&1 || { tail -n 20 "$build/build.log" >&2; die "build failed: $build/build.log"; }

# directory, source, flags that matter; each source once
awk -v top="$top" '
/ -c -o / {
	line = $0
	sub(/ &&.*/, "", line)
	src = line
	sub(/.* -c -o [^ ]* /, "", src)
	if (src ~ /^`test /) {	# `test -f X || echo DIR`X
		base = src
		sub(/^[^|]*\|\| echo ./, "", src)
		sub(/.`.*/, "", src)
		sub(/.*`/, "", base)
		src = src base
	}
	sub("^" top "/", "", src)
	gsub(/^(\.\.\/)+/, "", src)
	if (seen[src]++)
		next
	flags = ""
	n = split(line, w, " ")
	for (i = 1; i <= n; i++)
		if (w[i] ~ /^-[DI]/) {
			flags = flags " " w[i]
			while (w[i] ~ /\\$/)	# a blank within
				flags = flags " " w[++i]
		}
	dir = src
	sub(/\/[^\/]*$/, "", dir)
	print dir "\t" src "\t" flags
}' "$build/build.log" >"$build/sources"
[ "$(wc -l <"$build/sources")" -gt 50 ] || die "the build's log was not understood"

# Runs a tool on each source, some at a time: $1 is a function of dir, file
# and flags.
each() {
	rm -rf "$build/$1.d"
	mkdir "$build/$1.d"
	n=0
	while IFS='	' read -r dir src flags; do
		(
			cd "$build/$dir" || exit 1
			eval "set -- $1 \"\$top/\$src\" -D__$(uname -m)__=1 $flags"
			"$@"
		) >"$build/$1.d/$n" 2>&1 </dev/null &
		n=$((n + 1))
		[ $((n % $(nproc))) != 0 ] || wait
	done <"$build/sources"
	wait
	cat "$build/$1".d/*
}

run_analyzer() { cat "$build/build.log"; }

# System headers: none but those whose macros shape the text.
one_cppcheck() {
	file=$1; shift
	cppcheck -q --enable=warning,portability,performance --inline-suppr \
	    --library=posix --library=gnu --std=c11 \
	    --include="$(find /usr/include -path '*sys/queue.h' | head -n 1)" \
	    --include=/usr/include/jansson.h '--suppress=*:/usr/include/*' \
	    --suppress=missingIncludeSystem \
	    $(sed -n 's/^cppcheck \([A-Za-z]*\)$/--suppress=\1/p' "$accepted") \
	    --template='{file}:{line}:0: warning: {message} [{id}]' "$@" "$file"
}
run_cppcheck() { each one_cppcheck; }

one_tidy() {
	file=$1; shift
	clang-tidy --quiet "$file" -- -std=gnu17 "$@"
}
run_tidy() { each one_tidy; }

# path:line:col: warning: text [id] -> id path: source
tell() {
	sed -n 's,^\([^ :]*\.[chdef]*\):\([0-9]*\):[0-9]*: \(warning\|error\): \(.*\) \[\([^] ]*\)\]$,\1\t\2\t\5\t\4,p' |
	awk -F '\t' -v top="$top" '
	{
		file = $1
		sub("^" top "/", "", file)
		gsub(/^(\.\.\/)+/, "", file)
		if (file ~ /^\//)
			next
		id = $3
		sub(/^-W/, "", id)
		text = ""
		for (i = 1; (getline s <(top "/" file)) > 0; i++)
			if (i == $2) { text = s; break }
		close(top "/" file)
		gsub(/[ \t]+/, " ", text)
		gsub(/^ | $/, "", text)
		key = id " " file ": " text
		if (!seen[key]++)
			print key "\t" $2 "\t" $4
	}'
}

bad=0
for t in $tools; do
	"run_$t" >"$build/$t.out"
	tell <"$build/$t.out" | sort >"$build/$t.found"
	awk -F '\t' -v list="$accepted" '
	    BEGIN { while ((getline s <list) > 0) ok[s] = 1 }
	    !($1 in ok)' "$build/$t.found" >"$build/$t.new"
	if [ -s "$build/$t.new" ]; then
		echo "not ok - $t"
		awk -F '\t' '{ print $1; print "\t" $2 ": " $3 }' "$build/$t.new"
		bad=1
	else
		echo "ok - $t: $(wc -l <"$build/$t.found") findings, all accepted"
	fi
done
cat "$build"/*.found | cut -f 1 | sort -u >"$build/all"
grep -v -e '^#' -e '^$' -e '^cppcheck ' "$accepted" | sort -u |
    comm -23 - "$build/all" | sed 's/^/accepted, but not found: /'
exit $bad
