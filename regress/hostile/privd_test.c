/*
 * privd_test: the real privd against daemons that the test plays, well and
 * badly, and against its own sudden death.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fds.h"
#include "privd_rig.h"
#include "xmalloc.h"

#define ID1	"01K8AAAAAAAAAAAAAAAAAAAAA1"
#define ID2	"01K8AAAAAAAAAAAAAAAAAAAAA2"
#define ID3	"01K8AAAAAAAAAAAAAAAAAAAAA3"

static struct rig	r;

static void
setup(void)
{
	rig_make(&r);
}

static void
teardown(void)
{
	rig_free(&r);
}

/* Bodies that are an id alone. */
#define BODY(var, s, ident)						\
	struct msg_##s	var;						\
	memset(&var, 0, sizeof(var));					\
	(void)str_copy(var.id, ident, sizeof(var.id))

static unsigned int
error_of(const struct msg *m)
{
	ck_assert_int_eq(m->row->type, MSG_ERROR);
	return (unsigned int)m->body.error.code;
}

static unsigned int
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

/* What nobody asks for again goes away by itself. */
static void
all_gone(void)
{
	char	ids[4][27];
	int	alive[4], i;

	for (i = 0; i < 6000 && listed(ids, alive) != 0; i++)
		(void)poll(NULL, 0, 10);
	ck_assert_uint_eq(listed(ids, alive), 0);
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}

static void
kill_box(const char *id)
{
	struct msg	m;
	BODY(k, box_kill, id);

	ck_assert_int_eq(rig_ask(&r, MSG_BOX_KILL, &k, &m), MSG_OK);
}

/* With netd's part, when it knows the box. */
static void
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
	ck_assert_int_eq(r.d[R_NETD].nother, 1);
	ck_assert_int_eq(r.d[R_STORED].nother, 1);
	ck_assert_int_eq(r.d[R_APID].nother, 3);
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
	ck_assert(rig_quiet(&r, R_APID) && rig_quiet(&r, R_STORED));
	ck_assert_int_eq(chan_ask(&r.d[R_NETD].chan, MSG_DAEMON_READY, &ready,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_DAEMON_GO);
	ck_assert_uint_eq(m.body.daemon_go.generation, 1);
	ck_assert_int_eq(rig_next(&r, R_STORED, &m), MSG_DAEMON_GO);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_GO);

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
	{ "unlink", SYS_unlink, 0, 0, 0 },
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

/* The call is made in privd's place: it waits in a system call, whose
 * instruction is gone through again with other registers. */
START_TEST(forbidden_call)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
	const struct forbidden	*f = &forbidden[_i];
	struct user_regs_struct	 regs;
	int			 st;

	rig_start(&r);
	ck_assert_int_eq(ptrace(PTRACE_ATTACH, r.pid, NULL, NULL), 0);
	ck_assert_int_eq(waitpid(r.pid, &st, __WALL), r.pid);
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, r.pid, NULL, &regs), 0);
	ck_assert_int_ne((long)regs.orig_rax, -1);
	regs.rip -= 2;
	regs.rax = (unsigned long long)f->nr;
	regs.orig_rax = (unsigned long long)-1;
	regs.rdi = (unsigned long long)f->a;
	regs.rsi = (unsigned long long)f->b;
	regs.rdx = (unsigned long long)f->c;
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, r.pid, NULL, &regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_CONT, r.pid, NULL, NULL), 0);
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

/* Whatever kills one, the other two are ended and a new set comes. */
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
	ck_assert(rig_logged(&r, "giving up"));
}
END_TEST

/* After SIGTERM: what stored and netd have to see once apid has ended. */
static void
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

/* ---- one box --------------------------------------------------------------- */

