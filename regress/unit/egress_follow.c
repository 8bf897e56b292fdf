/*
 * egress_follow.c: the host's addresses in networks that are open: how soon
 * one is sealed, under traffic, by the thousand, in 200 boxes; and what
 * becomes of a network that cannot be changed.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egress_rig.h"
#include "xmalloc.h"

#define ID(n)	"01K8ZZZZZZZZZZZZZZZZZZZZZ" #n

static struct event_base	*base;

/* ---- the host's addresses, live ---------------------------------------------------------- */

static void
live(void)
{
	struct nets_fds	fds = { -1, -1, -1, news, ask };

	ck_assert_int_ne(fds.watch = link_watch(), -1);
	fds.home = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ck_assert_ptr_ne(base = event_base_new(), NULL);
	nets_init(base, &fds, 0, 1000);
}

/* Takes the descriptors. */
static struct net *
live_net(const char *id, int netns, int nft)
{
	struct net	*n = net_new(0);

	ck_assert_ptr_ne(n, NULL);
	n->kind = RULESET_EGRESS;
	n->netns = netns;
	n->ctl = nft;
	net_own(n, id, SEALED);
	ck_assert_ptr_eq(net_set(n, n->kind), NULL);
	net_move(n, OPEN);
	return n;
}

static struct net *
live_box(void)
{
	live();
	return live_net(ID(1), fcntl(lab.netns[LAB_BOX], F_DUPFD_CLOEXEC, 0),
	    fcntl(lab.nft, F_DUPFD_CLOEXEC, 0));
}

static void
pump(long us)
{
	struct timeval	tv = { 0, us };

	ck_assert_int_eq(event_base_loopexit(base, &tv), 0);
	ck_assert_int_ge(event_base_dispatch(base), 0);
}

struct probe { const char *to; int want; };

static int
probe(void *arg)
{
	const struct probe	*p = arg;
	int			 e = lab_tcp(p->to, LAB_PORT, NULL);

	return e == p->want ? 0 : 1;
}

/* Until the box sees it, within a second; how long that took. */
static long
until(const char *to, int want, const char *what)
{
	struct probe	p = { to, want };
	long		t0 = lab_us(), us;

	do {
		pump(1000);
		us = lab_us() - t0;
		ck_assert_msg(us < 1000000, "%s: %s is not %s within a "
		    "second", what, to, want == 0 ? "open" : "refused");
	} while (lab_in(&lab, LAB_BOX, probe, &p) != 0);
	printf("%s: %s %s after %ld ms\n", what, to, want == 0 ? "open" :
	    "refused", us / 1000);
	return us;
}

/* Bytes there and back, from the first to the last, until told to end. */
static int
traffic(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(LAB_PORT) };
	int			*p = arg, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd		stop = { .fd = p[0], .events = POLLIN };
	struct timeval		tv = { 2, 0 };
	unsigned char		b = 0, c;
	unsigned int		n = 0;

	(void)inet_pton(AF_INET, "198.51.100.10", &a.sin_addr);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == -1)
		return 1;
	while (poll(&stop, 1, 0) == 0) {
		if (write(fd, &b, 1) != 1 || read(fd, &c, 1) != 1)
			return 2;
		if (c != b++)
			return 3;
		n++;
	}
	return n > 100 ? 0 : 4;
}

static void
gain_and_lose(struct net *n, const char *addr, const char *probed, int route)
{
	if (route)
		lab_local(&lab, LAB_HOST, addr, 0);
	else
		lab_addr(&lab, LAB_HOST, "net0", addr, 0);
	(void)until(probed, ECONNREFUSED, route ? "local route" : "address");
	ck_assert_int_eq(n->state, OPEN);
	ck_assert_int_eq(is_whole(), 1);
	if (route)
		lab_local(&lab, LAB_HOST, addr, 1);
	else
		lab_addr(&lab, LAB_HOST, "net0", addr, 1);
	(void)until(probed, 0, route ? "local route" : "address");
	ck_assert_int_eq(is_whole(), 1);
}

/*
 * The host takes over what was another's, and gives it back.  The control is
 * in it: before and after, somebody answers there.
 */
