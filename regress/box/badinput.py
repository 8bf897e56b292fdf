"""badinput.py PAGE: the table BAD INPUT of workbox-api(7), row by row, against
the server that badinput.sh has started.

Each row of the page is a key of `cases'; a row that is not there fails, and
so does a case without a row.  A case yields requests, and for each the field
that it expects where the page says member or parameter.  Requests are bytes:
what no client library would send is sent, too.
"""
import glob
import json
import os
import re
import resource
import signal
import socket
import sys
import threading

import wire
from wire import (TOKEN, Answer, Req, check, connect, delete, get, good, post,
                  put, rest, talk, until)

CGROUP = os.environ["WB_CGROUP"]
NONE = "\\(en"          # the page's word for no field
VARY = ("member", "parameter")
LEFT = ("bad-cwd", "command-not-found", "command-not-executable",
        "user-unknown", "limit-unsupported")    # leave a session that ended
SB = "/v1/sandboxes"
ONE = SB + "/one"
EXEC = ONE + "/exec"
SESS = ONE + "/sessions"


def box(**kw):
    return post(SB, dict({"network": "none"}, **kw))


def run(where=EXEC, **kw):
    return post(where, dict({"argv": ["true"]}, **kw))


def chunked(path, *chunks, end=b"0\r\n\r\n"):
    r = post(path, b"", drop=["Content-Length"],
             more=["Transfer-Encoding: chunked"])
    r.data += b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + end
    return r


# ---- the world --------------------------------------------------------------

class World:
    """Sandboxes in each state, sessions of each kind."""
    def __init__(self):
        self.one = good(box(name="one")).json["id"]
        good(box(name="bare", rootfs="bare"))
        self.ended = good(run(name="ended")).json["sessionId"]
        self.open = self.bg(["cat"], stdinOpen=True)
        self.shut = self.bg(["sleep", "1000"])
        self.runs = self.bg(["sleep", "1000"], name="runs")
        good(run(argv=["sh", "-c", SETUP]))
        self.sealed = get(SB + "/sealed").send().json["id"]
        self.sealed_sid = os.environ["SEALED_SESSION"]
        self.stopped()
        self.draining()
        gone = good(box(name="gone"))
        self.gone = gone.json["id"]
        good(post(SB + "/gone/exec", {"argv": ["true"]},
                  more=["Idempotency-Key: of-gone"]))
        good(delete(SB + "/gone?graceSeconds=0"))
        until("a sandbox that is DELETED", lambda: self.state(self.gone) ==
              "DELETED")
        good(post(EXEC, {"argv": ["true"]}, more=["Idempotency-Key: used"]))
        self.many_sessions = self.twins(run(SESS), "sessionId")
        boxes = []
        self.many_boxes = self.twins(post(SB + "?wait=0", {
            "network": "none", "limits": {"memoryBytes": 16777216}}), "id",
            boxes)
        for b in boxes:
            if not b.startswith(self.many_boxes or "-"):
                good(delete("%s/%s?graceSeconds=0" % (SB, b)))

    def state(self, ref):
        return get("%s/%s" % (SB, ref)).send().json.get("state")

    def bg(self, argv, where=SESS, **kw):
        return good(run(where, argv=argv, **kw)).json["sessionId"]

    def stopped(self):
        """One whose pid 1 was killed from outside."""
        self.dead = good(box(name="dead")).json["id"]
        self.dead_sid = self.bg(["sleep", "1000"], SB + "/dead/sessions")
        for pid in self.pids(self.dead):
            os.kill(pid, signal.SIGKILL)
        until("a sandbox that is STOPPED",
              lambda: self.state("dead") == "STOPPED")

    def pids(self, box_):
        """Pid 1 of a sandbox, as the host numbers it."""
        for f in glob.glob("/sys/fs/cgroup/**/%s/%s/box/runner/cgroup.procs" %
                           (CGROUP, box_), recursive=True):
            for pid in open(f).read().split():
                yield int(pid)

    def draining(self):
        """One that is being removed, whose session will not end."""
        self.drain = good(box(name="drain")).json["id"]
        self.drain_sid = self.bg(["sleep", "1000"], SB + "/drain/sessions",
                                 stdinOpen=True)
        self.remover = connect()
        self.remover.sendall(
            delete(SB + "/drain?graceSeconds=3600").data)
        until("a sandbox that is DRAINING",
              lambda: self.state("drain") == "DRAINING")

    def drained(self):
        good(delete(SB + "/drain?graceSeconds=0"))
        a = Answer(rest(self.remover))
        check("who removed it is answered", a.status == 200 and
              a.json["state"] in ("DELETING", "DELETED"), a)

    def twins(self, r, member, ids=None):
        """12 characters with which two ids begin: made in one moment."""
        for _ in range(40):
            socks = [connect() for _ in range(6)]
            for s in socks:
                s.sendall(r.data[:-1])
            for s in socks:
                s.sendall(r.data[-1:])
            got = []
            for s in socks:
                got.append(Answer(rest(s)).json.get(member, ""))
                s.close()
            if ids is not None:
                ids += [i for i in got if i]
            heads = [i[:12] for i in got if i]
            for h in heads:
                if heads.count(h) > 1:
                    return h
        return None


SETUP = r"""
cp /bin/busybox /tmp/closed && chmod 700 /tmp/closed
printf '#!/nonesuch/sh\n' >/tmp/wrong && chmod 755 /tmp/wrong
printf 'no program' >/tmp/text && chmod 755 /tmp/text
printf '\177ELF broken' >/tmp/elf && chmod 755 /tmp/elf
touch /tmp/plain
mkdir -m 700 /tmp/mine
ln -s loop /tmp/loop
"""


# ---- the cases --------------------------------------------------------------

cases = {}
made = set()    # cases that leave something


def case(text, leaves=False):
    def add(fn):
        cases[text] = fn
        if leaves:
            made.add(text)
        return fn
    return add


BAD_NAMES = ["A", "a b", "ä", "-a", ".a", "a/b", "", "a\n", "a" * 64, "_a"]
WRONG = {       # of a type, what is none of it
    "string": [1, 1.5, True, None, [], {}],
    "integer": ["1", 1.5, 1.0, True, None, [], {}],
    "number": ["1", True, None, [], {}],
    "boolean": ["true", 0, 1, None, [], {}],
    "array": ["a", 1, None, {"0": "a"}, False],
    "object": ["a", 1, None, [], [["a", "b"]], True],
}


