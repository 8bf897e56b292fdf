/*
 * facts: what the kernel tells of a process under /proc/<pid>, read by the
 * same code from the host's side (privd) and from the inside (runner).
 */
#ifndef COMMON_FACTS_H
#define COMMON_FACTS_H

#include <stddef.h>
#include <string.h>

#include "proto.h"

#define FACTS_MOUNTS	12288	/* largest mountinfo that can be told */

/*
 * Fills *ret from the /proc/<pid> directory procfd (O_PATH will do; the
 * runner: open("/proc/self")).  ret->mounts points into the caller's buf of
 * FACTS_MOUNTS bytes: mountinfo as it is.  Blanks in uid_map and gid_map
 * are single, lines are joined by "; ".  nspid is the process's number in its own
 * pid namespace.  Reads only; needs CAP_SYS_PTRACE over a process that is
 * not the caller.  0, or -1 with errno (EMSGSIZE: mountinfo does not fit,
 * EBADMSG: the kernel's text is not understood), *ret untouched.
 */
int	facts_read(int procfd, char *buf, struct row_facts *ret);

/* The ns_* fields alone. */
int	facts_ns(int procfd, struct row_facts *);

/* Reads a whole /proc or cgroup file into buf, NUL-terminated; its length. */
ssize_t	facts_file(int dirfd, const char *name, char *buf, size_t size);

/*
 * struct msg_runner_facts and struct msg_box_facts_are begin with the fields
 * of struct row_facts: facts_put(&msg.runner_facts, &facts).
 */
#define facts_put(dst, src) do {					\
	_Static_assert(offsetof(__typeof__(*(dst)), mounts) ==		\
	    offsetof(struct row_facts, mounts), "facts come first");	\
	memcpy((dst), (src), offsetof(struct row_facts, wire_end));	\
} while (0)

#endif
