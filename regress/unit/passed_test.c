/*
 * passed_test: sockets that a service manager passes, LISTEN_FDS, and what of
 * them is refused.  Each case is a child of its own, whose descriptors from 3
 * on are what the case says; what it prints and exits with is looked at.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Before check.h, which has a macro fail. */
#include "../../workbox/host.h"
#include "xmalloc.h"

#include <check.h>

#define PATH	"./passed_test.sock"
#define PLAIN	0
#define V6BOTH	1
#define SILENT	2	/* does not listen */
#define DGRAM	3
#define OPEN	4	/* any user may connect */

/* In a child check's own assertions would write to descriptors of the case. */
#define must(c)	((c) ? (void)0 : _exit(99))

static union {
	struct sockaddr		sa;
	struct sockaddr_in	in4;
	struct sockaddr_in6	in6;
	struct sockaddr_un	un;
} at;

static socklen_t
address(const char *s)
{
	struct sockaddr_storage	sa = { 0 };

	memset(&at, 0, sizeof at);
	if (*s == '/' || *s == '.' || *s == '@') {
		at.un.sun_family = AF_UNIX;
		(void)str_copy(at.un.sun_path, s, sizeof at.un.sun_path);
		if (*s == '@')
			at.un.sun_path[0] = '\0';
		return sizeof at.un;
	}
	must(config_listen(s, &sa) == 0);
	memcpy(&at, &sa, sizeof at.in6);
	return sa.ss_family == AF_INET ? sizeof at.in4 : sizeof at.in6;
}

/* Puts what a manager would have opened at fd. */
static void
put(int fd, const char *s, int how)
{
	socklen_t	len = address(s);
	int		on = how != V6BOTH, one = 1, k;

	k = socket(at.sa.sa_family, how == DGRAM ? SOCK_DGRAM : SOCK_STREAM,
	    0);
	must(k != -1);
	if (at.sa.sa_family == AF_INET6)
		must(setsockopt(k, IPPROTO_IPV6, IPV6_V6ONLY, &on,
		    sizeof on) == 0);
	if (at.sa.sa_family != AF_UNIX)
		must(setsockopt(k, SOL_SOCKET, SO_REUSEADDR, &one,
		    sizeof one) == 0);
	(void)unlink(PATH);		/* of the case before */
	must(bind(k, &at.sa, len) == 0);
	if (how != SILENT && how != DGRAM)
		must(listen(k, 1) == 0);
	if (how == OPEN)
		must(chmod(s, 0662) == 0);
	if (k != fd) {
		must(dup2(k, fd) == fd);
		(void)close(k);
	}
}

static struct start	st;
static int		err;		/* its stderr */

/* A child in which descriptors from 3 on are free; 0 in it. */
static pid_t
child(void)
{
	pid_t	pid;
	int	p[2];

	st = (struct start){ .addr = { "127.0.0.1:18811", "[::1]:18811" },
	    .naddr = 2 };
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0) {
		must(dup2(p[1], 2) == 2 && close_range(3, ~0U, 0) == 0);
		(void)alarm(20);
	} else {
		(void)close(p[1]);
		err = p[0];
	}
	return pid;
}

static void
words(const char *n, long pid)
{
	char	s[24];

	(void)snprintf(s, sizeof s, "%ld", pid);
	must(setenv("LISTEN_FDS", n, 1) == 0 &&
	    setenv("LISTEN_PID", s, 1) == 0);
}

/* How the child ended, and that it said no more than this. */
static void
ended(pid_t pid, int code, const char *said)
{
	char	buf[1024] = "";
	size_t	n = 0;
	ssize_t	r;
	int	status;

	while ((r = read(err, buf + n, sizeof buf - 1 - n)) > 0)
		n += (size_t)r;
	(void)close(err);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (said == NULL)
		ck_assert_str_eq(buf, "");
	else
		ck_assert_msg(strstr(buf, said) != NULL, "%s", buf);
	ck_assert_msg(WIFEXITED(status), "%d: %s", status, buf);
	ck_assert_int_eq(WEXITSTATUS(status), code);
}

/* Takes what there is and holds it against st; the child's end. */
static __attribute__((noreturn)) void
take(int ready)
{
	int	rc = passed_take(ready);

	_exit(rc != 0 ? rc : passed_agree(&st, PATH));
}

