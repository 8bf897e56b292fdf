/*
 * maker: what privd cannot do itself: fork, exec, mount, enter a namespace,
 * open a file.
 *
 *	set.c		starts the daemons
 *	scan.c		finds the boxes of before
 *	box.h		the mechanics of a box, in files of their own
 *
 * A system-call filter is inherited by whatever a process starts, boxes
 * included; so the process that starts things has none, and therefore hears
 * nobody but privd, which reads the messages of daemons and has a fence that
 * lets it do nothing but that.  Its other rights are those that the struct in
 * workbox/become.c lists.  The maker decides nothing.  It takes the
 * milliseconds that a box takes while privd's loop goes on, is the parent of
 * daemons, boxes and removals and reaps them, and ends when privd does.
 *
 * Should privd be in an attacker's hands, which means that a daemon first was
 * and found a fault in its decoding: it can have boxes made, read and ended,
 * within the bounds of the configuration, of which it hands on what a SIGHUP
 * has brought, and the daemons started again with what it says that was read.
 * Names are held against their charsets, limits and uids against their
 * bounds, descriptors are asked for their kind by the kernel; paths, programs
 * and flags are constants here.
 *
 * Must never: read a byte that a daemon or a box wrote.
 */
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "maker.h"

struct maker		mk = { .lock_fd = -1, .conf_fd = -1, .token_fd = -1 };

/* ---- one operation each ------------------------------------------------ */

static struct box_ask
ask_of(const struct maker_req *q)
{
	return (struct box_ask){ .id = q->spec.id, .name = q->spec.name,
	    .rootfs = q->spec.rootfs, .filter = q->spec.filter,
	    .network = (unsigned int)q->spec.network,
	    .limits = { q->spec.memory_bytes, q->spec.cpu_milli,
	    q->spec.pids }, .uid = q->uid };
}

static int
make_leave(void)
{
	if (strcmp(mk.conf.socket, "none") != 0)
		(void)unlink(mk.conf.socket);	/* stale is as good */
	cgroup_leave();
	return 0;
}

static int
make_init(const struct maker_req *q, int *in, struct maker_init *ret)
{
	int	e;

	if (mk.lock_fd != -1) {	/* once, before privd has a peer */
		errno = EBUSY;
		return box_fail("start again");
	}
	mk.conf = q->u.conf;
	mk.lock_fd = steal_fd(&in[0]);
	mk.conf_fd = steal_fd(&in[1]);
	mk.token_fd = steal_fd(&in[2]);
	log_init("maker", (enum log_level)mk.conf.log_level, mk.conf.syslog);
	if (box_init(&mk.conf) == -1) {
		e = errno;
		(void)make_leave();	/* what was made so far */
		errno = e;
		return -1;
	}
	ret->cgroup_v1 = cgroup_sessions();
	(void)str_copy(ret->filter, filter_hash(), sizeof(ret->filter));
	(void)str_copy(ret->note, cgroup_note(), sizeof(ret->note));
	return 0;
}

/*
 * When privd is hostile the ceilings are its word from now on, and what daemons
 * that start are told: it could make boxes as large as the host.  Of whom
 * boxes and daemons are, and where they lie, nothing changes.
 */
static int
make_reload(const struct maker_req *q, int *in)
{
	mk.conf.log_level = q->u.conf.log_level;
	mk.conf.most = q->u.conf.most;
	mk.conf.disk_floor = q->u.conf.disk_floor;
	fd_close(&mk.conf_fd);
	fd_close(&mk.token_fd);
	mk.conf_fd = steal_fd(&in[0]);
	mk.token_fd = steal_fd(&in[1]);
	log_init("maker", (enum log_level)mk.conf.log_level, 0);
	return 0;
}

static int
make_launch(const struct maker_req *q, int *fds)
{
	struct box_ask	ask = ask_of(q);
	struct box_boot	b = { .token = q->u.launch.token,
			    .spec = q->u.launch.spec,
			    .spec_len = q->u.launch.spec_len,
			    .boot = q->u.launch.boot,
			    .boot_len = q->u.launch.boot_len };
	struct box_run	run = { -1, -1, -1, -1 };
	int		r;

	errno = EINVAL;
	if (b.spec_len > sizeof(q->u.launch.spec) ||
	    b.boot_len > sizeof(q->u.launch.boot))
		return box_fail("launch");
	if (host_allows() == -1)
		return -1;
	r = box_launch(&ask, &b, &run);
	fds[MK_RUN_PID] = run.pidfd;
	fds[MK_RUN_READY] = run.ready_fd;
	fds[MK_RUN_LOG] = run.log_fd;
	fds[MK_RUN_NETNS] = run.netns_fd;
	fds[MK_RUN_FILE] = box_open(ask.id, "launch.log", O_RDWR | O_APPEND |
	    O_CREAT);
	return r;
}

