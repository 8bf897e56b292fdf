/*
 * nflog_test.c: what is taken from the headers of a packet that was denied,
 * whole, cut anywhere, and made to mislead.
 */
#include <arpa/inet.h>
#include <check.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../../netd/netd.h"

#define PACKET	(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

/* Of no use here: nflog_bind() alone calls them. */
int
nl_send(int fd, const struct nl_batch *b, uint32_t *ret_seq)
{
	(void)fd;
	(void)b;
	(void)ret_seq;
	ck_abort();
}

void
nl_start(struct nl_batch *b)
{
	(void)b;
	ck_abort();
}

char *
nl_next(struct nl_batch *b)
{
	(void)b;
	ck_abort();
}

void
nl_took(struct nl_batch *b, const struct nlmsghdr *h, int ack)
{
	(void)b;
	(void)h;
	(void)ack;
	ck_abort();
}

int
nl_ok(const struct nlmsghdr *h, int len)
{
	(void)h;
	(void)len;
	ck_abort();
}

/* ---- messages -------------------------------------------------------- */

/*
 * One message with these parts in a place of exactly its size, so that a
 * sanitizer sees what is read behind it.  prefix NULL: none; len -1: no
 * packet.
 */
static int
take_as(uint16_t type, uint8_t family, const char *prefix, size_t plen,
    const void *packet, ssize_t len, struct denial *ret)
{
	static char	 buf[4096] __attribute__((aligned(8)));
	struct nlmsghdr	*h = mnl_nlmsg_put_header(buf), *own;
	struct nfgenmsg	*g;
	int		 r;

	h->nlmsg_type = type;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = family;
	if (prefix != NULL)
		mnl_attr_put(h, NFULA_PREFIX, plen, prefix);
	if (len != -1)
		mnl_attr_put(h, NFULA_PAYLOAD, (size_t)len, packet);
	own = malloc(h->nlmsg_len);
	ck_assert_ptr_ne(own, NULL);
	memcpy(own, h, h->nlmsg_len);
	memset(ret, 0xa5, sizeof(*ret));
	r = nflog_take(own, ret);
	free(own);
	return r;
}

static int
take(uint8_t family, const void *packet, size_t len, struct denial *ret)
{
	return take_as(PACKET, family, "host", 5, packet, (ssize_t)len, ret);
}

static const uint8_t	tcp4[] = {
	0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, IPPROTO_TCP, 0, 0,
	198, 19, 255, 100, 169, 254, 169, 254,
	0xc0, 1, 0x1f, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0
};

#define V6(next, len)							\
	0x60, 0, 0, 0, 0, len, next, 64,				\
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,		\
	0xfd, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1

static const uint8_t	udp6[] = { V6(IPPROTO_UDP, 8),
	0xc0, 1, 0, 53, 0, 8, 0, 0 };

static const uint8_t	to6[16] = { 0xfd, 0x12, [15] = 1 };

START_TEST(whole)
{
	struct denial	d;
	uint8_t		zero[12] = { 0 };

	ck_assert_int_eq(take(AF_INET, tcp4, sizeof(tcp4), &d), 1);
	ck_assert_uint_eq(d.len, 4);
	ck_assert_mem_eq(d.addr, "\251\376\251\376", 4);
	ck_assert_mem_eq(d.addr + 4, zero, sizeof(zero));
	ck_assert_uint_eq(d.proto, IPPROTO_TCP);
	ck_assert_uint_eq(d.port, 8080);
	ck_assert_uint_eq(d.rule, DENIED_HOST);
	ck_assert_int_eq(take(AF_INET6, udp6, sizeof(udp6), &d), 1);
	ck_assert_uint_eq(d.len, 16);
	ck_assert_mem_eq(d.addr, to6, 16);
	ck_assert_uint_eq(d.proto, IPPROTO_UDP);
	ck_assert_uint_eq(d.port, 53);
}
END_TEST

/* Cut anywhere: an address that was there whole, or nothing. */
START_TEST(cut)
{
	struct denial	d;
	size_t		n;

	for (n = 0; n <= sizeof(tcp4); n++) {
		ck_assert_int_eq(take(AF_INET, tcp4, n, &d), n >= 20);
		if (n < 20)
			continue;
		ck_assert_mem_eq(d.addr, "\251\376\251\376", 4);
		ck_assert_uint_eq(d.port, n >= 24 ? 8080 : 0);
	}
	for (n = 0; n <= sizeof(udp6); n++) {
		ck_assert_int_eq(take(AF_INET6, udp6, n, &d), n >= 40);
		if (n < 40)
			continue;
		ck_assert_mem_eq(d.addr, to6, 16);
		ck_assert_uint_eq(d.proto, IPPROTO_UDP);
		ck_assert_uint_eq(d.port, n >= 44 ? 53 : 0);
	}
}
END_TEST

START_TEST(odd4)
{
	uint8_t		p[sizeof(tcp4)];
	struct denial	d;

	memcpy(p, tcp4, sizeof(p));
	p[0] = 0x65;				/* another version */
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 0);
	p[0] = 0x44;				/* shorter than it is */
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 1);
	ck_assert_uint_eq(d.port, 0);
	p[0] = 0x4f;				/* longer than what is there */
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 1);
	ck_assert_uint_eq(d.port, 0);
	p[0] = 0x46;				/* four bytes of options */
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 1);
	ck_assert_uint_eq(d.port, 0);		/* its sequence number is 0 */
	p[26] = 1;
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 1);
	ck_assert_uint_eq(d.port, 256);
	p[0] = 0x45;
	p[7] = 1;				/* a later fragment */
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 1);
	ck_assert_uint_eq(d.proto, IPPROTO_TCP);
	ck_assert_uint_eq(d.port, 0);
	p[7] = 0;
	p[9] = IPPROTO_ICMP;			/* no ports */
	ck_assert_int_eq(take(AF_INET, p, sizeof(p), &d), 1);
	ck_assert_uint_eq(d.proto, IPPROTO_ICMP);
	ck_assert_uint_eq(d.port, 0);
}
END_TEST

