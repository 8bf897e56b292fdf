#!/bin/sh
# allowlist_debian.sh: what programs need of the network `allowlist', in a
# Debian box in a small internet (see inet_debian.sh): resolvers, curl, wget,
# apt, git, ssh, npm, pip, python3, node, all without a word of a proxy; and
# what they are told of hosts that are not on the list.
. "$(dirname "$0")/inet_debian.sh"

WB_CONF_MORE="$WB_CONF_MORE
egress-pool = 0
egress-connections = 1024"
box_serve
printf '%s.example.org\n' www apt npm pypi four six git:22,80,443 >"$work/list"
sed -i 's/^\(.*\):\(.*\)\.example\.org$/\1.example.org:\2/' "$work/list"
ok "create d" wb create --name d --network allowlist --allow-file "$work/list" \
    --rootfs debian --memory 1073741824 --pids 1000
either="($four|$six)"
prog "nothing says proxy" 0 "env | grep -ci proxy"

# ---- names
is_name='198\.18\.[0-9]+\.[0-9]+'
prog "getent" ok "getent hosts www.example.org | grep -Exq '$is_name +www.example.org' && echo ok"
prog "  of all addresses: one of IPv4" \
    ok "getent ahosts www.example.org | grep STREAM | grep -Exq '$is_name +STREAM www.example.org' && [ \$(getent ahosts www.example.org | grep -c STREAM) = 1 ] && echo ok"
prog "  of IPv6: none" 2 \
    "getent ahostsv6 www.example.org | grep -v ::ffff; getent -s dns ahostsv6 six.example.org >/dev/null; echo 2"
prog "  by TCP" \
    ok "RES_OPTIONS=use-vc getent hosts www.example.org | grep -Eq '^$is_name' && echo ok"
prog "  with one of several search domains" \
    ok "LOCALDOMAIN='corp.example example.org' getent hosts www | grep -Exq '$is_name +www.example.org' && echo ok"
prog "  and ndots" \
    ok "RES_OPTIONS=ndots:5 LOCALDOMAIN='corp.example lan.example' getent hosts www.example.org | grep -Exq '$is_name +www.example.org' && echo ok"
prog "  a name that is not on the list" 2 \
    "getent hosts nowhere.example.org; echo \$?"
dig="dig +tries=1 +time=5"
for o in +notcp +tcp '+edns=0 +bufsize=4096' +noedns +dnssec \
    '+ndots=4 +search'; do
	prog "dig $o" ok "$dig $o +short www.example.org | grep -Exq '$is_name' && echo ok"
done
prog "  AAAA: no answer, no error" "NOERROR 0" \
    "$dig AAAA www.example.org | awk '/status:/ { s = \$6 } /ANSWER:/ { n = \$10 } END { print s + 0 == 0 ? substr(s, 1, length(s) - 1) : s, n + 0 }'"
prog "  not on the list" NXDOMAIN \
    "$dig nowhere.example.org | sed -n 's/.*status: \([A-Z]*\).*/\1/p'"
prog "  another name server" \
    ok "$dig @203.0.113.50 www.example.org >/dev/null 2>&1 || echo ok"
prog "c-ares (node's dns): A" \
    ok "node -e 'require(\"dns\").resolve4(\"www.example.org\", (e, a) => console.log(!e && /^$is_name\$/.test(a[0]) && a.length == 1 ? \"ok\" : e || a))'"
prog "  AAAA" ENODATA \
    "node -e 'require(\"dns\").resolve6(\"www.example.org\", (e, a) => console.log(e ? e.code : a))'"
prog "  not on the list" ENOTFOUND \
    "node -e 'require(\"dns\").resolve4(\"nowhere.example.org\", (e, a) => console.log(e ? e.code : a))'"
if command -v go >/dev/null; then
	cat >"$work/get.go" <<'G'
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); return }
	b, _ := io.ReadAll(r.Body)
	fmt.Print(string(b))
}
G
	CGO_ENABLED=0 go build -o "$work/get" "$work/get.go"
	wb exec d -- sh -c 'cat >/root/get; chmod 755 /root/get' <"$work/get"
	prog "go's own resolver" \
	    ok "./get http://www.example.org/ | grep -Exq '$either' && echo ok"
else
	skip "go's own resolver: no go here"
fi

# ---- curl, wget
for s in http https; do
	prog "curl by $s" \
	    ok "curl -sS $s://www.example.org/ | grep -Exq '$either' && echo ok"
	prog "  a host of IPv4 alone" "$four" "curl -sS $s://four.example.org/"
	prog "  of IPv6 alone, by an address of IPv4" "$six" \
	    "curl -4sS $s://six.example.org/"
	prog "wget by $s" \
	    ok "wget -qO - $s://www.example.org/ | grep -Exq '$either' && echo ok"
	prog "a redirect by $s" "$four" \
	    "curl -sSL $s://www.example.org/to/https://four.example.org/"
