/*
 * http_check: what every request must satisfy before a handler sees it; see
 * http.h.  Whom it came from, Host and Origin (a web page must not reach the
 * API through a browser, not even by a name that resolves to us), the route,
 * the caller, the query, the body.
 *
 * Must never say more to a caller who is not known than what the documents
 * say.
 */

#include <arpa/inet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http_int.h"
#include "log.h"
#include "schema.h"
#include "xmalloc.h"

#define BODY_FIRST	4096
#define SHORT_PART	16		/* of the places, for short requests */
#define NAME_TOLD	80		/* bytes of a member's name */

/* ---- who --------------------------------------------------------------- */

/* Into 16 bytes, IPv4 as ::ffff:a.b.c.d.  0 or -1. */
static int
addr_parse(const char *s, uint8_t ret[16])
{
	static const uint8_t	mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (inet_pton(AF_INET6, s, ret) == 1)
		return 0;
	if (inet_pton(AF_INET, s, ret + 12) != 1)
		return -1;
	memcpy(ret, mapped, sizeof(mapped));
	return 0;
}

static void
addr_text(const uint8_t a[16], char *ret, size_t size)
{
	static const uint8_t	mapped[12] = { [10] = 0xff, [11] = 0xff };
	const char		*s;

	if (memcmp(a, mapped, sizeof(mapped)) == 0)
		s = inet_ntop(AF_INET, a + 12, ret, (socklen_t)size);
	else
		s = inet_ntop(AF_INET6, a, ret, (socklen_t)size);
	if (s == NULL)
		fatal("inet_ntop");
}

static int
prefix_parse(const char *text, struct http_prefix *ret)
{
	char		*slash, *end, buf[64];
	unsigned long	 bits = 128;
	int		 v4;

	if (str_copy(buf, text, sizeof(buf)) == -1)
		return -1;
	if ((slash = strchr(buf, '/')) != NULL)
		*slash++ = '\0';
	v4 = strchr(buf, ':') == NULL;
	if (addr_parse(buf, ret->addr) == -1)
		return -1;
	if (slash != NULL) {
		bits = strtoul(slash, &end, 10);
		if (*slash < '0' || *slash > '9' || *end != '\0')
			return -1;
		bits += v4 ? 96 : 0;
	}
	ret->bits = (unsigned int)bits;
	return bits > 128 ? -1 : 0;
}

void
http_check_trusted(struct http_server *s)
{
	const struct wire_list	*l = &s->conf.trusted_proxy;
	char			*text;
	size_t			 i;

	free(s->trusted);
	s->ntrusted = 0;
	s->trust_unix = 0;
	s->trusted = xcalloc(l->n + 1, sizeof(*s->trusted));
	for (i = 0; i < l->n; i++) {
		text = xasprintf("%.*s", (int)l->v[i].len,
		    (const char *)l->v[i].data);
		if (strcmp(text, "unix") == 0)
			s->trust_unix = 1;
		else if (prefix_parse(text, &s->trusted[s->ntrusted]) == 0)
			s->ntrusted++;
		else
			fatalx("trusted-proxy %s: not a prefix", text);
		free(text);
	}
}

static int
trusted(const struct http_server *s, const uint8_t a[16])
{
	const struct http_prefix	*p;
	unsigned int			 bytes, rest;
	size_t				 i;

	for (i = 0; i < s->ntrusted; i++) {
		p = &s->trusted[i];
		bytes = p->bits / 8;
		rest = p->bits % 8;
		if (memcmp(a, p->addr, bytes) == 0 && (rest == 0 ||
		    (a[bytes] ^ p->addr[bytes]) >> (8 - rest) == 0))
			return 1;
	}
	return 0;
}

