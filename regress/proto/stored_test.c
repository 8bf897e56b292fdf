/*
 * stored_test.c: the real stored, asked everything that it is asked.
 *
 * link: stored/../regress/proto/storedrig.c
 */
#include <sys/wait.h>

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storedrig.h"
#include "xmalloc.h"

static struct rig	r;

static void
setup(void)
{
	rig_init(&r);
	rig_start(&r);
}

static void
teardown(void)
{
	rig_free(&r);
}

/* ---- sandboxes --------------------------------------------------- */

START_TEST(empty)
{
	struct msg_store_info_is	is = rig_info(&r);
	struct row_sandbox		row;
	char				id[27];
	char				*log = rig_log(&r, "");

	ck_assert_str_eq(is.last_id, "");
	ck_assert_uint_eq(is.last_seq, 0);
	ck_assert_uint_eq(is.reserve_short, 0);
	ck_assert_str_eq(log, "");
	ulid_new(id);
	ck_assert_int_eq(rig_get(&r, id, &row), 0);
	free(log);
	rig_stop(&r);
}
END_TEST

START_TEST(life)
{
	static const unsigned int	path[] = { BOX_PROVISIONING,
	    BOX_BOOTSTRAPPING, BOX_READY, BOX_DRAINING, BOX_DELETING,
	    BOX_DELETED };
	struct row_sandbox		row = rig_box("demo"), got;
	struct wire_bin			label = wire_cstr("team=blue"),
	    env = wire_cstr("A=\xff\n");
	char				*log;
	size_t				i;

	row.labels.v = &label;
	row.labels.n = 1;
	row.env.v = &env;
	row.env.n = 1;
	row.memory_bytes = 1 << 30;
	ck_assert_uint_eq(rig_create(&r, &row), CODE_NONE);
	for (i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		ck_assert_uint_eq(rig_move(&r, row.id, path[i], "why",
		    path[i] == BOX_READY ? "evidence" : NULL), CODE_NONE);
		ck_assert_int_eq(rig_get(&r, row.id, &got), 1);
		ck_assert_uint_eq(got.state, path[i]);
		ck_assert_str_eq(got.reason, "why");
		ck_assert_uint_ge(got.changed_ms, row.created_ms);
	}
	ck_assert_str_eq(got.name, "demo");
	ck_assert_uint_eq(got.memory_bytes, 1 << 30);
	ck_assert_uint_eq(got.proof.len, 8);
	ck_assert_mem_eq(got.proof.data, "evidence", 8);
	ck_assert_uint_eq(got.env.n, 1);
	ck_assert_mem_eq(got.env.v[0].data, "A=\xff\n", 4);
	log = rig_log(&r, "");
	ck_assert_uint_eq(rig_verify(log), 8);
	ck_assert_uint_eq(rig_count(log, "\"type\":\"sandbox.created\""), 1);
	ck_assert_uint_eq(rig_count(log, "\"type\":\"sandbox.state\""), 6);
	ck_assert_ptr_nonnull(strstr(log, "\"data\":{\"name\":\"demo\","
	    "\"rootfs\":null}"));
	/* printf evidence | sha256sum */
	ck_assert_ptr_nonnull(strstr(log, "\"type\":\"proof.verified\","));
	ck_assert_ptr_nonnull(strstr(log, "\"data\":{\"sha256\":\"ee8250fb76e0"
	    "94b34b471f13a73dbbe51d1ae142e9df59d7c0d31ec20f0a0a8e\"}"));
	ck_assert_ptr_nonnull(strstr(log, "\"data\":{\"from\":\"READY\","
	    "\"to\":\"DRAINING\",\"reason\":\"why\","
	    "\"rootfs\":null}"));
	free(log);
}
END_TEST

/* Every pair of states: moves in the table succeed, all others do not. */
static const unsigned int	ways[BOX_NSTATES][5] = {
	[BOX_REQUESTED] = { 99 },
	[BOX_PROVISIONING] = { 1, 99 },
	[BOX_BOOTSTRAPPING] = { 1, 2, 99 },
	[BOX_READY] = { 1, 2, 3, 99 },
	[BOX_DRAINING] = { 1, 2, 3, 4, 99 },
	[BOX_DELETING] = { 5, 99 },
	[BOX_DELETED] = { 5, 6, 99 },
	[BOX_QUARANTINED] = { 1, 7, 99 },
	[BOX_STOPPED] = { 1, 8, 99 },
};