done
prog "HTTP/1.0" \
    ok "curl -0sS http://www.example.org/ | grep -Exq '$either' && echo ok"
prog "a HEAD, a 404, a GET in one connection" "200 404 200" \
    "curl -sSI http://www.example.org/apt/Packages -o /dev/null -w '%{http_code} ' --next -sS http://www.example.org/nothing -o /dev/null -w '%{http_code} ' --next -sS http://www.example.org/ -o /dev/null -w '%{http_code}\n'"

# ---- much, long, many
sum=$(curl -sS http://203.0.113.10/big | sha256sum)
for s in http https; do
	prog "100 MB by $s" "$sum" \
	    "curl -sS $s://www.example.org/big | sha256sum"
	prog "50 MB sent by $s" \
	    ok "head -c 50000000 /dev/urandom >up; [ \$(curl -sS -T up -X POST $s://www.example.org/sum) = \$(sha256sum <up | cut -d ' ' -f 1) ] && echo ok; rm up"
	prog "  in chunks" \
	    ok "head -c 5000000 /dev/urandom >up; [ \$(curl -sS -H 'Transfer-Encoding: chunked' -T - -X POST $s://www.example.org/sum <up) = \$(sha256sum <up | cut -d ' ' -f 1) ] && echo ok; rm up"
	prog "200 requests by $s in one connection" "200 of 1" \
	    "curl -sS '$s://www.example.org/port?[1-200]' >ports; echo \$(wc -l <ports) of \$(sort -u ports | wc -l)"
done
cat >"$work/together.py" <<'P'
import asyncio
async def one(n):
    r, w = await asyncio.open_connection('www.example.org', 80)
    w.write(b'GET /together/%d/x HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n' % n)
    text = await r.read()
    w.close()
    return text.endswith(b'together\n')
async def main(n):
    print(sum(await asyncio.gather(*(one(n) for _ in range(n)))))
asyncio.run(main(200))
P
wb exec d -- sh -c 'cat >/root/together.py' <"$work/together.py"
prog "200 connections at a time (python3's asyncio)" 200 "python3 together.py"
cat >"$work/ws.py" <<'P'
import socket, ssl, sys
s = socket.create_connection(('www.example.org', int(sys.argv[1])), 10)
if sys.argv[1] == '443':
    s = ssl.create_default_context().wrap_socket(s, server_hostname='www.example.org')
s.sendall(b'GET /echo HTTP/1.1\r\nHost: www.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
          b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n')
f = s.makefile('rb')
status = f.readline()
while f.readline().strip():
    pass
for i in range(20):
    s.sendall(bytes((0x81, 0x85, 0, 0, 0, 0)) + b'text%c' % (65 + i))
    assert f.read(7) == b'\x81\x05text%c' % (65 + i)
print(status.split()[1].decode(), 'and 20 messages')
P
wb exec d -- sh -c 'cat >/root/ws.py' <"$work/ws.py"
for p in 80 443; do
	prog "a WebSocket on port $p" "101 and 20 messages" "python3 ws.py $p"
done

# ---- python3, node
prog "python3: urllib" "$four" \
    "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://four.example.org/\").read().decode())'"
prog "  requests, as pip has it" "$six" \
    "python3 -c 'from pip._vendor import requests; print(requests.get(\"https://six.example.org/\", verify=\"/etc/ssl/certs/ca-certificates.crt\").text)'"
for s in http https; do
	prog "node: fetch by $s" \
	    ok "node -e 'fetch(\"$s://www.example.org/\").then(r => r.text()).then(t => console.log(/^$either\$/m.test(t) ? \"ok\" : t), e => console.log(e.cause))'"
done

# ---- apt, npm, pip
for s in http https; do
	prog "apt-get update and install by $s" "wbdemo runs, wbneeds runs, installed" "$apt
	echo 'deb [trusted=yes] $s://apt.example.org/apt ./' >/etc/apt/sources.list
	apt-get update && apt-get install -y wbdemo &&
	echo \$(wbdemo), \$(wbneeds), \$(getent passwd wbdemo-user >/dev/null && echo installed)"
	prog "  and purges" gone \
	    "apt-get purge -y wbdemo wbneeds; userdel wbdemo-user; userdel wbneeds-user; command -v wbdemo || echo gone"
	prog "npm install by $s" "demo and needs" \
	    "rm -rf n; mkdir n; cd n; npm install --no-audit --no-fund --no-update-notifier --registry $s://npm.example.org/npm/ wbdemo && node -p 'require(\"wbdemo\")'"
done
prog "pip install" "pip demo" \
    "pip3 install --break-system-packages --no-cache-dir --index-url https://pypi.example.org/simple/ wbdemo && python3 -c 'import wbdemo; print(wbdemo.text)'"

# ---- git, ssh
git_both
ssh_files
prog "ssh" agent "$ssh agent@git.example.org id -un"
prog "scp" 6000000 \
    "cat blob blob >two; scp -q -o BatchMode=yes two agent@git.example.org: && $ssh agent@git.example.org stat -c %s two"
prog "git clone by ssh" one \
    "rm -rf repo; export GIT_SSH_COMMAND='$ssh'; git clone -q agent@git.example.org:repo.git && cat repo/file"
prog "  push" pushed \
    "export GIT_SSH_COMMAND='$ssh'; cd repo && cp ../blob more && git add . && git commit -qm pushed && git push -q && $ssh agent@git.example.org git -C repo.git log -1 --format=%s main"

# ---- what is not on the list, and at once
# refuse TEXT HOST-ANSWERS HOST-COMMAND BOX-SAYS BOX-COMMAND: patterns.  Of
# three the quickest counts, since others use the processors as well.
refuse() {
	[ -z "$3" ] || like "the host: $1" "$(sh -c "$3" 2>&1)" "$2"
	for _ in 1 2 3; do
		out=$(in_box "s=\$EPOCHREALTIME; $5
		e=\$EPOCHREALTIME; echo; echo took \$(((\${e/./} - \${s/./}) / 1000))")
		took=$(printf '%s\n' "$out" | sed -n 's/^took //p')
		[ "${took:-9999}" -ge 1500 ] || break
	done
	printf '%s\n' "$out" | grep -Eq "$4" &&
	    ! printf '%s\n' "$out" | grep -Eq '^reached' &&
	    pass "  the box: not $1" || fail "  the box: $5" "$out"
	[ "${took:-9999}" -lt 1500 ] && pass "    at once ($took ms)" ||
	    fail "    after ${took:-?} ms"
}
curl="curl -gsS --max-time 20"
refuse "a name" "^reached" "$curl http://198.51.100.10/" "curl: \(6\)" \
    "$curl https://unknown.example.org/"
refuse "an address" "^reached" "$curl http://198.51.100.10/" "curl: \(7\)" \
    "$curl http://198.51.100.10/"
refuse "one of IPv6" "^reached" "$curl 'http://[2001:db8:1::10]/'" \
    "curl: \(7\)" "$curl 'http://[2001:db8:1::10]/'"
refuse "a private one" "^reached" "$curl http://10.1.2.3/" "curl: \(7\)" \
    "$curl http://10.1.2.3/"
refuse "a redirect to it" "^reached" \
    "$curl -L http://203.0.113.10/to/http://10.1.2.3/" "curl: \(7\)" \
    "$curl -L http://www.example.org/to/http://10.1.2.3/"
refuse "another Host by http" "" "" "curl: \((52|56)\)" \
    "$curl -H 'Host: unknown.example.org' http://www.example.org/"
refuse "another name by https" "" "" "curl: \((35|56)\)" \
    "$curl --connect-to unknown.example.org:443:www.example.org:443 https://unknown.example.org/"
refuse "another port" "" "" "curl: \((7|35|52|56)\)" \
    "$curl https://www.example.org:22/"
refuse "wget" "" "" "unable to resolve|failed: Name or service" \
    "wget -t 1 -O - http://unknown.example.org/"
refuse "git" "" "" "Could not resolve host" \
    "git ls-remote https://unknown.example.org/git/repo.git"
refuse "ssh" "" "" "Could not resolve hostname" \
    "$ssh agent@unknown.example.org id"
refuse "python3" "" "" "gaierror" \
    "python3 -c 'import urllib.request as u; u.urlopen(\"https://unknown.example.org/\")'"
refuse "node" "" "" "ENOTFOUND" \
    "node -e 'fetch(\"https://unknown.example.org/\").catch(e => console.log(e.cause.code))'"
refuse "apt" "" "" "Could not resolve" \
    "$apt; echo 'deb [trusted=yes] http://unknown.example.org/apt ./' >/etc/apt/sources.list; apt-get -o Acquire::Retries=0 update"

# ---- and each is told
told() { wb denials d | grep -Eq "$1"; }
for d in ' name +unknown\.example\.org ' \
    ' address +- +198\.51\.100\.10 +80 +tcp' ' address +- +10\.1\.2\.3 +80 +tcp' \
    ' http +unknown\.example\.org +- +80 +tcp' \
    ' tls +unknown\.example\.org +- +443 +tcp' \
    ' port +www\.example\.org +- +22 +tcp'; do
	await told "$d" && pass "denials have$d" ||
	    fail "denials lack$d" "$(wb denials d)"
done
is "  with what was missing" "$(wb denials d --suggest |
    grep -cx -e unknown.example.org -e www.example.org:22)" 2
is "  and not what is allowed" \
    "$(wb denials d | grep -Ec ' (four|six|git|npm|apt|pypi)\.example\.org ')" 0
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
