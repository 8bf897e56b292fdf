/*
 * ruleset_rule.c: the rules of each ruleset, as a table, and as netlink
 * messages.
 *
 * A rule is up to four matches and what becomes of what matches all.  Where
 * one family needs a rule that the other has not, it stands between those of
 * both.
 *
 * What all open rulesets rest on: what leaves by lo never leaves the
 * network namespace, so it passes first.  The reset or ICMP message with
 * which a rule refuses goes to the box's own address and so by lo; were it
 * refused in its turn, connect(2) would wait for nothing.  And TCP is refused
 * by a reset in both families, since an ICMPv6 error lets connect(2) wait
 * for a second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "netd.h"

#define LO	1
#define BOTH	0			/* families */

/* ICMPv6 types that the kernel itself sends: RFC 4861, RFC 9777. */
#define ND_ROUTER_SOLICIT	133
#define ND_NEIGHBOR_SOLICIT	135
#define ND_NEIGHBOR_ADVERT	136
#define MLD2_REPORT		143

enum kind {
	M_ALL,
	M_FROM_LO, M_BY_LO,		/* came from, leaves by */
	M_TO,				/* text: an address, n: bits of it, of
					 * whole bytes: 8, 16, ... */
	M_IN,				/* n: destination is in this rs_set */
	M_L4,				/* n: protocol */
	M_PORT,				/* n: destination; behind M_L4 */
	M_SYN,				/* opens a connection; behind TCP */
	M_OVER,				/* more than the limit of SYN_RATE */
	M_OVER_NAMES,			/* and of NAMES_RATE */
	M_ICMP6,			/* n: type */
	M_HOPS,				/* n: hop limit, IPv6 */
	M_OURS,				/* its socket is IP_TRANSPARENT, which
					 * no box may set */
};

struct match { enum kind kind; const char *text; uint32_t n; };

/*
 * COUNT: as what began, ASK: as what was asked; and go on.  TELL: count it
 * under the chain's name, log some of it, and go on.  CLOSE: as a port where
 * nobody listens.  RELAY: it is for the relay's socket, whatever address it
 * has, and passes; without such a socket go on.
 */
enum act { ACCEPT, DROP, RESET, REJECT, CLOSE, COUNT, ASK, TELL, RELAY, GOTO };

struct spec {
	uint8_t		 family;
	enum rs_chain	 chain;
	struct match	 match[4];
	enum act	 act;
	enum rs_chain	 to;		/* GOTO */
};

#define V4	NFPROTO_IPV4
#define V6	NFPROTO_IPV6
#define TCP	{ M_L4, NULL, IPPROTO_TCP }
#define UDP	{ M_L4, NULL, IPPROTO_UDP }
#define FROM_LO	{ M_FROM_LO, NULL, 0 }
#define BY_LO	{ M_BY_LO, NULL, 0 }
#define SYN	{ M_SYN, NULL, 0 }
#define OURS	{ M_OURS, NULL, 0 }
#define TO(a, n)	{ M_TO, a, n }
#define L4(n)		{ M_L4, NULL, n }
#define PORT(n)		{ M_PORT, NULL, n }
#define IS_IN(set)	{ M_IN, NULL, set }
#define ALL		{ M_ALL, NULL, 0 }

/*
 * `none', open.  What is the box's own passes: by lo, for while it becomes
 * another there is a tap as well, and a socket that is bound to it sends what
 * is for 127.0.0.1 that way; and to its addresses, for the default routes lead
 * to lo.
 */
static const struct spec none[] = {
	{ BOTH, RS_IN, { FROM_LO }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO("127.0.0.0", 8) }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO(NONE_ADDR4, 32) }, ACCEPT, 0 },
	{ V6, RS_OUT, { BY_LO, TO("::1", 128) }, ACCEPT, 0 },
	{ V6, RS_OUT, { BY_LO, TO(NONE_ADDR6, 128) }, ACCEPT, 0 },
	{ BOTH, RS_OUT, { TCP }, RESET, 0 },
	{ BOTH, RS_OUT, { ALL }, REJECT, 0 },
};

