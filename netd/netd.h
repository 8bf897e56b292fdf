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
#include "denied.h"
#include "hostaddr.h"
#include "nl.h"
#include "sealed.h"
#include "span.h"
#include "ulid.h"

#define NET_KMAX	65535	/* k: uids of U1 that name networks, from 1 */
#define NET_HASHLEN	64	/* hexadecimal digits of a ruleset's hash */
#define NET_FDS		4	/* descriptors that a box's network holds */

/* The addresses of a network `none'; workbox-network(7). */
#define NONE_ADDR4	"198.19.255.100"
#define NONE_ADDR6	"fd00::100"

/* What `egress' has besides those that slirp4netns sets up itself. */
#define EGRESS_TAP	"tap0"
#define EGRESS_ADDR6	"fd00::100"	/* of /64 */
#define EGRESS_GATEWAY6	"fd00::2"

/* The name server of every kind of network. */
#define EGRESS_DNS4	"198.19.255.3"

/*
 * What `allowlist' has besides those of `none': addresses that stand for
 * names, of /16, which with 198.19.0.0/16, where the name server is, are all
 * the box's own; and the relay, to which TCP goes that is for one of them.
 */
#define RELAY_NET4	"198.18.0.0"
#define RELAY_NET4B	"198.19.0.0"
#define RELAY_ADDR4	"127.0.0.1"
#define RELAY_PORT	1		/* no box can have it: netns.c */
#define RELAY_BACKLOG	512		/* connections that nobody has taken;
					 * and in maker_calls.def */

/* Connections that a box may open, in each family; also in `allowlist'. */
#define EGRESS_SYN_RATE		200	/* a second */
#define EGRESS_SYN_BURST	1000

/*
 * What it may ask name servers, by UDP; those of TCP are connections.  Also
 * in `allowlist', as are the numbers below.
 */
#define EGRESS_NAMES_RATE	100	/* a second */
#define EGRESS_NAMES_BURST	500

/*
 * What is denied there: how much of it each rule logs in each family, and how
 * many bytes of a packet, which hold the headers that are of interest.
 */
#define EGRESS_TELL_RATE	10	/* a second */
#define EGRESS_TELL_BURST	20
#define EGRESS_LOG_GROUP	1
#define EGRESS_LOG_BYTES	128

/* ---- link.c: what a netns has besides its ruleset ---------------------- */

/* Raises or lowers lo.  fd, here and below: NETLINK_ROUTE of that netns. */
int		 link_set(int fd, int up);
/*
 * Gives lo, which is up, the addresses of workbox-network(7) and default
 * routes to itself, so that whatever a box wants to reach passes the output
 * chain.  May be repeated.
 */
int		 link_routes(int fd);
/* Takes these routes away, if they are there; the addresses stay. */
int		 link_unroute(int fd);
/*
 * Makes all of RELAY_NET4 and RELAY_NET4B the box's own, which speaks to them
 * from NONE_ADDR4, which is there; or (own 0) not, if they are.  May be
 * repeated.
 */
int		 link_relay(int fd, int own);
/*
 * IPv6 for the tap that slirp4netns made: an address at once, a route.  May
 * be repeated; connections live on.
 */
int		 link_uplink6(int fd);
/* What has passed the tap that slirp4netns made. */
enum tap_count { TAP_SENT_BYTES, TAP_SENT_PACKETS, TAP_RECEIVED_BYTES,
	TAP_RECEIVED_PACKETS, TAP_COUNTS };
struct tap {
	uint32_t	 index;		/* 0: there is none */
	uint64_t	 n[TAP_COUNTS];
};
int		 link_tap(int fd, struct tap *ret);
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

/* ---- ruleset.c ------------------------------------------------------- */

/* Counters: one for each rule that denies in some ruleset, and these. */
#define RS_DENIED	(DENIED_ADDRESS + 1)
#define RS_OPENED	RS_DENIED	/* connections that may begin */
#define RS_NAMES	(RS_DENIED + 1)	/* of UDP to port 53 */
#define RS_COUNTERS	(RS_DENIED + 2)

