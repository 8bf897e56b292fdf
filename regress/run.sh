#!/bin/sh
# run.sh [--long] [SECTION...]: installs what the tests need, builds, and runs
# every test.  The fast lane takes up to 15 minutes on two cores, the long one
# up to 100.  Ends with a line that counts.
#
# Sections: quickstart check box uml sanitize http docs, and in the long lane
# mutants, lint and packages; all of them when none is named.  Logs are in
# build/test/logs.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/steps.sh"

lane=fast sections=
for a in "$@"; do
	case $a in
	--long)	lane=long ;;
	-*)	die "usage: run.sh [--long] [SECTION...]" ;;
	*)	sections="$sections $a" ;;
	esac
done
[ $lane = fast ] || long='mutants lint packages'
: "${sections:=quickstart check box uml sanitize http docs ${long-}}"

build=$top/build/test
work=$build/logs
prefix=$build/inst
pkg_new= users_new=
rm -rf "$work"
mkdir -p "$work"

# In a file, since two workers count at a time.
add() { echo "$@" >>"$work/counts"; }

# An interrupt ends what runs: a script undoes then what it did.  Each has a
# process group of its own by timeout(1), and is not reached from a terminal.
jobs= guest= asan=
end() {
	trap '' INT TERM HUP
	# shellcheck disable=SC2086	# lists
	[ -z "$jobs$guest$asan" ] || { kill -TERM $jobs $guest $asan; wait $jobs $guest $asan; }
	exit 130
}
trap 'say "interrupted: what runs is ended"; end' INT TERM HUP

# What a shell starts with `&' ignores SIGINT, and all that it starts in turn.
job() {	# name-of-its-log command...
	log=$work/$1.log; shift
	env --default-signal=INT,QUIT "$@" >"$log" 2>&1 </dev/null &
	jobs=$!
	wait $!
	ended=$?
	jobs=
	return $ended
}

# Counts `ok - ', `not ok - ' and `skip - ' lines; a script that dies without
# a `not ok' counts as one failure.
script() {	# name command...
	name=$1; shift
	t0=$(date +%s)
	# none takes so long; one that hangs is to be told of, too
	job "$name" timeout -k 30 \
	    "$([ $lane = long ] && echo 7200 || echo 900)" "$@"
	r=$?
	p=$(grep -c '^ok - ' "$work/$name.log")
	f=$(grep -c '^not ok - ' "$work/$name.log")
	s=$(grep -c '^skip - ' "$work/$name.log")
	if [ $r = 77 ]; then
		s=$((s + 1))
	elif [ $r != 0 ] && [ "$f" = 0 ]; then
		f=1
	fi
	[ $r != 0 ] || [ $((p + f + s)) -gt 0 ] || p=1
	add "$p" "$f" "$s"
	say "$name: $p passed, $f failed, $s skipped ($(($(date +%s) - t0)) s)"
	[ "$f" = 0 ] || { grep -A6 '^not ok - ' "$work/$name.log" | head -n 60; tail -n 15 "$work/$name.log"; }
	[ $r != 77 ] || tail -n 1 "$work/$name.log"
}

# Automake's summary of `make check'.
suite() {	# name build-directory [TESTS=...]
	t0=$(date +%s)
	job "$1" make -s -j2 -C "$2" check "${3-WB_ALL=}"
	r=$?
	p=$(awk '/^# PASS:/ { n += $3 } END { print n + 0 }' "$work/$1.log")
	f=$(awk '/^# (FAIL|ERROR|XPASS):/ { n += $3 } END { print n + 0 }' "$work/$1.log")
	s=$(awk '/^# SKIP:/ { n += $3 } END { print n + 0 }' "$work/$1.log")
	[ $r = 0 ] || [ "$f" != 0 ] || f=1
	add "$p" "$f" "$s"
	say "$1: $p programs passed, $f failed, $s skipped ($(($(date +%s) - t0)) s)"
	[ "$f" = 0 ] || { grep -E '^(FAIL|ERROR)' "$work/$1.log"; tail -n 40 "$work/$1.log"; cat "$2"/regress/*.log 2>/dev/null | grep -aE ':[FE]:' | head -n 30; }
}

built=
need_build() {
	[ -z "$built" ] || return 0
	step_build "$build" "$prefix" --enable-werror
	[ "$(id -u)" != 0 ] || step_users
	built=1
}

section_quickstart() {
	script quickstart sh "$top/etc/quickstart.sh"
}

section_check() {
	need_build
	suite check "$build"
}

# The programs under sanitizers, with what time others leave.
asan_run() {
	trap end TERM
	jobs= guest= asan=
	# shellcheck disable=SC2016	# for that shell
	job asan timeout -k 30 900 nice -n 19 sh -c 'top=$0 work=$1
	    . "$top/etc/steps.sh"
	    step_build "$work" "$work/inst" --enable-sanitizers "CFLAGS=-O1 -g"
	    make -s -j2 -C "$work" check TESTS=' "$top" "$build/asan"
}

section_sanitize() {
	mkdir -p "$build/asan"
	[ -z "$asan" ] || wait "$asan"
	asan=
	# what that had no time for, or its errors
	step_build "$build/asan" "$build/asan/inst" --enable-sanitizers \
	    'CFLAGS=-O1 -g'
	# the fast lane leaves out those that mostly wait for the kernel
	suite sanitize "$build/asan" "$([ $lane = long ] && echo WB_ALL= || echo \
	    "TESTS=again_test allow_test apid_allow apid_denials apid_network apid_test apid_text_test cert_test chan_test client_test common_test conf_test disk_test dns_test head_test hello_test http_parse_test look_test looks_test nflog_test ns_test passed_test pool_test proto_test proxy_box_test proxy_names_test record_test relay_test ring_test room_test route_test ruleset_test runner_test sealed_test stored_lists_test stored_test text_test tls_test wire_test $(cd "$top/regress/fuzz/corpus" && echo * | sed "s/[^ ]*/&_fuzz/g")")"
}

