/*
 * allow_net_test.c: what a program in a box of `allowlist' can do with its
 * network: what is for the relay and the name service comes to the sockets
 * that netd hands to proxyd, whatever the box binds itself, and nothing else
 * goes anywhere.
 *
 * The real netd; the test holds proxyd's end and serves by hand.
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "denied.h"
#include "netd_names.h"
#include "netd_probe.h"
#include "xmalloc.h"

#define ID1	"01K8ZZZZZZZZZZZZZZZZZZZZZ1"
#define SYNTH	"198.18.3.4"
#define NAMES	"198.19.255.3"
#define SOON_MS	300

#define CHECK(x) do {							\
	if (!(x)) {							\
		fprintf(stderr, "%s:%d: %s: %s\n", __func__, __LINE__,	\
		    #x, strerror(errno));				\
		return __LINE__ % 80 + 1;				\
	}								\
} while (0)

static struct world	w;
static struct names_box	box;

static void
setup(void)
{
	world_make(&w);
	w.named = 1;
	world_start(&w);
	names_open(&w, ID1, &box);
}

static void
teardown(void)
{
	names_free(&box);
	world_free(&w);
}

static long
ms(void)
{
	struct timespec	t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct sockaddr_in
at(const char *text, int port)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		_exit(98);
	return a;
}

static int
is_at(const struct sockaddr_in *a, const char *text, int port)
{
	struct sockaddr_in	b = at(text, port);

	return a->sin_addr.s_addr == b.sin_addr.s_addr &&
	    (port == 0 || a->sin_port == b.sin_port);
}

static int
waits(int fd, short what, int time_ms)
{
	struct pollfd	p = { .fd = fd, .events = what };

	return poll(&p, 1, time_ms) == 1;
}

/* ---- in the box -------------------------------------------------------- */

/* errno of connect(2), 0: it is open, ETIME; *ret_fd may be NULL. */
static int
try_tcp(const char *to, int port, int *ret_fd)
{
	struct sockaddr_in6	a6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in	a = { .sin_family = AF_INET };
	int			v6 = inet_pton(AF_INET6, to, &a6.sin6_addr);
	int			e = 0, fd, r;
	socklen_t		len = sizeof(e);

	if (!v6)
		a = at(to, port);
	fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	r = v6 ? connect(fd, (struct sockaddr *)&a6, sizeof(a6)) :
	    connect(fd, (struct sockaddr *)&a, sizeof(a));
	if (r == -1 && (e = errno) == EINPROGRESS) {
		e = ETIME;
		if (waits(fd, POLLOUT, SOON_MS))
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	}
	if (ret_fd != NULL && e == 0)
		*ret_fd = fd;
	else
		close(fd);
	return e;
}

struct to { const char *to; int port; };

/* Says x and hears y. */
static int
talks(void *arg)
{
	const struct to	*t = arg;
	int		fd;
	char		b = 0;

	CHECK(try_tcp(t->to, t->port, &fd) == 0);
	CHECK(fcntl(fd, F_SETFL, 0) == 0);
	CHECK(write(fd, "x", 1) == 1);
	CHECK(read(fd, &b, 1) == 1 && b == 'y');
	return 0;
}

static int
asks(void *arg)
{
	struct sockaddr_in	a = at(NAMES, 53), from;
	socklen_t		len = sizeof(from);
	int			fd = socket(AF_INET, SOCK_DGRAM, 0);
	char			b = 0;

	(void)arg;
	CHECK(sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)) == 1);
	CHECK(waits(fd, POLLIN, 5000));
	CHECK(recvfrom(fd, &b, 1, 0, (struct sockaddr *)&from, &len) == 1 &&
	    b == 'y');
	CHECK(is_at(&from, NAMES, 53));
	return 0;
}

/* ---- in proxyd's place ------------------------------------------------- */