static void
bring(const struct row_sandbox *row, unsigned int state)
{
	size_t	i;

	ck_assert_uint_eq(rig_create(&r, row), CODE_NONE);
	for (i = 0; i < 5 && ways[state][i] != 99; i++)
		ck_assert_uint_eq(rig_move(&r, row->id, ways[state][i], "",
		    ways[state][i] == BOX_READY ? "p" : NULL), CODE_NONE);
}

START_TEST(transitions)
{
	struct row_sandbox	row, got;
	unsigned int		from, to, want, allowed = 0;
	char			name[32];

	for (from = 0; from < BOX_NSTATES; from++)
		for (to = 0; to < 16; to++) {
			snprintf(name, sizeof(name), "box-%u-%u", from, to);
			row = rig_box(name);
			bring(&row, from);
			want = state_move_ok(from, to) ? CODE_NONE :
			    CODE_BAD_TRANSITION;
			allowed += want == CODE_NONE;
			ck_assert_uint_eq(rig_move(&r, row.id, to, "", "p"),
			    want);
			ck_assert_int_eq(rig_get(&r, row.id, &got), 1);
			ck_assert_uint_eq(got.state, want == CODE_NONE ? to :
			    from);
		}
	ck_assert_uint_eq(allowed, 23);		/* lines of states.def */
}
END_TEST

/* What the reason of a removal says of how it went. */
START_TEST(outcomes)
{
	struct row_sandbox	a = rig_box("a"), b = rig_box("b");
	char			*log;

	ck_assert_uint_eq(rig_create(&r, &a), CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DELETING, "create-failed",
	    NULL), CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DELETED, "create-failed",
	    NULL), CODE_NONE);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, b.id, BOX_DELETING, "deleted", NULL),
	    CODE_NONE);
	log = rig_log(&r, "");
	ck_assert_uint_eq(rig_count(log, "\"outcome\":\"failed\""), 1);
	ck_assert_ptr_nonnull(strstr(log, "\"outcome\":\"failed\","
	    "\"reason\":\"create-failed\",\"data\":{\"from\":"
	    "\"REQUESTED\",\"to\":\"DELETING\""));
	free(log);
}
END_TEST

START_TEST(refused_creates)
{
	struct row_sandbox	a = rig_box("demo"), b = rig_box("demo"), c;
	char			*log;

	ck_assert_uint_eq(rig_create(&r, &a), CODE_NONE);
	ck_assert_uint_eq(rig_create(&r, &a), CODE_EXISTS);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NAME_TAKEN);
	c = b;
	RIG_COPY(c.tenant, "other");		/* names are a tenant's */
	ck_assert_uint_eq(rig_create(&r, &c), CODE_NONE);
	c = rig_box("x");
	c.state = BOX_READY;
	ck_assert_uint_eq(rig_create(&r, &c), CODE_BAD_MESSAGE);
	c = rig_box("x");
	c.version = 2;
	ck_assert_uint_eq(rig_create(&r, &c), CODE_BAD_MESSAGE);
	c = rig_box("x");
	c.proof = wire_cstr("forged");
	ck_assert_uint_eq(rig_create(&r, &c), CODE_BAD_MESSAGE);
	/* the name is free as soon as the box is on its way out */
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DELETING, "", NULL),
	    CODE_NONE);
	b = rig_box("demo");
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	/* one that is kept for evidence does not take it back */
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_QUARANTINED, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_READY, "", NULL),
	    CODE_NAME_TAKEN);
	ck_assert_uint_eq(rig_move(&r, b.id, BOX_DELETING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_READY, "", NULL), CODE_NONE);
	b = rig_box("demo");
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NAME_TAKEN);
	log = rig_log(&r, "");
	ck_assert_uint_eq(rig_verify(log), 7);	/* refusals leave none */
	free(log);
}
END_TEST

START_TEST(proofs)
{
	struct row_sandbox	a = rig_box("a"), b = rig_box("b"), got;
	char			*log;

	ck_assert_uint_eq(rig_create(&r, &a), CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_PROVISIONING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_BOOTSTRAPPING, "", NULL),
	    CODE_NONE);
	/* nothing is READY that has not proved what it is */
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_READY, "", NULL),
	    CODE_BAD_REQUEST);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_QUARANTINED, "ns_net",
	    "{\"x\":1}"), CODE_NONE);
	rig_ready(&r, &b);
	ck_assert_int_eq(rig_get(&r, a.id, &got), 1);
	ck_assert_uint_eq(got.proof.len, 7);
	log = rig_log(&r, "");
	/* printf '{"x":1}' | sha256sum; printf '{}' | sha256sum */
	ck_assert_ptr_nonnull(strstr(log, "\"type\":\"proof.failed\","));
	ck_assert_ptr_nonnull(strstr(log, "\"outcome\":\"failed\","
	    "\"reason\":\"ns_net\",\"data\":{\"field\":\"ns_net\","
	    "\"sha256\":\"5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5"
	    "aeaffcb720918b22\"}"));
	ck_assert_ptr_nonnull(strstr(log, "\"data\":{\"sha256\":\"44136fa355b3"
	    "678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}"));
	/* the evidence comes before what follows from it */
	ck_assert(strstr(log, "proof.failed") <
	    strstr(log, "\"to\":\"QUARANTINED\""));
	rig_verify(log);
	free(log);
}
END_TEST

