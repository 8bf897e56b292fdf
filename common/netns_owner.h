/*
 * netns_owner: whose a network namespace is.  netd and uplinkd ask it of each
 * that a peer sends them, before they do anything with it.
 */
#ifndef COMMON_NETNS_OWNER_H
#define COMMON_NETNS_OWNER_H

#include <sys/stat.h>

/* k: uids of U1, the user namespace of netd and uplinkd, that name networks. */
#define NETNS_KMAX	65535

/*
 * The user namespace Un that owns a netns, if the netns is one that netd's
 * maker makes: Un is a child of U1 (u1: what fstat(2) says of that), and its
 * owner is a k from 1 to NETNS_KMAX, which is returned.  The caller's, or -1
 * with errno; EPERM: another's.  See ioctl_ns(2).
 */
int	netns_owner(int netns, const struct stat *u1, unsigned int *ret_k);

#endif
