/*
 * dial.c: connecting to a name from the host.
 *
 * Theory of operation.
 *
 *	LOOKS	resolve.c is asked, by looks.c in its turn
 *	TRIES	one address after the other, by turns of both families; the
 *		next is begun when the one before has failed, or has not
 *		answered for STAGGER_MS (RFC 8305, 5).  The first that is
 *		there is taken, the others are closed.
 *	TUNNEL	where the host is behind a proxy, that is who was looked for;
 *		it is asked for the name, and its answer waited for
 *
 * All together take DEADLINE_MS at most.
 *
 * Must never: connect to what resolve.c did not give, or the configuration
 * for a proxy; use an address for longer than this call.
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
	void			(*cb)(void *, int, const struct resolved *);
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

/* Its answer, of which no byte behind the head is taken. */
static void
on_told(evutil_socket_t fd, short what, void *arg)
{
	static uint8_t	 buf[UPSTREAM_MAX];
	struct dial	*d = arg;
	size_t		 head = 0;
	ssize_t		 n = recv(fd, buf, sizeof(buf), MSG_PEEK);
	int		 r;

	(void)what;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	r = n <= 0 ? -1 : upstream_told(buf, (size_t)n, &head);
	if (r == 0)
		return;
	if (r == 1 && recv(fd, buf, head, 0) == (ssize_t)head) {
		(void)event_del(&d->told);
		over(d, steal_fd(&d->tunnel), NULL);
		return;
	}
	log_warnx("upstream-proxy does not connect to %s:%u", d->name,
	    d->name_port);
	over(d, -1, NULL);
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
	/* level: what is there of a head is looked at again with each part */
	(void)event_assign(&d->told, d->base, fd, EV_READ | EV_PERSIST,
	    on_told, d);
	if (event_add(&d->told, NULL) == -1)
		fatalx("event_add");
	/* a new connection has room for so little */
	if (send(fd, buf, n, MSG_NOSIGNAL) != (ssize_t)n)
		over(d, -1, NULL);
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
	if (a->dial->is_upstream)
		tunnel_ask(a->dial, steal_fd(&a->fd));
	else
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

	d->look = NULL;
	d->found = *r;
	if (r->n == 0)
		over(d, -1, r->why == RESOLVED_SEALED ||
		    r->why == RESOLVED_HOST ? r : NULL);
	else
		try_next(d);
}

struct dial *
dial_name(struct event_base *base, struct looks *looks, const char *name,
    unsigned int port, void (*cb)(void *, int, const struct resolved *),
    void *arg)
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
