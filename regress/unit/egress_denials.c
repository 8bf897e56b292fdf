/*
 * egress_denials.c: what the lab's box is denied is told: which destination,
 * by which rule, within a second; and however much it is, what is held and
 * said of it is bounded, and no other box's is lost in it.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "egress_rig.h"
#include "log.h"
#include "ulid.h"
#include "xmalloc.h"

#define WINDOW_MS	10000L		/* denials.c */
#define ENTRIES		32
#define IN_WINDOW	(2 * ENTRIES + DENIED_RULESET)	/* messages */
#define PUBLIC		"203.0.113.10"

/* ---- what apid is told ----------------------------------------------- */

static struct told {
	struct msg_net_denied	 m;
	uint8_t			 addr[16];
	long			 at_us;
} told[4096];
static unsigned int	ntold;
static int		deaf;		/* apid takes nothing */

int
netd_tell(unsigned int type, const void *body)
{
	struct told	*t = &told[ntold];
	uint8_t		 buf[512];

	ck_assert_uint_eq(type, MSG_NET_DENIED);
	if (deaf)
		return -1;
	ck_assert_uint_lt(ntold++, sizeof(told) / sizeof(told[0]));
	t->m = *(const struct msg_net_denied *)body;
	/* within the bounds of the table, which end netd if it is not */
	ck_assert_int_gt(wire_encode(&wire_msg_net_denied, body, buf,
	    sizeof(buf)), 0);
	memcpy(t->addr, t->m.address.data, t->m.address.len);
	t->at_us = lab_us();
	return 0;
}

static struct net	*box;

static struct net *
with_denials(const char *id, int netns, int nft)
{
	struct net	*n = live_net(id, netns, nft);

	ck_assert_ptr_ne(n->denials = denials_new(n, lab_log(netns)), NULL);
	return n;
}

static void
denials_live(void)
{
	ntold = 0;
	deaf = 0;
	live();
	box = with_denials(ID(1), fcntl(lab.netns[LAB_BOX], F_DUPFD_CLOEXEC,
	    0), fcntl(lab.nft, F_DUPFD_CLOEXEC, 0));
}

/* The sums of what is told of this box, by rule; -1: of all rules. */
static uint64_t
sum(const char *id, int rule)
{
	uint64_t	n = 0;
	unsigned int	i;

	for (i = 0; i < ntold; i++)
		if (strcmp(told[i].m.id, id) == 0 &&
		    (rule == -1 || told[i].m.rule == (uint64_t)rule))
			n += told[i].m.count;
	return n;
}

static const struct told *
find(const char *id, const char *to, unsigned int proto, int port, int rule)
{
	uint8_t		addr[16];
	size_t		len = strchr(to, ':') != NULL ? 16 : 4;
	unsigned int	i;

	ck_assert_int_eq(inet_pton(len == 16 ? AF_INET6 : AF_INET, to, addr),
	    1);
	for (i = 0; i < ntold; i++)
		if (strcmp(told[i].m.id, id) == 0 &&
		    told[i].m.address.len == len &&
		    memcmp(told[i].addr, addr, len) == 0 &&
		    told[i].m.protocol == proto &&
		    told[i].m.port == (uint64_t)port &&
		    told[i].m.rule == (uint64_t)rule)
			return &told[i];
	return NULL;
}

/* ---- one attempt ----------------------------------------------------- */

struct attempt {
	const char	*to;
	int		 proto, port;
	int		 want;		/* errno */
	int		 rule;		/* -1: it is not denied */
};

/* One byte in a protocol of whatever number, as root of the host may. */
static int
raw(const struct attempt *a)
{
	struct sockaddr_in	 in = { .sin_family = AF_INET };
	struct sockaddr_in6	 in6 = { .sin6_family = AF_INET6 };
	int			 v6 = strchr(a->to, ':') != NULL, fd, e;
	const uint8_t		 echo[8] = { v6 ? 128 : 8 };

	(void)inet_pton(AF_INET, a->to, &in.sin_addr);
	(void)inet_pton(AF_INET6, a->to, &in6.sin6_addr);
	fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC,
	    a->proto);
	if (fd == -1)
		return errno;
	e = sendto(fd, echo, sizeof(echo), 0, v6 ?
	    (const struct sockaddr *)&in6 : (const struct sockaddr *)&in,
	    v6 ? sizeof(in6) : sizeof(in)) == -1 ? errno : 0;
	close(fd);
	return e;
}

