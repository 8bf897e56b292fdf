/*
 * runner_end.c: how sessions end, and processes that would not have it so.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner_case.h"

/* ---- ends ------------------------------------------------------------ */

START_TEST(test_left_behind)
{
	struct msg_session_exit	x;
	struct row_rsession	row;
	uint64_t		t = mono_ms();
	char			id[27];

	box_sh(&b, "sleep 1000 & echo ok", 1, id);
	box_wait(&b, id, &x);
	ck_assert_uint_lt(mono_ms() - t, 5000);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_uint_eq(x.left_behind, 1);
	ck_assert(row_of(id, &row));
	ck_assert_uint_eq(row.ended, 1);
	ck_assert_uint_eq(row.left_behind, 1);
	ck_assert(cgroup_there(id));
	ck_assert_uint_eq(signal_session(id, SIGTERM), 0);
	EVENTUALLY(!cgroup_there(id));
	EVENTUALLY(row_of(id, &row) && row.left_behind == 0);
	ck_assert_uint_eq(signal_session(id, SIGTERM), CODE_ENDED);
}
END_TEST

/* It writes on: neither killed by SIGPIPE nor blocked. */
START_TEST(test_left_behind_writes)
{
	struct msg_session_exit	 x;
	char			 id[27], mark[100], *script;

	(void)snprintf(mark, sizeof(mark), "%s/mark", b.dir);
	script = xasprintf("(sleep 0.4; head -c 300000 /dev/zero && "
	    "echo fine > %s) & echo ok", mark);
	box_sh(&b, script, 1, id);
	free(script);
	box_wait(&b, id, &x);
	ck_assert_uint_gt(x.left_behind, 0);
	EVENTUALLY(access(mark, F_OK) == 0);
	EVENTUALLY(!cgroup_there(id));
	(void)unlink(mark);
}
END_TEST

START_TEST(test_late)
{
	struct msg_session_exit	 x;
	uint64_t		 t;
	char			 id[27], *out;

	box_sh(&b, "(sleep 0.05; echo late) & echo early", 1, id);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "early\nlate\n");
	free(out);
	t = mono_ms();
	box_sh(&b, "(sleep 3; echo never) & echo early", 1, id);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "early\n");
	free(out);
	box_wait(&b, id, &x);
	ck_assert_uint_lt(mono_ms() - t, 2500);
}
END_TEST

/* What is in the pipe when the leader dies is kept, whatever the marks say. */
START_TEST(test_rest_is_kept)
{
	struct msg_session_exit	 x;
	size_t			 len;
	char			 id[27], *out;

	/* past the mark, so that the pipe is full when it exits */
	box_sh(&b, "head -c 4194304 /dev/zero; head -c 65536 /dev/zero", 1,
	    id);
	box_wait(&b, id, &x);
	out = box_output(&b, id, STREAM_STDOUT, &len);
	ck_assert_uint_eq(len, 4194304 + 65536);
	free(out);
}
END_TEST

START_TEST(test_limit)
{
	static const char *const soft[] = { "sleep", "1000", NULL };
	static const char *const hard[] = { "sh", "-c",
	    "trap '' TERM; while :; do sleep 1; done", NULL };
	struct msg_session_run	run = { .timeout_ms = 200 };
	struct msg_session_exit	x;
	struct msg		m;
	int			i;

	for (i = 0; i < 2; i++) {
		ulid_new(run.id);
		run.argv = box_list(i == 0 ? soft : hard);
		box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
		ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
		box_wait(&b, run.id, &x);
		ck_assert_uint_eq(x.timed_out, 1);
		ck_assert_uint_eq(x.signal, i == 0 ? SIGTERM : SIGKILL);
		ck_assert_uint_ge(x.wall_ms, i == 0 ? 200 : 2200);
		ck_assert_uint_lt(x.wall_ms, i == 0 ? 2000 : 6000);
		EVENTUALLY(!cgroup_there(run.id));
	}
}
END_TEST

START_TEST(test_limit_left_behind)
{
	static const char *const argv[] = { "sh", "-c",
	    "(trap '' TERM; while :; do sleep 1; done) & echo ok", NULL };
	struct msg_session_run	run = { .timeout_ms = 700 };
	struct msg_session_exit	x;
	struct msg		m;

	ulid_new(run.id);
	run.argv = box_list(argv);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	box_wait(&b, run.id, &x);
	ck_assert_uint_eq(x.timed_out, 0);
	ck_assert_uint_eq(x.exit_code, 0);
	EVENTUALLY(!cgroup_there(run.id));
}
END_TEST

