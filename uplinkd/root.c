/*
 * root.c: the file system of uplinkd, and so of each slirp4netns until that
 * makes a smaller one for itself.
 *
 * A tmpfs in a mount namespace that U1 owns.  In it are /usr (and the links
 * or directories of its merged forms), which hold the program and its
 * libraries; an /etc with what it reads of it; three devices; the cgroups
 * that are ours; and nothing else of the host's: no /proc, /run, /home, /var.
 * slirp4netns takes /etc and /run along into its sandbox, therefore /run is
 * empty.
 *
 * The devices lie in /tmp of the mount namespace in which uplinkd starts
 * (workbox/uplink.c): the host's own tun may be for root alone.
 *
 * Must never: leave a way back to the host's root; let anything be written
 * to but the cgroups.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "uplinkd.h"
#include "xmalloc.h"

#define DEVICES		"/tmp"
#define WORK		"/tmp"		/* carries the new root for a moment */
#define FILE_MOST	65536		/* bytes of a file that is copied */

#define NONE	(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static const char	*dns = "host";

static const char *const dirs[] = { "usr", "etc", "run", "tmp", "dev",
    "dev/net", "cgroup" };
static const char *const devices[] = { "null", "urandom", "net/tun" };
/* Where these are links into /usr, as they are almost everywhere. */
static const char *const merged[] = { "bin", "lib", "lib64" };
static const char *const files[] = { "resolv.conf", "nsswitch.conf" };

void
uplink_dns(const char *addr)
{
	dns = addr;
}

static int
make_file(const char *path, const void *data, size_t len)
{
	auto_close int	fd = open(path, O_WRONLY | O_CREAT | O_EXCL |
			    O_CLOEXEC, 0644);

	if (fd == -1 || write(fd, data, len) != (ssize_t)len)
		return confine_fail("make %s", path);
	return 0;
}

/* A copy of a mount of the old root, with all below, at a name in the new. */
static int
bind(int at, const char *from, const char *to, uint64_t attr)
{
	struct mount_attr	 a = { .attr_set = attr,
				    .propagation = MS_PRIVATE };
	auto_close int		 mnt = open_tree(at, from, OPEN_TREE_CLONE |
				    OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (mnt == -1)
		return confine_fail("bind %s", from);
	if (mount_setattr(mnt, "", AT_EMPTY_PATH | AT_RECURSIVE, &a,
	    sizeof(a)) == -1)
		return confine_fail("restrict %s", from);
	if (move_mount(mnt, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return confine_fail("mount %s", to);
	return 0;
}

/* A link of the host's root is copied, a directory is bound. */
static int
bind_merged(const char *name)
{
	struct stat	st;
	char		from[16], to[256];
	ssize_t		n;

	(void)snprintf(from, sizeof(from), "/%s", name);
	if (lstat(from, &st) == -1)
		return errno == ENOENT ? 0 : confine_fail("%s", from);
	if (S_ISLNK(st.st_mode)) {
		if ((n = readlink(from, to, sizeof(to) - 1)) == -1)
			return confine_fail("%s", from);
		to[n] = '\0';
		return symlink(to, name) == 0 ? 0 : confine_fail("%s", from);
	}
	if (mkdir(name, 0755) == -1)
		return confine_fail("%s", from);
	return bind(AT_FDCWD, from, name, NONE);
}

/* Links are followed: resolv.conf often is one, into /run. */
static int
copy_file(const char *name)
{
	static char	buf[FILE_MOST];
	char		from[32], to[32];
	auto_close int	fd = -1;
	ssize_t		n;

	(void)snprintf(from, sizeof(from), "/etc/%s", name);
	(void)snprintf(to, sizeof(to), "etc/%s", name);
	if (strcmp(name, "resolv.conf") == 0 && strcmp(dns, "host") != 0) {
		n = snprintf(buf, sizeof(buf), "nameserver %s\n", dns);
		return make_file(to, buf, (size_t)n);
	}
	if ((fd = open(from, O_RDONLY | O_CLOEXEC)) == -1)
		n = 0;			/* a host may do without */
	else if ((n = read(fd, buf, sizeof(buf))) == -1)
		return confine_fail("read %s", from);
	return make_file(to, buf, (size_t)n);
}

static int
fill(int devs)
{
	char		 to[32];
	const char	*from;
	size_t		 i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdir(dirs[i], 0755) == -1)
			return confine_fail("make %s", dirs[i]);
	if (bind(AT_FDCWD, "/usr", "usr", NONE) == -1)
		return -1;
	for (i = 0; i < sizeof(merged) / sizeof(merged[0]); i++)
		if (bind_merged(merged[i]) == -1)
			return -1;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (copy_file(files[i]) == -1)
			return -1;
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		(void)snprintf(to, sizeof(to), "dev/%s", devices[i]);
		from = strchr(devices[i], '/');
		if (make_file(to, "", 0) == -1 ||
		    bind(devs, from == NULL ? devices[i] : from + 1, to,
		    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) == -1)
			return -1;
	}
	for (i = 0; (from = cgroup_path(i)) != NULL; i++) {
		(void)snprintf(to, sizeof(to), "cgroup/%zu", i);
		if (mkdir(to, 0755) == -1)
			return confine_fail("make %s", to);
		if (bind(AT_FDCWD, from, to, MOUNT_ATTR_NOSUID |
		    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC) == -1)
			return -1;
	}
	return make_file(&ROOT_NETNS[1], "", 0);
}

int
uplink_root(const struct confine *c)
{
	auto_close int	devs = -1;

	(void)c;			/* has no more to say */
	if (unshare(CLONE_NEWNS) == -1)
		return confine_fail("unshare mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return confine_fail("make mounts private");
	if ((devs = open(DEVICES, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return confine_fail("open " DEVICES);
	if (mount("uplinkd", WORK, "tmpfs", MS_NOSUID | MS_NODEV,
	    "mode=755,nr_inodes=64,size=256k") == -1 || chdir(WORK) == -1)
		return confine_fail("mount new root");
	if (fill(devs) == -1)
		return -1;
	if (mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY |
	    MS_NOSUID | MS_NODEV, NULL) == -1)
		return confine_fail("remount new root read-only");
	/* pivot_root(2), "pivot_root(".", ".")" */
	if (syscall(SYS_pivot_root, ".", ".") == -1)
		return confine_fail("pivot_root");
	if (umount2(".", MNT_DETACH) == -1)
		return confine_fail("umount old root");
	return chdir("/") == 0 ? 0 : confine_fail("chdir /");
}
