/*
 * egress.c: a box's way out: how soon it is there (P3), what it holds of the
 * host's memory (P12), how much goes through it (P21), and how soon, with few
 * boxes and with many (P22); and how much goes by name, through the relay of
 * `allowlist' (P29).  run.sh makes the small internet.
 *
 * The peer is slirp4netns alone, started as uplinkd starts it.  Whatever is
 * started here ends with this process.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"

#define EGRESS	"{\"network\":\"egress\"}"
#define FAR_NAME	"far.example.org"	/* run.sh's name server knows it */
#define ALLOWLIST	"{\"network\":\"allowlist\",\"allow\":[\"" FAR_NAME ":7\"]}"
#define FD_READY	3
#define LOOK_US	5000		/* pace of asking */
#define LOOKS	6000		/* half a minute */
#define STILL	10		/* looks that see the same: netd has heard */

static unsigned int	 pool;		/* networks that are prepared */
static char		 far_addr[64];	/* of talk, and its port */
static const char	*far_port;
static const char	*by_name;	/* in its place, for a box */

static int
far_init(void)
{
	const char	*p = getenv("BENCH_POOL"), *f = getenv("BENCH_FAR");
	char		*colon = NULL;

	if (f != NULL && strlen(f) < sizeof(far_addr)) {
		memcpy(far_addr, f, strlen(f) + 1);
		colon = strchr(far_addr, ':');
	}
	if (p == NULL || colon == NULL) {
		fprintf(stderr, "BENCH_POOL, BENCH_FAR: expected a number "
		    "and address:port; see run.sh\n");
		return -1;
	}
	pool = (unsigned int)strtoul(p, NULL, 10);
	*colon = '\0';
	far_port = colon + 1;
	return 0;
}

/* ---- the server's slirp4netns ------------------------------------------- */

/* Whether a small file has the text. */
static int
file_has(const char *path, const char *text)
{
	char	buf[4096];
	ssize_t	n = -1;
	int	fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd != -1) {
		n = read(fd, buf, sizeof(buf) - 1);
		close(fd);
	}
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	return strstr(buf, text) != NULL;
}

/* In its sandbox it has one capability left: then packets can go. */
static int
is_up(const char *procs)
{
	char	path[64];
	FILE	*f = fopen(procs, "re");
	int	pid = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	(void)fclose(f);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return pid > 0 && file_has(path, "\nCapEff:\t0000000000000400\n");
}

/* ret_all: those that are not up as well. */
static unsigned int
uplinks(unsigned int *ret_all)
{
	static const char *const	at[] = { "/unified", "" };
	char				 dir[300], path[600];
	unsigned int			 i, up = 0, all = 0;
	struct dirent			*e;
	DIR				*d = NULL;

	for (i = 0; d == NULL && i < 2; i++) {
		(void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s/%s/uplinks",
		    at[i], getenv("BENCH_CGROUP"));
		d = opendir(dir);
	}
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s/cgroup.procs", dir,
		    e->d_name);
		all++;
		up += (unsigned int)is_up(path);
	}
	if (d != NULL)
		(void)closedir(d);
	*ret_all = all;
	return up;
}

/*
 * Waits until so many boxes have a way out, the pool is full, and nothing of
 * those of before is left: between the runs, not in them.
 */
static int
pool_settle(unsigned int live)
{
	unsigned int	i, still, up = 0, all = 0;

	for (i = still = 0; i < LOOKS && still < STILL; i++) {
		up = uplinks(&all);
		still = up == live + pool && all == up ? still + 1 : 0;
		(void)usleep(LOOK_US);
	}
	if (still == STILL)
		return 0;
	fprintf(stderr, "%u of %u slirp4netns are up, not %u of boxes and %u "
	    "of the pool\n", up, all, live, pool);
	return -1;
}

/* It is filled once there was a box of the kind. */
static int
pool_prime(void)
{
	char	id[64];

	if (far_init() == -1 || create_as(EGRESS, id, sizeof(id)) == -1 ||
	    destroy(id) == -1)
		return -1;
	settle(id);
	return pool_settle(0);
}