@case("no Host, two, or one that is none")
def _(w):
    for drop, more in ((["Host"], []), ([], ["Host: localhost"]),
                       (["Host"], ["Host: a b"]), (["Host"], ["Host:"]),
                       (["Host"], ["Host: a@b"]), (["Host"], ["Host: a:x"])):
        yield get("/healthz", drop=drop, more=more)


@case("a request line or field that RFC 9112 has not")
def _(w):
    for head in (b"GET  /healthz HTTP/1.1", b"GET /healthz",
                 b"GET http://localhost/healthz HTTP/1.1",
                 b"GET healthz HTTP/1.1", b"get /healthz HTTP/1.1",
                 b"GET /healthz HTTP/1.1 ", b"GET /health\tz HTTP/1.1",
                 b"GET * HTTP/1.1"):
        yield get("/", head=head)
    for line in (b"Bad Name: x", b"X : y", b" folded", b"X: a\rb", b"X: a\0b",
                 b"X: a\nY: b", b": x", b"X"):
        yield get("/healthz", more=[line])


@case("both Content-Length and Transfer-Encoding, or a wrong one")
def _(w):
    yield post(EXEC, {"argv": ["true"]}, more=["Transfer-Encoding: chunked"])
    for n in ("-1", "+1", "0x10", "1.0", "", "9" * 19, "1, 1", "1 1"):
        yield post(EXEC, b"{}", drop=["Content-Length"],
                   more=["Content-Length: " + n])
    for end in (b"g\r\n", b"2;x=y\r\n{}\r\n0\r\n\r\n", b"0\r\nX: y\r\n\r\n",
                b"2\r\n{}0\r\n\r\n", b"\r\n", b"000000002\r\n"):
        yield chunked(EXEC, end=end)


@case("a field that may stand once, twice")
def _(w):
    for f in ("Authorization: Bearer " + TOKEN, "Authorization: Basic eA==",
              "Content-Type: application/json", "Content-Length: 2"):
        yield post(EXEC, b"{}", more=[f])
    for f in ("Origin: http://localhost", "Idempotency-Key: a",
              "Content-Encoding: identity", "Expect: 100-continue"):
        yield post(EXEC, b"{}", more=[f, f])


@case("a dot segment, a broken %-escape or %00 in the target")
def _(w):
    for p in ("/v1/../healthz", "/v1/./sandboxes", "/v1/%2e%2E/healthz",
              "/v1/sandboxes/a%2f..%2fb", "/v1/%", "/v1/%2", "/v1/%zz",
              "/v1/a%00b", "/healthz?a=%", "/healthz?a=%00"):
        yield get(p)


@case("a body where the route has none")
def _(w):
    for m, p in (("GET", SB), ("GET", "/healthz"), ("DELETE", ONE),
                 ("POST", "/v1/reconcile"), ("GET", ONE),
                 ("GET", "/v1/events")):
        yield Req(m, p, b"{}")
        r = chunked(p, b"{}")
        r.data = r.data.replace(b"POST", m.encode(), 1)
        yield r


@case("Idempotency-Key: empty, over 255 bytes, or not printable ASCII")
def _(w):
    for k in ("", "k" * 256, "schlüssel", "a\tb"):
        for path, body in ((SB, {"network": "none"}), (EXEC, {"argv": ["a"]}),
                           (SESS, {"argv": ["a"]})):
            yield post(path, body, more=["Idempotency-Key: " + k])


def queries(w):
    """Every parameter of every route: method, path, name, kind, bounds."""
    for path, item in w.doc["paths"].items():
        for method, op in item.items():
            if method == "parameters":
                continue
            for p in op.get("parameters", ()):
                if p["in"] == "query":
                    yield (method.upper(), path.replace("{id}", "one")
                           .replace("{sid}", w.open), p["name"], p["schema"])


def query(method, path, text):
    need = "offset=0&" if path.endswith("/stdin") and \
        not text.startswith("offset") else ""
    body = None
    if method == "POST":
        body = b"{}" if path in (SB, EXEC, SESS) else b""
    return Req(method, path + "?" + need + text, body)


@case("an unknown parameter")
def _(w):
    seen = set()
    for method, path, name, schema in queries(w):
        if (method, path) in seen:
            continue
        seen.add((method, path))
        for q in ("colour=red", "colour", "colour=", name.upper() + "=1"):
            yield query(method, path, q), q.split("=")[0]
    yield get("/healthz?x=1"), "x"
    yield get(SB + "?limit=1&"), ""
    yield get(ONE + "?w%61it=1"), "wait"


@case("a parameter that stands twice, unless it may")
def _(w):
    for method, path, name, schema in queries(w):
        v = "1" if schema["type"] == "integer" else "READY" \
            if "enum" in schema else "x"
        if schema["type"] != "array":
            yield query(method, path, "%s=%s&%s=%s" % (name, v, name, v)), name


@case("a number that is empty, signed, hexadecimal, a fraction or out of "
      "bounds")
def _(w):
    n = 0
    for method, path, name, schema in queries(w):
        if schema["type"] != "integer":
            continue
        n += 1
        bad = ["", "-1", "%2b1", "0x1", "1.0", "1e3", "9223372036854775808",
               "18446744073709551616", "0" * 20, "1%20", "a", "1,1", "%D9%A1",
               str(schema["maximum"] + 1)]
        if schema.get("minimum", 0) > 0:
            bad.append(str(schema["minimum"] - 1))
        for v in bad:
            yield query(method, path, "%s=%s" % (name, v)), name
        yield query(method, path, name), name
    if n < 10:
        yield get("/the-document-has-too-few-numbers"), ""


@case("text over its length in a parameter")
def _(w):
    yield get(SB + "?name=" + "x" * 64), "name"
    yield get(SB + "?after=" + "0" * 64), "after"
    yield get(SESS + "?after=" + "0" * 64), "after"
    yield get(SB + "?label=" + "x" * 1025), "label"
    yield get(SB + "?state=" + "R" * 17), "state"


@case("more than 16 parameters")
def _(w):
    yield get(SB + "?" + "&".join(["label=a"] * 17)), "label"
    yield get(SB + "?" + "&".join(["label=a"] * 16) + "&limit=1"), "limit"


