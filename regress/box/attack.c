/*
 * attack: what a hostile program does in a box, by hand.
 *
 *	attack calls		system calls that a box is refused
 *	attack control		the same where nothing refuses them: what works
 *				there is worth refusing
 *	attack proc		what /proc and /sys show and let be written
 *	attack pid1		the supervisor, by every call that takes a pid
 *	attack fds		descriptors of a fresh process
 *	attack net		interfaces, routes and ports of the box
 *	attack abstract NAME	connects to an abstract socket
 *	attack watch SECONDS	tells of accesses by others to what is shared
 *	attack take FILE	inotify, timers, signals, queues until refused;
 *				then makes FILE and waits
 *	attack give		one of each
 *	attack freeze SECONDS	stops every process as it appears
 *	attack orphans N	double forks
 *	attack tree DIR		names, depths and modes to choke on
 *
 * Prints `ok - ' and `not ok - ' lines, as regress/box/lib.sh does.  Static:
 * it is put into a box of any root file system.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define J	(1ULL << 32)	/* junk above what the kernel reads */
#define S(...)	(syscall(__VA_ARGS__) == -1 ? errno : 0)
/* by number, so that an old libc is no excuse */
#define NR_io_uring_setup	425
#define NR_open_tree		428
#define NR_move_mount		429
#define NR_fsopen		430
#define NR_fsconfig		431
#define NR_fsmount		432
#define NR_fspick		433
#define NR_clone3		435
#define NR_pidfd_open		434
#define NR_pidfd_getfd		438
#define NR_process_madvise	440
#define NR_mount_setattr	442
#define NR_quotactl_fd		443
#define NR_process_mrelease	448
#define NR_mempolicy_home	450
#define NR_statmount		457
#define NR_listmount		458
#define NR_lsm_get		459
#define NR_lsm_set		460
#define NR_lsm_list		461
#define NR_open_tree_attr	467

static int	failed;

static void __attribute__((format(printf, 2, 3)))
check(int good, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	printf(good ? "ok - " : "not ok - ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
	failed |= !good;
}

/* ---- calls ------------------------------------------------------------- */

static char	mem[65536] __attribute__((aligned(4096)));
static pid_t	self;

static int
do_clone(unsigned long flags)
{
	long	pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid == -1)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int
c_clone3(void)
{
	struct { uint64_t a[11]; } a = { { 0 } };
	long	pid;

	a.a[0] = CLONE_NEWUSER;
	a.a[4] = SIGCHLD;
	if ((pid = syscall(NR_clone3, &a, 64)) == 0)
		_exit(0);
	return pid == -1 ? errno : 0;
}

static int
do_setns(const char *which, int pid)
{
	char	path[64];
	int	fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, which);
	if ((fd = open(path, O_RDONLY)) == -1)
		return errno;
	return S(SYS_setns, fd, 0);
}

static int
c_setns_pidfd(void)
{
	int	fd = (int)syscall(NR_pidfd_open, getppid(), 0);

	return fd == -1 ? errno : S(SYS_setns, fd, CLONE_NEWUTS);
}

static int
c_getfd(void)
{
	int	fd = (int)syscall(NR_pidfd_open, getppid(), 0);

	return fd == -1 ? errno : S(NR_pidfd_getfd, fd, 1, 0);
}

static int
c_madvise(void)
{
	struct iovec	v = { mem, 4096 };
	int		fd = (int)syscall(NR_pidfd_open, getppid(), 0);

	return fd == -1 ? errno :
	    S(NR_process_madvise, fd, &v, 1, MADV_COLD, 0);
}

static int
c_vm(int nr)
{
	struct iovec	l = { mem, 16 }, r = { mem, 16 };

	return S(nr, getppid(), &l, 1, &r, 1, 0);
}

static int
c_perf(void)
{
	uint32_t	a[32] = { 1, 128 };	/* software, cpu clock */

	return S(SYS_perf_event_open, a, 0, -1, -1, 0);
}

static int
c_bpf(int cmd)
{
	uint32_t	a[32] = { 2, 4, 4, 1 };	/* an array map */

	return S(SYS_bpf, cmd, a, sizeof(a));
}

static int
c_handle(void)
{
	struct { struct file_handle h; char b[128]; } h = { 0 };
	int	id;

	h.h.handle_bytes = 128;
	return S(SYS_name_to_handle_at, AT_FDCWD, "/", &h, &id, 0);
}

