/*
 * netd_test.c: the real netd, with a test in privd's and apid's place.
 *
 * Shows that what is not opened passes nothing, that an open `none' refuses
 * at once, that a box's root has no power over its network, that a netd
 * that starts again takes over what lives on, and that nothing is left.
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "netd_allow.h"
#include "netd_probe.h"
#include "netd_uplink.h"
#include "netd_world.h"
#include "xmalloc.h"

#define ID1	"01K8ZZZZZZZZZZZZZZZZZZZZZ1"
#define ID2	"01K8ZZZZZZZZZZZZZZZZZZZZZ2"

static struct world	w;

static void
setup(void)
{
	world_make(&w);
	world_start(&w);
}

static void
setup_without(void)
{
	world_make(&w);
	(void)str_copy(w.conf.netfilter, "none", sizeof(w.conf.netfilter));
	world_start(&w);
}

static void
teardown(void)
{
	world_free(&w);
}

static int
in_box(int netns, int (*fn)(void *))
{
	return world_box_result(world_box(netns, fn, NULL));
}

static unsigned int
status(const char *id, struct msg_net_status_is *ret)
{
	struct msg_net_status	q;
	struct msg		m;
	unsigned int		t;

	memset(&q, 0, sizeof(q));
	(void)str_copy(q.id, id, sizeof(q.id));
	t = daemon_ask(&w.apid, MSG_NET_STATUS, &q, -1, &m);
	if (t == MSG_NET_STATUS_IS)
		*ret = m.body.net_status_is;
	return t == MSG_ERROR ? (unsigned int)m.body.error.code : t;
}

/* ---- what passes -------------------------------------------------------- */

START_TEST(nothing_before_open)
{
	int	netns;

	(void)world_net(&w, ID1, &netns);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	close(netns);
}
END_TEST

START_TEST(open_none)
{
	unsigned int	k;
	int		netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	ck_assert_int_eq(in_box(netns, probe_ports), 0);
	ck_assert_int_eq(in_box(netns, probe_buffers), 0);
	close(netns);
}
END_TEST

START_TEST(cut_and_again)
{
	unsigned int	k;
	int		netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	world_cut(&w, k);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	world_cut(&w, k);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	world_open(&w, k, NULL);
	world_open(&w, k, NULL);
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	close(netns);
}
END_TEST

START_TEST(cut_before_open)
{
	struct msg_net_status_is	s;
	unsigned int			k;
	int				netns;

	k = world_net(&w, ID1, &netns);
	world_cut(&w, k);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.state, 2);
	close(netns);
}
END_TEST

START_TEST(neighbours)
{
	unsigned int	k1, k2;
	int		n1, n2;

	k1 = world_net(&w, ID1, &n1);
	k2 = world_net(&w, ID2, &n2);
	ck_assert_uint_ne(k1, k2);
	world_open(&w, k2, NULL);
	ck_assert_int_eq(in_box(n1, probe_dropped), 0);
	ck_assert_int_eq(in_box(n2, probe_open), 0);
	close(n1);
	close(n2);
}
END_TEST

/* ---- rights ---------------------------------------------------------------- */

static int
tool(void *arg)
{
	char	*const *argv = arg;
	int	 null = open("/dev/null", O_RDWR);

	(void)dup2(null, 1);
	(void)dup2(null, 2);
	execvp(argv[0], argv);
	return 127;
}

START_TEST(box_root_is_powerless)
{
	static char	nft[] = "nft", list[] = "list", flush[] = "flush",
			ruleset[] = "ruleset", ip[] = "ip", link_[] = "link",
			set[] = "set", lo[] = "lo", down[] = "down";
	char		*a1[] = { nft, list, ruleset, NULL };
	char		*a2[] = { nft, flush, ruleset, NULL };
	char		*a3[] = { ip, link_, set, lo, down, NULL };
	int		 r, netns;
	unsigned int	 k;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	ck_assert_int_eq(in_box(netns, probe_powerless), 0);
	r = world_box_result(world_box(netns, tool, a1));
	ck_assert_msg(r != 0, "nft list ruleset");
	r = world_box_result(world_box(netns, tool, a2));
	ck_assert_msg(r != 0, "nft flush ruleset");
	r = world_box_result(world_box(netns, tool, a3));
	ck_assert_msg(r != 0, "ip link set lo down");
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	close(netns);
}
END_TEST

