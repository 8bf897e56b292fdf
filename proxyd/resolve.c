/*
 * resolve.c: names to addresses that may be connected to, by c-ares.
 *
 * A name is looked up when a box wants to connect, never when it asks the
 * name service: so what a box asks goes nowhere.  What it approved to connect
 * to is asked of the host's resolvers, or of `egress-dns'; no file of the
 * host's (its hosts(5) least of all) has a say.
 *
 * Every address of an answer is held against what is sealed, sealed.def with
 * `deny' and `except', and against the host's own addresses, which are read
 * again whenever the kernel tells that they may have changed.  While they are
 * not known, nothing is let through.  Who asked connects to an address of the
 * answer that it was given, and to no other: nothing is looked up twice.
 *
 * c-ares chooses its ids and ports when it is started; without /dev/urandom it
 * would do so by a rand(3) that nobody has seeded.  Therefore it is started
 * before the fence, and once.
 *
 * Must never: give an address that was not held against both.
 */
#include <arpa/inet.h>
#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "hostaddr.h"
#include "log.h"
#include "proxyd.h"
#include "sealed.h"
#include "xmalloc.h"

#define TIMEOUT_MS	2000	/* the first try of each server */
#define TRIES		3
#define PAUSE_MS	5	/* from news of the host's addresses on */
#define RETRY_MS	1000	/* until they are read again */

struct lookup {
	void	(*cb)(void *, const struct resolved *);	/* NULL: cancelled */
	void	 *arg;
	int	  any;		/* nothing is held against its addresses */
};

/* A socket of c-ares's. */
struct watched {
	LIST_ENTRY(watched)	 next;
	ares_socket_t		 fd;	/* borrowed: c-ares */
	struct event		*read, *write;	/* owned */
};

static struct {
	ares_channel		 ares;		/* owned */
	struct event_base	*base;		/* borrowed */
	struct event		*timer;		/* owned */
	LIST_HEAD(, watched)	 watched;
	int			 news, ask;	/* owned; hostaddr_open() */
	struct event		*look;		/* owned */
	struct hosts		 hosts;
	int			 known;
} rs = { .news = -1, .ask = -1 };

/* ---- what may not be connected to ---------------------------------- */

static int
is_host(const struct prefix *p)
{
	return !rs.known ||
	    spans_hold(p->len == 4 ? &rs.hosts.v4 : &rs.hosts.v6, p);
}

static void
prefix_of(const uint8_t *addr, int v6, struct prefix *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->len = v6 ? 16 : 4;
	ret->bits = v6 ? 128 : 32;
	memcpy(ret->addr, addr, ret->len);
}

/* ---- the host's addresses ------------------------------------------ */

static void
look_in(unsigned int ms)
{
	struct timeval	tv = { ms / 1000, (suseconds_t)(ms % 1000 * 1000) };

	if (!event_pending(rs.look, EV_TIMEOUT, NULL) &&
	    event_add(rs.look, &tv) == -1)
		fatalx("event_add");
}

static void
look(void)
{
	struct hosts	now;

	if (hostaddr_ask(rs.ask, &now) == -1) {
		if (rs.known)
			log_warn("read the host's addresses: nothing is let "
			    "through until they are known");
		rs.known = 0;
		return;
	}
	hosts_free(&rs.hosts);
	rs.hosts = now;
	rs.known = 1;
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	look();
	if (!rs.known)
		look_in(RETRY_MS);
}

/* What was there before is held against until then: it is a moment. */
static void
on_news(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	(void)arg;
	/* lost announcements are news as well */
	if (hostaddr_news(fd) != 0)
		look_in(PAUSE_MS);
}

/* ---- c-ares in the loop -------------------------------------------- */

