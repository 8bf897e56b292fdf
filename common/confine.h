/*
 * confine: the fence around one of our own daemons.
 *
 * Each daemon has one const struct confine just above its loop, a reason on
 * each line, and calls confine_enter() before it reads the first byte from a
 * peer.  Everything that is asked for must succeed: a mechanism that the
 * kernel lacks is an error, never skipped.
 */
#ifndef COMMON_CONFINE_H
#define COMMON_CONFINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "confine_load.h"

struct confine_limit { int resource; uint64_t value; };

struct confine {
	/* confine_root_empty, confine_root_dir; NULL: the host's */
	int				(*root)(const struct confine *);
	const char			*dir;	/* for confine_root_dir */
	uid_t				 uid;	/* 0: stays as it is */
	gid_t				 gid;
	uint64_t			 caps;	/* 1 << CAP_x, kept */
	/* confine_landlock; NULL: none */
	int				(*landlock)(const struct confine *);
	int				 landlock_connects; /* it may, by TCP */
	const int			*landlock_but; /* but to read and write
					  beneath these descriptors */
	size_t				 nlandlock_but;
	const uint16_t			*landlock_bind;	/* TCP ports that it
					  may bind */
	size_t				 nlandlock_bind;
	int				 landlock_exec;	/* and but to execute
					  this one; 0: nothing */
	int				 landlock_read; /* and but to read
					  beneath this one; 0: nothing */
	const struct confine_limit	*limits;
	size_t				 nlimits;
	/* made by mkfilter from calls.def; none: no filter */
	const struct sock_filter	*filter;
	size_t				 nfilter;
	unsigned int			 last_fd; /* close all above */
};

/*
 * Order: limits, mount namespace and root, groups, gid, uid (proved by
 * trying to regain), capability sets, no_new_privs, not dumpable, Landlock,
 * seccomp.  A call that libc or a library makes and the list lacks kills
 * the process.  Returns 0, or -1 with errno and confine_error().
 */
int		 confine_enter(const struct confine *);
const char	*confine_error(void);

/*
 * Stages, for struct confine: a program links those that it names.
 * empty: a read-only tmpfs with nothing in it.  dir: one directory, bound as
 * /, which only its owner can write.
 */
int		 confine_root_empty(const struct confine *);
int		 confine_root_dir(const struct confine *);
/*
 * No file but beneath landlock_but, no TCP port but to bind those of
 * landlock_bind, and with landlock_connects to connect to any; no signal to
 * and no abstract socket of who is not in the same fence (Linux 6.12).
 */
int		 confine_landlock(const struct confine *);

/* Says what failed, with errno, for confine_error(); -1. */
int		 confine_fail(const char *, ...)
		    __attribute__((format(printf, 1, 2)));

#endif
