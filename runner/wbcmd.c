/*
 * wbcmd.c: what only wb asks.
 *
 * Anyone in the box may connect; a session that is started here runs as the
 * one who asked, by the kernel's word, and not as us.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"
#include "xmalloc.h"

#define GROUPS	64		/* supplementary; more are refused */

void
wbcmd_status(struct peer *p, const struct msg *m)
{
	struct msg_wb_status_is	b = {
		.host_attached = peer_host() != NULL,
		.running = table.nlives,
		.kept = table.nends,
		.uptime_ms = mono_ms() - runner.start_mono,
	};

	(void)str_copy(b.id, runner.id, sizeof(b.id));
	(void)str_copy(b.name, runner.name, sizeof(b.name));
	(void)str_copy(b.version, PACKAGE_VERSION, sizeof(b.version));
	peer_send(p, MSG_WB_STATUS_IS, m->rid, &b);
}

/* The supplementary groups with which it connected. */
static int
peer_groups(const struct peer *p, struct session_ask *a)
{
	socklen_t	 len = GROUPS * sizeof(gid_t);
	auto_free char	*g = malloc(len);

	if (g == NULL || getsockopt(p->ch.fd, SOL_SOCKET, SO_PEERGROUPS, g,
	    &len) == -1)
		return -1;
	a->ngroups = len / sizeof(gid_t);
	a->groups = steal_ptr(&g);
	return 0;
}

void
wbcmd_run(struct peer *p, const struct msg *m)
{
	const struct msg_wb_run	*b = &m->body.wb_run;
	char			 id[ULID_LEN + 1];
	struct session_ask	 a = {
		.id = id,
		.name = b->name,
		.cwd = b->cwd,
		.argv = &b->argv,
		.env = &b->env,
		.origin = 1,
		.input_open = (int)b->stdin_open,
		.attached = (int)b->attached,
		.uid = p->uid,
		.gid = p->gid,
	};

	if (peer_groups(p, &a) == -1) {
		peer_error(p, m->rid, CODE_TOO_MANY, "groups: %s",
		    strerror(errno));
		return;
	}
	ulid_new(id);
	(void)session_start(p, m->rid, &a);	/* it has answered */
	free(a.groups);
}