START_TEST(life)
{
	struct msg	m;
	char		ids[4][27];
	int		alive[4], fd;
	BODY(f, box_facts, ID1);
	BODY(h, box_health, ID1);
	BODY(t, box_log_tail, ID1);
	struct msg_box_log_append	a = { .id = ID1, .line = "from apid" };

	rig_start(&r);
	fd = rig_box(&r, ID1, 1);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &f, &m),
	    MSG_BOX_FACTS_ARE);
	ck_assert_str_eq(m.body.box_facts_are.verdict, "");
	ck_assert_str_eq(m.body.box_facts_are.ruleset, "opened");
	ck_assert_uint_eq(m.body.box_facts_are.memory_bytes, 2147483648);
	ck_assert_uint_eq(m.body.box_facts_are.pids, 4096);
	ck_assert_uint_eq(m.body.box_facts_are.seccomp_filters, 2);
	ck_assert_str_eq(m.body.box_facts_are.uid_map, "0 1879048192 65536");
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_HEALTH, &h, &m),
	    MSG_BOX_HEALTH_IS);
	ck_assert_uint_eq(m.body.box_health_is.health, HEALTHY);
	ck_assert_str_eq(m.body.box_health_is.part, "");
	ck_assert_uint_eq(m.body.box_health_is.pids, 1);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_LOG_APPEND, &a, &m), MSG_OK);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_LOG_TAIL, &t, &m),
	    MSG_BOX_LOG_TAIL_IS);
	ck_assert_ptr_nonnull(memmem(m.body.box_log_tail_is.text.data,
	    m.body.box_log_tail_is.text.len, "fake runner is up\nfrom apid\n",
	    28));
	ck_assert_uint_eq(listed(ids, alive), 1);
	ck_assert_str_eq(ids[0], ID1);
	ck_assert_int_eq(alive[0], 1);
	kill_box(ID1);
	ck_assert_int_eq(recv(fd, ids, 1, 0), 0);
	(void)close(fd);
	ck_assert_uint_eq(listed(ids, alive), 1);
	ck_assert_int_eq(alive[0], 0);
	purge_box(ID1, 1);
	ck_assert_uint_eq(listed(ids, alive), 0);
	kill_box(ID1);			/* unknown ones are dead and gone */
	purge_box(ID1, 0);
}
END_TEST

START_TEST(pid1_ends)
{
	struct msg	m;
	int		fd;
	BODY(a, box_attach, ID1);

	rig_start(&r);
	fd = rig_box(&r, ID1, 1);
	ck_assert_int_eq(send(fd, "q", 1, 0), 1);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_BOX_ENDED);
	ck_assert_str_eq(m.body.box_ended.id, ID1);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NOT_READY);
	(void)close(fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* 1, where whoever started the server had none to give; or no server. */
START_TEST(core_limit)
{
	struct rlimit	rl = { 0, 0 };
	struct msg	m;
	char		path[64], line[128] = "";
	int		may;
	FILE		*f;
	BODY(q, box_facts, ID1);

	ck_assert_int_eq(setrlimit(RLIMIT_CORE, &rl), 0);
	rl.rlim_max = 1;
	may = setrlimit(RLIMIT_CORE, &rl) == 0;
	rl.rlim_max = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_CORE, &rl), 0);
	if (!may) {		/* root without CAP_SYS_RESOURCE */
		rig_privd(&r);
		ck_assert_int_eq(WEXITSTATUS(rig_wait(&r)), 9);
		ck_assert(rig_logged(&r, "limit of core files"));
		return;
	}
	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &q, &m),
	    MSG_BOX_FACTS_ARE);
	(void)snprintf(path, sizeof(path), "/proc/%d/limits",
	    (int)m.body.box_facts_are.host_pid);
	ck_assert_ptr_nonnull(f = fopen(path, "re"));
	while (strncmp(line, "Max core file size", 18) != 0)
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
	(void)fclose(f);
	ck_assert_int_eq(strtol(line + 18, NULL, 10), 1);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* Nanoseconds on a processor so far, of privd and its maker. */
static unsigned long long
cpu_ns(void)
{
	unsigned long long	sum = 0, v;
	pid_t			pid[2] = { r.pid, rig_maker(&r) };
	char			path[64];
	FILE			*f;
	int			i;

	for (i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%ld/schedstat",
		    (long)pid[i]);
		ck_assert_ptr_nonnull(f = fopen(path, "r"));
		ck_assert_int_eq(fscanf(f, "%llu", &v), 1);
		(void)fclose(f);
		sum += v;
	}
	return sum;
}

