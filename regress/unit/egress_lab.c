/*
 * egress_lab.c: see egress_lab.h.
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../netd/netd.h"
#include "egress_lab.h"
#include "xmalloc.h"

/* ---- netlink --------------------------------------------------------- */

static struct nlmsghdr *
start(struct nl_batch *b, uint16_t type, uint16_t flags)
{
	struct nlmsghdr	*h = mnl_nlmsg_put_header(nl_next(b));

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	return h;
}

static void
sent(const struct lab *l, enum lab_place at, struct nl_batch *b,
    const char *what)
{
	ck_assert_msg(nl_send(l->route[at], b, NULL) == 0, "%s: %s", what,
	    strerror(errno));
}

static unsigned int
ifindex(const struct lab *l, enum lab_place at, const char *dev)
{
	int		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	unsigned int	i;

	ck_assert_int_eq(setns(l->netns[at], CLONE_NEWNET), 0);
	i = if_nametoindex(dev);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	ck_assert_uint_ne(i, 0);
	return i;
}

/* From one place to another; both ends up. */
static void
veth(const struct lab *l, enum lab_place a, const char *name,
    enum lab_place z, const char *peer)
{
	struct nl_batch		 b;
	struct nlmsghdr		*h;
	struct ifinfomsg	*ifi;
	struct nlattr		*info, *data, *end;

	nl_start(&b);
	h = start(&b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(h, IFLA_IFNAME, name);
	info = mnl_attr_nest_start(h, IFLA_LINKINFO);
	mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
	end = mnl_attr_nest_start(h, VETH_INFO_PEER);
	(void)mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	mnl_attr_put_strz(h, IFLA_IFNAME, peer);
	mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t)l->netns[z]);
	mnl_attr_nest_end(h, end);
	mnl_attr_nest_end(h, data);
	mnl_attr_nest_end(h, info);
	nl_took(&b, h, 1);
	sent(l, a, &b, name);
}

static void
up(const struct lab *l, enum lab_place at, const char *dev)
{
	struct nl_batch		 b;
	struct nlmsghdr		*h;
	struct ifinfomsg	*ifi;

	nl_start(&b);
	h = start(&b, RTM_NEWLINK, 0);
	ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex(l, at, dev);
	ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	nl_took(&b, h, 1);
	sent(l, at, &b, dev);
}

/* ADDRESS/BITS, host bits and all. */
static int
parse(const char *text, uint8_t addr[16], unsigned int *ret_bits)
{
	char		 buf[64];
	char		*slash;
	int		 f = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;

	ck_assert_int_eq(str_copy(buf, text, sizeof(buf)), 0);
	*ret_bits = f == AF_INET ? 32 : 128;
	if ((slash = strchr(buf, '/')) != NULL) {
		*slash = '\0';
		*ret_bits = (unsigned int)strtoul(slash + 1, NULL, 10);
	}
	memset(addr, 0, 16);
	ck_assert_msg(inet_pton(f, buf, addr) == 1, "%s", text);
	return f;
}

static void
put_addr(struct nl_batch *b, int family, const uint8_t *addr,
    unsigned int bits, unsigned int dev, int del)
{
	struct nlmsghdr		*h;
	struct ifaddrmsg	*ifa;
	size_t			 len = family == AF_INET ? 4 : 16;

	h = start(b, del ? RTM_DELADDR : RTM_NEWADDR,
	    del ? 0 : NLM_F_CREATE | NLM_F_EXCL);
	ifa = mnl_nlmsg_put_extra_header(h, sizeof(*ifa));
	ifa->ifa_family = (uint8_t)family;
	ifa->ifa_prefixlen = (uint8_t)bits;
	ifa->ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
	ifa->ifa_index = dev;
	mnl_attr_put(h, IFA_LOCAL, len, addr);
	mnl_attr_put(h, IFA_ADDRESS, len, addr);
	nl_took(b, h, 1);
}

