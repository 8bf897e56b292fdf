/*
 * privd: supervises the daemons, decides about boxes, holds what both need:
 * the listening sockets, a pidfd of each box.
 *
 *	daemons.c	the set of daemons, all for one
 *	handlers.c	what apid may ask, and why it is safe
 *	life.c		how a box moves; table.c, boxlog.c, scan.c beside it
 *	maker.c		asks the maker, a program of its own, for what needs
 *			privilege
 *
 * One loop on epoll(7), no event library, nothing in it waits.  See PRIVSEP.
 *
 * Must never: open a file, start a process; parse HTTP, JSON or any text from
 * a peer; take a path, pid, argv or flag word from a message; link OpenSSL,
 * LMDB or libevent; end because of what a peer said.
 */
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "confine_load.h"
#include "fds.h"
#include "privd.h"
#include "privd_calls.h"

#define TURN		64		/* events in one turn */

struct server	srv = { .ep = -1, .notify_fd = -1, .ready_fd = -1,
    .fresh = { -1, -1, -1 } };
static int	signal_fd = -1, reader_fd = PRIVD_FD_READER;

/* ---- events ------------------------------------------------------------ */

void
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

	if (read(signal_fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo != SIGHUP)
		set_stop();
	/* EAGAIN: it has been asked more often than it has read */
	else if (reader_fd == -1 || (fds_send(reader_fd, "", 1, NULL, 0,
	    MSG_DONTWAIT) == -1 && errno != EAGAIN))
		log_warnx("SIGHUP: nobody is there who reads the file");
}

/* Sealed memfds of root's, and one packet of them at a time. */
static void
on_reader(void)
{
	uint8_t	b;
	int	fds[FDS_MAX], i;
	size_t	n;
	ssize_t	got = fds_recv(reader_fd, &b, 1, fds, &n, MSG_DONTWAIT);

	if (got == -1 && errno == EAGAIN)
		return;
	if (got != 1 || n != READER_FDS) {
		while (n > 0)
			fd_close(&fds[--n]);
		log_warnx("the reader of the configuration has ended");
		ev_close(&reader_fd);
		return;
	}
	for (i = 0; i < READER_FDS; i++)
		fd_close(&srv.fresh[i]);
	memcpy(srv.fresh, fds, sizeof(srv.fresh));
}

static void
on_maker(void)
{
	struct maker_ans	*a;
	int			*fds;

	while (maker_answer(&a, &fds, 0))
		if (a->op == MK_SET)
			set_on_maker(fds);
		else
			life_on_maker(a, fds);
}

static void
on_event(const struct epoll_event *e)
{
	enum ev		ev = (enum ev)(e->data.u64 >> 32);
	unsigned int	n = (unsigned int)e->data.u64;

	if (ev == EV_SIGNAL)
		on_signal();
	else if (ev == EV_READER)
		on_reader();
	else if (ev == EV_MAKER)
		on_maker();
	else if (ev == EV_CHAN)
		set_on_chan(n, e->events);
	else if (ev == EV_DAEMON)
		set_on_pidfd(n);
	else
		life_on_event(ev, n);
}

/* Milliseconds to wait for events: not longer than until a beat is due. */
static int
wait_ms(void)
{
	uint64_t	a = set_due(), b = table_next(), now = mono_ms();
	uint32_t	ms = srv.conf->beat_ms, most = ms > 0 ? ms : 60000;

	a = a == 0 || (b != 0 && b < a) ? b : a;
	a = a == 0 || a > now + most ? now + most : a;
	return a <= now ? 0 : (int)(a - now);
}

static void
loop(void)
{
	struct epoll_event	e[TURN];
	uint64_t		now, beat = 0;
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
		if (srv.conf->beat_ms > 0 && now >= beat) {
			tell("WATCHDOG=1");
			beat = now + srv.conf->beat_ms;
		}
	}
}

/* ---- start ------------------------------------------------------------- */

void
conf_take(int fd)
{
	static struct server_conf	c;
	const int			seals = fcntl(fd, F_GET_SEALS);

	if (seals == -1 || (seals & SERVER_SEALS) != SERVER_SEALS ||
	    pread(fd, &c, sizeof(c), 0) != sizeof(c) ||
	    strcmp(c.version, PACKAGE_VERSION) != 0)
		fatalx("descriptor %d holds no configuration of this version: "
		    "start it by `workbox serve'", fd);
	srv.conf = &c;
	log_init("privd", (enum log_level)c.log_level, 0);
}

/* Takes what `workbox serve' opened: enum privd_fd. */
static void
inherited(void)
{
	conf_take(PRIVD_FD_SERVER);
	srv.notify_fd = srv.conf->notify_fd;
	srv.ready_fd = srv.conf->ready_fd;
	log_adopt(srv.conf->log_fd);
}

int
listener(unsigned int i, unsigned int *ret_kind)
{
	if (i >= srv.conf->nlisteners)
		return -1;
	*ret_kind = srv.conf->listener_kind[i];
	return PRIVD_FD_LISTENER + (int)i;
}

void
tell(const char *state)
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

static void
signals(void)
{
	sigset_t	set;

	(void)sigemptyset(&set);	/* these cannot fail */
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    (signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) == -1)
		fatal("wait for signals");
	ev_add(signal_fd, EV_SIGNAL, 0, EPOLLIN);
}

/*
 * The fence around us was there before we were (workbox/become.c): an empty
 * root, no capability, no file by Landlock.  The last of it only we can load.
 */
static void
fence(void)
{
	if (prctl(PR_SET_DUMPABLE, 0) == -1)
		fatal("not dumpable");
#ifndef __SANITIZE_ADDRESS__		/* whose calls are on no list */
	if (confine_load(privd_calls, sizeof(privd_calls) /
	    sizeof(privd_calls[0])) == -1)
		fatal("load the filter");
#endif
}

int
main(int argc, char *argv[])
{
	(void)argv;
	log_init("privd", LOG_L_INFO, 0);
	if (argc != 1)
		fatalx("takes no arguments");
	inherited();
	if ((srv.ep = epoll_create1(EPOLL_CLOEXEC)) == -1)
		fatal("epoll");
	signals();
	fence();
	maker_init();
	ev_add(reader_fd, EV_READER, 0, EPOLLIN);
	scan();
	set_start();
	loop();
}
