/*
 * egress_rig: the lab, and its box's ruleset.
 */
#ifndef REGRESS_EGRESS_RIG_H
#define REGRESS_EGRESS_RIG_H

#include <check.h>

#include "../../netd/netd.h"
#include "egress_lab.h"

extern struct lab		lab;
extern int			news, ask;	/* hostaddr_open() of its host */
extern struct event_base	*base;		/* live() */

/*
 * hostaddr_ask() passes through this, if any, n times before since
 * asked_anew(): 0, or -1 with errno.
 */
extern int		(*ask_hook)(unsigned int n, struct hosts *);
extern unsigned int	asked;
void	 asked_anew(int (*)(unsigned int, struct hosts *));

void	 rig_setup(void);
void	 rig_teardown(void);

/* What the host has now goes into the ruleset that is made next. */
void	 hosts_now(void);
/* In the box; off: away with every table, for a control. */
void	 egress_on(void);
void	 egress_off(void);
/* Whether the kernel lists in the box what it must. */
int	 is_whole(void);
/*
 * Adds to or deletes from a set, behind netd's back; want: 0 or an errno.
 * element_at: of another box than the lab's.
 */
void	 element(enum rs_set, const char *prefix, int add, int want);
void	 element_at(int nft, enum rs_set, const char *prefix, int add,
	    int want);

/* nets.c and follow.c at work: makes `base'. */
void	 live(void);
/*
 * A box's net of RULESET_EGRESS, which takes the descriptors: sealed, open,
 * and live() with an open one of the lab's box.
 */
struct net *sealed_net(const char *id, int netns, int nft);
struct net *live_net(const char *id, int netns, int nft);
struct net *live_box(void);
#define ID(n)	"01K8ZZZZZZZZZZZZZZZZZZZZZ" #n

/* Lets it work. */
void	 pump(long us);
/* Until the box sees it, within so many ms; how long that took. */
long	 until_in(const char *to, int want, const char *what, long ms);
long	 until(const char *to, int want, const char *what);	/* a second */
/* For lab_in() in the box: whether nothing at all gets out. */
int	 all_dropped(void *);
/* As if its socket were broken; what to give to mends(). */
int	 breaks(struct net *);
void	 mends(struct net *, int);

/* egress_change.c, egress_denials.c, egress_follow.c, egress_slow.c */
TCase	*change_tests(void);
TCase	*denial_tests(void);
TCase	*follow_tests(void);
TCase	*slow_tests(void);

#endif
