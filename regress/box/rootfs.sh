#!/bin/sh
# rootfs.sh: root file systems from archives: A46 by the real command, its
# fence, what is left of interrupted ones (nothing), and a box from one.
# What archives can say is unit/room_test.c's.
. "$(dirname "$0")/lib.sh"
python3 -c 'import tarfile' 2>/dev/null ||
    { echo "skip: no python3 with tarfile"; exit 77; }
box_serve
S=$WB_STATE
rootfs() {
	c=$1
	shift
	timeout -k 5 100 "$WB_BIN" rootfs "$c" --config "$work/workbox.conf" \
	    "$@"
}
have() { ls -A "$S/rootfs" | tr '\n' ' '; }
# what find(1) says of a tree, its root too
tree() {
	(cd "$1" && find . -printf '%p %y %m %U %G %s %T@ %n %l\n' |
	    sed 's|^\(\S* d \S* \S* \S*\) \S*|\1|' | LC_ALL=C sort)
}
member() { /usr/bin/python3 -c 'import json, sys
for k in sys.argv[1].split("."): j = json.load(sys.stdin) if "j" not in dir() else j; j = j[k]
print(j if isinstance(j, str) else json.dumps(j))' "$1"; }

# ---- exported, imported, the same
mute_pid=
box_after() {
	[ -z "$mute_pid" ] || kill "$mute_pid" 2>/dev/null
	umount "$work/small" 2>/dev/null
}
M=$S/rootfs/minimal
mkdir "$work/more"
cp -a "$M/." "$work/more"
cp /bin/busybox "$work/more/bin/suid"
chmod 6755 "$work/more/bin/suid"
mknod "$work/more/null" c 1 3
setcap cap_net_raw+ep "$work/more/bin/suid" 2>/dev/null
printf x >"$work/more/name
with a newline"
chown 1000:1000 "$work/more/home/agent"
touch -d 1960-01-01 "$work/more/etc/passwd"
tar -C "$work/more" --format=posix -cf "$work/more.tar" .
for z in gzip xz zstd; do
	command -v $z >/dev/null || { skip "no $z"; continue; }
	$z -c "$work/more.tar" >"$work/more.tar.$z"
	ok "import, $z" rootfs import "by-$z" "$work/more.tar.$z"
	like "what is left out is told, $z" "$out" 'left out 1 device nodes'
done
ok "import, plain" rootfs import plain "$work/more.tar"
cat "$work/more.tar.gzip" >"$work/piped"
ok "import from a pipe" sh -c \
    "cat '$work/piped' | '$WB_BIN' rootfs import piped - --state '$S' --config '$work/workbox.conf'"
tree "$work/more" | grep -v '^./null ' >"$work/want"
for n in plain by-gzip by-xz by-zstd piped; do
	tree "$S/rootfs/$n" >"$work/got"
	cmp -s "$work/want" "$work/got" && pass "$n is what was exported" ||
	    fail "$n" "$(diff "$work/want" "$work/got" | head -n 5)"
done
is "the files are" "$(cat "$S/rootfs/plain/bin/busybox" | sha256sum)" \
    "$(sha256sum <"$M/bin/busybox")"
is "nobody of the host reaches them" "$(stat -c '%a %u' "$S/rootfs")" '700 0'
no "a name that is taken" 125 rootfs import plain "$work/more.tar"
is "is told" "$out" \
    "workbox rootfs import: there is a root file system plain already"
for n in default .x ../x 'a b' '' A; do
	no "the name \"$n\"" 125 rootfs import "$n" "$work/more.tar"
done
no "a file that is not there" 125 rootfs import x "$work/nothing"
like "is told" "$out" "$work/nothing: No such file"
no "a directory" 125 rootfs import x "$work"
like "is told" "$out" 'expected an archive, not a directory'
for o in 'max-size lots' 'max-size 0' 'max-entries 0' \
    'max-entries -1' 'sha256 abc'; do
	no "--$o" 125 rootfs import x "$work/more.tar" "--${o% *}" "${o#* }"
	like "says what is expected" "$out" \
	    "^workbox rootfs import: --${o% *}: expected"
done
sum=$(sha256sum <"$work/more.tar.gzip" | cut -d ' ' -f 1)
no "another sum" 125 rootfs import x "$work/more.tar.gzip" \
    --sha256 "$(echo "$sum" | tr 0-9a-f 1-9a-f0)"
is "is told" "$out" "$(echo "$out" | grep -v sum; echo \
    "workbox rootfs import: $work/more.tar.gzip: its sum is $sum")"
ok "the same sum" rootfs import summed "$work/more.tar.gzip" --sha256 "$sum"
ok "rm" rootfs rm summed

# ---- inspect
j=$(rootfs inspect by-gzip)
is "inspect: name" "$(echo "$j" | member name)" by-gzip
is "inspect: path" "$(echo "$j" | member path)" "$S/rootfs/by-gzip"
is "inspect: made by" "$(echo "$j" | member madeBy)" import
is "inspect: the sum" "$(echo "$j" | member origin.sha256)" "$sum"
is "inspect: the file" "$(echo "$j" | member origin.file)" "$work/more.tar.gzip"
is "inspect: its bytes" "$(echo "$j" | member origin.bytes)" \
    "$(stat -c %s "$work/more.tar.gzip")"
is "inspect: what was left out" "$(echo "$j" | member origin.leftOut.devices)" 1
like "inspect: when" "$(echo "$j" | member origin.at)" '^20[0-9-]*T[0-9:.]*Z$'
is "inspect: entries" "$(echo "$j" | member entries)" \
    "$(find "$S/rootfs/by-gzip" -printf x | wc -c)"
is "inspect: bytes of the disk" "$(echo "$j" | member sizeBytes)" \
    "$(($(du -s -B512 "$S/rootfs/by-gzip" | cut -f 1) * 512))"
is "inspect: not the default" "$(echo "$j" | member default)" false
is "inspect: for which machine" "$(echo "$j" | member machine)" "$(uname -m)"
is "inspect: nobody uses it" "$(echo "$j" | member usedBy)" '[]'
is "inspect: what it lacks" "$(echo "$j" | member lacks)" \
    '["/etc/ssl/certs/ca-certificates.crt"]'
j=$(rootfs inspect minimal)
is "inspect: one that was built" "$(echo "$j" | member madeBy) $(echo "$j" |
    member origin.kind) $(echo "$j" | member default)" 'build minimal true'
