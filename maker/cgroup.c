/*
 * cgroup: the tree of all boxes, and each box's part of it.
 *
 * One table says which limit is which file, on v2 and on v1, and where it is
 * set: on the parent of all boxes, on <id>/box, on <id>/box/sessions.  The
 * same table is read back: a limit that does not hold is told by its name.
 * Processes are tracked, frozen and killed through the v2 hierarchy, which
 * must be there; each controller may be there or in a v1 hierarchy.
 *
 *	<tree>/<id>			root's: freeze, kill, events
 *	<tree>/<id>/box			the limits
 *	<tree>/<id>/box/runner		pid 1 alone (v2; on v1 it is in `box')
 *	<tree>/<id>/box/sessions	less than the box by the reserve; of
 *					its processor time as much as pid 1
 *	<tree>/<id>/box/sessions/<sid>	made by the runner (v2)
 *
 *	<tree>/uplinks			netd's uid's: uplinkd makes one in it
 *					for each slirp4netns
 *	<tree>/uplinks/daemon		uplinkd
 *
 * A box's uid owns on v2 `box' and `sessions' and their cgroup.procs; on v1
 * sessions/cgroup.procs alone, since there one who may mkdir may use up the
 * host's memory.  Limits are root's everywhere.
 *
 * Safe when the asker is hostile: paths are a fixed tree and a checked ULID;
 * numbers were held against the ceilings.  What a box leaves in its part is
 * directories, at most 1,024 and two deep by the kernel's word.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "facts.h"
#include "ulid.h"
#include "xmalloc.h"

#define UNIT		"workbox-boxes.service"
#define SLICE		"system.slice/" UNIT
#define UPLINKD		"uplinks/daemon"
#define REMOVE_MAX	64		/* directories in one call */

enum scope { PARENT = 1, BOX = 2, SESSIONS = 4 };
enum knob_kind { MEMORY, SWAP, TCP, PERIOD, CPU, PIDS, NKNOBS };
enum controller { C_MEMORY, C_CPU, C_PIDS, NCONTROLLERS };

static const char *const controllers[NCONTROLLERS] =
    { "memory", "cpu", "pids" };

static const struct knob {
	const char	*name;
	enum controller	 controller;
	int		 scopes;
	const char	*v2, *v1;	/* NULL: nothing to set there */
} knobs[NKNOBS] = {
	/* SWAP after MEMORY: v1 refuses memory above memory + swap. */
	[MEMORY] = { "memory_bytes", C_MEMORY, PARENT | BOX | SESSIONS,
	    "memory.max", "memory.limit_in_bytes" },
	[SWAP] = { "swap", C_MEMORY, BOX | SESSIONS,
	    "memory.swap.max", "memory.memsw.limit_in_bytes" },
	/* Else socket buffers are charged to nobody on v1; not inherited. */
	[TCP] = { "socket_memory", C_MEMORY, BOX | SESSIONS,
	    NULL, "memory.kmem.tcp.limit_in_bytes" },
	/* v2 has both in one file; see quota(). */
	[PERIOD] = { "cpu_milli", C_CPU, BOX, NULL, "cpu.cfs_period_us" },
	[CPU] = { "cpu_milli", C_CPU, BOX,
	    "cpu.max", "cpu.cfs_quota_us" },
	[PIDS] = { "pids", C_PIDS, PARENT | BOX | SESSIONS,
	    "pids.max", "pids.max" },
};

/* [0] is v2; the others are v1, in the order of `controllers'. */
static struct hier {
	int	 fd;			/* the tree in it; owned, for ever */
	int	 above;			/* its parent, likewise; -1: not ours */
	int	 mask;			/* controllers that it has for us */
} hiers[1 + NCONTROLLERS];
static size_t		 nhiers;
static int		 no_swap_knob;	/* and no swap on this host */
static struct box_limits parent;
static char		 tree_path[304], tree_name[256];
static char		 note[400], differ[64];