/* The next connection; it is for this, and from the box's own address. */
static void
serve(enum names_sock s, const char *to, int port)
{
	struct sockaddr_in	a;
	socklen_t		len = sizeof(a);
	int			fd;
	char			b = 0;

	ck_assert(waits(box.sock[s], POLLIN, 5000));
	ck_assert_int_ne(fd = accept4(box.sock[s], (struct sockaddr *)&a,
	    &len, SOCK_CLOEXEC), -1);
	ck_assert(is_at(&a, "198.19.255.100", 0));
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	ck_assert_msg(is_at(&a, to, port), "%s:%d", inet_ntoa(a.sin_addr),
	    ntohs(a.sin_port));
	ck_assert_int_eq(read(fd, &b, 1), 1);
	ck_assert_int_eq(b, 'x');
	ck_assert_int_eq(write(fd, "y", 1), 1);
	close(fd);
}

static void
serve_names(void)
{
	struct sockaddr_in	a;
	socklen_t		len = sizeof(a);
	char			b = 0;

	ck_assert(waits(box.sock[NAMES_UDP], POLLIN, 5000));
	ck_assert_int_eq(recvfrom(box.sock[NAMES_UDP], &b, 1, 0,
	    (struct sockaddr *)&a, &len), 1);
	ck_assert(is_at(&a, "198.19.255.100", 0));
	ck_assert_int_eq(sendto(box.sock[NAMES_UDP], "y", 1, 0,
	    (struct sockaddr *)&a, len), 1);
}

static void
talk(const char *to, int port, enum names_sock s)
{
	struct to	t = { to, port };
	pid_t		pid = world_box(box.netns, talks, &t);

	serve(s, to, port);
	ck_assert_int_eq(world_box_result(pid), 0);
}

static int
in_box(int (*fn)(void *), void *arg)
{
	return world_box_result(world_box(box.netns, fn, arg));
}

/* Nobody has come to any of them. */
static int
unheard(void)
{
	return !waits(box.sock[NAMES_RELAY], POLLIN, 0) &&
	    !waits(box.sock[NAMES_UDP], POLLIN, 0) &&
	    !waits(box.sock[NAMES_TCP], POLLIN, 0);
}

/* The next denial, of this rule. */
static struct msg_net_denied
denied(uint64_t rule)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_NET_DENIED);
	ck_assert_str_eq(m.body.net_denied.id, ID1);
	ck_assert_str_eq(m.body.net_denied.name, "");
	ck_assert_uint_eq(m.body.net_denied.rule, rule);
	return m.body.net_denied;
}

/* Passing by denials, which nobody asked for. */
static struct msg_net_status_is
status(void)
{
	struct msg_net_status	q = { .id = ID1 };
	struct msg		m;

	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_STATUS, &q, -1, NULL), 0);
	while (daemon_next(&w.apid, &m) == MSG_NET_DENIED)
		continue;
	ck_assert_uint_eq(m.row->type, MSG_NET_STATUS_IS);
	return m.body.net_status_is;
}

/* ---- what arrives ------------------------------------------------------ */

START_TEST(arrives)
{
	struct msg_net_status_is	s;
	pid_t				pid;

	talk(SYNTH, 443, NAMES_RELAY);
	talk("198.18.0.1", 22, NAMES_RELAY);
	talk("198.18.255.255", 65535, NAMES_RELAY);
	talk(SYNTH, 53, NAMES_RELAY);
	talk(SYNTH, 1, NAMES_RELAY);
	talk(NAMES, 53, NAMES_TCP);
	pid = world_box(box.netns, asks, NULL);
	serve_names();
	ck_assert_int_eq(world_box_result(pid), 0);
	s = status();
	ck_assert_uint_eq(s.state, 1);
	ck_assert_uint_eq(s.network, NETWORK_ALLOWLIST);
	ck_assert_uint_eq(s.whole, 1);
	ck_assert_uint_eq(s.uplink, 1);
	ck_assert_uint_eq(s.connections, 6);
	ck_assert_uint_eq(s.names, 1);
	ck_assert_uint_eq(s.address + s.limited, 0);
	/* what is the box's own is as with `none' */
	ck_assert_int_eq(in_box(probe_ports, NULL), 0);
	ck_assert_int_eq(in_box(probe_powerless, NULL), 0);
	ck_assert(unheard());
}
END_TEST

