/*
 * netd: network namespaces without privilege on the host.  See netd(8); the
 * comment at the top of netd.c tells how the files fit together.
 */
#ifndef NETD_NETD_H
#define NETD_NETD_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "chan.h"
#include "conf.h"
#include "ulid.h"

#define NET_KMAX	65535	/* k: uids of U1 that name networks, from 1 */
#define NET_HASHLEN	64	/* hexadecimal digits of a ruleset's hash */
#define NET_FDS		2	/* descriptors that a box's network holds */

/* The addresses of a network `none'; workbox-network(7). */
#define NONE_ADDR4	"198.19.255.100"
#define NONE_ADDR6	"fd00::100"

/* ---- nl.c: netlink ---------------------------------------------------- */

#define NL_BATCH	8192	/* bytes of messages that are sent at once */

/*
 * Messages that go out in one sendto(2); each that asks for an
 * acknowledgement carries the next number from 1.  May be sent any number of
 * times, on any socket.
 */
struct nl_batch {
	uint8_t		 buf[NL_BATCH];
	size_t		 len;
	uint32_t	 acks;		/* acknowledgements to come */
	uint32_t	 seq;		/* last number used */
	int		 full;		/* a message did not fit */
};

struct nlmsghdr;

void		 nl_start(struct nl_batch *);
/* Where the next message is to be built, NL_ROOM bytes; never NULL. */
char		*nl_next(struct nl_batch *);
#define NL_ROOM		1024
/* Takes the message built there over; ack: the kernel is to answer it. */
void		 nl_took(struct nl_batch *, const struct nlmsghdr *, int ack);
/*
 * Sends and reads every acknowledgement.  0, or -1 with errno, the first
 * error that the kernel told (ret_seq, if not NULL: of which message), or
 * EPROTO when one is missing.
 */
int		 nl_send(int fd, const struct nl_batch *, uint32_t *ret_seq);
/*
 * Sends one dump request, calls cb for each message of the answer; cb
 * returns 0, or -1 to fail with its errno.  EINTR: the dump was disturbed by
 * a change, ask again.
 */
int		 nl_dump(int fd, struct nlmsghdr *req,
		    int (*cb)(const struct nlmsghdr *, void *), void *arg);

/* ---- link.c: what a netns has besides its ruleset ---------------------- */

/* Raises or lowers lo.  fd, here and below: NETLINK_ROUTE of that netns. */
int		 link_set(int fd, int up);
/*
 * Gives lo, which is up, the addresses of workbox-network(7) and default
 * routes to itself, so that whatever a box wants to reach passes the output
 * chain.  May be repeated.
 */
int		 link_routes(int fd);
/* 1: there is no interface but lo (*ret_up: its state); 0: there is. */
int		 link_alone(int fd, int *ret_up);
/* A socket that hears of the death of namespaces named by link_name(). */
int		 link_watch(void);
/* Lets the kernel know netns as number k here.  EEXIST: it knows already. */
int		 link_name(int fd, unsigned int k, int netns);
/* Calls dead(k) for each namespace that ended since; 0 or -1 with errno. */
int		 link_deaths(int fd, void (*dead)(unsigned int k));
/* After ENOBUFS: calls alive(k) for each that the kernel still knows. */
int		 link_alive(int fd, void (*alive)(unsigned int k));

/* ---- ruleset.c, canon.c ------------------------------------------------ */

enum ruleset {
	RULESET_SEALED,		/* drops everything */
	RULESET_NONE,		/* network `none', open */
	RULESET_N
};

/*
 * Builds every ruleset and its hash, once.  absent: the configuration says
 * that there is no netfilter; the other calls then do nothing.
 */
int		 ruleset_init(int absent);
/* Makes the tables anew, whatever was there before: one transaction. */
int		 ruleset_make(int fd, enum ruleset);
/* The same by exchanging the rules of tables that are there: cheaper. */
int		 ruleset_switch(int fd, enum ruleset);
/* The hash of what the kernel lists in that netns, or "absent". */
int		 ruleset_read(int fd, char ret[NET_HASHLEN + 1]);
/* The hash that belongs to it; static. */
const char	*ruleset_hash(enum ruleset);

struct nftnl_table;
struct nftnl_chain;
struct nftnl_rule;
struct canon;

/*
 * The canonical text of a ruleset: what matters, one line per object, in the
 * kernel's order, without handles and counters; its SHA-256 is the hash.
 * Independent of the versions of kernel and library.
 */
struct canon	*canon_new(void);		/* never NULL */
void		 canon_table(struct canon *, const struct nftnl_table *);
void		 canon_chain(struct canon *, const struct nftnl_chain *);
void		 canon_rule(struct canon *, const struct nftnl_rule *);
const char	*canon_text(const struct canon *);	/* borrowed */
/* Frees it. */
void		 canon_done(struct canon *, char ret[NET_HASHLEN + 1]);

/* ---- netns.c: the maker ------------------------------------------------- */

/* Sockets that the maker opens inside a netns, as bits of `want'. */
enum netns_sock {
	NS_NFT,			/* NETLINK_NETFILTER, for batches */
	NS_LOG,			/* NETLINK_NETFILTER, for denials */
	NS_ROUTE,		/* NETLINK_ROUTE */
	NS_DIAG,		/* NETLINK_SOCK_DIAG */
	NS_NSOCKS
};

