/*
 * egress_lab: a small internet in three network namespaces.
 *
 *	box	stands for a box with `egress'; a veth and routes stand in
 *		for slirp4netns
 *	host	the host: forwards, has addresses of its own
 *	inet	all that lies behind: public hosts, private ones, metadata
 *
 * TCP and UDP are served at port LAB_PORT of every address of host and inet,
 * and at LAB_DNS and LAB_DNS + 1 of the host's: what arrives is sent back.
 * Everything ends with the process.
 */
#ifndef REGRESS_EGRESS_LAB_H
#define REGRESS_EGRESS_LAB_H

#include <sys/types.h>

#define LAB_PORT	7000
#define LAB_DNS		53

enum lab_place { LAB_BOX, LAB_HOST, LAB_INET, LAB_PLACES };

struct lab {
	int	netns[LAB_PLACES];
	int	route[LAB_PLACES];	/* NETLINK_ROUTE */
	int	nft;			/* NETLINK_NETFILTER of the box */
	int	v6;			/* whether this kernel has it */
	pid_t	servers[2];
};

/* Makes all of it; needs root.  The process is in no place of it after. */
void	 lab_make(struct lab *);
/* Ends the servers. */
void	 lab_free(struct lab *);
/* Into a place, for good. */
void	 lab_enter(const struct lab *, enum lab_place);
/* A new namespace with lo up; its netns, *ret_nft as in struct lab. */
int	 lab_netns(int *ret_nft);
/* The same with routes to everywhere, where nobody answers. */
int	 lab_lonely(int *ret_nft);
/* A socket made in there: of this protocol, of NETLINK_NETFILTER. */
int	 lab_netlink(int netns, int protocol);
int	 lab_log(int netns);
/* The box's default routes, as slirp4netns makes them; none may be there. */
void	 lab_routes(const struct lab *);

/* ADDRESS/BITS on an interface of a place; del: away with it. */
void	 lab_addr(const struct lab *, enum lab_place, const char *dev,
	    const char *addr, int del);
/* n addresses from this one on, each as a prefix of its own: one batch. */
void	 lab_addrs(const struct lab *, enum lab_place, const char *dev,
	    const char *first, unsigned int n, int del);
/* A route of type local in table local; del: away with it. */
void	 lab_local(const struct lab *, enum lab_place, const char *prefix,
	    int del);

/*
 * What a program in the calling process's place sees.  errno, 0 when the
 * bytes came back, ETIME after half a second.  lab_tcp: *ret_us, if not
 * NULL, is how long the answer took.
 */
int	 lab_tcp(const char *to, int port, long *ret_us);
int	 lab_udp(const char *to, int port);
long	 lab_us(void);

/* A child in that place that exits with fn(arg); its exit status. */
int	 lab_in(const struct lab *, enum lab_place, int (*fn)(void *),
	    void *arg);
pid_t	 lab_start(const struct lab *, enum lab_place, int (*fn)(void *),
	    void *arg);
int	 lab_result(pid_t);

#endif
