/*
 * resume.c: sessions that this process did not start: older ones that
 * somebody asks for, those that outlived the daemons, those of wb, and rows
 * of boxes that are no more.
 *
 * After an attach the rows that have no end yet are read from stored, and
 * the runner is asked for the end of each: one that it does not know is lost.
 * Then it lists its own, for sessions of wb that nobody heard of.
 *
 * Must never: take a session's row or an id from a runner for more than it
 * is: the box's word, checked and bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "sref.h"
#include "xmalloc.h"

/*
 * Sessions of wb recorded a second; each KiB of arguments counts as one more,
 * since the record keeps them for ever, on the host's disk.  Nobody who works
 * uses up the burst; a box that tries for a day gets 200 MB.
 */
#define ANNOUNCE_BURST	200
#define ANNOUNCE_RATE	2
#define ANNOUNCE_BYTES	(1024UL * 1024)	/* of their argv, kept per box */
#define CLOCK_SLACK_MS	60000		/* an id of the box's may lie ahead */
#define RUNNER_PAGES	16		/* of RUNNER_SESSIONS, at most */

/* ---- sessions that wb started ------------------------------------- */

static void
announce_recorded(void *arg, const struct msg *m)
{
	struct session	*s = arg;
	enum wb_code	 code = peer_code(m);

	if (code != CODE_NONE) {
		log_info("session %s of wb: record its start: %s", s->id,
		    peer_detail(m));
		session_unlist(s);
	} else
		session_ask_end(s);
	session_unref(s);
}

/* What a box has us keep. */
static size_t
announced_bytes(const struct box *b)
{
	const struct session	*s;
	size_t			 n = 0;

	LIST_FOREACH(s, &b->sessions, by_box)
		if (s->origin == 1)
			n += list_bytes(&s->argv);
	return n;
}

void
session_announced(struct box *b, const char *id, const char *name,
    const struct wire_list *argv)
{
	struct session	*s = session_find(b, id);
	uint64_t	 ms = ulid_ms(id), now = now_ms();

	if (s != NULL && s->origin == 1)
		return;		/* told again after an attach */
	if (s != NULL || ms > now + CLOCK_SLACK_MS ||
	    ms + CLOCK_SLACK_MS < b->created_ms) {
		peer_fault(b->runner, "SESSION_ANNOUNCE: an id that cannot "
		    "be its own");
		return;
	}
	if (b->running >= BOX_RUNNING_MAX ||
	    announced_bytes(b) + list_bytes(argv) > ANNOUNCE_BYTES ||
	    !bucket_take_n(&b->announce_rate, ANNOUNCE_BURST, ANNOUNCE_RATE,
	    1 + (unsigned int)(list_bytes(argv) / 1024))) {
		runner_log(b, "a session of wb is not on the record: too "
		    "many at once");
		return;
	}
	s = session_new(b, id, name, argv, 1);
	s->state = SESSION_RUNNING;
	session_count(s);
	session_put(s, SESSION_RUNNING, 0, "wb", "", NULL, announce_recorded,
	    session_ref(s));
}

/* ---- from stored -------------------------------------------------- */

static struct session *
session_load(struct box *b, const struct row_session *r)
{
	struct session	*s = session_new(b, r->id, r->name, &r->argv,
			    (unsigned int)r->origin);

	session_fill(s, r);
	s->labels = list_dup(&r->labels);
	if (s->state == SESSION_ENDED)
		b->ended++;
	else {
		session_count(s);
		s->resumed_ms = mono_ms();
	}
	return s;
}

void
ulid_before(const char *id, char ret[27])
{
	static const char	digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	const char		*p;
	int			 i;

	memcpy(ret, id, 27);
	for (i = ULID_LEN - 1; i >= 0; i--) {
		if (ret[i] != '0') {
			p = strchr(digits, ret[i]);
			ret[i] = p == NULL ? '0' : p[-1];
			return;
		}
		ret[i] = 'Z';
	}
	ret[0] = '\0';		/* nothing lies before the first */
}

