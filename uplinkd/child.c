/*
 * child.c: from a netns to slirp4netns.
 *
 * A forked child of uplinkd walks through these steps; each has a name, by
 * which a failure is told.  It enters its cgroup first, so that from then on
 * it is ended as whatever is in there.  Then it mounts the netns at a name
 * (slirp4netns wants a path, and there is no /proc), becomes root of the user
 * namespace Un that owns that netns, and executes.
 *
 * Un maps one uid, k, which nobody else has: so no slirp4netns can signal,
 * trace or read another one, netd or uplinkd.  It begins with the few
 * capabilities over Un that its own start needs, keeps NET_BIND_SERVICE of
 * them, and has none on the host.
 *
 * All of it is constant but k and whether there is IPv6.  Must never: pass on
 * a descriptor but 0 to 2 and the one by which it says that it is ready.
 */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "uplinkd.h"
#include "xmalloc.h"

#define FD_READY	3

/* What slirp4netns 1.2 was seen to need until it is in its sandbox. */
#define CAPS	(UINT64_C(1) << CAP_NET_ADMIN |	/* the tap in the netns */ \
	UINT64_C(1) << CAP_SYS_ADMIN |		/* setns, its mounts */ \
	UINT64_C(1) << CAP_SETPCAP |		/* to drop them */ \
	UINT64_C(1) << CAP_NET_BIND_SERVICE)	/* which it keeps */

static const char *
mount_netns(const struct child *c)
{
	auto_close int	mnt = -1;

	if (unshare(CLONE_NEWNS) == -1)
		return "mount namespace";
	if ((mnt = open_tree(c->netns, "", OPEN_TREE_CLONE |
	    OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)) == -1 ||
	    move_mount(mnt, "", AT_FDCWD, ROOT_NETNS,
	    MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return "mount network namespace";
	return NULL;
}

/* Entering a user namespace filled the sets: they are cut here. */
static const char *
become_root(const struct child *c)
{
	int	i;

	if (setns(c->un, CLONE_NEWUSER) == -1)
		return "enter user namespace";
	if (setgroups(0, NULL) == -1 || setresgid(0, 0, 0) == -1 ||
	    setresuid(0, 0, 0) == -1)
		return "become k";
	for (i = 0; prctl(PR_CAPBSET_READ, i) != -1; i++)
		if (!(CAPS & UINT64_C(1) << i) &&
		    prctl(PR_CAPBSET_DROP, i) == -1)
			return "bounding set";
	return NULL;
}

static const char *
limits(const struct child *c)
{
	const struct rlimit	core = { 0, 0 };
	const struct rlimit	files = { c->connections, c->connections };

	/* a connection is a descriptor: this bounds them */
	if (setrlimit(RLIMIT_CORE, &core) == -1 ||
	    setrlimit(RLIMIT_NOFILE, &files) == -1)
		return "resource limits";
	return NULL;
}

/* 0, 1 and, unless it is to be heard, 2 are /dev/null; ours is 1. */
static const char *
order_fds(const struct child *c)
{
	if (dup2(1, 0) == -1 || (!c->talk && dup2(1, 2) == -1) ||
	    dup2(c->ready, FD_READY) == -1 ||
	    fcntl(FD_READY, F_SETFD, 0) == -1 ||
	    syscall(SYS_close_range, FD_READY + 1, ~0U, 0) == -1)
		return "descriptors";
	return NULL;
}

static const char *
execute(const struct child *c)
{
	static const char	*argv[] = {
		"slirp4netns", "--configure", "--mtu=65520",
		"--cidr=198.19.255.0/24", "--disable-host-loopback",
		"--enable-sandbox", "--enable-seccomp", "--ready-fd=3",
		"--netns-type=path", ROOT_NETNS, "tap0", NULL, NULL
	};
	static char		*envp[] = { NULL };

	if (c->ipv6)
		argv[sizeof(argv) / sizeof(argv[0]) - 2] = "--enable-ipv6";
	(void)execve(SLIRP, (char *const *)(uintptr_t)argv, envp);
	return "run " SLIRP;
}

static const char *
become_slirp(const struct child *c)
{
	const char	*step;
	sigset_t	 none;

	(void)sigemptyset(&none);
	if (cgroup_enter(c->k) == -1)
		return "enter cgroups";
	/* what is ignored would stay so */
	if (setsid() == -1 || signal(SIGPIPE, SIG_DFL) == SIG_ERR ||
	    signal(SIGHUP, SIG_DFL) == SIG_ERR ||
	    signal(SIGINT, SIG_DFL) == SIG_ERR ||
	    signal(SIGTERM, SIG_DFL) == SIG_ERR ||
	    sigprocmask(SIG_SETMASK, &none, NULL) == -1)
		return "session and signals";
	if ((step = mount_netns(c)) != NULL ||
	    (step = become_root(c)) != NULL || (step = limits(c)) != NULL)
		return step;
	return NULL;
}

void
child_run(const struct child *c)
{
	const char	*step = become_slirp(c);
	int		 to = c->ready;

	if (step == NULL && (step = order_fds(c)) == NULL) {
		to = FD_READY;
		step = execute(c);
	}
	(void)dprintf(to, "%s: %s", step, strerror(errno));
	_exit(1);
}
