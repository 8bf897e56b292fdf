/*
 * again.c: what a restart costs (P26).  A shell that waits on a pair of named
 * pipes stops and starts the servers, one with boxes and one with none, in
 * turn; the clock runs from the order to the first answer.  Then daemons are
 * killed under a server that goes on: whoever connects meanwhile is answered.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"

#define BOXES	100
#define KNOCKS	2000		/* connections of one kill, at most */
#define WAIT_MS	30000
#define DAEMONS	3

static const char *const	daemons[DAEMONS] = { "apid", "stored", "netd" };

static FILE	*orders, *done;
static pid_t	 server;	/* the one with boxes, by the last answer */

static int
orders_open(void)
{
	const char	*o = getenv("BENCH_ORDERS"), *d = getenv("BENCH_DONE");

	if (o != NULL && d != NULL && (orders = fopen(o, "we")) != NULL &&
	    (done = fopen(d, "re")) != NULL)
		return 0;
	fprintf(stderr, "P26: nobody takes orders; see run.sh\n");
	return -1;
}

/* Restarts a server; the time until it has answered. */
static double
again(const char *which, const char *host, pid_t *ret_pid)
{
	struct http	c;
	char		line[32];
	double		t0 = bench_usec();
	int		st;

	fprintf(orders, "%s\n", which);
	if (fflush(orders) == EOF || fgets(line, sizeof(line), done) == NULL)
		return -1;
	*ret_pid = (pid_t)strtol(line, NULL, 10);
	if (http_open(&c, host, h.token) == -1)
		return -1;
	st = http_call(&c, "GET", "/v1/version", NULL);
	t0 = bench_usec() - t0;
	http_shut(&c);
	return st == 200 ? t0 : -1;
}

/* Whether all are there and whole. */
static int
all_healthy(void)
{
	struct http	c;
	const char	*p;
	int		n = 0, st;

	if (http_open(&c, h.host, h.token) == -1)
		return 0;
	st = http_call(&c, "GET", "/v1/sandboxes?limit=1000&state=READY",
	    NULL);
	for (p = c.body; st == 200 && (p = strstr(p, "\"HEALTHY\"")) != NULL;
	    p++)
		n++;
	http_shut(&c);
	if (n != BOXES)
		fprintf(stderr, "P26: %d boxes are whole, not %d\n", n, BOXES);
	return n == BOXES;
}

static double
again_full(void *arg)
{
	double	t = again("full", h.host, &server);

	(void)arg;
	return t >= 0 && all_healthy() ? t : -1;
}

static double
again_none(void *arg)
{
	pid_t	pid;

	return again("none", arg, &pid);
}

/* ---- daemons are killed ---------------------------------------------------- */

/* The process of that program below the server, or -1. */
static pid_t
daemon_pid(const char *name)
{
	DIR		*d = opendir("/proc");
	struct dirent	*e;
	char		 path[300], exe[512], *slash;
	pid_t		 pid, up, found = -1;
	ssize_t		 n;

	while (d != NULL && found == -1 && (e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%.16s/exe",
		    e->d_name);
		if ((n = readlink(path, exe, sizeof(exe) - 1)) <= 0)
			continue;
		exe[n] = '\0';
		if ((slash = strrchr(exe, '/')) == NULL ||
		    strcmp(slash + 1, name) != 0)
			continue;
		pid = (pid_t)strtol(e->d_name, NULL, 10);
		for (up = pid; up > 1; up = parent_of(up))
			if (up == server)
				found = pid;
	}
	if (d != NULL)
		(void)closedir(d);
	return found;
}

/*
 * SIGKILL to one, and until the whole set is gone, which ends with it: what
 * apid had accepted by then is cut, not refused.
 */
