#!/bin/sh
# install.sh [--prefix /usr/local] [--init systemd|openrc|runit|s6|none]:
# packages, build, users, directories, configuration, first key, service files,
# doctor.  Run twice it changes nothing.
# install.sh --uninstall [--purge]: takes it all back (--purge: state,
# configuration, key, logs and users too); refuses while boxes exist.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/steps.sh"

prefix=/usr/local mode=install purge= init=
etc=${WB_ETC:-/etc/workbox} lib=${WB_STATE:-/var/lib/workbox} run=${WB_RUN:-/run/workbox}
while [ $# -gt 0 ]; do
	case $1 in
	--prefix)	[ $# -gt 1 ] || die "--prefix wants a directory"; prefix=$2; shift ;;
	--prefix=*)	prefix=${1#*=} ;;
	--init)		[ $# -gt 1 ] || die "--init wants a name"; init=$2; shift ;;
	--init=*)	init=${1#*=} ;;
	--uninstall)	mode=uninstall ;;
	--purge)	purge=1 ;;
	*)		die "usage: install.sh [--prefix DIR] [--init NAME] | --uninstall [--purge] [--prefix DIR]" ;;
	esac
	shift
done
case $prefix in /*) ;; *) die "--prefix wants an absolute directory, got $prefix" ;; esac
# Again without a word: for the init of before, or its files would be nobody's.
was=$(sed -n 's/.* --with-\([a-z0-9]*\)$/\1/p' "$top/build/install/.options" 2>/dev/null)
[ -n "$init" ] || [ "$mode" = uninstall ] || init=$was
# --init none is back to none.
case $init in
none)	init= ;;
''|systemd|openrc|runit|s6) ;;
*)	die "--init wants systemd, openrc, runit, s6 or none, got $init" ;;
esac
[ -z "$init" ] || [ "$mode" = install ] || die "--init does not go with --uninstall"
[ -z "$purge" ] || [ "$mode" = uninstall ] || die "--purge goes with --uninstall"

need_root
build=$top/build/install
work=$build
mkdir -p "$work"
pkg_new= users_new=

init_dirs() {
	case $init in
	systemd) echo "$prefix/lib" "$prefix/lib/systemd" \
		"$prefix/lib/systemd/system" "$prefix/lib/sysusers.d" \
		"$prefix/lib/tmpfiles.d" ;;
	openrc)	echo /etc/init.d /etc/conf.d /etc/logrotate.d ;;
	runit)	echo /etc/sv ;;
	s6)	echo /etc/s6 /etc/s6/sv ;;
	esac
}

# Directories that an installation makes, outermost first.
dirs() {
	for d in "$prefix" "$prefix/bin" "$prefix/libexec" "$prefix/libexec/workbox" \
	    "$prefix/share" "$prefix/share/man" "$prefix/share/man/man1" \
	    "$prefix/share/man/man5" "$prefix/share/man/man7" "$prefix/share/man/man8" \
	    "$prefix/share/bash-completion" "$prefix/share/bash-completion/completions" \
	    "$prefix/share/zsh" "$prefix/share/zsh/site-functions" \
	    "$prefix/share/fish" "$prefix/share/fish/vendor_completions.d" \
	    "$prefix/share/doc" "$prefix/share/doc/workbox" \
	    "$prefix/share/doc/workbox/examples" \
	    "$prefix/share/workbox" "$prefix/share/workbox/presets" \
	    $(init_dirs); do
		[ -d "$d" ] || echo "$d"
	done
}

boxes() {
	for d in "$lib"/sandboxes/*/; do
		[ -d "$d" ] && basename "$d"
	done
}

# Their names are the server's to tell, with the caller's key or the first one.
# By its socket alone: a key goes to nobody else, whoever listens on a port.
names() {
	for t in "${WORKBOX_TOKEN-}" "$(cat "$etc/token" 2>/dev/null)"; do
		[ -n "$t" ] || continue
		WORKBOX_TOKEN=$t WORKBOX_SERVER=unix:$run/api.sock \
		    "$prefix/bin/workbox" sandbox list 2>/dev/null && return 0
	done
	return 1
}

