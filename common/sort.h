/*
 * sort: without memory of its own and without a system call, neither of which
 * can be said of qsort(3): that asks the kernel for the size of memory, which
 * a fence does not let through, and takes some, or as long as n * n.
 */
#ifndef COMMON_SORT_H
#define COMMON_SORT_H

#include <stddef.h>

#define SORT_SIZE	64		/* bytes of an element, at most */

/*
 * Puts the n elements of size bytes at v in the order of cmp, whose last
 * argument is arg; those that are equal in any order.  n log n steps, whatever
 * the elements are.  A size above SORT_SIZE is the caller's fault: abort(3).
 */
void	sort(void *v, size_t n, size_t size, int (*cmp)(const void *,
	    const void *, const void *arg), const void *arg);

#endif