START_TEST(test_signals)
{
	struct msg_session_exit	x;
	char			id[27], *out;

	box_sh(&b, "trap 'echo usr; exit 3' USR1; echo up; "
	    "while :; do sleep 0.01; done", 1, id);
	EVENTUALLY(({ struct row_rsession r; row_of(id, &r) &&
	    r.last_seq > 0; }));
	ck_assert_uint_eq(signal_session(id, SIGUSR1), 0);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 3);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "up\nusr\n");
	free(out);
	ck_assert_uint_eq(signal_session(id, SIGUSR1), CODE_ENDED);
	/* the whole of it */
	box_sh(&b, "setsid sh -c 'trap \"\" TERM; sleep 1000; :' & "
	    "trap '' TERM; while :; do sleep 1; done", 0, id);
	ck_assert_uint_eq(signal_session(id, SIGKILL), 0);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	EVENTUALLY(!cgroup_there(id));
}
END_TEST

START_TEST(test_drain)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_runner_drain	drain = { .grace_ms = 500 };
	struct msg_session_run	run = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	char			id[3][27];
	uint64_t		t;

	box_sh(&b, "sleep 1000", 0, id[0]);
	box_sh(&b, "trap '' TERM; while :; do sleep 1; done", 0, id[1]);
	box_sh(&b, "sleep 1000 & :", 0, id[2]);
	box_wait(&b, id[2], &x);
	t = mono_ms();
	box_call(&b.ch, MSG_RUNNER_DRAIN, &drain, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
	ck_assert_uint_ge(mono_ms() - t, 500);
	box_wait(&b, id[0], &x);
	ck_assert_uint_eq(x.signal, SIGTERM);
	box_wait(&b, id[1], &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	ulid_new(run.id);
	run.argv = box_list(argv);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_NOT_READY);
	drain.grace_ms = 0;
	box_call(&b.ch, MSG_RUNNER_DRAIN, &drain, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
}
END_TEST

/* ---- hostile processes ----------------------------------------------- */

/* Orphans by the hundred: all reaped, and the runner answers meanwhile. */
START_TEST(test_orphans)
{
	struct msg_session_exit	x;
	char			id[27], *out;
	int			i;

	box_sh(&b, "i=0; while [ $i -lt 500 ]; do (:&) ; i=$((i+1)); done",
	    0, id);
	for (i = 0; i < 20; i++)
		ping();
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	EVENTUALLY(!cgroup_there(id));
	out = sh("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || :");
	ck_assert_str_eq(out, "0\n");
	free(out);
}
END_TEST

START_TEST(test_kill_all)
{
	struct msg_session_exit	x;
	char			id[27];

	box_sh(&b, "kill -KILL -1; kill -KILL 1; kill -STOP 1; kill -TERM 1;"
	    "exit 5", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 5);
	ping();
}
END_TEST

/*
 * Every process but pid 1 is stopped over and over, also those that the
 * runner is just making: it is never held up for long by one of them.
 */
START_TEST(test_stop_all)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_session_run	run = { 0 };
	char			id[27];
	uint64_t		t, worst = 0;
	int			i;

	box_sh(&b, "while :; do kill -STOP -1; done 2>/dev/null", 0, id);
	for (i = 0; i < 30; i++) {
		ulid_new(run.id);
		run.argv = box_list(argv);
		ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN, &run, -1,
		    NULL), 0);
		t = mono_ms();
		ping();
		t = mono_ms() - t;
		worst = t > worst ? t : worst;
	}
	if (getenv("RUNNER_VERBOSE") != NULL)
		(void)printf("held up for %" PRIu64 " ms at most\n", worst);
	ck_assert_uint_lt(worst, 2000);
	ck_assert_uint_eq(signal_session(id, SIGKILL), 0);
	free(sh("echo still there"));
}
END_TEST

static void
freeze(int on)
{
	char	path[400];
	int	fd;

	(void)snprintf(path, sizeof(path), "%s/box/sessions/cgroup.freeze",
	    b.cg2);
	ck_assert_int_ne(fd = open(path, O_WRONLY), -1);
	ck_assert_int_eq(write(fd, on ? "1" : "0", 1), 1);
	(void)close(fd);
}

