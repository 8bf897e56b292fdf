#!/bin/sh
# systemd.sh: in a guest of inits.sh, whose pid 1 is systemd: the units, with
# boxes at their limits over whatever systemd does with the server.
. "$(dirname "$0")/../box/lib.sh"
. "$(dirname "$0")/boxes.sh"

actives() { systemctl is-active "$@" | sort | uniq -c | sed 's/^ *//'; }
show() { systemctl show -P "$1" workbox.service; }
journal() { journalctl -q -o cat -u "${2:-workbox.service}" | grep -- "$1"; }
drop_in() {	# unit, lines of it on standard input
	mkdir -p "/run/systemd/system/$1.d"
	cat >"/run/systemd/system/$1.d/test.conf"
	systemctl daemon-reload
}
undrop() { rm -r "/run/systemd/system/$1.d"; systemctl daemon-reload; }

ok "it has booted" systemctl is-active -q multi-user.target
units='workbox.service workbox.socket workbox-boxes.service'
is "with the server, its sockets and the group of boxes" \
    "$(actives $units)" '3 active'
is "nothing has failed" "$(systemctl --failed --no-legend)" ''
is "its users are there" "$(id -un _workbox-apid) $(id -gn _workbox-apid)" \
    '_workbox-apid _workbox-apid'
is "systemd knows its process" "$(show MainPID)" "$(server)"
is "and that it is ready by its word" "$(show Type) $(show NotifyAccess)" \
    'notify main'
is "systemd minds that it lives" "$(show WatchdogUSec)" 30s
is "the sockets are systemd's" "$(ss -Hltnxp 2>/dev/null |
    grep -E '127.0.0.1:8790|workbox/api.sock' | grep -c '"systemd",pid=1,')" 2
is "of root and its group" "$(stat -c '%U %G %a' /run/workbox/api.sock)" \
    'root workbox 660'
boxes_begin '^/sys/fs/cgroup/system.slice/workbox-boxes.service/'
boxes_whole "at their limits"

# ---- what an operator does

come_begin
ok "daemon-reload" systemctl daemon-reload
ok "and again" systemctl daemon-reload
boxes_whole "after daemon-reload"
p=$(server)
ok "reload" systemctl reload workbox
reloaded() { journalctl -u workbox -o cat | grep -q '^reader.*: info: reload: '; }
await reloaded && pass "the file was read again" ||
    fail "nobody says so: $(journalctl -u workbox -o cat | tail -n 3)"
is "by the same server" "$(server)" "$p"
ok "restart" systemctl restart workbox
ok "it serves when started" answers
is_another "$p"
boxes_whole "after restart"
install_again systemd_dir=/usr/lib
ok "daemon-reload after that" systemctl daemon-reload
ok "restart after that" systemctl restart workbox
boxes_whole "after an upgrade"
come_end

# ---- what happens to a server

p=$(server)
ok "SIGKILL" kill -KILL "$p"
await other "$p" && pass "systemd brings it back" || fail "it stays away"
boxes_whole "after SIGKILL"
drop_in workbox.service <<END
[Service]
WatchdogSec=3
END
ok "restart with less patience" systemctl restart workbox
p=$(server) n=$(show NRestarts)
until=$(($(date +%s) + 5))
later() { [ "$(date +%s)" -gt $until ]; }
await later
is "who lives is let be" "$(server) $(show NRestarts)" "$p $n"
ok "SIGSTOP" kill -STOP "$p"
await other "$p" && pass "who hangs is started again" ||
    fail "it stays as it is"
like "for that reason" "$(journal 'atchdog')" 'Watchdog timeout'
boxes_whole "after SIGSTOP"
undrop workbox.service

# ---- stop and start

p=$(server)
ok "stop" systemctl stop workbox
gone "$p" && pass "nothing serves" || fail "$p is there"
is "the boxes run on" "$(pid_ones)" "$ones"
is "the sockets stay" "$(actives workbox.socket) $(stat -c %F \
    /run/workbox/api.sock)" '1 active socket'
ok "a client brings it back" wb list
is "it is up" "$(actives workbox.service)" '1 active'
boxes_whole "after a stop"
ok "stop the sockets, too" systemctl stop workbox.socket workbox.service
no "a client is refused" 125 wb list
no "nothing is left of their path" 1 test -e /run/workbox/api.sock
ok "start it alone" systemctl start workbox.service
ok "it serves when started, by its own sockets" answers
is "which are these" "$(ss -Hltnxp | grep -E '127.0.0.1:8790|workbox/api.sock' |
    grep -c '"apid",pid=')" 2
boxes_whole "without systemd's sockets"

# ---- what does not agree is refused

ok "stop it" systemctl stop workbox.service
drop_in workbox.socket <<END
[Socket]
ListenStream=127.0.0.1:8799
END
ok "one address more" systemctl start workbox.socket
no "is refused" 1 systemctl start workbox.service
refused() { journal 'LISTEN_FDS: 127.0.0.1:8799: expected what'; }
await refused && pass "by its name" || fail "it is not told of" "$(journal .)"
systemctl stop workbox.socket workbox.service
undrop workbox.socket
ok "mended, it starts" systemctl start workbox.socket workbox.service
boxes_whole "after that"
no "the group of boxes is not stopped by hand" 4 \
    systemctl restart workbox-boxes
like "and says so" "$out" 'refused'
boxes_whole "after such a try"
boxes_end
ok "the last stop" systemctl stop workbox.socket workbox.service
is "is one without a fault" "$(show Result)" success
box_done
