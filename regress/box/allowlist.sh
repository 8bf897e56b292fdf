#!/bin/sh
# allowlist.sh: a box with the network `allowlist' in a small internet: what
# it reaches by name, what it does not though it is there, that its questions
# go nowhere, and that its list can change and its daemons end in the middle
# of it.  See inet.sh; who answers is allow_net.py, who asks caller.c.
command -v openssl >/dev/null || { echo "skip: no openssl"; exit 77; }
. "$(dirname "$0")/inet.sh"

WB_CONF_MORE='egress-pool = 0'
inet_up
mkdir "$work/tls"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/tls/key" \
    -out "$work/tls/cert" -days 2 -subj /CN=example.org 2>/dev/null
cat "$work/tls/key" "$work/tls/cert" >"$work/tls/pem"
inet_serve allow_net.py "$work/tls"
box_state
cc -O1 -static -o "$WB_STATE/rootfs/minimal/caller" \
    "$top/regress/box/caller.c" || { echo "skip: no static C"; exit 77; }
box_serve

# ---- helpers
caller() {
	timeout 30 "$WB_BIN" sandbox exec "${box:-out}" -- /caller "$@" 2>&1
}
wget() {
	timeout 20 "$WB_BIN" sandbox exec -n "${box:-out}" -- wget \
	    -q -O - "$1" 2>&1
}
lines() { tr -d '\r' | tr '\n' ' '; }
# tell RULE NAME ADDRESS PORT PROTOCOL: it is a denial, or soon is
told() { wb denials "${box:-out}" | grep -Eq " $1 +$2 +$3 +$4 +$5 "; }
tell() {
	for _ in $(seq 20); do
		! told "$@" || { pass "    told as $1"; return; }
		sleep 0.05	# the pace of asking
	done
	fail "    not told: $*" "$(wb denials "${box:-out}")"
}
ms() {
	t=$(date +%s%N)
	"$@" >/dev/null 2>&1
	echo $((($(date +%s%N) - t) / 1000000))
}
within() { [ "$2" -lt "$3" ] && pass "$1 ($2 ms)" || fail "$1: $2 ms"; }
# ends TEXT GOT HOW: it has got nothing, and at once
ends() {
	like "$1" "$2" "^= $3 [0-9]+ ms"
	took=$(printf '%s\n' "$2" | sed -n 's/^= .* \([0-9]*\) ms.*/\1/p' |
	    head -n 1)
	[ "${took:-9999}" -lt 1500 ] || fail "    after ${took:-?} ms"
}
# http TEXT-OF-REQUESTS NAME: what comes of it
http() { printf "$1" | caller tcp "$2" 80 end | lines; }
get() { printf 'GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' "${2:-/}" "$1"; }

allowed="--allow www.example.org --allow two.example.org --allow *.example.net --allow four.example.org --allow six.example.org
 --allow first.example.org:22 --allow BÜCHER.example.org. --allow dead6.example.org --allow mixed.example.org --allow alias.example.org
 --allow inward.example.org --allow homeward.example.org --allow metadata.example.org --allow loop.example.org --allow host.example.org
 --allow mapped.example.org --allow ours.example.org --allow any.example.org --allow late.example.org --allow never.example.org
 --allow missing.example.org --allow long.example.org --allow two.example.org:8443,443,80 --allow rebind1.example.org
 --allow new.example.org --allow rebind2.example.org --allow rebind3.example.org --allow rebind4.example.org"
set -f
out=$(wb create --name out --network allowlist $allowed) && pass "create" ||
    fail "create" "$out"
set +f
is "its network is told" "$(printf '%s' "$out" | field network)" allowlist
is "it is READY" "$(printf '%s' "$out" | field state)" READY

# ---- names
is "an approved name has an address" \
    "$(caller name www.example.org </dev/null)" "0 198.18.0.1"
: >"$work/never.out"
{ printf 'GET / HTTP/1.1\r\nHost: never.example.org\r\n\r\n' |
    caller tcp never.example.org 80 30 >"$work/never.out"; } &