enum ruleset {
	RULESET_SEALED,		/* drops everything */
	RULESET_NONE,		/* network `none', open */
	RULESET_EGRESS,		/* network `egress', open */
	RULESET_ALLOW,		/* network `allowlist', open */
	RULESET_N
};

/* Hexadecimal SHA-256 of what the kernel lists; see ruleset.c. */
struct ruleset_seen {
	char	 hash[NET_HASHLEN + 1];		/* or "absent" */
	char	 elements[NET_HASHLEN + 1];	/* of sets: addresses */
};

/*
 * Builds every ruleset and its hash, once.  absent: the configuration says
 * that there is no netfilter; the other calls then do nothing.  0, or -1
 * (EMSGSIZE): one does not fit its batch.
 */
int		 ruleset_init(int absent);
/*
 * The host's addresses (copied; in order and disjoint), which RULESET_EGRESS
 * waits for; after sealed_init() and ruleset_init().  1: they are others than
 * before, and each network of that ruleset wants ruleset_update(); 0: the
 * same; -1 (EMSGSIZE): too many, as if lost.
 */
int		 ruleset_hosts(const struct spans *v4, const struct spans *v6);
/* They are not known: RULESET_EGRESS fails with ENODATA from now on. */
void		 ruleset_hosts_lost(void);
/*
 * fd, here and below: NETLINK_NETFILTER of that netns.  0, or -1 with the
 * errno of nl_send(); what is one transaction has changed nothing then.
 *
 * make: alone and anew, whatever was there before, in three transactions,
 * the first of which may let a packet through: where nobody sends yet, or
 * nothing else helps.  renew: the tables anew, beside those of others; in
 * three as well, so that nothing passes between that neither lets pass.  When
 * one of the three fails, what leaves by another way than lo may be dropped.
 * switch: one transaction, which may let a packet through where `egress' or
 * `allowlist' has its part, where tables of `from' are there (ENOENT: they are
 * not).  update: from the host's addresses before the last change to those now
 * (ENOENT, EEXIST: the former are not there; EMSGSIZE: too much for one batch;
 * then each is to be made anew).
 */
int		 ruleset_make(int fd, enum ruleset);
int		 ruleset_renew(int fd, enum ruleset);
int		 ruleset_switch(int fd, enum ruleset from, enum ruleset to);
int		 ruleset_update(int fd);
/* What the kernel lists.  0, or -1 with errno: nl_dump(), or memory. */
int		 ruleset_read(int fd, struct ruleset_seen *ret);
/* 1: that is it, the elements included; 0: it is not, or is not known. */
int		 ruleset_is(const struct ruleset_seen *, enum ruleset);
/*
 * What the counters have, both families together; 0 of what is not there.
 * 0, or -1 with errno, that of nl_dump(), or memory.
 */
int		 ruleset_counted(int fd, uint64_t ret[RS_COUNTERS]);
/* The hash that belongs to it, without elements; static. */
const char	*ruleset_hash(enum ruleset);

/* ---- ruleset_rule.c, ruleset_set.c, ruleset_read.c ------------------- */

#define RS_TABLE	"workbox"
#define RS_GUARD	"guard"
#define RS_FAMILIES	2

enum rs_chain { RS_IN, RS_FORWARD, RS_OUT, RS_PRE, RS_PASS, RS_OURS,
	RS_SEALED, RS_HOST, RS_LIMITED, RS_PROTOCOL, RS_ADDRESS, RS_DENY,
	RS_NCHAINS };
enum rs_set { RS_SEALED4, RS_HOST4, RS_SEALED6, RS_HOST6, RS_NSETS };

extern const uint8_t	rs_families[RS_FAMILIES];
const char	*rs_chain_name(enum rs_chain);		/* static */
const char	*rs_set_name(enum rs_set);		/* static */
const char	*rs_counter_name(unsigned int);		/* static */
/* The counter of this name, or -1. */
int		 rs_counter_find(const char *);

