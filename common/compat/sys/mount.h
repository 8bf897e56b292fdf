/*
 * sys/mount.h, with the calls of Linux 5.2 to 5.12 that glibc has since 2.36;
 * see configure.ac.  Their constants are the kernel's, from its own header.
 */
#ifndef COMPAT_SYS_MOUNT_H
#define COMPAT_SYS_MOUNT_H

#include_next <sys/mount.h>

#include <linux/mount.h>

#include <stddef.h>

int	fsconfig(int fd, unsigned int cmd, const char *key,
	    const void *value, int aux);
int	fsmount(int fd, unsigned int flags, unsigned int attrs);
int	fsopen(const char *name, unsigned int flags);
int	mount_setattr(int dir, const char *path, unsigned int flags,
	    struct mount_attr *, size_t);
int	move_mount(int from, const char *path, int to, const char *topath,
	    unsigned int flags);
int	open_tree(int dir, const char *path, unsigned int flags);

#endif
