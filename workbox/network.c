/*
 * network: the kind of a sandbox's network, while it runs.
 */
#include "workbox.h"

static int	network_main(const struct args *);

const struct cmd cmd_sandbox_network = {
	.name = "sandbox network",
	.operands = "SANDBOX KIND",
	.doc = "Change the network of a sandbox that runs: none, or egress",
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 2, .max = 2,
	.run = network_main
};

static int
network_main(const struct args *a)
{
	json_t	*body, *box;
	int	 rc;

	if ((body = json_pack("{ss}", "network", a->operand[1])) == NULL)
		return fail("KIND: expected UTF-8");
	if ((rc = client_init(a)) != 0) {
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
