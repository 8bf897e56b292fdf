/*
 * launch: from what was asked to a runner, which is pid 1 of a box.
 *
 * The caller's process makes what must be named or cleaned up by name (the
 * directory, the cgroups, the user namespace) and starts a child in new pid,
 * ipc and uts namespaces.  The child is the host's root, runs no code but
 * this file, mounts.c and cgroup_enter(), walks through the steps in the one
 * order that works (DESIGN 3), gives up every right, and becomes the runner.
 * Each step has a name, which a failure is told by.
 *
 * Safe when the asker is hostile: of what is asked, ids and names passed
 * their charsets in box_make(), limits were held against the ceilings, the
 * descriptor is of the kind that chan checked, and all else is constant.  No
 * byte of the box's (its rootfs or upper) is executed or interpreted before
 * the filters are on.  Must never wait for the child.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sha256.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

#define BACKLOG		8
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23	/* Linux 5.14 */
#endif
#define CLEAR_SIGHAND	UINT64_C(0x100000000)	/* CLONE_, of clone3 */

struct clone3_args {		/* the first version of the kernel's */
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal,
	    stack, stack_size, tls;
};

/* What the child finds; descriptors are its own copies. */
struct child {
	const struct box_ask	*ask;
	struct cgroup		*cg;
	const struct box_boot	*b;
	int			 state, rootfs, userns, netns, log, ready;
	int			 control, boot;
};

static const struct { int resource; rlim_t soft, hard; } limits[] = {
	/* 1 alone keeps core handlers of the host from being started. */
	{ RLIMIT_CORE, 1, 1 },
	{ RLIMIT_NOFILE, 1024, 524288 },
	{ RLIMIT_MEMLOCK, 8 << 20, 8 << 20 },
	{ RLIMIT_STACK, 8 << 20, RLIM_INFINITY },
	{ RLIMIT_RTPRIO, 0, 0 },
	{ RLIMIT_NICE, 0, 0 },
};

/* ---- steps of the child: NULL, or the name of what failed ------------- */

/* What privd sent; -1 with ENONET when nobody will. */
static int
take_netns(int sock)
{
	char	 c;
	int	 fds[FDS_MAX];
	size_t	 n;

	if (fds_recv(sock, &c, 1, fds, &n, 0) == -1)
		return -1;
	errno = ENONET;
	return n == 1 ? fds[0] : -1;
}

