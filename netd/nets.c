/*
 * nets.c: the network namespaces that netd holds, and what the kernel has of
 * them.
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
 *	POOLED -> SEALED	by NET_MAKE; one of `none' serves `allowlist' as
 *			well, and gets what it lacks before it opens
 *	SEALED, CUT -> OPEN; SEALED, OPEN -> CUT	by NET_OPEN, NET_CUT
 *	SEALED, OPEN -> CUT	by a change that failed
 *	any -> DYING		by NET_FREE, by a failure
 *	DYING -> (gone)		by the kernel's word that the netns is dead
 *
 * An adopted net has no number until the maker has found it, and enters as
 * OPEN or CUT, or, where it is refused, as DYING.  What kind it was made as is
 * known, but it may have become another since (change.c); what kind it is of
 * is read from the kernel.
 *
 * What could not be made what it must be is sealed, and is CUT.  When the
 * kernel refuses even that it is CUT and `unsealed', and tried again every
 * second until it is sealed or freed; so is what could not be adopted, which
 * nobody will free: an orphan is dropped when it is sealed.
 *
 * A net is handed out, opened, cut or adopted only after the kernel's own
 * listing of its ruleset has been read and has the hash that it must have.
 *
 * Must never: give a k twice; tell OK of what was not read back; lose sight
 * of what may be open.
 */
#include <sys/random.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define BUCKETS		1024
#define AGAIN_S		1		/* until what failed is tried again */

LIST_HEAD(bucket, net);

struct nets			 nets;
static struct bucket		 by_id[BUCKETS];
static struct net		*by_k[NET_KMAX + 1];	/* owned */
static unsigned int		 next_k;
static struct event		*again;			/* owned */
static int			 uncounted;	/* count_dead() is due */

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

struct net *
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

struct net *
net_by_k(uint64_t k)
{
	struct net	*n = k <= NET_KMAX ? by_k[k] : NULL;

	return n != NULL && is_box(n) ? n : NULL;
}

struct net *
net_at(unsigned int k)
{
	return k <= NET_KMAX ? by_k[k] : NULL;
}

/* The next number that nobody holds; 0: none.  Least recently used. */
static unsigned int
k_take(void)
{
	unsigned int	i, k;

	for (i = 0; i < NET_KMAX; i++) {
		k = next_k;
		next_k = k == NET_KMAX ? 1 : k + 1;
		if (by_k[k] == NULL)
			return k;
	}
	return 0;
}

struct net *
net_new(unsigned int k, enum ruleset kind)
{
	struct net	*n;

	if (k == 0 && (k = k_take()) == 0)
		return NULL;
	n = xcalloc(1, sizeof(*n));
	n->state = MAKING;
	n->kind = kind;
	n->k = k;
	n->netns = n->ctl = n->route = -1;
	by_k[k] = n;
	nets.making[kind]++;
	return n;
}

void
net_move(struct net *n, enum net_state to)
{
	enum net_state	from = n->state;
	int		was = is_box(n);

	n->state = to;
	nets.making[n->kind] -= from == MAKING;
	nets.pooled[n->kind] -= from == POOLED;
	nets.sealed -= from == SEALED;
	if (from == POOLED)
		TAILQ_REMOVE(&nets.pool[n->kind], n, pool);
	nets.pooled[n->kind] += to == POOLED;
	nets.sealed += to == SEALED;
	if (to == POOLED)
		TAILQ_INSERT_TAIL(&nets.pool[n->kind], n, pool);
	if (!was && is_box(n)) {
		LIST_INSERT_HEAD(&by_id[bucket(n->id)], n, hash);
		nets.boxes++;
	} else if (was && !is_box(n)) {
		LIST_REMOVE(n, hash);
		nets.boxes--;
	}
	if (to != OPEN)
		change_lost(n);
	if (to == CUT || to == DYING) {
		netd_open_lost(n);
		proxy_end(n);
	}
}

void
net_own(struct net *n, const char *id, enum net_state to)
{
	(void)str_copy(n->id, id, sizeof(n->id));	/* was bounded */
	net_move(n, to);
}

/* k is free again; the netns is gone, or never was. */
static void
net_gone(struct net *n)
{
	by_k[n->k] = NULL;
	free(n);
}

void
net_drop(struct net *n)
{
	pool_lost(n);
	(void)uplink_end(n);	/* its k is not free before the netns is */
	net_move(n, DYING);
	denials_free(n->denials);
	n->denials = NULL;
	fd_close(&n->ctl);
	fd_close(&n->route);
	fd_close(&n->netns);
	if (!n->named)
		net_gone(n);
}

