/*
 * box.c: the boxes that are served, and what netd says of them.
 *
 * Theory of operation.  A box comes by three sockets of netd's, one after the
 * other:
 *
 *	COMES	some of the sockets are there
 *	READS	all are, and its list is being read from stored
 *	SERVED	by ns.c and relay.c
 *	GONE	PROXY_END, or its list could not be read
 *
 *	COMES -> READS -> SERVED; any -> GONE
 *
 * A list is read in pages, all of one generation; one that became another in
 * between is read from the begin.  A list that is read anew takes the place of
 * the one before when it is whole, and not if it cannot be read: what was
 * asked fails then, and the one before stays.
 *
 * Addresses for names are numbers that stored gives, some at a time, so that
 * none ever means two names: not after a restart either.
 *
 * What is under way when a box goes finds it GONE: it is freed with the last
 * of that.
 *
 * Safe if netd is hostile: it may have boxes served that it has made, by
 * sockets of theirs, and end that; the lists are stored's, by the box's id.
 * A box that was given another's id has that one's list: netd is who says
 * which network is whose, to privd as well.
 *
 * Must never: serve a box without its list; answer a request twice.
 */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "proxyd.h"
#include "xmalloc.h"

#define BUCKETS		1024
#define TAKE		256	/* numbers at a time */
#define AGAIN		5	/* a list that changes while it is read */
#define LAST_PAGE	1023	/* of a list; proto.def */
#define DENIALS		32	/* that differ, in one TELL_MS */
#define TELL_MS		200
#define ROWS		256	/* of one answer */
#define ROWS_BYTES	60000

struct wait {
	STAILQ_ENTRY(wait)	 next;
	void			(*cb)(void *, struct named *);
	void			*arg;
	char			 name[ALLOW_NAME];
};

/* What was denied and is not told yet. */
struct denial {
	enum denied_rule	 rule;
	char			 name[ALLOW_NAME];
	uint8_t			 addr[16];
	size_t			 len;		/* of addr; 0: none */
	int			 proto;
	unsigned int		 port;
	uint64_t		 count, since_ms;
};

/* A list on its way. */
struct reading {
	struct chan	*chan;		/* borrowed: who asked */
	uint32_t	 rid;
	struct allow	*allow;		/* owned */
	uint64_t	 generation;	/* 0: page 0 is due */
	unsigned int	 page, tries;
};

struct served {
	struct box		 box;	/* what others see */
	struct event		*tell;	/* owned */
	int			 sock[BOX_NSOCKETS]; /* owned, until SERVED */
	unsigned int		 refs;	/* asks under way, and the table */
	int			 gone;
	struct reading		*reading;	/* owned; NULL: none */
	int			 taking;	/* NAMES_TAKE is under way */
	int			 used_up;
	STAILQ_HEAD(, wait)	 waits;
	unsigned int		 ndenials;
	struct denial		*denials;	/* owned, DENIALS of them */
	uint64_t		 untold[DENIED_RULES];
};

static LIST_HEAD(, box)		 boxes[BUCKETS];
static struct event_base	*base;		/* borrowed */

static void	read_next(struct served *);

/* ---- the table ----------------------------------------------------- */

static struct served *
of(struct box *b)
{
	return (struct served *)b;	/* its first member */
}

/* FNV-1a: ids are the host's, nobody can choose them to collide. */
static size_t
bucket(const char *id)
{
	uint32_t	h = 2166136261U;

	for (; *id != '\0'; id++)
		h = (h ^ (uint8_t)*id) * 16777619U;
	return h % BUCKETS;
}

static struct served *
box_find(const char *id)
{
	struct box	*b;

	LIST_FOREACH(b, &boxes[bucket(id)], hash)
		if (strcmp(b->id, id) == 0)
			return of(b);
	return NULL;
}

static void	on_tell(evutil_socket_t, short, void *);

static struct served *
served_new(const char *id)
{
	struct served	*s = xcalloc(1, sizeof(*s));
	int		 i;

	(void)str_copy(s->box.id, id, sizeof(s->box.id));	/* bounded */
	for (i = 0; i < BOX_NSOCKETS; i++)
		s->sock[i] = -1;
	s->refs = 1;
	STAILQ_INIT(&s->waits);
	s->box.names = names_new();
	if ((s->tell = event_new(base, -1, 0, on_tell, s)) == NULL)
		fatalx("event_new");
	LIST_INSERT_HEAD(&boxes[bucket(id)], &s->box, hash);
	return s;
}

static void
served_unref(struct served *s)
{
	if (--s->refs > 0)
		return;
	names_free(s->box.names);
	allow_free(s->box.allow);
	event_free(s->tell);
	free(s->denials);
	free(s);
}