/* Whatever a program binds its own end to, the relay is told the same. */
static int
from_afar(void *arg)
{
	static const char *const	from[] = { "127.0.0.1", "127.1.2.3",
					    "198.19.255.100" };
	struct sockaddr_in		a, to = at(SYNTH, 443);
	size_t				i;
	int				fd;
	char				b;

	(void)arg;
	for (i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		a = at(from[i], 0);
		CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
		CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
		CHECK(read(fd, &b, 1) == 1);
		close(fd);
	}
	/* no way back leads to these */
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	a = at("198.18.9.9", 0);
	CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1);
	CHECK(!waits(fd, POLLOUT, SOON_MS));
	return 0;
}

START_TEST(from_other_addresses)
{
	struct sockaddr_in	a;
	socklen_t		len = sizeof(a);
	pid_t			pid = world_box(box.netns, from_afar, NULL);
	int			fd, i;

	for (i = 0; i < 3; i++) {
		ck_assert(waits(box.sock[NAMES_RELAY], POLLIN, 5000));
		fd = accept(box.sock[NAMES_RELAY], NULL, NULL);
		ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a,
		    &len), 0);
		ck_assert(is_at(&a, SYNTH, 443));
		ck_assert_int_eq(write(fd, "y", 1), 1);
		close(fd);
	}
	ck_assert_int_eq(world_box_result(pid), 0);
	ck_assert(unheard());
}
END_TEST

static int
direct(void *arg)
{
	(void)arg;
	CHECK(try_tcp("127.0.0.1", 1, NULL) == ECONNREFUSED);
	CHECK(try_tcp("::ffff:127.0.0.1", 1, NULL) == ECONNREFUSED);
	return 0;
}

/* Past the addresses that stand for names nobody comes to the relay. */
START_TEST(not_direct)
{
	struct msg_net_denied	d;

	ck_assert_int_eq(in_box(direct, NULL), 0);
	ck_assert(unheard());
	d = denied(DENIED_ADDRESS);
	ck_assert_uint_eq(d.port, 1);
	ck_assert_uint_eq(d.protocol, IPPROTO_TCP);
	/* the control */
	ck_assert_int_eq(world_box_result(world_insider(&w, box.netns,
	    probe_flush, NULL)), 0);
	(void)in_box(direct, NULL);
	ck_assert(!unheard());
}
END_TEST

/* ---- what does not ----------------------------------------------------- */

static const char *const	away[] = { "1.2.3.4", "10.0.2.2",
	"169.254.169.254", "198.19.255.2", "198.19.255.4", "8.8.8.8",
	"255.255.255.255", "2001:db8::1", "fd00::2", "64:ff9b::a9fe:a9fe",
	"::ffff:1.2.3.4" };

