/*
 * netns.c: the maker, a child of netd that makes network namespaces and
 * opens sockets in them.
 *
 * Why a process of its own: what makes a namespace needs clone(2), setns(2)
 * and files, and CAP_SYS_ADMIN over U1, the user namespace in which both
 * run; the process that reads messages needs none of these and its fence
 * holds none.  The maker reads nothing but the fixed questions below.
 *
 * How one is made.  A child that shares all memory and does nothing
 * (cheaper than a fork by the page tables) is cloned into a new user
 * namespace Un and a new network namespace, while the maker's effective uid
 * is k, so that Un's owner is k: this is how k is found again after a
 * restart.  The maker writes Un's maps (`0 k 1'), takes a descriptor of the
 * netns and kills the child.  As root of U1, Un's parent, it has every
 * capability over Un: it steps into the netns, opens sockets, writes
 * sysctls, and steps back into a netns that belongs to U1 (into the host's
 * it could not).
 *
 * What it sees of the file system: nothing but two detached mounts.  One is
 * a /proc of its own pid namespace without anything but processes, for the
 * maps; the other is /proc/sys/net, in which names resolve in the netns of
 * whoever looks.  The root of a detached mount is its own parent: no `..'
 * leads out of it.
 *
 * Three sockets are proxyd's, for `allowlist': the relay's and two of the name
 * service.  They are IP_TRANSPARENT, which a box may not set, as it wants
 * CAP_NET_ADMIN over Un: by that the ruleset tells them from what a box has
 * bound in their place while they were closed, to which nothing comes.  The
 * relay's port is below 8, and so no box's; that wants CAP_NET_BIND_SERVICE
 * over Un.  The one of UDP must not have SO_REUSEADDR, with which another that
 * has it as well takes its datagrams.  With TCP nobody gets in beside a socket
 * that listens, and without it connections of the one before, which linger,
 * would keep the next one out.
 *
 * Must never: execute a program, send a packet, read a message of a peer of
 * netd or a byte of a box.
 */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "fds.h"
#include "log.h"
#include "netd.h"
#include "netd_maker_calls.h"
#include "netns_owner.h"
#include "xmalloc.h"

/* The maker's descriptors, at fixed places below the fence's last_fd. */
#define FD_NETD		3		/* questions and answers */
#define FD_PROC		4		/* processes */
#define FD_SYS		5		/* /proc/sys/net */
#define FD_HOME		6		/* the netns of netd itself */

/* And in maker_calls.def. */
#define CHILD_FLAGS	(CLONE_NEWUSER | CLONE_NEWNET | CLONE_VM | \
			    CLONE_FILES | SIGCHLD)

#define NETNS_FDS	(1 + NS_NSOCKS)		/* of one answer */
_Static_assert(NETNS_FDS <= FDS_MAX, "an answer does not fit a packet");

/* Both ends are one program: structs may travel as they are. */
struct question {
	uint32_t	 k;		/* 0: a netns comes along */
	uint32_t	 want;		/* 1 << enum netns_sock */
};

struct answer {
	uint32_t	 k;
	int32_t		 error;
	uint32_t	 have;		/* sockets that follow the netns */
	char		 step[32];
};

/* addr: where it is bound; NULL: of netlink, of this protocol. */
static const struct {
	const char	*step, *addr;
	int		 protocol, type;
	uint16_t	 port;
} socks[NS_NSOCKS] = {
	[NS_NFT] = { "open netlink", NULL, NETLINK_NETFILTER, SOCK_RAW, 0 },
	[NS_LOG] = { "open netlink", NULL, NETLINK_NETFILTER, SOCK_RAW, 0 },
	[NS_ROUTE] = { "open netlink", NULL, NETLINK_ROUTE, SOCK_RAW, 0 },
	[NS_DIAG] = { "open netlink", NULL, NETLINK_SOCK_DIAG, SOCK_RAW, 0 },
	[NS_RELAY] = { "the relay's port", RELAY_ADDR4, 0, SOCK_STREAM,
	    RELAY_PORT },
	[NS_NAMES_UDP] = { "port 53 (UDP)", EGRESS_DNS4, 0, SOCK_DGRAM, 53 },
	[NS_NAMES_TCP] = { "port 53 (TCP)", EGRESS_DNS4, 0, SOCK_STREAM, 53 },
};

