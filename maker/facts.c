/*
 * facts: the host's side of a box's proof.
 *
 * Everything is read from the kernel now, nothing from what privd remembers
 * having done, and held against what was asked.  The first field that is not
 * as it must be is the verdict; where that is a limit, all limits that are not.
 *
 * Safe when the box is hostile: pid 1 is read through a /proc directory that
 * its pidfd vouched for, and what is read are the kernel's words.
 */
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif
#define STOP_MS	100	/* of a process that does not stop */

/* The namespaces are its own, and the user namespace belongs to the box. */
static const char *
ns_differs(const struct box_ask *ask, int proc, int netns,
    const struct row_facts *f)
{
	auto_close int	 own = -1, user = -1;
	struct row_facts h = { 0 };
	struct stat	 st;
	uid_t		 owner;

	own = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	user = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
	if (user == -1 || ioctl(user, NS_GET_OWNER_UID, &owner) == -1 ||
	    owner != ask->uid || own == -1 || facts_ns(own, &h) == -1 ||
	    f->ns_user == h.ns_user)
		return "ns_user";
	if (f->ns_mnt == h.ns_mnt)
		return "ns_mnt";
	if (f->ns_pid == h.ns_pid || f->nspid != 1)
		return "ns_pid";
	if (f->ns_net == h.ns_net || (netns != -1 &&
	    (fstat(netns, &st) == -1 || f->ns_net != st.st_ino)))
		return "ns_net";
	return f->ns_ipc == h.ns_ipc ? "ns_ipc" :
	    f->ns_uts == h.ns_uts ? "ns_uts" :
	    f->ns_cgroup == h.ns_cgroup ? "ns_cgroup" : NULL;
}

/*
 * In whose user namespace each of the others was made: the mounts in the
 * box's, which locks them; nothing else, or box root would have power over it.
 */
static const char *
owners(int proc, const struct row_facts *f, struct msg_box_facts_are *a)
{
	static const char *const	names[] = { "mnt", "pid", "net", "ipc",
	    "uts", "cgroup" };
	const char	*bad = NULL;
	char		 path[16], part[24];
	struct stat	 st, own;
	size_t		 i, len = 0;
	int		 fd, user, boxs;
	uid_t		 uid;

	if (stat("/proc/self/ns/user", &own) == -1)
		return "ns_owners";
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(path, sizeof(path), "ns/%s", names[i]);
		fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
		user = fd == -1 ? -1 : ioctl(fd, NS_GET_USERNS);
		fd_close(&fd);
		if (user == -1 || fstat(user, &st) == -1)
			st.st_ino = 0;
		/* netd's own and the host's belong to root, a box's to its k */
		if (i == 2 && (ioctl(user, NS_GET_OWNER_UID, &uid) == -1 ||
		    uid == 0))
			st.st_ino = 0;
		fd_close(&user);
		boxs = st.st_ino == f->ns_user;
		if (st.st_ino == 0 || boxs != (i == 0))
			bad = "ns_owners";
		(void)snprintf(part, sizeof(part), "%s%s:%s", i ? " " : "",
		    names[i], boxs ? "box" : st.st_ino == own.st_ino ?
		    "host" : "other");
		(void)str_copy(a->ns_owners + len, part,
		    sizeof(a->ns_owners) - len);
		len += strlen(part);
	}
	return bad;
}

/* Ours may be from an earlier look, which did not wait any longer. */
static int
seize(pid_t pid)
{
	int	 seized = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;

	if (!seized && errno != EPERM)
		return -1;
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0)
		return 0;
	if (!seized)
		errno = EPERM;
	return -1;
}

/*
 * Stops a process; whether it is the one of pidfd.  ETIMEDOUT: it gets no
 * processor; when it stops after all, the reaper lets it go.
 */
static int
stop(pid_t pid, int pidfd)
{
	int	 i, st;

	if (seize(pid) == -1)
		return -1;
	for (i = 0; waitpid(pid, &st, __WALL | WNOHANG) != pid; i++) {
		if (i == STOP_MS) {
			errno = ETIMEDOUT;
			return -1;
		}
		/* mostly it stops at once */
		(void)poll(NULL, 0, i != 0 ? 1 : 0);
	}
	return (int)syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0);
}

/* The programs that the kernel holds for it, hashed as mkfilter does. */
static int
filters(pid_t pid, int pidfd, char ret_hex[65])
{
	static uint8_t	 prog[4096 * 8];	/* the kernel's most */
	SHA2_CTX	 sha;
	long		 n = 0;
	int		 i, err;

	if (stop(pid, pidfd) == -1)
		return -1;
	SHA256Init(&sha);
	for (i = 0; i < BOX_FILTERS && n != -1; i++)
		if ((n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, i, prog)) !=
		    -1)
			SHA256Update(&sha, prog, (size_t)n * 8);
	err = errno;
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);	/* or it has ended */
	errno = err;
	if (n == -1)
		return -1;
	(void)SHA256End(&sha, ret_hex);
	return 0;
}