/* Nothing happens, so nothing is done: whatever has happened before. */
START_TEST(idle)
{
	struct msg_box_quarantine	q = { .id = ID2, .field = "x" };
	struct msg			m;
	unsigned long long		before;

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	(void)close(rig_box(&r, ID2, 2));
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	(void)close(rig_box(&r, ID3, 3));
	kill_box(ID3);
	before = cpu_ns();
	(void)poll(NULL, 0, 500);	/* the time is what is measured */
	ck_assert_uint_lt(cpu_ns() - before, 20000000);
	purge_box(ID3, 1);
	before = cpu_ns();
	(void)poll(NULL, 0, 500);
	ck_assert_uint_lt(cpu_ns() - before, 20000000);
	kill_box(ID1);
	purge_box(ID1, 1);
	kill_box(ID2);
	purge_box(ID2, 1);
}
END_TEST

#define BURST	48

static void
burst_id(char ret[27], int i)
{
	memcpy(ret, "01K8AAAAAAAAAAAAAAAAAAAA00", 27);
	ret[24] = (char)('0' + i / 10);
	ret[25] = (char)('0' + i % 10);
}

/* More at once than the maker takes; netd answers in the other order. */
START_TEST(burst)
{
	struct msg_box_create	c = { .name = "box", .rootfs = "tiny" };
	struct msg_net_made	made = { .ruleset = "x" };
	struct msg		m;
	uint32_t		rid[BURST];
	char			id[27];
	int			i;

	r.conf.max_boxes = BURST;
	rig_start(&r);
	for (i = 0; i < BURST; i++) {
		burst_id(c.id, i);
		ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE,
		    &c, -1, NULL), 0);
	}
	for (i = 0; i < BURST; i++) {
		ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
		rid[i] = m.rid;
	}
	for (i = BURST - 1; i >= 0; i--) {
		made.k = (uint64_t)i + 1;
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE,
		    rid[i], &made, rig_netns(&r)), 0);
	}
	for (i = 0; i < BURST; i++)
		ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_BOX_CREATED);
	for (i = 0; i < BURST; i++) {
		burst_id(id, i);
		kill_box(id);
		purge_box(id, 1);
	}
}
END_TEST

static const struct refused {
	const char	*rootfs;
	uint64_t	 network, memory, cpu, pids;
	unsigned int	 code;
} refusals[] = {
	{ "default", NETWORK_EGRESS, 0, 0, 0, CODE_NETWORK_UNSUPPORTED },
	{ "default", NETWORK_ALLOWLIST, 0, 0, 0, CODE_NETWORK_UNSUPPORTED },
	{ "default", 0, UINT64_C(1) << 40, 0, 0, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 0, WB_U63, 0, 0, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 0, 0, 1000000, 0, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 0, 0, 0, 1000000, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 0, 1, 0, 0, CODE_BAD_REQUEST },
	{ "default", 0, 0, 1, 0, CODE_BAD_REQUEST },
	{ "default", 0, 0, 0, 1, CODE_BAD_REQUEST },
	{ "nowhere", 0, 0, 0, 0, CODE_ROOTFS_UNKNOWN },
	{ "evil", 0, 0, 0, 0, CODE_ROOTFS_UNKNOWN },
};
#define NREFUSALS ((int)(sizeof(refusals) / sizeof(refusals[0])))

START_TEST(refused)
{
	struct msg_box_create	c;
	struct msg		m;
	int			i;

	rig_start(&r);
	for (i = 0; i < NREFUSALS; i++) {
		memset(&c, 0, sizeof(c));
		(void)str_copy(c.id, ID1, sizeof(c.id));
		(void)str_copy(c.name, "box", sizeof(c.name));
		(void)str_copy(c.rootfs, refusals[i].rootfs,
		    sizeof(c.rootfs));
		c.network = refusals[i].network;
		c.memory_bytes = refusals[i].memory;
		c.cpu_milli = refusals[i].cpu;
		c.pids = refusals[i].pids;
		ck_assert_int_eq(rig_ask(&r, MSG_BOX_CREATE, &c, &m),
		    MSG_ERROR);
		ck_assert_msg(error_of(&m) == refusals[i].code, "row %d: %s",
		    i, code_name(error_of(&m)));
	}
	ck_assert(rig_quiet(&r, R_NETD));
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}
END_TEST