/* Nothing of it is held; what the kernel was told of will be announced. */
void
net_reserve(unsigned int k, int netns)
{
	struct net	*n;

	if (k == 0 || net_at(k) != NULL)
		return;
	n = net_new(k, RULESET_SEALED);
	if (link_name(nets.home, k, netns) == 0)
		n->named = 1;
	else
		log_warn("network %u: name it", k);
	net_drop(n);
}

uint64_t
net_network(const struct net *n)
{
	return n->kind == RULESET_EGRESS ? NETWORK_EGRESS :
	    n->kind == RULESET_ALLOW ? NETWORK_ALLOWLIST : NETWORK_NONE;
}

int
net_uplinked(const struct net *n)
{
	if (n->kind == RULESET_ALLOW)
		return proxy_up(n);
	return n->kind != RULESET_EGRESS || n->uplink == UPLINK_UP;
}

/* ---- changing and reading back --------------------------------------- */

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
int
net_whole(const struct net *n, enum ruleset which,
    char ret_hash[NET_HASHLEN + 1])
{
	struct ruleset_seen	seen;
	int			alone, up;

	if (ruleset_read(n->ctl, &seen) == -1)
		return -1;
	memcpy(ret_hash, seen.hash, sizeof(seen.hash));
	if (!ruleset_is(&seen, which)) {
		if (strcmp(seen.hash, ruleset_hash(which)) == 0)
			log_warnx("network %u: its sets hold other addresses "
			    "than are sealed now", n->k);
		else
			log_warnx("network %u: ruleset is %s, not %s", n->k,
			    seen.hash, ruleset_hash(which));
		return 0;
	}
	if (!nets.absent)
		return 1;
	if ((alone = link_alone(n->ctl, &up)) == -1)
		return -1;
	if (alone && up == (which != RULESET_SEALED))
		return 1;
	log_warnx("network %u: lo is %s%s", n->k, up ? "up" : "down",
	    alone ? "" : " and not alone");
	return 0;
}

const char *
net_verify(const struct net *n, enum ruleset which)
{
	char	hash[NET_HASHLEN + 1];
	int	r = net_whole(n, which, hash);

	if (r == -1)
		return net_fail("read ruleset");
	return r == 1 ? NULL : "verify ruleset";
}

/*
 * Until it is opened for the first time none but the runner is there to send,
 * and ruleset_switch() may take the short way; as it may where chains stay,
 * which those of `none' and of what is sealed do.
 */
static int
is_guarded(const struct net *n, enum ruleset which)
{
	return n->state != SEALED && (n->kind != RULESET_NONE ||
	    (which != RULESET_NONE && which != RULESET_SEALED));
}

/* anew: whatever was there; else what net_verify() has seen was there. */
static const char *
net_change(const struct net *n, enum ruleset which, int anew)
{
	const char	*step;
	int		 r;

	denials_count(n->denials);
	if (nets.absent)
		r = link_set(n->ctl, which != RULESET_SEALED);
	else if (anew || is_guarded(n, which))
		r = ruleset_renew(n->ctl, which);
	else
		r = ruleset_switch(n->ctl, n->kind, which);
	if (r == -1)
		return net_fail("set ruleset");
	denials_anew(n->denials);
	step = net_verify(n, which);
	if (step == NULL || !anew || nets.absent)
		return step;
	/* then there is more than ours */
	if (ruleset_make(n->ctl, which) == -1)
		return net_fail("set ruleset");
	return net_verify(n, which);
}

/* ---- sealing --------------------------------------------------------- */

/* Drops everything; 0, or -1 when it may be open. */
static int
net_seal_now(struct net *n)
{
	n->unsealed = net_change(n, RULESET_SEALED, 1) != NULL;
	return n->unsealed ? -1 : 0;
}

static void
look_again(void)
{
	const struct timeval	tv = { AGAIN_S, 0 };

	if (!event_pending(again, EV_TIMEOUT, NULL) &&
	    event_add(again, &tv) == -1)
		fatalx("event_add");
}

/* A box's net: drops everything, or will as soon as the kernel lets it. */
static void
net_shut(struct net *n)
{
	net_move(n, CUT);
	if (net_seal_now(n) == 0)
		return;
	log_errorx("network %u: cannot be sealed", n->k);
	look_again();
}

void
net_leave(struct net *n)
{
	(void)uplink_end(n);
	n->orphan = n->unsealed;
	if (!n->orphan)
		net_drop(n);
}

