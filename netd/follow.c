/*
 * follow.c: keeps the networks in step with the host's addresses.
 *
 * First every network is changed, which is quick; then they are read back,
 * some at a time, so that who asks something of netd does not wait for all.
 *
 * News is not acted upon at once: a program that adds an address seldom adds
 * one alone.  A moment after the first news all is read anew and each network
 * of `egress' that is open is changed; the next time is at least as long
 * after that as it took, so that a host whose addresses never come to rest
 * costs netd half of its time at most.
 *
 * Addresses that cannot be read, or are too many, are lost: the networks of
 * `egress' are then sealed, and none opens until they are known again.
 *
 * Must never: leave a network open whose set of the host's addresses is
 * not known to be right.
 */
#include <errno.h>
#include <event2/event.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define PAUSE_MS	5	/* from the first news on */
#define TRIES		5	/* until what cannot be read is lost */
#define RETRY_MS	1000	/* what was lost, or could not be sealed */
#define CHECK_TURN	16	/* networks that are read back at once */

static struct {
	int		 ask;		/* borrowed: netd.c */
	struct event	*timer;		/* owned; to look */
	struct event	*check;		/* owned; to read back */
	unsigned int	 check_k;	/* from here on */
	int		 pending;	/* the timer runs */
	unsigned int	 tries;		/* failed, one behind the other */
	int		 lost;
	int		 told;		/* the log has it */
	uint64_t	 took_ms;	/* the last time */
} follow = { .lost = 1 };

static void
look_in(uint64_t ms)
{
	struct timeval	tv = { (time_t)(ms / 1000),
			    (suseconds_t)(ms % 1000 * 1000) };

	if (follow.pending)
		return;
	if (event_add(follow.timer, &tv) == -1)
		fatalx("event_add");
	follow.pending = 1;
}

static void
check_soon(unsigned int k)
{
	const struct timeval	now = { 0, 0 };

	follow.check_k = k;
	if (k != 0 && event_add(follow.check, &now) == -1)
		fatalx("event_add");
}

static void
on_check(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (!follow.lost)
		check_soon(nets_check_egress(follow.check_k, CHECK_TURN));
	if (nets_seal_again())
		look_in(RETRY_MS);
}

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
	ruleset_hosts_lost();
	nets_seal_egress("the host's addresses are not known");
	look_in(RETRY_MS);
}

/* 0, or -1 with errno. */
static int
look_once(void)
{
	struct hosts	h;
	int		e, r;

	if (hostaddr_ask(follow.ask, &h) == -1)
		return -1;
	r = ruleset_hosts(&h.v4, &h.v6);
	e = errno;
	if (r == 1)
		log_debug("the host's addresses: %zu and %zu intervals",
		    h.v4.n, h.v6.n);
	hosts_free(&h);
	if (r == 1) {
		nets_update_egress();
		check_soon(1);
	}
	errno = e;
	return r == -1 ? -1 : 0;
}

static void
look(void)
{
	uint64_t	t0 = mono_ms();
	int		left = nets_seal_again(), r = look_once(), e = errno;

	follow.took_ms = mono_ms() - t0;
	if (r == 0) {
		if (follow.told)
			log_info("the host's addresses are known again");
		follow.tries = 0;
		follow.lost = follow.told = 0;
		if (left)
			look_in(RETRY_MS);
		return;
	}
	errno = e;
	if ((e == EINTR || e == ENOBUFS) && ++follow.tries < TRIES)
		look_in(PAUSE_MS + follow.took_ms);
	else
		lose();
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	follow.pending = 0;
	look();
}

static void
on_news(evutil_socket_t fd, short what, void *arg)
{
	int	r = hostaddr_news(fd);

	(void)what;
	(void)arg;
	if (r == -1)
		fatal("hear of the host's addresses");
	if (r == 1)
		look_in(PAUSE_MS + follow.took_ms);
}

void
follow_init(struct event_base *base, int news, int ask)
{
	struct event	*ev;

	follow.ask = ask;
	follow.timer = event_new(base, -1, 0, on_timer, NULL);
	follow.check = event_new(base, -1, 0, on_check, NULL);
	ev = event_new(base, news, EV_READ | EV_PERSIST, on_news, NULL);
	if (follow.timer == NULL || follow.check == NULL || ev == NULL ||
	    event_add(ev, NULL) == -1)
		fatalx("event_add");
	look();
}
