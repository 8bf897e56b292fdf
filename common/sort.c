/*
 * sort: see sort.h.  A heap: the greatest of what is not in its place yet
 * stands before all others, and goes behind them.
 *
 * Must never call the kernel, or take memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sort.h"

struct heap {
	uint8_t		*v;		/* borrowed */
	size_t		 size;
	int		(*cmp)(const void *, const void *, const void *);
	const void	*arg;
};

static uint8_t *
at(const struct heap *h, size_t i)
{
	return h->v + i * h->size;
}

/* Moves what is at i down, among n. */
static void
sift(const struct heap *h, size_t i, size_t n)
{
	uint8_t	one[SORT_SIZE];
	size_t	kid;

	memcpy(one, at(h, i), h->size);
	for (; (kid = 2 * i + 1) < n; i = kid) {
		if (kid + 1 < n &&
		    h->cmp(at(h, kid), at(h, kid + 1), h->arg) < 0)
			kid++;
		if (h->cmp(one, at(h, kid), h->arg) >= 0)
			break;
		memcpy(at(h, i), at(h, kid), h->size);
	}
	memcpy(at(h, i), one, h->size);
}

void
sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *,
    const void *), const void *arg)
{
	const struct heap	h = { v, size, cmp, arg };
	uint8_t			last[SORT_SIZE];
	size_t			i;

	if (size > SORT_SIZE)
		abort();
	for (i = n / 2; i-- > 0;)
		sift(&h, i, n);
	for (i = n; i-- > 1;) {
		memcpy(last, at(&h, i), size);
		memcpy(at(&h, i), at(&h, 0), size);
		memcpy(at(&h, 0), last, size);
		sift(&h, 0, i);
	}
}