struct get {
	struct box	*box;		/* referenced */
	char		 ref[64];	/* as it was asked for */
	struct sref	 which;		/* borrows ref */
	char		 id[27];	/* whose row, or the last row seen */
	void		(*fn)(struct session *, enum wb_code, void *);
	void		*arg;
};

static void
get_over(struct get *g, struct session *s, enum wb_code code)
{
	g->fn(s, code, g->arg);
	sessions_trim(g->box);
	box_unref(g->box);
	free(g);
}

static void
get_row(void *arg, const struct msg *m)
{
	struct get		*g = arg;
	const struct wire_list	*rows = &m->body.session_page.rows;
	struct session		*s = session_find(g->box, g->id);
	struct row_session	 r;
	struct wire_bin		 items[SESSION_ITEMS];
	enum wb_code		 code = peer_code(m);

	if (code == CODE_NONE && s == NULL && rows->n != 0 &&
	    wire_decode_into(&wire_row_session, rows->v[0].data,
	    rows->v[0].len, items, SESSION_ITEMS, &r) == -1)
		fatalx("session row of stored: %s", wire_error());
	if (code == CODE_NONE && s == NULL && rows->n != 0 &&
	    strcmp(r.id, g->id) == 0 && g->box->listed)
		s = session_load(g->box, &r);
	if (s != NULL)
		(void)session_ref(s);
	get_over(g, s, s != NULL ? CODE_NONE : code != CODE_NONE ? code :
	    CODE_NOT_FOUND);
	if (s != NULL)
		session_unref(s);
}

/* By its whole id, from memory or stored.  g is taken. */
static void
get_by_id(struct get *g, const char *id)
{
	struct msg_session_rows	 m = { .limit = 1 };
	struct session		*s = session_find(g->box, id);

	if (s != NULL) {
		(void)session_ref(s);
		get_over(g, s, CODE_NONE);
		session_unref(s);
		return;
	}
	(void)str_copy(g->id, id, sizeof(g->id));
	(void)str_copy(m.sandbox, g->box->id, sizeof(m.sandbox));
	ulid_before(id, m.after);
	peer_ask(env.stored, MSG_SESSION_ROWS, &m, T_STORE, get_row, g);
}

/* All rows were seen; what is in memory may be newer than these. */
static void
get_found(struct get *g)
{
	struct session	*s;
	const char	*id;

	LIST_FOREACH(s, &g->box->sessions, by_box)
		sref_see(&g->which, s->id, s->name,
		    s->state == SESSION_ENDED);
	if ((id = sref_id(&g->which)) != NULL)
		get_by_id(g, id);
	else
		get_over(g, NULL, g->which.many ? CODE_BAD_REQUEST :
		    CODE_NOT_FOUND);
}

static void	get_rows(struct get *);

static void
get_page(void *arg, const struct msg *m)
{
	struct get		*g = arg;
	const struct wire_list	*rows = &m->body.session_page.rows;
	struct row_session	 r;
	struct wire_bin		 items[SESSION_ITEMS];
	enum wb_code		 code = peer_code(m);
	struct session		*s;
	size_t			 i;

	if (code != CODE_NONE) {
		get_over(g, NULL, code);
		return;
	}
	for (i = 0; i < rows->n; i++) {
		if (wire_decode_into(&wire_row_session, rows->v[i].data,
		    rows->v[i].len, items, SESSION_ITEMS, &r) == -1)
			fatalx("session row of stored: %s", wire_error());
		(void)str_copy(g->id, r.id, sizeof(g->id));
		s = session_find(g->box, r.id);	/* knows better */
		sref_see(&g->which, r.id, r.name, s != NULL ?
		    s->state == SESSION_ENDED : r.state == SESSION_ENDED);
	}
	if (rows->n != 0)
		get_rows(g);
	else
		get_found(g);
}

