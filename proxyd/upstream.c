/*
 * upstream.c: the HTTP proxy of a site, behind which the host is: what is
 * said to it, and what it answers (CONNECT: RFC 9110, 9.3.6).
 *
 * With it names are resolved there and not here: which address a box reaches
 * is the proxy's matter, and what is sealed here is not held against it.
 *
 * Its answer is a peer's as any other: a head of bounded size, of which the
 * status alone is of interest.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "proxyd.h"
#include "xmalloc.h"

#define SCHEME	"http://"

static struct {
	char		 host[ALLOW_NAME];	/* "": there is none */
	unsigned int	 port;
	struct resolved	 at;			/* n is 1: an address */
} up;

static void
take_address(void)
{
	up.at.why = RESOLVED_NONE;
	up.at.v6[0] = inet_pton(AF_INET6, up.host, up.at.addr[0]) == 1;
	if (!up.at.v6[0] && inet_pton(AF_INET, up.host, up.at.addr[0]) != 1)
		return;
	up.at.n = 1;
	up.at.why = RESOLVED_OK;
}

/* http://HOST:PORT, which `workbox serve' has looked at. */
void
upstream_init(const struct conf *c)
{
	const char	*url = c->upstream_proxy, *colon = strrchr(url, ':');
	size_t		 n, in = strlen(SCHEME);

	memset(&up, 0, sizeof(up));
	if (strcmp(url, "none") == 0)
		return;
	if (strncmp(url, SCHEME, in) != 0 || colon < url + in)
		fatalx("upstream-proxy %s: expected http://HOST:PORT", url);
	n = (size_t)(colon - url) - in;
	if (url[in] == '[' && url[in + n - 1] == ']') {
		in++;
		n -= 2;
	}
	if (n == 0 || n >= sizeof(up.host))
		fatalx("upstream-proxy %s: expected http://HOST:PORT", url);
	memcpy(up.host, url + in, n);
	up.host[n] = '\0';
	up.port = (unsigned int)strtoul(colon + 1, NULL, 10);
	take_address();
}

const char *
upstream_host(unsigned int *ret_port, const struct resolved **ret_at)
{
	if (up.host[0] == '\0')
		return NULL;
	*ret_port = up.port;
	*ret_at = up.at.n == 0 ? NULL : &up.at;
	return up.host;
}

size_t
upstream_ask(const char *name, unsigned int port, char ret[UPSTREAM_MAX])
{
	return (size_t)snprintf(ret, UPSTREAM_MAX, "CONNECT %s:%u HTTP/1.1\r\n"
	    "Host: %s:%u\r\n\r\n", name, port, name, port);
}

/* The length of the head at the begin of n bytes, or 0. */
static size_t
head_length(const uint8_t *data, size_t n)
{
	const uint8_t	*end = memmem(data, n, "\r\n\r\n", 4);

	return end == NULL ? 0 : (size_t)(end - data) + 4;
}

int
upstream_told(const uint8_t *data, size_t n, size_t *ret_head)
{
	size_t	len = head_length(data, n);

	if (len == 0)
		return n < UPSTREAM_MAX ? 0 : -1;
	/* HTTP/1.x 2xx */
	if (len < 12 || memcmp(data, "HTTP/1.", 7) != 0 || data[8] != ' ' ||
	    data[9] != '2')
		return -1;
	*ret_head = len;
	return 1;
}
