/*
 * conf.c: the configuration as one wire body in a sealed memfd.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "server.h"
#include "xmalloc.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	""	/* defaults are of no use here */
#endif

#define ITEMS	512		/* of all lists together */

static const struct wire_field conf_fields[] = {
#define C_STR(w, f, max, cs, d, doc) \
	{ w, WIRE_STR, cs, offsetof(struct conf, f), 0, max, 0 },
#define C_U64(w, f, lo, hi, d, doc) \
	{ w, WIRE_U64, CS_BYTES, offsetof(struct conf, f), lo, hi, 0 },
#define C_BOOL(w, f, d, doc) \
	{ w, WIRE_U64, CS_BYTES, offsetof(struct conf, f), 0, 1, 0 },
#define C_LIST(w, f, n, bytes, cs, doc) \
	{ w, WIRE_STRS, cs, offsetof(struct conf, f), 0, bytes, n },
#define X_U64(f, lo, hi) \
	{ #f, WIRE_U64, CS_BYTES, offsetof(struct conf, f), lo, hi, 0 },
#define X_BIN(f, lo, hi) \
	{ #f, WIRE_BIN, CS_BYTES, offsetof(struct conf, f), lo, hi, 0 },
#include "conf.def"
};

const struct wire_desc wire_conf = { "conf", conf_fields,
    sizeof(conf_fields) / sizeof(conf_fields[0]), sizeof(struct conf) };

static struct conf	in_force;

/* The body in the memfd fd, of at most WIRE_MAX bytes.  Their number, or -1. */
static ssize_t
body_read(int fd, uint8_t buf[WIRE_MAX])
{
	struct stat	st;
	int		seals = fcntl(fd, F_GET_SEALS);

	if (seals == -1 || (seals & SERVER_SEALS) != SERVER_SEALS ||
	    fstat(fd, &st) == -1 || st.st_size <= 0 || st.st_size > WIRE_MAX) {
		errno = EBADMSG;
		return -1;
	}
	if (pread(fd, buf, (size_t)st.st_size, 0) == st.st_size)
		return st.st_size;
	errno = EIO;
	return -1;
}

const struct conf *
conf_read(int fd)
{
	static uint8_t		buf[WIRE_MAX];
	static struct wire_bin	items[ITEMS];
	ssize_t			n = body_read(fd, buf);

	return n == -1 || wire_decode_into(&wire_conf, buf, (size_t)n, items,
	    ITEMS, &in_force) == -1 ? NULL : &in_force;
}

/* Lists borrow from what was read, which so lives until the next reload. */
struct reloaded {
	uint8_t		buf[WIRE_MAX];
	struct wire_bin	items[ITEMS];
	struct conf	conf;
};

int
conf_reload(int fd, const char *name)
{
	static struct reloaded	*last;
	struct reloaded		*r = xcalloc(1, sizeof(*r));
	ssize_t			 n = body_read(fd, r->buf);

	if (n == -1 || wire_decode_into(&wire_conf, r->buf, (size_t)n,
	    r->items, ITEMS, &r->conf) == -1) {
		free(r);
		return -1;
	}
#define C_NOW(w, f)	memcpy(&in_force.f, &r->conf.f, sizeof(in_force.f));
#include "conf.def"
	free(last);
	last = r;
	/* syslog's socket was opened at the start, or will never be */
	log_init(name, (enum log_level)log_level_parse(in_force.log_level), 0);
	return 0;
}

int
log_level_parse(const char *s)
{
	static const char *const	names[] = { [LOG_L_ERROR] = "error",
	    [LOG_L_WARN] = "warning", [LOG_L_INFO] = "info",
	    [LOG_L_DEBUG] = "debug" };
	size_t				i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], s) == 0)
			return (int)i;
	return -1;
}

void
conf_log(const struct conf *conf, const char *name)
{
	int	level = log_level_parse(conf->log_level);

	log_init(name, level == -1 ? LOG_L_INFO : (enum log_level)level,
	    strcmp(conf->log, "syslog") == 0);
}

int
conf_landlock(const struct conf *conf)
{
	if (strcmp(conf->landlock, "none") != 0)
		return 1;
	log_warnx("fence without Landlock, as the configuration says");
	return 0;
}
