# boxes.sh: for the guests of inits.sh: boxes at their limits, with a session
# each that counts, and what must be so of them whatever init does with the
# server; clients that come all the time.  Sourced behind box/lib.sh.
#
# The guest is made for this test: nothing is undone that goes with it.

boxes=10
memory=67108864		# of which sessions have three quarters
pids=128		# of which sessions have 64

# Counts without a process: there is none left to be had.
count='mkfifo /tmp/f; exec 3<>/tmp/f; i=0
while [ ! -e /tmp/end ]; do
	echo $i; i=$((i + 1)); read -t 0.1 x <&3
done
echo end'

each() {	# function: for every box
	for b in $(seq $boxes); do "$1" "b$b" || return 1; done
}
make_one() {
	wb create --name "$1" --network none --memory $memory --pids $pids &&
	    wb run "$1" --name count -- sh -c "$count" &&
	    wb exec "$1" -- sh -c \
	    'for d in /dev/shm /tmp; do head -c 20000000 /dev/zero >$d/x; done' ||
		return 1
	# its shell ends at the first that it cannot have; the others stay
	wb exec "$1" --name procs -- sh -c \
	    'while :; do sleep 100000 & done' || :
}
boxes_begin() {
	ok "make $boxes boxes" each make_one
	[ $failed = 0 ] || box_done	# nothing below could hold
	tree=$(dirname "$(find /sys/fs/cgroup -path '*/box/runner' -type d |
	    head -n 1 | sed 's|/box/runner$||')")
	like "in the control group that they should be in" "$tree" "$1"
	ones=$(pid_ones)
	is "each has its pid 1" "$(echo "$ones" | wc -l)" $boxes
	wb logs b1 count --follow >"$work/follow" 2>"$work/follow.err" &
	follow=$!
}

pid_ones() { cat "$tree"/*/box/runner/cgroup.procs | sort -n; }
# What the kernel says, of each the same.
said() {	# file below a box's group
	cat "$tree"/*/box/"$1" | sort | uniq -c | sed 's/^ *//'
}
full() {
	for d in "$tree"/*/box/sessions; do
		# one of them ended when it could have no other
		[ "$(cat "$d/pids.current")" -ge $((pids - 64 - 1)) ] &&
		    [ "$(cat "$d/memory.current")" -gt \
		    $(($(cat "$d/memory.max") * 8 / 10)) ] ||
			echo "$d: $(cat "$d/pids.current") processes," \
			    "$(cat "$d/memory.current") bytes"
	done
}
healths() {
	wb list --format json | jq -r '.. | objects | select(.health?) |
	    .state + " " + (.health | if type == "object" then .state
	    else . end)' | sort | uniq -c | sed 's/^ *//'
}
all_healthy() { [ "$(healths)" = "$boxes READY HEALTHY" ]; }

boxes_whole() {	# when
	await all_healthy
	is "$1: all are READY and HEALTHY" "$(healths)" \
	    "$boxes READY HEALTHY"
	is "$1: pid 1 of each is the same" "$(pid_ones)" "$ones"
	is "$1: their memory is bounded" "$(said memory.max)" \
	    "$boxes $memory"
	is "$1: without swap" "$(said memory.swap.max)" "$boxes 0"
	is "$1: their processes are, too" "$(said pids.max) $(said \
	    sessions/pids.max)" "$boxes $pids $boxes $((pids - 64))"
	is "$1: their sessions are at these bounds" "$(full)" ''
}

end_one() {
	wb kill "$1" procs --signal KILL &&
	    await wb exec "$1" -- touch /tmp/end && wb wait "$1" count &&
	    wb logs "$1" count >"$work/out.$1"
}
# What differs from 0, 1, 2 ... end.
holes() {
	awk '$0 != NR - 1 { print FILENAME ": " NR ": " $0 }' "$1" |
	    sed "s|^$work/||" | grep -v ": $(wc -l <"$1"): end$"
}
boxes_end() {
	ok "the sessions are told to end" each end_one
	like "their output is long" "$(wc -l <"$work/out.b1")" '^[0-9]{3,}$'
	is "and of all of them whole" "$(for b in $(seq $boxes); do
	    tail -n 1 "$work/out.b$b"; holes "$work/out.b$b"; done |
	    sort | uniq -c | sed 's/^ *//')" "$boxes end"
	wait "$follow"
	is "who followed one has got the same" "$(cksum <"$work/follow")" \
	    "$(cksum <"$work/out.b1")"
	remove() { wb rm "$1" --grace 0; }
	ok "remove them" each remove
	none_left "$WB_BIN"
}

# ---- clients that come all the time, over TCP and the socket's path

come() {	# what, and curl's options for it
	echo "$1" >>"$work/came"
	at=$1; shift
	curl -s -S -o /dev/null --max-time 100 -H "@$work/key" "$@" \
	    http://127.0.0.1:8790/v1/sandboxes 2>"$work/why.$at" ||
	    echo "$at: $? $(cat "$work/why.$at")" >>"$work/turned"
}
come_begin() {
	echo "Authorization: Bearer $(cat /etc/workbox/token)" >"$work/key"
	rm -f "$work/enough" "$work/came" "$work/turned"
	while [ ! -e "$work/enough" ]; do come tcp; done &
	come1=$!
	while [ ! -e "$work/enough" ]; do
		come path --unix-socket /run/workbox/api.sock
	done &
	come2=$!
}
come_end() {
	: >"$work/enough"
	wait $come1 $come2
	like "clients came by both ways meanwhile" \
	    "$(sort "$work/came" | uniq -c | tr -s ' \n' ' ')" \
	    '[0-9]{2,} path [0-9]{2,} tcp'
	is "and none was refused, nor left without an answer" \
	    "$(cat "$work/turned" 2>/dev/null)" ''
}

# ---- the server

server() { cat /var/lib/workbox/lock; }
other() { [ "$(server)" != "$1" ] && answers; }
gone() { [ ! -e "/proc/$1" ]; }
is_another() {	# than the one of before
	[ "$(server)" != "$1" ] && gone "$1" && pass "it is another" ||
	    fail "$1 is still the server"
}
# From the host's build, whose files are seen below /host.
reinstall() {
	mount --bind / /host/mnt
	mount --bind /dev /host/dev
	chroot /host make -s -C "$WB_BUILD" install DESTDIR=/mnt "$@"
}
install_again() {	# the init's variable=directory
	was=$(stat -c %i "$WB_BIN")
	ok "install it again" reinstall "$1"
	[ "$(stat -c %i "$WB_BIN")" != "$was" ] &&
	    pass "its files are new ones" || fail "it is the same file: $was"
	ok "the runtime, too" "$WB_BIN" runtime install
}
