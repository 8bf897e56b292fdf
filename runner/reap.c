/*
 * reap.c: every child of pid 1, whoever made it.
 *
 * At most BATCH a turn of the loop: a storm of orphans does not keep the
 * others waiting.
 */
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "runner.h"

#define BATCH	128

static struct watch	 reap_watch = { .fd = -1 };
static int		 more;

static void
on_sigchld(void *arg, short events)
{
	struct signalfd_siginfo	si;

	(void)arg;
	(void)events;
	/* the signal says that there are some, never how many */
	(void)!read(reap_watch.fd, &si, sizeof(si));
	more = 1;
}

void
reap_turn(void)
{
	struct rusage	ru;
	pid_t		pid;
	int		i, status;

	if (!more)
		return;
	for (i = 0; i < BATCH; i++) {
		if ((pid = wait4(-1, &status, WNOHANG | __WALL, &ru)) <= 0) {
			more = 0;
			return;
		}
		if (!spawn_reaped(pid, status, &ru))
			session_exited(pid, status, &ru);
	}
}

int
reap_busy(void)
{
	return more;
}

int
reap_init(void)
{
	sigset_t	set;
	int		fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    (fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) == -1)
		return -1;
	return loop_add(&reap_watch, fd, POLLIN, on_sigchld, NULL);
}