never=$!
is "  the same each time, by TCP as well" \
    "$(caller name www.example.org 1 tcp </dev/null)" "0 198.18.0.1"
is "  in any case, with a dot" "$(caller name WWW.Example.ORG. </dev/null)" \
    "0 198.18.0.1"
is "  AAAA: there is none, and that is all" \
    "$(caller name www.example.org 28 </dev/null)" 0
for k in 10 16 65 255; do
	is "  nor of type $k" "$(caller name www.example.org $k </dev/null)" 0
done
for n in nowhere.example.org example.org example.net \
    www.example.org.evil.example xwww.example.org .; do
	t=$(date +%s%N)
	is "there is no $n" "$(caller name "$n" </dev/null)" 3
	within "  which is said at once" $((($(date +%s%N) - t) / 1000000)) 2000
done
tell name 'nowhere\.example\.org' - - udp
recorded() {
	"$WB_BIN" events export | grep egress.denied |
	    grep -q '"reason":"name","data":.*"name":"nowhere.example.org","entry":"nowhere.example.org"'
}
await recorded && pass "  and recorded with what would have let it" ||
    fail "  not on the record" "$("$WB_BIN" events export | grep egress.denied)"
long=$(printf 'x%.0s' $(seq 60)).$(printf 'y%.0s' $(seq 60)).evil.example
is "a long one" "$(caller name "$long" 16 </dev/null)" 3
is "another name server is none" "$(wb exec -n out -- nslookup www.example.org \
    203.0.113.50 2>&1 | grep -c 'Address.*198')" 0
tell address - '203\.0\.113\.50' 53 udp
is "nothing of all that has left" \
    "$(grep -vc -e '^ready' -e '^never.example.org' "$work/names")" 0

# ---- what it reaches
for s in http https; do
	like "by $s: an approved name" "$(wget $s://www.example.org/)" \
	    '^reached (198.51.100.10|2001:db8:1::10) as www.example.org$'
	like "  that has IPv4 alone" "$(wget $s://four.example.org/)" \
	    '^reached 198.51.100.10 as'
	like "  or IPv6" "$(wget $s://six.example.org/)" \
	    '^reached 2001:db8:1::10 as'
	like "  below *.example.net" "$(wget $s://a.b.example.net/)" \
	    '^reached .* as a.b.example.net$'
done
like "the name server was asked then" "$(sort -u "$work/names" | lines)" \
    'www.example.org 1 udp .*www.example.org 28 udp'
like "one of IPv6 that does not answer" "$(wget http://dead6.example.org/)" \
    '^reached 198.51.100.10 as'
like "an alias" "$(wget http://alias.example.org/)" '^reached .* as alias'
like "an answer that does not fit into UDP" "$(wget http://long.example.org/)" \
    '^reached 198.51.100.10 as'
t=$(date +%s%N)
like "an answer that comes late" "$(wget http://late.example.org/)" \
    '^reached 198.51.100.10 as'
echo "# that took $((($(date +%s%N) - t) / 1000000)) ms"
like "a name in punycode" "$(wget http://xn--bcher-kva.example.org/)" \
    '^reached .* as xn--bcher-kva'
like "another port" "$(wget https://two.example.org:8443/)" \
    '^reached .* as two.example.org:8443$'
like "who speaks first, to the last byte of both" "$(echo text | caller tcp \
    first.example.org 22 end | lines)" '^220 hello text 5 bytes, bye = end '
big=$(caller tcp first.example.org 22 end <"$work/serve.log" | tail -n 2 |
    head -n 1)
is "  of many bytes as well" "$big" "$(wc -c <"$work/serve.log") bytes, bye"

# ---- ports and addresses
ends "another port of an approved name" \
    "$(caller tcp www.example.org 81 </dev/null)" reset
tell port 'www\.example\.org' - 81 tcp
ends "the ports of another" "$(caller tcp first.example.org 443 </dev/null)" \
    reset
