/*
 * proxy.c: the way out of a network `allowlist', which proxyd is: three
 * sockets that the maker opens in its netns, and what is said of them.
 *
 * Theory of operation.  A net that proxyd serves, or is to serve, has a
 * struct proxied:
 *
 *	WAITS	for its turn, or until its ports are free
 *	HELD	by pool.c: the maker is to open the sockets
 *	ASKED	proxyd has them and has not said OK to all three
 *	UP	names can be reached, if the ruleset lets packets pass
 *
 *	(none) -> WAITS	when the net is handed out, and before it is opened if
 *			that has failed, or it was cut; when it is adopted, or
 *			is to become an `allowlist'; for one that is open and
 *			not served each second
 *	WAITS -> HELD	when few others are under way
 *	HELD -> ASKED	by the maker's answer; -> WAITS when a port is taken
 *			and a request waits that would fail by it: proxyd
 *			closes sockets of the same net when it has read of
 *			their end.  A box can hold port 53; then it has no
 *			names, which is its own doing, and no other's adoption
 *			waits for it
 *	ASKED -> UP	by proxyd's third OK
 *	any -> (none)	by an error, by the end of the net or of its being of
 *			that kind, by a cut, after LATE_MS but for UP
 *
 * Whoever waits for it hears by pool_proxied(), which is called from the loop
 * alone.  One that is let go of while pool.c holds it stays there, without a
 * net, until the maker has answered.
 *
 * A proxyd that does not answer, hostile or stuck, is not waited for, and is
 * sent no more sockets before it has said anything: each is a descriptor on
 * its way, and of these all daemons of netd's uid have a bounded number.
 *
 * Must never: take a net for served that proxyd has not said OK for; tell
 * apid of a box what proxyd says of one that is none of its; keep a request
 * waiting for as long as proxyd likes.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define STARTS_MOST	8	/* HELD and ASKED at once */
#define AGAIN_MS	50	/* until a port is tried again */
#define LOOK_S		1
#define LATE_MS		10000	/* of a start, of PROXY_LIST */
#define LISTS_MOST	64
#define NAMES_MOST	16
#define NAMES_LATE_MS	5000

TAILQ_HEAD(proxieds, proxied);

/* A PROXY_LIST or PROXY_NAMES; rid 0: none. */
struct asked {
	uint32_t	 rid;
	unsigned int	 k;		/* of PROXY_LIST */
	uint64_t	 at_ms;
	/* of PROXY_NAMES: who asked */
	struct chan	*chan;		/* borrowed: netd.c */
	uint32_t	 to;
};

static struct chan	*proxyd;	/* borrowed: netd.c; NULL: none */
static struct event	*look, *soon;	/* owned */
static struct proxieds	 waits = TAILQ_HEAD_INITIALIZER(waits);
static struct proxieds	 asked = TAILQ_HEAD_INITIALIZER(asked);
static struct asked	 lists[LISTS_MOST], names[NAMES_MOST];
static unsigned int	 under;		/* HELD and ASKED */
static int		 mute;		/* it is late, and said nothing since */

static void
look_soon(void)
{
	const struct timeval	tv = { LOOK_S, 0 };

	if (!event_pending(look, EV_TIMEOUT, NULL) &&
	    event_add(look, &tv) == -1)
		fatalx("event_add");
}

int
proxy_there(void)
{
	return proxyd != NULL && proxyd->fd != -1;
}

int
proxy_up(const struct net *n)
{
	return n->proxied != NULL && n->proxied->at == PROXIED_UP;
}

/* ---- starts ------------------------------------------------------------- */

static void
start_in(long ms)
{
	const struct timeval	tv = { 0, ms * 1000 };

	if (event_add(soon, &tv) == -1)
		fatalx("event_add");
}

/* Whatever else keeps one waiting ends by an answer. */
static void
start_some(void)
{
	uint64_t	 now = mono_ms();
	struct proxied	*p, *next;

	if (!proxy_there() || mute)
		return;
	for (p = TAILQ_FIRST(&waits); p != NULL && under < STARTS_MOST;
	    p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->from_ms > now || chan_pending(proxyd)) {
			start_in(AGAIN_MS);
			continue;
		}
		TAILQ_REMOVE(&waits, p, link);
		p->at = PROXIED_HELD;
		under++;
		pool_proxy(p);
	}
}

static void
on_soon(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	start_some();
}

