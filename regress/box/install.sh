#!/bin/sh
# install.sh: etc/install.sh for real, from nothing to installed and back, in
# an overlay of this host's root: what it writes and whom it makes a user is
# in memory, and gone with the test.
. "$(dirname "$0")/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds all of it (long lane)"; exit 77; }

# Mount and process namespaces of its own, so that no user is in use.  /var/lib
# is a directory of a real file system: boxes need one.
mkdir "$work/ov" "$work/lib"
cat >"$work/root" <<END
set -e
mount -t tmpfs -o mode=755 tmpfs "$work/ov"
cd "$work/ov"
mkdir up work root top topwork
mount -t overlay -o lowerdir=/,upperdir=up,workdir=work overlay root
mkdir -p "root$top"
mount -t overlay -o "lowerdir=$top,upperdir=top,workdir=topwork" overlay "root$top"
mount --rbind /sys root/sys
mount --rbind /dev root/dev
mount -t proc proc root/proc
mount --bind "$work/lib" root/var/lib
for d in dpkg rpm pacman; do
	[ -d "/var/lib/\$d" ] || continue
	mkdir "root/var/lib/\$d"
	mount -o bind,ro "/var/lib/\$d" "root/var/lib/\$d"
done
mount -t tmpfs tmpfs root/run
mkdir root/run/up root/run/old
mount --bind up root/run/up
cd root
pivot_root . run/old
umount -l run/old
echo up
exec sleep infinity >/dev/null 2>&1
END
trap 'kill -KILL $ns; box_cleanup; exit 1' INT TERM HUP
trap 'kill -KILL $ns; box_cleanup' EXIT
enter "$work/root" "overlay of the root"
in_root() { nsenter -t "$ns" -m -p env -u WB_STATE TMPDIR=/tmp "$@"; }
install() { in_root sh "$top/etc/install.sh" "$@"; }
# All that is there of an installation, with what would change if touched.
what() {
	in_root sh -c 'for t in d l f; do
		find /usr/local /etc/workbox /var/lib/workbox /run/workbox -type $t -printf "%p %m %u$([ $t = d ] || echo " %T@")\n" 2>/dev/null
	    done
	    find /usr/local /etc/workbox -type f -exec sha256sum {} + 2>/dev/null
	    getent passwd; getent group' | sort
}
users() {
	in_root sh -c 'getent passwd | grep -c "^_workbox-"; getent group | grep -c -e "^_workbox-" -e "^workbox:"' | tr '\n' ' '
}

for u in _workbox-netd _workbox-stored _workbox-apid _workbox-proxyd; do
	in_root userdel "$u"
done >/dev/null 2>&1
in_root groupdel workbox 2>/dev/null
in_root rm -rf /etc/workbox /var/lib/workbox
is "no user is there at first" "$(users)" '0 0 '
what >"$work/before"

no "--purge alone" 1 install --purge
no "a directory that is relative" 1 install --prefix here
ok "install" install
like "says what comes next" "$out" \
    'Next: /usr/local/bin/workbox rootfs build minimal'
is "users and groups are made" "$(users)" '4 5 '
is "the key is root's alone" \
    "$(in_root stat -c '%a %u %s' /etc/workbox/token)" '600 0 48'
what >"$work/first"
ok "again" install
what >"$work/second"
cmp -s "$work/first" "$work/second" && pass "changes nothing" ||
    fail "it does" "$(diff "$work/first" "$work/second")"
ok "what it says comes next" in_root sh -c \
    '/usr/local/bin/workbox rootfs build minimal && /usr/local/bin/workbox runtime install'
ok "serve -n takes the configuration" in_root env -i /usr/local/bin/workbox \
    serve -n
ok "pages are found" in_root test -s /usr/local/share/man/man1/workbox.1

in_root mkdir -p /var/lib/workbox/sandboxes/01M8MA0772Z7T7CW0Q46WZX14B
no "uninstall where a box is" 1 install --uninstall --purge
like "names it" "$out" 01M8MA0772Z7T7CW0Q46WZX14B
in_root rmdir /var/lib/workbox/sandboxes/01M8MA0772Z7T7CW0Q46WZX14B
mkfifo "$work/held"
in_root flock /var/lib/workbox/lock sh -c 'echo; exec sleep infinity' \
    >"$work/held" &
read -r _ <"$work/held"
no "uninstall where a server runs" 1 install --uninstall --purge
like "says so" "$out" 'a server runs on /var/lib/workbox'
in_root pkill -x sleep -P "$(in_root pgrep -x flock)"
await in_root flock -n /var/lib/workbox/lock true ||
    fail "the lock is still held"
no "uninstall of another prefix" 1 install --uninstall --prefix /opt/other

ok "uninstall" install --uninstall
is "no program is left" "$(in_root sh -c \
    'ls -d /usr/local/bin/workbox /usr/local/libexec/workbox 2>/dev/null')" ''
is "key and users stay" "$(in_root stat -c %s /etc/workbox/token) $(users)" \
    '48 4 5 '
key=$(in_root cat /etc/workbox/token)
no "an init that nobody knows" 1 install --init upstart
ok "install over what stayed, for an init" install --init systemd
units() { in_root find /usr/local/lib -name 'workbox*.service' | wc -l; }
is "its files are there" "$(units)" 2
ok "again without a word of it" install
is "they are still" "$(units)" 2
is "with the same key" "$(in_root cat /etc/workbox/token)" "$key"

ok "uninstall --purge" install --uninstall --purge
is "those of the init are gone" "$(units)" 0
like "says what went" "$out" \
    '^Removed: programs, /var/lib/workbox, /etc/workbox, logs, users\. +Packages stay\.$'
what | sed 's/ [0-9.]*$//' >"$work/after"
sed 's/ [0-9.]*$//' "$work/before" >"$work/want"
diff "$work/want" "$work/after" >"$work/diff" && pass "all is as it was" ||
    fail "it is not" "$(cat "$work/diff")"
ok "again" install --uninstall --purge
what | sed 's/ [0-9.]*$//' | diff "$work/want" - >"$work/diff" &&
    pass "is the same" || fail "it is not" "$(cat "$work/diff")"
is "elsewhere nothing is written, but what accounts are" "$(in_root find /run/up ! -type d -printf '%P\n' |
    grep -v -E '^etc/((passwd|group|shadow|gshadow|subuid|subgid)-?|\.pwd\.lock)$')" ''
box_done
