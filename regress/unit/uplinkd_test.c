/*
 * uplinkd_test.c: the real uplinkd and the real slirp4netns, in namespaces of
 * their own; nothing leaves the machine.
 *
 * Shows that packets go once STARTED was said, and where they do not; that
 * slirp4netns is in its sandbox, alone as its uid, without a right on the
 * host; that ends are told; who lives on when uplinkd does not; and what a
 * hostile netd does not get.
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uplinkd_rig.h"
#include "xmalloc.h"

#ifdef __SANITIZE_ADDRESS__		/* test builds have no filter of ours */
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

#define K		41
#define MANY		100
#define PUBLIC		"203.0.113.10"
#define PUBLIC6		"2001:db8:1::10"

static struct rig	r;

static void
setup(void)
{
	rig_make(&r);
	rig_start(&r);
}

static void
teardown(void)
{
	rig_free(&r);
}

/* A netns of k with its way out. */
static int
up(unsigned int k)
{
	struct msg	m;
	int		netns = rig_netns(&r, k);
	unsigned int	type = rig_up(&r, k, 0, netns, &m);

	ck_assert_msg(type == MSG_UPLINK_STARTED, "%s", type == MSG_ERROR ?
	    m.body.error.detail : "");
	ck_assert_uint_eq(m.body.uplink_started.k, k);
	ck_assert_uint_eq(m.body.uplink_started.kept, 0);
	ck_assert_uint_eq(m.body.uplink_started.ipv6, (uint64_t)r.lab.v6);
	return netns;
}

static void
gone(pid_t pid)
{
	int	n;

	for (n = 0; kill(pid, 0) == 0 && n < 500; n++)
		(void)poll(NULL, 0, 10);
	ck_assert_int_eq(kill(pid, 0), -1);
}

START_TEST(packets_go)
{
	int	netns = up(K);

	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	ck_assert_int_eq(rig_udp(netns, PUBLIC, LAB_PORT), 0);
	/* the resolver of the configuration, at the one address for it */
	ck_assert_int_eq(rig_udp(netns, "198.19.255.3", LAB_DNS), 0);
	ck_assert_int_eq(rig_tcp(netns, "198.19.255.3", LAB_DNS), 0);
	rig_end(&r, K);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), ENETUNREACH);
	close(netns);
}
END_TEST

/* Who listens on the host's loopback is not reached by the gateway. */
START_TEST(host_loopback)
{
	int	netns = up(K);

	ck_assert_int_eq(rig_tcp(r.lab.netns[LAB_HOST], "127.0.0.1",
	    LAB_PORT), 0);
	ck_assert_int_ne(rig_tcp(netns, "198.19.255.2", LAB_PORT), 0);
	ck_assert_int_ne(rig_udp(netns, "198.19.255.2", LAB_PORT), 0);
	ck_assert_int_ne(rig_tcp(netns, "198.19.255.3", LAB_PORT), 0);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
}
END_TEST

static void
status_is(pid_t pid, const char *word, const char *want)
{
	const char	*is = rig_proc(pid, "status", word);

	ck_assert_msg(strcmp(is, want) == 0, "%s%s, not %s", word, is, want);
}

/* The file behind a descriptor; "" if there is none. */
static void
behind(pid_t pid, int fd, char ret[128])
{
	char	path[64];
	ssize_t	n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, ret, 127);
	ret[n > 0 ? n : 0] = '\0';
}

/* 0 to 2 are /dev/null and the log. */
static void
nothing_of_uplinkds(pid_t pid)
{
	char	is[128], was[128];
	int	fd, n, tun = 0;

	for (fd = 3; fd < 64; fd++) {
		behind(pid, fd, is);
		snprintf(was, sizeof(was), "fdinfo/%d", fd);
		if (is[0] != '\0')
			tun += strcmp(rig_proc(pid, was, "iff:"), "\ttap0") ==
			    0;
		for (n = 0; n < 64 && is[0] != '\0'; n++) {
			behind(r.pid, n, was);
			ck_assert_str_ne(is, was);
		}
	}
	ck_assert_int_eq(tun, 1);
}

