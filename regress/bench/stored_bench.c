/*
 * stored_bench.c: durable records of the real stored, by channel, against
 * LMDB with one synchronous transaction for each, on the same file system.
 * (Row P14 of the other table has the API before it.)
 *
 * link: stored/../regress/proto/storedrig.c stored/../regress/bench/bench.c
 */
#include <sys/stat.h>

#include <check.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../proto/storedrig.h"
#include "bench.h"
#include "xmalloc.h"

#define CLIENTS	64
#define RECORDS	640		/* per run with 64 clients */
#define LINE	330		/* bytes of such a record */

static struct rig		r;
static struct msg_event_append	w;
static MDB_env			*env;
static MDB_dbi			dbi;
static uint64_t			key;

/* A closed loop: `clients' requests under way until n are answered. */
static double
ours(unsigned int clients, unsigned int n)
{
	struct msg	m;
	unsigned int	sent = 0, done = 0;
	double		t0 = bench_usec();

	while (done < n) {
		for (; sent < n && sent < done + clients; sent++)
			if (chan_ask(&r.apid, MSG_EVENT_APPEND, &w, -1,
			    NULL) == -1)
				return -1;
		if (rig_recv(&r.apid, &m) != 1 || m.row->type == MSG_ERROR)
			return -1;
		done++;
	}
	return (bench_usec() - t0) / n;
}

static double
theirs(unsigned int n)
{
	static char	line[LINE];
	unsigned int	i;
	double		t0 = bench_usec();

	memset(line, 'x', sizeof(line));
	for (i = 0; i < n; i++) {
		MDB_txn	*txn;
		MDB_val	 k = { sizeof(key), &key }, v = { LINE, line };

		key++;
		if (mdb_txn_begin(env, NULL, 0, &txn) != 0 ||
		    mdb_put(txn, dbi, &k, &v, MDB_APPEND) != 0 ||
		    mdb_txn_commit(txn) != 0)
			return -1;
	}
	return (bench_usec() - t0) / n;
}

static double
many(void *arg)
{
	(void)arg;
	return ours(CLIENTS, RECORDS);
}

static double
one(void *arg)
{
	(void)arg;
	return ours(1, 8);
}

static double
accepted(void *arg)
{
	double	t;

	(void)arg;
	w.durable = 0;
	t = ours(1, 1);
	w.durable = 1;
	return t;
}

static double
lmdb(void *arg)
{
	(void)arg;
	return theirs(8);
}

static void
open_peer(void)
{
	char	dir[160];
	MDB_txn	*txn;

	snprintf(dir, sizeof(dir), "%s/peer", r.dir);
	if (mkdir(dir, 0700) == -1 || mdb_env_create(&env) != 0 ||
	    mdb_env_set_mapsize(env, (size_t)1 << 34) != 0 ||
	    mdb_env_open(env, dir, 0, 0600) != 0 ||
	    mdb_txn_begin(env, NULL, 0, &txn) != 0 ||
	    mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi) != 0 ||
	    mdb_txn_commit(txn) != 0)
		ck_abort_msg("the peer does not open");
}

/* The rig's functions are Check's: so is the frame. */
START_TEST(table)
{
	struct event_auth_failed ev = { .method = "GET", .path = "/v1/events",
	    .peer = "127.0.0.1:50000" };
	uint8_t			buf[1024];
	struct bench_stat	a, b;

	rig_init(&r);
	rig_start(&r);
	open_peer();
	w.type = EVENT_AUTH_FAILED;
	w.durable = 1;
	(void)str_copy(w.actor, "nobody", sizeof(w.actor));
	(void)str_copy(w.outcome, "denied", sizeof(w.outcome));
	(void)str_copy(w.tenant, RIG_TENANT, sizeof(w.tenant));
	w.data.data = buf;
	w.data.len = (size_t)wire_encode(&wire_event_auth_failed, &ev, buf,
	    sizeof(buf));
	bench_head();
	if (bench_pairs(many, NULL, lmdb, NULL, 2, 100, &a, &b) == -1)
		ck_abort_msg("a run failed");
	bench_value("P14", "durable records, 64 in flight", "1/s",
	    1e6 / a.p50, 1e6 / b.p50, "LMDB, one transaction each", 4, 10);
	if (bench_pairs(one, NULL, lmdb, NULL, 2, 100, &a, &b) == -1)
		ck_abort_msg("a run failed");
	bench_row("", "one durable record, asked to answered", &a, &b,
	    "LMDB, one transaction", 0, 0);
	if (bench_pairs(accepted, NULL, lmdb, NULL, 2, 100, &a, &b) == -1)
		ck_abort_msg("a run failed");
	bench_row("", "one that need not wait for the disk", &a, &b,
	    "LMDB, one transaction", 0, 0);
	mdb_env_close(env);
	rig_stop(&r);
	rig_free(&r);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("bench");
	TCase	*t = tcase_create("table");
	SRunner	*sr;
	int	 bad;

	rig_check();
	tcase_add_test(t, table);
	tcase_set_timeout(t, 0);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_set_fork_status(sr, CK_NOFORK);
	srunner_run_all(sr, CK_MINIMAL);
	bad = srunner_ntests_failed(sr);
	srunner_free(sr);
	return bad != 0;
}
