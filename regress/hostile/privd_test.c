/*
 * privd_test: the real privd against daemons that the test plays, well and
 * badly, and against its own sudden death.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../proto/inject.h"
#include "fds.h"
#include "server.h"
#include "privd_test.h"

struct rig	r;

void
setup(void)
{
	rig_make(&r);
}

void
teardown(void)
{
	rig_free(&r);
}

unsigned int
error_of(const struct msg *m)
{
	ck_assert_int_eq(m->row->type, MSG_ERROR);
	return (unsigned int)m->body.error.code;
}

unsigned int
listed(char ids[4][27], int alive[4])
{
	struct msg_box_list	l = { .after = "" };
	struct msg		m;
	unsigned int		i, n;

	ck_assert_int_eq(rig_ask(&r, MSG_BOX_LIST, &l, &m), MSG_BOX_LIST_IS);
	n = (unsigned int)m.body.box_list_is.ids.n;
	ck_assert_uint_le(n, 4);
	for (i = 0; i < n; i++) {
		memcpy(ids[i], m.body.box_list_is.ids.v[i].data, 26);
		ids[i][26] = '\0';
		alive[i] = m.body.box_list_is.alive.data[i];
	}
	return n;
}

void
all_gone(void)
{
	char	ids[4][27];
	int	alive[4], i;

	for (i = 0; i < 6000 && listed(ids, alive) != 0; i++)
		(void)poll(NULL, 0, 10);
	ck_assert_uint_eq(listed(ids, alive), 0);
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}

void
kill_box(const char *id)
{
	struct msg	m;
	BODY(k, box_kill, id);

	ck_assert_int_eq(rig_ask(&r, MSG_BOX_KILL, &k, &m), MSG_OK);
}

void
purge_box(const char *id, int net)
{
	struct msg	m;
	BODY(p, box_purge, id);

	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_PURGE, &p, -1,
	    NULL), 0);
	if (net) {
		ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_FREE);
		ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	}
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert(!rig_file(&r, "sandboxes/%s", id));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/unified/%s/%s", r.cgroup, id));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/memory/%s/%s", r.cgroup, id));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/%s/%s", r.cgroup, id));
}

/* ---- the set ------------------------------------------------------------ */

START_TEST(start_order)
{
	struct msg_daemon_ready	ready = { .version = "fake" };
	struct msg		m;
	char			buf[64];

	rig_privd(&r);
	rig_set(&r);
	ck_assert_int_eq(r.d[R_NETD].nother, 3);
	ck_assert_int_eq(r.d[R_STORED].nother, 2);
	ck_assert_int_eq(r.d[R_APID].nother, 3);
	ck_assert_int_eq(r.d[R_UPLINKD].nother, 1);
	ck_assert_int_eq(r.d[R_PROXYD].nother, 2);
	/* nobody is told to go before the last is ready */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_DAEMON_READY, &ready,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_LISTENER);
	ck_assert_int_eq(m.body.daemon_listener.kind, 0);
	(void)close(m.fd);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_LISTENER);
	ck_assert_int_eq(m.body.daemon_listener.kind, 1);
	(void)close(m.fd);
	ck_assert_int_eq(chan_ask(&r.d[R_STORED].chan, MSG_DAEMON_READY,
	    &ready, -1, NULL), 0);
	ck_assert_int_eq(chan_ask(&r.d[R_UPLINKD].chan, MSG_DAEMON_READY,
	    &ready, -1, NULL), 0);
	ck_assert_int_eq(chan_ask(&r.d[R_PROXYD].chan, MSG_DAEMON_READY,
	    &ready, -1, NULL), 0);
	ck_assert(rig_quiet(&r, R_APID) && rig_quiet(&r, R_STORED));
	ck_assert_int_eq(chan_ask(&r.d[R_NETD].chan, MSG_DAEMON_READY, &ready,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_DAEMON_GO);
	ck_assert_uint_eq(m.body.daemon_go.generation, 1);
	ck_assert_int_eq(rig_next(&r, R_STORED, &m), MSG_DAEMON_GO);
	ck_assert_int_eq(rig_next(&r, R_PROXYD, &m), MSG_DAEMON_GO);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_GO);
	ck_assert_int_eq(rig_next(&r, R_UPLINKD, &m), MSG_DAEMON_GO);

	ck_assert_int_eq(recv(r.notify, buf, sizeof(buf), 0), 7);
	ck_assert_mem_eq(buf, "READY=1", 7);
	ck_assert_int_eq(read(r.ready, buf, sizeof(buf)), 1);
	ck_assert_int_eq(buf[0], '\n');
}
END_TEST