cp -a "$M" "$S/rootfs/older"
setfattr -x trusted.workbox.origin "$S/rootfs/older" 2>/dev/null ||
    /usr/bin/python3 -c \
    'import os, sys; os.removexattr(sys.argv[1], "trusted.workbox.origin")' \
    "$S/rootfs/older"
is "inspect: one of which nothing is known" \
    "$(rootfs inspect older | member origin)" null
rm -rf "$S/rootfs/older"
no "inspect of nothing" 125 rootfs inspect nothing
is "is told" "$out" \
    "workbox rootfs inspect: there is no root file system nothing"

# a file that would make its reader wait is an archive's to have
mkdir -p "$work/waits/etc" "$work/waits/bin"
mkfifo "$work/waits/etc/os-release" "$work/waits/bin/sh"
tar -C "$work/waits" -cf "$work/waits.tar" .
ok "one with pipes in it" rootfs import waits "$work/waits.tar"
ok "is listed at once" rootfs list
like "without a system" "$out" '^waits +- +- +[0-9]'
ok "and inspected" rootfs inspect waits
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	rm "$S/rootfs/waits/etc/os-release"
	mknod "$S/rootfs/waits/etc/os-release" c 60 0
	strace -f -qq -o "$work/opens" -e trace=open,openat,openat2 "$WB_BIN" \
	    rootfs list --config "$work/workbox.conf" >/dev/null
	like "a device is looked at" "$(cat "$work/opens")" \
	    '"etc/os-release", \{flags=[A-Z_|]*O_PATH.* = [0-9]'
	is "and not opened" "$(grep 'os-release"' "$work/opens" |
	    grep -v O_PATH; grep ENXIO "$work/opens")" ''
fi
rootfs rm waits

