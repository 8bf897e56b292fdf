/*
 * log.c: `daemon[pid]: level: text'.  Must never fail or block the caller
 * for long: one write(2) or one syslog datagram per line.
 *
 * The syslog socket is our own (RFC 3164 without a time, as local daemons
 * take it): libc's would be opened anew behind a fence, which forbids it.
 * When syslogd has gone away, lines go to stderr.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"

#define LINE	1024

static const char	*log_name = "workbox";
static enum log_level	 log_max = LOG_L_INFO;
int			 log_fd = -1;

static const struct {
	const char	*name;
	int		 prio;
} levels[] = {
	[LOG_L_ERROR] = { "error", LOG_ERR },
	[LOG_L_WARN] = { "warning", LOG_WARNING },
	[LOG_L_INFO] = { "info", LOG_INFO },
	[LOG_L_DEBUG] = { "debug", LOG_DEBUG },
};

static const struct sockaddr_un	 dev_log = { .sun_family = AF_UNIX,
    .sun_path = "/dev/log" };

void
log_init(const char *name, enum log_level level, int use_syslog)
{
	log_name = name;
	log_max = level;
	if (!use_syslog || log_fd != -1)
		return;
	log_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (log_fd != -1 && connect(log_fd, (const struct sockaddr *)&dev_log,
	    sizeof(dev_log)) == -1) {
		(void)close(log_fd);	/* stderr serves */
		log_fd = -1;
	}
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

static int
send_line(int prio, const char *line, size_t len)
{
	char		pri[8];
	struct iovec	iov[2] = { { pri, 0 },
	    { (void *)(uintptr_t)line, len } };
	struct msghdr	mh = { .msg_iov = iov, .msg_iovlen = 2 };

	iov[0].iov_len = (size_t)snprintf(pri, sizeof(pri), "<%d>",
	    LOG_DAEMON | prio);
	return sendmsg(log_fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) == -1 ? -1 :
	    0;
}

void
log_emit(enum log_level level, int err, const char *fmt, va_list ap)
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
	if (log_fd == -1 || send_line(levels[level].prio, line,
	    (size_t)(p - line)) == -1) {
		*p++ = '\n';
		/* nowhere to tell that this failed */
		(void)!write(STDERR_FILENO, line, (size_t)(p - line));
	}
	errno = e;
}

void
log_warn(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_WARN, errno);
}

void
log_warnx(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_WARN, 0);
}

void
fatal(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_ERROR, errno);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_ERROR, 0);
	exit(1);
}