for a in 203.0.113.10:80 198.51.100.10:443 10.1.2.3:80 169.254.169.254:80 \
    203.0.113.2:80 198.19.255.2:80; do
	ends "$a" "$(caller tcp "${a%:*}" "${a#*:}" </dev/null)" refused
done
tell address - '10\.1\.2\.3' 80 tcp
ends "an address that is no name's" \
    "$(caller tcp 198.18.77.77 443 </dev/null)" reset
tell address - '198\.18\.77\.77' 443 tcp
ends "the relay's own port" "$(caller tcp 127.0.0.1 1 </dev/null)" refused
ends "UDP to an approved name" "$(caller udp www.example.org 443 </dev/null)" \
    refused
ends "UDP to an address" "$(caller udp 203.0.113.10 7 </dev/null)" \
    'not permitted'
like "IPv6" "$(wget 'http://[2001:db8:1::10]/')" \
    "can't connect.*(refused|unreachable|denied)"
like "the host reaches that" "$(from_host '[2001:db8:1::10]')" \
    '^reached 2001:db8:1::10'

# ---- TLS for another name
hello() {
	/usr/bin/python3 "$top/regress/box/allow_net.py" hello "$@" |
	    caller tcp www.example.org 443 1
}
like "a hello for it is answered" \
    "$(hello www.example.org | tail -c 16 | tr -d '\0')" '= late'
ends "a hello for another name that is approved" "$(hello two.example.org)" \
    reset
tell tls 'two\.example\.org' - 443 tcp
ends "  for one that is not" "$(hello evil.example)" reset
tell tls 'evil\.example' - 443 tcp
ends "  for none" "$(hello)" reset
tell tls 'www\.example\.org' - 443 tcp
ends "what is no TLS" "$(echo hello | caller tcp www.example.org 443 2)" reset
ends "HTTP on port 443" "$(printf "$(get www.example.org)" |
    caller tcp www.example.org 443 2)" reset
ends "another name by TLS on another port" \
    "$(/usr/bin/python3 "$top/regress/box/allow_net.py" hello www.example.org |
    caller tcp two.example.org 8443 2)" reset

# ---- HTTP for another host
w=www.example.org
for h in "$w" "$w:80" WWW.Example.ORG "$w."; do
	like "Host: $h" "$(http "$(get "$h")" $w)" \
	    'HTTP/1.1 200 OK .*reached .* as '
done
like "two requests at once" "$(http "$(get $w /one)$(get $w /two)" $w)" \
    'reached .*reached '
for h in two.example.org evil.example 169.254.169.254 "$w:443" \
    "$w@evil.example" "$w.evil.example" "evil.example#$w" "$w," ''; do
	ends "Host: $h" "$(http "$(get "$h" /bad)" $w)" reset
done
tell http 'two\.example\.org' - 80 tcp
like "the second of two requests" \
    "$(http "$(get $w /good2)$(get two.example.org /bad)" $w)" '= reset '
for r in 'GET http://two.example.org/bad HTTP/1.1\r\nHost: W\r\n\r\n' \
    'GET http://W@two.example.org/bad HTTP/1.1\r\nHost: W\r\n\r\n' \
    'GET http://W/bad HTTP/1.1\r\nHost: two.example.org\r\n\r\n' \
    'GET /bad HTTP/1.1\r\nHost: W\r\nHost: two.example.org\r\n\r\n' \
    'GET /bad HTTP/1.1\r\nHost: two.example.org\r\nHost: W\r\n\r\n' \
    'GET /bad HTTP/1.1\r\nHost: W\r\n\tx\r\n\r\n' \
    'GET /bad HTTP/1.1\r\n\r\n' 'GET /bad HTTP/1.0\r\n\r\n' \
    'GET /bad HTTP/1.1\r\nHost : W\r\n\r\n' 'GET /bad HTTP/1.1\nHost: W\n\n' \
    'GET /bad HTTP/1.1\r\nHost: W\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n' \
    'POST /bad HTTP/1.1\r\nHost: W\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n' 'GET /bad\r\n' \
    'CONNECT two.example.org:443 HTTP/1.1\r\nHost: W\r\n\r\n' \
    'CONNECT 10.1.2.3:80 HTTP/1.1\r\nHost: W\r\n\r\n' \
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' \
    '\r\n\r\n\r\nGET /bad HTTP/1.1\r\nHost: two.example.org\r\n\r\n'; do
	ends "$(printf '%s' "$r" | tr -d '\\')" \
	    "$(http "$(printf '%s' "$r" | sed "s/W/$w/g")" $w)" reset
