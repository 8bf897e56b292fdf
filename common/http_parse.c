/*
 * http_parse: see http_parse.h and RFC 9112.
 *
 * Must never allocate, read beyond buf[len], or accept what is not in the
 * grammar there.
 *
 * Theory of operation.  The head is scanned once, byte by byte, into lines;
 * a line is looked at when its CRLF is there, so that a split anywhere
 * cannot change the result, and a control byte or a line that is too long is
 * an error when it comes, not when the line ends.  `pos' is the next byte to
 * be scanned, `line' the beginning of its line; both are offsets, since buf
 * may move.  The body is a state of its own:
 *
 *	S_LINE -> S_FIELD -> S_FIXED                     -> S_DONE
 *	                  -> S_SIZE -> S_SIZE_LF -> S_CHUNK -> S_CHUNK_CR
 *	                     ^                                 |
 *	                     +------------ S_CHUNK_LF <--------+
 *	                  -> S_SIZE_LF (of size 0) -> S_END_CR -> S_END_LF
 *	any -> S_ERROR
 */

#include <string.h>
#include <strings.h>

#include "http_parse.h"

enum {
	S_LINE, S_FIELD, S_FIXED, S_SIZE, S_SIZE_LF, S_CHUNK, S_CHUNK_CR,
	S_CHUNK_LF, S_END_CR, S_END_LF, S_DONE, S_ERROR
};

#define C_TOKEN		1	/* RFC 9110 5.6.2 */
#define C_TARGET	2	/* RFC 3986 pchar, "/", "?", "%" */
#define C_VALUE		4	/* HTAB, SP, VCHAR, obs-text */
#define C_HEX		8
#define C_HOST		16	/* of a name or an IPv4 address */
#define CHUNK_DIGITS	8

static const uint8_t class[256] = {
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  4,  0,  0,  0,  0,  0,  0,
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
	 4,  7,  4,  5,  7,  7,  7,  7,  6,  6,  7,  7,  6, 23, 23,  6,
	31, 31, 31, 31, 31, 31, 31, 31, 31, 31,  6,  6,  4,  6,  4,  6,
	 6, 31, 31, 31, 31, 31, 31, 23, 23, 23, 23, 23, 23, 23, 23, 23,
	23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23,  4,  4,  4,  5, 23,
	 5, 31, 31, 31, 31, 31, 31, 23, 23, 23, 23, 23, 23, 23, 23, 23,
	23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23,  4,  5,  4,  7,  0,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
};

static const char *const method_name[HTTP_M_COUNT] = {
	[HTTP_M_GET] = "GET", [HTTP_M_HEAD] = "HEAD", [HTTP_M_POST] = "POST",
	[HTTP_M_PUT] = "PUT", [HTTP_M_PATCH] = "PATCH",
	[HTTP_M_DELETE] = "DELETE", [HTTP_M_OPTIONS] = "OPTIONS",
};

/* Fields that stand at most once; the first ones mean something here. */
enum { K_HOST, K_LENGTH, K_CODING, K_EXPECT, K_OTHER };

static const struct { const char *name, *twice; uint16_t len; } single[] = {
#define NAME(s) { s, "repeated " s, sizeof(s) - 1 }
	[K_HOST] = NAME("host"),
	[K_LENGTH] = NAME("content-length"),
	[K_CODING] = NAME("transfer-encoding"),
	[K_EXPECT] = NAME("expect"),
	[K_OTHER] = NAME("authorization"),
	NAME("content-type"), NAME("content-encoding"), NAME("origin"),
	NAME("idempotency-key"), NAME("referer"), NAME("user-agent"),
	NAME("from"), NAME("date"), NAME("max-forwards"), NAME("range"),
	NAME("if-range"), NAME("if-modified-since"),
	NAME("if-unmodified-since"), NAME("proxy-authorization"),
	NAME("sec-websocket-key"), NAME("sec-websocket-version"),
#undef NAME
};
#define NSINGLE	(sizeof(single) / sizeof(single[0]))
_Static_assert(NSINGLE <= 32, "bits of http_parse.seen");

