/*
 * maker.c: privd's second process, and how the first speaks to it.
 *
 * A system-call filter is inherited by whatever a process starts, boxes
 * included, and privd's first process is to have one.  So privd forks once,
 * before it has a peer.  The parent hears the daemons, decides, watches, and
 * can neither fork nor mount nor enter a namespace; the child, the maker,
 * hears the parent alone, does those few things, and decides nothing.  It is
 * the parent of daemons, boxes and removals and reaps them.  It may take the
 * milliseconds that a box takes: the loop of the first process goes on.
 *
 * The two speak in plain structs over a SEQPACKET pair: they are one program
 * image and one trust.  When either ends the other does too.
 *
 * The maker must never: read a byte that a daemon or a box wrote.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "privd.h"
#include "xmalloc.h"

#define UNDER_WAY	32	/* requests not answered: the socket holds */
#define HIGH_FD		64	/* above every descriptor of a daemon */

static int		 sock = -1;	/* each end's own */
static unsigned int	 under_way;	/* parent */
static int		 userns = -1;	/* maker: netd's */
static int		 wakeup = -1;	/* maker: SIGCHLD came */
static pid_t		 daemon_pid[D_N]; /* maker: for the log alone */

static const char *const daemon_name[D_N] = { "netd", "stored", "apid" };

#define CAP(c)	(UINT64_C(1) << CAP_##c)
static const struct confine maker_fence = {
	.caps = CAP(SYS_ADMIN)		/* namespaces, mounts */
	    | CAP(SYS_PTRACE)		/* a box's namespaces in /proc */
	    | CAP(SYS_CHROOT)		/* setns of a mount namespace */
	    | CAP(SETUID) | CAP(SETGID)	/* maps; to become the box's root */
	    | CAP(SETPCAP)		/* daemons and boxes drop bounds */
	    | CAP(MKNOD)		/* a box's /dev */
	    | CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FOWNER)	/* its tree, */
	    | CAP(FSETID) | CAP(SETFCAP)  /* and overlay's, in its name */
	    | CAP(KILL),		/* helpers of another uid */
	/* no filter: it would hold for every box and daemon */
};

/* ---- the parent's side ---------------------------------------------------- */

int
maker_ask(const struct maker_req *req, int fd)
{
	if (under_way >= UNDER_WAY) {
		errno = EAGAIN;
		return -1;
	}
	if (fds_send(sock, req, sizeof(*req), &fd, fd != -1) == -1)
		fatal("ask the maker");
	under_way++;
	return 0;
}

int
maker_answer(struct maker_ans *ret)
{
	int	fds[MAKER_FDS];
	ssize_t	n = fds_recv(sock, ret, sizeof(*ret), MSG_DONTWAIT, fds,
		    MAKER_FDS);

	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == -1)
		fatal("the maker has ended");
	memcpy(ret->fd, fds, sizeof(fds));
	under_way--;
	return 1;
}

/* ---- the maker: daemons ----------------------------------------------------- */

static void
map_write(pid_t pid, const char *file, uint64_t id, uint64_t base)
{
	char		path[64], text[128];
	auto_close int	fd = -1;
	int		n;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
	n = snprintf(text, sizeof(text), "0 %llu 1\n1 %llu 65535\n",
	    (unsigned long long)id, (unsigned long long)base);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1 ||
	    write(fd, text, (size_t)n) != n)
		fatal("write %s of netd's user namespace", file);
}

/*
 * netd's user namespace U1.  Root makes it, so that root owns it and no uid
 * of the host has power over it; netd's uid is its uid 0, and each network
 * namespace gets a uid of the range.
 */
static int
userns_new(void)
{
	const struct conf	*conf = srv.conf;
	char			 path[64], c;
	int			 fd, p[2];
	pid_t			 pid;

	if (pipe2(p, O_CLOEXEC) == -1 ||
	    (pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL,
	    NULL, NULL, NULL)) == -1)
		fatal("make netd's user namespace");
	if (pid == 0) {
		(void)close(p[1]);	/* then the read ends with us */
		(void)!read(p[0], &c, 1);
		_exit(0);
	}
	map_write(pid, "uid_map", conf->uid_netd, conf->net_uid_base);
	map_write(pid, "gid_map", conf->gid_netd, conf->net_uid_base);
	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/user", (long)pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		fatal("open netd's user namespace");
	fd_close(&p[0]);
	fd_close(&p[1]);
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	return fd;
}

