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
	if (st.st_uid != 0 || (st.st_mode & 022) != 0) {
		errno = EPERM;
		return -1;
	}
	return steal_fd(&fd);
}

int
box_init(const struct conf *conf)
{
	auto_close int	 state = -1;
	char		 adj[16];

	spared = facts_file(AT_FDCWD, "/proc/self/oom_score_adj", adj,
	    sizeof(adj)) > 0 && adj[0] == '-';
	if ((state = own_dir(AT_FDCWD, conf->state_dir, 0)) == -1)
		return box_fail("open %s", conf->state_dir);
	if ((sandboxes = own_dir(state, "sandboxes", 0700)) == -1)
		return box_fail("open %s/sandboxes", conf->state_dir);
	if ((rootfs = own_dir(state, "rootfs", 0755)) == -1)
		return box_fail("open %s/rootfs", conf->state_dir);
	uid_base = (uint32_t)conf->uid_base;
	slots = (unsigned int)conf->max_boxes;
	if (conf->uid_base + conf->max_boxes * BOX_IDS > UINT32_MAX) {
		errno = ERANGE;
		return box_fail("uid-base and max-boxes");
	}
	if (cgroup_init(conf->cgroup) == -1 || runtime_init(state) == -1 ||
	    attach_init() == -1)
		return -1;
	return 0;
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

uint32_t
box_uid(unsigned int slot)
{
	return slot < slots ? uid_base + slot * BOX_IDS : 0;
}

int
box_slot(uint32_t uid)
{
	uint32_t	 off = uid - uid_base;

	if (uid < uid_base || off % BOX_IDS != 0 || off / BOX_IDS >= slots)
		return -1;
	return (int)(off / BOX_IDS);
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

	r.memory_bytes -= box_ring(l) + BOX_RESERVE;
	r.pids -= BOX_RESERVE_PIDS;
	box_limits_round(&r);
	return r;
}

uint64_t
box_ring(const struct box_limits *l)
{
	return l->memory_bytes / 8 < BOX_RING ? l->memory_bytes / 8 :
	    BOX_RING;
}

int
box_rootfs(const char *name, char ret_name[64])
{
	struct stat	 st;
	char		 link[64];
	ssize_t		 n;

	errno = ENOENT;
	if (!wire_charset_ok(CS_NAME, name, strlen(name)))
		return box_fail("rootfs");
	if ((n = readlinkat(rootfs, name, link, sizeof(link) - 1)) != -1) {
		link[n] = '\0';
		name = link;
		errno = ENOENT;
		if (!wire_charset_ok(CS_NAME, name, (size_t)n))
			return box_fail("rootfs link");
	}
	if (fstatat(rootfs, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return box_fail("rootfs %s", name);
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return box_fail("rootfs %s", name);
	}
	return str_copy(ret_name, name, 64);
}

int
box_rootfs_open(const char *name)
{
	if (!wire_charset_ok(CS_NAME, name, strlen(name))) {
		errno = EINVAL;
		return -1;
	}
	return openat(rootfs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

/* ID/NAME below sandboxes/, NULL with EINVAL; one at a time. */
static const char *
box_path(const char *id, const char *name)
{
	static char	 path[ULID_LEN + 16];

	if (!ulid_ok(id)) {
		errno = EINVAL;
		return NULL;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", id, name);
	return path;
}

int
box_make(const struct box_ask *ask, const uint8_t token[BOX_TOKEN])
{
	struct row_spec	 spec = { .version = 1, .network = ask->network,
	    .memory_bytes = ask->limits.memory_bytes,
	    .cpu_milli = ask->limits.cpu_milli, .pids = ask->limits.pids };
	uint8_t		 buf[512];
	auto_close int	 fd = -1;
	ssize_t		 n;

	errno = EINVAL;
	if (!ulid_ok(ask->id) || box_slot(ask->uid) == -1 ||
	    str_copy(spec.id, ask->id, sizeof(spec.id)) == -1 ||
	    str_copy(spec.name, ask->name, sizeof(spec.name)) == -1 ||
	    str_copy(spec.rootfs, ask->rootfs, sizeof(spec.rootfs)) == -1 ||
	    (n = wire_encode(&wire_row_spec, &spec, buf, sizeof(buf))) == -1)
		return box_fail("specification");
	if (mkdirat(sandboxes, ask->id, 0700) == -1 ||
	    (fd = openat(sandboxes, ask->id, O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC)) == -1 ||
	    box_file(fd, "spec", 0600, buf, (size_t)n) == -1 ||
	    box_file(fd, "host-token", 0600, token, BOX_TOKEN) == -1 ||
	    mkdirat(fd, "upper", 0755) == -1 ||
	    fchownat(fd, "upper", ask->uid, ask->uid, AT_SYMLINK_NOFOLLOW) ==
	    -1 || mkdirat(fd, "work", 0700) == -1)
		return box_fail("make sandboxes/%s", ask->id);
	return steal_fd(&fd);
}

int
box_spec(const char *id, struct row_spec *ret)
{
	char		 buf[512];
	const char	*path;
	ssize_t		 n;

	if ((path = box_path(id, "spec")) == NULL ||
	    (n = facts_file(sandboxes, path, buf, sizeof(buf))) == -1)
		return -1;
	if (wire_decode(&wire_row_spec, (uint8_t *)buf, (size_t)n, ret) == -1)
		return -1;
	if (strcmp(ret->id, id) != 0) {
		errno = EBADMSG;
		return -1;
	}
	return 0;
}

int
box_owner(const char *id, uint32_t *ret_uid)
{
	struct stat	 st;
	const char	*path;

	if ((path = box_path(id, "upper")) == NULL ||
	    fstatat(sandboxes, path, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	*ret_uid = st.st_uid;
	return 0;
}

int
box_token(const char *id, uint8_t ret[BOX_TOKEN])
{
	char		 buf[BOX_TOKEN + 2];
	const char	*path;
	ssize_t		 n;

	if ((path = box_path(id, "host-token")) == NULL ||
	    (n = facts_file(sandboxes, path, buf, sizeof(buf))) == -1)
		return -1;
	if (n == BOX_TOKEN)
		memcpy(ret, buf, BOX_TOKEN);
	explicit_bzero(buf, sizeof(buf));
	if (n == BOX_TOKEN)
		return 0;
	errno = EBADMSG;
	return -1;
}
