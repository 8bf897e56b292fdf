/*
 * listed.c: each call that a list names, what programs need all the same,
 * and the numbers of other architectures.
 */
#include "attack.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
	const char	*name;
	int		 nr, want;
};

#define REFUSED(x)	{ #x, SYS_##x, EPERM }
#define NUMBER(x, n)	{ #x, n, EPERM }
#define ABSENT(x, n)	{ #x, n, ENOSYS }

/* All arguments are 0: the answer does not hang on them. */
static const struct name names[] = {
	REFUSED(pivot_root), REFUSED(swapon), REFUSED(swapoff),
	REFUSED(init_module), REFUSED(finit_module), REFUSED(delete_module),
	REFUSED(kexec_load), REFUSED(kexec_file_load), REFUSED(reboot),
	REFUSED(add_key), REFUSED(request_key), REFUSED(keyctl),
	REFUSED(migrate_pages), REFUSED(move_pages), REFUSED(mbind),
	REFUSED(set_mempolicy), REFUSED(get_mempolicy),
	NUMBER(set_mempolicy_home_node, 450), REFUSED(userfaultfd),
	REFUSED(unshare), REFUSED(setns), REFUSED(mount), REFUSED(umount2),
	REFUSED(chroot), REFUSED(syslog), REFUSED(acct),
	REFUSED(settimeofday), REFUSED(clock_settime), REFUSED(sethostname),
	REFUSED(setdomainname), REFUSED(quotactl), NUMBER(quotactl_fd, 443),
	REFUSED(lookup_dcookie), REFUSED(perf_event_open), REFUSED(bpf),
	REFUSED(fanotify_init), REFUSED(fanotify_mark),
	REFUSED(open_by_handle_at), REFUSED(name_to_handle_at),
	REFUSED(kcmp), NUMBER(process_madvise, 440),
	NUMBER(process_mrelease, 448), NUMBER(pidfd_getfd, 438),
	REFUSED(process_vm_readv), REFUSED(process_vm_writev),
	REFUSED(vhangup), NUMBER(lsm_get_self_attr, 459),
	NUMBER(lsm_set_self_attr, 460), NUMBER(lsm_list_modules, 461),
#ifdef __x86_64__
	REFUSED(uselib), REFUSED(ustat), REFUSED(sysfs), REFUSED(_sysctl),
	REFUSED(create_module), REFUSED(get_kernel_syms),
	REFUSED(query_module), REFUSED(nfsservctl), REFUSED(iopl),
	REFUSED(ioperm), REFUSED(modify_ldt),
#endif
	ABSENT(clone3, 435), ABSENT(io_uring_setup, 425),
	ABSENT(io_uring_enter, 426), ABSENT(io_uring_register, 427),
	ABSENT(open_tree, 428), ABSENT(move_mount, 429),
	ABSENT(fsopen, 430), ABSENT(fsconfig, 431), ABSENT(fsmount, 432),
	ABSENT(fspick, 433), ABSENT(mount_setattr, 442),
	ABSENT(open_tree_attr, 467), ABSENT(statmount, 457),
	ABSENT(listmount, 458),
};

static int	nr;

static int
by_number(void)
{
	return S(nr, 0, 0, 0, 0, 0, 0);
}

static int
all_families(void)
{
	int	f, r;

	for (f = 0; f < 300; f++) {
		if (f == AF_UNIX || f == AF_INET || f == AF_INET6 ||
		    f == AF_NETLINK)
			continue;
		r = c_socket((uint64_t)f, SOCK_DGRAM, 0);
		if (r != EAFNOSUPPORT)
			return r;
	}
	return EAFNOSUPPORT;
}

static int
all_netlink(void)
{
	int	p, r;

	for (p = 1; p < 64; p++)
		if ((r = c_socket(AF_NETLINK, SOCK_RAW, (uint64_t)p)) !=
		    EAFNOSUPPORT)
			return r;
	return EAFNOSUPPORT;
}

