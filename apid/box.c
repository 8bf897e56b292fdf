/*
 * box.c: the boxes in memory: who they are, and in which state.
 *
 * Theory of operation.  A box is in the tables from the moment its creation
 * was accepted until it is DELETED; it holds its name until it is DELETING.
 * The tables hold one reference; each session object, each move under way
 * and each wait for a peer holds another, so that a callback always finds
 * its box, gone or not (listed 0).
 *
 * The state is stored's to grant; `target' is the one it was asked for last.
 * A move that is answered to a client is durable: the state here changes when
 * the disk has it.  What lies between changes at once, for stored takes the
 * moves of one channel in their order.  Nobody but box_move() and box_load()
 * writes the state.  Where the disk was full a move may be missing there
 * (astray): the next ones may then be refused, and the way out writes what is
 * missing again.
 *
 * Must never: show a state that stored refused.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define BOX_BUCKETS	1024
#define BOX_PREFIX	12		/* shortest prefix of an id */

LIST_HEAD(box_bucket, box);

static TAILQ_HEAD(box_all, box)	boxes = TAILQ_HEAD_INITIALIZER(boxes);
static struct box_bucket	by_id[BOX_BUCKETS], by_name[BOX_BUCKETS];
static unsigned int		nboxes;

/* FNV-1a; a client that makes names collide slows only look-ups by name. */
static unsigned int
hash(const char *s)
{
	uint32_t	h = 2166136261U;

	for (; *s != '\0'; s++)
		h = (h ^ (uint8_t)*s) * 16777619U;
	return (h ^ h >> 15) % BOX_BUCKETS;
}

void
box_init(void)
{
	size_t	i;

	for (i = 0; i < BOX_BUCKETS; i++) {
		LIST_INIT(&by_id[i]);
		LIST_INIT(&by_name[i]);
	}
}

/* ---- the tables --------------------------------------------------- */

static int
holds_name(enum box_state s)
{
	return s != BOX_DELETING && s != BOX_DELETED;
}

static void
box_name_hold(struct box *b, int on)
{
	if (on && !b->named)
		LIST_INSERT_HEAD(&by_name[hash(b->name)], b, by_name);
	else if (!on && b->named)
		LIST_REMOVE(b, by_name);
	b->named = on;
}

/* Ascending; a new id is the greatest but for rows that come from a page. */
static void
box_list(struct box *b)
{
	struct box	*p;

	TAILQ_FOREACH_REVERSE(p, &boxes, box_all, all)
		if (strcmp(p->id, b->id) < 0)
			break;
	if (p == NULL)
		TAILQ_INSERT_HEAD(&boxes, b, all);
	else
		TAILQ_INSERT_AFTER(&boxes, p, b, all);
	LIST_INSERT_HEAD(&by_id[hash(b->id)], b, by_id);
	b->listed = 1;
	nboxes++;
	box_name_hold(b, holds_name(b->state));
}

static void
box_retry(int fd, short what, void *arg)
{
	struct box	*b = arg;

	(void)fd;
	(void)what;
	if (b->listed && b->boot == NULL && b->runner == NULL &&
	    b->removing == REMOVE_NOT && !b->frozen && !b->condemned)
		boot_attach(b, NULL, NULL);
}

static struct box *
box_alloc(const char *id, const char *tenant, const char *by,
    const char *name)
{
	struct box	*b = xcalloc(1, sizeof(*b));

	(void)str_copy(b->id, id, sizeof(b->id));	/* all fit: */
	(void)str_copy(b->tenant, tenant, sizeof(b->tenant)); /* proto.def */
	(void)str_copy(b->created_by, by, sizeof(b->created_by));
	(void)str_copy(b->name, name, sizeof(b->name));
	b->health = UNKNOWN;
	b->refs = 1;
	LIST_INIT(&b->sessions);
	(void)evtimer_assign(&b->retry, env.base, box_retry, b);
	return b;
}

struct box *
box_new(const char *id, const char *tenant, const char *by, const char *name)
{
	struct box	*b = box_alloc(id, tenant, by, name);

	b->state = b->target = BOX_REQUESTED;
	b->created_ms = b->changed_ms = now_ms();
	b->known = 1;		/* it has none */
	b->use_known = (1U << USE_N) - 1;	/* from nothing on */
	box_list(b);
	return b;
}

