/*
 * check_files: doctor's checks of what lies on this host's disk: programs,
 * users, the state directory, configuration and key.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

#define MIB	(UINT64_C(1) << 20)

void
check_programs(const struct conf *c, struct finding *f)
{
	static const char *const	names[] = { "privd", "maker", "netd",
	    "uplinkd", "proxyd", "stored", "apid", "runner", "wb" };
	char				*path;
	size_t				 i;
	int				 fd, rc;

	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		path = xasprintf("%s/%s", c->libexec_dir, names[i]);
		fd = look_open(look_path(path), O_PATH);
		rc = fd == -1 ? -1 : faccessat(fd, "", X_OK, AT_EMPTY_PATH);
		fd_close(&fd);
		if (rc == -1)
			finding_set(f, V_FAIL, "install again, or set "
			    "libexec-dir", "%s: %s", path, strerror(errno));
		free(path);
		if (rc == -1)
			return;
	}
	finding_set(f, V_OK, "", "%s", c->libexec_dir);
}

/* ---- users ------------------------------------------------------------- */

/* By name service, or from another system's file.  0; -1: there is none. */
static int
find_uid(const char *name, uid_t *ret)
{
	const struct passwd	*pw;
	FILE			*fp;

	if (look_root() == NULL)
		pw = getpwnam(name);
	else {
		if ((fp = look_file("/etc/passwd")) == NULL)
			return -1;
		while ((pw = fgetpwent(fp)) != NULL &&
		    strcmp(pw->pw_name, name) != 0)
			;
		(void)fclose(fp);	/* read only */
	}
	if (pw == NULL)
		return -1;
	*ret = pw->pw_uid;
	return 0;
}

static int
has_group(const char *name)
{
	const struct group	*gr;
	FILE			*fp;

	if (look_root() == NULL)
		return getgrnam(name) != NULL;
	if ((fp = look_file("/etc/group")) == NULL)
		return 0;
	while ((gr = fgetgrent(fp)) != NULL && strcmp(gr->gr_name, name) != 0)
		;
	(void)fclose(fp);		/* read only */
	return gr != NULL;
}

void
check_users(const struct conf *c, struct finding *f)
{
	static const char *const	names[] = { "_workbox-netd",
	    "_workbox-stored", "_workbox-apid", "_workbox-proxyd" };
	uid_t				 uid[4];
	char				 cure[128];
	size_t				 i, j;

	(void)c;
	for (i = 0; i < 4; i++) {
		(void)snprintf(cure, sizeof cure, "sh etc/install.sh, or "
		    "useradd --system --user-group %s", names[i]);
		if (find_uid(names[i], &uid[i]) == -1) {
			finding_set(f, V_FAIL, cure, "there is no user %s",
			    names[i]);
			return;
		}
		if (uid[i] == 0) {
			finding_set(f, V_FAIL, cure, "user %s has uid 0",
			    names[i]);
			return;
		}
		for (j = 0; j < i; j++)
			if (uid[j] == uid[i]) {
				finding_set(f, V_FAIL, "usermod --uid, so "
				    "that each has a uid that nobody else "
				    "has", "%s and %s have one uid",
				    names[j], names[i]);
				return;
			}
	}
	if (!has_group("workbox"))
		finding_set(f, V_WARN, "groupadd --system workbox", "there is "
		    "no group workbox: only root can use the unix socket");
	else
		finding_set(f, V_OK, "", "%s, %s, %s, %s; group workbox",
		    names[0], names[1], names[2], names[3]);
}

/* ---- the state directory ----------------------------------------------- */

/* With serve's own eyes. */
void
check_state(const struct conf *c, struct finding *f)
{
	auto_free char	*install = xasprintf("workbox runtime install%s",
	    doctor.given);
	auto_free char	*own = xasprintf("chown root %s && chmod go-w %s",
	    c->state_dir, c->state_dir);
	auto_close int	 fd = look_open(look_path(c->state_dir), O_RDONLY |
	    O_DIRECTORY);
	int		 safe = fd == -1 ? -1 : state_safe(fd);

	if (safe == 1)
		finding_set(f, V_OK, "", "only root can write %s",
		    c->state_dir);
	else if (safe == 0)
		finding_set(f, V_FAIL, own, "%s: expected a directory that "
		    "only root can write", c->state_dir);
	else if (errno == ENOENT)
		finding_set(f, V_WARN, install, "%s is not there",
		    c->state_dir);
	else
		finding_set(f, V_FAIL, "give another directory with --state "
		    "or state-dir", "%s: %s", c->state_dir, strerror(errno));
}

