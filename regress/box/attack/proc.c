/*
 * proc.c: what /proc and /sys show and let be written, what a fresh process
 * holds, and where a secret is to be read.
 */
#include "attack.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* None of these takes a byte. */
static const char *const sealed[] = {
	"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
	"/proc/sys/kernel/hostname", "/proc/sys/kernel/ns_last_pid",
	"/proc/sys/kernel/randomize_va_space", "/proc/sys/vm/drop_caches",
	"/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max",
	"/proc/sys/fs/suid_dumpable", "/proc/sys/net/ipv4/ip_forward",
	"/proc/sys/net/ipv4/ip_unprivileged_port_start",
	"/proc/sys/kernel/sysrq", "/proc/sys/fs/mqueue/queues_max",
	"/proc/sys/user/max_user_namespaces", "/proc/sysrq-trigger",
	"/proc/irq/default_smp_affinity", "/proc/mtrr",
	"/sys/kernel/uevent_helper", "/sys/power/state",
	"/sys/fs/cgroup/cgroup.procs", "/sys/kernel/mm/ksm/run",
	"/dev/mem", "/dev/kmsg", "/dev/userfaultfd", "/dev/fuse",
	"/dev/net/tun", "/dev/loop-control", "/dev/kvm", "/dev/console",
	"/proc/1/oom_score_adj", "/proc/1/oom_adj", "/proc/1/mem",
	"/proc/1/clear_refs", "/proc/1/autogroup", "/proc/1/comm",
	"/proc/1/coredump_filter", "/proc/1/timerslack_ns", "/proc/1/uid_map",
	"/proc/1/setgroups", "/proc/1/attr/current", "/proc/1/sched",
	"/proc/1/loginuid", "/proc/1/exe", "/proc/self/uid_map",
	"/proc/self/gid_map", "/opt/workbox/wb", "/opt/workbox/runner"
};
static const char *const hidden[] = {
	"/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/smaps",
	"/proc/1/auxv", "/proc/1/syscall", "/proc/1/stack", "/proc/1/exe",
	"/proc/1/root/etc/passwd", "/proc/1/cwd/etc/passwd", "/proc/1/fd/0",
	"/proc/1/fd/3", "/proc/1/fd/4", "/proc/1/fd/5", "/proc/1/fdinfo/3",
	"/proc/1/map_files", "/proc/1/personality", "/proc/1/pagemap",
	"/proc/1/task/1/mem", "/proc/kpagecount", "/proc/vmallocinfo",
	"/proc/slabinfo", "/opt/workbox/runner", "/proc/kmsg"
};
static const char *const empty[] = {
	"/proc/kcore", "/proc/kallsyms", "/proc/timer_list", "/proc/keys",
	"/proc/key-users", "/proc/sched_debug", "/proc/cmdline",
	"/proc/interrupts", "/proc/latency_stats"
};

static int
entries(const char *path, char *ret_first, size_t size)
{
	struct dirent	*e;
	DIR		*d = opendir(path);
	int		 n = 0;

	ret_first[0] = '\0';
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' && n++ == 0)
			snprintf(ret_first, size, "%s", e->d_name);
	if (d != NULL)
		closedir(d);
	return n;
}

