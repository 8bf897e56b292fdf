#!/bin/sh
# quickstart.sh: from a fresh checkout to a command that ran in a box, and
# back to an empty host.  --keep leaves the server up.
#
# Builds in build/, installs under build/inst unless PREFIX is set; all state
# is in build/quickstart.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/steps.sh"

keep=
case "$# ${1-}" in
'1 --keep')	keep=1 ;;
'0 ')	;;
*)	die "usage: quickstart.sh [--keep]" ;;
esac

need_root
prefix=${PREFIX:-$top/build/inst}
work=$top/build/quickstart
state=$work/state
# Neither the cgroup nor the uids of a server that is installed for good, nor,
# as far as 256 ranges of 64 boxes go, of the quickstart of another checkout.
mine=$(printf %s "$top" | cksum | cut -d ' ' -f 1)
cgroup=workbox-quickstart-$mine
uids=$((536870912 + mine % 256 * 4194304))
wb=$prefix/bin/workbox
pkg_new= users_new= serve_pid=
mkdir -p "$work"
if [ -e "$state/lock" ] && ! flock -n "$state/lock" true 2>/dev/null; then
	die "the server of an earlier --keep is still up: end it first (kill $(cat "$state/lock"))"
fi
# Their state would go at the end, and nobody could end them any more.
if [ -z "$keep" ] && host_facts "$prefix" "$state" "$cgroup" "$uids" | grep -q '^process'; then
	die "sandboxes of an earlier --keep run on: start its server (sh etc/quickstart.sh --keep) and remove them (workbox sandbox rm NAME), or go on with them"
fi

cleanup() {
	[ -n "$serve_pid" ] || return 0
	"$wb" sandbox rm hello >/dev/null 2>&1
	stop_serve >/dev/null 2>&1
}
trap 'cleanup; exit 1' INT TERM HUP

# A command as one would type it.
shown() {
	printf '\n$'
	for a in "$@"; do
		case $a in
		*[!A-Za-z0-9/._:=,@+-]*)	printf " '%s'" "$a" ;;
		*)				printf ' %s' "$a" ;;
		esac
	done
	printf '\n'
}

step() { shown "$@"; "$@" || { r=$?; [ -f "$work/serve.log" ] && tail -n 20 "$work/serve.log" >&2; cleanup; die "failed with $r: $*"; }; }

step_packages build run
step_build "$top/build" "$prefix" --disable-tests
step_users

host_facts "$prefix" "$state" "$cgroup" "$uids" >"$work/before"
mkdir -p "$state"
"$wb" rootfs list --state "$state" 2>/dev/null | grep -q '^minimal' ||
	step "$wb" rootfs build minimal --state "$state"
step "$wb" runtime install --state "$state"

port=$(free_port 8790)
cat >"$work/workbox.conf" <<END
state-dir = "$state"
cgroup = "$cgroup"
socket = "$state/run/api.sock"
listen = {"127.0.0.1:$port"}
net-uid-base = $uids
uid-base = $((uids + 65536))
max-boxes = 60
END
step "$wb" doctor --config "$work/workbox.conf"
WORKBOX_TOKEN=$(new_token)
WORKBOX_SERVER=http://127.0.0.1:$port
XDG_CONFIG_HOME=$work		# nobody's client file
export WORKBOX_TOKEN WORKBOX_SERVER XDG_CONFIG_HOME
: >"$work/serve.log"
printf '\n$ %s\n' "workbox serve --config $work/workbox.conf &"
start_serve "$wb" --config "$work/workbox.conf"

if [ -n "$keep" ]; then
	say
	say "The server is up (pid $serve_pid; log in $work/serve.log)."
	say "  export PATH=$prefix/bin:\$PATH"
	say "  export WORKBOX_SERVER=$WORKBOX_SERVER"
	say "  export WORKBOX_TOKEN=$WORKBOX_TOKEN"
	say "  workbox sandbox create --name demo"
	say "To end it: workbox sandbox rm NAME, for each of workbox sandbox list, which otherwise run on; kill $serve_pid; rm -r $work"
	exit 0
fi

step "$wb" sandbox create --name hello
step "$wb" sandbox exec hello -- sh -c 'wb status; wb run -- echo "hello from $(hostname), uid $(id -u) here"'
printf '\n$ %s\n' "workbox sandbox run hello --name count -- sh -c 'seq 100000'"
json=$("$wb" sandbox run hello --name count -- sh -c 'seq 100000') || { cleanup; die "run failed"; }
say "$json"
sid=$(printf '%s' "$json" | sed -n 's/.*"sessionId": *"\([0-9A-Z]*\)".*/\1/p')
step "$wb" sandbox wait hello "$sid"
printf '\n$ %s\n' "workbox sandbox logs hello $sid | tail -n 1"
last=$("$wb" sandbox logs hello "$sid" | tail -n 1)
say "$last"
[ "$last" = 100000 ] || { cleanup; die "the last line of the output is not 100000"; }
step "$wb" sandbox list
step "$wb" sandbox rm hello
# The tree is removed behind the answer; a stop before that leaves it to the
# next start.
i=0
while [ -n "$(ls -A "$state/sandboxes")" ] && [ $((i += 1)) -le 100 ]; do sleep 0.1; done
printf '\n$ %s\n' "kill $serve_pid"
stop_serve || { tail -n 20 "$work/serve.log" >&2; die "serve did not end cleanly"; }
serve_pid=

# The parent cgroup is the server's own: it goes with the last box.
# Only what is new counts: what an earlier run left may go meanwhile.
host_facts "$prefix" "$state" "$cgroup" "$uids" >"$work/after"
say
if grep -vxF -f "$work/before" "$work/after" >"$work/left"; then
	cat "$work/left" >&2
	die "the host is not as it was before (see above)"
fi
rm -rf "$state"
say "Left: packages ${pkg_new:-(none new)}; users ${users_new:-(none new)}; files below $top/build, and what autoreconf wrote beside the sources. No process, mount, cgroup, namespace, rule or other file."
