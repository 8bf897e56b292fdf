/*
 * session.c: the commands of a box, from their start to their recorded end.
 *
 * Theory of operation.  A session begins as a row (durable, with the record
 * session.started) before its runner hears of it, so that a command that ran
 * is always on the record; it ends as a row (durable, with session.ended)
 * before anybody is told.  Between the two there is one SESSION_WAIT at the
 * runner, asked anew after each attach; its answer is the only way in which
 * a session ends by itself.  A session whose box has died, or which the
 * runner does not know after an attach, ends as `lost'.
 *
 * In memory are all that run and the last BOX_ENDED_KEPT that ended; older
 * ones are read from stored when somebody asks (resume.c).  A session holds
 * its box; the box's list holds each session once, whoever uses one another
 * time.
 *
 * Must never: start a command twice, or tell an end that is not on disk.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define SESSION_LARGE	4096		/* bytes of argv: not kept when ended */

static void	session_end(struct session *);

/* ---- life --------------------------------------------------------- */

static void
session_again(int fd, short what, void *arg)
{
	struct session	*s = arg;

	(void)fd;
	(void)what;
	s->ending = 0;
	session_end(s);
	session_unref(s);
}

/* By id, descending: the newest is asked for most. */
static void
session_list(struct session *s)
{
	struct session	*p, *last = NULL;

	LIST_FOREACH(p, &s->box->sessions, by_box) {
		if (strcmp(p->id, s->id) < 0)
			break;
		last = p;
	}
	if (last == NULL)
		LIST_INSERT_HEAD(&s->box->sessions, s, by_box);
	else
		LIST_INSERT_AFTER(last, s, by_box);
	s->listed = 1;
}

struct session *
session_new(struct box *b, const char *id, const char *name,
    const struct wire_list *argv, unsigned int origin)
{
	struct session	*s = xcalloc(1, sizeof(*s));

	s->box = box_ref(b);
	s->refs = 1;
	(void)str_copy(s->sandbox, b->id, sizeof(s->sandbox));
	(void)str_copy(s->id, id, sizeof(s->id));
	(void)str_copy(s->tenant, b->tenant, sizeof(s->tenant));
	(void)str_copy(s->name, name, sizeof(s->name));
	s->argv = list_dup(argv);
	s->origin = origin;
	s->started_ms = now_ms();
	LIST_INIT(&s->waits);
	LIST_INIT(&s->readers);
	LIST_INIT(&s->orphans);
	(void)evtimer_assign(&s->again, env.base, session_again, s);
	session_list(s);
	return s;
}

struct session *
session_ref(struct session *s)
{
	s->refs++;
	return s;
}

void
session_unref(struct session *s)
{
	if (--s->refs != 0)
		return;
	list_free(&s->argv);
	list_free(&s->labels);
	box_unref(s->box);
	free(s);
}

/* Out of the list; callers that hold it keep it. */
void
session_unlist(struct session *s)
{
	struct box	*b = s->box;

	if (!s->listed)
		return;
	LIST_REMOVE(s, by_box);
	s->listed = 0;
	if (s->counted)
		b->running--;
	else if (s->state == SESSION_ENDED)
		b->ended--;
	s->counted = 0;
	session_unref(s);
}

void
sessions_drop(struct box *b)
{
	struct session	*s;

	while ((s = LIST_FIRST(&b->sessions)) != NULL)
		session_unlist(s);
}

/* An ended one that nobody uses: a large one, or the oldest of too many. */
static struct session *
session_spare(struct box *b)
{
	struct session	*s, *oldest = NULL;

	LIST_FOREACH(s, &b->sessions, by_box) {
		if (s->state != SESSION_ENDED || s->refs != 1)
			continue;
		if (list_bytes(&s->argv) > SESSION_LARGE)
			return s;
		oldest = s;
	}
	return b->ended > BOX_ENDED_KEPT ? oldest : NULL;
}

void
sessions_trim(struct box *b)
{
	struct session	*s;

	while ((s = session_spare(b)) != NULL)
		session_unlist(s);
}

void
session_count(struct session *s)
{
	if (s->counted || !s->listed)
		return;
	s->counted = 1;
	s->box->running++;
}

