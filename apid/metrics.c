/*
 * metrics.c: what this server does, in the text format of Prometheus 0.0.4.
 *
 * All that is counted begins at 0 with each apid, as counters may.  What boxes
 * use is as old as the last look at them (health.c).  Sums over boxes only
 * grow: a box that goes leaves in them what it had used at its last look, and
 * one that was there before this apid counts from its first look on.  Series of
 * single boxes are told of up to SERIES boxes; where there are more, only the
 * sums.
 *
 * Must never: tell more of a box than its id and name, which are of a path's
 * characters and need no quoting.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"

#define SERIES	200			/* boxes, at most */
#define HEALTHS	(ABSENT + 1)
#define TYPE	"text/plain; version=0.0.4; charset=utf-8"

/* ---- how long things take ------------------------------------------------ */

/* Upper bounds in seconds. */
static const double	bound[] = { 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
    0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10 };
#define BOUNDS	(sizeof(bound) / sizeof(bound[0]))

static struct histogram {
	const char	*name, *help;
	uint64_t	 n[BOUNDS + 1];		/* within each; the rest */
	double		 sum;
} times[METRIC_TIMES] = {
	[METRIC_READY] = { .name = "workbox_ready_seconds", .help =
	    "From the request for a sandbox until it is READY." },
	[METRIC_EXEC] = { .name = "workbox_exec_seconds", .help =
	    "From the request for a command until it runs." },
	[METRIC_COMMIT] = { .name = "workbox_commit_seconds", .help =
	    "Until the store has a new sandbox, its state or a new command "
	    "on the disk." },
};

void
metrics_took(enum metric_time which, uint64_t since_us)
{
	struct histogram	*h = &times[which];
	double			 s = (double)(mono_us() - since_us) / 1e6;
	size_t			 i = 0;

	while (i < BOUNDS && s > bound[i])
		i++;
	h->n[i]++;
	h->sum += s;
}

/* ---- how much ------------------------------------------------------------ */

static struct {
	const char	*name, *help;
	uint64_t	 n;
} counts[METRIC_COUNTS] = {
	[METRIC_SESSIONS] = { .name = "workbox_sessions_started_total",
	    .help = "Commands that the API has begun to run." },
	[METRIC_OUTPUT] = { .name = "workbox_output_bytes_total",
	    .help = "Bytes of output that readers were told." },
	[METRIC_INPUT] = { .name = "workbox_input_bytes_total",
	    .help = "Bytes of input that sessions have taken." },
};

void
metrics_add(enum metric_count which, uint64_t n)
{
	counts[which].n += n;
}

/* ---- what boxes use ------------------------------------------------------ */

/* Names without "workbox_" and "workbox_sandbox_"; scale: units in one. */
static const struct use {
	const char	*name, *help;
	double		 scale;
	int		 grows;			/* a counter */
} uses[USE_N] = {
	[USE_CPU] = { "cpu_seconds_total", "Processor time used.", 1e6, 1 },
	[USE_MEMORY] = { "memory_bytes", "Memory in use.", 1, 0 },
	[USE_PROCESSES] = { "processes", "Processes and threads.", 1, 0 },
	[USE_SESSIONS] = { "sessions", "Commands that run.", 1, 0 },
	[USE_OOM] = { "oom_kills_total", "Processes that the kernel ended "
	    "for want of memory.", 1, 1 },
	[USE_CONNECTIONS] = { "connections_total", "Connections that were "
	    "let out.", 1, 1 },
	[USE_NAMES] = { "name_queries_total", "Questions for names that were "
	    "let out.", 1, 1 },
	[USE_SENT] = { "sent_bytes_total", "Bytes sent by the network.", 1,
	    1 },
	[USE_RECEIVED] = { "received_bytes_total", "Bytes received by the "
	    "network.", 1, 1 },
	[USE_DENIED] = { "denied_packets_total", "Packets that the network's "
	    "rules have denied.", 1, 1 },
	[USE_DENIED_NAMES] = { "denied_names_total", "Names that were denied, "
	    "and what was to go by one.", 1, 1 },
};

