/*
 * ruleset_test.c: rulesets, their canonical text and hash, the kernel's
 * listing of them, and netlink's errors.
 *
 * The kernel's part runs in a network namespace of the test's own; it is
 * left out where that cannot be made, and the program then ends with 77.
 */
#include <sys/wait.h>
#include <sys/socket.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../netd/netd.h"
#include "xmalloc.h"

/*
 * These stand in the records of proofs: when a ruleset is changed on
 * purpose, they change with it, and only then.
 */
#define HASH_SEALED \
    "bd17a2ccb029cd7ae8c0e8b43c679f8e8056156c46796a3873b4ec431a7c2a46"
#define HASH_NONE \
    "15773251759d1127ff1fed9c87ff50ca2267936ac97f8f39b53cfefa0085cb2c"
/* No address is in it, neither of the host nor of the configuration. */
#define HASH_EGRESS \
    "89e2c7148832c6bf2ecccf2aadf7317b940c6309ba89229fead77a0c3ffa334d"

#define HASH_ALLOW \
    "3e0e03c8e292ea3ab912d372f15e1e165d025b0a95e9322e6f1dceb6b15d405e"

static int	nft = -1;

static void
in_own_netns(void)
{
	static int	kernel = -1;

	if (kernel == -1) {
		kernel = unshare(CLONE_NEWNET) == 0 ||
		    unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
		ck_assert_int_eq(ruleset_init(0), 0);
	}
	if (!kernel)
		return;
	nft = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	ck_assert_int_ne(nft, -1);
}

static void
leave(void)
{
	fd_close(&nft);
}

#define NEED_KERNEL	do { if (nft == -1) return; } while (0)

/* ---- without a kernel ------------------------------------------------ */

START_TEST(pinned)
{
	ck_assert_str_eq(ruleset_hash(RULESET_SEALED), HASH_SEALED);
	ck_assert_str_eq(ruleset_hash(RULESET_NONE), HASH_NONE);
	ck_assert_str_eq(ruleset_hash(RULESET_ALLOW), HASH_ALLOW);
}
END_TEST

static const struct spans	nothing4 = { NULL, 4, 0, 0 },
				nothing6 = { NULL, 16, 0, 0 };

/* Adds this prefix to what the host has, NULL: nothing. */
static void
one_host(const char *text)
{
	struct spans		v4, v6;
	struct prefix		p;

	spans_init(&v4, 4);
	spans_init(&v6, 16);
	if (text != NULL) {
		ck_assert_int_eq(prefix_parse(text, &p), 0);
		spans_add(p.len == 4 ? &v4 : &v6, &p);
	}
	ck_assert_int_eq(ruleset_hosts(&v4, &v6), 1);
	spans_free(&v4);
	spans_free(&v6);
}

static void
hosts(const char *text)
{
	struct wire_list	none = { NULL, 0 };

	ck_assert_int_eq(sealed_init(&none, &none), 0);
	one_host(text);
}