/*
 * `egress', open: all but what is sealed.  No rule looks at a connection's
 * past (connection tracking is charged to nobody), so what comes in is taken
 * unless it opens a connection.
 *
 * The kernel's own neighbour discovery passes before what it is addressed to
 * is looked at: groups, link-local addresses and the gateway are all sealed.
 * A box can send no such message: it has no raw sockets, and one for ping
 * sends echo requests alone.  Router solicitations and listener reports of
 * MLD version 2, which the kernel says by itself, are dropped and not counted:
 * nobody in the box has asked for them.  What it says of groups that a program
 * joins (IGMP; MLD version 1, to a router that speaks no other) goes to what
 * is sealed, and counts as such.
 *
 * The limit of new connections comes behind what is sealed: attempts that
 * are refused anyway do not use it up.  It counts for each family, as does
 * that of packets to name servers, any of them: a box could speak by them to
 * whoever owns a domain, and who runs the resolver hears all of it.
 *
 * Each rule that denies has a chain of its name, where it is told: a counter
 * has all of it, and the log what a limit lets through, so that the kernel
 * itself bounds what netd is to read however much a box is refused.
 */
static const struct spec egress[] = {
	{ BOTH, RS_IN, { FROM_LO }, ACCEPT, 0 },
	{ BOTH, RS_IN, { TCP, SYN }, DROP, 0 },
	{ BOTH, RS_IN, { ALL }, ACCEPT, 0 },
	{ BOTH, RS_OUT, { BY_LO }, ACCEPT, 0 },
	{ V4, RS_OUT, { TO(EGRESS_DNS4, 32), UDP, PORT(53) }, GOTO, RS_PASS },
	{ V4, RS_OUT, { TO(EGRESS_DNS4, 32), TCP, PORT(53) }, GOTO, RS_PASS },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, ND_NEIGHBOR_SOLICIT }, { M_HOPS, NULL, 255 } },
	    ACCEPT, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, ND_NEIGHBOR_ADVERT }, { M_HOPS, NULL, 255 } },
	    ACCEPT, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, ND_ROUTER_SOLICIT } }, DROP, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, MLD2_REPORT } }, DROP, 0 },
	{ V4, RS_OUT, { IS_IN(RS_SEALED4) }, GOTO, RS_SEALED },
	{ V4, RS_OUT, { IS_IN(RS_HOST4) }, GOTO, RS_HOST },
	{ V6, RS_OUT, { IS_IN(RS_SEALED6) }, GOTO, RS_SEALED },
	{ V6, RS_OUT, { IS_IN(RS_HOST6) }, GOTO, RS_HOST },
	{ BOTH, RS_OUT, { ALL }, GOTO, RS_PASS },
	{ BOTH, RS_PASS, { TCP, SYN, { M_OVER, NULL, 0 } }, GOTO,
	    RS_LIMITED },
	{ BOTH, RS_PASS, { TCP, SYN }, COUNT, 0 },
	{ BOTH, RS_PASS, { TCP }, ACCEPT, 0 },
	{ BOTH, RS_PASS, { UDP, PORT(53), { M_OVER_NAMES, NULL, 0 } }, GOTO,
	    RS_LIMITED },
	{ BOTH, RS_PASS, { UDP, PORT(53) }, ASK, 0 },
	{ BOTH, RS_PASS, { UDP }, ACCEPT, 0 },
	{ V4, RS_PASS, { L4(IPPROTO_ICMP) }, ACCEPT, 0 },
	{ V6, RS_PASS, { L4(IPPROTO_ICMPV6) }, ACCEPT, 0 },
	{ BOTH, RS_PASS, { ALL }, GOTO, RS_PROTOCOL },
	{ BOTH, RS_SEALED, { ALL }, TELL, 0 },
	{ BOTH, RS_SEALED, { ALL }, GOTO, RS_DENY },
	{ BOTH, RS_HOST, { ALL }, TELL, 0 },
	{ BOTH, RS_HOST, { ALL }, GOTO, RS_DENY },
	{ BOTH, RS_LIMITED, { ALL }, TELL, 0 },
	{ BOTH, RS_LIMITED, { ALL }, GOTO, RS_DENY },
	{ BOTH, RS_PROTOCOL, { ALL }, TELL, 0 },
	{ BOTH, RS_PROTOCOL, { ALL }, GOTO, RS_DENY },
	{ BOTH, RS_DENY, { TCP }, RESET, 0 },
	{ BOTH, RS_DENY, { ALL }, REJECT, 0 },
};

