/*
 * probe_net: tries of what networks are made of, each in a network namespace
 * that ends with its child: nftables, tun devices, slirp4netns.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/table.h>

#include "host.h"
#include "xmalloc.h"

/* ---- nftables ---------------------------------------------------------- */

static int	want_family;

static void
put_table(struct mnl_nlmsg_batch *b, uint32_t seq)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nlmsghdr		*nlh;

	nftnl_table_set_str(t, NFTNL_TABLE_NAME, "doctor");
	nlh = nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(b),
	    NFT_MSG_NEWTABLE, (uint16_t)want_family, NLM_F_CREATE, seq);
	nftnl_table_nlmsg_build_payload(nlh, t);
	nftnl_table_free(t);
	mnl_nlmsg_batch_next(b);
}

static void
put_chain(struct mnl_nlmsg_batch *b, uint32_t seq)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();
	struct nlmsghdr		*nlh;

	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, "doctor");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, "out");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(ch, NFTNL_CHAIN_PRIO, 0);
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_POLICY, NF_DROP);
	nlh = nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(b),
	    NFT_MSG_NEWCHAIN, (uint16_t)want_family, NLM_F_CREATE | NLM_F_ACK,
	    seq);
	nftnl_chain_nlmsg_build_payload(nlh, ch);
	nftnl_chain_free(ch);
	mnl_nlmsg_batch_next(b);
}

/* A table with a chain in the output hook, in a netns that ends with us. */
static int
try_nftables(const struct conf *c)
{
	char			 buf[8192], in[8192];
	struct mnl_nlmsg_batch	*b;
	struct mnl_socket	*s;
	ssize_t			 n;

	(void)c;
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace");
	if ((s = mnl_socket_open(NETLINK_NETFILTER)) == NULL ||
	    mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == -1)
		return probe_step("netfilter by netlink");
	b = mnl_nlmsg_batch_start(buf, sizeof buf / 2);
	nftnl_batch_begin(mnl_nlmsg_batch_current(b), 1);
	mnl_nlmsg_batch_next(b);
	put_table(b, 2);
	put_chain(b, 3);
	nftnl_batch_end(mnl_nlmsg_batch_current(b), 4);
	mnl_nlmsg_batch_next(b);
	if (mnl_socket_sendto(s, mnl_nlmsg_batch_head(b),
	    mnl_nlmsg_batch_size(b)) == -1)
		return probe_step("nftables");
	n = mnl_socket_recvfrom(s, in, sizeof in);
	if (n == -1 || mnl_cb_run(in, (size_t)n, 0,
	    mnl_socket_get_portid(s), NULL, NULL) == -1)
		return probe_step(want_family == NFPROTO_IPV4 ?
		    "nftables, family ip" : "nftables, family ip6");
	return 0;
}

void
probe_nftables(const struct conf *c, struct finding *f)
{
	static const int	families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };
	const char		*cure = "a kernel with nf_tables (modprobe "
	    "nf_tables), or netfilter = none for sandboxes without a network";
	size_t			 i;

	for (i = 0; i < 2; i++) {
		want_family = families[i];
		if (probe_child(try_nftables, c, f, cure) == -1) {
			if (strcmp(c->netfilter, "none") == 0) {
				f->verdict = V_WARN;
				(void)str_copy(f->cure, "configured with "
				    "netfilter none: nothing but the empty "
				    "network namespace holds", sizeof f->cure);
			}
			return;
		}
	}
	finding_set(f, V_OK, "", "tables of ip and ip6 through netlink");
}

/* ---- tun, slirp4netns -------------------------------------------------- */

static int
try_tun(const struct conf *c)
{
	struct ifreq	ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	auto_close int	fd = -1;

	(void)c;
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace");
	if ((fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC)) == -1)
		return probe_step("/dev/net/tun");
	if (ioctl(fd, TUNSETIFF, &ifr) == -1)
		return probe_step("tun device");
	return 0;
}

void
probe_tun(const struct conf *c, struct finding *f)
{
	if (probe_child(try_tun, c, f, "modprobe tun (in a container: --device "
	    "/dev/net/tun); sandboxes without a network need none") == 0)
		finding_set(f, V_OK, "", "a tun device can be made");
	else
		f->verdict = V_WARN;
}

/* The one that uplinkd executes. */
static const char	slirp[] = "/usr/bin/slirp4netns";

static int
try_slirp(const struct conf *c)
{
	pid_t	pid, self = getpid();
	int	status;

	(void)c;
	if ((pid = fork()) == -1)
		return probe_step("fork");
	if (pid == 0) {
		probe_mortal(self);
		(void)dup2(STDIN_FILENO, STDOUT_FILENO);	/* null */
		(void)dup2(STDIN_FILENO, STDERR_FILENO);
		(void)execl(slirp, slirp, "--version", (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	errno = 0;
	return status == 0 ? 0 : probe_step("it does not run");
}

void
probe_slirp(const struct conf *c, struct finding *f)
{
	const char	*cure = "install the package slirp4netns; sandboxes "
			    "without a network need none";
	struct stat	 st;
	auto_close int	 fd = look_open(slirp, O_PATH);

	if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (st.st_mode & S_IXOTH) == 0)
		finding_set(f, V_WARN, cure, "there is no slirp4netns, which "
		    "the network egress needs, as %s", slirp);
	else if (look_root() != NULL || probe_child(try_slirp, c, f, cure) ==
	    0)
		finding_set(f, V_OK, "", "%s", slirp);
	else
		f->verdict = V_WARN;
}
