/*
 * hostaddr.c: which addresses the host has, by rtnetlink in the host's own
 * network namespace.
 *
 * An address is the host's if it is one of an interface, or if table local
 * has a route by which it is delivered here: type local (also of prefixes
 * that no interface has), anycast, broadcast.  Neither list has all of the
 * other: an IPv6 address is announced a second before its route is there.
 * Of an IPv4 address, its forms in IPv6 are the host's too; see sealed.def.
 *
 * What the kernel announces is only taken as the news that something has
 * changed; what is true is then read as a whole.  So nothing is lost when
 * announcements are.
 *
 * The sockets are opened in the host's network namespace, which netd leaves
 * then.  They can be used to ask and to hear: for any change the kernel wants
 * a capability in the host's user namespace, which neither netd nor proxyd
 * has.
 *
 * Must never: take a dump for whole that was disturbed; leave out an address
 * because there are too many.
 */
#include <sys/socket.h>

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#include "hostaddr.h"
#include "nl.h"
#include "sealed.h"
#include "xmalloc.h"

/* ---- sockets --------------------------------------------------------- */

static int
open_news(void)
{
	static const int	groups[] = { RTNLGRP_IPV4_IFADDR,
		RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE };
	struct sockaddr_nl	sa = { .nl_family = AF_NETLINK };
	auto_close int		fd = -1;
	size_t			i;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    NETLINK_ROUTE);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1)
		return -1;
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
		    &groups[i], sizeof(groups[i])) == -1)
			return -1;
	return steal_fd(&fd);
}

/* Strict: the kernel then heeds the table that is asked for. */
static int
open_ask(void)
{
	const int	on = 1;
	auto_close int	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			    NETLINK_ROUTE);

	if (fd == -1 || setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK,
	    &on, sizeof(on)) == -1)
		return -1;
	return steal_fd(&fd);
}

int
hostaddr_open(int *ret_news, int *ret_ask)
{
	auto_close int	news = open_news(), ask = open_ask();

	if (news == -1 || ask == -1)
		return -1;
	*ret_news = steal_fd(&news);
	*ret_ask = steal_fd(&ask);
	return 0;
}

/* ---- one message ----------------------------------------------------- */

static size_t
family_len(unsigned int family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
}

/* The payload of the last attribute of this type, of exactly len bytes. */
static const void *
attr_find(const struct nlmsghdr *h, size_t head, unsigned int type, size_t len)
{
	const struct nlattr	*a;
	const void		*p = NULL;

	mnl_attr_for_each(a, h, head) {
		if (mnl_attr_get_type(a) == type &&
		    mnl_attr_get_payload_len(a) == len)
			p = mnl_attr_get_payload(a);
	}
	return p;
}

/* Bits beyond the prefix are none of it. */
static void
prefix_set(struct prefix *p, const void *addr, size_t len, unsigned int bits)
{
	unsigned int	i;

	memset(p, 0, sizeof(*p));
	p->len = (uint8_t)len;
	p->bits = (uint8_t)(bits > len * 8 ? len * 8 : bits);
	if (addr != NULL)
		memcpy(p->addr, addr, len);
	for (i = p->bits; i < len * 8; i++)
		p->addr[i / 8] &= (uint8_t)~(0x80U >> i % 8);
}

/*
 * IFA_LOCAL where there is one (IFA_ADDRESS is the peer's then), else
 * IFA_ADDRESS.
 */
static int
take_addr(const struct nlmsghdr *h, struct prefix *ret)
{
	const struct ifaddrmsg	*ifa = mnl_nlmsg_get_payload(h);
	const void		*p;
	size_t			 len;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*ifa) ||
	    (len = family_len(ifa->ifa_family)) == 0)
		return 0;
	if ((p = attr_find(h, sizeof(*ifa), IFA_LOCAL, len)) == NULL &&
	    (p = attr_find(h, sizeof(*ifa), IFA_ADDRESS, len)) == NULL)
		return 0;
	prefix_set(ret, p, len, (unsigned int)len * 8);
	return 1;
}

