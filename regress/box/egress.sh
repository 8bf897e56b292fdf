#!/bin/sh
# egress.sh: a box with the network `egress' in a small internet: what it
# reaches, what it does not though it is there, who may end in the middle of
# it, and that nothing is left.
# Each refusal stands beside what answers when the host asks; see inet.sh.
. "$(dirname "$0")/inet.sh"

WB_CONF_MORE='egress-pool = 1'
inet_up
inet_serve egress_net.py
box_serve
# and from the box, by a program of its own
from_box() {
	timeout 20 "$WB_BIN" sandbox exec -n "${2-out}" -- wget \
	    -q -O - "http://$1/" 2>&1
}

# ---- what it reaches
out=$(wb create --name out --network egress) && pass "create" ||
    fail "create" "$out"
is "its network is told" "$(printf '%s' "$out" | field network)" egress
is "it is READY" "$(printf '%s' "$out" | field state)" READY
for a in 203.0.113.10 198.51.100.10 '[2001:db8:1::10]'; do
	want="reached $(echo "$a" | tr -d '[]')"
	is "the host reaches $a" "$(from_host "$a")" "$want"
	is "the box reaches $a" "$(from_box "$a")" "$want"
done
like "a name leads to the same" "$(from_box www.example.org)" \
    '^reached (198.51.100.10|2001:db8:1::10)$'
like "  which the name server of the configuration was asked for" \
    "$(cat "$work/names")" '^www.example.org '
like "a name that there is not" "$(from_box nowhere.example.org)" "bad address"

# ---- what it does not reach, though it is there, and at once
refused() {	# text address
	like "the host reaches $1" "$(from_host "$2")" '^reached '
	t=$(date +%s%N)
	out=$(from_box "$2")
	ms=$((($(date +%s%N) - t) / 1000000))
	like "  the box does not" "$out" \
	    "can't connect.*(refused|unreachable|denied|No route)"
	[ "$ms" -lt 1500 ] && pass "  and is told so at once" ||
	    fail "  after $ms ms"
}
refused "a private host" 10.1.2.3
refused "another" 192.168.1.2
refused "a third" 172.16.1.2
refused "one behind a carrier's NAT" 100.64.1.2
refused "the metadata server" 169.254.169.254
refused "itself by its own address" 203.0.113.2
refused "itself by that of IPv6" '[2001:db8:1::2]'
refused "a unique local host" '[fd12::1]'
is "the host reaches its loopback" "$(from_host 127.0.0.1)" "reached 127.0.0.1"
for a in 198.19.255.2 198.19.255.3 '[fd00::2]' '[fd00::3]'; do
	like "  the box does not by $a" "$(from_box "$a")" "can't connect"
done
like "a name for a private host is of no use" "$(from_box inside.example.org)" \
    "can't connect"
# the host gets another address while it runs
ip addr add 203.0.113.3/24 dev net0
settles() { from_box 203.0.113.3 | grep -q "can't connect"; }
is "the host's new address answers the host" "$(from_host 203.0.113.3)" \
    "reached 203.0.113.3"
await settles && pass "  and never the box, a moment later" ||
    fail "  the box reaches it"

# ---- and each is told: to who runs it, in the box, for good
told() { wb denials out | grep -Eq "$1"; }
for d in 'sealed +10\.1\.2\.3 +80 +tcp' 'sealed +192\.168\.1\.2 +80 +tcp' \
    'sealed +172\.16\.1\.2 +80 +tcp' \
    'sealed +100\.64\.1\.2 +80 +tcp' 'sealed +169\.254\.169\.254 +80 +tcp' \
    'sealed +fd12::1 +80 +tcp' \
    'host +203\.0\.113\.2 +80 +tcp' 'host +2001:db8:1::2 +80 +tcp' \
    'host +203\.0\.113\.3 +80 +tcp'; do
	await told "$d" && pass "denials have $d" ||
	    fail "denials lack $d" "$(wb denials out)"
	like "  in the box as well" "$(wb exec out -- wb denials)" "$d"
done
is "  and not what is allowed" \
    "$(wb denials out | grep -Ec '198\.51\.100|203\.0\.113\.(10|50)')" 0
timeout 20 "$WB_BIN" sandbox exec out -- tftp -g -r x -l /tmp/x 10.7.7.7 \
    >/dev/null 2>&1
await told 'sealed +10\.7\.7\.7 +69 +udp' && pass "UDP is told as such" ||
    fail "UDP is not told" "$(wb denials out)"
counted() { wb inspect out | grep -A 5 '"denied"' | grep -q '"sealed": [1-9]'; }
await counted && pass "inspect counts them" ||
    fail "inspect does not count them" "$(wb inspect out)"
like "they are records" "$("$WB_BIN" events export | grep '"egress.denied"')" \
    '"address":"169.254.169.254","port":80,"protocol":"tcp"'