static int
own_netns(void *arg)
{
	return unshare(CLONE_NEWNET) == -1 ? 98 : probe_powerful(arg);
}

/* The control: the same attempts, where the netns is the box's own. */
START_TEST(box_root_in_its_own)
{
	int	netns;

	(void)world_net(&w, ID1, &netns);
	ck_assert_int_eq(in_box(netns, own_netns), 0);
	close(netns);
}
END_TEST

/* Each network belongs to a user namespace of its own, whose owner is k. */
START_TEST(owners)
{
	unsigned int	k;
	int		netns, un, up;
	uid_t		uid;
	struct stat	a, b;

	k = world_net(&w, ID1, &netns);
	ck_assert_int_ne(un = ioctl(netns, NS_GET_USERNS), -1);
	ck_assert_int_ne(up = ioctl(un, NS_GET_PARENT), -1);
	ck_assert_int_eq(ioctl(un, NS_GET_OWNER_UID, &uid), 0);
	ck_assert_uint_eq(uid, 0x6fff0000U + k - 1);
	ck_assert_int_eq(fstat(up, &a), 0);
	ck_assert_int_eq(fstat(w.u1, &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	close(up);
	close(un);
	close(netns);
}
END_TEST

/* ---- hashes ------------------------------------------------------------------ */

START_TEST(hashes)
{
	struct msg_net_status_is	s;
	char				open1[65], open2[65], sealed[65];
	unsigned int			k1, k2;
	int				n1;

	k1 = world_net(&w, ID1, &n1);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.state, 0);
	ck_assert_uint_eq(s.whole, 1);
	(void)str_copy(sealed, s.ruleset, sizeof(sealed));
	ck_assert_uint_eq(strlen(sealed), 64);
	k2 = world_net(&w, ID2, NULL);
	world_open(&w, k1, open1);
	world_open(&w, k2, open2);
	ck_assert_str_eq(open1, open2);
	ck_assert_str_ne(open1, sealed);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.state, 1);
	ck_assert_str_eq(s.ruleset, open1);
	world_cut(&w, k1);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.state, 2);
	ck_assert_str_eq(s.ruleset, sealed);
	close(n1);
}
END_TEST

/* What was changed behind netd's back is seen and told. */
START_TEST(drift)
{
	struct msg_net_status_is	s;
	unsigned int			k;
	int				netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	ck_assert_int_eq(world_box_result(world_insider(&w, netns,
	    probe_add_table, NULL)), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.whole, 0);
	ck_assert_uint_eq(s.state, 1);
	ck_assert_int_eq(world_box_result(world_insider(&w, netns,
	    probe_flush, NULL)), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.whole, 0);
	ck_assert(daemon_logged(w.log, "ruleset is"));
	/* and a cut works all the same, as does opening again */
	world_cut(&w, k);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	ck_assert_int_eq(world_box_result(world_insider(&w, netns,
	    probe_add_table, NULL)), 0);
	world_open(&w, k, NULL);
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.whole, 1);
	close(netns);
}
END_TEST

/* ---- requests that are refused -------------------------------------------- */

static unsigned int
refused(unsigned int type, const void *body, int fd)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_ask(&w.privd, type, body, fd, &m), MSG_ERROR);
	return (unsigned int)m.body.error.code;
}