static void
wait_for_turn(struct proxied *p, uint64_t ms)
{
	p->at = PROXIED_WAITS;
	p->from_ms = mono_ms() + ms;
	TAILQ_INSERT_TAIL(&waits, p, link);
}

/* pool_proxied() follows from the loop; never from here. */
void
proxy_start(struct net *n)
{
	struct proxied	*p;

	if (n->proxied != NULL)
		return;
	n->proxied = p = xcalloc(1, sizeof(*p));
	p->net = n;
	p->since_ms = mono_ms();
	wait_for_turn(p, 0);
	look_soon();
	start_in(0);
}

void
proxy_end(struct net *n)
{
	struct proxied		*p = steal_ptr(&n->proxied);
	struct msg_proxy_end	 m = { .wire_end = 0 };

	if (p == NULL)
		return;
	if (n->adopter != NULL)
		look_soon();		/* who waits for it */
	p->net = NULL;
	if (p->at == PROXIED_HELD)
		return;			/* proxy_made() frees it */
	if (p->at == PROXIED_WAITS)
		TAILQ_REMOVE(&waits, p, link);
	if (p->at == PROXIED_ASKED) {
		TAILQ_REMOVE(&asked, p, link);
		under--;
	}
	if (p->at != PROXIED_WAITS && proxy_there()) {
		(void)str_copy(m.id, n->id, sizeof(m.id));
		netd_sent(proxyd, chan_ask(proxyd, MSG_PROXY_END, &m, -1,
		    NULL));
	}
	free(p);
}

/* An open `allowlist' is served as soon as it can be. */
static int
is_lacking(const struct net *n)
{
	return n->state == OPEN && n->kind == RULESET_ALLOW &&
	    n->proxied == NULL;
}

/* One that is open is tried each second: told once. */
static void
fail(struct net *n, enum wb_code code, const char *why)
{
	if (n->kind != RULESET_ALLOW || !n->uplink_told)
		log_warnx("network %u: its way out: %s", n->k, why);
	if (n->kind == RULESET_ALLOW)
		n->uplink_told = 1;
	proxy_end(n);
	look_soon();
	pool_proxied(n, code, why);
}

/* ---- the maker's answer ------------------------------------------------ */

/* The relay's is below what a box may bind. */
static void
taken(struct proxied *p, const char *step)
{
	struct net	*n = p->net;
	char		 why[sizeof(p->taken)];

	(void)snprintf(why, sizeof(why), strncmp(step, "port ", 5) == 0 ?
	    "%s is held by a program in the sandbox" :
	    "%s is held by proxyd", step);
	(void)str_copy(p->taken, why, sizeof(p->taken));
	wait_for_turn(p, AGAIN_MS);
	if (n->opener == NULL && !change_proxies(n))
		fail(n, CODE_BAD_TRANSITION, why);
}

static void
ask_box(struct net *n, struct netns_made *m)
{
	static const enum netns_sock	socks[PROXY_SOCKS] = { NS_RELAY,
					    NS_NAMES_UDP, NS_NAMES_TCP };
	struct msg_proxy_box		b = { .wire_end = 0 };
	struct proxied			*p = n->proxied;
	unsigned int			i;

	(void)str_copy(b.id, n->id, sizeof(b.id));
	p->at = PROXIED_ASKED;
	p->taken[0] = '\0';
	TAILQ_INSERT_TAIL(&asked, p, link);
	under++;
	for (i = 0; i < PROXY_SOCKS; i++) {
		b.socket = i;
		netd_sent(proxyd, chan_ask(proxyd, MSG_PROXY_BOX, &b,
		    steal_fd(&m->sock[socks[i]]), &p->rid[i]));
	}
	p->left = PROXY_SOCKS;
}

void
proxy_made(struct proxied *p, struct netns_made *m)
{
	struct net	*n = p->net;
	const char	*step;

	under--;
	if (n == NULL)
		free(p);		/* let go of meanwhile; m may be NULL */
	else if (m->error == EADDRINUSE)
		taken(p, m->step);
	else if (m->error != 0 || !proxy_there()) {
		wait_for_turn(p, 0);
		fail(n, CODE_INTERNAL, m->error != 0 ? m->step :
		    "proxyd is gone");
	} else if (m->k != n->k)
		fatalx("the maker answers for another network");
	else if ((step = net_furnish(n, m)) != NULL) {
		wait_for_turn(p, 0);
		fail(n, CODE_INTERNAL, step);
	} else
		ask_box(n, m);
	start_some();
}

