# inet.sh: a small internet, for black-box scripts: sourced in the place of
# lib.sh, which it sources.
#
# The script and the server are in a network namespace of their own, "the
# host", joined to another, "the internet"; nothing leaves the machine.  A
# script calls inet_up, inet_serve and box_serve, and at its end, when it has
# removed its boxes, inet_done.
if [ -z "${WB_INSIDE-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "skip: needs root"; exit 77; }
	for c in ip nsenter python3 slirp4netns; do
		command -v $c >/dev/null || { echo "skip: no $c"; exit 77; }
	done
	exec 8</proc/self/ns/net
	WB_INSIDE=1 exec unshare -n sh "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; }

# A command with the network that the script was started in, before inet_up.
outside() { nsenter --net=/proc/self/fd/8 "$@"; }

# What runs in both, to be ended; the internet is a process that holds it.
inet= inet_pids=
box_after() {
	for p in $inet_pids $inet; do kill "$p" 2>/dev/null; done
	wait 2>/dev/null
	inet= inet_pids=
}
in_inet() { nsenter -t "$inet" -n "$@"; }

# Both namespaces, joined.  The host is 203.0.113.2 and 2001:db8:1::2.
inet_up() {	# more addresses of the internet...
	exec 8<&-
	ip link set lo up
	unshare -n sleep 3600 &
	inet=$!
	inet_there() {
		[ "$(readlink "/proc/$inet/ns/net")" != \
		    "$(readlink /proc/self/ns/net)" ]
	}
	await inet_there
	inet_ns=$(readlink "/proc/$inet/ns/net")
	ip link add net0 type veth peer name net1 netns "$inet"
	in_inet ip link set lo up
	for s in default net0; do
		echo 0 >"/proc/sys/net/ipv6/conf/$s/accept_dad"
	done
	in_inet sh -c 'echo 0 >/proc/sys/net/ipv6/conf/net1/accept_dad'
	ip link set net0 up
	in_inet ip link set net1 up
	ip addr add 203.0.113.2/24 dev net0
	ip addr add 2001:db8:1::2/64 dev net0
	for a in 203.0.113.10/24 203.0.113.50/32 198.51.100.10/32 10.1.2.3/32 \
	    192.168.1.2/32 172.16.1.2/32 100.64.1.2/32 169.254.169.254/32 \
	    2001:db8:1::10/64 fd12::1/128 "$@"; do
		in_inet ip addr add "$a" dev net1
	done
	ip route add default via 203.0.113.10
	ip -6 route add default via 2001:db8:1::10
	ip route add 169.254.0.0/16 via 203.0.113.10
	WB_CONF_MORE="egress-dns = 203.0.113.50
${WB_CONF_MORE-}"
}

# The servers of both, by a program that says "ready": what the name server
# was asked for is in $work/names, what any has to complain of in *.err.
inet_serve() {	# program argument...
	mkfifo "$work/up"
	p=$top/regress/box/$1; shift
	nsenter -t "$inet" -n /usr/bin/python3 "$p" internet "$@" \
	    >"$work/names" 2>"$work/internet.err" &
	inet_pids="$inet_pids $!"
	/usr/bin/python3 "$p" host "$@" >"$work/up" 2>"$work/host.err" &
	inet_pids="$inet_pids $!"
	read -r _ <"$work/up"
	await grep -q ready "$work/names" ||
	    fail "the internet is not ready" "$(cat "$work/internet.err")"
}

# what came at which address, as the host sees it
from_host() { curl -gs --noproxy '*' --max-time 5 "http://$1/"; }

# The slirp4netns of this server.
slirps() {
	cat /sys/fs/cgroup/unified/"$WB_CGROUP"/uplinks/[0-9]*/cgroup.procs \
	    /sys/fs/cgroup/"$WB_CGROUP"/uplinks/[0-9]*/cgroup.procs 2>/dev/null
}

# The server ends, and nothing is left of it nor of the internet.
inet_done() {
	box_stop
	is "with the server the pool is gone" "$(slirps)" ""
	is "  and every cgroup" \
	    "$(find /sys/fs/cgroup -type d -path "*/$WB_CGROUP*")" ""
	# but a dead one whom pid 1 has not buried yet, and another script's
	live() {
		ps -eo uid=,stat=,cgroup=,args= |
		    awk -v u="$WB_UIDS" -v g="$WB_CGROUP" \
		    '$1 >= u && $1 < u + 65536 && $2 !~ /^Z/ && (index($0, g) || !/wb-regress-/)'
	}
	is "no process has a uid of the range" "$(live)" ""
	is "no mount is left" "$(grep -c "$work" /proc/self/mountinfo)" 0
	is "the internet had nothing to complain of" \
	    "$(cat "$work/internet.err" "$work/host.err")" ""
	box_watched
	box_after
	left() { readlink /proc/[0-9]*/ns/net | grep -cxF "$inet_ns"; }
	nobody_left() { [ "$(left)" = 0 ]; }
	await nobody_left
	is "nobody is left in the internet" "$(left)" 0
	box_done
}
