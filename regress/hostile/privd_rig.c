/*
 * privd_rig.c: see privd_rig.h.
 */
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <md5.h>
#include <poll.h>
#include <sha2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "become.h"
#include "privd_rig.h"
#include "server.h"
#include "xmalloc.h"

#define WAIT_MS	60000	/* others may be at work on this machine */

static const char *const names[R_N] = { "netd", "stored", "apid",
    "uplinkd", "proxyd" };

static char *
at(struct rig *r, const char *name)
{
	static char	path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	return path;
}

int
rig_file(struct rig *r, const char *fmt, ...)
{
	char		name[400];
	va_list		ap;
	struct stat	st;

	va_start(ap, fmt);
	(void)vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return lstat(name[0] == '/' ? name : at(r, name), &st) == 0;
}

/* ---- the world ---------------------------------------------------------- */

static void
copy(const char *from, const char *to, mode_t mode)
{
	static char	buf[1 << 16];
	int		in = open(from, O_RDONLY);
	int		out = open(to, O_WRONLY | O_CREAT | O_EXCL, mode);
	ssize_t		n;

	ck_assert_msg(in != -1 && out != -1, "copy %s to %s", from, to);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		ck_assert_int_eq(write(out, buf, (size_t)n), n);
	(void)close(in);
	(void)fchmod(out, mode);
	(void)close(out);
}

static void
runtime(struct rig *r)
{
	static const char *const	name[2] = { "runner", "wb" };
	char				hex[SHA256_DIGEST_STRING_LENGTH];
	char				path[128];
	FILE				*f;
	int				i;

	ck_assert_int_eq(mkdir(at(r, "runtime"), 0755), 0);
	ck_assert_ptr_nonnull(f = fopen(at(r, "runtime/SHA256SUMS"), "w"));
	for (i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "runtime/%s", name[i]);
		copy(WB_TOP_BUILDDIR "/regress/privd_fake", at(r, path), 0755);
		ck_assert_ptr_nonnull(SHA256File(at(r, path), hex));
		fprintf(f, "%s  %s\n", hex, name[i]);
	}
	ck_assert_int_eq(fclose(f), 0);
}

static void
rootfs(struct rig *r)
{
	static const char *const	dirs[] = { "", "/proc", "/dev", "/run",
	    "/tmp", "/sys", "/opt", "/opt/workbox", "/etc", "/var", "/bin" };
	char				path[128];
	size_t				i;

	ck_assert_int_eq(mkdir(at(r, "rootfs"), 0755), 0);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(path, sizeof(path), "rootfs/tiny%s", dirs[i]);
		ck_assert_int_eq(mkdir(at(r, path), 0755), 0);
	}
	ck_assert_int_eq(symlink("tiny", at(r, "rootfs/default")), 0);
	ck_assert_int_eq(symlink("../../../etc", at(r, "rootfs/evil")), 0);
	ck_assert_int_eq(symlink("tiny", at(r, "rootfs/two")), 0);
}

static void
configure(struct rig *r)
{
	struct conf	*c = &r->conf;
	struct sockaddr_un un = { .sun_family = AF_UNIX };

#define C_STR(w, f, max, cs, d, doc)	(void)str_copy(c->f, d, sizeof(c->f));
#define C_U64(w, f, lo, hi, d, doc)	c->f = d;
#define C_BOOL(w, f, d, doc)		c->f = d;
#define WB_LIBEXECDIR "/nowhere"
#include "conf.def"
	(void)str_copy(c->state_dir, r->dir, sizeof(c->state_dir));
	(void)str_copy(c->cgroup, r->cgroup, sizeof(c->cgroup));
	(void)str_copy(c->libexec_dir, at(r, "libexec"),
	    sizeof(c->libexec_dir));
	(void)str_copy(c->socket, at(r, "run/api.sock"), sizeof(c->socket));
	(void)str_copy(c->log_level, "debug", sizeof(c->log_level));
	c->max_boxes = 4;
	c->uid_netd = c->gid_netd = 64001;
	c->uid_stored = c->gid_stored = 64002;
	c->uid_apid = c->gid_apid = 64003;
	c->uid_proxyd = c->gid_proxyd = 64004;
	c->disk_floor = 1;
	r->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)str_copy(un.sun_path, at(r, "notify"), sizeof(un.sun_path));
	ck_assert_int_eq(bind(r->notify, (struct sockaddr *)&un, sizeof(un)),
	    0);
}

