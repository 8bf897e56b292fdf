/*
 * api_sessions.c: start, list, look at, write to and signal sessions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define ARGV_MAX	32768		/* bytes; proto.def, session_run */
#define ENV_MAX		16384
#define CWD_MAX		1023
#define LIST_LIMIT	100
#define ROWS_PAGE	256		/* proto.def, session_rows.limit */

/* ---- what is to be run -------------------------------------------- */

static int
spec_lists(struct http_req *r, const struct session_spec *sp)
{
	if (sp->argv.v[0].len == 0) {
		http_fail(r, CODE_BAD_REQUEST, "argv[0]", "The command has "
		    "no name.");
		return -1;
	}
	if (list_bytes(&sp->argv) > ARGV_MAX) {
		http_fail(r, CODE_BAD_REQUEST, "argv", "The arguments are "
		    "larger than %d bytes together.", ARGV_MAX);
		return -1;
	}
	if (strlen(sp->cwd) > CWD_MAX) {
		http_fail(r, CODE_BAD_REQUEST, "cwd", "The directory is "
		    "longer than %d bytes.", CWD_MAX);
		return -1;
	}
	if (list_bytes(&sp->env) > ENV_MAX) {
		http_fail(r, CODE_BAD_REQUEST, "env", "The environment is "
		    "larger than %d bytes.", ENV_MAX);
		return -1;
	}
	return api_labels(r, &sp->labels);
}

/* The limits of one session lie below its sandbox's, or say nothing. */
static int
spec_limits(struct http_req *r, const struct box *b, const json_t *l,
    struct session_spec *sp)
{
	sp->memory_bytes = (uint64_t)json_integer_value(json_object_get(l,
	    "memoryBytes"));
	sp->pids = (uint64_t)json_integer_value(json_object_get(l, "pids"));
	if (sp->memory_bytes > b->memory_bytes) {
		http_fail(r, CODE_LIMIT_ABOVE_CEILING, "limits.memoryBytes",
		    "Expected: at most %llu, the sandbox's own.",
		    (unsigned long long)b->memory_bytes);
		return -1;
	}
	if (sp->pids > b->pids) {
		http_fail(r, CODE_LIMIT_ABOVE_CEILING, "limits.pids",
		    "Expected: at most %llu, the sandbox's own.",
		    (unsigned long long)b->pids);
		return -1;
	}
	return 0;
}

static const char *
member_string(const json_t *o, const char *name)
{
	const char	*s = json_string_value(json_object_get(o, name));

	return s == NULL ? "" : s;
}

int
api_spec(struct http_req *r, const struct box *b, const struct key *key,
    struct session_spec *ret)
{
	const json_t	*body = http_json(r), *in;
	double		 t = json_number_value(json_object_get(body,
			    "timeoutSeconds"));
	size_t		 len;

	memset(ret, 0, sizeof(*ret));
	ret->name = member_string(body, "name");
	ret->cwd = member_string(body, "cwd");
	ret->user = member_string(body, "user");
	ret->key = key;
	ret->argv = list_from_array(json_object_get(body, "argv"));
	ret->env = list_from_object(json_object_get(body, "env"));
	ret->labels = list_from_object(json_object_get(body, "labels"));
	ret->timeout_ms = (uint64_t)llround(t * 1000);
	in = json_object_get(body, "stdin");
	len = json_string_length(in);
	ret->input = (const uint8_t *)json_string_value(in);
	ret->input_len = len < SESSION_INPUT_FIRST ? len :
	    SESSION_INPUT_FIRST;
	ret->stdin_open = len > SESSION_INPUT_FIRST ||
	    json_is_true(json_object_get(body, "stdinOpen"));
	ret->actor = http_actor(r);
	ret->request = http_id(r);
	if (spec_lists(r, ret) == 0 && spec_limits(r, b,
	    json_object_get(body, "limits"), ret) == 0)
		return 0;
	api_spec_free(ret);
	return -1;
}

