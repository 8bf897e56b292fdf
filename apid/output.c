/*
 * output.c: readers of a session's output, writers of its input.
 *
 * Theory of operation.  Output is pulled: the runner keeps it, and sends a
 * chunk only for a SESSION_READ.  A reader asks for the chunks that it knows
 * to exist several at a time (READS_MAX), and for the one after them with a
 * single request that waits.  Requests carry ascending `after', are answered
 * in this order, and each asks for room of a whole chunk before it is made;
 * so what is held for a slow client is bounded by its queue, and what it
 * does not take stays in the runner, which holds the command back (for one
 * reader, the holder) or tells a gap later.
 *
 * The runner takes a holder that asks nothing for ten seconds for gone; so one
 * whose client is only slow asks now and then for a chunk that is not there
 * (HOLD_MS), which is answered at once and says that it is alive.
 *
 * A waiting request of a reader that went away cannot be taken back.  It
 * stays as an orphan, and the next reader at the same place takes it over:
 * a client that comes and goes leaves one behind, not one each time.
 *
 * Must never: ask for a chunk that there is no room for, or tell a chunk
 * whose number does not follow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define READS_MAX	8		/* outstanding, per reader */
#define READS_LOW	3		/* so few: ask again, for several */
#define HOLD_MS		3000		/* a holder is heard of */
#define GONE_MS		10000		/* then the runner takes it for gone */
#define BEYOND		1000000		/* chunks: surely not there */
#define FEED_MAX	32768		/* bytes of one SESSION_STDIN */
#define FEED_AGAIN_MS	50		/* the runner has no room for it */

struct reader {
	LIST_ENTRY(reader)	 next;
	struct session		*session;	/* referenced */
	const struct reader_ops	*ops;		/* borrowed: static */
	void			*arg;
	uint64_t		 told;		/* last chunk or gap */
	uint64_t		 ask;		/* next `after' */
	uint64_t		 target;	/* not following: up to this */
	int			 follow, targeted;
	int			 waiting;	/* the last one out waits */
	unsigned int		 out;
	int			 busy, over, freed;
	int			 may_hold;	/* has missed nothing */
	int			 heir;		/* what is out does not hold */
	struct event		 alive;		/* of a holder */
	LIST_HEAD(, ask)	 asks;
};

struct ask {
	LIST_ENTRY(ask)	 next;			/* reader's or orphans */
	struct reader	*reader;		/* borrowed, or NULL */
	struct session	*session;		/* referenced */
	uint64_t	 after;
	unsigned int	 wait, attached;
};

static void	reader_heir(struct session *);

/* ---- life --------------------------------------------------------- */

static void
reader_release(struct reader *r)
{
	if (r->busy != 0 || !r->freed)
		return;
	session_unref(r->session);
	free(r);
}

/* Nothing is asked or told any more. */
static void
reader_stop(struct reader *r)
{
	struct session	*s = r->session;
	struct ask	*a;

	if (r->over)
		return;
	r->over = 1;
	(void)event_del(&r->alive);
	LIST_REMOVE(r, next);
	s->nreaders--;
	if (s->holder == r) {
		s->holder = NULL;
		reader_heir(s);
	}
	while ((a = LIST_FIRST(&r->asks)) != NULL) {
		LIST_REMOVE(a, next);
		a->reader = NULL;
		LIST_INSERT_HEAD(&s->orphans, a, next);
	}
}

static void
reader_end(struct reader *r, enum wb_code code)
{
	if (r->over)
		return;
	reader_stop(r);
	r->busy++;
	r->ops->end(r->arg, code);
	r->busy--;
	reader_release(r);
}

void
reader_free(struct reader *r)
{
	if (r == NULL || r->freed)
		return;
	reader_stop(r);
	r->freed = 1;
	reader_release(r);
}

uint64_t
reader_told(const struct reader *r)
{
	return r->told;
}

void
readers_lost(struct session *s)
{
	struct reader	*r;

	/* ops of one may free another: from the start each time */
	while ((r = LIST_FIRST(&s->readers)) != NULL)
		reader_end(r, CODE_INTERNAL);
}

void
readers_ended(struct session *s)
{
	struct reader	*r, *next;

	for (r = LIST_FIRST(&s->readers); r != NULL; r = next) {
		if (r->told < s->last_seq) {
			next = LIST_NEXT(r, next);
			continue;
		}
		reader_end(r, CODE_NONE);
		next = LIST_FIRST(&s->readers);
	}
}

/* ---- answers ------------------------------------------------------ */

