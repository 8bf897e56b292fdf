/*
 * egress_follow.c: the host's addresses in networks that are open: how soon
 * one is sealed, under traffic, by the thousand, in 200 boxes; and what
 * becomes of a network that cannot be changed, opened or adopted; and of what
 * kind one is that is found.
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

/* ---- the host's addresses, live -------------------------------------- */

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

/* ---- many ------------------------------------------------------------ */

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

/* Microseconds that making their rulesets took. */
static long
live_boxes(struct net *n[BOXES])
{
	char	id[64];			/* gcc counts signs, too */
	long	make = 0, t0;
	int	i, netns, nft;

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
	return make;
}

START_TEST(two_hundred)
{
	static struct net	*n[BOXES];
	struct ruleset_seen	 seen, was;
	long			 t0, make, update, whole = 0, us;
	int			 i;

	make = live_boxes(n);
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
	element_at(n[BOXES - 1]->ctl, RS_HOST4, "203.0.113.2", 0, 0);
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
	/* what the last one lacks is found when all are read back */
	do {
		pump(5000);
		ck_assert_int_lt(lab_us() - t0, 20000000);
		ck_assert_int_eq(ruleset_read(n[BOXES - 1]->ctl, &seen), 0);
	} while (!ruleset_is(&seen, RULESET_EGRESS));
	printf("and until the last is read back: %ld ms\n",
	    (lab_us() - t0) / 1000);
	for (i = 0; i < BOXES; i++) {
		ck_assert_int_eq(ruleset_read(n[i]->ctl, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
		ck_assert_int_eq(n[i]->state, OPEN);
	}
}
END_TEST

/*
 * Changes that never end: one that differs is found all the same, though it
 * is far behind the first ones.
 */
START_TEST(churned)
{
	static struct net	*n[BOXES];
	struct ruleset_seen	 seen;
	long			 t0;
	int			 times = 0;

	(void)live_boxes(n);
	element_at(n[150]->ctl, RS_HOST4, "203.0.113.2", 0, 0);
	t0 = lab_us();
	do {
		lab_addr(&lab, LAB_HOST, "net0", "203.0.113.61/32",
		    times++ % 2);
		pump(20000);
		ck_assert_msg(lab_us() - t0 < 20000000, "not read back after "
		    "%d changes", times);
		ck_assert_int_eq(ruleset_read(n[150]->ctl, &seen), 0);
	} while (!ruleset_is(&seen, RULESET_EGRESS));
	printf("under changes: read back after %d, %ld ms\n", times,
	    (lab_us() - t0) / 1000);
	ck_assert_int_eq(n[150]->state, OPEN);
}
END_TEST

/* ---- what cannot be changed ------------------------------------------ */

static void
whole_soon(void)
{
	long	t0 = lab_us();

	while (!is_whole()) {
		ck_assert_int_lt(lab_us() - t0, 1000000);
		pump(5000);
	}
}

/* Somebody has changed it: it is made anew, and goes on. */
START_TEST(made_anew)
{
	struct net	*n = live_box();

	element(RS_HOST4, "203.0.113.60", 1, 0);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "drifted");
	whole_soon();
	egress_off();
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	(void)until("10.1.2.3", ECONNREFUSED, "flushed");
	whole_soon();
	ck_assert_int_eq(n->state, OPEN);
}
END_TEST

/* One of two can be reached no more: it is cut, the other is updated. */
START_TEST(sealed_alone)
{
	struct net	*n = live_box(), *m;
	struct msg_net_status_is s = { 0 };
	int		 netns, nft, keep;
	long		 t0;

	netns = lab_netns(&nft);
	m = live_net(ID(2), netns, nft);
	keep = breaks(m);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "the other");
	ck_assert_int_eq(n->state, OPEN);
	ck_assert_int_eq(m->state, CUT);
	/* and it is not told whole */
	ck_assert_int_ne(net_whole(m, RULESET_SEALED, s.ruleset), 1);
	/* and does not keep the other waiting for its turn */
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	(void)until_in("203.0.113.50", 0, "beside the unsealed", 500);
	ck_assert_int_eq(m->unsealed, 1);
	/* nor is it given up */
	mends(m, keep);
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
	int		 keep = breaks(n);
	long		 t0 = lab_us();

	lab_addrs(&lab, LAB_HOST, "lo", "203.0.112.0", HOST_MAX + 1, 0);
	while (n->state == OPEN) {
		ck_assert_int_lt(lab_us() - t0, 1000000);
		pump(5000);
	}
	ck_assert_int_eq(n->unsealed, 1);
	(void)until("198.51.100.10", 0, "not sealed");
	mends(n, keep);
	for (t0 = lab_us(); n->unsealed; pump(50000))
		ck_assert_int_lt(lab_us() - t0, 3000000);
	ck_assert_int_eq(net_whole(n, RULESET_SEALED, hash), 1);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
}
END_TEST

/* ---- what cannot be opened or adopted -------------------------------- */

