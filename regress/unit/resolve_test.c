/*
 * resolve_test.c: names to addresses, by c-ares and a name server of the
 * test's own, in a network namespace whose addresses come and go.
 *
 * The server is in the same loop.  What it answers to a name, in A and AAAA,
 * stands in the table below; files of the host's say other things.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ares.h>
#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd.h"
#include "xmalloc.h"

#define MANY		1000
#define LATE_MS		200		/* in place of two seconds */
#define QUERIES		8192

static struct event_base	*base;
static int			 udp = -1, tcp = -1;
static unsigned int		 by_udp, by_tcp, drop;
static char			 odd[ALLOW_NAME];	/* not of the table */

/* ---- the table -------------------------------------------------------- */

enum how { PLAIN, CHAIN, LOOP, NO_NAME, FAILS, EMPTY, JUNK, SHORT,
    NEVER, SECOND, CUT, OTHER_ID, OTHER_NAME, OTHER_OWNER };

static const struct name {
	const char	*name;
	enum how	 how;
	const char	*v4, *v6;		/* blanks between; or NULL */
	const char	*alias;			/* CHAIN: where it leads */
}	names[] = {
	{ "good.test", PLAIN, "203.0.113.1", "2001:db8::1", NULL },
	{ "four.test", PLAIN, "203.0.113.1 203.0.113.2", NULL, NULL },
	{ "six.test", PLAIN, NULL, "2001:db8::1 2001:db8::2", NULL },
	{ "mixed.test", PLAIN, "10.0.0.1 203.0.113.2 127.0.0.1 203.0.113.3",
	    "fd00::1 2001:db8::2 ::1 ::ffff:203.0.113.9", NULL },
	{ "sealed.test", PLAIN, "169.254.169.254 192.168.0.1", NULL, NULL },
	{ "sealed6.test", PLAIN, NULL, "fc00::7 fe80::1", NULL },
	{ "mapped.test", PLAIN, NULL, "::ffff:127.0.0.1 64:ff9b::10.0.0.1 "
	    "2002:a00:1::1 ::127.0.0.1", NULL },
	{ "host.test", PLAIN, "203.0.113.77", "2001:db8::77", NULL },
	{ "host4.test", PLAIN, "203.0.113.77 203.0.113.1", NULL, NULL },
	{ "net.test", PLAIN, "198.51.100.200", NULL, NULL },
	{ "many.test", CUT, "203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4 "
	    "203.0.113.5 203.0.113.6 203.0.113.7 203.0.113.8 203.0.113.9 "
	    "203.0.113.10 203.0.113.11 203.0.113.12", NULL, NULL },
	{ "chain.test", CHAIN, "203.0.113.5", NULL, "www.elsewhere.test" },
	{ "inside.test", CHAIN, "10.1.2.3", NULL, "intranet.elsewhere.test" },
	{ "loop.test", LOOP, NULL, NULL, "loop.test" },
	{ "nx.test", NO_NAME, NULL, NULL, NULL },
	{ "fail.test", FAILS, NULL, NULL, NULL },
	{ "empty.test", EMPTY, NULL, NULL, NULL },
	{ "junk.test", JUNK, NULL, NULL, NULL },
	{ "short.test", SHORT, "203.0.113.1", NULL, NULL },
	{ "never.test", NEVER, NULL, NULL, NULL },
	{ "second.test", SECOND, "203.0.113.6", NULL, NULL },
	{ "id.test", OTHER_ID, "203.0.113.1", NULL, NULL },
	{ "question.test", OTHER_NAME, "203.0.113.1", NULL, NULL },
	{ "owner.test", OTHER_OWNER, "203.0.113.1", NULL, NULL },
};

static const struct name *
name_of(const char *name)
{
	static const struct name	crowd = { "", PLAIN, "203.0.113.1",
					    "2001:db8::1", NULL };
	size_t				i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return &names[i];
	if (strncmp(name, "crowd", 5) != 0)
		(void)str_copy(odd, name, sizeof(odd));
	return &crowd;
}

/* ---- the name server -------------------------------------------------- */

struct out { uint8_t p[1400]; size_t n; };

