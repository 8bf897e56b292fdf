/*
 * launch_log: what a sandbox's launch and its runner have said.
 */
#include <stdio.h>
#include <stdlib.h>

#include "workbox.h"

static int	launch_log_main(const struct args *);

const struct cmd cmd_sandbox_launch_log = {
	.name = "sandbox launch-log",
	.operands = "SANDBOX",
	.doc = "Print what its launch and its runner have said",
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 1, .max = 1,
	.run = launch_log_main
};

/* A box's own words may steer a terminal: not here. */
static void
line_print(const char *s)
{
	char	*shown = text_ascii(s != NULL ? s : "");

	(void)puts(shown);
	free(shown);
}

static int
launch_log_main(const struct args *a)
{
	json_t	*o, *lines, *line;
	size_t	 i;
	int	 rc;

	if ((rc = client_init(a)) != 0 || (rc = client_call("GET",
	    client_path("/v1/sandboxes", a->operand[0], "launch-log", NULL),
	    NULL, &o)) != 0)
		return rc;
	lines = json_object_get(o, "lines");
	if (args_json(a) || !json_is_array(lines))
		rc = json_print(o);
	else
		json_array_foreach(lines, i, line)
			line_print(json_string_value(line));
	json_decref(o);
	return rc;
}
