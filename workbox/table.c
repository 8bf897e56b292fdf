/*
 * table: lists as aligned columns, objects as JSON.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "workbox.h"
#include "xmalloc.h"

/* ---- tables ------------------------------------------------------------ */

/* Words that are coloured, in the columns of a state alone. */
static const struct { const char *word; int sgr; } colours[] = {
	{ "READY", 32 }, { "HEALTHY", 32 },
	{ "SUSPECT", 33 }, { "UNKNOWN", 33 },
	{ "QUARANTINED", 31 }, { "ABSENT", 31 },
};

void
table_init(struct table *t, size_t ncols, ...)
{
	va_list	ap;
	size_t	i;

	memset(t, 0, sizeof *t);
	t->ncols = ncols;
	va_start(ap, ncols);
	for (i = 0; i < ncols; i++)
		table_add(t, va_arg(ap, const char *));
	va_end(ap);
}

void
table_add(struct table *t, const char *cell)
{
	size_t	size = 4 * strlen(cell) + 12;

	if (t->ncells == t->room) {
		t->room = t->room == 0 ? 64 : 2 * t->room;
		t->cell = xreallocarray(t->cell, t->room, sizeof *t->cell);
	}
	t->cell[t->ncells].text = xmalloc(size);
	t->cell[t->ncells].cols = text_show(*cell != '\0' ? cell : "-",
	    t->cell[t->ncells].text, size);
	t->ncells++;
}

/* The colour of cell i, or 0. */
static int
colour(const struct table *t, size_t i)
{
	const char	*head = t->cell[i % t->ncols].text;
	size_t		 k;

	if (strcmp(head, "STATE") != 0 && strcmp(head, "HEALTH") != 0)
		return 0;
	for (k = 0; k < sizeof colours / sizeof colours[0]; k++)
		if (strcmp(colours[k].word, t->cell[i].text) == 0)
			return colours[k].sgr;
	return 0;
}

void
table_print(struct table *t, FILE *f)
{
	size_t	 i, col;
	size_t	*width = xcalloc(t->ncols, sizeof *width);
	int	 sgr, coloured = text_colour(f);

	for (i = 0; i < t->ncells; i++)
		if (t->cell[i].cols > width[i % t->ncols])
			width[i % t->ncols] = t->cell[i].cols;
	for (i = 0; i < t->ncells; i++) {
		col = i % t->ncols;
		sgr = coloured ? colour(t, i) : 0;
		if (sgr != 0)
			(void)fprintf(f, "\033[%dm%s\033[0m", sgr,
			    t->cell[i].text);
		else
			(void)fputs(t->cell[i].text, f);
		if (col + 1 == t->ncols)
			(void)putc('\n', f);
		else
			(void)fprintf(f, "%*s",
			    (int)(width[col] - t->cell[i].cols + 2), "");
	}
	for (i = 0; i < t->ncells; i++)
		free(t->cell[i].text);
	free(t->cell);
	free(width);
	memset(t, 0, sizeof *t);
}

/* ---- JSON -------------------------------------------------------------- */

/*
 * Writes JSON with what people must not be shown as \uNNNN, which is the same
 * to a program that reads it.
 */
static void
put_json(const char *s, FILE *f)
{
	uint32_t	c = 0;
	size_t		n;

	for (; *s != '\0'; s += n) {
		n = text_utf8(s, &c);
		if (n == 0)
			n = 1;		/* jansson has made none such */
		if (c == '\n' || !text_hidden(c))
			(void)fwrite(s, 1, n, f);
		else if (c < 0x10000)
			(void)fprintf(f, "\\u%04x", c);
		else
			(void)fprintf(f, "\\u%04x\\u%04x",
			    0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	}
}

int
json_print(json_t *j)
{
	char	*text = json_dumps(j, JSON_INDENT(2) |
		    JSON_REAL_PRECISION(15));

	if (text == NULL)
		return fail("the answer has no form as JSON");
	put_json(text, stdout);
	free(text);
	(void)putchar('\n');
	if (ferror(stdout) || fflush(stdout) == EOF)
		return fail_errno("write standard output");
	return 0;
}

const char *
json_str(const json_t *j, const char *key)
{
	const char	*s = json_string_value(json_object_get(j, key));

	return s != NULL ? s : "";
}

const char *
json_num(const json_t *j, const char *key, char ret[24])
{
	const json_t	*v = json_object_get(j, key);

	ret[0] = '\0';
	if (json_is_integer(v))
		(void)snprintf(ret, 24, "%lld",
		    (long long)json_integer_value(v));
	return ret;
}
