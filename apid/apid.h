/*
 * apid.h: what the files of apid share.
 *
 * apid serves the API and drives each box through its life.  It owns the
 * boxes and sessions in memory, and nothing that lasts: rows and records are
 * stored's, processes privd's, namespaces netd's, output the runner's.
 * One thread, one event loop; whatever takes time is a request to a peer and
 * a callback.
 */
#ifndef APID_APID_H
#define APID_APID_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <jansson.h>

#include "chan.h"
#include "conf.h"
#include "denied.h"
#include "http.h"
#include "older.h"
#include "proto.h"
#include "ulid.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION	"0"
#endif

#define APID_TENANT	"default"	/* until keys exist there is one */

/* Time limits of requests, milliseconds; 0 waits for ever. */
#define T_STORE		30000		/* stored, an fsync included */
#define T_PRIVD		30000		/* privd, a box made */
#define T_BOOT		10000		/* a step of a runner that boots */
#define T_RUNNER	60000		/* any other request to a runner */

/* Bounds, per box. */
#define BOX_RUNNING_MAX	512		/* sessions that run */
#define BOX_ENDED_KEPT	32		/* ended sessions kept in memory */
#define BOX_READERS_MAX	64		/* readers of one session */

struct box;
struct boot;
struct denials;
struct peer;
struct release;
struct session;

struct apid {
	const struct conf	*conf;		/* lives as long as we do */
	struct event_base	*base;		/* owned */
	struct http_server	*http;		/* owned */
	struct peer		*privd, *stored, *netd;	/* owned */
	uint64_t		 generation;	/* of this set of daemons */
	int			 stopping;	/* DAEMON_STOP has come */
	int			 serving;	/* listeners are open */
	int			 quiet;		/* and all closed again */
};

extern struct apid	env;

/* Ends the process so that privd starts the set afresh. */
void	apid_lost(const char *who, const char *why)
	    __attribute__((noreturn));
/* Opens the listeners, once: the boxes are known. */
void	apid_serve(void);
/* No removal is under way any more. */
void	apid_removed(void);

/* ---- text.c: bytes as JSON, lists --------------------------------- */

/* One allocation, ended by free((void *)(uintptr_t)l.v); empty: v NULL. */
struct wire_list list_dup(const struct wire_list *);
void	list_free(struct wire_list *);
/* An object of strings to "key=value" items, and back.  Owned by caller. */
struct wire_list list_from_object(const json_t *);
json_t	*list_to_object(const struct wire_list *);
json_t	*list_to_array(const struct wire_list *);	/* as text_json() */
/* The items of a JSON array of strings; bounded by the schema. */
struct wire_list list_from_array(const json_t *);
size_t	list_bytes(const struct wire_list *);
/* Value of "key=value" in the list with its length, or NULL. */
const char *list_value(const struct wire_list *, const char *key,
	    size_t keylen, size_t *ret_len);

/* Bytes of p that are whole UTF-8 characters, up to the first that is not. */
size_t	utf8_prefix(const uint8_t *p, size_t len);
/* A JSON string; what is not UTF-8 becomes U+FFFD. */
json_t	*text_json(const void *, size_t len);
json_t	*text_json_or_null(const char *);		/* "" becomes null */
/* Base64 of len bytes into dst (4 * ((len + 2) / 3) bytes); its length. */
size_t	base64(char *dst, const uint8_t *, size_t len);
/* A JSON string with the bytes, and "utf-8" or "base64" through ret_enc. */
json_t	*bytes_json(const uint8_t *, size_t len, const char **ret_enc);
/*
 * {"seq","stream","data","encoding"} and a newline into dst of at least
 * LINE_MAX_BYTES; its length.  len <= 32,768.
 */
#define LINE_MAX_BYTES	(65536 + 256)
size_t	chunk_line(char *dst, uint64_t seq, unsigned int stream,
	    const uint8_t *, size_t len);
/*
 * What stands before len bytes of a frame; workbox-api(7).  kind: the stream
 * of a chunk, or STREAM_NONE (and seq 0): an object of JSON.
 */
#define FRAME_TYPE	"application/vnd.workbox.output"
#define FRAME_HEAD	16
void	frame_head(uint8_t dst[FRAME_HEAD], unsigned int kind, uint64_t seq,
	    size_t len);
