/*
 * conf.c: the configuration as one wire body in a sealed memfd.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "xmalloc.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	""	/* defaults are of no use here */
#endif

#define SEALS	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

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

const struct conf *
conf_read(int fd)
{
	static struct conf	conf;
	static uint8_t		buf[WIRE_MAX];
	static struct wire_bin	items[512];
	struct stat		st;
	int			seals = fcntl(fd, F_GET_SEALS);

	if (seals == -1 || (seals & SEALS) != SEALS || fstat(fd, &st) == -1 ||
	    st.st_size <= 0 || (size_t)st.st_size > sizeof(buf)) {
		errno = EBADMSG;
		return NULL;
	}
	if (pread(fd, buf, (size_t)st.st_size, 0) != st.st_size) {
		errno = EIO;
		return NULL;
	}
	if (wire_decode_into(&wire_conf, buf, (size_t)st.st_size, items,
	    sizeof(items) / sizeof(items[0]), &conf) == -1)
		return NULL;
	return &conf;
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