/* One element of X-Forwarded-For: an address, perhaps [ ], perhaps a port. */
static int
forwarded_parse(const char *s, size_t len, uint8_t ret[16])
{
	char	buf[64], *end;

	while (len > 0 && (s[0] == ' ' || s[0] == '\t'))
		s++, len--;
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	if (len == 0 || len >= sizeof(buf))
		return -1;
	memcpy(buf, s, len);
	buf[len] = '\0';
	if (buf[0] == '[') {
		if ((end = strchr(buf, ']')) == NULL)
			return -1;
		*end = '\0';
		return addr_parse(buf + 1, ret);
	}
	if ((end = strchr(buf, ':')) != NULL && strchr(end + 1, ':') == NULL)
		*end = '\0';
	return addr_parse(buf, ret);
}

/*
 * From the right: what the nearest proxy says of its peer counts when that
 * proxy is trusted, and so on.  Tells whether there was anything.
 */
static int
forwarded(const struct http_req *r, uint8_t a[16])
{
	const struct http_parse	*p = &r->parse;
	const char		*v;
	unsigned int		 i = p->nfields;
	size_t			 b, e;
	int			 found = 0;

	while (i-- > 0) {
		if (strcasecmp(r->head + p->field[i].name.off,
		    "x-forwarded-for") != 0)
			continue;
		v = r->head + p->field[i].value.off;
		for (e = strlen(v);; e = b - 1) {
			for (b = e; b > 0 && v[b - 1] != ','; b--)
				;
			if (forwarded_parse(v + b, e - b, a) == -1)
				return found;
			found = 1;
			if (!trusted(r->server, a))
				return 1;
			if (b == 0)
				break;
		}
	}
	return found;
}

void
http_check_peer(struct http_req *r)
{
	const struct http_conn	*c = r->conn;
	uint8_t			 a[16] = { 0 };
	char			 text[INET6_ADDRSTRLEN];
	struct sockaddr_in	 in4;
	struct sockaddr_in6	 in6;
	unsigned int		 port = 0;

	if (c->kind == HTTP_UNIX) {
		(void)snprintf(r->peer, sizeof(r->peer), "unix:uid=%u",
		    c->peer_uid);			/* fits */
		if (!r->server->trust_unix || !forwarded(r, a))
			return;
	} else if (c->addr.ss_family == AF_INET) {
		memcpy(&in4, &c->addr, sizeof(in4));
		a[10] = a[11] = 0xff;
		memcpy(a + 12, &in4.sin_addr, 4);
		port = ntohs(in4.sin_port);
	} else {
		memcpy(&in6, &c->addr, sizeof(in6));
		memcpy(a, &in6.sin6_addr, 16);
		port = ntohs(in6.sin6_port);
	}
	if (c->kind == HTTP_TCP && trusted(r->server, a) && forwarded(r, a))
		port = 0;
	addr_text(a, text, sizeof(text));
	if (port == 0)
		(void)snprintf(r->peer, sizeof(r->peer), "%s", text);
	else
		(void)snprintf(r->peer, sizeof(r->peer),
		    strchr(text, ':') ? "[%s]:%u" : "%s:%u", text, port);
}

/* ---- Host and Origin --------------------------------------------------- */

/* The length of a Host value without its port. */
static size_t
host_len(const char *s, size_t len)
{
	size_t	i = len;

	while (i > 0 && s[i - 1] >= '0' && s[i - 1] <= '9')
		i--;
	return i > 0 && s[i - 1] == ':' ? i - 1 : len;
}

static int
host_is(const char *s, size_t len, const void *name, size_t nlen)
{
	return len == nlen && strncasecmp(s, name, len) == 0;
}

static int
host_allowed(const struct http_req *r, const char *s, size_t len)
{
	static const char *const	loopback[] = {
		"localhost", "127.0.0.1", "[::1]"
	};
	const struct wire_list		*l = &r->server->conf.allowed_host;
	size_t				 i, n = host_len(s, len);

	for (i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++)
		if (host_is(s, n, loopback[i], strlen(loopback[i])))
			return 1;
	for (i = 0; i < l->n; i++)
		if (host_is(s, n, l->v[i].data, l->v[i].len) ||
		    host_is(s, len, l->v[i].data, l->v[i].len))
			return 1;
	return 0;
}

