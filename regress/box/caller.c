/*
 * caller.c: programs of a box that speaks to hosts by name, for allowlist.sh:
 * static, for the minimal root file system has none that say what they saw.
 *
 * caller name NAME [TYPE [tcp]]: asks 198.19.255.3; prints the code of the
 *	answer and its addresses, or why there is none.
 * caller tcp HOST PORT [end|SECONDS]: sends its standard input, then, with
 *	`end', that this was all; prints what comes, at most for SECONDS, and
 *	in a last line how it ended and after how many milliseconds.
 * caller udp ADDRESS PORT: prints what a datagram meets within a second.
 * caller hold HOST PORT N: N connections that say nothing; prints how many
 *	there are and keeps them.
 * caller flood HOST PORT: connections one upon the other, without end, closed
 *	as soon as they are begun.
 * caller often HOST PORT N: N requests by plain HTTP, each by a connection of
 *	its own, at a pace; prints the 50th and 95th hundredth of how long one
 *	takes, in microseconds, and how many were answered.
 * caller steal ADDRESS PORT [wait]: listens there by UDP and TCP, with every
 *	option that might help, with `wait' as soon as it can; prints whether
 *	it could, and all that comes.
 *
 * HOST: an address, or a name, which is asked for.
 */
#include <sys/random.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SERVER	"198.19.255.3"
#define LATE_MS	30000
#define PACE_US	5000		/* 200 a second is what a box may open */

static uint64_t	since_ms;

static uint64_t
mono_ms(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static const char *
why(int e)
{
	switch (e) {
	case ECONNREFUSED:
		return "refused";
	case ECONNRESET:
		return "reset";
	case ECONNABORTED:
		return "aborted";
	case EPERM:
		return "not permitted";
	default:
		return strerror(e);
	}
}

/* How it ended: the last line. */
static void
ended(const char *how)
{
	(void)printf("= %s %lu ms\n", how,
	    (unsigned long)(mono_ms() - since_ms));
	exit(0);
}

/* Of an argument, from 1 on. */
static unsigned int
number(const char *s, unsigned long most)
{
	unsigned long	n;
	char		*end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno != 0 || s[0] < '0' || s[0] > '9' || *end != '\0' || n == 0 ||
	    n > most) {
		(void)fprintf(stderr, "caller: %s: expected a number from 1 "
		    "to %lu\n", s, most);
		exit(2);
	}
	return (unsigned int)n;
}

static struct sockaddr_in
address(const char *text, const char *port)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		exit(2);
	sin.sin_port = htons((uint16_t)number(port, 65535));
	return sin;
}

/* ---- names --------------------------------------------------------- */

static size_t
query(const char *name, int type, uint8_t *q)
{
	const char	*dot;
	size_t		 n = 12;

	memset(q, 0, n);
	(void)getrandom(q, 2, 0);
	q[2] = q[5] = 1;
	if (strcmp(name, ".") == 0)
		name = "";
	for (; *name != '\0' && n < 400; name = *dot == '.' ? dot + 1 : dot) {
		dot = name + strcspn(name, ".");
		q[n++] = (uint8_t)(dot - name);
		memcpy(q + n, name, (size_t)(dot - name));
		n += (size_t)(dot - name);
	}
	q[n++] = 0;
	q[n++] = (uint8_t)(type >> 8);
	q[n++] = (uint8_t)type;
	q[n++] = 0;
	q[n++] = 1;
	return n;
}

/* The length of the answer, or -1. */
static ssize_t
exchange(int tcp, const uint8_t *q, size_t n, uint8_t *a, size_t room)
{
	struct sockaddr_in	sin = address(SERVER, "53");
	struct timeval		tv = { 5, 0 };
	uint8_t			len[2] = { (uint8_t)(n >> 8), (uint8_t)n };
	int			fd = socket(AF_INET,
				    tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
	ssize_t			r = -1;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0 &&
	    (!tcp || send(fd, len, 2, MSG_MORE) == 2) &&
	    send(fd, q, n, 0) == (ssize_t)n &&
	    (!tcp || recv(fd, len, 2, MSG_WAITALL) == 2))
		r = recv(fd, a, tcp && (size_t)(len[0] << 8 | len[1]) < room ?
		    (size_t)(len[0] << 8 | len[1]) : room,
		    tcp ? MSG_WAITALL : 0);
	(void)close(fd);
	return r;
}

