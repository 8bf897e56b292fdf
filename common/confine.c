/*
 * confine.c: the fence around our own daemons.
 *
 * Stages, in this order, because each needs what a later one takes away:
 *   1 close every descriptor above last_fd; lower the limits
 *   2 a mount namespace of our own, everything private; the new root
 *   3 the bounding and ambient sets; groups, gid, uid, proved by trying to
 *     regain them
 *   4 the permitted, effective and inheritable sets
 *   5 no_new_privs, not dumpable
 *   6 Landlock: no file, no TCP port (the second fence behind the root)
 *   7 the system-call filter, last
 *
 * Must never: go on after a stage that failed.
 */
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "xmalloc.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER	(1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE	(1ULL << 14)
#endif

/* The newest call of the headers: set_mempolicy_home_node, on every arch. */
#define NEWEST_CALL	450

/* Under a sanitizer, whose own calls are on no list, all but the filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_BUILD	1
const char	*__asan_default_options(void);

/* behind the fence there is no /proc in which leaks could be looked for */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#else
#define TEST_BUILD	0
#endif

static char	confine_why[200];

const struct confine_call confine_base[] = {
	{ .name = "read" }, { .name = "write" }, { .name = "readv" },
	{ .name = "writev" }, { .name = "close" }, { .name = "fstat" },
	{ .name = "newfstatat" }, { .name = "lseek" },
	{ .name = "brk" }, { .name = "munmap" }, { .name = "madvise" },
	{ .name = "mremap" }, { .name = "futex" },
	/* no page becomes executable: PROT_EXEC is 4 */
	{ .name = "mmap", .arg = 2, .cond = CC_MASKED, .value = 0, .mask = 4 },
	{ .name = "mprotect", .arg = 2, .cond = CC_MASKED, .value = 0,
	    .mask = 4 },
	{ .name = "poll" }, { .name = "ppoll" }, { .name = "epoll_wait" },
	{ .name = "epoll_pwait" }, { .name = "epoll_pwait2" },
	{ .name = "epoll_ctl" },
	{ .name = "recvmsg" }, { .name = "sendmsg" }, { .name = "recvfrom" },
	{ .name = "sendto" }, { .name = "getsockopt" },
	{ .name = "clock_gettime" }, { .name = "clock_nanosleep" },
	/* without a vDSO these are calls */
	{ .name = "gettimeofday" }, { .name = "time" },
	{ .name = "getrandom" },
	{ .name = "getpid" }, { .name = "gettid" },
	{ .name = "rt_sigaction" }, { .name = "rt_sigprocmask" },
	{ .name = "rt_sigreturn" }, { .name = "sigaltstack" },
	{ .name = "fcntl" }, { .name = "restart_syscall" },
	{ .name = "sched_yield" }, { .name = "exit" },
	{ .name = "exit_group" }, { .name = "tgkill" },
	{ .name = "rseq" }, { .name = "sched_getaffinity" },
	{ .name = "set_robust_list" }, { .name = "shutdown" },
	{ .name = "eventfd2" }, { .name = "timerfd_create" },
	{ .name = "timerfd_settime" },
};
const size_t confine_nbase = sizeof(confine_base) / sizeof(confine_base[0]);

static int	confine_fail(const char *, ...)
		    __attribute__((format(printf, 1, 2)));

static int
confine_fail(const char *fmt, ...)
{
	va_list	ap;
	int	e = errno;
	size_t	n;

	va_start(ap, fmt);
	(void)vsnprintf(confine_why, sizeof(confine_why), fmt, ap);
	va_end(ap);
	n = strlen(confine_why);
	(void)snprintf(confine_why + n, sizeof(confine_why) - n, ": %s",
	    strerror(e));
	errno = e;
	return -1;
}

const char *
confine_error(void)
{
	return confine_why;
}

/* ---- 1: descriptors and limits -------------------------------------- */

/* All but syslog's socket. */
static int
close_above(unsigned int last)
{
	unsigned int	keep = (unsigned int)log_descriptor();

	if (log_descriptor() == -1 || keep <= last)
		return (int)syscall(SYS_close_range, last + 1, ~0U, 0);
	if (keep > last + 1 &&
	    syscall(SYS_close_range, last + 1, keep - 1, 0) == -1)
		return -1;
	return (int)syscall(SYS_close_range, keep + 1, ~0U, 0);
}