/*
 * "filter" or NULL; that too where the kernel tells of none: EPERM of Yama,
 * EINVAL, EIO.  -1: too late, and nothing is known.
 */
static int
filters_differ(const struct box_ask *ask, int pidfd,
    struct msg_box_facts_are *a, const char **ret_v)
{
	int	 same;

	if (filters((pid_t)a->host_pid, pidfd, a->filter) == 0)
		same = strcmp(a->filter, ask->filter) == 0;
	else if (errno == ETIMEDOUT)
		return -1;
	else
		same = errno == EPERM || errno == EINVAL || errno == EIO;
	*ret_v = same ? NULL : "filter";
	return 0;
}

static const char *
facts_differ(const struct box_ask *ask, const struct row_facts *f)
{
	char	 map[64];

	(void)snprintf(map, sizeof(map), "0 %u %u", ask->uid, BOX_IDS);
	if (strcmp(f->uid_map, map) != 0)
		return "uid_map";
	if (strcmp(f->gid_map, map) != 0)
		return "gid_map";
	if (strcmp(f->setgroups, "allow") != 0)
		return "setgroups";
	if (f->cap_inh != 0 || f->cap_amb != 0)
		return f->cap_inh != 0 ? "cap_inh" : "cap_amb";
	if (f->cap_prm != BOX_CAPS || f->cap_eff != BOX_CAPS)
		return f->cap_prm != BOX_CAPS ? "cap_prm" : "cap_eff";
	if (f->cap_bnd != BOX_CAPS)
		return "cap_bnd";
	if (f->no_new_privs != 1)
		return "no_new_privs";
	if (f->seccomp_mode != 2)
		return "seccomp_mode";
	if (f->seccomp_filters != BOX_FILTERS)
		return "seccomp_filters";
	if (strcmp(f->root, "/") != 0 || strcmp(f->cwd, "/") != 0)
		return f->root[1] != '\0' ? "root" : "cwd";
	return mounts_agree(f->mounts.data, f->mounts.len) ? NULL : "mounts";
}

int
box_place(int proc, const char *id, char ret[256])
{
	char	 buf[4096], want[64], *p;
	size_t	 len, tail;

	if (facts_file(proc, "cgroup", buf, sizeof(buf)) == -1)
		return -1;
	p = strncmp(buf, "0::", 3) == 0 ? buf : strstr(buf, "\n0::");
	if (p == NULL || (p = strchr(p, '/')) == NULL)
		return -1;
	p[strcspn(p, "\n")] = '\0';
	if (!wire_ascii_ok(CS_PRINT, p, strlen(p)) ||
	    str_copy(ret, p, 256) == -1)
		return -1;
	(void)snprintf(want, sizeof(want), "/%s/box/runner", id);
	len = strlen(p);
	tail = strlen(want);
	return len >= tail && strcmp(p + len - tail, want) == 0 ? 0 : -1;
}

/* Field 22 of stat, and where it is. */
static const char *
place(int proc, const char *id, struct msg_box_facts_are *a)
{
	char	 buf[4096], *p;
	int	 i;

	if (facts_file(proc, "stat", buf, sizeof(buf)) == -1 ||
	    (p = strrchr(buf, ')')) == NULL)
		return "start_time";
	for (i = 2; i < 22 && p != NULL; i++)
		p = strchr(p + 1, ' ');
	a->start_time = p == NULL ? 0 : strtoull(p, NULL, 10);
	return box_place(proc, id, a->cgroup) == 0 ? NULL : "cgroup";
}

int
box_facts(const struct box_ask *ask, int pidfd, int netns, int whole,
    char mounts[FACTS_MOUNTS], struct msg_box_facts_are *ret)
{
	auto_close int			 proc = -1;
	struct row_facts		 f;
	struct box_limits		 now;
	const char			*v, *limit;

	memset(ret, 0, sizeof(*ret));
	if ((proc = box_proc(pidfd)) == -1)
		return box_fail("open /proc of pid 1");
	if (facts_read(proc, mounts, &f) == -1)
		return box_fail("read facts");
	facts_put(ret, &f);
	ret->host_pid = (uint64_t)box_pid(pidfd);
	limit = cgroup_differs(ask->id, &ask->limits, &now);
	ret->memory_bytes = now.memory_bytes;
	ret->cpu_milli = now.cpu_milli;
	ret->pids = now.pids;
	v = place(proc, ask->id, ret);
	if (runtime_of(proc, ret->runtime) == -1 && v == NULL)
		v = "runtime";
	if (v == NULL)
		v = facts_differ(ask, &f);
	if (v == NULL)
		v = ns_differs(ask, proc, netns, &f);
	if (v == NULL)
		v = owners(proc, &f, ret);
	if (v == NULL && whole &&
	    filters_differ(ask, pidfd, ret, &v) == -1)
		return box_fail("stop pid 1");
	if (v == NULL)
		v = limit == NULL ? "" : limit;
	(void)str_copy(ret->verdict, v, sizeof(ret->verdict));
	return 0;
}