START_TEST(moved_values)
{
	struct row_sandbox	row = rig_box("a"), got;
	struct msg_sandbox_move	m = { .to = BOX_PROVISIONING,
	    .actor = "test", .rootfs = "minimal", .pids = 4096 };

	row.memory_bytes = 77;
	ck_assert_uint_eq(rig_create(&r, &row), CODE_NONE);
	RIG_COPY(m.id, row.id);
	m.durable = 1;
	rig_ok(&r.apid, MSG_SANDBOX_MOVE, &m);
	ck_assert_int_eq(rig_get(&r, row.id, &got), 1);
	ck_assert_str_eq(got.rootfs, "minimal");
	ck_assert_uint_eq(got.pids, 4096);
	ck_assert_uint_eq(got.memory_bytes, 77);
	ulid_new(m.id);
	rig_refused(&r.apid, MSG_SANDBOX_MOVE, &m, CODE_NOT_FOUND);
}
END_TEST

/* Pages of SANDBOX_LIST and SESSION_ROWS, over their ends. */
START_TEST(lists)
{
	struct msg_sandbox_list	q = { 0 };
	struct row_sandbox	row, got;
	struct msg		m;
	unsigned int		i, n, pages = 0;
	char			name[32], prev[27] = "";
	static uint8_t		copy[WIRE_MAX];
	struct wire_bin		env;
	static uint8_t		big[15000];

	memset(big, 'e', sizeof(big));
	big[1] = '=';
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		row = rig_box(name);
		env.data = big;
		env.len = sizeof(big);
		row.env.v = &env;
		row.env.n = 1;
		ck_assert_uint_eq(rig_create(&r, &row), CODE_NONE);
	}
	for (n = 0;; pages++) {
		rig_ask(&r.apid, MSG_SANDBOX_LIST, &q, &m);
		ck_assert_uint_eq(m.row->type, MSG_SANDBOX_PAGE);
		if (m.body.sandbox_page.rows.n == 0)
			break;
		for (i = 0; i < m.body.sandbox_page.rows.n; i++, n++) {
			const struct wire_bin *b =
			    &m.body.sandbox_page.rows.v[i];

			memcpy(copy, b->data, b->len);
			ck_assert_int_eq(wire_decode_into(&wire_row_sandbox,
			    copy, b->len, &env, 1, &got), 0);
			ck_assert_str_gt(got.id, prev);
			RIG_COPY(prev, got.id);
			ck_assert_uint_eq(got.proof.len, 0);
		}
		RIG_COPY(q.after, prev);
	}
	ck_assert_uint_eq(n, 20);
	ck_assert_uint_ge(pages, 5);
}
END_TEST

/* ---- sessions ---------------------------------------------------- */

/* What the key made: ids of a sandbox and a session, "" for none. */
static void
key_is(const char *tenant, const char *key, const char *sandbox,
    const char *session)
{
	struct msg_key_get	 q = { 0 };
	struct msg		 m;
	struct wire_bin		 asked = rig_asked(key);

	RIG_COPY(q.tenant, tenant);
	RIG_COPY(q.key, key);
	rig_ask(&r.apid, MSG_KEY_GET, &q, &m);
	ck_assert_int_eq(m.row->type, MSG_KEY_IS);
	ck_assert_str_eq(m.body.key_is.sandbox, sandbox);
	ck_assert_str_eq(m.body.key_is.session, session);
	ck_assert_uint_eq(m.body.key_is.asked.len, *sandbox == '\0' ? 0 : 32);
	if (*sandbox != '\0')
		ck_assert_mem_eq(m.body.key_is.asked.data, asked.data, 32);
}

