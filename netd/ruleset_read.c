/*
 * ruleset_read.c: what the kernel lists in a network namespace, as hashes; its
 * counters.
 *
 * Must never: leave out of the text what it cannot read.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "netd.h"

#define SETS_MAX	8	/* more than any ruleset of ours has */

struct reading {
	struct canon		*canon;		/* borrowed */
	struct nftnl_set	*sets[SETS_MAX]; /* owned */
	size_t			 nsets;
};

static int
read_table(const struct nlmsghdr *h, void *arg)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	int			 r;

	if (t == NULL)
		return -1;
	if ((r = nftnl_table_nlmsg_parse(h, t)) >= 0)
		canon_table(((struct reading *)arg)->canon, t);
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
		canon_chain(((struct reading *)arg)->canon, ch);
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
		canon_rule(((struct reading *)arg)->canon, r);
	nftnl_rule_free(r);
	return e < 0 ? -1 : 0;
}

/* Keeps it, for its elements are a list of their own. */
static int
read_set(const struct nlmsghdr *h, void *arg)
{
	struct reading		*rd = arg;
	struct nftnl_set	*s = nftnl_set_alloc();

	if (s == NULL)
		return -1;
	if (nftnl_set_nlmsg_parse(h, s) < 0) {
		nftnl_set_free(s);
		return -1;
	}
	canon_set(rd->canon, s);	/* one too many, too, is in the text */
	if (rd->nsets < SETS_MAX)
		rd->sets[rd->nsets++] = s;
	else
		nftnl_set_free(s);
	return 0;
}

static int
read_object(const struct nlmsghdr *h, void *arg)
{
	struct nftnl_obj	*o = nftnl_obj_alloc();
	int			 e;

	if (o == NULL)
		return -1;
	if ((e = nftnl_obj_nlmsg_parse(h, o)) >= 0)
		canon_object(((struct reading *)arg)->canon, o);
	nftnl_obj_free(o);
	return e < 0 ? -1 : 0;
}

static int
read_elements(const struct nlmsghdr *h, void *set)
{
	return nftnl_set_elems_nlmsg_parse(h, set) < 0 ? -1 : 0;
}

/* One set's; what its listing said of it is known. */
static int
read_set_elements(int fd, struct nftnl_set *s)
{
	char		 buf[512] __attribute__((aligned(8)));
	struct nlmsghdr	*h;

	h = nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETSETELEM,
	    (uint16_t)nftnl_set_get_u32(s, NFTNL_SET_FAMILY), 0, 0);
	nftnl_set_elems_nlmsg_build_payload(h, s);
	return nl_dump(fd, h, read_elements, s);
}

/* One pass over all families. */
static int
read_lists(int fd, struct reading *rd)
{
	static const struct {
		uint16_t	 type;
		int		(*cb)(const struct nlmsghdr *, void *);
	} lists[] = {
		{ NFT_MSG_GETTABLE, read_table },
		{ NFT_MSG_GETCHAIN, read_chain },
		{ NFT_MSG_GETRULE, read_rule },
		{ NFT_MSG_GETSET, read_set },
		{ NFT_MSG_GETOBJ, read_object },
	};
	char		 buf[MNL_NLMSG_HDRLEN + sizeof(struct nfgenmsg)]
			    __attribute__((aligned(8)));
	struct nlmsghdr	*h;
	size_t		 i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		h = nftnl_nlmsg_build_hdr(buf, lists[i].type, NFPROTO_UNSPEC,
		    0, 0);
		if (nl_dump(fd, h, lists[i].cb, rd) == -1)
			return -1;
	}
	return 0;
}

static int
read_all(int fd, struct canon *c)
{
	struct reading	rd = { .canon = c };
	size_t		i;
	int		e, r;

	r = read_lists(fd, &rd);
	for (i = 0; i < rd.nsets && r == 0; i++) {
		if ((r = read_set_elements(fd, rd.sets[i])) == 0)
			canon_elements(c, rd.sets[i]);
	}
	e = errno;
	for (i = 0; i < rd.nsets; i++)
		nftnl_set_free(rd.sets[i]);
	errno = e;
	return r;
}

int
ruleset_list(int fd, struct ruleset_seen *ret)
{
	struct ruleset_seen	seen;
	struct canon		*c;
	int			 e = 0, r = 0, tries = 0;

	/* disturbed only by ourselves: once is enough, ever is a fault */
	do {
		c = canon_new();
		r = read_all(fd, c);
		e = errno;
		canon_done(c, &seen);
	} while (r == -1 && e == EINTR && ++tries < 3);
	if (r == -1) {
		errno = e;
		return -1;
	}
	*ret = seen;
	return 0;
}

/* ---- counters -------------------------------------------------------- */

static int
read_counter(const struct nlmsghdr *h, void *arg)
{
	struct nftnl_obj	*o = nftnl_obj_alloc();
	uint64_t		*sum = arg;
	const char		*name;
	int			 i, r;

	if (o == NULL)
		return -1;
	r = nftnl_obj_nlmsg_parse(h, o);
	name = r < 0 ? NULL : nftnl_obj_get_str(o, NFTNL_OBJ_NAME);
	if (name != NULL && nftnl_obj_get_u32(o, NFTNL_OBJ_TYPE) ==
	    NFT_OBJECT_COUNTER && (i = rs_counter_find(name)) != -1)
		sum[i] += nftnl_obj_get_u64(o, NFTNL_OBJ_CTR_PKTS);
	nftnl_obj_free(o);
	return r < 0 ? -1 : 0;
}

int
ruleset_counters(int fd, uint64_t ret[RS_COUNTERS])
{
	char		 buf[MNL_NLMSG_HDRLEN + sizeof(struct nfgenmsg)]
			    __attribute__((aligned(8)));
	uint64_t	 sum[RS_COUNTERS] = { 0 };

	/* not reset: whoever asks wants all of it */
	if (nl_dump(fd, nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETOBJ,
	    NFPROTO_UNSPEC, 0, 0), read_counter, sum) == -1)
		return -1;
	memcpy(ret, sum, sizeof(sum));
	return 0;
}