@case("a query with control characters, or that is not UTF-8")
def _(w):
    for v in ("%0a", "%1f", "%7f", "%ff", "%c0%80", "%ed%a0%80", "%c2%85",
              "a%c3"):
        yield get(SB + "?name=" + v)
        yield get(SB + "?%s=1" % v)


@case("no offset")
def _(w):
    p = "%s/%s/stdin" % (SESS, w.open)
    yield post(p, b"x")
    yield post(p + "?eof=1", b"x")


@case("a cursor that is no id")
def _(w):
    for v in ("x", "1", "-1", "01K8", w.one[:25], w.one.lower(),
              "8" + w.one[1:], w.one + "0", "null"):
        yield get("%s?after=%s" % (SB, v))
        yield get("%s?after=%s" % (SESS, v))


@case("a state that no list has")
def _(w):
    for v in ("ready", "DELETED", "", "READY,STOPPED", "RUNNING"):
        yield get(SB + "?state=" + v)


@case("a label without a name")
def _(w):
    for v in ("", "=", "=b", "a&label=", "a&label=%3D"):
        yield get(SB + "?label=" + v)


@case("a prefix that fits more than one sandbox")
def _(w):
    if w.many_boxes is None:
        return
    for m, p, b in (("GET", "", None), ("DELETE", "", None),
                    ("GET", "/proof", None), ("GET", "/sessions", None),
                    ("POST", "/exec", {"argv": ["true"]}),
                    ("POST", "/sessions", {"argv": ["true"]})):
        yield Req(m, "%s/%s%s" % (SB, w.many_boxes, p), b)


@case("a prefix that fits more than one session")
def _(w):
    if w.many_sessions is None:
        return
    p = "%s/%s" % (SESS, w.many_sessions)
    yield get(p)
    yield get(p + "/output")
    yield post(p + "/signal", {"signal": 15})
    yield post(p + "/stdin?offset=0", b"")


@case("no body, or an empty one")
def _(w):
    for p in (SB, EXEC, SESS, "%s/%s/signal" % (SESS, w.runs)):
        yield post(p, b"")
        yield post(p, more=["Content-Type: application/json"])
        yield chunked(p)


NOT_JSON = [b"{", b"}", b"{}}", b"{} {}", b"{'a':1}", b"{\"a\":}", b"nul",
            b"{\"a\":01}", b"{\"a\":.5}", b"{\"a\":+1}", b"{\"a\":0x1}",
            b"{\"a\":NaN}", b"{\"a\":1,}", b"[1 2]", b"\xef\xbb\xbf{}",
            b"{\"a\":\"\n\"}", b"{\"a\":\"\\x\"}", b"{\"a\":\"\\ud800\"}",
            b"//\n{}", b" ", b"\0", b"{}\0", b"argv=true"]
NOT_UTF8 = [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80",
            b"\xc3", b"\x80", b"\xf0\x82\x82\xac"]


@case("a body that is not JSON, or not in UTF-8")
def _(w):
    for p in (SB, EXEC, "%s/%s/signal" % (SESS, w.runs)):
        for b in NOT_JSON:
            yield post(p, b)
        for b in NOT_UTF8:
            yield post(p, b'{"%s":1}' % b)
            yield post(p, b'{"name":"%s"}' % b)


@case("a body that is nested deeper than 2,048 levels")
def _(w):
    for n in (2049, 100000):
        yield post(SB, b"[" * n + b"]" * n)
        yield post(EXEC, b'{"argv":' + b"[" * n + b"]" * n + b"}")
        yield post(EXEC, b'{"a":' * n + b"1" + b"}" * n)


@case("a number that is too large for 63 bits, or for a double")
def _(w):
    for v in (b"9223372036854775808", b"1" * 100, b"1e999", b"-1e999"):
        yield post(SB, b'{"limits":{"memoryBytes":%s}}' % v)
        yield post(EXEC, b'{"argv":["a"],"timeoutSeconds":%s}' % v)


@case("\\eu0000 in a text or a name")
def _(w):
    yield post(SB, b'{"name":"a\\u0000b"}')
    yield post(SB, b'{"na\\u0000me":"a"}')
    yield post(SB, b'{"env":{"A\\u0000":"a"}}')
    yield post(EXEC, b'{"argv":["a\\u0000b"]}')
    yield post(EXEC, b'{"argv":["cat"],"stdin":"\\u0000"}')


@case("a body that is no object")
def _(w):
    for p in (SB, EXEC, SESS, "%s/%s/signal" % (SESS, w.runs)):
        for b in (b"[]", b"[{}]", b"[[1]]"):
            yield post(p, b)


@case("a member of the body that stands twice")
def _(w):
    yield post(SB, b'{"network":"none","network":"none"}'), "network"
    yield post(SB, b'{"x":1,"x":2}'), "x"
    yield post(SB, b'{"limits":{},"limits":{}}'), "limits"
    yield post(EXEC, b'{"argv":["a"],"argv":["b"]}'), "argv"


@case("a member below it that stands twice")
def _(w):
    yield post(SB, b'{"env":{"A":"1","A":"2"}}')
    yield post(SB, b'{"limits":{"pids":128,"pids":128}}')
    yield post(EXEC, b'{"argv":["a"],"labels":{"a":"1","b":"","a":"2"}}')


@case("an unknown member")
def _(w):
    yield box(colour="red"), "colour"
    yield box(Name="a"), "Name"
    yield box(limits={"disk": 1}), "limits.disk"
    yield run(command="a"), "command"
    yield run(argv=["a"], limits={"cpus": 1}), "limits.cpus"
    yield run(tty=True), "tty"
    yield post("%s/%s/signal" % (SESS, w.runs), {"signal": 15, "x": 1}), "x"


@case("a member that is required and is not there")
def _(w):
    for p in (EXEC, SESS):
        yield post(p, {}), "argv"
        yield post(p, {"env": {}}), "argv"
    yield post("%s/%s/signal" % (SESS, w.runs), {}), "signal"


def members(w, name):
    """Path and schema of each member of a body, $ref resolved."""
    def walk(s, path):
        while "$ref" in s:
            s = w.doc["components"]["schemas"][s["$ref"].split("/")[-1]]
        if path:
            yield path, s
        for k, v in s.get("properties", {}).items():
            yield from walk(v, path + [k])
        if isinstance(s.get("additionalProperties"), dict):
            yield from walk(s["additionalProperties"], path + ["a"])
        if "items" in s:
            yield from walk(s["items"], path + [0])
    yield from walk(w.doc["components"]["schemas"][name], [])