static void
put(struct out *o, const void *p, size_t n)
{
	ck_assert_uint_le(o->n + n, sizeof(o->p));
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

static void
put16(struct out *o, unsigned int v)
{
	const uint8_t	b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(o, b, 2);
}

static size_t
put_name(struct out *o, const char *name)
{
	size_t	from = o->n, n;
	uint8_t	len;

	for (; *name != '\0'; name += n + (name[n] == '.')) {
		n = strcspn(name, ".");
		len = (uint8_t)n;
		put(o, &len, 1);
		put(o, name, n);
	}
	put(o, "", 1);
	return o->n - from;
}

/* A record of that owner; its data follow. */
static void
put_record(struct out *o, const char *owner, unsigned int type, size_t len)
{
	(void)put_name(o, owner);
	put16(o, type);
	put16(o, 1);
	put16(o, 0);
	put16(o, 5);			/* lives so long */
	put16(o, (unsigned int)len);
}

/* Of the addresses that the table has; how many. */
static unsigned int
put_addrs(struct out *o, const char *owner, const char *text, int v6)
{
	uint8_t		addr[16];
	char		one[64];
	unsigned int	n = 0;
	size_t		len;

	for (; text != NULL && *text != '\0'; n++) {
		len = strcspn(text, " ");
		(void)snprintf(one, sizeof(one), "%.*s", (int)len, text);
		ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, one,
		    addr), 1);
		put_record(o, owner, v6 ? ns_t_aaaa : ns_t_a, v6 ? 16 : 4);
		put(o, addr, v6 ? 16 : 4);
		text += len + (text[len] == ' ');
	}
	return n;
}

static unsigned int
put_alias(struct out *o, const char *owner, const char *alias)
{
	struct out	name = { .n = 0 };

	(void)put_name(&name, alias);
	put_record(o, owner, ns_t_cname, name.n);
	put(o, name.p, name.n);
	return 1;
}

/* The question, in text, and its type; -1: it is none. */
static int
question(const uint8_t *p, size_t n, char ret[ALLOW_NAME],
    unsigned int *ret_type)
{
	size_t	i = 12, len = 0;

	while (i < n && p[i] != 0 && i + 1 + p[i] < n) {
		if (len + p[i] + 2 > ALLOW_NAME)
			return -1;
		if (len > 0)
			ret[len++] = '.';
		memcpy(ret + len, p + i + 1, p[i]);
		len += p[i];
		i += 1U + p[i];
	}
	if (i + 5 > n)
		return -1;
	ret[len] = '\0';
	*ret_type = (unsigned int)(p[i + 1] << 8 | p[i + 2]);
	return 0;
}

/* What stands behind the question; how many records. */
static unsigned int
put_answers(struct out *o, const struct name *t, const char *asked, int v6)
{
	const char	*text = v6 ? t->v6 : t->v4, *owner = asked;
	unsigned int	 n = 0;

	if (t->how == CHAIN || t->how == LOOP) {
		n = put_alias(o, asked, t->how == LOOP ? t->alias :
		    "middle.elsewhere.test");
		if (t->how == CHAIN)
			n += put_alias(o, "middle.elsewhere.test", t->alias);
		owner = t->alias;
	} else if (t->how == OTHER_OWNER)
		owner = "somebody.else.test";
	return n + put_addrs(o, owner, text, v6);
}

/* What is answered to n bytes; 0: nothing. */
static size_t
answer(const uint8_t *p, size_t n, int is_tcp, struct out *o)
{
	const struct name	*t;
	char			 asked[ALLOW_NAME];
	unsigned int		 type = 0, rcode = 0, an = 0, flags = 0x8180;

	if (question(p, n, asked, &type) == -1)
		return 0;
	t = name_of(asked);
	by_udp += !is_tcp;
	by_tcp += is_tcp;
	if (drop > 0 || t->how == NEVER ||
	    (t->how == SECOND && by_udp <= 2)) {
		drop -= drop > 0;
		return 0;
	}
	rcode = t->how == NO_NAME ? 3 : t->how == FAILS ? 2 : 0;
	if (t->how == CUT && !is_tcp)
		flags |= 0x200;
	put16(o, (unsigned int)(p[0] << 8 | p[1]) ^ (t->how == OTHER_ID));
	put16(o, flags | rcode);
	put16(o, 1);
	put16(o, 0);			/* answers: below */
	put16(o, 0);
	put16(o, 0);
	(void)put_name(o, t->how == OTHER_NAME ? "other.test" : asked);
	put16(o, type);
	put16(o, 1);
	if (type == ns_t_a || type == ns_t_aaaa)
		an = put_answers(o, t, asked, type == ns_t_aaaa);
	if (t->how == JUNK) {
		an = 3;
		put(o, "\xc0\xff\xc0\xff\x00\x00\xff\xff", 8);
	}
	if (t->how == SHORT)
		o->n -= 3;
	if (t->how == CUT && !is_tcp)
		an = 0;
	o->p[7] = (uint8_t)an;
	return o->n;
}

