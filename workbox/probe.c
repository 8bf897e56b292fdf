/*
 * probe: tries of the kernel, each in a child whose changes end with it:
 * namespaces, nftables, system-call filters, Landlock, peer pidfds.
 */
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/table.h>

#include "host.h"
#include "xmalloc.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77
#endif

/* ---- in a child -------------------------------------------------------- */

static struct outcome {
	char	step[64];
	int	err;
} *outcome;				/* shared with the child */

int
probe_step(const char *step)
{
	outcome->err = errno;
	(void)str_copy(outcome->step, step, sizeof outcome->step);
	return -1;
}

static void
child(int (*fn)(const struct conf *), const struct conf *c)
{
	int	null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(null, STDIN_FILENO);
	_exit(fn(c) == 0 ? 0 : 1);
}

int
probe_child(int (*fn)(const struct conf *), const struct conf *c,
    struct finding *f, const char *cure)
{
	pid_t	pid;
	int	status;

	outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcome == MAP_FAILED || (pid = fork()) == -1) {
		finding_set(f, V_FAIL, "", "fork: %s", strerror(errno));
		return -1;
	}
	if (pid == 0)
		child(fn, c);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		finding_set(f, V_FAIL, cure, "the try was ended by signal %d",
		    WTERMSIG(status));
	else if (status != 0)
		finding_set(f, V_FAIL, cure, "%s: %s", outcome->step,
		    strerror(outcome->err));
	(void)munmap(outcome, sizeof *outcome);
	return status == 0 ? 0 : -1;
}

static int
write_file(const char *path, const char *text)
{
	auto_close int	fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd != -1 && write(fd, text, strlen(text)) ==
	    (ssize_t)strlen(text) ? 0 : -1;
}

/* ---- namespaces -------------------------------------------------------- */

static int
write_map(pid_t pid, const char *file, uint64_t base)
{
	char	path[64], map[64];

	(void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
	(void)snprintf(map, sizeof map, "0 %llu 65536\n",
	    (unsigned long long)base);
	return write_file(path, map);
}

/* As a box's is made: by its own base uid, mapped by root. */
static void
userns_child(uint64_t base, int ready)
{
	struct { uint32_t version; int pid; } h = { 0x20080522, 0 };
	struct { uint32_t eff, prm, inh; }    d[2];

	if (syscall(SYS_capget, &h, d) == -1 ||
	    setresgid((gid_t)-1, (gid_t)base, (gid_t)-1) == -1 ||
	    setresuid((uid_t)-1, (uid_t)base, (uid_t)-1) == -1)
		_exit(1);
	d[0].eff = d[0].prm;
	d[1].eff = d[1].prm;
	if (syscall(SYS_capset, &h, d) == -1 ||
	    unshare(CLONE_NEWUSER) == -1 || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

int
probe_userns(const struct conf *c)
{
	char		path[64], byte;
	auto_close int	in = -1, out = -1;
	int		p[2], fd = -1, mapped;
	pid_t		pid;

	if (pipe2(p, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		return probe_step("fork");
	in = p[0];
	out = p[1];
	if (pid == 0)
		userns_child(c->uid_base, p[1]);
	fd_close(&out);
	errno = EPERM;
	if (read(in, &byte, 1) == 1) {
		mapped = write_map(pid, "uid_map", c->uid_base) == 0 &&
		    write_map(pid, "gid_map", c->uid_base) == 0;
		(void)snprintf(path, sizeof path, "/proc/%ld/ns/user",
		    (long)pid);
		fd = mapped ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	}
	if (fd == -1)
		(void)probe_step("user namespace");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return fd;
}

static int
try_namespaces(const struct conf *c)
{
	static const struct { int flag; const char *name; } kinds[] = {
		{ CLONE_NEWNS, "mount namespace" },
		{ CLONE_NEWNET, "network namespace" },
		{ CLONE_NEWIPC, "ipc namespace" },
		{ CLONE_NEWUTS, "uts namespace" },
		{ CLONE_NEWCGROUP, "cgroup namespace" },
		{ CLONE_NEWPID, "pid namespace" },
	};
	size_t	i;

	if (probe_userns(c) == -1)
		return -1;
	for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (unshare(kinds[i].flag) == -1)
			return probe_step(kinds[i].name);
	return 0;
}

void
probe_namespaces(const struct conf *c, struct finding *f)
{
	if (probe_child(try_namespaces, c, f, "a kernel with this kind of "
	    "namespace; see user.max_*_namespaces in sysctl") == 0)
		finding_set(f, V_OK, "", "user, mount, pid, network, ipc, "
		    "uts, cgroup");
}

/*
 * What netd does inside its user namespace: a /proc of its own (refused
 * where something covers parts of the host's), a namespace below, a netns
 * there and its settings.
 */
static int
in_nested(void)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    NULL) == -1)
		return probe_step("proc in a user namespace");
	if (unshare(CLONE_NEWUSER) == -1)
		return probe_step("user namespace in a user namespace");
	/* A change of user makes /proc/self another's. */
	if (prctl(PR_SET_DUMPABLE, 1) == -1 ||
	    write_file("/proc/self/setgroups", "deny") == -1 ||
	    write_file("/proc/self/uid_map", "0 0 1") == -1 ||
	    write_file("/proc/self/gid_map", "0 0 1") == -1)
		return probe_step("map of the inner user namespace");
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace in a user namespace");
	if (write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start",
	    "8") == -1)
		return probe_step("write in /proc/sys/net");
	return 0;
}

static int
try_nested(const struct conf *c)
{
	auto_close int	ns = probe_userns(c);
	pid_t		pid;
	int		status = 1;

	if (ns == -1)
		return -1;
	if (setns(ns, CLONE_NEWUSER) == -1 || setgroups(0, NULL) == -1 ||
	    setresgid(0, 0, 0) == -1 || setresuid(0, 0, 0) == -1)
		return probe_step("enter a user namespace");
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == -1)
		return probe_step("mount namespace in a user namespace");
	if ((pid = fork()) == -1)
		return probe_step("fork");
	if (pid == 0)
		_exit(in_nested() == 0 ? 0 : 1);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	return status == 0 ? 0 : -1;
}

