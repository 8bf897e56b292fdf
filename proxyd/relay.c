/*
 * relay.c: connections of boxes, to names.
 *
 * Theory of operation.  What a box connects to by a synthetic address arrives
 * at its relay socket, and the accepted socket's own address is the one that
 * was wanted: it says the name, and the port.  The list is asked again, for
 * the name may have had its address longer than its entry.  From then on two
 * things go on side by side:
 *
 *   upstream	DIALS	dial.c looks for the host
 *		UP	it is connected
 *   judge	HELLO	the first bytes of the box tell what they are for: on
 *			port 443 they must be TLS for this name, on others, if
 *			they are TLS with a name at all
 *		HTTP	on port 80: each request must be for this name
 *		PASSED	the box's bytes are its own business
 *
 * Nothing of the box's passes before the judge lets it; what the judge looks
 * at stays in the socket until then, so that a box that sends little holds
 * nothing here.  What comes from upstream passes as soon as it is there, but
 * for the answer to a request to upgrade, which is looked at first.
 *
 *	any -> (ended)	both halves have ended; either side is broken; refused;
 *			too late; the list has changed; the box goes
 *
 * Whatever is refused ends by a reset and a denial that names why.
 *
 * Fairness.  All readiness does is to put a connection in its box's queue, and
 * its box in that of boxes.  Each turn every box in the queue moves some
 * bytes, whatever the number of its connections, then the loop looks at
 * sockets again.  A box that floods waits for itself.
 *
 * Must never: pass a byte of a box to any host but the one that its name was
 * resolved to; serve an address that names.c does not know.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "proxyd.h"
#include "ulid.h"
#include "xmalloc.h"

#define ACCEPTS		16		/* a turn */
#define TURN_BYTES	(512UL * 1024)	/* of a box in one turn */
#define CONN_BYTES	(256UL * 1024)	/* of a connection in one turn */
#define JUDGE_MS	30000		/* for the first bytes to be told */
#define PAUSE_MS	100		/* without descriptors */
#define RECEIVE_ALL	(16 * 1024 * 1024) /* of a box, before it is less */
#define RECEIVE_LEAST	(32 * 1024)	/* for each connection */
#define RECEIVE_MANY	32		/* connections, where that begins */
#define HTTP_PORT	80
#define HTTPS_PORT	443
#define STATUS_BYTES	1024		/* interim answers and a status */
#define TELL_MS		60000		/* of what fails for a box, once in */

enum judge { J_HELLO, J_HTTP, J_PASSED };

struct conn {
	TAILQ_ENTRY(conn)	 next, ready;
	struct relay		*relay;		/* borrowed */
	struct named		*named;		/* borrowed: counts as open */
	unsigned int		 port;
	int			 box, up;	/* owned; up -1: DIALS */
	struct dial		*dial;		/* DIALS */
	struct event		 ev_box, ev_up, late;
	enum judge		 judge;
	struct head		 head;		/* J_HTTP */
	size_t			 may;		/* bytes that it let pass */
	struct half		 out, in;	/* from the box, to it */
	int			 is_ready, ended_out, ended_in;
};

TAILQ_HEAD(conns, conn);

struct relay {
	TAILQ_ENTRY(relay)	 ready;
	struct box		*box;		/* borrowed */
	int			 fd;		/* owned: listens */
	struct event		 ev, pause;
	struct looks		*looks;		/* owned */
	struct conns		 conns, queue;	/* all; those that are ready */
	unsigned int		 n, lent;
	int			 is_ready, is_paused;
	unsigned int		 untold;	/* what failed, since told_ms */
	uint64_t		 told_ms;	/* 0: never */
};

static struct {
	struct event_base	*base;		/* borrowed */
	unsigned int		 most, room;	/* of a box, of all */
	unsigned int		 n, active;	/* connections; their boxes */
	struct event		*turn;		/* owned */
	TAILQ_HEAD(, relay)	 queue;
} rl;

