/*
 * probe: tries of the kernel, each in a child whose changes end with it:
 * namespaces, system-call filters, Landlock, peer pidfds.
 */
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77
#endif

/* ---- in a child -------------------------------------------------------- */

#define UNTRIED	2		/* exit status: fn could not do it */

static struct outcome {
	char	step[64];
	int	err;
} *outcome;				/* shared with the child */

int
probe_step(const char *step)
{
	outcome->err = errno;
	(void)str_copy(outcome->step, step, sizeof outcome->step);
	return -1;
}

void
probe_mortal(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)	/* it went before that */
		_exit(1);
}

static void
child(int (*fn)(const struct conf *), const struct conf *c, pid_t parent)
{
	int	null = open("/dev/null", O_RDWR | O_CLOEXEC);

	probe_mortal(parent);
	(void)dup2(null, STDIN_FILENO);
	switch (fn(c)) {
	case 0:
		_exit(0);
	case 1:
		_exit(UNTRIED);
	default:
		_exit(1);
	}
}

int
probe_child(int (*fn)(const struct conf *), const struct conf *c,
    struct finding *f, const char *cure)
{
	pid_t	pid, self = getpid();
	int	status;

	outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcome == MAP_FAILED || (pid = fork()) == -1) {
		finding_set(f, V_FAIL, "raise kernel.pid_max, ulimit -u or "
		    "TasksMax=", "fork: %s", strerror(errno));
		return -1;
	}
	if (pid == 0)
		child(fn, c, self);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		finding_set(f, V_FAIL, cure, "the try was ended by signal %d",
		    WTERMSIG(status));
	else if (status != 0)
		finding_set(f, WEXITSTATUS(status) == UNTRIED ? V_WARN :
		    V_FAIL, cure, "%s%s%s", outcome->step,
		    outcome->err != 0 ? ": " : "",
		    outcome->err != 0 ? strerror(outcome->err) : "");
	(void)munmap(outcome, sizeof *outcome);
	return status == 0 ? 0 : -1;
}

void
probe_some(int (*fn)(const struct conf *), const struct conf *c,
    struct finding *f, const char *cure, const char *ok)
{
	if (probe_child(fn, c, f, cure) == 0)
		finding_set(f, V_OK, "", "%s", ok);
	else
		f->verdict = V_WARN;
}

static int
write_file(const char *path, const char *text)
{
	auto_close int	fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd != -1 && write(fd, text, strlen(text)) ==
	    (ssize_t)strlen(text) ? 0 : -1;
}

/* ---- namespaces -------------------------------------------------------- */

static int
write_map(pid_t pid, const char *file, uint64_t base)
{
	char	path[64], map[64];

	(void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
	(void)snprintf(map, sizeof map, "0 %llu 65536\n",
	    (unsigned long long)base);
	return write_file(path, map);
}

/* As a box's is made: by its own base uid, mapped by root.  0 or errno. */
static int
userns_make(uint64_t base)
{
	struct { uint32_t version; int pid; } h = { 0x20080522, 0 };
	struct { uint32_t eff, prm, inh; }    d[2];

	if (syscall(SYS_capget, &h, d) == -1 ||
	    setresgid((gid_t)-1, (gid_t)base, (gid_t)-1) == -1 ||
	    setresuid((uid_t)-1, (uid_t)base, (uid_t)-1) == -1)
		return errno;
	d[0].eff = d[0].prm;
	d[1].eff = d[1].prm;
	if (syscall(SYS_capset, &h, d) == -1 || unshare(CLONE_NEWUSER) == -1)
		return errno;
	return 0;
}

static void
userns_child(uint64_t base, int ready, pid_t parent)
{
	int	err = userns_make(base);

	probe_mortal(parent);		/* a change of rights forgets it */
	if (write(ready, &err, sizeof err) != (ssize_t)sizeof err || err != 0)
		_exit(1);
	for (;;)
		(void)pause();
}

int
probe_userns(const struct conf *c)
{
	char		path[64];
	auto_close int	in = -1, out = -1;
	int		p[2], fd = -1, mapped, err = EPIPE;
	pid_t		pid, self = getpid();

	if (pipe2(p, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		return probe_step("fork");
	in = p[0];
	out = p[1];
	if (pid == 0)
		userns_child(c->uid_base, p[1], self);
	fd_close(&out);
	if (read(in, &err, sizeof err) == (ssize_t)sizeof err && err == 0) {
		mapped = write_map(pid, "uid_map", c->uid_base) == 0 &&
		    write_map(pid, "gid_map", c->uid_base) == 0;
		(void)snprintf(path, sizeof path, "/proc/%ld/ns/user",
		    (long)pid);
		fd = mapped ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	} else
		errno = err;
	if (fd == -1)
		(void)probe_step("user namespace");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return fd;
}

static int
try_namespaces(const struct conf *c)
{
	static const struct { int flag; const char *name; } kinds[] = {
		{ CLONE_NEWNS, "mount namespace" },
		{ CLONE_NEWNET, "network namespace" },
		{ CLONE_NEWIPC, "ipc namespace" },
		{ CLONE_NEWUTS, "uts namespace" },
		{ CLONE_NEWCGROUP, "cgroup namespace" },
		{ CLONE_NEWPID, "pid namespace" },
	};
	size_t	i;

	if (probe_userns(c) == -1)
		return -1;
	for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (unshare(kinds[i].flag) == -1)
			return probe_step(kinds[i].name);
	return 0;
}

void
probe_namespaces(const struct conf *c, struct finding *f)
{
	char	why[256], cure[256];

	if (!userns_cause(c, why, cure))
		(void)snprintf(cure, sizeof cure, "a kernel with this kind of "
		    "namespace; sysctl -a -r user.max_ tells how many there "
		    "may be");
	if (probe_child(try_namespaces, c, f, cure) == 0)
		finding_set(f, V_OK, "", "user, mount, pid, network, ipc, "
		    "uts, cgroup");
}

/*
 * What netd does inside its user namespace: a /proc of its own (refused
 * where something covers parts of the host's), a namespace below, a netns
 * there and its settings.
 */
static int
in_nested(void)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    NULL) == -1)
		return probe_step("proc in a user namespace");
	if (unshare(CLONE_NEWUSER) == -1)
		return probe_step("user namespace in a user namespace");
	/* A change of user makes /proc/self another's. */
	if (prctl(PR_SET_DUMPABLE, 1) == -1 ||
	    write_file("/proc/self/setgroups", "deny") == -1 ||
	    write_file("/proc/self/uid_map", "0 0 1") == -1 ||
	    write_file("/proc/self/gid_map", "0 0 1") == -1)
		return probe_step("map of the inner user namespace");
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace in a user namespace");
	if (write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start",
	    "8") == -1)
		return probe_step("write in /proc/sys/net");
	return 0;
}

