#!/bin/sh
# egress_debian.sh: what programs need of the network `egress', in a Debian box
# in a small internet (see inet_debian.sh): curl, apt, git, ssh, npm, pip,
# python3, node; and what they do not reach by whatever way, beside what
# answers when the host asks.
. "$(dirname "$0")/inet_debian.sh"

# 300 connections, and for each the lookup of a name
WB_CONF_MORE="$WB_CONF_MORE
egress-connections = 1024"
box_serve
ok "create d" wb create --name d --network egress --rootfs debian \
    --memory 1073741824 --pids 1000

# ---- names
prog "a name with both addresses" "198.51.100.10 2001:db8:1::10" \
    "getent ahosts www.example.org | grep STREAM | cut -d ' ' -f 1 | sort | xargs"
prog "  by TCP as well" "198.51.100.10 2001:db8:1::10" \
    "RES_OPTIONS=use-vc getent ahosts www.example.org | grep STREAM | cut -d ' ' -f 1 | sort | xargs"
prog "a name that there is not" "2" "getent hosts nowhere.example.org; echo \$?"

# ---- curl
for s in http https; do
	prog "curl by $s: a name" "ok" \
	    "curl -sS $s://www.example.org/ | grep -Exq '($four|$six)' && echo ok"
	prog "  of IPv4 alone" "$four" "curl -sS $s://four.example.org/"
	prog "  of IPv6 alone" "$six" "curl -sS $s://six.example.org/"
	prog "  -4" "$four" "curl -4sS $s://www.example.org/"
	prog "  -6" "$six" "curl -6sS $s://www.example.org/"
done
is "the host gets an answer of a server of an unknown CA" \
    "$(curl -ksS --resolve unknown.example.org:443:198.51.100.10 \
    https://unknown.example.org/)" "$four"
prog "  which curl in the box does not trust" 60 \
    "curl -sS https://unknown.example.org/; echo \$?"
prog "  nor python3" CERTIFICATE_VERIFY_FAILED \
    "python3 -c 'import urllib.request; urllib.request.urlopen(\"https://unknown.example.org/\")' 2>&1 | grep -o CERTIFICATE_VERIFY_FAILED | tail -n 1"
prog "  nor node" DEPTH_ZERO_SELF_SIGNED_CERT \
    "node -e 'fetch(\"https://unknown.example.org/\").catch(e => console.log(e.cause.code))'"
prog "a redirect of a public server to another" "$four" \
    "curl -sSL http://four.example.org/to/https://four.example.org/"
prog "a public proxy" "$four" \
    "http_proxy=http://four.example.org:80/ curl -sS http://nowhere.example.org/"
prog "a NAT64 address of a public server" "reached 64:ff9b::c633:640a" \
    "curl -sS http://translated.example.org/"

