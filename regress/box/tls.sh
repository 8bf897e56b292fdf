#!/bin/sh
# tls.sh: TLS on TCP: what serve refuses, who a client trusts, what is spoken,
# streams that wait, handshakes that stall, another certificate.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || { echo "skip: no openssl"; exit 77; }
T=$work/tls
py() { PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$top/regress/box/tls.py" "$@"; }

# ---- two who sign, and what they have signed
mkdir "$T"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 2>/dev/null; }
ca() {	# name
	key >"$T/$1.key"
	openssl req -x509 -new -key "$T/$1.key" -days 30 -subj "/CN=$1" \
	    -addext 'basicConstraints=critical,CA:TRUE' -out "$T/$1.pem"
}
cat >"$T/ca.conf" <<'END'
[ca]
default_ca = c
[c]
database = $ENV::T/index
serial = $ENV::T/serial
new_certs_dir = $ENV::T
default_md = sha256
policy = p
copy_extensions = copy
[p]
commonName = supplied
END
signed() {	# name ca begin end extension: with the key NAME.key
	[ -e "$T/$1.key" ] || key >"$T/$1.key"
	: >"$T/index"
	printf '%04x\n' "$((serial += 16))" >"$T/serial"
	openssl req -new -key "$T/$1.key" -subj "/CN=$1" -addext "$5" \
	    -out "$T/csr"
	T=$T openssl ca -batch -config "$T/ca.conf" -cert "$T/$2.pem" \
	    -keyfile "$T/$2.key" -startdate "$3" -enddate "$4" -notext \
	    -in "$T/csr" -out "$T/$1.crt" 2>/dev/null
}
serial=16
umask 077
now=$(date +%s)
day() { date -u -d "@$((now + $1 * 86400))" +%Y%m%d%H%M%SZ; }
here=subjectAltName=DNS:localhost,IP:127.0.0.1
ca one
ca two
signed middle one "$(day -1)" "$(day 20)" basicConstraints=critical,CA:TRUE
cp "$T/middle.crt" "$T/middle.pem"
signed good middle "$(day -1)" "$(day 20)" $here
signed next middle "$(day -1)" "$(day 19)" $here
signed old middle "$(day -9)" "$(day -1)" $here
signed early middle "$(day 1)" "$(day 20)" $here
signed other two "$(day -1)" "$(day 20)" $here
signed name middle "$(day -1)" "$(day 20)" subjectAltName=DNS:elsewhere.example.org
for n in good next old early name; do
	cat "$T/$n.crt" "$T/middle.crt" >"$T/$n.chain"
done

# ---- what serve refuses
port=$(free_port "${WB_PORT:-18790}")
WB_TOKEN=$(new_token) WORKBOX_TOKEN=$WB_TOKEN
export WB_TOKEN WORKBOX_TOKEN
check() {	# certificate key
	WB_CONF_MORE="tls-certificate = \"$1\"
tls-key = \"$2\""
	box_conf
	timeout -k 5 20 "$WB_BIN" serve --check --config "$work/workbox.conf" 2>&1
}
refused() {	# what certificate key pattern
	out=$(check "$2" "$3")
	is "serve refuses $1" "$?" 125
	like "  and names the word, the file and what was expected" "$out" \
	    "^workbox serve: tls: $4\$"
}
mkdir -p "$WB_STATE"
is "good files are good" "$(check "$T/good.chain" "$T/good.key")" ""
refused "a certificate that is not there" "$T/none" "$T/good.key" \
    "tls-certificate: $T/none: No such file or directory"
refused "a key that is not there" "$T/good.chain" "$T/none" \
    "tls-key: $T/none: No such file or directory"
refused "a directory" "$T" "$T/good.key" "tls-certificate: $T: Is a directory"
refused "a key in a certificate's place" "$T/good.key" "$T/good.key" \
    "tls-certificate: $T/good.key: expected certificates in PEM"
refused "a certificate in a key's place" "$T/good.chain" "$T/good.chain" \
    "tls-key: $T/good.chain: expected a private key in PEM"
refused "another one's key" "$T/good.chain" "$T/next.key" \
    "tls-key: $T/next.key: it is not the key of the certificate"
