/*
 * replay.c: reading: pages of the log, the tables, and those who wait for
 * the next record.
 *
 * A reader names the number after which it wants to go on, always; one that
 * waits is the same request, answered later.  So replay runs into following
 * without a gap.  A reader of one tenant sees that tenant's records only,
 * under their global numbers, and `next' jumps over the others.
 *
 * Only what is committed is read.  Each look is a transaction of its own, of
 * at most READ_MAX records.
 *
 * Must never: hold a transaction over a return to the loop, write.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "stored.h"
#include "xmalloc.h"

#define PAGE_BYTES	65000
#define PAGE_ROWS	256
#define LIST_ENTRIES	1024	/* of a page, as ALLOW_PUT has them */
/* what map, keys and lengths add to rows in a page, at most */
#define ROW_EXTRA	5

struct waiter {
	TAILQ_ENTRY(waiter)	 next;
	uint32_t		 rid;
	uint64_t		 after;
	uint64_t		 limit;
	char			 tenant[64];
};
TAILQ_HEAD(waiters, waiter);

struct replay {
	struct db	*db;		/* borrowed */
	struct chan	*apid;		/* borrowed */
	void		(*again)(void);
	struct waiters	 waiters;	/* owned */
	unsigned int	 nwaiters;
	uint64_t	 last;		/* of the last look at the log */
	uint8_t		 lines[PAGE_BYTES];
	size_t		 len;
	uint8_t		 row[WIRE_MAX];
};

struct replay *
replay_new(struct db *db, struct chan *apid, void (*again)(void))
{
	struct replay	*r = xcalloc(1, sizeof(*r));

	r->db = db;
	r->apid = apid;
	r->again = again;
	TAILQ_INIT(&r->waiters);
	return r;
}

static void	broken(int) __attribute__((noreturn));

static void
broken(int rc)
{
	fatalx("read database: %s", mdb_strerror(rc));
}

/* ---- pages of the log -------------------------------------------- */

/* Adds one line to the page; 0: it is full. */
static int
page_add(struct replay *r, const MDB_val *v)
{
	if (v->mv_size + 1 > sizeof(r->lines) - r->len)
		return 0;
	memcpy(r->lines + r->len, v->mv_data, v->mv_size);
	r->len += v->mv_size;
	r->lines[r->len++] = '\n';
	return 1;
}