static uint8_t	peeked[HEAD_MAX + HELLO_MAX];

/* ---- queues -------------------------------------------------------- */

static void
turn_soon(void)
{
	const struct timeval	now = { 0, 0 };

	if (!event_pending(rl.turn, EV_TIMEOUT, NULL) &&
	    event_add(rl.turn, &now) == -1)
		fatalx("event_add");
}

static void
conn_ready(struct conn *c)
{
	struct relay	*r = c->relay;

	if (!c->is_ready) {
		TAILQ_INSERT_TAIL(&r->queue, c, ready);
		c->is_ready = 1;
	}
	if (!r->is_ready) {
		TAILQ_INSERT_TAIL(&rl.queue, r, ready);
		r->is_ready = 1;
	}
	turn_soon();
}

static void
conn_unready(struct conn *c)
{
	if (c->is_ready)
		TAILQ_REMOVE(&c->relay->queue, c, ready);
	c->is_ready = 0;
}

/* ---- ends ---------------------------------------------------------- */

static void
reset(int fd)
{
	const struct linger	l = { 1, 0 };

	/* where that fails it is closed in the usual way */
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

/* by_reset: not as one that has come to its end. */
static void
conn_end(struct conn *c, int by_reset)
{
	struct relay	*r = c->relay;

	conn_unready(c);
	TAILQ_REMOVE(&r->conns, c, next);
	rl.active -= --r->n == 0;
	rl.n--;
	c->named->open--;
	if (c->dial != NULL)
		dial_cancel(c->dial);
	half_end(&c->out, &r->lent);
	half_end(&c->in, &r->lent);
	(void)event_del(&c->late);
	(void)event_del(&c->ev_box);
	if (c->up != -1)
		(void)event_del(&c->ev_up);
	if (by_reset) {
		reset(c->box);
		if (c->up != -1)
			reset(c->up);
	}
	fd_close(&c->box);
	fd_close(&c->up);
	free(c);
}

/* name: another that it said, or "": it said none, or what is no name. */
static void
conn_refuse(struct conn *c, enum denied_rule rule, const char *name)
{
	box_denied(c->relay->box, rule, name[0] != '\0' ? name :
	    c->named->name, NULL, 0, IPPROTO_TCP, c->port);
	conn_end(c, 1);
}

/* ---- the judge ----------------------------------------------------- */

/* What a step says of its connection: it is gone, or what half_move() says. */
enum step { STEP_GONE, STEP_WAITS, STEP_MORE };

/* n bytes decide nothing: more has to come, unless it has ended or cannot. */
static enum step
judge_short(struct conn *c, size_t n, int eof, enum denied_rule rule)
{
	if (n < sizeof(peeked) && !eof)
		return STEP_WAITS;
	if (n == 0)
		conn_end(c, 0);		/* it has said nothing at all */
	else
		conn_refuse(c, rule, "");
	return STEP_GONE;
}

/*
 * Whether all that its other side will ever send has come.  Looked at before
 * the bytes are: what comes in between is no end of those.
 */
static int
has_ended(int fd)
{
	struct tcp_info	i;
	socklen_t	len = sizeof(i);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len) == 0 &&
	    i.tcpi_state != TCP_ESTABLISHED && i.tcpi_state != TCP_FIN_WAIT1 &&
	    i.tcpi_state != TCP_FIN_WAIT2;
}

/* Whether a client of that port has to speak before its server does. */
static int
speaks_first(unsigned int port)
{
	return port == HTTP_PORT || port == HTTPS_PORT;
}

static void
judge_passed(struct conn *c)
{
	c->judge = J_PASSED;
	(void)event_del(&c->late);
}

