/*
 * netd_probe.c: see netd_probe.h.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "netd_probe.h"

#define CHECK(x) do {							\
	if (!(x)) {							\
		fprintf(stderr, "%s:%d: %s: %s\n", __func__, __LINE__,	\
		    #x, strerror(errno));				\
		return __LINE__ % 80 + 1;				\
	}								\
} while (0)

struct addr {
	union {
		struct sockaddr		sa;
		struct sockaddr_in	in;
		struct sockaddr_in6	in6;
	}		 u;
	socklen_t	 len;
};

static struct addr
addr(const char *text, int port)
{
	struct addr	a;

	memset(&a, 0, sizeof(a));
	if (strchr(text, ':') != NULL) {
		a.u.in6.sin6_family = AF_INET6;
		a.u.in6.sin6_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET6, text, &a.u.in6.sin6_addr);
		a.len = sizeof(a.u.in6);
	} else {
		a.u.in.sin_family = AF_INET;
		a.u.in.sin_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET, text, &a.u.in.sin_addr);
		a.len = sizeof(a.u.in);
	}
	return a;
}

/* Whether this kernel has IPv6: UML's has it as a module. */
static int
has_v6(void)
{
	int	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return 0;
	close(fd);
	return 1;
}

static int
sock(const struct addr *a, int type)
{
	return socket(a->u.sa.sa_family, type | SOCK_CLOEXEC, 0);
}

/* errno of a blocking connect (0: connected), ETIME when it took 500 ms. */
static int
try_tcp(const char *to, int port)
{
	struct addr	a = addr(to, port);
	int		e = 0, fd = sock(&a, SOCK_STREAM | SOCK_NONBLOCK);
	struct pollfd	p = { .fd = fd, .events = POLLOUT };
	socklen_t	len = sizeof(e);

	if (fd == -1)
		return errno;
	if (connect(fd, &a.u.sa, a.len) == -1) {
		e = errno;
		if (e == EINPROGRESS && poll(&p, 1, 500) == 0)
			e = ETIME;
		else if (e == EINPROGRESS)
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	}
	close(fd);
	return e;
}

/* errno of a datagram on a connected socket. */
static int
try_udp(const char *to, int port)
{
	struct addr	a = addr(to, port);
	int		e = 0, fd = sock(&a, SOCK_DGRAM);

	if (fd == -1)
		return errno;
	if (connect(fd, &a.u.sa, a.len) == -1 || send(fd, "x", 1, 0) == -1)
		e = errno;
	close(fd);
	return e;
}

/* A byte there and back over TCP on this address. */
static int
echo_tcp(const char *on)
{
	struct addr	a = addr(on, 0);
	int		l = sock(&a, SOCK_STREAM), c, s;
	char		b = 0;

	CHECK(l != -1);
	CHECK(bind(l, &a.u.sa, a.len) == 0 && listen(l, 1) == 0);
	CHECK(getsockname(l, &a.u.sa, &a.len) == 0);
	CHECK((c = sock(&a, SOCK_STREAM)) != -1);
	CHECK(connect(c, &a.u.sa, a.len) == 0);
	CHECK((s = accept(l, NULL, NULL)) != -1);
	CHECK(write(c, "x", 1) == 1 && read(s, &b, 1) == 1 && b == 'x');
	close(c);
	close(s);
	close(l);
	return 0;
}

static int
echo_udp(const char *on)
{
	struct addr	a = addr(on, 0);
	int		r = sock(&a, SOCK_DGRAM), s;
	char		b = 0;

	CHECK(r != -1 && bind(r, &a.u.sa, a.len) == 0);
	CHECK(getsockname(r, &a.u.sa, &a.len) == 0);
	CHECK((s = sock(&a, SOCK_DGRAM)) != -1);
	CHECK(sendto(s, "x", 1, 0, &a.u.sa, a.len) == 1);
	CHECK(recv(r, &b, 1, 0) == 1 && b == 'x');
	close(r);
	close(s);
	return 0;
}

