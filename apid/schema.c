/*
 * schema: see schema.h.
 *
 * The text of schemas.json is compiled in (schemas.h), since apid sees no
 * file.  Patterns are POSIX extended expressions that mean the same in
 * ECMA-262; they are compiled when the program starts.  Where a pattern does
 * not match, `title' says what was expected.
 *
 * Must never change a value, nor say more of it than its path.
 */

#include <regex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "schema.h"
#include "schemas.h"

#define REF	"#/components/schemas/"
#define CEILING	"x-ceiling"
#define NREGEX	32

struct pattern { const char *text; regex_t re; };	/* text borrowed */

static json_t		*all;			/* owned, for ever */
static struct pattern	 patterns[NREGEX];
static size_t		 npatterns;

/* Where a check stands, and what it found. */
struct walk {
	struct schema_fault	*fault;
	size_t			 len;		/* of fault->field */
};

static int	check(struct walk *, const json_t *, const json_t *);

/* ---- start --------------------------------------------------------------- */

static void
pattern_add(const char *text)
{
	struct pattern	*p = &patterns[npatterns];

	if (npatterns == NREGEX)
		fatalx("schemas: too many patterns");
	if (regcomp(&p->re, text, REG_EXTENDED | REG_NOSUB) != 0)
		fatalx("schemas: pattern %s", text);
	p->text = text;
	npatterns++;
}

static void
known(const json_t *schema)
{
	static const char *const words[] = {
		"$ref", "additionalProperties", "description", "enum",
		"format", "items", "maxItems", "maxLength", "maxProperties",
		"maximum", "minItems", "minLength", "minimum", "oneOf",
		"pattern", "properties", "propertyNames", "required", "title",
		"type", CEILING,
	};
	const char	*key;
	const json_t	*value;
	size_t		 i;

	for (void *it = json_object_iter((json_t *)(uintptr_t)schema);
	    it != NULL;
	    it = json_object_iter_next((json_t *)(uintptr_t)schema, it)) {
		key = json_object_iter_key(it);
		value = json_object_iter_value(it);
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcmp(key, words[i]) == 0)
				break;
		if (i == sizeof(words) / sizeof(words[0]))
			fatalx("schemas: unknown word %s", key);
		if (strcmp(key, "pattern") == 0)
			pattern_add(json_string_value(value));
		if (strcmp(key, "$ref") == 0)
			(void)schema_find(json_string_value(value) +
			    strlen(REF));	/* fatal when missing */
	}
}

static void
known_below(const json_t *schema)
{
	const json_t	*v;
	const char	*key;
	size_t		 i;

	if (!json_is_object(schema))
		return;
	known(schema);
	json_object_foreach(json_object_get(schema, "properties"), key, v)
		known_below(v);
	json_array_foreach(json_object_get(schema, "oneOf"), i, v)
		known_below(v);
	known_below(json_object_get(schema, "items"));
	known_below(json_object_get(schema, "propertyNames"));
	known_below(json_object_get(schema, "additionalProperties"));
}

void
schema_init(void)
{
	json_error_t	 e;
	const json_t	*v;
	const char	*key;

	if (all != NULL)
		return;
	if ((all = json_loads(schemas_text, JSON_REJECT_DUPLICATES, &e)) ==
	    NULL)
		fatalx("schemas: line %d: %s", e.line, e.text);
	json_object_foreach(all, key, v)
		known_below(v);
}

const json_t *
schema_all(void)
{
	schema_init();
	return all;
}

const json_t *
schema_find(const char *name)
{
	const json_t	*s = json_object_get(schema_all(), name);

	if (s == NULL)
		fatalx("schemas: no %s", name);
	return s;
}

void
schema_ceiling(const char *name, const char *member, json_t *max)
{
	json_t	*p = json_object_get(json_object_get(schema_find(name),
		    "properties"), member);

	if (json_object_set_new(p, CEILING, max) == -1)
		fatalx("schemas: no %s of %s", member, name);
}

/* ---- faults ---------------------------------------------------------------- */

/* Appends, cut between characters; the rest of the path is lost. */
static void
path_push(struct walk *w, const char *s)
{
	size_t	n = strlen(s), room = sizeof(w->fault->field) - 1 - w->len;

	if (n > room)
		for (n = room; n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80; n--)
			;
	memcpy(w->fault->field + w->len, s, n);
	w->len += n;
	w->fault->field[w->len] = '\0';
}

static size_t
path_member(struct walk *w, const char *name)
{
	size_t	was = w->len;

	if (w->len > 0)
		path_push(w, ".");
	path_push(w, name);
	return was;
}

static size_t
path_item(struct walk *w, size_t i)
{
	size_t	was = w->len;
	char	index[32];

	(void)snprintf(index, sizeof(index), "[%zu]", i);	/* fits */
	path_push(w, index);
	return was;
}

