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
 * So is a list that could not be taken, which stays recorded: what it no more
 * has may not be had again because what is new in it cannot be had yet.
 *
 * One change of a box at a time is under way.
 */
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define AGAIN_MS	100		/* who waits for an amendment asks */

struct change {
	struct box	*box;		/* referenced */
	struct http_req	*req;		/* NULL: it is amended */
	unsigned int	 from, to;
	struct allowlist *list, *drop;	/* owned; NULL: the list is whole; */
					/* what comes to it, and goes */
	enum wb_code	 code;		/* why it goes back */
	char		 detail[256];
};

int
network_asked(struct http_req *r, const char *name, unsigned int *ret)
{
	unsigned int	i;

	for (i = NETWORK_NONE; i <= NETWORK_ALLOWLIST; i++)
		if (strcmp(name, network_name(i)) == 0) {
			*ret = i;
			return 0;
		}
	http_fail(r, CODE_NETWORK_UNSUPPORTED, "network", "This server has no "
	    "network \"%s\": write \"none\", \"egress\" or \"allowlist\".",
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
	allowlist_free(c->list);
	allowlist_free(c->drop);
	free(c);
}

/* As it is or is to be: from here on this is what the box has. */
static void
change_set(struct box *b, unsigned int network)
{
	b->led_out |= b->network != NETWORK_NONE;
	if (b->network != network) {
		b->counted = 0;		/* by the other kind */
		b->list_due = 0;
	}
	b->network = network;
	b->changed_ms = now_ms();
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

/* Nothing has come of it. */
static void
change_refused(struct change *c, enum wb_code code, const char *detail)
{
	c->code = code;
	(void)str_copy(c->detail, detail, sizeof(c->detail));	/* cut */
	change_fail(c);
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

/* Whether the kind that it failed to become leads to more than that before. */
static int
leads_out(const struct change *c)
{
	return c->to != c->from && (c->to == NETWORK_EGRESS ||
	    c->from == NETWORK_NONE);
}

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
	if (leads_out(c)) {
		change_record(c, c->from, c->detail[0] != '\0' ? c->detail :
		    code_name(c->code), change_back);
		return;
	}
	if (c->to == c->from && c->to == NETWORK_ALLOWLIST)
		c->box->list_due = 1;
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
	c->box->list_due = 0;
	if (c->req != NULL)
		api_reply_box(c->req, 200, c->box);
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
	log_warnx("box %s: its network is not %s%s", b->id,
	    network_name(b->network), b->list_due ? " by its last list" : "");
	b->led_out = 1;			/* one of the two does */
	change_ask(change_new(b, NULL, b->network));
}

/* ---- what is asked -------------------------------------------------- */

static void
change_recorded(void *arg, const struct msg *m)
{
	struct change	*c = arg;

	if (m->row->type == MSG_ERROR) {
		change_refused(c, peer_code(m), peer_detail(m));
		return;
	}
	change_set(c->box, c->to);
	change_ask(c);
}

static void	change_put_off(struct http_req *, struct box *);

/*
 * One that is frozen or not attached has its network all the same.  Who asks
 * while we amend waits for that, which netd answers in T_PRIVD; the next one
 * is not due before the box is looked at again.
 */
static int
may_change(struct http_req *r, struct box *b)
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
	if (code == CODE_BUSY && b->changing == CHANGE_AMENDS)
		change_put_off(r, b);
	else
		http_fail(r, code, NULL, "%s", why);
	return 0;
}

/* ---- lists ------------------------------------------------------------ */

static void
change_put(void *arg, enum wb_code code, const char *detail)
{
	struct change	*c = arg;

	if (code != CODE_NONE || is_leaving(c->box))
		change_refused(c, code, detail);
	else
		change_record(c, c->to, "", change_recorded);
}

/* The list that it has is to have more, and less. */
static void
change_read(void *arg, struct allowlist *now, enum wb_code code,
    const char *detail)
{
	struct change	*c = arg;

	if (now == NULL || is_leaving(c->box)) {
		allowlist_free(now);
		change_refused(c, code, detail);
	} else if (allowlist_change(now, c->list, c->drop) == -1) {
		allowlist_free(now);
		http_fail(c->req, CODE_BAD_REQUEST, "add", "Expected: at "
		    "most %d entries in all.", ALLOW_MAX);
		change_over(c);
	} else
		allowlist_put(c->box->id, now, change_put, c);
}

/* Which members a body may have beside the kind; 0: it was answered. */
static int
members_fit(struct http_req *r, const struct box *b, unsigned int to)
{
	const json_t	*body = http_json(r);
	const char	*some = json_object_get(body, "add") != NULL ? "add" :
			    json_object_get(body, "remove") != NULL ?
			    "remove" : NULL;
	int		 allow = json_object_get(body, "allow") != NULL;

	if (to != NETWORK_ALLOWLIST && (some != NULL || allow))
		http_fail(r, CODE_BAD_REQUEST, some != NULL ? some : "allow",
		    "Expected: nothing, for only \"network\": \"allowlist\" "
		    "has a list.");
	else if (some != NULL && allow)
		http_fail(r, CODE_BAD_REQUEST, "allow", "Expected: either "
		    "the whole list, or \"add\" and \"remove\".");
	else if (some != NULL && b->network != NETWORK_ALLOWLIST)
		http_fail(r, CODE_BAD_REQUEST, some, "Expected: \"allow\", "
		    "the whole list, for the sandbox has none yet.");
	else
		return 1;
	return 0;
}

static int
is_whole(const json_t *body)
{
	return json_object_get(body, "add") == NULL &&
	    json_object_get(body, "remove") == NULL;
}

static void
change_dropped(void *arg, struct allowlist *drop)
{
	struct change	*c = arg;

	if (drop == NULL) {
		change_over(c);
		return;
	}
	c->drop = drop;
	allowlist_get(c->box->id, change_read, c);
}

/* The whole list, or what is new. */
static void
change_taken(void *arg, struct allowlist *list)
{
	struct change	*c = arg;

	if (list == NULL) {
		change_over(c);
		return;
	}
	if (is_whole(http_json(c->req)))
		allowlist_put(c->box->id, list, change_put, c);
	else {
		c->list = list;
		allowlist_take(c->req, "remove", change_dropped, c);
	}
}

static void
change_asked(struct http_req *r, struct box *b)
{
	const json_t	*body = http_json(r);
	unsigned int	 to;

	if (network_asked(r, json_string_value(json_object_get(body,
	    "network")), &to) == -1 || !members_fit(r, b, to) ||
	    !may_change(r, b))
		return;
	if (to == NETWORK_ALLOWLIST && (to != b->network ||
	    json_object_size(body) > 1))
		allowlist_take(r, is_whole(body) ? "allow" : "add",
		    change_taken, change_new(b, r, to));
	else if (to == b->network)	/* netd says whether it is so */
		change_ask(change_new(b, r, to));
	else
		change_record(change_new(b, r, to), to, "", change_recorded);
}

/* Of the same box, whoever has its name by now. */
static void
ask_again(struct http_req *r, void *arg)
{
	struct box	*b = arg;

	if (b->listed)
		change_asked(r, b);
	else
		api_no_box(r);
}

static void
waited(void *arg)
{
	box_unref(arg);
}

static void
change_put_off(struct http_req *r, struct box *b)
{
	if (http_data(r) == NULL) {	/* for the first time */
		http_set_data(r, box_ref(b));
		http_on_done(r, waited, b);
	}
	http_timer(r, AGAIN_MS, ask_again, b);
}

void
api_sandbox_network(struct http_req *r)
{
	struct box	*b = api_box(r);

	if (b != NULL)		/* else it was answered */
		change_asked(r, b);
}

/* ---- what there is ------------------------------------------------------ */

struct ask_list {
	struct http_req	*req;
	struct box	*box;		/* referenced */
};

static void
list_reply(struct http_req *r, unsigned int network, json_t *list)
{
	http_reply_json(r, 200, json_pack("{ss so}", "network",
	    network_name(network), "allow", list));
}

static void
list_told(void *arg, struct allowlist *l, enum wb_code code,
    const char *detail)
{
	struct ask_list	*a = arg;

	if (l != NULL)
		list_reply(a->req, NETWORK_ALLOWLIST, allowlist_json(l));
	else if (!a->box->listed)
		api_no_box(a->req);
	else if (a->box->network != NETWORK_ALLOWLIST)	/* meanwhile */
		list_reply(a->req, a->box->network, json_null());
	else
		api_fail(a->req, code == CODE_NOT_FOUND ? CODE_INTERNAL :
		    code, detail);
	allowlist_free(l);
	box_unref(a->box);
	free(a);
}

void
api_sandbox_network_get(struct http_req *r)
{
	struct ask_list	*a;
	struct box	*b = api_box(r);

	if (b == NULL)
		return;
	if (b->network != NETWORK_ALLOWLIST) {
		list_reply(r, b->network, json_null());
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->req = r;
	a->box = box_ref(b);
	allowlist_get(b->id, list_told, a);
}
