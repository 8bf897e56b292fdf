/*
 * netd_names: networks `allowlist' of the real netd, with the test in
 * proxyd's place.
 */
#ifndef REGRESS_NETD_NAMES_H
#define REGRESS_NETD_NAMES_H

#include <check.h>

#include "netd_world.h"

enum names_sock { NAMES_RELAY, NAMES_UDP, NAMES_TCP, NAMES_SOCKS };

struct names_box {
	const char	*id;
	unsigned int	 k;
	int		 netns;
	int		 sock[NAMES_SOCKS];	/* as proxyd holds them */
};

/* One that is sealed, and put to proxyd. */
void	 names_made(struct world *, const char *id, struct names_box *ret);
/* PROXY_BOX three times, unanswered: the sockets, ret_rid[NAMES_SOCKS]. */
void	 names_come(struct world *, struct names_box *, uint32_t *ret_rid);
void	 names_say_ok(struct world *, const uint32_t *rid);
/* One that is open and served. */
void	 names_open(struct world *, const char *id, struct names_box *ret);
/* PROXY_END of it, which is answered. */
void	 names_ended(struct world *, const char *id);
/* As proxyd does when it ends, or has served enough. */
void	 names_close(struct names_box *);
/* And the rest of ours. */
void	 names_free(struct names_box *);

#endif
