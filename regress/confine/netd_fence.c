/*
 * netd_fence.c: the fence around netd and its maker, read off the running
 * processes; forbidden system calls made in their place by ptrace(2); and
 * what root of U1 could do to the host with every capability it can have:
 * nothing.
 */
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "netd_world.h"
#include "xmalloc.h"

#define PRESSURE	"/proc/pressure/memory"
#define ID1	"01K8ZZZZZZZZZZZZZZZZZZZZZ1"

static struct world	w;

static void
setup(void)
{
	world_make(&w);
	world_start(&w);
	/* both have been at work */
	world_open(&w, world_net(&w, ID1, NULL), NULL);
}

static void
teardown(void)
{
	world_free(&w);
}

/* ---- /proc ------------------------------------------------------------- */

/* The value of a line of /proc/<pid>/status. */
static const char *
status(pid_t pid, const char *key)
{
	static char	line[256];
	char		path[64];
	FILE		*f;
	size_t		n = strlen(key);

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	ck_assert_ptr_ne(f = fopen(path, "re"), NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, n) == 0 && line[n] == ':') {
			fclose(f);
			line[strcspn(line, "\n")] = '\0';
			return line + n + 1 + strspn(line + n + 1, "\t ");
		}
	fclose(f);
	ck_abort_msg("no %s in %s", key, path);
}

static ino_t
ns_of(pid_t pid, const char *ns)
{
	char		path[64];
	struct stat	st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, ns);
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

static int
lines(pid_t pid, const char *name)
{
	char	path[64];
	FILE	*f;
	int	c, n = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	ck_assert_ptr_ne(f = fopen(path, "re"), NULL);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static int
entries(pid_t pid, const char *name)
{
	char	path[64];
	DIR	*d;
	int	n = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	ck_assert_ptr_ne(d = opendir(path), NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

static void
fenced(pid_t pid, uint64_t caps)
{
	char		want[64];
	struct stat	st;

	snprintf(want, sizeof(want), "%d\t%d\t%d\t%d", WORLD_NETD, WORLD_NETD,
	    WORLD_NETD, WORLD_NETD);
	ck_assert_str_eq(status(pid, "Uid"), want);
	ck_assert_str_eq(status(pid, "Gid"), want);
	ck_assert_str_eq(status(pid, "Groups"), "");
	ck_assert_str_eq(status(pid, "NoNewPrivs"), "1");
#ifndef __SANITIZE_ADDRESS__
	ck_assert_str_eq(status(pid, "Seccomp"), "2");
#endif
	ck_assert_str_eq(status(pid, "CapInh"), "0000000000000000");
	ck_assert_str_eq(status(pid, "CapAmb"), "0000000000000000");
	snprintf(want, sizeof(want), "%016jx", (uintmax_t)caps);
	ck_assert_str_eq(status(pid, "CapPrm"), want);
	ck_assert_str_eq(status(pid, "CapEff"), want);
	ck_assert_str_eq(status(pid, "CapBnd"), want);
	/* they count in U1 only, which is nobody's ancestor but its own */
	ck_assert_int_eq(fstat(w.u1, &st), 0);
	ck_assert_uint_eq(ns_of(pid, "user"), st.st_ino);
	ck_assert_uint_ne(ns_of(pid, "user"), ns_of(getpid(), "user"));
	ck_assert_uint_ne(ns_of(pid, "net"), ns_of(getpid(), "net"));
	ck_assert_uint_ne(ns_of(pid, "mnt"), ns_of(getpid(), "mnt"));
	/* an empty root, the only mount */
	ck_assert_int_eq(entries(pid, "root"), 0);
	ck_assert_int_eq(lines(pid, "mountinfo"), 1);
	ck_assert_int_eq(entries(pid, "cwd"), 0);
}

START_TEST(netd_fenced)
{
	fenced(w.pid, 1 << 12);				/* NET_ADMIN */
}
END_TEST

START_TEST(maker_fenced)
{
	/* SETGID, SETUID, NET_BIND_SERVICE, NET_ADMIN, SYS_PTRACE, SYS_ADMIN */
	fenced(world_maker(&w), 1 << 6 | 1 << 7 | 1 << 10 | 1 << 12 |
	    1 << 19 | 1 << 21);
	ck_assert_uint_ne(ns_of(world_maker(&w), "pid"),
	    ns_of(getpid(), "pid"));
}
END_TEST

/* By which nothing can be changed: it has its trigger, and takes no other. */
static void
pressure_fd(pid_t pid, int at)
{
	int	fd, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	ck_assert_int_ne(pidfd, -1);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, at, 0);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(write(fd, "some 1 2000000", 15), -1);
	ck_assert_int_eq(errno, EBUSY);
	close(fd);
	close(pidfd);
}

/* 0 to 2, and what the comments name; no file or directory of the host. */
static void
descriptors(pid_t pid, int most)
{
	char		path[64], to[256];
	struct dirent	*e;
	ssize_t		n;
	DIR		*d;
	int		fd;

	ck_assert_int_le(entries(pid, "fd"), most);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	ck_assert_ptr_ne(d = opendir(path), NULL);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		n = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);
		ck_assert_int_gt(n, 0);
		to[n] = '\0';
		fd = atoi(e->d_name);
		if (fd <= 2 || strncmp(to, "socket:", 7) == 0 ||
		    strncmp(to, "net:", 4) == 0 ||
		    strncmp(to, "pipe:", 5) == 0 ||	/* libevent's own */
		    strncmp(to, "anon_inode:", 11) == 0)
			continue;
		/* a trigger, and in a mount that has nothing else */
		if (pid == w.pid && strcmp(to, PRESSURE) == 0) {
			pressure_fd(pid, fd);
			continue;
		}
		/* the maker's detached mounts */
		ck_assert_msg(strcmp(to, "/") == 0 && (fd == 4 || fd == 5) &&
		    pid != w.pid, "%d -> %s", fd, to);
	}
	closedir(d);
}

