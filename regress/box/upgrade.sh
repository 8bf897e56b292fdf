#!/bin/sh
# upgrade.sh: sandboxes outlive the server that made them.  One of a release
# two versions of the protocol ago, three of the one after, whose sessions
# write all the time, and then this one: what is one version older is taken up
# whole, what is two is told by name and can be removed; a database that is
# newer is refused and left as it is.  The older programs are this tree's,
# built to speak as they did (common/runner_back.c).
. "$(dirname "$0")/lib.sh"
build=${WB_BUILD:-$top/build/test}
[ -d "$build/regress" ] || { echo "skip: no build tree (WB_BUILD)"; exit 77; }
for t in "runner runner-1 runner-2" "wb wb-1 wb-2" "apid apid-1 apid-2" \
    "stored stored-next"; do
	d=${t%% *}
	# shellcheck disable=SC2086	# a list
	make -s -C "$build/$d" ${t#* } >"$work/make.log" 2>&1 || { cat \
	    "$work/make.log"; echo "not ok - older $d does not build"; exit 1; }
done
# The releases: all of one's programs.
release() {	# name suffix
	cp -r "$WB_PREFIX/libexec/workbox" "$work/$1"
	for d in runner wb apid; do
		cp "$build/$d/$d-$2" "$work/$1/$d"
	done
}
release aged 2
release older 1
cp -r "$WB_PREFIX/libexec/workbox" "$work/now"
cp -r "$WB_PREFIX/libexec/workbox" "$work/next"
cp "$build/stored/stored-next" "$work/next/stored"

use() {		# release: its programs from the next start on
	WB_CONF="libexec-dir = \"$work/$1\""
	box_conf
}
runtime() { ok "$1's runtime is installed" "$WB_BIN" runtime install \
    --config "$work/workbox.conf"; }
upgrade() {	# release
	stop_serve
	use "$1"
	start_serve "$WB_BIN" --config "$work/workbox.conf"
}
health() { wb inspect "$1" | tr -d ' \n' |
    sed 's/.*"health":"\([A-Z]*\)","healthReason":"\{0,1\}\([a-z-]*\).*/\1 \2/'; }
# What runs in it, as the host saw and hashed it at its start.
ran() { wb proof "$1" --format json | tr -d ' \n' |
    sed 's/.*"field":"runtime","asked":null,"host":"\([0-9a-f]*\)".*/\1/'; }
hash_of() { sha256sum <"$work/$1/runner" | cut -d' ' -f1; }
reconcile() { curl -sS -X POST -H "Authorization: Bearer $WB_TOKEN" \
    "$WB_URL/v1/reconcile"; }
json() { "$WB_BIN" version --format json | tr -d ' \n'; }

box_state
port=$(free_port "${WB_PORT:-18790}")
use aged
runtime aged
WB_PORT=$port box_serve
ok "two releases ago: create" wb create --name aged --network none
like "it speaks as then" "$(json)" \
    '"name":"aged".*"protocol":1,"sessionsMax":null'
ok "with a session" wb run aged --name s -- sh -c \
    'while [ ! -e /tmp/stop ]; do sleep 0.1; done'

upgrade older
is "one release ago: what was is healthy" "$(health aged)" "HEALTHY null"
is "and takes commands" "$(wb exec aged -- echo alive 2>&1)" alive
runtime older
upgrade older		# what was installed is used from a start on
for b in a b c; do
	ok "create $b" wb create --name $b --network none
	ok "whose session writes" wb run $b --name s -- sh -c \
	    'i=0; while [ ! -e /tmp/stop ]; do echo line $i; i=$((i + 1)); usleep 2000; done; echo end'
done
is "the session in aged runs on" "$(wb ps aged | grep -c running)" 1

# The commonest upgrade: first the files, then a restart.
use now
runtime now
like "other files are no fault of what runs" "$(reconcile | tr -d ' ')" \
    '"name":"a","verdict":"attached".*"b","verdict":"attached".*"c","verdict":"attached"'
upgrade now
for b in a b c; do
	is "$b is healthy" "$(health $b)" "HEALTHY null"
	is "$b takes commands" "$(wb exec $b -- echo alive 2>&1)" alive
	like "$b's own wb works" "$(wb exec $b -- wb ps 2>&1)" running
	is "$b is what was asked then" "$(ran $b)" "$(hash_of older)"
done
ok "create one now" wb create --name new --network none
is "it runs what is installed now" "$(ran new)" "$(hash_of now)"