START_TEST(refusals)
{
	struct msg_net_make		mk = { .id = ID1,
					    .network = NETWORK_ALLOWLIST };
	struct msg_net_open		op = { .k = 7 };
	struct msg_net_cut		cut = { .k = 65535 };
	struct msg_net_status_is	s;
	unsigned int			k;

	ck_assert_uint_eq(refused(MSG_NET_MAKE, &mk, -1),
	    CODE_NETWORK_UNSUPPORTED);
	ck_assert_uint_eq(refused(MSG_NET_OPEN, &op, -1), CODE_NOT_FOUND);
	ck_assert_uint_eq(refused(MSG_NET_CUT, &cut, -1), CODE_NOT_FOUND);
	world_drop(&w, 7);
	ck_assert_uint_eq(status(ID1, &s), CODE_NOT_FOUND);
	k = world_net(&w, ID1, NULL);
	mk.network = NETWORK_NONE;
	ck_assert_uint_eq(refused(MSG_NET_MAKE, &mk, -1), CODE_EXISTS);
	world_drop(&w, k);
	world_drop(&w, k);
	op.k = k;
	ck_assert_uint_eq(refused(MSG_NET_OPEN, &op, -1), CODE_NOT_FOUND);
	/* numbers of the pool are nobody's */
	ck_assert_uint_ne(world_net(&w, ID1, NULL), k);
}
END_TEST

/* ---- faults ------------------------------------------------------------------- */

START_TEST(privd_ends)
{
	int	st;

	chan_close(&w.privd);
	st = world_wait(&w);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}
END_TEST

START_TEST(stop)
{
	struct msg_daemon_stop	q = { 0 };
	struct msg		m;
	int			st;

	ck_assert_uint_eq(daemon_ask(&w.privd, MSG_DAEMON_STOP, &q, -1, &m),
	    MSG_OK);
	st = world_wait(&w);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}
END_TEST

START_TEST(apid_ends)
{
	unsigned int	k;

	k = world_net(&w, ID1, NULL);
	chan_close(&w.apid);
	world_open(&w, k, NULL);
}
END_TEST

/* Nonsense from a daemon ends netd, so that all start afresh. */
static void
garbage(struct chan *c, const void *data, size_t len)
{
	int	st;

	ck_assert_int_eq(send(c->fd, data, len, 0), (ssize_t)len);
	st = world_wait(&w);
	ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == 1, "%x", st);
	ck_assert(daemon_logged(w.log, "netd"));
}

START_TEST(garbage_privd)
{
	garbage(&w.privd, "\xff\xff\xff\xff", 4);
}
END_TEST

/* NET_OPEN {k: 7}, which only privd may say. */
START_TEST(open_from_apid)
{
	(void)world_net(&w, ID1, NULL);
	garbage(&w.apid, "\x94\x01\x3e\x05\x81\xa1k\x07", 8);
}
END_TEST

START_TEST(zero_k)
{
	garbage(&w.privd, "\x94\x01\x3e\x05\x81\xa1k\x00", 8);
}
END_TEST

START_TEST(maker_dies)
{
	int	st;

	ck_assert_int_eq(kill(world_maker(&w), SIGKILL), 0);
	st = world_wait(&w);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

/* The end of a process, whoever's child it is. */
static void
gone(int pidfd)
{
	struct pollfd	p = { .fd = pidfd, .events = POLLIN };

	ck_assert_int_eq(poll(&p, 1, 10000), 1);
	close(pidfd);
}

START_TEST(maker_ends_with_netd)
{
	int	fd = (int)syscall(SYS_pidfd_open, world_maker(&w), 0);

	ck_assert_int_ne(fd, -1);
	world_kill(&w);
	gone(fd);
}
END_TEST

/* ---- adoption ------------------------------------------------------------------ */

static unsigned int
adopt(const char *id, int netns, int open, struct msg *ret)
{
	struct msg_net_adopt	q = { .network = NETWORK_NONE,
				    .open = (uint64_t)open };

	(void)str_copy(q.id, id, sizeof(q.id));
	return daemon_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), ret);
}

