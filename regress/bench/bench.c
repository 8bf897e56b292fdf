/*
 * bench.c: clocks, statistics, the table, and peers that are programs.
 */
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

double
bench_usec(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);	/* cannot fail */
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
cmp(const void *a, const void *b)
{
	double	x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void
bench_stat(double *v, int n, struct bench_stat *ret)
{
	qsort(v, (size_t)n, sizeof(*v), cmp);
	ret->min = v[0];
	ret->p50 = v[n / 2];
	ret->p95 = v[n * 95 / 100];
	ret->n = n;
}

int
bench_pairs(bench_fn *a, void *aa, bench_fn *b, void *ba, int w, int n,
    struct bench_stat *ret_a, struct bench_stat *ret_b)
{
	double	*va = calloc((size_t)n, sizeof(*va));
	double	*vb = calloc((size_t)n, sizeof(*vb));
	int	 i, r = -1;

	if (va == NULL || vb == NULL)
		goto out;
	for (i = -w; i < n; i++) {
		double x = a(aa), y = b(ba);

		if (x < 0 || y < 0)
			goto out;
		if (i >= 0) {
			va[i] = x;
			vb[i] = y;
		}
	}
	bench_stat(va, n, ret_a);
	bench_stat(vb, n, ret_b);
	r = 0;
out:
	free(va);
	free(vb);
	return r;
}

void
bench_head(void)
{
	printf("%-4s %-34s %22s %22s %6s %5s %5s %4s  %s\n", "row", "quantity",
	    "ours p50 (p95, min)", "peer p50 (p95, min)", "ratio", "file",
	    "end", "N", "peer");
}

static void
times(char *buf, size_t n, const struct bench_stat *s)
{
	(void)snprintf(buf, n, "%.2f (%.2f, %.2f)", s->p50 / 1e3,
	    s->p95 / 1e3, s->min / 1e3);
}

void
bench_row(const char *id, const char *what, const struct bench_stat *a,
    const struct bench_stat *b, const char *peer, double file, double end)
{
	char	x[64], y[64];

	times(x, sizeof(x), a);
	times(y, sizeof(y), b);
	printf("%-4s %-34s %22s %22s %6.2f %5.2f %5.2f %4d  %s\n", id, what,
	    x, y, a->p50 / b->p50, file, end, a->n, peer);
	(void)fflush(stdout);	/* a table on a terminal */
}

void
bench_value(const char *id, const char *what, const char *unit, double a,
    double b, const char *peer, double file, double end)
{
	char	x[64], y[64];

	(void)snprintf(x, sizeof(x), "%.2f %s", a, unit);
	(void)snprintf(y, sizeof(y), "%.2f %s", b, unit);
	printf("%-4s %-34s %22s %22s %6.2f %5.2f %5.2f %4s  %s\n", id, what,
	    x, y, a / b, file, end, "", peer);
	(void)fflush(stdout);
}

void
bench_rate(const char *id, const char *what, double scale,
    const struct bench_stat *a, const struct bench_stat *b, const char *peer,
    double file, double end)
{
	char	x[64], y[64];

	(void)snprintf(x, sizeof(x), "%.0f (%.0f, %.0f)", scale / a->p50,
	    scale / a->p95, scale / a->min);
	(void)snprintf(y, sizeof(y), "%.0f (%.0f, %.0f)", scale / b->p50,
	    scale / b->p95, scale / b->min);
	printf("%-4s %-34s %22s %22s %6.2f %5.2f %5.2f %4d  %s\n", id, what,
	    x, y, b->p50 / a->p50, file, end, a->n, peer);
	(void)fflush(stdout);
}

void
bench_alone(const char *id, const char *what, const char *unit, double a,
    unsigned int n, double file, double end)
{
	char	x[64];

	(void)snprintf(x, sizeof(x), "%.2f %s", a, unit);
	printf("%-4s %-34s %22s %22s %6s %5.2f %5.2f %4u\n", id, what, x,
	    "-", "-", file, end, n);
	(void)fflush(stdout);
}

/* ---- peers ------------------------------------------------------------ */

static pid_t
spawn_out(char *const argv[], int out)
{
	posix_spawn_file_actions_t	fa;
	pid_t				pid;
	int				e;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	if (out != -1)
		posix_spawn_file_actions_adddup2(&fa, out, 1);
	else
		posix_spawn_file_actions_addopen(&fa, 1, "/dev/null",
		    O_WRONLY, 0);
	e = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (e != 0) {
		fprintf(stderr, "%s: %s\n", argv[0], strerror(e));
		return -1;
	}
	return pid;
}

int
peer_start(char *const argv[], pid_t *ret_pid)
{
	pid_t	pid;
	int	p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	pid = spawn_out(argv, p[1]);
	close(p[1]);
	if (pid == -1) {
		close(p[0]);
		return -1;
	}
	*ret_pid = pid;
	return p[0];
}

double
peer_ready(char *const argv[], pid_t *ret_pid)
{
	double	t0 = bench_usec(), t;
	int	fd = peer_start(argv, ret_pid);
	char	c;

	if (fd == -1)
		return -1;
	if (read(fd, &c, 1) != 1) {
		fprintf(stderr, "%s: no byte\n", argv[0]);
		close(fd);
		peer_end(*ret_pid);
		return -1;
	}
	t = bench_usec() - t0;
	close(fd);
	return t;
}

double
peer_whole(char *const argv[])
{
	double	t0 = bench_usec();
	pid_t	pid = spawn_out(argv, -1);
	int	st;

	if (pid == -1)
		return -1;
	while (waitpid(pid, &st, 0) == -1)
		if (errno != EINTR)
			return -1;
	if (!WIFEXITED(st) || WEXITSTATUS(st) != 0) {
		fprintf(stderr, "%s: status %x\n", argv[0], (unsigned)st);
		return -1;
	}
	return bench_usec() - t0;
}

void
peer_end(pid_t pid)
{
	(void)kill(pid, SIGKILL);	/* gone already is fine */
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
}
