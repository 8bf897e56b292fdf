/*
 * egress_test.c: the ruleset of `egress' in a small internet: what is sealed
 * and what is not, each with its control; what opens a connection; what the
 * kernel lists.
 *
 * slirp4netns is not part of it: the box reaches the rest by routes.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egress_flow.h"
#include "egress_rig.h"

#define SOON_US	50000			/* a refusal */

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

/* ---- what is sealed -------------------------------------------------- */

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
	{ "fec0::1", SEALED_, 0 }, { "100::1", SEALED_, 0 },
	{ "5f00::1", SEALED_, 0 }, { "2001:2::1", SEALED_, 0 },
	{ "::ffff:0:10.1.2.3", SEALED_, 0 },
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

/* ---- from outside ---------------------------------------------------- */

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

/* From a public address: an answer to a sealed one would not get through. */
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
			ck_assert_int_eq(lab_in(&lab, LAB_INET, connecting,
			    host), ETIME);
			ck_assert_int_eq(lab_in(&lab, LAB_BOX, connecting,
			    own), 0);
		} else
			ck_assert_int_eq(lab_in(&lab, LAB_INET, connecting,
			    host), 0);
		ck_assert_int_eq(lab_result(pid), 0);
	}
}
END_TEST

/* ---- new connections ------------------------------------------------- */

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

#define COUNT	"/proc/sys/net/netfilter/nf_conntrack_count"

/* Connections that the kernel keeps track of in the process's network. */
static int
tracked(void *arg)
{
	FILE	*f = fopen(COUNT, "re");
	int	n = 0;

	(void)arg;
	if (f == NULL)
		return errno == ENOENT ? 0 : 100;
	if (fscanf(f, "%d", &n) != 1)
		n = 101;
	fclose(f);
	return n > 99 ? 99 : n;
}

/* A table and a chain for what leaves, with a rule that looks at the past. */
static void
track(int nft)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nftnl_chain	*ch = nftnl_chain_alloc();
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct nftnl_expr	*e = nftnl_expr_alloc("ct");
	struct nl_batch		 b;
	struct nlmsghdr		*h;

	nl_start(&b);
	nl_took(&b, nftnl_batch_begin(nl_next(&b), 0), 0);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, "t");
	h = nftnl_nlmsg_build_hdr(nl_next(&b), NFT_MSG_NEWTABLE, NFPROTO_IPV4,
	    NLM_F_CREATE, 0);
	nftnl_table_nlmsg_build_payload(h, t);
	nl_took(&b, h, 1);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, "t");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, "c");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(ch, NFTNL_CHAIN_PRIO, 0);
	h = nftnl_nlmsg_build_hdr(nl_next(&b), NFT_MSG_NEWCHAIN, NFPROTO_IPV4,
	    NLM_F_CREATE, 0);
	nftnl_chain_nlmsg_build_payload(h, ch);
	nl_took(&b, h, 1);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, "t");
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, "c");
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_STATE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, NFT_REG_1);
	nftnl_rule_add_expr(r, e);
	h = nftnl_nlmsg_build_hdr(nl_next(&b), NFT_MSG_NEWRULE, NFPROTO_IPV4,
	    NLM_F_CREATE | NLM_F_APPEND, 0);
	nftnl_rule_nlmsg_build_payload(h, r);
	nl_took(&b, h, 1);
	nftnl_table_free(t);
	nftnl_chain_free(ch);
	nftnl_rule_free(r);
	nl_took(&b, nftnl_batch_end(nl_next(&b), 0), 0);
	ck_assert_msg(nl_send(nft, &b, NULL) == 0, "%s", strerror(errno));
}

/* To nobody, but it is sent. */
static int
one_packet(void *arg)
{
	(void)arg;
	return lab_udp("203.0.113.10", LAB_PORT + 1) == ECONNREFUSED ? 0 : 1;
}

/* What the count is good for; where nothing is loaded that tracks, it is not
 * loaded for this. */
