/*
 * stored_hostile_test.c: the real stored against peers without manners, kill
 * at any moment, a full disk, a damaged database.
 *
 * link: stored/../regress/proto/storedrig.c
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../stored/stored.h"
#include "../proto/storedrig.h"
#include "xmalloc.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

static struct rig	r;

static void
setup(void)
{
	rig_init(&r);
	rig_start(&r);
}

static void
teardown(void)
{
	rig_free(&r);
}

/* The log is whole and has n records. */
static void
whole(uint64_t n)
{
	char	*log = rig_log(&r, "");

	ck_assert_uint_eq(rig_verify(log), n);
	free(log);
}

/* stored serves privd although apid is cut off. */
static void
lives(void)
{
	struct msg_store_info	q = { 0 };
	struct msg		m;

	rig_ask(&r.privd, MSG_STORE_INFO, &q, &m);
	ck_assert_uint_eq(m.row->type, MSG_STORE_INFO_IS);
}

static void
raw(struct chan *c, const void *data, size_t len)
{
	ck_assert_int_eq(send(c->fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* apid's channel ends, nothing else does. */
static void
cut_off(void)
{
	struct msg	m;

	while (rig_recv(&r.apid, &m) == 1)
		;
	lives();
	rig_kill(&r);
	rig_start(&r);
}

/* ---- packets ----------------------------------------------------- */

START_TEST(nonsense)
{
	static const struct { const char *s; size_t n; } pkts[] = {
		{ "x", 1 },
		{ "\x94", 1 },
		{ "\x94\x01\x62\x01", 4 },		/* no body */
		{ "\x94\x02\x62\x01\x80", 5 },		/* version */
		{ "\x94\x01\xcd\x03\xe7\x01\x80", 7 },	/* type 999 */
		{ "\x94\x01\x62\x01\x80\x00", 6 },	/* left over */
		{ "\x94\x01\x62\x01\x81\xa1x\x01", 8 },	/* unknown key */
		{ "\x94\x01\x0b\x01\x81\xaageneration\x01", 17 }, /* privd's */
		{ "\x94\x01\x01\x01\x80", 5 },		/* OK, to nothing */
		{ "\x94\x01\x54\x01\x81\xa3rid\xcb\0\0\0\0\0\0\0\0", 18 },
	};
	static char	big[70000];
	size_t		i;

	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	for (i = 0; i < sizeof(pkts) / sizeof(pkts[0]); i++) {
		raw(&r.apid, pkts[i].s, pkts[i].n);
		cut_off();
	}
	raw(&r.apid, big, sizeof(big));
	cut_off();
	whole(1);
}
END_TEST

START_TEST(descriptor)
{
	static const char	pkt[] = "\x94\x01\x62\x01\x80";
	union {
		char		b[CMSG_SPACE(sizeof(int))];
		struct cmsghdr	align;
	}		u = { { 0 } };
	struct iovec	iov = { (void *)(uintptr_t)pkt, sizeof(pkt) - 1 };
	struct msghdr	mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = u.b, .msg_controllen = sizeof(u.b) };
	struct cmsghdr	*cm = CMSG_FIRSTHDR(&mh);
	int		fd = 0;

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(r.apid.fd, &mh, 0), (ssize_t)iov.iov_len);
	cut_off();
}
END_TEST

/* Rows that lie: answered, and nothing of them is written. */
START_TEST(rows)
{
	static uint8_t			row[WIRE_MAX], bad[WIRE_MAX];
	struct row_sandbox		box = rig_box("a");
	struct msg_sandbox_create	c = { .actor = "t" };
	struct msg_session_put		p = { .actor = "t", .durable = 1 };
	struct msg_event_append		e = { .type = EVENT_AUTH_FAILED,
	    .actor = "t", .outcome = "ok" };
	size_t				n, i;
	unsigned int			code;

	n = (size_t)wire_encode(&wire_row_sandbox, &box, row, sizeof(row));
	c.row.data = bad;
	for (i = 1; i < n; i += 7) {
		memcpy(bad, row, n);
		c.row.len = i;			/* cut */
		rig_refused(&r.apid, MSG_SANDBOX_CREATE, &c,
		    CODE_BAD_MESSAGE);
		p.row = e.data = c.row;
		rig_refused(&r.apid, MSG_SESSION_PUT, &p, CODE_BAD_MESSAGE);
		rig_refused(&r.apid, MSG_EVENT_APPEND, &e, CODE_BAD_MESSAGE);
		c.row.len = n;			/* a bit turned */
		bad[i] ^= (uint8_t)(1 << i % 8);
		code = rig_code(&r.apid, MSG_SANDBOX_CREATE, &c);
		ck_assert(code == CODE_NONE || code == CODE_BAD_MESSAGE ||
		    code == CODE_NAME_TAKEN || code == CODE_EXISTS);
	}
	whole(rig_info(&r).last_seq);
}
END_TEST

START_TEST(privd_goes)
{
	int	st;

	chan_close(&r.privd);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	rig_spawn(&r);				/* also before the start */
	chan_close(&r.privd);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	rig_start(&r);
	raw(&r.privd, "x", 1);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

START_TEST(apid_goes)
{
	chan_close(&r.apid);
	lives();
	rig_stop(&r);
}
END_TEST

/* apid may speak before privd has said go; it is heard afterwards. */
START_TEST(early)
{
	struct msg_store_info	q = { 0 };
	struct msg		m;
	uint32_t		rid;

	rig_stop(&r);
	rig_spawn(&r);
	ck_assert_int_eq(chan_ask(&r.apid, MSG_STORE_INFO, &q, -1, &rid), 0);
	rig_go(&r);
	ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
	ck_assert_uint_eq(m.rid, rid);
}
END_TEST

static long
rss_kib(void)
{
	char	path[64], line[256];
	FILE	*f;
	long	kib = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)r.pid);
	ck_assert_ptr_nonnull(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "RssAnon: %ld kB", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/*
 * 60,000 requests of a peer that does not read: memory stays bounded, every
 * one is answered once the peer reads.
 */
START_TEST(flood)
{
	struct msg_event_read	q = { .limit = 1000 };
	struct msg		m;
	unsigned int		i, answers = 0, asked = 0;
	struct pollfd		p = { .fd = r.apid.fd, .events = POLLOUT };

	for (i = 0; i < 2000; i++)
		ck_assert_uint_eq(rig_append(&r, "", i == 1999), CODE_NONE);
	/* until stored has stopped listening for a while */
	while (asked < 60000) {
		if (!chan_pending(&r.apid)) {
			ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_READ, &q,
			    -1, NULL), 0);
			asked++;
		}
		if (chan_flush(&r.apid) == 1 && poll(&p, 1, 300) == 0)
			break;
	}
	ck_assert_uint_lt(asked, 60000);
	if (!SANITIZED)
		ck_assert_int_lt(rss_kib(), 16 * 1024);
	lives();
	while (answers < asked) {
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_EVENT_PAGE);
		answers++;
	}
	whole(2000);
}
END_TEST

