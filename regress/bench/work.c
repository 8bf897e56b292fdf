/*
 * work.c: what an agent feels all day (P31): the same tools on a copy of the
 * same tree, in a box and on the host by chroot(8).  run.sh makes both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"

#define PRE	"export LC_ALL=C PATH=/usr/bin:/bin HOME=/w; set -e; "

static const char	*host_tree;
static char		 boxid[64];

static double
in_box(const char *job)
{
	char	path[128], json[2048];
	double	t0;
	int	st;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", boxid);
	(void)snprintf(json, sizeof(json), "{\"argv\":[\"sh\",\"-c\",\"" PRE
	    "%s\"]}", job);
	t0 = bench_usec();
	st = http_call(&h, "POST", path, json);
	if (st == 200 && strcmp(http_member(&h, "exitCode"), "0") == 0)
		return bench_usec() - t0;
	fprintf(stderr, "%s: %d %.2000s\n", job, st, h.body);
	return -1;
}

static double
on_host(const char *job)
{
	char		sh[2048];
	char *const	v[] = { S("chroot"), S(host_tree), S("sh"), S("-c"),
	    sh, NULL };

	(void)snprintf(sh, sizeof(sh), PRE "%s", job);
	return peer_whole(v);
}

/* What is timed, and what is done before it; no quotes in either. */
struct job { const char *what, *before, *job; int part; };

static double
job_run(double (*where)(const char *), const struct job *j)
{
	if (j->before != NULL && where(j->before) < 0)
		return -1;
	return where(j->job);
}

static double
job_box(void *arg)
{
	return job_run(in_box, arg);
}

static double
job_host(void *arg)
{
	return job_run(on_host, arg);
}

/* 50,000 files of one line in 500 directories, and 20,000 of them in a tar. */
static const char	setup[] =
    "mkdir -p /w; cd /w; git init -q repo; cd repo; "
    "git config user.name a; git config user.email a@localhost; "
    "for d in $(seq 100 599); do mkdir d$d; (cd d$d; seq 100 | "
    "split -l 1); done; git add -A; git commit -q -m all; "
    "tar cf /w/t.tar d1* d2*; sync -f /w";

static const struct job	jobs[] = {
	{ "compile of common/", "rm -rf /w/o; mkdir /w/o",
	    "cd /w/o; ls /bench/src/*.c | xargs -P 2 -n 1 gcc -std=gnu17 -O2 "
	    "-D_GNU_SOURCE -DPACKAGE_VERSION=__FILE__ -I/bench/src -c", 10 },
	{ "git status, 50,000 files", NULL,
	    "cd /w/repo; test $(git status --porcelain | wc -l) = 0", 4 },
	{ "tar x, 20,000 files", "rm -rf /w/x; mkdir /w/x",
	    "tar xf /w/t.tar -C /w/x", 10 },
	{ "npm ci, 200 packages", NULL,
	    "mkdir -p /w/npm; node /bench/npm.js /w/npm", 10 },
};

static int
job_row(const struct job *j)
{
	struct bench_stat	a, b;

	if (bench_pairs(job_box, (void *)(uintptr_t)j, job_host,
	    (void *)(uintptr_t)j, 1, pairs_of(j->part), &a, &b) == -1)
		return -1;
	bench_row("P31", j->what, &a, &b, "the host, the same tree", 1.10,
	    1.05);
	return 0;
}

int
row_p31(void)
{
	char	spec[160];
	size_t	i;
	int	r = 0;

	if ((host_tree = getenv("BENCH_TOOLS")) == NULL)
		return 0;	/* run.sh has said so */
	(void)snprintf(spec, sizeof(spec), "{\"network\":\"none\",\"rootfs\":"
	    "\"tools\",\"limits\":{\"memoryBytes\":4294967296,\"cpus\":%ld}}",
	    sysconf(_SC_NPROCESSORS_ONLN));
	if (create_as(spec, boxid, sizeof(boxid)) == -1)
		return -1;
	if (in_box(setup) < 0 || on_host(setup) < 0)
		r = -1;
	for (i = 0; r == 0 && i < sizeof(jobs) / sizeof(jobs[0]); i++)
		r = job_row(&jobs[i]);
	return destroy(boxid) == -1 ? -1 : r;
}
