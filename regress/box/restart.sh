#!/bin/sh
# restart.sh: daemons come and go, boxes and their sessions stay.
. "$(dirname "$0")/lib.sh"
box_serve
pid_of() { pgrep -f "^$WB_PREFIX/libexec/workbox/$1" | while read -r p; do
	# of this server: its parent's parent is ours
	q=$p; while [ "$q" -gt 1 ]; do
		[ "$q" = "$serve_pid" ] && { echo "$p"; break; }
		q=$(awk '{ print $4 }' "/proc/$q/stat" 2>/dev/null || echo 0)
	done; done | head -n 1; }

ok "create" wb create --name keep --network none
# nothing in its reach tells which it is
ok "its / is another's of its own" wb exec keep -- chown 1000:1000 /
sid=$(wb run keep --name long -- sh -c 'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i + 1)); sleep 0.01; done; echo end' |
    sed -n 's/.*"sessionId": *"\([0-9A-Z]*\)".*/\1/p')
like "a session runs" "$sid" '^[0-9A-Z]{26}$'

for d in apid stored netd uplinkd proxyd; do
	p=$(pid_of "$d")
	like "$d is there" "$p" '^[0-9]+$'
	kill -KILL "$p"
	restarted() {
		q=$(pid_of "$d")
		[ -n "$q" ] && [ "$q" != "$p" ] && answers
	}
	await restarted && pass "after SIGKILL of $d the set is back" ||
	    fail "no restart after SIGKILL of $d"
	is "the box is READY after $d died" "$(state keep)" READY
	is "and takes commands" "$(wb exec keep -- echo alive 2>&1)" alive
done

# privd itself, then all at once; the next serve takes everything up, and
# ends what is left of the earlier one: stopped, nothing goes by itself
orphans=$(for d in stored netd apid; do pid_of "$d"; done)
kill -STOP $orphans
kill -KILL "$serve_pid"
wait "$serve_pid" 2>/dev/null
start_serve "$WB_BIN" --config "$work/workbox.conf"
is "READY after SIGKILL of privd" "$(state keep)" READY
for p in $orphans; do
	like "the earlier server's process $p is ended" \
	    "$(cat "$work/serve.log")" \
	    "workbox serve: end process $p of an earlier server"
	[ -z "$(readlink "/proc/$p/exe")" ] && pass "$p is gone" ||
	    fail "$p is there"
done
is "and takes commands" "$(wb exec keep -- echo alive 2>&1)" alive

stop_serve
is "SIGTERM ends serve with 0" "$?" 0
like "and says what goes on" "$(tail -n 20 "$work/serve.log")" "1 (box|sandbox)"
start_serve "$WB_BIN" --config "$work/workbox.conf"
is "READY after SIGTERM and start" "$(state keep)" READY

ok "the session ends as it should" wb wait keep "$sid"
wb logs keep "$sid" >"$work/got"
{ i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i + 1)); done; echo end; \
    } >"$work/want"
cmp -s "$work/got" "$work/want" &&
    pass "its output is whole over all restarts" ||
    fail "output differs" "$(wc -l <"$work/got") lines" \
    "$(diff "$work/got" "$work/want" | head -n 5)"

# what a crash has cut of a body's input the repeat pours, from where it was cut
head -c 600000 /dev/urandom | base64 -w 0 >"$work/in"
{ printf '{"argv":["sh","-c","touch /tmp/pours; until [ -e /tmp/take ]; do usleep 20000; done; sha256sum"],"stdin":"'; cat "$work/in"; printf '"}'; } >"$work/body"
pour() { curl -s -o "$work/answer" -w '%{http_code}' --max-time 30 \
    -H "Authorization: Bearer $WB_TOKEN" -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: pour' --data-binary @"$work/body" \
    "$WB_URL/v1/sandboxes/keep/exec"; }
pour >/dev/null &
first=$!
await wb exec keep -- test -e /tmp/pours
kill -9 "$(pid_of apid)"
wait "$first" && fail "the first answer came" ||
    pass "apid is killed while it pours"
pour >"$work/status" &
again=$!
await wb exec keep -- touch /tmp/take &&
    pass "it takes commands while the input waits" || fail "no command is taken"
wait "$again"
is "the repeat is answered" "$(cat "$work/status")" 200
is "and all of the input came, once" "$(grep -o "[0-9a-f]\{64\}" \
    "$work/answer")" "$(sha256sum <"$work/in" | cut -c1-64)"
ok "remove" wb rm keep

# nothing is made of which the record does not tell on the disk
p=$(pid_of stored)
kill -STOP "$p"
# without a key, of which stored would be asked first
curl -sf -o /dev/null -H "Authorization: Bearer $WB_TOKEN" \
    -H 'Content-Type: application/json' \
    -d '{"name": "torn", "network": "none"}' "$WB_URL/v1/sandboxes" &
creating=$!
asked() { wb list 2>/dev/null | grep -q torn; }
await asked && pass "a create is asked for" || fail "no create is asked for"
is "while its row is written a create" "$(kill -0 "$creating" && echo waits)" \
    waits
is "and nothing is made" "$(ls "$WB_STATE/sandboxes")" ""
kill -CONT "$p"
wait "$creating" && pass "and goes on then" || fail "the create failed"
ok "removed" wb rm torn

# a removal that was answered is finished by the server that answered it
ok "create one with a large tree" wb create --name last --network none
ok "which it has" wb exec last -- sh \
    -c 'mkdir /big && cd /big && seq 20000 | xargs touch'
last=$(ls "$WB_STATE/sandboxes")
like "it is on the disk" "$last" '^[0-9A-Z]{26}$'
ok "remove it" wb rm last --grace 0
stop_serve
is "SIGTERM right behind it ends with 0" "$?" 0
is "the tree is gone" "$(ls "$WB_STATE/sandboxes")" ""
start_serve "$WB_BIN" --config "$work/workbox.conf"
# apid says it once privd has said that it is ready
said() { tail -n 3 "$work/serve.log" | grep -q 'serving on'; }
await said
like "and no box is there" "$(tail -n 3 "$work/serve.log")" \
    "serving on [0-9]+ sockets, 0 boxes"
box_done