is "one with none has none" \
    "$(wb create --name dumb --network none >/dev/null; from_box 203.0.113.10 \
    dumb >/dev/null; wb denials dumb --format json | grep -c '"rule"')" 0
ok "  and goes" wb rm --grace 0 dumb

# ---- none, beside it
ok "one with none" wb create --name in --network none
like "  reaches nobody" "$(from_box 203.0.113.10 in)" "can't connect"

# ---- what passes is counted
counted() {
	[ "$(wb inspect out | sed -n 's/.*"connections": \([0-9]*\).*/\1/p')" \
	    -gt 0 ] && [ "$(wb inspect out |
	    sed -n 's/.*"receivedBytes": \([0-9]*\).*/\1/p')" -gt 1000 ]
}
await counted && pass "inspect counts what passes" ||
    fail "inspect does not count it" "$(wb inspect out)"
like "  and so does wb status" "$(wb exec out -- wb status | tr '\n' ' ')" \
    'network  egress.*received [1-9][0-9]* bytes.*begun    [1-9][0-9]* connections.*denied   [1-9][0-9]* packets'
like "  of none there is nothing to count" "$(wb inspect in)" '"traffic": null'

# ---- from one to the other, while it runs
sees() { [ "$(from_box 203.0.113.10 in)" = "reached 203.0.113.10" ]; }
ms() {
	t=$(date +%s%N)
	"$@" >/dev/null
	echo $((($(date +%s%N) - t) / 1000000))
}
t=$(ms wb network in egress)
sees && pass "none becomes egress, and it reaches who it should" ||
    fail "it reaches nobody" "$(from_box 203.0.113.10 in)"
echo "# none to egress took $t ms"
is "  with IPv6" "$(from_box '[2001:db8:1::10]' in)" "reached 2001:db8:1::10"
refused2() {
	like "  the box does not reach $1" "$(from_box "$1" in)" \
	    "can't connect.*(refused|unreachable|denied|No route)"
}
refused2 10.1.2.3
refused2 203.0.113.2
is "  which inspect tells" "$(wb inspect in | field network)" egress
calm() { [ "$(wb inspect in | field health)" = HEALTHY ]; }
await calm && pass "  and it is healthy" ||
    fail "  not healthy" "$(wb inspect in)"
flow=$(wb run in --name flow -- wget -q -O - http://203.0.113.10/400/4000000 |
    field sessionId)
begun() { [ "$(wb logs in "$flow" 2>/dev/null | wc -c)" -gt 20000 ]; }
await begun && pass "a download begins" || fail "no download begins"
t=$(ms wb network in none)
echo "# egress to none took $t ms"
[ "$t" -lt 1000 ] && pass "egress becomes none within a second" ||
    fail "egress to none took $t ms"
t=$(date +%s%N)
timeout 10 "$WB_BIN" sandbox wait in "$flow" >/dev/null 2>&1
rc=$?
[ $((($(date +%s%N) - t) / 1000000)) -lt 1000 ] && [ "$rc" != 0 ] &&
    [ "$rc" != 124 ] && pass "  and the download ends" ||
    fail "  the download goes on, or ends well: $rc"
refused2 203.0.113.10
is "  which inspect tells" "$(wb inspect in | field network)" none
await calm && pass "  and it is healthy" ||
    fail "  not healthy" "$(wb inspect in)"
like "both are records, and who wanted it" \
    "$("$WB_BIN" events export | grep -o '"sandbox.network".*' | tr '\n' ' ')" \
    '"actor":"token".*"outcome":"ok".*"from":"none","to":"egress".*"from":"egress","to":"none"'
no "a kind that there is not" 125 wb network in bridge
no "a box that there is not" 125 wb network nobody none
ok "what was made with none has egress" wb network in egress
sees && pass "  and reaches who it should" || fail "  it reaches nobody"

# ---- its root has no power over it
for c in 'ip link set tap0 down' 'ip route add 10.0.0.0/8 dev tap0' \
    'ip addr add 10.9.9.9/8 dev tap0' \
    'ip tuntap add mode tap dev t9' 'ip link del tap0' \
    'ip route flush table main'; do
	out=$(wb exec out -- sh -c "$c" 2>&1) &&
	    fail "box root may: $c" "$out" || pass "box root may not: $c"
done
is "and all is as it was" "$(from_box 203.0.113.10)" "reached 203.0.113.10"

# ---- slirp4netns: whose it is, and what becomes of the box when it dies
n=$(slirps | wc -l)
[ "$n" -ge 2 ] && [ "$n" -le 3 ] &&
    pass "one for each box, one in the pool at most" || fail "$n slirp4netns"
