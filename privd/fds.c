/*
 * fds: descriptors beside bytes, between processes of one trust.  (What
 * comes from a daemon goes through chan, which checks all there is.)
 */
#include <sys/socket.h>

#include <errno.h>
#include <string.h>

#include "box.h"
#include "xmalloc.h"

union control {
	char		buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr	align;
};

int
fds_send(int sock, const void *buf, size_t len, const int *fds, size_t n)
{
	union control	 u;
	struct iovec	 iov = { (void *)(uintptr_t)buf, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*cm;
	ssize_t		 r;

	if (n > 0) {
		memset(&u, 0, sizeof(u));
		mh.msg_control = u.buf;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, n * sizeof(int));
	}
	do
		r = sendmsg(sock, &mh, MSG_NOSIGNAL);
	while (r == -1 && errno == EINTR);
	return r == -1 ? -1 : 0;
}

ssize_t
fds_recv(int sock, void *buf, size_t len, int flags, int *ret_fds, size_t n)
{
	union control	 u;
	struct iovec	 iov = { buf, len };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr	*cm;
	ssize_t		 r;
	size_t		 i, got = 0;
	int		 fds[FDS_MAX];

	do
		r = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | flags);
	while (r == -1 && errno == EINTR);
	if (r == -1)
		return -1;
	if ((cm = CMSG_FIRSTHDR(&mh)) != NULL) {
		got = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cm), got * sizeof(int));
	}
	errno = r == 0 ? ECONNRESET : EBADMSG;
	if ((size_t)r != len || (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    got > n) {
		for (i = 0; i < got; i++)
			fd_close(&fds[i]);
		return -1;
	}
	for (i = 0; i < n; i++)
		ret_fds[i] = i < got ? fds[i] : -1;
	return (ssize_t)got;
}