static int
is(unsigned int classes, char c)
{
	return (class[(uint8_t)c] & classes) != 0;
}

static enum http_parsed
fail(struct http_parse *p, int status, const char *why)
{
	p->state = S_ERROR;
	p->status = status;
	p->why = why;
	return HTTP_P_ERROR;
}

static int
same(const char *s, size_t len, const char *name)
{
	return len == strlen(name) && strncasecmp(s, name, len) == 0;
}

static unsigned int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	return (unsigned int)((c | 0x20) - 'a') + 10;
}

void
http_parse_init(struct http_parse *p)
{
	memset(p, 0, offsetof(struct http_parse, field));
	p->status = 0;
	p->why = NULL;
	p->state = S_LINE;
	p->digits = 0;
	p->seen = 0;
	p->pos = p->line = 0;
	p->left = 0;
}

const char *
http_method_name(enum http_method m)
{
	return method_name[m];
}

/* ---- the request line ------------------------------------------------- */

static int
method_find(struct http_parse *p, const char *s, size_t len)
{
	int	m;

	for (m = 0; m < HTTP_M_COUNT; m++) {
		if (len == strlen(method_name[m]) &&
		    memcmp(s, method_name[m], len) == 0) {
			p->method = (enum http_method)m;
			return 0;
		}
	}
	return -1;
}

/* The byte at s[*i], one %-escape resolved; -1: not a whole escape. */
static int
target_byte(const char *s, size_t len, size_t *i)
{
	unsigned int	b;

	if (s[*i] != '%')
		return (uint8_t)s[(*i)++];
	if (len - *i < 3 || !is(C_HEX, s[*i + 1]) || !is(C_HEX, s[*i + 2]))
		return -1;
	b = hex(s[*i + 1]) << 4 | hex(s[*i + 2]);
	*i += 3;
	return (int)b;
}

static int
dotted(size_t n, size_t dots)
{
	return n == dots && (n == 1 || n == 2);
}

/*
 * Segments are told apart by their decoded bytes too: what others decode
 * before they look for `..' must not look different to them.
 */
static enum http_parsed
target_check(struct http_parse *p, const char *s, size_t len, size_t path)
{
	size_t	i, dots = 0, n = 0;
	int	b;

	for (i = 0; i < len;) {
		if (i == path && dotted(n, dots))
			break;
		if (!is(C_TARGET, s[i]))
			return fail(p, 400, "byte in the target");
		if ((b = target_byte(s, len, &i)) <= 0)
			return fail(p, 400, "%-escape in the target");
		if (i > path)
			continue;
		if (b != '/' && b != '\\') {
			dots += b == '.';
			n++;
		} else if (dotted(n, dots))
			break;
		else
			dots = n = 0;
	}
	if (i < len || (path == len && dotted(n, dots)))
		return fail(p, 400, "dot segment");
	return HTTP_P_MORE;
}

static enum http_parsed
target_parse(struct http_parse *p, const char *buf, size_t off, size_t len)
{
	const char	*q;
	size_t		 path = len;

	if (len > HTTP_TARGET_MAX)
		return fail(p, 414, "target too long");
	if (len == 0 || buf[off] != '/')
		return fail(p, 400, "target does not begin with /");
	if ((q = memchr(buf + off, '?', len)) != NULL)
		path = (size_t)(q - (buf + off));
	p->target = (struct http_span){ (uint16_t)off, (uint16_t)len };
	p->path = (struct http_span){ (uint16_t)off, (uint16_t)path };
	p->query = (struct http_span){ 0, 0 };
	if (path < len)
		p->query = (struct http_span){ (uint16_t)(off + path + 1),
		    (uint16_t)(len - path - 1) };
	return target_check(p, buf + off, len, path);
}

static enum http_parsed
version_parse(struct http_parse *p, const char *s, size_t len)
{
	if (len != 8 || memcmp(s, "HTTP/", 5) != 0 || s[6] != '.' ||
	    s[5] < '0' || s[5] > '9' || s[7] < '0' || s[7] > '9')
		return fail(p, 400, "version");
	if (s[5] != '1' || s[7] > '1')
		return fail(p, 505, "version is neither 1.1 nor 1.0");
	p->minor = (unsigned int)(s[7] - '0');
	p->close = p->minor == 0;
	return HTTP_P_MORE;
}