/* "snake_case" to "camelCase" in place. */
void	text_camel(char *);
json_t	*time_json(uint64_t ms);
/* A pleasant name, "brave-otter-17"; not checked for being free. */
void	text_name(char ret[64]);
/* "TERM", "SIGTERM", "RTMIN+1": its number, or 0. */
unsigned int text_signal(const char *);

/* ---- peer.c: requests with answers -------------------------------- */

/* Why a peer is no more. */
enum peer_end {
	PEER_GONE,		/* it closed its channel, or the socket broke */
	PEER_LATE,		/* an answer is late; it never reads */
	PEER_VERSION,		/* in HELLO: it speaks another, peer_theirs() */
	PEER_WRONG		/* it broke protocol */
};

/*
 * Takes fd.  on_msg: a message that is no answer (m->fd is the callee's).
 * on_fault: the peer is no more; called once, from the loop, after every
 * outstanding request got its NULL (not so for a daemon's); the callee ends
 * with peer_free() or does not return.
 */
struct peer *peer_new(const char *name, int fd, unsigned int actor,
	    unsigned int state, void (*on_msg)(struct peer *, struct msg *),
	    void (*on_fault)(struct peer *, enum peer_end, const char *why),
	    void *arg);
void	*peer_arg(const struct peer *);
void	peer_state(struct peer *, unsigned int chan_state);
/* A runner's: which version is spoken; which its last packet carried, or 0. */
void	peer_speak(struct peer *, unsigned int version);
unsigned int peer_theirs(const struct peer *);
/*
 * Asks.  cb (NULL: nobody listens) gets the answer, of the due type or
 * MSG_ERROR, valid during the call and with its descriptor, or NULL: the
 * peer is no more.  Exactly once, never from within peer_ask(), and not at
 * all after peer_forget().  An answer that is not there after timeout_ms is
 * a fault of the peer (0: it may take for ever).  A daemon's callbacks never
 * get NULL: on_fault ends this process.
 */
void	peer_ask(struct peer *, unsigned int type, const void *body,
	    uint64_t timeout_ms, void (*cb)(void *, const struct msg *),
	    void *arg);
/* The same; returns the number, for EVENT_CANCEL. */
uint32_t peer_ask_rid(struct peer *, unsigned int type, const void *body,
	    uint64_t timeout_ms, void (*cb)(void *, const struct msg *),
	    void *arg);
/* Answers to requests of this arg are dropped from now on. */
void	peer_forget(struct peer *, const void *arg);
/* Not a request: no answer is due. */
void	peer_tell(struct peer *, unsigned int type, const void *body);
/* Answers what it asked by this number. */
void	peer_reply(struct peer *, unsigned int type, uint32_t rid,
	    const void *body);
/* More is queued for it than a sane peer lets pile up. */
int	peer_full(const struct peer *);
/* Adds what it has not answered, and the bytes that it has not read. */
void	peer_load(const struct peer *, unsigned int *reqs, size_t *bytes);
/* Reads nothing from it for some time. */
void	peer_pause(struct peer *, unsigned int ms);
/* A violation that only the owner can see: as one of the channel's. */
void	peer_fault(struct peer *, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));
/* Callbacks of what is outstanding get NULL.  NULL is ignored. */
void	peer_free(struct peer *);
/* The answer's code: NONE, that of MSG_ERROR, or INTERNAL for NULL. */
enum wb_code peer_code(const struct msg *);
/* Its detail, or why there is none. */
const char *peer_detail(const struct msg *);

/* A leaky bucket: 1 while `burst' and `per_s' are kept, else 0. */
struct bucket { uint64_t at_ms; uint64_t tokens_milli; };
int	bucket_take(struct bucket *, unsigned int burst, unsigned int per_s);
int	bucket_take_n(struct bucket *, unsigned int burst, unsigned int per_s,
	    unsigned int n);

/* ---- metrics.c: what this server does ------------------------------- */

enum metric_time { METRIC_READY, METRIC_EXEC, METRIC_COMMIT, METRIC_TIMES };
enum metric_count { METRIC_SESSIONS, METRIC_OUTPUT, METRIC_INPUT,
    METRIC_COUNTS };
enum metric_use { USE_CPU, USE_MEMORY, USE_PROCESSES, USE_SESSIONS, USE_OOM,
    USE_CONNECTIONS, USE_NAMES, USE_SENT, USE_RECEIVED, USE_DENIED,
    USE_DENIED_NAMES, USE_N };

