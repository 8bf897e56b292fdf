/*
 * egress_change.c: the network of the lab's box becomes another: what leads
 * out ends, what is the box's own goes on; what fails leaves it as it was;
 * and whatever happens meanwhile, who asked has one answer.
 *
 * The test stands in for pool.c, uplink.c and proxy.c: it says when the maker,
 * uplinkd and proxyd answer.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chan.h"
#include "egress_flow.h"
#include "egress_rig.h"
#include "xmalloc.h"

#define PUBLIC		"203.0.113.10"
#define PUBLIC6		"2001:db8:1::10"
#define SOON_US		50000

/* ---- in the places of the others --------------------------------------- */

static struct change	*held;		/* by pool.c */
static struct chan	 netd_end, apid_end;
static unsigned int	 ups, ends;	/* what uplinkd was asked */
static unsigned int	 serves, unserves; /* and proxyd */
static uint32_t		 end_rid;	/* what the next end is known by */

void
pool_change(struct change *c)
{
	ck_assert_ptr_eq(held, NULL);
	held = c;
}

void
pool_lost(struct net *n)
{
	ck_assert_ptr_eq(n->adopter, NULL);
}

const char *
pool_no_way_out(const char *why)
{
	return why;
}

void
uplink_start(struct net *n, int keep)
{
	ck_assert_int_eq(keep, 0);
	n->uplink = UPLINK_ASKED;
	ups++;
}

uint32_t
uplink_end(struct net *n)
{
	if (n->uplink == UPLINK_NONE)
		return 0;
	n->uplink = UPLINK_NONE;
	ends++;
	return end_rid;
}

static struct proxied	 proxied = { .at = PROXIED_UP };

void
proxy_start(struct net *n)
{
	ck_assert_ptr_eq(n->proxied, NULL);
	serves++;
}

void
proxy_end(struct net *n)
{
	unserves += steal_ptr(&n->proxied) != NULL;
}

int
proxy_up(const struct net *n)
{
	return n->proxied != NULL;
}

uint32_t
proxy_list(const struct net *n)
{
	ck_assert_ptr_ne(n->proxied, NULL);
	return 9;
}

void
netd_open_lost(struct net *n)
{
	ck_assert_ptr_eq(n->opener, NULL);
}

void
netd_sent(struct chan *c, int result)
{
	ck_assert_ptr_eq(c, &netd_end);
	ck_assert_int_eq(result, 0);
}

/* The maker's answer, with these sockets; error: or that it failed. */
static void
maker_says(unsigned int want, int error)
{
	static const int	protocol[NS_NSOCKS] = { NETLINK_NETFILTER,
				    NETLINK_NETFILTER, NETLINK_ROUTE,
				    NETLINK_SOCK_DIAG, -1, -1, -1 };
	struct netns_made	m = { .error = error, .netns = -1 };
	struct change		*c = steal_ptr(&held);
	int			 s;

	ck_assert_ptr_ne(c, NULL);
	m.k = c->net != NULL ? c->net->k : 1;
	(void)str_copy(m.step, "enter netns", sizeof(m.step));
	for (s = 0; s < NS_NSOCKS; s++)
		m.sock[s] = error == 0 && want & 1U << s ?
		    lab_netlink(lab.netns[LAB_BOX], protocol[s]) : -1;
	change_made(c, &m);
	for (s = 0; s < NS_NSOCKS; s++)
		fd_close(&m.sock[s]);
}

/* What is told to apid: a message's type, an error's code; 0: nothing. */
static unsigned int
told(void)
{
	struct msg	m;
	int		r = chan_recv(&apid_end, &m);

	ck_assert_int_ge(r, 0);
	if (r == 0)
		return 0;
	if (m.row->type == MSG_ERROR)
		return (unsigned int)m.body.error.code;
	return m.row->type;
}

/* ---- the box ----------------------------------------------------------- */

static struct net	*box;

