/*
 * ruleset.c: what may pass in a network namespace.
 *
 *	ruleset.c	tables and chains; batches; the host's addresses
 *	ruleset_rule.c	rules
 *	ruleset_set.c	sets, elements, counters
 *	ruleset_read.c	what the kernel lists
 *	canon.c		its text, and the hashes
 *
 * Every ruleset is one table `workbox' per family (ip, ip6; never inet,
 * which some kernels lack) with three base chains that drop what no rule
 * takes.  Sealed, a chain has no rule; open, it has those of its ruleset.
 * `egress' has more chains, sets and counters; `allowlist' has more chains,
 * one of which is a base chain, and counters.  All of it is compiled
 * once, when netd starts: to netlink batches that are sent unchanged, and to
 * the hash that the kernel's own listing must then have.
 *
 * The host's addresses are in two sets of `egress' that change while boxes
 * run.  A change is one batch for all networks that were whole before:
 * ruleset_update().  What is an address of the host before and after is not
 * touched by it, so there is no moment in which it could be reached.  One
 * prefix that swallows others, or leaves them, is the exception: the sets
 * hold no address twice, so what lay there goes in the same transaction in
 * which the other comes; the kernel makes both seen at once.
 *
 * The proof.  A box's proof names the hash of its ruleset, and its health is
 * that the kernel still has what the proof named.  If that hash held the
 * addresses in the sets, each box would differ from its proof as soon as the
 * host gets another one, or when netd starts again with another `deny' or
 * `except', as it must; and boxes of two hosts could not be compared.  So
 * there are two: `hash' is of all but the elements of sets, and the same for
 * all boxes of a kind and state; `elements' is of these, and is computed anew
 * at each change.  A network is whole when the kernel's listing has both, so
 * that no address may be missing from any set.
 *
 * A transaction in which a base chain goes and one of its hook comes lets some
 * packets through that neither takes (seen on Linux 6.18: some 30 in 90 such,
 * beside 50,000 a second that are denied; none where chains stay and rules
 * change).  So where somebody may send, a second table, `guard', drops what
 * does not stay within the network namespace from before until after it; and
 * of that what is for the relay or the name service of `allowlist', for while
 * its chains come and go nothing would tell their sockets from the box's.
 *
 * Must never: leave a moment in which more passes than before or after a
 * change; trust that a change took place without
 * reading it back.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>
#include <stdlib.h>
#include <string.h>

#include "netd.h"

/* Of rulesets. */
#define EVERY	((1U << RULESET_N) - 1)
#define EGRESS	(1U << RULESET_EGRESS)
#define ALLOW	(1U << RULESET_ALLOW)

/* in: the rulesets that have it, in each family. */
static const struct {
	const char	*name;
	int		 hook, priority;
	unsigned int	 in[RS_FAMILIES];
} chains[RS_NCHAINS] = {
	[RS_IN] = { "input", NF_INET_LOCAL_IN, 0, { EVERY, EVERY } },
	[RS_FORWARD] = { "forward", NF_INET_FORWARD, 0, { EVERY, EVERY } },
	[RS_OUT] = { "output", NF_INET_LOCAL_OUT, 0, { EVERY, EVERY } },
	[RS_PRE] = { "prerouting", NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE,
	    { ALLOW, 0 } },
	[RS_PASS] = { "pass", -1, 0, { EGRESS | ALLOW, EGRESS } },
	[RS_OURS] = { "ours", -1, 0, { ALLOW, 0 } },
	/* these five: denied.h */
	[RS_SEALED] = { "sealed", -1, 0, { EGRESS, EGRESS } },
	[RS_HOST] = { "host", -1, 0, { EGRESS, EGRESS } },
	[RS_LIMITED] = { "limited", -1, 0, { EGRESS | ALLOW, EGRESS } },
	[RS_PROTOCOL] = { "protocol", -1, 0, { EGRESS, EGRESS } },
	[RS_ADDRESS] = { "address", -1, 0, { ALLOW, ALLOW } },
	[RS_DENY] = { "deny", -1, 0, { EGRESS | ALLOW, EGRESS | ALLOW } },
};

const uint8_t	rs_families[RS_FAMILIES] = { NFPROTO_IPV4, NFPROTO_IPV6 };

/* Whether its tables have more than chains in which rules come and go. */
static int
has_more(enum ruleset which)
{
	return which == RULESET_EGRESS || which == RULESET_ALLOW;
}