static int
attempt(void *arg)
{
	const struct attempt	*a = arg;
	long			 t0 = lab_us(), us;
	int			 e;

	e = a->proto == IPPROTO_TCP ? lab_tcp(a->to, a->port, NULL) :
	    a->proto == IPPROTO_UDP ? lab_udp(a->to, a->port) : raw(a);
	us = lab_us() - t0;
	if (e == a->want && us < 400000) /* none waits for half a second */
		return 0;
	fprintf(stderr, "%s: %s, not %s, after %ld us\n", a->to, strerror(e),
	    strerror(a->want), us);
	return 1;
}

static const struct attempt	attempts[] = {
	{ "169.254.169.254", IPPROTO_TCP, 80, ECONNREFUSED, DENIED_SEALED },
	{ "10.1.2.3", IPPROTO_UDP, 53, EPERM, DENIED_SEALED },
	{ "192.168.1.2", IPPROTO_ICMP, 0, EPERM, DENIED_SEALED },
	{ "203.0.113.2", IPPROTO_TCP, 22, ECONNREFUSED, DENIED_HOST },
	{ "203.0.113.2", IPPROTO_UDP, 161, EPERM, DENIED_HOST },
	{ "203.0.113.10", 253, 0, EPERM, DENIED_PROTOCOL },
	{ "203.0.113.10", IPPROTO_TCP, LAB_PORT, 0, -1 },
	{ "203.0.113.10", IPPROTO_UDP, LAB_PORT, 0, -1 },
	{ "203.0.113.10", IPPROTO_ICMP, 0, 0, -1 },
	{ "fd12::1", IPPROTO_TCP, 443, ECONNREFUSED, DENIED_SEALED },
	{ "64:ff9b::a9fe:a9fe", IPPROTO_TCP, 80, ECONNREFUSED,
	    DENIED_SEALED },
	{ "fd00:ec2::254", IPPROTO_UDP, 53, EPERM, DENIED_SEALED },
	{ "fd12::1", IPPROTO_ICMPV6, 0, EPERM, DENIED_SEALED },
	{ "2001:db8:1::2", IPPROTO_TCP, 22, ECONNREFUSED, DENIED_HOST },
	{ "2001:db8:1::10", 253, 0, EPERM, DENIED_PROTOCOL },
	{ "2001:db8:1::10", IPPROTO_TCP, LAB_PORT, 0, -1 },
};
#define NATTEMPTS	(sizeof(attempts) / sizeof(attempts[0]))

/* Pumps until so many messages are there, or ms have gone by. */
static void
await_told(unsigned int n, long ms)
{
	long	t0 = lab_us();

	while (ntold < n && lab_us() - t0 < ms * 1000)
		pump(2000);
}

/* Each alone: what is denied is told once, and what is open is not. */
START_TEST(told_at_once)
{
	const struct attempt	*a;
	const struct told	*t;
	struct attempt		 copy;
	uint64_t		 ms;
	unsigned int		 i, was;
	long			 t0;

	denials_live();
	for (i = 0; i < NATTEMPTS; i++) {
		a = &attempts[i];
		if (!lab.v6 && strchr(a->to, ':') != NULL)
			continue;
		was = ntold;
		ms = now_ms();
		copy = *a;
		t0 = lab_us();
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, attempt, &copy), 0);
		await_told(was + 1, a->rule == -1 ? 100 : 1000);
		if (a->rule == -1) {
			ck_assert_msg(ntold == was, "%s is told", a->to);
			continue;
		}
		ck_assert_msg(ntold == was + 1, "%s: %u messages", a->to,
		    ntold - was);
		t = find(box->id, a->to, (unsigned int)a->proto, a->port,
		    a->rule);
		ck_assert_msg(t == &told[was], "%s is not what is told",
		    a->to);
		ck_assert_uint_eq(t->m.count, 1);
		ck_assert_uint_ge(t->m.since_ms, ms);
		ck_assert_uint_le(t->m.since_ms, now_ms());
		printf("denied %s: told after %ld us\n", a->to,
		    t->at_us - t0);
	}
	net_drop(box);
}
END_TEST