static void
change_live(void)
{
	int	sv[2];

	held = NULL;
	ups = ends = serves = unserves = 0;
	end_rid = 0;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    sv), 0);
	chan_init(&netd_end, sv[0], A_NETD, A_APID, S_RUN);
	chan_init(&apid_end, sv[1], A_APID, A_NETD, S_RUN);
	box = live_box();
	box->uplink = UPLINK_UP;
	box->route = lab_netlink(lab.netns[LAB_BOX], NETLINK_ROUTE);
	ck_assert_ptr_ne(box->denials = denials_new(box,
	    lab_log(lab.netns[LAB_BOX])), NULL);
}

static void
ask_change(enum ruleset to)
{
	/* its number is that of a request of apid's */
	change_start(box, to, &netd_end, ++apid_end.rid);
	ck_assert_ptr_ne(box->change, NULL);
}

static int
has(enum ruleset which)
{
	char	hash[NET_HASHLEN + 1];

	return net_whole(box, which, hash);
}

static void
become_none(void)
{
	ask_change(RULESET_NONE);
	maker_says(1U << NS_DIAG, 0);
}

static void
is_none(void)
{
	ck_assert_int_eq(box->state, OPEN);
	ck_assert_int_eq(box->kind, RULESET_NONE);
	ck_assert_int_eq(box->uplink, UPLINK_NONE);
	ck_assert_int_eq(box->route, -1);
	ck_assert_ptr_eq(box->denials, NULL);
	ck_assert_ptr_eq(box->change, NULL);
	ck_assert_int_eq(has(RULESET_NONE), 1);
}

static void
is_egress(void)
{
	ck_assert_int_eq(box->state, OPEN);
	ck_assert_int_eq(box->kind, RULESET_EGRESS);
	ck_assert_int_ne(box->route, -1);
	ck_assert_ptr_ne(box->denials, NULL);
	ck_assert_ptr_eq(box->change, NULL);
	ck_assert_int_eq(has(RULESET_EGRESS), 1);
}

/* Every attempt passes the ruleset, and is refused by it. */
static int
refused(void *arg)
{
	long	us, us6 = 0;

	(void)arg;
	if (lab_tcp(PUBLIC, LAB_PORT, &us) != ECONNREFUSED ||
	    lab_udp(PUBLIC, LAB_PORT) != EPERM)
		return 1;
	if (lab.v6 && (lab_tcp(PUBLIC6, LAB_PORT, &us6) != ECONNREFUSED ||
	    lab_udp(PUBLIC6, LAB_PORT) != EPERM))
		return 2;
	return us > 4 * SOON_US || us6 > 4 * SOON_US ? 3 : 0;
}

static int
unreachable(void *arg)
{
	(void)arg;
	return lab_tcp(PUBLIC, LAB_PORT, NULL) == ENETUNREACH &&
	    (!lab.v6 || lab_tcp(PUBLIC6, LAB_PORT, NULL) == ENETUNREACH) ?
	    0 : 1;
}

static int
open_wide(void *arg)
{
	(void)arg;
	return lab_tcp(PUBLIC, LAB_PORT, NULL) == 0 &&
	    lab_udp(PUBLIC, LAB_PORT) == 0 &&
	    (!lab.v6 || lab_tcp(PUBLIC6, LAB_PORT, NULL) == 0) ? 0 : 1;
}

/* ---- connections ------------------------------------------------------- */

static const struct { const char *to; int type, v6; } outs[] = {
	{ PUBLIC, SOCK_STREAM, 0 }, { PUBLIC, SOCK_DGRAM, 0 },
	{ PUBLIC6, SOCK_STREAM, 1 }, { PUBLIC6, SOCK_DGRAM, 1 },
	/* IPv4 in IPv6's clothes */
	{ "::ffff:" PUBLIC, SOCK_STREAM, 1 },
	{ "::ffff:" PUBLIC, SOCK_DGRAM, 1 },
};
#define NOUTS	(sizeof(outs) / sizeof(outs[0]))