static int
remove_all(char (*ids)[64], int n)
{
	int	i;

	for (i = 0; i < n; i++)
		if (destroy(ids[i]) == -1)
			return -1;
	for (i = 0; i < n; i++)
		settle(ids[i]);
	return 0;
}

/* ---- peers -------------------------------------------------------------- */

/*
 * Starts a program that ends with us, in a network namespace (-1: in ours);
 * its descriptor `as' is a pipe, of which the reading end is returned, or -1.
 * Behind FD_READY nothing that it says is heard, as with uplinkd.
 */
static int
start(char *const argv[], int netns, int as, pid_t *ret_pid)
{
	pid_t	pid;
	int	p[2], null;

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	if ((pid = fork()) == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
		    (netns != -1 && setns(netns, CLONE_NEWNET) == -1) ||
		    (null = open("/dev/null", O_RDWR)) == -1 ||
		    dup2(null, 0) == -1 || dup2(null, 1) == -1 ||
		    (as == FD_READY && dup2(null, 2) == -1) ||
		    dup2(p[1], as) == -1 || fcntl(as, F_SETFD, 0) == -1)
			_exit(126);
		(void)execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	close(p[1]);
	if (pid == -1) {
		close(p[0]);
		return -1;
	}
	*ret_pid = pid;
	return p[0];
}

/* The same, until its first byte: 0, or -1 and it has ended. */
static int
start_ready(char *const argv[], int as, pid_t *ret_pid)
{
	int	fd = start(argv, -1, as, ret_pid), r;
	char	c;

	if (fd == -1)
		return -1;
	r = read(fd, &c, 1) == 1 ? 0 : -1;
	close(fd);
	if (r == -1) {
		fprintf(stderr, "%s: did not get ready\n", argv[0]);
		peer_end(*ret_pid);
	}
	return r;
}

/* For the network namespace of a process; as in uplinkd/child.c, execute(). */
static int
slirp_start(pid_t of, pid_t *ret_pid)
{
	char		path[64];
	char *const	argv[] = { S("slirp4netns"), S("--configure"),
	    S("--mtu=65520"), S("--cidr=198.19.255.0/24"),
	    S("--disable-host-loopback"), S("--enable-sandbox"),
	    S("--enable-seccomp"), S("--ready-fd=3"),
	    S("--netns-type=path"), path, S("tap0"), NULL };

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)of);
	return start_ready(argv, FD_READY, ret_pid);
}

/* A network namespace and its slirp4netns, with nothing around them. */
struct bare { pid_t holder, slirp; int netns; };

static void
bare_end(struct bare *b)
{
	if (b->netns != -1)
		close(b->netns);
	if (b->slirp > 0)
		peer_end(b->slirp);
	if (b->holder > 0)
		peer_end(b->holder);
}

static int
bare_start(struct bare *b)
{
	char		ready[512], path[64];
	char *const	argv[] = { S("unshare"), S("-n"), ready, NULL };

	*b = (struct bare){ .netns = -1 };
	(void)snprintf(ready, sizeof(ready), "%s/ready", root);
	if (start_ready(argv, 1, &b->holder) == -1) {
		b->holder = 0;
		return -1;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)b->holder);
	b->netns = open(path, O_RDONLY | O_CLOEXEC);
	if (b->netns != -1 && slirp_start(b->holder, &b->slirp) == 0)
		return 0;
	b->slirp = 0;
	bare_end(b);
	return -1;
}

/* ---- talk: nanoseconds, or -1 ------------------------------------------- */

struct talk { const char *job; unsigned long n; };

