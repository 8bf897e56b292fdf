/*
 * runner_session.c: what a session finds, and what is known of it.
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

START_TEST(test_facts)
{
	struct msg_runner_go	 go = { 0 };
	struct msg		 m;
	char			 link[64];
	ssize_t			 n;

	box_call(&b.ch, MSG_RUNNER_GO, &go, &m);	/* again: allowed */
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_FACTS);
	ck_assert_uint_eq(m.body.runner_facts.nspid, 1);
	ck_assert_uint_gt(m.body.runner_facts.mounts.len, 10);
	n = readlink(({ static char p[64]; (void)snprintf(p, sizeof(p),
	    "/proc/%ld/ns/mnt", (long)b.pid); p; }), link, sizeof(link) - 1);
	ck_assert_int_gt(n, 5);
	link[n] = '\0';
	ck_assert_uint_eq(m.body.runner_facts.ns_mnt,
	    strtoull(strchr(link, '[') + 1, NULL, 10));
}
END_TEST

START_TEST(test_exit)
{
	struct msg_session_exit	x;
	char			id[27];

	box_sh(&b, "exit 7", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 7);
	ck_assert_uint_eq(x.signal, 0);
	box_sh(&b, "kill -9 $$", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	ck_assert_uint_eq(x.oom, 0);
	box_sh(&b, "sleep 0.1", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_uint_ge(x.wall_ms, 100);
	ck_assert_uint_ge(x.ended_ms, x.started_ms);
	EVENTUALLY(!cgroup_there(id));
}
END_TEST

START_TEST(test_output)
{
	struct msg_session_exit	x;
	char			id[27], *out;

	box_sh(&b, "printf a; printf b >&2; printf c", 1, id);
	box_wait(&b, id, &x);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "ac");
	free(out);
	out = box_output(&b, id, STREAM_STDERR, NULL);
	ck_assert_str_eq(out, "b");
	free(out);
	ck_assert_uint_eq(x.first_seq, 1);
	ck_assert_uint_ge(x.last_seq, 2);
}
END_TEST

START_TEST(test_world)
{
	char	*out;

	expect_sh("ls /proc/$$/fd", "0\n1\n2\n");
	/* its own session, group; nothing blocked or ignored */
	expect_sh("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] "
	    "&& echo own", "own\n");
	expect_sh("grep -c '^Sig\\(Blk\\|Ign\\):.0*$' /proc/self/status",
	    "2\n");
	expect_sh("pwd", "/root\n");
	expect_sh("env | sort | cut -c1-12; echo $TERM",
	    "HOME=/root\nIS_SANDBOX=1\nLANG=C.UTF-8\nPATH=/usr/lo\n"
	    "PWD=/root\nTZ=UTC\nWORKBOX_SAND\nWORKBOX_SAND\n"
	    "container=wo\n\n");
	expect_sh("echo $WORKBOX_SANDBOX_NAME $WORKBOX_SANDBOX_ID $PATH",
	    "test 01KTESTTESTTESTTESTTESTTES /usr/local/sbin:/usr/local/bin:"
	    "/usr/sbin:/usr/bin:/sbin:/bin:/opt/workbox\n");
	expect_sh("read x && echo got || echo eof", "eof\n");
	expect_sh("umask; ulimit -n | grep -v 4096 | wc -l", "0022\n1\n");
	out = sh("cat /proc/self/cgroup");
	ck_assert_ptr_nonnull(strstr(out, "/box/sessions/01"));
	if (b.cg1[0][0] != '\0')
		ck_assert_ptr_nonnull(strstr(out, ":memory:/wb-runner-"));
	free(out);
}
END_TEST

START_TEST(test_environment)
{
	static const char *const argv[] = { "sh", "-c",
	    "echo $A $B $C; pwd; echo $HOME", NULL };
	static const char *const box[] = { "A=box", "B=box",
	    "HOME=/nowhere", NULL };
	static const char *const own[] = { "B=own", "C=own=1", NULL };
	static const char *const bad[] = { "NOVALUE", NULL };
	struct msg_runner_go	 go = { 0 };
	struct msg_session_run	 run = { 0 };
	struct msg		 m;
	char			*out;

	go.env = box_list(box);
	box_call(&b.ch, MSG_RUNNER_GO, &go, &m);
	ulid_new(run.id);
	run.argv = box_list(argv);
	run.env = box_list(own);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
	out = box_output(&b, run.id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "box own own=1\n/\n/nowhere\n");
	free(out);
	ulid_new(run.id);
	run.env = box_list(bad);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_BAD_REQUEST);
}
END_TEST