/* ---- what was denied ----------------------------------------------- */

static void
tell(struct served *s, const struct denial *d)
{
	struct msg_proxy_denied	m = { .rule = d->rule, .count = d->count,
	    .protocol = (uint64_t)d->proto, .port = d->port,
	    .since_ms = d->since_ms, .address = { d->addr, d->len } };

	(void)str_copy(m.id, s->box.id, sizeof(m.id));
	(void)str_copy(m.name, d->name, sizeof(m.name));
	proxyd_tell_netd(MSG_PROXY_DENIED, &m);
}

static void
tell_all(struct served *s)
{
	struct denial	d = { .since_ms = now_ms() };
	unsigned int	i;

	for (i = 0; i < s->ndenials; i++)
		tell(s, &s->denials[i]);
	s->ndenials = 0;
	for (i = 0; i < DENIED_RULES; i++) {
		if (s->untold[i] == 0)
			continue;
		d.rule = i;
		d.count = s->untold[i];
		s->untold[i] = 0;
		tell(s, &d);
	}
}

static void
on_tell(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tell_all(arg);
}

static int
is_same(const struct denial *a, const struct denial *b)
{
	return a->rule == b->rule && a->port == b->port &&
	    a->proto == b->proto && a->len == b->len &&
	    memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 &&
	    strcmp(a->name, b->name) == 0;
}

/* Several of one kind are one that counts; of too many kinds the rule alone. */
static void
gather(struct served *s, const struct denial *d)
{
	unsigned int	i;

	for (i = 0; i < s->ndenials; i++)
		if (is_same(&s->denials[i], d)) {
			s->denials[i].count++;
			return;
		}
	if (s->ndenials == DENIALS) {
		s->untold[d->rule]++;
		return;
	}
	if (s->denials == NULL)
		s->denials = xreallocarray(NULL, DENIALS, sizeof(*d));
	s->denials[s->ndenials++] = *d;
}

void
box_denied(struct box *b, enum denied_rule rule, const char *name,
    const uint8_t *addr, int v6, int proto, unsigned int port)
{
	const struct timeval	 tv = { 0, TELL_MS * 1000L };
	struct served		*s = of(b);
	struct denial		 d = { .rule = rule, .proto = proto,
				    .port = port, .count = 1 };

	d.since_ms = now_ms();
	(void)str_copy(d.name, name, sizeof(d.name));	/* cut where longer */
	if (addr != NULL) {
		d.len = v6 ? 16 : 4;
		memcpy(d.addr, addr, d.len);
	}
	gather(s, &d);
	if (!event_pending(s->tell, EV_TIMEOUT, NULL) &&
	    event_add(s->tell, &tv) == -1)
		fatalx("event_add");
}

/* ---- addresses for names ------------------------------------------- */

/* What waits is told, as far as there are numbers; or all of it: none is. */
static void
waits_end(struct served *s)
{
	struct wait	*w;

	while ((w = STAILQ_FIRST(&s->waits)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->waits, next);
		w->cb(w->arg, s->gone ? NULL : names_give(s->box.names,
		    w->name));
		free(w);
	}
}

static void
on_taken(void *arg, const struct msg *m)
{
	const struct msg_names_taken	*t;
	struct served			*s = arg;

	s->taking = 0;
	if (m != NULL && m->row->type == MSG_NAMES_TAKEN) {
		t = &m->body.names_taken;
		s->used_up = t->count == 0;
		if (s->used_up)
			log_warnx("box %s: no address is left for names",
			    s->box.id);
		else if (t->first + t->count - 1 <= NAMES_LAST)
			names_room(s->box.names, (unsigned int)t->first,
			    (unsigned int)t->count);
		else
			log_warnx("box %s: no addresses for names: stored "
			    "gives such as there are not", s->box.id);
	} else
		log_warnx("box %s: no addresses for names: %s", s->box.id,
		    m == NULL ? "stored does not answer" :
		    m->row->type == MSG_ERROR ? m->body.error.detail :
		    "stored answers something else");
	waits_end(s);
	served_unref(s);
}

static void
take_more(struct served *s)
{
	struct msg_names_take	m = { .count = TAKE };

	if (s->taking)
		return;
	s->taking = 1;
	s->refs++;
	(void)str_copy(m.id, s->box.id, sizeof(m.id));
	proxyd_ask_stored(MSG_NAMES_TAKE, &m, on_taken, s);
}

