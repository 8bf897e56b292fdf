/*
 * nets.c: the network namespaces that netd holds.
 *
 * Theory of operation.  A net is known by its number k, a box's net also by
 * the box's id.  Its life:
 *
 *	MAKING	asked of the maker, has nothing but k
 *	POOLED	prepared and sealed, no box's yet
 *	SEALED	a box's; drops everything
 *	OPEN	a box's; NET_OPEN came
 *	CUT	a box's; drops everything again
 *	DYING	netd holds nothing of it any more; k is not free yet
 *
 *	MAKING -> POOLED	by the maker's answer, when nobody waits
 *	MAKING -> SEALED	ditto, for the NET_MAKE that waits longest
 *	POOLED -> SEALED	by NET_MAKE
 *	SEALED, CUT -> OPEN; SEALED, OPEN -> CUT	by NET_OPEN, NET_CUT
 *	any -> DYING		by NET_FREE, by a failure
 *	DYING -> (gone)		by the kernel's word that the netns is dead
 *
 * An adopted net has no number until the maker has found it, so it waits in
 * a queue of its own and enters as OPEN or CUT.  The maker answers in the
 * order of the questions, of which only a few are under way (descriptors on
 * their way are counted and bounded by the kernel); `asked' remembers what
 * each one was.
 *
 * A net is handed out, opened, cut or adopted only after the kernel's own
 * listing of its ruleset has been read and has the hash that it must have.
 *
 * The pool is filled while no box is on its way between NET_MAKE and
 * NET_OPEN, so that preparing never delays a create; a create that finds
 * the pool empty has one made at once.
 *
 * Must never: give a k twice; tell OK of what was not read back.
 */
#include <sys/queue.h>
#include <sys/random.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "ulid.h"
#include "xmalloc.h"

#define POOL		4	/* prepared nets */
#define REFILL_MS	4	/* after the last NET_OPEN: the proof follows */
#define STUCK_MS	250	/* a create that takes longer does not hinder */
#define RETRY_MS	2000	/* after a net could not be made */
#define BUCKETS		1024

enum net_state { MAKING, POOLED, SEALED, OPEN, CUT, DYING };

struct net {
	LIST_ENTRY(net)		 hash;	/* by id; SEALED, OPEN, CUT */
	TAILQ_ENTRY(net)	 pool;	/* POOLED */
	enum net_state		 state;
	unsigned int		 k;
	char			 id[ULID_LEN + 1];
	int			 netns;	/* owned */
	int			 ctl;	/* owned; NS_NFT, or NS_ROUTE where
					 * there is no netfilter */
};

/* A request that waits for the maker. */
struct wait {
	STAILQ_ENTRY(wait)	 next;
	struct chan		*chan;	/* borrowed: netd.c */
	uint32_t		 rid;
	char			 id[ULID_LEN + 1];
	int			 netns;	/* owned; NET_ADOPT, else -1 */
	int			 open;	/* NET_ADOPT */
};
STAILQ_HEAD(waits, wait);

/* A question that the maker has not answered yet. */
struct asked {
	STAILQ_ENTRY(asked)	 next;
	struct wait		*adopt;	/* owned; NULL: a new net */
};

LIST_HEAD(bucket, net);
TAILQ_HEAD(pool, net);
STAILQ_HEAD(questions, asked);

static struct bucket		 by_id[BUCKETS];
static struct net		*by_k[NET_KMAX + 1];	/* owned */
static struct pool		 pool = TAILQ_HEAD_INITIALIZER(pool);
static struct waits		 waiting = STAILQ_HEAD_INITIALIZER(waiting);
static struct waits		 adopting = STAILQ_HEAD_INITIALIZER(adopting);
static struct questions		 asked = STAILQ_HEAD_INITIALIZER(asked);

static struct {
	int		 maker, watch, home;	/* owned by netd.c */
	struct event	*refill;		/* owned */
	int		 going;			/* DAEMON_GO came */
	int		 absent;		/* no netfilter */
	unsigned int	 room;			/* boxes at most */
	unsigned int	 boxes;			/* SEALED, OPEN, CUT */
	unsigned int	 coming;		/* SEALED */
	unsigned int	 pooled;
	unsigned int	 making;
	unsigned int	 nwaiting;		/* NET_MAKE */
	unsigned int	 nadopting;		/* asked or not */
	unsigned int	 nasked;
	unsigned int	 next_k;
	uint64_t	 hold_ms;		/* pool: not before */
	uint64_t	 moved_ms;		/* a create's last step */
} ns;

