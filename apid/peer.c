/*
 * peer.c: one channel, its requests and their answers.
 *
 * Every request that was asked gets exactly one callback: its answer, NULL
 * when the peer is no more, or none at all when its asker forgot it.  An
 * answer that nobody asked for, one of another type than was due, and one
 * that does not come in time are faults of the peer as a whole, not of one
 * request.  A runner's fault ends in its box (runner.c); a daemon's ends this
 * process, for without it there is nothing that we could promise.
 *
 * A peer may be freed from within its own callbacks: it is then dead at
 * once and its memory goes when the dispatch has returned (busy).
 *
 * Must never: hand over a message whose type is not the one that was due.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define PEER_BUCKETS	64
#define PEER_BURST	32		/* messages per turn of the loop */

struct peer_req {
	LIST_ENTRY(peer_req)	 next;
	struct peer		*peer;		/* borrowed: its owner */
	uint32_t		 rid;
	unsigned int		 answer;	/* type that is due */
	const char		*name;		/* of the request */
	struct event		 timer;
	int			 timed;
	void			(*cb)(void *, const struct msg *);
	void			*arg;
};

LIST_HEAD(peer_reqs, peer_req);

struct peer {
	struct chan		 chan;		/* owned */
	char			 name[64];
	struct event		 in, out, fault;
	struct event		 resume;
	struct peer_reqs	 reqs[PEER_BUCKETS];
	unsigned int		 nreqs;
	unsigned int		 busy;		/* dispatches on the stack */
	int			 vital;		/* a daemon: nothing without it */
	int			 dead, freed, paused;
	enum peer_end		 end;		/* of the fault that is due */
	char			 why[200];
	void			(*on_msg)(struct peer *, struct msg *);
	void			(*on_fault)(struct peer *, enum peer_end,
				    const char *);
	void			*arg;
};

static void	peer_die(struct peer *, enum peer_end, const char *, ...)
		    __attribute__((format(printf, 3, 4)));

/* ---- requests ----------------------------------------------------- */

static void
req_free(struct peer_req *r)
{
	if (r->timed)
		(void)event_del(&r->timer);	/* was added by us */
	LIST_REMOVE(r, next);
	r->peer->nreqs--;
	free(r);
}

static void
req_late(int fd, short what, void *arg)
{
	struct peer_req	*r = arg;

	(void)fd;
	(void)what;
	peer_die(r->peer, PEER_LATE, "no answer to %s in time", r->name);
}

static void
req_timer(struct peer_req *r, uint64_t ms)
{
	struct timeval	tv = { (time_t)(ms / 1000),
	    (suseconds_t)(ms % 1000 * 1000) };

	(void)evtimer_assign(&r->timer, env.base, req_late, r);
	if (event_add(&r->timer, &tv) == -1)
		fatalx("add timer: out of memory");
	r->timed = 1;
}

static struct peer_req *
req_find(struct peer *p, uint32_t rid)
{
	struct peer_req	*r;

	LIST_FOREACH(r, &p->reqs[rid % PEER_BUCKETS], next)
		if (r->rid == rid)
			return r;
	return NULL;
}

/* Any one request that is left, or NULL. */
static struct peer_req *
reqs_any(struct peer *p)
{
	size_t	i;

	for (i = 0; i < PEER_BUCKETS; i++)
		if (!LIST_EMPTY(&p->reqs[i]))
			return LIST_FIRST(&p->reqs[i]);
	return NULL;
}

/* Everyone who waits learns that nothing comes. */
static void
reqs_end(struct peer *p)
{
	struct peer_req	*r;
	void		(*cb)(void *, const struct msg *);
	void		*arg;

	while ((r = reqs_any(p)) != NULL) {
		cb = r->cb;
		arg = r->arg;
		req_free(r);
		if (cb == NULL)
			continue;
		cb(arg, NULL);
	}
}

void
peer_forget(struct peer *p, const void *arg)
{
	struct peer_req	*r;
	size_t		 i;

	if (p == NULL)
		return;
	for (i = 0; i < PEER_BUCKETS; i++)
		LIST_FOREACH(r, &p->reqs[i], next)
			if (r->arg == arg)
				r->cb = NULL;
}

/* ---- faults ------------------------------------------------------- */

static void
peer_release(struct peer *p)
{
	if (p->busy != 0 || !p->freed)
		return;
	free(p);
}

static void
peer_on_fault(int fd, short what, void *arg)
{
	struct peer	*p = arg;

	(void)fd;
	(void)what;
	p->busy++;
	if (!p->vital)
		reqs_end(p);
	if (!p->freed)
		p->on_fault(p, p->end, p->why);
	p->busy--;
	peer_release(p);
}

