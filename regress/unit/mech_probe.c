/*
 * mech_probe: stands in for the runner in mech_test.  Answers one packet for
 * each packet on the control connection, in a child where that matters:
 *
 *	call NR A B C D E F	"RET ERRNO" or "signal N" of a system call
 *	sh COMMAND		"STATUS" newline output, of /bin/sh
 *	facts			row FACTS, encoded, as read from /proc/self
 *	dotdot FD		errno of openat(FD, "../../.../etc/hostname")
 *	hog MB			in `sessions': "STATUS" of touching that much
 *	fork N			in `sessions': how many children were made
 *	inotify			how many instances were made (kept)
 *	ping			"pong"
 *	quit N			exits with N
 */
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boxfd.h"
#include "facts.h"

static char	out[60000];
static size_t	outlen;

static void
say(const char *s)
{
	outlen = strlen(s);
	memcpy(out, s, outlen);
}

static void
say_num(long n)
{
	outlen = (size_t)snprintf(out, sizeof(out), "%ld", n);
}

/* What a child writes, and "STATUS\n" before it. */
static void
run(void (*fn)(const char *), const char *arg)
{
	char	 buf[50000];
	size_t	 len = 0;
	ssize_t	 n;
	pid_t	 pid;
	int	 p[2], st;

	if (pipe2(p, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
		say("no child");
		return;
	}
	if (pid == 0) {
		(void)setsid();
		(void)dup2(p[1], 1);
		(void)dup2(p[1], 2);
		fn(arg);
		_exit(0);
	}
	(void)close(p[1]);
	while (len < sizeof(buf) &&
	    (n = read(p[0], buf + len, sizeof(buf) - len)) > 0)
		len += (size_t)n;
	(void)close(p[0]);
	(void)waitpid(pid, &st, 0);
	outlen = (size_t)snprintf(out, sizeof(out), "%d\n%.*s", st, (int)len,
	    buf);
}

static void
do_sh(const char *arg)
{
	static char	 path[] = "PATH=/bin:/sbin";
	char		*env[] = { path, NULL };

	(void)execle("/bin/sh", "sh", "-c", arg, NULL, env);
}

static void
do_call(const char *arg)
{
	unsigned long	 v[7] = { 0 };
	char		*end;
	long		 r;
	int		 i;

	for (i = 0; i < 7; i++, arg = end)
		v[i] = strtoul(arg, &end, 0);
	errno = 0;
	r = syscall((long)v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
	(void)dprintf(1, "%ld %d", r, errno);
}

/* Enters `sessions' everywhere: on v2 a session's own directory. */
static int
enter_sessions(void)
{
	int	 fd, dir;

	(void)mkdirat(BOXFD_CGROUP2, "sessions/probe", 0755);
	fd = openat(BOXFD_CGROUP2, "sessions/probe/cgroup.procs",
	    O_WRONLY | O_CLOEXEC);
	if (fd == -1 || write(fd, "0", 1) != 1)
		return -1;
	for (dir = BOXFD_CGROUP1; dir <= BOXFD_LAST; dir++) {
		fd = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (fd == -1)
			return errno == EBADF || errno == ENOTDIR ? 0 : -1;
		if (write(fd, "0", 1) != 1)
			return -1;
	}
	return 0;
}

static void
do_hog(const char *arg)
{
	size_t	 n = strtoul(arg, NULL, 10) << 20, i;
	char	*p;

	if (enter_sessions() == -1)
		_exit(99);
	p = mmap(NULL, n, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; p != MAP_FAILED && i < n; i += 4096)
		p[i] = 1;
}

static void
do_fork(const char *arg)
{
	long	 n = strtol(arg, NULL, 10), i;
	pid_t	 pid;

	if (enter_sessions() == -1)
		_exit(99);
	for (i = 0; i < n; i++) {
		if ((pid = fork()) == -1)
			break;
		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
	}
	(void)dprintf(1, "%ld", i);
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
}

static void
facts(void)
{
	static char		 buf[FACTS_MOUNTS];
	struct row_facts	 f;
	ssize_t			 n;
	int			 dir;

	dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (facts_read(dir, buf, &f) == -1 || (n = wire_encode(
	    &wire_row_facts, &f, (uint8_t *)out, sizeof(out))) == -1)
		say("no facts");
	else
		outlen = (size_t)n;
	(void)close(dir);
}

static void
dotdot(const char *arg)
{
	char	 path[128] = "";
	int	 i;

	for (i = 0; i < 20; i++)
		(void)memcpy(path + 3 * i, "../", 4);
	(void)memcpy(path + 60, "etc/hostname", 13);
	i = openat((int)strtol(arg, NULL, 10), path, O_RDONLY);
	say_num(i == -1 ? errno : 0);
}

static void
answer(char *cmd)
{
	char	*arg = strchr(cmd, ' ');
	long	 n = 0;

	if (arg != NULL)
		*arg++ = '\0';
	if (strcmp(cmd, "call") == 0)
		run(do_call, arg);
	else if (strcmp(cmd, "sh") == 0)
		run(do_sh, arg);
	else if (strcmp(cmd, "hog") == 0)
		run(do_hog, arg);
	else if (strcmp(cmd, "fork") == 0)
		run(do_fork, arg);
	else if (strcmp(cmd, "facts") == 0)
		facts();
	else if (strcmp(cmd, "dotdot") == 0)
		dotdot(arg);
	else if (strcmp(cmd, "inotify") == 0) {
		while (n < 100000 && inotify_init1(IN_CLOEXEC) != -1)
			n++;
		say_num(n);
	} else if (strcmp(cmd, "quit") == 0)
		_exit((int)strtol(arg, NULL, 10));
	else
		say("pong");
}

int
main(void)
{
	struct pollfd	 p = { .fd = BOXFD_CONTROL, .events = POLLIN };
	char		 buf[8192];
	ssize_t		 n;
	int		 c;

	(void)dprintf(2, "probe starts\n");
	for (;;) {
		(void)poll(&p, 1, -1);
		c = accept4(BOXFD_CONTROL, NULL, NULL, SOCK_CLOEXEC);
		if (c == -1)
			continue;
		while ((n = recv(c, buf, sizeof(buf) - 1, 0)) > 0) {
			buf[n] = '\0';
			answer(buf);
			(void)send(c, out, outlen, MSG_NOSIGNAL);
		}
		(void)close(c);
	}
}