struct box *
box_load(const struct row_sandbox *r)
{
	struct box	*b = box_alloc(r->id, r->tenant, r->created_by,
			    r->name);

	(void)str_copy(b->rootfs, r->rootfs, sizeof(b->rootfs));
	(void)str_copy(b->reason, r->reason, sizeof(b->reason));
	b->network = (unsigned int)r->network;
	b->memory_bytes = r->memory_bytes;
	b->cpu_milli = r->cpu_milli;
	b->pids = r->pids;
	b->state = b->target = (enum box_state)r->state;
	b->created_ms = r->created_ms;
	b->changed_ms = r->changed_ms;
	b->labels = list_dup(&r->labels);
	b->env = list_dup(&r->env);
	box_list(b);
	return b;
}

void
box_row(const struct box *b, struct row_sandbox *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->version = 1;
	(void)str_copy(ret->id, b->id, sizeof(ret->id));
	(void)str_copy(ret->tenant, b->tenant, sizeof(ret->tenant));
	(void)str_copy(ret->created_by, b->created_by,
	    sizeof(ret->created_by));
	(void)str_copy(ret->name, b->name, sizeof(ret->name));
	(void)str_copy(ret->rootfs, b->rootfs, sizeof(ret->rootfs));
	ret->network = b->network;
	ret->memory_bytes = b->memory_bytes;
	ret->cpu_milli = b->cpu_milli;
	ret->pids = b->pids;
	ret->state = b->state;
	(void)str_copy(ret->reason, b->reason, sizeof(ret->reason));
	ret->created_ms = b->created_ms;
	ret->changed_ms = b->changed_ms;
	ret->labels = b->labels;
	ret->env = b->env;
}

struct box *
box_ref(struct box *b)
{
	b->refs++;
	return b;
}

void
box_unref(struct box *b)
{
	if (--b->refs != 0)
		return;
	(void)event_del(&b->retry);
	denials_free(b);
	list_free(&b->labels);
	list_free(&b->env);
	allowlist_free(b->list);
	free(b);
}

void
box_gone(struct box *b)
{
	if (!b->listed)
		return;
	(void)event_del(&b->retry);
	box_name_hold(b, 0);
	LIST_REMOVE(b, by_id);
	TAILQ_REMOVE(&boxes, b, all);
	b->listed = 0;
	nboxes--;
	sessions_drop(b);
	denials_free(b);
	box_unref(b);
}

/* ---- looking up --------------------------------------------------- */

struct box *
box_by_id(const char *id)
{
	struct box	*b;

	LIST_FOREACH(b, &by_id[hash(id)], by_id)
		if (strcmp(b->id, id) == 0)
			return b;
	return NULL;
}

struct box *
box_by_name(const char *tenant, const char *name)
{
	struct box	*b;

	LIST_FOREACH(b, &by_name[hash(name)], by_name)
		if (strcmp(b->name, name) == 0 &&
		    strcmp(b->tenant, tenant) == 0)
			return b;
	return NULL;
}

/* The only box whose id begins so; names are lower case, ids upper. */
static struct box *
box_by_prefix(const char *tenant, const char *prefix, int *ret_many)
{
	struct box	*b, *found = NULL;
	size_t		 n = strlen(prefix);

	if (n < BOX_PREFIX || n >= ULID_LEN)
		return NULL;
	TAILQ_FOREACH(b, &boxes, all) {
		if (strncmp(b->id, prefix, n) != 0 ||
		    strcmp(b->tenant, tenant) != 0)
			continue;
		if (found != NULL) {
			*ret_many = 1;
			return NULL;
		}
		found = b;
	}
	return found;
}

struct box *
box_find(const char *tenant, const char *ref, int *ret_many)
{
	struct box	*b;

	*ret_many = 0;
	if (ulid_ok(ref)) {
		b = box_by_id(ref);
		return b != NULL && strcmp(b->tenant, tenant) == 0 ? b : NULL;
	}
	if ((b = box_by_prefix(tenant, ref, ret_many)) != NULL || *ret_many)
		return b;
	return box_by_name(tenant, ref);
}