static void
tracked_control(void)
{
	if (access(COUNT, F_OK) == -1) {
		printf("no connection tracking here\n");
		return;
	}
	egress_off();
	track(lab.nft);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, one_packet, NULL), 0);
	ck_assert_int_gt(lab_in(&lab, LAB_BOX, tracked, NULL), 0);
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
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, tracked, NULL), 0);
	/* and what needs no new connection goes on */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, still_denied, NULL), 0);
	tracked_control();
}
END_TEST

/* Packets to one of port 53, as fast as it goes; how many were sent. */
#define QUERIES	3000

static int
ask_names(void *arg)
{
	struct sockaddr_in	*to = arg;
	int			 fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int			 i, sent = 0;

	if (fd == -1)
		return -1;
	for (i = 0; i < QUERIES; i++)	/* a refusal is an error of sendto */
		sent += sendto(fd, "?", 1, 0, (struct sockaddr *)to,
		    sizeof(*to)) == 1;
	close(fd);
	return sent;
}

/* Of the resolver, or of another name server. */
START_TEST(name_rate)
{
	struct sockaddr_in	to = { .sin_family = AF_INET,
				    .sin_port = htons(53) };
	uint64_t		n[RS_COUNTERS];
	uint64_t		t0 = mono_ms();
	double			most;

	ck_assert_int_eq(inet_pton(AF_INET, _i == 0 ? EGRESS_DNS4 :
	    "203.0.113.10", &to.sin_addr), 1);
	egress_on();
	(void)lab_in(&lab, LAB_BOX, ask_names, &to);
	most = EGRESS_NAMES_BURST + EGRESS_NAMES_RATE *
	    ((double)(mono_ms() - t0) / 1e3) + 5;
	ck_assert_int_eq(ruleset_counted(lab.nft, n), 0);
	ck_assert_uint_ge(n[RS_NAMES], EGRESS_NAMES_BURST);
	ck_assert_uint_le(n[RS_NAMES], (uint64_t)most);
	ck_assert_uint_eq(n[RS_NAMES] + n[DENIED_LIMITED], QUERIES);
	ck_assert_uint_eq(n[RS_OPENED], 0);
	/* other ports are not meant */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, still_denied, NULL), 0);
}
END_TEST

/* ---- between two rulesets -------------------------------------------- */

#define UNHEARD	(LAB_PORT + 9)		/* nobody else uses it */
#define ROUNDS	150

static volatile unsigned int	*arrived;	/* shared with the children */

static int
count_arrivals(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(UNHEARD) };
	int			fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char			b;

	(void)arg;
	if (fd == -1 || bind(fd, (struct sockaddr *)&a, sizeof(a)) == -1)
		return 1;
	for (;;)
		if (recv(fd, &b, 1, 0) == 1)
			(*arrived)++;
}

/* As fast as it goes, to what no ruleset lets it reach. */
static int
send_denied(void *arg)
{
	static const char *const	to[] = { "10.1.2.3",
					    "169.254.169.254" };
	struct sockaddr_in		a = { .sin_family = AF_INET,
					    .sin_port = htons(UNHEARD) };
	int				fd = socket(AF_INET, SOCK_DGRAM |
					    SOCK_CLOEXEC, 0);
	unsigned int			i;

	(void)arg;
	for (i = 0; fd != -1; i++) {
		if (inet_pton(AF_INET, to[i % 2], &a.sin_addr) != 1)
			return 1;
		(void)sendto(fd, "?", 1, MSG_DONTWAIT, (struct sockaddr *)&a,
		    sizeof(a));
	}
	return 1;
}

