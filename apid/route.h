/*
 * route: the table of the API (routes.def) and what is derived from it.
 */
#ifndef APID_ROUTE_H
#define APID_ROUTE_H

#include <stddef.h>
#include <stdint.h>

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

struct route;

const char	*route_name(const struct route *);	/* handler's: "exec" */
const char	*route_method(const struct route *);
const char	*route_template(const struct route *);	/* /v1/... {id} */
enum scope	 route_scope(const struct route *);
const char	*scope_name(enum scope);		/* "sandbox:read" */
/* Whether a key with these scopes may use the route. */
int		 route_allows(const struct route *, unsigned int scopes);

#endif
