/*
 * inject: a system call in another process's place, to see what its fence does
 * with it.
 */
#ifndef REGRESS_INJECT_H
#define REGRESS_INJECT_H

#include <sys/types.h>

/* Whether this machine's registers are known here. */
#if defined(__x86_64__)
#define INJECT_CAN	1
#else
#define INJECT_CAN	0
#endif

/*
 * A child of the caller, which soon waits in a system call: that instruction
 * is gone through again, as this call.  Then the child goes on.
 */
void	inject(pid_t, long nr, long a, long b, long c);

#endif