/* Becomes uid 0 of netd's user namespace. */
static int
userns_enter(void)
{
	return setgroups(0, NULL) == -1 || setns(userns, CLONE_NEWUSER) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1 ? -1 : 0;
}

/* In the child: fd[i] becomes descriptor i (-1: it stays), and exec. */
static void
daemon_exec(enum daemon_kind kind, const int *fd, int nfds)
{
	char	 path[512], *argv[2] = { path, NULL }, *envp[1] = { NULL };
	int	 high[8], exe, i;

	(void)snprintf(path, sizeof(path), "%s/%s", srv.conf->libexec_dir,
	    daemon_name[kind]);		/* 255 and a few */
	if ((exe = open(path, O_PATH | O_CLOEXEC)) == -1)
		fatal("open %s", path);
	for (i = 0; i < nfds; i++)
		if (fd[i] != -1 && (high[i] = fcntl(fd[i], F_DUPFD_CLOEXEC,
		    HIGH_FD)) == -1)
			fatal("duplicate descriptor");
	if ((exe = fcntl(exe, F_DUPFD_CLOEXEC, HIGH_FD)) == -1)
		fatal("duplicate descriptor");
	for (i = 0; i < nfds; i++)
		if (fd[i] != -1 && dup2(high[i], i) == -1)
			fatal("place descriptor %d", i);
	(void)syscall(SYS_close_range, nfds, ~0U, CLOSE_RANGE_CLOEXEC);
	(void)signal(SIGCHLD, SIG_DFL);
	if (kind == D_NETD && userns_enter() == -1)
		fatal("enter netd's user namespace");
	/* by descriptor: netd's uid may not be able to walk the path */
	(void)syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
	fatal("run %s", path);
}

static int
daemon_spawn(enum daemon_kind kind, const int *fd, int nfds)
{
	pid_t	pid = fork();
	int	pidfd;

	if (pid == -1)
		fatal("fork");
	if (pid == 0)
		daemon_exec(kind, fd, nfds);
	daemon_pid[kind] = pid;
	/* ours and not reaped: the number is still its own */
	if ((pidfd = (int)syscall(SYS_pidfd_open, pid, 0)) == -1)
		fatal("pidfd of %s", daemon_name[kind]);
	return pidfd;
}

/* Sockets between the pairs of the topology, and the three programs. */
static size_t
make_set(int u1, int ret_fd[2 * D_N])
{
	int	ch[D_N][2], as[2], an[2], null, i;

	if (userns == -1)
		userns = u1 != -1 ? u1 : userns_new();
	else
		fd_close(&u1);
	for (i = 0; i < D_N; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		    ch[i]) == -1)
			fatal("socketpair");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, as) == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, an) == -1 ||
	    (null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
		fatal("socketpair");
	/* 0: the lock, so that the next privd sees whom it has to end */
	const int fds[D_N][8] = {
		[D_NETD] = { srv.lock_fd, null, -1, ch[D_NETD][1],
		    srv.conf_fd, an[1] },
		[D_STORED] = { srv.lock_fd, null, -1, ch[D_STORED][1],
		    srv.conf_fd, as[1] },
		[D_APID] = { srv.lock_fd, null, -1, ch[D_APID][1],
		    srv.conf_fd, as[0], an[0], srv.token_fd },
	};
	for (i = 0; i < D_N; i++) {
		ret_fd[i] = ch[i][0];
		ret_fd[D_N + i] = daemon_spawn((enum daemon_kind)i, fds[i],
		    i == D_APID ? 8 : 6);
		fd_close(&ch[i][1]);
	}
	for (i = 0; i < 2; i++) {
		fd_close(&as[i]);
		fd_close(&an[i]);
	}
	fd_close(&null);
	return 2 * D_N;
}

/* ---- the maker: its loop ------------------------------------------------------ */

static size_t
make_launch(const struct maker_req *q, int ret_fd[4])
{
	struct box_ask	ask = {
		.id = q->spec.id, .name = q->spec.name,
		.rootfs = q->spec.rootfs,
		.network = (unsigned int)q->spec.network,
		.limits = { q->spec.memory_bytes, q->spec.cpu_milli,
		    q->spec.pids },
		.uid = q->uid,
	};
	struct box_run	run;

	if (box_launch(&ask, q->nonce, &run) == -1)
		return 0;
	explicit_bzero(run.token, sizeof(run.token));	/* box_token() */
	ret_fd[0] = run.pidfd;
	ret_fd[1] = run.ready_fd;
	ret_fd[2] = run.log_fd;
	ret_fd[3] = run.netns_fd;
	return 4;
}

