# tls.py PORT CA TOKEN WHAT [PID]: hostile and slow peers of a TLS server, for
# tls.sh.  Prints `ok - ' and `not ok - ' lines.
import json
import os
import socket
import ssl
import sys
import threading
import time

port, ca, token, what = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


def check(good, text, more=""):
    print(("ok - " if good else "not ok - ") + text)
    if not good:
        print("# got: %r" % (more,))


def context(low=None, high=None, alpn=None):
    c = ssl.create_default_context(cafile=ca)
    if low:
        c.minimum_version = low
    if high:
        c.maximum_version = high
    if alpn:
        c.set_alpn_protocols(alpn)
    return c


def connect(c=None, timeout=20):
    s = socket.create_connection(("127.0.0.1", port), timeout)
    return (c or context()).wrap_socket(s, server_hostname="127.0.0.1",
                                        suppress_ragged_eofs=False)


def head(method, path, more=""):
    return ("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
            "%s\r\n%s\r\n" % (method, path, port, token, more)).encode()


def read_all(s):
    got = b""
    while True:
        try:
            d = s.recv(65536)
        except ssl.SSLEOFError:
            return got + b"<cut>"
        if not d:
            return got
        got += d


def ask(path="/healthz"):
    s = connect()
    s.sendall(head("GET", path, "Connection: close\r\n"))
    got = read_all(s)
    s.close()
    return got


def run(name):      # a command by the API, as a neighbour
    body = json.dumps({"argv": ["echo", name]}).encode()
    s = connect()
    s.sendall(head("POST", "/v1/sandboxes/b/exec", "Content-Type: "
              "application/json\r\nConnection: close\r\nContent-Length: %d\r\n"
              % len(body)) + body)
    return read_all(s)


def rss():
    with open("/proc/%s/status" % sys.argv[5]) as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])


def versions():
    v = ssl.TLSVersion
    for low, name, suite in ((v.TLSv1_3, "TLSv1.3", "TLS_"),
                             (v.TLSv1_2, "TLSv1.2", "ECDHE-")):
        s = connect(context(low, low))
        check(s.version() == name and s.cipher()[0].startswith(suite),
              "%s: %s" % (name, s.cipher()[0]), s.version())
        check(s.session is None or not s.session.has_ticket,
              name + ": no ticket")
        s.close()
    s = connect(context(alpn=["h2", "http/1.1"]))
    check(s.selected_alpn_protocol() == "http/1.1", "ALPN: http/1.1")
    s.close()
    try:
        connect(context(alpn=["h2"]))
        check(False, "ALPN: another one alone is refused")
    except ssl.SSLError as e:
        check("no application protocol" in str(e),
              "ALPN: another one alone is refused", str(e))
    for suite in ("AES128-SHA256", "ECDHE-ECDSA-AES128-SHA256"):
        c = context(v.TLSv1_2, v.TLSv1_2)
        c.set_ciphers(suite + ":@SECLEVEL=0")
        try:
            connect(c)
            check(False, suite + " is refused")
        except ssl.SSLError as e:
            check("HANDSHAKE" in str(e).upper(), suite + " is refused",
                  str(e))


def half_close(tell):
    inc, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = context().wrap_bio(inc, out, server_hostname="127.0.0.1")
    k = socket.create_connection(("127.0.0.1", port), 20)
    while True:
        try:
            o.do_handshake()
            break
        except ssl.SSLWantReadError:
            k.sendall(out.read())
            inc.write(k.recv(65536))
    o.write(head("POST", "/v1/sandboxes/b/exec", "Content-Type: application/"
            "json\r\nContent-Length: 44\r\n") +
            b'{"argv": ["sh", "-c", "sleep 0.5; echo on"]}')
    if tell:
        try:
            o.unwrap()
        except ssl.SSLWantReadError:
            pass
    k.sendall(out.read())
    k.shutdown(socket.SHUT_WR)
    n, text = 0, b""
    while True:
        d = k.recv(65536)
        if not d:
            break
        n += len(d)
        inc.write(d)
    inc.write_eof()
    try:
        while not tell:
            d = o.read(65536)
            if not d:
                break
            text += d
    except ssl.SSLError:
        pass
    return text, n


def stream():
    # the peer's end, told in TLS, is not the answer's
    s = connect()
    s.sendall(head("GET", "/v1/version", "Connection: close\r\n"))
    got = read_all(s)
    check(b" 200 " in got and b"<cut>" not in got,
          "an answer that ends the connection ends it in TLS, too", got[-60:])
    # half-close: in TLS, whose answer this end cannot read any more, and by
    # the socket alone
    want = half_close(False)
    check(b'"client-gone"' in want[0] and want[0].endswith(b"}"),
          "who closes its half still gets the answer, which says so", want)
    told = half_close(True)
    check(abs(told[1] - want[1]) < 64, "  also who says so in TLS",
          (told, want))
    # many small requests in one record, and one request in many records
    s = connect()
    s.sendall(head("GET", "/healthz") * 20)
    got = b""
    s.settimeout(5)
    while got.count(b"HTTP/1.1 200") < 20:
        d = s.recv(65536)
        if not d:
            break
        got += d
    check(got.count(b"HTTP/1.1 200") == 20,
          "20 requests in one record: 20 answers",
          got.count(b"HTTP/1.1 200"))
    for b in head("GET", "/healthz", "Connection: close\r\n"):
        s.sendall(bytes([b]))
    check(b" 200 " in read_all(s), "a request of a byte per record")
    # bodies larger than a record, in both directions
    body = json.dumps({"argv": ["cat"], "stdin": "x" * 700000}).encode()
    s = connect()
    s.sendall(head("POST", "/v1/sandboxes/b/exec", "Content-Type: "
              "application/json\r\nConnection: close\r\nContent-Length: %d\r\n"
              % len(body)) + body)
    check(read_all(s).count(b"x") >= 700000, "700,000 bytes there and back")


