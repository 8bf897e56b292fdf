/*
 * apid_world: the real apid, with a test in the place of privd, stored, netd
 * and every runner.
 *
 * The world is a process of its own that answers apid's channels; how a
 * box's runner behaves is told by the box's name (enum act).  The test
 * speaks HTTP to apid and reads what the world counted in shared memory.
 */
#ifndef APID_WORLD_H
#define APID_WORLD_H

#include <sys/types.h>

#include <stddef.h>

#include "proto.h"

#define WORLD_BOXES	64
#define WORLD_LIST	512		/* bytes of a list that are kept */
#define WORLD_TOKEN	"0123456789abcdef0123456789abcdef"
#define WORLD_LOG	"apid_test.serve.log"	/* of apid, from all tests */
#define WORLD_WORDS	"the words of a box"	/* of an error */

/* What a runner does; the name is the box's, up to the last dash. */
#define ACTS \
	A(GOOD, "good")			/* as it should */ \
	A(NONCE_WRONG, "nonce-wrong")	/* another nonce than privd gave */ \
	A(NONCE_NONE, "nonce-none")	/* says it had given it before */ \
	A(NONCE_TWICE, "nonce-twice")	/* once more when READY */ \
	A(GARBAGE, "garbage")		/* bytes, instead of a nonce */ \
	A(HUGE, "huge")			/* lengths of 4 GiB */ \
	A(EMPTY, "empty")		/* a map with nothing in it */ \
	A(CUT, "cut")			/* half a message */ \
	A(LONG, "long")			/* a message and a byte */ \
	A(FD, "fd")			/* a descriptor that is not due */ \
	A(PRIVD, "privd")		/* what only privd may say */ \
	A(EARLY, "early")		/* a chunk before it is READY */ \
	A(STALL, "stall")		/* never answers HELLO */ \
	A(STALL_GO, "stall-go")		/* never answers GO */ \
	A(LIE, "lie")			/* another uid map than the host saw */ \
	A(HOST, "host")			/* privd sees another capability */ \
	A(CLOSE, "close")		/* closes instead of a nonce */ \
	A(REFUSES, "refuses")		/* an error instead of a nonce */ \
	A(REFUSES_GO, "refuses-go")	/* and instead of facts */ \
	A(OLDER, "older")		/* a version ago */ \
	A(AGED, "aged")			/* two, and closes on any other */ \
	A(TELLS, "tells")		/* ... and says so before */ \
	A(NEWER, "newer")		/* the next one, and says so */ \
	A(SWINGS, "swings")		/* says each time the other one */ \
	A(CLOSE_RUN, "close-run")	/* closes when a session starts */ \
	A(TWICE, "twice")		/* answers a request two times */ \
	A(RUN_OTHER, "run-other")	/* says another session runs */ \
	A(EXIT_OTHER, "exit-other")	/* another one's end */ \
	A(CHUNK_OTHER, "chunk-other")	/* another one's output */ \
	A(CHUNK_SKIP, "chunk-skip")	/* a number that does not follow */ \
	A(CHUNK_FIRST, "chunk-first")	/* output before it says that it runs */ \
	A(GAP_ODD, "gap-odd")		/* a gap that ends before it begins */ \
	A(STDIN_ODD, "stdin-odd")	/* took more than was sent */ \
	A(ANNOUNCE, "announce")		/* 20,000 sessions of wb */ \
	A(ANNOUNCE_ID, "announce-id")	/* with an id of the year 10889 */ \
	A(LOGS, "logs")			/* 20,000 lines */ \
	A(ASKS, "asks")			/* what its network denied, 5,000 times \
					 * at each session */ \
	A(ROWS, "rows")			/* sessions that are no rows */ \
	A(SILENT, "silent")		/* never ends a session */ \
	A(SHUT, "shut")			/* netd says it has no way out */ \
	A(NOCHANGE, "nochange")		/* netd cannot change its network */ \
	A(DRIFTS, "drifts")		/* netd has it as another kind, once */ \
	A(STAYED, "stayed")		/* it is egress, whatever the row says, \
					 * until an amendment is let go */ \
	A(LAST_WORD, "last-word")	/* netd tells of a denial while it \
					 * becomes none */ \
	A(GOES, "goes")			/* netd: it is removed meanwhile */ \
	A(SHORT_BACK, "short-back")	/* and netd cannot do it */ \
	A(SHORT_NETWORK, "short-network") /* stored: disk full at it */ \
	A(FADES, "fades")		/* output goes while it is read */ \
	A(BIG, "big")			/* 3 MiB of output */ \
	A(SEALED, "sealed")		/* privd holds it quarantined */ \
	A(MAKE_FAILS, "make-fails")	/* privd cannot make it */ \
	A(FACTS_FIRST, "facts-first")	/* privd: facts before it has opened */ \
	A(NO_ROOTFS, "no-rootfs")	/* privd does not know the rootfs */ \
	A(SHORT_CREATE, "short-create")	/* stored: disk full at the row */ \
	A(SHORT_READY, "short-ready")	/* stored: disk full at READY */ \
	A(SHORT_SESSION, "short-session") /* stored: disk full at a session */ \
	A(KILL_FAILS, "kill-fails")	/* privd cannot kill it, once */

