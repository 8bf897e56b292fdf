/*
 * rootfs: root file systems under the state directory: build, list, default,
 * rm; rootfs_import.c and rootfs_info.c have the other commands.
 *
 * A root file system is a directory STATE/rootfs/NAME, whole or not there;
 * `default' is a link to one of them.  It is made in a directory of another
 * name, which its maker holds a lock on, and renamed.  What it was made from
 * is an attribute of it: there and gone with it, and unseen in sandboxes.
 *
 * STATE/rootfs is root's alone: what lies there has setuid bits, and files of
 * uids that are others' on the host.
 */
#include <sys/stat.h>
#include <sys/xattr.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"
#include "proto.h"
#include "rootfs.h"
#include "ulid.h"
#include "xmalloc.h"

#define SLOW_S	2		/* before a removal is told of */

static int	build_main(const struct args *);
static int	list_main(const struct args *);
static int	default_main(const struct args *);
static int	rm_main(const struct args *);

static const struct opt build_opts[] = {
	{ "name", "NAME", "name; that of the kind when left out", 0, 0 },
	{ "suite", "SUITE", "debian: release; this host's, or stable", 0, 0 },
	{ "include", "PACKAGES", "debian: more packages, commas between", 0,
	    1 },
	{ "mirror", "URL", "debian: where packages come from", 0, 0 },
	{ "ca", "FILE", "certificates that the sandboxes trust (PEM)", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_rootfs_build = {
	.name = "rootfs build",
	.operands = "minimal|debian",
	.doc = "Build a root file system; the first one becomes the default",
	.opts = build_opts,
	.flags = CMD_STATE,
	.min = 1, .max = 1,
	.run = build_main
};

const struct cmd cmd_rootfs_list = {
	.name = "rootfs list",
	.alias = "rootfs ls",
	.operands = "",
	.doc = "List the root file systems",
	.flags = CMD_STATE | CMD_FORMAT,
	.run = list_main
};

const struct cmd cmd_rootfs_default = {
	.name = "rootfs default",
	.operands = "NAME",
	.doc = "Choose what sandboxes get that name no root file system",
	.flags = CMD_STATE,
	.min = 1, .max = 1,
	.run = default_main
};

const struct cmd cmd_rootfs_rm = {
	.name = "rootfs rm",
	.operands = "NAME",
	.doc = "Remove a root file system that no sandbox uses",
	.flags = CMD_STATE,
	.min = 1, .max = 1,
	.run = rm_main
};

#define DEFAULT		"default"
#define GONE		".gone-"	/* and the name, while rm looks */
#define ORIGIN		"trusted.workbox.origin"
#define ORIGIN_MAX	2048

int
rootfs_name(const char *name)
{
	size_t	len = strlen(name);

	if (len == 0 || len > 63 || !wire_charset_ok(CS_NAME, name, len) ||
	    strcmp(name, DEFAULT) == 0)
		return fail("name: expected 1 to 63 of a-z 0-9 . _ -, "
		    "beginning with a letter or digit, and not \"default\", "
		    "instead of \"%s\"", name);
	return 0;
}

/* 1: a directory of that name is there. */
static int
is_there(int dir, const char *name)
{
	struct stat	st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode);
}

void
rootfs_default(int dir, char ret[64])
{
	ssize_t	n = readlinkat(dir, DEFAULT, ret, 63);

	ret[n > 0 ? n : 0] = '\0';
}

int
rootfs_find_in(int root, const char *path)
{
	struct open_how	how = { .flags = O_PATH | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

int
rootfs_read_in(int root, const char *path)
{
	return look_regular(rootfs_find_in(root, path));
}

static int
set_default(int dir, const char *name)
{
	auto_close int	fd = -1;
	char		tmp[24];
	int		rc = 0;

	/* Renaming is atomic, and an interrupted one is swept as a build. */
	if ((fd = tree_begin(dir, tmp)) == -1)
		return fail_errno("set the default");
	if (symlinkat(name, fd, DEFAULT) == -1 ||
	    renameat(fd, DEFAULT, dir, DEFAULT) == -1)
		rc = fail_errno("set the default");
	if (tree_remove(dir, tmp) == -1)
		(void)fail_errno("remove %s", tmp);
	return rc;
}

/* Whoever removed it was ended before it was known that nobody uses it. */
static int
back_one(int dir, const char *name, void *arg)
{
	auto_close int	lock = -1;

	(void)arg;
	if (strncmp(name, GONE, sizeof GONE - 1) != 0 ||
	    (lock = tree_take(dir, name)) == -1)
		return 0;
	if (renameat2(dir, name, dir, name + sizeof GONE - 1,
	    RENAME_NOREPLACE) == -1)
		(void)fail_errno("put %s back", name);
	return 0;
}

/*
 * Where names come and go: waits for who does the same, which is short, until
 * dir is closed or end_turn().  What is hidden meanwhile was hidden by one
 * that was killed.
 */
static int
take_turn(int dir)
{
	while (flock(dir, LOCK_EX) == -1)
		if (errno != EINTR)
			return fail_errno("lock rootfs of the state directory");
	return 0;
}

static void
end_turn(int dir)
{
	(void)flock(dir, LOCK_UN);	/* of ours: does not fail */
}

/* What others left half done. */
static void
sweep(int dir)
{
	tree_sweep(dir);
	(void)tree_each(dir, ".", back_one, NULL);	/* the next does */
}

int
rootfs_take(int state, int *ret_fd)
{
	auto_close int	fd = -1;

	if (mkdirat(state, "rootfs", 0700) == -1 && errno != EEXIST)
		return fail_errno("make rootfs");
	fd = openat(state, "rootfs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (fd == -1 || fchmod(fd, 0700) == -1)
		return fail_errno("rootfs of the state directory");
	sweep(fd);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int
rootfs_open(const struct conf *c, int *ret_fd)
{
	*ret_fd = state_dir(c, "rootfs");
	/* who may only look removes nothing */
	if (*ret_fd != -1 && geteuid() == 0)
		sweep(*ret_fd);
	return *ret_fd == -1 ? -1 : 0;
}

static int
missing(const char *name)
{
	return fail("there is no root file system %s", name);
}

int
rootfs_open_one(const struct conf *c, const char *name, int *ret_dir)
{
	if (rootfs_open(c, ret_dir) == -1)
		return fail_errno("%s/rootfs", c->state_dir);
	return is_there(*ret_dir, name) ? 0 : missing(name);
}

/* ---- making ------------------------------------------------------------- */

static int
taken(const char *name)
{
	return fail("there is a root file system %s already", name);
}

int
rootfs_begin(const struct args *a, struct conf *c, const char *name,
    struct making *m)
{
	auto_close int	state = -1;
	int		rc;

	m->dir = m->build = m->root = -1;
	if ((rc = rootfs_name(name)) != 0 || (rc = config_load(a, c)) != 0)
		return rc;
	if (geteuid() != 0)
		return fail("expected to be run as root");
	if ((rc = state_take(c->state_dir, &state)) != 0 ||
	    (rc = rootfs_take(state, &m->dir)) != 0)
		return rc;
	if (is_there(m->dir, name))
		return rootfs_end(c, name, m, NULL, taken(name));
	if ((m->build = tree_begin(m->dir, m->tmp)) == -1)
		return rootfs_end(c, name, m, NULL, fail_errno("%s/rootfs",
		    c->state_dir));
	if (tree_dir(m->build, "root", 0755) == -1 ||
	    (m->root = openat(m->build, "root", O_RDONLY | O_DIRECTORY |
	    O_NOFOLLOW | O_CLOEXEC)) == -1)
		return rootfs_end(c, name, m, NULL, fail_errno("%s/rootfs/%s",
		    c->state_dir, m->tmp));
	return 0;
}

static int
put_origin(const struct making *m, json_t *origin)
{
	auto_free char	*text = NULL;
	char		 when[25];

	time_rfc3339(now_ms(), when);
	(void)json_object_set_new(origin, "at", json_string(when));
	(void)json_object_set_new(origin, "workbox",
	    json_string(PACKAGE_VERSION));
	text = json_dumps(origin, JSON_COMPACT);
	if (text == NULL || strlen(text) > ORIGIN_MAX)
		return fail("what it was made from does not fit");
	return fsetxattr(m->root, ORIGIN, text, strlen(text), 0) == 0 ? 0 :
	    fail_errno("keep what it was made from");
}

/* Within our turn: one that is hidden may be used, and comes back. */
static int
put_in_place(const struct making *m, const char *name)
{
	auto_free char	*gone = xasprintf(GONE "%s", name);

	(void)back_one(m->dir, gone, NULL);
	if (is_there(m->dir, name) || is_there(m->dir, gone))
		return taken(name);
	return renameat2(m->build, "root", m->dir, name, RENAME_NOREPLACE) ==
	    0 ? 0 : fail_errno("put %s into place", name);
}

/* All of it on the disk, then in place. */
static int
finish(const struct making *m, const char *name, json_t *origin)
{
	char	was[64];
	int	rc;

	if ((rc = put_origin(m, origin)) != 0)
		return rc;
	if (syncfs(m->root) == -1)
		return fail_errno("write %s to the disk", name);
	if ((rc = take_turn(m->dir)) != 0 ||
	    (rc = put_in_place(m, name)) != 0)
		return rc;
	(void)fsync(m->dir);	/* what is lost in a crash is made again */
	rootfs_default(m->dir, was);
	if (*was == '\0' && (rc = set_default(m->dir, name)) != 0)
		return rc;
	printf("root file system %s %s%s\n", name, json_object_get(origin,
	    "kind") != NULL ? "built" : "imported", *was == '\0' ?
	    ", the default" : "");
	return 0;
}

static void
on_slow(int sig)
{
	static const char	text[] = "workbox rootfs: removing what was "
	    "unpacked; SIGKILL leaves it to the next such command\n";
	int			e = errno;

	(void)sig;
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
	errno = e;
}

/* Some file systems remove a few hundred directories a second. */
static int
remove_build(const struct making *m)
{
	struct sigaction	sa = { .sa_handler = on_slow,
	    .sa_flags = SA_RESTART }, old;
	int			rc;

	(void)sigaction(SIGALRM, &sa, &old);	/* cannot fail */
	(void)alarm(SLOW_S);
	rc = tree_remove(m->dir, m->tmp);
	(void)alarm(0);
	(void)sigaction(SIGALRM, &old, NULL);	/* cannot fail */
	return rc;
}

int
rootfs_end(const struct conf *c, const char *name, struct making *m,
    json_t *origin, int rc)
{
	if (rc == 0) {
		rc = finish(m, name, origin);
		end_turn(m->dir);	/* removing a tree takes long */
	}
	json_decref(origin);
	if (m->build != -1 && remove_build(m) == -1)
		(void)fail_errno("remove %s/rootfs/%s", c->state_dir, m->tmp);
	else if (rc > EXIT_SIGNAL)
		note("interrupted, nothing is left");
	fd_close(&m->root);
	fd_close(&m->build);
	fd_close(&m->dir);
	return rc;
}

static int
build_main(const struct args *a)
{
	static struct conf	 c;
	struct making		 m;
	const char		*kind = a->operand[0];
	const char		*name = args_get(a, "name");
	json_t			*origin;
	int			 rc, debian = strcmp(kind, "debian") == 0;

	if (!debian && strcmp(kind, "minimal") != 0)
		return fail("kind: expected minimal or debian, not \"%s\"",
		    kind);
	if (name == NULL)
		name = kind;
	if ((rc = rootfs_begin(a, &c, name, &m)) != 0)
		return rc;
	origin = json_pack("{s:s}", "kind", kind);
	rc = debian ? rootfs_debian(a, &c, &m, origin) :
	    rootfs_minimal(a, m.root);
	return rootfs_end(&c, name, &m, origin, rc);
}

json_t *
rootfs_origin(int root)
{
	char	text[ORIGIN_MAX];
	ssize_t	n = fgetxattr(root, ORIGIN, text, sizeof text);

	return n <= 0 ? NULL : json_loadb(text, (size_t)n, 0, NULL);
}

/* ---- list, default ----------------------------------------------------- */

/* PRETTY_NAME of the tree's os-release, or "". */
static void
system_name(int dir, const char *name, char *ret, size_t size)
{
	auto_close int	root = -1, fd = -1;
	char		text[4096], *p, *end;
	ssize_t		n;

	*ret = '\0';
	root = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	fd = root == -1 ? -1 : rootfs_read_in(root, "etc/os-release");
	if (fd == -1 || (n = read(fd, text, sizeof text - 1)) <= 0)
		return;
	text[n] = '\0';
	if ((p = strstr(text, "PRETTY_NAME=")) == NULL)
		return;
	p += strlen("PRETTY_NAME=");
	p += *p == '"';
	if ((end = strpbrk(p, "\"\n")) != NULL)
		*end = '\0';
	(void)str_copy(ret, p, size);
}

json_t *
rootfs_describe(int dir, const char *name)
{
	struct stat	st;
	char		sys[128], when[25], dflt[64];

	rootfs_default(dir, dflt);
	if (*name == '.' || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ==
	    -1 || !S_ISDIR(st.st_mode))
		return NULL;
	system_name(dir, name, sys, sizeof sys);
	time_rfc3339((uint64_t)st.st_ctim.tv_sec * 1000, when);
	return json_pack("{s:s, s:b, s:s, s:s}", "name", name, "default",
	    strcmp(name, dflt) == 0, "system", sys, "createdAt", when);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(json_str(*(json_t *const *)a, "name"),
	    json_str(*(json_t *const *)b, "name"));
}

/* All of them, sorted; an empty array where there is no directory. */
static json_t *
collect(int dir)
{
	auto_free json_t	**v = NULL;
	json_t			*all = json_array(), *one;
	const struct dirent	*e;
	DIR			*d;
	size_t			 i, n = 0;

	if (dir == -1 || (d = fdopendir(dup(dir))) == NULL)
		return all;
	while ((e = readdir(d)) != NULL)
		if ((one = rootfs_describe(dir, e->d_name)) != NULL) {
			v = xreallocarray(v, n + 1, sizeof(json_t *));
			v[n++] = one;
		}
	(void)closedir(d);
	if (n > 0)
		qsort(v, n, sizeof v[0], by_name);
	for (i = 0; i < n; i++)
		json_array_append_new(all, v[i]);
	return all;
}

static void
list_table(const json_t *items)
{
	struct table	 t;
	const json_t	*j;
	char		 when[20];
	size_t		 i;

	table_init(&t, 4, "NAME", "DEFAULT", "SYSTEM", "CREATED");
	for (i = 0; i < json_array_size(items); i++) {
		j = json_array_get(items, i);
		table_add(&t, json_str(j, "name"));
		table_add(&t, json_is_true(json_object_get(j, "default")) ?
		    "yes" : "");
		table_add(&t, json_str(j, "system"));
		text_local(text_time(json_str(j, "createdAt")), when);
		table_add(&t, when);
	}
	table_print(&t, stdout);
}

static int
list_main(const struct args *a)
{
	static struct conf	 c;
	auto_close int		 dir = -1;
	json_t			*items;
	int			 rc;

	if ((rc = config_load(a, &c)) != 0)
		return rc;
	/* A state directory without any has none; a wrong name is a fault. */
	if (rootfs_open(&c, &dir) == -1 &&
	    (errno != ENOENT || access(c.state_dir, F_OK) == -1))
		return fail_errno("state directory %s", c.state_dir);
	items = collect(dir);
	if (args_json(a)) {
		items = json_pack("{s:o}", "items", items);
		rc = json_print(items);
	} else
		list_table(items);
	json_decref(items);
	return rc;
}

static int
default_main(const struct args *a)
{
	static struct conf	 c;
	auto_close int		 dir = -1;
	const char		*name = a->operand[0];
	int			 rc;

	if ((rc = rootfs_name(name)) != 0 || (rc = config_load(a, &c)) != 0 ||
	    (rc = rootfs_open_one(&c, name, &dir)) != 0 ||
	    (rc = take_turn(dir)) != 0)
		return rc;
	return is_there(dir, name) ? set_default(dir, name) : missing(name);
}

/* ---- rm ---------------------------------------------------------------- */

/* Whose specification this is, if it names rootfs; -1: it cannot be read. */
static int
user_in(const char *path, const char *rootfs, json_t *ret)
{
	auto_free char	*text = NULL;
	struct row_spec	 spec;
	size_t		 len;

	if ((text = text_file(path, WIRE_MAX, &len)) == NULL)
		/* one that is just being made or removed has none */
		return errno == ENOENT || errno == ENOTDIR ? 0 :
		    fail_errno("%s", path);
	if (wire_decode(&wire_row_spec, (const uint8_t *)text, len, &spec) !=
	    0)
		return fail("%s: expected the specification of a sandbox",
		    path);
	if (strcmp(spec.rootfs, rootfs) == 0)
		(void)json_array_append_new(ret, json_string(spec.name));
	return 0;
}

int
rootfs_users(const struct conf *c, const char *rootfs, json_t *ret)
{
	auto_close int		 dir = state_dir(c, "sandboxes");
	const struct dirent	*e;
	char			*path;
	DIR			*d;
	int			 rc = 0;

	if (dir == -1 || (d = fdopendir(dup(dir))) == NULL)
		return errno == ENOENT ? 0 :
		    fail_errno("%s/sandboxes", c->state_dir);
	while (rc == 0 && (e = readdir(d)) != NULL) {
		path = xasprintf("%s/sandboxes/%s/spec", c->state_dir,
		    e->d_name);
		rc = user_in(path, rootfs, ret);
		free(path);
	}
	(void)closedir(d);
	return rc;
}

static int
unused(const struct conf *c, const char *name)
{
	json_t	*users = json_array();
	int	 rc = rootfs_users(c, name, users);

	if (rc == 0 && json_array_size(users) > 0)
		rc = fail("sandbox %s uses root file system %s",
		    json_string_value(json_array_get(users, 0)), name);
	json_decref(users);
	return rc;
}

/*
 * Out of sight, so that no new sandbox finds it; one that has found it has
 * written so by then.  What is not unused is put back, by the next command
 * where this one is ended first; what is goes where an interrupted removal is
 * swept.
 */
static int
hide(const struct conf *c, int dir, int build, const char *name)
{
	auto_close int	lock = tree_take(dir, name);
	auto_free char	*gone = xasprintf(GONE "%s", name);
	int		rc;

	if (lock == -1 ||
	    renameat2(dir, name, dir, gone, RENAME_NOREPLACE) == -1)
		return fail_errno("remove %s", name);
	if ((rc = unused(c, name)) == 0 &&
	    renameat(dir, gone, build, name) == 0)
		return 0;
	if (rc == 0)
		rc = fail_errno("remove %s", name);
	if (renameat2(dir, gone, dir, name, RENAME_NOREPLACE) == -1)
		(void)fail_errno("put %s back", name);
	return rc;
}

static int
rm_main(const struct args *a)
{
	static struct conf	 c;
	auto_close int		 dir = -1, fd = -1;
	auto_free char		*given = args_host(a);
	const char		*name = a->operand[0];
	char			 tmp[24], was[64];
	int			 rc;

	if ((rc = rootfs_name(name)) != 0 || (rc = config_load(a, &c)) != 0 ||
	    (rc = rootfs_open_one(&c, name, &dir)) != 0 ||
	    (rc = unused(&c, name)) != 0)
		return rc;
	if ((fd = tree_begin(dir, tmp)) == -1)
		return fail_errno("remove %s", name);
	if ((rc = take_turn(dir)) == 0 &&
	    (rc = hide(&c, dir, fd, name)) == 0) {
		rootfs_default(dir, was);
		if (strcmp(was, name) == 0 && unlinkat(dir, DEFAULT, 0) == 0)
			note("there is no default any more: workbox rootfs "
			    "default NAME%s sets one, and so does the next "
			    "build or import", given);
	}
	end_turn(dir);
	/* what is still in it goes with the next command */
	if (tree_remove(dir, tmp) == -1)
		return fail_errno("remove %s", name);
	return rc;
}