static int
check_host(struct http_req *r)
{
	const char	*host = r->head + r->parse.host.off;
	const char	*origin = http_header(r, "Origin");
	size_t		 skip;

	if (r->conn->kind == HTTP_TCP &&
	    !host_allowed(r, host, r->parse.host.len)) {
		http_fail(r, CODE_HOST_REFUSED, "Host",
		    "This name is neither loopback's nor an allowed-host.");
		return -1;
	}
	if (origin == NULL)
		return 0;
	skip = strncmp(origin, "http://", 7) == 0 ? 7 :
	    strncmp(origin, "https://", 8) == 0 ? 8 : 0;
	if (skip != 0 && strcasecmp(origin + skip, host) == 0)
		return 0;
	http_fail(r, CODE_ORIGIN_REFUSED, "Origin",
	    "Requests of web pages from elsewhere are refused.");
	return -1;
}

/* ---- the route --------------------------------------------------------- */

int
http_decode(char *s, int plus)
{
	char	*to = s, *from = s, pair[3] = { 0 };

	while (*from != '\0') {
		if (*from == '%') {
			/* Whole escapes, no %00: the parser saw to it. */
			pair[0] = from[1];
			pair[1] = from[2];
			*to++ = (char)strtoul(pair, NULL, 16);
			from += 3;
		} else {
			*to++ = plus && *from == '+' ? ' ' : *from;
			from++;
		}
	}
	*to = '\0';
	return to == s || wire_charset_ok(CS_TEXT, s, (size_t)(to - s)) ?
	    0 : -1;
}

