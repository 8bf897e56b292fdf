#!/bin/sh
# init.sh: the service files.  What is installed and taken back; systemd's, as
# its own tools see them, and the server behind their fence; the server under
# runit's runsv and under s6-supervise, started, restarted, killed, stopped and
# misconfigured, with a box and a session in it that are to notice nothing.
. "$(dirname "$0")/lib.sh"
build=${WB_BUILD:-$top/build/test}
[ -f "$build/etc/Makefile" ] || { echo "skip: no build tree (WB_BUILD)"; exit 77; }
health() { wb inspect "$1" | jq -r '.health | if type == "object" then .state else . end'; }
# the one there is, by its control group
runner() { find /sys/fs/cgroup -path "*/$WB_CGROUP/*/box/runner/cgroup.procs" \
    -exec cat {} +; }

# ---- what is installed

dest=$work/dest
files() {
	make -s -C "$build/etc" "$1" DESTDIR="$dest" systemd_dir=/lib \
	    openrc_dir=/etc runit_dir=/etc/sv s6_dir=/etc/s6/sv
}
there() { (cd "$dest" && find etc lib ! -type d 2>/dev/null | sort); }
ok "install, with service files" files install
is "which are these" "$(there)" "etc/conf.d/workbox
etc/init.d/workbox
etc/logrotate.d/workbox
etc/s6/sv/workbox/finish
etc/s6/sv/workbox/log/notification-fd
etc/s6/sv/workbox/log/run
etc/s6/sv/workbox/notification-fd
etc/s6/sv/workbox/run
etc/s6/sv/workbox/timeout-kill
etc/sv/workbox/check
etc/sv/workbox/finish
etc/sv/workbox/log/run
etc/sv/workbox/run
lib/systemd/system/workbox-boxes.service
lib/systemd/system/workbox.service
lib/systemd/system/workbox.socket
lib/sysusers.d/workbox.conf
lib/tmpfiles.d/workbox.conf"
is "nothing in them is left to fill in" \
    "$(grep -rl '@[a-z_]*@' "$dest/etc" "$dest/lib")" ''
for f in init.d/workbox s6/sv/workbox/run s6/sv/workbox/finish \
    s6/sv/workbox/log/run sv/workbox/run sv/workbox/check sv/workbox/finish \
    sv/workbox/log/run; do
	# openrc's is no more than read here
	ok "a shell reads $f" sh -n "$dest/etc/$f"
	is "and it can be run" "$(stat -c %a "$dest/etc/$f")" 755
done
like "they run the program that was built" "$(grep -h bin/workbox \
    "$dest/etc/sv/workbox/run")" "^exec $WB_BIN serve "

# ---- systemd's, without a systemd that runs

units=$dest/lib/systemd/system page=$top/etc/workbox-init.7
# the directive's words
unit() { sed -n "s/^$1=//p" "$units/workbox.service"; }

caps=$(unit CapabilityBoundingSet)
is "the capabilities are the maker's" "$(echo "$caps" | tr ' ' '\n' | sort)" \
    "$(sed -n '/maker_fence = {/,/^};/p' "$top/workbox/become.c" |
    grep -o 'CAP([A-Z_]*)' | sed 's/CAP(\(.*\))/CAP_\1/' | sort)"
