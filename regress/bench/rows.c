/*
 * rows.c: the rows of the table.  usage: bench ROW... with
 *	WB_URL WB_TOKEN		a server that runs
 *	BENCH_ROOT		root file system with /ready in it, the server's
 *				default too
 *	BENCH_WORK		a directory on the same file system
 *	BENCH_SERVER_PID	privd's pid, for P13
 *	BENCH_BOXES		the server's directory of boxes, for P7
 *	BENCH_CGROUPS		the host's control groups, and the server's name
 *	BENCH_CGROUP		there, for P10
 *	BENCH_BUNDLE		a bundle for crun, which must be able to run, for P10
 *	BENCH_BIG		a file of the root file system, for P9
 *	BENCH_ORDERS		named pipes: a shell that restarts servers takes
 *	BENCH_DONE		orders and answers with pids, and the URL of the
 *	BENCH_URL_NONE		server that has no boxes, for P26
 *	BENCH_TOOLS		the host's copy of the root file system `tools',
 *				for P31
 *	BENCH_POOL		networks `egress' that the server prepares, and
 *	BENCH_FAR		address:port of a `talk serve' that a box and this
 *				process reach, for P3, P12, P21 and P22
 *	BENCH_N			pairs (100); rows that take long use fewer
 */
#include <sys/types.h>
#include <sys/wait.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"

struct http		 h;
const char		*root, *workdir;
int			 pairs = 100;
static char		 boxid[64];

int
pairs_of(int part)
{
	return pairs > part ? pairs / part : 1;
}

/* ---- ours -------------------------------------------------------------- */

int
create_as(const char *json, char *id, size_t n)
{
	const char	*v;
	int		 st = http_call(&h, "POST", "/v1/sandboxes", json);

	if (st != 201 || (v = http_member(&h, "id")) == NULL) {
		fprintf(stderr, "create: %d %s\n", st, h.body);
		return -1;
	}
	(void)snprintf(id, n, "%s", v);
	return 0;
}

int
create(char *id, size_t n)
{
	return create_as("{\"network\":\"none\"}", id, n);
}

int
destroy(const char *id)
{
	char	path[128];
	int	st;

	(void)snprintf(path, sizeof(path),
	    "/v1/sandboxes/%s?graceSeconds=0", id);
	st = http_call(&h, "DELETE", path, NULL);
	if (st / 100 != 2)
		fprintf(stderr, "delete: %d %s\n", st, h.body);
	return st / 100 == 2 ? 0 : -1;
}

/* It is not ours to time. */
void
settle(const char *id)
{
	char	path[128];
	int	i;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", id);
	for (i = 0; i < 200; i++) {
		if (http_call(&h, "GET", path, NULL) != 200 ||
		    strstr(h.body, "DELETED") != NULL)
			return;
		(void)usleep(2000);	/* between the runs, not in them */
	}
}

static double
ours_create(void *arg)
{
	char	id[64];
	double	t0 = bench_usec(), t;

	(void)arg;
	if (create(id, sizeof(id)) == -1)
		return -1;
	t = bench_usec() - t0;
	if (destroy(id) == -1)
		return -1;
	settle(id);
	return t;
}

static double
ours_exec(void *arg)
{
	char	path[128];
	double	t0;
	int	st;

	(void)arg;
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", boxid);
	t0 = bench_usec();
	st = http_call(&h, "POST", path, "{\"argv\":[\"/bin/true\"]}");
	if (st != 200 || strcmp(http_member(&h, "exitCode"), "0") != 0) {
		fprintf(stderr, "exec: %d %s\n", st, h.body);
		return -1;
	}
	return bench_usec() - t0;
}

/* ---- peers ------------------------------------------------------------- */