/* What a key made stands with it, and nothing is made twice with one. */
START_TEST(keys)
{
	struct row_sandbox		a = rig_box("a"), b = rig_box("b");
	struct row_session		s;
	struct msg_sandbox_create	m = { .actor = "test", .key = "k" };
	static uint8_t			buf[WIRE_MAX];

	key_is(RIG_TENANT, "k", "", "");
	r.key = "k";
	rig_ready(&r, &a);
	key_is(RIG_TENANT, "k", a.id, "");
	key_is("other", "k", "", "");
	ck_assert_uint_eq(rig_create(&r, &b), CODE_EXISTS);
	s = rig_session(a.id);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_EXISTS);
	r.key = "session: \"~/";
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	key_is(RIG_TENANT, r.key, a.id, s.id);
	/* one that was refused is not used */
	r.key = "refused";
	RIG_COPY(b.name, "a");
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NAME_TAKEN);
	key_is(RIG_TENANT, "refused", "", "");
	RIG_COPY(b.name, "b");
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	key_is(RIG_TENANT, "refused", b.id, "");
	/* a key without its hash */
	r.key = NULL;
	b = rig_box("c");
	m.row.len = (size_t)wire_encode(&wire_row_sandbox, &b, buf,
	    sizeof(buf));
	m.row.data = buf;
	ck_assert_uint_eq(rig_code(&r.apid, MSG_SANDBOX_CREATE, &m),
	    CODE_BAD_MESSAGE);
	/* and they outlive the process */
	rig_kill(&r);
	rig_start(&r);
	key_is(RIG_TENANT, "k", a.id, "");
	key_is(RIG_TENANT, "session: \"~/", a.id, s.id);
}
END_TEST

START_TEST(sessions)
{
	struct row_sandbox	box = rig_box("a"), cold = rig_box("b");
	struct row_session	s, t;
	struct wire_bin		other = wire_cstr("other");
	char			*log;

	rig_ready(&r, &box);
	ck_assert_uint_eq(rig_create(&r, &cold), CODE_NONE);
	s = rig_session(box.id);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);	/* the same */
	t = s;
	t.argv.v = &other;
	t.argv.n = 1;
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_EXISTS);
	t = s;
	t.origin = 1;
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_EXISTS);
	t = s;
	t.state = 0;
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_BAD_TRANSITION);
	s.state = 2;
	s.exit_code = 137;
	s.signal = 9;
	s.left_behind = 2;
	RIG_COPY(s.reason, "timeout");
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);	/* a repeat */
	t = s;
	t.exit_code = 0;
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_ENDED);
	/* who may have sessions */
	t = rig_session(cold.id);
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_NOT_READY);
	t.origin = 1;				/* the box's own word */
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_NONE);
	ulid_new(t.sandbox);
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_NOT_FOUND);
	t = rig_session(box.id);
	RIG_COPY(t.tenant, "other");
	ck_assert_uint_eq(rig_put(&r, &t, 1), CODE_NOT_FOUND);
	log = rig_log(&r, "");
	rig_verify(log);
	ck_assert_uint_eq(rig_count(log, "\"type\":\"session.started\""), 2);
	ck_assert_uint_eq(rig_count(log, "\"type\":\"session.ended\""), 1);
	ck_assert_ptr_nonnull(strstr(log, "\"data\":{\"name\":null,"
	    "\"argv\":[\"echo\",\"hello\"],\"user\":null}"));
	ck_assert_ptr_nonnull(strstr(log, "\"outcome\":\"failed\","
	    "\"reason\":\"timeout\",\"data\":{\"exitCode\":137,\"signal\":9,"
	    "\"leftBehind\":2}"));
	free(log);
}
END_TEST

static unsigned int
session_rows(const char *sandbox, int open_only, char first[27])
{
	struct msg_session_rows	q = { .limit = 100,
	    .open_only = open_only != 0 };
	struct row_session	got;
	struct wire_bin		items[4];
	struct msg		m;
	unsigned int		n = 0;
	size_t			i;

	RIG_COPY(q.sandbox, sandbox);
	first[0] = '\0';
	for (;;) {
		rig_ask(&r.apid, MSG_SESSION_ROWS, &q, &m);
		ck_assert_uint_eq(m.row->type, MSG_SESSION_PAGE);
		if (m.body.session_page.rows.n == 0)
			return n;
		ck_assert_uint_le(m.body.session_page.rows.n, q.limit);
		for (i = 0; i < m.body.session_page.rows.n; i++, n++) {
			const struct wire_bin *b =
			    &m.body.session_page.rows.v[i];

			ck_assert_int_eq(wire_decode_into(&wire_row_session,
			    b->data, b->len, items, 4, &got), 0);
			ck_assert_str_eq(got.sandbox, sandbox);
			ck_assert_str_gt(got.id, q.after);
			RIG_COPY(q.after, got.id);
			if (first[0] == '\0')
				ck_assert_int_eq(str_copy(first,
				    got.id, 27), 0);
		}
	}
}