if command -v systemd-analyze >/dev/null; then
	is "systemd finds no fault with the units" "$(systemd-analyze verify \
	    --man=no "$units"/workbox* 2>&1; echo $?)" 0
	# the page's words without mdoc's
	told=$(sed 's/^\.[A-Z][a-z] //; s/ , Li /\n/g; s/^Li //' "$page")
	for u in workbox workbox-boxes; do
		level=$(systemd-analyze security --offline=true --no-pager \
		    "$units/$u.service" |
		    sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
		like "the page knows the exposure of $u: $level" "$(grep -A2 \
		    "^\.Pa $u\.service$" "$page")" "(^| )$level( |,|$)"
	done
	# each exposure has its row, and no row is of anything else
	rows() {	# unit
		echo "$told" | awk -v own="$1" '
		    /^WHAT SYSTEMD/ { on = 1; unit = "workbox" }
		    /^SEE ALSO/ { on = 0 }
		    /^The unit of the control group/ { unit = "workbox-boxes" }
		    on && unit == own' |
		    grep -xE '(Sys|Restr|Prot|Priv|Cap|Mem|Lock|User|Root|Proc|IP|Dev|Del)[A-Za-z/]*=.*'
	}
	for u in workbox workbox-boxes; do
		systemd-analyze security --offline=true --json=short \
		    "$units/$u.service" |
		    jq -r '.[] | select(.set == false) | .name' |
		    sed 's/…/.../' >"$work/exposed"
		rows $u >"$work/rows"
		like "something of $u is exposed" \
		    "$(wc -l <"$work/exposed")" '^[1-9][0-9]*$'
		is "the page says why, of each" \
		    "$(grep -vxF -f "$work/rows" "$work/exposed")" ''
		is "and of nothing else" \
		    "$(grep -vxF -f "$work/exposed" "$work/rows")" ''
	done
else
	skip "no systemd-analyze"
fi
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$work/r/etc"
	ok "systemd-sysusers" systemd-sysusers --root="$work/r" \
	    "$dest/lib/sysusers.d/workbox.conf"
	is "makes the users that serve looks for" \
	    "$(cut -d: -f1 "$work/r/etc/passwd" | sort)" \
	    "$(sed -n 's/.*{ "\(_workbox-[a-z]*\)",.*/\1/p' \
	    "$top/workbox/serve.c" | sort)"
	is "a uid for each" "$(cut -d: -f3 "$work/r/etc/passwd" | sort -u |
	    wc -l)" "$(wc -l <"$work/r/etc/passwd")"
	like "and the group" "$(cat "$work/r/etc/group")" '^workbox:'
	mkdir -p "$work/r/etc/workbox"
	echo key >"$work/r/etc/workbox/token"
	chmod 644 "$work/r/etc/workbox/token"
	ok "systemd-tmpfiles" systemd-tmpfiles --root="$work/r" --create \
	    "$dest/lib/tmpfiles.d/workbox.conf"
	is "makes the directory, and the key root's alone" "$(cd "$work/r" &&
	    stat -c '%n %a' var/lib/workbox etc/workbox/token)" \
	    "var/lib/workbox 755
etc/workbox/token 600"
else
	skip "no systemd-sysusers"
fi

# ---- the unit's fence, made by hand around the server

box_state
port=$(free_port "${WB_PORT:-18790}")
WB_PORT=$port WORKBOX_SERVER=http://127.0.0.1:$port WORKBOX_TOKEN=$(new_token)
export WORKBOX_SERVER WORKBOX_TOKEN
box_conf

# What DevicePolicy=closed allows, and DeviceAllow=; where the hierarchy is
# one of v2, it takes a program of BPF, which is not tried here.
devices=/sys/fs/cgroup/devices/wb-regress-$$
allowed='1:3 1:5 1:7 1:8 1:9 5:0 5:2 136:* 10:200'
cat >"$work/fenced" <<END
#!/bin/sh
set -e
if [ -e /sys/fs/cgroup/devices/devices.list ]; then
	mkdir -p $devices
	echo a >$devices/devices.deny
	for d in $allowed; do echo "c \$d rwm" >$devices/devices.allow; done
	echo \$\$ >$devices/cgroup.procs
fi
mount --bind "$work" "$work"
mount --bind "$WB_STATE" "$WB_STATE"
awk '\$5 !~ "^/(proc|sys|dev)(/|\$)" && index(\$5, "$work") != 1 { print \$5 }' \
    /proc/self/mountinfo | while read -r m; do
	mount -o remount,bind,ro "\$(printf '%b' "\$m")" 2>/dev/null || :
done
mount -o remount,bind,ro "$work"
mount -t proc -o nosuid,nodev,noexec,hidepid=invisible proc /proc
umask 0077
choom -n $(unit OOMScoreAdjust) -p \$\$ >/dev/null 2>&1 || :
exec setpriv --no-new-privs \
    --inh-caps -all --bounding-set "-all$(echo "$caps" |
    tr 'A-Z ' 'a-z\n' | sed 's/^cap_/,+/' | tr -d '\n')" "$WB_BIN" "\$@"