START_TEST(many_waiters)
{
	struct msg_event_read	q = { .limit = 10, .wait = 1 };
	struct msg		m;
	unsigned int		i, pages = 0, refused = 0;

	for (i = 0; i < 4200; i++)
		ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_READ, &q, -1,
		    NULL), 0);
	while (refused < 4200 - 4096) {
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_ERROR);
		ck_assert_uint_eq(m.body.error.code, CODE_TOO_MANY);
		refused++;
	}
	(void)rig_append(&r, "", 1);	/* skips pages that come before */
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	for (pages = 0; rig_info(&r).last_seq != 2; pages++)
		;
	whole(2);
}
END_TEST

/* ---- kill at any moment ------------------------------------------ */

/* What was acknowledged is there, the chain is whole, numbers go on. */
START_TEST(killed)
{
	struct event_auth_failed ev = { .method = "GET" };
	struct msg_event_append	w = { .type = EVENT_AUTH_FAILED,
	    .durable = 1, .actor = "t", .outcome = "denied" };
	uint8_t			buf[512];
	struct msg		m;
	uint64_t		acked = 0, have = 0;
	unsigned int		round, sent;
	char			*log;

	w.data.data = buf;
	w.data.len = (size_t)wire_encode(&wire_event_auth_failed, &ev, buf,
	    sizeof(buf));
	for (round = 0; round < 30; round++) {
		for (sent = 0; sent < 40; sent++)
			ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_APPEND,
			    &w, -1, NULL), 0);
		for (sent = 0; sent < round; sent++) {
			ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
			ck_assert_uint_eq(m.row->type, MSG_EVENT_APPENDED);
			ck_assert_uint_gt(m.body.event_appended.seq, acked);
			acked = m.body.event_appended.seq;
		}
		rig_kill(&r);
		rig_start(&r);
		log = rig_log(&r, "");
		have = rig_verify(log);
		free(log);
		ck_assert_uint_ge(have, acked);
		acked = have;
	}
	ck_assert_uint_ge(have, 29);
}
END_TEST

