/*
 * finish.c: how sessions end, and what is left of them.
 *
 * The leader's death ends a session (its output may take LATE_MS more).  What
 * it left behind stays in its cgroup; when the last of those dies we reap it,
 * for orphans come to pid 1, and then sweep: every directory that can go,
 * goes.  A time limit and a drain are SIGTERM, then SIGKILL to all of it.
 */
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"
#include "xmalloc.h"

#define SWEEP_MS	50
#define SWEEP_MANY	64		/* left-behind: sweep less often */
#define SWEEP_SLOW_MS	500

/* A directory whose session is not there any more, but cannot go yet. */
struct stale {
	LIST_ENTRY(stale)	 entry;
	char			 id[ULID_LEN + 1];
};

static void	on_sweep(void *);
static void	on_drain(void *);

static LIST_HEAD(, stale) stales = LIST_HEAD_INITIALIZER(stales);
static struct timer	 sweep_timer = { .fn = on_sweep };
static struct timer	 drain_timer = { .fn = on_drain };

static void
sweep_soon(void)
{
	if (sweep_timer.at == 0)
		timer_arm(&sweep_timer, table.nleft > SWEEP_MANY ?
		    SWEEP_SLOW_MS : SWEEP_MS);
}

static void
session_tell_exit(struct session *s, struct waiter *w)
{
	struct msg_session_exit	b = {
		.exit_code = s->exit_code,
		.signal = s->signal,
		.timed_out = s->timed_out,
		.oom = s->oom,
		.first_seq = ring_first(&s->ring),
		.last_seq = s->ring.last_seq,
		.left_behind = s->left_behind,
		.wall_ms = s->wall_ms,
		.user_usec = s->user_usec,
		.sys_usec = s->sys_usec,
		.peak_bytes = s->peak_bytes,
		.started_ms = s->started_ms,
		.ended_ms = s->ended_ms,
	};

	(void)str_copy(b.id, s->id, sizeof(b.id));
	peer_send(w->peer, MSG_SESSION_EXIT, w->rid, &b);
	waiter_free(w);
}

/* Keeps SESSIONS_KEPT; more while a reader is behind, or processes are left. */
static void
session_prune(void)
{
	struct session	*s, *oldest;

	while (table.nends > SESSIONS_KEPT + table.nleft) {
		oldest = NULL;
		TAILQ_FOREACH(s, &table.ends, part) {
			if (s->has_cgroup)
				continue;
			if (oldest == NULL)
				oldest = s;
			if (!s->attached || s->att_seq >= s->ring.last_seq)
				break;
		}
		if (s == NULL && table.nends <= SESSIONS_HELD + table.nleft)
			break;
		if (s == NULL)
			s = oldest;
		if (s == NULL)
			break;
		TAILQ_REMOVE(&table.ends, s, part);
		table.nends--;
		session_free(s);
	}
}

/* The last process is gone, so is the directory. */
static void
session_emptied(struct session *s)
{
	s->has_cgroup = 0;
	table.nleft--;
	timer_stop(&s->t_limit);
	table.ndrains -= s->drains;
	s->drains = 0;
	output_close(s);
}

static void
sessions_drained(void)
{
	if (runner.draining && table.nlives == 0 && table.nleft == 0) {
		timer_stop(&drain_timer);
		host_drained();
	}
}

void
session_output_end(struct session *s)
{
	struct waiter	*w, *next;

	s->state = SESSION_ENDED;
	timer_stop(&s->t_late);
	s->left_behind = cgroup_count(s->id);
	s->peak_bytes = cgroup_peak(s->id);
	TAILQ_REMOVE(&table.lives, s, part);
	table.nlives--;
	TAILQ_INSERT_TAIL(&table.ends, s, part);
	table.nends++;
	table.nleft++;
	output_serve(s);
	for (w = TAILQ_FIRST(&s->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, in_session);
		if (w->kind == W_WAIT)
			session_tell_exit(s, w);
	}
	if (s->out[0].fd != -1 || s->out[1].fd != -1) {
		output_discard(s, s->left_behind > 0 &&
		    table.ndrains < SESSIONS_DRAIN);
		s->drains = s->out[0].fd != -1 || s->out[1].fd != -1;
		table.ndrains += s->drains;
	}
	if (cgroup_remove(s->id) == 0)
		session_emptied(s);
	else
		sweep_soon();
	session_prune();
	sessions_drained();
}

static void
on_late(void *arg)
{
	struct session	*s = arg;

	s->late_over = 1;
	output_settle(s);
}

void
session_exited(pid_t pid, int status, const struct rusage *ru)
{
	struct session	*s;

	TAILQ_FOREACH(s, &table.lives, part)
		if (s->pid == pid)
			break;
	if (s == NULL) {
		/* an orphan: perhaps the last of those left behind */
		if (table.nleft > 0)
			sweep_soon();
		return;
	}
	s->pid = 0;
	s->state = SESSION_ENDING;
	s->ended_ms = now_ms();
	s->wall_ms = mono_ms() - s->started_mono;
	s->user_usec = (uint64_t)ru->ru_utime.tv_sec * 1000000 +
	    (uint64_t)ru->ru_utime.tv_usec;
	s->sys_usec = (uint64_t)ru->ru_stime.tv_sec * 1000000 +
	    (uint64_t)ru->ru_stime.tv_usec;
	s->exit_code = (unsigned int)WEXITSTATUS(status);
	if (WIFSIGNALED(status)) {
		s->signal = (unsigned int)WTERMSIG(status);
		s->exit_code = 128 + s->signal;
	}
	oom_exited(s, pid);
	input_close(s);
	timer_arm(&s->t_late, LATE_MS);
	output_leader_gone(s);
}

