/*
 * proxyd_test: the real proxyd behind its fence, with the test in the places
 * of privd, netd and stored, as these should be and as they should not.
 */
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../proto/daemon.h"
#include "../proto/inject.h"
#include "ulid.h"
#include "xmalloc.h"

#define PROXYD	64804		/* nobody's, for the tests alone */
#define ID1	"01K8Z3V5T7Q9R2M4N6P8S0W1X3"
#define ID2	"01K8Z3V5T7Q9R2M4N6P8S0W1X4"

#if defined(__SANITIZE_ADDRESS__)
#define FILTERED	0	/* test builds have no filter */
#else
#define FILTERED	1
#endif

static struct {
	struct chan	 privd, netd, stored;	/* our ends */
	struct conf	 conf;
	char		 log[64];
	pid_t		 pid;			/* 0: has ended */
} w;

/* ---- the process --------------------------------------------------- */

static void
start(void)
{
	int	conf, exe, p[2], n[2], s[2];

	daemon_conf(&w.conf);
	w.conf.uid_proxyd = w.conf.gid_proxyd = PROXYD;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1)
		(void)str_copy(w.conf.landlock, "none",
		    sizeof(w.conf.landlock));
	daemon_log(w.log, "proxyd-test");
	daemon_pair(p);
	daemon_pair(n);
	daemon_pair(s);
	ck_assert_int_ne(conf = conf_seal(&w.conf), -1);
	ck_assert_int_ne(exe = open(WB_TOP_BUILDDIR "/proxyd/proxyd",
	    O_RDONLY | O_CLOEXEC), -1);
	ck_assert_int_ne(w.pid = fork(), -1);
	if (w.pid == 0)
		daemon_exec(-1, exe, w.log,
		    (const int[]){ p[1], conf, n[1], s[1] }, 4);
	close(exe);
	close(conf);
	close(p[1]);
	close(n[1]);
	close(s[1]);
	chan_init(&w.privd, p[0], A_PRIVD, A_PROXYD, S_INIT);
	chan_init(&w.netd, n[0], A_NETD, A_PROXYD, S_RUN);
	chan_init(&w.stored, s[0], A_STORED, A_PROXYD, S_RUN);
}

static void
go(void)
{
	struct msg_daemon_go	go_ = { .generation = 1 };
	struct msg		m;

	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_DAEMON_READY);
	w.privd.state = S_RUN;
	ck_assert_int_eq(chan_send(&w.privd, MSG_DAEMON_GO, m.rid, &go_, -1),
	    0);
}

/* Its wait status, within ten seconds. */
static int
ended(void)
{
	int		pidfd = (int)syscall(SYS_pidfd_open, w.pid, 0), st;
	struct pollfd	p = { .fd = pidfd, .events = POLLIN };

	ck_assert_msg(poll(&p, 1, 10000) == 1, "it does not end");
	close(pidfd);
	ck_assert_int_eq(waitpid(w.pid, &st, 0), w.pid);
	w.pid = 0;
	return st;
}

static void
failed(const char *why)
{
	int	st = ended();

	ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == 1, "status %x", st);
	ck_assert_msg(daemon_logged(w.log, why), "the log lacks \"%s\"", why);
}

static void
setup(void)
{
	memset(&w, 0, sizeof(w));
	start();
}

static void
teardown(void)
{
	if (w.pid != 0) {
		(void)kill(w.pid, SIGKILL);
		(void)ended();
	}
	chan_close(&w.privd);
	chan_close(&w.netd);
	chan_close(&w.stored);
	if (getenv("DAEMON_LOG") != NULL)
		daemon_show(w.log);
	(void)unlink(w.log);
}

/* It lives, and hears netd. */
static void
alive(void)
{
	struct msg_proxy_end	q = { .id = ID2 };
	struct msg		m;

	ck_assert_uint_eq(daemon_ask(&w.netd, MSG_PROXY_END, &q, -1, &m),
	    MSG_OK);
}

/* ---- a box --------------------------------------------------------- */