static int
c_shocker(void)
{
	struct { struct file_handle h; char b[8]; } h = { { 0 } };
	int	fd = open("/", O_RDONLY), r;

	h.h.handle_bytes = 8;
	h.h.handle_type = 1;
	memcpy(h.b, (char[]){ 2, 0, 0, 0, 0, 0, 0, 0 }, 8);
	r = S(SYS_open_by_handle_at, fd, &h, O_RDONLY);
	return r == ESTALE ? 0 : r;	/* it looked: that is enough */
}

static int
c_socket(uint64_t family, uint64_t type, uint64_t proto)
{
	return S(SYS_socket, family, type, proto);
}

static int
c_node(mode_t kind, unsigned int maj, unsigned int min)
{
	char	path[64];
	int	r;

	snprintf(path, sizeof(path), "/tmp/node.%d", (int)getpid());
	r = S(SYS_mknodat, AT_FDCWD, path, kind | 0666, makedev(maj, min));
	unlink(path);
	return r;
}

static int
c_tty(uint64_t req)
{
	int	p = posix_openpt(O_RDWR | O_NOCTTY), s, r;
	char	*name;

	if (p == -1 || grantpt(p) == -1 || unlockpt(p) == -1 ||
	    (name = ptsname(p)) == NULL)
		return 200;
	setsid();
	if ((s = open(name, O_RDWR)) == -1)
		return 201;
	r = S(SYS_ioctl, s, req, "x");
	return r;
}

static int
c_exec_ldt(void)
{
#ifdef SYS_modify_ldt
	return S(SYS_modify_ldt, 0, mem, 16);
#else
	return EPERM;
#endif
}

static int
c_mount(void)
{
	return S(SYS_mount, "x", "/tmp", "tmpfs", 0, "size=4k");
}

static int
c_caps(void)
{
	uint32_t	h[2] = { 0x20080522, 0 }, d[6] = { 0 };

	d[0] = d[1] = 1u << 21;		/* SYS_ADMIN */
	return S(SYS_capset, h, d);
}

static int
c_hostname(void)
{
	return S(SYS_sethostname, "attacked", 8);
}

