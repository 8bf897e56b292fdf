/*
 * fds: descriptors beside bytes, one packet on a SEQPACKET socket.
 */
#ifndef COMMON_FDS_H
#define COMMON_FDS_H

#include <stdint.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif
#define FDS_MAX	10	/* descriptors in one packet */

/*
 * len bytes at buf and n descriptors (borrowed).  flags: MSG_DONTWAIT or 0.
 * 0, or -1 with errno.
 */
int	fds_send(int sock, const void *buf, size_t len, const int *fds,
	    size_t n, int flags);
/*
 * Whoever is at the other end of sock can pass it no descriptor from now on
 * (Linux 6.16; before, what is not due is only closed when it has come, and
 * closing a socket that lingers waits for as long as a hostile peer said).
 */
void	fds_refuse(int sock);
/*
 * At most size bytes into buf and *ret_n descriptors (owned, CLOEXEC) into
 * ret_fds[FDS_MAX].  The number of bytes, 0 at the end, or -1: EBADMSG for a
 * packet of which bytes or descriptors were lost (a full descriptor table
 * loses them silently); then none is kept.
 */
ssize_t	fds_recv(int sock, void *buf, size_t size, int *ret_fds,
	    size_t *ret_n, int flags);

/*
 * An array with holes: what is not -1 of the n in fds goes to ret_go, and the
 * word that tells where it stood to *ret_places.  Returns how many go.
 */
size_t	fds_pack(const int *fds, size_t n, int *ret_go, uint32_t *ret_places);
/* And back, in place: FDS_MAX in all, holes are -1. */
void	fds_unpack(int *fds, size_t n, uint32_t places);

#endif
