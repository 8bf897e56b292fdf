/*
 * inject.c: see inject.h.
 */
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <check.h>
#include <poll.h>

#include "inject.h"

#if INJECT_CAN
/* Stops a process that soon waits in a system call, once it does. */
static void
stop_in_call(pid_t pid, struct user_regs_struct *regs)
{
	int	n, st;

	for (n = 0; n < 500; n++) {
		ck_assert_int_eq(ptrace(PTRACE_ATTACH, pid, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(pid, &st, __WALL), pid);
		ck_assert_int_eq(ptrace(PTRACE_GETREGS, pid, NULL, regs), 0);
		if ((long)regs->orig_rax != -1)
			return;
		ck_assert_int_eq(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
		(void)poll(NULL, 0, 10);
	}
	ck_abort_msg("it never waits");
}

void
inject(pid_t pid, long nr, long a, long b, long c)
{
	struct user_regs_struct	regs;

	stop_in_call(pid, &regs);
	regs.rip -= 2;
	regs.rax = (unsigned long long)nr;
	regs.orig_rax = (unsigned long long)-1;
	regs.rdi = (unsigned long long)a;
	regs.rsi = (unsigned long long)b;
	regs.rdx = (unsigned long long)c;
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, pid, NULL, &regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
}
#else
void
inject(pid_t pid, long nr, long a, long b, long c)
{
	(void)pid;
	(void)nr;
	(void)a;
	(void)b;
	(void)c;
	ck_abort_msg("not on this machine");
}
#endif
