/*
 * mounts: the file system that a box sees, from one table by which it is
 * both made and, later, held against mountinfo.
 *
 * Made by the box's first process while it is still the host's root, in a
 * mount namespace that began as a copy of the nursery (runtime.c): nothing of
 * the host is in it but what is moved in here, the rootfs (idmapped,
 * read-only) and the box's own directory, and both are gone with the old
 * root.  Overlay's options are relative names, so that the box reads no host
 * path.  After this the caller joins the box's user namespace and copies the
 * mount namespace once more, which locks every mount.
 *
 * Safe when the asker is hostile: the table is constant; what is asked
 * decides the size of three tmpfs and which rootfs lies below.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

#define TTY_GID		5	/* in every distribution */
#define NSE		(MS_NOSUID | MS_NODEV | MS_NOEXEC)

enum kind {
	OVERLAY, PROC, TMPFS, PTS, RUNTIME,
	READONLY,	/* a part of /proc, bound to itself */
	NOFILE,		/* /dev/null in its place */
	NODIR		/* an empty directory in its place */
};

static const struct row {
	const char	*target;	/* below the box's root */
	enum kind	 kind;
	const char	*source;	/* as mountinfo shows it */
	unsigned long	 flags;
	unsigned int	 part;		/* TMPFS: memory limit / part */
	const char	*mode;
} rows[] = {
	{ "", OVERLAY, "overlay", MS_NOSUID | MS_NODEV, 0, NULL },
	{ "proc", PROC, "proc", NSE, 0, NULL },
	{ "dev", TMPFS, "workbox-dev", MS_NOSUID | MS_NOEXEC, 0, "0755" },
	{ "dev/pts", PTS, "devpts", MS_NOSUID | MS_NOEXEC, 0, NULL },
	{ "dev/shm", TMPFS, "workbox-shm", NSE, 2, "1777" },
	{ "run", TMPFS, "workbox-run", MS_NOSUID | MS_NODEV, 8, "0755" },
	{ "tmp", TMPFS, "workbox-tmp", MS_NOSUID | MS_NODEV, 2, "1777" },
	{ "opt/workbox", RUNTIME, "workbox-runtime",
	    MS_RDONLY | MS_NOSUID | MS_NODEV, 0, NULL },
	{ "proc/irq", READONLY, "proc", MS_RDONLY | NSE, 0, NULL },
	{ "proc/sys", READONLY, "proc", MS_RDONLY | NSE, 0, NULL },
	{ "proc/sysrq-trigger", READONLY, "proc", MS_RDONLY | NSE, 0, NULL },
#define NOFILE_ROW(f) { "proc/" f, NOFILE, "workbox-dev",		\
	    MS_NOSUID | MS_NOEXEC, 0, NULL }
	NOFILE_ROW("cmdline"),		/* the host's boot parameters */
	NOFILE_ROW("interrupts"),
	NOFILE_ROW("kallsyms"),
	NOFILE_ROW("kcore"),
	NOFILE_ROW("key-users"),
	NOFILE_ROW("keys"),
	NOFILE_ROW("latency_stats"),
	NOFILE_ROW("sched_debug"),
	NOFILE_ROW("timer_list"),
#define NODIR_ROW(d) { "proc/" d, NODIR, "workbox-mask",		\
	    MS_RDONLY | NSE, 0, NULL }
	NODIR_ROW("acpi"),
	NODIR_ROW("asound"),
	NODIR_ROW("bus"),
	NODIR_ROW("fs"),		/* the host's disks and exports */
	NODIR_ROW("pressure"),		/* the host's; anyone may set triggers */
	NODIR_ROW("scsi"),
};
#define NROWS	(sizeof(rows) / sizeof(*rows))

static const char *const fstypes[] = {
	[OVERLAY] = "overlay", [PROC] = "proc", [TMPFS] = "tmpfs",
	[PTS] = "devpts", [RUNTIME] = "tmpfs", [READONLY] = "proc",
	[NOFILE] = "tmpfs", [NODIR] = "tmpfs"
};
#define LAYERS	"lowerdir=rootfs,upperdir=box/upper,workdir=box/work"

