#!/usr/bin/python3
"""judge.py CHECK CORPUS [MUTATIONS [SEED]]: the parser against nginx, node
and h11.

For every case of the corpus, and for mutations of the good ones:
  - what any of the three refuses, we refuse;
  - what we accept, all three read as the same messages;
  - good: all accept.  bad: we refuse, and so does one of them at least.
    strict: we refuse what they all accept, for the reason that is given.
A peer accepts when it answers every message of the case with 200 and then
the sentinel that follows it, or closes where the message asked for that.
"""
import concurrent.futures
import hashlib
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

import h11

HERE = os.path.dirname(os.path.abspath(__file__))
SENTINEL = (b"GET /sentinel HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
MARK = ("GET", b"/sentinel".hex(), hashlib.sha256(b"").hexdigest())
LIMIT = 2.5         # seconds for one case at one peer


# ---- the corpus ------------------------------------------------------------

def closing(text):
    """Where the brace closes that was opened before text."""
    depth = 1
    for i, c in enumerate(text):
        depth += (c == "{" and text[i - 1] == "\\") - (c == "}")
        if depth == 0:
            return i
    raise ValueError(text)


def unescape(text):
    out, i = bytearray(), 0
    named = {"r": 13, "n": 10, "t": 9, "0": 0, "\\": 92}
    while i < len(text):
        if text[i] != "\\":
            out += text[i].encode("latin-1")
            i += 1
        elif text[i + 1] == "x":
            out.append(int(text[i + 2:i + 4], 16))
            i += 4
        elif text[i + 1] == "{":
            n, rest = text[i + 2:].split("|", 1)
            end = closing(rest)
            out += unescape(rest[:end]) * int(n)
            i += 3 + len(n) + end + 1
        else:
            out.append(named[text[i + 1]])
            i += 2
    return bytes(out)


def read_corpus(path):
    cases, cur = [], None
    for line in open(path, encoding="latin-1", newline="\n"):
        line = line.rstrip("\n")
        if line.startswith("== "):
            name, kind, *why = line[3:].split(" ", 2)
            cur = [name, kind, bytearray(), why[0] if why else ""]
            cases.append(cur)
        elif cur is not None:
            # a line ends in CRLF unless a lone backslash ends it
            bare = re.search(r"(?<!\\)(\\\\)*\\$", line) is not None
            cur[2] += unescape(line[:-1] if bare else line)
            if not bare:
                cur[2] += b"\r\n"
    return [(n, k, bytes(b), w) for n, k, b, w in cases]


# ---- ourselves -----------------------------------------------------------------

def ours(check, cases):
    """-> verdicts, and what to send to the others: up to where a message
    closes, else with the sentinel behind it"""
    data = b"".join(struct.pack(">I", len(b + SENTINEL)) + b + SENTINEL
                    for b in cases)
    out = subprocess.run([check], input=data, stdout=subprocess.PIPE,
                         check=True).stdout
    seen, send = [], []
    for line, case in zip(out.decode().splitlines(), cases):
        o = json.loads(line)
        messages = [(m["method"], m["target"], hashlib.sha256(
            bytes.fromhex(m["body"])).hexdigest()) for m in o["messages"]]
        # a body that takes in the sentinel to its last byte asks for nothing
        whole = o["end"] == "close" or (
            o["end"] == "ok" and messages[-1:] == [MARK])
        seen.append(verdict(messages, whole,
                            o["end"] + " " + o.get("why", "")))
        send.append((case + SENTINEL)[:o["used"] if o["end"] == "close"
                                      else None])
    return seen, send


def verdict(messages, whole, how):
    """-> (accepted, messages without the sentinel, how it ended)"""
    if messages and messages[-1] == MARK:
        messages = messages[:-1]
        whole = whole and len(messages) > 0
    return (whole and len(messages) > 0, messages, how)


# ---- peers over sockets ------------------------------------------------------------

def read_responses(sock):
    """Statuses and X-Seen of what came until the end; how it ended."""
    buf, end = b"", "closed"
    try:
        while True:
            d = sock.recv(65536)
            if not d:
                break
            buf += d
    except (socket.timeout, TimeoutError):
        end = "hang"
    except OSError:
        end = "reset"
    out = []
    while b"\r\n\r\n" in buf:
        head, buf = buf.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        m = re.match(rb"HTTP/1\.[01] (\d{3})", lines[0])
        if not m:
            break
        status = int(m.group(1))
        fields = {k.strip().lower(): v.strip() for k, _, v in
                  (x.partition(b":") for x in lines[1:])}
        if status == 100:
            continue
        seen = json.loads(fields[b"x-seen"]) if b"x-seen" in fields else None
        # nobody of these sends a body with 200
        n = int(fields.get(b"content-length", b"0"))
        buf = buf[n:] if status != 200 else buf
        if status == 200 and fields.get(b"transfer-encoding") == b"chunked":
            buf = buf.split(b"0\r\n\r\n", 1)[-1]
        out.append((status, seen))
    return out, end


def over_socket(path, data):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LIMIT)
        s.connect(path)
        t = threading.Thread(target=send, args=(s, data))
        t.start()
        got, end = read_responses(s)
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        t.join()
    messages = [(x["method"], x["target"], x["body"]) for st, x in got
                if st == 200 and x]
    bad = [st for st, x in got if st != 200]
    # where we close a peer may wait for more, as nginx does at HTTP/1.0
    waits = end == "hang" and not data.endswith(SENTINEL)
    return verdict(messages, not bad and (end == "closed" or waits),
                   "%s %s" % (end, bad))


