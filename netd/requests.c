/*
 * requests.c: what privd and apid ask of netd.
 *
 * Safe if the asker is hostile: privd is trusted with every network; apid
 * may ask how a box's is, and have an open one become another kind: it says
 * which one a box is made with anyway, and opens nothing that privd has not
 * opened.  The numbers and ids of a message name what nets.c holds, or
 * nothing.
 */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

static int
is_full(struct chan *c, const struct msg *m)
{
	if (nets.boxes + pool_waiting() < nets.room)
		return 0;
	netd_sent(c, chan_error(c, m->rid, CODE_NO_SPACE_FOR_BOX,
	    "%u networks are the most", nets.room));
	return 1;
}

/* The ruleset that a network has when it is open; 0: none, it was refused. */
static enum ruleset
kind_of(struct chan *c, const struct msg *m, uint64_t network)
{
	if (network == NETWORK_NONE)
		return RULESET_NONE;
	if (network == NETWORK_EGRESS && !nets.absent)
		return RULESET_EGRESS;
	if (network == NETWORK_ALLOWLIST && !nets.absent && proxy_there())
		return RULESET_ALLOW;
	netd_sent(c, chan_error(c, m->rid, CODE_NETWORK_UNSUPPORTED,
	    nets.absent ? "network %s needs netfilter, which "
	    "the configuration says is not there: use none" :
	    "network %s needs proxyd, which is not there: use none or egress",
	    network_name((unsigned int)network)));
	return RULESET_SEALED;
}

void
netd_on_net_make(struct chan *c, const struct msg *m)
{
	const struct msg_net_make	*b = &m->body.net_make;
	enum ruleset			 kind = kind_of(c, m, b->network);

	if (kind == RULESET_SEALED || is_full(c, m))
		return;
	if (net_find(b->id) != NULL)
		netd_sent(c, chan_error(c, m->rid, CODE_EXISTS,
		    "the box has a network"));
	else
		pool_give(c, m->rid, b->id, kind);
}

/* A box's net, or NULL: it was answered. */
static struct net *
net_of(struct chan *c, const struct msg *m, uint64_t k)
{
	struct net	*n = net_by_k(k);

	if (n == NULL)
		netd_sent(c, chan_error(c, m->rid, CODE_NOT_FOUND,
		    "network %u is nobody's", (unsigned int)k));
	return n;
}

/* 0: it was changed; -1: it was not, and that was answered. */
static int
set_state(struct chan *c, uint32_t rid, struct net *n, enum net_state to)
{
	const char	*step = net_set(n, to == OPEN ? n->kind :
			    RULESET_SEALED);

	if (step != NULL) {
		netd_sent(c, chan_error(c, rid, CODE_INTERNAL,
		    "network %u: %s", n->k, step));
		return -1;
	}
	net_move(n, to);
	pool_stir(1);
	return 0;
}

static void
open_now(struct chan *c, uint32_t rid, struct net *n)
{
	struct msg_net_opened	o = { .k = n->k };

	if (set_state(c, rid, n, OPEN) == -1)
		return;
	o.network = net_network(n);
	(void)str_copy(o.ruleset, ruleset_hash(n->kind),
	    sizeof(o.ruleset));
	netd_sent(c, chan_send(c, MSG_NET_OPENED, rid, &o, -1));
}

/* proxyd has it before anything of the box can ask it. */
static void
open_later(struct chan *c, const struct msg *m, struct net *n)
{
	if (n->opener != NULL || n->adopter != NULL) {
		netd_sent(c, chan_error(c, m->rid, CODE_BUSY,
		    "network %u is being opened", n->k));
		return;
	}
	n->opener = c;
	n->opener_rid = m->rid;
	proxy_start(n);
}

void
netd_on_net_open(struct chan *c, const struct msg *m)
{
	struct net	*n = net_of(c, m, m->body.net_open.k);

	if (n == NULL)
		return;
	if (net_uplinked(n))
		open_now(c, m->rid, n);
	else if (n->kind == RULESET_ALLOW)
		open_later(c, m, n);
	else
		netd_sent(c, chan_error(c, m->rid, CODE_INTERNAL,
		    "network %u has no way out", n->k));
}

void
netd_opens(struct net *n, const char *why)
{
	struct chan	*c = steal_ptr(&n->opener);

	if (why == NULL)
		open_now(c, n->opener_rid, n);
	else
		netd_sent(c, chan_error(c, n->opener_rid, CODE_INTERNAL,
		    "network %u has no way out: %s", n->k, why));
}

void
netd_open_lost(struct net *n)
{
	struct chan	*c = steal_ptr(&n->opener);

	if (c != NULL)
		netd_sent(c, chan_error(c, n->opener_rid, CODE_BAD_TRANSITION,
		    "network %u: it was cut or freed while it was opened",
		    n->k));
}

void
netd_on_net_cut(struct chan *c, const struct msg *m)
{
	struct net	*n = net_of(c, m, m->body.net_cut.k);

	if (n != NULL && set_state(c, m->rid, n, CUT) == 0)
		netd_sent(c, chan_ok(c, m->rid));
}

