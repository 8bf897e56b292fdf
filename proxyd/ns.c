/*
 * ns.c: the name service of a box: UDP and TCP.
 *
 * Must never ask anyone outside, answer a name that the list has not with
 * anything but that there is none, or keep more of a box than the bounds
 * below.
 *
 * A question of a name that has no address yet waits for box_name(), which
 * cannot be told to forget it: `struct ask' is that function's until it has
 * called back.  It stands in the service's list meanwhile, and is cut off
 * there when the service ends, and from its connection when that ends; what
 * it then brings is for nobody.
 *
 * A connection has one question at a time; the next is looked at when the
 * answer has gone out, and nothing is read until then.
 */
#include <sys/socket.h>

#include <netinet/in.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "proxyd.h"
#include "ulid.h"
#include "xmalloc.h"

#define TURN		32		/* datagrams, or connections accepted */
#define CLIENTS		8
#define ASKS		64		/* questions that wait: box.c's, too */
#define IDLE_S		10		/* from one answer to the next */
#define PAUSE_US	100000		/* without accepting */
#define RATE		100		/* questions a second */
#define BURST		500
#define TELL_MS		1000		/* of too many, once in ... */
#define PREFIX		2		/* bytes of a length over TCP */
#define NS_PORT		53

struct client {
	TAILQ_ENTRY(client) next;
	struct ns	*ns;		/* borrowed */
	struct ask	*ask;		/* borrowed: box_name(); or NULL */
	struct event	*in, *out, *idle; /* owned */
	int		 fd;		/* owned */
	int		 going;		/* client_go() is at it */
	int		 eof, dead;
	size_t		 n, nout, sent;
	uint8_t		 buf[PREFIX + DNS_QUERY_MAX];
	uint8_t		 answer[PREFIX + DNS_MAX];
};

/* Who is to be answered. */
struct asker {
	struct client	*client;	/* borrowed; NULL: by a datagram */
	struct sockaddr_storage from;
	socklen_t	 fromlen;
};

struct ask {
	TAILQ_ENTRY(ask) next;
	struct ns	*ns;		/* borrowed; NULL: it has ended */
	struct asker	 asker;
	int		 nobody;	/* the connection has ended */
	struct dns_query query;
	uint8_t		 question[DNS_QUERY_MAX];
};

TAILQ_HEAD(clients, client);
TAILQ_HEAD(asks, ask);

struct ns {
	struct event_base *base;	/* borrowed */
	struct box	*box;		/* borrowed: box.c; whose this is */
	struct event	*on_udp, *on_tcp, *on_pause; /* owned */
	int		 udp, tcp;	/* owned */
	struct clients	 clients;
	struct asks	 asks;
	unsigned int	 nclients, nasks;
	uint64_t	 tokens;	/* thousandths of a question */
	uint64_t	 filled_ms, told_ms;
	int		 told, is_paused;
};

static const uint8_t	service[4] = { 198, 19, 255, 3 };

static void	client_go(struct client *);

/* ---- limits -------------------------------------------------------------- */

/* Too many were asked: said now and then. */
static void
limited(struct ns *ns, int proto, uint64_t now)
{
	if (ns->told && now - ns->told_ms < TELL_MS)
		return;
	ns->told = 1;
	ns->told_ms = now;
	box_denied(ns->box, DENIED_LIMITED, "", service, 0, proto, NS_PORT);
}

/* Whether one more may be asked. */
static int
may_ask(struct ns *ns, int proto)
{
	uint64_t	now = mono_ms(), most = (uint64_t)BURST * 1000;

	if (now - ns->filled_ms >= most / RATE)
		ns->tokens = most;
	else
		ns->tokens += (now - ns->filled_ms) * RATE;
	if (ns->tokens > most)
		ns->tokens = most;
	ns->filled_ms = now;
	if (ns->tokens < 1000) {
		limited(ns, proto, now);
		return 0;
	}
	ns->tokens -= 1000;
	return 1;
}