static int
holder(void *arg)
{
	const int	*ctl = arg;
	struct flow	 f[FLOWS];
	struct pollfd	 p = { .fd = *ctl, .events = POLLIN };
	int		 out[NOUTS], i, n, left = 100;
	size_t		 o;
	char		 b = 'r';

	memset(f, 0, sizeof(f));
	n = flows_open(f, lab.v6);
	for (o = 0; o < NOUTS; o++)
		out[o] = outs[o].v6 && !lab.v6 ? -1 :
		    flow_connect(outs[o].to, LAB_PORT, outs[o].type);
	if (write(*ctl, &b, 1) != 1)
		return 1;
	/* and some more of it when all is over */
	while (left-- > 0) {
		for (i = 0; i < n; i++)
			if (flow_step(&f[i]) == -1) {
				fprintf(stderr, "%s lost\n", f[i].to);
				return 2;
			}
		if (poll(&p, 1, 0) == 0)
			left = 100;
	}
	for (o = 0; o < NOUTS; o++)
		if (out[o] != -1 && !flow_ended(out[o])) {
			fprintf(stderr, "%s lives on\n", outs[o].to);
			return 3;
		}
	/* who listens within still does */
	(void)flow_connect("127.0.0.1", 8080, SOCK_STREAM);
	return refused(NULL);
}

/* Starts fn in the box and waits until it has said that it is ready. */
static pid_t
in_box(int (*fn)(void *), int *ret_ctl)
{
	int	sv[2];
	pid_t	pid;
	char	b;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
	    sv), 0);
	pid = lab_start(&lab, LAB_BOX, fn, &sv[1]);
	close(sv[1]);
	ck_assert_int_eq(read(sv[0], &b, 1), 1);
	*ret_ctl = sv[0];
	return pid;
}

START_TEST(out_ends_inner_lives)
{
	pid_t	pid;
	int	ctl;

	change_live();
	pid = in_box(holder, &ctl);
	become_none();
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	ck_assert_uint_eq(told(), 0);
	ck_assert_uint_eq(ends, 1);
	is_none();
	ck_assert_int_eq(write(ctl, "g", 1), 1);
	ck_assert_int_eq(lab_result(pid), 0);
	close(ctl);
	net_drop(box);
}
END_TEST

/* ---- many -------------------------------------------------------------- */

#define MANY	1000			/* EGRESS_SYN_BURST */

static int
many(void *arg)
{
	const int	*ctl = arg;
	struct rlimit	 rl = { 2 * MANY + 64, 2 * MANY + 64 };
	int		 fd[MANY], i, own[MANY];
	char		 b = 'r';

	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		return 1;
	(void)flow_listen(AF_INET, 8080); /* nobody accepts: they are open */
	for (i = 0; i < MANY; i++) {
		own[i] = flow_connect("127.0.0.1", 8080, SOCK_STREAM);
		fd[i] = flow_connect(PUBLIC, 9090, SOCK_STREAM);
	}
	if (write(*ctl, &b, 1) != 1 || read(*ctl, &b, 1) != 1)
		return 2;
	for (i = 0; i < MANY; i++)
		if (!flow_ended(fd[i]) || send(own[i], &b, 1, 0) != 1)
			return 3;
	return 0;
}

static int
sink(void *arg)
{
	const int	*ctl = arg;
	char		 b = 'r';

	(void)flow_listen(AF_INET, 9090);
	return write(*ctl, &b, 1) == 1 && read(*ctl, &b, 1) == 1 ? 0 : 1;
}

START_TEST(thousand)
{
	pid_t		far, pid;
	long		us;
	int		ctl, sv[2];
	char		b;

	change_live();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
	    sv), 0);
	far = lab_start(&lab, LAB_INET, sink, &sv[1]);
	close(sv[1]);
	ck_assert_int_eq(read(sv[0], &b, 1), 1);
	pid = in_box(many, &ctl);
	us = lab_us();
	become_none();
	us = lab_us() - us;
	printf("%d connections ended in %ld us\n", MANY, us);
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
#ifndef __SANITIZE_ADDRESS__
	ck_assert_int_lt(us, 1000000);
#endif
	ck_assert_int_eq(write(ctl, "g", 1), 1);
	ck_assert_int_eq(lab_result(pid), 0);
	close(ctl);
	ck_assert_int_eq(write(sv[0], "g", 1), 1);
	ck_assert_int_eq(lab_result(far), 0);
	close(sv[0]);
	is_none();
	net_drop(box);
}
END_TEST

