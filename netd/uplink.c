/*
 * uplink.c: the way out of a network `egress', which uplinkd starts.
 *
 * Theory of operation.  Beside its state a net of that kind has that of its
 * uplink:
 *
 *	NONE	there is none, or it has gone
 *	ASKED	uplinkd was asked for one
 *	UP	packets can go, if the ruleset lets them
 *
 *	NONE -> ASKED	when the net is made or adopted, or becomes one of
 *			that kind; for a box's net that lost it at once, or if
 *			it could not get it or loses it again and again, each
 *			second
 *	ASKED -> UP	by UPLINK_STARTED, and after IPv6 was set up, which
 *			may be repeated
 *	any -> NONE	by an error, by UPLINK_DOWN, by the end of the net, or
 *			of its being of that kind
 *
 * slirp4netns gives its tap an IPv4 address and the route; the IPv6 address
 * is given here, for its own (SLAAC) takes seconds.  A tap ends with its
 * slirp4netns, and its addresses and routes with it: what a box then wants to
 * reach is unreachable at once.
 *
 * An uplinkd that does not answer, hostile or stuck, is not waited for: who
 * waits in a net is told after LATE_MS without any answer of it, and after
 * MOST_MS though others were answered; before privd (60 s) and apid (30 s),
 * who would take netd for broken, and with it boxes of every kind.  What was
 * adopted is told so after LATE_MS in any case: it goes on without an uplink,
 * and what it asked for may still come.  Nor is such an uplinkd sent more and
 * more: each question holds a netns.
 *
 * Must never: tell that one is up which uplinkd did not say is up; keep a
 * request waiting for as long as uplinkd likes.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define RETRY_S		1	/* between attempts for a box's net */
#define OFTEN_MS	10000	/* who loses it twice within waits as well */
#define LOOK_S		1	/* between looks for what is late */
#define LATE_MS		10000	/* without any answer of uplinkd's */
#define MOST_MS		20000	/* for whoever waits */
#define OPEN_MOST	64	/* questions to an uplinkd that is silent */

static struct chan	*uplinkd;	/* borrowed: netd.c */
static struct event	*retry;		/* owned */
static struct event	*look;		/* owned */

static struct {
	unsigned int	 open;		/* questions without answer */
	uint64_t	 heard_ms;	/* its last answer, or the first
					 * question when there was none open */
	int		 told;		/* that it does not answer */
} line;

static void
timer_soon(struct event *timer, time_t s)
{
	const struct timeval	tv = { s, 0 };

	if (!event_pending(timer, EV_TIMEOUT, NULL) &&
	    event_add(timer, &tv) == -1)
		fatalx("event_add");
}

static void
retry_later(void)
{
	timer_soon(retry, RETRY_S);
}

/* ---- questions ------------------------------------------------------- */

static void
is_asked(struct net *n)
{
	n->uplink_ms = mono_ms();
	if (line.open++ == 0)
		line.heard_ms = n->uplink_ms;
	timer_soon(look, LOOK_S);
}

static void
is_heard(void)
{
	line.open -= line.open > 0;	/* it may answer what nobody asked */
	line.heard_ms = mono_ms();
	if (line.told)
		log_info("uplinkd answers again");
	line.told = 0;
}

static void
tell_silent(void)
{
	if (!line.told)
		log_warnx("uplinkd does not answer");
	line.told = 1;
}

/* A few are put in any case: whoever is awake again shows it by an answer. */
static int
is_stuck(void)
{
	return line.open >= OPEN_MOST &&
	    mono_ms() - line.heard_ms >= LATE_MS;
}

void
uplink_start(struct net *n, int keep)
{
	struct msg_uplink_start	m = { .k = n->k, .keep = (uint64_t)keep };
	int			fd;

	/* but for what is adopted, which is asked for once */
	if (!keep && is_stuck()) {
		tell_silent();
		retry_later();
		return;
	}
	if ((fd = fcntl(n->netns, F_DUPFD_CLOEXEC, 0)) == -1) {
		log_warn("network %u: duplicate descriptor", n->k);
		retry_later();
		return;
	}
	n->uplink = UPLINK_ASKED;
	is_asked(n);
	netd_sent(uplinkd, chan_ask(uplinkd, MSG_UPLINK_START, &m, fd,
	    &n->uplink_rid));
}

uint32_t
uplink_end(struct net *n)
{
	struct msg_uplink_end	m = { .k = n->k };
	uint32_t		rid;

	if (n->uplink == UPLINK_NONE)
		return 0;
	n->uplink = UPLINK_NONE;
	is_asked(n);
	netd_sent(uplinkd, chan_ask(uplinkd, MSG_UPLINK_END, &m, -1, &rid));
	return rid;
}

/* ---- who waits too long ---------------------------------------------- */

static int
is_ending(const struct net *n)
{
	return n->change != NULL && n->change->at == CHANGE_ENDS;
}

/* Whether somebody's request is not answered before uplinkd answers. */
static int
is_waited_for(const struct net *n)
{
	return is_ending(n) || (n->uplink == UPLINK_ASKED &&
	    (n->adopter != NULL || n->state == MAKING || change_starts(n)));
}

