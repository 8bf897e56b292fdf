/*
 * apid_lists.c: see apid_lists.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "apid_lists.h"
#include "xmalloc.h"

#define PAGES	64		/* of a list */
#define PAGE_N	1000		/* entries that apid puts into one, at most */

struct page {
	size_t		 n;
	char		(*v)[ALLOW_TEXT];	/* owned */
};

/* A list that is put, and the one that is recorded. */
static struct lists {
	struct page	 put[PAGES], is[PAGES];
	unsigned int	 put_pages, pages;
	uint64_t	 generation;
} lists[WORLD_BOXES];

/* Who waits. */
static struct {
	struct chan	*chan;
	uint32_t	 rid;
} waits;

static struct lists *
of(const struct world_box *b, const struct world_shared *s)
{
	return &lists[b - s->box];
}

/* ---- steps ------------------------------------------------------------ */

int
lists_step(struct world_shared *s, enum world_step step, struct chan *c,
    uint32_t rid)
{
	if (s->at_step != step || ++s->at_seen < s->at_nth)
		return 0;
	if (s->at_once)
		s->at_step = WORLD_NO_STEP;
	if (s->at_code != CODE_NONE) {
		(void)chan_error(c, rid, s->at_code, "told to fail");
		return 1;
	}
	waits.chan = c;
	waits.rid = rid;
	s->waits = 1;
	return 1;
}

void
lists_let_go(struct world_shared *s)
{
	if (!s->waits || !s->go_on)
		return;
	s->waits = s->go_on = 0;
	(void)chan_error(waits.chan, waits.rid, CODE_BAD_TRANSITION,
	    "told to wait, and to fail");
}

/* ---- stored ----------------------------------------------------------- */

static void
pages_free(struct page *p, unsigned int *n)
{
	for (; *n > 0; (*n)--)
		free(p[*n - 1].v);
}

/* As much of it as there is room for, with blanks between. */
static void
show(char dst[WORLD_LIST], const char *entry)
{
	size_t	n = strlen(dst);

	(void)snprintf(dst + n, WORLD_LIST - n, "%s%s", n == 0 ? "" : " ",
	    entry);
}

/* What is no entry in canonical form, or not in order behind the last. */
static const char *
page_take(struct world_box *b, struct lists *l, const struct msg_allow_put *m)
{
	struct allow	*a = allow_new();
	struct page	*p = &l->put[l->put_pages++];
	const char	*why = NULL, *last = "";
	size_t		 i;

	if (l->put_pages > 1 && p[-1].n > 0)
		last = p[-1].v[p[-1].n - 1];
	p->n = m->entries.n;
	p->v = xreallocarray(NULL, p->n + 1, sizeof(*p->v));
	for (i = 0; i < p->n; last = p->v[i++]) {
		(void)snprintf(p->v[i], sizeof(p->v[i]), "%.*s",
		    (int)m->entries.v[i].len,
		    (const char *)m->entries.v[i].data);
		if (allow_add(a, p->v[i]) == -1)
			why = "an entry that is not canonical";
		else if (strcmp(last, p->v[i]) >= 0)
			why = "entries that are not in order";
		show(b->put, p->v[i]);
	}
	allow_free(a);
	return why;
}

const char *
lists_put(struct world_box *b, struct world_shared *s, struct chan *c,
    const struct msg *m)
{
	const struct msg_allow_put	*q = &m->body.allow_put;
	struct lists			*l = of(b, s);
	const char			*why;

	b->puts++;
	if (lists_step(s, WORLD_PUT, c, m->rid))
		return NULL;
	if (q->page == 0) {
		pages_free(l->put, &l->put_pages);
		b->put_pages = b->put_most = b->put_n = 0;
		b->put[0] = '\0';
	}
	if (q->page != l->put_pages || q->page == PAGES)
		return "a page that is not the next";
	if (q->entries.n > PAGE_N || (q->page != 0 && q->entries.n == 0))
		return "a page with too few or too many entries";
	if ((why = page_take(b, l, q)) != NULL)
		return why;
	b->put_pages = l->put_pages;
	b->put_n += (unsigned int)q->entries.n;
	if (b->put_most < q->entries.n)
		b->put_most = (unsigned int)q->entries.n;
	(void)chan_ok(c, m->rid);
	return NULL;
}

const char *
lists_read(struct world_box *b, struct world_shared *s, struct chan *c,
    const struct msg *m)
{
	const struct msg_allow_read	*q = &m->body.allow_read;
	static struct wire_bin		 v[PAGE_N];
	struct lists			*l = of(b, s);
	struct msg_allow_page		 a = { .generation = l->generation,
					    .entries = { v, 0 } };

	s->reads++;
	if (lists_step(s, WORLD_READ, c, m->rid))
		return NULL;
	if (!b->listed || (q->page == 0) != (q->generation == 0) ||
	    (q->page != 0 && q->generation != l->generation)) {
		(void)chan_error(c, m->rid, CODE_NOT_FOUND, "no such list");
		return NULL;
	}
	if (q->page >= l->pages)
		return "a page that was not told of";
	for (; a.entries.n < l->is[q->page].n; a.entries.n++)
		v[a.entries.n] = wire_cstr(l->is[q->page].v[a.entries.n]);
	a.more = l->pages - q->page - 1;
	(void)chan_send(c, MSG_ALLOW_PAGE, m->rid, &a, -1);
	return NULL;
}

void
lists_recorded(struct world_box *b, struct world_shared *s, int has)
{
	struct lists	*l = of(b, s);

	b->listed = has;
	if (!has)
		return;
	if (l->put_pages == 0 && l->pages == 0) {	/* as it began */
		l->put[0].n = 0;
		l->put[0].v = NULL;
		l->put_pages = 1;
	}
	if (l->put_pages == 0)
		return;			/* it goes back to what it had */
	pages_free(l->is, &l->pages);
	memcpy(l->is, l->put, sizeof(l->is));
	l->pages = l->put_pages;
	l->put_pages = 0;
	l->generation++;
	b->list_n = b->put_n;
	(void)str_copy(b->list, b->put, sizeof(b->list));
}

/* ---- netd ------------------------------------------------------------- */

static struct wire_bin
row(const char *name, uint64_t n)
{
	static uint8_t	 buf[8][512];
	static unsigned	 at;
	struct row_named r = { .connections = n, .open = 1,
	    .sent_bytes = n * 2, .received_bytes = n * 3 };
	struct wire_bin	 b;
	ssize_t		 len;

	at = (at + 1) % 8;
	(void)str_copy(r.name, name, sizeof(r.name));
	len = wire_encode(&wire_row_named, &r, buf[at], sizeof(buf[at]));
	b.data = buf[at];
	b.len = len == -1 ? 0 : (size_t)len;
	return b;
}

void
lists_names(struct world_shared *s, struct chan *c, const struct msg *m)
{
	static const uint8_t		 junk[] = { 0x81, 0xc1, 0xff };
	struct wire_bin			 v[4];
	struct msg_net_names_are	 a = { .rows = { v, 0 } };

	if (lists_step(s, WORLD_NAMES, c, m->rid))
		return;
	v[a.rows.n++] = row("a.example", 5);
	if (s->odd_names) {
		v[a.rows.n].data = junk;
		v[a.rows.n++].len = sizeof(junk);
		v[a.rows.n] = row("cut.example", 1);
		v[a.rows.n++].len--;
	}
	v[a.rows.n++] = row("b.example", 7);
	(void)chan_send(c, MSG_NET_NAMES_ARE, m->rid, &a, -1);
}
