/*
 * head.c: requests of HTTP/1 that a client sends without TLS, one after
 * another, each of which must be for the host that its connection is to.
 *
 * Must never let a byte of a request pass before its whole head was judged,
 * or take a head or a body to end elsewhere than a server does: what servers
 * read in more than one way is refused, as are forms that no client needs
 * here.
 *
 * It stands beside common/http_parse because that takes what a server of ours
 * serves, few methods, targets and fields, and hands on what it means.  Here
 * passes, byte by byte as it came, whatever some server may be asked that can
 * be read in one way alone: one parser for both would be too lax for the one,
 * or refuse what the other's clients need.
 *
 *	request line	METHOD SP target SP HTTP/1.1 (or 1.0) CRLF; target:
 *			origin-form, or of OPTIONS `*'; no CONNECT
 *	fields		token ":" OWS value OWS CRLF; no obs-fold, no bare CR
 *			or LF, no control byte but HTAB
 *	Host		once: a name or address, and perhaps a port
 *	body		Content-Length (digits, once) or Transfer-Encoding
 *			`chunked' (once), never both; no chunk extensions, no
 *			trailer fields
 *
 * Theory of operation.  `at' says what comes next: a head, bytes of a body,
 * or a piece of chunked framing.  A head and a piece of framing pass whole
 * when they are there whole, so nothing but `at' and `body' is kept of what
 * has passed; a head that grows is read again from its begin each time.
 *
 *	HEAD -> BODY                              -> HEAD
 *	     -> SIZE -> CHUNK -> CHUNK_END -> SIZE
 *	             -> LAST                      -> HEAD
 *	HEAD, `upgrade' set -> HEAD | ALL by head_answer()
 *
 * Upgrades.  All passes, unjudged, once a server has answered 101 to a
 * request for WebSocket.  That the answer is the one to that request is known
 * of the first request of a connection alone: then nothing else can have been
 * sent by the server.  So `upgrade' is set by the first one, when it has no
 * body, and that is how WebSocket is opened.  Others that ask are requests
 * like all: should the server switch, then what comes next must still read as
 * HTTP/1, which that of no other protocol does (HTTP/2 begins with PRI, which
 * is refused).
 */
#include <string.h>
#include <strings.h>

#include "proxyd.h"

enum { AT_HEAD, AT_BODY, AT_SIZE, AT_CHUNK, AT_CHUNK_END, AT_LAST, AT_ALL };
enum { UP_NONE, UP_OTHER, UP_WEBSOCKET };

#define METHOD_MAX	32
#define LENGTH_DIGITS	18
#define SIZE_DIGITS	8
#define STATUS_LEN	12		/* "HTTP/1.1 101" */

struct text {
	const char	*p;
	size_t		 n;
};

/* What a head says. */
struct request {
	unsigned int	 minor;
	int		 any;		/* `*' is its target */
	unsigned int	 nhost, nlength, ncoding, nupgrade;
	struct text	 host;
	uint64_t	 length;
	int		 websocket, bodiless;
};

