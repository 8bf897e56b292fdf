#!/usr/bin/python3
"""server.py ECHO CORPUS: the HTTP server of apid, with the handlers of
echo.c, from the outside: the corpus on real connections, slow and greedy
clients, limits, streams, clients that go, and a graceful stop."""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from judge import read_corpus

ECHO, CORPUS = sys.argv[1:3]
KEY = b"Authorization: Bearer secret\r\n"
JSON = b"Content-Type: application/json\r\n"
# a sanitizer keeps what is freed: memory is then no measure
SANITIZED = b"__asan_init" in open(ECHO, "rb").read()
failed = 0
started = []


def check(text, ok, *more):
    global failed
    print("%s - %s" % ("ok" if ok else "not ok", text))
    if not ok:
        failed += 1
        for m in more:
            print("#   %.600r" % (m,))


class TLSSocket(ssl.SSLSocket):
    def shutdown(self, how):    # the socket's, not to be deaf in TLS
        socket.socket.shutdown(self, how)


class Server:
    """One http_echo on a unix socket, on TCP, or on TCP in TLS."""
    def __init__(self, *options, tcp=False, tls=None):
        self.tls = None
        if tls:
            self.tls = ssl.create_default_context(cafile=tls)
            self.tls.sslsocket_class = TLSSocket
            options, tcp = ["-t", tls, *options], True
        self.dir = tempfile.TemporaryDirectory(prefix="wb-http.")
        self.path = self.dir.name + "/s"
        where = ["tcp", "0"] if tcp else ["unix", self.path]
        self.log = open(self.dir.name + "/log", "w+")
        self.p = subprocess.Popen([ECHO, *options, *where],
                                  stdout=subprocess.PIPE, stderr=self.log)
        started.append(self.p)
        line = self.p.stdout.readline().strip()
        self.port = int(line) if tcp else None

    def connect(self, timeout=20, plain=False):
        s = socket.socket(socket.AF_INET if self.port else socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(("127.0.0.1", self.port) if self.port else self.path)
        if not self.tls or plain:
            return s
        # the socket's end alone is none in TLS, and raises
        return self.tls.wrap_socket(s, server_hostname="localhost",
                                    suppress_ragged_eofs=False)

    def talk(self, data, shut=False):
        """All that comes until the server closes."""
        with self.connect() as s:
            def send():
                try:
                    s.sendall(data)
                    if shut:
                        s.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
            t = threading.Thread(target=send)
            if self.tls:
                t.run()     # one thread at a time is in OpenSSL
            else:
                t.start()
            got = bytearray()
            try:
                while True:
                    d = s.recv(65536)
                    if not d:
                        break
                    got += d
            except (socket.timeout, ConnectionResetError,
                    ssl.SSLEOFError) as e:
                got += b"<%s>" % type(e).__name__.encode()
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            if not self.tls:
                t.join()
        return bytes(got)

    def get(self, path, *fields):
        """One request, one answer."""
        got = answers(self.talk(request("GET", path, *fields, close=True)))
        return got[0] if got else None

    def counts(self):
        return self.get("/healthz")[2]

    def await_counts(self, **want):
        """The state of the server, asked until it is so."""
        for _ in range(400):
            got = self.counts()
            if all(got[k] == v for k, v in want.items()):
                return True
            time.sleep(0.02)    # the pace of asking
        return got

    def memory(self):
        text = open("/proc/%d/status" % self.p.pid).read()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) * 1024

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        code = self.p.wait(20)
        self.log.seek(0)
        text = self.log.read()
        self.dir.cleanup()
        return code, text


def request(method, path, *fields, body=None, close=False, host="localhost"):
    head = b"%s %s HTTP/1.1\r\nHost: %s\r\n" % (
        method.encode(), path.encode(), host.encode())
    head += b"".join(f if isinstance(f, bytes) else f.encode() + b"\r\n"
                     for f in fields)
    if body is not None:
        head += b"Content-Length: %d\r\n" % len(body)
    return head + (b"Connection: close\r\n" if close else b"") + b"\r\n" + (
        body or b"")


def rest(c):
    """All that comes until the other side ends."""
    got = bytearray()
    while True:
        d = c.recv(1 << 16)
        if not d:
            return bytes(got)
        got += d


def answers(data):
    """[(status, fields, body)]: JSON bodies parsed, chunks joined; a rest
    that is no answer becomes (None, {}, rest)."""
    out = []
    while data:
        m = re.match(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n",
                     data)
        if not m:
            out.append((None, {}, data))
            break
        status, data = int(m.group(1)), data[m.end():]
        fields = {}
        for line in m.group(2).split(b"\r\n")[:-1]:
            k, v = line.split(b": ", 1)
            fields[k.decode().lower()] = v.decode()
        if status == 100:
            out.append((100, fields, b""))
            continue
        if "transfer-encoding" in fields:
            body, data = unchunk(data)
        else:
            n = int(fields.get("content-length", "0"))
            body, data = data[:n], data[n:]
        if "json" in fields.get("content-type", "") and body and \
                "ndjson" not in fields["content-type"]:
            body = json.loads(body)
        out.append((status, fields, body))
    return out