/* ---- answers ------------------------------------------------------------- */

/* A datagram that does not fit is lost, as all may be: who asks asks again. */
static void
answer(struct ns *ns, const struct asker *to, const struct dns_query *q,
    enum dns_rcode rcode, const uint8_t *addr)
{
	uint8_t		 buf[DNS_MAX];
	struct client	*c = to->client;
	size_t		 n;

	if (c == NULL) {
		n = dns_answer(q, rcode, addr, buf);
		(void)sendto(ns->udp, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL,
		    (const struct sockaddr *)&to->from, to->fromlen);
		return;
	}
	n = dns_answer(q, rcode, addr, c->answer + PREFIX);
	c->answer[0] = (uint8_t)(n >> 8);
	c->answer[1] = (uint8_t)n;
	c->nout = PREFIX + n;
	c->sent = 0;
}

static int
is_listed(const struct ns *ns, const struct dns_query *q)
{
	return q->is_name && ns->box->allow != NULL &&
	    allow_find(ns->box->allow, q->name, 0) != ALLOW_NOT;
}

static void
denied(struct ns *ns, enum denied_rule rule, const struct asker *to,
    const struct dns_query *q)
{
	box_denied(ns->box, rule, q->name, NULL, 0, to->client == NULL ?
	    IPPROTO_UDP : IPPROTO_TCP, 0);
}

static void
refuse(struct ns *ns, const struct asker *to, const struct dns_query *q)
{
	denied(ns, DENIED_NAME, to, q);
	answer(ns, to, q, DNS_NXDOMAIN, NULL);
}

/* The list can be another by now. */
static void
answer_named(struct ns *ns, struct ask *a, const struct named *d)
{
	uint8_t		addr[4];
	uint32_t	v;

	if (!is_listed(ns, &a->query)) {
		refuse(ns, &a->asker, &a->query);
		return;
	}
	if (d == NULL) {
		/* else there may be one when it asks again */
		if (box_used_up(ns->box))
			denied(ns, DENIED_EXHAUSTED, &a->asker, &a->query);
		answer(ns, &a->asker, &a->query, DNS_SERVFAIL, NULL);
		return;
	}
	v = htonl(named_addr(d));
	memcpy(addr, &v, sizeof(addr));
	answer(ns, &a->asker, &a->query, DNS_NOERROR, addr);
}

/* Of box_name(), now or later. */
static void
on_named(void *arg, struct named *d)
{
	struct ask	*a = arg;
	struct ns	*ns = a->ns;
	struct client	*c = a->asker.client;

	if (ns != NULL) {
		TAILQ_REMOVE(&ns->asks, a, next);
		ns->nasks--;
	}
	if (ns != NULL && !a->nobody) {
		answer_named(ns, a, d);
		if (c != NULL) {
			c->ask = NULL;
			client_go(c);
		}
	}
	free(a);
}

/* ---- questions ----------------------------------------------------------- */

static void
ask_address(struct ns *ns, const struct asker *from,
    const struct dns_query *q)
{
	struct ask	*a;

	if (ns->nasks == ASKS) {	/* by a datagram: it comes again */
		if (from->client != NULL)
			answer(ns, from, q, DNS_SERVFAIL, NULL);
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->ns = ns;
	a->asker = *from;
	a->query = *q;
	memcpy(a->question, q->question, q->nquestion);
	a->query.question = a->question;
	TAILQ_INSERT_TAIL(&ns->asks, a, next);
	ns->nasks++;
	if (from->client != NULL)
		from->client->ask = a;
	box_name(ns->box, a->query.name, on_named, a);
}

/* One query.  -1: nothing can be said to it. */
static int
asked(struct ns *ns, const struct asker *from, const uint8_t *p, size_t n)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	int			r = dns_parse(p, n, &q, &rcode);

	if (r == 0)
		return -1;
	if (r == -1)
		answer(ns, from, &q, rcode, NULL);
	else if (ns->box->allow == NULL)	/* not read yet */
		answer(ns, from, &q, DNS_SERVFAIL, NULL);
	else if (!is_listed(ns, &q))
		refuse(ns, from, &q);
	else if (q.type == DNS_T_A)
		ask_address(ns, from, &q);
	else
		answer(ns, from, &q, DNS_NOERROR, NULL);
	return 0;
}