/*
 * Enough for HOST_MAX addresses of IPv4, each with its forms in IPv6; and
 * still less than a netlink socket sends at once (net.core.wmem_default is
 * 212,992).  A host with less than that default has room for fewer.
 */
#define BATCH_HOST	(208 * 1024)

static struct {
	struct nl_batch		make[RULESET_N], change[RULESET_N], update;
	struct nl_batch		alone, guard, unguard;
	struct ruleset_seen	want[RULESET_N];
	struct spans		host4, host6;	/* in make[RULESET_EGRESS] */
	int			known;		/* whether they are */
	int			absent;
} rs;

static uint8_t	make_allow[4 * NL_BATCH] __attribute__((aligned(8)));
static uint8_t	make_host[BATCH_HOST] __attribute__((aligned(8)));
static uint8_t	update_host[BATCH_HOST] __attribute__((aligned(8)));

const char *
rs_chain_name(enum rs_chain c)
{
	return chains[c].name;
}

/* ---- tables and chains ----------------------------------------------- */

static void
table_msg(struct nl_batch *b, struct canon *c, const char *name,
    uint8_t family, uint16_t type)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nlmsghdr		*h;

	if (t == NULL)
		abort();		/* memory */
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, family);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, name);
	if (b != NULL) {
		h = nftnl_nlmsg_build_hdr(nl_next(b), type, family,
		    type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0, 0);
		nftnl_table_nlmsg_build_payload(h, t);
		nl_took(b, h, 1);
	}
	if (c != NULL)
		canon_table(c, t);
	nftnl_table_free(t);
}

static void
table_put(struct nl_batch *b, struct canon *c, uint8_t family)
{
	table_msg(b, c, RS_TABLE, family, NFT_MSG_NEWTABLE);
}

static struct nftnl_chain *
chain_new(const char *table, uint8_t family, enum rs_chain c)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();

	if (ch == NULL)
		abort();		/* memory */
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_FAMILY, family);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, table);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, chains[c].name);
	if (chains[c].hook == -1)
		return ch;
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_HOOKNUM,
	    (uint32_t)chains[c].hook);
	nftnl_chain_set_s32(ch, NFTNL_CHAIN_PRIO, chains[c].priority);
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_POLICY, NF_DROP);
	return ch;
}

static void
chain_put(struct nl_batch *b, struct canon *c, const char *table,
    uint8_t family, enum rs_chain which)
{
	struct nftnl_chain	*ch = chain_new(table, family, which);
	struct nlmsghdr		*h;

	if (b != NULL) {
		h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWCHAIN,
		    family, NLM_F_CREATE, 0);
		nftnl_chain_nlmsg_build_payload(h, ch);
		nl_took(b, h, 1);
	}
	if (c != NULL)
		canon_chain(c, ch);
	nftnl_chain_free(ch);
}

/* Those of a ruleset, of both families. */
static void
chains_put(struct nl_batch *b, struct canon *c, const char *table,
    enum ruleset which)
{
	size_t	f;
	int	i;

	for (f = 0; f < RS_FAMILIES; f++)
		for (i = 0; i < RS_NCHAINS; i++)
			if (chains[i].in[f] & 1U << which)
				chain_put(b, c, table, rs_families[f],
				    (enum rs_chain)i);
}

/* ---- compiling ------------------------------------------------------- */

/* The objects of a ruleset in the order in which the kernel lists them. */
static void
compile_text(enum ruleset which)
{
	struct canon	*c = canon_new();
	size_t		 f;

	for (f = 0; f < RS_FAMILIES; f++)
		table_put(NULL, c, rs_families[f]);
	chains_put(NULL, c, RS_TABLE, which);
	rs_rules(NULL, c, which);
	if (which == RULESET_EGRESS)
		rs_sets(NULL, c);
	if (has_more(which))
		rs_counters(NULL, c, which);
	if (which == RULESET_EGRESS) {
		rs_elements_text(c, RS_SEALED4, &sealed.v4);
		rs_elements_text(c, RS_HOST4, &rs.host4);
		rs_elements_text(c, RS_SEALED6, &sealed.v6);
		rs_elements_text(c, RS_HOST6, &rs.host6);
	}
	canon_done(c, &rs.want[which]);
}

