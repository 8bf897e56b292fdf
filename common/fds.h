/*
 * fds: descriptors beside bytes, between two processes of one trust.  (What
 * comes from another daemon goes through chan, which checks all there is.)
 */
#ifndef COMMON_FDS_H
#define COMMON_FDS_H

#include <sys/types.h>

#define FDS_MAX	8	/* descriptors in one packet */

/*
 * One packet on a SEQPACKET socket: len bytes at buf and the n descriptors of
 * fds (borrowed), of which those that are -1 do not travel.  0, or -1 with
 * errno.
 */
int	fds_send(int sock, const void *buf, size_t len, const int *fds,
	    size_t n);
/*
 * One packet of at most size bytes into buf; its descriptors (owned, CLOEXEC)
 * stand in ret_fds where they stood in fds_send()'s, the rest of the n is -1.
 * Returns the number of bytes, or -1: EAGAIN with MSG_DONTWAIT in flags,
 * ECONNRESET for the end, EBADMSG for a packet that is none of fds_send()'s.
 */
ssize_t	fds_recv(int sock, void *buf, size_t size, int flags, int *ret_fds,
	    size_t n);

#endif
