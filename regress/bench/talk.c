/*
 * talk.c: both ends of a TCP connection whose speed is wanted.  Static; one
 * end is put into the root file system, or runs in the peer's namespace, the
 * other serves beside it.
 *
 *	talk serve ADDRESS PORT		says `ready', then serves for good
 *	talk ADDRESS PORT send BYTES	nanoseconds until the server has them
 *	talk ADDRESS PORT recv BYTES	nanoseconds until they are here
 *	talk ADDRESS PORT ping N	of one byte there and back, the median
 *
 * Who receives looks at the bytes when the clock has stopped; a client tells
 * a time only if they are what was sent.  The clock runs from the moment when
 * both ends have their memory.
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD	1048573		/* a prime: no part that is lost or doubled
				   leaves the rest where it was */
#define BYTES_MAX	((size_t)1 << 30)
#define PINGS_MAX	1000000
#define WAIT_S	20		/* for one byte of a peer */
#define GO	'g'
#define GOOD	'o'
#define BAD	'x'

enum job { SEND = 's', RECV = 'r', PING = 'p' };

struct head { uint64_t job, n; };	/* both ends are one program */

static unsigned char	pattern[PERIOD];

static int64_t
now_ns(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);	/* cannot fail */
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int
put(int fd, const void *data, size_t n)
{
	const char	*p = data;
	ssize_t		 w;

	for (; n > 0; p += w, n -= (size_t)w)
		if ((w = send(fd, p, n, MSG_NOSIGNAL)) <= 0)
			return -1;
	return 0;
}

static int
get(int fd, void *data, size_t n)
{
	char	*p = data;
	ssize_t	 r;

	for (; n > 0; p += r, n -= (size_t)r)
		if ((r = recv(fd, p, n, 0)) <= 0)
			return -1;
	return 0;
}

static int
put_byte(int fd, int c)
{
	unsigned char	b = (unsigned char)c;

	return put(fd, &b, 1);
}

/* A byte, or -1. */
static int
get_byte(int fd)
{
	unsigned char	b;

	return get(fd, &b, 1) == 0 ? b : -1;
}

/* ---- a stream ------------------------------------------------------------ */

static void
pattern_init(void)
{
	uint32_t	x = 2463534242;
	size_t		i;

	for (i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = (unsigned char)x;
	}
}

static int
put_stream(int fd, size_t n)
{
	size_t	part;

	for (; n > 0; n -= part) {
		part = n < PERIOD ? n : PERIOD;
		if (put(fd, pattern, part) == -1)
			return -1;
	}
	return 0;
}

/* Page faults are nobody's: all of it is there before a clock runs. */
static unsigned char *
room(size_t n)
{
	void	*p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		    MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int
is_whole(const unsigned char *p, size_t n)
{
	size_t	part;

	for (; n > 0; p += part, n -= part) {
		part = n < PERIOD ? n : PERIOD;
		if (memcmp(p, pattern, part) != 0)
			return 0;
	}
	return 1;
}

/* ---- the server ---------------------------------------------------------- */

static int
serve_send(int fd, size_t n)
{
	unsigned char	*p = room(n);

	if (p == NULL || put_byte(fd, GO) == -1 || get(fd, p, n) == -1 ||
	    put_byte(fd, GO) == -1)
		return -1;
	return put_byte(fd, is_whole(p, n) ? GOOD : BAD);
}

static int
serve_recv(int fd, size_t n)
{
	return get_byte(fd) != GO ? -1 : put_stream(fd, n);
}

static int
serve_ping(int fd, size_t n)
{
	int	c;

	for (; n > 0; n--)
		if ((c = get_byte(fd)) == -1 || put_byte(fd, c) == -1)
			return -1;
	return 0;
}

static int
serve_one(int fd)
{
	struct head	hd;

	if (get(fd, &hd, sizeof(hd)) == -1 || hd.n > BYTES_MAX)
		return -1;
	switch (hd.job) {
	case SEND:
		return serve_send(fd, hd.n);
	case RECV:
		return serve_recv(fd, hd.n);
	case PING:
		return serve_ping(fd, hd.n);
	}
	return -1;
}

static int
options(int fd)
{
	const struct timeval	tv = { WAIT_S, 0 };
	const int		one = 1;

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == -1 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == -1 ?
	    -1 : 0;
}

static int
serve(const struct sockaddr_in *sa)
{
	const int	one = 1;
	int		l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	pid_t		pid;

	if (l == -1 || setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one,
	    sizeof(one)) == -1 || bind(l, (const struct sockaddr *)sa,
	    sizeof(*sa)) == -1 || listen(l, 1024) == -1) {
		perror("talk: listen");
		return 1;
	}
	(void)signal(SIGCHLD, SIG_IGN);		/* nobody waits for them */
	puts("ready");
	(void)fflush(stdout);
	while ((fd = accept(l, NULL, NULL)) != -1) {
		if ((pid = fork()) == 0)
			_exit(options(fd) == -1 || serve_one(fd) == -1);
		if (pid == -1)
			perror("talk: fork");
		close(fd);
	}
	perror("talk: accept");
	return 1;
}