static const struct { const char *name; unsigned int maj, min; } nodes[] = {
	{ "null", 1, 3 }, { "zero", 1, 5 }, { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 }
};
static const struct { const char *name, *to; } links[] = {
	{ "dev/fd", "/proc/self/fd" }, { "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" }, { "dev/ptmx", "pts/ptmx" }
};

/* ---- making ----------------------------------------------------------- */

static int
mkdir_as(const char *path, mode_t mode, uint32_t uid)
{
	return mkdir(path, mode) == -1 ? -1 : chown(path, uid, uid);
}

/* What a directory of the table holds before the next row is mounted. */
static int
fill(const struct row *r, uint32_t uid)
{
	char	 path[32];
	size_t	 i;

	if (strcmp(r->target, "run") == 0)
		return mkdir_as("run/workbox", 0755, uid) == -1 ? -1 :
		    mkdir_as("run/lock", 01777, uid);
	if (strcmp(r->target, "dev") != 0)
		return 0;
	if (mkdir_as("dev/pts", 0755, uid) == -1 ||
	    mkdir_as("dev/shm", 01777, uid) == -1)
		return -1;
	for (i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		(void)snprintf(path, sizeof(path), "dev/%s", nodes[i].name);
		if (mknod(path, S_IFCHR | 0666, makedev(nodes[i].maj,
		    nodes[i].min)) == -1 || chown(path, uid, uid) == -1)
			return -1;
	}
	for (i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (symlink(links[i].to, links[i].name) == -1)
			return -1;
	return 0;
}

static int
mount_tmpfs(const struct row *r, const struct box_ask *ask)
{
	uint64_t	 size = r->part == 0 ? 65536 :
			    ask->limits.memory_bytes / r->part;
	char		 data[128];

	(void)snprintf(data, sizeof(data), "mode=%s,uid=%u,gid=%u,"
	    "size=%" PRIu64 ",nr_inodes=%" PRIu64, r->mode, ask->uid,
	    ask->uid, size, r->part == 0 ? 64 : size / 4096);
	return mount(r->source, r->target, "tmpfs", r->flags, data);
}

/* 0, or -1; a mask is not needed where the kernel has no such file. */
static int
mount_row(const struct row *r, const struct box_ask *ask)
{
	char	 data[80];
	int	 n = -1;

	switch (r->kind) {
	case OVERLAY:
		n = mount("overlay", "root", "overlay", r->flags,
		    LAYERS ",redirect_dir=on,index=off,metacopy=off");
		return n == -1 ? -1 : chdir("root");
	case PROC:
		return mount("proc", "proc", "proc", r->flags, NULL);
	case TMPFS:
		return mount_tmpfs(r, ask);
	case PTS:
		(void)snprintf(data, sizeof(data), "newinstance,max=256,"
		    "ptmxmode=0666,mode=0620,gid=%u", ask->uid + TTY_GID);
		return mount("devpts", "dev/pts", "devpts", r->flags, data);
	case RUNTIME:
		return mount("/runtime", r->target, NULL, MS_MOVE, NULL);
	case READONLY:
		n = mount(r->target, r->target, NULL, MS_BIND, NULL);
		if (n == 0)
			return mount(NULL, r->target, NULL, MS_REMOUNT |
			    MS_BIND | r->flags, NULL);
		break;
	case NOFILE:
		n = mount("dev/null", r->target, NULL, MS_BIND, NULL);
		break;
	case NODIR:
		n = mount(r->source, r->target, "tmpfs", r->flags,
		    "mode=0555,nr_inodes=2,size=4k");
		break;
	}
	return n == -1 && errno == ENOENT ? 0 : n;
}

/* Clones a directory of the host, so that it can be moved into the box. */
static int
clone_tree(int fd, uint64_t attr, int userns)
{
	struct mount_attr	 a = { .attr_set = attr,
				    .propagation = MS_PRIVATE,
				    .userns_fd = (uint64_t)userns };
	auto_close int		 mnt = -1;

	mnt = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE |
	    OPEN_TREE_CLOEXEC);
	if (mnt == -1 ||
	    mount_setattr(mnt, "", AT_EMPTY_PATH, &a, sizeof(a)) == -1)
		return -1;
	return steal_fd(&mnt);
}