void
lab_addr(const struct lab *l, enum lab_place at, const char *dev,
    const char *text, int del)
{
	struct nl_batch	b;
	uint8_t		addr[16];
	unsigned int	bits;
	int		f = parse(text, addr, &bits);

	if (f == AF_INET6 && !l->v6)
		return;
	nl_start(&b);
	put_addr(&b, f, addr, bits, ifindex(l, at, dev), del);
	sent(l, at, &b, text);
}

/* Acknowledgements in thousands would not fit the socket: the last alone. */
void
lab_addrs(const struct lab *l, enum lab_place at, const char *dev,
    const char *first, unsigned int n, int del)
{
	static uint8_t	buf[96 * 1024] __attribute__((aligned(8)));
	struct nl_batch	b;
	struct nlmsghdr	*h;
	uint8_t		addr[16];
	unsigned int	bits, i, idx = ifindex(l, at, dev);
	int		f = parse(first, addr, &bits);
	size_t		len = f == AF_INET ? 4 : 16, at_ = 0;

	nl_start_in(&b, buf, sizeof(buf));
	for (i = 0; i < n; i++) {
		at_ = b.len;
		put_addr(&b, f, addr, (unsigned int)len * 8, idx, del);
		(void)addr_next(addr, len);
		h = (struct nlmsghdr *)(void *)(buf + at_);
		if (i + 1 < n)
			h->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
	}
	b.acks = 1;
	sent(l, at, &b, first);
}

static void
put_route(struct nl_batch *b, const char *to, const char *via,
    unsigned int dev, int local, int del)
{
	struct nlmsghdr	*h;
	struct rtmsg	*rt;
	uint8_t		 dst[16], gw[16];
	unsigned int	 bits, none;
	int		 f = parse(to, dst, &bits);
	size_t		 len = f == AF_INET ? 4 : 16;

	h = start(b, del ? RTM_DELROUTE : RTM_NEWROUTE,
	    del ? 0 : NLM_F_CREATE | NLM_F_EXCL);
	rt = mnl_nlmsg_put_extra_header(h, sizeof(*rt));
	rt->rtm_family = (uint8_t)f;
	rt->rtm_dst_len = (uint8_t)bits;
	rt->rtm_table = local ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = local ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	rt->rtm_type = local ? RTN_LOCAL : RTN_UNICAST;
	if (bits != 0)
		mnl_attr_put(h, RTA_DST, len, dst);
	mnl_attr_put_u32(h, RTA_OIF, dev);
	if (via != NULL) {
		(void)parse(via, gw, &none);
		mnl_attr_put(h, RTA_GATEWAY, len, gw);
	}
	nl_took(b, h, 1);
}

static void
route(const struct lab *l, enum lab_place at, const char *to,
    const char *via, const char *dev)
{
	struct nl_batch	b;

	if (strchr(to, ':') != NULL && !l->v6)
		return;
	nl_start(&b);
	put_route(&b, to, via, ifindex(l, at, dev), 0, 0);
	sent(l, at, &b, to);
}

void
lab_local(const struct lab *l, enum lab_place at, const char *prefix, int del)
{
	struct nl_batch	b;

	nl_start(&b);
	put_route(&b, prefix, NULL, 1, 1, del);
	sent(l, at, &b, prefix);
}

/* ---- places ---------------------------------------------------------- */

static int
netlink(int protocol)
{
	int	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	ck_assert_int_ne(fd, -1);
	return fd;
}

static void
sysctl_set(const char *path, const char *value)
{
	auto_close int	fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_msg(fd != -1 && write(fd, value, 1) == 1, "%s: %s", path,
	    strerror(errno));
}

