/*
 * api_exec.c: run a command and collect or follow its output.
 *
 * Theory of operation.  A struct exec lives from the start of its session
 * until its answer is complete.  It is complete when both are there: the end
 * of the output (the reader's end) and the end of the session on disk.  The
 * reader is made as soon as the request is on its way to the runner, so that
 * output waits for no round trip.  A runner may answer a SESSION_READ before
 * the SESSION_RUN: what it tells is kept (early) until SESSION_RUNNING has
 * come, for a command that does not start is a problem document with its own
 * status, and nothing may be written to the client before.
 *
 * The client that goes away loses only this: the command goes on.
 *
 * Must never: hold more than COLLECT_MAX of each stream, or more of a stream
 * to a client than its queue takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "xmalloc.h"

#define COLLECT_MAX	(1024UL * 1024)
#define LOST_MS		15000		/* for the end of a box that is lost */

struct collect {
	uint8_t	*data;			/* owned */
	size_t	 len, cap;
};

struct exec {
	struct http_req		*req;
	struct session		*session;	/* referenced, or NULL */
	struct reader		*reader;	/* owned, or NULL */
	struct session_wait	 end;
	int			 stream, running, begun;
	int			 told, ended, gone;
	enum http_gone		 why;
	struct collect		 out[2];
	struct collect		 early;		/* lines, before it runs */
	int			 truncated;
};

#define GAP_MAX		128

static char	line[GAP_MAX + LINE_MAX_BYTES];	/* one thread, one at a time */

/* ---- life --------------------------------------------------------- */

static void
exec_free(struct exec *e)
{
	reader_free(e->reader);
	session_wait_drop(&e->end);
	if (e->session != NULL)
		session_unref(e->session);
	free(e->out[0].data);
	free(e->out[1].data);
	free(e->early.data);
	free(e);
}

/* Ends without a result: the command goes on, or nobody knows. */
static void
exec_break(struct exec *e, enum wb_code code, const char *why)
{
	struct http_req	*r = e->req;

	if (e->stream && e->begun)
		http_abort(r);
	else if (e->session != NULL)
		api_fail_session(r, code, e->session, why);
	else
		api_fail(r, code, why);
	exec_free(e);
}

static void
exec_gone(struct http_req *r, enum http_gone why, void *arg)
{
	struct exec	*e = arg;

	(void)r;
	if (!e->running) {	/* its start is under way: exec_done() */
		e->gone = 1;
		e->why = why;
		return;
	}
	exec_break(e, CODE_STOPPING, why == HTTP_GONE_STOPPING ?
	    "The server stops; the command goes on." :
	    "The connection was closed; the command goes on.");
}

/* ---- output ------------------------------------------------------- */

static void
append(struct collect *c, const void *data, size_t n)
{
	while (c->cap < c->len + n) {
		c->cap = c->cap == 0 ? 4096 : 2 * c->cap;
		c->data = xreallocarray(c->data, c->cap, 1);
	}
	if (n != 0)
		memcpy(c->data + c->len, data, n);
	c->len += n;
}

static void
collect(struct exec *e, struct collect *c, const struct wire_bin *b)
{
	size_t	n = COLLECT_MAX - c->len;

	if (b->len > n)
		e->truncated = 1;
	append(c, b->data, b->len < n ? b->len : n);
}

static size_t
exec_room(void *arg)
{
	const struct exec	*e = arg;

	if (!e->stream)
		return HTTP_QUEUE_MAX;
	if (!e->begun)		/* all of it has to fit the queue later */
		return HTTP_QUEUE_MAX / 2 - e->early.len;
	return http_room(e->req);
}

/* A gap as a line into dst; its length. */
static size_t
gap_line(char *dst, size_t size, const struct msg_session_chunk *c)
{
	return (size_t)snprintf(dst, size, "{\"gap\":{\"first\":%llu,"
	    "\"last\":%llu,\"bytes\":%llu}}\n",
	    (unsigned long long)c->gap_first,
	    (unsigned long long)c->gap_last,
	    (unsigned long long)c->gap_bytes);
}

/* What a chunk says as lines, in `line'; their length. */
static size_t
chunk_lines(const struct msg_session_chunk *c)
{
	size_t	n = 0;

	if (c->gap_last != 0)
		n = gap_line(line, GAP_MAX, c);
	if (c->seq != 0)
		n += chunk_line(line + n, c->seq, (unsigned int)c->stream,
		    c->bytes.data, c->bytes.len);
	return n;
}