void
api_spec_free(struct session_spec *sp)
{
	list_free(&sp->argv);
	list_free(&sp->env);
	list_free(&sp->labels);
}

/* ---- the rest of a body's stdin ----------------------------------- */

struct pour {
	struct session	*session;	/* referenced */
	uint8_t		*data;		/* owned: from SESSION_INPUT_FIRST on */
	size_t		 len;
	int		 eof, again;
};

static void
poured(void *arg, enum wb_code code, uint64_t offset, const char *detail)
{
	struct pour	*p = arg;
	size_t		 had = (size_t)offset - SESSION_INPUT_FIRST;

	/* an apid before this one has written some of it */
	if (code == CODE_BAD_OFFSET && !p->again &&
	    offset > SESSION_INPUT_FIRST && had <= p->len) {
		p->again = 1;
		if (feed_new(p->session, offset, p->data + had, p->len - had,
		    p->eof, poured, p) != NULL)
			return;
	}
	if (code != CODE_NONE && code != CODE_ENDED)
		log_debug("input of a session: %s: %s", code_name(code),
		    detail);
	session_unref(p->session);
	free(p->data);
	free(p);
}

/* What is left of the body's stdin for a session. */
static size_t
to_pour(const struct http_req *r, const struct session *s)
{
	size_t	len = json_string_length(json_object_get(http_json(r),
		    "stdin"));

	return len <= SESSION_INPUT_FIRST || s->state == SESSION_ENDED ? 0 :
	    len - SESSION_INPUT_FIRST;
}

void
api_pour(struct http_req *r, struct session *s)
{
	const json_t	*body = http_json(r);
	const json_t	*in = json_object_get(body, "stdin");
	size_t		 len = to_pour(r, s);
	struct pour	*p;

	if (len == 0)
		return;
	p = xcalloc(1, sizeof(*p));
	p->session = session_ref(s);
	p->len = len;
	p->data = xmalloc(p->len);
	p->eof = !json_is_true(json_object_get(body, "stdinOpen"));
	memcpy(p->data, json_string_value(in) + SESSION_INPUT_FIRST, p->len);
	if (feed_new(s, SESSION_INPUT_FIRST, p->data, p->len, p->eof, poured,
	    p) == NULL)
		poured(p, CODE_BUSY, 0, "another writes");
}

/* ---- start -------------------------------------------------------- */

static void
run_done(struct session *s, enum wb_code code, const char *detail, void *arg)
{
	struct http_req	*r = arg;

	if (code == CODE_NONE) {
		api_pour(r, s);
		http_reply_json(r, 201, session_json(s));
	} else if (s != NULL)
		api_fail_session(r, code, s, detail);
	else
		api_fail(r, code, detail);
}

static void
run_made(struct http_req *r, struct session *s)
{
	const char	*why;
	enum wb_code	 code = to_pour(r, s) == 0 ? CODE_NONE :
			    box_refuses_talk(s->box, &why);

	/* else what a crash has cut of its input would be lost in silence */
	if (code != CODE_NONE) {
		api_fail_session(r, code, s, why);
		return;
	}
	api_pour(r, s);
	http_reply_json(r, 201, session_json(s));
}

static void
run_begin(struct http_req *r, const struct key *key,
    const struct key_made *made)
{
	struct session_spec	 sp;
	struct box		*b;

	if (made != NULL) {
		api_made(r, made, run_made);
		return;
	}
	if ((b = api_box(r)) == NULL || api_spec(r, b, key, &sp) == -1)
		return;
	session_start(b, &sp, NULL, run_done, r);
	api_spec_free(&sp);
}

void
api_session_create(struct http_req *r)
{
	key_begin(r, run_begin);
}

/* ---- what a key made before ---------------------------------------- */

struct made {
	struct http_req	*req;
	void		(*fn)(struct http_req *, struct session *);
};

