"""destroy.py CYCLES [SEED]: sandboxes are removed while eight clients are within
requests to them.  Each client gets one whole answer, each stream one end, and
the record says of each session that it began and ended once.
"""
import json
import random
import sys
import threading
import time

import wire
from wire import Answer, Req, check, connect, delete, get, good, post, rest, \
    talk, until

SB = "/v1/sandboxes"
MIB = b"x" * 1048576
TALKS = ["sh", "-c", "while :; do seq 300; usleep 5000; done"]
# what a client may be told of a sandbox that goes, or has gone
OVER = {(409, "not-ready"), (404, "not-found")}
faults = []
lock = threading.Lock()


def fault(text, *more):
    with lock:
        faults.append("%s: %s" % (text, " ".join("%.400s" % (m,)
                                                 for m in more)))


def send(s, data):
    try:
        s.sendall(data)
    except OSError:             # refused before all was sent
        pass


def answered(name, a, ok=(200,), codes=()):
    """One answer, whole, and one that says what has become of it."""
    if not a.whole:
        fault(name, "is cut", a)
    elif a.status not in ok and (a.status, a.json.get("code")) not in \
            OVER | set(codes):
        fault(name, "is told", a)


def streamed(name, a, start):
    """A stream: in order, one end, and that the last line; or a problem."""
    if a.status != 200:
        answered(name, a)
        return
    lines = a.body.split(b"\n")
    if not a.whole or lines.pop() != b"":
        fault(name, "is cut", a.raw[-300:])
        return
    lines = [json.loads(x) for x in lines]
    if start and (not lines or "start" not in lines.pop(0)):
        fault(name, "has no start")
    if not lines or "end" not in lines[-1]:
        fault(name, "has no end", lines[-1:])
        return
    if lines.pop()["end"]["state"] != "ended":
        fault(name, "its end is none", a.raw[-600:])
    seq = 0
    for x in lines:
        first = x["gap"]["first"] if "gap" in x else x.get("seq")
        if first != seq + 1:
            fault(name, "after chunk %d" % seq, str(x)[:300])
            return
        seq = x["gap"]["last"] if "gap" in x else first