/* Addresses are none of the hash, but of what is whole. */
START_TEST(pinned_egress)
{
	struct wire_bin		word = wire_cstr("203.0.113.0/24");
	struct wire_list	deny = { &word, 1 }, none = { NULL, 0 };
	struct ruleset_seen	seen;

	hosts(NULL);
	ck_assert_str_eq(ruleset_hash(RULESET_EGRESS), HASH_EGRESS);
	hosts("203.0.113.0/24");
	ck_assert_str_eq(ruleset_hash(RULESET_EGRESS), HASH_EGRESS);
	NEED_KERNEL;
	ck_assert_int_eq(ruleset_make(nft, RULESET_EGRESS), 0);
	ck_assert_int_eq(ruleset_read(nft, &seen), 0);
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	hosts("203.0.113.7");
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 0);
	/* one lies within the other, and the kernel takes them in one batch */
	ck_assert_int_eq(ruleset_update(nft), 0);
	ck_assert_int_eq(ruleset_read(nft, &seen), 0);
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	hosts("0.0.0.0/0");
	ck_assert_int_eq(ruleset_update(nft), 0);
	ck_assert_int_eq(ruleset_read(nft, &seen), 0);
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	ck_assert_str_eq(seen.hash, HASH_EGRESS);
	/* to what the sets do not hold it cannot be updated; nor in part */
	hosts("203.0.113.7");
	hosts("203.0.113.8");
	ck_assert_int_eq(ruleset_update(nft), -1);
	ck_assert_int_eq(errno, ENOENT);
	hosts("0.0.0.0/0");
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	/* another configuration, as of a netd that starts again */
	ck_assert_int_eq(sealed_init(&deny, &none), 0);
	ruleset_hosts_lost();
	ck_assert_int_eq(ruleset_hosts(&nothing4, &nothing6), 1);
	ck_assert_str_eq(ruleset_hash(RULESET_EGRESS), HASH_EGRESS);
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 0);
	ck_assert_int_eq(ruleset_make(nft, RULESET_EGRESS), 0);
	ck_assert_int_eq(ruleset_read(nft, &seen), 0);
	ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	ck_assert_str_eq(seen.hash, HASH_EGRESS);
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
}
END_TEST

#define WORDS	64		/* deny and except: conf.def */

/* As many intervals as the configuration can make of what is sealed. */
static void
most_words(void)
{
	static char		text[2 * WORDS][32];
	static struct wire_bin	v[2 * WORDS];
	struct wire_list	deny = { v, WORDS },
				except = { v + WORDS, WORDS };
	size_t			i;

	for (i = 0; i < 2 * WORDS; i++) {
		snprintf(text[i], sizeof(text[i]), i < WORDS ?
		    "192.0.2.%zu" : "10.0.0.%zu", i * 2 % 256);
		v[i] = wire_cstr(text[i]);
	}
	ck_assert_int_eq(sealed_init(&deny, &except), 0);
	ck_assert_uint_gt(sealed.v4.n, 2 * WORDS);
	ck_assert_uint_gt(sealed.v6.n, 4 * WORDS);
}

/* All that the host may have fits a batch, and what is more does not pass
 * for less. */
START_TEST(most_hosts)
{
	struct ruleset_seen	seen;
	struct spans		v4, v6;
	struct prefix		p, forms[PREFIX_FORMS];
	int			i, n;

	most_words();
	for (n = HOST_MAX; n <= 2 * HOST_MAX; n += HOST_MAX) {
		spans_init(&v4, 4);
		spans_init(&v6, 16);
		for (i = 0; i < n; i++) {
			p = (struct prefix){ { 203, 0, (uint8_t)(i >> 7),
			    (uint8_t)(i << 1) }, 4, 32 };
			spans_add(&v4, &p);
			prefix_forms(&p, forms);
			spans_add(&v6, &forms[0]);
			spans_add(&v6, &forms[1]);
		}
		spans_nest(&v4);
		spans_nest(&v6);
		errno = 0;
		ck_assert_int_eq(ruleset_hosts(&v4, &v6),
		    n == HOST_MAX ? 1 : -1);
		spans_free(&v4);
		spans_free(&v6);
		if (nft == -1)
			continue;
		ck_assert_int_eq(ruleset_make(nft, RULESET_EGRESS),
		    n == HOST_MAX ? 0 : -1);
		if (n != HOST_MAX) {
			ck_assert_int_eq(errno, ENODATA);
			continue;
		}
		ck_assert_int_eq(ruleset_read(nft, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
		/* and all of it goes, and another comes, in one batch */
		one_host("203.0.113.7");
		ck_assert_int_eq(ruleset_update(nft), 0);
		ck_assert_int_eq(ruleset_read(nft, &seen), 0);
		ck_assert_int_eq(ruleset_is(&seen, RULESET_EGRESS), 1);
	}
}
END_TEST

START_TEST(empty)
{
	struct ruleset_seen	seen;

	/* SHA-256 of nothing */
	canon_done(canon_new(), &seen);
	ck_assert_str_eq(seen.elements, seen.hash);
	ck_assert_str_eq(seen.hash, "e3b0c44298fc1c149afbf4c8996fb924"
	    "27ae41e4649b934ca495991b7852b855");
}
END_TEST

static struct nftnl_expr *
expr(struct nftnl_rule *r, const char *name)
{
	struct nftnl_expr	*e = nftnl_expr_alloc(name);

	ck_assert_ptr_ne(e, NULL);
	nftnl_rule_add_expr(r, e);
	return e;
}

START_TEST(text)
{
	struct canon		*c = canon_new();
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct nftnl_expr	*e;
	struct ruleset_seen	 seen;

	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_IPV4);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, "t");
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, "c");
	/* what varies from listing to listing is not in the text */
	nftnl_rule_set_u64(r, NFTNL_RULE_HANDLE, 77);
	e = expr(r, "cmp");
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_NEQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, "\x7f\x00\xff", 3);
	e = expr(r, "immediate");
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)NFT_JUMP);
	nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, "other");
	(void)expr(r, "counter");
	canon_rule(c, r);
	ck_assert_str_eq(canon_text(c),
	    "rule 2 t c\n"
	    "expr cmp sreg=1 op=1 data=7f00ff\n"
	    "expr immediate dreg=0 verdict=4294967293 chain=other\n"
	    "expr counter unknown\n");
	nftnl_rule_free(r);
	canon_done(c, &seen);
}
END_TEST

