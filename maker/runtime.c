/*
 * runtime: what runs in every box, verified once, and the nursery.
 *
 * runner and wb are copied from STATE/runtime into a tmpfs and hashed on the
 * way; what the copy's hash is, not what the file says now, is held against
 * SHA256SUMS, so there is no time between check and use.  The tmpfs is
 * attached in one place only: a mount namespace that holds nothing else but
 * an empty root with three mount points, and in which no process lives.  A
 * box's first process enters it, so that no mount of the host is copied for
 * any box, neither in time nor in danger.
 *
 * All of it is of the host's root and can only be executed in a box.  The
 * kernel itself keeps what nobody may read undumpable; and as all boxes have
 * the same inodes, who could read them could watch the others use them
 * (inotify), or talk to them by locks.
 *
 * Safe when the asker is hostile: runs once, before the first peer.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sha256.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "facts.h"
#include "xmalloc.h"

static const struct { const char *name; mode_t mode; } files[] = {
	{ "runner", 0111 }, { "wb", 0111 }
};

#define NFILES	(sizeof(files) / sizeof(files[0]))

static char		hash[SHA256_DIGEST_STRING_LENGTH];
static struct stat	runner;
static int		nursery = -1, state = -1;

/* The digest that `sha256sum' wrote for name: "HEX  name" or "HEX *name". */
static const char *
sum_find(const char *sums, const char *name)
{
	const char	*p;
	size_t		 len = strlen(name);

	for (p = sums; p != NULL; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
		if (strspn(p, "0123456789abcdef") == 64 && p[64] == ' ' &&
		    (p[65] == ' ' || p[65] == '*') &&
		    strncmp(p + 66, name, len) == 0 &&
		    (p[66 + len] == '\n' || p[66 + len] == '\0'))
			return p;
	return NULL;
}

/* Hashes what it reads from in, and writes it to out unless that is -1. */
static int
hash_copy(int in, int out, char ret_hex[65])
{
	static uint8_t	 buf[65536];
	SHA2_CTX	 sha;
	ssize_t		 n;

	SHA256Init(&sha);
	while ((n = read(in, buf, sizeof(buf))) > 0) {
		SHA256Update(&sha, buf, (size_t)n);
		if (out != -1 && write(out, buf, (size_t)n) != n)
			return -1;
	}
	(void)SHA256End(&sha, ret_hex);
	return (int)n;
}

/* Holds a file against its checksum; a copy of it to `to', unless -1. */
static int
verify(int from, int to, const char *sums, size_t i)
{
	auto_close int	 in = -1, out = -1;
	char		 hex[65];
	const char	*name = files[i].name, *want = sum_find(sums, name);

	in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (in != -1 && to != -1)
		out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL |
		    O_CLOEXEC, 0600);
	if (in == -1 || (to != -1 && out == -1) ||
	    hash_copy(in, out, hex) == -1 ||
	    (out != -1 && fchmod(out, files[i].mode) == -1))
		return box_fail("runtime/%s", name);
	if (want == NULL || strncmp(want, hex, 64) != 0) {
		errno = EBADMSG;
		return box_fail("checksum of runtime/%s", name);
	}
	if (i == 0 && to != -1)
		(void)str_copy(hash, hex, sizeof(hash));
	return 0;
}

/* A detached tmpfs. */
static int
tmpfs(const char *label, const char *mode, const char *inodes)
{
	auto_close int	 fs = -1;

	if ((fs = fsopen("tmpfs", FSOPEN_CLOEXEC)) == -1 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "source", label, 0) == -1 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", mode, 0) == -1 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) == -1 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == -1)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC,
	    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int
read_only(int mnt)
{
	struct mount_attr	 a = { .attr_set = MOUNT_ATTR_RDONLY };

	return mount_setattr(mnt, "", AT_EMPTY_PATH, &a, sizeof(a));
}

/* The runtime, checked and read-only, as a detached mount. */
static int
runtime_make(int dir)
{
	auto_close int	 mnt = -1;
	char		 sums[4096];
	size_t		 i;

	if (facts_file(dir, "SHA256SUMS", sums, sizeof(sums)) == -1)
		return box_fail("runtime/SHA256SUMS");
	if ((mnt = tmpfs("workbox-runtime", "0711", "8")) == -1)
		return box_fail("runtime tmpfs");
	for (i = 0; i < NFILES; i++)
		if (verify(dir, mnt, sums, i) == -1)
			return -1;
	if (fstatat(mnt, files[0].name, &runner, 0) == -1)
		return box_fail("runtime/%s", files[0].name);
	return read_only(mnt) == 0 ? steal_fd(&mnt) :
	    box_fail("runtime read-only");
}

/* The nursery's root: the mount points that mounts.c uses. */
static int
root_make(void)
{
	auto_close int	 mnt = -1;

	if ((mnt = tmpfs("workbox", "0755", "8")) == -1 ||
	    mkdirat(mnt, "runtime", 0700) == -1 ||
	    mkdirat(mnt, "rootfs", 0700) == -1 ||
	    mkdirat(mnt, "box", 0700) == -1 ||
	    mkdirat(mnt, "root", 0700) == -1 || read_only(mnt) == -1)
		return box_fail("nursery root");
	return steal_fd(&mnt);
}

/* In a child: a mount namespace of these two alone. */
static int
nursery_enter(int root, int runtime)
{
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) ==
	    -1 || fchdir(root) == -1 ||
	    syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		return -1;
	return move_mount(runtime, "", AT_FDCWD, "/runtime",
	    MOVE_MOUNT_F_EMPTY_PATH);
}