def at(path, value):
    """-> the body whose member at this path is that, and its name."""
    name = ""
    for p in path:
        name += "[%d]" % p if isinstance(p, int) else \
            ("." if name else "") + p
    for p in reversed(path):
        value = [value] if isinstance(p, int) else {p: value}
    return value, name


@case("a member of the wrong type, null, or a fraction for an integer")
def _(w):
    for where, spec in ((SB, "SandboxSpec"), (EXEC, "SessionSpec")):
        n = 0
        for path, s in members(w, spec):
            for v in WRONG[s["type"]]:
                body, name = at(path, v)
                n += 1
                yield post(where, body), name
        assert n > 60, "the document has too few members"
    for v in (None, 1.5, 15.0, True, [], {}, ["TERM"]):
        yield post("%s/%s/signal" % (SESS, w.runs), {"signal": v}), "signal"


@case("a name with other characters, empty, or over 63")
def _(w):
    for n in BAD_NAMES:
        yield box(name=n), "name"
        yield box(rootfs=n), "rootfs"
        yield run(name=n), "name"


@case("a name of a sandbox with 26 characters")
def _(w):
    yield box(name="abcdefghijklmnopqrstuvwxyz")
    yield box(name="0" * 26)


@case("a limit or a time below the least, or above what any server has")
def _(w):
    for m, vs in (("memoryBytes", (0, -1, 16777215)),
                  ("cpus", (0, -1, 0.009, 1e-300, 1025, 1e300)),
                  ("pids", (0, -1, 127, 4194305))):
        for v in vs:
            yield box(limits={m: v}), "limits." + m
    for m, vs in (("memoryBytes", (0, -1, 1048575)),
                  ("pids", (0, -1, 4194305))):
        for v in vs:
            yield run(limits={m: v}), "limits." + m
    for v in (0, -1, 0.0009, 1e-300, 31536001, 1e300):
        yield run(timeoutSeconds=v), "timeoutSeconds"


@case("too many arguments, labels or variables")
def _(w):
    yield run(argv=["a"] * 1025), "argv"
    many = {"l%d" % i: "" for i in range(65)}
    yield box(labels=many), "labels"
    yield run(labels=many), "labels"
    many = {"V%d" % i: "" for i in range(257)}
    yield box(env=many), "env"
    yield run(env=many), "env"


@case("a name of a label or variable that may not be one")
def _(w):
    for n in ("", "-a", "a b", "a=b", "ä", "l" * 64, "a\n", ".a"):
        yield box(labels={n: ""}), "labels." + n
        yield run(labels={n: ""}), "labels." + n
    for n in ("", "1A", "A B", "A=B", "Ä", "V" * 256, "A-B", "A\n"):
        yield box(env={n: ""}), "env." + n
        yield run(env={n: ""}), "env." + n


@case("a label with control characters")
def _(w):
    for v in ("\n", "a\tb", "\x7f", "\x1b[2J", "\x85", "a\x9bb"):
        yield box(labels={"a": v}), "labels.a"
        yield run(labels={"a": v}), "labels.a"


@case("text over its length, or without any where some must be")
def _(w):
    yield box(network="n" * 64), "network"
    yield box(labels={"a": "v" * 1025}), "labels.a"
    yield box(env={"A": "v" * 16385}), "env.A"
    yield run(labels={"a": "v" * 1025}), "labels.a"
    yield run(env={"A": "v" * 16385}), "env.A"
    yield run(argv=["a", "x" * 32768]), "argv[1]"
    yield run(cwd=""), "cwd"
    yield run(cwd="/" + "x" * 1023), "cwd"
    yield run(cwd="/" + "ä" * 600), "cwd"
    yield run(user=""), "user"
    yield run(user="u" * 65), "user"
    yield run(stdin="x" * 1048577), "stdin"
    yield post("%s/%s/signal" % (SESS, w.runs), {"signal": ""}), "signal"


@case("arguments over 32,768 bytes together")
def _(w):
    yield run(argv=["a", "x" * 32767, "b"])
    yield run(argv=["ä"] + ["ä" * 1000] * 17)
    yield run(argv=["a"] + ["a" * 33] * 1023)


@case("labels over 8,192 bytes together")
def _(w):
    many = {"l%d" % i: "v" * 1024 for i in range(8)}
    yield box(labels=many)
    yield run(labels=many)
    many = {"l%d" % i: "ä" * 1000 for i in range(4)}
    many["x"] = "x" * 200
    yield box(labels=many)


@case("an environment over 16,384 bytes")
def _(w):
    for env in ({"A": "v" * 16383}, {"A": "v" * 8192, "B": "v" * 8192},
                {"A": "ä" * 8192}):
        yield box(env=env)
        yield run(env=env)


@case("no command, or one without a name")
def _(w):
    yield run(argv=[]), "argv"
    yield run(argv=[""]), "argv[0]"
    yield run(argv=["", "a"]), "argv[0]"
    yield run(SESS, argv=[""]), "argv[0]"


@case("a cwd that is not absolute")
def _(w):
    for v in ("tmp", ".", "../tmp", "~", " /tmp"):
        yield run(cwd=v)


@case("a user with blanks or other than ASCII")
def _(w):
    for v in ("a b", "ä", "a\n", "\x7f", " "):
        yield run(user=v)


@case("a signal that there is not")
def _(w):
    for v in (0, 65, -1, 4294967311, 1 << 62, "FOO", "term", "SIGSIGTERM",
              "15", "RTMIN+31", "RTMIN+", "RTMIN-1", "SIG", "RTMAX", "A" * 17,
              "TERM ", "EXIT"):
        yield post("%s/%s/signal" % (SESS, w.runs), {"signal": v})