/* Something took from then (mono_us()) until now. */
void	metrics_took(enum metric_time, uint64_t since_us);
void	metrics_add(enum metric_count, uint64_t n);
/* What a look at a box found; and what its network counts, by the box. */
void	metrics_looked(struct box *, const struct msg_box_health_is *);
void	metrics_counted(struct box *);

/* ---- box.c: the boxes --------------------------------------------- */

struct box_wait {			/* who waits for a turn of a box */
	TAILQ_ENTRY(box_wait)	 next;
	void			(*fn)(struct box_wait *, struct box *);
	void			*arg;	/* borrowed: the waiter's */
};

struct box {
	TAILQ_ENTRY(box)	 all;		/* by id, ascending */
	LIST_ENTRY(box)		 by_id, by_name;
	int			 listed;	/* in the tables */
	int			 named;		/* holds its name */
	unsigned int		 refs;		/* see box_ref() */

	char			 id[27];
	char			 tenant[64], created_by[64];
	char			 name[64];
	char			 rootfs[64];	/* "": the default; not made */
	unsigned int		 network;
	uint64_t		 memory_bytes, cpu_milli, pids;
	enum box_state		 state;
	enum box_state		 target;	/* of the last move asked for */
	char			 reason[128];
	uint64_t		 created_ms, changed_ms;
	struct wire_list	 labels, env;	/* owned */

	enum wb_health		 health;
	char			 part[64];	/* of SUSPECT */
	char			 ruleset[65];	/* as the proof saw it */
	int			 polled, pinged;	/* answers are due */
	int			 frozen;	/* by disk.c, or being so */
	uint64_t		 frozen_free;	/* bytes that were free then */
	uint64_t		 written, written_at; /* disk.c: bytes; ms, 0 */
	uint64_t		 writes;	/* bytes a second, lately */
	uint64_t		 cpu_usec, busy; /* ever; a second, lately */
	uint64_t		 was_busy;	/* when it was suspected */
	int			 suspect;	/* disk.c: of this round */
	int			 cleared;	/* of it, and not the one */
	int			 on_trial;	/* of it, and goes on */
	int			 hides;		/* frozen: was found in one */
	unsigned int		 looks;		/* of disk.c, on end: 0 to 2 */
	unsigned int		 strikes;	/* times that it was, lately */
	uint64_t		 struck;	/* mono ms: the last of them */
	int			 found;		/* reconcile.c */
	/* its network: network.c */
	enum { CHANGE_NOT, CHANGE_ASKED, CHANGE_AMENDS } changing;
	int			 net_told;	/* by netd, later than privd */
	int			 list_due;	/* netd has not the last */
	int			 led_out;	/* it was no none in this run */
	struct allowlist	*list;	/* owned; until stored has it */
	struct denials		*denials;	/* owned; NULL: none yet */
	int			 counted;	/* these are known: */
	uint64_t		 denied[DENIED_RULES]; /* by netd's count */
	uint64_t		 denied_told[DENIED_RULES]; /* as told, ever */
	uint64_t		 connections, names;
	uint64_t		 sent_bytes, sent_packets;
	uint64_t		 received_bytes, received_packets;

	uint64_t		 use[USE_N];	/* at the last look */
	unsigned int		 use_known;	/* a bit each: it counts on */

	struct boot		*boot;		/* owned; boot.c */
	struct release		*release;	/* owned; release.c */
	struct peer		*runner;	/* owned; NULL: no channel */
	/* the protocol that its runner speaks; 0: it has not said so yet */
	unsigned int		 speaks;
	int			 misfit;	/* none that we speak */
	char			 runner_version[64];	/* by its own word */
	uint64_t		 sessions_max;	/* ... or 0 */
	struct event		 retry;		/* attach again */
	unsigned int		 retries;
	struct bucket		 log_rate, announce_rate, msg_rate;
	struct bucket		 attach_rate;
	unsigned int		 dropped;	/* lines */

	int			 made;		/* the record is to say how */
	int			 astray;	/* stored lacks a move */
	int			 condemned;	/* quarantine is under way */
	unsigned int		 removing;	/* enum remove_step */
	struct removal		*removal;	/* owned; remove.c */

	LIST_HEAD(, session)	 sessions;	/* by id, descending */
	unsigned int		 running, ended;	/* of these */
	int			 known;		/* all that run are in here */
};

