/*
 * looks.c: lookups of names for one box, so many at a time.
 *
 * A box may begin hundreds of connections in a moment.  Were each a lookup of
 * its own, what the host's resolver drops then would be the others' as well,
 * who wait for seconds until it is asked again.  So of one box those for the
 * same name that are under way are one, and no more than MOST names are asked
 * for at once; the others wait their turn, in order.
 *
 * What is taken from an answer is taken by who had asked before it came:
 * nothing is kept for a connection that comes later.
 *
 * Must never: let one box's lookups wait for another's; call back within
 * look_up().
 */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "proxyd.h"
#include "xmalloc.h"

#define MOST	16

TAILQ_HEAD(asks, ask);

/* A name that is asked for, or is to be. */
struct ask {
	TAILQ_ENTRY(ask)	 next;
	struct looks		*looks;		/* borrowed */
	struct lookup		*lookup;	/* NULL: it waits */
	TAILQ_HEAD(, look)	 who;
	int			 any;
	char			 name[];
};

struct look {
	TAILQ_ENTRY(look)	 next;
	struct ask		*ask;		/* borrowed */
	void			(*cb)(void *, const struct resolved *);
	void			*arg;
};

struct looks {
	struct asks	 under, waits;	/* owned */
	unsigned int	 nunder;
};

static void	on_resolved(void *, const struct resolved *);

struct looks *
looks_new(void)
{
	struct looks	*s = xcalloc(1, sizeof(*s));

	TAILQ_INIT(&s->under);
	TAILQ_INIT(&s->waits);
	return s;
}

static void
start_some(struct looks *s)
{
	struct ask	*a;

	while (s->nunder < MOST && (a = TAILQ_FIRST(&s->waits)) != NULL) {
		TAILQ_REMOVE(&s->waits, a, next);
		TAILQ_INSERT_TAIL(&s->under, a, next);
		s->nunder++;
		a->lookup = (a->any ? resolve_any : resolve)(a->name,
		    on_resolved, a);
	}
}

/* Out of its list. */
static void
ask_remove(struct ask *a)
{
	struct looks	*s = a->looks;

	if (a->lookup == NULL) {
		TAILQ_REMOVE(&s->waits, a, next);
		return;
	}
	TAILQ_REMOVE(&s->under, a, next);
	s->nunder--;
}

/* Whom it tells may look again, or cancel others. */
static void
on_resolved(void *arg, const struct resolved *r)
{
	struct ask	*a = arg;
	struct looks	*s = a->looks;
	struct look	*l;

	ask_remove(a);
	while ((l = TAILQ_FIRST(&a->who)) != NULL) {
		TAILQ_REMOVE(&a->who, l, next);
		l->cb(l->arg, r);
		free(l);
	}
	free(a);
	start_some(s);
}

static struct ask *
ask_find(struct asks *list, const char *name, int any)
{
	struct ask	*a;

	TAILQ_FOREACH(a, list, next)
		if (a->any == any && strcmp(a->name, name) == 0)
			return a;
	return NULL;
}

static struct ask *
ask_new(struct looks *s, const char *name, int any)
{
	size_t		 len = strlen(name) + 1;
	struct ask	*a = xcalloc(1, sizeof(*a) + len);

	a->looks = s;
	a->any = any;
	memcpy(a->name, name, len);
	TAILQ_INIT(&a->who);
	TAILQ_INSERT_TAIL(&s->waits, a, next);
	return a;
}

struct look *
look_up(struct looks *s, const char *name, int any,
    void (*cb)(void *, const struct resolved *), void *arg)
{
	struct look	*l = xcalloc(1, sizeof(*l));

	if ((l->ask = ask_find(&s->under, name, any)) == NULL &&
	    (l->ask = ask_find(&s->waits, name, any)) == NULL)
		l->ask = ask_new(s, name, any);
	l->cb = cb;
	l->arg = arg;
	TAILQ_INSERT_TAIL(&l->ask->who, l, next);
	start_some(s);
	return l;
}

/*
 * One that nobody waits for goes on all the same: to ask for it and go away
 * is no way to more of them.
 */
void
look_cancel(struct look *l)
{
	struct ask	*a = l->ask;

	TAILQ_REMOVE(&a->who, l, next);
	free(l);
	if (a->lookup != NULL || !TAILQ_EMPTY(&a->who))
		return;
	ask_remove(a);
	free(a);
}

void
looks_free(struct looks *s)
{
	struct ask	*a;

	/* nobody waits: those that do not are gone already */
	while ((a = TAILQ_FIRST(&s->under)) != NULL) {
		resolve_cancel(a->lookup);
		ask_remove(a);
		free(a);
	}
	free(s);
}
