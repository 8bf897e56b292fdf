/*
 * sandbox: create, inspect, list, rm, proof, release.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

static int	create_main(const struct args *);
static int	inspect_main(const struct args *);
static int	list_main(const struct args *);
static int	rm_main(const struct args *);
static int	proof_main(const struct args *);
static int	release_main(const struct args *);

static const struct opt create_opts[] = {
	{ "name", "NAME", "made up when left out", 0, 0 },
	{ "rootfs", "ROOTFS", "root file system; the client file's or the "
	    "server's default one when left out", 0, 0 },
	{ "network", "KIND", "egress: the open internet, nothing private; "
	    "allowlist: hosts by name; or none; the server's default one "
	    "when left out", 0, 0 },
	HOSTS_OPTS,
	{ "memory", "BYTES", "limit of memory, at least 16M; K, M, G and T "
	    "may follow", 0, 0 },
	{ "cpus", "NUMBER", "limit of processor time, in cores, at least "
	    "0.01", 0, 0 },
	{ "pids", "NUMBER", "limit of processes, at least 128; the runner "
	    "keeps 64 of them", 0, 0 },
	{ "label", "NAME=VALUE", "label", 0, 1 },
	{ "env", "NAME=VALUE", "environment variable of every session", 0,
	    1 },
	{ "no-wait", NULL, "answer before the sandbox is ready", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_create = {
	.name = "sandbox create",
	.operands = "",
	.doc = "Make a sandbox and print it as JSON",
	.opts = create_opts,
	.flags = CMD_CLIENT,
	.run = create_main
};

const struct cmd cmd_sandbox_inspect = {
	.name = "sandbox inspect",
	.operands = "SANDBOX",
	.doc = "Print a sandbox as JSON",
	.flags = CMD_CLIENT,
	.min = 1, .max = 1,
	.run = inspect_main
};

static const struct opt list_opts[] = {
	{ "label", "NAME[=VALUE]", "only those with this label", 0, 1 },
	{ "state", "STATE", "only those in this state", 0, 0 },
	{ "name", "NAME", "only the one with this name", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_list = {
	.name = "sandbox list",
	.alias = "sandbox ls",
	.operands = "",
	.doc = "List the sandboxes",
	.opts = list_opts,
	.flags = CMD_CLIENT | CMD_FORMAT,
	.run = list_main
};

static const struct opt rm_opts[] = {
	{ "grace", "SECONDS", "time for sessions to end; 10 if left out", 0,
	    0 },
	{ "all", NULL, "every sandbox, instead of those that are named; asks "
	    "first", 0, 0 },
	{ "yes", NULL, "with --all: do not ask", 'y', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_rm = {
	.name = "sandbox rm",
	.alias = "sandbox remove, sandbox delete",
	.operands = "[SANDBOX ...]",
	.doc = "End sandboxes and remove what is theirs",
	.opts = rm_opts,
	.flags = CMD_CLIENT,
	.max = -1,
	.run = rm_main
};

const struct cmd cmd_sandbox_proof = {
	.name = "sandbox proof",
	.operands = "SANDBOX",
	.doc = "Print the evidence of the last boot proof",
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 1, .max = 1,
	.run = proof_main
};

static const struct opt release_opts[] = {
	{ "reason", "TEXT", "why, for the record", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_release = {
	.name = "sandbox release",
	.operands = "SANDBOX",
	.doc = "Let a sandbox go on that is QUARANTINED or SUSPECT, if its "
	    "proof, taken again, says that it may",
	.opts = release_opts,
	.flags = CMD_CLIENT,
	.min = 1, .max = 1,
	.run = release_main
};

/* ---- create ------------------------------------------------------------ */

int
spec_limits(const struct args *a, json_t *body)
{
	const char	*mem = args_get(a, "memory");
	const char	*cpus = args_get(a, "cpus");
	const char	*pids = args_get(a, "pids");
	json_t		*limits = json_object();
	uint64_t	 v;
	double		 d;

	json_object_set_new(body, "limits", limits);
	if (mem != NULL) {
		if (text_bytes(mem, 1, INT64_MAX, &v) == -1)
			return fail("--memory: expected bytes, as 536870912 "
			    "or 512M, not \"%s\"", mem);
		json_object_set_new(limits, "memoryBytes",
		    json_integer((json_int_t)v));
	}
	if (cpus != NULL) {
		if (text_decimal(cpus, 0.000001, 1e6, &d) == -1)
			return fail("--cpus: expected a number of cores, as "
			    "2 or 0.5, not \"%s\"", cpus);
		json_object_set_new(limits, "cpus", json_real(d));
	}
	if (pids != NULL) {
		if (text_u64(pids, 1, INT64_MAX, &v) == -1)
			return fail("--pids: expected a number of processes, "
			    "not \"%s\"", pids);
		json_object_set_new(limits, "pids",
		    json_integer((json_int_t)v));
	}
	if (json_object_size(limits) == 0)
		json_object_del(body, "limits");
	return 0;
}

