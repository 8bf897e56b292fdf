/*
 * egress_test.c: the ruleset of `egress' in a small internet: what is sealed
 * and what is not, each with its control; how soon an address of the host is
 * sealed in boxes that run, under traffic, by the thousand, in 200 of them;
 * and what becomes of a network that cannot be changed.
 *
 * slirp4netns is not part of it: the box reaches the rest by routes.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <libnftnl/object.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../netd/netd.h"
#include "egress_lab.h"
#include "log.h"
#include "xmalloc.h"

#define SOON_US	50000			/* a refusal */
#define ID(n)	"01K8ZZZZZZZZZZZZZZZZZZZZZ" #n

static struct lab		lab;
static int			news, ask;	/* sockets of the host */
static struct wire_list		none;
static struct event_base	*base;

/* nets.c starts the maker's side with itself; none is here. */
void
pool_init(struct event_base *b, int maker_fd)
{
	(void)b;
	(void)maker_fd;
}

static void
setup(void)
{
	int	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	log_init("egress_test", getenv("NETD_LOG") != NULL ? LOG_L_DEBUG :
	    LOG_L_ERROR, 0);
	lab_make(&lab);
	ck_assert_int_eq(sealed_init(&none, &none), 0);
	ck_assert_int_eq(ruleset_init(0), 0);
	lab_enter(&lab, LAB_HOST);
	ck_assert_int_eq(hostaddr_open(&news, &ask), 0);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
}

static void
teardown(void)
{
	lab_free(&lab);
	fd_close(&news);
	fd_close(&ask);
}

/* ---- the ruleset alone, without nets.c -------------------------------------------- */

static void
hosts_now(void)
{
	struct hosts	h;

	ck_assert_int_eq(hostaddr_ask(ask, &h), 0);
	ck_assert_int_ge(ruleset_hosts(&h.v4, &h.v6), 0);
	hosts_free(&h);
}

static int
is_whole(void)
{
	struct ruleset_seen	seen;

	ck_assert_int_eq(ruleset_read(lab.nft, &seen), 0);
	return ruleset_is(&seen, RULESET_EGRESS);
}

static void
egress_on(void)
{
	hosts_now();
	ck_assert_msg(ruleset_make(lab.nft, RULESET_EGRESS) == 0, "%s",
	    strerror(errno));
	ck_assert_int_eq(is_whole(), 1);
}

/* Away with every table: what a control is made without. */
static void
egress_off(void)
{
	struct nl_batch	b;

	nl_start(&b);
	nl_took(&b, nftnl_batch_begin(nl_next(&b), 0), 0);
	nl_took(&b, nftnl_nlmsg_build_hdr(nl_next(&b), NFT_MSG_DELTABLE,
	    NFPROTO_UNSPEC, 0, 0), 1);
	nl_took(&b, nftnl_batch_end(nl_next(&b), 0), 0);
	ck_assert_int_eq(nl_send(lab.nft, &b, NULL), 0);
}

struct counts { const char *name; uint64_t packets; };

static int
count_one(const struct nlmsghdr *h, void *arg)
{
	struct counts		*c = arg;
	struct nftnl_obj	*o = nftnl_obj_alloc();

	ck_assert_int_ge(nftnl_obj_nlmsg_parse(h, o), 0);
	if (strcmp(nftnl_obj_get_str(o, NFTNL_OBJ_NAME), c->name) == 0)
		c->packets += nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS);
	nftnl_obj_free(o);
	return 0;
}

/* Packets that a counter has seen, in both families. */
static uint64_t
counted(const char *name)
{
	char		 buf[64] __attribute__((aligned(8)));
	struct counts	 c = { name, 0 };

	ck_assert_int_eq(nl_dump(lab.nft, nftnl_nlmsg_build_hdr(buf,
	    NFT_MSG_GETOBJ, NFPROTO_UNSPEC, 0, 0), count_one, &c), 0);
	return c.packets;
}

/* ---- what is sealed ------------------------------------------------------------------ */

enum fate { OPEN_, SEALED_, HOST_, LOCAL_ };

