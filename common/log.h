/*
 * log: one line per event, `daemon[pid]: level: text', to stderr or syslog.
 * Formats are literal.  errno is preserved.  Bytes that are not printable
 * (a peer's, perhaps) are written as \xNN; lines are cut at 1,024 bytes.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdarg.h>

enum log_level { LOG_L_ERROR, LOG_L_WARN, LOG_L_INFO, LOG_L_DEBUG };

/* name: borrowed for ever.  With syslog the socket is opened at once. */
void	log_init(const char *name, enum log_level, int use_syslog);
/* A socket as log_init() would have opened, taken; -1: none. */
void	log_adopt(int fd);
/* syslog's socket, which a fence has to leave open, or -1. */
int	log_descriptor(void);

/* Of log.c and log_more.c alone: syslog's socket or -1, for ever; a line. */
extern int	log_fd;
void	log_emit(enum log_level, int err, const char *fmt, va_list);
#define LOG_EMIT(level, err) do {					\
	va_list	ap;							\
	va_start(ap, fmt);						\
	log_emit(level, err, fmt, ap);					\
	va_end(ap);							\
} while (0)

#define LOG_FMT(a, b)	__attribute__((format(printf, a, b)))
void	log_warn(const char *, ...) LOG_FMT(1, 2);	/* with errno */
void	log_warnx(const char *, ...) LOG_FMT(1, 2);
void	log_errorx(const char *, ...) LOG_FMT(1, 2);
void	log_info(const char *, ...) LOG_FMT(1, 2);
void	log_debug(const char *, ...) LOG_FMT(1, 2);
void	fatal(const char *, ...) LOG_FMT(1, 2)		/* with errno */
	    __attribute__((noreturn));
void	fatalx(const char *, ...) LOG_FMT(1, 2) __attribute__((noreturn));

#endif
