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
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netd_world.h"
#include "xmalloc.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	"/nowhere"
#endif

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
	memset(c, 0, sizeof(*c));
#define C_STR(w, f, max, cs, d, doc)	(void)str_copy(c->f, d, (max) + 1);
#define C_U64(w, f, lo, hi, d, doc)	c->f = d;
#define C_BOOL(w, f, d, doc)		c->f = d;
#define X_U64(f, lo, hi)		c->f = lo;
#include "conf.def"
	(void)str_copy(c->log_level, "debug", sizeof(c->log_level));
	/* what this kernel lacks must be named, here too */
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1)
		(void)str_copy(c->landlock, "none", sizeof(c->landlock));
	if (!world_netfilter())
		(void)str_copy(c->netfilter, "none", sizeof(c->netfilter));
}

static int
write_file(const char *path, const char *text)
{
	auto_close int	fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd != -1 && write(fd, text, strlen(text)) ==
	    (ssize_t)strlen(text) ? 0 : -1;
}

/* A user namespace owned by uid `owner'; its maps; a descriptor of it. */
static int
userns(uid_t owner, const char *map)
{
	char	path[64], b;
	pid_t	pid;
	int	fd, p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(setresuid(-1, owner, -1), 0);
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL,
	    NULL, NULL);
	if (pid == 0) {
		close(p[1]);
		(void)!read(p[0], &b, 1);	/* until it is not needed */
		_exit(0);
	}
	ck_assert_int_eq(setresuid(-1, 0, -1), 0);
	ck_assert_int_ne(pid, -1);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	ck_assert_int_eq(write_file(path, map), 0);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	ck_assert_int_eq(write_file(path, map), 0);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ne(fd, -1);
	close(p[0]);
	close(p[1]);
	waitpid(pid, NULL, 0);
	return fd;
}

void
world_make(struct world *w)
{
	char	map[96];
	int	fd;

	memset(w, 0, sizeof(*w));
	conf_default(&w->conf);
	snprintf(map, sizeof(map), "0 %u 1\n1 %u 65535\n", WORLD_NETD,
	    NETBASE);
	w->u1 = userns(0, map);
	w->privd.fd = w->apid.fd = w->uplinkd.fd = -1;
	snprintf(w->log, sizeof(w->log), "/tmp/netd-test.XXXXXX");
	ck_assert_int_ne(fd = mkstemp(w->log), -1);
	close(fd);
}

void
world_free(struct world *w)
{
	if (w->pid != 0)
		world_kill(w);
	close(w->u1);
	if (getenv("NETD_LOG") != NULL) {
		char	cmd[96];

		snprintf(cmd, sizeof(cmd), "cat %s >&2", w->log);
		(void)!system(cmd);
	}
	unlink(w->log);
}

static void	run(struct world *, int, int, int, int)
    __attribute__((noreturn));

/* The child that becomes netd. */
static void
run(struct world *w, int privd, int apid, int uplinkd, int conf)
{
	const char	*path = WB_TOP_BUILDDIR "/netd/netd";
	char		 arg0[] = WB_TOP_BUILDDIR "/netd/netd";
	char		*argv[] = { arg0, NULL }, *envp[] = { NULL };
	struct rlimit	 rl = { w->nofile, w->nofile };
	int		 exe, log, null;

	if ((exe = open(path, O_RDONLY | O_CLOEXEC)) == -1 ||
	    (log = open(w->log, O_WRONLY | O_APPEND)) == -1 ||
	    (null = open("/dev/null", O_RDWR)) == -1)
		_exit(90);
	if (w->nofile != 0 && setrlimit(RLIMIT_NOFILE, &rl) == -1)
		_exit(91);
	if (setns(w->u1, CLONE_NEWUSER) == -1 || setgroups(0, NULL) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1)
		_exit(92);
	exe = fcntl(exe, F_DUPFD_CLOEXEC, 40);
	privd = fcntl(privd, F_DUPFD, 40);
	apid = fcntl(apid, F_DUPFD, 40);
	uplinkd = fcntl(uplinkd, F_DUPFD, 40);
	conf = fcntl(conf, F_DUPFD, 40);
	log = fcntl(log, F_DUPFD, 40);
	if (dup2(null, 0) == -1 || dup2(null, 1) == -1 ||
	    dup2(log, 2) == -1 || dup2(privd, 3) == -1 ||
	    dup2(conf, 4) == -1 || dup2(apid, 5) == -1 ||
	    dup2(uplinkd, 6) == -1 || dup3(exe, 7, O_CLOEXEC) == -1)
		_exit(93);
	(void)syscall(SYS_close_range, 8, ~0U, 0);
	/* by descriptor: the build tree may lie where others cannot go */
	fexecve(7, argv, envp);
	_exit(94);
}

