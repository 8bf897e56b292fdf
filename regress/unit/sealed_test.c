/*
 * sealed_test.c: prefixes, intervals, and what is sealed: each range with
 * its first and last address and their neighbours.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../netd/netd.h"

/* ---- prefixes -------------------------------------------------------- */

static struct prefix
prefix(const char *text)
{
	struct prefix	p;

	ck_assert_msg(prefix_parse(text, &p) == 0, "%s", text);
	return p;
}

START_TEST(prefix_good)
{
	static const struct { const char *text; unsigned int len, bits; } t[] = {
		{ "0.0.0.0/0", 4, 0 }, { "10.0.0.0/8", 4, 8 },
		{ "10.0.0.1", 4, 32 }, { "10.0.0.1/32", 4, 32 },
		{ "255.255.255.254/31", 4, 31 }, { "::/0", 16, 0 },
		{ "::1", 16, 128 }, { "2001:db8::/32", 16, 32 },
		{ "::ffff:10.0.0.0/104", 16, 104 },
	};
	struct prefix	p;
	size_t		i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		p = prefix(t[i].text);
		ck_assert_uint_eq(p.len, t[i].len);
		ck_assert_uint_eq(p.bits, t[i].bits);
	}
	p = prefix("192.0.2.128/25");
	ck_assert_mem_eq(p.addr, "\xc0\0\2\x80\0\0\0\0\0\0\0\0\0\0\0", 16);
}
END_TEST

START_TEST(prefix_bad)
{
	static const struct { const char *text; int e; } t[] = {
		{ "", EINVAL }, { "/", EINVAL }, { "/8", EINVAL },
		{ "10.0.0.0/", EINVAL }, { "10.0.0.0/33", EINVAL },
		{ "10.0.0.0/08", EINVAL }, { "10.0.0.0/+8", EINVAL },
		{ "10.0.0.0/ 8", EINVAL }, { "10.0.0.0/8 ", EINVAL },
		{ "10.0.0.0/8/8", EINVAL }, { "10.0.0.0/4294967304", EINVAL },
		{ "10.0.0/8", EINVAL }, { "10.0.0.256", EINVAL },
		{ "::/129", EINVAL }, { "fe80::1%lo", EINVAL },
		{ "localhost", EINVAL }, { "[::1]", EINVAL },
		{ "10.0.0.1/8", EDOM }, { "10.0.0.1/31", EDOM },
		{ "128.0.0.0/0", EDOM }, { "::1/127", EDOM },
		{ "2001:db8::/28", EDOM },
	};
	struct prefix	p = { { 7 }, 7, 7 };
	size_t		i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		errno = 0;
		ck_assert_msg(prefix_parse(t[i].text, &p) == -1, "%s",
		    t[i].text);
		ck_assert_msg(errno == t[i].e, "%s: %s", t[i].text,
		    strerror(errno));
		ck_assert_uint_eq(p.bits, 7);
	}
}
END_TEST

START_TEST(prefix_never_opens)
{
	static const struct { const char *text, *never; } t[] = {
		{ "127.0.0.1", "127.0.0.0/8" }, { "0.0.0.0/0", "0.0.0.0/8" },
		{ "126.0.0.0/7", "127.0.0.0/8" },
		{ "198.19.255.0/24", "198.18.0.0/15" },
		{ "198.0.0.0/8", "198.18.0.0/15" }, { "::1", "::/96" },
		{ "fd00::2", "fd00::/64" }, { "fc00::/7", "fd00::/64" },
		{ "fe80::/64", "fe80::/10" },
		/* the forms of loopback */
		{ "64:ff9b::7f00:1", "127.0.0.0/8" },
		{ "2002:7f00:1::/48", "127.0.0.0/8" },
		{ "2002::/16", "0.0.0.0/8" },
		{ "126.0.0.0/8", NULL }, { "128.0.0.0/8", NULL },
		{ "10.0.0.0/8", NULL }, { "169.254.169.254", NULL },
		{ "fd00:0:0:1::/64", NULL }, { "fec0::/10", NULL },
		{ "64:ff9b:1::/48", NULL }, { "2001:2::/48", NULL },
		{ "240.0.0.0/4", "240.0.0.0/4" },
		{ "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/96" },
		{ "2002:7e00::/24", NULL }, { "64:ff9b::a00:0/104", NULL },
	};
	struct prefix	p;
	const char	*s;
	size_t		i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		p = prefix(t[i].text);
		s = prefix_never(&p);
		ck_assert_msg((s == NULL) == (t[i].never == NULL) &&
		    (s == NULL || strcmp(s, t[i].never) == 0), "%s: %s",
		    t[i].text, s == NULL ? "opens" : s);
	}
}
END_TEST