START_TEST(test_errors)
{
#define ARGV(...)	(const char *const[]){ __VA_ARGS__, NULL }
	char	noint[100], plain[100], closed[100];
	int	fd;

	(void)snprintf(noint, sizeof(noint), "%s/noint", b.dir);
	(void)snprintf(plain, sizeof(plain), "%s/plain", b.dir);
	(void)snprintf(closed, sizeof(closed), "%s/closed", b.dir);
	fd = open(noint, O_WRONLY | O_CREAT, 0755);
	ck_assert_int_gt(write(fd, "#!/nowhere/sh\n", 14), 0);
	(void)close(fd);
	fd = open(plain, O_WRONLY | O_CREAT, 0755);
	ck_assert_int_gt(write(fd, "echo hi\n", 8), 0);
	(void)close(fd);
	(void)close(open(closed, O_WRONLY | O_CREAT, 0644));

	run_error(ARGV("no-such-command"), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV(""), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV("/no/such/command"), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV("/etc/passwd/x"), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV("/etc"), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV(noint), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV(plain), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV(closed), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV("true"), "/no/such/dir", CODE_BAD_CWD);
	run_error(ARGV("true"), "relative", CODE_BAD_CWD);
	run_error(ARGV("true"), "/etc/passwd", CODE_BAD_CWD);
	run_error(ARGV("true"), "/proc/self/fd/3", CODE_BAD_CWD);
	run_error(ARGV("true"), "/proc/self/fd/5", CODE_BAD_CWD);
	run_error(ARGV("true"), "/proc/self/fd/7", CODE_BAD_CWD);
	(void)unlink(noint);
	(void)unlink(plain);
	(void)unlink(closed);
	ck_assert_uint_eq(rows(), 0);
	ping();
}
END_TEST

START_TEST(test_same_id)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_session_run	run = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	int			i;

	ulid_new(run.id);
	run.argv = box_list(argv);
	for (i = 0; i < 3; i++) {
		box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
		if (i == 0) {
			ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
			box_wait(&b, run.id, &x);
		} else {
			ck_assert_uint_eq(m.row->type, MSG_ERROR);
			ck_assert_uint_eq(m.body.error.code, CODE_EXISTS);
		}
	}
}
END_TEST

START_TEST(test_kept)
{
	struct msg_session_exit	x;
	struct msg_session_wait	w = { 0 };
	struct msg		m;
	char			first[27], id[27];
	int			i;

	box_sh(&b, "echo 1", 0, first);
	box_wait(&b, first, &x);
	for (i = 0; i < 300; i++) {
		box_sh(&b, ":", 0, id);
		box_wait(&b, id, &x);
	}
	ck_assert_uint_eq(rows(), 256);
	(void)str_copy(w.id, first, sizeof(w.id));
	box_call(&b.ch, MSG_SESSION_WAIT, &w, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_NOT_FOUND);
}
END_TEST

START_TEST(test_too_many)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	struct msg_session_run	run = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	char			first[27] = "";
	int			i;

	for (i = 0; i < 200; i++) {
		ulid_new(run.id);
		run.argv = box_list(argv);
		box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
		if (m.row->type != MSG_SESSION_RUNNING)
			break;
		if (i == 0)
			(void)str_copy(first, run.id, sizeof(first));
	}
	ck_assert_int_eq(i, 128);
	ck_assert_uint_eq(m.body.error.code, CODE_TOO_MANY);
	ck_assert_uint_eq(signal_session(first, SIGKILL), 0);
	box_wait(&b, first, &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	free(sh("echo room"));
}
END_TEST

TCase *
case_session(void)
{
	TCase	*t = tcase_create("session");

	tcase_add_checked_fixture(t, setup_attached, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_facts);
	tcase_add_test(t, test_exit);
	tcase_add_test(t, test_output);
	tcase_add_test(t, test_world);
	tcase_add_test(t, test_environment);
	tcase_add_test(t, test_errors);
	tcase_add_test(t, test_same_id);
	tcase_add_test(t, test_kept);
	tcase_add_test(t, test_too_many);
	return t;
}