/* A new one, in which the process then is. */
static int
place(int *ret_route)
{
	int	fd, r;

	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_ne(fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
	    -1);
	r = netlink(NETLINK_ROUTE);
	/* addresses that work from the first moment on */
	if (access("/proc/sys/net/ipv6", F_OK) == 0)
		sysctl_set("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	ck_assert_int_eq(link_set(r, 1), 0);
	if (ret_route != NULL)
		*ret_route = r;
	else
		close(r);
	return fd;
}

int
lab_netns(int *ret_nft)
{
	int	fd, home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	fd = place(NULL);
	*ret_nft = netlink(NETLINK_NETFILTER);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	return fd;
}

void
lab_enter(const struct lab *l, enum lab_place at)
{
	ck_assert_int_eq(setns(l->netns[at], CLONE_NEWNET), 0);
}

/* Who is there behind the host, besides the public ones. */
static const char *const	strangers[] = {
	"0.1.2.3/32", "10.1.2.3/32", "100.64.1.2/32", "169.254.169.254/32",
	"172.16.1.2/32", "192.0.0.8/32", "192.168.1.2/32", "198.18.1.2/32",
	"198.19.254.1/32", "240.1.2.3/32", "100.100.100.200/32",
	"203.0.113.10/24", "203.0.113.50/32", "203.0.113.130/32",
	"198.51.100.10/32", "2001:db8:1::10/64", "2001:db8:1::50/128",
	"2001:db8:2::10/128", "fd12::1/128", "fd00:ec2::254/128",
	"64:ff9b::a9fe:a9fe/128", "64:ff9b::808:808/128",
	"64:ff9b:1::a9fe:a9fe/128", "2002:a9fe:a9fe::1/128",
	"2002:808:808::1/128", "2001:0:808:808::1/128",
	"64:ff9b::cb00:7102/128", "2002:cb00:7102::1/128", "::10.1.2.3/128",
	"fec0::1/128", "100::1/128", "5f00::1/128", "2001:2::1/128",
	"::ffff:0:10.1.2.3/128",
};

void
lab_routes(const struct lab *l)
{
	route(l, LAB_BOX, "0.0.0.0/0", "198.19.255.2", "tap0");
	route(l, LAB_BOX, "::/0", "fd00::2", "tap0");
}

static void
wire(struct lab *l)
{
	size_t	i;

	veth(l, LAB_BOX, "tap0", LAB_HOST, "box0");
	veth(l, LAB_HOST, "net0", LAB_INET, "net1");
	up(l, LAB_BOX, "tap0");
	up(l, LAB_HOST, "box0");
	up(l, LAB_HOST, "net0");
	up(l, LAB_INET, "net1");
	lab_addr(l, LAB_BOX, "tap0", "198.19.255.100/24", 0);
	lab_addr(l, LAB_BOX, "tap0", "fd00::100/64", 0);
	lab_addr(l, LAB_HOST, "box0", "198.19.255.2/24", 0);
	lab_addr(l, LAB_HOST, "box0", "198.19.255.3/32", 0);
	lab_addr(l, LAB_HOST, "box0", "fd00::2/64", 0);
	lab_addr(l, LAB_HOST, "net0", "203.0.113.2/24", 0);
	lab_addr(l, LAB_HOST, "net0", "2001:db8:1::2/64", 0);
	for (i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		lab_addr(l, LAB_INET, "net1", strangers[i], 0);
	lab_routes(l);
	route(l, LAB_HOST, "0.0.0.0/0", "203.0.113.10", "net0");
	route(l, LAB_HOST, "::/0", "2001:db8:1::10", "net0");
	route(l, LAB_INET, "198.19.255.0/24", "203.0.113.2", "net1");
	route(l, LAB_INET, "fd00::/64", "2001:db8:1::2", "net1");
}

/* Both ends of its one cable are within. */
int
lab_lonely(int *ret_nft)
{
	struct lab	l = { .v6 = access("/proc/sys/net/ipv6", F_OK) == 0 };
	int		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	l.netns[LAB_BOX] = place(&l.route[LAB_BOX]);
	*ret_nft = netlink(NETLINK_NETFILTER);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	veth(&l, LAB_BOX, "tap0", LAB_BOX, "tap1");
	up(&l, LAB_BOX, "tap0");
	up(&l, LAB_BOX, "tap1");
	lab_addr(&l, LAB_BOX, "tap0", "198.19.255.100/24", 0);
	lab_addr(&l, LAB_BOX, "tap0", "fd00::100/64", 0);
	route(&l, LAB_BOX, "0.0.0.0/0", "198.19.255.2", "tap0");
	route(&l, LAB_BOX, "::/0", "fd00::2", "tap0");
	close(l.route[LAB_BOX]);
	return l.netns[LAB_BOX];
}

int
lab_netlink(int netns, int protocol)
{
	int	fd, home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(setns(netns, CLONE_NEWNET), 0);
	fd = netlink(protocol);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	return fd;
}

int
lab_log(int netns)
{
	return lab_netlink(netns, NETLINK_NETFILTER);
}

/* ---- servers --------------------------------------------------------- */

static int
serve_at(int type, int port)
{
	struct sockaddr_in6	a = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in	a4 = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };
	const int		on = 1;
	int			v6, fd;

	fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
	v6 = fd != -1;
	if (!v6)
		fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (fd == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    (v6 ? bind(fd, (struct sockaddr *)&a, sizeof(a)) :
	    bind(fd, (struct sockaddr *)&a4, sizeof(a4))) == -1)
		return -1;
	/* IPv4 in IPv6's clothes: one socket for both */
	if (type == SOCK_DGRAM && setsockopt(fd, v6 ? IPPROTO_IPV6 :
	    IPPROTO_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on, sizeof(on))
	    == -1)
		return -1;
	return type == SOCK_STREAM && listen(fd, 4096) == -1 ? -1 : fd;
}

/* Back to whoever sent it, from the address that it was sent to. */
static void
echo_udp(int fd)
{
	uint8_t			buf[64], control[128];
	struct sockaddr_in6	from;
	struct iovec		iov = { buf, sizeof(buf) };
	struct msghdr		mh = { .msg_name = &from,
	    .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t			n = recvmsg(fd, &mh, 0);

	if (n <= 0)
		return;
	iov.iov_len = (size_t)n;
	(void)sendmsg(fd, &mh, 0);	/* it may be gone */
}

/* A child for each connection: it ends with the other side, or with us. */
static void
echo_tcp(int listener)
{
	char	buf[64];
	ssize_t	n;
	int	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd == -1)
		return;
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			if (write(fd, buf, (size_t)n) != n)
				break;
		_exit(0);
	}
	close(fd);
}

