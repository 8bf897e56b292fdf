/*
 * http: connections; see http.h.
 *
 * Must never block, keep more of a connection than the bounds of http.h and
 * http_int.h say, or send two answers to one message.
 *
 * Theory of operation.  A connection is in one phase and in that phase's
 * list, in the order in which it came there:
 *
 *	HELLO	a handshake of TLS			head_ms, then closed
 *	IDLE	nothing of a message is there		idle_ms, then closed
 *	HEAD	part of a head				head_ms, then 408
 *	BODY	a request whose body is being read	progress, or 408
 *	BUSY	a handler has the request		its own time
 *	FLUSH	the answer is complete, not yet sent	progress, or closed
 *	LINGER	sent; waiting for the peer to close	LINGER_MS
 *
 *	HELLO -> IDLE -> HEAD -> BODY -> BUSY -> FLUSH -> IDLE | LINGER
 *	HELLO, HEAD, BODY -> FLUSH (refused), any -> dead
 *
 * Bytes are read into `in' up to its bound.  A message begins at in[0]; what
 * is used is moved out.  The next message is looked at only when the answer
 * before is sent, and only one per turn of the loop, so that a client that
 * pipelines waits for itself.  While a handler has the request reading goes
 * on up to the bound, to see the peer's end.
 *
 * Callbacks of handlers may end a request or a connection anywhere, so a
 * connection is freed only when the outermost function that uses it leaves
 * (http_conn_leave).  Nothing may touch a request after it made a callback.
 *
 * When the table is full a connection is shed for each new one: an answer to
 * somebody without a key that does not go out at once; else who waits longest
 * without a request; else an answer or a stream that nobody reads.  Nobody
 * without a key can hold another one: bodies are read after authorize, and
 * what was pipelined behind a public answer is then not looked at.  Requests
 * that may last have not all of the places, so that some are left for others;
 * nor have handshakes: above their part of them the oldest goes.
 */

#include <arpa/inet.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "http_int.h"
#include "log.h"
#include "xmalloc.h"

#define MAX_CONNS	1024
#define HEAD_MS		10000
#define BODY_MS		10000
#define IDLE_MS		75000
#define STOP_MS		10000
#define FLUSH_MS	30000
#define LINGER_MS	2000
#define STALL_MS	2000		/* an answer that may be shed */
#define STREAM_STALL_MS	30000		/* a stream that may be shed */
#define PAUSE_MS	100		/* without accepting */
#define MIN_MOVED	1024		/* bytes of progress per timer */
#define ACCEPT_PART	16		/* of the table, in one turn */
#define CROWD_PART	4		/* of the table: it fills */
#define HELLO_PART	4		/* of the table, in a handshake */
#define IN_FIRST	2048
#define UNSENT_MAX	(256 * 1024)	/* bytes a TCP socket holds back */

struct http_accept {
	struct http_accept	*next;
	struct http_server	*server;	/* borrowed */
	struct event		*ev;		/* owned */
	int			 fd;		/* owned */
	enum http_listener	 kind;
};

static void	accept_pause(struct http_server *);

/* ---- phases ----------------------------------------------------------------- */

static uint64_t
phase_ms(const struct http_conn *c)
{
	switch (c->phase) {
	case HTTP_IDLE:
		return c->server->conf.idle_ms;
	case HTTP_HELLO:
	case HTTP_HEAD:
		return c->server->conf.head_ms;
	case HTTP_BODY:
		return c->server->conf.body_ms;
	case HTTP_FLUSH:
		return FLUSH_MS;
	case HTTP_LINGER:
		return LINGER_MS;
	case HTTP_BUSY:
	case HTTP_NPHASES:
	default:
		return 0;
	}
}

