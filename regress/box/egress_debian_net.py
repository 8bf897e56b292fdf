#!/usr/bin/python3
"""egress_debian_net.py: who answers in the internet of egress_debian.sh.

usage: egress_debian_net.py internet | host DIR

Web servers on ports 80 and 443 of every address that the namespace has, and
name servers, by UDP and TCP, on port 53 of 203.0.113.50 and 10.1.2.3, or of
the host.  DIR has www/, which is served; git/, repositories; and the certificates good.pem,
with its key, and bad.pem, which unknown.example.org shows.  Besides files:

/             which address was reached
/to/URL       a redirect to that URL
/git/...      git's smart protocol
/moved/...    a redirect to /git/... of 10.1.2.3
/port         which port the request came from
/big          100 MB, the same each time
/sum          what is posted there: its SHA-256
/together/N/X answers when N requests wait for it
/echo         a WebSocket that sends back
"""
import base64
import functools
import hashlib
import http.server
import os
import random
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True
import egress_net

WWW = ('198.51.100.10', '2001:db8:1::10')
NAMES = {
    'www.example.org': WWW,
    'apt.example.org': WWW,
    'git.example.org': WWW,
    'npm.example.org': WWW,
    'pypi.example.org': WWW,
    'unknown.example.org': WWW,
    'four.example.org': (WWW[0], None),
    'six.example.org': (None, WWW[1]),
    'translated.example.org': (None, '64:ff9b::c633:640a'),
    'inside.example.org': ('10.1.2.3', None),
    'inside6.example.org': (None, 'fd12::1'),
    'metadata.example.org': ('169.254.169.254', None),
    'host.example.org': ('203.0.113.2', '2001:db8:1::2'),
    'loopback.example.org': ('127.0.0.1', '::1'),
    'nat64.example.org': (None, '64:ff9b::a9fe:a9fe'),
    'nat64host.example.org': (None, '64:ff9b::cb00:7102'),
    'sixtofour.example.org': (None, '2002:a01:203::1'),
    'mapped.example.org': (None, '::ffff:10.1.2.3'),
}
GUID = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'     # RFC 6455
BIG = 100
rebound = threading.Semaphore(1)
barriers = {}
barriers_lock = threading.Lock()


def look(name, kind):
    """One name is public when first asked for, and private from then on."""
    if name != 'rebind.example.org':
        return NAMES.get(name)
    if kind == 1 and rebound.acquire(blocking=False):
        return WWW[0], None
    return ('10.1.2.3', None) if kind == 1 else (None, None)


class Names(socketserver.StreamRequestHandler):
    def handle(self):
        size = self.rfile.read(2)
        while len(size) == 2:
            text = egress_net.answer(
                self.rfile.read(struct.unpack('!H', size)[0]), look)
            self.wfile.write(struct.pack('!H', len(text)) + text)
            size = self.rfile.read(2)


