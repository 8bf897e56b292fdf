/*
 * nearest: which of some names a misspelt one was meant to be.
 */
#include <stdlib.h>
#include <string.h>

#include "workbox.h"
#include "xmalloc.h"

#define NAME_MAX_LEN	48	/* what is longer is near to nothing */

static unsigned int
least(unsigned int a, unsigned int b, unsigned int c)
{
	if (b < a)
		a = b;
	return c < a ? c : a;
}

/*
 * The edits between two words: a letter more, fewer or another, or two
 * neighbours swapped, no letter touched twice (optimal string alignment).
 */
unsigned int
nearest_edits(const char *a, const char *b)
{
	unsigned int	 row[3][NAME_MAX_LEN + 1];
	unsigned int	*old = row[0], *last = row[1], *now = row[2], *t;
	size_t		 i, k, n = strlen(a), m = strlen(b);

	if (n > NAME_MAX_LEN || m > NAME_MAX_LEN)
		return NEAREST_FAR;
	for (k = 0; k <= m; k++) {
		old[k] = 0;
		last[k] = (unsigned int)k;
	}
	for (i = 1; i <= n; i++) {
		now[0] = (unsigned int)i;
		for (k = 1; k <= m; k++) {
			now[k] = least(last[k] + 1, now[k - 1] + 1,
			    last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1] && old[k - 2] + 1 < now[k])
				now[k] = old[k - 2] + 1;
		}
		t = old;
		old = last;
		last = now;
		now = t;
	}
	return last[m];
}

/* As edits, where it is near enough to be asked about. */
static unsigned int
distance(const char *word, const char *name)
{
	size_t		n = strlen(word), m = strlen(name);
	unsigned int	d = nearest_edits(word, name);

	if (n >= 2 && d > 0 && strncmp(word, name, n) == 0)
		return 1;	/* the beginning of it */
	if (d <= (n < 3 ? 0U : n < 6 ? 1U : 2U))
		return d;
	/* more than it, as --allow-list */
	return m >= 3 && strncmp(word, name, m) == 0 ? 2 : NEAREST_FAR;
}

void
nearest_try(struct nearest *n, const char *word, const char *name,
    const char *shown)
{
	unsigned int	d = distance(word, name);
	size_t		i;

	if (d == NEAREST_FAR || (n->count > 0 && d > n->edits))
		return;
	if (d < n->edits)
		n->count = 0;
	n->edits = d;
	for (i = 0; i < n->count; i++)
		if (strcmp(n->shown[i], shown) == 0)
			return;
	if (n->count < NEAREST_MOST)
		n->shown[n->count++] = shown;
}

char *
nearest_hint(const struct nearest *n, const char *before,
    const char *otherwise)
{
	char	*s, *more;
	size_t	 i;

	if (n->count == 0)
		return xasprintf("; %s", otherwise);
	s = xasprintf("; did you mean %s%s", before, n->shown[0]);
	for (i = 1; i < n->count; i++) {
		more = xasprintf("%s%s%s%s", s, i + 1 < n->count ? ", " :
		    " or ", before, n->shown[i]);
		free(s);
		s = more;
	}
	more = xasprintf("%s?", s);
	free(s);
	return more;
}