static int
serve(void *arg)
{
	const int	*ready = arg;
	const int	 ports[] = { LAB_PORT, LAB_DNS, LAB_DNS + 1 };
	struct pollfd	 p[6];
	size_t		 i;

	(void)signal(SIGCHLD, SIG_IGN);		/* no zombies */
	for (i = 0; i < 6; i++) {
		p[i].fd = serve_at(i % 2 ? SOCK_DGRAM : SOCK_STREAM,
		    ports[i / 2]);
		p[i].events = POLLIN;
		if (p[i].fd == -1)
			return 1;
	}
	if (write(*ready, "r", 1) != 1)
		return 2;
	for (;;) {
		(void)poll(p, 6, -1);
		for (i = 0; i < 6; i++)
			if (p[i].revents & POLLIN)
				(i % 2 ? echo_udp : echo_tcp)(p[i].fd);
	}
}

pid_t
lab_start(const struct lab *l, enum lab_place at, int (*fn)(void *),
    void *arg)
{
	pid_t	pid = fork();

	ck_assert_int_ne(pid, -1);
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setns(l->netns[at], CLONE_NEWNET) == -1)
		_exit(99);
	_exit(fn(arg));
}

int
lab_result(pid_t pid)
{
	int	st;

	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_msg(WIFEXITED(st), "child status %x", st);
	return WEXITSTATUS(st);
}