void
proc_look(void)
{
	static const char *const dirs[] = { "/sys", "/proc/acpi",
	    "/proc/scsi", "/proc/asound", "/proc/pressure", "/proc/bus",
	    "/proc/fs" };
	char	 buf[1024], first[256];
	size_t	 i;
	int	 fd, n;
	FILE	*f;

	for (i = 0; i < sizeof(sealed) / sizeof(*sealed); i++) {
		fd = open(sealed[i], O_WRONLY);
		n = fd == -1 ? -1 : (int)write(fd, "0", 1);
		check(n == -1, "B21 %s is not written: %s", sealed[i],
		    n == -1 ? strerror(errno) : "it is");
		if (fd != -1)
			close(fd);
	}
	for (i = 0; i < sizeof(hidden) / sizeof(*hidden); i++) {
		n = (int)slurp(hidden[i]);
		check(n == -1, "B12 %s is not read: %s", hidden[i],
		    n == -1 ? strerror(errno) : "it is");
	}
	check(readlink("/proc/1/exe", buf, sizeof(buf)) == -1 &&
	    readlink("/proc/1/root", buf, sizeof(buf)) == -1 &&
	    readlink("/proc/1/cwd", buf, sizeof(buf)) == -1 &&
	    readlink("/proc/1/ns/net", buf, sizeof(buf)) == -1,
	    "B12 links of pid 1 are not read");
	for (i = 0; i < sizeof(empty) / sizeof(*empty); i++)
		check(slurp(empty[i]) <= 0, "B22 %s says nothing", empty[i]);
	for (i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		n = entries(dirs[i], first, sizeof(first));
		check(n == 0,
		    "B22 %s is empty%s%s", dirs[i], n ? ", but for " : "",
		    first);
	}
	n = 0;
	for (f = fopen("/proc/modules", "r"); f != NULL &&
	    fgets(buf, sizeof(buf), f) != NULL;)
		n |= strstr(buf, " 0x0000000000000000") == NULL;
	check(n == 0, "B22 /proc/modules shows no address");

	/* B24: what runs cannot be written, by any of its names */
	check(open("/proc/self/exe", O_WRONLY) == -1 && errno == ETXTBSY,
	    "B24 /proc/self/exe for writing: %s", strerror(errno));
	fd = open("/opt/workbox/wb", O_PATH);
	snprintf(buf, sizeof(buf), "/proc/self/fd/%d", fd);
	check(fd != -1 && open(buf, O_WRONLY) == -1,
	    "B24 wb reopened through a descriptor: %s", strerror(errno));
	check(chmod("/opt/workbox/wb", 0777) == -1 &&
	    unlink("/opt/workbox/wb") == -1 &&
	    rename("/opt/workbox/wb", "/opt/workbox/x") == -1 &&
	    truncate("/opt/workbox/wb", 0) == -1 &&
	    utimensat(AT_FDCWD, "/opt/workbox/wb", NULL, 0) == -1,
	    "B24 wb is not changed: %s", strerror(errno));

	/* B18, B31 */
	check(line_of("/proc/self/status", "NoNewPrivs:\t", buf,
	    sizeof(buf)) && strcmp(buf, "1") == 0, "B18 no_new_privs");
	check(line_of("/proc/self/status", "CapBnd:\t", buf, sizeof(buf)) &&
	    strcmp(buf, "00000000800000fb") == 0, "B18 bounding set: %s", buf);
	check(line_of("/proc/self/status", "CapEff:\t", buf, sizeof(buf)) &&
	    strcmp(buf, "00000000800000fb") == 0, "B18 effective: %s", buf);
	check(line_of("/proc/self/status", "Seccomp_filters:\t", buf,
	    sizeof(buf)) && strcmp(buf, "2") == 0, "B18 filters: %s", buf);
	n = 0;
	for (f = fopen("/proc/self/mountinfo", "r"); f != NULL &&
	    fgets(mem, sizeof(mem), f) != NULL;)
		n |= strstr(mem, "shared:") != NULL ||
		    strstr(mem, "master:") != NULL ||
		    strstr(mem, "/sandboxes/") != NULL ||
		    strstr(mem, "nosuid") == NULL;
	check(n == 0, "B31 no mount is shared, setuid or shows a host path");
}
void
proc_fds(void)
{
	struct dirent	*e;
	DIR		*d = opendir("/proc/self/fd");
	char		 list[256] = "", cwd[256];

	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' && (int)strtol(e->d_name, NULL, 10) != dirfd(d))
			strncat(strncat(list, e->d_name, 8), " ", 2);
	check(strcmp(list, "0 1 2 ") == 0, "B25 descriptors: %s", list);
	check(getcwd(cwd, sizeof(cwd)) == cwd && cwd[0] == '/',
	    "B25 the working directory has a name: %s", cwd);
	check(open("/proc/self/fd/0/../../../../etc/hostname", O_RDONLY) == -1,
	    "B25 no way out of descriptor 0");
}