/* ---- the client: nanoseconds, or -1 -------------------------------------- */

static int64_t
ask_send(int fd, size_t n)
{
	int64_t	t0;

	if (get_byte(fd) != GO)
		return -1;
	t0 = now_ns();
	if (put_stream(fd, n) == -1 || get_byte(fd) != GO)
		return -1;
	t0 = now_ns() - t0;
	return get_byte(fd) == GOOD ? t0 : -1;
}

static int64_t
ask_recv(int fd, size_t n)
{
	unsigned char	*p = room(n);
	int64_t		 t0 = now_ns();

	if (p == NULL || put_byte(fd, GO) == -1 || get(fd, p, n) == -1)
		return -1;
	t0 = now_ns() - t0;
	return is_whole(p, n) ? t0 : -1;
}

static int
cmp(const void *a, const void *b)
{
	int64_t	x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t
ask_ping(int fd, size_t n)
{
	static int64_t	t[PINGS_MAX];
	int64_t		t0;
	size_t		i;

	for (i = 0; i < n; i++) {
		t0 = now_ns();
		if (put_byte(fd, (int)(i & 0xff)) == -1 ||
		    get_byte(fd) != (int)(i & 0xff))
			return -1;
		t[i] = now_ns() - t0;
	}
	qsort(t, n, sizeof(t[0]), cmp);
	return t[n / 2];
}

static int64_t
ask(int fd, const struct head *hd)
{
	if (options(fd) == -1 || put(fd, hd, sizeof(*hd)) == -1)
		return -1;
	switch (hd->job) {
	case SEND:
		return ask_send(fd, hd->n);
	case RECV:
		return ask_recv(fd, hd->n);
	default:
		return ask_ping(fd, hd->n);
	}
}

static int
client(const struct sockaddr_in *sa, const struct head *hd)
{
	int	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int64_t	t;

	if (fd == -1 || connect(fd, (const struct sockaddr *)sa,
	    sizeof(*sa)) == -1) {
		perror("talk: connect");
		return 1;
	}
	if ((t = ask(fd, hd)) == -1) {
		fprintf(stderr, "talk: the connection ended early, or other "
		    "bytes came than were sent\n");
		return 1;
	}
	printf("%lld\n", (long long)t);
	return 0;
}

/* Whether the number is one of the job's. */
static int
head_parse(struct head *hd, const char *job, const char *n)
{
	char	*end;

	if (strcmp(job, "send") == 0)
		hd->job = SEND;
	else if (strcmp(job, "recv") == 0)
		hd->job = RECV;
	else if (strcmp(job, "ping") == 0)
		hd->job = PING;
	else
		return 0;
	hd->n = strtoull(n, &end, 10);
	return end != n && *end == '\0' && hd->n > 0 &&
	    hd->n <= (hd->job == PING ? PINGS_MAX : BYTES_MAX);
}

static int
address(struct sockaddr_in *sa, const char *addr, const char *port)
{
	sa->sin_family = AF_INET;
	sa->sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	return inet_pton(AF_INET, addr, &sa->sin_addr) == 1 &&
	    sa->sin_port != 0;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in	sa = { 0 };
	struct head		hd = { 0 };

	pattern_init();
	if (argc == 4 && strcmp(argv[1], "serve") == 0 &&
	    address(&sa, argv[2], argv[3]))
		return serve(&sa);
	if (argc == 5 && address(&sa, argv[1], argv[2]) &&
	    head_parse(&hd, argv[3], argv[4]))
		return client(&sa, &hd);
	fprintf(stderr, "usage: talk serve ADDRESS PORT\n"
	    "       talk ADDRESS PORT send|recv BYTES | ping N\n");
	return 2;
}
