/*
 * uplinkd_rig.c: see uplinkd_rig.h.
 */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <mntent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uplinkd_rig.h"
#include "xmalloc.h"

static struct { char point[256]; int v2; char opts[256]; } tree[8];
static size_t	ntree;
static char	base[64];		/* of our cgroups */

/* Also outside of a test, where Check's own has nobody to tell. */
static void
must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

/* ---- cgroups ------------------------------------------------------------ */

static void
tree_find(void)
{
	FILE		*fp = setmntent("/proc/self/mounts", "re");
	struct mntent	*m;
	int		 v2;

	must(fp != NULL, "/proc/self/mounts");
	for (ntree = 0; (m = getmntent(fp)) != NULL && ntree < 8;) {
		v2 = strcmp(m->mnt_type, "cgroup2") == 0;
		if (!v2 && (strcmp(m->mnt_type, "cgroup") != 0 ||
		    (hasmntopt(m, "memory") == NULL &&
		    hasmntopt(m, "pids") == NULL &&
		    hasmntopt(m, "cpu") == NULL)))
			continue;
		(void)str_copy(tree[ntree].point, m->mnt_dir, 256);
		(void)str_copy(tree[ntree].opts, m->mnt_opts, 256);
		tree[ntree++].v2 = v2;
	}
	endmntent(fp);
}

/* The same for all children of the program, which sweeps behind them. */
static void
base_name(void)
{
	static pid_t	self;

	if (self == 0)
		self = getpid();
	snprintf(base, sizeof(base), "wb-uplinkd-test.%d", (int)self);
}

static const char *
in_tree(size_t i, const char *name)
{
	static char	path[512];

	if (snprintf(path, sizeof(path), "%s/%s%s", tree[i].point, base,
	    name) >= (int)sizeof(path))
		abort();
	return path;
}

static void
put(const char *path, const char *text)
{
	auto_close int	fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd != -1 && write(fd, text, strlen(text)) ==
	    (ssize_t)strlen(text), path);
}

/* As the maker makes them, but for the limits of the parent. */
static void
tree_make(void)
{
	static const char *const	own[] = { "/uplinks",
	    "/uplinks/cgroup.procs", "/uplinks/cgroup.subtree_control" };
	size_t				i, j;
	char				up[512];

	tree_find();
	ck_assert_uint_gt(ntree, 0);
	base_name();
	for (i = 0; i < ntree; i++) {
		ck_assert_msg(mkdir(in_tree(i, ""), 0755) == 0, "%s: %s",
		    in_tree(i, ""), strerror(errno));
		ck_assert_int_eq(mkdir(in_tree(i, "/uplinks"), 0755), 0);
		if (tree[i].v2 && ntree == 1) {
			(void)snprintf(up, sizeof(up),
			    "%.255s/cgroup.subtree_control", tree[i].point);
			put(up, "+memory +pids +cpu");
			put(in_tree(i, "/cgroup.subtree_control"),
			    "+memory +pids +cpu");
		}
		for (j = 0; j < sizeof(own) / sizeof(own[0]); j++)
			ck_assert(chown(in_tree(i, own[j]), RIG_UID,
			    RIG_UID) == 0 || (j == 2 && !tree[i].v2));
		ck_assert_int_eq(mkdir(in_tree(i, "/uplinks/daemon"), 0755),
		    0);
	}
}

/* A parent is only empty when its children's processes were reaped. */
static void
tree_remove(void)
{
	size_t	i;
	int	n;

	for (i = 0; i < ntree; i++)
		for (n = 0; n < 200; n++) {
			(void)rmdir(in_tree(i, "/uplinks/daemon"));
			(void)rmdir(in_tree(i, "/uplinks"));
			if (rmdir(in_tree(i, "")) == 0 || errno == ENOENT)
				break;
			(void)poll(NULL, 0, 10);
		}
	for (i = 0; i < ntree; i++)
		must(access(in_tree(i, ""), F_OK) == -1, in_tree(i, ""));
}