static int
sock(int type)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int			fd = socket(AF_INET, type | SOCK_CLOEXEC |
				    SOCK_NONBLOCK, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert(type == SOCK_DGRAM || listen(fd, 8) == 0);
	return fd;
}

/* All its sockets; the last waits for its list.  The rid of that. */
static uint32_t
give_box(void)
{
	static const int	type[] = { SOCK_STREAM, SOCK_DGRAM,
				    SOCK_STREAM };
	struct msg_proxy_box	q = { .id = ID1 };
	struct msg		m;
	uint32_t		rid;
	unsigned int		i;

	for (i = 0; i < 2; i++) {
		q.socket = i;
		ck_assert_uint_eq(daemon_ask(&w.netd, MSG_PROXY_BOX, &q,
		    sock(type[i]), &m), MSG_OK);
	}
	q.socket = 2;
	ck_assert_int_eq(chan_ask(&w.netd, MSG_PROXY_BOX, &q, sock(type[2]),
	    &rid), 0);
	return rid;
}

/* stored is asked for its list; the question. */
static void
asked(struct msg *m)
{
	ck_assert_uint_eq(daemon_next(&w.stored, m), MSG_ALLOW_READ);
	ck_assert_str_eq(m->body.allow_read.id, ID1);
	ck_assert_uint_eq(m->body.allow_read.page, 0);
}

static void
tell_list(uint32_t rid)
{
	struct wire_bin		v = wire_cstr("a.example");
	struct msg_allow_page	p = { .generation = 1,
				    .entries = { &v, 1 } };

	ck_assert_int_eq(chan_send(&w.stored, MSG_ALLOW_PAGE, rid, &p, -1),
	    0);
}

/* netd is told what came of it. */
static unsigned int
answered(uint32_t rid)
{
	struct msg	m;
	unsigned int	type = daemon_next(&w.netd, &m);

	ck_assert_uint_eq(m.rid, rid);
	return type == MSG_ERROR ? (unsigned int)m.body.error.code :
	    type == MSG_OK ? CODE_NONE : CODE_BAD_MESSAGE;
}

/* ---- the fence ------------------------------------------------------ */

/* The first line of a file of /proc/PID with this word has this text. */
static void
proc_is(const char *file, const char *word, const char *want)
{
	char	path[64], line[256] = "";
	FILE	*f;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)w.pid, file);
	ck_assert_ptr_nonnull(f = fopen(path, "re"));
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, word, strlen(word)) == 0)
			break;
	(void)fclose(f);
	ck_assert_msg(strstr(line, want) != NULL, "%s: %s: not %s", file,
	    line, want);
}

static int
same_ns(const char *name)
{
	char		path[64];
	struct stat	a, b;

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	ck_assert_int_eq(stat(path, &a), 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)w.pid,
	    name);
	ck_assert_int_eq(stat(path, &b), 0);
	return a.st_ino == b.st_ino;
}

START_TEST(fence)
{
	char		 uid[64], path[64];
	struct dirent	*e;
	DIR		*d;
	int		 files = 0;

	go();
	alive();
	(void)snprintf(uid, sizeof(uid), "%d\t%d\t%d\t%d", PROXYD, PROXYD,
	    PROXYD, PROXYD);
	proc_is("status", "Uid:", uid);
	proc_is("status", "Gid:", uid);
	proc_is("status", "Groups:", "Groups:\t \n");
	proc_is("status", "CapPrm:", "0000000000000000");
	proc_is("status", "CapBnd:", "0000000000000000");
	proc_is("status", "NoNewPrivs:", "1");
	proc_is("status", "Threads:", "\t1\n");
	proc_is("status", "Seccomp:", FILTERED ? "\t2" : "\t0");
	proc_is("limits", "Max core", "  0  ");
	proc_is("limits", "Max processes", "  0  ");
	ck_assert(same_ns("net") && same_ns("user") && !same_ns("mnt"));
	(void)snprintf(path, sizeof(path), "/proc/%d/root/", (int)w.pid);
	ck_assert_ptr_nonnull(d = opendir(path));
	while ((e = readdir(d)) != NULL)
		files += e->d_name[0] != '.';
	(void)closedir(d);
	ck_assert_int_eq(files, 0);
}
END_TEST