cat "$T/middle.crt" "$T/good.crt" >"$T/order"
refused "another order" "$T/order" "$T/middle.key" \
    "tls-certificate: $T/order: certificate 2 has not issued the one before.*"
openssl pkey -in "$T/good.key" -aes128 -passout pass:secret -out "$T/locked"
refused "a key with a passphrase" "$T/good.chain" "$T/locked" \
    "tls-key: $T/locked: expected a key without a passphrase"
head -c 70000 /dev/zero >"$T/large"
refused "a certificate that has no end" "$T/large" "$T/good.key" \
    "tls-certificate: $T/large: File too large"
{ echo '-----BEGIN CERTIFICATE-----'; echo AAAA; echo '-----END CERTIFICATE-----'; } >"$T/broken"
refused "a broken one" "$T/broken" "$T/good.key" \
    "tls-certificate: $T/broken: certificate 1 cannot be read: .*"
openssl req -x509 -newkey rsa:1024 -nodes -days 2 -subj /CN=x \
    -keyout "$T/weak.key" -out "$T/weak" 2>/dev/null
refused "a weak one" "$T/weak" "$T/weak.key" \
    "tls-certificate: $T/weak: the certificate cannot be used: .*too small"
for m in 644 604 660 602; do
	cp "$T/good.key" "$T/mode"
	chmod $m "$T/mode"
	refused "a key of mode $m" "$T/good.chain" "$T/mode" \
	    "tls-key: $T/mode: others than its owner can (read|write) it"
done
chmod 640 "$T/mode"
is "one that its group may read is good" "$(check "$T/good.chain" "$T/mode")" ""
cp "$T/good.chain" "$T/mode"
chmod 646 "$T/mode"
refused "a certificate that others can write" "$T/mode" "$T/good.key" \
    "tls-certificate: $T/mode: others than its owner can write it"
like "one that has expired is told of" "$(check "$T/old.chain" "$T/old.key")" \
    "^workbox serve: warning: tls: tls-certificate: $T/old.chain: it has expired: CN = old, valid until "
like "one that is not valid yet, too" "$(check "$T/early.chain" "$T/early.key")" \
    "warning: tls: tls-certificate: $T/early.chain: it is not valid yet"
out=$(check "$T/good.chain" none)
like "a certificate without a key is refused" "$out" \
    'tls-key: expected the key of tls-certificate, '
like "a key without a certificate, too" "$(check none "$T/good.key")" \
    'tls-certificate: expected the certificate of tls-key, '

# ---- plain HTTP beyond the loopback
plain() {	# address more
	WB_CONF_MORE=${2-}
	box_conf
	timeout -k 5 20 "$WB_BIN" serve --check --config "$work/workbox.conf" \
	    --listen "$1" 2>&1
}
for a in 0.0.0.0:$port "[::]:$port" 192.0.2.1:$port "[::ffff:127.0.0.1]:$port" \
    128.0.0.1:$port; do
	out=$(plain "$a")
	is "plain HTTP on $a is refused" "$?" 125
	like "  and it is said what would do" "$(echo $out)" \
	    'listen: .*: expected a loopback address for plain HTTP .*cure: tls-certificate and tls-key, .*plain-http-beyond-loopback = yes'
	is "  in as many words it is not" \
	    "$(plain "$a" 'plain-http-beyond-loopback = yes')" ""
	is "  nor in TLS" "$(plain "$a" "tls-certificate = \"$T/good.chain\"
tls-key = \"$T/good.key\"")" ""
done
for a in 127.0.0.1:$port 127.9.9.9:$port "[::1]:$port"; do
	is "on $a it is served" "$(plain "$a")" ""
done

# ---- the server
cp "$T/good.chain" "$T/chain"
cp "$T/good.key" "$T/key"
WB_CONF_MORE="tls-certificate = \"$T/chain\"
tls-key = \"$T/key\""
WB_DIRECT=1 WB_SCHEME=https
export WORKBOX_CACERT="$T/one.pem"
box_serve
like "serve tells its URL" "$(cat "$work/serve.log")" \
    "^workbox serve: https://127\.0\.0\.1:$port\$"
