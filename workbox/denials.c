/*
 * denials: what a sandbox's network has denied.
 */
#include <stdlib.h>

#include "workbox.h"
#include "xmalloc.h"

static int	denials_main(const struct args *);

static const struct opt denials_opts[] = {
	{ "limit", "NUMBER", "most denials, at most 256; all that are kept if "
	    "left out", 0, 0 },
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

/* A number, or "" of what is none. */
static void
number(const json_t *item, const char *key, char ret[24])
{
	const json_t	*v = json_object_get(item, key);

	ret[0] = '\0';
	if (json_is_integer(v))
		(void)snprintf(ret, 24, "%lld",
		    (long long)json_integer_value(v));
}

/* The several destinations of one line have no address. */
static void
denials_table(const json_t *items)
{
	struct table	 t;
	const json_t	*d;
	const char	*address;
	char		 when[20], num[24];
	size_t		 i;

	table_init(&t, 6, "LAST", "RULE", "ADDRESS", "PORT", "PROTOCOL",
	    "COUNT");
	for (i = 0; i < json_array_size(items); i++) {
		d = json_array_get(items, i);
		text_local(text_time(json_str(d, "lastAt")), when);
		table_add(&t, when);
		table_add(&t, json_str(d, "rule"));
		address = json_str(d, "address");
		table_add(&t, *address != '\0' ? address : "(others)");
		number(d, "port", num);
		table_add(&t, num);
		table_add(&t, json_str(d, "protocol"));
		number(d, "count", num);
		table_add(&t, num);
	}
	table_print(&t, stdout);
}

static int
denials_main(const struct args *a)
{
	const char	*limit = args_get(a, "limit");
	char		*path;
	json_t		*list;
	uint64_t	 v;
	int		 rc;

	if (limit != NULL && text_u64(limit, 1, 256, &v) == -1)
		return fail("--limit: expected a number from 1 to 256, not "
		    "\"%s\"", limit);
	if ((rc = client_init(a)) != 0)
		return rc;
	path = client_path("/v1/sandboxes", a->operand[0], "denials", NULL);
	if (limit != NULL)
		client_query(&path, "limit", limit);
	if ((rc = client_call("GET", path, NULL, &list)) != 0)
		return rc;
	if (args_json(a) || !json_is_array(json_object_get(list, "items")))
		rc = json_print(list);
	else
		denials_table(json_object_get(list, "items"));
	json_decref(list);
	return rc;
}
