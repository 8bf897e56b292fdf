/*
 * denial_fuzz: packets that a box chose and the kernel logged.
 *
 * input: a byte whose lowest bit is the family (1: IPv6), a byte for the
 * rule's name, the packet; or, where the first byte is 255, messages as they
 * stand in a packet of netlink
 */
#include <libmnl/libmnl.h>
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
	must(d->rule < DENIED_RULES);
	for (i = d->len; i < sizeof(d->addr); i++)
		must(d->addr[i] == 0);
}

/* Whatever it is: only what is whole is looked at. */
static void
messages(const uint8_t *data, size_t size)
{
	const struct nlmsghdr	*h;
	struct denial		 d;
	/* netd's own ends at a multiple of 4, too; malloc(3) aligns */
	uint8_t			*buf = calloc(1, (size + 4) & ~(size_t)3);
	int			 len = (int)size;

	must(buf != NULL);
	memcpy(buf, data, size);
	for (h = (const struct nlmsghdr *)(const void *)buf;
	    nl_ok(h, len); h = mnl_nlmsg_next(h, &len))
		if (nflog_take(h, &d))
			one_denial(&d);
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
	unsigned int	 rule = take_u8(&b) % DENIED_RULES;
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

	if (size != 0 && data[0] == 255)
		messages(data + 1, size - 1);
	else
		packet(b);
	return 0;
}
