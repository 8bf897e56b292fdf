#!/bin/sh
# tree.sh: B29 at its size: a tree that a box made to choke on, 5,000 levels,
# names of 255 bytes with newlines and bytes that are no text, and a directory
# of a million entries (40,000 in the fast lane); privd is killed while it is
# removed, and the next one goes on, in little memory.
. "$(dirname "$0")/lib.sh"
. "$top/regress/box/attack/lib.sh"
attack_init
n=40000
[ "${WB_LANE-fast}" != long ] || n=1000000
box_serve
left() { ls "$WB_STATE/sandboxes"; }
peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }
maker() { daemon_pids maker | head -n 1; }

ok "create" wb create --name big --network none
put big
attack big tree /root/tree
checks many timeout 560 "$WB_BIN" sandbox exec -n big -- sh \
    -c "cd /root && ./attack many $n"
id=$(wb inspect big | field id)
ok "remove" wb rm big --grace 0
removing() {
	[ "$(pgrep -P "$(maker)" | wc -l)" -gt 3 ] ||
	    [ ! -e "$WB_STATE/sandboxes/$id" ]
}
await removing
is "it is being removed" "$(left)" "$id"
kill -KILL "$serve_pid"
wait "$serve_pid" 2>/dev/null
is "privd was killed in the middle" "$(left)" "$id"
start_serve "$WB_BIN" --config "$work/workbox.conf"
most=0 child=0 tries=0
# the pace of looking; how long it takes is the disk's matter
while [ -n "$(left)" ] && [ $tries -lt 3000 ]; do
	for p in "$serve_pid" $(daemon_pids maker); do
		m=$(peak "$p" 2>/dev/null)
		[ "${m:-0}" -le "$most" ] || most=$m
	done
	tries=$((tries + 1))
	sleep 0.1
done
is "all of it is gone" "$(left)" ""
[ "$most" -gt 0 ] && [ "$most" -lt 8192 ] &&
    pass "nobody who removes it holds more than 8 MiB: $most KiB" ||
    fail "$most KiB were held"
like "the server answers" "$("$WB_BIN" version 2>&1)" workbox
is "the host is as it was" "$(canaries | diff "$work/canaries" -)" ""
box_done
