/*
 * egress_flow: connections of a box that are open while its network changes.
 *
 * For children, which exit with a status from 50 on when one cannot be made.
 */
#ifndef REGRESS_EGRESS_FLOW_H
#define REGRESS_EGRESS_FLOW_H

#include <stdint.h>

/* SOCK_STREAM or SOCK_DGRAM. */
int	 flow_connect(const char *to, int port, int type);
/* At every address of a family; it need not accept. */
int	 flow_listen(int family, int port);
/* Whether it has ended, with ECONNABORTED, or does within a second. */
int	 flow_ended(int fd);

/* Numbers go in at one end, and come out at the other in order. */
struct flow {
	const char	*to;
	int		 in, out;
	uint32_t	 sent, seen;
};

/* One to each address that a box has itself; how many they are. */
#define FLOWS	7
int	 flows_open(struct flow f[FLOWS], int v6);
/* 0, or -1: something was lost. */
int	 flow_step(struct flow *);

#endif