/* The sandbox, the uid, the rights, the bounds. */
START_TEST(slirp_is_fenced)
{
	char		 want[128], path[64];
	const char	*quota, *weight;
	struct stat	 un, mine;
	int		 netns = up(K);
	pid_t		 pid = rig_slirp(K);
	const uint64_t	 memory = ((8U << 20) + 512UL * 419430) & ~4095UL;

	ck_assert_int_ne(pid, 0);
	ck_assert_str_eq(rig_ls(pid, ""), "etc run");
	ck_assert_str_eq(rig_ls(pid, "etc"), "nsswitch.conf resolv.conf");
	ck_assert_str_eq(rig_ls(pid, "run"), "");
	snprintf(path, sizeof(path), "root/etc/resolv.conf");
	ck_assert_str_eq(rig_proc(pid, path, "nameserver "), "203.0.113.50");
	snprintf(want, sizeof(want), "\t%u\t%u\t%u\t%u", RIG_NETBASE + K - 1,
	    RIG_NETBASE + K - 1, RIG_NETBASE + K - 1, RIG_NETBASE + K - 1);
	status_is(pid, "Uid:", want);
	status_is(pid, "Gid:", want);
	status_is(pid, "Groups:", "\t ");
	status_is(pid, "CapEff:", "\t0000000000000400");
	status_is(pid, "CapPrm:", "\t0000000000000400");
	status_is(pid, "CapBnd:", "\t0000000000000400");
	status_is(pid, "CapAmb:", "\t0000000000000000");
	status_is(pid, "NoNewPrivs:", "\t1");
	status_is(pid, "Seccomp:", "\t2");
	ck_assert_int_ge(strtol(rig_proc(pid, "status", "Seccomp_filters:"),
	    NULL, 10), 2 - SANITIZED);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ck_assert_int_eq(stat(path, &un), 0);
	ck_assert_int_eq(stat("/proc/self/ns/user", &mine), 0);
	ck_assert_uint_ne(un.st_ino, mine.st_ino);
	ck_assert_int_eq(fstat(r.u1, &mine), 0);
	ck_assert_uint_ne(un.st_ino, mine.st_ino);
	nothing_of_uplinkds(pid);
	ck_assert_str_eq(rig_proc(pid, "limits", "Max open files "),
	    "           512                  512                  files     ");
	snprintf(want, sizeof(want), "%ju", (uintmax_t)memory);
	ck_assert_str_eq(rig_limit("memory", K, "memory.max",
	    "memory.limit_in_bytes"), want);
	ck_assert_str_eq(rig_limit("pids", K, "pids.max", "pids.max"), "1");
	weight = rig_limit("cpu", K, "cpu.weight", "cpu.shares");
	ck_assert(strcmp(weight, "10") == 0 || strcmp(weight, "102") == 0);
	quota = rig_limit("cpu", K, "cpu.max", "cpu.cfs_quota_us");
	ck_assert(strcmp(quota, "100000 100000") == 0 ||
	    strcmp(quota, "100000") == 0);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
}
END_TEST

/* A tree that has less than one, or no such controller: it is told. */
START_TEST(cpu_is_not_there)
{
	static const char	*text =
	    "uplinks use processors without a limit: cgroup cpu";
	int			 netns;

	ck_assert(!daemon_logged(r.log, text));
	rig_kill(&r);
	rig_no_cpu();
	rig_start(&r);
	netns = up(K);
	ck_assert(daemon_logged(r.log, text));
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
}
END_TEST

