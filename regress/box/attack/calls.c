/*
 * calls.c: system calls that a box is refused, each with the errno it gets,
 * and as control the same where nothing refuses them.
 */
#include "attack.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define J	(1ULL << 32)	/* junk above what the kernel reads */
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

/* ---- calls ------------------------------------------------------------- */

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

int
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

/* Two pages of a new file: taken at once, or its hole made again. */
static int
c_space(unsigned long mode)
{
	char	path[64];
	int	fd, r;

	snprintf(path, sizeof(path), "/tmp/space.%d", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	r = S(SYS_fallocate, fd, mode, 0, 8192);
	unlink(path);
	close(fd);
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
 E(k47, "B11 kcmp", EPERM, 1, S(SYS_kcmp, getpid(), getppid(), 0, 0, 0))	\
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
 E(l08, "B33 fallocate", EOPNOTSUPP, 1, c_space(0))			\
 E(l09, "B33 fallocate beyond the end", EOPNOTSUPP, 1, c_space(1))	\
 E(l10, "B33 fallocate, junk above", EOPNOTSUPP, 1, c_space(J))		\
 E(l11, "holes may be made", 0, 1, c_space(3))				\
 E(l12, "a call of the future", ENOSYS, 0, S(600))
CALLS
#undef E
#define E(n, t, x, h, ...) { t, x, h, n },
static const struct call {
	const char	*text;
	int		 want, control;
	int		(*fn)(void);
} calls[] = { CALLS };
#define NCALLS	(sizeof(calls) / sizeof(calls[0]))

void
calls_refused(void)
{
	size_t	i;
	int	r;

	for (i = 0; i < NCALLS; i++) {
		r = attempt(calls[i].fn);
		check(r == calls[i].want, "%s: %s", calls[i].text,
		    said(r));
	}
}

/* Where it runs must not be changed by it: namespaces of its own. */
void
calls_control(void)
{
	size_t	i;

	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		exit(77);
	for (i = 0; i < NCALLS; i++)
		if (calls[i].control && attempt(calls[i].fn) == 0)
			puts(calls[i].text);
}