/* 256 ended sessions per box are kept; what runs is not counted. */
START_TEST(bounded_sessions)
{
	struct row_sandbox	a = rig_box("a"), b = rig_box("b");
	struct row_session	run, s, third;
	char			first[27], ids[3][27];
	unsigned int		i;

	rig_ready(&r, &a);
	rig_ready(&r, &b);
	run = rig_session(a.id);
	ck_assert_uint_eq(rig_put(&r, &run, 1), CODE_NONE);
	for (i = 0; i < 259; i++) {
		s = rig_session(a.id);
		if (i < 3)
			RIG_COPY(ids[i], s.id);
		s.state = 2;
		ck_assert_uint_eq(rig_put(&r, &s, 0), CODE_NONE);
	}
	third = rig_session(b.id);
	third.state = 2;
	ck_assert_uint_eq(rig_put(&r, &third, 1), CODE_NONE);
	ck_assert_uint_eq(session_rows(a.id, 0, first), 257);
	ck_assert_uint_eq(session_rows(a.id, 1, first), 1);
	ck_assert_str_eq(first, run.id);
	ck_assert_uint_eq(session_rows(b.id, 1, first), 0);
	ck_assert_uint_eq(session_rows(b.id, 0, first), 1);
	/* the oldest is forgotten: its id may come again */
	RIG_COPY(s.id, ids[0]);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	run.state = 2;
	ck_assert_uint_eq(rig_put(&r, &run, 1), CODE_NONE);
	ck_assert_uint_eq(session_rows(a.id, 0, first), 256);
}
END_TEST

START_TEST(no_argv)
{
	struct row_sandbox	box = rig_box("a");
	struct row_session	s;
	char			*log;

	rig_stop(&r);
	r.audit_argv = 0;
	rig_start(&r);
	rig_ready(&r, &box);
	s = rig_session(box.id);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	log = rig_log(&r, "");
	ck_assert_ptr_nonnull(strstr(log,
	    "\"data\":{\"name\":null,\"argv\":null,\"user\":null}"));
	ck_assert_ptr_null(strstr(log, "hello"));
	rig_verify(log);
	free(log);
}
END_TEST

/* ---- events ------------------------------------------------------ */

static unsigned int
append(struct chan *c, unsigned int type, const struct wire_desc *d,
    const void *ev, const char *outcome)
{
	struct msg_event_append	m = { .type = type, .durable = 1,
	    .actor = "test" };
	static uint8_t		buf[WIRE_MAX];
	ssize_t			n = wire_encode(d, ev, buf, sizeof(buf));

	ck_assert_int_gt(n, 0);
	(void)str_copy(m.outcome, outcome, sizeof(m.outcome));
	m.data.data = buf;
	m.data.len = (size_t)n;
	return rig_code(c, MSG_EVENT_APPEND, &m);
}

START_TEST(appended)
{
	struct event_server_started	up = { .version = "1",
	    .generation = 3 };
	struct event_server_stopped	down = { 0 };
	struct event_session_signalled	sig = { .signal = 15 };
	struct event_reconcile_done	rec = { .attached = 2 };
	struct event_sandbox_state	forged = { .from = "READY",
	    .to = "DELETED" };
	char				*log;

	ck_assert_uint_eq(append(&r.privd, EVENT_SERVER_STARTED,
	    &wire_event_server_started, &up, "ok"), CODE_NONE);
	ck_assert_uint_eq(append(&r.apid, EVENT_SESSION_SIGNALLED,
	    &wire_event_session_signalled, &sig, "ok"), CODE_NONE);
	ck_assert_uint_eq(append(&r.apid, EVENT_RECONCILE_DONE,
	    &wire_event_reconcile_done, &rec, "ok"), CODE_NONE);
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	ck_assert_uint_eq(append(&r.privd, EVENT_SERVER_STOPPED,
	    &wire_event_server_stopped, &down, "ok"), CODE_NONE);
	/* what follows from the tables is not said by hand */
	ck_assert_uint_eq(append(&r.apid, EVENT_SANDBOX_STATE,
	    &wire_event_sandbox_state, &forged, "ok"), CODE_BAD_MESSAGE);
	ck_assert_uint_eq(append(&r.privd, EVENT_SESSION_SIGNALLED,
	    &wire_event_session_signalled, &sig, "ok"), CODE_BAD_MESSAGE);
	ck_assert_uint_eq(append(&r.apid, 9999,
	    &wire_event_session_signalled, &sig, "ok"), CODE_BAD_MESSAGE);
	ck_assert_uint_eq(append(&r.apid, EVENT_RECONCILE_DONE,
	    &wire_event_session_signalled, &sig, "ok"), CODE_BAD_MESSAGE);
	ck_assert_uint_eq(append(&r.apid, EVENT_SESSION_SIGNALLED,
	    &wire_event_session_signalled, &sig, "fine"), CODE_BAD_MESSAGE);
	log = rig_log(&r, "");
	ck_assert_uint_eq(rig_verify(log), 5);
	ck_assert_ptr_nonnull(strstr(log, "\"data\":{\"version\":\"1\","
	    "\"generation\":3}"));
	ck_assert_ptr_nonnull(strstr(log, "\"outcome\":\"denied\",\"reason\":"
	    "null,\"data\":{\"method\":\"GET\",\"path\":\"/v1\","
	    "\"peer\":\"127.0.0.1:9\"}"));
	free(log);
}
END_TEST

