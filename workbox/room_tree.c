/*
 * room_tree: puts files, links and directories into a tree, by names that a
 * stranger chose.
 *
 * A directory is found by openat2(2), beneath the root, through no link and
 * no mount; what is made in it has a plain name and is made exclusively.  So
 * no name leads out, none through something that an earlier entry put there,
 * and nothing is made twice.  Directories stay root's and 0700 until all is
 * there, then they get their owner, mode and time.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "room.h"
#include "xmalloc.h"

#define TWICE	"is in the archive twice, and not as a directory both times"
#define THROUGH	"leads through something that is not a directory"

void
room_tree_init(struct room_tree *t, int root)
{
	memset(t, 0, sizeof *t);
	t->root = root;
	t->dir = -1;
}

void
room_tree_free(struct room_tree *t)
{
	size_t	i;

	for (i = 0; i < t->nlate; i++)
		free(t->late[i].name);
	free(t->late);
	fd_close(&t->dir);
}

/* errno says why, unless this does. */
static int
refuse(struct room_tree *t, const char *why)
{
	t->why = why;
	return -1;
}

const char *
room_name(const char *s, char ret[ROOM_NAME])
{
	size_t	n = 0, len, depth = 0;

	if (*s == '\0')
		return "has no name";
	if (*s == '/')
		return "has an absolute name";
	for (;; s += len) {
		s += strspn(s, "/");
		if ((len = strcspn(s, "/")) == 0)
			break;
		if (len == 1 && s[0] == '.')
			continue;
		if (len == 2 && s[0] == '.' && s[1] == '.')
			return "has `..' in its name";
		if (len > NAME_MAX)
			return "has a part of its name of more than 255 bytes";
		if (n + len + 2 > ROOM_NAME)
			return "has a name of more than 4095 bytes";
		if (++depth > ROOM_DEPTH)
			return "lies more than 128 directories deep";
		if (n > 0)
			ret[n++] = '/';
		memcpy(ret + n, s, len);
		n += len;
	}
	ret[n] = '\0';
	return NULL;
}

/* ---- directories -------------------------------------------------------- */

static int
open_beneath(int dirfd, const char *name, uint64_t flags)
{
	struct open_how	how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
	    RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, dirfd, *name != '\0' ? name : ".",
	    &how, sizeof how);
}

/* Makes each part of the name that is missing. */
static int
make_dirs(struct room_tree *t, const char *name)
{
	auto_close int	 at = open_beneath(t->root, "", O_PATH | O_DIRECTORY);
	char		 part[NAME_MAX + 1];
	size_t		 len;
	int		 next;

	for (; at != -1 && *name != '\0'; name += len, name += *name == '/') {
		len = strcspn(name, "/");
		memcpy(part, name, len);
		part[len] = '\0';
		if (mkdirat(at, part, 0755) == 0)
			t->unnamed++;
		else if (errno != EEXIST)
			return -1;
		next = open_beneath(at, part, O_PATH | O_DIRECTORY);
		fd_close(&at);
		at = next;
	}
	return at == -1 ? -1 : 0;
}

/* Opens a directory of the tree, made where it is missing. */
static int
enter(struct room_tree *t, const char *name)
{
	int	fd = open_beneath(t->root, name, O_PATH | O_DIRECTORY);

	if (fd == -1 && errno == ENOENT && make_dirs(t, name) == 0)
		fd = open_beneath(t->root, name, O_PATH | O_DIRECTORY);
	if (fd == -1 && (errno == ELOOP || errno == ENOTDIR))
		return refuse(t, THROUGH);
	return fd;
}

/* The directory that name lies in (borrowed), and its last part. */
static int
parent(struct room_tree *t, const char *name, const char **ret_base)
{
	const char	*slash = strrchr(name, '/');
	char		 dir[ROOM_NAME];
	size_t		 len = slash == NULL ? 0 : (size_t)(slash - name);
	int		 fd;

	t->why = NULL;
	if (*name == '\0')
		return refuse(t, "is the root, and not a directory");
	memcpy(dir, name, len);
	dir[len] = '\0';
	*ret_base = slash == NULL ? name : slash + 1;
	if (t->dir != -1 && strcmp(dir, t->dir_name) == 0)
		return t->dir;
	if ((fd = enter(t, dir)) == -1)
		return -1;
	fd_close(&t->dir);
	t->dir = fd;
	memcpy(t->dir_name, dir, len + 1);
	return fd;
}

static void
keep_late(struct room_tree *t, const char *name, const struct room_attr *a)
{
	if (t->nlate == t->room) {
		t->room = t->room == 0 ? 64 : 2 * t->room;
		t->late = xreallocarray(t->late, t->room, sizeof *t->late);
	}
	t->late[t->nlate].name = xstrdup(name);
	t->late[t->nlate++].attr = *a;
}