/*
 * `allowlist', open: as `none', and beside it TCP to the addresses that stand
 * for names, and the name service.  Both are sockets of proxyd's in this
 * network namespace (netns.c), so nothing leaves it by lo nor otherwise.
 *
 * The relay has one socket, to which prerouting leads what is for any of these
 * addresses and ports; whose the connection then is, it is told by its own
 * address.  What a box binds itself, there or to the port of the name service
 * while that has no socket, is not IP_TRANSPARENT, and `ours' lets nothing
 * come to it.  To speak to the relay's own address is of no use, and would be
 * a way round the limit of new connections: it is refused.
 *
 * UDP to these addresses (QUIC, for one) is refused on its way in, not out: so
 * a program sees what it would of a host that does not serve it, and turns to
 * TCP.  What the kernel says by itself in IPv6, while there still is a tap, is
 * dropped and not counted, as in `egress'.
 */
static const struct spec allow[] = {
	{ V4, RS_IN, { FROM_LO, TO(EGRESS_DNS4, 32), UDP, PORT(53) }, GOTO,
	    RS_OURS },
	{ V4, RS_IN, { FROM_LO, TO(EGRESS_DNS4, 32), TCP, PORT(53) }, GOTO,
	    RS_OURS },
	{ V4, RS_IN, { FROM_LO, TO(RELAY_NET4, 16), TCP }, GOTO, RS_OURS },
	{ V4, RS_IN, { FROM_LO, TO(RELAY_NET4, 16), UDP }, GOTO, RS_ADDRESS },
	{ BOTH, RS_IN, { FROM_LO }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO(RELAY_ADDR4, 32), TCP, PORT(RELAY_PORT) },
	    GOTO, RS_ADDRESS },
	{ V4, RS_OUT, { BY_LO, TO("127.0.0.0", 8) }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO(NONE_ADDR4, 32) }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO(RELAY_NET4, 16), TCP }, GOTO, RS_PASS },
	{ V4, RS_OUT, { BY_LO, TO(RELAY_NET4, 16), UDP }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO(EGRESS_DNS4, 32), UDP, PORT(53) }, GOTO,
	    RS_PASS },
	{ V4, RS_OUT, { BY_LO, TO(EGRESS_DNS4, 32), TCP, PORT(53) }, GOTO,
	    RS_PASS },
	{ V6, RS_OUT, { BY_LO, TO("::1", 128) }, ACCEPT, 0 },
	{ V6, RS_OUT, { BY_LO, TO(NONE_ADDR6, 128) }, ACCEPT, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, ND_NEIGHBOR_SOLICIT } }, DROP, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, ND_NEIGHBOR_ADVERT } }, DROP, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, ND_ROUTER_SOLICIT } }, DROP, 0 },
	{ V6, RS_OUT, { L4(IPPROTO_ICMPV6),
	    { M_ICMP6, NULL, MLD2_REPORT } }, DROP, 0 },
	{ BOTH, RS_OUT, { ALL }, GOTO, RS_ADDRESS },
	{ V4, RS_PRE, { FROM_LO, TO(RELAY_NET4, 16), TCP }, RELAY, 0 },
	{ V4, RS_PRE, { FROM_LO }, ACCEPT, 0 },
	{ V4, RS_PASS, { TCP, SYN, { M_OVER, NULL, 0 } }, GOTO, RS_LIMITED },
	{ V4, RS_PASS, { TCP, SYN }, COUNT, 0 },
	{ V4, RS_PASS, { TCP }, ACCEPT, 0 },
	{ V4, RS_PASS, { { M_OVER_NAMES, NULL, 0 } }, GOTO, RS_LIMITED },
	{ V4, RS_PASS, { ALL }, ASK, 0 },
	{ V4, RS_PASS, { ALL }, ACCEPT, 0 },
	{ V4, RS_OURS, { OURS }, ACCEPT, 0 },
	{ V4, RS_OURS, { TCP }, RESET, 0 },
	{ V4, RS_OURS, { ALL }, CLOSE, 0 },
	{ V4, RS_LIMITED, { ALL }, TELL, 0 },
	{ V4, RS_LIMITED, { ALL }, GOTO, RS_DENY },
	{ BOTH, RS_ADDRESS, { ALL }, TELL, 0 },
	{ BOTH, RS_ADDRESS, { ALL }, GOTO, RS_DENY },
	{ BOTH, RS_DENY, { TCP }, RESET, 0 },
	{ V4, RS_DENY, { TO(RELAY_NET4, 16), UDP }, CLOSE, 0 },
	{ BOTH, RS_DENY, { ALL }, REJECT, 0 },
};

