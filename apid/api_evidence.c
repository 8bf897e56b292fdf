/*
 * api_evidence.c: what there is to see of a box now, whatever its state.
 *
 * privd is asked for three things at once, which it answers of a frozen box,
 * too: the host's side of the proof (with mountinfo of pid 1), what its
 * control groups count, and launch.log.  Nothing is asked of the
 * box.  What cannot be had is null, and `missing' says why.
 *
 * Must never: tell of the box what its own runner says.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "xmalloc.h"

struct look {
	struct http_req	*req;
	struct box	*box;		/* referenced */
	unsigned int	 due;		/* answers */
	json_t		*o;		/* owned */
};

static void
look_over(struct look *l)
{
	if (--l->due != 0)
		return;
	http_reply_json(l->req, 200, l->o);
	box_unref(l->box);
	free(l);
}

/* A member that is what came, or null and why. */
static void
look_set(struct look *l, const char *key, json_t *v, const struct msg *m)
{
	if (m->row->type == MSG_ERROR) {
		json_decref(v);
		v = json_null();
		(void)json_object_set_new(json_object_get(l->o, "missing"),
		    key, text_json(m->body.error.detail,
		    strlen(m->body.error.detail)));
	}
	(void)json_object_set_new(l->o, key, v);	/* NULL: no memory */
	look_over(l);
}

static void
look_facts(void *arg, const struct msg *m)
{
	struct look	*l = arg;
	json_t		*v = NULL;

	if (m->row->type != MSG_ERROR) {
		v = proof_host_json(&m->body.box_facts_are);
		(void)json_object_set_new(l->o, "verdict",
		    text_json_or_null(m->body.box_facts_are.verdict));
	}
	look_set(l, "facts", v, m);
}

static void
look_use(void *arg, const struct msg *m)
{
	const struct msg_box_health_is	*h = &m->body.box_health_is;
	json_t				*v = NULL;

	if (m->row->type != MSG_ERROR)
		v = json_pack("{so sI sI sI sI sI sb}",
		    "part", text_json_or_null(h->part),
		    "memoryBytes", (json_int_t)h->memory_bytes,
		    "pids", (json_int_t)h->pids,
		    "cpuUsec", (json_int_t)h->cpu_usec,
		    "oomKills", (json_int_t)h->oom_kills,
		    "writtenBytes", (json_int_t)h->written,
		    "frozen", (int)h->frozen);
	look_set(arg, "use", v, m);
}

static void
look_log(void *arg, const struct msg *m)
{
	const struct wire_bin	*t = &m->body.box_log_tail_is.text;

	look_set(arg, "launchLog", m->row->type == MSG_ERROR ? NULL :
	    text_json(t->data, t->len), m);
}

void
api_sandbox_evidence(struct http_req *r)
{
	struct msg_box_facts	 f = { 0 };
	struct msg_box_health	 h = { .written = 1 };
	struct msg_box_log_tail	 t = { 0 };
	struct box		*b = api_box(r);
	struct look		*l;

	if (b == NULL)
		return;
	l = xcalloc(1, sizeof(*l));
	l->req = r;
	l->box = box_ref(b);
	l->due = 3;
	l->o = json_pack("{ss so ss so ss so sn s{}}", "sandboxId", b->id,
	    "at", time_json(now_ms()), "state", state_name(b->state),
	    "stateReason", text_json_or_null(b->reason),
	    "health", health_name(b->health),
	    "healthReason", text_json_or_null(b->part), "verdict", "missing");
	(void)str_copy(f.id, b->id, sizeof(f.id));
	(void)str_copy(h.id, b->id, sizeof(h.id));
	(void)str_copy(t.id, b->id, sizeof(t.id));
	peer_ask(env.privd, MSG_BOX_FACTS, &f, T_PRIVD, look_facts, l);
	peer_ask(env.privd, MSG_BOX_HEALTH, &h, T_PRIVD, look_use, l);
	peer_ask(env.privd, MSG_BOX_LOG_TAIL, &t, T_PRIVD, look_log, l);
}