/* ---- one file ------------------------------------------------------- */

/*
 * A thousandth of a processor in microseconds of a period, which is 10 ms: so
 * long at most a neighbour meets one on all processors at once.  Less than
 * 1 ms of a period the kernel does not give.
 */
static uint64_t
quota(const struct box_limits *l)
{
	return l->cpu_milli < 100 ? 100 : 10;
}

static uint64_t
knob_value(enum knob_kind k, int v2, const struct box_limits *l)
{
	switch ((int)k) {
	case MEMORY:
		return l->memory_bytes;
	case SWAP:
		return v2 ? 0 : l->memory_bytes;
	case TCP:
		return l->memory_bytes / 16 / 4096 * 4096;
	case PERIOD:
		return 1000 * quota(l);
	case CPU:
		return l->cpu_milli * quota(l);
	case PIDS:
		return l->pids;
	}
	return 0;
}

/* dir: "", or ending in a slash; one at a time. */
static const char *
in_dir(const char *dir, const char *file)
{
	static char	 path[ULID_LEN + 64];

	(void)snprintf(path, sizeof(path), "%s%s", dir, file);
	return path;
}

/* The first number in a file; "max" is the greatest. */
static int
read_u64(int dirfd, const char *path, uint64_t *ret)
{
	char	 buf[64];
	char	*end;

	if (facts_file(dirfd, path, buf, sizeof(buf)) == -1)
		return -1;
	if (strncmp(buf, "max", 3) == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	*ret = strtoull(buf, &end, 10);
	if (end != buf)
		return 0;
	errno = EBADMSG;
	return -1;
}

int
read_stat(int dirfd, const char *path, const char *word, uint64_t *ret)
{
	char		 buf[4096];
	const char	*p = buf;
	size_t		 len = strlen(word);

	if (facts_file(dirfd, path, buf, sizeof(buf)) == -1)
		return -1;
	for (; p != NULL; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
		if (strncmp(p, word, len) == 0 && p[len] == ' ') {
			*ret = strtoull(p + len, NULL, 10);
			return 0;
		}
	errno = ENOENT;
	return -1;
}

/* The file of a knob in hierarchy h for that scope, or NULL. */
static const char *
knob_file(const struct hier *h, size_t i, int scope)
{
	if (!(knobs[i].scopes & scope) || (i == SWAP && no_swap_knob) ||
	    !(h->mask & 1 << knobs[i].controller))
		return NULL;
	return h == hiers ? knobs[i].v2 : knobs[i].v1;
}

/* Sets the knobs of one scope in dir, below at (the tree, or a box). */
static int
knobs_set(const struct hier *h, int at, const char *dir, enum scope scope,
    const struct box_limits *l)
{
	const char	*file;
	uint64_t	 v;
	size_t		 i;

	for (i = 0; i < NKNOBS; i++) {
		if ((file = knob_file(h, i, scope)) == NULL)
			continue;
		v = knob_value((enum knob_kind)i, h == hiers, l);
		file = in_dir(dir, file);
		if (box_put(at, file, i != CPU || h != hiers ? "%" PRIu64 :
		    quota(l) == 10 ? "%" PRIu64 " 10000" :
		    "%" PRIu64 " 100000", v) == -1)
			return box_fail("cgroup %s", file);
	}
	return 0;
}

/* Adds to `differ' what is not as it should be; ret_is may be NULL. */
static void
knobs_check(const struct hier *h, const char *dir, enum scope scope,
    const struct box_limits *l, uint64_t ret_is[NKNOBS])
{
	const char	*file;
	uint64_t	 is;
	size_t		 i;

	for (i = 0; i < NKNOBS; i++) {
		if ((file = knob_file(h, i, scope)) == NULL)
			continue;
		if (read_u64(h->fd, in_dir(dir, file), &is) == -1)
			is = 0;
		if (ret_is != NULL)
			ret_is[i] = is;
		if (is != knob_value((enum knob_kind)i, h == hiers, l) &&
		    strstr(differ, knobs[i].name) == NULL)
			(void)snprintf(strchr(differ, '\0'), 16, "%s%s",
			    differ[0] == '\0' ? "" : ",", knobs[i].name);
	}
}

/* ---- the tree of all boxes ------------------------------------------ */

/* Processes of the unit itself go to a leaf: a cgroup has either. */
static void
evacuate(int dir)
{
	char	 buf[4096], *pid, *save;

	if ((mkdirat(dir, "keep", 0755) == -1 && errno != EEXIST) ||
	    facts_file(dir, "cgroup.procs", buf, sizeof(buf)) == -1)
		return;
	for (pid = strtok_r(buf, "\n", &save); pid != NULL;
	    pid = strtok_r(NULL, "\n", &save))
		(void)box_put(dir, "keep/cgroup.procs", "%s", pid);
}

/* Gives our controllers of v2 to the children of a directory. */
static int
enable(int dir, const char *path, const char *name)
{
	size_t	 i;
	int	 r;

	for (i = 0; i < NCONTROLLERS; i++) {
		if (!(hiers[0].mask & 1 << i))
			continue;
		r = box_put(dir, path, "+%s", controllers[i]);
		if (r == -1 && errno == EBUSY && strcmp(name, UNIT) == 0) {
			evacuate(dir);
			r = box_put(dir, path, "+%s", controllers[i]);
		}
		if (r == -1)
			return box_fail("cgroup controller %s in %s",
			    controllers[i], name);
	}
	return 0;
}

/* Makes path below a hierarchy's root, component by component. */
static int
tree_make(struct hier *h, const char *path)
{
	char		 buf[300], *name, *save;
	auto_close int	 dir = h->fd;
	int		 next;

	h->fd = h->above = -1;
	(void)str_copy(buf, path, sizeof(buf));
	if (h == hiers && enable(dir, "cgroup.subtree_control", "/") == -1)
		return -1;
	for (name = strtok_r(buf, "/", &save); name != NULL;
	    name = strtok_r(NULL, "/", &save)) {
		if (mkdirat(dir, name, 0755) == -1 && errno != EEXIST)
			return box_fail("cgroup mkdir %s", name);
		next = openat(dir, name, O_DIRECTORY | O_NOFOLLOW |
		    O_CLOEXEC);
		if (next == -1)
			return box_fail("cgroup open %s", name);
		fd_close(&h->above);
		h->above = dir;
		dir = next;
		if (h == hiers &&
		    enable(dir, "cgroup.subtree_control", name) == -1)
			return -1;
	}
	h->fd = steal_fd(&dir);
	return 0;
}

/* Opens the root of each hierarchy; who has a controller gets it. */
static int
hiers_find(void)
{
	struct mntent	 m;
	char		 buf[4096];
	FILE		*fp;
	size_t		 i;
	int		 found = 0, mask, v2;

	for (nhiers = 0; nhiers < 1 + NCONTROLLERS; nhiers++)
		hiers[nhiers] = (struct hier){ .fd = -1, .above = -1 };
	nhiers = 1;
	if ((fp = setmntent("/proc/self/mounts", "re")) == NULL)
		return box_fail("open /proc/self/mounts");
	while (getmntent_r(fp, &m, buf, sizeof(buf)) != NULL) {
		v2 = strcmp(m.mnt_type, "cgroup2") == 0;
		if (!v2 && strcmp(m.mnt_type, "cgroup") != 0)
			continue;
		for (mask = 0, i = 0; !v2 && i < NCONTROLLERS; i++)
			if (hasmntopt(&m, controllers[i]) != NULL)
				mask |= 1 << i;
		if (v2 ? hiers[0].fd != -1 : (mask & ~found) == 0)
			continue;
		i = v2 ? 0 : nhiers++;
		hiers[i].mask = mask & ~found;
		found |= mask;
		hiers[i].fd = open(m.mnt_dir, O_DIRECTORY | O_CLOEXEC);
		if (hiers[i].fd == -1) {
			(void)endmntent(fp);
			return box_fail("open %s", m.mnt_dir);
		}
	}
	(void)endmntent(fp);
	errno = ENOENT;
	if (hiers[0].fd == -1)
		return box_fail("cgroup v2 hierarchy");
	if (facts_file(hiers[0].fd, "cgroup.controllers", buf,
	    sizeof(buf)) == -1)
		return box_fail("cgroup.controllers");
	for (i = 0; i < NCONTROLLERS; i++) {
		if (strstr(buf, controllers[i]) != NULL)
			hiers[0].mask |= ~found & 1 << i;
		errno = ENOENT;
		if (!((found | hiers[0].mask) & 1 << i))
			return box_fail("cgroup controller %s",
			    controllers[i]);
	}
	return 0;
}

/* RAM less max(512 MiB, 10 %), pids less an eighth. */
static int
parent_limits(void)
{
	struct sysinfo	 si;
	uint64_t	 ram, keep, pid_max;

	if (sysinfo(&si) == -1 || read_u64(AT_FDCWD,
	    "/proc/sys/kernel/pid_max", &pid_max) == -1)
		return box_fail("memory and pid_max of the host");
	ram = (uint64_t)si.totalram * si.mem_unit;
	keep = ram / 10 > 512 << 20 ? ram / 10 : 512 << 20;
	parent.memory_bytes = keep > ram / 2 ? ram / 2 : ram - keep;
	box_limits_round(&parent);
	parent.pids = pid_max - pid_max / 8;
	return 0;
}

/* A tree that lacks a file cannot enforce what it stands for. */
static int
knobs_probe(void)
{
	const struct hier	*h;
	const char		*file;
	char			 buf[256];
	size_t			 i;

	for (i = 0; i < NKNOBS; i++)
		for (h = hiers; h < hiers + nhiers; h++) {
			file = h == hiers ? knobs[i].v2 : knobs[i].v1;
			if (!(h->mask & 1 << knobs[i].controller) ||
			    file == NULL ||
			    faccessat(h->fd, file, W_OK, 0) == 0)
				continue;
			/* Without swap there is nothing to be limited. */
			if (i != SWAP || facts_file(AT_FDCWD, "/proc/swaps",
			    buf, sizeof(buf)) == -1 ||
			    strchr(buf, '\n') != strrchr(buf, '\n'))
				return box_fail("cgroup %s", file);
			no_swap_knob = 1;
		}
	return 0;
}

int
cgroup_init(const char *name)
{
	const char	*path;
	char		 unit[300];
	size_t		 i;
	int		 n, systemd;

	(void)str_copy(tree_name, name, sizeof(tree_name));
	if (hiers_find() == -1 || parent_limits() == -1)
		return -1;
	systemd = access("/run/systemd/system", F_OK) == 0;
	n = snprintf(unit, sizeof(unit), SLICE "/%s", name);
	if (n < 0 || (size_t)n >= sizeof(unit)) {
		errno = ENAMETOOLONG;
		return box_fail("cgroup name");
	}
	for (i = 0; i < nhiers; i++) {
		path = name[0] != '/' && systemd &&
		    faccessat(hiers[i].fd, SLICE, F_OK, 0) == 0 ? unit : name;
		if (i == 0) {
			(void)snprintf(tree_path, sizeof(tree_path), "%s%s",
			    path[0] == '/' ? "" : "/", path);
			if (systemd && path == name && name[0] != '/')
				(void)snprintf(note, sizeof(note), "systemd "
				    "may take the controllers from %s: "
				    "install and start " UNIT, tree_path);
		}
		if (tree_make(&hiers[i], path) == -1 ||
		    knobs_set(&hiers[i], hiers[i].fd, "", PARENT,
		    &parent) == -1)
			return -1;
		if (name[0] == '/')	/* the operator's, to stay */
			fd_close(&hiers[i].above);
	}
	return knobs_probe();
}

/* Somebody removed the tree while it was empty: it is made again. */
static int
tree_again(void)
{
	char	 name[sizeof(tree_name)];
	size_t	 i;

	for (i = 0; i < nhiers; i++) {
		fd_close(&hiers[i].fd);
		fd_close(&hiers[i].above);
	}
	(void)str_copy(name, tree_name, sizeof(name));
	return cgroup_init(name);
}

int
cgroup_uplinks(uint32_t uid)
{
	static const char *const own[] = { "uplinks", "uplinks/cgroup.procs",
	    "uplinks/cgroup.subtree_control" };
	const struct hier	*h;
	size_t			 i;

	if (faccessat(hiers[0].fd, "cgroup.procs", F_OK, 0) == -1 &&
	    tree_again() == -1)
		return -1;
	for (h = hiers; h < hiers + nhiers; h++) {
		if ((mkdirat(h->fd, own[0], 0755) == -1 && errno != EEXIST) ||
		    (mkdirat(h->fd, UPLINKD, 0755) == -1 && errno != EEXIST))
			return box_fail("cgroup mkdir " UPLINKD);
		for (i = 0; i < (h == hiers ? 3 : 2); i++)
			if (fchownat(h->fd, own[i], uid, (gid_t)-1,
			    AT_SYMLINK_NOFOLLOW) == -1)
				return box_fail("cgroup %s", own[i]);
	}
	return 0;
}

int
cgroup_enter_uplinks(void)
{
	const struct hier	*h;

	for (h = hiers; h < hiers + nhiers; h++)
		if (box_put(h->fd, UPLINKD "/cgroup.procs", "0") == -1)
			return -1;
	return 0;
}

void
cgroup_leave(void)
{
	const char	*name = strrchr(tree_path, '/');
	size_t		 i;

	for (i = 0; name != NULL && i < nhiers; i++) {
		/* not while boxes are in it */
		(void)unlinkat(hiers[i].fd, UPLINKD, AT_REMOVEDIR);
		(void)unlinkat(hiers[i].fd, "uplinks", AT_REMOVEDIR);
		if (hiers[i].above != -1)
			(void)unlinkat(hiers[i].above, name + 1, AT_REMOVEDIR);
	}
}

const char *
cgroup_note(void)
{
	return note;
}

/* ---- one box -------------------------------------------------------- */

static int
id_ok(const char *id)
{
	return ulid_ok(id) || (errno = EINVAL, 0);
}

/* ID/FILE, as in_dir(); what is no id has been refused before. */
static const char *
id_path(const char *id, const char *file)
{
	char	 dir[ULID_LEN + 2];

	if (!ulid_ok(id))
		abort();
	(void)snprintf(dir, sizeof(dir), "%s/", id);
	return in_dir(dir, file);
}

static int
give(int fd, const char *id, const char *file, uint32_t uid)
{
	return fchownat(fd, id_path(id, file), uid, uid, AT_SYMLINK_NOFOLLOW);
}

static int
make_dir(const struct hier *h, const char *id, const char *dir)
{
	return mkdirat(h->fd, id_path(id, dir), 0755) == 0 ? 0 :
	    box_fail("cgroup mkdir %s", id_path(id, dir));
}

static int
make_v2(const struct hier *h, const char *id, const struct box_limits *l,
    uint32_t uid)
{
	char	 dir[ULID_LEN + 8];

	(void)snprintf(dir, sizeof(dir), "%s/box/", id);
	if (make_dir(h, id, "") == -1 ||
	    enable(h->fd, id_path(id, "cgroup.subtree_control"), id) == -1 ||
	    make_dir(h, id, "box") == -1 ||
	    make_dir(h, id, "box/runner") == -1 ||
	    make_dir(h, id, "box/sessions") == -1 ||
	    knobs_set(h, h->fd, dir, BOX, l) == -1)
		return -1;
	if (box_put(h->fd, id_path(id, "box/cgroup.max.descendants"),
	    "1024") == -1 ||
	    box_put(h->fd, id_path(id, "box/cgroup.max.depth"), "2") == -1 ||
	    give(h->fd, id, "box", uid) == -1 ||
	    give(h->fd, id, "box/cgroup.procs", uid) == -1 ||
	    give(h->fd, id, "box/sessions", uid) == -1 ||
	    give(h->fd, id, "box/sessions/cgroup.procs", uid) == -1)
		return box_fail("cgroup of the box");
	return 0;
}

static int
make_v1(const struct hier *h, const char *id, const struct box_limits *l,
    uint32_t uid)
{
	const struct box_limits	 s = box_sessions(l);
	char			 dir[ULID_LEN + 16];

	(void)snprintf(dir, sizeof(dir), "%s/box/", id);
	if (make_dir(h, id, "") == -1 || make_dir(h, id, "box") == -1 ||
	    knobs_set(h, h->fd, dir, BOX, l) == -1)
		return -1;
	(void)snprintf(dir, sizeof(dir), "%s/box/sessions/", id);
	if (make_dir(h, id, "box/sessions") == -1 ||
	    knobs_set(h, h->fd, dir, SESSIONS, &s) == -1)
		return -1;
	return give(h->fd, id, "box/sessions/cgroup.procs", uid) == 0 ? 0 :
	    box_fail("cgroup of the sessions");
}

unsigned int
cgroup_sessions(void)
{
	return (unsigned int)nhiers - 1;
}

/*
 * A mount of its own for the runner: a descriptor of the host's mount would
 * be a way out, by `..'.
 */
static int
detach(const struct hier *h, const char *id, const char *dir, int *ret)
{
	*ret = open_tree(h->fd, id_path(id, dir), OPEN_TREE_CLONE |
	    OPEN_TREE_CLOEXEC);
	return *ret == -1 ? box_fail("cgroup open_tree") : 0;
}

int
cgroup_make(const char *id, const struct box_limits *l, uint32_t uid,
    struct cgroup *ret)
{
	const struct hier	*h;
	int			*join = ret->join;

	*ret = (struct cgroup){ .box = -1, .join = { -1, -1, -1, -1 },
	    .tree = { -1, -1, -1, -1 } };
	if (!id_ok(id))
		return -1;
	if (make_v2(hiers, id, l, uid) == -1 && (errno != ENOENT ||
	    tree_again() == -1 || make_v2(hiers, id, l, uid) == -1))
		return -1;
	if (detach(hiers, id, "box", &ret->tree[ret->ntree++]) == -1)
		return -1;
	ret->box = openat(hiers[0].fd, id_path(id, "box"), O_DIRECTORY |
	    O_NOFOLLOW | O_CLOEXEC);
	if (ret->box == -1)
		return box_fail("cgroup open box");
	for (h = hiers + 1; h < hiers + nhiers; h++) {
		if (make_v1(h, id, l, uid) == -1 || detach(h, id,
		    "box/sessions", &ret->tree[ret->ntree++]) == -1)
			return -1;
		*join = openat(h->fd, id_path(id, "box/cgroup.procs"),
		    O_WRONLY | O_CLOEXEC);
		if (*join++ == -1)
			return box_fail("cgroup open box");
		ret->njoin++;
	}
	return 0;
}

void
cgroup_close(struct cgroup *cg)
{
	size_t	 i;

	fd_close(&cg->box);
	for (i = 0; i < cg->njoin; i++)
		fd_close(&cg->join[i]);
	for (i = 0; i < cg->ntree; i++)
		fd_close(&cg->tree[i]);
}

/*
 * The order is the kernel's: the namespace is rooted where the process is
 * when it makes it, and v2 gives no controllers to the children of a cgroup
 * that holds a process.
 */
int
cgroup_enter(struct cgroup *cg, const struct box_limits *l)
{
	const struct box_limits	 s = box_sessions(l);
	size_t			 i;

	if (box_put(cg->box, "cgroup.procs", "0") == -1)
		return -1;
	for (i = 0; i < cg->njoin; i++)
		if (write(cg->join[i], "0", 1) != 1)
			return -1;
	if (unshare(CLONE_NEWCGROUP) == -1 ||
	    box_put(cg->box, "runner/cgroup.procs", "0") == -1 ||
	    enable(cg->box, "cgroup.subtree_control", "box") == -1)
		return -1;
	/* memory by session, so that the kernel can end one as a whole */
	if ((hiers[0].mask & 1 << C_MEMORY) && box_put(cg->box,
	    "sessions/cgroup.subtree_control", "%s", hiers[0].mask &
	    1 << C_PIDS ? "+memory +pids" : "+memory") == -1)
		return -1;
	return knobs_set(hiers, cg->box, "sessions/", SESSIONS, &s);
}

/* ---- a box that runs -------------------------------------------------- */

const char *
cgroup_differs(const char *id, const struct box_limits *l,
    struct box_limits *ret)
{
	const struct box_limits	 s = box_sessions(l);
	const struct hier	*h;
	char			 box[ULID_LEN + 8], sessions[ULID_LEN + 16];
	uint64_t		 is[NKNOBS] = { 0 };

	memset(ret, 0, sizeof(*ret));
	if (!id_ok(id))
		return "cgroup";
	(void)snprintf(box, sizeof(box), "%s/box/", id);
	(void)snprintf(sessions, sizeof(sessions), "%s/box/sessions/", id);
	differ[0] = '\0';
	for (h = hiers; h < hiers + nhiers; h++) {
		knobs_check(h, "", PARENT, &parent, NULL);
		knobs_check(h, box, BOX, l, is);
		knobs_check(h, sessions, SESSIONS, &s, NULL);
	}
	/* "max" is more than may be told. */
	ret->memory_bytes = is[MEMORY] > WB_U63 ? WB_U63 : is[MEMORY];
	ret->cpu_milli = is[CPU] / quota(l) > 1024000 ? 1024000 :
	    is[CPU] / quota(l);
	ret->pids = is[PIDS] > 4194304 ? 4194304 : is[PIDS];
	return differ[0] == '\0' ? NULL : differ;
}

/*
 * What a process and those of its children that it has waited for have had
 * written, by proc(5); 0 when it has gone.
 */
static uint64_t
written_by(long pid)
{
	char		 path[32], buf[512], *end = buf;
	uint64_t	 n, off;

	(void)snprintf(path, sizeof(path), "/proc/%ld/io", pid);
	if (facts_file(AT_FDCWD, path, buf, sizeof(buf)) == -1 ||
	    (end = strstr(buf, "\nwrite_bytes:")) == NULL)
		return 0;
	n = strtoull(end + 13, &end, 10);
	off = *end == '\n' ? strtoull(end + 24, NULL, 10) : 0;	/* cancelled */
	return n > off ? n - off : 0;
}

static uint64_t
written_in(int at, const char *name, int depth)
{
	int		 fd = openat(at, name, O_DIRECTORY | O_NOFOLLOW |
			    O_CLOEXEC);
	DIR		*d = fdopendir(fd);	/* of -1: NULL */
	FILE		*fp = fdopen(openat(fd, "cgroup.procs", O_RDONLY |
			    O_CLOEXEC), "re");
	struct dirent	*e;
	uint64_t	 sum = 0;
	long		 pid;

	while (fp != NULL && fscanf(fp, "%ld", &pid) == 1)
		sum += written_by(pid);
	while (d != NULL && (e = readdir(d)) != NULL)
		if (depth > 0 && e->d_type == DT_DIR && e->d_name[0] != '.')
			sum += written_in(fd, e->d_name, depth - 1);
	if (fp != NULL)
		(void)fclose(fp);
	if (d != NULL)
		(void)closedir(d);
	return sum;
}

int
cgroup_usage(const char *id, int written, struct msg_box_health_is *ret)
{
	struct msg_box_health_is u = { 0 };
	const struct hier	*h;
	uint64_t		 n;

	if (!id_ok(id) || read_stat(hiers[0].fd,
	    id_path(id, "box/cpu.stat"), "usage_usec", &u.cpu_usec) == -1)
		return -1;
	for (h = hiers; h < hiers + nhiers; h++) {
		if ((h->mask & 1 << C_PIDS) && read_u64(h->fd,
		    id_path(id, "box/pids.current"), &u.pids) == -1)
			return -1;
		if (!(h->mask & 1 << C_MEMORY))
			continue;
		if (read_u64(h->fd, id_path(id, h == hiers ?
		    "box/memory.current" : "box/memory.usage_in_bytes"),
		    &u.memory_bytes) == -1)
			return -1;
		if (read_stat(h->fd, id_path(id, h == hiers ?
		    "box/memory.events" : "box/memory.oom_control"),
		    "oom_kill", &u.oom_kills) == -1)
			return -1;
		/* v1 counts where the victim was, not above. */
		if (h != hiers && read_stat(h->fd, id_path(id,
		    "box/sessions/memory.oom_control"), "oom_kill", &n) == 0)
			u.oom_kills += n;
	}
	u.written = written ? written_in(hiers[0].fd, id, 3) : 0;
	*ret = u;
	return 0;
}

int
cgroup_freeze(const char *id, int on)
{
	return id_ok(id) ? box_put(hiers[0].fd, id_path(id, "cgroup.freeze"),
	    "%d", on) : -1;
}

int
cgroup_frozen(const char *id)
{
	uint64_t	on = 0;

	return id_ok(id) && read_u64(hiers[0].fd,
	    id_path(id, "cgroup.freeze"), &on) == 0 && on != 0;
}

int
cgroup_kill(const char *id)
{
	return !id_ok(id) ? -1 : box_put(hiers[0].fd, id_path(id,
	    "cgroup.kill"), "1") == 0 || errno == ENOENT ? 0 :
	    box_fail("cgroup.kill");
}

int
cgroup_events(const char *id)
{
	if (!id_ok(id))
		return -1;
	return openat(hiers[0].fd, id_path(id, "cgroup.events"), O_RDONLY |
	    O_CLOEXEC);
}

int
cgroup_runner(const char *id, pid_t *ret, int n)
{
	char	 buf[4096], *pid, *save;
	int	 i = 0;

	if (!id_ok(id) || facts_file(hiers[0].fd,
	    id_path(id, "box/runner/cgroup.procs"), buf, sizeof(buf)) == -1)
		return -1;
	for (pid = strtok_r(buf, "\n", &save); pid != NULL && i < n;
	    pid = strtok_r(NULL, "\n", &save))
		ret[i++] = (pid_t)strtol(pid, NULL, 10);
	return i;
}

/* Removes name and the directories in it; *left counts down to EAGAIN. */
static int
remove_dir(int at, const char *name, int depth, int *left)
{
	struct dirent	*e;
	DIR		*d;
	int		 fd, r = 0;

	if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (depth == 0 || errno != EBUSY)
		return -1;
	fd = openat(at, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || (d = fdopendir(fd)) == NULL) {
		fd_close(&fd);
		return -1;
	}
	while (r == 0 && (e = readdir(d)) != NULL) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (--*left < 0) {
			errno = EAGAIN;
			r = -1;
		} else
			r = remove_dir(fd, e->d_name, depth - 1, left);
	}
	(void)closedir(d);
	return r == -1 ? -1 : unlinkat(at, name, AT_REMOVEDIR);
}

int
cgroup_remove(const char *id)
{
	int	 left = REMOVE_MAX;
	size_t	 i;

	if (!id_ok(id))
		return -1;
	for (i = nhiers; i-- > 0;)
		if (remove_dir(hiers[i].fd, id, 3, &left) == -1)
			return box_fail("remove cgroup %s", id);
	return 0;
}
