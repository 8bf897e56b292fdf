#!/bin/sh
# cli.sh: the command line against a running server: what it prints, what it
# exits with, what it refuses, and that no byte is lost on the way.
. "$(dirname "$0")/lib.sh"
box_serve
json() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -n 1; }

# ---- what is refused before anything is asked
no "a host without random bytes" 125 unshare -m sh -c \
    'mount --bind /dev/null /dev/urandom; exec "$@"' sh "$WB_BIN" sandbox \
    create --network none
is "is told" "$out" \
    "workbox sandbox create: /dev/urandom: expected random bytes"
no "an unknown command" 125 "$WB_BIN" frobnicate
like "is named" "$out" 'no command "frobnicate"'
no "an unknown option" 125 "$WB_BIN" sandbox list --nope
like "is named" "$out" '^workbox sandbox list: unknown option --nope'
no "an option without its argument" 125 "$WB_BIN" sandbox create --name
like "says what it expects" "$out" '--name expects NAME'
no "an option given twice" 125 wb create --name a --name b
no "an argument for a flag" 125 wb create --no-wait=1
no "too few operands" 125 wb wait x
no "too many operands" 125 wb inspect x y
no "exec without a command" 125 wb exec x
no "options of a command without --" 125 wb exec x ls -la
like "are explained" "$out" 'put -- before the command'
no "bad numbers" 125 wb create --memory lots
like "are named with what was expected" "$out" \
    '^workbox sandbox create: --memory: expected bytes'
no "bad pairs" 125 wb create --label novalue
no "a bad time limit" 125 wb exec x --timeout -1 -- true
no "a relative directory" 125 wb exec x --cwd tmp -- true
no "a bad server" 125 wb list --server ftp://localhost
no "a server that is not there" 125 wb list --server "unix:$work/nothing"
is "is named, with the reason" "$out" \
    "workbox sandbox list: reach unix:$work/nothing: No such file or directory; is \"workbox serve\" running there?"
no "a key file that is not there" 125 wb list --token-file "$work/nothing"
(WORKBOX_TOKEN=wrongwrongwrongwrong; export WORKBOX_TOKEN; wb list) >/dev/null \
    2>&1
is "a wrong key is refused" $? 125

# ---- help
"$WB_BIN" --help >"$work/help"
bad=
for c in \
    $(sed -n 's/^  \([a-z].*\)/\1/p' "$work/help" | cut -c1-20 | tr ' ' _); do
	set -- $(echo "$c" | tr _ ' ')
	case "$1" in sandbox|rootfs|runtime|events) c="$1 $2" ;; *) c=$1 ;; esac
	"$WB_BIN" $c --help | grep -q "^usage: workbox $c" || bad="$bad [$c]"
done
is "every command has --help" "$bad" ''
is "help names the commands" "$(grep -c '^  ' "$work/help")" \
    "$("$WB_BIN" help | grep -c '^  ')"
help=$("$WB_BIN" sandbox create --help)
# What --help says is least is what the server takes, and nothing below.
least() {
	printf '%s\n' "$help" |
	    sed -n "s/.*--$1 .*at least \([0-9.]*M*\).*/\1/p"
}
m=$(least memory) c=$(least cpus) n=$(least pids)
ok "the least limits that --help tells: $m, $c, $n" wb create --name least \
    --network none --no-wait --memory "$m" --cpus "$c" --pids "$n"
wb rm --grace 0 least
for o in "memory $((${m%M} * 1048576 - 1))" "cpus 0.009" "pids $((n - 1))"; do
	no "less: $o" 125 wb create --name least --network none --${o% *} \
	    "${o#* }"
	like "is told which" "$out" '^workbox sandbox create: limits\.'
done
like "version" "$("$WB_BIN" version)" '^server .* at http'

# ---- sandboxes
no "a network that is none" 125 wb create --name x --network x
like "is told which there are" "$out" \
    'has no network "x": write "none", "egress" or "allowlist"\. \(network-unsupported\)$'
printf 'a.example\n%384s\n' | tr ' ' a >"$work/hosts"
no "a list of hosts with a line that is too long" 125 wb create --name x \
    --allow-file "$work/hosts"
is "is told where" "$out" \
    "workbox sandbox create: $work/hosts:2: expected HOST[:PORT[,PORT...]] or *.SUFFIX, of at most 383 bytes, not 384"
