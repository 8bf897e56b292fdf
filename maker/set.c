/*
 * set.c: the daemons of the set: their user namespace, their channels, their
 * start.  What they are told and when they end is privd's matter.
 *
 * Safe when privd is hostile: which programs are started, as whom and with
 * which descriptors is constant.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "maker.h"

#define HIGH_FD	64	/* above every descriptor of a daemon */

/* In the order in which privd numbers them. */
enum kind { D_NETD, D_STORED, D_APID };
static const char *const daemon_name[MAKER_DAEMONS] =
    { "netd", "stored", "apid" };

static int	userns = -1;			/* netd's */
static pid_t	daemon_pid[MAKER_DAEMONS];	/* 0: has been reaped */

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
	map_write(pid, "uid_map", mk.conf.uid_netd, mk.conf.net_uid_base);
	map_write(pid, "gid_map", mk.conf.gid_netd, mk.conf.net_uid_base);
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
daemon_exec(enum kind kind, const int *fd, int nfds)
{
	char	 path[512], *argv[2] = { path, NULL }, *envp[1] = { NULL };
	int	 high[8], exe, i;
	sigset_t none;

	(void)snprintf(path, sizeof(path), "%s/%s", mk.conf.libexec_dir,
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
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (kind == D_NETD && userns_enter() == -1)
		fatal("enter netd's user namespace");
	/* by descriptor: netd's uid may not be able to walk the path */
	(void)syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
	fatal("run %s", path);
}

static int
daemon_spawn(enum kind kind, const int *fd, int nfds)
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
int
set_make(int u1, int *ret_fds)
{
	int	ch[MAKER_DAEMONS][2], as[2], an[2], null, i;

	if (userns == -1)
		userns = u1 != -1 ? u1 : userns_new();
	else
		fd_close(&u1);
	for (i = 0; i < MAKER_DAEMONS; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		    ch[i]) == -1)
			fatal("socketpair");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, as) == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, an) == -1 ||
	    (null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
		fatal("socketpair");
	/* 0: the lock, so that the next privd sees whom it has to end */
	const int fds[MAKER_DAEMONS][8] = {
		[D_NETD] = { mk.lock_fd, null, -1, ch[D_NETD][1],
		    mk.conf_fd, an[1] },
		[D_STORED] = { mk.lock_fd, null, -1, ch[D_STORED][1],
		    mk.conf_fd, as[1] },
		[D_APID] = { mk.lock_fd, null, -1, ch[D_APID][1],
		    mk.conf_fd, as[0], an[0], mk.token_fd },
	};
	for (i = 0; i < MAKER_DAEMONS; i++) {
		ret_fds[i] = ch[i][0];
		ret_fds[MAKER_DAEMONS + i] = daemon_spawn((enum kind)i, fds[i],
		    i == D_APID ? 8 : 6);
		fd_close(&ch[i][1]);
	}
	for (i = 0; i < 2; i++) {
		fds_refuse(as[i]);
		fds_refuse(an[i]);
		fd_close(&as[i]);
		fd_close(&an[i]);
	}
	fds_refuse(ret_fds[D_STORED]);
	fds_refuse(ret_fds[D_APID]);
	fd_close(&null);
	return 0;
}

void
set_kill(void)
{
	int	i;

	for (i = 0; i < MAKER_DAEMONS; i++)
		if (daemon_pid[i] != 0)	/* not reaped: its number is its own */
			(void)kill(daemon_pid[i], SIGKILL);
}

void
set_reaped(pid_t pid, int st)
{
	int	i;

	for (i = 0; i < MAKER_DAEMONS && daemon_pid[i] != pid; i++)
		;
	if (i == MAKER_DAEMONS)
		return;
	daemon_pid[i] = 0;
	if (WIFSIGNALED(st))
		log_warnx("%s[%ld] ended by signal %d", daemon_name[i],
		    (long)pid, WTERMSIG(st));
	else if (WEXITSTATUS(st) != 0)
		log_warnx("%s[%ld] ended with status %d", daemon_name[i],
		    (long)pid, WEXITSTATUS(st));
}