static void
path_pop(struct walk *w, size_t was)
{
	w->len = was;
	w->fault->field[was] = '\0';
}

static int __attribute__((format(printf, 2, 3)))
expected(struct walk *w, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(w->fault->why, sizeof(w->fault->why), fmt, ap);
	va_end(ap);	/* schemas are ASCII: a cut splits no character */
	return -1;
}

/* "a, b or c" from keys or strings. */
static void
list(char *buf, size_t size, const json_t *names)
{
	const json_t	*v;
	const char	*key;
	size_t		 i, len = 0;

	buf[0] = '\0';
	if (json_is_object(names)) {
		json_object_foreach((json_t *)(uintptr_t)names, key, v)
			if (len < size)
				len += (size_t)snprintf(buf + len, size - len,
				    "%s%s", len > 0 ? ", " : "", key);
	} else
		json_array_foreach(names, i, v)
			if (len < size)
				len += (size_t)snprintf(buf + len, size - len,
				    "%s%s", len > 0 ? ", " : "",
				    json_string_value(v));
}

/* ---- checks ------------------------------------------------------------------ */

static int
type_is(const char *type, const json_t *v)
{
	if (strcmp(type, "object") == 0)
		return json_is_object(v);
	if (strcmp(type, "array") == 0)
		return json_is_array(v);
	if (strcmp(type, "string") == 0)
		return json_is_string(v);
	if (strcmp(type, "integer") == 0)
		return json_is_integer(v);
	if (strcmp(type, "number") == 0)
		return json_is_number(v);
	if (strcmp(type, "boolean") == 0)
		return json_is_boolean(v);
	return strcmp(type, "null") == 0 && json_is_null(v);
}

static int
check_type(struct walk *w, const json_t *type, const json_t *v)
{
	const json_t	*t;
	char		 names[64];
	size_t		 i;

	if (json_is_string(type)) {
		if (type_is(json_string_value(type), v))
			return 0;
		return expected(w, "Expected: %s.", json_string_value(type));
	}
	json_array_foreach(type, i, t)
		if (type_is(json_string_value(t), v))
			return 0;
	list(names, sizeof(names), type);
	return expected(w, "Expected one of: %s.", names);
}

static int
check_enum(struct walk *w, const json_t *of, const json_t *v)
{
	const json_t	*one;
	char		 names[160];
	size_t		 i;

	json_array_foreach(of, i, one)
		if (json_equal(one, v))
			return 0;
	list(names, sizeof(names), of);
	return expected(w, "Expected one of: %s.", names);
}

static int
below(const json_t *a, const json_t *b)
{
	if (json_is_integer(a) && json_is_integer(b))
		return json_integer_value(a) < json_integer_value(b);
	return json_number_value(a) < json_number_value(b);
}

/* A bound as it stands in the schema. */
static const char *
bound_text(char *buf, size_t size, const json_t *v)
{
	if (json_is_integer(v))
		(void)snprintf(buf, size, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(v));
	else
		(void)snprintf(buf, size, "%.15g", json_number_value(v));
	return buf;
}

static int
check_number(struct walk *w, const json_t *s, const json_t *v)
{
	const json_t	*lo = json_object_get(s, "minimum");
	const json_t	*hi = json_object_get(s, "maximum");
	const json_t	*top = json_object_get(s, CEILING);
	char		 min[32], max[32];

	if ((lo == NULL || !below(v, lo)) && (hi == NULL || !below(hi, v)))
		return 0;
	if (top != NULL)	/* or who follows is refused again */
		hi = top;
	if (lo != NULL && hi != NULL)
		return expected(w, "Expected: %s to %s.",
		    bound_text(min, sizeof(min), lo),
		    bound_text(max, sizeof(max), hi));
	if (lo != NULL)
		return expected(w, "Expected: %s or more.",
		    bound_text(min, sizeof(min), lo));
	return expected(w, "Expected: %s or less.",
	    bound_text(max, sizeof(max), hi));
}

static long long
bound(const json_t *s, const char *word, long long dflt)
{
	const json_t	*v = json_object_get(s, word);

	return v == NULL ? dflt : json_integer_value(v);
}

static long long
characters(const char *s)
{
	long long	n = 0;

	for (; *s != '\0'; s++)
		n += ((uint8_t)*s & 0xc0) != 0x80;
	return n;
}