static void
on_udp(evutil_socket_t fd, short what, void *arg)
{
	struct sockaddr_storage	 from;
	socklen_t		 len = sizeof(from);
	struct out		 o = { .n = 0 };
	uint8_t			 buf[1024];
	ssize_t			 n;
	int			 i;

	(void)what;
	(void)arg;
	for (i = 0; i < 16; i++, o.n = 0, len = sizeof(from)) {
		if ((n = recvfrom(fd, buf, sizeof(buf), 0,
		    (struct sockaddr *)&from, &len)) == -1)
			return;
		if (answer(buf, (size_t)n, 0, &o) != 0)
			(void)sendto(fd, o.p, o.n, 0,
			    (struct sockaddr *)&from, len);
	}
}

/* One query comes whole, with its length before it. */
static void
on_query(evutil_socket_t fd, short what, void *arg)
{
	struct event	**ev = arg;
	struct out	 o = { .n = 0 };
	uint8_t		 buf[1024], len[2];
	ssize_t		 n;

	(void)what;
	n = recv(fd, buf, sizeof(buf), 0);
	if (n > 2 && answer(buf + 2, (size_t)n - 2, 1, &o) != 0) {
		len[0] = (uint8_t)(o.n >> 8);
		len[1] = (uint8_t)o.n;
		(void)send(fd, len, 2, MSG_NOSIGNAL);
		(void)send(fd, o.p, o.n, MSG_NOSIGNAL);
		return;
	}
	event_free(*ev);
	free(ev);
	(void)close(fd);
}

static void
on_tcp(evutil_socket_t fd, short what, void *arg)
{
	int		  s = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
	struct event	**ev = xcalloc(1, sizeof(struct event *));

	(void)what;
	(void)arg;
	ck_assert_int_ne(s, -1);
	*ev = event_new(base, s, EV_READ | EV_PERSIST, on_query, ev);
	(void)event_add(*ev, NULL);
}

static int
listens(int type, event_callback_fn fn)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET,
				    .sin_port = htons(53) };
	int			fd = socket(AF_INET, type | SOCK_NONBLOCK |
				    SOCK_CLOEXEC, 0);
	int			most = 8 * 1024 * 1024;
	struct event		*ev;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ne(fd, -1);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &most, sizeof(most));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(fd, 64), 0);
	ev = event_new(base, fd, EV_READ | EV_PERSIST, fn, NULL);
	ck_assert_int_eq(event_add(ev, NULL), 0);
	return fd;
}

/* ---- asking ----------------------------------------------------------- */

int	__real_ares_init_options(ares_channel *, struct ares_options *, int);
int	__wrap_ares_init_options(ares_channel *, struct ares_options *, int);

/* As it is, but sooner late. */
int
__wrap_ares_init_options(ares_channel *c, struct ares_options *o, int mask)
{
	ck_assert_int_eq(o->timeout, 2000);
	ck_assert_int_ne(mask & ARES_OPT_TIMEOUTMS, 0);
	o->timeout = LATE_MS;
	return __real_ares_init_options(c, o, mask);
}

static struct resolved	got;
static unsigned int	told;

static void
on_resolved(void *arg, const struct resolved *r)
{
	got = *r;
	told++;
	if (arg != NULL)
		*(unsigned int *)arg += r->n > 0;
}

/* The loop, for a moment. */
static void
turn(void)
{
	const struct timeval	tv = { 0, 10000 };

	ck_assert_int_eq(event_base_loopexit(base, &tv), 0);
	ck_assert_int_ne(event_base_dispatch(base), -1);
}

#define TURNS	1500

/* Nothing here takes that long. */
#define turn_until(cond) do {						\
	int	turn_i;							\
	for (turn_i = 0; turn_i < TURNS && !(cond); turn_i++)		\
		turn();							\
	ck_assert_msg(cond, "never: %s", #cond);			\
} while (0)

/* What is told of a name, never within the call. */
static void
ask(const char *name)
{
	const unsigned int	n = told;

	ck_assert_ptr_ne(resolve(name, on_resolved, NULL), NULL);
	ck_assert_uint_eq(told, n);
	turn_until(told > n);
	ck_assert_uint_eq(told, n + 1);
}

