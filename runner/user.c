/*
 * user.c: who a session runs as, looked up in the box's own files.
 *
 * passwd(5) and group(5) are the box's word, and so is the answer: it decides
 * nothing outside of the box.  Read here, since a static libc would load what
 * the box's nsswitch.conf names into pid 1.
 *
 * Must never: block on what lies under these names, follow a number out of
 * the box's range, read without end.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

#define ID_MAX		65535U		/* of a box's ids */
#define FILE_MAX	(8UL * 1024 * 1024)	/* what follows is not read */
#define LINE_BYTES	65536UL		/* a longer line is passed over */
#define GROUPS_MAX	256

struct lines {
	int	 fd;			/* owned */
	char	*buf;			/* owned: LINE_BYTES and a NUL */
	size_t	 at, len;		/* of buf: the next line, all */
	size_t	 read;			/* of the file */
	int	 over;			/* within a line that is too long */
};

/* A regular file, or none: opening anything else might wait. */
static int
lines_open(struct lines *l, const char *path)
{
	struct stat	st;

	memset(l, 0, sizeof(*l));
	l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (l->fd == -1)
		return -1;
	if (fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (l->buf = malloc(LINE_BYTES + 1)) != NULL)
		return 0;
	fd_close(&l->fd);
	return -1;
}

static void
lines_close(struct lines *l)
{
	fd_close(&l->fd);
	free(l->buf);
}

/* Moves what is left to the front, and reads on.  -1: the file's end. */
static int
lines_fill(struct lines *l)
{
	ssize_t	n;

	if (l->at == 0 && l->len == LINE_BYTES) {
		l->over = 1;
		l->at = l->len;
	}
	memmove(l->buf, l->buf + l->at, l->len - l->at);
	l->len -= l->at;
	l->at = 0;
	if (l->read >= FILE_MAX)
		return -1;
	n = read(l->fd, l->buf + l->len, LINE_BYTES - l->len);
	if (n <= 0)
		return -1;
	l->len += (size_t)n;
	l->read += (size_t)n;
	return 0;
}

/* The next whole line that is text, without its end, or NULL. */
static char *
lines_next(struct lines *l)
{
	char	*line, *nl;
	int	 over;

	for (;;) {
		nl = memchr(l->buf + l->at, '\n', l->len - l->at);
		if (nl == NULL) {
			if (lines_fill(l) == 0)
				continue;
			if (l->at == l->len || l->read >= FILE_MAX)
				return NULL;
			nl = l->buf + l->len++;	/* a file's last */
		}
		line = l->buf + l->at;
		l->at = (size_t)(nl - l->buf) + 1;
		*nl = '\0';
		over = l->over;
		l->over = 0;
		if (!over && strlen(line) == (size_t)(nl - line))
			return line;
	}
}

/* Cuts a line at its colons; how many fields there are, at most n. */
static size_t
fields(char *line, char **f, size_t n)
{
	size_t	i = 0;

	while (line != NULL && i < n)
		f[i++] = strsep(&line, ":");
	return i;
}

/* 0, or -1: not a number, or not of this box. */
static int
number(const char *s, unsigned int *ret)
{
	unsigned long	 v;
	char		*end;

	if (*s < '0' || *s > '9')
		return -1;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (*end != '\0' || errno != 0 || v > ID_MAX)
		return -1;
	*ret = (unsigned int)v;
	return 0;
}

/* By name, or by number where name is NULL.  0: found. */
static int
passwd_find(const char *name, struct user *u)
{
	struct lines	 l;
	char		*line, *f[7];
	unsigned int	 uid, gid;
	int		 r = -1;

	if (lines_open(&l, "/etc/passwd") == -1)
		return -1;
	while (r == -1 && (line = lines_next(&l)) != NULL) {
		if (fields(line, f, 7) < 6 || number(f[2], &uid) == -1 ||
		    number(f[3], &gid) == -1 || *f[0] == '\0' ||
		    (name != NULL ? strcmp(f[0], name) != 0 : uid != u->uid))
			continue;
		u->uid = uid;
		u->gid = gid;
		if (str_copy(u->name, f[0], sizeof(u->name)) == -1)
			u->name[0] = '\0';	/* no name to be told */
		if (f[5][0] != '/' ||
		    str_copy(u->home, f[5], sizeof(u->home)) == -1)
			(void)str_copy(u->home, "/", sizeof(u->home));
		r = 0;
	}
	lines_close(&l);
	return r;
}

static int
group_find(const char *name, unsigned int *ret)
{
	struct lines	 l;
	char		*line, *f[4];
	int		 r = -1;

	if (lines_open(&l, "/etc/group") == -1)
		return -1;
	while (r == -1 && (line = lines_next(&l)) != NULL)
		if (fields(line, f, 4) >= 3 && strcmp(f[0], name) == 0)
			r = number(f[2], ret);
	lines_close(&l);
	return r;
}

static int
has_member(char *list, const char *name)
{
	char	*m;

	while ((m = strsep(&list, ",")) != NULL)
		if (strcmp(m, name) == 0)
			return 1;
	return 0;
}

/* What group(5) adds to the user's own group.  0, or -1: no memory. */
static int
groups_of(struct user *u)
{
	struct lines	 l;
	char		*line, *f[4];
	unsigned int	 gid;
	gid_t		 g;

	if ((u->groups = malloc(GROUPS_MAX * sizeof(g))) == NULL)
		return -1;
	if (u->name[0] == '\0' || lines_open(&l, "/etc/group") == -1)
		return 0;
	while (u->ngroups < GROUPS_MAX && (line = lines_next(&l)) != NULL) {
		if (fields(line, f, 4) < 4 || number(f[2], &gid) == -1 ||
		    !has_member(f[3], u->name))
			continue;
		g = gid;
		memcpy(u->groups + u->ngroups++ * sizeof(g), &g, sizeof(g));
	}
	lines_close(&l);
	return 0;
}

unsigned int
user_find(const char *ask, struct user *ret, const char **ret_why)
{
	char		 name[65];
	char		*group;
	unsigned int	 gid;

	memset(ret, 0, sizeof(*ret));
	(void)str_copy(name, ask, sizeof(name));	/* bounded by wire */
	if ((group = strchr(name, ':')) != NULL)
		*group++ = '\0';
	*ret_why = "no such user in the sandbox's /etc/passwd";
	(void)str_copy(ret->home, "/", sizeof(ret->home));
	if (number(name, &ret->uid) == 0)
		(void)passwd_find(NULL, ret);	/* a number needs no entry */
	else if (passwd_find(name, ret) == -1)
		return CODE_USER_UNKNOWN;
	if (group == NULL)
		return groups_of(ret) == -1 ? CODE_INTERNAL : CODE_NONE;
	*ret_why = "no such group in the sandbox's /etc/group";
	if (number(group, &gid) == -1 && group_find(group, &gid) == -1)
		return CODE_USER_UNKNOWN;
	ret->gid = gid;		/* and no other */
	if ((ret->groups = malloc(1)) == NULL)
		return CODE_INTERNAL;
	return CODE_NONE;
}