static void
conn_phase(struct http_conn *c, enum http_phase phase)
{
	uint64_t	ms;

	TAILQ_REMOVE(&c->server->conns[c->phase], c, entry);
	c->server->nhello -= c->phase == HTTP_HELLO;
	c->server->nhello += phase == HTTP_HELLO;
	c->phase = phase;
	TAILQ_INSERT_TAIL(&c->server->conns[phase], c, entry);
	c->turn = ++c->server->turn;
	c->moved = 0;
	ms = phase_ms(c);
	c->due = ms == 0 ? 0 : mono_ms() + ms;
}

/* Bytes that may be read now. */
static size_t
conn_room(const struct http_conn *c)
{
	size_t	max = HTTP_IN_MAX;

	if (c->eof || c->dead)
		return 0;
	if (c->phase == HTTP_BUSY || c->phase == HTTP_FLUSH)
		max = HTTP_HEAD_MAX;
	return c->in_len < max ? max - c->in_len : 0;
}

static void
conn_arm(struct http_conn *c)
{
	uint64_t	now, ms;

	if (c->due == 0 || (c->armed != 0 && c->armed <= c->due))
		return;
	now = mono_ms();
	ms = c->due > now ? c->due - now : 0;
	(void)event_add(c->ev_timer, &(struct timeval){
	    .tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000 * 1000) });
	c->armed = c->due;
}

/* Makes the loop's view that of the connection. */
static void
conn_sync(struct http_conn *c)
{
	int	reading = conn_room(c) > 0 && !c->io_waits && !c->io_later;
	int	writing = (evbuffer_get_length(c->out) > 0 || c->io_waits) &&
		    !c->io_later;

	if (reading != c->reading)
		(void)(reading ? event_add(c->ev_read, NULL) :
		    event_del(c->ev_read));
	if (writing != c->writing)
		(void)(writing ? event_add(c->ev_write, NULL) :
		    event_del(c->ev_write));
	c->reading = reading;
	c->writing = writing;
	if (reading && http_io_held(c) > 0)
		event_active(c->ev_read, EV_READ, 0);
	if (evbuffer_get_length(c->out) > HTTP_QUEUE_LOW)
		c->high = 1;
	if (c->phase == HTTP_IDLE && c->in_len == 0) {
		free(c->in);
		c->in = NULL;
		c->in_cap = 0;
	}
	conn_arm(c);
}

static void
conn_free(struct http_conn *c)
{
	struct http_server	*s = c->server;

	TAILQ_REMOVE(&s->conns[c->phase], c, entry);
	s->nhello -= c->phase == HTTP_HELLO;
	event_free(c->ev_read);
	event_free(c->ev_write);
	event_free(c->ev_timer);
	evbuffer_free(c->out);
	free(c->in);
	http_io_free(c);
	(void)close(c->fd);
	free(c);
	s->nconns--;
	if (s->ev_stop != NULL && s->nconns == 0)
		event_active(s->ev_stop, EV_TIMEOUT, 0);
}

void
http_conn_enter(struct http_conn *c)
{
	c->busy++;
}

void
http_conn_leave(struct http_conn *c)
{
	if (--c->busy > 0)
		return;
	if (c->dead)
		conn_free(c);
	else
		conn_sync(c);
}

void
http_conn_kill(struct http_conn *c)
{
	struct http_req	*r = c->req;

	if (c->dead)
		return;
	/* an answer that is cut must look like that in TLS, too */
	if (c->phase == HTTP_IDLE && c->ssl != NULL)
		(void)http_io_end(c);	/* if it does not go, so be it */
	c->dead = 1;
	c->req = NULL;
	if (r == NULL)
		return;
	r->conn = NULL;
	if (r->handled)
		http_req_gone(r, HTTP_GONE_CLIENT);
	else
		http_req_free(r);
}

/* ---- output ------------------------------------------------------------------- */

