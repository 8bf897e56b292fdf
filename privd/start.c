/*
 * start.c: what privd does once, before it has a peer: takes the state
 * directory, ends what an earlier privd left behind, opens the listening
 * sockets, prepares to say that it is ready.
 *
 * Must never: run after confine_enter(); read anything but the kernel's and
 * the configuration's words.
 *
 * The locks.  STATE/lock carries two, which do not see each other: a POSIX
 * lock, held by privd alone, says that a server runs here; a BSD lock, on a
 * descriptor that every process of ours inherits (and a box's pid 1 drops by
 * its exec), says that something of the set is still there.  Whoever gets the
 * first may end the holders of the second: they are orphans of a privd that
 * was killed, and would go on making or removing boxes that we are about to
 * look at.
 */
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <netinet/in.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privd.h"
#include "ulid.h"
#include "xmalloc.h"

#define ORPHANS_MS	10000	/* until the orphans are gone */
#define BACKLOG		1024

/* ---- the state directory --------------------------------------------- */

/* Whether a descriptor of process pid is the file st. */
static int
holds(int proc, const char *pid, const struct stat *st)
{
	struct dirent	*e;
	struct stat	 s;
	char		 path[64];
	DIR		*d;
	int		 fd, yes = 0;

	(void)snprintf(path, sizeof(path), "%s/fd", pid);
	if ((fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) ==
	    -1)
		return 0;
	if ((d = fdopendir(fd)) == NULL)
		fatal("read /proc/%s/fd", pid);
	while (!yes && (e = readdir(d)) != NULL)
		yes = e->d_name[0] != '.' &&
		    fstatat(fd, e->d_name, &s, 0) == 0 &&
		    s.st_dev == st->st_dev && s.st_ino == st->st_ino;
	(void)closedir(d);		/* read only */
	return yes;
}

/* Ends every process but this one that has the lock file open. */
static void
orphans_kill(int lock)
{
	auto_close int	 pidfd = -1;
	struct dirent	*e;
	struct stat	 st;
	DIR		*d;
	long		 pid;

	if (fstat(lock, &st) == -1 || (d = opendir("/proc")) == NULL)
		fatal("look for processes of an earlier server");
	while ((e = readdir(d)) != NULL) {
		pid = strtol(e->d_name, NULL, 10);
		if (pid <= 0 || pid == getpid() ||
		    !holds(dirfd(d), e->d_name, &st))
			continue;
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
		if (pidfd != -1 && holds(dirfd(d), e->d_name, &st)) {
			log_info("end process %ld of an earlier server", pid);
			(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL,
			    NULL, 0);		/* gone is as good */
		}
		fd_close(&pidfd);
	}
	(void)closedir(d);		/* read only */
}

/* stored's own directory, which it can not make for itself. */
static void
state_db(const struct conf *conf)
{
	if (mkdirat(srv.state_fd, "db", 0700) == 0) {
		if (fchownat(srv.state_fd, "db", (uid_t)conf->uid_stored,
		    (gid_t)conf->gid_stored, AT_SYMLINK_NOFOLLOW) == -1)
			fatal("change owner of %s/db", conf->state_dir);
	} else if (errno != EEXIST)
		fatal("make directory %s/db", conf->state_dir);
}