/* ---- many ------------------------------------------------------------ */

#define FLOOD	2000000
#define REPEATS	7

static int
repeated(void *arg)
{
	int	i;

	(void)arg;
	for (i = 0; i < REPEATS; i++)
		if (lab_udp("10.1.2.3", 53) != EPERM)
			return 1;
	return 0;
}

/* Once when it is seen first, once with how often it was besides. */
START_TEST(told_twice)
{
	denials_live();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, repeated, NULL), 0);
	await_told(1, 1000);
	ck_assert_uint_eq(ntold, 1);
	await_told(2, WINDOW_MS + 2000);
	ck_assert_uint_eq(ntold, 2);
	ck_assert_ptr_eq(find(box->id, "10.1.2.3", IPPROTO_UDP, 53,
	    DENIED_SEALED), &told[0]);
	ck_assert_mem_eq(told[1].addr, told[0].addr, 4);
	ck_assert_uint_eq(told[1].m.port, 53);
	ck_assert_uint_eq(told[1].m.since_ms, told[0].m.since_ms);
	ck_assert_uint_eq(told[1].m.count, REPEATS - 1);
	/* the next window tells it anew, at once */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, repeated, NULL), 0);
	await_told(3, 1000);
	ck_assert_uint_eq(told[2].m.count, 1);
	net_drop(box);
	/* what it owed is told when it ends */
	ck_assert_uint_eq(sum(ID(1), -1), 2 * REPEATS);
}
END_TEST

