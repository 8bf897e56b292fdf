/*
 * privd: the one process with privilege.  See PRIVSEP, and the comment at the
 * top of privd.c for how the files fit together; box.h is the mechanics.
 */
#ifndef PRIVD_PRIVD_H
#define PRIVD_PRIVD_H

#include <sys/queue.h>

#include "box.h"
#include "chan.h"
#include "conf.h"
#include "log.h"

enum daemon_kind { D_NETD, D_STORED, D_APID, D_N };

struct listener {
	int		 fd;		/* owned */
	unsigned int	 kind;		/* as in DAEMON_LISTENER */
};

/* What is opened at start and lives as long as privd. */
struct server {
	const struct conf *conf;	/* borrowed: conf.c */
	int		 conf_fd;	/* sealed memfds, as inherited */
	int		 token_fd;
	int		 state_fd;	/* O_DIRECTORY */
	int		 lock_fd;	/* see start.c */
	int		 ep;		/* epoll */
	int		 notify_fd;	/* -1: nobody waits */
	int		 ready_fd;	/* -1: nobody waits, or told */
	int		 meminfo_fd;
	struct listener	 listener[17];
	size_t		 nlisteners;
	int		 stopping;	/* SIGTERM came */
};
extern struct server	srv;

/* ---- privd.c: the loop --------------------------------------------- */

/* What an epoll event is about; with a daemon's or a box's number. */
enum ev {
	EV_SIGNAL, EV_MAKER, EV_CHAN, EV_DAEMON,
	EV_PID, EV_READY, EV_LOG, EV_CGROUP, EV_TREE
};
void		 ev_add(int fd, enum ev, unsigned int n, uint32_t events);
void		 ev_mod(int fd, enum ev, unsigned int n, uint32_t events);
/* Takes it out of the loop and closes it; -1 is left alone. */
void		 ev_close(int *fd);

/* ---- start.c --------------------------------------------------------- */

/* All are fatal when they fail. */
void		 start_state(const struct conf *);
void		 start_listeners(const struct conf *);
void		 start_notify(const struct conf *);
void		 start_limits(const struct conf *);
/* "READY=1" (also to the ready descriptor), "STOPPING=1". */
void		 start_tell(const char *);

/* ---- maker.c ---------------------------------------------------------- */

/*
 * The second process of privd, which does what needs fork, mount or setns.
 * Requests and answers are these structs as they are: both ends are one
 * program image.
 */
enum maker_op {
	MK_NONE,
	MK_SET,		/* in: U1 or none; out: D_N channels, D_N pidfds */
	MK_LAUNCH,	/* out: pidfd, ready_fd, log_fd, netns_fd */
	MK_CONNECT,	/* in: pidfd of pid 1; out: socket */
	MK_REMOVE	/* out: pidfd of the child */
};
#define MAKER_FDS	(2 * D_N)

struct maker_req {
	enum maker_op	 op;
	unsigned int	 n;		/* the box's number, echoed */
	uint32_t	 uid;
	struct row_spec	 spec;
	uint8_t		 nonce[BOX_NONCE];
};

struct maker_ans {
	enum maker_op	 op;
	unsigned int	 n;
	int		 error;		/* errno; 0: done */
	char		 why[200];	/* box_error() */
	int		 fd[MAKER_FDS];	/* owned by the receiver, -1 */
};

/* Forks it.  title: argv[0], which it overwrites in the child. */
void		 maker_start(char *title);
/*
 * Sends a request with fd (borrowed, or -1).  -1 with EAGAIN: enough is
 * under way, ask again after the next answer.  Other errors are fatal.
 */
int		 maker_ask(const struct maker_req *, int fd);
/* 1 and an answer; 0: none there.  Fatal when the maker is gone. */
int		 maker_answer(struct maker_ans *ret);

/* ---- daemons.c: the set ------------------------------------------------ */

void		 set_start(void);
void		 set_on_maker(struct maker_ans *);
void		 set_on_chan(unsigned int kind, uint32_t events);
void		 set_on_pidfd(unsigned int kind);
/* A daemon broke its contract: the loop ends the set and starts it afresh. */
void		 set_fault(const char *fmt, ...)
		    __attribute__((format(printf, 1, 2)));
/* SIGTERM: in order, then exit(0). */
void		 set_stop(void);
/* The next moment at which set_tick() wants to be called; 0: none. */
uint64_t	 set_due(void);
void		 set_tick(uint64_t now);
/* The user namespace of netd, as found again in a box; taken. */
void		 set_userns(int fd);
/* An adoption was answered, or is not needed any more. */
void		 set_adopted(void);