class Cycle:
    def __init__(self, name, rng):
        self.path = "%s/%s" % (SB, name)
        self.id = good(post(SB, {"name": name, "network": "none"})).json["id"]
        self.delay, self.grace = rng.random() * 0.15, rng.choice((0, 0, 1))
        self.deleting = threading.Event()
        self.begun = threading.Semaphore(0)
        self.writer = self.session(TALKS)
        self.sleeper = self.session(["sleep", "1000"])
        self.reader = self.session(["sh", "-c", "exec cat >/dev/null"])
        self.other = self.session(["sh", "-c", "exec cat >/dev/null"])

    def session(self, argv):
        return good(post(self.path + "/sessions", {
            "argv": argv, "stdinOpen": True})).json["sessionId"]

    def at(self, sid, what=""):
        return "%s/sessions/%s%s" % (self.path, sid, what)

    # ---- the clients: each says when it is on its way

    def one(self, r, wait=False):
        with connect() as s:
            send(s, r.data)
            self.begun.release()
            if wait:            # and reads nothing until then
                self.deleting.wait()
            return Answer(rest(s))

    def command(self):
        answered("a command", self.one(post(self.path + "/exec", {
            "argv": ["sleep", "1000"]})))

    def stream(self):
        streamed("a command's stream", self.one(post(
            self.path + "/exec?stream=1", {"argv": TALKS})), True)

    def deaf(self):
        streamed("a stream that is read late", self.one(post(
            self.path + "/exec?stream=1", {"argv": ["yes"]}), True), True)

    def follow(self):
        streamed("a follower", self.one(get(
            self.at(self.writer, "/output?follow=1"))), False)

    def wait(self):
        a = self.one(get(self.at(self.sleeper, "?wait=3600")))
        answered("who waits for the end", a)
        if a.status == 200 and a.json["state"] != "ended":
            fault("who waits for the end", "is told", a)

    def upload(self):
        offset, first = 0, True
        while True:
            r = post(self.at(self.reader, "/stdin?offset=%d" % offset), MIB)
            with connect() as s:
                send(s, r.data)
                if first:
                    self.begun.release()
                first = False
                a = Answer(rest(s))
            answered("an upload", a, codes={(409, "ended")})
            if a.status != 200:
                return
            offset += len(MIB)
            if a.json["offset"] != offset:
                fault("an upload", "is at", a)

    def half(self):
        """An upload whose other half comes when the sandbox goes."""
        r = post(self.at(self.other, "/stdin?offset=0"), MIB)
        with connect() as s:
            send(s, r.data[:len(r.data) // 2])
            self.begun.release()
            self.deleting.wait()
            send(s, r.data[len(r.data) // 2:])
            answered("half an upload", Answer(rest(s)),
                     codes={(409, "ended")})

    def commands(self):
        first = True
        while True:
            a = talk(post(self.path + "/exec", {"argv": ["true"]}).data)
            answered("one command after another", a)
            s = talk(post(self.at(self.sleeper, "/signal"),
                          {"signal": "CONT"}).data)
            answered("one signal after another", s, (204,),
                     {(409, "ended")})
            if first:
                self.begun.release()
            first = False
            if a.status != 200:
                return

    def remove(self):
        a = talk(delete("%s/%s?graceSeconds=%d" % (SB, self.id,
                                                   self.grace)).data)
        answered("a removal", a)
        if a.json.get("state") not in ("DELETING", "DELETED"):
            fault("a removal", "is told", a)

    def run(self):
        clients = [threading.Thread(target=f, daemon=True) for f in (
            self.command, self.stream, self.deaf, self.follow, self.wait,
            self.upload, self.half, self.commands)]
        for t in clients:
            t.start()
        for t in clients:
            if not self.begun.acquire(timeout=30):
                fault("a client", "does not begin")
        time.sleep(self.delay)          # a moment of its own each time
        removers = [threading.Thread(target=self.remove, daemon=True)
                    for _ in range(2)]
        for t in removers:
            t.start()
        self.deleting.set()
        for t in clients + removers:
            t.join(30)
            if t.is_alive():
                fault(str(t), "has no answer")
        until("%s is DELETED" % self.id, lambda: get(
            "%s/%s" % (SB, self.id)).send().json["state"] == "DELETED")


def told(since, ids):
    """The records of these."""
    lines = good(get("/v1/events?after=%d" % since)).body.splitlines()
    return [e for e in map(json.loads, lines) if e["sandboxId"] in ids]


def deleted(e):
    return e["type"] == "sandbox.state" and e["data"]["to"] == "DELETED"


def record(since, ids):
    """Each session of these began and ended once, each sandbox went once."""
    began, ended, gone = [], [], []
    # that one has gone is told before it is on the disk
    until("the last is on the record", lambda: any(
        deleted(e) for e in told(since, ids[-1:])))
    for e in told(since, set(ids)):
        if e["type"] == "session.started":
            began.append(e["sessionId"])
        elif e["type"] == "session.ended":
            ended.append(e["sessionId"])
        elif deleted(e):
            gone.append(e["sandboxId"])
    check("%d sessions began and ended once" % len(began),
          len(began) >= 7 * len(ids) and sorted(began) == sorted(ended) and
          len(set(began)) == len(began), set(began) ^ set(ended))
    check("%d sandboxes went once" % len(ids), sorted(gone) == sorted(ids),
          set(gone) ^ set(ids))


def main():
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    rng = random.Random(seed)
    events = good(get("/v1/events")).body.splitlines()
    since, ids = json.loads(events[-1])["seq"], []
    for i in range(count):
        c = Cycle("destroy-%d" % i, rng)
        ids.append(c.id)
        was = len(faults)
        c.run()
        for f in faults[was:]:
            print("# cycle %d, grace %d: %s" % (i, c.grace, f))
        if len(faults) > 50:
            break
    check("B48 %d removals with 8 clients each: one answer, one end (seed %d)"
          % (count, seed), not faults, "%d faults" % len(faults))
    record(since, ids)
    return wire.failed


if __name__ == "__main__":
    sys.exit(main())