/* ---- to and fro -------------------------------------------------------- */

/* The first of three: the uplink was asked for, and nothing else is seen. */
static void
egress_begins(void)
{
	ups = 0;
	ask_change(RULESET_EGRESS);
	maker_says(1U << NS_ROUTE | 1U << NS_LOG, 0);
	ck_assert_uint_eq(ups, 1);
	ck_assert_int_eq(change_starts(box), 1);
	ck_assert_int_eq(box->kind, RULESET_NONE);
	ck_assert_int_eq(has(RULESET_NONE), 1);
	ck_assert_uint_eq(told(), 0);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, unreachable, NULL), 0);
}

static void
uplinkd_says(const char *why)
{
	box->uplink = why == NULL ? UPLINK_UP : UPLINK_NONE;
	change_uplinked(box, why);
}

START_TEST(to_and_fro)
{
	uint64_t	total[RS_COUNTERS];
	int		i;

	change_live();
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, open_wide, NULL), 0);
		denials_total(box->denials, total);
		ck_assert_uint_eq(total[RS_OPENED], lab.v6 ? 2 : 1);
		become_none();
		ck_assert_uint_eq(told(), MSG_NET_CHANGED);
		is_none();
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
		egress_begins();
		/* slirp4netns's; the ruleset still keeps all in */
		lab_routes(&lab);
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
		uplinkd_says(NULL);
		ck_assert_uint_eq(told(), MSG_NET_CHANGED);
		is_egress();
	}
	ck_assert_uint_eq(told(), 0);
	net_drop(box);
}
END_TEST

/* The tap is there until its slirp4netns has ended: its route gives way. */
static void
goes_back(const char *why)
{
	egress_begins();
	lab_routes(&lab);
	uplinkd_says(why);
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	ck_assert_uint_eq(told(), 0);
	is_none();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
}

START_TEST(fails_to_egress)
{
	change_live();
	become_none();
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	goes_back("no tap");
	/* it was up, but the host's addresses are not known */
	ruleset_hosts_lost();
	ends = 0;
	goes_back(NULL);
	ck_assert_uint_eq(ends, 1);
	/* the maker can not */
	ask_change(RULESET_EGRESS);
	maker_says(0, EMFILE);
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	is_none();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
	hosts_now();
	egress_begins();
	lab_routes(&lab);
	uplinkd_says(NULL);
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	is_egress();
	net_drop(box);
}
END_TEST

/* What cannot be made a `none' leads nowhere, and gets no way out again. */
START_TEST(fails_to_none)
{
	int	keep;

	change_live();
	ask_change(RULESET_NONE);
	maker_says(0, EMFILE);
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	is_egress();
	ask_change(RULESET_NONE);
	keep = breaks(box);
	maker_says(1U << NS_DIAG, 0);
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	ck_assert_uint_eq(told(), 0);
	ck_assert_int_eq(box->state, CUT);
	ck_assert_int_eq(box->unsealed, 1);
	ck_assert_int_eq(box->kind, RULESET_NONE);
	ck_assert_uint_eq(ends, 1);
	/* the ruleset is still what it was, but not the way */
	ck_assert_int_ne(lab_in(&lab, LAB_BOX, open_wide, NULL), 0);
	mends(box, keep);
	pump(1200000);
	ck_assert_int_eq(box->unsealed, 0);
	ck_assert_int_eq(has(RULESET_SEALED), 1);
	net_drop(box);
}
END_TEST

/* ---- by name ----------------------------------------------------------- */

static void
cut(void)
{
	ck_assert_ptr_eq(net_set(box, RULESET_SEALED), NULL);
	net_move(box, CUT);
}

static void
freed(void)
{
	net_drop(box);
	box = NULL;
}

#define SYNTH	"198.18.3.4"

/* With the sockets that the change itself wants. */
static void
maker_does(void)
{
	ck_assert_ptr_ne(held, NULL);
	maker_says(change_wants(held), 0);
}

