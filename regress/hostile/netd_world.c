/*
 * netd_world.c: see netd_world.h.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netd_world.h"
#include "xmalloc.h"

#define NETBASE	0x6fff0000U

int
world_netfilter(void)
{
	int	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
		    NETLINK_NETFILTER);

	if (fd == -1)
		return 0;
	close(fd);
	return 1;
}

static void
conf_default(struct conf *c)
{
	daemon_conf(c);
	/* what this kernel lacks must be named, here too */
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1)
		(void)str_copy(c->landlock, "none", sizeof(c->landlock));
	if (!world_netfilter())
		(void)str_copy(c->netfilter, "none", sizeof(c->netfilter));
}

void
world_make(struct world *w)
{
	memset(w, 0, sizeof(*w));
	conf_default(&w->conf);
	w->u1 = daemon_u1(WORLD_NETD, NETBASE);
	w->privd.fd = w->apid.fd = w->uplinkd.fd = w->proxyd.fd =
	    w->to_uplinkd = -1;
	w->exe = open(WB_TOP_BUILDDIR "/netd/netd", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ne(w->exe, -1);
	daemon_log(w->log, "netd-test");
}

void
world_free(struct world *w)
{
	if (w->pid != 0)
		world_kill(w);
	close(w->u1);
	close(w->exe);
	fd_close(&w->to_uplinkd);
	if (getenv("DAEMON_LOG") != NULL)
		daemon_show(w->log);
	unlink(w->log);
}

/* The child that becomes netd. */
static void	run(struct world *, const int *, int)
    __attribute__((noreturn));

static void
run(struct world *w, const int *fd, int n)
{
	struct rlimit	rl = { w->nofile, w->nofile };

	if (w->nofile != 0 && setrlimit(RLIMIT_NOFILE, &rl) == -1)
		_exit(99);
	daemon_exec(w->u1, w->exe, w->log, fd, n);
}

void
world_start(struct world *w)
{
	struct msg_daemon_go	go = { .generation = 1 };
	struct msg		m;
	int			conf, pv[2], av[2], uv[2] = { -1,
				    steal_fd(&w->to_uplinkd) }, xv[2];

	daemon_pair(pv);
	daemon_pair(xv);
	daemon_pair(av);
	if (uv[1] == -1)
		daemon_pair(uv);
	ck_assert_int_ne(conf = conf_seal(&w->conf), -1);
	ck_assert_int_ne(w->pid = fork(), -1);
	if (w->pid == 0)
		run(w, (const int[]){ pv[1], conf, av[1], uv[1], xv[1] },
		    w->named ? 5 : 4);
	close(pv[1]);
	close(av[1]);
	close(uv[1]);
	close(xv[1]);
	close(conf);
	chan_init(&w->privd, pv[0], A_PRIVD, A_NETD, S_INIT);
	chan_init(&w->apid, av[0], A_APID, A_NETD, S_RUN);
	chan_init(&w->uplinkd, uv[0], A_UPLINKD, A_NETD, S_RUN);
	chan_init(&w->proxyd, xv[0], A_PROXYD, A_NETD, S_RUN);
	ck_assert_uint_eq(daemon_next(&w->privd, &m), MSG_DAEMON_READY);
	w->privd.state = S_RUN;
	ck_assert_int_eq(chan_send(&w->privd, MSG_DAEMON_GO, m.rid, &go, -1),
	    0);
}

static void
world_hangup(struct world *w)
{
	chan_close(&w->privd);
	chan_close(&w->apid);
	chan_close(&w->uplinkd);
	chan_close(&w->proxyd);
	w->pid = 0;
}

int
world_wait(struct world *w)
{
	int	st = -1;

	ck_assert_int_eq(waitpid(w->pid, &st, 0), w->pid);
	world_hangup(w);
	return st;
}

void
world_kill(struct world *w)
{
	kill(w->pid, SIGKILL);
	(void)world_wait(w);
}

unsigned int
world_net(struct world *w, const char *id, int *ret_netns)
{
	struct msg_net_make	q = { .network = NETWORK_NONE };
	struct msg		m;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_uint_eq(daemon_ask(&w->privd, MSG_NET_MAKE, &q, -1, &m),
	    MSG_NET_MADE);
	if (ret_netns != NULL)
		*ret_netns = m.fd;
	else
		close(m.fd);
	return (unsigned int)m.body.net_made.k;
}

void
world_open(struct world *w, unsigned int k, char *ret_hash)
{
	struct msg_net_open	q = { .k = k };
	struct msg		m;

	ck_assert_uint_eq(daemon_ask(&w->privd, MSG_NET_OPEN, &q, -1, &m),
	    MSG_NET_OPENED);
	ck_assert_uint_eq(m.body.net_opened.k, k);
	if (ret_hash != NULL)
		(void)str_copy(ret_hash, m.body.net_opened.ruleset, 65);
}

void
world_cut(struct world *w, unsigned int k)
{
	struct msg_net_cut	q = { .k = k };
	struct msg		m;

	ck_assert_uint_eq(daemon_ask(&w->privd, MSG_NET_CUT, &q, -1, &m),
	    MSG_OK);
}

void
world_drop(struct world *w, unsigned int k)
{
	struct msg_net_free	q = { .k = k };
	struct msg		m;

	ck_assert_uint_eq(daemon_ask(&w->privd, MSG_NET_FREE, &q, -1, &m),
	    MSG_OK);
}

pid_t
world_maker(const struct world *w)
{
	char	path[64], buf[64];
	ssize_t	n;
	int	fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)w->pid,
	    (int)w->pid);
	ck_assert_int_ne(fd = open(path, O_RDONLY | O_CLOEXEC), -1);
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	ck_assert_int_gt(n, 0);
	buf[n] = '\0';
	return (pid_t)strtol(buf, NULL, 10);
}

int
world_fds(pid_t pid)
{
	char	path[64];
	DIR	*d;
	int	n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	ck_assert_ptr_ne(d = opendir(path), NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

/* ---- who is in a netns ---------------------------------------------------- */

static pid_t
enter(int netns, int user, int (*fn)(void *), void *arg)
{
	pid_t	pid = fork();

	ck_assert_int_ne(pid, -1);
	if (pid != 0)
		return pid;
	if (setns(netns, CLONE_NEWNET) == -1 ||
	    setns(user, CLONE_NEWUSER) == -1 || setgroups(0, NULL) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1)
		_exit(99);
	_exit(fn(arg));
}

pid_t
world_box(int netns, int (*fn)(void *), void *arg)
{
	char	map[64];
	pid_t	pid;
	int	user;

	snprintf(map, sizeof(map), "0 %u 65536\n", WORLD_BOX);
	user = daemon_userns(WORLD_BOX, map);
	pid = enter(netns, user, fn, arg);
	close(user);
	return pid;
}

pid_t
world_insider(const struct world *w, int netns, int (*fn)(void *), void *arg)
{
	return enter(netns, w->u1, fn, arg);
}

int
world_box_result(pid_t pid)
{
	int	st;

	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_msg(WIFEXITED(st), "child status %x", st);
	return WEXITSTATUS(st);
}
