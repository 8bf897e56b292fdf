/*
 * stored_edit.c: stored_hostile_test, the database from outside; see
 * stored_hostile.h.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "../../stored/stored.h"
#include "stored_hostile.h"

MDB_env *
db_edit(const char *table, unsigned int flags, MDB_txn **txn, MDB_dbi *dbi)
{
	char	dir[160];
	MDB_env	*env;

	snprintf(dir, sizeof(dir), "%s/db", r.dir);
	ck_assert_int_eq(mdb_env_create(&env), 0);
	mdb_env_set_maxdbs(env, 16);
	mdb_env_set_mapsize(env, (size_t)1 << 34);
	ck_assert_int_eq(mdb_env_open(env, dir, 0, 0600), 0);
	ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, txn), 0);
	ck_assert_int_eq(mdb_dbi_open(*txn, table, flags, dbi), 0);
	return env;
}

void
db_done(MDB_env *env, MDB_txn *txn)
{
	ck_assert_int_eq(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

void
meta_patch(const char *key, size_t off, uint64_t be)
{
	MDB_txn	*txn;
	MDB_dbi	 dbi;
	MDB_env	*env = db_edit("meta", 0, &txn, &dbi);
	MDB_val	 k = { strlen(key), (void *)(uintptr_t)key }, v;
	uint8_t	 b[256];

	be = htobe64(be);
	ck_assert_int_eq(mdb_get(txn, dbi, &k, &v), 0);
	memcpy(b, v.mv_data, v.mv_size);
	memcpy(b + off, &be, sizeof(be));
	v.mv_data = b;
	ck_assert_int_eq(mdb_put(txn, dbi, &k, &v, 0), 0);
	db_done(env, txn);
}

void
expiry_age(uint64_t ms)
{
	MDB_txn	*txn;
	MDB_dbi	 dbi;
	MDB_env	*env = db_edit("expiry", 0, &txn, &dbi);
	MDB_val	 k, v;
	MDB_cursor *cur;
	uint8_t	 keys[16][34];
	uint64_t t;
	size_t	 n = 0, i;

	ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cur), 0);
	while (n < 16 && mdb_cursor_get(cur, &k, &v, MDB_NEXT) == 0) {
		ck_assert_uint_eq(k.mv_size, sizeof(keys[0]));
		memcpy(keys[n++], k.mv_data, k.mv_size);
		ck_assert_int_eq(mdb_cursor_del(cur, 0), 0);
	}
	mdb_cursor_close(cur);
	for (i = 0; i < n; i++) {
		memcpy(&t, keys[i], sizeof(t));
		t = htobe64(be64toh(t) - ms);
		memcpy(keys[i], &t, sizeof(t));
		k.mv_data = keys[i];
		k.mv_size = sizeof(keys[i]);
		v.mv_size = 0;
		ck_assert_int_eq(mdb_put(txn, dbi, &k, &v, 0), 0);
	}
	db_done(env, txn);
}

void
key_age(const char *key, uint64_t ms)
{
	MDB_txn		*txn;
	MDB_dbi		 kept, times;
	MDB_env		*env = db_edit("keys", 0, &txn, &kept);
	struct row_key	 row;
	char		 k[8 + CLIENT_KEY];
	uint8_t		 buf[256];
	size_t		 len = (size_t)snprintf(k + 8, CLIENT_KEY, "%s/%s",
			    RIG_TENANT, key);
	MDB_val		 rk = { len, k + 8 }, tk = { 8 + len, k }, v;
	MDB_val		 nothing = { 0, NULL };
	uint64_t	 t;
	ssize_t		 n;

	ck_assert_int_eq(mdb_dbi_open(txn, "key-times", 0, &times), 0);
	ck_assert_int_eq(mdb_get(txn, kept, &rk, &v), 0);
	ck_assert_int_eq(wire_decode(&wire_row_key, v.mv_data, v.mv_size,
	    &row), 0);
	t = htobe64(row.made_ms);
	memcpy(k, &t, sizeof(t));
	ck_assert_int_eq(mdb_del(txn, times, &tk, NULL), 0);
	row.made_ms -= ms;
	t = htobe64(row.made_ms);
	memcpy(k, &t, sizeof(t));
	ck_assert_int_eq(mdb_put(txn, times, &tk, &nothing, 0), 0);
	n = wire_encode(&wire_row_key, &row, buf, sizeof(buf));
	ck_assert_int_gt(n, 0);
	v.mv_data = buf;
	v.mv_size = (size_t)n;
	ck_assert_int_eq(mdb_put(txn, kept, &rk, &v, 0), 0);
	db_done(env, txn);
}

size_t
rows_of(const char *table)
{
	MDB_txn		*txn;
	MDB_dbi		 dbi;
	MDB_env		*env = db_edit(table, 0, &txn, &dbi);
	MDB_stat	 st;

	ck_assert_int_eq(mdb_stat(txn, dbi, &st), 0);
	db_done(env, txn);
	return st.ms_entries;
}
