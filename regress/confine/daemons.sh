#!/bin/sh
# daemons.sh: the fence of each daemon, read off the running process.
WB_DIRECT=1	# no word to the API is said here
. "$(dirname "$0")/../box/lib.sh"
box_serve
uid_of() { getent passwd "$1" | cut -d: -f3; }
status() { awk -v k="$2:" '$1 == k { $1 = ""; sub(/^ */, ""); print; exit }' "/proc/$1/status"; }

# Our own daemons: the executable, below this server's process.
find_daemon() {
	for e in /proc/[0-9]*/exe; do
		[ "$(readlink "$e")" = "$WB_PREFIX/libexec/workbox/$1" ] || continue
		p=${e#/proc/}; p=${p%/exe}; q=$p
		while [ "$q" -gt 1 ]; do
			[ "$q" = "$serve_pid" ] && { echo "$p"; break; }
			q=$(awk '{ sub(/.*\) /, ""); print $2 }' "/proc/$q/stat")
		done
	done
}

for d in stored apid netd uplinkd proxyd; do
	p=$(find_daemon $d | head -n 1)
	like "$d runs" "$p" '^[0-9]+$'
	[ -n "$p" ] || continue
	# uplinkd is in netd's user namespace, as its root
	[ $d = uplinkd ] && u=$(uid_of _workbox-netd) || u=$(uid_of "_workbox-$d")
	is "$d: its own user, all four ids" "$(status "$p" Uid)" "$u $u $u $u"
	is "$d: no_new_privs" "$(status "$p" NoNewPrivs)" 1
	is "$d: a system-call filter" "$(status "$p" Seccomp)" 2
	# root of the user namespace it was started in: netd's is its own uid
	case $d in netd|uplinkd) owner=$u ;; *) owner=0 ;; esac
	is "$d: not dumpable, its /proc files are root's" "$(stat -c %u "/proc/$p/mem" 2>/dev/null || echo gone)" $owner
	is "$d: no environment" "$(tr -d '\0' <"/proc/$p/environ" | wc -c)" 0
	if [ $d = uplinkd ]; then
		is "uplinkd: SETGID, SETUID, SYS_ADMIN" "$(status "$p" CapPrm) $(status "$p" CapEff) $(status "$p" CapBnd)" \
		    "00000000002000c0 00000000002000c0 00000000002000c0"
		is "uplinkd: in netd's user namespace, where they count" "$(readlink "/proc/$p/ns/user")" \
		    "$(readlink "/proc/$(find_daemon netd | head -n 1)/ns/user")"
	elif [ $d != netd ]; then
		is "$d: no capability" "$(status "$p" CapPrm) $(status "$p" CapEff) $(status "$p" CapBnd)" \
		    "0000000000000000 0000000000000000 0000000000000000"
	else
		[ "$(readlink "/proc/$p/ns/user")" != "$(readlink /proc/1/ns/user)" ] &&
		    pass "netd: a user namespace of its own" || fail "netd: in the host's user namespace"
		# none on the host: whatever it holds counts in its namespace only
		is "netd: its helper is called in ps as in netd(8)" "$(ps -o args= --ppid "$p")" netd-maker
		for q in $(find_daemon netd); do
			like "netd and its maker: NET_ADMIN; SYS_ADMIN, SETUID, SETGID, SYS_PTRACE, NET_BIND_SERVICE" \
			    "$(status "$q" CapPrm) $(status "$q" CapEff) $(status "$q" CapBnd)" \
			    '^(0000000000001000|00000000002814c0) \1 \1$'
		done
	fi
	if [ $d = uplinkd ]; then
		is "uplinkd: a root with /usr, devices and cgroups" "$(ls "/proc/$p/root/" | grep -v '^lib' | tr '\n' ' ')" \
		    "bin cgroup dev etc netns run tmp usr "
		is "uplinkd: nothing in /run and /tmp" "$(ls -A "/proc/$p/root/run" "/proc/$p/root/tmp" | grep -v ':$' | tr -d '\n')" ""
		is "uplinkd: sees no other mount of the host" \
		    "$(awk '$5 != "/" && $5 !~ /^\/(usr|bin|lib|lib64|dev|cgroup)(\/|$)/' "/proc/$p/mountinfo")" ""
		is "uplinkd: can write to cgroups and devices alone" \
		    "$(awk '$6 ~ /^rw/ && $5 !~ /^\/(cgroup|dev)\//' "/proc/$p/mountinfo")" ""
		like "$d: no core file" "$(awk '/^Max core/ { print $5 }' "/proc/$p/limits")" '^0$'
		continue
	elif [ $d != stored ]; then
		is "$d: an empty root" "$(ls -A "/proc/$p/root/" | wc -l)" 0
	else
		is "stored: its root is its database" "$(ls "/proc/$p/root/" | grep -vc '^\(data\|lock\)')" 0
	fi
	is "$d: sees no mount of the host" "$(wc -l <"/proc/$p/mountinfo")" 1
	like "$d: no core file" "$(awk '/^Max core/ { print $5 }' "/proc/$p/limits")" '^0$'
done

# root both; what is left of it
p=$(find_daemon privd | head -n 1)
like "privd runs" "$p" '^[0-9]+$'
is "privd: no capability" "$(status "$p" CapPrm) $(status "$p" CapEff) $(status "$p" CapBnd)" \
    "0000000000000000 0000000000000000 0000000000000000"
is "privd: no_new_privs and a system-call filter" "$(status "$p" NoNewPrivs) $(status "$p" Seccomp)" "1 2"
is "privd: an empty root" "$(ls -A "/proc/$p/root/" | wc -l)" 0
is "privd: sees no mount of the host" "$(wc -l <"/proc/$p/mountinfo")" 1
p=$(find_daemon maker | head -n 1)
like "maker runs" "$p" '^[0-9]+$'
# CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP SYS_CHROOT
# SYS_PTRACE SYS_ADMIN MKNOD SETFCAP, nothing else
is "maker: the capabilities of its list" "$(status "$p" CapPrm) $(status "$p" CapBnd)" "00000000882c01fb 00000000882c01fb"
# a filter would hold for every box and daemon
is "maker: no_new_privs, no filter" "$(status "$p" NoNewPrivs) $(status "$p" Seccomp)" "1 0"

# filters were made when this was built; libseccomp is the build's
is "readelf tells what is linked" "$(readelf -d "$WB_PREFIX/libexec/workbox/apid" | grep -c libevent)" 1
for e in "$WB_PREFIX"/bin/workbox "$WB_PREFIX"/libexec/workbox/*; do
	is "${e##*/}: libseccomp is not linked" "$(readelf -d "$e" | grep -c seccomp)" 0
done
box_done
