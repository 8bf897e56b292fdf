/*
 * dns_test.c: queries to the name service of a box and its answers, byte by
 * byte, and held against what the C library makes and understands.
 */
#include <arpa/nameser.h>
#include <check.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxyd/proxyd.h"

#define ADDR	((const uint8_t *)"\xc6\x12\x01\x02")

static const uint8_t	plain[] = {
	0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0,
	3, 'w', 'W', 'w', 7, 'E', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'o', 'r',
	'g', 0, 0, 1, 0, 1,
};
static const uint8_t	plain_a[] = {
	0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0,
	3, 'w', 'W', 'w', 7, 'E', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'o', 'r',
	'g', 0, 0, 1, 0, 1,
	0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 198, 18, 1, 2,
};
/* A cookie (RFC 7873), as some resolvers send one. */
static const uint8_t	opt[] = {
	0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 12,
	0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8,
};
static const uint8_t	opt_a[] = { 0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0 };

static uint8_t		buf[2048];
static size_t		len;

static void
begin(const uint8_t *p, size_t n)
{
	memcpy(buf, p, n);
	len = n;
}

static void
add(const uint8_t *p, size_t n)
{
	ck_assert_uint_le(len + n, sizeof(buf));
	memcpy(buf + len, p, n);
	len += n;
}

/* From memory that ends where the query does. */
static int
parse(size_t n, struct dns_query *q, enum dns_rcode *rcode)
{
	static uint8_t	*copy;
	int		 r;

	free(copy);		/* the one before: *q borrows from it */
	copy = malloc(n > 0 ? n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, buf, n);
	r = dns_parse(copy, n, q, rcode);
	if (r == 1) {
		ck_assert_ptr_eq(q->question, copy + 12);
		ck_assert_uint_le(12 + q->nquestion, n);
	}
	return r;
}

static void
is_answered(enum dns_rcode want)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	uint8_t			a[DNS_MAX];
	size_t			n;

	memset(&q, 0xff, sizeof(q));
	ck_assert_int_eq(parse(len, &q, &rcode), -1);
	ck_assert_int_eq(rcode, want);
	n = dns_answer(&q, rcode, NULL, a);
	ck_assert_uint_eq(n, want == DNS_BADVERS ? 23 : 12);
	ck_assert_mem_eq(a, buf, 2);
	ck_assert_uint_eq(a[2], 0x80 | (buf[2] & 0x79));
	ck_assert_uint_eq(a[3], 0x80 | (want & 15));
	ck_assert_mem_eq(a + 4, "\0\0\0\0\0\0", 7);
	ck_assert_uint_eq(a[11], want == DNS_BADVERS);
	if (want == DNS_BADVERS) {	/* RFC 6891 6.1.3: 16 is 1 and 0 */
		ck_assert_mem_eq(a + 12, "\0\0\x29\2\0\1\0\0\0\0\0", 11);
		ck_assert_uint_eq(a[3], 0x80);
	}
}

static void
is_nothing(void)
{
	struct dns_query	q;
	enum dns_rcode		rcode;

	ck_assert_int_eq(parse(len, &q, &rcode), 0);
}

/* ---- by bytes --------------------------------------------------------- */

START_TEST(bytes)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	uint8_t			a[DNS_MAX];

	begin(plain, sizeof(plain));
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	ck_assert_str_eq(q.name, "www.example.org");
	ck_assert_int_eq(q.is_name, 1);
	ck_assert_uint_eq(q.id, 0x1234);
	ck_assert_uint_eq(q.type, DNS_T_A);
	ck_assert_int_eq(q.edns, 0);
	ck_assert_uint_eq(dns_answer(&q, DNS_NOERROR, ADDR, a),
	    sizeof(plain_a));
	ck_assert_mem_eq(a, plain_a, sizeof(plain_a));
	ck_assert_uint_eq(dns_answer(&q, DNS_NXDOMAIN, NULL, a),
	    sizeof(plain));
	ck_assert_mem_eq(a, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0", 12);
	ck_assert_mem_eq(a + 12, plain + 12, sizeof(plain) - 12);
	buf[2] = 0;		/* no recursion desired, and none told */
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	(void)dns_answer(&q, DNS_SERVFAIL, NULL, a);
	ck_assert_mem_eq(a, "\x12\x34\x80\x82\0\1\0\0\0\0\0\0", 12);
}
END_TEST

