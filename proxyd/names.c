/*
 * names.c: the names of a box that have an address, and which.
 *
 * Must never give a number to a second name, or one that stored has not
 * given, or forget a name that has connections.
 *
 * Two arrays have each name once, one in the order of names, one in that of
 * numbers; both are searched by halves.  A box chooses its names, and no
 * choice makes that slower, as one could where they are hashed; to make room
 * in an array moves 32 KiB at most, NAMES_LIVE being few.  They grow with
 * what is in them: a box that has asked for nothing has none.
 */
#include <stdlib.h>
#include <string.h>

#include "proxyd.h"
#include "xmalloc.h"

#define FIRST_ROOM	16

/* Numbers that wait for names. */
struct range {
	unsigned int	 next, end;		/* end: behind the last */
};

TAILQ_HEAD(named_queue, named);

struct names {
	struct named	**by_name;		/* owned, and what is in it */
	struct named	**by_number;		/* owned */
	size_t		  n, room;
	struct named_queue used;		/* least recently first */
	struct range	 *range;		/* owned: in the order of use */
	size_t		  nranges;
	unsigned int	  highest;		/* number ever seen */
};

struct names *
names_new(void)
{
	struct names	*s = xcalloc(1, sizeof(*s));

	TAILQ_INIT(&s->used);
	return s;
}

void
names_free(struct names *s)
{
	size_t	i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n; i++)
		free(s->by_name[i]);
	free(s->by_name);
	free(s->by_number);
	free(s->range);
	free(s);
}

/* ---- numbers ------------------------------------------------------------- */

void
names_room(struct names *s, unsigned int first, unsigned int count)
{
	unsigned int	end;

	if (first > NAMES_LAST || count == 0)
		return;
	end = count > NAMES_LAST - first ? NAMES_LAST + 1 : first + count;
	if (first <= s->highest)
		first = s->highest + 1;
	if (first >= end)
		return;
	s->range = xreallocarray(s->range, s->nranges + 1, sizeof(*s->range));
	s->range[s->nranges++] = (struct range){ first, end };
	s->highest = end - 1;
}

unsigned int
names_left(const struct names *s)
{
	unsigned int	left = 0;
	size_t		i;

	for (i = 0; i < s->nranges; i++)
		left += s->range[i].end - s->range[i].next;
	return left;
}

/* There is one. */
static uint16_t
take_number(struct names *s)
{
	unsigned int	number = s->range[0].next++;

	if (s->range[0].next == s->range[0].end) {
		s->nranges--;
		memmove(s->range, s->range + 1,
		    s->nranges * sizeof(*s->range));
	}
	return (uint16_t)number;
}

/* ---- order --------------------------------------------------------------- */

/* Where the name is, or would be. */
static size_t
name_place(const struct names *s, const char *name, int *ret_there)
{
	size_t	lo = 0, hi = s->n, mid;
	int	c;

	*ret_there = 0;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if ((c = strcmp(name, s->by_name[mid]->name)) > 0)
			lo = mid + 1;
		else {
			hi = mid;
			*ret_there |= c == 0;
		}
	}
	return lo;
}

static size_t
number_place(const struct names *s, unsigned int number, int *ret_there)
{
	size_t	lo = 0, hi = s->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (number > s->by_number[mid]->number)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret_there = lo < s->n && s->by_number[lo]->number == number;
	return lo;
}

static void
make_room(struct names *s)
{
	if (s->n < s->room)
		return;
	s->room = s->room == 0 ? FIRST_ROOM : s->room * 2;
	s->by_name = xreallocarray(s->by_name, s->room,
	    sizeof(struct named *));
	s->by_number = xreallocarray(s->by_number, s->room,
	    sizeof(struct named *));
}

/* of n, room for one more. */
static void
put_at(struct named **array, size_t n, size_t i, struct named *d)
{
	memmove(array + i + 1, array + i, (n - i) * sizeof(struct named *));
	array[i] = d;
}

static void
take_at(struct named **array, size_t n, size_t i)
{
	memmove(array + i, array + i + 1, (n - i - 1) * sizeof(struct named *));
}

static void
forget(struct names *s, struct named *d)
{
	int	there;

	take_at(s->by_name, s->n, name_place(s, d->name, &there));
	take_at(s->by_number, s->n, number_place(s, d->number, &there));
	s->n--;
	TAILQ_REMOVE(&s->used, d, used);
	free(d);
}

/* 0, or -1: all have connections. */
static int
forget_one(struct names *s)
{
	struct named	*d;

	TAILQ_FOREACH(d, &s->used, used)
		if (d->open == 0) {
			forget(s, d);
			return 0;
		}
	return -1;
}

static struct named *
now_used(struct names *s, struct named *d)
{
	TAILQ_REMOVE(&s->used, d, used);
	TAILQ_INSERT_TAIL(&s->used, d, used);
	return d;
}

/* ---- names --------------------------------------------------------------- */

struct named *
names_find(struct names *s, const char *name)
{
	int	there;
	size_t	i = name_place(s, name, &there);

	return there ? now_used(s, s->by_name[i]) : NULL;
}

struct named *
names_give(struct names *s, const char *name)
{
	struct named	*d;
	size_t		 len = strlen(name) + 1;
	int		 there;

	if ((d = names_find(s, name)) != NULL)
		return d;
	if (s->nranges == 0 || (s->n >= NAMES_LIVE && forget_one(s) == -1))
		return NULL;
	d = xcalloc(1, sizeof(*d) + len);
	memcpy(d->name, name, len);
	d->number = take_number(s);
	make_room(s);
	put_at(s->by_name, s->n, name_place(s, name, &there), d);
	put_at(s->by_number, s->n, number_place(s, d->number, &there), d);
	s->n++;
	TAILQ_INSERT_TAIL(&s->used, d, used);
	return d;
}

struct named *
names_at(struct names *s, uint32_t addr)
{
	int	there;
	size_t	i;

	if ((addr & ~(uint32_t)NAMES_LAST) != NAMES_NET)
		return NULL;
	i = number_place(s, addr & NAMES_LAST, &there);
	return there ? now_used(s, s->by_number[i]) : NULL;
}

struct named *
names_next(struct names *s, const char *name)
{
	int	there;
	size_t	i = name_place(s, name, &there);

	i += there != 0;
	return i < s->n ? s->by_name[i] : NULL;
}

uint32_t
named_addr(const struct named *d)
{
	return NAMES_NET | d->number;
}