/* Answers here have one record, whose name is a pointer, or none. */
static int
ask(const char *name, int type, int tcp, struct in_addr *ret)
{
	uint8_t	q[512], a[512];
	size_t	n = query(name, type, q);
	ssize_t	r;

	errno = ECONNRESET;			/* where it just ended */
	r = exchange(tcp, q, n, a, sizeof(a));
	if (r == -1)
		return -1;
	if (r < 12 || memcmp(a, q, 2) != 0)
		return -2;
	ret->s_addr = 0;
	if (a[7] == 1 && r == (ssize_t)n + 16)
		memcpy(ret, a + n + 12, 4);
	else if (a[7] != 0)
		return -2;
	return a[3] & 15;
}

static int
do_name(const char *name, const char *type, int tcp)
{
	struct in_addr	addr;
	int		r = ask(name, (int)number(type, 65535), tcp, &addr);

	if (r == -1)
		ended(why(errno));
	if (r == -2)
		ended("nonsense");
	(void)printf("%d%s%s\n", r, addr.s_addr != 0 ? " " : "",
	    addr.s_addr != 0 ? inet_ntoa(addr) : "");
	return 0;
}

static struct sockaddr_in
host(const char *name, const char *port)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, name, &sin.sin_addr) != 1 &&
	    (ask(name, 1, 0, &sin.sin_addr) != 0 ||
	    sin.sin_addr.s_addr == 0))
		ended("no such name");
	sin.sin_port = htons((uint16_t)number(port, 65535));
	return sin;
}

/* ---- connections --------------------------------------------------- */

/*
 * All of standard input.  0, or the errno of send(2): the kernel tells of a
 * reset once, and recv(2) tells of an end then.
 */
static int
send_all(int fd)
{
	static char	buf[65536];
	ssize_t		n, m, r;

	while ((n = read(0, buf, sizeof(buf))) > 0)
		for (m = 0; m < n; m += r)
			if ((r = send(fd, buf + m, (size_t)(n - m),
			    MSG_NOSIGNAL)) == -1)
				return errno;
	return 0;
}

static int
do_tcp(const struct sockaddr_in *sin, const char *how)
{
	static char	buf[65536];
	struct pollfd	p = { .events = POLLIN };
	int		ms = how != NULL && how[0] >= '0' && how[0] <= '9' ?
			    (int)number(how, 3600) * 1000 : LATE_MS;
	ssize_t		n;
	int		e;

	p.fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(p.fd, (const struct sockaddr *)sin, sizeof(*sin)) == -1)
		ended(why(errno));
	e = send_all(p.fd);
	if (how != NULL && strcmp(how, "end") == 0)
		(void)shutdown(p.fd, SHUT_WR);
	for (;;) {
		if (poll(&p, 1, ms) == 0)
			ended("late");
		if ((n = recv(p.fd, buf, sizeof(buf), 0)) <= 0)
			break;
		(void)fwrite(buf, 1, (size_t)n, stdout);
		(void)fflush(stdout);
	}
	ended(n == -1 ? why(errno) : e != 0 ? why(e) : "end");
	return 0;
}

static int
do_udp(const struct sockaddr_in *sin)
{
	struct pollfd	p = { .events = POLLIN };
	char		buf[512];

	p.fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (connect(p.fd, (const struct sockaddr *)sin, sizeof(*sin)) == -1 ||
	    send(p.fd, "x", 1, 0) == -1)
		ended(why(errno));
	if (poll(&p, 1, 1000) == 0)
		ended("late");
	ended(recv(p.fd, buf, sizeof(buf), 0) == -1 ? why(errno) : "answer");
	return 0;
}

static int
do_hold(const struct sockaddr_in *sin, int most)
{
	int	n;

	for (n = 0; n < most; n++)
		if (connect(socket(AF_INET, SOCK_STREAM, 0),
		    (const struct sockaddr *)sin, sizeof(*sin)) == -1)
			break;
	(void)printf("%d\n", n);
	(void)fflush(stdout);
	for (;;)
		(void)pause();
	return 0;
}

static int
do_flood(const struct sockaddr_in *sin)
{
	int	fd[64], i;

	(void)puts("begins");
	(void)fflush(stdout);
	for (;;) {
		for (i = 0; i < 64; i++) {
			fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK,
			    0);
			(void)connect(fd[i], (const struct sockaddr *)sin,
			    sizeof(*sin));
		}
		for (i = 0; i < 64; i++)
			(void)close(fd[i]);
	}
	return 0;
}