static const struct {
	const char	*type;
	const char	*what;		/* NULL: good */
} types[] = {
	{ "ext4", NULL }, { "xfs", NULL }, { "btrfs", NULL },
	{ "tmpfs", "lives in memory: a reboot takes all of it away" },
	{ "ramfs", "lives in memory: a reboot takes all of it away" },
	{ "overlay", "is a container's own layer: it ends with the container" },
	{ "nfs", "is over a network, which a sandbox's files and the "
	    "database's locks wait for" },
	{ "nfs4", "is over a network, which a sandbox's files and the "
	    "database's locks wait for" },
	{ "cifs", "is over a network, which a sandbox's files and the "
	    "database's locks wait for" },
	{ "9p", "is another machine's: owners, modes and locks are not its "
	    "own" },
	{ "virtiofs", "is another machine's: owners, modes and locks are not "
	    "its own" },
};

/* The real path of the state directory, or of the nearest above it. */
static void
real_near(const char *dir, char ret[PATH_MAX])
{
	auto_free char	*path = xstrdup(dir);
	char		*slash;

	while (realpath(path, ret) == NULL) {
		if ((slash = strrchr(path, '/')) == NULL || slash == path) {
			(void)str_copy(ret, "/", PATH_MAX);
			return;
		}
		*slash = '\0';
	}
}

void
check_filesystem(const struct conf *c, struct finding *f)
{
	FILE		*fp = look_file("/proc/self/mounts");
	char		 real[PATH_MAX], type[64];
	const char	*path = real;
	size_t		 i;
	int		 rc;

	/* The other system's table knows nothing of where it lies here. */
	if (look_root() != NULL)
		path = look_path(c->state_dir);
	else
		real_near(c->state_dir, real);
	rc = fp == NULL ? -1 : look_fstype(fp, path, type, sizeof type);
	if (fp != NULL)
		(void)fclose(fp);	/* read only */
	if (rc == -1) {
		finding_set(f, V_WARN, "mount /proc", "no mount is known for "
		    "%s", path);
		return;
	}
	for (i = 0; i < sizeof types / sizeof types[0] &&
	    strcmp(types[i].type, type) != 0; i++)
		;
	if (i == sizeof types / sizeof types[0])
		finding_set(f, V_WARN, "a state directory on ext4, xfs or "
		    "btrfs", "%s is on %s, which nobody has tried", path,
		    type);
	else if (types[i].what != NULL)
		finding_set(f, V_WARN, "a state directory on ext4, xfs or "
		    "btrfs", "%s is on %s, which %s", path, type,
		    types[i].what);
	else
		finding_set(f, V_OK, "", "%s is on %s", path, type);
}

static int
stat_disk(const char *path, struct statvfs *ret)
{
	auto_close int	fd = look_open(path, O_PATH);

	return fd == -1 ? -1 : fstatvfs(fd, ret);
}

/*
 * Below this creates are refused: what the file system has of inodes for so
 * many bytes.  Some count none: 0.
 */
static uint64_t
inodes_floor(const struct statvfs *st, uint64_t bytes)
{
	uint64_t	each = st->f_files == 0 ? 0 :
			    (uint64_t)st->f_blocks * st->f_frsize / st->f_files;

	return each == 0 ? 0 : bytes / each + (bytes % each != 0);
}

void
check_disk(const struct conf *c, struct finding *f)
{
	auto_free char	*path = xstrdup(look_path(c->state_dir));
	struct statvfs	 st;
	uint64_t	 left, floor;
	char		*slash;

	while (stat_disk(path, &st) == -1) {
		if (errno != ENOENT || (slash = strrchr(path, '/')) == NULL) {
			finding_set(f, V_FAIL, "give another directory with "
			    "--state or state-dir", "%s: %s", path,
			    strerror(errno));
			return;
		}
		slash[slash == path] = '\0';	/* at last "/" */
	}
	floor = state_floor(c, &st);
	left = (uint64_t)st.f_bavail * st.f_frsize;
	if (left >= floor && st.f_favail < inodes_floor(&st, floor)) {
		finding_set(f, V_FAIL, "remove files or sandboxes, or make "
		    "the file system with more inodes", "%" PRIu64 " of %"
		    PRIu64 " inodes free at %s; creates are refused below %"
		    PRIu64, (uint64_t)st.f_favail, (uint64_t)st.f_files, path,
		    inodes_floor(&st, floor));
		return;
	}
	finding_set(f, left < floor ? V_FAIL : left < 2 * floor ? V_WARN :
	    V_OK, left < 2 * floor ? "free space, or set disk-floor" : "",
	    "%" PRIu64 " MiB free at %s; creates are refused below %" PRIu64
	    " MiB", left / MIB, path, floor / MIB);
}