END
cat >"$work/fence" <<END
#!/bin/sh
exec unshare -m --propagation slave sh "$work/fenced" "\$@"
END
chmod 755 "$work/fence"
# where root may not spare itself, as in some containers, it is not
spared=$(choom -n "$(unit OOMScoreAdjust)" -- cat /proc/self/oom_score_adj \
    2>/dev/null || cat /proc/self/oom_score_adj)
start_serve "$work/fence" --config "$work/workbox.conf"
is "privd is where the unit has it" "$(awk '/^(NoNewPrivs|CapBnd):/ { print $2 }' \
    "/proc/$serve_pid/status" | tr '\n' ' ')$(cat "/proc/$serve_pid/oom_score_adj")" \
    "0000000000000000 1 $spared"
if [ -e "$devices" ]; then
	like "its devices too" "$(cat "/proc/$serve_pid/cgroup")" \
	    ":devices:/wb-regress-$$\$"
fi
maker=$(daemon_pids maker | head -n 1)
no "the maker's root is read-only" 1 nsenter -t "$maker" -m touch /usr/wb-regress
like "as it says" "$out" 'Read-only file system'
ok "a box behind the fence" wb create --name fenced --network none
is "is whole" "$(state fenced) $(health fenced)" 'READY HEALTHY'
is "and works" "$(wb exec fenced -- sh -c 'echo 1 >/tmp/x && cat /tmp/x')" 1
adj=$(runner | head -n 1)
is "it is not spared for its server" "$(cat "/proc/$adj/oom_score_adj")" 0
if command -v slirp4netns >/dev/null; then
	ok "one with a way out" wb create --name out --network egress
	is "is whole, too" "$(state out) $(health out)" 'READY HEALTHY'
	like "and has it" "$(wb exec out -- cat /proc/net/dev)" 'tap0:'
	ok "remove it" wb rm out --grace 0
fi
stop_serve
start_serve "$work/fence" --config "$work/workbox.conf"
is "the next one behind it takes the box up" \
    "$(state fenced) $(wb exec fenced -- cat /tmp/x)" 'READY 1'
ok "remove" wb rm fenced --grace 0
none_left "$WB_BIN"
stop_serve
serve_pid=
[ ! -e "$devices" ] || await rmdir "$devices"

# ---- with sockets that somebody holds, and who minds that it lives

is "the sockets are those of the configuration" "$(sed -n 's/^ListenStream=//p' \
    "$units/workbox.socket" | sort)" "$({
	sed -n 's/.*add_addr(st, "\(.*:8790\)", .*/\1/p' "$top/workbox/serve.c"
	sed -n 's/^C_STR("socket", .*"\(.*\)",$/\1/p' "$top/common/conf.def"
    } | sort)"
no "a watchdog without patience is refused" 125 env WATCHDOG_USEC=1 \
    "$WB_BIN" serve --config "$work/workbox.conf"
like "by name" "$out" 'WATCHDOG_USEC: expected 1 to 86400 seconds'
key="Authorization: Bearer $WORKBOX_TOKEN" held=$work/held
sock=$WB_STATE/api.sock
hold_begin() {	# port
	rm -f "$held"*
	WATCHDOG_USEC=1000000 "$top/regress/box/held.py" "$1" "$sock" \
	    "$held" "$work/hold" "$WB_BIN" serve \
	    --config "$work/workbox.conf" >"$work/serve.log" 2>&1 &
	holder=$!
}
asks() {	# options of curl
	curl -sS -o /dev/null -w '%{http_code}\n' --max-time 60 -H "$key" \
	    "$@" "$WORKBOX_SERVER/v1/sandboxes" 2>&1
}
# The server as the state directory knows it.
server() { cat "$WB_STATE/lock"; }
other() { [ "$(server)" != "$1" ] && answers; }
hold_begin "$port"
await answers && pass "a server with sockets that are held" ||
    fail "it does not serve" "$(cat "$work/serve.log")"
is "by both ways" "$(asks) $(asks --unix-socket "$sock")" '200 200'
beats() { [ "$(grep -c '^WATCHDOG=1$' "$held")" -gt 3 ]; }
await beats && pass "it tells that it is alive" ||
    fail "it does not" "$(cat "$held")"