void
bwrap_argv(char *argv[BWRAP])
{
	char *const	v[BWRAP] = { S("bwrap"), S("--unshare-all"),
	    S("--die-with-parent"), S("--cap-drop"), S("ALL"), S("--bind"),
	    S(root), S("/"), S("--dev"), S("/dev"), S("--proc"), S("/proc"),
	    S("/ready"), NULL };

	memcpy(argv, v, sizeof(v));
}

double
peer_bwrap(void *arg)
{
	char	*argv[BWRAP];
	pid_t	 pid;
	double	 t;

	(void)arg;
	bwrap_argv(argv);
	if ((t = peer_ready(argv, &pid)) >= 0)
		peer_end(pid);
	return t;
}

void
nsenter_argv(char **argv, long pid)
{
	static char	nspid[24];
	char *const	v[NSENTER] = { S("nsenter"), S("-t"), nspid, S("-U"),
	    S("-m"), S("-u"), S("-i"), S("-n"), S("-p"), S("-C"),
	    S("--root"), S("--wd=/") };

	(void)snprintf(nspid, sizeof(nspid), "%ld", pid);
	memcpy(argv, v, sizeof(v));
}

static double
peer_nsenter(void *arg)
{
	return peer_whole(arg);
}

/* ---- memory ------------------------------------------------------------- */

/* MiB of free pages that each processor keeps for itself, told by no sum. */
static double
mem_per_cpu(void)
{
	char	line[128];
	double	n, sum = 0;
	FILE	*f = fopen("/proc/zoneinfo", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, " count: %lf", &n) == 1)
			sum += n;
	if (f != NULL)
		(void)fclose(f);
	return sum * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static double
mem_available(void)
{
	char	line[128];
	double	kb = -1;
	FILE	*f = fopen("/proc/meminfo", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %lf", &kb) == 1)
			break;
	if (f != NULL)
		(void)fclose(f);
	return kb / 1024 + mem_per_cpu();
}

/*
 * Lets freed pages come back before a reading: what namespaces and groups held
 * is freed behind them, and what a processor counted is added up once a second
 * or when stat_refresh is read.
 */
double
mem_settled(void)
{
	double	a, b = 0;
	int	fd = open("/proc/sys/vm/stat_refresh", O_RDONLY | O_CLOEXEC);
	int	i, still = 0;
	char	c;

	for (i = 0; i < 100 && still < 10; i++) {
		(void)usleep(100000);	/* pace of asking */
		if (fd != -1)
			(void)!pread(fd, &c, 1, 0);
		a = b;
		b = mem_available();
		still = b - a < 0.2 && a - b < 0.2 ? still + 1 : 0;
	}
	if (fd != -1)
		close(fd);
	return b;
}

static double
pss(pid_t pid)
{
	char	path[64], line[128];
	double	kb = 0;
	FILE	*f;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Pss: %lf", &kb) == 1)
			break;
	(void)fclose(f);
	return kb / 1024;
}

pid_t
parent_of(pid_t pid)
{
	char	path[64], buf[512], *p;
	int	fd, ppid = 0;
	ssize_t	n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((fd = open(path, O_RDONLY)) == -1)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	if ((p = strrchr(buf, ')')) != NULL)
		(void)sscanf(p + 2, "%*c %d", &ppid);
	return ppid;
}

static int
is_box(pid_t pid)
{
	char	path[64], line[256];
	FILE	*f;
	long	uid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		return 1;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Uid: %ld", &uid) == 1)
			break;
	(void)fclose(f);
	return uid >= 0x40000000L;	/* no user of a host is */
}

/* PSS of the server's process and all below it that are not a box's. */
static double
server_pss(pid_t top)
{
	DIR		*d = opendir("/proc");
	struct dirent	*e;
	double		 sum = pss(top);
	pid_t		 pid, up;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid == top || is_box(pid))
			continue;
		for (up = parent_of(pid); up > 1; up = parent_of(up))
			if (up == top) {
				sum += pss(pid);
				break;
			}
	}
	if (d != NULL)
		(void)closedir(d);
	return sum;
}

/* ---- rows --------------------------------------------------------------- */

