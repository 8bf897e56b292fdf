/*
 * chan_fuzz: what any process of ours does with a packet of any other, by
 * the real chan over a socket: daemons, runner and wb, every type, in each
 * state, with descriptors of every kind.
 *
 * input: sender, receiver, state, descriptors: a byte each; the packet
 *
 * What is received was permitted by the table, has the descriptor that is
 * due, and can be sent again; what is refused costs no descriptor.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "chan.h"
#include "fuzz.h"
#include "xmalloc.h"

enum { SEND_SOCKET, SEND_NETNS, SEND_PIDFD, SEND_MEMFD, SEND_OPEN, NSEND };

static int	sock[2] = { -1, -1 };
static int	fds[NSEND];		/* for ever */

/* The lowest number that is free. */
static int
lowest(void)
{
	int	fd = fcntl(sock[0], F_DUPFD, 0);

	must(fd != -1 && close(fd) == 0);
	return fd;
}

static void
prepare(void)
{
	int	size = 1024 * 1024;

	if (sock[0] != -1)
		return;
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock) == 0);
	must(setsockopt(sock[0], SOL_SOCKET, SO_SNDBUF, &size,
	    sizeof(size)) == 0);
	fds[SEND_SOCKET] = socket(AF_UNIX, SOCK_STREAM, 0);
	fds[SEND_NETNS] = open("/proc/self/ns/net", O_RDONLY);
	fds[SEND_PIDFD] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	fds[SEND_MEMFD] = memfd_create("fuzz", MFD_ALLOW_SEALING);
	fds[SEND_OPEN] = memfd_create("fuzz", MFD_ALLOW_SEALING);
	must(fcntl(fds[SEND_MEMFD], F_ADD_SEALS, F_SEAL_WRITE |
	    F_SEAL_SHRINK) == 0);
}

/* how: 0 no descriptor, 1 to NSEND that one, then two of them. */
static void
send_raw(struct bytes b, unsigned int how)
{
	union {
		char		buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr	align;
	}		 u;
	struct iovec	 iov = { (void *)(uintptr_t)b.p, b.n };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*cm;
	size_t		 n = how <= NSEND ? 1 : 2;
	int		 v[2] = { fds[(how + NSEND - 1) % NSEND],
			    fds[how % NSEND] };

	if (how != 0) {
		memset(&u, 0, sizeof(u));
		mh.msg_control = u.buf;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cm), v, n * sizeof(int));
	}
	must(sendmsg(sock[0], &mh, 0) == (ssize_t)b.n);
}

/* The same message sent by chan arrives as the same. */
static void
send_again(const struct chan *to, const struct msg *m)
{
	static union proto_body	 was;
	static uint8_t		 copy[WIRE_MAX];
	static struct wire_bin	 items[WIRE_ITEMS];
	struct chan		 a, b;
	struct msg		 n;
	ssize_t			 len;

	len = wire_encode(m->row->desc, &m->body, copy, sizeof(copy));
	must(len > 0 && wire_decode_into(m->row->desc, copy, (size_t)len,
	    items, WIRE_ITEMS, &was) == 0);
	chan_init(&a, sock[0], to->peer, to->self, S_ALL);
	chan_init(&b, sock[1], to->self, to->peer, to->state);
	must(chan_send(&a, m->row->type, m->rid, &was, m->fd == -1 ? -1 :
	    dup(m->fd)) == 0);
	must(!chan_pending(&a));
	must(chan_recv(&b, &n) == 1);
	must(n.row == m->row && n.rid == m->rid);
	must(wire_differs(n.row->desc, &n.body, &was) == NULL);
	fd_close(&n.fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes		 b = { data, len };
	struct chan		 c;
	struct msg		 m;
	unsigned int		 from = 1U << take_u8(&b) % 8;
	unsigned int		 to = 1U << take_u8(&b) % 8;
	unsigned int		 state = 1U << take_u8(&b) % 4;
	unsigned int		 how = take_u8(&b) % (2 * NSEND + 1);
	const struct proto_row	*row;
	int			 r, spare;

	prepare();
	spare = lowest();
	if (b.n == 0)
		return 0;		/* that is an end, not a packet */
	send_raw(b, how);
	chan_init(&c, sock[1], to, from, state);
	r = chan_recv(&c, &m);
	must(r == 1 || (r == -1 && errno == EBADMSG && c.why[0] != '\0'));
	if (r == 1) {
		row = m.row;
		must((row->from & from) && (row->to & to) &&
		    (row->states & state) && b.n <= row->cap);
		must((row->fd == FD_NONE) == (m.fd == -1));
		must((row->fd == FD_NONE) == (how == 0) && how <= NSEND);
		send_again(&c, &m);
		fd_close(&m.fd);
	}
	must(chan_recv(&c, &m) == 0);
	must(lowest() == spare);
	return 0;
}