/* Moves w->after on over what was looked at; fills the page. */
static int
page_scan(struct replay *r, MDB_cursor *cur, struct waiter *w)
{
	uint64_t	seq = w->after + 1, limit = w->limit;
	MDB_val		k = { sizeof(seq), &seq }, v;
	int		looked, rc;

	rc = mdb_cursor_get(cur, &k, &v, MDB_SET_RANGE);
	for (looked = 0; rc == 0 && looked < READ_MAX && limit > 0; looked++) {
		memcpy(&seq, k.mv_data, sizeof(seq));
		if (w->tenant[0] == '\0' ||
		    record_is_of(v.mv_data, v.mv_size, w->tenant)) {
			if (!page_add(r, &v))
				break;
			limit--;
		}
		w->after = seq;
		rc = mdb_cursor_get(cur, &k, &v, MDB_NEXT);
	}
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
last_seq(MDB_cursor *cur, uint64_t *ret)
{
	MDB_val	k, v;
	int	rc = mdb_cursor_get(cur, &k, &v, MDB_LAST);

	if (rc == 0)
		memcpy(ret, k.mv_data, sizeof(*ret));
	return rc == MDB_NOTFOUND ? 0 : rc;
}

/* One look at the log for w; -1: no memory for it now. */
static int
page_fill(struct replay *r, struct waiter *w)
{
	MDB_txn		*txn;
	MDB_cursor	*cur;
	int		 rc;

	r->len = 0;
	if ((txn = db_read(r->db)) == NULL)
		return -1;
	if ((rc = mdb_cursor_open(txn, r->db->t[T_EVENTS], &cur)) == 0) {
		if ((rc = last_seq(cur, &r->last)) == 0 && w->after < r->last)
			rc = page_scan(r, cur, w);
		mdb_cursor_close(cur);
	}
	db_read_end(r->db);
	if (rc != 0 && db_fault(rc) == DBF_BROKEN)
		broken(rc);
	return rc == 0 ? 0 : -1;
}

static int
page_send(struct replay *r, const struct waiter *w)
{
	struct msg_event_page	m = {
		.lines = { r->lines, r->len },
		.next = w->after, .last = r->last,
	};

	return chan_send(r->apid, MSG_EVENT_PAGE, w->rid, &m, -1);
}

/* ---- waiting ----------------------------------------------------- */

static void
waiter_drop(struct replay *r, struct waiter *w)
{
	TAILQ_REMOVE(&r->waiters, w, next);
	r->nwaiters--;
	free(w);
}

static int
wait_add(struct replay *r, const struct waiter *w)
{
	struct waiter	*n;

	if (r->nwaiters == WAITERS_MAX)
		return chan_error(r->apid, w->rid, CODE_TOO_MANY,
		    "%d readers wait", WAITERS_MAX);
	n = xmalloc(sizeof(*n));
	*n = *w;
	TAILQ_INSERT_TAIL(&r->waiters, n, next);
	r->nwaiters++;
	if (n->after < r->last)
		r->again();	/* more to look at than one transaction */
	return 0;
}

int
replay_on_read(struct replay *r, const struct msg *msg)
{
	const struct msg_event_read	*m = &msg->body.event_read;
	struct waiter			 w = { .rid = msg->rid,
	    .after = m->after, .limit = m->limit };

	memcpy(w.tenant, m->tenant, sizeof(w.tenant));
	if (page_fill(r, &w) == -1)
		return chan_error(r->apid, w.rid, CODE_INTERNAL, "no memory");
	if (r->len == 0 && m->wait)
		return wait_add(r, &w);
	return page_send(r, &w);
}

int
replay_on_cancel(struct replay *r, const struct msg *msg)
{
	struct waiter	*w;

	TAILQ_FOREACH(w, &r->waiters, next)
		if (w->rid == msg->body.event_cancel.rid)
			break;
	if (w != NULL) {
		r->len = 0;
		if (page_send(r, w) == -1)
			return -1;
		waiter_drop(r, w);
	}
	/* none: its answer is on the way already */
	return chan_ok(r->apid, msg->rid);
}

/*
 * One look for each that waits behind `last'.  Where it found nothing, and
 * there is more to look at, another round is due; so it is when the channel
 * has no room, but then it is the channel's drain that calls again.
 */
int
replay_run(struct replay *r, uint64_t last)
{
	struct waiter	*w, *next;
	int		 more = 0;

	if (last > r->last)
		r->last = last;
	for (w = TAILQ_FIRST(&r->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, next);
		if (w->after >= r->last)
			continue;
		if (r->apid->queued >= CHAN_HIGH)
			return 0;
		if (page_fill(r, w) == -1 || r->len == 0) {
			more |= w->after < r->last;
			continue;
		}
		if (page_send(r, w) == -1)
			return -1;
		waiter_drop(r, w);
	}
	if (more)
		r->again();
	return 0;
}

void
replay_drop(struct replay *r)
{
	struct waiter	*w;

	while ((w = TAILQ_FIRST(&r->waiters)) != NULL)
		waiter_drop(r, w);
}

/* ---- tables ------------------------------------------------------ */

struct walk {
	enum db_table	 t;
	const char	*from;		/* above this key ... */
	size_t		 prefix;	/* ... of which so many bytes are shared */
	size_t		 limit;		/* rows, at most PAGE_ROWS */
	int		 open_only;	/* sessions that have not ended */
};

static int
row_wanted(const struct walk *w, const MDB_val *v)
{
	struct row_session	row;

	if (!w->open_only)
		return 1;
	if (wire_decode(&wire_row_session, v->mv_data, v->mv_size, &row) == -1)
		broken(MDB_CORRUPTED);
	return row.state != 2;
}

/*
 * A page of rows, whose bytes are copied to r->row.  It is empty only at the
 * end: what open_only jumps over is bounded by ENDED_MAX.  An LMDB code.
 */
static int
rows_fill(struct replay *r, MDB_txn *txn, const struct walk *w,
    struct wire_bin rows[PAGE_ROWS], struct wire_list *ret)
{
	const size_t	 flen = strlen(w->from);
	MDB_cursor	*cur;
	MDB_val		 k = { flen, (void *)(uintptr_t)w->from }, v;
	size_t		 len = 0, n = 0;
	int		 rc;

	if ((rc = mdb_cursor_open(txn, r->db->t[w->t], &cur)) != 0)
		return rc;
	rc = mdb_cursor_get(cur, &k, &v, flen == 0 ? MDB_FIRST :
	    MDB_SET_RANGE);
	if (rc == 0 && k.mv_size == flen &&
	    memcmp(k.mv_data, w->from, flen) == 0)
		rc = mdb_cursor_get(cur, &k, &v, MDB_NEXT);
	for (; rc == 0 && n < w->limit && k.mv_size >= w->prefix &&
	    memcmp(k.mv_data, w->from, w->prefix) == 0;
	    rc = mdb_cursor_get(cur, &k, &v, MDB_NEXT)) {
		if (!row_wanted(w, &v))
			continue;
		if (len + v.mv_size + (n + 1) * ROW_EXTRA > PAGE_BYTES)
			break;
		memcpy(r->row + len, v.mv_data, v.mv_size);
		rows[n].data = r->row + len;
		rows[n++].len = v.mv_size;
		len += v.mv_size;
	}
	mdb_cursor_close(cur);
	ret->v = rows;
	ret->n = n;
	return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Answers with a page of rows: SANDBOX_PAGE and SESSION_PAGE are alike. */
static int
rows_answer(struct replay *r, uint32_t rid, const struct walk *w)
{
	struct wire_bin		 rows[PAGE_ROWS];
	struct msg_sandbox_page	 boxes = { .rows = { NULL, 0 } };
	struct msg_session_page	 sessions = { .rows = { NULL, 0 } };
	MDB_txn			*txn;
	int			 rc;

	if ((txn = db_read(r->db)) == NULL)
		return chan_error(r->apid, rid, CODE_INTERNAL, "no memory");
	rc = rows_fill(r, txn, w, rows, &boxes.rows);
	db_read_end(r->db);
	if (rc != 0)
		broken(rc);
	if (w->t == T_SANDBOXES)
		return chan_send(r->apid, MSG_SANDBOX_PAGE, rid, &boxes, -1);
	sessions.rows = boxes.rows;
	return chan_send(r->apid, MSG_SESSION_PAGE, rid, &sessions, -1);
}

int
replay_on_sandbox_list(struct replay *r, const struct msg *msg)
{
	const struct walk	w = {
		.t = T_SANDBOXES, .from = msg->body.sandbox_list.after,
		.limit = PAGE_ROWS,
	};

	return rows_answer(r, msg->rid, &w);
}

int
replay_on_session_rows(struct replay *r, const struct msg *msg)
{
	const struct msg_session_rows	*m = &msg->body.session_rows;
	char				 from[2 * ULID_LEN + 1];
	const struct walk		 w = {
		.t = T_SESSIONS, .from = from, .prefix = ULID_LEN,
		.limit = m->limit, .open_only = m->open_only != 0,
	};

	memcpy(from, m->sandbox, ULID_LEN);
	memcpy(from + ULID_LEN, m->after, sizeof(m->after));
	return rows_answer(r, msg->rid, &w);
}

/* The row with its evidence, encoded anew into r->row; 0: no such row. */
static ssize_t
whole_row(struct replay *r, MDB_txn *txn, const char *id)
{
	struct row_sandbox	row;
	MDB_val			v, proof;
	int			rc;

	rc = db_get(txn, r->db->t[T_SANDBOXES], id, ULID_LEN, &v);
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc != 0)
		broken(rc);
	if (wire_decode(&wire_row_sandbox, v.mv_data, v.mv_size, &row) == -1)
		broken(MDB_CORRUPTED);
	rc = db_get(txn, r->db->t[T_PROOFS], id, ULID_LEN, &proof);
	if (rc == 0) {
		row.proof.data = proof.mv_data;
		row.proof.len = proof.mv_size;
	} else if (rc != MDB_NOTFOUND)
		broken(rc);
	return wire_encode(&wire_row_sandbox, &row, r->row, sizeof(r->row));
}

int
replay_on_sandbox_get(struct replay *r, const struct msg *msg)
{
	struct msg_sandbox_is	 m = { .row = { r->row, 0 } };
	char			 id[ULID_LEN + 1];
	MDB_txn			*txn;
	ssize_t			 n;

	/* wire_decode() of the row overwrites nothing of msg->body but lists */
	memcpy(id, msg->body.sandbox_get.id, sizeof(id));
	if ((txn = db_read(r->db)) == NULL)
		return chan_error(r->apid, msg->rid, CODE_INTERNAL,
		    "no memory");
	n = whole_row(r, txn, id);
	db_read_end(r->db);
	if (n == -1)
		return chan_error(r->apid, msg->rid, CODE_INTERNAL, "%s",
		    wire_error());
	if (n == 0)
		return chan_error(r->apid, msg->rid, CODE_NOT_FOUND,
		    "no sandbox %s", id);
	m.row.len = (size_t)n;
	return chan_send(r->apid, MSG_SANDBOX_IS, msg->rid, &m, -1);
}

/* A key whose day is over is none, purged or not. */
int
replay_on_key_get(struct replay *r, const struct msg *msg)
{
	const struct msg_key_get	*m = &msg->body.key_get;
	struct msg_key_is		 is = { .asked = { r->row, 0 } };
	struct row_key			 row;
	char				 key[CLIENT_KEY];
	MDB_txn				*txn;
	MDB_val				 v;
	int				 rc;

	if ((txn = db_read(r->db)) == NULL)
		return chan_error(r->apid, msg->rid, CODE_INTERNAL,
		    "no memory");
	rc = db_get(txn, r->db->t[T_KEYS], key, db_client_key(m->tenant, m->key,
	    key), &v);
	if (rc == 0 && wire_decode(&wire_row_key, v.mv_data, v.mv_size,
	    &row) == -1)
		rc = MDB_CORRUPTED;
	if (rc == 0 && row.made_ms + KEY_MS > now_ms()) {
		is.asked.len = row.asked.len;
		memcpy(r->row, row.asked.data, row.asked.len);
		memcpy(is.sandbox, row.sandbox, sizeof(is.sandbox));
		memcpy(is.session, row.session, sizeof(is.session));
	}
	db_read_end(r->db);
	if (rc != 0 && rc != MDB_NOTFOUND)
		broken(rc);
	return chan_send(r->apid, MSG_KEY_IS, msg->rid, &is, -1);
}

/* ---- lists of `allowlist' ---------------------------------------- */

/* The entries of a page, in the map; how many. */
static size_t
entries_split(const MDB_val *v, struct wire_bin *ret)
{
	const uint8_t	*p = v->mv_data, *end = p + v->mv_size, *nl;
	size_t		 n;

	for (n = 0; p < end; p = nl + 1, n++) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL || n == LIST_ENTRIES)
			broken(MDB_CORRUPTED);
		ret[n] = (struct wire_bin){ p, (size_t)(nl - p) };
	}
	return n;
}

