/*
 * become: the step from `workbox serve' to privd.
 */
#ifndef WORKBOX_BECOME_H
#define WORKBOX_BECOME_H

/*
 * Locks STATE/lock through fd, the only descriptor of its description, and
 * writes our pid into it.  -1: EAGAIN when another server has it.
 */
int		 become_locked(int fd);
/*
 * With all descriptors in place but PRIVD_FD_MAKER (server.h): starts the
 * maker, which keeps root's privileges, gives them up here, for ever, and
 * executes privd.  Returns only to tell what failed, with errno; nothing but
 * an exit may follow.
 */
const char	*become_privd(const char *privd, const char *maker,
		    int landlock);

#endif