/* Asks until that many addresses are told. */
static void
ask_until(const char *name, int n)
{
	int	i;

	for (i = 0; i < TURNS && (i == 0 || got.n != n); i++) {
		turn();
		ask(name);
	}
	ck_assert_int_eq(got.n, n);
}

/* The addresses that may be connected to, in their order. */
static void
is(const char *want)
{
	char	text[512] = "", one[INET6_ADDRSTRLEN];
	size_t	len = 0;
	int	i;

	for (i = 0; i < got.n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s%s", i == 0 ? "" : " ", inet_ntop(got.v6[i] ?
		    AF_INET6 : AF_INET, got.addr[i], one, sizeof(one)));
	ck_assert_str_eq(text, want);
	ck_assert_int_eq(got.why, RESOLVED_OK);
}

/* None, and by what. */
static void
refused(int why, const char *addr)
{
	char	text[INET6_ADDRSTRLEN];

	ck_assert_int_eq(got.n, 0);
	ck_assert_int_eq(got.why, why);
	if (addr != NULL)
		ck_assert_str_eq(inet_ntop(got.refused_v6 ? AF_INET6 :
		    AF_INET, got.refused, text, sizeof(text)), addr);
}

static void
ip(const char *cmd)
{
	ck_assert_int_eq(system(cmd), 0);
}

/* Files of the host's that say something else: they have no say. */
static void
files(void)
{
	static const char	lines[] =
	    "mount --make-rprivate / && mount -t tmpfs none /mnt && "
	    "printf '203.0.113.99 good.test four.test\\n' >/mnt/hosts && "
	    "printf 'nameserver 203.0.113.53\\nsearch corp.test\\n"
	    "options ndots:5\\n' >/mnt/resolv.conf && "
	    "printf 'good.test wrong.test\\n' >/mnt/aliases && "
	    "mount --bind /mnt/hosts /etc/hosts && "
	    "mount --bind /mnt/resolv.conf /etc/resolv.conf";

	ip(lines);
	ck_assert_int_eq(setenv("HOSTALIASES", "/mnt/aliases", 1), 0);
}

static void
setup(void)
{
	static struct conf	c;

	memset(&c, 0, sizeof(c));
	(void)str_copy(c.egress_dns, "127.0.0.1", sizeof(c.egress_dns));
	ck_assert_int_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
	ip("ip link set lo up");
	files();
	base = event_base_new();
	udp = listens(SOCK_DGRAM, on_udp);
	tcp = listens(SOCK_STREAM, on_tcp);
	resolve_open(&c);
	resolve_init(base);
}

/* Nothing was asked but what is in the table: no search list was tried. */
static void
teardown(void)
{
	ck_assert_str_eq(odd, "");
}

/* ---- answers ---------------------------------------------------------- */

START_TEST(good)
{
	ask("good.test");
	is("2001:db8::1 203.0.113.1");
	ask("four.test");
	is("203.0.113.1 203.0.113.2");
	ask("six.test");
	is("2001:db8::1 2001:db8::2");
}
END_TEST

/* Of an answer with others among them only those that may be. */
START_TEST(mixed)
{
	ask("mixed.test");
	is("2001:db8::2 203.0.113.2 203.0.113.3");
}
END_TEST

START_TEST(sealed)
{
	ask("sealed.test");
	refused(RESOLVED_SEALED, "169.254.169.254");
	ask("sealed6.test");
	refused(RESOLVED_SEALED, "fc00::7");
	ask("mapped.test");
	refused(RESOLVED_SEALED, "::ffff:127.0.0.1");
	ask("good.test");
	is("2001:db8::1 203.0.113.1");
}
END_TEST

/* What c-ares knows by itself is held against the same. */
START_TEST(localhost)
{
	ask("localhost");
	ck_assert_int_eq(got.n, 0);
	ck_assert_uint_eq(by_udp, 0);
}
END_TEST

/* The host's own are refused while it has them, however it has them. */
START_TEST(of_host)
{
	ask("host.test");
	is("2001:db8::77 203.0.113.77");
	ip("ip addr add 203.0.113.77/32 dev lo && "
	    "ip -6 addr add 2001:db8::77/128 dev lo nodad");
	ask_until("host.test", 0);		/* one comes by itself */
	refused(RESOLVED_HOST, "2001:db8::77");
	ask("host4.test");
	is("203.0.113.1");
	ip("ip addr del 203.0.113.77/32 dev lo && "
	    "ip -6 addr del 2001:db8::77/128 dev lo");
	ask_until("host.test", 2);
	is("2001:db8::77 203.0.113.77");
	/* any of a network that the host answers for */
	ask("net.test");
	is("198.51.100.200");
	ip("ip route add local 198.51.100.128/25 dev lo");
	ask_until("net.test", 0);
	refused(RESOLVED_HOST, "198.51.100.200");
}
END_TEST

