/*
 * fs.c: device nodes, programs that gain, links that move, and trees to
 * choke on.
 */
#include "attack.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
fs_tree(const char *dir)
{
	char	name[256];
	int	i, fd;

	if (mkdir(dir, 0700) == -1 || chdir(dir) == -1) {
		check(0, "%s: %s", dir, strerror(errno));
		return;
	}
	for (i = 1; i < 256; i++) {
		snprintf(name, sizeof(name), "%c%c%d", i == '/' ? 'x' : i,
		    i == '/' ? 'x' : i, i);
		if ((fd = open(name, O_CREAT | O_WRONLY, 0)) != -1)
			close(fd);
	}
	memset(name, '\n', 255);
	name[255] = '\0';
	mkdir(name, 0);
	(void)!symlink("/etc/shadow", "shadow");
	(void)!symlink("../../../../../../../../etc", "up");
	(void)!symlink("loop", "loop");
	(void)!link("/etc/passwd", "hard");
	mkfifo("fifo", 0666);
	mkdir("none", 0);
	mkdir("many", 0700);
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		mkdir(name, 0);
	}
	for (i = 0; i < 5000; i++)
		if (mkdir("deep", 0700) == -1 || chdir("deep") == -1)
			break;
	check(i == 5000, "a tree of %d levels", i);
}

/* n entries of one directory, with names as bad as they can be. */
void
fs_many(int n)
{
	char	name[256];
	int	i;

	if (mkdir("many", 0700) == -1 || chdir("many") == -1) {
		check(0, "many: %s", strerror(errno));
		return;
	}
	for (i = 0; i < n; i++) {
		memset(name, i & 1 ? '\n' : 0xff, 255);
		snprintf(name, sizeof(name), "%c%d", i & 1 ? '\n' : 0xff, i);
		if (i % 16 == 0) {	/* some as long as they can be */
			name[strlen(name)] = i & 1 ? '\n' : 0xff;
			name[255] = '\0';
		}
		if (mknod(name, S_IFREG, 0) == -1)
			break;
	}
	check(i == n, "%d entries of one directory", i);
}

/* ---- nodes ------------------------------------------------------------- */

void
fs_nodes(void)
{
	static const char *const dirs[] = { "/root", "/tmp", "/run", "/dev",
	    "/dev/shm", "/etc" };
	char	 path[64];
	size_t	 d;
	int	 maj, made = 0, odd = 0;

	for (d = 0; d < N(dirs); d++)
		for (maj = 0; maj < 512; maj++) {
			snprintf(path, sizeof(path), "%s/node", dirs[d]);
			made += mknod(path, S_IFCHR | 0666,
			    makedev((unsigned)maj, 0)) == 0;
			odd += errno != EPERM;
			made += mknod(path, S_IFBLK | 0666,
			    makedev((unsigned)maj, 0)) == 0;
			odd += errno != EPERM;
			unlink(path);
		}
	check(made == 0 && odd == 0, "B26 nodes of 512 majors in %zu "
	    "directories: %d made, %d not EPERM", N(dirs), made, odd);
}

/* ---- gain -------------------------------------------------------------- */

static int
copy(const char *to)
{
	int	in = open("/proc/self/exe", O_RDONLY);
	int	out = open(to, O_CREAT | O_TRUNC | O_WRONLY, 0755);
	ssize_t	n;

	while ((n = read(in, mem, sizeof(mem))) > 0)
		if (write(out, mem, (size_t)n) != n)
			return -1;
	close(in);
	close(out);
	return n == 0 && out != -1 ? 0 : -1;
}

/* As somebody else, who then says what he has become. */
static int
become(const char *file, const char *what)
{
	int	st;
	pid_t	pid = fork();

	if (pid == 0) {
		if (setgid(1000) == -1 || setuid(1000) == -1)
			_exit(99);
		execl(file, file, "gain", what, (char *)NULL);
		_exit(98);
	}
	return waitpid(pid, &st, 0) == pid && WIFEXITED(st) ?
	    WEXITSTATUS(st) : 97;
}

/*
 * file: a new program, set to run as root, or with capabilities.  "-": it is
 * that program; its exit says what it has.
 */
void
fs_gain(const char *file)
{
	/* VFS_CAP_REVISION_2, effective, everything */
	static const uint32_t	caps[5] = { 0x02000001, ~0U, 0, ~0U, 0 };
	char			buf[64];
	int			r;

	if (strcmp(file, "-") == 0)
		_exit((geteuid() == 0 || getegid() == 0 ? 1 : 0) |
		    (line_of("/proc/self/status", "CapEff:\t", buf,
		    sizeof(buf)) && strtoull(buf, NULL, 16) != 0 ? 2 : 0));
	unlink(file);
	if (copy(file) == -1 || chown(file, 0, 0) == -1 ||
	    chmod(file, 06755) == -1) {
		check(0, "B18 %s: %s", file, strerror(errno));
		return;
	}
	r = become(file, "-");
	check(r == 0, "B18 a setuid program gains nothing: %d", r);
	chmod(file, 0755);
	if (setxattr(file, "security.capability", caps, sizeof(caps), 0) ==
	    -1) {
		check(0, "B18 file capabilities: %s", strerror(errno));
		return;
	}
	r = become(file, "-");
	check(r == 0, "B18 file capabilities give nothing: %d", r);
}

/* ---- links that move --------------------------------------------------- */

/* link is, in turn, a directory, a way to pid 1, and a descriptor. */
void
fs_swap(const char *link)
{
	static const char *const to[] = { "/tmp", "/proc/1/root",
	    "/proc/self/fd/7", "/proc/1/cwd", "/proc/self/fd/3",
	    "/proc/self/fd/5/../../../.." };
	char	 other[256];
	double	 end = now() + 8;
	size_t	 i;

	snprintf(other, sizeof(other), "%s.new", link);
	for (i = 0; now() < end; i++) {
		unlink(other);
		if (symlink(to[i % N(to)], other) == -1 ||
		    rename(other, link) == -1)
			_exit(1);
		if (i == 0)
			puts("swapping");
	}
}