# ---- much, long, many
sum=$(curl -sS http://203.0.113.10/big | sha256sum)
prog "100 MB by https" "$sum" \
    "curl -4sS https://www.example.org/big | sha256sum"
prog "100 MB by http and IPv6" "$sum" \
    "curl -6sS http://www.example.org/big | sha256sum"
prog "50 MB sent" "ok" \
    "head -c 50000000 /dev/urandom >up; [ \$(curl -sS -T up -X POST https://www.example.org/sum) = \$(sha256sum <up | cut -d ' ' -f 1) ] && echo ok; rm up"
for s in http https; do
	prog "200 requests by $s in one connection" "200 of 1" \
	    "curl -sS '$s://www.example.org/port?[1-200]' >ports; echo \$(wc -l <ports) of \$(sort -u ports | wc -l)"
done
cat >"$work/together.py" <<'P'
import asyncio, socket, sys
# NAME N [FAMILY]: connections at a time; a name that is asked for in one family
# is one question, else two
family = {'4': socket.AF_INET, '6': socket.AF_INET6, '': 0}[''.join(sys.argv[3:])]
async def one(name, n):
    r, w = await asyncio.open_connection(name, 80, family=family)
    w.write(b'GET /together/%d/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' % (n, name.encode()))
    text = await r.read()
    w.close()
    return text.endswith(b'together\n')
async def main(n):
    print(sum(await asyncio.gather(*(one(sys.argv[1], n) for _ in range(n)))))
asyncio.run(main(int(sys.argv[2])))
P
wb exec d -- sh -c 'cat >/root/together.py' <"$work/together.py"
# one that was closed, and a name's lookup, count for some 10 s more
unused() {
	for p in $(slirps); do ls "/proc/$p/fd"; done 2>/dev/null |
	    awk 'END { exit NR > 99 }'
}
await unused
prog "300 connections at a time (python3's asyncio)" 300 \
    "python3 together.py four.example.org 300 4"
await unused && pass "  which are forgotten" || fail "  none is forgotten"
prog "  by IPv6" 300 "python3 together.py six.example.org 300 6"
await unused
prog "240 whose names are asked for in both families" 240 \
    "python3 together.py four.example.org 240"
await unused
cat >"$work/ws.js" <<'J'
const https = require('https'), crypto = require('crypto');
const key = crypto.randomBytes(16).toString('base64');
const want = crypto.createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
const frame = (op, text) => {
	const mask = crypto.randomBytes(4), data = Buffer.from(text);
	data.forEach((b, i) => { data[i] = b ^ mask[i % 4]; });
	return Buffer.concat([Buffer.from([0x80 | op, 0x80 | data.length]), mask, data]);
};
https.get('https://www.example.org/echo', { headers: { Connection: 'Upgrade', Upgrade: 'websocket',
    'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': 13 } }).on('upgrade', (r, s) => {
	if (r.headers['sec-websocket-accept'] !== want)
		throw new Error('not accepted');
	let n = 0, got = Buffer.alloc(0);
	const t0 = Date.now(), send = () => s.write(frame(1, 'message ' + n));
	s.on('data', d => {
		got = Buffer.concat([got, d]);
		if (got.length < 2 || got.length < 2 + got[1])
			return;
		if (got.subarray(2).toString() !== 'message ' + n)
			throw new Error('got ' + got.subarray(2));
		got = Buffer.alloc(0);
		if (++n === 20) {
			console.log(n, Date.now() - t0 >= 20000);
			s.end(frame(8, ''));
		} else
			setTimeout(send, n === 19 ? 18000 : 120);
	});
	send();
});
J
wb exec d -- sh -c 'cat >/root/ws.js' <"$work/ws.js"
prog "a WebSocket for 20 s, most of them silent (node)" "20 true" \
    "timeout 60 node ws.js"

# ---- python3, node
prog "python3: urllib by https" "$four" \
    "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://four.example.org/\").read().decode())'"
prog "  by IPv6" "$six" \
    "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://six.example.org/\").read().decode())'"
for n in four six; do
	prog "python3: UDP to $n" "hello" "python3 -c '
import socket
f, t, p, _, a = socket.getaddrinfo(\"$n.example.org\", 7, type=socket.SOCK_DGRAM)[0]
s = socket.socket(f, t, p); s.settimeout(10); s.sendto(b\"hello\", a); print(s.recv(99).decode())'"
	prog "node: fetch from $n" "ok" \
	    "node -e 'fetch(\"http://$n.example.org/\").then(r => r.text()).then(t => console.log(t.startsWith(\"reached\") ? \"ok\" : t))'"
	prog "  by https" "ok" \
	    "node -e 'fetch(\"https://$n.example.org/\").then(r => r.text()).then(t => console.log(t.startsWith(\"reached\") ? \"ok\" : t), e => console.log(e.cause))'"
done

# ---- apt
for v in 4:http 6:https; do
	s=${v#*:} v=${v%:*}
	prog "apt-get update and install by $s and IPv$v" "wbdemo runs, wbneeds runs, installed" "$apt
	echo 'deb [trusted=yes] $s://apt.example.org/apt ./' >/etc/apt/sources.list
	apt-get -o Acquire::ForceIPv$v=true update && apt-get -o Acquire::ForceIPv$v=true install -y wbdemo &&
	echo \$(wbdemo), \$(wbneeds), \$(getent passwd wbdemo-user >/dev/null && echo installed)"
	prog "  and purges" "gone" \
	    "apt-get purge -y wbdemo wbneeds; userdel wbdemo-user; userdel wbneeds-user; command -v wbdemo || echo gone"
done

# ---- git
git_both
prog "git fetch by IPv6" one \
    "rm -rf repo; git -c http.version=HTTP/1.1 clone -6 -q https://git.example.org/git/repo.git && cat repo/file"

# ---- ssh
ssh_files
prog "ssh" "agent" "$ssh agent@git.example.org id -un"
prog "scp" "6000000" \
    "cat blob blob >two; scp -q -o BatchMode=yes two agent@git.example.org: && $ssh agent@git.example.org stat -c %s two"
for v in 4 6; do
	prog "git clone by ssh and IPv$v" one \
	    "rm -rf repo; export GIT_SSH_COMMAND='$ssh -$v'; git clone -q agent@git.example.org:repo.git && cat repo/file"
	prog "  push" "v$v" \
	    "export GIT_SSH_COMMAND='$ssh -$v'; cd repo && cp ../blob v$v && git add . && git commit -qm v$v && git push -q && $ssh agent@git.example.org git -C repo.git log -1 --format=%s main"
done
prog "a forwarded port" "$four" \
    "$ssh -f -N -o ExitOnForwardFailure=yes -L 8080:198.51.100.10:80 agent@git.example.org && curl -sS http://127.0.0.1:8080/; pkill -x ssh"

# ---- npm, pip
prog "npm install" "demo and needs" \
    "rm -rf n; mkdir n; cd n; npm install --no-audit --no-fund --no-update-notifier --registry https://npm.example.org/npm/ wbdemo && node -p 'require(\"wbdemo\")'"
prog "npm install by http" "demo and needs" \
    "rm -rf n; mkdir n; cd n; npm install --no-audit --no-fund --no-update-notifier --registry http://npm.example.org/npm/ wbdemo && node -p 'require(\"wbdemo\")'"
prog "pip install" "pip demo" \
    "pip3 install --break-system-packages --no-cache-dir --index-url https://pypi.example.org/simple/ wbdemo && python3 -c 'import wbdemo; print(wbdemo.text)'"

# ---- what is refused, and at once
# refuse TEXT HOST-ANSWERS HOST-COMMAND BOX-SAYS BOX-COMMAND: patterns.  Of
# three the quickest counts, since others use the processors as well.
refuse() {
	like "the host: $1" "$(sh -c "$3" 2>&1)" "$2"
	for _ in 1 2 3; do
		out=$(in_box "s=\$EPOCHREALTIME; $5
		e=\$EPOCHREALTIME; echo; echo took \$(((\${e/./} - \${s/./}) / 1000))")
		took=$(printf '%s\n' "$out" | sed -n 's/^took //p')
		[ "${took:-9999}" -ge 1500 ] || break
	done
	printf '%s\n' "$out" | grep -Eq "$4" && ! printf '%s\n' "$out" | grep \
	    -Eq "$2" && pass "  the box: not" || fail "  the box: $5" "$out"
	[ "${took:-9999}" -lt 1500 ] && pass "    at once ($took ms)" ||
	    fail "    after ${took:-?} ms"
}
curl="curl -gsS --max-time 20"
not="curl: \(7\) "
refuse "a redirect to the metadata server" "^reached 169\.254" \
    "$curl -L http://203.0.113.10/to/http://169.254.169.254/" \
    "$not" "$curl -L http://www.example.org/to/http://169.254.169.254/"
refuse "a redirect to itself, from https" "^reached 203\.0\.113\.2" \
    "$curl -kL https://203.0.113.10/to/http://203.0.113.2/" \
    "$not" "$curl -L https://www.example.org/to/http://203.0.113.2/"
# name, address
for n in inside:10.1.2.3 inside6:[fd12::1] metadata:169.254.169.254 \
    host:203.0.113.2 loopback:127.0.0.1 \
    nat64:[64:ff9b::a9fe:a9fe] nat64host:[64:ff9b::cb00:7102] \
    sixtofour:[2002:a01:203::1] mapped:[::ffff:10.1.2.3]; do
	refuse "${n#*:}, which ${n%%:*}.example.org is" "^reached " \
	    "$curl http://${n#*:}/" \
	    "$not" "$curl http://${n%%:*}.example.org/"
	refuse "  by https" "^reached " "$curl -k https://${n#*:}/" \
	    "$not" "$curl https://${n%%:*}.example.org/"
done
refuse "10.1.2.3 as one number" "^reached 10\.1\.2\.3" \
    "$curl http://167838211/" "$not" "$curl http://167838211/"
prog "a name is public at first" "$four" "$curl http://rebind.example.org/"
refuse "and then it is 10.1.2.3" "^reached 10\.1\.2\.3" \
    "$curl http://10.1.2.3/" "$not" "$curl http://rebind.example.org/"
refuse "itself as a proxy" "^reached 203\.0\.113\.2" \
    "http_proxy=http://203.0.113.2:80/ $curl http://www.example.org/" \
    "$not" "http_proxy=http://203.0.113.2:80/ $curl http://www.example.org/"
refuse "  by name, for https" "no such|50[01]|40[0-9]" \
    "https_proxy=http://203.0.113.2:80/ $curl https://www.example.org/" \
    "$not" \
    "https_proxy=http://host.example.org:80/ $curl https://www.example.org/"
refuse "a repository at 10.1.2.3" "refs/heads/main" \
    "git ls-remote http://10.1.2.3/git/repo.git" \
    "[Cc]onnect" "git ls-remote http://10.1.2.3/git/repo.git"
refuse "one that is moved there" "refs/heads/main" \
    "git ls-remote http://203.0.113.10/moved/repo.git" \
    "[Cc]onnect" "git ls-remote https://git.example.org/moved/repo.git"
refuse "ssh at 10.1.2.3" "^SSH-2" \
    "$curl telnet://10.1.2.3:22 --max-time 2 </dev/null | head -n 1" \
    "port 22: " "$ssh agent@inside.example.org id"
refuse "packages at 10.1.2.3" "^Package: wbdemo" \
    "$curl http://10.1.2.3/apt/Packages" \
    "[Cc]ould not connect|Unable to connect" \
    "$apt; echo 'deb [trusted=yes] http://10.1.2.3/apt ./' >/etc/apt/sources.list; apt-get -o Acquire::Retries=0 update"
refuse "10.1.2.3, by python3" "^reached " \
    "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://10.1.2.3/\").read().decode())'" \
    "ConnectionRefusedError" \
    "python3 -c 'import asyncio; asyncio.run(asyncio.open_connection(\"10.1.2.3\", 80))'"
refuse "10.1.2.3, by node" "^reached " "$curl http://10.1.2.3/" \
    "ECONNREFUSED" \
    "node -e 'fetch(\"http://10.1.2.3/\").then(r => r.text()).then(console.log, e => console.log(e.cause.code))'"

# ---- other name servers
cat >"$work/ask.py" <<'P'
import socket, struct, sys
server, kind = sys.argv[1:]
query = struct.pack('!HHHHHH', 7, 0x100, 1, 0, 0, 0) + b'\x04four\x07example\x03org\0' + struct.pack('!HH', 1, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == 'udp' else socket.SOCK_STREAM)
s.settimeout(10)
s.connect((server, 53))
s.sendall(query if kind == 'udp' else struct.pack('!H', len(query)) + query)
print('answer', '.'.join(str(b) for b in s.recv(2048)[-4:]))
P
wb exec d -- sh -c 'cat >/root/ask.py' <"$work/ask.py"
for k in udp tcp; do
	prog "a public name server by $k" "answer 198.51.100.10" \
	    "python3 ask.py 203.0.113.50 $k"
	for a in 203.0.113.2 10.1.2.3; do
		refuse "a name server at $a by $k" "^answer 198.51.100.10" \
		    "python3 $work/ask.py $a $k" \
		    "PermissionError|ConnectionRefusedError" \
		    "python3 ask.py $a $k"
	done
done

# ---- and each is told
told() { wb denials d | grep -Eq "$1"; }
for d in 'sealed +169\.254\.169\.254 +80 +tcp' 'sealed +10\.1\.2\.3 +80 +tcp' \
    'sealed +10\.1\.2\.3 +443 +tcp' \
    'sealed +10\.1\.2\.3 +22 +tcp' 'sealed +10\.1\.2\.3 +53 +udp' \
    'sealed +10\.1\.2\.3 +53 +tcp' 'sealed +fd12::1 +80 +tcp' \
    'host +203\.0\.113\.2 +80 +tcp' 'host +203\.0\.113\.2 +53 +udp' \
    'host +203\.0\.113\.2 +53 +tcp' 'host +2001:db8:1::2 +443 +tcp' \
    'sealed +64:ff9b::a9fe:a9fe +80 +tcp' 'host +64:ff9b::cb00:7102 +80 +tcp' \
    'sealed +2002:a01:203::1 +80 +tcp'; do
	await told "$d" && pass "denials have $d" ||
	    fail "denials lack $d" "$(wb denials d)"
	like "  in the box as well" "$(wb exec d -- wb denials)" "$d"
done
is "  and not what is allowed" "$(wb denials d | grep \
    -Ec '198\.51\.100|203\.0\.113\.(10|50)|2001:db8:1::10|64:ff9b::c633')" 0
healthy() { [ "$(wb inspect d | field health)" = HEALTHY ]; }
await healthy && pass "the box is healthy" ||
    fail "not healthy" "$(wb inspect d)"
for d in privd apid stored netd uplinkd proxyd; do
	is "$d has nothing to complain of" \
	    "$(grep -E "^$d\[[0-9]+\]: (fatal|error)" "$work/serve.log")" ""
done

# ---- nothing is left
ok "remove d" wb rm --grace 0 d
inet_done
