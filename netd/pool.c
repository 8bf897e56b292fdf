/*
 * pool.c: networks that are prepared before they are wanted, and the
 * questions to the maker: for new ones, for those that are adopted, for those
 * that change (change.c), and for sockets that proxyd serves (proxy.c).
 *
 * The maker answers in the order of the questions, of which only a few are
 * under way (the kernel counts and bounds descriptors on their way); `asked'
 * remembers what each one was.  A new network goes to the NET_MAKE that
 * waits longest for its kind, else into the pool of its kind; one of `egress'
 * is new when its uplink is up (uplink.c).  An `allowlist' is a `none' until it
 * is handed out.
 *
 * The pools are filled while no box is on its way between NET_MAKE and
 * NET_OPEN, so that preparing never delays a create; a create that finds
 * its pool empty has one made at once.  That of `egress', whose members are
 * processes, is filled once a box of that kind was there, and emptied when
 * the host lacks memory (pressure.c).
 *
 * Must never: hand out what is not sealed and was not read back, or an
 * `egress' without a way out.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define REFILL_MS	30	/* after the last NET_OPEN: the proof follows */
#define HURRY_MS	4	/* when few are left */
#define STUCK_MS	250	/* a create that takes longer does not hinder */
#define RETRY_MS	2000	/* after a net could not be made */

/* A request that waits for the maker. */
struct wait {
	STAILQ_ENTRY(wait)	 next;
	struct chan		*chan;	/* borrowed: netd.c; NULL: it was
					 * answered, pool_note() */
	uint32_t		 rid;
	char			 id[ULID_LEN + 1];
	enum ruleset		 kind;
	int			 netns;	/* owned; of an adoption, else -1 */
	int			 open;	/* NET_ADOPT */
};
STAILQ_HEAD(waits, wait);

/* A question that the maker has not answered yet. */
struct asked {
	STAILQ_ENTRY(asked)	 next;
	struct wait		*adopt;	/* owned, or NULL */
	struct change		*change; /* owned, or NULL */
	struct proxied		*proxied; /* owned; all NULL: a new net */
};
STAILQ_HEAD(questions, asked);
STAILQ_HEAD(changes, change);
STAILQ_HEAD(proxieds, proxied);

static struct waits		 waiting[RULESET_N];	/* by made_as() */
static struct waits		 adopting = STAILQ_HEAD_INITIALIZER(adopting);
static struct changes		 changing = STAILQ_HEAD_INITIALIZER(changing);
static struct proxieds		 proxying = STAILQ_HEAD_INITIALIZER(proxying);
static struct questions		 asked = STAILQ_HEAD_INITIALIZER(asked);

static struct {
	int		 maker;			/* borrowed: netd.c */
	struct event	*timer;			/* owned */
	int		 going;			/* DAEMON_GO came */
	unsigned int	 most[RULESET_N];	/* prepared */
	unsigned int	 egress;		/* as configured */
	unsigned int	 nwaiting[RULESET_N];	/* NET_MAKE */
	unsigned int	 nadopting;		/* NET_ADOPT, asked or not */
	unsigned int	 nasked;
	uint64_t	 hold_ms;		/* no filling before */
	uint64_t	 moved_ms;		/* a create's last step */
} pool;

/* ---- asking the maker ------------------------------------------------ */

static void
wait_free(struct wait *w)
{
	fd_close(&w->netns);
	free(w);
}

static struct wait *
wait_new(struct chan *c, uint32_t rid, const char *id, enum ruleset kind)
{
	struct wait	*w = xcalloc(1, sizeof(*w));

	w->chan = c;
	w->rid = rid;
	w->kind = kind;
	w->netns = -1;
	(void)str_copy(w->id, id, sizeof(w->id));	/* was bounded */
	return w;
}

/* The longest waiting of a queue, or NULL. */
static struct wait *
wait_take(struct waits *q)
{
	struct wait	*w = STAILQ_FIRST(q);

	if (w != NULL)
		STAILQ_REMOVE_HEAD(q, next);
	return w;
}

/* What a net of a kind needs, or (RULESET_SEALED) one of any kind. */
static unsigned int
sockets_wanted(enum ruleset kind)
{
	unsigned int	want = 1U << NS_ROUTE;

	if (nets.absent)
		return want;
	want |= 1U << NS_NFT;
	return kind == RULESET_NONE ? want : want | 1U << NS_LOG;
}

