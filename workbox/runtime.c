/*
 * runtime: puts what runs inside the boxes, runner and wb, into the state
 * directory, with their checksums in sha256sum's format.  privd verifies
 * them when it starts.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

static int	install_main(const struct args *);

const struct cmd cmd_runtime_install = {
	.name = "runtime install",
	.operands = "",
	.doc = "Put what runs inside sandboxes into the state directory",
	.flags = CMD_STATE,
	.run = install_main
};

#define SUMS	"SHA256SUMS"

static const struct { const char *name; mode_t mode; } parts[] = {
	{ "runner", 0555 },
	{ "wb", 0555 },
};
#define NPARTS	(sizeof parts / sizeof parts[0])

/* SHA-256 of a whole file as 64 hexadecimal digits. */
static int
sum(int fd, char ret[SHA256_DIGEST_STRING_LENGTH])
{
	static uint8_t	buf[65536];
	SHA256_CTX	ctx;
	off_t		off = 0;
	ssize_t		n;

	SHA256Init(&ctx);
	while ((n = pread(fd, buf, sizeof buf, off)) > 0) {
		SHA256Update(&ctx, buf, (size_t)n);
		off += n;
	}
	if (n == -1)
		return -1;
	(void)SHA256End(&ctx, ret);
	return 0;
}

static int
copy_part(const struct conf *c, size_t i, int to, char **lines)
{
	auto_free char	*path = NULL;
	auto_close int	 fd = -1, copy = -1;
	char		 hex[SHA256_DIGEST_STRING_LENGTH], *more;
	const char	*name = parts[i].name;

	path = xasprintf("%s/%s", c->libexec_dir, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return fail_errno("%s", path);
	if (!tree_static(fd))
		return fail("%s: expected a static program: it runs on any "
		    "root file system", path);
	/* What was copied is summed, not what was read from. */
	if (tree_copy(fd, to, name, parts[i].mode) == -1 ||
	    (copy = openat(to, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) ==
	    -1 || sum(copy, hex) == -1)
		return fail_errno("copy %s", name);
	more = xasprintf("%s%s  %s\n", *lines, hex, name);
	free(*lines);
	*lines = more;
	return 0;
}

static int
fill(const struct conf *c, int fd)
{
	auto_free char	*lines = xstrdup("");
	size_t		 i;
	int		 rc;

	for (i = 0; i < NPARTS; i++)
		if ((rc = copy_part(c, i, fd, &lines)) != 0)
			return rc;
	if (tree_file(fd, SUMS, 0444, lines, strlen(lines)) == -1 ||
	    fchmod(fd, 0755) == -1 || fsync(fd) == -1)
		return fail_errno("write %s", SUMS);
	return 0;
}

static int
install_main(const struct args *a)
{
	static struct conf	c;
	auto_close int		dir = -1, fd = -1;
	char			tmp[24];
	int			rc;

	if ((rc = config_load(a, &c)) != 0)
		return rc;
	if ((rc = state_take(c.state_dir, &dir)) != 0)
		return rc;
	tree_sweep(dir);
	if ((fd = tree_begin(dir, tmp)) == -1)
		return fail_errno("state directory %s", c.state_dir);
	rc = fill(&c, fd);
	if (rc == 0 && tree_place(dir, tmp, "runtime") == -1)
		rc = fail_errno("put the runtime into place");
	if (rc != 0)
		(void)tree_remove(dir, tmp);	/* the fault was told */
	else
		printf("runtime installed in %s/runtime\n", c.state_dir);
	return rc;
}

/* The line of one part in the checksums, or NULL. */
static const char *
find_line(const char *sums, const char *name)
{
	const char	*p, *nl;

	for (p = sums; (nl = strchr(p, '\n')) != NULL; p = nl + 1)
		if ((size_t)(nl - p) == 64 + 2 + strlen(name) &&
		    memcmp(p + 64, "  ", 2) == 0 &&
		    memcmp(p + 66, name, strlen(name)) == 0)
			return p;
	return NULL;
}

int
runtime_check(const struct conf *c, char *why, size_t size)
{
	auto_free char	*sums = NULL;
	auto_close int	 dir = look_state(c, "runtime"), list = -1;
	char		 hex[SHA256_DIGEST_STRING_LENGTH];
	const char	*line, *name;
	size_t		 i, len;
	int		 fd, rc;

	if (dir == -1 || (list = look_read_in(dir, SUMS)) == -1 ||
	    (sums = text_fd(list, 4096, &len)) == NULL) {
		(void)snprintf(why, size, "%s/runtime/" SUMS ": %s",
		    c->state_dir, strerror(errno));
		return -1;
	}
	for (i = 0; i < NPARTS; i++) {
		name = parts[i].name;
		line = find_line(sums, name);
		fd = look_read_in(dir, name);
		rc = fd == -1 || line == NULL ? -1 : sum(fd, hex);
		fd_close(&fd);
		if (rc == -1 || memcmp(line, hex, 64) != 0) {
			(void)snprintf(why, size, "%s/runtime/%s is not what "
			    SUMS " says", c->state_dir, name);
			return -1;
		}
	}
	return 0;
}
