/*
 * network: the kind of a sandbox's network, and its list of hosts: told, and
 * changed while it runs.
 */
#include <string.h>

#include "workbox.h"
#include "xmalloc.h"

static int	network_main(const struct args *);

static const struct opt network_opts[] = {
	HOSTS_OPTS,
	{ "add", HOST_FORM, "one more for the list that an allowlist has; "
	    "those above give a whole list in its place", 0, 1 },
	{ "add-file", "FILE", "as many more as are in a file; - for standard "
	    "input", 0, 0 },
	{ "remove", HOST_FORM, "one less, with the ports that it is listed "
	    "with", 0, 1 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_network = {
	.name = "sandbox network",
	.operands = "SANDBOX [KIND]",
	.doc = "Print the network of a sandbox and its list of hosts, or "
	    "change it while it runs: none, egress or allowlist",
	.opts = network_opts,
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 1, .max = 2,
	.run = network_main
};

static int
network_get(const struct args *a, json_t **ret)
{
	return client_call("GET", client_path("/v1/sandboxes", a->operand[0],
	    "network", NULL), NULL, ret);
}

/* ---- told ---------------------------------------------------------------- */

/* As a file for --allow-file, the kind in a comment at its head. */
static void
network_lines(const json_t *net)
{
	const json_t	*list = json_object_get(net, "allow");
	char		 shown[1024];
	size_t		 i, n = json_array_size(list);

	(void)text_show(json_str(net, "network"), shown, sizeof shown);
	printf("# %s", shown);
	if (json_is_array(list))
		printf(", %zu entr%s%s", n, n == 1 ? "y" : "ies", n == 0 ?
		    ": reaches nobody" : "");
	(void)putchar('\n');
	for (i = 0; i < n; i++) {
		(void)text_show(json_string_value(json_array_get(list, i)),
		    shown, sizeof shown);
		printf("%s\n", shown);
	}
}

static int
network_show(const struct args *a)
{
	json_t	*net;
	int	 rc;

	if ((rc = client_init(a)) != 0 || (rc = network_get(a, &net)) != 0)
		return rc;
	if (args_json(a))
		rc = json_print(net);
	else
		network_lines(net);
	json_decref(net);
	return rc;
}

/* ---- changed ------------------------------------------------------------- */

/* The first that is given of what changes a list; NULL: none. */
static const char *
change_given(const struct args *a)
{
	return args_get(a, "add") != NULL ? "add" :
	    args_get(a, "add-file") != NULL ? "add-file" :
	    args_get(a, "remove") != NULL ? "remove" : NULL;
}

/* What is added is read last: hosts_where() knows that list then. */
static int
set_change(const struct args *a, json_t *body)
{
	const char	*file = args_get(a, "add-file");
	json_t		*more = json_array(), *less = json_array();
	int		 rc;

	json_object_set_new(body, "network", json_string("allowlist"));
	if ((rc = hosts_option(a, "remove", less)) == 0 &&
	    (rc = hosts_option(a, "add", more)) == 0 && file != NULL)
		rc = hosts_file(more, file);
	if (json_array_size(more) > 0)
		json_object_set(body, "add", more);
	if (json_array_size(less) > 0)
		json_object_set(body, "remove", less);
	json_decref(more);
	json_decref(less);
	if (rc == 0 && json_object_size(body) == 1)
		rc = fail("--add-file %s: has no entry", file);
	return rc;
}

/* What is to be sent; of allowlist alone no list: it keeps the one it has. */
static int
set_body(const struct args *a, const char *kind, json_t *body)
{
	const char	*change = change_given(a), *whole = hosts_given(a);

	if (change != NULL && whole != NULL)
		return fail("--%s changes the list that there is, --%s gives "
		    "another: expected one of the two", change, whole);
	if (change != NULL && kind != NULL && strcmp(kind, "allowlist") != 0)
		return fail("--%s goes with the network allowlist, not with "
		    "\"%s\"", change, kind);
	if (change != NULL)
		return set_change(a, body);
	if (whole != NULL)
		return hosts_list(a, kind, body);
	if (json_object_set_new(body, "network", json_string(kind)) == -1)
		return fail("KIND: expected UTF-8");
	return 0;
}

/* The list that is to be changed, or kept; 0, or fail()'s code. */
static int
list_before(const struct args *a, json_t **ret)
{
	const char	*change = change_given(a);
	json_t		*net;
	int		 rc;

	if ((rc = network_get(a, &net)) != 0)
		return rc;
	*ret = json_incref(json_object_get(net, "allow"));
	if (change != NULL && !json_is_array(*ret)) {
		rc = fail("--%s: the network of %s is %s and has no list: "
		    "expected allowlist, with --allow, --allow-file or "
		    "--preset", change, a->operand[0], json_str(net,
		    "network"));
		json_decref(*ret);
		*ret = NULL;
	}
	json_decref(net);
	return rc;
}

/* What was asked for and may not be what was meant. */
static void
list_notes(const struct args *a, const json_t *before)
{
	const char	*s, *near;
	size_t		 i = 0;

	if (change_given(a) == NULL && json_array_size(before) == 0)
		note("%s has no entry on its list: it reaches nobody",
		    a->operand[0]);
	while ((s = args_each(a, "remove", &i)) != NULL)
		if (hosts_missing(before, s, &near))
			note("--remove %s: was not on the list%s%s", s,
			    near != NULL ? ", which has " : "",
			    near != NULL ? near : "");
}

static int
network_set(const struct args *a, const char *kind, json_t *body)
{
	json_t	*before = NULL, *box;
	int	 rc = 0, looks = change_given(a) != NULL || (kind != NULL &&
		    strcmp(kind, "allowlist") == 0 && hosts_given(a) == NULL);

	if (looks && (rc = list_before(a, &before)) != 0)
		json_decref(body);
	else if ((rc = client_call("PUT", client_path("/v1/sandboxes",
	    a->operand[0], "network", NULL), body, &box)) == 0) {
		if (looks)
			list_notes(a, before);
		if (args_json(a))
			rc = json_print(box);
		json_decref(box);
	}
	json_decref(before);
	return rc;
}

static int
network_main(const struct args *a)
{
	const char	*kind = a->noperand > 1 ? a->operand[1] : NULL;
	json_t		*body;
	int		 rc;

	if (kind == NULL && change_given(a) == NULL && hosts_given(a) == NULL)
		return network_show(a);
	body = json_object();
	if ((rc = set_body(a, kind, body)) != 0 ||
	    (rc = client_init(a)) != 0) {
		json_decref(body);
		return rc;
	}
	client_about(a->operand[0]);
	client_fields(hosts_where);
	return network_set(a, kind, body);
}
