/*
 * doctor: says whether this host can carry sandboxes, by trying what they
 * need, never by a version; each fault with its cause and its cure.
 *
 * What a check does is undone before it ends.  Nothing here mends anything.
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

static int	doctor_main(const struct args *);

static const struct opt doctor_opts[] = {
	{ "cgroup", "NAME", "cgroup of all sandboxes", 0, 0 },
	{ "calls", NULL, "print the system calls that a sandbox may and may "
	    "not make, and exit", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.doc = "Check this host; exits with 1 when a check failed, with 2 when "
	    "none could run",
	.opts = doctor_opts,
	.flags = CMD_STATE | CMD_FORMAT,
	.run = doctor_main
};

static void	check_programs(const struct conf *, struct finding *);
static void	check_capabilities(const struct conf *, struct finding *);
static void	check_users(const struct conf *, struct finding *);
static void	check_descriptors(const struct conf *, struct finding *);
static void	check_dumpable(const struct conf *, struct finding *);
static void	check_pid_max(const struct conf *, struct finding *);
static void	check_file_max(const struct conf *, struct finding *);
static void	check_memory(const struct conf *, struct finding *);
static void	check_state(const struct conf *, struct finding *);
static void	check_disk(const struct conf *, struct finding *);
static void	check_runtime(const struct conf *, struct finding *);
static void	check_rootfs(const struct conf *, struct finding *);

static const struct {
	const char	*name;
	void		(*fn)(const struct conf *, struct finding *);
} checks[] = {
	{ "programs", check_programs },
	{ "users", check_users },
	{ "capabilities", check_capabilities },
	{ "namespaces", probe_namespaces },
	{ "nested", probe_nested },
	{ "overlay", probe_overlay },
	{ "cgroup", probe_cgroup },
	{ "release-agent", probe_release_agent },
	{ "nftables", probe_nftables },
	{ "seccomp", probe_seccomp },
	{ "landlock", probe_landlock },
	{ "peerpidfd", probe_peerpidfd },
	{ "descriptors", check_descriptors },
	{ "dumpable", check_dumpable },
	{ "pid-max", check_pid_max },
	{ "file-max", check_file_max },
	{ "memory", check_memory },
	{ "state", check_state },
	{ "disk", check_disk },
	{ "runtime", check_runtime },
	{ "rootfs", check_rootfs },
};
#define NCHECKS	(sizeof checks / sizeof checks[0])

static const char *const	words[] = { "ok", "warn", "fail" };
static const char		*given;	/* args_host()'s, for cures */

#define GIB	(UINT64_C(1) << 30)
#define MIB	(UINT64_C(1) << 20)

void
finding_set(struct finding *f, enum verdict v, const char *cure,
    const char *fmt, ...)
{
	va_list	ap;

	f->verdict = v;
	(void)str_copy(f->cure, cure, sizeof f->cure);
	va_start(ap, fmt);
	(void)vsnprintf(f->detail, sizeof f->detail, fmt, ap);
	va_end(ap);
}

/* ---- what is there ----------------------------------------------------- */

static void
check_programs(const struct conf *c, struct finding *f)
{
	static const char *const	names[] = { "privd", "maker", "netd",
	    "stored", "apid", "runner", "wb" };
	char				*path;
	size_t				 i;
	int				 rc;

	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		path = xasprintf("%s/%s", c->libexec_dir, names[i]);
		rc = access(path, X_OK);
		if (rc == -1)
			finding_set(f, V_FAIL, "install again, or set "
			    "libexec-dir", "%s: %s", path, strerror(errno));
		free(path);
		if (rc == -1)
			return;
	}
	finding_set(f, V_OK, "", "%s", c->libexec_dir);
}

static void
check_users(const struct conf *c, struct finding *f)
{
	static const char *const	names[] = { "_workbox-netd",
	    "_workbox-stored", "_workbox-apid" };
	const struct passwd		*pw;
	char				 cure[128];
	size_t				 i;

	(void)c;
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		pw = getpwnam(names[i]);
		if (pw != NULL && pw->pw_uid != 0)
			continue;
		(void)snprintf(cure, sizeof cure, "sh etc/install.sh, or "
		    "useradd --system --user-group %s", names[i]);
		finding_set(f, V_FAIL, cure, pw == NULL ?
		    "there is no user %s" : "user %s has uid 0", names[i]);
		return;
	}
	if (getgrnam("workbox") == NULL)
		finding_set(f, V_WARN, "groupadd --system workbox", "there is "
		    "no group workbox: only root can use the unix socket");
	else
		finding_set(f, V_OK, "", "%s, %s, %s; group workbox",
		    names[0], names[1], names[2]);
}

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