/* A line that is too long is not left out. */
START_TEST(text_cut)
{
	struct canon		*c = canon_new();
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct ruleset_seen	 seen;
	char			 name[600];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_IPV4);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, name);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, "c");
	canon_rule(c, r);
	ck_assert_str_eq(canon_text(c), " cut\n");
	nftnl_rule_free(r);
	canon_done(c, &seen);
}
END_TEST

START_TEST(absent)
{
	struct ruleset_seen	seen;

	ck_assert_int_eq(ruleset_init(1), 0);
	ck_assert_str_eq(ruleset_hash(RULESET_NONE), "absent");
	ck_assert_int_eq(ruleset_make(-1, RULESET_SEALED), 0);
	ck_assert_int_eq(ruleset_switch(-1, RULESET_SEALED,
	    RULESET_NONE), 0);
	ck_assert_int_eq(ruleset_make(-1, RULESET_EGRESS), 0);
	ck_assert_int_eq(ruleset_read(-1, &seen), 0);
	ck_assert_str_eq(seen.hash, "absent");
	ck_assert_int_eq(ruleset_is(&seen, RULESET_NONE), 1);
}
END_TEST

/* ---- what the kernel lists ------------------------------------------- */

static void
listed(const char *want)
{
	struct ruleset_seen	seen;

	ck_assert_int_eq(ruleset_read(nft, &seen), 0);
	ck_assert_str_eq(seen.hash, want);
}

static void
not_listed(const char *want)
{
	struct ruleset_seen	seen;

	ck_assert_int_eq(ruleset_read(nft, &seen), 0);
	ck_assert_str_ne(seen.hash, want);
}

START_TEST(made_and_read)
{
	NEED_KERNEL;
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	listed(HASH_SEALED);
	ck_assert_int_eq(ruleset_make(nft, RULESET_NONE), 0);
	listed(HASH_NONE);
	ck_assert_int_eq(ruleset_make(nft, RULESET_ALLOW), 0);
	listed(HASH_ALLOW);
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	listed(HASH_SEALED);
}
END_TEST

START_TEST(switched)
{
	int	i;

	NEED_KERNEL;
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(ruleset_switch(nft, RULESET_SEALED,
		    RULESET_NONE), 0);
		listed(HASH_NONE);
		ck_assert_int_eq(ruleset_switch(nft, RULESET_SEALED,
		    RULESET_NONE), 0);
		listed(HASH_NONE);
		ck_assert_int_eq(ruleset_switch(nft, RULESET_NONE,
		    RULESET_SEALED), 0);
		listed(HASH_SEALED);
	}
}
END_TEST