/* ---- the table --------------------------------------------------------- */

/* FNV-1a: ids are ours, nobody can choose them to collide. */
static size_t
bucket(const char *id)
{
	uint32_t	h = 2166136261U;

	for (; *id != '\0'; id++)
		h = (h ^ (uint8_t)*id) * 16777619U;
	return h % BUCKETS;
}

static struct net *
net_find(const char *id)
{
	struct net	*n;

	LIST_FOREACH(n, &by_id[bucket(id)], hash)
		if (strcmp(n->id, id) == 0)
			return n;
	return NULL;
}

static int
is_box(const struct net *n)
{
	return n->state == SEALED || n->state == OPEN || n->state == CUT;
}

/* A box's net by number, or NULL. */
static struct net *
net_by_k(uint64_t k)
{
	struct net	*n = k <= NET_KMAX ? by_k[k] : NULL;

	return n != NULL && is_box(n) ? n : NULL;
}

/* The next number that nobody holds; 0: none.  Least recently used. */
static unsigned int
k_take(void)
{
	unsigned int	i, k;

	for (i = 0; i < NET_KMAX; i++) {
		k = ns.next_k;
		ns.next_k = k == NET_KMAX ? 1 : k + 1;
		if (by_k[k] == NULL)
			return k;
	}
	return 0;
}

static struct net *
net_new(unsigned int k)
{
	struct net	*n = xcalloc(1, sizeof(*n));

	n->state = MAKING;
	n->k = k;
	n->netns = n->ctl = -1;
	by_k[k] = n;
	ns.making++;
	return n;
}

/* The only place where a state changes. */
static void
net_move(struct net *n, enum net_state to)
{
	enum net_state	from = n->state;
	int		was = is_box(n);

	n->state = to;
	ns.making -= from == MAKING;
	ns.pooled -= from == POOLED;
	ns.coming -= from == SEALED;
	if (from == POOLED)
		TAILQ_REMOVE(&pool, n, pool);
	ns.pooled += to == POOLED;
	ns.coming += to == SEALED;
	if (to == POOLED)
		TAILQ_INSERT_TAIL(&pool, n, pool);
	if (!was && is_box(n)) {
		LIST_INSERT_HEAD(&by_id[bucket(n->id)], n, hash);
		ns.boxes++;
	} else if (was && !is_box(n)) {
		LIST_REMOVE(n, hash);
		ns.boxes--;
	}
}

/* k is free again; the netns is gone, or never was. */
static void
net_gone(struct net *n)
{
	by_k[n->k] = NULL;
	free(n);
}

/* Lets go of it.  named: the kernel will tell when it is dead. */
static void
net_drop(struct net *n, int named)
{
	net_move(n, DYING);
	fd_close(&n->ctl);
	fd_close(&n->netns);
	if (!named)
		net_gone(n);
}

/* ---- preparing ------------------------------------------------------------ */

static const char *
net_fail(const char *step)
{
	log_warn("network namespace: %s", step);
	return step;
}

/*
 * Reads what the kernel has and holds it against what it must have.  1: it
 * is that; 0: it is not; -1: errno.  Without netfilter the state of lo, the
 * only way there is, stands in for the ruleset.
 */
static int
net_whole(const struct net *n, enum ruleset which,
    char ret_hash[NET_HASHLEN + 1])
{
	int	alone, up;

	if (ruleset_read(n->ctl, ret_hash) == -1)
		return -1;
	if (strcmp(ret_hash, ruleset_hash(which)) != 0) {
		log_warnx("network %u: ruleset is %s, not %s", n->k, ret_hash,
		    ruleset_hash(which));
		return 0;
	}
	if (!ns.absent)
		return 1;
	if ((alone = link_alone(n->ctl, &up)) == -1)
		return -1;
	if (alone && up == (which != RULESET_SEALED))
		return 1;
	log_warnx("network %u: lo is %s%s", n->k, up ? "up" : "down",
	    alone ? "" : " and not alone");
	return 0;
}