/* uplinkd's own fence, as ps and /proc show it. */
START_TEST(uplinkd_is_fenced)
{
	char	want[64];

	ck_assert_str_eq(rig_ls(r.pid, ""),
	    access("/lib64", F_OK) == 0 ?
	    "bin cgroup dev etc lib lib64 netns run tmp usr" :
	    "bin cgroup dev etc lib netns run tmp usr");
	ck_assert_str_eq(rig_ls(r.pid, "dev"), "net null urandom");
	ck_assert_str_eq(rig_ls(r.pid, "run"), "");
	ck_assert_str_eq(rig_ls(r.pid, "tmp"), "");
	snprintf(want, sizeof(want), "\t%u\t%u\t%u\t%u", RIG_UID, RIG_UID,
	    RIG_UID, RIG_UID);
	status_is(r.pid, "Uid:", want);
	/* SETGID, SETUID, SYS_ADMIN over U1 */
	status_is(r.pid, "CapEff:", "\t00000000002000c0");
	status_is(r.pid, "CapBnd:", "\t00000000002000c0");
	status_is(r.pid, "NoNewPrivs:", "\t1");
	status_is(r.pid, "Seccomp:", SANITIZED ? "\t0" : "\t2");
	ck_assert_str_eq(rig_proc(r.pid, "limits", "Max core file size "),
	    "       0                    0                    bytes     ");
}
END_TEST

START_TEST(death_is_told)
{
	int		netns = up(K), other = up(K + 1);
	pid_t		pid = rig_slirp(K);
	struct msg	m;

	kill(pid, SIGKILL);
	ck_assert_uint_eq(daemon_next(&r.netd, &m), MSG_UPLINK_DOWN);
	ck_assert_uint_eq(m.body.uplink_down.k, K);
	gone(pid);
	ck_assert(!rig_cgroup(K));
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), ENETUNREACH);
	ck_assert_int_eq(rig_tcp(other, PUBLIC, LAB_PORT), 0);
	/* and again */
	ck_assert_uint_eq(rig_up(&r, K, 0, netns, &m), MSG_UPLINK_STARTED);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
	close(other);
}
END_TEST

START_TEST(end_leaves_nothing)
{
	int	netns = up(K);
	pid_t	pid = rig_slirp(K);

	rig_end(&r, K);
	gone(pid);
	ck_assert(!rig_cgroup(K));
	rig_end(&r, K);			/* and what never was */
	close(netns);
}
END_TEST

/* Started, ended, started and ended, before the first end is done. */
START_TEST(end_overtakes)
{
	struct msg_uplink_start	q = { .k = K };
	struct msg_uplink_end	e = { .k = K };
	struct msg		m;
	uint32_t		rid[4];
	int			i, netns = rig_netns(&r, K);
	unsigned int		type;

	for (i = 0; i < 4; i += 2) {
		ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_START, &q,
		    fcntl(netns, F_DUPFD_CLOEXEC, 0), &rid[i]), 0);
		ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_END, &e, -1,
		    &rid[i + 1]), 0);
	}
	for (i = 0; i < 4; i++) {
		type = daemon_next(&r.netd, &m);
		ck_assert(type == MSG_ERROR || type == MSG_OK);
		ck_assert(m.rid != rid[1] || type == MSG_OK);
		ck_assert((m.rid != rid[0] && m.rid != rid[2]) ||
		    type == MSG_ERROR);
	}
	for (i = 0; rig_cgroup(K) && i < 200; i++)
		(void)poll(NULL, 0, 10);
	ck_assert(!rig_cgroup(K));
	close(netns);
}
END_TEST

static int
was_up(unsigned int k)
{
	return strcmp(rig_limit("pids", k, "pids.max", "pids.max"), "1") == 0;
}

/* How many are on their way at one moment. */
static unsigned int
starting(unsigned int k, unsigned int n)
{
	unsigned int	i, yes = 0;

	kill(r.pid, SIGSTOP);
	while (strchr(rig_proc(r.pid, "status", "State:"), 'T') == NULL)
		(void)poll(NULL, 0, 1);
	for (i = 0; i < n; i++)
		yes += rig_cgroup(k + i) && !was_up(k + i);
	kill(r.pid, SIGCONT);
	return yes;
}

