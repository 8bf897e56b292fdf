/*
 * route: the table of the API (routes.def) and what is derived from it.
 */
#ifndef APID_ROUTE_H
#define APID_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "http_parse.h"
#include "proto.h"

struct http_req;

/* Scopes of keys; workbox-api(7).  A bit each, never renumbered. */
enum scope {
	SCOPE_PUBLIC = 1 << 0,		/* without a key */
	SCOPE_ANY = 1 << 1,		/* any valid key */
	SCOPE_SANDBOX_READ = 1 << 2,
	SCOPE_SANDBOX_CREATE = 1 << 3,
	SCOPE_SANDBOX_EXEC = 1 << 4,
	SCOPE_SANDBOX_DELETE = 1 << 5,
	SCOPE_FILES_READ = 1 << 6,
	SCOPE_FILES_WRITE = 1 << 7,
	SCOPE_PORTS_OPEN = 1 << 8,
	SCOPE_NETWORK_WRITE = 1 << 9,
	SCOPE_EVENTS_READ = 1 << 10,
	SCOPE_KEYS_WRITE = 1 << 11,
	SCOPE_WEBHOOKS_WRITE = 1 << 12,
	SCOPE_METRICS_READ = 1 << 13,
	SCOPE_ADMIN = 1 << 14		/* includes all */
};

enum route_query_kind { RQ_U64, RQ_STR, RQ_STATE, RQ_STRS };

/* name NULL ends a list. */
struct route_query {
	const char		*name;
	enum route_query_kind	 kind;
	uint64_t		 lo, hi;	/* RQ_U64; else hi bytes */
	int			 required;
	const char		*doc;
};

enum route_answer_kind { RA_JSON, RA_LINES, RA_FRAMES, RA_TEXT, RA_EMPTY };

/* status 0 ends a list. */
struct route_answer {
	int			 status;
	enum route_answer_kind	 kind;
	const char		*schema;	/* RA_JSON, RA_LINES */
	const char		*doc;
};

/* schema and raw NULL: takes no body. */
struct route_body {
	const char	*schema;	/* JSON */
	const char	*raw;		/* any bytes: what they are */
	size_t		 max;		/* bytes */
};

struct route {
	const char			*name;		/* "exec" */
	enum http_method		 method;
	const char			*path;		/* "/v1/... {id}" */
	enum scope			 scope;
	const char			*summary;
	void				(*handler)(struct http_req *);
	const struct route_query	*query;
	const struct route_body		*body;
	const struct route_answer	*answer;
	const enum wb_code		*error;		/* CODE_NONE ends */
	const int			*keyed;		/* 1: Idempotency-Key */
};

#define ROUTE_PARAMS	2

/* The members of a path: name in the template, span in the path. */
struct route_params {
	struct { const char *name; size_t name_len, off, len; } v[ROUTE_PARAMS];
	size_t	n;
};

extern const struct route	routes[];
extern const size_t		nroutes;

/* Handlers. */
#define ROUTE(n, M, path, S, doc)	void api_##n(struct http_req *);
#include "routes.def"

/*
 * The route of a method (HEAD is GET) and a path as it was sent.  NULL: none;
 * *ret_methods then has a bit (1 << enum http_method) for each method that
 * the path has.
 */
const struct route	*route_find(enum http_method, const char *path,
			    size_t len, struct route_params *ret_params,
			    unsigned int *ret_methods);
const char		*scope_name(enum scope);	/* "sandbox:read" */
/* Whether a key with these scopes may use the route. */
int			 route_allows(const struct route *,
			    unsigned int scopes);

#endif