#define E(n, t, x, h, ...) static int n(void) { return __VA_ARGS__; }
#define CALLS								\
 E(k01, "B01 unshare NEWUSER", EPERM, 1, S(SYS_unshare, CLONE_NEWUSER))	\
 E(k02, "B01 unshare NEWNS", EPERM, 1, S(SYS_unshare, CLONE_NEWNS))	\
 E(k03, "B01 unshare NEWPID", EPERM, 1, S(SYS_unshare, CLONE_NEWPID))	\
 E(k04, "B01 unshare NEWNET", EPERM, 1, S(SYS_unshare, CLONE_NEWNET))	\
 E(k05, "B01 unshare NEWIPC", EPERM, 1, S(SYS_unshare, CLONE_NEWIPC))	\
 E(k06, "B01 unshare NEWUTS", EPERM, 1, S(SYS_unshare, CLONE_NEWUTS))	\
 E(k07, "B01 unshare NEWCGROUP", EPERM, 1, S(SYS_unshare, CLONE_NEWCGROUP)) \
 E(k08, "B01 unshare NEWTIME", EPERM, 1, S(SYS_unshare, 0x80))		\
 E(k09, "B02 clone NEWUSER", EPERM, 1, do_clone(CLONE_NEWUSER))		\
 E(k10, "B02 clone NEWUSER, junk above", EPERM, 1, do_clone(J | CLONE_NEWUSER)) \
 E(k11, "B02 clone NEWNS", EPERM, 1, do_clone(CLONE_NEWNS))		\
 E(k12, "B02 clone NEWPID and NEWNET", EPERM, 1, do_clone(CLONE_NEWPID | CLONE_NEWNET)) \
 E(k13, "B02 clone3", ENOSYS, 1, c_clone3())				\
 E(k14, "B03 setns net of pid 1", EPERM, 1, do_setns("net", getppid()))	\
 E(k15, "B03 setns mnt", EPERM, 1, do_setns("mnt", getppid()))		\
 E(k16, "B03 setns on a pidfd", EPERM, 1, c_setns_pidfd())		\
 E(k17, "B04 mount", EPERM, 1, c_mount())				\
 E(k18, "B04 remount of /proc/sys", EPERM, 0, S(SYS_mount, 0, "/proc/sys", 0, MS_REMOUNT | MS_BIND, 0)) \
 E(k19, "B04 bind", EPERM, 1, S(SYS_mount, "/", "/tmp", 0, MS_BIND, 0))	\
 E(k20, "B04 umount2 of /proc/kcore", EPERM, 0, S(SYS_umount2, "/proc/kcore", MNT_DETACH)) \
 E(k21, "B04 pivot_root", EPERM, 0, S(SYS_pivot_root, ".", "."))	\
 E(k22, "B04 chroot", EPERM, 1, S(SYS_chroot, "/tmp"))			\
 E(k23, "B04 fsopen", ENOSYS, 1, S(NR_fsopen, "tmpfs", 0))		\
 E(k24, "B04 open_tree", ENOSYS, 1, S(NR_open_tree, AT_FDCWD, "/", 1))	\
 E(k25, "B04 fspick", ENOSYS, 0, S(NR_fspick, AT_FDCWD, "/", 0))	\
 E(k26, "B04 fsconfig", ENOSYS, 0, S(NR_fsconfig, 0, 0, 0, 0, 0))	\
 E(k27, "B04 fsmount", ENOSYS, 0, S(NR_fsmount, 0, 0, 0))		\
 E(k28, "B04 move_mount", ENOSYS, 0, S(NR_move_mount, AT_FDCWD, "/x", AT_FDCWD, "/y", 0)) \
 E(k29, "B04 mount_setattr", ENOSYS, 0, S(NR_mount_setattr, AT_FDCWD, "/", 0, 0, 0)) \
 E(k30, "B04 open_tree_attr", ENOSYS, 0, S(NR_open_tree_attr, AT_FDCWD, "/", 0, 0, 0)) \
 E(k31, "B04 statmount", ENOSYS, 0, S(NR_statmount, 0, 0, 0, 0))	\
 E(k32, "B04 listmount", ENOSYS, 0, S(NR_listmount, 0, 0, 0, 0))	\
 E(k33, "B06 keyctl", EPERM, 1, S(SYS_keyctl, 0, -3, 1))		\
 E(k34, "B06 add_key", EPERM, 1, S(SYS_add_key, "user", "workbox-attack", "x", 1, -2)) \
 E(k35, "B06 request_key", EPERM, 0, S(SYS_request_key, "user", "workbox-attack", 0, 0)) \
 E(k36, "B07 bpf MAP_CREATE", EPERM, 1, c_bpf(0))			\
 E(k37, "B07 bpf PROG_LOAD", EPERM, 0, c_bpf(5))			\
 E(k38, "B07 bpf OBJ_GET_NEXT_ID", EPERM, 0, c_bpf(11))			\
 E(k39, "B07 perf_event_open", EPERM, 1, c_perf())			\
 E(k40, "B08 userfaultfd", EPERM, 1, S(SYS_userfaultfd, 0))		\
 E(k41, "B09 io_uring_setup", ENOSYS, 1, S(NR_io_uring_setup, 4, mem))	\
 E(k42, "B09 io_uring_enter", ENOSYS, 0, S(426, 0, 0, 0, 0, 0, 0))	\
 E(k43, "B09 io_uring_register", ENOSYS, 0, S(427, 0, 0, 0, 0))		\
 E(k44, "B10 process_vm_readv", EPERM, 1, c_vm(SYS_process_vm_readv))	\
 E(k45, "B10 process_vm_writev", EPERM, 1, c_vm(SYS_process_vm_writev))	\
 E(k46, "B11 pidfd_getfd", EPERM, 1, c_getfd())				\
 E(k47, "B11 kcmp", EPERM, 1, S(SYS_kcmp, self, getppid(), 0, 0, 0))	\
 E(k48, "B11 process_madvise", EPERM, 1, c_madvise())			\
 E(k49, "B11 process_mrelease", EPERM, 0, S(NR_process_mrelease, 0, 0))	\
 E(k50, "B14 TIOCSTI", EPERM, 0, c_tty(TIOCSTI))			\
 E(k51, "B14 TIOCSTI, junk above", EPERM, 0, c_tty(J | TIOCSTI))	\
 E(k52, "B14 TIOCLINUX", EPERM, 0, c_tty(TIOCLINUX))			\
 E(k53, "B14 TIOCSETD", EPERM, 0, c_tty(TIOCSETD))			\
 E(k54, "B15 AF_ALG", EAFNOSUPPORT, 0, c_socket(38, 5, 0))		\
 E(k55, "B15 AF_VSOCK", EAFNOSUPPORT, 0, c_socket(40, 1, 0))		\
 E(k56, "B15 AF_PACKET", EAFNOSUPPORT, 1, c_socket(17, 3, 0x0300))	\
 E(k57, "B15 AF_PACKET, junk above", EAFNOSUPPORT, 1, c_socket(J | 17, 3, 0x0300)) \
 E(k58, "B15 AF_XDP", EAFNOSUPPORT, 0, c_socket(44, 3, 0))		\
 E(k59, "B15 AF_KEY", EAFNOSUPPORT, 0, c_socket(15, 3, 2))		\
 E(k60, "B15 AF_BLUETOOTH", EAFNOSUPPORT, 0, c_socket(31, 3, 1))	\
 E(k61, "B15 AF_CAN", EAFNOSUPPORT, 0, c_socket(29, 3, 1))		\
 E(k62, "B15 NETLINK_NETFILTER", EAFNOSUPPORT, 0, c_socket(16, 3, 12))	\
 E(k63, "B15 NETLINK_AUDIT", EAFNOSUPPORT, 0, c_socket(16, 3, 9))	\
 E(k64, "B15 NETLINK_NETFILTER, junk above", EAFNOSUPPORT, 0, c_socket(16, 3, J | 12)) \
 E(k65, "B15 raw IPv4", EPERM, 1, c_socket(2, 3, 1))			\
 E(k66, "B15 raw IPv6", EPERM, 1, c_socket(10, 3, 58))			\
 E(k67, "B15 SCTP", EPROTONOSUPPORT, 0, c_socket(2, 1, 132))		\
 E(k68, "B15 MPTCP", EPROTONOSUPPORT, 1, c_socket(2, 1, 262))		\
 E(k69, "B15 DCCP", EPROTONOSUPPORT, 0, c_socket(2, 6, 33))		\
 E(k70, "B16 personality ADDR_NO_RANDOMIZE", ENOSYS, 1, S(SYS_personality, 0x40000)) \
 E(k71, "B16 personality READ_IMPLIES_EXEC", ENOSYS, 1, S(SYS_personality, 0x400000)) \
 E(k72, "B16 modify_ldt", EPERM, 1, c_exec_ldt())			\
 E(k73, "B16 kexec_load", EPERM, 0, S(SYS_kexec_load, 0, 17, 0, 0))	\
 E(k74, "B16 init_module", EPERM, 0, S(SYS_init_module, mem, 16, ""))	\
 E(k75, "B16 finit_module", EPERM, 0, S(SYS_finit_module, -1, "", 0))	\
 E(k76, "B16 delete_module", EPERM, 0, S(SYS_delete_module, "workbox-none", 0)) \
 E(k77, "B16 reboot", EPERM, 0, S(SYS_reboot, 0xfee1dead, 672274793, 0, 0)) \
 E(k78, "B16 swapon", EPERM, 0, S(SYS_swapon, "/none", 0))		\
 E(k79, "B16 acct", EPERM, 0, S(SYS_acct, "/none"))			\
 E(k80, "B16 quotactl", EPERM, 0, S(SYS_quotactl, 0, 0, 0, 0))		\
 E(k81, "B16 quotactl_fd", EPERM, 0, S(NR_quotactl_fd, 0, 0, 0, 0))	\
 E(k82, "B16 settimeofday", EPERM, 0, S(SYS_settimeofday, 0, 0))	\
 E(k83, "B16 clock_settime", EPERM, 0, S(SYS_clock_settime, 99, 0))	\
 E(k84, "B16 adjtimex that sets", EPERM, 0, S(SYS_adjtimex, (memset(mem, 1, 4), mem))) \
 E(k85, "B16 syslog", EPERM, 1, S(SYS_syslog, 10, 0, 0))		\
 E(k86, "B16 sethostname", EPERM, 1, c_hostname())			\
 E(k87, "B16 vhangup", EPERM, 0, S(SYS_vhangup))			\
 E(k88, "B16 lsm_get_self_attr", EPERM, 0, S(NR_lsm_get, 0, 0, 0, 0))	\
 E(k89, "B16 lsm_list_modules", EPERM, 0, S(NR_lsm_list, 0, 0, 0))	\
 E(k90, "B16 mbind", EPERM, 1, S(SYS_mbind, mem, 4096, 0, 0, 0, 0))	\
 E(k91, "B16 set_mempolicy", EPERM, 1, S(SYS_set_mempolicy, 0, 0, 0))	\
 E(k92, "B16 get_mempolicy", EPERM, 1, S(SYS_get_mempolicy, 0, 0, 0, 0, 0)) \
 E(k93, "B16 migrate_pages", EPERM, 0, S(SYS_migrate_pages, 0, 0, 0, 0)) \
 E(k94, "B16 move_pages", EPERM, 1, S(SYS_move_pages, 0, 0, 0, 0, 0, 0)) \
 E(k95, "B16 fanotify_init", EPERM, 1, S(SYS_fanotify_init, 0, 0))	\
 E(k96, "B17 name_to_handle_at", EPERM, 1, c_handle())			\
 E(k97, "B17 open_by_handle_at", EPERM, 1, c_shocker())			\
 E(k98, "B18 securebits", EPERM, 1, S(SYS_prctl, PR_SET_SECUREBITS, 1, 0, 0, 0)) \
 E(k99, "B18 capset of SYS_ADMIN", EPERM, 1, c_caps())			\
 E(l01, "B26 mknod of a disk", EPERM, 1, c_node(S_IFBLK, 8, 0))		\
 E(l02, "B26 mknod of memory", EPERM, 1, c_node(S_IFCHR, 1, 1))		\
 E(l03, "B26 mknod of null", EPERM, 1, c_node(S_IFCHR, 1, 3))		\
 E(l04, "B26 mknod of a whiteout", EPERM, 1, c_node(S_IFCHR, 0, 0))	\
 E(l05, "B41 SCHED_FIFO", EPERM, 1, S(SYS_sched_setscheduler, 0, 1, (int[]){ 1 })) \
 E(l06, "B41 nice -20", EACCES, 1, S(SYS_setpriority, PRIO_PROCESS, 0, -20)) \
 E(l07, "B40 mlock of more than the limit", ENOMEM, 0, S(SYS_mlock, mmap(0, 64 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 64 << 20)) \
 E(l08, "a call of the future", ENOSYS, 0, S(600))
CALLS
#undef E
#define E(n, t, x, h, ...) { t, x, h, n },
static const struct call {
	const char	*text;
	int		 want, control;
	int		(*fn)(void);
} calls[] = { CALLS };
#define NCALLS	(sizeof(calls) / sizeof(calls[0]))

/* In a process of its own: 0 when it was done, else its errno; 255: killed. */
static int
attempt(int (*fn)(void))
{
	int	status;
	pid_t	pid = fork();

	if (pid == 0) {
		alarm(5);
		self = getpid();
		_exit(fn());
	}
	if (pid == -1 || waitpid(pid, &status, 0) == -1)
		return 254;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void
all_calls(void)
{
	size_t	i;
	int	r;

	for (i = 0; i < NCALLS; i++) {
		r = attempt(calls[i].fn);
		check(r == calls[i].want, "%s: %s", calls[i].text,
		    r == 0 ? "it works" : r > 199 ? "no answer" : strerror(r));
	}
}

/* Where it runs must not be changed by it: namespaces of its own. */
static void
control(void)
{
	size_t	i;

	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		exit(77);
	for (i = 0; i < NCALLS; i++)
		if (calls[i].control && attempt(calls[i].fn) == 0)
			puts(calls[i].text);
}

/* ---- /proc and /sys ---------------------------------------------------- */

static ssize_t
slurp(const char *path)
{
	int	fd = open(path, O_RDONLY);
	ssize_t	n, all = 0;

	if (fd == -1)
		return -1;
	while ((n = read(fd, mem, sizeof(mem))) > 0)
		all += n;
	close(fd);
	return n == -1 && all == 0 ? -1 : all;
}

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

static int
line_of(const char *file, const char *key, char *ret, size_t size)
{
	FILE	*f = fopen(file, "r");
	char	 buf[1024];
	int	 found = 0;

	while (f != NULL && !found && fgets(buf, sizeof(buf), f) != NULL)
		if (strncmp(buf, key, strlen(key)) == 0) {
			buf[strcspn(buf, "\n")] = '\0';
			snprintf(ret, size, "%s", buf + strlen(key));
			found = 1;
		}
	if (f != NULL)
		fclose(f);
	return found;
}

static void
proc(void)
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

/* ---- pid 1 ------------------------------------------------------------- */

static void
task(int tid)
{
	struct rlimit	 cpu = { 1, 1 }, files = { 3, 3 };
	uint32_t	 attr[12] = { 48, 5 };	/* SCHED_IDLE */
	unsigned long	 mask = 1;
	int		 zero = 0, fd;

#define BARRED(what, ...) do {						\
	int	r_ = (int)(__VA_ARGS__);				\
	check(r_ == -1, "B52 " what " of task %d of pid 1: %s", tid,	\
	    r_ == -1 ? strerror(errno) : "it works");			\
} while (0)
	/* what would bite is tried last, and with limits that are met */
	BARRED("sched_setscheduler", syscall(SYS_sched_setscheduler, tid, 5,
	    &zero));
	BARRED("sched_setparam", syscall(SYS_sched_setparam, tid, &zero));
	BARRED("sched_setattr", syscall(SYS_sched_setattr, tid, attr, 0));
	BARRED("sched_setaffinity", syscall(SYS_sched_setaffinity, tid,
	    sizeof(mask), &mask));
	BARRED("sched_setscheduler, junk above,", syscall(
	    SYS_sched_setscheduler, J | (unsigned int)tid, 5, &zero));
	BARRED("setpriority", syscall(SYS_setpriority, PRIO_PROCESS, tid, 19));
	BARRED("ioprio_set", syscall(SYS_ioprio_set, 1, tid, 3 << 13));
	BARRED("ptrace SEIZE", syscall(SYS_ptrace, PTRACE_SEIZE, tid, 0, 0));
	BARRED("ptrace ATTACH", syscall(SYS_ptrace, PTRACE_ATTACH, tid, 0, 0));
	BARRED("core scheduling", syscall(SYS_prctl, 62, 2, tid, 0, 0));
	BARRED("get_robust_list", syscall(SYS_get_robust_list, tid, mem,
	    mem + 8));
	fd = -1;
	snprintf(mem, sizeof(mem), "/proc/1/task/%d/oom_score_adj", tid);
	BARRED("oom_score_adj", fd = open(mem, O_WRONLY));
	snprintf(mem, sizeof(mem), "/proc/%d/mem", tid);
	BARRED("mem", fd = open(mem, O_RDWR));
	snprintf(mem, sizeof(mem), "/proc/1/task/%d/comm", tid);
	BARRED("comm", fd = open(mem, O_WRONLY));

	BARRED("prlimit NOFILE", prlimit(tid, RLIMIT_NOFILE, &files, NULL));
	BARRED("prlimit CPU", prlimit(tid, RLIMIT_CPU, &cpu, NULL));
}

static int
c_traceme(void)
{
	int	status;
	pid_t	pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 1;
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? 0 : 2;
}

static void
pid1(void)
{
	struct dirent	*e;
	struct timespec	 ms = { 0, 20000000 };
	DIR		*d = opendir("/proc/1/task");
	int		 n = 0, sig;

	check(attempt(c_traceme) == 0, "B10 a session's own child is traced");
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.') {
			task((int)strtol(e->d_name, NULL, 10));
			n++;
		}
	check(n >= 1, "B52 pid 1 has %d tasks", n);
	check(syscall(SYS_setpriority, PRIO_USER, 0, 19) == -1,
	    "B52 setpriority of the user");
	check(syscall(SYS_setpriority, PRIO_PGRP, 1, 19) == -1,
	    "B52 setpriority of group 1");
	check(syscall(SYS_ioprio_set, 3, 0, 3 << 13) == -1,
	    "B52 ioprio_set of the user");
	check(syscall(SYS_ioprio_set, 2, 1, 3 << 13) == -1,
	    "B52 ioprio_set of group 1");
	check(setpgid(0, 1) == -1, "B52 joining group 1");
	for (sig = 1; sig <= 64; sig++)
		if (sig != SIGCHLD) {
			(void)kill(1, sig);
			(void)syscall(SYS_tgkill, 1, 2, sig);
			(void)syscall(SYS_tkill, 2, sig);
		}
	nanosleep(&ms, NULL);
	check(kill(1, 0) == 0, "B13 pid 1 outlives every signal");
}