/*
 * All at once, as after the death of all: each has its turn, few are on their
 * way at one time, and one whose end is asked for before has no turn.
 */
START_TEST(many)
{
	struct msg_uplink_start	q = { .k = 0 };
	struct msg_uplink_end	e = { .k = K + MANY };
	struct msg		m;
	static int		netns[MANY + 1];
	unsigned int		i, n, errors = 0, most = 0, up = 0;

	for (i = 0; i <= MANY; i++)
		netns[i] = rig_netns(&r, K + i);
	for (i = 0; i <= MANY; i++) {
		q.k = K + i;
		ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_START, &q,
		    netns[i], NULL), 0);
	}
	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_END, &e, -1, NULL), 0);
	for (i = 0; i < MANY + 2; i++) {
		n = i % 8 == 0 ? starting(K, MANY) : 0;
		most = n > most ? n : most;
		switch (daemon_next(&r.netd, &m)) {
		case MSG_UPLINK_STARTED:
			ck_assert_uint_lt(m.body.uplink_started.k, K + MANY);
			up++;
			break;
		case MSG_ERROR:
			ck_assert_str_eq(m.body.error.detail,
			    "it was ended while it was started");
			errors++;
			break;
		default:
			ck_assert_uint_eq(m.row->type, MSG_OK);
		}
	}
	ck_assert_uint_eq(up, MANY);
	ck_assert_msg(most > 1 && most <= 16, "%u at one time", most);
	ck_assert_uint_eq(errors, 1);
	for (i = 0; i < MANY; i++)
		ck_assert_msg(rig_slirp(K + i) != 0, "%u", K + i);
	ck_assert(!rig_cgroup(K + MANY));
}
END_TEST

/* Restart: one is kept, one is nobody's, one is not to be kept. */
START_TEST(they_live_on)
{
	int		kept = up(K), left = up(K + 1), anew = up(K + 2);
	pid_t		pid = rig_slirp(K), nobodys = rig_slirp(K + 1),
			old = rig_slirp(K + 2);
	struct msg	m;

	rig_kill(&r);
	ck_assert_int_eq(rig_tcp(kept, PUBLIC, LAB_PORT), 0);
	rig_start(&r);
	ck_assert_uint_eq(rig_up(&r, K, 1, kept, &m), MSG_UPLINK_STARTED);
	ck_assert_uint_eq(m.body.uplink_started.kept, 1);
	ck_assert_int_eq(rig_slirp(K), pid);
	ck_assert_uint_eq(rig_up(&r, K + 2, 0, anew, &m), MSG_UPLINK_STARTED);
	ck_assert_uint_eq(m.body.uplink_started.kept, 0);
	gone(old);
	ck_assert_int_eq(kill(nobodys, 0), 0);
	rig_go(&r);
	gone(nobodys);
	ck_assert_int_eq(rig_tcp(kept, PUBLIC, LAB_PORT), 0);
	ck_assert_int_eq(rig_tcp(anew, PUBLIC, LAB_PORT), 0);
	ck_assert_int_eq(rig_tcp(left, PUBLIC, LAB_PORT), ENETUNREACH);
	/* the end of one that is not its child is seen, too */
	kill(pid, SIGKILL);
	ck_assert_uint_eq(daemon_next(&r.netd, &m), MSG_UPLINK_DOWN);
	ck_assert_uint_eq(m.body.uplink_down.k, K);
	/* keep, but there is none: a new one */
	ck_assert_uint_eq(rig_up(&r, K, 1, kept, &m), MSG_UPLINK_STARTED);
	ck_assert_uint_eq(m.body.uplink_started.kept, 0);
	ck_assert_int_eq(rig_tcp(kept, PUBLIC, LAB_PORT), 0);
	close(kept);
	close(left);
	close(anew);
}
END_TEST

