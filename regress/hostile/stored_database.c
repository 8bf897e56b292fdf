/*
 * stored_database.c: stored_hostile_test, a database that was changed from
 * outside, and what is deleted when it is old.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../stored/stored.h"
#include "stored_hostile.h"

START_TEST(newer_schema)
{
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	rig_stop(&r);
	meta_patch("schema", 0, DB_SCHEMA + 1);
	must_not_start();
	meta_patch("schema", 0, DB_SCHEMA);
	rig_start(&r);
	whole(1);
}
END_TEST

/* The end of the log is proved at each start. */
START_TEST(damaged)
{
	MDB_txn	*txn;
	MDB_dbi	 dbi;
	MDB_env	*env;
	size_t	 seq = 3;
	MDB_val	 k = { sizeof(seq), &seq }, v;
	char	 line[4096];
	int	 i;

	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	rig_stop(&r);
	env = db_edit("events", MDB_INTEGERKEY, &txn, &dbi);
	ck_assert_int_eq(mdb_get(txn, dbi, &k, &v), 0);
	memcpy(line, v.mv_data, v.mv_size);
	line[40] ^= 1;
	v.mv_data = line;
	ck_assert_int_eq(mdb_put(txn, dbi, &k, &v, 0), 0);
	db_done(env, txn);
	must_not_start();			/* a byte turned */
	env = db_edit("events", MDB_INTEGERKEY, &txn, &dbi);
	ck_assert_int_eq(mdb_del(txn, dbi, &k, NULL), 0);
	db_done(env, txn);
	must_not_start();			/* the tail cut off */
}
END_TEST

/* A clock that was an hour ahead: times stay, and never decrease. */
START_TEST(clock_back)
{
	uint64_t	ahead = now_ms() + 3600000;
	char		when[25], *log;

	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	rig_stop(&r);
	meta_patch("head", 8, ahead);
	rig_start(&r);
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	time_rfc3339(ahead, when);
	log = rig_log(&r, "");
	ck_assert_uint_eq(rig_verify(log), 2);
	ck_assert_ptr_nonnull(strstr(log, when));
	free(log);
}
END_TEST

static int
key_known(const char *key)
{
	struct msg_key_get	q = { .tenant = RIG_TENANT };
	struct msg		m;

	RIG_COPY(q.key, key);
	rig_ask(&r.apid, MSG_KEY_GET, &q, &m);
	ck_assert_int_eq(m.row->type, MSG_KEY_IS);
	return m.body.key_is.sandbox[0] != '\0';
}

/* Keys are known for 24 hours; then they can be used again, and go. */
START_TEST(keys_purged)
{
	struct row_sandbox	a = rig_box("a"), b = rig_box("b");
	struct row_sandbox	c = rig_box("c");

	r.key = "old";
	ck_assert_uint_eq(rig_create(&r, &a), CODE_NONE);
	r.key = "new";
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	rig_stop(&r);
	key_age("old", UINT64_C(86400000) - 120000);
	rig_start(&r);
	ck_assert(key_known("old") && key_known("new"));
	rig_stop(&r);
	ck_assert_uint_eq(rows_of("keys"), 2);
	key_age("old", 120000);
	rig_start(&r);
	ck_assert(!key_known("old") && key_known("new"));
	/* the purge at the start is behind us: the old time is deleted */
	while (rig_append(&r, "", 1) != CODE_NONE || key_known("old"))
		;
	r.key = "old";
	ck_assert_uint_eq(rig_create(&r, &c), CODE_NONE);
	ck_assert(key_known("old"));
	rig_stop(&r);
	ck_assert_uint_eq(rows_of("keys"), 2);
	ck_assert_uint_eq(rows_of("key-times"), 2);
	rig_start(&r);
	ck_assert(key_known("old"));
}
END_TEST

/* DELETED rows are there for 24 hours and gone afterwards. */
START_TEST(purged)
{
	struct row_sandbox	gone[4], kept = rig_box("kept"), got;
	struct row_session	s;
	unsigned int		i, k;
	char			name[16];
	struct msg_session_rows	q = { .limit = 1 };
	struct msg		m;

	rig_ready(&r, &kept);
	ck_assert_uint_eq(rig_list(&r, kept.id, 0, "kept.example"),
	    CODE_NONE);
	s = rig_session(kept.id);
	ck_assert_uint_eq(rig_put(&r, &s, 0), CODE_NONE);
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "gone-%u", i);
		gone[i] = rig_box(name);
		rig_ready(&r, &gone[i]);
		ck_assert_uint_eq(rig_list(&r, gone[i].id, 0, "a.example"),
		    CODE_NONE);
		ck_assert_uint_eq(rig_network(&r, gone[i].id,
		    NETWORK_ALLOWLIST, ""), CODE_NONE);
		ck_assert_uint_eq(rig_list(&r, gone[i].id, 0, "b.example"),
		    CODE_NONE);
		/* more rows than one transaction deletes */
		for (k = 0; k < 250; k++) {
			s = rig_session(gone[i].id);
			s.state = k == 0 ? 1 : 2;
			ck_assert_uint_eq(rig_put(&r, &s, 0), CODE_NONE);
		}
		ck_assert_uint_eq(rig_move(&r, gone[i].id, BOX_DRAINING, "",
		    NULL), CODE_NONE);
		ck_assert_uint_eq(rig_move(&r, gone[i].id, BOX_DELETING, "",
		    NULL), CODE_NONE);
		ck_assert_uint_eq(rig_move(&r, gone[i].id, BOX_DELETED, "",
		    NULL), CODE_NONE);
	}
	rig_stop(&r);
	ck_assert_uint_eq(rows_of("allowed"), 5);
	ck_assert_uint_eq(rows_of("lists"), 1);
	expiry_age(UINT64_C(86400000) - 120000);
	rig_start(&r);
	(void)rig_append(&r, "", 1);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(rig_get(&r, gone[i].id, &got), 1);
	rig_stop(&r);
	expiry_age(120000);
	rig_start(&r);
	/* one batch after the other, each behind what is asked meanwhile */
	for (i = 0; i < 4;)
		if (rig_append(&r, "", 1) == CODE_NONE &&
		    rig_get(&r, gone[i].id, &got) == 0)
			i++;
	for (i = 0; i < 4; i++) {
		RIG_COPY(q.sandbox, gone[i].id);
		rig_ask(&r.apid, MSG_SESSION_ROWS, &q, &m);
		ck_assert_uint_eq(m.body.session_page.rows.n, 0);
	}
	ck_assert_int_eq(rig_get(&r, kept.id, &got), 1);
	RIG_COPY(q.sandbox, kept.id);
	rig_ask(&r.apid, MSG_SESSION_ROWS, &q, &m);
	ck_assert_uint_eq(m.body.session_page.rows.n, 1);
	whole(rig_info(&r).last_seq);
	rig_stop(&r);
	ck_assert_uint_eq(rows_of("allowed"), 1);
	ck_assert_uint_eq(rows_of("lists"), 1);
	rig_start(&r);
}
END_TEST

TCase *
database_case(void)
{
	TCase	*t = rig_case("database");

	tcase_add_test(t, newer_schema);
	tcase_add_test(t, damaged);
	tcase_add_test(t, clock_back);
	tcase_add_test(t, keys_purged);
	tcase_add_test(t, purged);
	return t;
}
