/*
 * settings: the client file, ~/.config/workbox/config: what neither an option
 * nor the environment says.
 *
 * A line is empty, a comment (#) or KEY = VALUE; a value with blanks, # or
 * quotes stands between double or single quotes, and has no escapes.  That is
 * a part of what workbox.conf(5) may be, read here without its library, which
 * a client does not need.  The file names where the key goes: one that others
 * can write is refused.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

#define FILE_MAX_BYTES	65536

static const char *const	keys[NSETTINGS] = {
	[SET_SERVER] = "server",
	[SET_TOKEN_FILE] = "token-file",
	[SET_CACERT] = "cacert",
	[SET_ROOTFS] = "default-rootfs",
};

/* The user's file, as read. */
static struct {
	char		*name;		/* owned; NULL: not read yet */
	char		*where[NSETTINGS];	/* owned; for messages */
	struct settings	 set;
} file;

/* ---- one line ---------------------------------------------------------- */

struct line {
	const char	*name;		/* borrowed: of the file */
	int		 num;
	char		*why;		/* borrowed: SETTINGS_WHY bytes */
};

static int	bad(const struct line *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

static int
bad(const struct line *l, const char *fmt, ...)
{
	va_list	ap;
	int	n;

	n = snprintf(l->why, SETTINGS_WHY, "%s:%d: ", l->name, l->num);
	va_start(ap, fmt);
	if (n > 0 && n < SETTINGS_WHY)
		(void)vsnprintf(l->why + n, (size_t)(SETTINGS_WHY - n), fmt,
		    ap);
	va_end(ap);
	return -1;
}

static int
find_key(const struct line *l, const char *word)
{
	struct nearest	 n = { .count = 0 };
	auto_free char	*hint = NULL;
	int		 i;

	for (i = 0; i < NSETTINGS; i++) {
		if (strcmp(keys[i], word) == 0)
			return i;
		nearest_try(&n, word, keys[i], keys[i]);
	}
	hint = nearest_hint(&n, "", "expected server, token-file, cacert or "
	    "default-rootfs");
	return bad(l, "there is no key \"%s\"%s", word, hint);
}

/* What stands behind the `=', unquoted where it is, or NULL: told. */
static char *
value(const struct line *l, const char *key, char *s)
{
	const char	*why = NULL;
	char		*end, quote = *s;

	if (quote == '"' || quote == '\'') {
		if ((end = strchr(++s, quote)) == NULL)
			why = "the same quote at the end";
		end = end == NULL ? s + strlen(s) : end + 1;
		if (why == NULL)
			end[-1] = '\0';
		/* workbox.conf(5) would see an escape, and a variable */
		if (why == NULL && quote == '"' && strchr(s, '\\') != NULL)
			why = "no \\ between double quotes";
		if (why == NULL && quote == '"' && strstr(s, "${") != NULL)
			why = "no ${ between double quotes";
	} else {
		end = s + strcspn(s, " \t#\"'");
		if (*end == '"' || *end == '\'')
			why = "quotes around the whole value";
		if (*end == '#')
			end[1] = '\0';	/* the rest says nothing */
		if (*end != '\0')
			*end++ = '\0';
	}
	end += strspn(end, " \t");
	if (why == NULL && *end != '\0' && *end != '#')
		why = "one value, between quotes where it has blanks";
	if (why == NULL && *s == '\0')
		why = "a value";
	if (why == NULL)
		return s;
	(void)bad(l, "%s: expected %s", key, why);
	return NULL;
}

/* The value in its final form, or NULL: told. */
static char *
check(const struct line *l, enum setting_key k, const char *s,
    const char *home)
{
	switch (k) {
	case SET_TOKEN_FILE:
	case SET_CACERT:
		if (*s == '/')
			return xstrdup(s);
		if (strncmp(s, "~/", 2) == 0 && home != NULL)
			return xasprintf("%s%s", home, s + 1);
		(void)bad(l, "%s: expected an absolute path, or one that "
		    "begins with ~/, not \"%s\"", keys[k], s);
		return NULL;
	case SET_ROOTFS:
		if (args_ref_ok(s) && *s >= '0' && (*s < 'A' || *s > 'Z'))
			return xstrdup(s);
		(void)bad(l, "%s: expected a name, of at most 63 of a-z 0-9 "
		    ". _ -, not \"%s\"", keys[k], s);
		return NULL;
	case SET_SERVER:	/* client.c knows */
	case NSETTINGS:
		break;
	}
	return xstrdup(s);
}

/* One line without its newline; it is written to. */
static int
take_line(const struct line *l, char *s, const char *home,
    struct settings *ret)
{
	char	*eq, *key = s + strspn(s, " \t"), *val;
	size_t	 i;
	int	 k;

	if (*key == '\0' || *key == '#')
		return 0;
	for (i = 0; key[i] != '\0'; i++)
		if (((unsigned char)key[i] < 0x20 && key[i] != '\t') ||
		    key[i] == 0x7f)
			return bad(l, "expected no control characters");
	if ((eq = strchr(key, '=')) == NULL)
		return bad(l, "expected KEY = VALUE");
	*eq++ = '\0';
	for (i = strlen(key); i > 0 && strchr(" \t", key[i - 1]) != NULL; i--)
		key[i - 1] = '\0';
	if ((k = find_key(l, key)) == -1 ||
	    (val = value(l, key, eq + strspn(eq, " \t"))) == NULL)
		return -1;
	if (ret->key[k].val != NULL)
		return bad(l, "%s is given twice, first in line %d", key,
		    ret->key[k].line);
	ret->key[k].line = l->num;
	ret->key[k].val = check(l, (enum setting_key)k, val, home);
	return ret->key[k].val != NULL ? 0 : -1;
}

int
settings_parse(const char *name, const char *text, size_t len,
    const char *home, struct settings *ret, char why[SETTINGS_WHY])
{
	struct line	 l = { name, 1, why };
	auto_free char	*own = xmalloc(len + 1);
	char		*s = own, *nl;

	memset(ret, 0, sizeof *ret);
	memcpy(own, text, len);
	own[len] = '\0';
	for (;; l.num++, s = nl + 1) {
		if ((nl = strchr(s, '\n')) != NULL)
			*nl = '\0';
		else if (strlen(s) != (size_t)(own + len - s))
			return bad(&l, "expected text");
		if (take_line(&l, s, home, ret) == -1)
			return -1;
		if (nl == NULL)
			return 0;
	}
}

void
settings_free(struct settings *set)
{
	int	i;

	for (i = 0; i < NSETTINGS; i++)
		free(set->key[i].val);
	memset(set, 0, sizeof *set);
}

/* ---- the user's file --------------------------------------------------- */

/* Its name, or NULL where the user has no place for it. */
static char *
find_file(const char *home)
{
	const char	*xdg = getenv("XDG_CONFIG_HOME");

	if (xdg != NULL && *xdg == '/')
		return xasprintf("%s/workbox/config", xdg);
	return home == NULL ? NULL :
	    xasprintf("%s/.config/workbox/config", home);
}

/* A descriptor that only this user, and root, can have written; -1: told. */
static int
check_file(int fd)
{
	struct stat	st;

	if (fstat(fd, &st) == -1)
		return fail_errno("%s", file.name);
	if (!S_ISREG(st.st_mode))
		return fail("%s: expected a regular file", file.name);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return fail("%s: expected a file of this user or of root",
		    file.name);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fail("%s: others than its owner can write it: chmod "
		    "go-w %s", file.name, file.name);
	return 0;
}

static char *
read_all(int fd, size_t *ret_len)
{
	char	*buf = xmalloc(FILE_MAX_BYTES + 1);
	size_t	 len = 0;
	ssize_t	 n;

	while ((n = read(fd, buf + len, FILE_MAX_BYTES + 1 - len)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 || (len += (size_t)n) > FILE_MAX_BYTES) {
			if (n != -1)
				errno = EFBIG;
			free(buf);
			return NULL;
		}
	}
	*ret_len = len;
	return buf;
}

int
settings_load(void)
{
	const char	*home = getenv("HOME");
	char		 why[SETTINGS_WHY];
	auto_close int	 fd = -1;
	auto_free char	*text = NULL;
	size_t		 len;
	int		 i, rc;

	if (home != NULL && *home != '/')
		home = NULL;
	if (file.name != NULL || (file.name = find_file(home)) == NULL)
		return 0;
	/* a FIFO in its place is not waited for */
	fd = open(file.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd == -1)
		return fail_errno("%s", file.name);
	if ((rc = check_file(fd)) != 0)
		return rc;
	if ((text = read_all(fd, &len)) == NULL)
		return fail_errno("%s", file.name);
	if (settings_parse(file.name, text, len, home, &file.set, why) == -1)
		return fail("%s", why);
	for (i = 0; i < NSETTINGS; i++)
		if (file.set.key[i].val != NULL)
			file.where[i] = xasprintf("%s:%d: %s", file.name,
			    file.set.key[i].line, keys[i]);
	return 0;
}

const char *
setting(const struct args *a, const char *opt, const char *env,
    enum setting_key k, const char **ret_where)
{
	static const char *const	dashed[NSETTINGS] = {
		[SET_SERVER] = "--server",
		[SET_TOKEN_FILE] = "--token-file",
		[SET_CACERT] = "--cacert",
		[SET_ROOTFS] = "--rootfs",
	};
	const char			*s;

	*ret_where = dashed[k];
	if ((s = args_get(a, opt)) != NULL)
		return s;
	*ret_where = env;
	if (env != NULL && (s = getenv(env)) != NULL && *s != '\0')
		return s;
	*ret_where = file.where[k];
	return file.set.key[k].val;
}