void	 box_init(void);
/* A box in state REQUESTED, in the tables, with a reference of its own. */
struct box *box_new(const char *id, const char *tenant, const char *by,
	    const char *name);
/* From a row of stored. */
struct box *box_load(const struct row_sandbox *);
void	 box_row(const struct box *, struct row_sandbox *ret);
/* SUSPECT: there is no channel to its runner, or none that could be. */
void	 box_unheard(struct box *);
struct box *box_ref(struct box *);
void	 box_unref(struct box *);		/* frees the last */
/* Leaves the tables: DELETED, or never was.  Drops the tables' reference. */
void	 box_gone(struct box *);
struct box *box_by_id(const char *id);
/* A live box by its name. */
struct box *box_by_name(const char *tenant, const char *name);
/*
 * By ULID, unique prefix of at least 12, or name, in this order; NULL, with
 * *ret_many set when a prefix fits more than one.
 */
struct box *box_find(const char *tenant, const char *ref, int *ret_many);
struct box *box_next(const char *tenant, const char *after);	/* by id */
unsigned int box_count(void);
json_t	*box_json(const struct box *);
json_t	*box_row_json(const struct row_sandbox *);
void	 box_health(struct box *, enum wb_health, const char *part);

/* What a move carries besides state and reason; all may be NULL. */
struct move_more {
	const char		*actor, *request;
	const uint8_t		*proof;		/* borrowed */
	size_t			 proof_len;
};
/*
 * Moves in stored, then here: a durable one when the disk has it, another
 * at once.  done (NULL: nobody waits) gets CODE_NONE or what stored said;
 * a move that is not in the table ends the process, for then stored and we
 * disagree.  The box is held until then.
 */
void	 box_move(struct box *, enum box_state, const char *reason,
	    int durable, const struct move_more *,
	    void (*done)(struct box *, enum wb_code, void *), void *arg);
/* Code and words for a request that this box cannot serve now, or NONE. */
enum wb_code box_refuses(const struct box *, const char **ret_why);
/* A session may start: READY, with a channel. */
int	 box_usable(const struct box *);
/* Sessions that run can be reached: READY or draining, with a channel. */
int	 box_talks(const struct box *);
/* The same as box_refuses() for what needs only that. */
enum wb_code box_refuses_talk(const struct box *, const char **ret_why);

/* ---- key.c: at most once ------------------------------------------ */

/* A client's word for what it makes, and all that it asked for with it. */
struct key {
	char	text[256];
	uint8_t	asked[32];		/* SHA-256 */
};
/* What was made with a key before. */
struct key_made {
	char	sandbox[27], session[27];	/* session "": the sandbox */
};
/*
 * Calls fn once: with made NULL when there is no key (key NULL) or nothing
 * was made with it, else with what was.  Requests with a key that another is
 * using wait until key_used() is called for that one, or it has its answer.
 * One that was used for something else is refused, and fn not called.  key is
 * fn's until the final call.
 */
void	 key_begin(struct http_req *, void (*fn)(struct http_req *,
	    const struct key *, const struct key_made *));
/* What its key makes is there for all; does nothing for one without. */
void	 key_used(struct http_req *);
/* For the messages that make something; key may be NULL. */
void	 key_put(const struct key *, char text[256], struct wire_bin *asked);

/* ---- boot.c: from a row to READY ---------------------------------- */

struct boot_result {
	enum wb_code	 code;		/* NONE: READY */
	char		 detail[256];
	json_t		*log;		/* borrowed: lines of launch.log */
};

/*
 * Makes a box whose row is not written yet.  recorded (may be NULL) is
 * called when the row is on disk, done when the box is READY, quarantined
 * or failed; if recorded was given an error, done is not called.
 */
void	 boot_create(struct box *, const char *actor, const char *request,
	    const struct key *,		/* NULL: none */
	    void (*recorded)(struct box *, enum wb_code, const char *, void *),
	    void (*done)(struct box *, const struct boot_result *, void *),
	    void *arg);
/*
 * Calls done once, as boot_create() would: when the creation that is under
 * way is over.  0: none is.
 */
int	 boot_follow(struct box *,
	    void (*done)(struct box *, const struct boot_result *, void *),
	    void *arg);
/* The caller of boot_create() no longer listens. */
void	 boot_unlisten(struct box *, const void *arg);
/*
 * Takes hold of a box that runs (READY, DRAINING).  done gets "attached",
 * "suspect", "absent" or "quarantined".
 */