static const char *
net_verify(const struct net *n, enum ruleset which)
{
	char	hash[NET_HASHLEN + 1];
	int	r = net_whole(n, which, hash);

	if (r == -1)
		return net_fail("read ruleset");
	return r == 1 ? NULL : "verify ruleset";
}

/* anew: whatever was there; else what net_verify() has seen was there. */
static const char *
net_set(const struct net *n, enum ruleset which, int anew)
{
	int	r;

	if (ns.absent)
		r = link_set(n->ctl, which != RULESET_SEALED);
	else if (anew)
		r = ruleset_make(n->ctl, which);
	else
		r = ruleset_switch(n->ctl, which);
	return r == -1 ? net_fail("set ruleset") : net_verify(n, which);
}

static unsigned int
sockets_wanted(void)
{
	return 1U << NS_ROUTE | (ns.absent ? 0U : 1U << NS_NFT);
}

/*
 * From the maker's descriptors to a net whose k the kernel knows, which is
 * whole but for its ruleset.  NULL, or the step that failed; *ret_named as
 * for net_drop().
 */
static const char *
net_take(struct net *n, struct netns_made *m, int *ret_named)
{
	*ret_named = 0;
	n->netns = steal_fd(&m->netns);
	n->ctl = steal_fd(&m->sock[ns.absent ? NS_ROUTE : NS_NFT]);
	if (link_name(ns.home, n->k, n->netns) == -1)
		return net_fail("name it");
	*ret_named = 1;
	if (ns.absent)
		return NULL;
	if (link_set(m->sock[NS_ROUTE], 1) == -1)
		return net_fail("raise lo");
	if (link_routes(m->sock[NS_ROUTE]) == -1)
		return net_fail("add addresses and routes");
	return NULL;
}

/* Sealed before lo is raised: there is no first moment. */
static const char *
net_prepare(struct net *n, struct netns_made *m, int *ret_named)
{
	const char	*step;

	if (!ns.absent && ruleset_make(m->sock[NS_NFT], RULESET_SEALED) == -1)
		return net_fail("make ruleset");
	if ((step = net_take(n, m, ret_named)) != NULL)
		return step;
	return net_verify(n, RULESET_SEALED);
}

/* ---- asking the maker ------------------------------------------------------ */

static void
wait_free(struct wait *w)
{
	fd_close(&w->netns);
	free(w);
}

