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

TAILQ_HEAD(wanted_list, wanted);

/* A name that is asked for, or is to be. */
struct wanted {
	TAILQ_ENTRY(wanted)	 next;
	struct looks		*looks;		/* borrowed */
	struct lookup		*lookup;	/* NULL: it waits */
	TAILQ_HEAD(, look)	 who;
	int			 any;
	char			 name[];
};

struct look {
	TAILQ_ENTRY(look)	 next;
	struct wanted		*wanted;	/* borrowed */
	void			(*cb)(void *, const struct resolved *);
	void			*arg;
};

struct looks {
	struct wanted_list under, waits;	/* owned */
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
	struct wanted	*w;

	while (s->nunder < MOST && (w = TAILQ_FIRST(&s->waits)) != NULL) {
		TAILQ_REMOVE(&s->waits, w, next);
		TAILQ_INSERT_TAIL(&s->under, w, next);
		s->nunder++;
		w->lookup = (w->any ? resolve_any : resolve)(w->name,
		    on_resolved, w);
	}
}

/* Out of its list. */
static void
wanted_remove(struct wanted *w)
{
	struct looks	*s = w->looks;

	if (w->lookup == NULL) {
		TAILQ_REMOVE(&s->waits, w, next);
		return;
	}
	TAILQ_REMOVE(&s->under, w, next);
	s->nunder--;
}

/* Whom it tells may look again, or cancel others. */
static void
on_resolved(void *arg, const struct resolved *r)
{
	struct wanted	*w = arg;
	struct looks	*s = w->looks;
	struct look	*l;

	wanted_remove(w);
	while ((l = TAILQ_FIRST(&w->who)) != NULL) {
		TAILQ_REMOVE(&w->who, l, next);
		l->cb(l->arg, r);
		free(l);
	}
	free(w);
	start_some(s);
}

static struct wanted *
wanted_find(struct wanted_list *list, const char *name, int any)
{
	struct wanted	*w;

	TAILQ_FOREACH(w, list, next)
		if (w->any == any && strcmp(w->name, name) == 0)
			return w;
	return NULL;
}

static struct wanted *
wanted_new(struct looks *s, const char *name, int any)
{
	size_t		 len = strlen(name) + 1;
	struct wanted	*w = xcalloc(1, sizeof(*w) + len);

	w->looks = s;
	w->any = any;
	memcpy(w->name, name, len);
	TAILQ_INIT(&w->who);
	TAILQ_INSERT_TAIL(&s->waits, w, next);
	return w;
}

struct look *
look_up(struct looks *s, const char *name, int any,
    void (*cb)(void *, const struct resolved *), void *arg)
{
	struct look	*l = xcalloc(1, sizeof(*l));

	if ((l->wanted = wanted_find(&s->under, name, any)) == NULL &&
	    (l->wanted = wanted_find(&s->waits, name, any)) == NULL)
		l->wanted = wanted_new(s, name, any);
	l->cb = cb;
	l->arg = arg;
	TAILQ_INSERT_TAIL(&l->wanted->who, l, next);
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
	struct wanted	*w = l->wanted;

	TAILQ_REMOVE(&w->who, l, next);
	free(l);
	if (w->lookup != NULL || !TAILQ_EMPTY(&w->who))
		return;
	wanted_remove(w);
	free(w);
}

void
looks_free(struct looks *s)
{
	struct wanted	*w;

	/* nobody waits: those that do not are gone already */
	while ((w = TAILQ_FIRST(&s->under)) != NULL) {
		resolve_cancel(w->lookup);
		wanted_remove(w);
		free(w);
	}
	free(s);
}