static const struct target {
	const char	*to;
	enum fate	 fate;
	int		 nobody;	/* no one is there: a control gets no
					 * answer, but an attempt is made */
} targets[] = {
	{ "203.0.113.10", OPEN_, 0 }, { "198.51.100.10", OPEN_, 0 },
	{ "203.0.113.50", OPEN_, 0 },
	{ "2001:db8:1::10", OPEN_, 0 }, { "2001:db8:2::10", OPEN_, 0 },
	{ "64:ff9b::808:808", OPEN_, 0 }, { "2002:808:808::1", OPEN_, 0 },
	{ "fec0::1", OPEN_, 0 },
	{ "0.1.2.3", SEALED_, 0 }, { "10.1.2.3", SEALED_, 0 },
	{ "100.64.1.2", SEALED_, 0 }, { "100.100.100.200", SEALED_, 0 },
	{ "169.254.169.254", SEALED_, 0 }, { "172.16.1.2", SEALED_, 0 },
	{ "192.0.0.8", SEALED_, 0 }, { "192.168.1.2", SEALED_, 0 },
	{ "198.18.1.2", SEALED_, 0 }, { "198.19.254.1", SEALED_, 0 },
	{ "198.19.255.2", SEALED_, 0 },		/* the gateway */
	{ "198.19.255.3", SEALED_, 0 },		/* but for port 53 */
	{ "240.1.2.3", SEALED_, 0 },
	{ "224.0.0.251", SEALED_, 1 }, { "239.1.2.3", SEALED_, 1 },
	{ "255.255.255.255", SEALED_, 1 },
	{ "::ffff:10.1.2.3", SEALED_, 0 },
	{ "::ffff:169.254.169.254", SEALED_, 0 },
	{ "::10.1.2.3", SEALED_, 0 },
	{ "fd12::1", SEALED_, 0 }, { "fd00:ec2::254", SEALED_, 0 },
	{ "fd00::2", SEALED_, 0 },		/* the gateway */
	{ "fe80::2", SEALED_, 0 }, { "ff02::fb", SEALED_, 1 },
	{ "64:ff9b::a9fe:a9fe", SEALED_, 0 },
	{ "64:ff9b:1::a9fe:a9fe", SEALED_, 0 },
	{ "2002:a9fe:a9fe::1", SEALED_, 0 },
	{ "2001:0:808:808::1", SEALED_, 0 },
	/* the host, and what leads to it through a translator */
	{ "203.0.113.2", HOST_, 0 }, { "2001:db8:1::2", HOST_, 0 },
	{ "64:ff9b::cb00:7102", HOST_, 0 }, { "2002:cb00:7102::1", HOST_, 0 },
	{ "203.0.113.255", HOST_, 1 },		/* its broadcast */
	/* the box itself */
	{ "127.0.0.1", LOCAL_, 0 }, { "127.9.9.9", LOCAL_, 0 },
	{ "0.0.0.0", LOCAL_, 0 }, { "198.19.255.100", LOCAL_, 0 },
	{ "::1", LOCAL_, 0 }, { "::", LOCAL_, 0 }, { "fd00::100", LOCAL_, 0 },
};
#define NTARGETS	(sizeof(targets) / sizeof(targets[0]))

#define EXPECT(got, want, what, t) do {					\
	if ((got) != (want)) {						\
		fprintf(stderr, "%s %s: %s, not %s\n", what, (t)->to,	\
		    strerror(got), strerror(want));			\
		return 1;						\
	}								\
} while (0)

static int
is_multicast(const struct target *t)
{
	return t->nobody && strcmp(t->to, "203.0.113.255") != 0 &&
	    strcmp(t->to, "255.255.255.255") != 0;
}

/* With no ruleset: everyone is there, and nothing fails by itself. */
static int
control_one(const struct target *t)
{
	int	e;

	if (t->fate == LOCAL_)		/* nobody serves in the box */
		EXPECT(lab_tcp(t->to, LAB_PORT, NULL), ECONNREFUSED, "tcp",
		    t);
	else if (!t->nobody)
		EXPECT(lab_tcp(t->to, LAB_PORT, NULL), 0, "tcp", t);
	if (t->fate == LOCAL_)
		return 0;
	e = lab_udp(t->to, LAB_PORT);
	EXPECT(e == ETIME && t->nobody ? 0 : e, 0, "udp", t);
	return 0;
}