static uint64_t	sums[USE_N];		/* of those that grow */

static void
use_set(struct box *b, enum metric_use u, uint64_t now)
{
	/* less than before: another kind of network counts anew */
	if (uses[u].grows && (b->use_known & 1U << u) != 0)
		sums[u] += now < b->use[u] ? now : now - b->use[u];
	b->use[u] = now;
	b->use_known |= 1U << u;
}

void
metrics_looked(struct box *b, const struct msg_box_health_is *h)
{
	use_set(b, USE_CPU, h->cpu_usec);
	use_set(b, USE_MEMORY, h->memory_bytes);
	use_set(b, USE_PROCESSES, h->pids);
	use_set(b, USE_SESSIONS, b->running);
	use_set(b, USE_OOM, h->oom_kills);
}

void
metrics_counted(struct box *b)
{
	uint64_t	packets = 0, names = 0;
	unsigned int	rule;

	for (rule = 0; rule < DENIED_NAME; rule++)	/* the kernel's */
		packets += b->denied[rule];
	for (; rule < DENIED_RULES; rule++)
		names += b->denied_told[rule];
	use_set(b, USE_DENIED, packets);
	use_set(b, USE_DENIED_NAMES, names);
	use_set(b, USE_CONNECTIONS, b->connections);
	use_set(b, USE_NAMES, b->names);
	use_set(b, USE_SENT, b->sent_bytes);
	use_set(b, USE_RECEIVED, b->received_bytes);
}

/* ---- as text ------------------------------------------------------------- */