/* What one has and the other has not comes and goes, whichever way. */
START_TEST(switched_to_more)
{
	int	i;

	NEED_KERNEL;
	hosts(NULL);
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(ruleset_switch(nft, RULESET_SEALED,
		    RULESET_ALLOW), 0);
		listed(HASH_ALLOW);
		ck_assert_int_eq(ruleset_renew(nft, RULESET_EGRESS), 0);
		listed(HASH_EGRESS);
		ck_assert_int_eq(ruleset_renew(nft, RULESET_ALLOW), 0);
		listed(HASH_ALLOW);
		ck_assert_int_eq(ruleset_renew(nft, RULESET_NONE), 0);
		listed(HASH_NONE);
		ck_assert_int_eq(ruleset_renew(nft, RULESET_ALLOW), 0);
		listed(HASH_ALLOW);
		ck_assert_int_eq(ruleset_switch(nft, RULESET_ALLOW,
		    RULESET_SEALED), 0);
		listed(HASH_SEALED);
	}
}
END_TEST

/* Without tables there is nothing to switch; and nothing is half done. */
START_TEST(switch_nothing)
{
	NEED_KERNEL;
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	leave();
	nft = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	ck_assert_int_eq(ruleset_switch(nft, RULESET_SEALED,
		    RULESET_NONE), -1);
	ck_assert_int_eq(errno, ENOENT);
	listed("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b"
	    "855");
}
END_TEST

static void
batch_begin(struct nl_batch *b)
{
	nl_start(b);
	nl_took(b, nftnl_batch_begin(nl_next(b), 0), 0);
}

static int
batch_send(struct nl_batch *b, uint32_t *seq)
{
	nl_took(b, nftnl_batch_end(nl_next(b), 0), 0);
	return nl_send(nft, b, seq);
}

static void
put_table(struct nl_batch *b, uint16_t family, const char *name,
    uint32_t flags)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nlmsghdr		*h;

	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, family);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, name);
	if (flags != 0)
		nftnl_table_set_u32(t, NFTNL_TABLE_FLAGS, flags);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWTABLE, family,
	    NLM_F_CREATE, 0);
	nftnl_table_nlmsg_build_payload(h, t);
	nl_took(b, h, 1);
	nftnl_table_free(t);
}

static void
put_policy(struct nl_batch *b, const char *chain, uint32_t policy)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();
	struct nlmsghdr		*h;

	nftnl_chain_set_u32(ch, NFTNL_CHAIN_FAMILY, NFPROTO_IPV6);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, "workbox");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, chain);
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_POLICY, policy);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWCHAIN, NFPROTO_IPV6,
	    NLM_F_CREATE, 0);
	nftnl_chain_nlmsg_build_payload(h, ch);
	nl_took(b, h, 1);
	nftnl_chain_free(ch);
}

static void
put_rule(struct nl_batch *b, uint16_t flags, const char *name)
{
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct nftnl_expr	*e;
	struct nlmsghdr		*h;

	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_IPV4);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, "workbox");
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, "output");
	e = expr(r, name);
	if (strcmp(name, "immediate") == 0) {
		nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
		nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
	}
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWRULE, NFPROTO_IPV4,
	    NLM_F_CREATE | flags, 0);
	nftnl_rule_nlmsg_build_payload(h, r);
	nl_took(b, h, 1);
	nftnl_rule_free(r);
}

