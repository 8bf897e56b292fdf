/*
 * rootfs_info: what is known of a root file system: what it was made from,
 * how large it is, who uses it, what it lacks.
 */
#include <sys/stat.h>
#include <sys/utsname.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rootfs.h"
#include "xmalloc.h"

static int	inspect_main(const struct args *);

const struct cmd cmd_rootfs_inspect = {
	.name = "rootfs inspect",
	.operands = "NAME",
	.doc = "Print a root file system as JSON",
	.flags = CMD_STATE,
	.min = 1, .max = 1,
	.run = inspect_main
};

/* What programs look for first. */
static const char *const	wanted[] = {
	"/bin/sh", "/etc/passwd", "/etc/group", "/etc/os-release",
	"/etc/ssl/certs/ca-certificates.crt"
};

static const struct { uint16_t elf; const char *name; } machines[] = {
	{ EM_X86_64, "x86_64" }, { EM_AARCH64, "aarch64" },
	{ EM_386, "i386" }, { EM_ARM, "arm" }, { EM_RISCV, "riscv64" },
	{ EM_PPC64, "ppc64" }, { EM_S390, "s390x" },
};

static json_t *
lacks(int root)
{
	json_t	*j = json_array();
	size_t	 i;
	int	 fd;

	for (i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		if ((fd = rootfs_find_in(root, wanted[i])) == -1)
			(void)json_array_append_new(j,
			    json_string(wanted[i]));
		fd_close(&fd);
	}
	return j;
}

/* What /bin/sh is a program for; "": not known. */
static const char *
machine(int root)
{
	auto_close int	fd = rootfs_read_in(root, "/bin/sh");
	Elf64_Ehdr	eh;
	size_t		i;

	/* e_machine stands at the same place in both classes */
	if (fd == -1 || pread(fd, &eh, sizeof eh, 0) != (ssize_t)sizeof eh ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
		return "";
	for (i = 0; i < sizeof machines / sizeof machines[0]; i++)
		if (machines[i].elf == eh.e_machine)
			return machines[i].name;
	return "another";
}

struct sum {
	uint64_t	entries, bytes;
	int		depth;		/* of where it is just now */
};

/* Bytes of the disk; what has several names counts once in all. */
static int
add_up(int dirfd, const char *name, void *arg)
{
	struct sum	*s = arg;
	struct stat	 st;
	int		 rc;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	s->entries++;
	s->bytes += (uint64_t)st.st_blocks * 512 / (S_ISDIR(st.st_mode) ? 1 :
	    (uint64_t)st.st_nlink);
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (s->depth == TREE_DEPTH) {
		errno = ELOOP;
		return -1;
	}
	s->depth++;
	rc = tree_each(dirfd, name, add_up, s);
	s->depth--;
	return rc;
}

static int
open_root(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

void
rootfs_warn(const struct conf *c, const char *name)
{
	auto_close int	dir = state_dir(c, "rootfs"), root = -1;
	auto_close int	sh = -1;
	struct utsname	un;
	const char	*m;

	if (dir == -1 || (root = open_root(dir, name)) == -1)
		return;
	sh = rootfs_find_in(root, "/bin/sh");
	if (sh == -1)
		note("there is no /bin/sh in it");
	m = machine(root);
	if (*m != '\0' && uname(&un) == 0 && strcmp(m, un.machine) != 0)
		note("/bin/sh in it is a program for %s, and this host is "
		    "%s", m, un.machine);
}

static int
inspect_main(const struct args *a)
{
	static struct conf	 c;
	auto_close int		 dir = -1, root = -1;
	auto_free char		*path = NULL;
	const char		*name = a->operand[0];
	struct sum		 s = { 0 };
	json_t			*j, *users, *from;
	int			 rc;

	if ((rc = rootfs_name(name)) != 0 || (rc = config_load(a, &c)) != 0 ||
	    (rc = rootfs_open_one(&c, name, &dir)) != 0)
		return rc;
	path = xasprintf("%s/rootfs/%s", c.state_dir, name);
	if ((root = open_root(dir, name)) == -1 ||
	    add_up(dir, name, &s) == -1)
		return fail_errno("%s", path);
	users = json_array();
	if ((rc = rootfs_users(&c, name, users)) != 0)
		return rc;
	if ((j = rootfs_describe(dir, name)) == NULL)
		return fail_errno("%s", path);
	from = rootfs_origin(root);
	(void)json_object_set_new(j, "path", json_string(path));
	(void)json_object_set_new(j, "madeBy", json_string(from == NULL ?
	    "" : json_object_get(from, "kind") != NULL ? "build" : "import"));
	(void)json_object_set_new(j, "origin", from != NULL ? from :
	    json_null());
	(void)json_object_set_new(j, "entries",
	    json_integer((json_int_t)s.entries));
	(void)json_object_set_new(j, "sizeBytes",
	    json_integer((json_int_t)s.bytes));
	(void)json_object_set_new(j, "machine", json_string(machine(root)));
	(void)json_object_set_new(j, "usedBy", users);
	(void)json_object_set_new(j, "lacks", lacks(root));
	rc = json_print(j);
	json_decref(j);
	return rc;
}