/* As many refused packets as there can be, each to another destination. */
static int
flood(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	int			*ready = arg, fd, i;

	if ((fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return 1;
	for (i = 0; i < FLOOD; i++) {
		a.sin_addr.s_addr = htonl(0x0a000000U | (uint32_t)i);
		a.sin_port = htons((uint16_t)(1 + i % 60000));
		if (sendto(fd, "x", 1, 0, (struct sockaddr *)&a,
		    sizeof(a)) != -1 || errno != EPERM)
			return 2;
		if (i == FLOOD / 10 && write(*ready, "f", 1) != 1)
			return 3;
	}
	return 0;
}

static int
lone_attempt(void *arg)
{
	ck_assert_int_eq(setns(*(int *)arg, CLONE_NEWNET), 0);
	return lab_tcp("169.254.169.254", 80, NULL) == ECONNREFUSED ? 0 : 1;
}

static long
rss_kib(void)
{
	char	line[128];
	long	kib = -1;
	FILE	*f = fopen("/proc/self/status", "re");

	ck_assert_ptr_ne(f, NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	(void)fclose(f);
	return kib;
}

/*
 * Beside a box that makes millions, another's one is told within a second;
 * they cost a window's messages for each window, no memory, and their sum is
 * what the kernel counted.
 */
START_TEST(flooded)
{
	struct net		*other;
	const struct told	*t;
	uint64_t		 total[RS_COUNTERS];
	pid_t			 pid;
	long			 t0, us, rss;
	int			 p[2], nft, netns = lab_lonely(&nft);
	char			 b;
	unsigned int		 of_box = 0, i, windows;

	denials_live();
	other = with_denials(ID(2), netns, nft);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	pump(1000);
	rss = rss_kib();
	t0 = lab_us();
	pid = lab_start(&lab, LAB_BOX, flood, &p[1]);
	ck_assert_int_eq(read(p[0], &b, 1), 1);		/* in the midst */
	us = lab_us();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, lone_attempt, &netns), 0);
	do
		pump(2000);
	while ((t = find(ID(2), "169.254.169.254", IPPROTO_TCP, 80,
	    DENIED_SEALED)) == NULL && lab_us() - us < 1000000);
	ck_assert_ptr_ne(t, NULL);
	printf("flood: the other box's is told after %ld us\n",
	    t->at_us - us);
	ck_assert_int_eq(lab_result(pid), 0);
	us = lab_us() - t0;
	/* until the window of the last one has ended */
	while (sum(ID(1), DENIED_SEALED) < FLOOD &&
	    lab_us() - t0 < us + 2 * WINDOW_MS * 1000)
		pump(50000);
	windows = (unsigned int)((lab_us() - t0) / (WINDOW_MS * 1000)) + 1;
	for (i = 0; i < ntold; i++)
		of_box += strcmp(told[i].m.id, ID(1)) == 0;
	printf("flood: %u denied in %ld ms: %u messages in %u windows, "
	    "%ld KiB more\n", FLOOD, us / 1000, of_box, windows,
	    rss_kib() - rss);
	ck_assert_uint_le(of_box, IN_WINDOW * windows);
	ck_assert_uint_gt(of_box, ENTRIES);
	ck_assert_int_lt(rss_kib() - rss, 512);
	denials_total(box->denials, total);
	ck_assert_uint_eq(total[DENIED_SEALED], FLOOD);
	ck_assert_uint_eq(sum(ID(1), -1), FLOOD);
	ck_assert_uint_eq(sum(ID(2), -1), 1);
	net_drop(box);
	net_drop(other);
	ck_assert_uint_eq(sum(ID(1), -1), FLOOD);	/* nothing twice */
}
END_TEST

/* The kernel's own bound: what it logs while nobody reads. */
static int
short_flood(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET };
	int			fd, i;

	if ((fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return 1;
	for (i = 0; i < *(int *)arg; i++) {
		a.sin_addr.s_addr = htonl(0x0a000000U | (uint32_t)i);
		a.sin_port = htons(9);
		(void)sendto(fd, "x", 1, 0, (struct sockaddr *)&a,
		    sizeof(a));
	}
	return 0;
}

static void
count_it(const struct denial *d, void *arg)
{
	(void)d;
	++*(unsigned int *)arg;
}

START_TEST(kernel_bound)
{
	int		log, n = 20000;
	unsigned int	logged = 0;
	uint64_t	denied[RS_COUNTERS];
	long		us;

	egress_on();
	log = lab_log(lab.netns[LAB_BOX]);
	ck_assert_int_eq(nflog_bind(log), 0);
	us = lab_us();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	us = lab_us() - us;
	ck_assert_int_eq(nflog_read(log, 100000, count_it, &logged), 0);
	ck_assert_uint_ge(logged, EGRESS_TELL_BURST);
	ck_assert_uint_le(logged, (unsigned int)(EGRESS_TELL_BURST + 1 +
	    us * EGRESS_TELL_RATE / 1000000));
	ck_assert_int_eq(ruleset_counted(lab.nft, denied), 0);
	ck_assert_uint_eq(denied[DENIED_SEALED], 20000);
	close(log);
}
END_TEST

/* More connections than a box may open: what is over is told as such. */
#define OPENED	1300

static int
many_open(void *arg)
{
	int	fd[OPENED], i;
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(LAB_PORT) };

	(void)arg;
	(void)inet_pton(AF_INET, PUBLIC, &a.sin_addr);
	for (i = 0; i < OPENED; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC |
		    SOCK_NONBLOCK, 0);
		if (fd[i] == -1)
			return 1;
		(void)connect(fd[i], (struct sockaddr *)&a, sizeof(a));
	}
	return 0;
}

START_TEST(over_the_rate)
{
	uint64_t	total[RS_COUNTERS];

	denials_live();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, many_open, NULL), 0);
	await_told(1, 1000);
	ck_assert_ptr_eq(find(box->id, PUBLIC, IPPROTO_TCP, LAB_PORT,
	    DENIED_LIMITED), &told[0]);
	net_drop(box);
	/* that was the end: all of it is told */
	total[DENIED_LIMITED] = sum(ID(1), DENIED_LIMITED);
	ck_assert_uint_gt(total[DENIED_LIMITED], 10);
	ck_assert_uint_lt(total[DENIED_LIMITED], OPENED - EGRESS_SYN_BURST +
	    1);
	ck_assert_uint_eq(sum(ID(1), -1), total[DENIED_LIMITED]);
}
END_TEST

