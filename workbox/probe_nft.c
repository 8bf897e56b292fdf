/*
 * probe_nft: tries of what rulesets are made of, each in a network namespace
 * that ends with its child: tables and chains, the log of what is denied, the
 * way of an allowlist's connections to their relay.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>

#include "host.h"
#include "nl.h"
#include "xmalloc.h"

#define NAME		"doctor"	/* of the table and of its chain */
#define GROUP		1		/* of NFLOG */

static const char	netlink[] = "netfilter by netlink";

/*
 * A socket in a network namespace of our own; -1: told.  Like netd's it is a
 * user namespace's: on the host nobody needs CAP_NET_ADMIN.
 */
static int
rules_open(void)
{
	int	fd;

	if (unshare(CLONE_NEWUSER) == -1)
		return probe_step("user namespace");
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace");
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	return fd == -1 ? probe_step(netlink) : fd;
}

static void
put_table(struct nl_batch *b, int family)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nlmsghdr		*h;

	nftnl_table_set_str(t, NFTNL_TABLE_NAME, NAME);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWTABLE,
	    (uint16_t)family, NLM_F_CREATE, 0);
	nftnl_table_nlmsg_build_payload(h, t);
	nftnl_table_free(t);
	nl_took(b, h, 1);
}

static void
put_chain(struct nl_batch *b, int family, uint32_t hook)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();
	struct nlmsghdr		*h;

	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, NAME);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, NAME);
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_HOOKNUM, hook);
	nftnl_chain_set_s32(ch, NFTNL_CHAIN_PRIO, 0);
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_POLICY, NF_DROP);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWCHAIN,
	    (uint16_t)family, NLM_F_CREATE, 0);
	nftnl_chain_nlmsg_build_payload(h, ch);
	nftnl_chain_free(ch);
	nl_took(b, h, 1);
}

/* A table with a chain at the hook: the second and third message. */
static void
rules_begin(struct nl_batch *b, int family, uint32_t hook)
{
	nl_start(b);
	nl_took(b, nftnl_batch_begin(nl_next(b), 0), 0);
	put_table(b, family);
	put_chain(b, family, hook);
}

/* names: of the messages; what the kernel refuses first is told. */
static int
rules_send(int fd, struct nl_batch *b, const char *const *names)
{
	uint32_t	seq = 0;

	nl_took(b, nftnl_batch_end(nl_next(b), 0), 0);
	if (nl_send(fd, b, &seq) == 0)
		return 0;
	return probe_step(seq == 0 || seq >= b->seq ? netlink :
	    names[seq - 1]);
}

/* Adds an expression to a rule that is being built. */
static struct nftnl_expr *
expr(struct nftnl_rule *r, const char *name)
{
	struct nftnl_expr	*e = nftnl_expr_alloc(name);

	if (e == NULL)
		abort();		/* memory; libnftnl knows the names */
	nftnl_rule_add_expr(r, e);
	return e;
}

static void
put_rule(struct nl_batch *b, int family, void (*fill)(struct nftnl_rule *))
{
	struct nftnl_rule	*r = nftnl_rule_alloc();
	struct nlmsghdr		*h;

	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, (uint32_t)family);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, NAME);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, NAME);
	fill(r);
	h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWRULE,
	    (uint16_t)family, NLM_F_CREATE | NLM_F_APPEND, 0);
	nftnl_rule_nlmsg_build_payload(h, r);
	nftnl_rule_free(r);
	nl_took(b, h, 1);
}

/* ---- tables and chains ------------------------------------------------- */

static int
try_nftables(const struct conf *c)
{
	static const char *const	names[][3] = {
		{ netlink, "nftables, family ip", "nftables, family ip" },
		{ netlink, "nftables, family ip6", "nftables, family ip6" },
	};
	struct nl_batch			b;
	auto_close int			fd = rules_open();

	(void)c;
	if (fd == -1)
		return -1;
	rules_begin(&b, NFPROTO_IPV4, NF_INET_LOCAL_OUT);
	if (rules_send(fd, &b, names[0]) == -1)
		return -1;
	rules_begin(&b, NFPROTO_IPV6, NF_INET_LOCAL_OUT);
	return rules_send(fd, &b, names[1]);
}