static void	put(FILE *, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

/* What could not be written is told when all is. */
static void
put(FILE *f, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vfprintf(f, fmt, ap);
	va_end(ap);
}

static void
head(FILE *f, const char *prefix, const char *name, const char *type,
    const char *help)
{
	put(f, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help,
	    prefix, name, type);
}

static void
gauge(FILE *f, const char *name, const char *help, double v)
{
	head(f, "", name, "gauge", help);
	put(f, "%s %.15g\n", name, v);
}

static void
counter(FILE *f, const char *name, const char *help, uint64_t v)
{
	head(f, "", name, "counter", help);
	put(f, "%s %llu\n", name, (unsigned long long)v);
}

static void
histogram(FILE *f, const struct histogram *h)
{
	unsigned long long	n = 0;
	size_t			i;

	head(f, "", h->name, "histogram", h->help);
	for (i = 0; i < BOUNDS; i++) {
		n += h->n[i];
		put(f, "%s_bucket{le=\"%g\"} %llu\n", h->name, bound[i],
		    n);
	}
	n += h->n[BOUNDS];
	put(f, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.15g\n"
	    "%s_count %llu\n", h->name, n, h->name, h->sum, h->name, n);
}

static void
put_server(FILE *f)
{
	unsigned int	conns, reqs;
	size_t		i;

	http_server_count(env.http, &conns, &reqs);
	head(f, "workbox_", "build_info", "gauge", "The version; always 1.");
	put(f, "workbox_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
	/* the first is no restart */
	counter(f, "workbox_restarts_total", "Times that the daemons were "
	    "started again, all together.", env.generation - 1);
	gauge(f, "workbox_http_connections", "Connections that are open.",
	    conns);
	gauge(f, "workbox_http_requests", "Requests that are being handled.",
	    reqs);
	gauge(f, "workbox_sandboxes_leaving", "Removals under way.",
	    remove_under_way());
	for (i = 0; i < METRIC_COUNTS; i++)
		counter(f, counts[i].name, counts[i].help, counts[i].n);
	for (i = 0; i < METRIC_TIMES; i++)
		histogram(f, &times[i]);
}

struct load {
	const char	*to;
	unsigned int	 reqs;
	size_t		 bytes;
};

/* What waits for the other daemons, and for all runners together. */
static void
put_queues(FILE *f)
{
	struct load	 l[] = { { "privd", 0, 0 }, { "stored", 0, 0 },
			    { "netd", 0, 0 }, { "runners", 0, 0 } };
	const size_t	 n = sizeof(l) / sizeof(l[0]);
	struct box	*b;
	size_t		 i;

	peer_load(env.privd, &l[0].reqs, &l[0].bytes);
	peer_load(env.stored, &l[1].reqs, &l[1].bytes);
	peer_load(env.netd, &l[2].reqs, &l[2].bytes);
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		if (b->runner != NULL)
			peer_load(b->runner, &l[3].reqs, &l[3].bytes);
	head(f, "workbox_", "requests_waiting", "gauge",
	    "Requests to other programs of the server that have no answer "
	    "yet.");
	for (i = 0; i < n; i++)
		put(f, "workbox_requests_waiting{to=\"%s\"} %u\n",
		    l[i].to, l[i].reqs);
	head(f, "workbox_", "queued_bytes", "gauge",
	    "Bytes that the other side has not read yet.");
	for (i = 0; i < n; i++)
		put(f, "workbox_queued_bytes{to=\"%s\"} %zu\n", l[i].to,
		    l[i].bytes);
}

static void
put_boxes(FILE *f)
{
	unsigned int	 state[BOX_NSTATES] = { 0 }, health[HEALTHS] = { 0 };
	struct box	*b;
	unsigned int	 i;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		state[b->state]++;
		health[b->health]++;
	}
	head(f, "workbox_", "sandboxes", "gauge", "Sandboxes, by state.");
	for (i = 0; i < BOX_NSTATES; i++)
		if (i != BOX_DELETED)
			put(f, "workbox_sandboxes{state=\"%s\"} %u\n",
			    state_name(i), state[i]);
	head(f, "workbox_", "sandboxes_health", "gauge",
	    "Sandboxes, by health.");
	for (i = 0; i < HEALTHS; i++)
		put(f, "workbox_sandboxes_health{health=\"%s\"} %u\n",
		    health_name(i), health[i]);
}

/* What is not there any more uses nothing, and has used what it has. */
static double
used(const struct box *b, enum metric_use u)
{
	if (!uses[u].grows && b->state != BOX_READY &&
	    b->state != BOX_DRAINING && b->state != BOX_QUARANTINED)
		return 0;
	return (double)b->use[u] / uses[u].scale;
}

static double
summed(enum metric_use u)
{
	struct box	*b;
	double		 v = 0;

	if (uses[u].grows)
		return (double)sums[u] / uses[u].scale;
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		v += used(b, u);
	return v;
}

static void
put_uses(FILE *f)
{
	struct box	*b;
	const char	*type;
	size_t		 i;

	for (i = 0; i < USE_N; i++) {
		type = uses[i].grows ? "counter" : "gauge";
		head(f, "workbox_", uses[i].name, type, uses[i].help);
		put(f, "workbox_%s %.15g\n", uses[i].name,
		    summed((enum metric_use)i));
		if (box_count() == 0 || box_count() > SERIES)
			continue;
		head(f, "workbox_sandbox_", uses[i].name, type, uses[i].help);
		for (b = box_next(NULL, ""); b != NULL;
		    b = box_next(NULL, b->id))
			put(f, "workbox_sandbox_%s{id=\"%s\",name=\"%s\"} "
			    "%.15g\n", uses[i].name, b->id, b->name,
			    used(b, (enum metric_use)i));
	}
}

void
api_metrics(struct http_req *r)
{
	char	*text = NULL;
	size_t	 len = 0;
	FILE	*f = open_memstream(&text, &len);
	int	 failed;

	if (f == NULL)
		fatalx("metrics: out of memory");
	put_server(f);
	put_queues(f);
	put_boxes(f);
	put_uses(f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		fatalx("metrics: out of memory");
	http_reply_bytes(r, 200, TYPE, text, len);
	free(text);
}