static int
confine_limits(const struct confine *c)
{
	struct rlimit	rl;
	size_t		i;

	if (c->last_fd != 0 && close_above(c->last_fd) == -1)
		return confine_fail("close_range");
	for (i = 0; i < c->nlimits; i++) {
		const struct confine_limit *l = &c->limits[i];

		if (getrlimit(l->resource, &rl) == -1)
			return confine_fail("getrlimit %d", l->resource);
		/* root here may lack CAP_SYS_RESOURCE: only ever lower */
		if (rl.rlim_max == RLIM_INFINITY || rl.rlim_max > l->value)
			rl.rlim_max = l->value;
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(l->resource, &rl) == -1)
			return confine_fail("setrlimit %d", l->resource);
	}
	return 0;
}

/* ---- 2: the root ---------------------------------------------------- */

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

/* A mount of what is to be the root, attached over /proc or any directory. */
static int
root_empty(void)
{
	auto_close int	fd = -1;

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

static int
root_dir(const char *dir)
{
	auto_close int	fd = -1;
	struct stat	st;

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

static int
confine_root(const struct confine *c)
{
	if (c->root == CONFINE_ROOT_KEEP)
		return 0;
	if (unshare(CLONE_NEWNS) == -1)
		return confine_fail("unshare mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return confine_fail("make mounts private");
	return c->root == CONFINE_ROOT_EMPTY ? root_empty() : root_dir(c->dir);
}

/* ---- 3: who we are -------------------------------------------------- */

static int
confine_ids(const struct confine *c)
{
	uid_t	r, e, s;

	if (c->uid == 0)
		return 0;
	if (setgroups(0, NULL) == -1)
		return confine_fail("setgroups");
	if (setresgid(c->gid, c->gid, c->gid) == -1)
		return confine_fail("setresgid %u", c->gid);
	if (prctl(PR_SET_KEEPCAPS, c->caps != 0) == -1)
		return confine_fail("keepcaps");
	if (setresuid(c->uid, c->uid, c->uid) == -1)
		return confine_fail("setresuid %u", c->uid);
	if (getresuid(&r, &e, &s) == -1 || r != c->uid || e != c->uid ||
	    s != c->uid) {
		errno = EPERM;
		return confine_fail("uid is not %u", c->uid);
	}
	/* CAP_SETUID may be left until stage 4: only then is this a proof */
	if (c->caps == 0 && (setuid(0) != -1 || seteuid(0) != -1)) {
		errno = EPERM;
		return confine_fail("uid 0 could be regained");
	}
	return 0;
}

/* ---- 4: capabilities ------------------------------------------------ */

static int
confine_bounding(const struct confine *c)
{
	int	i;

	for (i = 0; i < 64; i++) {
		if (c->caps & UINT64_C(1) << i)
			continue;
		if (prctl(PR_CAPBSET_READ, i) == -1)
			break;		/* beyond the kernel's last */
		if (prctl(PR_CAPBSET_READ, i) == 1 &&
		    prctl(PR_CAPBSET_DROP, i) == -1)
			return confine_fail("drop capability %d", i);
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
		return confine_fail("clear ambient capabilities");
	return 0;
}

static int
confine_caps(const struct confine *c)
{
	struct __user_cap_header_struct	 h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	 d[2];

	memset(d, 0, sizeof(d));
	d[0].permitted = d[0].effective = (uint32_t)c->caps;
	d[1].permitted = d[1].effective = (uint32_t)(c->caps >> 32);
	if (syscall(SYS_capset, &h, d) == -1)
		return confine_fail("capset");
	return 0;
}

/* ---- 5, 6: privileges and Landlock ----------------------------------- */

static uint64_t
landlock_fs(int abi)
{
	/* the rights of ABI 1 are bits 0 to 12 */
	uint64_t	v = (UINT64_C(1) << 13) - 1;

	if (abi >= 2)
		v |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		v |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		v |= UINT64_C(1) << 15;		/* IOCTL_DEV */
	return v;
}

static int
landlock_but(int ruleset, int dir)
{
	struct landlock_path_beneath_attr	attr = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE |
		    LANDLOCK_ACCESS_FS_WRITE_FILE,
		.parent_fd = dir,
	};

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
	    &attr, 0) == -1)
		return confine_fail("Landlock rule for descriptor %d", dir);
	return 0;
}

static int
confine_landlock(const struct confine *c)
{
	/* handled_access_fs, handled_access_net (ABI 4) */
	uint64_t	attr[2] = { 0, 0 };
	auto_close int	fd = -1;
	size_t		i;
	long		abi;

	if (!c->landlock_all)
		return 0;
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1)
		return confine_fail("Landlock is missing");
	attr[0] = landlock_fs((int)abi);
	if (abi >= 4)
		attr[1] = 3;			/* bind and connect TCP */
	fd = (int)syscall(SYS_landlock_create_ruleset, attr,
	    abi >= 4 ? sizeof(attr) : sizeof(attr[0]), 0);
	if (fd == -1)
		return confine_fail("Landlock ruleset");
	for (i = 0; i < c->nlandlock_but; i++)
		if (landlock_but(fd, c->landlock_but[i]) == -1)
			return -1;
	if (syscall(SYS_landlock_restrict_self, fd, 0) == -1)
		return confine_fail("Landlock restrict");
	return 0;
}