/* Nothing is read or written any more; the owner hears of it from the loop. */
static void
peer_die(struct peer *p, enum peer_end end, const char *fmt, ...)
{
	va_list	ap;

	if (p->dead)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(p->why, sizeof(p->why), fmt, ap);	/* cut is fine */
	va_end(ap);
	p->dead = 1;
	p->end = end;
	(void)event_del(&p->in);
	(void)event_del(&p->out);
	(void)event_del(&p->resume);
	event_active(&p->fault, EV_TIMEOUT, 0);
}

/* By errno of a call on the channel. */
static void
peer_die_errno(struct peer *p)
{
	if (errno == EBADMSG)
		peer_die(p, p->chan.state == S_HELLO && p->chan.theirs != 0 &&
		    p->chan.theirs != p->chan.version ? PEER_VERSION :
		    PEER_WRONG, "%s", p->chan.why);
	else if (errno == ENOBUFS)
		peer_die(p, PEER_LATE, "does not read");
	else
		peer_die(p, PEER_GONE, "closed its channel: %s",
		    strerror(errno));
}

void
peer_fault(struct peer *p, const char *fmt, ...)
{
	char	why[200];
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);	/* cut is fine */
	va_end(ap);
	peer_die(p, PEER_WRONG, "%s", why);
}

/* ---- receiving ---------------------------------------------------- */

static int
is_answer(const struct msg *m)
{
	return m->row->type % 2 == 1;
}

static void
peer_answer(struct peer *p, struct msg *m)
{
	struct peer_req	*r = req_find(p, m->rid);
	void		(*cb)(void *, const struct msg *);
	void		*arg;

	if (r == NULL) {
		fd_close(&m->fd);
		peer_fault(p, "%s: answers nothing that was asked",
		    m->row->name);
		return;
	}
	if (m->row->type != r->answer && m->row->type != MSG_ERROR) {
		fd_close(&m->fd);
		peer_fault(p, "%s: not the answer that is due",
		    m->row->name);
		return;
	}
	cb = r->cb;
	arg = r->arg;
	req_free(r);
	if (cb != NULL)
		cb(arg, m);
	else
		fd_close(&m->fd);
}

static void
peer_read(int fd, short what, void *arg)
{
	struct peer	*p = arg;
	struct msg	 m;
	int		 i, r = 0;

	(void)fd;
	(void)what;
	p->busy++;
	for (i = 0; i < PEER_BURST && !p->dead && !p->paused; i++) {
		if ((r = chan_recv(&p->chan, &m)) != 1)
			break;
		if (is_answer(&m))
			peer_answer(p, &m);
		else
			p->on_msg(p, &m);
	}
	if (r == -1 && !p->dead)
		peer_die_errno(p);
	p->busy--;
	peer_release(p);
}

/* ---- sending ------------------------------------------------------ */

static void
peer_write(int fd, short what, void *arg)
{
	struct peer	*p = arg;
	int		 r;

	(void)fd;
	(void)what;
	if ((r = chan_flush(&p->chan)) == -1)
		peer_die_errno(p);
	else if (r == 1)
		(void)event_add(&p->out, NULL);	/* was added before */
}

static void
peer_sent(struct peer *p, int r)
{
	if (r == -1) {
		if (errno == EINVAL)
			fatalx("%s: %s", p->name, p->chan.why);
		peer_die_errno(p);
	} else if (chan_pending(&p->chan) &&
	    event_add(&p->out, NULL) == -1)
		fatalx("add event: out of memory");
}

uint32_t
peer_ask_rid(struct peer *p, unsigned int type, const void *body,
    uint64_t timeout_ms, void (*cb)(void *, const struct msg *), void *arg)
{
	const struct proto_row	*row = proto_find(type);
	struct peer_req		*r = xcalloc(1, sizeof(*r));
	int			 sent = 0;

	if (row == NULL || row->answer == 0)
		fatalx("%s is no request", proto_name(type));
	r->peer = p;
	r->answer = row->answer;
	r->name = row->name;
	r->cb = cb;
	r->arg = arg;
	if (p->dead)
		r->rid = ++p->chan.rid;	/* the fault that is due ends it */
	else
		sent = chan_ask(&p->chan, type, body, -1, &r->rid);
	LIST_INSERT_HEAD(&p->reqs[r->rid % PEER_BUCKETS], r, next);
	p->nreqs++;
	if (p->dead)
		return r->rid;
	if (timeout_ms != 0)
		req_timer(r, timeout_ms);
	peer_sent(p, sent);
	return r->rid;
}