def unchunk(data):
    parts, at, size = [], 0, re.compile(rb"([0-9a-f]+)\r\n")
    while True:
        m = size.match(data, at)
        if not m:
            return b"".join(parts) + b"<cut>", b""
        n, at = int(m.group(1), 16), m.end()
        parts.append(data[at:at + n])
        at += n + 2
        if n == 0:
            return b"".join(parts), data[at:]


# ---- the corpus ------------------------------------------------------------------

PARSER = {400, 413, 414, 417, 431, 501, 505}


def test_corpus(s):
    for name, kind, data, why in read_corpus(CORPUS):
        got = answers(s.talk(data, shut=True))
        final = [a for a in got if a[0] != 100]
        if kind == "good":
            # a boundary for the last message: others are refused by routes
            bad = [a for a in final if a[0] is None or a[0] in PARSER - {400}
                   or (a[0] == 400 and "body" not in str(a[2]) and
                       "parameter" not in str(a[2]))]
            n = 3 if name == "good-pipelined" else \
                2 if name == "good-pipelined-chunked" else 1
            # a refused body closes: what follows is not looked at
            check("corpus: " + name, not bad and 1 <= len(final) <= n, got)
            continue
        refused = [a for a in final if a[0] in PARSER or a[0] is None]
        if name in ("a25-version-09", "a36-truncated-line",
                    "a36-truncated-fields", "a26-line-tls") and not final:
            check("corpus: " + name, True)     # the client went before its end
        elif "truncated-body" in name or "too-large-for-body" in name or \
                name == "a24-no-last-chunk":
            check("corpus: " + name, len(final) <= 1 and
                  all(a[0] >= 400 for a in final), got)
        else:
            # what a body is wrong in may already be refused by its route
            ok = len(refused) <= 1 and final and final[-1][0] is not None \
                and final[-1][0] >= 400 and \
                final[-1][1].get("connection") == "close"
            many = 2 if name == "a35-smuggle-second-bad" or \
                name == "a35-smuggle-extra-crlf" else 1
            check("corpus: " + name, ok and len(final) <= many, got)


# ---- one request ------------------------------------------------------------------

def test_answers(s):
    st, f, b = s.get("/healthz")
    check("healthz", st == 200 and b["conns"] == 1)
    check("security fields", f["cache-control"] == "no-store" and
          f["x-content-type-options"] == "nosniff" and
          "frame-ancestors 'none'" in f["content-security-policy"] and
          re.match(r"[0-9A-Z]{26}$", f["x-request-id"]) and "date" in f and
          "server" not in f, f)
    st, f, b = s.get("/v1/version")
    check("no key: 401", st == 401 and b["code"] == "unauthorized" and
          f["www-authenticate"].startswith("Bearer") and
          f["content-type"] == "application/problem+json" and
          b["requestId"] == f["x-request-id"], f, b)
    st, f, b = s.get("/nothing", KEY)
    check("unknown path: 404", st == 404 and b["code"] == "not-found")
    st, f, b = s.get("/v1/sandboxes/", KEY)
    check("slash at the end: 404", st == 404)
    st, f, b = s.get("/v1/sandboxes/a%2fb", KEY)
    check("slash in an id: 404", st == 404)
    st, f, b = s.get("/v1/sandboxes/" + "a" * 64, KEY)
    check("id of 64 bytes: 404", st == 404)
    st, f, b = s.get("/v1/%73andboxes", KEY)
    check("a fixed segment has one spelling", st == 404)
    st, f, b = s.get("/v1/sandboxes/%61b-._9/sessions/X", KEY)
    check("members of a path are decoded", st == 200 and b["id"] == "ab-._9"
          and b["sid"] == "X", b)
    got = answers(s.talk(request("PUT", "/v1/sandboxes", close=True)))[0]
    check("405 names the methods", got[0] == 405 and
          got[1]["allow"] == "GET, HEAD, POST", got)
    raw = s.talk(request("HEAD", "/healthz", close=True))
    check("HEAD: a length and no body", re.search(
        rb"Content-Length: [1-9]\d*\r\n\r\n$", raw), raw)
    raw = s.talk(request("HEAD", "/v1/events", KEY, close=True))
    check("HEAD of a stream: a head", raw.endswith(b"chunked\r\n\r\n"), raw)
    st, f, b = s.get("/healthz", "Idempotency-Key: ")
    check("Idempotency-Key says nothing where nothing is made", st == 200, b)
    raw = s.talk(b"GET /healthz HTTP/1.0\r\nHost: a\r\n"
                 b"Connection: keep-alive\r\n\r\n")
    check("HTTP/1.0: closed after the answer", answers(raw)[0][0] == 200 and
          b"Connection: close" in raw, raw)
    raw = s.talk(b"GET /v1/events?limit=2 HTTP/1.0\r\nHost: a\r\n" + KEY +
                 b"\r\n")
    check("HTTP/1.0: a stream without chunks", b"chunked" not in raw and
          raw.split(b"\r\n\r\n", 1)[1] == 2 * (999 * b"x" + b"\n"))


