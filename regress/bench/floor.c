/*
 * floor.c: the floor under any sandbox of this shape, in the fewest calls:
 * cgroups, clone3 with seven namespaces, an idmapped read-only root under an
 * overlay, proc, a tmpfs /dev, pivot_root, a user namespace, no_new_privs, a
 * small filter, exec of a static program that writes a byte.  No message, no
 * record, no proof: what is above it is what Workbox adds.
 */
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define BASE	0x6e000000u

static char	work[256], root[256];
static int	userns = -1;

static int
write_file(const char *path, const char *text)
{
	int	fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t	n;

	if (fd == -1)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == -1 ? -1 : 0;
}

/* A user namespace with the box's map, made once: it is cheap anyway. */
static int
make_userns(void)
{
	char	path[64], map[64];
	pid_t	pid;
	int	p[2];
	char	c;

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	if ((pid = fork()) == 0) {
		if (unshare(CLONE_NEWUSER) == -1)
			_exit(1);
		(void)!write(p[1], "x", 1);
		pause();
		_exit(0);
	}
	if (read(p[0], &c, 1) != 1)
		return -1;
	(void)snprintf(map, sizeof(map), "0 %u 65536", BASE);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	if (write_file(path, map) == -1)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	if (write_file(path, map) == -1)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	userns = open(path, O_RDONLY | O_CLOEXEC);
	close(p[0]);
	close(p[1]);
	peer_end(pid);
	return userns == -1 ? -1 : 0;
}

int
floor_init(const char *rootfs, const char *dir)
{
	(void)snprintf(root, sizeof(root), "%s", rootfs);
	(void)snprintf(work, sizeof(work), "%s", dir);
	return make_userns();
}

void
floor_fini(void)
{
	close(userns);
}

static void
filter_load(void)
{
	struct sock_filter	f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kexec_load, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog	p = { 4, f };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0);
}

#define TRY(x) do { if ((x) == -1) { perror(#x); _exit(1); } } while (0)

static void
child(const char *dir)
{
	struct mount_attr	a = { .attr_set = MOUNT_ATTR_IDMAP |
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	    .userns_fd = (uint64_t)userns };
	static char *const	argv[] = { (char *)(uintptr_t)"ready", NULL };
	int			t;

	TRY(unshare(CLONE_NEWCGROUP));
	TRY(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	TRY(chdir(dir));	/* in this namespace's own mounts */
	TRY(t = (int)syscall(SYS_open_tree, AT_FDCWD, root, OPEN_TREE_CLONE |
	    OPEN_TREE_CLOEXEC));
	TRY(syscall(SYS_mount_setattr, t, "", AT_EMPTY_PATH, &a, sizeof(a)));
	TRY(syscall(SYS_move_mount, t, "", AT_FDCWD, "lower",
	    MOVE_MOUNT_F_EMPTY_PATH));
	TRY(mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV,
	    "lowerdir=lower,upperdir=upper,workdir=work"));
	TRY(chdir("merged"));
	TRY(mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    NULL));
	TRY(mount("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=755,size=64k"));
	TRY(syscall(SYS_pivot_root, ".", "."));
	TRY(umount2(".", MNT_DETACH));
	TRY(setns(userns, CLONE_NEWUSER));
	TRY(unshare(CLONE_NEWNS));
	filter_load();
	execv("/ready", argv);
	_exit(127);
}

static int
make_dirs(int n, char *dir, size_t size)
{
	static const char *const	sub[] = { "lower", "upper", "work",
	    "merged" };
	char				path[400];
	size_t				i;

	(void)snprintf(dir, size, "%s/f%d", work, n);
	if (mkdir(dir, 0700) == -1)
		return -1;
	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, sub[i]);
		if (mkdir(path, 0755) == -1)
			return -1;
		if (i == 1 && chown(path, BASE, BASE) == -1)
			return -1;
	}
	return 0;
}

static const char *const	trees[] = { "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu" };

/* What exists of the trees: on a pure v2 host the root is the one. */
static void
cgroups(int n, int make, pid_t pid)
{
	char	path[300], text[32];
	size_t	i;

	for (i = 0; i < 4; i++) {
		if (access(trees[i], F_OK) == -1)
			continue;
		(void)snprintf(path, sizeof(path), "%s/wb-floor-%d", trees[i],
		    n);
		if (!make) {
			(void)rmdir(path);	/* as far as they exist */
			continue;
		}
		(void)mkdir(path, 0755);
		if (i == 1) {
			(void)snprintf(path, sizeof(path), "%s/wb-floor-%d/"
			    "memory.limit_in_bytes", trees[i], n);
			(void)write_file(path, "2147483648");
		}
		if (i == 2) {
			(void)snprintf(path, sizeof(path), "%s/wb-floor-%d/"
			    "pids.max", trees[i], n);
			(void)write_file(path, "4096");
		}
		(void)snprintf(path, sizeof(path), "%s/wb-floor-%d/"
		    "cgroup.procs", trees[i], n);
		(void)snprintf(text, sizeof(text), "%d", (int)pid);
		(void)write_file(path, text);
	}
}

double
floor_ready(void *arg)
{
	static int		n;
	struct clone_args	ca = { .flags = CLONE_NEWNS | CLONE_NEWPID |
	    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET, .exit_signal =
	    SIGCHLD };
	char			dir[300], cmd[350];
	double			t0, t;
	int			p[2], g[2];
	pid_t			pid;
	char			c;

	(void)arg;
	if (pipe2(p, O_CLOEXEC) == -1 || pipe2(g, O_CLOEXEC) == -1)
		return -1;
	t0 = bench_usec();
	if (make_dirs(++n, dir, sizeof(dir)) == -1)
		return -1;
	pid = (pid_t)syscall(SYS_clone3, &ca, sizeof(ca));
	if (pid == 0) {
		if (read(g[0], &c, 1) != 1 || dup2(p[1], 1) == -1)
			_exit(1);
		child(dir);
	}
	close(p[1]);
	cgroups(n, 1, pid);
	if (write(g[1], "x", 1) != 1 || read(p[0], &c, 1) != 1) {
		fprintf(stderr, "floor: no byte\n");
		peer_end(pid);
		return -1;
	}
	t = bench_usec() - t0;
	close(p[0]);
	close(g[0]);
	close(g[1]);
	peer_end(pid);
	cgroups(n, 0, 0);
	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd) == 0 ? t : -1;
}
