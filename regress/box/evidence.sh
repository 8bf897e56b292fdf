#!/bin/sh
# evidence.sh: out of every state.  Evidence is saved of sandboxes in whatever
# state, frozen ones too; what may be released goes on after its proof was
# taken again, what never may is refused by its name; and whatever the state,
# `rm' ends it.
. "$(dirname "$0")/lib.sh"
box_serve
api() {	# method path [body]
	curl -s -o "$work/body" -w '%{http_code}' -X "$1" \
	    -H "Authorization: Bearer $WB_TOKEN" \
	    -H 'Content-Type: application/json' ${3+-d "$3"} "$WB_URL/v1$2"
}
events() { "$WB_BIN" events export; }
in_state() { [ "$(state "$1")" = "$2" ]; }
health() { wb inspect "$1" | field health; }
healthy() { [ "$(health "$1")" = HEALTHY ]; }
suspect() { [ "$(health "$1")" = SUSPECT ]; }
# a file of the box's control group, in whichever hierarchy has it
knob() {	# box file...
	b=$1; shift
	for k in "$@"; do
		for f in "/sys/fs/cgroup/$WB_CGROUP/$b/box/$k" \
		    /sys/fs/cgroup/*/"$WB_CGROUP/$b/box/$k"; do
			[ ! -e "$f" ] || { echo "$f"; return; }
		done
	done
}
frozen() {	# id
	f=$(knob "$1" cgroup.events)
	[ -z "$f" ] || { grep -q '^frozen 1' "$f"; return; }
	grep -q FROZEN "$(knob "$1" freezer.state)"
}
# the set goes and comes back: every box is attached anew, its proof compared
again() {
	kill -KILL "$(box_pid apid)"
	gone() { ! box_pid apid >/dev/null || answers; }
	await gone
	await answers
}
# quarantined by a limit that somebody has changed
by_limit() {	# name
	lid=$(wb inspect "$1" | field id)
	f=$(knob "$lid" pids.max)
	old=$(cat "$f")
	echo $((old + 100)) >"$f"
	again
	await in_state "$1" QUARANTINED
}

# ---- a box that has worked, and is quarantined by a limit ---------------------
ok "a box" wb create --name one --network none --label who=cares
id=$(wb inspect one | field id)
wb exec one -- sh -c 'echo new >/root/new; rm /etc/hostname /etc/passwd-;
    echo more >>/etc/profile; mkdir /root/d; mkfifo /root/d/p; ln -s /etc /root/l
    printf x >"/root/$(printf "\\377")"; chmod 0 /root/new; chown 1000:1000 /' >/dev/null 2>&1
sid=$(wb run one -- sleep 3600 2>/dev/null | field sessionId)
by_limit one
is "a limit that was changed quarantines it" \
    "$(wb inspect one | field state),$(wb inspect one | field stateReason)" \
    "QUARANTINED,pids"
frozen "$id" && pass "it is frozen" || fail "it is not frozen"

cd "$work" || exit 1
ok "evidence of it" wb evidence one --config "$work/workbox.conf"
frozen "$id" && pass "and it is frozen still" || fail "it was let go"
is "its file is the owner's alone" "$(stat -c %a "evidence-$id.tar")" 600
no "which is not overwritten" 125 wb evidence one --config "$work/workbox.conf"
mkdir un && tar -xf "evidence-$id.tar" -C un
e=un/evidence-$id
for f in sandbox.json proof.json kernel.json launch.log records.ndjson \
    chain.txt changes.ndjson manifest.json; do
	[ -f "$e/$f" ] && pass "it has $f" || fail "it has no $f"
done
is "nothing is missing" "$(jq -c .missing "$e/manifest.json")" "{}"
bad=$(jq -r '.members | to_entries[] | .value.sha256 + "  " + .key' \
    "$e/manifest.json" | (cd "$e" && sha256sum -c --quiet 2>&1))
is "each member is what the manifest says" "$bad" ""
is "the proof names the field" "$(jq -r .field "$e/proof.json")" pids
is "the kernel still says so" "$(jq -r .verdict "$e/kernel.json")" pids
is "and that it is frozen" "$(jq -r .use.frozen "$e/kernel.json")" true
like "with its mounts" "$(jq -r .facts.mounts "$e/kernel.json")" ' / .*overlay'
change() { jq -r "select(.path == \"$1\") | .change + \" \" + (.type // \"\")" "$e/changes.ndjson"; }
is "what it added" "$(change /root/new)" "added file"
is "  a directory" "$(change /root/d)" "added directory"
is "  a fifo, unread" "$(change /root/d/p)" "added fifo"
is "  a link, not followed" "$(change /root/l)" "added link"
is "what it changed" "$(change /etc/profile)" "changed file"
like "what it deleted" "$(grep -c '"deleted"' "$e/changes.ndjson")" '^[1-9]'
like "a name that is no UTF-8" "$(cat "$e/changes.ndjson")" \
    '"pathHex":"2f726f6f742fff"'
# each record of the box is in the chain, and so is the one before
chain=$(/usr/bin/python3 - "$e" <<'!'
import hashlib, json, sys
d = sys.argv[1]
h = dict(l.split() for l in open(d + "/chain.txt"))
n = 0
for l in open(d + "/records.ndjson", "rb").read().splitlines():
    r = json.loads(l); n += 1
    assert h[str(r["seq"])] == hashlib.sha256(b"\0" + l).hexdigest()
    assert n == 1 or h[str(r["seq"] - 1)] == r["prev"]
print("whole" if n > 5 else n)
!
)
is "its records are in the chain" "$chain" whole

# ---- release ------------------------------------------------------------------
no "release of what is well is refused" 125 sh -c \
    "'$WB_BIN' sandbox create --name two --network none >/dev/null &&
    '$WB_BIN' sandbox release two"
ok "release of it" wb release one --reason 'more processes were needed'
is "it is READY, and says what was released" \
    "$(wb inspect one | field state),$(wb inspect one | field stateReason)" \
    "READY,released: pids"
is "it works" "$(wb exec one -- sh -c 'chmod 600 /root/new; cat /root/new')" new
is "its session went on" "$(api GET "/sandboxes/one/sessions/$sid"; field state <"$work/body")" \
    200running
rec=$(events | jq -c "select(.type == \"sandbox.released\") |
    [.sandboxId, .outcome, .data.from, .data.fields, .data.why]")
is "it is on the record" "$rec" \
    "[\"$id\",\"ok\",\"QUARANTINED\",\"pids\",\"more processes were needed\"]"
is "by whom" "$(events | jq -r 'select(.type == "sandbox.released") | .actor')" \
    "$(events | jq -r 'select(.type == "sandbox.created") | .actor' | head -n 1)"
# behind a trusted proxy it is the name of a person
is "which the log does not tell" \
    "$(sed -n "s/.*box $id: released/released/p" "$work/serve.log")" \
    "released: pids"
is "its proof says so, too" "$(wb proof one --format json |
    jq -r '[.verdict, .released] | join(",")')" verified,pids
await healthy one && pass "it is HEALTHY with that" || fail "$(wb inspect one)"
again
await healthy one && is "and after a restart" "$(state one)" READY ||
    fail "after a restart" "$(wb inspect one)"
# another limit was not released
f=$(knob "$id" memory.max memory.limit_in_bytes)
now=$(cat "$f"); echo $((now - 1048576)) >"$f"
again
await in_state one QUARANTINED
is "another limit is another matter" "$(wb inspect one | field stateReason)" \
    memory_bytes
echo "$now" >"$f"

# ---- what never ---------------------------------------------------------------
# a mount in it that nobody asked for, made by the host's root
mount_in() {	# id
	p=$(cat "$(knob "$1" runner/cgroup.procs)" | head -n 1)
	nsenter -t "$p" -m mount -t tmpfs none /root
}
again_now=$(state one)
is "before" "$again_now" QUARANTINED
ok "a mount is made in it while it is quarantined by a limit" mount_in "$id"
no "release looks again, and refuses by the field" 125 wb release one
like "  named" "$out" 'mounts can never be released: it has a mount .*never-released'
frozen "$id" && pass "it is frozen still" || fail "it was let go"
is "and nothing says that it was released" "$(events | grep -c "$id.*sandbox.released\|sandbox.released.*$id")" 1
ok "a mount in another one, that is READY" mount_in "$(wb inspect two | field id)"
again
await in_state two QUARANTINED
is "it is quarantined by that" "$(wb inspect two | field stateReason)" mounts
is "never released" "$(api POST /sandboxes/two/release '{}'; jq -r '.code + " " + .field' <"$work/body")" \
    "409never-released mounts"
is "words for the record are bounded" "$(api POST /sandboxes/two/release \
    "{\"reason\": \"$(printf %0256d 0)\"}"; jq -r '.code + " " + .field' <"$work/body")" \
    "400bad-request reason"
ok "rm of one that is quarantined" wb rm one --grace 0
ok "rm of one that never may be released" wb rm two --grace 0

table() { sed -n "s/^$1(\"\\([^\"]*\\)\".*/\\1/p" "$top/common/release.def"; }
like "the table has what may be" "$(table MAY | wc -l)" '^[1-9]'
like "and what never may" "$(table NEVER | wc -l)" '^[1-9]'
for n in uid_map cap_eff cap_bnd filter ns_user ns_net mounts nonce protocol; do
	table NEVER | grep -qx "$n" || fail "$n may be released"
done
# every field of the proof is in it
fields=$(sed -n '/^#define F_FACTS/,/^$/s/.*F_[A-Z0-9]*(m, \([a-z_]*\),.*/\1/p' \
    "$top/common/proto.def")
like "the proof has fields" "$(echo "$fields" | grep -c .)" '^[1-9]'
for n in $fields; do
	{ table NEVER; table MAY; } | grep -qx "$n" ||
	    fail "the field $n is not in release.def"
done
page=$top/apid/workbox-api.7
told() { sed -n "/^\.Ss Release/,/^\.El/s/^\.It Li \([a-z_-]*\) Ta $1 .*/\1/p" "$page"; }
is "workbox-api.7 has the same that may be" "$(told may)" "$(table MAY)"
is "and the same that never may" "$(told never)" "$(table NEVER)"
box_done