no "a preset that is not there" 125 wb create --name x --preset nmp
like "is told those that are" "$out" \
    '^workbox sandbox create: --preset: there is no "nmp"; there are crates, debian, github, go, npm, pypi$'
is "and they are completed" "$("$WB_BIN" complete -- sandbox network cli \
    allowlist --preset n | cut -f1)" npm
out=$(wb create --name hosts --network allowlist --preset npm \
    --allow A.example:8443)
is "a sandbox with a list" "$(printf '%s' "$out" | json network)" allowlist
ok "whose list changes" wb network hosts --add b.example --remove a.example:8443
wb exec hosts -- nslookup nowhere.example >/dev/null 2>&1
suggested() { [ "$(wb denials hosts --suggest)" = nowhere.example ]; }
await suggested && pass "what it lacks is suggested" ||
    fail "what it lacks is suggested" "$(wb denials hosts)"
ok "and taken away" wb network hosts none
wb rm --grace 0 hosts
out=$(wb create --name cli --network none --memory 256M --cpus 0.5 --pids 200 \
    --label a=b --label c=d=e --env 'GREETING=good day')
is "create prints the sandbox" "$(printf '%s' "$out" | json state)" READY
id=$(printf '%s' "$out" | json id)
like "with its id" "$id" '^[0-9A-Z]{26}$'
like "its memory" "$out" '"memoryBytes": 268435456'
like "its label" "$out" '"c": "d=e"'
no "its name is taken" 125 wb create --name cli --network none
like "which is said in one line" "$(printf '%s\n' "$out" | wc -l) $out" \
    '^1 .*name.*name-taken'
is "inspect by name" "$(wb inspect cli | json id)" "$id"
is "inspect by the id's beginning" \
    "$(wb inspect "$(echo "$id" | cut -c1-14)" | json name)" cli
no "inspect of nothing" 125 wb inspect nothing
no "inspect cannot leave its path" 125 wb inspect ../../healthz
like "the list" "$(wb list)" \
    "^cli  *$id  *READY  *HEALTHY  *minimal  *none  *20"
like "its head" "$(wb ls | head -n 1)" \
    '^NAME +ID +STATE +HEALTH +ROOTFS +NETWORK +CREATED$'
is "the list by label" "$(wb list --label a=b --format json | json name)" cli
is "the list by another label" \
    "$(wb list --label a=x --format json | json name)" ''
is "the list by state" "$(wb list --state STOPPED | wc -l)" 1
like "the proof" "$(wb proof cli)" '^seccompFilters +- +2 +2'
like "the proof as JSON" "$(wb proof cli --format json)" '"verdict": "verified"'

like "what its network denied" "$(wb denials cli)" \
    '^LAST +RULE +ADDRESS +PORT +PROTOCOL +COUNT$'
like "what its network denied as JSON" "$(wb denials cli --format json)" \
    '"items": \[\]'
no "denials of nothing" 125 wb denials nothing

# ---- exec
is "output" "$(wb exec cli -- echo hello)" hello
is "output without --" "$(wb exec cli echo hello)" hello
is "standard error stays apart" \
    "$(wb exec cli -- sh -c 'echo out; echo err >&2' 2>/dev/null)" out
is "and is there" \
    "$(wb exec cli -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)" err
is "the sandbox's environment" "$(wb exec cli -- sh -c 'echo $GREETING')" \
    'good day'
is "the session's environment" "$(wb exec cli --env 'A=b c' --env GREETING=hi \
    -- sh -c 'echo $A $GREETING')" 'b c hi'
is "the directory" "$(wb exec cli --cwd /tmp -- pwd)" /tmp
is "wb is there" "$(wb exec cli -- wb run -- echo inner)" inner
no "the exit code" 42 wb exec cli -- sh -c 'exit 42'
no "a signal" 137 wb exec cli -- sh -c 'kill -9 $$'
no "a command that is not there" 127 wb exec cli -- nosuchcommand
no "one that cannot run" 126 wb exec cli -- /etc/passwd
no "a directory that is not there" 126 wb exec cli --cwd /nowhere -- true
like "is named" "$out" '^workbox sandbox exec: .*\(bad-cwd\)$'
no "a directory that is none" 126 wb exec cli --cwd /etc/passwd -- true
no "a user that is not there" 126 wb exec cli --user nobodyx -- true
like "is named, too" "$out" '\(user-unknown\)$'
is "and stands so in the list and on the record" \
    "$(wb ps -a cli | awk '{ print $3 }' |
    tail -n 1) $("$WB_BIN" events export | grep '"reason":"user-unknown"' | grep -o '"exitCode":[0-9]*' | tail -n 1)" '126 "exitCode":126'
