/*
 * cgroup.c: one cgroup for each slirp4netns, named by its k.
 *
 * The maker makes <tree>/uplinks in each hierarchy and gives it to netd's
 * uid, and starts uplinkd in <tree>/uplinks/daemon: what is ours is found by
 * where we are.  On v2 this is how delegation works: a process may be moved
 * by who may write to cgroup.procs of a directory above both places.
 *
 * A box makes its slirp4netns use up to 0.4 MiB for each connection, so the
 * limit is what the connections that it may have need; with less the box
 * could have it killed.  A box, and whoever sends it UDP, also make it use
 * processor time.  It weighs little beside uplinkd, and has one processor:
 * slirp4netns is one thread, so that it is as fast as it can be, but what
 * somebody made of it may be more.  What limit its box has is not known here.
 *
 * Once it says that it is up, it may have no other process any more: which it
 * needs none of, and which tells the next uplinkd that it said so, as nobody
 * but us writes there.
 *
 * Must never: touch a name that is not a number.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "uplinkd.h"
#include "xmalloc.h"

#define LEAF		"/uplinks/daemon"
#define KEEP		8		/* bytes of LEAF that stay: /uplinks */
#define MEMORY_BASE	(UINT64_C(8) << 20)
#define MEMORY_EACH	419430		/* 0.4 MiB */
#define PIDS		"8"		/* it is two, for a moment */
#define PIDS_UP		"1"		/* and one for ever */
#define WEIGHT		"10"		/* a tenth of uplinkd's own */
#define SHARES		"102"		/* the same on v1, of 1024 */
#define PERIOD		"100000"	/* us; as much of each: one processor */

static struct { char path[512]; int fd; } dirs[CGROUPS];
static size_t		 ndirs;
static uint64_t		 memory;
static char		 why[160];

enum part { MEMORY = 1, NPIDS = 2, CPU = 4 };

/* What is there of these is written, in this order; v1's names are others. */
static const struct knob {
	const char	*file;
	int		 v2;		/* -1: in both */
	enum part	 part;
	const char	*text;		/* NULL: the bytes of `memory' */
} knobs[] = {
	{ "memory.max", 1, MEMORY, NULL },
	{ "memory.swap.max", 1, MEMORY, "0" },
	{ "memory.limit_in_bytes", 0, MEMORY, NULL },
	/* v1 charges socket buffers to nobody without this */
	{ "memory.kmem.tcp.limit_in_bytes", 0, MEMORY, NULL },
	{ "memory.memsw.limit_in_bytes", 0, MEMORY, NULL },
	{ "pids.max", -1, NPIDS, PIDS },
	{ "cpu.weight", 1, CPU, WEIGHT },
	{ "cpu.max", 1, CPU, PERIOD " " PERIOD },
	{ "cpu.shares", 0, CPU, SHARES },
	{ "cpu.cfs_period_us", 0, CPU, PERIOD },
	{ "cpu.cfs_quota_us", 0, CPU, PERIOD },
};

static int __attribute__((format(printf, 1, 2)))
fail(const char *fmt, ...)
{
	int	e = errno;
	size_t	n;
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);	/* or cut */
	va_end(ap);
	n = strlen(why);
	(void)snprintf(why + n, sizeof(why) - n, ": %s", strerror(e));
	errno = e;
	return -1;
}

const char *
cgroup_why(void)
{
	return why;
}

/* ---- where we are ---------------------------------------------------- */

/* Field i of a line, which ends where the next blank does; or NULL. */
static const char *
nth(const char *line, int i)
{
	for (; i > 0 && line != NULL; i--)
		if ((line = strchr(line, ' ')) != NULL)
			line++;
	return line;
}

/* Whether the first of these words, with commas between, is among others. */
static int
has_first(const char *words, const char *first)
{
	size_t	len = strcspn(first, ",");

	for (; words != NULL; words = strchr(words, ','),
	    words = words != NULL ? words + 1 : NULL)
		if (strcspn(words, ",") == len &&
		    strncmp(words, first, len) == 0)
			return 1;
	return 0;
}

/*
 * Whether a line of mountinfo mounts the hierarchy with these options (NULL:
 * v2), and where: the mount point, and which part of it.
 */
static int
mount_is(const char *line, const char *options, char point[256],
    char part[256])
{
	const char	*end = strstr(line, " - ");
	const char	*f3 = nth(line, 3), *f4 = nth(line, 4);
	char		 type[16], super[256];

	if (end == NULL || f3 == NULL || f4 == NULL ||
	    sscanf(end, " - %15s %*s %255s", type, super) != 2 ||
	    sscanf(f3, "%255s %255s", part, point) != 2)
		return 0;
	if (options == NULL)
		return strcmp(type, "cgroup2") == 0;
	/* a controller is in one hierarchy */
	return strcmp(type, "cgroup") == 0 && has_first(super, options);
}

