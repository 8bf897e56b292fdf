/*
 * denied.c: what the network of the box has denied, which the host knows and
 * wb asks for.
 *
 * The only question that is asked of the host.  One at a time is under way;
 * who asks meanwhile has its answer, too, so that many who ask cost the host
 * no more than one.  When the host goes, all of them are told.
 *
 * Must never: hand on an answer to what was not asked.
 */
#include "runner.h"

static struct {
	struct peer	*of;	/* borrowed: peer.c; NULL: nothing is asked */
	uint32_t	 rid;
} asked;

static void
tell_error(unsigned int code, const char *why)
{
	struct waiter	*w;

	asked.of = NULL;
	while ((w = waiter_any(W_DENIED)) != NULL) {
		peer_error(w->peer, w->rid, code, "%s", why);
		waiter_free(w);
	}
}

void
wbcmd_denials(struct peer *p, const struct msg *m)
{
	struct msg_box_denials	 q = { 0 };
	struct peer		*host = peer_host();

	if (host == NULL || host->ch.state != S_RUN) {
		peer_error(p, m->rid, CODE_BUSY, "the host is not attached");
		return;
	}
	if (waiter_new(p, NULL, W_DENIED, m->rid) == NULL || asked.of != NULL)
		return;
	asked.of = host;
	if (++host->ch.rid == 0)	/* is no request's */
		host->ch.rid = 1;
	asked.rid = host->ch.rid;
	peer_send(host, MSG_BOX_DENIALS, asked.rid, &q);
}

/* Whether this answers what was asked; else it is the end of who said it. */
static int
is_due(struct peer *p, const struct msg *m)
{
	if (asked.of == p && m->rid == asked.rid)
		return 1;
	runner_log("%s was not asked for", m->row->name);
	peer_end(p);
	return 0;
}

void
denied_told(struct peer *p, const struct msg *m)
{
	const struct msg_box_denials_are	*a = &m->body.box_denials_are;
	struct msg_wb_denials_are		 b = {
	    .rows = a->rows, .network = a->network, .counted = a->counted,
	    .sealed = a->sealed, .host = a->host, .limited = a->limited,
	    .protocol = a->protocol, .address = a->address,
	    .connections = a->connections, .names = a->names,
	    .sent_bytes = a->sent_bytes, .sent_packets = a->sent_packets,
	    .received_bytes = a->received_bytes,
	    .received_packets = a->received_packets,
	    .name = a->name, .port = a->port, .tls = a->tls, .http = a->http,
	    .exhausted = a->exhausted,
	};
	struct waiter				*w;

	if (!is_due(p, m))
		return;
	asked.of = NULL;
	while ((w = waiter_any(W_DENIED)) != NULL) {
		peer_send(w->peer, MSG_WB_DENIALS_ARE, w->rid, &b);
		waiter_free(w);
	}
}

void
denied_refused(struct peer *p, const struct msg *m)
{
	if (is_due(p, m))
		tell_error((unsigned int)m->body.error.code,
		    m->body.error.detail);
}

void
denied_lost(const struct peer *p)
{
	if (asked.of == p)
		tell_error(CODE_BUSY, "the host went away");
}
