#!/bin/sh
# faults.sh: L05 and what else a host can run short of: the state file system
# turns read-only, writes and syncs of the record fail, descriptor tables and
# address spaces are full, the power goes.  Each request gets a defined answer,
# nothing takes effect that is not on the record, what was answered is kept,
# and what runs goes on.
. "$(dirname "$0")/lib.sh"
command -v mkfs.ext4 >/dev/null || { echo "skip: no mkfs.ext4"; exit 77; }
command -v strace >/dev/null || { echo "skip: no strace"; exit 77; }
strace -qq -e trace=none true 2>/dev/null ||
    { echo "skip: strace may not trace here"; exit 77; }
truncate -s 1G "$work/disk"
mkfs.ext4 -q -F "$work/disk" || { echo "skip: mkfs.ext4 fails"; exit 77; }
mkdir "$WB_STATE"
mount -o loop "$work/disk" "$WB_STATE" 2>/dev/null ||
    { echo "skip: no loop device here"; exit 77; }
box_after() {
	umount "$WB_STATE"
	rmdir /sys/fs/cgroup/"$WB_CGROUP-2" /sys/fs/cgroup/*/"$WB_CGROUP-2" \
	    2>/dev/null
}
WB_FLOOR=16777216
WB_BOXES=100	# half of the uids are for another server
WB_CONF_MORE='restart-limit = 1000'
WB_PORT=$((20000 + $$ % 10000))
box_serve

verify=$top/regress/box/verify-chain.py
below() { pgrep -P "$1" -f "^$WB_PREFIX/libexec/workbox/$2" | head -n 1; }
daemon() {
	case $1 in
	privd) echo "$serve_pid" ;;
	maker) below "$serve_pid" maker ;;
	*) below "$(daemon maker)" "$1" ;;
	esac
}
# request METHOD PATH [BODY]: status and code, as "507 disk-full"
request() {
	s=$(curl -s -m 20 -o "$work/body" -w '%{http_code}' -X "$1" -H "Authorization: Bearer $WB_TOKEN" \
	    -H 'Content-Type: application/json' ${3+-d "$3"} "$WB_URL/v1$2")
	echo "$s $(field code <"$work/body")"
}
create() {
	request POST /sandboxes "{\"name\": \"$1\", \"network\": \"none\"}"
}
# run WORD: a command that leaves the word in the box
run() {
	request POST "/sandboxes/$box/exec" \
	    "{\"argv\": [\"sh\", \"-c\", \"echo $1 >>/dev/shm/ran\"]}"
}
ran() { "$WB_BIN" sandbox exec -n keep -- grep -cx "$1" /dev/shm/ran; }
works() { [ "$(run works)" = "200 " ]; }
record() { "$WB_BIN" events export >"$1"; }
boxes() { ls "$WB_STATE/sandboxes"; }
# what must be so after each
whole() {
	await works && pass "$1: the box takes commands" ||
	    fail "$1: the box takes no command" "$(cat "$work/body")"
	is "$1: its session goes on" \
	    "$("$WB_BIN" sandbox ps keep | grep -c ticks)" 1
	made=$(create later)
	is "$1: a box can be made" "$made" "201 "
	ok "$1: and removed" "$WB_BIN" sandbox rm later --grace 0
	clean() { [ "$(boxes)" = "$box" ]; }
	await clean
	is "$1: nothing else is there" "$(boxes)" "$box"
	record "$work/record"
	ok "$1: the chain is whole" sh -c "'$verify' <'$work/record'"
}

ok "a box" "$WB_BIN" sandbox create --name keep --network none
box=$("$WB_BIN" sandbox inspect keep | field id)
"$WB_BIN" sandbox run keep --name ticks -- sh \
    -c 'while :; do echo tick; sleep 0.1; done' >/dev/null
ok "a file in it" "$WB_BIN" sandbox exec keep -- sh -c ': >/dev/shm/ran'

# ---- writes of the record fail ----------------------------------------------

# inject DAEMON CALLS FAULT; mend takes it away
inject() {
	: >"$work/strace"
	strace -f -p "$(daemon "$1")" -e trace="$2" -e inject="$2:$3" \
	    -o "$work/calls" 2>"$work/strace" &
	tracer=$!
	armed() { grep -q attached "$work/strace"; }
	await armed || fail "strace" "$(cat "$work/strace")"
}
# It may wait for a thread of a process that was killed, and hear nobody then.
over() {
	case $(cut -d ' ' -f 3 "/proc/$tracer/stat" 2>/dev/null) in ''|Z) ;;
	    *) return 1 ;; esac
}
mend() {
	kill -TERM "$tracer" 2>/dev/null
	await over || kill -KILL "$tracer" 2>/dev/null
	wait "$tracer" 2>/dev/null
}

# fails TEXT CALLS FAULT
fails() {
	n=$((${n-0} + 1))
	record "$work/before"
	inject stored "$2" "$3"
	like "$1: a command is refused" "$(run "lost$n")" \
	    '^(507 disk-full|500 internal|503 .*)$'
	like "$1: a create is refused" "$(create "lost$n")" \
	    '^(507 disk-full|500 internal|503 .*)$'
	is "$1: nothing was made" "$(boxes)" "$box"
	like "$1: it was injected" "$(grep -c INJECTED "$work/calls")" '^[1-9]'
	if [ -n "${4-}" ]; then
		kill -KILL "$(daemon stored)"
	fi
	mend
	await works || fail "$1: the server is not back"
	is "$1: what was refused never ran" "$(ran "lost$n" 2>/dev/null)" 0
	record "$work/after"
	head -c "$(wc -c <"$work/before")" "$work/after" |
	    cmp -s - "$work/before" &&
	    pass "$1: what was on the record is" ||
	    fail "$1: the record differs"
	is "$1: nothing of it is on the record" \
	    "$(grep -c "echo lost$n\\|\"name\":\"lost$n" "$work/after")" 0
	whole "$1"
}
fails "read-only" pwrite64,writev,pwritev error=EROFS
fails "no space, then power" pwrite64,writev,pwritev error=ENOSPC power
fails "syncs fail, then power" fdatasync error=EIO power
fails "short writes" pwrite64,writev retval=1
inject maker mkdirat error=EROFS
like "the tree of boxes is read-only: a create fails" "$(create ro)" \
    '^500 (create-failed|internal)$'
is "  the others take commands" "$(run ro)" "200 "
mend
whole "the tree of boxes can be written again"

# ---- descriptors ------------------------------------------------------------

highest() {
	for f in "/proc/$1/fd"/*; do echo "${f##*/}"; done | sort -n | tail -n 1
}
# limit PID ARGUMENTS: with its own uid, which needs no capability
limit() {
	u=$(awk '/^Uid:/ { print $2 }' "/proc/$1/status")
	g=$(awk '/^Gid:/ { print $2 }' "/proc/$1/status")
	setpriv --reuid="$u" --regid="$g" --clear-groups prlimit --pid "$@"
}
# few DAEMON MORE: as many as it has, and so many more; enough DAEMON: as before
few() {
	p=$(daemon "$1")
	old=$(limit "$p" --nofile --raw --noheadings -o SOFT)
	limit "$p" --nofile=$(($(highest "$p") + 1 + $2)):
}
enough() { [ "$(daemon "$1")" != "$p" ] || limit "$p" --nofile="$old": ; }