@case("no key, a wrong one, or another scheme")
def _(w):
    keys = [None, "", "Bearer", "Bearer ", "Bearer x", TOKEN, "Basic " + TOKEN,
            "Bearer %sx" % TOKEN, "Bearer " + TOKEN[:-1], "Bearer " +
            TOKEN.upper() + "A", "Bearer %s, Bearer %s" % (TOKEN, TOKEN),
            "Bearer x %s" % TOKEN, "Bearer=" + TOKEN, "Bearer " + TOKEN * 9]
    for k in keys:
        yield Req("POST", EXEC, {"argv": ["true"]}, drop=["Authorization"],
                  more=[] if k is None else ["Authorization: " + k])
    for m, p in (("GET", SB), ("DELETE", ONE), ("GET", "/v1/version"),
                 ("GET", "/v1/events"), ("POST", "/v1/reconcile"),
                 ("GET", ONE + "/proof"), ("POST", SB)):
        yield Req(m, p, drop=["Authorization"])
        yield Req(m, p + "?token=" + TOKEN, drop=["Authorization"])


@case("an Origin that is not the Host")
def _(w):
    for o in ("null", "http://evil.example", "https://localhost:1", "",
              "http://localhost.evil.example", "localhost", "file://",
              "http://localhost/"):
        yield run_with("Origin: " + o)


def run_with(*more, drop=()):
    return post(EXEC, {"argv": ["true"]}, more=list(more), drop=list(drop))


@case("no such path")
def _(w):
    for p in ("/", "/v1", "/v1/", "/V1/sandboxes", SB + "/", "/v2/sandboxes",
              SB + "//exec", ONE + "/", ONE + "/files", EXEC + "/x",
              "/v1/sandboxes%2fone", "/healthz/", SB + "/a%20b",
              SB + "/%c3%a4", SB + "/" + "a" * 100):
        yield get(p)


@case("no such sandbox, or a prefix under 12 characters")
def _(w):
    for ref in ("nobody", "ONE", "01K8ZZZZZZZZZZZZZZZZZZZZZZ", w.one[:11],
                w.one[:12].lower(), w.one + "0", "gone"):
        p = "%s/%s" % (SB, ref)
        yield get(p)
        yield get(p + "/proof")
        yield delete(p)
        yield run(p + "/exec")
        yield run(p + "/sessions")
        yield get(p + "/sessions")
        yield get("%s/sessions/%s/output" % (p, w.open))


@case("no such session")
def _(w):
    for ref in ("nobody", "01K8ZZZZZZZZZZZZZZZZZZZZZZ", w.open[:11],
                w.open.lower(), w.open + "0", w.dead_sid):
        p = "%s/%s" % (SESS, ref)
        yield get(p)
        yield get(p + "?wait=3")
        yield get(p + "/output?follow=1")
        yield post(p + "/stdin?offset=0", b"x")
        yield post(p + "/signal", {"signal": "TERM"})


@case("sessions of a sandbox that is DELETED")
def _(w):
    p = "%s/%s" % (SB, w.gone)
    yield run(p + "/exec")
    yield run(p + "/sessions")
    yield get(p + "/sessions")
    yield get("%s/sessions/%s" % (p, w.open))
    yield get("%s/sessions/%s/output" % (p, w.open))
    yield post("%s/sessions/%s/stdin?offset=0" % (p, w.open), b"")
    yield post("%s/sessions/%s/signal" % (p, w.open), {"signal": 9})


@case("another method of a path")
def _(w):
    for m, p in (("POST", "/healthz"), ("PUT", SB), ("DELETE", SB),
                 ("PATCH", ONE), ("POST", ONE), ("GET", EXEC),
                 ("HEAD", EXEC), ("OPTIONS", SB), ("GET", "/v1/reconcile"),
                 ("POST", "/v1/events"), ("DELETE", SESS)):
        yield Req(m, p)


class Slow:
    """What comes not whole; its answer is there when others are through."""
    def __init__(self, data):
        self.data, self.answer = data, None
        self.text = "%.30r ..." % data
        self.method, self.path = "GET", None
        self.thread = threading.Thread(target=self.wait)
        self.thread.start()

    def wait(self):
        self.answer = talk(self.data)

    def send(self):
        self.thread.join()
        return self.answer


@case("a head or a body that does not come")
def _(w):
    yield from w.slow


@case("the name of a live sandbox, or of a session that runs")
def _(w):
    yield box(name="one")
    yield box(name="dead")
    yield box(name="sealed")
    yield post(SB + "?wait=0", {"name": "one", "network": "none"})
    yield run(name="runs")
    yield run(SESS, name="runs")


@case("a command in a sandbox that is being made, DRAINING, DELETING or "
      "STOPPED, or another network for it", leaves=True)
def _(w):
    for b in ("drain", w.drain, "dead", w.dead):
        yield put("%s/%s/network" % (SB, b), {"network": "egress"})
        yield run("%s/%s/exec" % (SB, b))
        yield run("%s/%s/exec?stream=1" % (SB, b))
        yield run("%s/%s/sessions" % (SB, b))
    yield Soon()


class Soon:
    """A command behind the create of its sandbox, in one connection."""
    text, method, path = "a command at once", "POST", SB + "/soon/exec"

    def send(self):
        first = post(SB + "?wait=0", {"name": "soon", "network": "none"},
                     drop=["Connection"])
        with connect() as s:
            s.sendall(first.data + run(SB + "/soon/exec").data)
            data = rest(s)
        data = data[data.index(b"HTTP/1.1", 1):]
        good(delete(SB + "/soon?graceSeconds=0"))
        return Answer(data)


def talks(box_, sid):
    p = "%s/%s/sessions/%s" % (SB, box_, sid)
    yield get(p + "/output")
    yield get(p + "/output?follow=1")
    yield post(p + "/signal", {"signal": "TERM"})


@case("output, input or a signal in one that is STOPPED")
def _(w):
    yield from talks("dead", w.dead_sid)


@case("a command, output, input or a signal in one that is QUARANTINED, or "
      "another network for it")
def _(w):
    for b in ("sealed", w.sealed):
        yield put("%s/%s/network" % (SB, b), {"network": "egress"})
        yield run("%s/%s/exec" % (SB, b))
        yield run("%s/%s/exec?stream=1" % (SB, b))
        yield run("%s/%s/sessions" % (SB, b))
        yield from talks(b, w.sealed_sid)
        yield post("%s/%s/sessions/%s/stdin?offset=0" % (
            SB, b, w.sealed_sid), b"x")


@case("input to a session that has ended, that has closed it, or that never "
      "had any")