int
probe_dropped(void *arg)
{
	struct addr		a = addr("127.0.0.1", 0);
	struct tcp_info		ti;
	socklen_t		len = sizeof(ti);
	int			c, l;

	(void)arg;
	CHECK(try_udp("127.0.0.1", 9) == EPERM);
	CHECK(try_udp("::1", 9) == EPERM);
	CHECK(try_udp("198.19.255.3", 53) == EPERM);
	CHECK(try_udp("192.0.2.1", 9) == EPERM);
	CHECK(try_udp("2001:db8::1", 9) == EPERM);
	/* a listener that would answer at once is not reached */
	CHECK((l = sock(&a, SOCK_STREAM)) != -1);
	CHECK(bind(l, &a.u.sa, a.len) == 0 && listen(l, 1) == 0);
	CHECK(getsockname(l, &a.u.sa, &a.len) == 0);
	CHECK((c = sock(&a, SOCK_STREAM | SOCK_NONBLOCK)) != -1);
	CHECK(connect(c, &a.u.sa, a.len) == -1 && errno == EINPROGRESS);
	CHECK(getsockopt(c, IPPROTO_TCP, TCP_INFO, &ti, &len) == 0);
	CHECK(ti.tcpi_state == TCP_SYN_SENT);
	return 0;
}

/* Whether a datagram to oneself comes; send(2) alone does not tell. */
static int
delivered(const char *on)
{
	struct addr	a = addr(on, 0);
	int		n, r = sock(&a, SOCK_DGRAM), s = sock(&a, SOCK_DGRAM);
	struct pollfd	p = { .fd = r, .events = POLLIN };

	n = bind(r, &a.u.sa, a.len) == 0 &&
	    getsockname(r, &a.u.sa, &a.len) == 0 &&
	    sendto(s, "x", 1, 0, &a.u.sa, a.len) == 1 &&
	    poll(&p, 1, 200) == 1;
	close(r);
	close(s);
	return n;
}

static int
lo_works(void)
{
	CHECK(delivered("127.0.0.1"));
	CHECK(echo_tcp("127.0.0.1") == 0);
	CHECK(echo_tcp("127.1.2.3") == 0);
	CHECK(echo_udp("127.0.0.1") == 0);
	if (has_v6()) {
		CHECK(delivered("::1"));
		CHECK(echo_tcp("::1") == 0);
		CHECK(echo_udp("::1") == 0);
	}
	/* a closed port is a closed port */
	CHECK(try_tcp("127.0.0.1", 9) == ECONNREFUSED);
	return 0;
}

/*
 * The kernel adds the route of an IPv6 address after the address itself, from
 * a queue: on a busy machine a program may be there first.
 */
static int
is_routed(const char *to)
{
	struct addr	a = addr(to, 9);
	int		fd = sock(&a, SOCK_DGRAM), i, r = -1;

	for (i = 0; i < 2000 && r == -1; i++) {
		if ((r = connect(fd, &a.u.sa, a.len)) == -1)
			(void)poll(NULL, 0, 1);
	}
	close(fd);
	return r == 0;
}