void
probe_nested(const struct conf *c, struct finding *f)
{
	if (probe_child(try_nested, c, f, "let root of a user namespace make "
	    "namespaces (user.max_user_namespaces, AppArmor); in a container, "
	    "one whose /proc is not masked") == 0)
		finding_set(f, V_OK, "", "netd can make network namespaces "
		    "inside its user namespace");
}

/* ---- nftables ---------------------------------------------------------- */

static int	want_family;

static void
put_table(struct mnl_nlmsg_batch *b, uint32_t seq)
{
	struct nftnl_table	*t = nftnl_table_alloc();
	struct nlmsghdr		*nlh;

	nftnl_table_set_str(t, NFTNL_TABLE_NAME, "doctor");
	nlh = nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(b),
	    NFT_MSG_NEWTABLE, (uint16_t)want_family, NLM_F_CREATE, seq);
	nftnl_table_nlmsg_build_payload(nlh, t);
	nftnl_table_free(t);
	mnl_nlmsg_batch_next(b);
}

static void
put_chain(struct mnl_nlmsg_batch *b, uint32_t seq)
{
	struct nftnl_chain	*ch = nftnl_chain_alloc();
	struct nlmsghdr		*nlh;

	nftnl_chain_set_str(ch, NFTNL_CHAIN_TABLE, "doctor");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_NAME, "out");
	nftnl_chain_set_str(ch, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(ch, NFTNL_CHAIN_PRIO, 0);
	nftnl_chain_set_u32(ch, NFTNL_CHAIN_POLICY, NF_DROP);
	nlh = nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(b),
	    NFT_MSG_NEWCHAIN, (uint16_t)want_family, NLM_F_CREATE | NLM_F_ACK,
	    seq);
	nftnl_chain_nlmsg_build_payload(nlh, ch);
	nftnl_chain_free(ch);
	mnl_nlmsg_batch_next(b);
}

