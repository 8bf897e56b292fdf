/*
 * tls.c: the certificate by which clients on TCP know this server.
 *
 * It comes with the key in the text that `workbox serve' has looked at; a
 * file is nothing that this process could open.  A certificate that comes
 * later is for connections from then on; one that is not good changes
 * nothing.
 *
 * Must never: log a byte of the text, or serve TCP plain where there should
 * be TLS.
 */
#include <sys/stat.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "apid.h"
#include "cert.h"
#include "log.h"
#include "xmalloc.h"

static struct cert	first;		/* of the start, until it is served */

int
tls_wanted(void)
{
	return strcmp(env.conf->tls_certificate, "none") != 0;
}

static void
tell_valid(const struct cert *c)
{
	int64_t	now = (int64_t)time(NULL);
	char	text[256];

	cert_text(c, text, sizeof(text));
	if (now < c->begin)
		log_warnx("TLS: the certificate is not valid yet: %s", text);
	else if (now > c->end)
		log_warnx("TLS: the certificate has expired: %s", text);
	else
		log_info("TLS: %s", text);
}

/* What came, for wipe(); NULL: it is too long or none, or not read. */
static char *
text_of(int fd, size_t *ret_len)
{
	struct stat	 st;
	char		*text;

	if (fstat(fd, &st) == -1 || st.st_size <= 0 ||
	    st.st_size > (off_t)CERT_PEM_MAX)
		return NULL;
	text = xmalloc((size_t)st.st_size);
	if (pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
		free(text);
		return NULL;
	}
	*ret_len = (size_t)st.st_size;
	return text;
}

static void
wipe(char *text, size_t len)
{
	explicit_bzero(text, len);
	free(text);
}

/* What follows the first line, which is the token's. */
static const char *
behind(const char *text, size_t len, size_t *ret_len)
{
	const char	*p = memchr(text, '\n', len);

	p = p == NULL ? text + len : p + 1;
	*ret_len = len - (size_t)(p - text);
	return p;
}

void
tls_load(int fd)
{
	enum cert_part	 part;
	const char	*pem;
	char		*text, why[CERT_WHY];
	size_t		 len, n;
	int		 rc;

	if (!tls_wanted())
		return;
	cert_init();
	if ((text = text_of(fd, &len)) == NULL)
		fatalx("TLS: no certificate came with the token");
	pem = behind(text, len, &n);
	rc = cert_load(pem, n, pem, n, &first, &part, why);
	wipe(text, len);
	if (rc == -1)
		fatalx("TLS: %s: %s", part == CERT_KEY ? "key" :
		    "certificate", why);
}

void
tls_again(int fd)
{
	const char	*pem;
	char		*text;
	size_t		 len, n;

	if (!tls_wanted())
		return;
	if ((text = text_of(fd, &len)) == NULL) {
		log_warnx("TLS: no certificate came: the one before is kept");
		return;
	}
	pem = behind(text, len, &n);
	(void)tls_reload(pem, n, pem, n);	/* it tells */
	wipe(text, len);
}

void
tls_serve(void)
{
	if (first.ctx == NULL)
		return;
	tell_valid(&first);
	http_server_tls(env.http, first.ctx);
	first.ctx = NULL;
}

int
tls_reload(const void *chain, size_t chain_len, const void *key,
    size_t key_len)
{
	struct cert	c;
	enum cert_part	part;
	char		why[CERT_WHY];

	if (!tls_wanted()) {
		log_warnx("TLS: a certificate came, but there is none in the "
		    "configuration of the start: restart");
		return -1;
	}
	if (cert_load(chain, chain_len, key, key_len, &c, &part, why) == -1) {
		log_warnx("TLS: the one before is kept: %s: %s",
		    part == CERT_KEY ? "tls-key" : "tls-certificate", why);
		return -1;
	}
	tell_valid(&c);
	http_server_tls(env.http, c.ctx);
	return 0;
}
