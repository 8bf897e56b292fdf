/*
 * change_test.c: the network of a box becomes another, with the real netd,
 * uplinkd and slirp4netns, in namespaces of their own; the test is privd, apid
 * and proxyd.
 *
 * Shows at both ends that what leads out ends with the way out, and that what
 * is the box's own goes on; what is counted; and that daemons that start again
 * find what the network had become.
 */
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../netd/netd.h"
#include "egress_flow.h"
#include "netd_names.h"
#include "netd_world.h"
#include "uplinkd_rig.h"
#include "xmalloc.h"

#define ID1		"01K8ZZZZZZZZZZZZZZZZZZZZZ1"
#define PUBLIC		"203.0.113.10"
#define PUBLIC6		"2001:db8:1::10"
#define FAR_PORT	9090
#define MANY		1000

static struct rig	r;
static struct world	w;

/* ---- both daemons -------------------------------------------------------- */

/* go: or what outlived those before is ended later, by rig_go(). */
static void
both_start(int go)
{
	int	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	rig_start(&r);
	w.to_uplinkd = steal_fd(&r.netd.fd);
	lab_enter(&r.lab, LAB_HOST);
	world_start(&w);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	if (go)
		rig_go(&r);
}

static void
both_kill(void)
{
	world_kill(&w);
	rig_kill(&r);
}

/* What netd opens of the build comes first: it may lie below /tmp. */
static void
setup(void)
{
	world_make(&w);
	close(w.u1);
	unlink(w.log);
	rig_make(&r);
	ck_assert_int_ne(w.u1 = fcntl(r.u1, F_DUPFD_CLOEXEC, 0), -1);
	daemon_log(w.log, "change-test");
	r.conf.egress_connections = 4 * MANY;
	w.conf.egress_pool = 0;
	w.named = 1;
	both_start(1);
}

static void
teardown(void)
{
	world_free(&w);
	rig_free(&r);
}

/* ---- privd and apid ------------------------------------------------------ */

/* apid's answer to the last that it asked; what is denied is another's. */
static unsigned int
answered(unsigned int type, const void *body, struct msg *ret)
{
	unsigned int	t;
	uint32_t	rid;

	ck_assert_int_eq(chan_ask(&w.apid, type, body, -1, &rid), 0);
	while ((t = daemon_next(&w.apid, ret)) == MSG_NET_DENIED)
		;
	ck_assert_uint_eq(ret->rid, rid);
	return t;
}

static void
change(uint64_t network, char *ret_hash)
{
	struct msg_net_change	q = { .id = ID1, .network = network };
	struct msg		m;
	unsigned int		t;

	t = answered(MSG_NET_CHANGE, &q, &m);
	ck_assert_msg(t == MSG_NET_CHANGED, "%s", t == MSG_ERROR ?
	    m.body.error.detail : "");
	if (ret_hash != NULL)
		(void)str_copy(ret_hash, m.body.net_changed.ruleset, 65);
}

static struct msg_net_status_is
status(void)
{
	struct msg_net_status	q = { .id = ID1 };
	struct msg		m;

	ck_assert_uint_eq(answered(MSG_NET_STATUS, &q, &m),
	    MSG_NET_STATUS_IS);
	ck_assert_uint_eq(m.body.net_status_is.whole, 1);
	ck_assert_uint_eq(m.body.net_status_is.state, 1);
	return m.body.net_status_is;
}

/* As what it was made as, which is not what it has become. */
static void
adopt(int netns, uint64_t made_as, const char *hash)
{
	struct msg_net_adopt	q = { .id = ID1, .network = made_as,
				    .open = 1 };
	struct msg		m;

	ck_assert_uint_eq(daemon_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), &m), MSG_NET_OPENED);
	ck_assert_str_eq(m.body.net_opened.ruleset, hash);
}

/* ---- children that do what they are told --------------------------------- */

struct child { pid_t pid; int ctl; };

