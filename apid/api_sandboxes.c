/*
 * api_sandboxes.c: make, list, look at and remove sandboxes.
 *
 * Bodies and parameters were held against their schemas before (http_check);
 * here is what only this server can know: names that are taken, ceilings,
 * networks that there are not.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define LABELS_MAX	8192		/* bytes; proto.def, sandbox */
#define ENV_MAX		16384
#define NAME_TRIES	100
#define DELETED_MS	(24ULL * 3600 * 1000)
#define LIST_LIMIT	100
#define GRACE_S		10

/* ---- a row of stored ----------------------------------------------- */

struct ask_row {
	struct http_req	*req;
	void		(*fn)(struct http_req *, const struct row_sandbox *);
};

/* A row of this tenant, by id; deleted ones for their 24 hours. */
static void
row_told(void *arg, const struct msg *m)
{
	struct ask_row		*a = arg;
	struct http_req		*r = a->req;
	struct row_sandbox	 row;
	struct wire_bin		 items[512];
	void			(*fn)(struct http_req *,
				    const struct row_sandbox *) = a->fn;

	free(a);
	if (m->row->type == MSG_ERROR &&
	    m->body.error.code != CODE_NOT_FOUND) {
		api_fail(r, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
		return;
	}
	if (m->row->type != MSG_ERROR && wire_decode_into(&wire_row_sandbox,
	    m->body.sandbox_is.row.data, m->body.sandbox_is.row.len, items,
	    512, &row) == -1)
		fatalx("sandbox row of stored: %s", wire_error());
	if (m->row->type == MSG_ERROR ||
	    strcmp(row.tenant, http_tenant(r)) != 0 ||
	    (row.state == BOX_DELETED &&
	    row.changed_ms + DELETED_MS < now_ms()))
		api_no_box(r);
	else
		fn(r, &row);
}

static void
row_ask(struct http_req *r, const char *id,
    void (*fn)(struct http_req *, const struct row_sandbox *))
{
	struct msg_sandbox_get	 m = { 0 };
	struct ask_row		*a = xcalloc(1, sizeof(*a));

	a->req = r;
	a->fn = fn;
	(void)str_copy(m.id, id, sizeof(m.id));
	peer_ask(env.stored, MSG_SANDBOX_GET, &m, T_STORE, row_told, a);
}

/* ---- one, with its names ------------------------------------------ */

struct ask_names {
	struct http_req	*req;
	int		 status;
	struct box	*box;		/* referenced */
};

static json_t *
named_json(const struct wire_bin *row)
{
	struct row_named	n;

	if (wire_decode_into(&wire_row_named, row->data, row->len, NULL, 0,
	    &n) == -1)
		return NULL;
	return json_pack("{ss sI sI sI sI}", "name", n.name,
	    "connections", (json_int_t)n.connections,
	    "open", (json_int_t)n.open,
	    "sentBytes", (json_int_t)n.sent_bytes,
	    "receivedBytes", (json_int_t)n.received_bytes);
}

/* What netd does not tell is null: the rest is told all the same. */
static void
names_told(void *arg, const struct msg *m)
{
	struct ask_names	*a = arg;
	const struct wire_list	*rows = &m->body.net_names_are.rows;
	json_t			*o = box_json(a->box), *names = json_null();
	size_t			 i;

	if (m->row->type == MSG_NET_NAMES_ARE)
		names = json_array();
	for (i = 0; json_is_array(names) && i < rows->n; i++)
		(void)json_array_append_new(names,	/* NULL: left out */
		    named_json(&rows->v[i]));
	(void)json_object_set_new(o, "names", names);
	http_reply_json(a->req, a->status, o);
	box_unref(a->box);
	free(a);
}

void
api_reply_box(struct http_req *r, int status, struct box *b)
{
	struct msg_net_names	 m = { .wire_end = 0 };
	struct ask_names	*a;

	if (b->network != NETWORK_ALLOWLIST || b->state != BOX_READY) {
		http_reply_json(r, status, box_json(b));
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->req = r;
	a->status = status;
	a->box = box_ref(b);
	(void)str_copy(m.id, b->id, sizeof(m.id));
	peer_ask(env.netd, MSG_NET_NAMES, &m, T_PRIVD, names_told, a);
}

/* ---- create ------------------------------------------------------- */

static int
create_network(struct http_req *r, const json_t *body, unsigned int *ret)
{
	const json_t	*n = json_object_get(body, "network");

	*ret = network_default();
	if (n != NULL && network_asked(r, json_string_value(n), ret) == -1)
		return -1;
	if (*ret != NETWORK_ALLOWLIST &&
	    json_object_get(body, "allow") != NULL) {
		http_fail(r, CODE_BAD_REQUEST, "allow", "Expected: nothing, "
		    "for only \"network\": \"allowlist\" has a list.");
		return -1;
	}
	return 0;
}

static int
create_limit(struct http_req *r, const char *field, uint64_t v, uint64_t max)
{
	if (v <= max)
		return 0;
	if (strcmp(field, "limits.cpus") == 0)
		http_fail(r, CODE_LIMIT_ABOVE_CEILING, field,
		    "Expected: at most %.15g.", (double)max / 1000);
	else
		http_fail(r, CODE_LIMIT_ABOVE_CEILING, field,
		    "Expected: at most %llu.", (unsigned long long)max);
	return -1;
}

/* The limits that are asked for, or the defaults, into a row. */
static int
create_limits(struct http_req *r, const json_t *body, struct row_sandbox *row)
{
	const struct conf	*c = env.conf;
	const json_t		*l = json_object_get(body, "limits"), *v;

	row->memory_bytes = c->default_memory;
	row->cpu_milli = c->default_cpu_milli;
	row->pids = c->default_pids;
	if ((v = json_object_get(l, "memoryBytes")) != NULL)
		row->memory_bytes = (uint64_t)json_integer_value(v);
	if ((v = json_object_get(l, "cpus")) != NULL)
		row->cpu_milli = (uint64_t)llround(json_number_value(v) *
		    1000);
	if ((v = json_object_get(l, "pids")) != NULL)
		row->pids = (uint64_t)json_integer_value(v);
	if (create_limit(r, "limits.memoryBytes", row->memory_bytes,
	    c->max_memory) == -1 || create_limit(r, "limits.cpus",
	    row->cpu_milli, c->max_cpu_milli) == -1 ||
	    create_limit(r, "limits.pids", row->pids, c->max_pids) == -1)
		return -1;
	return 0;
}

/* The name that is asked for, or a pleasant one, if it is free. */
static int
create_name(struct http_req *r, const json_t *body, char ret[64])
{
	const char	*n = json_string_value(json_object_get(body, "name"));
	int		 i;

	if (n == NULL) {
		for (i = 0; i < NAME_TRIES; i++) {
			text_name(ret);
			if (box_by_name(http_tenant(r), ret) == NULL)
				return 0;
		}
		http_fail(r, CODE_BUSY, "name", "No free name was found: "
		    "write one.");
		return -1;
	}
	if (strlen(n) == ULID_LEN || !wire_charset_ok(CS_NAME, n, strlen(n))) {
		http_fail(r, CODE_BAD_REQUEST, "name", "A name is 1 to 63 "
		    "of a-z, 0-9, dot, dash and underscore, begins with a "
		    "letter or digit, and never has 26 characters.");
		return -1;
	}
	if (box_by_name(http_tenant(r), n) != NULL) {
		http_fail(r, CODE_NAME_TAKEN, "name", "A sandbox named "
		    "\"%s\" is there already.", n);
		return -1;
	}
	return str_copy(ret, n, 64);
}

/* The schema's patterns see bytes, not C1 controls, which are two. */
static int
label_text(struct http_req *r, const struct wire_bin *label)
{
	char		 field[80] = "labels.";	/* a name has 63 at most */
	const char	*eq = memchr(label->data, '=', label->len);
	size_t		 n = strlen(field);

	if (wire_charset_ok(CS_TEXT, label->data, label->len))
		return 0;
	memcpy(field + n, label->data, (size_t)(eq -
	    (const char *)label->data));
	http_fail(r, CODE_BAD_REQUEST, field, "Expected: text without "
	    "control characters.");
	return -1;
}

int
api_labels(struct http_req *r, const struct wire_list *labels)
{
	size_t	i;

	if (list_bytes(labels) > LABELS_MAX) {
		http_fail(r, CODE_BAD_REQUEST, "labels", "Labels are larger "
		    "than %d bytes together.", LABELS_MAX);
		return -1;
	}
	for (i = 0; i < labels->n; i++)
		if (label_text(r, &labels->v[i]) == -1)
			return -1;
	return 0;
}

static int
create_lists(struct http_req *r, struct row_sandbox *row)
{
	if (api_labels(r, &row->labels) == -1)
		return -1;
	if (list_bytes(&row->env) > ENV_MAX) {
		http_fail(r, CODE_BAD_REQUEST, "env", "The environment is "
		    "larger than %d bytes.", ENV_MAX);
		return -1;
	}
	return 0;
}

/* What a failed create answers: the codes that routes.def names. */
static enum wb_code
create_code(enum wb_code code)
{
	switch ((int)code) {
	case CODE_NAME_TAKEN:
	case CODE_ROOTFS_UNKNOWN:
	case CODE_LIMIT_ABOVE_CEILING:
	case CODE_NETWORK_UNSUPPORTED:
	case CODE_PROOF_DIFFERS:
	case CODE_WRONG_NONCE:
	case CODE_QUARANTINED:
	case CODE_HOST_MEMORY:
	case CODE_NO_SPACE_FOR_BOX:
	case CODE_TOO_MANY:
	case CODE_BUSY:
	case CODE_DISK_FLOOR:
	case CODE_DISK_FULL:
		return code;
	default:
		return CODE_CREATE_FAILED;
	}
}

static void
create_done(struct box *b, const struct boot_result *res, void *arg)
{
	struct http_req	*r = arg;
	enum wb_code	 code = create_code(res->code);
	json_t		*m;

	if (res->code == CODE_NONE) {
		api_reply_box(r, 201, b);
		return;
	}
	m = json_pack("{ss}", "sandboxId", b->id);
	if (api_field(code) != NULL)
		(void)json_object_set_new(m, "field",
		    json_string(api_field(code)));
	if (code == CODE_CREATE_FAILED && res->log != NULL)
		(void)json_object_set(m, "launchLog", res->log);
	if (b->condemned)
		http_fail_with(r, code, m, "The sandbox is quarantined: %s.",
		    res->detail);
	else
		http_fail_with(r, code, m, "%s", res->detail);
}

static void
create_recorded(struct box *b, enum wb_code code, const char *detail,
    void *arg)
{
	struct http_req	*r = arg;

	if (code != CODE_NONE) {
		api_fail(r, code, detail);
		return;
	}
	key_used(r);
	if (http_query_u64(r, "wait", 1) == 0) {
		boot_unlisten(b, r);
		http_reply_json(r, 202, box_json(b));
	}
}

static void
made_failed(struct http_req *r, const char *id)
{
	http_fail_with(r, CODE_CREATE_FAILED, json_pack("{ss}", "sandboxId",
	    id), "It could not be made then, and is not tried again under "
	    "the same key.");
}

static void
made_gone(struct http_req *r, const char *id)
{
	http_fail_with(r, CODE_GONE, json_pack("{ss}", "sandboxId", id),
	    "It was made then, and has been removed.");
}

/* Whether it never came to READY, and nobody makes it any more. */
static int
made_in_vain(const struct box *b)
{
	return b->boot == NULL && (b->state == BOX_REQUESTED ||
	    b->state == BOX_PROVISIONING || b->state == BOX_BOOTSTRAPPING ||
	    strcmp(b->reason, code_name(CODE_CREATE_FAILED)) == 0);
}

/* The row of one that is no more. */
static void
made_row(struct http_req *r, const struct row_sandbox *row)
{
	if (strcmp(row->reason, code_name(CODE_CREATE_FAILED)) == 0)
		made_failed(r, row->id);
	else
		made_gone(r, row->id);
}

/* The sandbox that the key made before, as it is now. */
static void
create_made(struct http_req *r, const struct key_made *made)
{
	struct box	*b = box_by_id(made->sandbox);

	http_add_header(r, "Idempotent-Replayed", "true");
	if (b == NULL)
		row_ask(r, made->sandbox, made_row);
	else if (http_query_u64(r, "wait", 1) == 0)
		http_reply_json(r, 202, box_json(b));
	else if (boot_follow(b, create_done, r))
		return;
	else if (made_in_vain(b))
		made_failed(r, b->id);
	else if (b->state == BOX_DELETING || b->state == BOX_DELETED)
		made_gone(r, b->id);
	else if (b->condemned)
		http_fail_with(r, CODE_QUARANTINED, json_pack("{ss}",
		    "sandboxId", b->id), "The sandbox is quarantined: %s.",
		    b->reason);
	else
		api_reply_box(r, 201, b);
}

/* list (or NULL) becomes the box's. */
static void
create_go(struct http_req *r, const struct key *key, unsigned int network,
    struct allowlist *list)
{
	const json_t		*body = http_json(r);
	const char		*rootfs;
	struct row_sandbox	 row = { 0 };
	struct box		*b;
	char			 id[27];

	if (create_limits(r, body, &row) == -1 ||
	    create_name(r, body, row.name) == -1) {
		allowlist_free(list);
		return;
	}
	row.labels = list_from_object(json_object_get(body, "labels"));
	row.env = list_from_object(json_object_get(body, "env"));
	if (create_lists(r, &row) == -1) {
		list_free(&row.labels);
		list_free(&row.env);
		allowlist_free(list);
		return;
	}
	ulid_new(id);
	b = box_new(id, http_tenant(r), http_actor(r), row.name);
	if ((rootfs = json_string_value(json_object_get(body,
	    "rootfs"))) != NULL)
		(void)str_copy(b->rootfs, rootfs, sizeof(b->rootfs));
	b->network = network;
	b->list = list;
	b->memory_bytes = row.memory_bytes;
	b->cpu_milli = row.cpu_milli;
	b->pids = row.pids;
	b->labels = row.labels;
	b->env = row.env;
	boot_create(b, http_actor(r), http_id(r), key, create_recorded,
	    create_done, r);
}

struct create {
	struct http_req		*req;
	const struct key	*key;		/* borrowed: the request's */
};

static void
create_stopping(struct http_req *r)
{
	http_fail(r, CODE_STOPPING, NULL, "The server stops.");
}

static void
create_listed(void *arg, struct allowlist *list)
{
	struct create	*c = arg;

	if (list != NULL && env.stopping) {
		allowlist_free(list);
		create_stopping(c->req);
	} else if (list != NULL)
		create_go(c->req, c->key, NETWORK_ALLOWLIST, list);
	free(c);
}

static void
create_begin(struct http_req *r, const struct key *key,
    const struct key_made *made)
{
	struct create	*c;
	unsigned int	 network;

	if (made != NULL)
		create_made(r, made);
	else if (env.stopping)
		create_stopping(r);
	else if (create_network(r, http_json(r), &network) == -1)
		;				/* was answered */
	else if (network != NETWORK_ALLOWLIST)
		create_go(r, key, network, NULL);
	else {
		c = xcalloc(1, sizeof(*c));
		c->req = r;
		c->key = key;
		allowlist_take(r, "allow", create_listed, c);
	}
}

void
api_sandbox_create(struct http_req *r)
{
	key_begin(r, create_begin);
}

/* ---- list --------------------------------------------------------- */

/* One `label=': "key" or "key=value". */
static int
label_matches(const struct box *b, const char *want)
{
	const char	*eq = strchr(want, '='), *v;
	size_t		 klen = eq == NULL ? strlen(want) :
			    (size_t)(eq - want), len;

	v = list_value(&b->labels, want, klen, &len);
	if (v == NULL || eq == NULL)
		return v != NULL;
	return len == strlen(eq + 1) && memcmp(v, eq + 1, len) == 0;
}

/* Each label that is asked for has a key. */
static int
list_labels_ok(struct http_req *r)
{
	const char	*s;
	unsigned int	 i;

	for (i = 0; (s = http_query_nth(r, "label", i)) != NULL; i++)
		if (s[0] == '\0' || s[0] == '=') {
			http_fail(r, CODE_BAD_REQUEST, "label",
			    "Expected: KEY or KEY=VALUE.");
			return 0;
		}
	return 1;
}

/* The state that is asked for is one that a list can have. */
static int
list_state_ok(struct http_req *r)
{
	const char	*s = http_query(r, "state");
	char		 names[160];
	size_t		 len = 0;
	unsigned int	 i;

	if (s == NULL)
		return 1;
	for (i = 0; i < BOX_NSTATES; i++) {
		if (i == BOX_DELETED)
			continue;
		if (strcmp(s, state_name(i)) == 0)
			return 1;
		len += (size_t)snprintf(names + len, sizeof(names) - len,
		    "%s%s", len > 0 ? ", " : "", state_name(i));
	}
	http_fail(r, CODE_BAD_REQUEST, "state", "Expected one of: %s.",
	    names);
	return 0;
}

static int
list_matches(const struct http_req *r, const struct box *b)
{
	const char	*s;
	unsigned int	 i;

	if (b->state == BOX_DELETED)
		return 0;
	if ((s = http_query(r, "state")) != NULL &&
	    strcmp(s, state_name(b->state)) != 0)
		return 0;
	if ((s = http_query(r, "name")) != NULL && strcmp(s, b->name) != 0)
		return 0;
	for (i = 0; (s = http_query_nth(r, "label", i)) != NULL; i++)
		if (!label_matches(b, s))
			return 0;
	return 1;
}

void
api_sandbox_list(struct http_req *r)
{
	const char	*after = http_query(r, "after");
	uint64_t	 limit = http_query_u64(r, "limit", LIST_LIMIT);
	json_t		*items, *next = NULL;
	struct box	*b;

	if (after == NULL)
		after = "";
	if (after[0] != '\0' && !ulid_ok(after)) {
		http_fail(r, CODE_BAD_REQUEST, "after", "Write the "
		    "`nextCursor' of the page before.");
		return;
	}
	if (!list_state_ok(r) || !list_labels_ok(r))
		return;
	items = json_array();
	for (b = box_next(http_tenant(r), after); b != NULL;
	    b = box_next(http_tenant(r), b->id)) {
		if (!list_matches(r, b))
			continue;
		if (json_array_size(items) == limit) {
			next = json_copy(json_object_get(json_array_get(items,
			    limit - 1), "id"));
			break;
		}
		(void)json_array_append_new(items, box_json(b));
	}
	http_reply_json(r, 200, json_pack("{soso}", "items", items,
	    "nextCursor", next == NULL ? json_null() : next));
}

/* ---- get, of what is gone too ------------------------------------- */

/* The box, or NULL: its row was asked for, or it was answered. */
static struct box *
box_or_row(struct http_req *r,
    void (*fn)(struct http_req *, const struct row_sandbox *))
{
	const char	*id = http_param(r, "id");

	if (ulid_ok(id) && box_by_id(id) == NULL) {
		row_ask(r, id, fn);
		return NULL;
	}
	return api_box(r);
}

static void
reply_row(struct http_req *r, const struct row_sandbox *row)
{
	json_t	*o = box_row_json(row);

	(void)json_object_set_new(o, "health",	/* NULL only w/o memory */
	    json_string(health_name(ABSENT)));
	http_reply_json(r, 200, o);
}

void
api_sandbox_get(struct http_req *r)
{
	struct box	*b = box_or_row(r, reply_row);

	if (b != NULL)
		api_reply_box(r, 200, b);
}

static void
reply_proof(struct http_req *r, const struct row_sandbox *row)
{
	if (row->proof.len == 0)
		http_fail(r, CODE_NOT_READY, NULL, "There is no evidence "
		    "yet: the sandbox has not told its facts.");
	else
		http_reply_bytes(r, 200, "application/json", row->proof.data,
		    row->proof.len);
}

void
api_sandbox_proof(struct http_req *r)
{
	struct box	*b;

	if ((b = box_or_row(r, reply_proof)) != NULL)
		row_ask(r, b->id, reply_proof);
}

/* ---- delete ------------------------------------------------------- */

struct delete {
	struct http_req	*req;
	struct box_wait	 wait;
};

static void
delete_done(struct box_wait *w, struct box *b)
{
	struct delete	*d = w->arg;

	if (b->state == BOX_DELETING || b->state == BOX_DELETED)
		http_reply_json(d->req, 200, box_json(b));
	else
		http_fail(d->req, CODE_BUSY, NULL, "It could not be done "
		    "yet, and is tried again until it is; the server's log "
		    "says why.");
	free(d);
}

void
api_sandbox_delete(struct http_req *r)
{
	uint64_t	 grace = http_query_u64(r, "graceSeconds", GRACE_S);
	struct delete	*d;
	struct box	*b;

	if ((b = box_or_row(r, reply_row)) == NULL)
		return;
	d = xcalloc(1, sizeof(*d));
	d->req = r;
	d->wait.fn = delete_done;
	d->wait.arg = d;
	remove_box(b, grace * 1000, "deleted", http_actor(r), http_id(r),
	    &d->wait);
}
