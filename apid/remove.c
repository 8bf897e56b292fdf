/*
 * remove.c: the way out of every state.
 *
 * Theory of operation.  A removal goes forward only:
 *
 *   WAIT    a boot is under way: it is told to end		-> DRAIN, KILL
 *   DRAIN   no new session; those that run may end		-> KILL
 *   KILL    privd kills; answered when no process is left	-> RECORD
 *   RECORD  DELETING is written (durable): who waits is told	-> PURGE
 *   PURGE   privd removes tree, cgroups, netns, uid range	-> DELETED
 *
 * DRAIN is left when the last session has ended, or after the grace and a
 * SIGTERM to all; it is skipped when nothing runs.  Each step may be begun
 * again after a crash: privd's answer for what is gone already is OK.  A
 * step that fails is tried again by a timer, for as long as it takes; who
 * waits is told after the first failure.
 *
 * Must never: write DELETING while a process of the box may live, nor
 * DELETED while anything of it is on the host.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define TERM_MS		2000		/* from SIGTERM to SIGKILL */
#define AGAIN_MAX_S	60

struct removal {
	struct box		*box;		/* referenced */
	char			 reason[128], actor[64], request[27];
	uint64_t		 grace_ms;
	int			 termed;	/* RUNNER_DRAIN was sent */
	unsigned int		 failures;	/* of this step */
	struct event		 timer;
	TAILQ_HEAD(, box_wait)	 waits;
};

static unsigned int	under_way;

static void	remove_kill(struct removal *);
static void	remove_record(struct removal *);
static void	remove_purge(struct removal *);
static void	remove_term(struct removal *);

/* ---- helpers ------------------------------------------------------ */

static void
remove_timer(struct removal *r, uint64_t ms)
{
	struct timeval	tv = { (time_t)(ms / 1000),
	    (suseconds_t)(ms % 1000 * 1000) };

	if (event_add(&r->timer, &tv) == -1)
		fatalx("add timer: out of memory");
}

static void
remove_told(struct removal *r)
{
	struct box_wait	*w;

	while ((w = TAILQ_FIRST(&r->waits)) != NULL) {
		TAILQ_REMOVE(&r->waits, w, next);
		w->fn(w, r->box);
	}
}

static void
remove_again(struct removal *r, const char *what, const char *why)
{
	unsigned int	s = r->failures < 6 ? 1U << r->failures : AGAIN_MAX_S;

	log_warnx("box %s: %s: %s; again in %u s", r->box->id, what, why, s);
	r->failures++;
	remove_timer(r, (uint64_t)s * 1000);
	remove_told(r);
}

static void
remove_due(int fd, short what, void *arg)
{
	struct removal	*r = arg;

	(void)fd;
	(void)what;
	switch ((enum remove_step)r->box->removing) {
	case REMOVE_DRAIN:
		if (r->termed)
			remove_kill(r);
		else
			remove_term(r);
		break;
	case REMOVE_KILL:
		remove_kill(r);
		break;
	case REMOVE_RECORD:
		remove_record(r);
		break;
	case REMOVE_PURGE:
		remove_purge(r);
		break;
	case REMOVE_NOT:
	case REMOVE_WAIT:
		break;
	}
}

/* ---- PURGE -------------------------------------------------------- */

static void
remove_done(struct removal *r)
{
	struct box	*b = r->box;

	(void)event_del(&r->timer);
	b->removal = NULL;
	free(r);
	box_gone(b);
	box_unref(b);
	if (--under_way == 0)
		apid_removed();
}

static void
remove_deleted(struct box *b, enum wb_code code, void *arg)
{
	struct removal	*r = arg;

	if (code != CODE_NONE && code != CODE_BAD_TRANSITION)
		remove_again(r, "record DELETED", code_name(code));
	else
		remove_done(b->removal);
}

static void
remove_purged(void *arg, const struct msg *m)
{
	struct removal	*r = arg;
	enum wb_code	 code = peer_code(m);
	struct move_more more = { r->actor, r->request, NULL, 0 };

	if (code != CODE_NONE && code != CODE_NOT_FOUND) {
		remove_again(r, "purge", peer_detail(m));
		return;
	}
	box_move(r->box, BOX_DELETED, r->reason, 0, &more, remove_deleted, r);
}

static void
remove_purge(struct removal *r)
{
	struct msg_box_purge	m = { 0 };

	r->box->removing = REMOVE_PURGE;
	(void)str_copy(m.id, r->box->id, sizeof(m.id));
	/* a large tree takes its time */
	peer_ask(env.privd, MSG_BOX_PURGE, &m, 0, remove_purged, r);
}

/* ---- RECORD ------------------------------------------------------- */

static void
remove_recorded(struct box *b, enum wb_code code, void *arg)
{
	struct removal	*r = arg;

	if (code != CODE_NONE) {
		remove_again(r, "record DELETING", code_name(code));
		return;
	}
	r->failures = 0;
	b->removing = REMOVE_PURGE;
	remove_told(r);
	remove_purge(r);
}

static void
remove_record(struct removal *r)
{
	struct move_more more = { r->actor, r->request, NULL, 0 };
	struct box	*b = r->box;

	b->removing = REMOVE_RECORD;
	if (b->target == BOX_DELETING) {	/* from before a restart */
		remove_recorded(b, CODE_NONE, r);
		return;
	}
	if (b->astray && b->state == BOX_DRAINING) /* perhaps not there */
		box_move(b, BOX_DRAINING, r->reason, 0, &more, NULL, NULL);
	box_move(b, BOX_DELETING, r->reason, 1, &more, remove_recorded, r);
}

