/*
 * http_parse_test.c: what is taken and what is refused, that it does not
 * matter how the bytes came, the limits to the byte, the tables to the
 * character, and a mutation of every good request.
 *
 * The larger corpus, with other implementations as judges, is in
 * regress/http.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_parse.h"

#define H	"Host: a\r\n"

/* Everything a caller learns, as text. */
struct seen { char text[24000]; size_t len; int done; size_t used; };

static void
see(struct seen *s, const char *before, const char *a, size_t n)
{
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len,
	    "%s%.*s", before, (int)n, a);
	ck_assert_uint_lt(s->len, sizeof(s->text));
}

static void
see_head(struct seen *s, const struct http_parse *p, const char *buf)
{
	char		 num[128];
	unsigned int	 i;

	(void)snprintf(num, sizeof(num), "%s 1.%u c%d e%d b%d l%llu h%zu n%u",
	    http_method_name(p->method), p->minor, p->close, p->expect,
	    (int)p->body, (unsigned long long)p->length, p->head_len,
	    p->nfields);
	see(s, "", num, strlen(num));
	see(s, "|", buf + p->target.off, p->target.len);
	see(s, "|", buf + p->path.off, p->path.len);
	see(s, "|", buf + p->query.off, p->query.len);
	see(s, "|", buf + p->host.off, p->host.len);
	for (i = 0; i < p->nfields; i++) {
		see(s, "|", buf + p->field[i].name.off,
		    p->field[i].name.len);
		see(s, "=", buf + p->field[i].value.off,
		    p->field[i].value.len);
	}
	see(s, "|body:", "", 0);
}

/* cut returns how far the bytes have come in step i; the last is len. */
static void
parse(const char *bytes, size_t len, size_t (*cut)(unsigned int, size_t),
    struct seen *s)
{
	struct http_parse	 p;
	enum http_parsed	 r = HTTP_P_MORE;
	const char		*data;
	char			*part = NULL, num[64];
	size_t			 at, used, n, body = 0;
	unsigned int		 i;
	int			 head = 1;

	memset(s, 0, sizeof(*s));
	http_parse_init(&p);
	for (i = 0; r != HTTP_P_ERROR && !s->done; i++) {
		at = cut(i, len);
		/* exact and moved, so that a sanitizer sees every fault */
		free(part);
		part = malloc(at + 1);
		memcpy(part, bytes, at);
		part = realloc(part, at == 0 ? 1 : at);
		if (head) {
			r = http_parse_head(&p, part, at);
			if (r == HTTP_P_DONE) {
				see_head(s, &p, part);
				body = p.head_len;
				head = 0;
			}
		}
		while (!head && r != HTTP_P_ERROR) {
			r = http_parse_body(&p, part + body, at - body,
			    &used, &data, &n);
			ck_assert_uint_le(used, at - body);
			body += used;
			if (r == HTTP_P_DATA) {
				ck_assert_uint_gt(n, 0);
				see(s, "", data, n);
				continue;
			}
			s->done = r == HTTP_P_DONE;
			break;
		}
		if (at == len)
			break;
	}
	if (r == HTTP_P_ERROR) {
		s->len = 0;
		(void)snprintf(num, sizeof(num), "%d", p.status);
		see(s, "error ", num, strlen(num));
		ck_assert_ptr_nonnull(p.why);
		ck_assert_int_eq(http_parse_head(&p, part, at),
		    HTTP_P_ERROR);
		ck_assert_int_eq(http_parse_body(&p, part, at, &used, &data,
		    &n), HTTP_P_ERROR);
	} else if (!s->done)
		see(s, "|more", "", 0);
	s->used = body;
	free(part);
}

static size_t
whole(unsigned int i, size_t len)
{
	(void)i;
	return len;
}

static size_t
bytewise(unsigned int i, size_t len)
{
	return i < len ? i : len;
}

static size_t	split_at;

static size_t
split(unsigned int i, size_t len)
{
	return i == 0 ? split_at : len;
}