/* ---- a secret ---------------------------------------------------------- */

/* Kernel addresses but those of vsyscall and of fixed maps of a program. */
static const char *const addresses[] = { "ffffffff8", "ffffffff9",
    "ffffffffa", "ffffffffb", "ffffffffc", "ffff888", "ffff88", "ffffc900" };

static struct { char b[128]; size_t len; }	secrets[16];
static size_t	nsecrets;
static long	looked, hits;

static void
search(const char *path, const char *buf, size_t len)
{
	size_t	i;

	for (i = 0; i < nsecrets; i++)
		if (memmem(buf, len, secrets[i].b, secrets[i].len) != NULL) {
			printf("# %s\n", path);
			hits++;
		}
}

static int
look(const char *path, const struct stat *st, int kind, struct FTW *f)
{
	static char	buf[1 << 18];
	ssize_t		n;
	int		fd, i;

	(void)st;
	(void)f;
	if (kind != FTW_F || !S_ISREG(st->st_mode) ||
	    (fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)) == -1)
		return 0;
	for (i = 0; i < 16 && (n = read(fd, buf, sizeof(buf))) > 0; i++) {
		search(path, buf, (size_t)n);
		looked++;
	}
	close(fd);
	return 0;
}

/*
 * Lines of hexadecimal digits on standard input: none of those bytes is in
 * any file or process below where.  "/proc" looks for addresses instead.
 */
void
proc_find(const char *where)
{
	char	 line[300];
	size_t	 i;
	int	 proc = strcmp(where, "/proc") == 0;

	for (; proc && nsecrets < N(addresses); nsecrets++) {
		secrets[nsecrets].len = strlen(addresses[nsecrets]);
		memcpy(secrets[nsecrets].b, addresses[nsecrets],
		    secrets[nsecrets].len);
	}
	while (!proc && nsecrets < N(secrets) &&
	    fgets(line, sizeof(line), stdin) != NULL) {
		for (i = 0; i < 127 && sscanf(line + 2 * i, "%2hhx",
		    (unsigned char *)secrets[nsecrets].b + i) == 1;)
			i++;
		if ((secrets[nsecrets].len = i) > 0)
			nsecrets++;
	}
	/* what asks must not be what is found: nothing is in argv */
	nftw(where, look, 64, FTW_PHYS);
	check(hits == 0 && nsecrets > 0 && looked > 0,
	    "%s: %zu secrets are nowhere in %ld files below %s: %ld hits",
	    proc ? "B22" : "B12", nsecrets, looked, where, hits);
}

/* ---- out by a directory (on the host, as the runner would) ------------- */

static const char	up[] = "../../../../../../../../../../../../../../"
    "../../etc/hostname";

/* In a process whose root is the box's: what lies above that directory? */
static int
above(int pidfd, int fd)
{
	int	st;
	pid_t	pid = fork();

	if (pid == 0) {
		if (S(SYS_setns, pidfd, 0x00020000 /* CLONE_NEWNS */) != 0)
			_exit(200);
		_exit(openat(fd, up, O_RDONLY) != -1 ? 0 : errno);
	}
	return waitpid(pid, &st, 0) == pid ? WEXITSTATUS(st) : 201;
}

void
proc_dotdot(int pid)
{
	struct stat	 st;
	int		 pidfd = (int)syscall(434, pid, 0), i, fd, r, n = 0;

	for (i = 0; i < 64; i++) {
		fd = (int)syscall(438, pidfd, i, 0);	/* pidfd_getfd */
		if (fd == -1 || fstat(fd, &st) == -1 || !S_ISDIR(st.st_mode))
			continue;
		n++;
		r = above(pidfd, fd);
		check(r == ENOENT, "B50 out of the runner's descriptor %d: %s",
		    i, said(r));
	}
	check(n >= 1, "B50 the runner holds %d directories", n);
	fd = open("/sys/fs/cgroup", O_PATH);
	r = above(pidfd, fd);
	check(r == 0, "control B50: a plain descriptor leads out: %s",
	    said(r));
}
