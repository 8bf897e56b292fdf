/*
 * set.c: the daemons of the set: their user namespace, their channels, their
 * start.  What they are told and when they end is privd's matter.
 *
 * Safe when privd is hostile: which programs are started, as whom and with
 * which descriptors is constant.
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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
enum kind { D_NETD, D_STORED, D_APID, D_UPLINKD, D_PROXYD };
static const char *const daemon_name[MAKER_DAEMONS] =
    { "netd", "stored", "apid", "uplinkd", "proxyd" };
static const int	nfds[MAKER_DAEMONS] = { 8, 7, 8, 6, 7 };

static int	userns = -1;			/* netd's */
static pid_t	daemon_pid[MAKER_DAEMONS];	/* 0: has been reaped */

/* Becomes uid 0 of netd's user namespace. */
static int
userns_enter(void)
{
	return setgroups(0, NULL) == -1 || setns(userns, CLONE_NEWUSER) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1 ? -1 : 0;
}

/* Devices for uplinkd, in /tmp: the host's own tun may be root's alone. */
static int
devices_make(void)
{
	static const struct { const char *path; unsigned int maj, min; }
	    nodes[] = { { "/tmp/null", 1, 3 }, { "/tmp/urandom", 1, 9 },
	    { "/tmp/tun", 10, 200 } };
	size_t	i;

	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("workbox-dev", "/tmp", "tmpfs", MS_NOSUID | MS_NOEXEC,
	    "mode=755,size=64k,nr_inodes=8") == -1)
		return -1;
	for (i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		if (mknod(nodes[i].path, S_IFCHR, makedev(nodes[i].maj,
		    nodes[i].min)) == -1 || chmod(nodes[i].path, 0666) == -1)
			return -1;
	return 0;
}

/* In the child: fd[i] becomes descriptor i (-1: it stays), and exec. */
static void
daemon_exec(enum kind kind, const int *fd)
{
	char	 path[512], *argv[2] = { path, NULL }, *envp[1] = { NULL };
	int	 high[8] = { 0 }, exe, i;
	sigset_t none;

	(void)snprintf(path, sizeof(path), "%s/%s", mk.conf.libexec_dir,
	    daemon_name[kind]);		/* 255 and a few */
	if ((exe = open(path, O_PATH | O_CLOEXEC)) == -1 ||
	    (exe = fcntl(exe, F_DUPFD_CLOEXEC, HIGH_FD)) == -1)
		fatal("open %s", path);
	if (kind == D_UPLINKD && (cgroup_enter_uplinks() == -1 ||
	    devices_make() == -1))
		fatal("prepare uplinkd's place");
	for (i = 0; i < nfds[kind]; i++)
		if (fd[i] != -1 && (high[i] = fcntl(fd[i], F_DUPFD_CLOEXEC,
		    HIGH_FD)) == -1)
			fatal("duplicate descriptor");
	for (i = 0; i < nfds[kind]; i++)
		if (fd[i] != -1 && dup2(high[i], i) == -1)
			fatal("place descriptor %d", i);
	(void)syscall(SYS_close_range, nfds[kind], ~0U, CLOSE_RANGE_CLOEXEC);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if ((kind == D_NETD || kind == D_UPLINKD) && userns_enter() == -1)
		fatal("enter netd's user namespace");
	/* by descriptor: netd's uid may not be able to walk the path */
	(void)syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
	fatal("run %s", path);
}

static int
daemon_spawn(enum kind kind, const int *fd)
{
	pid_t	pid = fork();
	int	pidfd;

	if (pid == -1)
		fatal("fork");
	if (pid == 0)
		daemon_exec(kind, fd);
	daemon_pid[kind] = pid;
	/* ours and not reaped: the number is still its own */
	if ((pidfd = (int)syscall(SYS_pidfd_open, pid, 0)) == -1)
		fatal("pidfd of %s", daemon_name[kind]);
	return pidfd;
}

/*
 * Pairs of the topology that have no end at privd, and from MAY_PASS on those
 * whose second end is passed descriptors: namespaces, sockets.
 */
enum { STORED_APID, NETD_APID, STORED_PROXYD, NETD_UPLINKD, NETD_PROXYD,
	NPAIRS, MAY_PASS = NETD_UPLINKD };

static void
pair_make(int ret[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) == -1)
		fatal("socketpair");
}

/* Sockets between the pairs of the topology, and the programs. */
int
set_make(int u1, int *ret_fds)
{
	int	ch[MAKER_DAEMONS][2], p[NPAIRS][2], null, i, j;

	if (cgroup_uplinks(mk.conf.uid_netd) == -1)
		fatalx("%s", box_error());
	/* one that lives on, or the new one; above what daemons are given */
	if (userns == -1 && (userns = fcntl(u1 != -1 ? u1 : MAKER_USERNS,
	    F_DUPFD_CLOEXEC, HIGH_FD)) == -1)
		fatal("netd's user namespace");
	fd_close(&u1);
	for (i = 0; i < MAKER_DAEMONS; i++)
		pair_make(ch[i]);
	for (i = 0; i < NPAIRS; i++)
		pair_make(p[i]);
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
		fatal("open /dev/null");
	/* of each what others have not, from descriptor 5 on */
	const int own[MAKER_DAEMONS][3] = {
		[D_NETD] = { p[NETD_APID][1], p[NETD_UPLINKD][0],
		    p[NETD_PROXYD][0] },
		[D_STORED] = { p[STORED_APID][1], p[STORED_PROXYD][0] },
		[D_APID] = { p[STORED_APID][0], p[NETD_APID][0], mk.token_fd },
		[D_UPLINKD] = { p[NETD_UPLINKD][1] },
		[D_PROXYD] = { p[NETD_PROXYD][1], p[STORED_PROXYD][1] },
	};
	for (i = 0; i < MAKER_DAEMONS; i++) {
		/* 0: the lock: the next privd sees whom it has to end */
		const int fds[] = { mk.lock_fd, null, -1, ch[i][1],
		    mk.conf_fd, own[i][0], own[i][1], own[i][2] };

		ret_fds[i] = ch[i][0];
		ret_fds[MAKER_DAEMONS + i] = daemon_spawn((enum kind)i, fds);
		fd_close(&ch[i][1]);
		if (i != D_NETD)
			fds_refuse(ret_fds[i]);
	}
	for (i = 0; i < NPAIRS; i++)
		for (j = 0; j < 2; j++) {
			if (i < MAY_PASS || j == 0)
				fds_refuse(p[i][j]);
			fd_close(&p[i][j]);
		}
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
	if (WIFSIGNALED(st) || WEXITSTATUS(st) != 0)
		log_warnx("%s[%ld] ended %s %d", daemon_name[i], (long)pid,
		    WIFSIGNALED(st) ? "by signal" : "with status",
		    WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
}
