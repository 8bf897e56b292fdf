/*
 * http_int: what http.c, http_io.c, http_req.c and http_check.c share.
 * Nobody else includes this.
 */
#ifndef APID_HTTP_INT_H
#define APID_HTTP_INT_H

#include <sys/queue.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include "http.h"
#include "ulid.h"

struct evbuffer;
struct event;

#define HTTP_IN_MAX	(2UL * HTTP_HEAD_MAX)	/* bytes read, not yet used */
#define HTTP_QUERY_MAX	16			/* parameters of a request */
#define HTTP_BODIES_MAX	(64UL * 1024 * 1024)	/* bytes of all bodies */

/* Where a connection stands; the theory of operation is in http.c. */
enum http_phase {
	HTTP_HELLO, HTTP_IDLE, HTTP_HEAD, HTTP_BODY, HTTP_BUSY, HTTP_FLUSH,
	HTTP_LINGER, HTTP_NPHASES
};

/* Of records that are read: where it is in one, and in a message. */
struct http_watch {
	uint8_t		 rec[5], msg[4];	/* the heads, as they come */
	unsigned int	 nrec, nmsg;		/* bytes of them */
	size_t		 rec_left, msg_left;
	int		 off;			/* nothing more to be seen */
	int		 bad;			/* too long */
};

struct http_conn {
	TAILQ_ENTRY(http_conn)	 entry;		/* in server->conns[phase] */
	struct http_server	*server;	/* borrowed */
	int			 fd;		/* owned */
	struct ssl_st		*ssl;		/* owned; NULL: plain */
	int			 io_waits;	/* TLS wants to write first */
	int			 io_later;	/* not in this slice */
	struct http_watch	 watch;		/* of its first message */
	enum http_listener	 kind;
	struct sockaddr_storage	 addr;		/* of the peer */
	unsigned int		 peer_uid;	/* HTTP_UNIX */
	enum http_phase		 phase;
	uint64_t		 turn;		/* when it came there */
	struct event		*ev_read;	/* owned */
	struct event		*ev_write;	/* owned */
	struct event		*ev_timer;	/* owned */
	int			 reading, writing;	/* are added */
	uint64_t		 due, armed;	/* mono ms; 0: none */
	char			*in;		/* owned, or NULL */
	size_t			 in_len, in_cap;
	struct http_parse	 parse;
	struct evbuffer		*out;		/* owned */
	size_t			 moved;		/* bytes since the timer */
	uint64_t		 stalled_ms;	/* out stands still since */
	int			 high;		/* out was above the mark */
	int			 eof;		/* the peer sends no more */
	int			 close;		/* after out is sent */
	int			 dead;		/* to be freed when left */
	int			 told;		/* of stopping */
	int			 known;		/* showed a key, or UNIX */
	unsigned int		 busy;		/* nested entries */
	struct http_req		*req;		/* owned until BUSY */
};
TAILQ_HEAD(http_conns, http_conn);

struct http_prefix { uint8_t addr[16]; unsigned int bits; };

struct http_server {
	struct http_conf	 conf;
	struct http_conns	 conns[HTTP_NPHASES];
	uint64_t		 turn;		/* counts changes of phase */
	struct ssl_ctx_st	*tls;		/* owned; NULL: plain TCP */
	uint64_t		 slice_at, slice_us;	/* of handshakes */
	unsigned int		 nconns, nreqs;
	unsigned int		 nhello;	/* of nconns */
	unsigned int		 nlasting;	/* of nreqs */
	size_t			 bodies;	/* bytes of all bodies */
	struct http_accept	*accepts;	/* owned list */
	struct event		*ev_resume;	/* owned */
	struct event		*ev_slice;	/* owned: io_later ends */
	struct event		*ev_stop;	/* owned */
	int			 paused;	/* accepts nothing now */
	int			 stopping;
	void			(*done)(void *);
	void			*done_arg;	/* borrowed */
	struct http_prefix	*trusted;	/* owned */
	size_t			 ntrusted;
	int			 trust_unix;
	time_t			 date_sec;
	char			 date[40];	/* of date_sec */
};

struct http_query { const char *name; char *value; };	/* both borrowed */