void
rig_make(struct rig *r)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	char			path[128];
	int			i;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < R_N; i++)
		r->d[i].sock = r->d[i].chan.fd = -1;
	r->ready = r->reader = -1;
	(void)signal(SIGPIPE, SIG_IGN);
	/* the runner of the tests is our parent: Check forks for each */
	/* not /tmp, in whose place uplinkd's fake sees devices */
	(void)snprintf(r->dir, sizeof(r->dir), "/run/wb-privd-%ld-%ld",
	    (long)getppid(), (long)getpid());
	ck_assert_int_eq(mkdir(r->dir, 0755), 0);
	(void)str_copy(r->cgroup, r->dir + 5, sizeof(r->cgroup));
	ck_assert_int_eq(mkdir(at(r, "libexec"), 0755), 0);
	for (i = 0; i < R_N; i++) {
		(void)snprintf(path, sizeof(path), "libexec/%s", names[i]);
		copy(WB_TOP_BUILDDIR "/regress/privd_fake", at(r, path), 0755);
	}
	copy(WB_TOP_BUILDDIR "/maker/maker", at(r, "libexec/maker"), 0755);
	runtime(r);
	rootfs(r);
	configure(r);
	r->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)str_copy(un.sun_path, at(r, "rig"), sizeof(un.sun_path));
	ck_assert_int_eq(bind(r->listen, (struct sockaddr *)&un, sizeof(un)),
	    0);
	ck_assert_int_eq(chmod(un.sun_path, 0666), 0);
	ck_assert_int_eq(listen(r->listen, 16), 0);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static int
rmdir_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)f;
	if (type == FTW_DP)
		(void)rmdir(path);
	return 0;
}

/* The test's cgroup in each hierarchy, whatever is left in it. */
static void
cgroups(struct rig *r, int kill_all)
{
	static const char *const	tree[] = { "/sys/fs/cgroup/unified",
	    "/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu",
	    "/sys/fs/cgroup/pids" };
	char				path[200];
	size_t				i;
	int				fd;

	for (i = 0; i < sizeof(tree) / sizeof(tree[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s%s", tree[i],
		    r->cgroup, kill_all ? "/cgroup.kill" : "");
		if (!kill_all)
			(void)nftw(path, rmdir_one, 8, FTW_DEPTH | FTW_PHYS);
		else if ((fd = open(path, O_WRONLY)) != -1) {
			(void)!write(fd, "1", 1);
			(void)close(fd);
		}
	}
}

/* What stands in the file system and in cgroups, and what runs there. */
static void
clean(struct rig *r)
{
	char	path[200];
	int	i;

	cgroups(r, 1);
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/unified/%s",
	    r->cgroup);
	for (i = 0; i < 2000; i++) {	/* until the killed have left it */
		cgroups(r, 0);
		if (access(path, F_OK) == -1)
			break;
		(void)poll(NULL, 0, 5);
	}
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void
rig_free(struct rig *r)
{
	if (r->pid != 0)
		rig_kill(r);
	rig_hangup(r);
	clean(r);
	(void)close(r->listen);
	(void)close(r->notify);
}

int
rig_locked(struct rig *r)
{
	struct flock	fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	auto_close int	fd = open(at(r, "lock"), O_RDWR | O_CLOEXEC);

	return fd != -1 && fcntl(fd, F_OFD_GETLK, &fl) == 0 &&
	    fl.l_type != F_UNLCK;
}

void
rig_sweep(void)
{
	struct rig	 r;
	char		 prefix[64];
	struct dirent	*e;
	DIR		*d = opendir("/run");
	FILE		*f;
	int		 pid;

	(void)snprintf(prefix, sizeof(prefix), "wb-privd-%ld-",
	    (long)getpid());
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		memset(&r, 0, sizeof(r));
		(void)snprintf(r.dir, sizeof(r.dir), "/run/%.40s", e->d_name);
		(void)str_copy(r.cgroup, e->d_name, sizeof(r.cgroup));
		if (rig_locked(&r) && (f = fopen(at(&r, "lock"), "re")) !=
		    NULL && fscanf(f, "%d", &pid) == 1 && pid > 0)
			(void)kill(pid, SIGKILL);
		(void)printf("left by a test that failed: %s, its log:\n",
		    r.dir);
		(void)fflush(stdout);
		if (fork() == 0) {
			(void)execlp("tail", "tail", "-n", "15",
			    at(&r, "log"), NULL);
			_exit(0);
		}
		(void)wait(NULL);
		clean(&r);
	}
	(void)closedir(d);
}

