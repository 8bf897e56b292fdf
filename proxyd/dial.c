/*
 * dial.c: connecting to a name from the host.
 *
 * Theory of operation.
 *
 *	LOOKS	resolve.c is asked, by looks.c in its turn
 *	TRIES	one address after the other, by turns of both families; the
 *		next is begun when the one before has failed, or has not
 *		answered for STAGGER_MS (RFC 8305, 5).  No more than ATTEMPTS
 *		are under way: then the oldest has PATIENCE_MS more before it
 *		is given up for the next, as soon as that is begun.  The first
 *		that is there is taken, the others are closed.
 *	TUNNEL	where the host is behind a proxy, that is who was looked for;
 *		it is asked for the name, and its answer waited for
 *
 * All together take DEADLINE_MS at most, in which all addresses have their
 * turn.
 *
 * Must never: connect to what resolve.c did not give, or the configuration
 * for a proxy; use an address for longer than this call.
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
#include "xmalloc.h"

#define ATTEMPTS	2		/* what a connection counts, proxyd.c */
#define STAGGER_MS	250
#define PATIENCE_MS	1000
#define DEADLINE_MS	20000
/*
 * What may wait for a box that does not read, or for a slow upstream.  The
 * kernel has twice as much for RECEIVE with all that it keeps beside bytes, or
 * as much as net.core.rmem_max allows.  It stays at that: TCP_WINDOW_CLAMP is
 * no bound, for the kernel raises it again as it measures how fast is read.
 */
#define RECEIVE		(512 * 1024)
#define UNSENT		(256 * 1024)

struct attempt {
	struct dial	*dial;
	int		 fd;		/* owned; -1: none */
	struct event	 ev;
};

struct dial {
	struct event_base	*base;	/* borrowed */
	void			(*cb)(void *, int, const struct resolved *,
				    const char *);
	void			*arg;
	unsigned int		 port;	/* of who is connected to */
	char			 name[ALLOW_NAME];	/* that was wanted */
	unsigned int		 name_port;
	int			 is_upstream;	/* TUNNEL is to come */
	int			 tunnel;	/* owned; -1: not yet */
	struct event		 told;		/* TUNNEL */
	struct look		*look;		/* LOOKS */
	struct resolved		 found;
	int			 next;		/* of found */
	int			 tried;		/* attempts under way */
	int			 error;		/* errno of the last */
	char			 why[80];	/* what is told of a failure */
	struct attempt		 at[RESOLVE_MAX];
	struct event		 stagger, deadline;
};

static void	try_next(struct dial *);

static void
attempts_drop(struct dial *d)
{
	int	i;

	for (i = 0; i < RESOLVE_MAX; i++) {
		if (d->at[i].fd == -1)
			continue;
		(void)event_del(&d->at[i].ev);
		fd_close(&d->at[i].fd);
	}
	(void)event_del(&d->stagger);
}

static void
dial_free(struct dial *d)
{
	if (d->look != NULL)
		look_cancel(d->look);
	attempts_drop(d);
	if (d->tunnel != -1) {
		(void)event_del(&d->told);
		fd_close(&d->tunnel);
	}
	(void)event_del(&d->deadline);
	free(d);
}

void
dial_cancel(struct dial *d)
{
	dial_free(d);
}

/* refused and why are d's, or live for the call. */
static void
over(struct dial *d, int fd, const struct resolved *refused, const char *why)
{
	void	(*cb)(void *, int, const struct resolved *,
		    const char *) = d->cb;
	void	*arg = d->arg;

	d->cb = NULL;
	cb(arg, fd, refused, why);
	dial_free(d);
}

/* No policy did it. */
static void
fail(struct dial *d, const char *why)
{
	(void)snprintf(d->why, sizeof(d->why), "%s%s",
	    d->is_upstream ? "upstream-proxy: " : "", why);
	over(d, -1, NULL, d->why);
}

static void
timer_add(struct event *ev, unsigned int ms)
{
	struct timeval	tv = { ms / 1000, (suseconds_t)(ms % 1000 * 1000) };

	if (event_add(ev, &tv) == -1)
		fatalx("event_add");
}

/* ---- one address --------------------------------------------------- */

static void
attempt_drop(struct attempt *a, int error)
{
	(void)event_del(&a->ev);
	fd_close(&a->fd);
	a->dial->tried--;
	a->dial->error = error;
}

/*
 * Its answer, of which no byte behind the head is taken: what is there stays,
 * and is looked at again only when there is more, or its end.
 */
static void
on_told(evutil_socket_t fd, short what, void *arg)
{
	static uint8_t	 buf[UPSTREAM_MAX];
	struct dial	*d = arg;
	size_t		 head = 0;
	ssize_t		 n = recv(fd, buf, sizeof(buf), MSG_PEEK);
	int		 r;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	r = n <= 0 ? -1 : upstream_told(buf, (size_t)n, &head);
	if (r == 0 && !(what & EV_CLOSED))
		return;
	if (r == 1 && recv(fd, buf, head, 0) == (ssize_t)head) {
		(void)event_del(&d->told);
		over(d, steal_fd(&d->tunnel), NULL, NULL);
		return;
	}
	fail(d, n > 0 ? "it does not connect to that" : "it has hung up");
}