START_TEST(in_use)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "two" };
	struct msg		m;

	r.conf.max_boxes = 2;
	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_CREATE, &c, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_EXISTS);
	(void)close(rig_box(&r, ID2, 2));
	(void)str_copy(c.id, ID3, sizeof(c.id));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_CREATE, &c, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NO_SPACE_FOR_BOX);
	kill_box(ID1);
	purge_box(ID1, 1);
	(void)close(rig_box(&r, ID3, 3));	/* the range is free again */
	kill_box(ID2);
	purge_box(ID2, 1);
	kill_box(ID3);
	purge_box(ID3, 1);
}
END_TEST

START_TEST(disk_floor)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg		m;

	r.conf.disk_floor = INT64_MAX;
	rig_start(&r);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_CREATE, &c, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_DISK_FLOOR);
}
END_TEST

START_TEST(netd_refuses)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg		m;

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	ck_assert_int_eq(chan_error(&r.d[R_NETD].chan, m.rid,
	    CODE_NO_SPACE_FOR_BOX, "none left"), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NO_SPACE_FOR_BOX);
	ck_assert_str_eq(m.body.error.detail, "none left");
	all_gone();
}
END_TEST

/* A rootfs in which /proc is a file: the child fails, half way. */
START_TEST(launch_fails)
{
	struct msg	m;
	char		path[128];
	int		fd;
	BODY(t, box_log_tail, ID1);

	(void)snprintf(path, sizeof(path), "%s/rootfs/tiny/proc", r.dir);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_ne(fd = open(path, O_WRONLY | O_CREAT, 0644), -1);
	(void)close(fd);
	rig_start(&r);
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_CREATE_FAILED);
	ck_assert_str_ne(m.body.error.detail, "");
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_LOG_TAIL, &t, &m),
	    MSG_BOX_LOG_TAIL_IS);
	ck_assert_uint_gt(m.body.box_log_tail_is.text.len, 0);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* What the maker itself cannot do: a cgroup of that name is in the way. */
START_TEST(maker_fails)
{
	struct msg	m;
	char		path[200];

	rig_start(&r);
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/unified/%s/%s",
	    r.cgroup, ID1);
	if (mkdir(path, 0755) == -1) {
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s",
		    r.cgroup, ID1);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_CREATE_FAILED);
	kill_box(ID1);
	purge_box(ID1, 1);
	(void)close(rig_box(&r, ID1, 1));	/* nothing is left of it */
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* The launch fails before netd has answered; its answer is not lost. */
START_TEST(netd_is_late)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg_net_made	made = { .k = 7, .ruleset = "x" };
	struct msg		m;
	char			path[200];
	uint32_t		rid;

	rig_start(&r);
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/unified/%s/%s",
	    r.cgroup, ID1);
	if (mkdir(path, 0755) == -1) {
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s",
		    r.cgroup, ID1);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	rid = m.rid;
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_CREATE_FAILED);
	ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE, rid, &made,
	    rig_netns(&r)), 0);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* ---- quarantine ------------------------------------------------------------- */

static int
frozen(const char *id)
{
	char	path[200], c = '?';
	int	fd;

	(void)snprintf(path, sizeof(path),
	    "/sys/fs/cgroup/unified/%s/%s/cgroup.freeze", r.cgroup, id);
	if ((fd = open(path, O_RDONLY)) == -1) {
		(void)snprintf(path, sizeof(path),
		    "/sys/fs/cgroup/%s/%s/cgroup.freeze", r.cgroup, id);
		ck_assert_int_ne(fd = open(path, O_RDONLY), -1);
	}
	ck_assert_int_eq(read(fd, &c, 1), 1);
	(void)close(fd);
	return c == '1';
}