static int
all_bpf(void)
{
	uint64_t	a[16] = { 0 };
	int		i, r;

	for (i = 0; i < 64; i++)
		if ((r = S(SYS_bpf, i, a, sizeof(a))) != EPERM)
			return r;
	return EPERM;
}

static int
many_handles(void)
{
	struct { unsigned int bytes; int type; uint64_t id[2]; } h = { 8, 1,
	    { 2, 0 } };
	int	fd = open("/", O_RDONLY), i, r;

	for (i = 0; i < 20000; i++) {
		h.type = i & 1 ? 1 : 0x81;
		h.id[0] = (uint64_t)i;
		r = S(SYS_open_by_handle_at, fd, &h, O_RDONLY);
		if (r != EPERM)
			return r;
	}
	return EPERM;
}

/* 0: it answered.  255: killed, as it should be. */
#ifdef __x86_64__
static int
x32_getpid(void)
{
	return S(0x40000000 + SYS_getpid) == 0 ? 0 : 1;
}

static int
i386_getpid(void)
{
	int	r;

	__asm__ volatile ("int $0x80" : "=a"(r) : "a"(20) : "memory");
	return r > 0 ? 0 : 1;
}
#endif

void
calls_listed(void)
{
	size_t	i;
	int	r;

	for (i = 0; i < N(names); i++) {
		nr = names[i].nr;
		r = attempt(by_number);
		check(r == names[i].want, "listed: %s: %s", names[i].name,
		    said(r));
	}
	r = attempt(all_families);
	check(r == EAFNOSUPPORT, "B15 every other family: %s", said(r));
	r = attempt(all_netlink);
	check(r == EAFNOSUPPORT, "B15 every netlink but ROUTE: %s", said(r));
	r = attempt(all_bpf);
	check(r == EPERM, "B07 every command of bpf: %s", said(r));
	r = attempt(many_handles);
	check(r == EPERM, "B17 20,000 handles: %s", said(r));
#ifdef __x86_64__
	r = attempt(x32_getpid);
	check(r == 255, "x32 is killed: %s", said(r));
	r = attempt(i386_getpid);
	check(r == 255, "i386 is killed: %s", said(r));
#endif
}

/* ---- what must go on working ------------------------------------------- */

static void *
thread(void *arg)
{
	return arg;
}

static int
w_threads(void)
{
	pthread_t	 t[8];
	void		*r;
	size_t		 i;

	for (i = 0; i < N(t); i++)
		if ((errno = pthread_create(&t[i], NULL, thread, NULL)) != 0)
			return errno;
	for (i = 0; i < N(t); i++)
		if (pthread_join(t[i], &r) != 0 )
			return 1;
	return 0;
}

static int
w_fork(void)
{
	int	st;
	pid_t	pid = fork();

	if (pid == 0)
		_exit(7);
	return pid != -1 && waitpid(pid, &st, 0) == pid &&
	    WEXITSTATUS(st) == 7 ? 0 : 1;
}

static int
w_sockets(void)
{
	int	 s[2], r = 0;
	size_t	 i;
	static const int	k[][3] = { { AF_UNIX, SOCK_STREAM, 0 },
	    { AF_UNIX, SOCK_SEQPACKET, 0 }, { AF_INET, SOCK_STREAM, 0 },
	    { AF_INET6, SOCK_STREAM, 0 }, { AF_INET, SOCK_DGRAM, 0 },
	    { AF_INET6, SOCK_DGRAM, 0 }, { AF_NETLINK, SOCK_RAW, 0 },
	    { AF_INET, SOCK_DGRAM, 1 } };

	for (i = 0; i < N(k) && r == 0; i++)
		r = c_socket((uint64_t)k[i][0], (uint64_t)k[i][1],
		    (uint64_t)k[i][2]);
	return r != 0 ? r : socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 ? 0 :
	    errno;
}

