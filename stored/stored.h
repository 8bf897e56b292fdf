/*
 * stored: the record and the tables that follow from it.
 *
 * Two threads.  The main thread reads channels, answers, and reads the
 * database in short transactions.  The committer owns every write
 * transaction (commit.c, apply.c) and talks to the main thread through two
 * queues only.
 */
#ifndef STORED_H
#define STORED_H

#include <sys/queue.h>

#include <lmdb.h>
#include <stdint.h>

#include "chan.h"
#include "conf.h"
#include "ulid.h"

/* ---- record.c: the bytes of a record ----------------------------- */

#define RECORD_MAX	64000	/* one line, \n excluded; fits EVENT_PAGE */
#define RECORD_HASH	32

struct record {
	uint64_t		 seq;
	uint64_t		 time_ms;
	const struct event_row	*type;
	/* borrowed; "" is written as null */
	const char		*tenant, *actor, *sandbox, *session, *request;
	const char		*outcome, *reason;
	const void		*data;	/* borrowed: struct event_X */
	const uint8_t		*prev;	/* borrowed: RECORD_HASH bytes */
	int			 hide_argv;	/* data.argv is null */
};

/*
 * Writes the line, without \n, into buf.  Returns its length, or -1 with
 * errno EMSGSIZE.  A record within the bounds of events.def fits RECORD_MAX.
 */
ssize_t	record_format(const struct record *, char *buf, size_t cap);
/* SHA-256(0x00 || line): what the next record's prev says. */
void	record_hash(const void *line, size_t len, uint8_t ret[RECORD_HASH]);
/* Whether the stored line is a record of this tenant. */
int	record_is_of(const void *line, size_t len, const char *tenant);
/* Hexadecimal SHA-256 of bytes as they are. */
void	sha256_hex(const void *, size_t, char ret[65]);

/* ---- db.c: LMDB -------------------------------------------------- */

#ifndef DB_SCHEMA
#define DB_SCHEMA	2
#endif
#define DB_MAP		(UINT64_C(1) << 40)	/* never resized */
#define DB_RESERVE	(UINT64_C(64) << 20)	/* bytes behind the file */
#define DB_SLACK	(UINT64_C(2) << 20)	/* used before it is renewed */
#define DB_LAST		(UINT64_C(16) << 20)	/* kept for ends and removals */

enum db_table {
	T_META,		/* "schema", "head" */
	T_EVENTS,	/* number (native) -> line */
	T_SANDBOXES,	/* id -> ROW sandbox, proof empty */
	T_PROOFS,	/* id -> evidence */
	T_NAMES,	/* tenant/name -> id, of live boxes */
	T_SESSIONS,	/* sandbox id, id -> ROW session */
	T_ENDED,	/* sandbox id -> (time, session id)..., sorted */
	T_EXPIRY,	/* time of deletion, sandbox id -> nothing */
	T_KEYS,		/* tenant/key -> ROW key */
	T_KEY_TIMES,	/* time, tenant/key -> nothing */
	T_ALLOWED,	/* sandbox id -> ROW allowed */
	T_LISTS,	/* sandbox id, generation, page -> entries, \n each */
	T_COUNT
};

/* Where the log ends; kept in meta and verified at start. */
struct head {
	uint64_t	seq;		/* of the last record, 0: none */
	uint64_t	time_ms;
	uint8_t		hash[RECORD_HASH];
	char		last_id[ULID_LEN + 1];	/* greatest id given, or "" */
};

struct db {
	MDB_env		*env;		/* owned */
	MDB_dbi		 t[T_COUNT];
	MDB_txn		*reader;	/* owned: the main thread's */
	int		 no_fallocate;	/* the file system cannot reserve */
	uint64_t	 reserved_end;	/* committer's: blocks up to here */
	uint64_t	 reserve_again_ms; /* monotonic; after a refusal */
};

enum db_fault {
	DBF_FULL,	/* no space, short write, read-only: answered */
	DBF_MEMORY,	/* answered */
	DBF_BROKEN	/* the database itself: the process ends */
};

/*
 * Opens the database in dir and proves that the log's end is whole.
 * Logs why not and returns -1; schema newer than ours is one reason.
 */
int		 db_open(struct db *, const char *dir, struct head *ret_head);
void		 db_close(struct db *);
enum db_fault	 db_fault(int rc);
/* mdb_get with borrowed key bytes; an LMDB code. */
int		 db_get(MDB_txn *, MDB_dbi, const void *key, size_t klen,
		    MDB_val *ret);
int		 db_put(MDB_txn *, MDB_dbi, const void *key, size_t klen,
		    const void *val, size_t vlen, unsigned int flags);
/* The key of T_KEYS; its length. */
#define CLIENT_KEY	(63UL + 1 + 255 + 1)
size_t		 db_client_key(const char *tenant, const char *key,
		    char ret[CLIENT_KEY]);
int		 db_put_head(struct db *, MDB_txn *, const struct head *);
/* The main thread's read transaction; one at a time; NULL: out of memory. */
MDB_txn		*db_read(struct db *);
void		 db_read_end(struct db *);
/* Renews the reserve where it is used; returns the bytes that are there. */
uint64_t	 db_reserve(struct db *);

/* ---- jobs: what the committer is asked --------------------------- */

enum asker { ASK_APID, ASK_PRIVD, ASK_PROXYD, ASK_SELF };