static uint64_t	seed;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static size_t
random_cut(unsigned int i, size_t len)
{
	static size_t	at;

	at = i == 0 ? 0 : at + 1 + rnd(13);
	return at < len ? at : len;
}

/* Every way of coming gives what the whole gives. */
static void
same_always(const char *bytes, size_t len, const struct seen *want)
{
	struct seen	got;

	for (split_at = 0; split_at <= len; split_at++) {
		parse(bytes, len, split, &got);
		ck_assert_str_eq(got.text, want->text);
	}
	parse(bytes, len, bytewise, &got);
	ck_assert_str_eq(got.text, want->text);
}

static const struct { const char *bytes, *want; } good[] = {
	{ "GET / HTTP/1.1\r\n" H "\r\n",
	  "GET 1.1 c0 e0 b0 l0 h27 n1|/|/||a|Host=a|body:" },
	{ "GET /a/b?c=d&e HTTP/1.1\r\n" H "\r\n",
	  "GET 1.1 c0 e0 b0 l0 h36 n1|/a/b?c=d&e|/a/b|c=d&e|a|Host=a|body:" },
	{ "GET /? HTTP/1.1\r\n" H "\r\n",
	  "GET 1.1 c0 e0 b0 l0 h28 n1|/?|/||a|Host=a|body:" },
	{ "GET / HTTP/1.0\r\n" H "Connection: keep-alive\r\n\r\n",
	  "GET 1.0 c1 e0 b0 l0 h51 n2|/|/||a|Host=a|Connection=keep-alive"
	  "|body:" },
	{ "GET / HTTP/1.1\r\n" H "connection: x, CLOSE\r\n\r\n",
	  "GET 1.1 c1 e0 b0 l0 h49 n2|/|/||a|Host=a|connection=x, CLOSE"
	  "|body:" },
	{ "POST /x HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
	  "POST 1.1 c0 e0 b1 l3 h48 n2|/x|/x||a|Host=a|Content-Length=3"
	  "|body:abc" },
	{ "POST /x HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n",
	  "POST 1.1 c0 e0 b1 l0 h48 n2|/x|/x||a|Host=a|Content-Length=0"
	  "|body:" },
	{ "POST /x HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n"
	  "3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n",
	  "POST 1.1 c0 e0 b2 l0 h57 n2|/x|/x||a|Host=a"
	  "|Transfer-Encoding=Chunked|body:abc0123456789" },
	{ "POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
	  "000\r\n\r\n",
	  "POST 1.1 c0 e0 b2 l0 h57 n2|/x|/x||a|Host=a"
	  "|Transfer-Encoding=chunked|body:" },
	{ "POST /x HTTP/1.1\r\n" H "Expect: 100-Continue\r\n"
	  "Content-Length: 1\r\n\r\nz",
	  "POST 1.1 c0 e1 b1 l1 h70 n3|/x|/x||a|Host=a|Expect=100-Continue"
	  "|Content-Length=1|body:z" },
	{ "DELETE /%41%2f..a/... HTTP/1.1\r\nHOST:[::1]:80\r\nA:\r\n"
	  "B: \t x \t y\t \r\n\xc3: x\r\n" + 0,
	  "error 400" },
	{ "DELETE /%41%2f..a/... HTTP/1.1\r\nHOST:[::1]:80\r\nA:\r\n"
	  "B: \t x \t y\t \r\nC:\xc3\xa4\r\n\r\n",
	  "DELETE 1.1 c0 e0 b0 l0 h73 n4|/%41%2f..a/...|/%41%2f..a/...||"
	  "[::1]:80|HOST=[::1]:80|A=|B=x \t y|C=\xc3\xa4|body:" },
};