void	 boot_attach(struct box *,
	    void (*done)(struct box *, const char *verdict, void *),
	    void *arg);
/* Ends a creation that is under way; the box is then removed as failed. */
void	 boot_abort(struct box *, const char *why);
/* The box's pid 1 has ended, or its channel broke. */
void	 boot_lost(struct box *, const char *why);
/*
 * The same, of a channel that closed or told of a version (theirs, else 0).
 * In HELLO it may be for the version: then the other one is tried.
 */
void	 boot_closed(struct box *, unsigned int theirs, const char *why);
/*
 * Nonsense from a runner, or facts that differ: frozen by privd, moved to
 * QUARANTINED with the field as reason, channel closed.
 */
void	 box_quarantine(struct box *, const char *field, const char *proof,
	    size_t len);

/* Of a release: it cannot be, after all; and READY is on the disk. */
void	 boot_unproved(struct box *, enum wb_code, const char *detail);
void	 boot_released(struct box *);

/* ---- release.c: out of QUARANTINED ---------------------------------- */

/* Whether release.def lets it be, and why, or why not. */
int	 release_may(const char *name, const char **ret_why);
/*
 * Whether a verdict, or each limit of one that is "a,b", does not count for
 * this box: it was released, or is being.  If not, the first word that does.
 */
int	 release_holds(const struct box *, const char *verdict, char ret[64]);
/* boot.c's word about a box with b->release: the proof agrees; or not. */
void	 release_proved(struct box *, const struct msg_box_facts_are *,
	    const char *proof);
void	 release_failed(struct box *, enum wb_code, const char *detail);
/* It is to be quarantined: 1: it will be, as soon as it is READY. */
int	 release_spoilt(struct box *, const char *field);

/* ---- runner.c: the channel of a box ------------------------------- */

/* Takes fd; b->runner is there afterwards. */
void	 runner_open(struct box *, int fd);
/* Readers of its sessions are told that nothing comes. */
void	 runner_close(struct box *);
/* The last lines of launch.log, at most so many, as an array of text. */
json_t	*log_lines(const struct wire_bin *, size_t most);
/* A line into the box's launch.log, rate-limited. */
void	 runner_log(struct box *, const char *line);
/* pid 1 is gone, by privd's word. */
void	 box_ended(struct box *);

/* ---- proof.c: evidence -------------------------------------------- */

/* The first field in which the runner's facts differ from the host's. */
const char *proof_differs(const struct msg_runner_facts *,
	    const struct msg_box_facts_are *);
/*
 * The evidence as it is kept, hashed and served: one line of JSON, at most
 * PROOF_MAX bytes, allocated.  field: the first that differed, or "".
 * released: one that differs and does not count, or "".
 */
#define PROOF_MAX	24576
char	*proof_text(const struct box *, const struct msg_runner_facts *,
	    const struct msg_box_facts_are *, const char *field,
	    const char *released, uint64_t ms);

/* The host's side alone, by name. */
json_t	*proof_host_json(const struct msg_box_facts_are *);

/* ---- session.c ---------------------------------------------------- */

struct session_wait {			/* who waits for a session's end */
	LIST_ENTRY(session_wait) next;
	int			 on;
	void			(*fn)(struct session_wait *,
				    struct session *);
	void			*arg;	/* borrowed */
};

enum session_state { SESSION_STARTING, SESSION_RUNNING, SESSION_ENDED };

struct session {
	LIST_ENTRY(session)	 by_box;
	int			 listed;	/* in its box's list */
	struct box		*box;		/* referenced */
	unsigned int		 refs;
	char			 sandbox[27], id[27], tenant[64], name[64];
	char			 user[65];	/* as asked for */
	struct wire_list	 argv, labels;	/* owned */
	uint64_t		 memory_bytes, pids;	/* its own; 0: none */
	unsigned int		 origin;	/* 0 API, 1 wb */
	enum session_state	 state;		/* as in the row */
	int			 counted;	/* in box->running */
	int			 asked;		/* SESSION_WAIT is out */
	int			 ending;	/* the end is being written */
	uint64_t		 exit_code, signal, left_behind;
	uint64_t		 first_seq, last_seq;
	int			 exit_known;	/* last_seq is final */
	int			 usage_known;
	uint64_t		 wall_ms, user_usec, sys_usec, peak_bytes;
	char			 reason[64];
	uint64_t		 started_ms, ended_ms;
	struct event		 again;		/* the end, once more */
	LIST_HEAD(, session_wait) waits;
	LIST_HEAD(, reader)	 readers;	/* output.c */
	unsigned int		 nreaders;
	LIST_HEAD(, ask)	 orphans;	/* reads nobody waits for */
	struct reader		*holder;	/* holds the command back */
	uint64_t		 held_to;	/* how far any such has been */
	uint64_t		 resumed_ms;	/* mono; not known here; or 0 */
	struct feed		*feed;		/* input under way; output.c */
};