/* TCP ports of these. */
static const uint16_t	maker_ports[] = { RELAY_PORT, 53 };

/* workbox-network(7): why, and what a box sees of it. */
static const struct { const char *name, *value; } sysctls[] = {
	/* 1 to 7 are ours in every netns */
	{ "ipv4/ip_unprivileged_port_start", "8" },
	/* bounds what a box's sockets hold of the host's memory */
	{ "ipv4/tcp_rmem", "4096 65536 262144" },
	{ "ipv4/tcp_wmem", "4096 16384 262144" },
	/* what slirp4netns announces would come seconds late, and stay */
	{ "ipv6/conf/default/accept_ra", "0" },
};

/* ---- both sides: packets with descriptors ---------------------------- */

/*
 * Exactly len bytes, and at most n descriptors: -1 where none came.  1; 0:
 * would block; -1: errno, ECONNRESET at the end.  The descriptors are the
 * caller's in every case.
 */
static int
packet_recv(int sock, void *data, size_t len, int *ret_fds, size_t n)
{
	int	fds[FDS_MAX];
	size_t	got, i;
	ssize_t	r = fds_recv(sock, data, len, fds, &got, 0);

	for (i = 0; i < n; i++)
		ret_fds[i] = i < got ? fds[i] : -1;
	for (; i < got; i++)
		fd_close(&fds[i]);
	if (r == -1)
		return errno == EAGAIN ? 0 : -1;
	if (r == (ssize_t)len && got <= n)
		return 1;
	errno = r == 0 ? ECONNRESET : EBADMSG;
	return -1;
}

/* ---- the maker: making ----------------------------------------------- */

/* What is being made; the first failure ends it. */
struct work {
	int		 netns;		/* owned */
	int		 sock[NS_NSOCKS]; /* owned */
	const char	*step;		/* what is being tried */
};

static char	child_stack[16384] __attribute__((aligned(16)));

/* Holds its namespaces for the moment until the maker does. */
static int
child_main(void *arg)
{
	(void)arg;
	for (;;)
		(void)poll(NULL, 0, -1);	/* until it is killed */
	return 0;
}

static int
file_write(int dirfd, const char *name, const char *value)
{
	auto_close int	fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
	size_t		len = strlen(value);

	if (fd == -1)
		return -1;
	return write(fd, value, len) == (ssize_t)len ? 0 : -1;
}

/* The maps of Un, and its netns, through the child that is in them. */
static int
child_use(struct work *w, pid_t pid, unsigned int k)
{
	char	path[32], map[32];

	(void)snprintf(map, sizeof(map), "0 %u 1\n", k);
	w->step = "write uid map";
	(void)snprintf(path, sizeof(path), "%d/uid_map", (int)pid);
	if (file_write(FD_PROC, path, map) == -1)
		return -1;
	w->step = "write gid map";
	(void)snprintf(path, sizeof(path), "%d/gid_map", (int)pid);
	if (file_write(FD_PROC, path, map) == -1)
		return -1;
	w->step = "open netns";
	(void)snprintf(path, sizeof(path), "%d/ns/net", (int)pid);
	w->netns = openat(FD_PROC, path, O_RDONLY | O_CLOEXEC);
	return w->netns == -1 ? -1 : 0;
}

static int
make_netns(struct work *w, unsigned int k)
{
	pid_t	pid;
	int	e = 0, r;

	w->step = "become k";
	/* the plain call: libc's would look for threads; gid may stay */
	if (syscall(SYS_setresuid, -1, k, -1) == -1)
		return -1;
	pid = clone(child_main, child_stack + sizeof(child_stack), CHILD_FLAGS,
	    NULL);
	e = errno;
	if (syscall(SYS_setresuid, -1, 0, -1) == -1)
		return -1;		/* step is right */
	if (pid == -1) {
		w->step = "clone";
		errno = e;
		return -1;
	}
	r = child_use(w, pid, k);
	e = errno;
	(void)kill(pid, SIGKILL);	/* our child, not reaped yet */
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		continue;
	errno = e;
	return r;
}

