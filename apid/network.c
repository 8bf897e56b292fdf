/*
 * network.c: the kind of a live box's network, changed.
 *
 * What is asked for stands in the row and on the record before netd is told,
 * so that nothing ever leads out without a word of who wanted it.  What netd
 * cannot do is taken back there when it was a way out that was to be opened.
 * One that was to be closed stays closed: netd has cut it then, or netd, or
 * the whole set, was ended in the middle.  That the network is of another kind
 * than the row says is seen by boot.c when the box is attached, and by
 * health.c later, and is asked for once more; until then the box is SUSPECT.
 *
 * One change of a box at a time is under way.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

struct change {
	struct box	*box;		/* referenced */
	struct http_req	*req;		/* NULL: it is amended */
	unsigned int	 from, to;
	enum wb_code	 code;		/* why it goes back */
	char		 detail[256];
};

int
network_asked(struct http_req *r, const char *name, unsigned int *ret)
{
	unsigned int	i;

	for (i = NETWORK_NONE; i <= NETWORK_EGRESS; i++)
		if (strcmp(name, network_name(i)) == 0) {
			*ret = i;
			return 0;
		}
	http_fail(r, CODE_NETWORK_UNSUPPORTED, "network", "This server has no "
	    "network \"%s\": write \"network\": \"none\" or \"egress\".",
	    name);
	return -1;
}

/* Of a box for which nobody names one. */
unsigned int
network_default(void)
{
	return strcmp(env.conf->default_network, network_name(
	    NETWORK_NONE)) == 0 || strcmp(env.conf->netfilter, "none") == 0 ?
	    NETWORK_NONE : NETWORK_EGRESS;
}

static struct change *
change_new(struct box *b, struct http_req *r, unsigned int to)
{
	struct change	*c = xcalloc(1, sizeof(*c));

	c->box = box_ref(b);
	c->req = r;
	c->from = b->network;
	c->to = to;
	b->changing = r != NULL ? CHANGE_ASKED : CHANGE_AMENDS;
	return c;
}

static void
change_over(struct change *c)
{
	c->box->changing = CHANGE_NOT;
	box_unref(c->box);
	free(c);
}

/* As it is or is to be: from here on this is what the box has. */
static void
change_set(struct box *b, unsigned int network)
{
	b->led_out |= b->network == NETWORK_EGRESS;
	b->network = network;
	b->changed_ms = now_ms();
	b->counted = 0;			/* by the other kind */
}

/* READY no more, or not for long. */
static int
is_leaving(const struct box *b)
{
	return b->state != BOX_READY || b->condemned ||
	    b->removing != REMOVE_NOT;
}

/* Why it was, or, of a box that is leaving meanwhile, that. */
static void
change_fail(struct change *c)
{
	const char	*why = c->detail;

	if (is_leaving(c->box))
		c->code = box_refuses(c->box, &why);
	api_fail(c->req, c->code, why);
	change_over(c);
}

/* ---- on the record -------------------------------------------------- */

static void
change_record(struct change *c, unsigned int network, const char *reason,
    void (*cb)(void *, const struct msg *))
{
	struct msg_sandbox_network	m = { .network = network };
	const int			asked = c->req != NULL;

	(void)str_copy(m.id, c->box->id, sizeof(m.id));
	(void)str_copy(m.reason, reason, sizeof(m.reason));	/* cut */
	(void)str_copy(m.actor, asked ? http_actor(c->req) : "apid",
	    sizeof(m.actor));
	(void)str_copy(m.request, asked ? http_id(c->req) : "",
	    sizeof(m.request));
	peer_ask(env.stored, MSG_SANDBOX_NETWORK, &m, T_STORE, cb, c);
}

/* It failed, and that is on the record, if it can be. */
static void
change_back(void *arg, const struct msg *m)
{
	struct change	*c = arg;

	if (m->row->type == MSG_ERROR)
		log_warnx("box %s: record that its network is %s: %s",
		    c->box->id, network_name(c->from), m->body.error.detail);
	/* what was told as failed does not come true by an amend */
	change_set(c->box, c->from);
	change_fail(c);
}

/* ---- in netd -------------------------------------------------------- */

static void
change_failed(struct change *c, const struct msg_error *e)
{
	log_warnx("box %s: its network does not become %s: %s", c->box->id,
	    network_name(c->to), e->detail);
	if (c->req == NULL) {
		change_over(c);		/* and health.c sees it again */
		return;
	}
	c->code = (enum wb_code)e->code;
	(void)str_copy(c->detail, e->detail, sizeof(c->detail)); /* cut */
	if (c->to != NETWORK_NONE && c->to != c->from) {
		change_record(c, c->from, c->detail[0] != '\0' ? c->detail :
		    code_name(c->code), change_back);
		return;
	}
	box_health(c->box, SUSPECT, "network");
	change_fail(c);
}

static void
amended(struct box *b)
{
	log_info("box %s: its network is %s again", b->id,
	    network_name(b->network));
	health_look(b, NULL, NULL);
}

static void
change_told(void *arg, const struct msg *m)
{
	struct change	*c = arg;

	if (m->row->type == MSG_ERROR) {
		change_failed(c, &m->body.error);
		return;
	}
	(void)str_copy(c->box->ruleset, m->body.net_changed.ruleset,
	    sizeof(c->box->ruleset));
	c->box->net_told = 1;
	if (c->req != NULL)
		http_reply_json(c->req, 200, box_json(c->box));
	else
		amended(c->box);
	change_over(c);
}

static void
change_ask(struct change *c)
{
	struct msg_net_change	m = { .network = c->to };

	(void)str_copy(m.id, c->box->id, sizeof(m.id));
	peer_ask(env.netd, MSG_NET_CHANGE, &m, T_PRIVD, change_told, c);
}

void
network_amend(struct box *b)
{
	if (b->changing)
		return;
	log_warnx("box %s: its network is not %s", b->id,
	    network_name(b->network));
	b->led_out = 1;			/* one of the two does */
	change_ask(change_new(b, NULL, b->network));
}

/* ---- what is asked -------------------------------------------------- */

static void
change_recorded(void *arg, const struct msg *m)
{
	struct change	*c = arg;

	if (m->row->type == MSG_ERROR) {
		api_fail(c->req, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
		change_over(c);
		return;
	}
	change_set(c->box, c->to);
	change_ask(c);
}

/* One that is frozen or not attached has its network all the same. */
static int
may_change(struct http_req *r, const struct box *b)
{
	const char	*why = "Its network is being changed already: try "
			    "again.";
	enum wb_code	 code = b->changing ? CODE_BUSY : CODE_NONE;

	if (is_leaving(b) || b->boot != NULL) {
		why = "The sandbox is not READY.";
		if ((code = box_refuses(b, &why)) == CODE_NONE)
			code = CODE_NOT_READY;
	}
	if (code == CODE_NONE)
		return 1;
	http_fail(r, code, NULL, "%s", why);
	return 0;
}

void
api_sandbox_network(struct http_req *r)
{
	struct box	*b = api_box(r);
	unsigned int	 to;

	if (b == NULL || network_asked(r, json_string_value(json_object_get(
	    http_json(r), "network")), &to) == -1 || !may_change(r, b))
		return;
	if (to == b->network)		/* netd says whether it is so */
		change_ask(change_new(b, r, to));
	else
		change_record(change_new(b, r, to), to, "", change_recorded);
}