START_TEST(adopt_open)
{
	char		 hash[65], b;
	struct msg	 m;
	unsigned int	 k;
	int		 netns, sv[2];
	pid_t		 box;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, hash);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	box = world_box(netns, probe_lasting, &sv[1]);
	ck_assert_int_eq(read(sv[0], &b, 1), 1);
	world_kill(&w);
	/* with no netd at all the ruleset holds */
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	world_start(&w);
	ck_assert_uint_eq(adopt(ID1, netns, 1, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.body.net_opened.k, k);
	ck_assert_str_eq(m.body.net_opened.ruleset, hash);
	ck_assert_int_eq(write(sv[0], "g", 1), 1);
	ck_assert_int_eq(world_box_result(box), 0);
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	ck_assert_int_eq(in_box(netns, probe_powerless), 0);
	ck_assert_uint_eq(adopt(ID2, netns, 1, &m), MSG_ERROR);
	ck_assert_uint_eq(m.body.error.code, CODE_EXISTS);
	world_cut(&w, k);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	world_drop(&w, k);
	close(netns);
	close(sv[0]);
	close(sv[1]);
}
END_TEST

START_TEST(adopt_sealed)
{
	struct msg_net_status_is	s;
	struct msg			m;
	unsigned int			k;
	int				netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	world_kill(&w);
	world_start(&w);
	ck_assert_uint_eq(adopt(ID1, netns, 0, &m), MSG_NET_OPENED);
	ck_assert_int_eq(in_box(netns, probe_dropped), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.state, 2);
	ck_assert_str_eq(s.ruleset, m.body.net_opened.ruleset);
	world_open(&w, k, NULL);
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	close(netns);
}
END_TEST

START_TEST(adopt_changed)
{
	char		hash[65];
	struct msg	m;
	unsigned int	k;
	int		netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, hash);
	world_kill(&w);
	ck_assert_int_eq(world_box_result(world_insider(&w, netns,
	    probe_flush, NULL)), 0);
	ck_assert_int_eq(world_box_result(world_insider(&w, netns,
	    probe_add_table, NULL)), 0);
	world_start(&w);
	ck_assert_uint_eq(adopt(ID1, netns, 1, &m), MSG_NET_OPENED);
	ck_assert_str_eq(m.body.net_opened.ruleset, hash);
	ck_assert(daemon_logged(w.log, "made anew"));
	ck_assert_int_eq(in_box(netns, probe_open), 0);
	close(netns);
}
END_TEST

/* Neither the host's netns nor a stranger's is taken. */
START_TEST(adopt_strangers)
{
	struct msg	m;
	int		host, other;

	ck_assert_int_ne(host = open("/proc/self/ns/net", O_RDONLY), -1);
	ck_assert_uint_eq(adopt(ID1, host, 1, &m), MSG_ERROR);
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_ne(other = open("/proc/self/ns/net", O_RDONLY), -1);
	ck_assert_int_eq(setns(host, CLONE_NEWNET), 0);
	ck_assert_uint_eq(adopt(ID1, other, 1, &m), MSG_ERROR);
	close(other);
	close(host);
	/* and netd lives on */
	(void)world_net(&w, ID1, NULL);
}
END_TEST

/* An adoption that is refused: with this code. */
static unsigned int
not_adopted(const char *id, int netns)
{
	struct msg	m;

	ck_assert_uint_eq(adopt(id, netns, 1, &m), MSG_ERROR);
	return (unsigned int)m.body.error.code;
}

