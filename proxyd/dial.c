/*
 * dial.c: connecting to a name from the host.
 *
 * Theory of operation.
 *
 *	LOOKS	resolve.c is asked
 *	TRIES	one address after the other, by turns of both families; the
 *		next is begun when the one before has failed, or has not
 *		answered for STAGGER_MS (RFC 8305, 5).  The first that is
 *		there is taken, the others are closed.
 *
 * Both together take DEADLINE_MS at most.
 *
 * Must never: connect to what resolve.c did not give; use an address for
 * longer than this call.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "proxyd.h"
#include "xmalloc.h"

#define STAGGER_MS	250
#define DEADLINE_MS	20000
/* What may wait for a box that does not read, or for a slow upstream. */
#define WINDOW		(1024 * 1024)
#define UNSENT		(256 * 1024)

struct attempt {
	struct dial	*dial;
	int		 fd;		/* owned; -1: none */
	struct event	 ev;
};

struct dial {
	struct event_base	*base;	/* borrowed */
	void			(*cb)(void *, int, const struct resolved *);
	void			*arg;
	unsigned int		 port;
	struct lookup		*lookup;	/* LOOKS */
	struct resolved		 found;
	int			 next;		/* of found */
	int			 tried;		/* attempts under way */
	struct attempt		 at[RESOLVE_MAX];
	struct event		 stagger, deadline;
};

static void	try_next(struct dial *);

static void
dial_free(struct dial *d)
{
	int	i;

	if (d->lookup != NULL)
		resolve_cancel(d->lookup);
	for (i = 0; i < RESOLVE_MAX; i++) {
		if (d->at[i].fd == -1)
			continue;
		(void)event_del(&d->at[i].ev);
		fd_close(&d->at[i].fd);
	}
	(void)event_del(&d->stagger);
	(void)event_del(&d->deadline);
	free(d);
}

void
dial_cancel(struct dial *d)
{
	dial_free(d);
}

static void
over(struct dial *d, int fd, const struct resolved *why)
{
	void	(*cb)(void *, int, const struct resolved *) = d->cb;
	void	*arg = d->arg;

	/* why is d's, or lives for the call */
	d->cb = NULL;
	cb(arg, fd, why);
	dial_free(d);
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
attempt_end(struct attempt *a)
{
	struct dial	*d = a->dial;

	(void)event_del(&a->ev);
	fd_close(&a->fd);
	d->tried--;
	try_next(d);
}

static void
on_attempt(evutil_socket_t fd, short what, void *arg)
{
	struct attempt	*a = arg;
	socklen_t	 len = sizeof(int);
	int		 e = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == -1 || e != 0) {
		attempt_end(a);
		return;
	}
	(void)event_del(&a->ev);
	over(a->dial, steal_fd(&a->fd), NULL);
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
		{ IPPROTO_TCP, TCP_WINDOW_CLAMP, WINDOW },
		{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
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
	if (a->fd == -1)
		return -1;
	options_set(a->fd);
	if (connect(a->fd, (struct sockaddr *)&sa, len) == -1 &&
	    errno != EINPROGRESS) {
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
			timer_add(&d->stagger, STAGGER_MS);
			return;
		}
	if (d->tried == 0)
		over(d, -1, NULL);
}

static void
on_stagger(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	try_next(arg);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	over(arg, -1, NULL);
}

/* ---- all of it ----------------------------------------------------- */

static void
on_resolved(void *arg, const struct resolved *r)
{
	struct dial	*d = arg;

	d->lookup = NULL;
	d->found = *r;
	if (r->n == 0)
		over(d, -1, r->why == RESOLVED_SEALED ||
		    r->why == RESOLVED_HOST ? r : NULL);
	else
		try_next(d);
}

struct dial *
dial(struct event_base *base, const char *name, unsigned int port,
    void (*cb)(void *, int, const struct resolved *), void *arg)
{
	struct dial	*d = xcalloc(1, sizeof(*d));
	int		 i;

	d->base = base;
	d->cb = cb;
	d->arg = arg;
	d->port = port;
	for (i = 0; i < RESOLVE_MAX; i++)
		d->at[i].fd = -1;
	(void)event_assign(&d->stagger, base, -1, 0, on_stagger, d);
	(void)event_assign(&d->deadline, base, -1, 0, on_deadline, d);
	timer_add(&d->deadline, DEADLINE_MS);
	d->lookup = resolve(name, on_resolved, d);
	return d;
}