/* The page, as far as the box has that list; 0: it has it not. */
static int
page_find(struct replay *r, MDB_txn *txn, const struct msg_allow_read *m,
    struct msg_allow_page *ret, MDB_val *ret_v)
{
	struct row_allowed	a;
	uint8_t			key[LIST_KEY];
	int			rc = lists_row(r->db, txn, m->id, &a);

	if (rc != 0)
		broken(rc);
	if (a.generation == 0 || a.aside || m->page >= a.pages ||
	    (m->generation != a.generation &&
	    (m->generation != 0 || m->page != 0)))
		return 0;
	ret->generation = a.generation;
	ret->more = a.pages - 1 - m->page;
	lists_key(m->id, a.generation, m->page, key);
	if ((rc = db_get(txn, r->db->t[T_LISTS], key, sizeof(key),
	    ret_v)) != 0)
		broken(rc);
	return 1;
}

int
replay_on_allow_read(struct replay *r, struct chan *c, const struct msg *msg)
{
	static struct wire_bin	 entries[LIST_ENTRIES];
	struct msg_allow_page	 p = { .entries = { entries, 0 } };
	MDB_txn			*txn;
	MDB_val			 v;
	int			 rc;

	if ((txn = db_read(r->db)) == NULL)
		return chan_error(c, msg->rid, CODE_INTERNAL, "no memory");
	if (page_find(r, txn, &msg->body.allow_read, &p, &v)) {
		p.entries.n = entries_split(&v, entries);
		/* which copies them out of the map */
		rc = chan_send(c, MSG_ALLOW_PAGE, msg->rid, &p, -1);
	} else
		rc = chan_error(c, msg->rid, CODE_NOT_FOUND, "no such list");
	db_read_end(r->db);
	return rc;
}