static void
batch_begin(struct nl_batch *b)
{
	nl_took(b, nftnl_batch_begin(nl_next(b), 0), 0);
}

static int
batch_end(struct nl_batch *b)
{
	nl_took(b, nftnl_batch_end(nl_next(b), 0), 0);
	errno = EMSGSIZE;
	return b->full ? -1 : 0;
}

/* The table is there, or it comes to go: ENOENT would end the batch. */
static void
table_gone(struct nl_batch *b, const char *name, uint8_t family)
{
	table_msg(b, NULL, name, family, NFT_MSG_NEWTABLE);
	table_msg(b, NULL, name, family, NFT_MSG_DELTABLE);
}

/*
 * What stays within the network namespace passes, and nothing else.  alone:
 * every table that is there goes, whose ever it is.
 */
static int
compile_guard(struct nl_batch *b, int alone)
{
	size_t	f;

	nl_start(b);
	batch_begin(b);
	if (alone)		/* no name and no family */
		nl_took(b, nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_DELTABLE,
		    NFPROTO_UNSPEC, 0, 0), 1);
	for (f = 0; f < RS_FAMILIES; f++)
		table_msg(b, NULL, RS_GUARD, rs_families[f],
		    NFT_MSG_NEWTABLE);
	chains_put(b, NULL, RS_GUARD, RULESET_SEALED);
	rs_guard_rules(b);
	return batch_end(b);
}

static int
compile_unguard(struct nl_batch *b)
{
	size_t	f;

	nl_start(b);
	batch_begin(b);
	for (f = 0; f < RS_FAMILIES; f++)
		table_gone(b, RS_GUARD, rs_families[f]);
	return batch_end(b);
}

/* What rules refer to stands before them. */
static int
compile_make(struct nl_batch *b, enum ruleset which)
{
	size_t	f;

	batch_begin(b);
	for (f = 0; f < RS_FAMILIES; f++) {
		table_gone(b, RS_TABLE, rs_families[f]);
		table_put(b, NULL, rs_families[f]);
	}
	if (has_more(which))
		rs_counters(b, NULL, which);
	if (which == RULESET_EGRESS) {
		rs_sets(b, NULL);
		rs_elements(b, RS_SEALED4, &sealed.v4, 1);
		rs_elements(b, RS_HOST4, &rs.host4, 1);
		rs_elements(b, RS_SEALED6, &sealed.v6, 1);
		rs_elements(b, RS_HOST6, &rs.host6, 1);
	}
	chains_put(b, NULL, RS_TABLE, which);
	rs_rules(b, NULL, which);
	return batch_end(b);
}

/* All rules of one table. */
static void
flush_put(struct nl_batch *b, uint8_t family)
{
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct nlmsghdr		*h;

	if (r == NULL)
		abort();		/* memory, at start */
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, family);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, RS_TABLE);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_DELRULE, family, 0, 0);
	nftnl_rule_nlmsg_build_payload(h, r);
	nl_took(b, h, 1);
	nftnl_rule_free(r);
}

static int
compile_change(struct nl_batch *b, enum ruleset which)
{
	size_t	f;

	nl_start(b);
	batch_begin(b);
	for (f = 0; f < RS_FAMILIES; f++)
		flush_put(b, rs_families[f]);
	rs_rules(b, NULL, which);
	return batch_end(b);
}

static int
compile(enum ruleset which)
{
	compile_text(which);
	if (which == RULESET_EGRESS)	/* but its hash: none is in it */
		return 0;		/* with the host's addresses */
	if (which == RULESET_ALLOW)
		nl_start_in(&rs.make[which], make_allow, sizeof(make_allow));
	else
		nl_start(&rs.make[which]);
	if (compile_make(&rs.make[which], which) == -1)
		return -1;
	return has_more(which) ? 0 : compile_change(&rs.change[which], which);
}

int
ruleset_init(int absent)
{
	int	i;

	memset(&rs, 0, sizeof(rs));
	rs.absent = absent;
	spans_init(&rs.host4, 4);
	spans_init(&rs.host6, 16);
	if (!absent && (compile_guard(&rs.alone, 1) == -1 ||
	    compile_guard(&rs.guard, 0) == -1 ||
	    compile_unguard(&rs.unguard) == -1))
		return -1;
	for (i = 0; i < RULESET_N; i++) {
		if (!absent && compile((enum ruleset)i) == -1)
			return -1;
		if (absent)
			memcpy(rs.want[i].hash, "absent", sizeof("absent"));
	}
	return 0;
}