/* Everything is sent: the next message, or the end. */
static void
conn_sent(struct http_conn *c)
{
	if (!c->close) {
		http_parse_init(&c->parse);
		conn_phase(c, HTTP_IDLE);
		if (c->in_len > 0)
			event_active(c->ev_read, EV_READ, 0);
		else if (c->eof)
			http_conn_kill(c);
		return;
	}
	switch (http_io_end(c)) {
	case 1:
		c->in_len = 0;
		conn_phase(c, HTTP_LINGER);
		break;
	case 0:
		break;		/* still FLUSH */
	default:
		http_conn_kill(c);
	}
}

static void
conn_push(struct http_conn *c)
{
	if (c->dead)
		return;
	if (http_io_send(c) == -1)
		http_conn_kill(c);
	else if (evbuffer_get_length(c->out) > 0 && c->stalled_ms == 0)
		c->stalled_ms = mono_ms();
}

void
http_conn_flush(struct http_conn *c)
{
	conn_push(c);
	if (!c->dead && evbuffer_get_length(c->out) == 0 &&
	    c->phase == HTTP_FLUSH)
		conn_sent(c);
}

void
http_conn_put(struct http_conn *c, struct iovec *v, size_t n)
{
	int	waits = evbuffer_get_length(c->out) > 0;
	size_t	i;

	if (!waits && http_io_put(c, v, n) == -1)
		http_conn_kill(c);
	for (i = 0; i < n && !c->dead; i++)
		if (v[i].iov_len > 0 && evbuffer_add(c->out, v[i].iov_base,
		    v[i].iov_len) == -1)
			fatalx("out of memory");
	if (c->ssl != NULL || (waits && !c->writing))
		conn_push(c);
	else if (!c->dead && evbuffer_get_length(c->out) > 0 &&
	    c->stalled_ms == 0)
		c->stalled_ms = mono_ms();
}

/* Goes on with a handshake; who speaks plain HTTP is told so, in HTTP. */
static void
conn_hello(struct http_conn *c)
{
	switch (http_io_hello(c)) {
	case HTTP_HELLO_DONE:
		conn_phase(c, HTTP_IDLE);
		break;
	case HTTP_HELLO_MORE:
		break;
	case HTTP_HELLO_PLAIN:
		http_io_free(c);
		http_refuse(c, 400, "here is TLS: ask by https://");
		break;
	case HTTP_HELLO_BAD:
		http_conn_kill(c);
		break;
	}
}

static void
conn_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn	*c = arg;
	struct http_req		*r;

	(void)fd; (void)what;
	http_conn_enter(c);
	if (c->phase == HTTP_HELLO) {
		conn_hello(c);
		http_conn_leave(c);
		return;
	}
	if (c->io_waits) {
		c->io_waits = 0;
		event_active(c->ev_read, EV_READ, 0);	/* it may be that */
	}
	http_conn_flush(c);
	if (!c->dead && c->high &&
	    evbuffer_get_length(c->out) <= HTTP_QUEUE_LOW) {
		c->high = 0;
		r = c->req;
		if (r != NULL && r->streaming && r->on_drain != NULL)
			r->on_drain(r, r->drain_arg);
	}
	http_conn_leave(c);
}

int
http_conn_crowds(const struct http_conn *c)
{
	return !c->known && c->server->nconns >=
	    c->server->conf.max_conns / CROWD_PART;
}

int
http_conn_ends(const struct http_conn *c)
{
	/* What is left of a body that was not read is no next message. */
	return c->close || c->parse.close || c->server->stopping ||
	    http_conn_crowds(c) || (c->phase != HTTP_BUSY &&
	    (c->parse.body == HTTP_B_CHUNKED || c->parse.length > 0));
}

void
http_conn_answered(struct http_conn *c, int close)
{
	c->close = close || http_conn_ends(c);
	c->req = NULL;
	conn_phase(c, HTTP_FLUSH);
	http_conn_flush(c);
}

void
http_conn_continue(struct http_conn *c)
{
	static const char	text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (evbuffer_add(c->out, text, sizeof(text) - 1) == -1)
		fatalx("out of memory");
	http_conn_flush(c);
}