/* Stops one wherever it is on its way, and ends uplinkd; 0: it was up. */
static pid_t
stop_start(int netns)
{
	struct msg_uplink_start	q = { .k = K };
	pid_t			pid;

	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_START, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), NULL), 0);
	while ((pid = rig_slirp(K)) == 0)
		(void)poll(NULL, 0, 1);
	kill(pid, SIGSTOP);
	rig_kill(&r);
	if (was_up(K))
		pid = 0;
	rig_start(&r);
	if (pid == 0)
		rig_end(&r, K);
	return pid;
}

/* uplinkd ends while one starts, which then has told it to nobody. */
START_TEST(half_way)
{
	struct msg	m;
	int		n, netns = rig_netns(&r, K);
	pid_t		pid;

	for (n = 0; (pid = stop_start(netns)) == 0; n++)
		ck_assert_int_lt(n, 50);
	ck_assert_uint_eq(rig_up(&r, K, 1, netns, &m), MSG_UPLINK_STARTED);
	ck_assert_uint_eq(m.body.uplink_started.kept, 0);
	gone(pid);
	ck_assert_int_ne(rig_slirp(K), 0);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
}
END_TEST

START_TEST(refusals)
{
	int		netns = up(K), other = rig_netns(&r, K + 1), own,
			below = rig_netns_below(&r, K + 2);
	struct msg	m;

	ck_assert_uint_eq(rig_up(&r, K, 0, netns, &m), MSG_ERROR);
	ck_assert_uint_eq(m.body.error.code, CODE_EXISTS);
	/* another k's, and the host's own */
	ck_assert_uint_eq(rig_up(&r, K + 2, 0, other, &m), MSG_ERROR);
	ck_assert_str_eq(m.body.error.detail,
	    "the network namespace is not k's");
	/* its own, but not of netd's maker */
	ck_assert_uint_eq(rig_up(&r, K + 2, 0, below, &m), MSG_ERROR);
	ck_assert_str_eq(m.body.error.detail,
	    "the network namespace is not k's");
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ck_assert_uint_eq(rig_up(&r, K + 2, 0, own, &m), MSG_ERROR);
	ck_assert_uint_eq(rig_up(&r, K + 2, 1, own, &m), MSG_ERROR);
	ck_assert_uint_eq(rig_up(&r, K + 2, 0, r.lab.netns[LAB_HOST], &m),
	    MSG_ERROR);
	ck_assert(!rig_cgroup(K + 2));
	ck_assert_uint_eq(rig_up(&r, K + 1, 0, other, &m),
	    MSG_UPLINK_STARTED);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(own);
	close(below);
	close(netns);
	close(other);
}
END_TEST

/* All said at once: the second end is for the start between. */
START_TEST(ended_while_it_ends)
{
	struct msg_uplink_end	 e = { .k = K };
	struct msg_uplink_start	 q = { .k = K };
	struct msg		 m;
	uint32_t		 first, start, second;
	int			 i, netns = up(K);

	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_END, &e, -1, &first),
	    0);
	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_START, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), &start), 0);
	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_END, &e, -1, &second),
	    0);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(daemon_next(&r.netd, &m), m.rid == first ?
		    MSG_OK : MSG_ERROR);
		ck_assert(m.rid == first || m.rid == start ||
		    m.rid == second);
	}
	ck_assert(!rig_cgroup(K));
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), ENETUNREACH);
	rig_end(&r, K);
	ck_assert(!rig_cgroup(K));
	close(netns);
}
END_TEST

/* What is no netns never comes as far as a handler: uplinkd ends. */
START_TEST(not_a_netns)
{
	struct msg_uplink_start	 q = { .k = K };
	struct msg		 m;
	int			 st, fd;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_START, &q, fd, NULL),
	    0);
	ck_assert_uint_eq(daemon_next(&r.netd, &m), 0);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