/* A late answer to the opening is not the answer to the end. */
START_TEST(killed_while_opening)
{
	struct msg_net_opened	o = { .k = 1, .ruleset = "late" };
	struct pollfd		p = { .events = POLLIN };
	struct msg		m;
	uint8_t			nonce[64];
	uint32_t		late;
	int			fd;
	BODY(a, box_attach, ID1);
	BODY(n, box_nonce, ID1);
	BODY(k, box_kill, ID1);

	rig_start(&r);
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	fd = m.fd;
	p.fd = fd;
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	n.nonce.len = (size_t)recv(fd, nonce, sizeof(nonce), 0);
	n.nonce.data = nonce;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_OPEN);
	late = m.rid;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_KILL, &k, -1,
	    NULL), 0);
	ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED, late,
	    &o, -1), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_ENDED);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	ck_assert_int_le(recv(fd, nonce, 1, 0), 0);	/* dead it is */
	(void)close(fd);
	purge_box(ID1, 1);
}
END_TEST

/* What a runner does while netd opens its network: it is cut again. */
/* 2 and 3: netd refuses to open it, which is no answer to the cut */
START_TEST(quarantined_while_opening)
{
	struct msg_net_opened		o = { .k = 1, .ruleset = "late" };
	struct msg_box_quarantine	q = { .id = ID1, .field = "protocol" };
	struct pollfd			p = { .events = POLLIN };
	struct msg			m;
	uint8_t				nonce[64];
	uint32_t			late;
	BODY(a, box_attach, ID1);
	BODY(n, box_nonce, ID1);

	rig_start(&r);
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	p.fd = m.fd;
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	n.nonce.len = (size_t)recv(p.fd, nonce, sizeof(nonce), 0);
	n.nonce.data = nonce;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_OPEN);
	late = m.rid;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	if (_i & 1)		/* netd answers after the box was frozen */
		while (!frozen(ID1))
			(void)poll(NULL, 0, 10);
	ck_assert_int_eq(_i < 2 ? chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED,
	    late, &o, -1) : chan_error(&r.d[R_NETD].chan, late, CODE_INTERNAL,
	    "no"), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert(frozen(ID1));
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	(void)close(p.fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* 0: wrong, 1: empty, 2: too short; 3: right but for the second time */
START_TEST(wrong_nonce)
{
	struct msg	m;
	static const uint8_t none[32];
	int		fd = -1;
	BODY(n, box_nonce, ID1);
	BODY(a, box_attach, ID1);
	BODY(f, box_facts, ID1);

	rig_start(&r);
	n.nonce.data = _i == 3 ? r.nonce : none;
	n.nonce.len = _i == 1 ? 0 : _i == 2 ? 31 : 32;
	if (_i < 3)
		ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	else
		fd = rig_box(&r, ID1, 1);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert(frozen(ID1));
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_WRONG_NONCE);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_NONCE, &n, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &f, &m),
	    MSG_BOX_FACTS_ARE);
	fd_close(&fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

START_TEST(quarantine)
{
	struct msg			m;
	struct msg_box_quarantine	q = { .id = ID1, .field = "ns_mnt" };
	BODY(h, box_health, ID1);

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_HEALTH, &h, &m),
	    MSG_BOX_HEALTH_IS);
	ck_assert_uint_eq(m.body.box_health_is.health, SUSPECT);
	ck_assert_str_eq(m.body.box_health_is.part, "quarantined");
	/* also for the next privd, and still closed for the next netd */
	rig_kill(&r);
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_int_eq(r.open, 0);
	ck_assert(frozen(ID1));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_HEALTH, &h, &m),
	    MSG_BOX_HEALTH_IS);
	ck_assert_str_eq(m.body.box_health_is.part, "quarantined");
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* ---- breaks of the contract --------------------------------------------------- */

static void
expect_new_set(void)
{
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 0);
}