static int
check_string(struct walk *w, const json_t *s, const json_t *v)
{
	const char	*text = json_string_value(v), *p;
	long long	 n = characters(text);
	long long	 lo = bound(s, "minLength", 0);
	long long	 hi = bound(s, "maxLength", INT64_MAX);
	size_t		 i;

	if (n < lo || n > hi)
		return expected(w, "Expected: %lld to %lld characters.", lo,
		    hi);
	if ((p = json_string_value(json_object_get(s, "pattern"))) == NULL)
		return 0;
	for (i = 0; i < npatterns && patterns[i].text != p; i++)
		;
	if (i == npatterns)
		fatalx("schemas: pattern of nowhere");
	if (regexec(&patterns[i].re, text, 0, NULL, 0) == 0)
		return 0;
	p = json_string_value(json_object_get(s, "title"));
	return expected(w, "Expected: %s.", p != NULL ? p :
	    patterns[i].text);
}

static int
check_array(struct walk *w, const json_t *s, const json_t *v)
{
	const json_t	*items = json_object_get(s, "items"), *one;
	long long	 n = (long long)json_array_size(v);
	long long	 lo = bound(s, "minItems", 0);
	long long	 hi = bound(s, "maxItems", INT64_MAX);
	size_t		 i, was;

	if (n < lo || n > hi)
		return expected(w, "Expected: %lld to %lld items.", lo, hi);
	json_array_foreach(v, i, one) {
		was = path_item(w, i);
		if (items != NULL && check(w, items, one) == -1)
			return -1;
		path_pop(w, was);
	}
	return 0;
}

static int
check_name(struct walk *w, const json_t *s, const char *name)
{
	const json_t	*names = json_object_get(s, "propertyNames");
	json_t		*text;
	int		 r;

	if (names == NULL)
		return 0;
	if ((text = json_string(name)) == NULL)
		fatalx("out of memory");
	r = check_string(w, names, text);
	json_decref(text);
	return r;
}

static int
check_member(struct walk *w, const json_t *s, const char *name,
    const json_t *v)
{
	const json_t	*props = json_object_get(s, "properties");
	const json_t	*more = json_object_get(s, "additionalProperties");
	const json_t	*prop = json_object_get(props, name);
	char		 names[240];

	if (prop != NULL)
		return check(w, prop, v);
	if (json_is_false(more)) {
		list(names, sizeof(names), props);
		return expected(w, "It is unknown. Expected: %s.", names);
	}
	if (check_name(w, s, name) == -1)
		return -1;
	return json_is_object(more) ? check(w, more, v) : 0;
}

static int
check_object(struct walk *w, const json_t *s, const json_t *v)
{
	const json_t	*one;
	const char	*key;
	long long	 hi = bound(s, "maxProperties", INT64_MAX);
	size_t		 i, was;

	if ((long long)json_object_size(v) > hi)
		return expected(w, "Expected: at most %lld members.", hi);
	json_object_foreach((json_t *)(uintptr_t)v, key, one) {
		was = path_member(w, key);
		if (check_member(w, s, key, one) == -1)
			return -1;
		path_pop(w, was);
	}
	json_array_foreach(json_object_get(s, "required"), i, one) {
		key = json_string_value(one);
		if (json_object_get(v, key) == NULL) {
			(void)path_member(w, key);
			return expected(w, "It is required.");
		}
	}
	return 0;
}

static int
check_one_of(struct walk *w, const json_t *s, const json_t *of,
    const json_t *v)
{
	const json_t	*one;
	const char	*text;
	size_t		 i, n = 0, was = w->len;

	json_array_foreach(of, i, one) {
		n += check(w, one, v) == 0;
		path_pop(w, was);
	}
	if (n == 1)
		return 0;
	text = json_string_value(json_object_get(s, "description"));
	return expected(w, "Expected: %s.", text != NULL ? text :
	    "another form");
}

static int
check(struct walk *w, const json_t *s, const json_t *v)
{
	const json_t	*k;

	if ((k = json_object_get(s, "$ref")) != NULL)
		return check(w, schema_find(json_string_value(k) +
		    strlen(REF)), v);
	if ((k = json_object_get(s, "type")) != NULL &&
	    check_type(w, k, v) == -1)
		return -1;
	if ((k = json_object_get(s, "enum")) != NULL &&
	    check_enum(w, k, v) == -1)
		return -1;
	if ((k = json_object_get(s, "oneOf")) != NULL &&
	    check_one_of(w, s, k, v) == -1)
		return -1;
	if (json_is_object(v))
		return check_object(w, s, v);
	if (json_is_array(v))
		return check_array(w, s, v);
	if (json_is_string(v))
		return check_string(w, s, v);
	return json_is_number(v) ? check_number(w, s, v) : 0;
}

int
schema_check(const json_t *schema, const json_t *value,
    struct schema_fault *ret_fault)
{
	struct walk	w = { ret_fault, 0 };

	ret_fault->field[0] = ret_fault->why[0] = '\0';
	return check(&w, schema, value);
}
