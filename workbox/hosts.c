/*
 * hosts: the lists of the network allowlist, as --allow, --allow-file and
 * --preset give them.
 *
 * Entries are sent as they are written: the server says what is wrong with
 * one, and what it becomes.  Here only what cannot be sent is refused.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allow.h"
#include "workbox.h"
#include "xmalloc.h"

#define BYTES_MAX	(8UL * 1024 * 1024)	/* of a file, with comments */
#define FORM		HOST_FORM " or *.SUFFIX"

/* ---- entries ------------------------------------------------------------- */

static int
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* n bytes at s without the blanks around them; how many are left. */
static size_t
trim(const char **s, size_t n)
{
	while (n > 0 && is_blank(**s)) {
		(*s)++;
		n--;
	}
	while (n > 0 && is_blank((*s)[n - 1]))
		n--;
	return n;
}

/* ---- where they stand ---------------------------------------------------- */

/* Of each entry of the list that was read last; they live as long as we do. */
static char	*origin[ALLOW_MAX];

static void
origin_set(size_t i, const char *where)
{
	free(origin[i]);
	origin[i] = xstrdup(where);
}

/* The number in "allow[3]" or "add[3]", or -1. */
static long
entry_number(const char *field)
{
	const size_t	 len = strcspn(field, "[");
	char		*end;
	long		 n;

	if (field[len] == '\0' || (strncmp(field, "allow[", len + 1) != 0 &&
	    strncmp(field, "add[", len + 1) != 0))
		return -1;
	n = strtol(field + len + 1, &end, 10);
	return n >= 0 && n < ALLOW_MAX && strcmp(end, "]") == 0 ? n : -1;
}

char *
hosts_where(const char *field)
{
	long	n = entry_number(field);

	if (n != -1)
		return origin[n] == NULL ? NULL : xstrdup(origin[n]);
	if (strcmp(field, "add") == 0 || strcmp(field, "remove") == 0)
		return xasprintf("--%s", field);
	return strncmp(field, "remove[", 7) == 0 ? xstrdup("--remove") : NULL;
}

/* ---- taken into a list --------------------------------------------------- */

/* Blanks and controls within n bytes: no name of a host has any. */
static int
has_gaps(const char *s, size_t n)
{
	size_t	i;

	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f)
			return 1;
	return 0;
}

/* where: for messages: an option, or a file and its line. */
static int
add(json_t *list, const char *where, const char *s, size_t n)
{
	if (n >= ALLOW_TEXT)
		return fail("%s: expected " FORM ", of at most %d bytes, not "
		    "%zu", where, ALLOW_TEXT - 1, n);
	if (json_array_size(list) == ALLOW_MAX)
		return fail("%s: expected at most %d entries in all", where,
		    ALLOW_MAX);
	if (memchr(s, '\0', n) != NULL)
		return fail("%s: expected UTF-8", where);
	if (has_gaps(s, n))
		return fail("%s: expected one " FORM ", without blanks and "
		    "control characters, not \"%.*s\"", where, (int)n, s);
	if (json_array_append_new(list, json_stringn(s, n)) == -1)
		return fail("%s: expected UTF-8", where);
	origin_set(json_array_size(list) - 1, where);
	return 0;
}

int
hosts_option(const struct args *a, const char *opt, json_t *list)
{
	auto_free char	*where = xasprintf("--%s", opt);
	const char	*s;
	size_t		 i = 0, n;
	int		 rc;

	while ((s = args_each(a, opt, &i)) != NULL) {
		if ((n = trim(&s, strlen(s))) == 0)
			return fail("%s: expected " FORM, where);
		if ((rc = add(list, where, s, n)) != 0)
			return rc;
	}
	return 0;
}

/* ---- files --------------------------------------------------------------- */

int
hosts_text(json_t *list, const char *name, const char *text, size_t len)
{
	const char	*end = text + len, *next, *s, *hash;
	char		*where;
	size_t		 n;
	int		 line = 1, rc = 0;

	for (; text < end && rc == 0; text = next, line++) {
		next = memchr(text, '\n', (size_t)(end - text));
		n = (size_t)((next == NULL ? end : next) - text);
		next = next == NULL ? end : next + 1;
		if ((hash = memchr(text, '#', n)) != NULL)
			n = (size_t)(hash - text);
		s = text;
		if ((n = trim(&s, n)) == 0)
			continue;
		where = xasprintf("%s:%d", name, line);
		rc = add(list, where, s, n);
		free(where);
	}
	return rc;
}

int
hosts_file(json_t *list, const char *path)
{
	int		 in = strcmp(path, "-") == 0;
	const char	*name = in ? "standard input" : path;
	auto_free char	*text = NULL;
	size_t		 len;

	text = in ? text_fd(STDIN_FILENO, BYTES_MAX, &len) :
	    text_file(path, BYTES_MAX, &len);
	if (text == NULL)
		return fail_errno("read %s", name);
	return hosts_text(list, name, text, len);
}

/* ---- presets ------------------------------------------------------------- */

