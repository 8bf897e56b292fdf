/*
 * probe_cgroup: finds where each controller lives, v2 or v1, and sets a
 * limit of each kind in a cgroup that is removed again; freezes and kills a
 * process through the v2 tree.
 *
 * A doctor that was killed leaves empty cgroups; their names hold its pid,
 * and the next one removes those whose doctor has gone.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

enum { MEMORY, CPU, PIDS, NCONTROLLERS };

static const char *const	names[NCONTROLLERS] = { "memory", "cpu",
    "pids" };

static const struct knob {
	int		 controller;
	int		 optional;	/* swap: only where there is some */
	const char	*v2, *v2_value;
	const char	*v1, *v1_value;
} knobs[] = {
	{ MEMORY, 0, "memory.max", "67108864", "memory.limit_in_bytes",
	    "67108864" },
	{ MEMORY, 1, "memory.swap.max", "0", "memory.memsw.limit_in_bytes",
	    "67108864" },
	{ MEMORY, 0, NULL, NULL, "memory.kmem.tcp.limit_in_bytes",
	    "4194304" },
	{ CPU, 0, "cpu.max", "50000 100000", "cpu.cfs_quota_us", "50000" },
	{ PIDS, 0, "pids.max", "64", "pids.max", "64" },
};

static struct {
	int	 v2;			/* root of the v2 tree, or -1 */
	char	 v2_dir[256];		/* where it is mounted, or "" */
	int	 fast;			/* it has favordynmods */
	int	 v1[NCONTROLLERS];	/* root of its tree, or -1: in v2 */
	char	 name[32];		/* of the cgroups that are tried */
} t;

static int
put(int dir, const char *file, const char *value)
{
	auto_close int	fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	return fd != -1 && write(fd, value, strlen(value)) ==
	    (ssize_t)strlen(value) ? 0 : -1;
}

