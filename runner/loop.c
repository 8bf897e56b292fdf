/*
 * loop.c: descriptors and timers.
 *
 * A handler may end any watch, also one whose event stands further back in
 * the same batch: loop_del() takes it out of the batch.
 *
 * Must never: block elsewhere than in epoll_wait(), or serve one descriptor
 * without coming back to the others.
 */
#include <sys/epoll.h>

#include <errno.h>
#include <stdlib.h>

#include "runner.h"

#define BATCH	32

static int			 epfd = -1;
static struct epoll_event	 batch[BATCH];
static int			 nbatch;
static TAILQ_HEAD(timers, timer) timers = TAILQ_HEAD_INITIALIZER(timers);

void
loop_init(void)
{
	if ((epfd = epoll_create1(EPOLL_CLOEXEC)) == -1)
		abort();	/* pid 1 without a loop is of no use */
}

int
loop_add(struct watch *w, int fd, uint32_t events,
    void (*fn)(void *, uint32_t), void *arg)
{
	struct epoll_event	ev = { .events = events, .data.ptr = w };

	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) == -1)
		return -1;
	w->fd = fd;
	w->fn = fn;
	w->arg = arg;
	return 0;
}

int
loop_mod(struct watch *w, uint32_t events)
{
	struct epoll_event	ev = { .events = events, .data.ptr = w };

	return epoll_ctl(epfd, EPOLL_CTL_MOD, w->fd, &ev);
}

void
loop_del(struct watch *w)
{
	int	i;

	if (w->fd == -1)
		return;
	(void)epoll_ctl(epfd, EPOLL_CTL_DEL, w->fd, NULL); /* it is there */
	w->fd = -1;
	for (i = 0; i < nbatch; i++)
		if (batch[i].data.ptr == w)
			batch[i].data.ptr = NULL;
}

void
timer_arm(struct timer *t, uint64_t ms)
{
	struct timer	*o;

	timer_stop(t);
	t->at = mono_ms() + ms;
	TAILQ_FOREACH_REVERSE(o, &timers, timers, entry)
		if (o->at <= t->at)
			break;
	if (o == NULL)
		TAILQ_INSERT_HEAD(&timers, t, entry);
	else
		TAILQ_INSERT_AFTER(&timers, o, t, entry);
}

void
timer_stop(struct timer *t)
{
	if (t->at != 0)
		TAILQ_REMOVE(&timers, t, entry);
	t->at = 0;
}

static void
timers_run(void)
{
	struct timer	*t;
	uint64_t	 now = mono_ms();

	while ((t = TAILQ_FIRST(&timers)) != NULL && t->at <= now) {
		timer_stop(t);
		t->fn(t->arg);
	}
}

static int
loop_timeout(void)
{
	struct timer	*t = TAILQ_FIRST(&timers);
	uint64_t	 now;

	if (reap_busy() || (session_queued() && !spawn_busy()))
		return 0;
	if (t == NULL)
		return -1;
	now = mono_ms();
	if (t->at <= now)
		return 0;
	return t->at - now > 3600000 ? 3600000 : (int)(t->at - now);
}

/* One spawn a turn, so that a queue of them holds nobody up. */
void
loop_run(void)
{
	struct spawn	*sp;
	struct watch	*w;
	int		 i;

	for (;;) {
		if (!spawn_busy() && (sp = session_next()) != NULL) {
			if (!spawn_start(sp))
				return;
			session_spawned(sp);
		}
		reap_turn();
		output_turn();
		peer_reap();
		nbatch = epoll_wait(epfd, batch, BATCH, loop_timeout());
		if (nbatch == -1 && errno != EINTR)
			abort();	/* no state in which this can be */
		for (i = 0; i < nbatch; i++)
			if ((w = batch[i].data.ptr) != NULL)
				w->fn(w->arg, batch[i].events);
		nbatch = 0;
		timers_run();
	}
}