/* ---- KILL --------------------------------------------------------- */

static void
remove_killed(void *arg, const struct msg *m)
{
	struct removal	*r = arg;
	struct box	*b = r->box;
	enum wb_code	 code = peer_code(m);

	if (code != CODE_NONE && code != CODE_NOT_FOUND) {
		remove_again(r, "kill", peer_detail(m));
		return;
	}
	r->failures = 0;
	sessions_lost(b);
	sessions_forsaken(b);
	box_health(b, ABSENT, "");
	remove_record(r);
}

static void
remove_kill(struct removal *r)
{
	struct msg_box_kill	 m = { 0 };
	struct box		*b = r->box;

	b->removing = REMOVE_KILL;
	(void)event_del(&r->timer);
	(void)event_del(&b->retry);
	peer_forget(b->runner, r);
	runner_close(b);
	(void)str_copy(m.id, b->id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_KILL, &m, 0, remove_killed, r);
}

/* ---- DRAIN -------------------------------------------------------- */

static void
remove_drained(void *arg, const struct msg *m)
{
	struct removal	*r = arg;

	if (m != NULL && r->box->removing == REMOVE_DRAIN)
		remove_kill(r);
}

static void
remove_term(struct removal *r)
{
	struct msg_runner_drain	 m = { .grace_ms = TERM_MS };
	struct box		*b = r->box;

	r->termed = 1;
	if (b->runner == NULL) {
		remove_kill(r);
		return;
	}
	remove_timer(r, TERM_MS + 1000);
	peer_ask(b->runner, MSG_RUNNER_DRAIN, &m, 0, remove_drained, r);
}

void
remove_hurry(struct box *b)
{
	if (b->removing == REMOVE_DRAIN)
		remove_kill(b->removal);
}

void
remove_idle(struct box *b)
{
	if (b->running == 0)
		remove_hurry(b);
}

static void
remove_start(struct removal *r)
{
	struct move_more more = { r->actor, r->request, NULL, 0 };
	struct box	*b = r->box;

	if (b->target == BOX_READY)
		box_move(b, BOX_DRAINING, r->reason, 0, &more, NULL, NULL);
	if (b->state == BOX_DRAINING && r->grace_ms != 0 &&
	    b->runner != NULL && b->running != 0) {
		b->removing = REMOVE_DRAIN;
		remove_timer(r, r->grace_ms);
		return;
	}
	remove_kill(r);
}

/* ---- from outside ------------------------------------------------- */

void
remove_go_on(struct box *b)
{
	if (b->removing == REMOVE_WAIT && b->boot == NULL)
		remove_start(b->removal);
}

static struct removal *
removal_new(struct box *b, const char *reason, const char *actor,
    const char *request)
{
	struct removal	*r = xcalloc(1, sizeof(*r));

	r->box = box_ref(b);
	(void)str_copy(r->reason, reason, sizeof(r->reason));
	(void)str_copy(r->actor, actor, sizeof(r->actor));
	(void)str_copy(r->request, request, sizeof(r->request));
	TAILQ_INIT(&r->waits);
	(void)evtimer_assign(&r->timer, env.base, remove_due, r);
	b->removal = r;
	under_way++;
	return r;
}

unsigned int
remove_under_way(void)
{
	return under_way;
}

void
remove_box(struct box *b, uint64_t grace_ms, const char *reason,
    const char *actor, const char *request, struct box_wait *w)
{
	struct removal	*r = b->removal;

	if (w != NULL && (b->removing == REMOVE_PURGE || !b->listed)) {
		w->fn(w, b);
		return;
	}
	if (r == NULL) {
		r = removal_new(b, reason, actor, request);
		r->grace_ms = grace_ms;
		b->removing = REMOVE_WAIT;
	}
	if (w != NULL)
		TAILQ_INSERT_TAIL(&r->waits, w, next);
	if (grace_ms < r->grace_ms) {
		r->grace_ms = grace_ms;
		if (b->removing == REMOVE_DRAIN && !r->termed)
			remove_timer(r, grace_ms);
	}
	if (b->removing == REMOVE_WAIT && b->boot != NULL)
		boot_abort(b, "it was removed while it was being made");
	else
		remove_go_on(b);
}

/* ---- strays ------------------------------------------------------- */

static void
stray_purged(void *arg, const struct msg *m)
{
	char	*id = arg;

	if (peer_code(m) != CODE_NONE)
		log_warnx("box %s: purge: %s", id, peer_detail(m));
	free(id);
}

static void
stray_killed(void *arg, const struct msg *m)
{
	struct msg_box_purge	 p = { 0 };
	char			*id = arg;

	if (peer_code(m) != CODE_NONE)
		log_warnx("box %s: kill: %s", id, peer_detail(m));
	(void)str_copy(p.id, id, sizeof(p.id));
	peer_ask(env.privd, MSG_BOX_PURGE, &p, 0, stray_purged, id);
}

void
remove_stray(const char *id)
{
	struct msg_box_kill	m = { 0 };

	log_warnx("box %s: privd has it and no row says so: removed", id);
	(void)str_copy(m.id, id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_KILL, &m, 0, stray_killed, xstrdup(id));
}