static enum http_parsed
request_line(struct http_parse *p, const char *buf, size_t end)
{
	const char	*sp1, *sp2;
	size_t		 i, mlen;

	if ((sp1 = memchr(buf, ' ', end)) == NULL || sp1 == buf)
		return fail(p, 400, "request line");
	mlen = (size_t)(sp1 - buf);
	for (i = 0; i < mlen; i++)
		if (!is(C_TOKEN, buf[i]))
			return fail(p, 400, "byte in the method");
	sp2 = memchr(sp1 + 1, ' ', end - mlen - 1);
	if (sp2 == NULL)
		return fail(p, 400, "request line without version");
	if (target_parse(p, buf, mlen + 1, (size_t)(sp2 - sp1) - 1) ==
	    HTTP_P_ERROR)
		return HTTP_P_ERROR;
	if (version_parse(p, sp2 + 1, (size_t)(buf + end - sp2) - 1) ==
	    HTTP_P_ERROR)
		return HTTP_P_ERROR;
	if (method_find(p, buf, mlen) == -1)
		return fail(p, 501, "method");
	p->state = S_FIELD;
	return HTTP_P_MORE;
}

/* ---- fields ------------------------------------------------------------ */

static int
port_ok(const char *s, size_t len)
{
	unsigned int	port = 0;
	size_t		i;

	if (len == 0 || len > 5)
		return 0;
	for (i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		port = port * 10 + (unsigned int)(s[i] - '0');
	}
	return port <= 65535;
}

/* RFC 9110 7.2, RFC 3986 3.2.2, but no userinfo, %-escapes or sub-delims. */
static int
host_ok(const char *s, size_t len)
{
	int	ip6 = len > 0 && s[0] == '[';
	size_t	i;

	for (i = ip6 ? 1 : 0; i < len && s[i] != (ip6 ? ']' : ':'); i++) {
		if (!is(ip6 ? C_HEX : C_HOST, s[i]) &&
		    !(ip6 && (s[i] == ':' || s[i] == '.')))
			return 0;
		if (s[i] == '.' && (i == 0 || s[i - 1] == '.'))
			return 0;
	}
	if (ip6 && (i < 3 || i++ == len))
		return 0;
	if (i == 0 || i == len)
		return i > 0;
	return s[i] == ':' && port_ok(s + i + 1, len - i - 1);
}

static enum http_parsed
length_parse(struct http_parse *p, const char *s, size_t len)
{
	uint64_t	n = 0;
	size_t		i;

	if (len == 0 || len > 18)
		return fail(p, 400, "Content-Length");
	for (i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return fail(p, 400, "Content-Length");
		n = n * 10 + (uint64_t)(s[i] - '0');
	}
	p->length = n;
	p->body = HTTP_B_LENGTH;
	return HTTP_P_MORE;
}

static enum http_parsed
connection_parse(struct http_parse *p, const char *s, size_t len)
{
	size_t	i, b, e;

	for (i = 0; i < len; i++) {
		for (b = i; i < len && s[i] != ','; i++)
			;
		for (e = i; b < e && (s[b] == ' ' || s[b] == '\t'); b++)
			;
		while (e > b && (s[e - 1] == ' ' || s[e - 1] == '\t'))
			e--;
		if (same(s + b, e - b, "close"))
			p->close = 1;
		for (; b < e; b++)
			if (!is(C_TOKEN, s[b]))
				return fail(p, 400, "Connection");
	}
	return HTTP_P_MORE;
}