# ---- a box from it
ok "create" wb create --name b --network none --rootfs by-xz
is "a command in it" "$(wb exec b -- cat /etc/os-release)" \
    "$(cat "$M/etc/os-release")"
is "its files are its root's" "$(wb exec b -- stat -c '%u %g' /bin/busybox)" \
    '0 0'
is "and the agent's" "$(wb exec b -- stat -c '%u %g' /home/agent)" '1000 1000'
is "a setuid program is there" "$(wb exec b -- stat -c %a /bin/suid)" 6755
like "and cannot raise" "$(wb exec b -- grep ' / ' /proc/mounts)" \
    '[ ,]nosuid[ ,]'
ok "it can be written to" wb exec b -- sh \
    -c 'echo more >>/etc/passwd; rm /bin/suid'
is "which the root file system does not see" \
    "$(grep -c more "$S/rootfs/by-xz/etc/passwd")" 0
is "inspect: who uses it" "$(rootfs inspect by-xz | member usedBy)" '["b"]'
no "rm of one that is used" 125 rootfs rm by-xz
is "is told" "$out" "workbox rootfs rm: sandbox b uses root file system by-xz"
is "and it is there" "$(wb exec b -- cat /etc/hostname)" b
wb rm --grace 0 b
removed() { rootfs rm by-xz; }
await removed && pass "rm of one that is not" || fail "rootfs rm"
# one that is used when it is out of sight, an rm that is killed then, and one
# who sweeps before a lock is taken: calls that come late
late() {	# call:how command...
	j=$1; shift
	timeout -k 5 60 strace -qq -o /dev/null -e "trace=${j%%:*}" -e \
	    "inject=$j" "$WB_BIN" rootfs "$@" --config "$work/workbox.conf" \
	    >"$work/late" 2>&1 </dev/null &
	importer=$!
}
begun() { ls -d "$S"/rootfs/.build-*; }
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	late renameat2:delay_enter=3000000:when=1 rm piped
	await begun
	ok "a sandbox of what is being removed" wb create --name p \
	    --network none --rootfs piped
	wait $importer
	is "it stays" "$? $(cat "$work/late")" \
	    '125 workbox rootfs rm: sandbox p uses root file system piped'
	is "where it was" "$(have)" \
	    'by-gzip by-zstd default minimal piped plain '
	is "as it was" "$(wb exec p -- cat /etc/hostname)" p
	wb rm --grace 0 p
	late renameat:signal=KILL:when=1 rm piped
	wait $importer
	like "killed while it is out of sight" "$(have)" \
	    '^\.build-[0-9a-f]* \.gone-piped by-gzip by-zstd default minimal plain $'
	rootfs list >"$work/list"
	like "the next command shows it again" "$(cat "$work/list")" '^piped '
	is "and leaves nothing else" "$(have)" \
	    'by-gzip by-zstd default minimal piped plain '
	# an import of the same name while it is out of sight: what is used
	# comes back, and so does what a killed rm leaves
	late renameat2:delay_enter=3000000:when=1+1 rm piped
	await begun
	ok "a sandbox of what is being removed, again" wb create --name p \
	    --network none --rootfs piped
	hidden() { [ -d "$S/rootfs/.gone-piped" ]; }
	await hidden
	no "an import of what is hidden" 125 rootfs import piped \
	    "$work/more.tar"
	is "is told" "$(echo "$out" | tail -n 1)" \
	    "workbox rootfs import: there is a root file system piped already"
	wait $importer
	is "it comes back" "$? $(cat "$work/late")" \
	    '125 workbox rootfs rm: sandbox p uses root file system piped'
	is "and nothing else is left" "$(have)" \
	    'by-gzip by-zstd default minimal piped plain '
	wb rm --grace 0 p
	late renameat:delay_enter=20000000:when=1 rm piped
	await hidden
	mkfifo "$work/late.tar"
	"$WB_BIN" rootfs import piped "$work/late.tar" \
	    --config "$work/workbox.conf" >"$work/late.log" 2>&1 &
	second=$!
	exec 7>"$work/late.tar"
	two_begun() { [ "$(begun | wc -l)" = 2 ]; }
	await two_begun && pass "an import begins meanwhile" ||
	    fail "no import" "$(cat "$work/late.log")"
	for p in $(descendants $importer); do
		[ "$(readlink "/proc/$p/exe")" = "$WB_BIN" ] && kill -KILL "$p"
	done
	wait $importer
	cat "$work/more.tar" >&7
	exec 7>&-
	wait $second
	is "the import ends after the rm was killed" \
	    "$? $(tail -n 1 "$work/late.log")" \
	    '125 workbox rootfs import: there is a root file system piped already'
	is "what was hidden is back" "$(rootfs list | grep -c '^piped '; \
	    have)" "$(printf '1\nby-gzip by-zstd default minimal piped plain ')"
	# a default of what goes meanwhile
	late flock:delay_enter=3000000:when=1 default piped
	at_work() {
		for p in $(descendants $importer); do readlink \
		    "/proc/$p/fd"/*; done 2>/dev/null | grep -qx "$S/rootfs"
	}
	await at_work
	ok "rm meanwhile" rootfs rm piped
	wait $importer
	is "a default of what has gone" "$? $(cat "$work/late")" \
	    '125 workbox rootfs default: there is no root file system piped'
	is "is none" "$(readlink "$S/rootfs/default") $(have)" \
	    'minimal by-gzip by-zstd default minimal plain '
	ok "imported again" rootfs import piped "$work/more.tar"
	late flock:delay_enter=2000000:when=2 default plain
	await begun
	rootfs list >/dev/null
	is "whose lock is not taken yet is swept" "$(begun 2>/dev/null)" ''
	wait $importer
	is "who makes it makes another" \
	    "$? $(cat "$work/late") $(readlink "$S/rootfs/default")" '0  plain'
	rootfs default minimal
	is "and leaves nothing" "$(have)" \
	    'by-gzip by-zstd default minimal piped plain '
else
	skip "calls that come late: no strace"
fi
mkdir -p "$S/sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV"
echo nonsense >"$S/sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV/spec"
no "rm where a specification cannot be read" 125 rootfs rm piped
like "says which" "$out" \
    '01ARZ3NDEKTSV4RRFFQ69G5FAV/spec: expected the specification of a sandbox$'
rm -r "$S/sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV"
for n in piped plain by-gzip by-zstd; do rootfs rm $n; done
is "none of them is left" "$(have)" 'default minimal '
cat >"$work/bare.py" <<'E'
import io, sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as t:
    i = tarfile.TarInfo("etc/motd"); i.size = 2; t.addfile(i, io.BytesIO(b"hi"))
E
/usr/bin/python3 "$work/bare.py" >"$work/bare.tar"
ok "one without a shell" rootfs import bare "$work/bare.tar"
like "is told" "$out" 'there is no /bin/sh in it'
rootfs rm bare

# ---- A46, by another's writer: refused whole, in one line
cat >"$work/hostile.py" <<'E'
import io, os, sys, tarfile, zipfile
kind, out = sys.argv[1], sys.argv[2]
def add(t, name, type=tarfile.REGTYPE, data=b"x", **k):
    i = tarfile.TarInfo(name); i.type = type; i.size = len(data) if type == tarfile.REGTYPE else 0
    for a, v in k.items(): setattr(i, a, v)
    t.addfile(i, io.BytesIO(data) if type == tarfile.REGTYPE else None)
S, H, D = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
canary = os.environ["CANARY"]
if kind == "zip":
    with zipfile.ZipFile(out, "w") as z: z.writestr("../x", "x")
    sys.exit()
if kind == "many":
    with tarfile.open(out, "w:gz", compresslevel=1) as t:
        for n in range(5000): add(t, "d/%d" % n, data=b"")
    sys.exit()
if kind == "bomb":
    with tarfile.open(out, "w:gz") as t:
        i = tarfile.TarInfo("zeros"); i.size = 1 << 26
        t.addfile(i, open("/dev/zero", "rb"))
    sys.exit()
with tarfile.open(out, "w") as t:
    add(t, "first", data=b"first")
    if kind == "absolute": add(t, canary)
    if kind == "dots": add(t, "../../../canary")
    if kind == "link": add(t, "l", S, linkname=os.path.dirname(canary)); add(t, "l/canary")
    if kind == "link-up": add(t, "l", S, linkname="../../.."); add(t, "l/canary")
    if kind == "link-file": add(t, "l", S, linkname=canary); add(t, "l")
    if kind == "link-hard": add(t, "l", S, linkname=canary); add(t, "h", H, linkname="l"); add(t, "h")
    if kind == "hard": add(t, "h", H, linkname=canary)
    if kind == "hard-up": add(t, "h", H, linkname="../../../canary")
    if kind == "hard-link": add(t, "l", S, linkname=os.path.dirname(canary)); add(t, "h", H, linkname="l/canary")
    if kind == "replaced": add(t, "d", D); add(t, "d", S, linkname=os.path.dirname(canary)); add(t, "d/canary")
    if kind == "twice": add(t, "first")
    if kind == "case": add(t, "first/x")
    if kind == "uid": add(t, "u", uid=65536)
    if kind == "gid": add(t, "u", gid=70000)
    if kind == "size": add(t, "s", pax_headers={"size": str(1 << 40)})
    if kind == "dev": add(t, "dev", S, linkname="/")
E
export CANARY="$work/canary"
echo canary >"$CANARY"
for k in absolute dots link link-up link-file link-hard hard hard-up hard-link \
    replaced twice case uid gid size dev zip; do
	/usr/bin/python3 "$work/hostile.py" $k "$work/hostile.tar"
	no "A46 $k" 125 rootfs import x "$work/hostile.tar"
	like "A46 $k is told in one line" "$(echo "$out" | wc -l) $out" \
	    "^1 workbox rootfs import: $work/hostile.tar: ."
	is "A46 $k leaves nothing" "$(have) $(cat "$CANARY")" \
	    'default minimal  canary'
done
/usr/bin/python3 "$work/hostile.py" bomb "$work/hostile.tar"
no "A46 a bomb of zeros" 125 rootfs import x "$work/hostile.tar" --max-size 10M
like "is told" "$out" 'more than 10485760 bytes \(--max-size\)$'
/usr/bin/python3 "$work/hostile.py" many "$work/hostile.tar"
no "A46 more entries than may be" 125 rootfs import x "$work/hostile.tar" \
    --max-entries 5000
like "is told, with the directory that they are in" "$out" \
    'has more than 5000 entries \(--max-entries\)$'
is "and nothing is left" "$(have)" 'default minimal '
ok "as many as may be" rootfs import x "$work/hostile.tar" --max-entries 5001
rootfs rm x

# ---- names are bytes, in whatever locale: one letter in both of its forms
cat >"$work/names.py" <<'E'
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=getattr(tarfile, sys.argv[1])) as t:
    for n in ("nfc-\u00e4", "nfd-a\u0308", "both-\u00e4", "both-a\u0308"): t.addfile(tarfile.TarInfo(n))
E
for f in PAX_FORMAT GNU_FORMAT; do
	PYTHONUTF8=1 /usr/bin/python3 "$work/names.py" $f >"$work/names.tar"
	for l in C.UTF-8 C; do
		ok "names, $f, $l" env LC_ALL=$l "$WB_BIN" rootfs import names \
		    "$work/names.tar" --config "$work/workbox.conf"
		is "are what they were, $f, $l" \
		    "$(cd "$S/rootfs/names" && printf '%s ' *)" \
		    "$(printf \
		    'both-a\314\210 both-\303\244 nfc-\303\244 nfd-a\314\210 ')"
		rootfs rm names
	done
done

# ---- interrupted; the fence, read off the process while it waits
head -c 3000000 /dev/urandom >"$work/random"
tar -C "$work" -cf "$work/random.tar" random
mkfifo "$work/slow"
# starts an import that has got half of its archive, and waits for more
start() {
	"$WB_BIN" rootfs import slow "$work/slow" \
	    --config "$work/workbox.conf" >"$work/slow.log" 2>&1 &
	importer=$!
	exec 7>"$work/slow"
	head -c 1500000 "$work/random.tar" >&7
	await grew
	room=$(pgrep -P $importer)
}
grew() {
	[ "$(stat -c %s "$S"/rootfs/.build-*/root/random 2>/dev/null ||
	    echo 0)" -gt 1000000 ]
}
gone() { ! kill -0 "$room" 2>/dev/null; }
start
like "the reader has four capabilities" "$(grep CapEff "/proc/$room/status")" \
    '000000000000001b$'
