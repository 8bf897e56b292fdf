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

enum confine_root {
	CONFINE_ROOT_KEEP,	/* the host's (privd only) */
	CONFINE_ROOT_EMPTY,	/* a tmpfs with nothing in it, read-only */
	CONFINE_ROOT_DIR	/* one directory, bound as / */
};

enum confine_cond { CC_ANY, CC_EQ, CC_MASKED };

/* One allowed system call; several rows of one name are alternatives. */
struct confine_call {
	const char		*name;	/* as libseccomp knows it */
	unsigned int		 arg;	/* 0-5, with cond */
	enum confine_cond	 cond;
	uint64_t		 value;	/* CC_EQ: argument == value */
	uint64_t		 mask;	/* CC_MASKED: (arg & mask) == value */
};

struct confine_limit { int resource; uint64_t value; };

struct confine {
	const char			*name;
	enum confine_root		 root;
	const char			*dir;	/* for CONFINE_ROOT_DIR */
	uid_t				 uid;	/* 0: stays as it is */
	gid_t				 gid;
	uint64_t			 caps;	/* 1 << CAP_x, kept */
	int				 in_userns; /* root of own user ns */
	int				 landlock_all; /* deny all files */
	const int			*landlock_but; /* but to read and write
					  beneath these descriptors */
	size_t				 nlandlock_but;
	const struct confine_limit	*limits;
	size_t				 nlimits;
	const struct confine_call	*calls;	/* allow list; else killed */
	size_t				 ncalls;
	unsigned int			 last_fd; /* close all above */
};

/*
 * Order: limits, mount namespace and root, groups, gid, uid (proved by
 * trying to regain), capability sets, no_new_privs, not dumpable, Landlock,
 * seccomp.  A call that libc or a library makes and the list lacks kills
 * the process (SCMP_ACT_KILL_PROCESS); numbers that were unknown when this
 * was built get ENOSYS.  Returns 0, or -1 with errno and confine_error().
 */
int		 confine_enter(const struct confine *);
const char	*confine_error(void);

/* Rows every daemon needs (libc, malloc, poll, clock, exit). */
extern const struct confine_call	confine_base[];
extern const size_t			confine_nbase;

#endif
