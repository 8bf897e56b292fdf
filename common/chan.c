/*
 * chan.c: one packet is one message with at most one descriptor.
 *
 * Order of the checks on arrival, before any handler: the kernel's own word
 * (truncated data or descriptors), the head, the version, the type, the
 * permission table, the descriptor's presence and kind, the body.  A
 * descriptor that came with a message that is refused is closed here.
 *
 * Must never: log, block, hand over anything that was not checked.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "chan.h"
#include "fds.h"
#include "xmalloc.h"

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC	0x50494446
#endif

struct chan_pkt {
	STAILQ_ENTRY(chan_pkt)	 next;
	int			 fd;		/* owned, or -1 */
	size_t			 len;
	uint8_t			 data[];
};

/* One packet at a time, in and out; see chan_recv()'s contract. */
static uint8_t	in_buf[WIRE_MAX + 1];
static uint8_t	out_buf[WIRE_MAX];

void
chan_init(struct chan *c, int fd, unsigned int self, unsigned int peer,
    unsigned int state)
{
	int	fl;

	memset(c, 0, sizeof(*c));
	STAILQ_INIT(&c->out);
	c->fd = fd;
	c->self = self;
	c->peer = peer;
	c->state = state;
	c->version = (self | peer) & (A_RUNNER | A_WB) ?
	    PROTO_RUNNER_VERSION : PROTO_VERSION;
	c->find = proto_find;
	if (fd == -1)
		return;
	if ((fl = fcntl(fd, F_GETFL)) != -1)
		(void)fcntl(fd, F_SETFL, fl | O_NONBLOCK); /* a valid socket */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);		   /* cannot fail */
}

static void
pkt_free(struct chan *c, struct chan_pkt *p)
{
	STAILQ_REMOVE_HEAD(&c->out, next);
	c->queued -= sizeof(*p) + p->len;
	fd_close(&p->fd);
	free(p);
}

void
chan_close(struct chan *c)
{
	struct chan_pkt	*p;

	while ((p = STAILQ_FIRST(&c->out)) != NULL)
		pkt_free(c, p);
	fd_close(&c->fd);
}

/* ---- sending -------------------------------------------------------- */

/* 1: gone; 0: would block; -1: errno. */
static int
send_one(int sock, const uint8_t *data, size_t len, int fd)
{
	if (fds_send(sock, data, len, &fd, fd != -1, MSG_DONTWAIT) == 0)
		return 1;
	/* ETOOMANYREFS: too many descriptors in flight, they drain */
	return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ?
	    0 : -1;
}

static int
chan_queue(struct chan *c, const uint8_t *data, size_t len, int fd)
{
	struct chan_pkt	*p;

	if (c->queued + sizeof(*p) + len > CHAN_MAX ||
	    (p = malloc(sizeof(*p) + len)) == NULL) {
		fd_close(&fd);
		errno = ENOBUFS;
		return -1;
	}
	memcpy(p->data, data, len);
	p->len = len;
	p->fd = fd;
	c->queued += sizeof(*p) + len;
	STAILQ_INSERT_TAIL(&c->out, p, next);
	return 0;
}

int
chan_send(struct chan *c, unsigned int type, uint32_t rid, const void *body,
    int fd_arg)
{
	auto_close int			 fd = fd_arg;
	const struct proto_row		*row = c->find(type);
	uint32_t			 head[3] = { c->version, type, rid };
	ssize_t				 h, n;
	const char			*no;
	int				 r;

	if (c->fd == -1) {
		errno = EPIPE;
		return -1;
	}
	if ((h = wire_head_encode(head, out_buf, sizeof(out_buf))) == -1)
		return -1;
	if (row == NULL || (row->fd == FD_NONE) != (fd == -1)) {
		(void)snprintf(c->why, sizeof(c->why), "%s: own fault: type "
		    "or descriptor", proto_name(type));
		errno = EINVAL;
		return -1;
	}
	n = wire_encode(row->desc, body, out_buf + h, sizeof(out_buf) -
	    (size_t)h);
	no = n == -1 ? wire_error() : proto_refuse(row, c->self, c->peer,
	    S_ALL, (size_t)(h + n));
	if (no != NULL) {
		(void)snprintf(c->why, sizeof(c->why), "%s: own fault: %.120s",
		    row->name, no);
		errno = EINVAL;
		return -1;
	}
	if (!STAILQ_EMPTY(&c->out))
		return chan_queue(c, out_buf, (size_t)(h + n), steal_fd(&fd));
	if ((r = send_one(c->fd, out_buf, (size_t)(h + n), fd)) == 0)
		return chan_queue(c, out_buf, (size_t)(h + n), steal_fd(&fd));
	return r == 1 ? 0 : -1;
}