/* Adds the directory above our own cgroup in one hierarchy. */
static int
find_in(const char *options, const char *own)
{
	char	line[4096], point[256], part[256];
	size_t	len;
	FILE	*fp = fopen("/proc/self/mountinfo", "re");

	if (fp == NULL)
		return fail("/proc/self/mountinfo");
	while (fgets(line, sizeof(line), fp) != NULL) {
		if (!mount_is(line, options, point, part))
			continue;
		len = strcmp(part, "/") == 0 ? 0 : strlen(part);
		if (strncmp(own, part, len) != 0)
			continue;	/* another part of it */
		(void)fclose(fp);	/* read only */
		(void)snprintf(dirs[ndirs].path, sizeof(dirs[0].path),
		    "%s%.*s", point, (int)(strlen(own) - len -
		    sizeof(LEAF) + 1 + KEEP), own + len);
		dirs[ndirs++].fd = -1;
		return 0;
	}
	(void)fclose(fp);
	errno = ENOENT;
	return fail("mount of cgroup %s", own);
}

/* One line of /proc/self/cgroup: NUMBER:CONTROLLERS:PATH. */
static int
find_line(char *line, int v2)
{
	char	*options = strchr(line, ':'), *own;
	size_t	 len;

	if (options == NULL || (own = strchr(++options, ':')) == NULL)
		return 0;
	*own++ = '\0';
	own[strcspn(own, "\n")] = '\0';
	len = strlen(own);
	if ((*options == '\0') != v2 || len < sizeof(LEAF) - 1 ||
	    strcmp(own + len - sizeof(LEAF) + 1, LEAF) != 0 ||
	    ndirs == CGROUPS)
		return 0;
	return find_in(v2 ? NULL : options, own);
}

int
cgroup_find(void)
{
	char	line[1024];
	FILE	*fp;
	int	r = 0, v2;

	for (v2 = 1; v2 >= 0 && r == 0; v2--) {
		if ((fp = fopen("/proc/self/cgroup", "re")) == NULL)
			return fail("/proc/self/cgroup");
		while (r == 0 && fgets(line, sizeof(line), fp) != NULL)
			r = find_line(line, v2);
		(void)fclose(fp);	/* read only */
		if (r == 0 && ndirs == 0) {
			errno = ENOENT;
			r = fail("own cgroup is not " LEAF);
		}
	}
	return r;
}

const char *
cgroup_path(size_t i)
{
	return i < ndirs ? dirs[i].path : NULL;
}

/* ---- files -------------------------------------------------------------- */

static int
put(int at, const char *path, const char *text)
{
	auto_close int	fd = openat(at, path, O_WRONLY | O_CLOEXEC);
	size_t		len = strlen(text);

	return fd != -1 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* Whether a word is among those with blanks between. */
static int
has_word(const char *words, const char *word)
{
	size_t	len = strlen(word);

	for (; *words != '\0'; words += strspn(words, " \n")) {
		if (strcspn(words, " \n") == len &&
		    strncmp(words, word, len) == 0)
			return 1;
		words += strcspn(words, " \n");
	}
	return 0;
}

static const char *
in_k(unsigned int k, const char *file)
{
	static char	path[64];

	(void)snprintf(path, sizeof(path), "%u/%s", k, file);
	return path;
}

int
cgroup_open(unsigned int connections)
{
	static const char *const	want[] = { "memory", "pids", "cpu" };
	char				path[32], have[512];
	auto_close int			fd = -1;
	ssize_t				n;
	size_t				i;

	memory = MEMORY_BASE + (uint64_t)connections * MEMORY_EACH;
	memory &= ~UINT64_C(4095);
	for (i = 0; i < ndirs; i++) {
		(void)snprintf(path, sizeof(path), ROOT_CGROUP "/%zu", i);
		dirs[i].fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dirs[i].fd == -1)
			return fail("open %s", dirs[i].path);
	}
	fd = openat(dirs[0].fd, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
	if (fd == -1 || (n = read(fd, have, sizeof(have) - 1)) == -1)
		return fail("controllers of %s", dirs[0].path);
	have[n] = '\0';
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		(void)snprintf(path, sizeof(path), "+%s", want[i]);
		if (has_word(have, want[i]) &&
		    put(dirs[0].fd, "cgroup.subtree_control", path) == -1)
			return fail("controller %s in %s", want[i],
			    dirs[0].path);
	}
	return 0;
}

/* ---- one -------------------------------------------------------------- */

/* What a host may be without, or what the tree's own limit forbids. */
static void
no_cpu(const char *what)
{
	static int	told;

	if (!told)
		log_warn("uplinks use processors without a limit: cgroup %s",
		    what);
	told = 1;
}