static int
try_udp(const char *to, int port)
{
	struct sockaddr_in6	a6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in	a;
	int			v6 = inet_pton(AF_INET6, to, &a6.sin6_addr);
	int			e, fd = socket(v6 ? AF_INET6 : AF_INET,
				    SOCK_DGRAM, 0), on = 1;
	ssize_t			n;

	(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	if (v6)
		n = sendto(fd, "x", 1, 0, (struct sockaddr *)&a6, sizeof(a6));
	else {
		a = at(to, port);
		n = sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
	}
	e = n == -1 ? errno : 0;
	close(fd);
	return e;
}

static int
refused(void *arg)
{
	long	t0 = ms();
	size_t	i;
	int	e;

	(void)arg;
	for (i = 0; i < sizeof(away) / sizeof(away[0]); i++) {
		e = try_tcp(away[i], 443, NULL);
		if (e != ECONNREFUSED && strcmp(away[i], "255.255.255.255")) {
			fprintf(stderr, "%s: %s\n", away[i], strerror(e));
			return 1;
		}
		e = try_udp(away[i], 443);
		if (e != EPERM) {
			fprintf(stderr, "%s, UDP: %s\n", away[i],
			    strerror(e));
			return 2;
		}
	}
	/* the name service is port 53 alone */
	CHECK(try_tcp(NAMES, 853, NULL) == ECONNREFUSED);
	CHECK(try_udp(NAMES, 443) == EPERM);
	CHECK(try_udp("8.8.8.8", 53) == EPERM);
	CHECK(ms() - t0 < 900);
	return 0;
}

START_TEST(refused_and_told)
{
	struct msg_net_denied		 d;
	struct msg_net_status_is	 s;
	uint8_t				 v4[4], v6[16];

	ck_assert_int_eq(in_box(refused, NULL), 0);
	d = denied(DENIED_ADDRESS);
	(void)inet_pton(AF_INET, "1.2.3.4", v4);
	ck_assert_uint_eq(d.address.len, 4);
	ck_assert_mem_eq(d.address.data, v4, 4);
	ck_assert_uint_eq(d.port, 443);
	ck_assert_uint_eq(d.protocol, IPPROTO_TCP);
	ck_assert_uint_eq(d.count, 1);
	do
		d = denied(DENIED_ADDRESS);
	while (d.address.len == 4);
	(void)inet_pton(AF_INET6, "2001:db8::1", v6);
	ck_assert_mem_eq(d.address.data, v6, 16);
	s = status();
	/* of TCP and UDP each; one is no host's for TCP */
	ck_assert_uint_eq(s.address, 2 * 11 - 1 + 3);
	ck_assert_uint_eq(s.connections, 0);
	ck_assert(unheard());
}
END_TEST

static int
quic(void *arg)
{
	struct sockaddr_in	a = at(SYNTH, 443), own = at("0.0.0.0", 443);
	int			fd = socket(AF_INET, SOCK_DGRAM, 0);
	int			mine = socket(AF_INET, SOCK_DGRAM, 0);
	long			t0 = ms();
	char			b;

	(void)arg;
	/* nor does it come to who serves that port */
	CHECK(bind(mine, (struct sockaddr *)&own, sizeof(own)) == 0);
	CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(send(fd, "x", 1, 0) == 1);
	CHECK(waits(fd, POLLIN | POLLERR, SOON_MS));
	CHECK(recv(fd, &b, 1, 0) == -1 && errno == ECONNREFUSED);
	CHECK(ms() - t0 < SOON_MS);
	CHECK(!waits(mine, POLLIN, 50));
	return 0;
}

START_TEST(udp_fails_at_once)
{
	struct msg_net_denied	d;

	ck_assert_int_eq(in_box(quic, NULL), 0);
	d = denied(DENIED_ADDRESS);
	ck_assert_uint_eq(d.protocol, IPPROTO_UDP);
	ck_assert_uint_eq(d.port, 443);
	ck_assert(unheard());
}
END_TEST

/* ---- what a box binds itself ------------------------------------------- */

static const struct { int type; const char *on; int port; } hijacks[] = {
	{ SOCK_STREAM, SYNTH, 443 },
	{ SOCK_STREAM, "0.0.0.0", 443 },
	{ SOCK_STREAM, NAMES, 53 },
	{ SOCK_STREAM, "0.0.0.0", 53 },
	{ SOCK_DGRAM, NAMES, 53 },
	{ SOCK_DGRAM, "0.0.0.0", 53 },
};
#define NHIJACKS	((int)(sizeof(hijacks) / sizeof(hijacks[0])))

static int
bound(int i, unsigned int options)
{
	const struct sockaddr_in	a = at(hijacks[i].on,
					    hijacks[i].port);
	int				on = 1, fd = socket(AF_INET,
					    hijacks[i].type | SOCK_NONBLOCK,
					    0);

	if ((options & 1 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
	    sizeof(on)) == -1) || (options & 2 && setsockopt(fd, SOL_SOCKET,
	    SO_REUSEPORT, &on, sizeof(on)) == -1) || (options & 4 &&
	    setsockopt(fd, SOL_IP, IP_FREEBIND, &on, sizeof(on)) == -1) ||
	    (options & 8 && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo",
	    3) == -1))
		_exit(97);
	if (setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) != -1)
		_exit(96);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) == -1 ||
	    (hijacks[i].type == SOCK_STREAM && listen(fd, 8) == -1)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* With any options: it cannot be had beside ours. */
