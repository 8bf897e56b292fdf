/*
 * mech_golden.c: see mech_golden.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mech_golden.h"

const char	golden_eperm[] =
    "acct add_key bpf chroot clock_settime delete_module fanotify_init "
    "finit_module init_module ioperm iopl kcmp kexec_file_load kexec_load "
    "keyctl lookup_dcookie mbind mount move_pages name_to_handle_at "
    "open_by_handle_at perf_event_open pidfd_getfd pivot_root "
    "process_vm_readv process_vm_writev quotactl reboot request_key "
    "sethostname setns settimeofday swapoff swapon syslog umount2 unshare "
    "userfaultfd vhangup ";
const char	golden_enosys[] =
    "clone3 fsconfig fsmount fsopen fspick io_uring_enter io_uring_register "
    "io_uring_setup mount_setattr:442 move_mount open_tree ";

#define NSE	"nosuid,nodev,noexec,relatime"

/* Below /proc only where this kernel has the file. */
static const struct { const char *path, *type, *flags; } mounts[] = {
	{ "/", "overlay", "rw,nosuid,nodev,relatime" },
	{ "/dev", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/dev/pts", "devpts", "rw,nosuid,noexec,relatime" },
	{ "/dev/shm", "tmpfs", "rw," NSE },
	{ "/opt/workbox", "tmpfs", "ro,nosuid,nodev,relatime" },
	{ "/proc", "proc", "rw," NSE },
	{ "/run", "tmpfs", "rw,nosuid,nodev,relatime" },
	{ "/tmp", "tmpfs", "rw,nosuid,nodev,relatime" },
	{ "/proc/irq", "proc", "ro," NSE },
	{ "/proc/sys", "proc", "ro," NSE },
	{ "/proc/sysrq-trigger", "proc", "ro," NSE },
	{ "/proc/acpi", "tmpfs", "ro," NSE },
	{ "/proc/asound", "tmpfs", "ro," NSE },
	{ "/proc/bus", "tmpfs", "ro," NSE },
	{ "/proc/fs", "tmpfs", "ro," NSE },
	{ "/proc/pressure", "tmpfs", "ro," NSE },
	{ "/proc/scsi", "tmpfs", "ro," NSE },
	{ "/proc/cmdline", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/interrupts", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/kallsyms", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/kcore", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/key-users", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/keys", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/latency_stats", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/sched_debug", "tmpfs", "rw,nosuid,noexec,relatime" },
	{ "/proc/timer_list", "tmpfs", "rw,nosuid,noexec,relatime" },
};
#define NMOUNTS	(sizeof(mounts) / sizeof(mounts[0]))

const char *
golden_mounts(const char *p)
{
	static char	why[512];
	char		path[128], flags[128], type[32];
	int		seen[NMOUNTS] = { 0 };
	size_t		i, n;

	for (; *p != '\0'; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		(void)snprintf(why, sizeof(why), "%.*s", (int)n, p);
		if (sscanf(why, "%*s %*s %*s %*s %127s %127s - %31s", path,
		    flags, type) != 3)
			return why;
		for (i = 0; i < NMOUNTS; i++)
			if (strcmp(path, mounts[i].path) == 0)
				break;
		if (i == NMOUNTS || seen[i]++ ||
		    strcmp(type, mounts[i].type) != 0 ||
		    strcmp(flags, mounts[i].flags) != 0)
			return why;
	}
	for (i = 0; i < NMOUNTS; i++)
		if (!seen[i] && (strncmp(mounts[i].path, "/proc/", 6) != 0 ||
		    access(mounts[i].path, F_OK) == 0))
			return mounts[i].path;
	return NULL;
}
