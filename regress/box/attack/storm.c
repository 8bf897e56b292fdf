/*
 * storm.c: much of what a box shares with others, or with its supervisor.
 */
#include "attack.h"

#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void
storm_watch(int seconds)
{
	static const char *const shared[] = { "/opt/workbox",
	    "/opt/workbox/wb", "/dev/null", "/dev/urandom", "/bin/busybox",
	    "/bin/sh", "/etc/passwd", "/proc/sys/kernel/hostname" };
	char	 ev[4096];
	double	 end = now() + seconds;
	size_t	 i;
	int	 fd = inotify_init1(IN_NONBLOCK), n = 0;
	struct timespec	 ms = { 0, 20000000 };

	for (i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		(void)inotify_add_watch(fd, shared[i], IN_ALL_EVENTS);
	puts("watching");
	fflush(stdout);
	while (now() < end) {
		ssize_t	 got;

		while ((got = read(fd, ev, sizeof(ev))) > 0) {
			struct inotify_event	*e = (void *)ev;

			n++;
			printf("event: watch %d mask %x %s\n", e->wd, e->mask,
			    e->len ? e->name : "");
		}
		nanosleep(&ms, NULL);
	}
	check(n == 0, "B51 nothing is seen of other boxes: %d events", n);
}

/* Takes all there is of what the kernel counts per user, and sits on it. */
void
storm_take(const char *file)
{
	struct mq_attr		 a = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
	struct sigevent		 ev = { .sigev_notify = SIGEV_SIGNAL,
				    .sigev_signo = SIGRTMIN };
	union sigval		 v = { 0 };
	sigset_t		 set;
	timer_t			 t;
	char			 name[32];
	int			 in = 0, mq = 0, tm = 0, sq = 0, fd;

	while (in < 100000 && inotify_init1(0) != -1)
		in++;
	for (; mq < 100000; mq++) {
		snprintf(name, sizeof(name), "/m%d", mq);
		if ((fd = (int)mq_open(name, O_CREAT | O_RDWR, 0600, &a)) == -1)
			break;
		close(fd);
	}
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (tm < 1000 && timer_create(CLOCK_MONOTONIC, &ev, &t) == 0)
		tm++;
	while (sq < 1000000 && sigqueue(getpid(), SIGRTMIN + 1, v) == 0)
		sq++;
	printf("taken: %d inotify, %d queues, %d timers, %d signals\n", in,
	    mq, tm, sq);
	fflush(stdout);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	for (;;)
		pause();
}

void
storm_give(void)
{
	struct sigevent	 ev = { .sigev_notify = SIGEV_SIGNAL,
			    .sigev_signo = SIGRTMIN };
	union sigval	 v = { 0 };
	sigset_t	 set;
	timer_t		 t;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check(inotify_init1(0) != -1, "B51 an inotify: %s", strerror(errno));
	check(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0, "B51 a timer: %s",
	    strerror(errno));
	check(sigqueue(getpid(), SIGRTMIN + 1, v) == 0, "B51 a signal: %s",
	    strerror(errno));
	check(mq_open("/workbox-attack", O_CREAT | O_RDWR, 0600, NULL) != -1,
	    "B51 a message queue: %s", strerror(errno));
	mq_unlink("/workbox-attack");
}
/* Stops all that is new, for as long, but itself. */
void
storm_freeze(int seconds)
{
	double	 end = now() + seconds;
	pid_t	 pid, me = getpid();
	char	 path[32];
	int	 n = 0, i;

	printf("freezing\n");
	fflush(stdout);
	while (now() < end) {
		/* a process that ends at once tells the next number */
		if ((pid = fork()) == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		for (i = -4; i < 12; i++) {
			snprintf(path, sizeof(path), "/proc/%d/stat", pid + i);
			if (pid + i != me && pid + i > 2 &&
			    kill(pid + i, SIGSTOP) == 0)
				n++;
		}
	}
	printf("stopped %d\n", n);
	kill(-1, SIGCONT);
}

void
storm_orphans(int n)
{
	int	i;

	signal(SIGCHLD, SIG_IGN);
	for (i = 0; i < n; i++)
		if (fork() == 0) {
			if (fork() == 0)
				_exit(0);
			_exit(0);
		}
	while (wait(NULL) != -1)
		;
}


/* A leader who waits for none of his: N:FILE. */
void
storm_zombies(const char *what)
{
	char	*file;
	long	 n = strtol(what, &file, 10);

	while (n-- > 0 && fork() != 0)
		;
	if (n >= 0)
		_exit(0);
	close(open(file + 1, O_CREAT | O_WRONLY, 0600));
	for (;;)
		pause();
}

/* Every descriptor of every process that there may be; then makes FILE. */
void
storm_files(const char *file)
{
	int	p, fd, n = 0;

	for (p = 0; p < 64; p++) {
		pid_t	pid = fork();

		if (pid == -1)
			break;
		if (pid == 0) {
			while ((fd = open("/dev/null", O_RDONLY)) != -1)
				;
			for (;;)
				pause();
		}
		n++;
	}
	while ((fd = open("/dev/null", O_RDONLY)) != -1)
		;
	printf("%d processes, %s\n", n, strerror(errno));
	fflush(stdout);
	(void)mkdir(file, 0700);	/* which asks for no descriptor */
	for (;;)
		pause();
}

/* Forks until it is refused, says how many there are, and keeps them. */
void
storm_forks(const char *file)
{
	pid_t	pid = 0;
	int	n = 0;

	while (n < 100000 && (pid = fork()) > 0)
		n++;
	if (pid == 0)
		for (;;)
			pause();
	printf("%d more: %s\n", n, strerror(errno));
	fflush(stdout);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	for (;;)
		pause();
}

/* Forks and ends as fast as it can, from many at once. */
void
storm_churn(int seconds)
{
	double	 end = now() + seconds;
	pid_t	 pid;
	int	 i;

	for (i = 0; i < 6; i++)
		(void)fork();
	while (now() < end) {
		if ((pid = fork()) == 0)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	_exit(0);
}

void
storm_kill(void)
{
	puts("killing");
	fflush(stdout);
	check(kill(-1, SIGKILL) == 0, "B13 everybody is killed");
	check(kill(1, 0) == 0, "B13 but pid 1");
}