static void
on_udp(evutil_socket_t fd, short what, void *arg)
{
	struct ns	*ns = arg;
	struct asker	 from = { .client = NULL };
	uint8_t		 buf[DNS_QUERY_MAX + 1];
	ssize_t		 n;
	int		 i;

	(void)what;
	for (i = 0; i < TURN; i++) {
		from.fromlen = sizeof(from.from);
		n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT,
		    (struct sockaddr *)&from.from, &from.fromlen);
		if (n == -1)
			return;		/* none, or an error of one of ours */
		if (may_ask(ns, IPPROTO_UDP))
			(void)asked(ns, &from, buf, (size_t)n);
	}
}

/* ---- connections --------------------------------------------------------- */

static void
client_free(struct client *c)
{
	struct ns	*ns = c->ns;

	TAILQ_REMOVE(&ns->clients, c, next);
	ns->nclients--;
	if (c->ask != NULL)
		c->ask->nobody = 1;
	event_free(c->in);
	event_free(c->out);
	event_free(c->idle);
	fd_close(&c->fd);
	free(c);
}

static void
be_idle(struct client *c)
{
	struct timeval	tv = { IDLE_S, 0 };

	if (event_add(c->idle, &tv) == -1)
		c->dead = 1;
}

/* Whether all of an answer is sent, or there is none. */
static int
client_send(struct client *c)
{
	ssize_t	n;

	if (c->nout == 0)
		return 1;
	n = send(c->fd, c->answer + c->sent, c->nout - c->sent,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == -1 && errno != EAGAIN && errno != EINTR)
		c->dead = 1;
	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent < c->nout)
		return 0;
	c->nout = 0;
	be_idle(c);
	return 1;
}

/* The next query, if it has come whole. */
static int
client_next(struct client *c)
{
	struct asker	from = { .client = c };
	size_t		n;

	if (c->n < PREFIX)
		return 0;
	n = (size_t)c->buf[0] << 8 | c->buf[1];
	if (n > DNS_QUERY_MAX) {
		c->dead = 1;
		return 0;
	}
	if (c->n < PREFIX + n)
		return 0;
	if (!may_ask(c->ns, IPPROTO_TCP) ||
	    asked(c->ns, &from, c->buf + PREFIX, n) == -1)
		c->dead = 1;
	c->n -= PREFIX + n;
	memmove(c->buf, c->buf + PREFIX + n, c->n);
	return 1;
}

/* What is waited for now. */
static int
client_wait(struct client *c)
{
	if (c->nout > 0)
		return event_add(c->out, NULL);
	if (c->ask != NULL)
		return 0;
	return event_add(c->in, NULL);
}

/*
 * Answers as many as it can; may free the connection.  An answer that comes
 * within leaves the rest to the outer one.
 */
static void
client_go(struct client *c)
{
	if (c->going)
		return;
	c->going = 1;
	(void)event_del(c->in);
	while (!c->dead && c->ask == NULL && client_send(c) && client_next(c))
		;
	c->going = 0;
	if (c->eof && c->ask == NULL && c->nout == 0)
		c->dead = 1;
	if (c->dead || client_wait(c) == -1)
		client_free(c);
}

