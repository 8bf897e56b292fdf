/*
 * ns_test.c: the name service of a box, over real sockets: by hand, and asked
 * by the C library.  The test is box.c, the clock, and says how long idle is.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/nameser.h>
#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../proxyd/proxyd.h"
#include "ulid.h"

#define RATE	100
#define BURST	500
#define ASKS	64
#define CLIENTS	8
#define WAIT_MS	5000

static struct event_base	*base;
static struct box		 box;
static struct sockaddr_in	 at;		/* of the service */
static uint64_t			 clock_ms, clock_step;
static long			 idle_ms;	/* 0: as it is */
static int			 client;	/* UDP, connected */

/* ---- in place of the others --------------------------------------------- */

uint64_t	__wrap_mono_ms(void);
int		__real_event_add(struct event *, const struct timeval *);
int		__wrap_event_add(struct event *, const struct timeval *);

uint64_t
__wrap_mono_ms(void)
{
	return clock_ms += clock_step;
}

int
__wrap_event_add(struct event *ev, const struct timeval *tv)
{
	struct timeval	soon = { 0, idle_ms * 1000 };

	if (tv != NULL && idle_ms > 0) {
		ck_assert_int_eq(tv->tv_sec, 10);
		tv = &soon;
	}
	return __real_event_add(ev, tv);
}

int		__real_accept4(int, struct sockaddr *, socklen_t *, int);
int		__wrap_accept4(int, struct sockaddr *, socklen_t *, int);
void		__wrap_log_warn(const char *, ...)
		    __attribute__((format(printf, 1, 2)));

static int		no_accept;	/* there is no descriptor */
static unsigned int	naccepts, nwarned;

int
__wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	if (!no_accept)
		return __real_accept4(fd, sa, len, flags);
	naccepts++;
	errno = EMFILE;
	return -1;
}

void
__wrap_log_warn(const char *fmt, ...)
{
	(void)fmt;
	nwarned++;
}

enum answers { NOW, LATER, NEVER };

static enum answers	answers;
static int		used_up;
static struct {
	void	(*cb)(void *, struct named *);
	void	 *arg;
	char	  name[ALLOW_NAME];
} later[2 * ASKS];
static unsigned int	nlater;

void
box_name(struct box *b, const char *name, void (*cb)(void *, struct named *),
    void *arg)
{
	ck_assert_ptr_eq(b, &box);
	ck_assert_int_ne(allow_find(b->allow, name, 0), ALLOW_NOT);
	if (answers == LATER) {
		ck_assert_uint_lt(nlater, 2 * ASKS);
		later[nlater].cb = cb;
		later[nlater].arg = arg;
		memcpy(later[nlater++].name, name, strlen(name) + 1);
		return;
	}
	cb(arg, answers == NOW ? names_give(b->names, name) : NULL);
}

int
box_used_up(const struct box *b)
{
	ck_assert_ptr_eq(b, &box);
	return used_up;
}

/* All that wait. */
static void
now(int there_are)
{
	unsigned int	i;

	for (i = 0; i < nlater; i++)
		later[i].cb(later[i].arg, there_are ?
		    names_give(box.names, later[i].name) : NULL);
	nlater = 0;
}

static struct {
	enum denied_rule rule;
	char		 name[ALLOW_NAME];
	int		 proto;
	unsigned int	 port;
} last;
static unsigned int	ndenied;

void
box_denied(struct box *b, enum denied_rule rule, const char *name,
    const uint8_t *addr, int v6, int proto, unsigned int port)
{
	ck_assert_ptr_eq(b, &box);
	/* of a name that, or the service itself: 198.19.255.3 */
	ck_assert_int_eq(addr == NULL, name[0] != '\0');
	if (addr != NULL)
		ck_assert_mem_eq(addr, "\306\023\377\003", 4);
	ck_assert_int_eq(v6, 0);
	last.rule = rule;
	memcpy(last.name, name, strlen(name) + 1);
	last.proto = proto;
	last.port = port;
	ndenied++;
}

static void
denied(unsigned int n, enum denied_rule rule, const char *name, int proto)
{
	ck_assert_uint_eq(ndenied, n);
	ck_assert_uint_eq(last.rule, rule);
	ck_assert_str_eq(last.name, name);
	ck_assert_int_eq(last.proto, proto);
	ck_assert_uint_eq(last.port, 0);
}

