/*
 * pressure.c: the kernel's word that the host lacks memory.
 *
 * A trigger on /proc/pressure/memory (the kernel's accounting/psi.rst) makes
 * its descriptor urgent, EPOLLPRI, at most once in WINDOW_US, when tasks have
 * waited for memory for STALL_US of it.  Not every backend of libevent can
 * tell of that, so the descriptor is in an epoll instance of its own, and
 * that is what the loop reads.
 *
 * The numbers.  What is prepared in advance is a cache, and is let go of when
 * caches are: a tenth of the time is what systemd, too, has its services
 * give theirs back at, long before anything is killed for want of memory.
 * "some" and not "full": that all wait at once is where it is too late.  The
 * window is the shortest that is open to who has no CAP_SYS_RESOURCE: a
 * multiple of two seconds.  A box at its own limit waits as well and can make
 * this happen; what it gains is that others' creates take longer.
 *
 * Without it (before Linux 6.5, without CONFIG_PSI, or psi=0) nothing is ever
 * told.
 */
#include <sys/epoll.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define PRESSURE	"/proc/pressure/memory"
#define TRIGGER		"some 200000 2000000"	/* STALL_US WINDOW_US */
#define REST_MS		30000		/* of the last word, then it is over */

static struct {
	void		(*cb)(void);
	uint64_t	 over_ms;	/* 0: there was none yet */
} pressure;

int
pressure_open(void)
{
	auto_close int	fd = open(PRESSURE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	/* its NUL is part of it */
	if (fd == -1 || write(fd, TRIGGER, sizeof(TRIGGER)) == -1)
		return -1;
	return steal_fd(&fd);
}

/* Edge: whatever state it may be in, it does not keep the loop busy. */
int
pressure_watch(int fd)
{
	struct epoll_event	e = { .events = EPOLLPRI | EPOLLET };
	auto_close int		ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep == -1 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == -1)
		return -1;
	return steal_fd(&ep);
}

static void
on_pressure(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event	e;

	(void)what;
	(void)arg;
	/* most kernels gave it away when the loop asked: that it did counts */
	(void)epoll_wait(fd, &e, 1, 0);
	pressure.over_ms = mono_ms() + REST_MS;
	pressure.cb();
}

uint64_t
pressure_rest(void)
{
	uint64_t	now = mono_ms();

	return pressure.over_ms > now ? pressure.over_ms - now : 0;
}

void
pressure_init(struct event_base *base, int ep, void (*cb)(void))
{
	struct event	*ev;

	pressure.cb = cb;
	if (ep == -1)
		return;
	ev = event_new(base, ep, EV_READ | EV_PERSIST, on_pressure, NULL);
	if (ev == NULL || event_add(ev, NULL) == -1)
		fatalx("event_add");
}
