/*
 * start: opens what privd needs before it has a peer and puts each
 * descriptor in its place: the state directory with its locks, the listening
 * sockets, those who are told that we are ready.
 *
 * Must never: read from a socket.
 *
 * The locks.  STATE/lock carries two, which do not see each other: one of
 * fcntl(2), held by privd alone (it stays over our exec), says that a server
 * runs here; a BSD lock, on a descriptor that every process of ours inherits
 * (and a box's pid 1 drops by its exec), says that something of the set is
 * still there.  Whoever gets the first may end the holders of the second:
 * they are orphans of a privd that was killed, and would go on making or
 * removing boxes that the next one is about to look at.
 */
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "become.h"
#include "host.h"
#include "log.h"
#include "proxy_files.h"
#include "server.h"
#include "ulid.h"
#include "xmalloc.h"

#define HIGH_FD		32	/* all places are below */
#define ORPHANS_MS	10000	/* until the orphans are gone */
#define BACKLOG		1024
#define WATCHDOG_MIN	1000UL	/* ms */
#define WATCHDOG_MAX	86400000UL

/* ---- places ------------------------------------------------------------ */

static int	next;		/* the next place */

/* Fills 0, 1 and all places: what is opened from now on lies above. */
static int
places(struct start *st)
{
	int	fd, i;

	if ((st->token_fd = fcntl(st->token_fd, F_DUPFD_CLOEXEC, HIGH_FD)) ==
	    -1 || (st->ready_fd != -1 && (st->ready_fd = fcntl(st->ready_fd,
	    F_DUPFD_CLOEXEC, HIGH_FD)) == -1) ||
	    (fd = open("/dev/null", O_RDWR)) == -1)
		return fail_errno("arrange descriptors");
	for (i = 0; i < HIGH_FD; i++)
		if (i != 2 && i != fd && dup2(fd, i) == -1)
			return fail_errno("arrange descriptors");
	next = PRIVD_FD_TOKEN;
	return 0;
}

/* Takes fd, or tells what could not be opened. */
static int
place(int fd, const char *what)
{
	if (fd == -1 || dup2(fd, next) == -1)
		return fail_errno("%s", what);
	fd_close(&fd);
	next++;
	return 0;
}

int
start_files(rlim_t want, rlim_t *ret_most)
{
	struct rlimit	rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		return -1;
	*ret_most = rl.rlim_max;
	if (rl.rlim_max < want)
		rl.rlim_max = want;
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		return -1;
	*ret_most = rl.rlim_max;
	return 0;
}

/*
 * A few descriptors for each box, and those of the set; for proxyd, whose
 * share grows with connections, what can be had.
 */
static int
limits(const struct conf *c)
{
	rlim_t	want = START_FILES(c), most;

	if (start_files(want, &most) == -1)
		return fail_errno("max-boxes = %llu needs a limit of %llu "
		    "open files", (unsigned long long)c->max_boxes,
		    (unsigned long long)want);
	(void)start_files(proxy_files(c), &most);	/* it tells a lack */
	return 0;
}

/* ---- the state directory ----------------------------------------------- */

/* Whether a descriptor of process pid is the file st. */
static int
holds(int proc, const char *pid, const struct stat *st)
{
	auto_free char	*path = xasprintf("%s/fd", pid);
	struct dirent	*e;
	struct stat	 s;
	DIR		*d;
	int		 fd, yes = 0;

	if ((fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) ==
	    -1 || (d = fdopendir(fd)) == NULL)
		return 0;		/* it has ended */
	while (!yes && (e = readdir(d)) != NULL)
		yes = e->d_name[0] != '.' &&
		    fstatat(fd, e->d_name, &s, 0) == 0 &&
		    s.st_dev == st->st_dev && s.st_ino == st->st_ino;
	(void)closedir(d);		/* read only */
	return yes;
}

