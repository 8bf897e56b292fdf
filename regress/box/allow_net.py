#!/usr/bin/python3
"""allow_net.py: who answers in the small internet of allowlist.sh.

usage: allow_net.py internet DIR | host DIR
       allow_net.py hello [NAME]

On every address that the namespace has: HTTP on port 80 and, with DIR/pem,
by TLS on ports 443 and 8443; on port 22 one that speaks first, and sends back
what comes until its end, of which it tells.  HTTP: GET /N/BYTES sends as many
bytes in N parts, one each 50 ms, the same each time; /hang nothing; all else
says which address was reached, and whom the request was for.  Requests are
told on stdout: "http HOST PATH".

internet: a name server, too, by UDP and TCP on port 53 of 203.0.113.50.  Each
question is told on stdout, "name kind", and what it knows is below.

hello: the first bytes of a client of TLS, for NAME, to stdout.
"""
import os
import random
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
import egress_net

V4, V6 = '198.51.100.10', '2001:db8:1::10'
GOOD = [V4, V6]
# name: addresses; 'ALIAS name' before them: that name has them
ZONE = {
    'www.example.org': GOOD,
    'two.example.org': GOOD,
    'first.example.org': GOOD,
    'xn--bcher-kva.example.org': GOOD,
    'a.b.example.net': GOOD,
    'example.net': GOOD,
    'closed.example.org': GOOD,
    'four.example.org': [V4],
    'six.example.org': [V6],
    'dead6.example.org': ['2001:db8:1::dead', V4],
    'mixed.example.org': ['10.1.2.3', V4, '127.0.0.1', 'fd12::1'],
    'alias.example.org': ['ALIAS two.example.org'] + GOOD,
    'inward.example.org': ['ALIAS inside.example.org', '10.1.2.3'],
    'homeward.example.org': ['ALIAS localhost', '127.0.0.1', '::1'],
    'inside.example.org': ['10.1.2.3', 'fd12::1'],
    'metadata.example.org': ['169.254.169.254'],
    'loop.example.org': ['127.0.0.1', '::1'],
    'any.example.org': ['0.0.0.0', '::'],
    'host.example.org': ['203.0.113.2', '2001:db8:1::2'],
    'new.example.org': ['203.0.113.3'],
    'mapped.example.org': ['::ffff:10.1.2.3', '64:ff9b::a9fe:a9fe',
                           '2002:a9fe:a9fe::1'],
    'ours.example.org': ['198.18.0.1', '198.19.255.3'],
    'late.example.org': [V4],
    'never.example.org': [],
    'long.example.org': [V4],
}
# names that are public when first asked for, and something else from then on
REBIND = {
    'rebind1.example.org': '127.0.0.1',
    'rebind2.example.org': '169.254.169.254',
    'rebind3.example.org': '10.1.2.3',
    'rebind4.example.org': '203.0.113.2',
}
asked = set()
print_lock = threading.Lock()


def tell(*words):
    with print_lock:
        print(*words, flush=True)


# ---- the name server

def wire_name(name):
    return b''.join(bytes([len(x)]) + x.encode()
                    for x in name.split('.')) + b'\0'


def records(name, kind):
    """Of one name, or None: there is no such name."""
    if name in REBIND:
        if kind != 1:
            return []
        first = name not in asked
        asked.add(name)
        return [(1, socket.inet_aton(V4 if first else REBIND[name]))]
    if name not in ZONE:
        return None
    found = []
    for a in ZONE[name]:
        if a.startswith('ALIAS '):
            found.append((5, wire_name(a[6:])))
            continue
        six = ':' in a
        if kind == (28 if six else 1):
            found.append((kind, socket.inet_pton(
                socket.AF_INET6 if six else socket.AF_INET, a)))
    return found


def answer(query, tcp):
    """The answer, or None: there is none."""
    labels, i = [], 12
    while query[i]:
        labels.append(query[i + 1:i + 1 + query[i]].decode('ascii', 'replace'))
        i += 1 + query[i]
    kind = struct.unpack('!H', query[i + 1:i + 3])[0]
    question = query[12:i + 5]
    name = '.'.join(labels).lower()
    tell(name, kind, 'tcp' if tcp else 'udp')
    if name == 'never.example.org':
        return None
    if name == 'late.example.org':
        time.sleep(3)
    found = records(name, kind)
    bits = 0x8180 | (3 if found is None else 0)
    if name == 'long.example.org' and not tcp:      # it does not fit
        bits, found = bits | 0x200, []
    text, owner = b'', b'\xc0\x0c'
    for kind_of, data in found or []:
        text += owner + struct.pack('!HHIH', kind_of, 1, 0, len(data)) + data
        if kind_of == 5:
            owner = data
    return query[:2] + struct.pack('!HHHHH', bits, 1, len(found or []), 0, 0) \
        + question + text


