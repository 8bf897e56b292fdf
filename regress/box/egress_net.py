#!/usr/bin/python3
"""egress_net.py: who answers in the small internet of egress.sh.

usage: egress_net.py internet | host

HTTP on port 80 of every address that the namespace has: GET /N/BYTES sends
as many bytes in N parts, one each 50 ms; all else says which address was
reached.  UDP on port 7 sends back.  internet: a name server, too, on port 53
of 203.0.113.50, whose names are below; what it is asked for goes to stdout.
"""
import socket
import socketserver
import struct
import sys
import threading
import time

NAMES = {
    'www.example.org': ('198.51.100.10', '2001:db8:1::10'),
    'inside.example.org': ('10.1.2.3', 'fd12::1'),
}


class Http(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            path = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            parts = path.strip('/').split('/')
            head = b'HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n'
            if len(parts) == 2 and parts[0].isdigit():
                n, size = int(parts[0]), int(parts[1])
                self.wfile.write(head % (n * (size // n)))
                for _ in range(n):
                    self.wfile.write(b'x' * (size // n))
                    time.sleep(0.05)
                return
            me = self.connection.getsockname()[0].replace('::ffff:', '')
            text = ('reached %s\n' % me).encode()
            self.wfile.write(head % len(text) + text)
        except (OSError, IndexError):
            pass


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024


def udp_echo():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, 49, 1)    # IPV6_RECVPKTINFO
    s.bind(('::', 7))
    while True:
        data, anc, _, who = s.recvmsg(2048, 256)
        try:
            s.sendmsg([data], anc, 0, who)
        except OSError:
            pass


def answer(query, look):
    """A or AAAA of one question, or that there is none."""
    labels, i = [], 12
    while query[i]:
        labels.append(query[i + 1:i + 1 + query[i]].decode('ascii', 'replace'))
        i += 1 + query[i]
    kind = struct.unpack('!H', query[i + 1:i + 3])[0]
    question = query[12:i + 5]
    name = '.'.join(labels).lower()
    print(name, kind, flush=True)
    found = look(name, kind)
    data = None
    if found and kind == 1 and found[0]:
        data = socket.inet_pton(socket.AF_INET, found[0])
    elif found and kind == 28 and found[1]:
        data = socket.inet_pton(socket.AF_INET6, found[1])
    code = 0 if found else 3
    head = query[:2] + struct.pack('!HHHHH', 0x8180 | code, 1,
                                   data is not None, 0, 0)
    if data is None:
        return head + question
    return head + question + struct.pack('!HHHIH', 0xc00c, kind, 1, 60,
                                         len(data)) + data


def names(address, look):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 53))
    while True:
        query, who = s.recvfrom(2048)
        try:
            s.sendto(answer(query, look), who)
        except (OSError, IndexError, struct.error):
            pass


def main():
    if sys.argv[1] == 'internet':
        threading.Thread(target=names, daemon=True, args=(
            '203.0.113.50', lambda name, _: NAMES.get(name))).start()
    threading.Thread(target=udp_echo, daemon=True).start()
    server = Server(('::', 80), Http)
    print('ready', flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