/* The first n bytes; ended: no more will come.  Below, too. */
static enum step
judge_hello(struct conn *c, size_t n, int ended)
{
	char		name[ALLOW_NAME] = "";
	enum hello	h = hello_read(peeked, n, name);

	if (h == HELLO_MORE)
		return judge_short(c, n < HELLO_MAX ? n : sizeof(peeked),
		    ended, DENIED_TLS);
	if ((h == HELLO_NAMED && strcmp(name, c->named->name) == 0) ||
	    (c->port != HTTPS_PORT && (h == HELLO_NAMELESS ||
	    h == HELLO_NOT))) {
		judge_passed(c);
		return STEP_MORE;
	}
	conn_refuse(c, DENIED_TLS, name);
	return STEP_GONE;
}

/* How many of the next bytes may pass: c->may. */
static enum step
judge_http(struct conn *c, size_t n, int ended)
{
	char		host[ALLOW_NAME] = "";
	enum head_is	is;

	is = head_read(&c->head, peeked, n, c->named->name, c->port, &c->may,
	    host);
	if (is != HEAD_GO) {
		conn_refuse(c, DENIED_HTTP, host);
		return STEP_GONE;
	}
	if (c->may > 0) {
		(void)event_del(&c->late);
		return STEP_MORE;
	}
	if (c->head.upgrade)
		return STEP_WAITS;	/* for in_upgrade() */
	return judge_short(c, n < HEAD_MAX ? n : sizeof(peeked), ended,
	    DENIED_HTTP);
}

/* The end of what the box sends, of which nothing is held back. */
static enum step
out_eof(struct conn *c)
{
	c->ended_out = 1;
	if (shutdown(c->up, SHUT_WR) == 0)
		return STEP_WAITS;
	conn_end(c, 1);
	return STEP_GONE;
}

static enum step
judge(struct conn *c)
{
	int	ended = has_ended(c->box);
	ssize_t	n = recv(c->box, peeked, sizeof(peeked), MSG_PEEK);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return STEP_WAITS;
	if (n == -1) {
		conn_end(c, 1);
		return STEP_GONE;
	}
	if (n == 0 && c->judge == J_HTTP && c->head.requests > 0)
		return out_eof(c);
	if (n == 0 && !speaks_first(c->port)) {
		judge_passed(c);	/* it only listens */
		return STEP_MORE;
	}
	if (n == 0)
		return judge_short(c, 0, 1, DENIED_TLS);
	return c->judge == J_HTTP ? judge_http(c, (size_t)n, ended) :
	    judge_hello(c, (size_t)n, ended);
}

/* ---- both ways ----------------------------------------------------- */

static enum step
moved(struct conn *c, enum moved m, int *ended)
{
	switch (m) {
	case MOVED_BROKEN:
		conn_end(c, 1);
		return STEP_GONE;
	case MOVED_END:
		*ended = 1;
		return STEP_WAITS;
	case MOVED_SOME:
		return STEP_MORE;
	case MOVED_ALL:
		break;
	}
	return STEP_WAITS;
}

/* Of HTTP only what the judge has let pass. */
static enum step
out_judged(struct conn *c)
{
	enum moved	m;
	size_t		n;

	m = half_copy(&c->out, c->may, &n);
	c->may -= n;
	c->named->sent_bytes += n;
	/* what may pass was seen to be there: an end before is a fault */
	return moved(c, m == MOVED_END ? MOVED_BROKEN : m, &c->ended_out);
}

static enum step
out_step(struct conn *c)
{
	if (c->ended_out)
		return STEP_WAITS;
	if (c->judge != J_PASSED && c->may == 0)
		return judge(c);
	if (c->up == -1)
		return STEP_WAITS;
	if (c->may > 0)
		return out_judged(c);
	return moved(c, half_move(&c->out, CONN_BYTES, &c->relay->lent,
	    &c->named->sent_bytes), &c->ended_out);
}