static double
talk_box(const char *id, const struct talk *t)
{
	char	path[128], json[256];
	double	ns;
	int	st;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
	(void)snprintf(json, sizeof(json), "{\"argv\":[\"/talk\",\"%s\","
	    "\"%s\",\"%s\",\"%lu\"]}", by_name != NULL ? by_name : far_addr,
	    far_port, t->job, t->n);
	st = http_call(&h, "POST", path, json);
	if (st == 200 && strcmp(http_member(&h, "exitCode"), "0") == 0 &&
	    (ns = strtod(http_member(&h, "stdout"), NULL)) > 0)
		return ns;
	fprintf(stderr, "talk in the box: %d %s\n", st, h.body);
	return -1;
}

static double
talk_bare(const struct bare *b, const struct talk *t)
{
	char		path[512], n[32], told[64];
	char *const	argv[] = { path, far_addr, S(far_port), S(t->job), n,
	    NULL };
	ssize_t		len;
	pid_t		pid;
	double		ns;
	int		fd, st;

	(void)snprintf(path, sizeof(path), "%s/talk", root);
	(void)snprintf(n, sizeof(n), "%lu", t->n);
	if ((fd = start(argv, b->netns, 1, &pid)) == -1)
		return -1;
	len = read(fd, told, sizeof(told) - 1);	/* one line, at its end */
	close(fd);
	while (waitpid(pid, &st, 0) == -1 && errno == EINTR)
		;
	told[len > 0 ? len : 0] = '\0';
	if (st == 0 && (ns = strtod(told, NULL)) > 0)
		return ns;
	fprintf(stderr, "talk by bare slirp4netns: status %x\n",
	    (unsigned int)st);
	return -1;
}

/* ---- P3 ----------------------------------------------------------------- */

static const struct talk	one = { "ping", 1 };

/* It is in place when READY is told: it is asked when the clock has stopped. */
static double
ours_create(void *arg)
{
	char	id[64];
	double	t0, t;

	(void)arg;
	if (pool_settle(0) == -1)
		return -1;
	t0 = bench_usec();
	if (create_as(EGRESS, id, sizeof(id)) == -1)
		return -1;
	t = bench_usec() - t0;
	if (strcmp(http_member(&h, "network"), "egress") != 0 ||
	    talk_box(id, &one) < 0 || destroy(id) == -1)
		return -1;
	settle(id);
	return t;
}

#define BURST	50
#define ANSWER	16384

struct shot {
	struct http	 http;
	pid_t		 pid;
	char		 buf[ANSWER + 1];
	size_t		 len;
	double		 t;
};

static struct shot	shots[BURST];
static struct pollfd	polls[BURST];

/* The 95th percentile of one burst. */
static double
burst_p95(void)
{
	struct bench_stat	s;
	double			t[BURST];
	int			i;

	for (i = 0; i < BURST; i++)
		t[i] = shots[i].t;
	bench_stat(t, BURST, &s);
	return s.p95;
}

/* Until each has been answered: on is 1 when it was, 0: not yet, or -1. */
static int
burst_wait(double t0, int (*on)(struct shot *))
{
	int	i, r, left = BURST;

	while (left > 0) {
		if (poll(polls, BURST, 60000) <= 0) {
			fprintf(stderr, "P3: %d of a burst got no answer\n",
			    left);
			return -1;
		}
		for (i = 0; i < BURST; i++) {
			if (polls[i].revents == 0)
				continue;
			if ((r = on(&shots[i])) == -1)
				return -1;
			if (r == 0)
				continue;
			shots[i].t = bench_usec() - t0;
			polls[i].fd = -1;
			left--;
		}
	}
	return 0;
}

static int
on_answer(struct shot *s)
{
	ssize_t	n = http_read(&s->http, s->buf + s->len, ANSWER - s->len);
	int	st;

	if (n <= 0)
		return -1;
	s->len += (size_t)n;
	s->buf[s->len] = '\0';
	if ((st = http_whole(s->buf, s->len)) == 0 || st == 201)
		return st != 0;
	fprintf(stderr, "create in a burst: %s\n", s->buf);
	return -1;
}