/* The listener lives in the box's netns; its name is relative. */
static const char *
make_control(struct child *c)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX,
				    .sun_path = "control" };
	auto_close int		 netns = take_netns(c->netns);

	if (netns == -1 || setns(netns, CLONE_NEWNET) == -1)
		return "network namespace";
	c->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);
	if (c->control == -1 || fchdir(c->state) == -1 ||
	    bind(c->control, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		return "control socket";
	return NULL;
}

static const char *
make_boot(struct child *c)
{
	ssize_t	 n = (ssize_t)c->b->boot_len;

	if ((c->boot = memfd_create("boot", MFD_CLOEXEC |
	    MFD_ALLOW_SEALING)) == -1 ||
	    write(c->boot, c->b->boot, c->b->boot_len) != n ||
	    fcntl(c->boot, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK |
	    F_SEAL_GROW | F_SEAL_WRITE) == -1)
		return "boot memfd";
	return NULL;
}

/* A mount point in upper, with its parents, unless the rootfs has it. */
static int
mount_point(int upper, int rootfs, const char *path)
{
	struct stat	 st;
	const char	*slash = strchr(path, '/');
	char		 parent[16];

	if (fstatat(rootfs, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISDIR(st.st_mode) ? 0 : (errno = ENOTDIR, -1);
	if (slash != NULL) {
		(void)snprintf(parent, sizeof(parent), "%.*s",
		    (int)(slash - path), path);
		if (mkdirat(upper, parent, 0755) == -1 && errno != EEXIST)
			return -1;
	}
	return mkdirat(upper, path, 0755);
}

static int __attribute__((format(printf, 3, 4)))
put_etc(int etc, const char *name, const char *fmt, ...)
{
	char	 buf[256];
	va_list	 ap;
	int	 n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	return box_file(etc, name, 0644, buf, (size_t)n);
}

/*
 * Fills a fresh upper as its owner, with this process's file-system ids for
 * as long.  To overlay this is as if the box had written it.
 */
static const char *
fill_upper(const struct child *c)
{
	static const char *const points[] = { "proc", "dev", "run", "tmp",
	    "opt/workbox" };
	auto_close int	 upper = -1, etc = -1;
	char		 id[SHA256_DIGEST_STRING_LENGTH];
	const char	*step = NULL;
	size_t		 i;

	upper = openat(c->state, "upper", O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (upper == -1)
		return "open upper";
	(void)SHA256Data((const uint8_t *)c->ask->id, strlen(c->ask->id), id);
	id[32] = '\0';
	(void)setfsgid(c->ask->uid);	/* say the ids before, never fail */
	(void)setfsuid(c->ask->uid);
	for (i = 0; i < sizeof(points) / sizeof(*points) && step == NULL; i++)
		if (mount_point(upper, c->rootfs, points[i]) == -1)
			step = "mount points";
	if (step == NULL && (mkdirat(upper, "etc", 0755) == -1 ||
	    mkdirat(upper, "etc/profile.d", 0755) == -1 ||
	    (etc = openat(upper, "etc", O_DIRECTORY | O_CLOEXEC)) == -1 ||
	    put_etc(etc, "hostname", "%s\n", c->ask->name) == -1 ||
	    put_etc(etc, "machine-id", "%s\n", id) == -1 ||
	    put_etc(etc, "hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost "
	    "ip6-localhost ip6-loopback\n127.0.1.1\t%s\n", c->ask->name) ==
	    -1 || put_etc(etc, "resolv.conf", "nameserver %s\n",
	    "198.19.255.3") == -1 || put_etc(etc, "profile.d/workbox.sh",
	    "PATH=\"$PATH:%s\"\n", BOX_RUNTIME) == -1))
		step = "files in /etc";
	(void)setfsuid(0);
	(void)setfsgid(0);
	return step;
}

/* The box's root, in namespaces whose mounts are locked from here on. */
static const char *
become_box(const struct child *c)
{
	if (sethostname(c->ask->name, strlen(c->ask->name)) == -1 ||
	    setdomainname("(none)", 6) == -1)
		return "hostname";
	if (setns(c->userns, CLONE_NEWUSER) == -1)
		return "join user namespace";
	if (unshare(CLONE_NEWNS) == -1)
		return "lock mounts";
	if (setgroups(0, NULL) == -1 || setresgid(0, 0, 0) == -1 ||
	    setresuid(0, 0, 0) == -1)
		return "become root of the box";
	/* Else it would hold the session keyring of whoever started us. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) == -1 &&
	    errno != ENOSYS)
		return "session keyring";
	/* Only now: the peer that a connection names is who listens. */
	return listen(c->control, BACKLOG) == -1 ? "listen" : NULL;
}

/* Joining a user namespace filled all sets: this comes after. */
static const char *
drop_rights(void)
{
	struct __user_cap_header_struct	 hdr =
	    { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	 cap[2] = { { 0 } };
	struct rlimit			 now, want;
	size_t				 i;
	int				 bit;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (getrlimit(limits[i].resource, &now) == -1)
			return "resource limits";
		want.rlim_max = limits[i].hard < now.rlim_max ?
		    limits[i].hard : now.rlim_max;
		want.rlim_cur = limits[i].soft < want.rlim_max ?
		    limits[i].soft : want.rlim_max;
		if (setrlimit(limits[i].resource, &want) == -1)
			return "resource limits";
	}
	for (bit = 0; bit < 64; bit++)
		if (!(BOX_CAPS & UINT64_C(1) << bit) &&
		    prctl(PR_CAPBSET_DROP, bit, 0, 0, 0) == -1) {
			if (errno == EINVAL)
				break;	/* beyond the kernel's last */
			return "bounding set";
		}
	cap[0].effective = cap[0].permitted = (uint32_t)BOX_CAPS;
	cap[1].effective = cap[1].permitted = (uint32_t)(BOX_CAPS >> 32);
	if (syscall(SYS_capset, &hdr, cap) == -1)
		return "capabilities";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return "no_new_privs";
	return NULL;
}

/*
 * Descriptors as boxfd.h says.  First all go above the numbers that are
 * given out, then each to its own; the rest, ready among it, closes on exec.
 */
static const char *
order_fds(struct child *c)
{
	int	 from[BOXFD_LAST + 1], n = 0, i;

	from[0] = from[1] = open("/dev/null", O_RDWR | O_CLOEXEC);
	from[2] = c->log;
	from[BOXFD_CONTROL] = c->control;
	from[BOXFD_BOOT] = c->boot;
	for (n = BOXFD_CGROUP2; (size_t)(n - BOXFD_CGROUP2) < c->cg->ntree;
	    n++)
		from[n] = c->cg->tree[n - BOXFD_CGROUP2];
	if ((c->ready = fcntl(c->ready, F_DUPFD_CLOEXEC, BOXFD_LAST + 1)) ==
	    -1)
		return "descriptors";
	for (i = 0; i < n; i++)
		if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC,
		    BOXFD_LAST + 1)) == -1)
			return "descriptors";
	for (i = 0; i < n; i++)
		if (dup2(from[i], i) == -1)
			return "descriptors";
	if (syscall(SYS_close_range, n, ~0U, CLOSE_RANGE_CLOEXEC) == -1)
		return "descriptors";
	return NULL;
}

static const char *
become_runner(struct child *c)
{
	static char	 name[] = "runner";
	char		*argv[] = { name, NULL }, *envp[] = { NULL };
	const char	*step;
	sigset_t	 none;

	(void)sigemptyset(&none);
	(void)umask(0);
	if (setsid() == -1 || sigprocmask(SIG_SETMASK, &none, NULL) == -1 ||
	    signal(SIGPIPE, SIG_DFL) == SIG_ERR)
		return "session and signals";
	/* Not to be spared by the OOM killer because we are. */
	if (box_spared() &&
	    box_put(AT_FDCWD, "/proc/self/oom_score_adj", "0") == -1)
		return "oom_score_adj";
	if (cgroup_enter(c->cg, &c->ask->limits) == -1)
		return "enter cgroups";
	if ((step = make_boot(c)) != NULL ||
	    (step = fill_upper(c)) != NULL ||
	    (step = make_control(c)) != NULL ||
	    (step = mounts_make(c->ask, c->state, c->rootfs, c->userns)) !=
	    NULL || (step = become_box(c)) != NULL ||
	    (step = drop_rights()) != NULL || (step = order_fds(c)) != NULL)
		return step;
	(void)umask(022);
	if (filter_load() == -1)
		return "load filters";
	(void)execve(BOX_RUNTIME "/runner", argv, envp);
	return "exec runner";
}

/* ---- the parent --------------------------------------------------------- */

pid_t
box_fork(uint64_t flags, int *ret_pidfd)
{
	struct clone3_args	 a = {
	    .flags = CLEAR_SIGHAND | CLONE_PIDFD | flags,
	    .pidfd = (uint64_t)(uintptr_t)ret_pidfd, .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &a, sizeof(a));
}

/*
 * Takes the pages that this child is going to write, all at once: a fault
 * for each is what a fork costs.  Failing costs those faults alone.
 */
static void
own_pages(void)
{
	extern char	__dso_handle[], _end[];	/* .data, .bss */
	const uintptr_t	page = 4096, sp = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t	parts[2][2] = {
	    { (uintptr_t)__dso_handle, (uintptr_t)_end },
	    { sp - 6 * page, sp + page } };
	size_t		i;

	for (i = 0; i < 2; i++)
		(void)madvise((void *)(parts[i][0] & ~(page - 1)),
		    parts[i][1] - (parts[i][0] & ~(page - 1)),
		    MADV_POPULATE_WRITE);
}

static __attribute__((noreturn)) void
child_main(struct child *c)
{
	const char	*step;
	int		 err;

	own_pages();
	step = become_runner(c);
	err = errno;
	(void)dprintf(c->ready, "%s: %s", step, strerror(err));
	(void)dprintf(c->log, "%s: %s\n", step, strerror(err));
	_exit(127);
}

static int
launch(struct child *c, struct box_run *ret)
{
	auto_close int	 log_w = -1, ready_w = -1, log_r = -1, ready_r = -1;
	auto_close int	 net_w = -1, net_r = -1;
	int		 p[2], pidfd = -1;
	pid_t		 pid;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1)
		return box_fail("pipe");
	ready_r = p[0];
	c->ready = ready_w = p[1];
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1)
		return box_fail("pipe");
	log_r = p[0];
	c->log = log_w = p[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) == -1)
		return box_fail("socketpair");
	net_w = p[0];
	c->netns = net_r = p[1];
	if ((pid = box_fork(CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
	    &pidfd)) == 0) {
		fd_close(&net_w);	/* its end is to be seen */
		child_main(c);
	}
	if (pid == -1)
		return box_fail("clone");
	ret->pidfd = pidfd;
	ret->ready_fd = steal_fd(&ready_r);
	ret->log_fd = steal_fd(&log_r);
	ret->netns_fd = steal_fd(&net_w);
	return 0;
}

int
box_launch(const struct box_ask *ask, const struct box_boot *b,
    struct box_run *ret)
{
	auto_close int	 state = -1, rootfs = -1, userns = -1;
	struct cgroup	 cg;
	struct child	 c = { .ask = ask, .cg = &cg, .b = b, .control = -1,
			    .boot = -1 };
	int		 r = -1;

	if ((state = box_make(ask, b)) == -1)
		return -1;
	if ((rootfs = box_rootfs_open(ask->rootfs)) == -1)
		return box_fail("open rootfs %s", ask->rootfs);
	if (cgroup_make(ask->id, &ask->limits, ask->uid, &cg) == 0 &&
	    (userns = userns_make(ask->uid)) != -1) {
		c.state = state;
		c.rootfs = rootfs;
		c.userns = userns;
		r = launch(&c, ret);
	}
	cgroup_close(&cg);
	return r;
}