/* Once in time is enough: a loaded machine takes us aside. */
static int
fate_tcp(const struct target *t)
{
	long	us;
	int	e, tries = 0;

	do
		e = lab_tcp(t->to, LAB_PORT, &us);
	while (us > SOON_US && ++tries < 3);
	if (t->fate == OPEN_)
		EXPECT(e, 0, "tcp", t);
	else if (!is_multicast(t) && !t->nobody)
		EXPECT(e, ECONNREFUSED, "tcp", t);
	if (us > SOON_US) {
		fprintf(stderr, "tcp %s: after %ld us\n", t->to, us);
		return 1;
	}
	return 0;
}

static int
fate_one(const struct target *t)
{
	int	e = fate_tcp(t);

	if (e != 0)
		return e;
	e = lab_udp(t->to, LAB_PORT);
	EXPECT(e, t->fate == OPEN_ ? 0 : t->fate == LOCAL_ ? ECONNREFUSED :
	    EPERM, "udp", t);
	return 0;
}

static int
each_target(void *fn)
{
	int	(*one)(const struct target *) =
		    *(int (**)(const struct target *))fn;
	size_t	i;
	int	bad = 0;

	for (i = 0; i < NTARGETS; i++) {
		if (!lab.v6 && strchr(targets[i].to, ':') != NULL)
			continue;
		bad |= one(&targets[i]);
	}
	return bad;
}

static int
all(int (*one)(const struct target *))
{
	return lab_in(&lab, LAB_BOX, each_target, &one);
}

START_TEST(sealed_ranges)
{
	lab_addr(&lab, LAB_HOST, "box0", "fe80::2/64", 0);
	lab_addr(&lab, LAB_BOX, "tap0", "fe80::100/64", 0);
	/* translators would do this */
	lab_addr(&lab, LAB_INET, "net1", "255.1.2.3/32", 0);
	ck_assert_int_eq(all(control_one), 0);
	egress_on();
	ck_assert_int_eq(all(fate_one), 0);
	ck_assert_uint_gt(counted("sealed"), 20);
	ck_assert_uint_gt(counted("host"), 3);
	ck_assert_uint_eq(counted("limited"), 0);
	ck_assert_uint_eq(counted("protocol"), 0);
	egress_off();
	ck_assert_int_eq(all(control_one), 0);
}
END_TEST

/* The ruleset is there before the first packet, and so before any neighbour
 * is known. */
static int
first_packets(void *arg)
{
	(void)arg;
	if (lab.v6 && lab_tcp("2001:db8:2::10", LAB_PORT, NULL) != 0)
		return 1;
	return lab_tcp("198.51.100.10", LAB_PORT, NULL) == 0 ? 0 : 2;
}

START_TEST(neighbours)
{
	egress_on();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, first_packets, NULL), 0);
	/* what the kernel says by itself is no denial */
	ck_assert_uint_eq(counted("sealed"), 0);
}
END_TEST

static int
dns(void *arg)
{
	const int	*on = arg;
	long		us;

	if (lab_udp("198.19.255.3", LAB_DNS) != 0 ||
	    lab_tcp("198.19.255.3", LAB_DNS, NULL) != 0)
		return 1;
	if (lab_udp("198.19.255.3", LAB_DNS + 1) != (*on ? EPERM : 0))
		return 2;
	if (lab_tcp("198.19.255.3", LAB_DNS + 1, &us) !=
	    (*on ? ECONNREFUSED : 0) || us > SOON_US)
		return 3;
	/* nor port 53 of its neighbours */
	return lab_udp("198.19.255.2", LAB_DNS) == (*on ? EPERM : 0) ? 0 : 4;
}

START_TEST(name_service)
{
	int	on = 0;

	ck_assert_int_eq(lab_in(&lab, LAB_BOX, dns, &on), 0);
	egress_on();
	on = 1;
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, dns, &on), 0);
}
END_TEST

/* ---- from outside ------------------------------------------------------------------ */

static int
listening(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(8080) };
	int			*fd = arg;
	struct pollfd		p;
	int			l = socket(AF_INET, SOCK_STREAM, 0), c;
	char			b;

	if (bind(l, (struct sockaddr *)&a, sizeof(a)) == -1 ||
	    listen(l, 1) == -1 || write(*fd, "r", 1) != 1)
		return 1;
	p = (struct pollfd){ .fd = l, .events = POLLIN };
	if (poll(&p, 1, 2000) != 1)
		return 2;
	c = accept(l, NULL, NULL);
	return read(c, &b, 1) == 1 && write(c, &b, 1) == 1 ? 0 : 3;
}