is "and has told once that it is ready" "$(grep -c '^READY=1$' "$held")" 1
p=$(server)
: >"$work/hold"
kill -TERM "$p"
await test ! -e "/proc/$p"
is "when it has ended the socket has its path" "$(stat -c %F "$sock")" socket
asks >"$work/waits.1" & waits=$!
asks --unix-socket "$sock" >"$work/waits.2" & waits="$waits $!"
waiting() {
	[ "$(ss -Hltnx | grep -e " 127.0.0.1:$port " -e " $sock " |
	    awk '$3 > 0' | wc -l)" = 2 ]
}
await waiting && pass "clients wait" || fail "nobody waits" "$(ss -ltnx)"
rm "$work/hold"
# shellcheck disable=SC2086	# a list
wait $waits
is "and the next server answers them" \
    "$(cat "$work/waits.1" "$work/waits.2")" '200
200'
[ "$(server)" != "$p" ] && pass "it is another" || fail "it is still $p"
p=$(server)
kill -KILL "$p"
# what had taken one may be killed with it, but nobody is turned away
is "nor does SIGKILL refuse one" "$({ asks; asks --unix-socket "$sock"; } |
    grep -i 'connect to')" ''
await other "$p" && pass "the next one serves" || fail "none does"
: >"$work/hold"
kill -TERM "$holder"
wait "$holder"
rm "$work/hold"
hold_begin "$(free_port $((port + 3)))"
other_one() { grep -q "LISTEN_FDS: 127.0.0.1:[0-9]*: expected what the configuration has" "$work/serve.log"; }
await other_one && pass "an address that it does not know is refused" ||
    fail "it is not" "$(cat "$work/serve.log")"
kill -TERM "$holder"
wait "$holder"
export HELD_MODE=666
hold_begin "$port"
unset HELD_MODE
open_one() { grep -q "LISTEN_FDS: $sock: expected a socket to which no other user can connect" "$work/serve.log"; }
await open_one && pass "a socket that any user can connect to is refused" ||
    fail "it is not" "$(cat "$work/serve.log")"
kill -TERM "$holder"
wait "$holder"

# ---- under a supervisor

# Verbs of each, which wait until it is so.
runit_begin() {
	dir=$work/runit log=$work/runit-log parent=runsv
	cp -R "$dest/etc/sv/workbox" "$dir"
	echo "WORKBOX_READY=$work/serves" >"$dir/conf"
	runsv "$dir" &
	super=$!
}
runit_up() { await test -p "$dir/supervise/ok"; sv -w 60 start "$dir"; }
runit_down() { sv -w 60 stop "$dir"; }
# sv takes one that was started within the same second for restarted
runit_aged() { ! sv status "$dir" | grep ') 0s'; }
runit_restart() { await runit_aged; sv -w 60 restart "$dir"; }
runit_reload() { sv hup "$dir"; }
runit_kill() { sv kill "$dir"; }
runit_is_down() { sv status "$dir" | grep '^down: '; }

s6_begin() {
	dir=$work/scan/workbox log=$work/s6-log parent=s6-supervise
	mkdir "$work/scan"
	cp -R "$dest/etc/s6/sv/workbox" "$dir"
	: >"$dir/conf"
	s6-svscan "$work/scan" &
	super=$!
}
s6_up() { await s6-svok "$dir"; s6-svc -wU -T 60000 -u "$dir"; }
s6_down() { s6-svc -wD -T 60000 -d "$dir"; }
s6_restart() { s6-svc -wR -T 60000 -r "$dir"; }
s6_reload() { s6-svc -h "$dir"; }
s6_kill() { s6-svc -k "$dir"; }
s6_is_down() { s6-svstat "$dir" | grep '^down '; }

goes_on() {	# text
	is "$1: the box is READY" "$(state keep)" READY
	is "$1: pid 1 of it is the same" "$(runner)" "$box"
	is "$1: it takes commands" "$(wb exec keep -- echo alive)" alive
}
gone() { [ ! -e "/proc/$1" ]; }

