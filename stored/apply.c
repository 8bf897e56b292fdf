/*
 * apply.c: one job within a write transaction: the tables, and the records
 * that say what changed, always together.
 *
 * Every handler checks all before it writes anything, so that a refused job
 * leaves the transaction as it was; after the first write only LMDB itself
 * can fail, and then the whole transaction is aborted.  A row that does not
 * decode, or says what a row of that message cannot say, is BAD_MESSAGE.
 *
 * Names: a box holds its name while it is live, that is until DELETING.  One
 * that is quarantined out of DELETING takes its name again if it is free, and
 * cannot be released to READY while another box has it.
 *
 * Must never: write after a refusal, refuse after a write, trust the order or
 * the sense of what apid asks.
 */
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "stored.h"

#define ROW_VERSION	1
#define NAME_KEY	128	/* tenant, '/', name */
#define SESSION_KEY	(2UL * ULID_LEN)
#define EXPIRY_KEY	(8UL + ULID_LEN)

enum { SESSION_STARTING, SESSION_RUNNING, SESSION_ENDED };

union event_body {
#define EVENT(num, N, n, s)	struct event_##n n;
#include "events.def"
};

/* Records that come by EVENT_APPEND; all others follow from the tables. */
static const struct {
	unsigned int	type;
	unsigned int	askers;		/* 1 << enum asker */
} appended[] = {
	{ EVENT_SERVER_STARTED, 1 << ASK_PRIVD | 1 << ASK_APID },
	{ EVENT_SERVER_STOPPED, 1 << ASK_PRIVD | 1 << ASK_APID },
	{ EVENT_SANDBOX_FROZEN, 1 << ASK_APID },
	{ EVENT_SANDBOX_RELEASED, 1 << ASK_APID },
	{ EVENT_SANDBOX_THAWED, 1 << ASK_APID },
	{ EVENT_SESSION_SIGNALLED, 1 << ASK_APID },
	{ EVENT_RECONCILE_DONE, 1 << ASK_APID },
	{ EVENT_AUTH_FAILED, 1 << ASK_APID },
	{ EVENT_EGRESS_DENIED, 1 << ASK_APID },
};

int
refuse(struct job *j, unsigned int code, const char *fmt, ...)
{
	va_list	ap;

	j->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(j->detail, sizeof(j->detail), fmt, ap); /* cut */
	va_end(ap);
	return 0;
}

/* ---- records ----------------------------------------------------- */

/* Appends r, whose number, time and hash are filled in here. */
static int
put_record(struct store *s, unsigned int type, struct record *r,
    const void *data)
{
	struct head	*h = &s->head;
	uint64_t	 seq = h->seq + 1;
	ssize_t		 n;
	int		 rc;

	r->seq = seq;
	r->time_ms = s->now;
	r->type = event_find(type);
	r->data = data;
	r->prev = h->hash;
	r->hide_argv = s->hide_argv;
	if (r->type == NULL ||
	    (n = record_format(r, s->line, sizeof(s->line))) == -1)
		abort();	/* bounds of events.def; see record_test */
	r->data = NULL;		/* its life is the caller's */
	rc = db_put(s->txn, s->db->t[T_EVENTS], &seq, sizeof(seq), s->line,
	    (size_t)n, MDB_APPEND);
	if (rc != 0)
		return rc;
	record_hash(s->line, (size_t)n, h->hash);
	h->seq = seq;
	h->time_ms = s->now;
	return 0;
}

static int
appendable(unsigned int type, enum asker asker)
{
	size_t	i;

	for (i = 0; i < sizeof(appended) / sizeof(appended[0]); i++)
		if (appended[i].type == type)
			return (appended[i].askers & 1U << asker) != 0;
	return 0;
}

static int
outcome_ok(const char *s)
{
	return strcmp(s, "ok") == 0 || strcmp(s, "denied") == 0 ||
	    strcmp(s, "failed") == 0;
}

