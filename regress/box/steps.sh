#!/bin/sh
# steps.sh: B49, L05: SIGKILL of each daemon at each step of create, exec, kill
# and remove.  A step is a system call: strace(1) kills the daemon as it enters
# its Nth of one kind, so that the call is not made.  What was answered holds,
# what was not is whole or gone, nothing runs twice, nothing is left.
. "$(dirname "$0")/lib.sh"
command -v strace >/dev/null || { echo "skip: no strace"; exit 77; }
strace -qq -e trace=none true 2>/dev/null ||
    { echo "skip: strace may not trace here"; exit 77; }
WB_CONF_MORE='restart-limit = 1000'
# nobody else takes the port while the server is down
WB_PORT=$((20000 + $$ % 10000))
box_serve
verify=$top/regress/box/verify-chain.py
field() {
	sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$work/body" |
	    head -n 1
}

# ---- a client that repeats what is not answered -----------------------------

# ask METHOD PATH KEY [BODY]: until an answer says how it ended: $status.  Not
# such are 503, and a 500 that leaves open what became of it.
ask() {
	until=$(($(date +%s) + 60))
	until status=$(curl -s -m 20 -o "$work/body" -w '%{http_code}' -X "$1" \
	    -H "Authorization: Bearer $WB_TOKEN" -H "Idempotency-Key: $3" \
	    -H 'Content-Type: application/json' ${4+-d "$4"} "$WB_URL/v1$2") &&
	    case $status in
	    2*|4*) : ;;
	    *) [ "$(field code)" = create-failed ] ;;
	    esac do
		[ -z "$down" ] || return 1	# whoever starts it asks again
		unstick
		[ "$(date +%s)" -lt $until ] || return 1
		sleep 0.05	# the pace of asking
	done
}

# ---- what must be so at any time --------------------------------------------