int
lab_in(const struct lab *l, enum lab_place at, int (*fn)(void *), void *arg)
{
	return lab_result(lab_start(l, at, fn, arg));
}

void
lab_make(struct lab *l)
{
	int	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int	i, p[2];
	char	b;

	memset(l, 0, sizeof(*l));
	for (i = 0; i < LAB_PLACES; i++)
		l->netns[i] = place(&l->route[i]);
	l->v6 = access("/proc/sys/net/ipv6", F_OK) == 0;
	wire(l);
	lab_enter(l, LAB_HOST);
	sysctl_set("/proc/sys/net/ipv4/ip_forward", "1");
	if (l->v6)
		sysctl_set("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	lab_enter(l, LAB_BOX);
	l->nft = netlink(NETLINK_NETFILTER);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	for (i = 0; i < 2; i++) {
		l->servers[i] = lab_start(l, i == 0 ? LAB_HOST : LAB_INET,
		    serve, &p[1]);
		ck_assert_int_eq(read(p[0], &b, 1), 1);
	}
	close(p[0]);
	close(p[1]);
}

void
lab_free(struct lab *l)
{
	int	i;

	for (i = 0; i < 2; i++) {
		kill(l->servers[i], SIGKILL);
		waitpid(l->servers[i], NULL, 0);
	}
	for (i = 0; i < LAB_PLACES; i++) {
		close(l->netns[i]);
		close(l->route[i]);
	}
	close(l->nft);
}

/* ---- what a program sees --------------------------------------------- */

union addr {
	struct sockaddr		sa;
	struct sockaddr_in	in;
	struct sockaddr_in6	in6;
};

static int
sock(const char *to, int port, int type, union addr *a, socklen_t *len)
{
	memset(a, 0, sizeof(*a));
	if (strchr(to, ':') != NULL) {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET6, to, &a->in6.sin6_addr);
		if (strncmp(to, "fe80:", 5) == 0 ||
		    strncmp(to, "ff02:", 5) == 0)
			a->in6.sin6_scope_id = if_nametoindex("tap0");
		*len = sizeof(a->in6);
	} else {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET, to, &a->in.sin_addr);
		*len = sizeof(a->in);
	}
	return socket(a->sa.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* One byte there and back. */
static int
exchange(int fd)
{
	struct pollfd	p = { .fd = fd, .events = POLLIN };
	char		b = 'x';

	if (send(fd, &b, 1, MSG_NOSIGNAL) != 1)
		return errno;
	if (poll(&p, 1, 500) != 1)
		return ETIME;
	if (recv(fd, &b, 1, 0) != 1)
		return errno == 0 ? ECONNRESET : errno;
	return 0;
}

long
lab_us(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int
lab_tcp(const char *to, int port, long *ret_us)
{
	union addr	a;
	socklen_t	len, elen = sizeof(int);
	int		e = 0, fd = sock(to, port, SOCK_STREAM, &a, &len);
	struct pollfd	p = { .fd = fd, .events = POLLOUT };
	struct linger	rst = { 1, 0 };
	long		t0 = lab_us();

	if (fd == -1)
		return errno;
	if (connect(fd, &a.sa, len) == -1) {
		e = errno;
		if (e == EINPROGRESS && poll(&p, 1, 500) == 0)
			e = ETIME;
		else if (e == EINPROGRESS)
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &elen);
	}
	if (ret_us != NULL)
		*ret_us = lab_us() - t0;
	if (e == 0)
		e = exchange(fd);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
	close(fd);
	return e;
}

int
lab_udp(const char *to, int port)
{
	union addr	a;
	socklen_t	len;
	const int	on = 1;
	int		e, fd = sock(to, port, SOCK_DGRAM, &a, &len);

	if (fd == -1)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	e = connect(fd, &a.sa, len) == -1 ? errno : exchange(fd);
	close(fd);
	return e;
}
