"""soak.py: clients of a server whose daemons are killed; see soak.sh.

usage: soak.py SEED SECONDS SERVER_PID NOISE URL

Each box runs one session after another; each writes bytes that are cut from
the file /noise by numbers that are known here.  Of every session these
readers are there:
  two that attach, go away, and come back where they were, at random;
  one that reads all of it again when it has ended;
and in every fifth box one session that writes more than is kept, with one
reader from its start that is never away for as long as it is waited for.

A command that a kill kept from being started is told as lost, never as
anything else; there are few.
No reader may see a gap, a number twice or none, or other bytes.  Prints `ok'
and `not ok' lines.
"""
import base64
import hashlib
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

BOXES = 50
ROUNDS, PIECE = 16, 65536       # 1 MiB a session: below what is kept
HELD_ROUNDS = 320               # 20 MiB: more than is kept
AWAY_MAX = 9.0                  # seconds; after 10 a reader counts as gone
LAST = 3                        # sessions of a box, read again at the end

seed, seconds, server = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with open(sys.argv[4], 'rb') as f:
    noise = f.read()
host = sys.argv[5].split('//')[1]
token = os.environ['WB_TOKEN']
deadline = time.monotonic() + seconds
lock = threading.Lock()
kills = []                      # when
faults, counts = [], {'sessions': 0, 'held': 0, 'excused': 0, 'bytes': 0,
                      'attached': 0, 'cut': 0, 'refused': 0, 'killed': 0,
                      'lost': 0}


def note(key, n=1):
    with lock:
        counts[key] += n


def fault(text):
    with lock:
        faults.append(text)


class Cut(Exception):
    pass


class Lost(Exception):
    """The daemons were killed before the command was started."""


class Client:
    """One connection at a time; what is cut is asked again elsewhere."""

    def __init__(self):
        self.c = None

    def send(self, method, path, body=None, key=None):
        head = {'Authorization': 'Bearer ' + token}
        if body is not None:
            head['Content-Type'] = 'application/json'
            body = json.dumps(body)
        if key is not None:
            head['Idempotency-Key'] = key
        try:
            if self.c is None:
                self.c = http.client.HTTPConnection(host, timeout=60)
            self.c.request(method, path, body, head)
            return self.c.getresponse()
        except ConnectionRefusedError as e:
            note('refused')
            self.close()
            raise Cut() from e
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise Cut() from e

    def close(self):
        if self.c is not None:
            self.c.close()
        self.c = None

    def call(self, method, path, body=None, key=None):
        """Until it is answered: restarts are waited for."""
        end = time.monotonic() + 120
        while True:
            try:
                r = self.send(method, path, body, key)
                data = r.read()
                if r.status < 500 or time.monotonic() > end:
                    return r.status, data
            except (Cut, OSError, http.client.HTTPException):
                note('cut')
                self.close()
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)     # the pace of asking


def pieces(k, rounds):
    for r in range(rounds):
        at = (k * 7919 + r * 104729) % (len(noise) - PIECE)
        yield noise[at:at + PIECE]


def digest(k, rounds):
    h = hashlib.sha256()
    for p in pieces(k, rounds):
        h.update(p)
    return h.hexdigest()


def command(k, rounds, pause):
    size = len(noise) - PIECE
    return ['sh', '-c', 'r=0; while [ $r -lt %d ]; do tail -c +$(((%d * 7919 '
            '+ r * 104729) %% %d + 1)) /noise | head -c %d; %sr=$((r + 1)); '
            'done' % (rounds, k, size, PIECE, pause)]


