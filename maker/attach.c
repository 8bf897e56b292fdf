/*
 * attach: finding pid 1 of a box, and connecting to it.
 *
 * No pid is stored anywhere.  A process is pid 1 of a box when its number in
 * its innermost pid namespace is 1, its uid is the box's and its cgroup is
 * the box's runner leaf, into which only root can move a process; all of it
 * read through a /proc directory that was opened while a pidfd said that the
 * process lives, so that a number that is used again cannot be mistaken.
 *
 * Safe when the asker is hostile: it names a box, and gets a connection to
 * that box or none.  Safe when the box is: what it can do is to let its
 * queue fill up; a socket of another process is not taken for the runner's,
 * and the connecting socket belongs to the box's own network namespace, so
 * that nothing of the host's shows through it.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77
#endif
#define RUNNERS		64	/* children of pid 1 that did not move yet */

static int	own_netns = -1;

int
attach_init(void)
{
	own_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return own_netns == -1 ? box_fail("open own netns") : 0;
}

pid_t
box_pid(int pidfd)
{
	char		 path[40], buf[512];
	const char	*p;
	long		 pid;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	if (facts_file(AT_FDCWD, path, buf, sizeof(buf)) == -1 ||
	    (p = strstr(buf, "\nPid:")) == NULL)
		return 0;
	pid = strtol(p + 5, NULL, 10);
	return pid < 0 ? 0 : (pid_t)pid;	/* -1: reaped */
}

int
box_proc(int pidfd)
{
	auto_close int	 fd = -1;
	char		 path[32];
	pid_t		 pid;

	errno = ESRCH;
	if ((pid = box_pid(pidfd)) == 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* It lives now, so the number was its own when it was opened. */
	if (fd == -1 || syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) ==
	    -1)
		return (errno = ESRCH, -1);
	return steal_fd(&fd);
}

/* Whether a process is pid 1 of this box. */
static int
is_runner(const char *id, uint32_t uid, int pidfd)
{
	auto_close int	 dir = -1;
	char		 buf[8192], want[64], path[256];
	const char	*p, *end;

	if ((dir = box_proc(pidfd)) == -1 ||
	    facts_file(dir, "status", buf, sizeof(buf)) == -1)
		return 0;
	(void)snprintf(want, sizeof(want), "\nUid:\t%u\t%u\t%u\t%u\n", uid,
	    uid, uid, uid);
	if (strstr(buf, want) == NULL || (p = strstr(buf, "\nNSpid:")) == NULL)
		return 0;
	end = p + 1 + strcspn(p + 1, "\n");
	return end - p >= 2 && strncmp(end - 2, "\t1", 2) == 0 &&
	    box_place(dir, id, path) == 0;
}

int
box_find(const char *id, uint32_t uid)
{
	pid_t	 pid[RUNNERS];
	int	 n, i, fd;

	n = cgroup_runner(id, pid, RUNNERS);
	for (i = 0; i < n; i++) {
		fd = (int)syscall(SYS_pidfd_open, pid[i], 0);
		if (fd != -1 && is_runner(id, uid, fd))
			return fd;
		fd_close(&fd);
	}
	errno = ESRCH;
	return -1;
}

int
box_netns(int pidfd)
{
	auto_close int	 dir = -1;

	if ((dir = box_proc(pidfd)) == -1)
		return -1;
	return openat(dir, "ns/net", O_RDONLY | O_CLOEXEC);
}

/* A socket of the box's network namespace; this process's stays its own. */
static int
socket_in(int pidfd)
{
	int	 fd, err;

	if (setns(pidfd, CLONE_NEWNET) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	err = errno;
	fds_refuse(fd);
	/* To go on in a box's network would be worse than to end. */
	if (setns(own_netns, CLONE_NEWNET) == -1)
		abort();
	errno = err;
	return fd;
}

/* Whether the process behind a connection is the one of pidfd. */
static int
peer_is(int sock, uint32_t uid, int pidfd)
{
	auto_close int	 fd = -1;
	struct ucred	 cred;
	socklen_t	 len = sizeof(fd);
	pid_t		 pid;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		pid = box_pid(fd);
	else {
		/* Before 6.5: the number, and that of pidfd lives still. */
		fd = -1;
		len = sizeof(cred);
		if (errno != ENOPROTOOPT || getsockopt(sock, SOL_SOCKET,
		    SO_PEERCRED, &cred, &len) == -1 || cred.uid != uid)
			return 0;
		pid = cred.pid;
	}
	return pid != 0 && pid == box_pid(pidfd) &&
	    syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;
}

int
box_connect(const char *id, uint32_t uid, int pidfd)
{
	auto_close int		 fd = -1;
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };

	if (!is_runner(id, uid, pidfd)) {
		errno = ESRCH;
		return box_fail("check pid 1");
	}
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path),
	    "/proc/self/fd/%d/%s/control", box_dir(), id);
	if ((fd = socket_in(pidfd)) == -1)
		return box_fail("socket in the box's network");
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		return box_fail("connect");
	if (!peer_is(fd, uid, pidfd)) {
		errno = EPERM;
		return box_fail("check the listener");
	}
	return steal_fd(&fd);
}
