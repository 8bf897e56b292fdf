/*
 * rootfs: what fills a root file system.
 */
#ifndef WORKBOX_ROOTFS_H
#define WORKBOX_ROOTFS_H

#include "host.h"

/* Fill the empty directory fd; 0, or fail()'s code with something left. */
int	rootfs_minimal(const struct args *, int fd);
/* tmp: the directory's name in STATE/rootfs, for mmdebstrap. */
int	rootfs_debian(const struct args *, const struct conf *, int fd,
	    const char *tmp);

#endif
