/*
 * http: the server side of HTTP/1.1 connections (RFC 9110, RFC 9112), and
 * what a handler of the API may do with one request.
 *
 * Life of a request.  The server reads a head, checks Host and Origin, finds
 * the route (routes.def), asks conf.authorize, reads the body up to the
 * route's cap, holds path, query and body against the route's schemas, and
 * then calls the route's handler `void api_<name>(struct http_req *)' once.
 * The handler, or whatever it set going, makes EXACTLY ONE final call, now
 * or later: http_reply_*(), http_fail(), http_end() or http_abort().  Until
 * that call the request is valid, also when its client has gone (everything
 * written is then thrown away); after it the pointer is dead, and so are the
 * callbacks and the timer, which are never called again.
 *
 * One request at a time per connection: what a client pipelines waits in the
 * kernel.  All of this runs in one thread.  Nothing here blocks.
 */
#ifndef APID_HTTP_H
#define APID_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "proto.h"
#include "route.h"

#define HTTP_QUEUE_MAX	(512UL * 1024)	/* bytes held per stream */
#define HTTP_QUEUE_LOW	(128UL * 1024)	/* the drain callback's mark */

struct event_base;
struct http_req;
struct http_server;
struct ssl_ctx_st;			/* openssl/types.h */

enum http_listener { HTTP_TCP = 0, HTTP_UNIX = 1 };

struct http_conf {
	struct event_base	*base;		/* borrowed */
	struct wire_list	 allowed_host;	/* borrowed; conf.def */
	struct wire_list	 trusted_proxy;	/* borrowed; conf.def */
	unsigned int		 max_conns;	/* 0: 1,024 */
	unsigned int		 head_ms;	/* 0: 10,000; handshake */
	unsigned int		 body_ms;	/* 0: 10,000, without progress */
	unsigned int		 idle_ms;	/* 0: 75,000, between requests */
	unsigned int		 stop_ms;	/* 0: 10,000, graceful stop */
	/*
	 * Whether the caller may use this route: http_route(), http_header().
	 * 0 after http_set_caller(); -1 after a final call (401, 403).  Not
	 * asked for SCOPE_PUBLIC.  Called before any of the body is read.
	 */
	int			(*authorize)(struct http_req *, void *arg);
	void			*arg;		/* borrowed: http_arg() */
};

/* ---- the server ----------------------------------------------------- */

/* Copies conf.  Fatal without memory, as are all functions here. */
struct http_server	*http_server_new(const struct http_conf *);
/*
 * Takes a listening socket (made non-blocking).  0, or -1 with errno; the
 * descriptor is taken in both cases.
 */
int	http_server_listen(struct http_server *, int fd, enum http_listener);
/* Other hosts and proxies than at the start; borrowed, as those were. */
void	http_server_hosts(struct http_server *, const struct wire_list *allowed,
	    const struct wire_list *trusted);
/*
 * From now on connections of HTTP_TCP begin with TLS by this context, which
 * is taken; those that are there keep theirs.
 */
void	http_server_tls(struct http_server *, struct ssl_ctx_st *);
/*
 * Stops accepting (the sockets stay open in privd), closes what is idle,
 * calls the gone callback of each open request with HTTP_GONE_STOPPING, lets
 * requests be answered, closes what is left after conf.stop_ms, and calls
 * done once, never from within this call.
 */
void	http_server_stop(struct http_server *, void (*done)(void *), void *);
/* Frees a server that has stopped; NULL is ignored. */
void	http_server_free(struct http_server *);
/* Open connections, requests being handled: for healthz and tests. */
void	http_server_count(const struct http_server *, unsigned int *ret_conns,
	    unsigned int *ret_reqs);

/* ---- what was asked: borrowed, valid until the final call ------------ */

void		*http_arg(const struct http_req *);	/* conf.arg */
const char	*http_id(const struct http_req *);	/* ULID, X-Request-Id */
const char	*http_method(const struct http_req *);	/* "GET" */
/* The path as sent, without the query: printable ASCII. */
const char	*http_path(const struct http_req *);
const struct route *http_route(const struct http_req *);
/* "127.0.0.1:4711", "[::1]:4711" or "unix:uid=0"; X-Forwarded-For counts
 * behind a trusted proxy. */
const char	*http_peer(const struct http_req *);
/* A header by its name, any case; NULL: absent.  Repeated headers that may
 * not be lists (Authorization, Idempotency-Key ...) were refused before. */
