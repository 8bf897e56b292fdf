/*
 * ruleset.c: what may pass in a network namespace, and what the kernel says
 * of it.
 *
 * Every ruleset is one table `workbox' per family (ip, ip6; never inet,
 * which some kernels lack) with three base chains that drop what no rule
 * takes.  Sealed, a chain has no rule; open, it has those of the table
 * below.  All of it is compiled once, when netd starts: to netlink batches
 * that are sent unchanged, and to the hash that the kernel's own listing
 * must then have.
 *
 * Must never: leave a moment in which more passes than before or after a
 * change (each is one transaction); trust that a change took place without
 * reading it back.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "netd.h"

#define TABLE	"workbox"
#define LO	1

enum chain { IN, FORWARD, OUT, NCHAINS };

static const struct { const char *name; uint32_t hook; } chains[NCHAINS] = {
	[IN] = { "input", NF_INET_LOCAL_IN },
	[FORWARD] = { "forward", NF_INET_FORWARD },
	[OUT] = { "output", NF_INET_LOCAL_OUT },
};

static const uint8_t	families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };

enum match { M_ALL, M_FROM_LO, M_TO, M_TCP };
enum act { ACCEPT, RESET, REJECT };

struct spec {
	uint8_t		 family;
	enum chain	 chain;
	enum match	 match;
	const char	*to;		/* M_TO: an address */
	uint32_t	 bits;		/* its prefix, whole bytes */
	enum act	 act;
};

/*
 * `none', open.  What is the box's own passes; the answers of the last two
 * rules of a family go to the box's own address, so they pass too.  Reset is
 * what makes a connect fail at once in both families.
 */
static const struct spec none[] = {
	{ NFPROTO_IPV4, IN, M_FROM_LO, NULL, 0, ACCEPT },
	{ NFPROTO_IPV4, OUT, M_TO, "127.0.0.0", 8, ACCEPT },
	{ NFPROTO_IPV4, OUT, M_TO, NONE_ADDR4, 32, ACCEPT },
	{ NFPROTO_IPV4, OUT, M_TCP, NULL, 0, RESET },
	{ NFPROTO_IPV4, OUT, M_ALL, NULL, 0, REJECT },
	{ NFPROTO_IPV6, IN, M_FROM_LO, NULL, 0, ACCEPT },
	{ NFPROTO_IPV6, OUT, M_TO, "::1", 128, ACCEPT },
	{ NFPROTO_IPV6, OUT, M_TO, NONE_ADDR6, 128, ACCEPT },
	{ NFPROTO_IPV6, OUT, M_TCP, NULL, 0, RESET },
	{ NFPROTO_IPV6, OUT, M_ALL, NULL, 0, REJECT },
};

static const struct { const struct spec *spec; size_t n; } specs[RULESET_N] = {
	[RULESET_SEALED] = { NULL, 0 },
	[RULESET_NONE] = { none, sizeof(none) / sizeof(none[0]) },
};

struct compiled {
	struct nl_batch	 make, change;
	char		 hash[NET_HASHLEN + 1];
};

static struct compiled	rulesets[RULESET_N];
static int		rulesets_absent;

/* ---- objects ------------------------------------------------------------ */

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
expr_to(struct nftnl_rule *r, const struct spec *s)
{
	struct nftnl_expr	*e = expr_new(r, "payload");
	int			 v4 = s->family == NFPROTO_IPV4;
	uint8_t			 addr[16];

	if (inet_pton(v4 ? AF_INET : AF_INET6, s->to, addr) != 1)
		abort();		/* a text of our own */
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE,
	    NFT_PAYLOAD_NETWORK_HEADER);
	/* daddr: RFC 791 3.1, RFC 8200 3 */
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, v4 ? 16 : 24);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, s->bits / 8);
	expr_cmp(r, addr, s->bits / 8);
}

static void
rule_match(struct nftnl_rule *r, const struct spec *s)
{
	uint32_t	lo = LO;
	uint8_t		tcp = IPPROTO_TCP;

	switch (s->match) {
	case M_ALL:
		return;
	case M_FROM_LO:
		expr_meta(r, NFT_META_IIF, &lo, sizeof(lo));
		return;
	case M_TO:
		expr_to(r, s);
		return;
	case M_TCP:
		expr_meta(r, NFT_META_L4PROTO, &tcp, sizeof(tcp));
		return;
	}
}