done
is "  of which none has come to a server" \
    "$(grep -c '^http .*/bad' "$work/names")" 0
like "a body that looks like a request" \
    "$(http "POST /body HTTP/1.1\r\nHost: $w\r\nContent-Length: 43\r\n\r\nGET /in HTTP/1.1\r\nHost: two.example.org\r\n\r\n" $w)" '200 OK'

# ---- names that lead inwards
for n in inward:10.1.2.3 homeward:127.0.0.1 metadata:169.254.169.254 \
    loop:127.0.0.1 any:0.0.0.0 ours:198.18.0.1; do
	ends "${n#*:}, by ${n%%:*}.example.org" "$(http \
	    "$(get "${n%%:*}.example.org")" "${n%%:*}.example.org")" reset
	tell sealed "${n%%:*}\.example\.org" '[0-9a-f:.]+' 80 tcp
done
ends "the host itself" "$(http "$(get host.example.org)" host.example.org)" \
    reset
tell host 'host\.example\.org' '(203\.0\.113\.2|2001:db8:1::2)' 80 tcp
ends "IPv4 within IPv6" \
    "$(http "$(get mapped.example.org)" mapped.example.org)" reset
tell sealed 'mapped\.example\.org' '[0-9a-f:.]+' 80 tcp
ends "a name that is not there" \
    "$(http "$(get missing.example.org)" missing.example.org)" reset
for i in 1 2 3; do
	like "good addresses among others, the $i. time" \
	    "$(wget http://mixed.example.org/)" '^reached 198.51.100.10 as'
done
i=0
for a in 127.0.0.1 169.254.169.254 10.1.2.3 203.0.113.2; do
	i=$((i + 1)) n=rebind$((i)).example.org
	like "$n is public at first" "$(wget "http://$n/")" \
	    '^reached 198.51.100.10 as'
	ends "  and then $a" "$(http "$(get "$n")" "$n")" reset
	tell '(sealed|host)' "rebind$i\.example\.org" "$a" 80 tcp
done
ip addr add 203.0.113.3/24 dev net0
ends "an address that the host has since a moment ago" \
    "$(http "$(get new.example.org)" new.example.org)" reset
tell host 'new\.example\.org' '203\.0\.113\.3' 80 tcp

# and with the kernel's own of these rules
summed() {
	wb denials out --format json | python3 -c \
	    'import json, sys; d = json.load(sys.stdin); n = sum(i["count"] for i in d["items"] if i["rule"] in ("sealed", "host")); t = d["totals"] or {}; sys.exit(not 0 < n <= t.get("sealed", 0) + t.get("host", 0))'
}
await summed && pass "such are in the totals" ||
    fail "the totals lack them" "$(wb denials out --format json | tail -n 20)"

# ---- who is told, and how
like "denials are seen in the box" "$(wb exec -n out -- wb denials)" \
    'two\.example\.org'
suggested=$(wb denials out --suggest | lines)
like "what it would have needed" "$suggested" \
    'nowhere\.example\.org .*www\.example\.org:81 '
is "  is nothing else" \
    "$(wb denials out --suggest | grep -Evc '^[a-z0-9.-]+(:[0-9]+)?$')" 0
counted() {
	wb inspect out | lines |
	    grep -Eq '"name": "two.example.org", +"connections": [1-9][0-9]*, +"open": 0, +"sentBytes": [1-9][0-9]+, +"receivedBytes": [1-9][0-9]+'
}
await counted && pass "inspect has connections and bytes of each name" ||
    fail "inspect lacks those of names" "$(wb inspect out)"