/* ---- privd ------------------------------------------------------------- */

static int
sealed(const void *data, size_t len)
{
	int	fd = memfd_create("token", MFD_ALLOW_SEALING);

	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK |
	    F_SEAL_GROW | F_SEAL_WRITE), 0);
	return fd;
}

/* A socket bound (or connected) to a path of the rig, or any TCP port. */
static int
sock_at(struct rig *r, int type, const char *name)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	int			fd, rc;

	if (name == NULL)	/* unbound: listen(2) takes a port */
		return (fd = socket(AF_INET, type, 0)) != -1 &&
		    listen(fd, 16) == 0 ? fd : -1;
	(void)str_copy(un.sun_path, at(r, name), sizeof(un.sun_path));
	if ((fd = socket(AF_UNIX, type, 0)) == -1)
		return -1;
	if (type == SOCK_DGRAM)
		rc = connect(fd, (struct sockaddr *)&un, sizeof(un));
	else {
		(void)mkdir(at(r, "run"), 0755);	/* there already */
		(void)unlink(un.sun_path);		/* an earlier one's */
		rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
		if (rc == 0)
			rc = listen(fd, 16);
	}
	return rc == 0 ? fd : -1;
}

/* As `workbox serve' does: enum privd_fd. */
static void
privd_exec(struct rig *r, int server, int conf, int token, int reader,
    int ready)
{
	int		 log = open(at(r, "log"), O_WRONLY | O_CREAT |
			    O_APPEND, 0644);
	int		 null = open("/dev/null", O_RDWR);
	int		 rw = open(at(r, "lock"), O_RDWR | O_CREAT, 0600);
	int		 fd[] = { server, conf, token, null /* the maker's */,
			    open(at(r, "sandboxes"), O_PATH | O_DIRECTORY),
			    open(at(r, "rootfs"), O_PATH | O_DIRECTORY),
			    open(at(r, "lock"), O_RDONLY), rw, reader,
			    sock_at(r, SOCK_STREAM, NULL),
			    sock_at(r, SOCK_STREAM, "run/api.sock"),
			    sock_at(r, SOCK_DGRAM, "notify"), ready };
	const int	 n = (int)(sizeof(fd) / sizeof(fd[0]));
	int		 i;

	if (dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(log, 2) == -1)
		_exit(9);
	for (i = 0; i < n; i++)
		if ((fd[i] = fcntl(fd[i], F_DUPFD, 50)) == -1)
			_exit(9);
	for (i = 0; i < n; i++)
		if (dup2(fd[i], 3 + i) == -1)
			_exit(9);
	(void)syscall(SYS_close_range, 3 + n, ~0U, 0);
	/* the fakes of an earlier one end by themselves */
	if (become_locked(PRIVD_FD_HELD) == -1 ||
	    flock(PRIVD_FD_LOCK, LOCK_EX) == -1)
		_exit(9);
	(void)dprintf(2, "%s: error %d\n", become_privd(WB_TOP_BUILDDIR
	    "/privd/privd", at(r, "libexec/maker"), 1), errno);
	_exit(9);
}