def test_query(s):
    def q(text):
        return s.get("/v1/sandboxes?" + text, KEY)
    st, f, b = q("label=a%3Db&label=c+d&limit=5&name=%C3%A4")
    check("query: decoded", st == 200 and b["query"] == {
        "label": "a=b", "limit": "5", "name": "\u00e4"}, b)
    for text, field in [
            ("bogus=1", "bogus"), ("limit=0", "limit"),
            ("limit=1001", "limit"), ("limit=", "limit"),
            ("limit=+5", "limit"), ("limit=-5", "limit"),
            ("limit=5a", "limit"), ("limit=0x5", "limit"),
            ("limit=99999999999999999999", "limit"),
            ("limit=18446744073709551621", "limit"), ("limit", "limit"),
            ("limit=5&limit=5", "limit"), ("name=" + "a" * 64, "name"),
            ("=1", None), ("name=%ff", None), ("name=%0a", None),
            ("limit=5&", None), ("&".join(["label=a"] * 17), "label")]:
        st, f, b = q(text)
        check("query: %s is refused" % text[:30], st == 400 and
              b.get("field") == field, b)


def post(s, path, body, *fields, chunked=None):
    if chunked:
        data = request("POST", path, KEY, *fields,
                       "Transfer-Encoding: chunked", close=True)
        for i in range(0, len(body), chunked):
            part = body[i:i + chunked]
            data += b"%x\r\n%s\r\n" % (len(part), part)
        data += b"0\r\n\r\n"
    else:
        data = request("POST", path, KEY, *fields, body=body, close=True)
    got = answers(s.talk(data))
    return got[0] if len(got) == 1 else (None, {}, got)