/* ---- one database, one stored ------------------------------------ */

START_TEST(second)
{
	struct rig	other = r;
	int		st;

	chan_init(&other.privd, -1, A_PRIVD, A_STORED, S_INIT);
	chan_init(&other.apid, -1, A_APID, A_STORED, S_RUN);
	rig_spawn(&other);
	st = rig_wait(&other);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	whole(1);
}
END_TEST

/* The directory: not ours, open to others, a link. */
START_TEST(directory)
{
	char	db[160], to[170];
	int	st;

	rig_stop(&r);
	snprintf(db, sizeof(db), "%s/db", r.dir);
	ck_assert_int_eq(chmod(db, 0750), 0);
	rig_spawn(&r);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	ck_assert_int_eq(chmod(db, 0700), 0);
	ck_assert_int_eq(chown(db, 1, 1), 0);
	rig_spawn(&r);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	ck_assert_int_eq(chown(db, RIG_UID, RIG_UID), 0);
	snprintf(to, sizeof(to), "%s.real", db);
	ck_assert_int_eq(rename(db, to), 0);
	ck_assert_int_eq(symlink(to, db), 0);
	rig_spawn(&r);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	ck_assert_int_eq(unlink(db), 0);
	ck_assert_int_eq(rename(to, db), 0);
	rig_start(&r);
	whole(0);
}
END_TEST

/* ---- the fence --------------------------------------------------- */

static void
status_is(const char *key, const char *want)
{
	char	path[64], line[256];
	FILE	*f;
	int	seen = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)r.pid);
	ck_assert_ptr_nonnull(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0) {
			seen = 1;
			ck_assert_msg(strstr(line, want) != NULL, "%s", line);
		}
	ck_assert_int_eq(seen, 1);
	fclose(f);
}

START_TEST(fence)
{
	char		path[64], db[160], uid[64];
	struct stat	a, b;
	struct dirent	*e;
	DIR		*d;
	int		sockets = 0;

	snprintf(uid, sizeof(uid), "%d\t%d\t%d\t%d", RIG_UID, RIG_UID,
	    RIG_UID, RIG_UID);
	status_is("Uid:", uid);
	status_is("Gid:", uid);
	status_is("Groups:", "Groups:\t \n");
	status_is("CapPrm:", "0000000000000000");
	status_is("CapBnd:", "0000000000000000");
	status_is("NoNewPrivs:", "1");
	status_is("Threads:", SANITIZED ? "" : "2");
	status_is("Seccomp:", SANITIZED ? "0" : "2");
	snprintf(path, sizeof(path), "/proc/%d/root/.", (int)r.pid);
	snprintf(db, sizeof(db), "%s/db", r.dir);
	ck_assert_int_eq(stat(path, &a), 0);
	ck_assert_int_eq(stat(db, &b), 0);
	ck_assert(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
	/* not dumpable: its /proc files are root's */
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)r.pid);
	ck_assert_int_eq(stat(path, &a), 0);
	ck_assert_uint_eq(a.st_uid, 0);
	ck_assert_ptr_nonnull(d = opendir(path));
	while ((e = readdir(d)) != NULL) {
		char	l[128] = "";

		(void)!readlinkat(dirfd(d), e->d_name, l, sizeof(l) - 1);
		sockets += strncmp(l, "socket:", 7) == 0;
	}
	closedir(d);
	ck_assert_int_eq(sockets, 2);		/* privd and apid */
}
END_TEST