like "and its certificate" "$(cat "$work/serve.log")" \
    'apid.* TLS: CN = good, valid until '
ok "the client: create" wb create --name b --network none
is "exec, with input" "$(seq 20000 | wb exec b -- sha256sum)" \
    "$(seq 20000 | sha256sum)"
curl_() { curl -sS --max-time 20 --cacert "$T/one.pem" \
    -H "Authorization: Bearer $WB_TOKEN" "$@"; }
is "curl" "$(curl_ -o /dev/null -w '%{http_code} %{http_version}' \
    "$WB_URL/v1/version")" "200 1.1"
is "curl, a body" "$(curl_ -H 'Content-Type: application/json' -d \
    '{"argv": ["wc", "-c"], "stdin": "abc"}' "$WB_URL/v1/sandboxes/b/exec" |
    field stdout)" '3\n'
is "the unix socket is plain" "$(curl_ --unix-socket "$WB_STATE/api.sock" \
    -o /dev/null -w '%{http_code}' http://localhost/v1/version)" 200
like "who speaks plain HTTP is told" "$(curl_ -i "http://127.0.0.1:$port/")" \
    'here is TLS: ask by https://'
out=$("$WB_BIN" sandbox list --server "http://127.0.0.1:$port" 2>&1)
like "  also by the client" "$out" 'here is TLS: ask by https://'

# ---- whom a client trusts
trusts() {	# what pattern client-options...
	t=$1 p=$2; shift 2
	no "$t is refused by the client" 125 wb list "$@"
	like "  and it says which check failed" "$out" "$p"
}
trusts "another signer" \
    'nobody who is trusted has signed the certificate: --cacert FILE' \
    --cacert "$T/two.pem"
trusts "another name" 'the certificate is for another name' \
    --server "https://name.localhost:$port"
no "a file without certificates is refused" 125 wb list --cacert "$T/large"
like "  by its name" "$out" "$T/large: expected certificates in PEM"
# each in an OpenSSL server: what apid would serve, too
for n in old early; do
	o=$(free_port $((port + 1)))
	(cd "$T" && exec openssl s_server -accept "127.0.0.1:$o" -quiet \
	    -cert "$n.crt" -cert_chain middle.crt -key "$n.key" -www) \
	    >/dev/null 2>&1 &
	s_server=$!
	up() { openssl s_client -connect "127.0.0.1:$o" </dev/null; }
	await up
	trusts "one that is $n" "$([ $n = old ] && echo has expired: the \
	    server || echo not valid yet)" --server "https://127.0.0.1:$o"
	kill "$s_server"
	wait "$s_server" 2>/dev/null
done

# ---- what is spoken
count() {	# what tls.py was asked for
	sed 's/^/# /' "$work/py" | grep -v '^# [on]'
	grep -E '^(ok|not ok) ' "$work/py"
	p=$(grep -c '^ok - ' "$work/py") f=$(grep -c '^not ok - ' "$work/py")
	passed=$((passed + p)) failed=$((failed + f))
	[ "$p" -gt 0 ] || fail "tls.py $1 says nothing" "$(tail -n 5 "$work/py")"
}
py "$port" "$T/one.pem" "$WB_TOKEN" versions >"$work/py" 2>&1
count versions
for v in tls1 tls1_1; do
	out=$(openssl s_client -connect "127.0.0.1:$port" -$v \
	    -cipher DEFAULT@SECLEVEL=0 </dev/null 2>&1)
	like "-$v is refused" "$out" \
	    'alert protocol version|no protocols available|Cipher is \(NONE\)'
done
: >"$work/anew"
{ echo R; await grep -q 'no renegotiation' "$work/anew"; } |
    openssl s_client -connect "127.0.0.1:$port" -tls1_2 >"$work/anew" 2>&1
like "nothing is negotiated anew" "$(cat "$work/anew")" 'no renegotiation'
like "no session is resumed, nothing compressed" "$(openssl s_client \
    -connect "127.0.0.1:$port" -tls1_3 </dev/null 2>&1 | tr '\n' ' ')" \
    'Compression: NONE.*(Early data was not sent|Verification)'

# ---- streams
wb run b --name long -- sh -c 'head -c 67108864 /dev/urandom >/tmp/r
    sha256sum </tmp/r >/tmp/sum; cat /tmp/r' >/dev/null
