/*
 * proxyd: the one way out of a box of `allowlist'.  See proxyd(8); the
 * comment at the top of proxyd.c tells how the files fit together.
 */
#ifndef PROXYD_PROXYD_H
#define PROXYD_PROXYD_H

#include <sys/queue.h>
#include <sys/socket.h>

#include <stddef.h>
#include <stdint.h>

#include "allow.h"
#include "chan.h"
#include "conf.h"
#include "denied.h"
#include "prefix.h"
#include "ulid.h"

struct event_base;

/* ---- dns.c: messages of the name service (RFC 1035, 6891) ---------- */

#define DNS_MAX		512		/* bytes of any answer */
#define DNS_QUERY_MAX	512		/* bytes of any query that is read */
#define DNS_TTL		5		/* seconds of an answer */

enum dns_rcode { DNS_NOERROR = 0, DNS_FORMERR = 1, DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3, DNS_NOTIMP = 4, DNS_BADVERS = 16 };
#define DNS_T_A		1
#define DNS_T_AAAA	28

struct dns_query {
	uint16_t	 id;
	int		 rd;		/* recursion desired: echoed */
	int		 edns;		/* it has an OPT record */
	int		 opcode;	/* 0, but beside -1 */
	uint16_t	 type, class;	/* class: always IN */
	char		 name[ALLOW_NAME]; /* allow_name(), or what can be
					 * shown of one that is none */
	int		 is_name;	/* allow_name() took it */
	const uint8_t	*question;	/* borrowed; as it came */
	size_t		 nquestion;
};

/*
 * n bytes are a query.  1: *ret is filled; 0: nothing is to be answered (it is
 * no query, or too short to say who asks); -1: *ret has what an answer without
 * the question needs, and ret_rcode says which.
 */
int		 dns_parse(const uint8_t *, size_t n, struct dns_query *ret,
		    enum dns_rcode *ret_rcode);
/* addr NULL: no record.  The length. */
size_t		 dns_answer(const struct dns_query *, enum dns_rcode,
		    const uint8_t addr[4], uint8_t ret[DNS_MAX]);

/* ---- names.c: synthetic addresses ---------------------------------- */

#define NAMES_LIVE	4096		/* of a box */
#define NAMES_LAST	65535		/* 198.18.0.0/16 less the first */
#define NAMES_NET	0xc6120000U	/* 198.18.0.0, host order */

/*
 * A name that has an address.  number: of the address in NAMES_NET; never
 * another name's.  It lives while it is among the NAMES_LIVE that were used
 * last, or has connections.
 */
struct named {
	TAILQ_ENTRY(named)	 used;	/* least recently first */
	uint16_t		 number;
	unsigned int		 open;	/* connections now: relay.c's */
	uint64_t		 connections, sent_bytes, received_bytes;
	char			 name[];
};

struct names;

struct names	*names_new(void);
void		 names_free(struct names *);	/* none has connections */
/*
 * Numbers that stored has given: only these are ever given to names, each
 * once.  They rise: what is not above all that came before is left out.
 */
void		 names_room(struct names *, unsigned int first,
		    unsigned int count);
unsigned int	 names_left(const struct names *);
/* The one that there is, now used, or NULL. */
struct named	*names_find(struct names *, const char *name);
/*
 * A new one, now used; the least recently used of too many is forgotten.
 * NULL: no number is left (names_left() is 0), or NAMES_LIVE have connections.
 */
struct named	*names_give(struct names *, const char *name);
/* Whose address (host order) this is, now used, or NULL. */
struct named	*names_at(struct names *, uint32_t addr);
/* The next in the order of names behind this one ("": the first), or NULL. */
struct named	*names_next(struct names *, const char *name);
uint32_t	 named_addr(const struct named *);	/* host order */

/* ---- hello.c: the first bytes of TLS ------------------------------- */

#define HELLO_MAX	16384		/* bytes in which it must be told */

enum hello {
	HELLO_MORE,			/* more bytes are needed */
	HELLO_NAMED,			/* *ret_name: as allow_name() */
	HELLO_NAMELESS,			/* TLS without a name */
	HELLO_NOT,			/* no TLS */
	HELLO_BAD			/* broken, or a name that is none */
};