static int
confine_privs(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return confine_fail("no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return confine_fail("not dumpable");
	return 0;
}

/* ---- 7: the filter --------------------------------------------------- */

static int
filter_add(scmp_filter_ctx ctx, const struct confine_call *k)
{
	int	nr = seccomp_syscall_resolve_name(k->name), r;

	if (nr == __NR_SCMP_ERROR) {
		errno = EINVAL;
		return confine_fail("system call %s is not known", k->name);
	}
	switch (k->cond) {
	case CC_ANY:
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
		break;
	case CC_EQ:
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
		    SCMP_CMP(k->arg, SCMP_CMP_EQ, k->value));
		break;
	case CC_MASKED:
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
		    SCMP_CMP(k->arg, SCMP_CMP_MASKED_EQ, k->mask, k->value));
		break;
	default:
		r = -EINVAL;
	}
	/* -EEXIST: a row that stands in the base and in the daemon's list;
	 * -EDOM: the call has no number on this architecture */
	if (r != 0 && r != -EEXIST && r != -EDOM) {
		errno = -r;
		return confine_fail("rule for %s", k->name);
	}
	return 0;
}

/*
 * The program of the list, behind a head that answers ENOSYS to numbers that
 * did not exist when this was built, and to clone3: libc probes new calls and
 * falls back (pthread_create to clone, whose flags a row can hold).
 */
#define HEAD	4
static int
filter_load(scmp_filter_ctx ctx)
{
	static struct sock_filter	prog[4096] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_CALL, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_fprog	fp = { .filter = prog };
	auto_close int		fd = memfd_create("filter", MFD_CLOEXEC);
	ssize_t			n;
	int			r;

	if (fd == -1)
		return confine_fail("memfd for the filter");
	if ((r = seccomp_export_bpf(ctx, fd)) != 0) {
		errno = -r;
		return confine_fail("export the filter");
	}
	n = pread(fd, prog + HEAD, sizeof(prog) - HEAD * sizeof(prog[0]), 0);
	if (n <= 0 || (size_t)n == sizeof(prog) - HEAD * sizeof(prog[0])) {
		errno = E2BIG;
		return confine_fail("read the filter");
	}
	fp.len = (unsigned short)(HEAD + (size_t)n / sizeof(prog[0]));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fp, 0, 0) == -1)
		return confine_fail("load the filter");
	return 0;
}

static int
confine_filter(const struct confine *c)
{
	scmp_filter_ctx	ctx;
	size_t		i;
	int		r = 0;

	if ((ctx = seccomp_init(SCMP_ACT_KILL_PROCESS)) == NULL)
		return confine_fail("seccomp_init");
	for (i = 0; i < confine_nbase && r == 0; i++)
		r = filter_add(ctx, &confine_base[i]);
	for (i = 0; i < c->ncalls && r == 0; i++)
		r = filter_add(ctx, &c->calls[i]);
	if (r == 0)
		r = filter_load(ctx);
	seccomp_release(ctx);
	return r;
}

int
confine_enter(const struct confine *c)
{
	tzset();	/* gmtime_r() would read the file at its first call */
	if (c->ncalls != 0 && seccomp_api_get() < 3) {
		errno = ENOSYS;
		return confine_fail("seccomp KILL_PROCESS is missing");
	}
	if (confine_limits(c) == -1 || confine_root(c) == -1 ||
	    confine_bounding(c) == -1 || confine_ids(c) == -1 ||
	    confine_caps(c) == -1 ||
	    confine_privs() == -1 || confine_landlock(c) == -1)
		return -1;
	return c->ncalls == 0 || TEST_BUILD ? 0 : confine_filter(c);
}