int
probe_open(void *arg)
{
	static const char *const	away[] = { "192.0.2.1", "10.0.2.2",
		"169.254.169.254", "198.18.0.1", "198.19.255.3",
		"2001:db8::1", "fd00::2", "64:ff9b::a9fe:a9fe",
		"::ffff:192.0.2.1" };
	struct timespec			a, b;
	size_t				i;

	(void)arg;
	CHECK(lo_works() == 0);
	CHECK(echo_tcp("198.19.255.100") == 0);
	CHECK(is_routed("fd00::100"));
	CHECK(echo_tcp("fd00::100") == 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < sizeof(away) / sizeof(away[0]); i++) {
		CHECK(try_tcp(away[i], 80) == ECONNREFUSED);
		CHECK(try_udp(away[i], 9) == EPERM);
	}
	CHECK(try_udp("198.19.255.3", 53) == EPERM);
	CHECK(try_tcp("198.19.255.3", 53) == ECONNREFUSED);
	CHECK(try_udp("224.0.0.251", 5353) == EPERM);
	CHECK(try_udp("ff02::fb", 5353) != 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	/* all of them together: refused, not timed out */
	CHECK((b.tv_sec - a.tv_sec) * 1000 +
	    (b.tv_nsec - a.tv_nsec) / 1000000 < 900);
	return 0;
}

int
probe_absent(void *arg)
{
	(void)arg;
	CHECK(lo_works() == 0);
	CHECK(try_tcp("192.0.2.1", 80) == ENETUNREACH);
	CHECK(!has_v6() || try_tcp("2001:db8::1", 80) == ENETUNREACH);
	CHECK(try_udp("198.19.255.3", 53) == ENETUNREACH);
	return 0;
}

int
probe_lo_down(void *arg)
{
	(void)arg;
	CHECK(!delivered("127.0.0.1"));
	CHECK(!has_v6() || !delivered("::1"));
	CHECK(try_tcp("127.0.0.1", 9) != ECONNREFUSED);
	CHECK(!has_v6() || try_tcp("::1", 9) != ECONNREFUSED);
	CHECK(try_udp("192.0.2.1", 9) == ENETUNREACH);
	return 0;
}

int
probe_ports(void *arg)
{
	struct addr	a;
	int		fd, port;

	(void)arg;
	for (port = 1; port < 8; port++) {
		a = addr("127.0.0.1", port);
		CHECK((fd = sock(&a, SOCK_STREAM)) != -1);
		CHECK(bind(fd, &a.u.sa, a.len) == -1 && errno == EACCES);
		close(fd);
		if (!has_v6())
			continue;
		a = addr("::1", port);
		CHECK((fd = sock(&a, SOCK_DGRAM)) != -1);
		CHECK(bind(fd, &a.u.sa, a.len) == -1 && errno == EACCES);
		close(fd);
	}
	a = addr("127.0.0.1", 8);
	CHECK((fd = sock(&a, SOCK_STREAM)) != -1);
	CHECK(bind(fd, &a.u.sa, a.len) == 0);
	close(fd);
	return 0;
}

int
probe_buffers(void *arg)
{
	struct addr	a = addr("127.0.0.1", 0);
	int		c, fd, l;
	char		buf[65536], text[64] = "";
	size_t		n = 0;
	ssize_t		r;

	(void)arg;
	CHECK((l = sock(&a, SOCK_STREAM)) != -1);
	CHECK(bind(l, &a.u.sa, a.len) == 0 && listen(l, 1) == 0);
	CHECK(getsockname(l, &a.u.sa, &a.len) == 0);
	CHECK((c = sock(&a, SOCK_STREAM)) != -1);
	CHECK(connect(c, &a.u.sa, a.len) == 0);
	memset(buf, 'x', sizeof(buf));
	while ((r = send(c, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		n += (size_t)r;
	CHECK(r == -1 && errno == EAGAIN);
	CHECK(n > 0 && n <= 1024 * 1024);
	/* and they cannot be raised from inside */
	fd = open("/proc/sys/net/ipv4/tcp_wmem", O_WRONLY);
	CHECK(fd == -1 && errno == EACCES);
	CHECK((fd = open("/proc/sys/net/ipv4/tcp_wmem", O_RDONLY)) != -1);
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	CHECK(strstr(text, "262144") != NULL);
	close(fd);
	return 0;
}

int
probe_lasting(void *arg)
{
	struct addr	a = addr("127.0.0.1", 0);
	int		tell = *(int *)arg, l = sock(&a, SOCK_STREAM), c, s;
	char		b;

	CHECK(l != -1 && bind(l, &a.u.sa, a.len) == 0 && listen(l, 1) == 0);
	CHECK(getsockname(l, &a.u.sa, &a.len) == 0);
	CHECK((c = sock(&a, SOCK_STREAM)) != -1);
	CHECK(connect(c, &a.u.sa, a.len) == 0);
	CHECK((s = accept(l, NULL, NULL)) != -1);
	CHECK(write(tell, "c", 1) == 1);
	CHECK(read(tell, &b, 1) == 1);
	CHECK(write(c, "y", 1) == 1 && read(s, &b, 1) == 1 && b == 'y');
	return 0;
}

/* ---- rights ----------------------------------------------------------------- */

/* One netlink message of this type and flags; the errno it is answered with. */
static int
netlink(int protocol, uint16_t type, uint16_t flags, const void *body,
    size_t len)
{
	struct {
		struct nlmsghdr	h;
		uint8_t		body[256];
	}			 q = { { 0 }, { 0 } };
	union {
		struct nlmsghdr	h;
		uint8_t		b[8192];
	}			 r;
	struct sockaddr_nl	 sa = { .nl_family = AF_NETLINK };
	const struct nlmsgerr	*e = (const struct nlmsgerr *)(r.b +
				    NLMSG_HDRLEN);
	int			 fd = socket(AF_NETLINK, SOCK_RAW |
				    SOCK_CLOEXEC, protocol);
	ssize_t			 n;

	if (fd == -1)
		return errno;
	q.h.nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
	q.h.nlmsg_type = type;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	q.h.nlmsg_seq = 1;
	memcpy(q.body, body, len);
	n = sendto(fd, &q, q.h.nlmsg_len, 0, (struct sockaddr *)&sa,
	    sizeof(sa));
	if (n == -1) {
		close(fd);
		return errno;
	}
	n = recv(fd, &r, sizeof(r), 0);
	close(fd);
	if (n < (ssize_t)sizeof(struct nlmsghdr))
		return EPROTO;
	return r.h.nlmsg_type == NLMSG_ERROR ? -e->error : 0;
}

static int
link_set(unsigned int flags)
{
	struct ifinfomsg	ifi = { .ifi_index = 1, .ifi_flags = flags,
				    .ifi_change = IFF_UP };

	return netlink(NETLINK_ROUTE, RTM_NEWLINK, 0, &ifi, sizeof(ifi));
}

static int
addr_add(void)
{
	struct {
		struct ifaddrmsg	ifa;
		struct nlattr		a;
		uint8_t			v[4];
	} b = { { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1 },
	    { 8, IFA_LOCAL }, { 192, 0, 2, 77 } };

	return netlink(NETLINK_ROUTE, RTM_NEWADDR, NLM_F_CREATE, &b,
	    sizeof(b));
}

static int
route_add(void)
{
	struct {
		struct rtmsg	rt;
		struct nlattr	a;
		uint32_t	oif;
		struct nlattr	d;
		uint8_t		v[4];
	} b = { { .rtm_family = AF_INET, .rtm_dst_len = 32,
	    .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_BOOT,
	    .rtm_scope = RT_SCOPE_LINK, .rtm_type = RTN_UNICAST },
	    { 8, RTA_OIF }, 1, { 8, RTA_DST }, { 192, 0, 2, 78 } };

	return netlink(NETLINK_ROUTE, RTM_NEWROUTE, NLM_F_CREATE, &b,
	    sizeof(b));
}

static int
nft_list(void)
{
	struct nfgenmsg	g = { .nfgen_family = AF_UNSPEC };

	return netlink(NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 |
	    NFT_MSG_GETTABLE, NLM_F_DUMP, &g, sizeof(g));
}

/* A batch of one message; netlink() would send it without its frame. */
static int
nft_batch(uint16_t type, uint8_t family, const char *table)
{
	struct one {
		struct nlmsghdr	h;
		struct nfgenmsg	g;
	}			 begin = { { 0 }, { 0 } }, end;
	struct {
		struct one	o;
		struct nlattr	a;
		char		name[8];
	}			 m = { { { 0 }, { 0 } }, { 0 }, "" };
	uint8_t			 buf[256];
	struct sockaddr_nl	 sa = { .nl_family = AF_NETLINK };
	union {
		struct nlmsghdr	h;
		uint8_t		b[4096];
	}			 r;
	const struct nlmsgerr	*e = (const struct nlmsgerr *)(r.b +
				    NLMSG_HDRLEN);
	size_t			 mlen;
	int			 fd = socket(AF_NETLINK, SOCK_RAW |
				    SOCK_CLOEXEC, NETLINK_NETFILTER);

	if (fd == -1)
		return errno;
	begin.h.nlmsg_len = sizeof(begin);
	begin.h.nlmsg_type = NFNL_MSG_BATCH_BEGIN;
	begin.h.nlmsg_flags = NLM_F_REQUEST;
	begin.h.nlmsg_seq = 1;
	begin.g.res_id = htons(NFNL_SUBSYS_NFTABLES);
	end = begin;
	end.h.nlmsg_type = NFNL_MSG_BATCH_END;
	end.h.nlmsg_seq = 3;
	mlen = table != NULL ? sizeof(m) : sizeof(m.o);
	m.o.h.nlmsg_len = (uint32_t)mlen;
	m.o.h.nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	m.o.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
	    (type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0);
	m.o.h.nlmsg_seq = 2;
	m.o.g.nfgen_family = family;
	m.a.nla_len = sizeof(m.a) + sizeof(m.name);
	m.a.nla_type = NFTA_TABLE_NAME;
	if (table != NULL)
		(void)snprintf(m.name, sizeof(m.name), "%s", table);
	memcpy(buf, &begin, sizeof(begin));
	memcpy(buf + sizeof(begin), &m, mlen);
	memcpy(buf + sizeof(begin) + mlen, &end, sizeof(end));
	if (sendto(fd, buf, 2 * sizeof(begin) + mlen, 0,
	    (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    recv(fd, &r, sizeof(r), 0) < (ssize_t)sizeof(*e)) {
		close(fd);
		return errno;
	}
	close(fd);
	return r.h.nlmsg_type == NLMSG_ERROR ? -e->error : EPROTO;
}

int
probe_flush(void *arg)
{
	(void)arg;
	CHECK(nft_batch(NFT_MSG_DELTABLE, AF_UNSPEC, NULL) == 0);
	return 0;
}

int
probe_add_table(void *arg)
{
	(void)arg;
	CHECK(nft_batch(NFT_MSG_NEWTABLE, AF_INET, "more") == 0);
	return 0;
}

int
probe_raise(void *arg)
{
	(void)arg;
	CHECK(link_set(IFF_UP) == 0);
	return 0;
}

int
probe_powerless(void *arg)
{
	int	fd;

	(void)arg;
	if (nft_list() != EPROTONOSUPPORT) {
		CHECK(nft_list() == EPERM);
		CHECK(nft_batch(NFT_MSG_DELTABLE, AF_UNSPEC, NULL) == EPERM);
		CHECK(nft_batch(NFT_MSG_NEWTABLE, AF_INET, "more") == EPERM);
	}
	CHECK(link_set(0) == EPERM);
	CHECK(addr_add() == EPERM);
	CHECK(route_add() == EPERM);
	CHECK(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) == -1 && errno == EPERM);
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) == -1 && errno == EPERM);
	fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY);
	CHECK(fd == -1 && errno == EACCES);
	return 0;
}

int
probe_powerful(void *arg)
{
	int	fd;

	(void)arg;
	CHECK(nft_list() == 0);
	CHECK(nft_batch(NFT_MSG_NEWTABLE, AF_INET, "more") == 0);
	CHECK(nft_batch(NFT_MSG_DELTABLE, AF_UNSPEC, NULL) == 0);
	CHECK(addr_add() == 0);
	CHECK(link_set(0) == 0);
	CHECK((fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)) != -1);
	close(fd);
	CHECK((fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start",
	    O_WRONLY)) != -1);
	close(fd);
	return 0;
}
