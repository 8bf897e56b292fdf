/*
 * egress_rig: the lab, and its box's ruleset.
 */
#ifndef REGRESS_EGRESS_RIG_H
#define REGRESS_EGRESS_RIG_H

#include <check.h>

#include "../../netd/netd.h"
#include "egress_lab.h"

extern struct lab	lab;
extern int		news, ask;	/* hostaddr_open() of the lab's host */

void	 rig_setup(void);
void	 rig_teardown(void);

/* What the host has now goes into the ruleset that is made next. */
void	 hosts_now(void);
/* In the box; off: away with every table, for a control. */
void	 egress_on(void);
void	 egress_off(void);
/* Whether the kernel lists in the box what it must. */
int	 is_whole(void);
/* Adds to or deletes from a set, behind netd's back; want: 0 or an errno. */
void	 element(enum rs_set, const char *prefix, int add, int want);

/* egress_follow.c */
TCase	*follow_tests(void);

#endif
