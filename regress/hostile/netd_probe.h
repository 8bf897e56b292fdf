/*
 * netd_probe: what a process finds in a box's network namespace.  Each is a
 * function for world_box() or world_insider(): 0, or the number of the step
 * that was not as expected (netd_probe.c).
 */
#ifndef REGRESS_NETD_PROBE_H
#define REGRESS_NETD_PROBE_H

int	probe_dropped(void *);		/* nothing passes, not even on lo */
int	probe_open(void *);		/* lo works, all else refused at once */
int	probe_absent(void *);		/* ditto, where there is no nftables */
int	probe_lo_down(void *);		/* nothing passes, lo is down */
int	probe_ports(void *);		/* 1 to 7 are not the box's */
int	probe_powerless(void *);	/* EPERM for whatever changes a netns */
int	probe_powerful(void *);		/* the control: the same succeeds */
int	probe_buffers(void *);		/* the caps on buffers hold */
int	probe_flush(void *);		/* empties the ruleset (insider) */
int	probe_add_table(void *);	/* adds a table (insider) */
int	probe_raise(void *);		/* raises lo (insider) */

/*
 * Connects to itself on 127.0.0.1, tells so on the descriptor *(int *)arg,
 * waits for a byte there, and then sends through that old connection.
 */
int	probe_lasting(void *);

#endif
