/*
 * become.c: `workbox serve' starts the maker, gives up every privilege, and
 * becomes privd, which so never has one: it begins inside its fence.
 *
 * Two programs go on from here, joined by a socket: the child, which is the
 * host's root and hears that socket alone, and this process, which hears the
 * daemons.  What privd cannot do for itself any more was done before: its
 * root is empty, so it is linked statically and executed by descriptor.
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "become.h"
#include "confine.h"
#include "facts.h"
#include "log.h"
#include "maker_ask.h"
#include "ulid.h"
#include "xmalloc.h"

/* A build with sanitizers needs files of the host to run at all. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_BUILD	1
#else
#define TEST_BUILD	0
#endif

#define CAP(c)	(UINT64_C(1) << CAP_##c)
static const struct confine maker_fence = {
	.caps = CAP(SYS_ADMIN)		/* namespaces, mounts */
	    | CAP(SYS_PTRACE)		/* a box's namespaces in /proc */
	    | CAP(SYS_CHROOT)		/* setns of a mount namespace */
	    | CAP(SETUID) | CAP(SETGID)	/* maps; to become the box's root */
	    | CAP(SETPCAP)		/* daemons and boxes drop bounds */
	    | CAP(MKNOD)		/* a box's /dev */
	    | CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FOWNER)	/* its tree, */
	    | CAP(FSETID) | CAP(SETFCAP)  /* and overlay's, in its name */
	    | CAP(KILL),		/* boxes and daemons: other uids */
	/* no filter: it would hold for every box and daemon */
};

static char *const	no_env[1];

/*
 * Not a POSIX lock: closing any descriptor of the file gives that up, and a
 * daemon, which has one, can send it to privd, which closes what is not due.
 */
int
become_locked(int fd)
{
	struct flock	fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &fl) == -1 || ftruncate(fd, 0) == -1 ||
	    dprintf(fd, "%ld\n", (long)getpid()) < 0 ? -1 : 0;
}

/*
 * Holds the cgroup's name against the one beside the boxes: those that were
 * made under another name would be taken for dead while they run.  NULL, or
 * what is wrong, with errno.
 */