/* ---- input ---------------------------------------------------------------------- */

static void
in_used(struct http_conn *c, size_t n)
{
	c->in_len -= n;
	memmove(c->in, c->in + n, c->in_len);
	explicit_bzero(c->in + c->in_len, n);	/* a key may be in it */
}

static void
process_head(struct http_conn *c)
{
	struct http_req	*r;
	size_t		 used;

	if (c->phase == HTTP_IDLE)
		conn_phase(c, HTTP_HEAD);
	switch (http_parse_head(&c->parse, c->in, c->in_len)) {
	case HTTP_P_MORE:
		if (c->eof)
			http_conn_kill(c);
		return;
	case HTTP_P_DONE:
		break;
	case HTTP_P_DATA:
	case HTTP_P_ERROR:
	default:
		http_refuse(c, c->parse.status, c->parse.why);
		return;
	}
	used = c->parse.head_len;
	r = c->req = http_req_new(c);
	in_used(c, used);
	conn_phase(c, HTTP_BODY);
	if (http_check_head(r) == -1)
		return;
	if (c->parse.expect && c->parse.body != HTTP_B_NONE &&
	    c->in_len == 0)
		http_conn_continue(c);
}

/* 1: the body is complete; 0: not, or the request has ended. */
static int
process_body(struct http_conn *c)
{
	const char		*data;
	size_t			 n, used, at = 0;
	enum http_parsed	 p;

	for (;;) {
		p = http_parse_body(&c->parse, c->in + at, c->in_len - at,
		    &used, &data, &n);
		at += used;
		if (p != HTTP_P_DATA)
			break;
		c->moved += n;
		if (http_check_more(c->req, data, n) == -1)
			return 0;
	}
	in_used(c, at);
	if (p == HTTP_P_ERROR)
		http_refuse(c, c->parse.status, c->parse.why);
	else if (p == HTTP_P_MORE && c->eof)
		http_conn_kill(c);
	return p == HTTP_P_DONE;
}

/* At most one message per call. */
static void
conn_process(struct http_conn *c)
{
	struct http_req	*r;

	if (c->in_len == 0 && c->eof &&
	    (c->phase == HTTP_IDLE || c->phase == HTTP_LINGER)) {
		http_conn_kill(c);
		return;
	}
	if (c->phase == HTTP_LINGER)
		c->in_len = 0;
	if (c->phase == HTTP_HEAD ||
	    (c->phase == HTTP_IDLE && c->in_len > 0))
		process_head(c);
	if (c->dead || c->phase != HTTP_BODY || !process_body(c))
		return;
	r = c->req;
	conn_phase(c, HTTP_BUSY);
	if (http_check_body(r) == -1)
		return;
	r->handled = 1;
	r->route->handler(r);
}

static void
in_grow(struct http_conn *c)
{
	if (c->in_cap > c->in_len)
		return;
	c->in_cap = c->in_cap == 0 ? IN_FIRST : 2 * c->in_cap;
	if (c->in_cap > HTTP_IN_MAX)
		c->in_cap = HTTP_IN_MAX;
	c->in = xreallocarray(c->in, c->in_cap, 1);
}

static void
conn_eof(struct http_conn *c)
{
	struct http_req	*r = c->req;

	c->eof = 1;
	if (r != NULL && r->handled)
		http_req_gone(r, HTTP_GONE_CLIENT);
}

static void
conn_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn	*c = arg;
	size_t			 room;
	ssize_t			 n;

	(void)fd; (void)what;
	http_conn_enter(c);
	if (c->phase == HTTP_HELLO) {
		conn_hello(c);
		http_conn_leave(c);
		return;
	}
	if ((room = conn_room(c)) > 0) {
		in_grow(c);
		if (room > c->in_cap - c->in_len)
			room = c->in_cap - c->in_len;
		n = http_io_recv(c, c->in + c->in_len, room);
		if (n > 0)
			c->in_len += (size_t)n;
		else if (n == 0)
			conn_eof(c);
		else if (errno != EAGAIN && errno != EINTR)
			http_conn_kill(c);
	}
	if (!c->dead)
		conn_process(c);
	http_conn_leave(c);
}

