/*
 * tls: the certificate that the configuration names and its key, as serve
 * hands them to apid and doctor looks at them, and what may be without.
 *
 * Every fault names the word and the file.  The key is wiped where it was.
 */
#include <sys/stat.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "cert.h"
#include "host.h"
#include "xmalloc.h"

#define DAY	(24 * 60 * 60)
#define SOON	(14 * DAY)	/* before its end somebody should know */

static int	bad(struct finding *, const char *cure, const char *, ...)
    __attribute__((format(printf, 3, 4)));

static int
bad(struct finding *f, const char *cure, const char *fmt, ...)
{
	char	text[sizeof f->detail];
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);	/* cut is fine */
	va_end(ap);
	finding_set(f, V_FAIL, cure, "%s", text);
	return -1;
}

/* ---- files ------------------------------------------------------------- */

/*
 * The text of a file, or NULL and a finding.  Whoever could write it could be
 * this server, and for the key that is so of whoever can read it; a group may
 * do that, as Debian's ssl-cert.
 */
static char *
take_file(const char *word, const char *file, size_t max, mode_t never,
    size_t *ret_len, struct finding *f)
{
	auto_close int	 fd = look_read(file);
	auto_free char	*cure = NULL;
	struct stat	 st;
	char		*text;

	if (fd == -1 || fstat(fd, &st) == -1) {
		(void)bad(f, "a file that root can read", "%s: %s: %s", word,
		    file, strerror(errno));
		return NULL;
	}
	if ((st.st_mode & never) != 0) {
		cure = xasprintf("chmod %s %s", never & S_IROTH ? "600" :
		    "go-w", file);
		(void)bad(f, cure, "%s: %s: others than its owner can %s it",
		    word, file, st.st_mode & never & S_IROTH ? "read" :
		    "write");
		return NULL;
	}
	if ((text = text_fd(fd, max, ret_len)) == NULL)
		(void)bad(f, "a file in PEM", "%s: %s: %s", word, file,
		    strerror(errno));
	return text;
}

static void
wipe(char *text, size_t len)
{
	if (text != NULL)
		explicit_bzero(text, len);
	free(text);
}

int
tls_take(const struct conf *c, struct cert *ret, struct finding *f)
{
	char		*chain, *key = NULL, why[CERT_WHY];
	size_t		 chain_len = 0, key_len = 0;
	enum cert_part	 part;
	int		 rc = -1;

	cert_init();
	chain = take_file("tls-certificate", c->tls_certificate,
	    CERT_CHAIN_MAX, S_IWGRP | S_IWOTH, &chain_len, f);
	if (chain != NULL)
		key = take_file("tls-key", c->tls_key, CERT_KEY_MAX, S_IWGRP |
		    S_IRWXO, &key_len, f);
	if (key != NULL)
		rc = cert_load(chain, chain_len, key, key_len, ret, &part,
		    why);
	if (key != NULL && rc == -1)
		(void)bad(f, part == CERT_KEY ? "the key that belongs to "
		    "tls-certificate, in PEM and without a passphrase" :
		    "the server's certificate in PEM, then each one's issuer",
		    "%s: %s: %s", part == CERT_KEY ? "tls-key" :
		    "tls-certificate", part == CERT_KEY ? c->tls_key :
		    c->tls_certificate, why);
	wipe(chain, chain_len);
	wipe(key, key_len);
	return rc;
}

/* ---- addresses --------------------------------------------------------- */

static int
loopback(const char *addr)
{
	struct sockaddr_storage	ss = { 0 };
	struct sockaddr_in	in4;
	struct sockaddr_in6	in6;

	if (config_listen(addr, &ss) == -1)
		return 0;
	memcpy(&in4, &ss, sizeof in4);
	memcpy(&in6, &ss, sizeof in6);
	return ss.ss_family == AF_INET ?
	    ntohl(in4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET :
	    IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

int
tls_wanted(const struct conf *c)
{
	return strcmp(c->tls_certificate, "none") != 0;
}

int
tls_lacks(const struct conf *c, const char *addr)
{
	return !tls_wanted(c) && strcmp(addr, "none") != 0 && !loopback(addr);
}

/* The first address of the configuration that lacks it, or NULL. */
static const char *
lacking(const struct conf *c)
{
	const char	*addr;
	size_t		 i;

	for (i = 0; i < c->listen.n; i++) {
		addr = (const char *)c->listen.v[i].data;
		if (tls_lacks(c, addr))
			return addr;
	}
	return NULL;
}

/* ---- doctor's check ---------------------------------------------------- */

static void
check_certificate(const struct conf *c, struct finding *f)
{
	struct cert	cert;
	int64_t		now = (int64_t)time(NULL);
	char		text[256];

	if (tls_take(c, &cert, f) == -1)
		return;
	cert_text(&cert, text, sizeof text);
	if (now > cert.end)
		finding_set(f, V_WARN, "a new certificate: no client trusts "
		    "this one", "tls-certificate: %s: it has expired: %s",
		    c->tls_certificate, text);
	else if (now < cert.begin)
		finding_set(f, V_WARN, "set the clock, or wait",
		    "tls-certificate: %s: it is not valid yet: %s",
		    c->tls_certificate, text);
	else if (cert.end - now < SOON)
		finding_set(f, V_WARN, "a new certificate",
		    "tls-certificate: %s: it ends in %d days: %s",
		    c->tls_certificate, (int)((cert.end - now) / DAY), text);
	else
		finding_set(f, V_OK, "", "%s", text);
	SSL_CTX_free(cert.ctx);
}

void
check_tls(const struct conf *c, struct finding *f)
{
	const char	*addr = lacking(c);

	if (tls_wanted(c))
		check_certificate(c, f);
	else if (addr == NULL)
		finding_set(f, V_OK, "", "no tls-certificate: plain HTTP, on "
		    "loopback alone");
	else if (c->plain_http_beyond_loopback)
		finding_set(f, V_WARN, "tls-certificate and tls-key, or a "
		    "proxy that has them", "the key of the API crosses the "
		    "network in clear at %s, as plain-http-beyond-loopback "
		    "says", addr);
	else
		finding_set(f, V_FAIL, TLS_CURE, TLS_LACKS, addr);
}
