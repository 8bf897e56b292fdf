/*
 * probe_net: tries of what leads out: tun devices, in a network namespace that
 * ends with its child, and slirp4netns.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

/* ---- tun, slirp4netns -------------------------------------------------- */

static int
try_tun(const struct conf *c)
{
	struct ifreq	ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	auto_close int	fd = -1;

	(void)c;
	/* a user namespace's, since the host's CAP_NET_ADMIN is not needed */
	if (unshare(CLONE_NEWUSER) == -1)
		return probe_step("user namespace");
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace");
	if ((fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC)) == -1)
		return probe_step("/dev/net/tun");
	if (ioctl(fd, TUNSETIFF, &ifr) == -1)
		return probe_step("tun device");
	return 0;
}

void
probe_tun(const struct conf *c, struct finding *f)
{
	probe_some(try_tun, c, f, "modprobe tun (in a container: --device "
	    "/dev/net/tun); sandboxes without a network need none",
	    "a tun device can be made");
}

/* The one that uplinkd executes. */
static const char	slirp[] = "/usr/bin/slirp4netns";

static int
try_slirp(const struct conf *c)
{
	pid_t	pid, self = getpid();
	int	status;

	(void)c;
	if ((pid = fork()) == -1)
		return probe_step("fork");
	if (pid == 0) {
		probe_mortal(self);
		(void)dup2(STDIN_FILENO, STDOUT_FILENO);	/* null */
		(void)dup2(STDIN_FILENO, STDERR_FILENO);
		(void)execl(slirp, slirp, "--version", (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	errno = 0;
	return status == 0 ? 0 : probe_step("it does not run");
}

void
probe_slirp(const struct conf *c, struct finding *f)
{
	const char	*cure = "install the package slirp4netns; sandboxes "
			    "without a network need none";
	struct stat	 st;
	auto_close int	 fd = look_open(slirp, O_PATH);

	if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (st.st_mode & S_IXOTH) == 0)
		finding_set(f, V_WARN, cure, "there is no slirp4netns, which "
		    "the network egress needs, as %s", slirp);
	else if (look_root() != NULL || probe_child(try_slirp, c, f, cure) ==
	    0)
		finding_set(f, V_OK, "", "%s", slirp);
	else
		f->verdict = V_WARN;
}