static struct child
start(int netns, void (*fn)(int))
{
	struct rlimit	rl = { 2 * MANY + 256, 2 * MANY + 256 };
	struct child	c;
	int		sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    sv), 0);
	ck_assert_int_ne(c.pid = fork(), -1);
	c.ctl = sv[0];
	if (c.pid == 0) {
		close(sv[0]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setns(netns, CLONE_NEWNET) == -1 ||
		    setrlimit(RLIMIT_NOFILE, &rl) == -1)
			_exit(99);
		fn(sv[1]);
		_exit(0);
	}
	close(sv[1]);
	return c;
}

static unsigned int
tell(const struct child *c, char word)
{
	unsigned int	n = 0;

	ck_assert_int_eq(send(c->ctl, &word, 1, MSG_NOSIGNAL), 1);
	ck_assert_msg(recv(c->ctl, &n, sizeof(n), 0) == sizeof(n),
	    "'%c': %d", word, lab_result(c->pid));
	return n;
}

static void
finish(struct child *c)
{
	/* its end is in other children, too */
	ck_assert_int_eq(send(c->ctl, "q", 1, MSG_NOSIGNAL), 1);
	ck_assert_int_eq(lab_result(c->pid), 0);
	close(c->ctl);
}

static void
say(int ctl, unsigned int n)
{
	if (send(ctl, &n, sizeof(n), 0) != sizeof(n))
		_exit(90);
}

/*
 * A box.  o: opens MANY connections out, s: some; e: how many of these have
 * ended, a: how many can be written to.  All the while numbers go round within.
 */
static int	out[MANY];

static unsigned int
open_out(unsigned int from, unsigned int n)
{
	unsigned int	i;

	for (i = from; i < from + n; i++)
		out[i] = flow_connect(r.lab.v6 && i % 2 ? PUBLIC6 : PUBLIC,
		    FAR_PORT, SOCK_STREAM);
	return n;
}

static unsigned int
ended_out(unsigned int n)
{
	unsigned int	i, ended = 0;

	for (i = 0; i < n; i++)
		ended += (unsigned int)flow_ended(out[i]);
	return ended;
}

static unsigned int
alive_out(unsigned int n)
{
	unsigned int	i, alive = 0;

	for (i = 0; i < n; i++)
		alive += send(out[i], "x", 1, MSG_NOSIGNAL) == 1;
	return alive;
}

static void
box(int ctl)
{
	struct flow	f[FLOWS];
	struct pollfd	p = { .fd = ctl, .events = POLLIN };
	unsigned int	n = 0;
	int		i, nf = flows_open(f, r.lab.v6);
	char		word;

	for (;;) {
		for (i = 0; i < nf; i++)
			if (flow_step(&f[i]) == -1)
				_exit(60 + i);
		if (poll(&p, 1, 0) == 0)
			continue;
		if (recv(ctl, &word, 1, 0) != 1 || word == 'q')
			return;
		if (word == 'o')
			n = open_out(0, MANY);
		else if (word == 's')
			n = open_out(0, 10);
		say(ctl, word == 'e' ? ended_out(n) : word == 'a' ?
		    alive_out(n) : n);
	}
}