/*
 * n bytes, all from the first on, that a client has sent.  ret_name is set
 * with HELLO_NAMED alone.  Of Encrypted Client Hello the outer name counts.
 */
enum hello	 hello_read(const uint8_t *, size_t n,
		    char ret_name[ALLOW_NAME]);

/* ---- head.c: plain HTTP, request by request ------------------------ */

#define HEAD_MAX	16384		/* bytes of one request's head */

/* Where in the stream of requests it is.  Zero: at the begin. */
struct head {
	int		 at;		/* head.c's */
	uint64_t	 body;		/* bytes to come, of a body or chunk */
	int		 upgrade;	/* asked for: head_answer() */
	unsigned int	 requests;
};

enum head_is {
	HEAD_GO,			/* pass *ret_pass bytes, come again */
	HEAD_HOST,			/* for another host: *ret_host */
	HEAD_BAD			/* no HTTP/1 that is safe to judge */
};

/*
 * n bytes from a client that have not passed yet; name and port: what each
 * request must be for.  *ret_pass: how many may pass now; 0: more are needed
 * (HEAD_BAD follows at HEAD_MAX), or, while upgrade is set, nothing passes
 * until head_answer() has decided.  ret_host: what can be shown of the other
 * host, "" for none.
 */
enum head_is	 head_read(struct head *, const uint8_t *, size_t n,
		    const char *name, unsigned int port, size_t *ret_pass,
		    char ret_host[ALLOW_NAME]);
/*
 * While upgrade is set: the first n bytes that the server has ever sent on this
 * connection (head_read() sets it for a first request alone).  1: it is
 * decided: by 101 to WebSocket all passes from now on, by another status
 * requests go on; 0: more bytes are needed: 12 in all, or, while what came is
 * an interim answer (100, 103), those of the next answer as well; -1: it may
 * not be (101 to what cannot be judged, as h2c).
 */
int		 head_answer(struct head *, const uint8_t *, size_t n);

/* ---- resolve.c: names to addresses that may be connected to -------- */

#define RESOLVE_MAX	8		/* addresses of one answer */

struct resolved {
	int		 n;		/* 0: none */
	int		 v6[RESOLVE_MAX];
	uint8_t		 addr[RESOLVE_MAX][16];	/* network order */
	/* n is 0: why */
	enum { RESOLVED_OK, RESOLVED_NONE, RESOLVED_LATE, RESOLVED_SEALED,
	    RESOLVED_HOST } why;
	uint8_t		 refused[16];	/* RESOLVED_SEALED, RESOLVED_HOST: */
	int		 refused_v6;	/* the first of them */
};

struct lookup;

/* Before the fence: servers, ids, the host's addresses. */
void		 resolve_open(const struct conf *);
void		 resolve_init(struct event_base *);
/*
 * Calls cb once, later, with what lives for the call; unless it is cancelled.
 * Never NULL.
 */
struct lookup	*resolve(const char *name,
		    void (*cb)(void *, const struct resolved *), void *arg);
/* The same of the upstream proxy's: whatever its addresses are. */
struct lookup	*resolve_any(const char *name,
		    void (*cb)(void *, const struct resolved *), void *arg);
void		 resolve_cancel(struct lookup *);

/* ---- looks.c: lookups of one box ----------------------------------- */

struct looks;
struct look;

struct looks	*looks_new(void);
/* All were cancelled, or are over. */
void		 looks_free(struct looks *);
/* As resolve(), or, any: resolve_any(); in its turn. */
struct look	*look_up(struct looks *, const char *name, int any,
		    void (*cb)(void *, const struct resolved *), void *arg);
void		 look_cancel(struct look *);

/* ---- box.c: boxes, and what netd says of them ---------------------- */

enum box_socket { BOX_RELAY, BOX_UDP, BOX_TCP, BOX_NSOCKETS };

struct box {
	LIST_ENTRY(box)	 hash;
	char		 id[ULID_LEN + 1];
	struct allow	*allow;		/* owned; NULL: not read yet */
	struct names	*names;		/* owned */
	struct ns	*ns;		/* owned: ns.c; NULL: not served */
	struct relay	*relay;		/* owned: relay.c; NULL: not served */
};