# Processes of boxes that are none of those named.
strangers() {
	ps -eo pid=,uid= | awk -v u="$WB_UIDS" \
	    '$2 >= u + 65536 && $2 < u + 16777216' | while read -r p _; do
		g=$(cat "/proc/$p/cgroup" 2>/dev/null) || continue
		for b in "$@"; do
			case $g in *"/$WB_CGROUP/$b/"*) continue 2 ;; esac
		done
		[ ! -d "/proc/$p" ] || echo "process $p"
	done
}
# Directories, cgroups and processes of boxes that are none of those named.
left() {
	{
		ls "$WB_STATE/sandboxes"
		ls -d /sys/fs/cgroup/"$WB_CGROUP"/0* \
		    /sys/fs/cgroup/*/"$WB_CGROUP"/0*
	} 2>/dev/null | while read -r d; do
		for b in "$@"; do [ "${d##*/}" != "$b" ] || continue 2; done
		echo "$d"
	done
	strangers "$@"
	grep -F -e "$WB_STATE/" /proc/self/mountinfo
}
pid1() {
	cat /sys/fs/cgroup/"$WB_CGROUP/$1"/box/runner/cgroup.procs \
	    /sys/fs/cgroup/*/"$WB_CGROUP/$1"/box/runner/cgroup.procs \
	    2>/dev/null | head -n 1
}
verdict() { jq -r ".items[] | select(.id == \"$1\") | .verdict" "$work/body"; }
settled() { [ -z "$(left "$@")" ]; }
only_known() {
	ask POST /reconcile none '' || return 1
	known=$(jq ".items | length" "$work/body")
	[ "$known" = "$1" ]
}

# One failure tells all of the step; one that went well is a line.
bad() { wrong="$wrong${wrong:+; }$1"; }
holds() {	# boxes...: exactly these are there
	ask POST /reconcile none '' || bad "reconcile is not answered"
	for b in "$@"; do
		[ "$(verdict "$b")" = attached ] ||
		    bad "$b is '$(verdict "$b")'"
	done
	# what is being removed is known until it is gone: DELETE says 202
	await only_known $# || bad "$known boxes are known, $# were answered"
	[ "$(pid1 "$keep")" = "$keep1" ] ||
	    bad "the neighbour was started again"
	await settled "$@" || bad "left: $(left "$@" | tr '\n' ' ')"
}

# ---- the kill ---------------------------------------------------------------

faults=0 down= p=0 tracer=
below() { pgrep -P "$1" -f "^$WB_PREFIX/libexec/workbox/$2" | head -n 1; }
victim() {
	case $1 in
	privd) echo "$serve_pid" ;;
	maker|child) below "$serve_pid" maker ;;
	netd-maker) pgrep -P "$(victim netd)" ;;
	*) below "$(victim maker)" "$1" ;;
	esac
}
# arm ROLE CALL N: returns when it is set
arm() {
	p=$(victim "$1")
	[ -n "$p" ] || { bad "no $1 is there"; return 1; }
	follow=-f
	[ "$1" != maker ] || follow=		# what it forks is `child'
	: >"$work/strace"
	strace $follow -p "$p" -e trace="$2" -e signal=SIGKILL \
	    -e inject="$2:signal=SIGKILL:when=$3" -o "$work/calls" \
	    2>"$work/strace" &
	tracer=$!
	armed() { grep -q attached "$work/strace" || ! kill -0 "$tracer"; }
	await armed
	grep -q attached "$work/strace" ||
	    { bad "strace: $(cat "$work/strace")"; return 1; }
}
# strace(1) may wait for the first thread of one that is dead, whom the kernel
# keeps until the tracer has buried the others: who is dead for a second is
# buried by killing the tracer.
traced_dead() {
	[ "$(sed 's/.*) //; s/ .*//' "/proc/$p/stat" 2>/dev/null)" = Z ]
}
unstick() {
	traced_dead || return 0
	sleep 1
	! traced_dead || kill -KILL "$tracer" 2>/dev/null
}
# Whether somebody was killed in the call; the tracer goes in any case.
disarm() {
	unstick
	kill -TERM "$tracer" 2>/dev/null
	wait "$tracer" 2>/dev/null
	# a call without a return is of one that dies, also when strace goes
	# first
	awk '{ p = $1 ~ /^[0-9]+$/ ? $1 : 0 }
	    /\+\+\+ killed by SIGKILL/ { if (in_it[p]) hit = 1 }
	    / = \?$/ { hit = 1 }
	    { in_it[p] = /<unfinished \.\.\.>$/ }
	    END { exit !hit }' "$work/calls"
}
# The server is there: the same, or one that is started in its place.
revive() {
	gone() { ! kill -0 "$serve_pid"; }
	case $1 in
	privd|maker) await gone || bad "privd lives without its maker" ;;
	esac
	if gone 2>/dev/null; then
		wait "$serve_pid" 2>/dev/null
		start_serve "$WB_BIN" --config "$work/workbox.conf"
		faults=0
	fi
}
# The set comes back later with each fault: under a new server at once.
fresh() {
	faults=$((faults + 1))
	[ $faults -ge 3 ] || return 0
	stop_serve
	start_serve "$WB_BIN" --config "$work/workbox.conf"
	faults=0
}

# ---- the operations: ask until there is an answer, then what must be true ---

do_create() {
	ask POST /sandboxes "$key" \
	    "{\"name\": \"n$count\", \"network\": \"none\"}"
}
check_create() {
	case $status in
	201)	[ "$(field state)" = READY ] || bad "answered $(field state)"
		b=$(field id)
		holds "$keep" "$b"
		ask DELETE "/sandboxes/$b?graceSeconds=0" none ||
		    bad "it cannot be removed" ;;
	500)	;;	# create-failed: it was begun, and is no more
	*)	bad "create is answered $status $(cat "$work/body")" ;;
	esac
}

