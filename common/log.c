/*
 * log.c: `daemon[pid]: level: text'.  Must never fail or block the caller
 * for long: one write(2) or one syslog datagram per line.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"

#define LINE	1024

static const char	*log_name = "workbox";
static enum log_level	 log_max = LOG_L_INFO;
static int		 log_syslog;

static const struct {
	const char	*name;
	int		 prio;
} levels[] = {
	[LOG_L_ERROR] = { "error", LOG_ERR },
	[LOG_L_WARN] = { "warning", LOG_WARNING },
	[LOG_L_INFO] = { "info", LOG_INFO },
	[LOG_L_DEBUG] = { "debug", LOG_DEBUG },
};

void
log_init(const char *name, enum log_level level, int use_syslog)
{
	log_name = name;
	log_max = level;
	log_syslog = use_syslog;
	if (use_syslog)
		openlog(name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

int
log_level_parse(const char *s)
{
	size_t	i;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(levels[i].name, s) == 0)
			return (int)i;
	return -1;
}

/* Copies src to dst with what is not printable as \xNN; returns the end. */
static char *
escape(char *dst, const char *end, const char *src)
{
	static const char	hex[] = "0123456789abcdef";
	const unsigned char	*p;

	for (p = (const unsigned char *)src; *p != '\0'; p++) {
		if (end - dst < 5)
			break;
		if (*p >= 0x20 && *p <= 0x7e) {
			*dst++ = (char)*p;
			continue;
		}
		*dst++ = '\\';
		*dst++ = 'x';
		*dst++ = hex[*p >> 4];
		*dst++ = hex[*p & 15];
	}
	*dst = '\0';
	return dst;
}

static void
emit(enum log_level level, int err, const char *fmt, va_list ap)
{
	char	 text[LINE], line[LINE + 128], *p, *end = line + LINE;
	int	 e = errno, n;

	if (level > log_max)
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);	/* cut is fine */
	n = snprintf(line, 128, "%s[%ld]: %s: ", log_name, (long)getpid(),
	    levels[level].name);
	p = line + (n < 0 ? 0 : n > 127 ? 127 : n);
	p = escape(p, end, text);
	if (err != 0) {
		p = escape(p, end, ": ");
		p = escape(p, end, strerror(err));
	}
	if (log_syslog)
		syslog(levels[level].prio, "%s", line + n);
	else {
		*p++ = '\n';
		/* nowhere to tell that this failed */
		(void)!write(STDERR_FILENO, line, (size_t)(p - line));
	}
	errno = e;
}

#define EMIT(level, err) do {						\
	va_list	ap;							\
	va_start(ap, fmt);						\
	emit(level, err, fmt, ap);					\
	va_end(ap);							\
} while (0)

void
log_warn(const char *fmt, ...)
{
	EMIT(LOG_L_WARN, errno);
}

void
log_warnx(const char *fmt, ...)
{
	EMIT(LOG_L_WARN, 0);
}

void
log_errorx(const char *fmt, ...)
{
	EMIT(LOG_L_ERROR, 0);
}

void
log_info(const char *fmt, ...)
{
	EMIT(LOG_L_INFO, 0);
}

void
log_debug(const char *fmt, ...)
{
	EMIT(LOG_L_DEBUG, 0);
}

void
fatal(const char *fmt, ...)
{
	EMIT(LOG_L_ERROR, errno);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	EMIT(LOG_L_ERROR, 0);
	exit(1);
}
