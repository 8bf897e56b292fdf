/*
 * mech_calls.c: mech_test, which system calls a box may make.
 */
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <sha256.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "mech_box.h"
#include "mech_golden.h"

/* ---- system calls ----------------------------------------------------------- */

static const char lists_eperm[] =
#define F_EPERM(n) n " "
#include "filter.def"
    "";
static const char lists_enosys[] =
#define F_ENOSYS(n) n " "
#include "filter.def"
    "";
static const char lists_allow[] =
#define F_ALLOW(n) n " "
#include "filter.def"
    "";

/* The next call of a list that this machine has; its number or -1. */
static int
next_call(const char **p, char name[64])
{
	char	*colon;
	size_t	 n;
	int	 nr;

	while ((n = strcspn(*p, " ")) > 0) {
		(void)snprintf(name, 64, "%.*s", (int)n, *p);
		*p += n + 1;
		if ((colon = strchr(name, ':')) != NULL)
			*colon++ = '\0';
		nr = seccomp_syscall_resolve_name(name);
		if (nr < 0 && colon != NULL)
			nr = (int)strtol(colon, NULL, 10);
		ck_assert_msg(nr != __NR_SCMP_ERROR, "no call %s", name);
		if (nr >= 0)
			return nr;
	}
	return -1;
}

/* The host's number of a process; -1 once it has ended. */
static pid_t
pid_of(int pidfd)
{
	char	 path[64], line[256];
	int	 pid = -1;
	FILE	*f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	ck_assert_ptr_ne(f = fopen(path, "re"), NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "Pid: %d", &pid);
	(void)fclose(f);
	return pid;
}

/* What the kernel holds of a box is what was built in, nothing else. */
START_TEST(test_filter_hash)
{
	static struct sock_filter	 prog[4096];
	char				 hex[SHA256_DIGEST_STRING_LENGTH];
	struct tbox			 b;
	SHA2_CTX			 sha;
	unsigned long			 i;
	pid_t				 pid;
	long				 n;
	int				 st;

	box_up(&b, 2);
	pid = pid_of(b.run.pidfd);
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	ck_assert_int_eq(waitpid(pid, &st, __WALL), pid);
	SHA256Init(&sha);
	for (i = 0; i < BOX_FILTERS; i++) {
		n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, i, NULL);
		if (n == -1 && errno == EIO) {
			printf("skipped: this kernel tells no filter\n");
			box_down(&b);
			return;
		}
		ck_assert_int_gt(n, 0);
		ck_assert_int_le(n, 4096);
		ck_assert_int_eq(ptrace(PTRACE_SECCOMP_GET_FILTER, pid, i,
		    prog), n);
		SHA256Update(&sha, (const uint8_t *)prog, (size_t)n *
		    sizeof(prog[0]));
	}
	ck_assert_int_eq(ptrace(PTRACE_SECCOMP_GET_FILTER, pid, i, NULL), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	ck_assert_str_eq(SHA256End(&sha, hex), filter_hash());
	box_down(&b);
}
END_TEST

START_TEST(test_refused_calls)
{
	struct tbox	 b;
	const char	*p = lists_eperm;
	char		 name[64];
	int		 nr, e, n = 0;

	box_up(&b, 2);
	while ((nr = next_call(&p, name)) != -1) {
		e = call(&b, nr, 0, 0, 0, 0);
		ck_assert_msg(e == EPERM, "%s: %d", name, e);
		n++;
	}
	p = lists_enosys;
	while ((nr = next_call(&p, name)) != -1) {
		e = call(&b, nr, 0, 0, 0, 0);
		ck_assert_msg(e == ENOSYS, "%s: %d", name, e);
		n++;
	}
	ck_assert_int_gt(n, 60);
	ck_assert_int_eq(call(&b, 480, 0, 0, 0, 0), ENOSYS);
	ck_assert_int_eq(call(&b, 5000, 0, 0, 0, 0), ENOSYS);
#ifdef __x86_64__
	/* x32 is killed. */
	ck_assert_int_eq(call(&b, 0x40000000 + SYS_getpid, 0, 0, 0, 0), -2);
#endif
	box_down(&b);
}
END_TEST