struct session_spec {			/* all borrowed for the call */
	const char		*name, *cwd, *user;	/* "": none */
	struct wire_list	 argv, env, labels;
	uint64_t		 timeout_ms, memory_bytes, pids;
	const uint8_t		*input;
	size_t			 input_len;	/* <= SESSION_INPUT_FIRST */
	int			 stdin_open;
	int			 attached;
	const char		*actor, *request;
	const struct key	*key;		/* NULL: none */
};
#define SESSION_INPUT_FIRST	8192
#define SESSION_ITEMS	(1024 + 64)	/* of a row; proto.def */

/*
 * Starts a command.  sent (may be NULL): the request is on its way, output
 * can be asked for.  done, always: it runs (code NONE), or not, with a
 * detail; its start is on disk, and when it failed so is its end.  The
 * session is NULL when there never was one, else held until done returns.
 */
void	 session_start(struct box *, const struct session_spec *,
	    void (*sent)(struct session *, void *),
	    void (*done)(struct session *, enum wb_code, const char *,
		void *), void *arg);
struct session *session_ref(struct session *);
void	 session_unref(struct session *);
/* In memory: running, or ended not long ago. */
struct session *session_find(struct box *, const char *id);
/* Calls fn once, when the end is on disk; at once if it is. */
void	 session_wait(struct session *, struct session_wait *);
void	 session_wait_drop(struct session_wait *);
json_t	*session_json(const struct session *);
json_t	*session_row_json(const struct row_session *);
/* Adds exitCode, signal, reason, leftBehind, times, usage. */
void	 session_result(const struct session *, json_t *);
/* No process of the box is left. */
void	 sessions_lost(struct box *);
/* The box leaves the tables. */
void	 sessions_drop(struct box *);

/* Between session.c and resume.c: */
struct session *session_new(struct box *, const char *id, const char *name,
	    const struct wire_list *argv, unsigned int origin);
void	 session_fill(struct session *, const struct row_session *);
void	 session_count(struct session *);	/* it runs */
void	 session_unlist(struct session *);	/* callers keep theirs */
void	 sessions_trim(struct box *);		/* of ended ones */
void	 session_put(struct session *, unsigned int state, int durable,
	    const char *actor, const char *request, const struct key *,
	    void (*cb)(void *, const struct msg *), void *arg);
void	 session_ask_end(struct session *);	/* SESSION_WAIT, once */

/* ---- resume.c ----------------------------------------------------- */

/*
 * By id, unique prefix of it, or name, from memory or from stored, as
 * common/sref.h says; fn gets NULL and a code when there is none, which is
 * BAD_REQUEST for a prefix of more than one.
 */
void	 session_get(struct box *, const char *ref,
	    void (*fn)(struct session *, enum wb_code, void *), void *arg);
/* The id before this one, for pages that begin with it. */
void	 ulid_before(const char *id, char ret[27]);
/* After an attach: rows that are open, then what the runner tells. */
void	 sessions_resume(struct box *);
/* Ends, as lost, the open rows of a box that was not attached, if any. */
void	 sessions_forsaken(struct box *);
/* `wb' started one. */
void	 session_announced(struct box *, const char *id, const char *name,
	    const struct wire_list *argv);

/* ---- allowlist.c --------------------------------------------------- */

/* In canonical form, in order, each entry once. */
struct allowlist { char **v; size_t n, cap; };

void	 allowlist_free(struct allowlist *);		/* NULL too */
/*
 * From a member of a request's body, an array of strings; without one, an
 * empty list.  Calls cb once, also from within the call, with a list that is
 * cb's, or with NULL: it was answered why not.
 */
void	 allowlist_take(struct http_req *, const char *member,
	    void (*cb)(void *, struct allowlist *), void *arg);
/* 0, or -1: they are more than ALLOW_MAX now. */
int	 allowlist_change(struct allowlist *, const struct allowlist *add,
	    const struct allowlist *drop);