static void
is_allow(void)
{
	ck_assert_int_eq(box->state, OPEN);
	ck_assert_int_eq(box->kind, RULESET_ALLOW);
	ck_assert_int_eq(box->uplink, UPLINK_NONE);
	ck_assert_int_eq(box->route, -1);
	ck_assert_ptr_ne(box->denials, NULL);
	ck_assert_ptr_ne(box->proxied, NULL);
	ck_assert_ptr_eq(box->change, NULL);
	ck_assert_int_eq(has(RULESET_ALLOW), 1);
	ck_assert_uint_eq(told(), 0);
}

/* proxyd serves it, as it seems, before anything else is done. */
static void
become_allow(void)
{
	enum ruleset	was = box->kind;

	serves = 0;
	ask_change(RULESET_ALLOW);
	ck_assert_uint_eq(serves, 1);
	ck_assert_int_eq(change_proxies(box), 1);
	ck_assert_ptr_eq(held, NULL);
	ck_assert_int_eq(has(was), 1);
	box->proxied = &proxied;
	change_proxied(box, CODE_NONE, NULL);
	ck_assert_int_eq(has(was), 1);
	maker_does();
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	is_allow();
}

START_TEST(out_ends_for_names)
{
	uint64_t	total[RS_COUNTERS];
	pid_t		pid;
	int		ctl;

	change_live();
	pid = in_box(holder, &ctl);
	become_allow();
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(write(ctl, "g", 1), 1);
	ck_assert_int_eq(lab_result(pid), 0);
	close(ctl);
	/* counted from 0 */
	denials_total(box->denials, total);
	ck_assert_uint_ge(total[DENIED_ADDRESS], 2);
	ck_assert_uint_eq(total[RS_OPENED], 0);
	net_drop(box);
	ck_assert_uint_eq(unserves, 1);
}
END_TEST

/* A relay, as far as the ruleset sees it: what comes is counted, and kept. */
static int
relay(void *arg)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
				    .sin_port = htons(RELAY_PORT) };
	const int		*ctl = arg;
	int			 fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	char			 b = 'r';

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) == -1 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) == -1 ||
	    listen(fd, 16) == -1 || write(*ctl, &b, 1) != 1)
		return 1;
	return read(*ctl, &b, 1) == 1 ? 0 : 2;
}

static int
named(void *arg)
{
	const int	*ctl = arg;
	int		 fd = flow_connect(SYNTH, 443, SOCK_STREAM);
	char		 b = 'r';

	if (write(*ctl, &b, 1) != 1 || read(*ctl, &b, 1) != 1)
		return 1;
	return flow_ended(fd) ? 0 : 2;
}

/* To what leads out otherwise, or not: connections by name end. */
START_TEST(names_end)
{
	enum ruleset	to = _i == 0 ? RULESET_NONE : RULESET_EGRESS;
	pid_t		pid, far;
	int		ctl, end;

	change_live();
	become_allow();
	far = in_box(relay, &end);
	pid = in_box(named, &ctl);
	ask_change(to);
	maker_does();
	if (to == RULESET_EGRESS) {
		/* until then nothing has */
		ck_assert_uint_eq(unserves, 0);
		ck_assert_int_eq(has(RULESET_ALLOW), 1);
		lab_routes(&lab);
		uplinkd_says(NULL);
		is_egress();
	} else
		is_none();
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	ck_assert_uint_eq(told(), 0);
	ck_assert_uint_eq(unserves, 1);
	ck_assert_int_eq(write(ctl, "g", 1), 1);
	ck_assert_int_eq(lab_result(pid), 0);
	ck_assert_int_eq(write(end, "g", 1), 1);
	ck_assert_int_eq(lab_result(far), 0);
	close(ctl);
	close(end);
	net_drop(box);
}
END_TEST

/* Where the name server is, is not the box's own any more. */
static int
names_are_far(void *arg)
{
	int	e = lab_tcp(EGRESS_DNS4, LAB_DNS, NULL);

	(void)arg;
	return e == ECONNREFUSED ? 1 : 0;
}