START_TEST(with_opt)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	uint8_t			a[DNS_MAX];
	size_t			n = sizeof(plain_a);

	begin(plain, sizeof(plain));
	add(opt, sizeof(opt));
	buf[11] = 1;
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	ck_assert_int_eq(q.edns, 1);
	ck_assert_uint_eq(dns_answer(&q, DNS_NOERROR, ADDR, a),
	    n + sizeof(opt_a));
	ck_assert_uint_eq(a[11], 1);
	ck_assert_mem_eq(a + 12, plain_a + 12, n - 12);
	ck_assert_mem_eq(a + n, opt_a, sizeof(opt_a));
	buf[sizeof(plain) + 6] = 1;	/* a version that is none yet */
	is_answered(DNS_BADVERS);
}
END_TEST

/* Whatever is missing, and whatever is too much. */
START_TEST(cut)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	size_t			n;

	begin(plain, sizeof(plain));
	add(opt, sizeof(opt));
	buf[11] = 1;
	for (n = 0; n < 12; n++)
		ck_assert_int_eq(parse(n, &q, &rcode), 0);
	for (; n < len; n++) {
		ck_assert_int_eq(parse(n, &q, &rcode), -1);
		ck_assert_int_eq(rcode, DNS_FORMERR);
	}
	add((const uint8_t *)"", 1);
	is_answered(DNS_FORMERR);
	begin(plain, sizeof(plain));
	add((const uint8_t *)"", 1);
	is_answered(DNS_FORMERR);
}
END_TEST

START_TEST(head)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	unsigned int		i;

	for (i = 0; i < 16; i++) {
		begin(plain, sizeof(plain));
		buf[2] = (uint8_t)(1 | i << 3);
		if (i == 0)
			ck_assert_int_eq(parse(len, &q, &rcode), 1);
		else
			is_answered(DNS_NOTIMP);
		buf[2] |= 0x80;
		is_nothing();
	}
	begin(plain, sizeof(plain));
	buf[3] = 0x30;			/* AD, CD: as dig sends them */
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	buf[2] |= 2;			/* TC */
	is_answered(DNS_FORMERR);
	for (i = 4; i < 12; i++) {	/* counts */
		begin(plain, sizeof(plain));
		buf[i]++;
		is_answered(DNS_FORMERR);
	}
	begin(plain, sizeof(plain));
	buf[5] = 0;
	is_answered(DNS_FORMERR);
	begin(plain, 12);
	buf[5] = 0;
	is_answered(DNS_FORMERR);
}
END_TEST

START_TEST(question)
{
	unsigned int	i;

	for (i = 64; i < 256; i++) {	/* no label, perhaps a pointer */
		begin(plain, sizeof(plain));
		buf[12] = (uint8_t)i;
		is_answered(DNS_FORMERR);
	}
	begin(plain, sizeof(plain));
	buf[12] = 0xc0;
	buf[13] = 12;			/* to itself */
	is_answered(DNS_FORMERR);
	begin(plain, sizeof(plain));
	buf[28] = 0xc0;			/* behind a label */
	is_answered(DNS_FORMERR);
	for (i = 2; i < 512; i++) {	/* classes */
		begin(plain, sizeof(plain));
		buf[sizeof(plain) - 2] = (uint8_t)(i >> 8);
		buf[sizeof(plain) - 1] = (uint8_t)i;
		is_answered(DNS_NOTIMP);
	}
}
END_TEST

START_TEST(additional)
{
	size_t	i = sizeof(plain);

	begin(plain, i);
	add(opt, sizeof(opt));
	add(opt, sizeof(opt));
	buf[11] = 2;			/* two of them */
	is_answered(DNS_FORMERR);
	len -= sizeof(opt);
	buf[11] = 1;
	buf[i] = 0xc0;			/* with a name */
	is_answered(DNS_FORMERR);
	buf[i] = 0;
	buf[i + 2] = 250;		/* TSIG */
	is_answered(DNS_FORMERR);
	buf[i + 2] = 41;
	buf[i + 10]++;			/* longer than the message */
	is_answered(DNS_FORMERR);
	buf[i + 10] -= 2;
	is_answered(DNS_FORMERR);
}
END_TEST