/* Headers of IPv6 one behind the other: `each' is the type of all of them. */
static size_t
chain(uint8_t *p, uint8_t each, unsigned int n, uint8_t last, uint8_t units)
{
	const uint8_t	head[] = { V6(n == 0 ? last : each, 0) };
	size_t		off = sizeof(head), len;
	unsigned int	i;

	memcpy(p, head, sizeof(head));
	for (i = 0; i < n; i++, off += len) {
		len = each == IPPROTO_AH ? (units + 2U) * 4 :
		    each == IPPROTO_FRAGMENT ? 8 : (units + 1U) * 8;
		memset(p + off, 0, len);
		p[off] = i + 1 == n ? last : each;
		p[off + 1] = each == IPPROTO_FRAGMENT ? 0 : units;
	}
	memcpy(p + off, "\300\1\0\65\0\0\0\0", 8);
	return off + 8;
}

START_TEST(extensions)
{
	static const uint8_t	types[] = { IPPROTO_HOPOPTS, IPPROTO_ROUTING,
				    IPPROTO_DSTOPTS, IPPROTO_AH,
				    IPPROTO_FRAGMENT };
	uint8_t			p[4096];
	struct denial		d;
	size_t			i, len, n;

	for (i = 0; i < sizeof(types); i++)
		for (n = 0; n < 12; n++) {
			len = chain(p, types[i], (unsigned int)n, IPPROTO_UDP,
			    4);
			ck_assert_int_eq(take(AF_INET6, p, len, &d), 1);
			ck_assert_mem_eq(d.addr, to6, 16);
			/* eight are gone through, and no more */
			ck_assert_uint_eq(d.proto, n <= 8 ? IPPROTO_UDP :
			    types[i]);
			ck_assert_uint_eq(d.port, n <= 8 ? 53 : 0);
		}
	/* what is not there whole is where it ends */
	len = chain(p, IPPROTO_ROUTING, 2, IPPROTO_TCP, 20);
	for (n = 40; n < len - 4; n++) {
		ck_assert_int_eq(take(AF_INET6, p, n, &d), 1);
		ck_assert_uint_eq(d.port, 0);
		ck_assert_uint_eq(d.proto, n < len - 8 ? IPPROTO_ROUTING :
		    IPPROTO_TCP);
	}
	/* of a later fragment nothing is a header */
	len = chain(p, IPPROTO_FRAGMENT, 1, IPPROTO_UDP, 0);
	p[43] = 8;
	ck_assert_int_eq(take(AF_INET6, p, len, &d), 1);
	ck_assert_uint_eq(d.proto, IPPROTO_FRAGMENT);
	ck_assert_uint_eq(d.port, 0);
	/* nor is what has a next header that no one knows */
	len = chain(p, IPPROTO_DSTOPTS, 1, 253, 0);
	ck_assert_int_eq(take(AF_INET6, p, len, &d), 1);
	ck_assert_uint_eq(d.proto, 253);
	ck_assert_uint_eq(d.port, 0);
}
END_TEST

/* What is none of it, and leaves nothing behind. */
START_TEST(none)
{
	static const char *const	names[] = { "", "hos", "hosts",
					    "HOST", "input" };
	struct denial			d, was;
	size_t				i, n;

	memset(&was, 0xa5, sizeof(was));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_eq(take_as(PACKET, AF_INET, names[i],
		    strlen(names[i]) + 1, tcp4, sizeof(tcp4), &d), 0);
	/* a prefix without an end, or of no length */
	for (n = 0; n < 5; n++)
		ck_assert_int_eq(take_as(PACKET, AF_INET, "host", n, tcp4,
		    sizeof(tcp4), &d), 0);
	ck_assert_int_eq(take_as(PACKET, AF_INET, "host\0x", 6, tcp4,
	    sizeof(tcp4), &d), 0);
	ck_assert_int_eq(take_as(PACKET, AF_INET, NULL, 0, tcp4,
	    sizeof(tcp4), &d), 0);
	ck_assert_int_eq(take_as(PACKET, AF_INET, "host", 5, NULL, -1, &d), 0);
	ck_assert_int_eq(take_as(PACKET + 1, AF_INET, "host", 5, tcp4,
	    sizeof(tcp4), &d), 0);
	ck_assert_int_eq(take(AF_INET6, tcp4, sizeof(tcp4), &d), 0);
	ck_assert_int_eq(take(AF_INET, udp6, sizeof(udp6), &d), 0);
	ck_assert_mem_eq(&d, &was, sizeof(d));
}
END_TEST

START_TEST(rules)
{
	struct denial	d;
	unsigned int	i;
	const char	*name;

	for (i = 0; i < RS_DENIED; i++) {
		name = denied_name(i);
		ck_assert_int_eq(take_as(PACKET, AF_INET, name,
		    strlen(name) + 1, tcp4, sizeof(tcp4), &d), 1);
		ck_assert_uint_eq(d.rule, i);
		/* the ruleset's chains have these names, too */
		ck_assert_int_eq(denied_find(name, strlen(name)), (int)i);
	}
	ck_assert_str_eq(denied_name(DENIED_RULES), "unknown");
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("nflog");
	TCase	*t = tcase_create("nflog");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, whole);
	tcase_add_test(t, cut);
	tcase_add_test(t, odd4);
	tcase_add_test(t, extensions);
	tcase_add_test(t, none);
	tcase_add_test(t, rules);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