static void
stop_child(pid_t pid)
{
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Chains that go and come at once let some through that neither takes. */
START_TEST(nothing_between)
{
	pid_t	there, here;
	int	i;

	arrived = mmap(NULL, sizeof(*arrived), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne((void *)(uintptr_t)arrived, MAP_FAILED);
	there = lab_start(&lab, LAB_INET, count_arrivals, NULL);
	here = lab_start(&lab, LAB_BOX, send_denied, NULL);
	for (i = 0; i < 500 && *arrived == 0; i++)	/* the control */
		(void)poll(NULL, 0, 10);
	ck_assert_uint_gt(*arrived, 0);
	egress_on();
	(void)poll(NULL, 0, 100);		/* what was on its way */
	*arrived = 0;
	for (i = 0; i < ROUNDS; i++) {
		ck_assert_int_eq(ruleset_renew(lab.nft, RULESET_NONE), 0);
		ck_assert_int_eq(ruleset_renew(lab.nft, RULESET_EGRESS), 0);
	}
	ck_assert_int_eq(is_whole(), 1);
	(void)poll(NULL, 0, 100);
	stop_child(here);
	stop_child(there);
	ck_assert_msg(*arrived == 0, "%u arrived", *arrived);
	(void)munmap((void *)(uintptr_t)arrived, sizeof(*arrived));
}
END_TEST

#define SYNTH	"198.18.3.4"

/* What the box has bound in the place of the relay and the name service. */
static int
count_own(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	struct pollfd		p[2];
	char			b;
	int			i;

	(void)arg;
	for (i = 0; i < 2; i++) {
		a.sin_port = htons(i == 0 ? 53 : UNHEARD);
		if (inet_pton(AF_INET, i == 0 ? EGRESS_DNS4 : SYNTH,
		    &a.sin_addr) != 1)
			return 1;
		p[i].fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		p[i].events = POLLIN;
		if (bind(p[i].fd, (struct sockaddr *)&a, sizeof(a)) == -1)
			return 1;
	}
	for (;;) {
		(void)poll(p, 2, -1);
		for (i = 0; i < 2; i++)
			if (recv(p[i].fd, &b, 1, MSG_DONTWAIT) == 1)
				arrived[i]++;
	}
}

static int
send_own(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	int			fd = socket(AF_INET, SOCK_DGRAM |
				    SOCK_CLOEXEC, 0);
	unsigned int		i;

	(void)arg;
	for (i = 0; fd != -1; i++) {
		a.sin_port = htons(i % 2 == 0 ? 53 : UNHEARD);
		if (inet_pton(AF_INET, i % 2 == 0 ? EGRESS_DNS4 : SYNTH,
		    &a.sin_addr) != 1)
			return 1;
		(void)sendto(fd, "?", 1, MSG_DONTWAIT, (struct sockaddr *)&a,
		    sizeof(a));
	}
	return 1;
}

/* A table that no other socket may change: what follows the guard fails. */
static void
own_table(int fd)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nl_batch		b;
	struct nlmsghdr		*h;

	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_IPV4);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, RS_TABLE);
	nftnl_table_set_u32(t, NFTNL_TABLE_FLAGS, NFT_TABLE_F_OWNER);
	nl_start(&b);
	nl_took(&b, nftnl_batch_begin(nl_next(&b), 0), 0);
	h = nftnl_nlmsg_build_hdr(nl_next(&b), NFT_MSG_NEWTABLE,
	    NFPROTO_IPV4, NLM_F_CREATE, 0);
	nftnl_table_nlmsg_build_payload(h, t);
	nl_took(&b, h, 1);
	nl_took(&b, nftnl_batch_end(nl_next(&b), 0), 0);
	ck_assert_int_eq(nl_send(fd, &b, NULL), 0);
	nftnl_table_free(t);
}

/* In the box, beside them: what is its own is as it was. */
static int
inner_goes_on(void *arg)
{
	static struct flow	f[FLOWS];
	int			i, n = flows_open(f, *(int *)arg);

	while (n-- > 0)
		for (i = 0; i < 10; i++)
			if (flow_step(&f[n]) == -1)
				return 1;
	return 0;
}

/* What guards, by itself. */
static void
guard_holds(void)
{
	int	own = lab_log(lab.netns[LAB_BOX]);

	egress_off();
	own_table(own);
	ck_assert_int_eq(ruleset_renew(lab.nft, RULESET_NONE), -1);
	ck_assert_int_eq(errno, EPERM);
	(void)poll(NULL, 0, 100);
	arrived[0] = arrived[1] = 0;
	(void)poll(NULL, 0, 100);
	ck_assert_msg(arrived[0] == 0 && arrived[1] == 0,
	    "%u and %u arrived behind the guard", arrived[0], arrived[1]);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, inner_goes_on, &lab.v6), 0);
	close(own);
}