static void	count_dead(void);

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct net	*n;
	unsigned int	 k;

	(void)fd;
	(void)what;
	(void)arg;
	if (uncounted)
		count_dead();
	for (k = 1; k <= NET_KMAX; k++) {
		if ((n = net_by_k(k)) == NULL || !n->unsealed)
			continue;
		if (net_seal_now(n) == -1) {
			look_again();
			continue;
		}
		log_info("network %u: sealed", n->k);
		if (n->orphan)
			net_drop(n);
	}
}

/*
 * Cutting must work most of all where things are not as they should be, so a
 * change that fails is made anew; a network that cannot be changed is sealed,
 * whatever it was before.
 */
const char *
net_set(struct net *n, enum ruleset which)
{
	const char	*step = NULL;

	if (net_change(n, which, 0) != NULL) {
		log_info("network %u: made anew", n->k);
		step = net_change(n, which, 1);
	}
	if (step != NULL)
		net_shut(n);
	else
		n->unsealed = n->orphan = 0;
	return step;
}

/* Made anew in any case: what one kind has the other has not. */
const char *
net_become(struct net *n, enum ruleset kind)
{
	const char	*step = net_change(n, kind, 1);

	if (step == NULL)
		n->kind = kind;
	else
		(void)net_set(n, n->kind);	/* or it is sealed */
	return step;
}

/* ---- taking ---------------------------------------------------------- */

/*
 * From the maker's descriptors to a net whose k the kernel knows, which is
 * whole but for its ruleset.  NULL, or the step that failed.
 */
static const char *
net_take(struct net *n, struct netns_made *m)
{
	n->netns = steal_fd(&m->netns);
	n->ctl = steal_fd(&m->sock[nets.absent ? NS_ROUTE : NS_NFT]);
	if (link_name(nets.home, n->k, n->netns) == -1)
		return net_fail("name it");
	n->named = 1;
	if (nets.absent)
		return NULL;
	if (n->kind != RULESET_NONE && m->sock[NS_LOG] != -1 &&
	    (n->denials = denials_new(n, steal_fd(&m->sock[NS_LOG]))) == NULL)
		return net_fail("bind the log");
	if (link_set(m->sock[NS_ROUTE], 1) == -1)
		return net_fail("raise lo");
	n->route = steal_fd(&m->sock[NS_ROUTE]);
	if (n->kind == RULESET_EGRESS)	/* its uplink brings others */
		return NULL;
	if (link_routes(n->route) == -1 || (n->kind == RULESET_ALLOW &&
	    link_relay(n->route, 1) == -1))
		return net_fail("add addresses and routes");
	fd_close(&n->route);
	return NULL;
}

const char *
net_furnish(struct net *n, struct netns_made *m)
{
	if (n->kind != RULESET_ALLOW || n->denials != NULL)
		return NULL;
	if (link_relay(m->sock[NS_ROUTE], 1) == -1)
		return net_fail("add addresses and routes");
	n->denials = denials_new(n, steal_fd(&m->sock[NS_LOG]));
	return n->denials == NULL ? net_fail("bind the log") : NULL;
}

/* Sealed before lo is raised: there is no first moment. */
const char *
net_prepare(struct net *n, struct netns_made *m)
{
	const char	*step;

	if (!nets.absent && ruleset_make(m->sock[NS_NFT], RULESET_SEALED) == -1)
		return net_fail("make ruleset");
	if ((step = net_take(n, m)) != NULL)
		return step;
	return net_verify(n, RULESET_SEALED);
}

static int
has_tap(int route)
{
	struct tap	t;

	return link_tap(route, &t) == 0 && t.index != 0;
}

/*
 * The ruleset tells, whatever addresses are in it.  One that tells nothing,
 * for it is sealed, or was meddled with, is of a net that leads out if it has
 * something by which to; else it is the kind that holds less.
 */
enum ruleset
net_found(const struct netns_made *m, const char *id)
{
	struct ruleset_seen	seen;
	enum ruleset		kind;

	if (nets.absent)
		return RULESET_NONE;
	if (ruleset_read(m->sock[NS_NFT], &seen) == -1)
		log_warn("adopt network of %s: read ruleset", id);
	else if (strcmp(seen.hash, ruleset_hash(RULESET_NONE)) == 0)
		return RULESET_NONE;
	else if (strcmp(seen.hash, ruleset_hash(RULESET_EGRESS)) == 0)
		return RULESET_EGRESS;
	else if (strcmp(seen.hash, ruleset_hash(RULESET_ALLOW)) == 0)
		return RULESET_ALLOW;
	kind = has_tap(m->sock[NS_ROUTE]) ? RULESET_EGRESS : RULESET_NONE;
	log_warnx("adopt network of %s: its ruleset is of no kind: as it has "
	    "%s tap it is taken for %s", id, kind == RULESET_EGRESS ? "a" :
	    "no", kind == RULESET_EGRESS ? "egress" : "none");
	return kind;
}

