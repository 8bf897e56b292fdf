# lib.sh: for black-box scripts.  Each script sources it, calls box_serve,
# makes checks with ok/is/like, and ends with box_done.
#
# WB_PREFIX: where the programs are installed (default build/inst).
# A private directory, cgroup name, port and key; everything is ended and
# removed on the way out; the server's log is shown when a check failed.

top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/etc/steps.sh"
set -u

WB_PREFIX=${WB_PREFIX:-$top/build/inst}
WB_BIN=$WB_PREFIX/bin/workbox
[ "$(id -u)" = 0 ] || { echo "skip: needs root"; exit 77; }
[ -x "$WB_BIN" ] || { echo "skip: $WB_BIN is not there"; exit 77; }
work=${WB_WORK:-$(mktemp -d /tmp/wb-regress.XXXXXX)}
WB_STATE=$work/state
WB_CGROUP=wb-regress-$$
# uids for 255 boxes and a netd, or, where WB_BOXES are more, for 511, of this
# script alone: a lock goes with whoever holds it; nor those of a box that
# somebody left
take_uids() {
	mkdir -p /run/wb-regress
	many=$((${WB_BOXES:-255} > 255))
	for i in $(seq 0 31); do
		i=$((($$ + i) % 32))
		WB_UIDS=$((1342111744 + i * 16777216))
		exec 9>"/run/wb-regress/$i"
		flock -n 9 || continue
		if [ $many = 1 ]; then
			exec 7>"/run/wb-regress/$((i + 1))"
			[ $i -lt 31 ] && flock -n 7 || continue
		fi
		ps -eo ruid= |
		    awk -v u=$WB_UIDS -v n=$((16777216 * (1 + many))) \
		    '$1 >= u && $1 < u + n { exit 1 }' && return
	done
	echo "skip: all ranges of uids in /run/wb-regress are in use"
	exit 77
}
take_uids
serve_pid= watch_pid=
passed=0 failed=0 skipped=0
# nobody's client file but the test's
XDG_CONFIG_HOME=$work/config
unset WORKBOX_CACERT
export WB_PREFIX WB_BIN WB_STATE WB_CGROUP XDG_CONFIG_HOME

wb() { "$WB_BIN" sandbox "$@"; }
# The first member of a name in an object that is read: text, number or word.
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" | head -n 1; }
state() { wb inspect "$1" | field state; }
in_state() { [ "$(state "$1")" = "$2" ]; }
# Whether the server does; `version' is content without one.
answers() { wb list >/dev/null 2>&1; }

# A state directory with the runtime and the minimal root file system; the
# latter is copied from WB_ROOTFS when that is set (faster).
box_state() {
	mkdir -p "$WB_STATE"
	"$WB_BIN" runtime install --state "$WB_STATE" >"$work/runtime.log" \
	    2>&1 || { cat "$work/runtime.log"; exit 1; }
	if [ ! -e "$WB_STATE/rootfs/minimal" ]; then
		"$WB_BIN" rootfs build minimal --state "$WB_STATE" \
		    >"$work/rootfs.log" 2>&1 ||
		    { cat "$work/rootfs.log"; exit 1; }
	fi
}

# The state directory on an ext4 of its own, before box_serve; the script is
# skipped where there can be none.
box_disk() {	# size mkfs-options...
	command -v mkfs.ext4 >/dev/null ||
	    { echo "skip: no mkfs.ext4"; exit 77; }
	truncate -s "$1" "$work/disk"; shift
	mkfs.ext4 -q -F "$@" "$work/disk" ||
	    { echo "skip: mkfs.ext4 fails"; exit 77; }
	mkdir "$WB_STATE"
	mount -o loop "$work/disk" "$WB_STATE" 2>/dev/null ||
	    { echo "skip: no loop device here"; exit 77; }
	box_after() { umount "$WB_STATE"; }
}

# box_serve [more lines of configuration on standard input: "-"]
box_serve() {
	[ -e "$WB_STATE/runtime/runner" ] || box_state
	port=$(free_port "${WB_PORT:-18790}")
	WB_PORT=$port
	WB_URL=${WB_SCHEME:-http}://127.0.0.1:$port
	WB_TOKEN=${WB_TOKEN:-$(new_token)}
	WORKBOX_SERVER=$WB_URL WORKBOX_TOKEN=$WB_TOKEN
	export WB_URL WB_TOKEN WORKBOX_SERVER WORKBOX_TOKEN
	box_conf
	start_serve "$WB_BIN" --config "$work/workbox.conf"
	box_watch
}