/* ---- descriptors ------------------------------------------------------- */

static void
fds(void)
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

/* ---- network ----------------------------------------------------------- */

static int
rtnl(int type, const void *body, size_t len, const void *attr, size_t alen)
{
	struct { struct nlmsghdr h; char b[256]; } q = { { 0 } };
	struct nlmsgerr	*err;
	int		 fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	ssize_t		 n;

	q.h.nlmsg_type = (uint16_t)type;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	memcpy(q.b, body, len);
	memcpy(q.b + NLMSG_ALIGN(len), attr, alen);
	q.h.nlmsg_len = NLMSG_LENGTH(NLMSG_ALIGN(len) + alen);
	if (fd == -1 || send(fd, &q, q.h.nlmsg_len, 0) == -1)
		return errno;
	n = recv(fd, mem, sizeof(mem), 0);
	close(fd);
	err = NLMSG_DATA((struct nlmsghdr *)(void *)mem);
	return n < (ssize_t)NLMSG_LENGTH(sizeof(*err)) ? 255 : -err->error;
}

static int
dial(int family, const char *host, int port, int type)
{
	struct sockaddr_in	a4 = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6	a6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	int			fd = socket(family, type, 0), r;

	if (fd == -1)
		return errno;
	inet_pton(family, host, family == AF_INET ? (void *)&a4.sin_addr :
	    (void *)&a6.sin6_addr);
	r = family == AF_INET ? connect(fd, (void *)&a4, sizeof(a4)) :
	    connect(fd, (void *)&a6, sizeof(a6));
	r = r == -1 ? errno : type == SOCK_DGRAM && (send(fd, "x", 1, 0) ==
	    -1 || send(fd, "x", 1, 0) == -1) ? errno : 0;
	close(fd);
	return r;
}

