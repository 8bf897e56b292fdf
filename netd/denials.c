/*
 * denials.c: what networks of `egress' and `allowlist' deny, told to apid.
 *
 * Theory of operation.  The kernel logs some of what a network denies
 * (ruleset_rule.c) and counts all of it.  The first packet opens a window of
 * WINDOW_S seconds.  Within it each destination is told at once when it is
 * seen for the first time, and when the window ends once more, with how often
 * it was seen besides, if it was.  ENTRIES destinations are told apart in a
 * window; of what does not fit, and of what the kernel did not log, the sum
 * is told by rule: the counters less what has been told.  Another window
 * follows, until one passes in which nothing was counted: the last packets of
 * many may all be over the limit of the log.
 *
 * So a box costs a bounded place and a bounded number of messages, whatever
 * it does, and its own alone: nothing here is shared between networks but
 * the channel to apid.  When apid does not take what is told, it is not told,
 * and stands in a later sum.
 *
 * total, told and the counters are cumulative.  A packet that comes between
 * reading the log and the counters is in the sum and told after it; the next
 * sum is less by it.
 *
 * What was denied while no netd ran is in the counters and in no message.
 * While the netd before still holds the log nothing is heard of it, and its
 * sum is told later; a network that is open is sealed when that lasts.
 *
 * What proxyd denies by name comes from it already bounded and summed, and is
 * passed on at once.  What apid does not take then is told as a sum, by rule,
 * when a window ends.
 *
 * Must never: let a box's packets decide how much is held or said.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define WINDOW_S	10
#define ENTRIES		32	/* destinations of a window */
#define TURN		16	/* packets that are read at once */
#define ALL		1024	/* more than its socket holds */
#define BIND_MS		5000	/* one that is open longer has its log */
#define AGAIN_MS	20

struct entry {
	struct denial	 d;
	uint64_t	 at_ms;		/* first seen */
	uint64_t	 more;		/* not told */
};

struct denials {
	const struct net *net;		/* borrowed: whose this is */
	int		 fd;		/* owned; NS_LOG */
	struct event	*in, *end;	/* owned; packets, the window's end */
	struct event	*bind;		/* owned; NULL: the kernel tells us */
	uint64_t	 late_ms;	/* of bind */
	struct entry	 entry[ENTRIES];
	unsigned int	 n;
	uint64_t	 began_ms;	/* the window */
	uint64_t	 seen[RS_COUNTERS];	/* in the counters */
	uint64_t	 total[RS_COUNTERS];	/* since there is a network */
	uint64_t	 before[RS_DENIED];	/* total, at the last end */
	uint64_t	 told[RS_DENIED];
	uint64_t	 untold[DENIED_RULES];	/* of what proxyd said */
	uint64_t	 passed[DENIED_RULES];	/* of that, all along */
};

/* ---- telling --------------------------------------------------------- */

/* count packets to d, or (len 0) by its rule to whatever.  0, or -1. */
static int
tell(struct denials *dn, const struct denial *d, uint64_t count,
    uint64_t since_ms)
{
	struct msg_net_denied	m = { .rule = d->rule, .protocol = d->proto,
	    .port = d->port, .count = count, .since_ms = since_ms };

	if (dn->net->id[0] == '\0')
		return -1;		/* no box's yet */
	(void)str_copy(m.id, dn->net->id, sizeof(m.id));
	m.address.data = d->addr;
	m.address.len = d->len;
	if (netd_tell(MSG_NET_DENIED, &m) == -1)
		return -1;
	dn->told[d->rule] += count;
	return 0;
}

