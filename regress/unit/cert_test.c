/*
 * cert_test: common/cert.c, on certificates that are made here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "cert.h"

#define DAY	(24L * 60 * 60)
#define N	12

static EVP_PKEY	*keys[N];
static X509	*certs[N];
static char	 pem[N][2048], key_pem[N][1024];

static void
text_of(BIO *b, char *ret, size_t size)
{
	int	n = BIO_read(b, ret, (int)size - 1);

	ck_assert_int_gt(n, 0);
	ret[n] = '\0';
	(void)BIO_free(b);
}

/* Certificate i, which i + 1 has issued; the last one has issued itself. */
static void
make(int i)
{
	EVP_PKEY	*by = keys[i + 1 < N ? i + 1 : i];
	X509		*x = X509_new();
	X509_NAME	*name;
	char		 cn[16];
	int		 k;

	ASN1_INTEGER_set(X509_get_serialNumber(x), i + 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -DAY);
	X509_gmtime_adj(X509_getm_notAfter(x), DAY);
	X509_set_pubkey(x, keys[i]);
	for (k = 0; k < 2; k++) {
		(void)snprintf(cn, sizeof(cn), "n%d", k == 0 ? i :
		    i + 1 < N ? i + 1 : i);
		name = X509_NAME_new();
		X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
		    (unsigned char *)cn, -1, -1, 0);
		if (k == 0)
			X509_set_subject_name(x, name);
		else
			X509_set_issuer_name(x, name);
		X509_NAME_free(name);
	}
	ck_assert_int_gt(X509_sign(x, by, EVP_sha256()), 0);
	certs[i] = x;
}

static void
setup(void)
{
	BIO	*b;
	int	 i;

	cert_init();
	for (i = 0; i < N; i++)
		ck_assert_ptr_nonnull(keys[i] = EVP_EC_gen("P-256"));
	for (i = 0; i < N; i++) {
		make(i);
		b = BIO_new(BIO_s_mem());
		PEM_write_bio_X509(b, certs[i]);
		text_of(b, pem[i], sizeof(pem[i]));
		b = BIO_new(BIO_s_mem());
		PEM_write_bio_PrivateKey(b, keys[i], NULL, NULL, 0, NULL,
		    NULL);
		text_of(b, key_pem[i], sizeof(key_pem[i]));
	}
}

static void
teardown(void)
{
	int	i;

	for (i = 0; i < N; i++) {
		EVP_PKEY_free(keys[i]);
		X509_free(certs[i]);
	}
}

/* The certificates `from' to `to' in one text. */
static char *
chain(int from, int to)
{
	static char	text[N * sizeof(pem[0])];
	size_t		n = 0;

	for (; from <= to; from++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
		    pem[from]);
	return text;
}

static void
good(const char *text, const char *key, int issuers)
{
	struct cert	 c;
	enum cert_part	 part;
	STACK_OF(X509)	*s = NULL;
	char		 why[CERT_WHY] = "";
	int		 rc = cert_load(text, strlen(text), key, strlen(key),
			    &c, &part, why);

	ck_assert_msg(rc == 0, "%s", why);
	(void)SSL_CTX_get0_chain_certs(c.ctx, &s);
	ck_assert_int_eq(sk_X509_num(s) < 0 ? 0 : sk_X509_num(s), issuers);
	ck_assert_str_eq(c.subject, "CN = n0");
	ck_assert_int_eq(c.end - c.begin, 2 * DAY);
	ck_assert_int_le(labs((long)(c.end - time(NULL)) - DAY), 60);
	SSL_CTX_free(c.ctx);
}

static void
bad(const char *text, size_t len, const char *key, size_t key_len,
    enum cert_part part, const char *what)
{
	struct cert	c = { .ctx = NULL };
	enum cert_part	got = part == CERT_KEY ? CERT_CHAIN : CERT_KEY;
	char		why[CERT_WHY] = "";

	ck_assert_int_eq(cert_load(text, len, key, key_len, &c, &got, why),
	    -1);
	ck_assert_ptr_null(c.ctx);
	ck_assert_int_eq(got, part);
	ck_assert_msg(strstr(why, what) != NULL, "%s: expected %s", why,
	    what);
}

static void
bad_chain(const char *text, const char *what)
{
	bad(text, strlen(text), key_pem[0], strlen(key_pem[0]), CERT_CHAIN,
	    what);
}

static void
bad_key(const char *key, const char *what)
{
	bad(pem[0], strlen(pem[0]), key, strlen(key), CERT_KEY, what);
}