/* ---- the database from outside ----------------------------------- */

/* Opens the table of the database of the stopped stored. */
static MDB_env *
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

static void
db_done(MDB_env *env, MDB_txn *txn)
{
	ck_assert_int_eq(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static void
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

static void
must_not_start(void)
{
	int	st;

	rig_spawn(&r);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}

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

/* Makes every deletion `ms' older than it is. */
static void
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

/* Makes a key `ms' older than it is. */
static void
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

/* How many rows a table has. */
static size_t
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

static int
key_known(const char *key)
{
	struct msg_key_get	q = { .tenant = RIG_TENANT };
	struct msg		m;

	strcpy(q.key, key);
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
	s = rig_session(kept.id);
	ck_assert_uint_eq(rig_put(&r, &s, 0), CODE_NONE);
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "gone-%u", i);
		gone[i] = rig_box(name);
		rig_ready(&r, &gone[i]);
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
		strcpy(q.sandbox, gone[i].id);
		rig_ask(&r.apid, MSG_SESSION_ROWS, &q, &m);
		ck_assert_uint_eq(m.body.session_page.rows.n, 0);
	}
	ck_assert_int_eq(rig_get(&r, kept.id, &got), 1);
	strcpy(q.sandbox, kept.id);
	rig_ask(&r.apid, MSG_SESSION_ROWS, &q, &m);
	ck_assert_uint_eq(m.body.session_page.rows.n, 1);
	whole(rig_info(&r).last_seq);
}
END_TEST

/* ---- the full disk ----------------------------------------------- */

static void
fill(const char *path)
{
	static char	block[65536];
	int		fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	size_t		n;

	ck_assert_int_ne(fd, -1);
	for (n = sizeof(block); n >= 512; n /= 2)
		while (write(fd, block, n) > 0)
			;
	ck_assert_int_eq(errno, ENOSPC);
	close(fd);
}

/* Sends n denials at once; how many are in the log.  The others: DISK_FULL. */
static unsigned int
append_many(unsigned int n)
{
	struct event_auth_failed ev = { .method = "GET" };
	struct msg_event_append	w = { .type = EVENT_AUTH_FAILED,
	    .durable = 1, .actor = "t", .outcome = "denied" };
	uint8_t			buf[1024];
	struct msg		m;
	unsigned int		i, ok = 0;

	memset(ev.path, 'p', sizeof(ev.path) - 1);
	w.data.data = buf;
	w.data.len = (size_t)wire_encode(&wire_event_auth_failed, &ev, buf,
	    sizeof(buf));
	for (i = 0; i < n; i++)
		if (chan_ask(&r.apid, MSG_EVENT_APPEND, &w, -1, NULL) == -1)
			ck_abort_msg("ask: %s", r.apid.why);
	for (i = 0; i < n; i++) {
		if (rig_recv(&r.apid, &m) != 1)
			ck_abort_msg("closed");
		if (m.row->type == MSG_ERROR)
			ck_assert_uint_eq(m.body.error.code, CODE_DISK_FULL);
		else
			ok++;
	}
	return ok;
}

/*
 * Sends n new sessions at once, each about 64 KiB of rows and record; how
 * many are there.  The others: DISK_FULL.
 */