static int
connecting(void *to)
{
	return lab_tcp(to, 8080, NULL);
}

START_TEST(from_outside)
{
	char	host[] = "198.19.255.100", own[] = "127.0.0.1", b;
	int	i, p[2];
	pid_t	pid;

	ck_assert_int_eq(pipe(p), 0);
	for (i = 0; i < 2; i++) {
		pid = lab_start(&lab, LAB_BOX, listening, &p[1]);
		ck_assert_int_eq(read(p[0], &b, 1), 1);
		if (i == 1) {
			egress_on();
			ck_assert_int_eq(lab_in(&lab, LAB_HOST, connecting,
			    host), ETIME);
			ck_assert_int_eq(lab_in(&lab, LAB_BOX, connecting,
			    own), 0);
		} else
			ck_assert_int_eq(lab_in(&lab, LAB_HOST, connecting,
			    host), 0);
		ck_assert_int_eq(lab_result(pid), 0);
	}
}
END_TEST

/* ---- new connections ------------------------------------------------------------------ */

#define ATTEMPTS	3000

struct syns { unsigned int through, refused; long us; };

static int
storm(void *arg)
{
	struct syns		*s = arg;
	struct sockaddr_in	 a = { .sin_family = AF_INET,
				     .sin_port = htons(LAB_PORT) };
	struct linger		 rst = { 1, 0 };
	long			 t0 = lab_us();
	int			 fd, i;

	(void)inet_pton(AF_INET, "203.0.113.10", &a.sin_addr);
	for (i = 0; i < ATTEMPTS; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
			s->through++;
		else if (errno == ECONNREFUSED)
			s->refused++;
		else
			return 1;
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &rst,
		    sizeof(rst));
		close(fd);
	}
	s->us = lab_us() - t0;
	return 0;
}

static int
storm_told(void *arg)
{
	struct syns	s = { 0, 0, 0 };
	int		*fd = arg, r = storm(&s);

	return r != 0 ? r : write(*fd, &s, sizeof(s)) != sizeof(s);
}

static struct syns
storm_run(void)
{
	struct syns	s;
	int		p[2];

	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, storm_told, &p[1]), 0);
	ck_assert_int_eq(read(p[0], &s, sizeof(s)), sizeof(s));
	close(p[0]);
	close(p[1]);
	return s;
}

static int
still_denied(void *arg)
{
	(void)arg;
	return lab_tcp("10.1.2.3", LAB_PORT, NULL) == ECONNREFUSED &&
	    lab_udp("203.0.113.10", LAB_PORT) == 0 ? 0 : 1;
}

START_TEST(connection_rate)
{
	struct syns	s = storm_run();
	double		most;

	ck_assert_uint_eq(s.through, ATTEMPTS);		/* the control */
	egress_on();
	s = storm_run();
	most = EGRESS_SYN_BURST + EGRESS_SYN_RATE * ((double)s.us / 1e6) + 5;
	printf("new connections: %u of %u in %ld ms\n", s.through, ATTEMPTS,
	    s.us / 1000);
	ck_assert_uint_ge(s.through, EGRESS_SYN_BURST);
	ck_assert_uint_le(s.through, (unsigned int)most);
	ck_assert_uint_eq(s.through + s.refused, ATTEMPTS);
	ck_assert_uint_eq(counted("limited"), s.refused);
	/* and what needs no new connection goes on */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, still_denied, NULL), 0);
}
END_TEST

/* ---- what the kernel lists -------------------------------------------------------------- */

static void
element(enum rs_set set, const char *text, int add, int want)
{
	struct nl_batch	b;
	struct spans	s;
	struct prefix	p;
	int		r;

	ck_assert_int_eq(prefix_parse(text, &p), 0);
	spans_init(&s, p.len);
	spans_add(&s, &p);
	nl_start(&b);
	nl_took(&b, nftnl_batch_begin(nl_next(&b), 0), 0);
	rs_elements(&b, set, &s, add);
	nl_took(&b, nftnl_batch_end(nl_next(&b), 0), 0);
	r = nl_send(lab.nft, &b, NULL) == 0 ? 0 : errno;
	ck_assert_msg(r == want, "%s: %s", text, strerror(r));
	spans_free(&s);
}