void
start_state(const struct conf *conf)
{
	struct flock	 fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	uint64_t	 until = mono_ms() + ORPHANS_MS;
	int		 fd;

	srv.state_fd = open(conf->state_dir, O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC);
	if (srv.state_fd == -1)
		fatal("open state directory %s", conf->state_dir);
	fd = openat(srv.state_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	srv.lock_fd = openat(srv.state_fd, "lock", O_RDONLY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (fd == -1 || srv.lock_fd == -1)
		fatal("open %s/lock", conf->state_dir);
	/* fd is never closed: that would give up the lock */
	if (fcntl(fd, F_SETLK, &fl) == -1) {
		if (fcntl(fd, F_GETLK, &fl) == 0 && fl.l_type != F_UNLCK)
			fatalx("state directory %s is in use by another "
			    "server, process %ld", conf->state_dir,
			    (long)fl.l_pid);
		fatal("lock %s/lock", conf->state_dir);
	}
	if (flock(srv.lock_fd, LOCK_EX | LOCK_NB) == -1)
		orphans_kill(srv.lock_fd);
	while (flock(srv.lock_fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK || mono_ms() > until)
			fatal("processes of an earlier server do not end");
		(void)poll(NULL, 0, 2);		/* no event tells of a lock */
	}
	state_db(conf);
}

/* ---- sockets ----------------------------------------------------------- */

static void
listener_add(int fd, unsigned int kind)
{
	if (listen(fd, BACKLOG) == -1)
		fatal("listen");
	srv.listener[srv.nlisteners].fd = fd;
	srv.listener[srv.nlisteners++].kind = kind;
}

/* a: 19 bytes of conf.listen_addr. */
static void
listen_tcp(const uint8_t *a, int by_default)
{
	struct sockaddr_in	 in4 = { .sin_family = AF_INET };
	struct sockaddr_in6	 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr		*sa = (struct sockaddr *)&in6;
	socklen_t		 len = sizeof(in6);
	int			 fd, on = 1;
	unsigned int		 port = (unsigned int)a[17] << 8 | a[18];

	memcpy(&in6.sin6_addr, a + 1, 16);
	memcpy(&in4.sin_addr, a + 1, 4);
	in4.sin_port = in6.sin6_port = htons((uint16_t)port);
	if (a[0] == 4) {
		sa = (struct sockaddr *)&in4;
		len = sizeof(in4);
	}
	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (fd != -1 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
	    sizeof(on)) == 0 && (a[0] == 4 || setsockopt(fd, IPPROTO_IPV6,
	    IPV6_V6ONLY, &on, sizeof(on)) == 0) && bind(fd, sa, len) == 0) {
		listener_add(fd, 0);
		return;
	}
	if (by_default && a[0] == 6 &&
	    (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
		log_info("no IPv6 on this host: [::1]:%u is left out", port);
		fd_close(&fd);
		return;
	}
	fatal("listen on TCP port %u", port);
}

/* Removes a socket on which nobody listens; a live one is an error. */
static void
stale_unlink(const struct sockaddr_un *un)
{
	auto_close int	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	struct stat	st;

	if (lstat(un->sun_path, &st) == -1) {
		if (errno == ENOENT)
			return;
		fatal("stat %s", un->sun_path);
	}
	if (!S_ISSOCK(st.st_mode))
		fatalx("%s is in the way: not a socket", un->sun_path);
	if (fd == -1)
		fatal("socket");
	if (connect(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 ||
	    errno != ECONNREFUSED)
		fatalx("somebody listens on %s", un->sun_path);
	if (unlink(un->sun_path) == -1)
		fatal("remove stale %s", un->sun_path);
}

static void
listen_unix(const struct conf *conf)
{
	struct sockaddr_un	 un = { .sun_family = AF_UNIX };
	char			*slash;
	mode_t			 mask;
	int			 fd;

	if (str_copy(un.sun_path, conf->socket, sizeof(un.sun_path)) == -1 ||
	    (slash = strrchr(un.sun_path, '/')) == NULL)
		fatalx("%s: not a path for a socket", conf->socket);
	if (slash != un.sun_path) {
		*slash = '\0';		/* /run is empty after a boot */
		if (mkdir(un.sun_path, 0755) == -1 && errno != EEXIST)
			fatal("make directory %s", un.sun_path);
		*slash = '/';
	}
	stale_unlink(&un);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	mask = umask(0177);
	if (fd == -1 || bind(fd, (struct sockaddr *)&un, sizeof(un)) == -1)
		fatal("bind %s", un.sun_path);
	(void)umask(mask);		/* cannot fail */
	if (chown(un.sun_path, 0, (gid_t)conf->gid_socket) == -1 ||
	    chmod(un.sun_path, 0660) == -1)
		fatal("change owner of %s", un.sun_path);
	listener_add(fd, 1);
}

void
start_listeners(const struct conf *conf)
{
	size_t	i;

	for (i = 0; i + 19 <= conf->listen_addr.len; i += 19)
		listen_tcp(conf->listen_addr.data + i, conf->listen.n == 0);
	if (strcmp(conf->socket, "none") != 0)
		listen_unix(conf);
	if (srv.nlisteners == 0)
		fatalx("no address to listen on");
}

/* ---- readiness ---------------------------------------------------------- */

/* The socket for sd_notify(3), connected now: later we may make none. */
void
start_notify(const struct conf *conf)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	size_t			n = conf->notify_socket.len;
	socklen_t		len = (socklen_t)(offsetof(struct sockaddr_un,
	    sun_path) + n);

	srv.ready_fd = conf->ready_fd == 0 ? -1 : (int)conf->ready_fd;
	if (srv.ready_fd != -1)		/* no child is to hold it open */
		(void)fcntl(srv.ready_fd, F_SETFD, FD_CLOEXEC);
	if (n == 0 || n > sizeof(un.sun_path))
		return;
	memcpy(un.sun_path, conf->notify_socket.data, n);
	if (un.sun_path[0] == '@')
		un.sun_path[0] = '\0';
	srv.notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	if (srv.notify_fd == -1 ||
	    connect(srv.notify_fd, (struct sockaddr *)&un, len) == -1) {
		log_warn("connect to NOTIFY_SOCKET");
		fd_close(&srv.notify_fd);
	}
}

void
start_tell(const char *state)
{
	if (srv.notify_fd != -1 &&
	    send(srv.notify_fd, state, strlen(state), MSG_NOSIGNAL) == -1)
		log_warn("notify %s", state);
	if (srv.ready_fd != -1 && strcmp(state, "READY=1") == 0) {
		if (write(srv.ready_fd, "\n", 1) != 1)
			log_warn("write to the ready descriptor");
		fd_close(&srv.ready_fd);
	}
}

/* A descriptor for the set and a few for each box; soft up to hard. */
void
start_limits(const struct conf *conf)
{
	struct rlimit	rl;
	rlim_t		want = 256 + 5 * conf->max_boxes;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("getrlimit");
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("setrlimit");
	if (rl.rlim_max < want)
		fatalx("%llu boxes need a limit of %llu open files, the limit "
		    "is %llu", (unsigned long long)conf->max_boxes,
		    (unsigned long long)want,
		    (unsigned long long)rl.rlim_max);
}
