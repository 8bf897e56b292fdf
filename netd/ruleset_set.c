/*
 * ruleset_set.c: the sets and elements of the ruleset of `egress', and the
 * counters of those that have some, as netlink messages.
 *
 * In a set of intervals each has two elements: its first address, and the
 * one behind its last, marked as an end; an interval that holds the family's
 * last address has no end.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <libnftnl/object.h>
#include <libnftnl/set.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "netd.h"

/*
 * Intervals of one message, and the bytes that one takes at most: a message
 * must fit NL_ROOM_MAX.  Each message is acknowledged, and too many of these
 * would fill the socket, so it is as large as can be.
 */
#define CHUNK		384
#define CHUNK_HEAD	128
#define CHUNK_EACH	64

/* Of nft(8), by which it shows a set's elements as addresses. */
#define TYPE_IPADDR	7
#define TYPE_IP6ADDR	8

static const struct { const char *name; uint32_t flags; } sets[RS_NSETS] = {
	[RS_SEALED4] = { "sealed4", NFT_SET_CONSTANT | NFT_SET_INTERVAL },
	[RS_HOST4] = { "host4", NFT_SET_INTERVAL },
	[RS_SEALED6] = { "sealed6", NFT_SET_CONSTANT | NFT_SET_INTERVAL },
	[RS_HOST6] = { "host6", NFT_SET_INTERVAL },
};

const char *
rs_set_name(enum rs_set which)
{
	return sets[which].name;
}

static int
is_v4(enum rs_set which)
{
	return which == RS_SEALED4 || which == RS_HOST4;
}

static struct nftnl_set *
set_new(enum rs_set which)
{
	struct nftnl_set	*s = nftnl_set_alloc();

	if (s == NULL)
		abort();		/* memory */
	nftnl_set_set_u32(s, NFTNL_SET_FAMILY,
	    is_v4(which) ? NFPROTO_IPV4 : NFPROTO_IPV6);
	nftnl_set_set_str(s, NFTNL_SET_TABLE, RS_TABLE);
	nftnl_set_set_str(s, NFTNL_SET_NAME, sets[which].name);
	nftnl_set_set_u32(s, NFTNL_SET_FLAGS, sets[which].flags);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE,
	    is_v4(which) ? TYPE_IPADDR : TYPE_IP6ADDR);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, is_v4(which) ? 4 : 16);
	nftnl_set_set_u32(s, NFTNL_SET_ID, which + 1U);
	return s;
}

void
rs_sets(struct nl_batch *b, struct canon *c)
{
	struct nftnl_set	*s;
	struct nlmsghdr		*h;
	int			 i;

	for (i = 0; i < RS_NSETS; i++) {
		s = set_new((enum rs_set)i);
		if (b != NULL) {
			h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWSET,
			    is_v4((enum rs_set)i) ? NFPROTO_IPV4 :
			    NFPROTO_IPV6, NLM_F_CREATE, 0);
			nftnl_set_nlmsg_build_payload(h, s);
			nl_took(b, h, 1);
		}
		if (c != NULL)
			canon_set(c, s);
		nftnl_set_free(s);
	}
}