static void
put_set(struct nl_batch *b)
{
	struct nftnl_set	*s = nftnl_set_alloc();
	struct nlmsghdr		*h;

	nftnl_set_set_u32(s, NFTNL_SET_FAMILY, NFPROTO_IPV6);
	nftnl_set_set_str(s, NFTNL_SET_TABLE, "workbox");
	nftnl_set_set_str(s, NFTNL_SET_NAME, "more");
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, 2);
	nftnl_set_set_u32(s, NFTNL_SET_ID, 1);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWSET, NFPROTO_IPV6,
	    NLM_F_CREATE, 0);
	nftnl_set_nlmsg_build_payload(h, s);
	nl_took(b, h, 1);
	nftnl_set_free(s);
}

/* Whatever is changed behind our back changes the hash; make() mends it. */
START_TEST(drift)
{
	struct nl_batch	b;
	int		i;

	NEED_KERNEL;
	for (i = 0; i < 9; i++) {
		ck_assert_int_eq(ruleset_make(nft, RULESET_NONE), 0);
		listed(HASH_NONE);
		batch_begin(&b);
		switch (i) {
		case 0:
			put_table(&b, NFPROTO_IPV4, "more", 0);
			break;
		case 1:		/* another family, with nothing in it */
			put_table(&b, NFPROTO_ARP, "workbox", 0);
			break;
		case 2:
			put_table(&b, NFPROTO_IPV4, "workbox",
			    NFT_TABLE_F_DORMANT);
			break;
		case 3:
			put_policy(&b, "output", NF_ACCEPT);
			break;
		case 4:
			put_rule(&b, NLM_F_APPEND, "immediate");
			break;
		case 5:
			put_rule(&b, 0, "immediate");
			break;
		case 6:		/* only counts, but is not ours */
			put_rule(&b, 0, "counter");
			break;
		case 7:
			put_set(&b);
			break;
		case 8:
			rs_counters(&b, NULL, RULESET_EGRESS);
			break;
		}
		if (batch_send(&b, NULL) == -1) {
			/* a kernel may lack the arp family */
			ck_assert_int_eq(i, 1);
			continue;
		}
		not_listed(HASH_NONE);
	}
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	listed(HASH_SEALED);
}
END_TEST

/* ---- errors ---------------------------------------------------------- */

