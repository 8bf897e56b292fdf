#!/usr/bin/python3
"""watch.py LISTEN UPSTREAM REPORT: stands between clients and a server and
holds every exchange against the server's own document.

LISTEN and UPSTREAM are ports on 127.0.0.1 or paths of unix sockets.  Bytes
are passed on unchanged, both ways, at once.  Prints "ready"; when SIGTERM
comes, writes REPORT: a first line "N answers, M faults" and a line for each
fault.  No Host is rewritten: what the client says must suit the server.
"""
import json
import re
import signal
import socket
import sys
import threading

from contract import FRAMES, Contract, frames

HELD = 128 << 10    # bytes that are passed on, in each of two buffers
KEEP = 8 << 20      # bytes of a body that are looked at; longer: not


def address(text):
    if text.isdigit():
        return socket.AF_INET, ("127.0.0.1", int(text))
    return socket.AF_UNIX, text


class Messages:
    """HTTP messages out of a stream that is known to be good.  Calls
    head(first line, fields), which tells whether a body follows, body(bytes)
    and end()."""
    def __init__(self, head, body, end):
        self.on_head, self.on_body, self.on_end = head, body, end
        self.buf, self.state, self.left = bytearray(), "head", 0

    def feed(self, data):
        self.buf += data
        while self.step():
            pass

    def line(self):
        i = self.buf.find(b"\r\n")
        if i == -1:
            return None
        line = bytes(self.buf[:i])
        del self.buf[:i + 2]
        return line

    def step(self):
        if self.state == "head":
            i = self.buf.find(b"\r\n\r\n")
            if i == -1:
                return False
            lines = bytes(self.buf[:i]).decode("latin-1").split("\r\n")
            del self.buf[:i + 4]
            fields = {}
            for x in lines[1:]:
                k, _, v = x.partition(":")
                fields[k.strip().lower()] = v.strip()
            how = self.on_head(lines[0], fields)
            if how == "none":
                self.on_end()
            elif fields.get("transfer-encoding") == "chunked":
                self.state = "size"
            elif "content-length" in fields:
                self.left = int(fields["content-length"])
                self.state = "fixed"
            elif how == "request":
                self.on_end()
            else:
                self.state = "rest"
            return True
        if self.state == "size":
            line = self.line()
            if line is None:
                return False
            self.left = int(line, 16)
            self.state = "chunk" if self.left else "last"
            return True
        if self.state in ("last", "after"):
            if self.line() is None:
                return False
            if self.state == "last":
                self.on_end()
            self.state = "head" if self.state == "last" else "size"
            return True
        if self.state == "rest":
            self.on_body(bytes(self.buf))
            self.buf.clear()
            return False
        if self.left == 0:
            if self.state == "fixed":
                self.on_end()
                self.state = "head"
            else:
                self.state = "after"
            return True
        part = bytes(self.buf[:self.left])
        if not part:
            return False
        del self.buf[:len(part)]
        self.left -= len(part)
        self.on_body(part)
        return True

    def eof(self):
        if self.state == "rest":
            self.on_end()


class Exchange:
    """One connection's requests and answers, in order."""
    def __init__(self, watch):
        self.watch, self.asked = watch, []
        self.request = Messages(self.req_head, self.req_body, self.req_end)
        self.answer = Messages(self.ans_head, self.ans_body, self.ans_end)
        self.skip, self.x, self.status = False, None, 0
        self.type, self.body = None, bytearray()

    def req_head(self, line, fields):
        method, target, _ = line.split(" ")
        self.asked.append({"method": method, "target": target,
                           "requestBody": bytearray()})
        return "request"

    def req_body(self, part):
        self.asked[-1]["requestBody"] += part

    def req_end(self):
        pass

    def ans_head(self, line, fields):
        m = re.match(r"HTTP/1\.1 (\d{3})", line)
        self.status = int(m.group(1)) if m else 0
        self.skip = self.status == 100
        if self.skip:
            return "none"
        self.type, self.body = fields.get("content-type"), bytearray()
        self.x = self.asked.pop(0) if self.asked else {
            "method": "GET", "target": "/refused", "requestBody": b""}
        return "none" if self.x["method"] == "HEAD" or \
            self.status in (204, 304) else "answer"

    def ans_body(self, part):
        if len(self.body) < KEEP:
            self.body += part

    def ans_end(self):
        if self.skip:
            return
        body = self.body
        if len(body) >= KEEP and self.type.startswith("application/x-ndjson"):
            body = body[:body.rfind(b"\n") + 1]
        if len(body) >= KEEP and self.type == FRAMES:
            body = body[:len(body) - len(frames(body)[1])]
        self.watch.judge(dict(
            self.x, status=self.status, type=self.type,
            body=body.decode("utf-8", "surrogateescape"),
            requestBody=bytes(self.x["requestBody"]).decode(
                "utf-8", "surrogateescape")))

    def cut(self):
        """A stream that ended within: its whole lines count."""
        if self.x and self.answer.state in ("size", "chunk", "after") and \
                (self.type or "").startswith("application/x-ndjson"):
            self.body = self.body[:self.body.rfind(b"\n") + 1]
            self.ans_end()
        self.answer.eof()


class Watch:
    def __init__(self, upstream):
        self.upstream = upstream
        self.lock = threading.Lock()
        self.count, self.faults, self.contract = 0, [], None

    def connect(self):
        family, where = address(self.upstream)
        s = socket.socket(family)
        s.connect(where)
        return s

    def document(self):
        with self.connect() as s:
            s.sendall(b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n"
                      b"Connection: close\r\n\r\n")
            data = b""
            while True:
                d = s.recv(65536)
                if not d:
                    break
                data += d
        return Contract(json.loads(data.split(b"\r\n\r\n", 1)[1]))

    def judge(self, x):
        with self.lock:
            if self.contract is None:
                self.contract = self.document()
            self.count += 1
            try:
                faults = self.contract.check(x)
            except Exception as e:      # a fault of ours is one, too
                faults = [repr(e)]
            for f in faults:
                self.faults.append("%s %s: %d: %s" % (
                    x["method"], x["target"], x["status"], f))

    def serve(self, client):
        try:
            server = self.connect()
        except OSError:
            client.close()
            return
        # what lies here a client has not been sent, and the server thinks so
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HELD)
        x = Exchange(self)

        def up():
            pump(client, server, x.request.feed)
        t = threading.Thread(target=up, daemon=True)
        t.start()
        pump(server, client, x.answer.feed)
        x.cut()
        for s in (client, server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        t.join()
        client.close()
        server.close()


def pump(a, b, look):
    """Looks first, so that an answer finds its request; then passes on."""
    while True:
        try:
            d = a.recv(65536)
        except OSError:
            d = b""
        if not d:
            break
        if look is not None:
            try:
                look(d)
            except Exception:
                look = None     # no HTTP: passed on, not looked at
        try:
            b.sendall(d)
        except OSError:
            break
    try:
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    listen, upstream, report = sys.argv[1:4]
    family, where = address(listen)
    srv = socket.socket(family)
    srv.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    srv.bind(where)
    srv.listen(256)
    watch = Watch(upstream)

    def stop(*_):
        with open(report, "w") as f:
            f.write("%d answers, %d faults\n" % (watch.count,
                                                 len(watch.faults)))
            for line in watch.faults:
                f.write(line.encode("utf-8", "replace").decode() + "\n")
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)
    print("ready", flush=True)
    while True:
        client, _ = srv.accept()
        threading.Thread(target=watch.serve, args=(client,),
                         daemon=True).start()


if __name__ == "__main__":
    main()