def _(w):
    for sid in (w.ended, "ended", w.shut, "%s" % w.closed):
        yield post("%s/%s/stdin?offset=0" % (SESS, sid), b"x")
        yield post("%s/%s/stdin?offset=0&eof=1" % (SESS, sid), b"")
    yield post("%s/dead/sessions/%s/stdin?offset=0" % (SB, w.dead_sid), b"x")


@case("a signal to a session of which no process is left")
def _(w):
    for v in ("TERM", "SIGKILL", 1, 64):
        yield post("%s/%s/signal" % (SESS, w.ended), {"signal": v})


@case("another offset than the one that is due")
def _(w):
    for n in (1, 100, 9223372036854775807):
        yield post("%s/%s/stdin?offset=%d" % (SESS, w.open, n), b"x")
        yield post("%s/%s/stdin?offset=%d&eof=1" % (SESS, w.open, n), b"")


def hold(n, r):
    """n requests of this kind that are being answered."""
    held = [connect() for _ in range(n)]
    for s in held:
        s.sendall(r.data)
    for s in held:
        s.recv(65536)
    return held


@case("a 65th reader of a session's output")
def _(w):
    r = get("%s/%s/output?follow=1" % (SESS, w.open))
    held = hold(64, r)
    yield r
    yield get("%s/%s/output" % (SESS, w.open))
    for s in held:
        s.close()
    until("a place among the readers", lambda: get(
        "%s/%s/output" % (SESS, w.open)).send().status == 200)


@case("a 961st request that may last")
def _(w):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    r = get("/v1/events?follow=1&after=9223372036854775807")
    held = hold(960, r)
    yield r
    yield run()
    yield run(EXEC + "?stream=1")
    yield get("%s/%s?wait=1" % (SESS, w.open))
    yield get("%s/%s/output" % (SESS, w.open))
    for path in ("/healthz", SB, "%s/%s" % (SESS, w.open)):
        check("the others have a place: " + path,
              get(path).send().status == 200)
    for s in held:
        s.close()
    until("a place again", lambda: get(
        "%s/%s?wait=1" % (SESS, w.ended)).send().status == 200)


@case("a repeat of a command in a sandbox that is no more")
def _(w):
    yield post(SB + "/gone/exec", {"argv": ["true"]},
               more=["Idempotency-Key: of-gone"])


@case("a body over what its route takes")
def _(w):
    for p, n in ((SB, 524288), (EXEC, 2097152), (SESS, 2097152),
                 ("%s/%s/signal" % (SESS, w.runs), 4096),
                 ("%s/%s/stdin?offset=0" % (SESS, w.open), 1048576)):
        yield post(p, b" " * (n + 1))
        yield post(p, b"", drop=["Content-Length"],
                   more=["Content-Length: %d" % (n + 1)])
        yield post(p, b"", drop=["Content-Length"],
                   more=["Content-Length: 999999999999999999"])
        yield chunked(p, b" " * n, b" ")


@case("a target over 4,096 bytes")
def _(w):
    yield get("/" + "a" * 4096)
    yield get(SB + "?name=" + "a" * 4096)
    yield get("/" + "a" * 100000)


@case("another Content-Type, another charset, or none")
def _(w):
    for t in ("text/plain", "application/x-www-form-urlencoded", "",
              "application/jsonx", "application/json; charset=latin1",
              "application/json; charset=", "json", "application/json x",
              "multipart/form-data; boundary=x", "application/problem+json"):
        for p in (SB, EXEC, SESS, "%s/%s/signal" % (SESS, w.runs)):
            yield post(p, b"{}", drop=["Content-Type"],
                       more=["Content-Type: " + t])
    yield post(EXEC, b"{}", drop=["Content-Type"])


@case("a Content-Encoding")
def _(w):
    for c in ("gzip", "br", "x", "", "identity, gzip"):
        yield run_with("Content-Encoding: " + c)
        yield post("%s/%s/stdin?offset=0" % (SESS, w.open), b"x",
                   more=["Content-Encoding: " + c])


@case("an Expect other than 100-continue")
def _(w):
    for e in ("x", "200-ok", "100-continue, x", ""):
        yield run_with("Expect: " + e)


@case("a Host that is not this server's")
def _(w):
    for h in ("evil.example", "localhost.evil.example", "127.0.0.2", "[::2]",
              "127.0.0.1.", "localhost.", "127.1", "2130706433", "0.0.0.0"):
        yield run_with("Host: " + h, drop=["Host"])
        yield get("/healthz", drop=["Host"], more=["Host: " + h])


@case("a cwd that is not there, no directory, or closed to the user",
      leaves=True)
def _(w):
    for d in ("/nonesuch", "/tmp/plain", "/tmp/plain/x", "/tmp/loop",
              "/tmp/" + "x" * 300, "/tmp/\n"):
        yield run(cwd=d)
        yield run(EXEC + "?stream=1", cwd=d)
        yield run(SESS, cwd=d)
    yield run(cwd="/tmp/mine", user="agent")
    yield run(cwd="/root", user="agent")


@case("a command that is not there", leaves=True)
def _(w):
    for a in ("nonesuch", "/nonesuch", "./true", "/bin/true/x", "a" * 5000,
              "/" + "a/" * 2100, "tr\nue", "ä"):
        yield run(argv=[a])
    yield run(SESS, argv=["nonesuch"])
    yield run(EXEC + "?stream=1", argv=["nonesuch"])
    yield run(env={"PATH": ""})
    yield run(SB + "/bare/exec", argv=["sh", "-c", "true"])
    yield run(SB + "/bare/exec", argv=["/bin/sh", "-c", "true"])


@case("a command that is no program, a directory, closed to the user, or "
      "without its interpreter", leaves=True)
def _(w):
    for a in ("/etc/passwd", "/tmp", "/", "/tmp/wrong", "/tmp/text",
              "/tmp/elf", "/tmp/loop", "/proc/self/environ"):
        yield run(argv=[a])
    yield run(EXEC + "?stream=1", argv=["/tmp"])
    yield run(SESS, argv=["/tmp/wrong"])
    yield run(argv=["/tmp/closed"], user="agent")
    yield run(argv=["wrong"], env={"PATH": "/tmp"})


@case("a key with another path or body")
def _(w):
    k = ["Idempotency-Key: used"]
    yield post(EXEC, {"argv": ["false"]}, more=k)
    yield post(SESS, {"argv": ["true"]}, more=k)
    yield post(SB, {"network": "none"}, more=k)
    yield post(SB + "/bare/exec", {"argv": ["true"]}, more=k)