struct netns_made {
	uint32_t	 k;		/* 0: the maker is ready */
	int		 error;		/* errno, or 0 */
	char		 step[32];	/* that failed */
	int		 netns;		/* owned by the receiver, or -1 */
	int		 sock[NS_NSOCKS]; /* ditto */
};

#define NETNS_INFLIGHT	16		/* most questions without answer */

/*
 * Starts the maker, waits until it is ready, returns the socket to it
 * (non-blocking).  Fatal when it fails.  Before the fence; landlock: whether
 * the maker's own uses it.
 */
int		 netns_start(const struct conf *, int landlock);
/*
 * Asks for a new netns named k, or (netns not -1, borrowed; k 0) for sockets
 * in one that exists.  Answers come in the order of the questions.
 */
int		 netns_ask(int fd, unsigned int k, unsigned int want,
		    int netns);
/* 1: *ret is filled; 0: nothing yet; -1: the maker is gone or broken. */
int		 netns_recv(int fd, struct netns_made *ret);
void		 netns_close(struct netns_made *);

/* ---- nets.c: the networks ----------------------------------------------- */

struct event_base;

/* See the theory of operation in nets.c. */
enum net_state { MAKING, POOLED, SEALED, OPEN, CUT, DYING };

struct net {
	LIST_ENTRY(net)		 hash;	/* by id; SEALED, OPEN, CUT */
	TAILQ_ENTRY(net)	 pool;	/* POOLED */
	enum net_state		 state;
	unsigned int		 k;
	char			 id[ULID_LEN + 1];
	int			 netns;	/* owned */
	int			 ctl;	/* owned; NS_NFT, or NS_ROUTE where
					 * there is no netfilter */
};
TAILQ_HEAD(net_pool, net);

/* What netd opened before its fence; owned by netd.c. */
struct nets_fds {
	int		 maker;		/* netns_start() */
	int		 watch;		/* link_watch() */
	int		 home;		/* NETLINK_ROUTE in netd's own netns */
};

extern struct nets {
	int		 home;
	int		 absent;		/* no netfilter */
	unsigned int	 room;			/* boxes at most */
	unsigned int	 boxes;			/* SEALED, OPEN, CUT */
	unsigned int	 sealed, pooled, making;
	struct net_pool	 pool;			/* POOLED, oldest first */
} nets;

/* room: boxes at most.  absent: without netfilter. */
void		 nets_init(struct event_base *, const struct nets_fds *,
		    int absent, unsigned int room);
/* A box's net, or NULL. */
struct net	*net_find(const char *id);
struct net	*net_by_k(uint64_t k);
/* Whoever's it is, in whatever state, or NULL. */
struct net	*net_at(unsigned int k);
/* MAKING, with this k, which is free (0: the next one; NULL: none left). */
struct net	*net_new(unsigned int k);
/* A box's from now on: SEALED, OPEN or CUT. */
void		 net_own(struct net *, const char *id, enum net_state);
/* The only way to another state but for net_own() and net_drop(). */
void		 net_move(struct net *, enum net_state);
/* Lets go of it; named: the kernel will tell when it is dead. */
void		 net_drop(struct net *, int named);
/*
 * Takes what the maker passed; the first makes it SEALED, the second makes
 * it `which' where it is not that already.  NULL, or the step that failed
 * (and was logged); *ret_named is for net_drop().
 */
const char	*net_prepare(struct net *, struct netns_made *,
		    int *ret_named);
const char	*net_adopt(struct net *, struct netns_made *, enum ruleset,
		    int *ret_named);
/* Changes it and reads it back.  NULL, or the step that failed. */
const char	*net_set(const struct net *, enum ruleset);
/* Reads what the kernel has.  1: it is `which'; 0: it is not; -1: errno. */
int		 net_whole(const struct net *, enum ruleset,
		    char ret_hash[NET_HASHLEN + 1]);

/* ---- pool.c: asking the maker ---------------------------------------------- */

void		 pool_init(struct event_base *, int maker_fd);
/* The daemons serve: the pool may be filled. */
void		 pool_go(void);
/* Answers NET_MAKE, now or when the maker has made one. */
void		 pool_give(struct chan *, uint32_t rid, const char *id);
/* Answers NET_ADOPT when the maker has looked at it.  Takes netns. */
void		 pool_adopt(struct chan *, uint32_t rid, const char *id,
		    int open, int netns);
/* Requests that are not answered yet. */
unsigned int	 pool_waiting(void);
/* A create made a step, or a net went: see to the pool. */
void		 pool_stir(int step);

/* ---- requests.c -------------------------------------------------------------- */

/* Handlers; each sends exactly one answer, now or later, on this channel. */
void		 netd_on_net_make(struct chan *, const struct msg *);
void		 netd_on_net_open(struct chan *, const struct msg *);
void		 netd_on_net_cut(struct chan *, const struct msg *);
void		 netd_on_net_free(struct chan *, const struct msg *);
void		 netd_on_net_adopt(struct chan *, struct msg *);
void		 netd_on_net_status(struct chan *, const struct msg *);

/* ---- netd.c ---------------------------------------------------------------- */

/* After each chan_send(): its result; fatal when not even queued. */
void		 netd_sent(struct chan *, int result);

#endif