struct box *
box_next(const char *tenant, const char *after)
{
	struct box	*b = after[0] == '\0' ? NULL : box_by_id(after);

	/* the cursor's own box may be gone */
	b = b != NULL ? TAILQ_NEXT(b, all) : TAILQ_FIRST(&boxes);
	for (; b != NULL; b = TAILQ_NEXT(b, all))
		if (strcmp(b->id, after) > 0 &&
		    (tenant == NULL || strcmp(b->tenant, tenant) == 0))
			return b;
	return NULL;
}

unsigned int
box_count(void)
{
	return nboxes;
}

/* ---- moves -------------------------------------------------------- */

struct move {
	struct box	*box;		/* referenced */
	enum box_state	 to;
	char		 reason[128];
	int		 durable;
	uint64_t	 since;		/* us, when it was asked for */
	void		(*done)(struct box *, enum wb_code, void *);
	void		*arg;
};

static void
box_arrive(struct box *b, enum box_state to, const char *reason)
{
	log_debug("box %s: %s to %s%s%s", b->id, state_name(b->state),
	    state_name(to), reason[0] == '\0' ? "" : ": ", reason);
	b->state = to;
	b->changed_ms = now_ms();
	(void)str_copy(b->reason, reason, sizeof(b->reason)); /* cut is fine */
	if (b->listed)
		box_name_hold(b, holds_name(to));
	if (to != BOX_READY && to != BOX_DRAINING && b->health != ABSENT)
		box_health(b, UNKNOWN, "");
}

static void
box_moved(void *arg, const struct msg *m)
{
	struct move	*mv = arg;
	enum wb_code	 code = peer_code(m);

	if (!mv->box->astray && (code == CODE_BAD_TRANSITION ||
	    code == CODE_NOT_FOUND))
		fatalx("box %s: stored refuses %s: %s", mv->box->id,
		    state_name(mv->to), peer_detail(m));
	if (code != CODE_NONE) {
		log_warnx("box %s: record %s: %s", mv->box->id,
		    state_name(mv->to), peer_detail(m));
		mv->box->astray = 1;
		mv->box->target = mv->box->state;
	} else if (mv->durable) {
		metrics_took(METRIC_COMMIT, mv->since);
		box_arrive(mv->box, mv->to, mv->reason);
	}
	if (mv->done != NULL)
		mv->done(mv->box, code, mv->arg);
	box_unref(mv->box);
	free(mv);
}

void
box_move(struct box *b, enum box_state to, const char *reason, int durable,
    const struct move_more *more, void (*done)(struct box *, enum wb_code,
    void *), void *arg)
{
	struct msg_sandbox_move	 m = { .to = to, .durable = (uint64_t)durable };
	struct move		*mv = xcalloc(1, sizeof(*mv));

	mv->box = box_ref(b);
	mv->to = to;
	mv->durable = durable;
	mv->since = mono_us();
	mv->done = done;
	mv->arg = arg;
	(void)str_copy(mv->reason, reason, sizeof(mv->reason)); /* cut */
	(void)str_copy(m.id, b->id, sizeof(m.id));
	(void)str_copy(m.reason, mv->reason, sizeof(m.reason));
	(void)str_copy(m.actor, more != NULL && more->actor != NULL ?
	    more->actor : "apid", sizeof(m.actor));
	(void)str_copy(m.request, more != NULL && more->request != NULL ?
	    more->request : "", sizeof(m.request));
	if (b->made) {	/* what privd made of it: in the move after that */
		b->made = 0;
		(void)str_copy(m.rootfs, b->rootfs, sizeof(m.rootfs));
		m.memory_bytes = b->memory_bytes;
		m.cpu_milli = b->cpu_milli;
		m.pids = b->pids;
	}
	if (more != NULL) {
		m.proof.data = more->proof;
		m.proof.len = more->proof_len;
	}
	b->target = to;
	if (!durable)
		box_arrive(b, to, mv->reason);
	peer_ask(env.stored, MSG_SANDBOX_MOVE, &m, T_STORE, box_moved, mv);
}

/* ---- what others are told ----------------------------------------- */

void
box_health(struct box *b, enum wb_health h, const char *part)
{
	if (b->health != h || strcmp(b->part, part) != 0)
		log_debug("box %s: %s%s%s", b->id, health_name(h),
		    part[0] == '\0' ? "" : ": ", part);
	b->health = h;
	(void)str_copy(b->part, part, sizeof(b->part));	/* cut is fine */
}