static int
open_fds(void)
{
	int	fd, n = 0;

	for (fd = 3; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

/* ---- what is taken ----------------------------------------------------- */

START_TEST(taken)
{
	struct sockaddr_storage	sa = { 0 };
	pid_t			pid;
	int			a, b;

	if ((pid = child()) == 0) {
		put(3, "127.0.0.1:18811", PLAIN);
		put(4, PATH, PLAIN);
		words("2", (long)getpid());
		if (passed_take(-1) != 0 || passed_agree(&st, PATH) != 0)
			_exit(1);
		/* they have moved, and nothing is left where they were */
		if (open_fds() != 2 || fcntl(3, F_GETFD) != -1 ||
		    fcntl(4, F_GETFD) != -1)
			_exit(2);
		(void)config_listen("[::1]:18811", &sa);
		if (passed_tcp(&sa) != -1 || passed_unix("/other") != -1)
			_exit(3);
		memset(&sa, 0, sizeof sa);
		(void)config_listen("127.0.0.1:18811", &sa);
		if ((a = passed_tcp(&sa)) == -1 || passed_tcp(&sa) != -1)
			_exit(4);
		if ((b = passed_unix(PATH)) == -1 || passed_unix(PATH) != -1)
			_exit(5);
		if (fcntl(a, F_GETFD) != FD_CLOEXEC ||
		    fcntl(b, F_GETFD) != FD_CLOEXEC ||
		    (fcntl(a, F_GETFL) & O_NONBLOCK) == 0)
			_exit(6);
		_exit(getenv("LISTEN_FDS") == NULL &&
		    getenv("LISTEN_PID") == NULL ? 0 : 7);
	}
	ended(pid, 0, NULL);
}
END_TEST

START_TEST(others)
{
	pid_t	pid;

	/* of another process: not ours to touch */
	if ((pid = child()) == 0) {
		put(3, "127.0.0.1:18812", PLAIN);
		words("1", (long)getppid());
		if (passed_take(3) != 0 || passed_agree(&st, PATH) != 0)
			_exit(1);
		_exit(fcntl(3, F_GETFD) != -1 ? 0 : 2);
	}
	ended(pid, 0, NULL);
	if ((pid = child()) == 0) {
		(void)unsetenv("LISTEN_FDS");
		take(-1);
	}
	ended(pid, 0, NULL);
}
END_TEST

/* ---- what is refused --------------------------------------------------- */

START_TEST(kinds)
{
	static const struct {
		const char	*at, *said;
		int		 how;
	} c[] = {
		{ "127.0.0.1:18811", "descriptor 3: expected a stream",
		    SILENT },
		{ PATH, "descriptor 3: expected a stream", DGRAM },
		{ "127.0.0.1:18811", "descriptor 3: expected a stream", DGRAM },
		{ "127.0.0.1:18812", "LISTEN_FDS: 127.0.0.1:18812: expected "
		    "what the configuration", PLAIN },
		{ "127.0.0.2:18811", "LISTEN_FDS: 127.0.0.2:18811: expected "
		    "what the configuration", PLAIN },
		{ "[::1]:18812", "LISTEN_FDS: [::1]:18812: expected", PLAIN },
		{ "[::]:18811", "expected a socket of IPv6 alone", V6BOTH },
		{ "./passed_test.other", "LISTEN_FDS: ./passed_test.other: "
		    "expected what the configuration", PLAIN },
		{ "@abstract", "a socket without a path: expected", PLAIN },
		{ PATH, "LISTEN_FDS: " PATH ": expected a socket to which no "
		    "other user can connect", OPEN },
	};
	pid_t		pid;

	(void)unlink("passed_test.other");
	if ((pid = child()) == 0) {
		put(3, c[_i].at, c[_i].how);
		words("1", (long)getpid());
		take(-1);
	}
	ended(pid, EXIT_OURS, c[_i].said);
	(void)unlink("passed_test.other");
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		const char	*n, *said;
	} c[] = {
		{ "0", "LISTEN_FDS: expected the number" },
		{ "-1", "LISTEN_FDS: expected the number" },
		{ "18", "1 to 17, not \"18\"" },
		{ "1x", "LISTEN_FDS: expected the number" },
		{ "", "LISTEN_FDS: expected the number" },
		{ "2", "LISTEN_FDS: descriptor 4: Bad file descriptor" },
	};
	pid_t		pid;

	if ((pid = child()) == 0) {
		put(3, "127.0.0.1:18811", PLAIN);
		words(c[_i].n, (long)getpid());
		take(-1);
	}
	ended(pid, EXIT_OURS, c[_i].said);
}
END_TEST

START_TEST(twice)
{
	pid_t	pid;

	if ((pid = child()) == 0) {
		put(3, "127.0.0.1:18811", PLAIN);
		(void)dup2(3, 4);
		words("2", (long)getpid());
		take(-1);
	}
	ended(pid, EXIT_OURS, "127.0.0.1:18811: expected it once");
	/* the ready descriptor is the caller's, not a manager's */
	if ((pid = child()) == 0) {
		put(3, "127.0.0.1:18811", PLAIN);
		words("1", (long)getpid());
		take(3);
	}
	ended(pid, EXIT_OURS, "--ready-fd: expected none of LISTEN_FDS");
	if ((pid = child()) == 0) {
		words("1", 1);
		(void)setenv("LISTEN_PID", "1 ", 1);
		take(-1);
	}
	ended(pid, EXIT_OURS, "LISTEN_PID: expected a process id");
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("passed");
	TCase	*t = tcase_create("passed");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, taken);
	tcase_add_test(t, others);
	tcase_add_loop_test(t, kinds, 0, 10);
	tcase_add_loop_test(t, numbers, 0, 6);
	tcase_add_test(t, twice);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	(void)unlink(PATH);
	return failed > 0;
}