/* What is wrong with an answer to after, or NULL. */
static const char *
chunk_refuse(const struct session *s, uint64_t after,
    const struct msg_session_chunk *c)
{
	if (strcmp(c->id, s->id) != 0)
		return "another session's";
	if (c->gap_last != 0 && (c->gap_first != after + 1 ||
	    c->gap_last < c->gap_first))
		return "a gap that is none";
	if (c->gap_last == 0 && (c->gap_first != 0 || c->gap_bytes != 0))
		return "half a gap";
	if (c->seq == 0)
		return c->bytes.len != 0 ? "bytes without a number" : NULL;
	if (c->seq != (c->gap_last != 0 ? c->gap_last : after) + 1)
		return "a number that does not follow";
	if (c->stream == STREAM_NONE || c->bytes.len == 0)
		return "a chunk without bytes or stream";
	return NULL;
}

static int
reader_has_all(const struct reader *r, const struct msg_session_chunk *c)
{
	const struct session	*s = r->session;

	if (c->eof || (s->exit_known && r->told >= s->last_seq))
		return 1;
	return !r->follow && (c->seq == 0 || r->told >= r->target);
}

static void
reader_chunk(struct reader *r, const struct msg_session_chunk *c)
{
	struct session	*s = r->session;
	uint64_t	 top = c->seq != 0 ? c->seq : c->gap_last;
	uint64_t	 first = c->gap_last != 0 ? c->gap_first : c->seq;

	if (!r->targeted) {
		r->target = c->last_seq;
		r->targeted = 1;
	}
	if (first > r->told + 1) {	/* a cut, and not a silent loss */
		reader_end(r, CODE_INTERNAL);
		return;
	}
	/*
	 * Asked before a gap was told, it counts again what that one did.
	 * What was asked behind that one comes, or is asked next.
	 */
	if (c->gap_last != 0 && c->gap_first <= r->told && top > r->told) {
		reader_more(r);
		return;
	}
	if (top > r->told) {	/* else told already, beyond a gap */
		r->told = top;
		if (r->ask < top)
			r->ask = top;
		if (r->may_hold && s->held_to < top)
			s->held_to = top;
		metrics_add(METRIC_OUTPUT, c->bytes.len);
		r->ops->chunk(r->arg, c);
	}
	if (!r->over && reader_has_all(r, c))
		reader_end(r, CODE_NONE);
	else if (!r->over)
		reader_more(r);
}

static void
ask_free(struct ask *a)
{
	LIST_REMOVE(a, next);
	session_unref(a->session);
	free(a);
}

static void
ask_answered(void *arg, const struct msg *m)
{
	struct ask				*a = arg;
	struct reader				*r = a->reader;
	struct session				*s = a->session;
	const struct msg_session_chunk		*c;
	uint64_t				 after = a->after;
	unsigned int				 wait = a->wait;
	const char				*no;

	(void)session_ref(s);
	ask_free(a);
	if (r == NULL) {
		session_unref(s);
		return;
	}
	r->busy++;
	r->out--;
	if (wait)
		r->waiting = 0;
	c = m == NULL ? NULL : &m->body.session_chunk;
	if (m == NULL)
		reader_end(r, CODE_INTERNAL);
	else if (m->row->type == MSG_ERROR)
		reader_end(r, CODE_GONE);
	else if ((no = chunk_refuse(s, after, c)) != NULL ||
	    (no = wait && c->seq == 0 && c->gap_last == 0 && !c->eof ?
	    "nothing, though it was to wait" : NULL) != NULL)
		peer_fault(s->box->runner, "SESSION_CHUNK: %s", no);
	else {
		if (!s->exit_known && c->last_seq > s->last_seq)
			s->last_seq = c->last_seq;
		s->first_seq = c->first_seq;
		reader_chunk(r, c);
	}
	r->busy--;
	reader_release(r);
	session_unref(s);
}

/* ---- asking ------------------------------------------------------- */

static struct ask *
orphan_find(struct session *s, uint64_t after, unsigned int attached)
{
	struct ask	*a;

	LIST_FOREACH(a, &s->orphans, next)
		if (a->wait && a->after == after && a->attached == attached)
			return a;
	return NULL;
}

/* In nobody's list yet. */
static struct ask *
ask_new(struct session *s, uint64_t after, unsigned int wait,
    unsigned int attached)
{
	struct msg_session_read	 m = { .after = after, .wait = wait,
	    .attached = attached };
	struct ask		*a = xcalloc(1, sizeof(*a));

	a->session = session_ref(s);
	a->after = after;
	a->wait = wait;
	a->attached = attached;
	(void)str_copy(m.id, s->id, sizeof(m.id));
	peer_ask(s->box->runner, MSG_SESSION_READ, &m, wait ? 0 : T_RUNNER,
	    ask_answered, a);
	return a;
}

