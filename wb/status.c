/*
 * status.c: wb status.
 */
#include <inttypes.h>
#include <stdio.h>

#include "wb.h"

/* What only the host knows of the network. */
static int
network(struct chan *c)
{
	struct msg_wb_denials			 ask = { 0 };
	const struct msg_wb_denials_are		*n;
	struct msg				 m;
	int					 r;

	r = wb_call(c, MSG_WB_DENIALS, &ask, MSG_WB_DENIALS_ARE, &m);
	if (r != 0)
		return r;
	n = &m.body.wb_denials_are;
	(void)printf("network  %s\n", network_name((unsigned int)n->network));
	if (!n->counted)
		return 0;
	/* of allowlist the host alone tells bytes, and by name */
	if (n->network == NETWORK_EGRESS)
		(void)printf("sent     %" PRIu64 " bytes, %" PRIu64 " packets\n"
		    "received %" PRIu64 " bytes, %" PRIu64 " packets\n",
		    n->sent_bytes, n->sent_packets, n->received_bytes,
		    n->received_packets);
	(void)printf("begun    %" PRIu64 " connections\n"
	    "asked    %" PRIu64 " names\n"
	    "denied   %" PRIu64 " packets: %" PRIu64 " sealed, %" PRIu64
	    " host, %" PRIu64 " limited, %" PRIu64 " protocol, %" PRIu64
	    " address\n",
	    n->connections, n->names,
	    n->sealed + n->host + n->limited + n->protocol + n->address,
	    n->sealed, n->host, n->limited, n->protocol, n->address);
	if (n->network == NETWORK_ALLOWLIST)
		(void)printf("by name  %" PRIu64 " denied: %" PRIu64 " name, %"
		    PRIu64 " port, %" PRIu64 " tls, %" PRIu64 " http, %" PRIu64
		    " names-exhausted\n",
		    n->name + n->port + n->tls + n->http + n->exhausted,
		    n->name, n->port, n->tls, n->http, n->exhausted);
	return 0;
}

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
	(void)fflush(stdout);		/* the host may take its time */
	if (b->host_attached && (r = network(&c)) != 0)
		return r;
	return fflush(stdout) == 0 ? 0 : wb_fail("stdout: write error");
}

const struct command	cmd_status = {
	"status", "", "the box, its runner and how many sessions it has",
	status
};