static const char *
cgroup_same(const struct server_conf *c)
{
	static char	 why[400];
	char		 was[sizeof(c->cgroup)] = "";
	auto_close int	 dir = openat(PRIVD_FD_BOXES, "..", O_RDONLY |
			    O_DIRECTORY | O_CLOEXEC), file = -1;
	int		 fd = openat(PRIVD_FD_BOXES, ".", O_RDONLY |
			    O_DIRECTORY | O_CLOEXEC);
	DIR		*d = fdopendir(fd);	/* of -1: NULL */
	struct dirent	*e;
	unsigned int	 n = 0;

	if (d == NULL)
		return "read sandboxes";
	while ((e = readdir(d)) != NULL)
		n += (unsigned int)ulid_ok(e->d_name);
	(void)closedir(d);		/* read only */
	if (facts_file(dir, "cgroup", was, sizeof(was)) > 0 &&
	    strcmp(was, c->cgroup) == 0)
		return NULL;
	(void)snprintf(why, sizeof(why), "%u boxes are in cgroup %s: start "
	    "with it, or remove them first", n, was);
	errno = EBUSY;
	if (was[0] != '\0' && n > 0)
		return why;
	(void)unlinkat(dir, "cgroup", 0);	/* or it was none */
	file = openat(dir, "cgroup", O_WRONLY | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	return file != -1 && write(file, c->cgroup, strlen(c->cgroup)) ==
	    (ssize_t)strlen(c->cgroup) ? NULL :
	    "write the name of the cgroup";
}

static int
map_write(pid_t pid, const char *file, uint32_t id, uint32_t base)
{
	char		path[64], text[64];
	auto_close int	fd = -1;
	int		n;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
	n = snprintf(text, sizeof(text), "0 %u 1\n1 %u 65535\n", id, base);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd != -1 && write(fd, text, (size_t)n) == n ? 0 : -1;
}

/*
 * netd's user namespace U1, in case that no box has one.  Root makes it, so
 * that root owns it and no uid of the host has power over it; netd's uid is
 * its uid 0, and each network namespace gets a uid of the range.
 */
static int
userns_new(const struct server_conf *c)
{
	char	path[64], b;
	int	fd = -1, p[2];
	pid_t	pid;

	if (pipe2(p, O_CLOEXEC) == -1 ||
	    (pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL,
	    NULL, NULL, NULL)) == -1)
		return -1;
	if (pid == 0) {
		(void)close(p[1]);	/* then the read ends with us */
		(void)!read(p[0], &b, 1);
		_exit(0);
	}
	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/user", (long)pid);
	if (map_write(pid, "uid_map", c->uid_netd, c->net_uid_base) == 0 &&
	    map_write(pid, "gid_map", c->gid_netd, c->net_uid_base) == 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	fd_close(&p[0]);
	fd_close(&p[1]);
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	return fd;
}

static __attribute__((noreturn)) void
maker_run(const char *path, int sock, int userns)
{
	char	*argv[] = { (char *)(uintptr_t)path, NULL };

	if (dup2(sock, MAKER_FD) == -1 || dup2(userns, MAKER_USERNS) == -1 ||
	    syscall(SYS_close_range, MAKER_USERNS + 1, ~0U, 0) == -1)
		fatal("start the maker");
	if (confine_enter(&maker_fence) == -1)
		fatalx("the maker's fence: %s", confine_error());
	(void)execve(path, argv, no_env);
	fatal("run %s", path);
}

/*
 * A box's is 1, which alone keeps a core handler of the host from being
 * started for it (maker/launch.c): where the hard limit is 0, it could not be.
 */
static int
core_limit(void)
{
	struct rlimit	rl;

	if (getrlimit(RLIMIT_CORE, &rl) == -1 || rl.rlim_max > 0)
		return 0;
	rl.rlim_max = 1;
	return setrlimit(RLIMIT_CORE, &rl);
}

static const char *
maker_start(const char *path)
{
	struct server_conf	c;
	auto_close int		userns = -1;
	int			sp[2];
	pid_t			pid;

	const char		*step;

	/* all places are filled: what is opened here lies above them */
	if (pread(PRIVD_FD_SERVER, &c, sizeof(c), 0) != sizeof(c))
		return "read the configuration";
	if ((step = cgroup_same(&c)) != NULL)
		return step;
	if ((userns = userns_new(&c)) == -1)
		return "user namespace of netd";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp) == -1 ||
	    (pid = fork()) == -1)
		return "start the maker";
	if (pid == 0)
		maker_run(path, sp[1], userns);
	fd_close(&sp[1]);
	if (dup2(sp[0], PRIVD_FD_MAKER) == -1)
		return "start the maker";
	fd_close(&sp[0]);
	return NULL;
}

const char *
become_privd(const char *privd, const char *maker, int landlock)
{
	char		*argv[] = { (char *)(uintptr_t)privd, NULL };
	auto_close int	 exe = open(privd, O_PATH | O_CLOEXEC);
	const char	*step;
	struct confine	 fence = {
		/* uid 0 without a capability: the directories in which it
		 * looks up names are root's */
		.root = TEST_BUILD ? NULL : confine_root_empty,
		.landlock = TEST_BUILD || !landlock ? NULL :
		    confine_landlock,
		.landlock_exec = exe,
	};

	if (exe == -1)
		return privd;
	(void)umask(022);		/* a box enters its v1 cgroups */
	if (core_limit() == -1)
		return "limit of core files";
	if (chdir("/") == -1)
		return "/";
	if ((step = maker_start(maker)) != NULL)
		return step;
	if (confine_enter(&fence) == -1)
		return confine_error();
	(void)syscall(SYS_execveat, exe, "", argv, no_env, AT_EMPTY_PATH);
	return privd;
}
