/*
 * lists.c: the lists of boxes of `allowlist', and the addresses that names
 * may have.
 *
 * Theory of operation.  A list comes in pages and is nobody's until
 * SANDBOX_NETWORK makes it the box's; then the one before goes.
 *
 *	put	 page 0 > page 1 > ...	a new page 0 takes it away
 *	has	 read by pages; another takes its place
 *	aside	 the box is of another kind: nobody reads it.  It becomes what
 *		 it was when that is taken back, and goes with the next put.
 *
 * Generations are numbers of lists that are never used twice of one box, so
 * that who reads page after page never reads two lists as one.  So are the
 * numbers of addresses: they stay when lists go, for as long as the box.
 *
 * A list is compared by SHA-256 over its entries, a newline behind each, which
 * are the bytes of its pages.
 *
 * Must never: make a list the box's of which a page is missing, give a number
 * twice.
 */
#include <endian.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "stored.h"

#define ROW_VERSION	1
#define NUMBERS		65535		/* addresses of a box: from 1 on */

void
lists_key(const char *id, uint64_t generation, uint64_t page,
    uint8_t ret[LIST_KEY])
{
	uint64_t	g = htobe64(generation);
	uint16_t	p = htobe16((uint16_t)page);	/* at most 1023 */

	memcpy(ret, id, ULID_LEN);
	memcpy(ret + ULID_LEN, &g, sizeof(g));
	memcpy(ret + ULID_LEN + sizeof(g), &p, sizeof(p));
}

int
lists_row(struct db *db, MDB_txn *txn, const char *id, struct row_allowed *ret)
{
	MDB_val	v;
	int	rc = db_get(txn, db->t[T_ALLOWED], id, ULID_LEN, &v);

	if (rc == MDB_NOTFOUND) {
		memset(ret, 0, sizeof(*ret));
		ret->version = ROW_VERSION;
		ret->next = 1;
		return 0;
	}
	/* it has no list, so that any thread may decode it so */
	if (rc == 0 && (wire_decode_into(&wire_row_allowed, v.mv_data,
	    v.mv_size, NULL, 0, ret) == -1 || ret->version != ROW_VERSION))
		rc = MDB_CORRUPTED;
	return rc;
}

static int
put_row(struct store *s, const char *id, const struct row_allowed *a)
{
	uint8_t	buf[512];
	ssize_t	n = wire_encode(&wire_row_allowed, a, buf, sizeof(buf));

	if (n == -1)
		abort();		/* bounded by its row */
	return db_put(s->txn, s->db->t[T_ALLOWED], id, ULID_LEN, buf,
	    (size_t)n, 0);
}

static int
drop_pages(struct store *s, const char *id, uint64_t generation,
    uint64_t pages)
{
	uint8_t		key[LIST_KEY];
	MDB_val		k = { sizeof(key), key };
	uint64_t	i;
	int		rc;

	for (i = 0; i < pages; i++) {
		lists_key(id, generation, i, key);
		if ((rc = mdb_del(s->txn, s->db->t[T_LISTS], &k, NULL)) != 0)
			return rc == MDB_NOTFOUND ? MDB_CORRUPTED : rc;
	}
	return 0;
}

static int
drop_put(struct store *s, const char *id, struct row_allowed *a)
{
	int	rc = drop_pages(s, id, a->put, a->put_pages);

	a->put = a->put_pages = a->put_entries = 0;
	return rc;
}

static int
drop_own(struct store *s, const char *id, struct row_allowed *a)
{
	int	rc = drop_pages(s, id, a->generation, a->pages);

	a->generation = a->pages = a->entries = a->aside = 0;
	a->sha256[0] = '\0';
	return rc;
}

/* ---- what is put ------------------------------------------------- */

/* Whether each entry is canonical; *ret_n: how many, or the one that is not. */
static int
page_ok(const struct job *j, uint64_t *ret_n)
{
	const char	*p = (const char *)j->data, *end = p + j->len, *nl;
	struct allow	*a = allow_new();
	char		 entry[ALLOW_TEXT];
	int		 ok = 1;

	for (*ret_n = 0; ok && p < end; p = nl + 1) {
		(*ret_n)++;
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL || (size_t)(nl - p) >= sizeof(entry)) {
			ok = 0;
			break;
		}
		memcpy(entry, p, (size_t)(nl - p));
		entry[nl - p] = '\0';
		ok = allow_add(a, entry) == 0;
	}
	allow_free(a);
	return ok;
}