is "wb: help of a command" \
    "$(wb exec cli -- wb run --help | head -n 1 |
    cut -c 1-6) $(wb exec cli -- sh -c 'for c in $(wb help | sed -n "s/^wb \([a-z]*\).*/\1/p"); do wb "$c" --help >/tmp/h && [ "$(grep -c "^wb $c" /tmp/h)" = 1 ] && [ "$(wc -l </tmp/h)" -ge 2 ] && echo ok; done' | sort | uniq -c | tr -s ' ')" 'wb run  8 ok'
is "  but not of what it runs" "$(wb exec cli -- wb run -- echo --help)" --help
no "a word where there is none" 125 wb create foo
is "  is told" "$out" \
    'workbox sandbox create: "foo": expected options alone; try --help'
no "a word too many" 125 wb inspect cli more
is "  is told, too" "$out" \
    'workbox sandbox inspect: "more": expected SANDBOX and nothing more; try --help'
is "a file is completed" "$("$WB_BIN" complete -- rootfs import x "")" :files
no "the same of run" 126 wb run cli --cwd /nowhere -- true
no "run of a command that is not there" 127 wb run cli -- nosuchcommand
no "a sandbox that is not there" 125 wb exec nothing -- true
wb exec cli --timeout 0.3 -- sleep 60 >/dev/null 2>"$work/err"
r=$?
[ $r -gt 128 ] && pass "the time limit ends it ($r)" ||
    fail "time limit" "exit $r"
like "and is told" "$(cat "$work/err")" timeout

# ---- input
is "short input" "$(echo hi | wb exec cli -- cat)" hi
is "no input" "$(wb exec cli -- cat </dev/null)" ''
is "no input by option" "$(echo hi | wb exec cli -n -- cat)" ''
is "input that is not text" \
    "$(printf '\000\377' | wb exec cli -- od -An -tx1 | tr -d ' ')" 00ff
head -c 3000000 /dev/urandom >"$work/random"
want=$(sha256sum <"$work/random")
is "3 MB from a file and back" \
    "$(wb exec cli -- cat <"$work/random" | sha256sum)" "$want"
is "3 MB from a pipe and back" \
    "$(cat "$work/random" | wb exec cli -- cat | sha256sum)" "$want"
is "3 MB counted there" "$(wb exec cli -- sha256sum <"$work/random")" "$want"
no "a command that does not read" 4 sh \
    -c "\"$WB_BIN\" sandbox exec cli -- sh -c 'exit 4' <'$work/random'"
is "input while the command runs" \
    "$( (echo one; await test -s "$work/echoed"; echo two) |
    wb exec cli -- cat | tee "$work/echoed" | tr '\n' ' ')" 'one two '

# ---- output that is not read, readers that go
wb exec cli -- yes | head -n 1 >/dev/null
is "the reader's end ends the command" \
    "$(wb exec cli -- sh -c 'pidof yes || echo none')" none

# ---- signals
"$WB_BIN" sandbox exec cli -- sh -c \
    'trap "echo caught; exit 9" TERM; echo up; while :; do sleep 0.05; done' \
    >"$work/sig" 2>&1 </dev/null &
p=$!
await grep -q up "$work/sig"
kill -TERM $p
wait $p
is "SIGTERM is passed on" "$? $(grep caught "$work/sig")" '9 caught'
"$WB_BIN" sandbox exec cli -- sh -c 'trap "" TERM; echo up; sleep 30' \
    >"$work/sig" 2>&1 </dev/null &
p=$!
await grep -q up "$work/sig"
kill -TERM $p
kill -TERM $p 2>/dev/null
tries=0
while kill -0 $p 2>/dev/null && [ $tries -lt 200 ]; do
	tries=$((tries + 1))
	kill -TERM $p 2>/dev/null
	sleep 0.05	# the pace of asking
done
wait $p
is "a second one leaves the command running" "$?" 143
like "and says so" "$(cat "$work/sig")" \
    'left running: session [0-9A-Z]{26} of cli'