like "  and counts of what was denied" "$(wb inspect out | lines)" \
    '"address": [1-9][0-9]*, +"name": [1-9][0-9]*, +"port": [1-9][0-9]*, +"tls": [1-9][0-9]*, +"http": [1-9]'

# ---- there is no way out but this
is "it has lo alone" "$(wb exec -n out -- ip -o link |
    sed 's/^[0-9]*: \([^:]*\):.*/\1/' | lines)" 'lo '
is "no route leads elsewhere" \
    "$(wb exec -n out -- ip route show table all | grep -vc 'dev lo')" 0
is "  nor one of IPv6" \
    "$(wb exec -n out -- ip -6 route show table all | grep -vc 'dev lo')" 0
is "there is no slirp4netns" "$(slirps)" ""
like "the proof says so" "$(wb proof out | lines)" \
    'network +allowlist +allowlist .*ruleset +- +[0-9a-f]{64}'
is "  once" "$(wb proof out | grep -c '^network ')" 1
wb proof out | awk '$1 == "hostPid" { print $3 }' >"$work/pid"
rules=$(wb proof out | awk '$1 == "ruleset" { print $3 }')
healthy() { [ "$(wb inspect "${box:-out}" | field health)" = HEALTHY ]; }
healthy && pass "it is healthy" || fail "it is not healthy" "$(wb inspect out)"
like "its list is on the record" \
    "$("$WB_BIN" events export | grep '"sandbox.network"')" \
    "\"to\":\"allowlist\",\"entries\":$(echo "$allowed" | grep -o -e --allow |
    wc -l),\"sha256\""
net() {
	curl -s --noproxy '*' -H "Authorization: Bearer $WB_TOKEN" \
	    "$WB_URL/v1/sandboxes/$1/network"
}
sum() {
	net "$1" | python3 -c \
	    'import hashlib, json, sys; print(hashlib.sha256("".join(e + "\n" for e in json.load(sys.stdin)["allow"]).encode()).hexdigest())'
}
on_record() {
	"$WB_BIN" events export | grep '"sandbox.network"' | tail -n 1 |
	    sed 's/.*"sha256":"\([0-9a-f]*\)".*/\1/'
}
is "  with the hash of what it has" "$(on_record)" "$(sum out)"

# ---- its root has no power over it
steal() {	# address port [wait]: a session
	thief=$(wb run out -- /caller steal "$@" | field sessionId)
	thieves="$thieves $thief"
	[ -n "${3-}" ] || await bound tcp:
}
bound() { wb logs out "$thief" | grep -q "$1"; }
stolen() {
	for s in $thieves; do wb logs out "$s"; done |
	    grep -c -e GOT -e TRANSPARENT
}
thieves=
for a in '127.0.0.1 1' '0.0.0.0 1'; do
	steal $a
	is "it does not bind $a" "$(wb logs out "$thief" | lines)" \
	    "udp: Permission denied tcp: Permission denied "
done
steal 198.19.255.3 53
is "  nor the name service's port" "$(wb logs out "$thief" | lines)" \
    "udp: Address already in use tcp: Address already in use "
for a in '0.0.0.0 443' '0.0.0.0 80' '198.18.0.1 443'; do
	steal $a
	is "it binds $a" "$(wb logs out "$thief" | lines)" \
	    "udp: bound tcp: bound "