START_TEST(followed)
{
	struct net	*n = live_box();
	pid_t		 pid;
	int		 p[2];

	ck_assert_int_eq(pipe(p), 0);
	(void)until("203.0.113.50", 0, "before");
	pid = lab_start(&lab, LAB_BOX, traffic, p);
	gain_and_lose(n, "203.0.113.50/32", "203.0.113.50", 0);
	/* AnyIP: only a route tells of it */
	gain_and_lose(n, "203.0.113.128/28", "203.0.113.130", 1);
	/* one that others lie within, and one that lies within others */
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.130/32", 0);
	(void)until("203.0.113.130", ECONNREFUSED, "inner");
	lab_local(&lab, LAB_HOST, "203.0.113.0/26", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "outer");
	ck_assert_int_eq(is_whole(), 1);
	lab_local(&lab, LAB_HOST, "203.0.113.0/26", 1);
	(void)until("203.0.113.50", 0, "outer");
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.130/32", 1);
	(void)until("203.0.113.130", 0, "inner");
	if (lab.v6) {
		gain_and_lose(n, "2001:db8:1::50/128", "2001:db8:1::50", 0);
		gain_and_lose(n, "2001:db8:2::/64", "2001:db8:2::10", 1);
	}
	ck_assert_int_eq(write(p[1], "s", 1), 1);
	ck_assert_int_eq(lab_result(pid), 0);
}
END_TEST

/* A connection that was open before is cut, not only new ones refused. */
static int
held(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(LAB_PORT) };
	int			*p = arg, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval		tv = { 2, 0 };
	char			b = 'x';

	(void)inet_pton(AF_INET, "203.0.113.50", &a.sin_addr);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == -1 ||
	    write(fd, &b, 1) != 1 || read(fd, &b, 1) != 1 ||
	    write(p[1], "r", 1) != 1 || read(p[2], &b, 1) != 1)
		return 1;
	if (write(fd, &b, 1) != 1)
		return errno == ECONNREFUSED || errno == ECONNRESET ? 0 : 2;
	return read(fd, &b, 1) == -1 && (errno == ECONNREFUSED ||
	    errno == ECONNRESET) ? 0 : 3;
}

START_TEST(open_connections)
{
	int	p[4];
	char	b;
	pid_t	pid;

	(void)live_box();
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(pipe(p + 2), 0);
	pid = lab_start(&lab, LAB_BOX, held, p);
	ck_assert_int_eq(read(p[0], &b, 1), 1);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "held");
	ck_assert_int_eq(write(p[3], "g", 1), 1);
	ck_assert_int_eq(lab_result(pid), 0);
}
END_TEST

/* ---- many ---------------------------------------------------------------------------------- */

#define THOUSAND	1000

START_TEST(thousand)
{
	struct net	*n = live_box();
	long		 us;

	(void)until("203.0.113.50", 0, "before");
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.112.0", THOUSAND, 0);
	us = until("203.0.113.50", ECONNREFUSED, "1000 addresses");
	(void)until("203.0.115.231", ECONNREFUSED, "the last");
	(void)until("203.0.112.0", ECONNREFUSED, "the first");
	printf("1000 addresses at once: %ld ms\n", us / 1000);
	while (!is_whole())
		pump(5000);
	ck_assert_int_eq(n->state, OPEN);
	/* those in the middle go */
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.113.32", 64, 1);
	(void)until("203.0.113.50", 0, "64 fewer");
	(void)until("203.0.115.231", ECONNREFUSED, "the last");
	while (!is_whole())
		pump(5000);
}
END_TEST

static int
all_dropped(void *arg)
{
	(void)arg;
	return lab_tcp("198.51.100.10", LAB_PORT, NULL) == ETIME &&
	    lab_tcp("203.0.112.0", LAB_PORT, NULL) == ETIME ? 0 : 1;
}

/* Nobody knows which to leave out: nothing passes then. */
START_TEST(too_many)
{
	struct net	*n = live_box();
	long		 t0 = lab_us();

	(void)until("198.51.100.10", 0, "before");
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.112.0", HOST_MAX + 1, 0);
	while (n->state == OPEN) {
		ck_assert_int_lt(lab_us() - t0, 1000000);
		pump(5000);
	}
	ck_assert_int_eq(n->state, CUT);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
	/* and nobody opens it */
	ck_assert_ptr_ne(net_set(n, RULESET_EGRESS), NULL);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.112.0", 512, 1);
	for (t0 = lab_us(); net_set(n, RULESET_EGRESS) != NULL; pump(20000))
		ck_assert_int_lt(lab_us() - t0, 3000000);
	net_move(n, OPEN);
	(void)until("198.51.100.10", 0, "after");
	(void)until("203.0.114.1", ECONNREFUSED, "those that stayed");
}
END_TEST

#define BOXES	200

static const struct rlimit	files = { 4096, 4096 };