def test_bodies(s):
    def create(body, *more, **kw):
        return post(s, "/v1/sandboxes", body, *(more or (JSON,)), **kw)
    good = b'{"name":"a","limits":{"pids":400,"cpus":0.5},"env":{"A":"b"}}'
    st, f, b = create(good)
    check("JSON", st == 200 and b["json"] == json.loads(good), b)
    st, f, b = create(good, chunked=1)
    check("JSON in chunks of one", st == 200 and
          b["json"] == json.loads(good), b)
    st, f, b = create(b"{}", b"content-type: Application/JSON;charset=UTF-8\r\n")
    check("content type with parameters", st == 200)
    for ct in (b"", b"Content-Type: text/plain\r\n",
               b"Content-Type: application/jsonx\r\n"):
        st, f, b = create(b"{}", ct)
        check("content type %r: 415" % ct, st == 415 and
              b["field"] == "Content-Type", b)
    st, f, b = create(b"{}", JSON, "Content-Encoding: gzip")
    check("content encoding: 415", st == 415)
    for body, field in [
            (b"", None), (b" ", None), (b"{", None), (b"[]", None),
            (b"null", None), (b'"a"', None), (b"{} {}", None), (b"{}x", None),
            (b"\xef\xbb\xbf{}", None), (b"NaN", None),
            (b'{"limits":{"cpus":NaN}}', None),
            (b'{"limits":{"cpus":Infinity}}', None),
            (b'{"limits":{"cpus":1e999}}', None),
            (b'{"limits":{"cpus":0.001}}', "limits.cpus"),
            (b'{"limits":{"cpus":"1"}}', "limits.cpus"),
            (b'{"limits":{"pids":1.5}}', "limits.pids"),
            (b'{"limits":{"pids":99999999999999999999}}', None),
            (b'{"limits":{"memoryBytes":-1}}', "limits.memoryBytes"),
            (b'{"limits":{"pids":400,"x":1}}', "limits.x"),
            (b'{"limits":[]}', "limits"), (b'{"limits":null}', "limits"),
            (b'{"name":"a","name":"b"}', "name"), (b'{"nam":"a"}', "nam"),
            (b'{"name":"A"}', "name"), (b'{"name":""}', "name"),
            (b'{"name":"%s"}' % (b"a" * 64), "name"), (b'{"name":1}', "name"),
            (b'{"name":"a\\u0000"}', None), (b'{"name":"\\ud800"}', None),
            (b'{"name":"\xff"}', None), (b'{"name":"a\n"}', None),
            (b"{'name':'a'}", None), (b'{"name":"a",}', None),
            (b'{"network":7}', "network"),
            (b'{"labels":{"a":1}}', "labels.a"),
            (b'{"labels":{"a b":"c"}}', "labels.a b"),
            (b'{"labels":{"a":"\\u0001"}}', "labels.a"),
            (b'{"labels":{%s}}' % b",".join(
                b'"l%d":""' % i for i in range(65)), "labels"),
            (b'{"env":{"1A":"b"}}', "env.1A"),
            (b'{"env":{"A=":"b"}}', "env.A="),
            (b"[" * 100000, None), (b'{"a":' * 40000, None),
            (b"// c\n{}", None)]:
        st, f, b = create(body)
        check("JSON %.40r is refused" % body, st == 400 and
              b["code"] == "bad-request" and b.get("field") == field, b)
    for body, field in [
            (b"{}", "argv"), (b'{"argv":[]}', "argv"),
            (b'{"argv":"ls"}', "argv"), (b'{"argv":["a",1]}', "argv[1]"),
            (b'{"argv":["a"],"cwd":"tmp"}', "cwd"),
            (b'{"argv":["a"],"cwd":""}', "cwd"),
            (b'{"argv":["a"],"timeoutSeconds":0}', "timeoutSeconds"),
            (b'{"argv":["a"],"stdinOpen":1}', "stdinOpen")]:
        st, f, b = post(s, "/v1/sandboxes/a/exec", body, JSON)
        check("exec %r is refused" % body, st == 400 and
              b.get("field") == field, b)
    st, f, b = post(s, "/v1/sandboxes/a/exec",
                    b'{"argv":["a"],"cwd":"/","cwd":"/tmp"}', JSON)
    check("a member that stands twice is refused", st == 400, b)
    for sig, want in [(b"15", 204), (b'"TERM"', 204), (b'"SIGRTMIN+1"', 204),
                      (b"0", 400), (b"65", 400), (b'"term"', 400),
                      (b"null", 400)]:
        st, f, b = post(s, "/v1/sandboxes/a/sessions/b/signal",
                        b'{"signal":%s}' % sig, JSON)
        check("signal %s: %d" % (sig.decode(), want), st == want, b)
    st, f, b = create(b" " * 524288)
    check("body at the cap is read", st == 400, b)
    for kw in ({}, {"chunked": 50000}):
        st, f, b = create(b" " * 524289, **kw)
        check("body above the cap: 413 %s" % kw, st == 413 and
              b["code"] == "body-too-large" and
              f["connection"] == "close", b)
    got = answers(s.talk(request("POST", "/v1/sandboxes", KEY, JSON,
                                 "Content-Length: 2147483648") + b"x"))
    check("2 GiB announced: 413 at once", len(got) == 1 and got[0][0] == 413)
    st, f, b = post(s, "/v1/sandboxes/a/sessions/b/stdin?offset=3&eof=1",
                    bytes(range(256)) * 4096)
    check("raw body of 1 MiB", st == 200 and b["bodyLen"] == 1 << 20, b)
    st, f, b = post(s, "/v1/sandboxes/a/sessions/b/stdin", b"a")
    check("a parameter that is required", st == 400 and
          b["field"] == "offset", b)
    st, f, b = post(s, "/v1/sandboxes/a/sessions/b/stdin?offset=0", b"")
    check("raw body of none", st == 200 and b["bodyLen"] == 0, b)
    got = answers(s.talk(request("GET", "/healthz", body=b"abc")))
    check("a body where there is none: 400", len(got) == 1 and
          got[0][0] == 400, got)
    got = answers(s.talk(request("GET", "/healthz", body=b"", close=True)))
    check("an empty body where there is none", got[0][0] == 200)
    got = answers(s.talk(request("GET", "/healthz",
                                 "Transfer-Encoding: chunked")))
    check("a body in chunks where there is none: 400 at once",
          len(got) == 1 and got[0][0] == 400, got)
    big = b"x" * (1 << 23)
    got = answers(s.talk(request("POST", "/v1/sandboxes", JSON, body=big)))
    check("401 is heard before 8 MiB are sent", len(got) == 1 and
          got[0][0] == 401, got)


def test_expect(s):
    with s.connect() as c:
        c.sendall(request("POST", "/v1/sandboxes", KEY, JSON,
                          "Expect: 100-continue", "Content-Length: 2"))
        first = c.recv(1000)
        check("100 Continue", first == b"HTTP/1.1 100 Continue\r\n\r\n",
              first)
        c.sendall(b"{}")
        check("and then the answer", c.recv(4000).startswith(
            b"HTTP/1.1 200 "))
        c.sendall(request("POST", "/v1/sandboxes", JSON,
                          "Expect: 100-continue", "Content-Length: 2"))
        got = c.recv(4000)
        check("no 100 before a refusal", got.startswith(b"HTTP/1.1 401 "))


# ---- Host, Origin, proxies ------------------------------------------------------------