static char	mounts[FACTS_MOUNTS];	/* for looks that tell nobody of them */

/* What the boot proof saw, looked at again; and what the box has used. */
static int
make_health(const struct maker_req *q, const int *in,
    struct msg_box_health_is *ret)
{
	struct msg_box_facts_are	 f;
	struct box_ask			 ask = ask_of(q);
	const char			*part = "facts";
	struct stat			 st;

	memset(ret, 0, sizeof(*ret));
	if (q->u.look.freeze == FREEZE_OFF &&
	    box_stat(ask.id, MARK_SEALED, &st) == 0)
		part = "quarantined";
	else if (q->u.look.freeze != FREEZE_KEEP &&
	    cgroup_freeze(ask.id, q->u.look.freeze == FREEZE_ON) == -1)
		part = "freeze";
	else if (cgroup_usage(ask.id, q->u.look.written != 0, ret) == -1)
		part = "cgroup";
	else if (box_facts(&ask, in[0], in[1], 0, mounts, &f) == 0)
		part = runtime_intact() ? f.verdict : "runtime-file";
	ret->frozen = (uint64_t)cgroup_frozen(ask.id);
	(void)str_copy(ret->part, part, sizeof(ret->part));
	return host_disk(&ret->disk_free, &ret->disk_keep);
}

/* The mark first: whoever starts next must not take it for whole. */
static int
make_seal(const struct maker_req *q)
{
	if (box_mark(q->spec.id, MARK_SEALED, q->u.text) == -1)
		return -1;
	return cgroup_freeze(q->spec.id, 1) == 0 ? 0 : box_fail("freeze");
}

/*
 * Goes on, if but for what may be released it is what was asked, by the
 * kernel's word of now.  A verdict of more than one word is of limits alone, of
 * which each may be released.  The mark goes when pid 1's filters were seen,
 * too, which a frozen process does not show.
 */
static int
make_release(const struct maker_req *q, const int *in)
{
	static const char		may[] = " "
#define MAY(n, why)	n " "
#include "release.def"
	;
	struct msg_box_facts_are	f;
	struct box_ask			ask = ask_of(q);
	auto_close int			dir = box_open(ask.id, ".",
					    O_PATH | O_DIRECTORY);
	char				word[80];
	int				whole = q->u.look.written != 0;

	if (box_facts(&ask, in[0], in[1], whole, mounts, &f) == -1)
		return -1;
	errno = EPERM;
	(void)snprintf(word, sizeof(word), " %.*s ",
	    (int)strcspn(f.verdict, ","), f.verdict);
	if (f.verdict[0] != '\0' && strstr(may, word) == NULL)
		return box_fail("%s", f.verdict);
	if (whole && unlinkat(dir, MARK_SEALED, 0) == -1)
		return box_fail("take the mark away");
	return cgroup_freeze(ask.id, 0) == 0 ? 0 : box_fail("thaw");
}

static int
make_kill(const struct maker_req *q, int pidfd, int *fds)
{
	int	r = cgroup_kill(q->spec.id);

	/* a child that has not entered its cgroup yet; ESRCH is as good */
	if (pidfd != -1)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	fds[0] = cgroup_events(q->spec.id);
	return r;
}

static int
make_tree(const struct maker_req *q, int *fds)
{
	struct stat	st;

	if (box_stat(q->spec.id, "", &st) == -1 && errno == ENOENT)
		return 0;
	return (fds[0] = tree_remove(q->spec.id)) == -1 ? -1 : 0;
}

/* ---- the loop ---------------------------------------------------------- */