START_TEST(prefix_is_mapped)
{
	static const struct { const char *text; int mapped; } t[] = {
		{ "::ffff:10.0.0.1", 1 }, { "::ffff:0.0.0.0/96", 1 },
		{ "::ffff:203.0.113.0/120", 1 }, { "::/0", 0 },
		{ "::fffe:0:0/95", 0 }, { "::10.0.0.1", 0 },
		{ "::ffff:0:10.0.0.1", 0 }, { "10.0.0.1", 0 },
		{ "0.0.0.0/0", 0 },
	};
	struct prefix	p;
	size_t		i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		p = prefix(t[i].text);
		ck_assert_msg(prefix_mapped(&p) == t[i].mapped, "%s",
		    t[i].text);
	}
}
END_TEST

/* ---- intervals ------------------------------------------------------- */

static void
same(const struct spans *s, const char *const *want, size_t n)
{
	char	a[64], b[64], ab[129];
	size_t	i;
	int	f = s->len == 4 ? AF_INET : AF_INET6;

	ck_assert_uint_eq(s->n, n);
	for (i = 0; i < n; i++) {
		inet_ntop(f, s->v[i].first, a, sizeof(a));
		inet_ntop(f, s->v[i].last, b, sizeof(b));
		(void)snprintf(ab, sizeof(ab), "%s-%s", a, b);
		ck_assert_str_eq(ab, want[i]);
	}
}
#define SAME(s, ...) do {						\
	static const char *const	w[] = { __VA_ARGS__ };		\
	same(s, w, sizeof(w) / sizeof(w[0]));				\
} while (0)

static void
fill(struct spans *s, const char *const *t, size_t n)
{
	struct prefix	p;
	size_t		i;

	for (i = 0; i < n; i++) {
		p = prefix(t[i]);
		spans_add(s, &p);
	}
}
#define FILL(s, ...) do {						\
	static const char *const	f[] = { __VA_ARGS__ };		\
	fill(s, f, sizeof(f) / sizeof(f[0]));				\
} while (0)

static void
cut(struct spans *s, const char *text)
{
	struct prefix	p = prefix(text);

	spans_cut(s, &p);
}