/* ---- when things are not as they should be --------------------------- */

/* What apid did not take is told when it does, and not twice. */
START_TEST(apid_deaf)
{
	int	n = 50;

	denials_live();
	deaf = 1;
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	pump(WINDOW_MS * 1000 + 500000);
	ck_assert_uint_eq(ntold, 0);
	deaf = 0;
	await_told(1, WINDOW_MS + 2000);
	ck_assert_uint_eq(ntold, 1);
	ck_assert_uint_eq(told[0].m.address.len, 0);
	ck_assert_uint_eq(told[0].m.count, 50);
	ck_assert_uint_eq(told[0].m.rule, DENIED_SEALED);
	net_drop(box);
	ck_assert_uint_eq(ntold, 1);
}
END_TEST

/* Tables that go take no count with them, and none is told again. */
START_TEST(tables_go)
{
	uint64_t	total[RS_COUNTERS];
	struct attempt	open = { PUBLIC, IPPROTO_TCP, LAB_PORT, 0, -1 };
	int		n = 100;

	denials_live();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, attempt, &open), 0);
	pump(200000);
	ck_assert_ptr_eq(net_set(box, RULESET_SEALED), NULL);
	net_move(box, CUT);
	denials_total(box->denials, total);
	ck_assert_uint_eq(total[DENIED_SEALED], 100);
	ck_assert_uint_eq(total[RS_OPENED], 1);
	ck_assert_ptr_eq(net_set(box, RULESET_EGRESS), NULL);
	net_move(box, OPEN);
	n = 30;
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	denials_total(box->denials, total);
	ck_assert_uint_eq(total[DENIED_SEALED], 130);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, attempt, &open), 0);
	denials_total(box->denials, total);
	ck_assert_uint_eq(total[RS_OPENED], 2);
	pump(100000);
	net_drop(box);
	ck_assert_uint_eq(sum(ID(1), -1), 130);
}
END_TEST

/* A netd that starts again counts on, and tells nothing that was told. */
START_TEST(adopted)
{
	uint64_t	total[RS_COUNTERS];
	int		n = 30;

	denials_live();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	pump(200000);
	denials_free(box->denials);
	ck_assert_uint_eq(sum(ID(1), -1), 30);
	denials_restart(NULL);		/* of a network that has none */
	/* nobody hears these */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	ntold = 0;
	box->denials = denials_new(box, lab_log(lab.netns[LAB_BOX]));
	ck_assert_ptr_ne(box->denials, NULL);
	denials_total(box->denials, total);
	ck_assert_uint_eq(total[DENIED_SEALED], 60);
	n = 5;
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, short_flood, &n), 0);
	pump(100000);
	net_drop(box);
	ck_assert_uint_eq(sum(ID(1), -1), 5);
}
END_TEST

/* What a program says in the kernel's stead, which only root can, is none. */
START_TEST(forged)
{
	static const uint8_t	packet[] = { 0x45, 0, 0, 24, 0, 0, 0, 0, 64,
				    IPPROTO_TCP, 0, 0, 198, 19, 255, 100, 8,
				    8, 8, 8, 0xc0, 1, 1, 0xbb };
	char			buf[512] __attribute__((aligned(8)));
	struct sockaddr_nl	to = { .nl_family = AF_NETLINK };
	struct nlmsghdr		*h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg		*g;
	struct attempt		a = attempts[0];
	socklen_t		len = sizeof(to);
	int			log = lab_log(lab.netns[LAB_BOX]), fd;

	denials_live();
	denials_free(box->denials);
	ck_assert_ptr_ne(box->denials = denials_new(box, log), NULL);
	ck_assert_int_eq(getsockname(log, (struct sockaddr *)&to, &len), 0);
	h->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = AF_INET;
	mnl_attr_put_strz(h, NFULA_PREFIX, "host");
	mnl_attr_put(h, NFULA_PAYLOAD, sizeof(packet), packet);
	fd = lab_log(lab.netns[LAB_BOX]);
	ck_assert_int_eq(sendto(fd, buf, h->nlmsg_len, 0,
	    (struct sockaddr *)&to, sizeof(to)), (int)h->nlmsg_len);
	/* the kernel's own comes behind it */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, attempt, &a), 0);
	await_told(1, 1000);
	pump(50000);
	ck_assert_uint_eq(ntold, 1);
	ck_assert_ptr_eq(find(box->id, a.to, (unsigned int)a.proto, a.port,
	    a.rule), &told[0]);
	close(fd);
	net_drop(box);
}
END_TEST