/* A table with a chain in the output hook, in a netns that ends with us. */
static int
try_nftables(const struct conf *c)
{
	char			 buf[8192], in[8192];
	struct mnl_nlmsg_batch	*b;
	struct mnl_socket	*s;
	ssize_t			 n;

	(void)c;
	if (unshare(CLONE_NEWNET) == -1)
		return probe_step("network namespace");
	if ((s = mnl_socket_open(NETLINK_NETFILTER)) == NULL ||
	    mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == -1)
		return probe_step("netfilter by netlink");
	b = mnl_nlmsg_batch_start(buf, sizeof buf / 2);
	nftnl_batch_begin(mnl_nlmsg_batch_current(b), 1);
	mnl_nlmsg_batch_next(b);
	put_table(b, 2);
	put_chain(b, 3);
	nftnl_batch_end(mnl_nlmsg_batch_current(b), 4);
	mnl_nlmsg_batch_next(b);
	if (mnl_socket_sendto(s, mnl_nlmsg_batch_head(b),
	    mnl_nlmsg_batch_size(b)) == -1)
		return probe_step("nftables");
	n = mnl_socket_recvfrom(s, in, sizeof in);
	if (n == -1 || mnl_cb_run(in, (size_t)n, 0,
	    mnl_socket_get_portid(s), NULL, NULL) == -1)
		return probe_step(want_family == NFPROTO_IPV4 ?
		    "nftables, family ip" : "nftables, family ip6");
	return 0;
}

void
probe_nftables(const struct conf *c, struct finding *f)
{
	static const int	families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };
	const char		*cure = "a kernel with nf_tables (modprobe "
	    "nf_tables), or netfilter = none for sandboxes without a network";
	size_t			 i;

	for (i = 0; i < 2; i++) {
		want_family = families[i];
		if (probe_child(try_nftables, c, f, cure) == -1) {
			if (strcmp(c->netfilter, "none") == 0) {
				f->verdict = V_WARN;
				(void)str_copy(f->cure, "configured with "
				    "netfilter none: nothing but the empty "
				    "network namespace holds", sizeof f->cure);
			}
			return;
		}
	}
	finding_set(f, V_OK, "", "tables of ip and ip6 through netlink");
}

/* ---- filters, Landlock, pidfds ----------------------------------------- */

static int
try_seccomp(const struct conf *c)
{
	struct sock_filter	insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog	prog = { 4, insns };
	uint32_t		kill_all = SECCOMP_RET_KILL_PROCESS;

	(void)c;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kill_all) ==
	    -1)
		return probe_step("seccomp action kill-process");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return probe_step("no_new_privs");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == -1)
		return probe_step("seccomp filter");
	if (syscall(SYS_getppid) != -1 || errno != ENOSYS) {
		errno = EINVAL;
		return probe_step("seccomp filter does not filter");
	}
	return 0;
}

void
probe_seccomp(const struct conf *c, struct finding *f)
{
	if (probe_child(try_seccomp, c, f, "a kernel with "
	    "CONFIG_SECCOMP_FILTER") == 0)
		finding_set(f, V_OK, "", "filters work; workbox doctor "
		    "--calls prints what a sandbox may call");
}

void
probe_landlock(const struct conf *c, struct finding *f)
{
	long	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);

	if (abi >= 1)
		finding_set(f, V_OK, "", "ABI %ld", abi);
	else if (strcmp(c->landlock, "none") == 0)
		finding_set(f, V_WARN, "configured with landlock none: the "
		    "daemons' fence lacks it", "%s", strerror(errno));
	else
		finding_set(f, V_FAIL, "boot with landlock in lsm=, or "
		    "landlock = none in the configuration", "Landlock: %s",
		    strerror(errno));
}

void
probe_peerpidfd(const struct conf *c, struct finding *f)
{
	int		sv[2], fd = -1, rc;
	socklen_t	len = sizeof fd;

	(void)c;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1) {
		finding_set(f, V_FAIL, "", "socketpair: %s", strerror(errno));
		return;
	}
	rc = getsockopt(sv[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &len);
	fd_close(&sv[0]);
	fd_close(&sv[1]);
	fd_close(&fd);
	if (rc == 0) {
		finding_set(f, V_OK, "", "sockets tell a pidfd of their peer");
		return;
	}
	fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd == -1)
		finding_set(f, V_FAIL, "kernel 6.1 or later", "pidfd_open: "
		    "%s", strerror(errno));
	else
		finding_set(f, V_OK, "", "by pid and pidfd_open: this kernel "
		    "has no SO_PEERPIDFD");
	fd_close(&fd);
}