like "and can get no more" "$(grep CapBnd "/proc/$room/status")" \
    '000000000000001b$'
like "and no new privileges" "$(grep NoNewPrivs "/proc/$room/status")" '1$'
like "a filter" "$(grep '^Seccomp:' "/proc/$room/status")" '2$'
is "an empty root" "$(ls -A "/proc/$room/root/")" ''
is "that it cannot write" \
    "$(awk '$5 == "/" {print substr($6, 1, 2)}' "/proc/$room/mountinfo")" ro
like "no process but itself" "$(grep NSpid "/proc/$room/status")" \
    '^NSpid:[[:space:]]+[0-9]+[[:space:]]+1$'
is "no terminal" "$(readlink "/proc/$room/fd/2")" /dev/null
is "no network" "$(readlink "/proc/$room/ns/net" |
    grep -c "$(readlink /proc/self/ns/net | tr -dc 0-9)")" 0
is "two pipes" \
    "$(readlink "/proc/$room/fd/0" "/proc/$room/fd/1" | grep -c '^pipe:')" 2
is "and whatever else is open lies in the tree" "$(for f in $(ls "/proc/$room/fd" | grep -v '^[012]$'); do
	sed -n 's/^mnt_id:\t//p' "/proc/$room/fdinfo/$f"; done | sort -u | wc -l)" 1
