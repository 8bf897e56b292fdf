#!/bin/sh
# openrc.sh: in a guest of inits.sh, whose pid 1 is openrc-init: the service
# under supervise-daemon, with boxes at their limits over whatever that does
# with the server.
. "$(dirname "$0")/../box/lib.sh"
. "$(dirname "$0")/boxes.sh"

# openrc tells by its exit code, and in words
is_started() { rc-service workbox status | grep -q started; }
parent_of() { ps -o comm= -p "$(ps -o ppid= -p "$1" | tr -d ' ')"; }

is "pid 1 is OpenRC's" "$(cat /proc/1/comm)" openrc-init
ok "it has booted with the server" is_started
ok "which serves" answers
[ $failed = 0 ] || tail -n 20 /var/log/workbox.log | sed 's/^/# /'
is "it is the child of its supervisor" "$(parent_of "$(server)")" \
    supervise-daemo
boxes_begin '^/sys/fs/cgroup/workbox-boxes$'
is "which is not the server's" "$(cat "/proc/$(server)/cgroup")" 0::/workbox
boxes_whole "at their limits"

p=$(server)
ok "reload" rc-service workbox reload
await grep -q '^reader.*: info: reload: ' /var/log/workbox.log &&
    pass "the file was read again" ||
    fail "nobody says so: $(tail -n 3 /var/log/workbox.log)"
is "by the same server" "$(server)" "$p"
ok "restart" rc-service workbox restart
ok "it serves when started" answers
is_another "$p"
boxes_whole "after restart"

install_again openrc_dir=/etc
ok "restart after that" rc-service workbox restart
boxes_whole "after an upgrade"

p=$(server)
ok "SIGKILL" kill -KILL "$p"
await other "$p" && pass "supervise-daemon brings it back" ||
    fail "it stays away"
boxes_whole "after SIGKILL"

p=$(server)
ok "stop" rc-service workbox stop
gone "$p" && pass "nothing serves" || fail "$p is there"
no "a client is refused" 125 wb list
is "the boxes run on" "$(pid_ones)" "$ones"
ok "start" rc-service workbox start
ok "it serves when started" answers
boxes_whole "after a stop"

# one that is refused is told of at once, and not tried without end
ok "stop it" rc-service workbox stop
echo 'disk-floor = none' >>/etc/workbox/workbox.conf
no "a fault of the configuration" 1 rc-service workbox start
like "is told" "$out" 'disk-floor'
sed -i '$d' /etc/workbox/workbox.conf
ok "mended, it starts" rc-service workbox start
boxes_whole "after that"
boxes_end
ok "the last stop" rc-service workbox stop
box_done
