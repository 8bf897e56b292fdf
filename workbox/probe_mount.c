/*
 * probe_mount: whether overlayfs takes an idmapped lower layer on the file
 * system of the state directory, in the way in which a box's root is made.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

static int	work = -1;		/* the directory in which it is tried */

/*
 * For a step whose errno is the file system's own: one that is full could
 * not carry the try, which says nothing of what it can do.
 */
static int
step(const char *what)
{
	int	full = errno == ENOSPC || errno == EDQUOT;

	(void)probe_step(what);
	return full ? 1 : -1;
}

/* In the working directory, as are all names here. */
static int
fill(uid_t base)
{
	if (tree_dir(AT_FDCWD, "lower", 0755) == -1 ||
	    tree_dir(AT_FDCWD, "upper", 0755) == -1 ||
	    tree_dir(AT_FDCWD, "work", 0755) == -1 ||
	    tree_dir(AT_FDCWD, "merged", 0755) == -1 ||
	    tree_file(AT_FDCWD, "lower/file", 0644, "x", 1) == -1 ||
	    lchown("upper", base, base) == -1 ||
	    lchown("work", base, base) == -1)
		return step("directories");
	return 0;
}

/* Puts an idmapped, read-only clone of lower over itself. */
static int
idmap(const struct conf *c)
{
	struct mount_attr	attr = { .attr_set = MOUNT_ATTR_IDMAP |
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	auto_close int		ns = -1, fd = -1;

	if ((ns = probe_userns(c)) == -1)
		return -1;
	fd = (int)syscall(SYS_open_tree, AT_FDCWD, "lower",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (fd == -1)
		return probe_step("open_tree");
	attr.userns_fd = (uint64_t)ns;
	if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr,
	    sizeof attr) == -1)
		return probe_step("idmapped mount");
	if (syscall(SYS_move_mount, fd, "", AT_FDCWD, "lower",
	    MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return probe_step("move_mount");
	return 0;
}

static int
try_overlay(const struct conf *c)
{
	struct stat	st;
	uid_t		base = (uid_t)c->uid_base;
	int		rc;

	/* Before: a descriptor stays on the mount of the old namespace. */
	if (fchdir(work) == -1 || unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return probe_step("mount namespace");
	if ((rc = fill(base)) != 0 || (rc = idmap(c)) != 0)
		return rc;
	if (mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV,
	    "lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=on") ==
	    -1)
		return step("overlayfs over an idmapped layer");
	if (stat("merged/file", &st) == -1)
		return probe_step("overlayfs over an idmapped layer");
	if (st.st_uid != base) {
		errno = EINVAL;
		return probe_step("owner in the overlay");
	}
	errno = 0;
	if (chmod("merged/file", 0600) == -1 || stat("upper/file", &st) ==
	    -1 || st.st_uid != base)
		return step("copy-up");
	return 0;
}

/* Boxes that are there can be looked at and removed all the same. */
static void
full(struct finding *f, const char *path, const char *why)
{
	finding_set(f, V_WARN, "free space and inodes (workbox sandbox rm)",
	    "not tried: the file system of %s is full: %s", path, why);
}

/* The state directory, or the nearest above it that is there. */
static int
open_near(const struct conf *c, char *path, size_t size)
{
	char	*slash;
	int	 fd;

	(void)str_copy(path, c->state_dir, size);
	while ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1 &&
	    errno == ENOENT && (slash = strrchr(path, '/')) != NULL &&
	    slash != path)
		*slash = '\0';
	return fd;
}

void
probe_overlay(const struct conf *c, struct finding *f)
{
	auto_close int	dir = -1;
	char		path[256], name[24], why[128] = "";

	dir = open_near(c, path, sizeof path);
	/* what a doctor left that was killed; others' is not ours to see */
	if (dir != -1 && strcmp(path, c->state_dir) == 0)
		tree_sweep(dir);
	if (dir == -1 || (work = tree_begin(dir, name)) == -1) {
		if (errno == ENOSPC || errno == EDQUOT)
			full(f, path, strerror(errno));
		else
			finding_set(f, V_FAIL, "a state directory that root "
			    "can write", "%s: %s", path, strerror(errno));
		return;
	}
	if (probe_child(try_overlay, c, f, "a state directory on ext4, xfs or "
	    "btrfs that was mounted by the host (not by a container), and "
	    "overlayfs (modprobe overlay)") == 0)
		finding_set(f, V_OK, "", "overlayfs over an idmapped layer at "
		    "%s", path);
	else if (f->verdict == V_WARN) {
		(void)str_copy(why, f->detail, sizeof why);
		full(f, path, why);
	}
	if (tree_remove(dir, name) == -1)
		note("remove %s/%s: %s", path, name, strerror(errno));
	fd_close(&work);
}