version=$("$WB_BIN" version 2>"$work/said")
like "version: this program" "$version" '^workbox [0-9]'
like "the server" "$version" '^server [0-9].* at http'
like "the protocol" "$version" '^protocol 3, and 2 of'
v='[0-9][^ ]*'
like "what runs in an older one" "$version" "^a +[0-9A-Z]+ +HEALTHY +$v +2\$"
like "what runs in one made now" "$version" "^new +[0-9A-Z]+ +HEALTHY +$v +3\$"
like "what is two versions old" "$version" '^aged +[0-9A-Z]+ +SUSPECT +- +-$'
like "and what to do with it" "$(cat "$work/said")" 'workbox sandbox rm'
like "the same as JSON" "$(json)" \
    '"client":{"version":".*"server":{.*"protocol":3.*"name":"new".*"protocol":3,"sessionsMax":[1-9]'

is "two versions are too many, by name" "$(health aged)" \
    "SUSPECT runner-version"
looked() { curl -sS -H "Authorization: Bearer $WB_TOKEN" "$WB_URL/metrics" |
    grep -q '^workbox_sandbox_memory_bytes.*name="aged"'; }
await looked && pass "its health is looked at like any other's" ||
    fail "nobody looks at it"
is "and says the same" "$(health aged)" "SUSPECT runner-version"
like "what is asked of it says what to do" \
    "$(wb exec aged -- echo no 2>&1)" 'Remove the sandbox.*make it anew'
like "a look at it says the same" "$(reconcile | tr -d ' ')" \
    '"name":"aged","verdict":"suspect","reason":"runner-version"'
like "and so does the log" "$(cat "$work/serve.log")" \
    'attach: the runner .* not 3 or 2: remove it, or serve once more'
id=$(wb inspect aged | field id)
p=$(find /sys/fs/cgroup -path "*/$WB_CGROUP/$id/box/sessions/*" \
    -name cgroup.procs -exec cat {} + | sed -n 1p)
like "what ran in it runs" "$(cat "/proc/$p/comm")" 'sh|sleep|busybox'
upgrade older
is "the release before takes it up again" "$(health aged)" "HEALTHY null"
is "and reaches it" "$(wb exec aged -- echo alive 2>&1)" alive
is "and what it does not know" "$(health new)" "SUSPECT runner-version"
upgrade now
is "SUSPECT again" "$(health aged)" "SUSPECT runner-version"
ok "it is removed" wb rm aged
gone() { ! [ -e "$WB_STATE/sandboxes/$id" ]; }
await gone && pass "whole" || fail "its files are there"
[ -e "/proc/$p/comm" ] && fail "a process of it is left" ||
    pass "and its processes"

for b in a b c; do
	ok "stop the session in $b" wb exec $b -- touch /tmp/stop
	ok "it ends as it should" wb wait $b s
	wb logs $b s >"$work/got"
	n=$(($(wc -l <"$work/got") - 1))
	{ seq 0 $((n - 1)) | sed 's/^/line /'; echo end; } >"$work/want"
	[ "$n" -gt 100 ] && cmp -s "$work/got" "$work/want" &&
	    pass "not a byte of it is lost ($n lines)" ||
	    fail "output of $b differs" "$(diff "$work/got" "$work/want" |
	    head -n 5)"
done

# A server that is newer than the runtime that is installed.
use older
runtime older
upgrade now
ok "what is installed may be one version older" wb create --name late \
    --network none
is "and takes commands" "$(wb exec late -- echo alive 2>&1)" alive
use aged
runtime aged
upgrade now
like "two versions are refused, and what to do is told" \
    "$(wb create --name no --network none 2>&1)" 'workbox runtime install'
is "nothing is left of it" "$(wb list | grep -c ' no ')" 0
for b in a b c new late; do
	ok "remove $b" wb rm $b --grace 0
done

# A database of a release to come.
box_stop
mv "$WB_STATE/db" "$work/db"
upgrade next
box_stop
db=$WB_STATE/db
sum() { sha256sum <"$db/data.mdb"; }
was=$(sum)
use now
: >"$work/serve.log"
timeout 60 "$WB_BIN" serve --config "$work/workbox.conf" </dev/null \
    >>"$work/serve.log" 2>&1
r=$?
[ $r != 0 ] && [ $r != 124 ] && pass "a newer database is refused" ||
    fail "serve ended with $r" "$(cat "$work/serve.log")"
like "by name, and with what to do" "$(cat "$work/serve.log")" \
    'database is newer than this release \(schema 3, known is 2\): refused.*serve with the release that wrote it'
is "it is as it was" "$(sum)" "$was"
use next
start_serve "$WB_BIN" --config "$work/workbox.conf"
is "and serves the release that wrote it" "$(wb list | wc -l)" 1
box_done
