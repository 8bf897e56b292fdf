/*
 * link.c: what a network namespace has besides its ruleset: lo, addresses,
 * routes; and how netd hears that one is gone.
 *
 * The default routes lead to lo: without them a box's attempt to reach out
 * would fail before any rule sees it (ENETUNREACH), and no denial could be
 * told.  Where there is no ruleset there are no such routes either.  In
 * `allowlist' the addresses that stand for names are the box's own.
 *
 * A namespace's end is announced by the kernel to every namespace that has a
 * number for it (RTM_DELNSID, rtnetlink(7)); ours has: k.
 *
 * Must never: touch a namespace but through a socket made inside it.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#include "netd.h"
#include "xmalloc.h"

#define LO	1		/* its index in every namespace */

static struct nlmsghdr *
msg_start(struct nl_batch *b, uint16_t type, uint16_t flags)
{
	struct nlmsghdr	*h = mnl_nlmsg_put_header(nl_next(b));

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	return h;
}

int
link_set(int fd, int up)
{
	struct nl_batch		 b;
	struct nlmsghdr		*h;
	struct ifinfomsg	*ifi;

	nl_start(&b);
	h = msg_start(&b, RTM_NEWLINK, 0);
	ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = LO;
	ifi->ifi_flags = up ? IFF_UP : 0;
	ifi->ifi_change = IFF_UP;
	nl_took(&b, h, 1);
	return nl_send(fd, &b, NULL);
}

struct links { int up, others; struct tap tap; };

/* Whether an interface is the one that slirp4netns made. */
static int
is_tap(const struct nlmsghdr *h)
{
	const struct nlattr	*a;

	mnl_attr_for_each(a, h, sizeof(struct ifinfomsg))
		if (mnl_attr_get_type(a) == IFLA_IFNAME &&
		    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) != -1)
			return strcmp(mnl_attr_get_str(a), EGRESS_TAP) == 0;
	return 0;
}

/* Whoever is within sends what the tap transmits. */
static void
take_tap(const struct nlmsghdr *h, uint32_t index, struct tap *t)
{
	struct rtnl_link_stats64	 s = { .rx_packets = 0 };
	const struct nlattr		*a;
	size_t				 len;

	mnl_attr_for_each(a, h, sizeof(struct ifinfomsg)) {
		if (mnl_attr_get_type(a) != IFLA_STATS64)
			continue;
		/* as much as this kernel has of it; aligned to 4 alone */
		len = mnl_attr_get_payload_len(a);
		memcpy(&s, mnl_attr_get_payload(a),
		    len < sizeof(s) ? len : sizeof(s));
	}
	t->index = index;
	t->n[TAP_SENT_BYTES] = s.tx_bytes;
	t->n[TAP_SENT_PACKETS] = s.tx_packets;
	t->n[TAP_RECEIVED_BYTES] = s.rx_bytes;
	t->n[TAP_RECEIVED_PACKETS] = s.rx_packets;
}

static int
links_one(const struct nlmsghdr *h, void *arg)
{
	const struct ifinfomsg	*ifi = mnl_nlmsg_get_payload(h);
	struct links		*l = arg;

	if (h->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*ifi))
		return 0;
	if (ifi->ifi_index == LO)
		l->up = (ifi->ifi_flags & IFF_UP) != 0;
	else
		l->others++;
	if (is_tap(h))
		take_tap(h, (uint32_t)ifi->ifi_index, &l->tap);
	return 0;
}

static int
links_read(int fd, struct links *ret)
{
	uint8_t			 buf[64] __attribute__((aligned(8)));
	struct nlmsghdr		*h = mnl_nlmsg_put_header(buf);
	struct ifinfomsg	*ifi;

	memset(ret, 0, sizeof(*ret));
	h->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	return nl_dump(fd, h, links_one, ret);
}

int
link_alone(int fd, int *ret_up)
{
	struct links	l;

	if (links_read(fd, &l) == -1)
		return -1;
	*ret_up = l.up;
	return l.others == 0;
}

int
link_tap(int fd, struct tap *ret)
{
	struct links	l;

	if (links_read(fd, &l) == -1)
		return -1;
	*ret = l.tap;
	return 0;
}