void
world_start(struct world *w)
{
	struct msg_daemon_go	go = { .generation = 1 };
	struct msg		m;
	int			conf, pv[2], av[2], uv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    pv), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    av), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    uv), 0);
	ck_assert_int_ne(conf = conf_seal(&w->conf), -1);
	ck_assert_int_ne(w->pid = fork(), -1);
	if (w->pid == 0)
		run(w, pv[1], av[1], uv[1], conf);
	close(pv[1]);
	close(av[1]);
	close(uv[1]);
	close(conf);
	chan_init(&w->privd, pv[0], A_PRIVD, A_NETD, S_INIT);
	chan_init(&w->apid, av[0], A_APID, A_NETD, S_RUN);
	chan_init(&w->uplinkd, uv[0], A_UPLINKD, A_NETD, S_RUN);
	ck_assert_uint_eq(world_next(&w->privd, &m), MSG_DAEMON_READY);
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

int
world_logged(const struct world *w, const char *text)
{
	static char	buf[1 << 20];
	auto_close int	fd = open(w->log, O_RDONLY | O_CLOEXEC);
	ssize_t		n = read(fd, buf, sizeof(buf) - 1);

	ck_assert_int_ge(n, 0);
	buf[n] = '\0';
	return strstr(buf, text) != NULL;
}

unsigned int
world_next(struct chan *c, struct msg *ret)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };
	int		r;

	for (;;) {
		r = chan_recv(c, ret);
		if (r == 1)
			return ret->row->type;
		if (r == -1 && errno == ECONNRESET)
			return 0;
		ck_assert_msg(r == 0, "%s", c->why);
		ck_assert_msg(poll(&p, 1, 10000) == 1, "no answer in 10 s");
	}
}

unsigned int
world_ask(struct chan *c, unsigned int type, const void *body, int fd,
    struct msg *ret)
{
	uint32_t	rid;

	ck_assert_msg(chan_ask(c, type, body, fd, &rid) == 0, "%s", c->why);
	if (world_next(c, ret) == 0)
		return 0;
	ck_assert_uint_eq(ret->rid, rid);
	if (ret->row->type == MSG_ERROR && getenv("NETD_LOG") != NULL)
		fprintf(stderr, "answer: %s: %s\n",
		    code_name((unsigned int)ret->body.error.code),
		    ret->body.error.detail);
	return ret->row->type;
}

unsigned int
world_net(struct world *w, const char *id, int *ret_netns)
{
	struct msg_net_make	q = { .network = NETWORK_NONE };
	struct msg		m;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_uint_eq(world_ask(&w->privd, MSG_NET_MAKE, &q, -1, &m),
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

	ck_assert_uint_eq(world_ask(&w->privd, MSG_NET_OPEN, &q, -1, &m),
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

	ck_assert_uint_eq(world_ask(&w->privd, MSG_NET_CUT, &q, -1, &m),
	    MSG_OK);
}

void
world_drop(struct world *w, unsigned int k)
{
	struct msg_net_free	q = { .k = k };
	struct msg		m;

	ck_assert_uint_eq(world_ask(&w->privd, MSG_NET_FREE, &q, -1, &m),
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
	user = userns(WORLD_BOX, map);
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