static void
rule_act(struct nftnl_rule *r, const struct spec *s)
{
	struct nftnl_expr	*e;

	switch (s->act) {
	case ACCEPT:
		e = expr_new(r, "immediate");
		nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
		nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
		return;
	case RESET:
		e = expr_new(r, "reject");
		nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE,
		    NFT_REJECT_TCP_RST);
		return;
	case REJECT:
		e = expr_new(r, "reject");
		nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE,
		    NFT_REJECT_ICMP_UNREACH);
		nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE,
		    s->family == NFPROTO_IPV4 ? ICMP_PKT_FILTERED :
		    ICMPV6_ADM_PROHIBITED);
		return;
	}
}

static struct nftnl_rule *
rule_new(const struct spec *s)
{
	struct nftnl_rule	*r = nftnl_rule_alloc();

	if (r == NULL)
		abort();		/* memory, at start */
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, s->family);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, TABLE);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chains[s->chain].name);
	rule_match(r, s);
	rule_act(r, s);
	return r;
}

static struct nftnl_table *
table_new(uint8_t family)
{
	struct nftnl_table	*t = nftnl_table_alloc();

	if (t == NULL)
		abort();		/* memory, at start */
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, family);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, TABLE);
	return t;
}

static struct nftnl_chain *
chain_new(uint8_t family, enum chain c)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();

	if (ch == NULL)
		abort();		/* memory, at start */
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_FAMILY, family);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, TABLE);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, chains[c].name);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_HOOKNUM, chains[c].hook);
	nftnl_chain_set_s32(ch, NFTNL_CHAIN_PRIO, 0);
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_POLICY, NF_DROP);
	return ch;
}

/* ---- compiling ------------------------------------------------------------ */

static struct nlmsghdr *
msg_start(struct nl_batch *b, uint16_t type, uint16_t family, uint16_t flags)
{
	return nftnl_nlmsg_build_hdr(nl_next(b), type, family, flags, 0);
}

/* Tables and chains, into a batch and into the text of the hash. */
static void
compile_frame(struct nl_batch *b, struct canon *c, int pass)
{
	struct nftnl_table	*t;
	struct nftnl_chain	*ch;
	struct nlmsghdr		*h;
	size_t			 f;
	int			 i;

	for (f = 0; f < sizeof(families); f++) {
		if (pass == 0) {
			t = table_new(families[f]);
			h = msg_start(b, NFT_MSG_NEWTABLE, families[f],
			    NLM_F_CREATE);
			nftnl_table_nlmsg_build_payload(h, t);
			nl_took(b, h, 1);
			canon_table(c, t);
			nftnl_table_free(t);
			continue;
		}
		for (i = 0; i < NCHAINS; i++) {
			ch = chain_new(families[f], (enum chain)i);
			h = msg_start(b, NFT_MSG_NEWCHAIN, families[f],
			    NLM_F_CREATE);
			nftnl_chain_nlmsg_build_payload(h, ch);
			nl_took(b, h, 1);
			canon_chain(c, ch);
			nftnl_chain_free(ch);
		}
	}
}

static void
compile_rules(struct nl_batch *b, struct canon *c, enum ruleset which)
{
	struct nftnl_rule	*r;
	struct nlmsghdr		*h;
	size_t			 i;

	for (i = 0; i < specs[which].n; i++) {
		r = rule_new(&specs[which].spec[i]);
		h = msg_start(b, NFT_MSG_NEWRULE, specs[which].spec[i].family,
		    NLM_F_CREATE | NLM_F_APPEND);
		nftnl_rule_nlmsg_build_payload(h, r);
		nl_took(b, h, 1);
		if (c != NULL)
			canon_rule(c, r);
		nftnl_rule_free(r);
	}
}

/* All rules of one table. */
static void
compile_flush(struct nl_batch *b, uint8_t family)
{
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct nlmsghdr		*h;

	if (r == NULL)
		abort();		/* memory, at start */
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, family);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, TABLE);
	h = msg_start(b, NFT_MSG_DELRULE, family, 0);
	nftnl_rule_nlmsg_build_payload(h, r);
	nl_took(b, h, 1);
	nftnl_rule_free(r);
}

static void
compile_begin(struct nl_batch *b)
{
	nl_start(b);
	nl_took(b, nftnl_batch_begin(nl_next(b), 0), 0);
}