struct http_req {
	struct http_conn	*conn;		/* borrowed; NULL: gone */
	struct http_server	*server;	/* borrowed */
	const struct route	*route;		/* borrowed; NULL: early */
	struct http_parse	 parse;
	char			*head;		/* owned; strings end in NUL */
	char			 id[ULID_LEN + 1];
	char			 tenant[64], actor[64];
	char			 peer[64];
	struct route_params	 params;
	char			 param[ROUTE_PARAMS][64];
	struct http_query	 query[HTTP_QUERY_MAX];
	size_t			 nquery;
	uint8_t			*body;		/* owned */
	size_t			 body_len, body_cap;
	json_t			*json;		/* owned */
	char			*headers;	/* owned: added ones */
	int			 handled;	/* the handler has it */
	int			 lasting;	/* is counted so */
	int			 streaming, chunked;
	int			 mute;		/* HEAD: no body */
	struct event		*ev_gone;	/* owned */
	unsigned int		 gone;		/* reasons not yet told */
	unsigned int		 gone_client;	/* was told */
	void			(*on_gone)(struct http_req *, enum http_gone,
				    void *);
	void			*gone_arg;
	void			(*on_drain)(struct http_req *, void *);
	void			*drain_arg;
	struct event		*ev_timer;	/* owned */
	void			(*on_timer)(struct http_req *, void *);
	void			*timer_arg;
	void			*data;
	void			(*on_done)(void *);
	void			*done_arg;
};

/* http.c: each use of a connection from outside stands between these. */
void	http_conn_enter(struct http_conn *);
void	http_conn_leave(struct http_conn *);
/* Sends what can be sent. */
void	http_conn_flush(struct http_conn *);
/*
 * Sends pieces, or queues what the socket does not take: what goes at once
 * is never copied.  At most HTTP_PARTS + 2 pieces; the array is changed.
 */
void	http_conn_put(struct http_conn *, struct iovec *, size_t n);
/* Whether no request is read after this one, whose head was parsed. */
int	http_conn_ends(const struct http_conn *);
/* The answer is complete; close: no request after it. */
void	http_conn_answered(struct http_conn *, int close);
/* Cut now; the request, if any, is told. */
void	http_conn_kill(struct http_conn *);
/* Nobody that is known, while the table fills: one answer, no more. */
int	http_conn_crowds(const struct http_conn *);
void	http_conn_continue(struct http_conn *);	/* 100 */

/* http_io.c */
void	http_io_new(struct http_conn *);	/* TLS, by server->tls */
void	http_io_free(struct http_conn *);	/* plain from here on */
/* As recv(2).  0 is the peer's end, also where it says so in TLS. */
ssize_t	http_io_recv(struct http_conn *, void *, size_t);
/* Bytes that it has read ahead: no event tells of them. */
size_t	http_io_held(const struct http_conn *);
/* As much of `out' as goes; 0, or -1: the connection is of no use. */
int	http_io_send(struct http_conn *);
/* The same of pieces, while `out' is empty; what went is cut off them. */
int	http_io_put(struct http_conn *, struct iovec *, size_t n);
/* Says that nothing follows: 1; 0: later, io_waits; -1: nobody is there. */
int	http_io_end(struct http_conn *);
/* Goes on with the handshake. */
enum http_hello {
	HTTP_HELLO_DONE, HTTP_HELLO_MORE, HTTP_HELLO_PLAIN, HTTP_HELLO_BAD
};
enum http_hello	http_io_hello(struct http_conn *);
/* The slice may be over: handshakes that wait go on.  arg: the server. */
void	http_io_slice(int, short, void *arg);

/* http_req.c */
/* Takes the head out of conn->in.  Never NULL. */
struct http_req	*http_req_new(struct http_conn *);
void		 http_req_free(struct http_req *);
void		 http_req_gone(struct http_req *, enum http_gone);
/* A whole answer to what never became a request. */
void		 http_refuse(struct http_conn *, int status,
		    const char *why);

/* http_check.c: 0, or -1 after a final call. */
int	http_check_head(struct http_req *);
int	http_check_more(struct http_req *, const char *, size_t);
int	http_check_body(struct http_req *);
/* The `trusted-proxy' prefixes; fatal on nonsense, which serve refuses. */
void	http_check_trusted(struct http_server *);
void	http_check_peer(struct http_req *);	/* fills req->peer */
/* 0, or -1: not whole escapes, not UTF-8, or control characters. */
int	http_decode(char *s, int plus);

#endif