static void
exec_chunk(void *arg, const struct msg_session_chunk *c)
{
	struct exec	*e = arg;
	size_t		 n;

	if (!e->stream) {
		if (c->gap_last != 0)
			e->truncated = 1;
		if (c->seq != 0)
			collect(e, &e->out[c->stream == STREAM_STDERR],
			    &c->bytes);
		return;
	}
	n = chunk_lines(c);
	if (!e->begun)
		append(&e->early, line, n);
	else if (http_write(e->req, line, n) != 1)
		exec_break(e, CODE_INTERNAL, "The connection was closed.");
}

static void
collected_json(json_t *o, const char *name, const char *enc_name,
    const struct collect *c)
{
	const char	*enc;

	(void)json_object_set_new(o, name, bytes_json(c->data, c->len, &enc));
	(void)json_object_set_new(o, enc_name, json_string(enc));
}

static void
exec_result(struct exec *e)
{
	json_t	*o = json_pack("{ss}", "sessionId", e->session->id);

	collected_json(o, "stdout", "stdoutEncoding", &e->out[0]);
	collected_json(o, "stderr", "stderrEncoding", &e->out[1]);
	(void)json_object_set_new(o, "truncated",
	    json_boolean(e->truncated));
	session_result(e->session, o);
	http_reply_json(e->req, 200, o);
}

static void
exec_maybe_over(struct exec *e)
{
	if (!e->told || !e->ended)
		return;
	if (!e->stream)
		exec_result(e);
	else if (http_write_json(e->req, json_pack("{so}", "end",
	    session_json(e->session))) == 1)
		http_end(e->req);
	else
		http_abort(e->req);
	exec_free(e);
}

static void
exec_late(struct http_req *r, void *arg)
{
	(void)r;
	exec_break(arg, CODE_INTERNAL, "The connection to the sandbox broke; "
	    "the command may go on.");
}

static void
exec_told(void *arg, enum wb_code code)
{
	struct exec	*e = arg;

	e->told = 1;
	if (code != CODE_NONE && e->running) {
		e->truncated = 1;
		if (!e->ended)	/* of a box that is removed it comes soon */
			http_timer(e->req, LOST_MS, exec_late, e);
	}
	if (e->session->box->condemned && !e->ended && e->running)
		exec_break(e, CODE_QUARANTINED,
		    "The sandbox was quarantined.");
	else
		exec_maybe_over(e);
}

static const struct reader_ops	exec_ops = { exec_room, exec_chunk,
    exec_told };

static void
exec_drain(struct http_req *r, void *arg)
{
	struct exec	*e = arg;

	(void)r;
	if (e->reader != NULL)
		reader_more(e->reader);
}

static void
exec_ended(struct session_wait *w, struct session *s)
{
	struct exec	*e = w->arg;

	(void)s;
	e->ended = 1;
	exec_maybe_over(e);
}

/* ---- start -------------------------------------------------------- */

static void
exec_sent(struct session *s, void *arg)
{
	struct exec	*e = arg;

	e->session = session_ref(s);
	/* there is a channel, and no reader yet: never NULL */
	e->reader = reader_new(s, 0, 1, 1, &exec_ops, e);
}

static void
exec_running(struct exec *e)
{
	e->running = 1;
	e->end.fn = exec_ended;
	e->end.arg = e;
	if (e->stream) {
		e->begun = 1;
		http_stream(e->req, 200, "application/x-ndjson");
		(void)http_write_json(e->req, json_pack("{s{ss}}", "start",
		    "sessionId", e->session->id));
		if (e->early.len != 0)	/* gone: exec_gone() comes */
			(void)http_write(e->req, e->early.data,
			    e->early.len);
		e->early.len = 0;
		reader_more(e->reader);		/* there is more room now */
	}
	session_wait(e->session, &e->end);	/* may end it */
}

static void
exec_done(struct session *s, enum wb_code code, const char *detail, void *arg)
{
	struct exec	*e = arg;

	if (e->session == NULL && s != NULL)
		e->session = session_ref(s);
	if (code != CODE_NONE) {
		exec_break(e, code, detail);
		return;
	}
	key_used(e->req);
	api_pour(e->req, e->session);
	if (e->gone) {
		e->running = 1;
		exec_gone(NULL, e->why, e);
	} else
		exec_running(e);
}

static struct exec *
exec_new(struct http_req *r)
{
	struct exec	*e = xcalloc(1, sizeof(*e));

	e->req = r;
	e->stream = http_query_u64(r, "stream", 0) != 0;
	http_on_gone(r, exec_gone, e);
	http_on_drain(r, exec_drain, e);
	return e;
}

/* It runs or has run already: what is kept of its output, and its end. */
static void
exec_made(struct http_req *r, struct session *s)
{
	const char	*why;
	enum wb_code	 code = box_refuses_talk(s->box, &why);
	struct exec	*e;

	if (code != CODE_NONE) {
		api_fail_session(r, code, s, why);
		return;
	}
	e = exec_new(r);
	e->session = session_ref(s);
	e->reader = reader_new(s, 0, 1, 1, &exec_ops, e);
	if (e->reader == NULL)
		exec_break(e, CODE_TOO_MANY, "Too many read this session.");
	else {
		api_pour(r, s);		/* what a crash has cut */
		exec_running(e);
	}
}