static void
made_session(struct session *s, enum wb_code code, void *arg)
{
	struct made	*m = arg;
	enum wb_code	 why = s == NULL ? CODE_NONE : code_find(s->reason);

	if (s == NULL)
		http_fail(m->req, code == CODE_NOT_FOUND ? CODE_GONE : code,
		    NULL, "The command was run before; its session is no "
		    "longer kept.");
	else if (s->state == SESSION_ENDED && why != CODE_NONE)
		api_fail_session(m->req, why, s, "It could not be started "
		    "then, and is not tried again under the same key.");
	else
		m->fn(m->req, s);
	free(m);
}

void
api_made(struct http_req *r, const struct key_made *made,
    void (*fn)(struct http_req *, struct session *))
{
	struct box	*b = box_by_id(made->sandbox);
	struct made	*m;

	http_add_header(r, "Idempotent-Replayed", "true");
	if (b == NULL) {
		http_fail(r, CODE_GONE, NULL, "The command was run before, "
		    "in sandbox %s, which is no more.", made->sandbox);
		return;
	}
	m = xcalloc(1, sizeof(*m));
	m->req = r;
	m->fn = fn;
	session_get(b, made->session, made_session, m);
}

/* ---- look, and wait ----------------------------------------------- */

struct look {
	struct http_req		*req;
	struct session		*session;	/* referenced */
	struct session_wait	 end;
	json_t			*items;		/* owned: it alone, as JSON */
};

static void
look_told_now(void *arg)
{
	struct look	*l = arg;

	http_reply_json(l->req, 200, json_incref(json_array_get(l->items,
	    0)));
	json_decref(l->items);
	session_unref(l->session);
	free(l);
}

static void
look_reply(struct look *l)
{
	struct session	*s = l->session;

	session_wait_drop(&l->end);
	l->items = json_pack("[o]", session_json(s));
	sessions_now(s->box, l->items, look_told_now, l);
}

/* The end, or its time is over, or the client is gone, or we stop. */
static void
look_over(struct look *l)
{
	session_wait_drop(&l->end);
	http_on_gone(l->req, NULL, NULL);
	http_timer(l->req, 0, NULL, NULL);
	look_reply(l);
}

static void
look_ended(struct session_wait *w, struct session *s)
{
	(void)s;
	look_over(w->arg);
}

static void
look_late(struct http_req *r, void *arg)
{
	(void)r;
	look_over(arg);
}

static void
look_gone(struct http_req *r, enum http_gone why, void *arg)
{
	(void)r;
	(void)why;
	look_over(arg);
}

static void
look_session(struct session *s, enum wb_code code, void *arg)
{
	struct http_req	*r = arg;
	uint64_t	 wait = http_query_u64(r, "wait", 0);
	struct look	*l;

	if (s == NULL) {
		api_no_session(r, code);
		return;
	}
	l = xcalloc(1, sizeof(*l));
	l->req = r;
	l->session = session_ref(s);
	l->end.fn = look_ended;
	l->end.arg = l;
	if (wait == 0 || s->state == SESSION_ENDED) {
		look_reply(l);
		return;
	}
	http_on_gone(r, look_gone, l);
	http_timer(r, wait * 1000, look_late, l);
	session_wait(s, &l->end);
}

void
api_session_get(struct http_req *r)
{
	struct box	*b;

	if ((b = api_box(r)) != NULL)
		session_get(b, http_param(r, "sid"), look_session, r);
}

/* ---- list --------------------------------------------------------- */

struct list {
	struct http_req	*req;
	struct box	*box;		/* referenced */
	json_t		*items, *next;	/* owned; the cursor, or NULL */
	uint64_t	 limit;
	char		 after[27];
};

static void	list_ask(struct list *);

static void
list_told(void *arg)
{
	struct list	*l = arg;
	json_t		*next = l->next;

	http_reply_json(l->req, 200, json_pack("{soso}", "items", l->items,
	    "nextCursor", next == NULL ? json_null() : next));
	box_unref(l->box);
	free(l);
}

