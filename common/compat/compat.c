/*
 * compat: calls that glibc has and another C library may not; see
 * configure.ac, which leaves this file out where nothing is missing.
 *
 * Must never: do more or less than what it stands in for.
 */
#include <sys/mount.h>
#include <sys/syscall.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
close_range(unsigned int first, unsigned int last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

int
fsconfig(int fd, unsigned int cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

int
fsmount(int fd, unsigned int flags, unsigned int attrs)
{
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

int
fsopen(const char *name, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, name, flags);
}

int
mount_setattr(int dir, const char *path, unsigned int flags,
    struct mount_attr *a, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, a, size);
}

int
move_mount(int from, const char *path, int to, const char *topath,
    unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from, path, to, topath, flags);
}

int
open_tree(int dir, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

int
renameat2(int from, const char *old, int to, const char *name,
    unsigned int flags)
{
	return (int)syscall(SYS_renameat2, from, old, to, name, flags);
}

const char *
sigabbrev_np(int sig)
{
	static const char *const names[] = {
#define S(n)	[SIG##n] = #n,
		S(HUP) S(INT) S(QUIT) S(ILL) S(TRAP) S(ABRT) S(BUS) S(FPE)
		S(KILL) S(USR1) S(SEGV) S(USR2) S(PIPE) S(ALRM) S(TERM)
		S(STKFLT) S(CHLD) S(CONT) S(STOP) S(TSTP) S(TTIN) S(TTOU)
		S(URG) S(XCPU) S(XFSZ) S(VTALRM) S(PROF) S(WINCH) S(POLL)
		S(PWR) S(SYS)
#undef S
	};

	if (sig < 0 || (size_t)sig >= sizeof(names) / sizeof(names[0]))
		return NULL;
	return names[sig];
}
