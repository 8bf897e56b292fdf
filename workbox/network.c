/*
 * network: the kind of a sandbox's network, and its list of hosts, while it
 * runs.
 */
#include <string.h>

#include "workbox.h"

static int	network_main(const struct args *);

static const struct opt network_opts[] = {
	HOSTS_OPTS,
	{ "add", "HOST[:PORT]", "one more for the list of allowlist, as it "
	    "is", 0, 1 },
	{ "remove", "HOST[:PORT]", "one less, as it was given", 0, 1 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_network = {
	.name = "sandbox network",
	.operands = "SANDBOX [KIND]",
	.doc = "Change the network of a sandbox that runs: none, egress or "
	    "allowlist",
	.opts = network_opts,
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 1, .max = 2,
	.run = network_main
};

/* The list that there is, by --add and --remove. */
static int
set_change(const struct args *a, json_t *body)
{
	static const char *const	opts[] = { "add", "remove" };
	const char			*whole = hosts_given(a);
	json_t				*list;
	size_t				 i;
	int				 rc = 0;

	if (whole != NULL)
		return fail("--%s is of a whole list: expected SANDBOX "
		    "allowlist, without --add and --remove", whole);
	json_object_set_new(body, "network", json_string("allowlist"));
	for (i = 0; i < 2 && rc == 0; i++) {
		list = json_array();
		rc = hosts_option(a, opts[i], list);
		if (rc == 0 && json_array_size(list) > 0)
			json_object_set(body, opts[i], list);
		json_decref(list);
	}
	return rc;
}

static int
set_body(const struct args *a, json_t *body)
{
	const char	*kind = a->noperand > 1 ? a->operand[1] : NULL;
	int		 change = args_get(a, "add") != NULL ||
			    args_get(a, "remove") != NULL;

	if (change && kind != NULL)
		return fail("--add and --remove change the list that there "
		    "is: expected SANDBOX without \"%s\"", kind);
	if (change)
		return set_change(a, body);
	if (kind == NULL)
		return fail("expected SANDBOX KIND, or SANDBOX with --add or "
		    "--remove; try --help");
	if (json_object_set_new(body, "network", json_string(kind)) == -1)
		return fail("KIND: expected UTF-8");
	return hosts_list(a, kind, body);
}

static int
network_main(const struct args *a)
{
	json_t	*body = json_object(), *box;
	int	 rc;

	if ((rc = set_body(a, body)) != 0 || (rc = client_init(a)) != 0) {
		json_decref(body);
		return rc;
	}
	rc = client_call("PUT", client_path("/v1/sandboxes", a->operand[0],
	    "network", NULL), body, &box);
	if (rc != 0)
		return rc;
	if (args_json(a))
		rc = json_print(box);
	json_decref(box);
	return rc;
}