if [ "$mode" = uninstall ]; then
	# one that was removed has its tree for a moment after the answer
	i=0
	while ids=$(boxes); [ -n "$ids" ] && [ $((i += 1)) -le 50 ] &&
	    names >"$work/names" && [ "$(wc -l <"$work/names")" -le 1 ]; do
		sleep 0.1
	done
	if [ -n "$ids" ]; then
		say "boxes exist:" >&2
		if names >"$work/names"; then
			cat "$work/names" >&2
			die "remove them first (workbox sandbox rm NAME), then uninstall"
		fi
		printf '%s\n' "$ids" >&2
		die "remove them first (workbox serve, workbox sandbox rm ID), then uninstall"
	fi
	if [ -e "$lib/lock" ] && ! flock -n "$lib/lock" true 2>/dev/null; then
		die "a server runs on $lib: end it first"
	fi
	[ -f "$build/Makefile" ] && grep -q "^prefix = $prefix\$" "$build/Makefile" ||
	    die "not installed under $prefix from this directory ($build)"
	if [ -e "$prefix/bin/workbox" ] || [ -d "$prefix/libexec/workbox" ]; then
		mkdir -p "$prefix/libexec/workbox"
		make -s -C "$build" uninstall >"$work/uninstall.log" 2>&1 ||
		    die "make uninstall failed: $work/uninstall.log"
	fi
	# what was not there before us, where nobody else uses it now
	[ ! -f "$build/.dirs" ] || sort -r -u "$build/.dirs" | while read -r d; do
		rmdir "$d" 2>/dev/null
	done
	rm -f "$build/.dirs"
	rm -rf "$run"
	if [ -n "$purge" ]; then
		rm -rf "$lib" "$etc"
		[ "$etc" != /etc/workbox ] || rm -rf /var/log/workbox /var/log/workbox.log*
		stay=
		for u in _workbox-netd _workbox-stored _workbox-apid _workbox-proxyd; do
			getent passwd "$u" >/dev/null && { userdel "$u" || deluser "$u"; } >/dev/null 2>&1
			getent passwd "$u" >/dev/null && stay="$stay $u"
			getent group "$u" >/dev/null && { groupdel "$u" || delgroup "$u"; } >/dev/null 2>&1
		done
		getent group workbox >/dev/null && { groupdel workbox || delgroup workbox; } >/dev/null 2>&1
		say "Removed: programs, $lib, $etc, logs, users. ${stay:+In use and left:$stay. }Packages stay."
	else
		say "Removed: programs. $lib, $etc and users stay (--purge removes them); packages stay."
	fi
	exit 0
fi

step_packages build run
umask 022
dirs >>"$build/.dirs"
# the files of another init than now go, as long as it is known where they are
[ -z "$was" ] || [ "$was" = "$init" ] || make -s -C "$build/etc" "uninstall-$was" ||
    die "the service files for $was could not be removed"
step_build "$build" "$prefix" --disable-tests ${init:+"--with-$init"}
step_users

mkdir -p "$etc" "$lib"
chmod 755 "$etc" "$lib"
if [ ! -e "$etc/workbox.conf" ]; then
	install -m 644 "$top/etc/workbox.conf" "$etc/workbox.conf"
	# Other places than the defaults are said where the server reads them.
	[ "$lib" = /var/lib/workbox ] || printf 'state-dir = "%s"\n' "$lib" >>"$etc/workbox.conf"
	[ "$run" = /run/workbox ] || printf 'socket = "%s/api.sock"\n' "$run" >>"$etc/workbox.conf"
fi
if [ ! -e "$etc/token" ]; then
	(umask 077 && new_token >"$etc/token.new" && mv "$etc/token.new" "$etc/token") ||
	    die "cannot write $etc/token"
fi
chmod 600 "$etc/token"
conf= token=
[ "$etc" = /etc/workbox ] || conf=" --config $etc/workbox.conf" token=" --token-file $etc/token"
"$prefix/bin/workbox" doctor --config "$etc/workbox.conf"
r=$?
[ $r -ne 2 ] || die "doctor could not run"
say
if [ $r -ne 0 ]; then
	say "Installed under $prefix, but doctor found faults (see above). Next: mend them, then $prefix/bin/workbox doctor$conf"
	exit 1
fi
say "Installed under $prefix. Next: $prefix/bin/workbox rootfs build minimal$conf && $prefix/bin/workbox runtime install$conf${init:+, then the service: man workbox-init}"
[ -n "$init" ] || say "  $prefix/bin/workbox serve$conf$token"