class Reader:
    def __init__(self, what, path, rng):
        self.what, self.path, self.rng = what, path, rng
        self.after, self.h, self.n = 0, hashlib.sha256(), 0
        self.gap, self.end, self.away = None, False, 0.0
        self.lost = False
        self.there = time.monotonic()   # when it was last seen to be
        self.left = self.there

    def line(self, o):
        if 'seq' in o:
            if o['seq'] != self.after + 1:
                fault('%s: chunk %d behind %d' % (self.what, o['seq'],
                                                  self.after))
            self.after = o['seq']
            d = o['data'].encode()
            if o.get('encoding') == 'base64':
                d = base64.b64decode(d)
            self.h.update(d)
            self.n += len(d)
        elif 'gap' in o:
            self.gap = o['gap']
            self.after = o['gap']['last']
        elif 'end' in o:
            self.end = True

    def attach(self, client, lines, gone):
        """Follows for so many lines, or to the end, or until it is cut."""
        note('attached')
        r = client.send('GET', '%s?follow=1&after=%d' % (self.path,
                                                         self.after))
        if r.status != 200:
            r.read()
            self.may_be_lost(client, r.status)
            raise Cut()
        self.follow(r, lines, gone)

    def follow(self, r, lines, gone):
        """It is there again when the first line comes, not when it has
        asked."""
        while lines > 0 and not self.end:
            line = r.readline()
            if not line.endswith(b'\n'):
                raise Cut()
            if gone is not None:
                self.was_away(gone)
                gone = None
            self.line(json.loads(line))
            lines -= 1

    def begin(self, box, argv, key):
        """Starts the command and reads it from there on; whether it could."""
        client, gone = Client(), time.monotonic()
        stop = gone + 120
        while self.path is None and time.monotonic() < stop:
            try:
                r = client.send('POST', '/v1/sandboxes/%s/exec?stream=1' % box,
                                {'argv': argv}, key)
                line = r.read() if r.status != 200 else r.readline()
                o = json.loads(line) if r.status < 500 else {}
                sid = o.get('start', o).get('sessionId')
                if sid is not None:
                    self.path = '/v1/sandboxes/%s/sessions/%s/output' % (
                        box, sid)
                elif r.status < 500:
                    fault('%s: %d %s' % (self.what, r.status, line[:200]))
                    return False
                if r.status == 200:
                    self.follow(r, self.rng.randrange(1, 40), gone)
            except (Cut, OSError, ValueError, http.client.HTTPException):
                note('cut')
            self.left = time.monotonic()
            client.close()
            if self.path is None:
                time.sleep(0.1)     # the pace of asking
        return self.path is not None

    def may_be_lost(self, client, status):
        if status != 410:
            return
        data = client.call('GET', self.path.rsplit('/', 1)[0])[1]
        if json.loads(data).get('reason') == 'lost' and self.after == 0:
            raise Lost()
        fault('%s: %d behind chunk %d: %s' % (self.what, status, self.after,
                                             data[:300]))
        self.end = True

    def was_away(self, gone):
        """What the kernel has of a server that was killed comes after it."""
        with lock:
            cuts = [t for t in kills if t > self.there]
        self.there = time.monotonic()
        self.away = max(self.away, self.there - min(cuts + [gone]))

    def run(self, often):
        """Comes and goes until all is read."""
        client, gone = Client(), self.left
        stop = time.monotonic() + 600
        while not self.end:
            if time.monotonic() > stop:
                fault('%s: no end at chunk %d' % (self.what, self.after))
                break
            n = self.n
            try:
                self.attach(client, self.rng.randrange(1, 40) if often
                            else 1 << 30, gone)
            except Lost:
                self.lost = self.end = True
            except (Cut, OSError, ValueError, http.client.HTTPException):
                note('cut')
            if self.n > n:
                gone = time.monotonic()
            client.close()
            if not self.end:
                time.sleep(self.rng.random() * (1.0 if often else 0.05))
        note('bytes', self.n)

    def check(self, want, excused=False):
        if self.gap is not None:
            if excused:
                note('excused')
            else:
                fault('%s: gap %s, away for at most %.1f s' %
                      (self.what, self.gap, self.away))
        elif self.h.hexdigest() != want:
            fault('%s: %d bytes, and not those that were written' %
                  (self.what, self.n))


def session(client, box, k, rounds, pause):
    key = 'soak-%d-%d' % (seed, k)
    st, data = client.call('POST', '/v1/sandboxes/%s/sessions' % box,
                           {'argv': command(k, rounds, pause)}, key)
    if st != 201:
        fault('%s: session %d: %d %s' % (box, k, st, data[:200]))
        return None
    return '/v1/sandboxes/%s/sessions/%s/output' % (
        box, json.loads(data)['sessionId'])


def replay(path, what, want):
    r = Reader(what, path, random.Random(0))
    r.run(False)
    r.check(want)