/* ---- proxyd's answers -------------------------------------------------- */

/* The start that this is an answer to, or NULL. */
static struct proxied *
start_of(uint32_t rid)
{
	struct proxied	*p;
	unsigned int	 i;

	TAILQ_FOREACH(p, &asked, link)
		for (i = 0; i < PROXY_SOCKS; i++)
			if (p->rid[i] == rid) {
				p->rid[i] = 0;	/* once */
				return p;
			}
	return NULL;
}

static struct asked *
asked_of(struct asked *a, size_t n, uint32_t rid)
{
	size_t	i;

	for (i = 0; i < n; i++)
		if (a[i].rid == rid)
			return &a[i];
	return NULL;
}

static void
up(struct proxied *p)
{
	struct net	*n = p->net;

	if (--p->left != 0)
		return;
	TAILQ_REMOVE(&asked, p, link);
	under--;
	p->at = PROXIED_UP;
	n->uplink_told = 0;
	log_debug("network %u: is served", n->k);
	pool_proxied(n, CODE_NONE, NULL);
}

/* Of PROXY_LIST; its net may have gone, or be another's by now. */
static void
listed(struct asked *a, const char *why)
{
	struct net	*n = net_at(a->k);
	uint32_t	 rid = a->rid;

	a->rid = 0;
	if (n != NULL && change_lists(n, rid))
		change_listed(n, why);
}

static void
names_fail(struct asked *a, unsigned int code, const char *why)
{
	a->rid = 0;
	netd_sent(a->chan, chan_error(a->chan, a->to, code, "%s", why));
}

/* why NULL: OK. */
static void
on_answer(uint32_t rid, const char *why)
{
	struct proxied	*p;
	struct asked	*a;

	if (rid == 0)
		return;			/* not of ours */
	if ((p = start_of(rid)) != NULL) {
		if (why == NULL)
			up(p);
		else
			fail(p->net, CODE_INTERNAL, why);
	} else if ((a = asked_of(lists, LISTS_MOST, rid)) != NULL)
		listed(a, why);
	else if ((a = asked_of(names, NAMES_MOST, rid)) != NULL)
		names_fail(a, CODE_INTERNAL, why != NULL ? why :
		    "proxyd answers something else");
	/* else of PROXY_END, or too late */
}

static void
on_names(const struct msg *m)
{
	struct asked			*a = asked_of(names, NAMES_MOST,
					    m->rid);
	struct msg_net_names_are	 b = {
	    .rows = m->body.proxy_names_are.rows };

	if (m->rid == 0 || a == NULL)
		return;			/* too late */
	a->rid = 0;
	netd_sent(a->chan, chan_send(a->chan, MSG_NET_NAMES_ARE, a->to, &b,
	    -1));
}

/*
 * Hostile: what it says of a box that is none of its is not heard; of its own
 * it decides what is denied, and says so.
 */
static void
on_denied(const struct msg *m)
{
	const struct msg_proxy_denied	*d = &m->body.proxy_denied;
	struct net			*n = net_find(d->id);

	if (d->address.len != 0 && d->address.len != 4 &&
	    d->address.len != 16)
		fatalx("PROXY_DENIED: address has neither 4 nor 16 bytes");
	if (d->address.len == 0 && d->name[0] == '\0' &&
	    (d->port != 0 || d->protocol != 0))
		fatalx("PROXY_DENIED: a port or protocol without an address "
		    "or name");
	if (n == NULL || n->kind != RULESET_ALLOW || n->proxied == NULL) {
		log_debug("proxyd tells of denials of another's");
		return;			/* it may have been one just now */
	}
	denials_pass(n->denials, d);
}

void
proxy_on(const struct msg *m)
{
	if (mute)
		log_info("proxyd answers again");
	mute = 0;
	switch (m->row->type) {
	case MSG_OK:
		on_answer(m->rid, NULL);
		break;
	case MSG_ERROR:
		on_answer(m->rid, m->body.error.detail);
		break;
	case MSG_PROXY_NAMES_ARE:
		on_names(m);
		break;
	case MSG_PROXY_DENIED:
		on_denied(m);
		break;
	default:
		fatalx("%s is of no use here", m->row->name);
	}
	start_some();
}

/* ---- questions --------------------------------------------------------- */

