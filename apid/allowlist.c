/*
 * allowlist.c: lists of what boxes may reach by name: from a request, to and
 * from stored.
 *
 * A list is never kept here: with 10,000 entries it is larger than all else
 * that is known of a box, and proxyd reads it of stored.  It is there from a
 * request until stored has it, in pages, of which the row that names them is
 * written last (SANDBOX_NETWORK): a list that was put in part is nobody's.
 *
 * Names that are not ASCII cost as much as a hundred others: a list is taken
 * from a request in turns, between which the loop does what else there is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "apid.h"
#include "log.h"
#include "sort.h"
#include "xmalloc.h"

#define PAGE_ENTRIES	1000
#define PAGE_BYTES	56000
#define TURN_MS		5	/* of the loop's time, at once */
#define AGAIN		5	/* a list that changes while it is read */

/* ---- lists --------------------------------------------------------- */

void
allowlist_free(struct allowlist *l)
{
	size_t	i;

	if (l == NULL)
		return;
	for (i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	free(l);
}

static void
append(struct allowlist *l, const char *s)
{
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 16 : l->cap * 2;
		l->v = xreallocarray(l->v, l->cap, sizeof(*l->v));
	}
	l->v[l->n++] = xstrdup(s);
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
order(const void *a, const void *b, const void *arg)
{
	(void)arg;
	return compare(a, b);
}

/* In order, each once. */
static void
settle(struct allowlist *l)
{
	size_t	i, n = 0;

	if (l->n == 0)
		return;
	sort(l->v, l->n, sizeof(*l->v), order, NULL);
	for (i = 1; i < l->n; i++)
		if (strcmp(l->v[n], l->v[i]) == 0)
			free(l->v[i]);
		else
			l->v[++n] = l->v[i];
	l->n = n + 1;
}

/* ---- from a request -------------------------------------------------- */

struct take {
	struct http_req		*req;
	const json_t		*entries;	/* borrowed: the request's */
	const char		*member;	/* static */
	size_t			 next;		/* entry */
	struct allowlist	*list;		/* owned */
	void			(*cb)(void *, struct allowlist *);
	void			*arg;
};

static void
take_over(struct take *t)
{
	void			(*cb)(void *, struct allowlist *) = t->cb;
	struct allowlist	*l = t->list;
	void			*arg = t->arg;

	free(t);
	if (l != NULL)
		settle(l);
	cb(arg, l);
}

/* UTF-8 without controls, by the schema; cut where it is longer than any. */
static void
take_refuse(struct take *t, const char *entry, const char *why)
{
	size_t	n = utf8_prefix((const uint8_t *)entry, strnlen(entry,
		    ALLOW_TEXT));
	char	field[64];

	(void)snprintf(field, sizeof(field), "%s[%zu]", t->member, t->next);
	http_fail(t->req, CODE_BAD_REQUEST, field, "%.*s: %s.", (int)n,
	    entry, why);
	allowlist_free(steal_ptr(&t->list));
	take_over(t);
}

static void
take_turn(int fd, short what, void *arg)
{
	const struct timeval	 soon = { 0, 1000 };
	struct take		*t = arg;
	const uint64_t		 t0 = mono_ms();
	char			 canon[ALLOW_TEXT];
	const char		*why, *s;

	(void)fd;
	(void)what;
	for (; t->next < json_array_size(t->entries); t->next++) {
		if (mono_ms() - t0 >= TURN_MS) {
			if (event_base_once(env.base, -1, EV_TIMEOUT,
			    take_turn, t, &soon) == -1)
				fatalx("add timer: out of memory");
			return;
		}
		s = json_string_value(json_array_get(t->entries, t->next));
		if (allow_canon(s, canon, &why) == -1) {
			take_refuse(t, s, why);
			return;
		}
		append(t->list, canon);
	}
	take_over(t);
}

void
allowlist_take(struct http_req *r, const char *member,
    void (*cb)(void *, struct allowlist *), void *arg)
{
	struct take	*t = xcalloc(1, sizeof(*t));

	t->req = r;
	t->entries = json_object_get(http_json(r), member);
	t->member = member;
	t->list = xcalloc(1, sizeof(*t->list));
	t->cb = cb;
	t->arg = arg;
	take_turn(-1, 0, t);
}

/* ---- changes ----------------------------------------------------------- */

static int
has(const struct allowlist *l, const char *s)
{
	return l->n != 0 &&
	    bsearch(&s, l->v, l->n, sizeof(*l->v), compare) != NULL;
}

int
allowlist_change(struct allowlist *l, const struct allowlist *add,
    const struct allowlist *drop)
{
	size_t	i, n = 0;

	for (i = 0; i < l->n; i++)
		if (has(drop, l->v[i]))
			free(l->v[i]);
		else
			l->v[n++] = l->v[i];
	l->n = n;
	for (i = 0; i < add->n; i++)
		append(l, add->v[i]);
	settle(l);
	return l->n > ALLOW_MAX ? -1 : 0;
}

json_t *
allowlist_json(const struct allowlist *l)
{
	json_t	*a = json_array();
	size_t	 i;

	for (i = 0; i < l->n; i++)
		(void)json_array_append_new(a,	/* NULL only w/o memory */
		    json_string(l->v[i]));
	return a;
}

/* ---- to stored ----------------------------------------------------- */

struct put {
	char			 id[27];
	struct allowlist	*list;		/* owned */
	size_t			 next;		/* entry */
	unsigned int		 page;
	void			(*cb)(void *, enum wb_code, const char *);
	void			*arg;
};

static void	put_page(struct put *);

static void
put_over(struct put *p, enum wb_code code, const char *detail)
{
	void	(*cb)(void *, enum wb_code, const char *) = p->cb;
	void	*arg = p->arg;

	allowlist_free(p->list);
	free(p);
	cb(arg, code, detail);
}

static void
put_done(void *arg, const struct msg *m)
{
	struct put	*p = arg;

	if (peer_code(m) != CODE_NONE)
		put_over(p, peer_code(m), peer_detail(m));
	else if (p->next == p->list->n)
		put_over(p, CODE_NONE, "");
	else {
		p->page++;
		put_page(p);
	}
}

static void
put_page(struct put *p)
{
	static struct wire_bin	 v[PAGE_ENTRIES];
	struct msg_allow_put	 m = { .page = p->page,
				    .entries = { v, 0 } };
	size_t			 bytes = 0;

	for (; p->next < p->list->n && m.entries.n < PAGE_ENTRIES;
	    p->next++) {
		v[m.entries.n] = wire_cstr(p->list->v[p->next]);
		/* and what stands before a string */
		if ((bytes += v[m.entries.n].len + 3) > PAGE_BYTES)
			break;
		m.entries.n++;
	}
	(void)str_copy(m.id, p->id, sizeof(m.id));
	peer_ask(env.stored, MSG_ALLOW_PUT, &m, T_STORE, put_done, p);
}

void
allowlist_put(const char *id, struct allowlist *l,
    void (*cb)(void *, enum wb_code, const char *), void *arg)
{
	struct put	*p = xcalloc(1, sizeof(*p));

	(void)str_copy(p->id, id, sizeof(p->id));
	p->list = l;
	p->cb = cb;
	p->arg = arg;
	put_page(p);
}

/* ---- from stored --------------------------------------------------- */

struct get {
	char			 id[27];
	struct allowlist	*list;		/* owned */
	uint64_t		 generation, page;
	unsigned int		 tries;
	void			(*cb)(void *, struct allowlist *,
				    enum wb_code, const char *);
	void			*arg;
};

static void	get_page(struct get *);

static void
get_over(struct get *g, enum wb_code code, const char *detail)
{
	void			(*cb)(void *, struct allowlist *,
				    enum wb_code, const char *) = g->cb;
	struct allowlist	*l = g->list;
	void			*arg = g->arg;

	free(g);
	if (code != CODE_NONE) {
		allowlist_free(l);
		l = NULL;
	}
	cb(arg, l, code, detail);
}

/* It has become another while it was read. */
static void
get_again(struct get *g)
{
	if (++g->tries > AGAIN) {
		get_over(g, CODE_BUSY, "Its list changes all the time: try "
		    "again.");
		return;
	}
	allowlist_free(g->list);
	g->list = xcalloc(1, sizeof(*g->list));
	g->generation = g->page = 0;
	get_page(g);
}

static void
get_told(void *arg, const struct msg *m)
{
	const struct msg_allow_page	*a = &m->body.allow_page;
	struct get			*g = arg;
	char				 entry[ALLOW_TEXT];
	size_t				 i;

	if (peer_code(m) == CODE_NOT_FOUND && g->generation != 0) {
		get_again(g);
		return;
	}
	if (peer_code(m) != CODE_NONE) {
		get_over(g, peer_code(m), peer_detail(m));
		return;
	}
	for (i = 0; i < a->entries.n; i++) {
		if (a->entries.v[i].len >= sizeof(entry))
			fatalx("stored tells an entry that is none");
		memcpy(entry, a->entries.v[i].data, a->entries.v[i].len);
		entry[a->entries.v[i].len] = '\0';
		append(g->list, entry);
	}
	if (a->more == 0 || g->list->n > ALLOW_MAX) {
		settle(g->list);
		get_over(g, CODE_NONE, "");
		return;
	}
	g->generation = a->generation;
	g->page++;
	get_page(g);
}

static void
get_page(struct get *g)
{
	struct msg_allow_read	m = { .generation = g->generation,
				    .page = g->page };

	(void)str_copy(m.id, g->id, sizeof(m.id));
	peer_ask(env.stored, MSG_ALLOW_READ, &m, T_STORE, get_told, g);
}

void
allowlist_get(const char *id, void (*cb)(void *, struct allowlist *,
    enum wb_code, const char *), void *arg)
{
	struct get	*g = xcalloc(1, sizeof(*g));

	(void)str_copy(g->id, id, sizeof(g->id));
	g->list = xcalloc(1, sizeof(*g->list));
	g->cb = cb;
	g->arg = arg;
	get_page(g);
}