do_exec() {
	ask POST "/sandboxes/$keep/exec" "$key" \
	    "{\"argv\": [\"sh\", \"-c\", \"echo $count >>/root/runs\"]}"
}
check_exec() {
	code=$(field exitCode) how=$status
	runs=$(grep -cx "$count" "$WB_STATE/sandboxes/$keep/upper/root/runs")
	[ "$runs" -le 1 ] || bad "the command ran $runs times"
	case $how,$code in
	200,0)	[ "$runs" = 1 ] || bad "answered, and it ran $runs times" ;;
	200,null|410,*) [ "$runs" = 0 ] || bad "told to be lost, and it ran" ;;
	*)	bad "exec is answered $how $(cat "$work/body")" ;;
	esac
}

before_kill() {
	ask POST "/sandboxes/$keep/sessions" "s$count" \
	    '{"argv": ["sleep", "1000"]}' && [ "$status" = 201 ] ||
	    bad "no session: $status"
	sid=$(field sessionId)
}
do_kill() {
	ask POST "/sandboxes/$keep/sessions/$sid/signal" "$key" \
	    '{"signal": "KILL"}'
}
check_kill() {
	case $status in 204|409) : ;;
	    *) bad "kill is answered $status $(cat "$work/body")" ;; esac
	ask GET "/sandboxes/$keep/sessions/$sid?wait=10" none
	[ "$(field state),$(field signal)" = ended,9 ] ||
	    bad "the session: $(cat "$work/body")"
}

before_remove() {
	ask POST /sandboxes "c$count" \
	    "{\"name\": \"n$count\", \"network\": \"none\"}" &&
	    [ "$status" = 201 ] || bad "no box: $status"
	gone=$(field id)
}
tree_done() {
	[ ! -e "$WB_STATE/sandboxes/$gone" ] ||
	    grep -q -e 'killed by SIGKILL' -e ' = ?$' "$work/calls"
}
pool_filled() { [ "$(grep -c 'clone(' "$work/calls")" -ge "$want_calls" ]; }
do_remove() { ask DELETE "/sandboxes/$gone?graceSeconds=0" "$key"; }
check_remove() {
	case $status in 2*|404) : ;;
	    *) bad "remove is answered $status $(cat "$work/body")" ;; esac
	ask GET "/sandboxes/$gone" none
	case $status,$(field state) in
	404,*|200,DELETING|200,DELETED) : ;;
	*) bad "it is $(cat "$work/body")" ;;
	esac
}

# ---- one step ---------------------------------------------------------------

count=0 killed=0
# step OPERATION ROLE CALL N: 1 when the operation needs fewer such calls
step() {
	count=$((count + 1)) wrong= hit= key=$$-$count
	fresh
	case $1 in kill|remove) "before_$1" ;; esac
	if arm "$2" "$3" "$4"; then
		case $2 in privd|maker) down=1 ;; *) down= ;; esac
		"do_$1" && answered=1 || answered=
		case $1,$2 in	# what comes behind the answer
		remove,maker|remove,child) await tree_done ;;
		create,netd-maker) want_calls=$4; await pool_filled ;;
		esac
		! disarm || hit=1
		[ -z "$hit" ] || revive "$2"
		down=
		[ -n "$answered" ] || "do_$1" ||
		    bad "no answer: $status $(cat "$work/body")"
		"check_$1"
	fi
	holds "$keep"
	[ -z "$wrong" ] || fail "$1: $2 at $3 $4" "$wrong" \
	    "$(tail -n 2 "$work/calls" | cut -c 1-150)"
	[ -n "$hit" ] || return 1
	killed=$((killed + 1))
	[ -n "$wrong" ] || pass "$1: $2 at $3 $4"
}

ok "the neighbour" "$WB_BIN" sandbox create --name keep --network none
keep=$("$WB_BIN" sandbox inspect keep |
    sed -n 's/.*"id": *"\([0-9A-Z]*\)".*/\1/p')