START_TEST(fence)
{
	pid_t	maker;

	rig_start(&r);
	maker = rig_maker(&r);
#ifdef __SANITIZE_ADDRESS__		/* test builds have no filter */
	ck_assert_uint_eq(rig_status(r.pid, "Seccomp", 10), 0);
#else
	ck_assert_uint_eq(rig_status(r.pid, "Seccomp", 10), 2);
#endif
	ck_assert_uint_eq(rig_status(r.pid, "NoNewPrivs", 10), 1);
	ck_assert_uint_eq(rig_status(r.pid, "CapPrm", 16), 0);
	ck_assert_uint_eq(rig_status(r.pid, "CapBnd", 16), 0);
	ck_assert_uint_eq(rig_status(maker, "Seccomp", 10), 0);
	ck_assert_uint_eq(rig_status(maker, "NoNewPrivs", 10), 1);
	ck_assert_uint_eq(rig_status(maker, "CapBnd", 16), 0x882c01fb);
	/* netd is nobody on the host */
	ck_assert_uint_eq(rig_status(r.d[R_NETD].pid, "Uid", 10), 64001);
}
END_TEST

static const struct forbidden {
	const char	*name;
	long		 nr, a, b, c;
} forbidden[] = {
	{ "fork", SYS_clone, SIGCHLD, 0, 0 },
	{ "openat", SYS_openat, AT_FDCWD, 0, 0 },
	{ "kill", SYS_kill, 1, 0, 0 },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, 0, 0, 0 },
	{ "unlinkat", SYS_unlinkat, AT_FDCWD, 0, 0 },
	{ "execve", SYS_execve, 0, 0, 0 },
	{ "mount", SYS_mount, 0, 0, 0 },
	{ "unshare", SYS_unshare, CLONE_NEWNET, 0, 0 },
	{ "setns", SYS_setns, 0, 0, 0 },
	{ "ptrace", SYS_ptrace, PTRACE_ATTACH, 1, 0 },
	{ "socket", SYS_socket, AF_INET, SOCK_STREAM, 0 },
	{ "connect", SYS_connect, 0, 0, 0 },
	{ "setresuid", SYS_setresuid, 1, 1, 1 },
	{ "chroot", SYS_chroot, 0, 0, 0 },
	{ "ioctl", SYS_ioctl, 0, TIOCSTI, 0 },
	{ "fcntl, the owner of signals", SYS_fcntl, 1, F_SETOWN, 1 },
	{ "fcntl, which signal", SYS_fcntl, 1, F_SETSIG, SIGKILL },
	{ "process_vm_writev", SYS_process_vm_writev, 1, 0, 0 },
	{ "mmap, executable", SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC },
};
#define NFORBIDDEN ((int)(sizeof(forbidden) / sizeof(forbidden[0])))

/* The call is made in privd's place. */
START_TEST(forbidden_call)
{
#if INJECT_CAN && !defined(__SANITIZE_ADDRESS__)
	const struct forbidden	*f = &forbidden[_i];
	int			 st;

	rig_start(&r);
	inject(r.pid, f->nr, f->a, f->b, f->c);
	st = rig_wait(&r);
	ck_assert_msg(WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS,
	    "%s: status %x", f->name, st);
	/* and the next one serves */
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 0);
#endif
}
END_TEST

/* Whatever kills one, the others are ended and a new set comes. */
START_TEST(all_for_one)
{
	struct pollfd	p;
	int		i;
	pid_t		old[R_N];

	rig_start(&r);
	for (i = 0; i < R_N; i++)
		old[i] = r.d[i].pid;
	if (_i < R_N)
		(void)kill(r.d[_i].pid, SIGKILL);
	else
		ck_assert_int_eq(write(r.d[_i - R_N].sock, "x", 1), 1);
	for (i = 0; i < R_N; i++) {	/* channels end; fakes are told */
		p.fd = r.d[i].chan.fd;
		p.events = POLLIN;
		ck_assert_int_eq(poll(&p, 1, 60000), 1);
		fd_close(&r.d[i].sock);
	}
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 0);
	for (i = 0; i < R_N; i++)
		ck_assert_int_ne(r.d[i].pid, old[i]);
}
END_TEST

START_TEST(gives_up)
{
	unsigned int	i;

	r.conf.restart_limit = 2;
	rig_privd(&r);
	for (i = 0; i < 3; i++) {
		rig_set(&r);
		fd_close(&r.d[R_STORED].sock);	/* exits */
		fd_close(&r.d[R_NETD].sock);
		fd_close(&r.d[R_APID].sock);
	}
	ck_assert_int_eq(WEXITSTATUS(rig_wait(&r)), 1);
	ck_assert(rig_logged(&r, "giving up; 0 boxes run on"));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/unified/%s", r.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/%s", r.cgroup));
}
END_TEST