static int
takes_port(void *arg)
{
	int		i;
	unsigned int	o;

	(void)arg;
	for (i = 2; i < NHIJACKS; i++)
		for (o = 0; o < 16; o++)
			CHECK(bound(i, o) == -1 && errno == EADDRINUSE);
	return 0;
}

START_TEST(ports_are_ours)
{
	ck_assert_int_eq(in_box(takes_port, NULL), 0);
	talk(NAMES, 53, NAMES_TCP);
	/* the control: they can be had when ours are closed */
	names_close(&box);
	ck_assert_int_ne(in_box(takes_port, NULL), 0);
}
END_TEST

/* One process binds, another wants to reach what it should not have. */
static int
hijack(void *arg)
{
	const int	*which = arg;
	int		 fd = bound(*which, (unsigned int)*which % 4), got = 0;
	pid_t		 pid;

	CHECK(fd != -1);
	if ((pid = fork()) == 0) {
		struct to	t = { hijacks[*which].port == 53 ? NAMES :
				    SYNTH, hijacks[*which].port };

		if (hijacks[*which].type == SOCK_STREAM)
			(void)try_tcp(t.to, t.port, NULL);
		else
			(void)try_udp(t.to, t.port);
		_exit(0);
	}
	got = waits(fd, POLLIN, 200);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return got ? 77 : 0;
}

START_TEST(hijacker_gets_nothing)
{
	int	i = _i;

	/* the relay takes what is its; the names are closed meanwhile */
	if (hijacks[i].port == 53)
		names_close(&box);
	ck_assert_int_eq(in_box(hijack, &i), 0);
	if (hijacks[i].port != 53)
		ck_assert(waits(box.sock[NAMES_RELAY], POLLIN, 0));
	/* nor while there is no relay */
	names_close(&box);
	ck_assert_int_eq(in_box(hijack, &i), 0);
	/* the control: the rules are what keeps it from it */
	ck_assert_int_eq(world_box_result(world_insider(&w, box.netns,
	    probe_flush, NULL)), 0);
	ck_assert_int_eq(in_box(hijack, &i), 77);
}
END_TEST

/* Nobody is there, and that is seen at once. */
static int
nobody(void *arg)
{
	struct sockaddr_in	a = at(NAMES, 53);
	int			fd = socket(AF_INET, SOCK_DGRAM, 0);
	char			b;

	(void)arg;
	CHECK(try_tcp(SYNTH, 443, NULL) == ECONNREFUSED);
	CHECK(try_tcp(NAMES, 53, NULL) == ECONNREFUSED);
	CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(send(fd, "x", 1, 0) == 1);
	CHECK(waits(fd, POLLIN | POLLERR, SOON_MS));
	CHECK(recv(fd, &b, 1, 0) == -1 && errno == ECONNREFUSED);
	return 0;
}

START_TEST(nobody_serves)
{
	names_close(&box);
	ck_assert_int_eq(in_box(nobody, NULL), 0);
}
END_TEST

/* ---- too many ---------------------------------------------------------- */

#define MANY	3000
#define NAMES_BURST	500		/* as in netd.h */
#define NAMES_RATE	100

struct flood { int open, reset, waiting; long ms; };

static int	results[2];