static int
apply_event(struct store *s, struct job *j)
{
	const struct msg_event_append	*m = &j->body.event_append;
	const struct event_row		*row;
	union event_body		 data;
	struct record			 r = {
		.tenant = m->tenant, .actor = m->actor,
		.sandbox = m->sandbox, .session = m->session,
		.request = m->request, .outcome = m->outcome,
		.reason = m->reason,
	};
	int				 rc;

	row = event_find((unsigned int)m->type);
	if (row == NULL || !appendable(row->type, j->asker))
		return refuse(j, CODE_BAD_MESSAGE, "record of type %llu is "
		    "not appended", (unsigned long long)m->type);
	if (!outcome_ok(m->outcome))
		return refuse(j, CODE_BAD_MESSAGE, "outcome is not ok, denied "
		    "or failed");
	if (wire_decode_into(row->desc, j->data, j->len, s->items[0],
	    ROW_ITEMS, &data) == -1)
		return refuse(j, CODE_BAD_MESSAGE, "%s", wire_error());
	if ((rc = put_record(s, row->type, &r, &data)) == 0)
		j->seq = s->head.seq;
	return rc;
}

/* ---- what a client's key made ------------------------------------ */

static int
get_key(struct store *s, const void *key, size_t len, struct row_key *ret)
{
	MDB_val	v;
	int	rc = db_get(s->txn, s->db->t[T_KEYS], key, len, &v);

	/* not wire_decode(), which is the other thread's; a key has no list */
	if (rc == 0 && wire_decode_into(&wire_row_key, v.mv_data, v.mv_size,
	    NULL, 0, ret) == -1)
		rc = MDB_CORRUPTED;
	return rc;
}