const char	*http_header(const struct http_req *, const char *name);
/* A member of the path template, decoded ("id" of {id}); never NULL. */
const char	*http_param(const struct http_req *, const char *name);
/* A query parameter, decoded, in the route's table; NULL: absent. */
const char	*http_query(const struct http_req *, const char *name);
/* One that the table says is a number or boolean: in its bounds, or dflt. */
uint64_t	 http_query_u64(const struct http_req *, const char *name,
		    uint64_t dflt);
/* The i-th value of one that may be repeated (label), or NULL. */
const char	*http_query_nth(const struct http_req *, const char *name,
		    unsigned int i);
/* Whether Accept names the media type, and not with a weight of 0. */
int		 http_accepts(const struct http_req *, const char *type);
/* The body, parsed and valid by the route's schema; NULL: has none. */
const json_t	*http_json(const struct http_req *);
/* The body of a route with raw bytes. */
const uint8_t	*http_body(const struct http_req *, size_t *ret_len);

/* Who asks; set by conf.authorize, copied.  "" before. */
void		 http_set_caller(struct http_req *, const char *tenant,
		    const char *actor);
const char	*http_tenant(const struct http_req *);
const char	*http_actor(const struct http_req *);

/* ---- a request that is answered later -------------------------------- */

enum http_gone {
	HTTP_GONE_CLIENT,	/* closed its side, or the connection broke */
	HTTP_GONE_STOPPING	/* http_server_stop(): answer now */
};

/*
 * fn is called at most once per reason, from the loop (never from within
 * another call), before the final call; also when the reason came before fn
 * was set.  A client that only closed its writing side still gets the
 * answer.  NULL takes it back.
 */
void	http_on_gone(struct http_req *,
	    void (*fn)(struct http_req *, enum http_gone, void *), void *arg);
/* Calls fn once after ms, unless set anew or stopped (fn NULL). */
void	http_timer(struct http_req *, uint64_t ms,
	    void (*fn)(struct http_req *, void *), void *arg);
/* Calls fn once, when the request is freed: after the final call. */
void	http_on_done(struct http_req *, void (*fn)(void *), void *arg);
/* A handler's own pointer. */
void	http_set_data(struct http_req *, void *);
void	*http_data(const struct http_req *);

/* ---- whole answers (final) -------------------------------------------- */

/* A header of the answer, before it; both copied.  Printable ASCII. */
void	http_add_header(struct http_req *, const char *name,
	    const char *value);
/* Takes the reference.  application/json. */
void	http_reply_json(struct http_req *, int status, json_t *);
/* Copied.  type: a literal. */
void	http_reply_bytes(struct http_req *, int status, const char *type,
	    const void *, size_t len);
void	http_reply_empty(struct http_req *);		/* 204 */
/*
 * An RFC 9457 problem document: the code's name and status, `field' (NULL:
 * none; "limits.pids") and the sentence that says what was expected.
 */
void	http_fail(struct http_req *, enum wb_code, const char *field,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same with the members of an object (taken) beside the usual ones:
 * bad-offset's {"expected"}, create-failed's {"sandboxId", "launchLog"}. */
void	http_fail_with(struct http_req *, enum wb_code, json_t *members,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- streamed answers -------------------------------------------------- */

/*
 * Sends the head: chunked, X-Accel-Buffering: no (to HTTP/1.0: until the
 * connection closes).  type: a literal, "application/x-ndjson".
 */
void	http_stream(struct http_req *, int status, const char *type);
/*
 * Takes all of it or nothing.  1: taken; 0: not taken, HTTP_QUEUE_MAX would
 * be passed (a single write of up to that always fits an empty queue): wait
 * for the drain callback; -1: nobody reads any more, make the final call.
 */
int	http_write(struct http_req *, const void *, size_t len);
/* The same of up to HTTP_PARTS pieces; none is kept. */
#define HTTP_PARTS	4
struct iovec;
int	http_writev(struct http_req *, const struct iovec *, size_t n);
/* Object and newline (the reference is taken in every case); as above. */
int	http_write_json(struct http_req *, json_t *);
size_t	http_room(const struct http_req *);	/* bytes that still fit */
/* Called from the loop each time the queue falls to HTTP_QUEUE_LOW or below
 * from above it. */
void	http_on_drain(struct http_req *,
	    void (*fn)(struct http_req *, void *), void *arg);
void	http_end(struct http_req *);		/* final: a whole stream */
void	http_abort(struct http_req *);		/* final: cut, so that it shows */

#endif