# what the server has for a client that does not read, and what has come there
sent() { ss -Htni state established "sport = :$port"; }
stuck() {
	sent >"$work/sent"
	awk '$2 > 0 { full = 1 } END { exit !full }' "$work/sent" || return
	moved=$(grep -o 'bytes_acked:[0-9]*' "$work/sent")
	sleep 0.2	# between two looks
	[ -n "$moved" ] &&
	    [ "$(sent | grep -o 'bytes_acked:[0-9]*')" = "$moved" ]
}
slow() {	# reads a part, waits until nothing moves, goes on
	head -c 1000000
	await stuck && : >"$work/was_stuck"
	cat
}
got=$(wb logs b long --follow | slow | sha256sum)
ok "a reader that pauses stops the server's sending" test -e "$work/was_stuck"
is "64 MiB, by a reader that pauses, are whole" "$got" \
    "$(wb exec b -- cat /tmp/sum)"
for what in stream stall garbage half; do
	py "$port" "$T/one.pem" "$WB_TOKEN" $what "$(box_pid apid)" \
	    >"$work/py" 2>&1
	count $what
done

# ---- the key
canary=$(sed -n 2p "$T/good.key")
is "no byte of the key is in the log" "$(grep -c -F "$canary" "$work/serve.log")" 0
a=$(box_pid apid)
is "nor in /proc of apid" "$(cat "/proc/$a/cmdline" "/proc/$a/environ" \
    2>/dev/null | grep -c -a -F "$canary")" 0
is "apid holds no descriptor of it" "$(readlink "/proc/$a/fd"/* |
    grep -c -e memfd:token -e "$T")" 0
is "it makes no core" "$(awk '/^Max core/ { print $5, $6 }' \
    "/proc/$a/limits")" "0 0"

# ---- another certificate, while all goes on
subject() { openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null |
    sed -n 's/^subject=//p'; }
wb run b --name count -- sh -c 'i=0; until [ -e /tmp/end ]; do i=$((i + 1))
    echo $i; usleep 1000; done' >/dev/null
"$WB_BIN" sandbox logs b count --follow >"$work/stream" &
reader=$!
py "$port" "$T/one.pem" "$WB_TOKEN" load "$work/enough" >"$work/py" 2>&1 &
load=$!
await test -s "$work/stream"
for n in next good next; do
	cp "$T/$n.chain" "$T/chain"
	cp "$T/$n.key" "$T/key"
	hup
	is_now() { [ "$(subject)" = "CN = $n" ]; }
	await is_now && pass "SIGHUP: the certificate is $n" ||
	    fail "SIGHUP: it is $(subject), not $n"
done
# what is no good changes nothing, and is told by its name
cp "$T/good.key" "$T/key"
hup
like "another one's key is told" "$(tail -n 8 "$work/serve.log")" \
    "tls-key: $T/key: it is not the key of the certificate"
is "  and the one before is kept" "$(subject)" "CN = next"
cp "$T/next.key" "$T/key"
chmod 644 "$T/key"
hup
like "so is a key that others can read" "$(tail -n 8 "$work/serve.log")" \
    "tls-key: $T/key: others than its owner can read it"
rm "$T/chain"
hup
like "and a file that is gone" "$(tail -n 8 "$work/serve.log")" \
    "tls-certificate: $T/chain: No such file or directory"
is "  and the one before is kept" "$(subject)" "CN = next"
: >"$work/enough"
wait $load
count load
wb exec b -- touch /tmp/end
wait $reader
is "a stream across all of it is whole" "$(awk '$1 != NR { bad = 1 }
    END { print (NR > 100), bad + 0 }' "$work/stream")" "1 0"
set_again
is "daemons that start again have the new one" "$(subject)" "CN = next"
cp "$T/good.chain" "$T/chain"
cp "$T/good.key" "$T/key"
chmod 600 "$T/key"
stop_serve
start_serve "$WB_BIN" --config "$work/workbox.conf"
is "after a restart what is there then" "$(subject)" "CN = good"
ok "by which it is known" wb list
ok "remove" wb rm b --grace 0
box_done
