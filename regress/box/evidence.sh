#!/bin/sh
# evidence.sh: out of every state.  Evidence is saved of sandboxes in whatever
# state, frozen ones too; what may be released goes on after its proof was
# taken again, what never may is refused by its name; and whatever the state,
# `rm' ends it.
. "$(dirname "$0")/lib.sh"
WB_CONF_MORE='restart-limit = 1000'
# what the image has below a directory of its root alone
box_state
mkdir -m 700 "$WB_STATE/rootfs/minimal/root/own"
echo old >"$WB_STATE/rootfs/minimal/root/own/had"
box_serve
api() {	# method path [body]
	curl -s -o "$work/body" -w '%{http_code}' -X "$1" \
	    -H "Authorization: Bearer $WB_TOKEN" \
	    -H 'Content-Type: application/json' ${3+-d "$3"} "$WB_URL/v1$2"
}
events() { "$WB_BIN" events export; }
health() { wb inspect "$1" | field health; }
healthy() { [ "$(health "$1")" = HEALTHY ]; }
suspect() { [ "$(health "$1")" = SUSPECT ]; }
frozen() {	# id
	f=$(knob "$1" cgroup.events)
	[ -z "$f" ] || { grep -q '^frozen 1' "$f"; return; }
	grep -q FROZEN "$(knob "$1" freezer.state)"
}
# quarantined by a limit that somebody has changed
by_limit() {	# name
	lid=$(wb inspect "$1" | field id)
	f=$(knob "$lid" pids.max)
	old=$(cat "$f")
	echo $((old + 100)) >"$f"
	set_again
	await in_state "$1" QUARANTINED
}

# ---- a box that has worked, and is quarantined by a limit ---------------------
ok "a box" wb create --name one --network none --label who=cares
id=$(wb inspect one | field id)
wb exec one -- sh -c 'echo new >/root/new; rm /etc/hostname /etc/passwd-;
    echo more >>/etc/profile; echo more >>/root/own/had; echo >/root/own/new; mkdir /root/d; mkfifo /root/d/p; ln -s /etc /root/l
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
is "  where its root alone may look" \
    "$(change /root),$(change /root/own),$(change /root/own/had)" \
    "changed directory,changed directory,changed file"
is "  and added there" "$(change /root/own/new)" "added file"
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
set_again
await healthy one && is "and after a restart" "$(state one)" READY ||
    fail "after a restart" "$(wb inspect one)"
# another limit was not released
f=$(knob "$id" memory.max memory.limit_in_bytes)
now=$(cat "$f"); echo $((now - 1048576)) >"$f"
set_again
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
set_again
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

# ---- what is released hides nothing that is found after it ---------------------
# each box is looked at now
looked() {	# name
	api POST /reconcile >/dev/null
	echo "$(health "$1"),$(wb inspect "$1" | field healthReason)"
}
ok "a third one" wb create --name three --network none
three=$(wb inspect three | field id)
f=$(knob "$three" memory.max memory.limit_in_bytes)
echo $(($(cat "$f") - 1048576)) >"$f"
set_again
await in_state three QUARANTINED
ok "release of its memory" wb release three
is "it is READY with another limit" "$(looked three)" "HEALTHY,null"
f=$(knob "$three" pids.max)
echo $(($(cat "$f") + 100)) >"$f"
is "one that comes after that in the proof is seen" "$(looked three)" \
    "SUSPECT,pids"
set_again
await in_state three QUARANTINED
is "and quarantines it" "$(wb inspect three | field stateReason)" pids
ok "evidence of both" wb evidence three --config "$work/workbox.conf" -o three.tar
is "  named" "$(tar -xOf three.tar "evidence-$three/kernel.json" |
    jq -r .verdict)" memory_bytes,pids
ok "release of both" wb release three
is "it says so" "$(wb inspect three | jq -r .stateReason)" \
    "released: pids,memory_bytes"
is "  and its proof" "$(wb proof three --format json | jq -r .released)" \
    memoryBytes,pids
is "it is HEALTHY" "$(looked three)" "HEALTHY,null"
file=$WB_STATE/runtime/runner
cp -p "$file" "$work/runner"
echo >>"$file"
is "what new ones would run was changed" "$(looked three)" \
    "SUSPECT,runtime-file"
cat "$work/runner" >"$file"
is "and is as before" "$(looked three)" "HEALTHY,null"
for n in $(sed -n 's/.*\] = { "\([a-z_]*\)", C_.*/\1/p' "$top/maker/cgroup.c"); do
	table MAY | grep -qx "$n" || fail "the limit $n may not be released"
done
ok "rm of it" wb rm three --grace 0

# ---- a runner that goes wrong while READY is written ----------------------------
ok "a fourth" wb create --name four --network none
four=$(wb inspect four | field id)
by_limit four
netd=$(daemon_pids netd | head -n 1) stored=$(daemon_pids stored | head -n 1)
kill -STOP "$netd"		# who is to open its network
api POST /sandboxes/four/release '{}' >"$work/status" & asked=$!
await test ! -e "$WB_STATE/sandboxes/$four/quarantined" ||
    fail "it is not let go" "$(cat "$work/body")"
kill -STOP "$stored"
kill -CONT "$netd"
sleep 1		# READY goes to stored; earlier, it is refused by another way
/usr/bin/python3 - "$(head -n 1 "$(knob "$four" runner/cgroup.procs)")" <<'!'
import ctypes, os, socket, sys
pid = int(sys.argv[1])
at = os.pidfd_open(pid)
for n in os.listdir(f"/proc/{pid}/fd"):
    if os.readlink(f"/proc/{pid}/fd/{n}").startswith("socket:"):
        fd = ctypes.CDLL(None).syscall(438, at, int(n), 0)  # pidfd_getfd
        s = socket.socket(fileno=fd)
        try:
            s.getpeername()
            s.send(b"\xff" * 64, socket.MSG_DONTWAIT)
        except OSError:
            pass
!
sleep 1		# and apid has heard it
kill -CONT "$stored"
wait "$asked"
is "its release is refused" "$(cat "$work/status"; jq -r .code <"$work/body")" \
    "409proof-differs"
like "  by name" "$(jq -r .detail <"$work/body")" 'protocol.*frozen again'
await in_state four QUARANTINED
is "it is quarantined by that" "$(wb inspect four | field stateReason)" protocol
frozen "$four" && pass "and frozen" || fail "it was let go"
is "the record has both" "$(events | jq -r "select(.type == \"sandbox.released\" and
    .sandboxId == \"$four\") | .outcome" | xargs)" "ok failed"
ok "rm of it" wb rm four --grace 0

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