static int
row_p1(void)
{
	struct bench_stat	a, b;

	if (bench_pairs(ours_create, NULL, peer_bwrap, NULL, 5, pairs, &a,
	    &b) == -1)
		return -1;
	bench_row("P1", "create, network none, to 201 READY", &a, &b, "bwrap",
	    1.0, 0.6);
	bench_value("P6", "p95/p50 of P1", "", a.p95 / a.p50, b.p95 / b.p50,
	    "bwrap's own", 1.3, 1.0);
	return 0;
}

static int
row_p2(void)
{
	struct bench_stat	a, b;

	if (floor_init(root, workdir) == -1) {
		perror("floor");
		return -1;
	}
	if (bench_pairs(ours_create, NULL, floor_ready, NULL, 5, pairs, &a,
	    &b) == -1)
		return -1;
	bench_row("P2", "the same", &a, &b, "floor program", 2.0, 1.4);
	floor_fini();
	return 0;
}

/* From its proof; -1 after saying why. */
long
host_pid(const char *id)
{
	char		 path[128];
	const char	*v;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/proof", id);
	if (http_call(&h, "GET", path, NULL) != 200 ||
	    (v = strstr(h.body, "\"hostPid\"")) == NULL ||
	    (v = strstr(v, "\"host\":")) == NULL) {
		fprintf(stderr, "proof has no hostPid: %s\n", h.body);
		return -1;
	}
	return strtol(v + 7, NULL, 10);
}

static int
row_p8(void)
{
	struct bench_stat	 a, b;
	char			*argv[NSENTER + 2] = { NULL };
	long			 pid;
	int			 r;

	if (create(boxid, sizeof(boxid)) == -1 ||
	    (pid = host_pid(boxid)) == -1)
		return -1;
	nsenter_argv(argv, pid);
	argv[NSENTER] = S("/bin/true");
	r = bench_pairs(ours_exec, NULL, peer_nsenter, argv, 5, pairs, &a, &b);
	if (r == 0)
		bench_row("P8", "exec /bin/true, keep-alive", &a, &b,
		    "nsenter", 0.9, 0.5);
	if (destroy(boxid) == -1)
		return -1;
	return r;
}

/* ---- create and remove, in a row ------------------------------------------ */

#define CLIENTS	2
#define EACH	10

/* One client: EACH boxes, one after another; its exit status. */
static int
client_ours(void)
{
	struct http	c = h;
	char		id[64];
	int		i, bad = 0;

	if (http_open(&h, c.host, c.token) == -1)
		return 1;	/* a connection of its own */
	for (i = 0; i < EACH && !bad; i++)
		bad = create(id, sizeof(id)) == -1 || destroy(id) == -1;
	return bad;
}

static int
client_bwrap(void)
{
	int	i;

	for (i = 0; i < EACH; i++)
		if (peer_bwrap(NULL) < 0)
			return 1;
	return 0;
}

static double
clients(int (*client)(void))
{
	double	t0 = bench_usec();
	pid_t	pid[CLIENTS];
	int	i, st, bad = 0;

	for (i = 0; i < CLIENTS; i++)
		if ((pid[i] = fork()) == 0)
			_exit(client());
	for (i = 0; i < CLIENTS; i++)
		if (pid[i] == -1 || waitpid(pid[i], &st, 0) == -1 || st != 0)
			bad = 1;
	return bad ? -1 : bench_usec() - t0;
}

static double
ours_clients(void *arg)
{
	(void)arg;
	return clients(client_ours);
}

static double
bwrap_clients(void *arg)
{
	(void)arg;
	return clients(client_bwrap);
}