START_TEST(hostile_answers)
{
	struct msg_net_made	made = { .k = 1, .ruleset = "x" };
	struct msg_net_opened	opened = { .k = 1, .ruleset = "x" };
	struct msg_event_appended seq = { .seq = 1 };
	struct msg_daemon_ready	ready = { .version = "twice" };
	struct msg_ok		ok = { 0 };

	rig_start(&r);
	switch (_i) {
	case 0:		/* nobody asked */
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE, 1,
		    &made, rig_netns(&r)), 0);
		break;
	case 1:
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED,
		    77, &opened, -1), 0);
		break;
	case 2:
		ck_assert_int_eq(chan_send(&r.d[R_STORED].chan,
		    MSG_EVENT_APPENDED, 99, &seq, -1), 0);
		break;
	case 3:
		ck_assert_int_eq(chan_send(&r.d[R_APID].chan, MSG_OK, 0, &ok,
		    -1), 0);
		break;
	case 4:
		r.d[R_APID].chan.state = S_INIT;
		(void)chan_ask(&r.d[R_APID].chan, MSG_DAEMON_READY, &ready,
		    -1, NULL);
		break;
	case 5:		/* not a message at all */
		ck_assert_int_eq(send(r.d[R_APID].chan.fd, "\xff\xff", 2, 0),
		    2);
		break;
	case 6:
		ck_assert_int_eq(send(r.d[R_NETD].chan.fd, "", 0, 0), 0);
		break;
	}
	expect_new_set();
}
END_TEST

/* A byte and a descriptor; 0, or errno. */
static int
pass(int kind, int fd)
{
	return fds_send(r.d[kind].chan.fd, "x", 1, &fd, 1, 0) == -1 ? errno :
	    0;
}

/* Each daemon has one of STATE/lock; privd closes what is not due. */
START_TEST(lock_passed)
{
	auto_close int	fd = -1;
	char		path[100];

	rig_start(&r);
	(void)snprintf(path, sizeof(path), "%s/lock", r.dir);
	ck_assert_int_ne(fd = open(path, O_RDONLY), -1);
	ck_assert(rig_locked(&r));
	ck_assert_int_eq(pass(R_NETD, fd), 0);
	expect_new_set();
	ck_assert(rig_locked(&r));
}
END_TEST

/*
 * Closing a socket that lingers waits; so who has none to pass can pass none
 * (Linux 6.16).
 */
START_TEST(nothing_to_pass)
{
	auto_close int	fd = -1, box = -1;
	int		zero = 0, passes = 1;
	socklen_t	len = sizeof(passes);

	rig_start(&r);
	ck_assert_int_ne(fd = socket(AF_UNIX, SOCK_STREAM, 0), -1);
	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &zero, sizeof(zero)) ==
	    -1) {
		puts("nothing_to_pass: skipped: no SO_PASSRIGHTS");
		return;
	}
	ck_assert_int_eq(pass(R_APID, fd), EPERM);
	ck_assert_int_eq(pass(R_STORED, fd), EPERM);
	ck_assert(rig_quiet(&r, R_APID));
	/* nor can a runner pass apid one */
	box = rig_box(&r, ID1, 1);
	ck_assert_int_eq(getsockopt(box, SOL_SOCKET, SO_PASSRIGHTS, &passes,
	    &len), 0);
	ck_assert_int_eq(passes, 0);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* It owes the answer to a cut when the box ends; nobody waits for ever. */
START_TEST(netd_silent)
{
	struct msg_box_quarantine q = { .id = ID1, .field = "x" };
	struct pollfd	p = { .events = POLLIN };
	struct msg	m;

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_KILL, &q, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	p.fd = r.d[R_NETD].chan.fd;
	ck_assert_int_eq(poll(&p, 1, 90000), 1);
	ck_assert(rig_logged(&r, "netd does not answer NET_CUT"));
	expect_new_set();
	purge_box(ID1, 0);
}
END_TEST

START_TEST(netd_wrong_answer)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg		m;

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	expect_new_set();
	all_gone();
}
END_TEST