static ssize_t
get(int dir, const char *file, char *buf, size_t size)
{
	auto_close int	fd = look_read_in(dir, file);
	ssize_t		n = fd == -1 ? -1 : read(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static void
add_v2(const struct mntent *m)
{
	t.v2 = look_open(m->mnt_dir, O_RDONLY | O_DIRECTORY);
	t.fast = hasmntopt(m, "favordynmods") != NULL;
	(void)str_copy(t.v2_dir, m->mnt_dir, sizeof t.v2_dir);
}

static void
find_trees(void)
{
	struct mntent	 m;
	char		 buf[4096];
	FILE		*fp;
	int		 i;

	t.v2 = -1;
	t.fast = 0;
	for (i = 0; i < NCONTROLLERS; i++)
		t.v1[i] = -1;
	if ((fp = look_file("/proc/self/mounts")) == NULL)
		return;
	while (getmntent_r(fp, &m, buf, sizeof buf) != NULL) {
		if (strcmp(m.mnt_type, "cgroup2") == 0 && t.v2 == -1)
			add_v2(&m);
		if (strcmp(m.mnt_type, "cgroup") != 0)
			continue;
		for (i = 0; i < NCONTROLLERS; i++)
			if (t.v1[i] == -1 && hasmntopt(&m, names[i]) != NULL)
				t.v1[i] = look_open(m.mnt_dir, O_RDONLY |
				    O_DIRECTORY);
	}
	(void)fclose(fp);		/* read only */
}

static void
close_trees(void)
{
	int	i;

	fd_close(&t.v2);
	for (i = 0; i < NCONTROLLERS; i++)
		fd_close(&t.v1[i]);
}

static int
has_swap(void)
{
	char	buf[256];

	return look_text("/proc/swaps", buf, sizeof buf) > 0 &&
	    strchr(buf, '\n') != strrchr(buf, '\n');
}

#define PREFIX	"workbox-doctor-"

/* Ours, and what a doctor left that has gone. */
static void
remove_in(int root)
{
	auto_close int	 fd = -1;
	struct dirent	*e;
	DIR		*d;
	uint64_t	 pid;

	if (root == -1)
		return;
	(void)unlinkat(root, t.name, AT_REMOVEDIR);
	if ((fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) ==
	    -1 || (d = fdopendir(fd)) == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
		    text_u64(e->d_name + sizeof PREFIX - 1, 1, INT32_MAX,
		    &pid) == 0 && kill((pid_t)pid, 0) == -1 &&
		    errno == ESRCH)
			(void)unlinkat(root, e->d_name, AT_REMOVEDIR);
	(void)steal_fd(&fd);		/* closedir closes it */
	(void)closedir(d);
}

/* Sets the limits of one controller in a cgroup of its own. */
static int
try_limits(int root, int controller, int v2)
{
	auto_close int	 dir = -1;
	const char	*file;
	size_t		 i;

	if (mkdirat(root, t.name, 0755) == -1 && errno != EEXIST)
		return probe_step("mkdir in a cgroup");
	dir = openat(root, t.name, O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
		file = v2 ? knobs[i].v2 : knobs[i].v1;
		if (knobs[i].controller != controller || file == NULL ||
		    (knobs[i].optional && !has_swap()))
			continue;
		if (put(dir, file, v2 ? knobs[i].v2_value :
		    knobs[i].v1_value) == -1)
			return probe_step(file);
	}
	return 0;
}

/* Waits for "frozen 1" in cgroup.events, at most 5 s. */
static int
wait_frozen(int dir)
{
	struct pollfd	pfd = { .events = POLLPRI };
	auto_close int	fd = -1;
	char		buf[256];
	ssize_t		n;

	fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	pfd.fd = fd;
	/* Reading arms the poll: it tells of what changes after that. */
	while ((n = pread(fd, buf, sizeof buf - 1, 0)) > 0) {
		buf[n] = '\0';
		if (strstr(buf, "frozen 1") != NULL)
			return 0;
		if (poll(&pfd, 1, 5000) == 0) {
			errno = ETIMEDOUT;
			break;
		}
	}
	return -1;
}

static int
try_tree(void)
{
	auto_close int	dir = -1;
	char		num[16];
	pid_t		pid, self = getpid();
	int		rc = 0, status;

	if (mkdirat(t.v2, t.name, 0755) == -1 && errno != EEXIST)
		return probe_step("mkdir in the v2 tree");
	dir = openat(t.v2, t.name, O_DIRECTORY | O_CLOEXEC);
	if (dir == -1 || (pid = fork()) == -1)
		return probe_step("fork");
	if (pid == 0) {
		probe_mortal(self);
		for (;;)
			(void)pause();
	}
	(void)snprintf(num, sizeof num, "%ld", (long)pid);
	if (put(dir, "cgroup.procs", num) == -1)
		rc = probe_step("cgroup.procs");
	else if (put(dir, "cgroup.freeze", "1") == -1 || wait_frozen(dir) ==
	    -1)
		rc = probe_step("cgroup.freeze");
	else if (put(dir, "cgroup.kill", "1") == -1)
		rc = probe_step("cgroup.kill");
	if (rc == -1)
		(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return rc;
}

static int
try_cgroup(const struct conf *c)
{
	char	down[512];
	int	i;

	(void)c;
	(void)get(t.v2, "cgroup.subtree_control", down, sizeof down);
	for (i = 0; i < NCONTROLLERS; i++) {
		/* serve gives it to the tree; until then it cannot be tried. */
		if (t.v1[i] == -1 && !look_word(down, names[i]))
			continue;
		if (try_limits(t.v1[i] != -1 ? t.v1[i] : t.v2, i,
		    t.v1[i] == -1) == -1)
			return -1;
	}
	return try_tree();
}

#define CURE_V2	"mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with " \
	"systemd.unified_cgroup_hierarchy=1"

/* Where they are; that they work is for probe_limits(). */
void
probe_cgroup(const struct conf *c, struct finding *f)
{
	char	have[512], cure[128];
	int	i, v1 = 0, miss = -1;

	(void)c;
	find_trees();
	(void)get(t.v2, "cgroup.controllers", have, sizeof have);
	for (i = 0; i < NCONTROLLERS; i++) {
		v1 += t.v1[i] != -1;
		if (miss == -1 && t.v1[i] == -1 && !look_word(have, names[i]))
			miss = i;
	}
	if (t.v2 == -1)
		finding_set(f, V_FAIL, CURE_V2, v1 == 0 ? "there is no cgroup "
		    "v2 tree" : "v1 alone: there is no cgroup v2 tree");
	else if (miss != -1) {
		(void)snprintf(cure, sizeof cure, "boot with cgroup_enable=%s, "
		    "or a kernel that has it", names[miss]);
		finding_set(f, V_FAIL, cure, "neither the v2 tree at %s nor a "
		    "v1 hierarchy has the controller %s", t.v2_dir,
		    names[miss]);
	} else
		finding_set(f, V_OK, "", v1 == 0 ? "v2 at %s" : "hybrid: v2 at "
		    "%s, and v1", t.v2_dir);
	close_trees();
}

void
probe_limits(const struct conf *c, struct finding *f)
{
	int	i;

	find_trees();
	if (t.v2 == -1) {
		finding_set(f, V_FAIL, CURE_V2, "no cgroup v2 tree to try");
		close_trees();
		return;
	}
	(void)snprintf(t.name, sizeof t.name, PREFIX "%ld", (long)getpid());
	if (probe_child(try_cgroup, c, f, "mount the cgroup tree so that it "
	    "can be written (a container: --cgroupns=host, rw); for a limit, "
	    "boot with cgroup_enable=memory swapaccount=1") == 0)
		finding_set(f, V_OK, "", "memory, cpu and pids can be limited; "
		    "freeze and kill work");
	remove_in(t.v2);
	for (i = 0; i < NCONTROLLERS; i++)
		remove_in(t.v1[i]);
	close_trees();
}

/*
 * Without it each move of a process between cgroups waits until every
 * processor has passed a quiet state of RCU: 5 to 30 ms, once or more for
 * each exec.  It costs forks and exits a little, so that it is a choice.
 */
void
probe_favordynmods(const struct conf *c, struct finding *f)
{
	auto_free char	*cure = NULL;
	uint64_t	 fast = 0;

	(void)c;
	find_trees();
	cure = xasprintf("mount -o remount,favordynmods %s", t.v2_dir);
	if (t.v2 == -1)
		finding_set(f, V_OK, "", "no cgroup v2 tree to have it");
	else if (t.fast)
		finding_set(f, V_OK, "", "%s has it", t.v2_dir);
	else if (look_number("/sys/kernel/rcu_expedited", "", &fast) == 0 &&
	    fast != 0)
		finding_set(f, V_OK, "", "not needed: rcu_expedited is on");
	else
		finding_set(f, V_OK, cure, "%s lacks it: an exec waits some 5 "
		    "to 30 ms for RCU", t.v2_dir);
	close_trees();
}

void
probe_release_agent(const struct conf *c, struct finding *f)
{
	char	buf[256];
	int	i;

	(void)c;
	find_trees();
	finding_set(f, V_OK, "", "no used hierarchy starts a program");
	for (i = 0; i < NCONTROLLERS; i++)
		if (t.v1[i] != -1 && get(t.v1[i], "release_agent", buf,
		    sizeof buf) > 0 && buf[0] != '\n') {
			buf[strcspn(buf, "\n")] = '\0';
			finding_set(f, V_WARN, "empty release_agent in the "
			    "root of that hierarchy", "the %s hierarchy "
			    "starts %.100s when a cgroup empties", names[i],
			    buf);
			break;
		}
	close_trees();
}