/* NET_OPEN of what is open, and NET_CUT: nothing is left as it was. */
START_TEST(failed_change)
{
	static const enum ruleset	to[] = { RULESET_EGRESS,
					    RULESET_SEALED };
	struct net			*n = live_box();
	long				 t0;
	size_t				 i;
	int				 keep;

	for (i = 0; i < 2; i++) {
		keep = breaks(n);
		ck_assert_ptr_ne(net_set(n, to[i]), NULL);
		ck_assert_int_eq(n->state, CUT);
		ck_assert_int_eq(n->unsealed, 1);
		(void)until("198.51.100.10", 0, "not sealed");
		mends(n, keep);
		for (t0 = lab_us(); n->unsealed; pump(50000))
			ck_assert_int_lt(lab_us() - t0, 3000000);
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
		ck_assert_ptr_eq(net_set(n, RULESET_EGRESS), NULL);
		net_move(n, OPEN);
		(void)until("198.51.100.10", 0, "open");
	}
	/* when opening alone fails it is sealed at once */
	ruleset_hosts_lost();
	ck_assert_ptr_ne(net_set(n, RULESET_EGRESS), NULL);
	ck_assert_int_eq(n->state, CUT);
	ck_assert_int_eq(n->unsealed, 0);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
}
END_TEST

/* The maker's answer for the lab's box, with a socket for links that is none. */
static struct net *
found_again(unsigned int k, struct netns_made *m)
{
	struct net	*n;
	int		 sv[2];

	egress_on();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	*m = (struct netns_made){ .k = k,
	    .netns = fcntl(lab.netns[LAB_BOX], F_DUPFD_CLOEXEC, 0),
	    .sock = { fcntl(lab.nft, F_DUPFD_CLOEXEC, 0), -1, sv[0], -1 } };
	ck_assert_ptr_ne(n = net_new(k, RULESET_EGRESS), NULL);
	return n;
}

/* A box whose network cannot be adopted is nobody's, but is sealed. */
START_TEST(failed_adoption)
{
	struct netns_made	 m;
	struct net		*n;
	long			 t0;
	int			 keep;

	live();
	n = found_again(77, &m);
	(void)until("198.51.100.10", 0, "before");
	ck_assert_str_eq(net_adopt(n, &m, ID(1), 1), "raise lo");
	ck_assert_ptr_eq(net_find(ID(1)), NULL);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
	/* and when that cannot be, either, it is held until it is; the kernel
	 * knows the namespace by its other number */
	n = found_again(78, &m);
	(void)until("198.51.100.10", 0, "before");
	n->ctl = m.sock[NS_NFT];
	keep = breaks(n);
	ck_assert_str_eq(net_adopt(n, &m, ID(2), 1), "name it");
	ck_assert_ptr_eq(net_find(ID(2)), n);
	ck_assert_int_eq(n->state, CUT);
	(void)until("198.51.100.10", 0, "not sealed");
	mends(n, keep);
	for (t0 = lab_us(); net_find(ID(2)) != NULL; pump(50000))
		ck_assert_int_lt(lab_us() - t0, 3000000);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
	ck_assert_ptr_eq(net_at(78), NULL);
}
END_TEST

/* ---- news ------------------------------------------------------------ */

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

/* Until nothing has been announced for a while: IPv6 takes its time. */
static void
quiet(void)
{
	struct pollfd	p = { .fd = news, .events = POLLIN };

	do
		ck_assert_int_ne(hostaddr_news(news), -1);
	while (poll(&p, 1, 300) == 1);
}

/* Routes of others do not make netd look, and are not lost track of. */
START_TEST(nothing_new)
{
	struct hosts	h;
	char		first[32];
	int		i;

	quiet();
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

/* ---- what is found ----------------------------------------------------- */

static enum ruleset
found(void)
{
	struct netns_made	m = { .netns = -1, .sock = { lab.nft, -1,
				    lab.route[LAB_BOX], -1 } };

	return net_found(&m, ID(1));
}

/* lab.nft of another place, and its routes. */
static enum ruleset
found_at(enum lab_place at, enum ruleset which)
{
	int			nft = lab_log(lab.netns[at]);
	struct netns_made	m = { .netns = -1, .sock = { nft, -1,
				    lab.route[at], -1 } };
	enum ruleset		r;

	ck_assert_int_eq(ruleset_make(nft, which), 0);
	r = net_found(&m, ID(1));
	close(nft);
	return r;
}

START_TEST(found_kind)
{
	/* at once, before the host's addresses are known */
	live();
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_EGRESS), 0);
	ck_assert_int_eq(found(), RULESET_EGRESS);
	element(RS_HOST4, "203.0.113.99", 1, 0);
	ck_assert_int_eq(is_whole(), 0);
	ck_assert_int_eq(found(), RULESET_EGRESS);
	ruleset_hosts_lost();
	ck_assert_int_eq(found(), RULESET_EGRESS);
	/* whatever interface there is */
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_NONE), 0);
	ck_assert_int_eq(found(), RULESET_NONE);
	/* nothing else tells but that */
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_SEALED), 0);
	ck_assert_int_eq(found(), RULESET_EGRESS);
	egress_off();
	ck_assert_int_eq(found(), RULESET_EGRESS);
	ck_assert_int_eq(found_at(LAB_INET, RULESET_SEALED), RULESET_NONE);
	hosts_now();
	ck_assert_int_eq(found_at(LAB_INET, RULESET_EGRESS), RULESET_EGRESS);
	ck_assert_int_eq(found_at(LAB_INET, RULESET_ALLOW), RULESET_ALLOW);
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
	tcase_add_test(t, churned);
	tcase_add_test(t, made_anew);
	tcase_add_test(t, sealed_alone);
	tcase_add_test(t, sealed_late);
	tcase_add_test(t, failed_change);
	tcase_add_test(t, failed_adoption);
	tcase_add_test(t, what_is_news);
	tcase_add_test(t, nothing_new);
	tcase_add_test(t, found_kind);
	return t;
}
