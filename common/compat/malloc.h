/*
 * malloc.h, with mallopt(3), which is advice for glibc's allocator: another
 * one keeps no arena for each thread and no top to trim.
 */
#ifndef COMPAT_MALLOC_H
#define COMPAT_MALLOC_H

#include_next <malloc.h>

#define M_TRIM_THRESHOLD	(-1)
#define M_ARENA_MAX		(-8)
#define mallopt(what, value)	1

#endif
