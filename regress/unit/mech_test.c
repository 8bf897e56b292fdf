/*
 * mech_test: the mechanics of a box (maker/box.h) against the kernel, with
 * mech_probe in the runner's place.  Root only; a private state directory,
 * a private cgroup name, no daemon.
 */
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <sha256.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "mech_box.h"
#include "mech_golden.h"
#include "xmalloc.h"

/* ---- the box -------------------------------------------------------------- */

START_TEST(test_facts)
{
	static struct msg_box_facts_are	 host;
	static char			 mounts[FACTS_MOUNTS];
	struct row_facts		 in, out;
	struct tbox			 b;
	uint8_t				 buf[32768];
	ssize_t				 n;
	const char			*v;
	char				 path[150], hash[65];
	int				 other;

	box_up(&b, 3);
	ck_assert_msg(box_facts(&b.ask, b.run.pidfd, b.netns, 1, mounts,
	    &host) == 0,
	    "%s", box_error());
	ck_assert_str_eq(host.verdict, "");
	(void)snprintf(path, sizeof(path), "%s/runtime/runner", state);
	ck_assert_ptr_nonnull(SHA256File(path, hash));
	ck_assert_str_eq(host.runtime, hash);
	/* The same code on both sides, the same answer. */
	ck_assert_int_eq(send(b.conn, "facts", 5, 0), 5);
	n = recv(b.conn, buf, sizeof(buf), 0);
	ck_assert_int_eq(wire_decode(&wire_row_facts, buf, (size_t)n, &in),
	    0);
	memset(&out, 0, sizeof(out));
	memcpy(&out, &host, offsetof(struct row_facts, wire_end));
	v = wire_differs(&wire_row_facts, &in, &out);
	ck_assert_msg(v == NULL, "%s differs", v);
	/* What is not as asked is told by name. */
	other = netns_new();
	ck_assert_int_eq(box_facts(&b.ask, b.run.pidfd, other, 1, mounts,
	    &host), 0);
	ck_assert_str_eq(host.verdict, "ns_net");
	(void)close(other);
	b.ask.limits.pids++;
	ck_assert_int_eq(box_facts(&b.ask, b.run.pidfd, b.netns, 1, mounts,
	    &host), 0);
	ck_assert_str_eq(host.verdict, "pids");
	ck_assert_int_eq((int)host.pids, 256);
	b.ask.limits.pids--;
	if (host.filter[0] != '\0') {	/* this kernel tells */
		ck_assert_str_eq(host.filter, filter_hash());
		b.ask.filter = "another";
		ck_assert_int_eq(box_facts(&b.ask, b.run.pidfd, b.netns, 1,
		    mounts, &host), 0);
		ck_assert_str_eq(host.verdict, "filter");
		b.ask.filter = filter_hash();
	}
	ck_assert_str_eq(host.ns_owners, "mnt:box pid:host net:other ipc:host "
	    "uts:host cgroup:host");
	/* It was stopped for a moment, and goes on. */
	ck_assert_str_eq(ask(&b, "ping"), "pong");
	b.ask.uid += BOX_IDS;
	ck_assert_int_eq(box_facts(&b.ask, b.run.pidfd, b.netns, 1, mounts,
	    &host), 0);
	ck_assert_str_eq(host.verdict, "uid_map");
	box_down(&b);
	/* A network of root's: netd's own, or one of the host's. */
	netns_owner = 0;
	box_up(&b, 3);
	netns_owner = 4711;
	ck_assert_int_eq(box_facts(&b.ask, b.run.pidfd, b.netns, 1, mounts,
	    &host), 0);
	ck_assert_str_eq(host.verdict, "ns_owners");
	box_down(&b);
}
END_TEST

