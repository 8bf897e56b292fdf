/*
 * mech_box.c: see mech_box.h.
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sha256.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fds.h"
#include "mech_box.h"
#include "xmalloc.h"

#ifndef MECH_PROBE
#define MECH_PROBE	WB_TOP_BUILDDIR "/regress/mech_probe"
#endif

char			state[64], cgname[32];
struct server_conf	conf;
uid_t			netns_owner = 4711;

/* ---- small helpers ---------------------------------------------------- */

void
sh(const char *fmt, ...)
{
	char	*cmd;
	va_list	 ap;

	va_start(ap, fmt);
	if (vasprintf(&cmd, fmt, ap) == -1)
		abort();
	va_end(ap);
	if (system(cmd) != 0) {	/* also outside of a test */
		(void)fprintf(stderr, "failed: %s\n", cmd);
		abort();
	}
	free(cmd);
}

/* Until fd is ready; the test's own timeout is the only clock. */
void
wait_fd(int fd, short events)
{
	struct pollfd	 p = { .fd = fd, .events = events };

	ck_assert_int_eq(poll(&p, 1, -1), 1);
}

void
reap(int pidfd)
{
	siginfo_t	 si;

	wait_fd(pidfd, POLLIN);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED), 0);
}

int
netns_new(void)
{
	char	 path[64];
	int	 p[2], fd;
	pid_t	 pid;

	ck_assert_int_eq(pipe(p), 0);
	if ((pid = fork()) == 0) {
		if (setresuid(0, netns_owner, 0) == -1 ||
		    unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1 ||
		    write(p[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	ck_assert_int_eq(read(p[0], path, 1), 1);
	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/net", (long)pid);
	ck_assert_int_ne(fd = open(path, O_RDONLY | O_CLOEXEC), -1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(p[0]);
	(void)close(p[1]);
	return fd;
}

/* First uid of a range of the pool. */
uint32_t
slot_uid(unsigned int slot)
{
	return conf.uid_base + slot * BOX_IDS;
}

/* What privd would hand over; the probe reads neither. */
static struct box_boot
boot_of(const struct tbox *b)
{
	static const uint8_t	 spec[] = "specification", boot[] = "boot";

	return (struct box_boot){ .token = b->token, .spec = spec,
	    .spec_len = sizeof(spec), .boot = boot,
	    .boot_len = sizeof(boot) };
}

int
launch(const struct box_ask *ask, struct tbox *b, struct box_run *ret)
{
	const struct box_boot	 boot = boot_of(b);

	return box_launch(ask, &boot, ret);
}

int
box_start(struct tbox *b, unsigned int slot)
{
	ssize_t			 n;

	memset(b, 0, sizeof(*b));
	ulid_new(b->id);
	b->conn = -1;
	b->ask = (struct box_ask){ .id = b->id, .name = "demo",
	    .rootfs = "mini", .filter = filter_hash(), .limits = { 128 << 20, 1000, 256 },
	    .uid = slot_uid(slot) };
	memset(b->token, (int)slot, sizeof(b->token));
	b->netns = netns_new();
	if (launch(&b->ask, b, &b->run) == -1) {
		(void)str_copy(b->why, box_error(), sizeof(b->why));
		b->run.pidfd = -1;
		return -1;
	}
	ck_assert_int_eq(fds_send(b->run.netns_fd, "", 1, &b->netns, 1, 0), 0);
	(void)close(b->run.netns_fd);
	wait_fd(b->run.ready_fd, POLLIN);
	n = read(b->run.ready_fd, b->why, sizeof(b->why) - 1);
	b->why[n > 0 ? n : 0] = '\0';
	return n == 0 ? 0 : -1;
}

void
box_up(struct tbox *b, unsigned int slot)
{
	ck_assert_msg(box_start(b, slot) == 0, "%s", b->why);
	b->conn = box_connect(b->id, b->ask.uid, b->run.pidfd);
	ck_assert_msg(b->conn != -1, "%s", box_error());
	ck_assert_int_eq(fcntl(b->conn, F_SETFL, 0), 0);
}

const char *
ask(struct tbox *b, const char *fmt, ...)
{
	static char	 buf[65536];
	char		*cmd;
	va_list		 ap;
	ssize_t		 n;

	va_start(ap, fmt);
	n = vasprintf(&cmd, fmt, ap);
	va_end(ap);
	ck_assert_int_eq(send(b->conn, cmd, (size_t)n, 0), n);
	n = recv(b->conn, buf, sizeof(buf) - 1, 0);
	ck_assert_msg(n > 0, "no answer to: %s", cmd);
	buf[n] = '\0';
	free(cmd);
	return buf;
}

/* errno of a system call made in the box; -1: it worked; -2: killed. */
int
call(struct tbox *b, long nr, unsigned long a0, unsigned long a1,
    unsigned long a2, unsigned long a3)
{
	const char	*r;
	long		 ret;
	int		 st, err;

	r = ask(b, "call %ld %lu %lu %lu %lu", nr, a0, a1, a2, a3);
	if (sscanf(r, "%d\n%ld %d", &st, &ret, &err) != 3)
		return -2;
	return ret == -1 ? err : -1;
}

/* From cgroup_events(): 1 processes live, 0 none. */
int
populated(int events)
{
	char	 buf[256];
	ssize_t	 n = pread(events, buf, sizeof(buf) - 1, 0);

	if (n == -1)		/* the directory is gone */
		return errno == ENODEV ? 0 : -1;
	buf[n] = '\0';
	return strstr(buf, "populated 1") != NULL;
}

void
box_down(struct tbox *b)
{
	struct stat	 st;
	int		 ev, t, n;

	(void)close(b->conn);
	ck_assert_int_eq(cgroup_kill(b->id), 0);
	if (b->run.pidfd != -1)
		reap(b->run.pidfd);
	if ((ev = cgroup_events(b->id)) != -1) {
		while ((n = populated(ev)) == 1)
			wait_fd(ev, POLLPRI);
		ck_assert_int_eq(n, 0);
		(void)close(ev);
	}
	while (cgroup_remove(b->id) == -1)
		ck_assert_msg(errno == EAGAIN, "%s", box_error());
	ck_assert_msg((t = tree_remove(b->id)) != -1, "%s", box_error());
	reap(t);
	ck_assert_int_eq(box_stat(b->id, "", &st), -1);
	ck_assert_int_eq(errno, ENOENT);
	(void)close(t);
	(void)close(b->netns);
	if (b->run.pidfd != -1) {
		(void)close(b->run.pidfd);
		(void)close(b->run.ready_fd);
		(void)close(b->run.log_fd);
	}
}

/* ---- fixture ----------------------------------------------------------- */

void
runtime_install(void)
{
	sh("rm -rf %s/runtime && mkdir %s/runtime && cp " MECH_PROBE
	    " %s/runtime/runner && cp " MECH_PROBE " %s/runtime/wb && "
	    "cd %s/runtime && sha256sum runner wb >SHA256SUMS", state, state,
	    state, state, state);
}

void
world(void)
{
	const char	*tmp = getenv("TMPDIR");

	(void)snprintf(state, sizeof(state), "%.40s/wb-mech.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(state) == NULL)
		abort();
	(void)snprintf(cgname, sizeof(cgname), "wb-mech-%d", getpid());
	sh("chmod 755 %s && cd %s && mkdir -p rootfs/mini/bin "
	    "rootfs/mini/etc rootfs/mini/lower/sub && cd rootfs/mini && "
	    "cp $(command -v busybox) bin/busybox && echo secret >lower/file"
	    " && echo x >etc/resolv.conf && mknod -m 666 node c 1 3 && "
	    "for a in sh cat id ls mkdir mv rm ln touch echo stat mknod "
	    "mkfifo mount umount chown chmod hostname df wc head grep dd "
	    "seq; do ln -s busybox bin/$a; done && "
	    "ln -s mini ../default && ln -s /etc ../evil", state, state);
	runtime_install();
	(void)str_copy(conf.state_dir, state, sizeof(conf.state_dir));
	(void)str_copy(conf.cgroup, cgname, sizeof(conf.cgroup));
	conf.uid_base = 0x71000000;
	conf.max_boxes = 64;
	conf.most.memory_bytes = 1 << 30;
	conf.most.cpu_milli = 64000;
	conf.most.pids = 32768;
}

void
world_end(void)
{
	/* What a failed test left is killed, and gone when rmdir works. */
	sh("find /sys/fs/cgroup -path '*/%s/cgroup.kill' | "
	    "while read f; do echo 1 >$f; done; i=0; until "
	    "find /sys/fs/cgroup -depth -type d -path '*/%s*' -exec rmdir "
	    "{} + 2>/dev/null || test $((i += 1)) = 1000; do :; done",
	    cgname, cgname);
	sh("rm -rf --one-file-system %s", state);
}

void
init(void)
{
	ck_assert_msg(box_init(&conf) == 0, "%s", box_error());
}