void
stopped(void)
{
	struct msg_event_appended	done = { .seq = 1 };
	struct msg			m;
	int				st;

	ck_assert_int_eq(rig_next(&r, R_STORED, &m), MSG_EVENT_APPEND);
	ck_assert_uint_eq(m.body.event_append.type, EVENT_SERVER_STOPPED);
	ck_assert_uint_eq(m.body.event_append.durable, 1);
	ck_assert(rig_quiet(&r, R_NETD));
	ck_assert_int_eq(chan_send(&r.d[R_STORED].chan, MSG_EVENT_APPENDED,
	    m.rid, &done, -1), 0);
	ck_assert_int_eq(rig_next(&r, R_STORED, &m), MSG_DAEMON_STOP);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_DAEMON_STOP);
	ck_assert_int_eq(rig_next(&r, R_UPLINKD, &m), MSG_DAEMON_STOP);
	ck_assert_int_eq(rig_next(&r, R_PROXYD, &m), MSG_DAEMON_STOP);
	rig_hangup(&r);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	ck_assert(!rig_file(&r, "run/api.sock"));
}

/* SIGTERM and what each daemon has to see, in this order. */
static void
stop(void)
{
	struct msg	m;

	ck_assert_int_eq(kill(r.pid, SIGTERM), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_STOP);
	ck_assert(rig_quiet(&r, R_STORED) && rig_quiet(&r, R_NETD));
	ck_assert_int_eq(chan_ok(&r.d[R_APID].chan, m.rid), 0);
	chan_close(&r.d[R_APID].chan);
	fd_close(&r.d[R_APID].sock);
	stopped();
}

/* What the reader sends after SIGHUP. */
static void
fresh(void)
{
	struct server_conf	sc;
	int			fds[READER_FDS];

	server_fill(&r.conf, &sc);
	ck_assert_int_ne(fds[READER_SERVER] = server_seal("server", &sc,
	    sizeof(sc)), -1);
	ck_assert_int_ne(fds[READER_CONF] = conf_seal(&r.conf), -1);
	ck_assert_int_ne(fds[READER_TOKEN] = server_seal("token", "another",
	    7), -1);
	ck_assert_int_eq(fds_send(r.reader, "", 1, fds, READER_FDS, 0), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(fds[2]);
}

START_TEST(reload)
{
	struct msg_box_create	c = { .id = ID1, .name = "a",
				    .rootfs = "minimal", .pids = 500 };
	struct msg		m;
	char			b[8];
	int			k;

	rig_start(&r);
	ck_assert_int_eq(kill(r.pid, SIGHUP), 0);
	ck_assert_int_eq(recv(r.reader, b, sizeof(b), 0), 1);
	for (k = 0; k < R_N; k++)
		ck_assert(rig_quiet(&r, k));	/* not before it has come */
	r.conf.max_pids = r.conf.default_pids = 499;
	fresh();
	for (k = 0; k < R_N; k++) {
		ck_assert_int_eq(rig_next(&r, k, &m), MSG_DAEMON_RELOAD);
		ck_assert_ptr_nonnull(conf_read(m.fd));
		ck_assert_uint_eq(conf_read(m.fd)->max_pids, 499);
		(void)close(m.fd);
	}
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_KEYS);
	ck_assert_int_eq(pread(m.fd, b, sizeof(b), 0), 7);
	ck_assert_int_eq(memcmp(b, "another", 7), 0);
	(void)close(m.fd);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_CREATE, &c, &m), MSG_ERROR);
	ck_assert_uint_eq(m.body.error.code, CODE_LIMIT_ABOVE_CEILING);
	/* one that is of no use, or gone, ends nothing */
	ck_assert_int_eq(send(r.reader, "xx", 2, 0), 2);
	ck_assert(rig_quiet(&r, R_APID));
	ck_assert_int_eq(kill(r.pid, SIGHUP), 0);
	stop();
	ck_assert(rig_logged(&r, "the reader of the configuration has ended"));
	ck_assert(rig_logged(&r, "nobody is there who reads the file"));
}
END_TEST

static int
descriptors(void)
{
	char		 path[64];
	struct dirent	*e;
	DIR		*d;
	int		 n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)r.pid);
	ck_assert_ptr_nonnull(d = opendir(path));
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

