/*
 * http_req: what a handler may do with a request; see http.h.
 *
 * Must never write a byte into a header that a peer chose freely: values are
 * checked here.  A request whose connection has gone takes everything and
 * sends nothing.
 */

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "http_int.h"
#include "log.h"
#include "xmalloc.h"

#define DETAIL_MAX	1024		/* bytes of a problem's sentence */
#define HEADERS_MAX	4096		/* bytes of added headers */
#define COPY_MAX	4096		/* bodies below are copied */

/* ---- making and ending ---------------------------------------------------------- */

struct http_req *
http_req_new(struct http_conn *c)
{
	struct http_req		*r = xcalloc(1, sizeof(*r));
	struct http_parse	*p = &r->parse;
	unsigned int		 i;

	r->conn = c;
	r->server = c->server;
	r->server->nreqs++;
	*p = c->parse;
	r->head = xmalloc(p->head_len + 1);
	memcpy(r->head, c->in, p->head_len);
	r->head[p->head_len] = '\0';
	r->mute = p->method == HTTP_M_HEAD;
	/* A byte that is no part of anything follows each of these. */
	r->head[p->path.off + p->path.len] = '\0';
	r->head[p->target.off + p->target.len] = '\0';
	for (i = 0; i < p->nfields; i++) {
		r->head[p->field[i].name.off + p->field[i].name.len] = '\0';
		r->head[p->field[i].value.off + p->field[i].value.len] =
		    '\0';
	}
	ulid_new(r->id);
	http_check_peer(r);
	return r;
}

void
http_on_done(struct http_req *r, void (*fn)(void *), void *arg)
{
	r->on_done = fn;
	r->done_arg = arg;
}

void
http_req_free(struct http_req *r)
{
	if (r->on_done != NULL)
		r->on_done(r->done_arg);
	if (r->ev_timer != NULL)
		event_free(r->ev_timer);
	if (r->ev_gone != NULL)
		event_free(r->ev_gone);
	r->server->bodies -= r->body_cap;
	r->server->nreqs--;
	r->server->nlasting -= (unsigned int)r->lasting;
	explicit_bzero(r->head, r->parse.head_len);	/* the key */
	free(r->head);
	free(r->body);
	free(r->headers);
	json_decref(r->json);
	free(r);
}

/* The answer is complete (or nobody is there to get it). */
static void
req_finish(struct http_req *r, int close)
{
	struct http_conn	*c = r->conn;

	http_req_free(r);
	if (c != NULL)
		http_conn_answered(c, close);
}

static struct event *
req_event(struct http_req *r, event_callback_fn fn)
{
	struct event	*ev = evtimer_new(r->server->conf.base, fn, r);

	if (ev == NULL)
		fatalx("out of memory");
	return ev;
}

/* One reason per turn of the loop: the callback may end the request. */
static void
req_on_gone(evutil_socket_t fd, short what, void *arg)
{
	struct http_req	*r = arg;
	enum http_gone	 why = r->gone & 1u << HTTP_GONE_CLIENT ?
			    HTTP_GONE_CLIENT : HTTP_GONE_STOPPING;

	(void)fd; (void)what;
	if (r->on_gone == NULL || r->gone == 0)
		return;
	r->gone &= ~(1u << why);
	if (r->gone != 0)
		event_active(r->ev_gone, EV_TIMEOUT, 0);
	r->on_gone(r, why, r->gone_arg);
}

void
http_req_gone(struct http_req *r, enum http_gone why)
{
	if (why == HTTP_GONE_CLIENT && r->gone_client++ > 0)
		return;
	r->gone |= 1u << why;
	if (r->on_gone != NULL)
		event_active(r->ev_gone, EV_TIMEOUT, 0);
}

/* ---- what was asked --------------------------------------------------------------- */

void *
http_arg(const struct http_req *r)
{
	return r->server->conf.arg;
}

const char *
http_id(const struct http_req *r)
{
	return r->id;
}

const char *
http_method(const struct http_req *r)
{
	return http_method_name(r->parse.method);
}

const char *
http_path(const struct http_req *r)
{
	return r->head + r->parse.path.off;
}

const struct route *
http_route(const struct http_req *r)
{
	return r->route;
}

const char *
http_peer(const struct http_req *r)
{
	return r->peer;
}

