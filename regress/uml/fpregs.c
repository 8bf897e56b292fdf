/*
 * fpregs.c: for LD_PRELOAD of linux.uml, which keeps a process's extended
 * registers in 2,696 bytes: where the processor has more of them (AMX) the
 * kernel takes back all or none, and the guest's init dies of it.  What it
 * does not keep, which no program of the guest uses, stays as it is.
 */
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALL	(64 * 1024)	/* more than any processor has */

static long
set_all(pid_t pid, const struct iovec *some)
{
	static unsigned char	all[ALL];
	struct iovec		v = { all, sizeof(all) };

	if (some->iov_len > sizeof(all) || syscall(SYS_ptrace,
	    PTRACE_GETREGSET, pid, NT_X86_XSTATE, &v) == -1)
		return -1;
	memcpy(all, some->iov_base, some->iov_len);
	if (v.iov_len < some->iov_len)
		v.iov_len = some->iov_len;
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &v);
}

long
ptrace(enum __ptrace_request request, ...)
{
	va_list	ap;
	pid_t	pid;
	void	*addr, *data;
	long	word, r;

	va_start(ap, request);
	pid = va_arg(ap, pid_t);
	addr = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	if (request == PTRACE_SETREGSET && (long)addr == NT_X86_XSTATE)
		return set_all(pid, data);
	/* as libc: what is read comes by the result */
	if (request > PTRACE_TRACEME && request < PTRACE_POKETEXT)
		data = &word;
	r = syscall(SYS_ptrace, request, pid, addr, data);
	if (r >= 0 && request > PTRACE_TRACEME && request < PTRACE_POKETEXT) {
		errno = 0;
		return word;
	}
	return r;
}
