/*
 * maker.h: the program around the mechanics of box.h.
 */
#ifndef MAKER_MAKER_H
#define MAKER_MAKER_H

#include "box.h"
#include "log.h"
#include "xmalloc.h"

/* What came with MK_INIT; descriptors owned. */
struct maker {
	struct server_conf conf;
	int		 lock_fd, conf_fd, token_fd;
};
extern struct maker	mk;

/*
 * Each operation fills what of the answer is its own, and fds[FDS_MAX],
 * which holds -1s, with descriptors that it gives away.  0, or -1 with errno
 * and box_error().
 */

/* ---- set.c: the daemons ------------------------------------------------ */

/* u1: netd's user namespace, taken, -1: MAKER_USERNS. */
int		 set_make(int u1, int *fds);
void		 set_kill(void);
/* Tells how a child ended that was a daemon. */
void		 set_reaped(pid_t, int status);

/* ---- host.c ---------------------------------------------------------------- */

/* ENOMEM or ENOSPC while the host has to keep what memory or disk it has. */
int		 host_allows(void);
/* Bytes of the state directory's file system: there, and to be kept. */
int		 host_disk(uint64_t *ret_free, uint64_t *ret_keep);

/* ---- scan.c: what an earlier maker left ---------------------------------- */

/* Sends an MK_BOX for each directory; *ret_userns: netd's, or -1. */
int		 scan_boxes(int sock, int *ret_userns);

#endif
