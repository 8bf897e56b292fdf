/*
 * follow.c: keeps the networks in step with the host's addresses.
 *
 * First every network is changed, which is quick; then they are read back,
 * some at a time, so that who asks something of netd does not wait for all.
 * After each change all of them are read back once more from where reading
 * has come to, in a circle, so that changes that never end do not keep it
 * with the first ones.
 *
 * News is not acted upon at once: a program that adds an address seldom adds
 * one alone.  A moment after the first news all is read anew and each network
 * of `egress' that is open is changed.  What that and reading back take is
 * owed, and paid by as much time without either: a host whose addresses never
 * come to rest costs netd half of its time, and after a rest nothing is owed.
 *
 * A dump that the kernel does not call disturbed may be so all the same: of
 * the routes of IPv6 it goes on by their count, and leaves one out for each
 * that went meanwhile.  So when there is news of the time of a dump, nothing
 * that was known is taken away by it, and all is read once more.
 *
 * Addresses that cannot be read, or are too many, are lost: the networks of
 * `egress' are then sealed, and none opens until they are known again.  Who
 * has a network opened again is not decided here: see NET_OPEN, NET_ADOPT.
 *
 * Must never: leave a network open whose set of the host's addresses is
 * not known to be right.
 */
#include <errno.h>
#include <event2/event.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define PAUSE_MS	5	/* from the first news on */
#define TRIES		5	/* until what cannot be read is lost */
#define RETRY_MS	1000	/* what was lost; news is sooner */
#define CHECK_TURN	16	/* networks that are read back at once */

static struct {
	int		 news, ask;	/* borrowed: netd.c */
	struct event	*timer;		/* owned; to look */
	struct event	*check;		/* owned; to read back */
	uint64_t	 due_ms;	/* the timer's; 0: it does not run */
	uint64_t	 since_ms;	/* news that was not looked at */
	unsigned int	 check_k;	/* read back up to here */
	unsigned int	 check_left;	/* numbers */
	struct hosts	 known;		/* what the networks have */
	unsigned int	 tries;		/* failed, one behind the other */
	int		 lost;
	int		 told;		/* the log has it */
	uint64_t	 owed_ms, as_of_ms;
} follow = { .lost = 1 };

/* ---- time ------------------------------------------------------------ */

static uint64_t
owed(void)
{
	uint64_t	rest = mono_ms() - follow.as_of_ms;

	return follow.owed_ms > rest ? follow.owed_ms - rest : 0;
}

static void
work_begin(void)
{
	follow.owed_ms = owed();
	follow.as_of_ms = mono_ms();
}

static void
work_end(void)
{
	uint64_t	now = mono_ms();

	follow.owed_ms += now - follow.as_of_ms;
	follow.as_of_ms = now;
}

static void
timer_in(struct event *ev, uint64_t ms)
{
	struct timeval	tv = { (time_t)(ms / 1000),
			    (suseconds_t)(ms % 1000 * 1000) };

	/* else it counts from when the loop woke, before the work */
	(void)event_base_update_cache_time(event_get_base(ev));
	if (event_add(ev, &tv) == -1)
		fatalx("event_add");
}

/* By then at the latest. */
static void
look_in(uint64_t ms)
{
	uint64_t	due = mono_ms() + ms;

	if (follow.due_ms != 0 && follow.due_ms <= due)
		return;
	if (follow.due_ms == 0)
		follow.since_ms = mono_ms();
	follow.due_ms = due;
	timer_in(follow.timer, ms);
}

static void
look_soon(void)
{
	uint64_t	ms = owed();

	look_in(ms > PAUSE_MS ? ms : PAUSE_MS);
}

/* ---- reading back ---------------------------------------------------- */

static void
check_soon(void)
{
	if (!event_pending(follow.check, EV_TIMEOUT, NULL))
		timer_in(follow.check, owed());
}