static const char *
in_k(size_t i, unsigned int k, const char *file)
{
	char	name[64];

	snprintf(name, sizeof(name), "/uplinks/%u%s%s", k,
	    *file != '\0' ? "/" : "", file);
	return in_tree(i, name);
}

static size_t
v2_at(void)
{
	size_t	i;

	for (i = 0; i < ntree && !tree[i].v2; i++)
		;
	must(i < ntree, "cgroup v2");
	return i;
}

static const char *
first_line(const char *path)
{
	static char	buf[4096];
	auto_close int	fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t		n = fd == -1 ? -1 : read(fd, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

pid_t
rig_slirp(unsigned int k)
{
	return (pid_t)strtol(first_line(in_k(v2_at(), k, "cgroup.procs")),
	    NULL, 10);
}

int
rig_cgroup(unsigned int k)
{
	size_t	i;
	int	yes = 0;

	for (i = 0; i < ntree; i++)
		yes |= access(in_k(i, k, ""), F_OK) == 0;
	return yes;
}

/* The v1 hierarchy that has a controller, else v2's. */
static size_t
hier_of(const char *controller)
{
	struct mntent	m = { 0 };
	size_t		i;

	for (i = 0; i < ntree; i++) {
		m.mnt_opts = tree[i].opts;
		if (!tree[i].v2 && hasmntopt(&m, controller) != NULL)
			return i;
	}
	return v2_at();
}

void
rig_no_cpu(void)
{
	size_t	i = hier_of("cpu");

	if (!tree[i].v2) {
		put(in_tree(i, "/cpu.cfs_quota_us"), "50000");
		return;
	}
	put(in_tree(i, "/uplinks/cgroup.subtree_control"), "-cpu");
	put(in_tree(i, "/cgroup.subtree_control"), "-cpu");
}

const char *
rig_limit(const char *controller, unsigned int k, const char *v2,
    const char *v1)
{
	size_t	i = hier_of(controller);

	return first_line(in_k(i, k, tree[i].v2 ? v2 : v1));
}

/* Of one hierarchy: what is left of networks. */
static void
sweep(size_t i)
{
	DIR		*d = opendir(in_tree(i, "/uplinks"));
	struct dirent	*e;
	unsigned int	 k;
	int		 n;

	while (d != NULL && (e = readdir(d)) != NULL) {
		k = (unsigned int)strtoul(e->d_name, NULL, 10);
		for (n = 0; k != 0 && n < 200; n++) {
			if (rmdir(in_k(i, k, "")) == 0 || errno == ENOENT)
				break;
			(void)poll(NULL, 0, 10);
		}
	}
	if (d != NULL)
		closedir(d);
}

void
rig_sweep(void)
{
	char	path[512];
	size_t	i;

	tree_find();
	base_name();
	(void)str_copy(path, in_tree(v2_at(), "/uplinks/cgroup.kill"),
	    sizeof(path));
	if (access(path, F_OK) == 0)
		put(path, "1");
	for (i = 0; i < ntree; i++)
		sweep(i);
	tree_remove();
}

/* ---- all but the process ------------------------------------------------- */

static void
devices(void)
{
	static const struct { const char *path; unsigned int maj, min; }
	nodes[] = { { "/tmp/null", 1, 3 }, { "/tmp/urandom", 1, 9 },
	    { "/tmp/tun", 10, 200 } };
	size_t		i;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(mknod(nodes[i].path, S_IFCHR | 0666,
		    makedev(nodes[i].maj, nodes[i].min)), 0);
}

void
rig_make(struct rig *r)
{
	rig_sweep();
	memset(r, 0, sizeof(*r));
	daemon_conf(&r->conf);
	/* behind the host of egress_lab, where 53 answers with an echo */
	(void)str_copy(r->conf.egress_dns, "203.0.113.50",
	    sizeof(r->conf.egress_dns));
	r->privd.fd = r->netd.fd = -1;
	/* the build tree may lie below /tmp */
	r->exe = open(WB_TOP_BUILDDIR "/uplinkd/uplinkd", O_RDONLY |
	    O_CLOEXEC);
	ck_assert_int_ne(r->exe, -1);
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL),
	    0);
	ck_assert_int_eq(mount("test", "/tmp", "tmpfs", 0, "mode=1777"), 0);
	umask(0);
	devices();
	umask(022);
	lab_make(&r->lab);
	r->u1 = daemon_u1(RIG_UID, RIG_NETBASE);
	tree_make();
	daemon_log(r->log, "uplinkd-test");
}