static enum http_parsed
field_known(struct http_parse *p, const char *buf, const struct http_field *f)
{
	const char	*name = buf + f->name.off, *v = buf + f->value.off;
	size_t		 k, len = f->value.len;

	if (same(name, f->name.len, "connection"))
		return connection_parse(p, v, len);
	for (k = 0; k < NSINGLE; k++)
		if (f->name.len == single[k].len &&
		    strncasecmp(name, single[k].name, single[k].len) == 0)
			break;
	if (k == NSINGLE)
		return HTTP_P_MORE;
	if (p->seen & 1u << k)
		return fail(p, 400, single[k].twice);
	p->seen |= 1u << k;
	switch (k) {
	case K_HOST:
		p->host = f->value;
		if (!host_ok(v, len))
			return fail(p, 400, "Host");
		break;
	case K_LENGTH:
		return length_parse(p, v, len);
	case K_CODING:
		if (!same(v, len, "chunked"))
			return fail(p, 501, "Transfer-Encoding");
		break;
	case K_EXPECT:
		if (!same(v, len, "100-continue"))
			return fail(p, 417, "Expect");
		p->expect = p->minor == 1;
		break;
	default:
		break;
	}
	return HTTP_P_MORE;
}

static enum http_parsed
field_line(struct http_parse *p, const char *buf, size_t end)
{
	struct http_field	*f;
	size_t			 i, b, e = end;

	for (i = p->line; i < end && is(C_TOKEN, buf[i]); i++)
		;
	if (i == p->line || i == end || buf[i] != ':')
		return fail(p, 400, "field name");
	if (p->nfields == HTTP_FIELDS_MAX)
		return fail(p, 431, "too many fields");
	for (b = i + 1; b < e && buf[b] == ' '; b++)
		;
	while (e > b && buf[e - 1] == ' ')
		e--;
	f = &p->field[p->nfields++];
	f->name = (struct http_span){ (uint16_t)p->line,
	    (uint16_t)(i - p->line) };
	f->value = (struct http_span){ (uint16_t)b, (uint16_t)(e - b) };
	/* HTAB is no part of a value, but others trip over it in a length. */
	if (field_known(p, buf, f) == HTTP_P_ERROR)
		return HTTP_P_ERROR;
	for (; b < e && (buf[b] == ' ' || buf[b] == '\t'); b++)
		;
	while (e > b && (buf[e - 1] == ' ' || buf[e - 1] == '\t'))
		e--;
	f->value = (struct http_span){ (uint16_t)b, (uint16_t)(e - b) };
	return HTTP_P_MORE;
}

static enum http_parsed
head_end(struct http_parse *p, size_t head_len)
{
	if (!(p->seen & 1u << K_HOST))
		return fail(p, 400, "no Host");
	if (p->seen & 1u << K_CODING) {
		if (p->seen & 1u << K_LENGTH)
			return fail(p, 400,
			    "Content-Length beside Transfer-Encoding");
		if (p->minor == 0)
			return fail(p, 400, "Transfer-Encoding in HTTP/1.0");
		p->body = HTTP_B_CHUNKED;
	}
	p->head_len = head_len;
	p->left = p->body == HTTP_B_LENGTH ? p->length : 0;
	p->state = p->body == HTTP_B_CHUNKED ? S_SIZE :
	    p->left > 0 ? S_FIXED : S_DONE;
	return HTTP_P_DONE;
}

/* ---- the head ---------------------------------------------------------- */

/* Whether the byte at pos may stand in a line there. */
static enum http_parsed
head_byte(struct http_parse *p, char c)
{
	size_t	n = p->pos - p->line;

	if (!is(C_VALUE, c))
		return fail(p, 400, "control byte in the head");
	if (p->state == S_LINE) {
		if (n == 0 && (c < 'A' || c > 'Z'))
			return fail(p, 400, "request line");
		if (n >= HTTP_TARGET_MAX + 32)
			return fail(p, 414, "request line too long");
	} else if (n >= HTTP_LINE_MAX)
		return fail(p, 431, "field line too long");
	return HTTP_P_MORE;
}

static enum http_parsed
head_line(struct http_parse *p, const char *buf)
{
	enum http_parsed	r;
	size_t			end = p->pos;

	p->pos += 2;
	if (p->pos > HTTP_HEAD_MAX)
		return fail(p, 431, "head too long");
	if (p->state == S_LINE)
		r = request_line(p, buf, end);
	else if (end == p->line)
		r = head_end(p, p->pos);
	else
		r = field_line(p, buf, end);
	p->line = p->pos;
	return r;
}