static void
reader_alive(int fd, short what, void *arg)
{
	struct reader	*r = arg;
	struct session	*s = r->session;
	struct ask	*a;

	(void)fd;
	(void)what;
	if (r->over || (r->out != 0 && !r->heir) || s->holder != r ||
	    s->box->runner == NULL)
		return;
	a = ask_new(s, s->last_seq + BEYOND, 0, 1);
	LIST_INSERT_HEAD(&s->orphans, a, next);	/* nobody waits for it */
}

static void
reader_hold(struct reader *r)
{
	struct timeval	 tv = { HOLD_MS / 1000, HOLD_MS % 1000 * 1000L };
	struct session	*s = r->session;

	if (s->holder != NULL)
		(void)event_del(&s->holder->alive);
	s->holder = r;
	if (event_add(&r->alive, &tv) == -1)
		fatalx("add timer: out of memory");
}

/*
 * One that came back before its old connection was seen to have ended holds
 * in its place.  What it has asked so far did not say so; where it is tells a
 * request that nobody waits for: the one before it may have stood still far
 * behind, and what waits for a chunk to come would wait for it.
 */
static void
reader_heir(struct session *s)
{
	struct reader	*r = NULL, *one;
	struct ask	*a;
	uint64_t	 after;

	/* who is furthest behind, of those who have missed nothing yet */
	LIST_FOREACH(one, &s->readers, next)
		if (one->may_hold && one->told + 1 >= s->first_seq &&
		    (r == NULL || one->told < r->told))
			r = one;
	if (r == NULL)
		return;
	reader_hold(r);
	r->heir = 1;
	if (s->box->runner == NULL)
		return;
	/* the answer counts as sent to it: one that it has, where it can be */
	after = r->told > 0 && r->told >= s->first_seq ? r->told - 1 : r->told;
	a = ask_new(s, after, 0, 1);
	LIST_INSERT_HEAD(&s->orphans, a, next);
}

static void
reader_ask(struct reader *r, unsigned int wait)
{
	struct session		*s = r->session;
	unsigned int		 attached = s->holder == r;
	struct ask		*a = NULL;

	if (wait && (a = orphan_find(s, r->ask, attached)) != NULL)
		LIST_REMOVE(a, next);
	if (a == NULL)
		a = ask_new(s, r->ask, wait, attached);
	if (attached)
		r->heir = 0;
	a->reader = r;
	LIST_INSERT_HEAD(&r->asks, a, next);
	r->ask++;
	r->out++;
	r->waiting = (int)wait;
}

/*
 * An orphan was asked before all that is out, and may be answered before it:
 * it is taken over when the rest is told.
 */
static int
orphan_is_early(const struct reader *r)
{
	struct session	*s = r->session;

	return r->out != 0 && orphan_find(s, r->ask, s->holder == r) != NULL;
}

void
reader_more(struct reader *r)
{
	struct session	*s = r->session;
	size_t		 room;

	if (r->over || s->box->runner == NULL)
		return;		/* readers_lost() ends it */
	if (r->out > READS_LOW)
		return;		/* or each answer wakes the runner for one */
	room = r->ops->room(r->arg);
	while (!r->waiting && r->out < READS_MAX && r->out < room) {
		if (r->targeted && !r->follow && r->ask >= r->target)
			return;
		if (r->ask < s->last_seq)
			reader_ask(r, 0);
		else if (r->follow && !orphan_is_early(r))
			reader_ask(r, 1);
		else if (!r->follow && r->out == 0)
			reader_ask(r, 0);
		else
			return;
	}
}

/*
 * Who held the session when the daemons before ended, and where that one was,
 * only the runner knows, and for GONE_MS.  Until then it may be any that
 * comes, and of two the one that is further behind.
 */
static int
is_unknown(const struct session *s)
{
	return s->resumed_ms != 0 && mono_ms() - s->resumed_ms < GONE_MS;
}

/*
 * From where one that comes back may hold: what was on its way to the one
 * before it has not seen, and it may be further than who holds now.
 */
static uint64_t
held_at_most(const struct session *s)
{
	return s->holder == NULL && is_unknown(s) ? UINT64_MAX : s->held_to;
}

struct reader *
reader_new(struct session *s, uint64_t after, int follow, int hold,
    const struct reader_ops *ops, void *arg)
{
	struct reader	*r;

	if (s->nreaders >= BOX_READERS_MAX || s->box->runner == NULL)
		return NULL;
	r = xcalloc(1, sizeof(*r));
	r->session = session_ref(s);
	r->ops = ops;
	r->arg = arg;
	r->told = r->ask = after;
	r->follow = follow;
	(void)event_assign(&r->alive, env.base, -1, EV_PERSIST, reader_alive,
	    r);
	LIST_INIT(&r->asks);
	LIST_INSERT_HEAD(&s->readers, r, next);
	s->nreaders++;
	r->may_hold = hold && follow && after <= held_at_most(s);
	if (r->may_hold && s->held_to < after)
		s->held_to = after;		/* it was not known */
	if (r->may_hold && (s->holder == NULL || is_unknown(s)))
		reader_hold(r);
	reader_more(r);
	return r;
}