START_TEST(good_requests)
{
	struct seen	s;
	size_t		i, len, n;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		len = strlen(good[i].bytes);
		parse(good[i].bytes, len, whole, &s);
		ck_assert_str_eq(s.text, good[i].want);
		same_always(good[i].bytes, len, &s);
		if (strncmp(good[i].want, "error", 5) == 0)
			continue;
		ck_assert_int_eq(s.done, 1);
		ck_assert_uint_eq(s.used, len);
		/* no beginning of it is a whole request */
		for (n = 0; n < len; n++) {
			parse(good[i].bytes, n, whole, &s);
			ck_assert_int_eq(s.done, 0);
			ck_assert_ptr_nonnull(strstr(s.text, "|more"));
		}
	}
}
END_TEST

static const struct { int status; const char *bytes; } bad[] = {
	/* the request line */
	{ 400, "\r\nGET / HTTP/1.1\r\n" H "\r\n" },
	{ 400, " GET / HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET  / HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /  HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET\t/ HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET / HTTP/1.1 \r\n" H "\r\n" },
	{ 400, "GET /\r\n" H "\r\n" },
	{ 400, "GET / http/1.1\r\n" H "\r\n" },
	{ 400, "GET / HTTP/1.10\r\n" H "\r\n" },
	{ 400, "GET / HTTP/1\r\n" H "\r\n" },
	{ 400, "GET / HTTP/+1.1\r\n" H "\r\n" },
	{ 400, "GET / HTTP/ 1.1\r\n" H "\r\n" },
	{ 505, "GET / HTTP/1.2\r\n" H "\r\n" },
	{ 505, "GET / HTTP/2.0\r\n" H "\r\n" },
	{ 505, "GET / HTTP/0.9\r\n" H "\r\n" },
	{ 501, "BREW / HTTP/1.1\r\n" H "\r\n" },
	{ 501, "TRACE / HTTP/1.1\r\n" H "\r\n" },
	{ 501, "GETX / HTTP/1.1\r\n" H "\r\n" },
	{ 400, "get / HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GE\x80T / HTTP/1.1\r\n" H "\r\n" },
	{ 400, "G(T / HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET / HTTP/1.1\n" H "\r\n" },
	{ 400, "GET / HTTP/1.1\r" H "\r\n" },
	{ 400, "GET / HTTP/1.1\r\r\n" H "\r\n" },
	{ 400, "\x16\x03\x01\x02" },
	/* the target */
	{ 400, "OPTIONS * HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET http://a/ HTTP/1.1\r\n" H "\r\n" },
	{ 501, "CONNECT /a:80 HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET a HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /#a HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /\x80 HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /\x7f HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /% HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /%4 HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /%4g HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /%00 HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /?a=%00 HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /?% HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /. HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /a/.. HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /../a HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /a/./b HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /a/..?b HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /%2e%2E/ HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /a%2f..%2fb HTTP/1.1\r\n" H "\r\n" },
	{ 400, "GET /a%5c.. HTTP/1.1\r\n" H "\r\n" },
	/* fields */
	{ 400, "GET / HTTP/1.1\r\n\r\n" },
	{ 400, "GET / HTTP/1.0\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A : b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H " A: b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: b\r\n\tc\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n A: b\r\n" H "\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H ": b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A\x0b: b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: \x0b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: \x7f\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: b\rc\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: b\nc: d\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A: b\r\n\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "\xc3\xa4: b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "A[]: b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H H "\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "host: b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost:\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a..b\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: .a\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a:\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: []\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: a%41\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "Connection: a b\r\n\r\n" },
	{ 417, "GET / HTTP/1.1\r\n" H "Expect: a\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "Origin: a\r\nOrigin: a\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" H "Authorization: a\r\n"
	    "Authorization: b\r\n\r\n" },
	/* the body's length */
#define P	"POST / HTTP/1.1\r\n" H
#define T	"Transfer-Encoding: chunked\r\n"
	{ 400, P "Content-Length:\r\n\r\n" },
	{ 400, P "Content-Length: +1\r\n\r\na" },
	{ 400, P "Content-Length: -1\r\n\r\na" },
	{ 400, P "Content-Length: 0x1\r\n\r\na" },
	{ 400, P "Content-Length: 1,1\r\n\r\na" },
	{ 400, P "Content-Length: 1, 1\r\n\r\na" },
	{ 400, P "Content-Length: 1 1\r\n\r\na" },
	{ 400, P "Content-Length: 1\r\nContent-Length: 1\r\n\r\na" },
	{ 400, P "Content-Length: 1\r\nContent-Length: 2\r\n\r\na" },
	{ 400, P "Content-Length: 1000000000000000000\r\n\r\na" },
	{ 400, P "Content-Length: 18446744073709551617\r\n\r\na" },
	{ 400, P "Content-Length: 1\r\n" T "\r\n0\r\n\r\n" },
	{ 400, P T "Content-Length: 0\r\n\r\n0\r\n\r\n" },
	{ 400, P T T "\r\n0\r\n\r\n" },
	{ 501, P "Transfer-Encoding: chunked, chunked\r\n\r\n" },
	{ 501, P "Transfer-Encoding: gzip, chunked\r\n\r\n" },
	{ 501, P "Transfer-Encoding: identity\r\n\r\n" },
	{ 501, P "Transfer-Encoding:\r\n\r\n" },
	{ 501, P "Transfer-Encoding: xchunked\r\n\r\n" },
	{ 501, P "Transfer-Encoding: \"chunked\"\r\n\r\n" },
	{ 501, P "Transfer-Encoding: chunked;a=b\r\n\r\n" },
	{ 501, P "Transfer-Encoding: chunked,\r\n\r\n" },
	{ 400, P "Transfer-Encoding : chunked\r\n\r\n" },
	{ 400, P "Transfer-Encoding\x0b: chunked\r\n\r\n" },
	{ 400, "POST / HTTP/1.0\r\n" H T "\r\n0\r\n\r\n" },
	/* chunks */
	{ 400, P T "\r\n\r\n" },
	{ 400, P T "\r\n+1\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n-1\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n0x1\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\ng\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n 1\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1 \r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1;a\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1;a=b\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1\ra\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1\r\nab\r\n0\r\n\r\n" },
	{ 400, P T "\r\n1\r\na\n0\r\n\r\n" },
	{ 400, P T "\r\n1\r\na\r0\r\n\r\n" },
	{ 400, P T "\r\n2\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n000000001\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n10000000000000000\r\na\r\n0\r\n\r\n" },
	{ 400, P T "\r\n0\r\nA: b\r\n\r\n" },
	{ 400, P T "\r\n0\r\n\n" },
	{ 400, P T "\r\n0\n\n" },
	{ 400, P T "\r\n0;a\r\n\r\n" },
#undef P
#undef T
};

START_TEST(bad_requests)
{
	struct seen	s;
	char		want[32];
	size_t		i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(want, sizeof(want), "error %d", bad[i].status);
		parse(bad[i].bytes, strlen(bad[i].bytes), whole, &s);
		ck_assert_msg(strcmp(s.text, want) == 0, "%s: %s, not %s",
		    bad[i].bytes, s.text, want);
		same_always(bad[i].bytes, strlen(bad[i].bytes), &s);
	}
}
END_TEST

