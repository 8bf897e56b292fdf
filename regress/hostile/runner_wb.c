/*
 * runner_wb.c: wb in the box, and what others there may do with its socket.
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

#define PEERS	32

static char *
with_wb(const char *fmt)
{
	char	*s = xasprintf("W=%s; wb() { $W \"$@\"; }; %s",
		    box_program("wb", "wb"), fmt);

	return s;
}

static void
expect_wb(const char *script, const char *expected)
{
	char	*s = with_wb(script);

	expect_sh(s, expected);
	free(s);
}

START_TEST(test_wb)
{
	char	*s, *out;

	expect_wb("wb run -- sh -c 'exit 7'; echo $?", "7\n");
	expect_wb("wb run sh -c 'kill -9 $$'; echo $?", "137\n");
	expect_wb("wb run -- no-such 2>/dev/null; echo $?", "127\n");
	expect_wb("wb run -- /etc/passwd 2>/dev/null; echo $?", "126\n");
	expect_wb("wb run 2>/dev/null; echo $?", "125\n");
	expect_wb("wb nonsense 2>/dev/null; echo $?", "125\n");
	expect_wb("echo hello | wb run --name x -- tr a-z A-Z", "HELLO\n");
	expect_wb("cd /tmp; X=1 wb run -- sh -c 'echo $X; pwd; echo e >&2' "
	    "2>&1 | sort", "/tmp\n1\ne\n");
	expect_wb("seq 1000000 | wb run -- cat | cksum > /tmp/$$; "
	    "seq 1000000 | cksum | cmp - /tmp/$$ && rm /tmp/$$", "");
	s = with_wb("wb status");
	out = sh(s);
	ck_assert_ptr_nonnull(strstr(out, "name     test\n"));
	ck_assert_ptr_nonnull(strstr(out, "host     attached\n"));
	ck_assert_ptr_nonnull(strstr(out, "network  egress\n"
	    "sent     7 bytes, 8 packets\n"
	    "received 9 bytes, 10 packets\n"
	    "begun    6 connections\n"
	    "asked    11 names\n"
	    "denied   26 packets: 2 sealed, 3 host, 4 limited, "
	    "5 protocol, 12 address\n"));
	ck_assert_ptr_null(strstr(out, "by name"));
	free(out);
	out = sh(s);
	ck_assert_ptr_nonnull(strstr(out, "network  allowlist\n"
	    "begun    6 connections\n"
	    "asked    11 names\n"
	    "denied   26 packets: 2 sealed, 3 host, 4 limited, "
	    "5 protocol, 12 address\n"
	    "by name  75 denied: 13 name, 14 port, 15 tls, 16 http, "
	    "17 names-exhausted\n"));
	free(out);
	free(s);
}
END_TEST

/* Start, leave, find again by name, look, end. */
START_TEST(test_wb_sessions)
{
	expect_wb("id=$(wb run --detach --name d -- sh -c 'cat; echo $0; "
	    "exit 5' x); wb wait d; echo $?; wb logs d; wb logs --after 1 d; "
	    "wb wait $id; echo $?; wb ps | grep -c \"^$id  ended  *5 \"",
	    "5\nx\n5\n1\n");
	/* of one name the newest that runs, else the newest */
	expect_wb("for i in 1 2; do wb run --name e -- sh -c \"echo $i; "
	    "exit $i\" >/dev/null; done; wb logs e; wb run -d --name e -- sh "
	    "-c 'exec sleep 1000' >/dev/null; wb run --name f true; wb kill e;"
	    " wb wait e; echo $?; wb kill e 2>/dev/null; echo $?",
	    "2\n143\n125\n");
	/* what is left behind can be reached, and by KILL all at once */
	expect_wb("wb run --name g -- sh -c 'sleep 1000 >/dev/null 2>&1 &'; "
	    "wb ps | awk '$7 == \"g\" { print $2, $6 }'; wb kill -s 9 g; until "
	    "wb ps | grep -q 'ended .* 0  g$'; do sleep 0.01; done; "
	    "wb kill g 2>/dev/null; echo $?", "ended 1\n125\n");
	expect_wb("wb run -d --name h -- sh -c 'for i in 1 2 3 4 5; do echo $i;"
	    " sleep 0.02; done' >/dev/null; wb logs -f h | tr '\\n' ' '",
	    "1 2 3 4 5 ");
}
END_TEST