START_TEST(merged)
{
	struct spans	s;

	spans_init(&s, 4);
	spans_merge(&s);
	ck_assert_uint_eq(s.n, 0);
	FILL(&s, "10.0.1.0/24", "255.255.255.255", "10.0.0.0/24",
	    "10.0.0.7", "0.0.0.0", "10.0.3.0/24", "255.255.255.254");
	spans_merge(&s);
	SAME(&s, "0.0.0.0-0.0.0.0", "10.0.0.0-10.0.1.255",
	    "10.0.3.0-10.0.3.255", "255.255.255.254-255.255.255.255");
	FILL(&s, "0.0.0.0/0");
	spans_merge(&s);
	SAME(&s, "0.0.0.0-255.255.255.255");
	spans_free(&s);
	spans_init(&s, 16);
	FILL(&s, "ff00::/8", "fe00::/8", "::");
	spans_merge(&s);
	SAME(&s, "::-::", "fe00::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	spans_free(&s);
}
END_TEST

START_TEST(nested)
{
	struct spans	s;

	spans_init(&s, 4);
	FILL(&s, "10.0.0.2", "10.0.0.1", "10.0.0.1", "10.1.0.0/16",
	    "10.1.2.0/24", "10.1.255.255", "10.2.0.0");
	spans_nest(&s);
	SAME(&s, "10.0.0.1-10.0.0.1", "10.0.0.2-10.0.0.2",
	    "10.1.0.0-10.1.255.255", "10.2.0.0-10.2.0.0");
	spans_free(&s);
}
END_TEST

START_TEST(taken_out)
{
	struct spans	s;

	spans_init(&s, 4);
	FILL(&s, "10.0.0.0/8", "12.0.0.0/8");
	spans_merge(&s);
	cut(&s, "11.0.0.0/8");
	SAME(&s, "10.0.0.0-10.255.255.255", "12.0.0.0-12.255.255.255");
	cut(&s, "10.0.0.0/24");
	cut(&s, "10.255.255.255");
	cut(&s, "10.9.0.0/16");
	SAME(&s, "10.0.1.0-10.8.255.255", "10.10.0.0-10.255.255.254",
	    "12.0.0.0-12.255.255.255");
	cut(&s, "12.0.0.0/6");
	SAME(&s, "10.0.1.0-10.8.255.255", "10.10.0.0-10.255.255.254");
	cut(&s, "0.0.0.0/0");
	ck_assert_uint_eq(s.n, 0);
	spans_free(&s);
}
END_TEST

START_TEST(difference)
{
	struct spans	a, b, d;

	spans_init(&a, 4);
	spans_init(&b, 4);
	spans_init(&d, 4);
	FILL(&a, "10.0.0.1", "10.0.0.2", "10.1.0.0/24", "10.3.0.0/24");
	FILL(&b, "10.0.0.2", "10.0.0.3", "10.1.0.0/16", "10.3.0.0/24");
	spans_nest(&a);
	spans_nest(&b);
	spans_less(&a, &b, &d);
	SAME(&d, "10.0.0.1-10.0.0.1", "10.1.0.0-10.1.0.255");
	spans_less(&b, &a, &d);
	SAME(&d, "10.0.0.3-10.0.0.3", "10.1.0.0-10.1.255.255");
	spans_less(&a, &a, &d);
	ck_assert_uint_eq(d.n, 0);
	spans_free(&a);
	spans_free(&b);
	spans_free(&d);
}
END_TEST

/* ---- what is sealed -------------------------------------------------- */

static struct wire_bin	deny_v[4], except_v[4];
static struct wire_list	deny = { deny_v, 0 }, except = { except_v, 0 };

static void
words(struct wire_list *l, struct wire_bin *v, const char *a, const char *b)
{
	l->v = v;
	l->n = (a != NULL) + (b != NULL);
	if (a != NULL)
		v[0] = wire_cstr(a);
	if (b != NULL)
		v[1] = wire_cstr(b);
}

static void
is_sealed(const char *text, int want)
{
	struct prefix	p = prefix(text);

	ck_assert_msg(sealed_holds(&p) == want, "%s is %s", text,
	    want ? "open" : "sealed");
}

/* First, last; the one before and behind, where these are open. */
static const struct { const char *first, *last, *before, *behind; } ranges[] = {
	{ "0.0.0.0", "0.255.255.255", NULL, "1.0.0.0" },
	{ "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0" },
	{ "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0" },
	{ "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0" },
	{ "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0" },
	{ "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0" },
	{ "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0" },
	{ "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0" },
	{ "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0" },
	{ "224.0.0.0", "239.255.255.255", "223.255.255.255", NULL },
	{ "240.0.0.0", "255.255.255.255", NULL, NULL },
	/* around NAT64, whose first and last addresses are sealed forms */
	{ "::", "64:ff9b::ff:ffff", NULL, "64:ff9b::100:0" },
	{ "64:ff9b::e000:0", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	    "64:ff9b::dfff:ffff", "2000::" },
	{ "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
	    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:1::" },
	{ "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff",
	    "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "2001:2:1::" },
	{ "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	    "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL },
};

/* What is in them by name. */
static const char *const	within[] = {
	"::", "::1", "::10.1.2.3", "::ffff:10.1.2.3", "::ffff:8.8.8.8",
	"::ffff:0:10.1.2.3", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff",
	"64:ff9b:0:0:0:1::", "64:ff9b:1::", "64:ff9b:2::", "100::", "200::1",
	"4000::1", "5f00::1", "7fff::", "8000::", "fbff::", "fc00::",
	"fd00::2", "fd00:ec2::254", "fdff::", "fe00::", "fe80::1", "fec0::1",
	"feff::", "ff02::1", "ff0e::1", "2001:2::1",
	"169.254.169.254", "100.100.100.200", "198.19.255.2",
};
static const char *const	outside[] = {
	"203.0.113.1", "8.8.8.8", "2000::", "2001:db8::1", "2606:4700::1111",
	"3ffe::1", "3fff::1", "64:ff9b::808:808", "2002:808:808::1",
};

static void
init(void)
{
	ck_assert_int_eq(sealed_init(&deny, &except), 0);
}

START_TEST(boundaries)
{
	size_t	i;

	init();
	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		is_sealed(ranges[i].first, 1);
		is_sealed(ranges[i].last, 1);
		if (ranges[i].before != NULL)
			is_sealed(ranges[i].before, 0);
		if (ranges[i].behind != NULL)
			is_sealed(ranges[i].behind, 0);
	}
	for (i = 0; i < sizeof(within) / sizeof(within[0]); i++)
		is_sealed(within[i], 1);
	for (i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		is_sealed(outside[i], 0);
}
END_TEST

/* The same addresses of IPv4 as 6to4 (with any interface) and as NAT64. */
static void
forms(const char *v4, int want)
{
	static const char *const	tails[] = { "::", "::1",
					    ":ffff:ffff:ffff:ffff:ffff" };
	uint8_t				a[4];
	char				text[80];
	size_t				i;
	int				hi, lo;

	ck_assert_int_eq(inet_pton(AF_INET, v4, a), 1);
	hi = a[0] << 8 | a[1];
	lo = a[2] << 8 | a[3];
	for (i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		snprintf(text, sizeof(text), "2002:%x:%x%s", hi, lo, tails[i]);
		is_sealed(text, want);
	}
	snprintf(text, sizeof(text), "64:ff9b::%x:%x", hi, lo);
	is_sealed(text, want);
}

START_TEST(embedded)
{
	size_t	i;

	init();
	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (strchr(ranges[i].first, ':') != NULL)
			continue;
		forms(ranges[i].first, 1);
		forms(ranges[i].last, 1);
		if (ranges[i].before != NULL)
			forms(ranges[i].before, 0);
		if (ranges[i].behind != NULL)
			forms(ranges[i].behind, 0);
	}
	is_sealed("64:ff9b::a9fe:a9fe", 1);
	is_sealed("2002:a9fe:a9fe::", 1);
	is_sealed("::ffff:169.254.169.254", 1);
	is_sealed("::169.254.169.254", 1);
	is_sealed("2001:0:808:808::f5ff:fffe", 1);
	is_sealed("64:ff9b::808:808", 0);
	is_sealed("2002:808:808::1", 0);
}
END_TEST

START_TEST(configured)
{
	words(&deny, deny_v, "203.0.113.128/25", "2001:db8:7::/48");
	words(&except, except_v, "10.20.0.0/16", "fd12:3456::/32");
	init();
	is_sealed("203.0.113.127", 0);
	is_sealed("203.0.113.128", 1);
	is_sealed("203.0.113.255", 1);
	is_sealed("203.0.114.0", 0);
	forms("203.0.113.127", 0);
	forms("203.0.113.128", 1);
	forms("203.0.113.255", 1);
	forms("203.0.114.0", 0);
	is_sealed("2001:db8:6:ffff:ffff:ffff:ffff:ffff", 0);
	is_sealed("2001:db8:7::", 1);
	is_sealed("2001:db8:7:ffff:ffff:ffff:ffff:ffff", 1);
	is_sealed("2001:db8:8::", 0);
	is_sealed("10.19.255.255", 1);
	is_sealed("10.20.0.0", 0);
	is_sealed("10.20.255.255", 0);
	is_sealed("10.21.0.0", 1);
	forms("10.19.255.255", 1);
	forms("10.20.0.0", 0);
	forms("10.20.255.255", 0);
	forms("10.21.0.0", 1);
	is_sealed("fd12:3455:ffff:ffff:ffff:ffff:ffff:ffff", 1);
	is_sealed("fd12:3456::", 0);
	is_sealed("fd12:3456:ffff:ffff:ffff:ffff:ffff:ffff", 0);
	is_sealed("fd12:3457::", 1);
	/* what is no global unicast address may be opened, too */
	words(&except, except_v, "64:ff9b:1:7::/64", "5f00::/16");
	init();
	is_sealed("64:ff9b:1:6:ffff:ffff:ffff:ffff", 1);
	is_sealed("64:ff9b:1:7::", 0);
	is_sealed("64:ff9b:1:8::", 1);
	is_sealed("5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 1);
	is_sealed("5f00::", 0);
	is_sealed("5f01::", 1);
	/* and the forms of IPv4 without their IPv4 */
	words(&except, except_v, "64:ff9b::a00:0/104", "2002:a00::/24");
	init();
	forms("10.1.2.3", 0);
	is_sealed("10.1.2.3", 1);
}
END_TEST

START_TEST(deny_wins)
{
	words(&deny, deny_v, "10.20.30.0/24", "0.0.0.0/0");
	words(&except, except_v, "10.20.0.0/16", NULL);
	deny.n = 1;
	init();
	is_sealed("10.20.29.255", 0);
	is_sealed("10.20.30.0", 1);
	is_sealed("10.20.30.255", 1);
	is_sealed("10.20.31.0", 0);
	deny.n = 2;
	init();
	is_sealed("0.0.0.0/0", 1);
	is_sealed("10.20.31.0", 1);
	ck_assert_uint_eq(sealed.v4.n, 1);
}
END_TEST

/* `serve' refuses these; so does netd. */
START_TEST(refused)
{
	static const struct { const char *text; int open; } t[] = {
		{ "nonsense", 0 }, { "10.0.0.1/8", 0 }, { "nonsense", 1 },
		{ "127.0.0.1", 1 }, { "::/0", 1 },
		{ "::ffff:203.0.113.7", 0 }, { "::ffff:0:0/96", 0 },
		{ "2001:0db8:0000:0000:0000:0000:0000:0000:0000:0000:0000:00000"
		    "00", 0 },
	};
	size_t		i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		words(&deny, deny_v, t[i].open ? NULL : t[i].text, NULL);
		words(&except, except_v, t[i].open ? t[i].text : NULL, NULL);
		ck_assert_msg(sealed_init(&deny, &except) == -1, "%s",
		    t[i].text);
	}
}
END_TEST

/* What sets of the kernel need. */
START_TEST(in_order)
{
	const struct spans	*s[] = { &sealed.v4, &sealed.v6 };
	uint8_t			 next[16];
	size_t			 i, f;

	init();
	for (f = 0; f < 2; f++)
		for (i = 0; i < s[f]->n; i++) {
			ck_assert_int_le(memcmp(s[f]->v[i].first,
			    s[f]->v[i].last, 16), 0);
			if (i == 0)
				continue;
			memcpy(next, s[f]->v[i - 1].last, 16);
			ck_assert_int_eq(addr_next(next, s[f]->len), 0);
			ck_assert_int_lt(memcmp(next, s[f]->v[i].first,
			    s[f]->len), 0);
		}
	ck_assert_uint_gt(sealed.v4.n, 8);
	ck_assert_uint_gt(sealed.v6.n, 20);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("sealed");
	TCase	*t = tcase_create("sealed");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, prefix_good);
	tcase_add_test(t, prefix_bad);
	tcase_add_test(t, prefix_never_opens);
	tcase_add_test(t, prefix_is_mapped);
	tcase_add_test(t, merged);
	tcase_add_test(t, nested);
	tcase_add_test(t, taken_out);
	tcase_add_test(t, difference);
	tcase_add_test(t, boundaries);
	tcase_add_test(t, embedded);
	tcase_add_test(t, configured);
	tcase_add_test(t, deny_wins);
	tcase_add_test(t, refused);
	tcase_add_test(t, in_order);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
