/*
 * runner: pid 1 of a box.  Supervises sessions, keeps their output, answers
 * `wb' in the box and apid outside.
 *
 * One loop, no callbacks from elsewhere; the only second thread takes the
 * loop over when the first is held up in a spawn (spawn.c), so at any moment
 * one thread owns all that is declared here.
 *
 * What it may need of the box's memory beside the rings, at the worst, all
 * at once (BOX_RESERVE is 8 MiB):
 *	input waiting in pipes	SESSIONS_LIVE x INPUT_PIPE	2 MiB
 *	input waiting here	INPUT_TOTAL			0.5 MiB
 *	answers to wb		PEERS_WB x (one packet, SNDBUF)	2.6 MiB
 *	answers to the host	one packet, socket		0.3 MiB
 *	sessions, waiters	1,400 x 0.7 KiB, 1,536 x 0.1	1.1 MiB
 *	dropped output		RING_SLACK			0.75 MiB
 *	program, heap, stacks					0.5 MiB
 */
#ifndef RUNNER_H
#define RUNNER_H

#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "boxfd.h"
#include "chan.h"
#include "older.h"
#include "proto.h"
#include "ulid.h"

#define SESSIONS_LIVE	128		/* not ended yet */
#define SESSIONS_HOST	16		/* of these, never wb's */
#define SESSIONS_KEPT	256		/* ended, output as far as kept */
#define SESSIONS_HELD	384		/* ended, a reader is still behind */
#define SESSIONS_DRAIN	64		/* ended, pipes of left-behind kept */
#define CHUNK_MAX	32768U
/* at once, of a command that fills its pipe: all of it, wherever it begins */
#define WIDE_PIPE	(8 * CHUNK_MAX)
#define WIDE_CHUNKS	9		/* heads take a little of each block */
#define RING_SESSION	(8UL * 1024 * 1024)	/* bytes, one session */
#define BEHIND_MAX	(4UL * 1024 * 1024)	/* attached: stop reading */
#define ATTACH_MS	10000		/* attached, but nothing heard */
#define LATE_MS		200		/* output after the leader's end */
#define KILL_MS		2000		/* SIGTERM to SIGKILL at the limit */
#define INPUT_PIPE	16384
#define INPUT_MAX	65536		/* taken, but not in the pipe yet */
#define INPUT_TOTAL	524288
#define PEERS_WB	32
#define PEERS_HELLO	4		/* connected, no token shown yet */
#define HELLO_MS	10000
#define WAITERS_HOST	1024		/* requests that wait, of one peer */
#define WAITERS_WB	16

/* ---- loop.c --------------------------------------------------------- */

struct watch {
	int	 fd;			/* borrowed: the owner's; -1: off */
	size_t	 place;			/* loop.c's */
	void	(*fn)(void *, short);	/* POLL* that are ready */
	void	*arg;
};

struct timer {
	TAILQ_ENTRY(timer)	 entry;
	uint64_t		 at;	/* mono_ms(); 0: not armed */
	void			(*fn)(void *);
	void			*arg;
};

/* Watches fd; the caller keeps *w in place until loop_del().  0 or -1. */
int	loop_add(struct watch *, int fd, short events,
	    void (*)(void *, short), void *arg);
void	loop_mod(struct watch *, short events);
void	loop_del(struct watch *);	/* may be off already */
/* (Re)arms, milliseconds from now.  fn and arg are set by the owner. */
void	timer_arm(struct timer *, uint64_t ms);
void	timer_stop(struct timer *);
/* Runs until this thread has lost the loop to the other one. */
void	loop_run(void);

/* ---- ring.c --------------------------------------------------------- */

struct ring_block;
TAILQ_HEAD(ring_blocks, ring_block);

struct chunk {
	const uint8_t	*data;	/* borrowed: until the ring changes */
	size_t		 len;
	unsigned int	 stream;	/* enum wb_stream */
	uint64_t	 seq;
	uint64_t	 end;	/* bytes of output up to its end */
};