static int
entries(const char *dir)
{
	DIR		*d = opendir(dir);
	struct dirent	*e;
	int		 n = 0;

	while (d != NULL && (e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	if (d != NULL)
		(void)closedir(d);
	return n;
}

static int
row_p7(void)
{
	const char		*boxes = getenv("BENCH_BOXES");
	struct bench_stat	 a, b;
	int			 left;

	if (boxes == NULL || bench_pairs(ours_clients, NULL, bwrap_clients,
	    NULL, 1, pairs_of(EACH), &a, &b) == -1)
		return -1;
	(void)sleep(2);		/* what the row allows */
	if ((left = entries(boxes)) != 0) {
		fprintf(stderr, "P7: %d trees are left after 2 s\n", left);
		return -1;
	}
	bench_rate("P7", "create + remove, 2 clients, /s",
	    CLIENTS * EACH * 1e6, &a, &b, "2 loops of bwrap", 1.0, 2.0);
	return 0;
}

/* ---- removal ---------------------------------------------------------------- */

/* Whether a control group of the box or its first process is left. */
static int
is_left(const char *id, long pid)
{
	static const char *const	trees[] = { "", "/unified", "/memory",
	    "/cpu", "/pids" };
	const char			*groups = getenv("BENCH_CGROUPS");
	const char			*name = getenv("BENCH_CGROUP");
	char				 path[400];
	size_t				 i;

	for (i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s/%s/%s", groups,
		    trees[i], name, id);
		if (access(path, F_OK) == 0)
			return 1;
	}
	(void)snprintf(path, sizeof(path), "/proc/%ld", pid);
	return access(path, F_OK) == 0;
}

static double
ours_remove(void *arg)
{
	char	id[64];
	double	t0;
	long	pid;

	(void)arg;
	if (create(id, sizeof(id)) == -1 || (pid = host_pid(id)) == -1)
		return -1;
	if (!is_left(id, pid)) {
		fprintf(stderr, "P10: no group of %s is seen\n", id);
		return -1;
	}
	t0 = bench_usec();
	if (destroy(id) == -1)
		return -1;
	while (is_left(id, pid))
		(void)usleep(20);	/* it is answered when both are gone */
	t0 = bench_usec() - t0;
	settle(id);
	return t0;
}

static double
crun_remove(void *arg)
{
	char *const	run[] = { S("crun"), S("--cgroup-manager=disabled"),
	    S("run"), S("--detach"), S("--bundle"), S(getenv("BENCH_BUNDLE")),
	    S("wb-bench"), NULL };
	char *const	rm[] = { S("crun"), S("--cgroup-manager=disabled"),
	    S("delete"), S("--force"), S("wb-bench"), NULL };

	(void)arg;
	if (peer_whole(run) < 0)
		return -1;
	return peer_whole(rm);
}

static int
row_p10(void)
{
	struct bench_stat	a, b;

	if (getenv("BENCH_BUNDLE") == NULL)
		return 0;	/* no crun: run.sh has said so */
	if (bench_pairs(ours_remove, NULL, crun_remove, NULL, 5, pairs, &a,
	    &b) == -1)
		return -1;
	bench_row("P10", "DELETE to groups and mounts gone", &a, &b,
	    "crun delete --force", 0.5, 0.25);
	return 0;
}


static double
idle_boxes(int used)
{
	char	ids[IDLE][64], path[128];
	double	before = mem_settled(), after;
	int	i, k;

	for (i = 0; i < IDLE; i++)
		if (create(ids[i], sizeof(ids[i])) == -1)
			return -1;
	for (i = 0; used && i < IDLE; i++) {
		(void)snprintf(path, sizeof(path), "/v1/sandboxes/%.26s/exec",
		    ids[i]);
		for (k = 0; k < 20; k++)
			if (http_call(&h, "POST", path, "{\"argv\":[\"sh\","
			    "\"-c\",\"head -c 1048576 /dev/zero\"]}") != 200) {
				fprintf(stderr, "exec: %s\n", h.body);
				return -1;
			}
	}
	after = mem_settled();
	for (i = 0; i < IDLE; i++)
		if (destroy(ids[i]) == -1)
			return -1;
	for (i = 0; i < IDLE; i++)
		settle(ids[i]);
	return (before - after) / IDLE;
}

static double
idle_bwraps(void)
{
	char	*argv[BWRAP];
	pid_t	 pid[IDLE];
	double	 before = mem_settled(), after;
	int	 i;

	bwrap_argv(argv);
	for (i = 0; i < IDLE; i++)
		if (peer_ready(argv, &pid[i]) < 0)
			return -1;
	after = mem_settled();
	for (i = 0; i < IDLE; i++)
		peer_end(pid[i]);
	return (before - after) / IDLE;
}

static int
row_p11(void)
{
	double	a, b, u, kept;

	(void)idle_boxes(0);	/* what is made once is made */
	b = idle_bwraps();
	a = idle_boxes(0);
	if (a <= 0 || b <= 0) {
		fprintf(stderr, "P11: %.2f and %.2f MiB: something else gave "
		    "memory back\n", a, b);
		return -1;
	}
	bench_value("P11", "memory per idle box", "MiB", a, b,
	    "bwrap, idle static program", 1.5, 1.0);
	u = idle_boxes(1);
	if (u < 0)
		return -1;
	/* 20 sessions of 1 MiB, all retained below the rings' bounds */
	kept = 20.0;
	bench_value("P11", "after 20 sessions of 1 MiB, less it", "MiB",
	    u - kept, b, "the same", 3.0, 2.0);
	return 0;
}

static int
row_p13(void)
{
	const char	*s = getenv("BENCH_SERVER_PID");
	char		 ids[20][64];
	int		 i;

	for (i = 0; i < 20; i++)
		if (create(ids[i], sizeof(ids[i])) == -1)
			return -1;
	bench_value("P13", "PSS of the server, 20 idle boxes", "MiB",
	    server_pss((pid_t)strtol(s == NULL ? "0" : s, NULL, 10)), 87.4,
	    "published, a Node.js server", 0.25, 0.12);
	for (i = 0; i < 20; i++)
		if (destroy(ids[i]) == -1)
			return -1;
	return 0;
}

static const struct { const char *name; int (*fn)(void); } rows[] = {
	{ "P1", row_p1 }, { "P2", row_p2 }, { "P3", row_p3 },
	{ "P7", row_p7 }, { "P8", row_p8 }, { "P9", row_p9 },
	{ "P10", row_p10 }, { "P11", row_p11 }, { "P12", row_p12 },
	{ "P13", row_p13 }, { "P14", row_p14 }, { "P17", row_p17 },
	{ "P21", row_p21 }, { "P22", row_p22 }, { "P26", row_p26 },
	{ "P29", row_p29 },
	{ "P31", row_p31 }, { "P32", row_p32 }, { "P33", row_p33 },
};

int
main(int argc, char **argv)
{
	const char	*url = getenv("WB_URL"), *tok = getenv("WB_TOKEN");
	size_t		 i;
	int		 bad = 0, k;

	root = getenv("BENCH_ROOT");
	workdir = getenv("BENCH_WORK");
	if (url == NULL || tok == NULL || root == NULL || workdir == NULL ||
	    strncmp(url, "http://", 7) != 0) {
		fprintf(stderr, "bench: WB_URL, WB_TOKEN, BENCH_ROOT and "
		    "BENCH_WORK are wanted; see run.sh\n");
		return 2;
	}
	if (getenv("BENCH_N") != NULL)
		pairs = (int)strtol(getenv("BENCH_N"), NULL, 10);
	if (http_open(&h, url + 7, tok) == -1)
		return 1;
	bench_head();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (k = 1; k < argc; k++)
			if (strcmp(argv[k], rows[i].name) == 0)
				break;
		if ((argc == 1 || k < argc) && rows[i].fn() == -1) {
			fprintf(stderr, "bench: %s failed\n", rows[i].name);
			bad = 1;
		}
	}
	http_shut(&h);
	return bad;
}