START_TEST(test_nothing_of_the_host)
{
	struct tbox	 b;
	const char	*r;

	box_up(&b, 0);
	r = ask(&b, "sh cat /proc/1/mountinfo /proc/self/mountinfo");
	ck_assert_msg(strstr(r, state) == NULL && strstr(r, "/dev/vd") ==
	    NULL && strstr(r, "shared:") == NULL && strstr(r, "master:") ==
	    NULL, "%s", r);
	/* Neither descriptors nor names lead out. */
	ck_assert_str_eq(ask(&b, "dotdot 5"), "2");
	box_sh_ok(&b, "test $(hostname) = demo && test $(id -u) = 0");
	box_sh_ok(&b, "test \"$(cat /etc/hostname)\" = demo && grep -q "
	    "198.19.255.3 /etc/resolv.conf && grep -q localhost /etc/hosts"
	    " && test $(cat /etc/machine-id | wc -c) = 33");
	box_sh_ok(&b, "test ! -e /sys/kernel && test ! -s /proc/kallsyms && "
	    "test ! -s /proc/keys && test ! -s /proc/cmdline");
	box_sh_fails(&b, "cat /proc/1/environ");
	box_sh_fails(&b, "cat /proc/1/maps");
	box_sh_fails(&b, "ls /proc/1/root/");
	box_sh_fails(&b, "ls /proc/1/fd/");
	box_sh_fails(&b, "cat /opt/workbox/runner");
	/* all boxes share these: no inotify, no lock, which want to read */
	box_sh_fails(&b, "cat /opt/workbox/wb");
	box_sh_fails(&b, "ls /opt/workbox/");
	box_sh_fails(&b, "echo 1 >/opt/workbox/wb");
	box_sh_fails(&b, "echo 1000 >/proc/1/oom_score_adj");
	box_sh_fails(&b, "echo 19 >/proc/1/autogroup");
	box_sh_fails(&b, "echo x >/proc/sys/kernel/core_pattern");
	box_sh_fails(&b, "echo x >/proc/sys/net/ipv4/ip_forward");
	box_sh_fails(&b, "echo b >/proc/sysrq-trigger");
	box_down(&b);
}
END_TEST

/* mountinfo as pid 1 has it; the number before it is the exit status. */
static const char *
mounts_of(struct tbox *b)
{
	const char	*r = ask(b, "sh cat /proc/1/mountinfo");

	ck_assert_msg(strncmp(r, "0\n", 2) == 0, "%s", r);
	return r + 2;
}

START_TEST(test_mounts)
{
	struct tbox	 b;
	const char	*v;

	box_up(&b, 0);
	v = golden_mounts(mounts_of(&b));
	ck_assert_msg(v == NULL, "%s", v);
	/* /proc's files tell no size: these are read */
	box_sh_ok(&b, "cd /proc && test -z \"$(cat cmdline interrupts kallsyms "
	    "keys key-users 2>/dev/null)\"");
	box_sh_ok(&b, "for d in acpi asound bus fs pressure scsi; do test ! -d "
	    "/proc/$d || test -z \"$(ls /proc/$d)\" || exit 1; done");
	box_down(&b);
}
END_TEST

/* One line more, less, twice, or with another flag. */
START_TEST(test_mounts_differ)
{
	static const char more[] = "999 1 0:1 / /mnt rw,nosuid,nodev,relatime "
	    "- tmpfs workbox-tmp rw\n";
	struct tbox	 b;
	char		 text[FACTS_MOUNTS], *p;
	size_t		 n, first;

	box_up(&b, 0);
	n = strlen(mounts_of(&b));
	ck_assert_uint_lt(n + sizeof(more), sizeof(text));
	(void)str_copy(text, mounts_of(&b), sizeof(text));
	box_down(&b);
#define AGREE(len)	mounts_agree((const uint8_t *)text, len)
	ck_assert(AGREE(n));
	memcpy(text + n, more, sizeof(more));
	ck_assert(!AGREE(n + sizeof(more) - 1));
	first = strcspn(text, "\n") + 1;
	memcpy(text + n, text, first);
	ck_assert(!AGREE(n + first));
	ck_assert(!mounts_agree((const uint8_t *)text + first, n - first));
	ck_assert_ptr_nonnull(p = strstr(text, " ro,"));
	p[2] = 'w';
	ck_assert(!AGREE(n));
#undef AGREE
}
END_TEST