START_TEST(requests_do_not_mix)
{
	struct msg	m;
	BODY(p, box_purge, ID1);
	BODY(a, box_attach, ID1);
	BODY(n, box_nonce, ID1);
	BODY(k, box_kill, ID1);
	struct msg_box_quarantine q = { .id = ID1, .field = "x" };
	uint8_t		bytes[32] = { 0 };
	uint32_t	cut;

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_PURGE, &p, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NOT_READY);
	/* while netd owes the answer to a cut, nothing else is begun */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	n.nonce.data = bytes;
	n.nonce.len = 32;
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	cut = m.rid;
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	/* but an end comes first; the asker before is told */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_KILL, &k, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_ENDED);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	/* netd's late answer hurts nobody: the purge waits for it */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_PURGE, &p, -1,
	    NULL), 0);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, cut), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_FREE);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}
END_TEST

/* ---- apid dies in the middle ---------------------------------------------------- */

/* 0: netd is at work; 1: netd has just answered */
START_TEST(create_in_flight)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg_net_made	made = { .k = 1, .ruleset = "x" };
	struct msg		m;
	int			i;

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	if (_i == 1)
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE,
		    m.rid, &made, rig_netns(&r)), 0);
	(void)kill(r.d[R_APID].pid, SIGKILL);
	for (i = 0; i < R_N; i++)
		fd_close(&r.d[i].sock);
	rig_set(&r);
	/* what was being made is gone, or known and ended by the asker */
	ck_assert_uint_eq(rig_go(&r), 0);
	all_gone();
}
END_TEST

/* ---- privd dies ------------------------------------------------------------------- */

static ino_t
userns_of_netd(void)
{
	char		path[64];
	struct stat	st;

	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/user",
	    (long)r.d[R_NETD].pid);
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

START_TEST(killed_with_boxes)
{
	struct msg	m;
	char		ids[4][27];
	int		alive[4], fd;
	ino_t		u1;
	BODY(a, box_attach, ID1);
	BODY(f, box_facts, ID2);

	rig_start(&r);
	(void)close(rig_box(&r, ID2, 2));
	(void)close(rig_box(&r, ID1, 1));
	u1 = userns_of_netd();
	rig_kill(&r);
	/* daemons of the old set that do not mind its end are ended */
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 2);
	ck_assert_int_eq(r.open, 1);
	ck_assert_uint_eq(userns_of_netd(), u1);
	ck_assert_uint_eq(listed(ids, alive), 2);
	ck_assert_str_eq(ids[0], ID1);
	ck_assert_str_eq(ids[1], ID2);
	ck_assert(alive[0] && alive[1]);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &f, &m),
	    MSG_BOX_FACTS_ARE);
	ck_assert_str_eq(m.body.box_facts_are.verdict, "");
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	fd = m.fd;
	(void)close(fd);
	kill_box(ID1);
	purge_box(ID1, 1);
	kill_box(ID2);
	purge_box(ID2, 1);
}
END_TEST

/* In another cgroup a box that runs would be taken for dead. */
START_TEST(another_cgroup)
{
	char	was[sizeof(r.conf.cgroup)];

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	rig_kill(&r);
	(void)str_copy(was, r.conf.cgroup, sizeof(was));
	(void)snprintf(r.conf.cgroup, sizeof(r.conf.cgroup), "%s/other",
	    r.cgroup);
	rig_privd(&r);
	ck_assert_int_eq(WEXITSTATUS(rig_wait(&r)), 1);
	ck_assert(rig_logged(&r, "1 boxes are in cgroup wb-privd-"));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/memory/%s", r.conf.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/%s", r.conf.cgroup));
	(void)str_copy(r.conf.cgroup, was, sizeof(was));
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* A range that lies across two of the new pool is in use in both. */
START_TEST(another_uid_base)
{
	struct msg	m;
	struct stat	a, b;
	char		path[150];

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	rig_kill(&r);
	r.conf.uid_base -= 32768 + _i * 65536;
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_int_eq(rig_create(&r, ID2, 2, &m), MSG_BOX_CREATED);
	(void)snprintf(path, sizeof(path), "%s/sandboxes/%s/upper", r.dir,
	    ID1);
	ck_assert_int_eq(stat(path, &a), 0);
	path[strlen(path) - strlen("1/upper")] = '2';
	ck_assert_int_eq(stat(path, &b), 0);
	ck_assert_uint_ge(a.st_uid < b.st_uid ? b.st_uid - a.st_uid :
	    a.st_uid - b.st_uid, 65536);
	kill_box(ID1);
	purge_box(ID1, 1);
	kill_box(ID2);
	purge_box(ID2, 1);
}
END_TEST