static const struct { const struct spec *spec; size_t n; } specs[RULESET_N] = {
	[RULESET_SEALED] = { NULL, 0 },
	[RULESET_NONE] = { none, sizeof(none) / sizeof(none[0]) },
	[RULESET_EGRESS] = { egress, sizeof(egress) / sizeof(egress[0]) },
	[RULESET_ALLOW] = { allow, sizeof(allow) / sizeof(allow[0]) },
};

/*
 * Of RS_GUARD, while the other table goes and comes.  What is for a socket of
 * proxyd's is dropped as it leaves, and as it comes: it may have left before.
 */
static const struct spec guard[] = {
	{ V4, RS_IN, { FROM_LO, TO(NONE_ADDR4, 32) }, ACCEPT, 0 },
	{ V4, RS_IN, { TO(RELAY_NET4, 16) }, DROP, 0 },
	{ V4, RS_IN, { TO(RELAY_NET4B, 16) }, DROP, 0 },
	{ BOTH, RS_IN, { FROM_LO }, ACCEPT, 0 },
	{ V4, RS_OUT, { BY_LO, TO(NONE_ADDR4, 32) }, ACCEPT, 0 },
	{ V4, RS_OUT, { TO(RELAY_NET4, 16) }, DROP, 0 },
	{ V4, RS_OUT, { TO(RELAY_NET4B, 16) }, DROP, 0 },
	{ BOTH, RS_OUT, { BY_LO }, ACCEPT, 0 },
};

/* ---- expressions ----------------------------------------------------- */

static struct nftnl_expr *
expr_new(struct nftnl_rule *r, const char *name)
{
	struct nftnl_expr	*e = nftnl_expr_alloc(name);

	if (e == NULL)
		abort();	/* memory, at start; or a name of our own */
	nftnl_rule_add_expr(r, e);
	return e;
}

static void
expr_cmp(struct nftnl_rule *r, const void *data, uint32_t len)
{
	struct nftnl_expr	*e = expr_new(r, "cmp");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
}

static void
expr_meta(struct nftnl_rule *r, uint32_t key, const void *data, uint32_t len)
{
	struct nftnl_expr	*e = expr_new(r, "meta");

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
	expr_cmp(r, data, len);
}

static void
expr_payload(struct nftnl_rule *r, uint32_t base, uint32_t off, uint32_t len)
{
	struct nftnl_expr	*e = expr_new(r, "payload");

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, off);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
}

static void
expr_ours(struct nftnl_rule *r)
{
	const uint8_t		 yes = 1;
	struct nftnl_expr	*e = expr_new(r, "socket");

	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_TRANSPARENT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_DREG, NFT_REG_1);
	expr_cmp(r, &yes, sizeof(yes));
}

/* The first bytes of the destination: RFC 791 3.1, RFC 8200 3. */
static void
expr_daddr(struct nftnl_rule *r, uint8_t family, uint32_t len)
{
	expr_payload(r, NFT_PAYLOAD_NETWORK_HEADER, family == V4 ? 16 : 24,
	    len);
}

