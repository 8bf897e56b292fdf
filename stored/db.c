/*
 * db.c: LMDB as stored uses it.
 *
 * Rules, each learned from a program that broke without it:
 *   - the map is as large as it will ever be; resizing one under a reader
 *     reports success and crashes the reader;
 *   - the environment is opened after exec, once, and never across fork;
 *   - read transactions are short (a long one pins pages), and only the main
 *     thread has one; write transactions are the committer's;
 *   - disk space is reserved behind the file with FALLOC_FL_KEEP_SIZE, so
 *     that on a full disk the log still goes on;
 *   - ENOSPC, and EIO from a write that was cut short, are one fault.
 *
 * Must never: keep a pointer into the map beyond its transaction.
 */
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "stored.h"
#include "xmalloc.h"

#define DB_MAP_MIN	(UINT64_C(1) << 34)
#define LOCK_BYTES	8192

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "64-bit hosts only");

static const struct {
	const char	*name;
	unsigned int	 flags;
} tables[T_COUNT] = {
	[T_META] = { "meta", 0 },
	[T_EVENTS] = { "events", MDB_INTEGERKEY },
	[T_SANDBOXES] = { "sandboxes", 0 },
	[T_PROOFS] = { "proofs", 0 },
	[T_NAMES] = { "names", 0 },
	[T_SESSIONS] = { "sessions", 0 },
	[T_ENDED] = { "ended", MDB_DUPSORT },
	[T_EXPIRY] = { "expiry", 0 },
	[T_KEYS] = { "keys", 0 },
	[T_KEY_TIMES] = { "key-times", 0 },
	[T_ALLOWED] = { "allowed", 0 },
	[T_LISTS] = { "lists", 0 },
};

/* meta "head": big-endian numbers, the hash, the greatest id or zeros. */
struct head_row {
	uint64_t	seq, time_ms;
	uint8_t		hash[RECORD_HASH];
	char		last_id[ULID_LEN];
	char		zero[6];
};
_Static_assert(sizeof(struct head_row) == 80, "no padding");

enum db_fault
db_fault(int rc)
{
	switch (rc) {
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EFBIG:
	case EROFS:
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
		return DBF_FULL;
	case ENOMEM:
		return DBF_MEMORY;
	default:
		return DBF_BROKEN;
	}
}

int
db_get(MDB_txn *txn, MDB_dbi t, const void *key, size_t klen, MDB_val *ret)
{
	MDB_val	k = { klen, (void *)(uintptr_t)key };

	return mdb_get(txn, t, &k, ret);
}

int
db_put(MDB_txn *txn, MDB_dbi t, const void *key, size_t klen, const void *val,
    size_t vlen, unsigned int flags)
{
	MDB_val	k = { klen, (void *)(uintptr_t)key };
	MDB_val	v = { vlen, (void *)(uintptr_t)val };

	return mdb_put(txn, t, &k, &v, flags);
}

size_t
db_client_key(const char *tenant, const char *key, char ret[CLIENT_KEY])
{
	/* both bounded by proto.def; a tenant has no slash */
	return (size_t)snprintf(ret, CLIENT_KEY, "%s/%s", tenant, key);
}

int
db_put_head(struct db *db, MDB_txn *txn, const struct head *h)
{
	struct head_row	r;

	memset(&r, 0, sizeof(r));
	r.seq = htobe64(h->seq);
	r.time_ms = htobe64(h->time_ms);
	memcpy(r.hash, h->hash, sizeof(r.hash));
	memcpy(r.last_id, h->last_id, sizeof(r.last_id));
	return db_put(txn, db->t[T_META], "head", 4, &r, sizeof(r), 0);
}

static int
get_head(struct db *db, MDB_txn *txn, struct head *ret)
{
	struct head_row	r;
	MDB_val		v;
	int		rc;

	memset(ret, 0, sizeof(*ret));
	rc = db_get(txn, db->t[T_META], "head", 4, &v);
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc != 0)
		return rc;
	if (v.mv_size != sizeof(r))
		return MDB_CORRUPTED;
	memcpy(&r, v.mv_data, sizeof(r));
	ret->seq = be64toh(r.seq);
	ret->time_ms = be64toh(r.time_ms);
	memcpy(ret->hash, r.hash, sizeof(ret->hash));
	memcpy(ret->last_id, r.last_id, sizeof(r.last_id));
	return 0;
}