/* Takes the socket; the others are not wanted any more. */
static void
tunnel_ask(struct dial *d, int fd)
{
	char	buf[UPSTREAM_MAX];
	size_t	n = upstream_ask(d->name, d->name_port, buf);

	d->tunnel = fd;
	d->next = d->found.n;
	attempts_drop(d);
	(void)event_assign(&d->told, d->base, fd, EV_READ | EV_CLOSED |
	    EV_ET | EV_PERSIST, on_told, d);
	if (event_add(&d->told, NULL) == -1)
		fatalx("event_add");
	/* a new connection has room for so little */
	if (send(fd, buf, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail(d, "it cannot be asked");
}

static void
on_attempt(evutil_socket_t fd, short what, void *arg)
{
	struct attempt	*a = arg;
	socklen_t	 len = sizeof(int);
	int		 e = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == -1 || e != 0) {
		attempt_drop(a, e);
		try_next(a->dial);
		return;
	}
	(void)event_del(&a->ev);
	if (a->dial->is_upstream)
		tunnel_ask(a->dial, steal_fd(&a->fd));
	else
		over(a->dial, steal_fd(&a->fd), NULL, NULL);
}

static socklen_t
sockaddr_of(const struct dial *d, int i, struct sockaddr_storage *ret)
{
	struct sockaddr_in	*in = (struct sockaddr_in *)ret;
	struct sockaddr_in6	*in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (d->found.v6[i]) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)d->port);
		memcpy(&in6->sin6_addr, d->found.addr[i], 16);
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)d->port);
	memcpy(&in->sin_addr, d->found.addr[i], 4);
	return sizeof(*in);
}

/* Each of these bounds or quickens; a connection without it is one as well. */
static void
options_set(int fd)
{
	static const struct { int level, name, value; } options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_RCVBUF, RECEIVE },
		{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ SOL_SOCKET, SO_OOBINLINE, 1 },
	};
	size_t	i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(fd, options[i].level, options[i].name,
		    &options[i].value, sizeof(int));
}

/* 0: it is under way; -1: it cannot be. */
static int
attempt(struct dial *d, int i)
{
	struct attempt		*a = &d->at[i];
	struct sockaddr_storage	 sa;
	socklen_t		 len = sockaddr_of(d, i, &sa);

	a->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	if (a->fd == -1) {
		d->error = errno;
		return -1;
	}
	options_set(a->fd);
	if (connect(a->fd, (struct sockaddr *)&sa, len) == -1 &&
	    errno != EINPROGRESS) {
		d->error = errno;
		fd_close(&a->fd);
		return -1;
	}
	a->dial = d;
	(void)event_assign(&a->ev, d->base, a->fd, EV_WRITE, on_attempt, a);
	if (event_add(&a->ev, NULL) == -1)
		fatalx("event_add");
	d->tried++;
	return 0;
}

static void
try_next(struct dial *d)
{
	while (d->next < d->found.n)
		if (attempt(d, d->next++) == 0) {
			timer_add(&d->stagger, d->tried < ATTEMPTS ?
			    STAGGER_MS : PATIENCE_MS);
			return;
		}
	if (d->tried == 0)
		fail(d, strerror(d->error));
}

/* The one that was begun first. */
static void
oldest_drop(struct dial *d)
{
	int	i;

	for (i = 0; i < d->next; i++)
		if (d->at[i].fd != -1) {
			attempt_drop(&d->at[i], ETIMEDOUT);
			return;
		}
}

static void
on_stagger(evutil_socket_t fd, short what, void *arg)
{
	struct dial	*d = arg;
	const int	 full = d->tried == ATTEMPTS;

	(void)fd;
	(void)what;
	try_next(d);
	if (full && d->tried > ATTEMPTS)	/* not for one that cannot be */
		oldest_drop(d);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct dial	*d = arg;

	(void)fd;
	(void)what;
	fail(d, d->look != NULL ? "no resolver has answered" :
	    d->tunnel != -1 ? "it has not answered" : strerror(ETIMEDOUT));
}

/* ---- all of it ----------------------------------------------------- */

static void
on_resolved(void *arg, const struct resolved *r)
{
	struct dial	*d = arg;

	d->look = NULL;
	d->found = *r;
	if (r->n > 0)
		try_next(d);
	else if (r->why == RESOLVED_SEALED || r->why == RESOLVED_HOST)
		over(d, -1, r, NULL);
	else
		fail(d, r->why == RESOLVED_LATE ? "no resolver has answered" :
		    "no address was found");
}

struct dial *
dial_name(struct event_base *base, struct looks *looks, const char *name,
    unsigned int port, void (*cb)(void *, int, const struct resolved *,
    const char *), void *arg)
{
	struct dial		*d = xcalloc(1, sizeof(*d));
	const struct resolved	*at;
	const char		*up;
	int			 i;

	d->base = base;
	d->cb = cb;
	d->arg = arg;
	d->port = d->name_port = port;
	d->tunnel = -1;
	(void)str_copy(d->name, name, sizeof(d->name));	/* was bounded */
	for (i = 0; i < RESOLVE_MAX; i++)
		d->at[i].fd = -1;
	(void)event_assign(&d->stagger, base, -1, 0, on_stagger, d);
	(void)event_assign(&d->deadline, base, -1, 0, on_deadline, d);
	timer_add(&d->deadline, DEADLINE_MS);
	up = upstream_host(&d->port, &at);
	d->is_upstream = up != NULL;
	if (up == NULL)
		d->look = look_up(looks, name, 0, on_resolved, d);
	else if (at == NULL)
		d->look = look_up(looks, up, 1, on_resolved, d);
	else {
		d->found = *at;
		timer_add(&d->stagger, 0);
	}
	return d;
}