def stall():
    before = rss()
    held = []
    for i in range(200):
        k = socket.create_connection(("127.0.0.1", port), 20)
        # the first 300 bytes of a hello that tells more
        k.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(280))
        held.append(k)
    t = time.monotonic()
    got = run("neighbour")
    check(b"neighbour" in got, "200 hellos that stall: a neighbour's exec",
          got[-200:])
    check(time.monotonic() - t < 5, "  in time", time.monotonic() - t)
    grown = rss() - before
    check(grown < 200 * 128, "  for less than 128 KiB each: %d KiB"
          % (grown // 200), grown)
    for k in held:
        k.close()


def half():
    # real handshakes that stop before their last word, more than there is
    # room for: the oldest go
    held = []
    for i in range(400):
        inc, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        o = context_once.wrap_bio(inc, out, server_hostname="127.0.0.1")
        try:
            o.do_handshake()
        except ssl.SSLWantReadError:
            pass
        k = socket.create_connection(("127.0.0.1", port), 20)
        k.sendall(out.read())
        held.append(k)
    got = [run("n%d" % i) for i in range(5)]
    served = all(b"n%d" % i in got[i] for i in range(5))
    check(served, "400 half handshakes: a neighbour's exec", got[-1][-200:])
    gone = 0
    for k in held[:200]:
        k.settimeout(0.01)
        try:
            while True:
                if k.recv(65536) == b"":
                    gone += 1
                    break
        except (ConnectionError, TimeoutError, socket.timeout) as e:
            gone += isinstance(e, ConnectionError)
    check(gone >= 100, "  the oldest of them are gone", gone)
    for k in held:
        k.close()
    # a storm: each goes through to the end and away
    stop = time.monotonic() + 3
    n = [0]

    def storm():
        while time.monotonic() < stop:
            try:
                connect(context_once).close()
                n[0] += 1
            except OSError:
                pass
    t = [threading.Thread(target=storm) for _ in range(8)]
    for x in t:
        x.start()
    worst = 0
    while time.monotonic() < stop:
        a = time.monotonic()
        check_(run("storm"))
        worst = max(worst, time.monotonic() - a)
    for x in t:
        x.join()
    check(worst < 3, "%d handshakes in 3 s: a neighbour's exec waits %d ms at "
          "most" % (n[0], worst * 1000), worst)


def check_(got):
    if b"storm" not in got:
        check(False, "a neighbour's exec in a storm", got[-200:])


def garbage():
    before = rss()
    for i in range(100):
        k = socket.create_connection(("127.0.0.1", port), 20)
        try:
            k.sendall(os.urandom(3000))
            k.settimeout(5)
            while k.recv(4096):
                pass
        except (ConnectionError, TimeoutError):
            pass
        k.close()
    # and behind a handshake, where it is no record
    for i in range(20):
        s = connect(context_once)
        k = socket.socket(fileno=os.dup(s.fileno()))
        k.sendall(os.urandom(400))
        try:
            s.settimeout(5)
            s.recv(100)
        except (OSError, ssl.SSLError):
            pass
        s.close()
        k.close()
    check(b" 200 " in ask(), "garbage, before and behind a handshake: it "
          "serves")
    check(rss() - before < 8192, "  and has not grown", rss() - before)


def load():
    # until there is the file PID: connections that stay and such that come
    stop, bad, n = sys.argv[5], [], [0, 0]

    def stays():
        s = connect()
        while not os.path.exists(stop):
            s.sendall(head("GET", "/healthz"))
            got = s.recv(65536)
            n[0] += 1
            if not got.startswith(b"HTTP/1.1 200"):
                bad.append(got)
                return

    def comes():
        while not os.path.exists(stop):
            got = ask()
            n[1] += 1
            if b" 200 " not in got:
                bad.append(got)
                return

    def guard(fn):
        try:
            fn()
        except OSError as e:
            bad.append(e)
    t = [threading.Thread(target=guard, args=(fn,))
         for fn in (stays, stays, stays, stays, comes, comes)]
    for x in t:
        x.start()
    for x in t:
        x.join()
    check(n[0] > 50 and n[1] > 10 and not bad, "no connection was dropped, "
          "none refused", (n, bad))


context_once = context()
globals()[what]()