START_TEST(listed)
{
	struct ruleset_seen	one, two;

	egress_on();
	ck_assert_int_eq(ruleset_read(lab.nft, &one), 0);
	/* one address too few, or too many: not whole, of the same hash */
	element(RS_HOST4, "203.0.113.2", 0, 0);
	ck_assert_int_eq(ruleset_read(lab.nft, &two), 0);
	ck_assert_str_eq(one.hash, two.hash);
	ck_assert_str_ne(one.hosts, two.hosts);
	ck_assert_int_eq(is_whole(), 0);
	element(RS_HOST4, "203.0.113.2", 1, 0);
	ck_assert_int_eq(is_whole(), 1);
	element(RS_HOST6, "2001:db8:9::/64", 1, 0);
	ck_assert_int_eq(is_whole(), 0);
	element(RS_HOST6, "2001:db8:9::/64", 0, 0);
	ck_assert_int_eq(is_whole(), 1);
	/* what is sealed for good the kernel itself keeps as it is */
	element(RS_SEALED4, "203.0.113.77", 1, EBUSY);
	element(RS_SEALED4, "10.0.0.0/8", 0, EBUSY);
	ck_assert_int_eq(is_whole(), 1);
}
END_TEST

START_TEST(to_and_fro)
{
	struct ruleset_seen	seen;
	int			i;

	hosts_now();
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_SEALED), 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(ruleset_switch(lab.nft, RULESET_SEALED,
		    RULESET_EGRESS), 0);
		ck_assert_int_eq(is_whole(), 1);
		ck_assert_int_eq(ruleset_switch(lab.nft, RULESET_EGRESS,
		    RULESET_NONE), 0);
		ck_assert_int_eq(ruleset_read(lab.nft, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_NONE), 1);
		ck_assert_int_eq(ruleset_switch(lab.nft, RULESET_NONE,
		    RULESET_EGRESS), 0);
		ck_assert_int_eq(ruleset_switch(lab.nft, RULESET_EGRESS,
		    RULESET_SEALED), 0);
		ck_assert_int_eq(ruleset_read(lab.nft, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_SEALED), 1);
	}
}
END_TEST

/* Without the host's addresses there is no egress. */
START_TEST(hosts_unknown)
{
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_SEALED), 0);
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_EGRESS), -1);
	ck_assert_int_eq(errno, ENODATA);
	hosts_now();
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_EGRESS), 0);
	ruleset_hosts_lost();
	ck_assert_int_eq(is_whole(), 0);
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_EGRESS), -1);
	ck_assert_int_eq(errno, ENODATA);
}
END_TEST

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
	char			 id[ULID_LEN + 1];
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
	} while (strcmp(seen.hosts, was.hosts) == 0);
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
	ck_assert_int_eq(hostaddr_heard(buf, 3), 1);
	ck_assert_int_eq(hostaddr_heard(buf, 0), 0);
}
END_TEST

/* Routes of others do not make netd look, and are not lost track of. */
START_TEST(nothing_new)
{
	struct hosts	h;

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
	lab_addrs(&lab, LAB_HOST, "lo", "203.0.128.0", THOUSAND, 0);
	ck_assert_int_eq(hostaddr_ask(ask, &h), -1);
	ck_assert_int_eq(errno, E2BIG);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("egress");
	TCase	*t = tcase_create("egress");
	SRunner	*r;
	int	 failed;

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, sealed_ranges);
	tcase_add_test(t, neighbours);
	tcase_add_test(t, name_service);
	tcase_add_test(t, from_outside);
	tcase_add_test(t, connection_rate);
	tcase_add_test(t, listed);
	tcase_add_test(t, to_and_fro);
	tcase_add_test(t, hosts_unknown);
	tcase_add_test(t, followed);
	tcase_add_test(t, open_connections);
	tcase_add_test(t, thousand);
	tcase_add_test(t, too_many);
	tcase_add_test(t, two_hundred);
	tcase_add_test(t, made_anew);
	tcase_add_test(t, sealed_alone);
	tcase_add_test(t, what_is_news);
	tcase_add_test(t, nothing_new);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