static void
compile_end(struct nl_batch *b)
{
	nl_took(b, nftnl_batch_end(nl_next(b), 0), 0);
}

static int
compile(enum ruleset which)
{
	struct compiled	*x = &rulesets[which];
	struct canon	*c = canon_new();
	size_t		 f;

	compile_begin(&x->make);
	/* no name and no family: every table that is there */
	nl_took(&x->make, msg_start(&x->make, NFT_MSG_DELTABLE, NFPROTO_UNSPEC,
	    0), 1);
	compile_frame(&x->make, c, 0);
	compile_frame(&x->make, c, 1);
	compile_rules(&x->make, c, which);
	compile_end(&x->make);
	canon_done(c, x->hash);

	compile_begin(&x->change);
	for (f = 0; f < sizeof(families); f++)
		compile_flush(&x->change, families[f]);
	compile_rules(&x->change, NULL, which);
	compile_end(&x->change);
	if (!x->make.full && !x->change.full)
		return 0;
	errno = EMSGSIZE;
	return -1;
}

int
ruleset_init(int absent)
{
	int	i;

	rulesets_absent = absent;
	for (i = 0; i < RULESET_N; i++) {
		if (!absent && compile((enum ruleset)i) == -1)
			return -1;
		if (absent)
			memcpy(rulesets[i].hash, "absent", sizeof("absent"));
	}
	return 0;
}

const char *
ruleset_hash(enum ruleset which)
{
	return rulesets[which].hash;
}

int
ruleset_make(int fd, enum ruleset which)
{
	return rulesets_absent ? 0 : nl_send(fd, &rulesets[which].make, NULL);
}

int
ruleset_switch(int fd, enum ruleset which)
{
	return rulesets_absent ? 0 :
	    nl_send(fd, &rulesets[which].change, NULL);
}

/* ---- reading back ------------------------------------------------------- */

static int
read_table(const struct nlmsghdr *h, void *arg)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	int			 r;

	if (t == NULL)
		return -1;
	if ((r = nftnl_table_nlmsg_parse(h, t)) >= 0)
		canon_table(arg, t);
	nftnl_table_free(t);
	return r < 0 ? -1 : 0;
}

static int
read_chain(const struct nlmsghdr *h, void *arg)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();
	int			 r;

	if (ch == NULL)
		return -1;
	if ((r = nftnl_chain_nlmsg_parse(h, ch)) >= 0)
		canon_chain(arg, ch);
	nftnl_chain_free(ch);
	return r < 0 ? -1 : 0;
}

static int
read_rule(const struct nlmsghdr *h, void *arg)
{
	struct nftnl_rule	*r = nftnl_rule_alloc();
	int			 e;

	if (r == NULL)
		return -1;
	if ((e = nftnl_rule_nlmsg_parse(h, r)) >= 0)
		canon_rule(arg, r);
	nftnl_rule_free(r);
	return e < 0 ? -1 : 0;
}

/* One pass over all families. */
static int
read_all(int fd, struct canon *c)
{
	static const struct {
		uint16_t	 type;
		int		(*cb)(const struct nlmsghdr *, void *);
	} lists[] = {
		{ NFT_MSG_GETTABLE, read_table },
		{ NFT_MSG_GETCHAIN, read_chain },
		{ NFT_MSG_GETRULE, read_rule },
	};
	char		 buf[MNL_NLMSG_HDRLEN + sizeof(struct nfgenmsg)]
			    __attribute__((aligned(8)));
	struct nlmsghdr	*h;
	size_t		 i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		h = nftnl_nlmsg_build_hdr(buf, lists[i].type, NFPROTO_UNSPEC,
		    0, 0);
		if (nl_dump(fd, h, lists[i].cb, c) == -1)
			return -1;
	}
	return 0;
}

int
ruleset_read(int fd, char ret[NET_HASHLEN + 1])
{
	struct canon	*c;
	char		 hash[NET_HASHLEN + 1] = "absent";
	int		 e = 0, r = 0, tries = 0;

	/* disturbed only by ourselves: once is enough, ever is a fault */
	while (!rulesets_absent && tries++ < 3) {
		c = canon_new();
		r = read_all(fd, c);
		e = errno;
		canon_done(c, hash);
		if (r == 0 || e != EINTR)
			break;
	}
	if (r == -1) {
		errno = e;
		return -1;
	}
	memcpy(ret, hash, sizeof(hash));
	return 0;
}