/* The other side.  n: how many there were, e: how many have ended. */
static void
far(int ctl)
{
	struct epoll_event	e = { .events = EPOLLIN };
	int			ep = epoll_create1(EPOLL_CLOEXEC), fd, l[2];
	unsigned int		n = 0, ended = 0, i;
	char			b[256];

	l[0] = flow_listen(AF_INET, FAR_PORT);
	l[1] = r.lab.v6 ? flow_listen(AF_INET6, FAR_PORT) : -1;
	for (i = 0; i < 3; i++) {
		e.data.fd = i < 2 ? l[i] : ctl;
		if (e.data.fd != -1 && epoll_ctl(ep, EPOLL_CTL_ADD, e.data.fd,
		    &e) == -1)
			_exit(61);
	}
	while (epoll_wait(ep, &e, 1, -1) == 1) {
		fd = e.data.fd;
		e.events = EPOLLIN;
		if (fd == l[0] || fd == l[1]) {
			e.data.fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			if (epoll_ctl(ep, EPOLL_CTL_ADD, e.data.fd, &e) == -1)
				_exit(62);
			n++;
		} else if (fd == ctl) {
			if (recv(ctl, b, 1, 0) != 1 || b[0] == 'q')
				return;
			say(ctl, b[0] == 'n' ? n : ended);
		} else if (recv(fd, b, sizeof(b), 0) <= 0) {
			ended++;
			close(fd);
		}
	}
	_exit(63);
}

/* Until it says so, within a second; how long that took since t0. */
static long
until(const struct child *c, char word, unsigned int want, long t0)
{
	unsigned int	n;
	long		us;

	while ((n = tell(c, word)) != want) {
		us = lab_us() - t0;
		ck_assert_msg(us < 1000000, "%u of %u after %ld us", n, want,
		    us);
		(void)poll(NULL, 0, 2);
	}
	return lab_us() - t0;
}

/* ---- tests --------------------------------------------------------------- */

static void
is_none(unsigned int k, int netns)
{
	struct msg_net_status_is	s = status();

	ck_assert_uint_eq(s.network, NETWORK_NONE);
	ck_assert_uint_eq(s.uplink, 1);
	ck_assert_uint_eq(s.connections, 0);
	ck_assert_uint_eq(s.sent_bytes, 0);
	ck_assert_uint_eq(s.sent_packets, 0);
	ck_assert_uint_eq(s.received_bytes, 0);
	ck_assert_uint_eq(s.received_packets, 0);
	ck_assert_int_eq(rig_cgroup(k), 0);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), ECONNREFUSED);
	ck_assert_int_eq(rig_udp(netns, PUBLIC, LAB_PORT), EPERM);
	if (r.lab.v6)
		ck_assert_int_eq(rig_tcp(netns, PUBLIC6, LAB_PORT),
		    ECONNREFUSED);
}

static void
is_egress(int netns)
{
	struct msg_net_status_is	s = status();

	ck_assert_uint_eq(s.network, NETWORK_EGRESS);
	ck_assert_uint_eq(s.uplink, 1);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	ck_assert_int_eq(rig_udp(netns, PUBLIC, LAB_PORT), 0);
	if (r.lab.v6)
		ck_assert_int_eq(rig_tcp(netns, PUBLIC6, LAB_PORT), 0);
	ck_assert_int_eq(rig_tcp(netns, "10.1.2.3", LAB_PORT),
	    ECONNREFUSED);
}

START_TEST(both_ends)
{
	struct child	b, f;
	unsigned int	k, i;
	long		t0, us;
	int		netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	b = start(netns, box);
	f = start(r.lab.netns[LAB_INET], far);
	ck_assert_uint_eq(tell(&f, 'n'), 0);	/* it listens */
	/* what is to go on is there */
	ck_assert_uint_eq(tell(&b, 'a'), 0);
	for (i = 0; i < 2; i++) {
		is_none(k, netns);
		change(NETWORK_EGRESS, NULL);
		is_egress(netns);
		ck_assert_uint_eq(tell(&b, 'o'), MANY);
		(void)until(&f, 'n', MANY * (i + 1), lab_us());
		ck_assert_uint_eq(tell(&b, 'a'), MANY);
		t0 = lab_us();
		change(NETWORK_NONE, NULL);
		us = lab_us() - t0;
		printf("%d connections: answered after %ld us, the other side "
		    "ended after %ld us\n", MANY, us, until(&f, 'e',
		    MANY * (i + 1), t0));
#ifndef __SANITIZE_ADDRESS__
		ck_assert_int_lt(us, 1000000);
#endif
		ck_assert_uint_eq(tell(&b, 'e'), MANY);
	}
	is_none(k, netns);
	finish(&b);
	finish(&f);
	world_drop(&w, k);
	close(netns);
}
END_TEST

