/*
 * egress_flow.c: see egress_flow.h.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "egress_flow.h"

#define WAIT_MS	1000

union addr {
	struct sockaddr		sa;
	struct sockaddr_in	in;
	struct sockaddr_in6	in6;
};

static socklen_t
address(const char *text, int port, union addr *a)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)port);
		return sizeof(a->in);
	}
	(void)inet_pton(AF_INET6, text, &a->in6.sin6_addr);
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons((uint16_t)port);
	return sizeof(a->in6);
}

int
flow_connect(const char *to, int port, int type)
{
	union addr	a;
	socklen_t	len = address(to, port, &a);
	int		fd = socket(a.sa.sa_family, type | SOCK_CLOEXEC, 0);

	if (fd == -1 || connect(fd, &a.sa, len) == -1) {
		perror(to);
		_exit(50);
	}
	return fd;
}

int
flow_listen(int family, int port)
{
	union addr	a;
	socklen_t	len = address(family == AF_INET ? "0.0.0.0" : "::",
			    port, &a);
	int		on = 1, fd = socket(family, SOCK_STREAM |
			    SOCK_CLOEXEC, 0);

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY,
	    &on, sizeof(on)) == -1) || bind(fd, &a.sa, len) == -1 ||
	    listen(fd, 4096) == -1) {
		perror("listen");
		_exit(51);
	}
	return fd;
}

int
flow_ended(int fd)
{
	struct pollfd	p = { .fd = fd, .events = POLLIN };
	char		b;

	return poll(&p, 1, WAIT_MS) == 1 && recv(fd, &b, 1, 0) == -1 &&
	    errno == ECONNABORTED;
}

static const struct { const char *to; int v6; } inner[] = {
	{ "127.0.0.1", 0 }, { "127.9.9.9", 0 }, { "198.19.255.100", 0 },
	{ "::1", 1 }, { "fd00::100", 1 }, { "::ffff:127.0.0.1", 1 },
	{ "::ffff:198.19.255.100", 1 },
};
#define NINNER	(sizeof(inner) / sizeof(inner[0]))
_Static_assert(NINNER == FLOWS, "egress_flow.h");

int
flow_step(struct flow *f)
{
	uint32_t	v;
	ssize_t		n;

	while (f->sent - f->seen < 1000) {
		v = f->sent;
		n = send(f->in, &v, sizeof(v), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n == -1 && errno == EAGAIN)
			break;
		if (n != sizeof(v))
			return -1;
		f->sent++;
	}
	n = recv(f->out, &v, sizeof(v), MSG_WAITALL);
	return n == sizeof(v) && v == f->seen++ ? 0 : -1;
}

int
flows_open(struct flow f[FLOWS], int v6)
{
	int	l4 = flow_listen(AF_INET, 8080), l6, n = 0;
	size_t	i;

	l6 = v6 ? flow_listen(AF_INET6, 8080) : -1;
	for (i = 0; i < NINNER; i++) {
		if (inner[i].v6 && !v6)
			continue;
		f[n].to = inner[i].to;
		f[n].sent = f[n].seen = 0;
		f[n].in = flow_connect(inner[i].to, 8080, SOCK_STREAM);
		f[n].out = accept(strchr(inner[i].to, ':') == NULL ||
		    strchr(inner[i].to, '.') != NULL ? l4 : l6, NULL, NULL);
		if (f[n++].out == -1)
			_exit(52);
	}
	return n;
}