/* One that is there already, or is none, refuses the job. */
static int
key_check(struct store *s, struct job *j, const char *tenant,
    const char *key, const struct wire_bin *asked)
{
	struct row_key	old;
	char		k[CLIENT_KEY];
	int		rc;

	if (*key == '\0')
		return 0;
	if (asked->len != RECORD_HASH)
		return refuse(j, CODE_BAD_MESSAGE, "a key without a hash");
	rc = get_key(s, k, db_client_key(tenant, key, k), &old);
	if (rc == 0 && old.made_ms + KEY_MS > s->now)
		return refuse(j, CODE_EXISTS, "the key was used");
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
key_write(struct store *s, const char *tenant, const char *key,
    const struct wire_bin *asked, const char *sandbox, const char *session)
{
	struct row_key	row = { .version = ROW_VERSION, .asked = *asked,
			    .made_ms = s->now };
	char		k[8 + CLIENT_KEY];
	uint8_t		buf[256];
	uint64_t	ms = htobe64(s->now);
	size_t		len;
	ssize_t		n;
	int		rc;

	if (*key == '\0')
		return 0;
	memcpy(row.sandbox, sandbox, sizeof(row.sandbox));
	memcpy(row.session, session, strlen(session) + 1);
	if ((n = wire_encode(&wire_row_key, &row, buf, sizeof(buf))) == -1)
		abort();	/* bounded by its row */
	memcpy(k, &ms, sizeof(ms));
	len = db_client_key(tenant, key, k + 8);
	rc = db_put(s->txn, s->db->t[T_KEYS], k + 8, len, buf, (size_t)n, 0);
	return rc != 0 ? rc : db_put(s->txn, s->db->t[T_KEY_TIMES], k,
	    8 + len, "", 0, 0);
}

/* ---- sandboxes --------------------------------------------------- */

static size_t
name_key(const struct row_sandbox *row, char key[NAME_KEY])
{
	int	n = snprintf(key, NAME_KEY, "%s/%s", row->tenant, row->name);

	return n < 0 || n >= NAME_KEY ? 0 : (size_t)n;
}

/* Whose the name of a row is; an LMDB code. */
enum name_owner { NAME_FREE, NAME_MINE, NAME_OTHERS };

static int
name_owner(struct store *s, const struct row_sandbox *row,
    enum name_owner *ret)
{
	char	key[NAME_KEY];
	MDB_val	v;
	int	rc;

	rc = db_get(s->txn, s->db->t[T_NAMES], key, name_key(row, key), &v);
	if (rc == MDB_NOTFOUND)
		*ret = NAME_FREE;
	else if (rc != 0)
		return rc;
	else if (v.mv_size == ULID_LEN &&
	    memcmp(v.mv_data, row->id, ULID_LEN) == 0)
		*ret = NAME_MINE;
	else
		*ret = NAME_OTHERS;
	return 0;
}

static int
name_take(struct store *s, const struct row_sandbox *row)
{
	char	key[NAME_KEY];

	return db_put(s->txn, s->db->t[T_NAMES], key, name_key(row, key),
	    row->id, ULID_LEN, 0);
}

static int
name_drop(struct store *s, const struct row_sandbox *row)
{
	char	key[NAME_KEY];
	MDB_val	k = { name_key(row, key), key };

	return mdb_del(s->txn, s->db->t[T_NAMES], &k, NULL);
}

/*
 * Encodes before anything is written, since the row's lists may lead into
 * the map, where they are valid only until the next update.
 */
static void
pack_sandbox(struct store *s, const struct row_sandbox *row)
{
	ssize_t	n = wire_encode(&wire_row_sandbox, row, s->row,
	    sizeof(s->row));

	if (n == -1)
		abort();	/* decoded within the same bounds */
	s->row_len = (size_t)n;
}

static int
put_sandbox(struct store *s, const char *id)
{
	return db_put(s->txn, s->db->t[T_SANDBOXES], id, ULID_LEN, s->row,
	    s->row_len, 0);
}

/* Fills *ret from the table; the lists lead into the map. */
static int
get_sandbox(struct store *s, const char *id, struct row_sandbox *ret)
{
	MDB_val	v;
	int	rc;

	rc = db_get(s->txn, s->db->t[T_SANDBOXES], id, ULID_LEN, &v);
	if (rc != 0)
		return rc;
	return wire_decode_into(&wire_row_sandbox, v.mv_data, v.mv_size,
	    s->items[1], ROW_ITEMS, ret) == -1 ? MDB_CORRUPTED : 0;
}

static void
raise_last_id(struct store *s, const char *id)
{
	if (strcmp(id, s->head.last_id) > 0)
		memcpy(s->head.last_id, id, sizeof(s->head.last_id));
}

static int
create_write(struct store *s, const struct job *j, struct row_sandbox *row)
{
	const struct msg_sandbox_create	*m = &j->body.sandbox_create;
	struct event_sandbox_created	 ev = { 0 };
	struct record			 r = {
		.tenant = row->tenant, .actor = m->actor, .sandbox = row->id,
		.session = "", .request = m->request, .outcome = "ok",
		.reason = row->reason,
	};
	int				 rc;

	memcpy(ev.name, row->name, sizeof(ev.name));
	memcpy(ev.rootfs, row->rootfs, sizeof(ev.rootfs));
	row->changed_ms = s->now;
	pack_sandbox(s, row);
	if ((rc = put_sandbox(s, row->id)) == 0 &&
	    (rc = name_take(s, row)) == 0)
		rc = put_record(s, EVENT_SANDBOX_CREATED, &r, &ev);
	raise_last_id(s, row->id);
	return rc != 0 ? rc : key_write(s, row->tenant, m->key, &m->asked,
	    row->id, "");
}

static int
apply_create(struct store *s, struct job *j)
{
	const struct msg_sandbox_create	*m = &j->body.sandbox_create;
	struct row_sandbox		 row, old;
	enum name_owner			 owner;
	int				 rc;

	if (wire_decode_into(&wire_row_sandbox, j->data, j->len, s->items[0],
	    ROW_ITEMS, &row) == -1)
		return refuse(j, CODE_BAD_MESSAGE, "%s", wire_error());
	if (row.version != ROW_VERSION || row.state != BOX_REQUESTED ||
	    row.proof.len != 0)
		return refuse(j, CODE_BAD_MESSAGE, "row of a new sandbox: "
		    "version, state or proof");
	if (s->reserve < DB_RESERVE - DB_SLACK)
		return refuse(j, CODE_DISK_FULL, "disk full: the log's "
		    "reserve is short");
	if ((rc = get_sandbox(s, row.id, &old)) == 0)
		return refuse(j, CODE_EXISTS, "sandbox %s exists", row.id);
	if (rc != MDB_NOTFOUND || (rc = name_owner(s, &row, &owner)) != 0)
		return rc;
	if (owner != NAME_FREE)
		return refuse(j, CODE_NAME_TAKEN, "a live sandbox has the "
		    "name %s", row.name);
	rc = key_check(s, j, row.tenant, m->key, &m->asked);
	if (rc != 0 || j->code != CODE_NONE)
		return rc;
	return create_write(s, j, &row);
}

static int
live(uint64_t state)
{
	return state != BOX_DELETING && state != BOX_DELETED;
}

/* The evidence and what it said. */
static int
move_proof(struct store *s, struct record *r, const struct row_sandbox *row,
    const struct job *j)
{
	struct event_proof_verified	yes = { 0 };
	struct event_proof_failed	no = { 0 };
	int				rc;

	rc = db_put(s->txn, s->db->t[T_PROOFS], row->id, ULID_LEN, j->data,
	    j->len, 0);
	if (rc != 0)
		return rc;
	sha256_hex(j->data, j->len, yes.sha256);
	if (row->state != BOX_QUARANTINED) {
		r->outcome = "ok";
		return put_record(s, EVENT_PROOF_VERIFIED, r, &yes);
	}
	memcpy(no.sha256, yes.sha256, sizeof(no.sha256));
	memcpy(no.field, row->reason, sizeof(no.field));
	r->outcome = "failed";
	return put_record(s, EVENT_PROOF_FAILED, r, &no);
}

/* The name and the date of purge, by what the state means for them. */
static int
move_index(struct store *s, const struct row_sandbox *row,
    enum name_owner owner)
{
	uint8_t		key[EXPIRY_KEY];
	uint64_t	ms = htobe64(s->now);
	int		rc = 0;

	if (live(row->state) && owner == NAME_FREE)
		rc = name_take(s, row);
	else if (!live(row->state) && owner == NAME_MINE)
		rc = name_drop(s, row);
	if (rc != 0 || row->state != BOX_DELETED)
		return rc;
	memcpy(key, &ms, sizeof(ms));
	memcpy(key + sizeof(ms), row->id, ULID_LEN);
	return db_put(s->txn, s->db->t[T_EXPIRY], key, sizeof(key), "", 0, 0);
}

static void
move_row(struct store *s, const struct msg_sandbox_move *m,
    struct row_sandbox *row)
{
	row->state = m->to;
	row->changed_ms = s->now;
	memcpy(row->reason, m->reason, sizeof(row->reason));
	if (m->rootfs[0] != '\0')
		memcpy(row->rootfs, m->rootfs, sizeof(row->rootfs));
	if (m->memory_bytes != 0)
		row->memory_bytes = m->memory_bytes;
	if (m->cpu_milli != 0)
		row->cpu_milli = m->cpu_milli;
	if (m->pids != 0)
		row->pids = m->pids;
}

static int
move_write(struct store *s, struct job *j, struct row_sandbox *row,
    enum name_owner owner)
{
	const struct msg_sandbox_move	*m = &j->body.sandbox_move;
	struct event_sandbox_state	 ev = { 0 };
	struct record			 r = {
		.tenant = row->tenant, .actor = m->actor, .sandbox = row->id,
		.session = "", .request = m->request, .reason = m->reason,
	};
	int				 rc;

	/* the names of states are shorter than 16 bytes */
	(void)snprintf(ev.from, sizeof(ev.from), "%s",
	    state_name((unsigned int)row->state));
	(void)snprintf(ev.to, sizeof(ev.to), "%s",
	    state_name((unsigned int)m->to));
	memcpy(ev.reason, m->reason, sizeof(ev.reason));
	memcpy(ev.rootfs, m->rootfs, sizeof(ev.rootfs));
	move_row(s, m, row);
	pack_sandbox(s, row);
	if (j->len > 0 && (rc = move_proof(s, &r, row, j)) != 0)
		return rc;
	/* the removal that ends a creation; what is purged later is well */
	r.outcome = m->to == BOX_DELETING && strcmp(m->reason,
	    code_name(CODE_CREATE_FAILED)) == 0 ? "failed" : "ok";
	if ((rc = put_record(s, EVENT_SANDBOX_STATE, &r, &ev)) != 0 ||
	    (rc = move_index(s, row, owner)) != 0 ||
	    (rc = put_sandbox(s, row->id)) != 0)
		return rc;
	return m->to == BOX_DELETED ? lists_drop(s, row->id) : 0;
}

static int
apply_move(struct store *s, struct job *j)
{
	const struct msg_sandbox_move	*m = &j->body.sandbox_move;
	struct row_sandbox		 row;
	enum name_owner			 owner;
	int				 rc;

	rc = get_sandbox(s, m->id, &row);
	if (rc == MDB_NOTFOUND)
		return refuse(j, CODE_NOT_FOUND, "no sandbox %s", m->id);
	if (rc != 0 || (rc = name_owner(s, &row, &owner)) != 0)
		return rc;
	if (!state_move_ok((unsigned int)row.state, (unsigned int)m->to))
		return refuse(j, CODE_BAD_TRANSITION, "%s to %s is no "
		    "transition", state_name((unsigned int)row.state),
		    state_name((unsigned int)m->to));
	if (row.state == BOX_BOOTSTRAPPING && m->to == BOX_READY &&
	    j->len == 0)
		return refuse(j, CODE_BAD_REQUEST, "READY without a proof");
	if (row.state == BOX_QUARANTINED && live(m->to) &&
	    owner == NAME_OTHERS)
		return refuse(j, CODE_NAME_TAKEN, "another sandbox has the "
		    "name %s now", row.name);
	return move_write(s, j, &row, owner);
}

int
sandbox_live(struct store *s, struct job *j, const char *id,
    struct row_sandbox *ret)
{
	int	rc = get_sandbox(s, id, ret);

	if (rc == MDB_NOTFOUND)
		return refuse(j, CODE_NOT_FOUND, "no sandbox %s", id);
	if (rc == 0 && !live(ret->state))
		return refuse(j, CODE_BAD_TRANSITION, "the sandbox is %s",
		    state_name((unsigned int)ret->state));
	return rc;
}

/* Whether it has not been READY yet. */
static int
is_new(const struct row_sandbox *row)
{
	return row->state == BOX_REQUESTED || row->state ==
	    BOX_PROVISIONING || row->state == BOX_BOOTSTRAPPING;
}

static int
network_write(struct store *s, const struct job *j, struct row_sandbox *row,
    struct row_allowed *a)
{
	const struct msg_sandbox_network	*m = &j->body.sandbox_network;
	struct event_sandbox_network		 ev = { .entries = UINT64_MAX };
	struct record				 r = {
		.tenant = row->tenant, .actor = m->actor, .sandbox = row->id,
		.session = "", .request = m->request, .reason = m->reason,
		.outcome = m->reason[0] == '\0' ? "ok" : "failed",
	};
	int					 rc;

	/* the names of networks are shorter than 16 bytes */
	if (!is_new(row))
		(void)snprintf(ev.from, sizeof(ev.from), "%s",
		    network_name((unsigned int)row->network));
	(void)snprintf(ev.to, sizeof(ev.to), "%s",
	    network_name((unsigned int)m->network));
	row->network = m->network;
	row->changed_ms = s->now;
	pack_sandbox(s, row);
	if ((rc = lists_become(s, row->id, (unsigned int)m->network, a)) != 0)
		return rc;
	if (m->network == NETWORK_ALLOWLIST) {
		ev.entries = a->entries;
		memcpy(ev.sha256, a->sha256, sizeof(ev.sha256));
	}
	rc = put_record(s, EVENT_SANDBOX_NETWORK, &r, &ev);
	return rc != 0 ? rc : put_sandbox(s, row->id);
}

static int
apply_network(struct store *s, struct job *j)
{
	const struct msg_sandbox_network	*m = &j->body.sandbox_network;
	struct row_sandbox			 row;
	struct row_allowed			 a;
	int					 rc;

	rc = sandbox_live(s, j, m->id, &row);
	if (rc != 0 || j->code != CODE_NONE)
		return rc;
	if (is_new(&row) && (m->network != NETWORK_ALLOWLIST ||
	    m->network != row.network))
		return refuse(j, CODE_BAD_TRANSITION, "the sandbox is %s",
		    state_name((unsigned int)row.state));
	if ((rc = lists_row(s->db, s->txn, m->id, &a)) != 0)
		return rc;
	if (m->network == NETWORK_ALLOWLIST &&
	    !lists_there(&a, m->reason[0] != '\0'))
		return refuse(j, CODE_NOT_FOUND, "the sandbox has no list");
	return network_write(s, j, &row, &a);
}

/* ---- sessions ---------------------------------------------------- */

static void
session_key(const char *sandbox, const char *id, char key[SESSION_KEY])
{
	memcpy(key, sandbox, ULID_LEN);
	memcpy(key + ULID_LEN, id, ULID_LEN);
}

static int
get_session(struct store *s, const struct row_session *of,
    struct row_session *ret)
{
	char	key[SESSION_KEY];
	MDB_val	v;
	int	rc;

	session_key(of->sandbox, of->id, key);
	rc = db_get(s->txn, s->db->t[T_SESSIONS], key, sizeof(key), &v);
	if (rc != 0)
		return rc;
	return wire_decode_into(&wire_row_session, v.mv_data, v.mv_size,
	    s->items[1], ROW_ITEMS, ret) == -1 ? MDB_CORRUPTED : 0;
}

/* Drops the sessions that ended first until ENDED_MAX are left. */
static int
trim_ended(struct store *s, const char *sandbox)
{
	MDB_cursor	*cur;
	MDB_val		 k = { ULID_LEN, (void *)(uintptr_t)sandbox }, v, sk;
	char		 key[SESSION_KEY];
	size_t		 n;
	int		 rc;

	if ((rc = mdb_cursor_open(s->txn, s->db->t[T_ENDED], &cur)) != 0)
		return rc;
	while ((rc = mdb_cursor_get(cur, &k, &v, MDB_SET_KEY)) == 0 &&
	    (rc = mdb_cursor_count(cur, &n)) == 0 && n > ENDED_MAX) {
		if (v.mv_size != EXPIRY_KEY) {
			rc = MDB_CORRUPTED;
			break;
		}
		session_key(sandbox, (const char *)v.mv_data + 8, key);
		sk.mv_data = key;
		sk.mv_size = sizeof(key);
		rc = mdb_del(s->txn, s->db->t[T_SESSIONS], &sk, NULL);
		if ((rc != 0 && rc != MDB_NOTFOUND) ||
		    (rc = mdb_cursor_del(cur, 0)) != 0)
			break;
		k.mv_data = (void *)(uintptr_t)sandbox;
		k.mv_size = ULID_LEN;
	}
	mdb_cursor_close(cur);
	return rc;
}

static int
note_ended(struct store *s, const struct row_session *row)
{
	uint8_t		v[EXPIRY_KEY];
	uint64_t	ms = htobe64(s->now);
	int		rc;

	memcpy(v, &ms, sizeof(ms));
	memcpy(v + sizeof(ms), row->id, ULID_LEN);
	rc = db_put(s->txn, s->db->t[T_ENDED], row->sandbox, ULID_LEN, v,
	    sizeof(v), 0);
	return rc != 0 ? rc : trim_ended(s, row->sandbox);
}

static int
session_started(struct store *s, struct record *r,
    const struct row_session *row)
{
	struct event_session_started	ev = { .argv = row->argv };

	memcpy(ev.name, row->name, sizeof(ev.name));
	memcpy(ev.user, row->user, sizeof(ev.user));
	r->outcome = "ok";
	r->reason = "";
	return put_record(s, EVENT_SESSION_STARTED, r, &ev);
}

static int
session_ended(struct store *s, struct record *r,
    const struct row_session *row)
{
	struct event_session_ended	ev = {
		.exitCode = row->exit_code, .signal = row->signal,
		.leftBehind = row->left_behind,
	};
	int				rc;

	r->outcome = row->reason[0] == '\0' ? "ok" : "failed";
	r->reason = row->reason;
	rc = put_record(s, EVENT_SESSION_ENDED, r, &ev);
	return rc != 0 ? rc : note_ended(s, row);
}

/* old: NULL for a new session. */
static int
session_write(struct store *s, struct job *j, const struct row_session *row,
    const struct row_session *old)
{
	const struct msg_session_put	*m = &j->body.session_put;
	struct record			 r = {
		.tenant = row->tenant, .actor = m->actor,
		.sandbox = row->sandbox, .session = row->id,
		.request = m->request,
	};
	char				 key[SESSION_KEY];
	int				 rc;

	if (old == NULL && (rc = session_started(s, &r, row)) != 0)
		return rc;
	session_key(row->sandbox, row->id, key);
	/* the bytes were decoded by the table they are encoded by */
	rc = db_put(s->txn, s->db->t[T_SESSIONS], key, sizeof(key), j->data,
	    j->len, 0);
	if (rc == 0 && row->state == SESSION_ENDED)
		rc = session_ended(s, &r, row);
	if (old == NULL && row->origin == 0)
		raise_last_id(s, row->id);	/* the rest is the box's word */
	return rc != 0 || old != NULL ? rc : key_write(s, row->tenant,
	    m->key, &m->asked, row->sandbox, row->id);
}

static int
session_new(struct store *s, struct job *j, const struct row_session *row,
    const struct row_sandbox *box)
{
	const struct msg_session_put	*m = &j->body.session_put;
	int				 rc;

	if (row->origin == 0 && box->state != BOX_READY)
		return refuse(j, CODE_NOT_READY, "sandbox is %s",
		    state_name((unsigned int)box->state));
	if (s->reserve < DB_LAST)
		return refuse(j, CODE_DISK_FULL, "disk full: the log's "
		    "reserve is nearly used");
	rc = key_check(s, j, row->tenant, m->key, &m->asked);
	if (rc != 0 || j->code != CODE_NONE)
		return rc;
	return session_write(s, j, row, NULL);
}

static int
session_same(const struct row_session *a, const struct row_session *b)
{
	struct row_session	c = *a;

	c.state = b->state;
	c.exit_code = b->exit_code;
	c.signal = b->signal;
	memcpy(c.reason, b->reason, sizeof(c.reason));
	c.started_ms = b->started_ms;
	c.ended_ms = b->ended_ms;
	c.left_behind = b->left_behind;
	return wire_differs(&wire_row_session, &c, b) == NULL;
}

static int
apply_session(struct store *s, struct job *j)
{
	struct row_session	row, old;
	struct row_sandbox	box;
	int			rc;

	if (wire_decode_into(&wire_row_session, j->data, j->len, s->items[0],
	    ROW_ITEMS, &row) == -1)
		return refuse(j, CODE_BAD_MESSAGE, "%s", wire_error());
	if (row.version != ROW_VERSION)
		return refuse(j, CODE_BAD_MESSAGE, "version of a session");
	rc = get_sandbox(s, row.sandbox, &box);
	if (rc == MDB_NOTFOUND || (rc == 0 &&
	    strcmp(box.tenant, row.tenant) != 0))
		return refuse(j, CODE_NOT_FOUND, "no sandbox %s", row.sandbox);
	if (rc != 0)
		return rc;
	if ((rc = get_session(s, &row, &old)) == MDB_NOTFOUND)
		return session_new(s, j, &row, &box);
	if (rc != 0)
		return rc;
	if (!session_same(&old, &row))
		return refuse(j, CODE_EXISTS, "another session has the id %s",
		    row.id);
	if (wire_differs(&wire_row_session, &old, &row) == NULL)
		return 0;
	if (old.state == SESSION_ENDED)
		return refuse(j, CODE_ENDED, "session %s has ended", row.id);
	if (row.state < old.state)
		return refuse(j, CODE_BAD_TRANSITION, "session %s goes "
		    "backwards", row.id);
	return session_write(s, j, &row, &old);
}

/* ---- what is gone ------------------------------------------------ */

/* Deletes up to *budget sessions of a box. */
static int
purge_sessions(struct store *s, const char *sandbox, unsigned int *budget)
{
	MDB_cursor	*cur;
	MDB_val		 k = { ULID_LEN, (void *)(uintptr_t)sandbox }, v;
	int		 rc;

	if ((rc = mdb_cursor_open(s->txn, s->db->t[T_SESSIONS], &cur)) != 0)
		return rc;
	rc = mdb_cursor_get(cur, &k, &v, MDB_SET_RANGE);
	while (rc == 0 && *budget > 0 && k.mv_size == SESSION_KEY &&
	    memcmp(k.mv_data, sandbox, ULID_LEN) == 0) {
		if ((rc = mdb_cursor_del(cur, 0)) != 0)
			break;
		(*budget)--;
		/* after a deletion the cursor stands before the next */
		rc = mdb_cursor_get(cur, &k, &v, MDB_NEXT);
	}
	mdb_cursor_close(cur);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
purge_row(struct store *s, enum db_table t, const void *key, size_t len)
{
	MDB_val	k = { len, (void *)(uintptr_t)key };
	int	rc = mdb_del(s->txn, s->db->t[t], &k, NULL);

	return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Deletes one box that has been DELETED for a day, its sessions first. */
static int
purge_box(struct store *s, const uint8_t key[EXPIRY_KEY],
    unsigned int *budget)
{
	char	id[ULID_LEN + 1];
	int	rc;

	memcpy(id, key + 8, ULID_LEN);
	id[ULID_LEN] = '\0';
	if ((rc = purge_sessions(s, id, budget)) != 0 || *budget == 0)
		return rc;
	(*budget)--;
	if ((rc = purge_row(s, T_ENDED, id, ULID_LEN)) != 0 ||
	    (rc = purge_row(s, T_PROOFS, id, ULID_LEN)) != 0 ||
	    (rc = purge_row(s, T_ALLOWED, id, ULID_LEN)) != 0 ||
	    (rc = purge_row(s, T_SANDBOXES, id, ULID_LEN)) != 0)
		return rc;
	return purge_row(s, T_EXPIRY, key, EXPIRY_KEY);
}

static int
purge_boxes(struct store *s, unsigned int *budget)
{
	MDB_cursor	*cur;
	MDB_val		 k, v;
	uint8_t		 key[EXPIRY_KEY];
	uint64_t	 ms;
	int		 rc;

	if ((rc = mdb_cursor_open(s->txn, s->db->t[T_EXPIRY], &cur)) != 0)
		return rc;
	while ((rc = mdb_cursor_get(cur, &k, &v, MDB_FIRST)) == 0 &&
	    *budget > 0) {
		if (k.mv_size != sizeof(key)) {
			rc = MDB_CORRUPTED;
			break;
		}
		memcpy(key, k.mv_data, sizeof(key));
		memcpy(&ms, key, sizeof(ms));
		if (be64toh(ms) + DELETED_MS > s->now)
			break;
		if ((rc = purge_box(s, key, budget)) != 0)
			break;
	}
	mdb_cursor_close(cur);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Deletes one key, unless it was used again since that time. */
static int
purge_key(struct store *s, uint64_t made_ms, const char *key, size_t len)
{
	struct row_key	row;
	int		rc = get_key(s, key, len, &row);

	if (rc == MDB_NOTFOUND || (rc == 0 && row.made_ms != made_ms))
		return 0;
	return rc != 0 ? rc : purge_row(s, T_KEYS, key, len);
}

/* Deletes keys whose day is over. */
static int
purge_keys(struct store *s, unsigned int *budget)
{
	MDB_cursor	*cur;
	MDB_val		 k, v;
	char		 key[8 + CLIENT_KEY];
	uint64_t	 ms;
	size_t		 len;
	int		 rc;

	if ((rc = mdb_cursor_open(s->txn, s->db->t[T_KEY_TIMES], &cur)) != 0)
		return rc;
	while ((rc = mdb_cursor_get(cur, &k, &v, MDB_FIRST)) == 0 &&
	    *budget > 0) {
		if ((len = k.mv_size) < 8 || len > sizeof(key)) {
			rc = MDB_CORRUPTED;
			break;
		}
		memcpy(key, k.mv_data, len);
		memcpy(&ms, key, sizeof(ms));
		ms = be64toh(ms);
		if (ms + KEY_MS > s->now)
			break;
		if ((rc = mdb_cursor_del(cur, 0)) != 0 ||
		    (rc = purge_key(s, ms, key + 8, len - 8)) != 0)
			break;
		(*budget)--;
	}
	mdb_cursor_close(cur);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
apply_purge(struct store *s)
{
	unsigned int	budget = PURGE_ROWS;
	int		rc = purge_boxes(s, &budget);

	if (rc == 0)
		rc = purge_keys(s, &budget);
	s->purge_more = budget == 0;
	return rc;
}

int
apply(struct store *s, struct job *j)
{
	uint64_t	now = now_ms();

	s->now = now > s->head.time_ms ? now : s->head.time_ms;
	j->code = CODE_NONE;
	switch (j->type) {
	case MSG_EVENT_APPEND:
		return apply_event(s, j);
	case MSG_SANDBOX_CREATE:
		return apply_create(s, j);
	case MSG_SANDBOX_MOVE:
		return apply_move(s, j);
	case MSG_SANDBOX_NETWORK:
		return apply_network(s, j);
	case MSG_SESSION_PUT:
		return apply_session(s, j);
	case MSG_ALLOW_PUT:
		return lists_put(s, j);
	case MSG_NAMES_TAKE:
		return lists_take(s, j);
	case JOB_PURGE:
		return apply_purge(s);
	default:
		return refuse(j, CODE_BAD_MESSAGE, "not a job");
	}
}