@case("a limit above the server's, or the sandbox's own")
def _(w):
    yield box(limits={"memoryBytes": 1 << 62}), "limits.memoryBytes"
    yield box(limits={"cpus": 1024}), "limits.cpus"
    yield box(limits={"pids": 4194304}), "limits.pids"
    yield run(limits={"memoryBytes": 1 << 62}), "limits.memoryBytes"
    yield run(limits={"pids": 4194304}), "limits.pids"


@case("limits of a session, on a host with cgroup v1", leaves=True)
def _(w):
    if not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        yield run(limits={"pids": 4})
        yield run(SESS, limits={"memoryBytes": 1048576})


@case("an entry of a list that is no host by name")
def _(w):
    for e in ("192.0.2.1", "[::1]:443", "http://a.example", "a@b.example",
              "a.example/x", "a.example:0", "a.example:80,", "*", "*.example",
              "a.*.example", "a..example", "-a.example", "a b.example",
              "a" * 64 + ".example", "a." * 127 + "example", "a" * 1024):
        yield (box(network="allowlist", allow=["ok.example", e]), "allow[1]")
        yield (put(ONE + "/network", {"network": "allowlist", "allow": [e]}),
               "allow[0]")
    for e in ("", "a\nb", "a" * 1025, 7, None, []):
        yield box(network="allowlist", allow=[e]), "allow[0]"


@case("a list for another network than allowlist")
def _(w):
    yield box(allow=["a.example"]), "allow"
    yield box(network="egress", allow=[]), "allow"
    for m in ("allow", "add", "remove"):
        yield put(ONE + "/network", {"network": "none", m: []}), m


@case("a whole list beside a change of it, or a change of none")
def _(w):
    for m in ("add", "remove"):
        yield (put(ONE + "/network", {"network": "allowlist", "allow": [],
                                      m: []}), "allow")
        yield put(ONE + "/network", {"network": "allowlist", m: []}), m


@case("more than 10,000 entries")
def _(w):
    many = ["h%d.example" % i for i in range(10001)]
    yield box(network="allowlist", allow=many)
    yield put(ONE + "/network", {"network": "allowlist", "allow": many})


@case("another network than none, egress and allowlist")
def _(w):
    for n in ("vpn", "Allowlist", "None", "", "host", "none "):
        yield box(network=n)
        yield put(SB + "/sealed/network", {"network": n})


@case("a rootfs that is not there", leaves=True)
def _(w):
    yield box(name="x", rootfs="nonesuch")
    yield box(name="x", rootfs="minimal.tar")


@case("a user or group that the sandbox has not", leaves=True)
def _(w):
    for u in ("nonesuch", "agent:nonesuch", "65536", "1000:65536", ":1000",
              "-1", "agent:", "0x0", "1e3", "4294967296", "99999999999999999",
              "root:root:root", ":", "root:-1", "+0"):
        yield run(user=u)
    yield run(EXEC + "?stream=1", user="nonesuch")
    yield run(SESS, user="nonesuch")
    yield run(SB + "/bare/exec", argv=["/bin/echo"], user="agent")


@case("a head over 16 KiB, 64 fields, or 8,000 bytes a field")
def _(w):
    yield run_with(*["X-%d: y" % i for i in range(70)])
    yield run_with("X: " + "y" * 8001)
    yield run_with(*["X-%d: %s" % (i, "y" * 4000) for i in range(5)])


@case("a method or Transfer-Encoding that is not here")
def _(w):
    for m in ("BREW", "TRACE", "CONNECT", "GETT", "PROPFIND"):
        yield Req(m, SB)
    for t in ("gzip", "gzip, chunked", "identity", "chunked, chunked"):
        yield run_with("Transfer-Encoding: " + t, drop=["Content-Length"])


@case("a version other than HTTP/1.1 and 1.0")
def _(w):
    for v in (b"2.0", b"1.2", b"0.9", b"3.0"):
        yield get("/", head=b"GET /healthz HTTP/" + v)


# ---- the page ---------------------------------------------------------------

def page(path):
    """-> (status, code, field, text) of each row."""
    rows, status = [], None
    text = open(path).read()
    text = text[text.index(".Sh BAD INPUT"):]
    text = text[:text.index("\n.Sh ", 1)]
    for line in text.split("\n"):
        m = re.match(r'\.It Em "(\d{3}) ([a-z0-9-]+)"', line)
        if m:
            status, code = int(m.group(1)), m.group(2)
            continue
        m = re.match(r"\.It (?:Em |Li )?(\S+) Ta (.+)$", line)
        if m and status is not None:
            rows.append((status, code, m.group(1), m.group(2)))
    return rows


def records():
    """How many sandboxes and sessions there were ever."""
    text = good(get("/v1/events")).body
    return [text.count(b'"type":"sandbox.created"'),
            text.count(b'"type":"session.started"')]


def judge(w, r, status, code, field):
    """What is wrong with the answer to one request, or None."""
    a = r.send()
    if a.status != status:
        return "%s: %s" % (r.text, a)
    if r.method == "HEAD":
        return None
    p = a.json
    if p.get("code") != code or p.get("status") != status:
        return "%s: code: %s" % (r.text, a)
    # a path is told as far as it fits
    told = p.get("field", "")
    if told != (field[:len(told)] if len(told) > 190 else field):
        return "%s: field, expected %r: %s" % (r.text, field, a)
    if not a.whole or not p.get("detail", "").strip() or "application/problem+json" not in \
            a.head or p["requestId"].lower() not in a.head:
        return "%s: no whole problem: %s" % (r.text, a)
    if TOKEN.encode() in a.raw:
        return "%s: it tells the key" % r.text
    if code in LEFT:
        left = get("%s/%s/sessions/%s" % (SB, p["sandboxId"],
                                          p["sessionId"])).send().json
        if left.get("state") != "ended" or left.get("reason") != code:
            return "%s: it left %s" % (r.text, left)
    if w.contract is not None and r.path is not None:
        bad = w.contract.check_answer(r.method, r.path, a.status,
                                      "application/problem+json",
                                      a.body.decode())
        if bad:
            return "%s: against the document: %s" % (r.text, bad)
    return None