static unsigned int
put_many(const char *sandbox, unsigned int n)
{
	static char		arg[30000];
	static uint8_t		buf[WIRE_MAX];
	struct wire_bin		v = { (const uint8_t *)arg, sizeof(arg) };
	struct msg_session_put	p = { .actor = "t", .durable = 1 };
	struct row_session	row;
	struct msg		m;
	unsigned int		i, ok = 0;

	memset(arg, 'x', sizeof(arg));
	for (i = 0; i < n; i++) {
		row = rig_session(sandbox);
		row.argv.v = &v;
		row.argv.n = 1;
		p.row.len = (size_t)wire_encode(&wire_row_session, &row, buf,
		    sizeof(buf));
		p.row.data = buf;
		ck_assert_int_eq(chan_ask(&r.apid, MSG_SESSION_PUT, &p, -1,
		    NULL), 0);
	}
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		if (m.row->type == MSG_ERROR)
			ck_assert_uint_eq(m.body.error.code, CODE_DISK_FULL);
		else
			ok++;
	}
	return ok;
}

/*
 * The stages of a disk that fills up: creates are refused first, new sessions
 * when most of the reserve is used, removals and denials never before the
 * last byte; then every change; and all is well when there is space again.
 */
static void
disk_full(void)
{
	struct row_sandbox	a = rig_box("a"), b = rig_box("b"), got;
	unsigned int		sessions = 0, denials = 0, full = 0, n, i;
	char			path[160];

	rig_ready(&r, &a);
	ck_assert_uint_eq(rig_info(&r).reserve_short, 0);
	snprintf(path, sizeof(path), "%s/fill", r.dir);
	fill(path);
	/* the space behind the file is still there */
	while ((n = put_many(a.id, 20)) == 20)
		sessions += n;
	ck_assert_uint_gt(sessions, 300);
	ck_assert_uint_eq(rig_info(&r).reserve_short, 1);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_DISK_FULL);
	ck_assert_int_eq(rig_get(&r, b.id, &got), 0);
	/* what must go on goes on */
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DRAINING, "", NULL),
	    CODE_NONE);
	/* down to the last page */
	while ((n = append_many(300)) == 300)
		denials += n;
	ck_assert_uint_gt(denials, 1000);
	for (i = 0; i < 20; i++)		/* it lives, it says so */
		full += append_many(300) < 300;
	ck_assert_uint_gt(full, 0);
	ck_assert_int_eq(unlink(path), 0);
	/* recovery without help: the reserve is looked at every second */
	while (rig_info(&r).reserve_short == 1)
		(void)rig_append(&r, "", 1);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DELETING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	rig_stop(&r);
	rig_start(&r);
	ck_assert_int_eq(rig_get(&r, a.id, &got), 1);
	ck_assert_uint_eq(got.state, BOX_DELETING);
	whole(rig_info(&r).last_seq);
}

START_TEST(full_tmpfs)
{
	rig_stop(&r);
	ck_assert_int_eq(mount("none", r.dir, "tmpfs", 0,
	    "size=160m,mode=755"), 0);
	rig_start(&r);
	disk_full();
	rig_stop(&r);
	ck_assert_int_eq(umount(r.dir), 0);
}
END_TEST

/* The same on ext4, where there is a loop device. */
START_TEST(full_ext4)
{
	char	cmd[1024];

	rig_stop(&r);
	snprintf(cmd, sizeof(cmd), "truncate -s 200M %s.img && "
	    "mkfs.ext4 -q -m 0 %s.img && mount -o loop %s.img %s", r.dir,
	    r.dir, r.dir, r.dir);
	if (system(cmd) != 0) {
		printf("skipped: full_ext4: no loop device or mkfs.ext4\n");
		snprintf(cmd, sizeof(cmd), "rm -f %s.img", r.dir);
		ck_assert_int_eq(system(cmd), 0);
		return;
	}
	ck_assert_int_eq(chmod(r.dir, 0755), 0);
	rig_start(&r);
	disk_full();
	rig_stop(&r);
	snprintf(cmd, sizeof(cmd), "umount %s && rm %s.img", r.dir, r.dir);
	ck_assert_int_eq(system(cmd), 0);
}
END_TEST