static void
counter_put(struct nl_batch *b, struct canon *c, uint8_t family,
    const char *name)
{
	struct nftnl_obj	*o = nftnl_obj_alloc();
	struct nlmsghdr		*h;

	if (o == NULL)
		abort();		/* memory */
	nftnl_obj_set_u32(o, NFTNL_OBJ_FAMILY, family);
	nftnl_obj_set_str(o, NFTNL_OBJ_TABLE, RS_TABLE);
	nftnl_obj_set_str(o, NFTNL_OBJ_NAME, name);
	nftnl_obj_set_u32(o, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	if (b != NULL) {
		h = nftnl_nlmsg_build_hdr(nl_next(b), NFT_MSG_NEWOBJ, family,
		    NLM_F_CREATE, 0);
		nftnl_obj_nlmsg_build_payload(h, o);
		nl_took(b, h, 1);
	}
	if (c != NULL)
		canon_object(c, o);
	nftnl_obj_free(o);
}

const char *
rs_counter_name(unsigned int which)
{
	return which == RS_OPENED ? "opened" : which == RS_NAMES ? "names" :
	    denied_name(which);
}

int
rs_counter_find(const char *name)
{
	unsigned int	i;

	for (i = 0; i < RS_COUNTERS; i++)
		if (strcmp(name, rs_counter_name(i)) == 0)
			return (int)i;
	return -1;
}

/* Whether a ruleset has it; RS_OPENED and RS_NAMES have both. */
static int
has_counter(enum ruleset which, unsigned int counter)
{
	if (counter < RS_OPENED && counter != DENIED_LIMITED)
		return (counter == DENIED_ADDRESS) == (which == RULESET_ALLOW);
	return 1;
}

void
rs_counters(struct nl_batch *b, struct canon *c, enum ruleset which)
{
	unsigned int	i;
	size_t		f;

	for (f = 0; f < RS_FAMILIES; f++)
		for (i = 0; i < RS_COUNTERS; i++)
			if (has_counter(which, i))
				counter_put(b, c, rs_families[f],
				    rs_counter_name(i));
}

/* ---- elements -------------------------------------------------------- */

static void
elem_add(struct nftnl_set *s, const uint8_t *key, size_t len, uint32_t flags)
{
	struct nftnl_set_elem	*e = nftnl_set_elem_alloc();

	if (e == NULL ||
	    nftnl_set_elem_set(e, NFTNL_SET_ELEM_KEY, key, (uint32_t)len) ==
	    -1)
		abort();		/* memory */
	if (flags != 0)
		nftnl_set_elem_set_u32(e, NFTNL_SET_ELEM_FLAGS, flags);
	nftnl_set_elem_add(s, e);
}

static void
span_put(struct nftnl_set *s, const struct span *v, size_t len)
{
	uint8_t	end[16];

	elem_add(s, v->first, len, 0);
	memcpy(end, v->last, sizeof(end));
	if (addr_next(end, len) == 0)
		elem_add(s, end, len, NFT_SET_ELEM_INTERVAL_END);
}

/* A set with intervals from i to n of these. */
static struct nftnl_set *
set_filled(enum rs_set which, const struct spans *v, size_t i, size_t n)
{
	struct nftnl_set	*s = set_new(which);

	for (; i < n; i++)
		span_put(s, &v->v[i], v->len);
	return s;
}

static void
chunk_put(struct nl_batch *b, enum rs_set which, const struct spans *v,
    size_t i, size_t n, int add)
{
	struct nftnl_set	*s;
	struct nlmsghdr		*h;
	char			*to;

	_Static_assert(CHUNK_HEAD + CHUNK * CHUNK_EACH <= NL_ROOM_MAX,
	    "a message is too long");
	to = nl_room(b, CHUNK_HEAD + (n - i) * CHUNK_EACH);
	s = set_filled(which, v, i, n);
	h = nftnl_nlmsg_build_hdr(to, add ? NFT_MSG_NEWSETELEM :
	    NFT_MSG_DELSETELEM, is_v4(which) ? NFPROTO_IPV4 : NFPROTO_IPV6,
	    add ? NLM_F_CREATE : 0, 0);
	nftnl_set_elems_nlmsg_build_payload(h, s);
	nl_took(b, h, 1);
	nftnl_set_free(s);
}

void
rs_elements(struct nl_batch *b, enum rs_set which, const struct spans *v,
    int add)
{
	size_t	i, n;

	for (i = 0; i < v->n; i = n) {
		n = v->n - i > CHUNK ? i + CHUNK : v->n;
		chunk_put(b, which, v, i, n, add);
	}
}

void
rs_elements_text(struct canon *c, enum rs_set which, const struct spans *v)
{
	struct nftnl_set	*s = set_filled(which, v, 0, v->n);

	canon_elements(c, s);
	nftnl_set_free(s);
}
