/*
 * rootfs: root file systems under the state directory: build, list, default,
 * rm.  A root file system is a directory STATE/rootfs/NAME, whole or not
 * there; `default' is a link to one of them.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
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

static int
check_name(const char *name)
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

/* What the link points to, or "". */
static void
read_default(int dir, char ret[64])
{
	ssize_t	n = readlinkat(dir, DEFAULT, ret, 63);

	ret[n > 0 ? n : 0] = '\0';
}

static int
set_default(int dir, const char *name)
{
	char	tmp[24];

	/* A directory's fresh name, used for a link: renaming is atomic. */
	(void)snprintf(tmp, sizeof tmp, ".default-%ld", (long)getpid());
	(void)unlinkat(dir, tmp, 0);
	if (symlinkat(name, dir, tmp) == -1 ||
	    renameat(dir, tmp, dir, DEFAULT) == -1)
		return fail_errno("set the default");
	return 0;
}

/* ---- build ------------------------------------------------------------- */

static int
finish(int dir, int build, const char *name)
{
	char	was[64];
	int	rc;

	if (renameat2(build, "root", dir, name, RENAME_NOREPLACE) == -1)
		return fail_errno("put %s into place", name);
	(void)fsync(dir);	/* what is lost in a crash is built again */
	read_default(dir, was);
	if (*was == '\0' && (rc = set_default(dir, name)) != 0)
		return rc;
	printf("root file system %s built%s\n", name, *was == '\0' ?
	    ", the default" : "");
	return 0;
}

