/*
 * check_system: doctor's checks of what the kernel says of this host: its
 * settings, memory, clock, security modules, and on what it runs.
 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "proxy_files.h"
#include "xmalloc.h"

#define MIB	(UINT64_C(1) << 20)

/* ---- this process ------------------------------------------------------ */

/* Each was taken away in turn: without it no box can be made or served. */
static const struct { int cap; const char *name; } needed[] = {
	{ CAP_CHOWN, "CHOWN" }, { CAP_DAC_OVERRIDE, "DAC_OVERRIDE" },
	{ CAP_FOWNER, "FOWNER" }, { CAP_FSETID, "FSETID" },
	{ CAP_KILL, "KILL" }, { CAP_SETGID, "SETGID" },
	{ CAP_SETUID, "SETUID" }, { CAP_SETPCAP, "SETPCAP" },
	{ CAP_SYS_CHROOT, "SYS_CHROOT" }, { CAP_SYS_PTRACE, "SYS_PTRACE" },
	{ CAP_SYS_ADMIN, "SYS_ADMIN" }, { CAP_MKNOD, "MKNOD" },
	{ CAP_SETFCAP, "SETFCAP" },
};

void
check_capabilities(const struct conf *c, struct finding *f)
{
	struct __user_cap_header_struct	h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	d[2];
	uint64_t			eff;
	size_t				i;

	(void)c;
	if (syscall(SYS_capget, &h, d) == -1) {
		finding_set(f, V_FAIL, "let capget(2) through where this runs",
		    "capget: %s", strerror(errno));
		return;
	}
	eff = d[0].effective | (uint64_t)d[1].effective << 32;
	for (i = 0; i < sizeof needed / sizeof needed[0]; i++)
		if (!(eff >> needed[i].cap & 1)) {
			finding_set(f, V_FAIL, "run where root has it: on the "
			    "host, or in a container that gives it",
			    "root lacks CAP_%s", needed[i].name);
			return;
		}
	finding_set(f, V_OK, "", "all that privd needs%s",
	    eff >> CAP_SYS_RESOURCE & 1 ? "" :
	    "; CAP_SYS_RESOURCE is not there and not needed");
}

/* Raised as serve does it; nothing after this minds. */
void
check_descriptors(const struct conf *c, struct finding *f)
{
	rlim_t	want = START_FILES(c), proxy = proxy_files(c), most = 0;

	if (start_files(want, &most) == -1)
		finding_set(f, V_FAIL, "raise the hard limit (ulimit -Hn, "
		    "LimitNOFILE=), or lower max-boxes", "the hard limit is "
		    "%llu, max-boxes needs %llu",
		    (unsigned long long)most, (unsigned long long)want);
	else if (start_files(proxy, &most) == -1)
		finding_set(f, V_WARN, "raise the hard limit (ulimit -Hn, "
		    "LimitNOFILE=), or lower max-boxes or egress-connections",
		    "the hard limit is %llu, proxyd needs %llu for all "
		    "connections of allowlist", (unsigned long long)most,
		    (unsigned long long)proxy);
	else
		finding_set(f, V_OK, "", "at most %llu in a process",
		    (unsigned long long)most);
}

/* ---- settings ---------------------------------------------------------- */

/*
 * Those that the kernel counts for root, who made netd's: that one, one for
 * each network that a box has or netd holds in reserve, and a probe's.
 */
static uint64_t
userns_least(const struct conf *c)
{
	return c->max_boxes + CONF_READY + c->egress_pool + 2;
}

int
userns_cause(const struct conf *c, char why[256], char cure[256])
{
	uint64_t	v, least = userns_least(c);

	if (look_number("/proc/sys/kernel/unprivileged_userns_clone", "", &v)
	    == 0 && v == 0) {
		(void)snprintf(why, 256, "kernel.unprivileged_userns_clone is "
		    "0: netd, which is no root here, may make no user "
		    "namespace");
		(void)snprintf(cure, 256, "sysctl -w "
		    "kernel.unprivileged_userns_clone=1");
		return 1;
	}
	if (look_number("/proc/sys/kernel/"
	    "apparmor_restrict_unprivileged_userns", "", &v) == 0 && v != 0) {
		(void)snprintf(why, 256, "kernel."
		    "apparmor_restrict_unprivileged_userns is %" PRIu64 ": a "
		    "user namespace that netd makes gives it nothing", v);
		(void)snprintf(cure, 256, "sysctl -w kernel."
		    "apparmor_restrict_unprivileged_userns=0, or an AppArmor "
		    "profile with userns for %.100s/netd", c->libexec_dir);
		return 1;
	}
	if (look_number("/proc/sys/user/max_user_namespaces", "", &v) == 0 &&
	    v < least) {
		(void)snprintf(why, 256, "user.max_user_namespaces is %" PRIu64
		    ": max-boxes = %" PRIu64 " and egress-pool = %" PRIu64
		    " need %" PRIu64, v, c->max_boxes, c->egress_pool, least);
		(void)snprintf(cure, 256, "sysctl -w "
		    "user.max_user_namespaces=%" PRIu64, 2 * least);
		return 1;
	}
	return 0;
}

