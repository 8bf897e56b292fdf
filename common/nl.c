/*
 * nl.c: netlink, as far as netd needs it: batches with every acknowledgement
 * read, and dumps.  Both are synchronous: the kernel works within sendto(2)
 * and recvmsg(2), so that an answer is there or never comes.
 *
 * Must never: read a message that anyone but the kernel sent; block; be
 * called from a callback of its own, for there is one buffer.
 */
#include <sys/socket.h>

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include "nl.h"

/* A dump's packets grow with the buffer up to 32 KiB. */
static uint8_t	nl_in[32768] __attribute__((aligned(8)));

int
nl_ok(const struct nlmsghdr *h, int len)
{
	return mnl_nlmsg_ok(h, len) && h->nlmsg_len <= (uint32_t)len;
}

void
nl_start_in(struct nl_batch *b, uint8_t *buf, size_t size)
{
	b->buf = buf;
	b->size = size;
	b->len = b->room = 0;
	b->acks = b->seq = 0;
	b->full = 0;
}

void
nl_start(struct nl_batch *b)
{
	nl_start_in(b, b->own, sizeof(b->own));
}

char *
nl_room(struct nl_batch *b, size_t room)
{
	static char	spill[NL_ROOM_MAX] __attribute__((aligned(8)));

	if (room > sizeof(spill))
		abort();		/* a mistake of ours, as below */
	b->room = room;
	if (room > b->size - b->len) {
		b->full = 1;
		return spill;
	}
	return (char *)b->buf + b->len;
}

char *
nl_next(struct nl_batch *b)
{
	return nl_room(b, NL_ROOM);
}

void
nl_took(struct nl_batch *b, const struct nlmsghdr *h, int ack)
{
	struct nlmsghdr	head = *h;

	if (head.nlmsg_len > b->room)
		abort();
	b->room = 0;
	head.nlmsg_seq = ++b->seq;
	if (ack) {
		head.nlmsg_flags |= NLM_F_ACK;
		b->acks++;
	}
	if (b->full)
		return;
	memcpy(b->buf + b->len, &head, sizeof(head));
	b->len += MNL_ALIGN(head.nlmsg_len);
}

/* One packet of the kernel's.  Its length; 0: no more; -1: errno. */
static ssize_t
nl_recv(int fd)
{
	struct sockaddr_nl	sa;
	struct iovec		iov = { nl_in, sizeof(nl_in) };
	struct msghdr		mh = { .msg_name = &sa,
	    .msg_namelen = sizeof(sa), .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t			n;

	for (;;) {
		memset(&sa, 0, sizeof(sa));
		mh.msg_namelen = sizeof(sa);
		n = recvmsg(fd, &mh, MSG_DONTWAIT);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		if (mh.msg_namelen != sizeof(sa) || sa.nl_pid != 0)
			continue;	/* not the kernel */
		if (mh.msg_flags & MSG_TRUNC) {
			errno = EBADMSG;
			return -1;
		}
		return n;
	}
}

static int
nl_out(int fd, const void *buf, size_t len)
{
	struct sockaddr_nl	sa = { .nl_family = AF_NETLINK };
	ssize_t			n;

	/* what an earlier, failed exchange may have left behind */
	while ((n = nl_recv(fd)) != 0)
		if (n == -1 && errno != ENOBUFS)
			return -1;
	/* the address makes the kernel look at the sender's rights alone */
	do
		n = sendto(fd, buf, len, MSG_DONTWAIT,
		    (const struct sockaddr *)&sa, sizeof(sa));
	while (n == -1 && errno == EINTR);
	return n == -1 ? -1 : 0;
}

int
nl_send(int fd, const struct nl_batch *b, uint32_t *ret_seq)
{
	const struct nlmsghdr	*h;
	uint32_t		 acks = 0, seq = 0;
	ssize_t			 n;
	int			 len, e = 0;

	if (b->full) {
		errno = EMSGSIZE;
		return -1;
	}
	if (nl_out(fd, b->buf, b->len) == -1)
		return -1;
	while ((n = nl_recv(fd)) > 0) {
		len = (int)n;
		for (h = (const struct nlmsghdr *)nl_in; nl_ok(h, len);
		    h = mnl_nlmsg_next(h, &len)) {
			const struct nlmsgerr *me = mnl_nlmsg_get_payload(h);

			if (h->nlmsg_type != NLMSG_ERROR ||
			    mnl_nlmsg_get_payload_len(h) < sizeof(*me))
				continue;
			acks++;
			if (me->error != 0 && e == 0) {
				e = -me->error;
				seq = h->nlmsg_seq;
			}
		}
	}
	if (n == -1)
		return -1;
	if (e == 0 && acks == b->acks)
		return 0;
	if (ret_seq != NULL)
		*ret_seq = seq;
	errno = e != 0 ? e : EPROTO;
	return -1;
}

/* The messages of one packet of a dump.  1: done; 0: go on; -1: errno. */
static int
nl_walk(int len, uint32_t seq, int *disturbed,
    int (*cb)(const struct nlmsghdr *, void *), void *arg)
{
	const struct nlmsghdr	*h;
	const struct nlmsgerr	*me;

	for (h = (const struct nlmsghdr *)nl_in; nl_ok(h, len);
	    h = mnl_nlmsg_next(h, &len)) {
		if (h->nlmsg_seq != seq)
			continue;
		if (h->nlmsg_flags & NLM_F_DUMP_INTR)
			*disturbed = 1;
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR) {
			me = mnl_nlmsg_get_payload(h);
			errno = mnl_nlmsg_get_payload_len(h) < sizeof(*me) ||
			    me->error == 0 ? EPROTO : -me->error;
			return -1;
		}
		if (cb(h, arg) == -1)
			return -1;
	}
	return 0;
}

int
nl_dump(int fd, struct nlmsghdr *req,
    int (*cb)(const struct nlmsghdr *, void *), void *arg)
{
	ssize_t	n;
	int	r, disturbed = 0;

	req->nlmsg_seq = 1;
	req->nlmsg_flags |= NLM_F_REQUEST | NLM_F_DUMP;
	if (nl_out(fd, req, req->nlmsg_len) == -1)
		return -1;
	while ((n = nl_recv(fd)) > 0) {
		if ((r = nl_walk((int)n, 1, &disturbed, cb, arg)) == -1)
			return -1;
		if (r == 0)
			continue;
		if (disturbed) {
			errno = EINTR;
			return -1;
		}
		return 0;
	}
	if (n == 0)
		errno = EPROTO;		/* the end never came */
	return -1;
}
