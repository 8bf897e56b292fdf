/*
 * rootfs: what the commands about root file systems share.
 */
#ifndef WORKBOX_ROOTFS_H
#define WORKBOX_ROOTFS_H

#include "host.h"

/* ---- rootfs.c ---------------------------------------------------------- */

/* A root file system that is being made: `root' in the directory tmp. */
struct making {
	int	dir;			/* owned; STATE/rootfs */
	int	build;			/* owned; tmp in it, locked */
	int	root;			/* owned; what is filled, empty */
	char	tmp[24];
};

/* 0, or fail()'s code: not a name for one. */
int	rootfs_name(const char *);
/*
 * Loads the configuration, removes what others left, and makes the place for
 * a root file system of this name, which must be new.  0, or fail()'s code
 * with nothing left.
 */
int	rootfs_begin(const struct args *, struct conf *ret_c, const char *name,
	    struct making *ret);
/*
 * With rc 0 puts it into place, with its origin (taken; what it was made
 * from; `kind' in a built one) on it, and says so; removes it otherwise.
 * rc, or fail()'s code.
 */
int	rootfs_end(const struct conf *, const char *name, struct making *,
	    json_t *origin, int rc);
/* STATE/rootfs, swept where the caller may: 0, or -1 with errno. */
int	rootfs_open(const struct conf *, int *ret_fd);
/* The same where that name must be in it: 0, or fail()'s code. */
int	rootfs_open_one(const struct conf *, const char *name, int *ret_dir);
/* Name, system, default or not: new; NULL: it is none. */
json_t	*rootfs_describe(int dir, const char *name);
/* As a program in a sandbox finds it (O_PATH); -1: errno. */
int	rootfs_find_in(int root, const char *path);
/* The same of a regular file, to be read. */
int	rootfs_read_in(int root, const char *path);
json_t	*rootfs_origin(int root);	/* new; NULL: there is none */
/*
 * The names of the sandboxes that were made from it, by the specifications
 * that privd keeps, behind those in ret.  0, or fail()'s code.
 */
int	rootfs_users(const struct conf *, const char *name, json_t *ret);

/* ---- rootfs_build.c ---------------------------------------------------- */

/* Fill the empty directory; 0, or fail()'s code with something left. */
int	rootfs_minimal(const struct args *, int fd);
/* Adds to origin; keeps the lock as long as anything runs. */
int	rootfs_debian(const struct args *, const struct conf *,
	    const struct making *, json_t *origin);

/* ---- rootfs_info.c ----------------------------------------------------- */

/* Notes what will be missed in sandboxes. */
void	rootfs_warn(const struct conf *, const char *name);

#endif