static int
w_fifo(void)
{
	int	r = mkfifo("/tmp/attack.fifo", 0600) == -1 ? errno : 0;

	unlink("/tmp/attack.fifo");
	if (r == 0 && mknod("/tmp/attack.sock", S_IFSOCK | 0600, 0) == -1)
		r = errno;
	unlink("/tmp/attack.sock");
	return r;
}

static int
w_personality(void)
{
	static const unsigned long	p[] = { 0, 8, 0x20000, 0x20008, 0,
	    0xffffffff };
	size_t	i;

	for (i = 0; i < N(p); i++)
		if (syscall(SYS_personality, p[i]) == -1)
			return errno;
	return 0;
}

/* One's own child: traced, slowed, limited, moved to a processor. */
static int
w_child(void)
{
	struct sched_param	 sp = { 0 };
	struct rlimit		 l = { 64, 64 };
	cpu_set_t		 set;
	int			 st, r = 0;
	pid_t			 pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == -1 ||
	    waitpid(pid, &st, 0) != pid || !WIFSTOPPED(st) ||
	    ptrace(PTRACE_DETACH, pid, NULL, NULL) == -1 ||
	    setpriority(PRIO_PROCESS, (id_t)pid, 5) == -1 ||
	    sched_setscheduler(pid, SCHED_BATCH, &sp) == -1 ||
	    sched_setaffinity(pid, sizeof(set), &set) == -1 ||
	    prlimit(pid, RLIMIT_NOFILE, &l, NULL) == -1 ||
	    syscall(SYS_ioprio_set, 1, pid, 3 << 13) == -1)
		r = errno;
	kill(pid, SIGKILL);
	return r;
}

static int
w_memory(void)
{
	int	 fd = memfd_create("x", MFD_CLOEXEC);
	char	*p;

	if (fd == -1 || ftruncate(fd, 4096) == -1)
		return errno;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return errno;
	*p = 1;
	return mprotect(p, 4096, PROT_READ | PROT_EXEC) == -1 ? errno : 0;
}

static int
w_core(void)
{
	struct rlimit	l = { 0, 0 };

	return setrlimit(RLIMIT_CORE, &l) == -1 ? errno : 0;
}

void
calls_work(void)
{
	static const struct { const char *name; int (*fn)(void); } w[] = {
		{ "B02 threads", w_threads }, { "B02 fork", w_fork },
		{ "B15 sockets", w_sockets },
		{ "B26 FIFO and socket files", w_fifo },
		{ "B16 personality 0, 8, 0x20000, 0x20008 and the question",
		    w_personality },
		{ "B10 B52 one's own child", w_child },
		{ "memfd, mmap, mprotect", w_memory },
		{ "B54 ulimit -c 0", w_core },
	};
	size_t	i;
	int	r;

	for (i = 0; i < N(w); i++) {
		r = attempt(w[i].fn);
		check(r == 0, "%s work: %s", w[i].name, r == 0 ? "yes" :
		    said(r));
	}
}

/* ---- the same as on pid 1, on one's own -------------------------------- */

/* The kernel alone does not stop these: pid 1 of a box is as root as we. */
void
calls_own(void)
{
	struct rlimit	 files = { 3, 3 };
	uint32_t	 attr[12] = { 48, 5 };	/* SCHED_IDLE */
	int		 zero = 0, fd;
	char		 path[64];
	pid_t		 pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY);
	check(fd != -1 && write(fd, "1000", 4) == 4,
	    "control B52: oom_score_adj of another process");
	check(S(SYS_sched_setscheduler, pid, 5, &zero) == 0 &&
	    S(SYS_sched_setattr, pid, attr, 0) == 0 &&
	    S(SYS_setpriority, PRIO_PROCESS, pid, 19) == 0 &&
	    S(SYS_ioprio_set, 1, pid, 3 << 13) == 0 &&
	    prlimit(pid, RLIMIT_NOFILE, &files, NULL) == 0,
	    "control B52: sched_set*, setpriority, ioprio_set, prlimit");
	check(S(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0) == 0,
	    "control B10: ptrace SEIZE");
	check(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid,
	    "control B13: SIGKILL");
}