const char *
http_header(const struct http_req *r, const char *name)
{
	unsigned int	i;

	for (i = 0; i < r->parse.nfields; i++)
		if (strcasecmp(r->head + r->parse.field[i].name.off,
		    name) == 0)
			return r->head + r->parse.field[i].value.off;
	return NULL;
}

/* Whether a weight of 0 stands between p and end; RFC 9110, 12.4.2. */
static int
weight_zero(const char *p, const char *end)
{
	while ((p = memchr(p, ';', (size_t)(end - p))) != NULL) {
		for (p++; p < end && (*p == ' ' || *p == '\t'); p++)
			;
		if (end - p < 3 || strncasecmp(p, "q=0", 3) != 0)
			continue;
		for (p += 3; p < end && (*p == '.' || *p == '0'); p++)
			;
		return p == end || *p < '1' || *p > '9';
	}
	return 0;
}

/* One element of Accept. */
static int
accept_names(const char *p, const char *end, const char *type)
{
	size_t	n = strlen(type);

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if ((size_t)(end - p) < n || strncasecmp(p, type, n) != 0)
		return 0;
	p += n;
	return (p == end || *p == ';' || *p == ' ' || *p == '\t') &&
	    !weight_zero(p, end);
}

int
http_accepts(const struct http_req *r, const char *type)
{
	const char	*p;
	unsigned int	 i;
	size_t		 n;

	for (i = 0; i < r->parse.nfields; i++) {
		if (strcasecmp(r->head + r->parse.field[i].name.off,
		    "Accept") != 0)
			continue;
		p = r->head + r->parse.field[i].value.off;
		for (;; p += n + 1) {
			n = strcspn(p, ",");
			if (accept_names(p, p + n, type))
				return 1;
			if (p[n] == '\0')
				break;
		}
	}
	return 0;
}

const char *
http_param(const struct http_req *r, const char *name)
{
	size_t	i, len = strlen(name);

	for (i = 0; i < r->params.n; i++)
		if (r->params.v[i].name_len == len &&
		    memcmp(r->params.v[i].name, name, len) == 0)
			return r->param[i];
	return "";
}

const char *
http_query_nth(const struct http_req *r, const char *name, unsigned int nth)
{
	size_t	i;

	for (i = 0; i < r->nquery; i++)
		if (strcmp(r->query[i].name, name) == 0 && nth-- == 0)
			return r->query[i].value;
	return NULL;
}

const char *
http_query(const struct http_req *r, const char *name)
{
	return http_query_nth(r, name, 0);
}

uint64_t
http_query_u64(const struct http_req *r, const char *name, uint64_t dflt)
{
	const char	*v = http_query(r, name);

	return v == NULL ? dflt : strtoull(v, NULL, 10);	/* checked */
}

const json_t *
http_json(const struct http_req *r)
{
	return r->json;
}

const uint8_t *
http_body(const struct http_req *r, size_t *ret_len)
{
	static const uint8_t	none[1];

	*ret_len = r->body_len;
	return r->body == NULL ? none : r->body;
}

void
http_set_caller(struct http_req *r, const char *tenant, const char *actor)
{
	if (str_copy(r->tenant, tenant, sizeof(r->tenant)) == -1 ||
	    str_copy(r->actor, actor, sizeof(r->actor)) == -1)
		fatalx("caller's name too long");
}

const char *
http_tenant(const struct http_req *r)
{
	return r->tenant;
}

const char *
http_actor(const struct http_req *r)
{
	return r->actor;
}

/* ---- later ---------------------------------------------------------------------------- */

void
http_on_gone(struct http_req *r,
    void (*fn)(struct http_req *, enum http_gone, void *), void *arg)
{
	r->on_gone = fn;
	r->gone_arg = arg;
	if (r->ev_gone == NULL)
		r->ev_gone = req_event(r, req_on_gone);
	if (r->gone != 0)
		event_active(r->ev_gone, EV_TIMEOUT, 0);
}

void
http_on_drain(struct http_req *r, void (*fn)(struct http_req *, void *),
    void *arg)
{
	r->on_drain = fn;
	r->drain_arg = arg;
}

static void
req_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct http_req	*r = arg;

	(void)fd; (void)what;
	r->on_timer(r, r->timer_arg);
}