few apid 0
run waits >"$work/waited" &
job=$!
told() { grep -q 'accept: Too many open files' "$work/serve.log"; }
await told && pass "apid without descriptors says so" ||
    fail "apid says nothing"
enough apid
wait $job
is "  and who waits is served when there are some" "$(cat "$work/waited")" \
    "200 "
whole "descriptors of apid"

# a connection fits, what it asks for does not
few apid 1
made=$(create none)
like "apid without one for a box: no box comes of it" "$made" '^(500|503|000) '
enough apid
back() { "$WB_BIN" version; }
await back
whole "descriptors of apid, for a box"

few stored 0
is "stored without descriptors: a command" "$(run stored)" "200 "
enough stored
whole "descriptors of stored"

few privd 0
made=$(create none)
like "privd without descriptors: no box comes of it" "$made" '^(500|503|000) '
ended() { ! kill -0 "$serve_pid"; }
if await ended; then
	wait "$serve_pid" 2>/dev/null
	start_serve "$WB_BIN" --config "$work/workbox.conf"
	pass "  privd ended, and the next finds what there is"
else
	enough privd
	pass "  privd goes on"
fi
whole "descriptors of privd"

# ---- memory -----------------------------------------------------------------

# large NUMBER: its answer, as "200 0", "503 busy" or, when it is cut, "000 "
large() {
	s=$(curl -s -m 10 -o "$work/body.$1" -w '%{http_code}' -H "Authorization: Bearer $WB_TOKEN" -H 'Content-Type: application/json' \
	    -d "@$work/large" "$WB_URL/v1/sandboxes/$box/exec")
	echo "$s $(field exitCode <"$work/body.$1")$(field code \
	    <"$work/body.$1")"
}
{
	printf '{"argv": ["sh", "-c", "wc -c >/dev/null", "'
	head -c 30000 /dev/zero | tr '\0' x
	printf '"], "stdin": "'
	head -c 200000 /dev/zero | tr '\0' y
	printf '"}'
} >"$work/large"
like "a large command is taken" "$(large 0)" '^200 0$'
for d in apid stored; do
	p=$(daemon $d)
	limit "$p" --as=$(($(awk '{ print $1 }' "/proc/$p/statm") * 4096)):
	i=0 jobs=
	rm -f "$work"/body.* "$work"/answer.*
	while [ $i -lt 12 ] && [ "$(daemon $d)" = "$p" ]; do
		: >"$work/body.$i"
		large $i >"$work/answer.$i" &
		jobs="$jobs $!"
		i=$((i + 1))
		# shellcheck disable=SC2086	# a list
		[ $((i % 4)) != 0 ] || { wait $jobs; jobs=; }
	done
	# shellcheck disable=SC2086	# a list
	[ -z "$jobs" ] || wait $jobs
	await works
	if [ "$(daemon $d)" = "$p" ]; then
		limit "$p" --as=unlimited:
		how="went on" \
		    may='^(200 0|500 internal|503 [a-z-]+|507 disk-full)$'
	else
		how="was started anew" \
		    may='^(200 0|500 internal|503 [a-z-]+|507 disk-full|000 )$'
	fi
	got=$(sort "$work"/answer.* | uniq -c | tr '\n' ',')
	is "$d without memory $how; each of $i has an answer that says what came of it:$got" \
	    "$(cat "$work"/answer.* | grep -Evc "$may"),$(cat "$work"/answer.* |
	    wc -l)" "0,$i"
	whole "memory of $d"