/* What it was given: the capabilities, and these descriptors alone. */
START_TEST(test_rights)
{
	struct tbox	 b;
	char		 path[64];
	struct dirent	*e;
	DIR		*d;
	unsigned int	 n = 0;

	box_up(&b, 0);
	box_sh_ok(&b, "grep -q 'CapBnd:." GOLDEN_CAPS "' /proc/self/status && "
	    "grep -q 'CapEff:." GOLDEN_CAPS "' /proc/self/status && "
	    "grep -q 'CapInh:.0000000000000000' /proc/self/status");
	(void)snprintf(path, sizeof(path), "/proc/%d/fd",
	    (int)box_pid(b.run.pidfd));
	ck_assert_ptr_nonnull(d = opendir(path));
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	(void)closedir(d);
	/* 0 to 2, control, boot, cgroups; one that it accepted */
	ck_assert_uint_eq(n, BOXFD_CGROUP2 + 1 + cgroup_sessions() + 1);
	box_down(&b);
}
END_TEST

/* The control of `dotdot 5': a descriptor of the host's mount is a way out. */
START_TEST(test_dotdot_control)
{
	pid_t	 pid;
	int	 st, fd;

	if ((pid = fork()) == 0) {
		fd = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY);
		if (fd == -1 || chroot(state) == -1 || chdir("/") == -1)
			_exit(2);
		_exit(openat(fd, "../../../../etc/hostname", O_RDONLY) == -1);
	}
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
}
END_TEST

START_TEST(test_files)
{
	struct tbox	 b;
	struct stat	 sb;
	char		 path[256];

	box_up(&b, 1);
	/* The rootfs is root's, whole, and not written to. */
	box_sh_ok(&b, "test \"$(stat -c %%u:%%g /lower/file)\" = 0:0");
	box_sh_ok(&b, "echo more >>/lower/file && rm /lower/sub -r && "
	    "mv /lower /moved && grep -q more /moved/file");
	sh("grep -q secret %s/rootfs/mini/lower/file && "
	    "! grep -q more %s/rootfs/mini/lower/file", state, state);
	/* What it makes is its own on the host, whatever it says. */
	box_sh_ok(&b, "cp() { cat /bin/busybox >$2; }; cp x /suid && "
	    "chown 1000:1000 /suid && chmod 6755 /suid");
	(void)snprintf(path, sizeof(path), "%s/sandboxes/%s/upper/suid",
	    state, b.id);
	ck_assert_int_eq(lstat(path, &sb), 0);
	ck_assert_uint_eq(sb.st_uid, b.ask.uid + 1000);
	box_sh_fails(&b, "chown 70000 /suid");
	/* No device: neither made nor found. */
	box_sh_fails(&b, "mknod /tmp/n c 1 3");
	box_sh_fails(&b, "mknod /n b 8 0");
	box_sh_fails(&b, "mknod /tmp/n c 0 0");
	box_sh_fails(&b, "cat /node");
	box_sh_ok(&b, "mkfifo /tmp/f && cat /dev/null && head -c 9 "
	    "/dev/urandom >/dev/null && test -c /dev/ptmx -a -c /dev/tty");
	/* Mounts are locked. */
	box_sh_fails(&b, "umount /proc/sys");
	box_sh_fails(&b, "mount -t tmpfs x /tmp");
	/* Bounded, and charged to the box. */
	box_sh_fails(&b, "dd if=/dev/zero of=/dev/shm/x bs=1M count=100");
	box_down(&b);
}
END_TEST

/* ---- limits ---------------------------------------------------------------- */