/* More than it has read yet is no reason to think that nobody reads. */
START_TEST(reader_full)
{
	const int	few = 1;
	int		at, fd, i, n, most;

	rig_start(&r);
	ck_assert_int_ne(at = (int)syscall(SYS_pidfd_open, r.pid, 0), -1);
	fd = (int)syscall(SYS_pidfd_getfd, at, PRIVD_FD_READER, 0);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few,
	    sizeof(few)), 0);
	for (most = 0; send(fd, "", 1, MSG_DONTWAIT) == 1; most++)
		;
	ck_assert_int_gt(most, 0);
	ck_assert_int_eq(kill(r.pid, SIGHUP), 0);
	for (i = 0; i < 3; i++)		/* a turn of its loop each */
		ck_assert_int_eq(listed(NULL, NULL), 0);
	for (n = 0; recv(r.reader, &i, 1, MSG_DONTWAIT) == 1; n++)
		;
	ck_assert_int_eq(n, most);
	ck_assert(!rig_logged(&r, "nobody is there who reads"));
	/* and it goes on */
	ck_assert_int_eq(kill(r.pid, SIGHUP), 0);
	ck_assert_int_eq(recv(r.reader, &i, 1, 0), 1);
	(void)close(fd);
	(void)close(at);
	stop();
}
END_TEST

/* What comes with a packet that is none of the reader's does not stay. */
START_TEST(reader_odd)
{
	const int	two[2] = { 0, 1 };
	int		n;

	rig_start(&r);
	n = descriptors();
	ck_assert_int_eq(fds_send(r.reader, "", 1, two, 2, 0), 0);
	while (!rig_logged(&r, "the reader of the configuration has ended"))
		(void)poll(NULL, 0, 10);
	ck_assert_int_eq(descriptors(), n - 1);		/* its own went */
	stop();
}
END_TEST

/* What could not start leaves nothing of what it had made. */
START_TEST(start_fails)
{
	char	sums[100];

	(void)snprintf(sums, sizeof(sums), "%s/runtime/SHA256SUMS", r.dir);
	ck_assert_int_eq(unlink(sums), 0);
	rig_privd(&r);
	ck_assert_int_eq(WEXITSTATUS(rig_wait(&r)), 1);
	ck_assert(rig_logged(&r, "runtime/SHA256SUMS: No such file"));
	ck_assert(!rig_file(&r, "run/api.sock"));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/unified/%s", r.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/memory/%s", r.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/%s", r.cgroup));
}
END_TEST

/* There is news for an apid that has just gone: the stop goes on. */
START_TEST(stop_with_news)
{
	struct msg	m;
	pid_t		pid1;
	int		fd, st;
	BODY(f, box_facts, ID1);

	rig_start(&r);
	fd = rig_box(&r, ID1, 1);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &f, &m),
	    MSG_BOX_FACTS_ARE);
	pid1 = (pid_t)m.body.box_facts_are.host_pid;
	ck_assert_int_eq(kill(r.pid, SIGTERM), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_STOP);
	/* privd finds both when it looks again, first the box's end */
	ck_assert_int_eq(kill(r.pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(r.pid, &st, WUNTRACED), r.pid);
	ck_assert_int_eq(send(fd, "q", 1, 0), 1);
	while (kill(pid1, 0) == 0)
		(void)poll(NULL, 0, 10);
	chan_close(&r.d[R_APID].chan);
	fd_close(&r.d[R_APID].sock);
	ck_assert_int_eq(kill(r.pid, SIGCONT), 0);
	stopped();
	(void)close(fd);
}
END_TEST

START_TEST(stop_order)
{
	char	ids[4][27];
	int	alive[4];

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	stop();
	ck_assert(rig_logged(&r, "1 box keeps running"));
	/* and it does */
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_uint_eq(listed(ids, alive), 1);
	ck_assert_int_eq(alive[0], 1);
	kill_box(ID1);
	purge_box(ID1, 1);
	stop();
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/unified/%s", r.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/memory/%s", r.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/%s", r.cgroup));
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("privd");
	TCase	*set = tcase_create("set");
	SRunner	*sr;
	int	 failed;

	if (getuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_add_checked_fixture(set, setup, teardown);
	tcase_set_timeout(set, 240);
	tcase_add_test(set, start_order);
	tcase_add_test(set, fence);
	tcase_add_loop_test(set, forbidden_call, 0, NFORBIDDEN);
	tcase_add_loop_test(set, all_for_one, 0, 2 * R_N);
	tcase_add_test(set, gives_up);
	tcase_add_test(set, stop_order);
	tcase_add_test(set, stop_with_news);
	tcase_add_test(set, reload);
	tcase_add_test(set, reader_full);
	tcase_add_test(set, reader_odd);
	tcase_add_test(set, start_fails);
	suite_add_tcase(s, set);
	suite_add_tcase(s, box_case());
	suite_add_tcase(s, quarantine_case());
	suite_add_tcase(s, hostile_case());
	suite_add_tcase(s, killed_case());
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	rig_sweep();
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