void
check_runtime(const struct conf *c, struct finding *f)
{
	auto_free char	*cure = xasprintf("workbox runtime install%s",
	    doctor.given);
	char		 why[256];

	if (runtime_check(c, why, sizeof why) == 0)
		finding_set(f, V_OK, "", "%s/runtime", c->state_dir);
	else
		finding_set(f, V_WARN, cure, "%s", why);
}

void
check_rootfs(const struct conf *c, struct finding *f)
{
	auto_free char	*cure = xasprintf("workbox rootfs build minimal%s, or "
	    "workbox rootfs default NAME%s where there is one", doctor.given,
	    doctor.given);
	auto_close int	 dir = look_state(c, "rootfs");
	char		 name[64];
	struct stat	 st;

	rootfs_default(dir, name);
	/* privd takes nothing but a name there */
	if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		finding_set(f, V_WARN, cure, "there is no default root file "
		    "system in %s/rootfs", c->state_dir);
	else
		finding_set(f, V_OK, "", "default is %s", name);
}

/* ---- configuration and key --------------------------------------------- */

/* Whether others than root can put another file in its place. */
static int
others_replace(const struct stat *dir)
{
	return dir->st_uid != 0 || ((dir->st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
	    (dir->st_mode & S_ISVTX) == 0);
}

static int
stat_at(const char *path, int flags, struct stat *ret)
{
	auto_close int	fd = doctor.named ? open(path, O_PATH | O_CLOEXEC |
	    flags) : look_open(path, O_PATH | flags);

	return fd == -1 ? -1 : fstat(fd, ret);
}

/* Whoever writes it chooses the programs that root starts. */
void
check_config(const struct conf *c, struct finding *f)
{
	const char	*file = doctor.config;
	auto_free char	*dir = xstrdup(file);
	auto_free char	*cure = NULL;
	char		*slash = strrchr(dir, '/');
	const char	*above = slash == dir ? "/" : slash == NULL ? "." : dir;
	struct stat	 st, up;

	(void)c;
	if (slash != NULL)
		*slash = '\0';
	if (stat_at(file, 0, &st) == -1 && errno == ENOENT) {
		finding_set(f, V_OK, "", "%s is not there: every word has its "
		    "default", file);
		return;
	}
	if (stat_at(file, 0, &st) == -1 ||
	    stat_at(above, O_DIRECTORY, &up) == -1)
		finding_set(f, V_FAIL, "a file that root can read", "%s: %s",
		    file, strerror(errno));
	else if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		cure = xasprintf("chown root %s && chmod go-w %s", file, file);
		finding_set(f, V_FAIL, cure, "%s: expected a file that only "
		    "root can write", file);
	} else if (others_replace(&up)) {
		cure = xasprintf("chown root %s && chmod go-w %s", above,
		    above);
		finding_set(f, V_FAIL, cure, "%s: expected a directory that "
		    "only root can write", above);
	} else
		finding_set(f, V_OK, "", "only root can write %s", file);
}

void
check_token(const struct conf *c, struct finding *f)
{
	const char	*file = WB_TOKEN_FILE;
	char		 key[512];
	auto_close int	 fd = look_read(file);
	struct stat	 st;
	int		 good;

	(void)c;
	if (fd == -1 && errno == ENOENT) {
		finding_set(f, V_OK, "", "no %s: WORKBOX_TOKEN or "
		    "--token-file gives the key", file);
		return;
	}
	if (fd == -1 || fstat(fd, &st) == -1 ||
	    look_text(file, key, sizeof key) == -1) {
		finding_set(f, V_WARN, "a file that root can read", "%s: %s",
		    file, strerror(errno));
		return;
	}
	good = token_ok(key, token_trim(key, strlen(key)));
	explicit_bzero(key, sizeof key);
	if (st.st_uid != 0 || (st.st_mode & (S_IRWXG | S_IRWXO) & ~S_IRGRP) !=
	    0)
		finding_set(f, V_WARN, "chown root " WB_TOKEN_FILE " && chmod "
		    "600 " WB_TOKEN_FILE, "%s: others than root can read or "
		    "write the key", file);
	else if (!good)
		finding_set(f, V_WARN, "(umask 077; openssl rand -hex 24 >"
		    WB_TOKEN_FILE ")", "%s: expected a key of 16 to 255 "
		    "printable characters", file);
	else
		finding_set(f, V_OK, "", "%s is root's", file);
}