/* Into a batch, into the text, or both: either may be NULL. */
struct canon;
void		 rs_rules(struct nl_batch *, struct canon *, enum ruleset);
void		 rs_guard_rules(struct nl_batch *);
void		 rs_sets(struct nl_batch *, struct canon *);
void		 rs_counters(struct nl_batch *, struct canon *, enum ruleset);
/* Of intervals in order: messages that add or delete; their text. */
void		 rs_elements(struct nl_batch *, enum rs_set,
		    const struct spans *, int add);
void		 rs_elements_text(struct canon *, enum rs_set,
		    const struct spans *);
/* As ruleset_read() and ruleset_counted(). */
int		 ruleset_list(int fd, struct ruleset_seen *ret);
int		 ruleset_counters(int fd, uint64_t ret[RS_COUNTERS]);

/* ---- canon.c --------------------------------------------------------- */

struct nftnl_table;
struct nftnl_chain;
struct nftnl_rule;
struct nftnl_set;
struct nftnl_obj;

/*
 * The canonical text of a ruleset: what matters, one line per object, in the
 * kernel's order, without handles and counters; its SHA-256 is the hash.
 * Independent of the versions of kernel and library.
 */
struct canon	*canon_new(void);		/* never NULL */
void		 canon_table(struct canon *, const struct nftnl_table *);
void		 canon_chain(struct canon *, const struct nftnl_chain *);
void		 canon_rule(struct canon *, const struct nftnl_rule *);
void		 canon_set(struct canon *, const struct nftnl_set *);
void		 canon_object(struct canon *, const struct nftnl_obj *);
/* Of a set: for the second hash. */
void		 canon_elements(struct canon *, const struct nftnl_set *);
const char	*canon_text(const struct canon *);	/* borrowed */
/* Frees it. */
void		 canon_done(struct canon *, struct ruleset_seen *ret);

/* ---- netns.c: the maker ------------------------------------------------- */

/* Sockets that the maker opens inside a netns, as bits of `want'. */
enum netns_sock {
	NS_NFT,			/* NETLINK_NETFILTER, for batches */
	NS_LOG,			/* NETLINK_NETFILTER, for denials */
	NS_ROUTE,		/* NETLINK_ROUTE */
	NS_DIAG,		/* NETLINK_SOCK_DIAG */
	/* of `allowlist', which listen, for proxyd */
	NS_RELAY,		/* TCP, RELAY_ADDR4 */
	NS_NAMES_UDP, NS_NAMES_TCP, /* EGRESS_DNS4 */
	NS_NSOCKS
};
#define NS_PROXIED	(1U << NS_RELAY | 1U << NS_NAMES_UDP |	\
			    1U << NS_NAMES_TCP)

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

struct change;
struct denials;
struct event_base;
struct wait;

/* See the theory of operation in nets.c. */
enum net_state { MAKING, POOLED, SEALED, OPEN, CUT, DYING };
/* See uplink.c. */
enum net_uplink { UPLINK_NONE, UPLINK_ASKED, UPLINK_UP };

struct net {
	LIST_ENTRY(net)		 hash;	/* by id; SEALED, OPEN, CUT */
	TAILQ_ENTRY(net)	 pool;	/* POOLED */
	enum net_state		 state;
	enum ruleset		 kind;	/* what it has when OPEN */
	struct change		*change; /* owned, unless pool.c holds it;
					 * NULL: it is not changing */
	int			 unsealed; /* CUT, but the kernel refused */
	int			 orphan; /* no adopter: gone once sealed */
	int			 named;	/* the kernel will tell of its end */
	unsigned int		 k;
	char			 id[ULID_LEN + 1];
	int			 netns;	/* owned */
	int			 route;	/* owned; NS_ROUTE of `egress' and of
					 * what becomes one, or -1 */
	enum net_uplink		 uplink;
	uint32_t		 uplink_rid; /* UPLINK_ASKED */
	uint64_t		 uplink_ms; /* when uplinkd was asked last */
	int			 uplink_told; /* that there is none, or that
					 * proxyd does not serve it */
	uint64_t		 lost_ms; /* when it went last; 0: never */
	struct proxied		*proxied; /* owned, unless pool.c holds it;
					 * NULL: proxyd does not serve it */
	struct wait		*adopter; /* owned: pool.c; or NULL */
	struct chan		*opener; /* borrowed: netd.c; whose NET_OPEN
					 * waits, or NULL */
	uint32_t		 opener_rid;
	int			 ctl;	/* owned; NS_NFT, or NS_ROUTE where
					 * there is no netfilter */
	struct denials		*denials; /* owned; NULL: `none', or it is
					 * not net_furnish()ed yet */
	struct tap		 tap;	/* as seen last */
	uint64_t		 passed[TAP_COUNTS]; /* by those before it */
};
TAILQ_HEAD(net_pool, net);