/* Nor does a box come to what it has bound in the place of others. */
START_TEST(nothing_of_others)
{
	pid_t	there, here;
	int	i;

	arrived = mmap(NULL, 2 * sizeof(*arrived), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne((void *)(uintptr_t)arrived, MAP_FAILED);
	ck_assert_int_eq(link_routes(lab.route[LAB_BOX]), 0);
	ck_assert_int_eq(link_relay(lab.route[LAB_BOX], 1), 0);
	there = lab_start(&lab, LAB_BOX, count_own, NULL);
	here = lab_start(&lab, LAB_BOX, send_own, NULL);
	for (i = 0; i < 500 && (arrived[0] == 0 || arrived[1] == 0); i++)
		(void)poll(NULL, 0, 10);	/* the control */
	ck_assert_uint_gt(arrived[0], 0);
	ck_assert_uint_gt(arrived[1], 0);
	guard_holds();
	ck_assert_int_eq(ruleset_make(lab.nft, RULESET_NONE), 0);
	(void)poll(NULL, 0, 100);
	arrived[0] = arrived[1] = 0;
	for (i = 0; i < 10 * ROUNDS; i++)
		ck_assert_int_eq(ruleset_renew(lab.nft, i % 2 == 0 ?
		    RULESET_ALLOW : RULESET_NONE), 0);
	(void)poll(NULL, 0, 100);
	stop_child(here);
	stop_child(there);
	ck_assert_msg(arrived[0] == 0 && arrived[1] == 0, "%u and %u arrived",
	    arrived[0], arrived[1]);
	(void)munmap((void *)(uintptr_t)arrived, 2 * sizeof(*arrived));
}
END_TEST

/* 127.0.0.1 by a way out, as a socket that is bound to it would have it. */
static int
by_the_tap(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(UNHEARD),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char			dev[IF_NAMESIZE];
	int			fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)arg;
	if (fd == -1 || if_indextoname(2, dev) == NULL ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, dev,
	    (socklen_t)strlen(dev) + 1) == -1)
		return 250;
	return sendto(fd, "?", 1, 0, (struct sockaddr *)&a, sizeof(a)) == 1 ?
	    0 : errno;
}

START_TEST(loopback_by_the_tap)
{
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, by_the_tap, NULL), 0);
	egress_on();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, by_the_tap, NULL), EPERM);
	ck_assert_int_eq(ruleset_renew(lab.nft, RULESET_NONE), 0);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, by_the_tap, NULL), EPERM);
}
END_TEST

/* ---- what the kernel lists ------------------------------------------- */

START_TEST(listed)
{
	struct ruleset_seen	one, two;

	egress_on();
	ck_assert_int_eq(ruleset_read(lab.nft, &one), 0);
	/* one address too few, or too many: not whole, of the same hash */
	element(RS_HOST4, "203.0.113.2", 0, 0);
	ck_assert_int_eq(ruleset_read(lab.nft, &two), 0);
	ck_assert_str_eq(one.hash, two.hash);
	ck_assert_str_ne(one.elements, two.elements);
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
	tcase_add_checked_fixture(t, rig_setup, rig_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, sealed_ranges);
	tcase_add_test(t, neighbours);
	tcase_add_test(t, name_service);
	tcase_add_test(t, from_outside);
	tcase_add_test(t, connection_rate);
	tcase_add_test(t, nothing_between);
	tcase_add_test(t, nothing_of_others);
	tcase_add_test(t, loopback_by_the_tap);
	tcase_add_loop_test(t, name_rate, 0, 2);
	tcase_add_test(t, listed);
	tcase_add_test(t, to_and_fro);
	tcase_add_test(t, hosts_unknown);
	suite_add_tcase(s, t);
	suite_add_tcase(s, change_tests());
	suite_add_tcase(s, denial_tests());
	suite_add_tcase(s, follow_tests());
	suite_add_tcase(s, slow_tests());
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