/* Whether a netns that outlived its maker is one of ours, and which. */
static int
check_netns(struct work *w, const struct stat *u1, unsigned int *ret_k)
{
	auto_close int	un = -1;

	w->step = "own netns";
	un = netns_owner(w->netns, u1, ret_k);
	return un == -1 ? -1 : 0;
}

/* Of socks[s], which is not of netlink; -1: errno. */
static int
sock_bound(int s)
{
	struct sockaddr_in	sa = { .sin_family = AF_INET,
				    .sin_port = htons(socks[s].port) };
	const int		on = 1;
	auto_close int		fd = -1;

	if (inet_pton(AF_INET, socks[s].addr, &sa.sin_addr) != 1)
		abort();		/* a text of our own */
	fd = socket(AF_INET, socks[s].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1 ||
	    setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) == -1)
		return -1;
	if (socks[s].type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET,
	    SO_REUSEADDR, &on, sizeof(on)) == -1)
		return -1;
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1)
		return -1;
	if (socks[s].type == SOCK_STREAM && listen(fd, RELAY_BACKLOG) == -1)
		return -1;
	return steal_fd(&fd);
}

static int
fill_netns(struct work *w, uint32_t want)
{
	size_t	i;
	int	s;

	for (s = 0; s < NS_NSOCKS; s++) {
		if (!(want & 1U << s))
			continue;
		w->step = socks[s].step;
		w->sock[s] = socks[s].addr != NULL ? sock_bound(s) :
		    socket(AF_NETLINK, socks[s].type | SOCK_CLOEXEC,
		    socks[s].protocol);
		if (w->sock[s] == -1)
			return -1;
	}
	for (i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
		w->step = sysctls[i].name;
		/* a kernel may be without IPv6 */
		if (file_write(FD_SYS, sysctls[i].name, sysctls[i].value) ==
		    -1 && (errno != ENOENT ||
		    strncmp(sysctls[i].name, "ipv6/", 5) != 0))
			return -1;
	}
	return 0;
}

static int
enter_netns(struct work *w, uint32_t want)
{
	int	e, r;

	w->step = "enter netns";
	if (setns(w->netns, CLONE_NEWNET) == -1)
		return -1;
	r = fill_netns(w, want);
	e = errno;
	if (setns(FD_HOME, CLONE_NEWNET) == -1)
		fatal("leave netns");
	errno = e;
	return r;
}

/* ---- the maker: its life --------------------------------------------- */

static int
answer_pass(const struct answer *a, const struct work *w)
{
	int	fds[NETNS_FDS], s;
	size_t	n = 0;

	if (a->error == 0) {
		fds[n++] = w->netns;
		for (s = 0; s < NS_NSOCKS; s++)
			if (w->sock[s] != -1)
				fds[n++] = w->sock[s];
	}
	return fds_send(FD_NETD, a, sizeof(*a), fds, n, 0);
}

static void
answer_send(struct answer *a, struct work *w)
{
	int	r, s;

	r = answer_pass(a, w);
	if (r == -1 && errno == ETOOMANYREFS) {
		/* this uid has as many on their way as it may */
		a->error = errno;
		a->have = 0;
		(void)str_copy(a->step, "pass descriptors", sizeof(a->step));
		r = answer_pass(a, w);
	}
	if (r == -1 && (errno == EPIPE || errno == ECONNRESET))
		_exit(0);			/* netd is gone */
	if (r == -1)
		fatal("answer netd");
	fd_close(&w->netns);
	for (s = 0; s < NS_NSOCKS; s++)
		fd_close(&w->sock[s]);
}

static void
question_do(const struct question *q, struct work *w, const struct stat *u1)
{
	struct answer	a;
	unsigned int	k = q->k;
	int		r, s;

	memset(&a, 0, sizeof(a));
	r = w->netns == -1 ? make_netns(w, k) : check_netns(w, u1, &k);
	if (r == 0)
		r = enter_netns(w, q->want);
	if (r == -1) {
		a.error = errno;
		(void)str_copy(a.step, w->step, sizeof(a.step)); /* or cut */
	}
	a.k = k;
	for (s = 0; s < NS_NSOCKS && r == 0; s++)
		if (w->sock[s] != -1)
			a.have |= 1U << s;
	answer_send(&a, w);
}