/* 512 bytes, all of them an option's, and one more. */
START_TEST(longest)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	size_t			n = DNS_QUERY_MAX - sizeof(plain) - 11;

	begin(plain, sizeof(plain));
	add(opt, 11);
	memset(buf + len, 7, n + 1);
	buf[11] = 1;
	buf[len - 2] = (uint8_t)(n >> 8);
	buf[len - 1] = (uint8_t)n;
	len = DNS_QUERY_MAX;
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	buf[sizeof(plain) + 9] = (uint8_t)((n + 1) >> 8);
	buf[sizeof(plain) + 10] = (uint8_t)(n + 1);
	len++;
	is_answered(DNS_FORMERR);
}
END_TEST

/* ---- names ------------------------------------------------------------ */

static const struct {
	const char	*wire;		/* labels, without the root's */
	size_t		 n;
	const char	*name;
	int		 is_name;
} names[] = {
#define W(s)	s, sizeof(s) - 1
	{ W("\1a"), "a", 1 },
	{ W("\3aBc\2DE"), "abc.de", 1 },
	{ W("\4_dns\2ab"), "_dns.ab", 1 },
	{ W(""), ".", 0 },
	{ W("\3a.b\3org"), "a?b.org", 0 },
	{ W("\4a\0.b\3org"), "a??b.org", 0 },
	{ W("\3a b\3org"), "a?b.org", 0 },
	{ W("\3a\\b\3org"), "a\\b.org", 0 },
	{ W("\4\303\251ab\3org"), "??ab.org", 0 },
	{ W("\1\177"), "?", 0 },
	{ W("\1*\3org"), "*.org", 0 },
	{ W("\2-a\3org"), "-a.org", 0 },
	{ W("\3""127\1""0\1""0\1""1"), "127.0.0.1", 0 },
	{ W("\4""0x7f"), "0x7f", 0 },
};

START_TEST(texts)
{
	struct dns_query	q;
	enum dns_rcode		rcode;

	begin(plain, 12);
	add((const uint8_t *)names[_i].wire, names[_i].n);
	add((const uint8_t *)"\0\0\1\0\1", 5);
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	ck_assert_str_eq(q.name, names[_i].name);
	ck_assert_int_eq(q.is_name, names[_i].is_name);
}
END_TEST

/* Labels of these lengths, all of one byte. */
static void
long_name(const size_t *n, int c)
{
	begin(plain, 12);
	for (; *n != 0; n++) {
		buf[len++] = (uint8_t)*n;
		memset(buf + len, c, *n);
		len += *n;
	}
	add((const uint8_t *)"\0\0\1\0\1", 5);
}

/* 253 bytes of text, and 254. */
START_TEST(lengths)
{
	struct dns_query	q;
	enum dns_rcode		rcode;
	uint8_t			a[DNS_MAX];
	char			text[256];

	long_name((const size_t []){ 63, 63, 63, 61, 0 }, 'q');
	memset(text, 'q', 253);
	text[63] = text[127] = text[191] = '.';
	text[253] = '\0';
	add(opt, sizeof(opt));
	buf[11] = 1;
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	ck_assert_int_eq(q.is_name, 1);
	ck_assert_str_eq(q.name, text);
	ck_assert_uint_eq(dns_answer(&q, DNS_NOERROR, ADDR, a),
	    12 + 255 + 4 + 16 + 11);
	long_name((const size_t []){ 63, 63, 63, 61, 0 }, '+');
	ck_assert_int_eq(parse(len, &q, &rcode), 1);
	ck_assert_int_eq(q.is_name, 0);
	ck_assert_uint_eq(strlen(q.name), 253);
	long_name((const size_t []){ 63, 63, 63, 62, 0 }, 'q');
	is_answered(DNS_FORMERR);
	long_name((const size_t []){ 63, 63, 63, 61, 1, 0 }, 'q');
	is_answered(DNS_FORMERR);
	long_name((const size_t []){ 64, 0 }, 'q');
	is_answered(DNS_FORMERR);
}
END_TEST