/* ---- time -------------------------------------------------------------------------- */

static void
conn_expired(struct http_conn *c)
{
	switch (c->phase) {
	case HTTP_HEAD:
		http_refuse(c, 408, "the head took too long");
		return;
	case HTTP_BODY:
		if (c->moved < MIN_MOVED) {
			http_refuse(c, 408, "the body came too slowly");
			return;
		}
		break;
	case HTTP_FLUSH:
		if (c->moved < MIN_MOVED) {
			http_conn_kill(c);
			return;
		}
		break;
	case HTTP_HELLO:
	case HTTP_IDLE:
	case HTTP_LINGER:
	case HTTP_BUSY:
	case HTTP_NPHASES:
	default:
		http_conn_kill(c);
		return;
	}
	c->moved = 0;
	c->due = mono_ms() + phase_ms(c);
}

static void
conn_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn	*c = arg;

	(void)fd; (void)what;
	c->armed = 0;
	http_conn_enter(c);
	if (c->due != 0 && mono_ms() >= c->due)
		conn_expired(c);
	http_conn_leave(c);
}

/* ---- accepting ------------------------------------------------------------------------ */

static void
conn_new(struct http_server *s, int fd, enum http_listener kind,
    const struct sockaddr_storage *addr)
{
	struct http_conn	*c = xcalloc(1, sizeof(*c));
	struct ucred		 cred;
	socklen_t		 len = sizeof(cred);
	int			 on = 1, unsent = UNSENT_MAX;

	c->server = s;
	c->fd = fd;
	c->kind = kind;
	c->addr = *addr;
	c->known = kind == HTTP_UNIX;	/* the socket's mode let it in */
	if (kind == HTTP_UNIX) {
		c->peer_uid = (unsigned int)-1;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
			c->peer_uid = cred.uid;
	} else {
		/* Without them the service is the same, only slower. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
		    sizeof(on));
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on,
		    sizeof(on));
		/* what it has not taken should wait in the box, not here */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
		    sizeof(unsent));
	}
	c->ev_read = event_new(s->conf.base, fd, EV_READ | EV_PERSIST,
	    conn_on_read, c);
	c->ev_write = event_new(s->conf.base, fd, EV_WRITE | EV_PERSIST,
	    conn_on_write, c);
	c->ev_timer = evtimer_new(s->conf.base, conn_on_timer, c);
	c->out = evbuffer_new();
	if (c->ev_read == NULL || c->ev_write == NULL ||
	    c->ev_timer == NULL || c->out == NULL)
		fatalx("out of memory");
	http_parse_init(&c->parse);
	c->phase = HTTP_IDLE;
	TAILQ_INSERT_TAIL(&s->conns[HTTP_IDLE], c, entry);
	s->nconns++;
	if (kind == HTTP_TCP && s->tls != NULL)
		http_io_new(c);
	conn_phase(c, c->ssl != NULL ? HTTP_HELLO : HTTP_IDLE);
	conn_sync(c);
}

/* Of those that may be shed, the one that waits longest; or NULL. */
static struct http_conn *
spare(struct http_server *s)
{
	static const enum http_phase	phases[] = {
		HTTP_HELLO, HTTP_LINGER, HTTP_IDLE, HTTP_HEAD
	};
	struct http_conn		*c, *best = NULL;
	uint64_t			 now = mono_ms();
	size_t				 i;

	TAILQ_FOREACH(c, &s->conns[HTTP_FLUSH], entry)
		if (c->stalled_ms != 0 && !c->known)
			return c;
	for (i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		c = TAILQ_FIRST(&s->conns[phases[i]]);
		if (c != NULL && (best == NULL || c->turn < best->turn))
			best = c;
	}
	if (best != NULL)
		return best;
	TAILQ_FOREACH(c, &s->conns[HTTP_FLUSH], entry)
		if (c->stalled_ms != 0 && now - c->stalled_ms > STALL_MS)
			return c;
	TAILQ_FOREACH(c, &s->conns[HTTP_BUSY], entry)
		if (c->stalled_ms != 0 &&
		    now - c->stalled_ms > STREAM_STALL_MS)
			return c;
	return NULL;
}

