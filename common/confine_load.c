/*
 * confine_load.c: one system-call filter, as mkfilter made it.
 */
#include <sys/prctl.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#include "confine_load.h"

int
confine_load(const struct sock_filter *filter, size_t n)
{
	struct sock_fprog	fp = {
		.len = (unsigned short)n,
		.filter = (void *)(uintptr_t)filter,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fp, 0, 0);
}