# Those that look at nothing but their own server, and mostly wait for it: two
# at a time.  What counts processes or mounts of the host, or times, is alone.
together='api attacks attacks_fs badinput cannot cli client daemons destroy disk
    doctor elf evidence faults hostile hungry init launch_log limits metrics
    proxies record reload restart rootfs sessions steps syslog tls traitor tree
    upgrade ux waysout'

box_script() {	# path
	WB_PREFIX=$prefix WB_BUILD=$build script "$(basename "$1" .sh)" sh "$1"
}

# Takes of $together what the other worker has not.
worker() {	# number
	trap end TERM
	jobs= guest= asan=
	WB_PORT=$((18790 + $1 * 2000))
	export WB_PORT
	for t in "$top"/regress/box/*.sh "$top"/regress/confine/*.sh; do
		name=$(basename "$t" .sh)
		case " "$(echo $together)" " in *" $name "*) ;; *) continue ;; esac
		mkdir "$work/$name.taken" 2>/dev/null || continue
		box_script "$t"
	done
}

section_box() {
	need_build
	case " $sections " in
	*' sanitize '*)
		mkdir -p "$build/asan"
		asan_run &
		asan=$! ;;
	esac
	worker 0 & jobs=$!
	worker 1 & jobs="$jobs $!"
	# shellcheck disable=SC2086	# a list
	wait $jobs
	jobs=
	for t in "$top"/regress/box/*.sh "$top"/regress/confine/*.sh; do
		name=$(basename "$t" .sh)
		case $name in lib | inet | inet_debian | '*') continue ;; esac
		[ -d "$work/$name.taken" ] || box_script "$t"
	done
}

section_http() {
	need_build
	for t in "$top"/regress/http/*.sh; do
		WB_PREFIX=$prefix WB_BUILD=$build script "http-$(basename "$t" .sh)" sh "$t"
	done
}


section_docs() {
	need_build
	WB_PREFIX=$prefix WB_BUILD=$build script docs sh "$top/regress/docs.sh"
	PYTHONDONTWRITEBYTECODE=1 script bounds python3 "$top/regress/bounds.py"
	WB_BUILD=$build script dist sh "$top/regress/dist.sh"
}

# Makes a copy of the tree and builds it for itself.
section_mutants() {
	need_build
	WB_BUILD=$build script mutants sh "$top/regress/mutants/run.sh"
}

section_lint() {
	[ "$(id -u)" != 0 ] || step_packages lint
	script lint sh "$top/regress/lint.sh"
}

# What becomes of the sources elsewhere: packages, other C libraries and
# processors.
section_packages() {
	need_build
	[ "$(id -u)" != 0 ] || step_packages long
	for t in "$top"/regress/packages/*.sh; do
		WB_PREFIX=$prefix WB_BUILD=$build script \
		    "packages-$(basename "$t" .sh)" sh "$t"
	done
}

# One processor's work, and nothing of the host's: beside what comes next.
section_uml() {
	need_build
	guest_run &
	guest=$!
}

guest_run() {
	trap end TERM
	jobs= guest= asan=
	WB_PREFIX=$prefix script uml sh "$top/regress/uml/run.sh" \
	    "$([ $lane = long ] && echo long || echo short)"
	[ $lane = fast ] || WB_PREFIX=$prefix WB_BUILD=$build script inits \
	    sh "$top/regress/uml/inits.sh"
}

[ "$(id -u)" != 0 ] || {
	step_packages build run test $([ $lane = fast ] || echo long)
	step_node
}
WB_LANE=$lane
export WB_LANE
for s in $sections; do
	command -v "section_$s" >/dev/null || die "no section $s"
	"section_$s"
done
[ -z "$guest" ] || wait "$guest"
set -- $(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$work/counts")
say "$1 passed, $2 failed, $3 skipped"
[ "$2" = 0 ]