def kept(box, i, rng, last):
    client, k = Client(), i * 100000
    while time.monotonic() < deadline:
        k += 1
        path = session(client, box, k, ROUNDS, 'sleep 0.3; ')
        if path is None:
            return
        want = digest(k, ROUNDS)
        rs = [Reader('%s %d reader %d' % (box, k, n), path,
                     random.Random(rng.random())) for n in (1, 2)]
        ts = [threading.Thread(target=r.run, args=(True,)) for r in rs]
        for t in ts:
            t.start()
        for t in ts:
            t.join()
        if any(r.lost for r in rs):
            note('lost')
            continue
        for r in rs:
            r.check(want)
        replay(path, '%s %d again' % (box, k), want)
        note('sessions')
        last.append((path, k, want))
        del last[:-LAST]


def held(box, i, rng):
    k = i * 100000 + 50000
    while time.monotonic() < deadline:
        k += 1
        r = Reader('%s %d held' % (box, k), None, random.Random(rng.random()))
        if not r.begin(box, command(k, HELD_ROUNDS, ''),
                       'soak-%d-%d' % (seed, k)):
            fault('%s: session %d does not start' % (box, k))
            return
        r.run(True)
        if r.lost:
            note('lost')
            continue
        r.check(digest(k, HELD_ROUNDS), r.away > AWAY_MAX)
        note('held')


def daemons():
    """Pids of the three, by name, below the server."""
    up, ret = {}, {}
    for p in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % p) as f:
                up[int(p)] = int(f.read().rsplit(')', 1)[1].split()[1])
        except OSError:
            continue
    for p in up:
        q = p
        while q > 1 and q != server:
            q = up.get(q, 0)
        try:
            name = os.path.basename(os.readlink('/proc/%d/exe' % p))
        except OSError:
            continue
        if q == server and name in ('apid', 'stored', 'netd', 'uplinkd',
                                     'proxyd'):
            ret[name] = p
    return ret


def killer(rng):
    client = Client()
    while time.monotonic() < deadline:
        time.sleep(0.5 + rng.random() * 8)      # the random moment itself
        d = daemons()
        name = rng.choice(['apid', 'stored', 'netd', 'uplinkd', 'proxyd'])
        if name not in d:
            continue
        with lock:
            kills.append(time.monotonic())
        os.kill(d[name], signal.SIGKILL)
        note('killed')
        client.call('GET', '/v1/version')       # it is back


def main():
    rng, client, boxes = random.Random(seed), Client(), []
    for i in range(BOXES):
        st, data = client.call('POST', '/v1/sandboxes', {
            'name': 'soak-%d' % i, 'network': 'none',
            'limits': {'memoryBytes': 256 << 20, 'pids': 256}})
        if st != 201:
            fault('create: %d %s' % (st, data[:200]))
            break
        boxes.append(json.loads(data)['id'])
    last = [[] for _ in boxes]
    ts = [threading.Thread(target=killer, args=(random.Random(rng.random()),))]
    for i, b in enumerate(boxes):
        ts.append(threading.Thread(target=kept, args=(
            b, i, random.Random(rng.random()), last[i])))
        if i % 5 == 0:
            ts.append(threading.Thread(target=held, args=(
                b, i, random.Random(rng.random()))))
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    for box in last:
        for path, k, want in box:
            replay(path, '%s at the end' % path, want)
    st, data = client.call('GET', '/v1/sandboxes?limit=1000')
    whole = [b['id'] for b in json.loads(data)['items']
             if b['state'] == 'READY']
    print('# %s' % ', '.join('%s %d' % i for i in counts.items()))
    for text in faults[:40]:
        print('not ok - %s' % text)
    if not faults:
        print('ok - every byte of every session, and no gap')
    for text, good in (
            ('%d boxes, all are there' % BOXES, sorted(boxes) == sorted(whole)
             and len(boxes) == BOXES),
            ('nobody was refused a connection', counts['refused'] == 0),
            ('daemons were killed', counts['killed'] > seconds / 30),
            ('sessions ended', counts['sessions'] >= BOXES),
            ('few were lost before they began',
             counts['lost'] * 20 < counts['sessions']),
            ('most of those with a reader had no gap', counts['held'] > 0 and
             counts['excused'] * 2 < counts['held'])):
        print('%s - %s' % ('ok' if good else 'not ok', text))


main()