static int
same(const struct denial *a, const struct denial *b)
{
	return a->rule == b->rule && a->proto == b->proto &&
	    a->port == b->port && a->len == b->len &&
	    memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

static void
on_denial(const struct denial *d, void *arg)
{
	struct denials	*dn = arg;
	struct entry	*e = dn->entry;

	for (; e < dn->entry + dn->n; e++)
		if (same(&e->d, d)) {
			e->more++;
			return;
		}
	if (dn->n == ENTRIES)
		return;			/* the counter has it */
	dn->n++;
	e->d = *d;
	e->at_ms = now_ms();
	e->more = tell(dn, d, 1, e->at_ms) == -1;
}

/* ---- windows --------------------------------------------------------- */

static void
window_open(struct denials *dn)
{
	const struct timeval	tv = { WINDOW_S, 0 };

	if (event_pending(dn->end, EV_TIMEOUT, NULL))
		return;
	dn->began_ms = now_ms();
	if (event_add(dn->end, &tv) == -1)
		fatalx("event_add");
}

/* A counter that is less than it was began anew, whoever did that. */
void
denials_count(struct denials *dn)
{
	uint64_t	now[RS_COUNTERS];
	int		i;

	if (dn == NULL)
		return;
	if (ruleset_counted(dn->net->ctl, now) == -1) {
		log_debug("network %u: read counters: %s", dn->net->k,
		    strerror(errno));
		return;			/* in a later sum */
	}
	for (i = 0; i < RS_COUNTERS; i++) {
		dn->total[i] += now[i] < dn->seen[i] ? now[i] :
		    now[i] - dn->seen[i];
		dn->seen[i] = now[i];
	}
}

void
denials_anew(struct denials *dn)
{
	if (dn != NULL)
		memset(dn->seen, 0, sizeof(dn->seen));
}

/* What apid did not take of proxyd's; 1: it still does not. */
static int
tell_untold(struct denials *dn)
{
	struct msg_net_denied	m = { .since_ms = dn->began_ms };
	int			i, more = 0;

	(void)str_copy(m.id, dn->net->id, sizeof(m.id));
	for (i = 0; i < DENIED_RULES; i++) {
		if (dn->untold[i] == 0)
			continue;
		m.rule = (uint64_t)i;
		m.count = dn->untold[i] > WB_U63 ? WB_U63 : dn->untold[i];
		if (netd_tell(MSG_NET_DENIED, &m) == -1)
			more = 1;
		else
			dn->untold[i] = 0;
	}
	return more;
}

/* Tells what the window leaves; 1: another is to follow. */
static int
window_close(struct denials *dn)
{
	struct denial	 rest = { .len = 0 };
	struct entry	*e;
	int		 i, more = 0;

	/* first what is logged, which else is in the sum and told after it */
	(void)nflog_read(dn->fd, ALL, on_denial, dn);	/* on_log() sees why */
	denials_count(dn);
	for (e = dn->entry; e < dn->entry + dn->n; e++)
		if (e->more != 0)
			more |= tell(dn, &e->d, e->more, e->at_ms) == -1;
	dn->n = 0;
	for (i = 0; i < RS_DENIED; i++) {
		rest.rule = (uint8_t)i;
		if (dn->total[i] > dn->told[i])
			more |= tell(dn, &rest, dn->total[i] -
			    dn->told[i], dn->began_ms) == -1;
		more |= dn->total[i] != dn->before[i];
	}
	memcpy(dn->before, dn->total, sizeof(dn->before));
	return tell_untold(dn) | more;
}

static void
on_end(evutil_socket_t fd, short what, void *arg)
{
	struct denials	*dn = arg;

	(void)fd;
	(void)what;
	if (dn->bind == NULL && !event_pending(dn->in, EV_READ, NULL) &&
	    event_add(dn->in, NULL) == -1)
		fatalx("event_add");
	if (window_close(dn))
		window_open(dn);
}

static void
on_log(evutil_socket_t fd, short what, void *arg)
{
	struct denials	*dn = arg;

	(void)what;
	window_open(dn);
	if (nflog_read(fd, TURN, on_denial, dn) == 0)
		return;
	log_warn("network %u: read what is denied", dn->net->k);
	(void)event_del(dn->in);	/* again when the window ends */
}

/* ---- life ------------------------------------------------------------ */

static struct event_base	*base;	/* borrowed: netd.c */

void
denials_init(struct event_base *b)
{
	base = b;
}

/*
 * A netd that was killed a moment ago has it until the kernel has closed all
 * that it had; with hundreds of networks another is there before.  Nobody else
 * can: a box has no power over its network namespace.
 */
static int
is_held(void)
{
	return errno == EPERM || errno == EBUSY;
}

static void
bind_again(struct denials *dn)
{
	const struct timeval	tv = { 0, AGAIN_MS * 1000L };

	if (event_add(dn->bind, &tv) == -1)
		fatalx("event_add");
}

/* What passed unheard is told as a sum. */
static void
bound(struct denials *dn)
{
	event_free(dn->bind);
	dn->bind = NULL;
	if (event_add(dn->in, NULL) == -1)
		fatalx("event_add");
	window_open(dn);
}

static void
on_bind(evutil_socket_t fd, short what, void *arg)
{
	struct denials	*dn = arg;
	struct net	*n = net_by_k(dn->net->k);

	(void)fd;
	(void)what;
	if (nflog_bind(dn->fd) == 0) {
		bound(dn);
		return;
	}
	bind_again(dn);
	if ((is_held() && mono_ms() < dn->late_ms) || n == NULL ||
	    n->state != OPEN)
		return;
	log_warn("network %u: bind the log", n->k);
	net_seal(n, "bind the log");	/* which may free dn */
}

struct denials *
denials_new(const struct net *n, int log)
{
	struct denials	*dn;
	int		 held = 0;

	if (nflog_bind(log) == -1 && (held = is_held()) == 0) {
		(void)close(log);
		return NULL;
	}
	dn = xcalloc(1, sizeof(*dn));
	dn->net = n;
	dn->fd = log;
	dn->in = event_new(base, log, EV_READ | EV_PERSIST, on_log, dn);
	dn->end = event_new(base, -1, 0, on_end, dn);
	if (held) {
		dn->bind = event_new(base, -1, 0, on_bind, dn);
		dn->late_ms = mono_ms() + BIND_MS;
	}
	if (dn->in == NULL || dn->end == NULL || (held && dn->bind == NULL))
		fatalx("event_new");
	if (held)
		bind_again(dn);
	else if (event_add(dn->in, NULL) == -1)
		fatalx("event_add");
	/* what was there before is no news */
	denials_count(dn);
	memcpy(dn->told, dn->total, sizeof(dn->told));
	memcpy(dn->before, dn->total, sizeof(dn->before));
	return dn;
}

static void
more(uint64_t *sum, uint64_t n)
{
	*sum = UINT64_MAX - *sum < n ? UINT64_MAX : *sum + n;
}

void
denials_pass(struct denials *dn, const struct msg_proxy_denied *d)
{
	struct msg_net_denied	m = { .rule = d->rule, .address = d->address,
	    .protocol = d->protocol, .port = d->port, .count = d->count,
	    .since_ms = d->since_ms };

	if (dn == NULL)
		return;
	(void)str_copy(m.id, d->id, sizeof(m.id));	/* the same bounds */
	(void)str_copy(m.name, d->name, sizeof(m.name));
	more(&dn->passed[d->rule], d->count);
	if (netd_tell(MSG_NET_DENIED, &m) == 0)
		return;
	more(&dn->untold[d->rule], d->count);
	window_open(dn);
}

void
denials_restart(struct denials *dn)
{
	if (dn == NULL)
		return;
	(void)window_close(dn);		/* what fails is lost with its kind */
	(void)event_del(dn->end);
	memset(dn->total, 0, sizeof(dn->total));
	memset(dn->before, 0, sizeof(dn->before));
	memset(dn->told, 0, sizeof(dn->told));
	memset(dn->untold, 0, sizeof(dn->untold));
	memset(dn->passed, 0, sizeof(dn->passed));
}

void
denials_total(struct denials *dn, uint64_t ret[RS_COUNTERS])
{
	int	i;

	memset(ret, 0, RS_COUNTERS * sizeof(*ret));
	if (dn == NULL)
		return;
	denials_count(dn);
	memcpy(ret, dn->total, sizeof(dn->total));
	for (i = 0; i < RS_DENIED; i++)
		more(&ret[i], dn->passed[i]);
}

void
denials_free(struct denials *dn)
{
	if (dn == NULL)
		return;
	(void)window_close(dn);		/* what fails is lost, as its box is */
	event_free(dn->in);
	event_free(dn->end);
	if (dn->bind != NULL)
		event_free(dn->bind);
	fd_close(&dn->fd);
	free(dn);
}
