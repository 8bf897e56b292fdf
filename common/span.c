/*
 * span.c: sets of addresses as intervals, in order and disjoint, as sets of
 * the kernel's want them.
 *
 * Two ways to make them disjoint.  spans_merge() joins all that touches: the
 * fewest intervals.  spans_nest() only leaves out what lies within another,
 * which is enough for prefixes (two of them are nested or disjoint), so that
 * an interval is one of the prefixes that were added and stays the same when
 * a neighbour comes or goes.
 */
#include <stdlib.h>
#include <string.h>

#include "sort.h"
#include "span.h"
#include "xmalloc.h"

void
spans_init(struct spans *s, size_t len)
{
	memset(s, 0, sizeof(*s));
	s->len = len;
}

void
spans_free(struct spans *s)
{
	free(s->v);
	spans_init(s, s->len);
}

static void
spans_put(struct spans *s, const struct span *v)
{
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 16;
		s->v = xreallocarray(s->v, s->cap, sizeof(*s->v));
	}
	s->v[s->n++] = *v;
}

void
spans_join(struct spans *to, const struct spans *from)
{
	size_t	i;

	for (i = 0; i < from->n; i++)
		spans_put(to, &from->v[i]);
}

void
spans_copy(struct spans *to, const struct spans *from)
{
	to->n = 0;
	to->len = from->len;
	spans_join(to, from);
}

void
span_of(const struct prefix *p, struct span *ret)
{
	unsigned int	i;

	memcpy(ret->first, p->addr, sizeof(ret->first));
	memcpy(ret->last, p->addr, sizeof(ret->last));
	for (i = p->bits; i < p->len * 8U; i++)
		ret->last[i / 8] |= (uint8_t)(0x80U >> i % 8);
}

void
spans_add(struct spans *s, const struct prefix *p)
{
	struct span	v;

	span_of(p, &v);
	spans_put(s, &v);
}

/* By first; of the same first, the longer one before. */
static int
span_cmp(const void *a, const void *b, const void *arg)
{
	const struct span	*x = a, *y = b;
	int			 r = memcmp(x->first, y->first, sizeof(x->first));

	(void)arg;
	return r != 0 ? r : memcmp(y->last, x->last, sizeof(x->last));
}

static void
spans_sort(struct spans *s)
{
	sort(s->v, s->n, sizeof(*s->v), span_cmp, NULL);
}

int
addr_next(uint8_t *a, size_t len)
{
	while (len-- > 0)
		if (++a[len] != 0)
			return 0;
	return -1;
}

static void
addr_prev(uint8_t *a, size_t len)
{
	while (len-- > 0)
		if (a[len]-- != 0)
			return;
}

/* Whether b, which begins no earlier than a, begins within or just behind. */
static int
is_joined(const struct spans *s, const struct span *a, const struct span *b)
{
	uint8_t	next[16];

	memcpy(next, a->last, sizeof(next));
	return addr_next(next, s->len) == -1 ||
	    memcmp(b->first, next, s->len) <= 0;
}

void
spans_merge(struct spans *s)
{
	size_t	i, n = 0;

	spans_sort(s);
	for (i = 0; i < s->n; i++) {
		if (n == 0 || !is_joined(s, &s->v[n - 1], &s->v[i]))
			s->v[n++] = s->v[i];
		else if (memcmp(s->v[i].last, s->v[n - 1].last, s->len) > 0)
			memcpy(s->v[n - 1].last, s->v[i].last, s->len);
	}
	s->n = n;
}

void
spans_nest(struct spans *s)
{
	size_t	i, n = 0;

	spans_sort(s);
	for (i = 0; i < s->n; i++)
		if (n == 0 || memcmp(s->v[i].last, s->v[n - 1].last,
		    s->len) > 0)
			s->v[n++] = s->v[i];
	s->n = n;
}

/* Puts what is left of v when x is taken out of it. */
static void
span_cut(struct spans *to, const struct span *v, const struct span *x)
{
	struct span	part;

	if (memcmp(v->last, x->first, to->len) < 0 ||
	    memcmp(v->first, x->last, to->len) > 0) {
		spans_put(to, v);
		return;
	}
	if (memcmp(v->first, x->first, to->len) < 0) {
		part = *v;
		memcpy(part.last, x->first, to->len);
		addr_prev(part.last, to->len);
		spans_put(to, &part);
	}
	if (memcmp(v->last, x->last, to->len) > 0) {
		part = *v;
		memcpy(part.first, x->last, to->len);
		(void)addr_next(part.first, to->len);	/* there is more */
		spans_put(to, &part);
	}
}

void
spans_cut(struct spans *s, const struct prefix *p)
{
	struct spans	to;
	struct span	x;
	size_t		i;

	spans_init(&to, s->len);
	span_of(p, &x);
	for (i = 0; i < s->n; i++)
		span_cut(&to, &s->v[i], &x);
	free(s->v);
	*s = to;
}

int
spans_hold(const struct spans *s, const struct prefix *p)
{
	struct span	x;
	size_t		lo = 0, hi = s->n, mid;

	span_of(p, &x);
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (memcmp(s->v[mid].last, x.first, s->len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->n && memcmp(s->v[lo].first, x.first, s->len) <= 0 &&
	    memcmp(x.last, s->v[lo].last, s->len) <= 0;
}

void
spans_less(const struct spans *a, const struct spans *b, struct spans *ret)
{
	size_t	i, j = 0;

	ret->n = 0;
	ret->len = a->len;
	for (i = 0; i < a->n; i++) {
		while (j < b->n && span_cmp(&b->v[j], &a->v[i], NULL) < 0)
			j++;
		if (j == b->n || span_cmp(&b->v[j], &a->v[i], NULL) != 0)
			spans_put(ret, &a->v[i]);
	}
}