START_TEST(numbers)
{
	struct msg_event_read	q = { .limit = 10 };
	struct msg		m;
	unsigned int		i;
	char			*all;

	for (i = 0; i < 35; i++)
		ck_assert_uint_eq(rig_append(&r, i % 5 == 0 ? "blue" : "red",
		    i == 34), CODE_NONE);
	all = rig_log(&r, "");
	ck_assert_uint_eq(rig_verify(all), 35);
	free(all);
	all = rig_log(&r, "blue");
	ck_assert_uint_eq(rig_count(all, "\n"), 7);
	ck_assert_uint_eq(rig_count(all, "red"), 0);
	ck_assert_ptr_nonnull(strstr(all, "{\"seq\":31,"));
	free(all);
	/* exclusive, bounded, told where to go on */
	q.after = 20;
	rig_ask(&r.apid, MSG_EVENT_READ, &q, &m);
	ck_assert_uint_eq(m.body.event_page.next, 30);
	ck_assert_uint_eq(m.body.event_page.last, 35);
	ck_assert_int_eq(strncmp((const char *)m.body.event_page.lines.data,
	    "{\"seq\":21,", 10), 0);
	q.after = 35;
	rig_ask(&r.apid, MSG_EVENT_READ, &q, &m);
	ck_assert_uint_eq(m.body.event_page.lines.len, 0);
	ck_assert_uint_eq(m.body.event_page.next, 35);
	q.after = INT64_MAX;			/* a number of the future */
	rig_ask(&r.apid, MSG_EVENT_READ, &q, &m);
	ck_assert_uint_eq(m.body.event_page.lines.len, 0);
	ck_assert_uint_eq(m.body.event_page.next, INT64_MAX);
}
END_TEST

/* 2,500 records of one tenant before one of another: several looks. */
START_TEST(filtered)
{
	struct msg_event_read	q = { .limit = 5, .wait = 1,
	    .tenant = "blue" };
	struct msg		m;
	unsigned int		i;

	for (i = 0; i < 2500; i++)
		ck_assert_uint_eq(rig_append(&r, "red", 0), CODE_NONE);
	ck_assert_uint_eq(rig_append(&r, "blue", 1), CODE_NONE);
	rig_ask(&r.apid, MSG_EVENT_READ, &q, &m);
	ck_assert_int_eq(strncmp((const char *)m.body.event_page.lines.data,
	    "{\"seq\":2501,", 12), 0);
	ck_assert_uint_eq(m.body.event_page.next, 2501);
	q.wait = 0;				/* pages without any of its */
	rig_ask(&r.apid, MSG_EVENT_READ, &q, &m);
	ck_assert_uint_eq(m.body.event_page.lines.len, 0);
	ck_assert_uint_eq(m.body.event_page.next, 1000);
	ck_assert_uint_eq(m.body.event_page.last, 2501);
}
END_TEST

static int
quiet(struct chan *c)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

