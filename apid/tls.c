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

/* What follows the first line, which is the token's. */
static int
load(const char *text, size_t len)
{
	const char	*p = memchr(text, '\n', len);
	size_t		 n = p == NULL ? 0 : len - (size_t)(++p - text);
	enum cert_part	 part;
	char		 why[CERT_WHY];

	if (cert_load(p, n, p, n, &first, &part, why) == 0)
		return 0;
	log_warnx("TLS: %s: %s", part == CERT_KEY ? "key" : "certificate",
	    why);
	return -1;
}

void
tls_load(int fd)
{
	struct stat	 st;
	char		*text;
	int		 rc = -1;

	if (!tls_wanted())
		return;
	cert_init();
	if (fstat(fd, &st) == -1 || st.st_size <= 0 ||
	    st.st_size > (off_t)CERT_PEM_MAX)
		fatalx("TLS: no certificate came with the token");
	text = xmalloc((size_t)st.st_size);
	if (pread(fd, text, (size_t)st.st_size, 0) == st.st_size)
		rc = load(text, (size_t)st.st_size);
	explicit_bzero(text, (size_t)st.st_size);
	free(text);
	if (rc == -1)
		fatalx("TLS: no certificate to serve with");
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
