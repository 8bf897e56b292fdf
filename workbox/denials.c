/*
 * denials: what a sandbox's network has denied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workbox.h"
#include "xmalloc.h"

static int	denials_main(const struct args *);

static const struct opt denials_opts[] = {
	{ "limit", "NUMBER", "most denials, at most 256; all that are kept if "
	    "left out", 0, 0 },
	{ "suggest", NULL, "print what the list of allowlist would have had to "
	    "have, one a line", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_denials = {
	.name = "sandbox denials",
	.operands = "SANDBOX",
	.doc = "List what the network of a sandbox has denied, newest first",
	.opts = denials_opts,
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 1, .max = 1,
	.run = denials_main
};

/* Whether any has a name, as those of allowlist do. */
static int
has_names(const json_t *items)
{
	size_t	i;

	for (i = 0; i < json_array_size(items); i++)
		if (*json_str(json_array_get(items, i), "name") != '\0')
			return 1;
	return 0;
}

/* The several destinations of one line have neither name nor address. */
static void
denials_table(const json_t *items)
{
	int		 names = has_names(items);
	struct table	 t;
	const json_t	*d;
	const char	*address, *name;
	char		 when[20], num[24];
	size_t		 i;

	if (names)
		table_init(&t, 7, "LAST", "RULE", "NAME", "ADDRESS", "PORT",
		    "PROTOCOL", "COUNT");
	else
		table_init(&t, 6, "LAST", "RULE", "ADDRESS", "PORT",
		    "PROTOCOL", "COUNT");
	for (i = 0; i < json_array_size(items); i++) {
		d = json_array_get(items, i);
		text_local(text_time(json_str(d, "lastAt")), when);
		table_add(&t, when);
		table_add(&t, json_str(d, "rule"));
		name = json_str(d, "name");
		if (names)
			table_add(&t, name);
		address = json_str(d, "address");
		table_add(&t, *address != '\0' || *name != '\0' ? address :
		    "(others)");
		table_add(&t, json_num(d, "port", num));
		table_add(&t, json_str(d, "protocol"));
		table_add(&t, json_num(d, "count", num));
	}
	table_print(&t, stdout);
}

/* ---- suggestions --------------------------------------------------------- */

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * Whether an entry for a name that is on no list may be of use: what has no
 * dot is a name of a local network alone, and those below in-addr.arpa and
 * ip6.arpa are addresses, which programs ask for to write them into logs.
 */
static int
is_host(const char *s)
{
	static const char *const	reverse[] = { "in-addr.arpa",
	    "ip6.arpa" };
	size_t				i, len, n = strcspn(s, ":");

	for (i = 0; i < sizeof reverse / sizeof reverse[0]; i++) {
		len = strlen(reverse[i]);
		if (n >= len && memcmp(s + n - len, reverse[i], len) == 0 &&
		    (n == len || s[n - len - 1] == '.'))
			return 0;
	}
	return memchr(s, '.', n) != NULL;
}

/* Kind of its network, or "": only to say why nothing is suggested. */
static char *
kind(const char *ref)
{
	struct req	*r;
	char		*path = client_path("/v1/sandboxes", ref, NULL), *s;
	json_t		*box;

	r = req_new("GET", path);
	free(path);
	box = req_run(r) == 0 ? req_answer(r) : NULL;
	s = xstrdup(json_str(box, "network"));
	json_decref(box);
	req_free(r);
	return s;
}

/*
 * The entries that denials name: in order, each once.  What is not of an
 * entry's characters is passed over: a box asked for it, and the lines may
 * become a file, or words of a command.
 */
static void
suggest(const json_t *items, const char *ref)
{
	const json_t	*d;
	const char	*s, **v;
	auto_free char	*network = NULL;
	size_t		 i, n = 0;

	v = xcalloc(json_array_size(items), sizeof *v);
	for (i = 0; i < json_array_size(items); i++) {
		d = json_array_get(items, i);
		s = json_str(d, "entry");
		if (strcmp(json_str(d, "rule"), "name") == 0 && !is_host(s))
			continue;
		if (*s != '\0' && strchr("-:,", *s) == NULL &&
		    s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789"
		    "*._:,-")] == '\0')
			v[n++] = s;
	}
	qsort(v, n, sizeof *v, by_text);
	for (i = 0; i < n; i++)
		if (i == 0 || strcmp(v[i], v[i - 1]) != 0)
			printf("%s\n", v[i]);
	free(v);
	if (n > 0)
		return;
	network = kind(ref);
	if (*network != '\0' && strcmp(network, "allowlist") != 0)
		note("nothing to suggest: the network is %s, which has no "
		    "list of hosts", network);
	else
		note("nothing to suggest: %s", json_array_size(items) == 0 ?
		    "nothing was denied" : "what was denied no entry of a "
		    "list would let through");
}

static int
denials_main(const struct args *a)
{
	int		 lines = args_get(a, "suggest") != NULL;
	const char	*limit = args_get(a, "limit");
	char		*path;
	json_t		*list;
	uint64_t	 v;
	int		 rc;

	if (limit != NULL && text_u64(limit, 1, 256, &v) == -1)
		return fail("--limit: expected a number from 1 to 256, not "
		    "\"%s\"", limit);
	if (lines && args_json(a))
		return fail("--suggest prints lines: expected it without "
		    "--format json");
	if ((rc = client_init(a)) != 0)
		return rc;
	path = client_path("/v1/sandboxes", a->operand[0], "denials", NULL);
	if (limit != NULL)
		client_query(&path, "limit", limit);
	if ((rc = client_call("GET", path, NULL, &list)) != 0)
		return rc;
	if (args_json(a) || !json_is_array(json_object_get(list, "items")))
		rc = json_print(list);
	else if (lines)
		suggest(json_object_get(list, "items"), a->operand[0]);
	else
		denials_table(json_object_get(list, "items"));
	json_decref(list);
	return rc;
}
