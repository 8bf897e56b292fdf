# lib.sh: for the scripts whose box's root is hostile.  After ../lib.sh.
#
# attack_init builds `attack', makes a state directory, and remembers what must
# not change on the host; attack_done holds it against that.

# attack_build FILE; WB_ATTACK is one that is built already
attack_build() {
	[ -z "${WB_ATTACK-}" ] || { cp "$WB_ATTACK" "$1"; return 0; }
	cc=${CC:-$(command -v cc || command -v gcc || command -v clang)} || :
	[ -n "$cc" ] || { echo "skip: no C compiler"; return 77; }
	$cc -std=gnu17 -O1 -static -pthread -o "$1" \
	    "$top"/regress/box/attack/*.c ||
	    { echo "not ok - attack does not build"; return 1; }
}

attack=$work/attack
attack_init() {
	attack_build "$attack" || exit $?
	mkdir "$work/canary.d"
	echo "workbox canary" >"$work/canary.d/canary"
	chmod 600 "$work/canary.d/canary"
	[ -e "$WB_STATE/runtime/runner" ] || box_state
	canaries >"$work/canaries"
}

# The host as far as an attack of ours would show in it.
canaries() {
	sha256sum "$work/canary.d/canary" "$WB_BIN" "$attack" \
	    "$WB_PREFIX"/libexec/workbox/* /etc/passwd /etc/shadow \
	    /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname \
	    /proc/sys/kernel/randomize_va_space /proc/sys/vm/overcommit_memory \
	    /proc/sys/fs/suid_dumpable /proc/sys/net/ipv4/ip_forward
	stat -c '%n %i %a %u %g' "$work/canary.d" "$work/canary.d/canary"
	sha256sum "$WB_STATE"/runtime/*
	# but what another script mounts meanwhile
	grep -v -e "$WB_STATE" -e wb-canary /proc/self/mountinfo | cut -d ' ' -f 5 |
	    awk -v own="$work/" '!/\/wb-regress\.[^\/]*\// || index($0, own)' | sort
}

attack_done() {
	canaries >"$work/canaries.now"
	is "the host is as it was" "$(diff "$work/canaries" "$work/canaries.now")" ""
	for d in privd apid stored netd uplinkd proxyd; do
		grep -Eq "^$d\[[0-9]+\]: (fatal|error)" "$work/serve.log" &&
		    fail "$d complained" "$(grep "^$d" "$work/serve.log" | grep -E 'fatal|error')"
	done
	is "no daemon was started anew" "$(grep -c 'serving, generation' "$work/serve.log")" 1
	box_done
}

run() { timeout 40 "$WB_BIN" sandbox exec -n "$@"; }
# a session that is left running: its id
bg() { "$WB_BIN" sandbox run "$@" | field sessionId; }
# put BOX: the program into it
put() { wb exec "$1" -- sh -c 'cat >/root/attack; chmod 755 /root/attack' <"$attack"; }
# attack BOX WORD...: its checks become ours; less than one is a failure
attack() { b=$1; shift; checks "$1" run "$b" -- /root/attack "$@"; }
# checks TEXT COMMAND...
checks() {
	what=$1; shift
	"$@" >"$work/attack.out" 2>&1
	r=$?
	p=$(grep -c '^ok - ' "$work/attack.out")
	f=$(grep -c '^not ok - ' "$work/attack.out")
	passed=$((passed + p)) failed=$((failed + f))
	grep -E '^(not )?ok - ' "$work/attack.out"
	if [ $((p + f)) = 0 ]; then
		fail "attack $what made no check" "exit $r" "$(head -n 5 "$work/attack.out")"
	elif [ "$f" = 0 ] && [ $r != 0 ]; then
		fail "attack $what ended with $r" "$(tail -n 5 "$work/attack.out")"
	elif [ "$f" != 0 ]; then
		grep '^#' "$work/attack.out"
	fi
}
# control TEXT COMMAND...: what the box is refused works here; on a host
# whose kernel refuses it to all, this is skipped and says so.
control() {
	t=$1; shift
	"$@" >"$work/control.out" 2>&1 && pass "control: $t" || skip "control: $t: not on this host"
}
alive() { is "$1: $2 is whole" "$(run "$2" -- echo alive 2>&1)" alive; }
ended() { timeout 90 "$WB_BIN" sandbox wait "$@" 2>&1; }
# pid 1 of a box, as the host numbers it
pid1_of() {
	id=$(wb inspect "$1" | field id)
	find /sys/fs/cgroup -path "*/$WB_CGROUP/$id/box/runner/cgroup.procs" -exec cat {} + 2>/dev/null | head -n 1
}
