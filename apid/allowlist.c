/*
 * allowlist.c: lists of what boxes may reach by name: from a request, to and
 * from stored.
 *
 * A list is never kept here: with 10,000 entries it is larger than all else
 * that is known of a box, and proxyd reads it of stored.  It is there from a
 * request until stored has it, in pages, of which the row that names them is
 * written last (SANDBOX_NETWORK): a list that was put in part is nobody's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define PAGE_ENTRIES	1000
#define PAGE_BYTES	56000

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

/* In order, each once. */
static void
settle(struct allowlist *l)
{
	size_t	i, n = 0;

	if (l->n == 0)
		return;
	qsort(l->v, l->n, sizeof(*l->v), compare);
	for (i = 1; i < l->n; i++)
		if (strcmp(l->v[n], l->v[i]) == 0)
			free(l->v[i]);
		else
			l->v[++n] = l->v[i];
	l->n = n + 1;
}

/* Shown in an answer: what is no UTF-8 or has controls never gets here. */
static void
refuse(struct http_req *r, const char *member, size_t i, const char *entry,
    const char *why)
{
	char	field[64];

	(void)snprintf(field, sizeof(field), "%s[%zu]", member, i);
	http_fail(r, CODE_BAD_REQUEST, field, "%.*s: %s.", ALLOW_TEXT, entry,
	    why);
}

struct allowlist *
allowlist_take(struct http_req *r, const json_t *entries, const char *member)
{
	struct allowlist	*l = xcalloc(1, sizeof(*l));
	char			 canon[ALLOW_TEXT];
	const char		*why, *s;
	size_t			 i, n = json_array_size(entries);

	for (i = 0; i < n; i++) {
		s = json_string_value(json_array_get(entries, i));
		if (allow_canon(s, canon, &why) == -1) {
			refuse(r, member, i, s, why);
			allowlist_free(l);
			return NULL;
		}
		append(l, canon);
	}
	settle(l);
	return l;
}

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

static void
get_told(void *arg, const struct msg *m)
{
	const struct msg_allow_page	*a = &m->body.allow_page;
	struct get			*g = arg;
	char				 entry[ALLOW_TEXT];
	size_t				 i;

	if (m->row->type == MSG_ERROR) {
		get_over(g, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
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
