/*
 * box: the state directory of the host and of one box, and small common
 * parts of the mechanics.
 *
 * Names become paths here and nowhere else: an id is a ULID and a rootfs a
 * CS_NAME (no slash, no leading dot), each held against its charset again,
 * used relative to a directory that only root can write, never through a
 * link.  So a hostile asker can name another box or rootfs, not another
 * place.  Must never read what a box wrote.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "facts.h"
#include "ulid.h"
#include "xmalloc.h"

static int		 sandboxes = -1, rootfs = -1;
static uint32_t		 uid_base;
static unsigned int	 slots;
static const struct box_limits *most;	/* of the configuration */
static int		 spared;	/* own oom_score_adj is below 0 */
static char		 error[256];

const char *
box_error(void)
{
	return error;
}

int
box_fail(const char *fmt, ...)
{
	va_list	 ap;
	int	 err = errno, n;

	va_start(ap, fmt);
	n = vsnprintf(error, sizeof(error), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(error))
		(void)snprintf(error + n, sizeof(error) - (size_t)n, ": %s",
		    strerror(err));
	errno = err;
	return -1;
}

int
box_put(int dirfd, const char *path, const char *fmt, ...)
{
	auto_close int	 fd = -1;
	char		 buf[512];
	va_list		 ap;
	int		 n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(buf)) {
		errno = EMSGSIZE;
		return -1;
	}
	fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return -1;
	return write(fd, buf, (size_t)n) == n ? 0 : -1;
}

int
box_file(int dirfd, const char *name, mode_t mode, const void *data,
    size_t len)
{
	auto_close int	 fd = -1;

	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, mode);
	if (fd == -1)
		return -1;
	return write(fd, data, len) == (ssize_t)len ? 0 : -1;
}

/* Makes (where missing) and opens a directory that is root's alone. */
static int
own_dir(int at, const char *name, mode_t mode)
{
	auto_close int	 fd = -1;
	struct stat	 st;

	if (at != AT_FDCWD && mkdirat(at, name, mode) == -1 &&
	    errno != EEXIST)
		return -1;
	fd = openat(at, name, O_DIRECTORY | O_CLOEXEC |
	    (at == AT_FDCWD ? 0 : O_NOFOLLOW));
	if (fd == -1 || fstat(fd, &st) == -1)
		return -1;
	if (st.st_uid != 0 || (st.st_mode & 022) != 0)
		return (errno = EPERM, -1);
	return steal_fd(&fd);
}

int
box_init(const struct server_conf *conf)
{
	auto_close int	 state = -1;
	char		 adj[16];

	spared = facts_file(AT_FDCWD, "/proc/self/oom_score_adj", adj,
	    sizeof(adj)) > 0 && adj[0] == '-';
	if ((state = own_dir(AT_FDCWD, conf->state_dir, 0)) == -1)
		return box_fail("open %s", conf->state_dir);
	if ((sandboxes = own_dir(state, "sandboxes", 0700)) == -1)
		return box_fail("open %s/sandboxes", conf->state_dir);
	if ((rootfs = own_dir(state, "rootfs", 0700)) == -1)
		return box_fail("open %s/rootfs", conf->state_dir);
	uid_base = conf->uid_base;
	slots = conf->max_boxes;
	most = &conf->most;
	if (uid_base + (uint64_t)slots * BOX_IDS > UINT32_MAX) {
		errno = ERANGE;
		return box_fail("uid-base and max-boxes");
	}
	if (cgroup_init(conf->cgroup) == -1 || runtime_init(state) == -1)
		return -1;
	return attach_init();
}

int
box_spared(void)
{
	return spared;
}

int
box_dir(void)
{
	return sandboxes;
}

int
box_uid_ok(uint32_t uid)
{
	uint32_t	 off = uid - uid_base;

	return uid >= uid_base && off % BOX_IDS == 0 && off / BOX_IDS < slots;
}

void
box_limits_round(struct box_limits *l)
{
	l->memory_bytes -= l->memory_bytes % (uint64_t)sysconf(_SC_PAGESIZE);
}

struct box_limits
box_sessions(const struct box_limits *l)
{
	struct box_limits	 r = *l;

	r.memory_bytes -= box_ring(l->memory_bytes) + BOX_RESERVE;
	r.pids -= BOX_RESERVE_PIDS;
	box_limits_round(&r);
	return r;
}

int
box_rootfs_open(const char *name)
{
	return openat(rootfs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

/* Whether what is asked for is a box, within the bounds of this host. */
static int
ask_ok(const struct box_ask *a)
{
	return ulid_ok(a->id) && box_uid_ok(a->uid) &&
	    wire_ascii_ok(CS_NAME, a->name, strlen(a->name)) &&
	    wire_ascii_ok(CS_NAME, a->rootfs, strlen(a->rootfs)) &&
	    a->limits.memory_bytes >= BOX_MEMORY_LEAST &&
	    a->limits.memory_bytes <= most->memory_bytes &&
	    a->limits.cpu_milli > 0 &&
	    a->limits.cpu_milli <= most->cpu_milli &&
	    a->limits.pids >= BOX_PIDS_LEAST && a->limits.pids <= most->pids;
}

int
box_make(const struct box_ask *ask, const struct box_boot *b)
{
	auto_close int	 fd = -1;

	errno = EINVAL;
	if (!ask_ok(ask))
		return box_fail("what is asked for");
	if (mkdirat(sandboxes, ask->id, 0700) == -1 ||
	    (fd = openat(sandboxes, ask->id, O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC)) == -1 ||
	    box_file(fd, "spec", 0600, b->spec, b->spec_len) == -1 ||
	    box_file(fd, "host-token", 0600, b->token, BOX_TOKEN) == -1 ||
	    /* who owns it tells the range: upper the box can give away */
	    fchownat(fd, "spec", ask->uid, 0, AT_SYMLINK_NOFOLLOW) == -1 ||
	    mkdirat(fd, "upper", 0755) == -1 ||
	    fchownat(fd, "upper", ask->uid, ask->uid, AT_SYMLINK_NOFOLLOW) ==
	    -1 || mkdirat(fd, "work", 0700) == -1)
		return box_fail("make sandboxes/%s", ask->id);
	return steal_fd(&fd);
}

int
box_open(const char *id, const char *name, int flags)
{
	char	 path[ULID_LEN + 16];

	errno = EINVAL;
	if (!ulid_ok(id))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s", id, name);
	return openat(sandboxes, path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int
box_stat(const char *id, const char *name, struct stat *ret)
{
	char	 path[ULID_LEN + 16];

	errno = EINVAL;
	if (!ulid_ok(id))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s", id, name);
	return fstatat(sandboxes, path, ret, AT_SYMLINK_NOFOLLOW);
}

ssize_t
box_read(const char *id, const char *name, void *ret, size_t size)
{
	auto_close int	 fd = box_open(id, name, O_RDONLY);

	return fd == -1 ? -1 : read(fd, ret, size);
}

int
box_mark(const char *id, const char *name, const char *text)
{
	auto_close int	 fd = box_open(id, name, O_WRONLY | O_CREAT | O_EXCL);

	if (fd == -1)
		return errno == EEXIST ? 0 : box_fail("mark as %s", name);
	return write(fd, text, strlen(text)) == -1 ?
	    box_fail("mark as %s", name) : 0;
}
