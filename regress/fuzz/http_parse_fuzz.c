/*
 * http_parse_fuzz: libFuzzer's way into http_parse.  The first byte says how
 * the rest is cut into pieces; the result of the pieces must be that of the
 * whole.
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I../../common \
 *	    http_parse_fuzz.c ../../common/http_parse.c
 */
#include <stdlib.h>
#include <string.h>

#include "http_parse.h"

struct result {
	enum http_parsed	 end;
	int			 status;
	size_t			 head, used, body;
	uint32_t		 sum;		/* of the body */
	struct http_parse	 parse;
};

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
run(const uint8_t *data, size_t len, size_t step, struct result *r)
{
	enum http_parsed	 e = HTTP_P_MORE;
	const char		*part;
	char			*copy;
	size_t			 at = 0, used, n, i;
	int			 head = 1;

	memset(r, 0, sizeof(*r));
	http_parse_init(&r->parse);
	while (e == HTTP_P_MORE) {
		at = len - at < step ? len : at + step;
		if ((copy = malloc(at + 1)) == NULL)
			abort();
		memcpy(copy, data, at);
		if (head && (e = http_parse_head(&r->parse, copy, at)) ==
		    HTTP_P_DONE) {
			head = 0;
			r->head = r->used = r->parse.head_len;
		}
		while (!head && e != HTTP_P_ERROR) {
			e = http_parse_body(&r->parse, copy + r->used,
			    at - r->used, &used, &part, &n);
			r->used += used;
			if (r->used > at)
				abort();
			if (e != HTTP_P_DATA)
				break;
			for (i = 0; i < n; i++)
				r->sum = r->sum * 31 + (uint8_t)part[i];
			r->body += n;
		}
		free(copy);
		if (at == len)
			break;
	}
	r->end = e;
	r->status = e == HTTP_P_ERROR ? r->parse.status : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct result	a, b;

	if (len < 2)
		return 0;
	run(data + 1, len - 1, len, &a);
	run(data + 1, len - 1, 1u + data[0], &b);
	if (a.end != b.end || a.status != b.status)
		abort();
	if (a.end == HTTP_P_ERROR) {
		if (a.status < 400 || a.status > 599 || a.parse.why == NULL)
			abort();
		return 0;
	}
	if (a.head != b.head || a.used != b.used || a.body != b.body ||
	    a.sum != b.sum || a.parse.nfields != b.parse.nfields ||
	    a.parse.length != b.parse.length || a.parse.body != b.parse.body)
		abort();
	return 0;
}