void
box_unheard(struct box *b)
{
	box_health(b, SUSPECT, b->misfit ? code_name(CODE_RUNNER_VERSION) :
	    "control");
}

int
box_usable(const struct box *b)
{
	return b->listed && b->state == BOX_READY && b->runner != NULL &&
	    b->boot == NULL && b->removing == REMOVE_NOT;
}

int
box_talks(const struct box *b)
{
	return b->listed && b->runner != NULL && b->boot == NULL &&
	    (b->state == BOX_READY || b->state == BOX_DRAINING);
}

enum wb_code
box_refuses_talk(const struct box *b, const char **ret_why)
{
	enum wb_code	code;

	if (box_talks(b))
		return CODE_NONE;
	code = box_refuses(b, ret_why);
	return code == CODE_NONE ? CODE_NOT_READY : code;
}

enum wb_code
box_refuses(const struct box *b, const char **ret_why)
{
	if (b->state == BOX_QUARANTINED || b->condemned) {
		*ret_why = "The sandbox is quarantined: look at it, at its "
		    "proof, or remove it.";
		return CODE_QUARANTINED;
	}
	if (b->state != BOX_READY || b->removing != REMOVE_NOT) {
		*ret_why = b->removing != REMOVE_NOT ?
		    "The sandbox is being removed." :
		    "The sandbox is not READY.";
		return CODE_NOT_READY;
	}
	if (b->frozen) {
		*ret_why = "The sandbox is frozen: it wrote most while the "
		    "server's disk ran short. It goes on when there is room "
		    "again.";
		return CODE_DISK_FLOOR;
	}
	if (b->misfit) {
		*ret_why = "What runs in the sandbox speaks a version of the "
		    "protocol that this server does not: see `workbox "
		    "version'. Remove the sandbox and make it anew, or serve "
		    "once more with the release that made it.";
		return CODE_RUNNER_VERSION;
	}
	if (!box_usable(b)) {
		*ret_why = "The sandbox runs, but is not connected yet: try "
		    "again.";
		return CODE_BUSY;
	}
	return CODE_NONE;
}

static json_t *
cpus_json(uint64_t milli)
{
	return milli % 1000 == 0 ? json_integer((json_int_t)(milli / 1000)) :
	    json_real((double)milli / 1000);
}

json_t *
box_row_json(const struct row_sandbox *r)
{
	return json_pack("{ss ss ss so ss sn ss sn sn sn s{sI so sI} so sn "
	    "so so ss so}",
	    "id", r->id, "name", r->name, "state",
	    state_name((unsigned int)r->state),
	    "stateReason", text_json_or_null(r->reason),
	    "health", health_name(UNKNOWN), "healthReason",
	    "network", network_name((unsigned int)r->network), "denied",
	    "traffic", "names",
	    "limits", "memoryBytes", (json_int_t)r->memory_bytes,
	    "cpus", cpus_json(r->cpu_milli), "pids", (json_int_t)r->pids,
	    "rootfs", text_json_or_null(r->rootfs),
	    "runner", "labels", list_to_object(&r->labels),
	    "createdAt", time_json(r->created_ms),
	    "createdBy", r->created_by,
	    "changedAt", time_json(r->changed_ms));
}

/* What its runner says of itself, as long as it is there to say it. */
static json_t *
runner_json(const struct box *b)
{
	if (b->runner == NULL && !b->misfit)
		return json_null();
	return json_pack("{so so so}",
	    "version", text_json_or_null(b->runner_version),
	    "protocol", b->speaks == 0 ? json_null() :
	    json_integer((json_int_t)b->speaks),
	    "sessionsMax", b->sessions_max == 0 ? json_null() :
	    json_integer((json_int_t)b->sessions_max));
}

json_t *
box_json(const struct box *b)
{
	struct row_sandbox	 r;
	json_t			*o;

	box_row(b, &r);
	o = box_row_json(&r);
	(void)json_object_set_new(o, "health",	/* NULL only w/o memory */
	    json_string(health_name(b->health)));
	(void)json_object_set_new(o, "healthReason",
	    text_json_or_null(b->part));
	(void)json_object_set_new(o, "runner", runner_json(b));
	(void)json_object_set_new(o, "denied", denials_totals(b));
	(void)json_object_set_new(o, "traffic", denials_traffic(b));
	return o;
}
