/*
 * route: routes.def expanded, and the way from a path to its row.
 *
 * Paths are compared as they were sent: a fixed segment has one spelling,
 * and only the members in braces are decoded later.
 */

#include <string.h>

#include "route.h"

/* One pass over the table per kind of row. */
#define ROUTE(n, M, path, S, doc)	\
	static const struct route_query query_##n[] = {
#define Q_U64(n, p, lo, hi, doc)	{ p, RQ_U64, lo, hi, 0, doc },
#define Q_NEED(n, p, lo, hi, doc)	{ p, RQ_U64, lo, hi, 1, doc },
#define Q_STR(n, p, max, doc)		{ p, RQ_STR, 0, max, 0, doc },
#define Q_STATE(n, p, doc)		{ p, RQ_STATE, 0, 16, 0, doc },
#define Q_STRS(n, p, max, doc)		{ p, RQ_STRS, 0, max, 0, doc },
#define END(n)				{ NULL, RQ_U64, 0, 0, 0, NULL } };
#include "routes.def"

#define ROUTE(n, M, path, S, doc)	\
	static const struct route_body body_##n[] = {
#define BODY(n, s, max)			{ #s, NULL, max },
#define RAW(n, max, doc)		{ NULL, doc, max },
#define END(n)				{ NULL, NULL, 0 } };
#include "routes.def"

#define ROUTE(n, M, path, S, doc)	\
	static const struct route_answer answer_##n[] = {
#define ANSWER(n, st, s, doc)		{ st, RA_JSON, #s, doc },
#define LINES(n, st, s, doc)		{ st, RA_LINES, #s, doc },
#define FRAMES(n, st, doc)		{ st, RA_FRAMES, NULL, doc },
#define TEXT(n, st, doc)		{ st, RA_TEXT, NULL, doc },
#define EMPTY(n, st, doc)		{ st, RA_EMPTY, NULL, doc },
#define END(n)				{ 0, RA_EMPTY, NULL, NULL } };
#include "routes.def"

#define ROUTE(n, M, path, S, doc)	\
	static const enum wb_code error_##n[] = {
#define ERROR(n, C)			CODE_##C,
#define END(n)				CODE_NONE };
#include "routes.def"

#define ROUTE(n, M, path, S, doc)	static const int keyed_##n[] = {
#define KEYED(n)			1,
#define END(n)				0 };
#include "routes.def"

const struct route routes[] = {
#define ROUTE(n, M, path, S, doc)	\
	{ #n, HTTP_M_##M, path, SCOPE_##S, doc, api_##n, query_##n, body_##n, \
	    answer_##n, error_##n, keyed_##n },
#include "routes.def"
};
const size_t nroutes = sizeof(routes) / sizeof(routes[0]);

static const struct { enum scope scope; const char *name; } scopes[] = {
	{ SCOPE_PUBLIC, "public" },
	{ SCOPE_ANY, "any" },
	{ SCOPE_SANDBOX_READ, "sandbox:read" },
	{ SCOPE_SANDBOX_CREATE, "sandbox:create" },
	{ SCOPE_SANDBOX_EXEC, "sandbox:exec" },
	{ SCOPE_SANDBOX_DELETE, "sandbox:delete" },
	{ SCOPE_FILES_READ, "files:read" },
	{ SCOPE_FILES_WRITE, "files:write" },
	{ SCOPE_PORTS_OPEN, "ports:open" },
	{ SCOPE_NETWORK_WRITE, "network:write" },
	{ SCOPE_EVENTS_READ, "events:read" },
	{ SCOPE_KEYS_WRITE, "keys:write" },
	{ SCOPE_WEBHOOKS_WRITE, "webhooks:write" },
	{ SCOPE_METRICS_READ, "metrics:read" },
	{ SCOPE_ADMIN, "admin" },
};

const char *
scope_name(enum scope scope)
{
	size_t	i;

	for (i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		if (scopes[i].scope == scope)
			return scopes[i].name;
	return "unknown";
}

int
route_allows(const struct route *r, unsigned int have)
{
	if (r->scope == SCOPE_PUBLIC || have & SCOPE_ADMIN)
		return 1;
	if (r->scope == SCOPE_ANY)
		return have != 0;
	return (have & r->scope) != 0;
}

/* The length of the segment that begins at s. */
static size_t
segment(const char *s, size_t len)
{
	const char	*slash = memchr(s, '/', len);

	return slash == NULL ? len : (size_t)(slash - s);
}

static int
match(const char *template, const char *path, size_t len,
    struct route_params *p)
{
	size_t	tlen = strlen(template), t = 0, i = 0, a, b;

	p->n = 0;
	while (t < tlen && i < len) {
		if (template[t++] != '/' || path[i++] != '/')
			return 0;
		a = segment(template + t, tlen - t);
		b = segment(path + i, len - i);
		if (a > 2 && template[t] == '{') {
			if (b == 0 || p->n == ROUTE_PARAMS)
				return 0;
			p->v[p->n].name = template + t + 1;
			p->v[p->n].name_len = a - 2;
			p->v[p->n].off = i;
			p->v[p->n++].len = b;
		} else if (a != b || memcmp(template + t, path + i, a) != 0)
			return 0;
		t += a;
		i += b;
	}
	return t == tlen && i == len;
}

const struct route *
route_find(enum http_method method, const char *path, size_t len,
    struct route_params *ret_params, unsigned int *ret_methods)
{
	size_t	i;

	*ret_methods = 0;
	if (method == HTTP_M_HEAD)
		method = HTTP_M_GET;
	for (i = 0; i < nroutes; i++) {
		if (!match(routes[i].path, path, len, ret_params))
			continue;
		if (routes[i].method == method)
			return &routes[i];
		*ret_methods |= 1u << routes[i].method;
	}
	return NULL;
}