static struct wait *
wait_new(struct chan *c, uint32_t rid, const char *id)
{
	struct wait	*w = xcalloc(1, sizeof(*w));

	w->chan = c;
	w->rid = rid;
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

static void
maker_ask(struct wait *adopt, unsigned int k)
{
	struct asked	*a = xcalloc(1, sizeof(*a));

	if (netns_ask(ns.maker, k, sockets_wanted(),
	    adopt != NULL ? adopt->netns : -1) == -1)
		fatal("ask the maker");	/* NETNS_INFLIGHT leaves room */
	a->adopt = adopt;
	STAILQ_INSERT_TAIL(&asked, a, next);
	ns.nasked++;
}

static int
make_one(void)
{
	unsigned int	k = k_take();

	if (k == 0)
		return -1;
	(void)net_new(k);
	maker_ask(NULL, k);
	return 0;
}

/* Asks for all that is waited for, as far as questions may be under way. */
static void
pump(void)
{
	struct wait	*w;

	while (ns.nasked < NETNS_INFLIGHT &&
	    (w = wait_take(&adopting)) != NULL)
		maker_ask(w, 0);
	while (ns.nasked < NETNS_INFLIGHT && ns.making < ns.nwaiting) {
		if (make_one() == 0)
			continue;
		w = wait_take(&waiting);
		ns.nwaiting--;
		netd_sent(w->chan, chan_error(w->chan, w->rid,
		    CODE_NO_SPACE_FOR_BOX, "no number left for a network"));
		wait_free(w);
	}
}

static void
refill_at(uint64_t ms)
{
	struct timeval	tv = { (time_t)(ms / 1000),
			    (suseconds_t)(ms % 1000 * 1000) };

	(void)event_add(ns.refill, &tv);	/* memory: next time */
}

/* One net at a time, when nothing else is to do; its answer leads here. */
static void
refill(void)
{
	uint64_t	now = mono_ms();

	if (!ns.going || ns.nwaiting != 0 || ns.nadopting != 0 ||
	    ns.making != 0 || ns.pooled >= POOL)
		return;
	if (now < ns.hold_ms)
		refill_at(ns.hold_ms - now);
	else if (ns.coming != 0 && now < ns.moved_ms + STUCK_MS)
		refill_at(ns.moved_ms + STUCK_MS - now);
	else if (now < ns.moved_ms + REFILL_MS)
		refill_at(ns.moved_ms + REFILL_MS - now);
	else if (make_one() == -1)
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

/* Hands a prepared net to a box. */
static void
net_give(struct net *n, struct chan *c, uint32_t rid, const char *id)
{
	struct msg_net_made	m = { .k = n->k };
	int			fd = fcntl(n->netns, F_DUPFD_CLOEXEC, 0);

	if (fd == -1) {
		log_warn("network %u: duplicate descriptor", n->k);
		net_drop(n, 1);
		netd_sent(c, chan_error(c, rid, CODE_NO_SPACE_FOR_BOX,
		    "no descriptors left for networks"));
		return;
	}
	(void)str_copy(n->id, id, sizeof(n->id));	/* was bounded */
	net_move(n, SEALED);
	ns.moved_ms = mono_ms();
	(void)str_copy(m.ruleset, ruleset_hash(RULESET_SEALED),
	    sizeof(m.ruleset));
	netd_sent(c, chan_send(c, MSG_NET_MADE, rid, &m, fd));
}

/* ---- the maker's answers ----------------------------------------------------- */

static void
made_new(struct netns_made *m)
{
	struct net	*n = m->k <= NET_KMAX ? by_k[m->k] : NULL;
	struct wait	*w = wait_take(&waiting);
	const char	*step = m->step;
	int		 named = 0;

	if (n == NULL || n->state != MAKING)
		fatalx("the maker answers what nobody asked");
	ns.nwaiting -= w != NULL;
	if (m->error == 0)
		step = net_prepare(n, m, &named);
	else
		log_warnx("make network namespace: %s: %s", m->step,
		    strerror(m->error));
	if (m->error == 0 && step == NULL && w != NULL) {
		net_give(n, w->chan, w->rid, w->id);
	} else if (m->error == 0 && step == NULL) {
		net_move(n, POOLED);
	} else {
		net_drop(n, named);
		ns.hold_ms = mono_ms() + RETRY_MS;
		if (w != NULL)
			netd_sent(w->chan, chan_error(w->chan, w->rid,
			    CODE_CREATE_FAILED, "network namespace: %s",
			    step));
	}
	if (w != NULL)
		wait_free(w);
}

/*
 * What is there already is left alone when it is what must be there, so that
 * connections within the box live on; else it is made anew.
 */
static const char *
adopt_ruleset(const struct net *n, enum ruleset which)
{
	char	hash[NET_HASHLEN + 1];
	int	r = net_whole(n, which, hash);

	if (r == -1)
		return net_fail("read ruleset");
	if (r == 1)
		return NULL;
	log_info("network %u: made anew", n->k);
	return net_set(n, which, 1);
}

static void
made_adopted(struct netns_made *m, struct wait *w)
{
	struct msg_net_opened	 o = { .k = m->k };
	enum ruleset		 which = w->open ? RULESET_NONE :
				    RULESET_SEALED;
	const char		*step;
	struct net		*n;
	int			 named = 0;

	if (m->error != 0) {
		log_warnx("adopt network of %s: %s: %s", w->id, m->step,
		    strerror(m->error));
		netd_sent(w->chan, chan_error(w->chan, w->rid,
		    m->error == EPERM ? CODE_BAD_REQUEST : CODE_INTERNAL,
		    "network namespace: %s", m->step));
		return;
	}
	if (net_find(w->id) != NULL || by_k[m->k] != NULL) {
		log_warnx("adopt network of %s: %u is in use", w->id, m->k);
		netd_sent(w->chan, chan_error(w->chan, w->rid, CODE_EXISTS,
		    "network %u is in use", m->k));
		return;
	}
	n = net_new(m->k);
	if ((step = net_take(n, m, &named)) != NULL ||
	    (step = adopt_ruleset(n, which)) != NULL) {
		net_drop(n, named);
		netd_sent(w->chan, chan_error(w->chan, w->rid,
		    CODE_INTERNAL, "network namespace: %s", step));
		return;
	}
	(void)str_copy(n->id, w->id, sizeof(n->id));
	net_move(n, w->open ? OPEN : CUT);
	(void)str_copy(o.ruleset, ruleset_hash(which), sizeof(o.ruleset));
	netd_sent(w->chan, chan_send(w->chan, MSG_NET_OPENED, w->rid, &o,
	    -1));
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
		ns.nasked--;
		if (a->adopt != NULL) {
			ns.nadopting--;
			made_adopted(&m, a->adopt);
			wait_free(a->adopt);
		} else
			made_new(&m);
		free(a);
		netns_close(&m);
		pump();
		refill();
	}
	if (r == -1)
		fatal("the maker is gone");
}

/* ---- deaths ----------------------------------------------------------------- */

static void
on_dead(unsigned int k)
{
	struct net	*n = by_k[k];

	if (n != NULL && n->state == DYING)
		net_gone(n);
}

static uint8_t	alive[(NET_KMAX + 8) / 8];

static void
on_alive(unsigned int k)
{
	alive[k / 8] |= (uint8_t)(1U << k % 8);
}

/* Announcements were lost: asks who is left. */
static void
count_dead(void)
{
	unsigned int	k;

	memset(alive, 0, sizeof(alive));
	if (link_alive(ns.home, on_alive) == -1) {
		log_warn("list network namespaces");
		return;		/* numbers stay taken: the safe side */
	}
	for (k = 1; k <= NET_KMAX; k++)
		if (by_k[k] != NULL && !(alive[k / 8] & 1U << k % 8))
			on_dead(k);
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	(void)arg;
	if (link_deaths(fd, on_dead) == 0)
		return;
	if (errno != ENOBUFS)
		fatal("watch network namespaces");
	count_dead();
}

/* ---- requests ------------------------------------------------------------------ */

void
netd_on_net_make(struct chan *c, const struct msg *m)
{
	const struct msg_net_make	*b = &m->body.net_make;
	struct wait			*w;
	struct net			*n;

	if (b->network != NETWORK_NONE) {
		netd_sent(c, chan_error(c, m->rid, CODE_NETWORK_UNSUPPORTED,
		    "network %s is not there yet: use none",
		    network_name((unsigned int)b->network)));
	} else if (net_find(b->id) != NULL) {
		netd_sent(c, chan_error(c, m->rid, CODE_EXISTS,
		    "the box has a network"));
	} else if (ns.boxes + ns.nwaiting + ns.nadopting >= ns.room) {
		netd_sent(c, chan_error(c, m->rid, CODE_NO_SPACE_FOR_BOX,
		    "%u networks are the most", ns.room));
	} else if ((n = TAILQ_FIRST(&pool)) != NULL) {
		net_give(n, c, m->rid, b->id);
		refill();
	} else {
		w = wait_new(c, m->rid, b->id);
		STAILQ_INSERT_TAIL(&waiting, w, next);
		ns.nwaiting++;
		pump();
	}
}

/* Answers NET_OPEN and NET_CUT after the change, or with what failed. */
static const char *
net_change(struct chan *c, const struct msg *m, uint64_t k,
    enum ruleset which, enum net_state to)
{
	struct net	*n = net_by_k(k);
	const char	*step;

	if (n == NULL) {
		netd_sent(c, chan_error(c, m->rid, CODE_NOT_FOUND,
		    "network %u is nobody's", (unsigned int)k));
		return "";
	}
	if ((step = net_set(n, which, 0)) != NULL) {
		netd_sent(c, chan_error(c, m->rid, CODE_INTERNAL,
		    "network %u: %s", n->k, step));
		return step;
	}
	net_move(n, to);
	ns.moved_ms = mono_ms();
	refill();
	return NULL;
}

void
netd_on_net_open(struct chan *c, const struct msg *m)
{
	struct msg_net_opened	o = { .k = m->body.net_open.k };

	if (net_change(c, m, o.k, RULESET_NONE, OPEN) != NULL)
		return;
	(void)str_copy(o.ruleset, ruleset_hash(RULESET_NONE),
	    sizeof(o.ruleset));
	netd_sent(c, chan_send(c, MSG_NET_OPENED, m->rid, &o, -1));
}

void
netd_on_net_cut(struct chan *c, const struct msg *m)
{
	if (net_change(c, m, m->body.net_cut.k, RULESET_SEALED, CUT) == NULL)
		netd_sent(c, chan_ok(c, m->rid));
}

/* Said twice, or of what never was, it is as done as it can be. */
void
netd_on_net_free(struct chan *c, const struct msg *m)
{
	struct net	*n = net_by_k(m->body.net_free.k);

	if (n != NULL)
		net_drop(n, 1);
	netd_sent(c, chan_ok(c, m->rid));
	refill();
}

void
netd_on_net_adopt(struct chan *c, struct msg *m)
{
	const struct msg_net_adopt	*b = &m->body.net_adopt;
	struct wait			*w;

	if (b->network != NETWORK_NONE) {
		netd_sent(c, chan_error(c, m->rid, CODE_NETWORK_UNSUPPORTED,
		    "network %s is not there yet",
		    network_name((unsigned int)b->network)));
		return;
	}
	if (ns.boxes + ns.nadopting >= ns.room) {
		netd_sent(c, chan_error(c, m->rid, CODE_NO_SPACE_FOR_BOX,
		    "%u networks are the most", ns.room));
		return;
	}
	w = wait_new(c, m->rid, b->id);
	w->open = b->open != 0;
	w->netns = steal_fd(&m->fd);
	STAILQ_INSERT_TAIL(&adopting, w, next);
	ns.nadopting++;
	pump();
}

void
netd_on_net_status(struct chan *c, const struct msg *m)
{
	struct msg_net_status_is	 s = { 0 };
	struct net			*n;
	int				 r;

	if ((n = net_find(m->body.net_status.id)) == NULL) {
		netd_sent(c, chan_error(c, m->rid, CODE_NOT_FOUND,
		    "the box has no network"));
		return;
	}
	r = net_whole(n, n->state == OPEN ? RULESET_NONE : RULESET_SEALED,
	    s.ruleset);
	if (r == -1) {
		log_warn("network %u: read ruleset", n->k);
		netd_sent(c, chan_error(c, m->rid, CODE_INTERNAL,
		    "read ruleset: %s", strerror(errno)));
		return;
	}
	s.state = n->state == OPEN ? 1 : n->state == CUT ? 2 : 0;
	s.whole = r == 1;
	netd_sent(c, chan_send(c, MSG_NET_STATUS_IS, m->rid, &s, -1));
}

/* ---- start --------------------------------------------------------------------- */

static void
watch_fd(struct event_base *base, int fd, event_callback_fn cb)
{
	struct event	*ev = event_new(base, fd, EV_READ | EV_PERSIST, cb,
			    NULL);

	if (ev == NULL || event_add(ev, NULL) == -1)
		fatalx("event_add");
}

void
nets_init(struct event_base *base, const struct nets_fds *fds, int absent,
    unsigned int room)
{
	uint16_t	r;

	ns.maker = fds->maker;
	ns.watch = fds->watch;
	ns.home = fds->home;
	ns.absent = absent;
	ns.room = room;
	/* a start of its own each time: no k comes back soon after a restart */
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		fatal("getrandom");
	ns.next_k = r == 0 ? 1 : r;
	if ((ns.refill = event_new(base, -1, 0, on_refill, NULL)) == NULL)
		fatalx("event_new");
	watch_fd(base, ns.maker, on_maker);
	watch_fd(base, ns.watch, on_watch);
}

void
nets_go(void)
{
	ns.going = 1;
	/* adoptions come first: see NET_ADOPT in proto.def */
	ns.moved_ms = mono_ms();
	refill_at(STUCK_MS);
}