static void
check_capabilities(const struct conf *c, struct finding *f)
{
	struct __user_cap_header_struct	h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	d[2];
	uint64_t			eff;
	size_t				i;

	(void)c;
	if (syscall(SYS_capget, &h, d) == -1) {
		finding_set(f, V_FAIL, "", "capget: %s", strerror(errno));
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

static int
proc_u64(const char *path, const char *word, uint64_t *ret)
{
	auto_free char	*text = NULL;
	const char	*p;
	size_t		 len;

	if ((text = text_file(path, 65536, &len)) == NULL)
		return -1;
	if ((p = strstr(text, word)) == NULL)
		return -1;
	p += strlen(word);
	return sscanf(p, "%" SCNu64, ret) == 1 ? 0 : -1;
}

/* Raised as serve does it; nothing after this minds. */
static void
check_descriptors(const struct conf *c, struct finding *f)
{
	rlim_t		want = START_FILES(c);
	struct rlimit	rl, more = { want, want };

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1 || (rl.rlim_max < want &&
	    setrlimit(RLIMIT_NOFILE, &more) == -1))
		finding_set(f, V_FAIL, "raise the hard limit (ulimit -Hn, "
		    "LimitNOFILE=), or lower max-boxes", "the hard limit is "
		    "%llu, max-boxes needs %llu",
		    (unsigned long long)rl.rlim_max, (unsigned long long)want);
	else
		finding_set(f, V_OK, "", "at most %llu in a process",
		    (unsigned long long)(rl.rlim_max < want ? want :
		    rl.rlim_max));
}

static void
check_dumpable(const struct conf *c, struct finding *f)
{
	uint64_t	v = 0;

	(void)c;
	if (proc_u64("/proc/sys/fs/suid_dumpable", "", &v) == 0 && v == 1)
		finding_set(f, V_WARN, "sysctl -w fs.suid_dumpable=0",
		    "fs.suid_dumpable is 1: each new supervisor can be read "
		    "for a moment by what runs in its sandbox");
	else
		finding_set(f, V_OK, "", "fs.suid_dumpable is %" PRIu64, v);
}

static void
check_pid_max(const struct conf *c, struct finding *f)
{
	uint64_t	max, hold;

	if (proc_u64("/proc/sys/kernel/pid_max", "", &max) == -1) {
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
static void
check_file_max(const struct conf *c, struct finding *f)
{
	uint64_t	max, one = c->default_memory / 256;

	if (proc_u64("/proc/sys/fs/file-max", "", &max) == -1) {
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

static void
check_memory(const struct conf *c, struct finding *f)
{
	uint64_t	kib;

	if (proc_u64("/proc/meminfo", "MemAvailable:", &kib) == -1) {
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

/* With serve's own eyes. */
static void
check_state(const struct conf *c, struct finding *f)
{
	auto_free char	*install = xasprintf("workbox runtime install%s",
	    given);
	auto_free char	*own = xasprintf("chown root %s && chmod go-w %s",
	    c->state_dir, c->state_dir);
	auto_close int	 fd = open(c->state_dir, O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC);
	int		 safe = fd == -1 ? -1 : state_safe(fd);

	if (safe == 1)
		finding_set(f, V_OK, "", "only root can write %s",
		    c->state_dir);
	else if (safe == 0)
		finding_set(f, V_FAIL, own, "%s: expected a directory that "
		    "only root can write", c->state_dir);
	else if (errno == ENOENT)
		finding_set(f, V_WARN, install, "%s is not there",
		    c->state_dir);
	else
		finding_set(f, V_FAIL, "give another directory with --state "
		    "or state-dir", "%s: %s", c->state_dir, strerror(errno));
}

static void
check_disk(const struct conf *c, struct finding *f)
{
	auto_free char	*path = xstrdup(c->state_dir);
	struct statvfs	 st;
	uint64_t	 left, floor = c->disk_floor;
	char		*slash;

	while (statvfs(path, &st) == -1) {
		if (errno != ENOENT || (slash = strrchr(path, '/')) == NULL) {
			finding_set(f, V_FAIL, "give another directory with "
			    "--state or state-dir", "%s: %s", path,
			    strerror(errno));
			return;
		}
		slash[slash == path] = '\0';	/* at last "/" */
	}
	left = (uint64_t)st.f_bavail * st.f_frsize;
	if (floor == 0)
		floor = (uint64_t)st.f_blocks * st.f_frsize / 20;
	if (c->disk_floor == 0 && floor < GIB)
		floor = GIB;
	finding_set(f, left < floor ? V_FAIL : left < 2 * floor ? V_WARN :
	    V_OK, left < 2 * floor ? "free space, or set disk-floor" : "",
	    "%" PRIu64 " MiB free at %s; creates are refused below %" PRIu64
	    " MiB", left / MIB, path, floor / MIB);
}

static void
check_runtime(const struct conf *c, struct finding *f)
{
	auto_free char	*cure = xasprintf("workbox runtime install%s", given);
	char		 why[256];

	if (runtime_check(c, why, sizeof why) == 0)
		finding_set(f, V_OK, "", "%s/runtime", c->state_dir);
	else
		finding_set(f, V_WARN, cure, "%s", why);
}

static void
check_rootfs(const struct conf *c, struct finding *f)
{
	auto_free char	*cure = xasprintf("workbox rootfs build minimal%s, or "
	    "workbox rootfs default NAME%s where there is one", given, given);
	auto_close int	 dir = state_dir(c, "rootfs");
	char		 name[64];
	struct stat	 st;
	ssize_t		 n;

	n = dir == -1 ? -1 : readlinkat(dir, "default", name, sizeof name - 1);
	name[n > 0 ? n : 0] = '\0';
	if (n <= 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		finding_set(f, V_WARN, cure, "there is no default root file system in %s/rootfs",
		    c->state_dir);
	else
		finding_set(f, V_OK, "", "default is %s", name);
}

/* ---- the system calls of a sandbox ------------------------------------- */

static const struct { const char *verdict, *names; } calls[] = {
#define F_ALLOW(n)	{ "allow", n },
#define F_EPERM(n)	{ "EPERM", n },
#define F_ENOSYS(n)	{ "ENOSYS", n },
#include "filter.def"
};

static const char *const	call_args[] = {
#define F_ARG(c, e, a, t, m, v, why)				why,
#define F_AND(c, e, a, t, m, v, a2, t2, m2, v2, why)		why,
#include "filter.def"
};

static unsigned int
print_names(const char *verdict)
{
	const char	*p;
	size_t		 i, len, col = 0;
	unsigned int	 n = 0;

	printf("%s:\n", verdict);
	for (i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		if (strcmp(calls[i].verdict, verdict) != 0)
			continue;
		for (p = calls[i].names; *p != '\0'; p += len, p += *p == ' ') {
			len = strcspn(p, " ");
			if (col > 0 && col + len > 70) {
				putchar('\n');
				col = 0;
			}
			col += (size_t)printf("%s%.*s", col == 0 ? "  " : " ",
			    (int)strcspn(p, " :"), p);
			n++;
		}
	}
	printf("\n");
	return n;
}

static int
print_calls(void)
{
	unsigned int	allow, eperm, enosys;
	size_t		i, n = sizeof call_args / sizeof call_args[0];

	allow = print_names("allow");
	eperm = print_names("EPERM");
	enosys = print_names("ENOSYS");
	printf("by argument:\n");
	for (i = 0; i < n; i++)
		printf("  %s\n", call_args[i]);
	printf("%u allowed, %u EPERM, %u ENOSYS, %zu by argument; all that "
	    "the kernel has besides: ENOSYS; other architectures: killed\n",
	    allow, eperm, enosys, n);
	return 0;
}

/* ---- the whole --------------------------------------------------------- */

static void
print_one(const char *name, const struct finding *f)
{
	printf("%-4s %s: %s\n", words[f->verdict], name, f->detail);
	if (f->cure[0] != '\0')
		printf("     cure: %s\n", f->cure);
	(void)fflush(stdout);
}

static json_t *
one_json(const char *name, const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:s?}", "name", name, "verdict",
	    words[f->verdict], "detail", f->detail, "cure",
	    f->cure[0] != '\0' ? f->cure : NULL);
}

static int
doctor_main(const struct args *a)
{
	static struct conf	 c;
	struct finding		 f;
	json_t			*all;
	const char		*cgroup = args_get(a, "cgroup");
	unsigned int		 n[3] = { 0, 0, 0 };
	size_t			 i;

	if (args_get(a, "calls") != NULL)
		return print_calls();
	given = args_host(a);		/* for as long as we live */
	if (config_load(a, &c) != 0 ||
	    (cgroup != NULL && config_cgroup(&c, cgroup) != 0))
		return 2;
	if (geteuid() != 0) {
		(void)fail("expected to be run as root");
		return 2;
	}
	all = json_array();
	for (i = 0; i < NCHECKS; i++) {
		memset(&f, 0, sizeof f);
		checks[i].fn(&c, &f);
		n[f.verdict]++;
		if (args_json(a))
			json_array_append_new(all, one_json(checks[i].name,
			    &f));
		else
			print_one(checks[i].name, &f);
	}
	all = json_pack("{s:o, s:i, s:i, s:i}", "checks", all, "ok", n[V_OK],
	    "warn", n[V_WARN], "fail", n[V_FAIL]);
	if (args_json(a))
		(void)json_print(all);
	else
		printf("%u ok, %u warn, %u fail\n", n[V_OK], n[V_WARN],
		    n[V_FAIL]);
	json_decref(all);
	return n[V_FAIL] > 0;
}
