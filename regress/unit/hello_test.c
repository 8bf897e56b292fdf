/*
 * hello_test.c: the name in a ClientHello: hellos that OpenSSL makes, whole,
 * cut anywhere and in records of any size; hellos that are wrong by the byte;
 * and hellos made wrong by chance, which a server must not understand in
 * another way.
 */
#include <check.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxyd/proxyd.h"
#include "tls_judge.h"

#define NAME	"www.example.org"

static uint8_t	hello[4 * HELLO_MAX];		/* as it is sent */
static size_t	len;

/* From memory that ends where they do. */
static enum hello
read_n(size_t n, char name[ALLOW_NAME])
{
	uint8_t		*own = malloc(n > 0 ? n : 1);
	enum hello	 r;

	ck_assert_ptr_nonnull(own);
	memcpy(own, hello, n);
	memset(name, 'x', ALLOW_NAME);
	r = hello_read(own, n, name);
	if (r != HELLO_NAMED)
		ck_assert_int_eq(name[0], 'x');
	free(own);
	return r;
}

static void
is(enum hello want)
{
	char	name[ALLOW_NAME];

	ck_assert_int_eq(read_n(len, name), want);
	if (want == HELLO_NAMED)
		ck_assert_str_eq(name, NAME);
}

/* All that is not whole needs more. */
static void
is_at_every_cut(enum hello want)
{
	char	name[ALLOW_NAME];
	size_t	n;

	for (n = 0; n < len; n++)
		ck_assert_int_eq(read_n(n, name), HELLO_MORE);
	is(want);
}

/* ---- hellos by OpenSSL -------------------------------------------------- */

enum { PLAIN, ALPN, GROUPS, PADDED, LARGE, HUGE_, KINDS };

static int
add_large(SSL *ssl, unsigned int type, unsigned int context,
    const unsigned char **out, size_t *outlen, X509 *x, size_t chain, int *al,
    void *arg)
{
	static unsigned char	fill[16000];

	(void)ssl; (void)type; (void)context; (void)x; (void)chain; (void)al;
	memset(fill, 'L', sizeof(fill));
	*out = fill;
	*outlen = *(const int *)arg == LARGE ? 5000 : 15500;
	return 1;
}

static void
kind_set(SSL_CTX *ctx, const int *kind)
{
	static const unsigned char	protos[] = "\x02h2\x08http/1.1";

	switch (*kind) {
	case ALPN:
		ck_assert_int_eq(SSL_CTX_set_alpn_protos(ctx, protos,
		    sizeof(protos) - 1), 0);
		break;
	case GROUPS:
		ck_assert_int_eq(SSL_CTX_set1_groups_list(ctx,
		    "P-521:P-384:P-256:X25519:X448:ffdhe2048"), 1);
		break;
	case PADDED:
		SSL_CTX_set_options(ctx, SSL_OP_TLSEXT_PADDING);
		break;
	case LARGE:
	case HUGE_:
		ck_assert_int_eq(SSL_CTX_add_custom_ext(ctx, 65000,
		    SSL_EXT_CLIENT_HELLO, add_large, NULL,
		    (void *)(uintptr_t)kind, NULL, NULL), 1);
		ck_assert_int_eq(SSL_CTX_set_max_send_fragment(ctx, 600), 1);
		break;
	default:
		break;
	}
}