static int
is_local_table(const struct nlmsghdr *h, const struct rtmsg *rt)
{
	const uint32_t	*t = attr_find(h, sizeof(*rt), RTA_TABLE, sizeof(*t));

	return t != NULL ? *t == RT_TABLE_LOCAL :
	    rt->rtm_table == RT_TABLE_LOCAL;
}

static int
take_route(const struct nlmsghdr *h, struct prefix *ret)
{
	const struct rtmsg	*rt = mnl_nlmsg_get_payload(h);
	const void		*p;
	size_t			 len;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*rt) ||
	    (len = family_len(rt->rtm_family)) == 0 || !is_local_table(h, rt))
		return 0;
	if (rt->rtm_type != RTN_LOCAL && rt->rtm_type != RTN_ANYCAST &&
	    rt->rtm_type != RTN_BROADCAST)
		return 0;
	p = attr_find(h, sizeof(*rt), RTA_DST, len);
	if (p == NULL && rt->rtm_dst_len != 0)
		return 0;
	prefix_set(ret, p, len, rt->rtm_dst_len);
	return 1;
}

int
hostaddr_take(const struct nlmsghdr *h, struct prefix *ret)
{
	if (h->nlmsg_type == RTM_NEWADDR)
		return take_addr(h, ret);
	return h->nlmsg_type == RTM_NEWROUTE ? take_route(h, ret) : 0;
}

/* Whether a message of the groups may change what a dump would say. */
static int
is_news(const struct nlmsghdr *h)
{
	const struct rtmsg	*rt = mnl_nlmsg_get_payload(h);

	if (h->nlmsg_type != RTM_NEWROUTE && h->nlmsg_type != RTM_DELROUTE)
		return 1;
	return mnl_nlmsg_get_payload_len(h) < sizeof(*rt) ||
	    is_local_table(h, rt);
}

int
hostaddr_heard(const void *buf, size_t size)
{
	const struct nlmsghdr	*h = buf;
	int			 len = (int)size;

	for (; nl_ok(h, len); h = mnl_nlmsg_next(h, &len))
		if (is_news(h))
			return 1;
	return len != 0;		/* what cannot be read may be some */
}

/* ---- hearing --------------------------------------------------------- */

#define NEWS_TURN	256		/* packets that are read at once */