/* What follows a message is left alone. */
START_TEST(next_message)
{
	static const char	two[] = "GET / HTTP/1.1\r\n" H "\r\n"
				    "\x01 junk";
	struct seen		s;

	parse(two, sizeof(two) - 1, whole, &s);
	ck_assert_int_eq(s.done, 1);
	ck_assert_uint_eq(s.used, 27);
}
END_TEST

/* ---- limits ------------------------------------------------------------ */

static int
status_of(const char *bytes, size_t len)
{
	struct http_parse	 p;
	const char		*data;
	size_t			 used, n;
	enum http_parsed	 r;

	http_parse_init(&p);
	r = http_parse_head(&p, bytes, len);
	if (r == HTTP_P_DONE && p.body != HTTP_B_NONE)
		r = http_parse_body(&p, bytes + p.head_len,
		    len - p.head_len, &used, &data, &n);
	return r == HTTP_P_ERROR ? p.status : r == HTTP_P_MORE ? 0 : 200;
}

static int
with_target(size_t n)
{
	char	*s = NULL, *fill = malloc(n + 1);
	int	 r;

	memset(fill, 'a', n);
	fill[n] = '\0';
	fill[0] = '/';
	r = asprintf(&s, "GET %s HTTP/1.1\r\n" H "\r\n", fill);
	ck_assert_int_gt(r, 0);
	r = status_of(s, strlen(s));
	free(s);
	free(fill);
	return r;
}

