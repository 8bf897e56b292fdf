/*
 * tree: directories that are built under a name of their own and then
 * renamed into place, so that an interrupted build leaves nothing.
 *
 * A builder holds a lock on its directory; whoever comes next removes the
 * directories whose lock nobody holds.  Removal walks by descriptors and
 * follows no link.
 */
#include <sys/file.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

#define BUILD		".build-"
#define GIB		(UINT64_C(1) << 30)

/* Until the lock is held, somebody who sweeps may take the directory away. */
int
tree_take(int dirfd, const char *name)
{
	auto_close int	fd = -1;
	struct stat	st, named;

	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (fd == -1 || flock(fd, LOCK_EX | LOCK_NB) == -1 ||
	    fstat(fd, &st) == -1 ||
	    fstatat(dirfd, name, &named, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	if (st.st_ino != named.st_ino) {
		errno = ENOENT;
		return -1;
	}
	return steal_fd(&fd);
}

int
tree_begin(int dirfd, char ret_name[24])
{
	uint32_t	r;
	int		fd, tries;

	for (tries = 0; tries < 16; tries++) {
		if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
			return -1;
		(void)snprintf(ret_name, 24, BUILD "%08x", r);
		if (mkdirat(dirfd, ret_name, 0700) == -1) {
			if (errno != EEXIST)
				return -1;
			continue;
		}
		if ((fd = tree_take(dirfd, ret_name)) != -1 ||
		    (errno != ENOENT && errno != EWOULDBLOCK))
			return fd;
	}
	return -1;
}

int
tree_each(int dirfd, const char *name,
    int (*fn)(int fd, const char *name, void *arg), void *arg)
{
	const struct dirent	*e;
	DIR			*d;
	int			 fd, rc = 0;

	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (fd == -1)
		return -1;
	if ((d = fdopendir(fd)) == NULL) {
		fd_close(&fd);
		return -1;
	}
	while (rc == 0 && (errno = 0, e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			rc = fn(fd, e->d_name, arg);
	if (rc == 0 && errno != 0)
		rc = -1;
	(void)closedir(d);	/* read only */
	return rc;
}

static int
remove_in(int dirfd, const char *name, void *arg)
{
	int	depth = *(const int *)arg + 1;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	if (depth > TREE_DEPTH) {
		errno = ELOOP;
		return -1;
	}
	return tree_each(dirfd, name, remove_in, &depth) == -1 ? -1 :
	    unlinkat(dirfd, name, AT_REMOVEDIR);
}

int
tree_remove(int dirfd, const char *name)
{
	int	depth = 0;

	return remove_in(dirfd, name, &depth);
}

/* Whether a build of that name is nobody's; its lock is then held by fd. */
static int
stale(int dirfd, const char *name, int *ret_fd)
{
	if (strncmp(name, BUILD, sizeof BUILD - 1) != 0)
		return 0;
	*ret_fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	return *ret_fd != -1 && flock(*ret_fd, LOCK_EX | LOCK_NB) == 0;
}

static int
sweep_one(int dirfd, const char *name, void *arg)
{
	auto_close int	lock = -1;

	(void)arg;
	if (stale(dirfd, name, &lock) && tree_remove(dirfd, name) == -1)
		(void)fail_errno("remove %s", name);
	return 0;
}

void
tree_sweep(int dirfd)
{
	(void)tree_each(dirfd, ".", sweep_one, NULL);	/* the next does */
}

int
tree_dir(int dirfd, const char *name, mode_t mode)
{
	if (mkdirat(dirfd, name, 0700) == -1)
		return -1;
	return fchmodat(dirfd, name, mode, 0);	/* past the umask */
}

static int
write_all(int fd, const char *p, size_t len)
{
	ssize_t	n;

	for (; len > 0; p += n, len -= (size_t)n)
		if ((n = write(fd, p, len)) == -1) {
			if (errno != EINTR)
				return -1;
			n = 0;
		}
	return 0;
}

static int
new_file(int dirfd, const char *name)
{
	return openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
}

int
tree_file(int dirfd, const char *name, mode_t mode, const void *data,
    size_t len)
{
	auto_close int	fd = new_file(dirfd, name);

	if (fd == -1 || write_all(fd, data, len) == -1 ||
	    fchmod(fd, mode) == -1)
		return -1;
	return fsync(fd);
}

int
tree_link(int dirfd, const char *name, const char *target)
{
	return symlinkat(target, dirfd, name);
}

int
tree_copy(int from, int dirfd, const char *name, mode_t mode)
{
	auto_close int	fd = new_file(dirfd, name);
	off_t		off = 0;
	ssize_t		n;

	if (fd == -1)
		return -1;
	while ((n = sendfile(fd, from, &off, 1024UL * 1024)) != 0)
		if (n == -1 && errno != EINTR)
			return -1;
	if (fchmod(fd, mode) == -1)
		return -1;
	return fsync(fd);
}

int
tree_place(int dirfd, const char *tmp, const char *name)
{
	if (renameat2(dirfd, tmp, dirfd, name, RENAME_NOREPLACE) == -1) {
		if (errno != EEXIST || renameat2(dirfd, tmp, dirfd, name,
		    RENAME_EXCHANGE) == -1 || tree_remove(dirfd, tmp) == -1)
			return -1;
	}
	return fsync(dirfd);
}

int
tree_static(int fd)
{
	Elf64_Ehdr	eh;
	Elf64_Phdr	ph;
	unsigned int	i;

	if (pread(fd, &eh, sizeof eh, 0) != (ssize_t)sizeof eh ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_phentsize != sizeof ph)
		return 0;
	for (i = 0; i < eh.e_phnum; i++) {
		if (pread(fd, &ph, sizeof ph, (off_t)(eh.e_phoff +
		    i * sizeof ph)) != (ssize_t)sizeof ph)
			return 0;
		if (ph.p_type == PT_INTERP)
			return 0;
	}
	return 1;
}

int
state_safe(int fd)
{
	struct stat	st;

	if (fstat(fd, &st) == -1)
		return -1;
	return st.st_uid == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int
state_take(const char *dir, int *ret_fd)
{
	auto_close int	fd = -1;
	int		safe;

	if (mkdir(dir, 0755) == -1 && errno != EEXIST)
		return fail_errno("state directory %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (safe = state_safe(fd)) == -1)
		return fail_errno("state directory %s", dir);
	if (!safe)
		return fail("state directory %s: expected a directory that "
		    "only root can write", dir);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int
state_dir(const struct conf *c, const char *part)
{
	auto_close int	fd = -1;

	fd = open(c->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	return openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

uint64_t
state_floor(const struct conf *c, const struct statvfs *st)
{
	uint64_t	part = (uint64_t)st->f_blocks * st->f_frsize / 20;

	return c->disk_floor != 0 ? c->disk_floor : part > GIB ? part : GIB;
}
