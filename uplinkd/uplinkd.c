/*
 * uplinkd: starts slirp4netns for boxes of the network `egress', one each,
 * and ends it.
 *
 * privd has it started as netd is: as root of netd's user namespace U1, which
 * real root owns; on the host it is the user _workbox-netd with no capability
 * at all.  It stays in the host's network namespace, over which it has no
 * power: that is where the boxes' connections come from.
 *
 *	uplinkd.c	start, fence, loop, dispatch
 *	uplinks.c	each of them from its start to its end
 *	child.c		a child on its way to be slirp4netns
 *	cgroup.c	where they run, and by which they are ended
 *	root.c		the files that there are
 *
 * They outlive it: whatever runs when the daemons start again is found by its
 * cgroup, and is ended unless netd keeps it.
 *
 * It cannot have Landlock, which forbids the mounts of slirp4netns's own
 * sandbox; its filter is inherited and allows what both need.
 *
 * Must never: read a byte that a box sent; execute anything but slirp4netns.
 */
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "ulid.h"
#include "uplinkd.h"
#include "uplinkd_calls.h"
#include "xmalloc.h"

/* As it is started; FD_EPOLL and FD_SIGNAL are put behind. */
#define FD_PRIVD	3
#define FD_NETD		5
#define FD_EPOLL	6
#define FD_SIGNAL	7

#define FD_SPARE	64	/* descriptors that belong to no uplink */
#define TURN		32	/* events at once */
#define STOP_MS		3000	/* netd's last words, and ends under way */

static const struct confine_limit	uplinkd_limits[] = {
	{ RLIMIT_CORE, 0 },		/* nothing of it is for a disk */
	{ RLIMIT_NPROC, 512 },		/* netd's two, itself, and children
					 * that are not another uid yet */
};

static struct confine	uplinkd_profile = {
	.root = uplink_root,		/* /usr, a tun, cgroups: see there */
	.uid = 0,			/* of U1: an ordinary user outside */
	.caps = 1 << CAP_SYS_ADMIN |	/* setns; to mount a netns */
	    1 << CAP_SETUID | 1 << CAP_SETGID,	/* to become k in Un */
	.landlock = NULL,		/* forbids slirp4netns's own mounts */
	.limits = uplinkd_limits,
	.nlimits = sizeof(uplinkd_limits) / sizeof(uplinkd_limits[0]),
	.filter = uplinkd_calls,	/* inherited by slirp4netns */
	.nfilter = sizeof(uplinkd_calls) / sizeof(uplinkd_calls[0]),
	.last_fd = FD_SIGNAL,
};

static struct chan	privd, netd;
static uint32_t		stop_rid;	/* to be answered; 0: none */
static uint64_t		stop_due;

/* ---- sending --------------------------------------------------------- */

static void
poll_chan(struct chan *c, enum ev ev, int op)
{
	struct epoll_event	e = { .events = EPOLLIN, .data.u64 =
				    EV_DATA(ev, 0) };

	if (chan_pending(c))
		e.events |= EPOLLOUT;
	if (epoll_ctl(FD_EPOLL, op, c->fd, &e) == -1)
		fatal("epoll_ctl");
}

void
uplinkd_sent(int result)
{
	if (netd.fd == -1 || (result == -1 && errno == EPIPE))
		return;		/* its end is read, not written */
	if (result == -1)
		fatal("send message: %s", netd.why);
	poll_chan(&netd, EV_NETD, EPOLL_CTL_MOD);
}

static void
ready(void)
{
	struct msg_daemon_ready	r = { .wire_end = 0 };

	(void)str_copy(r.version, PACKAGE_VERSION, sizeof(r.version));
	if (chan_ask(&privd, MSG_DAEMON_READY, &r, -1, NULL) == -1)
		fatal("send READY");
}

/* ---- dispatch ----------------------------------------------------------- */

/*
 * netd, which is told to stop, too, has some of them ended that no box has;
 * what boxes have goes on.  Who waits for one asks the next uplinkd.
 */
static void
on_stop(const struct msg *m)
{
	uplinks_stop();
	stop_rid = m->rid;
	stop_due = mono_ms() + STOP_MS;
}

static void
stop_look(void)
{
	if (stop_rid == 0 || (mono_ms() < stop_due &&
	    (netd.fd != -1 || uplinks_busy() > 0)))
		return;
	if (chan_ok(&privd, stop_rid) == -1)	/* 10 bytes: never queued */
		log_warn("answer STOP");
	exit(0);
}

/* The permission table was walked by chan_recv(). */
static void
dispatch(struct msg *m)
{
	switch (m->row->type) {
	case MSG_DAEMON_GO:
		privd.state = S_RUN;
		uplinks_go();
		return;
	case MSG_DAEMON_RELOAD:
		if (conf_reload(m->fd, "uplinkd") == -1)
			fatal("read the configuration");
		return;
	case MSG_DAEMON_STOP:
		on_stop(m);
		return;
	case MSG_UPLINK_START:
		uplinkd_on_start(m);
		return;
	case MSG_UPLINK_END:
		uplinkd_on_end(m);
		return;
	}
	/* an answer to what was never asked, or an error to READY */
	fatalx("%s is of no use here", m->row->name);
}