/* Whose it is, is the caller's to say. */
static struct asked *
maker_ask(unsigned int k, unsigned int want, int netns)
{
	struct asked	*a = xcalloc(1, sizeof(*a));

	if (netns_ask(pool.maker, k, want, netns) == -1)
		fatal("ask the maker");	/* NETNS_INFLIGHT leaves room */
	STAILQ_INSERT_TAIL(&asked, a, next);
	pool.nasked++;
	return a;
}

static int
make_one(enum ruleset kind)
{
	struct net	*n = net_new(0, kind);

	if (n == NULL)
		return -1;
	(void)maker_ask(n->k, sockets_wanted(kind), -1);
	return 0;
}

/* The NET_MAKE that waits longest, unless its box got a net meanwhile. */
static struct wait *
next_waiting(enum ruleset kind)
{
	struct wait	*w;

	while ((w = wait_take(&waiting[kind])) != NULL) {
		pool.nwaiting[kind]--;
		if (net_find(w->id) == NULL)
			return w;
		netd_sent(w->chan, chan_error(w->chan, w->rid, CODE_EXISTS,
		    "the box has a network"));
		wait_free(w);
	}
	return NULL;
}

/* As many of a kind as are waited for. */
static void
pump_kind(enum ruleset kind)
{
	struct wait	*w;

	while (pool.nasked < NETNS_INFLIGHT &&
	    nets.making[kind] < pool.nwaiting[kind]) {
		if (make_one(kind) == 0)
			continue;
		if ((w = next_waiting(kind)) == NULL)
			return;
		netd_sent(w->chan, chan_error(w->chan, w->rid,
		    CODE_NO_SPACE_FOR_BOX, "no number left for a network"));
		wait_free(w);
	}
}

/* The longest waiting that is not answered already, or NULL. */
static struct change *
next_change(void)
{
	struct change	*c;

	while ((c = STAILQ_FIRST(&changing)) != NULL) {
		STAILQ_REMOVE_HEAD(&changing, next);
		if (c->net != NULL)
			break;
		free(c);
	}
	return c;
}

/* As next_change(). */
static struct proxied *
next_proxied(void)
{
	struct proxied	*p;

	while ((p = STAILQ_FIRST(&proxying)) != NULL) {
		STAILQ_REMOVE_HEAD(&proxying, next);
		if (p->net != NULL)
			break;
		proxy_made(p, NULL);
	}
	return p;
}

/* And what it has not as a `none'. */
static void
ask_proxied(struct proxied *p)
{
	const struct net	*n = p->net;
	unsigned int		 want = NS_PROXIED;

	if (n->kind == RULESET_ALLOW && n->denials == NULL)
		want |= 1U << NS_ROUTE | 1U << NS_LOG;
	maker_ask(0, want, n->netns)->proxied = p;
}

/* Asks for all that is waited for, as far as questions may be under way. */
static void
pump(void)
{
	struct change	*c;
	struct proxied	*p;
	struct wait	*w;

	while (pool.nasked < NETNS_INFLIGHT &&
	    (w = wait_take(&adopting)) != NULL)
		maker_ask(0, w->chan == NULL ? 0 :
		    sockets_wanted(RULESET_SEALED), w->netns)->adopt = w;
	/* one for each box at most, so creates have their turn */
	while (pool.nasked < NETNS_INFLIGHT && (c = next_change()) != NULL)
		maker_ask(0, change_wants(c), c->net->netns)->change = c;
	while (pool.nasked < NETNS_INFLIGHT && (p = next_proxied()) != NULL)
		ask_proxied(p);
	pump_kind(RULESET_NONE);
	pump_kind(RULESET_EGRESS);
}

static void
refill_at(uint64_t ms)
{
	struct timeval	tv = { (time_t)(ms / 1000),
			    (suseconds_t)(ms % 1000 * 1000) };

	(void)event_add(pool.timer, &tv);	/* memory: next time */
}

/* How many of a kind are to be prepared now. */
static unsigned int
most_of(enum ruleset kind)
{
	return kind == RULESET_EGRESS && pressure_rest() != 0 ? 0 :
	    pool.most[kind];
}

/* The kind of which one is to be made; 0: the pools are full. */
static enum ruleset
lacking(void)
{
	enum ruleset	k;

	for (k = RULESET_NONE; k < RULESET_N; k++)
		if (nets.pooled[k] < most_of(k))
			return k;
	return RULESET_SEALED;
}