static void
make(int version, int kind, const char *name)
{
	SSL_CTX	*ctx = SSL_CTX_new(TLS_client_method());
	BIO	*in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	SSL	*ssl;
	int	 n;

	ck_assert_ptr_nonnull(ctx);
	SSL_CTX_set_security_level(ctx, 0);
	kind_set(ctx, &kind);
	ssl = SSL_new(ctx);
	ck_assert(ssl != NULL && in != NULL && out != NULL);
	ck_assert_int_eq(SSL_set_min_proto_version(ssl, TLS1_VERSION), 1);
	ck_assert_int_eq(SSL_set_max_proto_version(ssl, version), 1);
	if (name != NULL)
		ck_assert_int_eq(SSL_set_tlsext_host_name(ssl, name), 1);
	SSL_set_bio(ssl, in, out);
	ck_assert_int_eq(SSL_connect(ssl), -1);	/* nobody answers */
	n = BIO_read(out, hello, sizeof(hello));
	ck_assert_int_gt(n, 50);
	len = (size_t)n;
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

static const int	versions[] = { TLS1_VERSION, TLS1_1_VERSION,
	TLS1_2_VERSION, TLS1_3_VERSION };
#define NVERSIONS	4

START_TEST(real)
{
	int	version = versions[_i / KINDS], kind = _i % KINDS;

	make(version, kind, NAME);
	is_at_every_cut(HELLO_NAMED);
	memcpy(hello + len, "\x14\3\3\0\1\1\x17\3\3\0\1z", 12);
	len += 12;			/* early data */
	is(HELLO_NAMED);
	make(version, kind, "WwW.Example.ORG");
	is(HELLO_NAMED);
	make(version, kind, NULL);
	is_at_every_cut(HELLO_NAMELESS);
	make(version, kind, "192.0.2.1");
	is(HELLO_BAD);
	make(version, kind, "a b");
	is(HELLO_BAD);
}
END_TEST

/* ---- a hello by hand ---------------------------------------------------- */

/* What a hello says, to be said in other ways. */
static struct {
	uint8_t	 before[400];		/* up to the extensions' length */
	size_t	 nbefore;
	struct { unsigned int type; size_t n; uint8_t data[1500]; } ext[64];
	size_t	 next;
} parts;

static unsigned int
u16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

/* Of a hello in one record that has extensions. */
static void
parts_read(void)
{
	const uint8_t	*p = hello + 5 + 4 + 2 + 32, *end = hello + len;

	p += 1 + p[0];
	p += 2 + u16(p);
	p += 1 + p[0];
	parts.nbefore = (size_t)(p - hello) - 9;
	ck_assert_uint_le(parts.nbefore, sizeof(parts.before));
	memcpy(parts.before, hello + 9, parts.nbefore);
	parts.next = 0;
	for (p += 2; p < end; p += 4 + u16(p + 2)) {
		ck_assert_uint_lt(parts.next, 64);
		parts.ext[parts.next].type = u16(p);
		parts.ext[parts.next].n = u16(p + 2);
		ck_assert_uint_le(u16(p + 2), sizeof(parts.ext[0].data));
		memcpy(parts.ext[parts.next++].data, p + 4, u16(p + 2));
	}
	ck_assert_ptr_eq(p, end);
}

static void
put(const void *p, size_t n)
{
	ck_assert_uint_le(len + n, sizeof(hello));
	memcpy(hello + len, p, n);
	len += n;
}

static void
put16(size_t v)
{
	put((uint8_t []){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

/* The message, into hello, without records. */
static void
parts_message(void)
{
	size_t	i, n = 0;

	for (i = 0; i < parts.next; i++)
		n += 4 + parts.ext[i].n;
	len = 0;
	put("\1\0", 2);
	put16(parts.nbefore + 2 + n);
	put(parts.before, parts.nbefore);
	put16(n);
	for (i = 0; i < parts.next; i++) {
		put16(parts.ext[i].type);
		put16(parts.ext[i].n);
		put(parts.ext[i].data, parts.ext[i].n);
	}
}

/* What is in hello becomes records of at most so many bytes; 0: any. */
static void
records(size_t most)
{
	static uint8_t	from[HELLO_MAX];
	size_t		all = len, at = 0, n;

	ck_assert_uint_le(all, sizeof(from));
	memcpy(from, hello, all);
	for (len = 0; at < all; at += n) {
		n = most > 0 ? most : 1 + (size_t)random() % all;
		if (n > all - at)
			n = all - at;
		put("\x16\3\1", 3);
		put16(n);
		put(from + at, n);
	}
}

static void
parts_write(void)
{
	parts_message();
	records(HELLO_MAX);
}

static void
begin(void)
{
	make(TLS1_3_VERSION, PLAIN, NAME);
	parts_read();
	ck_assert_uint_eq(parts.ext[0].type, 0);	/* server_name */
}

static void
server_name(const void *p, size_t n)
{
	memcpy(parts.ext[0].data, p, n);
	parts.ext[0].n = n;
	parts_write();
}
#define SERVER_NAME(s)	server_name(s, sizeof(s) - 1)

START_TEST(by_hand)
{
	begin();
	parts_write();
	is(HELLO_NAMED);
	SERVER_NAME("\0\x12\0\0\017www.example.org");
	is_at_every_cut(HELLO_NAMED);
	SERVER_NAME("\0\x13\0\0\020www.example.org.");
	is(HELLO_NAMED);
	parts.next = 0;
	parts_write();
	is_at_every_cut(HELLO_NAMELESS);	/* extensions, but none */
	len -= 2;				/* not even that */
	hello[4] -= 2;
	hello[8] -= 2;
	is_at_every_cut(HELLO_NAMELESS);
}
END_TEST

/* What stands for no name, more than one, or none that is a host's. */
static const struct { const char *p; size_t n; } bad_names[] = {
#define S(s)	{ s, sizeof(s) - 1 }
	S(""), S("\0"), S("\0\0"), S("\0\1\0"), S("\0\2\0\0"),
	S("\0\3\0\0\0"),				/* "" */
	S("\0\4\0\0\1."), S("\0\4\0\0\1*"),
	S("\0\5\0\0\2a"), S("\0\4\0\0\0a"),		/* lengths */
	S("\0\4\0\0\1ab"), S("\0\3\0\0\1a"), S("\0\5\0\0\1a"),
	S("\0\4\1\0\1a"), S("\0\4\377\0\1a"),		/* other types */
	S("\0\x08\0\0\1a\0\0\1a"), S("\0\x08\0\0\1a\0\0\1b"), /* two */
	S("\0\x08\1\0\1a\0\0\1b"), S("\0\x08\0\0\1a\1\0\1b"),
	S("\0\5\0\0\2a\0"), S("\0\6\0\0\3a\0b"),	/* NUL */
	S("\0\6\0\0\3a b"), S("\0\6\0\0\3a/b"), S("\0\6\0\0\3a@b"),
	S("\0\6\0\0\3a:1"), S("\0\6\0\0\3a\303\251"), S("\0\6\0\0\3-ab"),
	S("\0\7\0\0\4a..b"), S("\0\5\0\0\2.a"),
	S("\0\x0c\0\0\x09""127.0.0.1"), S("\0\x0a\0\0\x07""0x7f.1."),
	S("\0\6\0\0\3::1"), S("\0\x08\0\0\5[::1]"),
	S("\0\x0c\0\0\x09""127.0.0.1"), S("\0\4\0\0\1""1"),
};

START_TEST(names_bad)
{
	begin();
	server_name(bad_names[_i].p, bad_names[_i].n);
	is(HELLO_BAD);
}
END_TEST

START_TEST(long_names)
{
	uint8_t	name[5 + 300];
	size_t	n;
	char	ret[ALLOW_NAME];

	for (n = 250; n < 300; n++) {
		begin();
		memset(name, 'a', sizeof(name));
		name[0] = (uint8_t)((n + 3) >> 8);
		name[1] = (uint8_t)(n + 3);
		name[2] = 0;
		name[3] = (uint8_t)(n >> 8);
		name[4] = (uint8_t)n;
		name[5 + 60] = name[5 + 120] = name[5 + 180] =
		    name[5 + 240] = '.';
		server_name(name, 5 + n);
		ck_assert_int_eq(read_n(len, ret),
		    n <= 253 ? HELLO_NAMED : HELLO_BAD);
	}
}
END_TEST

START_TEST(extensions)
{
	size_t	i;

	begin();
	for (i = 0; i < parts.next; i++) {	/* each one twice */
		begin();
		parts.ext[parts.next++] = parts.ext[i];
		parts_write();
		is(HELLO_BAD);
	}
	begin();				/* the last, and only */
	parts.ext[parts.next] = parts.ext[0];
	parts.ext[0].type = 4242;
	parts.next++;
	parts_write();
	is(HELLO_NAMED);
	begin();
	parts.ext[0].type = 4242;
	parts_write();
	is(HELLO_NAMELESS);
	begin();				/* their lengths */
	parts_write();
	hello[9 + parts.nbefore + 1]--;
	is(HELLO_BAD);
	hello[9 + parts.nbefore + 1] += 2;
	is(HELLO_BAD);
	hello[9 + parts.nbefore + 1]--;
	is(HELLO_NAMED);
	hello[len - parts.ext[parts.next - 1].n - 1]++;
	is(HELLO_BAD);
}
END_TEST

/* The fields before them: offsets in the message's body. */
START_TEST(fields)
{
	size_t	session = 2 + 32, ciphers = session + 1 + 32, compression;

	begin();
	ck_assert_uint_eq(parts.before[session], 32);
	compression = ciphers + 2 + u16(parts.before + ciphers);
	parts.before[0] = 2;
	parts_write();
	is(HELLO_BAD);
	begin();
	parts.before[session] = 33;
	parts_write();
	is(HELLO_BAD);
	begin();
	parts.before[ciphers + 1]++;		/* odd */
	parts_write();
	is(HELLO_BAD);
	begin();
	memset(parts.before + ciphers, 0, 2);	/* none, what follows is not */
	parts_write();
	is(HELLO_BAD);
	begin();
	parts.before[compression] = 0;
	parts_write();
	is(HELLO_BAD);
	begin();
	parts.before[compression] = 200;
	parts_write();
	is(HELLO_BAD);
}
END_TEST

/* ---- records ------------------------------------------------------------ */

START_TEST(fragments)
{
	size_t	most;

	for (most = 1; most < 40; most++) {
		begin();
		parts_message();
		records(most);
		is_at_every_cut(HELLO_NAMED);
	}
}
END_TEST

static void
is_bad_with(size_t at, unsigned int v)
{
	begin();
	parts_write();
	hello[at] = (uint8_t)v;
	is(HELLO_BAD);
}

START_TEST(record_heads)
{
	unsigned int	i;

	for (i = 0; i < 256; i++) {
		begin();
		parts_write();
		hello[0] = (uint8_t)i;
		is(i == 22 ? HELLO_NAMED : i >= 20 && i <= 24 ? HELLO_BAD :
		    HELLO_NOT);
		if (i != 3)
			is_bad_with(1, i);
		if (i > 4)
			is_bad_with(2, i);
		if (i != 1)
			is_bad_with(5, i);
		if (i != 0)
			is_bad_with(6, i);
	}
	begin();
	parts_write();
	hello[3] = hello[4] = 0;		/* of length 0 */
	is(HELLO_BAD);
	begin();
	parts_write();
	hello[3] = 0x40;			/* of 16,385 and more */
	hello[4] = 1;
	is(HELLO_BAD);
}
END_TEST

/* Where a record ends, and what may not stand between two. */
START_TEST(record_ends)
{
	begin();
	parts_write();
	hello[4]++;
	hello[len++] = 0;
	is(HELLO_BAD);
	begin();
	parts_message();
	records(len - 1);
	memmove(hello + len - 6 + 7, hello + len - 6, 6);
	memcpy(hello + len - 6, "\x15\3\1\0\2\1\0", 7);	/* an alert within */
	len += 7;
	is(HELLO_BAD);
	begin();
	parts_message();
	records(len - 1);
	memmove(hello + len - 6 + 5, hello + len - 6, 6);
	memcpy(hello + len - 6, "\x16\3\1\0\0", 5);	/* an empty one */
	len += 5;
	is(HELLO_BAD);
}
END_TEST

/* What never comes to an end. */
START_TEST(endless)
{
	char	name[ALLOW_NAME];
	size_t	n;

	begin();
	parts.ext[parts.next].type = 4242;
	parts.ext[parts.next++].n = 1500;
	parts_message();
	records(1);				/* 6 bytes for one */
	for (n = len < HELLO_MAX ? len : HELLO_MAX; n-- > 0;)
		ck_assert_int_eq(read_n(n, name), HELLO_MORE);
	ck_assert_uint_lt(len, HELLO_MAX);
	for (n = 0; n < 3; n++) {
		parts.ext[parts.next].type = 4343 + (unsigned int)n;
		parts.ext[parts.next++].n = 1500;
	}
	parts_message();
	records(1);
	ck_assert_uint_gt(len, HELLO_MAX);
	ck_assert_int_eq(read_n(HELLO_MAX - 1, name), HELLO_MORE);
	ck_assert_int_eq(read_n(HELLO_MAX, name), HELLO_BAD);
	ck_assert_int_eq(read_n(HELLO_MAX + 1, name), HELLO_BAD);
	begin();
	parts_write();
	hello[7] = 0x40;			/* says that it is too long */
	is(HELLO_BAD);
}
END_TEST

/* What other programs send first. */
START_TEST(not_tls)
{
	static const struct { const char *p; size_t n; } first[] = {
		S("GET / HTTP/1.1\r\n"), S("SSH-2.0-OpenSSH_9.2\r\n"),
		S("\0\0\0\x08\4\xd2\x16\x2f"), S("\x80\x2e\1\3\1\0\x15\0\0"),
		S("\x16"), S("\x14"), S("\x15\3"), S("\x15\2"), S("\x19\3"),
	};
	static const enum hello	want[] = {
		HELLO_NOT, HELLO_NOT, HELLO_NOT, HELLO_NOT, HELLO_MORE,
		HELLO_MORE, HELLO_BAD, HELLO_NOT, HELLO_NOT,
	};

	len = 0;
	is(HELLO_MORE);
	put(first[_i].p, first[_i].n);
	is(want[_i]);
}
END_TEST

/* ---- by chance ---------------------------------------------------------- */

static unsigned int
below(size_t n)
{
	return (unsigned int)((size_t)random() % n);
}

/* Contents for server_name that some would read as a name, by the dozen. */
static void
twist_name(size_t i)
{
	static const char *const	of[] = { "evil.example", NAME, "a" };
	const char			*name;
	uint8_t				*p = parts.ext[i].data;
	size_t				 n, k, entries = 1 + below(2), at = 2;

	for (k = 0; k < entries; k++) {
		name = of[below(3)];
		n = strlen(name);
		p[at++] = below(4) == 0 ? (uint8_t)below(256) : 0;
		p[at++] = 0;
		p[at++] = (uint8_t)(n + (below(8) == 0));
		memcpy(p + at, name, n);
		at += n;
	}
	p[0] = 0;
	p[1] = (uint8_t)(at - 2 + (below(8) == 0));
	parts.ext[i].type = 0;
	parts.ext[i].n = at;
}

static void
twist(void)
{
	size_t	i = below(parts.next), j = below(parts.next);

	switch (below(7)) {
	case 0:				/* again, elsewhere */
		if (parts.next < 60)
			parts.ext[parts.next++] = parts.ext[i];
		break;
	case 1:
		parts.ext[i].type = parts.ext[j].type;
		break;
	case 2:
		if (parts.ext[i].n > 0)
			parts.ext[i].data[below(parts.ext[i].n)] =
			    (uint8_t)below(256);
		break;
	case 3:
		parts.before[below(parts.nbefore)] = (uint8_t)below(256);
		break;
	case 4:
		parts.ext[i].n = below(40);
		break;
	default:
		twist_name(i);
		break;
	}
}

static void
by_chance(int version)
{
	unsigned int	n;

	make(version, ALPN, NAME);
	parts_read();
	for (n = 1 + below(3); n > 0; n--)
		twist();
	parts_message();
	if (below(4) == 0)
		hello[below(len)] = (uint8_t)below(256);
	records(below(2) == 0 ? HELLO_MAX : 0);
	if (below(4) == 0)
		hello[below(len)] = (uint8_t)below(256);
}

START_TEST(judged)
{
	unsigned int	i, agreed = 0, refused = 0;
	char		name[ALLOW_NAME], its[256], canonical[ALLOW_NAME];
	enum hello	r;

	srandom((unsigned int)_i);
	for (i = 0; i < 3000; i++) {
		by_chance(versions[_i]);
		r = read_n(len, name);
		if (tls_judge(hello, len, its) != 1)
			continue;
		ck_assert_msg(r == HELLO_NAMED || r == HELLO_BAD,
		    "it is %d where a server sees %s", (int)r, its);
		refused += r == HELLO_BAD;
		if (r == HELLO_BAD)
			continue;
		ck_assert_int_eq(allow_name(its, strlen(its), canonical), 0);
		ck_assert_str_eq(name, canonical);
		agreed++;
	}
	/* so that there was something to judge */
	ck_assert_uint_gt(agreed, 100);
	ck_assert_uint_gt(refused, 10);
}
END_TEST

/* The judge judges. */
START_TEST(judge)
{
	char	its[256];

	make(versions[_i], PLAIN, NAME);
	ck_assert_int_eq(tls_judge(hello, len, its), 1);
	ck_assert_str_eq(its, NAME);
	ck_assert_int_eq(tls_judge(hello, len - 1, its), -1);
	make(versions[_i], PLAIN, NULL);
	ck_assert_int_eq(tls_judge(hello, len, its), 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("hello");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, real, 0, NVERSIONS * KINDS);
	tcase_add_test(t, by_hand);
	tcase_add_loop_test(t, names_bad, 0,
	    (int)(sizeof(bad_names) / sizeof(bad_names[0])));
	tcase_add_test(t, long_names);
	tcase_add_test(t, extensions);
	tcase_add_test(t, fields);
	tcase_add_test(t, fragments);
	tcase_add_test(t, record_heads);
	tcase_add_test(t, record_ends);
	tcase_add_test(t, endless);
	tcase_add_loop_test(t, not_tls, 0, 9);
	tcase_add_loop_test(t, judge, 0, NVERSIONS);
	tcase_add_loop_test(t, judged, 0, NVERSIONS);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
