/*
 * http_parse_fuzz: any bytes as an HTTP/1.1 message, whole, byte by byte and
 * in pieces: what is told must be the same, and lie within the input.
 */
#include "fuzz.h"
#include "http_parse.h"

struct result {
	enum http_parsed	 end;
	size_t			 used, body;
	uint32_t		 sum;		/* of the body */
	struct http_parse	 parse;
};

static const uint8_t	*input;			/* borrowed: all of it */
static size_t		 input_len;

/* The body, as far as it has come.  1: go on when there is more. */
static int
run_body(const char *buf, size_t len, struct result *r)
{
	const char	*part;
	size_t		 used, n, i;

	do {
		n = 0;
		r->end = http_parse_body(&r->parse, buf + r->used,
		    len - r->used, &used, &part, &n);
		must(used <= len - r->used && n <= used);
		if (r->end == HTTP_P_DATA) {
			must(n > 0 && part >= buf + r->used &&
			    part + n <= buf + r->used + used);
			for (i = 0; i < n; i++)
				r->sum = r->sum * 31 + (uint8_t)part[i];
			r->body += n;
		}
		r->used += used;
	} while (r->end == HTTP_P_DATA);
	must(r->end != HTTP_P_MORE || r->used == len);
	return r->end == HTTP_P_MORE;
}

/* Each step sees a copy of what has come: nothing may be kept of the last. */
static void
run(size_t (*step)(void), struct result *r)
{
	char	*copy;
	size_t	 at = 0, n;
	int	 head = 1, more = 1;

	memset(r, 0, sizeof(*r));
	http_parse_init(&r->parse);
	while (more && at < input_len) {
		n = step();
		at = input_len - at < n ? input_len : at + n;
		must((copy = malloc(at)) != NULL);
		memcpy(copy, input, at);
		if (head) {
			r->end = http_parse_head(&r->parse, copy, at);
			must(r->end != HTTP_P_DATA);
			head = r->end == HTTP_P_MORE;
			more = r->end != HTTP_P_ERROR;
			r->used = r->end == HTTP_P_DONE ?
			    r->parse.head_len : 0;
		}
		if (!head && more)
			more = run_body(copy, at, r);
		free(copy);
	}
}

static void
span_ok(const struct http_parse *p, struct http_span s)
{
	must((size_t)s.off + s.len <= p->head_len);
}

static void
head_ok(const struct http_parse *p)
{
	unsigned int	i;

	must(p->head_len <= input_len && p->head_len <= HTTP_HEAD_MAX);
	must(p->nfields <= HTTP_FIELDS_MAX && p->method < HTTP_M_COUNT);
	span_ok(p, p->target);
	span_ok(p, p->path);
	span_ok(p, p->query);
	span_ok(p, p->host);
	must(p->path.len > 0 && input[p->path.off] == '/');
	for (i = 0; i < p->nfields; i++) {
		span_ok(p, p->field[i].name);
		span_ok(p, p->field[i].value);
		must(p->field[i].name.len > 0);
	}
}

static void
same(const struct result *a, const struct result *b)
{
	const struct http_parse	*p = &a->parse, *q = &b->parse;

	must(a->end == b->end);
	if (a->end == HTTP_P_ERROR) {
		must(p->status == q->status && p->why == q->why);
		must(p->status >= 400 && p->status <= 505 && p->why != NULL);
		return;
	}
	must(a->used == b->used && a->body == b->body && a->sum == b->sum);
	must(p->head_len == q->head_len && p->nfields == q->nfields);
	if (p->head_len == 0)
		return;
	head_ok(p);
	must(p->method == q->method && p->minor == q->minor &&
	    p->close == q->close && p->expect == q->expect &&
	    p->body == q->body && p->length == q->length);
	must(memcmp(&p->target, &q->target, sizeof(p->target)) == 0);
	must(memcmp(&p->path, &q->path, sizeof(p->path)) == 0);
	must(memcmp(&p->query, &q->query, sizeof(p->query)) == 0);
	must(memcmp(&p->host, &q->host, sizeof(p->host)) == 0);
	must(memcmp(p->field, q->field, p->nfields * sizeof(p->field[0])) ==
	    0);
}

static uint32_t	cuts;

static size_t
step_whole(void)
{
	return input_len;
}

static size_t
step_byte(void)
{
	return 1;
}

static size_t
step_any(void)
{
	uint32_t	v = dice(&cuts);

	return 1 + (v & 1 ? v >> 8 & 7 : v >> 8 & 255);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct result	a, b;

	input = data;
	input_len = len;
	run(step_whole, &a);
	cuts = dice_seed(data, len);
	run(step_any, &b);
	same(&a, &b);
	if (len <= 512) {		/* it is copied each time */
		run(step_byte, &b);
		same(&a, &b);
	}
	return 0;
}