/* The answer to a request to upgrade: what follows may be no HTTP. */
static enum step
in_upgrade(struct conn *c)
{
	uint8_t	status[STATUS_BYTES];
	int	ended = has_ended(c->up), r;
	ssize_t	n = recv(c->up, status, sizeof(status), MSG_PEEK);

	if (c->may > 0 || (n == -1 && (errno == EAGAIN || errno == EINTR)))
		return STEP_WAITS;	/* it has not all been sent */
	if (n <= 0) {
		conn_end(c, n == -1);
		return STEP_GONE;
	}
	r = head_answer(&c->head, status, (size_t)n);
	if (r == 0 && n < STATUS_BYTES && !ended)
		return STEP_WAITS;
	if (r == 0 && n < STATUS_BYTES)
		c->head.upgrade = 0;	/* cut off: it has agreed to nothing */
	else if (r != 1) {
		conn_refuse(c, DENIED_HTTP, "");
		return STEP_GONE;
	}
	conn_ready(c);			/* the box's next bytes wait */
	return STEP_MORE;
}

static enum step
in_step(struct conn *c)
{
	if (c->up == -1 || c->ended_in)
		return STEP_WAITS;
	if (c->judge == J_HTTP && c->head.upgrade)
		return in_upgrade(c);
	return moved(c, half_move(&c->in, CONN_BYTES, &c->relay->lent,
	    &c->named->received_bytes), &c->ended_in);
}

static int
has_error(int fd)
{
	socklen_t	len = sizeof(int);
	int		e = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == -1 || e != 0;
}

/*
 * A side whose half has ended is read no more, and would not be seen to be
 * reset while there is nothing to send to it either.
 */
static int
was_reset(const struct conn *c)
{
	return (c->ended_out && has_error(c->box)) ||
	    (c->ended_in && has_error(c->up));
}

/* One turn of a connection: as much as it may move. */
static void
conn_turn(struct conn *c)
{
	enum step	out, in;

	if ((out = out_step(c)) == STEP_GONE || (in = in_step(c)) ==
	    STEP_GONE)
		return;
	if (c->ended_out && c->ended_in)
		conn_end(c, 0);
	else if (was_reset(c))
		/* a host's last words to a box may be on their way yet */
		conn_end(c, !c->ended_in);
	else if (out == STEP_MORE || in == STEP_MORE)
		conn_ready(c);
}

/* As many connections of a box as may move all that one may. */
static void
relay_turn(struct relay *r)
{
	struct conn	*c;
	size_t		 left = TURN_BYTES;

	while (left >= CONN_BYTES && (c = TAILQ_FIRST(&r->queue)) != NULL) {
		conn_unready(c);
		left -= CONN_BYTES;
		conn_turn(c);
	}
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	TAILQ_HEAD(, relay)	 now = TAILQ_HEAD_INITIALIZER(now);
	struct relay		*r;

	(void)fd;
	(void)what;
	(void)arg;
	TAILQ_CONCAT(&now, &rl.queue, ready);
	while ((r = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, r, ready);
		r->is_ready = 0;
		relay_turn(r);
		if (!TAILQ_EMPTY(&r->queue) && !r->is_ready) {
			TAILQ_INSERT_TAIL(&rl.queue, r, ready);
			r->is_ready = 1;
		}
	}
	if (!TAILQ_EMPTY(&rl.queue))
		turn_soon();
}

/* ---- events -------------------------------------------------------- */

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_ready(arg);
}

static void
watch(struct event *ev, int fd, struct conn *c)
{
	(void)event_assign(ev, rl.base, fd, EV_READ | EV_WRITE | EV_ET |
	    EV_PERSIST, on_ready, c);
	if (event_add(ev, NULL) == -1)
		fatalx("event_add");
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_end(arg, 1);
}

/*
 * What waits for a box that does not read is the host's memory, and charged to
 * nobody: who has many connections has less for each new one.
 */