/* Sending; a channel that cannot take it is a fault of the set. */
void		 to_apid(unsigned int type, uint32_t rid, const void *, int fd);
void		 to_apid_ok(uint32_t rid);
void		 to_apid_error(uint32_t rid, unsigned int code,
		    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* 0, or -1 when netd is not there: the set is starting. */
int		 to_netd(unsigned int type, const void *, int fd,
		    uint32_t *ret_rid);

/* ---- table.c: what privd knows of each box ------------------------------ */

/* The life of an entry; theory of operation in life.c. */
enum phase {
	PH_FREE, PH_MAKE, PH_START, PH_UP, PH_END, PH_DOWN, PH_PURGE
};

/* Whose answer an entry keeps: one at a time. */
enum ask {
	ASK_NONE, ASK_CREATE, ASK_ATTACH, ASK_NONCE, ASK_QUARANTINE,
	ASK_KILL, ASK_PURGE
};

enum net {
	NET_NONE,	/* netd does not know it */
	NET_THERE,	/* netd holds it under k */
	NET_LOST	/* netd would not adopt it */
};

struct entry {
	struct row_spec	 spec;		/* id, name, rootfs, limits */
	enum phase	 phase;
	unsigned int	 n;		/* own number in the table */
	uint32_t	 uid;		/* first of its range, 0: none */
	int		 sealed;	/* quarantined */
	int		 doomed;	/* nobody waits: end and purge it */
	/* one asker */
	enum ask	 ask;
	uint32_t	 rid;
	unsigned int	 code;		/* answer when the cut is made */
	/* the maker */
	enum maker_op	 want;		/* not sent yet */
	enum maker_op	 made;		/* sent, not answered */
	/* the network */
	enum net	 net;
	uint32_t	 k;
	unsigned int	 net_type;	/* request that is under way, or 0 */
	uint32_t	 net_rid;
	uint64_t	 net_due;	/* netd must have answered */
	char		 ruleset[65];
	int		 netns;		/* owned */
	int		 netns_fd;	/* owned, where the child waits for it */
	/* boot */
	uint8_t		 nonce[BOX_NONCE];
	int		 nonce_live;	/* made, not yet asked for */
	/* the kernel's */
	int		 pidfd;		/* owned, of pid 1 */
	int		 ready_fd;	/* owned */
	int		 log_fd;	/* owned */
	int		 events_fd;	/* owned, cgroup.events */
	int		 tree_fd;	/* owned, pidfd of the removal */
	int		 ctl_fd;	/* owned, connected, for apid */
	int		 cgroup_gone;	/* of a purge */
	int		 tree_gone;
	unsigned int	 tries;		/* of what waits for `due' */
	char		 why[200];	/* of a create that failed */
};

#define TABLE_MAX	4400	/* conf's most boxes, and what is being removed */

void		 table_init(void);
struct entry	*table_find(const char *id);		/* or NULL */
struct entry	*table_number(unsigned int n);		/* or NULL: free */
/* The entries in ascending order of ids: the i-th, or NULL. */
struct entry	*table_at(unsigned int i);
/* The place of the first id above `after'. */
unsigned int	 table_above(const char *after);
unsigned int	 table_count(void);
/* Boxes with a pid 1. */
unsigned int	 table_up(void);
/* A new entry for an id that has none; NULL: no room. */
struct entry	*table_add(const struct row_spec *);
void		 table_drop(struct entry *);
/* A uid range that no entry has, or 0. */
uint32_t	 table_uid(void);
/* When entry_due() wants to see it; 0: never. */
void		 table_due(struct entry *, uint64_t ms);
uint64_t	 table_next(void);
void		 table_tick(uint64_t now);

/* ---- life.c: how a box moves ---------------------------------------------- */

void		 life_on_maker(struct maker_ans *);
void		 life_on_event(enum ev, unsigned int n);
/* An answer of netd's; 0: it answers nothing. */
int		 life_on_net(struct msg *);
void		 life_on_due(struct entry *);
/* The set is gone, with all that it was asked and asked. */
void		 life_set_down(void);
/* Offers every living netns to a new netd; the number of answers due. */
unsigned int	 life_adopt(void);

/* The moves that handlers and the scan begin. */
void		 life_create(struct entry *);
void		 life_attach(struct entry *);
void		 life_open(struct entry *);
/* Freezes, cuts, marks; then the asker, if any, is answered with code. */
void		 life_seal(struct entry *, const char *field,
		    unsigned int code);
void		 life_end(struct entry *);
void		 life_purge(struct entry *);
/* Files in a box's directory, for a privd that starts again. */
#define MARK_OPENED	"opened"	/* the nonce came: network open */
#define MARK_SEALED	"quarantined"	/* and the field that differed */
int		 life_marked(const char *id, const char *mark);
/* The pidfd of a living pid 1, taken; it is watched from now on. */
void		 life_watch(struct entry *, int pidfd);
void		 entry_ask(const struct entry *, struct box_ask *ret);

/* ---- boxlog.c ----------------------------------------------------------- */

#define LAUNCH_LOG_MAX	65536	/* bytes of a launch.log */

/* Appends a line end too when it lacks.  -1: it did not fit, it is full. */
int		 boxlog_append(const char *id, const void *, size_t);
/* The last 20 lines, at most size bytes; their number. */
size_t		 boxlog_tail(const char *id, char *ret, size_t size);

/* ---- handlers.c ----------------------------------------------------------- */

/* One message of apid's about boxes.  0: there is no handler. */
int		 handle_box(struct msg *);

/* ---- scan.c ---------------------------------------------------------------- */

/* The table from what is on disk and alive.  Before the loop. */
void		 scan(void);

#endif
