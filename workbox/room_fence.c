/*
 * room_fence: the process that reads a stranger's archive.
 *
 * It is uid 0, since files are given to any uid that sandboxes have, and of
 * root's power it has what the tree needs.  It is alone in a pid namespace: no
 * signal of its reaches another process.  Its root is empty.  The tree is a
 * mount of its own that lies nowhere, so that even `..' leads nowhere.
 *
 * Must never: hold a descriptor that leads to another file of the host.
 */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <locale.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "room.h"
#include "room_calls.h"
#include "xmalloc.h"

#define CAP(c)	(UINT64_C(1) << CAP_##c)
#define MIB	(UINT64_C(1024) * 1024)

enum { FD_IN, FD_OUT, FD_ERR, FD_TREE };

static const struct confine_limit room_limits[] = {
	{ RLIMIT_CORE, 0 },
#ifndef __SANITIZE_ADDRESS__
	{ RLIMIT_AS, 1024 * MIB },	/* what a decoder may ask for */
#endif
	{ RLIMIT_NOFILE, 32 },
	{ RLIMIT_NPROC, 0 },
};
static const struct confine room_confine = {
	.root = confine_root_empty,
	.caps = CAP(CHOWN)		/* files get their owner */
	    | CAP(DAC_OVERRIDE)		/* and are reached then, too, */
	    | CAP(FOWNER) | CAP(FSETID), /* and get mode and time */
	.limits = room_limits,
	.nlimits = sizeof room_limits / sizeof room_limits[0],
	.filter = room_calls,
	.nfilter = sizeof room_calls / sizeof room_calls[0],
	.last_fd = FD_TREE,
};

static int
clone_tree(int fd)
{
	struct mount_attr	a = { .attr_set = MOUNT_ATTR_NOSUID |
	    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW,
	    .propagation = MS_PRIVATE };
	auto_close int		mnt = -1;

	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) == -1 ||
	    (mnt = (int)syscall(SYS_open_tree, fd, "", AT_EMPTY_PATH |
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) == -1 ||
	    syscall(SYS_mount_setattr, mnt, "", AT_EMPTY_PATH, &a,
	    sizeof a) == -1)
		return -1;
	return steal_fd(&mnt);
}

/* Puts the four descriptors in their places, whatever they were. */
static int
place(int in, int out, int tree)
{
	auto_close int	null = -1;
	int	hi[3], i;
	int	fd[3] = { in, out, tree };
	int	to[3] = { FD_IN, FD_OUT, FD_TREE };

	if ((null = open("/dev/null", O_WRONLY | O_CLOEXEC)) == -1 ||
	    dup2(null, FD_ERR) == -1)
		return -1;
	for (i = 0; i < 3; i++)
		if ((hi[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 10)) == -1)
			return -1;
	for (i = 0; i < 3; i++)
		if (dup2(hi[i], to[i]) == -1)
			return -1;
	return 0;
}

/* The parent went before its end was asked for: nobody holds the other end. */
static int
abandoned(int out)
{
	struct pollfd	p = { .fd = out };

	return poll(&p, 1, 0) == 1;
}

static __attribute__((noreturn)) void
tell(const struct room_report *rep)
{
	_exit(write(FD_OUT, rep, sizeof *rep) == (ssize_t)sizeof *rep &&
	    rep->ok ? 0 : 1);
}

void
room_run(int in, int out, int tree, const struct room_limits *most)
{
	static struct room_report	rep;
	auto_close int			mnt = -1;

	/* elsewhere libarchive composes and decomposes letters of names */
	(void)setlocale(LC_ALL, "C");
	(void)umask(022);		/* of directories that none names */
	(void)signal(SIGINT, SIG_IGN);	/* the terminal's is for the parent, */
	(void)signal(SIGHUP, SIG_IGN);	/* which ends this */
	(void)signal(SIGQUIT, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || abandoned(out))
		_exit(1);
	if ((mnt = clone_tree(tree)) == -1 || place(in, out, mnt) == -1)
		(void)snprintf(rep.why, sizeof rep.why, "the reader's "
		    "process: %s", strerror(errno));
	else if (confine_enter(&room_confine) == -1)
		(void)snprintf(rep.why, sizeof rep.why, "the reader's fence: "
		    "%s", confine_error());
	else
		(void)room_fill(FD_IN, FD_TREE, most, &rep);
	tell(&rep);
}