static int
with_fields(size_t count, size_t line)
{
	size_t	 room = 100 + count * (line + 2);
	char	*s = malloc(room);
	size_t	 i, at;
	int	 r;

	at = (size_t)snprintf(s, room, "GET / HTTP/1.1\r\n" H);
	for (i = 0; i < count; i++) {
		memset(s + at, 'a', line);
		s[at + 1] = ':';
		at += line;
		s[at++] = '\r';
		s[at++] = '\n';
	}
	s[at++] = '\r';
	s[at++] = '\n';
	r = status_of(s, at);
	free(s);
	return r;
}

START_TEST(limits)
{
	ck_assert_int_eq(with_target(HTTP_TARGET_MAX), 200);
	ck_assert_int_eq(with_target(HTTP_TARGET_MAX + 1), 414);
	ck_assert_int_eq(with_target(1 << 20), 414);
	ck_assert_int_eq(with_fields(HTTP_FIELDS_MAX - 1, 10), 200);
	ck_assert_int_eq(with_fields(HTTP_FIELDS_MAX, 10), 431);
	ck_assert_int_eq(with_fields(10000, 10), 431);
	ck_assert_int_eq(with_fields(1, HTTP_LINE_MAX), 200);
	ck_assert_int_eq(with_fields(1, HTTP_LINE_MAX + 1), 431);
	/* 16 + 9 + 2 bytes are there already */
	ck_assert_int_eq(with_fields(3, (HTTP_HEAD_MAX - 27) / 3 - 2), 200);
	ck_assert_int_eq(with_fields(3, (HTTP_HEAD_MAX - 27) / 3 - 1), 431);
}
END_TEST

/* ---- each byte --------------------------------------------------------- */

static int
in(const char *set, int c)
{
	return c != 0 && strchr(set, c) != NULL;
}