enum http_parsed
http_parse_head(struct http_parse *p, const char *buf, size_t len)
{
	enum http_parsed	r;

	if (p->state == S_ERROR)
		return HTTP_P_ERROR;
	while (p->pos < len) {
		if (p->pos >= HTTP_HEAD_MAX)
			return fail(p, 431, "head too long");
		if (buf[p->pos] != '\r') {
			if (head_byte(p, buf[p->pos]) == HTTP_P_ERROR)
				return HTTP_P_ERROR;
			p->pos++;
			continue;
		}
		if (len - p->pos < 2)
			break;
		if (buf[p->pos + 1] != '\n')
			return fail(p, 400, "bare CR");
		if ((r = head_line(p, buf)) != HTTP_P_MORE)
			return r;
	}
	return HTTP_P_MORE;
}

/* ---- the body ----------------------------------------------------------- */

static enum http_parsed
expect_byte(struct http_parse *p, char c, char want, unsigned int next)
{
	if (c != want)
		return fail(p, 400, "chunk framing");
	p->state = next;
	return HTTP_P_MORE;
}

static enum http_parsed
size_byte(struct http_parse *p, char c)
{
	if (c == '\r' && p->digits > 0) {
		p->state = S_SIZE_LF;
		return HTTP_P_MORE;
	}
	if (!is(C_HEX, c) || p->digits == CHUNK_DIGITS)
		return fail(p, 400, "chunk size");
	p->left = p->left << 4 | hex(c);
	p->digits++;
	return HTTP_P_MORE;
}

/* One byte of chunked framing. */
static enum http_parsed
frame_byte(struct http_parse *p, char c)
{
	switch (p->state) {
	case S_SIZE:
		return size_byte(p, c);
	case S_SIZE_LF:
		p->digits = 0;
		return expect_byte(p, c, '\n',
		    p->left > 0 ? S_CHUNK : S_END_CR);
	case S_CHUNK_CR:
		return expect_byte(p, c, '\r', S_CHUNK_LF);
	case S_CHUNK_LF:
		return expect_byte(p, c, '\n', S_SIZE);
	case S_END_CR:
		return expect_byte(p, c, '\r', S_END_LF);
	case S_END_LF:
		return expect_byte(p, c, '\n', S_DONE);
	default:
		return fail(p, 400, "body before its head");
	}
}

enum http_parsed
http_parse_body(struct http_parse *p, const char *buf, size_t len,
    size_t *ret_used, const char **ret_data, size_t *ret_len)
{
	size_t	i = 0, n;

	*ret_used = *ret_len = 0;
	*ret_data = NULL;
	for (;;) {
		if (p->state == S_ERROR || p->state == S_DONE)
			break;
		if (i == len) {
			*ret_used = i;
			return HTTP_P_MORE;
		}
		if (p->state == S_FIXED || p->state == S_CHUNK) {
			n = len - i < p->left ? len - i : (size_t)p->left;
			*ret_data = buf + i;
			*ret_len = n;
			*ret_used = i + n;
			if ((p->left -= n) == 0)
				p->state = p->state == S_FIXED ? S_DONE :
				    S_CHUNK_CR;
			return HTTP_P_DATA;
		}
		(void)frame_byte(p, buf[i++]);	/* the state says it */
	}
	*ret_used = i;
	return p->state == S_DONE ? HTTP_P_DONE : HTTP_P_ERROR;
}

const char *
http_parse_field(const struct http_parse *p, const char *buf,
    const char *name, size_t *ret_len)
{
	const struct http_field	*f;
	unsigned int		 i;

	for (i = 0; i < p->nfields; i++) {
		f = &p->field[i];
		if (same(buf + f->name.off, f->name.len, name)) {
			*ret_len = f->value.len;
			return buf + f->value.off;
		}
	}
	return NULL;
}