/* Said twice, or of what never was, it is as done as it can be. */
void
netd_on_net_free(struct chan *c, const struct msg *m)
{
	struct net	*n = net_by_k(m->body.net_free.k);

	if (n != NULL)
		net_drop(n);
	netd_sent(c, chan_ok(c, m->rid));
	pool_stir(0);
}

void
netd_on_net_adopt(struct chan *c, struct msg *m)
{
	const struct msg_net_adopt	*b = &m->body.net_adopt;
	enum ruleset			 kind = kind_of(c, m, b->network);

	if (kind != RULESET_SEALED && !is_full(c, m))
		pool_adopt(c, m->rid, b->id, kind, b->open != 0,
		    steal_fd(&m->fd));
	else
		pool_note(steal_fd(&m->fd));
}

/* 1: its net may become another now; 0: it was answered. */
static int
may_change(struct chan *c, const struct msg *m, const struct net *n)
{
	if (n == NULL)
		netd_sent(c, chan_error(c, m->rid, CODE_NOT_FOUND,
		    "the box has no network"));
	else if (n->state != OPEN)
		netd_sent(c, chan_error(c, m->rid, CODE_BAD_TRANSITION,
		    "its network is not open"));
	else if (n->change != NULL || n->adopter != NULL)
		netd_sent(c, chan_error(c, m->rid, CODE_BUSY,
		    "its network is being %s", n->change != NULL ?
		    "changed" : "adopted"));
	else
		return 1;
	return 0;
}

void
netd_on_net_change(struct chan *c, const struct msg *m)
{
	const struct msg_net_change	*b = &m->body.net_change;
	enum ruleset			 to = kind_of(c, m, b->network);
	struct msg_net_changed		 d = { .wire_end = 0 };
	struct net			*n = net_find(b->id);
	const char			*step;

	if (to == RULESET_SEALED || !may_change(c, m, n))
		return;
	if (n->kind == to && (step = net_verify(n, to)) != NULL) {
		netd_sent(c, chan_error(c, m->rid, CODE_INTERNAL,
		    "its network: %s", step));
		return;
	}
	if (n->kind != to || to == RULESET_ALLOW) {
		change_start(n, to, c, m->rid);
		return;
	}
	(void)str_copy(d.ruleset, ruleset_hash(to), sizeof(d.ruleset));
	netd_sent(c, chan_send(c, MSG_NET_CHANGED, m->rid, &d, -1));
}

/*
 * What has passed all its taps; what one counted between the last look at it
 * and its end is in no sum.
 */
static void
count_passed(struct net *n, uint64_t ret[TAP_COUNTS])
{
	struct tap	now = n->tap;
	int		i;

	if (link_tap(n->route, &now) == -1)
		log_warn("network %u: read counters of its tap", n->k);
	for (i = 0; i < TAP_COUNTS; i++) {
		if (now.index != n->tap.index)
			n->passed[i] += n->tap.n[i];
		ret[i] = n->passed[i] + now.n[i];
	}
	n->tap = now;
}

static void
put_counts(struct net *n, struct msg_net_status_is *s)
{
	uint64_t	counted[RS_COUNTERS], passed[TAP_COUNTS];

	denials_total(n->denials, counted);
	s->sealed = counted[DENIED_SEALED];
	s->host = counted[DENIED_HOST];
	s->limited = counted[DENIED_LIMITED];
	s->protocol = counted[DENIED_PROTOCOL];
	s->address = counted[DENIED_ADDRESS];
	s->connections = counted[RS_OPENED];
	s->names = counted[RS_NAMES];
	if (n->kind != RULESET_EGRESS)
		return;
	count_passed(n, passed);
	s->sent_bytes = passed[TAP_SENT_BYTES];
	s->sent_packets = passed[TAP_SENT_PACKETS];
	s->received_bytes = passed[TAP_RECEIVED_BYTES];
	s->received_packets = passed[TAP_RECEIVED_PACKETS];
}

void
netd_on_net_names(struct chan *c, const struct msg *m)
{
	const struct msg_net_names	*b = &m->body.net_names;
	struct msg_net_names_are	 none = { .wire_end = 0 };
	const struct net		*n = net_find(b->id);

	if (n == NULL)
		netd_sent(c, chan_error(c, m->rid, CODE_NOT_FOUND,
		    "the box has no network"));
	else if (n->kind != RULESET_ALLOW)
		netd_sent(c, chan_send(c, MSG_NET_NAMES_ARE, m->rid, &none,
		    -1));
	else if (!proxy_up(n) || !proxy_there())
		netd_sent(c, chan_error(c, m->rid, CODE_BUSY,
		    "its network has no way out now"));
	else
		proxy_names(c, m->rid, b);
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
	r = net_whole(n, n->state == OPEN ? n->kind : RULESET_SEALED,
	    s.ruleset);
	if (r == -1) {
		log_warn("network %u: read ruleset", n->k);
		netd_sent(c, chan_error(c, m->rid, CODE_INTERNAL,
		    "read ruleset: %s", strerror(errno)));
		return;
	}
	s.state = n->state == OPEN ? 1 : n->state == CUT ? 2 : 0;
	s.whole = r == 1;
	s.uplink = (uint64_t)net_uplinked(n);
	s.network = net_network(n);
	put_counts(n, &s);
	netd_sent(c, chan_send(c, MSG_NET_STATUS_IS, m->rid, &s, -1));
}