/* ---- by name ------------------------------------------------------------- */

#define SYNTH	"198.18.3.4"

static struct names_box	named = { .id = ID1, .netns = -1,
			    .sock = { -1, -1, -1 } };

static void
change_to_names(void)
{
	struct msg_net_change	q = { .id = ID1,
				    .network = NETWORK_ALLOWLIST };
	struct msg		m;
	uint32_t		rid[NAMES_SOCKS];
	unsigned int		t;

	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_CHANGE, &q, -1, NULL), 0);
	names_come(&w, &named, rid);
	names_say_ok(&w, rid);
	while ((t = daemon_next(&w.apid, &m)) == MSG_NET_DENIED)
		;
	ck_assert_msg(t == MSG_NET_CHANGED, "%s", t == MSG_ERROR ?
	    m.body.error.detail : "");
}

static void
names_go(void)
{
	names_ended(&w, ID1);
	names_close(&named);
}

/* No tap, no slirp4netns, and lo is all there is. */
static void
is_allow(unsigned int k, int netns)
{
	struct msg_net_status_is	s = status();
	int				route = lab_netlink(netns,
					    NETLINK_ROUTE), lo_up;

	ck_assert_uint_eq(s.network, NETWORK_ALLOWLIST);
	ck_assert_uint_eq(s.uplink, 1);
	ck_assert_uint_eq(s.sent_bytes, 0);
	ck_assert_int_eq(rig_cgroup(k), 0);
	ck_assert_int_eq(link_alone(route, &lo_up), 1);
	ck_assert_int_eq(lo_up, 1);
	close(route);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), ECONNREFUSED);
	ck_assert_int_eq(rig_udp(netns, PUBLIC, LAB_PORT), EPERM);
	if (r.lab.v6)
		ck_assert_int_eq(rig_tcp(netns, PUBLIC6, LAB_PORT),
		    ECONNREFUSED);
	ck_assert_int_eq(rig_tcp(netns, "10.1.2.3", LAB_PORT),
	    ECONNREFUSED);
}

/* o: opens a connection by name, e: whether it has ended. */
static void
by_names(int ctl)
{
	int	fd = -1;
	char	word;

	while (recv(ctl, &word, 1, 0) == 1 && word != 'q') {
		if (word == 'o')
			fd = flow_connect(SYNTH, 443, SOCK_STREAM);
		say(ctl, word == 'e' ? (unsigned int)flow_ended(fd) : 1);
	}
}

/* Whether this address is the box's own. */
static void
owns(int ctl)
{
	const char		*const which[] = { SYNTH, EGRESS_DNS4 };
	struct sockaddr_in	a = { .sin_family = AF_INET };
	unsigned int		n = 0;
	size_t			i;
	char			word;

	for (i = 0; i < 2; i++)
		n += inet_pton(AF_INET, which[i], &a.sin_addr) == 1 &&
		    bind(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		    (struct sockaddr *)&a, sizeof(a)) == 0;
	while (recv(ctl, &word, 1, 0) == 1 && word != 'q')
		say(ctl, n);
}

static unsigned int
owned(int netns)
{
	struct child	c = start(netns, owns);
	unsigned int	n = tell(&c, 'n');

	finish(&c);
	return n;
}

/* The relay's end of what the box has opened. */
static int
relayed(void)
{
	struct pollfd	p = { .fd = named.sock[NAMES_RELAY],
			    .events = POLLIN };
	int		fd;

	ck_assert_int_eq(poll(&p, 1, 1000), 1);
	ck_assert_int_ne(fd = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC), -1);
	return fd;
}