like "it runs" "$(wb exec cli -- pidof sleep)" '^[0-9]+$'

# ---- run, wait, logs
out=$(wb run cli --name count -- sh -c 'seq 50000; echo done >&2; exit 3')
like "run prints the session" "$out" '^\{"sessionId": "[0-9A-Z]{26}"\}$'
sid=$(printf '%s' "$out" | json sessionId)
wb wait cli "$sid" >"$work/session"
is "wait exits with its code" "$?" 3
is "and prints it" "$(json state <"$work/session")" ended
is "logs: standard output" "$(wb logs cli "$sid" 2>/dev/null | sha256sum)" \
    "$(seq 50000 | sha256sum)"
is "logs: standard error" "$(wb logs cli "$sid" 2>&1 >/dev/null)" 'done'
is "logs --follow ends" "$(wb logs cli "$sid" --follow 2>/dev/null |
    sha256sum)" "$(seq 50000 | sha256sum)"
no "logs of no session" 125 wb logs cli 00000000000000000000000000
no "logs of no session's name" 125 wb logs cli nosession
is "no daemon has ended by it" \
    "$(grep -c 'has closed its channel' "$work/serve.log")" 0

# ---- the daemons go, the command line stays
p=$(box_pid apid) || p=
if [ -n "$p" ]; then
	wb exec cli -- sh -c \
	    'i=0; while [ $i -lt 300 ]; do echo $i; i=$((i + 1)); sleep 0.01; done; exit 5' >"$work/over" 2>"$work/err" </dev/null &
	e=$!
	await test -s "$work/over"
	kill -KILL "$p"
	wait $e
	is "exec over a restart of apid: its code" "$?" 5
	is "and every line once" "$(sha256sum <"$work/over")" \
	    "$(seq 0 299 | sha256sum)"
else
	skip "exec over a restart: apid was not found"
fi

# ---- the record
"$WB_BIN" events export >"$work/events"
is "records are numbered from 1" \
    "$(sed -n '1s/^{"seq":\([0-9]*\),.*/\1/p' "$work/events")" 1
is "without a gap" "$(sed -n '$s/^{"seq":\([0-9]*\),.*/\1/p' "$work/events")" \
    "$(wc -l <"$work/events")"
is "export --after and --limit" "$("$WB_BIN" events export --after 1 --limit 2 |
    cut -c1-9 | tr '\n' ' ')" '{"seq":2, {"seq":3, '
"$WB_BIN" events tail --after "$(wc -l <"$work/events")" >"$work/tail" 2>&1 &
t=$!
wb create --name other --network none >/dev/null
await grep -q '"sandbox.created"' "$work/tail" &&
    pass "tail tells what is new" || fail "tail" "$(cat "$work/tail")"
kill $t
wait $t 2>/dev/null

# ---- rm
no "rm of one that is not there" 125 wb rm nothing
ok "rm of two" wb rm --grace 0 cli other
none_left "$WB_BIN"

# ---- the host's side
S=$WB_STATE
no "the name default" 125 "$WB_BIN" rootfs build minimal --name default \
    --state "$S"
no "a kind that is not there" 125 "$WB_BIN" rootfs build suse --state "$S"
no "a name that is taken" 125 "$WB_BIN" rootfs build minimal --state "$S"
ok "build under a name" "$WB_BIN" rootfs build minimal --name second \
    --state "$S"
like "the first stays the default" "$("$WB_BIN" rootfs list --state "$S")" \
    '^minimal +yes'
mkdir "$work/empty"
is "a list of none is a head" "$("$WB_BIN" rootfs list --state "$work/empty")" \
    'NAME  DEFAULT  SYSTEM  CREATED'
no "the list of a directory that is not there" 125 "$WB_BIN" rootfs list \
    --state "$work/nothing"
is "is refused by name" "$out" \
    "workbox rootfs list: state directory $work/nothing: No such file or directory"
ok "another default" "$WB_BIN" rootfs default second --state "$S"
is "which is a link" "$(readlink "$S/rootfs/default")" second
wb create --name third --network none >/dev/null
no "one that is used stays" 125 "$WB_BIN" rootfs rm second --state "$S"
like "and its user is named" "$out" third
wb rm --grace 0 third
removed() { "$WB_BIN" rootfs rm second --state "$S" 2>"$work/rm"; }
await removed && pass "rm of one that is not" ||
    fail "rootfs rm" "$(cat "$work/rm")"
