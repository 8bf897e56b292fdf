/*
 * text: messages, numbers, times and files; the characters that people may
 * be shown.
 *
 * What comes from a server or a box is printed by text_show(), here and in
 * tables, or by text_ascii(); raw bytes go out in exec and logs, and in
 * records that go to no terminal.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "workbox.h"
#include "xmalloc.h"

static const char	*command = "";

void
text_command(const char *name)
{
	command = name;
}

/* ---- characters -------------------------------------------------------- */

size_t
text_utf8(const char *s, uint32_t *ret)
{
	static const uint32_t	 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char	*p = (const unsigned char *)s;
	uint32_t		 c = *p;
	size_t			 i, n;

	n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	if (n == 1) {
		*ret = c;
		return 1;
	}
	if (c < 0xc2 || c > 0xf4)
		return 0;
	c &= 0xffU >> (n + 1);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return n;
}

int
text_hidden(uint32_t c)
{
	static const struct { uint32_t first, last; }	sets[] = {
		{ 0x00, 0x1f }, { 0x7f, 0x9f },		/* controls */
		{ 0xad, 0xad },				/* soft hyphen */
		{ 0x61c, 0x61c }, { 0x200b, 0x200f },	/* joiners, marks */
		{ 0x2028, 0x202e }, { 0x2060, 0x206f },	/* lines, directions */
		{ 0x115f, 0x1160 }, { 0x3164, 0x3164 },	/* fillers */
		{ 0x180b, 0x180f }, { 0xffa0, 0xffa0 },
		{ 0xfe00, 0xfe0f },			/* variations */
		{ 0xfeff, 0xfeff }, { 0xfff0, 0xfffb },
		{ 0x1f1e6, 0x1f1ff }, { 0x1f3fb, 0x1f3ff }, /* join others */
		{ 0xe0000, 0xe0fff },			/* tags, variations */
	};
	size_t						i;

	for (i = 0; i < sizeof sets / sizeof sets[0]; i++)
		if (c >= sets[i].first && c <= sets[i].last)
			return 1;
	return 0;
}

/* The columns that c takes behind others, or -1: it is not to be shown. */
static int
columns(uint32_t c, size_t before)
{
	int	w;

	if (text_hidden(c))
		return -1;
	if (c < 0x80)
		return 1;
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		return -1;
	w = wcwidth((wchar_t)c);
	return w == 0 && before == 0 ? -1 : w;
}

/* text_show(), or with ascii as text_ascii() does. */
static size_t
show(const char *src, char *dst, size_t size, int ascii)
{
	uint32_t	c = 0;
	size_t		n = 0, cols = 0, len;
	int		w;

	/* the longest that one character becomes, and NUL */
	for (; *src != '\0' && n + 11 <= size; src += len) {
		len = ascii && (unsigned char)*src >= 0x80 ? 0 :
		    text_utf8(src, &c);
		w = len == 0 ? -1 : columns(c, cols);
		if (w >= 0) {
			memcpy(dst + n, src, len);
			n += len;
			cols += (size_t)w;
			continue;
		}
		w = snprintf(dst + n, size - n, len == 0 || c < 0x80 ?
		    "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x",
		    len == 0 ? (unsigned int)(unsigned char)*src : c);
		n += (size_t)w;
		cols += (size_t)w;
		len += len == 0;
	}
	dst[n] = '\0';
	return cols;
}

size_t
text_show(const char *src, char *dst, size_t size)
{
	return show(src, dst, size, 0);
}

char *
text_ascii(const char *src)
{
	size_t	 size = 4 * strlen(src) + 12;
	char	*dst = xmalloc(size);

	(void)show(src, dst, size, 1);
	return dst;
}

int
text_colour(FILE *f)
{
	const char	*no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(f)) && (no == NULL || *no == '\0') &&
	    term != NULL && *term != '\0' && strcmp(term, "dumb") != 0;
}

/* ---- messages ---------------------------------------------------------- */

static void	(*teller)(const char *);

void
text_told(void (*fn)(const char *))
{
	teller = fn;
}

static void
say(const char *fmt, va_list ap, int err)
{
	char	raw[2048], out[4096], why[128] = "";

	(void)vsnprintf(raw, sizeof raw, fmt, ap);
	(void)text_show(raw, out, sizeof out - sizeof why);
	if (err != 0)
		(void)snprintf(why, sizeof why, ": %s", strerror(err));
	if (teller != NULL) {
		(void)str_copy(out + strlen(out), why, sizeof why);
		teller(out);
	} else
		(void)fprintf(stderr, "workbox%s%s: %s%s\n",
		    *command != '\0' ? " " : "", command, out, why);
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

/* ---- numbers, times, signals, files ------------------------------------ */

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
	auto_close int	fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd == -1 ? NULL : text_fd(fd, max, ret_len);
}

char *
text_fd(int fd, size_t max, size_t *ret_len)
{
	auto_free char *buf = xmalloc(max + 1);
	size_t		len = 0;
	ssize_t		n;

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