/* in and out: FDS_MAX descriptors; what is left of in is the caller's. */
static int
make(struct maker_req *q, int *in, struct maker_ans *a, int *out,
    size_t *ret_len)
{
	struct box_ask	ask = ask_of(q);

	switch ((int)q->op) {
	case MK_INIT:
		*ret_len = MAKER_LEN(init);
		return make_init(q, in, &a->u.init);
	case MK_RELOAD:
		return make_reload(q, in);
	case MK_SCAN:
		return scan_boxes(MAKER_FD, &out[0]);
	case MK_SET:
		return set_make(steal_fd(&in[0]), out);
	case MK_SET_KILL:
		set_kill();
		return 0;
	case MK_LAUNCH:
		return make_launch(q, out);
	case MK_CONNECT:
		out[0] = box_connect(q->spec.id, q->uid, in[0]);
		return out[0] == -1 ? -1 : 0;
	case MK_FACTS:
		*ret_len = MAKER_LEN(facts);
		return box_facts(&ask, in[0], in[1], 1, a->u.facts.mounts,
		    &a->u.facts.facts);
	case MK_HEALTH:
		*ret_len = MAKER_LEN(health);
		return make_health(q, in, &a->u.health);
	case MK_OPENED:
		return box_mark(q->spec.id, MARK_OPENED, "");
	case MK_SEAL:
		return make_seal(q);
	case MK_RELEASE:
		return make_release(q, in);
	case MK_KILL:
		return make_kill(q, in[0], out);
	case MK_CGROUP:
		return cgroup_remove(q->spec.id);
	case MK_TREE:
		return make_tree(q, out);
	case MK_LEAVE:
		return make_leave();
	}
	errno = EBADMSG;
	return box_fail("request %d", (int)q->op);
}

static void
serve(struct maker_req *q, int *in)
{
	static struct maker_ans	a;
	int			out[FDS_MAX], go[FDS_MAX];
	size_t			i, n, len = MAKER_LEN0;

	for (i = 0; i < FDS_MAX; i++)
		out[i] = -1;
	a.op = q->op;
	a.n = q->n;
	a.error = 0;
	if (make(q, in, &a, out, &len) == -1) {
		a.error = errno != 0 ? errno : EIO;
		(void)str_copy(a.why, box_error(), sizeof(a.why)); /* cut */
		len = MAKER_LEN0;
	}
	explicit_bzero(q, sizeof(*q));	/* tokens */
	n = fds_pack(out, FDS_MAX, go, &a.places);
	if (fds_send(MAKER_FD, &a, len, go, n, 0) == -1)
		exit(1);		/* privd is gone */
	for (i = 0; i < FDS_MAX; i++) {
		fd_close(&out[i]);
		fd_close(&in[i]);
	}
}

static void
on_sigchld(int sig)
{
	(void)sig;		/* ends ppoll(2), and is blocked but for it */
}

static void
reap(void)
{
	pid_t	pid;
	int	st;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
		if (WIFSTOPPED(st))	/* later than facts.c has waited */
			(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
		else
			set_reaped(pid, st);
}

#define END(s)	((s)[sizeof(s) - 1] = '\0')
/* Those of a privd in an attacker's hands need not end by themselves. */
static void
end_strings(struct maker_req *q)
{
	END(q->spec.id);
	END(q->spec.name);
	END(q->spec.rootfs);
	END(q->spec.filter);
	if (q->op == MK_SEAL)
		END(q->u.text);
}

static void
loop(void)
{
	static struct maker_req	q;
	struct pollfd		p = { .fd = MAKER_FD, .events = POLLIN };
	int			in[FDS_MAX], ready;
	sigset_t		none;
	size_t			n;
	ssize_t			r;

	(void)sigemptyset(&none);
	for (;;) {
		if ((ready = ppoll(&p, 1, NULL, &none)) == -1 &&
		    errno != EINTR)
			fatal("ppoll");
		reap();
		if (ready != 1)
			continue;
		r = fds_recv(MAKER_FD, &q, sizeof(q), in, &n, 0);
		if (r != sizeof(q))
			exit(r == 0 ? 0 : 1);	/* privd is gone */
		fds_unpack(in, n, q.places);
		end_strings(&q);
		serve(&q, in);
	}
}

int
main(int argc, char *argv[])
{
	struct sigaction	sa = { .sa_handler = on_sigchld };
	struct stat		st;
	sigset_t		chld;

	(void)argv;
	log_init("maker", LOG_L_INFO, 0);
	if (argc != 1 || fstat(MAKER_FD, &st) == -1 || !S_ISSOCK(st.st_mode))
		fatalx("is started by privd alone");
	(void)fcntl(MAKER_FD, F_SETFD, FD_CLOEXEC);	/* these cannot fail */
	(void)fcntl(MAKER_USERNS, F_SETFD, FD_CLOEXEC);
	(void)prctl(PR_SET_DUMPABLE, 0);
	/* a ^C at the terminal is for privd alone */
	(void)setsid();
	(void)umask(022);	/* a box enters its v1 cgroups */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	/* the kernel gives up the change of a limit when a signal comes */
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) == -1 ||
	    sigaction(SIGCHLD, &sa, NULL) == -1)
		fatal("wait for children");
	loop();
}
