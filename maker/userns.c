/*
 * userns: a box's user namespace.
 *
 * The kernel charges inotify instances, queued signals, timers and message
 * queues up the chain to whoever created a user namespace.  So that one box
 * cannot use up what root and all others have, it is created with the box's
 * own first uid as effective uid.  A helper that shares our memory and does
 * nothing but pause carries it while we write its maps: seventy microseconds
 * instead of a millisecond for a fork.
 *
 * Safe when the asker is hostile: uid is held against the pool here; nothing
 * else is asked.  Must never return while effective ids are not root's.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

static int
carry(void *arg)
{
	/* It has our channel, too: outliving us it would hide our end. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    getppid() != *(const pid_t *)arg)
		return 1;
	while (pause() == -1)
		;
	return 0;
}

/* The helper's pid, in the host's numbers, or -1. */
static pid_t
helper_start(uint32_t uid)
{
	static char	 stack[16384] __attribute__((aligned(64)));
	struct __user_cap_header_struct	 hdr =
	    { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	 cap[2];
	static pid_t	 self;
	pid_t		 pid = -1;
	int		 err;

	self = getpid();
	if (syscall(SYS_capget, &hdr, cap) == -1)
		return -1;
	if (setresgid((gid_t)-1, uid, (gid_t)-1) == 0 &&
	    setresuid((uid_t)-1, uid, (uid_t)-1) == 0 &&
	    syscall(SYS_capset, &hdr, cap) == 0)
		pid = clone(carry, stack + sizeof(stack),
		    CLONE_NEWUSER | CLONE_VM, &self);
	err = errno;
	/* Half a root would be worse than none. */
	if (setresuid((uid_t)-1, 0, (uid_t)-1) == -1 ||
	    setresgid((gid_t)-1, 0, (gid_t)-1) == -1 ||
	    syscall(SYS_capset, &hdr, cap) == -1)
		abort();
	errno = err;
	return pid;
}

int
userns_make(uint32_t uid)
{
	char	 path[64];
	pid_t	 pid;
	int	 dir, fd = -1, err;

	if (!box_uid_ok(uid)) {
		errno = EINVAL;
		return box_fail("user namespace");
	}
	if ((pid = helper_start(uid)) == -1)
		return box_fail("user namespace of uid %u", uid);
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if ((dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) != -1 &&
	    box_put(dir, "uid_map", "0 %u %u\n", uid, BOX_IDS) == 0 &&
	    box_put(dir, "gid_map", "0 %u %u\n", uid, BOX_IDS) == 0)
		fd = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
	err = errno;
	fd_close(&dir);
	(void)kill(pid, SIGKILL);	/* ours, not reaped: it is there */
	while (waitpid(pid, NULL, __WALL) == -1 && errno == EINTR)
		;
	errno = err;
	return fd != -1 ? fd : box_fail("user namespace maps");
}