def test_hosts():
    s = Server("-a", "box.example", "-p", "127.0.0.0/8", tcp=True)

    def ask(host, *fields):
        got = answers(s.talk(request("GET", "/healthz", *fields, host=host,
                                     close=True)))
        return got[0][0], got[0][2].get("code")
    for host in ("localhost", "LOCALHOST:8790", "127.0.0.1:1", "[::1]",
                 "[::1]:8790", "box.example", "Box.Example:443"):
        check("Host %s" % host, ask(host) == (200, None), ask(host))
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.nip.io",
                 "127.0.0.2", "0.0.0.0", "[::]", "box.example.", "localhost."):
        check("Host %s: 421" % host, ask(host) == (421, "host-refused"),
              ask(host))
    same = ask("localhost:8790", "Origin: http://localhost:8790")
    check("Origin of our own", same == (200, None), same)
    for origin in ("http://evil.example", "null", "http://localhost:8791",
                   "http://p3000-x.localhost:8790", "ftp://localhost:8790",
                   "http://localhost:8790.evil", "http://localhost:8790/",
                   "localhost:8790", ""):
        got = ask("localhost:8790", "Origin: " + origin)
        check("Origin %r: 403" % origin, got == (403, "origin-refused"), got)

    def peer(*lines):
        return s.get("/v1/version", KEY, *lines)[2]["peer"]
    check("peer", re.match(r"127\.0\.0\.1:\d+$", peer()))
    f = "X-Forwarded-For: "
    for lines, want in [
            ([f + "192.0.2.1"], "192.0.2.1"),
            ([f + "198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            ([f + "192.0.2.1, 127.0.0.9"], "192.0.2.1"),
            ([f + "192.0.2.1", f + "127.0.0.9"], "192.0.2.1"),
            ([f + "2001:db8::1"], "2001:db8::1"),
            ([f + "[2001:db8::1]:80"], "2001:db8::1"),
            ([f + "192.0.2.1:80"], "192.0.2.1"),
            ([f + "192.0.2.1, unknown"], "127.0.0.1:"),
            ([f + "192.0.2.1,,127.0.0.9"], "127.0.0.9"),
            ([f + ""], "127.0.0.1:")]:
        got = peer(*lines)
        check("peer by %r" % lines, got == want or
              (want.endswith(":") and got.startswith(want)), got)
    raw = s.talk(b"GET /v1/events?limit=2&after=1 HTTP/1.0\r\n"
                 b"Host: localhost\r\n" + KEY + b"\r\n")
    check("HTTP/1.0: a cut stream is reset", raw.endswith(
        b"<ConnectionResetError>"), raw[-100:])
    end(s)
    s = Server(tcp=True)
    got = s.get("/v1/version", KEY, f + "192.0.2.1")[2]["peer"]
    check("X-Forwarded-For of nobody we trust", got.startswith("127.0.0.1:"))
    end(s)
    s = Server()
    got = answers(s.talk(request("GET", "/v1/version", KEY, host="anything",
                                 close=True)))[0]
    check("unix socket: any Host, peer by uid", got[0] == 200 and
          got[2]["peer"] == "unix:uid=%d" % os.getuid(), got)
    end(s)


# ---- connections ---------------------------------------------------------------------------

def test_pipeline(s):
    n = 1000
    one = [request("GET", "/v1/sandboxes/i%d" % i, KEY, close=i == n - 1)
           for i in range(n)]
    before = s.memory()
    got = answers(s.talk(b"".join(one)))
    check("1,000 in a pipeline, in order", len(got) == n and
          [a[2]["id"] for a in got] == ["i%d" % i for i in range(n)],
          len(got))
    with s.connect() as c:      # does not read
        c.settimeout(0.3)
        sent = 0
        try:
            while sent < 200000000:
                sent += c.send(one[0] * 100)
        except socket.timeout:
            pass
        grown = s.memory() - before
        check("one who does not read is not read either: %d KiB sent, "
              "%d KiB more memory" % (sent // 1024, grown // 1024),
              sent < 100000000 and (SANITIZED or grown < 4 << 20))
    with s.connect() as c:
        c.sendall(one[0] + one[1][:20])
        a = c.recv(4000)
        c.sendall(one[1][20:])
        b = c.recv(4000)
        check("half a request behind another", b'"id":"i0"' in a and
              b'"id":"i1"' in b, a, b)
    with s.connect() as c:
        for i in range(50):
            c.sendall(one[i])
            got = c.recv(4000)
            if b'"id":"i%d"' % i not in got:
                break
        check("50 over one connection", i == 49, got)
    with s.connect() as c:
        for x in [bytes([b]) for b in one[7]]:
            c.sendall(x)
        check("byte by byte", b'"id":"i7"' in c.recv(4000))


def test_slow():
    s = Server("-h", "300", "-b", "300", "-i", "300")
    t = time.monotonic()
    got = s.talk(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
    check("slow head: 408", answers(got)[0][0] == 408 and
          0.25 < time.monotonic() - t < 5, got)
    got = s.talk(request("POST", "/v1/sandboxes", KEY, JSON,
                         "Content-Length: 5000") + b"{")
    check("slow body: 408", answers(got)[0][0] == 408, got)
    check("idle: closed without a word", s.talk(b"") == b"")
    with s.connect() as c:
        stop = threading.Event()

        def drip():
            try:
                c.sendall(b"GET / HTTP/1.1\r\n")
                while not stop.is_set():
                    c.sendall(b"X: y\r\n")
                    stop.wait(0.02)
            except OSError:
                pass
        th = threading.Thread(target=drip)
        th.start()
        got = c.recv(4000)
        stop.set()
        th.join()
        check("dripping head: 408 or 431", re.match(
            rb"HTTP/1.1 (408|431) ", got), got)
    end(s)


def test_many():
    s = Server("-m", "50")
    held = []
    for i in range(200):
        c = s.connect()
        if i % 2:
            c.sendall(b"GET / HT")
        held.append(c)
        if i % 20 == 0:
            st = s.get("/healthz")
            if not st or st[0] != 200:
                break
    got = s.get("/healthz")
    check("200 that hold, 50 places: others are served", got and
          got[0] == 200 and got[2]["conns"] <= 50, got)
    # streams that are read are not shed; all places are theirs
    live = []
    for i in range(47):
        c = s.connect()
        c.sendall(request("GET", "/v1/events", KEY))
        if not c.recv(100).startswith(b"HTTP/1.1 200"):
            break
        live.append(c)
    check("streams take the places of those that hold", len(live) == 47)
    for path in ("/v1/events", "/v1/sandboxes/a/sessions/b?wait=1"):
        got = s.get(path, KEY)
        check("but not all: " + path, got and got[0] == 429 and
              got[2]["code"] == "too-many" and "47" in got[2]["detail"], got)
    got = s.get("/v1/sandboxes/a/sessions/b", KEY)
    check("what does not last has a place", got and got[0] == 200, got)
    check("one place is left", s.get("/healthz")[0] == 200)
    for c in live + held:
        c.close()
    check("all gone", s.await_counts(conns=1, reqs=1) is True)
    end(s)
    s = Server("-m", "20", tcp=True)
    held = []
    for i in range(20):     # ask for much and read nothing
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.connect(("127.0.0.1", s.port))
        c.sendall(100 * request("GET", "/v1/openapi.json"))
        held.append(c)
    got = s.get("/healthz")
    check("20 that read nothing, 20 places: others are served", got and
          got[0] == 200, got)
    for c in held:
        c.close()
    end(s)
    # many more than there are places: none of them waits for a stall
    s = Server("-m", "20", tcp=True)
    held = []
    for i in range(200):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.connect(("127.0.0.1", s.port))
        try:
            c.sendall(80 * request("GET", "/v1/openapi.json"))
        except OSError:
            pass        # it was shed already
        held.append(c)
    t = time.monotonic()
    got = s.get("/v1/version", KEY)
    t = time.monotonic() - t
    check("200 that read nothing, 20 places: one with a key is served",
          got and got[0] == 200 and t < 2, got, t)
    for c in held:
        c.close()
    # who is known pipelines on, who is not is answered once
    held = [s.connect() for i in range(20)]
    got = s.talk(request("GET", "/v1/version", KEY) * 3 +
                 request("GET", "/v1/version", KEY, close=True))
    check("a full table: with a key four in a pipeline",
          [a[0] for a in answers(got)] == [200] * 4, got)
    got = answers(s.talk(request("GET", "/healthz") * 4))
    check("a full table: without a key one, and it is said", len(got) == 1 and
          got[0][1].get("connection") == "close", got)
    for c in held:
        c.close()
    end(s)
    s = Server("-n")    # 64 descriptors, 1,024 places
    held = [s.connect() for i in range(100)]
    got = s.get("/healthz")
    check("out of descriptors: others are served", got and got[0] == 200, got)
    for c in held:
        c.close()
    code, log = end(s)
    check("and told in the log", "accept" in log, log)


def test_gone(s):
    base = s.counts()
    with s.connect() as c:
        c.sendall(request("GET", "/v1/sandboxes/a/sessions/b?wait=3000", KEY))
        check("held", s.await_counts(reqs=2) is True)
    check("client gone: the handler is told",
          s.await_counts(reqs=1, gone=base["gone"] + 1) is True)
    got = answers(s.talk(request(
        "POST", "/v1/sandboxes/a/exec", KEY, JSON,
        body=b'{"argv":["a"]}'), shut=True))
    check("half closed: the answer comes", len(got) == 1 and got[0][0] == 200)
    with s.connect() as c:
        c.sendall(request("GET", "/v1/events", KEY))
        c.recv(4000)
        # as much behind it as is read, and more
        c.settimeout(0.3)
        try:
            while True:
                c.send(b"GET / HTTP/1.1\r\n" * 1000)
        except socket.timeout:
            pass
    # bytes behind a held request hide the client's end only from a server
    # that reads no more; writing to it shows it
    with s.connect() as c:
        c.sendall(request("GET", "/v1/events", KEY))
        c.recv(4000)
    check("stream: the handler is told",
          s.await_counts(gone=base["gone"] + 2) is True or
          s.await_counts(gone=base["gone"] + 3) is True, s.counts())
    c = s.connect()
    c.sendall(request("POST", "/v1/sandboxes", KEY, JSON,
                      "Content-Length: 100") + b"{")
    n = s.counts()["calls"]
    c.close()
    check("gone within a body: no handler runs",
          s.await_counts(calls=n) is True)


def test_streams(s):
    raw = s.talk(request("GET", "/v1/events?limit=20000", KEY, close=True))
    st, f, body = answers(raw)[0]
    check("20 MB in chunks, whole", st == 200 and
          body == 20000 * (999 * b"x" + b"\n") and
          f["x-accel-buffering"] == "no", len(body))
    with s.connect() as c:
        c.sendall(request("GET", "/v1/events?limit=20000", KEY, close=True))
        before = s.memory()
        got = bytearray(c.recv(1000))
        n = s.counts()
        while n["most"] != s.counts()["most"]:     # until it fills no more
            n = s.counts()
        grown = s.memory() - before
        check("a reader that waits: at most 512 KiB are held (%d)"
              % n["most"], n["most"] <= 512 * 1024 and
              (SANITIZED or grown < 4 << 20), grown)
        got += rest(c)
        check("and then all comes",
              len(answers(bytes(got))[0][2]) == 20000000)
        check("by the drain callback", s.counts()["drains"] > 0)
    raw = s.talk(request("GET", "/v1/events?limit=3&after=1", KEY))
    check("a cut stream has no end", answers(raw)[0][2].endswith(b"<cut>"))
    with s.connect() as c:
        c.sendall(request("GET", "/v1/events?limit=1", KEY) +
                  request("GET", "/healthz", close=True))
        got = rest(c)
        check("a request behind a stream", [a[0] for a in answers(got)] ==
              [200, 200], got[-300:])


def certificate(path, name):
    r = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
         "/CN=" + name, "-addext", "subjectAltName=DNS:localhost", "-keyout",
         path + ".key", "-out", path], stderr=subprocess.PIPE)
    with open(path, "a") as f:
        f.write(open(path + ".key").read())
    return r.returncode == 0


def hello(s):
    """A connection with the client's first word of a handshake, and no
    more."""
    inc, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = s.tls.wrap_bio(inc, out, server_hostname="localhost")
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    c = s.connect(plain=True)
    c.sendall(out.read())
    return c


def test_tls():
    with tempfile.TemporaryDirectory(prefix="wb-http.") as d:
        if not certificate(d + "/one", "one"):
            return
        for test in (test_bodies, test_expect, test_pipeline, test_gone,
                     test_streams):
            print("# %s in TLS" % test.__name__)
            s = Server(tls=d + "/one")
            test(s)
            code, log = end(s)
            check("nothing in the log", log == "", log)
        tls_handshakes(d + "/one")
        certificate(d + "/two", "two")
        tls_reload(d)


def closed(c, timeout=5):
    c.settimeout(timeout)
    try:
        while c.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except socket.timeout:
        return False


def tls_handshakes(pem):
    s = Server("-h", "300", tls=pem)
    for what, first in (("nothing", b""), ("a part of a record", b"\x16\x03"),
                        ("a part of a hello", b"\x16\x03\x01\x02\x00\x01\x00"
                         b"\x01\xfc\x03\x03" + bytes(300))):
        with s.connect(plain=True) as c:
            c.sendall(first)
            t = time.monotonic()
            check("a handshake of %s is cut in time" % what, closed(c) and
                  0.2 < time.monotonic() - t < 4)
    with hello(s) as c:
        t = time.monotonic()
        check("a handshake without its last word is cut in time",
              closed(c) and 0.2 < time.monotonic() - t < 4)
    with s.connect(plain=True) as c:
        stop = threading.Event()

        def drip():
            try:
                for b in b"\x16\x03\x01\x02\x00" + bytes(300):
                    c.sendall(bytes([b]))
                    if stop.wait(0.02):
                        break
            except OSError:
                pass
        th = threading.Thread(target=drip)
        t = time.monotonic()
        th.start()
        check("one that drips is cut in time", closed(c) and
              time.monotonic() - t < 4)
        stop.set()
        th.join()
    got = s.talk(b"GET /v1/events?limit=3 HTTP/1.0\r\nHost: localhost\r\n" +
                 KEY + b"\r\n")
    check("HTTP/1.0: a stream ends as TLS does", got.endswith(
        3 * (999 * b"x" + b"\n")), got[-100:])
    got = s.talk(b"GET /v1/events?limit=3&after=1 HTTP/1.0\r\nHost: "
                 b"localhost\r\n" + KEY + b"\r\n")
    check("HTTP/1.0: one that is cut does not", got.endswith(
        (b"<SSLEOFError>", b"<ConnectionResetError>")), got[-100:])
    with s.connect(plain=True) as c:
        c.sendall(request("GET", "/healthz"))
        got = answers(rest(c))
        check("plain HTTP is answered in plain HTTP", len(got) == 1 and
              got[0][0] == 400 and "https://" in got[0][2]["detail"], got)
    with s.connect(plain=True) as c:
        c.sendall(b"\x80\x2e\x01\x00\x02" + os.urandom(60))
        check("garbage ends it", closed(c))
    with s.connect() as c:
        k = socket.socket(fileno=os.dup(c.fileno()))
        k.sendall(os.urandom(100))
        check("garbage behind a handshake ends it", closed(k))
        k.close()
    end(s)
    s = Server("-m", "40", tls=pem)
    mine = s.connect()
    held = [hello(s) for i in range(100)]
    check("100 half handshakes, 10 places: others are served",
          s.get("/healthz")[0] == 200)
    n = s.counts()["conns"]
    check("and the oldest are gone", n <= 13 and closed(held[0]) and
          not closed(held[-1], 0.2), n)
    mine.sendall(request("GET", "/healthz", close=True))
    check("who was there before is not shed for them",
          mine.recv(100).startswith(b"HTTP/1.1 200"))
    for c in held + [mine]:
        c.close()
    end(s)
    s = Server(tls=pem)
    s.counts()
    for what, most in (("idle", 48 << 10), ("with a part of a record",
                                            64 << 10)):
        before = s.memory()
        held = [s.connect() for i in range(100)]
        for c in held:
            c.sendall(request("GET", "/healthz"))
            c.recv(4000)
            if most > 48 << 10:
                k = socket.socket(fileno=os.dup(c.fileno()))
                k.sendall(b"\x17\x03\x03\x40\x00" + bytes(10000))
                k.close()
        s.counts()
        grown = (s.memory() - before) // 100
        check("a connection in TLS, %s: at most %d KiB (%d)" % (
            what, most >> 10, grown), SANITIZED or grown < most, grown)
        for c in held:
            socket.socket.close(c)
    end(s)


def tls_reload(d):
    s = Server(tls=d + "/one")

    def subject(c):
        return dict(x[0] for x in c.getpeercert()["subject"])["commonName"]

    def hup(text):
        with open(d + "/one", "w") as f:
            f.write(text)
        s.p.send_signal(signal.SIGHUP)
    old = s.connect()
    check("a certificate", subject(old) == "one")
    stream = s.connect()
    stream.sendall(request("GET", "/v1/events?limit=20000", KEY, close=True))
    two = open(d + "/two").read()
    s.tls.load_verify_locations(d + "/two")
    hup(two)
    for _ in range(200):
        with s.connect() as c:
            now = subject(c)
        if now == "two":
            break
        time.sleep(0.02)    # the pace of asking
    check("another one, for connections from then on", now == "two", now)
    old.sendall(request("GET", "/healthz", close=True))
    check("those that were there stay", old.recv(100).startswith(
        b"HTTP/1.1 200"))
    check("a stream across it is whole",
          len(answers(rest(stream))[0][2]) == 20000000)
    for bad in ("", two[:500], two.split("-----BEGIN PRIVATE")[0]):
        hup(bad)
        s.counts()
        with s.connect() as c:
            check("a bad one changes nothing", subject(c) == "two")
    old.close()
    stream.close()
    code, log = end(s)
    check("and it is told", log.count("kept: ") == 3, log)


def test_stop():
    s = Server()
    idle, held, stream, half = (s.connect() for _ in range(4))
    held.sendall(request("GET", "/v1/sandboxes/a/sessions/b?wait=3000", KEY))
    stream.sendall(request("GET", "/v1/events", KEY))
    stream.recv(4000)
    half.sendall(b"GET / HTTP/1.1\r\n")
    s.await_counts(reqs=3)
    s.p.send_signal(signal.SIGTERM)
    check("stop: idle ones are closed", idle.recv(100) == b"")
    got = held.recv(4000)
    check("stop: what is held is answered", got.startswith(
        b"HTTP/1.1 503 ") and b"Connection: close" in got and
        b'"code":"stopping"' in got, got)
    got = b""
    while True:
        d = stream.recv(4000)
        if not d:
            break
        got += d
    check("stop: a stream is cut", b"\r\n0\r\n" not in got and got != b"x")
    half.sendall(b"Host: a\r\n\r\n")
    got = half.recv(4000)
    check("stop: a new request gets 503", got.startswith(b"HTTP/1.1 503 "),
          got)
    for c in (idle, held, stream, half):
        c.close()
    check("stop: exit 0", s.p.wait(20) == 0)
    s.log.seek(0)
    text = s.log.read()
    check("stop: nothing in the log", text == "", text)
    s = Server()
    c = s.connect()     # says nothing and does not go
    c.sendall(b"GET / HTTP")
    t = time.monotonic()
    s.p.send_signal(signal.SIGTERM)
    check("stop: in bounded time", s.p.wait(20) == 0 and
          time.monotonic() - t < 10)
    c.close()


def end(s):
    code, log = s.stop()
    check("ended with 0", code == 0, code, log)
    return code, log


def main():
    try:
        run()
    finally:
        for p in started:
            p.kill()        # one that has ended does not mind
    return failed > 0


def run():
    signal.alarm(280)
    only = os.environ.get("WB_ONLY")    # one test, by its name
    for test in (test_corpus, test_answers, test_query, test_bodies,
                 test_expect, test_pipeline, test_gone, test_streams):
        if only not in (None, test.__name__):
            continue
        s = Server()
        test(s)
        code, log = end(s)
        check("nothing in the log", log == "", log)
    for test in (test_hosts, test_slow, test_many, test_tls, test_stop):
        if only in (None, test.__name__):
            test()


if __name__ == "__main__":
    sys.exit(main())