/* Ends a process that holds the lock and waits for it. */
static void
orphan_kill(int proc, const char *name, const struct stat *st, int ms)
{
	auto_close int	pidfd = -1;
	struct pollfd	p = { .events = POLLIN };
	long		pid = strtol(name, NULL, 10);

	if (pid <= 0 || pid == getpid() || !holds(proc, name, st))
		return;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd == -1 || !holds(proc, name, st))
		return;
	note("end process %ld of an earlier server", pid);
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	p.fd = pidfd;
	(void)poll(&p, 1, ms);		/* the lock tells whether it went */
}

static int
orphans_end(const struct stat *st)
{
	uint64_t	 now = mono_ms(), until = now + ORPHANS_MS;
	struct dirent	*e;
	DIR		*d;

	while (flock(PRIVD_FD_LOCK, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK || now >= until)
			return fail_errno("processes of an earlier server "
			    "do not end");
		if ((d = opendir("/proc")) == NULL)
			return fail_errno("/proc");
		while ((e = readdir(d)) != NULL && (now = mono_ms()) < until)
			orphan_kill(dirfd(d), e->d_name, st,
			    (int)(until - now));
		(void)closedir(d);	/* read only */
	}
	return 0;
}

/* Who has the lock wrote its pid beside it. */
static int
in_use(const char *dir)
{
	char	pid[16] = "";

	if (pread(PRIVD_FD_HELD, pid, sizeof(pid) - 1, 0) <= 0)
		(void)str_copy(pid, "unknown", sizeof(pid));
	return fail("state directory %s is in use by another server, "
	    "process %.*s", dir, (int)strcspn(pid, "\n"), pid);
}

static int
take_locks(int state, const char *dir)
{
	struct stat	st;
	int		rw, rc;

	rw = openat(state, "lock", O_RDWR | O_CREAT | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	if (rw == -1)
		return fail_errno("%s/lock", dir);
	if ((rc = place(openat(state, "lock", O_RDONLY | O_NOFOLLOW |
	    O_CLOEXEC), "lock")) != 0 || (rc = place(rw, "lock")) != 0)
		return rc;
	if (become_locked(PRIVD_FD_HELD) == -1)
		return errno == EAGAIN || errno == EACCES ? in_use(dir) :
		    fail_errno("%s/lock", dir);
	if (fstat(PRIVD_FD_LOCK, &st) == -1)
		return fail_errno("%s/lock", dir);
	return orphans_end(&st);
}

/* A directory of the state directory, of its owner alone but to be seen. */
static int
make_dir(int state, const char *name, mode_t mode, uint64_t uid, uint64_t gid)
{
	if (mkdirat(state, name, mode) == -1)
		return errno == EEXIST ? 0 : fail_errno("make %s", name);
	return fchownat(state, name, (uid_t)uid, (gid_t)gid,
	    AT_SYMLINK_NOFOLLOW) == 0 ? 0 : fail_errno("owner of %s", name);
}

static int
place_dir(int state, const char *name)
{
	return place(openat(state, name, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC), name);
}

static int
take_state(const struct conf *c)
{
	const char	*dir = c->state_dir;
	auto_close int	 state = -1, rootfs = -1;
	int		 rc;

	/* none is made here: a path that was misspelled shall leave nothing */
	if (access(dir, F_OK) == -1)
		return fail_errno("state directory %s", dir);
	if ((rc = state_take(dir, &state)) != 0)
		return rc;
	if (faccessat(state, "runtime/SHA256SUMS", F_OK, 0) == -1)
		return fail_errno("runtime in %s (`workbox runtime install' "
		    "puts it there)", dir);
	if ((rc = make_dir(state, "sandboxes", 0700, 0, 0)) != 0 ||
	    (rc = rootfs_take(state, &rootfs)) != 0 ||
	    (rc = make_dir(state, "db", 0700, c->uid_stored,
	    c->gid_stored)) != 0)
		return rc;
	next = PRIVD_FD_BOXES;
	if ((rc = place_dir(state, "sandboxes")) != 0 ||
	    (rc = place_dir(state, "rootfs")) != 0)
		return rc;
	return take_locks(state, dir);
}

/* ---- sockets ----------------------------------------------------------- */

static int
add_listener(struct server_conf *s, int fd, unsigned int kind,
    const char *addr)
{
	s->listener_kind[s->nlisteners++] = (uint8_t)kind;
	return place(fd, addr);
}

static int
listen_tcp(struct server_conf *s, const char *addr)
{
	auto_close int		fd = -1;
	struct sockaddr_storage	sa = { 0 };
	socklen_t		len = sizeof(struct sockaddr_in6);
	int			on = 1;

	(void)config_listen(addr, &sa);	/* has been looked at */
	if ((fd = passed_tcp(&sa)) != -1)
		return add_listener(s, steal_fd(&fd), 0, addr);
	if (sa.ss_family == AF_INET)
		len = sizeof(struct sockaddr_in);
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
	    sizeof on) == -1 || (sa.ss_family == AF_INET6 && setsockopt(fd,
	    IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == -1) ||
	    bind(fd, (struct sockaddr *)&sa, len) == -1 ||
	    listen(fd, BACKLOG) == -1)
		return fail_errno("listen on %s", addr);
	return add_listener(s, steal_fd(&fd), 0, addr);
}

