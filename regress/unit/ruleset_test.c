/*
 * ruleset_test.c: rulesets, their canonical text and hash, the kernel's
 * listing of them, and netlink's errors.
 *
 * The kernel's part runs in a network namespace of the test's own; it is
 * left out where that cannot be made.
 */
#include <sys/socket.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <sched.h>
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
    "8024e63a36a717f57975381cc4edeb9831890b2d0e782997488a03436eb6e50b"

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

/* ---- without a kernel ------------------------------------------------------ */

START_TEST(pinned)
{
	ck_assert_str_eq(ruleset_hash(RULESET_SEALED), HASH_SEALED);
	ck_assert_str_eq(ruleset_hash(RULESET_NONE), HASH_NONE);
}
END_TEST

START_TEST(empty)
{
	char	hash[NET_HASHLEN + 1];

	/* SHA-256 of nothing */
	canon_done(canon_new(), hash);
	ck_assert_str_eq(hash, "e3b0c44298fc1c149afbf4c8996fb924"
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
	char			 hash[NET_HASHLEN + 1];

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
	canon_done(c, hash);
}
END_TEST

START_TEST(absent)
{
	char	hash[NET_HASHLEN + 1];

	ck_assert_int_eq(ruleset_init(1), 0);
	ck_assert_str_eq(ruleset_hash(RULESET_NONE), "absent");
	ck_assert_int_eq(ruleset_make(-1, RULESET_SEALED), 0);
	ck_assert_int_eq(ruleset_switch(-1, RULESET_NONE), 0);
	ck_assert_int_eq(ruleset_read(-1, hash), 0);
	ck_assert_str_eq(hash, "absent");
}
END_TEST

/* ---- what the kernel lists -------------------------------------------------- */

static void
listed(const char *want)
{
	char	hash[NET_HASHLEN + 1];

	ck_assert_int_eq(ruleset_read(nft, hash), 0);
	ck_assert_str_eq(hash, want);
}

static void
not_listed(const char *want)
{
	char	hash[NET_HASHLEN + 1];

	ck_assert_int_eq(ruleset_read(nft, hash), 0);
	ck_assert_str_ne(hash, want);
}

START_TEST(made_and_read)
{
	NEED_KERNEL;
	ck_assert_int_eq(ruleset_make(nft, RULESET_SEALED), 0);
	listed(HASH_SEALED);
	ck_assert_int_eq(ruleset_make(nft, RULESET_NONE), 0);
	listed(HASH_NONE);
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
		ck_assert_int_eq(ruleset_switch(nft, RULESET_NONE), 0);
		listed(HASH_NONE);
		ck_assert_int_eq(ruleset_switch(nft, RULESET_NONE), 0);
		listed(HASH_NONE);
		ck_assert_int_eq(ruleset_switch(nft, RULESET_SEALED), 0);
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
	ck_assert_int_eq(ruleset_switch(nft, RULESET_NONE), -1);
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

/* Whatever is changed behind our back changes the hash; make() mends it. */
START_TEST(drift)
{
	struct nl_batch	b;
	int		i;

	NEED_KERNEL;
	for (i = 0; i < 7; i++) {
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

/* ---- errors ---------------------------------------------------------------- */

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
	ck_assert_int_eq(ruleset_switch(nft, RULESET_NONE), 0);
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
	ck_assert_uint_le(b.len, sizeof(b.buf));
}
END_TEST

START_TEST(closed)
{
	char	hash[NET_HASHLEN + 1] = "untouched";

	ck_assert_int_eq(ruleset_make(-1, RULESET_SEALED), -1);
	ck_assert_int_eq(ruleset_read(-1, hash), -1);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_str_eq(hash, "untouched");
}
END_TEST

/* ---- lives and deaths of namespaces ------------------------------------------ */

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
	tcase_add_test(t, empty);
	tcase_add_test(t, text);
	tcase_add_test(t, absent);
	tcase_add_test(t, made_and_read);
	tcase_add_test(t, switched);
	tcase_add_test(t, switch_nothing);
	tcase_add_test(t, drift);
	tcase_add_test(t, errors);
	tcase_add_test(t, too_long);
	tcase_add_test(t, closed);
	tcase_add_test(t, deaths);
	tcase_add_test(t, link_twice);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