START_TEST(errors)
{
	struct nl_batch	b;
	uint32_t	seq = 0;

	NEED_KERNEL;
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	batch_begin(&b);
	put_table(&b, NFPROTO_IPV4, "more", 0);
	put_rule(&b, NLM_F_APPEND, "reject");	/* without its attributes */
	put_table(&b, NFPROTO_IPV4, "still", 0);
	ck_assert_int_eq(batch_send(&b, &seq), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(seq, 3);
	/* a transaction: none of it took place */
	listed(HASH_SEALED);
	/* and the answers that were not wanted do not disturb the next */
	ck_assert_int_eq(ruleset_switch(nft, RULESET_SEALED,
		    RULESET_NONE), 0);
	listed(HASH_NONE);
}
END_TEST

START_TEST(too_long)
{
	struct nl_batch	b;
	int		i;

	batch_begin(&b);
	for (i = 0; i < 1000; i++)
		put_table(&b, NFPROTO_IPV4, "more", 0);
	ck_assert_int_eq(nl_send(nft, &b, NULL), -1);
	ck_assert_int_eq(errno, EMSGSIZE);
	ck_assert_uint_le(b.len, sizeof(b.own));
}
END_TEST

/* Written beyond its room: nothing is as it was. */
START_TEST(too_large)
{
	struct nl_batch	b;
	struct nlmsghdr	*h;

	batch_begin(&b);
	h = nftnl_batch_begin(nl_next(&b), 0);
	h->nlmsg_len = NL_ROOM;
	nl_took(&b, h, 0);
	h = nftnl_batch_begin(nl_next(&b), 0);
	h->nlmsg_len = NL_ROOM + 4;
	nl_took(&b, h, 0);
}
END_TEST

START_TEST(closed)
{
	struct ruleset_seen	seen = { "untouched", "" };

	ck_assert_int_eq(ruleset_make(-1, RULESET_SEALED), -1);
	ck_assert_int_eq(ruleset_read(-1, &seen), -1);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_str_eq(seen.hash, "untouched");
}
END_TEST

/* ---- lives and deaths of namespaces ---------------------------------- */

static uint8_t		known[16];
static unsigned int	died;

static void
on_alive(unsigned int k)
{
	ck_assert_uint_lt(k, sizeof(known));
	known[k]++;
}

static void
on_dead(unsigned int k)
{
	ck_assert_uint_eq(died, 0);
	died = k;
}

static int
netns(void)
{
	int	fd, home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
	return fd;
}

START_TEST(deaths)
{
	fd_set	set;
	int	a, b, route, watch;

	NEED_KERNEL;
	ck_assert_int_ne(watch = link_watch(), -1);
	route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	a = netns();
	b = netns();
	ck_assert_int_eq(link_name(route, 7, a), 0);
	ck_assert_int_eq(link_name(route, 8, b), 0);
	ck_assert_int_eq(link_name(route, 9, b), -1);
	ck_assert_int_eq(errno, EEXIST);
	ck_assert_int_eq(link_alive(route, on_alive), 0);
	ck_assert(known[7] == 1 && known[8] == 1 && known[9] == 0);
	ck_assert_int_eq(link_deaths(watch, on_dead), 0);
	ck_assert_uint_eq(died, 0);
	close(a);
	FD_ZERO(&set);
	FD_SET(watch, &set);
	ck_assert_int_eq(select(watch + 1, &set, NULL, NULL, NULL), 1);
	ck_assert_int_eq(link_deaths(watch, on_dead), 0);
	ck_assert_uint_eq(died, 7);
	memset(known, 0, sizeof(known));
	ck_assert_int_eq(link_alive(route, on_alive), 0);
	ck_assert(known[7] == 0 && known[8] == 1);
	close(b);
	close(route);
	close(watch);
}
END_TEST

START_TEST(link_twice)
{
	int	i, route, up;

	NEED_KERNEL;
	/* a fresh one: the tests before may have raised lo */
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ck_assert_int_eq(link_alone(route, &up), 1);
	ck_assert_int_eq(up, 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(link_set(route, 1), 0);
		ck_assert_int_eq(link_alone(route, &up), 1);
		ck_assert_int_eq(up, 1);
		ck_assert_int_eq(link_routes(route), 0);
		ck_assert_int_eq(link_routes(route), 0);
	}
	ck_assert_int_eq(link_set(route, 0), 0);
	ck_assert_int_eq(link_alone(route, &up), 1);
	ck_assert_int_eq(up, 0);
	close(route);
}
END_TEST

static int
has_kernel(void)
{
	pid_t	pid = fork();
	int	st = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) == 0 ||
		    unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1);
	return pid != -1 && waitpid(pid, &st, 0) == pid && st == 0;
}

int
main(void)
{
	Suite	*s = suite_create("ruleset");
	TCase	*t = tcase_create("ruleset");
	SRunner	*r;
	int	 failed;

	tcase_add_checked_fixture(t, in_own_netns, leave);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, pinned);
	tcase_add_test(t, pinned_egress);
	tcase_add_test(t, most_hosts);
	tcase_add_test(t, empty);
	tcase_add_test(t, text);
	tcase_add_test(t, text_cut);
	tcase_add_test(t, absent);
	tcase_add_test(t, made_and_read);
	tcase_add_test(t, switched);
	tcase_add_test(t, switched_to_more);
	tcase_add_test(t, switch_nothing);
	tcase_add_test(t, drift);
	tcase_add_test(t, errors);
	tcase_add_test(t, too_long);
	tcase_add_test_raise_signal(t, too_large, SIGABRT);
	tcase_add_test(t, closed);
	tcase_add_test(t, deaths);
	tcase_add_test(t, link_twice);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	if (failed == 0 && !has_kernel()) {
		printf("needs a network namespace for the kernel's part\n");
		return 77;
	}
	return failed == 0 ? 0 : 1;
}