/* ---- opening ----------------------------------------------------- */

/*
 * LMDB extends its lock file with ftruncate and then writes to the map of
 * it: on a full disk that would be SIGBUS.  So its blocks are allocated here.
 */
static int
lock_allocate(const char *dir)
{
	auto_free char	*path = xasprintf("%s/lock.mdb", dir);
	auto_close int	 fd = -1;
	int		 e;

	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1) {
		log_warn("open lock.mdb");
		return -1;
	}
	/* the call falls back to writing where it is not supported */
	if ((e = posix_fallocate(fd, 0, LOCK_BYTES)) != 0) {
		errno = e;
		log_warn("allocate lock.mdb");
		return -1;
	}
	return 0;
}

static int
env_open(struct db *db, const char *dir, uint64_t map)
{
	int	rc;

	if ((rc = mdb_env_create(&db->env)) != 0)
		return rc;
	(void)mdb_env_set_maxdbs(db->env, T_COUNT);	/* before open: fine */
	(void)mdb_env_set_maxreaders(db->env, 8);
	rc = mdb_env_set_mapsize(db->env, map);
	if (rc == 0)
		rc = mdb_env_open(db->env, dir, MDB_NOTLS, 0600);
	if (rc != 0) {
		mdb_env_close(db->env);
		db->env = NULL;
	}
	return rc;
}

/* A kernel with a small address space (UML) gets a smaller map. */
static int
env_open_any(struct db *db, const char *dir)
{
	uint64_t	map;
	int		rc = ENOMEM;

	for (map = DB_MAP; rc == ENOMEM && map >= DB_MAP_MIN; map /= 2)
		rc = env_open(db, dir, map);
	if (rc == 0 && map < DB_MAP / 2)
		log_info("database: the log is limited to %llu GiB by the "
		    "address space", (unsigned long long)(map >> 29));
	return rc;
}

static int
open_tables(struct db *db, MDB_txn *txn)
{
	int	i, rc = 0;

	for (i = 0; i < T_COUNT && rc == 0; i++)
		rc = mdb_dbi_open(txn, tables[i].name,
		    tables[i].flags | MDB_CREATE, &db->t[i]);
	return rc;
}

/* 0; an LMDB code; or -1 (logged): of another schema. */
static int
check_schema(struct db *db, MDB_txn *txn)
{
	uint64_t	have, ours = htobe64(DB_SCHEMA);
	MDB_val		v;
	int		rc;

	rc = mdb_dbi_open(txn, "meta", MDB_CREATE, &db->t[T_META]);
	if (rc != 0)
		return rc;
	rc = db_get(txn, db->t[T_META], "schema", 6, &v);
	if (rc == MDB_NOTFOUND)
		return db_put(txn, db->t[T_META], "schema", 6, &ours,
		    sizeof(ours), 0);
	if (rc != 0)
		return rc;
	if (v.mv_size != sizeof(have))
		return MDB_CORRUPTED;
	memcpy(&have, v.mv_data, sizeof(have));
	if (have == ours)
		return 0;
	log_errorx("database is %s than this release (schema %llu, known is "
	    "%d): refused, and nothing in it is changed; serve with the "
	    "release that wrote it, or with another state-dir",
	    be64toh(have) > DB_SCHEMA ? "newer" : "older",
	    (unsigned long long)be64toh(have), DB_SCHEMA);
	return -1;
}

/* The last record must be what head says: number and hash. */
static int
check_end(struct db *db, MDB_txn *txn, const struct head *h)
{
	MDB_cursor	*cur;
	MDB_val		 k, v;
	uint64_t	 seq;
	uint8_t		 hash[RECORD_HASH];
	int		 rc;

	if ((rc = mdb_cursor_open(txn, db->t[T_EVENTS], &cur)) != 0)
		return rc;
	rc = mdb_cursor_get(cur, &k, &v, MDB_LAST);
	if (rc == MDB_NOTFOUND)
		rc = h->seq == 0 ? 0 : MDB_CORRUPTED;
	else if (rc == 0) {
		memcpy(&seq, k.mv_data, sizeof(seq));
		record_hash(v.mv_data, v.mv_size, hash);
		if (seq != h->seq || memcmp(hash, h->hash, sizeof(hash)) != 0)
			rc = MDB_CORRUPTED;
	}
	mdb_cursor_close(cur);
	return rc;
}

