/*
 * cert: a server's certificate with its issuers and its key, in PEM.
 *
 * `workbox serve' looks at what the configuration names with the same eyes
 * with which apid takes it.  Only these two link OpenSSL's libssl.
 */
#ifndef COMMON_CERT_H
#define COMMON_CERT_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/types.h>

#define CERT_WHY	256
#define CERT_CHAIN_MAX	65536UL		/* bytes of the certificates' file */
#define CERT_KEY_MAX	16384UL		/* bytes of the key's file */
#define CERT_MOST	10U		/* certificates of a chain */
/* Bytes of what cert_pem() makes, at most; more is refused when loaded. */
#define CERT_PEM_MAX	(2 * CERT_CHAIN_MAX)

enum cert_part { CERT_CHAIN, CERT_KEY };

struct cert {
	SSL_CTX		*ctx;		/* owned: SSL_CTX_free() */
	int64_t		 begin, end;	/* valid, in seconds since 1970 */
	char		 subject[128];	/* of the server's; printable */
};

/* Before all else here: OpenSSL reads no file, neither now nor later. */
void	cert_init(void);
/*
 * The server's certificate, then each one's issuer; blocks of other kinds
 * are skipped, so that chain and key may be one text.  0, or -1 with the part
 * that is wrong and why, which quotes nothing of the key.  That it is not
 * valid yet or any more is no fault: begin and end tell.
 */
int	cert_load(const void *chain, size_t chain_len, const void *key,
	    size_t key_len, struct cert *ret, enum cert_part *ret_part,
	    char why[CERT_WHY]);
/*
 * What a context of cert_load() holds and nothing else, as one text, which
 * the caller wipes and frees; its length.
 */
char	*cert_pem(const SSL_CTX *, size_t *ret_len);
/* "subject, valid until 2027-01-31" for a log. */
void	cert_text(const struct cert *, char *ret, size_t size);

#endif