struct job {
	STAILQ_ENTRY(job)	 next;
	enum asker		 asker;
	unsigned int		 type;	/* MSG_..., or JOB_PURGE */
	uint32_t		 rid;
	int			 durable;
	int			 answered;
	unsigned int		 code;	/* CODE_NONE: applied */
	char			 detail[96];
	uint64_t		 seq;	/* of EVENT_APPEND */
	uint64_t		 first, count;	/* of NAMES_TAKE */
	union {
		struct msg_event_append		 event_append;
		struct msg_sandbox_create	 sandbox_create;
		struct msg_sandbox_move		 sandbox_move;
		struct msg_sandbox_network	 sandbox_network;
		struct msg_session_put		 session_put;
		struct msg_allow_put		 allow_put;
		struct msg_names_take		 names_take;
	}			 body;
	uint8_t			 asked[RECORD_HASH];	/* body's, with a key */
	size_t			 len;	/* of data */
	uint8_t			 data[]; /* the bytes that body's bin is; of
					  * ALLOW_PUT its entries, \n each */
};
STAILQ_HEAD(job_queue, job);

#define JOB_PURGE	0		/* no number of proto.def */

struct answer {
	STAILQ_ENTRY(answer)	 next;
	enum asker		 asker;
	unsigned int		 type;	/* of the question */
	uint32_t		 rid;
	unsigned int		 code;
	char			 detail[96];
	uint64_t		 seq;
	uint64_t		 first, count;
};
STAILQ_HEAD(answer_queue, answer);

/* ---- apply.c: one job within a write transaction ----------------- */

#define ENDED_MAX	256		/* ended sessions kept per box */
#define DELETED_MS	(UINT64_C(24) * 3600 * 1000)
#define PURGE_ROWS	512		/* rows per transaction */

#define KEY_MS		DELETED_MS	/* a client's key is known so long */
#define ROW_ITEMS	1152		/* of all lists of a row: session's */

struct store {
	struct db	*db;		/* borrowed */
	MDB_txn		*txn;		/* owned by commit.c */
	struct head	 head;		/* as of txn */
	uint64_t	 now;		/* of this job; never decreasing */
	uint64_t	 reserve;	/* bytes; see db_reserve() */
	int		 hide_argv;
	int		 purge_more;	/* the last JOB_PURGE left some */
	struct wire_bin	 items[2][ROW_ITEMS];
	uint8_t		 row[WIRE_MAX];
	size_t		 row_len;
	char		 line[RECORD_MAX];
};

/*
 * Applies or refuses; a refused job (job->code) has written nothing.
 * Returns 0, or an LMDB code after which the transaction must be aborted.
 */
int	apply(struct store *, struct job *);
/* What is wrong with it, for the answer; 0. */
int	refuse(struct job *, unsigned int code, const char *, ...)
	    __attribute__((format(printf, 3, 4)));
/*
 * The row of a box that is neither DELETING nor DELETED; its lists lead into
 * the map.  Else the job has been refused, and the LMDB code is 0, too.
 */
int	sandbox_live(struct store *, struct job *, const char *id,
	    struct row_sandbox *ret);

/* ---- lists.c: lists of `allowlist', addresses of names ------------ */

#define LIST_KEY	(ULID_LEN + 8UL + 2)	/* of T_LISTS */

void	lists_key(const char *id, uint64_t generation, uint64_t page,
	    uint8_t ret[LIST_KEY]);
/* The row, or an empty one; an LMDB code.  In either thread. */
int	lists_row(struct db *, MDB_txn *, const char *id,
	    struct row_allowed *ret);
/* ALLOW_PUT, NAMES_TAKE: as apply(). */
int	lists_put(struct store *, struct job *);
int	lists_take(struct store *, struct job *);
/* Whether the box could become `allowlist'; back: again. */
int	lists_there(const struct row_allowed *, int back);
/* It becomes this kind; *row says of the list, if it has one, what it is. */
int	lists_become(struct store *, const char *id, unsigned int network,
	    struct row_allowed *row);
/* The box is DELETED: its lists go; the row goes with the box's. */
int	lists_drop(struct store *, const char *id);

/* ---- commit.c: the committer thread ------------------------------ */

struct committer;

/* wake: an eventfd, borrowed, written when there are answers. */
struct committer *committer_start(struct db *, const struct head *,
		    int hide_argv, int wake);
/* Commits what is queued, ends the thread. */
void		 committer_stop(struct committer *);
/* Takes the job. */
void		 committer_put(struct committer *, struct job *);
/* Bytes that are queued or being applied. */
size_t		 committer_load(struct committer *);
/* Moves all answers to ret; tells the end of the log as committed. */
void		 committer_take(struct committer *, struct answer_queue *ret,
		    uint64_t *ret_seq);
void		 committer_info(struct committer *,
		    struct msg_store_info_is *ret);

/* ---- replay.c: reading ------------------------------------------- */

#define READ_MAX	1000		/* records per transaction */
#define WAITERS_MAX	4096

struct replay;

/* again: called (once) when replay_run() should be called soon. */
struct replay	*replay_new(struct db *, struct chan *apid,
		    void (*again)(void));
/* 0, or -1: the channel failed. */
int		 replay_on_read(struct replay *, const struct msg *);
int		 replay_on_cancel(struct replay *, const struct msg *);
int		 replay_on_sandbox_list(struct replay *, const struct msg *);
int		 replay_on_sandbox_get(struct replay *, const struct msg *);
int		 replay_on_key_get(struct replay *, const struct msg *);
int		 replay_on_session_rows(struct replay *, const struct msg *);
/* On whose channel it was asked. */
int		 replay_on_allow_read(struct replay *, struct chan *,
		    const struct msg *);
/* Serves who waits, now that records up to last are committed. */
int		 replay_run(struct replay *, uint64_t last);
void		 replay_drop(struct replay *);	/* the peer is gone */

#endif
