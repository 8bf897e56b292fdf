/*
 * net.c: interfaces, routes and ports of a box, and whom it reaches.
 */
#include "attack.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
rtnl(int type, const void *body, size_t len, const void *attr, size_t alen)
{
	struct { struct nlmsghdr h; char b[256]; } q = { { 0 } };
	struct nlmsgerr	*err;
	int		 fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	ssize_t		 n;

	q.h.nlmsg_type = (uint16_t)type;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	memcpy(q.b, body, len);
	memcpy(q.b + NLMSG_ALIGN(len), attr, alen);
	q.h.nlmsg_len = NLMSG_LENGTH(NLMSG_ALIGN(len) + alen);
	if (fd == -1 || send(fd, &q, q.h.nlmsg_len, 0) == -1)
		return errno;
	n = recv(fd, mem, sizeof(mem), 0);
	close(fd);
	err = NLMSG_DATA((struct nlmsghdr *)(void *)mem);
	return n < (ssize_t)NLMSG_LENGTH(sizeof(*err)) ? 255 : -err->error;
}

static int
dial(int family, const char *host, int port, int type)
{
	struct sockaddr_in	a4 = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6	a6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	int			fd = socket(family, type, 0), r;

	if (fd == -1)
		return errno;
	inet_pton(family, host, family == AF_INET ? (void *)&a4.sin_addr :
	    (void *)&a6.sin6_addr);
	r = family == AF_INET ? connect(fd, (void *)&a4, sizeof(a4)) :
	    connect(fd, (void *)&a6, sizeof(a6));
	r = r == -1 ? errno : type == SOCK_DGRAM && (send(fd, "x", 1, 0) ==
	    -1 || send(fd, "x", 1, 0) == -1) ? errno : 0;
	close(fd);
	return r;
}

void
net_reach(int port)
{
	static const char *const hosts[] = { "127.0.0.1", "0.0.0.0", "::1",
	    "10.0.2.2", "198.19.255.2", "169.254.169.254", "10.0.0.1",
	    "192.168.0.1", "172.17.0.1", "100.64.0.1", "224.0.0.1",
	    "255.255.255.255", "1.1.1.1", "fd00::2", "fd00:ec2::254",
	    "fe80::1", "64:ff9b::a9fe:a9fe", "::ffff:127.0.0.1",
	    "::ffff:169.254.169.254", "2002:a9fe:a9fe::" };
	struct ifinfomsg	ifi = { .ifi_index = 1,
				    .ifi_change = 1 /* IFF_UP */ };
	struct rtmsg		rt = { .rtm_family = AF_INET,
				    .rtm_table = RT_TABLE_MAIN,
				    .rtm_protocol = RTPROT_BOOT,
				    .rtm_scope = RT_SCOPE_LINK,
				    .rtm_type = RTN_UNICAST };
	struct { struct rtattr a; uint32_t v; } oif = { { 8, RTA_OIF }, 1 };
	struct { struct rtattr a; char v[12]; } info = { { 16, 18 },
	    { 9, 0, 1, 0, 'd', 'u', 'm', 'm', 'y' } };
	struct sockaddr_in	any = { .sin_family = AF_INET };
	size_t			i;
	double			t = now();
	int			r, p, fd, one = 1;

	r = rtnl(RTM_NEWLINK, &ifi, sizeof(ifi), "", 0);
	check(r == EPERM,
	    "N10 ip link set lo down: %s", strerror(r));
	r = rtnl(RTM_NEWROUTE, &rt, sizeof(rt), &oif, 8);
	check(r == EPERM,
	    "N10 ip route add: %s", strerror(r));
	ifi.ifi_index = 0;
	r = rtnl(RTM_NEWLINK, &ifi, sizeof(ifi), &info, 16);
	check(r == EPERM,
	    "N10 ip link add: %s", strerror(r));
	r = c_socket(AF_NETLINK, SOCK_RAW, 12);
	check(r == EAFNOSUPPORT,
	    "N10 nft: %s", strerror(r));
	for (i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		p = strchr(hosts[i], ':') != NULL ? AF_INET6 : AF_INET;
		r = dial(p, hosts[i], port, SOCK_STREAM);
		check(r != 0,
		    "N01 TCP %s port %d: %s", hosts[i], port, strerror(r));
		r = dial(p, hosts[i], 53, SOCK_DGRAM);
		check(r != 0,
		    "N17 UDP %s port 53: %s", hosts[i], strerror(r));
	}
	t = now() - t;
	check(t < 3, "N17 all of them at once: %.1f s", t);
	for (p = 1; p < 8; p++) {
		any.sin_port = htons((uint16_t)p);
		fd = socket(AF_INET, p & 1 ? SOCK_STREAM : SOCK_DGRAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
		check(bind(fd, (void *)&any, sizeof(any)) == -1,
		    "N16 port %d is not bound: %s", p, strerror(errno));
		close(fd);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	check(setsockopt(fd, SOL_IP, 19 /* IP_TRANSPARENT */, &one,
	    sizeof(one)) == -1, "N16 IP_TRANSPARENT: %s", strerror(errno));
	check(setsockopt(fd, SOL_SOCKET, SO_MARK, &one, sizeof(one)) == -1,
	    "N16 SO_MARK: %s", strerror(errno));
	check(slurp("/proc/net/nf_conntrack") == -1,
	    "N14 no connection is tracked");
}

void
net_abstract(const char *name)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strncpy(un.sun_path + 1, name, sizeof(un.sun_path) - 2);
	r = connect(fd, (void *)&un, (socklen_t)(sizeof(sa_family_t) + 1 +
	    strlen(name)));
	check(r == -1, "B38 the host's abstract socket is not there: %s",
	    r == -1 ? strerror(errno) : "it is");
}