json_t	*allowlist_json(const struct allowlist *);
/*
 * Puts it into stored, where SANDBOX_NETWORK then makes it the box's.  Takes
 * the list; calls cb once, later.
 */
void	 allowlist_put(const char *id, struct allowlist *,
	    void (*cb)(void *, enum wb_code, const char *detail), void *arg);
/* The list that a box has: the callee's, or NULL and why. */
void	 allowlist_get(const char *id, void (*cb)(void *, struct allowlist *,
	    enum wb_code, const char *detail), void *arg);

/* ---- network.c ---------------------------------------------------- */

/* The kind of this name.  0, or -1 and it was answered. */
int	 network_asked(struct http_req *, const char *name,
	    unsigned int *ret);
unsigned int network_default(void);
/* netd has it as another kind, or by another list, than the row. */
void	 network_amend(struct box *);

/* ---- now.c -------------------------------------------------------- */

/*
 * Sets leftBehind, firstSeq and lastSeq of sessions as JSON, ascending by id,
 * to what the runner says, then calls fn; also from within the call.
 */
void	 sessions_now(struct box *, json_t *items, void (*fn)(void *),
	    void *arg);

/* ---- output.c: readers of output, writers of input ---------------- */

struct reader;
struct reader_ops {
	/* Chunks of any length that can be taken now. */
	size_t	(*room)(void *);
	/* gap_last 0: nothing was lost before it; seq 0: only a gap. */
	void	(*chunk)(void *, const struct msg_session_chunk *);
	/* Once, last: all is told (NONE), GONE, or the runner is (INTERNAL). */
	void	(*end)(void *, enum wb_code);
};

/*
 * Reads the session's chunks above `after' in order; follow: until its
 * output ends, else until what is there now is told.  hold: the command is
 * held back while this reader is behind, if it began at 0 or goes on where
 * the last such one was; beside one that is still there, from when that goes.
 * NULL: too many.  The reader holds the session.
 * The ops may free it; they are never called from within reader_new().
 */
struct reader *reader_new(struct session *, uint64_t after, int follow,
	    int hold, const struct reader_ops *, void *arg);
void	 reader_more(struct reader *);		/* there is room again */
uint64_t reader_told(const struct reader *);	/* last seq, or 0 */
void	 reader_free(struct reader *);		/* NULL is ignored */
void	 readers_lost(struct session *);	/* the runner is gone */
/* The session's last chunk is known: readers that have it may end. */
void	 readers_ended(struct session *);

/*
 * Writes len bytes at offset, then eof.  done: NONE and the new offset;
 * BAD_OFFSET and the one that was due; another code.  The data is borrowed
 * until done, which is called exactly once, or until feed_free().  NULL: one
 * is under way already.  done is never called from within feed_new().
 */
struct feed *feed_new(struct session *, uint64_t offset, const uint8_t *,
	    size_t len, int eof,
	    void (*done)(void *, enum wb_code, uint64_t offset,
		const char *detail), void *arg);
void	 feed_free(struct feed *);		/* NULL is ignored */

/* ---- remove.c: the way out ---------------------------------------- */

enum remove_step {
	REMOVE_NOT,
	REMOVE_WAIT,		/* for a boot to be over */
	REMOVE_DRAIN,		/* sessions may end by themselves */
	REMOVE_KILL,		/* privd kills what is left */
	REMOVE_RECORD,		/* DELETING is being written */
	REMOVE_PURGE		/* DELETING is on disk, the rest goes */
};

/*
 * Ends a box from whatever state: sessions get grace_ms, then SIGTERM, then
 * all is killed, DELETING is written, and the rest removed behind it.  w->fn
 * (w may be NULL) is called once, when DELETING is on disk, or when it could
 * not be done yet (the state tells; it goes on), also from within the call.
 * A second call only adds who waits, and may shorten the grace.
 */
void	 remove_box(struct box *, uint64_t grace_ms, const char *reason,
	    const char *actor, const char *request, struct box_wait *);
/* A boot that the removal waited for is over; else nothing. */
void	 remove_go_on(struct box *);
/* A session has ended: perhaps the last that a draining box waits for. */
void	 remove_idle(struct box *);
/* Nothing is left that could end by itself: no grace any more. */
void	 remove_hurry(struct box *);
/* How many removals are not over; apid_removed() when the last one is. */
unsigned int remove_under_way(void);
/* privd has it and nobody else knows it. */
void	 remove_stray(const char *id);