START_TEST(test_limits)
{
	struct msg_box_health_is u;
	struct box_limits	 l;
	struct tbox		 b;
	const char		*r;
	int			 n, ev;

	box_up(&b, 4);
	ck_assert_ptr_null(cgroup_differs(b.id, &b.ask.limits, &l));
	ck_assert_uint_eq(l.memory_bytes, 128 << 20);
	ck_assert_uint_eq(l.cpu_milli, 1000);
	ck_assert_uint_eq(l.pids, 256);
	/* Sessions die of what would have killed the box: 128 - 16 - 8. */
	r = ask(&b, "hog 64");
	ck_assert_str_eq(r, "0\n");
	r = ask(&b, "hog 110");
	ck_assert_str_eq(r, "9\n");
	r = ask(&b, "fork 1000");
	ck_assert_int_eq(sscanf(r, "%*d\n%d", &n), 1);
	ck_assert_msg(n > 150 && n < 192, "%d forks: %s", n, r);
	ck_assert_str_eq(ask(&b, "ping"), "pong");
	ck_assert_int_eq(cgroup_usage(b.id, 1, &u), 0);
	ck_assert_uint_ge(u.oom_kills, 1);
	ck_assert_uint_gt(u.cpu_usec, 0);
	/* Frozen; thawed; killed while frozen. */
	ev = cgroup_events(b.id);
	ck_assert_int_eq(populated(ev), 1);
	ck_assert_int_eq(cgroup_freeze(b.id, 1), 0);
	wait_fd(ev, POLLPRI);
	ck_assert_int_eq(cgroup_freeze(b.id, 0), 0);
	ck_assert_str_eq(ask(&b, "ping"), "pong");
	ck_assert_int_eq(cgroup_freeze(b.id, 1), 0);
	(void)close(ev);
	box_down(&b);
}
END_TEST

/* What is swapped out is counted, where the kernel counts it at all. */
START_TEST(test_swap)
{
	struct tbox	 b;
	char		 cmd[512];

	box_up(&b, 4);
	(void)snprintf(cmd, sizeof(cmd), "find /sys/fs/cgroup -path "
	    "'*/%s/box/memory.*' -o -path '*/%s/box/sessions/memory.*' | "
	    "while read f; do case $f in *.swap.max) test $(cat $f) = 0 ;; "
	    "*.memsw.limit_in_bytes) test $(cat $f) -le %u ;; esac || exit 1; "
	    "done", b.id, b.id, 128 << 20);
	ck_assert_int_eq(system(cmd), 0);
	box_down(&b);
}
END_TEST

/* B51: what the kernel counts per user, it counts for the box. */
START_TEST(test_per_user)
{
	struct tbox	 a, b;
	int		 i, fd;

	box_up(&a, 5);
	box_up(&b, 6);
	ck_assert_int_gt(atoi(ask(&a, "inotify")), 10);
	for (i = 0; i < 10; i++) {
		fd = inotify_init1(IN_CLOEXEC);
		ck_assert_int_ne(fd, -1);
	}
	ck_assert_int_gt(atoi(ask(&b, "inotify")), 10);
	box_down(&a);
	box_down(&b);
}
END_TEST

/* ---- finding and connecting -------------------------------------------------- */