int
hostaddr_news(int fd)
{
	static uint8_t		buf[16384] __attribute__((aligned(8)));
	struct sockaddr_nl	sa;
	struct iovec		iov = { buf, sizeof(buf) };
	struct msghdr		mh = { .msg_name = &sa,
	    .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t			n;
	int			i, news = 0;

	for (i = 0; i < NEWS_TURN; i++) {
		memset(&sa, 0, sizeof(sa));
		mh.msg_namelen = sizeof(sa);
		if ((n = recvmsg(fd, &mh, MSG_DONTWAIT)) == -1) {
			if (errno == EAGAIN)
				return news;
			if (errno != ENOBUFS && errno != EINTR)
				return -1;
			news = news || errno == ENOBUFS; /* some are lost */
			continue;
		}
		if (mh.msg_namelen != sizeof(sa) || sa.nl_pid != 0)
			continue;	/* not the kernel */
		if (!news && ((mh.msg_flags & MSG_TRUNC) ||
		    hostaddr_heard(buf, (size_t)n)))
			news = 1;
	}
	return news;
}

/* ---- lists of them ---------------------------------------------------- */

void
hosts_init(struct hosts *h)
{
	memset(h, 0, sizeof(*h));
	spans_init(&h->v4, 4);
	spans_init(&h->v6, 16);
}

void
hosts_free(struct hosts *h)
{
	spans_free(&h->v4);
	spans_free(&h->v6);
}

/* ---- asking ---------------------------------------------------------- */

/* What is sealed anyway need not be said twice. */
static void
host_form(struct hosts *h, const struct prefix *p)
{
	if (!sealed_holds(p))
		spans_add(p->len == 4 ? &h->v4 : &h->v6, p);
}

static void
host_add(struct hosts *h, const struct prefix *p)
{
	struct prefix	forms[PREFIX_FORMS];
	size_t		i;

	host_form(h, p);
	if (p->len != 4)
		return;
	prefix_forms(p, forms);
	for (i = 0; i < PREFIX_FORMS; i++)
		host_form(h, &forms[i]);
}

/*
 * A bound on what is held while asking, where each address of IPv4 stands six
 * times: its forms, from two dumps.  It counts what lies within another, too:
 * some 2,700 addresses are too many even if one local prefix has them all.
 */
#define HEARD_MAX	(16UL * HOST_MAX)

static int
on_dump(const struct nlmsghdr *m, void *arg)
{
	struct hosts	*h = arg;
	struct prefix	 p;

	if (!hostaddr_take(m, &p))
		return 0;
	host_add(h, &p);
	if (h->v4.n + h->v6.n <= HEARD_MAX)
		return 0;
	errno = E2BIG;
	return -1;
}

static int
ask_addrs(int fd, struct hosts *h)
{
	uint8_t			 buf[64] __attribute__((aligned(8)));
	struct nlmsghdr		*m = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg	*ifa;

	m->nlmsg_type = RTM_GETADDR;
	ifa = mnl_nlmsg_put_extra_header(m, sizeof(*ifa));
	ifa->ifa_family = AF_UNSPEC;
	return nl_dump(fd, m, on_dump, h);
}

static int
ask_routes(int fd, struct hosts *h, unsigned char family)
{
	uint8_t		 buf[64] __attribute__((aligned(8)));
	struct nlmsghdr	*m = mnl_nlmsg_put_header(buf);
	struct rtmsg	*rt;

	m->nlmsg_type = RTM_GETROUTE;
	rt = mnl_nlmsg_put_extra_header(m, sizeof(*rt));
	rt->rtm_family = family;
	rt->rtm_table = RT_TABLE_LOCAL;
	mnl_attr_put_u32(m, RTA_TABLE, RT_TABLE_LOCAL);
	/* a family without any route yet has no table either */
	return nl_dump(fd, m, on_dump, h) == 0 || errno == ENOENT ? 0 : -1;
}

static int
ask_all(int fd, struct hosts *h)
{
	if (ask_addrs(fd, h) == -1 || ask_routes(fd, h, AF_INET) == -1)
		return -1;
	/* without IPv6 whoever answers in its stead may not understand */
	if (ask_routes(fd, h, AF_INET6) == -1 && errno != EOPNOTSUPP &&
	    errno != EAFNOSUPPORT)
		return -1;
	return 0;
}

/* Without the forms of those of IPv4. */
static size_t
hosts_count(const struct hosts *h)
{
	size_t	forms = PREFIX_FORMS * h->v4.n;

	return h->v4.n + (h->v6.n > forms ? h->v6.n - forms : 0);
}

/* In order and disjoint. */
static int
hosts_close(struct hosts *h)
{
	spans_nest(&h->v4);
	spans_nest(&h->v6);
	if (hosts_count(h) <= HOST_MAX)
		return 0;
	errno = E2BIG;
	return -1;
}

int
hosts_join(struct hosts *h, const struct hosts *more)
{
	spans_join(&h->v4, &more->v4);
	spans_join(&h->v6, &more->v6);
	return hosts_close(h);
}

#define DISTURBED	8		/* times, one behind the other */

int
hostaddr_ask(int fd, struct hosts *ret)
{
	struct hosts	h;
	int		e, r, tries = 0;

	do {
		hosts_init(&h);
		if ((r = ask_all(fd, &h)) == 0)
			r = hosts_close(&h);
		if (r == -1) {
			e = errno;
			hosts_free(&h);
			errno = e;
		}
	} while (r == -1 && (errno == EINTR || errno == ENOBUFS) &&
	    ++tries < DISTURBED);
	if (r == -1)
		return -1;
	*ret = h;
	return 0;
}
