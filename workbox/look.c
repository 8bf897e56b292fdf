/*
 * look: files of this system, or of another one below a directory, as
 * doctor's checks read them, and the arithmetic on what they say.
 *
 * Below a directory no link leads out of it.  What is read is a regular file,
 * and nothing else is opened for it: no pipe that makes its reader wait, and
 * no device, which on this host may begin to work.  Nothing here writes.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

#define MOST	(64L * 1024 * 1024)	/* bytes of a file: a program's */

static const char	*root;		/* NULL: this system; "": all of it */
static int		 root_fd = -1;

int
look_at(const char *dir)
{
	if ((root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return -1;
	root = strcmp(dir, "/") == 0 ? "" : dir;
	return 0;
}

const char *
look_root(void)
{
	return root;
}

int
look_open(const char *path, int flags)
{
	struct open_how	how = { .flags = (uint64_t)flags | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT };

	if (root == NULL)
		return open(path, flags | O_CLOEXEC);
	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

const char *
look_behind(const char *path)
{
	size_t	n = strlen(root);

	return strncmp(path, root, n) == 0 &&
	    (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

const char *
look_path(const char *path)
{
	return root == NULL ? path : path + strlen(root);
}

int
look_regular(int fd)
{
	auto_close int	f = fd;
	char		link[32];
	struct stat	st;

	if (f == -1 || fstat(f, &st) == -1)
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_size > MOST) {
		errno = S_ISREG(st.st_mode) ? EFBIG :
		    S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return -1;
	}
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", f);
	return open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

int
look_read(const char *path)
{
	return look_regular(look_open(path, O_PATH));
}

static int
open_in(int dirfd, const char *name, int flags)
{
	struct open_how	how = { .flags = (uint64_t)flags | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, dirfd, name, &how, sizeof how);
}

int
look_read_in(int dirfd, const char *name)
{
	return look_regular(open_in(dirfd, name, O_PATH));
}

int
look_state(const struct conf *c, const char *part)
{
	auto_close int	fd = look_open(look_path(c->state_dir), O_RDONLY |
	    O_DIRECTORY);

	return fd == -1 ? -1 : open_in(fd, part, O_RDONLY | O_DIRECTORY);
}

FILE *
look_file(const char *path)
{
	int	fd = look_read(path);

	return fd == -1 ? NULL : fdopen(fd, "r");
}

ssize_t
look_text(const char *path, char *buf, size_t size)
{
	auto_close int	fd = look_read(path);
	size_t		len = 0;
	ssize_t		n = -1;

	buf[0] = '\0';
	/* proc and sys give a file in parts */
	while (fd != -1 && len < size - 1 &&
	    (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (n == -1)
		return -1;
	buf[len] = '\0';
	return (ssize_t)len;
}

ssize_t
look_line(const char *path, char *buf, size_t size)
{
	ssize_t	n = look_text(path, buf, size);

	if (n > 0)
		buf[n = (ssize_t)strcspn(buf, "\n")] = '\0';
	return n;
}

/* The first line, or as much as there is room for, that begins with word. */
static int
find_line(FILE *fp, const char *word, char *line, size_t size)
{
	int	begins = 1, found = 0;	/* a long one comes in parts */

	while (!found && fgets(line, (int)size, fp) != NULL) {
		found = begins && strncmp(line, word, strlen(word)) == 0;
		begins = strchr(line, '\n') != NULL;
	}
	return found;
}

int
look_number(const char *path, const char *word, uint64_t *ret)
{
	FILE		*fp = look_file(path);
	char		 line[256], *end;
	const char	*p = line + strlen(word);
	uint64_t	 v;
	int		 found = fp != NULL && find_line(fp, word, line,
			    sizeof line);

	if (fp != NULL)
		(void)fclose(fp);	/* read only */
	if (!found)
		return -1;
	p += strspn(p, " \t");
	errno = 0;
	v = strtoull(p, &end, 10);
	if (!isdigit((unsigned char)*p) || errno != 0)
		return -1;
	*ret = v;
	return 0;
}

int
look_word(const char *list, const char *word)
{
	size_t	len = strlen(word), n;

	for (; *list != '\0'; list += n, list += *list == ' ') {
		n = strcspn(list, " \n");
		if (n == len && memcmp(list, word, n) == 0)
			return 1;
		if (list[n] == '\n')
			break;
	}
	return 0;
}

/* Whether path is dir or below it. */
static int
below(const char *path, const char *dir)
{
	size_t	n = strlen(dir);

	if (n == 1)
		return *path == '/';
	return strncmp(path, dir, n) == 0 &&
	    (path[n] == '/' || path[n] == '\0');
}

int
look_fstype(FILE *mounts, const char *path, char *ret, size_t size)
{
	struct mntent	m;
	char		buf[4096];
	size_t		best = 0, n;

	/* The last of those that are as long lies on top. */
	while (getmntent_r(mounts, &m, buf, sizeof buf) != NULL) {
		n = strlen(m.mnt_dir);
		if (n < best || !below(path, m.mnt_dir))
			continue;
		best = n;
		(void)str_copy(ret, m.mnt_type, size);
	}
	return best > 0 ? 0 : -1;
}

int
look_overlap(const struct id_range *a, const struct id_range *b)
{
	return a->count > 0 && b->count > 0 &&
	    a->first < b->first + b->count && b->first < a->first + a->count;
}

/* Digits up to stop; past it, or NULL. */
static const char *
id(const char *p, char stop, uint64_t *ret)
{
	char	*end;

	errno = 0;
	*ret = strtoull(p, &end, 10);
	return isdigit((unsigned char)*p) && errno == 0 && *end == stop &&
	    *ret <= UINT32_MAX ? end + 1 : NULL;
}

int
look_subid(const char *line, char name[64], struct id_range *ret)
{
	struct id_range	r;
	const char	*p = strchr(line, ':');
	size_t		n = p == NULL ? 0 : (size_t)(p - line);

	if (n == 0 || n >= 64 || line[0] == '#' ||
	    (p = id(p + 1, ':', &r.first)) == NULL)
		return -1;
	/* the last line may lack its end */
	if (id(p, '\n', &r.count) == NULL && id(p, '\0', &r.count) == NULL)
		return -1;
	memcpy(name, line, n);
	name[n] = '\0';
	*ret = r;
	return 0;
}

enum clock_is
look_clock(int64_t now, int synchronised)
{
	/* 2024-01-01: before this program */
	if (now < INT64_C(1704067200))
		return CLOCK_UNSET;
	return synchronised ? CLOCK_GOOD : CLOCK_FREE;
}
