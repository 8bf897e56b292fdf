/*
 * netns_owner.c: see netns_owner.h.
 *
 * The kernel's word alone counts: a netns keeps its user namespace, that its
 * parent and its owner, for as long as it is.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <linux/nsfs.h>

#include "netns_owner.h"
#include "xmalloc.h"

#ifndef NS_GET_OWNER_UID
#define NS_GET_OWNER_UID	_IO(0xb7, 0x4)
#endif

int
netns_owner(int netns, const struct stat *u1, unsigned int *ret_k)
{
	auto_close int	un = ioctl(netns, NS_GET_USERNS);
	auto_close int	up = un == -1 ? -1 : ioctl(un, NS_GET_PARENT);
	struct stat	st;
	uid_t		k;

	if (up == -1 || ioctl(un, NS_GET_OWNER_UID, &k) == -1 ||
	    fstat(up, &st) == -1)
		return -1;
	if (st.st_ino != u1->st_ino || st.st_dev != u1->st_dev || k < 1 ||
	    k > NETNS_KMAX) {
		errno = EPERM;
		return -1;
	}
	*ret_k = k;
	return steal_fd(&un);
}