/* ---- the C library ------------------------------------------------------ */

static const int	types[] = { ns_t_a, ns_t_aaaa, ns_t_mx, ns_t_txt,
	ns_t_srv, ns_t_any, ns_t_ns, 65 };
#define NTYPES	(sizeof(types) / sizeof(types[0]))

static void
c_record(ns_msg *m, const char *name)
{
	ns_rr	rr;

	ck_assert_uint_eq(ns_msg_count(*m, ns_s_an), 1);
	ck_assert_int_eq(ns_parserr(m, ns_s_an, 0, &rr), 0);
	ck_assert_str_eq(ns_rr_name(rr), name);
	ck_assert_uint_eq(ns_rr_type(rr), ns_t_a);
	ck_assert_uint_eq(ns_rr_class(rr), ns_c_in);
	ck_assert_uint_eq(ns_rr_ttl(rr), DNS_TTL);
	ck_assert_uint_eq(ns_rr_rdlen(rr), 4);
	ck_assert_mem_eq(ns_rr_rdata(rr), ADDR, 4);
}

static void
c_answer(const struct dns_query *q, const char *name, enum dns_rcode rcode,
    const uint8_t *addr)
{
	uint8_t	a[DNS_MAX];
	ns_msg	m;
	ns_rr	rr;
	size_t	n = dns_answer(q, rcode, addr, a);

	ck_assert_int_eq(ns_initparse(a, (int)n, &m), 0);
	ck_assert_uint_eq(ns_msg_id(m), q->id);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_qr), 1);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_opcode), 0);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_aa), 0);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_tc), 0);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_rd), 1);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_ra), 1);
	ck_assert_int_eq(ns_msg_getflag(m, ns_f_rcode), (int)rcode);
	ck_assert_uint_eq(ns_msg_count(m, ns_s_qd), 1);
	ck_assert_int_eq(ns_parserr(&m, ns_s_qd, 0, &rr), 0);
	ck_assert_str_eq(ns_rr_name(rr), name);
	ck_assert_uint_eq(ns_rr_type(rr), q->type);
	if (addr != NULL)
		c_record(&m, name);
	else
		ck_assert_uint_eq(ns_msg_count(m, ns_s_an), 0);
}

START_TEST(c_library)
{
	static const char *const	asked[] = { "a", "Deb.Debian.org",
	    "registry.npmjs.org", "x_y.example", "xn--bcher-kva.example" };
	struct __res_state		st = { 0 };
	struct dns_query		q;
	enum dns_rcode			rcode;
	char				name[ALLOW_NAME];
	size_t				i;
	int				n;

	ck_assert_int_eq(res_ninit(&st), 0);
	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		n = res_nmkquery(&st, ns_o_query, asked[i], ns_c_in,
		    types[_i], NULL, 0, NULL, buf, sizeof(buf));
		ck_assert_int_gt(n, 12);
		len = (size_t)n;
		ck_assert_int_eq(parse(len, &q, &rcode), 1);
		ck_assert_uint_eq(q.type, (unsigned int)types[_i]);
		ck_assert_int_eq(allow_name(asked[i], strlen(asked[i]), name),
		    0);
		ck_assert_str_eq(q.name, name);
		c_answer(&q, asked[i], DNS_NOERROR, NULL);
		c_answer(&q, asked[i], DNS_NXDOMAIN, NULL);
		c_answer(&q, asked[i], DNS_SERVFAIL, NULL);
		c_answer(&q, asked[i], DNS_NOERROR, ADDR);
	}
	res_nclose(&st);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("dns");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, bytes);
	tcase_add_test(t, with_opt);
	tcase_add_test(t, cut);
	tcase_add_test(t, head);
	tcase_add_test(t, question);
	tcase_add_test(t, additional);
	tcase_add_test(t, longest);
	tcase_add_loop_test(t, texts, 0,
	    (int)(sizeof(names) / sizeof(names[0])));
	tcase_add_test(t, lengths);
	tcase_add_loop_test(t, c_library, 0, (int)NTYPES);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
