/*
 * nflog.c: packets that a ruleset has denied and logged.
 *
 * Safe if the box is hostile: it chose every byte of these packets but for
 * what its kernel fills in.  Of the first EGRESS_LOG_BYTES, which the kernel
 * copies, only headers are looked at, each within what is there, and of the
 * extension headers of IPv6 at most HEADERS.  What is kept is a destination.
 *
 * Must never: read behind a header that was not whole; keep a byte of what a
 * packet carries; read a message that anyone but the kernel sent.
 */
#include <sys/socket.h>

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

#include "netd.h"

#define HEADERS		8	/* of IPv6, one behind the other */
#define FLUSH_CS	10	/* hundredths of a second at most */
#define ROOM		1024	/* of a message: 128 bytes and some numbers */

#define TYPE(t)		(NFNL_SUBSYS_ULOG << 8 | (t))

/* ---- binding --------------------------------------------------------- */

/* Each packet at once, and no more of it than headers have. */
int
nflog_bind(int fd)
{
	struct nfulnl_msg_config_cmd	 cmd = { NFULNL_CFG_CMD_BIND };
	struct nfulnl_msg_config_mode	 mode = {
	    .copy_range = htonl(EGRESS_LOG_BYTES),
	    .copy_mode = NFULNL_COPY_PACKET };
	struct nl_batch			 b;
	struct nlmsghdr			*h;
	struct nfgenmsg			*g;

	nl_start(&b);
	h = mnl_nlmsg_put_header(nl_next(&b));
	h->nlmsg_type = TYPE(NFULNL_MSG_CONFIG);
	h->nlmsg_flags = NLM_F_REQUEST;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = AF_UNSPEC;
	g->version = NFNETLINK_V0;
	g->res_id = htons(EGRESS_LOG_GROUP);
	mnl_attr_put(h, NFULA_CFG_CMD, sizeof(cmd), &cmd);
	mnl_attr_put(h, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u32(h, NFULA_CFG_QTHRESH, htonl(1));
	mnl_attr_put_u32(h, NFULA_CFG_TIMEOUT, htonl(FLUSH_CS));
	mnl_attr_put_u32(h, NFULA_CFG_NLBUFSIZ, htonl(ROOM));
	nl_took(&b, h, 1);
	return nl_send(fd, &b, NULL);
}

/* ---- one packet ------------------------------------------------------ */

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Those whose header begins with two ports: RFC 9293, 768, 9260, 4340, 3828. */
static int
has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
	    proto == IPPROTO_SCTP || proto == IPPROTO_DCCP ||
	    proto == IPPROTO_UDPLITE;
}

/* What lies behind all headers of IP. */
static void
take_port(const uint8_t *p, size_t len, struct denial *d)
{
	if (has_ports(d->proto) && len >= 4)
		d->port = be16(p + 2);
}

/* RFC 791 3.1. */
static int
take_v4(const uint8_t *p, size_t len, struct denial *d)
{
	size_t	head;

	if (len < 20 || p[0] >> 4 != 4)
		return 0;
	d->len = 4;
	d->proto = p[9];
	memcpy(d->addr, p + 16, 4);
	head = (size_t)(p[0] & 15) * 4;
	/* of a later fragment nothing is a header */
	if (head >= 20 && head <= len && (be16(p + 6) & 0x1fff) == 0)
		take_port(p + head, len - head, d);
	return 1;
}

/* The length of a header that another follows, or 0: it is none of these. */
static size_t
header_len(uint8_t type, const uint8_t *p)
{
	switch (type) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
		return ((size_t)p[1] + 1) * 8;	/* RFC 8200 4.3 to 4.6 */
	case IPPROTO_AH:
		return ((size_t)p[1] + 2) * 4;	/* RFC 4302 2.2 */
	case IPPROTO_FRAGMENT:
		return 8;			/* RFC 8200 4.5 */
	default:
		return 0;
	}
}