/* A follower and a writer on one channel: every record once, in order. */
START_TEST(follow)
{
	struct msg_event_read	q = { .limit = 7, .wait = 1 };
	struct event_auth_failed ev = { .method = "GET" };
	struct msg_event_append	w = { .type = EVENT_AUTH_FAILED,
	    .actor = "t", .outcome = "denied" };
	uint8_t			buf[512];
	struct msg		m;
	uint32_t		reading = 0, rid;
	uint64_t		seen = 0, seq;
	unsigned int		sent = 0;
	const char		*p, *end;

	w.data.data = buf;
	w.data.len = (size_t)wire_encode(&wire_event_auth_failed, &ev, buf,
	    sizeof(buf));
	while (seen < 500) {
		if (reading == 0) {
			q.after = seen;
			ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_READ, &q,
			    -1, &reading), 0);
		}
		for (; sent < 500 && sent < seen + 20; sent++) {
			w.durable = sent % 3 == 0;
			ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_APPEND,
			    &w, -1, &rid), 0);
		}
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		if (m.rid != reading)
			continue;
		reading = 0;
		ck_assert_uint_gt(m.body.event_page.lines.len, 0);
		p = (const char *)m.body.event_page.lines.data;
		end = p + m.body.event_page.lines.len;
		for (; p < end; p = (const char *)memchr(p, '\n',
		    (size_t)(end - p)) + 1) {
			seq = strtoull(p + 7, NULL, 10);
			ck_assert_uint_eq(seq, ++seen);
		}
		ck_assert_uint_eq(m.body.event_page.next, seen);
	}
}
END_TEST

START_TEST(cancelled)
{
	struct msg_event_read	q = { .limit = 5, .wait = 1 };
	struct msg_event_cancel	c = { 0 };
	struct msg		m;
	uint32_t		rid, cid;

	ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_READ, &q, -1, &rid), 0);
	(void)rig_info(&r);			/* it has been read */
	ck_assert(quiet(&r.apid));
	c.rid = rid;
	ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_CANCEL, &c, -1, &cid),
	    0);
	ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(m.row->type, MSG_EVENT_PAGE);
	ck_assert_uint_eq(m.body.event_page.lines.len, 0);
	ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
	ck_assert_uint_eq(m.rid, cid);
	ck_assert_uint_eq(m.row->type, MSG_OK);
	rig_ok(&r.apid, MSG_EVENT_CANCEL, &c);	/* nothing to take back */
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	(void)rig_info(&r);
	ck_assert(quiet(&r.apid));
}
END_TEST

/* ---- the verifier in another language ---------------------------- */