/* netd has no say in when it starts and stops. */
START_TEST(not_netds)
{
	struct msg_daemon_stop	 q = { 0 };
	struct msg		 m;
	int			 st;

	r.netd.self = A_PRIVD;		/* what it claims to be */
	ck_assert_int_eq(chan_ask(&r.netd, MSG_DAEMON_STOP, &q, -1, NULL),
	    0);
	ck_assert_uint_eq(daemon_next(&r.netd, &m), 0);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

/* netd's last words are heard; what boxes have goes on. */
START_TEST(stop)
{
	struct msg_daemon_stop	 q = { 0 };
	struct msg_uplink_end	 e = { .k = K + 1 };
	struct msg		 m;
	int			 st, netns = up(K), pooled = up(K + 1);
	pid_t			 pid = rig_slirp(K + 1);
	uint32_t		 rid;

	rig_go(&r);
	ck_assert_int_eq(chan_ask(&r.privd, MSG_DAEMON_STOP, &q, -1, &rid),
	    0);
	ck_assert_int_eq(chan_ask(&r.netd, MSG_UPLINK_END, &e, -1, NULL), 0);
	ck_assert_int_eq(shutdown(r.netd.fd, SHUT_WR), 0);
	ck_assert_uint_eq(daemon_next(&r.privd, &m), MSG_OK);
	ck_assert_uint_eq(m.rid, rid);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	gone(pid);
	ck_assert(!rig_cgroup(K + 1));
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
	close(pooled);
}
END_TEST

START_TEST(privd_ends)
{
	int	st, netns = up(K);

	ck_assert_int_eq(shutdown(r.privd.fd, SHUT_RDWR), 0);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	ck_assert_int_eq(rig_tcp(netns, PUBLIC, LAB_PORT), 0);
	close(netns);
}
END_TEST

/* Many connections: its limit is told at once, and its memory is enough. */
static int
hold(void *arg)
{
	struct sockaddr_in	sa = { .sin_family = AF_INET,
				    .sin_port = htons(LAB_PORT) };
	struct rlimit		rl = { 2048, 2048 };
	int			fd, n, got;

	(void)arg;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		return 250;
	(void)inet_pton(AF_INET, PUBLIC, &sa.sin_addr);	/* it is one */
	for (n = got = 0; n < 200; n++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd == -1)
			return 251;
		got += connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
	}
	return got;
}

START_TEST(connections)
{
	int	got, n, netns;

	rig_kill(&r);
	r.conf.egress_connections = 64;
	rig_start(&r);
	netns = up(K);
	got = rig_in(netns, hold, NULL);
	ck_assert_msg(got > 40 && got < 64, "%d connections", got);
	/* and they are given back, as slirp4netns sees them end */
	for (n = 0; rig_tcp(netns, PUBLIC, LAB_PORT) != 0; n++) {
		ck_assert_int_lt(n, 100);
		(void)poll(NULL, 0, 100);
	}
	close(netns);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("uplinkd");
	TCase	*t = tcase_create("all");
	SRunner	*sr;
	int	 failed;

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	if (access("/usr/bin/slirp4netns", X_OK) == -1) {
		printf("needs slirp4netns\n");
		return 77;
	}
	rig_sweep();			/* names what is made, too */
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, packets_go);
	tcase_add_test(t, host_loopback);
	tcase_add_test(t, slirp_is_fenced);
	tcase_add_test(t, cpu_is_not_there);
	tcase_add_test(t, uplinkd_is_fenced);
	tcase_add_test(t, death_is_told);
	tcase_add_test(t, end_leaves_nothing);
	tcase_add_test(t, end_overtakes);
	tcase_add_test(t, many);
	tcase_add_test(t, they_live_on);
	tcase_add_test(t, half_way);
	tcase_add_test(t, refusals);
	tcase_add_test(t, ended_while_it_ends);
	tcase_add_test(t, not_a_netns);
	tcase_add_test(t, not_netds);
	tcase_add_test(t, stop);
	tcase_add_test(t, privd_ends);
	tcase_add_test(t, connections);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	rig_sweep();
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