/* ---- the host's addresses -------------------------------------------- */

/* From what the sets hold to what they shall; 1: there is a difference. */
static int
compile_update(const struct spans *v4, const struct spans *v6)
{
	struct spans	gone4, gone6, come4, come6;
	struct nl_batch	*b = &rs.update;
	size_t		n;

	spans_init(&gone4, 4);
	spans_init(&come4, 4);
	spans_init(&gone6, 16);
	spans_init(&come6, 16);
	spans_less(&rs.host4, v4, &gone4);
	spans_less(v4, &rs.host4, &come4);
	spans_less(&rs.host6, v6, &gone6);
	spans_less(v6, &rs.host6, &come6);
	n = gone4.n + come4.n + gone6.n + come6.n;
	nl_start_in(b, update_host, sizeof(update_host));
	batch_begin(b);
	/* gone first: what comes may overlap it, and one batch is one moment */
	rs_elements(b, RS_HOST4, &gone4, 0);
	rs_elements(b, RS_HOST6, &gone6, 0);
	rs_elements(b, RS_HOST4, &come4, 1);
	rs_elements(b, RS_HOST6, &come6, 1);
	spans_free(&gone4);
	spans_free(&come4);
	spans_free(&gone6);
	spans_free(&come6);
	/* too much to tell in one: each is made anew then */
	(void)batch_end(b);
	return n != 0;
}

int
ruleset_hosts(const struct spans *v4, const struct spans *v6)
{
	struct nl_batch	*b = &rs.make[RULESET_EGRESS];

	if (!compile_update(v4, v6) && rs.known)
		return 0;
	spans_copy(&rs.host4, v4);
	spans_copy(&rs.host6, v6);
	nl_start_in(b, make_host, sizeof(make_host));
	rs.known = compile_make(b, RULESET_EGRESS) == 0;
	if (!rs.known)
		return -1;
	compile_text(RULESET_EGRESS);
	return 1;
}

void
ruleset_hosts_lost(void)
{
	rs.known = 0;
}

/* ---- using them ------------------------------------------------------ */

const char *
ruleset_hash(enum ruleset which)
{
	return rs.want[which].hash;
}

static int
is_known(enum ruleset which)
{
	errno = ENODATA;
	return which != RULESET_EGRESS || rs.known;
}

/* Behind what guards, which stays where this fails: the next takes it away. */
static int
guarded(int fd, const struct nl_batch *before, enum ruleset which)
{
	if (rs.absent)
		return 0;
	if (!is_known(which) || nl_send(fd, before, NULL) == -1 ||
	    nl_send(fd, &rs.make[which], NULL) == -1)
		return -1;
	return nl_send(fd, &rs.unguard, NULL);
}

int
ruleset_make(int fd, enum ruleset which)
{
	return guarded(fd, &rs.alone, which);
}

int
ruleset_renew(int fd, enum ruleset which)
{
	return guarded(fd, &rs.guard, which);
}

int
ruleset_switch(int fd, enum ruleset from, enum ruleset to)
{
	if (rs.absent)
		return 0;
	/* tables of the one have what those of the other have not */
	if (has_more(from) || has_more(to))
		return is_known(to) ? nl_send(fd, &rs.make[to], NULL) : -1;
	return nl_send(fd, &rs.change[to], NULL);
}

int
ruleset_update(int fd)
{
	return rs.absent ? 0 : nl_send(fd, &rs.update, NULL);
}

int
ruleset_read(int fd, struct ruleset_seen *ret)
{
	if (!rs.absent)
		return ruleset_list(fd, ret);
	*ret = rs.want[RULESET_SEALED];
	return 0;
}

int
ruleset_counted(int fd, uint64_t ret[RS_COUNTERS])
{
	if (!rs.absent)
		return ruleset_counters(fd, ret);
	memset(ret, 0, RS_COUNTERS * sizeof(*ret));
	return 0;
}

int
ruleset_is(const struct ruleset_seen *seen, enum ruleset which)
{
	const struct ruleset_seen	*want = &rs.want[which];

	return is_known(which) && strcmp(seen->hash, want->hash) == 0 &&
	    strcmp(seen->elements, want->elements) == 0;
}