static void
put_addr(struct nl_batch *b, uint32_t dev, int family, const void *addr,
    unsigned int bits)
{
	const size_t		 len = family == AF_INET ? 4 : 16;

	struct nlmsghdr		*h;
	struct ifaddrmsg	*ifa;

	h = msg_start(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
	ifa = mnl_nlmsg_put_extra_header(h, sizeof(*ifa));
	ifa->ifa_family = (uint8_t)family;
	ifa->ifa_prefixlen = (uint8_t)bits;
	ifa->ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
	ifa->ifa_scope = RT_SCOPE_UNIVERSE;
	ifa->ifa_index = dev;
	mnl_attr_put(h, IFA_LOCAL, len, addr);
	mnl_attr_put(h, IFA_ADDRESS, len, addr);
	nl_took(b, h, 1);
}

/*
 * IPv6 rejects by itself what is routed to lo, but for local routes.  There is
 * one default route of a metric: this takes the place of the tap's.
 */
static void
put_default(struct nl_batch *b, int family, int del)
{
	struct nlmsghdr	*h;
	struct rtmsg	*rt;

	h = msg_start(b, del ? RTM_DELROUTE : RTM_NEWROUTE,
	    del ? 0 : NLM_F_CREATE | NLM_F_REPLACE);
	rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));
	rt->rtm_family = (uint8_t)family;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_HOST;
	rt->rtm_type = family == AF_INET ? RTN_UNICAST : RTN_LOCAL;
	mnl_attr_put_u32(h, RTA_OIF, LO);
	nl_took(b, h, 1);
}

/* What connects to it has an address outside of it: the way back differs. */
static int
put_own(struct nl_batch *b, const char *text, unsigned int bits, int own)
{
	struct nlmsghdr	*h;
	struct rtmsg	*rt;
	uint8_t		 net[4], from[4];

	errno = EINVAL;
	if (inet_pton(AF_INET, text, net) != 1 ||
	    inet_pton(AF_INET, NONE_ADDR4, from) != 1)
		return -1;
	h = msg_start(b, own ? RTM_NEWROUTE : RTM_DELROUTE,
	    own ? NLM_F_CREATE | NLM_F_REPLACE : 0);
	rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));
	rt->rtm_family = AF_INET;
	rt->rtm_dst_len = (uint8_t)bits;
	rt->rtm_table = RT_TABLE_LOCAL;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = RT_SCOPE_HOST;
	rt->rtm_type = RTN_LOCAL;
	mnl_attr_put(h, RTA_DST, sizeof(net), net);
	mnl_attr_put(h, RTA_PREFSRC, sizeof(from), from);
	mnl_attr_put_u32(h, RTA_OIF, LO);
	nl_took(b, h, 1);
	return 0;
}

static int
link_family(int fd, int family, const char *text)
{
	struct nl_batch	b;
	uint8_t		addr[16];

	if (inet_pton(family, text, addr) != 1) {
		errno = EINVAL;
		return -1;
	}
	nl_start(&b);
	put_addr(&b, LO, family, addr, family == AF_INET ? 32 : 128);
	put_default(&b, family, 0);
	return nl_send(fd, &b, NULL);
}

/* A host may be without IPv6: or EACCES by sysctl. */
static int
is_lacking(int e)
{
	return e == EAFNOSUPPORT || e == EOPNOTSUPP || e == EACCES;
}

int
link_routes(int fd)
{
	if (link_family(fd, AF_INET, NONE_ADDR4) == -1)
		return -1;
	if (link_family(fd, AF_INET6, NONE_ADDR6) == -1 && !is_lacking(errno))
		return -1;
	return 0;
}

int
link_unroute(int fd)
{
	const int	families[] = { AF_INET, AF_INET6 };
	struct nl_batch	b;
	size_t		f;

	for (f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		nl_start(&b);
		put_default(&b, families[f], 1);
		if (nl_send(fd, &b, NULL) == -1 && errno != ESRCH &&
		    (families[f] == AF_INET || !is_lacking(errno)))
			return -1;
	}
	return 0;
}

int
link_relay(int fd, int own)
{
	struct nl_batch	b;

	nl_start(&b);
	/*
	 * The name server's by itself: the kernel keeps the tables local and
	 * main as one, and a tap has a longer prefix.
	 */
	if (put_own(&b, RELAY_NET4, 15, own) == -1 ||
	    put_own(&b, EGRESS_DNS4, 32, own) == -1)
		return -1;
	return nl_send(fd, &b, NULL) == 0 || (!own && errno == ESRCH) ? 0 :
	    -1;
}