static void
on_chan(struct chan *c, enum ev ev, uint32_t events)
{
	struct msg	m;
	int		r;

	if (events & EPOLLOUT && chan_flush(c) == -1 && errno != EPIPE)
		fatal("send message");
	if (events & EPOLLOUT)
		poll_chan(c, ev, EPOLL_CTL_MOD);
	while ((r = chan_recv(c, &m)) == 1) {
		dispatch(&m);
		fd_close(&m.fd);
	}
	if (r == 0)
		return;
	if (errno == ECONNRESET && c == &privd)
		exit(0);		/* privd is gone: so are we */
	if (errno == ECONNRESET) {
		log_debug("netd is gone");	/* privd sees to the rest */
		chan_close(c);
		return;
	}
	if (errno == EBADMSG)
		fatalx("message: %s", c->why);
	fatal("receive message");
}

static void
on_event(const struct epoll_event *e)
{
	enum ev			ev = (enum ev)(e->data.u64 >> 32);
	struct signalfd_siginfo	si;

	switch (ev) {
	case EV_PRIVD:
		on_chan(&privd, ev, e->events);
		break;
	case EV_NETD:
		if (netd.fd != -1)
			on_chan(&netd, ev, e->events);
		break;
	case EV_SIGNAL:
		while (read(FD_SIGNAL, &si, sizeof(si)) == sizeof(si))
			;
		uplinks_reap();
		break;
	case EV_READY:
	case EV_CGROUP:
		uplinks_event(ev, (unsigned int)e->data.u64);
		break;
	}
}

static void	loop(void) __attribute__((noreturn));

static void
loop(void)
{
	struct epoll_event	e[TURN];
	int			i, ms, n;

	for (;;) {
		ms = uplinks_tick();
		stop_look();
		if (stop_rid != 0 && (ms == -1 || ms > 100))
			ms = 100;
		n = epoll_wait(FD_EPOLL, e, TURN, ms);
		if (n == -1 && errno != EINTR)
			fatal("epoll_wait");
		for (i = 0; i < n; i++)
			on_event(&e[i]);
	}
}

/* ---- start ----------------------------------------------------------- */

/* Signals are privd's to send on, and may reach its whole group. */
static void
signals(void)
{
	const int	ignored[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE };
	sigset_t	set;
	size_t		i;
	int		fd;

	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);	/* valid numbers */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    (fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) == -1 ||
	    (fd != FD_SIGNAL && dup3(fd, FD_SIGNAL, O_CLOEXEC) == -1))
		fatal("wait for children");
}

/* One descriptor for each uplink, two while it starts; its own come after. */
static void
room(const struct conf *conf)
{
	rlim_t		want = (conf->max_boxes + conf->egress_pool) * 2 +
			    FD_SPARE;
	struct rlimit	rl;

	if (want < conf->egress_connections)
		want = conf->egress_connections;
	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("getrlimit");
	if (rl.rlim_max < want)
		log_warnx("descriptor limit of %ju is less than the %ju that "
		    "max-boxes, egress-pool and egress-connections need",
		    (uintmax_t)rl.rlim_max, (uintmax_t)want);
	rl.rlim_cur = rl.rlim_max = want < rl.rlim_max ? want : rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("setrlimit");
}

static void
epolls(void)
{
	struct epoll_event	e = { .events = EPOLLIN,
				    .data.u64 = EV_DATA(EV_SIGNAL, 0) };
	int			fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd == -1 || (fd != FD_EPOLL && dup3(fd, FD_EPOLL, O_CLOEXEC) ==
	    -1))
		fatal("epoll");
	signals();
	if (epoll_ctl(FD_EPOLL, EPOLL_CTL_ADD, FD_SIGNAL, &e) == -1)
		fatal("epoll_ctl");
}

int
main(void)
{
	struct uplinks_conf	 u = { .ep = FD_EPOLL, .netd = &netd };
	const struct conf	*conf;

	if ((conf = conf_read(CONF_FD)) == NULL)
		fatal("read configuration");
	conf_log(conf, "uplinkd");
	(void)close(CONF_FD);		/* read and mapped by nobody else */
	epolls();
	room(conf);
	u.connections = (unsigned int)conf->egress_connections;
	u.talk = strcmp(conf->log_level, "debug") == 0 &&
	    strcmp(conf->log, "stderr") == 0;
	if (stat("/proc/self/ns/user", &u.u1) == -1)
		fatal("own user namespace");
	if (cgroup_find() == -1)
		fatalx("%s", cgroup_why());
	uplink_dns(conf->egress_dns);
	if (confine_enter(&uplinkd_profile) == -1)
		fatalx("enter fence: %s", confine_error());

	if (cgroup_open(u.connections) == -1)
		fatalx("%s", cgroup_why());
	uplinks_init(&u);
	chan_init(&privd, FD_PRIVD, A_UPLINKD, A_PRIVD, S_INIT);
	/* netd asks before GO, which comes when it has adopted networks */
	chan_init(&netd, FD_NETD, A_UPLINKD, A_NETD, S_RUN);
	poll_chan(&privd, EV_PRIVD, EPOLL_CTL_ADD);
	poll_chan(&netd, EV_NETD, EPOLL_CTL_ADD);
	ready();
	loop();
}
