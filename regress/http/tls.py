#!/usr/bin/python3
"""tls.py ECHO CORPUS: what strangers can take of the HTTP server of apid by
TLS: its processor by hellos, its memory by the length that one claims, its
streams by not reading.  With the server and the checks of server.py, which
has the rest of TLS."""
import collections
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import server
from server import KEY, SANITIZED, Server, check, closed, end, hello, request

SECONDS = 3         # of a flood
OPEN = 64           # connections of it at one time: none is shed for them


def certificate(path, names):
    """An RSA key, whose signatures take long, and a certificate for so many
    names."""
    more = "".join(",DNS:n%d.names.of.no.use.example" % i
                   for i in range(names))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "2", "-subj", "/CN=localhost", "-addext", "basicConstraints=CA:TRUE",
         "-addext", "subjectAltName=DNS:localhost" + more, "-keyout",
         path + ".key", "-out", path], stderr=subprocess.DEVNULL, check=True)
    with open(path, "a") as f:
        f.write(open(path + ".key").read())
    return path


def first(s):
    """The first bytes of a client."""
    out = ssl.MemoryBIO()
    o = s.tls.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


class Flood:
    """Hellos of clients that want no more than a first answer."""
    def __init__(self, s):
        self.server, self.word, self.n = s, first(s), 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        held = collections.deque()
        while not self.stop.is_set():
            c = self.server.connect(plain=True)
            c.sendall(self.word)
            held.append(c)
            if len(held) >= OPEN:
                with held.popleft() as c:
                    self.n += c.recv(1) == b"\x16"
        for c in held:
            c.close()

    def end(self):
        self.stop.set()
        self.thread.join()


def spent(s):
    """Seconds that the server has run, and that it has run or would have, had
    a processor been free: what a busy machine does not make less."""
    with open("/proc/%d/schedstat" % s.p.pid) as f:
        ran, waited = (int(x) / 1e9 for x in f.read().split()[:2])
    return ran, ran + waited


def check_(got):
    if not got.startswith(b"HTTP/1.1 200"):
        check("a neighbour in a flood of hellos", False, got)


def test_flood(d):
    s = Server(tls=certificate(d + "/flood", 0))
    s.counts()
    f = Flood(s)
    time.sleep(0.3)     # until it is under way
    used, t = spent(s), time.monotonic()
    worst, ask = 0, request("GET", "/healthz", close=True)
    while time.monotonic() - t < SECONDS:
        a = time.monotonic()
        with s.connect() as c:
            c.sendall(ask)
            check_(c.recv(100))
        worst = max(worst, time.monotonic() - a)
        time.sleep(0.1)     # the pace of asking
    t = time.monotonic() - t
    ran, wanted = ((b - a) / t for a, b in zip(used, spent(s)))
    f.end()
    check("%d hellos in a flood: about half of the time is for them, not "
          "all (%d %%)" % (f.n, 100 * ran), SANITIZED or ran < 0.75, ran)
    check("  else it sleeps (wants %d %%)" % (100 * wanted),
          SANITIZED or wanted < 0.85, wanted)
    check("who comes meanwhile waits %d ms at most" % (worst * 1000),
          worst < 3, worst)
    end(s)


def test_flight(d):
    """Certificates that the socket does not take at once, in a flood: the
    turn of a connection that waits for room must not be lost."""
    s = Server("-s", "4608", tls=certificate(d + "/long", 1000))
    f = Flood(s)
    done = 0
    for i in range(8):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        c.settimeout(8)     # less than a handshake has
        c.connect(("127.0.0.1", s.port))
        try:
            with s.tls.wrap_socket(c, server_hostname="localhost") as c:
                c.sendall(request("GET", "/healthz", close=True))
                done += c.recv(100).startswith(b"HTTP/1.1 200")
        except OSError as e:
            print("# %r" % e)
            break
    f.end()
    check("a long certificate by little sockets, in a flood: all 8 go "
          "through", done == 8, done)
    end(s)