under() {	# supervisor
	s=$1
	"${s}_begin"
	serve_pid=$super	# whose end is the server's
	{
		echo "WORKBOX_ARGS='--config $work/workbox.conf'"
		echo "WORKBOX_LOG=$log"
	} >>"$dir/conf"
	ok "$s: start" "${s}_up"
	ok "$s: it serves when started" answers
	p=$(server)
	is "$s: it is the child of its supervisor" \
	    "$(ps -o comm= -p "$(ps -o ppid= -p "$p" | tr -d ' ')")" "$parent"
	ok "$s: create" wb create --name keep --network none
	box=$(runner)
	like "$s: its pid 1" "$box" '^[0-9]+$'
	ok "$s: a session" wb run keep --name long -- sh -c \
	    'i=0; while [ ! -e /tmp/end ]; do echo $i; i=$((i + 1)); usleep 10000; done; echo end'

	ok "$s: restart" "${s}_restart"
	like "$s: which is another server" "$(server)" "^[0-9]+$"
	[ "$(server)" != "$p" ] && pass "$s: of another pid" ||
	    fail "$s: it is the same, $p"
	await gone "$p" || fail "$s: $p is still there"
	goes_on "$s: after a restart"

	p=$(server)
	ok "$s: reload" "${s}_reload"
	reloaded() { grep -rqE 'reader\[[0-9]+\]: info: reload: ' "$log"; }
	await reloaded && pass "$s: the file was read again" ||
	    fail "$s: nobody says so" "$(ls -R "$log")"
	is "$s: by the same server" "$(server)" "$p"
	goes_on "$s: after a reload"

	p=$(server)
	ok "$s: SIGKILL" "${s}_kill"
	await other "$p" && pass "$s: it is brought back" ||
	    fail "$s: it does not come back" "$("${s}_is_down")"
	goes_on "$s: after SIGKILL"

	p=$(server)
	ok "$s: stop" "${s}_down"
	gone "$p" && pass "$s: nothing serves" || fail "$s: $p is there"
	ok "$s: the supervisor says so" "${s}_is_down"
	no "$s: a client is refused" 125 wb list
	is "$s: the box runs on" "$(cat "/proc/$box/comm") $(runner)" \
	    "runner $box"

	# one that cannot start is tried again, and is mended
	echo 'disk-floor = none' >>"$work/workbox.conf"
	"${s}_up" >/dev/null 2>&1 &
	wait_up=$!
	refused() { grep -rq 'disk-floor' "$log"; }
	await refused && pass "$s: a fault of the configuration is in the log" ||
	    fail "$s: it is not told of" "$(cat "$log/current")"
	sed -i '$d' "$work/workbox.conf"
	await answers && pass "$s: mended, it serves" ||
	    fail "$s: it does not start" "$(tail -n 5 "$log/current")"
	wait "$wait_up"
	ok "$s: start" "${s}_up"
	goes_on "$s: after a stop"

	ok "$s: the session is told to end" wb exec keep -- touch /tmp/end
	ok "$s: it ends as it should" wb wait keep long
	wb logs keep long >"$work/out"
	like "$s: its output is long" "$(wc -l <"$work/out")" '^[0-9]{3,}$'
	is "$s: and whole" "$(awk '$0 != NR - 1 { print NR ": " $0 }' \
	    "$work/out")" "$(wc -l <"$work/out"): end"
	ok "$s: remove" wb rm keep --grace 0
	none_left "$WB_BIN"
	await grep -q 'serving, generation' "$log/current"
	is "$s: the log has each start" \
	    "$(grep -c 'serving, generation' "$log/current")" 4
	like "$s: with its time" "$(grep -m 1 'serving, gen' "$log/current")" \
	    '^20[0-9-]{8}[_ ][0-9:.]+ +privd\[[0-9]+\]: info: serving'

	p=$(server)
	kill -TERM "$super"
	wait "$super"
	gone "$p" && pass "$s: the server ends with its supervisor" ||
	    fail "$s: $p is there"
	serve_pid=
}

for s in runit:runsv s6:s6-svscan; do
	if command -v "${s#*:}" >/dev/null; then
		under "${s%%:*}"
	else
		skip "no ${s#*:}"
	fi
done

# ---- and taken back

echo 'workbox_log=/var/log/mine' >>"$dest/etc/conf.d/workbox"
ok "install again" files install
like "leaves what the operator has written" \
    "$(cat "$dest/etc/conf.d/workbox")" '^workbox_log=/var/log/mine$'
ok "uninstall" files uninstall
is "leaves that, and nothing else" "$(cd "$dest" && find . ! -type d)" \
    ./etc/conf.d/workbox
box_done