/* As fast as it goes, to a relay that accepts nothing. */
static int
floods(void *arg)
{
	struct sockaddr_in	a = at(SYNTH, 443);
	struct rlimit		rl = { MANY + 64, MANY + 64 };
	struct flood		f = { 0, 0, 0, 0 };
	static struct pollfd	p[MANY];
	socklen_t		len = sizeof(int);
	long			t0 = ms();
	int			e, i;

	(void)arg;
	CHECK(setrlimit(RLIMIT_NOFILE, &rl) == 0);
	for (i = 0; i < MANY; i++) {
		p[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		p[i].events = POLLOUT;
		CHECK(p[i].fd != -1);
		(void)connect(p[i].fd, (struct sockaddr *)&a, sizeof(a));
	}
	f.ms = ms() - t0;
	(void)poll(p, MANY, 0);
	for (i = 0; i < MANY; i++) {
		if (p[i].revents == 0) {
			f.waiting++;
			continue;
		}
		(void)getsockopt(p[i].fd, SOL_SOCKET, SO_ERROR, &e, &len);
		f.open += e == 0;
		f.reset += e == ECONNREFUSED;
	}
	CHECK(write(results[1], &f, sizeof(f)) == sizeof(f));
	return 0;
}

START_TEST(flood_is_reset)
{
	struct msg_net_status_is	s;
	struct flood			f;
	int				most;

	ck_assert_int_eq(pipe(results), 0);
	ck_assert_int_eq(in_box(floods, NULL), 0);
	ck_assert_int_eq(read(results[0], &f, sizeof(f)), sizeof(f));
	printf("flood: %d open, %d wait, %d reset, %ld ms\n", f.open,
	    f.waiting, f.reset, f.ms);
	/* what may wait in the queue, and what the limit lets begin */
	most = (int)(1000 + 200 * (f.ms + 1000) / 1000);
	ck_assert_int_eq(f.open + f.waiting + f.reset, MANY);
	ck_assert_int_ge(f.open, 512);
	ck_assert_int_le(f.open, 514);
	ck_assert_int_le(f.open + f.waiting, most);
	s = status();
	ck_assert_uint_ge(s.limited, (uint64_t)f.reset);
	ck_assert_uint_le(s.connections, (uint64_t)most);
}
END_TEST

static int
many_names(void *arg)
{
	struct sockaddr_in	a = at(NAMES, 53);
	int			fd = socket(AF_INET, SOCK_DGRAM, 0), i;

	(void)arg;
	for (i = 0; i < MANY; i++)
		(void)sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a,
		    sizeof(a));
	return 0;
}

START_TEST(names_are_limited)
{
	struct msg_net_status_is	s;
	long				t0 = ms();

	ck_assert_int_eq(in_box(many_names, NULL), 0);
	s = status();
	ck_assert_uint_ge(s.names, NAMES_BURST);
	ck_assert_uint_le(s.names, (uint64_t)(NAMES_BURST +
	    NAMES_RATE * (ms() - t0 + 1000) / 1000));
	ck_assert_uint_eq(s.names + s.limited, MANY);
}
END_TEST

/* ---- lives and deaths -------------------------------------------------- */

/* Bound, or beside it: in the gap between two sets of daemons. */
static int
squats(void *arg)
{
	const int	*ctl = arg;
	int		 fd = bound(4, 0);
	char		 b = 'r';

	CHECK(fd != -1);
	CHECK(write(*ctl, &b, 1) == 1);
	CHECK(waits(*ctl, POLLIN, 60000));
	CHECK(!waits(fd, POLLIN, 0));
	return 0;
}

static uint32_t
adopts(void)
{
	struct msg_net_adopt	q = { .id = ID1, .open = 1,
				    .network = NETWORK_ALLOWLIST };
	uint32_t		rid;

	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(box.netns, F_DUPFD_CLOEXEC, 0), &rid), 0);
	return rid;
}

static void
adopted(uint32_t rid)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(m.body.net_opened.network, NETWORK_ALLOWLIST);
}