void
check_userns(const struct conf *c, struct finding *f)
{
	char	why[256], cure[256];

	if (userns_cause(c, why, cure))
		finding_set(f, V_WARN, cure, "%s", why);
	else
		finding_set(f, V_OK, "", "no setting keeps them from being "
		    "made");
}

void
check_dumpable(const struct conf *c, struct finding *f)
{
	uint64_t	v = 0;

	(void)c;
	if (look_number("/proc/sys/fs/suid_dumpable", "", &v) == 0 && v == 1)
		finding_set(f, V_WARN, "sysctl -w fs.suid_dumpable=0",
		    "fs.suid_dumpable is 1: each new supervisor can be read "
		    "for a moment by what runs in its sandbox");
	else
		finding_set(f, V_OK, "", "fs.suid_dumpable is %" PRIu64, v);
}

void
check_pid_max(const struct conf *c, struct finding *f)
{
	uint64_t	max, hold;

	if (look_number("/proc/sys/kernel/pid_max", "", &max) == -1) {
		finding_set(f, V_FAIL, "mount /proc", "kernel.pid_max cannot "
		    "be read");
		return;
	}
	hold = max / c->default_pids;
	if (hold < c->max_boxes && max < 4194304)
		finding_set(f, V_WARN, "sysctl -w kernel.pid_max=4194304",
		    "%" PRIu64 ": %" PRIu64 " sandboxes at their limit of %"
		    PRIu64 " processes use it up; max-boxes is %" PRIu64, max,
		    hold, c->default_pids, c->max_boxes);
	else
		finding_set(f, V_OK, "", "%" PRIu64, max);
}

/* An open file is charged to its box with about 256 bytes, and to no one's
 * count but the host's. */
void
check_file_max(const struct conf *c, struct finding *f)
{
	uint64_t	max, one = c->default_memory / 256;

	if (look_number("/proc/sys/fs/file-max", "", &max) == -1) {
		finding_set(f, V_FAIL, "mount /proc", "fs.file-max cannot be "
		    "read");
		return;
	}
	if (one > max)
		finding_set(f, V_WARN, "sysctl -w "
		    "fs.file-max=9223372036854775807", "%" PRIu64 ": one "
		    "sandbox at its limit of memory can hold %" PRIu64
		    " open files, and nobody but root could open one", max,
		    one);
	else
		finding_set(f, V_OK, "", "%" PRIu64, max);
}

void
check_memory(const struct conf *c, struct finding *f)
{
	uint64_t	kib;

	if (look_number("/proc/meminfo", "MemAvailable:", &kib) == -1) {
		finding_set(f, V_FAIL, "mount /proc", "/proc/meminfo cannot "
		    "be read");
		return;
	}
	if (kib * 1024 < c->default_memory)
		finding_set(f, V_WARN, "add memory, or set default-memory",
		    "%" PRIu64 " MiB free, less than the %" PRIu64 " MiB of "
		    "one sandbox", kib / 1024, c->default_memory / MIB);
	else
		finding_set(f, V_OK, "", "%" PRIu64 " MiB free", kib / 1024);
}

/* ---- the clock --------------------------------------------------------- */

/*
 * The time by the kernel's files, so that another system's can be read; that
 * something keeps it right, the running kernel alone can tell.
 */
void
check_clock(const struct conf *c, struct finding *f)
{
	struct timex	tx = { 0 };
	uint64_t	boot, up;
	int		here = look_root() == NULL;

	(void)c;
	if (look_number("/proc/stat", "btime", &boot) == -1 ||
	    look_number("/proc/uptime", "", &up) == -1) {
		finding_set(f, V_FAIL, "mount /proc", "the time cannot be "
		    "read");
		return;
	}
	switch (look_clock((int64_t)(boot + up), !here ||
	    (adjtimex(&tx) != -1 && !(tx.status & STA_UNSYNC)))) {
	case CLOCK_UNSET:
		finding_set(f, V_FAIL, "set it (date -s, hwclock -s), and let "
		    "chrony or systemd-timesyncd keep it", "it is %" PRIu64
		    " seconds since 1970, before this program was made: "
		    "records would tell wrong times, and no certificate is "
		    "valid", boot + up);
		break;
	case CLOCK_FREE:
		finding_set(f, V_WARN, "let chrony or systemd-timesyncd keep "
		    "it", "nothing keeps it synchronised: the times of "
		    "records drift");
		break;
	case CLOCK_GOOD:
		finding_set(f, V_OK, "", here ? "set and synchronised" :
		    "set; what keeps it right is in no file");
		break;
	}
}

/* ---- security modules -------------------------------------------------- */

