/*
 * netd_world: the real netd in a user namespace as privd makes it, with the
 * test in the places of privd, apid, uplinkd and proxyd; and boxes, as far as
 * netd sees them.
 */
#ifndef REGRESS_NETD_WORLD_H
#define REGRESS_NETD_WORLD_H

#include <sys/types.h>

#include "daemon.h"

#define WORLD_NETD	64001		/* host uid of netd */
#define WORLD_BOX	0x70000000	/* first uid of the box */

struct world {
	int		 u1;		/* its user namespace */
	pid_t		 pid;		/* 0: none runs */
	struct chan	 privd, apid, uplinkd;	/* our ends */
	struct chan	 proxyd;	/* ditto, if there is one */
	int		 named;		/* whether there is; before a start */
	struct conf	 conf;
	int		 exe;
	int		 to_uplinkd;	/* owned until netd is started: its end
					 * of a channel to another uplinkd than
					 * the test, or -1 */
	unsigned int	 nofile;	/* limit it is started with; 0: ours */
	char		 log[64];	/* file of its stderr */
};

/* Whether this kernel has any; where not, the configuration says so. */
int	 world_netfilter(void);
/* Everything but the process; needs root. */
void	 world_make(struct world *);
void	 world_free(struct world *);
/* Starts netd and goes through READY and GO. */
void	 world_start(struct world *);
/* Waits for its end; the status of waitpid(2). */
int	 world_wait(struct world *);
void	 world_kill(struct world *);
/* Short forms; they insist on success.  ret_netns may be NULL. */
unsigned int	 world_net(struct world *, const char *id, int *ret_netns);
void		 world_open(struct world *, unsigned int k, char *ret_hash);
void		 world_cut(struct world *, unsigned int k);
void		 world_drop(struct world *, unsigned int k);

/* The maker's pid, as the host sees it. */
pid_t	 world_maker(const struct world *);
int	 world_fds(pid_t);		/* descriptors that it has */

/*
 * A child that joins netns as real root, then a user namespace of the box's
 * own (no relative of U1), calls fn(arg) as its root and exits with the
 * result.  world_box_result() waits for it.
 */
pid_t	 world_box(int netns, int (*fn)(void *), void *arg);
int	 world_box_result(pid_t);
/* A child that is root of U1 and in netns: what netd could do. */
pid_t	 world_insider(const struct world *, int netns, int (*fn)(void *),
	    void *arg);

#endif
