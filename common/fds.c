/*
 * fds.c: descriptors beside bytes.
 */
#include <sys/socket.h>

#include <errno.h>
#include <string.h>

#include "fds.h"
#include "xmalloc.h"

union control {
	char		buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr	align;
};

void
fds_refuse(int sock)
{
	const int	no = 0;

	(void)setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}

int
fds_send(int sock, const void *buf, size_t len, const int *fds, size_t n,
    int flags)
{
	union control	 u = { .buf = { 0 } };
	struct iovec	 iov = { (void *)(uintptr_t)buf, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t		 r;

	if (n > 0) {
		mh.msg_control = u.buf;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		u.align.cmsg_level = SOL_SOCKET;
		u.align.cmsg_type = SCM_RIGHTS;
		u.align.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&u.align), fds, n * sizeof(int));
	}
	do
		r = sendmsg(sock, &mh, MSG_NOSIGNAL | flags);
	while (r == -1 && errno == EINTR);
	return r == -1 ? -1 : 0;
}

ssize_t
fds_recv(int sock, void *buf, size_t size, int *ret_fds, size_t *ret_n,
    int flags)
{
	union control	 u;
	struct iovec	 iov = { buf, size };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr	*cm;
	ssize_t		 r;

	*ret_n = 0;
	do
		r = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | flags);
	while (r == -1 && errno == EINTR);
	if (r == -1)
		return -1;
	/* one header: the kernel merges what one sendmsg(2) passed */
	if ((cm = CMSG_FIRSTHDR(&mh)) != NULL &&
	    cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SCM_RIGHTS) {
		*ret_n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(cm), *ret_n * sizeof(int));
	}
	if (!(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return r;
	while (*ret_n > 0)
		fd_close(&ret_fds[--*ret_n]);
	errno = EBADMSG;
	return -1;
}

size_t
fds_pack(const int *fds, size_t n, int *ret_go, uint32_t *ret_places)
{
	size_t	i, k = 0;

	*ret_places = 0;
	for (i = 0; i < n; i++)
		if (fds[i] != -1) {
			*ret_places |= UINT32_C(1) << i;
			ret_go[k++] = fds[i];
		}
	return k;
}

void
fds_unpack(int *fds, size_t n, uint32_t places)
{
	size_t	i;

	/* from behind: none moves down */
	for (i = FDS_MAX; i-- > 0;)
		fds[i] = places & UINT32_C(1) << i && n > 0 ? fds[--n] : -1;
}