static struct asked *
asked_new(struct asked *a, size_t n)
{
	struct asked	*r = asked_of(a, n, 0);

	if (r == NULL)
		return NULL;
	r->at_ms = mono_ms();
	look_soon();
	return r;
}

uint32_t
proxy_list(const struct net *n)
{
	struct asked		*a = asked_new(lists, LISTS_MOST);
	struct msg_proxy_list	 m = { .wire_end = 0 };

	if (a == NULL)
		return 0;
	a->k = n->k;
	(void)str_copy(m.id, n->id, sizeof(m.id));
	netd_sent(proxyd, chan_ask(proxyd, MSG_PROXY_LIST, &m, -1, &a->rid));
	return a->rid;
}

void
proxy_names(struct chan *c, uint32_t rid, const struct msg_net_names *q)
{
	struct msg_proxy_names	 m = { .wire_end = 0 };
	struct asked		*a = asked_new(names, NAMES_MOST);

	if (a == NULL) {
		netd_sent(c, chan_error(c, rid, CODE_BUSY,
		    "proxyd is asked for names by too many"));
		return;
	}
	a->chan = c;
	a->to = rid;
	(void)str_copy(m.id, q->id, sizeof(m.id));	/* the same bounds */
	netd_sent(proxyd, chan_ask(proxyd, MSG_PROXY_NAMES, &m, -1,
	    &a->rid));
}

/* ---- time -------------------------------------------------------------- */

static void
tell_mute(void)
{
	if (!mute)
		log_warnx("proxyd does not answer");
	mute = 1;
}

static struct proxied *
late_of(const struct proxieds *q, uint64_t now)
{
	struct proxied	*p;

	TAILQ_FOREACH(p, q, link)
		if (now - p->since_ms >= LATE_MS)
			return p;
	return NULL;
}

/* Each of them may end others. */
static void
end_late(const struct proxieds *q, uint64_t now)
{
	struct proxied	*p;
	char		 why[sizeof(p->taken)];

	while ((p = late_of(q, now)) != NULL) {
		if (q == &asked)
			tell_mute();
		(void)str_copy(why, p->taken, sizeof(why));
		if (why[0] != '\0')
			fail(p->net, CODE_BAD_TRANSITION, why);
		else
			fail(p->net, CODE_INTERNAL, "proxyd does not answer");
	}
}

static void
look_asked(uint64_t now)
{
	size_t	i;

	for (i = 0; i < LISTS_MOST; i++)
		if (lists[i].rid != 0 && now - lists[i].at_ms >= LATE_MS)
			listed(&lists[i], "proxyd does not answer");
	for (i = 0; i < NAMES_MOST; i++)
		if (names[i].rid != 0 &&
		    now - names[i].at_ms >= NAMES_LATE_MS)
			names_fail(&names[i], CODE_BUSY,
			    "proxyd does not answer");
}

static int
is_waiting(void)
{
	size_t	i;

	for (i = 0; i < LISTS_MOST; i++)
		if (lists[i].rid != 0)
			return 1;
	for (i = 0; i < NAMES_MOST; i++)
		if (names[i].rid != 0)
			return 1;
	return under != 0 || !TAILQ_EMPTY(&waits);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	uint64_t	 now = mono_ms();
	struct net	*n;
	unsigned int	 k;

	(void)fd;
	(void)what;
	(void)arg;
	end_late(&asked, now);
	end_late(&waits, now);
	look_asked(now);
	for (k = 1; k <= NET_KMAX; k++) {
		if ((n = net_by_k(k)) == NULL || n->kind != RULESET_ALLOW ||
		    n->proxied != NULL)
			continue;
		if (n->adopter != NULL)
			pool_proxied(n, CODE_INTERNAL, "it was cut");
		else if (is_lacking(n))
			proxy_start(n);
	}
	if (is_waiting())
		look_soon();
}

/* privd sees to the rest. */
void
proxy_gone(void)
{
	struct net	*n;
	unsigned int	 k;

	for (k = 1; k <= NET_KMAX; k++)
		if ((n = net_by_k(k)) != NULL && n->proxied != NULL &&
		    n->proxied->at != PROXIED_HELD)
			fail(n, CODE_INTERNAL, "proxyd is gone");
}

void
proxy_init(struct event_base *base, struct chan *c)
{
	proxyd = c;
	look = event_new(base, -1, 0, on_look, NULL);
	soon = event_new(base, -1, 0, on_soon, NULL);
	if (look == NULL || soon == NULL)
		fatalx("event_new");
}