/* What could not be adopted keeps its number all the same. */
START_TEST(adopt_refused)
{
	struct rlimit	few, old;
	struct msg	m;
	unsigned int	k1, k2;
	pid_t		maker;
	int		n1, n2;

	k1 = world_net(&w, ID1, &n1);
	k2 = world_net(&w, ID2, &n2);
	world_kill(&w);
	w.conf.max_boxes = 1;
	world_start(&w);
	ck_assert_uint_eq(adopt(ID1, n1, 1, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(not_adopted(ID2, n2), CODE_NO_SPACE_FOR_BOX);
	world_drop(&w, k1);
	ck_assert_uint_eq(not_adopted(ID2, n2), CODE_EXISTS);
	/* nor where the maker finds it and fails then */
	world_kill(&w);
	world_start(&w);
	maker = world_maker(&w);
	ck_assert_int_eq(prlimit(maker, RLIMIT_NOFILE, NULL, &old), 0);
	few = old;
	few.rlim_cur = 7 + 3;	/* its own; the netns and two sockets of it */
	ck_assert_int_eq(prlimit(maker, RLIMIT_NOFILE, &few, NULL), 0);
	ck_assert_uint_eq(not_adopted(ID2, n2), CODE_INTERNAL);
	ck_assert(daemon_logged(w.log, "open netlink"));
	ck_assert_int_eq(prlimit(maker, RLIMIT_NOFILE, &old, NULL), 0);
	ck_assert_uint_eq(not_adopted(ID2, n2), CODE_EXISTS);
	/* the control: it is not taken by what is none of ours */
	world_kill(&w);
	world_start(&w);
	ck_assert_uint_eq(adopt(ID2, n2, 1, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.body.net_opened.k, k2);
	close(n1);
	close(n2);
}
END_TEST

/* ---- numbers ------------------------------------------------------------------- */

#define MANY	200

/* A socket that hears of the death of what we give numbers to. */
static int
watcher(void)
{
	struct sockaddr_nl	sa = { .nl_family = AF_NETLINK };
	int			fd = socket(AF_NETLINK, SOCK_RAW |
				    SOCK_CLOEXEC, NETLINK_ROUTE);
	int			group = RTNLGRP_NSID, room = 4 << 20;

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room,
	    sizeof(room)), 0);
	/* without a number of its own it would pass for the kernel */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
	    &group, sizeof(group)), 0);
	return fd;
}

static void
name_it(int netns)
{
	struct {
		struct nlmsghdr	h;
		struct rtgenmsg	g;
		uint8_t		pad[3];
		struct nlattr	fa;
		uint32_t	fd;
		struct nlattr	na;
		int32_t		id;
	} q = { { sizeof(q), RTM_NEWNSID, NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
	    { AF_UNSPEC }, { 0 }, { 8, NETNSA_FD }, (uint32_t)netns,
	    { 8, NETNSA_NSID }, -1 };
	struct {
		struct nlmsghdr		h;
		struct nlmsgerr		e;
		uint8_t			more[256];
	} r;
	int	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
		    NETLINK_ROUTE);

	ck_assert_int_eq(send(fd, &q, sizeof(q), 0), (ssize_t)sizeof(q));
	ck_assert_int_gt(recv(fd, &r, sizeof(r), 0), 0);
	ck_assert_int_eq(r.h.nlmsg_type, NLMSG_ERROR);
	ck_assert_int_eq(r.e.error, 0);
	close(fd);
}

static void
await_deaths(int fd, int n)
{
	struct pollfd	p = { .fd = fd, .events = POLLIN };
	union {
		struct nlmsghdr	h;
		uint8_t		b[4096];
	}		r;

	while (n > 0) {
		ck_assert_msg(poll(&p, 1, 20000) == 1, "%d live on", n);
		ck_assert_int_gt(recv(fd, &r, sizeof(r), 0), 0);
		n -= r.h.nlmsg_type == RTM_DELNSID;
	}
}

static void
id_of(int i, char ret[27])
{
	snprintf(ret, 27, "01K8ZZZZZZZZZZZZZZZZZZZ%03d", i);
}