/* Removes a socket on which nobody listens; a live one is an error. */
static int
remove_stale(const struct sockaddr_un *un)
{
	auto_close int	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	struct stat	st;

	if (lstat(un->sun_path, &st) == -1)
		return errno == ENOENT ? 0 : fail_errno("%s", un->sun_path);
	if (fd == -1)
		return fail_errno("socket");
	if (!S_ISSOCK(st.st_mode))
		return fail("%s is in the way: not a socket", un->sun_path);
	if (connect(fd, (const struct sockaddr *)un, sizeof *un) == 0 ||
	    errno != ECONNREFUSED)
		return fail("listen on %s: somebody else does", un->sun_path);
	return unlink(un->sun_path) == 0 ? 0 :
	    fail_errno("remove stale %s", un->sun_path);
}

static int
listen_unix(struct server_conf *s, gid_t gid)
{
	auto_close int		 fd = -1;
	struct sockaddr_un	 un = { .sun_family = AF_UNIX };
	char			*slash;
	int			 rc;

	if ((fd = passed_unix(s->socket)) != -1) {
		/* the path is the manager's: nobody of us takes it away */
		(void)str_copy(s->socket, "none", sizeof s->socket);
		return add_listener(s, steal_fd(&fd), 1, "LISTEN_FDS");
	}
	if (str_copy(un.sun_path, s->socket, sizeof un.sun_path) == -1 ||
	    (slash = strrchr(un.sun_path, '/')) == NULL)
		return fail("%s: not a path for a socket", s->socket);
	if (slash != un.sun_path) {
		*slash = '\0';		/* /run is empty after a boot */
		if (mkdir(un.sun_path, 0755) == -1 && errno != EEXIST)
			return fail_errno("%s", un.sun_path);
		*slash = '/';
	}
	if ((rc = remove_stale(&un)) != 0)
		return rc;
	(void)umask(0177);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return fail_errno("socket");
	if (bind(fd, (struct sockaddr *)&un, sizeof un) == -1) {
		/* where TCP is there, sandboxes can be removed by it */
		if ((errno != ENOSPC && errno != EDQUOT) ||
		    s->nlisteners == 0)
			return fail_errno("listen on %s", un.sun_path);
		note("warning: no socket %s: %s", un.sun_path,
		    strerror(errno));
		return 0;
	}
	if (chown(un.sun_path, 0, gid) == -1 ||
	    chmod(un.sun_path, 0660) == -1 || listen(fd, BACKLOG) == -1)
		return fail_errno("listen on %s", un.sun_path);
	return add_listener(s, steal_fd(&fd), 1, un.sun_path);
}

static int
listeners(struct server_conf *s, const struct start *st)
{
	size_t	i;
	int	rc = 0;

	next = PRIVD_FD_LISTENER;
	for (i = 0; rc == 0 && i < st->naddr; i++)
		rc = listen_tcp(s, st->addr[i]);
	if (rc == 0 && strcmp(s->socket, "none") != 0)
		rc = listen_unix(s, st->gid_socket);
	return rc;
}