static int
is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') ||
	    (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
same(struct text t, const char *word)
{
	return t.n == strlen(word) && strncasecmp(t.p, word, t.n) == 0;
}

static int
is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* The bytes before the first c, which goes, too; all when there is none. */
static struct text
cut(struct text *t, char c)
{
	const char	*at = t->n > 0 ? memchr(t->p, c, t->n) : NULL;
	struct text	 r = *t;

	if (at != NULL) {
		r.n = (size_t)(at - t->p);
		t->p = at + 1;
		t->n -= r.n + 1;
	} else {
		t->p += t->n;
		t->n = 0;
	}
	return r;
}

static struct text
trim(struct text t, const char *set)
{
	while (t.n > 0 && strchr(set, t.p[0]) != NULL) {
		t.p++;
		t.n--;
	}
	while (t.n > 0 && strchr(set, t.p[t.n - 1]) != NULL)
		t.n--;
	return t;
}

/* ---- the request line --------------------------------------------------- */

static int
method_ok(struct text m)
{
	size_t	i;

	if (m.n == 0 || m.n > METHOD_MAX || !is_upper(m.p[0]))
		return 0;
	for (i = 0; i < m.n; i++)
		if (!is_token(m.p[i]) || (m.p[i] >= 'a' && m.p[i] <= 'z'))
			return 0;
	return !same(m, "CONNECT");
}

static int
target_ok(struct text t)
{
	size_t	i;

	if (t.n == 0 || t.p[0] != '/')
		return 0;
	for (i = 0; i < t.n; i++)
		if (t.p[i] <= ' ' || t.p[i] > '~' || t.p[i] == '#')
			return 0;
	return 1;
}

static int
request_line(struct text line, struct request *r)
{
	struct text	method, target;

	method = cut(&line, ' ');
	target = cut(&line, ' ');
	if (!method_ok(method) || line.n != 8 ||
	    memcmp(line.p, "HTTP/1.", 7) != 0 ||
	    (line.p[7] != '0' && line.p[7] != '1'))
		return -1;
	r->minor = (unsigned int)(line.p[7] - '0');
	r->any = same(method, "OPTIONS") && same(target, "*");
	r->bodiless = same(method, "GET") || same(method, "HEAD") ||
	    same(method, "TRACE");
	return r->any || target_ok(target) ? 0 : -1;
}

/* ---- fields ------------------------------------------------------------- */

static int
content_length(struct text v, struct request *r)
{
	size_t	i;

	if (v.n == 0 || v.n > LENGTH_DIGITS || r->nlength++ > 0)
		return -1;
	for (i = 0; i < v.n; i++) {
		if (!is_digit(v.p[i]))
			return -1;
		r->length = r->length * 10 + (uint64_t)(v.p[i] - '0');
	}
	return 0;
}

/* What a hop takes off may not be what the next one needs to judge by. */
static int
connection(struct text v)
{
	struct text	t;

	while (v.n > 0) {
		t = trim(cut(&v, ','), " \t");
		if (same(t, "host") || same(t, "content-length") ||
		    same(t, "transfer-encoding"))
			return -1;
	}
	return 0;
}

/*
 * Some servers hand fields on with `_' for `-', and then cannot tell them
 * apart: who means one of ours writes it as it is.
 */
static int
is_disguised(struct text name)
{
	static const char *const	ours[] = { "content-length",
	    "transfer-encoding" };
	size_t				i, k;

	if (memchr(name.p, '_', name.n) == NULL)
		return 0;
	for (k = 0; k < sizeof(ours) / sizeof(ours[0]); k++) {
		if (name.n != strlen(ours[k]))
			continue;
		for (i = 0; i < name.n; i++)
			if ((name.p[i] | 0x20) != ours[k][i] &&
			    (name.p[i] != '_' || ours[k][i] != '-'))
				break;
		if (i == name.n)
			return 1;
	}
	return 0;
}

/*
 * HTAB is no white space around a value that matters: not all servers take it
 * for that.
 */
static int
field_line(struct text line, struct request *r)
{
	struct text	name, v = line;
	size_t		i;

	if (memchr(line.p, ':', line.n) == NULL)
		return -1;
	name = cut(&v, ':');
	for (i = 0; i < name.n; i++)
		if (!is_token(name.p[i]))
			return -1;
	if (name.n == 0 || is_disguised(name))
		return -1;
	v = trim(v, " ");
	if (same(name, "host")) {
		r->host = v;
		return r->nhost++ > 0 ? -1 : 0;
	}
	if (same(name, "content-length"))
		return content_length(v, r);
	if (same(name, "transfer-encoding"))
		return r->ncoding++ == 0 && same(v, "chunked") ? 0 : -1;
	if (same(name, "connection"))
		return connection(v);
	if (same(name, "upgrade"))
		r->websocket = r->nupgrade++ == 0 && same(v, "websocket");
	return 0;
}

/* ---- heads -------------------------------------------------------------- */

/*
 * The line at p, its CRLF behind it.  1; 0: it has no end yet; -1: it has a
 * byte that no line may have.
 */
static int
line_at(const char *p, size_t n, struct text *ret)
{
	size_t	i;

	for (i = 0; i < n && p[i] != '\r'; i++)
		if (((unsigned char)p[i] < ' ' && p[i] != '\t') ||
		    p[i] == 0x7f)
			return -1;
	if (n - i < 2)
		return 0;
	if (p[i + 1] != '\n')
		return -1;
	*ret = (struct text){ p, i };
	return 1;
}

static int
request_ok(const struct request *r)
{
	if (r->ncoding > 0 && (r->nlength > 0 || r->minor == 0))
		return -1;
	return 0;
}

/* 1: *ret_len bytes are a head; 0: it has no end yet; -1: it is none. */
static int
head_at(const char *p, size_t n, struct request *r, size_t *ret_len)
{
	struct text	line;
	size_t		at = 0;
	int		got, first = 1;

	if (n > HEAD_MAX)
		n = HEAD_MAX;
	if (n > 0 && !is_upper(p[0]))
		return -1;		/* at once: it may have no end */
	while ((got = line_at(p + at, n - at, &line)) == 1) {
		at += line.n + 2;
		if (first)
			got = request_line(line, r);
		else if (line.n == 0) {
			*ret_len = at;
			return request_ok(r) == 0 ? 1 : -1;
		} else
			got = field_line(line, r);
		if (got == -1)
			return -1;
		first = 0;
	}
	return got == 0 && n == HEAD_MAX ? -1 : got;
}

/* 0, or -1: it is no number of a port. */
static int
port_of(struct text t, unsigned int *ret)
{
	unsigned int	v = 0;
	size_t		i;

	if (t.n == 0 || t.n > 5 || t.p[0] == '0')
		return -1;
	for (i = 0; i < t.n; i++) {
		if (!is_digit(t.p[i]))
			return -1;
		v = v * 10 + (unsigned int)(t.p[i] - '0');
	}
	*ret = v;
	return v <= UINT16_MAX ? 0 : -1;
}

static int
is_host(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

static int
is_host6(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') ||
	    (c >= 'A' && c <= 'F') || c == ':' || c == '.';
}

static int
all(struct text t, int (*is)(char))
{
	size_t	i;

	for (i = 0; i < t.n && is(t.p[i]); i++)
		;
	return i == t.n && t.n > 0;
}

/*
 * A Host (RFC 9110 7.2), without userinfo, escapes or sub-delims.  Its name,
 * empty for an address in brackets, and its port, 80 when it has none.  0, or
 * -1: it is no such.
 */
static int
host_parse(struct text v, struct text *ret_name, unsigned int *ret_port)
{
	struct text	t = v;

	*ret_port = 80;
	if (v.n > 0 && v.p[0] == '[') {
		t = cut(&v, ']');
		t.p++;
		t.n--;
		if (!all(t, is_host6) || t.p[t.n] != ']')
			return -1;
		t.n = 0;
	} else {
		while (v.n > 0 && v.p[0] != ':') {
			v.p++;
			v.n--;
		}
		t.n -= v.n;
		if (!all(t, is_host))
			return -1;
	}
	*ret_name = t;
	if (v.n == 0)
		return 0;
	return v.p[0] == ':' ? port_of((struct text){ v.p + 1, v.n - 1 },
	    ret_port) : -1;
}

static enum head_is
judge_host(const struct request *r, const char *want, unsigned int want_port,
    char ret_host[ALLOW_NAME])
{
	struct text	t;
	unsigned int	port;
	char		name[ALLOW_NAME];
	size_t		n = r->host.n;

	if (n == 0) {			/* it may be empty, or missing */
		ret_host[0] = '\0';
		return HEAD_HOST;
	}
	if (host_parse(r->host, &t, &port) == -1)
		return HEAD_BAD;
	if (t.n > 0 && allow_name(t.p, t.n, name) == 0) {
		if (strcmp(name, want) == 0 && port == want_port)
			return HEAD_GO;
		if (strcmp(name, want) != 0) {
			memcpy(ret_host, name, sizeof(name));
			return HEAD_HOST;
		}
	}
	if (n > ALLOW_NAME - 1)
		n = ALLOW_NAME - 1;
	memcpy(ret_host, r->host.p, n);
	ret_host[n] = '\0';
	return HEAD_HOST;
}

/* It passes: what comes next? */
static void
head_passes(struct head *h, const struct request *r)
{
	int	first = h->requests++ == 0;

	h->body = r->length;
	if (r->ncoding > 0)
		h->at = AT_SIZE;
	else if (r->length > 0)
		h->at = AT_BODY;
	else if (r->nupgrade > 0 && first)
		h->upgrade = r->websocket && r->minor == 1 ? UP_WEBSOCKET :
		    UP_OTHER;
}

static enum head_is
read_head(struct head *h, const char *p, size_t n, const char *name,
    unsigned int port, size_t *ret_used, char ret_host[ALLOW_NAME])
{
	struct request	r = { 0 };
	enum head_is	is;
	size_t		len;
	int		got = head_at(p, n, &r, &len);

	if (got != 1)
		return got == 0 ? HEAD_GO : HEAD_BAD;
	/* a server that takes no body of these takes it for a request */
	if (r.bodiless && (r.length > 0 || r.ncoding > 0))
		return HEAD_BAD;
	if ((is = judge_host(&r, name, port, ret_host)) == HEAD_GO) {
		head_passes(h, &r);
		*ret_used = len;
	}
	return is;
}

/* ---- bodies ------------------------------------------------------------- */

static size_t
read_bytes(struct head *h, size_t n, int next)
{
	if (n > h->body)
		n = (size_t)h->body;
	if ((h->body -= n) == 0)
		h->at = next;
	return n;
}

static unsigned int
hex(char c)
{
	return is_digit(c) ? (unsigned int)(c - '0') :
	    (unsigned int)((c | 0x20) - 'a') + 10;
}

/* CRLF at p; 2, 0: it is not there whole, -1: it is another. */
static int
crlf_at(const char *p, size_t n)
{
	if ((n > 0 && p[0] != '\r') || (n > 1 && p[1] != '\n'))
		return -1;
	return n > 1 ? 2 : 0;
}

static enum head_is
read_size(struct head *h, const char *p, size_t n, size_t *ret_used)
{
	uint64_t	v = 0;
	size_t		i;
	int		r;

	for (i = 0; i < n && is_host6(p[i]) && p[i] != ':' && p[i] != '.'; i++)
		v = v << 4 | hex(p[i]);
	if (i > SIZE_DIGITS || (i == 0 && n > 0))
		return HEAD_BAD;
	if (i == n)
		return HEAD_GO;
	if ((r = crlf_at(p + i, n - i)) == -1)
		return HEAD_BAD;
	if (r == 0)
		return HEAD_GO;
	*ret_used = i + (size_t)r;
	h->body = v;
	h->at = v > 0 ? AT_CHUNK : AT_LAST;
	return HEAD_GO;
}

static enum head_is
read_crlf(struct head *h, const char *p, size_t n, int next, size_t *ret_used)
{
	int	r = crlf_at(p, n);

	if (r == -1)
		return HEAD_BAD;
	if (r > 0) {
		*ret_used = (size_t)r;
		h->at = next;
	}
	return HEAD_GO;
}

/* ---- all ---------------------------------------------------------------- */

/* One thing, whatever it is; *ret_used stays 0 when it is not there whole. */
static enum head_is
read_next(struct head *h, const char *p, size_t n, const char *name,
    unsigned int port, size_t *ret_used, char ret_host[ALLOW_NAME])
{
	switch (h->at) {
	case AT_HEAD:
		return read_head(h, p, n, name, port, ret_used, ret_host);
	case AT_BODY:
		*ret_used = read_bytes(h, n, AT_HEAD);
		return HEAD_GO;
	case AT_SIZE:
		return read_size(h, p, n, ret_used);
	case AT_CHUNK:
		*ret_used = read_bytes(h, n, AT_CHUNK_END);
		return HEAD_GO;
	case AT_CHUNK_END:
		return read_crlf(h, p, n, AT_SIZE, ret_used);
	case AT_LAST:
		return read_crlf(h, p, n, AT_HEAD, ret_used);
	case AT_ALL:
		*ret_used = n;
		return HEAD_GO;
	default:
		return HEAD_BAD;
	}
}

enum head_is
head_read(struct head *h, const uint8_t *p, size_t n, const char *name,
    unsigned int port, size_t *ret_pass, char ret_host[ALLOW_NAME])
{
	char		host[ALLOW_NAME];
	enum head_is	r;
	size_t		pass = 0, used;

	while (pass < n && h->upgrade == UP_NONE) {
		used = 0;
		r = read_next(h, (const char *)p + pass, n - pass, name, port,
		    &used, host);
		if (r != HEAD_GO && pass > 0)
			break;		/* it is told when it comes first */
		if (r == HEAD_HOST)
			memcpy(ret_host, host, strlen(host) + 1);
		if (r != HEAD_GO)
			return r;
		if (used == 0)
			break;
		pass += used;
	}
	*ret_pass = pass;
	return HEAD_GO;
}

/* Bytes of an interim answer's head, its empty line included; 0: no end yet. */
static size_t
interim_len(const char *p, size_t n)
{
	const char	*end = memmem(p, n, "\r\n\r\n", 4);

	return end != NULL ? (size_t)(end - p) + 4 : 0;
}

int
head_answer(struct head *h, const uint8_t *bytes, size_t n)
{
	const char	*p = (const char *)bytes;
	size_t		 len;

	for (; n >= STATUS_LEN && memcmp(p, "HTTP/1.", 7) == 0 &&
	    p[8] == ' ' && p[9] == '1'; p += len, n -= len) {
		if (p[10] == '0' && p[11] == '1') {
			if (h->upgrade != UP_WEBSOCKET)
				return -1;
			h->upgrade = UP_NONE;
			h->at = AT_ALL;
			return 1;
		}
		if ((len = interim_len(p, n)) == 0)
			return 0;
	}
	if (n < STATUS_LEN)
		return 0;
	h->upgrade = UP_NONE;
	return 1;
}
