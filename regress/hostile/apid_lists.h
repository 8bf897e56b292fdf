/*
 * apid_lists: the lists of stored, and the names of netd, in apid_world.
 */
#ifndef APID_LISTS_H
#define APID_LISTS_H

#include "apid_world.h"
#include "chan.h"

/*
 * 1: this is the step at which it fails, or waits: it was or will be answered
 * so; 0: it goes on.
 */
int	lists_step(struct world_shared *, enum world_step, struct chan *,
	    uint32_t rid);
void	lists_let_go(struct world_shared *);	/* as waits and go_on say */

/* Both answer; NULL, or what is wrong with what apid said. */
const char *lists_put(struct world_box *, struct world_shared *,
	    struct chan *, const struct msg *);
const char *lists_read(struct world_box *, struct world_shared *,
	    struct chan *, const struct msg *);
/* SANDBOX_NETWORK: what was put is the box's, where the kind has one. */
void	lists_recorded(struct world_box *, struct world_shared *, int has);
void	lists_names(struct world_shared *, struct chan *, const struct msg *);

#endif
