/*
 * apid_client: a client of the real apid in the world of apid_world.h, and
 * what tests of it have in common.
 */
#ifndef REGRESS_APID_CLIENT_H
#define REGRESS_APID_CLIENT_H

#include <check.h>
#include <unistd.h>

#include "apid_world.h"
#include "ulid.h"

#define WORLD_PACE_US	10000		/* of asking; nothing relies on it */
#define WORLD_TRIES	2000

/*
 * One request on a connection of its own.  Returns the status; *ret_body
 * (malloc, dechunked as it came) may be NULL.  -1: no answer.
 */
int	world_http(const struct world *, const char *method,
	    const char *path, const char *body, char **ret_body);
/* The same of a sandbox: what stands behind /v1/sandboxes/NAME. */
int	world_on(const struct world *, const char *method,
	    const char *name, const char *rest, const char *body,
	    char **ret_body);
/* Asks until the answer has `what'; the test fails when it never does. */
void	world_await(const struct world *, const char *name,
	    const char *rest, const char *what);
/* apid's memory now, KiB. */
long	world_rss(const struct world *);
/* Runs all of it; what main() returns, also where it cannot be run. */
int	world_run(Suite *);

/* The same of anything: waits until it is so, and not for longer. */
#define ck_until(cond)		ck_until_ms(20000, cond)
#define ck_until_ms(ms, cond) do {					\
	uint64_t	until_ms = mono_ms() + (ms);			\
	while (!(cond) && mono_ms() < until_ms)				\
		(void)usleep(WORLD_PACE_US);				\
	ck_assert_msg(cond, "never: %s", #cond);			\
} while (0)

#define ck_has(body, what) \
	ck_assert_msg((body) != NULL && strstr((body), (what)) != NULL, \
	    "no %s in %s", (what), (body))
#define ck_has_not(body, what) \
	ck_assert_msg((body) != NULL && strstr((body), (what)) == NULL, \
	    "%s in %s", (what), (body))

#endif