for p in $(slirps); do
	u=$(awk '/^Uid:/ { print $2 }' "/proc/$p/status")
	[ "$u" -ge "$WB_UIDS" ] && [ "$u" -lt $((WB_UIDS + 65536)) ] &&
	    pass "its uid is of the range" || fail "its uid is $u"
	is "it may do nothing but bind ports, in its own namespace" \
	    "$(awk '/^Cap(Eff|Bnd)/ { print $2 }' "/proc/$p/status" |
	    sort -u)" 0000000000000400
	is "it sees /etc and /run of its own alone" \
	    "$(ls "/proc/$p/root" | tr '\n' ' ')" "etc run "
	is "  and nothing in that /run" "$(ls -A "/proc/$p/root/run")" ""
done
is "no two share a uid" "$(for p in $(slirps); do awk '/^Uid:/ { print $2 }' \
    "/proc/$p/status"; done | sort | uniq -d)" ""
killed=$(slirps)
kill -KILL $killed
again() { [ "$(from_box 203.0.113.10)" = "reached 203.0.113.10" ]; }
await again && pass "when slirp4netns is killed the box gets another" ||
    fail "no way out any more" "$(from_box 203.0.113.10)"
like "  with IPv6" "$(from_box '[2001:db8:1::10]')" '^reached'
like "  which the log tells" "$(cat "$work/serve.log")" \
    'network [0-9]+: its way out is gone'
refused "a private host" 10.1.2.3
healthy() { [ "$(wb inspect out | field health)" = HEALTHY ]; }
await healthy && pass "  and it is healthy" ||
    fail "  not healthy" "$(wb inspect out)"

# ---- daemons come and go, what flows goes on
sid=$(wb run out --name flow -- wget -q -O - http://203.0.113.10/400/4000000 |
    field sessionId)
like "a download begins" "$sid" '^[0-9A-Z]{26}$'
for d in uplinkd netd apid; do
	p=$(daemon_pids "$d" | tail -n 1)
	kill -KILL "$p"
	back() {
		q=$(daemon_pids "$d" | tail -n 1)
		[ -n "$q" ] && [ "$q" != "$p" ] && answers
	}
	await back && pass "after SIGKILL of $d the set is back" ||
	    fail "no restart after SIGKILL of $d"
	is "  and the box reaches who it should" "$(from_box 203.0.113.10)" \
	    "reached 203.0.113.10"
done
all=$(descendants "$serve_pid" | while read -r p; do
	case $(readlink "/proc/$p/exe") in "$WB_PREFIX"/libexec/*) echo "$p" ;; esac; done)
kill -KILL "$serve_pid" $all
wait "$serve_pid" 2>/dev/null
start_serve "$WB_BIN" --config "$work/workbox.conf"
is "after SIGKILL of all of them it is READY" \
    "$(wb inspect out | field state)" READY
is "  and reaches who it should" "$(from_box 203.0.113.10)" \
    "reached 203.0.113.10"
await sees && pass "  and so does what was changed" ||
    fail "  what was changed reaches nobody" "$(from_box 203.0.113.10 in)"
await calm && pass "  and is healthy" || fail "  not healthy" "$(wb inspect in)"
refused "a private host" 10.1.2.3
await healthy && pass "  and it is healthy" ||
    fail "  not healthy" "$(wb inspect out)"
ok "the download ends as it should" wb wait out "$sid"
is "  and nothing of it is lost" "$(wb logs out "$sid" | wc -c)" 4000000
stop_serve
is "a stop leaves those of the boxes alone" "$(slirps | wc -l)" 2
start_serve "$WB_BIN" --config "$work/workbox.conf"
is "  and it is taken up again" "$(from_box 203.0.113.10)" \
    "reached 203.0.113.10"

# ---- the default, as the configuration says
made() { wb create --name "$1" | field network; }
is "nobody names a network: egress" "$(made plenty)" egress
ok "  and it goes" wb rm --grace 0 plenty
stop_serve
cp "$work/workbox.conf" "$work/none.conf"
echo 'default-network = "none"' >>"$work/none.conf"
start_serve "$WB_BIN" --config "$work/none.conf"
is "  or what the configuration says" "$(made little)" none
ok "  and it goes" wb rm --grace 0 little
stop_serve
start_serve "$WB_BIN" --config "$work/workbox.conf"

# ---- the pool, and how long it takes
mss() {
	t=$(date +%s%N)
	wb create --name "$1" --network "$2" >/dev/null
	echo $((($(date +%s%N) - t) / 1000000))
}
pooled() { [ "$(slirps | wc -l)" = "$1" ]; }
await pooled 3 && pass "one is prepared" || fail "none is prepared"
a=$(mss fast egress)
await pooled 4
b=$(mss plain none)
echo "# create took $a ms with egress, $b ms with none"
is "one from the pool works" "$(from_box 198.51.100.10 fast)" \
    "reached 198.51.100.10"
is "  with IPv6" "$(from_box '[2001:db8:1::10]' fast)" "reached 2001:db8:1::10"

# ---- nothing is left
for b in out in fast plain; do
	ok "remove $b" wb rm --grace 0 $b
done
await pooled 1 && pass "their slirp4netns are gone" || fail "left" "$(slirps)"
inet_done
