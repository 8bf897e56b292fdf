/*
 * scan.c: the table, made anew from what the maker finds: the directories
 * below sandboxes/, and of each what is alive.
 */
#include <errno.h>
#include <string.h>

#include "privd.h"

static void
found(const struct maker_found *f, int *fds)
{
	struct row_spec	 spec;
	struct entry	*e;
	int		 doomed;

	/* no specification: killed while it was made, or while removed */
	doomed = wire_decode(&wire_row_spec, f->spec, f->spec_len, &spec) ==
	    -1 || strcmp(spec.id, f->id) != 0;
	if (doomed) {
		memset(&spec, 0, sizeof(spec));
		memcpy(spec.id, f->id, sizeof(spec.id));
	}
	if ((e = table_add(&spec)) == NULL) {
		log_warnx("box %s: no room in the table", f->id);
		return;
	}
	e->doomed = doomed;
	e->uid = f->uid;
	e->opened = f->opened;
	e->frozen = f->frozen;
	memcpy(e->token, f->token, sizeof(e->token));
	e->file_fd = steal_fd(&fds[MK_BOX_FILE]);
	if (doomed || fds[MK_BOX_PID] == -1) {
		life_end(e);
		return;
	}
	life_watch(e, steal_fd(&fds[MK_BOX_PID]));
	e->phase = PH_UP;
	(void)life_netns(e, steal_fd(&fds[MK_BOX_NETNS]));
	if (f->sealed)
		life_seal(e, "as before", 0);
}

void
scan(void)
{
	static struct maker_req	 q = { .op = MK_SCAN };
	struct maker_ans		*a;
	int				*fds;

	if (maker_ask(&q, NULL, 0) == -1)
		fatal("scan");
	do {
		(void)maker_answer(&a, &fds, 1);
		if (a->op == MK_BOX)
			found(&a->u.box, fds);
		else if (a->op != MK_SCAN)
			life_on_maker(a, fds);	/* of what was found */
	} while (a->op != MK_SCAN);
	if (a->error != 0)
		fatalx("%s", a->why);
	if (fds[0] != -1)
		set_userns(steal_fd(&fds[0]));
	if (table_count() > 0)
		log_info("%u on disk, %u run", table_count(), table_up());
}
