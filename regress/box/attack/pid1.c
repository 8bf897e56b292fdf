/*
 * pid1.c: the supervisor, by every call that takes a pid, and as control the
 * same calls on a child of one's own.
 */
#include "attack.h"

#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define J	(1ULL << 32)	/* junk above what the kernel reads */

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

#define BARRED_IN(what, call, want) do {				\
	int	e_ = (call) == -1 ? errno : 0;				\
	check(e_ == (want), what " on pid 1: %s", said(e_));		\
} while (0)

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

/* B10, B11: by a descriptor of it, and its memory by call. */
static void
pidfd_and_memory(void)
{
	struct iovec	l = { mem, 16 }, r = { mem, 16 };
	int		fd = (int)syscall(434, 1, 0);

	check(fd != -1, "B11 pid 1 has a pidfd");
	BARRED_IN("B11 pidfd_getfd", syscall(438, fd, 3, 0), EPERM);
	BARRED_IN("B11 kcmp", syscall(SYS_kcmp, 1, getpid(), 0, 0, 0), EPERM);
	BARRED_IN("B11 process_madvise", syscall(440, fd, &l, 1, 21, 0),
	    EPERM);
	BARRED_IN("B03 setns of its pidfd", syscall(SYS_setns, fd, 0x20000),
	    EPERM);
	BARRED_IN("B10 process_vm_readv", syscall(SYS_process_vm_readv, 1, &l,
	    1, &r, 1, 0), EPERM);
	BARRED_IN("B10 process_vm_writev", syscall(SYS_process_vm_writev, 1,
	    &l, 1, &r, 1, 0), EPERM);
	(void)syscall(424, fd, SIGKILL, NULL, 0);	/* pidfd_send_signal */
	(void)syscall(424, fd, SIGSTOP, NULL, 0);
	close(fd);
}

void
proc_pid1(void)
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
	pidfd_and_memory();
	for (sig = 1; sig <= 64; sig++)
		if (sig != SIGCHLD) {
			(void)kill(1, sig);
			(void)syscall(SYS_tgkill, 1, 2, sig);
			(void)syscall(SYS_tkill, 2, sig);
		}
	nanosleep(&ms, NULL);
	check(kill(1, 0) == 0, "B13 pid 1 outlives every signal");
}

