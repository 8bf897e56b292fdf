/*
 * changes: what a box has added, changed and deleted, by its upper layer.
 *
 * A child lists it: root of a user namespace that maps the box's uids alone,
 * with one capability over these (DAC_READ_SEARCH), no other right on the
 * host than any user has, and no descriptor but the two trees and a pipe (its
 * memory is a copy of the client's, with the key).  It opens directories and
 * nothing else, never through a link, and reads no file.  What it writes is
 * taken as bytes.
 *
 * A character device 0:0 is overlayfs's word for a name that was deleted.
 * Its other words are attributes that only the host's root may read: so a
 * directory that took the place of one that was deleted is told as changed,
 * one that was renamed as added, and what lies in it still by its old name.
 *
 * The image below has other owners on the disk than the box sees; the child
 * gets a mount of it that has the box's, as the box has.  What it cannot look
 * at there all the same is told as added or changed.
 *
 * Must never: follow a name out of the tree, or run as the host's root.
 */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <linux/capability.h>
#include <linux/mount.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle.h"
#include "fds.h"
#include "workbox.h"
#include "xmalloc.h"

#define DEPTH		96		/* deeper is not listed */
#define LINES		200000		/* nor are more */
#define IDS		65536U		/* uids of a box */

enum { NONE = -1, HIDDEN = -2 };	/* below: none, or none to be seen */

static unsigned int	 nlines;
static size_t		 nbytes;
static uid_t		 base;

static const char *
type_of(mode_t m)
{
	return S_ISDIR(m) ? "directory" : S_ISLNK(m) ? "link" :
	    S_ISREG(m) ? "file" : S_ISFIFO(m) ? "fifo" :
	    S_ISSOCK(m) ? "socket" : "device";
}

/* A path as JSON: text where it is UTF-8, else its bytes in hexadecimal. */
static void
set_path(json_t *o, const char *path)
{
	json_t	*s = json_string(path);
	char	*hex;
	size_t	 i, n = strlen(path);

	if (s != NULL) {
		json_object_set_new(o, "path", s);
		return;
	}
	hex = xcalloc(n + 1, 2);
	for (i = 0; i < n; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", (uint8_t)path[i]);
	json_object_set_new(o, "pathHex", json_string(hex));
	free(hex);
}

static void
line(FILE *f, const char *path, const char *change, const struct stat *st)
{
	json_t		*o = json_pack("{s:s}", "change", change);
	auto_free char	*s = NULL;
	char		 mode[8];

	set_path(o, path);
	if (st != NULL && strcmp(change, "deleted") != 0) {
		(void)snprintf(mode, sizeof mode, "%04o", st->st_mode & 07777);
		json_object_set_new(o, "type", json_string(type_of(
		    st->st_mode)));
		json_object_set_new(o, "mode", json_string(mode));
		json_object_set_new(o, "uid", json_integer(st->st_uid));
		json_object_set_new(o, "gid", json_integer(st->st_gid));
		json_object_set_new(o, "bytes", json_integer(
		    (json_int_t)st->st_size));
		json_object_set_new(o, "mtime", json_integer(
		    (json_int_t)st->st_mtime));
	}
	if ((s = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII)) != NULL) {
		(void)fprintf(f, "%s\n", s);
		nbytes += strlen(s) + 1;
	}
	json_decref(o);
	/* what is beyond would be lost with all of it */
	if (++nlines < LINES && nbytes > BUNDLE_BYTES - (1UL << 20))
		nlines = LINES;
}

static int
open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC | O_NONBLOCK);
}

/* The same below; a link or a file is no directory. */
static int
open_low(int low, const char *name)
{
	int	fd = low < 0 ? low : open_dir(low, name);

	return low < 0 || fd != -1 ? fd : errno == ENOENT ||
	    errno == ENOTDIR || errno == ELOOP ? NONE : HIDDEN;
}

static const char *
against(int low, const char *name)
{
	struct stat	old;

	if (low >= 0 && fstatat(low, name, &old, AT_SYMLINK_NOFOLLOW) == 0)
		return "changed";
	return low == NONE || (low >= 0 && errno == ENOENT) ? "added" :
	    "added or changed";
}

static void	walk(FILE *, int, int, const char *, int);

/* One name of an upper directory. */
static void
walk_one(FILE *f, int up, int low, const char *dir, const char *name,
    int depth)
{
	auto_free char	*path = xasprintf("%s/%s", dir, name);
	struct stat	 st;

	if (fstatat(up, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return;			/* it is gone */
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0)) {
		line(f, path, "deleted", &st);
		return;
	}
	line(f, path, against(low, name), &st);
	if (!S_ISDIR(st.st_mode))
		return;
	if (depth == DEPTH)
		line(f, path, "deeper is not listed", NULL);
	else
		walk(f, open_dir(up, name), open_low(low, name), path,
		    depth + 1);
}

/* Takes both. */
static void
walk(FILE *f, int up, int low, const char *path, int depth)
{
	DIR		*d = up == -1 ? NULL : fdopendir(up);
	struct dirent	*e;

	if (d == NULL) {
		line(f, path, "not readable", NULL);
		fd_close(&up);
	} else {
		while (nlines < LINES && (e = readdir(d)) != NULL)
			if (strcmp(e->d_name, ".") != 0 &&
			    strcmp(e->d_name, "..") != 0)
				walk_one(f, up, low, path, e->d_name, depth);
		(void)closedir(d);
	}
	if (low >= 0)
		fd_close(&low);
}

/* ---- the child --------------------------------------------------------- */