struct ring {
	struct ring_blocks blocks;	/* owned; oldest first */
	size_t		 pages;		/* held by them */
	uint64_t	 last_seq;	/* 0: no output yet */
	uint64_t	 bytes;		/* of output ever */
	/* where the last look-up stood */
	struct ring_block *fill;	/* borrowed: has the room, or NULL */
	struct ring_block *cur;		/* borrowed: of blocks, or NULL */
	uint32_t	 cur_off;
	uint64_t	 cur_seq, cur_start;
};

#define RING_PAGE	4096UL
#define RING_SLACK	(768UL * 1024)	/* resident and not counted, at most */

/* Bound of all rings together.  Once, before the first ring is used. */
void	ring_limit(size_t bytes);
void	ring_init(struct ring *);
/* Pages that room for n chunks may come to hold beyond those counted now. */
size_t	ring_want(const struct ring *, size_t n);
/* Whether that many more pages fit under the bound of all rings. */
int	ring_fits(size_t pages);
/*
 * Room for up to n more chunks at the end, in ret, of at most CHUNK_MAX bytes
 * each; how many, 0: no memory.  Valid until ring_commit(), which must be the
 * next call for this ring.
 */
struct iovec;
size_t	ring_room(struct ring *, size_t n, struct iovec *ret);
/*
 * The first len bytes of that room become chunks last_seq + 1 and on; the
 * rest, or all of it, is given back.
 */
void	ring_commit(struct ring *, unsigned int stream, size_t len);
/* Once a turn: memory of dropped blocks goes back, but for a few. */
void	ring_cool(void);
uint64_t ring_first(const struct ring *);	/* last_seq + 1: none kept */
uint64_t ring_start(const struct ring *);	/* bytes before ring_first */
/* Chunk seq, which must be kept: 0, or -1. */
int	ring_find(struct ring *, uint64_t seq, struct chunk *ret);
/* Bytes of the blocks that hold chunks after seq. */
size_t	ring_after(const struct ring *, uint64_t seq);
/* The last chunk of the oldest block; 0 when there is no block. */
uint64_t ring_oldest(const struct ring *);
void	ring_drop(struct ring *);	/* the oldest block */
void	ring_free(struct ring *);	/* all */
void	ring_trim(struct ring *);	/* nothing more will be written */
size_t	ring_bound(void);		/* bytes, all rings */

/* ---- peer.c --------------------------------------------------------- */

struct session;
struct peer;

enum waiter_kind { W_RUN, W_READ, W_WAIT, W_STDIN, W_DRAIN, W_DENIED };

/* A request that is answered later. */
struct waiter {
	TAILQ_ENTRY(waiter)	 in_session;
	TAILQ_ENTRY(waiter)	 in_peer;
	struct session		*session;	/* borrowed; NULL: W_DRAIN,
						 * W_DENIED */
	struct peer		*peer;		/* borrowed */
	enum waiter_kind	 kind;
	int			 attached;	/* W_READ */
	uint32_t		 rid;
	uint64_t		 at;	/* W_READ: after; W_STDIN: offset */
};
TAILQ_HEAD(waiters, waiter);

struct peer {
	TAILQ_ENTRY(peer)	 entry;
	struct chan		 ch;	/* owned */
	struct watch		 w;
	int			 dead;	/* to be freed by the loop */
	uid_t			 uid;	/* of a wb, in the box */
	gid_t			 gid;
	struct waiters		 waiters;	/* owned */
	unsigned int		 nwaiters;
	struct timer		 hello;
};
TAILQ_HEAD(peers, peer);

/* Watches the control socket; wb's comes with the first go. */
int	peer_init(void);
int	peer_listen_wb(void);
struct peer *peer_host(void);	/* the one that showed the token, or NULL */
int	peer_is_host(const struct peer *);
void	peer_set_host(struct peer *);
int	peer_alive(const struct peer *);
/* Answers; a peer that cannot be sent to is ended.  Never fails. */
void	peer_send(struct peer *, unsigned int type, uint32_t rid,
	    const void *body);
/* The same of a SESSION_CHUNK, straight from where its bytes are. */
void	peer_send_chunk(struct peer *, uint32_t rid,
	    const struct msg_session_chunk *);
