/*
 * text: messages, numbers, times, tables and JSON as people see them.
 *
 * What comes from a server or a box is printed in tables and messages with
 * control characters escaped; raw bytes go out in exec and logs only.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

static const char	*command = "";

void
text_command(const char *name)
{
	command = name;
}

/* Copies src with control characters as \xNN; always ends in NUL. */
static void
escape(const char *src, char *dst, size_t size)
{
	size_t	n = 0;

	for (; *src != '\0' && n + 5 < size; src++) {
		if ((unsigned char)*src >= 0x20 && *src != 0x7f) {
			dst[n++] = *src;
			continue;
		}
		(void)snprintf(dst + n, size - n, "\\x%02x",
		    (unsigned char)*src);
		n += 4;
	}
	dst[n] = '\0';
}

static void
say(const char *fmt, va_list ap, int err)
{
	char	raw[2048], out[4096];

	(void)vsnprintf(raw, sizeof raw, fmt, ap);
	escape(raw, out, sizeof out);
	(void)fprintf(stderr, "workbox%s%s: %s%s%s\n",
	    *command != '\0' ? " " : "", command, out,
	    err != 0 ? ": " : "", err != 0 ? strerror(err) : "");
}

int
fail(const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	say(fmt, ap, 0);
	va_end(ap);
	return EXIT_OURS;
}

int
fail_errno(const char *fmt, ...)
{
	va_list	ap;
	int	err = errno;

	va_start(ap, fmt);
	say(fmt, ap, err);
	va_end(ap);
	errno = err;
	return EXIT_OURS;
}

void
note(const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	say(fmt, ap, 0);
	va_end(ap);
}

static int
number(const char *s, const char **ret_end, uint64_t *ret)
{
	unsigned long long	v;
	char			*end;

	if (!isdigit((unsigned char)*s))
		return -1;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno != 0)
		return -1;
	*ret_end = end;
	*ret = v;
	return 0;
}

int
text_u64(const char *s, uint64_t lo, uint64_t hi, uint64_t *ret)
{
	const char	*end;
	uint64_t	 v;

	if (number(s, &end, &v) == -1 || *end != '\0' || v < lo || v > hi)
		return -1;
	*ret = v;
	return 0;
}

int
text_bytes(const char *s, uint64_t lo, uint64_t hi, uint64_t *ret)
{
	static const char	 units[] = "KMGT";
	const char		*end, *u;
	uint64_t		 v;
	unsigned int		 shift;

	if (number(s, &end, &v) == -1)
		return -1;
	if (*end != '\0') {
		if ((u = strchr(units, toupper((unsigned char)*end))) == NULL)
			return -1;
		shift = 10 * (unsigned int)(u - units + 1);
		if (v > UINT64_MAX >> shift)
			return -1;
		v <<= shift;
		end++;
		if (strcmp(end, "iB") != 0 && strcmp(end, "B") != 0 &&
		    *end != '\0')
			return -1;
	}
	if (v < lo || v > hi)
		return -1;
	*ret = v;
	return 0;
}

int
text_decimal(const char *s, double lo, double hi, double *ret)
{
	double	 v;
	char	*end;

	/* strtod(3) takes signs, blanks, exponents, 0x2 and nan too. */
	if (s[strspn(s, "0123456789.")] != '\0')
		return -1;
	errno = 0;
	v = strtod(s, &end);
	if (errno != 0 || end == s || *end != '\0' || v < lo || v > hi)
		return -1;
	*ret = v;
	return 0;
}

/* Days since 1970-01-01 (proleptic Gregorian). */
static int64_t
days(int64_t y, int m, int d)
{
	int64_t	era, yoe, doy;

	y -= m <= 2;
	era = y / 400;
	yoe = y % 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

int64_t
text_time(const char *s)
{
	int	y, mo, d, h, mi, se;

	if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d", &y, &mo, &d, &h, &mi, &se) !=
	    6 || y < 1970 || mo < 1 || mo > 12 || d < 1 || d > 31)
		return -1;
	return ((days(y, mo, d) * 24 + h) * 60 + mi) * 60 + se;
}

