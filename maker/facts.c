/*
 * facts: the host's side of a box's proof.
 *
 * Everything is read from the kernel now, nothing from what privd remembers
 * having done, and held against what was asked.  The first field that is not
 * as it must be is the verdict.
 *
 * Safe when the box is hostile: pid 1 is read through a /proc directory that
 * its pidfd vouched for, and what is read are the kernel's words.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

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
	return mounts_agree(f->mounts.data, f->mounts.len) ? NULL : "mounts";
}

/* The v2 line of /proc/<pid>/cgroup, and field 22 of stat. */
static const char *
place(int proc, const char *id, struct msg_box_facts_are *a)
{
	char	 buf[4096], want[64], *p;
	size_t	 len, tail;
	int	 i;

	if (facts_file(proc, "stat", buf, sizeof(buf)) == -1 ||
	    (p = strrchr(buf, ')')) == NULL)
		return "start_time";
	for (i = 2; i < 22 && p != NULL; i++)
		p = strchr(p + 1, ' ');
	a->start_time = p == NULL ? 0 : strtoull(p, NULL, 10);
	if (facts_file(proc, "cgroup", buf, sizeof(buf)) == -1)
		return "cgroup";
	p = strncmp(buf, "0::", 3) == 0 ? buf : strstr(buf, "\n0::");
	if (p == NULL || (p = strchr(p, '/')) == NULL)
		return "cgroup";
	p[strcspn(p, "\n")] = '\0';
	if (!wire_charset_ok(CS_PRINT, p, strlen(p)) ||
	    str_copy(a->cgroup, p, sizeof(a->cgroup)) == -1)
		return "cgroup";
	(void)snprintf(want, sizeof(want), "/%s/box/runner", id);
	len = strlen(p);
	tail = strlen(want);
	return len >= tail && strcmp(p + len - tail, want) == 0 ? NULL :
	    "cgroup";
}

int
box_facts(const struct box_ask *ask, int pidfd, int netns,
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
		v = limit;
	(void)str_copy(ret->verdict, v == NULL ? "" : v,
	    sizeof(ret->verdict));
	return 0;
}