static int
end_daemon(const char *name)
{
	struct pollfd	p[DAEMONS];
	pid_t		pid[DAEMONS];
	int		i, r = 0;

	for (i = 0; i < DAEMONS; i++) {
		pid[i] = daemon_pid(daemons[i]);
		p[i].events = POLLIN;
		p[i].fd = pid[i] == -1 ? -1 :
		    (int)syscall(SYS_pidfd_open, pid[i], 0);
		r |= p[i].fd == -1;
	}
	for (i = 0; i < DAEMONS; i++)
		if (r == 0 && strcmp(daemons[i], name) == 0)
			r |= kill(pid[i], SIGKILL);
	for (i = 0; i < DAEMONS; i++) {
		r |= r == 0 && poll(&p[i], 1, WAIT_MS) != 1;
		if (p[i].fd != -1)
			close(p[i].fd);
	}
	if (r != 0)
		fprintf(stderr, "P26: %s is not ended, nor the set with it\n",
		    name);
	return r == 0 ? 0 : -1;
}

static int
answered(int fd, int wait_ms)
{
	struct pollfd	p = { .fd = fd, .events = POLLIN };
	char		c[16];

	return poll(&p, 1, wait_ms) == 1 && recv(fd, c, 12, MSG_WAITALL) ==
	    12 && memcmp(c + 9, "200", 3) == 0;
}

/* A connection each few ms until one is answered; then all have to be. */
static int
knock(const char *name, unsigned int *n, unsigned int *refused)
{
	static struct http	c[KNOCKS];
	struct pollfd		first = { .events = POLLIN };
	unsigned int		i, k = 0;
	int			cut = 0;

	if (end_daemon(name) == -1)
		return -1;
	while (k < KNOCKS) {
		++*n;
		if (http_open(&c[k], h.host, h.token) == -1)
			*refused += errno == ECONNREFUSED;
		else if (http_send(&c[k], "GET", "/v1/version", NULL) == 0)
			k++;
		first.fd = k > 0 ? c[0].fd : -1;
		if (poll(&first, 1, 5) == 1)	/* the pace of the knocks */
			break;
	}
	for (i = 0; i < k; i++) {
		cut += !answered(c[i].fd, WAIT_MS);
		http_shut(&c[i]);
	}
	if (cut != 0)
		fprintf(stderr, "P26: %s is killed: %d of %u connections are "
		    "not answered\n", name, cut, k);
	return cut == 0 && all_healthy() ? 0 : -1;
}

static int
refusals(void)
{
	unsigned int	n = 0, refused = 0;
	int		i;

	for (i = 0; i < DAEMONS; i++)
		if (knock(daemons[i], &n, &refused) == -1)
			return -1;
	bench_alone("P26", "connections refused, daemons killed", "",
	    refused, n, 0, 0);
	return refused == 0 ? 0 : -1;
}

/* ---- the row --------------------------------------------------------------- */

int
row_p26(void)
{
	static char		 ids[BOXES][64];
	char			 none[64];
	const char		*url = getenv("BENCH_URL_NONE");
	struct http		 old = h;
	struct bench_stat	 a, b;
	int			 i, r = -1;

	if (url == NULL || orders_open() == -1)
		return -1;
	(void)snprintf(none, sizeof(none), "%s", url + strlen("http://"));
	for (i = 0; i < BOXES; i++)
		if (create(ids[i], sizeof(ids[i])) == -1)
			return -1;
	if (bench_pairs(again_full, NULL, again_none, none, 1, pairs_of(5),
	    &a, &b) == 0) {
		bench_row("P26", "restart of serve with 100 boxes", &a, &b,
		    "with none", 0, 0);
		bench_alone("P26", "of that for each box, ms", "ms",
		    (a.p50 - b.p50) / 1e3 / BOXES, (unsigned int)a.n, 2, 0.5);
		r = refusals();
	}
	http_shut(&old);	/* of a server that is no more */
	if (http_open(&h, old.host, old.token) == -1)
		return -1;
	for (i = 0; i < BOXES; i++)
		if (destroy(ids[i]) == -1)
			return -1;
	return r;
}