START_TEST(chains)
{
	char	text[8192];

	good(chain(0, 0), key_pem[0], 0);
	good(chain(0, 2), key_pem[0], 2);
	good(chain(0, CERT_MOST - 1), key_pem[0], CERT_MOST - 1);
	bad_chain(chain(0, CERT_MOST), "at most 10 certificates");
	bad_chain("", "expected certificates in PEM");
	bad(NULL, 0, NULL, 0, CERT_CHAIN, "expected certificates in PEM");
	bad_chain("nothing\n", "expected certificates in PEM");
	bad_chain(key_pem[0], "expected certificates in PEM");
	/* another order, one left out, one twice */
	(void)snprintf(text, sizeof(text), "%s%s", pem[1], pem[0]);
	bad_chain(text, "certificate 2 has not issued the one before");
	(void)snprintf(text, sizeof(text), "%s%s", pem[0], pem[2]);
	bad_chain(text, "certificate 2 has not issued the one before");
	(void)snprintf(text, sizeof(text), "%s%s%s", pem[0], pem[1], pem[1]);
	bad_chain(text, "certificate 3 has not issued the one before");
	/* one text for both, and words around them */
	(void)snprintf(text, sizeof(text), "a word\n%s\n%s\nmore\n%s", pem[0],
	    key_pem[0], pem[1]);
	good(text, text, 1);
}
END_TEST

/* Each cut and each byte that is another: an answer, and never a fault. */
START_TEST(broken)
{
	struct cert	c;
	enum cert_part	part;
	char		text[8192], why[CERT_WHY];
	size_t		len, i;

	len = (size_t)snprintf(text, sizeof(text), "%s%s", pem[0], pem[1]);
	for (i = 0; i < len; i++)
		if (cert_load(text, i, key_pem[0], strlen(key_pem[0]), &c,
		    &part, why) == 0)
			SSL_CTX_free(c.ctx);
	for (i = 0; i < len; i++) {
		text[i] ^= 0x11;
		if (cert_load(text, len, key_pem[0], strlen(key_pem[0]), &c,
		    &part, why) == 0)
			SSL_CTX_free(c.ctx);
		text[i] ^= 0x11;
	}
	text[strlen(pem[0]) + 100] = '!';
	bad_chain(text, "certificate 2 cannot be read");
	text[100] = '!';
	bad_chain(text, "certificate 1 cannot be read");
	memset(text, 0, sizeof(text));
	bad(text, sizeof(text), key_pem[0], strlen(key_pem[0]), CERT_CHAIN,
	    "expected certificates in PEM");
	bad(text, CERT_PEM_MAX + 1, key_pem[0], 1, CERT_CHAIN, "at most");
	bad(pem[0], 1, text, CERT_PEM_MAX + 1, CERT_CHAIN, "at most");
}
END_TEST

START_TEST(private_keys)
{
	BIO	*b = BIO_new(BIO_s_mem());
	char	 text[4096];
	size_t	 i;

	bad_key(key_pem[1], "not the key of the certificate");
	bad_key("", "expected a private key in PEM");
	bad_key(pem[0], "expected a private key in PEM");
	PEM_write_bio_PrivateKey(b, keys[0], EVP_aes_128_cbc(),
	    (unsigned char *)(uintptr_t)"pass", 4, NULL, NULL);
	text_of(b, text, sizeof(text));
	bad_key(text, "without a passphrase");
	/* no message has a byte of one that is broken */
	for (i = 30; i < strlen(key_pem[0]) - 30; i++) {
		struct cert	c;
		enum cert_part	part;
		char		why[CERT_WHY] = "";

		memcpy(text, key_pem[0], strlen(key_pem[0]) + 1);
		text[i] = '!';
		if (cert_load(pem[0], strlen(pem[0]), text, strlen(text), &c,
		    &part, why) == 0)
			SSL_CTX_free(c.ctx);
		text[i + 8] = '\0';
		ck_assert_ptr_null(strstr(why, text + i + 1));
	}
}
END_TEST

/* What is handed on is what was used, and nothing else of the files. */
START_TEST(handed_on)
{
	struct cert	c, again;
	enum cert_part	part;
	char		text[8192], why[CERT_WHY], line[128];
	char		*out;
	size_t		len;

	(void)snprintf(text, sizeof(text), "%s%s%s", key_pem[5], pem[0],
	    pem[1]);
	ck_assert_int_eq(cert_load(text, strlen(text), key_pem[0],
	    strlen(key_pem[0]), &c, &part, why), 0);
	out = cert_pem(c.ctx, &len);
	ck_assert_ptr_nonnull(out);
	ck_assert_ptr_null(memmem(out, len, key_pem[5] + 93, 40));
	ck_assert_ptr_nonnull(memmem(out, len, key_pem[0] + 93, 40));
	ck_assert_int_eq(cert_load(out, len, out, len, &again, &part, why),
	    0);
	ck_assert_int_eq(X509_cmp(SSL_CTX_get0_certificate(c.ctx),
	    SSL_CTX_get0_certificate(again.ctx)), 0);
	cert_text(&again, line, sizeof(line));
	ck_assert_ptr_nonnull(strstr(line, "CN = n0, valid until 20"));
	free(out);
	SSL_CTX_free(c.ctx);
	SSL_CTX_free(again.ctx);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("cert");
	TCase	*t = tcase_create("cert");
	SRunner	*r;
	int	 bad_ones;

	tcase_add_unchecked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, chains);
	tcase_add_test(t, broken);
	tcase_add_test(t, private_keys);
	tcase_add_test(t, handed_on);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	bad_ones = srunner_ntests_failed(r);
	srunner_free(r);
	return bad_ones == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