is "no default is left" "$(readlink "$S/rootfs/default")" ''
is "which is told, with what sets one" "$(cat "$work/rm")" \
    "workbox rootfs rm: there is no default any more: workbox rootfs default NAME --state $S sets one, and so does the next build or import"
like "doctor's cure says where" \
    "$("$WB_BIN" doctor --state "$S" --config "$work/workbox.conf")" \
    "cure: workbox rootfs build minimal --config $work/workbox.conf --state $S, or workbox rootfs default NAME --config $work/workbox.conf --state $S"
is "nothing half-built is left" "$(ls -A "$S/rootfs")" minimal
for kind in minimal debian; do
	no "certificates that are none, $kind" 125 "$WB_BIN" rootfs build \
	    $kind --name ca --ca /etc/passwd --state "$S"
	is "are told once" "$out" \
	    "workbox rootfs build: --ca /etc/passwd: expected certificates in PEM"
done
is "and leave nothing" "$(ls -A "$S/rootfs")" minimal
mkdir "$S/rootfs/.build-deadbeef"
ok "default" "$WB_BIN" rootfs default minimal --state "$S"
ok "a build" "$WB_BIN" rootfs build minimal --name more --state "$S"
is "sweeps what an interrupted one left" "$(ls -A "$S/rootfs" | tr '\n' ' ')" \
    'default minimal more '
(cd "$S/runtime" && sha256sum -c --quiet SHA256SUMS) &&
    pass "the runtime's checksums" || fail "SHA256SUMS"
ok "runtime install again" "$WB_BIN" runtime install --state "$S"
is "leaves nothing but its own" "$(ls -A "$S/runtime" | tr '\n' ' ')" \
    'SHA256SUMS runner wb '
out=$("$WB_BIN" doctor --state "$S" --config "$work/workbox.conf")
is "doctor finds nothing to mend" "$?" 0
like "and says what it tried" "$out" '^ok +overlay: '
out=$("$WB_BIN" doctor --state /wb-nothing --config "$work/workbox.conf")
like "a state directory that is to come: its disk" \
    "$out" '^(ok|warning|failed) +disk: [0-9]+ MiB free at /;'
is "no fault is without a cure" "$("$WB_BIN" doctor --state /dev/null/x --config "$work/workbox.conf" |
    awk '/^(failed|warning) /{l = $0; getline; if ($1 != "cure:") print l}')" ''
like "doctor as JSON" "$("$WB_BIN" doctor --format json --state "$S" \
    --config "$work/workbox.conf")" '"name": "cgroup"'
like "doctor --calls" "$("$WB_BIN" doctor --calls | tail -n 1)" \
    '^[0-9]+ allowed, [0-9]+ EPERM'
rm "$S/runtime/wb"
ln -s workbox.conf "$work/it's one.conf"
out=$("$WB_BIN" doctor --state "$S" --config "$work/it's one.conf")
like "a runtime that is not whole" "$out" '^warning runtime: '
cure=$(printf '%s\n' "$out" |
    sed -n '/^warning runtime/{n;s/^ *cure: workbox/"$WB_BIN"/p;}')
like "the cure, as it is printed" "$cure" \
    "--config '$work/it.*one.conf' --state $S\$"
(eval "$cure") >/dev/null && [ -e "$S/runtime/wb" ] && pass "cures" ||
    fail "does not cure" "$cure"
no "a second server on this state" 125 "$WB_BIN" serve \
    --config "$work/workbox.conf"
is "is refused by name" "$out" \
    "workbox serve: state directory $WB_STATE is in use by another server, process $serve_pid"
no "serve where nothing is" 125 "$WB_BIN" serve --config "$work/workbox.conf" \
    --state "$work/second" --listen none --socket "$work/second/s"
like "says so" "$out" "state directory $work/second: No such file"
[ ! -e "$work/second" ] && pass "and makes nothing" ||
    fail "it made $work/second"
mkdir "$work/second"
no "serve without a runtime" 125 "$WB_BIN" serve --config "$work/workbox.conf" \
    --state "$work/second" --listen none --socket "$work/second/s"