/* The process that is in a session's cgroup, as seen from here. */
static pid_t
pid_of(const char *id)
{
	char	path[400];
	int	pid = 0;
	FILE	*f;

	(void)snprintf(path, sizeof(path), "%s/box/sessions/%s/cgroup.procs",
	    b.cg2, id);
	if ((f = fopen(path, "re")) != NULL) {
		if (fscanf(f, "%d", &pid) != 1)
			pid = 0;
		(void)fclose(f);
	}
	return pid;
}

/*
 * A child that is held up between clone and exec (here it freezes when it
 * joins its cgroup) holds nobody up; those behind it start when it is gone.
 */
START_TEST(test_held_up)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_session_run	run[3] = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	uint32_t		rid[3];
	uint64_t		t;
	int			i, round;

	for (round = 0; round < 6; round++) {
		freeze(1);
		for (i = 0; i < 3; i++) {
			ulid_new(run[i].id);
			run[i].argv = box_list(argv);
			ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN,
			    &run[i], -1, &rid[i]), 0);
		}
		t = mono_ms();
		ping();
		ck_assert_uint_lt(mono_ms() - t, 1000);
		EVENTUALLY(pid_of(run[0].id) > 0);
		ck_assert_int_eq(pid_of(run[1].id), 0);
		if (round % 2 == 1)	/* then it is stopped, too */
			ck_assert_int_eq(kill(pid_of(run[0].id), SIGSTOP), 0);
		if (round == 4)		/* or killed */
			ck_assert_int_eq(kill(pid_of(run[0].id), SIGKILL), 0);
		freeze(0);
		for (i = 0; i < 3; i++) {
			ck_assert_int_eq(box_recv(&b.ch, &m), 1);
			ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
			ck_assert_uint_eq(m.rid, rid[i]);
		}
		for (i = 0; i < 3; i++) {
			box_wait(&b, run[i].id, &x);
			ck_assert_uint_eq(x.signal, i == 0 && (round % 2 ==
			    1 || round == 4) ? SIGKILL : 0);
			EVENTUALLY(!cgroup_there(run[i].id));
		}
	}
}
END_TEST

/* A drain and a signal reach one that is held up. */
START_TEST(test_held_up_drain)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	struct msg_runner_drain	drain = { .grace_ms = 300 };
	struct msg_session_run	run = { 0 };
	struct msg		m;
	uint32_t		rid, drid;
	int			seen = 0;

	freeze(1);
	ulid_new(run.id);
	run.argv = box_list(argv);
	ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN, &run, -1, &rid), 0);
	EVENTUALLY(pid_of(run.id) > 0);
	ck_assert_int_eq(chan_ask(&b.ch, MSG_RUNNER_DRAIN, &drain, -1, &drid),
	    0);
	while (seen != 3) {
		ck_assert_int_eq(box_recv(&b.ch, &m), 1);
		seen |= m.rid == rid ? 1 : m.rid == drid ? 2 : 0;
	}
	freeze(0);
	ping();
}
END_TEST

/* A file that is slow to exec, a pipe, a device: none holds it up. */
START_TEST(test_odd_commands)
{
	char	fifo[100];

	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", b.dir);
	ck_assert_int_eq(mkfifo(fifo, 0755), 0);
	run_error((const char *const[]){ fifo, NULL }, "",
	    CODE_COMMAND_NOT_EXECUTABLE);
	run_error((const char *const[]){ "/dev/null", NULL }, "",
	    CODE_COMMAND_NOT_EXECUTABLE);
	(void)unlink(fifo);
	ping();
}
END_TEST

TCase *
case_end(void)
{
	TCase	*t = tcase_create("end");

	tcase_add_checked_fixture(t, setup_attached, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_left_behind);
	tcase_add_test(t, test_left_behind_writes);
	tcase_add_test(t, test_late);
	tcase_add_test(t, test_rest_is_kept);
	tcase_add_test(t, test_limit);
	tcase_add_test(t, test_limit_left_behind);
	tcase_add_test(t, test_signals);
	tcase_add_test(t, test_drain);
	tcase_add_test(t, test_orphans);
	tcase_add_test(t, test_kill_all);
	tcase_add_test(t, test_stop_all);
	tcase_add_test(t, test_held_up);
	tcase_add_test(t, test_held_up_drain);
	tcase_add_test(t, test_odd_commands);
	return t;
}