static void
check_all(void)
{
	follow.check_left = NET_KMAX;
	check_soon();
}

static void
on_check(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	work_begin();
	follow.check_left = nets_check_egress(&follow.check_k,
	    follow.check_left, CHECK_TURN);
	work_end();
	if (follow.check_left != 0)
		check_soon();
}

/* ---- looking --------------------------------------------------------- */

/* With errno; once until they are known again. */
static void
tell_lost(void)
{
	if (follow.told)
		return;
	follow.told = 1;
	if (errno == E2BIG || errno == EMSGSIZE)
		log_warnx("the host has more than %d addresses that boxes must "
		    "not reach: networks egress are sealed", HOST_MAX);
	else
		log_warn("read the host's addresses: networks egress are "
		    "sealed");
}

static void
lose(void)
{
	tell_lost();
	follow.lost = 1;
	hosts_free(&follow.known);
	ruleset_hosts_lost();
	nets_seal_egress("the host's addresses are not known");
	look_in(RETRY_MS);
}

/* Once more, but for what stays as it is until somebody changes it. */
static void
missed(void)
{
	if (errno != E2BIG && errno != EMSGSIZE && ++follow.tries < TRIES)
		look_soon();
	else
		lose();
}

static void
found(int changed)
{
	if (follow.told)
		log_info("the host's addresses are known again");
	follow.tries = 0;
	follow.lost = follow.told = 0;
	if (changed)
		check_all();
}

/* Whether there is news. */
static int
heard(void)
{
	int	r = hostaddr_news(follow.news);

	if (r == -1)
		fatal("hear of the host's addresses");
	return r;
}

/* Takes h.  1: they are others than before; 0: the same; -1: errno. */
static int
learn(struct hosts *h)
{
	unsigned int	n;
	int		r = ruleset_hosts(&h->v4, &h->v6);

	if (r == -1) {
		hosts_free(h);
		errno = EMSGSIZE;
		return -1;
	}
	hosts_free(&follow.known);
	follow.known = *h;
	if (r == 0)
		return 0;
	n = nets_update_egress();
	log_debug("the host's addresses: %zu and %zu intervals, in %u networks "
	    "%llu ms after the news", h->v4.n, h->v6.n, n,
	    (unsigned long long)(mono_ms() - follow.since_ms));
	return 1;
}

/*
 * As learn().  *ret_moved: there was news while they were read, so what was
 * known stays until they have been read in peace; EINTR: there is nothing to
 * go by, or too much.
 */
static int
look_once(int *ret_moved)
{
	struct hosts	h;

	(void)heard();		/* of what is read now anyway */
	if (hostaddr_ask(follow.ask, &h) == -1)
		return -1;
	*ret_moved = heard();
	if (*ret_moved && (follow.lost ||
	    hosts_join(&h, &follow.known) == -1)) {
		hosts_free(&h);
		errno = EINTR;
		return -1;
	}
	return learn(&h);
}

static void
look(void)
{
	int	e, moved = 0, r;

	work_begin();
	r = look_once(&moved);
	e = errno;
	work_end();
	errno = e;
	if (r == -1) {
		missed();
		return;
	}
	found(r);
	if (moved)
		look_soon();
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	follow.due_ms = 0;
	look();
}

static void
on_news(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (heard())
		look_soon();
}

void
follow_init(struct event_base *base, int news, int ask)
{
	struct event	*ev;

	follow.news = news;
	follow.ask = ask;
	follow.since_ms = mono_ms();
	hosts_init(&follow.known);
	follow.timer = event_new(base, -1, 0, on_timer, NULL);
	follow.check = event_new(base, -1, 0, on_check, NULL);
	ev = event_new(base, news, EV_READ | EV_PERSIST, on_news, NULL);
	if (follow.timer == NULL || follow.check == NULL || ev == NULL ||
	    event_add(ev, NULL) == -1)
		fatalx("event_add");
	look();
}