/* Whatever the table says. */
START_TEST(test_never)
{
	struct tbox	 b;
	const char	*p = golden_eperm;
	char		 name[64];
	int		 nr, e;

	box_up(&b, 2);
	while ((nr = next_call(&p, name)) != -1) {
		e = call(&b, nr, 0, 0, 0, 0);
		ck_assert_msg(e == EPERM, "%s: %d", name, e);
	}
	p = golden_enosys;
	while ((nr = next_call(&p, name)) != -1) {
		e = call(&b, nr, 0, 0, 0, 0);
		ck_assert_msg(e == ENOSYS, "%s: %d", name, e);
	}
	box_down(&b);
}
END_TEST

/* Every allowed call reaches the kernel: it answers something else. */
START_TEST(test_allowed_calls)
{
	struct tbox	 b;
	const char	*p = lists_allow;
	char		 name[64];
	int		 nr, e, n = 0;

	box_up(&b, 2);
	while ((nr = next_call(&p, name)) != -1) {
		if (strstr("exit exit_group pause rt_sigreturn vfork fork "
		    "rt_sigsuspend restart_syscall kill tkill tgkill select "
		    "ppoll pselect6 waitid wait4 clone", name) != NULL)
			continue;	/* would not answer, or is used */
		e = call(&b, nr, ~0UL, ~0UL, ~0UL, ~0UL);
		ck_assert_msg(e != EPERM || strcmp(name, "socketpair") == 0 ||
		    nr == SYS_setpgid || nr == SYS_setgroups ||
		    nr == SYS_setsid || nr == SYS_ioprio_set ||
		    strcmp(name, "arch_prctl") == 0 ||
		    nr == SYS_adjtimex ||
		    nr == SYS_clock_adjtime, "%s: EPERM", name);
		n++;
	}
	ck_assert_int_gt(n, 200);
	box_down(&b);
}
END_TEST

START_TEST(test_arguments)
{
	static const int	 ok[] = { AF_UNIX, AF_INET, AF_INET6,
				    AF_NETLINK };
	static const unsigned long junk = 0xdeadUL << 32;
	struct tbox		 b;
	unsigned long		 i;
	int			 f, fd, good;
	size_t			 k;

	box_up(&b, 2);
	for (f = 0; f < 64; f++) {
		for (good = 0, k = 0; k < 4; k++)
			good |= f == ok[k];
		/* This kernel may lack one: then the host has none too. */
		if (good && (fd = socket(f, SOCK_DGRAM, 0)) == -1)
			good = 0;
		else if (good)
			(void)close(fd);
		ck_assert_int_eq(call(&b, SYS_socket, (unsigned long)f,
		    SOCK_DGRAM, 0, 0), good ? -1 : EAFNOSUPPORT);
		ck_assert_int_eq(call(&b, SYS_socket, junk | (unsigned int)f,
		    SOCK_DGRAM, 0, 0), EAFNOSUPPORT);
	}
	ck_assert_int_eq(call(&b, SYS_socket, AF_INET, SOCK_RAW, 1, 0), EPERM);
	for (i = 1; i < 32; i++)	/* but NETLINK_ROUTE */
		ck_assert_int_eq(call(&b, SYS_socket, AF_NETLINK, SOCK_RAW, i,
		    0), EAFNOSUPPORT);
	ck_assert_int_eq(call(&b, SYS_socket, AF_NETLINK, SOCK_RAW, junk, 0),
	    EAFNOSUPPORT);
	ck_assert_int_eq(call(&b, SYS_socket, AF_INET, SOCK_STREAM, 132, 0),
	    EPROTONOSUPPORT);
	ck_assert_int_eq(call(&b, SYS_socket, AF_INET6, SOCK_STREAM,
	    junk | 262, 0), EPROTONOSUPPORT);	/* also without IPv6 */
	for (i = CLONE_NEWNS; i != 0; i <<= 1)
		if (i & (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
		    CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
		    CLONE_NEWNET)) {
			ck_assert_int_eq(call(&b, SYS_clone, i | SIGCHLD, 0, 0,
			    0), EPERM);
			ck_assert_int_eq(call(&b, SYS_clone, junk | i, 0, 0,
			    0), EPERM);
		}
	ck_assert_int_eq(call(&b, SYS_ioctl, 0, TIOCSTI, 0, 0), EPERM);
	ck_assert_int_eq(call(&b, SYS_ioctl, 0, junk | TIOCSTI, 0, 0), EPERM);
	ck_assert_int_eq(call(&b, SYS_ioctl, 0, junk | TIOCLINUX, 0, 0),
	    EPERM);
	ck_assert_int_ne(call(&b, SYS_ioctl, 0, TIOCGWINSZ, 0, 0), EPERM);
	ck_assert_int_eq(call(&b, SYS_personality, 0xffffffff, 0, 0, 0), -1);
	ck_assert_int_eq(call(&b, SYS_personality, 0x20008, 0, 0, 0), -1);
	ck_assert_int_eq(call(&b, SYS_personality, 0x40000, 0, 0, 0), ENOSYS);
	ck_assert_int_eq(call(&b, SYS_personality, junk | 8, 0, 0, 0),
	    ENOSYS);
	box_down(&b);
}
END_TEST