static void
expr_to(struct nftnl_rule *r, uint8_t family, const struct match *m)
{
	uint8_t	addr[16];

	if (inet_pton(family == V4 ? AF_INET : AF_INET6, m->text, addr) != 1)
		abort();		/* a text of our own */
	expr_daddr(r, family, m->n / 8);
	expr_cmp(r, addr, m->n / 8);
}

static void
expr_in(struct nftnl_rule *r, uint8_t family, const char *set)
{
	struct nftnl_expr	*e;

	expr_daddr(r, family, family == V4 ? 4 : 16);
	e = expr_new(r, "lookup");
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, 0);
}

/* Of the flags SYN and ACK, which stand in byte 13, SYN alone: RFC 9293. */
static void
expr_syn(struct nftnl_rule *r)
{
	const uint8_t		 mask = TH_SYN | TH_ACK, none_ = 0,
				 syn = TH_SYN;
	struct nftnl_expr	*e;

	expr_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	e = expr_new(r, "bitwise");
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, 1);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, &mask, 1);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, &none_, 1);
	expr_cmp(r, &syn, 1);
}

static void
expr_limit(struct nftnl_rule *r, uint64_t rate, uint32_t burst,
    uint32_t flags)
{
	struct nftnl_expr	*e = expr_new(r, "limit");

	nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_RATE, rate);
	nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_UNIT, 1);	/* a second */
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_BURST, burst);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_FLAGS, flags);
}

static void
expr_counter(struct nftnl_rule *r, const char *name)
{
	struct nftnl_expr	*e = expr_new(r, "objref");

	nftnl_expr_set_u32(e, NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
	nftnl_expr_set_str(e, NFTNL_EXPR_OBJREF_IMM_NAME, name);
}

/* Behind the counter: what is over the limit ends the rule here. */
static void
expr_log(struct nftnl_rule *r, const char *prefix)
{
	struct nftnl_expr	*e;

	expr_limit(r, EGRESS_TELL_RATE, EGRESS_TELL_BURST, 0);
	e = expr_new(r, "log");
	nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, prefix);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, EGRESS_LOG_GROUP);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, EGRESS_LOG_BYTES);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_QTHRESHOLD, 1);	/* at once */
}

static void
expr_verdict(struct nftnl_rule *r, int verdict, const char *chain)
{
	struct nftnl_expr	*e = expr_new(r, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain != NULL)
		nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain);
}

static void
expr_data(struct nftnl_rule *r, uint32_t reg, const void *data, uint32_t len)
{
	struct nftnl_expr	*e = expr_new(r, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, reg);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, data, len);
}

static void
expr_relay(struct nftnl_rule *r)
{
	const uint16_t		 port = htons(RELAY_PORT);
	uint8_t			 addr[4];
	struct nftnl_expr	*e;

	if (inet_pton(AF_INET, RELAY_ADDR4, addr) != 1)
		abort();		/* a text of our own */
	expr_data(r, NFT_REG_1, addr, sizeof(addr));
	expr_data(r, NFT_REG_2, &port, sizeof(port));
	e = expr_new(r, "tproxy");
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_ADDR, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_2);
	expr_verdict(r, NF_ACCEPT, NULL);
}