void
rig_privd(struct rig *r)
{
	struct server_conf	s;
	int			p[2], sp[2], conf, token, server;

	server_fill(&r->conf, &s);
	(void)mkdir(at(r, "sandboxes"), 0700);	/* there the second time */
	s.nlisteners = 2;
	s.listener_kind[1] = 1;
	s.notify_fd = PRIVD_FD_LISTENER + 2;
	s.ready_fd = PRIVD_FD_LISTENER + 3;
	rig_hangup(r);
	ck_assert_int_ne(server = server_seal("server", &s, sizeof(s)), -1);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    sp), 0);
	ck_assert_int_ne(conf = conf_seal(&r->conf), -1);
	token = sealed("0123456789abcdef0123456789abcdef", 32);
	ck_assert_int_ne(r->pid = fork(), -1);
	if (r->pid == 0)
		privd_exec(r, server, conf, token, sp[1], p[1]);
	(void)close(server);
	(void)close(conf);
	(void)close(token);
	(void)close(p[1]);
	(void)close(sp[1]);
	fd_close(&r->ready);
	fd_close(&r->reader);
	r->ready = p[0];
	r->reader = sp[0];
}

int
rig_wait(struct rig *r)
{
	int		pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0), st;
	struct pollfd	p = { .fd = pidfd, .events = POLLIN };

	ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "privd does not end");
	ck_assert_int_eq(waitpid(r->pid, &st, 0), r->pid);
	(void)close(pidfd);
	r->pid = 0;
	return st;
}

void
rig_kill(struct rig *r)
{
	(void)kill(r->pid, SIGKILL);
	(void)rig_wait(r);
}

void
rig_hangup(struct rig *r)
{
	int	i, j;

	for (i = 0; i < R_N; i++) {
		fd_close(&r->d[i].sock);
		if (r->d[i].chan.fd != -1)
			chan_close(&r->d[i].chan);
		for (j = 0; j < r->d[i].nother; j++)
			fd_close(&r->d[i].other[j]);
		r->d[i].nother = 0;
	}
}

/* ---- the set ----------------------------------------------------------- */

static int
readable(int fd, int ms)
{
	struct pollfd	p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void
take(struct rig *r)
{
	static const unsigned int	actor[R_N] = { A_NETD, A_STORED,
	    A_APID, A_UPLINKD, A_PROXYD };
	union {
		char		buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr	align;
	}		 u;
	int32_t		 hello[2];
	struct iovec	 iov = { hello, sizeof(hello) };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = u.buf, .msg_controllen = sizeof(u.buf) };
	struct cmsghdr	*cm;
	struct rig_daemon *d;
	int		 fds[8], n, sock;

	ck_assert_msg(readable(r->listen, WAIT_MS), "a daemon is missing");
	ck_assert_int_ne(sock = accept4(r->listen, NULL, NULL, SOCK_CLOEXEC),
	    -1);
	ck_assert(readable(sock, WAIT_MS));
	ck_assert_int_eq(recvmsg(sock, &mh, MSG_CMSG_CLOEXEC), sizeof(hello));
	ck_assert_ptr_nonnull(cm = CMSG_FIRSTHDR(&mh));
	n = (int)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(cm), (size_t)n * sizeof(int));
	ck_assert_int_lt(hello[0], R_N);
	d = &r->d[hello[0]];
	ck_assert_int_eq(d->sock, -1);
	d->sock = sock;
	d->pid = hello[1];
	chan_init(&d->chan, fds[0], actor[hello[0]], A_PRIVD, S_INIT);
	for (d->nother = 0; d->nother < n - 1; d->nother++)
		d->other[d->nother] = fds[d->nother + 1];
}

void
rig_set(struct rig *r)
{
	int	i;

	rig_hangup(r);
	for (i = 0; i < R_N; i++)
		take(r);
}

unsigned int
rig_next(struct rig *r, int kind, struct msg *m)
{
	struct chan	*c = &r->d[kind].chan;
	int		 got;

	while ((got = chan_recv(c, m)) == 0)
		ck_assert_msg(readable(c->fd, WAIT_MS), "%s waits in vain",
		    names[kind]);
	if (got == -1)
		ck_assert_msg(errno == ECONNRESET, "%s: %s", names[kind],
		    c->why);
	return got == -1 ? 0 : m->row->type;
}