/* ---- sockets ------------------------------------------------------------ */

static int
sock(int type)
{
	int	fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_ne(fd, -1);
	return fd;
}

static void
list(const char *a, const char *b)
{
	allow_free(box.allow);
	box.allow = allow_new();
	ck_assert_int_eq(allow_add(box.allow, a), 0);
	if (b != NULL)
		ck_assert_int_eq(allow_add(box.allow, b), 0);
	allow_done(box.allow);
}

/* The kernel holds back little, so that a test comes to the end of it. */
static void
hold_little(int fd)
{
	int	few = 4096;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few,
	    sizeof(few)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few,
	    sizeof(few)), 0);
}

/* Both of the same port, which is free for TCP, too.  0 or -1. */
static int
service(int udp, int tcp)
{
	socklen_t	len = sizeof(at);

	hold_little(tcp);
	memset(&at, 0, sizeof(at));
	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(udp, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(getsockname(udp, (struct sockaddr *)&at, &len), 0);
	return bind(tcp, (struct sockaddr *)&at, len) == -1 ? -1 :
	    listen(tcp, 64);
}

static void
setup(void)
{
	socklen_t	len = sizeof(at);
	int		udp = sock(SOCK_DGRAM), tcp = sock(SOCK_STREAM), i;

	for (i = 0; service(udp, tcp) == -1; i++) {
		ck_assert_int_lt(i, 100);
		(void)close(udp);
		(void)close(tcp);
		udp = sock(SOCK_DGRAM);
		tcp = sock(SOCK_STREAM);
	}
	ck_assert_ptr_nonnull(base = event_base_new());
	clock_ms = 1000000;
	box.names = names_new();
	names_room(box.names, 0x102, 1000);
	list("deb.debian.org", "*.npmjs.org:8443");
	box.ns = ns_new(base, &box, udp, tcp);
	client = sock(SOCK_DGRAM);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&at, len), 0);
}

static void
teardown(void)
{
	ns_free(box.ns);
	box.ns = NULL;
	now(1);
	names_free(box.names);
	allow_free(box.allow);
	box.allow = NULL;
	answers = NOW;
	used_up = 0;
	no_accept = 0;
	ndenied = 0;
	idle_ms = 0;
	clock_step = 0;
	event_base_free(base);
	(void)close(client);
}

static void
turn(void)
{
	ck_assert_int_ne(event_base_loop(base, EVLOOP_NONBLOCK), -1);
}

/* Until something can be read from fd; 0: nothing comes. */
static int
wait_for(int fd, int ms)
{
	struct pollfd	p = { .fd = fd, .events = POLLIN };
	int		i;

	for (i = 0; i <= ms; i++) {
		turn();
		if (poll(&p, 1, i > 20 ? 1 : 0) == 1)
			return 1;
	}
	return 0;
}

/* ---- questions ---------------------------------------------------------- */

static uint8_t	query[600], got[600];
static size_t	nquery, ngot;

static void
make(unsigned int id, const char *name, int type)
{
	struct __res_state	st = { 0 };
	int			n;

	ck_assert_int_eq(res_ninit(&st), 0);
	n = res_nmkquery(&st, ns_o_query, name, ns_c_in, type, NULL, 0, NULL,
	    query, sizeof(query));
	ck_assert_int_gt(n, 0);
	nquery = (size_t)n;
	query[0] = (uint8_t)(id >> 8);
	query[1] = (uint8_t)id;
	res_nclose(&st);
}

/* What is in got: an answer to it; addr: 198.18.x.y or 0. */
static void
is_answer(unsigned int id, enum dns_rcode rcode, unsigned int number)
{
	ns_msg	m;
	ns_rr	rr;

	ck_assert_int_eq(ns_initparse(got, (int)ngot, &m), 0);
	ck_assert_uint_eq(ns_msg_id(m), id);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_rcode), (int)rcode);
	ck_assert_uint_eq(ns_msg_count(m, ns_s_an), number != 0);
	if (number == 0)
		return;
	ck_assert_int_eq(ns_parserr(&m, ns_s_an, 0, &rr), 0);
	ck_assert_uint_eq(ns_rr_rdlen(rr), 4);
	ck_assert_uint_eq(ns_get32(ns_rr_rdata(rr)), NAMES_NET | number);
}