is "the tree's has nothing above it" "$(readlink "/proc/$room/fd/3")" /
for sig in 2 15 1; do
	[ $sig = 2 ] || start
	kill -$sig $importer
	wait $importer
	is "signal $sig: its code" $? $((128 + sig))
	exec 7>&-
	like "is told" "$(cat "$work/slow.log")" \
	    'rootfs import: interrupted, nothing is left$'
	gone && pass "the reader is gone" || fail "the reader runs on"
	is "and nothing is left" "$(have)" 'default minimal '
done
start
kill -KILL $importer
wait $importer 2>/dev/null
await gone && pass "SIGKILL: the reader goes, too" || fail "the reader runs on"
exec 7>&-
like "something is left" "$(have)" '^\.build-[0-9a-f]* default minimal $'
rootfs list >/dev/null
is "until the next command" "$(have)" 'default minimal '
start
held=$(have)
for c in list 'inspect minimal' 'default minimal'; do rootfs $c >/dev/null; done
is "what somebody holds is left alone" "$(have)" "$held"
kill -KILL "$room"
wait $importer
is "the reader is killed: the code" $? 125
exec 7>&-
like "is told" "$(cat "$work/slow.log")" 'its reader was ended by SIGKILL$'
is "and nothing is left" "$(have)" 'default minimal '
start
kill -KILL $importer
wait $importer 2>/dev/null
exec 7>&-
await gone
box_stop
box_serve
is "until the server starts" "$(have)" 'default minimal '
head -c 1500000 "$work/random.tar" >"$work/cut.tar"
no "half a file" 125 rootfs import x "$work/cut.tar"
like "is told" "$out" 'cut.tar: "random" cannot be read: '
is "and leaves nothing" "$(have)" 'default minimal '

