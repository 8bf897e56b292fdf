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
 * A stream is told in lines of JSON, or in frames to a client that asks for
 * them: these hold the bytes as they are, and go from the runner's packet to
 * the socket without a copy.
 *
 * Must never: hold more than COLLECT_MAX of each stream, or more of a stream
 * to a client than its queue takes.
 */
#include <sys/uio.h>

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
	int			 frames;
	int			 told, ended, gone;
	enum http_gone		 why;
	struct collect		 out[2];
	struct collect		 early;		/* as told, before it runs */
	int			 truncated;
};

#define GAP_MAX		128
#define CHUNK_BYTES	32768UL		/* proto.def, session_chunk */
#define LINES_MOST	(GAP_MAX + LINE_MAX_BYTES)
#define FRAMES_MOST	(2 * FRAME_HEAD + GAP_MAX + CHUNK_BYTES)
#define HTTP_FRAMING	16
#define PIECES		2

static char	line[LINES_MOST];	/* one thread, one at a time */

/* ---- lines or frames ------------------------------------------------ */

/* How many chunks go into so many bytes. */
static size_t
chunks_in(size_t room, int frames)
{
	return room / (HTTP_FRAMING + (frames ? FRAMES_MOST : LINES_MOST));
}

/* A gap as an object into dst; its length. */
static size_t
gap_json(char *dst, size_t size, const struct msg_session_chunk *c)
{
	return (size_t)snprintf(dst, size, "{\"gap\":{\"first\":%llu,"
	    "\"last\":%llu,\"bytes\":%llu}}",
	    (unsigned long long)c->gap_first,
	    (unsigned long long)c->gap_last,
	    (unsigned long long)c->gap_bytes);
}

/* What a chunk says, in `line'; its length. */
static size_t
chunk_lines(const struct msg_session_chunk *c)
{
	size_t	n = 0;

	if (c->gap_last != 0) {
		n = gap_json(line, GAP_MAX, c);
		line[n++] = '\n';
	}
	if (c->seq != 0)
		n += chunk_line(line + n, c->seq, (unsigned int)c->stream,
		    c->bytes.data, c->bytes.len);
	return n;
}

/* The same as frames, but for the bytes. */
static size_t
chunk_frames(const struct msg_session_chunk *c)
{
	uint8_t	*p = (uint8_t *)line;
	size_t	 n;

	if (c->gap_last != 0) {
		n = gap_json(line + FRAME_HEAD, GAP_MAX, c);
		frame_head(p, STREAM_NONE, 0, n);
		p += FRAME_HEAD + n;
	}
	if (c->seq != 0) {
		frame_head(p, (unsigned int)c->stream, c->seq, c->bytes.len);
		p += FRAME_HEAD;
	}
	return (size_t)(p - (uint8_t *)line);
}

/* All of it in pieces, borrowed from the chunk and from `line'. */
static void
chunk_pieces(const struct msg_session_chunk *c, int frames,
    struct iovec ret[PIECES])
{
	ret[0].iov_base = line;
	ret[0].iov_len = frames ? chunk_frames(c) : chunk_lines(c);
	ret[1].iov_base = (void *)(uintptr_t)c->bytes.data;
	ret[1].iov_len = frames ? c->bytes.len : 0;
}

/* As http_write(). */
static int
chunk_tell(struct http_req *r, int frames, const struct msg_session_chunk *c)
{
	struct iovec	v[PIECES];

	chunk_pieces(c, frames, v);
	return http_writev(r, v, PIECES);
}

/* As http_write_json(). */
static int
json_tell(struct http_req *r, int frames, json_t *o)
{
	uint8_t		 head[FRAME_HEAD];
	struct iovec	 v[2];
	char		*s;
	int		 ret;

	if (!frames)
		return http_write_json(r, o);
	s = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (s == NULL)
		return -1;	/* as there: cannot be of what we made */
	v[0].iov_base = head;
	v[0].iov_len = sizeof(head);
	v[1].iov_base = s;
	v[1].iov_len = strlen(s);
	frame_head(head, STREAM_NONE, 0, v[1].iov_len);
	ret = http_writev(r, v, 2);
	free(s);
	return ret;
}

static int
frames_asked(const struct http_req *r)
{
	return http_accepts(r, FRAME_TYPE);
}

static void
stream_begin(struct http_req *r, int frames)
{
	http_stream(r, 200, frames ? FRAME_TYPE : "application/x-ndjson");
}

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
	if (why == HTTP_GONE_STOPPING)
		exec_break(e, CODE_STOPPING,
		    "The server stops; the command goes on.");
	else
		exec_break(e, CODE_CLIENT_GONE,
		    "The client closed its side; the command goes on.");
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
	size_t			 room = HTTP_QUEUE_MAX;

	if (e->stream && e->begun)
		room = http_room(e->req);
	else if (e->stream)	/* all of it has to fit the queue later */
		room = HTTP_QUEUE_MAX / 2 - e->early.len;
	return chunks_in(room, e->frames);
}

static void
exec_chunk(void *arg, const struct msg_session_chunk *c)
{
	struct exec	*e = arg;
	struct iovec	 v[PIECES];
	size_t		 i;

	if (!e->stream) {
		if (c->gap_last != 0)
			e->truncated = 1;
		if (c->seq != 0)
			collect(e, &e->out[c->stream == STREAM_STDERR],
			    &c->bytes);
		return;
	}
	if (!e->begun) {
		chunk_pieces(c, e->frames, v);
		for (i = 0; i < PIECES; i++)
			append(&e->early, v[i].iov_base, v[i].iov_len);
	} else if (chunk_tell(e->req, e->frames, c) != 1)
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
	else if (json_tell(e->req, e->frames, json_pack("{so}", "end",
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
		stream_begin(e->req, e->frames);
		(void)json_tell(e->req, e->frames, json_pack("{s{ss}}",
		    "start", "sessionId", e->session->id));
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
	e->frames = e->stream && frames_asked(r);
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
	int			 follow, frames, begun, told;
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
	stream_begin(t->req, t->frames);
}

static size_t
tail_room(void *arg)
{
	const struct tail	*t = arg;

	return chunks_in(t->begun ? http_room(t->req) : HTTP_QUEUE_MAX,
	    t->frames);
}

static void
tail_chunk(void *arg, const struct msg_session_chunk *c)
{
	struct tail	*t = arg;

	tail_begin(t);
	if (chunk_tell(t->req, t->frames, c) != 1) {
		http_abort(t->req);
		tail_free(t);
	}
}

static void
tail_ended(struct session_wait *w, struct session *s)
{
	struct tail	*t = w->arg;

	if (json_tell(t->req, t->frames, json_pack("{so}", "end",
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

	if (t->begun)
		http_abort(r);
	else if (why == HTTP_GONE_STOPPING)
		api_fail_session(r, CODE_STOPPING, t->session,
		    "The server stops; the output was not told.");
	else
		api_fail_session(r, CODE_CLIENT_GONE, t->session,
		    "The client closed its side; the output was not told.");
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
	t->frames = frames_asked(r);
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
	/* a first chunk may be long in coming, but not one that is there */
	if (s->state != SESSION_ENDED && reader_told(t->reader) >= s->last_seq)
		tail_begin(t);
}

void
api_session_output(struct http_req *r)
{
	struct box	*b;

	if ((b = api_box(r)) != NULL)
		session_get(b, http_param(r, "sid"), tail_session, r);
}