/* What netd opened before its fence; owned by netd.c. */
struct nets_fds {
	int		 maker;		/* netns_start() */
	int		 watch;		/* link_watch() */
	int		 home;		/* NETLINK_ROUTE in netd's own netns */
	int		 news, ask;	/* hostaddr_open(); not if absent */
};

extern struct nets {
	int		 home;
	int		 absent;		/* no netfilter */
	unsigned int	 room;			/* boxes at most */
	unsigned int	 boxes;			/* SEALED, OPEN, CUT */
	unsigned int	 sealed;
	/* by kind */
	unsigned int	 pooled[RULESET_N], making[RULESET_N];
	struct net_pool	 pool[RULESET_N];	/* POOLED, oldest first */
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
struct net	*net_new(unsigned int k, enum ruleset kind);
/* A box's from now on: SEALED, OPEN or CUT. */
void		 net_own(struct net *, const char *id, enum net_state);
/* The only way to another state but for net_own() and net_drop(). */
void		 net_move(struct net *, enum net_state);
/*
 * k (0: not known) is of a netns (borrowed) that nobody here takes: it is
 * DYING, and not given again before that has ended.
 */
void		 net_reserve(unsigned int k, int netns);
/* Its kind as messages tell it: enum wb_network. */
uint64_t	 net_network(const struct net *);
/* Whether it has the way out that its kind has. */
int		 net_uplinked(const struct net *);
/* Lets go of it, and of its uplink; it is DYING, or freed. */
void		 net_drop(struct net *);
/*
 * Takes what the maker passed and seals it; the state stays MAKING.  NULL,
 * or the step that failed (and was logged): it is to be dropped then.
 */
const char	*net_prepare(struct net *, struct netns_made *);
/*
 * An `allowlist' that was prepared as a `none' gets what that lacks, of what
 * the maker passed; another needs nothing.  NULL, or the step that failed
 * (and was logged).
 */
const char	*net_furnish(struct net *, struct netns_made *);
/* What the maker passed of a box that lived on is of this kind, if open. */
enum ruleset	 net_found(const struct netns_made *, const char *id);
/*
 * Takes what the maker passed of a box that lived on, makes it what it must
 * be where it is not, and makes it that box's: OPEN (open) or CUT.  NULL, or
 * the step that failed (and was logged): it is sealed and let go of then, or
 * kept until it is sealed; not to be used any more.
 */
const char	*net_adopt(struct net *, struct netns_made *, const char *id,
		    int open);
/*
 * Changes a box's net to its kind's ruleset or to RULESET_SEALED and reads
 * it back; the state is the caller's to move.  NULL, or the step that failed
 * (and was logged): it is sealed and CUT then, whatever it was.
 */
const char	*net_set(struct net *, enum ruleset);
/*
 * The ruleset of an OPEN net becomes that of this kind, which is its own then,
 * and is read back.  NULL, or the step that failed (and was logged): it is
 * what it was, or sealed and CUT.
 */
const char	*net_become(struct net *, enum ruleset kind);
/*
 * Of a box's net that is CUT and will not be asked for again: lets go of it
 * as soon as it is sealed.
 */
void		 net_leave(struct net *);
/* Seals a box's net, which is CUT then. */
void		 net_seal(struct net *, const char *why);
/* Reads it back.  NULL, or the step that failed. */
const char	*net_verify(const struct net *, enum ruleset);
/* Reads what the kernel has.  1: it is `which'; 0: it is not; -1: errno. */
int		 net_whole(const struct net *, enum ruleset,
		    char ret_hash[NET_HASHLEN + 1]);
/*
 * Networks of RULESET_EGRESS that are OPEN.  One that cannot be changed, or
 * is not what it must be and cannot be made so, is sealed and CUT.
 *
 * update: the host's addresses have changed; returns how many networks there
 * are.  seal: nobody knows them.
 * check: goes on behind *k, in a circle, through at most `left' numbers and
 * n networks, reads these back, and returns how many numbers are left.
 */
unsigned int	 nets_update_egress(void);
void		 nets_seal_egress(const char *why);
unsigned int	 nets_check_egress(unsigned int *k, unsigned int left,
		    unsigned int n);

/* ---- change.c: a box's net becomes another ----------------------------- */

/* TAKEN: on its way from HELD to another, within one call. */
enum change_at { CHANGE_HELD, CHANGE_TAKEN, CHANGE_STARTS, CHANGE_ENDS,
	CHANGE_PROXIED, CHANGE_LISTS };

struct change {
	STAILQ_ENTRY(change)	 next;	/* pool.c */
	enum change_at		 at;
	struct net		*net;	/* borrowed; NULL: it is answered */
	struct chan		*chan;	/* borrowed: netd.c */
	uint32_t		 rid;
	enum ruleset		 to;
	uint32_t		 end_rid; /* CHANGE_ENDS: uplink_end() */
	uint32_t		 list_rid; /* CHANGE_LISTS: proxy_list(), 0: not
					 * yet */
	int			 diag;	/* owned; CHANGE_STARTS: NS_DIAG of
					 * what was `allowlist', or -1 */
};

/*
 * Of a net that is OPEN, of another kind or an `allowlist' whose list is
 * another, and not changing; answers rid.
 */
void		 change_start(struct net *, enum ruleset to, struct chan *,
		    uint32_t rid);
/* Sockets that the maker is to open for it. */
unsigned int	 change_wants(const struct change *);
/* The maker has answered; takes the change. */
void		 change_made(struct change *, struct netns_made *);
/* Whether the uplink that a net waits for is one for its change. */
int		 change_starts(const struct net *);
/* It is up (why NULL), or is not: why is what who asked is told. */
void		 change_uplinked(struct net *, const char *why);
/*
 * Whether it waits until proxyd serves it; that it does (why NULL), or not,
 * and by which code who asked is told so.
 */
int		 change_proxies(const struct net *);
void		 change_proxied(struct net *, enum wb_code, const char *why);
/* Whether it waits for this answer of proxyd's; that it has come. */
int		 change_lists(const struct net *, uint32_t rid);
void		 change_listed(struct net *, const char *why);
/* Its uplink, in CHANGE_ENDS, has ended. */
void		 change_ended(struct net *);
/* A net is not OPEN any more: what it was changing to is void. */
void		 change_lost(struct net *);

/* ---- diag.c: connections that lead out --------------------------------- */

/*
 * Ends them all, on a socket NS_DIAG.  What cannot be ended is logged: the
 * ruleset, which is that of `none' by now, ends it.
 */
void		 diag_end(int fd);
/*
 * One message of a dump, which is whole: nl_ok().  1: a socket of that family
 * (AF_INET, AF_INET6) whose other end is not the box's; 0: it is none.
 */
int		 diag_take(const struct nlmsghdr *, int family,
		    struct inet_diag_sockid *ret);

/* ---- nflog.c: packets that were denied ------------------------------- */

/* Where one was to go. */
struct denial {
	uint8_t		 addr[16];	/* network order; beyond len 0 */
	uint8_t		 len;		/* 4, 16 */
	uint8_t		 proto;		/* IANA's number */
	uint8_t		 rule;		/* enum denied_rule */
	uint16_t	 port;		/* 0: it has none, or is not known */
};

/* Has EGRESS_LOG_GROUP come by this socket.  0, or -1: errno of nl_send(). */
int		 nflog_bind(int fd);
/* One message, which is whole: nl_ok().  1: *ret is filled; 0: it is none. */
int		 nflog_take(const struct nlmsghdr *, struct denial *ret);
/*
 * Reads at most `turn' packets, and calls cb for what they tell.  0, or -1:
 * errno of recvmsg(2).
 */
int		 nflog_read(int fd, unsigned int turn,
		    void (*cb)(const struct denial *, void *), void *arg);

/* ---- denials.c: what is denied, told to apid ------------------------- */

void		 denials_init(struct event_base *);
/*
 * Takes NS_LOG of a net that has its ctl and lives as long.  One that a netd
 * before this one still holds is had later.  NULL: errno of nflog_bind().
 */
struct denials	*denials_new(const struct net *, int log);
/* All below take NULL, for a network that has none. */
void		 denials_free(struct denials *);
/* It is of another kind from now on: nothing was denied yet. */
void		 denials_restart(struct denials *);
/* What proxyd has denied in it. */
void		 denials_pass(struct denials *,
		    const struct msg_proxy_denied *);
/* Reads the counters: before tables go, so that none is lost. */
void		 denials_count(struct denials *);
/* They went, and counters begin at 0. */
void		 denials_anew(struct denials *);
/*
 * What they had since the network is of this kind, and, as far as this process
 * was told, what proxyd denied by the same rules.
 */
void		 denials_total(struct denials *, uint64_t ret[RS_COUNTERS]);

/* ---- follow.c: the host's addresses into the networks ---------------- */

/*
 * Reads them and follows them from now on; once, after ruleset_init().  The
 * descriptors are hostaddr_open()'s and borrowed.
 */
void		 follow_init(struct event_base *, int news, int ask);

/* ---- pool.c: asking the maker ---------------------------------------- */

void		 pool_init(struct event_base *, int maker_fd,
		    unsigned int egress);
/* The daemons serve: the pool may be filled. */
void		 pool_go(void);
/* They end: nothing of the pool is to go on. */
void		 pool_stop(void);
/* Answers NET_MAKE, now or when one was made. */
void		 pool_give(struct chan *, uint32_t rid, const char *id,
		    enum ruleset kind);
/*
 * Answers NET_ADOPT when the maker has looked at it, and uplinkd has said
 * what became of its uplink.  Takes netns.
 */
void		 pool_adopt(struct chan *, uint32_t rid, const char *id,
		    enum ruleset kind, int open, int netns);
/* One that was refused: its number is not given again.  Takes netns. */
void		 pool_note(int netns);
/* change_made() follows, unless it is answered before it could be asked. */
void		 pool_change(struct change *);
/* proxy_made() follows; takes it until then. */
void		 pool_proxy(struct proxied *);
/* proxyd serves it (why NULL), or (code) not, or not yet; may drop it. */
void		 pool_proxied(struct net *, enum wb_code, const char *why);
/* Its uplink is up (why NULL), or is not, or not yet; may drop it. */
void		 pool_uplinked(struct net *, const char *why);
/* What who asked for it is told, until the next call. */
const char	*pool_no_way_out(const char *why);
#define UPLINK_UNASKED	"uplinkd cannot be asked for it"
/* It goes: who adopts it is told. */
void		 pool_lost(struct net *);
/* Requests that are not answered yet. */
unsigned int	 pool_waiting(void);
/* A create made a step, or a net went: see to the pool. */
void		 pool_stir(int step);
/* The host lacks memory: what is prepared of `egress' ends. */
void		 pool_drain(void);

/* ---- pressure.c: the host lacks memory -------------------------------- */

/*
 * Before the fence: the descriptor of a trigger, urgent (EPOLLPRI) when there
 * is pressure.  -1: errno, for this kernel has no such thing, or not for us.
 */
int		 pressure_open(void);
/* Before the fence: an epoll instance, to be read when fd is urgent. */
int		 pressure_watch(int fd);
/* Calls cb each time that it is told so; ep: pressure_watch(), -1: never. */
void		 pressure_init(struct event_base *, int ep, void (*cb)(void));
/* Milliseconds until it has been away for long enough; 0: there is none. */
uint64_t	 pressure_rest(void);

/* ---- uplink.c: ways out, by uplinkd ----------------------------------- */

void		 uplink_init(struct event_base *, struct chan *);
/*
 * Asks for one; pool_uplinked() follows, in some seconds at the latest, unless
 * it cannot be asked for, and is not UPLINK_ASKED.  keep: one that outlived
 * the daemons before is as good.
 */
void		 uplink_start(struct net *, int keep);
/* Ends what it has or was asked for; the request's number, or 0: nothing. */
uint32_t	 uplink_end(struct net *);
/* A message of uplinkd's. */
void		 uplink_on(const struct msg *);

/* ---- proxy.c: names, by proxyd ------------------------------------------ */

#define PROXY_SOCKS	3		/* NS_PROXIED, as PROXY_BOX has them */

/* See the theory of operation in proxy.c. */
enum proxied_at { PROXIED_WAITS, PROXIED_HELD, PROXIED_ASKED, PROXIED_UP };

struct proxied {
	TAILQ_ENTRY(proxied)	 link;	/* WAITS, ASKED: proxy.c */
	STAILQ_ENTRY(proxied)	 next;	/* HELD: pool.c */
	enum proxied_at		 at;
	struct net		*net;	/* borrowed; NULL: HELD, and let go */
	uint64_t		 since_ms; /* when it was wanted */
	uint64_t		 from_ms; /* WAITS: at least until then */
	uint32_t		 rid[PROXY_SOCKS]; /* ASKED; 0: answered */
	unsigned int		 left;	/* ASKED: OKs to come */
	char			 taken[80]; /* by whom its port is, or "" */
};

/* c NULL: there is no proxyd, and no `allowlist'. */
void		 proxy_init(struct event_base *, struct chan *);
int		 proxy_there(void);
/* Unless it has been; pool_proxied() follows, in some seconds at the latest. */
void		 proxy_start(struct net *);
/* Ends what it has or was to have, and does not wait for that. */
void		 proxy_end(struct net *);
/* Whether it is served. */
int		 proxy_up(const struct net *);
/* The maker has answered, or was not asked as its net has gone; takes it. */
void		 proxy_made(struct proxied *, struct netns_made *);
/* Of what is served: the list is another.  The number, or 0: too many are. */
uint32_t	 proxy_list(const struct net *);
/* Passes it on, and the answer back. */
void		 proxy_names(struct chan *, uint32_t rid,
		    const struct msg_net_names *);
/* A message of proxyd's; its channel's end. */
void		 proxy_on(const struct msg *);
void		 proxy_gone(void);

/* ---- requests.c ------------------------------------------------------ */

/* Handlers; each sends exactly one answer, now or later, on this channel. */
void		 netd_on_net_make(struct chan *, const struct msg *);
void		 netd_on_net_open(struct chan *, const struct msg *);
void		 netd_on_net_cut(struct chan *, const struct msg *);
void		 netd_on_net_free(struct chan *, const struct msg *);
void		 netd_on_net_adopt(struct chan *, struct msg *);
void		 netd_on_net_change(struct chan *, const struct msg *);
void		 netd_on_net_names(struct chan *, const struct msg *);
void		 netd_on_net_status(struct chan *, const struct msg *);
/* Of a net with an opener: proxyd serves it (why NULL), or not. */
void		 netd_opens(struct net *, const char *why);
/* It was cut or freed. */
void		 netd_open_lost(struct net *);

/* ---- netd.c ---------------------------------------------------------- */

/* To apid, which is not waited for.  0, or -1: it has enough of it. */
int		 netd_tell(unsigned int type, const void *body);
/* After each chan_send(): its result; fatal when not even queued. */
void		 netd_sent(struct chan *, int result);

#endif
