/*
 * denials.c: wb denials: what the network of the box has denied.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>

#include "denied.h"
#include "ulid.h"
#include "wb.h"

/* One line; without an address and a name it stands for several. */
static int
line(const struct row_denied *d)
{
	char		addr[INET6_ADDRSTRLEN] = "(others)";
	char		port[24] = "-", proto[16], when[16];
	const char	*name = "-";

	if (d->address.len == 4)
		(void)inet_ntop(AF_INET, d->address.data, addr, sizeof(addr));
	else if (d->address.len == 16)
		(void)inet_ntop(AF_INET6, d->address.data, addr,
		    sizeof(addr));
	else if (d->address.len != 0)
		return -1;
	if (d->address.len != 0 || d->name[0] != '\0')
		name = denied_proto((unsigned int)d->protocol, proto);
	if (d->port != 0)
		(void)snprintf(port, sizeof(port), "%" PRIu64, d->port);
	wb_age(d->last_ms, when);
	(void)printf("%6s  %-8s  %-39s  %5s  %-8s  %" PRIu64 "\n", when,
	    denied_name((unsigned int)d->rule), d->name[0] != '\0' ?
	    d->name : addr, port, name, d->count);
	return 0;
}

static int
denials(int argc, char **argv)
{
	struct msg_wb_denials	 ask = { 0 };
	const struct wire_list	*rows;
	struct row_denied	 d;
	struct chan		 c;
	struct msg		 m;
	size_t			 i;
	int			 r;

	(void)argv;
	if (argc != 1)
		return wb_usage(&cmd_denials, "expected no argument");
	wb_connect(&c);
	if ((r = wb_call(&c, MSG_WB_DENIALS, &ask, MSG_WB_DENIALS_ARE, &m)) !=
	    0)
		return r;
	(void)printf("%6s  %-8s  %-39s  %5s  %-8s  %s\n", "LAST", "RULE",
	    "ADDRESS", "PORT", "PROTOCOL", "COUNT");
	rows = &m.body.wb_denials_are.rows;
	for (i = 0; i < rows->n; i++)
		if (wire_decode_into(&wire_row_denied, rows->v[i].data,
		    rows->v[i].len, NULL, 0, &d) == -1 || line(&d) == -1)
			return wb_fail("runner: a denial that is none");
	return fflush(stdout) == 0 ? 0 : wb_fail("stdout: write error");
}

const struct command	cmd_denials = {
	"denials", "", "what the network of this box has denied, newest first",
	denials
};
