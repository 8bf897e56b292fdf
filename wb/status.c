/*
 * status.c: wb status.
 */
#include <inttypes.h>
#include <stdio.h>

#include "wb.h"

static int
status(int argc, char **argv)
{
	struct msg_wb_status		 ask = { 0 };
	const struct msg_wb_status_is	*b;
	struct chan			 c;
	struct msg			 m;
	int				 r;

	(void)argv;
	if (argc != 1)
		return wb_usage(&cmd_status, "expected no argument");
	wb_connect(&c);
	if ((r = wb_call(&c, MSG_WB_STATUS, &ask, MSG_WB_STATUS_IS, &m)) != 0)
		return r;
	b = &m.body.wb_status_is;
	(void)printf("name     %s\nid       %s\nversion  %s\nhost     %s\n"
	    "running  %" PRIu64 "\nended    %" PRIu64 "\n"
	    "uptime   %" PRIu64 " s\n",
	    b->name, b->id, b->version,
	    b->host_attached ? "attached" : "detached",
	    b->running, b->kept, b->uptime_ms / 1000);
	return fflush(stdout) == 0 ? 0 : wb_fail("stdout: write error");
}

const struct command	cmd_status = {
	"status", "", "the box, its runner and how many sessions it has",
	status
};
