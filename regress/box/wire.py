"""wire.py: HTTP as it is on the wire, for the tests here: a request is bytes,
and its answer is what came until the server closed.
"""
import json
import os
import re
import socket
import sys
import time

HOST = ("127.0.0.1", int(os.environ["WB_PORT"]))
TOKEN = os.environ["WB_TOKEN"]
failed = False


def check(text, good, *more):
    global failed
    print(("ok - " if good else "not ok - ") + text)
    if not good:
        failed = True
        for m in more:
            print("#   %.600s" % (m,))
    sys.stdout.flush()


class Answer:
    """`whole': it has its end, and nothing stands behind that."""
    def __init__(self, data):
        self.raw, self.body, self.whole = data, b"", False
        head, _, body = data.partition(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100 "):
            head, _, body = body.partition(b"\r\n\r\n")
        m = re.match(rb"HTTP/1\.1 (\d{3})", head)
        self.status = int(m.group(1)) if m else 0
        self.head = head.decode("latin-1").lower()
        if "transfer-encoding: chunked" in self.head:
            self.chunks(body)
        else:
            self.body = body
            m = re.search(r"\ncontent-length: (\d+)", self.head)
            self.whole = len(body) == (int(m.group(1)) if m else 0)
        try:
            self.json = json.loads(self.body)
        except ValueError:
            self.json = {}

    def chunks(self, body):
        parts, i = [], 0
        while i < len(body):
            end = body.find(b"\r\n", i)
            n = int(body[i:end], 16) if end != -1 else 0
            if n == 0:
                self.whole = body[i:] == b"0\r\n\r\n"
                break
            parts.append(body[end + 2:end + 2 + n])
            i = end + 4 + n
        self.body = b"".join(parts)

    def __str__(self):
        return "%d %s" % (self.status, self.body.decode("utf-8", "replace"))


def connect():
    s = socket.create_connection(HOST, timeout=30)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def rest(s):
    """All that comes until the server closes."""
    out = bytearray()
    try:
        while True:
            d = s.recv(1 << 20)
            if not d:
                break
            out += d
    except ConnectionResetError:
        pass
    return bytes(out)


def talk(data, shut=False):
    """All that is answered to these bytes, until the server closes."""
    with connect() as s:
        try:
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
        except OSError:         # refused before all was sent
            pass
        return Answer(rest(s))


class Req:
    """A request; `drop' and `more' change its head."""
    def __init__(self, method, path, body=None, more=(), drop=(), head=None):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields = {"Host": "localhost", "Authorization": "Bearer " + TOKEN,
                  "Connection": "close"}
        if body is not None:
            fields["Content-Type"] = "application/json"
            fields["Content-Length"] = str(len(body))
        for k in drop:
            fields.pop(k, None)
        lines = [b"%s %s HTTP/1.1" % (method.encode(), path.encode("latin-1"))]
        if head is not None:
            lines = [head]
        lines += [("%s: %s" % kv).encode("latin-1") for kv in fields.items()]
        lines += [x if isinstance(x, bytes) else x.encode("utf-8")
                  for x in more]
        self.data = b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")
        self.head_len = len(self.data) - len(body or b"")
        self.text = "%s %s %.60r" % (method, path[:80], body)
        self.method, self.path = method, path

    def send(self):
        return talk(self.data)


def get(path, **kw):
    return Req("GET", path, **kw)


def post(path, body=None, **kw):
    return Req("POST", path, body, **kw)


def put(path, body=None, **kw):
    return Req("PUT", path, body, **kw)


def delete(path, **kw):
    return Req("DELETE", path, **kw)


def good(r, *status):
    a = r.send()
    if a.status not in (status or (200, 201, 202, 204)):
        check("set up: " + r.text, False, a)
        raise SystemExit(1)
    return a


def until(what, fn):
    for _ in range(400):
        if fn():
            return
        time.sleep(0.05)        # the pace of asking
    check("set up: " + what, False)
    raise SystemExit(1)