static int
is_idle(void)
{
	return pool.going && pool.nadopting == 0 &&
	    pool.nwaiting[RULESET_NONE] == 0 &&
	    pool.nwaiting[RULESET_EGRESS] == 0 &&
	    nets.making[RULESET_NONE] == 0 && nets.making[RULESET_EGRESS] == 0;
}

/* One net at a time, when nothing else is to do; its answer leads here. */
static void
refill(void)
{
	enum ruleset	kind = lacking();
	uint64_t	now = mono_ms(), rest;

	if (kind == RULESET_SEALED && (rest = pressure_rest()) != 0)
		refill_at(rest);
	if (kind == RULESET_SEALED || !is_idle())
		return;
	rest = nets.pooled[kind] < pool.most[kind] / 2 ? HURRY_MS :
	    REFILL_MS;
	if (now < pool.hold_ms)
		refill_at(pool.hold_ms - now);
	else if (nets.sealed != 0 && now < pool.moved_ms + STUCK_MS)
		refill_at(pool.moved_ms + STUCK_MS - now);
	else if (now < pool.moved_ms + rest)
		refill_at(pool.moved_ms + rest - now);
	else if (make_one(kind) == -1)
		refill_at(RETRY_MS);
}

static void
on_refill(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	refill();
}

/* Which one is made where a box wants this. */
static enum ruleset
made_as(enum ruleset kind)
{
	return kind == RULESET_ALLOW ? RULESET_NONE : kind;
}

/* Hands a prepared net to a box. */
static void
net_give(struct net *n, struct chan *c, uint32_t rid, const char *id,
    enum ruleset kind)
{
	struct msg_net_made	m = { .k = n->k };
	int			fd = fcntl(n->netns, F_DUPFD_CLOEXEC, 0);

	if (fd == -1) {
		log_warn("network %u: duplicate descriptor", n->k);
		net_drop(n);
		netd_sent(c, chan_error(c, rid, CODE_NO_SPACE_FOR_BOX,
		    "no descriptors left for networks"));
		return;
	}
	net_own(n, id, SEALED);
	n->kind = kind;
	pool.moved_ms = mono_ms();
	(void)str_copy(m.ruleset, ruleset_hash(RULESET_SEALED),
	    sizeof(m.ruleset));
	netd_sent(c, chan_send(c, MSG_NET_MADE, rid, &m, fd));
	/* beside what else is done for the box until NET_OPEN */
	if (kind == RULESET_ALLOW)
		proxy_start(n);
}

const char *
pool_no_way_out(const char *why)
{
	static char	buf[256];

	(void)snprintf(buf, sizeof(buf), "its way out: %s; `workbox doctor' "
	    "tells what the network egress needs", why);
	return buf;
}

/* ---- the maker's answers --------------------------------------------- */

/* A net is whole; or, step, it is not.  what: of the step. */
static void
made(struct net *n, const char *what, const char *step)
{
	struct wait	*w = next_waiting(n->kind);

	if (step == NULL && w != NULL) {
		net_give(n, w->chan, w->rid, w->id, w->kind);
	} else if (step == NULL && most_of(n->kind) != 0) {
		net_move(n, POOLED);
	} else if (step == NULL) {
		net_drop(n);		/* memory ran short meanwhile */
	} else {
		net_drop(n);
		pool.hold_ms = mono_ms() + RETRY_MS;
		if (w != NULL)
			netd_sent(w->chan, chan_error(w->chan, w->rid,
			    CODE_CREATE_FAILED, "%s%s", what, step));
	}
	if (w != NULL)
		wait_free(w);
}

static void
made_new(struct netns_made *m)
{
	struct net	*n = net_at(m->k);
	const char	*step = m->step;

	if (n == NULL || n->state != MAKING)
		fatalx("the maker answers what nobody asked");
	if (m->error == 0)
		step = net_prepare(n, m);
	else
		log_warnx("make network namespace: %s: %s", m->step,
		    strerror(m->error));
	if (m->error == 0 && step == NULL && n->kind == RULESET_EGRESS) {
		uplink_start(n, 0);
		if (n->uplink != UPLINK_ASKED)
			made(n, "", pool_no_way_out(UPLINK_UNASKED));
		return;
	}
	made(n, "network namespace: ", step);
}

