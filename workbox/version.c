/*
 * version: which release is where: this program, the server, and what runs in
 * each sandbox, which stays what it was when the server is upgraded.
 */
#include <stdlib.h>
#include <string.h>

#include "workbox.h"

static int	version_main(const struct args *);

const struct cmd cmd_version = {
	.name = "version",
	.operands = "",
	.doc = "Print the versions of this program, of the server when it "
	    "answers, and of what runs in its sandboxes",
	.flags = CMD_CLIENT | CMD_FORMAT,
	.run = version_main
};

/* That one is not told is no fault, but why is; NULL. */
static json_t *
server_ask(void)
{
	struct req	*r = req_new("GET", "/v1/version");
	json_t		*j = NULL;

	if (req_run(r) == -1)
		(void)req_fail(r);
	else if ((j = req_answer(r)) == NULL)
		note("%s answered without JSON", client_server());
	req_free(r);
	return j;
}

/* Those of which there is something to tell; NULL where it was not told. */
static json_t *
runners_ask(void)
{
	json_t	*all, *ret, *box;
	size_t	 i;

	if (client_list(client_path("/v1/sandboxes", NULL), &all) != 0)
		return NULL;		/* it says why */
	ret = json_array();
	json_array_foreach(all, i, box)
		if (strcmp(json_str(box, "state"), "DELETING") != 0)
			(void)json_array_append_new(ret, json_pack(
			    "{ss ss ss ss sO? sO?}",
			    "id", json_str(box, "id"),
			    "name", json_str(box, "name"),
			    "state", json_str(box, "state"),
			    "health", json_str(box, "health"),
			    "healthReason",
			    json_object_get(box, "healthReason"),
			    "runner", json_object_get(box, "runner")));
	json_decref(all);
	return ret;
}

/* It is there, and could not say more: see workbox-api(7), UPGRADES. */
static int
misfit(const json_t *runner)
{
	return json_is_object(runner) &&
	    json_is_null(json_object_get(runner, "version"));
}

static void
runners_table(const json_t *boxes)
{
	struct table	 t;
	const json_t	*box, *run;
	char		 proto[24];
	size_t		 i, misfits = 0;

	table_init(&t, 5, "NAME", "ID", "HEALTH", "RUNNER", "PROTOCOL");
	json_array_foreach(boxes, i, box) {
		run = json_object_get(box, "runner");
		table_add(&t, json_str(box, "name"));
		table_add(&t, json_str(box, "id"));
		table_add(&t, json_str(box, "health"));
		table_add(&t, json_str(run, "version"));
		table_add(&t, json_num(run, "protocol", proto));
		misfits += (size_t)misfit(run);
	}
	table_print(&t, stdout);
	if (misfits != 0)
		note("%zu of them cannot be reached: what runs there speaks a "
		    "protocol that this server does not.  Remove them "
		    "(`workbox sandbox rm') and make them anew, or serve once "
		    "more with the release that made them", misfits);
}

static void
server_line(const json_t *server)
{
	char	shown[128], newest[24], oldest[24];

	(void)text_show(json_str(server, "version"), shown, sizeof shown);
	printf("server %s at %s\n", shown, client_server());
	if (*json_num(server, "protocol", newest) == '\0')
		return;			/* an older server does not tell */
	printf("protocol %s, and %s of the release before\n", newest,
	    json_num(server, "protocolOldest", oldest));
}

static int
version_main(const struct args *a)
{
	json_t	*server = NULL, *boxes = NULL, *all;
	int	 rc;

	if (!args_json(a))
		printf("workbox %s\n", PACKAGE_VERSION);
	if (client_init(a) != 0)
		return EXIT_OURS;
	if ((server = server_ask()) != NULL)
		boxes = runners_ask();
	rc = 0;
	if (args_json(a)) {
		all = json_pack("{s{ss} sO? sO?}", "client", "version",
		    PACKAGE_VERSION, "server", server, "sandboxes", boxes);
		rc = json_print(all);
		json_decref(all);
	} else if (server != NULL) {
		server_line(server);
		if (json_array_size(boxes) != 0)
			runners_table(boxes);
	}
	json_decref(server);
	json_decref(boxes);
	return rc;
}