START_TEST(two_hundred)
{
	static struct net	*n[BOXES];
	struct ruleset_seen	 seen, was;
	char			 id[64];		/* gcc counts signs, too */
	long			 t0, make = 0, update, whole = 0, us;
	int			 i, netns, nft;

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	live();
	for (i = 0; i < BOXES; i++) {
		snprintf(id, sizeof(id), "01K8ZZZZZZZZZZZZZZZZZZZ%03d", i);
		netns = lab_netns(&nft);
		ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
		t0 = lab_us();
		ck_assert_int_eq(ruleset_make(nft, RULESET_EGRESS), 0);
		make += lab_us() - t0;
		n[i] = live_net(id, netns, nft);
	}
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	t0 = lab_us();
	hosts_now();
	us = lab_us() - t0;
	t0 = lab_us();
	for (i = 0; i < BOXES; i++)
		ck_assert_int_eq(ruleset_update(n[i]->ctl), 0);
	update = lab_us() - t0;
	t0 = lab_us();
	for (i = 0; i < BOXES; i++) {
		ck_assert_int_eq(ruleset_read(n[i]->ctl, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	}
	whole = lab_us() - t0;
	printf("ruleset of egress: %ld us to make; the host's addresses: %ld "
	    "us to read and compile; %d boxes: %ld ms to update, %ld ms to "
	    "read back\n", make / BOXES, us, BOXES, update / 1000,
	    whole / 1000);
	/* once more, by the way that netd takes */
	was = seen;
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.61/32", 0);
	t0 = lab_us();
	/* all of them are changed in one turn */
	do {
		pump(1000);
		ck_assert_int_lt(lab_us() - t0, 1000000);
		ck_assert_int_eq(ruleset_read(n[0]->ctl, &seen), 0);
	} while (strcmp(seen.elements, was.elements) == 0);
	printf("%d boxes, from the address until all are changed: %ld ms\n",
	    BOXES, (lab_us() - t0) / 1000);
	pump(500000);		/* and until all were read back, if ever */
	for (i = 0; i < BOXES; i++) {
		ck_assert_int_eq(ruleset_read(n[i]->ctl, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
		ck_assert_int_eq(n[i]->state, OPEN);
	}
}
END_TEST

/* ---- what cannot be changed ----------------------------------------------------------------- */

/* Somebody has changed it: it is made anew, and goes on. */
START_TEST(made_anew)
{
	struct net	*n = live_box();

	element(RS_HOST4, "203.0.113.60", 1, 0);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "drifted");
	pump(50000);
	ck_assert_int_eq(is_whole(), 1);
	egress_off();
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	(void)until("10.1.2.3", ECONNREFUSED, "flushed");
	ck_assert_int_eq(is_whole(), 1);
	ck_assert_int_eq(n->state, OPEN);
}
END_TEST

/* One of two can be reached no more: it is cut, the other is updated. */
START_TEST(sealed_alone)
{
	struct net	*n = live_box(), *m;
	struct msg_net_status_is s = { 0 };
	int		 netns, nft, keep, sv[2];
	long		 t0;

	netns = lab_netns(&nft);
	keep = fcntl(nft, F_DUPFD_CLOEXEC, 0);
	m = live_net(ID(2), netns, nft);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	ck_assert_int_eq(dup2(sv[0], nft), nft);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "the other");
	ck_assert_int_eq(n->state, OPEN);
	ck_assert_int_eq(m->state, CUT);
	/* and it is not told whole */
	ck_assert_int_ne(net_whole(m, RULESET_SEALED, s.ruleset), 1);
	/* nor given up */
	ck_assert_int_eq(dup2(keep, nft), nft);
	for (t0 = lab_us(); net_whole(m, RULESET_SEALED, s.ruleset) != 1;
	    pump(50000))
		ck_assert_int_lt(lab_us() - t0, 3000000);
	ck_assert_int_eq(m->unsealed, 0);
}
END_TEST

/* It is tried again, too, while the host's addresses are not known. */
START_TEST(sealed_late)
{
	struct net	*n = live_box();
	char		 hash[NET_HASHLEN + 1];
	int		 keep = fcntl(n->ctl, F_DUPFD_CLOEXEC, 0), sv[2];
	long		 t0 = lab_us();

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	ck_assert_int_eq(dup2(sv[0], n->ctl), n->ctl);
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.112.0", HOST_MAX + 1, 0);
	while (n->state == OPEN) {
		ck_assert_int_lt(lab_us() - t0, 1000000);
		pump(5000);
	}
	ck_assert_int_eq(n->unsealed, 1);
	(void)until("198.51.100.10", 0, "not sealed");
	ck_assert_int_eq(dup2(keep, n->ctl), n->ctl);
	for (t0 = lab_us(); n->unsealed; pump(50000))
		ck_assert_int_lt(lab_us() - t0, 3000000);
	ck_assert_int_eq(net_whole(n, RULESET_SEALED, hash), 1);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
}
END_TEST

/* ---- news ------------------------------------------------------------------------------------- */

static size_t
message(uint8_t *buf, uint16_t type, int family, int table, int rtype)
{
	struct nlmsghdr	*h = mnl_nlmsg_put_header(buf);
	struct rtmsg	*rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));

	h->nlmsg_type = type;
	rt->rtm_family = (uint8_t)family;
	rt->rtm_table = (uint8_t)table;
	rt->rtm_type = (uint8_t)rtype;
	return h->nlmsg_len;
}

