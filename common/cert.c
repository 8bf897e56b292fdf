/*
 * cert.c: see cert.h.
 *
 * Must never: open a file, or put a byte of a key into a message.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "cert.h"
#include "xmalloc.h"

static int	bad(char why[CERT_WHY], const char *, ...)
    __attribute__((format(printf, 2, 3)));

static int
bad(char why[CERT_WHY], const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, CERT_WHY, fmt, ap);	/* cut is fine */
	va_end(ap);
	ERR_clear_error();
	return -1;
}

/* What OpenSSL says of the last failure: a constant text. */
static const char *
reason(void)
{
	const char	*s = ERR_reason_error_string(ERR_peek_last_error());

	return s != NULL ? s : "unknown reason";
}

void
cert_init(void)
{
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG |
	    OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CRYPTO_STRINGS |
	    OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		abort();	/* out of memory, as for xmalloc */
}

/* ---- the certificates -------------------------------------------------- */

/* The next certificate; NULL: the end, or, with why, not one. */
static X509 *
next(BIO *b, unsigned int n, char why[CERT_WHY])
{
	X509	*x = PEM_read_bio_X509(b, NULL, NULL, NULL);

	*why = '\0';
	if (x == NULL && ERR_GET_REASON(ERR_peek_last_error()) !=
	    PEM_R_NO_START_LINE)
		(void)bad(why, "certificate %u cannot be read: %s", n,
		    reason());
	ERR_clear_error();
	return x;
}

/* Takes the n-th certificate; before is the one that it must have issued. */
static int
take(SSL_CTX *ctx, X509 *x, unsigned int n, X509 *before, char why[CERT_WHY])
{
	if (n > CERT_MOST)
		return bad(why, "expected at most %u certificates",
		    CERT_MOST);
	if (before == NULL)
		return SSL_CTX_use_certificate(ctx, x) == 1 ? 0 :
		    bad(why, "the certificate cannot be used: %s", reason());
	if (X509_check_issued(x, before) != X509_V_OK)
		return bad(why, "certificate %u has not issued the one before "
		    "it: expected the server's own first, then each one's "
		    "issuer", n);
	return SSL_CTX_add1_chain_cert(ctx, x) == 1 ? 0 :
	    bad(why, "certificate %u cannot be used: %s", n, reason());
}

static int
chain_load(SSL_CTX *ctx, const void *text, size_t len, char why[CERT_WHY])
{
	BIO		*b = BIO_new_mem_buf(len > 0 ? text : "", (int)len);
	X509		*x, *before = NULL;
	unsigned int	 n = 0;
	int		 rc = 0;

	if (b == NULL)
		abort();	/* out of memory, as for xmalloc */
	while (rc == 0 && (x = next(b, n + 1, why)) != NULL) {
		rc = take(ctx, x, ++n, before, why);
		X509_free(before);
		before = x;
	}
	X509_free(before);
	(void)BIO_free(b);
	if (rc == 0 && *why == '\0' && n == 0)
		(void)bad(why, "expected certificates in PEM");
	return rc == 0 && *why == '\0' ? 0 : -1;
}

/* ---- the key ----------------------------------------------------------- */

/* Nobody is there to be asked. */
static int
no_passphrase(char *buf, int size, int writing, void *asked)
{
	(void)buf; (void)size; (void)writing;
	*(int *)asked = 1;
	return -1;
}

static int
key_load(SSL_CTX *ctx, const void *text, size_t len, char why[CERT_WHY])
{
	BIO		*b = BIO_new_mem_buf(len > 0 ? text : "", (int)len);
	EVP_PKEY	*key;
	int		 asked = 0, rc = 0;

	if (b == NULL)
		abort();	/* out of memory, as for xmalloc */
	key = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, &asked);
	(void)BIO_free(b);
	if (key == NULL)
		return bad(why, asked ? "expected a key without a passphrase" :
		    "expected a private key in PEM");
	if (X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) != 1)
		rc = bad(why, "it is not the key of the certificate");
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
		rc = bad(why, "the key cannot be used: %s", reason());
	EVP_PKEY_free(key);
	return rc;
}

/* ---- both -------------------------------------------------------------- */

static int64_t
seconds(const ASN1_TIME *t)
{
	struct tm	tm = { 0 };

	/* one that is no time is before all times */
	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void
facts(struct cert *c)
{
	const X509	*x = SSL_CTX_get0_certificate(c->ctx);
	BIO		*b = BIO_new(BIO_s_mem());
	int		 n;

	c->begin = seconds(X509_get0_notBefore(x));
	c->end = seconds(X509_get0_notAfter(x));
	if (b == NULL)
		abort();	/* out of memory, as for xmalloc */
	(void)X509_NAME_print_ex(b, X509_get_subject_name(x), 0,
	    XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
	n = BIO_read(b, c->subject, sizeof(c->subject) - 1);
	c->subject[n > 0 ? n : 0] = '\0';
	(void)BIO_free(b);
}

int
cert_load(const void *chain, size_t chain_len, const void *key,
    size_t key_len, struct cert *ret, enum cert_part *ret_part,
    char why[CERT_WHY])
{
	struct cert	c = { .ctx = SSL_CTX_new(TLS_server_method()) };
	enum cert_part	part = CERT_CHAIN;
	int		rc;

	if (c.ctx == NULL)
		abort();	/* out of memory, as for xmalloc */
	if (chain_len > CERT_PEM_MAX || key_len > CERT_PEM_MAX)
		rc = bad(why, "expected at most %lu bytes", CERT_PEM_MAX);
	else if ((rc = chain_load(c.ctx, chain, chain_len, why)) == 0) {
		part = CERT_KEY;
		rc = key_load(c.ctx, key, key_len, why);
	}
	if (rc == -1) {
		SSL_CTX_free(c.ctx);
		*ret_part = part;
		return -1;
	}
	facts(&c);
	*ret = c;
	return 0;
}

char *
cert_pem(const SSL_CTX *ctx, size_t *ret_len)
{
	STACK_OF(X509)	*issuers = NULL;
	BIO		*b = BIO_new(BIO_s_secmem());
	char		*text, *ret;
	long		 len;
	int		 i, ok;

	if (b == NULL)
		abort();	/* out of memory, as for xmalloc */
	ok = PEM_write_bio_X509(b, SSL_CTX_get0_certificate(ctx)) == 1;
	/* not const in OpenSSL 3.0, though it changes nothing */
	(void)SSL_CTX_get0_chain_certs((SSL_CTX *)(uintptr_t)ctx, &issuers);
	for (i = 0; i < sk_X509_num(issuers); i++)
		ok &= PEM_write_bio_X509(b, sk_X509_value(issuers, i)) == 1;
	ok &= PEM_write_bio_PrivateKey(b, SSL_CTX_get0_privatekey(ctx), NULL,
	    NULL, 0, NULL, NULL) == 1;
	len = BIO_get_mem_data(b, &text);
	if (!ok || len <= 0)
		abort();	/* out of memory, as for xmalloc */
	ret = xmalloc((size_t)len);
	memcpy(ret, text, (size_t)len);
	OPENSSL_cleanse(text, (size_t)len);
	(void)BIO_free(b);
	*ret_len = (size_t)len;
	return ret;
}

void
cert_text(const struct cert *c, char *ret, size_t size)
{
	time_t		end = (time_t)c->end;
	struct tm	tm = { 0 };

	(void)gmtime_r(&end, &tm);
	(void)snprintf(ret, size, "%s, valid until %04d-%02d-%02d",
	    c->subject, tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}