/* Frees a net that was cut since: its box has none then. */
static void
adopted(struct net *n, const struct wait *w)
{
	struct msg_net_opened	 o = { .k = n->k };

	if (w->open && n->state != OPEN) {
		netd_sent(w->chan, chan_error(w->chan, w->rid, CODE_INTERNAL,
		    "network %u: it was cut while it was adopted", n->k));
		net_leave(n);
		return;
	}
	o.network = net_network(n);
	(void)str_copy(o.ruleset, ruleset_hash(w->open ? n->kind :
	    RULESET_SEALED), sizeof(o.ruleset));
	netd_sent(w->chan, chan_send(w->chan, MSG_NET_OPENED, w->rid, &o,
	    -1));
}

/* Its pool is worth filling from now on. */
static void
egress_used(enum ruleset kind)
{
	if (kind == RULESET_EGRESS)
		pool.most[kind] = pool.egress;
}

/* Takes w, or leaves it to the net until its uplink is there. */
static void
made_adopted(struct netns_made *m, struct wait **w_arg)
{
	struct wait		*w = *w_arg;
	const char		*step;
	struct net		*n;

	if (w->chan == NULL) {
		net_reserve(m->k, w->netns);
		return;
	}
	if (m->error != 0) {
		log_warnx("adopt network of %s: %s: %s", w->id, m->step,
		    strerror(m->error));
		net_reserve(m->k, w->netns);
		netd_sent(w->chan, chan_error(w->chan, w->rid,
		    m->error == EPERM ? CODE_BAD_REQUEST : CODE_INTERNAL,
		    "network namespace: %s", m->step));
		return;
	}
	if (net_find(w->id) != NULL || net_at(m->k) != NULL) {
		log_warnx("adopt network of %s: %u is in use", w->id, m->k);
		net_reserve(m->k, w->netns);
		netd_sent(w->chan, chan_error(w->chan, w->rid, CODE_EXISTS,
		    "network %u is in use", m->k));
		return;
	}
	n = net_new(m->k, w->open ? net_found(m, w->id) : w->kind);
	if ((step = net_adopt(n, m, w->id, w->open)) != NULL) {
		netd_sent(w->chan, chan_error(w->chan, w->rid,
		    CODE_INTERNAL, "network namespace: %s", step));
		return;
	}
	egress_used(n->kind);
	if (n->kind == RULESET_EGRESS)
		uplink_start(n, 1);
	if (n->kind == RULESET_ALLOW && w->open)
		proxy_start(n);
	if (n->uplink == UPLINK_ASKED || n->proxied != NULL) {
		fd_close(&w->netns);	/* the net has its own */
		n->adopter = steal_ptr(w_arg);
	} else
		adopted(n, w);
}

void
pool_lost(struct net *n)
{
	struct wait	*w = steal_ptr(&n->adopter);

	if (w == NULL)
		return;
	pool.nadopting--;
	netd_sent(w->chan, chan_error(w->chan, w->rid, CODE_INTERNAL,
	    "network %u: it was freed while it was adopted", n->k));
	wait_free(w);
}

/*
 * A box that was adopted has its network, whether that leads out or not.  1:
 * it was, and its adopter has its answer.
 */
static int
adopter_told(struct net *n)
{
	struct wait	*w = steal_ptr(&n->adopter);

	if (w == NULL)
		return 0;
	pool.nadopting--;
	adopted(n, w);
	wait_free(w);
	return 1;
}

void
pool_uplinked(struct net *n, const char *why)
{
	if (adopter_told(n))
		;
	else if (change_starts(n))
		change_uplinked(n, why == NULL ? NULL : pool_no_way_out(why));
	else if (n->state == MAKING)
		made(n, "", why == NULL ? NULL : pool_no_way_out(why));
	else if (why == NULL)
		log_info("network %u: has a way out again", n->k);
	pump();
	refill();
}

void
pool_proxied(struct net *n, enum wb_code code, const char *why)
{
	if (adopter_told(n))
		;
	else if (change_proxies(n))
		change_proxied(n, code, why);
	else if (n->opener != NULL)
		netd_opens(n, why);
	else if (why == NULL && n->state == OPEN)
		log_info("network %u: has a way out again", n->k);
	pump();
	refill();
}

