/*
 * change.c: the network of a live box becomes one of another kind.
 *
 * Theory of operation.  A net that is OPEN has a change from NET_CHANGE to
 * its answer, and one at most:
 *
 *	PROXIED	to `allowlist': waits until proxyd serves it
 *	HELD	by pool.c: the maker is to open sockets in the netns
 *	STARTS	to `egress': waits for its uplink
 *	ENDS	no `egress' any more: its uplink is ending
 *	LISTS	an `allowlist' that stays one: proxyd is to read its list anew,
 *		as soon as it serves it
 *
 *	PROXIED -> HELD		by proxyd's answer
 *	HELD -> STARTS, ENDS	by the maker's answer
 *	any -> (answered)	by a failure; by whatever takes the net out of
 *				OPEN: a cut or an end wins
 *	HELD -> (answered)	by the maker's answer, without an uplink
 *	STARTS -> (answered)	by uplinkd's answer, and what follows from it
 *	ENDS -> (answered)	by uplinkd's answer
 *	LISTS -> (answered)	by proxyd's answer
 *
 * One that is answered while pool.c holds it stays there, without a net,
 * until the maker has answered.
 *
 * To `none', and from `egress' to `allowlist', the ruleset comes first, behind
 * a guard.  From then on nothing leaves any more but what the new one takes,
 * and what is the box's own goes on: all rulesets and what guards take it.
 * Then the addresses on lo, before the tap goes with those that inner
 * connections may have; then the end of the uplink or of proxyd's part, and of
 * every connection that leads out.  What fails leaves a net that is sealed and
 * CUT, of the new kind, so that it gets no uplink again.
 *
 * To `egress' the ruleset comes last, when the uplink is up and only the
 * ruleset keeps packets in.  Until then the net is what it was, but its default
 * routes are gone, and what fails leaves it so.  An `allowlist' has its names
 * until it is an `egress'; from `none' to `allowlist' is as short, with
 * proxyd in the place of an uplink.  Whatever becomes an `allowlist' is served
 * before it is one.
 *
 * Until kind is another, whatever goes by it (the host's addresses, an uplink
 * that went and is asked for again) sees the one before; all that changes it
 * is done in one go, without the loop between.
 *
 * Must never: change the kind of what is not read back; leave a request
 * without an answer, or with two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

/* Takes the change from its net, which may have gone since.  what: of why. */
static void
answer(struct change *c, unsigned int code, const char *what, const char *why)
{
	struct msg_net_changed	m = { .wire_end = 0 };

	(void)str_copy(m.ruleset, ruleset_hash(c->to), sizeof(m.ruleset));
	netd_sent(c->chan, why == NULL ?
	    chan_send(c->chan, MSG_NET_CHANGED, c->rid, &m, -1) :
	    chan_error(c->chan, c->rid, code, "%s%s", what, why));
	c->net = NULL;
	fd_close(&c->diag);
	if (c->at != CHANGE_HELD)
		free(c);
}

/* What is told of a step: nobody else knows the number of its net. */
#define NETWORK	"its network: "

static const char *
fail(const struct net *n, const char *step)
{
	log_warn("network %u: %s", n->k, step);
	return step;
}

unsigned int
change_wants(const struct change *c)
{
	enum ruleset	from = c->net->kind;
	unsigned int	want = 0;

	if (from != RULESET_NONE)	/* where nothing leads out */
		want |= 1U << NS_DIAG;
	if (from != RULESET_EGRESS)	/* which has it */
		want |= 1U << NS_ROUTE;
	if (c->net->denials == NULL && c->to != RULESET_NONE)
		want |= 1U << NS_LOG;
	return want;
}

/* What its kind does not tell, or what it tells from now on. */
static void
denials_of(struct net *n)
{
	if (n->kind != RULESET_NONE) {
		denials_restart(n->denials);
		return;
	}
	denials_free(n->denials);
	n->denials = NULL;
}

/* ---- to what leads out less: none, allowlist --------------------------- */

