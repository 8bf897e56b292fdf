/*
 * confine_load: a filter of system calls, as mkfilter made it of a calls.def.
 */
#ifndef COMMON_CONFINE_LOAD_H
#define COMMON_CONFINE_LOAD_H

#include <stddef.h>

struct sock_filter;			/* linux/filter.h */

/* Loads it into the calling process, which has no_new_privs; errno. */
int	confine_load(const struct sock_filter *, size_t);

#endif