/* The ids of what was made, and that it is what was asked for. */
static int
burst_ids(char (*ids)[64])
{
	struct http	answer = { .fd = -1 };
	const char	*v;
	int		 i;

	for (i = 0; i < BURST; i++) {
		answer.body = strstr(shots[i].buf, "\r\n\r\n");
		if ((v = http_member(&answer, "network")) == NULL ||
		    strcmp(v, "egress") != 0 ||
		    (v = http_member(&answer, "id")) == NULL)
			return -1;
		(void)snprintf(ids[i], sizeof(ids[i]), "%s", v);
	}
	return 0;
}

static double
ours_burst(void *arg)
{
	char	ids[BURST][64];
	double	t0;
	int	i, r = 0;

	(void)arg;
	if (pool_settle(0) == -1)
		return -1;
	for (i = 0; i < BURST; i++) {
		if (http_open(&shots[i].http, h.host, h.token) == -1)
			return -1;
		polls[i] = (struct pollfd){ shots[i].http.fd, POLLIN, 0 };
		shots[i].len = 0;
	}
	t0 = bench_usec();
	for (i = 0; i < BURST && r == 0; i++)
		r = http_send(&shots[i].http, "POST", "/v1/sandboxes", EGRESS);
	if (r == 0)
		r = burst_wait(t0, on_answer);
	for (i = 0; i < BURST; i++)
		http_shut(&shots[i].http);
	if (r == -1 || burst_ids(ids) == -1)
		return -1;
	for (i = 0; i < BURST; i++)
		if (talk_box(ids[i], &one) < 0)
			return -1;
	return remove_all(ids, BURST) == -1 ? -1 : burst_p95();
}

static int
on_byte(struct shot *s)
{
	return read(s->http.fd, s->buf, 1) == 1 ? 1 : -1;
}

static double
bwrap_burst(void *arg)
{
	char	*argv[BWRAP];
	double	 t0;
	int	 i, n, r = 0;

	(void)arg;
	bwrap_argv(argv);
	t0 = bench_usec();
	for (n = 0; n < BURST && r == 0; n++) {
		r = shots[n].http.fd = peer_start(argv, &shots[n].pid);
		polls[n] = (struct pollfd){ r, POLLIN, 0 };
		r = r == -1 ? -1 : 0;
	}
	if (r == 0)
		r = burst_wait(t0, on_byte);
	else
		n--;		/* the last was not started */
	for (i = 0; i < n; i++) {
		close(shots[i].http.fd);
		peer_end(shots[i].pid);
	}
	return r == -1 ? -1 : burst_p95();
}

int
row_p3(void)
{
	struct bench_stat	a, b;

	if (pool_prime() == -1 || bench_pairs(ours_create, NULL, peer_bwrap,
	    NULL, 5, pairs, &a, &b) == -1)
		return -1;
	if (pool == 0) {
		bench_row("P3", "network egress, nothing prepared", &a, &b,
		    "bwrap", 0, 0);
		return 0;
	}
	bench_row("P3", "create, network egress, to 201 READY", &a, &b,
	    "bwrap", 1.5, 0.8);
	if (bench_pairs(ours_burst, NULL, bwrap_burst, NULL, 1, pairs_of(20),
	    &a, &b) == -1)
		return -1;
	bench_row("P3", "50 at once, p95 of these", &a, &b,
	    "bwrap, 50 at once", 0, 4);
	return 0;
}

/* ---- P12 ---------------------------------------------------------------- */


/* Each tells MiB for one, which are less than none if others free memory. */
static int
idle_boxes(const char *body, unsigned int ways_out, double *ret_mib)
{
	static char	ids[IDLE][64];
	double		before;
	int		i;

	if (pool_settle(0) == -1)
		return -1;
	before = mem_settled();
	for (i = 0; i < IDLE; i++)
		if (create_as(body, ids[i], sizeof(ids[i])) == -1)
			return -1;
	if (pool_settle(ways_out) == -1)
		return -1;
	*ret_mib = (before - mem_settled()) / IDLE;
	return remove_all(ids, IDLE);
}