/* Bits of enum part, of what was limited; -1: errno. */
static int
limit(size_t i, unsigned int k)
{
	const struct knob	*n;
	char			 text[32];
	const char		*file;
	int			 done = 0;

	(void)snprintf(text, sizeof(text), "%" PRIu64, memory);
	for (n = knobs; n < knobs + sizeof(knobs) / sizeof(knobs[0]); n++) {
		file = in_k(k, n->file);
		if (n->v2 == (i != 0) ||
		    faccessat(dirs[i].fd, file, F_OK, 0) == -1)
			continue;
		done |= (int)n->part;
		if (put(dirs[i].fd, file, n->text == NULL ? text : n->text) ==
		    0)
			continue;
		if (n->part != CPU)
			return fail("cgroup %s", file);
		no_cpu(n->file);
	}
	return done;
}

int
cgroup_make(unsigned int k)
{
	char	name[16];
	size_t	i;
	int	all = 0, r;

	(void)snprintf(name, sizeof(name), "%u", k);
	for (i = 0; i < ndirs; i++) {
		if (mkdirat(dirs[i].fd, name, 0755) == -1 && errno != EEXIST)
			return fail("make cgroup %s", name);
		if ((r = limit(i, k)) == -1)
			return -1;
		all |= r;
	}
	errno = ENOENT;
	if (!(all & CPU))
		no_cpu("cpu");
	if ((all & (MEMORY | NPIDS)) == (MEMORY | NPIDS))
		return 0;
	return fail("cgroup without limits of memory or processes");
}

/* The hierarchy that bounds its processes, by a descriptor of the bound. */
static int
pids_open(unsigned int k, int flags)
{
	size_t	i;
	int	fd = -1;

	for (i = 0; i < ndirs && fd == -1; i++)
		fd = openat(dirs[i].fd, in_k(k, "pids.max"), flags |
		    O_CLOEXEC);
	return fd;
}

int
cgroup_up(unsigned int k)
{
	auto_close int	fd = pids_open(k, O_WRONLY);

	return fd != -1 && write(fd, PIDS_UP, 1) == 1 ? 0 :
	    fail("cgroup %u/pids.max", k);
}

int
cgroup_was_up(unsigned int k)
{
	auto_close int	fd = pids_open(k, O_RDONLY);
	char		is[sizeof(PIDS_UP "\n")];

	return fd != -1 && read(fd, is, sizeof(is)) == sizeof(is) - 1 &&
	    memcmp(is, PIDS_UP "\n", sizeof(is) - 1) == 0;
}

int
cgroup_enter(unsigned int k)
{
	size_t	i;

	for (i = 0; i < ndirs; i++)
		if (put(dirs[i].fd, in_k(k, "cgroup.procs"), "0") == -1)
			return -1;
	return 0;
}

int
cgroup_events(unsigned int k)
{
	return openat(dirs[0].fd, in_k(k, "cgroup.events"), O_RDONLY |
	    O_CLOEXEC);
}

int
cgroup_populated(int events)
{
	char	 buf[256];
	ssize_t	 n = -1;

	if (events != -1 && lseek(events, 0, SEEK_SET) == 0)
		n = read(events, buf, sizeof(buf) - 1);
	if (n <= 0)		/* it is gone: ENODEV */
		return 0;
	buf[n] = '\0';
	return strstr(buf, "populated 1") != NULL;
}

int
cgroup_kill(unsigned int k)
{
	return put(dirs[0].fd, in_k(k, "cgroup.kill"), "1") == 0 ||
	    errno == ENOENT ? 0 : fail("end %u", k);
}

int
cgroup_remove(unsigned int k)
{
	char	name[16];
	size_t	i;
	int	r = 0;

	(void)snprintf(name, sizeof(name), "%u", k);
	for (i = ndirs; i-- > 0;)
		if (unlinkat(dirs[i].fd, name, AT_REMOVEDIR) == -1 &&
		    errno != ENOENT)
			r = fail("remove cgroup %s", name);
	return r;
}

/* The number that a name is, as we write it; 0: none. */
static unsigned int
number(const char *name)
{
	char		 again[16];
	unsigned long	 k = strtoul(name, NULL, 10);

	if (k == 0 || k > UPLINK_KMAX)
		return 0;
	(void)snprintf(again, sizeof(again), "%lu", k);
	return strcmp(again, name) == 0 ? (unsigned int)k : 0;
}

int
cgroup_list(void (*found)(unsigned int k))
{
	struct dirent	*e;
	DIR		*d;
	unsigned int	 k;
	size_t		 i;
	int		 fd;

	for (i = 0; i < ndirs; i++) {
		fd = openat(dirs[i].fd, ".", O_RDONLY | O_DIRECTORY |
		    O_CLOEXEC);
		if (fd == -1 || (d = fdopendir(fd)) == NULL) {
			fd_close(&fd);
			return fail("read %s", dirs[i].path);
		}
		while ((e = readdir(d)) != NULL)
			if ((k = number(e->d_name)) != 0)
				found(k);
		(void)closedir(d);	/* read only */
	}
	return 0;
}