START_TEST(open_descriptors)
{
	descriptors(w.pid, 3 + 10 + 2 * 6);
	/* a netns may be in the making */
	descriptors(world_maker(&w), 3 + 4 + 5);
}
END_TEST

/* ---- a call in its place ----------------------------------------------- */

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
/* Stops pid as it sleeps in a call, which it does unless it just woke up. */
static void
stop_in_call(pid_t pid, struct user_regs_struct *ret)
{
	int	i, st;

	for (i = 0; i < 5000; i++) {
		ck_assert_int_eq(ptrace(PTRACE_ATTACH, pid, 0, 0), 0);
		ck_assert_int_eq(waitpid(pid, &st, __WALL), pid);
		ck_assert(WIFSTOPPED(st));
		ck_assert_int_eq(ptrace(PTRACE_GETREGS, pid, 0, ret), 0);
		if ((long)ret->orig_rax >= 0)
			return;
		ck_assert_int_eq(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
		(void)poll(NULL, 0, 1);
	}
	ck_abort_msg("%d is never in a call", (int)pid);
}

/*
 * Makes it go through the same instruction with other registers.  The result
 * of the call, or -1000 when it was killed.
 */
static long
call_as(pid_t pid, long nr, long a, long b, long c)
{
	struct user_regs_struct	old, r;
	int			i, st;

	stop_in_call(pid, &old);
	r = old;
	r.rip -= 2;			/* the syscall instruction */
	r.rax = (unsigned long long)nr;
	r.orig_rax = (unsigned long long)-1;	/* no call to restart */
	r.rdi = (unsigned long long)a;
	r.rsi = (unsigned long long)b;
	r.rdx = (unsigned long long)c;
	r.r10 = r.r8 = r.r9 = 0;
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, pid, 0, &r), 0);
	for (i = 0; i < 2; i++) {	/* in, out */
		ck_assert_int_eq(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
		ck_assert_int_eq(waitpid(pid, &st, __WALL), pid);
		ck_assert(WIFSTOPPED(st) && WSTOPSIG(st) == SIGTRAP);
	}
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
	if ((long)r.rax == nr) {
		/* the call did not take place: a signal waits at the door */
		ck_assert_int_eq(ptrace(PTRACE_CONT, pid, 0, 0), 0);
		ck_assert_int_eq(waitpid(pid, &st, __WALL), pid);
		ck_assert(WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS);
		return -1000;
	}
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, pid, 0, &old), 0);
	ck_assert_int_eq(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	return (long)r.rax;
}

/* As the maker opens the relay's. */
#define AS_OURS		(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

