/*
 * rootfs: what fills a root file system.
 */
#ifndef WORKBOX_ROOTFS_H
#define WORKBOX_ROOTFS_H

#include "host.h"

/* Fill the empty directory fd; 0, or fail()'s code with something left. */
int	rootfs_minimal(const struct args *, int fd);
/*
 * fd is `root' in the build's directory, which is tmp in STATE/rootfs and
 * has a `tmp' too; lock is that directory, held as long as anything runs.
 */
int	rootfs_debian(const struct args *, const struct conf *, int fd,
	    const char *tmp, int lock);

#endif
