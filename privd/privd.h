/*
 * privd: hears the daemons and decides.  See PRIVSEP, and the comment at the
 * top of privd.c for how the files fit together.
 */
#ifndef PRIVD_PRIVD_H
#define PRIVD_PRIVD_H

#include <sys/queue.h>

#include "boxfd.h"
#include "chan.h"
#include "log.h"
#include "maker_ask.h"
#include "ulid.h"
#include "xmalloc.h"

enum daemon_kind { D_NETD, D_STORED, D_APID, D_UPLINKD, D_PROXYD, D_N };

/* What is opened at start and lives as long as privd. */
struct server {
	const struct server_conf *conf;	/* borrowed: privd.c */
	int		 ep;		/* epoll */
	int		 notify_fd;	/* -1: nobody waits */
	int		 ready_fd;	/* -1: nobody waits, or told */
	unsigned int	 cgroup_v1;	/* as the maker says, for row_boot */
	char		 filter[65];	/* likewise, for row_spec */
	int		 stopping;	/* SIGTERM came */
	int		 fresh[READER_FDS]; /* owned: to be taken up; or -1 */
};
extern struct server	srv;

/* ---- privd.c: the loop --------------------------------------------- */

/* What an epoll event is about; with a daemon's or a box's number. */
enum ev {
	EV_SIGNAL, EV_READER, EV_MAKER, EV_CHAN, EV_DAEMON,
	EV_PID, EV_READY, EV_LOG, EV_CGROUP, EV_TREE
};
void		 ev_add(int fd, enum ev, unsigned int n, uint32_t events);
void		 ev_ctl(int op, int fd, enum ev, unsigned int n,
		    uint32_t events);	/* op is of epoll_ctl(2) */
/* Takes it out of the loop and closes it; -1 is left alone. */
void		 ev_close(int *fd);
/* "READY=1" (also to the ready descriptor), "STOPPING=1". */
void		 tell(const char *);
/* Takes a sealed memfd for srv.conf. */
void		 conf_take(int fd);
/* The listening sockets; -1: there are no more. */
int		 listener(unsigned int i, unsigned int *ret_kind);

/* ---- maker.c: asking the maker ------------------------------------------ */

struct entry;

/* Hands it what is the server's; fatal when it cannot make boxes. */
void		 maker_init(void);
/*
 * Sends a request with n descriptors (borrowed, or -1).  -1 with EAGAIN:
 * enough is under way, ask again after the next answer.
 */
int		 maker_ask(struct maker_req *, const int *fds, size_t n);
/*
 * 1 and an answer, of this module until the next, with descriptors that the
 * caller takes by steal_fd() or leaves; 0: none there, or, with block, none
 * is due.
 */
int		 maker_answer(struct maker_ans **ret, int **ret_fds,
		    int block);
/* One operation for a box, as soon as may be; asked once at a time. */
void		 maker_want(struct entry *, enum maker_op);
/* The entry's answer is here; and whether one is still due. */
void		 maker_done(struct entry *, enum maker_op);
int		 maker_due(const struct entry *, enum maker_op);
/* Forgets what was not sent. */
void		 maker_forget(struct entry *);
/* Sends what could not be sent. */
void		 maker_pump(void);

/* ---- daemons.c: the set ------------------------------------------------ */

void		 set_start(void);
void		 set_on_maker(int *fds);
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
	ASK_RELEASE, ASK_KILL, ASK_PURGE
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
	int		 trial;		/* goes on, the mark is still there */
	int		 doomed;	/* nobody waits: end and purge it */
	/* one asker */
	enum ask	 ask;
	uint32_t	 rid;
	unsigned int	 code;		/* answer when the cut is made */
	uint32_t	 facts_rid;	/* these two wait beside it; 0: none */
	uint32_t	 health_rid;
	uint32_t	 freeze, written;	/* what BOX_HEALTH said */
	int		 frozen;	/* as last seen */
	/* the maker: sets of 1 << enum maker_op */
	unsigned int	 want;		/* not sent yet */
	unsigned int	 made;		/* sent, not answered */
	/* the network */
	enum net	 net;
	uint32_t	 k;
	unsigned int	 net_type;	/* request that is under way, or 0 */
	uint32_t	 net_rid;
	uint64_t	 net_due;	/* netd must have answered */
	uint64_t	 due;		/* the phase's own; 0: none */
	char		 ruleset[65];
	uint64_t	 network;	/* as opened or adopted; wb_network */
	int		 netns;		/* owned */
	ino_t		 net_ino;	/* its, while it is there */
	int		 netns_fd;	/* owned, where the child waits for it */
	/* boot */
	uint8_t		 nonce[BOX_NONCE];
	int		 nonce_live;	/* made, not yet asked for */
	uint8_t		 token[BOX_TOKEN];
	int		 opened;	/* MARK_OPENED is there */
	/* the kernel's */
	int		 pidfd;		/* owned, of pid 1 */
	int		 ready_fd;	/* owned */
	int		 log_fd;	/* owned, what the runner says */
	int		 file_fd;	/* owned, launch.log */
	int		 events_fd;	/* owned, cgroup.events */
	int		 tree_fd;	/* owned, pidfd of the removal */
	int		 ctl_fd;	/* owned, connected, for apid */
	int		 cgroup_gone;	/* of a purge */
	int		 tree_gone;
	unsigned int	 tries;		/* of what waits for it */
	char		 why[200];	/* of a create that failed, a seal */
};

#define TABLE_MAX	4400	/* conf's most boxes, and what is being removed */

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

/* ---- life.c: how a box moves ------------------------------------------- */

void		 life_on_maker(struct maker_ans *, int *fds);
void		 life_on_event(enum ev, unsigned int n);
/* An answer of netd's; 0: it answers nothing. */
int		 life_on_net(struct msg *);
void		 life_on_due(struct entry *);
/* Seals again what is being released. */
void		 life_untried(void);
/* The set is gone, with all that it was asked and asked. */
void		 life_set_down(void);
/* Takes a netns for the box; -1: another box has that one. */
int	 life_netns(struct entry *, int fd);
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
/* The pidfd of a living pid 1, taken; it is watched from now on. */
void		 life_watch(struct entry *, int pidfd);
/* Whether the box's directory is there. */
int		 life_on_disk(const char *id);

/* ---- boxlog.c ----------------------------------------------------------- */

#define LAUNCH_LOG_MAX	61440	/* bytes of a launch.log, and of an answer */

/* Appends a line end too when it lacks.  -1: what was older has been cut. */
int		 boxlog_append(const struct entry *, const void *, size_t);

/* ---- handlers.c -------------------------------------------------------- */

/* One message of apid's about boxes.  0: there is no handler. */
int		 handle_box(struct msg *);
/* What the maker read of a box: to whoever asked. */
void		 handle_facts(struct entry *, struct maker_ans *);
void		 handle_health(struct entry *, const struct maker_ans *);

/* ---- scan.c ------------------------------------------------------------ */

/* The table from what is on disk and alive.  Before the loop. */
void		 scan(void);

#endif