void
peer_ask(struct peer *p, unsigned int type, const void *body,
    uint64_t timeout_ms, void (*cb)(void *, const struct msg *), void *arg)
{
	(void)peer_ask_rid(p, type, body, timeout_ms, cb, arg);
}

void
peer_tell(struct peer *p, unsigned int type, const void *body)
{
	if (!p->dead)
		peer_sent(p, chan_send(&p->chan, type, 0, body, -1));
}

void
peer_reply(struct peer *p, unsigned int type, uint32_t rid, const void *body)
{
	if (!p->dead)
		peer_sent(p, chan_send(&p->chan, type, rid, body, -1));
}

int
peer_full(const struct peer *p)
{
	return p->chan.queued > CHAN_HIGH;
}

void
peer_load(const struct peer *p, unsigned int *reqs, size_t *bytes)
{
	*reqs += p->nreqs;
	*bytes += p->chan.queued;
}

/* ---- life --------------------------------------------------------- */

static void
peer_resume(int fd, short what, void *arg)
{
	struct peer	*p = arg;

	(void)fd;
	(void)what;
	p->paused = 0;
	if (!p->dead && event_add(&p->in, NULL) == -1)
		fatalx("add event: out of memory");
}

void
peer_pause(struct peer *p, unsigned int ms)
{
	struct timeval	tv = { ms / 1000, (suseconds_t)(ms % 1000) * 1000 };

	if (p->dead || p->paused)
		return;
	p->paused = 1;
	(void)event_del(&p->in);
	if (event_add(&p->resume, &tv) == -1)
		fatalx("add timer: out of memory");
}

struct peer *
peer_new(const char *name, int fd, unsigned int actor, unsigned int state,
    void (*on_msg)(struct peer *, struct msg *),
    void (*on_fault)(struct peer *, enum peer_end, const char *), void *arg)
{
	struct peer	*p = xcalloc(1, sizeof(*p));
	size_t		 i;

	chan_init(&p->chan, fd, A_APID, actor, state);
	(void)str_copy(p->name, name, sizeof(p->name));	/* cut is fine */
	for (i = 0; i < PEER_BUCKETS; i++)
		LIST_INIT(&p->reqs[i]);
	p->on_msg = on_msg;
	p->on_fault = on_fault;
	p->arg = arg;
	p->vital = actor != A_RUNNER;
	(void)event_assign(&p->in, env.base, fd, EV_READ | EV_PERSIST,
	    peer_read, p);
	(void)event_assign(&p->out, env.base, fd, EV_WRITE, peer_write, p);
	(void)evtimer_assign(&p->resume, env.base, peer_resume, p);
	(void)evtimer_assign(&p->fault, env.base, peer_on_fault, p);
	if (event_add(&p->in, NULL) == -1)
		fatalx("add event: out of memory");
	return p;
}

void *
peer_arg(const struct peer *p)
{
	return p->arg;
}

void
peer_state(struct peer *p, unsigned int chan_state)
{
	p->chan.state = chan_state;
}

void
peer_speak(struct peer *p, unsigned int version)
{
	chan_speak(&p->chan, version);
}

unsigned int
peer_theirs(const struct peer *p)
{
	return p->chan.theirs;
}

void
peer_free(struct peer *p)
{
	if (p == NULL || p->freed)
		return;
	p->dead = p->freed = 1;
	(void)event_del(&p->in);
	(void)event_del(&p->out);
	(void)event_del(&p->fault);
	(void)event_del(&p->resume);
	p->busy++;
	reqs_end(p);
	p->busy--;
	chan_close(&p->chan);
	peer_release(p);
}

enum wb_code
peer_code(const struct msg *m)
{
	if (m == NULL)
		return CODE_INTERNAL;
	if (m->row->type != MSG_ERROR)
		return CODE_NONE;
	return (enum wb_code)m->body.error.code;
}

const char *
peer_detail(const struct msg *m)
{
	if (m == NULL)
		return "no answer";
	return m->row->type == MSG_ERROR ? m->body.error.detail : "";
}

int
bucket_take(struct bucket *b, unsigned int burst, unsigned int per_s)
{
	return bucket_take_n(b, burst, per_s, 1);
}

int
bucket_take_n(struct bucket *b, unsigned int burst, unsigned int per_s,
    unsigned int n)
{
	uint64_t	now = mono_ms(), full = (uint64_t)burst * 1000;

	if (b->at_ms == 0)
		b->tokens_milli = full;
	else
		b->tokens_milli += (now - b->at_ms) * per_s;
	if (b->tokens_milli > full)
		b->tokens_milli = full;
	b->at_ms = now;
	if (b->tokens_milli < (uint64_t)n * 1000)
		return 0;
	b->tokens_milli -= (uint64_t)n * 1000;
	return 1;
}
