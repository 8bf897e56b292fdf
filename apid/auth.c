/*
 * auth.c: who asks.
 *
 * There is one key until keys exist: the token that `serve' read.  Only its
 * SHA-256 stays in memory; what a client sends is hashed and the digests are
 * compared in constant time, so that neither the time nor a core dump tells
 * a byte of it.  Refused requests are records (auth.failed), as many a
 * second as nobody can fill the log with; what is left out is counted in the
 * next one.
 *
 * Must never: log, keep or compare the token itself.
 */
#include <sys/stat.h>

#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define TOKEN_MIN	16
#define TOKEN_MAX	255
#define FAIL_BURST	20
#define FAIL_RATE	1		/* records a second */

static uint8_t		key[SHA256_DIGEST_LENGTH];
static struct bucket	fails;
static unsigned int	untold;		/* since the last record */

static void
digest(const char *s, size_t len, uint8_t ret[SHA256_DIGEST_LENGTH])
{
	SHA2_CTX	c;

	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)s, len);
	SHA256Final(ret, &c);
	explicit_bzero(&c, sizeof(c));
}

int
auth_load(int fd)
{
	char	buf[TOKEN_MAX + 1], *end;
	ssize_t	n = pread(fd, buf, sizeof(buf), 0);

	if (n == -1)
		return -1;
	/* behind the first line is what tls.c wants */
	if ((end = memchr(buf, '\n', (size_t)n)) != NULL)
		n = end - buf;
	if (n < TOKEN_MIN || n > TOKEN_MAX) {
		explicit_bzero(buf, sizeof(buf));
		errno = EINVAL;
		return -1;
	}
	digest(buf, (size_t)n, key);
	explicit_bzero(buf, sizeof(buf));
	return 0;
}

int
auth_check_token(const char *bearer)
{
	uint8_t	d[SHA256_DIGEST_LENGTH];

	digest(bearer, strlen(bearer), d);
	return secret_equal(d, key, sizeof(d));
}

static void
auth_record(const struct http_req *r)
{
	struct event_auth_failed	e = { 0 };
	char				reason[128] = "";
	const char			*path = http_path(r);

	if (!bucket_take(&fails, FAIL_BURST, FAIL_RATE)) {
		untold++;
		return;
	}
	if (untold != 0)
		(void)snprintf(reason, sizeof(reason),
		    "%u more were not recorded", untold);
	untold = 0;
	/* cut where too long */
	(void)str_copy(e.method, http_method(r), sizeof(e.method));
	(void)str_copy(e.path, path, sizeof(e.path));
	(void)str_copy(e.peer, http_peer(r), sizeof(e.peer));
	event_append(EVENT_AUTH_FAILED, &e, "nobody", "", "", http_id(r),
	    "denied", reason, NULL, NULL);
}

int
auth_request(struct http_req *r, void *arg)
{
	const char	*h = http_header(r, "authorization");
	int		 bearer;

	(void)arg;
	bearer = h != NULL && strncasecmp(h, "Bearer ", 7) == 0;
	if (bearer) {
		for (h += 7; *h == ' '; h++)
			;
		if (auth_check_token(h)) {
			http_set_caller(r, APID_TENANT, "token");
			if (route_allows(http_route(r), SCOPE_ADMIN))
				return 0;
			http_fail(r, CODE_FORBIDDEN, NULL, "The key has not "
			    "the scope %s.",
			    scope_name(http_route(r)->scope));
			return -1;
		}
	}
	auth_record(r);
	http_fail(r, CODE_UNAUTHORIZED, NULL, bearer ?
	    "The key is not valid." : h == NULL ?
	    "Send the key: \"Authorization: Bearer ...\"." :
	    "Expected another scheme: \"Authorization: Bearer ...\".");
	return -1;
}