static int
alnum(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

static int
with_byte(const char *before, int c, const char *after)
{
	char	buf[256];
	size_t	n = strlen(before), m = strlen(after);

	memcpy(buf, before, n);
	buf[n] = (char)c;
	memcpy(buf + n + 1, after, m);
	return status_of(buf, n + 1 + m);
}

START_TEST(each_byte)
{
	int	c, token, target, value, host, hexdigit;

	for (c = 0; c < 256; c++) {
		token = alnum(c) || in("!#$%&'*+-.^_`|~", c);
		target = alnum(c) || in("-._~!$&'()*+,;=:@/?", c);
		value = c == '\t' || (c >= 0x20 && c != 0x7f);
		host = alnum(c) || in("-._", c);
		hexdigit = (c >= '0' && c <= '9') ||
		    (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		ck_assert_int_eq(with_byte("G", c, "T / HTTP/1.1\r\n" H
		    "\r\n"), c == 'E' ? 200 : token ? 501 : 400);
		ck_assert_int_eq(with_byte("GET /a", c, "a HTTP/1.1\r\n" H
		    "\r\n"), target ? 200 : 400);
		ck_assert_int_eq(with_byte("GET /?a", c, "a HTTP/1.1\r\n" H
		    "\r\n"), target ? 200 : 400);
		ck_assert_int_eq(with_byte("GET / HTTP/1.1\r\n" H "A", c,
		    "B: c\r\n\r\n"), token || c == ':' ? 200 : 400);
		ck_assert_int_eq(with_byte("GET / HTTP/1.1\r\n" H "A: b", c,
		    "c\r\n\r\n"), value ? 200 : 400);
		ck_assert_int_eq(with_byte("GET / HTTP/1.1\r\nHost: a", c,
		    "1\r\n\r\n"), host || c == ':' ? 200 : 400);
		ck_assert_int_eq(with_byte("POST / HTTP/1.1\r\n" H
		    "Transfer-Encoding: chunked\r\n\r\n0", c,
		    "1\r\n"), hexdigit ? 0 : 400);
		ck_assert_int_eq(with_byte("POST / HTTP/1.1\r\n" H
		    "Content-Length: 1", c, "\r\n\r\na"),
		    (c >= '0' && c <= '9') || c == ' ' ? 200 :
		    400);
		ck_assert_int_eq(with_byte("GET / HTTP/1.", c, "\r\n" H
		    "\r\n"), c == '0' || c == '1' ? 200 :
		    c >= '2' && c <= '9' ? 505 : 400);
	}
}
END_TEST

/* ---- mutations --------------------------------------------------------- */

static size_t
mutate(char *s, size_t len, size_t cap)
{
	static const char	odd[] = "\r\n \t:0;,\0\x0b/.%+x\x80\xff";
	size_t			at = rnd((uint32_t)len + 1), n;

	switch (rnd(5)) {
	case 0:		/* a bit */
		if (at < len)
			s[at] ^= (char)(1 << rnd(8));
		return len;
	case 1:		/* another byte */
		if (at < len)
			s[at] = odd[rnd(sizeof(odd) - 1)];
		return len;
	case 2:		/* one more */
		if (len == cap)
			return len;
		memmove(s + at + 1, s + at, len - at);
		s[at] = odd[rnd(sizeof(odd) - 1)];
		return len + 1;
	case 3:		/* one less */
		if (at == len)
			return len;
		memmove(s + at, s + at + 1, len - at - 1);
		return len - 1;
	default:	/* a part twice */
		n = rnd(20);
		if (at + n > len || len + n > cap)
			return len;
		memmove(s + at + n, s + at, len - at);
		return len + n;
	}
}

START_TEST(mutations)
{
	struct seen	a, b;
	char		buf[512];
	size_t		len, i;
	unsigned int	n, m;

	seed = 42;
	for (n = 0; n < 20000; n++) {
		i = rnd(sizeof(good) / sizeof(good[0]));
		len = strlen(good[i].bytes);
		memcpy(buf, good[i].bytes, len);
		for (m = 1 + rnd(4); m > 0; m--)
			len = mutate(buf, len, sizeof(buf));
		parse(buf, len, whole, &a);
		parse(buf, len, random_cut, &b);
		ck_assert_str_eq(a.text, b.text);
		ck_assert_int_eq(a.done, b.done);
		if (a.done)
			ck_assert_uint_eq(a.used, b.used);
	}
}
END_TEST

START_TEST(fields_by_name)
{
	static const char	text[] = "GET / HTTP/1.1\r\n" H
				    "X-A: 1\r\nx-a: 2\r\nB:\r\n\r\n";
	struct http_parse	p;
	const char		*v;
	size_t			n;

	http_parse_init(&p);
	ck_assert_int_eq(http_parse_head(&p, text, sizeof(text) - 1),
	    HTTP_P_DONE);
	v = http_parse_field(&p, text, "x-A", &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(*v, '1');
	ck_assert_ptr_nonnull(http_parse_field(&p, text, "b", &n));
	ck_assert_uint_eq(n, 0);
	ck_assert_ptr_null(http_parse_field(&p, text, "x", &n));
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("http_parse");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, good_requests);
	tcase_add_test(t, bad_requests);
	tcase_add_test(t, next_message);
	tcase_add_test(t, limits);
	tcase_add_test(t, each_byte);
	tcase_add_test(t, mutations);
	tcase_add_test(t, fields_by_name);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