like "says what puts it there" "$out" "workbox runtime install"
is "and makes nothing" "$(ls -A "$work/second")" ""
"$WB_BIN" runtime install --state "$work/second" >/dev/null
no "a second server on this address" 125 "$WB_BIN" serve --config \
    "$work/workbox.conf" --state "$work/second" --listen "127.0.0.1:$WB_PORT"
is "is told which" "$out" \
    "workbox serve: listen on 127.0.0.1:$WB_PORT: Address already in use"
no "a second server on this socket" 125 "$WB_BIN" serve --config \
    "$work/workbox.conf" --state "$work/second" --listen none \
    --socket "$WB_STATE/api.sock"
is "is told which" "$out" \
    "workbox serve: listen on $WB_STATE/api.sock: somebody else does"
is "the socket's mode" "$(stat -c %a:%u "$WB_STATE/api.sock")" 660:0
mkdir -m 755 "$work/open"
cp "$WB_BIN" "$work/open/workbox"
chmod 711 "$work"
if setpriv --reuid 65534 --regid 65534 --clear-groups "$work/open/workbox" \
    help >/dev/null 2>&1; then
	out=$(setpriv --reuid 65534 --regid 65534 --clear-groups \
	    "$work/open/workbox" sandbox list \
	    --server "unix:$WB_STATE/api.sock" 2>&1)
	is "who is not let in is told who is" "$out" \
	    "workbox sandbox list: reach unix:$WB_STATE/api.sock: Permission denied; only root and the group workbox may"
else
	skip "the socket for another user: setpriv does not work"
fi
chmod 700 "$work"
chmod 777 "$work/second"
no "a state directory that others may write" 125 "$WB_BIN" serve --config \
    "$work/workbox.conf" --state "$work/second" --listen none \
    --socket "$work/second/s"
like "is refused" "$out" \
    "$work/second: expected a directory that only root can write"
for c in 'runtime install' 'rootfs build minimal'; do
	no "by $c too" 125 "$WB_BIN" $c --state "$work/second"
	like "with the same words" "$out" \
	    "^workbox ${c% minimal}: state directory $work/second: expected a directory that only root can write\$"
done
is "nothing is put there" "$(ls -A "$work/second/rootfs")" ''
no "by doctor" 1 "$WB_BIN" doctor --state "$work/second" \
    --config "$work/workbox.conf"
cure=$(printf '%s\n' "$out" | sed -n '/^failed  state: /{n;s/^ *cure: //p;}')
(eval "$cure") &&
    is "whose cure makes it one" "$(stat -c %a:%u "$work/second")" 755:0
no "a key file that is not there" 125 "$WB_BIN" serve \
    --config "$work/workbox.conf" --token-file "$work/nothing"
is "is all that is told" "$out" \
    "workbox serve: --token-file $work/nothing: No such file or directory"
check() { "$WB_BIN" serve -n --config "$work/workbox.conf" "$@"; }
ok "serve -n" check
is "says nothing" "$out" ''
: >"$work/key"
no "serve -n with an empty key file" 125 check --token-file "$work/key"
like "names it" "$out" "^workbox serve: $work/key: expected a key of 16 to"
openssl rand -hex 24 >"$work/key"
chmod 644 "$work/key"
ok "serve -n with a key that others can read" check --token-file "$work/key"
is "warns" "$out" \
    "workbox serve: $work/key: others than its owner can read or write the key: chmod 600 $work/key"
chmod 600 "$work/key"
ok "serve -n with one that they cannot" check --token-file "$work/key"
is "does not" "$out" ''
no "serve -n with none and an address" 125 check --listen none \
    --listen 127.0.0.1:1
is "says why" "$out" \
    "workbox serve: --listen: expected none alone, or addresses"
(cat "$work/workbox.conf"; echo 'libexec-dir = /nonexist') \
    >"$work/programs.conf"
no "serve -n without programs" 125 "$WB_BIN" serve \
    -n --config "$work/programs.conf"
is "says where" "$out" "workbox serve: programs: /nonexist/privd: No such file or directory
workbox serve: cure: install again, or set libexec-dir"
echo 'nonsense = 1' >>"$work/workbox.conf"
no "serve -n with a wrong word" 125 "$WB_BIN" serve \
    -n --config "$work/workbox.conf"
like "tells its line" "$out" "workbox.conf:[0-9]+: .*nonsense"
box_done
