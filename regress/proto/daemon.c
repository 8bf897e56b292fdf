/*
 * daemon.c: see daemon.h.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "xmalloc.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	"/nowhere"
#endif

#define HIGH_FD	40		/* above every descriptor of a daemon */

void
daemon_conf(struct conf *c)
{
	memset(c, 0, sizeof(*c));
#define C_STR(w, f, max, cs, d, doc)	(void)str_copy(c->f, d, (max) + 1);
#define C_U64(w, f, lo, hi, d, doc)	c->f = d;
#define C_BOOL(w, f, d, doc)		c->f = d;
#define X_U64(f, lo, hi)		c->f = lo;
#include "conf.def"
	(void)str_copy(c->log_level, "debug", sizeof(c->log_level));
}

static void
map_write(pid_t pid, const char *file, const char *map)
{
	char		path[64];
	auto_close int	fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	ck_assert_int_ne(fd = open(path, O_WRONLY | O_CLOEXEC), -1);
	ck_assert_int_eq(write(fd, map, strlen(map)), (ssize_t)strlen(map));
}

int
daemon_userns(uid_t owner, const char *map)
{
	char	path[64], b;
	pid_t	pid;
	int	fd, p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(setresuid(-1, owner, -1), 0);
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL,
	    NULL, NULL);
	if (pid == 0) {
		close(p[1]);
		(void)!read(p[0], &b, 1);	/* until it is not needed */
		_exit(0);
	}
	ck_assert_int_eq(setresuid(-1, 0, -1), 0);
	ck_assert_int_ne(pid, -1);
	map_write(pid, "uid_map", map);
	map_write(pid, "gid_map", map);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ck_assert_int_ne(fd = open(path, O_RDONLY | O_CLOEXEC), -1);
	close(p[0]);
	close(p[1]);
	waitpid(pid, NULL, 0);
	return fd;
}

int
daemon_u1(uid_t uid, uint32_t base)
{
	char	map[96];

	(void)snprintf(map, sizeof(map), "0 %u 1\n1 %u 65535\n", uid, base);
	return daemon_userns(0, map);
}

void
daemon_log(char ret[64], const char *name)
{
	int	fd;

	(void)snprintf(ret, 64, "/tmp/%s.XXXXXX", name);
	ck_assert_int_ne(fd = mkstemp(ret), -1);
	close(fd);
}

int
daemon_logged(const char *log, const char *text)
{
	static char	buf[1 << 20];
	auto_close int	fd = open(log, O_RDONLY | O_CLOEXEC);
	ssize_t		n = read(fd, buf, sizeof(buf) - 1);

	ck_assert_int_ge(n, 0);
	buf[n] = '\0';
	return strstr(buf, text) != NULL;
}

void
daemon_show(const char *log)
{
	char	cmd[96];

	(void)snprintf(cmd, sizeof(cmd), "cat %s >&2", log);
	(void)!system(cmd);
}

void
daemon_pair(int ret[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    ret), 0);
}

void
daemon_exec(int u1, int exe, const char *log, const int *fd, int n)
{
	char	 arg0[] = "daemon";
	char	*argv[] = { arg0, NULL }, *envp[] = { NULL };
	int	 high[8], err, null, i;

	if ((err = open(log, O_WRONLY | O_APPEND)) == -1 ||
	    (null = open("/dev/null", O_RDWR)) == -1)
		_exit(90);
	if (u1 != -1 && (setgroups(0, NULL) == -1 ||
	    setns(u1, CLONE_NEWUSER) == -1 || setresgid(0, 0, 0) == -1 ||
	    setresuid(0, 0, 0) == -1))
		_exit(91);
	exe = fcntl(exe, F_DUPFD_CLOEXEC, HIGH_FD);
	err = fcntl(err, F_DUPFD, HIGH_FD);
	for (i = 0; i < n; i++)
		high[i] = fcntl(fd[i], F_DUPFD, HIGH_FD);
	if (dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(err, 2) == -1)
		_exit(92);
	for (i = 0; i < n; i++)
		if (dup2(high[i], 3 + i) == -1)
			_exit(93);
	if (dup3(exe, 3 + n, O_CLOEXEC) == -1)
		_exit(94);
	(void)syscall(SYS_close_range, 4 + n, ~0U, 0);
	/* by descriptor: the build tree may lie where others cannot go */
	fexecve(3 + n, argv, envp);
	_exit(95);
}

unsigned int
daemon_next(struct chan *c, struct msg *ret)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };
	int		r;

	for (;;) {
		r = chan_recv(c, ret);
		if (r == 1)
			return ret->row->type;
		if (r == -1 && errno == ECONNRESET)
			return 0;
		ck_assert_msg(r == 0, "%s", c->why);
		ck_assert_msg(poll(&p, 1, 10000) == 1, "no answer in 10 s");
	}
}

unsigned int
daemon_ask(struct chan *c, unsigned int type, const void *body, int fd,
    struct msg *ret)
{
	uint32_t	rid;

	ck_assert_msg(chan_ask(c, type, body, fd, &rid) == 0, "%s", c->why);
	if (daemon_next(c, ret) == 0)
		return 0;
	ck_assert_uint_eq(ret->rid, rid);
	if (ret->row->type == MSG_ERROR && getenv("DAEMON_LOG") != NULL)
		fprintf(stderr, "answer: %s: %s\n",
		    code_name((unsigned int)ret->body.error.code),
		    ret->body.error.detail);
	return ret->row->type;
}