START_TEST(what_is_news)
{
	uint8_t		 buf[256] __attribute__((aligned(8)));
	struct prefix	 p;
	size_t		 n;

	n = message(buf, RTM_NEWROUTE, AF_INET, RT_TABLE_MAIN, RTN_UNICAST);
	ck_assert_int_eq(hostaddr_heard(buf, n), 0);
	ck_assert_int_eq(hostaddr_take((struct nlmsghdr *)(void *)buf, &p),
	    0);
	n = message(buf, RTM_DELROUTE, AF_INET, RT_TABLE_LOCAL, RTN_LOCAL);
	ck_assert_int_eq(hostaddr_heard(buf, n), 1);
	n = message(buf, RTM_NEWROUTE, AF_INET6, RT_TABLE_LOCAL,
	    RTN_MULTICAST);
	ck_assert_int_eq(hostaddr_take((struct nlmsghdr *)(void *)buf, &p),
	    0);
	/* no destination and no length: all there is */
	n = message(buf, RTM_NEWROUTE, AF_INET6, RT_TABLE_LOCAL, RTN_LOCAL);
	ck_assert_int_eq(hostaddr_take((struct nlmsghdr *)(void *)buf, &p),
	    1);
	ck_assert(p.len == 16 && p.bits == 0);
	n = message(buf, RTM_NEWADDR, AF_INET, 0, 0);
	ck_assert_int_eq(hostaddr_heard(buf, n), 1);
	/* what is cut short may be anything */
	n = message(buf, RTM_NEWROUTE, AF_INET, RT_TABLE_MAIN, RTN_UNICAST);
	ck_assert_int_eq(hostaddr_heard(buf, n - 4), 1);
	((struct nlmsghdr *)(void *)buf)->nlmsg_len = 0xff000030;
	ck_assert_int_eq(hostaddr_heard(buf, n), 1);
	ck_assert_int_eq(hostaddr_heard(buf, 3), 1);
	ck_assert_int_eq(hostaddr_heard(buf, 0), 0);
}
END_TEST

/* Routes of others do not make netd look, and are not lost track of. */
START_TEST(nothing_new)
{
	struct hosts	h;
	char		first[32];
	int		i;

	ck_assert_int_ge(hostaddr_news(news), 0);
	ck_assert_int_eq(hostaddr_news(news), 0);
	lab_addr(&lab, LAB_INET, "net1", "203.0.113.99/32", 0);
	ck_assert_int_eq(hostaddr_news(news), 0);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.99/32", 0);
	ck_assert_int_eq(hostaddr_news(news), 1);
	ck_assert_int_eq(hostaddr_news(news), 0);
	/* more than the socket holds: news all the same */
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.112.0", THOUSAND, 0);
	ck_assert_int_eq(hostaddr_news(news), 1);
	while (hostaddr_news(news) != 0)
		continue;
	ck_assert_int_eq(hostaddr_ask(ask, &h), 0);
	ck_assert_uint_ge(h.v4.n, THOUSAND);
	hosts_free(&h);
	/* one too many, and so many that the rest is not even read */
	for (i = 1; i < 8; i++) {
		snprintf(first, sizeof(first), "203.%d.128.0", i);
		lab_addrs(&lab, LAB_HOST, "lo", first, THOUSAND, 0);
		ck_assert_int_eq(hostaddr_ask(ask, &h), -1);
		ck_assert_int_eq(errno, E2BIG);
	}
	for (i = 1; i < 8; i++) {
		snprintf(first, sizeof(first), "203.%d.128.0", i);
		lab_addrs(&lab, LAB_HOST, "lo", first, THOUSAND, 1);
	}
	ck_assert_int_eq(hostaddr_ask(ask, &h), 0);
	ck_assert_uint_ge(h.v4.n, THOUSAND);
	hosts_free(&h);
}
END_TEST

TCase *
follow_tests(void)
{
	TCase	*t = tcase_create("follow");

	tcase_add_checked_fixture(t, rig_setup, rig_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, followed);
	tcase_add_test(t, open_connections);
	tcase_add_test(t, thousand);
	tcase_add_test(t, too_many);
	tcase_add_test(t, two_hundred);
	tcase_add_test(t, made_anew);
	tcase_add_test(t, sealed_alone);
	tcase_add_test(t, sealed_late);
	tcase_add_test(t, what_is_news);
	tcase_add_test(t, nothing_new);
	return t;
}