START_TEST(round_and_round)
{
	int	i;

	change_live();
	for (i = 0; i < 3; i++) {
		become_allow();
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
		ask_change(RULESET_NONE);
		maker_does();
		ck_assert_uint_eq(told(), MSG_NET_CHANGED);
		is_none();
		ck_assert_ptr_eq(box->proxied, NULL);
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
		become_allow();
		ask_change(RULESET_EGRESS);
		maker_does();
		ck_assert_uint_eq(told(), 0);
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, unreachable, NULL), 0);
		lab_routes(&lab);
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
		uplinkd_says(NULL);
		ck_assert_uint_eq(told(), MSG_NET_CHANGED);
		is_egress();
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, open_wide, NULL), 0);
		ck_assert_int_eq(lab_in(&lab, LAB_BOX, names_are_far, NULL),
		    0);
	}
	net_drop(box);
}
END_TEST

/* What fails leaves it as it was, or cuts it. */
START_TEST(names_fail)
{
	int	keep;

	change_live();
	/* proxyd can not */
	ask_change(RULESET_ALLOW);
	change_proxied(box, CODE_INTERNAL, "no");
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	is_egress();
	/* nor the maker: then proxyd need not */
	ask_change(RULESET_ALLOW);
	box->proxied = &proxied;
	change_proxied(box, CODE_NONE, NULL);
	maker_says(0, EMFILE);
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	ck_assert_uint_eq(unserves, 1);
	is_egress();
	/* nor proxyd, while the maker was asked */
	ask_change(RULESET_ALLOW);
	box->proxied = &proxied;
	change_proxied(box, CODE_NONE, NULL);
	box->proxied = NULL;
	maker_does();
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	is_egress();
	become_allow();
	/* it has its names until it has a way out */
	ask_change(RULESET_EGRESS);
	maker_does();
	uplinkd_says("no tap");
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	is_allow();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
	ask_change(RULESET_NONE);
	keep = breaks(box);
	maker_does();
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	ck_assert_int_eq(box->state, CUT);
	ck_assert_int_eq(box->kind, RULESET_NONE);
	ck_assert_uint_eq(unserves, 2);
	mends(box, keep);
	pump(1200000);
	ck_assert_int_eq(has(RULESET_SEALED), 1);
	net_drop(box);
}
END_TEST

/* Nothing that leads out is without proxyd, or without what tells of it. */
START_TEST(names_fail_of_none)
{
	static const unsigned int	has_not[] = { 0, 1U << NS_LOG };
	unsigned int			want;

	change_live();
	become_none();
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	is_none();
	ask_change(RULESET_ALLOW);
	box->proxied = &proxied;
	change_proxied(box, CODE_NONE, NULL);
	want = change_wants(held);
	ck_assert_uint_ne(want & 1U << NS_LOG, 0);
	if (_i == 0)
		box->proxied = NULL;
	maker_says(want & ~has_not[_i], 0);
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	ck_assert_ptr_eq(box->proxied, NULL);
	is_none();
	net_drop(box);
}
END_TEST

START_TEST(list_is_read)
{
	change_live();
	become_allow();
	ask_change(RULESET_ALLOW);
	ck_assert_uint_eq(told(), 0);
	ck_assert_int_eq(change_lists(box, 8), 0);
	ck_assert_int_eq(change_lists(box, 9), 1);
	change_listed(box, NULL);
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	ask_change(RULESET_ALLOW);
	change_listed(box, "it is too long");
	ck_assert_uint_eq(told(), CODE_INTERNAL);
	/* not served for the moment: as soon as it is */
	box->proxied = NULL;
	serves = 0;
	ask_change(RULESET_ALLOW);
	ck_assert_uint_eq(serves, 1);
	ck_assert_int_eq(change_proxies(box), 1);
	box->proxied = &proxied;
	change_proxied(box, CODE_NONE, NULL);
	ck_assert_int_eq(change_lists(box, 9), 1);
	cut();
	ck_assert_uint_eq(told(), CODE_BAD_TRANSITION);
	ck_assert_ptr_eq(box->proxied, NULL);
	freed();
}
END_TEST

/* ---- meanwhile --------------------------------------------------------- */

