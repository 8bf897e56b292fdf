/*
 * now.c: what a runner knows of sessions when somebody looks: the numbers of
 * their output, and how many of the processes that they left behind still run.
 *
 * The row of a session says how many there were at its end, and so does this
 * where the runner cannot be asked.
 *
 * Must never: trust a runner's row before it was checked, or follow a list
 * that does not end.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "xmalloc.h"

#define RUNNER_PAGES	16		/* of RUNNER_SESSIONS, at most */

struct now {
	struct box	*box;		/* referenced */
	json_t		*items;		/* referenced; ascending by id */
	size_t		 at;		/* the first not yet told */
	unsigned int	 pages;
	char		 after[27];
	void		(*fn)(void *);
	void		*arg;
};

static void
now_over(struct now *l)
{
	l->fn(l->arg);
	box_unref(l->box);
	json_decref(l->items);
	free(l);
}

/* The next that the runner is to be asked about, or NULL. */
static json_t *
now_next(const struct now *l)
{
	return json_array_get(l->items, l->at);
}

static void
now_set(json_t *item, const char *key, uint64_t n)
{
	/* fails only without memory */
	(void)json_object_set_new(item, key, json_integer((json_int_t)n));
}

/* Tells all up to this one; of what the runner has forgotten nothing runs. */
static void
now_told(struct now *l, const char *id, const struct row_rsession *x)
{
	json_t	*item;
	int	 cmp;

	while ((item = now_next(l)) != NULL) {
		cmp = strcmp(json_string_value(json_object_get(item,
		    "sessionId")), id);
		if (cmp > 0)
			return;
		if (cmp < 0 || x == NULL) {
			now_set(item, "leftBehind", 0);
		} else {
			now_set(item, "leftBehind", x->left_behind);
			now_set(item, "firstSeq", x->first_seq);
			now_set(item, "lastSeq", x->last_seq);
			now_set(item, "droppedBytes", x->dropped_bytes);
		}
		l->at++;
	}
}

static void	now_ask(struct now *);

static void
now_page(void *arg, const struct msg *m)
{
	struct now		*l = arg;
	const struct wire_list	*rows;
	struct row_rsession	 x;
	size_t			 i;

	if (m == NULL || m->row->type == MSG_ERROR) {
		now_over(l);
		return;
	}
	rows = &m->body.runner_sessions_are.rows;
	for (i = 0; i < rows->n; i++) {
		if (wire_decode_into(&wire_row_rsession, rows->v[i].data,
		    rows->v[i].len, NULL, 0, &x) == -1 ||
		    strcmp(x.id, l->after) <= 0) {
			peer_fault(l->box->runner, "RUNNER_SESSIONS_ARE: row "
			    "%zu is not one", i);
			now_over(l);
			return;
		}
		(void)str_copy(l->after, x.id, sizeof(l->after));
		now_told(l, x.id, &x);
	}
	if (rows->n == 0)
		now_told(l, "Z", NULL);	/* behind every id */
	if (now_next(l) == NULL || ++l->pages >= RUNNER_PAGES)
		now_over(l);
	else
		now_ask(l);
}

static void
now_ask(struct now *l)
{
	struct msg_runner_sessions	m = { 0 };

	if (!box_talks(l->box)) {
		now_over(l);
		return;
	}
	(void)str_copy(m.after, l->after, sizeof(m.after));
	peer_ask(l->box->runner, MSG_RUNNER_SESSIONS, &m, T_RUNNER,
	    now_page, l);
}

void
sessions_now(struct box *b, json_t *items, void (*fn)(void *),
    void *arg)
{
	struct now	*l = xcalloc(1, sizeof(*l));
	json_t		*item;

	l->box = box_ref(b);
	l->items = json_incref(items);
	l->fn = fn;
	l->arg = arg;
	if ((item = now_next(l)) == NULL) {
		now_over(l);
		return;
	}
	ulid_before(json_string_value(json_object_get(item, "sessionId")),
	    l->after);
	now_ask(l);
}