int
link_uplink6(int fd)
{
	struct nl_batch	 b;
	struct nlmsghdr	*h;
	struct rtmsg	*rt;
	struct links	 l;
	uint8_t		 addr[16], gateway[16];

	if (links_read(fd, &l) == -1)
		return -1;
	if (l.tap.index == 0 || inet_pton(AF_INET6, EGRESS_ADDR6, addr) != 1 ||
	    inet_pton(AF_INET6, EGRESS_GATEWAY6, gateway) != 1) {
		errno = ENODEV;
		return -1;
	}
	nl_start(&b);
	put_addr(&b, l.tap.index, AF_INET6, addr, 64);
	h = msg_start(&b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));
	rt->rtm_family = AF_INET6;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = RT_SCOPE_UNIVERSE;
	rt->rtm_type = RTN_UNICAST;
	mnl_attr_put(h, RTA_GATEWAY, sizeof(gateway), gateway);
	mnl_attr_put_u32(h, RTA_OIF, l.tap.index);
	nl_took(&b, h, 1);
	return nl_send(fd, &b, NULL);
}

/* ---- lives and deaths -------------------------------------------------- */

int
link_watch(void)
{
	struct sockaddr_nl	sa = { .nl_family = AF_NETLINK };
	int			group = RTNLGRP_NSID;
	auto_close int		fd = -1;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    NETLINK_ROUTE);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
	    sizeof(group)) == -1)
		return -1;
	return steal_fd(&fd);
}

int
link_name(int fd, unsigned int k, int netns)
{
	struct nl_batch		 b;
	struct nlmsghdr		*h;
	struct rtgenmsg		*rt;

	nl_start(&b);
	h = msg_start(&b, RTM_NEWNSID, 0);
	rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));
	rt->rtgen_family = AF_UNSPEC;
	mnl_attr_put_u32(h, NETNSA_FD, (uint32_t)netns);
	mnl_attr_put_u32(h, NETNSA_NSID, k);
	nl_took(&b, h, 1);
	return nl_send(fd, &b, NULL);
}

/* The number in an RTM_NEWNSID or RTM_DELNSID; 0: none. */
static unsigned int
nsid_of(const struct nlmsghdr *h)
{
	const struct nlattr	*a;
	uint32_t		 v;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(struct rtgenmsg))
		return 0;
	mnl_attr_for_each(a, h, sizeof(struct rtgenmsg)) {
		if (mnl_attr_get_type(a) != NETNSA_NSID ||
		    mnl_attr_validate(a, MNL_TYPE_U32) == -1)
			continue;
		v = mnl_attr_get_u32(a);
		return v <= NET_KMAX ? v : 0;
	}
	return 0;
}

int
link_deaths(int fd, void (*dead)(unsigned int k))
{
	static uint8_t		 buf[8192] __attribute__((aligned(8)));
	const struct nlmsghdr	*h;
	struct sockaddr_nl	 sa;
	socklen_t		 salen;
	ssize_t			 n;
	unsigned int		 k;
	int			 len;

	for (;;) {
		memset(&sa, 0, sizeof(sa));
		salen = sizeof(sa);
		n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT,
		    (struct sockaddr *)&sa, &salen);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		if (salen != sizeof(sa) || sa.nl_pid != 0)
			continue;
		len = (int)n;
		for (h = (const struct nlmsghdr *)buf; nl_ok(h, len);
		    h = mnl_nlmsg_next(h, &len))
			if (h->nlmsg_type == RTM_DELNSID &&
			    (k = nsid_of(h)) != 0)
				dead(k);
	}
}

struct alive { void (*cb)(unsigned int k); };

static int
alive_one(const struct nlmsghdr *h, void *arg)
{
	const struct alive	*a = arg;
	unsigned int		 k;

	if (h->nlmsg_type == RTM_NEWNSID && (k = nsid_of(h)) != 0)
		a->cb(k);
	return 0;
}

int
link_alive(int fd, void (*alive)(unsigned int k))
{
	uint8_t		 buf[64] __attribute__((aligned(8)));
	struct nlmsghdr	*h = mnl_nlmsg_put_header(buf);
	struct rtgenmsg	*rt;
	struct alive	 a = { alive };

	h->nlmsg_type = RTM_GETNSID;
	rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));
	rt->rtgen_family = AF_UNSPEC;
	return nl_dump(fd, h, alive_one, &a);
}