def row(w, status, code, field, text):
    faults, n = [], 0
    was = None if text in made else records()
    for item in cases[text](w):
        r, want = item if isinstance(item, tuple) else (item, None)
        want = (want or "") if field in VARY else \
            "" if field == NONE else field
        n += 1
        fault = judge(w, r, status, code, want)
        if fault is not None:
            faults.append(fault)
    if n == 0:
        print("skip - %d %s: %s: not on this host" % (status, code, text))
        return
    check("%d %s: %s (%d requests)" % (status, code, text, n), not faults,
          "%d faults" % len(faults), *faults[:12])
    if was is not None:
        now = records()
        if now != was:
            check("%s: nothing was done" % text, False, was, now)


# ---- clients that vanish ----------------------------------------------------

def cut(r, how):
    """Sends each beginning of a request, and goes."""
    for n in range(len(r.data)):
        s = connect()
        s.sendall(r.data[:n])
        if how == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                         b"\1\0\0\0\0\0\0\0")
        elif how == "half":
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        s.close()


def vanish():
    was = records()
    mark = ["sh", "-c", "echo x >>/root/mark"]
    whole = 0
    for name, r in (
            ("create", box(name="vanish")),
            ("exec", run(argv=mark)),
            ("exec in chunks", chunked(
                EXEC, json.dumps({"argv": mark}).encode()[:20],
                json.dumps({"argv": mark}).encode()[20:])),
            ("a session", run(SESS, argv=mark))):
        for how in ("close", "reset", "half"):
            cut(r, how)
        # each connection before this one has been seen when it is answered
        good(get("/healthz"))
        check("%s, cut at each of %d bytes, three ways: nothing was done" %
              (name, len(r.data)), records() == was, was, records())
        check("  and the server goes on", good(run()).json["exitCode"] == 0)
        was = records()
    check("no sandbox is left", get(SB + "/vanish").send().status == 404)
    check("no command ran", good(run(argv=["ls", "/root/mark"])).json[
        "exitCode"] != 0)
    for how in ("close", "half"):
        with connect() as s:
            s.sendall(run(argv=mark).data)
            if how == "half":
                s.shutdown(socket.SHUT_WR)
            whole += 1
    until("what came whole runs, once", lambda: good(run(argv=[
        "sh", "-c", "wc -l </root/mark || :"])).json["stdout"] ==
        "%d\n" % whole)
    check("what came whole runs, once", True)


def fine():
    """The neighbours of what is refused: they go."""
    for what, r in (
            ("a static program without a shell",
             run(SB + "/bare/exec", argv=["/bin/echo", "a"])),
            ("arguments of 32,768 bytes", run(argv=["echo", "x" * 32764])),
            ("1,024 arguments", run(argv=["echo"] + ["a"] * 1023)),
            ("an environment of 16,384 bytes", run(env={"A": "v" * 16382})),
            ("256 variables", run(env={"V%d" % i: "" for i in range(256)})),
            ("labels of 8,192 bytes", run(labels=dict(
                {"l%d" % i: "v" * 1021 for i in range(7)}, l="v" * 1021))),
            ("a label that is not ASCII", run(
                labels={"a": "ä\u2028\U0001f600"})),
            ("all of them", run(argv=["echo", "x" * 32764],
                                env={"A": "v" * 16382}, stdin="x" * 1048576,
                                labels={"l%d" % i: "v" * 1021
                                        for i in range(8)},
                                cwd="/" + "./" * 500)),
            ("names of 63", run(name="n" * 63)),
            ("a variable with control characters", run(env={"A": "\n\t\x1b"})),
            ("a time of a year", run(timeoutSeconds=31536000))):
        a = r.send()
        check("it goes: " + what, a.status == 200 and
              a.json["exitCode"] == 0, a)


def states(w):
    """What goes in each state: looking always, talking while it lives."""
    for b, sid in ((w.one, w.open), (w.drain, w.drain_sid),
                   (w.dead, w.dead_sid), (w.sealed, w.sealed_sid)):
        p = "%s/%s" % (SB, b)
        got = [get(x).send().status for x in (
            p, p + "/proof", p + "/sessions", "%s/sessions/%s" % (p, sid))]
        check("%s can be looked at" % get(p).send().json["state"],
              got == [200] * 4, got)
    p = "%s/drain/sessions/%s" % (SB, w.drain_sid)
    got = [r.send().status for r in (
        get(p + "/output"), post(p + "/stdin?offset=0", b"x"),
        post(p + "/signal", {"signal": "CONT"}))]
    check("DRAINING: a session that runs can be talked to",
          got == [200, 200, 204], got)
    p = "%s/%s" % (SB, w.gone)
    got = [r.send().status for r in (get(p), get(p + "/proof"), delete(p))]
    check("DELETED: it can be looked at, and deleted once more",
          got == [200] * 3, got)


def main():
    rows = page(sys.argv[1])
    w = World()
    w.doc = good(get("/v1/openapi.json")).json
    w.contract = None
    try:
        sys.path.insert(0, os.path.join(os.path.dirname(
            os.path.abspath(sys.argv[0])), "..", "http"))
        from contract import Contract
        w.contract = Contract(w.doc)
    except ImportError:
        print("skip - answers against the document: no jsonschema")
    w.closed = w.bg(["sleep", "1000"], stdinOpen=True)
    good(post("%s/%s/stdin?offset=0&eof=1" % (SESS, w.closed), b""))
    w.slow = [Slow(b"GET /healthz HTTP/1.1\r\nHost: loc"),
              Slow(post(EXEC, {"argv": ["true"]}).data[:-1])]
    told = [t for _, _, _, t in rows]
    check("the page has a table", len(rows) > 50, len(rows))
    check("each row stands once", len(told) == len(set(told)),
          [t for t in told if told.count(t) > 1])
    check("the page has a row for each case", not set(cases) - set(told),
          sorted(set(cases) - set(told)))
    check("there is a case for each row", not set(told) - set(cases),
          sorted(set(told) - set(cases)))
    fine()
    vanish()
    states(w)
    for r in rows:
        if r[3] in cases:
            row(w, *r)
    w.drained()
    good(delete(SB + "/sealed?graceSeconds=0"))
    check("the server is well", good(get("/healthz")).json == {
        "status": "ok"} and good(run()).json["exitCode"] == 0)
    return wire.failed


if __name__ == "__main__":
    sys.exit(main())