/* ---- readiness --------------------------------------------------------- */

/* NOTIFY_SOCKET as sd_notify(3) has it; one that is not there is no fault. */
static int
notify(struct server_conf *c)
{
	auto_close int		 fd = -1;
	const char		*s = getenv("NOTIFY_SOCKET");
	struct sockaddr_un	 un = { .sun_family = AF_UNIX };
	size_t			 n;

	if (s == NULL || *s == '\0')
		return 0;
	if ((*s != '/' && *s != '@') ||
	    str_copy(un.sun_path, s, sizeof un.sun_path) == -1)
		return fail("NOTIFY_SOCKET: expected a path of at most %zu "
		    "bytes", sizeof un.sun_path - 1);
	n = strlen(s);
	if (*s == '@')
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (struct sockaddr *)&un,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) == -1) {
		(void)fail_errno("connect to NOTIFY_SOCKET");
		return 0;
	}
	c->notify_fd = next;
	return place(steal_fd(&fd), "NOTIFY_SOCKET");
}

/* How often it wants to hear of us, as sd_watchdog_enabled(3) has it. */
static int
watchdog(struct server_conf *c)
{
	const char	*us = getenv("WATCHDOG_USEC");
	const char	*pid = getenv("WATCHDOG_PID");
	uint64_t	 n, p;

	if (us == NULL)
		return 0;
	if (pid != NULL && text_u64(pid, 1, INT_MAX, &p) == -1)
		return fail("WATCHDOG_PID: expected a process id, not \"%s\"",
		    pid);
	if (pid != NULL && p != (uint64_t)getpid())
		return 0;		/* it is another's */
	if (text_u64(us, WATCHDOG_MIN * 1000, WATCHDOG_MAX * 1000, &n) == -1)
		return fail("WATCHDOG_USEC: expected %lu to %lu seconds in "
		    "microseconds, not \"%s\"", WATCHDOG_MIN / 1000,
		    WATCHDOG_MAX / 1000, us);
	/* one may be late by another, and half of the time is to be left */
	c->beat_ms = (uint32_t)(n / 4000);
	return 0;
}

static int
ready(struct server_conf *c, int fd)
{
	if (fd == -1)
		return 0;
	c->ready_fd = next;
	return place(fd, "ready descriptor");
}

/* Behind its fence privd could open none. */
static int
syslog_socket(struct server_conf *s)
{
	int	fd;

	if (!s->syslog)
		return 0;
	log_init("workbox", LOG_L_INFO, 1);
	if ((fd = log_descriptor()) == -1)
		return 0;		/* stderr serves */
	s->log_fd = next;
	return place(fd, "syslog");
}

/* ---- all of it --------------------------------------------------------- */

static int
seal(const struct conf *c, const struct server_conf *s)
{
	auto_close int	conf = conf_seal(c);
	auto_close int	server = server_seal("server", s, sizeof *s);

	if (conf == -1 || server == -1)
		return fail_errno("seal the configuration: %s", wire_error());
	if (dup2(conf, PRIVD_FD_CONF) == -1 ||
	    dup2(server, PRIVD_FD_SERVER) == -1 ||
	    close_range((unsigned int)next, ~0U, CLOSE_RANGE_CLOEXEC) == -1)
		return fail_errno("arrange descriptors");
	return 0;
}

int
start(const struct conf *c, struct start *st)
{
	static struct server_conf	s;
	int				rc;

	server_fill(c, &s);
	if ((rc = limits(c)) != 0 || (rc = watchdog(&s)) != 0 ||
	    (rc = places(st)) != 0 ||
	    (rc = place(st->token_fd, "key")) != 0 ||
	    (rc = take_state(c)) != 0 || (rc = listeners(&s, st)) != 0 ||
	    (rc = notify(&s)) != 0 || (rc = ready(&s, st->ready_fd)) != 0 ||
	    (rc = syslog_socket(&s)) != 0)
		return rc;
	return seal(c, &s);
}
