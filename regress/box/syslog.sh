#!/bin/sh
# syslog.sh: `log = syslog' against a /dev/log of our own, which the server
# sees in a mount namespace of its own; and what happens when it goes away.
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] ||
    { echo "skip: needs python3 for a syslogd"; exit 77; }

# A /dev with what a server and its boxes open, and the socket.
mkdir "$work/dev" "$work/dev/pts" "$work/dev/shm"
for n in null zero full random urandom tty; do cp -a "/dev/$n" "$work/dev/"; \
    done
ln -s pts/ptmx "$work/dev/ptmx"
cat >"$work/server" <<END
#!/bin/sh
exec unshare -m --propagation private sh -c 'for d in pts shm; do
	mount --rbind /dev/\$d "\$0/\$d" || exit 1
done; mount --rbind "\$0" /dev && exec "\$@"' "$work/dev" "$WB_BIN" "\$@"
END
chmod 755 "$work/server"

syslogd_pid=
syslogd() {	# lines go to the file
	mkfifo "$work/bound"
	# its socket holds ten lines, and all daemons speak at once
	nice -n -20 /usr/bin/python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
print("bound", flush=True)
with open(sys.argv[2], "wb", 0) as f:
    while True:
        f.write(s.recv(65536) + b"\n")
' "$work/dev/log" "$1" >"$work/bound" &
	syslogd_pid=$!
	read -r _ <"$work/bound"
	rm "$work/bound"
}
syslogd_end() {
	[ -n "$syslogd_pid" ] || return 0
	kill "$syslogd_pid"
	wait "$syslogd_pid" 2>/dev/null
	rm "$work/dev/log"
	syslogd_pid=
}
trap 'syslogd_end; box_cleanup; exit 1' INT TERM HUP
trap 'syslogd_end; box_cleanup' EXIT

box_state
syslogd "$work/syslog"
REAL_BIN=$WB_BIN WB_BIN=$work/server
WB_CONF='log = syslog
log-level = debug'
box_serve
WB_BIN=$REAL_BIN
ok "a box" "$WB_BIN" sandbox create --name s --network none
is "with a command in it" "$("$WB_BIN" sandbox exec s -- echo hello)" hello
kill -HUP "$serve_pid"
await grep -q 'reader\[[0-9]*\]: info: reload: ' "$work/syslog" &&
    pass "who reads the configuration again logs there" ||
    fail "no line of the reader"
reader=$(pgrep -P "$serve_pid" -x workbox)
# apid's end is told by those who otherwise have nothing to say
set_again && pass "the set is started again" || fail "apid is not back"
for d in privd maker netd stored apid; do
	await grep -q "$d\[[0-9]*\]: " "$work/syslog" && pass "$d logs there" ||
	    fail "no line of $d"
done
like "as daemons do: facility 3" "$(grep -m1 'info: serving' "$work/syslog")" \
    '^<30>privd\[[0-9]+\]: '
is "and nowhere else" "$(cat "$work/serve.log")" ''

syslogd_end
set_again && pass "and again, without a syslogd" || fail "apid is not back"
like "which stderr hears" "$(cat "$work/serve.log")" \
    "apid\[$apid_was\] ended by signal 9"
is "the box is there" "$("$WB_BIN" sandbox exec s -- echo still)" still
ok "remove" "$WB_BIN" sandbox rm --grace 0 s
box_stop
gone() { [ ! -e "/proc/$reader" ]; }
await gone && pass "who reads the configuration ends with the server" ||
    fail "process $reader is still there"
box_done