/* ---- reconcile.c, health.c, auth.c -------------------------------- */

void	 reconcile_start(void);
void	 health_start(void);
/*
 * Looks at a box now; fn (or NULL) when it has, or at once when one look is
 * out.
 */
void	 health_look(struct box *, void (*fn)(struct box *, void *),
	    void *arg);

/* ---- disk.c: the state file system outlives its boxes -------------- */

void	 disk_start(void);
/* Whether looks at boxes are to ask what they have written. */
int	 disk_counts(void);
/* What a look at a box told, whatever for; counted: it asked that. */
void	 disk_seen(struct box *, const struct msg_box_health_is *,
	    int counted);

/* ---- denials.c: what networks have denied --------------------------- */

/* The boxes are known: from now on lists are whole. */
void	 denials_start(void);
/* A message of netd's, whose fault it may be. */
void	 denials_told(struct peer *netd, const struct msg_net_denied *);
/* What a runner asked of its own box. */
void	 denials_ask(const struct box *, struct peer *, uint32_t rid);
/* What its counters say, of a box with such a network. */
void	 denials_counted(struct box *, const struct msg_net_status_is *);
json_t	*denials_totals(const struct box *);	/* by rule, or null */
json_t	*denials_traffic(const struct box *);	/* what passed, or null */
/* The box is no more. */
void	 denials_free(struct box *);

/* Takes the descriptor of the token; -1 with errno. */
int	 auth_load(int fd);
/*
 * tls.c.  Takes the certificate and its key of that descriptor, where the
 * configuration wants TLS; fatal without them.
 */
void	 tls_load(int fd);
void	 tls_serve(void);	/* by env.http, from the start */
int	 tls_wanted(void);
/* What came anew, with the token: tls_reload() with it. */
void	 tls_again(int fd);
/*
 * A new certificate with its issuers, and its key, as they stand in the files
 * (both may be one text), for connections from now on.  0; -1: it was logged
 * why it is not good, and the one before is kept.
 */
int	 tls_reload(const void *chain, size_t chain_len, const void *key,
	    size_t key_len);
int	 auth_check_token(const char *bearer);	/* 1: it is the key */
int	 auth_request(struct http_req *, void *);

/* A record of our own; not waited for unless done is given. */
void	 event_append(unsigned int type, const void *body, const char *actor,
	    const char *sandbox, const char *session, const char *request,
	    const char *outcome, const char *reason,
	    void (*done)(void *, const struct msg *), void *arg);

/* ---- api_*.c: helpers of the handlers ----------------------------- */

/* The box of {id}, or NULL after an answer. */
struct box *api_box(struct http_req *);
/* There is no box {id}; no session {sid}, or why it was not found. */
void	 api_no_box(struct http_req *);
void	 api_no_session(struct http_req *, enum wb_code);
/* The code of that name, or CODE_NONE. */
enum wb_code code_find(const char *name);
/* The member that a code of a peer's speaks of, or NULL. */
const char *api_field(enum wb_code);
/* Answers with the box, and what was done in it by name; now or later. */
void	 api_reply_box(struct http_req *, int status, struct box *);
/* A code and a detail of a peer's as a problem, with the member at fault. */
void	 api_fail(struct http_req *, enum wb_code, const char *detail);
/* The same with the session's id, where it may go on. */
void	 api_fail_session(struct http_req *, enum wb_code,
	    const struct session *, const char *why);
/* Labels ("name=value") as stored takes them: 0, or -1 after an answer. */
int	 api_labels(struct http_req *, const struct wire_list *);
/*
 * The body of exec and session_create: argv and env are the caller's to free
 * (spec_free), the rest is borrowed from the request.  What of stdin does
 * not fit the first message is left to api_pour().  0, or -1 after an answer.
 */
int	 api_spec(struct http_req *, const struct box *, const struct key *,
	    struct session_spec *ret);
void	 api_spec_free(struct session_spec *);
/* Writes what is left of the body's stdin, on its own; copies it. */
void	 api_pour(struct http_req *, struct session *);
/*
 * The session that a key made before; NULL after an answer: it is no more,
 * or could not be started.
 */
void	 api_made(struct http_req *, const struct key_made *,
	    void (*fn)(struct http_req *, struct session *));

#endif
