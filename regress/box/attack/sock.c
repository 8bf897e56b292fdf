/*
 * sock.c: sockets of the host by name, descriptors out of the box, and what
 * sockets hold in the kernel.
 */
#include "attack.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
dial_unix(const char *path, int type)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	int			fd = socket(AF_UNIX, type, 0);

	strncpy(un.sun_path, path, sizeof(un.sun_path) - 1);
	if (fd != -1 && connect(fd, (void *)&un, sizeof(un)) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

void
net_path(const char *path)
{
	int	r = dial_unix(path, SOCK_STREAM) == -1 ? errno : 0;

	check(r == ENOENT, "B38 a socket of the host by its path: %s",
	    said(r));
}

/* A directory and a memory file, sent with bytes that are no message. */
static ssize_t
send_fd(int to, int fd)
{
	char		 byte[2] = "x", buf[CMSG_SPACE(sizeof(int))] = "";
	struct iovec	 v = { byte, 1 };
	struct msghdr	 m = { .msg_iov = &v, .msg_iovlen = 1,
			    .msg_control = buf, .msg_controllen = sizeof(buf) };
	struct cmsghdr	*c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(to, &m, MSG_NOSIGNAL);
}

void
net_pass(const char *sock)
{
	int	fd = open("/", O_PATH), to, s[2], i, n = 0;
	char	c;

	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0 &&
	    send_fd(s[0], fd) == 1, "control B38: a descriptor is passed");
	for (i = 0; i < 50; i++) {
		if ((to = dial_unix(sock, SOCK_SEQPACKET)) == -1)
			break;
		/* the kernel refuses it there (6.16 and later), or the runner
		 * ends the connection, whatever else is in the packet */
		n += send_fd(to, fd) == -1 ? errno == EPERM :
		    recv(to, &c, 1, 0) <= 0;
		close(to);
	}
	check(i == 50 && n == 50,
	    "B38 no descriptor reaches the runner: %d of %d",
	    n, i);
}

/* An echo by a ping socket, which wants no capability. */
void
net_ping(const char *address)
{
	struct sockaddr_in	a4 = { .sin_family = AF_INET };
	struct sockaddr_in6	a6 = { .sin6_family = AF_INET6 };
	int			v6 = strchr(address, ':') != NULL;
	int			fd = socket(v6 ? AF_INET6 : AF_INET,
				    SOCK_DGRAM, v6 ? 58 : 1);
	unsigned char		q[16] = { v6 ? 128 : 8 }, r[64] = "";
	struct timeval		t = { 2, 0 };
	int			e;

	inet_pton(v6 ? AF_INET6 : AF_INET, address, v6 ?
	    (void *)&a6.sin6_addr : (void *)&a4.sin_addr);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	e = fd == -1 || (v6 ? sendto(fd, q, sizeof(q), 0, (void *)&a6,
	    sizeof(a6)) : sendto(fd, q, sizeof(q), 0, (void *)&a4,
	    sizeof(a4))) == -1 || recv(fd, r, sizeof(r), 0) < 8 ? errno : 0;
	check(e == 0 && r[0] == (v6 ? 129 : 0), "ping: %s answers: %s",
	    address, e == 0 ? "yes" : strerror(e));
}

/* ---- buffers ----------------------------------------------------------- */

static int
tcp_pair(int listener, const struct sockaddr_in *a, int *ret)
{
	*ret = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (*ret == -1)
		return -1;
	(void)connect(*ret, (const void *)a, sizeof(*a));
	return accept(listener, NULL, NULL);
}

static int
udp_pair(int *ret)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	socklen_t		len = sizeof(a);
	int			s = socket(AF_INET, SOCK_DGRAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (s == -1 || *ret == -1 || bind(s, (void *)&a, sizeof(a)) == -1 ||
	    getsockname(s, (void *)&a, &len) == -1 ||
	    connect(*ret, (void *)&a, sizeof(a)) == -1)
		return -1;
	return s;
}

/*
 * Sends to who does not read until nothing is taken any more, says how many
 * MiB that were, and stays.  kind: 0 TCP, 1 UDP, 2 TCP up to 400 MiB.
 */
void
net_buffers(int kind)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	socklen_t		len = sizeof(a);
	unsigned long		held = 0, last;
	int			l = socket(AF_INET, SOCK_STREAM, 0), s, r;
	int			big = 8 << 20, dull = 0, udp = kind & 1;
	ssize_t			n;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(l, (void *)&a, sizeof(a)) == -1 || listen(l, 100) == -1 ||
	    getsockname(l, (void *)&a, &len) == -1)
		exit(1);
	while (held < (kind & 2 ? 400 : 1536) * MIB && dull < 50) {
		r = udp ? udp_pair(&s) : tcp_pair(l, &a, &s);
		if (r == -1)
			break;
		(void)setsockopt(r, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
		(void)setsockopt(s, SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
		last = held;
		while ((n = send(s, mem, udp ? 60000 : sizeof(mem),
		    MSG_NOSIGNAL)) > 0 && held - last < 16 * MIB)
			held += (unsigned long)n;
		/* UDP says yes and drops: what a socket holds is its buffer */
		if (udp)
			held = last + 212992;
		dull = held - last < 65536 ? dull + 1 : 0;
	}
	printf("%lu\n", held / MIB);
	fflush(stdout);
	pause();		/* they stay as full as they are */
}

/* That many flows, one after the other, each from a port of its own. */
void
net_connect(int n)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	int			i, s, done = 0;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < n; i++) {
		s = socket(AF_INET, SOCK_DGRAM, 0);
		a.sin_port = htons((uint16_t)(1024 + i % 60000));
		done += connect(s, (void *)&a, sizeof(a)) == 0 &&
		    send(s, "x", 1, 0) == 1;
		close(s);
	}
	check(done > n / 2, "N14 %d flows", done);
}