START_TEST(test_attach)
{
	struct tbox	 a, b;
	uint8_t		 token[BOX_TOKEN];
	char		 spec[64];
	struct stat	 st, net;
	struct ucred	 uc;
	socklen_t	 len = sizeof(uc);
	uint32_t	 uid;
	int		 fd, i, c[16];

	box_up(&a, 7);
	box_up(&b, 8);
	/* As a privd that has just started sees it. */
	ck_assert_int_eq(box_read(a.id, "spec", spec, sizeof(spec)), 14);
	ck_assert_str_eq(spec, "specification");
	ck_assert_int_eq(box_stat(a.id, "upper", &st), 0);
	ck_assert_uint_eq(uid = st.st_uid, slot_uid(7));
	ck_assert_int_eq(box_read(a.id, "host-token", token, BOX_TOKEN),
	    BOX_TOKEN);
	ck_assert_mem_eq(token, a.token, BOX_TOKEN);
	fd = box_find(a.id, uid);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(box_pid(fd), box_pid(a.run.pidfd));
	(void)close(fd);
	ck_assert_int_eq(box_find(a.id, uid + BOX_IDS), -1);
	/* Who listens is root of the box; nobody is of the host's network. */
	ck_assert_int_eq(getsockopt(a.conn, SOL_SOCKET, SO_PEERCRED, &uc,
	    &len), 0);
	ck_assert_uint_eq(uc.uid, slot_uid(7));
	ck_assert_int_ne(fd = ioctl(a.conn, SIOCGSKNS), -1);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(fstat(a.netns, &net), 0);
	ck_assert_uint_eq(st.st_ino, net.st_ino);
	(void)close(fd);
	/* Another box's pid 1 is not this box's. */
	ck_assert_int_eq(box_connect(a.id, uid, b.run.pidfd), -1);
	/* The queue is full: EAGAIN, at once. */
	ck_assert_int_eq(cgroup_freeze(a.id, 1), 0);
	for (i = 0; i < 16; i++)
		if ((c[i] = box_connect(a.id, uid, a.run.pidfd)) == -1)
			break;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(i, 9);
	while (i-- > 0)
		(void)close(c[i]);
	ck_assert_int_eq(cgroup_freeze(a.id, 0), 0);
	/* A dead box: no process, no connection, no facts. */
	ck_assert_int_eq(send(b.conn, "quit 5", 6, 0), 6);
	wait_fd(b.run.pidfd, POLLIN);
	ck_assert_int_eq(box_connect(b.id, b.ask.uid, b.run.pidfd), -1);
	ck_assert_int_eq(box_find(b.id, b.ask.uid), -1);
	box_down(&a);
	box_down(&b);
}
END_TEST

/* ---- failures ------------------------------------------------------------------ */

/* For what it is, and not because it is there already. */
static void
refused(const struct box_ask *bad, struct tbox *b)
{
	struct box_run	 run;

	ck_assert_int_eq(launch(bad, b, &run), -1);
	ck_assert_ptr_nonnull(strstr(box_error(), "what is asked for"));
}

START_TEST(test_failures)
{
	struct box_ask	 bad;
	struct box_run	 run;
	struct tbox	 b;
	char		 dir[128];
	ssize_t		 n;

	/* Nothing is made for what cannot be named. */
	box_up(&b, 9);
	bad = b.ask;
	bad.id = "../../../../../tmp/0000000";
	refused(&bad, &b);
	bad = b.ask;
	bad.name = "Not a name";
	refused(&bad, &b);
	bad.name = "x";
	bad.rootfs = "../sandboxes";
	refused(&bad, &b);
	bad.rootfs = "mini";
	bad.uid = 0;
	refused(&bad, &b);
	bad.uid = b.ask.uid;
	bad.limits.memory_bytes = conf.most.memory_bytes + 4096;
	refused(&bad, &b);
	bad.limits = b.ask.limits;
	bad.limits.pids = conf.most.pids + 1;
	refused(&bad, &b);
	bad.limits = b.ask.limits;
	bad.limits.cpu_milli = conf.most.cpu_milli + 1;
	refused(&bad, &b);
	bad.limits = b.ask.limits;	/* twice */
	ck_assert_int_eq(launch(&bad, &b, &run), -1);
	ck_assert_ptr_nonnull(strstr(box_error(), "make sandboxes"));
	box_down(&b);
	/* A link leads out of the directory of rootfs. */
	ulid_new(b.id);
	bad = b.ask;
	bad.rootfs = "evil";
	b.netns = b.conn = b.run.pidfd = -1;
	ck_assert_int_eq(launch(&bad, &b, &run), -1);
	ck_assert_ptr_nonnull(strstr(box_error(), "open rootfs evil"));
	box_down(&b);
	/* The network namespace never comes. */
	ulid_new(b.id);
	bad = b.ask;
	ck_assert_int_eq(launch(&bad, &b, &b.run), 0);
	(void)close(b.run.netns_fd);
	wait_fd(b.run.ready_fd, POLLIN);
	n = read(b.run.ready_fd, b.why, sizeof(b.why) - 1);
	ck_assert_msg(n > 0 && strncmp(b.why, "network namespace: ", 19) == 0,
	    "%.*s", (int)n, b.why);
	box_down(&b);
	/* A step of the child is told by its name, and cleaned up. */
	(void)snprintf(dir, sizeof(dir), "%s/rootfs/mini/proc", state);
	ck_assert_int_eq(close(open(dir, O_CREAT | O_WRONLY, 0600)), 0);
	ck_assert_int_eq(box_start(&b, 9), -1);
	ck_assert_msg(strncmp(b.why, "mount points: ", 14) == 0, "%s", b.why);
	box_down(&b);
	ck_assert_int_eq(unlink(dir), 0);
}
END_TEST

