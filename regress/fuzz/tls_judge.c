/*
 * tls_judge.c: see tls_judge.h.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "tls_judge.h"

static struct {
	int	 called;
	char	 name[256];		/* "": none */
} seen;

/* The extensions have been read; what comes then is of no use here. */
static int
on_name(SSL *ssl, int *alert, void *arg)
{
	const char	*name;

	(void)alert;
	(void)arg;
	seen.called = 1;
	name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	if (name != NULL && strlen(name) < sizeof(seen.name))
		memcpy(seen.name, name, strlen(name) + 1);
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *
server(void)
{
	static SSL_CTX	*ctx;

	if (ctx != NULL)
		return ctx;
	if ((ctx = SSL_CTX_new(TLS_server_method())) == NULL ||
	    SSL_CTX_set_min_proto_version(ctx, 0) != 1)
		abort();
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	return ctx;
}

int
tls_judge(const uint8_t *p, size_t n, char ret_name[256])
{
	SSL	*ssl = SSL_new(server());
	BIO	*in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (ssl == NULL || in == NULL || out == NULL || n > INT32_MAX)
		abort();
	memset(&seen, 0, sizeof(seen));
	SSL_set_bio(ssl, in, out);
	if (n > 0 && BIO_write(in, p, (int)n) != (int)n)
		abort();
	(void)SSL_accept(ssl);		/* on_name() ends it, or an error */
	SSL_free(ssl);
	ERR_clear_error();
	if (!seen.called)
		return -1;
	memcpy(ret_name, seen.name, sizeof(seen.name));
	return seen.name[0] != '\0';
}