static void
share(const struct relay *r, int fd)
{
	int	n = RECEIVE_ALL / (int)r->n;

	if (r->n <= RECEIVE_MANY)
		return;
	if (n < RECEIVE_LEAST)
		n = RECEIVE_LEAST;
	/* where that fails it has what dial.c gave it */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof(n));
}

/* A box may try as often as it likes: one line of it in a time. */
static void
tell_failed(const struct conn *c, const char *why)
{
	struct relay	*r = c->relay;
	uint64_t	 now = mono_ms();
	char		 more[48] = "";

	if (r->told_ms != 0 && now - r->told_ms < TELL_MS) {
		r->untold++;
		return;
	}
	if (r->untold > 0)
		(void)snprintf(more, sizeof(more), "; %u more before it",
		    r->untold);
	log_info("box %s: connect to %s:%u: %s%s", r->box->id,
	    c->named->name, c->port, why, more);
	r->told_ms = now;
	r->untold = 0;
}

static void
on_dialled(void *arg, int fd, const struct resolved *refused, const char *why)
{
	struct conn	*c = arg;

	c->dial = NULL;
	if (fd == -1) {
		if (refused != NULL)
			box_denied(c->relay->box, refused->why ==
			    RESOLVED_HOST ? DENIED_HOST : DENIED_SEALED,
			    c->named->name, refused->refused,
			    refused->refused_v6, IPPROTO_TCP, c->port);
		else
			tell_failed(c, why);
		conn_end(c, 1);
		return;
	}
	share(c->relay, fd);
	c->up = c->out.to = c->in.from = fd;
	watch(&c->ev_up, fd, c);
	conn_ready(c);
}

static enum judge
judge_of(unsigned int port)
{
	return port == HTTP_PORT ? J_HTTP : J_HELLO;
}

/* A server may speak first: only where the client has to is it waited for. */
static void
conn_late(struct conn *c)
{
	const struct timeval	tv = { JUDGE_MS / 1000, 0 };

	(void)event_assign(&c->late, rl.base, -1, 0, on_late, c);
	if (speaks_first(c->port) && event_add(&c->late, &tv) == -1)
		fatalx("event_add");
}

static void
conn_new(struct relay *r, int fd, struct named *n, unsigned int port)
{
	const int	 on = 1;
	struct conn	*c = xcalloc(1, sizeof(*c));

	c->relay = r;
	c->named = n;
	c->port = port;
	c->box = c->out.from = c->in.to = fd;
	c->up = -1;
	c->judge = judge_of(port);
	n->open++;
	n->connections++;
	TAILQ_INSERT_TAIL(&r->conns, c, next);
	rl.active += r->n++ == 0;
	rl.n++;
	/* slower without */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	/* urgent data is data, as it is for whom judges */
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	conn_late(c);
	watch(&c->ev_box, fd, c);
	c->dial = dial_name(rl.base, r->looks, n->name, port, on_dialled, c);
}

/* ---- accepting ----------------------------------------------------- */

/* The address that was wanted: 0, or -1: none that can be told. */
static int
wanted(int fd, struct sockaddr_in *ret)
{
	socklen_t	len = sizeof(*ret);

	return getsockname(fd, (struct sockaddr *)ret, &len) == -1 ||
	    len < sizeof(*ret) || ret->sin_family != AF_INET ? -1 : 0;
}

/* Of no name, or of one that is forgotten. */
static void
refuse_address(struct relay *r, const struct sockaddr_in *sin)
{
	uint8_t	addr[4];

	memcpy(addr, &sin->sin_addr, sizeof(addr));
	box_denied(r->box, DENIED_ADDRESS, "", addr, 0, IPPROTO_TCP,
	    ntohs(sin->sin_port));
}

/*
 * Descriptors are few where all boxes have many connections: of the last
 * quarter none has more than its part.
 */
static int
has_share(const struct relay *r)
{
	return rl.n < rl.room - rl.room / 4 || r->n < rl.room /
	    (rl.active + 1);
}