void
rig_free(struct rig *r)
{
	if (r->pid != 0)
		rig_kill(r);
	rig_sweep();
	lab_free(&r->lab);
	close(r->u1);
	if (getenv("DAEMON_LOG") != NULL)
		daemon_show(r->log);
}

/* ---- the process --------------------------------------------------------- */

static void	run(struct rig *, const int *, int) __attribute__((noreturn));

static void
run(struct rig *r, const int *fd, int n)
{
	size_t	i;

	for (i = 0; i < ntree; i++)
		put(in_tree(i, "/uplinks/daemon/cgroup.procs"), "0");
	if (setns(r->lab.netns[LAB_HOST], CLONE_NEWNET) == -1)
		_exit(99);
	daemon_exec(r->u1, r->exe, r->log, fd, n);
}

void
rig_start(struct rig *r)
{
	struct msg	m;
	int		conf, pv[2], nv[2];

	daemon_pair(pv);
	daemon_pair(nv);
	ck_assert_int_ne(conf = conf_seal(&r->conf), -1);
	ck_assert_int_ne(r->pid = fork(), -1);
	if (r->pid == 0)
		run(r, (const int[]){ pv[1], conf, nv[1] }, 3);
	close(pv[1]);
	close(nv[1]);
	close(conf);
	chan_init(&r->privd, pv[0], A_PRIVD, A_UPLINKD, S_INIT);
	chan_init(&r->netd, nv[0], A_NETD, A_UPLINKD, S_RUN);
	if (daemon_next(&r->privd, &m) != MSG_DAEMON_READY) {
		daemon_show(r->log);
		ck_abort_msg("uplinkd did not start: status %x",
		    (unsigned int)rig_wait(r));
	}
}

void
rig_go(struct rig *r)
{
	struct msg_daemon_go	go = { .generation = 1 };

	ck_assert_int_eq(chan_send(&r->privd, MSG_DAEMON_GO, 1, &go, -1), 0);
	r->privd.state = S_RUN;
}

int
rig_wait(struct rig *r)
{
	int	st = -1;

	ck_assert_int_eq(waitpid(r->pid, &st, 0), r->pid);
	chan_close(&r->privd);
	chan_close(&r->netd);
	r->pid = 0;
	return st;
}

void
rig_kill(struct rig *r)
{
	kill(r->pid, SIGKILL);
	(void)rig_wait(r);
}

/* ---- a netns ------------------------------------------------------------- */

/* In namespaces of its own; deeper: in others below these. */
static void	inner(unsigned int, int, int, int) __attribute__((noreturn));

static void
inner(unsigned int k, int deeper, int in, int out)
{
	char	c = 0;

	if (setresuid(k, k, k) == -1 || prctl(PR_SET_DUMPABLE, 1) == -1 ||
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1)
		_exit(1);
	(void)!write(out, &c, 1);
	if (read(in, &c, 1) != 1 || (deeper && (setresgid(0, 0, 0) == -1 ||
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1)))
		_exit(1);
	(void)!write(out, &c, 1);
	for (;;)
		pause();
}

/* In U1, as its root: a child of uid k there. */
static void	carrier(const struct rig *, unsigned int, int, int)
    __attribute__((noreturn));

static void
carrier(const struct rig *r, unsigned int k, int deeper, int out)
{
	char	map[32], path[64], c = 0;
	int	p[2], go[2];
	pid_t	pid;

	if (setgroups(0, NULL) == -1 || setns(r->u1, CLONE_NEWUSER) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 1) == -1 || pipe(p) == -1 ||
	    pipe(go) == -1 || (pid = fork()) == -1)
		_exit(1);
	if (pid == 0)
		inner(k, deeper, go[0], p[1]);
	close(p[1]);
	if (read(p[0], &c, 1) != 1)
		_exit(1);
	snprintf(map, sizeof(map), "0 %u 1\n", k);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	put(path, map);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	put(path, map);
	if (write(go[1], &c, 1) != 1 || read(p[0], &c, 1) != 1)
		_exit(1);
	(void)!write(out, &pid, sizeof(pid));
	waitpid(pid, NULL, 0);		/* the test ends it */
	_exit(0);
}