done
works() { wget https://www.example.org/ | grep -q '^reached .* as www'; }
works && pass "  and it is of no use" || fail "  it does not work any more"
for c in 'ip link set lo down' 'ip route add 10.0.0.0/8 dev lo' \
    'ip addr add 10.9.9.9/8 dev lo' 'ip route flush table local' \
    'ip rule add to 198.18.0.0/16 table 99'; do
	out=$(wb exec -n out -- sh -c "$c" 2>&1) &&
	    fail "box root may: $c" "$out" || pass "box root may not: $c"
done

# ---- daemons come and go
old=$(caller name www.example.org </dev/null)
flow() {
	wb run "${box:-out}" --name "$2" -- wget \
	    -q -O - "http://$1/400/4000000" | field sessionId
}
begun() { [ "$(wb logs "${box:-out}" "$1" 2>/dev/null | wc -c)" -gt 20000 ]; }
over() {
	timeout 5 "$WB_BIN" sandbox wait "${box:-out}" "$1" >/dev/null 2>&1
	[ $? != 124 ]
}
sid=$(flow www.example.org flow1)
await begun "$sid" && pass "a download begins" || fail "no download begins"
p=$(daemon_pids proxyd | tail -n 1)
kill -KILL "$p"
t=$(ms over "$sid")
within "it ends with proxyd" "$t" 1500
no "  not well" 1 timeout 5 "$WB_BIN" sandbox wait out "$sid"
back() {
	q=$(daemon_pids proxyd | tail -n 1)
	[ -n "$q" ] && [ "$q" != "$p" ] && answers
}
await back && pass "  the set is back" ||
    fail "  no restart after SIGKILL of proxyd"
await works && pass "  and it works" ||
    fail "  it does not work" "$(wget https://www.example.org/)"
new=$(caller name www.example.org </dev/null)
like "the name has another address" "$new" '^0 198\.18\.'
[ "$new" != "$old" ] && pass "  than before" || fail "  it is the same: $new"
ends "the one before is no name's" "$(caller tcp "${old#0 }" 443 </dev/null)" \
    reset
await healthy && pass "it is healthy" ||
    fail "it is not healthy" "$(wb inspect out)"
all=$(descendants "$serve_pid" | while read -r p; do
	case $(readlink "/proc/$p/exe") in "$WB_PREFIX"/libexec/*) echo "$p" ;; esac; done)
steal 198.19.255.3 53 wait
kill -KILL "$serve_pid" $all
wait "$serve_pid" 2>/dev/null
: >"$work/killed.log"
mv "$work/serve.log" "$work/killed.log"
# while nobody is there the box takes their place, and keeps it
for _ in $(seq 100); do
	nsenter --net="/proc/$(cat "$work/pid")/ns/net" ss -Hlnt 'sport = 53' |
	    grep -q 198.19.255.3 && break
	sleep 0.05	# the pace of asking
done
start_serve "$WB_BIN" --config "$work/workbox.conf"
await bound 'tcp: bound' &&
    pass "while all are dead the box binds the name service's port" ||
    fail "the box does not bind it" "$(wb logs out "$thief")"
like "  which is of no use to it" "$(caller name www.example.org </dev/null)" \
    '^= '
ok "  until it lets go" wb kill out "$thief" --signal KILL
is "after SIGKILL of all of them it is READY" \
    "$(wb inspect out | field state)" READY
await works && pass "  and works" ||
    fail "  it does not work" "$(wget https://www.example.org/)"
await healthy && pass "  and is healthy" ||
    fail "  it is not healthy" "$(wb inspect out)"
old=$new new=$(caller name www.example.org </dev/null)
[ "$new" != "$old" ] && pass "  with another address" ||
    fail "  the address is the same: $new"
ends "the one before is no name's" "$(caller tcp "${old#0 }" 443 </dev/null)" \
    reset
is "its ruleset is the same" \
    "$(wb proof out | awk '$1 == "ruleset" { print $3 }')" "$rules"
is "of all that, who bound its ports got nothing" "$(stolen)" 0

# ---- its list changes while it runs
keep=$(flow www.example.org keep) gone=$(flow two.example.org gone)
await begun "$keep" && await begun "$gone" && pass "two downloads begin" ||
    fail "no download begins"
t=$(ms wb network out --remove two.example.org \
    --remove two.example.org:80,443,8443 --add missing2.example.org)
within "one less" "$t" 1000
t=$(ms over "$gone")
within "  ends what is not allowed any more" "$t" 1000
no "    not well" 1 timeout 5 "$WB_BIN" sandbox wait out "$gone"
is "  there is no such name any more" \
    "$(caller name two.example.org </dev/null)" 3
is "  but for the one that came" \
    "$(caller name missing2.example.org </dev/null | cut -d . -f 1)" "0 198"
is "  on the record as it is" "$(on_record)" "$(sum out)"
is "  so many of them" "$("$WB_BIN" events export | grep '"sandbox.network"' |
    tail -n 1 | sed 's/.*"entries":\([0-9]*\).*/\1/')" \
    "$(net out | tr , '\n' | grep -c example)"
ok "one more" wb network out --add two.example.org
like "  can be reached at once" "$(wget https://two.example.org/)" \
    '^reached .* as two'
ok "a whole list" wb network out allowlist --allow www.example.org \
    --allow four.example.org:80
like "  has what it has" "$(net out)" \
    '"allow": *\["four.example.org:80", *"www.example.org"\]'
is "  and no other" "$(caller name two.example.org </dev/null)" 3
is "  which is told" "$(wb network out | lines)" \
    '# allowlist, 2 entries four.example.org:80 www.example.org '
is "  as the API tells it" "$(wb network out --format json)" \
    "$(net out | python3 -m json.tool --indent 2)"
ok "the kind alone" wb network out allowlist
is "  says nothing" "$out" ''
wb network out >"$work/list"
is "  and leaves the list" "$(wc -l <"$work/list")" 3
ok "what was told is a file for --allow-file" wb network out \
    --allow-file "$work/list"
is "  and the same list" "$(wb network out)" "$(cat "$work/list")"
ok "to remove what is not listed" wb network out --remove four.example.org
is "  is told" "$out" "workbox sandbox network: --remove four.example.org:\
 was not on the list, which has four.example.org:80"
is "  and changes nothing" "$(wb network out)" "$(cat "$work/list")"
no "an entry that is none" 125 wb network out --add 10.1.2.3
like "  is told by its option" "$out" '^[^:]*: out: --add: 10\.1\.2\.3: '
printf '# mine\nwww.example.org\n\nhttps://www.example.org/\n' >"$work/list"
no "  or one in a file" 125 wb network out --allow-file "$work/list"
like "  by its line" "$out" "$work/list:4: https://www.example.org/: expected"
no "  nor one too wide" 125 wb network out --add '*.org'
no "  is for no other kind" 125 wb network out egress --allow www.example.org
ok "what stays allowed goes on" timeout 60 "$WB_BIN" sandbox wait out "$keep"
want=$(python3 -c \
    'import hashlib, random; h = hashlib.sha256(); [h.update(random.Random(i).randbytes(10000)) for i in range(400)]; print(h.hexdigest())')
is "  and no byte of it is lost" \
    "$(wb logs out "$keep" | sha256sum | cut -d ' ' -f 1)" "$want"

# ---- other kinds, and back
cutoff=$(flow www.example.org cutoff)
await begun "$cutoff" && pass "a download begins" || fail "no download begins"
t=$(ms wb network out none)
within "allowlist becomes none" "$t" 1500
t=$(ms over "$cutoff")
within "  and the download ends" "$t" 1000
like "  no name is known" "$(wget http://www.example.org/)" 'bad address'
await healthy && pass "  it is healthy" ||
    fail "  it is not healthy" "$(wb inspect out)"
ok "none becomes allowlist" wb network out allowlist --allow www.example.org \
    --allow two.example.org
works && pass "  and works" ||
    fail "  it does not work" "$(wget https://www.example.org/)"
cutoff=$(flow www.example.org cutoff2)
await begun "$cutoff"
t=$(ms wb network out egress)
within "allowlist becomes egress" "$t" 2000
t=$(ms over "$cutoff")
within "  and the download ends" "$t" 1000
is "  an address is reached" \
    "$(wget http://203.0.113.10/ | cut -d ' ' -f 1,2)" "reached 203.0.113.10"
like "  and a name" "$(wget http://closed.example.org/)" '^reached '
is "  there is no list" "$(net out | tr -d ' ')" \
    '{"network":"egress","allow":null}'
t=$(ms wb network out allowlist --allow www.example.org)
within "egress becomes allowlist" "$t" 2000
like "  an address is not reached" "$(wget http://203.0.113.10/)" \
    "can't connect"
works && pass "  a name is" ||
    fail "  it does not work" "$(wget https://www.example.org/)"
like "  no other" "$(wget http://closed.example.org/)" 'bad address'
is "  it has lo alone" "$(wb exec -n out -- ip -o link |
    sed 's/^[0-9]*: \([^:]*\):.*/\1/' | lines)" 'lo '
no_slirp() { [ -z "$(slirps)" ]; }
await no_slirp && pass "  its slirp4netns is gone" ||
    fail "  it has a slirp4netns" "$(slirps)"
await healthy && pass "  it is healthy" ||
    fail "  it is not healthy" "$(wb inspect out)"
is "  its ruleset is as it was" \
    "$(wb proof out | awk '$1 == "ruleset" { print $3 }')" "$rules"

# ---- many entries
seq 10000 | sed 's/.*/h&.many.example.org:443,8000/' >"$work/many"
t=$(ms wb create --name many --network allowlist --allow-file "$work/many")
echo "# create with 10,000 entries took $t ms"
box=many
is "10,000 entries" "$(net many | tr , '\n' | grep -c many)" 10000
is "  the last of them" "$(caller name h10000.many.example.org </dev/null)" \
    "0 198.18.0.1"
is "  and none more" "$(caller name h10001.many.example.org </dev/null)" 3
t=$(ms wb network many --remove h10000.many.example.org:443,8000 \
    --add www.example.org)
echo "# one of them changed in $t ms"
is "  that went" "$(caller name h10000.many.example.org </dev/null)" 3
works && pass "  that came" ||
    fail "  www.example.org does not work" "$(wget https://www.example.org/)"
no "and 10,001 are too many" 125 wb network many --add one.more.example.org
is "  is on the record as it is" "$(on_record)" "$(sum many)"

# ---- a neighbour that floods and stalls
ten() { wb exec out -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
	printf "GET / HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n" | /caller tcp www.example.org 80 end | grep -a -e "^= " -e reached; done' </dev/null; }
slowest() {
	printf '%s\n' "$1" | sed -n 's/^= end \([0-9]*\) ms/\1/p' | sort -n |
	    tail -n 1
}
alone=$(ten)
hold=$(wb run many -- /caller hold www.example.org 80 200 | field sessionId)
holds() { [ "$(wb logs many "$hold")" = 200 ]; }
await holds && pass "one has 200 connections that say nothing" ||
    fail "no 200 connections" "$(wb logs many "$hold")"
flood=$(wb run many -- /caller flood www.example.org 80 | field sessionId)
floods() { wb logs many "$flood" | grep -q begins; }
await floods && pass "  and begins as many as it can" ||
    fail "  no flood begins"
beside=$(ten)
[ "$(printf '%s\n' "$beside" | grep -c '^reached')" = 10 ] &&
    pass "its neighbour's requests are all answered" ||
    fail "not all of its neighbour's requests are answered" "$beside"
echo "# the slowest of ten alone: $(slowest "$alone") ms, beside it: $(slowest "$beside") ms"
within "  within a second" "$(slowest "$beside")" 1000
box=many
tell limited '[^ ]+' '[^ ]+' '[^ ]+' '[^ ]+'
box=out

# ---- the one that was never answered
wait "$never"
like "a name server that does not answer: a reset, in the end" \
    "$(cat "$work/never.out")" '^= reset '
is "each daemon has nothing to complain of" \
    "$(grep -E '^(privd|apid|stored|netd|uplinkd|proxyd)\[[0-9]+\]: (fatal|error)' "$work/serve.log" "$work/killed.log" | grep -v 'closed its channel')" ""

# ---- nothing is left
ok "remove" wb rm --grace 0 out many
inet_done