static const struct confine_limit	maker_limits[] = {
	{ RLIMIT_CORE, 0 },		/* nothing of it is for a disk */
	{ RLIMIT_NPROC, 16 },		/* itself, netd and one child; also
					 * what one Un may ever hold */
	{ RLIMIT_NOFILE, 512 },		/* one netns at a time, but this also
					 * bounds what is on its way, netd's
					 * to privd included */
};

static const int	maker_files[] = { FD_PROC, FD_SYS };

static struct confine	maker_profile = {
	.root = confine_root_empty,	/* two detached mounts are all */
	.uid = 0,			/* of U1: an ordinary user outside */
	.caps = 1 << CAP_SYS_ADMIN |	/* setns */
	    1 << CAP_NET_ADMIN |	/* sysctls of a netns of Un; sockets
					 * there that are IP_TRANSPARENT */
	    1 << CAP_NET_BIND_SERVICE |	/* of those, the relay's port */
	    1 << CAP_SETUID | 1 << CAP_SETGID |	/* maps; k as euid */
	    1 << CAP_SYS_PTRACE,	/* ns/net of a child in Un */
	.landlock = confine_landlock,	/* maps and sysctls, nothing else */
	.landlock_but = maker_files,
	.nlandlock_but = sizeof(maker_files) / sizeof(maker_files[0]),
	.landlock_bind = maker_ports,
	.nlandlock_bind = sizeof(maker_ports) / sizeof(maker_ports[0]),
	.limits = maker_limits,
	.nlimits = sizeof(maker_limits) / sizeof(maker_limits[0]),
	.filter = netd_maker_calls,
	.nfilter = sizeof(netd_maker_calls) / sizeof(netd_maker_calls[0]),
	.last_fd = FD_HOME,
};

static void	maker_main(int, int) __attribute__((noreturn));

static void
maker_loop(const struct stat *u1)
{
	struct question	q = { 0, 0 };
	struct work	w;
	int		i;

	for (;;) {
		memset(&w, 0, sizeof(w));
		for (i = 0; i < NS_NSOCKS; i++)
			w.sock[i] = -1;
		if (packet_recv(FD_NETD, &q, sizeof(q), &w.netns, 1) != 1) {
			if (errno == ECONNRESET)
				_exit(0);	/* netd is gone */
			fatal("read question");
		}
		if ((w.netns == -1) == (q.k == 0))
			fatalx("question makes no sense");
		question_do(&q, &w, u1);
	}
}

/* A mount of processes alone, and one of /proc/sys/net; see above. */
static void
maker_mounts(int *ret_proc, int *ret_sys)
{
	static const unsigned int	atime[] = { MOUNT_ATTR_RELATIME,
		MOUNT_ATTR_NOATIME, MOUNT_ATTR_STRICTATIME };
	auto_close int			fs = -1;
	size_t				i;

	if (unshare(CLONE_NEWNS) == -1)
		fatal("unshare mount namespace");
	*ret_sys = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc/sys/net",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (*ret_sys == -1)
		fatal("clone the mount of /proc/sys/net");
	fs = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
	if (fs == -1 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "subset", "pid",
	    0) == -1 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) ==
	    -1)
		fatal("make a /proc");
	/* access times must be kept as the host's /proc keeps them */
	*ret_proc = -1;
	for (i = 0; i < sizeof(atime) / sizeof(atime[0]); i++)
		if (*ret_proc == -1)
			*ret_proc = (int)syscall(SYS_fsmount, fs,
			    FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | atime[i]);
	if (*ret_proc == -1)
		fatal("mount a /proc (is something mounted over the host's?)");
}

/* Moves *fd (owned) to n, above which nothing of ours lies yet. */
static void
fd_place(int *fd, int n)
{
	if (*fd != n && dup3(*fd, n, O_CLOEXEC) == -1)
		fatal("dup3");
	if (*fd != n)
		fd_close(fd);
	*fd = -1;
}