static void
make(const struct maker_req *q, int fd_arg)
{
	auto_close int		fd = fd_arg;
	struct maker_ans	a = { .op = q->op, .n = q->n };
	int			out[MAKER_FDS];
	size_t			i, n = 0;

	switch (q->op) {
	case MK_SET:
		n = make_set(steal_fd(&fd), out);
		break;
	case MK_LAUNCH:
		n = make_launch(q, out);
		break;
	case MK_CONNECT:
		n = (out[0] = box_connect(q->spec.id, q->uid, fd)) != -1;
		break;
	case MK_REMOVE:
		n = (out[0] = tree_remove(q->spec.id)) != -1;
		break;
	case MK_NONE:
	default:
		fatalx("request %d is none", (int)q->op);
	}
	if (n == 0) {
		a.error = errno != 0 ? errno : EIO;
		(void)str_copy(a.why, box_error(), sizeof(a.why)); /* cut */
	}
	if (fds_send(sock, &a, sizeof(a), out, n) == -1)
		exit(1);		/* privd is gone */
	for (i = 0; i < n; i++)
		fd_close(&out[i]);
}

static void
on_sigchld(int sig)
{
	uint64_t	one = 1;
	int		e = errno;

	(void)sig;
	(void)!write(wakeup, &one, sizeof(one)); /* full: it is awake */
	errno = e;
}

static void
reap(void)
{
	uint64_t	n;
	pid_t		pid;
	int		st, i;

	(void)!read(wakeup, &n, sizeof(n));	/* EAGAIN: nothing new */
	while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
		for (i = 0; i < D_N && daemon_pid[i] != pid; i++)
			;
		if (i == D_N)
			continue;
		daemon_pid[i] = 0;
		if (WIFSIGNALED(st))
			log_warnx("%s[%ld] ended by signal %d", daemon_name[i],
			    (long)pid, WTERMSIG(st));
		else if (WEXITSTATUS(st) != 0)
			log_warnx("%s[%ld] ended with status %d",
			    daemon_name[i], (long)pid, WEXITSTATUS(st));
	}
}

static void
maker_loop(void)
{
	struct pollfd		pfd[2] = { { .fd = sock, .events = POLLIN },
				    { .fd = wakeup, .events = POLLIN } };
	struct maker_req	q;
	int			fd;

	for (;;) {
		if (poll(pfd, 2, -1) == -1 && errno != EINTR)
			fatal("poll");
		reap();
		if (pfd[0].revents == 0)
			continue;
		if (fds_recv(sock, &q, sizeof(q), 0, &fd, 1) == -1)
			exit(errno == ECONNRESET ? 0 : 1); /* privd is gone */
		make(&q, fd);
		pfd[0].revents = 0;
	}
}

void
maker_start(char *title)
{
	struct sigaction	sa = { .sa_handler = on_sigchld,
				    .sa_flags = SA_RESTART | SA_NOCLDSTOP };
	int			sp[2];
	size_t			n;
	pid_t			pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp) == -1 ||
	    (pid = fork()) == -1)
		fatal("start the maker");
	sock = sp[pid == 0];
	fd_close(&sp[pid != 0]);
	if (pid != 0) {
		ev_add(sock, EV_MAKER, 0, EPOLLIN);
		return;
	}
	n = strlen(title);		/* for ps: all that was there */
	(void)snprintf(memset(title, 0, n), n + 1, "privd: maker");
	(void)prctl(PR_SET_NAME, "privd-maker");	/* cannot fail */
	conf_log(srv.conf, "privd-maker");
	if (srv.conf->ready_fd != 0)
		(void)close((int)srv.conf->ready_fd);
	fd_close(&srv.ep);
	/* a ^C at the terminal is for privd alone */
	(void)setsid();
	if ((wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == -1 ||
	    sigaction(SIGCHLD, &sa, NULL) == -1)
		fatal("wait for children");
	if (confine_enter(&maker_fence) == -1)
		fatalx("%s", confine_error());
	maker_loop();
}
