/*
 * table.c: the entries, by number, by id, by time.
 *
 * All memory is there from the start; pages that no box has used stay
 * untouched.  Numbers and times that the loop looks at each turn stand in
 * arrays of their own, so that a thousand idle boxes cost it little.
 */
#include <string.h>

#include "privd.h"

static struct entry	 table[TABLE_MAX];
static uint64_t		 due[TABLE_MAX];	/* ms, 0: none */
static unsigned int	 order[TABLE_MAX];	/* numbers, by id */
static unsigned int	 count;			/* of order */
static unsigned int	 high;			/* numbers ever used */

struct entry *
table_at(unsigned int i)
{
	return i < count ? &table[order[i]] : NULL;
}

struct entry *
table_number(unsigned int n)
{
	return n < TABLE_MAX && table[n].phase != PH_FREE ? &table[n] : NULL;
}

/* The first place whose id is not below. */
static unsigned int
place(const char *id)
{
	unsigned int	lo = 0, hi = count, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (strcmp(table[order[mid]].spec.id, id) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

unsigned int
table_above(const char *after)
{
	struct entry	*e;
	unsigned int	 i = place(after);

	if ((e = table_at(i)) != NULL && strcmp(e->spec.id, after) == 0)
		i++;
	return i;
}

struct entry *
table_find(const char *id)
{
	struct entry	*e = table_at(place(id));

	return e != NULL && strcmp(e->spec.id, id) == 0 ? e : NULL;
}

unsigned int
table_count(void)
{
	return count;
}

unsigned int
table_up(void)
{
	unsigned int	i, n = 0;

	for (i = 0; i < count; i++)
		n += table[order[i]].pidfd != -1;
	return n;
}

struct entry *
table_add(const struct row_spec *spec)
{
	struct entry	*e;
	unsigned int	 i = place(spec->id), n;

	for (n = 0; n < TABLE_MAX && table[n].phase != PH_FREE; n++)
		;
	if (n == TABLE_MAX)
		return NULL;
	if (n >= high)
		high = n + 1;
	e = &table[n];
	memset(e, 0, sizeof(*e));
	e->spec = *spec;
	e->n = n;
	e->phase = PH_DOWN;
	e->netns = e->netns_fd = -1;
	e->pidfd = e->ready_fd = e->log_fd = e->file_fd = -1;
	e->events_fd = e->tree_fd = e->ctl_fd = -1;
	due[n] = 0;
	memmove(&order[i + 1], &order[i], (count - i) * sizeof(order[0]));
	order[i] = n;
	count++;
	return e;
}

void
table_drop(struct entry *e)
{
	unsigned int	i = place(e->spec.id);

	ev_close(&e->pidfd);
	ev_close(&e->ready_fd);
	ev_close(&e->log_fd);
	fd_close(&e->file_fd);
	ev_close(&e->events_fd);
	ev_close(&e->tree_fd);
	fd_close(&e->netns);
	fd_close(&e->netns_fd);
	fd_close(&e->ctl_fd);
	explicit_bzero(e->nonce, sizeof(e->nonce));
	explicit_bzero(e->token, sizeof(e->token));
	count--;
	memmove(&order[i], &order[i + 1], (count - i) * sizeof(order[0]));
	due[e->n] = 0;
	e->phase = PH_FREE;
}

uint32_t
table_uid(void)
{
	static uint8_t	used[TABLE_MAX + 1];
	const int64_t	ids = BOX_IDS, base = srv.conf->uid_base;
	int64_t		d;
	unsigned int	i;

	memset(used, 0, sizeof(used));
	for (i = 0; i < count; i++) {
		d = table[order[i]].uid - base;
		if (d <= -ids || d / ids >= TABLE_MAX)
			continue;	/* outside of all */
		/* in two, where uid-base was another */
		used[d < 0 ? 0 : d / ids] = used[(d + ids - 1) / ids] = 1;
	}
	for (i = 0; i < srv.conf->max_boxes; i++)
		if (!used[i])
			return (uint32_t)(base + (uint64_t)i * BOX_IDS);
	return 0;
}

void
table_due(struct entry *e, uint64_t ms)
{
	due[e->n] = ms;
}

uint64_t
table_next(void)
{
	uint64_t	next = 0;
	unsigned int	i;

	for (i = 0; i < high; i++)
		if (due[i] != 0 && (next == 0 || due[i] < next))
			next = due[i];
	return next;
}

void
table_tick(uint64_t now)
{
	unsigned int	i;

	for (i = 0; i < high; i++)
		if (due[i] != 0 && due[i] <= now) {
			due[i] = 0;
			life_on_due(&table[i]);
		}
}