if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	timeout -k 5 60 strace -qq -o /dev/null -e trace=unlinkat -e \
	    inject=unlinkat:delay_enter=3000000:when=1 "$WB_BIN" rootfs import \
	    x "$work/cut.tar" --config "$work/workbox.conf" >"$work/slow.log" \
	    2>&1 </dev/null
	is "a removal that takes long: the code" $? 125
	like "is told, once" \
	    "$(grep -c 'removing what was unpacked' "$work/slow.log")" '^1$'
	is "and leaves nothing" "$(have)" 'default minimal '
else
	skip "a removal that takes long: no strace"
fi
head -c 1000000 /dev/zero >"$work/zeros"
no "what is no archive" 125 rootfs import x "$work/zeros"
like "is told so" "$out" 'there is nothing in it: no archive, or an empty one'

# ---- a Debian that waits for its mirror
cat >"$work/mute.py" <<'E'
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(64)
print(s.getsockname()[1], flush=True)
kept = []
while True: kept.append(s.accept())
E
build() {
	"$WB_BIN" rootfs build debian --name slow --suite bookworm --mirror \
	    "http://127.0.0.1:$mute/" --config "$work/workbox.conf" \
	    >"$work/slow.log" 2>&1 </dev/null &
	importer=$!
	await fetches
	room=$(pgrep -P $importer)
}
# apt's own, in the pid namespace of the build
fetching() {
	for p in $(descendants $importer); do readlink "/proc/$p/exe"; done |
	    grep apt/methods/http
}
fetches() { [ -n "$(fetching)" ]; }
if command -v mmdebstrap >/dev/null && command -v apt-get >/dev/null; then
	mkfifo "$work/muting"
	/usr/bin/python3 "$work/mute.py" >"$work/muting" &
	mute_pid=$!
	read -r mute <"$work/muting"
	build
	fetches && pass "a Debian is fetched" ||
	    fail "no fetch" "$(cat "$work/slow.log")"
	kill -TERM $importer
	wait $importer
	is "SIGTERM: its code" $? 143
	is "is told" "$(cat "$work/slow.log")" \
	    'workbox rootfs build: interrupted, nothing is left'
	gone && pass "all of it is gone" || fail "it runs on"
	is "and nothing is left" "$(have)" 'default minimal '
	build
	kill -KILL $importer
	wait $importer 2>/dev/null
	await gone && pass "SIGKILL: all of it goes, too" || fail "it runs on"
	swept() { rootfs list >/dev/null; [ "$(have)" = 'default minimal ' ]; }
	await swept && pass "the next command leaves nothing" ||
	    fail "left" "$(have)"
	is "nor a mount" "$(grep -c "$work" /proc/mounts)" 0
	kill "$mute_pid"
	wait "$mute_pid" 2>/dev/null
	mute_pid=