/* ---- input -------------------------------------------------------- */

struct feed {
	struct session	*session;		/* referenced */
	uint64_t	 offset;		/* of the next byte */
	const uint8_t	*data;			/* borrowed: caller */
	size_t		 len, part;		/* left; of them under way */
	int		 eof;
	struct event	 again;
	void		(*done)(void *, enum wb_code, uint64_t,
			    const char *);
	void		*arg;
};

static void	feed_step(struct feed *);

static void
feed_over(struct feed *f, enum wb_code code, uint64_t offset,
    const char *detail)
{
	void	(*done)(void *, enum wb_code, uint64_t, const char *);
	void	*arg = f->arg;

	done = f->done;
	f->done = NULL;
	feed_free(f);
	if (done != NULL)
		done(arg, code, offset, detail);
}

void
feed_free(struct feed *f)
{
	struct session	*s;

	if (f == NULL)
		return;
	s = f->session;
	peer_forget(s->box->runner, f);
	(void)event_del(&f->again);
	if (s->feed == f)
		s->feed = NULL;
	session_unref(s);
	free(f);
}

/* The number in the detail of a BAD_OFFSET; proto.def, SESSION_STDIN. */
static uint64_t
offset_due(const char *detail)
{
	char		*end;
	unsigned long long v;

	errno = 0;
	v = strtoull(detail, &end, 10);
	return errno != 0 || *end != '\0' || v > WB_U63 ? 0 : v;
}

/* Its runner is gone: because the sandbox goes, or nobody knows why. */
static void
feed_lost(struct feed *f)
{
	const char	*why;
	enum wb_code	 code = box_refuses(f->session->box, &why);

	if (code == CODE_NONE) {
		code = CODE_INTERNAL;
		why = "The sandbox's runner went away.";
	}
	feed_over(f, code, f->offset, why);
}

static void
feed_again(int fd, short what, void *arg)
{
	struct feed	*f = arg;

	(void)fd;
	(void)what;
	if (f->session->box->runner != NULL)
		feed_step(f);
	else
		feed_lost(f);
}

static void
feed_taken(void *arg, const struct msg *m)
{
	struct timeval	 tv = { 0, FEED_AGAIN_MS * 1000L };
	struct feed	*f = arg;
	char		 detail[256];

	if (m != NULL && peer_code(m) == CODE_BUSY) {
		if (event_add(&f->again, &tv) == -1)
			fatalx("add timer: out of memory");
	} else if (m == NULL) {
		feed_lost(f);
	} else if (m->row->type == MSG_ERROR) {
		(void)str_copy(detail, m->body.error.detail, sizeof(detail));
		feed_over(f, (enum wb_code)m->body.error.code,
		    offset_due(detail), detail);
	} else if (m->body.session_stdin_at.offset != f->offset + f->part) {
		peer_fault(f->session->box->runner,
		    "SESSION_STDIN_AT: another offset than was written");
		feed_over(f, CODE_INTERNAL, f->offset,
		    "The sandbox's runner broke protocol.");
	} else {
		f->offset += f->part;
		metrics_add(METRIC_INPUT, f->part);
		f->data += f->part;
		f->len -= f->part;
		if (f->len != 0)
			feed_step(f);
		else
			feed_over(f, CODE_NONE, f->offset, "");
	}
}

static void
feed_step(struct feed *f)
{
	struct msg_session_stdin	 m = { 0 };
	struct session			*s = f->session;

	f->part = f->len < FEED_MAX ? f->len : FEED_MAX;
	(void)str_copy(m.id, s->id, sizeof(m.id));
	m.offset = f->offset;
	m.bytes.data = f->data;
	m.bytes.len = f->part;
	m.eof = (uint64_t)(f->eof && f->part == f->len);
	peer_ask(s->box->runner, MSG_SESSION_STDIN, &m, 0, feed_taken, f);
}

struct feed *
feed_new(struct session *s, uint64_t offset, const uint8_t *data, size_t len,
    int eof, void (*done)(void *, enum wb_code, uint64_t, const char *),
    void *arg)
{
	struct feed	*f;

	if (s->feed != NULL || s->box->runner == NULL)
		return NULL;
	f = xcalloc(1, sizeof(*f));
	f->session = session_ref(s);
	f->offset = offset;
	f->data = data;
	f->len = len;
	f->eof = eof;
	f->done = done;
	f->arg = arg;
	(void)evtimer_assign(&f->again, env.base, feed_again, f);
	s->feed = f;
	feed_step(f);
	return f;
}