/*
 * What is there already is left alone when it is what must be there, so that
 * connections within the box live on; else it is made anew.
 */
static const char *
net_resume(struct net *n, struct netns_made *m, enum ruleset which)
{
	char		 hash[NET_HASHLEN + 1];
	const char	*step;
	int		 r;

	if ((step = net_take(n, m)) != NULL)
		return step;
	if ((r = net_whole(n, which, hash)) == -1)
		return net_fail("read ruleset");
	if (r == 1)
		return NULL;
	log_info("network %u: made anew", n->k);
	return net_change(n, which, 1);
}

/*
 * The box lives on when this fails, so its network, which was open maybe, is
 * not let go of before it is sealed.
 */
const char *
net_adopt(struct net *n, struct netns_made *m, const char *id, int open)
{
	const char	*step = net_resume(n, m, open ? n->kind :
			    RULESET_SEALED);

	if (step == NULL) {
		net_own(n, id, open ? OPEN : CUT);
		return NULL;
	}
	if (net_seal_now(n) == 0) {
		net_drop(n);
		return step;
	}
	log_errorx("network %u: cannot be sealed", n->k);
	n->orphan = 1;
	net_own(n, id, CUT);
	look_again();
	return step;
}

/* ---- the host's addresses -------------------------------------------- */

/* privd and apid learn from NET_STATUS that it is cut, or not whole. */
void
net_seal(struct net *n, const char *why)
{
	log_warnx("network %u: sealed: %s", n->k, why);
	net_shut(n);
}

static void
net_anew(struct net *n)
{
	const char	*step;

	log_info("network %u: made anew", n->k);
	if ((step = net_change(n, n->kind, 1)) != NULL)
		net_seal(n, step);
}

static int
is_egress(const struct net *n)
{
	return n->state == OPEN && n->kind == RULESET_EGRESS;
}

/* k of the next open network of `egress' from k on, or 0. */
static unsigned int
next_egress(unsigned int k)
{
	for (; k <= NET_KMAX; k++)
		if (by_k[k] != NULL && is_egress(by_k[k]))
			return k;
	return 0;
}

unsigned int
nets_update_egress(void)
{
	unsigned int	k, n = 0;

	for (k = 1; (k = next_egress(k)) != 0; k++) {
		n++;
		if (ruleset_update(by_k[k]->ctl) == 0)
			continue;
		(void)net_fail("update the host's addresses");
		net_anew(by_k[k]);
	}
	return n;
}

unsigned int
nets_check_egress(unsigned int *k, unsigned int left, unsigned int n)
{
	struct net	*e;

	for (; left > 0 && n > 0; left--) {
		*k = *k >= NET_KMAX ? 1 : *k + 1;
		if ((e = by_k[*k]) == NULL || !is_egress(e))
			continue;
		n--;
		if (net_verify(e, RULESET_EGRESS) != NULL)
			net_anew(e);
	}
	return left;
}

void
nets_seal_egress(const char *why)
{
	unsigned int	k;

	for (k = 1; (k = next_egress(k)) != 0; k++)
		net_seal(by_k[k], why);
}

/* ---- deaths ---------------------------------------------------------- */

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
	if (link_alive(nets.home, on_alive) == -1) {
		/* numbers stay taken until then: the safe side */
		if (!uncounted)
			log_warn("list network namespaces");
		uncounted = 1;
		look_again();
		return;
	}
	uncounted = 0;
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

/* ---- start ----------------------------------------------------------- */

void
nets_init(struct event_base *base, const struct nets_fds *fds, int absent,
    unsigned int room)
{
	struct event	*ev;
	uint16_t	 r;
	int		 i;

	for (i = 0; i < RULESET_N; i++)
		TAILQ_INIT(&nets.pool[i]);
	nets.home = fds->home;
	nets.absent = absent;
	nets.room = room;
	denials_init(base);
	/* a start of its own each time: no k comes back soon after a restart */
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		fatal("getrandom");
	next_k = r == 0 ? 1 : r;
	if ((again = event_new(base, -1, 0, on_again, NULL)) == NULL)
		fatalx("event_new");
	if (!absent)
		follow_init(base, fds->news, fds->ask);
	ev = event_new(base, fds->watch, EV_READ | EV_PERSIST, on_watch, NULL);
	if (ev == NULL || event_add(ev, NULL) == -1)
		fatalx("event_add");
}