def send(s, data):
    try:
        s.sendall(data)
    except OSError:
        pass    # refused before all was sent


def by_h11(data):
    c = h11.Connection(h11.SERVER)
    messages, body, req = [], b"", None
    c.receive_data(data)
    try:
        while True:
            e = c.next_event()
            if e is h11.NEED_DATA:
                return verdict(messages, False, "more")
            if e is h11.PAUSED:
                c.start_next_cycle()
            elif isinstance(e, h11.Request):
                req, body = e, b""
            elif isinstance(e, h11.Data):
                body += bytes(e.data)
            elif isinstance(e, h11.EndOfMessage):
                messages.append((req.method.decode(), req.target.hex(),
                                 hashlib.sha256(body).hexdigest()))
                c.send(h11.Response(status_code=200, headers=[
                    ("Content-Length", "0")]))
                c.send(h11.EndOfMessage())
                if c.our_state is h11.MUST_CLOSE:
                    return verdict(messages, True, "close")
                c.start_next_cycle()
            elif isinstance(e, h11.ConnectionClosed):
                return verdict(messages, False, "closed")
    except (h11.RemoteProtocolError, h11.LocalProtocolError) as x:
        return verdict(messages, False, str(x))


# ---- peers as processes ---------------------------------------------------------------

def backend(path):
    """What nginx passes on; its answer tells what that was."""
    srv = socket.socket(socket.AF_UNIX)
    srv.bind(path)
    srv.listen(256)

    def serve(s):
        with s:
            buf = b""
            while b"\r\n\r\n" not in buf:
                d = s.recv(65536)
                if not d:
                    return
                buf += d
            head, body = buf.split(b"\r\n\r\n", 1)
            method, target, _ = head.split(b"\r\n")[0].split(b" ")
            m = re.search(rb"\r\nContent-Length: (\d+)", head, re.I)
            n = int(m.group(1)) if m else 0
            while len(body) < n:
                d = s.recv(65536)
                if not d:
                    return
                body += d
            seen = json.dumps({"method": method.decode(),
                               "target": target.hex(),
                               "body": hashlib.sha256(body).hexdigest()})
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                      b"Connection: close\r\nX-Seen: %s\r\n\r\n"
                      % seen.encode())

    def loop():
        while True:
            try:
                s, _ = srv.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(s,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


NGINX = """
daemon off; master_process off; pid %(dir)s/nginx.pid; error_log /dev/null;
events { worker_connections 512; }
http {
    access_log off; client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p;
    fastcgi_temp_path %(dir)s/f; uwsgi_temp_path %(dir)s/u;
    scgi_temp_path %(dir)s/s;
    client_header_timeout 1s; client_body_timeout 1s; lingering_timeout 1s;
    lingering_close off; client_max_body_size 0; proxy_buffer_size 64k;
    proxy_buffers 4 64k; proxy_busy_buffers_size 64k; merge_slashes off;
    server {
        listen unix:%(dir)s/nginx.sock; server_name _;
        location / { proxy_pass http://unix:%(dir)s/backend.sock:; }
    }
}
"""


def start_peers(where):
    backend(where + "/backend.sock")
    with open(where + "/nginx.conf", "w") as f:
        f.write(NGINX % {"dir": where})
    procs = [
        subprocess.Popen(["nginx", "-c", where + "/nginx.conf", "-p", where],
                         stderr=subprocess.DEVNULL,
                         env=dict(os.environ,
                                  PATH=os.environ["PATH"] + ":/usr/sbin")),
        subprocess.Popen(["node", HERE + "/peer.js", where + "/node.sock"],
                         stdout=subprocess.PIPE),
    ]
    procs[1].stdout.readline()
    for _ in range(500):    # until it answers; nginx tells nobody
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(where + "/nginx.sock")
            return procs
        except OSError:
            procs[0].poll()
            threading.Event().wait(0.02)
    raise SystemExit("nginx does not come up")


# ---- mutations --------------------------------------------------------------------------

ODD = [b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"0", b";", b",", b"\0",
       b"\x0b", b"/", b".", b"%", b"+", b"-", b"x", b"\x80", b"\xff", b"\x7f",
       b"chunked", b"Content-Length: 0\r\n", b"Host: b\r\n", b"1", b"\\",
       b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1", b"_", b'"', b"#"]


def mutate(rnd, b):
    b = bytearray(b)
    for _ in range(rnd.choice([1, 1, 1, 2, 3])):
        at = rnd.randrange(len(b) + 1)
        how = rnd.randrange(5)
        if how == 0 and at < len(b):
            b[at] ^= 1 << rnd.randrange(8)
        elif how == 1:
            b[at:at + 1] = rnd.choice(ODD)
        elif how == 2:
            b[at:at] = rnd.choice(ODD)
        elif how == 3:
            del b[at:at + rnd.choice([1, 1, 2])]
        else:
            n = rnd.randrange(12)
            b[at:at] = b[at:at + n]
    return bytes(b)


# ---- judgement ------------------------------------------------------------------------------

def judge(kind, us, them):
    """What is wrong, or None."""
    refuse = [p for p, v in them.items() if not v[0]]
    if us[0]:
        if refuse:
            return "accepted, but refused by " + ", ".join(refuse)
        other = [p for p, v in them.items() if v[1] != us[1]]
        if other:
            return "read otherwise by " + ", ".join(other)
    if kind == "good" and refuse:
        return "good, but refused by " + ", ".join(refuse)
    if kind == "good" and not us[0]:
        return "good, but refused by us"
    if kind in ("bad", "strict") and us[0]:
        return "accepted"
    if kind in ("bad", "strict") and us[2].startswith(("ok", "close")):
        return "no error"
    if kind == "bad" and not refuse:
        return "bad, but all the others accept it: strict, with a reason"
    if kind == "strict" and refuse:
        return "strict, but refused by " + ", ".join(refuse) + ": bad"
    return None


def main():
    check, corpus = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    cases = read_corpus(corpus)
    rnd = random.Random(seed)
    good = [b for n, k, b, w in cases if k == "good" and len(b) < 2000]
    cases += [("mutation-%d" % i, "any", mutate(rnd, rnd.choice(good)), "")
              for i in range(count)]
    us, sent = ours(check, [b for n, k, b, w in cases])
    failed, refused, accepted = 0, {"nginx": 0, "node": 0, "h11": 0}, 0
    with tempfile.TemporaryDirectory(prefix="wb-http.") as where, \
            concurrent.futures.ThreadPoolExecutor(16) as pool:
        procs = start_peers(where)
        try:
            nginx = [pool.submit(over_socket, where + "/nginx.sock", b)
                     for b in sent]
            node = [pool.submit(over_socket, where + "/node.sock", b)
                    for b in sent]
            for i, (name, kind, data, why) in enumerate(cases):
                them = {"nginx": nginx[i].result(),
                        "node": node[i].result(), "h11": by_h11(sent[i])}
                for p, v in them.items():
                    refused[p] += not v[0]
                accepted += us[i][0]
                wrong = judge(kind, us[i], them)
                if wrong is None and kind != "any":
                    print("ok - %s" % name)
                elif wrong is not None:
                    failed += 1
                    print("not ok - %s: %s" % (name, wrong))
                    print("#   %r" % data[:600])
                    print("#   we: %s" % (us[i],))
                    for p, v in them.items():
                        print("#   %s: %s" % (p, v))
        finally:
            for p in procs:
                p.terminate()
                p.wait()
    n = {k: sum(1 for c in cases if c[1] == k)
         for k in ("good", "bad", "strict", "any")}
    print("# %(good)d good, %(bad)d bad, %(strict)d strict, "
          "%(any)d mutations" % n)
    print("# refused: we %d, %s" % (len(cases) - accepted, ", ".join(
        "%s %d" % x for x in refused.items())))
    if count and not failed:
        print("ok - mutations: seed %d, none accepted that another refuses"
              % seed)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