static const struct { const char *name; long nr, a, b, c; } forbidden[] = {
	{ "execve", SYS_execve, 0, 0, 0 },
	{ "execveat", SYS_execveat, -1, 0, 0 },
	{ "socket inet", SYS_socket, AF_INET, SOCK_STREAM, 0 },
	{ "socket inet raw", SYS_socket, AF_INET, SOCK_RAW, 1 },
	{ "socket inet6", SYS_socket, AF_INET6, SOCK_STREAM, 0 },
	{ "socket inet6 as proxyd's", SYS_socket, AF_INET6, AS_OURS, 0 },
	{ "socket unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0 },
	{ "socket packet", SYS_socket, AF_PACKET, SOCK_RAW, 0 },
	{ "connect", SYS_connect, 3, 0, 0 },
	{ "bind", SYS_bind, 3, 0, 0 },
	{ "bind inet6", SYS_bind, 3, 0, sizeof(struct sockaddr_in6) },
	{ "listen", SYS_listen, 3, 0, 0 },
	{ "accept", SYS_accept, 3, 0, 0 },
	{ "accept4", SYS_accept4, 3, 0, 0 },
	{ "setsockopt reuseport", SYS_setsockopt, 3, SOL_SOCKET,
	    SO_REUSEPORT },
	{ "setsockopt tcp", SYS_setsockopt, 3, IPPROTO_TCP, SO_REUSEADDR },
	{ "ptrace", SYS_ptrace, PTRACE_ATTACH, 1, 0 },
	{ "process_vm_readv", SYS_process_vm_readv, 1, 0, 0 },
	{ "mount", SYS_mount, 0, 0, 0 },
	{ "unshare", SYS_unshare, CLONE_NEWUSER, 0, 0 },
	{ "clone", SYS_clone, SIGCHLD, 0, 0 },
	{ "fork", SYS_fork, 0, 0, 0 },
	{ "setns any", SYS_setns, 6, 0, 0 },
	{ "setns user", SYS_setns, 6, CLONE_NEWUSER, 0 },
	{ "chroot", SYS_chroot, 0, 0, 0 },
	{ "bpf", SYS_bpf, 0, 0, 0 },
	{ "mmap exec", SYS_mmap, 0, 4096, 7 },
	{ "mprotect exec", SYS_mprotect, 0, 4096, 5 },
	{ "kill netd's group", SYS_kill, 0, SIGTERM, 0 },
	{ "tgkill", SYS_tgkill, 1, 1, 0 },
	{ "prctl", SYS_prctl, 4, 1, 0 },
	{ "init_module", SYS_init_module, 0, 0, 0 },
	{ "ioctl TIOCSTI", SYS_ioctl, 2, 0x5412, 0 },
	{ "setresuid high", SYS_setresuid, -1, 70000, -1 },
	/* all that the maker may do of it, and netd may not */
	{ "socket of TCP", SYS_socket, AF_INET, AS_OURS, 0 },
	{ "socket of UDP", SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0 },
	{ "bind it", SYS_bind, -1, 0, sizeof(struct sockaddr_in) },
	{ "listen on it", SYS_listen, -1, 512, 0 },
	{ "reuse its port", SYS_setsockopt, -1, SOL_SOCKET, SO_REUSEADDR },
	{ "make it transparent", SYS_setsockopt, -1, SOL_IP, IP_TRANSPARENT },
};
#define NFORBIDDEN	((int)(sizeof(forbidden) / sizeof(forbidden[0])))
#define NMAKERS		6
#define NMAKER		(NFORBIDDEN - NMAKERS)

/* The control: an allowed call made the same way does what it says. */
START_TEST(allowed_calls)
{
	pid_t	maker = world_maker(&w);
	long	r;
	int	i;

	ck_assert_int_eq(call_as(w.pid, SYS_getpid, 0, 0, 0), w.pid);
	ck_assert_int_eq(call_as(maker, SYS_getpid, 0, 0, 0), 1);
	/* sockets are opened; the rest is done to none */
	for (i = NMAKER; i < NFORBIDDEN; i++) {
		r = call_as(maker, forbidden[i].nr, forbidden[i].a,
		    forbidden[i].b, forbidden[i].c);
		ck_assert_msg(forbidden[i].nr == SYS_socket ? r >= 0 :
		    r == -EBADF, "%s: %ld", forbidden[i].name, r);
	}
	world_open(&w, world_net(&w, "01K8ZZZZZZZZZZZZZZZZZZZZZ2", NULL),
	    NULL);
}
END_TEST

START_TEST(netd_calls)
{
	long	r = call_as(w.pid, forbidden[_i].nr, forbidden[_i].a,
		    forbidden[_i].b, forbidden[_i].c);

	ck_assert_msg(r == -1000, "%s: %ld", forbidden[_i].name, r);
	w.pid = 0;			/* reaped */
	chan_close(&w.privd);
	chan_close(&w.apid);
}
END_TEST

START_TEST(maker_calls)
{
	int	st;
	pid_t	maker = world_maker(&w);
	long	r;

	r = call_as(maker, forbidden[_i].nr, forbidden[_i].a,
	    forbidden[_i].b, forbidden[_i].c);
	ck_assert_msg(r == -1000, "%s: %ld", forbidden[_i].name, r);
	/* and netd ends with it, to be started afresh */
	st = world_wait(&w);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

#endif

/* ---- all of U1 against the host ---------------------------------------- */

static int
lo_down(void)
{
	struct {
		struct nlmsghdr		h;
		struct ifinfomsg	ifi;
	} q = { { sizeof(q), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
	    { .ifi_index = 1, .ifi_change = IFF_UP } };
	struct {
		struct nlmsghdr		h;
		struct nlmsgerr		e;
		uint8_t			more[256];
	} r;
	int	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	if (send(fd, &q, sizeof(q), 0) == -1 || recv(fd, &r, sizeof(r), 0) <
	    (ssize_t)(sizeof(r.h) + sizeof(r.e)))
		return errno;
	return -r.e.error;
}

#define DENIED(x, no) do {						\
	errno = 0;							\
	if ((x) != -1 || (errno != EPERM && errno != EACCES)) {		\
		fprintf(stderr, "%s: %s\n", #x, strerror(errno));	\
		_exit(no);						\
	}								\
} while (0)

/* Root of U1 with every capability over it: more than netd ever has. */
static int
against_host(void *arg)
{
	struct timeval	tv = { 0, 0 };
	int		fd, host_net = *(int *)arg;

	DENIED(open("/etc/shadow", O_RDONLY), 1);
	DENIED(open("/proc/1/mem", O_RDONLY), 2);
	DENIED(open("/proc/1/ns/net", O_RDONLY), 3);
	DENIED(kill(1, 0), 4);
	DENIED(mount("none", "/tmp", "tmpfs", 0, NULL), 5);
	DENIED(umount2("/proc", MNT_DETACH), 6);
	DENIED(sethostname("x", 1), 7);
	DENIED(settimeofday(&tv, NULL), 8);
	DENIED(mknod("/tmp/netd-fence", S_IFBLK | 0600, makedev(254, 0)), 9);
	DENIED(setns(host_net, CLONE_NEWNET), 11);
	DENIED(unshare(CLONE_NEWPID) == -1 ? -1 :
	    open("/dev/kmsg", O_WRONLY), 12);
	DENIED(open("/proc/sys/kernel/hostname", O_WRONLY), 13);
	DENIED(open("/proc/sys/vm/drop_caches", O_WRONLY), 14);
	DENIED(setpriority(0, 1, -1), 15);
	DENIED(chown("/tmp", 0, 0), 16);
	DENIED(socket(AF_PACKET, SOCK_RAW, 0), 17);
	fd = lo_down();
	return fd == EPERM ? 0 : 18;
}

static int
against_host_mapped(void *arg)
{
	/* uids beyond U1 do not exist in it */
	errno = 0;
	if (setuid(65536) != -1 || errno != EINVAL)
		return 19;
	return against_host(arg);
}

START_TEST(powerless_on_the_host)
{
	int	host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(world_box_result(world_insider(&w, host,
	    against_host_mapped, &host)), 0);
	close(host);
}
END_TEST

/* ---- the host's own netlink -------------------------------------------- */

/* errno of a change that only names what is not there: who may gets ENODEV. */
static int
addr_add(int fd)
{
	struct {
		struct nlmsghdr		h;
		struct ifaddrmsg	ifa;
		struct nlattr		a;
		uint8_t			addr[4];
	} q = { { sizeof(q), RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
	    { AF_INET, 32, 0, 0, 0x7fffffff }, { 8, IFA_LOCAL },
	    { 192, 0, 2, 1 } };
	struct {
		struct nlmsghdr		h;
		struct nlmsgerr		e;
		uint8_t			more[256];
	} r;
	struct sockaddr_nl	to = { .nl_family = AF_NETLINK };

	if (sendto(fd, &q, sizeof(q), 0, (struct sockaddr *)&to,
	    sizeof(to)) == -1 || recv(fd, &r, sizeof(r), 0) <
	    (ssize_t)(sizeof(r.h) + sizeof(r.e)))
		return errno;
	return -r.e.error;
}

/* And what netd does with it. */
static int
addr_list(int fd)
{
	struct {
		struct nlmsghdr		h;
		struct ifaddrmsg	ifa;
	} q = { { sizeof(q), RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 },
	    { .ifa_family = AF_UNSPEC } };
	union {
		struct nlmsghdr		h;
		uint8_t			b[32768];
	} r;

	if (send(fd, &q, sizeof(q), 0) == -1 ||
	    recv(fd, &r, sizeof(r), 0) < (ssize_t)sizeof(r.h))
		return errno;
	return r.h.nlmsg_type == NLMSG_ERROR ? EPROTO : 0;
}

static int
with_host_socket(void *arg)
{
	int	*fd = arg;

	return addr_add(*fd) == EPERM && addr_list(*fd) == 0 ? 0 : 1;
}

/*
 * netd holds sockets of the host's network namespace, opened before its
 * fence.  In the hands of root of U1, even one that real root has opened is
 * good for asking alone.
 */
START_TEST(host_sockets_only_ask)
{
	int	netns, fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	(void)world_net(&w, "01K8ZZZZZZZZZZZZZZZZZZZZZ3", &netns);
	ck_assert_int_eq(addr_add(fd), ENODEV);		/* the control */
	ck_assert_int_eq(world_box_result(world_insider(&w, netns,
	    with_host_socket, &fd)), 0);
	close(netns);
	close(fd);
}
END_TEST

static void
lo_addr(const char *what)
{
	char	cmd[128];

	snprintf(cmd, sizeof(cmd), "ip link set lo up && ip addr %s "
	    "203.0.113.77/32 dev lo", what);
	ck_assert_int_eq(system(cmd), 0);
}

static void
await_log(const char *text)
{
	struct timespec	tick = { 0, 5000000 };
	int		i;

	for (i = 0; !daemon_logged(w.log, text); i++) {
		ck_assert_msg(i < 400, "no \"%s\" in two seconds", text);
		(void)nanosleep(&tick, NULL);
	}
}

/* Behind its fence it hears of the host's addresses, in a host of our own. */
static void
setup_host(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	world_make(&w);
	world_start(&w);
}

START_TEST(host_followed)
{
	if (!world_netfilter())
		return;		/* no ruleset to put them into */
	await_log("the host's addresses: 0 and 0 intervals");
	lo_addr("add");
	await_log("the host's addresses: 1 and 2 intervals");
	lo_addr("del");
	lo_addr("add");
	world_open(&w, world_net(&w, ID1, NULL), NULL);
}
END_TEST

/* Their number takes libc other ways, which the fence has to allow. */
START_TEST(host_of_many)
{
	if (!world_netfilter())
		return;
	await_log("the host's addresses: 0 and 0 intervals");
	ck_assert_int_eq(system("ip link set lo up && for i in $(seq 200); do "
	    "echo addr add 20.0.$i.1/32 dev lo; done | ip -batch -"), 0);
	await_log("the host's addresses: 200 and 400 intervals");
	world_open(&w, world_net(&w, ID1, NULL), NULL);
}
END_TEST

/* The control: real root may do these. */
START_TEST(root_may)
{
	int	fd;

	ck_assert_int_ne(fd = open("/etc/shadow", O_RDONLY), -1);
	close(fd);
	ck_assert_int_eq(kill(1, 0), 0);
	ck_assert_int_ne(fd = socket(AF_PACKET, SOCK_RAW, 0), -1);
	close(fd);
}
END_TEST

/* Nor may another process of netd's host uid step into U1. */
START_TEST(same_uid_stays_out)
{
	int	st;
	pid_t	pid = fork();

	if (pid == 0) {
		if (setresuid(WORLD_NETD, WORLD_NETD, WORLD_NETD) == -1)
			_exit(1);
		_exit(setns(w.u1, CLONE_NEWUSER) == -1 && errno == EPERM ?
		    0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("netd_fence");
	TCase	*t = tcase_create("fence");
	SRunner	*r;
	int	 failed;

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, netd_fenced);
	tcase_add_test(t, maker_fenced);
	tcase_add_test(t, open_descriptors);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
	if (access("/proc/exitcode", F_OK) == 0) {
		/* User Mode Linux emulates ptrace, in its own way */
		printf("skipped: calls in place of netd's\n");
	} else {
		tcase_add_test(t, allowed_calls);
		tcase_add_loop_test(t, netd_calls, 0, NFORBIDDEN);
		tcase_add_loop_test(t, maker_calls, 0, NMAKER);
	}
#endif
	tcase_add_test(t, powerless_on_the_host);
	tcase_add_test(t, root_may);
	tcase_add_test(t, same_uid_stays_out);
	tcase_add_test(t, host_sockets_only_ask);
	suite_add_tcase(s, t);
	t = tcase_create("host");
	tcase_add_checked_fixture(t, setup_host, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, host_followed);
	tcase_add_test(t, host_of_many);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