START_TEST(test_runtime)
{
	ck_assert_int_eq(box_init(&conf), 0);
	ck_assert_int_eq(runtime_intact(), 1);
	sh("echo >>%s/runtime/wb", state);
	ck_assert_int_eq(runtime_intact(), 0);
	ck_assert_int_eq(runtime_intact(), 0);
	sh("rm %s/runtime/wb", state);
	ck_assert_int_eq(runtime_intact(), 0);
	runtime_install();
	ck_assert_int_eq(runtime_intact(), 1);
	sh("echo >>%s/runtime/runner", state);
	ck_assert_int_eq(box_init(&conf), -1);
	ck_assert_ptr_nonnull(strstr(box_error(),
	    "checksum of runtime/runner"));
	runtime_install();
	sh("rm %s/runtime/wb && ln -s runner %s/runtime/wb", state, state);
	ck_assert_int_eq(box_init(&conf), -1);
	runtime_install();
	sh("sed -i /wb/d %s/runtime/SHA256SUMS", state);
	ck_assert_int_eq(box_init(&conf), -1);
	runtime_install();
	ck_assert_int_eq(box_init(&conf), 0);
}
END_TEST

/* ---- ending -------------------------------------------------------------------- */

static int
lines(const char *cmd)
{
	char	 buf[32] = "";
	FILE	*fp = popen(cmd, "r");

	ck_assert_ptr_nonnull(fp);
	ck_assert_ptr_nonnull(fgets(buf, sizeof(buf), fp));
	(void)pclose(fp);
	return atoi(buf);
}

/* Returns what 30 boxes must not change. */
static int
world_count(int what)
{
	char	 cmd[160];

	switch (what) {
	case 0:
		return lines("wc -l </proc/self/mountinfo");
	case 1:
		(void)snprintf(cmd, sizeof(cmd), "find /sys/fs/cgroup -type d "
		    "-path '*/%s*' | wc -l", cgname);
		return lines(cmd);
	case 2:
		(void)snprintf(cmd, sizeof(cmd), "ls %s/sandboxes | wc -l",
		    state);
		return lines(cmd);
	default:
		(void)snprintf(cmd, sizeof(cmd), "ls /proc/%d/fd | wc -l",
		    getpid());
		return lines(cmd);
	}
}

START_TEST(test_no_leak)
{
	struct tbox	 b;
	int		 before[4], i;

	for (i = 0; i < 4; i++)
		before[i] = world_count(i);
	for (i = 0; i < 30; i++) {
		ck_assert_msg(box_start(&b, 10) == 0, "%s", b.why);
		box_down(&b);
	}
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(before[i], world_count(i));
}
END_TEST