void		 box_init(struct event_base *);
/* A message of netd's. */
void		 box_on_netd(struct chan *, struct msg *);
/*
 * The name's address, as number and by cb, now or later: NULL: none is left,
 * or stored has given none in time.  ns.c asks, and bounds how many wait.
 */
void		 box_name(struct box *, const char *name,
		    void (*cb)(void *, struct named *), void *arg);
/* Whether none is left: all were given, or all that live have connections. */
int		 box_used_up(const struct box *);
/* What the box was refused, told to netd; addr may be NULL. */
void		 box_denied(struct box *, enum denied_rule, const char *name,
		    const uint8_t *addr, int v6, int proto,
		    unsigned int port);

/* ---- ns.c: the name service ---------------------------------------- */

/* Takes both sockets, which do not block. */
struct ns	*ns_new(struct event_base *, struct box *, int udp, int tcp);
void		 ns_free(struct ns *);			/* NULL too */

/* ---- pump.c: bytes from one socket to another ---------------------- */

/* One direction of a connection. */
struct half {
	int		 from, to;	/* borrowed; do not block */
	struct pipe	*pipe;		/* lent, while bytes are in it */
	size_t		 in_pipe;
	int		 eof;		/* of `from', has been told to `to' */
};

enum moved {
	MOVED_ALL,			/* nothing to move now, or no room */
	MOVED_SOME,			/* there may be more: come again */
	MOVED_END,			/* all of it, up to the end */
	MOVED_BROKEN			/* one of the two is */
};

/*
 * Moves at most n bytes without keeping any but those in a pipe; counts them.
 * lent: pipes that who this is for has, and may have a few of.
 */
enum moved	 half_move(struct half *, size_t n, unsigned int *lent,
		    uint64_t *ret_count);
/* As half_move(), of the next n bytes alone, without a pipe; no end. */
enum moved	 half_copy(struct half *, size_t n, size_t *ret_n);
/* Gives the pipe back, whatever is in it. */
void		 half_end(struct half *, unsigned int *lent);

/* ---- upstream.c: the proxy of a site --------------------------------- */

#define UPSTREAM_MAX	8192		/* bytes of a head, either way */

void		 upstream_init(const struct conf *);
/*
 * Its name, or NULL: there is none; *ret_at (static) is NULL where it has to
 * be looked up.
 */
const char	*upstream_host(unsigned int *ret_port,
		    const struct resolved **ret_at);
/* What it is asked for; the length. */
size_t		 upstream_ask(const char *name, unsigned int port,
		    char ret[UPSTREAM_MAX]);
/*
 * The first n bytes that it answers.  1: it does, and what stands behind
 * *ret_head bytes is the other's; 0: more are needed; -1: it does not.
 */
int		 upstream_told(const uint8_t *, size_t n, size_t *ret_head);

/* ---- dial.c: connecting to a name ---------------------------------- */

struct dial;

/*
 * Looks up, tries what may be connected to (RFC 8305), and calls cb once,
 * later: fd is the caller's, or -1 and one of the others says why: by whose
 * address it was refused (its n is 0), or in words.  Never NULL.
 */
struct dial	*dial_name(struct event_base *, struct looks *,
		    const char *name, unsigned int port, void (*cb)(void *,
		    int fd, const struct resolved *refused, const char *why),
		    void *arg);
void		 dial_cancel(struct dial *);

/* ---- relay.c: connections of boxes --------------------------------- */

/* most: connections of a box; room: of all. */
void		 relay_init(struct event_base *, unsigned int most,
		    unsigned int room);
/* Takes the socket, which does not block. */
struct relay	*relay_new(struct box *, int listener);
void		 relay_free(struct relay *);		/* with connections */
/* Ends connections that the list of its box does not allow. */
void		 relay_judge(struct relay *);

/* ---- proxyd.c ------------------------------------------------------ */

/* As peer_ask() of apid: cb once, NULL when stored does not answer. */
void		 proxyd_ask_stored(unsigned int type, const void *body,
		    void (*cb)(void *, const struct msg *), void *arg);
/* After each chan_send(): its result; fatal when not even queued. */
void		 proxyd_sent(struct chan *, int result);
void		 proxyd_tell_netd(unsigned int type, const void *body);

#endif