/* Directories of left-behind processes, and of what could not go at once. */
static void
on_sweep(void *arg)
{
	struct session	*s, *next;
	struct stale	*st, *snext;

	(void)arg;
	for (s = TAILQ_FIRST(&table.ends); s != NULL; s = next) {
		next = TAILQ_NEXT(s, part);
		if (!s->has_cgroup)
			continue;
		if (cgroup_remove(s->id) == 0)
			session_emptied(s);
		else if (cgroup_count(s->id) == 0)
			sweep_soon();	/* dying, but still there */
	}
	for (st = LIST_FIRST(&stales); st != NULL; st = snext) {
		snext = LIST_NEXT(st, entry);
		if (cgroup_remove(st->id) == -1) {
			sweep_soon();
			continue;
		}
		LIST_REMOVE(st, entry);
		free(st);
	}
	session_prune();
	sessions_drained();
}

void
finish_stale(const char *id)
{
	struct stale	*st;

	if ((st = calloc(1, sizeof(*st))) == NULL)
		return;		/* an empty directory stays until the end */
	memcpy(st->id, id, sizeof(st->id));
	LIST_INSERT_HEAD(&stales, st, entry);
	sweep_soon();
}

/* ---- signals, limits, draining --------------------------------------- */

/* To the group while its leader lives, else to all that are left. */
static int
session_signal(struct session *s, int sig)
{
	if (s->state == SESSION_STARTING)
		return s->spawn->pid > 0 ? kill(s->spawn->pid, sig) : 0;
	/* a directory can outlast its last process by a moment */
	if (s->state == SESSION_QUEUED || !s->has_cgroup ||
	    (s->state == SESSION_ENDED && cgroup_count(s->id) == 0)) {
		errno = ESRCH;
		return -1;
	}
	if (sig == SIGKILL) {
		s->killed = 1;
		return cgroup_kill(s->id);
	}
	if (s->state == SESSION_RUNNING)
		return kill(-s->pid, sig);
	cgroup_signal(s->id, sig);
	return 0;
}

/* A process that is stopped sees SIGTERM only when it goes on. */
static void
session_term(struct session *s)
{
	if (session_signal(s, SIGTERM) == 0)
		(void)session_signal(s, SIGCONT);	/* it may be gone */
}

static void
on_limit(void *arg)
{
	struct session	*s = arg;

	if (s->state == SESSION_RUNNING)
		s->timed_out = 1;
	if (s->term_sent) {
		(void)session_signal(s, SIGKILL);	/* it may be gone */
		return;
	}
	s->term_sent = 1;
	session_term(s);
	timer_arm(&s->t_limit, KILL_MS);
}

static void
on_drain(void *arg)
{
	struct session	*s;

	(void)arg;
	TAILQ_FOREACH(s, &table.all, all)
		(void)session_signal(s, SIGKILL);	/* it may be gone */
	host_drained();
}

/* One that came to run while the box is ending. */
void
finish_if_draining(struct session *s)
{
	if (!runner.draining)
		return;
	if (drain_timer.at != 0)
		session_term(s);
	else
		(void)session_signal(s, SIGKILL);	/* it may be gone */
}

void
finish_init(struct session *s)
{
	s->t_limit.fn = on_limit;
	s->t_late.fn = on_late;
	s->t_limit.arg = s->t_late.arg = s;
}

void
session_drain(uint64_t grace_ms)
{
	struct session	*s, *next;

	runner.draining = 1;
	for (s = TAILQ_FIRST(&table.lives); s != NULL; s = next) {
		next = TAILQ_NEXT(s, part);
		if (s->state == SESSION_QUEUED) {
			table.nqueued--;
			session_abort(s, CODE_NOT_READY, s->id,
			    "the box is ending");
		}
	}
	if (grace_ms > 0)
		TAILQ_FOREACH(s, &table.all, all)
			session_term(s);
	if (table.nlives == 0 && table.nleft == 0)
		host_drained();
	else if (grace_ms == 0)
		on_drain(NULL);
	else
		timer_arm(&drain_timer, grace_ms);
}

/* ---- requests -------------------------------------------------------- */

void
on_session_wait(struct peer *p, const struct msg *m)
{
	struct session	*s;
	struct waiter	*w;

	s = session_get(p, m->rid, m->body.session_wait.id);
	if (s == NULL || (w = waiter_new(p, s, W_WAIT, m->rid)) == NULL)
		return;
	if (s->state == SESSION_ENDED)
		session_tell_exit(s, w);
}

void
on_session_signal(struct peer *p, const struct msg *m)
{
	const struct msg_session_signal	*b = &m->body.session_signal;
	struct session			*s;

	if ((s = session_get(p, m->rid, b->id)) == NULL)
		return;
	if (s->state == SESSION_QUEUED)
		peer_error(p, m->rid, CODE_NOT_READY, "not started yet");
	else if (session_signal(s, (int)b->signal) == -1)
		peer_error(p, m->rid, CODE_ENDED, "no process is left");
	else
		peer_ok(p, m->rid);
}

void
session_row(struct session *s, struct row_rsession *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->id, s->id, sizeof(ret->id));
	(void)str_copy(ret->name, s->name, sizeof(ret->name));
	ret->origin = s->origin;
	ret->ended = s->state == SESSION_ENDED;
	ret->exit_code = s->exit_code;
	ret->signal = s->signal;
	ret->timed_out = s->timed_out;
	ret->first_seq = ring_first(&s->ring);
	ret->dropped_bytes = ring_start(&s->ring);
	ret->last_seq = s->ring.last_seq;
	if (ret->ended && s->has_cgroup)
		ret->left_behind = cgroup_count(s->id);
	ret->started_ms = s->started_ms;
	ret->ended_ms = s->ended_ms;
}
