/*
 * conf: the configuration as the daemons get it; see conf.def.
 */
#ifndef COMMON_CONF_H
#define COMMON_CONF_H

#include "wire.h"

#define CONF_FD		4	/* in every daemon but privd */

struct conf {
#define C_STR(w, f, max, cs, d, doc)	char f[(max) + 1];
#define C_U64(w, f, lo, hi, d, doc)	uint64_t f;
#define C_BOOL(w, f, d, doc)		uint64_t f;
#define C_LIST(w, f, n, bytes, cs, doc)	struct wire_list f;
#define X_U64(f, lo, hi)		uint64_t f;
#define X_BIN(f, lo, hi)		struct wire_bin f;
#include "conf.def"
};

extern const struct wire_desc wire_conf;

/*
 * Reads a sealed memfd into a struct that lives as long as the process
 * (one per process).  NULL with errno: not sealed, not whole, not valid.
 * Does not close fd.
 */
const struct conf	*conf_read(int fd);
/*
 * At SIGHUP: takes what C_NOW rows name from another one into the struct that
 * conf_read() gave, and its log level for the log's; name is the log's, as for
 * conf_log().  0, or -1 with errno, and nothing has changed.
 */
int			 conf_reload(int fd, const char *name);
/* A sealed memfd with conf, or -1 with errno. */
int			 conf_seal(const struct conf *);
/* The same for privd: all but the listeners and descriptors, which are none. */
struct server_conf;
void			 server_fill(const struct conf *,
			    struct server_conf *ret);
/* Of it what C_NOW rows name, and so may change at SIGHUP. */
void			 server_now(const struct conf *,
			    struct server_conf *ret);
/* A sealed memfd of len bytes, or -1 with errno. */
int			 server_seal(const char *name, const void *,
			    size_t len);
/* "error", "warning", "info", "debug" to a level, or -1. */
int			 log_level_parse(const char *);
/* log_init() as the configuration asks. */
void			 conf_log(const struct conf *, const char *name);
/*
 * Whether our daemons' fences use Landlock.  0 only where the configuration
 * says `landlock none', and then each call logs a warning.
 */
int			 conf_landlock(const struct conf *);

#define CONF_READY	4	/* networks `none' that netd keeps prepared */

#endif