# The configuration of a server at $port.
box_conf() {
	{
		echo "state-dir = \"$WB_STATE\""
		echo "cgroup = \"$WB_CGROUP\""
		echo "socket = \"${WB_SOCKET-$WB_STATE/api.sock}\""
		echo "listen = {\"127.0.0.1:$port\"}"
		# uids of its own, and no mind for how full a test machine's
		# disk is
		echo "net-uid-base = $WB_UIDS"
		echo "uid-base = $((WB_UIDS + 65536))"
		echo "max-boxes = ${WB_BOXES:-255}"
		echo "disk-floor = ${WB_FLOOR:-67108864}"
		[ -z "${WB_CONF-}" ] || printf '%s\n' "$WB_CONF"
		[ -z "${WB_CONF_MORE-}" ] || printf '%s\n' "$WB_CONF_MORE"
	} >"$work/workbox.conf"
}

# Every answer that a test sees is held against the served OpenAPI document:
# clients talk to watch.py, which passes on and looks.  WB_DIRECT: they do not.
box_watch() {
	[ -z "${WB_DIRECT-}" ] && [ -z "$watch_pid" ] || return 0
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	mkfifo "$work/watching"
	watch=$(free_port $((port + 1)))
	PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$top/regress/http/watch.py" \
	    "$watch" "$port" "$work/watch" >"$work/watching" \
	    2>"$work/watch.err" &
	watch_pid=$!
	read -r _ <"$work/watching" || { cat "$work/watch.err"; exit 1; }
	rm "$work/watching"
	WB_URL=http://127.0.0.1:$watch WORKBOX_SERVER=http://127.0.0.1:$watch
	export WB_URL WORKBOX_SERVER
}

box_watched() {
	[ -n "$watch_pid" ] || return 0
	kill -TERM "$watch_pid"
	wait "$watch_pid"
	watch_pid=
	like "answers are what the OpenAPI document says: $(head -n 1 \
	    "$work/watch")" \
	    "$(head -n 20 "$work/watch")" '^[1-9][0-9]* answers, 0 faults$'
}

box_stop() {
	[ -n "$serve_pid" ] || return 0
	stop_serve
	serve_pid=
}

# The daemons of our own privd, by name: `box_pid stored'.
box_pid() {
	for p in $(pgrep -P "$serve_pid") \
	    $(pgrep -P "$(pgrep -d, -P "$serve_pid")" 2>/dev/null); do
		case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in
		*/"$1"\ *|*/"$1") echo "$p"; return 0 ;;
		esac
	done
	return 1
}

# The first of these files of a box's control group that there is, in whichever
# hierarchy.
knob() {	# id file...
	b=$1; shift
	for k in "$@"; do
		for f in "/sys/fs/cgroup/$WB_CGROUP/$b/box/$k" \
		    /sys/fs/cgroup/*/"$WB_CGROUP/$b/box/$k"; do
			[ ! -e "$f" ] || { echo "$f"; return; }
		done
	done
}

# The set goes and another comes: every box is attached anew, its proof
# compared.
set_again() {
	apid_was=$(box_pid apid)
	kill -KILL "$apid_was"
	apid_other() { p=$(box_pid apid) && [ "$p" != "$apid_was" ]; }
	await apid_other && await answers
}

# Every process below ours that runs libexec/NAME, and itself.
descendants() {
	for c in $(pgrep -P "$1"); do echo "$c"; descendants "$c"; done
}
daemon_pids() {
	for p in $serve_pid $(descendants "$serve_pid"); do
		[ "$(readlink "/proc/$p/exe")" != \
		    "$WB_PREFIX/libexec/workbox/$1" ] || echo "$p"
	done
}

pass() { passed=$((passed + 1)); echo "ok - $1"; }
fail() {
	failed=$((failed + 1))
	echo "not ok - $1"
	shift
	[ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/#   /'
}
skip() { skipped=$((skipped + 1)); echo "skip - $1"; }

ok() {		# text command...: succeeds
	t=$1; shift
	out=$("$@" 2>&1) && pass "$t" || fail "$t" "exit $?: $*" "$out"
}
no() {		# text status command...: fails with that status
	t=$1 want=$2; shift 2
	out=$("$@" 2>&1); got=$?
	[ "$got" = "$want" ] && pass "$t" ||
	    fail "$t" "exit $got, expected $want: $*" "$out"
}
is() {		# text got expected
	[ "$2" = "$3" ] && pass "$1" || fail "$1" "got: $2" "expected: $3"
}
like() {	# text got extended-regular-expression
	printf '%s\n' "$2" | grep -Eq -- "$3" && pass "$1" ||
	    fail "$1" "got: $2" "expected: /$3/"
}

# Waits for a state by asking for it, at most about 20 s.
# What it asks by may wait in turn: nothing here is counted in a variable.
await() {	# command...
	for _ in $(seq 400); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05	# the pace of asking; nothing relies on it
	done
	return 1
}

# How many lines of the server's log are so.
log() { grep -c "$1" "$work/serve.log"; }
# SIGHUP, until the reader has said what it made of it.
hup() {
	was=$(log 'reader.*: reload: ')
	kill -HUP "$serve_pid"
	await eval "[ \$(log 'reader.*: reload: ') -gt $was ]" ||
	    fail "no word of the reader"
}

# No box is in the list any more: one that is being deleted still is for a
# while, and no other.
none_left() {	# client
	listed=$("$1" sandbox list --format json) ||
	    fail "the list, to see what is left" "$listed"
	states=$(echo "$listed" | sed -n 's/.*"state": *"\([A-Z]*\)".*/\1/p')
	is "what is listed still is being deleted" \
	    "$(echo "$states" | grep -v -e '^DELETING$' -e '^$')" ""
	none_listed() { [ "$("$1" sandbox list | wc -l)" = 1 ]; }
	await none_listed "$1" && pass "none is left" ||
	    fail "some are left" "$("$1" sandbox list)"
}