static int
db_setup(struct db *db, struct head *ret_head)
{
	MDB_txn	*txn;
	int	 dead = 0, rc;

	if ((rc = mdb_reader_check(db->env, &dead)) != 0 ||
	    (rc = mdb_txn_begin(db->env, NULL, 0, &txn)) != 0)
		return rc;
	if ((rc = check_schema(db, txn)) != 0 ||
	    (rc = open_tables(db, txn)) != 0 ||
	    (rc = get_head(db, txn, ret_head)) != 0 ||
	    (rc = check_end(db, txn, ret_head)) != 0) {
		mdb_txn_abort(txn);
		return rc;
	}
	if ((rc = mdb_txn_commit(txn)) != 0)
		return rc;
	rc = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &db->reader);
	if (rc == 0)
		mdb_txn_reset(db->reader);
	return rc;
}

int
db_open(struct db *db, const char *dir, struct head *ret_head)
{
	int	rc;

	memset(db, 0, sizeof(*db));
	if (lock_allocate(dir) == -1)
		return -1;
	if ((rc = env_open_any(db, dir)) != 0) {
		log_errorx("open database: %s", mdb_strerror(rc));
		return -1;
	}
	if ((rc = db_setup(db, ret_head)) == 0)
		return 0;
	if (rc == MDB_CORRUPTED)
		log_errorx("database: the end of the log is not what was "
		    "written");
	else if (rc != -1)
		log_errorx("set up database: %s", mdb_strerror(rc));
	db_close(db);
	return -1;
}

void
db_close(struct db *db)
{
	if (db->reader != NULL)
		mdb_txn_abort(db->reader);
	if (db->env != NULL)
		mdb_env_close(db->env);
	memset(db, 0, sizeof(*db));
}

/* ---- reading ----------------------------------------------------- */

MDB_txn *
db_read(struct db *db)
{
	int	rc = mdb_txn_renew(db->reader);

	if (rc == 0)
		return db->reader;
	if (db_fault(rc) == DBF_BROKEN)
		fatalx("read database: %s", mdb_strerror(rc));
	return NULL;
}

void
db_read_end(struct db *db)
{
	mdb_txn_reset(db->reader);
}

/* ---- the reserve ------------------------------------------------- */

/* Where blocks cannot be reserved, free space stands for them. */
static uint64_t
free_bytes(int fd)
{
	struct statvfs	fs;

	if (fstatvfs(fd, &fs) == -1)
		return 0;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* The most of `want', halved until it fits, that is there from `from'. */
static uint64_t
reserve_some(int fd, uint64_t from, uint64_t want)
{
	for (; want >= 4096; want /= 2)
		if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from,
		    (off_t)want) == 0)
			return want;
		else if (errno == EOPNOTSUPP)
			return 0;
	return 0;
}

uint64_t
db_reserve(struct db *db)
{
	struct stat	st;
	uint64_t	left, size;
	int		fd;

	if (mdb_env_get_fd(db->env, &fd) != 0 || fstat(fd, &st) == -1)
		return 0;
	if (db->no_fallocate)
		return free_bytes(fd);
	size = (uint64_t)st.st_size;
	left = db->reserved_end > size ? db->reserved_end - size : 0;
	/* on a full disk the call is slow: once a second will do */
	if (left >= DB_RESERVE - DB_SLACK || mono_ms() < db->reserve_again_ms)
		return left;
	db->reserve_again_ms = mono_ms() + 1000;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size,
	    (off_t)DB_RESERVE) == 0)
		left = DB_RESERVE;
	else if (errno == EOPNOTSUPP) {
		db->no_fallocate = 1;
		log_warnx("database: the file system cannot reserve space; "
		    "free space is watched instead");
		return free_bytes(fd);
	} else if (left == 0)
		left = reserve_some(fd, size, DB_RESERVE / 2);
	if (left == DB_RESERVE)
		db->reserve_again_ms = 0;
	db->reserved_end = size + left;
	return left;
}