static int
put_write(struct store *s, const struct job *j, struct row_allowed *a,
    uint64_t n)
{
	const struct msg_allow_put	*m = &j->body.allow_put;
	uint8_t				 key[LIST_KEY];
	int				 rc;

	if (m->page == 0) {
		if ((rc = drop_put(s, m->id, a)) != 0 ||
		    (a->aside && (rc = drop_own(s, m->id, a)) != 0))
			return rc;
		a->put = ++a->last;
	}
	lists_key(m->id, a->put, m->page, key);
	rc = db_put(s->txn, s->db->t[T_LISTS], key, sizeof(key), j->data,
	    j->len, MDB_NOOVERWRITE);
	if (rc != 0)
		return rc == MDB_KEYEXIST ? MDB_CORRUPTED : rc;
	a->put_pages++;
	a->put_entries += n;
	return put_row(s, m->id, a);
}

int
lists_put(struct store *s, struct job *j)
{
	const struct msg_allow_put	*m = &j->body.allow_put;
	struct row_sandbox		 box;
	struct row_allowed		 a;
	uint64_t			 n;
	int				 rc;

	rc = sandbox_live(s, j, m->id, &box);
	if (rc != 0 || j->code != CODE_NONE ||
	    (rc = lists_row(s->db, s->txn, m->id, &a)) != 0)
		return rc;
	if (!page_ok(j, &n))
		return refuse(j, CODE_BAD_MESSAGE, "entry %llu is not "
		    "canonical", (unsigned long long)n);
	if (m->page != 0 && (m->page != a.put_pages || n == 0))
		return refuse(j, CODE_BAD_REQUEST, "page %llu of a list: "
		    "expected page %llu, with entries",
		    (unsigned long long)m->page,
		    (unsigned long long)a.put_pages);
	if ((m->page == 0 ? 0 : a.put_entries) + n > ALLOW_MAX)
		return refuse(j, CODE_BAD_REQUEST, "a list: expected at most "
		    "%d entries", ALLOW_MAX);
	if (s->reserve < DB_RESERVE - DB_SLACK)
		return refuse(j, CODE_DISK_FULL, "disk full: the log's "
		    "reserve is short");
	return put_write(s, j, &a, n);
}

/* ---- whose it is ------------------------------------------------- */

int
lists_there(const struct row_allowed *a, int back)
{
	return a->put != 0 || (a->generation != 0 && (!a->aside || back));
}

static int
hash(struct store *s, const char *id, struct row_allowed *a)
{
	uint8_t		key[LIST_KEY];
	SHA2_CTX	c;
	MDB_val		v;
	uint64_t	i;
	int		rc;

	SHA256Init(&c);
	for (i = 0; i < a->pages; i++) {
		lists_key(id, a->generation, i, key);
		if ((rc = db_get(s->txn, s->db->t[T_LISTS], key, sizeof(key),
		    &v)) != 0)
			return rc == MDB_NOTFOUND ? MDB_CORRUPTED : rc;
		SHA256Update(&c, v.mv_data, v.mv_size);
	}
	(void)SHA256End(&c, a->sha256);	/* 65 bytes: never NULL */
	return 0;
}

/* The list that was put takes the place of the one that it has. */
static int
take_put(struct store *s, const char *id, struct row_allowed *a)
{
	int	rc = drop_own(s, id, a);

	a->generation = a->put;
	a->pages = a->put_pages;
	a->entries = a->put_entries;
	a->put = a->put_pages = a->put_entries = 0;
	return rc != 0 ? rc : hash(s, id, a);
}

int
lists_become(struct store *s, const char *id, unsigned int network,
    struct row_allowed *a)
{
	int	rc = 0;

	if (network != NETWORK_ALLOWLIST && a->last == 0)
		return 0;		/* it never had one */
	a->aside = network != NETWORK_ALLOWLIST && a->generation != 0;
	if (network != NETWORK_ALLOWLIST)
		rc = drop_put(s, id, a);
	else if (a->put != 0)
		rc = take_put(s, id, a);
	return rc != 0 ? rc : put_row(s, id, a);
}

int
lists_drop(struct store *s, const char *id)
{
	struct row_allowed	a;
	int			rc = lists_row(s->db, s->txn, id, &a);

	if (rc != 0 || a.last == 0)
		return rc;
	if ((rc = drop_put(s, id, &a)) != 0 ||
	    (rc = drop_own(s, id, &a)) != 0)
		return rc;
	return put_row(s, id, &a);
}

/* ---- addresses --------------------------------------------------- */

int
lists_take(struct store *s, struct job *j)
{
	const struct msg_names_take	*m = &j->body.names_take;
	struct row_sandbox		 box;
	struct row_allowed		 a;
	int				 rc;

	rc = sandbox_live(s, j, m->id, &box);
	if (rc != 0 || j->code != CODE_NONE ||
	    (rc = lists_row(s->db, s->txn, m->id, &a)) != 0)
		return rc;
	j->first = a.next <= NUMBERS ? a.next : NUMBERS;
	j->count = NUMBERS + 1 - a.next;
	if (j->count > m->count)
		j->count = m->count;
	if (j->count == 0)
		return 0;
	a.next += j->count;
	return put_row(s, m->id, &a);
}