void
probe_nftables(const struct conf *c, struct finding *f)
{
	if (probe_child(try_nftables, c, f, "a kernel with nf_tables "
	    "(modprobe nf_tables), or netfilter = none for sandboxes without "
	    "a network") == 0)
		finding_set(f, V_OK, "", "tables of ip and ip6 through "
		    "netlink");
	else if (strcmp(c->netfilter, "none") == 0) {
		f->verdict = V_WARN;
		(void)str_copy(f->cure, "configured with netfilter none: "
		    "nothing but the empty network namespace holds",
		    sizeof f->cure);
	}
}

/* ---- the log of what is denied ----------------------------------------- */

static void
fill_log(struct nftnl_rule *r)
{
	struct nftnl_expr	*e = expr(r, "log");

	nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, NAME);
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, GROUP);
}

static void
put_bind(struct nl_batch *b)
{
	struct nfulnl_msg_config_cmd	 cmd = { NFULNL_CFG_CMD_BIND };
	struct nlmsghdr			*h;
	struct nfgenmsg			*g;

	nl_start(b);
	h = mnl_nlmsg_put_header(nl_next(b));
	h->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	h->nlmsg_flags = NLM_F_REQUEST;
	g = mnl_nlmsg_put_extra_header(h, sizeof *g);
	g->nfgen_family = AF_UNSPEC;
	g->version = NFNETLINK_V0;
	g->res_id = htons(GROUP);
	mnl_attr_put(h, NFULA_CFG_CMD, sizeof cmd, &cmd);
	nl_took(b, h, 1);
}

static int
try_denials(const struct conf *c)
{
	static const char *const	names[] = { netlink, "nftables",
					    "nftables", "rule with log" };
	struct nl_batch			b;
	auto_close int			fd = rules_open();

	(void)c;
	if (fd == -1)
		return -1;
	rules_begin(&b, NFPROTO_IPV4, NF_INET_LOCAL_OUT);
	put_rule(&b, NFPROTO_IPV4, fill_log);
	if (rules_send(fd, &b, names) == -1)
		return -1;
	put_bind(&b);
	return nl_send(fd, &b, NULL) == 0 ? 0 : probe_step("NFLOG");
}

void
probe_denials(const struct conf *c, struct finding *f)
{
	probe_some(try_denials, c, f, "a kernel with nft_log and "
	    "nfnetlink_log (modprobe nfnetlink_log); sandboxes without a "
	    "network need neither", "denied packets are told (NFLOG)");
}

/* ---- the way to the relay ---------------------------------------------- */

static void
fill_socket(struct nftnl_rule *r)
{
	struct nftnl_expr	*e = expr(r, "socket");

	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_TRANSPARENT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_DREG, NFT_REG_1);
}

static void
fill_tproxy(struct nftnl_rule *r)
{
	const uint16_t		 port = htons(1);
	const uint8_t		 proto = IPPROTO_TCP;
	struct nftnl_expr	*e;

	e = expr(r, "meta");
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_L4PROTO);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
	e = expr(r, "cmp");
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, &proto, sizeof proto);
	e = expr(r, "immediate");
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &port, sizeof port);
	e = expr(r, "tproxy");
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
}

static int
try_relay(const struct conf *c)
{
	static const char *const	names[] = { netlink, "nftables",
					    "nftables", "rule with socket",
					    "rule with tproxy" };
	struct nl_batch			b;
	auto_close int			fd = rules_open();

	(void)c;
	if (fd == -1)
		return -1;
	rules_begin(&b, NFPROTO_IPV4, NF_INET_PRE_ROUTING);
	put_rule(&b, NFPROTO_IPV4, fill_socket);
	put_rule(&b, NFPROTO_IPV4, fill_tproxy);
	return rules_send(fd, &b, names);
}

void
probe_relay(const struct conf *c, struct finding *f)
{
	probe_some(try_relay, c, f, "a kernel with nft_socket and "
	    "nft_tproxy (modprobe nft_socket nft_tproxy), which the network "
	    "allowlist needs; others need neither", "connections can be led "
	    "to a relay (socket, tproxy)");
}