keep1=$(pid1 "$keep")
like "its pid 1" "$keep1" '^[0-9]+$'
"$WB_BIN" sandbox run keep --name long -- sh -c 'while :; do sleep 1; done' \
    >/dev/null
ok "a file in it" "$WB_BIN" sandbox exec keep -- sh -c ': >/root/runs'

# operation, role, call, the steps that the fast lane takes
while read -r op role call some; do
	case $op in ''|'#'*) continue ;; esac
	was=$killed n=1
	if [ "${WB_LANE-fast}" = long ]; then
		while step "$op" "$role" "$call" $n </dev/null; \
		    do n=$((n + 1)); done
		want=$((${want-0} + (n > 1 ? n - 1 : 1)))
	elif [ -n "$some" ]; then
		for n in $some; do
			want=$((${want-0} + 1))
			step "$op" "$role" "$call" "$n" </dev/null
		done
		# how many there are may differ between hosts
		[ $killed -gt $was ] || step "$op" "$role" "$call" 1 </dev/null
	else
		continue
	fi
	[ $killed -gt $was ] || fail "$op: no step of $role at $call was taken"
done <<'!'
create	apid		sendmsg		2 7
create	apid		epoll_wait
create	stored		pwrite64	1
create	stored		fdatasync
create	stored		sendmsg		1
create	netd		sendmsg		1
create	netd		sendto
create	netd-maker	clone
create	privd		sendmsg		3
create	privd		epoll_wait
create	maker		mkdirat		4
create	maker		write		14
create	maker		fchownat
create	maker		sendmsg		1
create	child		mount		3
create	child		mkdirat
create	child		execve		1
exec	apid		sendmsg		3
exec	apid		epoll_wait	2
exec	stored		pwrite64
exec	stored		fdatasync	2
exec	stored		sendmsg
exec	privd		epoll_wait
kill	apid		sendmsg
kill	apid		epoll_wait	2
kill	stored		pwrite64	1
kill	stored		sendmsg
kill	privd		epoll_wait
remove	apid		sendmsg		2
remove	apid		epoll_wait
remove	stored		pwrite64	2
remove	stored		fdatasync
remove	stored		sendmsg
remove	netd		sendmsg
remove	privd		sendmsg		2
remove	privd		epoll_wait
remove	maker		sendmsg		1
remove	maker		unlinkat	2
remove	maker		clone3
remove	child		unlinkat	1
!
# a step that was not taken is none
[ $killed -ge $((want * 3 / 4)) ] && pass "$killed of $want steps were taken" ||
    fail "$killed of $want steps were taken"

is "the session of before runs" "$("$WB_BIN" sandbox ps keep | grep -c long)" 1
"$WB_BIN" events export >"$work/record"
ok "the chain of the record" sh -c "'$verify' <'$work/record'"
is "no session has ended twice" "$(grep -F '"type":"session.ended"' "$work/record" |
    sed 's/.*"sessionId":"\([^"]*\)".*/\1/' | sort | uniq -d)" ""
is "no session has started twice" "$(grep -F '"type":"session.started"' "$work/record" |
    sed 's/.*"sessionId":"\([^"]*\)".*/\1/' | sort | uniq -d)" ""
is "every box was made once" "$(grep -F '"type":"sandbox.created"' "$work/record" |
    sed 's/.*"sandboxId":"\([^"]*\)".*/\1/' | sort | uniq -d)" ""
ok "remove the neighbour" "$WB_BIN" sandbox rm keep --grace 0
box_watched
box_stop
gone() {
	[ -z "$(host_facts "$WB_PREFIX" "$WB_STATE" "$WB_CGROUP" "$WB_UIDS")" ]
}
await gone && pass "nothing is left" ||
    fail "left" "$(host_facts "$WB_PREFIX" "$WB_STATE" "$WB_CGROUP" "$WB_UIDS")"
box_done
