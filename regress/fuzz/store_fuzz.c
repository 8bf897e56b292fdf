/*
 * store_fuzz: stored's write transactions: what apid and privd ask, in any
 * order and of any sense, applied to a real database that forgets it all.
 *
 * input: steps: a byte (see enum store_job), a piece (two bytes of length,
 * the body of the message)
 *
 * A request that is refused has changed nothing; the records are numbered
 * and chained; each name belongs to a box that holds it; each page to a list
 * that a box has or is being given; no number is given twice.
 */
#include <sys/stat.h>

#include <sha2.h>
#include <unistd.h>

#include "../../stored/stored.h"
#include "fuzz.h"
#include "log.h"
#include "steps.h"

#define HOUR_MS	(UINT64_C(3600) * 1000)

static struct db	db;
static struct store	store;
static struct head	start;
static uint64_t		clock_ms;

uint64_t	__wrap_mono_ms(void);
uint64_t	__wrap_now_ms(void);

uint64_t
__wrap_now_ms(void)
{
	return clock_ms;
}

uint64_t
__wrap_mono_ms(void)
{
	return clock_ms;
}

static void
prepare(void)
{
	static const char *const	files[] = { "data.mdb", "lock.mdb" };
	char				dir[] = "/tmp/store_fuzz.XXXXXX";
	char				path[64];
	size_t				i;

	if (store.db != NULL)
		return;
	log_init("store_fuzz", LOG_L_ERROR, 0);
	must(mkdtemp(dir) != NULL);
	must(db_open(&db, dir, &start) == 0);
	for (i = 0; i < 2; i++) {	/* they are open */
		(void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		(void)unlink(path);
	}
	must(rmdir(dir) == 0);
	store.db = &db;
}

/* ---- what there is -------------------------------------------------------- */

struct counts { struct head head; size_t n[T_COUNT]; };

static void
count(struct counts *c)
{
	MDB_stat	st;
	int		i;

	memset(c, 0, sizeof(*c));
	c->head = store.head;
	for (i = 0; i < T_COUNT; i++) {
		must(mdb_stat(store.txn, db.t[i], &st) == 0);
		c->n[i] = st.ms_entries;
	}
}

static int
live(const struct row_sandbox *r)
{
	return r->state != BOX_DELETING && r->state != BOX_DELETED;
}

static int
get_box(const char *id, struct row_sandbox *ret)
{
	static struct wire_bin	items[WIRE_ITEMS];
	MDB_val			v;

	if (db_get(store.txn, db.t[T_SANDBOXES], id, ULID_LEN, &v) != 0)
		return 0;
	must(wire_decode_into(&wire_row_sandbox, v.mv_data, v.mv_size, items,
	    WIRE_ITEMS, ret) == 0);
	return 1;
}

static void
names_ok(void)
{
	struct row_sandbox	 row;
	MDB_cursor		*cur;
	MDB_val			 k, v;
	char			 key[160], id[ULID_LEN + 1] = "";

	must(mdb_cursor_open(store.txn, db.t[T_NAMES], &cur) == 0);
	while (mdb_cursor_get(cur, &k, &v, MDB_NEXT) == 0) {
		must(v.mv_size == ULID_LEN);
		memcpy(id, v.mv_data, ULID_LEN);
		must(get_box(id, &row) && live(&row));
		(void)snprintf(key, sizeof(key), "%s/%s", row.tenant,
		    row.name);
		must(k.mv_size == strlen(key) &&
		    memcmp(k.mv_data, key, k.mv_size) == 0);
	}
	mdb_cursor_close(cur);
}

static void
boxes_ok(void)
{
	static struct wire_bin	 items[WIRE_ITEMS];
	struct row_sandbox	 row;
	MDB_cursor		*cur;
	MDB_val			 k, v, n;
	char			 key[160];

	must(mdb_cursor_open(store.txn, db.t[T_SANDBOXES], &cur) == 0);
	while (mdb_cursor_get(cur, &k, &v, MDB_NEXT) == 0) {
		must(wire_decode_into(&wire_row_sandbox, v.mv_data,
		    v.mv_size, items, WIRE_ITEMS, &row) == 0);
		must(k.mv_size == ULID_LEN &&
		    memcmp(k.mv_data, row.id, ULID_LEN) == 0);
		must(row.state < BOX_NSTATES && row.proof.len == 0);
		if (!live(&row) || row.state == BOX_QUARANTINED)
			continue;
		(void)snprintf(key, sizeof(key), "%s/%s", row.tenant,
		    row.name);
		must(db_get(store.txn, db.t[T_NAMES], key, strlen(key),
		    &n) == 0);
		must(memcmp(n.mv_data, row.id, ULID_LEN) == 0);
	}
	mdb_cursor_close(cur);
}

/* The pages of one list; how many entries, and their hash. */
static uint64_t
pages_ok(const char *id, uint64_t generation, uint64_t pages,
    char ret_hash[SHA256_DIGEST_STRING_LENGTH])
{
	uint8_t		key[LIST_KEY];
	const char	*p;
	uint64_t	i, n = 0;
	SHA2_CTX	c;
	MDB_val		v;

	SHA256Init(&c);
	for (i = 0; i < pages; i++) {
		lists_key(id, generation, i, key);
		must(db_get(store.txn, db.t[T_LISTS], key, sizeof(key),
		    &v) == 0);
		must(v.mv_size > 0 || i == 0);
		SHA256Update(&c, v.mv_data, v.mv_size);
		for (p = v.mv_data; p < (const char *)v.mv_data + v.mv_size;
		    p++)
			n += *p == '\n';
		must(v.mv_size == 0 || p[-1] == '\n');
	}
	must(SHA256End(&c, ret_hash) != NULL);
	return n;
}

static void
lists_ok(void)
{
	char			 id[ULID_LEN + 1] = "";
	char			 hash[SHA256_DIGEST_STRING_LENGTH];
	struct row_allowed	 a;
	struct row_sandbox	 box;
	MDB_cursor		*cur;
	MDB_stat		 st;
	MDB_val			 k, v;
	uint64_t		 pages = 0;

	must(mdb_cursor_open(store.txn, db.t[T_ALLOWED], &cur) == 0);
	while (mdb_cursor_get(cur, &k, &v, MDB_NEXT) == 0) {
		must(k.mv_size == ULID_LEN);
		memcpy(id, k.mv_data, ULID_LEN);
		must(get_box(id, &box));
		must(lists_row(&db, store.txn, id, &a) == 0);
		must(a.generation <= a.last && a.put <= a.last);
		must(a.generation != a.put || a.put == 0);
		must((a.generation != 0) == (a.pages != 0));
		must((a.put != 0) == (a.put_pages != 0));
		must(box.state != BOX_DELETED || a.pages + a.put_pages == 0);
		must(box.network == NETWORK_ALLOWLIST ? !a.aside :
		    a.aside == (a.generation != 0));
		must(pages_ok(id, a.put, a.put_pages, hash) == a.put_entries);
		must(pages_ok(id, a.generation, a.pages, hash) == a.entries);
		must(a.pages == 0 || strcmp(hash, a.sha256) == 0);
		pages += a.pages + a.put_pages;
	}
	mdb_cursor_close(cur);
	must(mdb_stat(store.txn, db.t[T_LISTS], &st) == 0);
	must(st.ms_entries == pages);
}

static void
records_ok(void)
{
	static const char	 digits[] = "0123456789abcdef";
	uint8_t			 hash[RECORD_HASH];
	MDB_cursor		*cur;
	MDB_val			 k, v;
	uint64_t		 seq, due = start.seq;
	const char		*prev;
	size_t			 i;

	memcpy(hash, start.hash, sizeof(hash));
	must(mdb_cursor_open(store.txn, db.t[T_EVENTS], &cur) == 0);
	while (mdb_cursor_get(cur, &k, &v, MDB_NEXT) == 0) {
		memcpy(&seq, k.mv_data, sizeof(seq));
		must(seq == ++due && v.mv_size <= RECORD_MAX);
		prev = (const char *)v.mv_data + v.mv_size -
		    (2 * RECORD_HASH + 2);
		for (i = 0; i < RECORD_HASH; i++)
			must(prev[2 * i] == digits[hash[i] >> 4] &&
			    prev[2 * i + 1] == digits[hash[i] & 15]);
		record_hash(v.mv_data, v.mv_size, hash);
	}
	mdb_cursor_close(cur);
	must(due == store.head.seq);
	must(memcmp(hash, store.head.hash, sizeof(hash)) == 0);
}

/* ---- one request ------------------------------------------------------------- */

static const unsigned int	types[STORE_NJOBS] = {
	[STORE_APPEND] = MSG_EVENT_APPEND,
	[STORE_CREATE] = MSG_SANDBOX_CREATE,
	[STORE_MOVE] = MSG_SANDBOX_MOVE,
	[STORE_SESSION] = MSG_SESSION_PUT,
	[STORE_PURGE] = JOB_PURGE,
	[STORE_NETWORK] = MSG_SANDBOX_NETWORK,
	[STORE_LIST] = MSG_ALLOW_PUT,
	[STORE_TAKE] = MSG_NAMES_TAKE,
};

/* As stored.c makes its data of the entries. */
static struct wire_bin
list_of(const struct wire_list *l)
{
	static uint8_t	text[WIRE_MAX + WIRE_ITEMS];
	size_t		i, n = 0;

	for (i = 0; i < l->n; i++) {
		memcpy(text + n, l->v[i].data, l->v[i].len);
		n += l->v[i].len;
		text[n++] = '\n';
	}
	return (struct wire_bin){ text, n };
}

/* As stored.c makes it; NULL: it does not come that far. */
static struct job *
job_new(unsigned int type, enum asker asker, struct bytes b)
{
	static union proto_body	 body;
	const struct wire_bin	*data = NULL;
	struct wire_bin		 none = { NULL, 0 }, list;
	struct job		*j;

	if (type == JOB_PURGE)
		data = &none;
	else if (wire_decode(proto_find(type)->desc, b.p, b.n, &body) == -1)
		return NULL;
	else if (type == MSG_EVENT_APPEND)
		data = &body.event_append.data;
	else if (type == MSG_SANDBOX_CREATE)
		data = &body.sandbox_create.row;
	else if (type == MSG_SANDBOX_MOVE)
		data = &body.sandbox_move.proof;
	else if (type == MSG_ALLOW_PUT) {
		list = list_of(&body.allow_put.entries);
		data = &list;
	} else if (type == MSG_SANDBOX_NETWORK || type == MSG_NAMES_TAKE)
		data = &none;
	else
		data = &body.session_put.row;
	must((j = calloc(1, sizeof(*j) + data->len)) != NULL);
	j->asker = asker;
	j->type = type;
	j->len = data->len;
	if (data->len > 0)
		memcpy(j->data, data->data, data->len);
	if (type != JOB_PURGE)
		memcpy(&j->body, &body, sizeof(j->body));
	return j;
}

/* Of each box the last number that was given. */
static struct { char id[ULID_LEN + 1]; uint64_t last; } given[16];
static unsigned int	 ngiven;

/* An id whose box was purged is another box's. */
static void
purged(void)
{
	struct row_sandbox	row;
	unsigned int		i, n = 0;

	for (i = 0; i < ngiven; i++)
		if (get_box(given[i].id, &row))
			given[n++] = given[i];
	ngiven = n;
}

/* Behind all that were given of this box before. */
static void
taken(const struct job *j)
{
	unsigned int	 i;

	for (i = 0; i < ngiven && strcmp(given[i].id,
	    j->body.names_take.id) != 0; i++)
		;
	if (i == sizeof(given) / sizeof(given[0]))
		return;
	if (i == ngiven) {
		memcpy(given[i].id, j->body.names_take.id,
		    sizeof(given[i].id));
		given[ngiven++].last = 0;
	}
	must(j->count <= j->body.names_take.count && j->first >= 1 &&
	    j->first + j->count <= 65536);
	must(j->count == 0 || j->first == given[i].last + 1);
	given[i].last += j->count;
}

static void
step(struct bytes *b)
{
	static struct counts	before, after;
	unsigned int		how = take_u8(b);
	struct job		*j;

	j = job_new(types[how % STORE_NJOBS], how & STORE_PRIVD ?
	    ASK_PRIVD : ASK_APID, take_piece(b));
	if (j == NULL)
		return;
	clock_ms += how & STORE_DAYS ? 48 * HOUR_MS :
	    how & STORE_HOUR ? HOUR_MS : 1;
	store.reserve = how & STORE_SHORT ? DB_LAST - 1 : DB_RESERVE;
	count(&before);
	must(apply(&store, j) == 0);
	if (j->type == MSG_NAMES_TAKE && j->code == CODE_NONE)
		taken(j);
	if (j->type == JOB_PURGE)
		purged();
	if (j->code != CODE_NONE) {
		must(j->detail[0] != '\0');
		count(&after);
		must(memcmp(&before, &after, sizeof(before)) == 0);
	}
	free(j);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes	b = { data, len };

	prepare();
	ngiven = 0;
	must(mdb_txn_begin(db.env, NULL, 0, &store.txn) == 0);
	store.head = start;
	store.hide_argv = len & 1;
	clock_ms = UINT64_C(1767323045678);
	while (b.n > 0)
		step(&b);
	names_ok();
	boxes_ok();
	lists_ok();
	records_ok();
	mdb_txn_abort(store.txn);
	return 0;
}