/* The build's directory: the tree in root, what passes in tmp. */
static int
build_in(const struct args *a, const struct conf *c, int build,
    const char *tmp, int debian)
{
	auto_close int	root = -1;

	if (fchmod(build, 0755) == -1 || tree_dir(build, "root", 0755) == -1 ||
	    tree_dir(build, "tmp", 01777) == -1)
		return fail_errno("%s/rootfs/%s", c->state_dir, tmp);
	root = openat(build, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (root == -1)
		return fail_errno("%s/rootfs/%s", c->state_dir, tmp);
	return debian ? rootfs_debian(a, c, root, tmp, build) :
	    rootfs_minimal(a, root);
}

static int
build_main(const struct args *a)
{
	static struct conf	 c;
	const char		*kind = a->operand[0];
	const char		*name = args_get(a, "name");
	auto_close int		 state = -1, dir = -1, fd = -1;
	char			 tmp[24];
	int			 rc, debian = strcmp(kind, "debian") == 0;

	if (!debian && strcmp(kind, "minimal") != 0)
		return fail("kind: expected minimal or debian, not \"%s\"",
		    kind);
	if (name == NULL)
		name = kind;
	if ((rc = check_name(name)) != 0 || (rc = config_load(a, &c)) != 0)
		return rc;
	if (geteuid() != 0)
		return fail("expected to be run as root");
	if ((rc = state_take(c.state_dir, &state)) != 0)
		return rc;
	if ((tree_dir(state, "rootfs", 0755) == -1 && errno != EEXIST) ||
	    (dir = state_dir(&c, "rootfs")) == -1)
		return fail_errno("%s/rootfs", c.state_dir);
	tree_sweep(dir);
	if (is_there(dir, name))
		return fail("there is a root file system %s already", name);
	if ((fd = tree_begin(dir, tmp)) == -1)
		return fail_errno("%s/rootfs", c.state_dir);
	rc = build_in(a, &c, fd, tmp, debian);
	if (rc == 0)
		rc = finish(dir, fd, name);
	if (tree_remove(dir, tmp) == -1)
		(void)fail_errno("remove %s/rootfs/%s", c.state_dir, tmp);
	return rc;
}

/* ---- list, default ----------------------------------------------------- */

/* PRETTY_NAME of the tree's os-release, or "". */
static void
system_name(int dir, const char *name, char *ret, size_t size)
{
	struct open_how	how = { .flags = O_RDONLY | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	auto_close int	root = -1, fd = -1;
	char		text[4096], *p, *end;
	ssize_t		n;

	*ret = '\0';
	root = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	fd = root == -1 ? -1 : (int)syscall(SYS_openat2, root,
	    "etc/os-release", &how, sizeof how);
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

static json_t *
describe(int dir, const char *name, const char *dflt)
{
	struct stat	st;
	char		sys[128], when[25];

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
	char			 dflt[64];
	DIR			*d;
	size_t			 i, n = 0;

	if (dir == -1 || (d = fdopendir(dup(dir))) == NULL)
		return all;
	read_default(dir, dflt);
	while ((e = readdir(d)) != NULL)
		if ((one = describe(dir, e->d_name, dflt)) != NULL) {
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
	if ((dir = state_dir(&c, "rootfs")) == -1 &&
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

	if ((rc = check_name(name)) != 0 || (rc = config_load(a, &c)) != 0)
		return rc;
	if ((dir = state_dir(&c, "rootfs")) == -1)
		return fail_errno("%s/rootfs", c.state_dir);
	if (!is_there(dir, name))
		return fail("there is no root file system %s", name);
	return set_default(dir, name);
}

/* ---- rm ---------------------------------------------------------------- */

/*
 * The name of a box that was made from this root file system, by the
 * specification that privd keeps.  1: in ret; 0: none; -1: errno.
 */
static int
user_of(const struct conf *c, const char *rootfs, char ret[64])
{
	auto_close int		 dir = state_dir(c, "sandboxes");
	const struct dirent	*e;
	struct row_spec		 spec;
	char			*path, *text;
	size_t			 len;
	DIR			*d;
	int			 found = 0;

	if (dir == -1)
		return errno == ENOENT ? 0 : -1;
	if ((d = fdopendir(dup(dir))) == NULL)
		return -1;
	while (!found && (e = readdir(d)) != NULL) {
		path = xasprintf("%s/sandboxes/%s/spec", c->state_dir,
		    e->d_name);
		text = text_file(path, WIRE_MAX, &len);
		free(path);
		found = text != NULL && wire_decode(&wire_row_spec,
		    (const uint8_t *)text, len, &spec) == 0 &&
		    strcmp(spec.rootfs, rootfs) == 0;
		free(text);
	}
	if (found)
		(void)str_copy(ret, spec.name, 64);
	(void)closedir(d);
	return found;
}

static int
rm_main(const struct args *a)
{
	static struct conf	 c;
	auto_close int		 dir = -1, fd = -1;
	auto_free char		*given = args_host(a);
	const char		*name = a->operand[0];
	char			 tmp[24], other[64];
	int			 rc;

	if ((rc = check_name(name)) != 0 || (rc = config_load(a, &c)) != 0)
		return rc;
	if ((dir = state_dir(&c, "rootfs")) == -1)
		return fail_errno("%s/rootfs", c.state_dir);
	tree_sweep(dir);
	if (!is_there(dir, name))
		return fail("there is no root file system %s", name);
	if ((rc = user_of(&c, name, other)) == -1)
		return fail_errno("%s/sandboxes", c.state_dir);
	if (rc == 1)
		return fail("sandbox %s uses root file system %s", other,
		    name);
	/* Out of sight first: an interrupted removal is swept later. */
	if ((fd = tree_begin(dir, tmp)) == -1 || renameat(dir, name, fd,
	    name) == -1)
		return fail_errno("remove %s", name);
	read_default(dir, other);
	if (strcmp(other, name) == 0 && unlinkat(dir, DEFAULT, 0) == 0)
		note("there is no default any more: workbox rootfs default "
		    "NAME%s sets one, and so does the next build",
		    given);
	if (tree_remove(dir, tmp) == -1)
		return fail_errno("remove %s", name);
	return 0;
}