enum act {
#define A(N, s)	ACT_##N,
	ACTS
#undef A
	ACT_N
};

struct world_box {
	char	 id[27], name[64];
	int	 created, attached, nonced, asked_facts;
	uint32_t nonce_rid;		/* answered with the first facts */
	int	 quarantined, killed, purged, ended;
	char	 field[64];		/* of the quarantine */
	unsigned state;			/* in stored */
	char	 reason[128];
	unsigned networks, amended;	/* rows; NET_CHANGE without one */
	unsigned network, opened;	/* netd's; as privd was told */
	unsigned changes;		/* NET_CHANGE */
	uint32_t change_rid;		/* NET_CHANGE that is not answered */
	unsigned looks, early;		/* NET_STATUS; before NET_CHANGE */
	char	 network_why[128];	/* of the last row */
	unsigned log_lines;		/* that came to launch.log */
	unsigned started, finished;	/* session rows */
	volatile unsigned asks, answers, refusals;	/* ACT_ASKS */
	uint64_t denied_by_name;	/* of the last answer: of all rules */
	unsigned denied_rows;		/* its rows; the first: */
	uint8_t	 denied_addr[16];
	uint64_t denied_count;
	/* its list: what was put last, and what is recorded */
	unsigned put_pages, put_most;	/* of entries in a page */
	volatile unsigned puts;		/* ALLOW_PUT, of all lists */
	unsigned put_n, list_n;
	char	 put[WORLD_LIST], list[WORLD_LIST];	/* the first of them */
	volatile int listed;		/* there is one */
};

/* Steps at which stored or netd can be made to fail, or to wait. */
enum world_step { WORLD_NO_STEP, WORLD_PUT, WORLD_READ, WORLD_RECORD,
    WORLD_CHANGE, WORLD_NAMES };

struct world_shared {
	struct world_box box[WORLD_BOXES];
	unsigned	 nbox;
	unsigned	 events[64];	/* appended, by type */
	unsigned	 attached, suspect, absent, quarantined; /* reconcile */
	unsigned	 strays;	/* ids without a row that were purged */
	unsigned	 faults;	/* that the world saw in apid's words */
	char		 fault[200];
	volatile int	 end_box;	/* index + 1: BOX_ENDED for it */
	volatile int	 let_go;	/* ACT_STAYED becomes what is asked */
	/* At the nth of these, from 1 on, each time or once: */
	volatile enum world_step at_step;
	volatile unsigned at_nth, at_seen;
	volatile int	 at_once;
	volatile enum wb_code at_code;	/* fails so; NONE: waits: */
	volatile int	 waits, go_on;	/* until go_on, then fails */
	volatile unsigned reads;	/* ALLOW_READ */
	volatile int	 odd_names;	/* NET_NAMES: hostile rows */

	/* what netd shall tell: the address counts up with each */
	struct msg_net_denied denied;
	uint8_t		 denied_addr[16];
	size_t		 denied_len;
	unsigned	 denied_first, denied_crowd;
	volatile unsigned denied_left;
	const void	*netd_says;	/* raw; from before the world began */
	volatile size_t	 netd_len;
	uint64_t	 totals[5];	/* in NET_STATUS_IS */
	/* egress.denied as appended */
	volatile unsigned denied_records, denied_sums;
	uint64_t	 denied_count;	/* sum of all */
	struct msg_event_append denied_last;
	struct event_egress_denied denied_data;
};

struct world {
	struct world_shared	*s;	/* shared with the process */
	pid_t			 pid;	/* of the world */
	pid_t			 apid;
	int			 port;
	const char		*token;	/* that requests carry */
	int			 apid_out;	/* reads EOF when apid is gone */
};

/* A row that is there before apid starts; alive: privd has it running. */
void	world_row(struct world *, const char *name, unsigned int state,
	    int found);
/* The network of the row that was made last; wb_network. */
void	world_row_network(struct world *, unsigned int network);
void	world_make(struct world *);	/* shared memory alone */
void	world_start(struct world *);
void	world_end(struct world *);
struct world_box *world_box(struct world *, const char *name);
/* Has netd tell this n times, but for its address; when it has. */
void	world_denied(struct world *, const struct msg_net_denied *,
	    const void *addr, size_t len, unsigned int n);
/*
 * The same of as many boxes from this one on by turns, but for the last of
 * the n, which is of the message's own.
 */
void	world_denied_crowd(struct world *, const struct msg_net_denied *,
	    const void *addr, size_t len, unsigned int n,
	    const struct world_box *from, unsigned int boxes);
/* Has netd send these bytes of a static object. */
void	world_netd_says(struct world *, const void *, size_t len);

#endif