static int
shed(struct http_conn *c)
{
	struct linger		 reset = { 1, 0 };

	if (c == NULL || c->busy > 0)
		return 0;
	/* else the kernel would keep what nobody reads */
	if (c->stalled_ms != 0)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset,
		    sizeof(reset));
	http_conn_enter(c);
	http_conn_kill(c);
	http_conn_leave(c);
	return 1;
}

static void
on_accept(evutil_socket_t lfd, short what, void *arg)
{
	struct http_accept	*a = arg;
	struct http_server	*s = a->server;
	struct sockaddr_storage	 addr;
	socklen_t		 len;
	unsigned int		 i, most = s->conf.max_conns / ACCEPT_PART + 1;
	int			 fd;

	(void)what;
	/* few: those who came before shall be heard before they are shed */
	for (i = 0; i < most; i++) {
		if (s->nconns >= s->conf.max_conns && spare(s) == NULL) {
			accept_pause(s);
			return;
		}
		memset(&addr, 0, sizeof(addr));
		len = sizeof(addr);
		fd = accept4(lfd, (struct sockaddr *)&addr, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd != -1) {
			if (s->nhello >= s->conf.max_conns / HELLO_PART)
				(void)shed(
				    TAILQ_FIRST(&s->conns[HTTP_HELLO]));
			if (s->nconns >= s->conf.max_conns)
				(void)shed(spare(s));	/* is one */
			conn_new(s, fd, a->kind, &addr);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM) {
			log_warn("accept");
			(void)shed(spare(s));	/* or a pause */
			accept_pause(s);
		}
		return;	/* all else is one connection's, or EAGAIN */
	}
}

static void
accept_all(struct http_server *s, int on)
{
	struct http_accept	*a;

	for (a = s->accepts; a != NULL; a = a->next)
		(void)(on ? event_add(a->ev, NULL) : event_del(a->ev));
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct http_server	*s = arg;

	(void)fd; (void)what;
	s->paused = 0;
	if (!s->stopping)
		accept_all(s, 1);
}

static void
accept_pause(struct http_server *s)
{
	if (s->paused)
		return;
	s->paused = 1;
	accept_all(s, 0);
	(void)event_add(s->ev_resume,
	    &(struct timeval){ .tv_usec = PAUSE_MS * 1000L });
}

/* ---- the server -------------------------------------------------------------------------- */

struct http_server *
http_server_new(const struct http_conf *conf)
{
	struct http_server	*s = xcalloc(1, sizeof(*s));
	size_t			 i;

	s->conf = *conf;
	if (conf->authorize == NULL)
		fatalx("http server without authorize");
	if (s->conf.max_conns == 0)
		s->conf.max_conns = MAX_CONNS;
	if (s->conf.head_ms == 0)
		s->conf.head_ms = HEAD_MS;
	if (s->conf.body_ms == 0)
		s->conf.body_ms = BODY_MS;
	if (s->conf.idle_ms == 0)
		s->conf.idle_ms = IDLE_MS;
	if (s->conf.stop_ms == 0)
		s->conf.stop_ms = STOP_MS;
	for (i = 0; i < HTTP_NPHASES; i++)
		TAILQ_INIT(&s->conns[i]);
	s->ev_resume = evtimer_new(conf->base, on_resume, s);
	s->ev_slice = evtimer_new(conf->base, http_io_slice, s);
	if (s->ev_resume == NULL || s->ev_slice == NULL)
		fatalx("out of memory");
	http_check_trusted(s);
	return s;
}