static void
dial_wb_as(struct chan *c, uid_t uid)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	char			dir[64];
	int			fd = socket(AF_UNIX, SOCK_SEQPACKET |
				    SOCK_CLOEXEC, 0);

	(void)snprintf(dir, sizeof(dir), "/proc/%ld/root" BOX_RUN,
	    (long)b.pid);
	ck_assert_int_eq(chdir(dir), 0);
	(void)str_copy(un.sun_path, "runner.sock", sizeof(un.sun_path));
	ck_assert_int_eq(seteuid(uid), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chdir("/"), 0);
	chan_init(c, fd, A_WB, A_RUNNER, S_RUN);
}

static unsigned int
code_of(const struct msg *m)
{
	return m->row->type == MSG_ERROR ? (unsigned int)m->body.error.code :
	    CODE_NONE;
}

/* As another user it is that user, and sees only what is its own. */
START_TEST(test_wb_user)
{
	static const char *const	 argv[] = { "cat", NULL };
	struct msg_session_read		 r = { 0 };
	struct msg_session_wait		 w = { 0 };
	struct msg_session_signal	 k = { .signal = SIGKILL };
	struct msg_session_stdin	 in = { 0 };
	struct msg_runner_sessions	 l = { 0 };
	struct msg_wb_run		 run = { .stdin_open = 1,
	    .cwd = "/" };
	struct msg			 m;
	struct chan			 c, d;
	char				 id[27], *s;

	s = xasprintf("cd /; setpriv --reuid 1000 --regid 1000 --groups "
	    "1001,1002 %s run -- sh -c 'id -u; id -g; id -G; grep -c "
	    "CapEff:.0000000000000000 /proc/self/status'",
	    box_program("wb", "wb"));
	expect_sh(s, "1000\n1000\n1000 1001 1002\n1\n");
	free(s);
	box_sh(&b, "sleep 1000", 0, id);
	dial_wb_as(&c, 1000);
	memcpy(r.id, id, sizeof(r.id));
	memcpy(w.id, id, sizeof(w.id));
	memcpy(k.id, id, sizeof(k.id));
	memcpy(in.id, id, sizeof(in.id));
	box_call(&c, MSG_SESSION_READ, &r, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	box_call(&c, MSG_SESSION_WAIT, &w, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	box_call(&c, MSG_SESSION_SIGNAL, &k, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	box_call(&c, MSG_SESSION_STDIN, &in, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	run.argv = box_list(argv);
	box_call(&c, MSG_WB_RUN, &run, &m);
	ck_assert_uint_eq(code_of(&m), 0);
	box_call(&c, MSG_RUNNER_SESSIONS, &l, &m);
	/* its own two, of which one is the setpriv above */
	ck_assert_uint_eq(m.body.runner_sessions_are.rows.n, 2);
	dial_wb_as(&d, 1001);
	box_call(&d, MSG_RUNNER_SESSIONS, &l, &m);
	ck_assert_uint_eq(m.body.runner_sessions_are.rows.n, 0);
	chan_close(&d);
	dial_wb_as(&d, 0);
	box_call(&d, MSG_SESSION_SIGNAL, &k, &m);
	ck_assert_uint_eq(code_of(&m), 0);
	chan_close(&d);
	chan_close(&c);
}
END_TEST

/* A session that wb starts is announced, and listed for who was not there. */
START_TEST(test_announce)
{
	static const char *const argv[] = { "true", "one", NULL };
	struct msg_wb_run	 run = { .name = "mine", .cwd = "/" };
	struct row_rsession	 row;
	struct msg		 m;
	struct chan		 c;
	char			 id[27];

	ping();
	dial_wb_as(&c, 0);
	run.argv = box_list(argv);
	box_call(&c, MSG_WB_RUN, &run, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
	memcpy(id, m.body.session_running.id, sizeof(id));
	chan_close(&c);
	ck_assert_int_eq(box_recv(&b.ch, &m), 1);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_ANNOUNCE);
	ck_assert_str_eq(m.body.session_announce.id, id);
	ck_assert_str_eq(m.body.session_announce.name, "mine");
	ck_assert_uint_eq(m.body.session_announce.argv.n, 2);
	ck_assert(row_of(id, &row));
	ck_assert_uint_eq(row.origin, 1);
	ck_assert_str_eq(row.name, "mine");
}
END_TEST

/* Its stdout is closed: SIGPIPE, as in any pipe. */
START_TEST(test_wb_pipe)
{
	expect_wb("(wb run -- yes; echo $? > /tmp/$$) | head -n 1; "
	    "cat /tmp/$$; rm /tmp/$$", "y\n141\n");
}
END_TEST

/* The first signal is the command's, the second is wb's own. */
START_TEST(test_wb_signals)
{
	expect_wb("$W run -- sh -c 'trap \"echo caught; exit 9\" TERM; echo up;"
	    " while :; do sleep 0.01; done' > /tmp/$$ & w=$!; "
	    "until grep -q up /tmp/$$; do sleep 0.01; done; kill $w; "
	    "wait $w; echo $?; cat /tmp/$$; rm /tmp/$$", "9\nup\ncaught\n");
	expect_wb("$W run -- sh -c 'trap \"echo no\" TERM; echo up;"
	    " while :; do sleep 0.01; done' > /tmp/$$ 2>/dev/null & w=$!; "
	    "until grep -q up /tmp/$$; do sleep 0.01; done; kill $w; "
	    "until grep -q no /tmp/$$; do sleep 0.01; done; kill $w; "
	    "wait $w; echo $?; rm /tmp/$$; wb status | grep running",
	    "143\nrunning  2\n");
}
END_TEST

/* What one in the box may hold of the runner leaves the host its share. */
START_TEST(test_wb_greedy)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	struct msg_wb_run	 run = { .cwd = "/" };
	struct msg_session_wait	 w = { 0 };
	struct msg		 m;
	struct chan		 c[PEERS];
	char			 id[27];
	int			 i, j, n = 0;

	box_sh(&b, "sleep 1000", 0, id);
	memcpy(w.id, id, sizeof(w.id));
	for (i = 0; i < PEERS; i++) {
		dial_wb_as(&c[i], 0);
		for (j = 0; j < 17; j++)
			ck_assert_int_eq(chan_ask(&c[i], MSG_SESSION_WAIT, &w,
			    -1, NULL), 0);
		ck_assert_int_eq(box_recv(&c[i], &m), 1);
		ck_assert_uint_eq(code_of(&m), CODE_TOO_MANY);
	}
	run.argv = box_list(argv);
	chan_close(&c[0]);
	ping();
	dial_wb_as(&c[0], 0);
	do
		box_call(&c[0], MSG_WB_RUN, &run, &m);
	while (code_of(&m) == 0 && ++n < 200);
	ck_assert_uint_eq(code_of(&m), CODE_TOO_MANY);
	ck_assert_int_eq(n, 111);
	free(sh("echo the host can"));
	for (i = 0; i < PEERS; i++)
		chan_close(&c[i]);
}
END_TEST

/* The next that the runner asks, as the host hears it. */
static uint32_t
asked(void)
{
	struct msg	m;

	ck_assert_int_eq(box_recv(&b.ch, &m), 1);
	ck_assert_uint_eq(m.row->type, MSG_BOX_DENIALS);
	return m.rid;
}

static void
tell_denials(uint32_t rid)
{
	static const uint8_t		v4[] = { 169, 254, 169, 254 };
	struct msg_box_denials_are	a = { .rows = { NULL, 0 } };
	struct row_denied		d[3] = {
	    { .last_ms = now_ms(), .rule = 0, .address = { v4, 4 },
	    .protocol = 6, .port = 80, .count = 7 },
	    { .last_ms = now_ms() - 65000, .rule = 3, .address = { v4, 4 },
	    .protocol = 132, .count = 1 },
	    { .last_ms = now_ms() - 65000, .rule = 1, .count = 4711 } };
	uint8_t				buf[3][256];
	struct wire_bin			v[3];
	size_t				i;

	for (i = 0; i < 3; i++) {
		v[i].data = buf[i];
		v[i].len = (size_t)wire_encode(&wire_row_denied, &d[i],
		    buf[i], sizeof(buf[i]));
	}
	a.rows.v = v;
	a.rows.n = 3;
	ck_assert_int_eq(chan_send(&b.ch, MSG_BOX_DENIALS_ARE, rid, &a, -1),
	    0);
}

/* What wb shows is what the host says. */
START_TEST(test_wb_denials)
{
	char	*s = with_wb("wb denials"), *out, id[27];
	size_t	 len;

	box_sh(&b, s, 0, id);
	tell_denials(asked());
	out = box_output(&b, id, STREAM_STDOUT, &len);
	ck_assert_msg(strstr(out, "    0s  sealed    169.254.169.254") !=
	    NULL, "%s", out);
	ck_assert_ptr_nonnull(strstr(out, "   80  tcp       7\n"));
	ck_assert_ptr_nonnull(strstr(out, "    1m  protocol  "));
	ck_assert_ptr_nonnull(strstr(out, "    -  132       1\n"));
	ck_assert_ptr_nonnull(strstr(out, "    1m  host      (others)  "));
	ck_assert_ptr_nonnull(strstr(out, "    -  -         4711\n"));
	free(out);
	free(s);
}
END_TEST

/* Many who ask are one question, and each has an answer. */
START_TEST(test_wb_denials_many)
{
	struct msg_wb_denials	 q = { 0 };
	struct msg_runner_ping	 alive = { 0 };
	struct chan		 c[3];
	struct msg		 m;
	uint32_t		 rid;
	int			 i;

	ping();
	for (i = 0; i < 3; i++) {
		dial_wb_as(&c[i], i == 0 ? 0 : 1000);
		ck_assert_int_eq(chan_ask(&c[i], MSG_WB_DENIALS, &q, -1,
		    NULL), 0);
	}
	/* the runner has them all when it answers this */
	rid = asked();
	for (i = 0; i < 3; i++)
		box_call(&c[i], MSG_WB_STATUS, &(struct msg_wb_status){ 0 },
		    &m);
	/* and has asked nothing else */
	ck_assert_int_eq(chan_ask(&b.ch, MSG_RUNNER_PING, &alive, -1, NULL), 0);
	ck_assert_int_eq(box_recv(&b.ch, &m), 1);
	ck_assert_uint_eq(m.row->type, MSG_OK);
	tell_denials(rid);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(box_recv(&c[i], &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_WB_DENIALS_ARE);
		ck_assert_uint_eq(m.body.wb_denials_are.rows.n, 3);
	}
	/* an error is handed on */
	ck_assert_int_eq(chan_ask(&c[0], MSG_WB_DENIALS, &q, -1, NULL), 0);
	(void)chan_error(&b.ch, asked(), CODE_BUSY, "not now");
	ck_assert_int_eq(box_recv(&c[0], &m), 1);
	ck_assert_uint_eq(code_of(&m), CODE_BUSY);
	ck_assert_str_eq(m.body.error.detail, "not now");
	/* a host that goes leaves nobody waiting */
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(chan_ask(&c[i], MSG_WB_DENIALS, &q, -1,
		    NULL), 0);
	(void)asked();
	chan_close(&b.ch);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(box_recv(&c[i], &m), 1);
		ck_assert_uint_eq(code_of(&m), CODE_BUSY);
	}
	box_call(&c[0], MSG_WB_DENIALS, &q, &m);
	ck_assert_uint_eq(code_of(&m), CODE_BUSY);
	box_attach(&b);
	ck_assert_int_eq(chan_ask(&c[0], MSG_WB_DENIALS, &q, -1, NULL), 0);
	tell_denials(asked());
	ck_assert_int_eq(box_recv(&c[0], &m), 1);
	ck_assert_uint_eq(m.row->type, MSG_WB_DENIALS_ARE);
	for (i = 0; i < 3; i++)
		chan_close(&c[i]);
}
END_TEST

/* An answer to nothing, or to another question, is the end of who says it. */
START_TEST(test_wb_denials_unasked)
{
	struct msg_wb_denials	q = { 0 };
	struct chan		c;
	struct msg		m;
	int			r;

	ping();
	dial_wb_as(&c, 0);
	if (_i == 0)
		tell_denials(1);
	else if (_i == 1)
		(void)chan_error(&b.ch, 1, CODE_BUSY, "no");
	else {
		ck_assert_int_eq(chan_ask(&c, MSG_WB_DENIALS, &q, -1, NULL),
		    0);
		tell_denials(asked() + 1);
	}
	while ((r = box_recv(&b.ch, &m)) == 1)
		ck_assert_uint_eq(m.row->type, MSG_RUNNER_LOG);
	ck_assert_int_eq(r, -1);
	if (_i == 2) {
		ck_assert_int_eq(box_recv(&c, &m), 1);
		ck_assert_uint_eq(code_of(&m), CODE_BUSY);
	}
	chan_close(&c);
}
END_TEST

TCase *
case_wb(void)
{
	TCase	*t = tcase_create("wb");

	tcase_add_checked_fixture(t, setup_attached, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_wb);
	tcase_add_test(t, test_wb_sessions);
	tcase_add_test(t, test_wb_user);
	tcase_add_test(t, test_announce);
	tcase_add_test(t, test_wb_greedy);
	tcase_add_test(t, test_wb_pipe);
	tcase_add_test(t, test_wb_signals);
	tcase_add_test(t, test_wb_denials);
	tcase_add_test(t, test_wb_denials_many);
	tcase_add_loop_test(t, test_wb_denials_unasked, 0, 3);
	return t;
}