int
room_tree_dir(struct room_tree *t, const char *name,
    const struct room_attr *a, int *ret_fd)
{
	const char	*base;
	int		 at, fd;

	t->why = NULL;
	if (*name != '\0') {
		if ((at = parent(t, name, &base)) == -1)
			return -1;
		if (mkdirat(at, base, 0700) == -1 && errno != EEXIST)
			return -1;
	}
	fd = open_beneath(t->root, name, O_RDONLY | O_DIRECTORY);
	if (fd == -1)
		return refuse(t, errno == ELOOP || errno == ENOTDIR ? TWICE :
		    NULL);
	keep_late(t, name, a);
	*ret_fd = fd;
	return 0;
}

/* ---- what lies in them -------------------------------------------------- */

static int
made(struct room_tree *t, int rc)
{
	return rc == -1 && errno == EEXIST ? refuse(t, TWICE) : rc;
}

int
room_tree_file(struct room_tree *t, const char *name)
{
	const char	*base;
	int		 at = parent(t, name, &base);

	return at == -1 ? -1 : made(t, openat(at, base, O_WRONLY | O_CREAT |
	    O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

static void
times(const struct room_attr *a, struct timespec ret[2])
{
	ret[0].tv_sec = 0;
	ret[0].tv_nsec = UTIME_OMIT;
	ret[1].tv_sec = a->mtime;
	ret[1].tv_nsec = a->has_mtime ? a->mtime_ns : UTIME_OMIT;
}

int
room_attr_set(int fd, const struct room_attr *a)
{
	struct timespec	ts[2];

	times(a, ts);
	/* in this order: a new owner takes setuid bits away */
	return fchown(fd, a->uid, a->gid) == -1 || fchmod(fd, a->mode) == -1 ||
	    futimens(fd, ts) == -1 ? -1 : 0;
}

static int
owner_at(int at, const char *base, const struct room_attr *a)
{
	struct timespec	ts[2];

	times(a, ts);
	return fchownat(at, base, a->uid, a->gid, AT_SYMLINK_NOFOLLOW) == -1 ?
	    -1 : utimensat(at, base, ts, AT_SYMLINK_NOFOLLOW);
}

int
room_tree_link(struct room_tree *t, const char *name, const char *to,
    const struct room_attr *a)
{
	const char	*base;
	int		 at = parent(t, name, &base);

	if (at == -1)
		return -1;
	if (*to == '\0')
		return refuse(t, "is a symbolic link to nothing");
	if (made(t, symlinkat(to, at, base)) == -1)
		return -1;
	return owner_at(at, base, a);
}

int
room_tree_fifo(struct room_tree *t, const char *name,
    const struct room_attr *a)
{
	const char	*base;
	int		 at = parent(t, name, &base);

	if (at == -1 ||
	    made(t, mknodat(at, base, S_IFIFO | 0600, 0)) == -1)
		return -1;
	/* just made, and nobody else writes here: base is no link */
	if (fchownat(at, base, a->uid, a->gid, AT_SYMLINK_NOFOLLOW) == -1 ||
	    fchmodat(at, base, a->mode, 0) == -1)
		return -1;
	return owner_at(at, base, a);
}

int
room_tree_hard(struct room_tree *t, const char *name, const char *to)
{
	auto_close int	 from = -1;
	auto_free char	*dir = xstrdup(to);
	char		*slash = strrchr(dir, '/');
	const char	*base, *last = slash == NULL ? to : to + (slash + 1 -
			    dir);
	struct stat	 st;
	int		 at;

	t->why = NULL;
	*(slash == NULL ? dir : slash) = '\0';
	if ((from = open_beneath(t->root, dir, O_PATH | O_DIRECTORY)) == -1 ||
	    fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return refuse(t, "is a hard link to what is not there, or not "
		    "yet");
	if (S_ISDIR(st.st_mode))
		return refuse(t, "is a hard link to a directory");
	if ((at = parent(t, name, &base)) == -1)
		return -1;
	return made(t, linkat(from, last, at, base, 0));
}

/* ---- the end ------------------------------------------------------------ */

/* Where the maker mounts, or puts files, in every sandbox. */
static int
mount_points(struct room_tree *t)
{
	static const char *const	points[] = { "dev", "etc", "opt",
	    "opt/workbox", "proc", "run", "tmp" };
	struct stat			st;
	size_t				i;

	for (i = 0; i < sizeof points / sizeof points[0]; i++)
		if (fstatat(t->root, points[i], &st, AT_SYMLINK_NOFOLLOW) == 0
		    && !S_ISDIR(st.st_mode))
			return refuse(t, "/dev, /etc, /opt, /opt/workbox, "
			    "/proc, /run and /tmp: expected directories, as "
			    "sandboxes have something there");
	return 0;
}

int
room_tree_finish(struct room_tree *t)
{
	size_t	i;
	int	fd, rc = 0;

	t->why = NULL;
	if (mount_points(t) == -1)
		return -1;
	for (i = 0; rc == 0 && i < t->nlate; i++) {
		fd = open_beneath(t->root, t->late[i].name, O_RDONLY |
		    O_DIRECTORY);
		rc = fd == -1 ? -1 : room_attr_set(fd, &t->late[i].attr);
		fd_close(&fd);
	}
	return rc;
}