static void
exec_begin(struct http_req *r, const struct key *key,
    const struct key_made *made)
{
	struct session_spec	 sp;
	struct box		*b;

	if (made != NULL) {
		api_made(r, made, exec_made);
		return;
	}
	if ((b = api_box(r)) == NULL || api_spec(r, b, key, &sp) == -1)
		return;
	sp.attached = 1;
	session_start(b, &sp, exec_sent, exec_done, exec_new(r));
	api_spec_free(&sp);
}

void
api_exec(struct http_req *r)
{
	key_begin(r, exec_begin);
}

/* ---- output of any session ---------------------------------------- */

struct tail {
	struct http_req		*req;
	struct session		*session;	/* referenced */
	struct reader		*reader;	/* owned */
	struct session_wait	 end;
	int			 follow, begun, told;
};

static void
tail_free(struct tail *t)
{
	reader_free(t->reader);
	session_wait_drop(&t->end);
	session_unref(t->session);
	free(t);
}

static void
tail_begin(struct tail *t)
{
	if (t->begun)
		return;
	t->begun = 1;
	http_stream(t->req, 200, "application/x-ndjson");
}

static size_t
tail_room(void *arg)
{
	const struct tail	*t = arg;

	return t->begun ? http_room(t->req) : HTTP_QUEUE_MAX;
}

static void
tail_chunk(void *arg, const struct msg_session_chunk *c)
{
	struct tail	*t = arg;

	tail_begin(t);
	if (http_write(t->req, line, chunk_lines(c)) != 1) {
		http_abort(t->req);
		tail_free(t);
	}
}

static void
tail_ended(struct session_wait *w, struct session *s)
{
	struct tail	*t = w->arg;

	if (http_write_json(t->req, json_pack("{so}", "end",
	    session_json(s))) == 1)
		http_end(t->req);
	else
		http_abort(t->req);
	tail_free(t);
}

static void
tail_told(void *arg, enum wb_code code)
{
	struct tail	*t = arg;
	struct session	*s = t->session;

	t->told = 1;
	if (code == CODE_GONE && !t->begun) {
		api_fail_session(t->req, CODE_GONE, s, "The output of this "
		    "session is no longer kept.");
		tail_free(t);
		return;
	}
	tail_begin(t);
	if (code != CODE_NONE && s->box->listed && !s->box->removing) {
		http_abort(t->req);	/* the client goes on from its number */
		tail_free(t);
	} else if (t->follow || s->exit_known || s->state == SESSION_ENDED) {
		session_wait(s, &t->end);	/* may end it */
	} else {
		http_end(t->req);
		tail_free(t);
	}
}

static const struct reader_ops	tail_ops = { tail_room, tail_chunk,
    tail_told };

static void
tail_drain(struct http_req *r, void *arg)
{
	struct tail	*t = arg;

	(void)r;
	reader_more(t->reader);
}

static void
tail_gone(struct http_req *r, enum http_gone why, void *arg)
{
	struct tail	*t = arg;

	(void)why;
	if (t->begun)
		http_abort(r);
	else
		api_fail_session(r, CODE_STOPPING, t->session,
		    "The output was not told.");
	tail_free(t);
}

static void
tail_session(struct session *s, enum wb_code code, void *arg)
{
	struct http_req	*r = arg;
	struct tail	*t;
	const char	*why;

	if (s == NULL) {
		api_no_session(r, code);
		return;
	}
	if ((code = box_refuses_talk(s->box, &why)) != CODE_NONE) {
		api_fail(r, code, why);
		return;
	}
	t = xcalloc(1, sizeof(*t));
	t->req = r;
	t->session = session_ref(s);
	t->follow = http_query_u64(r, "follow", 0) != 0;
	t->end.fn = tail_ended;
	t->end.arg = t;
	t->reader = reader_new(s, http_query_u64(r, "after", 0), t->follow,
	    1, &tail_ops, t);
	if (t->reader == NULL) {
		api_fail(r, CODE_TOO_MANY, "Too many read this session.");
		tail_free(t);
		return;
	}
	http_on_gone(r, tail_gone, t);
	http_on_drain(r, tail_drain, t);
	if (s->state != SESSION_ENDED)
		tail_begin(t);	/* a first line may be long in coming */
}

void
api_session_output(struct http_req *r)
{
	struct box	*b;

	if ((b = api_box(r)) != NULL)
		session_get(b, http_param(r, "sid"), tail_session, r);
}