START_TEST(names_and_all)
{
	struct child	b, c, f;
	unsigned int	k, i;
	int		fd, netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	/* the kernel adds the route of a new address in its own time */
	for (i = 0; rig_tcp(netns, NONE_ADDR6, FAR_PORT) == ENETUNREACH &&
	    i < 200; i++)
		(void)poll(NULL, 0, 5);
	b = start(netns, box);
	f = start(r.lab.netns[LAB_INET], far);
	ck_assert_uint_eq(tell(&f, 'n'), 0);	/* it listens */
	ck_assert_uint_eq(tell(&b, 'a'), 0);
	for (i = 0; i < 2; i++) {
		change(NETWORK_EGRESS, NULL);
		is_egress(netns);
		ck_assert_uint_eq(owned(netns), 0);
		ck_assert_uint_eq(tell(&b, 's'), 10);
		(void)until(&f, 'n', 10 * (i + 1), lab_us());
		change_to_names();
		ck_assert_uint_eq(tell(&b, 'e'), 10);
		(void)until(&f, 'e', 10 * (i + 1), lab_us());
		is_allow(k, netns);
		ck_assert_uint_eq(owned(netns), 2);
		c = start(netns, by_names);
		ck_assert_uint_eq(tell(&c, 'o'), 1);
		fd = relayed();
		/* the first time by way of `none' */
		change(i == 0 ? NETWORK_NONE : NETWORK_EGRESS, NULL);
		ck_assert_uint_eq(tell(&c, 'e'), 1);
		/* proxyd is told, and ends its own */
		close(fd);
		names_go();
		finish(&c);
		if (i == 0)
			is_none(k, netns);
		ck_assert_uint_eq(owned(netns), 0);
	}
	is_egress(netns);
	finish(&b);
	finish(&f);
	world_drop(&w, k);
	close(netns);
}
END_TEST

/* Each kind begins anew, and another tap goes on. */
START_TEST(counted)
{
	struct msg_net_status_is	a, z;
	struct child			b, f;
	unsigned int			k, i;
	int				netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	f = start(r.lab.netns[LAB_INET], far);
	ck_assert_uint_eq(tell(&f, 'n'), 0);	/* it listens */
	for (i = 0; i < 2; i++) {
		change(NETWORK_EGRESS, NULL);
		a = status();
		ck_assert_uint_eq(a.connections, 0);
		b = start(netns, box);
		ck_assert_uint_eq(tell(&b, 's'), 10);
		ck_assert_uint_eq(tell(&b, 'a'), 10);
		(void)until(&f, 'n', 10 * (i + 1), lab_us());
		z = status();
		ck_assert_uint_eq(z.connections, 10);
		/* SYN, ACK and a byte, or some of it in one */
		ck_assert_uint_ge(z.sent_packets, a.sent_packets + 20);
		ck_assert_uint_le(z.sent_packets, a.sent_packets + 100);
		ck_assert_uint_ge(z.sent_bytes, a.sent_bytes + 20 * 40);
		ck_assert_uint_ge(z.received_packets,
		    a.received_packets + 10);
		ck_assert_uint_lt(z.received_bytes, 100000);
		finish(&b);
		if (i == 0)
			change(NETWORK_NONE, NULL);
	}
	a = status();
	ck_assert_int_eq(kill(rig_slirp(k), SIGKILL), 0);
	while (status().uplink == 1)
		(void)poll(NULL, 0, 2);
	while (status().uplink == 0)
		(void)poll(NULL, 0, 2);
	z = status();
	ck_assert_uint_ge(z.sent_bytes, a.sent_bytes);
	ck_assert_uint_ge(z.received_packets, a.received_packets);
	ck_assert_uint_eq(z.connections, 10);
	is_egress(netns);
	ck_assert_uint_gt(status().sent_bytes, z.sent_bytes);
	ck_assert_uint_gt(status().received_bytes, z.received_bytes);
	finish(&f);
	world_drop(&w, k);
	close(netns);
}
END_TEST