/* Moves it out of the way of the fixed numbers. */
static void
fd_lift(int *fd)
{
	int	n = fcntl(*fd, F_DUPFD_CLOEXEC, 16);

	if (n == -1)
		fatal("dup");
	fd_close(fd);
	*fd = n;
}

/* For ps: argv[0] has the room of netd's path, and some of it is enough. */
static void
title(void)
{
	size_t	n = strlen(program_invocation_name);

	(void)snprintf(memset(program_invocation_name, 0, n), n + 1,
	    "netd-maker");
	(void)prctl(PR_SET_NAME, "netd-maker");		/* cannot fail */
}

static void
maker_main(int sock, int landlock)
{
	struct answer	ready;
	struct stat	u1;
	int		home, proc, sys;

	/* first: the host's /proc shows this process under another pid */
	if ((home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) == -1 ||
	    stat("/proc/self/ns/user", &u1) == -1)
		fatal("open own namespaces");
	maker_mounts(&proc, &sys);
	title();
	fd_lift(&sock);
	fd_lift(&home);
	fd_lift(&proc);
	fd_lift(&sys);
	fd_place(&sock, FD_NETD);
	fd_place(&proc, FD_PROC);
	fd_place(&sys, FD_SYS);
	fd_place(&home, FD_HOME);
	if (!landlock)
		maker_profile.landlock = NULL;
	if (confine_enter(&maker_profile) == -1)
		fatalx("enter fence: %s", confine_error());
	memset(&ready, 0, sizeof(ready));
	if (fds_send(FD_NETD, &ready, sizeof(ready), NULL, 0, 0) == -1)
		fatal("answer netd");
	maker_loop(&u1);
	_exit(0);
}

/* ---- netd's side ----------------------------------------------------- */

int
netns_start(const struct conf *conf, int landlock)
{
	struct netns_made	m;
	struct pollfd		p;
	int			fl, sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		fatal("socketpair");
	/* netd has nothing to do in the host's network; the maker's children
	 * nothing among the host's processes */
	if (unshare(CLONE_NEWNET | CLONE_NEWPID) == -1)
		fatal("unshare network and pid namespace");
	switch (fork()) {
	case -1:
		fatal("fork");
	case 0:
		fd_close(&sv[0]);
		conf_log(conf, "netd-maker");
		maker_main(sv[1], landlock);
	default:
		fd_close(&sv[1]);
	}
	if ((fl = fcntl(sv[0], F_GETFL)) == -1 ||
	    fcntl(sv[0], F_SETFL, fl | O_NONBLOCK) == -1)
		fatal("fcntl");
	p.fd = sv[0];
	p.events = POLLIN;
	while (poll(&p, 1, -1) == -1)
		if (errno != EINTR)
			fatal("poll");
	if (netns_recv(sv[0], &m) != 1 || m.error != 0)
		fatalx("maker did not start");
	return sv[0];
}

int
netns_ask(int fd, unsigned int k, unsigned int want, int netns)
{
	struct question	q = { k, want };

	return fds_send(fd, &q, sizeof(q), &netns, netns == -1 ? 0 : 1, 0);
}

int
netns_recv(int fd, struct netns_made *ret)
{
	struct answer	a;
	int		fds[NETNS_FDS], r, s;
	size_t		n = 0;

	memset(&a, 0, sizeof(a));
	r = packet_recv(fd, &a, sizeof(a), fds, NETNS_FDS);
	ret->k = a.k;
	ret->error = a.error;
	memcpy(ret->step, a.step, sizeof(ret->step));
	ret->step[sizeof(ret->step) - 1] = '\0';
	ret->netns = steal_fd(&fds[n++]);
	for (s = 0; s < NS_NSOCKS; s++)
		ret->sock[s] = a.have & 1U << s ? steal_fd(&fds[n++]) : -1;
	for (n = 0; n < NETNS_FDS; n++)
		fd_close(&fds[n]);		/* what it did not tell of */
	if (r != 1)
		netns_close(ret);
	return r;
}

void
netns_close(struct netns_made *m)
{
	int	s;

	fd_close(&m->netns);
	for (s = 0; s < NS_NSOCKS; s++)
		fd_close(&m->sock[s]);
}
