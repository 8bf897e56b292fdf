/*
 * privd_box.c: privd_test, one box: made, ended, refused.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privd_test.h"

/* ---- one box ----------------------------------------------------------- */

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
	/* netd's word, not what was asked for */
	ck_assert_uint_eq(m.body.box_facts_are.network, NETWORK_EGRESS);
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
	uint64_t	 memory, cpu, pids;
	unsigned int	 code;
} refusals[] = {
	{ "default", UINT64_C(1) << 40, 0, 0, CODE_LIMIT_ABOVE_CEILING },
	{ "default", WB_U63, 0, 0, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 0, 1000000, 0, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 0, 0, 1000000, CODE_LIMIT_ABOVE_CEILING },
	{ "default", 1, 0, 0, CODE_BAD_REQUEST },
	{ "default", 0, 1, 0, CODE_BAD_REQUEST },
	{ "default", 0, 0, 1, CODE_BAD_REQUEST },
	{ "nowhere", 0, 0, 0, CODE_ROOTFS_UNKNOWN },
	{ "evil", 0, 0, 0, CODE_ROOTFS_UNKNOWN },
};
#define NREFUSALS ((int)(sizeof(refusals) / sizeof(refusals[0])))

/* Signals to the maker that come at any time: no step of it is given up. */
START_TEST(signalled)
{
	struct msg	m;
	pid_t		storm, maker;
	char		id[27];
	int		i;

	rig_start(&r);
	ck_assert_int_ne(maker = rig_maker(&r), 0);
	if ((storm = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)kill(maker, SIGCHLD);
	}
	for (i = 0; i < 20; i++) {
		burst_id(id, i);
		ck_assert_msg(rig_create(&r, id, 1, &m) == MSG_BOX_CREATED,
		    "%s", m.body.error.detail);
		kill_box(id);
		purge_box(id, 1);
	}
	(void)kill(storm, SIGKILL);
	(void)waitpid(storm, NULL, 0);
	all_gone();
}
END_TEST

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

/* Whatever the reason, and of each kind: which one it is, netd is told. */
START_TEST(netd_refuses)
{
	static const struct {
		uint64_t	network;
		enum wb_code	code;
	}	rows[] = {
		{ NETWORK_NONE, CODE_NO_SPACE_FOR_BOX },
		{ NETWORK_EGRESS, CODE_NETWORK_UNSUPPORTED },
		{ NETWORK_ALLOWLIST, CODE_NETWORK_UNSUPPORTED },
	};
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default",
				    .network = rows[_i].network };
	struct msg		m;

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	ck_assert_uint_eq(m.body.net_make.network, rows[_i].network);
	ck_assert_int_eq(chan_error(&r.d[R_NETD].chan, m.rid, rows[_i].code,
	    "none left"), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), rows[_i].code);
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

TCase *
box_case(void)
{
	TCase	*t = tcase_create("box");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, life);
	tcase_add_test(t, pid1_ends);
	tcase_add_test(t, core_limit);
	tcase_add_test(t, idle);
	tcase_add_test(t, burst);
	tcase_add_test(t, signalled);
	tcase_add_test(t, refused);
	tcase_add_test(t, in_use);
	tcase_add_test(t, disk_floor);
	tcase_add_loop_test(t, netd_refuses, 0, 3);
	tcase_add_test(t, launch_fails);
	tcase_add_test(t, maker_fails);
	tcase_add_test(t, netd_is_late);
	return t;
}