static const struct forbidden {
	const char	*name;
	long		 nr, a, b, c;
} forbidden[] = {
	{ "openat", SYS_openat, AT_FDCWD, 0, 0 },
	{ "bind", SYS_bind, 5, 0, 0 },
	{ "listen", SYS_listen, 5, 1, 0 },
	{ "socket, unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0 },
	{ "socket, netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0 },
	{ "socket, raw", SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP },
	{ "setsockopt, of IP", SYS_setsockopt, 5, IPPROTO_IP, 19 },
	{ "fork", SYS_clone, SIGCHLD, 0, 0 },
	{ "execve", SYS_execve, 0, 0, 0 },
	{ "kill", SYS_kill, 1, 0, 0 },
	{ "setns", SYS_setns, 5, CLONE_NEWNET, 0 },
	{ "unshare", SYS_unshare, CLONE_NEWUSER, 0, 0 },
	{ "ptrace", SYS_ptrace, PTRACE_ATTACH, 1, 0 },
	{ "setresuid", SYS_setresuid, 0, 0, 0 },
	{ "pidfd_getfd", SYS_pidfd_getfd, 0, 0, 0 },
	{ "fcntl, the owner of signals", SYS_fcntl, 5, F_SETOWN, 1 },
	{ "mmap, executable", SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC },
};
#define NFORBIDDEN ((int)(sizeof(forbidden) / sizeof(forbidden[0])))

START_TEST(forbidden_call)
{
	const struct forbidden	*f = &forbidden[_i];
	int			 st;

	if (!INJECT_CAN || !FILTERED)
		return;
	go();
	inject(w.pid, f->nr, f->a, f->b, f->c);
	st = ended();
	ck_assert_msg(WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS,
	    "%s: status %x", f->name, st);
}
END_TEST

/* ---- privd ------------------------------------------------------------ */

START_TEST(stops)
{
	struct msg_daemon_stop	q = { 0 };
	struct msg		m;
	int			st;

	go();
	ck_assert_uint_eq(daemon_ask(&w.privd, MSG_DAEMON_STOP, &q, -1, &m),
	    MSG_OK);
	st = ended();
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}
END_TEST

START_TEST(privd_gone)
{
	int	st;

	go();
	alive();
	chan_close(&w.privd);
	st = ended();
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}
END_TEST

/* netd adopts networks before all are told to go. */
START_TEST(before_go)
{
	struct msg	m;
	uint32_t	rid;

	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_DAEMON_READY);
	alive();
	rid = give_box();
	asked(&m);
	tell_list(m.rid);
	ck_assert_uint_eq(answered(rid), CODE_NONE);
}
END_TEST

/* ---- stored ------------------------------------------------------------ */

/* Who waits is told after ten seconds; what comes later is of no use. */
START_TEST(stored_silent)
{
	struct pollfd	p = { .events = POLLIN };
	struct msg	m;
	uint32_t	rid;

	go();
	rid = give_box();
	asked(&m);
	p.fd = w.netd.fd;
	ck_assert_int_eq(poll(&p, 1, 8000), 0);
	ck_assert_uint_eq(answered(rid), CODE_INTERNAL);
	ck_assert(daemon_logged(w.log, "stored does not answer"));
	tell_list(m.rid);
	alive();
	/* and it can be asked once more */
	rid = give_box();
	asked(&m);
	tell_list(m.rid);
	ck_assert_uint_eq(answered(rid), CODE_NONE);
	/* an answer is one */
	tell_list(m.rid);
	failed("ALLOW_PAGE answers nothing");
}
END_TEST

START_TEST(stored_refuses)
{
	struct msg	m;
	uint32_t	rid;

	go();
	rid = give_box();
	asked(&m);
	ck_assert_int_eq(chan_error(&w.stored, m.rid, CODE_NOT_FOUND, "none"),
	    0);
	ck_assert_uint_eq(answered(rid), CODE_INTERNAL);
	alive();
}
END_TEST

START_TEST(stored_hostile)
{
	struct msg_names_taken	t = { .first = 1, .count = 1 };
	struct msg		m;

	go();
	(void)give_box();
	asked(&m);
	switch (_i) {
	case 0:			/* not the answer that is due */
		ck_assert_int_eq(chan_send(&w.stored, MSG_NAMES_TAKEN, m.rid,
		    &t, -1), 0);
		failed("stored: NAMES_TAKEN answers nothing");
		break;
	case 1:			/* none that was asked for */
		tell_list(m.rid + 1);
		failed("stored: ALLOW_PAGE answers nothing");
		break;
	default:		/* not its word */
		w.stored.self = A_NETD;
		alive();
		ck_assert_int_eq(chan_send(&w.stored, MSG_PROXY_END, 8,
		    &(struct msg_proxy_end){ .id = ID1 }, -1), 0);
		failed("sender may not send this");
	}
}
END_TEST

/* It closed the channel of one that it thinks ill of, and of no other. */
START_TEST(stored_gone)
{
	struct msg	m;
	uint32_t	rid;

	go();
	rid = give_box();
	asked(&m);
	chan_close(&w.stored);
	ck_assert_uint_eq(answered(rid), CODE_INTERNAL);
	failed("stored has closed its channel");
}
END_TEST

/* ---- netd ------------------------------------------------------------- */

/* privd sees to the rest. */
START_TEST(netd_gone)
{
	struct msg_daemon_stop	q = { 0 };
	struct msg		m;

	go();
	(void)give_box();
	asked(&m);
	chan_close(&w.netd);
	tell_list(m.rid);
	ck_assert_uint_eq(daemon_ask(&w.privd, MSG_DAEMON_STOP, &q, -1, &m),
	    MSG_OK);
}
END_TEST

START_TEST(netd_hostile)
{
	struct msg_proxy_box	b = { .id = ID1, .socket = 0 };
	struct msg_net_denied	d = { .id = ID1, .count = 1 };
	struct msg		m;
	int			fd;

	go();
	alive();
	switch (_i) {
	case 0:			/* an answer to nothing */
		ck_assert_int_eq(chan_ok(&w.netd, 5), 0);
		failed("netd: OK answers nothing");
		break;
	case 1:			/* apid's */
		w.netd.peer = A_APID;
		ck_assert_int_eq(chan_send(&w.netd, MSG_NET_DENIED, 0, &d,
		    -1), 0);
		failed("receiver does not take this");
		break;
	case 2:			/* no socket */
		ck_assert_int_ne(fd = open("/dev/null", O_RDONLY), -1);
		ck_assert_int_eq(chan_send(&w.netd, MSG_PROXY_BOX, 5, &b, fd),
		    0);
		failed("message of netd");
		break;
	default:		/* the same twice: that is told, no more */
		ck_assert_uint_eq(daemon_ask(&w.netd, MSG_PROXY_BOX, &b,
		    sock(SOCK_STREAM), &m), MSG_OK);
		ck_assert_uint_eq(daemon_ask(&w.netd, MSG_PROXY_BOX, &b,
		    sock(SOCK_STREAM), &m), MSG_ERROR);
		ck_assert_uint_eq(m.body.error.code, CODE_EXISTS);
		alive();
	}
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("proxyd");
	TCase	*t = tcase_create("proxyd");
	SRunner	*r;
	int	 bad;

	if (geteuid() != 0) {
		printf("skipped: proxyd starts as root\n");
		return 77;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, fence);
	tcase_add_loop_test(t, forbidden_call, 0, NFORBIDDEN);
	tcase_add_test(t, stops);
	tcase_add_test(t, privd_gone);
	tcase_add_test(t, before_go);
	tcase_add_test(t, stored_silent);
	tcase_add_test(t, stored_refuses);
	tcase_add_loop_test(t, stored_hostile, 0, 3);
	tcase_add_test(t, stored_gone);
	tcase_add_test(t, netd_gone);
	tcase_add_loop_test(t, netd_hostile, 0, 4);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	bad = srunner_ntests_failed(r);
	srunner_free(r);
	return bad != 0;
}
