#!/usr/bin/python3
"""held.py PORT PATH TOLD HOLD COMMAND...: a service manager in small.

Holds listening sockets, of TCP on loopback and at PATH, and runs COMMAND with
them as LISTEN_FDS has it, again and again, but not while HOLD is there.  What
it says to NOTIFY_SOCKET is written to TOLD, a line each.  SIGTERM ends both.
HELD_MODE: of PATH, in octal, for 660.

Must never: accept a connection.
"""
import os
import select
import signal
import socket
import sys

port, path, told, hold = int(sys.argv[1]), *sys.argv[2:5]
command = sys.argv[5:]

tcp = socket.socket()
tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
tcp.bind(("127.0.0.1", port))
tcp.listen(64)
unix = socket.socket(socket.AF_UNIX)
unix.bind(path)
os.chmod(path, int(os.environ.get("HELD_MODE", "660"), 8))
unix.listen(64)
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(told + ".sock")


def start():
    pid = os.fork()
    if pid:
        return pid
    try:
        for fd, s in ((20, tcp), (21, unix)):
            os.dup2(s.fileno(), fd)
        for fd in (3, 4):
            os.dup2(fd + 17, fd)
            os.close(fd + 17)
        me = str(os.getpid())
        os.environ.update(LISTEN_FDS="2", LISTEN_PID=me, WATCHDOG_PID=me,
                          NOTIFY_SOCKET=told + ".sock")
        os.execv(command[0], command)
    finally:
        os._exit(127)


child = 0


def end(*_):
    if child:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    os.unlink(path)
    os._exit(0)


signal.signal(signal.SIGTERM, end)
with open(told, "w", buffering=1) as out:
    while True:
        if child and os.waitpid(child, os.WNOHANG)[0]:
            child = 0
        if not child and not os.path.exists(hold):
            child = start()
        if select.select([notify], [], [], 0.05)[0]:
            out.write(notify.recv(4096).decode() + "\n")