class NamesTcp(socketserver.StreamRequestHandler):
    def handle(self):
        size = self.rfile.read(2)
        while len(size) == 2:
            text = answer(self.rfile.read(struct.unpack('!H', size)[0]), True)
            if text is None:
                return
            self.wfile.write(struct.pack('!H', len(text)) + text)
            size = self.rfile.read(2)


class NamesUdp(socketserver.DatagramRequestHandler):
    def finish(self):
        text = answer(self.packet, False)
        if text is not None:
            self.socket.sendto(text, self.client_address)


class UdpServer(socketserver.ThreadingUDPServer):
    daemon_threads = True


# ---- what is said by TCP

class Web(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while self.request_one():
                pass
        except (OSError, IndexError, ValueError):
            pass

    def request_one(self):
        line = self.rfile.readline().split()
        if not line:
            return False
        path, host, size, more = line[1].decode(), '', 0, True
        while True:
            field = self.rfile.readline().decode().strip()
            if not field:
                break
            key, _, value = field.partition(':')
            if key.lower() == 'host':
                host = value.strip()
            if key.lower() == 'content-length':
                size = int(value)
            if key.lower() == 'connection' and value.strip() == 'close':
                more = False
        self.rfile.read(size)
        tell('http', host, path)
        self.reply(path, host)
        return more

    def reply(self, path, host):
        parts = path.strip('/').split('/')
        head = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n'
        if parts[0] == 'hang':
            time.sleep(60)
        elif len(parts) == 2 and parts[0].isdigit():
            n, size = int(parts[0]), int(parts[1])
            self.wfile.write(head % (n * (size // n)))
            for i in range(n):
                self.wfile.write(random.Random(i).randbytes(size // n))
                time.sleep(0.05)
        else:
            me = self.connection.getsockname()[0].replace('::ffff:', '')
            text = ('reached %s as %s\n' % (me, host)).encode()
            self.wfile.write(head % len(text) + text)


class First(socketserver.StreamRequestHandler):
    """Greets, and sends back what comes; says how much that was."""
    def handle(self):
        try:
            self.wfile.write(b'220 hello\n')
            n = 0
            while True:
                data = self.connection.recv(65536)
                if not data:
                    break
                n += len(data)
                self.wfile.write(data)
            self.wfile.write(b'%d bytes, bye\n' % n)
        except OSError:
            pass


class Server(egress_net.Server):
    def handle_error(self, request, client_address):
        # who is reset in the middle is so by design
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


class TlsServer(Server):
    def __init__(self, *args):
        super().__init__(*args)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.set_ciphers('DEFAULT:@SECLEVEL=0')     # busybox's
        self.context.load_cert_chain(sys.argv[2] + '/pem')

    def get_request(self):
        sock, who = super().get_request()
        # the handshake is for the thread of this one
        return self.context.wrap_socket(sock, server_side=True,
                                        do_handshake_on_connect=False), who


def hello(name):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname = False
    c.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        c.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        sys.stdout.buffer.write(out.read())


def main():
    if sys.argv[1] == 'hello':
        hello(sys.argv[2] if len(sys.argv) > 2 else None)
        return
    servers = [TlsServer(('::', 443), Web), TlsServer(('::', 8443), Web),
               Server(('::', 22), First)]
    if sys.argv[1] == 'internet':
        servers += [UdpServer(('203.0.113.50', 53), NamesUdp),
                    Server(('::ffff:203.0.113.50', 53), NamesTcp)]
    for s in servers:
        threading.Thread(target=s.serve_forever, daemon=True).start()
    web = Server(('::', 80), Web)
    tell('ready')
    if sys.argv[1] == 'host':   # who has read that reads no more
        sys.stdout = open(os.devnull, 'w')
    web.serve_forever()


if __name__ == '__main__':
    main()
