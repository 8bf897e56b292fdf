/*
 * mem.c: memory of every kind, and processor time.
 */
#include "attack.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void
touch(char *p, size_t len)
{
	size_t	i;

	for (i = 0; i < len; i += 4096)
		p[i] = 1;
}

static void
take_map(int flags, int fd, size_t len)
{
	char	*p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(errno);
	touch(p, len);
}

static void
take_shm(size_t len)
{
	int	 id = shmget(IPC_PRIVATE, len, 0600 | IPC_CREAT);
	char	*p = shmat(id, NULL, 0);

	if (id == -1 || p == (void *)-1)
		exit(errno);
	shmctl(id, IPC_RMID, NULL);	/* when the last who has it is gone */
	touch(p, len);
}

static void
take_file(const char *path, size_t len)
{
	int	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	size_t	n;

	for (n = 0; n < len; n += sizeof(mem))
		if (write(fd, mem, sizeof(mem)) != (ssize_t)sizeof(mem))
			exit(errno);
	close(fd);
	unlink(path);
}

static void
take_pipes(size_t len)
{
	size_t	n;
	int	p[2];

	for (n = 0; n < len; n += 65536) {
		if (pipe2(p, O_NONBLOCK) == -1)
			exit(errno);
		while (write(p[1], mem, 4096) > 0)
			;
	}
}

static void
take_sockets(size_t len)
{
	size_t	n;
	int	p[2];

	for (n = 0; n < len; n += 200000) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) ==
		    -1)
			exit(errno);
		while (write(p[1], mem, sizeof(mem)) > 0)
			;
	}
}

/* Page tables: one page of each 2 MiB, all the same page of a file. */
static void
take_tables(size_t len)
{
	int	 fd = memfd_create("x", 0);
	size_t	 n;
	char	*p;

	if (fd == -1 || ftruncate(fd, 4096) == -1)
		exit(errno);
	for (n = 0; n < len; n += 4096) {
		p = mmap((char *)(0x100000000UL + n * 512), 4096,
		    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
		if (p == MAP_FAILED)
			exit(errno);
		*p = 1;
	}
}

static void
take_kind(const char *kind, size_t len)
{
	if (strcmp(kind, "anon") == 0)
		take_map(MAP_PRIVATE | MAP_ANONYMOUS, -1, len);
	else if (strcmp(kind, "memfd") == 0) {
		int	fd = memfd_create("x", 0);

		if (ftruncate(fd, (off_t)len) == -1)
			exit(errno);
		take_map(MAP_SHARED, fd, len);
	} else if (strcmp(kind, "shm") == 0)
		take_shm(len);
	else if (strcmp(kind, "cache") == 0)
		take_file("/root/cache", len);
	else if (strcmp(kind, "pipes") == 0)
		take_pipes(len);
	else if (strcmp(kind, "sockets") == 0)
		take_sockets(len);
	else if (strcmp(kind, "tables") == 0)
		take_tables(len);
	else if (strcmp(kind, "mlock") == 0) {
		char	*p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		exit(mlock(p, len) == -1 ? errno : 0);
	} else
		exit(64);
}

/* KIND:MIB, or KIND:MIB:child, where it is not the leader who takes it. */
void
mem_take(const char *what)
{
	char	 kind[32] = "", *rest;
	size_t	 mib;
	pid_t	 pid;
	int	 st;

	memccpy(kind, what, ':', sizeof(kind) - 1);
	if (strchr(kind, ':') == NULL)
		exit(64);
	*strchr(kind, ':') = '\0';
	mib = strtoul(strchr(what, ':') + 1, &rest, 10);
	if (*rest == '\0')
		take_kind(kind, mib * MIB);
	else if ((pid = fork()) == 0)
		exit((take_kind(kind, mib * MIB), 0));
	else {
		waitpid(pid, &st, 0);
		if (WIFEXITED(st))
			exit(WEXITSTATUS(st));
		for (;;)		/* it goes on as if nothing were */
			pause();
	}
	printf("taken\n");
	exit(0);
}

/* ---- processor --------------------------------------------------------- */

static volatile int	over;

static void *
spin(void *arg)
{
	while (!over)
		;
	return arg;
}

/* 64 threads; says how many milliseconds of a processor a second they got. */
void
mem_spin(int seconds)
{
	struct timespec	 t = { seconds, 0 };
	struct rusage	 ru;
	pthread_t	 id;
	double		 t0 = now(), used;
	int		 i;

	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (i = 0; i < 64; i++)
		if (pthread_create(&id, NULL, spin, NULL) != 0)
			exit(1);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	over = 1;
	getrusage(RUSAGE_SELF, &ru);
	used = (double)ru.ru_utime.tv_sec + (double)ru.ru_stime.tv_sec +
	    (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
	printf("%.0f\n", used * 1000 / (now() - t0));
	exit(0);
}