static void
timer_set(void)
{
	struct timeval	tv, *t = ares_timeout(rs.ares, NULL, &tv);

	if (t == NULL)
		(void)event_del(rs.timer);
	else if (event_add(rs.timer, t) == -1)
		fatalx("event_add");
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	ares_process_fd(rs.ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	timer_set();
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)arg;
	ares_process_fd(rs.ares, what & EV_READ ? fd : ARES_SOCKET_BAD,
	    what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	timer_set();
}

static void
watched_free(struct watched *w)
{
	LIST_REMOVE(w, next);
	event_free(w->read);
	event_free(w->write);
	free(w);
}

static struct watched *
watched_new(ares_socket_t fd)
{
	struct watched	*w = xcalloc(1, sizeof(*w));

	w->fd = fd;
	w->read = event_new(rs.base, fd, EV_READ | EV_PERSIST, on_ready, NULL);
	w->write = event_new(rs.base, fd, EV_WRITE | EV_PERSIST, on_ready,
	    NULL);
	if (w->read == NULL || w->write == NULL)
		fatalx("event_new");
	LIST_INSERT_HEAD(&rs.watched, w, next);
	return w;
}

static void
want(struct event *ev, int on)
{
	if ((on ? event_add(ev, NULL) : event_del(ev)) == -1)
		fatalx("event_add");
}

/* c-ares opens a socket, wants something of it, or is about to close it. */
static void
on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct watched	*w;

	(void)arg;
	LIST_FOREACH(w, &rs.watched, next)
		if (w->fd == fd)
			break;
	if (!readable && !writable) {
		if (w != NULL)
			watched_free(w);
		return;
	}
	if (w == NULL)
		w = watched_new(fd);
	want(w->read, readable);
	want(w->write, writable);
}

/* ---- answers ------------------------------------------------------- */

/* One address of an answer; the first that is refused is remembered. */
static void
take(struct resolved *r, const uint8_t *addr, int v6, int any)
{
	struct prefix	p;
	int		is_sealed, host;

	prefix_of(addr, v6, &p);
	is_sealed = !any && sealed_holds(&p);
	host = !any && is_host(&p);
	if (!is_sealed && !host) {
		if (r->n < RESOLVE_MAX) {
			r->v6[r->n] = v6;
			memcpy(r->addr[r->n++], addr, p.len);
		}
		return;
	}
	if (r->why != RESOLVED_NONE)
		return;
	r->why = is_sealed ? RESOLVED_SEALED : RESOLVED_HOST;
	r->refused_v6 = v6;
	memcpy(r->refused, addr, p.len);
}

static void
take_node(struct resolved *r, const struct ares_addrinfo_node *n, int v6,
    int any)
{
	if (v6 && n->ai_family == AF_INET6 &&
	    n->ai_addrlen >= sizeof(struct sockaddr_in6))
		take(r, ((const struct sockaddr_in6 *)(const void *)
		    n->ai_addr)->sin6_addr.s6_addr, 1, any);
	else if (!v6 && n->ai_family == AF_INET &&
	    n->ai_addrlen >= sizeof(struct sockaddr_in))
		take(r, (const uint8_t *)&((const struct sockaddr_in *)
		    (const void *)n->ai_addr)->sin_addr, 0, any);
}

/* The next of a family behind this one. */
static const struct ares_addrinfo_node *
of_family(const struct ares_addrinfo_node *n, int family)
{
	while (n != NULL && n->ai_family != family)
		n = n->ai_next;
	return n;
}

/* By turns of IPv6 and IPv4, as who connects tries them: RFC 8305, 4. */
static void
take_all(struct resolved *r, const struct ares_addrinfo *a, int any)
{
	const struct ares_addrinfo_node	*v6 = of_family(a->nodes, AF_INET6),
					*v4 = of_family(a->nodes, AF_INET);

	while (v6 != NULL || v4 != NULL) {
		if (v6 != NULL) {
			take_node(r, v6, 1, any);
			v6 = of_family(v6->ai_next, AF_INET6);
		}
		if (v4 != NULL) {
			take_node(r, v4, 0, any);
			v4 = of_family(v4->ai_next, AF_INET);
		}
	}
}