static void
list_over(struct list *l)
{
	if (json_array_size(l->items) > l->limit) {	/* one more is there */
		(void)json_array_remove(l->items, l->limit);
		l->next = json_copy(json_object_get(json_array_get(l->items,
		    l->limit - 1), "sessionId"));
	}
	sessions_now(l->box, l->items, list_told, l);
}

static void
list_page(void *arg, const struct msg *m)
{
	struct list		*l = arg;
	const struct wire_list	*rows = &m->body.session_page.rows;
	struct session		*s;
	struct row_session	 row;
	struct wire_bin		 items[SESSION_ITEMS];
	size_t			 i;

	if (m->row->type == MSG_ERROR) {
		api_fail(l->req, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
		json_decref(l->items);
		box_unref(l->box);
		free(l);
		return;
	}
	for (i = 0; i < rows->n && json_array_size(l->items) <= l->limit;
	    i++) {
		if (wire_decode_into(&wire_row_session, rows->v[i].data,
		    rows->v[i].len, items, SESSION_ITEMS, &row) == -1)
			fatalx("session row of stored: %s", wire_error());
		(void)str_copy(l->after, row.id, sizeof(l->after));
		s = session_find(l->box, row.id);
		(void)json_array_append_new(l->items, s != NULL ?
		    session_json(s) : session_row_json(&row));
	}
	if (rows->n == 0 || json_array_size(l->items) > l->limit)
		list_over(l);
	else
		list_ask(l);
}

static void
list_ask(struct list *l)
{
	struct msg_session_rows	 m = { 0 };
	uint64_t		 n = l->limit + 1 - json_array_size(l->items);

	(void)str_copy(m.sandbox, l->box->id, sizeof(m.sandbox));
	(void)str_copy(m.after, l->after, sizeof(m.after));
	m.limit = n < ROWS_PAGE ? n : ROWS_PAGE;
	peer_ask(env.stored, MSG_SESSION_ROWS, &m, T_STORE, list_page, l);
}

void
api_session_list(struct http_req *r)
{
	const char	*after = http_query(r, "after");
	struct list	*l;
	struct box	*b;

	if ((b = api_box(r)) == NULL)
		return;
	if (after != NULL && after[0] != '\0' && !ulid_ok(after)) {
		http_fail(r, CODE_BAD_REQUEST, "after", "Write the "
		    "`nextCursor' of the page before.");
		return;
	}
	l = xcalloc(1, sizeof(*l));
	l->req = r;
	l->box = box_ref(b);
	l->items = json_array();
	l->limit = http_query_u64(r, "limit", LIST_LIMIT);
	if (after != NULL)
		(void)str_copy(l->after, after, sizeof(l->after));
	list_ask(l);
}

/* ---- input -------------------------------------------------------- */

static void
write_done(void *arg, enum wb_code code, uint64_t offset, const char *detail)
{
	struct http_req	*r = arg;

	if (code == CODE_NONE)
		http_reply_json(r, 200, json_pack("{sI}", "offset",
		    (json_int_t)offset));
	else if (code == CODE_BAD_OFFSET)
		http_fail_with(r, code, json_pack("{sI}", "expected",
		    (json_int_t)offset), "%llu bytes have been written.",
		    (unsigned long long)offset);
	else
		api_fail(r, code, detail);
}

static void
write_gone(struct http_req *r, enum http_gone why, void *arg)
{
	if (why == HTTP_GONE_CLIENT)
		return;		/* what came whole is written */
	feed_free(arg);
	http_fail(r, CODE_STOPPING, NULL, "The server stops: ask for the "
	    "offset again.");
}

static void
write_session(struct session *s, enum wb_code code, void *arg)
{
	struct http_req	*r = arg;
	const uint8_t	*data;
	const char	*why;
	struct feed	*f;
	size_t		 len;

	if (s == NULL) {
		api_no_session(r, code);
		return;
	}
	if (s->state == SESSION_ENDED) {
		api_fail(r, CODE_ENDED, "The session has ended.");
		return;
	}
	if ((code = box_refuses_talk(s->box, &why)) != CODE_NONE) {
		api_fail(r, code, why);
		return;
	}
	data = http_body(r, &len);
	f = feed_new(s, http_query_u64(r, "offset", 0), data, len,
	    http_query_u64(r, "eof", 0) != 0, write_done, r);
	if (f == NULL)
		api_fail(r, CODE_BUSY, "Another writes to this session now.");
	else
		http_on_gone(r, write_gone, f);
}

void
api_session_stdin(struct http_req *r)
{
	struct box	*b;

	if (http_query(r, "offset") == NULL)
		http_fail(r, CODE_BAD_REQUEST, "offset", "Say how many bytes "
		    "were written before these: nothing is written twice.");
	else if ((b = api_box(r)) != NULL)
		session_get(b, http_param(r, "sid"), write_session, r);
}

/* ---- signals ------------------------------------------------------ */

struct kill {
	struct http_req	*req;
	char		 sandbox[27], session[27];
	unsigned int	 signal;
};

static void
kill_recorded(void *arg, const struct msg *m)
{
	struct kill	*k = arg;

	if (m->row->type == MSG_ERROR)
		api_fail(k->req, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
	else
		http_reply_empty(k->req);
	free(k);
}

/* The runner went: with its sandbox, or nobody knows why. */
static void
kill_lost(const struct kill *k)
{
	const struct box	*b = box_by_id(k->sandbox);
	const char		*why = "The sandbox has been removed.";
	enum wb_code		 code = b == NULL ? CODE_NOT_READY :
				    box_refuses(b, &why);

	if (code == CODE_NONE)
		api_fail(k->req, CODE_INTERNAL, "The sandbox's runner went "
		    "away; the signal may have been sent.");
	else
		api_fail(k->req, code, why);
}

static void
kill_done(void *arg, const struct msg *m)
{
	struct event_session_signalled	 e = { 0 };
	struct kill			*k = arg;
	struct http_req			*r = k->req;

	if (m == NULL) {
		kill_lost(k);
		free(k);
		return;
	}
	if (peer_code(m) != CODE_NONE) {
		api_fail(r, peer_code(m), peer_detail(m));
		free(k);
		return;
	}
	e.signal = k->signal;
	event_append(EVENT_SESSION_SIGNALLED, &e, http_actor(r), k->sandbox,
	    k->session, http_id(r), "ok", "", kill_recorded, k);
}

static void
kill_session(struct session *s, enum wb_code code, void *arg)
{
	struct msg_session_signal	 m = { 0 };
	struct kill			*k = arg;
	const char			*why;

	if (s == NULL) {
		api_no_session(k->req, code);
		free(k);
		return;
	}
	if ((code = box_refuses_talk(s->box, &why)) != CODE_NONE) {
		api_fail(k->req, code, why);
		free(k);
		return;
	}
	(void)str_copy(k->sandbox, s->sandbox, sizeof(k->sandbox));
	(void)str_copy(k->session, s->id, sizeof(k->session));
	(void)str_copy(m.id, s->id, sizeof(m.id));
	m.signal = k->signal;
	peer_ask(s->box->runner, MSG_SESSION_SIGNAL, &m, T_RUNNER, kill_done,
	    k);
}

void
api_session_signal(struct http_req *r)
{
	const json_t	*v = json_object_get(http_json(r), "signal");
	unsigned int	 n;
	struct kill	*k;
	struct box	*b;

	n = json_is_integer(v) ? (unsigned int)json_integer_value(v) :
	    text_signal(json_string_value(v));
	if (n == 0 || n > 64) {
		http_fail(r, CODE_BAD_REQUEST, "signal", "No signal is named "
		    "so: write TERM, KILL, INT ... or a number from 1 to "
		    "64.");
		return;
	}
	if ((b = api_box(r)) == NULL)
		return;
	k = xcalloc(1, sizeof(*k));
	k->req = r;
	k->signal = n;
	session_get(b, http_param(r, "sid"), kill_session, k);
}