int
rig_quiet(struct rig *r, int kind)
{
	return !readable(r->d[kind].chan.fd, 0);
}

static int
readable2(int a, int b)
{
	struct pollfd	p[2] = { { .fd = a, .events = POLLIN },
			    { .fd = b, .events = POLLIN } };

	ck_assert_msg(poll(p, 2, WAIT_MS) > 0, "neither netd nor apid is "
	    "told anything");
	return p[0].revents != 0;
}

unsigned int
rig_go(struct rig *r)
{
	struct msg_daemon_ready		 ready = { .version = "fake" };
	struct msg_event_appended	 done = { .seq = 1 };
	struct msg_net_opened		 opened = { .ruleset = "fake",
	    .network = NETWORK_ALLOWLIST };	/* as no box is made */
	struct msg			 m;
	unsigned int			 n;
	int				 i;

	for (i = 0; i < R_N; i++)
		ck_assert_int_eq(chan_ask(&r->d[i].chan, MSG_DAEMON_READY,
		    &ready, -1, NULL), 0);
	ck_assert_int_eq(rig_next(r, R_STORED, &m), MSG_DAEMON_GO);
	r->d[R_STORED].chan.state = S_RUN;
	ck_assert_int_eq(rig_next(r, R_STORED, &m), MSG_EVENT_APPEND);
	ck_assert_int_eq(m.body.event_append.type, EVENT_SERVER_STARTED);
	ck_assert_int_eq(chan_send(&r->d[R_STORED].chan, MSG_EVENT_APPENDED,
	    m.rid, &done, -1), 0);
	ck_assert_int_eq(rig_next(r, R_NETD, &m), MSG_DAEMON_GO);
	r->d[R_NETD].chan.state = S_RUN;
	/* netd gives it what it adopts */
	ck_assert_int_eq(rig_next(r, R_PROXYD, &m), MSG_DAEMON_GO);
	r->d[R_PROXYD].chan.state = S_RUN;
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_next(r, R_APID, &m),
		    MSG_DAEMON_LISTENER);
		ck_assert_int_eq(m.body.daemon_listener.kind, (uint64_t)i);
		(void)close(m.fd);
	}
	for (n = 0; readable2(r->d[R_NETD].chan.fd, r->d[R_APID].chan.fd);
	    n++) {
		ck_assert_int_eq(rig_next(r, R_NETD, &m), MSG_NET_ADOPT);
		ck_assert_int_ne(m.fd, -1);
		r->open = (int)m.body.net_adopt.open;
		(void)close(m.fd);
		if (r->refuse) {
			ck_assert_int_eq(chan_error(&r->d[R_NETD].chan, m.rid,
			    CODE_INTERNAL, "refused"), 0);
			continue;
		}
		opened.k = 100 + n;
		ck_assert_int_eq(chan_send(&r->d[R_NETD].chan, MSG_NET_OPENED,
		    m.rid, &opened, -1), 0);
	}
	ck_assert_int_eq(rig_next(r, R_APID, &m), MSG_DAEMON_GO);
	r->d[R_APID].chan.state = S_RUN;
	ck_assert_int_eq(rig_next(r, R_UPLINKD, &m), MSG_DAEMON_GO);
	r->d[R_UPLINKD].chan.state = S_RUN;
	return n;
}

void
rig_start(struct rig *r)
{
	rig_privd(r);
	rig_set(r);
	ck_assert_uint_eq(rig_go(r), 0);
}

unsigned int
rig_ask(struct rig *r, unsigned int type, const void *body, struct msg *m)
{
	uint32_t	rid;
	unsigned int	got;

	ck_assert_int_eq(chan_ask(&r->d[R_APID].chan, type, body, -1, &rid),
	    0);
	got = rig_next(r, R_APID, m);
	if (got != 0)
		ck_assert_uint_eq(m->rid, rid);
	return got;
}

/* ---- boxes ------------------------------------------------------------- */

