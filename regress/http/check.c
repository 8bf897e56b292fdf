/*
 * check: what http_parse makes of a connection's bytes, for judge.py.
 *
 * Reads records on standard input, four bytes of length (big-endian) and
 * the bytes; writes one line of JSON for each: the messages as the server
 * would take them, one after the other, and how it ended: "ok" (a boundary),
 * "close" (the last message closes), "more", or "error NNN"; and how many bytes
 * the messages took.
 */

#include <arpa/inet.h>

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_parse.h"

static void
put_hex(const char *s, size_t n)
{
	size_t	i;

	for (i = 0; i < n; i++)
		printf("%02x", (uint8_t)s[i]);
}

/* One message from the front; how many bytes it took. */
static enum http_parsed
message(struct http_parse *p, const char *buf, size_t len, int first,
    size_t *ret_used)
{
	enum http_parsed	 r;
	const char		*data;
	char			*body;
	size_t			 at, used, n, blen = 0;

	http_parse_init(p);
	if ((r = http_parse_head(p, buf, len)) != HTTP_P_DONE)
		return r;
	if ((body = malloc(len + 1)) == NULL)
		err(1, NULL);
	for (at = p->head_len;;) {
		r = http_parse_body(p, buf + at, len - at, &used, &data, &n);
		at += used;
		if (r != HTTP_P_DATA)
			break;
		memcpy(body + blen, data, n);
		blen += n;
	}
	if (r == HTTP_P_DONE) {
		printf("%s{\"method\":\"%s\",\"target\":\"", first ? "" : ",",
		    http_method_name(p->method));
		put_hex(buf + p->target.off, p->target.len);
		printf("\",\"body\":\"");
		put_hex(body, blen);
		printf("\"}");
	}
	free(body);
	*ret_used = at;
	return r;
}

static void
connection(const char *buf, size_t len)
{
	struct http_parse	p;
	enum http_parsed	r = HTTP_P_DONE;
	size_t			at = 0, used = 0;
	int			first = 1;

	printf("{\"messages\":[");
	p.close = 0;
	while (at < len && !p.close) {
		r = message(&p, buf + at, len - at, first, &used);
		if (r != HTTP_P_DONE)
			break;
		at += used;
		first = 0;
	}
	if (r == HTTP_P_ERROR)
		printf("],\"end\":\"error %d\",\"why\":\"%s\"", p.status,
		    p.why);
	else
		printf("],\"end\":\"%s\"", r == HTTP_P_MORE ? "more" :
		    p.close ? "close" : "ok");
	printf(",\"used\":%zu}\n", at);
}

int
main(void)
{
	uint32_t	 n;
	char		*buf;

	while (fread(&n, sizeof(n), 1, stdin) == 1) {
		n = ntohl(n);
		if ((buf = malloc(n == 0 ? 1 : n)) == NULL)
			err(1, NULL);
		if (fread(buf, 1, n, stdin) != n)
			errx(1, "short record");
		connection(buf, n);
		free(buf);
	}
	return 0;
}