static int
is_preset(const char *name)
{
	return strchr("._-", *name) == NULL && name[strspn(name,
	    "abcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static int
no_dot(const struct dirent *e)
{
	return is_preset(e->d_name);
}

char *
hosts_presets(const char *dir, const char *glue)
{
	struct dirent	**e;
	char		 *all = xstrdup(""), *more;
	int		  i, n = scandir(dir, &e, no_dot, alphasort);

	for (i = 0; i < n; i++) {
		more = xasprintf("%s%s%s", all, i > 0 ? glue : "",
		    e[i]->d_name);
		free(all);
		free(e[i]);
		all = more;
	}
	if (n >= 0)
		free(e);
	return all;
}

int
hosts_preset(json_t *list, const char *dir, const char *name)
{
	auto_free char	*path = xasprintf("%s/%s", dir, name), *all = NULL;
	auto_free char	*text = NULL;
	size_t		 len;

	if (is_preset(name) &&
	    (text = text_file(path, BYTES_MAX, &len)) != NULL)
		return hosts_text(list, path, text, len);
	if (is_preset(name) && errno != ENOENT)
		return fail_errno("read %s", path);
	all = hosts_presets(dir, ", ");
	if (*all == '\0')
		return fail("--preset: there are none in %s", dir);
	return fail("--preset: there is no \"%s\"; there are %s", name, all);
}

/* ---- held against what there is ------------------------------------------ */

/* Ports in order, each once.  How many, or -1. */
static int
ports_plain(const char *s, unsigned int ret[ALLOW_PORTS])
{
	unsigned long	v;
	char		*end;
	int		 i, n = 0;

	do {
		v = strtoul(s, &end, 10);
		if (end == s || *s < '1' || *s > '9' || v > 65535)
			return -1;
		for (i = n; i > 0 && ret[i - 1] > v; i--)
			;
		if (i == 0 || ret[i - 1] != v) {
			if (n == ALLOW_PORTS)
				return -1;
			memmove(ret + i + 1, ret + i,
			    (size_t)(n - i) * sizeof *ret);
			ret[i] = (unsigned int)v;
			n++;
		}
		s = end + 1;
	} while (*end == ',');
	return *end == '\0' ? n : -1;
}

/*
 * The canonical form, as the server lists it, of an entry in ASCII that it
 * has taken.  0, or -1: only the server knows it.  *ret_host: how much of it
 * is the host.
 */
static int
plain(const char *s, char ret[ALLOW_TEXT], size_t *ret_host)
{
	unsigned int	port[ALLOW_PORTS];
	size_t		n = strcspn(s, ":"), len = 0;
	int		i, nports = 0;

	if (n >= ALLOW_NAME ||
	    (s[n] == ':' && (nports = ports_plain(s + n + 1, port)) == -1))
		return -1;
	for (; len < n; len++) {
		if ((unsigned char)s[len] >= 0x80)
			return -1;
		ret[len] = s[len] >= 'A' && s[len] <= 'Z' ?
		    (char)(s[len] - 'A' + 'a') : s[len];
	}
	len -= len > 0 && ret[len - 1] == '.';
	ret[len] = '\0';
	*ret_host = len;
	if (nports == 2 && port[0] == 80 && port[1] == 443)
		return 0;
	for (i = 0; i < nports; i++)
		len += (size_t)snprintf(ret + len, ALLOW_TEXT - len, "%c%u",
		    i == 0 ? ':' : ',', port[i]);
	return 0;
}

int
hosts_missing(const json_t *list, const char *entry, const char **ret_near)
{
	char		 canon[ALLOW_TEXT];
	const char	*s;
	size_t		 i, host;

	*ret_near = NULL;
	if (plain(entry, canon, &host) == -1)
		return 0;
	for (i = 0; i < json_array_size(list); i++) {
		s = json_string_value(json_array_get(list, i));
		if (s == NULL)
			continue;
		if (strcmp(s, canon) == 0)
			return 0;
		if (strncmp(s, canon, host) == 0 &&
		    (s[host] == '\0' || s[host] == ':'))
			*ret_near = s;
	}
	return 1;
}

/* ---- all together -------------------------------------------------------- */

const char *
hosts_given(const struct args *a)
{
	static const char *const	opts[] = { "allow", "allow-file",
	    "preset" };
	size_t				 i;

	for (i = 0; i < sizeof opts / sizeof opts[0]; i++)
		if (args_get(a, opts[i]) != NULL)
			return opts[i];
	return NULL;
}

static int
read_all(const struct args *a, json_t *list)
{
	const char	*s;
	size_t		 i = 0;
	int		 rc;

	if ((rc = hosts_option(a, "allow", list)) != 0)
		return rc;
	if ((s = args_get(a, "allow-file")) != NULL &&
	    (rc = hosts_file(list, s)) != 0)
		return rc;
	while ((s = args_each(a, "preset", &i)) != NULL)
		if ((rc = hosts_preset(list, WB_PRESETDIR, s)) != 0)
			return rc;
	if (json_array_size(list) == 0)
		note("no entry is given: the sandbox will reach nobody");
	return 0;
}

int
hosts_list(const struct args *a, const char *kind, json_t *body)
{
	const char	*opt = hosts_given(a);
	json_t		*list;
	int		 rc;

	if (kind != NULL && strcmp(kind, "allowlist") != 0 && opt != NULL)
		return fail("--%s goes with the network allowlist, not with "
		    "\"%s\"", opt, kind);
	if (opt == NULL && (kind == NULL || strcmp(kind, "allowlist") != 0))
		return 0;
	list = json_array();
	if ((rc = read_all(a, list)) == 0) {
		json_object_set_new(body, "network", json_string("allowlist"));
		json_object_set(body, "allow", list);
	}
	json_decref(list);
	return rc;
}
