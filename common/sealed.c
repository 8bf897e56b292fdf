/*
 * sealed.c: what no network of a box leads to, whatever the host's addresses
 * are: sealed.def, less `except', and `deny'.  netd has it in the rulesets of
 * `egress', and proxyd asks it of each address that a name leads to.
 *
 * `deny' is added last: what both words hold is sealed.
 *
 * Must never: open what prefix_never() says is never open; go on with a word
 * that is no prefix.
 */
#include <errno.h>
#include <string.h>

#include "sealed.h"

struct sealed	sealed = { { NULL, 4, 0, 0 }, { NULL, 16, 0, 0 } };

static const struct { const char *text; int open; } table[] = {
#define SEALED(text, why)	{ text, 0 },
#define SEALED_EVER(text, why)	{ text, 0 },
#define SEALED_NOT(text, why)	{ text, 1 },
#include "sealed.def"
};

/* add is spans_add() or spans_cut(). */
static void
each_form(const struct prefix *p, void (*add)(struct spans *,
    const struct prefix *))
{
	struct prefix	forms[PREFIX_FORMS];
	size_t		i;

	if (p->len == 16) {
		add(&sealed.v6, p);
		return;
	}
	add(&sealed.v4, p);
	prefix_forms(p, forms);
	for (i = 0; i < PREFIX_FORMS; i++)
		add(&sealed.v6, &forms[i]);
}

static void
merge(void)
{
	spans_merge(&sealed.v4);
	spans_merge(&sealed.v6);
}

/* `workbox serve' has checked them; whoever else wrote this is not heard. */
static int
each_word(const struct wire_list *l, int open)
{
	char		text[64];
	struct prefix	p;
	size_t		i;

	for (i = 0; i < l->n; i++) {
		errno = EINVAL;
		if (l->v[i].len >= sizeof(text))
			return -1;
		memcpy(text, l->v[i].data, l->v[i].len);
		text[l->v[i].len] = '\0';
		if (prefix_parse(text, &p) == -1)
			return -1;
		errno = EPERM;
		if (open ? prefix_never(&p) != NULL : prefix_mapped(&p))
			return -1;
		each_form(&p, open ? spans_cut : spans_add);
	}
	return 0;
}

/* Rows of the table: those of a family that seal, or that open. */
static int
each_row(size_t len, int open)
{
	struct prefix	p;
	size_t		i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (prefix_parse(table[i].text, &p) == -1)
			return -1;
		if (p.len == len && table[i].open == open)
			each_form(&p, open ? spans_cut : spans_add);
	}
	merge();
	return 0;
}

/* What is open in IPv6 holds forms of IPv4, which are sealed after it. */
int
sealed_init(const struct wire_list *deny, const struct wire_list *except)
{
	spans_free(&sealed.v4);
	spans_free(&sealed.v6);
	if (each_row(16, 0) == -1 || each_row(16, 1) == -1 ||
	    each_row(4, 0) == -1)
		return -1;
	if (each_word(except, 1) == -1 || each_word(deny, 0) == -1)
		return -1;
	merge();
	return 0;
}

int
sealed_holds(const struct prefix *p)
{
	return spans_hold(p->len == 4 ? &sealed.v4 : &sealed.v6, p);
}