int
spec_pairs(const struct args *a, const char *opt, const char *key,
    json_t *body)
{
	json_t	*pairs = pairs_json(a, opt);

	if (pairs == NULL)
		return EXIT_OURS;
	if (json_object_size(pairs) > 0)
		json_object_set(body, key, pairs);
	json_decref(pairs);
	return 0;
}

static int
set_words(const struct args *a, json_t *body)
{
	static const char *const	words[] = { "name", "network" };
	const char			*s, *where;
	size_t				 i;

	for (i = 0; i < sizeof words / sizeof words[0]; i++)
		if ((s = args_get(a, words[i])) != NULL &&
		    json_object_set_new(body, words[i], json_string(s)) == -1)
			return fail("--%s: expected UTF-8", words[i]);
	s = setting(a, "rootfs", NULL, SET_ROOTFS, &where);
	if (s != NULL &&
	    json_object_set_new(body, "rootfs", json_string(s)) == -1)
		return fail("%s: expected UTF-8", where);
	return 0;
}

static int
create_main(const struct args *a)
{
	json_t	*body = json_object(), *box;
	char	*path;
	int	 rc;

	if ((rc = client_init(a)) != 0 || (rc = set_words(a, body)) != 0 ||
	    (rc = hosts_list(a, args_get(a, "network"), body)) != 0 ||
	    (rc = spec_limits(a, body)) != 0 ||
	    (rc = spec_pairs(a, "label", "labels", body)) != 0 ||
	    (rc = spec_pairs(a, "env", "env", body)) != 0) {
		json_decref(body);
		return rc;
	}
	client_fields(hosts_where);
	path = client_path("/v1/sandboxes", NULL);
	if (args_get(a, "no-wait") != NULL)
		client_query(&path, "wait", "0");
	if ((rc = again_make(path, body, &box)) != 0)
		return rc;
	rc = json_print(box);
	json_decref(box);
	return rc;
}

/* ---- inspect, list ----------------------------------------------------- */

static int
inspect_main(const struct args *a)
{
	json_t	*box;
	int	 rc;

	if ((rc = client_init(a)) != 0 || (rc = client_call("GET",
	    client_path("/v1/sandboxes", a->operand[0], NULL), NULL,
	    &box)) != 0)
		return rc;
	rc = json_print(box);
	json_decref(box);
	return rc;
}

static int
print_items(json_t *items)
{
	json_t	*list = json_pack("{s:O}", "items", items);
	int	 rc = json_print(list);

	json_decref(list);
	return rc;
}

static void
list_table(const json_t *items, FILE *f)
{
	static const char *const	keys[] = { "name", "id", "state",
	    "health", "rootfs", "network" };
	struct table			 t;
	const json_t			*box;
	char				 when[20];
	size_t				 i, k;

	table_init(&t, 7, "NAME", "ID", "STATE", "HEALTH", "ROOTFS",
	    "NETWORK", "CREATED");
	for (i = 0; i < json_array_size(items); i++) {
		box = json_array_get(items, i);
		for (k = 0; k < sizeof keys / sizeof keys[0]; k++)
			table_add(&t, json_str(box, keys[k]));
		text_local(text_time(json_str(box, "createdAt")), when);
		table_add(&t, when);
	}
	table_print(&t, f);
}

static int
list_main(const struct args *a)
{
	static const char *const	words[] = { "state", "name" };
	char				*path;
	const char			*s;
	json_t				*items;
	size_t				 i = 0;
	int				 rc;

	if ((rc = client_init(a)) != 0)
		return rc;
	path = client_path("/v1/sandboxes", NULL);
	while ((s = args_each(a, "label", &i)) != NULL)
		client_query(&path, "label", s);
	for (i = 0; i < sizeof words / sizeof words[0]; i++)
		if ((s = args_get(a, words[i])) != NULL)
			client_query(&path, words[i], s);
	if ((rc = client_list(path, &items)) != 0)
		return rc;
	if (args_json(a))
		rc = print_items(items);
	else
		list_table(items, stdout);
	json_decref(items);
	return rc;
}

/* ---- rm ---------------------------------------------------------------- */

/*
 * One request, told when it fails.  With gone_ok a sandbox that is not there
 * any more is none: somebody else was faster.
 */
static int
rm_one(const char *ref, const char *name, const char *grace, int gone_ok)
{
	char		*path = client_path("/v1/sandboxes", ref, NULL);
	struct req	*r;
	int		 rc = 0;

	if (grace != NULL)
		client_query(&path, "graceSeconds", grace);
	client_about(name);
	r = req_new("DELETE", path);
	free(path);
	if (req_run(r) == -1 && !(gone_ok && req_status(r) == 404))
		rc = req_fail(r);
	req_free(r);
	return rc;
}

/* Whether they are to go: 0, or a code. */
static int
rm_ask(const struct args *a, const json_t *items)
{
	size_t	n = json_array_size(items);
	char	answer[16];

	if (args_get(a, "yes") != NULL)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return fail("--all: expected --yes, or a terminal to ask on; "
		    "nothing was removed");
	list_table(items, stderr);
	(void)fprintf(stderr, "Remove %s%zu sandbox%s, and all that is in "
	    "%s? [y/N] ", n > 1 ? "these " : "this ", n, n > 1 ? "es" : "",
	    n > 1 ? "them" : "it");
	(void)fflush(stderr);
	if (fgets(answer, sizeof answer, stdin) != NULL &&
	    (strcmp(answer, "y\n") == 0 || strcmp(answer, "Y\n") == 0 ||
	    strcmp(answer, "yes\n") == 0))
		return 0;
	return fail("nothing was removed");
}