/* stored keeps so few that have ended that a name may be looked for. */
static void
get_rows(struct get *g)
{
	struct msg_session_rows	m = { .limit = 256 };

	(void)str_copy(m.sandbox, g->box->id, sizeof(m.sandbox));
	(void)str_copy(m.after, g->id, sizeof(m.after));
	peer_ask(env.stored, MSG_SESSION_ROWS, &m, T_STORE, get_page, g);
}

/* The newest of this name that runs, if it is known already. */
static struct session *
session_named(struct box *b, const char *name)
{
	struct session	*s;

	LIST_FOREACH(s, &b->sessions, by_box)
		if (s->state != SESSION_ENDED && strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

void
session_get(struct box *b, const char *ref,
    void (*fn)(struct session *, enum wb_code, void *), void *arg)
{
	struct session	*s = NULL;
	struct get	*g = xcalloc(1, sizeof(*g));

	g->box = box_ref(b);
	g->fn = fn;
	g->arg = arg;
	(void)str_copy(g->ref, ref, sizeof(g->ref));
	if (strlen(ref) >= sizeof(g->ref) ||
	    sref_init(&g->which, g->ref) == -1)
		get_over(g, NULL, CODE_NOT_FOUND);
	else if (ulid_ok(ref))
		get_by_id(g, ref);
	else if (g->which.prefix == 0 && (s = session_named(b, ref)) != NULL)
		get_by_id(g, s->id);
	else
		get_rows(g);
}

/* ---- after an attach ---------------------------------------------- */

struct resume {
	struct box	*box;		/* referenced */
	unsigned int	 pages;
	char		 after[27];
};

static void
resume_free(struct resume *r)
{
	box_unref(r->box);
	free(r);
}

static void	resume_runner(struct resume *);

/* One session as the runner tells it; -1: not as it may be. */
static int
resume_one(struct resume *r, const struct wire_bin *row)
{
	struct row_rsession	 x;
	struct wire_list	 none = { NULL, 0 };
	struct session		*s;

	if (wire_decode_into(&wire_row_rsession, row->data, row->len, NULL,
	    0, &x) == -1 || strcmp(x.id, r->after) <= 0)
		return -1;
	(void)str_copy(r->after, x.id, sizeof(r->after));
	if ((s = session_find(r->box, x.id)) != NULL) {
		s->first_seq = x.first_seq;
		s->last_seq = x.last_seq;
	} else if (x.origin == 1 && !x.ended)
		session_announced(r->box, x.id, x.name, &none);
	return 0;
}

static void
resume_told(void *arg, const struct msg *m)
{
	struct resume		*r = arg;
	const struct wire_list	*rows;
	size_t			 i;

	if (m == NULL || m->row->type == MSG_ERROR) {
		resume_free(r);
		return;
	}
	rows = &m->body.runner_sessions_are.rows;
	for (i = 0; i < rows->n; i++)
		if (resume_one(r, &rows->v[i]) == -1) {
			peer_fault(r->box->runner, "RUNNER_SESSIONS_ARE: "
			    "row %zu is not one", i);
			break;
		}
	if (rows->n == 0 || i < rows->n || ++r->pages >= RUNNER_PAGES)
		resume_free(r);
	else
		resume_runner(r);
}

static void
resume_runner(struct resume *r)
{
	struct msg_runner_sessions	m = { 0 };

	if (r->box->runner == NULL) {
		resume_free(r);
		return;
	}
	(void)str_copy(m.after, r->after, sizeof(m.after));
	peer_ask(r->box->runner, MSG_RUNNER_SESSIONS, &m, T_RUNNER,
	    resume_told, r);
}

static void	resume_rows(struct resume *);

static void
resume_row(void *arg, const struct msg *m)
{
	struct resume		*r = arg;
	const struct wire_list	*rows = &m->body.session_page.rows;
	struct row_session	 row;
	struct wire_bin		 items[SESSION_ITEMS];
	struct session		*s;
	size_t			 i;

	if (m->row->type == MSG_ERROR) {
		log_warnx("box %s: read its sessions: %s", r->box->id,
		    m->body.error.detail);
		resume_free(r);
		return;
	}
	for (i = 0; i < rows->n && r->box->listed; i++) {
		if (wire_decode_into(&wire_row_session, rows->v[i].data,
		    rows->v[i].len, items, SESSION_ITEMS, &row) == -1)
			fatalx("session row of stored: %s", wire_error());
		(void)str_copy(r->after, row.id, sizeof(r->after));
		if ((s = session_find(r->box, row.id)) == NULL)
			s = session_load(r->box, &row);
		if (s->state == SESSION_STARTING)
			s->state = SESSION_RUNNING;	/* or NOT_FOUND */
		session_ask_end(s);
	}
	if (rows->n != 0 && r->box->listed) {
		resume_rows(r);
		return;
	}
	r->after[0] = '\0';
	resume_runner(r);
}

static void
resume_rows(struct resume *r)
{
	struct msg_session_rows	m = { .limit = 256, .open_only = 1 };

	(void)str_copy(m.sandbox, r->box->id, sizeof(m.sandbox));
	(void)str_copy(m.after, r->after, sizeof(m.after));
	peer_ask(env.stored, MSG_SESSION_ROWS, &m, T_STORE, resume_row, r);
}

void
sessions_resume(struct box *b)
{
	struct resume	*r = xcalloc(1, sizeof(*r));

	b->known = 1;
	r->box = box_ref(b);
	resume_rows(r);
}

/* ---- rows that nobody will ask the runner about ------------------- */

static void	forsaken_ask(struct resume *);

static void
forsaken_end(struct row_session *row)
{
	struct msg_session_put	 m = { .durable = 1, .actor = "apid" };
	static uint8_t		 buf[WIRE_MAX];
	ssize_t			 n;

	row->state = SESSION_ENDED;
	row->ended_ms = now_ms();
	(void)str_copy(row->reason, "lost", sizeof(row->reason));
	if ((n = wire_encode(&wire_row_session, row, buf,
	    sizeof(buf))) == -1)
		fatalx("encode session: %s", wire_error());
	m.row.data = buf;
	m.row.len = (size_t)n;
	peer_ask(env.stored, MSG_SESSION_PUT, &m, T_STORE, NULL, NULL);
}

static void
forsaken_row(void *arg, const struct msg *m)
{
	struct resume		*r = arg;
	const struct wire_list	*rows = &m->body.session_page.rows;
	struct row_session	 row;
	struct wire_bin		 items[SESSION_ITEMS];
	size_t			 i;

	if (m->row->type == MSG_ERROR) {
		log_warnx("box %s: read its sessions: %s", r->box->id,
		    m->body.error.detail);
		resume_free(r);
		return;
	}
	for (i = 0; i < rows->n; i++) {
		if (wire_decode_into(&wire_row_session, rows->v[i].data,
		    rows->v[i].len, items, SESSION_ITEMS, &row) == -1)
			fatalx("session row of stored: %s", wire_error());
		(void)str_copy(r->after, row.id, sizeof(r->after));
		if (session_find(r->box, row.id) == NULL)
			forsaken_end(&row);
	}
	if (rows->n != 0)
		forsaken_ask(r);
	else
		resume_free(r);
}

static void
forsaken_ask(struct resume *r)
{
	struct msg_session_rows	m = { .limit = 256, .open_only = 1 };

	(void)str_copy(m.sandbox, r->box->id, sizeof(m.sandbox));
	(void)str_copy(m.after, r->after, sizeof(m.after));
	peer_ask(env.stored, MSG_SESSION_ROWS, &m, T_STORE, forsaken_row, r);
}

void
sessions_forsaken(struct box *b)
{
	struct resume	*r;

	if (b->known)
		return;		/* sessions_lost() has done it */
	b->known = 1;
	r = xcalloc(1, sizeof(*r));
	r->box = box_ref(b);
	forsaken_ask(r);
}
