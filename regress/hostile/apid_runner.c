/*
 * apid_runner.c: see apid_runner.h.
 */
#include <sys/socket.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apid_runner.h"
#include "fds.h"
#include "ulid.h"
#include "xmalloc.h"

#define OTHER		"01K8ZZZZZZZZZZZZZZZZZZZZZ9"

const uint8_t	mounts[31] = "1 0 0:1 / / ro - tmpfs box rw\n";
const uint8_t	nonce[32] = "the nonce that privd has given";

static void
raw(struct rn *r, const void *p, size_t len)
{
	(void)send(r->c.fd, p, len, MSG_NOSIGNAL);
}

/* [version, 121, rid, {...}] by hand: OK is 81 a1... far from it on purpose. */
static void
rn_garbage(struct rn *r, uint32_t rid)
{
	static const uint8_t	bytes[] = { 0xde, 0xad, 0xbe, 0xef, 0, 1, 2 };
	static const uint8_t	huge[] = { 0x94, PROTO_RUNNER_VERSION, 0x79,
	    0x01, 0xdf, 0xff, 0xff, 0xff, 0xff, 0xa5, 'n', 'o', 'n', 'c', 'e',
	    0xc6, 0xff, 0xff, 0xff, 0xff };
	const int		in = STDIN_FILENO;
	uint8_t			empty[] = { 0x94, PROTO_RUNNER_VERSION, 0x79,
	    (uint8_t)rid, 0x80 };
	uint8_t			ok[] = { 0x94, PROTO_RUNNER_VERSION, 0x79,
	    (uint8_t)rid, 0x83, 0xa5, 'n', 'o', 'n', 'c', 'e', 0xc4, 0x00,
	    0xa7, 'v', 'e', 'r', 's', 'i', 'o', 'n', 0xa1, '1',
	    0xac, 's', 'e', 's', 's', 'i', 'o', 'n', 's', '_', 'm', 'a', 'x',
	    0x01, 0x00 };

	switch ((int)r->act) {
	case ACT_GARBAGE:
		raw(r, bytes, sizeof(bytes));
		break;
	case ACT_HUGE:
		raw(r, huge, sizeof(huge));
		break;
	case ACT_EMPTY:
		raw(r, empty, sizeof(empty));
		break;
	case ACT_CUT:
		raw(r, ok, sizeof(ok) - 4);
		break;
	case ACT_LONG:
		raw(r, ok, sizeof(ok));
		break;
	default:
		(void)fds_send(r->c.fd, ok, sizeof(ok) - 1, &in, 1, 0);
	}
}

static void
rn_hello(struct rn *r, uint32_t rid)
{
	struct msg_runner_nonce		 n = { .version = "0",
					    .sessions_max = 17 };
	struct msg_session_chunk	 c = { .id = OTHER };
	struct msg_box_ended		 e = { .id = OTHER };
	uint8_t				 other[32] = "not that nonce";

	n.nonce.data = r->act == ACT_NONCE_WRONG ? other : nonce;
	n.nonce.len = r->box->nonced || r->act == ACT_NONCE_NONE ? 0 : 32;
	switch ((int)r->act) {
	case ACT_STALL:
		return;
	case ACT_CLOSE:
		chan_close(&r->c);
		r->used = 0;
		return;
	case ACT_REFUSES:
		(void)chan_error(&r->c, rid, CODE_COMMAND_NOT_FOUND,
		    WORLD_WORDS);
		return;
	case ACT_EARLY:
		(void)chan_send(&r->c, MSG_SESSION_CHUNK, 77, &c, -1);
		return;
	case ACT_PRIVD:
		/* the sender's own check would refuse it */
		r->c.self = A_PRIVD;
		(void)chan_send(&r->c, MSG_BOX_ENDED, 0, &e, -1);
		r->c.self = A_RUNNER;
		return;
	case ACT_GARBAGE:
	case ACT_HUGE:
	case ACT_EMPTY:
	case ACT_CUT:
	case ACT_LONG:
	case ACT_FD:
		rn_garbage(r, rid);
		return;
	default:
		(void)chan_send(&r->c, MSG_RUNNER_NONCE, rid, &n, -1);
	}
}