/* Who may listen: one, and with power over the namespace. */
START_TEST(bound_once)
{
	struct denials	*second;
	int		 log;

	denials_live();
	log = lab_log(lab.netns[LAB_BOX]);
	ck_assert_int_eq(nflog_bind(log), -1);
	ck_assert_ptr_ne(second = denials_new(box, log), NULL);
	/* nobody has to wait for it; but not for long is it open without */
	pump(1000000);
	ck_assert_int_eq(box->state, OPEN);
	pump(4500000);
	ck_assert_int_eq(box->state, CUT);
	denials_free(second);
	ck_assert_int_eq(fcntl(log, F_GETFD), -1);
	/* what is no log at all is none */
	log = lab_netlink(lab.netns[LAB_BOX], NETLINK_ROUTE);
	ck_assert_ptr_eq(denials_new(box, log), NULL);
	ck_assert_int_eq(fcntl(log, F_GETFD), -1);	/* it was taken */
	net_drop(box);
}
END_TEST

/* Who was killed while it listened may be gone a moment later. */
START_TEST(bound_late)
{
	struct attempt	a = attempts[0], b = attempts[1];
	int		log, p[2];
	long		t0;
	pid_t		pid;
	char		c;

	denials_live();
	log = lab_log(lab.netns[LAB_BOX]);
	ck_assert_int_eq(pipe(p), 0);
	if ((pid = fork()) == 0) {		/* has its socket as well */
		close(p[1]);
		_exit(read(p[0], &c, 1) != 0);
	}
	ck_assert_int_ne(pid, -1);
	denials_free(box->denials);
	box->denials = NULL;
	ck_assert_int_eq(nflog_bind(log), -1);
	ck_assert_int_eq(errno, EPERM);
	t0 = lab_us();
	box->denials = denials_new(box, log);
	ck_assert_int_lt(lab_us() - t0, 200000);
	ck_assert_ptr_nonnull(box->denials);
	/* one that nobody hears */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, attempt, &a), 0);
	pump(300000);
	ck_assert_uint_eq(ntold, 0);
	close(p[1]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	pump(300000);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, attempt, &b), 0);
	await_told(1, 1000);
	ck_assert_uint_eq(ntold, 1);
	ck_assert_ptr_eq(find(box->id, b.to, (unsigned int)b.proto, b.port,
	    b.rule), &told[0]);
	/* and the other one in the sum */
	await_told(2, WINDOW_MS + 1000);
	ck_assert_uint_eq(sum(ID(1), a.rule), a.rule == b.rule ? 2 : 1);
	ck_assert_int_eq(box->state, OPEN);
	net_drop(box);
}
END_TEST

TCase *
denial_tests(void)
{
	TCase	*t = tcase_create("denials");

	tcase_add_checked_fixture(t, rig_setup, rig_teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, told_at_once);
	tcase_add_test(t, told_twice);
	tcase_add_test(t, flooded);
	tcase_add_test(t, kernel_bound);
	tcase_add_test(t, over_the_rate);
	tcase_add_test(t, apid_deaf);
	tcase_add_test(t, tables_go);
	tcase_add_test(t, adopted);
	tcase_add_test(t, forged);
	tcase_add_test(t, bound_once);
	tcase_add_test(t, bound_late);
	return t;
}