/* B52: the runner is pid 1 and of the same uid as everything in the box. */
START_TEST(test_pid1)
{
	static const unsigned long junk = 0xdeadUL << 32;
	struct tbox	 b;

	box_up(&b, 2);
	/* Their pointers are bad: EFAULT is what the kernel would say. */
#define PID1(nr, ...) ck_assert_int_eq(call(&b, nr, __VA_ARGS__), EPERM)
	PID1(SYS_prlimit64, 1, RLIMIT_NOFILE, 1, 0);
	PID1(SYS_prlimit64, junk | 1, RLIMIT_CPU, 1, 0);
	/* its second thread will do as well */
	PID1(SYS_prlimit64, BOX_THREAD, RLIMIT_CPU, 1, 0);
	PID1(SYS_sched_setscheduler, BOX_THREAD, SCHED_IDLE, 0, 0);
	PID1(SYS_setpriority, PRIO_PROCESS, BOX_THREAD, 19, 0);
	PID1(SYS_ioprio_set, 1, BOX_THREAD, 3 << 13, 0);
	PID1(SYS_sched_setaffinity, 1, 8, 1, 0);
	PID1(SYS_sched_setaffinity, junk | 1, 8, 1, 0);
	PID1(SYS_sched_setscheduler, 1, 5, 1, 0);
	PID1(SYS_sched_setparam, 1, 1, 0, 0);
	PID1(SYS_sched_setattr, 1, 1, 0, 0);
	PID1(SYS_setpriority, PRIO_PROCESS, 1, 19, 0);
	PID1(SYS_setpriority, PRIO_PGRP, 1, 19, 0);
	PID1(SYS_setpriority, PRIO_USER, 0, 19, 0);
	PID1(SYS_setpriority, junk | PRIO_USER, 0, 19, 0);
	PID1(SYS_ioprio_set, 1, 1, 3 << 13, 0);
	PID1(SYS_ioprio_set, 2, junk | 1, 3 << 13, 0);
	PID1(SYS_ioprio_set, 3, 0, 3 << 13, 0);
	PID1(SYS_ptrace, 0x4206, 1, 0, 0);	/* PTRACE_SEIZE */
	PID1(SYS_ptrace, 16, 1, 0, 0);
	/* What programs do to themselves goes on. */
	ck_assert_int_eq(call(&b, SYS_setpriority, PRIO_PROCESS, 0, 19, 0), -1);
	ck_assert_int_eq(call(&b, SYS_prlimit64, 0, RLIMIT_NOFILE, 1, 0),
	    EFAULT);
	ck_assert_int_eq(call(&b, SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 0), -1);
	/* RLIMIT_CORE stays 1; the attempt succeeds. */
	ck_assert_int_eq(call(&b, SYS_prlimit64, 0, RLIMIT_CORE, 1, 0), -1);
	ck_assert_int_eq(call(&b, SYS_setrlimit, RLIMIT_CORE, 1, 0, 0), -1);
	box_sh_ok(&b, "ulimit -c 0; grep -q 'core file size *1 *1 ' "
	    "/proc/self/limits");
	(void)call(&b, SYS_kill, 1, SIGKILL, 0, 0);
	(void)call(&b, SYS_kill, 1, SIGSTOP, 0, 0);
	(void)call(&b, SYS_kill, (unsigned long)-1, SIGKILL, 0, 0);
	ck_assert_str_eq(ask(&b, "ping"), "pong");
	box_down(&b);
}
END_TEST

TCase *
calls_case(void)
{
	TCase	*t = tcase_create("calls");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, init, NULL);
	tcase_add_test(t, test_filter_hash);
	tcase_add_test(t, test_refused_calls);
	tcase_add_test(t, test_never);
	tcase_add_test(t, test_allowed_calls);
	tcase_add_test(t, test_arguments);
	tcase_add_test(t, test_pid1);
	return t;
}
