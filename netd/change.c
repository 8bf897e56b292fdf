/*
 * change.c: the network of a live box becomes one of another kind.
 *
 * Theory of operation.  A net that is OPEN has a change from NET_CHANGE to
 * its answer, and one at most:
 *
 *	HELD	by pool.c: the maker is to open sockets in the netns
 *	STARTS	to `egress': waits for its uplink
 *	ENDS	to `none': it is that already, its uplink is ending
 *
 *	HELD -> STARTS, ENDS	by the maker's answer
 *	any -> (answered)	by a failure; by whatever takes the net out of
 *				OPEN: a cut or an end wins
 *	STARTS -> (answered)	by uplinkd's answer, and what follows from it
 *	ENDS -> (answered)	by uplinkd's answer
 *
 * One that is answered while pool.c holds it stays there, without a net,
 * until the maker has answered.
 *
 * From `egress' to `none' the ruleset comes first, behind a guard.  From then
 * on nothing leaves any more, and what is the box's own goes on: both rulesets
 * and what guards take it.  Then the addresses on lo, before the tap
 * goes with those that inner connections may have; then the end of the uplink
 * and of every connection that leads out.  What fails leaves a net that is
 * sealed and CUT, of kind `none', so that it gets no uplink again.
 *
 * From `none' to `egress' the ruleset comes last, when the uplink is up and
 * only the ruleset keeps packets in.  Until then the net is a `none' whose
 * default routes are gone, and what fails leaves it as it was.
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

/* ---- to none ------------------------------------------------------------ */

/* All but the connections and the uplink; NULL, or the step that failed. */
static const char *
become_none(struct net *n)
{
	const char	*step = net_set(n, RULESET_NONE);

	n->kind = RULESET_NONE;
	denials_free(n->denials);
	n->denials = NULL;
	if (link_routes(n->route) == -1 && step == NULL) {
		step = fail(n, "add addresses and routes");
		net_seal(n, step);
	}
	fd_close(&n->route);
	return step;
}

static void
to_none(struct net *n, int diag)
{
	struct change	*c = steal_ptr(&n->change);
	const char	*step = become_none(n);

	c->end_rid = uplink_end(n);
	if (step != NULL) {
		answer(c, CODE_INTERNAL, NETWORK, step);
		return;
	}
	diag_end(diag);
	log_info("network %u: is none now", n->k);
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

/* A `none' again, or what is cut and was one. */
static void
undo(struct net *n)
{
	(void)uplink_end(n);	/* a start that follows waits for it */
	denials_free(n->denials);
	n->denials = NULL;
	if (link_routes(n->route) == -1)
		(void)fail(n, "add addresses and routes");
	fd_close(&n->route);
}

/* NULL: only the uplink is to come; or the step that failed. */
static const char *
leave_none(struct net *n, struct netns_made *m)
{
	n->route = steal_fd(&m->sock[NS_ROUTE]);
	if (link_unroute(n->route) == -1)
		return fail(n, "take routes away");
	if ((n->denials = denials_new(n, steal_fd(&m->sock[NS_LOG]))) == NULL)
		return fail(n, "bind the log");
	return NULL;
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
	if (why != NULL) {
		undo(n);
	} else {
		log_info("network %u: is egress now", n->k);
		memset(&n->tap, 0, sizeof(n->tap));
		memset(n->passed, 0, sizeof(n->passed));
	}
	answer(c, CODE_INTERNAL, what, why);
}

static void
to_egress(struct net *n, struct netns_made *m)
{
	const char	*step = leave_none(n, m);

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

/* ---- both --------------------------------------------------------------- */

void
change_start(struct net *n, enum ruleset to, struct chan *chan, uint32_t rid)
{
	struct change	*c = xcalloc(1, sizeof(*c));

	c->net = n;
	c->chan = chan;
	c->rid = rid;
	c->to = to;
	n->change = c;
	pool_change(c);
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
		n->change = NULL;
		answer(c, CODE_INTERNAL, NETWORK, m->step);
	} else if (m->k != n->k)
		fatalx("the maker answers for another network");
	else if (c->to == RULESET_NONE)
		to_none(n, m->sock[NS_DIAG]);
	else
		to_egress(n, m);
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
