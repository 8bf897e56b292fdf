/*
 * uplinkd: ways out of boxes, by slirp4netns.  See uplinkd(8); the comment at
 * the top of uplinkd.c tells how the files fit together.
 */
#ifndef UPLINKD_UPLINKD_H
#define UPLINKD_UPLINKD_H

#include <sys/stat.h>
#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "chan.h"
#include "conf.h"
#include "netns_owner.h"

#define UPLINK_KMAX	NETNS_KMAX	/* an uplink has its network's k */
#define SLIRP		"/usr/bin/slirp4netns"

/* ---- root.c: the files that there are --------------------------------- */

/* Of the root that uplinkd makes for itself. */
#define ROOT_CGROUP	"/cgroup"	/* N: a hierarchy, from 0, which is v2 */
#define ROOT_NETNS	"/netns"	/* where a child mounts its netns */

struct confine;
/* For struct confine; after cgroup_find(). */
int		 uplink_root(const struct confine *);
/* What it is to put into /etc/resolv.conf: an address, or "host". */
void		 uplink_dns(const char *);

/* ---- cgroup.c: where they run ------------------------------------------ */

#define CGROUPS		4	/* v2, and v1's memory, pids and cpu */

/*
 * Finds the directories that were delegated to us: those above our own
 * cgroups.  0, or -1 with errno.
 */
int		 cgroup_find(void);
/* The path of the i-th before uplink_root(); NULL: there are no more. */
const char	*cgroup_path(size_t i);
/*
 * Opens them below ROOT_CGROUP, behind the fence, and gives the children of
 * v2's what it has of memory, pids and cpu.  cgroup_why() tells what failed.
 */
int		 cgroup_open(unsigned int connections);
/* The cgroup of k with its limits.  0, or -1 with errno. */
int		 cgroup_make(unsigned int k);
/* It said that packets can go: 0, or -1 with errno. */
int		 cgroup_up(unsigned int k);
/* Whether that was so, for this uplinkd or one of before. */
int		 cgroup_was_up(unsigned int k);
/* Moves the caller there. */
int		 cgroup_enter(unsigned int k);
/* cgroup.events, to wait for EPOLLPRI; or -1 with errno. */
int		 cgroup_events(unsigned int k);
/* By that descriptor: 1 while a process is in it. */
int		 cgroup_populated(int events);
/* SIGKILL to all in it; ENOENT is success. */
int		 cgroup_kill(unsigned int k);
/* -1 with EBUSY while processes are left; what is not there is removed. */
int		 cgroup_remove(unsigned int k);
/* Calls found() for each k that has one. */
int		 cgroup_list(void (*found)(unsigned int k));
const char	*cgroup_why(void);

/* ---- child.c: from a netns to slirp4netns -------------------------------- */

struct child {
	unsigned int	 k;
	int		 netns, un;	/* borrowed; un owns the netns */
	int		 ready;		/* borrowed: to write to */
	int		 ipv6;
	unsigned int	 connections;
	int		 talk;		/* what it says goes to the log */
};

/*
 * In a forked child: becomes slirp4netns, which writes "1" to c->ready when
 * packets can go; before, "step: reason" is what failed.
 */
void		 child_run(const struct child *) __attribute__((noreturn));

/* ---- uplinks.c: all of them --------------------------------------------- */

struct uplinks_conf {
	int		 ep;		/* epoll; borrowed */
	struct chan	*netd;		/* borrowed: uplinkd.c */
	unsigned int	 connections;
	int		 talk;
	struct stat	 u1;		/* of our user namespace */
};

/* epoll's data: what, and whose. */
enum ev { EV_PRIVD, EV_NETD, EV_SIGNAL, EV_READY, EV_CGROUP };
#define EV_DATA(ev, k)	((uint64_t)(ev) << 32 | (k))

/* Finds those of before; at start, after cgroup_open(). */
void		 uplinks_init(const struct uplinks_conf *);
/* Handlers; each sends exactly one answer, now or later. */
void		 uplinkd_on_start(struct msg *);
void		 uplinkd_on_end(const struct msg *);
/* netd has said which it keeps: all others of before are ended. */
void		 uplinks_go(void);
/* No start that has not begun begins any more. */
void		 uplinks_stop(void);
void		 uplinks_event(enum ev, unsigned int k);
/* Children have ended. */
void		 uplinks_reap(void);
/* What is due, and starts; milliseconds until the next, -1: nothing is. */
int		 uplinks_tick(void);
/* How many are being started or ended, not those that wait. */
unsigned int	 uplinks_busy(void);

/* ---- uplinkd.c ----------------------------------------------------------- */

/* After each chan_send() to netd: its result; fatal when not even queued. */
void		 uplinkd_sent(int result);

#endif