/* Whether it may be.  The list decides, whatever was said of the name. */
static int
may_be(struct relay *r, const struct named *n, unsigned int port)
{
	enum allow_is	is = allow_find(r->box->allow, n->name, port);

	if (is == ALLOW_YES && r->n < rl.most && has_share(r))
		return 1;
	box_denied(r->box, is == ALLOW_YES ? DENIED_LIMITED :
	    is == ALLOW_OTHER ? DENIED_PORT : DENIED_NAME, n->name, NULL, 0,
	    IPPROTO_TCP, port);
	return 0;
}

/* Takes fd. */
static void
take(struct relay *r, int fd_arg)
{
	auto_close int		 fd = fd_arg;
	struct sockaddr_in	 sin;
	struct named		*n = NULL;

	if (wanted(fd, &sin) == 0 && (n = names_at(r->box->names,
	    ntohl(sin.sin_addr.s_addr))) == NULL)
		refuse_address(r, &sin);
	if (n != NULL && may_be(r, n, ntohs(sin.sin_port)))
		conn_new(r, steal_fd(&fd), n, ntohs(sin.sin_port));
	else
		reset(fd);
}

static void
on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct relay	*r = arg;

	(void)fd;
	(void)what;
	if (event_add(&r->ev, NULL) == -1)
		fatalx("event_add");
}

/* No descriptor is left: others have to end first. */
static void
accept_pause(struct relay *r)
{
	const struct timeval	tv = { 0, PAUSE_MS * 1000L };

	if (!r->is_paused)		/* told once until one is taken */
		log_warn("box %s: accept", r->box->id);
	r->is_paused = 1;
	(void)event_del(&r->ev);
	if (event_add(&r->pause, &tv) == -1)
		fatalx("event_add");
}

static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct relay	*r = arg;
	int		 c, i;

	(void)what;
	for (i = 0; i < ACCEPTS; i++) {
		c = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (c != -1) {
			r->is_paused = 0;
			take(r, c);
		} else if (errno == EMFILE || errno == ENFILE ||
		    errno == ENOBUFS || errno == ENOMEM) {
			accept_pause(r);
			return;
		} else if (errno == EAGAIN)
			return;
	}
}

/* ---- all of it ----------------------------------------------------- */

struct relay *
relay_new(struct box *b, int listener)
{
	struct relay	*r = xcalloc(1, sizeof(*r));

	r->box = b;
	r->fd = listener;
	r->looks = looks_new();
	TAILQ_INIT(&r->conns);
	TAILQ_INIT(&r->queue);
	(void)event_assign(&r->pause, rl.base, -1, 0, on_pause, r);
	(void)event_assign(&r->ev, rl.base, listener, EV_READ | EV_PERSIST,
	    on_accept, r);
	if (event_add(&r->ev, NULL) == -1)
		fatalx("event_add");
	return r;
}

void
relay_free(struct relay *r)
{
	struct conn	*c;

	if (r == NULL)
		return;
	while ((c = TAILQ_FIRST(&r->conns)) != NULL)
		conn_end(c, 1);
	looks_free(r->looks);
	if (r->is_ready)
		TAILQ_REMOVE(&rl.queue, r, ready);
	(void)event_del(&r->ev);
	(void)event_del(&r->pause);
	fd_close(&r->fd);
	free(r);
}

void
relay_judge(struct relay *r)
{
	struct conn	*c, *next;

	for (c = TAILQ_FIRST(&r->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, next);
		if (allow_find(r->box->allow, c->named->name, c->port) !=
		    ALLOW_YES)
			conn_end(c, 1);
	}
}

void
relay_init(struct event_base *base, unsigned int most, unsigned int room)
{
	rl.base = base;
	rl.most = most;
	rl.room = room;
	TAILQ_INIT(&rl.queue);
	if ((rl.turn = event_new(base, -1, 0, on_turn, NULL)) == NULL)
		fatalx("event_new");
}
