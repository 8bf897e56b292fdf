/*
 * fds.c: descriptors beside bytes.  A packet begins with a word that tells
 * which places of the array travel.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "fds.h"
#include "xmalloc.h"

union control {
	char		buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr	align;
};

int
fds_send(int sock, const void *buf, size_t len, const int *fds, size_t n)
{
	union control	 u = { .buf = { 0 } };
	uint32_t	 places = 0;
	struct iovec	 iov[2] = { { &places, sizeof(places) },
			    { (void *)(uintptr_t)buf, len } };
	struct msghdr	 mh = { .msg_iov = iov, .msg_iovlen = 2 };
	struct cmsghdr	*cm = &u.align;
	int		 go[FDS_MAX];
	size_t		 i, k = 0;
	ssize_t		 r;

	for (i = 0; i < n && i < FDS_MAX; i++)
		if (fds[i] != -1) {
			places |= UINT32_C(1) << i;
			go[k++] = fds[i];
		}
	if (k > 0) {
		mh.msg_control = u.buf;
		mh.msg_controllen = CMSG_SPACE(k * sizeof(int));
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(k * sizeof(int));
		memcpy(CMSG_DATA(cm), go, k * sizeof(int));
	}
	do
		r = sendmsg(sock, &mh, MSG_NOSIGNAL);
	while (r == -1 && errno == EINTR);
	return r == -1 ? -1 : 0;
}

ssize_t
fds_recv(int sock, void *buf, size_t size, int flags, int *ret_fds, size_t n)
{
	union control	 u;
	uint32_t	 places = 0;
	struct iovec	 iov[2] = { { &places, sizeof(places) },
			    { buf, size } };
	struct msghdr	 mh = { .msg_iov = iov, .msg_iovlen = 2,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr	*cm;
	size_t		 i, got = 0, took = 0;
	ssize_t		 r;
	int		 in[FDS_MAX];

	do
		r = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | flags);
	while (r == -1 && errno == EINTR);
	if (r == -1)
		return -1;
	if ((cm = CMSG_FIRSTHDR(&mh)) != NULL) {
		got = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(in, CMSG_DATA(cm), got * sizeof(int));
	}
	for (i = 0; i < n; i++)
		ret_fds[i] = places & UINT32_C(1) << i && took < got ?
		    in[took++] : -1;
	if (r > (ssize_t)sizeof(places) && took == got &&
	    !(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return r - (ssize_t)sizeof(places);
	for (i = 0; i < n; i++)
		fd_close(&ret_fds[i]);
	for (; took < got; took++)
		fd_close(&in[took]);
	errno = r == 0 ? ECONNRESET : EBADMSG;
	return -1;
}