static int
is_late(const struct net *n)
{
	uint64_t	now = mono_ms(), since = n->uplink_ms;

	if (n->adopter == NULL && line.heard_ms > since)
		since = line.heard_ms;
	return now - since >= LATE_MS || now - n->uplink_ms >= MOST_MS;
}

/* A net that is not adopted but made, or changed, then wants no uplink. */
static void
give_up(struct net *n)
{
	tell_silent();
	if (is_ending(n))
		change_ended(n);	/* it is without it all the same */
	else
		pool_uplinked(n, "uplinkd does not answer");
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct net	*n;
	unsigned int	 k;

	(void)fd;
	(void)what;
	(void)arg;
	for (k = 1; k <= NET_KMAX; k++) {
		if ((n = net_at(k)) == NULL || !is_waited_for(n))
			continue;
		if (is_late(n))
			give_up(n);	/* which may free it */
		else
			timer_soon(look, LOOK_S);
	}
}

/* ---- answers --------------------------------------------------------- */

/* Whoever waits for it is told; a box's net gets another. */
static void
up_failed(struct net *n, const char *why)
{
	(void)uplink_end(n);
	pool_uplinked(n, why);		/* which may free it */
	retry_later();
}

static void
on_started(const struct msg *m)
{
	const struct msg_uplink_started	*s = &m->body.uplink_started;
	struct net			*n = net_at((unsigned int)s->k);

	if (n == NULL || n->uplink != UPLINK_ASKED ||
	    n->uplink_rid != m->rid)
		return;			/* of one that was let go of since */
	n->uplink = UPLINK_UP;
	/* one that is kept may have had none yet: its netd ended before */
	if (s->ipv6 && link_uplink6(n->route) == -1) {
		log_warn("network %u: set up IPv6", n->k);
		up_failed(n, "set up IPv6");
		return;
	}
	n->uplink_told = 0;
	log_debug("network %u: has a way out", n->k);
	pool_uplinked(n, NULL);
}

/* Or it does not end: what its net is now it is without that. */
static void
on_ended(uint32_t rid)
{
	struct net	*n;
	unsigned int	 k;

	for (k = 1; k <= NET_KMAX; k++)
		if ((n = net_at(k)) != NULL && n->change != NULL &&
		    n->change->at == CHANGE_ENDS && n->change->end_rid == rid)
			change_ended(n);
}

/* Which one an error speaks of is known by its number alone. */
static void
on_error(const struct msg *m)
{
	struct net	*n;
	unsigned int	 k;

	for (k = 1; k <= NET_KMAX; k++) {
		if ((n = net_at(k)) == NULL || n->uplink != UPLINK_ASKED ||
		    n->uplink_rid != m->rid)
			continue;
		/* it is tried each second: told once */
		if (!n->uplink_told)
			log_warnx("network %u: uplinkd: %s", k,
			    m->body.error.detail);
		n->uplink_told = 1;
		n->uplink = UPLINK_NONE;
		up_failed(n, m->body.error.detail);
		return;
	}
	on_ended(m->rid);
}

static void
on_down(const struct msg *m)
{
	struct net	*n = net_at((unsigned int)m->body.uplink_down.k);
	uint64_t	 was;

	if (n == NULL || n->uplink != UPLINK_UP)
		return;
	log_warnx("network %u: its way out is gone", n->k);
	n->uplink = UPLINK_NONE;
	if (net_by_k(n->k) != NULL) {
		was = n->lost_ms;
		n->lost_ms = mono_ms();
		/* a box that can end it shall not have it try without rest */
		if (was != 0 && n->lost_ms - was < OFTEN_MS)
			retry_later();
		else
			uplink_start(n, 0);
		return;
	}
	net_drop(n);			/* of the pool */
	pool_stir(0);
}

/*
 * Hostile: uplinkd decides whether a box has a way out, which is its work;
 * what it says of a k that was not asked for it is not heard.
 */
void
uplink_on(const struct msg *m)
{
	if (m->row->type != MSG_UPLINK_DOWN)
		is_heard();
	switch (m->row->type) {
	case MSG_UPLINK_STARTED:
		on_started(m);
		return;
	case MSG_UPLINK_DOWN:
		on_down(m);
		return;
	case MSG_ERROR:
		on_error(m);
		return;
	case MSG_OK:
		on_ended(m->rid);
		return;
	}
	fatalx("%s is of no use here", m->row->name);
}

/* ---- again and again ------------------------------------------------- */

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct net	*n;
	unsigned int	 k;

	(void)fd;
	(void)what;
	(void)arg;
	for (k = 1; k <= NET_KMAX; k++)
		if ((n = net_by_k(k)) != NULL && !n->orphan &&
		    n->kind == RULESET_EGRESS && n->uplink == UPLINK_NONE)
			uplink_start(n, 0);
}

void
uplink_init(struct event_base *base, struct chan *c)
{
	uplinkd = c;
	retry = event_new(base, -1, 0, on_retry, NULL);
	look = event_new(base, -1, 0, on_look, NULL);
	if (retry == NULL || look == NULL)
		fatalx("event_new");
}
