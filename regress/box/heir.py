#!/usr/bin/python3
"""heir.py CASE URL: several readers of one session, of which one holds it.

The command in sandbox "a" writes 30,000,000 bytes.  Prints what the one that
comes back got.  Environment: WB_TOKEN.

  early   it comes back before its old connection is seen to have ended, and
          reads nothing for a while
  beside  it reads beside one that stands still, until that one goes
  ahead   the same, and comes back twice meanwhile, further than the one
          that stands still
  missed  it reads beside one that stands still and has missed much already,
          when the one goes that held
"""
import http.client
import json
import os
import sys
import threading
import time
import urllib.parse

TOTAL = 30000000
HEAD = {"Authorization": "Bearer " + os.environ["WB_TOKEN"],
        "Content-Type": "application/json"}
AT = urllib.parse.urlparse(sys.argv[2]).netloc


class Reader:
    """A stream of chunks.  got: bytes; last: the number of the last one."""

    def __init__(self, method, path, body=None, last=0):
        self.got, self.gaps, self.last = 0, 0, last
        conn = http.client.HTTPConnection(AT, timeout=60)
        conn.request(method, "/v1/sandboxes/a" + path, body, HEAD)
        self.sock, self.answer = conn.sock, conn.getresponse()

    @classmethod
    def start(cls, before="true"):
        """Starts the command, and holds it."""
        write = "%s; head -c %d /dev/zero | tr '\\0' x" % (before, TOTAL)
        r = cls("POST", "/exec?stream=1",
                json.dumps({"argv": ["sh", "-c", write]}))
        r.id = json.loads(r.answer.readline())["start"]["sessionId"]
        return r

    @classmethod
    def follow(cls, sid, last):
        return cls("GET", "/sessions/%s/output?follow=1&after=%d" %
                   (sid, last), last=last)

    def take(self, line):
        chunk = json.loads(line)
        self.gaps += "gap" in chunk
        self.got += len(chunk.get("data", ""))
        self.last = chunk.get("seq", self.last)

    def read(self, last):
        while self.last < last:
            self.take(self.answer.readline())

    def read_all(self):
        for line in self.answer:
            self.take(line)

    def read_quiet(self):
        """Reads until no chunk has come for a while."""
        thread = threading.Thread(target=self.read_all, daemon=True)
        thread.start()
        was = -1
        while was != self.got:
            was = self.got
            time.sleep(1)
        return thread

    def close(self):
        self.answer.close()
        self.sock.close()


def early():
    one = Reader.start()
    one.read(20)
    two = Reader.follow(one.id, one.last)
    two.take(two.answer.readline())     # it is there, beside the other
    one.close()
    time.sleep(12)
    two.read_all()
    return "", one.got + two.got, one.gaps + two.gaps


def beside():
    one = Reader.start()
    one.read(20)
    two = Reader.follow(one.id, one.last)
    thread = two.read_quiet()
    still = two.got < TOTAL - one.got
    one.sock.close()
    one.answer.fp.close()
    thread.join(40)
    return still, one.got + two.got, one.gaps + two.gaps


def ahead():
    # not a byte is there before the second one is
    one = Reader.start("until rm /tmp/go 2>/dev/null; do usleep 20000; done")
    two = Reader.follow(one.id, 0)
    Reader("POST", "/exec", json.dumps({"argv": ["touch", "/tmp/go"]})).close()
    two.sock.settimeout(1.5)
    try:
        two.read_all()
    except TimeoutError:
        pass
    still, got, gaps, last = two.got < TOTAL, two.got, two.gaps, two.last
    old, two = two, Reader.follow(one.id, last)
    old.close()                         # it was still there
    two.close()
    two = Reader.follow(one.id, last)
    one.sock.close()
    one.answer.fp.close()
    time.sleep(12)                      # it is waited for
    two.read_all()
    return still, got + two.got, gaps + two.gaps


def missed():
    one = Reader.start("until rm /tmp/go 2>/dev/null; do usleep 20000; done")
    still = Reader.follow(one.id, 0)    # what the kernels hold, and no more
    two = Reader.follow(one.id, 0)
    Reader("POST", "/exec", json.dumps({"argv": ["touch", "/tmp/go"]})).close()
    while one.got < TOTAL * 5 // 6:     # that is far beyond what is kept
        one.take(one.answer.readline())
        two.read(one.last)
    one.close()
    two.sock.settimeout(40)
    try:
        two.read_all()
    except TimeoutError:
        pass
    still.close()
    return "", two.got, two.gaps


stood, bytes_got, gaps_seen = {"early": early, "beside": beside,
                               "ahead": ahead, "missed": missed}[sys.argv[1]]()
print("%s%d of %d, %d gaps" % ({True: "stands still, ", False: "does not, "}
                               .get(stood, ""), bytes_got, TOTAL, gaps_seen))