void
box_name(struct box *b, const char *name, void (*cb)(void *, struct named *),
    void *arg)
{
	struct served	*s = of(b);
	struct named	*n = names_find(b->names, name);
	struct wait	*w;

	if (n == NULL && names_left(b->names) > 0)
		n = names_give(b->names, name);
	if (n != NULL || names_left(b->names) > 0 || s->gone || s->used_up) {
		cb(arg, n);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->cb = cb;
	w->arg = arg;
	(void)str_copy(w->name, name, sizeof(w->name));	/* was bounded */
	STAILQ_INSERT_TAIL(&s->waits, w, next);
	take_more(s);
}

int
box_used_up(const struct box *b)
{
	return ((const struct served *)b)->used_up ||
	    names_left(b->names) > 0;
}

/* ---- the list ------------------------------------------------------ */

static void
reading_free(struct served *s)
{
	allow_free(s->reading->allow);
	free(s->reading);
	s->reading = NULL;
}

/* Out of the table; what is under way holds it. */
static void
served_end(struct served *s)
{
	int	i;

	s->gone = 1;
	LIST_REMOVE(&s->box, hash);
	waits_end(s);			/* of ns.c, which lives */
	relay_free(steal_ptr(&s->box.relay));
	ns_free(steal_ptr(&s->box.ns));
	for (i = 0; i < BOX_NSOCKETS; i++)
		fd_close(&s->sock[i]);
	(void)event_del(s->tell);
	tell_all(s);
	if (s->reading != NULL)
		reading_free(s);
	served_unref(s);
}

/* It cannot be read; what is served already goes on as it is. */
static void
read_fail(struct served *s, const char *why)
{
	struct reading	*r = s->reading;

	log_warnx("box %s: read its list: %s", s->box.id, why);
	proxyd_sent(r->chan, chan_error(r->chan, r->rid, CODE_INTERNAL,
	    "its list: %s", why));
	reading_free(s);
	if (s->box.relay == NULL)
		served_end(s);
}

static void
read_done(struct served *s)
{
	struct reading	*r = s->reading;

	allow_done(r->allow);
	allow_free(s->box.allow);
	s->box.allow = steal_ptr(&r->allow);
	if (s->box.relay == NULL) {
		s->box.ns = ns_new(base, &s->box, steal_fd(&s->sock[BOX_UDP]),
		    steal_fd(&s->sock[BOX_TCP]));
		s->box.relay = relay_new(&s->box,
		    steal_fd(&s->sock[BOX_RELAY]));
	} else
		relay_judge(s->box.relay);
	log_debug("box %s: %zu entries", s->box.id, allow_count(s->box.allow));
	proxyd_sent(r->chan, chan_ok(r->chan, r->rid));
	reading_free(s);
}

/* NULL, or what is wrong with the page. */
static const char *
read_page(struct reading *r, const struct msg_allow_page *p)
{
	char	entry[ALLOW_TEXT];
	size_t	i, n;

	if (r->generation != 0 && p->generation != r->generation)
		return "stored tells another's page";
	if (p->more != 0 && (p->entries.n == 0 || r->page == LAST_PAGE))
		return "its pages do not end";
	r->generation = p->generation;
	for (i = 0; i < p->entries.n; i++) {
		if ((n = p->entries.v[i].len) >= sizeof(entry))
			return "an entry is none";
		memcpy(entry, p->entries.v[i].data, n);
		entry[n] = '\0';
		if (allow_add(r->allow, entry) == -1)
			return errno == E2BIG ? "it is too long" :
			    "an entry is none";
	}
	return NULL;
}

/* It has become another while it was read. */
static void
read_again(struct served *s)
{
	struct reading	*r = s->reading;

	if (++r->tries > AGAIN) {
		read_fail(s, "it changes all the time");
		return;
	}
	allow_free(r->allow);
	r->allow = allow_new();
	r->generation = 0;
	r->page = 0;
	read_next(s);
}

static void
on_page(void *arg, const struct msg *m)
{
	struct served	*s = arg;
	struct reading	*r = s->reading;
	const char	*why;

	if (s->gone) {
		served_unref(s);
		return;
	}
	if (m == NULL)
		read_fail(s, "stored does not answer");
	else if (m->row->type == MSG_ERROR &&
	    m->body.error.code == CODE_NOT_FOUND && r->generation != 0)
		read_again(s);
	else if (m->row->type != MSG_ALLOW_PAGE)
		read_fail(s, m->row->type == MSG_ERROR ?
		    m->body.error.detail : "stored answers something else");
	else if ((why = read_page(r, &m->body.allow_page)) != NULL)
		read_fail(s, why);
	else if (m->body.allow_page.more == 0)
		read_done(s);
	else {
		r->page++;
		read_next(s);
	}
	served_unref(s);
}

static void
read_next(struct served *s)
{
	struct msg_allow_read	m = { .generation = s->reading->generation,
				    .page = s->reading->page };

	(void)str_copy(m.id, s->box.id, sizeof(m.id));
	s->refs++;
	proxyd_ask_stored(MSG_ALLOW_READ, &m, on_page, s);
}

static void
read_start(struct served *s, struct chan *c, uint32_t rid)
{
	s->reading = xcalloc(1, sizeof(*s->reading));
	s->reading->chan = c;
	s->reading->rid = rid;
	s->reading->allow = allow_new();
	read_next(s);
}

/* ---- netd ---------------------------------------------------------- */

static void
refuse(struct chan *c, const struct msg *m, enum wb_code code,
    const char *why)
{
	proxyd_sent(c, chan_error(c, m->rid, code, "%s", why));
}

static int
has_all(const struct served *s)
{
	int	i;

	for (i = 0; i < BOX_NSOCKETS; i++)
		if (s->sock[i] == -1)
			return 0;
	return 1;
}

static void
on_box(struct chan *c, struct msg *m)
{
	const struct msg_proxy_box	*q = &m->body.proxy_box;
	struct served			*s = box_find(q->id);

	if (s == NULL)
		s = served_new(q->id);
	if (s->reading != NULL || s->box.relay != NULL ||
	    s->sock[q->socket] != -1) {
		refuse(c, m, CODE_EXISTS, "the box has that socket");
		return;
	}
	s->sock[q->socket] = steal_fd(&m->fd);
	if (has_all(s))
		read_start(s, c, m->rid);
	else
		proxyd_sent(c, chan_ok(c, m->rid));
}

static void
on_list(struct chan *c, const struct msg *m)
{
	struct served	*s = box_find(m->body.proxy_list.id);

	if (s == NULL || s->box.relay == NULL)
		refuse(c, m, CODE_NOT_FOUND, "the box is not served");
	else if (s->reading != NULL)
		refuse(c, m, CODE_BUSY, "its list is being read");
	else
		read_start(s, c, m->rid);
}

static void
on_end(struct chan *c, const struct msg *m)
{
	struct served	*s = box_find(m->body.proxy_end.id);

	if (s != NULL && s->reading != NULL)
		proxyd_sent(c, chan_error(c, s->reading->rid,
		    CODE_BAD_TRANSITION, "it was ended"));
	if (s != NULL)
		served_end(s);
	proxyd_sent(c, chan_ok(c, m->rid));
}

/* ---- what was done by name ----------------------------------------- */

static ssize_t
row_put(uint8_t *buf, size_t room, const struct named *n)
{
	struct row_named	r = { .connections = n->connections,
	    .open = n->open, .sent_bytes = n->sent_bytes,
	    .received_bytes = n->received_bytes };

	(void)str_copy(r.name, n->name, sizeof(r.name));	/* as long */
	return wire_encode(&wire_row_named, &r, buf, room);
}

/* As many as one answer has room for, from the first in order on. */
static void
on_names(struct chan *c, const struct msg *m)
{
	static uint8_t			 buf[ROWS_BYTES];
	static struct wire_bin		 rows[ROWS];
	struct msg_proxy_names_are	 a = { .rows = { rows, 0 } };
	struct served			*s = box_find(m->body.proxy_names.id);
	struct named			*n = NULL;
	size_t				 used = 0;
	ssize_t				 r;

	if (s != NULL)
		n = names_next(s->box.names, "");
	while (n != NULL && a.rows.n < ROWS && (r = row_put(buf + used,
	    sizeof(buf) - used, n)) != -1) {
		rows[a.rows.n++] = (struct wire_bin){ buf + used, (size_t)r };
		used += (size_t)r;
		n = names_next(s->box.names, n->name);
	}
	proxyd_sent(c, chan_send(c, MSG_PROXY_NAMES_ARE, m->rid, &a, -1));
}

void
box_on_netd(struct chan *c, struct msg *m)
{
	switch (m->row->type) {
	case MSG_PROXY_BOX:
		on_box(c, m);
		return;
	case MSG_PROXY_LIST:
		on_list(c, m);
		return;
	case MSG_PROXY_END:
		on_end(c, m);
		return;
	case MSG_PROXY_NAMES:
		on_names(c, m);
		return;
	default:
		fatalx("netd sends %s", m->row->name);
	}
}

void
box_init(struct event_base *b)
{
	int	i;

	base = b;
	for (i = 0; i < BUCKETS; i++)
		LIST_INIT(&boxes[i]);
}