/*
 * Goes from header to header as far as they are there.  Where that ends too
 * soon, the protocol is that of the header at which it did.
 */
static int
take_v6(const uint8_t *p, size_t len, struct denial *d)
{
	size_t	off = 40, n;
	int	i;

	if (len < 40 || p[0] >> 4 != 6)
		return 0;
	d->len = 16;
	d->proto = p[6];
	memcpy(d->addr, p + 24, 16);
	for (i = 0; i < HEADERS && len - off >= 8; i++) {
		if ((n = header_len(d->proto, p + off)) == 0)
			break;
		if (n > len - off)
			return 1;
		if (d->proto == IPPROTO_FRAGMENT &&
		    (be16(p + off + 2) & 0xfff8) != 0)
			return 1;
		d->proto = p[off];
		off += n;
	}
	take_port(p + off, len - off, d);
	return 1;
}

/* The rule whose name the kernel put before it, or -1. */
static int
take_rule(const struct nlattr *a)
{
	const char	*s = mnl_attr_get_payload(a);
	size_t		 len = mnl_attr_get_payload_len(a);
	int		 rule;

	if (len == 0 || s[len - 1] != '\0')
		return -1;
	rule = denied_find(s, len - 1);
	return rule < RS_DENIED ? rule : -1;	/* others have no chain */
}

int
nflog_take(const struct nlmsghdr *h, struct denial *ret)
{
	const struct nfgenmsg	*g = mnl_nlmsg_get_payload(h);
	const struct nlattr	*a, *data = NULL;
	struct denial		 d;
	int			 rule = -1;

	if (h->nlmsg_type != TYPE(NFULNL_MSG_PACKET) ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*g))
		return 0;
	mnl_attr_for_each(a, h, sizeof(*g)) {
		if (mnl_attr_get_type(a) == NFULA_PREFIX)
			rule = take_rule(a);
		else if (mnl_attr_get_type(a) == NFULA_PAYLOAD)
			data = a;
	}
	if (rule == -1 || data == NULL)
		return 0;
	memset(&d, 0, sizeof(d));
	d.rule = (uint8_t)rule;
	if (!(g->nfgen_family == AF_INET6 ? take_v6 : take_v4)(
	    mnl_attr_get_payload(data), mnl_attr_get_payload_len(data), &d))
		return 0;
	*ret = d;
	return 1;
}

/* ---- reading --------------------------------------------------------- */

static void
take_all(const void *buf, size_t size,
    void (*cb)(const struct denial *, void *), void *arg)
{
	const struct nlmsghdr	*h = buf;
	struct denial		 d;
	int			 len = (int)size;

	for (; nl_ok(h, len); h = mnl_nlmsg_next(h, &len))
		if (nflog_take(h, &d))
			cb(&d, arg);
}

int
nflog_read(int fd, unsigned int turn,
    void (*cb)(const struct denial *, void *), void *arg)
{
	static uint8_t		buf[8 * ROOM] __attribute__((aligned(8)));
	struct sockaddr_nl	sa;
	struct iovec		iov = { buf, sizeof(buf) };
	struct msghdr		mh = { .msg_name = &sa, .msg_iov = &iov,
	    .msg_iovlen = 1 };
	ssize_t			n;

	for (; turn > 0; turn--) {
		memset(&sa, 0, sizeof(sa));
		mh.msg_namelen = sizeof(sa);
		if ((n = recvmsg(fd, &mh, MSG_DONTWAIT)) == -1) {
			if (errno == EAGAIN)
				return 0;
			if (errno != ENOBUFS && errno != EINTR)
				return -1;
			continue;	/* the counters have what was lost */
		}
		if (mh.msg_namelen == sizeof(sa) && sa.nl_pid == 0 &&
		    !(mh.msg_flags & MSG_TRUNC))
			take_all(buf, (size_t)n, cb, arg);
	}
	return 0;
}