done

# ---- the power goes: the files at a moment, opened by another server --------

# What is on the disk when stored enters a call: all that was written.  What was
# written since the last sync may be on it or not, each page for itself: pages
# OLD COPY SEED takes some of them back.
pages() {
	/usr/bin/python3 - "$@" <<-'!'
	import random, sys
	old, new = (open(f"{d}/db/data.mdb", "rb").read() for d in sys.argv[1:3])
	random.seed(int(sys.argv[3]))
	out, changed = bytearray(new), 0
	for at in range(8192, len(new), 4096):	# the two heads are written in order
	    if new[at:at + 4096] != old[at:at + 4096].ljust(4096, b"\0"):
	        changed += 1
	        if random.random() < 0.5:
	            out[at:at + 4096] = old[at:at + 4096].ljust(4096, b"\0")
	open(f"{sys.argv[2]}/db/data.mdb", "r+b").write(out)
	print(changed)
	!
}
copy() {
	mkdir "$1"
	cp -a "$WB_STATE/db" "$1/db"
}
# power_cut CALL N [SEED]: stopped as it enters its Nth such call
power_cut() {
	copied=$work/cut$1$2${3-}
	: >"$work/answered"
	p=$(daemon stored)
	quiet() {
		record "$work/a"
		record "$work/b"
		cmp -s "$work/a" "$work/b"
	}
	await quiet
	[ -z "${3-}" ] || copy "$copied.old"
	inject stored "$1" "signal=SIGSTOP:when=$2"
	(i=0; while [ $i -lt 4 ]; do run "cut" >>"$work/answered"; \
	    i=$((i + 1)); done) &
	job=$!
	stopped() { grep -q 'stopped by SIGSTOP' "$work/calls"; }
	await stopped || fail "power at $1 $2: it never came"
	copy "$copied"
	answered=$(grep -c '^200' "$work/answered")
	mend
	kill -CONT "$p"
	wait $job
	record "$work/record"
	if [ -n "${3-}" ]; then
		like "power at $1 $2: pages differ" \
		    "$(pages "$copied.old" "$copied" "$3")" '^[1-9]'
	fi
	# another server on the copy; boxes are not there, and that is told
	cp -a "$WB_STATE/runtime" "$WB_STATE/rootfs" "$copied"
	sed -e "s/^net-uid-base = .*/net-uid-base = $((WB_UIDS + 8388608))/" \
	    -e "s/^uid-base = .*/uid-base = $((WB_UIDS + 8454144))/" \
	    -e "s|$WB_STATE|$copied|" -e "s|$WB_CGROUP|$WB_CGROUP-2|" \
	    -e 's/^restart-limit = .*/restart-limit = 1/' -e \
	    "s|:$WB_PORT\"|:$(free_port $((WB_PORT + 7)))\"|" \
	    "$work/workbox.conf" >"$copied/conf"
	other=$(sed -n 's/^listen = {"\(.*\)"}/\1/p' "$copied/conf")
	(
		work=$copied
		start_serve "$WB_BIN" --config "$copied/conf"
		WORKBOX_SERVER=http://$other "$WB_BIN" events export >"$copied/record"
		WORKBOX_SERVER=http://$other "$WB_BIN" sandbox rm keep --grace 0 >/dev/null 2>&1
		stop_serve
	)
	ok "power at $1 $2: the chain is whole" sh \
	    -c "'$verify' <'$copied/record'"
	# what the second adds begins with its start
	head -n "$(($(grep -n '"type":"server.started"' "$copied/record" |
	    tail -n 1 | cut -d: -f1) - 1))" "$copied/record" >"$copied/then"
	head -n "$(wc -l <"$copied/then")" "$work/record" |
	    cmp -s - "$copied/then" &&
	    pass "power at $1 $2: it is what the first had then" ||
	    fail "power at $1 $2: the records differ"
	had=$(grep -c '"echo cut' "$copied/then")
	[ "$had" -ge $((cuts + answered)) ] &&
	    pass "power at $1 $2: $answered answered commands are there" ||
	    fail "power at $1 $2: $had of $((cuts + answered)) commands"
	cuts=$(grep -c '"echo cut' "$work/record")
	rm -rf "$copied" "$copied.old"
}
cuts=0
seeds=1
power_cut pwrite64 9
power_cut fdatasync 6
if [ "${WB_LANE-fast}" = long ]; then
	seeds=$(seq 20)
	for i in 1 2 3 4 5; do
		power_cut writev $i
		power_cut fdatasync $((i + 2))
	done