/* A process whose parent is pid, or -1. */
static pid_t
child_of(pid_t pid)
{
	DIR		*d = opendir("/proc");
	struct dirent	*e;
	pid_t		 p, found = -1;

	while (d != NULL && found == -1 && (e = readdir(d)) != NULL) {
		p = (pid_t)strtol(e->d_name, NULL, 10);
		if (p > 0 && parent_of(p) == pid)
			found = p;
	}
	if (d != NULL)
		(void)closedir(d);
	return found;
}

static int
idle_bwraps(double *ret_mib)
{
	char	*argv[BWRAP];
	pid_t	 box[IDLE], slirp[IDLE], in;
	double	 before = mem_settled();
	int	 i, n;

	bwrap_argv(argv);
	for (n = 0; n < IDLE; n++) {
		if (peer_ready(argv, &box[n]) < 0)
			break;
		/* bwrap itself stays outside */
		if ((in = child_of(box[n])) == -1 ||
		    slirp_start(in, &slirp[n]) == -1) {
			peer_end(box[n]);
			break;
		}
	}
	if (n == IDLE)
		*ret_mib = (before - mem_settled()) / IDLE;
	for (i = 0; i < n; i++) {
		peer_end(slirp[i]);
		peer_end(box[i]);
	}
	return n < IDLE ? -1 : 0;
}

int
row_p12(void)
{
	double	a, b, named;

	/* the first time, what is made once is made */
	if (pool_prime() == -1 || idle_boxes(EGRESS, IDLE, &a) == -1 ||
	    idle_boxes(ALLOWLIST, 0, &named) == -1 ||
	    idle_bwraps(&b) == -1 || idle_boxes(EGRESS, IDLE, &a) == -1 ||
	    idle_boxes(ALLOWLIST, 0, &named) == -1)
		return -1;
	if (a <= 0 || b <= 0 || named <= 0) {
		fprintf(stderr, "P12: %.2f and %.2f MiB: something else gave "
		    "memory back\n", a, b);
		return -1;
	}
	bench_value("P12", "memory per idle box, egress", "MiB", a, b,
	    "bwrap and slirp4netns", 1.2, 1.0);
	bench_value("P12", "memory per idle box, allowlist", "MiB", named, b,
	    "bwrap and slirp4netns", 1.2, 1.0);
	return 0;
}

/* ---- P21 ---------------------------------------------------------------- */

#define STREAM	(8UL << 20)

static char		 boxid[64];
static struct bare	 bare;

static double
box_stream(void *arg)
{
	double	ns = talk_box(boxid, arg);

	return ns < 0 ? -1 : ns / 1e3;
}

static double
bare_stream(void *arg)
{
	double	ns = talk_bare(&bare, arg);

	return ns < 0 ? -1 : ns / 1e3;
}

static int
stream_row(const char *row, const char *job, const char *what, double file,
    double end)
{
	struct talk		t = { job, STREAM };
	struct bench_stat	a, b;

	if (bench_pairs(box_stream, &t, bare_stream, &t, 3, pairs, &a,
	    &b) == -1)
		return -1;
	bench_rate(row, what, (double)STREAM, &a, &b,
	    "bare slirp4netns", file, end);
	return 0;
}

int
row_p21(void)
{
	int	r;

	if (pool_prime() == -1 ||
	    create_as(EGRESS, boxid, sizeof(boxid)) == -1)
		return -1;
	r = pool_settle(1) == -1 || bare_start(&bare) == -1 ? -1 : 0;
	if (r == 0) {
		r = stream_row("P21", "send", "out of a box, MB/s", 0.9,
		    0.95) == -1 || stream_row("P21", "recv",
		    "into a box, MB/s", 0.9, 0.95) == -1 ? -1 : 0;
		bare_end(&bare);
	}
	return destroy(boxid) == -1 ? -1 : r;
}

