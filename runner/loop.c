/*
 * loop.c: descriptors and timers.
 *
 * poll, not epoll: epoll's watches are counted per user, and box root is the
 * user that we are, so that the box could leave us without; and for the few
 * descriptors that there are most of the time it is the faster of the two.
 *
 * A handler may end any watch, also one whose event stands further back in
 * the same batch: loop_del() empties its place, and places are closed up when
 * the batch is over.
 *
 * Must never: block elsewhere than in poll(), or serve one descriptor without
 * coming back to the others.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "runner.h"

#define PLACES		32	/* at first */

static struct pollfd	 *fds;		/* owned; fd -1: an empty place */
static struct watch	**watches;	/* owned array, borrowed pointers */
static size_t		  nfds, places;
static int		  holes;
static TAILQ_HEAD(timers, timer) timers = TAILQ_HEAD_INITIALIZER(timers);

static int
loop_grow(void)
{
	size_t		  n = places == 0 ? PLACES : places * 2;
	struct pollfd	 *f;
	struct watch	**w;

	if ((f = reallocarray(fds, n, sizeof(*f))) == NULL)
		return -1;
	fds = f;
	if ((w = reallocarray(watches, n, sizeof(*w))) == NULL)
		return -1;
	watches = w;
	places = n;
	return 0;
}

int
loop_add(struct watch *w, int fd, short events, void (*fn)(void *, short),
    void *arg)
{
	if (nfds == places && loop_grow() == -1)
		return -1;
	fds[nfds] = (struct pollfd){ .fd = fd, .events = events };
	watches[nfds] = w;
	w->fd = fd;
	w->place = nfds++;
	w->fn = fn;
	w->arg = arg;
	return 0;
}

void
loop_mod(struct watch *w, short events)
{
	fds[w->place].events = events;
}

void
loop_del(struct watch *w)
{
	if (w->fd == -1)
		return;
	fds[w->place].fd = -1;
	watches[w->place] = NULL;
	w->fd = -1;
	holes = 1;
}

static void
loop_close_up(void)
{
	size_t	i, n = 0;

	if (!holes)
		return;
	for (i = 0; i < nfds; i++) {
		if (watches[i] == NULL)
			continue;
		fds[n] = fds[i];
		watches[n] = watches[i];
		watches[n]->place = n;
		n++;
	}
	nfds = n;
	holes = 0;
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

/* Those that were there when poll was asked. */
static void
loop_dispatch(int ready)
{
	struct watch	*w;
	size_t		 i, n = nfds;

	for (i = 0; i < n && ready > 0; i++) {
		if (fds[i].revents == 0)
			continue;
		ready--;
		if ((w = watches[i]) != NULL)
			w->fn(w->arg, fds[i].revents);
	}
}

/* One spawn a turn, so that a queue of them holds nobody up. */
void
loop_run(void)
{
	struct spawn	*sp;
	int		 n;

	for (;;) {
		if (!spawn_busy() && (sp = session_next()) != NULL) {
			if (!spawn_start(sp))
				return;
			session_spawned(sp);
		}
		reap_turn();
		output_turn();
		peer_reap();
		loop_close_up();
		n = poll(fds, nfds, loop_timeout());
		if (n == -1 && errno != EINTR && errno != ENOMEM)
			abort();	/* no state in which this can be */
		loop_dispatch(n);
		timers_run();
	}
}