/* What verify-chain.py says of these bytes: its exit status. */
static int
verify(const char *log, size_t len)
{
	char	cmd[512];
	FILE	*f;
	int	st;

	snprintf(cmd, sizeof(cmd), "python3 %s/regress/box/verify-chain.py "
	    ">%s/verify.out 2>&1", WB_TOP_SRCDIR, r.dir);
	ck_assert_ptr_nonnull(f = popen(cmd, "w"));
	(void)fwrite(log, 1, len, f);	/* it may stop reading at a fault */
	st = pclose(f);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

/* L01: flip, delete, swap, duplicate: each is seen; the truth passes. */
START_TEST(chain)
{
	struct row_sandbox	box = rig_box("a");
	struct row_session	s;
	struct wire_bin		argv[3] = {
	    { (const uint8_t *)"\xff\xfe \"", 4 }, { NULL, 0 },
	    { (const uint8_t *)"\x01\x02\x03\x04\x05\x06\x07", 7 } };
	char			*log, *bad, *l2, *l3;
	size_t			n, n2, i;

	if (system("python3 -c 'import json' 2>/dev/null") != 0) {
		printf("skipped: chain: no python3\n");
		return;
	}
	signal(SIGPIPE, SIG_IGN);
	rig_ready(&r, &box);
	s = rig_session(box.id);
	s.argv.v = argv;
	s.argv.n = 3;
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	s.state = 2;
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	log = rig_log(&r, "");
	n = strlen(log);
	ck_assert_ptr_nonnull(strstr(log, "\"argv\":[{\"base64\":\"//4gIg==\"},"
	    "\"\",{\"base64\":\"AQIDBAUGBw==\"}]"));
	ck_assert_int_eq(verify(log, n), 0);
	ck_assert_int_eq(verify(log, n - 1), 1);	/* the newline */
	bad = xmalloc(2 * n);
	l2 = strchr(log, '\n') + 1;
	l3 = strchr(l2, '\n') + 1;
	n2 = (size_t)(l3 - l2);
	for (i = 20; i < n2; i += 61) {
		memcpy(bad, log, n);
		bad[(l2 - log) + (ptrdiff_t)i] ^= 1;
		ck_assert_int_ne(verify(bad, n), 0);
	}
	memcpy(bad, log, (size_t)(l2 - log));		/* line 2 left out */
	memcpy(bad + (l2 - log), l3, strlen(l3));
	ck_assert_int_ne(verify(bad, n - n2), 0);
	memcpy(bad, log, (size_t)(l3 - log));		/* and twice */
	memcpy(bad + (l3 - log), l2, strlen(l2));
	ck_assert_int_ne(verify(bad, n + n2), 0);
	free(bad);
	free(log);
}
END_TEST

/* ---- order, restart ---------------------------------------------- */

/* Sent in one breath, durable and not; the last one decides. */
START_TEST(ordered)
{
	struct row_sandbox	row = rig_box("a"), got;
	struct msg_sandbox_move	m = { .actor = "t" };
	struct msg		a;
	uint32_t		rid[4];
	unsigned int		i, answers = 0;
	static const unsigned int path[] = { BOX_PROVISIONING,
	    BOX_BOOTSTRAPPING, BOX_READY, BOX_DRAINING };

	ck_assert_uint_eq(rig_create(&r, &row), CODE_NONE);
	RIG_COPY(m.id, row.id);
	for (i = 0; i < 4; i++) {
		m.to = path[i];
		m.durable = i == 2;
		m.proof = wire_cstr(i == 2 ? "p" : "");
		ck_assert_int_eq(chan_ask(&r.apid, MSG_SANDBOX_MOVE, &m, -1,
		    &rid[i]), 0);
	}
	while (answers < 4) {
		ck_assert_int_eq(rig_recv(&r.apid, &a), 1);
		ck_assert_uint_eq(a.row->type, MSG_OK);
		answers++;
	}
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	ck_assert_int_eq(rig_get(&r, row.id, &got), 1);
	ck_assert_uint_eq(got.state, BOX_DRAINING);
}
END_TEST

START_TEST(restart)
{
	struct row_sandbox		a = rig_box("a"), b = rig_box("b"),
	    got;
	struct row_session		s;
	struct msg_store_info_is	is;
	char				*before, *after;

	rig_ready(&r, &a);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	s = rig_session(a.id);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	before = rig_log(&r, "");
	rig_stop(&r);
	rig_start(&r);
	after = rig_log(&r, "");
	ck_assert_str_eq(before, after);
	is = rig_info(&r);
	ck_assert_str_eq(is.last_id, s.id);
	ck_assert_uint_eq(is.last_seq, rig_verify(after));
	ck_assert_int_eq(rig_get(&r, a.id, &got), 1);
	ck_assert_uint_eq(got.state, BOX_READY);
	ck_assert_uint_eq(got.proof.len, 2);
	b = rig_box("a");
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NAME_TAKEN);
	free(before);
	free(after);
	/* an id that a box made up does not move the floor */
	s = rig_session(a.id);
	s.origin = 1;
	memset(s.id, '7', 26);
	ck_assert_uint_eq(rig_put(&r, &s, 1), CODE_NONE);
	ck_assert_str_eq(rig_info(&r).last_id, is.last_id);
	before = rig_log(&r, "");
	rig_verify(before);
	free(before);
}
END_TEST

/* What was only accepted is committed by an orderly end. */
START_TEST(stop_commits)
{
	unsigned int	i;
	char		*log;

	for (i = 0; i < 10; i++)
		ck_assert_uint_eq(rig_append(&r, "", 0), CODE_NONE);
	rig_stop(&r);
	rig_start(&r);
	log = rig_log(&r, "");
	ck_assert_uint_eq(rig_verify(log), 10);
	free(log);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("stored");
	TCase	*t = tcase_create("stored");
	SRunner	*sr;
	int	 bad;

	rig_check();
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, empty);
	tcase_add_test(t, life);
	tcase_add_test(t, transitions);
	tcase_add_test(t, outcomes);
	tcase_add_test(t, refused_creates);
	tcase_add_test(t, proofs);
	tcase_add_test(t, moved_values);
	tcase_add_test(t, lists);
	tcase_add_test(t, keys);
	tcase_add_test(t, sessions);
	tcase_add_test(t, bounded_sessions);
	tcase_add_test(t, no_argv);
	tcase_add_test(t, appended);
	tcase_add_test(t, numbers);
	tcase_add_test(t, filtered);
	tcase_add_test(t, follow);
	tcase_add_test(t, cancelled);
	tcase_add_test(t, chain);
	tcase_add_test(t, ordered);
	tcase_add_test(t, restart);
	tcase_add_test(t, stop_commits);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	bad = srunner_ntests_failed(sr);
	srunner_free(sr);
	return bad != 0;
}