/* Whoever removes the empty tree from outside does not stop us for ever. */
START_TEST(test_tree_again)
{
	struct tbox	 b;

	sh("i=0; until find /sys/fs/cgroup -depth -type d -path '*/%s' -exec "
	    "rmdir {} + 2>/dev/null || test $((i += 1)) = 1000; do :; done; "
	    "test $i -lt 1000", cgname);
	ck_assert_msg(box_start(&b, 12) == 0, "%s", b.why);
	box_down(&b);
}
END_TEST

/* Deep, wide, with names that are bytes; and a removal that was killed. */
START_TEST(test_tree)
{
	struct tbox	 b;
	char		 dir[128], name[256];
	struct stat	 st;
	int		 fd, up, i, t;

	ck_assert_msg(box_start(&b, 11) == 0, "%s", b.why);
	(void)snprintf(dir, sizeof(dir), "%s/sandboxes/%s/upper", state,
	    b.id);
	up = open(dir, O_DIRECTORY | O_CLOEXEC);
	memset(name, '\xff', 255);
	name[255] = '\0';
	name[3] = '\n';
	fd = dup(up);
	for (i = 0; i < 4096; i++) {
		ck_assert_int_eq(mkdirat(fd, name, 0), 0);
		t = openat(fd, name, O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ne(t, -1);
		(void)close(fd);
		fd = t;
	}
	(void)snprintf(dir, sizeof(dir), "%s/keep", state);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(symlinkat(dir, fd, "link"), 0);
	(void)snprintf(dir, sizeof(dir), "%s/keep/file", state);
	ck_assert_int_eq(close(open(dir, O_CREAT | O_WRONLY, 0600)), 0);
	(void)close(fd);
	for (i = 0; i < 20000; i++) {
		(void)snprintf(name, sizeof(name), "removing\n%d\x80", i);
		fd = openat(up, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0);
		ck_assert_int_ne(fd, -1);
		(void)close(fd);
	}
	(void)close(up);
	ck_assert_int_eq(cgroup_kill(b.id), 0);
	reap(b.run.pidfd);
	/* The same when it is not ours: killed at once, and started again. */
	for (i = 0; i < 5; i++) {
		ck_assert_int_ne(t = tree_remove(b.id), -1);
		ck_assert_int_eq((int)syscall(SYS_pidfd_send_signal, t,
		    SIGKILL, NULL, 0), 0);
		reap(t);
		(void)close(t);
		ck_assert_int_eq(box_stat(b.id, "", &st), 0);
	}
	(void)close(b.run.pidfd);
	b.run.pidfd = -1;
	box_down(&b);
	ck_assert_int_eq(access(dir, R_OK), 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("mech");
	TCase	*t = tcase_create("box"), *r = tcase_create("runtime");
	SRunner	*sr;
	int	 failed;

	if (geteuid() != 0 || system("command -v busybox >/dev/null") != 0) {
		(void)puts("mech_test: needs root and busybox: skipped");
		return 77;
	}
	/* mounts are counted: ours, and not those that others make meanwhile */
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1) {
		perror("mech_test: mount namespace");
		return 1;
	}
	world();
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, init, NULL);
	tcase_add_test(t, test_facts);
	tcase_add_test(t, test_nothing_of_the_host);
	tcase_add_test(t, test_mounts);
	tcase_add_test(t, test_mounts_differ);
	tcase_add_test(t, test_rights);
	tcase_add_test(t, test_dotdot_control);
	tcase_add_test(t, test_files);
	tcase_add_test(t, test_limits);
	tcase_add_test(t, test_swap);
	tcase_add_test(t, test_per_user);
	tcase_add_test(t, test_attach);
	tcase_add_test(t, test_failures);
	tcase_add_test(t, test_no_leak);
	tcase_add_test(t, test_tree);
	tcase_add_test(t, test_tree_again);
	tcase_add_test(r, test_runtime);
	suite_add_tcase(s, t);
	suite_add_tcase(s, calls_case());
	suite_add_tcase(s, r);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	world_end();
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