/* ---- P29 ---------------------------------------------------------------- */

/* The address that the box has for the name. */
static int
name_address(const char *id, char ret[16])
{
	char		path[128];
	const char	*s;
	size_t		n;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
	if (http_call(&h, "POST", path, "{\"argv\":[\"nslookup\",\"" FAR_NAME
	    "\"]}") != 200 || (s = strstr(h.body, "198.18.")) == NULL) {
		fprintf(stderr, "nslookup in the box: %s\n", h.body);
		return -1;
	}
	n = strspn(s, "0123456789.");
	(void)snprintf(ret, 16, "%.*s", (int)(n < 15 ? n : 15), s);
	return 0;
}

int
row_p29(void)
{
	static char	addr[16];
	int		r;

	if (pool_prime() == -1 ||
	    create_as(ALLOWLIST, boxid, sizeof(boxid)) == -1)
		return -1;
	r = name_address(boxid, addr) == -1 || bare_start(&bare) == -1 ? -1 :
	    0;
	if (r == 0) {
		by_name = addr;
		r = stream_row("P29", "send", "by name out of a box, MB/s",
		    2, 3) == -1 || stream_row("P29", "recv",
		    "by name into a box, MB/s", 2, 3) == -1 ? -1 : 0;
		by_name = NULL;
		bare_end(&bare);
	}
	return destroy(boxid) == -1 ? -1 : r;
}

/* ---- P22 ---------------------------------------------------------------- */

#define LIVE	200
#define ROUNDS	2		/* with one, with 200, with one, ... */
#define RUNS_MAX	1000
#define PINGS	1000

/* Runs with one box, and with LIVE; nanoseconds, each a median of PINGS. */
static double		 box_ns[2][RUNS_MAX], bare_ns[2][RUNS_MAX];
static int		 nruns[2];
static char		 others[LIVE - 1][64];

/* The box's and the peer's in turn. */
static int
pings(int many, int n)
{
	const struct talk	t = { "ping", PINGS };
	int			i, *k = &nruns[many];

	for (i = 0; i < n && *k < RUNS_MAX; i++, ++*k) {
		box_ns[many][*k] = talk_box(boxid, &t);
		bare_ns[many][*k] = talk_bare(&bare, &t);
		if (box_ns[many][*k] < 0 || bare_ns[many][*k] < 0)
			return -1;
	}
	return 0;
}

static int
round_of(int n)
{
	int	i, r;

	if (pool_settle(1) == -1 || pings(0, n) == -1)
		return -1;
	for (i = 0; i < LIVE - 1; i++)
		if (create_as(EGRESS, others[i], sizeof(others[i])) == -1)
			return -1;
	r = pool_settle(LIVE) == -1 ? -1 : pings(1, n);
	return remove_all(others, LIVE - 1) == -1 ? -1 : r;
}

/* The harness tells thousands of what it is given: of nanoseconds, us. */
static void
ping_row(const char *what, double (*ns)[RUNS_MAX], const char *peer,
    double file, double end)
{
	struct bench_stat	a, b;

	bench_stat(ns[1], nruns[1], &a);
	bench_stat(ns[0], nruns[0], &b);
	bench_row("P22", what, &a, &b, peer, file, end);
}

int
row_p22(void)
{
	int	i, r = 0;

	if (pool_prime() == -1 ||
	    create_as(EGRESS, boxid, sizeof(boxid)) == -1)
		return -1;
	if (bare_start(&bare) == -1)
		return -1;
	for (i = 0; i < ROUNDS && r == 0; i++)
		r = round_of(pairs_of(ROUNDS));
	bare_end(&bare);
	if (r == 0) {
		ping_row("a byte there and back, 200 boxes, us", box_ns,
		    "with 1", 1.1, 1.03);
		ping_row("meanwhile bare slirp4netns, us", bare_ns,
		    "with 1: the machine", 0, 0);
	}
	return destroy(boxid) == -1 ? -1 : r;
}
