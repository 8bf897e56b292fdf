/*
 * tls_test: apid/tls.c: what comes with the token, another certificate
 * later, and one that is not good.  The server is played here.
 */
#include <sys/mman.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "apid.h"
#include "cert.h"
#include "log.h"
#include "xmalloc.h"

#define TOKEN	"0123456789abcdef0123456789abcdef"

struct apid		env;
static struct conf	conf;
static SSL_CTX		*served;	/* owned */
static unsigned int	 changes;

void
http_server_tls(struct http_server *s, SSL_CTX *ctx)
{
	ck_assert_ptr_eq(s, env.http);
	SSL_CTX_free(served);
	served = ctx;
	changes++;
}

/* A certificate that has signed itself, valid for a day; its key in *ret. */
static char *
make(const char *cn, char **ret_key)
{
	EVP_PKEY	*key = EVP_EC_gen("P-256");
	X509		*x = X509_new();
	BIO		*b = BIO_new(BIO_s_mem()), *k = BIO_new(BIO_s_mem());
	static char	 text[2][2][4096];
	static int	 n;
	int		 len;

	n = !n;
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN",
	    MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
	PEM_write_bio_X509(b, x);
	PEM_write_bio_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL);
	len = BIO_read(b, text[n][0], 4095);
	text[n][0][len] = '\0';
	len = BIO_read(k, text[n][1], 4095);
	text[n][1][len] = '\0';
	(void)BIO_free(b);
	(void)BIO_free(k);
	X509_free(x);
	EVP_PKEY_free(key);
	*ret_key = text[n][1];
	return text[n][0];
}

static const char *
subject(void)
{
	static char	name[64];

	ck_assert_ptr_nonnull(served);
	X509_NAME_get_text_by_NID(X509_get_subject_name(
	    SSL_CTX_get0_certificate(served)), NID_commonName, name,
	    sizeof(name));
	return name;
}

static void
setup(void)
{
	log_init("tls_test", LOG_L_ERROR, 0);
	cert_init();
	(void)str_copy(conf.tls_certificate, "/a/cert",
	    sizeof(conf.tls_certificate));
	env.conf = &conf;
	env.http = (struct http_server *)&conf;	/* compared alone */
	served = NULL;
	changes = 0;
}

static void
teardown(void)
{
	SSL_CTX_free(served);
}

static int
handed(const char *token, const char *cert, const char *key)
{
	int	fd = memfd_create("token", MFD_CLOEXEC);

	ck_assert_int_ge(dprintf(fd, "%s%s%s", token, cert, key), 0);
	return fd;
}

START_TEST(start)
{
	char	*key, *cert = make("first", &key);
	int	 fd = handed(TOKEN "\n", cert, key);

	tls_load(fd);
	ck_assert_uint_eq(changes, 0);
	tls_serve();
	ck_assert_uint_eq(changes, 1);
	ck_assert_str_eq(subject(), "first");
	(void)close(fd);
}
END_TEST

START_TEST(plain)
{
	char	*key, *cert = make("first", &key);
	int	 fd = handed(TOKEN "\n", cert, key);

	(void)str_copy(conf.tls_certificate, "none",
	    sizeof(conf.tls_certificate));
	tls_load(fd);
	tls_serve();
	ck_assert_uint_eq(changes, 0);
	ck_assert_int_eq(tls_reload(cert, strlen(cert), key, strlen(key)),
	    -1);
	ck_assert_uint_eq(changes, 0);
	(void)close(fd);
}
END_TEST

/* There should be TLS: without what it wants nothing is served. */
START_TEST(start_without)
{
	char	*key, *cert = make("first", &key);

	switch (_i) {
	case 0:
		tls_load(handed(TOKEN, "", ""));
		break;
	case 1:
		tls_load(handed(TOKEN "\n", "", ""));
		break;
	case 2:
		tls_load(handed(TOKEN "\n", cert, ""));
		break;
	case 3:
		tls_load(handed(TOKEN "\n", "", key));
		break;
	case 4:		/* no line of a token before it */
		tls_load(handed("", "", ""));
		break;
	case 5:
		tls_load(-1);
		break;
	default:
		cert[100] = '!';
		tls_load(handed(TOKEN "\n", cert, key));
	}
}
END_TEST

/* What SIGHUP brings: as at the start, with a token's line before it. */
START_TEST(again)
{
	char	*key[2], *cert[2];

	cert[0] = make("first", &key[0]);
	cert[1] = make("second", &key[1]);
	tls_load(handed(TOKEN "\n", cert[0], key[0]));
	tls_serve();
	tls_again(handed(TOKEN "\n", cert[1], key[1]));
	ck_assert_str_eq(subject(), "second");
	tls_again(handed(TOKEN, "", ""));
	tls_again(handed(TOKEN "\n", cert[0], key[1]));
	tls_again(handed("", "", ""));
	tls_again(-1);
	ck_assert_uint_eq(changes, 2);
	ck_assert_str_eq(subject(), "second");
}
END_TEST

START_TEST(reload)
{
	char	*key[2], *cert[2], both[8192];
	SSL	*old;
	size_t	 i;

	cert[0] = make("first", &key[0]);
	cert[1] = make("second", &key[1]);
	tls_load(handed(TOKEN "\n", cert[0], key[0]));
	tls_serve();
	old = SSL_new(served);
	ck_assert_int_eq(tls_reload(cert[1], strlen(cert[1]), key[1],
	    strlen(key[1])), 0);
	ck_assert_str_eq(subject(), "second");
	/* a connection of before has what it had */
	ck_assert_ptr_ne(SSL_get_SSL_CTX(old), served);
	SSL_free(old);
	/* as one text */
	(void)snprintf(both, sizeof(both), "%s%s", cert[0], key[0]);
	ck_assert_int_eq(tls_reload(both, strlen(both), both, strlen(both)),
	    0);
	ck_assert_str_eq(subject(), "first");
	/* what is not good changes nothing */
	ck_assert_uint_eq(changes, 3);
	ck_assert_int_eq(tls_reload(cert[1], strlen(cert[1]), key[0],
	    strlen(key[0])), -1);
	for (i = 0; i < strlen(cert[1]) - 30; i += 7)
		ck_assert_int_eq(tls_reload(cert[1], i, key[1],
		    strlen(key[1])), -1);
	ck_assert_int_eq(tls_reload(cert[1], strlen(cert[1]), "", 0), -1);
	ck_assert_int_eq(tls_reload("", 0, key[1], strlen(key[1])), -1);
	ck_assert_uint_eq(changes, 3);
	ck_assert_str_eq(subject(), "first");
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("tls");
	TCase	*t = tcase_create("tls");
	SRunner	*r;
	int	 bad;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, start);
	tcase_add_test(t, plain);
	tcase_add_loop_exit_test(t, start_without, 1, 0, 7);
	tcase_add_test(t, reload);
	tcase_add_test(t, again);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	bad = srunner_ntests_failed(r);
	srunner_free(r);
	return bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
