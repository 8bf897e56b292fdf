/*
 * privd: starts the daemons, makes and ends boxes, holds what they need.
 *
 *	start.c		once: locks, listening sockets
 *	maker.c		the second process: fork, mount, setns
 *	daemons.c	the set of daemons, all for one
 *	handlers.c	what apid may ask, and why it is safe
 *	life.c		how a box moves; table.c, boxlog.c, scan.c beside it
 *	box.h		the mechanics of a box, in files of their own
 *
 * One loop on epoll(7), no event library, nothing in it waits.  See PRIVSEP.
 *
 * Must never: parse HTTP, JSON or any text from a peer; take a path, pid,
 * argv or flag word from a message; link OpenSSL, LMDB or libevent; end
 * because of what a peer said.
 */
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <linux/capability.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "privd.h"
#include "privd_calls.h"
#include "ulid.h"
#include "xmalloc.h"

#define PRIVD_CONF_FD	3
#define PRIVD_TOKEN_FD	4
#define TURN		64		/* events in one turn */

struct server	srv = { .conf_fd = PRIVD_CONF_FD,
		    .token_fd = PRIVD_TOKEN_FD, .state_fd = -1,
		    .lock_fd = -1, .ep = -1, .notify_fd = -1,
		    .ready_fd = -1, .meminfo_fd = -1 };
static int	signal_fd = -1;

#define CAP(c)	(UINT64_C(1) << CAP_##c)
static const struct confine fence = {
	.caps = CAP(DAC_OVERRIDE)	/* what a box owns of its cgroups */
	    | CAP(SYS_PTRACE)		/* facts: namespaces in /proc */
	    | CAP(KILL),		/* daemons and boxes are other uids */
	.filter = privd_calls,
	.nfilter = sizeof(privd_calls) / sizeof(privd_calls[0]),
};

/* ---- events ------------------------------------------------------------ */

static void
ev_ctl(int op, int fd, enum ev ev, unsigned int n, uint32_t events)
{
	struct epoll_event	e = { .events = events,
				    .data.u64 = (uint64_t)ev << 32 | n };

	if (epoll_ctl(srv.ep, op, fd, &e) == -1)
		fatal("watch descriptor");
}

void
ev_add(int fd, enum ev ev, unsigned int n, uint32_t events)
{
	ev_ctl(EPOLL_CTL_ADD, fd, ev, n, events);
}

void
ev_mod(int fd, enum ev ev, unsigned int n, uint32_t events)
{
	ev_ctl(EPOLL_CTL_MOD, fd, ev, n, events);
}

void
ev_close(int *fd)
{
	struct epoll_event	e = { 0 };

	if (*fd == -1)
		return;
	/* the maker may hold a copy: closing alone would not end it */
	(void)epoll_ctl(srv.ep, EPOLL_CTL_DEL, *fd, &e);
	fd_close(fd);
}

/* ---- the loop ------------------------------------------------------------ */

static void
on_signal(void)
{
	struct signalfd_siginfo	si;

	if (read(signal_fd, &si, sizeof(si)) == sizeof(si))
		set_stop();
}

static void
on_maker(void)
{
	struct maker_ans	a;
	size_t			i;

	while (maker_answer(&a)) {
		if (a.op == MK_SET)
			set_on_maker(&a);
		else
			life_on_maker(&a);
		for (i = 0; i < MAKER_FDS; i++)
			fd_close(&a.fd[i]);	/* what nobody took */
	}
}

static void
on_event(const struct epoll_event *e)
{
	enum ev		ev = (enum ev)(e->data.u64 >> 32);
	unsigned int	n = (unsigned int)e->data.u64;

	switch (ev) {
	case EV_SIGNAL:
		on_signal();
		break;
	case EV_MAKER:
		on_maker();
		break;
	case EV_CHAN:
		set_on_chan(n, e->events);
		break;
	case EV_DAEMON:
		set_on_pidfd(n);
		break;
	case EV_PID:
	case EV_READY:
	case EV_LOG:
	case EV_CGROUP:
	case EV_TREE:
		life_on_event(ev, n);
		break;
	}
}

/* Milliseconds to wait for events, -1: for ever. */
static int
wait_ms(void)
{
	uint64_t	a = set_due(), b = table_next(), now;

	if (a == 0 || (b != 0 && b < a))
		a = b;
	if (a == 0)
		return -1;
	now = mono_ms();
	return a <= now ? 0 : a - now > 60000 ? 60000 : (int)(a - now);
}

static void
loop(void)
{
	struct epoll_event	e[TURN];
	uint64_t		now;
	int			i, n;

	for (;;) {
		n = epoll_wait(srv.ep, e, TURN, wait_ms());
		if (n == -1 && errno != EINTR)
			fatal("epoll_wait");
		for (i = 0; i < n; i++)
			on_event(&e[i]);
		now = mono_ms();
		set_tick(now);
		table_tick(now);
	}
}

/* ---- start ----------------------------------------------------------------- */

/* Closes what was inherited and is not ours; 0 and 1 are never read. */
static void
inherited(void)
{
	struct stat	st;
	int		seals = fcntl(PRIVD_TOKEN_FD, F_GET_SEALS);

	if ((srv.conf = conf_read(PRIVD_CONF_FD)) == NULL)
		fatalx("descriptor 3 holds no configuration: start it by "
		    "`workbox serve'");
	if (seals == -1 || !(seals & F_SEAL_WRITE) ||
	    fstat(PRIVD_TOKEN_FD, &st) == -1 || st.st_size < 16 ||
	    st.st_size > 255)
		fatalx("descriptor 4 holds no token");
	(void)fcntl(PRIVD_CONF_FD, F_SETFD, FD_CLOEXEC);	/* cannot fail */
	(void)fcntl(PRIVD_TOKEN_FD, F_SETFD, FD_CLOEXEC);
}

static void
signals(void)
{
	sigset_t	set;

	(void)sigemptyset(&set);	/* these cannot fail */
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    (signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) == -1)
		fatal("wait for signals");
	ev_add(signal_fd, EV_SIGNAL, 0, EPOLLIN);
}

int
main(int argc, char *argv[])
{
	log_init("privd", LOG_L_INFO, 0);
	if (argc != 1)
		fatalx("takes no arguments");
	inherited();
	conf_log(srv.conf, "privd");
	(void)umask(022);	/* a box enters its v1 cgroups; cannot fail */
	start_limits(srv.conf);
	start_state(srv.conf);
	if (box_init(srv.conf) == -1)
		fatalx("%s", box_error());
	if (*cgroup_note() != '\0')
		log_info("%s", cgroup_note());
	if ((srv.ep = epoll_create1(EPOLL_CLOEXEC)) == -1)
		fatal("epoll");
	maker_start(argv[0]);
	start_listeners(srv.conf);
	start_notify(srv.conf);
	signals();
	if ((srv.meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC)) ==
	    -1)
		fatal("open /proc/meminfo");
	table_init();
	if (confine_enter(&fence) == -1)
		fatalx("%s", confine_error());
	scan();
	set_start();
	loop();
}