static double
now(void)
{
	struct timespec	t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
net(int port)
{
	static const char *const hosts[] = { "127.0.0.1", "0.0.0.0", "::1",
	    "10.0.2.2", "198.19.255.2", "169.254.169.254", "10.0.0.1",
	    "192.168.0.1", "172.17.0.1", "100.64.0.1", "224.0.0.1",
	    "255.255.255.255", "1.1.1.1", "fd00::2", "fd00:ec2::254",
	    "fe80::1", "64:ff9b::a9fe:a9fe", "::ffff:127.0.0.1",
	    "::ffff:169.254.169.254", "2002:a9fe:a9fe::" };
	struct ifinfomsg	ifi = { .ifi_index = 1,
				    .ifi_change = 1 /* IFF_UP */ };
	struct rtmsg		rt = { .rtm_family = AF_INET,
				    .rtm_table = RT_TABLE_MAIN,
				    .rtm_protocol = RTPROT_BOOT,
				    .rtm_scope = RT_SCOPE_LINK,
				    .rtm_type = RTN_UNICAST };
	struct { struct rtattr a; uint32_t v; } oif = { { 8, RTA_OIF }, 1 };
	struct { struct rtattr a; char v[12]; } info = { { 16, 18 },
	    { 9, 0, 1, 0, 'd', 'u', 'm', 'm', 'y' } };
	struct sockaddr_in	any = { .sin_family = AF_INET };
	size_t			i;
	double			t = now();
	int			r, p, fd, one = 1;

	r = rtnl(RTM_NEWLINK, &ifi, sizeof(ifi), "", 0);
	check(r == EPERM,
	    "N10 ip link set lo down: %s", strerror(r));
	r = rtnl(RTM_NEWROUTE, &rt, sizeof(rt), &oif, 8);
	check(r == EPERM,
	    "N10 ip route add: %s", strerror(r));
	ifi.ifi_index = 0;
	r = rtnl(RTM_NEWLINK, &ifi, sizeof(ifi), &info, 16);
	check(r == EPERM,
	    "N10 ip link add: %s", strerror(r));
	r = c_socket(AF_NETLINK, SOCK_RAW, 12);
	check(r == EAFNOSUPPORT,
	    "N10 nft: %s", strerror(r));
	for (i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		p = strchr(hosts[i], ':') != NULL ? AF_INET6 : AF_INET;
		r = dial(p, hosts[i], port, SOCK_STREAM);
		check(r != 0,
		    "N01 TCP %s port %d: %s", hosts[i], port, strerror(r));
		r = dial(p, hosts[i], 53, SOCK_DGRAM);
		check(r != 0,
		    "N17 UDP %s port 53: %s", hosts[i], strerror(r));
	}
	t = now() - t;
	check(t < 3, "N17 all of them at once: %.1f s", t);
	for (p = 1; p < 8; p++) {
		any.sin_port = htons((uint16_t)p);
		fd = socket(AF_INET, p & 1 ? SOCK_STREAM : SOCK_DGRAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
		check(bind(fd, (void *)&any, sizeof(any)) == -1,
		    "N16 port %d is not bound: %s", p, strerror(errno));
		close(fd);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	check(setsockopt(fd, SOL_IP, 19 /* IP_TRANSPARENT */, &one,
	    sizeof(one)) == -1, "N16 IP_TRANSPARENT: %s", strerror(errno));
	check(setsockopt(fd, SOL_SOCKET, SO_MARK, &one, sizeof(one)) == -1,
	    "N16 SO_MARK: %s", strerror(errno));
	check(slurp("/proc/net/nf_conntrack") == -1,
	    "N14 no connection is tracked");
}

static void
abstract(const char *name)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strncpy(un.sun_path + 1, name, sizeof(un.sun_path) - 2);
	r = connect(fd, (void *)&un, (socklen_t)(sizeof(sa_family_t) + 1 +
	    strlen(name)));
	check(r == -1, "B38 the host's abstract socket is not there: %s",
	    r == -1 ? strerror(errno) : "it is");
}

/* ---- what boxes have in common ----------------------------------------- */

static void
watch(int seconds)
{
	static const char *const shared[] = { "/opt/workbox",
	    "/opt/workbox/wb", "/dev/null", "/dev/urandom", "/bin/busybox",
	    "/bin/sh", "/etc/passwd", "/proc/sys/kernel/hostname" };
	char	 ev[4096];
	double	 end = now() + seconds;
	size_t	 i;
	int	 fd = inotify_init1(IN_NONBLOCK), n = 0;
	struct timespec	 ms = { 0, 20000000 };

	for (i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		(void)inotify_add_watch(fd, shared[i], IN_ALL_EVENTS);
	puts("watching");
	fflush(stdout);
	while (now() < end) {
		ssize_t	 got;

		while ((got = read(fd, ev, sizeof(ev))) > 0) {
			struct inotify_event	*e = (void *)ev;

			n++;
			printf("event: watch %d mask %x %s\n", e->wd, e->mask,
			    e->len ? e->name : "");
		}
		nanosleep(&ms, NULL);
	}
	check(n == 0, "B51 nothing is seen of other boxes: %d events", n);
}

/* Takes all there is of what the kernel counts per user, and sits on it. */
static void
take(const char *file)
{
	struct mq_attr		 a = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
	struct sigevent		 ev = { .sigev_notify = SIGEV_SIGNAL,
				    .sigev_signo = SIGRTMIN };
	union sigval		 v = { 0 };
	sigset_t		 set;
	timer_t			 t;
	char			 name[32];
	int			 in = 0, mq = 0, tm = 0, sq = 0, fd;

	while (in < 100000 && inotify_init1(0) != -1)
		in++;
	for (; mq < 100000; mq++) {
		snprintf(name, sizeof(name), "/m%d", mq);
		if ((fd = (int)mq_open(name, O_CREAT | O_RDWR, 0600, &a)) == -1)
			break;
		close(fd);
	}
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (tm < 1000 && timer_create(CLOCK_MONOTONIC, &ev, &t) == 0)
		tm++;
	while (sq < 1000000 && sigqueue(getpid(), SIGRTMIN + 1, v) == 0)
		sq++;
	printf("taken: %d inotify, %d queues, %d timers, %d signals\n", in,
	    mq, tm, sq);
	fflush(stdout);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	for (;;)
		pause();
}

static void
give(void)
{
	struct sigevent	 ev = { .sigev_notify = SIGEV_SIGNAL,
			    .sigev_signo = SIGRTMIN };
	union sigval	 v = { 0 };
	sigset_t	 set;
	timer_t		 t;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check(inotify_init1(0) != -1, "B51 an inotify: %s", strerror(errno));
	check(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0, "B51 a timer: %s",
	    strerror(errno));
	check(sigqueue(getpid(), SIGRTMIN + 1, v) == 0, "B51 a signal: %s",
	    strerror(errno));
	check(mq_open("/workbox-attack", O_CREAT | O_RDWR, 0600, NULL) != -1,
	    "B51 a message queue: %s", strerror(errno));
	mq_unlink("/workbox-attack");
}

/* ---- storms ------------------------------------------------------------ */

/* Stops all that is new, for as long, but itself. */
static void
freeze(int seconds)
{
	double	 end = now() + seconds;
	pid_t	 pid, me = getpid();
	char	 path[32];
	int	 n = 0, i;

	printf("freezing\n");
	fflush(stdout);
	while (now() < end) {
		/* a process that ends at once tells the next number */
		if ((pid = fork()) == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		for (i = -4; i < 12; i++) {
			snprintf(path, sizeof(path), "/proc/%d/stat", pid + i);
			if (pid + i != me && pid + i > 2 &&
			    kill(pid + i, SIGSTOP) == 0)
				n++;
		}
	}
	printf("stopped %d\n", n);
	kill(-1, SIGCONT);
}

static void
orphans(int n)
{
	int	i;

	signal(SIGCHLD, SIG_IGN);
	for (i = 0; i < n; i++)
		if (fork() == 0) {
			if (fork() == 0)
				_exit(0);
			_exit(0);
		}
	while (wait(NULL) != -1)
		;
}

static void
tree(const char *dir)
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

int
main(int argc, char **argv)
{
	const char	*what = argc > 1 ? argv[1] : "";
	const char	*arg = argc > 2 ? argv[2] : "0";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "calls") == 0)
		all_calls();
	else if (strcmp(what, "control") == 0)
		control();
	else if (strcmp(what, "proc") == 0)
		proc();
	else if (strcmp(what, "pid1") == 0)
		pid1();
	else if (strcmp(what, "fds") == 0)
		fds();
	else if (strcmp(what, "net") == 0)
		net((int)strtol(arg, NULL, 10));
	else if (strcmp(what, "abstract") == 0)
		abstract(arg);
	else if (strcmp(what, "watch") == 0)
		watch((int)strtol(arg, NULL, 10));
	else if (strcmp(what, "take") == 0)
		take(arg);
	else if (strcmp(what, "give") == 0)
		give();
	else if (strcmp(what, "freeze") == 0)
		freeze((int)strtol(arg, NULL, 10));
	else if (strcmp(what, "orphans") == 0)
		orphans((int)strtol(arg, NULL, 10));
	else if (strcmp(what, "tree") == 0)
		tree(arg);
	else
		return 64;
	return failed;
}
