/*
 * uplinkd_rig: the real uplinkd in a user namespace as the maker starts it,
 * in the host's place of egress_lab, with the test in privd's and netd's.
 */
#ifndef REGRESS_UPLINKD_RIG_H
#define REGRESS_UPLINKD_RIG_H

#include <sys/types.h>

#include "daemon.h"
#include "egress_lab.h"

#define RIG_UID		64011		/* host uid of netd */
#define RIG_NETBASE	0x6ffd0000U	/* k is RIG_NETBASE + k - 1 */

struct rig {
	struct lab	 lab;
	struct conf	 conf;
	int		 u1;
	int		 exe;
	pid_t		 pid;		/* 0: none runs */
	struct chan	 privd, netd;	/* our ends */
	char		 log[64];	/* file of its stderr */
};

/* Everything but the process; needs root. */
void	 rig_make(struct rig *);
void	 rig_free(struct rig *);
/* What a test that failed has left; once before all, once after. */
void	 rig_sweep(void);
/* Starts uplinkd and waits for READY; GO is not sent. */
void	 rig_start(struct rig *);
void	 rig_go(struct rig *);
/* SIGKILL, and the end of it. */
void	 rig_kill(struct rig *);
/* Waits for its end; the status of waitpid(2). */
int	 rig_wait(struct rig *);
/* A netns as netd's maker makes it for k. */
int	 rig_netns(const struct rig *, unsigned int k);
/* One of the same owner, whose user namespace is no child of U1. */
int	 rig_netns_below(const struct rig *, unsigned int k);

/* UPLINK_START; netns is borrowed.  The answer's type. */
unsigned int	 rig_up(struct rig *, unsigned int k, int keep, int netns,
		    struct msg *ret);
void		 rig_end(struct rig *, unsigned int k);

/* The one process in the v2 cgroup of k; 0: there is none. */
pid_t	 rig_slirp(unsigned int k);
/* Whether any hierarchy has a cgroup of k. */
int	 rig_cgroup(unsigned int k);
/* From now on no limit of processor time can be set; nothing may be up. */
void	 rig_no_cpu(void);
/* A file of that controller's cgroup of k, cut at a newline. */
const char	*rig_limit(const char *controller, unsigned int k,
		    const char *v2, const char *v1);
/* The rest of a line of /proc/PID/FILE that begins so; "" if none. */
const char	*rig_proc(pid_t, const char *file, const char *word);
/* Names in a directory of its root, sorted and joined by blanks. */
const char	*rig_ls(pid_t, const char *dir);

/* A child in a netns that exits with fn(arg); its exit status. */
int	 rig_in(int netns, int (*fn)(void *), void *arg);
/* errno of lab_tcp() there; 0: the bytes came back. */
int	 rig_tcp(int netns, const char *to, int port);
int	 rig_udp(int netns, const char *to, int port);

#endif