/*
 * What was accepted and not yet on disk when it filled up is kept, and is
 * there, in its order, when there is space again.
 */
START_TEST(full_accepted)
{
	struct row_sandbox	a = rig_box("a"), got;
	struct msg_sandbox_move	m = { .actor = "t" };
	struct msg		ans;
	unsigned int		i, ok = 0, full = 0, k;
	char			path[160];
	static const unsigned int steps[] = { BOX_DRAINING, BOX_DELETING };

	rig_stop(&r);
	ck_assert_int_eq(mount("none", r.dir, "tmpfs", 0,
	    "size=160m,mode=755"), 0);
	rig_start(&r);
	rig_ready(&r, &a);
	snprintf(path, sizeof(path), "%s/fill", r.dir);
	fill(path);
	/* the reserve is taken away from outside: what is left is little */
	snprintf(path, sizeof(path), "%s/db/data.mdb", r.dir);
	{
		struct stat	st;

		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_int_eq(truncate(path, st.st_size), 0);
	}
	snprintf(path, sizeof(path), "%s/fill", r.dir);
	fill(path);
	/* in one breath: two steps that do not wait for the disk */
	strcpy(m.id, a.id);
	for (i = 0; i < 2; i++) {
		m.to = steps[i];
		ck_assert_int_eq(chan_ask(&r.apid, MSG_SANDBOX_MOVE, &m, -1,
		    NULL), 0);
	}
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_recv(&r.apid, &ans), 1);
		ok += ans.row->type == MSG_OK;
	}
	for (k = 0; k < 50 && full == 0; k++)
		full += rig_append(&r, "", 1) == CODE_DISK_FULL;
	ck_assert_int_eq(unlink(path), 0);
	while (rig_append(&r, "", 1) != CODE_NONE)
		;
	ck_assert_int_eq(rig_get(&r, a.id, &got), 1);
	ck_assert_uint_eq(ok, 2);
	ck_assert_uint_eq(got.state, BOX_DELETING);
	whole(rig_info(&r).last_seq);
	rig_stop(&r);
	ck_assert_int_eq(umount(r.dir), 0);
}
END_TEST

/* CK_RUN_CASE runs one of these alone. */
static TCase *
tcase(Suite *s, const char *name)
{
	TCase	*t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, SANITIZED ? 400 : 200);
	suite_add_tcase(s, t);
	return t;
}

int
main(void)
{
	Suite	*s = suite_create("stored_hostile");
	TCase	*t;
	SRunner	*sr;
	int	 bad;

	rig_check();
	/* mounts of these tests are theirs and go with them */
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1) {
		printf("skipped: no mount namespace\n");
		return 77;
	}
	t = tcase(s, "peer");
	tcase_add_test(t, nonsense);
	tcase_add_test(t, descriptor);
	tcase_add_test(t, rows);
	tcase_add_test(t, privd_goes);
	tcase_add_test(t, apid_goes);
	tcase_add_test(t, early);
	tcase_add_test(t, flood);
	tcase_add_test(t, many_waiters);
	t = tcase(s, "crash");
	tcase_add_test(t, killed);
	t = tcase(s, "start");
	tcase_add_test(t, second);
	tcase_add_test(t, directory);
	tcase_add_test(t, fence);
	t = tcase(s, "database");
	tcase_add_test(t, newer_schema);
	tcase_add_test(t, damaged);
	tcase_add_test(t, clock_back);
	tcase_add_test(t, purged);
	tcase_add_test(t, keys_purged);
	t = tcase(s, "full");
	tcase_add_test(t, full_tmpfs);
	tcase_add_test(t, full_ext4);
	tcase_add_test(t, full_accepted);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	bad = srunner_ntests_failed(sr);
	srunner_free(sr);
	return bad != 0;
}