static uint64_t
mono_us(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* One request; 1: it was answered. */
static int
once(const struct sockaddr_in *sin, const char *name)
{
	char	buf[512];
	int	n = snprintf(buf, sizeof(buf), "GET / HTTP/1.0\r\nHost: %s\r\n"
		    "\r\n", name), fd = socket(AF_INET, SOCK_STREAM, 0), r = 0;

	if (connect(fd, (const struct sockaddr *)sin, sizeof(*sin)) == 0 &&
	    send(fd, buf, (size_t)n, MSG_NOSIGNAL) == n)
		for (; recv(fd, buf, sizeof(buf), 0) > 0; r = 1)
			;
	(void)close(fd);
	return r;
}

static int
by_size(const void *a, const void *b)
{
	const uint64_t	*x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int
do_often(const struct sockaddr_in *sin, const char *name, size_t n)
{
	static uint64_t	took[10000];
	size_t		i, answered = 0;

	if (n == 0 || n > sizeof(took) / sizeof(took[0]))
		return 2;
	for (i = 0; i < n; i++) {
		took[i] = mono_us();
		answered += (size_t)once(sin, name);
		took[i] = mono_us() - took[i];
		(void)usleep(PACE_US);
	}
	qsort(took, n, sizeof(took[0]), by_size);
	(void)printf("%lu %lu %zu\n", (unsigned long)took[n / 2],
	    (unsigned long)took[n * 95 / 100], answered);
	return 0;
}

/* ---- what is not its own ------------------------------------------- */

/* The socket, or -1. */
static int
take(int type, const struct sockaddr_in *sin, int waits)
{
	static const struct { int level, name; } options[] = {
		{ SOL_SOCKET, SO_REUSEADDR }, { SOL_SOCKET, SO_REUSEPORT },
		{ IPPROTO_IP, IP_FREEBIND }, { IPPROTO_IP, IP_TRANSPARENT },
	};
	int	on = 1, fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	size_t	i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (setsockopt(fd, options[i].level, options[i].name, &on,
		    sizeof(on)) == 0 && options[i].name == IP_TRANSPARENT)
			(void)puts("TRANSPARENT");
	while (waits && bind(fd, (const struct sockaddr *)sin, sizeof(*sin))
	    == -1 && errno == EADDRINUSE)
		(void)usleep(1000);	/* the gap may be short */
	if ((!waits && bind(fd, (const struct sockaddr *)sin, sizeof(*sin))
	    == -1) || (type == SOCK_STREAM && listen(fd, 100) == -1)) {
		(void)printf("%s: %s\n", type == SOCK_STREAM ? "tcp" : "udp",
		    why(errno));
		(void)close(fd);
		return -1;
	}
	(void)printf("%s: bound\n", type == SOCK_STREAM ? "tcp" : "udp");
	return fd;
}

static int
do_steal(const struct sockaddr_in *sin, int waits)
{
	struct pollfd	p[2] = {
		{ .fd = take(SOCK_DGRAM, sin, waits), .events = POLLIN },
		{ .fd = take(SOCK_STREAM, sin, waits), .events = POLLIN } };
	char		buf[512];

	(void)fflush(stdout);
	for (;;) {
		(void)poll(p, 2, -1);
		if (p[0].revents != 0 && recv(p[0].fd, buf, sizeof(buf), 0)
		    != -1)
			(void)puts("GOT a datagram");
		if (p[1].revents != 0 && accept(p[1].fd, NULL, NULL) != -1)
			(void)puts("GOT a connection");
		(void)fflush(stdout);
	}
	return 0;
}

int
main(int argc, char *argv[])
{
	struct sockaddr_in	sin;

	since_ms = mono_ms();
	if (argc >= 3 && strcmp(argv[1], "name") == 0)
		return do_name(argv[2], argc > 3 ? argv[3] : "1", argc > 4);
	if (argc < 4)
		return 2;
	if (strcmp(argv[1], "steal") == 0) {
		sin = address(argv[2], argv[3]);
		return do_steal(&sin, argc > 4);
	}
	sin = host(argv[2], argv[3]);
	if (strcmp(argv[1], "tcp") == 0)
		return do_tcp(&sin, argv[4]);
	if (strcmp(argv[1], "udp") == 0)
		return do_udp(&sin);
	if (strcmp(argv[1], "hold") == 0 && argc > 4)
		return do_hold(&sin, (int)number(argv[4], 65535));
	if (strcmp(argv[1], "flood") == 0)
		return do_flood(&sin);
	if (strcmp(argv[1], "often") == 0 && argc > 4)
		return do_often(&sin, argv[2], strtoul(argv[4], NULL, 10));
	return 2;
}