static void
by_udp(void)
{
	ssize_t	n;

	ck_assert_int_eq(send(client, query, nquery, 0), (ssize_t)nquery);
	ck_assert(wait_for(client, WAIT_MS));
	n = recv(client, got, sizeof(got), 0);
	ck_assert_int_gt(n, 0);
	ngot = (size_t)n;
}

static int
connect_tcp(void)
{
	int	fd = sock(SOCK_STREAM);

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == -1)
		ck_assert_int_eq(errno, EINPROGRESS);
	turn();
	return fd;
}

/* n bytes from fd into got at its begin. */
static void
take(int fd, size_t n)
{
	ssize_t	r;

	for (ngot = 0; ngot < n; ngot += (size_t)r) {
		ck_assert(wait_for(fd, WAIT_MS));
		r = recv(fd, got + ngot, n - ngot, 0);
		ck_assert_int_gt(r, 0);
	}
}

static void
take_answer(int fd)
{
	take(fd, 2);
	take(fd, (size_t)got[0] << 8 | got[1]);
}

/* With its length before it, into ret. */
static size_t
framed(uint8_t *ret)
{
	ret[0] = (uint8_t)(nquery >> 8);
	ret[1] = (uint8_t)nquery;
	memcpy(ret + 2, query, nquery);
	return 2 + nquery;
}

