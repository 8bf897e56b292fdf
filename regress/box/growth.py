"""growth.py: what the processes of a server hold; see growth.sh.

usage: growth.py SERVER_PID URL

Runs commands in one box and makes and removes others, until the bounds of
what is kept are reached; measures; then ten times as many, and measures
again.  Prints `ok' and `not ok' lines.
"""
import http.client
import json
import os
import sys
import time

SESSIONS, CREATES = 1000, 200           # until bounds are reached
SESSIONS_ALL, CREATES_ALL = 10000, 1000
MOST = 1.05
DAEMONS = ('apid', 'stored', 'privd', 'maker', 'netd', 'netd-maker',
           'uplinkd', 'proxyd')
GRAIN = 132                             # KiB: what malloc takes at a time

server = int(sys.argv[1])
token = os.environ['WB_TOKEN']
conn = http.client.HTTPConnection(sys.argv[2].split('//')[1], timeout=120)


def call(method, path, body=None):
    head = {'Authorization': 'Bearer ' + token}
    if body is not None:
        head['Content-Type'] = 'application/json'
        body = json.dumps(body)
    conn.request(method, path, body, head)
    r = conn.getresponse()
    data = r.read()
    if r.status // 100 != 2:
        sys.exit('not ok - %s %s: %d %s' % (method, path, r.status, data))
    return json.loads(data) if data else None


def create(name):
    return call('POST', '/v1/sandboxes', {'name': name, 'network': 'none'})


def run(n):
    for _ in range(n):
        e = call('POST', '/v1/sandboxes/grow/exec',
                 {'argv': ['head', '-c', '2000', '/dev/zero']})
        if e['exitCode'] != 0 or len(e['stdout']) != 2000:
            sys.exit('not ok - exec: %s' % e)


def make(n):
    for _ in range(n):
        b = create('come')
        call('DELETE', '/v1/sandboxes/%s?graceSeconds=0' % b['id'])


def processes(runner):
    """Pid by name, of the server's and of one box's first process."""
    up, ret = {}, {'runner': runner}
    for p in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % p) as f:
                text = f.read()
        except OSError:
            continue
        stat = text.rsplit(')', 1)[1].split()
        up[int(p)] = (int(stat[1]), text[text.index('(') + 1:
                                         text.rindex(')')], int(stat[19]))
    # the oldest of a name: the maker has children for a moment
    for p, (q, name, _) in sorted(up.items(), key=lambda i: -i[1][2]):
        while q > 1 and q != server:
            q = up.get(q, (0,))[0]
        if (q == server or p == server) and name in DAEMONS:
            ret[name] = p
    return ret


def measure(procs):
    """KiB of memory of its own and shared by halves, and descriptors."""
    ret = {}
    for name, p in procs.items():
        kib = {}
        with open('/proc/%d/smaps_rollup' % p) as f:
            for line in f.readlines()[1:]:
                w = line.split()
                kib[w[0][:-1]] = int(w[1])
        ret[name] = (kib['Pss'], kib['Pss_Anon'] + kib['Pss_Shmem'],
                     len(os.listdir('/proc/%d/fd' % p)))
    return ret


def settled(procs):
    """Twice the same, a second apart: what is done behind answers is done."""
    a, b = None, measure(procs)
    for _ in range(60):
        a = b
        time.sleep(1)   # between two looks
        b = measure(procs)
        if a == b:
            break
    return b


def main():
    create('grow')
    run(SESSIONS)
    make(CREATES)
    proof = json.dumps(call('GET', '/v1/sandboxes/grow/proof'))
    at = proof.index('"host":', proof.index('"hostPid"'))
    procs = processes(int(proof[at + 7:].split(',')[0].strip(' }')))
    before = settled(procs)
    run(SESSIONS_ALL - SESSIONS)
    make(CREATES_ALL - CREATES)
    after = settled(procs)
    for name in DAEMONS + ('runner',):
        if name not in before:
            print('not ok - no process %s' % name)
    for name in sorted(before):
        (pss, own, fds), (pss2, own2, fds2) = before[name], after[name]
        text = ('%s: %d KiB, %d of them its own, %d descriptors; then %d, '
                '%d, %d' % (name, pss, own, fds, pss2, own2, fds2))
        # what it shares with programs of others is no growth of its own
        good = own2 <= max(own * MOST, own + GRAIN) and fds2 <= fds
        print('%s - %s' % ('ok' if good else 'not ok', text))


main()