class Web(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def say(self, text, code=200, **more):
        data = text.encode()
        self.send_response(code)
        for key, value in more.items():
            self.send_header(key, value)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        first, _, rest = url.path.lstrip('/').partition('/')
        if url.netloc or not first:
            self.say('reached %s\n' % self.connection.getsockname()[0]
                     .replace('::ffff:', ''))
        elif hasattr(self, 'get_' + first):
            getattr(self, 'get_' + first)(rest, url.query)
        else:
            super().do_GET()

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        first, _, rest = url.path.lstrip('/').partition('/')
        if first == 'git':
            self.get_git(rest, url.query)
        elif first == 'sum':
            self.say(hashlib.sha256(self.body()).hexdigest() + '\n')
        else:
            self.body()
            self.say('no such thing\n', 404)

    def body(self):
        if self.headers['Transfer-Encoding'] != 'chunked':
            return self.rfile.read(int(self.headers['Content-Length'] or 0))
        parts, n = [], -1
        while n:
            n = int(self.rfile.readline(), 16)
            parts.append(self.rfile.read(n))
            self.rfile.readline()
        return b''.join(parts)

    def get_to(self, rest, _):
        self.say('', 302, Location=urllib.parse.unquote(rest))

    def get_moved(self, rest, query):
        self.say('', 302,
                 Location='http://10.1.2.3/git/%s?%s' % (rest, query))

    def get_port(self, *_):
        self.say('%d\n' % self.client_address[1])

    def get_big(self, *_):
        self.send_response(200)
        self.send_header('Content-Length', str(BIG * 1000000))
        self.end_headers()
        for i in range(BIG):
            self.wfile.write(random.Random(i).randbytes(1000000))

    def get_together(self, rest, _):
        n = int(rest.partition('/')[0])
        with barriers_lock:
            barrier = barriers.setdefault(rest, threading.Barrier(n))
        try:
            barrier.wait(60)
            self.say('together\n')
        except threading.BrokenBarrierError:
            self.say('alone\n', 503)

    def get_git(self, rest, query):
        env = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent',
               'GIT_CONFIG_NOSYSTEM': '1', 'GIT_HTTP_EXPORT_ALL': '1',
               'GIT_PROJECT_ROOT': os.path.join(sys.argv[2], 'git'),
               'REQUEST_METHOD': self.command, 'QUERY_STRING': query,
               'PATH_INFO': '/' + rest, 'REMOTE_USER': 'agent',
               'REMOTE_ADDR': self.client_address[0],
               'CONTENT_TYPE': self.headers['Content-Type'] or '',
               'GIT_PROTOCOL': self.headers['Git-Protocol'] or '',
               'HTTP_CONTENT_ENCODING':
                   self.headers['Content-Encoding'] or ''}
        data = self.body()
        env['CONTENT_LENGTH'] = str(len(data))
        out = subprocess.run(['git', 'http-backend'], input=data, env=env,
                             stdout=subprocess.PIPE, check=True).stdout
        head, _, text = out.partition(b'\r\n\r\n')
        fields = dict(line.split(': ', 1)
                      for line in head.decode().split('\r\n'))
        self.send_response(int(fields.pop('Status', '200').split()[0]))
        for key, value in fields.items():
            if key != 'Content-Length':
                self.send_header(key, value)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def get_echo(self, *_):
        key = self.headers['Sec-WebSocket-Key'].encode()
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('Sec-WebSocket-Accept', base64.b64encode(
            hashlib.sha1(key + GUID).digest()).decode())
        self.end_headers()
        self.close_connection = True
        head = self.rfile.read(2)
        while len(head) == 2 and head[0] & 15 != 8:     # a close
            mask = self.rfile.read(4)
            data = self.rfile.read(head[1] & 127)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            self.wfile.write(bytes((head[0], len(data))) + data)
            head = self.rfile.read(2)


class Server(egress_net.Server):
    def handle_error(self, request, client_address):
        # a client that goes, or will have no such certificate
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


class TlsServer(Server):
    def __init__(self, *args):
        super().__init__(*args)
        self.good = self.context('good')
        self.bad = self.context('bad')
        self.good.sni_callback = self.choose

    @staticmethod
    def context(which):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        c.load_cert_chain(os.path.join(sys.argv[2], which + '.pem'))
        return c

    def choose(self, sock, name, _):
        if name == 'unknown.example.org':
            sock.context = self.bad

    def get_request(self):
        sock, who = super().get_request()
        # the handshake is for the thread of this one
        return self.good.wrap_socket(sock, server_side=True,
                                     do_handshake_on_connect=False), who


def main():
    web = functools.partial(Web, directory=os.path.join(sys.argv[2], 'www'))
    run = [egress_net.udp_echo, TlsServer(('::', 443), web).serve_forever]
    for a in ('203.0.113.50', '10.1.2.3') if sys.argv[1] == 'internet' \
            else ('203.0.113.2',):
        run.append(functools.partial(egress_net.names, a, look))
        run.append(Server(('::ffff:' + a, 53), Names).serve_forever)
    for r in run:
        threading.Thread(target=r, daemon=True).start()
    server = Server(('::', 80), web)
    print('ready', flush=True)
    if sys.argv[1] == 'host':   # who has read that reads no more
        sys.stdout = open(os.devnull, 'w')
    server.serve_forever()


main()