const char *
mounts_make(const struct box_ask *ask, int state, int rootfs, int userns)
{
	auto_close int	 box = -1, lower = -1;
	char		 gids[32];
	size_t		 i;

	if ((lower = clone_tree(rootfs, MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY |
	    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, userns)) == -1)
		return "map rootfs";
	if ((box = clone_tree(state, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	    0)) == -1)
		return "clone state directory";
	if (setns(runtime_nursery(), CLONE_NEWNS) == -1 ||
	    unshare(CLONE_NEWNS) == -1)
		return "mount namespace";
	if (move_mount(lower, "", AT_FDCWD, "rootfs",
	    MOVE_MOUNT_F_EMPTY_PATH) == -1 || move_mount(box, "", AT_FDCWD,
	    "box", MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return "mount layers";
	for (i = 0; i < NROWS; i++) {
		if (mount_row(&rows[i], ask) == -1 ||
		    fill(&rows[i], ask->uid) == -1)
			return rows[i].kind == OVERLAY ? "mount overlay" :
			    rows[i].target;
		if (rows[i].kind != PROC)
			continue;
		/* Only here, and only by us, can the box's gids be named. */
		(void)snprintf(gids, sizeof(gids), "%u %u", ask->uid,
		    ask->uid + BOX_IDS - 1);
		if (box_put(AT_FDCWD, "proc/sys/net/ipv4/ping_group_range",
		    "%s", gids) == -1)
			return "ping_group_range";
	}
	if (syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		return "pivot_root";
	return NULL;
}

/* ---- comparing ---------------------------------------------------------- */

/* Whether line i of the table is what the fields of a mountinfo line say. */
static int
row_is(const struct row *r, char *const f[11])
{
	char		 opts[64], target[64];
	const char	*root = r->kind == NOFILE ? "/null" :
			    r->kind == READONLY ? r->target + 4 : "/";

	(void)snprintf(target, sizeof(target), "/%s", r->target);
	(void)snprintf(opts, sizeof(opts), "%s%s%s%s,relatime",
	    r->flags & MS_RDONLY ? "ro" : "rw",
	    r->flags & MS_NOSUID ? ",nosuid" : "",
	    r->flags & MS_NODEV ? ",nodev" : "",
	    r->flags & MS_NOEXEC ? ",noexec" : "");
	if (strcmp(f[4], target) != 0 || strcmp(f[3], root) != 0 ||
	    strcmp(f[5], opts) != 0 || strcmp(f[6], "-") != 0 ||
	    strcmp(f[7], fstypes[r->kind]) != 0 ||
	    strcmp(f[8], r->source) != 0)
		return 0;
	return r->kind != OVERLAY || strstr(f[9], LAYERS) != NULL;
}

int
mounts_agree(const uint8_t *mountinfo, size_t len)
{
	char	 buf[FACTS_MOUNTS], path[64], *line, *lsave, *wsave, *f[11];
	int	 seen[NROWS] = { 0 };
	size_t	 i, n;

	if (len >= sizeof(buf))
		return 0;
	memcpy(buf, mountinfo, len);
	buf[len] = '\0';
	for (line = strtok_r(buf, "\n", &lsave); line != NULL;
	    line = strtok_r(NULL, "\n", &lsave)) {
		f[0] = strtok_r(line, " ", &wsave);
		for (n = 1; n < 11 && f[n - 1] != NULL; n++)
			f[n] = strtok_r(NULL, " ", &wsave);
		/* Ten fields: none of the optional ones, which name peers. */
		if (n != 11 || f[10] != NULL)
			return 0;
		for (i = 0; i < NROWS && !row_is(&rows[i], f); i++)
			;
		if (i == NROWS || seen[i]++)
			return 0;
	}
	for (i = 0; i < NROWS; i++) {
		(void)snprintf(path, sizeof(path), "/%s", rows[i].target);
		if (!seen[i] && (rows[i].kind < READONLY ||
		    access(path, F_OK) == 0))
			return 0;
	}
	return 1;
}