int
rig_netns(struct rig *r)
{
	union {
		char		buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr	align;
	}		 u;
	char		 c;
	struct iovec	 iov = { &c, 1 };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = u.buf, .msg_controllen = sizeof(u.buf) };
	int		 fd, sock = r->d[R_NETD].sock;

	ck_assert_int_eq(write(sock, "n", 1), 1);
	ck_assert_msg(readable(sock, WAIT_MS), "no network namespace");
	ck_assert_int_eq(recvmsg(sock, &mh, MSG_CMSG_CLOEXEC), 1);
	ck_assert_ptr_nonnull(CMSG_FIRSTHDR(&mh));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof(fd));
	return fd;
}

unsigned int
rig_create(struct rig *r, const char *id, unsigned int k, struct msg *m)
{
	struct msg_box_create	c = { .network = r->network };
	struct msg_net_made	made = { .k = k, .ruleset = "closed" };

	(void)str_copy(c.id, id, sizeof(c.id));
	(void)str_copy(c.name, "box", sizeof(c.name));
	(void)str_copy(c.rootfs, "default", sizeof(c.rootfs));
	ck_assert_int_eq(chan_ask(&r->d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(r, R_NETD, m), MSG_NET_MAKE);
	ck_assert_str_eq(m->body.net_make.id, id);
	ck_assert_int_eq(chan_send(&r->d[R_NETD].chan, MSG_NET_MADE, m->rid,
	    &made, rig_netns(r)), 0);
	return rig_next(r, R_APID, m);
}

int
rig_box(struct rig *r, const char *id, unsigned int k)
{
	struct msg_box_attach	 a = { 0 };
	struct msg_box_nonce	 n = { 0 };
	struct msg_net_opened	 o = { .k = k, .ruleset = "opened",
	    .network = NETWORK_EGRESS };
	struct msg		 m;
	int			 fd;

	ck_assert_int_eq(rig_create(r, id, k, &m), MSG_BOX_CREATED);
	(void)str_copy(a.id, id, sizeof(a.id));
	ck_assert_int_eq(rig_ask(r, MSG_BOX_ATTACH, &a, &m), MSG_BOX_ATTACHED);
	fd = m.fd;
	ck_assert(readable(fd, WAIT_MS));
	n.nonce.len = (size_t)recv(fd, r->nonce, sizeof(r->nonce),
	    0);
	n.nonce.data = r->nonce;
	ck_assert_uint_eq(n.nonce.len, 32);
	(void)str_copy(n.id, id, sizeof(n.id));
	ck_assert_int_eq(chan_ask(&r->d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(r, R_NETD, &m), MSG_NET_OPEN);
	ck_assert_uint_eq(m.body.net_open.k, k);
	ck_assert_int_eq(chan_send(&r->d[R_NETD].chan, MSG_NET_OPENED, m.rid,
	    &o, -1), 0);
	ck_assert_int_eq(rig_next(r, R_APID, &m), MSG_OK);
	return fd;
}

/* ---- /proc ------------------------------------------------------------- */

unsigned long long
rig_status(pid_t pid, const char *word, int base)
{
	char	path[64], line[256];
	FILE	*f;
	size_t	 n = strlen(word);
	unsigned long long v = ~0ULL;

	(void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	ck_assert_ptr_nonnull(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, word, n) == 0 && line[n] == ':')
			v = strtoull(line + n + 1, NULL, base);
	(void)fclose(f);
	return v;
}

pid_t
rig_maker(struct rig *r)
{
	char	path[64];
	FILE	*f;
	long	 pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children",
	    (long)r->pid, (long)r->pid);
	ck_assert_ptr_nonnull(f = fopen(path, "r"));
	ck_assert_int_eq(fscanf(f, "%ld", &pid), 1);
	(void)fclose(f);
	return (pid_t)pid;
}

int
rig_logged(struct rig *r, const char *text)
{
	static char	buf[1 << 20];
	FILE		*f = fopen(at(r, "log"), "r");
	size_t		 n;

	ck_assert_ptr_nonnull(f);
	n = fread(buf, 1, sizeof(buf) - 1, f);
	buf[n] = '\0';
	(void)fclose(f);
	return strstr(buf, text) != NULL;
}