static int
param_ok(const char *s)
{
	return *s != '\0' && s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static int
params(struct http_req *r)
{
	const char	*path = http_path(r);
	size_t		 i;

	for (i = 0; i < r->params.n; i++) {
		if (r->params.v[i].len >= sizeof(r->param[i]))
			return -1;
		memcpy(r->param[i], path + r->params.v[i].off,
		    r->params.v[i].len);
		if (http_decode(r->param[i], 0) == -1 ||
		    !param_ok(r->param[i]))
			return -1;
	}
	return 0;
}

static void
fail_method(struct http_req *r, unsigned int methods)
{
	char	allow[64] = "";
	size_t	len = 0;
	int	m;

	if (methods & 1u << HTTP_M_GET)
		methods |= 1u << HTTP_M_HEAD;
	for (m = 0; m < HTTP_M_COUNT; m++)
		if (methods & 1u << m)
			len += (size_t)snprintf(allow + len,
			    sizeof(allow) - len, "%s%s",
			    len > 0 ? ", " : "",
			    http_method_name((enum http_method)m));
	http_add_header(r, "Allow", allow);
	http_fail(r, CODE_METHOD_NOT_ALLOWED, NULL, "This path has %s.",
	    allow);
}

static int
check_route(struct http_req *r)
{
	const struct http_parse	*p = &r->parse;
	const struct route	*route;
	unsigned int		 methods;

	route = route_find(p->method, http_path(r), p->path.len, &r->params,
	    &methods);
	if (route == NULL && methods != 0) {
		fail_method(r, methods);
		return -1;
	}
	if (route == NULL || params(r) == -1) {
		http_fail(r, CODE_NOT_FOUND, NULL, "There is nothing at this path.");
		return -1;
	}
	r->route = route;
	return 0;
}

/* ---- the query --------------------------------------------------------- */

static int
number_ok(const struct route_query *q, const char *s)
{
	uint64_t	n = 0, d;
	size_t		i;

	for (i = 0; s[i] != '\0'; i++) {
		if (s[i] < '0' || s[i] > '9' || i == 19)
			return 0;
		d = (uint64_t)(s[i] - '0');
		n = n * 10 + d;
	}
	return i > 0 && n >= q->lo && n <= q->hi;
}

static int
query_value(struct http_req *r, const struct route_query *q, char *value)
{
	if (q->kind != RQ_STRS && http_query(r, q->name) != NULL) {
		http_fail(r, CODE_BAD_REQUEST, q->name, "It stands twice.");
		return -1;
	}
	if (q->kind == RQ_U64 && !number_ok(q, value)) {
		http_fail(r, CODE_BAD_REQUEST, q->name,
		    "Expected: a number from %llu to %llu.",
		    (unsigned long long)q->lo, (unsigned long long)q->hi);
		return -1;
	}
	if (q->kind != RQ_U64 && strlen(value) > q->hi) {
		http_fail(r, CODE_BAD_REQUEST, q->name,
		    "Expected: at most %llu bytes.",
		    (unsigned long long)q->hi);
		return -1;
	}
	if (r->nquery == HTTP_QUERY_MAX) {
		http_fail(r, CODE_BAD_REQUEST, q->name,
		    "Expected: at most %d parameters.", HTTP_QUERY_MAX);
		return -1;
	}
	r->query[r->nquery].name = q->name;
	r->query[r->nquery++].value = value;
	return 0;
}

static int
query_pair(struct http_req *r, char *name)
{
	const struct route_query	*q;
	char				*value = strchr(name, '=');

	if (value == NULL)
		value = name + strlen(name);
	else
		*value++ = '\0';
	if (http_decode(name, 1) == -1 || http_decode(value, 1) == -1) {
		http_fail(r, CODE_BAD_REQUEST, NULL,
		    "The query is not UTF-8 without control characters.");
		return -1;
	}
	for (q = r->route->query; q->name != NULL; q++)
		if (strcmp(q->name, name) == 0)
			return query_value(r, q, value);
	if (name[0] == '\0')
		http_fail(r, CODE_BAD_REQUEST, NULL,
		    "A parameter has no name.");
	else
		http_fail(r, CODE_BAD_REQUEST, name,
		    "This parameter is unknown.");
	return -1;
}

static int
check_query(struct http_req *r)
{
	const struct route_query	*q;
	char				*rest, *pair;

	rest = r->parse.query.len == 0 ? NULL :
	    r->head + r->parse.query.off;
	while ((pair = strsep(&rest, "&")) != NULL)
		if (query_pair(r, pair) == -1)
			return -1;
	for (q = r->route->query; q->name != NULL; q++) {
		if (!q->required || http_query(r, q->name) != NULL)
			continue;
		http_fail(r, CODE_BAD_REQUEST, q->name,
		    "This parameter is required: %s.", q->doc);
		return -1;
	}
	return 0;
}

/* ---- the body ---------------------------------------------------------- */

/* JSON is UTF-8 (RFC 8259, 8.1): a charset says so or is refused. */
static int
charset_ok(const char *v)
{
	static const char *const	good[] = { "utf-8", "\"utf-8\"" };
	size_t				 n, i;

	for (; *(v += strspn(v, "; \t")) != '\0'; v += strcspn(v, ";")) {
		if (strncasecmp(v, "charset=", 8) != 0)
			continue;
		v += 8;
		n = strcspn(v, "; \t");
		for (i = 0; i < 2; i++)
			if (n == strlen(good[i]) &&
			    strncasecmp(v, good[i], n) == 0)
				break;
		if (i == 2)
			return 0;
	}
	return 1;
}

static int
type_is_json(const char *v)
{
	static const char	json[] = "application/json";
	size_t			n = sizeof(json) - 1;

	if (v == NULL || strncasecmp(v, json, n) != 0)
		return 0;
	v += n;
	v += strspn(v, " \t");
	return *v == '\0' || (*v == ';' && charset_ok(v));
}

static int
fail_large(struct http_req *r)
{
	if (r->route->body->max == 0)
		http_fail(r, CODE_BAD_REQUEST, NULL,
		    "Expected: no body.");
	else
		http_fail(r, CODE_BODY_TOO_LARGE, NULL,
		    "Expected: a body of at most %zu bytes.", r->route->body->max);
	return -1;
}

static int
check_length(struct http_req *r)
{
	const char	*coding = http_header(r, "Content-Encoding");

	if (r->parse.length > r->route->body->max ||
	    (r->parse.body == HTTP_B_CHUNKED && r->route->body->max == 0))
		return fail_large(r);
	if (coding != NULL && strcasecmp(coding, "identity") != 0) {
		http_fail(r, CODE_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding",
		    "Expected: a body that is not encoded.");
		return -1;
	}
	if (r->route->body->schema != NULL &&
	    !type_is_json(http_header(r, "Content-Type"))) {
		http_fail(r, CODE_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
		    "Expected: application/json, in UTF-8.");
		return -1;
	}
	return 0;
}

int
http_check_more(struct http_req *r, const char *data, size_t n)
{
	size_t	cap = r->body_cap, max = r->route->body->max;

	if (n > max - r->body_len)
		return fail_large(r);
	while (cap < r->body_len + n)
		cap = cap == 0 ? BODY_FIRST : 2 * cap;
	if (cap > r->body_cap) {
		if (r->server->bodies + cap - r->body_cap > HTTP_BODIES_MAX) {
			http_fail(r, CODE_BUSY, NULL,
			    "Too many bodies at one time.");
			return -1;
		}
		r->server->bodies += cap - r->body_cap;
		r->body = xreallocarray(r->body, cap, 1);
		r->body_cap = cap;
	}
	memcpy(r->body + r->body_len, data, n);
	r->body_len += n;
	return 0;
}

/*
 * The name that ends at byte n of a body that is JSON up to there, as it was
 * written, and how deep in the body it stands.
 */
static int
name_before(const char *p, size_t n, const char **ret_name, size_t *ret_len)
{
	size_t	i, start = 0;
	int	depth = 0, text = 0;

	for (i = 0; i + 1 < n; i++)
		if (text && p[i] == '\\')
			i++;
		else if (p[i] == '"') {
			text = !text;
			start = i + 1;
		} else if (!text)
			depth += (p[i] == '{' || p[i] == '[') -
			    (p[i] == '}' || p[i] == ']');
	*ret_name = p + start;
	*ret_len = n - 1 - start;
	return depth;
}

/* A member of the body itself is the field; of one below, the path is lost. */
static void
fail_twice(struct http_req *r, const json_error_t *e)
{
	char		 field[NAME_TOLD + 1] = "";
	const char	*name;
	size_t		 len;
	int		 depth;

	depth = name_before((const char *)r->body, (size_t)e->position, &name,
	    &len);
	if (len > NAME_TOLD) {
		http_fail(r, CODE_BAD_REQUEST, NULL, "Line %d, column %d: "
		    "this member stands twice.", e->line, e->column);
		return;
	}
	memcpy(field, name, len);
	http_fail(r, CODE_BAD_REQUEST, depth == 1 ? field : NULL,
	    "Line %d, column %d: the member \"%s\" stands twice.", e->line,
	    e->column, field);
}

/* In our words where the library's speak of its own flags. */
static void
fail_json(struct http_req *r, const json_error_t *e)
{
	switch ((int)json_error_code(e)) {
	case json_error_duplicate_key:
		fail_twice(r, e);
		break;
	case json_error_null_character:
	case json_error_null_byte_in_key:
		http_fail(r, CODE_BAD_REQUEST, NULL, "Line %d, column %d: "
		    "text holds no \\u0000 here.", e->line, e->column);
		break;
	case json_error_numeric_overflow:
		http_fail(r, CODE_BAD_REQUEST, NULL, "Line %d, column %d: "
		    "this number is too large: expected at most "
		    "9223372036854775807.", e->line, e->column);
		break;
	default:
		http_fail(r, CODE_BAD_REQUEST, NULL, "The body is not JSON: "
		    "line %d, column %d: %s.", e->line, e->column, e->text);
	}
}

/* Jansson takes a text that finds no memory for a wrong one. */
static int	no_memory;

static void *
try_malloc(size_t n)
{
	void	*p = malloc(n);

	no_memory |= p == NULL;
	return p;
}

int
http_check_body(struct http_req *r)
{
	const struct route_body	*b = r->route->body;
	struct schema_fault	 fault;
	json_error_t		 e;

	if (b->schema == NULL)
		return 0;
	if (r->body_len == 0) {
		http_fail(r, CODE_BAD_REQUEST, NULL,
		    "Expected: a body of JSON.");
		return -1;
	}
	/* of all that needs memory this alone can be refused: see apid.c */
	no_memory = 0;
	json_set_alloc_funcs(try_malloc, free);
	r->json = json_loadb((const char *)r->body, r->body_len,
	    JSON_REJECT_DUPLICATES, &e);
	json_set_alloc_funcs(xmalloc, free);
	if (r->json == NULL) {
		if (no_memory)
			http_fail(r, CODE_BUSY, NULL,
			    "There is no memory for this body.");
		else
			fail_json(r, &e);
		return -1;
	}
	if (schema_check(schema_find(b->schema), r->json, &fault) == -1) {
		http_fail(r, CODE_BAD_REQUEST,
		    fault.field[0] == '\0' ? NULL : fault.field, "%s",
		    fault.why);
		return -1;
	}
	return 0;
}

/* ---- the client's key -------------------------------------------------- */

/* Where nothing is made, a key says nothing. */
static int
check_key(struct http_req *r)
{
	const char	*key = http_header(r, "Idempotency-Key");
	size_t		 len;

	if (key == NULL || !*r->route->keyed)
		return 0;
	len = strlen(key);
	if (len > 0 && len <= 255 && wire_charset_ok(CS_PRINT, key, len))
		return 0;
	http_fail(r, CODE_BAD_REQUEST, "Idempotency-Key", "Expected: 1 to "
	    "255 printable ASCII characters.");
	return -1;
}

/* ---- all before the body ----------------------------------------------- */

/* Whether it may go on for as long as a command does, or its reader likes. */
static int
may_last(const struct http_req *r)
{
	const struct route_answer	*a;

	for (a = r->route->answer; a->status != 0; a++)
		if (a->kind == RA_LINES)
			return 1;
	return r->parse.method == HTTP_M_GET &&
	    http_query_u64(r, "wait", 0) != 0;
}

/* Some places are always left for requests that are answered at once. */
static int
check_lasting(struct http_req *r)
{
	struct http_server	*s = r->server;
	unsigned int		 most = s->conf.max_conns -
				    s->conf.max_conns / SHORT_PART;

	if (!may_last(r))
		return 0;
	if (s->nlasting >= most) {
		http_fail(r, CODE_TOO_MANY, NULL, "Expected at most %u "
		    "commands, streams and waits at one time.", most);
		return -1;
	}
	r->lasting = 1;
	s->nlasting++;
	return 0;
}

int
http_check_head(struct http_req *r)
{
	const struct http_conf	*conf = &r->server->conf;

	if (r->server->stopping) {
		http_fail(r, CODE_STOPPING, NULL, "The server is stopping.");
		return -1;
	}
	if (check_host(r) == -1 || check_route(r) == -1)
		return -1;
	if (r->route->scope != SCOPE_PUBLIC) {
		if (conf->authorize(r, conf->arg) == -1)
			return -1;
		r->conn->known = 1;
	}
	if (check_key(r) == -1 || check_length(r) == -1 ||
	    check_query(r) == -1 || check_lasting(r) == -1)
		return -1;
	return 0;
}