static void
on_maker(evutil_socket_t fd, short what, void *arg)
{
	struct netns_made	 m;
	struct asked		*a;
	int			 r;

	(void)what;
	(void)arg;
	while ((r = netns_recv(fd, &m)) == 1) {
		if ((a = STAILQ_FIRST(&asked)) == NULL)
			fatalx("the maker answers what nobody asked");
		STAILQ_REMOVE_HEAD(&asked, next);
		pool.nasked--;
		if (a->change != NULL)
			change_made(a->change, &m);
		else if (a->proxied != NULL)
			proxy_made(a->proxied, &m);
		else if (a->adopt != NULL)
			made_adopted(&m, &a->adopt);
		else
			made_new(&m);
		if (a->adopt != NULL) {
			pool.nadopting -= a->adopt->chan != NULL;
			wait_free(a->adopt);
		}
		free(a);
		netns_close(&m);
		pump();
		refill();
	}
	if (r == -1)
		fatal("the maker is gone");
}

/* ---- requests that may have to wait ---------------------------------- */

void
pool_give(struct chan *c, uint32_t rid, const char *id, enum ruleset kind)
{
	struct net	*n = TAILQ_FIRST(&nets.pool[made_as(kind)]);
	struct wait	*w;

	egress_used(kind);
	if (n != NULL) {
		net_give(n, c, rid, id, kind);
		refill();
		return;
	}
	w = wait_new(c, rid, id, kind);
	STAILQ_INSERT_TAIL(&waiting[made_as(kind)], w, next);
	pool.nwaiting[made_as(kind)]++;
	pump();
}

void
pool_adopt(struct chan *c, uint32_t rid, const char *id, enum ruleset kind,
    int open, int netns)
{
	struct wait	*w = wait_new(c, rid, id, kind);

	w->open = open;
	w->netns = netns;
	STAILQ_INSERT_TAIL(&adopting, w, next);
	pool.nadopting++;
	pump();
}

void
pool_note(int netns)
{
	struct wait	*w = wait_new(NULL, 0, "", RULESET_SEALED);

	w->netns = netns;
	STAILQ_INSERT_TAIL(&adopting, w, next);	/* nobody waits for it */
	pump();
}

void
pool_change(struct change *c)
{
	STAILQ_INSERT_TAIL(&changing, c, next);
	pump();
}

void
pool_proxy(struct proxied *p)
{
	STAILQ_INSERT_TAIL(&proxying, p, next);
	pump();
}

unsigned int
pool_waiting(void)
{
	return pool.nwaiting[RULESET_NONE] + pool.nwaiting[RULESET_EGRESS] +
	    pool.nadopting;
}

void
pool_stir(int step)
{
	if (step)
		pool.moved_ms = mono_ms();
	refill();
}

void
pool_drain(void)
{
	struct net	*n;
	unsigned int	 ended = 0;

	while ((n = TAILQ_FIRST(&nets.pool[RULESET_EGRESS])) != NULL) {
		net_drop(n);
		ended++;
	}
	if (ended != 0)
		log_info("tasks wait for memory (PSI): prepared networks "
		    "egress that were ended: %u", ended);
	refill();			/* or when that is over */
}

void
pool_init(struct event_base *base, int maker_fd, unsigned int egress)
{
	struct event	*ev;
	int		 i;

	for (i = 0; i < RULESET_N; i++)
		STAILQ_INIT(&waiting[i]);
	pool.maker = maker_fd;
	pool.most[RULESET_NONE] = CONF_READY;
	pool.egress = egress;
	pool.timer = event_new(base, -1, 0, on_refill, NULL);
	ev = event_new(base, maker_fd, EV_READ | EV_PERSIST, on_maker, NULL);
	if (pool.timer == NULL || ev == NULL || event_add(ev, NULL) == -1)
		fatalx("event_add");
}

void
pool_go(void)
{
	pool.going = 1;
	/* adoptions come first: see NET_ADOPT in proto.def */
	pool.moved_ms = mono_ms();
	refill_at(STUCK_MS);
}

void
pool_stop(void)
{
	struct net	*n;
	unsigned int	 k;

	/* a ruleset ends with its network, which ends with us */
	for (k = 1; k <= NET_KMAX; k++)
		if ((n = net_at(k)) != NULL && (n->state == POOLED ||
		    n->state == MAKING || change_starts(n)))
			(void)uplink_end(n);	/* uplinkd sees to it */
}