else
	skip "a Debian that is interrupted: no mmdebstrap or apt-get"
fi

# ---- a full disk
mkdir "$work/small"
if mount -t tmpfs -o size=4m,mode=755 wb-canary "$work/small"; then
	sed "s|^state-dir = .*|state-dir = \"$work/small\"|; s|^disk-floor = .*|disk-floor = 1|" "$work/workbox.conf" >"$work/small.conf"
	tar -C "$work" -cf "$work/two.tar" random more.tar
	no "a disk that gets full" 125 "$WB_BIN" rootfs import x \
	    "$work/two.tar" --config "$work/small.conf"
	like "is told" "$out" 'No space left on device$'
	is "and has nothing on it" "$(ls -A "$work/small/rootfs")" ''
	umount "$work/small"
else
	skip "a full disk: no tmpfs"
fi
sed "s|^disk-floor = .*|disk-floor = 4611686018427387904|" \
    "$work/workbox.conf" >"$work/floor.conf"
head -c 70000000 /dev/zero >"$work/zeros"
tar -C "$work" -czf "$work/zeros.tgz" zeros
no "what would leave too little of the disk" 125 "$WB_BIN" rootfs import x \
    "$work/zeros.tgz" --config "$work/floor.conf"
like "is told" "$out" \
    'would leave less than 4398046511104 MiB of the disk free$'
is "and nothing is left" "$(have)" 'default minimal '

# ---- a bar on a terminal, and there alone
rootfs import bar "$work/more.tar" 2>"$work/err" >/dev/null
is "no bar without a terminal" "$(grep -c '%' "$work/err")" 0
rootfs rm bar
if script -qec true /dev/null >/dev/null 2>&1; then
	script -qec "'$WB_BIN' rootfs import bar '$work/more.tar' --config '$work/workbox.conf'" /dev/null </dev/null >"$work/tty" 2>&1
	like "a bar on a terminal" "$(tr '\r' '\n' <"$work/tty")" \
	    '^\[#* *\] +[0-9]+ %  [0-9]+ of [0-9]+ MiB'
	rootfs rm bar
else
	skip "a bar on a terminal: no script(1)"
fi
box_done