static int
try_nested(const struct conf *c)
{
	auto_close int	ns = probe_userns(c);
	pid_t		pid;
	int		status = 1;

	if (ns == -1)
		return -1;
	if (setns(ns, CLONE_NEWUSER) == -1 || setgroups(0, NULL) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1)
		return probe_step("enter a user namespace");
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == -1)
		return probe_step("mount namespace in a user namespace");
	if ((pid = fork()) == -1)
		return probe_step("fork");
	if (pid == 0)
		_exit(in_nested() == 0 ? 0 : 1);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	return status == 0 ? 0 : -1;
}

void
probe_nested(const struct conf *c, struct finding *f)
{
	char	why[256], cure[256];

	if (!userns_cause(c, why, cure))
		(void)snprintf(cure, sizeof cure, "let root of a user "
		    "namespace make namespaces; umount what covers a part of "
		    "/proc (in a container: one whose /proc is not masked)");
	if (probe_child(try_nested, c, f, cure) == 0)
		finding_set(f, V_OK, "", "netd can make network namespaces "
		    "inside its user namespace");
}

/* ---- filters, Landlock, pidfds ----------------------------------------- */

static int
try_seccomp(const struct conf *c)
{
	struct sock_filter	insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog	prog = { 4, insns };
	uint32_t		kill_all = SECCOMP_RET_KILL_PROCESS;

	(void)c;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kill_all) ==
	    -1)
		return probe_step("seccomp action kill-process");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return probe_step("no_new_privs");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == -1)
		return probe_step("seccomp filter");
	if (syscall(SYS_getppid) != -1 || errno != ENOSYS) {
		errno = EINVAL;
		return probe_step("seccomp filter does not filter");
	}
	return 0;
}

void
probe_seccomp(const struct conf *c, struct finding *f)
{
	if (probe_child(try_seccomp, c, f, "a kernel with "
	    "CONFIG_SECCOMP_FILTER") == 0)
		finding_set(f, V_OK, "", "filters work; workbox doctor "
		    "--calls prints what a sandbox may call");
}

void
probe_landlock(const struct conf *c, struct finding *f)
{
	long	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);

	if (abi >= 1)
		finding_set(f, V_OK, "", "ABI %ld", abi);
	else if (strcmp(c->landlock, "none") == 0)
		finding_set(f, V_WARN, "configured with landlock none: the "
		    "daemons' fence lacks it", "%s", strerror(errno));
	else
		finding_set(f, V_FAIL, "boot with landlock in lsm=, or "
		    "landlock = none in the configuration", "Landlock: %s",
		    strerror(errno));
}

void
probe_peerpidfd(const struct conf *c, struct finding *f)
{
	int		sv[2], fd = -1, rc;
	socklen_t	len = sizeof fd;

	(void)c;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1) {
		finding_set(f, V_FAIL, "a kernel with unix sockets, and "
		    "descriptors left", "socketpair: %s", strerror(errno));
		return;
	}
	rc = getsockopt(sv[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &len);
	fd_close(&sv[0]);
	fd_close(&sv[1]);
	fd_close(&fd);
	if (rc == 0) {
		finding_set(f, V_OK, "", "sockets tell a pidfd of their peer");
		return;
	}
	fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd == -1)
		finding_set(f, V_FAIL, "kernel 6.1 or later", "pidfd_open: "
		    "%s", strerror(errno));
	else
		finding_set(f, V_OK, "", "by pid and pidfd_open: this kernel "
		    "has no SO_PEERPIDFD");
	fd_close(&fd);
}