static void
say(int fd)
{
	uint8_t	buf[602];
	size_t	n = framed(buf);

	ck_assert_int_eq(send(fd, buf, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void
is_closed(int fd)
{
	uint8_t	c;
	ssize_t	n;

	ck_assert(wait_for(fd, WAIT_MS));
	n = recv(fd, &c, 1, 0);
	ck_assert(n == 0 || (n == -1 && errno == ECONNRESET));
	(void)close(fd);
}

static unsigned int	id = 1000;

static void
asked_udp(const char *name, int type, enum dns_rcode rcode,
    unsigned int number)
{
	make(++id, name, type);
	by_udp();
	is_answer(id, rcode, number);
}

static void
asked_tcp(const char *name, int type, enum dns_rcode rcode,
    unsigned int number)
{
	int	fd = connect_tcp();

	make(++id, name, type);
	say(fd);
	take_answer(fd);
	is_answer(id, rcode, number);
	(void)close(fd);
	turn();
}

static void
asked(const char *name, int type, enum dns_rcode rcode, unsigned int number)
{
	asked_udp(name, type, rcode, number);
	asked_tcp(name, type, rcode, number);
}

/* ---- answers ------------------------------------------------------------ */

START_TEST(approved)
{
	asked("deb.debian.org", ns_t_a, DNS_NOERROR, 0x102);
	asked("DEB.Debian.ORG", ns_t_a, DNS_NOERROR, 0x102);
	asked("registry.npmjs.org", ns_t_a, DNS_NOERROR, 0x103);
	asked("a.b.npmjs.org", ns_t_a, DNS_NOERROR, 0x104);
	asked("deb.debian.org", ns_t_aaaa, DNS_NOERROR, 0);
	asked("deb.debian.org", ns_t_mx, DNS_NOERROR, 0);
	asked("deb.debian.org", ns_t_txt, DNS_NOERROR, 0);
	asked("deb.debian.org", 65, DNS_NOERROR, 0);
	/* what has not been asked for has no address */
	asked("c.npmjs.org", ns_t_aaaa, DNS_NOERROR, 0);
	ck_assert_ptr_null(names_find(box.names, "c.npmjs.org"));
	ck_assert_uint_eq(ndenied, 0);
}
END_TEST

START_TEST(refused)
{
	static const char *const	no[] = { "evil.example", "npmjs.org",
	    "debian.org", "x.deb.debian.org", "deb.debian.org.lan",
	    "localhost", "xdeb.debian.org", "1.0.0.127.in-addr.arpa",
	    "127.0.0.1", "-.npmjs.org" };
	static const int	types[] = { ns_t_a, ns_t_aaaa, ns_t_txt };
	unsigned int		i;

	for (i = 0; i < 3; i++) {
		asked_udp(no[_i], types[i], DNS_NXDOMAIN, 0);
		denied(2 * i + 1, DENIED_NAME, no[_i], IPPROTO_UDP);
		asked_tcp(no[_i], types[i], DNS_NXDOMAIN, 0);
		denied(2 * i + 2, DENIED_NAME, no[_i], IPPROTO_TCP);
	}
	ck_assert_ptr_null(names_next(box.names, ""));
}
END_TEST

START_TEST(not_read_yet)
{
	allow_free(box.allow);
	box.allow = NULL;
	asked("deb.debian.org", ns_t_a, DNS_SERVFAIL, 0);
	asked("evil.example", ns_t_a, DNS_SERVFAIL, 0);
	ck_assert_uint_eq(ndenied, 0);
}
END_TEST

/* None is left: a denial.  None was given: it asks again. */
START_TEST(exhausted)
{
	answers = NEVER;
	asked("deb.debian.org", ns_t_a, DNS_SERVFAIL, 0);
	ck_assert_uint_eq(ndenied, 0);
	used_up = 1;
	asked_tcp("deb.debian.org", ns_t_a, DNS_SERVFAIL, 0);
	denied(1, DENIED_EXHAUSTED, "deb.debian.org", IPPROTO_TCP);
	asked_udp("deb.debian.org", ns_t_a, DNS_SERVFAIL, 0);
	denied(2, DENIED_EXHAUSTED, "deb.debian.org", IPPROTO_UDP);
}
END_TEST

/* What is broken is told so, what is no query is not answered. */
START_TEST(broken)
{
	make(7, "deb.debian.org", ns_t_a);
	query[5] = 2;
	by_udp();
	is_answer(7, DNS_FORMERR, 0);
	query[2] |= 0x10;
	by_udp();
	ck_assert_uint_eq(ngot, 12);
	ck_assert_uint_eq(got[3] & 15, DNS_NOTIMP);
	make(7, "deb.debian.org", ns_t_a);
	memset(query + nquery, 0, sizeof(query) - nquery);
	nquery = 513;
	by_udp();
	is_answer(7, DNS_FORMERR, 0);
	make(7, "deb.debian.org", ns_t_a);
	query[2] |= 0x80;
	ck_assert_int_gt(send(client, query, nquery, 0), 0);
	ck_assert_int_gt(send(client, query, 11, 0), 0);
	ck_assert_int_eq(send(client, query, 0, 0), 0);
	ck_assert(!wait_for(client, 30));
	make(8, "deb.debian.org", ns_t_a);
	by_udp();
	is_answer(8, DNS_NOERROR, 0x102);
	ck_assert_uint_eq(ndenied, 0);
}
END_TEST

/* ---- connections -------------------------------------------------------- */

START_TEST(one_after_another)
{
	uint8_t	all[400];
	size_t	n = 0, i;
	int	fd = connect_tcp();

	for (i = 0; i < 5; i++) {
		make(20 + (unsigned int)i, i % 2 ? "evil.example" :
		    "deb.debian.org", ns_t_a);
		n += framed(all + n);
	}
	ck_assert_int_eq(send(fd, all, n, 0), (ssize_t)n);
	for (i = 0; i < 5; i++) {
		take_answer(fd);
		is_answer(20 + (unsigned int)i, i % 2 ? DNS_NXDOMAIN :
		    DNS_NOERROR, i % 2 ? 0 : 0x102);
	}
	for (i = 0; i < n; i++) {	/* byte by byte */
		ck_assert_int_eq(send(fd, all + i, 1, 0), 1);
		turn();
	}
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0); /* before it reads */
	for (i = 0; i < 5; i++) {
		take_answer(fd);
		is_answer(20 + (unsigned int)i, i % 2 ? DNS_NXDOMAIN :
		    DNS_NOERROR, i % 2 ? 0 : 0x102);
	}
	is_closed(fd);
}
END_TEST

START_TEST(odd_lengths)
{
	static const uint8_t	length[][2] = { { 0, 0 }, { 0, 1 }, { 0, 11 },
				    { 2, 1 }, { 255, 255 } };
	uint8_t			buf[16] = { 0 };
	int			fd = connect_tcp();

	memcpy(buf, length[_i], 2);
	ck_assert_int_eq(send(fd, buf, sizeof(buf), 0), sizeof(buf));
	is_closed(fd);
	fd = connect_tcp();			/* an answer is no question */
	make(9, "deb.debian.org", ns_t_a);
	query[2] |= 0x80;
	say(fd);
	is_closed(fd);
}
END_TEST

START_TEST(too_many)
{
	int	fd[CLIENTS], one, i;

	for (i = 0; i < CLIENTS; i++)
		fd[i] = connect_tcp();
	make(1, "deb.debian.org", ns_t_a);
	for (i = 0; i < CLIENTS; i++) {
		say(fd[i]);
		take_answer(fd[i]);
	}
	is_closed(connect_tcp());
	is_closed(connect_tcp());
	(void)close(fd[3]);
	turn();
	turn();
	one = connect_tcp();
	say(one);
	take_answer(one);
	is_answer(1, DNS_NOERROR, 0x102);
	for (i = 0; i < CLIENTS; i++)
		if (i != 3) {
			say(fd[i]);
			take_answer(fd[i]);
			(void)close(fd[i]);
		}
	(void)close(one);
}
END_TEST

/* Told once, until one is taken. */
START_TEST(no_descriptors)
{
	unsigned int	i, k;
	int		fd;

	nwarned = 0;
	for (i = 1; i <= 2; i++) {
		no_accept = 1;
		naccepts = 0;
		fd = connect_tcp();
		for (k = 0; k < 100 && naccepts < 3; k++)
			ck_assert_int_ne(event_base_loop(base, EVLOOP_ONCE),
			    -1);
		ck_assert_uint_eq(naccepts, 3);
		ck_assert_uint_eq(nwarned, i);
		no_accept = 0;
		make(i, "deb.debian.org", ns_t_a);
		say(fd);
		take_answer(fd);
		is_answer(i, DNS_NOERROR, 0x102);
		(void)close(fd);
	}
}
END_TEST

/* From one answer to the next; bytes alone are no progress. */
START_TEST(idle)
{
	uint8_t	buf[602];
	size_t	n, i;
	int	fd;

	idle_ms = 100;
	is_closed(connect_tcp());
	fd = connect_tcp();
	make(1, "deb.debian.org", ns_t_a);
	n = framed(buf);
	for (i = 0; i < n; i++) {
		if (send(fd, buf + i, 1, MSG_NOSIGNAL) == -1)
			break;
		if (wait_for(fd, 40))
			break;
	}
	ck_assert_uint_lt(i, n - 5);
	is_closed(fd);
}
END_TEST

/* Who does not read is not read from, and nothing is lost. */
START_TEST(reads_nothing)
{
	uint8_t	buf[602];
	size_t	n, sent = 0, most = 40000, off = 0, i;
	ssize_t	r;
	int	fd = sock(SOCK_STREAM);

	hold_little(fd);
	ck_assert(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ||
	    errno == EINPROGRESS);
	turn();
	make(1, "deb.debian.org", ns_t_a);
	n = framed(buf);
	clock_step = 10;		/* within the limit */
	for (i = 0; i < 50 && sent < most;) {
		r = send(fd, buf + off, n - off, MSG_NOSIGNAL);
		if (r > 0 && (off += (size_t)r) == n) {
			off = 0;
			sent++;
		} else if (r == -1) {
			ck_assert_int_eq(errno, EAGAIN);
			i++;
		}
		turn();
	}
	ck_assert_uint_lt(sent, most);	/* it came to a halt */
	ck_assert_uint_gt(sent, 100);
	for (i = 0; i < sent; i++) {
		take_answer(fd);
		is_answer(1, DNS_NOERROR, 0x102);
	}
	(void)close(fd);
}
END_TEST

/* ---- what waits --------------------------------------------------------- */

START_TEST(later_on)
{
	int		fd = connect_tcp();
	unsigned int	i;

	answers = LATER;
	make(5, "deb.debian.org", ns_t_a);
	say(fd);
	ck_assert_int_gt(send(client, query, nquery, 0), 0);
	make(6, "evil.example", ns_t_a);	/* behind it */
	say(fd);
	ck_assert(!wait_for(fd, 20));
	ck_assert(!wait_for(client, 0));
	ck_assert_uint_eq(nlater, 2);
	by_udp();				/* not behind it */
	is_answer(6, DNS_NXDOMAIN, 0);
	now(1);
	ck_assert(wait_for(client, WAIT_MS));
	ngot = (size_t)recv(client, got, sizeof(got), 0);
	is_answer(5, DNS_NOERROR, 0x102);
	for (i = 5; i <= 6; i++) {
		take_answer(fd);
		is_answer(i, i == 5 ? DNS_NOERROR : DNS_NXDOMAIN,
		    i == 5 ? 0x102 : 0);
	}
	(void)close(fd);
}
END_TEST

START_TEST(too_many_wait)
{
	unsigned int	i;
	int		fd = connect_tcp();

	answers = LATER;
	for (i = 0; i < ASKS + 3; i++) {
		make(i, "deb.debian.org", ns_t_a);
		ck_assert_int_gt(send(client, query, nquery, 0), 0);
		turn();
	}
	ck_assert_uint_eq(nlater, ASKS);
	say(fd);
	take_answer(fd);
	is_answer(ASKS + 2, DNS_SERVFAIL, 0);
	now(1);
	for (i = 0; i < ASKS; i++) {
		ck_assert(wait_for(client, WAIT_MS));
		ngot = (size_t)recv(client, got, sizeof(got), 0);
		is_answer(i, DNS_NOERROR, 0x102);
	}
	ck_assert(!wait_for(client, 20));
	say(fd);
	turn();
	turn();
	ck_assert_uint_eq(nlater, 1);
	now(1);
	take_answer(fd);
	is_answer(ASKS + 2, DNS_NOERROR, 0x102);
	(void)close(fd);
}
END_TEST

START_TEST(list_changes)
{
	answers = LATER;
	make(1, "deb.debian.org", ns_t_a);
	ck_assert_int_gt(send(client, query, nquery, 0), 0);
	turn();
	list("other.example", NULL);
	now(1);
	ck_assert(wait_for(client, WAIT_MS));
	ngot = (size_t)recv(client, got, sizeof(got), 0);
	is_answer(1, DNS_NXDOMAIN, 0);
	denied(1, DENIED_NAME, "deb.debian.org", IPPROTO_UDP);
}
END_TEST

/* Answers for connections that have ended: idle, and by who asked. */
START_TEST(nobody_waits)
{
	int	fd;

	answers = LATER;
	idle_ms = 200;
	fd = connect_tcp();
	make(1, "deb.debian.org", ns_t_a);
	say(fd);
	is_closed(fd);
	fd = connect_tcp();
	say(fd);
	ck_assert_int_eq(shutdown(fd, SHUT_RDWR), 0);
	is_closed(fd);
	ck_assert_uint_eq(nlater, 2);
	now(1);
	answers = NOW;
	idle_ms = 0;
	asked("deb.debian.org", ns_t_a, DNS_NOERROR, 0x102);
}
END_TEST

/* The service ends, with connections and questions. */
START_TEST(service_ends)
{
	int	waits = connect_tcp(), sleeps = connect_tcp();

	answers = LATER;
	make(1, "deb.debian.org", ns_t_a);
	say(waits);
	ck_assert_int_gt(send(client, query, nquery, 0), 0);
	turn();
	turn();
	ck_assert_uint_eq(nlater, 2);
	ns_free(box.ns);
	box.ns = NULL;
	is_closed(waits);
	is_closed(sleeps);
	now(1);				/* for nobody */
	ck_assert_int_eq(recv(client, got, sizeof(got), 0), -1);
	ns_free(NULL);
}
END_TEST

/* ---- limits ------------------------------------------------------------- */

/* How many of n questions are answered. */
static unsigned int
flood(unsigned int n)
{
	unsigned int	i, answered = 0;

	make(1, "deb.debian.org", ns_t_a);
	for (i = 0; i < n; i++) {
		ck_assert_int_gt(send(client, query, nquery, 0), 0);
		turn();
		answered += (unsigned int)(recv(client, got, sizeof(got),
		    0) > 0);
	}
	return answered;
}

START_TEST(rate)
{
	int	fd = connect_tcp();

	ck_assert_uint_eq(flood(BURST), BURST);
	ck_assert_uint_eq(ndenied, 0);
	ck_assert_uint_eq(flood(50), 0);
	ck_assert_uint_eq(ndenied, 1);
	ck_assert_uint_eq(last.rule, DENIED_LIMITED);
	ck_assert_int_eq(last.proto, IPPROTO_UDP);
	ck_assert_uint_eq(last.port, 53);
	say(fd);
	is_closed(fd);
	clock_ms += 999;
	ck_assert_uint_eq(flood(RATE + 50), RATE - 1);
	ck_assert_uint_eq(ndenied, 1);	/* within the second */
	clock_ms += 1;
	ck_assert_uint_eq(flood(50), 1);
	ck_assert_uint_eq(ndenied, 2);
	clock_ms += 3600000;
	ck_assert_uint_eq(flood(BURST + 50), BURST);
	ck_assert_uint_eq(ndenied, 3);
	clock_ms += 1000;
	(void)flood(RATE);
	fd = connect_tcp();
	say(fd);
	is_closed(fd);
	ck_assert_uint_eq(ndenied, 4);
	ck_assert_int_eq(last.proto, IPPROTO_TCP);
}
END_TEST

/* A flood leaves the loop to others. */
START_TEST(turns)
{
	unsigned int	i, answered = 0;

	make(1, "deb.debian.org", ns_t_a);
	for (i = 0; i < 100; i++)
		ck_assert_int_gt(send(client, query, nquery, 0), 0);
	ck_assert_int_ne(event_base_loop(base, EVLOOP_ONCE |
	    EVLOOP_NONBLOCK), -1);
	while (answered < 100 && recv(client, got, sizeof(got), 0) > 0)
		answered++;
	ck_assert_uint_eq(answered, 32);
}
END_TEST

/* ---- the C library ------------------------------------------------------ */

/* 0: as it should be. */
static int
looks_up(struct __res_state *st, const char *name, int type, int want_herrno,
    uint32_t want)
{
	uint8_t	a[1024];
	ns_msg	m;
	ns_rr	rr;
	int	n = res_nquery(st, name, ns_c_in, type, a, sizeof(a));

	if (n == -1)
		return st->res_h_errno != want_herrno;
	if (want_herrno != 0 || ns_initparse(a, n, &m) == -1 ||
	    ns_parserr(&m, ns_s_an, 0, &rr) == -1)
		return 1;
	return ns_get32(ns_rr_rdata(rr)) != want;
}

/* Exits with the number of what went wrong. */
static void
library(unsigned long options)
{
	struct __res_state	st = { 0 };
	int			i;

	if (res_ninit(&st) == -1)
		_exit(100);
	st.nscount = 1;
	st.nsaddr_list[0] = at;
	st.options |= options;
	st.retry = 1;
	st.retrans = 2;
	for (i = 0; i < 3; i++) {
		if (looks_up(&st, "deb.debian.org", ns_t_a, 0, 0xc6120102))
			_exit(1);
		if (looks_up(&st, "deb.debian.org", ns_t_aaaa, NO_DATA, 0))
			_exit(2);
		if (looks_up(&st, "Registry.NPMjs.org", ns_t_a, 0,
		    0xc6120103))
			_exit(3);
		if (looks_up(&st, "evil.example", ns_t_a, HOST_NOT_FOUND, 0))
			_exit(4);
		if (looks_up(&st, "evil.example", ns_t_aaaa, HOST_NOT_FOUND,
		    0))
			_exit(5);
	}
	_exit(0);
}

START_TEST(c_library)
{
	static const unsigned long	options[] = { 0, RES_USE_EDNS0,
	    RES_USEVC, RES_USEVC | RES_STAYOPEN,
	    RES_USE_EDNS0 | RES_USE_DNSSEC };
	int				status = 0, i;
	pid_t				pid = fork(), over = 0;

	ck_assert_int_ne(pid, -1);
	if (pid == 0)
		library(options[_i]);
	for (i = 0; i < WAIT_MS * 5 && over == 0; i++) {
		turn();
		(void)poll(NULL, 0, 1);
		over = waitpid(pid, &status, WNOHANG);
	}
	ck_assert_int_eq(over, pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_uint_eq(ndenied, 6);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("ns");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, approved);
	tcase_add_loop_test(t, refused, 0, 10);
	tcase_add_test(t, not_read_yet);
	tcase_add_test(t, exhausted);
	tcase_add_test(t, broken);
	tcase_add_test(t, one_after_another);
	tcase_add_loop_test(t, odd_lengths, 0, 5);
	tcase_add_test(t, too_many);
	tcase_add_test(t, no_descriptors);
	tcase_add_test(t, idle);
	tcase_add_test(t, reads_nothing);
	tcase_add_test(t, later_on);
	tcase_add_test(t, too_many_wait);
	tcase_add_test(t, list_changes);
	tcase_add_test(t, nobody_waits);
	tcase_add_test(t, service_ends);
	tcase_add_test(t, rate);
	tcase_add_test(t, turns);
	tcase_add_loop_test(t, c_library, 0, 5);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