/* A set that is replaced adopts too; boxes and their connections live on. */
START_TEST(set_restart_with_box)
{
	struct msg	m;
	int		fd, i;
	ino_t		u1;
	BODY(a, box_attach, ID1);

	rig_start(&r);
	fd = rig_box(&r, ID1, 1);
	u1 = userns_of_netd();
	(void)kill(r.d[R_STORED].pid, SIGKILL);
	for (i = 0; i < R_N; i++)
		fd_close(&r.d[i].sock);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_uint_eq(userns_of_netd(), u1);
	(void)close(fd);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	(void)close(m.fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* Killed while a box is made and removed, at many moments. */
START_TEST(killed_at_any_time)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg_net_made	made = { .k = 1, .ruleset = "x" };
	struct msg		m;
	char			ids[4][27];
	int			alive[4];
	unsigned int		adopted, n;
	struct timespec		ts = { 0, 150000L * _i };

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE, m.rid,
	    &made, rig_netns(&r)), 0);
	(void)nanosleep(&ts, NULL);	/* the moment is what is varied */
	rig_kill(&r);
	rig_privd(&r);
	rig_set(&r);
	adopted = rig_go(&r);
	n = listed(ids, alive);
	ck_assert_uint_le(n, 1);
	if (n == 1) {
		kill_box(ID1);
		purge_box(ID1, alive[0]);
	}
	ck_assert_uint_eq(adopted, n == 1 && alive[0]);
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("privd");
	TCase	*set = tcase_create("set"), *box = tcase_create("box");
	TCase	*bad = tcase_create("hostile"), *die = tcase_create("killed");
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
	tcase_add_test(set, start_fails);
	suite_add_tcase(s, set);
	tcase_add_checked_fixture(box, setup, teardown);
	tcase_set_timeout(box, 240);
	tcase_add_test(box, life);
	tcase_add_test(box, pid1_ends);
	tcase_add_test(box, core_limit);
	tcase_add_test(box, idle);
	tcase_add_test(box, burst);
	tcase_add_test(box, refused);
	tcase_add_test(box, in_use);
	tcase_add_test(box, disk_floor);
	tcase_add_test(box, netd_refuses);
	tcase_add_test(box, launch_fails);
	tcase_add_test(box, maker_fails);
	tcase_add_test(box, netd_is_late);
	tcase_add_loop_test(box, wrong_nonce, 0, 4);
	tcase_add_loop_test(box, quarantined_while_opening, 0, 4);
	tcase_add_test(box, quarantine);
	suite_add_tcase(s, box);
	tcase_add_checked_fixture(bad, setup, teardown);
	tcase_set_timeout(bad, 240);
	tcase_add_loop_test(bad, hostile_answers, 0, 7);
	tcase_add_test(bad, lock_passed);
	tcase_add_test(bad, nothing_to_pass);
	tcase_add_test(bad, netd_silent);
	tcase_add_test(bad, netd_wrong_answer);
	tcase_add_test(bad, requests_do_not_mix);
	tcase_add_test(bad, killed_while_opening);
	suite_add_tcase(s, bad);
	tcase_add_checked_fixture(die, setup, teardown);
	tcase_set_timeout(die, 240);
	tcase_add_loop_test(die, create_in_flight, 0, 2);
	tcase_add_test(die, killed_with_boxes);
	tcase_add_test(die, another_cgroup);
	tcase_add_loop_test(die, another_uid_base, -1, 2);
	tcase_add_test(die, set_restart_with_box);
	tcase_add_loop_test(die, killed_at_any_time, 0, 20);
	suite_add_tcase(s, die);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	rig_sweep();
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