void
check_selinux(const struct conf *c, struct finding *f)
{
	static const char *const	free_domains[] = { ":unconfined_t:",
	    ":unconfined_service_t:", ":spc_t:", ":initrc_t:" };
	char				domain[256];
	uint64_t			enforce;
	size_t				i;

	(void)c;
	if (look_number("/sys/fs/selinux/enforce", "", &enforce) == -1) {
		finding_set(f, V_OK, "", "not active");
		return;
	}
	if (enforce == 0) {
		finding_set(f, V_OK, "", "permissive: it refuses nothing");
		return;
	}
	(void)look_line("/proc/self/attr/current", domain, sizeof domain);
	for (i = 0; i < sizeof free_domains / sizeof free_domains[0]; i++)
		if (strstr(domain, free_domains[i]) != NULL) {
			finding_set(f, V_OK, "", "enforcing; %s is confined "
			    "by nothing", domain);
			return;
		}
	finding_set(f, V_WARN, "start it from a unit or a shell that is "
	    "unconfined (restorecon -R the programs); ausearch -m avc tells "
	    "what was refused", "enforcing, and %s may be refused what a "
	    "check above could not do", domain[0] != '\0' ? domain :
	    "a domain without a name");
}

void
check_apparmor(const struct conf *c, struct finding *f)
{
	char	text[256];

	(void)c;
	if (look_line("/sys/module/apparmor/parameters/enabled", text,
	    sizeof text) <= 0 || text[0] != 'Y') {
		finding_set(f, V_OK, "", "not active");
		return;
	}
	if (look_line("/proc/self/attr/apparmor/current", text, sizeof text)
	    <= 0)
		(void)look_line("/proc/self/attr/current", text, sizeof text);
	if (text[0] == '\0' || strcmp(text, "unconfined") == 0)
		finding_set(f, V_OK, "", "active; no profile confines this");
	else
		finding_set(f, V_WARN, "run it under no profile: aa-exec -p "
		    "unconfined, or --security-opt apparmor=unconfined of "
		    "the container", "the profile %s confines this, and may "
		    "refuse mounts and namespaces", text);
}

/* ---- on what it runs --------------------------------------------------- */

/* Whether /proc/self/ns/KIND is the namespace that the kernel began with. */
static int
first_ns(const char *kind, const char *inode)
{
	auto_close int	dir = look_open("/proc/self/ns", O_PATH | O_DIRECTORY);
	char		link[64], want[64];
	ssize_t		n;

	n = dir == -1 ? -1 : readlinkat(dir, kind, link, sizeof link - 1);
	if (n <= 0)
		return 1;		/* not told: not claimed */
	link[n] = '\0';
	(void)snprintf(want, sizeof want, "%s:[%s]", kind, inode);
	return strcmp(link, want) == 0;
}

/*
 * A container's files lie also where none runs (an image that was booted):
 * they name what the namespaces, whose first ones have fixed numbers, show.
 */
static int
in_container(char *ret, size_t size)
{
	auto_close int	docker = -1, podman = -1;

	if (first_ns("pid", "4026531836") && first_ns("user", "4026531837"))
		return 0;
	docker = look_open("/.dockerenv", O_PATH);
	podman = look_open("/run/.containerenv", O_PATH);
	if (look_line("/run/systemd/container", ret, size) <= 0)
		(void)str_copy(ret, docker != -1 ? "docker" : podman != -1 ?
		    "podman" : "of unknown kind", size);
	return 1;
}

static int
in_machine(char *ret, size_t size)
{
	static char	cpu[65536];

	if (look_line("/sys/hypervisor/type", ret, size) > 0)
		return 1;
	if (look_text("/proc/cpuinfo", cpu, sizeof cpu) <= 0 ||
	    strstr(cpu, " hypervisor") == NULL)
		return 0;
	if (look_line("/sys/class/dmi/id/sys_vendor", ret, size) <= 0)
		(void)str_copy(ret, "of unknown kind", size);
	return 1;
}

void
check_machine(const struct conf *c, struct finding *f)
{
	char	text[128];

	(void)c;
	if (look_line("/proc/sys/kernel/osrelease", text, sizeof text) > 0 &&
	    strcasestr(text, "microsoft") != NULL)
		finding_set(f, V_WARN, "a large vmIdleTimeout below [wsl2] in "
		    ".wslconfig, or a terminal that stays open", "WSL (%s): "
		    "Windows ends it, with all sandboxes, when nothing of "
		    "its own is open", text);
	else if (in_container(text, sizeof text))
		finding_set(f, V_WARN, "run it on the host; else all that "
		    "failed here must be given to the container (docker: "
		    "--privileged --cgroupns=host)", "container (%s): all "
		    "sandboxes share its limits and end with it", text);
	else if (in_machine(text, sizeof text))
		finding_set(f, V_OK, "", "a virtual machine (%s), which is "
		    "enough; sandboxes slow down when its own host is busy",
		    text);
	else
		finding_set(f, V_OK, "", "no virtual machine, no container");
}