static void
host_lost(void)
{
	ruleset_hosts_lost();
	nets_seal_egress("a test");
}

/* The change is void, once and for all. */
static void
lost_is(void (*how)(void))
{
	how();
	ck_assert_uint_eq(told(), CODE_BAD_TRANSITION);
	if (held != NULL)
		maker_says(1U << NS_DIAG | 1U << NS_ROUTE | 1U << NS_LOG, 0);
	ck_assert_uint_eq(told(), 0);
	if (box == NULL)
		return;
	ck_assert_ptr_eq(box->change, NULL);
	ck_assert_int_eq(box->state, CUT);
	ck_assert_int_eq(has(RULESET_SEALED), 1);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
	freed();
}

START_TEST(held_is_lost)
{
	void	(*const hows[])(void) = { cut, freed, host_lost };

	change_live();
	ask_change(RULESET_NONE);
	lost_is(hows[_i]);
}
END_TEST

START_TEST(ending_is_lost)
{
	void	(*const hows[])(void) = { cut, freed };

	change_live();
	end_rid = 7;
	become_none();
	ck_assert_uint_eq(told(), 0);
	ck_assert_ptr_ne(box->change, NULL);
	ck_assert_uint_eq(box->change->end_rid, 7);
	lost_is(hows[_i]);
}
END_TEST

/* And the routes of `none' are there when it is opened again. */
START_TEST(starting_is_lost)
{
	change_live();
	become_none();
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	egress_begins();
	lab_routes(&lab);
	ends = 0;
	if (_i == 1) {
		lost_is(freed);
		ck_assert_uint_eq(ends, 1);
		return;
	}
	cut();
	ck_assert_uint_eq(told(), CODE_BAD_TRANSITION);
	ck_assert_uint_eq(ends, 1);
	ck_assert_ptr_eq(box->denials, NULL);
	ck_assert_ptr_eq(net_set(box, box->kind), NULL);
	net_move(box, OPEN);
	is_none();
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, refused, NULL), 0);
	ck_assert_uint_eq(told(), 0);
	freed();
}
END_TEST

/* Answered when uplinkd has said that nothing of it is left. */
START_TEST(waits_for_the_end)
{
	change_live();
	end_rid = 7;
	become_none();
	ck_assert_int_eq(box->kind, RULESET_NONE);
	ck_assert_int_eq(has(RULESET_NONE), 1);
	ck_assert_uint_eq(told(), 0);
	change_ended(box);
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	is_none();
	freed();
}
END_TEST

/* The host's addresses go by the kind there is. */
START_TEST(followed_meanwhile)
{
	change_live();
	ask_change(RULESET_NONE);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "held");
	ck_assert_int_eq(has(RULESET_EGRESS), 1);
	maker_says(1U << NS_DIAG, 0);
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	egress_begins();
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	pump(300000);
	ck_assert_int_eq(has(RULESET_NONE), 1);
	lab_routes(&lab);
	uplinkd_says(NULL);
	ck_assert_uint_eq(told(), MSG_NET_CHANGED);
	is_egress();
	freed();
}
END_TEST

TCase *
change_tests(void)
{
	TCase	*t = tcase_create("change");

	tcase_add_checked_fixture(t, rig_setup, rig_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, out_ends_inner_lives);
	tcase_add_test(t, thousand);
	tcase_add_test(t, to_and_fro);
	tcase_add_test(t, fails_to_egress);
	tcase_add_test(t, fails_to_none);
	tcase_add_test(t, out_ends_for_names);
	tcase_add_loop_test(t, names_end, 0, 2);
	tcase_add_test(t, round_and_round);
	tcase_add_test(t, names_fail);
	tcase_add_loop_test(t, names_fail_of_none, 0, 2);
	tcase_add_test(t, list_is_read);
	tcase_add_loop_test(t, held_is_lost, 0, 3);
	tcase_add_loop_test(t, ending_is_lost, 0, 2);
	tcase_add_loop_test(t, starting_is_lost, 0, 2);
	tcase_add_test(t, waits_for_the_end);
	tcase_add_test(t, followed_meanwhile);
	return t;
}