fi
# at the first, nothing but what belongs to it is not yet synced
for seed in $seeds; do power_cut fdatasync 1 $seed; done
whole "the first server"

# ---- the file system itself gives up, and is read-only until it is mended ---

if mount -o remount,abort "$WB_STATE" 2>/dev/null; then
	! touch "$WB_STATE/probe" 2>/dev/null &&
	    pass "the file system is read-only" || fail "it can be written"
	record "$work/before"
	like "a command is refused" "$(run dead)" '^5[0-9][0-9] '
	like "a create is refused" "$(create dead)" '^5[0-9][0-9] '
	more() {
		[ "$("$WB_BIN" sandbox logs keep ticks | wc -l)" -gt "$ticks" ]
	}
	ticks=$("$WB_BIN" sandbox logs keep ticks | wc -l)
	await more && pass "what runs goes on, and is read" ||
	    fail "no output" \
	    "$("$WB_BIN" sandbox logs keep ticks 2>&1 | tail -n 1)"
	init=$(cat /sys/fs/cgroup/"$WB_CGROUP/$box"/box/runner/cgroup.procs \
	    /sys/fs/cgroup/*/"$WB_CGROUP/$box"/box/runner/cgroup.procs \
	    2>/dev/null | head -n 1)
	is "what was refused did not run" \
	    "$(grep -cx -e works -e dead \
	    "/proc/$init/root/dev/shm/ran"),$(grep -cx dead "/proc/$init/root/dev/shm/ran")" \
	    "$("$WB_BIN" events export | grep -c '"echo works'),0"
	stop_serve
	# all of it ends, as with the host
	for g in "/sys/fs/cgroup/$WB_CGROUP" /sys/fs/cgroup/*/"$WB_CGROUP"; do
		[ ! -e "$g/cgroup.kill" ] || echo 1 >"$g/cgroup.kill"
	done
	unmounted() { umount "$WB_STATE"; }
	await unmounted || fail "it stays mounted"
	# as long as a namespace has it, it would be the same one again
	free() { [ -z "$(losetup -j "$work/disk")" ]; }
	await free || fail "its device is held" "$(losetup -j "$work/disk")"
	fsck.ext4 -p "$work/disk" >"$work/fsck" 2>&1 || [ $? -le 2 ] ||
	    fail "fsck" "$(cat "$work/fsck")"
	mount -o loop "$work/disk" "$WB_STATE"
	start_serve "$WB_BIN" --config "$work/workbox.conf"
	record "$work/after"
	head -c "$(wc -c <"$work/before")" "$work/after" |
	    cmp -s - "$work/before" &&
	    pass "after mending, what was on the record is" ||
	    fail "the record differs"
	ok "the chain is whole" sh -c "'$verify' <'$work/after'"
	is "the box is told to be gone" \
	    "$("$WB_BIN" sandbox inspect keep | field state)" STOPPED
	is "a box can be made" "$(create anew)" "201 "
	ok "and removed" "$WB_BIN" sandbox rm anew keep --grace 0
else
	skip "the file system gives up: it cannot be told to here"
fi
box_done