static void
on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *a)
{
	struct lookup	*l = arg;
	struct resolved	 r = { .why = RESOLVED_NONE };

	(void)timeouts;
	if (status == ARES_SUCCESS && a != NULL)
		take_all(&r, a, l->any);
	else if (status == ARES_ETIMEOUT)
		r.why = RESOLVED_LATE;
	if (r.n > 0)
		r.why = RESOLVED_OK;
	if (a != NULL)
		ares_freeaddrinfo(a);
	if (l->cb != NULL)
		l->cb(l->arg, &r);
	free(l);
}

/*
 * c-ares may answer within the call; who asks is told later all the same.
 */
struct start {
	struct lookup	*lookup;	/* c-ares's from on_start() on */
	char		 name[ALLOW_NAME];
};

static void
on_start(evutil_socket_t fd, short what, void *arg)
{
	const struct ares_addrinfo_hints	 hints = {
		.ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC };
	struct start				*s = arg;

	(void)fd;
	(void)what;
	if (s->lookup->cb == NULL)
		free(s->lookup);
	else {
		ares_getaddrinfo(rs.ares, s->name, NULL, &hints, on_answer,
		    s->lookup);
		timer_set();
	}
	free(s);
}

static struct lookup *
lookup(const char *name, int any,
    void (*cb)(void *, const struct resolved *), void *arg)
{
	const struct timeval	 now = { 0, 0 };
	struct start		*s = xcalloc(1, sizeof(*s));

	s->lookup = xcalloc(1, sizeof(*s->lookup));
	s->lookup->cb = cb;
	s->lookup->arg = arg;
	s->lookup->any = any;
	(void)str_copy(s->name, name, sizeof(s->name));	/* was bounded */
	if (event_base_once(rs.base, -1, EV_TIMEOUT, on_start, s, &now) == -1)
		fatalx("event_base_once");
	return s->lookup;
}

struct lookup *
resolve(const char *name, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	return lookup(name, 0, cb, arg);
}

struct lookup *
resolve_any(const char *name, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	return lookup(name, 1, cb, arg);
}

void
resolve_cancel(struct lookup *l)
{
	l->cb = NULL;
}

/* ---- start --------------------------------------------------------- */

static void
servers_set(const struct conf *c)
{
	int	e;

	if (strcmp(c->egress_dns, "host") == 0)
		return;			/* resolv.conf(5) was read */
	if ((e = ares_set_servers_csv(rs.ares, c->egress_dns)) !=
	    ARES_SUCCESS)
		fatalx("egress-dns %s: %s", c->egress_dns, ares_strerror(e));
}

void
resolve_open(const struct conf *c)
{
	static char		 lookups[] = "b";	/* DNS alone */
	struct ares_options	 o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TIMEOUT_MS, .tries = TRIES,
		/* getaddrinfo searches in spite of the flag: nowhere, then */
		.domains = NULL, .ndomains = 0, .ndots = 0,
		.lookups = lookups, .sock_state_cb = on_socket };
	int			 e;

	if (sealed_init(&c->deny, &c->except) == -1)
		fatal("deny or except");
	hosts_init(&rs.hosts);
	if (hostaddr_open(&rs.news, &rs.ask) == -1)
		fatal("open rtnetlink");
	if ((e = ares_library_init(ARES_LIB_INIT_ALL)) != ARES_SUCCESS ||
	    (e = ares_init_options(&rs.ares, &o, ARES_OPT_FLAGS |
	    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
	    ARES_OPT_DOMAINS | ARES_OPT_NDOTS |
	    ARES_OPT_SOCK_STATE_CB)) != ARES_SUCCESS)
		fatalx("start c-ares: %s", ares_strerror(e));
	servers_set(c);
}

void
resolve_init(struct event_base *base)
{
	struct event	*ev;

	rs.base = base;
	if ((rs.timer = event_new(base, -1, 0, on_timer, NULL)) == NULL ||
	    (rs.look = event_new(base, -1, 0, on_look, NULL)) == NULL ||
	    (ev = event_new(base, rs.news, EV_READ | EV_PERSIST, on_news,
	    NULL)) == NULL || event_add(ev, NULL) == -1)
		fatalx("event_add");
	look();
	if (!rs.known)
		look_in(RETRY_MS);
}