void	peer_ok(struct peer *, uint32_t rid);
void	peer_error(struct peer *, uint32_t rid, unsigned int code,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void	peer_end(struct peer *);	/* freed when the loop turns */
int	peer_full(const struct peer *);	/* send it no more chunks now */
void	peer_reap(void);		/* frees the dead */
/* NULL: too many wait already, and the request has been answered so. */
struct waiter *waiter_new(struct peer *, struct session *, enum waiter_kind,
	    uint32_t rid);
void	waiter_free(struct waiter *);
/* One of this kind, of any peer that is not dead, or NULL. */
struct waiter *waiter_any(enum waiter_kind);

/* ---- host.c, wbcmd.c: handlers -------------------------------------- */

/* Dispatches one decoded, permitted message. */
void	host_handle(struct peer *, const struct msg *);
void	host_drained(void);	/* no session runs any more */
void	wbcmd_status(struct peer *, const struct msg *);
void	wbcmd_run(struct peer *, const struct msg *);

/* ---- denied.c: what the host is asked ------------------------------- */

void	wbcmd_denials(struct peer *, const struct msg *);
/* The host's answer, or its error. */
void	denied_told(struct peer *, const struct msg *);
void	denied_refused(struct peer *, const struct msg *);
void	denied_lost(const struct peer *);	/* it goes */

/* ---- user.c --------------------------------------------------------- */

struct user {
	unsigned int	 uid, gid;
	char		 name[33];	/* "": passwd(5) has none */
	char		 home[256];	/* "/" where it has none */
	char		*groups;	/* owned: gid_t[ngroups]; never NULL */
	size_t		 ngroups;
};

/*
 * NAME, UID, NAME:GROUP, UID:GID and the like; CODE_NONE, or a code with why.
 * In both cases free ret->groups.
 */
unsigned int user_find(const char *, struct user *ret, const char **ret_why);

/* ---- spawn.c -------------------------------------------------------- */

enum spawn_step {
	SPAWN_OK, SPAWN_SETSID, SPAWN_CGROUP, SPAWN_STDIO, SPAWN_LIMITS,
	SPAWN_USER, SPAWN_CWD, SPAWN_LOOKUP, SPAWN_EXEC, SPAWN_INTERPRETER,
	SPAWN_CLONE
};

struct spawn {
	char		**argv;		/* owned */
	char		**env;		/* owned: the request's */
	char		**envp;		/* owned: merged; borrows strings */
	char		*cwd;		/* owned; "" when none was asked for */
	char		*groups;	/* owned: gid_t[ngroups], or NULL */
	size_t		 ngroups;
	uid_t		 uid;
	gid_t		 gid;
	struct session	*session;	/* borrowed */
	int		 fd[3];		/* owned; -1: as the runner's own */
	/* what came of it */
	volatile pid_t	 pid;
	volatile int	 step, err;	/* of the child */
};

/*
 * Makes the second thread; 0 or -1 with errno.  Called once, before anything
 * else of the box is there, so that its number is BOX_THREAD; also from
 * within the loop.
 */
int	spawn_init(void);
int	spawn_env_ok(char **);	/* whether each is KEY=VALUE */
/* Merges it, of a user (or NULL) first; 0, or -1: ENOMEM. */
int	spawn_env(struct spawn *, const struct user *);
void	spawn_free(struct spawn *);
/* One spawn at a time: whether the last one is still on its way. */
int	spawn_busy(void);
/*
 * Starts it; the first thread of the two is held up until exec or failure.
 * 1: done, see pid, step and err.  0: it took long and this thread has lost
 * the loop meanwhile; the other will call session_spawned().
 */
int	spawn_start(struct spawn *);
/* Whether pid is that of a spawn in flight; its end is kept for later. */
int	spawn_reaped(pid_t, int status, const struct rusage *);
void	spawn_follow(void);	/* waits until this thread owns the loop */

/* ---- cgroup.c ------------------------------------------------------- */

int	cgroup_init(uint64_t v1);
/* Whether a session can have limits of its own here (v2). */
int	cgroup_limits(void);
/* With limits of its own where they are not 0. */
int	cgroup_make(const char *sid, uint64_t memory_bytes, uint64_t pids);
int	cgroup_join(const char *sid);	/* the caller itself; in the child */
int	cgroup_remove(const char *sid);	/* -1 EBUSY: not empty */
int	cgroup_kill(const char *sid);
void	cgroup_signal(const char *sid, int sig);	/* each process */
uint64_t cgroup_count(const char *sid);	/* processes; 0 when it is gone */
uint64_t cgroup_peak(const char *sid);	/* bytes; 0: the kernel has none */
/* Calls fn, if there is one, for each process; returns how many there are. */
uint64_t cgroup_each(const char *sid, void (*fn)(pid_t, void *), void *arg);
/* Whether the kernel counts memory of all sessions together (v1). */
int	cgroup_oom_shared(void);
uint64_t cgroup_oom_kills(void);	/* of all together */
uint64_t cgroup_limit(void);	/* bytes, of all together */
int	cgroup_pressed(void);	/* all together: more than half is in use */
int	cgroup_oom(const char *sid);	/* v2: whether it was ended so */
/* Microseconds of waiting for memory; 0: the kernel does not count. */
uint64_t cgroup_stall(const char *sid);

/* ---- oom.c ------------------------------------------------------------ */

struct session;

void	oom_init(void);		/* after cgroup_init() */
void	oom_watch(void);	/* a session has begun */
void	oom_forget(const struct session *);	/* it is freed */
/*
 * Its leader, pid, was reaped; signal and killed are set.  Sets oom when the
 * OOM killer has ended it, and kills what is left of it then.
 */
void	oom_exited(struct session *, pid_t pid);

/* ---- reap.c ---------------------------------------------------------- */

int	reap_init(void);
void	reap_turn(void);	/* once per turn of the loop */
int	reap_busy(void);	/* more to do: do not sleep */

/* ---- session.c, finish.c, output.c, input.c -------------------------- */

enum session_state {
	SESSION_QUEUED,		/* made, waits for the spawner */
	SESSION_STARTING,	/* in the spawner */
	SESSION_RUNNING,
	SESSION_ENDING,		/* leader is dead, output is being taken */
	SESSION_ENDED
};

struct outpipe {
	struct watch	 w;
	int		 fd;		/* owned; -1: at its end */
	struct session	*session;	/* borrowed: it is part of it */
	unsigned int	 stream;
	int		 paused;	/* not watched: no room, or behind */
	int		 wide;		/* was made larger */
	uint64_t	 must;	/* bytes that were there at the leader's end */
};

struct bookmark {
	uint64_t	 seq, end;	/* chunk, bytes up to its end */
};
#define BOOKMARKS	8

struct input {
	struct watch	 w;
	int		 fd;		/* owned; -1: closed, or never open */
	int		 eof;		/* close when all is written */
	uint64_t	 taken;		/* bytes: the next offset */
	uint8_t		*buf;		/* owned: taken, not in the pipe */
	size_t		 len;
};

struct session {
	TAILQ_ENTRY(session)	 all;	/* by id */
	TAILQ_ENTRY(session)	 part;	/* in live or in ended, by time */
	char			 id[ULID_LEN + 1];
	char			 name[64];
	unsigned int		 origin;	/* 0 API, 1 wb */
	uid_t			 uid;
	enum session_state	 state;
	struct spawn		*spawn;	/* owned, until it runs */
	pid_t			 pid;	/* 0: not started, or reaped */
	struct outpipe		 out[2];
	struct input		 in;
	struct ring		 ring;
	struct bookmark		 mark[BOOKMARKS];
	unsigned int		 mark_next;
	struct waiters		 waiters;
	int			 has_cgroup;	/* directory is there */
	/* the reader that must miss nothing */
	int			 attached;
	unsigned int		 att_waits;	/* W_READ of it */
	uint64_t		 att_seq;	/* delivered */
	struct timer		 t_attach, t_limit, t_late;
	int			 late_over;
	int			 term_sent;	/* by the time limit */
	int			 killed;	/* by us */
	unsigned int		 drains;	/* its pipes are kept */
	/* what came of it */
	uint64_t		 timeout_ms;
	uint64_t		 started_ms, ended_ms, started_mono, wall_ms;
	unsigned int		 exit_code, signal, timed_out, oom;
	uint64_t		 stall, touched, now_touched, touches; /* oom.c */
	uint64_t		 left_behind, user_usec, sys_usec, peak_bytes;
};
TAILQ_HEAD(sessions, session);

extern struct table {
	struct sessions	 all;		/* by id */
	struct sessions	 lives;		/* before ENDED, by time */
	struct sessions	 ends;		/* ENDED, by time of the end */
	unsigned int	 nlives, nends;
	unsigned int	 nqueued;	/* of lives */
	unsigned int	 nleft;		/* of ends: directory is there */
	unsigned int	 ndrains;	/* of those: pipes are kept */
} table;

/* What both SESSION_RUN and WB_RUN ask for; borrowed. */
struct session_ask {
	const char		*id, *name, *cwd;
	const struct wire_list	*argv, *env;
	struct wire_bin		 input;
	uint64_t		 timeout_ms, memory_bytes, pids;
	unsigned int		 origin;
	int			 input_open, attached;
	const struct user	*user;	/* NULL: as the box's env says */
	uid_t			 uid;
	gid_t			 gid;
	char			*groups;	/* as in struct spawn; taken */
	size_t			 ngroups;
};

/* Queues it; answered when it runs or could not.  NULL: was answered. */
struct session *session_start(struct peer *, uint32_t rid,
	    struct session_ask *);
int	session_queued(void);	/* whether one waits for the spawner */
struct spawn *session_next(void);	/* takes it out of the queue */
void	session_spawned(struct spawn *);	/* see its step and err */
/* Tells its waiters that it never was, and frees it. */
void	session_abort(struct session *, unsigned int code, const char *what,
	    const char *why);
/* Forgets it; it is in no list but that of all. */
void	session_free(struct session *);
/* A child was reaped: a leader, or an orphan. */
void	session_exited(pid_t, int status, const struct rusage *);
void	finish_init(struct session *);
void	finish_if_draining(struct session *);
void	finish_stale(const char *id);	/* removes that directory later */
void	session_output_end(struct session *);	/* nothing more to come */
/* Kept, and p's to see; else NULL and the request has been answered. */
struct session *session_get(struct peer *, uint32_t rid, const char *id);
void	session_drain(uint64_t grace_ms);
void	session_row(struct session *, struct row_rsession *ret);

void	on_session_read(struct peer *, const struct msg *);
void	on_session_wait(struct peer *, const struct msg *);
void	on_session_stdin(struct peer *, const struct msg *);
void	on_session_signal(struct peer *, const struct msg *);
void	on_session_run(struct peer *, const struct msg *);

/* fd[2]: read ends of the pipes of stdout and stderr; taken. */
int	output_init(struct session *, const int fd[2]);
void	output_leader_gone(struct session *);
void	output_serve(struct session *);	/* answers reads that can be */
void	output_serve_peer(struct peer *);
void	output_attach(struct session *);
void	output_settle(struct session *);	/* whether that was all */
void	output_turn(void);		/* resumes what was paused */
void	output_unread(struct session *);	/* a reader's request is gone */
void	output_detach(struct session *);
void	output_discard(struct session *, int keep);	/* ENDED: pipes */
void	output_close(struct session *);

/* The write end of stdin, or -1; taken. */
int	input_init(struct session *, int fd, struct wire_bin first, int open);
void	input_close(struct session *);

/* ---- runner.c ------------------------------------------------------- */

struct runner {
	char		 id[ULID_LEN + 1];
	char		 name[64];
	uint8_t		 token[32];	/* SHA-256 of the host's */
	uint8_t		 nonce[32];
	int		 nonce_given;
	int		 gone;		/* the first go has come */
	int		 draining;
	uint64_t	 start_mono;
	char		**env;		/* the box's; owned from the first go */
	struct rlimit	 nofile;	/* for sessions */
	unsigned int	 lives_max;	/* sessions at one time */
};
extern struct runner	runner;

/*
 * All that is needed before anything may run, and not before the host is
 * answered: once, while it consumes the nonce.  Exits when it cannot be had.
 */
void	runner_prepare(void);
/* A line for launch.log, by stderr or through the host; rate-limited. */
void	runner_log(const char *, ...) __attribute__((format(printf, 1, 2)));

#endif