/* Made one by one, held all at once, and freed: nothing is left. */
START_TEST(two_hundred)
{
	static unsigned int	k[MANY];
	int			before, i, netns, watch = watcher();
	char			id[27];

	/* the first fills the pool's place */
	world_drop(&w, world_net(&w, ID1, NULL));
	before = world_fds(w.pid);
	for (i = 0; i < MANY; i++) {
		id_of(i, id);
		k[i] = world_net(&w, id, &netns);
		name_it(netns);
		close(netns);
		world_open(&w, k[i], NULL);
	}
	/* a pool's worth of prepared ones may come or go meanwhile */
	ck_assert_int_le(world_fds(w.pid), before + 2 * MANY + 8);
	for (i = 0; i < MANY; i++)
		world_drop(&w, k[i]);
	await_deaths(watch, MANY);
	ck_assert_int_le(world_fds(w.pid), before + 8);
	ck_assert_int_ge(world_fds(w.pid), before - 8);
	ck_assert_int_le(world_fds(world_maker(&w)), 3 + 4 + 5);
	close(watch);
}
END_TEST

/* Made and freed in turn; k's come back only after all others. */
START_TEST(turns)
{
	static uint8_t	seen[65536];
	int		i, netns, watch = watcher();
	unsigned int	k;

	for (i = 0; i < MANY; i++) {
		k = world_net(&w, ID1, &netns);
		ck_assert_msg(!seen[k]++, "%u came back", k);
		name_it(netns);
		close(netns);
		world_open(&w, k, NULL);
		world_drop(&w, k);
	}
	await_deaths(watch, MANY);
	close(watch);
}
END_TEST

/* One id asked for twice at once: one network. */
START_TEST(twice_at_once)
{
	struct msg_net_make	q = { .id = ID1, .network = NETWORK_NONE };
	struct msg		m;
	int			i, made = 0;

	for (i = 0; i < 2; i++)
		ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_MAKE, &q, -1,
		    NULL), 0);
	for (i = 0; i < 2; i++) {
		if (daemon_next(&w.privd, &m) == MSG_NET_MADE) {
			close(m.fd);
			made++;
		} else
			ck_assert_uint_eq(m.body.error.code, CODE_EXISTS);
	}
	ck_assert_int_eq(made, 1);
}
END_TEST

/* All asked for at once, none answered before: each gets its own. */
START_TEST(burst)
{
	struct msg_net_make	q = { .network = NETWORK_NONE };
	static uint8_t		seen[65536];
	struct msg		m;
	int			i;

	for (i = 0; i < MANY; i++) {
		id_of(i, q.id);
		ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_MAKE, &q, -1,
		    NULL), 0);
	}
	for (i = 0; i < MANY; i++) {
		while (chan_pending(&w.privd))
			ck_assert_int_ne(chan_flush(&w.privd), -1);
		ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_MADE);
		ck_assert(!seen[m.body.net_made.k]++);
		close(m.fd);
	}
}
END_TEST

START_TEST(descriptor_limit)
{
	struct msg_net_make	q = { .id = ID2, .network = NETWORK_NONE };
	char			id[27];
	unsigned int		k = 0;
	int			i;

	world_kill(&w);
	w.nofile = 64 + 4 * 3;
	world_start(&w);
	for (i = 0; i < 3; i++) {
		id_of(i, id);
		k = world_net(&w, id, NULL);
		world_open(&w, k, NULL);
	}
	ck_assert_uint_eq(refused(MSG_NET_MAKE, &q, -1),
	    CODE_NO_SPACE_FOR_BOX);
	world_drop(&w, k);
	(void)world_net(&w, ID2, NULL);
	ck_assert(daemon_logged(w.log, "bounds the boxes to 3"));
}
END_TEST

/* ---- without netfilter ------------------------------------------------------- */