void
text_local(int64_t seconds, char ret[20])
{
	time_t		t = (time_t)seconds;
	struct tm	tm;

	if (seconds < 0 || localtime_r(&t, &tm) == NULL ||
	    strftime(ret, 20, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		(void)str_copy(ret, "-", 20);
}

static const struct { int num; const char *name; } signals[] = {
	{ SIGHUP, "HUP" }, { SIGINT, "INT" }, { SIGQUIT, "QUIT" },
	{ SIGILL, "ILL" }, { SIGTRAP, "TRAP" }, { SIGABRT, "ABRT" },
	{ SIGBUS, "BUS" }, { SIGFPE, "FPE" }, { SIGKILL, "KILL" },
	{ SIGUSR1, "USR1" }, { SIGSEGV, "SEGV" }, { SIGUSR2, "USR2" },
	{ SIGPIPE, "PIPE" }, { SIGALRM, "ALRM" }, { SIGTERM, "TERM" },
	{ SIGCHLD, "CHLD" }, { SIGCONT, "CONT" }, { SIGSTOP, "STOP" },
	{ SIGTSTP, "TSTP" }, { SIGTTIN, "TTIN" }, { SIGTTOU, "TTOU" },
	{ SIGURG, "URG" }, { SIGXCPU, "XCPU" }, { SIGXFSZ, "XFSZ" },
	{ SIGVTALRM, "VTALRM" }, { SIGPROF, "PROF" }, { SIGSYS, "SYS" },
};

int
text_signal(const char *s)
{
	uint64_t	v;
	size_t		i;

	if (text_u64(s, 1, 64, &v) == 0)
		return (int)v;
	if (strncmp(s, "SIG", 3) == 0)
		s += 3;
	for (i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (strcmp(signals[i].name, s) == 0)
			return signals[i].num;
	return 0;
}

const char *
text_signal_name(int num)
{
	size_t	i;

	for (i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (signals[i].num == num)
			return signals[i].name;
	return "";
}

char *
text_file(const char *path, size_t max, size_t *ret_len)
{
	auto_close int	fd = -1;
	auto_free char *buf = NULL;
	size_t		len = 0;
	ssize_t		n;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return NULL;
	buf = xmalloc(max + 1);
	for (;;) {
		if (len == max + 1) {
			errno = EFBIG;
			return NULL;
		}
		n = read(fd, buf + len, max + 1 - len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return NULL;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	*ret_len = len;
	return steal_ptr(&buf);
}

void
table_init(struct table *t, size_t ncols, ...)
{
	va_list	ap;
	size_t	i;

	memset(t, 0, sizeof *t);
	t->ncols = ncols;
	va_start(ap, ncols);
	for (i = 0; i < ncols; i++)
		table_add(t, va_arg(ap, const char *));
	va_end(ap);
}

void
table_add(struct table *t, const char *cell)
{
	size_t	size = 4 * strlen(cell) + 6;

	if (t->ncells == t->room) {
		t->room = t->room == 0 ? 64 : 2 * t->room;
		t->cell = xreallocarray(t->cell, t->room, sizeof *t->cell);
	}
	t->cell[t->ncells] = xmalloc(size);
	escape(*cell != '\0' ? cell : "-", t->cell[t->ncells], size);
	t->ncells++;
}

void
table_print(struct table *t, FILE *f)
{
	size_t	 i, col, len;
	size_t	*width = xcalloc(t->ncols, sizeof *width);

	for (i = 0; i < t->ncells; i++)
		if ((len = strlen(t->cell[i])) > width[i % t->ncols])
			width[i % t->ncols] = len;
	for (i = 0; i < t->ncells; i++) {
		col = i % t->ncols;
		if (col + 1 == t->ncols)
			(void)fprintf(f, "%s\n", t->cell[i]);
		else
			(void)fprintf(f, "%-*s  ", (int)width[col], t->cell[i]);
		free(t->cell[i]);
	}
	free(t->cell);
	free(width);
	memset(t, 0, sizeof *t);
}

int
json_print(json_t *j)
{
	if (json_dumpf(j, stdout, JSON_INDENT(2) |
	    JSON_REAL_PRECISION(15)) == -1 ||
	    putchar('\n') == EOF || fflush(stdout) == EOF)
		return fail_errno("write standard output");
	return 0;
}

const char *
json_str(const json_t *j, const char *key)
{
	const char	*s = json_string_value(json_object_get(j, key));

	return s != NULL ? s : "";
}