# What must be the same before and after: mounts, namespaces, cgroups, rules,
# descriptors of every daemon, files; all of them ours, since a busy host
# changes in other ways meanwhile.  Remembered by `await settled', and held
# against that by `await quiet'; $work/before and $work/now say what differs.
facts() {
	echo "host mounts: $(grep -c -e "$work" -e "$WB_PREFIX" \
	    /proc/self/mountinfo)"
	for d in privd maker netd uplinkd proxyd stored apid; do
		for p in $(daemon_pids "$d"); do
			echo "$d mounts: $(wc -l <"/proc/$p/mountinfo")"
			echo "$d descriptors: $(ls "/proc/$p/fd" | wc -l)"
		done
	done
	lsns -n -o UID,TYPE |
	    awk -v u="$WB_UIDS" \
	    '$1 >= u && $1 < u + 16777216 { print "namespace", $2 }' | sort |
	    uniq -c
	find /sys/fs/cgroup -type d -path "*/$WB_CGROUP*" | sort
	nft list tables 2>/dev/null
	find "$WB_STATE" -path "$WB_STATE/db" -prune -o -print | sort
}

# processes and files with a uid of the boxes' ranges, and not another test's
uids_in_use() {
	ps -eo uid=,cgroup= |
	    awk -v u="$WB_UIDS" -v g="$WB_CGROUP" \
	    '$1 >= u + 65536 && $1 < u + 16777216 && (index($0, g) || !/wb-regress-/)' | wc -l
	find "$WB_STATE" -path "$WB_STATE/db" -prune -o -uid "+$WB_UIDS" \
	    -print | wc -l
}

settled() {
	facts >"$work/before"
	sleep 0.2
	facts >"$work/now"
	cmp -s "$work/before" "$work/now"
}
quiet() { facts >"$work/now" && cmp -s "$work/now" "$work/before"; }

# Mounts and processes of its own, whose pid 1, $ns, runs a script: when that
# has made a root of its own it says `up', or this one is skipped.
ns=
enter() {	# script what-there-is-none-of-then
	mkfifo "$work/up"
	unshare -m -p -f --propagation private sh "$1" >"$work/up" \
	    2>"$work/enter.log" &
	read -r r <"$work/up"
	ns=$(pgrep -P $!)
	[ "$r" = up ] ||
	    { cat "$work/enter.log"; echo "skip: no $2 here"; exit 77; }
}

# What else a script undoes at its end, once the server is gone: it redefines
# it.
box_after() { :; }

box_cleanup() {
	trap - EXIT INT TERM HUP
	[ -z "$watch_pid" ] || kill -TERM "$watch_pid"
	if [ -n "$serve_pid" ]; then
		# nobody looks on
		WORKBOX_SERVER=${WB_SCHEME:-http}://127.0.0.1:$WB_PORT
		for b in $("$WB_BIN" sandbox list --format json 2>/dev/null |
		    sed -n 's/.*"id": *"\([0-9A-Z]\{26\}\)".*/\1/p'); do
			"$WB_BIN" sandbox rm "$b" --grace 0 >/dev/null 2>&1 ||
			    "$WB_BIN" sandbox rm "$b" >/dev/null 2>&1
		done
		stop_serve >/dev/null 2>&1
	fi
	# the server takes its empty tree away; one that was killed did not
	for t in /sys/fs/cgroup/"$WB_CGROUP" /sys/fs/cgroup/*/"$WB_CGROUP"; do
		[ ! -e "$t/uplinks/cgroup.kill" ] ||
		    echo 1 >"$t/uplinks/cgroup.kill"
		rmdir "$t"/uplinks/*/ "$t/uplinks" "$t" 2>/dev/null
	done
	[ "$failed" = 0 ] || { echo "# log of the server:"; tail -n 40 \
	    "$work/serve.log" 2>/dev/null | sed 's/^/#   /'; }
	box_after
	[ -n "${WB_KEEP-}" ] || [ -n "${WB_WORK-}" ] || rm -rf "$work"
}
trap 'box_cleanup; exit 1' INT TERM HUP
trap 'box_cleanup' EXIT

box_done() {
	box_watched
	echo "# $passed passed, $failed failed, $skipped skipped"
	box_cleanup
	[ "$failed" = 0 ] || exit 1
	exit 0
}