void
http_server_hosts(struct http_server *s, const struct wire_list *allowed,
    const struct wire_list *trusted)
{
	s->conf.allowed_host = *allowed;
	s->conf.trusted_proxy = *trusted;
	http_check_trusted(s);
}

int
http_server_listen(struct http_server *s, int fd, enum http_listener kind)
{
	struct http_accept	*a;
	int			 flags;

	if ((flags = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1) {
		fd_close(&fd);
		return -1;
	}
	a = xcalloc(1, sizeof(*a));
	a->server = s;
	a->fd = fd;
	a->kind = kind;
	a->ev = event_new(s->conf.base, fd, EV_READ | EV_PERSIST, on_accept,
	    a);
	if (a->ev == NULL)
		fatalx("out of memory");
	a->next = s->accepts;
	s->accepts = a;
	if (!s->paused && !s->stopping)
		(void)event_add(a->ev, NULL);
	return 0;
}

/* One connection that was not told yet, or NULL. */
static struct http_conn *
untold(struct http_server *s)
{
	struct http_conn	*c;
	size_t			 i;

	for (i = 0; i < HTTP_NPHASES; i++)
		TAILQ_FOREACH(c, &s->conns[i], entry)
			if (!c->told)
				return c;
	return NULL;
}

static void
kill_all(struct http_server *s)
{
	struct http_conn	*c;
	size_t			 i;

	for (i = 0; i < HTTP_NPHASES; i++) {
		while ((c = TAILQ_FIRST(&s->conns[i])) != NULL) {
			http_conn_enter(c);
			http_conn_kill(c);
			http_conn_leave(c);
		}
	}
}

static void
on_stop(evutil_socket_t fd, short what, void *arg)
{
	struct http_server	*s = arg;
	void			(*done)(void *) = s->done;

	(void)fd; (void)what;
	kill_all(s);
	s->done = NULL;
	if (done != NULL)
		done(s->done_arg);
}

void
http_server_stop(struct http_server *s, void (*done)(void *), void *arg)
{
	struct http_conn	*c;
	struct http_req		*r;

	if (s->stopping)
		return;
	s->stopping = 1;
	accept_all(s, 0);
	s->done = done;
	s->done_arg = arg;
	if ((s->ev_stop = evtimer_new(s->conf.base, on_stop, s)) == NULL)
		fatalx("out of memory");
	(void)event_add(s->ev_stop, &(struct timeval){
	    .tv_sec = (time_t)(s->conf.stop_ms / 1000),
	    .tv_usec = (suseconds_t)(s->conf.stop_ms % 1000 * 1000) });
	while ((c = untold(s)) != NULL) {
		c->told = 1;
		http_conn_enter(c);
		r = c->req;
		if (c->phase == HTTP_HELLO || c->phase == HTTP_IDLE ||
		    c->phase == HTTP_LINGER)
			http_conn_kill(c);
		else if (r != NULL && r->handled)
			http_req_gone(r, HTTP_GONE_STOPPING);
		http_conn_leave(c);
	}
	if (s->nconns == 0)
		event_active(s->ev_stop, EV_TIMEOUT, 0);
}

void
http_server_free(struct http_server *s)
{
	struct http_accept	*a;

	if (s == NULL)
		return;
	kill_all(s);
	while ((a = s->accepts) != NULL) {
		s->accepts = a->next;
		event_free(a->ev);
		fd_close(&a->fd);
		free(a);
	}
	event_free(s->ev_resume);
	event_free(s->ev_slice);
	if (s->ev_stop != NULL)
		event_free(s->ev_stop);
	SSL_CTX_free(s->tls);
	free(s->trusted);
	free(s);
}

void
http_server_count(const struct http_server *s, unsigned int *ret_conns,
    unsigned int *ret_reqs)
{
	*ret_conns = s->nconns;
	*ret_reqs = s->nreqs;
}