/* NULL, or the step that failed: the kind tells whether it is what it was. */
static const char *
become_less(struct net *n, enum ruleset to)
{
	const char	*step;

	if (n->kind == RULESET_NONE)
		return net_become(n, to);
	step = net_set(n, to);
	n->kind = to;
	return step;
}

/* All but the connections and the uplink; as become_less(). */
static const char *
become(struct net *n, enum ruleset to)
{
	const char	*step = become_less(n, to);

	denials_of(n);
	if (n->kind == to && (link_routes(n->route) == -1 ||
	    link_relay(n->route, to == RULESET_ALLOW) == -1) && step == NULL) {
		step = fail(n, "add addresses and routes");
		net_seal(n, step);
	}
	fd_close(&n->route);
	if (n->kind != RULESET_ALLOW)
		proxy_end(n);
	return step;
}

/* Where it has one, or needs none, the maker was not asked for it. */
static const char *
take_log(struct net *n, struct netns_made *m, enum ruleset to)
{
	if (n->denials != NULL || to == RULESET_NONE)
		return NULL;
	n->denials = denials_new(n, steal_fd(&m->sock[NS_LOG]));
	return n->denials == NULL ? fail(n, "bind the log") : NULL;
}

static void
to_less(struct net *n, struct netns_made *m)
{
	struct change	*c = steal_ptr(&n->change);
	const char	*step = take_log(n, m, c->to);

	if (m->sock[NS_ROUTE] != -1)
		n->route = steal_fd(&m->sock[NS_ROUTE]);
	if (step == NULL)
		step = become(n, c->to);
	else {
		fd_close(&n->route);
		proxy_end(n);		/* from none: no other has none */
	}
	c->end_rid = uplink_end(n);
	if (step != NULL) {
		answer(c, CODE_INTERNAL, NETWORK, step);
		return;
	}
	if (m->sock[NS_DIAG] != -1)
		diag_end(m->sock[NS_DIAG]);
	log_info("network %u: is %s now", n->k,
	    network_name((unsigned int)net_network(n)));
	if (c->end_rid == 0) {
		answer(c, 0, "", NULL);
		return;
	}
	c->at = CHANGE_ENDS;
	n->change = c;
}

void
change_ended(struct net *n)
{
	answer(steal_ptr(&n->change), 0, "", NULL);
}

/* ---- to egress ---------------------------------------------------------- */

/* What it was again, or what is cut and was that. */
static void
undo(struct net *n)
{
	(void)uplink_end(n);	/* a start that follows waits for it */
	if (n->kind == RULESET_NONE)
		denials_of(n);
	if (link_routes(n->route) == -1)
		(void)fail(n, "add addresses and routes");
	fd_close(&n->route);
}

/* NULL: only the uplink is to come; or the step that failed. */
static const char *
leave(struct net *n, struct netns_made *m)
{
	n->route = steal_fd(&m->sock[NS_ROUTE]);
	n->change->diag = steal_fd(&m->sock[NS_DIAG]);
	if (link_unroute(n->route) == -1)
		return fail(n, "take routes away");
	return take_log(n, m, RULESET_EGRESS);
}

/*
 * It is egress; what was `allowlist' is not any more.  The name server's
 * address is the box's own until here.
 */
static void
is_egress(struct net *n, int diag)
{
	log_info("network %u: is egress now", n->k);
	memset(&n->tap, 0, sizeof(n->tap));
	memset(n->passed, 0, sizeof(n->passed));
	denials_of(n);
	if (diag == -1)
		return;
	if (link_relay(n->route, 0) == -1)
		(void)fail(n, "take routes away");
	proxy_end(n);
	diag_end(diag);
}

/* It becomes egress, or, why, is what it was. */
static void
over(struct net *n, const char *what, const char *why)
{
	struct change	*c = steal_ptr(&n->change);

	if (why == NULL) {
		what = NETWORK;
		why = net_become(n, RULESET_EGRESS);
	}
	if (why != NULL)
		undo(n);
	else
		is_egress(n, c->diag);
	answer(c, CODE_INTERNAL, what, why);
}