void
http_timer(struct http_req *r, uint64_t ms,
    void (*fn)(struct http_req *, void *), void *arg)
{
	struct timeval	tv = { .tv_sec = (time_t)(ms / 1000),
			    .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	if (r->ev_timer == NULL)
		r->ev_timer = req_event(r, req_on_timer);
	r->on_timer = fn;
	r->timer_arg = arg;
	if (fn == NULL)
		(void)event_del(r->ev_timer);
	else
		(void)event_add(r->ev_timer, &tv);
}

void
http_set_data(struct http_req *r, void *data)
{
	r->data = data;
}

void *
http_data(const struct http_req *r)
{
	return r->data;
}

/* ---- heads of answers -------------------------------------------------------------------- */

static const char *
phrase(int status)
{
	static const struct { int status; const char *text; } phrases[] = {
		{ 200, "OK" }, { 201, "Created" }, { 202, "Accepted" },
		{ 204, "No Content" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" },
		{ 404, "Not Found" }, { 405, "Method Not Allowed" },
		{ 408, "Request Timeout" }, { 409, "Conflict" },
		{ 410, "Gone" }, { 413, "Content Too Large" },
		{ 414, "URI Too Long" }, { 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 499, "Client Closed Request" },
		{ 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};
	size_t	i;

	for (i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (phrases[i].status == status)
			return phrases[i].text;
	return "Status";
}

static const char *
date(struct http_server *s)
{
	time_t		now = time(NULL);
	struct tm	tm;

	if (now != s->date_sec && gmtime_r(&now, &tm) != NULL &&
	    strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT",
	    &tm) > 0)
		s->date_sec = now;
	return s->date;
}

static void
out_printf(struct http_conn *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

static void
out_printf(struct http_conn *c, const char *fmt, ...)
{
	char	buf[1024];
	va_list	ap;
	int	n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(buf))
		fatalx("head of an answer too long");
	if (evbuffer_add(c->out, buf, (size_t)n) == -1)
		fatalx("out of memory");
}

static void
out_head(struct http_conn *c, const char *id, int status, int close)
{
	out_printf(c, "HTTP/1.1 %d %s\r\nDate: %s\r\nX-Request-Id: %s\r\n"
	    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
	    "Content-Security-Policy: default-src 'none'; "
	    "frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"
	    "Cross-Origin-Resource-Policy: same-origin\r\n%s",
	    status, phrase(status), date(c->server), id,
	    close ? "Connection: close\r\n" : "");
}

/*
 * Whether this answer will be the connection's last one; who sends no more
 * may still be answered what it sent before.
 */
static int
will_close(const struct http_conn *c)
{
	return c->eof || http_conn_ends(c);
}

void
http_add_header(struct http_req *r, const char *name, const char *value)
{
	char	*old = r->headers;

	if (!wire_charset_ok(CS_PRINT, name, strlen(name)) ||
	    !wire_charset_ok(CS_PRINT, value, strlen(value)) ||
	    (old != NULL && strlen(old) + strlen(value) > HEADERS_MAX))
		fatalx("header of an answer: %s", name);
	r->headers = xasprintf("%s%s: %s\r\n", old == NULL ? "" : old, name,
	    value);
	free(old);
}

static void
out_added(struct http_req *r)
{
	if (r->headers != NULL && evbuffer_add(r->conn->out, r->headers,
	    strlen(r->headers)) == -1)
		fatalx("out of memory");
}

/* ---- whole answers -------------------------------------------------------------------------- */

static void
free_body(const void *data, size_t len, void *extra)
{
	(void)len; (void)extra;
	free((void *)(uintptr_t)data);
}

/* Takes body (malloc). */
static void
reply(struct http_req *r, int status, const char *type, char *body,
    size_t len)
{
	struct http_conn	*c = r->conn;

	if (c == NULL) {
		free(body);
		http_req_free(r);
		return;
	}
	http_conn_enter(c);
	out_head(c, r->id, status, will_close(c));
	out_added(r);
	if (type != NULL)
		out_printf(c, "Content-Type: %s\r\nContent-Length: %zu\r\n",
		    type, len);
	out_printf(c, "\r\n");
	if (r->mute || len < COPY_MAX) {
		if (!r->mute && len > 0 &&
		    evbuffer_add(c->out, body, len) == -1)
			fatalx("out of memory");
		free(body);
	} else if (evbuffer_add_reference(c->out, body, len, free_body,
	    NULL) == -1)
		fatalx("out of memory");
	log_debug("%s %s %s: %d", r->peer, http_method(r), http_path(r),
	    status);
	req_finish(r, 0);
	http_conn_leave(c);
}

void
http_reply_bytes(struct http_req *r, int status, const char *type,
    const void *data, size_t len)
{
	char	*copy = xmalloc(len + 1);

	memcpy(copy, data, len);
	reply(r, status, type, copy, len);
}

void
http_reply_empty(struct http_req *r)
{
	reply(r, 204, NULL, NULL, 0);
}

void
http_reply_json(struct http_req *r, int status, json_t *o)
{
	char	*text = o == NULL ? NULL : json_dumps(o, JSON_COMPACT |
		    JSON_REAL_PRECISION(15));

	json_decref(o);
	if (text == NULL)
		http_fail(r, CODE_INTERNAL, NULL,
		    "The answer cannot be written as JSON.");
	else
		reply(r, status, "application/json", text, strlen(text));
}

/* ---- problems ---------------------------------------------------------------------------------- */

/* What may stand in JSON: a peer's bytes may not be UTF-8. */
static void
make_text(char *s)
{
	for (; *s != '\0'; s++)
		if ((uint8_t)*s < ' ' || (uint8_t)*s >= 0x7f)
			*s = '?';
}

static json_t *
text(const char *s)
{
	json_t	*v = json_string(s);
	char	*copy;

	if (v != NULL)
		return v;
	copy = xstrdup(s);
	make_text(copy);
	v = json_string(copy);
	free(copy);
	return v;
}

/* Members (taken) may be NULL. */
static char *
problem(const char *id, enum wb_code code, int status, const char *field,
    const char *detail, json_t *members)
{
	json_t	*o = json_object();
	char	*s;

	(void)json_object_set_new(o, "type", json_string("about:blank"));
	(void)json_object_set_new(o, "title", json_string(phrase(status)));
	(void)json_object_set_new(o, "status", json_integer(status));
	(void)json_object_set_new(o, "code", json_string(code_name(code)));
	(void)json_object_set_new(o, "detail", text(detail));
	if (field != NULL)
		(void)json_object_set_new(o, "field", text(field));
	(void)json_object_set_new(o, "requestId", json_string(id));
	if (members != NULL)
		(void)json_object_update_missing(o, members);
	json_decref(members);
	if ((s = json_dumps(o, JSON_COMPACT)) == NULL)
		fatalx("out of memory");
	json_decref(o);
	return s;
}

static void
fail_text(struct http_req *r, enum wb_code code, const char *field,
    const char *detail, json_t *members)
{
	int	 status = code_http(code);
	char	*body = problem(r->id, code, status, field, detail, members);

	if (status == 401)
		http_add_header(r, "WWW-Authenticate",
		    "Bearer realm=\"workbox\"");
	if (status == 503)
		http_add_header(r, "Retry-After", "1");
	reply(r, status, "application/problem+json", body, strlen(body));
}

void
http_fail(struct http_req *r, enum wb_code code, const char *field,
    const char *fmt, ...)
{
	char	buf[DETAIL_MAX];
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf, sizeof(buf), fmt, ap);	/* cut is fine */
	va_end(ap);
	fail_text(r, code, field, buf, NULL);
}

void
http_fail_with(struct http_req *r, enum wb_code code, json_t *members,
    const char *fmt, ...)
{
	char	buf[DETAIL_MAX];
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf, sizeof(buf), fmt, ap);	/* cut is fine */
	va_end(ap);
	fail_text(r, code, NULL, buf, members);
}

static enum wb_code
refuse_code(int status)
{
	switch (status) {
	case 408:
		return CODE_REQUEST_TIMEOUT;
	case 414:
		return CODE_URI_TOO_LONG;
	case 417:
		return CODE_EXPECTATION_FAILED;
	case 431:
		return CODE_HEADERS_TOO_LARGE;
	case 501:
		return CODE_NOT_IMPLEMENTED;
	case 505:
		return CODE_VERSION_UNSUPPORTED;
	default:
		return CODE_BAD_REQUEST;
	}
}

void
http_refuse(struct http_conn *c, int status, const char *why)
{
	char	 id[ULID_LEN + 1], detail[128];
	char	*body;

	ulid_new(id);
	if (c->req != NULL)
		http_req_free(c->req);
	c->req = NULL;
	(void)snprintf(detail, sizeof(detail), "The request is refused: %s.",
	    why);					/* fits */
	body = problem(id, refuse_code(status), status, NULL, detail, NULL);
	out_head(c, id, status, 1);
	out_printf(c, "Content-Type: application/problem+json\r\n"
	    "Content-Length: %zu\r\n\r\n", strlen(body));
	if (evbuffer_add(c->out, body, strlen(body)) == -1)
		fatalx("out of memory");
	free(body);
	log_debug("request refused: %d %s", status, why);
	http_conn_answered(c, 1);
}

/* ---- streams ------------------------------------------------------------------------------------- */

void
http_stream(struct http_req *r, int status, const char *type)
{
	struct http_conn	*c = r->conn;

	r->streaming = 1;
	if (c == NULL)
		return;
	r->chunked = r->parse.minor == 1;
	http_conn_enter(c);
	out_head(c, r->id, status, !r->chunked || will_close(c));
	out_added(r);
	out_printf(c, "X-Accel-Buffering: no\r\nContent-Type: %s\r\n%s\r\n",
	    type, r->chunked ? "Transfer-Encoding: chunked\r\n" : "");
	http_conn_flush(c);
	http_conn_leave(c);
}

/* Room for the framing of a chunk. */
#define FRAME	16

size_t
http_room(const struct http_req *r)
{
	size_t	held;

	if (r->conn == NULL)
		return HTTP_QUEUE_MAX;
	held = evbuffer_get_length(r->conn->out) + FRAME;
	return held < HTTP_QUEUE_MAX ? HTTP_QUEUE_MAX - held : 0;
}

int
http_writev(struct http_req *r, const struct iovec *part, size_t n)
{
	struct http_conn	*c = r->conn;
	struct iovec		 v[HTTP_PARTS + 2];
	char			 size[24], crlf[] = "\r\n";
	size_t			 i, len = 0;

	if (c == NULL || r->mute)
		return -1;
	if (n > HTTP_PARTS)
		fatalx("a write of %zu pieces", n);
	for (i = 0; i < n; i++)
		len += part[i].iov_len;
	if (len == 0)
		return 1;
	if (len > http_room(r) && evbuffer_get_length(c->out) > 0)
		return 0;
	memcpy(v + 1, part, n * sizeof(*part));
	v[0].iov_base = size;
	v[0].iov_len = !r->chunked ? 0 :
	    (size_t)snprintf(size, sizeof(size), "%zx\r\n", len);
	v[n + 1].iov_base = crlf;
	v[n + 1].iov_len = r->chunked ? 2 : 0;
	http_conn_enter(c);
	http_conn_put(c, v, n + 2);
	http_conn_leave(c);
	return 1;
}

int
http_write(struct http_req *r, const void *data, size_t len)
{
	struct iovec	v = { (void *)(uintptr_t)data, len };

	return http_writev(r, &v, 1);
}

int
http_write_json(struct http_req *r, json_t *o)
{
	char	*s = o == NULL ? NULL : json_dumps(o, JSON_COMPACT |
		    JSON_REAL_PRECISION(15));
	size_t	 len;
	int	 ret;

	json_decref(o);
	if (s == NULL) {
		log_warnx("a line cannot be written as JSON");
		return -1;
	}
	len = strlen(s);
	s[len] = '\n';		/* in the NUL's place; len says where it ends */
	ret = http_write(r, s, len + 1);
	free(s);
	return ret;
}

void
http_end(struct http_req *r)
{
	struct http_conn	*c = r->conn;
	int			 close = !r->chunked;

	if (c == NULL) {
		http_req_free(r);
		return;
	}
	http_conn_enter(c);
	if (r->chunked && !r->mute &&
	    evbuffer_add(c->out, "0\r\n\r\n", 5) == -1)
		fatalx("out of memory");
	req_finish(r, close);
	http_conn_leave(c);
}

void
http_abort(struct http_req *r)
{
	struct http_conn	*c = r->conn;
	struct linger		 now = { 1, 0 };

	if (c == NULL) {
		http_req_free(r);
		return;
	}
	http_conn_enter(c);
	/* Without chunks only a reset shows that this was not all. */
	if (!r->chunked) {
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now,
		    sizeof(now));
		c->req = NULL;
		http_req_free(r);
		http_conn_kill(c);
	} else
		req_finish(r, 1);
	http_conn_leave(c);
}