START_TEST(absent)
{
	struct msg_net_status_is	s;
	char				hash[65];
	struct msg			m;
	unsigned int			k;
	int				netns;
	struct msg_net_make		mk = { .id = ID1,
					    .network = NETWORK_EGRESS };

	/* nothing would be between the box and its way out */
	ck_assert_uint_eq(refused(MSG_NET_MAKE, &mk, -1),
	    CODE_NETWORK_UNSUPPORTED);
	k = world_net(&w, ID1, &netns);
	ck_assert_int_eq(in_box(netns, probe_lo_down), 0);
	world_open(&w, k, hash);
	ck_assert_str_eq(hash, "absent");
	ck_assert_int_eq(in_box(netns, probe_absent), 0);
	ck_assert_int_eq(in_box(netns, probe_ports), 0);
	ck_assert_int_eq(in_box(netns, probe_powerless), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_str_eq(s.ruleset, "absent");
	ck_assert_uint_eq(s.whole, 1);
	world_kill(&w);
	world_start(&w);
	ck_assert_uint_eq(adopt(ID1, netns, 1, &m), MSG_NET_OPENED);
	ck_assert_str_eq(m.body.net_opened.ruleset, "absent");
	ck_assert_int_eq(in_box(netns, probe_absent), 0);
	world_cut(&w, k);
	ck_assert_int_eq(in_box(netns, probe_lo_down), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.state, 2);
	ck_assert_uint_eq(s.whole, 1);
	world_kill(&w);
	world_start(&w);
	ck_assert_uint_eq(adopt(ID1, netns, 0, &m), MSG_NET_OPENED);
	ck_assert_int_eq(in_box(netns, probe_lo_down), 0);
	ck_assert_uint_eq(world_box_result(world_insider(&w, netns,
	    probe_raise, NULL)), 0);
	ck_assert_uint_eq(status(ID1, &s), MSG_NET_STATUS_IS);
	ck_assert_uint_eq(s.whole, 0);
	world_drop(&w, k);
	close(netns);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("netd");
	TCase	*with = tcase_create("with"), *without = tcase_create("absent");
	TCase	*uplinks = tcase_create("uplinks");
	TCase	*allow = tcase_create("allow");
	SRunner	*r;
	int	 failed;

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	tcase_add_checked_fixture(with, setup, teardown);
	tcase_set_timeout(with, 60);
	tcase_add_test(with, nothing_before_open);
	tcase_add_test(with, open_none);
	tcase_add_test(with, cut_and_again);
	tcase_add_test(with, cut_before_open);
	tcase_add_test(with, neighbours);
	tcase_add_test(with, box_root_is_powerless);
	tcase_add_test(with, box_root_in_its_own);
	tcase_add_test(with, owners);
	tcase_add_test(with, hashes);
	tcase_add_test(with, drift);
	tcase_add_test(with, refusals);
	tcase_add_test(with, privd_ends);
	tcase_add_test(with, stop);
	tcase_add_test(with, apid_ends);
	tcase_add_test(with, garbage_privd);
	tcase_add_test(with, open_from_apid);
	tcase_add_test(with, zero_k);
	tcase_add_test(with, maker_dies);
	tcase_add_test(with, maker_ends_with_netd);
	tcase_add_test(with, adopt_open);
	tcase_add_test(with, adopt_sealed);
	tcase_add_test(with, adopt_changed);
	tcase_add_test(with, adopt_strangers);
	tcase_add_test(with, adopt_refused);
	tcase_add_test(with, two_hundred);
	tcase_add_test(with, turns);
	tcase_add_test(with, twice_at_once);
	tcase_add_test(with, burst);
	tcase_add_test(with, descriptor_limit);
	uplink_tests(uplinks);
	allow_tests(allow);
	if (world_netfilter()) {
		suite_add_tcase(s, with);
		suite_add_tcase(s, uplinks);
		suite_add_tcase(s, allow);
		suite_add_tcase(s, uplink_host_tests());
	} else
		printf("skipped: this kernel has no netfilter\n");
	tcase_add_checked_fixture(without, setup_without, teardown);
	tcase_set_timeout(without, 60);
	tcase_add_test(without, absent);
	suite_add_tcase(s, without);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