def test_gone(d):
    s = Server(tls=certificate(d + "/gone", 0))
    before = s.counts()["gone"]
    c = s.connect()
    c.sendall(request("GET", "/v1/events?limit=60000", KEY))
    s.await_counts(reqs=2)
    time.sleep(0.5)     # until no socket takes any more
    c.shutdown(socket.SHUT_WR)
    got = s.await_counts(reqs=1, gone=before + 1)
    check("who does not read a stream and closes its half is seen to go",
          got is True, got)
    socket.socket.close(c)
    end(s)


def record(data, kind=22):
    return bytes([kind, 3, 1]) + len(data).to_bytes(2, "big") + data


def claims(n, data=b""):
    return b"\x01" + n.to_bytes(3, "big") + data


def pss(s):
    with open("/proc/%d/smaps_rollup" % s.p.pid) as f:
        for line in f:
            if line.startswith("Pss:"):
                return int(line.split()[1])


def again(s):
    """A hello that is asked for once more: its only share is none that the
    server takes."""
    name = b"localhost"
    sni = (len(name) + 3).to_bytes(2, "big") + b"\0" + \
        len(name).to_bytes(2, "big") + name
    ext = b"".join(t.to_bytes(2, "big") + len(v).to_bytes(2, "big") + v
                   for t, v in ((0, sni), (10, b"\0\2\0\x17"), (51, b"\0\0"),
                                (13, b"\0\4\x08\x04\x04\x03"),
                                (43, b"\2\3\4")))
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + \
        len(ext).to_bytes(2, "big") + ext
    c = s.connect(plain=True)
    c.sendall(record(claims(len(body), body)))
    return c


def test_hello(d):
    s = Server(tls=certificate(d + "/hello", 0))
    s.counts()
    most = 131396       # what OpenSSL would take
    for what, data, over in (
            ("131,396 bytes", record(claims(most, bytes(100))), True),
            ("16,385 bytes", record(claims(16385)), True),
            ("16,384 bytes", record(claims(16384, bytes(100))), False),
            ("131,396 bytes, in records of a byte", b"".join(
                record(bytes([b])) for b in claims(most)), True),
            ("16,384 bytes, in records of a byte", b"".join(
                record(bytes([b])) for b in claims(16384)), False)):
        with s.connect(plain=True) as c:
            c.sendall(data)
            got = closed(c, 5 if over else 0.5)
            check("a hello of %s: %s" % (what, "is refused" if over else
                                         "the rest of it is awaited"),
                  got == over, got)
    for ccs in (b"", record(b"\1", 20)):
        for n in (most, 16384):
            with again(s) as c:
                got = c.recv(4000)
                c.sendall(ccs + record(claims(n, bytes(100))))
                check("a second hello of %d bytes%s: %s" % (
                    n, ", behind ChangeCipherSpec" if ccs else "",
                    "is refused" if n == most else "its rest is awaited"),
                    got[:1] == b"\x16" and
                    closed(c, 0.5) == (n == most), got)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        s.tls.minimum_version = s.tls.maximum_version = version
        n = 0
        for i in range(300):
            with s.connect() as c:
                c.sendall(request("GET", "/healthz", close=True))
                n += c.recv(100).startswith(b"HTTP/1.1 200")
        check("%s: 300 handshakes, none is taken for a long one" %
              version.name, n == 300, n)
    for n in (most, 16384):
        before, held = pss(s), []
        for i in range(250):
            c = s.connect(plain=True)
            c.sendall(record(claims(n, bytes(16000))))
            held.append(c)
        with s.connect():
            grown = (pss(s) - before) // 250
        check("250 hellos that claim %d bytes: at most 64 KiB each (%d)" %
              (n, grown), SANITIZED or grown < 64, grown)
        for c in held:
            c.close()
    end(s)


def main():
    signal.alarm(280)
    only = os.environ.get("WB_ONLY")    # one test, by its name
    try:
        with tempfile.TemporaryDirectory(prefix="wb-http.") as d:
            for test in (test_flood, test_flight, test_gone, test_hello):
                if only in (None, test.__name__):
                    test(d)
    finally:
        for p in server.started:
            p.kill()        # one that has ended does not mind
    return server.failed > 0


if __name__ == "__main__":
    sys.exit(main())