/* All but one capability, over the mapped ids alone. */
static int
drop(void)
{
	struct __user_cap_header_struct	h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	d[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	struct rlimit			none = { 0, 0 }, few = { 512, 512 };

	d[0].effective = d[0].permitted = 1U << CAP_DAC_READ_SEARCH;
	return setresgid(0, 0, 0) == -1 || setgroups(0, NULL) == -1 ||
	    setresuid(0, 0, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    setrlimit(RLIMIT_NOFILE, &few) == -1 ||
	    setrlimit(RLIMIT_FSIZE, &none) == -1 ||
	    setrlimit(RLIMIT_CORE, &none) == -1 ||
	    setrlimit(RLIMIT_NPROC, &none) == -1 ||
	    syscall(SYS_capset, &h, d) == -1 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 /* gone with the uid */ ?
	    -1 : 0;
}

enum { FD_OUT = 3, FD_GO, FD_UPPER, FD_N };

/* What the parent has open, a connection to the server too, goes. */
static int
places(int upper, int out, int go)
{
	int	fd[FD_N] = { -1, -1, -1, out, go, upper }, i;

	for (i = FD_OUT; i < FD_N; i++)
		if ((fd[i] = fcntl(fd[i], F_DUPFD, FD_N)) == -1)
			return -1;
	for (i = FD_OUT; i < FD_N; i++)
		if (dup2(fd[i], i) == -1)
			return -1;
	return close_range(FD_N, ~0U, 0) == -1 || close_range(0, 2, 0) == -1 ?
	    -1 : 0;
}

static __attribute__((noreturn)) void
child(int upper, int out, int go)
{
	FILE	*f;
	char	 c;
	int	 low[FDS_MAX];
	size_t	 n;

	if (places(upper, out, go) == -1)
		_exit(1);
	/* SIGPIPE ends it, when nobody reads */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == -1 ||
	    write(FD_OUT, "u", 1) != 1 ||
	    fds_recv(FD_GO, &c, 1, low, &n, 0) != 1 || drop() == -1 ||
	    close(FD_GO) == -1 || (f = fdopen(FD_OUT, "w")) == NULL)
		_exit(1);
	walk(f, FD_UPPER, n == 1 ? low[0] : HIDDEN, "", 0);
	if (nlines >= LINES)
		line(f, "", "more is not listed", NULL);
	_exit(fclose(f) == 0 ? 0 : 1);
}

/* ---- the parent -------------------------------------------------------- */

static int
map(pid_t pid, const char *which)
{
	auto_free char	*path = xasprintf("/proc/%ld/%s", (long)pid, which);
	auto_close int	 fd = open(path, O_WRONLY | O_CLOEXEC);
	char		 text[64];
	int		 n = snprintf(text, sizeof text, "0 %u %u\n",
			    (unsigned int)base, IDS);

	return fd != -1 && write(fd, text, (size_t)n) == n ? 0 : -1;
}

/*
 * A mount of the image that lies nowhere, with the owners that the child has:
 * its user namespace maps 0 on of the disk as 0 on of the box.  -1: none.
 */
static int
image(pid_t pid, int lower)
{
	auto_free char		*path = xasprintf("/proc/%ld/ns/user",
				    (long)pid);
	auto_close int		 user = open(path, O_RDONLY | O_CLOEXEC);
	struct mount_attr	 a = { .attr_set = MOUNT_ATTR_IDMAP |
				    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
				    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
				    MOUNT_ATTR_NOSYMFOLLOW,
				    .propagation = MS_PRIVATE,
				    .userns_fd = (uint64_t)user };
	auto_close int		 mnt = -1, dir = -1;

	if (user == -1 || (mnt = (int)syscall(SYS_open_tree, lower, "",
	    AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) == -1 ||
	    syscall(SYS_mount_setattr, mnt, "", AT_EMPTY_PATH, &a,
	    sizeof a) == -1)
		return -1;
	dir = openat(mnt, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return steal_fd(&dir);
}

static int
go_on(pid_t pid, int go, int lower)
{
	auto_close int	low = lower == -1 ? -1 : image(pid, lower);

	return fds_send(go, "g", 1, &low, low != -1, 0);
}

static char *
collect(pid_t pid, int in, int go, int lower, size_t *ret_len)
{
	char	*s = NULL, c;
	int	 status;

	if (read(in, &c, 1) == 1 && map(pid, "uid_map") == 0 &&
	    map(pid, "gid_map") == 0 && go_on(pid, go, lower) == 0)
		s = text_fd(in, BUNDLE_BYTES, ret_len);
	if (s == NULL)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (s != NULL && status != 0) {
		free(s);
		s = NULL;
		errno = EIO;
	}
	return s;
}

/* As the maker finds it again: box_make() in maker/box.c says where it is. */
static uid_t
range_of(int upper)
{
	struct stat	 st;

	if ((fstatat(upper, "../spec", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_uid != 0) || fstat(upper, &st) == 0)
		return st.st_uid;
	return 0;
}

char *
changes_read(int upper, int lower, size_t *ret_len)
{
	int		 out[2], go[2];
	char		*s;
	pid_t		 pid;

	if ((base = range_of(upper)) < IDS) {
		errno = EPERM;		/* no box has such a uid */
		return NULL;
	}
	if (pipe2(out, O_CLOEXEC) == -1 || socketpair(AF_UNIX,
	    SOCK_SEQPACKET | SOCK_CLOEXEC, 0, go) == -1 ||
	    (pid = fork()) == -1)
		return NULL;
	if (pid == 0) {
		(void)close(out[0]);
		(void)close(go[1]);
		child(upper, out[1], go[0]);
	}
	(void)close(out[1]);
	(void)close(go[0]);
	s = collect(pid, out[0], go[1], lower, ret_len);
	(void)close(out[0]);
	(void)close(go[1]);
	return s;
}