static void
to_egress(struct net *n, struct netns_made *m)
{
	const char	*step = leave(n, m);

	n->change->at = CHANGE_STARTS;
	if (step != NULL) {
		over(n, NETWORK, step);
		return;
	}
	uplink_start(n, 0);
	if (n->uplink != UPLINK_ASKED)
		change_uplinked(n, pool_no_way_out(UPLINK_UNASKED));
}

int
change_starts(const struct net *n)
{
	return n->change != NULL && n->change->at == CHANGE_STARTS;
}

void
change_uplinked(struct net *n, const char *why)
{
	over(n, "", why);
}

/* ---- by name ------------------------------------------------------------ */

int
change_proxies(const struct net *n)
{
	return n->change != NULL && (n->change->at == CHANGE_PROXIED ||
	    (n->change->at == CHANGE_LISTS && n->change->list_rid == 0));
}

static void
list_anew(struct net *n)
{
	n->change->list_rid = proxy_list(n);
	if (n->change->list_rid == 0)
		answer(steal_ptr(&n->change), CODE_BUSY, "",
		    "proxyd is reading too many lists");
}

void
change_proxied(struct net *n, enum wb_code code, const char *why)
{
	struct change	*c = n->change;

	if (why != NULL) {
		answer(steal_ptr(&n->change), code, "its way out: ", why);
	} else if (c->at == CHANGE_LISTS) {
		list_anew(n);
	} else {
		c->at = CHANGE_HELD;
		pool_change(c);
	}
}

int
change_lists(const struct net *n, uint32_t rid)
{
	return n->change != NULL && n->change->at == CHANGE_LISTS &&
	    n->change->list_rid == rid;
}

void
change_listed(struct net *n, const char *why)
{
	answer(steal_ptr(&n->change), CODE_INTERNAL, "its list: ", why);
}

/* Of one that pool.c has held meanwhile: it is what it was. */
static void
unserved(struct net *n, const char *what, const char *why)
{
	struct change	*c = steal_ptr(&n->change);

	if (n->kind != RULESET_ALLOW)
		proxy_end(n);
	answer(c, CODE_INTERNAL, what, why);
}

/* ---- all ---------------------------------------------------------------- */

void
change_start(struct net *n, enum ruleset to, struct chan *chan, uint32_t rid)
{
	struct change	*c = xcalloc(1, sizeof(*c));

	c->net = n;
	c->chan = chan;
	c->rid = rid;
	c->to = to;
	c->diag = -1;
	n->change = c;
	if (to != RULESET_ALLOW) {
		pool_change(c);
		return;
	}
	c->at = n->kind == to ? CHANGE_LISTS : CHANGE_PROXIED;
	if (proxy_up(n))
		change_proxied(n, CODE_NONE, NULL);
	else
		proxy_start(n);
}

void
change_made(struct change *c, struct netns_made *m)
{
	struct net	*n = c->net;

	if (n == NULL) {
		free(c);
		return;
	}
	c->at = CHANGE_TAKEN;
	if (m->error != 0) {
		log_warnx("change network %u: %s: %s", n->k, m->step,
		    strerror(m->error));
		unserved(n, NETWORK, m->step);
	} else if (m->k != n->k)
		fatalx("the maker answers for another network");
	else if (c->to == RULESET_ALLOW && !proxy_up(n))
		unserved(n, "its way out: ", "proxyd serves it no more");
	else if (c->to == RULESET_EGRESS)
		to_egress(n, m);
	else
		to_less(n, m);
}

void
change_lost(struct net *n)
{
	struct change	*c = steal_ptr(&n->change);

	if (c == NULL)
		return;
	if (c->at == CHANGE_STARTS)
		undo(n);
	answer(c, CODE_BAD_TRANSITION, NETWORK,
	    "it was cut or freed while it was changed");
}