/* That its list is another: it has to be served for that. */
static uint32_t
ask_list(void)
{
	struct msg_net_change	q = { .id = ID1,
				    .network = NETWORK_ALLOWLIST };
	uint32_t		rid;

	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_CHANGE, &q, -1, &rid), 0);
	return rid;
}

/* Connections linger, and the ports are ours again all the same. */
START_TEST(again_after_restart)
{
	uint32_t	adopt, rid[NAMES_SOCKS];
	pid_t		pid;

	talk(SYNTH, 443, NAMES_RELAY);	/* which we close: TIME_WAIT */
	talk(NAMES, 53, NAMES_TCP);
	world_kill(&w);
	names_close(&box);
	ck_assert_int_eq(in_box(nobody, NULL), 0);
	world_start(&w);
	adopt = adopts();
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	adopted(adopt);
	talk(SYNTH, 443, NAMES_RELAY);
	talk(NAMES, 53, NAMES_TCP);
	pid = world_box(box.netns, asks, NULL);
	serve_names();
	ck_assert_int_eq(world_box_result(pid), 0);
	ck_assert_uint_eq(status().uplink, 1);
}
END_TEST

/* Who holds the port gets nothing, and has no names until it lets go. */
START_TEST(squatted_in_the_gap)
{
	uint32_t	adopt, change, rid[NAMES_SOCKS];
	struct msg	m;
	int		i, sv[2];
	pid_t		pid;
	long		t0;
	char		b;

	world_kill(&w);
	names_close(&box);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	pid = world_box(box.netns, squats, &sv[1]);
	ck_assert_int_eq(read(sv[0], &b, 1), 1);
	world_start(&w);
	t0 = ms();
	adopt = adopts();
	adopted(adopt);
	/* its set waits for no box that wants to be without */
	ck_assert_int_lt(ms() - t0, 2000);
	ck_assert_uint_eq(status().uplink, 0);
	ck_assert_uint_eq(status().state, 1);
	ck_assert(daemon_logged(w.log, "port 53 (UDP) is held by a program in "
	    "the sandbox"));
	/* who asks for it is told why it cannot be */
	change = ask_list();
	ck_assert(waits(w.apid.fd, POLLIN, 15000));
	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_ERROR);
	ck_assert_uint_eq(m.rid, change);
	ck_assert_uint_eq(m.body.error.code, CODE_BAD_TRANSITION);
	ck_assert_str_eq(m.body.error.detail, "its way out: port 53 (UDP) is "
	    "held by a program in the sandbox");
	ck_assert_int_eq(in_box(nobody, NULL), 0);
	ck_assert_int_eq(write(sv[0], "g", 1), 1);
	ck_assert_int_eq(world_box_result(pid), 0);
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	for (i = 0; status().uplink == 0; i++) {
		ck_assert_int_lt(i, 1000);
		(void)poll(NULL, 0, 10);
	}
	talk(SYNTH, 443, NAMES_RELAY);
	ck_assert(daemon_logged(w.log, "has a way out again"));
	close(sv[0]);
	close(sv[1]);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("allow_net");
	TCase	*t = tcase_create("allow_net");
	SRunner	*r;
	int	 failed;

	if (geteuid() != 0 || !world_netfilter()) {
		printf("needs root and netfilter\n");
		return 77;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, arrives);
	tcase_add_test(t, from_other_addresses);
	tcase_add_test(t, not_direct);
	tcase_add_test(t, refused_and_told);
	tcase_add_test(t, udp_fails_at_once);
	tcase_add_test(t, ports_are_ours);
	tcase_add_loop_test(t, hijacker_gets_nothing, 0, NHIJACKS);
	tcase_add_test(t, nobody_serves);
	tcase_add_test(t, flood_is_reset);
	tcase_add_test(t, names_are_limited);
	tcase_add_test(t, again_after_restart);
	tcase_add_test(t, squatted_in_the_gap);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