static void
expr_reject(struct nftnl_rule *r, uint32_t type, uint8_t code)
{
	struct nftnl_expr	*e = expr_new(r, "reject");

	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
	if (type != NFT_REJECT_TCP_RST)
		nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

/* ---- rules ----------------------------------------------------------- */

static void
rule_match(struct nftnl_rule *r, uint8_t family, const struct match *m)
{
	uint32_t	lo = LO;
	uint16_t	port = htons((uint16_t)m->n);
	uint8_t		byte = (uint8_t)m->n;

	switch (m->kind) {
	case M_ALL:
		return;
	case M_FROM_LO:
		expr_meta(r, NFT_META_IIF, &lo, sizeof(lo));
		return;
	case M_BY_LO:
		expr_meta(r, NFT_META_OIF, &lo, sizeof(lo));
		return;
	case M_TO:
		expr_to(r, family, m);
		return;
	case M_IN:
		expr_in(r, family, rs_set_name((enum rs_set)m->n));
		return;
	case M_L4:
		expr_meta(r, NFT_META_L4PROTO, &byte, sizeof(byte));
		return;
	case M_PORT:
		expr_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
		expr_cmp(r, &port, sizeof(port));
		return;
	case M_SYN:
		expr_syn(r);
		return;
	case M_OVER:
		expr_limit(r, EGRESS_SYN_RATE, EGRESS_SYN_BURST,
		    NFT_LIMIT_F_INV);
		return;
	case M_OVER_NAMES:
		expr_limit(r, EGRESS_NAMES_RATE, EGRESS_NAMES_BURST,
		    NFT_LIMIT_F_INV);
		return;
	case M_ICMP6:
		expr_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
		expr_cmp(r, &byte, sizeof(byte));
		return;
	case M_HOPS:
		expr_payload(r, NFT_PAYLOAD_NETWORK_HEADER, 7, 1);
		expr_cmp(r, &byte, sizeof(byte));
		return;
	case M_OURS:
		expr_ours(r);
		return;
	}
}

static void
rule_act(struct nftnl_rule *r, uint8_t family, const struct spec *s)
{
	switch (s->act) {
	case ACCEPT:
		expr_verdict(r, NF_ACCEPT, NULL);
		return;
	case DROP:
		expr_verdict(r, NF_DROP, NULL);
		return;
	case RESET:
		expr_reject(r, NFT_REJECT_TCP_RST, 0);
		return;
	case REJECT:
		expr_reject(r, NFT_REJECT_ICMP_UNREACH, family == V4 ?
		    ICMP_PKT_FILTERED : ICMPV6_ADM_PROHIBITED);
		return;
	case CLOSE:
		expr_reject(r, NFT_REJECT_ICMP_UNREACH, family == V4 ?
		    ICMP_PORT_UNREACH : ICMPV6_PORT_UNREACH);
		return;
	case COUNT:
		expr_counter(r, rs_counter_name(RS_OPENED));
		return;
	case ASK:
		expr_counter(r, rs_counter_name(RS_NAMES));
		return;
	case TELL:
		expr_counter(r, rs_chain_name(s->chain));
		expr_log(r, rs_chain_name(s->chain));
		return;
	case RELAY:
		expr_relay(r);
		return;
	case GOTO:
		expr_verdict(r, NFT_GOTO, rs_chain_name(s->to));
		return;
	}
}

static struct nftnl_rule *
rule_new(const char *table, uint8_t family, const struct spec *s)
{
	struct nftnl_rule	*r = nftnl_rule_alloc();
	size_t			 i;

	if (r == NULL)
		abort();		/* memory, at start */
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, family);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, table);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, rs_chain_name(s->chain));
	for (i = 0; i < sizeof(s->match) / sizeof(s->match[0]); i++)
		rule_match(r, family, &s->match[i]);
	rule_act(r, family, s);
	return r;
}

static void
rule_put(struct nl_batch *b, struct canon *c, const char *table,
    uint8_t family, const struct spec *s)
{
	struct nftnl_rule	*r = rule_new(table, family, s);
	struct nlmsghdr		*h;

	if (b != NULL) {
		h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWRULE, family,
		    NLM_F_CREATE | NLM_F_APPEND, 0);
		nftnl_rule_nlmsg_build_payload(h, r);
		nl_took(b, h, 1);
	}
	if (c != NULL)
		canon_rule(c, r);
	nftnl_rule_free(r);
}

static void
rules_put(struct nl_batch *b, struct canon *c, const char *table,
    const struct spec *s, size_t n)
{
	size_t	f, i;

	for (f = 0; f < RS_FAMILIES; f++)
		for (i = 0; i < n; i++)
			if (s[i].family == BOTH ||
			    s[i].family == rs_families[f])
				rule_put(b, c, table, rs_families[f], &s[i]);
}

void
rs_rules(struct nl_batch *b, struct canon *c, enum ruleset which)
{
	rules_put(b, c, RS_TABLE, specs[which].spec, specs[which].n);
}

void
rs_guard_rules(struct nl_batch *b)
{
	rules_put(b, NULL, RS_GUARD, guard, sizeof(guard) / sizeof(guard[0]));
}