static void
rn_flood(struct rn *r)
{
	struct msg_session_announce	a = { .name = "" };
	struct msg_runner_log		l = { .line = "a line of its own" };
	int				i;

	for (i = 0; i < 20000; i++) {
		ulid_new(a.id);
		if (r->act == ACT_ANNOUNCE && chan_send(&r->c,
		    MSG_SESSION_ANNOUNCE, 0, &a, -1) == -1)
			break;		/* our own queue is full */
		if (r->act == ACT_LOGS && chan_send(&r->c, MSG_RUNNER_LOG, 0,
		    &l, -1) == -1)
			break;
	}
}

static void
rn_go(struct rn *r, uint32_t rid)
{
	struct msg_runner_facts		f = { 0 };
	struct msg_runner_nonce		n = { .version = "0" };
	struct msg_session_announce	a = { .id =
	    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" };

	if (r->act == ACT_STALL_GO)
		return;
	if (r->act == ACT_REFUSES_GO) {
		(void)chan_error(&r->c, rid, CODE_COMMAND_NOT_FOUND,
		    WORLD_WORDS);
		return;
	}
	FACTS(&f);
	if (r->act == ACT_LIE)
		(void)str_copy(f.uid_map, "0 0 4294967295",
		    sizeof(f.uid_map));
	(void)chan_send(&r->c, MSG_RUNNER_FACTS, rid, &f, -1);
	n.nonce.data = nonce;
	n.nonce.len = 32;
	if (r->act == ACT_NONCE_TWICE)
		(void)chan_send(&r->c, MSG_RUNNER_NONCE, rid, &n, -1);
	if (r->act == ACT_TWICE)
		(void)chan_send(&r->c, MSG_RUNNER_FACTS, rid, &f, -1);
	if (r->act == ACT_ANNOUNCE_ID)
		(void)chan_send(&r->c, MSG_SESSION_ANNOUNCE, 0, &a, -1);
	if (r->act == ACT_ANNOUNCE || r->act == ACT_LOGS)
		rn_flood(r);
}

static void
rn_exit(struct rn *r, uint32_t rid, const char *id)
{
	struct msg_session_exit	x = { .first_seq = r->chunks != 0,
	    .last_seq = r->chunks, .wall_ms = 1 };

	(void)str_copy(x.id, r->act == ACT_EXIT_OTHER ? OTHER : id,
	    sizeof(x.id));
	x.started_ms = x.ended_ms = now_ms();
	(void)chan_send(&r->c, MSG_SESSION_EXIT, rid, &x, -1);
}

static void
rn_run(struct rn *r, const struct msg *m)
{
	const struct msg_session_run	*q = &m->body.session_run;
	struct msg_session_running	 a = { .pid = 7 };
	char				 arg0[64];

	r->chunks = r->act == ACT_BIG ? 96 : r->act == ACT_FADES ? 60 : 2;
	r->gone = 0;
	if (r->act == ACT_CLOSE_RUN) {
		chan_close(&r->c);
		r->used = 0;
		return;
	}
	(void)snprintf(arg0, sizeof(arg0), "%.*s", (int)q->argv.v[0].len,
	    (const char *)q->argv.v[0].data);
	if (strcmp(arg0, "nonesuch") == 0) {
		(void)chan_error(&r->c, m->rid, CODE_COMMAND_NOT_FOUND,
		    "nonesuch: not found");
		return;
	}
	(void)str_copy(a.id, r->act == ACT_RUN_OTHER ? OTHER : q->id,
	    sizeof(a.id));
	r->run_rid = m->rid;
	if (r->act != ACT_CHUNK_FIRST)
		(void)chan_send(&r->c, MSG_SESSION_RUNNING, m->rid, &a, -1);
}

/* The answer to a SESSION_RUN that had to wait. */
static void
rn_running(struct rn *r, const char *id)
{
	struct msg_session_running	a = { .pid = 7 };

	(void)str_copy(a.id, id, sizeof(a.id));
	(void)chan_send(&r->c, MSG_SESSION_RUNNING, r->run_rid, &a, -1);
	r->run_rid = 0;
}

/* With each read two more chunks are no longer kept. */
static void
rn_fade(struct rn *r, uint64_t after, struct msg_session_chunk *c)
{
	if (r->gone + 2 < r->chunks)
		r->gone += 2;
	c->first_seq = r->gone + 1;
	if (after >= r->gone)
		return;
	c->gap_first = after + 1;
	c->gap_last = r->gone;
	c->gap_bytes = (r->gone - after) * c->bytes.len;
	c->seq = r->gone + 1;
}

/* Chunks of 32 KiB (BIG) or a line; all are there from the start. */
static void
rn_read(struct rn *r, const struct msg *m)
{
	static uint8_t			 bytes[32768];
	const struct msg_session_read	*q = &m->body.session_read;
	struct msg_session_chunk	 c = { .first_seq = 1 };

	memset(bytes, 'x', sizeof(bytes));
	(void)str_copy(c.id, r->act == ACT_CHUNK_OTHER ? OTHER : q->id,
	    sizeof(c.id));
	c.last_seq = r->chunks;
	if (q->after < r->chunks) {
		c.seq = q->after + (r->act == ACT_CHUNK_SKIP ? 2 : 1);
		c.stream = STREAM_STDOUT;
		c.bytes.data = bytes;
		c.bytes.len = r->act == ACT_BIG ? sizeof(bytes) : 6;
		if (r->act == ACT_GAP_ODD) {
			c.gap_first = 9;
			c.gap_last = 3;
		}
		if (r->act == ACT_FADES)
			rn_fade(r, q->after, &c);
	} else if (r->act == ACT_SILENT && q->wait)
		return;
	else
		c.eof = r->act != ACT_SILENT;
	(void)chan_send(&r->c, MSG_SESSION_CHUNK, m->rid, &c, -1);
	if (r->act == ACT_CHUNK_FIRST && r->run_rid != 0 && q->after == 1)
		rn_running(r, q->id);
}

static void
rn_asks(struct rn *r)
{
	struct msg_box_denials	q = { 0 };
	int			i;

	for (i = 0; i < 5000; i++)
		r->box->asks += chan_ask(&r->c, MSG_BOX_DENIALS, &q, -1,
		    NULL) == 0;
}

static void
rn_denials(struct world_box *b, const struct msg_box_denials_are *a)
{
	const struct wire_list	*rows = &a->rows;
	struct row_denied	 d;

	b->denied_by_name = a->name + a->port * 10 + a->tls * 100 +
	    a->http * 1000 + a->exhausted * 10000;
	b->denied_rows = (unsigned int)rows->n;
	if (rows->n != 0 && wire_decode_into(&wire_row_denied,
	    rows->v[0].data, rows->v[0].len, NULL, 0, &d) == 0) {
		memcpy(b->denied_addr, d.address.data, d.address.len);
		b->denied_count = d.count;
	}
	b->answers++;
}

void
rn_msg(struct rn *r, const struct msg *m)
{
	struct msg_runner_sessions_are	 are = { .rows = { NULL, 0 } };
	struct msg_session_stdin_at	 at;
	struct wire_bin			 junk = { nonce, 5 };

	switch (m->row->type) {
	case MSG_RUNNER_HELLO:
		rn_hello(r, m->rid);
		break;
	case MSG_RUNNER_GO:
		rn_go(r, m->rid);
		break;
	case MSG_SESSION_RUN:
		rn_run(r, m);
		if (r->act == ACT_ASKS)
			rn_asks(r);
		break;
	case MSG_BOX_DENIALS_ARE:
		rn_denials(r->box, &m->body.box_denials_are);
		break;
	case MSG_ERROR:
		r->box->refusals += m->body.error.code == CODE_BUSY;
		break;
	case MSG_SESSION_READ:
		rn_read(r, m);
		break;
	case MSG_SESSION_WAIT:
		r->wait_rid = m->rid;
		(void)str_copy(r->wait_id, m->body.session_wait.id, 27);
		if (r->act != ACT_SILENT && r->act != ACT_STDIN_ODD)
			rn_exit(r, m->rid, r->wait_id);
		break;
	case MSG_SESSION_STDIN:
		at.offset = m->body.session_stdin.offset +
		    m->body.session_stdin.bytes.len +
		    (r->act == ACT_STDIN_ODD);
		(void)chan_send(&r->c, MSG_SESSION_STDIN_AT, m->rid, &at, -1);
		break;
	case MSG_SESSION_SIGNAL:
		(void)chan_ok(&r->c, m->rid);
		if (r->wait_rid != 0)
			rn_exit(r, r->wait_rid, r->wait_id);
		r->wait_rid = 0;
		break;
	case MSG_RUNNER_SESSIONS:
		if (r->act == ACT_ROWS) {
			are.rows.v = &junk;
			are.rows.n = 1;
		}
		(void)chan_send(&r->c, MSG_RUNNER_SESSIONS_ARE, m->rid, &are,
		    -1);
		break;
	default:
		(void)chan_ok(&r->c, m->rid);
	}
}