int
chan_ask(struct chan *c, unsigned int type, const void *body, int fd,
    uint32_t *ret_rid)
{
	if (++c->rid == 0)
		c->rid = 1;
	if (ret_rid != NULL)
		*ret_rid = c->rid;
	return chan_send(c, type, c->rid, body, fd);
}

int
chan_ok(struct chan *c, uint32_t rid)
{
	struct msg_ok	ok = { 0 };

	return chan_send(c, MSG_OK, rid, &ok, -1);
}

int
chan_error(struct chan *c, uint32_t rid, unsigned int code, const char *fmt,
    ...)
{
	struct msg_error	e = { .code = code };
	va_list			ap;
	char			*p;

	va_start(ap, fmt);
	(void)vsnprintf(e.detail, sizeof(e.detail), fmt, ap); /* cut */
	va_end(ap);
	if (!wire_charset_ok(CS_TEXT, e.detail, strlen(e.detail)))
		for (p = e.detail; *p != '\0'; p++)
			if (*p < 0x20 || *p > 0x7e)
				*p = '?';
	return chan_send(c, MSG_ERROR, rid, &e, -1);
}

int
chan_pending(const struct chan *c)
{
	return !STAILQ_EMPTY(&c->out);
}

int
chan_flush(struct chan *c)
{
	struct chan_pkt	*p;
	int		 r;

	while ((p = STAILQ_FIRST(&c->out)) != NULL) {
		if ((r = send_one(c->fd, p->data, p->len, p->fd)) != 1)
			return r == 0 ? 1 : -1;
		pkt_free(c, p);
	}
	return 0;
}

/* ---- receiving ------------------------------------------------------ */

static int	chan_fault(struct chan *, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

static int
chan_fault(struct chan *c, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->why, sizeof(c->why), fmt, ap); /* cut is fine */
	va_end(ap);
	errno = EBADMSG;
	return -1;
}

static int
fd_is(int fd, enum fd_kind kind)
{
	struct statfs	fs;
	struct stat	st;
	socklen_t	len = sizeof(int);
	int		v;

	switch (kind) {
	case FD_NONE:
		return fd == -1;
	case FD_SOCKET:
		return getsockopt(fd, SOL_SOCKET, SO_TYPE, &v, &len) == 0;
	case FD_NETNS:
		return fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC &&
		    ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET;
	case FD_PIDFD:
		return fstatfs(fd, &fs) == 0 &&
		    (fs.f_type == PID_FS_MAGIC ||
		    fs.f_type == ANON_INODE_FS_MAGIC);
	case FD_MEMFD:
		v = fcntl(fd, F_GET_SEALS);
		return v != -1 && (v & F_SEAL_WRITE) && (v & F_SEAL_SHRINK) &&
		    fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	}
	return 0;
}

/* Everything about a packet that is whole; fills *ret but for its fd. */
static int
chan_check(struct chan *c, size_t len, int fd, struct msg *ret)
{
	const struct proto_row	*row;
	uint32_t		 head[3];
	ssize_t			 h;
	const char		*no;

	if ((h = wire_head_decode(in_buf, len, head)) == -1)
		return chan_fault(c, "%s", wire_error());
	c->theirs = head[0];
	if (head[0] != c->version)
		return chan_fault(c, "version %u, expected %u", head[0],
		    c->version);
	row = c->find(head[1]);
	if ((no = proto_refuse(row, c->peer, c->self, c->state, len)) != NULL)
		return chan_fault(c, "%s (%u): %s", proto_name(head[1]),
		    head[1], no);
	if ((fd != -1) != (row->fd != FD_NONE) || !fd_is(fd, row->fd))
		return chan_fault(c, "%s: descriptor missing, not due, or of "
		    "another kind", row->name);
	if (wire_decode(row->desc, in_buf + h, len - (size_t)h,
	    &ret->body) == -1)
		return chan_fault(c, "%s", wire_error());
	ret->row = row;
	ret->rid = head[2];
	return 0;
}

int
chan_recv(struct chan *c, struct msg *ret)
{
	int	fds[FDS_MAX];
	size_t	nfds;
	ssize_t	n;

	if (c->fd == -1) {
		errno = ECONNRESET;
		return -1;
	}
	n = fds_recv(c->fd, in_buf, sizeof(in_buf), fds, &nfds, MSG_DONTWAIT);
	if (n == -1 && errno == EBADMSG)
		return chan_fault(c, "bytes or descriptors lost, or too many");
	if (n == -1)
		return errno == EAGAIN ? 0 : -1;
	ret->fd = nfds > 0 ? fds[0] : -1;
	if (n == 0) {
		errno = ECONNRESET;
		n = -1;
	} else if (nfds > 1 || n > WIRE_MAX)
		n = chan_fault(c, "%zd bytes, %zu descriptors", n, nfds);
	else
		n = chan_check(c, (size_t)n, ret->fd, ret);
	while (n == -1 && nfds > 0)
		fd_close(&fds[--nfds]);
	return n == -1 ? -1 : 1;
}