static int
netns_make(const struct rig *r, unsigned int k, int deeper)
{
	char	path[64];
	pid_t	pid, inner = 0;
	int	fd, p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0)
		carrier(r, k, deeper, p[1]);
	close(p[1]);
	ck_assert_int_eq(read(p[0], &inner, sizeof(inner)), sizeof(inner));
	close(p[0]);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)inner);
	ck_assert_int_ne(fd = open(path, O_RDONLY | O_CLOEXEC), -1);
	kill(inner, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd;
}

int
rig_netns(const struct rig *r, unsigned int k)
{
	return netns_make(r, k, 0);
}

int
rig_netns_below(const struct rig *r, unsigned int k)
{
	return netns_make(r, k, 1);
}

/* ---- messages ------------------------------------------------------------ */

unsigned int
rig_up(struct rig *r, unsigned int k, int keep, int netns, struct msg *ret)
{
	struct msg_uplink_start	q = { .k = k, .keep = (uint64_t)keep };

	return daemon_ask(&r->netd, MSG_UPLINK_START, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), ret);
}

void
rig_end(struct rig *r, unsigned int k)
{
	struct msg_uplink_end	q = { .k = k };
	struct msg		m;

	ck_assert_uint_eq(daemon_ask(&r->netd, MSG_UPLINK_END, &q, -1, &m),
	    MSG_OK);
}

/* ---- what the kernel says ------------------------------------------------- */

const char *
rig_proc(pid_t pid, const char *file, const char *word)
{
	static char	line[512];
	char		path[64];
	FILE		*fp;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	ck_assert_msg((fp = fopen(path, "re")) != NULL, "%s", path);
	while (fgets(line, sizeof(line), fp) != NULL)
		if (strncmp(line, word, strlen(word)) == 0) {
			fclose(fp);
			line[strcspn(line, "\n")] = '\0';
			return line + strlen(word);
		}
	fclose(fp);
	return "";
}

static int
visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

const char *
rig_ls(pid_t pid, const char *dir)
{
	static char	buf[512];
	char		path[128];
	struct dirent	**e;
	int		 i, n;

	snprintf(path, sizeof(path), "/proc/%d/root/%s", (int)pid, dir);
	buf[0] = '\0';
	n = scandir(path, &e, visible, alphasort);
	ck_assert_msg(n >= 0, "%s: %s", path, strerror(errno));
	for (i = 0; i < n; i++) {
		snprintf(buf + strlen(buf), sizeof(buf) - strlen(buf),
		    "%s%s", i > 0 ? " " : "", e[i]->d_name);
		free(e[i]);
	}
	free(e);
	return buf;
}

/* ---- in a netns ------------------------------------------------------------ */

int
rig_in(int netns, int (*fn)(void *), void *arg)
{
	int	st = -1;
	pid_t	pid = fork();

	ck_assert_int_ne(pid, -1);
	if (pid == 0)
		_exit(setns(netns, CLONE_NEWNET) == -1 ? 199 : fn(arg));
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_msg(WIFEXITED(st), "child status %x", st);
	return WEXITSTATUS(st);
}

struct target { const char *to; int port; };

static int
do_tcp(void *arg)
{
	const struct target	*t = arg;

	return lab_tcp(t->to, t->port, NULL);
}

static int
do_udp(void *arg)
{
	const struct target	*t = arg;

	return lab_udp(t->to, t->port);
}

int
rig_tcp(int netns, const char *to, int port)
{
	struct target	t = { to, port };

	return rig_in(netns, do_tcp, &t);
}

int
rig_udp(int netns, const char *to, int port)
{
	struct target	t = { to, port };

	return rig_in(netns, do_udp, &t);
}