static void
on_in(evutil_socket_t fd, short what, void *arg)
{
	struct client	*c = arg;
	ssize_t		 n;

	(void)what;
	n = recv(fd, c->buf + c->n, sizeof(c->buf) - c->n, MSG_DONTWAIT);
	if (n == -1 && errno != EAGAIN && errno != EINTR)
		c->dead = 1;
	if (n == 0)
		c->eof = 1;
	if (n > 0)
		c->n += (size_t)n;
	client_go(c);
}

static void
on_out(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	client_go(arg);
}

static void
on_idle(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	client_free(arg);
}

static void
client_new(struct ns *ns, int fd)
{
	struct client	*c = xcalloc(1, sizeof(*c));

	c->ns = ns;
	c->fd = fd;
	c->in = event_new(ns->base, fd, EV_READ, on_in, c);
	c->out = event_new(ns->base, fd, EV_WRITE, on_out, c);
	c->idle = event_new(ns->base, -1, 0, on_idle, c);
	if (c->in == NULL || c->out == NULL || c->idle == NULL)
		fatalx("event_new");
	TAILQ_INSERT_TAIL(&ns->clients, c, next);
	ns->nclients++;
	be_idle(c);
	client_go(c);
}

/* ---- accepting ----------------------------------------------------------- */

static void
accept_pause(struct ns *ns)
{
	struct timeval	tv = { 0, PAUSE_US };

	if (!ns->is_paused)		/* told once until one is taken */
		log_warn("box %s: accept for its name service", ns->box->id);
	ns->is_paused = 1;
	(void)event_del(ns->on_tcp);
	if (event_add(ns->on_pause, &tv) == -1)
		fatalx("event_add");
}

static void
on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct ns	*ns = arg;

	(void)fd;
	(void)what;
	if (event_add(ns->on_tcp, NULL) == -1)
		fatalx("event_add");
}

static void
on_tcp(evutil_socket_t lfd, short what, void *arg)
{
	struct ns	*ns = arg;
	int		 fd, i;

	(void)what;
	for (i = 0; i < TURN; i++) {
		fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd == -1) {
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOBUFS || errno == ENOMEM)
				accept_pause(ns);
			return;		/* else one connection's, or EAGAIN */
		}
		ns->is_paused = 0;
		if (ns->nclients < CLIENTS)
			client_new(ns, fd);
		else
			fd_close(&fd);
	}
}

/* ---- the service --------------------------------------------------------- */

struct ns *
ns_new(struct event_base *base, struct box *box, int udp, int tcp)
{
	struct ns	*ns = xcalloc(1, sizeof(*ns));

	ns->base = base;
	ns->box = box;
	ns->udp = udp;
	ns->tcp = tcp;
	TAILQ_INIT(&ns->clients);
	TAILQ_INIT(&ns->asks);
	ns->tokens = (uint64_t)BURST * 1000;
	ns->filled_ms = mono_ms();
	ns->on_udp = event_new(base, udp, EV_READ | EV_PERSIST, on_udp, ns);
	ns->on_tcp = event_new(base, tcp, EV_READ | EV_PERSIST, on_tcp, ns);
	ns->on_pause = event_new(base, -1, 0, on_pause, ns);
	if (ns->on_udp == NULL || ns->on_tcp == NULL ||
	    ns->on_pause == NULL || event_add(ns->on_udp, NULL) == -1 ||
	    event_add(ns->on_tcp, NULL) == -1)
		fatalx("event_add");
	return ns;
}

void
ns_free(struct ns *ns)
{
	struct ask	*a;

	if (ns == NULL)
		return;
	while (!TAILQ_EMPTY(&ns->clients))
		client_free(TAILQ_FIRST(&ns->clients));
	while ((a = TAILQ_FIRST(&ns->asks)) != NULL) {
		TAILQ_REMOVE(&ns->asks, a, next);
		a->ns = NULL;
	}
	event_free(ns->on_udp);
	event_free(ns->on_tcp);
	event_free(ns->on_pause);
	fd_close(&ns->udp);
	fd_close(&ns->tcp);
	free(ns);
}
