/*
 * denial_fuzz: packets that a box chose and the kernel logged, and sockets of
 * its that the kernel lists.
 *
 * input: a byte whose lowest bit is the family (1: IPv6), a byte for the
 * rule's name, the packet; or, where the first byte is 255, messages as they
 * stand in a packet of netlink; 254: the same of sockets, IPv4; 253: IPv6
 */
#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <sys/socket.h>

#include "../../netd/netd.h"
#include "fuzz.h"

static void
one_denial(const struct denial *d)
{
	size_t	i;

	must(d->len == 4 || d->len == 16);
	must(d->rule < RS_DENIED);
	for (i = d->len; i < sizeof(d->addr); i++)
		must(d->addr[i] == 0);
}

static int
is_text(int family, const void *addr, const char *text)
{
	char	buf[INET6_ADDRSTRLEN];

	must(inet_ntop(family, addr, buf, sizeof(buf)) != NULL);
	return strcmp(buf, text) == 0;
}

/* Connections within the box live on, in whatever form its address is. */
static void
one_socket(int family, const uint8_t *a)
{
	static const uint8_t	mapped[12] = { [10] = 255, [11] = 255 };

	if (family == AF_INET) {
		must(a[0] != 127);
		must(!is_text(family, a, "0.0.0.0"));
		must(!is_text(family, a, NONE_ADDR4));
	} else if (memcmp(a, mapped, sizeof(mapped)) == 0) {
		one_socket(AF_INET, a + 12);
	} else {
		must(!is_text(family, a, "::"));
		must(!is_text(family, a, "::1"));
		must(!is_text(family, a, NONE_ADDR6));
	}
}

/* Whatever it is: only what is whole is looked at.  family 0: denials. */
static void
messages(const uint8_t *data, size_t size, int family)
{
	const struct nlmsghdr	*h;
	struct inet_diag_sockid	 id;
	struct denial		 d;
	/* netd's own ends at a multiple of 4, too; malloc(3) aligns */
	uint8_t			*buf = calloc(1, (size + 4) & ~(size_t)3);
	int			 len = (int)size;

	must(buf != NULL);
	memcpy(buf, data, size);
	for (h = (const struct nlmsghdr *)(const void *)buf;
	    nl_ok(h, len); h = mnl_nlmsg_next(h, &len))
		if (family == 0 && nflog_take(h, &d))
			one_denial(&d);
		else if (family != 0 && diag_take(h, family, &id))
			one_socket(family, (const uint8_t *)id.idiag_dst);
	free(buf);
}

/* An address is taken whenever it is there, and is the packet's. */
static void
packet(struct bytes b)
{
	static char	 buf[8192] __attribute__((aligned(8)));
	struct nlmsghdr	*h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg	*g;
	struct denial	 d;
	int		 v6 = take_u8(&b) & 1, whole;
	unsigned int	 rule = take_u8(&b) % RS_DENIED;
	uint8_t		*own;

	if (b.n > 4096)
		return;
	h->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = v6 ? AF_INET6 : AF_INET;
	mnl_attr_put_strz(h, NFULA_PREFIX, denied_name(rule));
	mnl_attr_put(h, NFULA_PAYLOAD, b.n, b.p);
	own = malloc(h->nlmsg_len);
	must(own != NULL);
	memcpy(own, h, h->nlmsg_len);
	whole = b.n >= (v6 ? 40U : 20U) && b.p[0] >> 4 == (v6 ? 6 : 4);
	must(nflog_take((struct nlmsghdr *)(void *)own, &d) == whole);
	free(own);
	if (!whole)
		return;
	one_denial(&d);
	must(d.rule == rule);
	must(memcmp(d.addr, b.p + (v6 ? 24 : 16), d.len) == 0);
	must(d.port == 0 || b.n >= (v6 ? 44U : 24U));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes	b = { data, size };

	if (size != 0 && data[0] >= 253)
		messages(data + 1, size - 1, data[0] == 255 ? 0 :
		    data[0] == 254 ? AF_INET : AF_INET6);
	else
		packet(b);
	return 0;
}