struct session *
session_find(struct box *b, const char *id)
{
	struct session	*s;

	LIST_FOREACH(s, &b->sessions, by_box)
		if (strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

/* ---- rows --------------------------------------------------------- */

void
session_put(struct session *s, unsigned int state, int durable,
    const char *actor, const char *request, const struct key *key,
    void (*cb)(void *, const struct msg *), void *arg)
{
	struct msg_session_put	 m = { .durable = (uint64_t)durable };
	struct row_session	 r = { .version = 1 };
	static uint8_t		 buf[WIRE_MAX];
	ssize_t			 n;

	(void)str_copy(r.sandbox, s->sandbox, sizeof(r.sandbox));
	(void)str_copy(r.id, s->id, sizeof(r.id));
	(void)str_copy(r.tenant, s->tenant, sizeof(r.tenant));
	(void)str_copy(r.name, s->name, sizeof(r.name));
	(void)str_copy(r.user, s->user, sizeof(r.user));
	r.argv = s->argv;
	r.labels = s->labels;
	r.memory_bytes = s->memory_bytes;
	r.pids = s->pids;
	r.origin = s->origin;
	r.state = state;
	r.exit_code = s->exit_code;
	r.signal = s->signal;
	(void)str_copy(r.reason, s->reason, sizeof(r.reason));
	r.started_ms = s->started_ms;
	r.ended_ms = s->ended_ms;
	r.left_behind = s->left_behind;
	if ((n = wire_encode(&wire_row_session, &r, buf, sizeof(buf))) == -1)
		fatalx("encode session: %s", wire_error());
	(void)str_copy(m.actor, actor, sizeof(m.actor));
	(void)str_copy(m.request, request, sizeof(m.request));
	key_put(key, m.key, &m.asked);
	m.row.data = buf;
	m.row.len = (size_t)n;
	peer_ask(env.stored, MSG_SESSION_PUT, &m, T_STORE, cb, arg);
}

/* ---- the end ------------------------------------------------------ */

static void
session_over(struct session *s)
{
	struct session_wait	*w;
	struct box		*b = s->box;

	s->ending = 0;
	s->state = SESSION_ENDED;
	if (s->listed) {
		if (s->counted)
			b->running--;
		s->counted = 0;
		b->ended++;
	}
	while ((w = LIST_FIRST(&s->waits)) != NULL) {
		session_wait_drop(w);
		w->fn(w, s);
	}
	remove_idle(b);
	sessions_trim(b);
}

static void
session_end_put(void *arg, const struct msg *m)
{
	struct session	*s = arg;
	struct timeval	 tv = { 1, 0 };
	enum wb_code	 code = peer_code(m);

	if (code == CODE_NONE || code == CODE_ENDED || code == CODE_EXISTS ||
	    code == CODE_NOT_FOUND || !s->box->listed) {
		if (code != CODE_NONE)
			log_warnx("session %s: record its end: %s", s->id,
			    peer_detail(m));
		session_over(s);
	} else {
		log_warnx("session %s: record its end: %s; again in 1 s",
		    s->id, peer_detail(m));
		(void)session_ref(s);
		if (event_add(&s->again, &tv) == -1)
			fatalx("add timer: out of memory");
	}
	session_unref(s);
}

static void
session_end(struct session *s)
{
	if (s->ending || s->state == SESSION_ENDED)
		return;
	s->ending = 1;
	if (s->ended_ms == 0)
		s->ended_ms = now_ms();
	/* what nobody told us is our own conclusion */
	session_put(s, SESSION_ENDED, 1, strcmp(s->reason, "lost") == 0 ?
	    "apid" : "runner", "", NULL, session_end_put, session_ref(s));
}

static void
session_lose(struct session *s)
{
	if (s->ending || s->state == SESSION_ENDED)
		return;
	(void)str_copy(s->reason, "lost", sizeof(s->reason));
	session_end(s);
}

void
sessions_lost(struct box *b)
{
	struct session	*s;

	LIST_FOREACH(s, &b->sessions, by_box)	/* none leaves the list */
		session_lose(s);
}

/* ---- what the runner answers -------------------------------------- */

static void
session_exit(struct session *s, const struct msg_session_exit *x)
{
	uint64_t	now = now_ms();

	s->exit_code = x->exit_code;
	s->signal = x->signal;
	s->left_behind = x->left_behind;
	s->first_seq = x->first_seq;
	s->last_seq = x->last_seq;
	s->wall_ms = x->wall_ms;
	s->user_usec = x->user_usec;
	s->sys_usec = x->sys_usec;
	s->peak_bytes = x->peak_bytes;
	s->usage_known = 1;
	/* its clock is ours, but its word is not */
	s->ended_ms = x->ended_ms >= s->started_ms && x->ended_ms <= now ?
	    x->ended_ms : now;
	(void)str_copy(s->reason, x->timed_out ? "timeout" :
	    x->oom ? "oom" : "", sizeof(s->reason));
	s->exit_known = 1;
	session_end(s);
	readers_ended(s);
}

static void
session_exited(void *arg, const struct msg *m)
{
	struct session	*s = arg;

	s->asked = 0;
	if (m == NULL || s->ending || s->state == SESSION_ENDED)
		;			/* asked anew, or over */
	else if (m->row->type == MSG_ERROR)
		session_lose(s);
	else if (strcmp(m->body.session_exit.id, s->id) != 0)
		peer_fault(s->box->runner, "SESSION_EXIT of another session");
	else
		session_exit(s, &m->body.session_exit);
	session_unref(s);
}

void
session_ask_end(struct session *s)
{
	struct msg_session_wait	 m = { 0 };

	if (s->asked || s->ending || s->state == SESSION_ENDED ||
	    s->box->runner == NULL)
		return;
	s->asked = 1;
	(void)str_copy(m.id, s->id, sizeof(m.id));
	peer_ask(s->box->runner, MSG_SESSION_WAIT, &m, 0, session_exited,
	    session_ref(s));
}

/* ---- the start ---------------------------------------------------- */

struct start {
	struct session		*session;	/* referenced */
	uint64_t		 since;		/* us, when it was asked for */
	struct msg_session_run	 run;		/* env, stdin owned */
	void			(*sent)(struct session *, void *);
	void			(*done)(struct session *, enum wb_code,
				    const char *, void *);
	void			*arg;
	enum wb_code		 code;		/* why it failed */
	char			 detail[256];
	struct session_wait	 end;		/* of one that failed */
};

static void
start_over(struct start *st, int existed, enum wb_code code,
    const char *detail)
{
	struct session	*s = st->session;

	st->done(existed ? s : NULL, code, detail, st->arg);
	list_free(&st->run.env);
	free((void *)(uintptr_t)st->run.stdin.data);
	free(st);
	session_unref(s);
}

static void
start_ended(struct session_wait *w, struct session *s)
{
	struct start	*st = w->arg;

	(void)s;
	start_over(st, 1, st->code, st->detail);
}

/* Its end is recorded before anybody hears that it failed. */
static void
start_fail(struct start *st, enum wb_code code, const char *detail)
{
	struct session	*s = st->session;

	st->code = code;
	(void)str_copy(st->detail, detail, sizeof(st->detail));	/* cut */
	(void)str_copy(s->reason, code_name(code), sizeof(s->reason));
	s->exit_code = code == CODE_COMMAND_NOT_FOUND ? 127 : 126;
	st->end.fn = start_ended;
	st->end.arg = st;
	(void)session_ref(s);
	session_wait(s, &st->end);	/* may be over already */
	session_end(s);
	session_unref(s);
}

static void
start_running(void *arg, const struct msg *m)
{
	struct start	*st = arg;
	struct session	*s = st->session;

	if (m == NULL && s->box->removing != REMOVE_NOT) {
		start_over(st, 1, CODE_NOT_READY, "The sandbox is being "
		    "removed.");
	} else if (m == NULL) {	/* the attach that follows finds out */
		start_over(st, 1, CODE_INTERNAL, "The sandbox's runner went "
		    "away; look at the session to see whether the command "
		    "runs.");
	} else if (m->row->type == MSG_ERROR) {
		start_fail(st, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
	} else if (strcmp(m->body.session_running.id, s->id) != 0) {
		peer_fault(s->box->runner,
		    "SESSION_RUNNING of another session");
		start_over(st, 1, CODE_INTERNAL, "The sandbox's runner "
		    "broke protocol.");
	} else {
		if (s->state == SESSION_STARTING)
			s->state = SESSION_RUNNING;
		metrics_took(METRIC_EXEC, st->since);
		metrics_add(METRIC_SESSIONS, 1);
		metrics_add(METRIC_INPUT, st->run.stdin.len);
		start_over(st, 1, CODE_NONE, "");
	}
}

static void
start_recorded(void *arg, const struct msg *m)
{
	struct start	*st = arg;
	struct session	*s = st->session;
	const char	*why = "";
	enum wb_code	 code = peer_code(m);

	if (code != CODE_NONE) {
		session_unlist(s);
		start_over(st, 0, code, peer_detail(m));
		return;
	}
	metrics_took(METRIC_COMMIT, st->since);
	if (!box_usable(s->box)) {
		if ((code = box_refuses(s->box, &why)) == CODE_NONE)
			code = CODE_NOT_READY;	/* gone from the tables */
		start_fail(st, code, why);
		return;
	}
	peer_ask(s->box->runner, MSG_SESSION_RUN, &st->run, T_RUNNER,
	    start_running, st);
	if (st->sent != NULL)
		st->sent(s, st->arg);
	session_ask_end(s);
}

static int
name_runs(const struct box *b, const char *name)
{
	const struct session	*s;

	LIST_FOREACH(s, &b->sessions, by_box)
		if (s->state != SESSION_ENDED && strcmp(s->name, name) == 0)
			return 1;
	return 0;
}

/* What can be refused without a row. */
static enum wb_code
start_refuses(struct box *b, const struct session_spec *sp,
    const char **ret_why)
{
	enum wb_code	code;

	if ((code = box_refuses(b, ret_why)) != CODE_NONE)
		return code;
	if (sp->name[0] != '\0' && name_runs(b, sp->name)) {
		*ret_why = "A session with this name is running.";
		return CODE_NAME_TAKEN;
	}
	if (b->running >= BOX_RUNNING_MAX) {
		*ret_why = "Too many sessions are running in this sandbox.";
		return CODE_TOO_MANY;
	}
	if (peer_full(b->runner)) {
		*ret_why = "The sandbox's runner is behind: try again.";
		return CODE_BUSY;
	}
	return CODE_NONE;
}

static uint8_t *
bytes_dup(const uint8_t *p, size_t len)
{
	uint8_t	*q = xmalloc(len + 1);

	if (len != 0)
		memcpy(q, p, len);
	return q;
}

void
session_start(struct box *b, const struct session_spec *sp,
    void (*sent)(struct session *, void *),
    void (*done)(struct session *, enum wb_code, const char *, void *),
    void *arg)
{
	struct start	*st;
	struct session	*s;
	const char	*why;
	char		 id[27];
	enum wb_code	 code;

	if ((code = start_refuses(b, sp, &why)) != CODE_NONE) {
		done(NULL, code, why, arg);
		return;
	}
	ulid_new(id);
	s = session_new(b, id, sp->name, &sp->argv, 0);
	(void)str_copy(s->user, sp->user, sizeof(s->user));
	s->labels = list_dup(&sp->labels);
	s->memory_bytes = sp->memory_bytes;
	s->pids = sp->pids;
	session_count(s);
	st = xcalloc(1, sizeof(*st));
	st->session = session_ref(s);
	st->since = mono_us();
	st->sent = sent;
	st->done = done;
	st->arg = arg;
	(void)str_copy(st->run.id, id, sizeof(st->run.id));
	(void)str_copy(st->run.name, sp->name, sizeof(st->run.name));
	(void)str_copy(st->run.cwd, sp->cwd, sizeof(st->run.cwd));
	st->run.argv = s->argv;
	st->run.env = list_dup(&sp->env);
	(void)str_copy(st->run.user, sp->user, sizeof(st->run.user));
	st->run.memory_bytes = sp->memory_bytes;
	st->run.pids = sp->pids;
	st->run.timeout_ms = sp->timeout_ms;
	st->run.stdin_open = (uint64_t)sp->stdin_open;
	st->run.attached = (uint64_t)sp->attached;
	st->run.stdin.data = bytes_dup(sp->input, sp->input_len);
	st->run.stdin.len = sp->input_len;
	session_put(s, SESSION_STARTING, 1, sp->actor, sp->request, sp->key,
	    start_recorded, st);
}

void
session_fill(struct session *s, const struct row_session *r)
{
	(void)str_copy(s->sandbox, r->sandbox, sizeof(s->sandbox));
	(void)str_copy(s->id, r->id, sizeof(s->id));
	(void)str_copy(s->tenant, r->tenant, sizeof(s->tenant));
	(void)str_copy(s->name, r->name, sizeof(s->name));
	(void)str_copy(s->user, r->user, sizeof(s->user));
	(void)str_copy(s->reason, r->reason, sizeof(s->reason));
	s->memory_bytes = r->memory_bytes;
	s->pids = r->pids;
	s->origin = (unsigned int)r->origin;
	s->state = (enum session_state)r->state;
	s->exit_code = r->exit_code;
	s->signal = r->signal;
	s->left_behind = r->left_behind;
	s->started_ms = r->started_ms;
	s->ended_ms = r->ended_ms;
}

/* ---- waiting, and as JSON ----------------------------------------- */

void
session_wait(struct session *s, struct session_wait *w)
{
	if (s->state == SESSION_ENDED) {
		w->fn(w, s);
		return;
	}
	w->on = 1;
	LIST_INSERT_HEAD(&s->waits, w, next);
}

void
session_wait_drop(struct session_wait *w)
{
	if (!w->on)
		return;
	LIST_REMOVE(w, next);
	w->on = 0;
}

static json_t *
usage_json(const struct session *s)
{
	return json_pack("{sf sf sf so}",
	    "wallSeconds", (double)s->wall_ms / 1000,
	    "userSeconds", (double)s->user_usec / 1000000,
	    "systemSeconds", (double)s->sys_usec / 1000000,
	    "peakMemoryBytes", s->peak_bytes == 0 ? json_null() :
	    json_integer((json_int_t)s->peak_bytes));
}

void
session_result(const struct session *s, json_t *o)
{
	int	ended = s->state == SESSION_ENDED;
	int	lost = strcmp(s->reason, "lost") == 0;

	/* json_object_set_new() fails only without memory */
	(void)json_object_set_new(o, "exitCode", !ended || lost ||
	    s->signal != 0 ? json_null() :
	    json_integer((json_int_t)s->exit_code));
	(void)json_object_set_new(o, "signal", !ended || s->signal == 0 ?
	    json_null() : json_integer((json_int_t)s->signal));
	(void)json_object_set_new(o, "reason", ended ?
	    text_json_or_null(s->reason) : json_null());
	(void)json_object_set_new(o, "leftBehind",
	    json_integer((json_int_t)s->left_behind));
	(void)json_object_set_new(o, "startedAt", time_json(s->started_ms));
	(void)json_object_set_new(o, "endedAt", ended ?
	    time_json(s->ended_ms) : json_null());
	if (s->exit_known || s->last_seq != 0)
		(void)json_object_set_new(o, "lastSeq",
		    json_integer((json_int_t)s->last_seq));
	if (ended && s->usage_known)
		(void)json_object_set_new(o, "usage", usage_json(s));
}

static json_t *
limits_json(const struct session *s)
{
	json_t	*o = json_object();

	if (s->memory_bytes != 0)
		(void)json_object_set_new(o, "memoryBytes",
		    json_integer((json_int_t)s->memory_bytes));
	if (s->pids != 0)
		(void)json_object_set_new(o, "pids",
		    json_integer((json_int_t)s->pids));
	return o;
}

json_t *
session_json(const struct session *s)
{
	static const char *const	states[] = { "starting", "running",
	    "ended" };
	json_t				*o;

	o = json_pack("{ss ss so so so so so ss ss}", "sessionId", s->id,
	    "sandboxId", s->sandbox, "name", text_json_or_null(s->name),
	    "argv", list_to_array(&s->argv),
	    "user", text_json_or_null(s->user),
	    "labels", list_to_object(&s->labels), "limits", limits_json(s),
	    "origin", s->origin == 0 ? "api" : "box",
	    "state", states[s->state]);
	session_result(s, o);
	if (s->first_seq != 0)
		(void)json_object_set_new(o, "firstSeq",
		    json_integer((json_int_t)s->first_seq));
	return o;
}

json_t *
session_row_json(const struct row_session *r)
{
	struct session	s;

	memset(&s, 0, sizeof(s));
	session_fill(&s, r);
	s.argv = r->argv;
	s.labels = r->labels;
	return session_json(&s);
}
