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

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <unistd.h>

#include "become.h"
#include "confine.h"
#include "log.h"
#include "maker_ask.h"
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

static __attribute__((noreturn)) void
maker_run(const char *path, int fd)
{
	char	*argv[] = { (char *)(uintptr_t)path, NULL };

	if (dup2(fd, MAKER_FD) == -1 ||
	    syscall(SYS_close_range, MAKER_FD + 1, ~0U, 0) == -1)
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
	int	sp[2];
	pid_t	pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp) == -1 ||
	    (pid = fork()) == -1)
		return "start the maker";
	if (pid == 0)
		maker_run(path, sp[1]);
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