/* What is kept, and what is not, goes by what the kernel has. */
START_TEST(adopted)
{
	struct child	b, f;
	char		egress[65], none[65];
	unsigned int	k;
	int		netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, none);
	change(NETWORK_EGRESS, egress);
	b = start(netns, box);
	f = start(r.lab.netns[LAB_INET], far);
	ck_assert_uint_eq(tell(&f, 'n'), 0);	/* it listens */
	ck_assert_uint_eq(tell(&b, 's'), 10);
	(void)until(&f, 'n', 10, lab_us());
	both_kill();
	/* so that its sets hold others */
	lab_addr(&r.lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	both_start(0);
	adopt(netns, NETWORK_NONE, egress);
	rig_go(&r);
	is_egress(netns);
	ck_assert_int_eq(rig_tcp(netns, "203.0.113.60", LAB_PORT),
	    ECONNREFUSED);
	ck_assert_uint_eq(tell(&b, 'a'), 10);
	ck_assert_uint_eq(tell(&f, 'e'), 0);
	change(NETWORK_NONE, NULL);
	ck_assert_uint_eq(tell(&b, 'e'), 10);
	both_kill();
	both_start(0);
	adopt(netns, NETWORK_EGRESS, none);
	rig_go(&r);
	is_none(k, netns);
	finish(&b);
	finish(&f);
	world_drop(&w, k);
	close(netns);
}
END_TEST

static int
without6(void *arg)
{
	(void)arg;
	return WEXITSTATUS(system("ip -6 route del default && "
	    "ip -6 addr flush dev tap0 scope global"));
}

/* netd ended between slirp4netns's word and its own part of the work. */
START_TEST(adopted_half)
{
	char		egress[65];
	unsigned int	k;
	int		netns;

	if (!r.lab.v6)
		return;
	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	change(NETWORK_EGRESS, egress);
	both_kill();
	ck_assert_int_eq(rig_in(netns, without6, NULL), 0);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC6, LAB_PORT), ENETUNREACH);
	both_start(0);
	adopt(netns, NETWORK_EGRESS, egress);
	rig_go(&r);
	is_egress(netns);
	world_drop(&w, k);
	close(netns);
}
END_TEST

/* Faster than a slirp4netns comes and goes; in the end there is none. */
START_TEST(in_a_hurry)
{
	struct msg_net_change	q = { .id = ID1, .network = NETWORK_EGRESS };
	struct msg		m;
	unsigned int		i, k;
	int			netns;

	k = world_net(&w, ID1, &netns);
	for (i = 0; i < 5; i++) {
		world_open(&w, k, NULL);
		ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_CHANGE, &q, -1,
		    NULL), 0);
		(void)poll(NULL, 0, (int)(i * 3));
		world_cut(&w, k);
		ck_assert_uint_ne(daemon_next(&w.apid, &m), 0);
	}
	world_drop(&w, k);
	close(netns);
	for (i = 0; rig_cgroup(k) && i < 1000; i++)
		(void)poll(NULL, 0, 5);
	ck_assert_int_eq(rig_cgroup(k), 0);
	(void)poll(NULL, 0, 200);
	ck_assert_int_eq(rig_cgroup(k), 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("change");
	TCase	*t = tcase_create("change");
	SRunner	*sr;
	int	 failed;

	if (geteuid() != 0 || !world_netfilter() ||
	    access("/usr/bin/slirp4netns", X_OK) == -1) {
		printf("needs root, netfilter and slirp4netns\n");
		return 77;
	}
	rig_sweep();			/* names what is made, too */
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, both_ends);
	tcase_add_test(t, names_and_all);
	tcase_add_test(t, counted);
	tcase_add_test(t, adopted);
	tcase_add_test(t, adopted_half);
	tcase_add_test(t, in_a_hurry);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	rig_sweep();
	return failed == 0 ? 0 : 1;
}
