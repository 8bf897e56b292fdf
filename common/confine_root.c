/*
 * confine_root.c: a mount namespace of our own, everything in it private,
 * with one mount in it: the new root.
 *
 * Must never: leave a way back to the host's root.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "confine.h"
#include "xmalloc.h"

/*
 * pivot_root(".", ".") puts the new root over the old one, which is then
 * detached: pivot_root(2), "pivot_root(".", ".")".
 */
static int
root_enter(int dirfd)
{
	if (fchdir(dirfd) == -1)
		return confine_fail("fchdir new root");
	if (syscall(SYS_pivot_root, ".", ".") == -1)
		return confine_fail("pivot_root");
	if (umount2(".", MNT_DETACH) == -1)
		return confine_fail("umount old root");
	if (chdir("/") == -1)
		return confine_fail("chdir /");
	return 0;
}

static int
own_mounts(void)
{
	if (unshare(CLONE_NEWNS) == -1)
		return confine_fail("unshare mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return confine_fail("make mounts private");
	return 0;
}

int
confine_root_empty(const struct confine *c)
{
	auto_close int	fd = -1;

	(void)c;			/* has no more to say */
	if (own_mounts() == -1)
		return -1;
	/* any directory will do: it only carries the mount for a moment */
	if (mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    "mode=555,nr_inodes=2,size=4096") == -1)
		return confine_fail("mount empty root");
	if (mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY |
	    MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == -1)
		return confine_fail("remount empty root read-only");
	if ((fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return confine_fail("open empty root");
	return root_enter(fd);
}

int
confine_root_dir(const struct confine *c)
{
	const char	*dir = c->dir;
	auto_close int	 fd = -1;
	struct stat	 st;

	if (own_mounts() == -1)
		return -1;
	if (mount(dir, dir, NULL, MS_BIND, NULL) == -1)
		return confine_fail("bind %s", dir);
	if (mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID |
	    MS_NODEV | MS_NOEXEC, NULL) == -1)
		return confine_fail("remount %s", dir);
	if ((fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return confine_fail("open %s", dir);
	if (fstat(fd, &st) == -1)
		return confine_fail("stat %s", dir);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		errno = EPERM;
		return confine_fail("%s is writable by others", dir);
	}
	return root_enter(fd);
}