/* By id: another one may have got the name meanwhile. */
static int
rm_all(const struct args *a, const char *grace)
{
	const json_t	*box;
	json_t		*items;
	size_t		 i;
	int		 rc, one;

	rc = client_list(client_path("/v1/sandboxes", NULL), &items);
	if (rc != 0)
		return rc;
	if (json_array_size(items) > 0)
		rc = rm_ask(a, items);
	else
		note("there are no sandboxes");
	for (i = 0; rc == 0 && i < json_array_size(items); i++)
		if (!args_ref_ok(json_str(json_array_get(items, i), "id")))
			rc = fail("%s listed a sandbox without id; nothing "
			    "was removed", client_server());
	if (rc != 0) {
		json_decref(items);
		return rc;
	}
	for (i = 0; i < json_array_size(items); i++) {
		box = json_array_get(items, i);
		one = rm_one(json_str(box, "id"), json_str(box, "name"),
		    grace, 1);
		rc = rc != 0 ? rc : one;
	}
	json_decref(items);
	return rc;
}

static int
rm_main(const struct args *a)
{
	const char	*grace = args_get(a, "grace");
	int		 all = args_get(a, "all") != NULL;
	uint64_t	 v;
	int		 i, rc, one;

	if (grace != NULL && text_u64(grace, 0, 86400, &v) == -1)
		return fail("--grace: expected seconds from 0 to 86400, "
		    "not \"%s\"", grace);
	if (all == (a->noperand > 0))
		return fail("expected SANDBOX ... or --all%s; try --help",
		    all ? ", not both" : "");
	if (!all && args_get(a, "yes") != NULL)
		return fail("--yes goes with --all");
	if ((rc = client_init(a)) != 0)
		return rc;
	if (all)
		return rm_all(a, grace);
	for (i = 0; i < a->noperand; i++) {
		one = rm_one(a->operand[i], a->operand[i], grace, 0);
		rc = rc != 0 ? rc : one;
	}
	return rc;
}

/* ---- proof ------------------------------------------------------------- */

#define CELL_MAX	64		/* mounts are long: see the JSON */

/* One value of a fact; long ones are cut, to the end of their line at most. */
static void
value(const json_t *fact, const char *key, char ret[CELL_MAX + 4])
{
	const json_t	*v = json_object_get(fact, key);
	const char	*s;
	size_t		 n;

	if (json_is_integer(v)) {
		(void)snprintf(ret, CELL_MAX, "%lld",
		    (long long)json_integer_value(v));
		return;
	}
	s = json_str(fact, key);
	n = strcspn(s, "\n");
	if (n > CELL_MAX)
		n = CELL_MAX;
	(void)snprintf(ret, CELL_MAX + 4, "%.*s%s", (int)n, s,
	    s[n] != '\0' ? "..." : "");
}

static void
proof_table(const json_t *proof)
{
	static const char *const	keys[] = { "field", "asked", "host",
	    "runner" };
	const json_t			*facts, *f;
	struct table			 t;
	char				 cell[CELL_MAX + 4];
	size_t				 i, k;

	facts = json_object_get(proof, "facts");
	table_init(&t, 4, "FIELD", "ASKED", "HOST SAW", "RUNNER SAID");
	for (i = 0; i < json_array_size(facts); i++) {
		f = json_array_get(facts, i);
		for (k = 0; k < sizeof keys / sizeof keys[0]; k++) {
			value(f, keys[k], cell);
			table_add(&t, cell);
		}
	}
	table_print(&t, stdout);
}

static int
proof_main(const struct args *a)
{
	json_t	*proof;
	int	 rc;

	if ((rc = client_init(a)) != 0 || (rc = client_call("GET",
	    client_path("/v1/sandboxes", a->operand[0], "proof", NULL), NULL,
	    &proof)) != 0)
		return rc;
	if (args_json(a) || !json_is_array(json_object_get(proof, "facts")))
		rc = json_print(proof);
	else
		proof_table(proof);
	json_decref(proof);
	return rc;
}

/* ---- release ----------------------------------------------------------- */

static int
release_main(const struct args *a)
{
	const char	*why = args_get(a, "reason");
	json_t		*body = json_object(), *box;
	int		 rc;

	if (why != NULL && json_object_set_new(body, "reason",
	    json_string(why)) == -1)
		rc = fail("--reason: expected UTF-8");
	else
		rc = client_init(a);
	if (rc != 0) {
		json_decref(body);
		return rc;
	}
	if ((rc = client_call("POST", client_path("/v1/sandboxes",
	    a->operand[0], "release", NULL), body, &box)) != 0)
		return rc;
	rc = json_print(box);
	json_decref(box);
	return rc;
}