/* The child's mount namespace outlives it through a descriptor. */
static int
nursery_make(int root, int runtime)
{
	int	 go[2], fd = -1, err = 0;
	char	 path[64];
	pid_t	 pid;

	if (pipe2(go, O_CLOEXEC) == -1)
		return -1;
	if ((pid = fork()) == 0) {
		if (nursery_enter(root, runtime) == -1)
			err = errno;
		(void)!write(go[1], &err, sizeof(err));
		(void)pause();
		_exit(0);
	}
	(void)close(go[1]);
	if (pid != -1 && read(go[0], &err, sizeof(err)) == sizeof(err) &&
	    (errno = err) == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt",
		    (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		err = errno;
	}
	(void)close(go[0]);
	if (pid != -1) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
			;
	}
	errno = err;
	return fd;
}

/* STATE/runtime, which an installation replaces as a whole. */
static int
runtime_open(void)
{
	return openat(state, "runtime", O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int
runtime_init(int state_fd)
{
	auto_close int	 dir = -1, root = -1, mnt = -1;

	fd_close(&state);		/* of an earlier call */
	if ((state = fcntl(state_fd, F_DUPFD_CLOEXEC, 3)) == -1 ||
	    (dir = runtime_open()) == -1)
		return box_fail("runtime (run `workbox runtime install')");
	if ((mnt = runtime_make(dir)) == -1 || (root = root_make()) == -1)
		return -1;
	if ((nursery = nursery_make(root, mnt)) == -1)
		return box_fail("nursery");
	return 0;
}

int
runtime_intact(void)
{
	static struct timespec	seen[NFILES];
	static int		intact = 1;
	auto_close int		dir = runtime_open();
	char			sums[4096];
	struct stat		st;
	size_t			i;
	int			changed = 0;

	for (i = 0; i < NFILES; i++) {
		if (fstatat(dir, files[i].name, &st, AT_SYMLINK_NOFOLLOW) ==
		    -1)
			memset(&st, 0, sizeof(st));
		changed |= memcmp(&seen[i], &st.st_ctim, sizeof(seen[i])) != 0;
		seen[i] = st.st_ctim;
	}
	if (!changed)
		return intact;
	intact = facts_file(dir, "SHA256SUMS", sums, sizeof(sums)) != -1;
	for (i = 0; i < NFILES && intact; i++)
		intact = verify(dir, -1, sums, i) == 0;
	return intact;
}

int
runtime_nursery(void)
{
	return nursery;
}

/*
 * The runner of an earlier server, which all boxes of that one share: hashed
 * once, not for each of them.  Another file, or another state of this one,
 * has another change time.
 */
static int
runtime_earlier(int fd, const struct stat *st, char ret_hex[65])
{
	static struct stat	seen;
	static char		seen_hex[65];

	if (st->st_dev != seen.st_dev || st->st_ino != seen.st_ino || memcmp(
	    &st->st_ctim, &seen.st_ctim, sizeof(seen.st_ctim)) != 0) {
		seen.st_ino = 0;	/* of no file, until it is read whole */
		if (hash_copy(fd, -1, seen_hex) == -1)
			return -1;
		seen = *st;
	}
	return str_copy(ret_hex, seen_hex, sizeof(seen_hex));
}

/* No box can own a file as the host's root: that it is one says enough. */
int
runtime_of(int procfd, char ret_hex[65])
{
	auto_close int	 fd = -1;
	struct stat	 st;

	fd = openat(procfd, "exe", O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1)
		return -1;
	if (st.st_uid != 0 || (st.st_mode & 07777) != files[0].mode) {
		errno = EPERM;
		return -1;
	}
	if (st.st_dev == runner.st_dev && st.st_ino == runner.st_ino)
		return str_copy(ret_hex, hash, sizeof(hash));
	return runtime_earlier(fd, &st, ret_hex);
}
