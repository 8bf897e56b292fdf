/*
 * privd_fake: stands where netd, stored, apid, uplinkd and proxyd stand.  It
 * gives its channels to the test, which plays the daemon, and lives on as the
 * process.
 * As `runner' it is pid 1 of a box that says its nonce to whoever connects.
 *
 * To the test: SOCK_SEQPACKET STATE/rig, one packet (kind, pid) with the
 * descriptors from 3 on.  From the test, one byte: 'n' network namespace (as
 * a descriptor back), 'x' exit(7), anything else or the end: exit(0).
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boxfd.h"
#include "conf.h"
#include "proto.h"

static void
give(int sock, const void *buf, size_t len, const int *fds, size_t n)
{
	union {
		char		buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr	align;
	}		 u;
	struct iovec	 iov = { (void *)(uintptr_t)buf, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*cm;

	memset(&u, 0, sizeof(u));
	mh.msg_control = u.buf;
	mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
	cm = CMSG_FIRSTHDR(&mh);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cm), fds, n * sizeof(int));
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) != (ssize_t)len)
		_exit(9);
}

/* As netd's helper does: a user namespace below ours owns it. */
static void
netns(int sock)
{
	pid_t	pid = fork();
	int	fd;

	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) == -1 ||
		    unshare(CLONE_NEWNET) == -1 ||
		    (fd = open("/proc/thread-self/ns/net", O_RDONLY)) == -1)
			_exit(8);
		give(sock, "n", 1, &fd, 1);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static int
daemon_main(const char *name)
{
	const struct conf	*conf = conf_read(CONF_FD);
	struct sockaddr_un	 un = { .sun_family = AF_UNIX };
	int			 fds[8], sock, i, n = 0;
	int32_t			 hello[2] = { 0, getpid() };
	char			 c;

	hello[0] = strcmp(name, "netd") == 0 ? 0 :
	    strcmp(name, "stored") == 0 ? 1 :
	    strcmp(name, "apid") == 0 ? 2 :
	    strcmp(name, "uplinkd") == 0 ? 3 : 4;
	if (conf == NULL ||
	    (sock = socket(AF_UNIX, SOCK_SEQPACKET, 0)) == -1)
		return 5;
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%.90s/rig",
	    conf->state_dir);
	if (connect(sock, (struct sockaddr *)&un, sizeof(un)) == -1)
		return 6;
	for (i = 3; i < 8; i++)
		if (i != CONF_FD && fcntl(i, F_GETFD) != -1 && i != sock)
			fds[n++] = i;
	give(sock, hello, sizeof(hello), fds, (size_t)n);
	for (i = 0; i < n; i++)
		(void)close(fds[i]);
	while (read(sock, &c, 1) == 1) {
		if (c == 'n')
			netns(sock);
		else
			return c == 'x' ? 7 : 0;
	}
	return 0;
}

static int
runner_main(void)
{
	static uint8_t	buf[4096];
	struct row_boot	boot;
	struct pollfd	p;
	ssize_t		n = pread(BOXFD_BOOT, buf, sizeof(buf), 0);
	int		c;

	if (n <= 0 || wire_decode(&wire_row_boot, buf, (size_t)n, &boot) == -1)
		return 4;
	(void)!write(2, "fake runner is up\n", 18);
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		if ((c = accept(BOXFD_CONTROL, NULL, NULL)) == -1) {
			p.fd = BOXFD_CONTROL;
			p.events = POLLIN;
			(void)poll(&p, 1, -1);
			continue;
		}
		(void)send(c, boot.nonce.data, boot.nonce.len, MSG_NOSIGNAL);
		(void)!read(c, buf, 1);
		if (buf[0] == 'q')
			return 0;
		(void)close(c);
	}
}

int
main(int argc, char *argv[])
{
	const char	*p = argc > 0 ? strrchr(argv[0], '/') : NULL;

	(void)prctl(PR_SET_PDEATHSIG, 0);
	p = p == NULL ? argv[0] : p + 1;
	return strcmp(p, "runner") == 0 ? runner_main() : daemon_main(p);
}