/* What the upstream proxy's name leads to is held against nothing. */
START_TEST(any)
{
	ck_assert_ptr_ne(resolve_any("sealed.test", on_resolved, NULL), NULL);
	turn_until(told == 1);
	is("169.254.169.254 192.168.0.1");
	ask("sealed.test");
	refused(RESOLVED_SEALED, "169.254.169.254");
}
END_TEST

START_TEST(chain)
{
	ask("chain.test");
	is("203.0.113.5");
	ask("inside.test");
	refused(RESOLVED_SEALED, "10.1.2.3");
	ask("loop.test");
	refused(RESOLVED_NONE, NULL);
}
END_TEST

/* As many as there may be, by TCP, where they do not fit. */
START_TEST(truncated)
{
	ask("many.test");
	ck_assert_uint_ge(by_tcp, 1);
	is("203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4 203.0.113.5 "
	    "203.0.113.6 203.0.113.7 203.0.113.8");
}
END_TEST

START_TEST(no_address)
{
	static const char *const	none[] = { "nx.test", "fail.test",
					    "empty.test", "junk.test",
					    "short.test", "owner.test" };

	ask(none[_i]);
	ck_assert_int_eq(got.n, 0);
	ck_assert(got.why == RESOLVED_NONE || got.why == RESOLVED_LATE);
	ask("four.test");
	is("203.0.113.1 203.0.113.2");
}
END_TEST

/* What answers another question, or under another number, answers nothing. */
START_TEST(never)
{
	static const char *const	late[] = { "never.test", "id.test",
					    "question.test" };

	ask(late[_i]);
	refused(RESOLVED_LATE, NULL);
	ck_assert_uint_ge(by_udp, 6);	/* three times for each type */
}
END_TEST

START_TEST(second)
{
	ask("second.test");
	is("203.0.113.6");
}
END_TEST

/* ---- many, and taken back --------------------------------------------- */

START_TEST(crowd)
{
	unsigned int	good_ones = 0, i;
	char		name[32];

	for (i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "crowd%u.test", i);
		(void)resolve(name, on_resolved, &good_ones);
	}
	ck_assert_uint_eq(told, 0);
	turn_until(told == MANY);
	printf("%u at once: %u answered, %u queries\n", MANY, good_ones,
	    by_udp);
	ck_assert_uint_eq(told, MANY);
	ck_assert_uint_eq(good_ones, MANY);
}
END_TEST

static struct lookup	*other;

static void
on_first(void *arg, const struct resolved *r)
{
	on_resolved(arg, r);
	resolve_cancel(other);
}

/* Before anything was asked; while it is; by another that is told. */
START_TEST(cancelled)
{
	struct lookup	*l = resolve("good.test", on_resolved, NULL);

	if (_i == 0) {
		resolve_cancel(l);
		ask("four.test");
		ck_assert_uint_eq(by_udp, 2);	/* it was never asked */
	} else if (_i == 1) {
		drop = 2;			/* of it */
		turn_until(by_udp >= 2);
		resolve_cancel(l);
		ask("four.test");
		turn_until(by_udp >= 6);	/* once more, and answered */
		ask("six.test");
	} else {
		resolve_cancel(l);
		(void)resolve("good.test", on_first, NULL);
		other = resolve("crowd1.test", on_first, NULL);
		turn_until(told > 0);
		ask("six.test");
	}
	ck_assert_uint_eq(told, _i == 0 ? 1 : 2);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("resolve");
	TCase	*t = tcase_create("resolve");
	SRunner	*sr;
	int	 failed;

	if (geteuid() != 0) {
		(void)puts("network namespaces are root's to make");
		return 77;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, good);
	tcase_add_test(t, mixed);
	tcase_add_test(t, sealed);
	tcase_add_test(t, localhost);
	tcase_add_test(t, of_host);
	tcase_add_test(t, any);
	tcase_add_test(t, chain);
	tcase_add_test(t, truncated);
	tcase_add_loop_test(t, no_address, 0, 6);
	tcase_add_loop_test(t, never, 0, 3);
	tcase_add_test(t, second);
	tcase_add_test(t, crowd);
	tcase_add_loop_test(t, cancelled, 0, 3);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
