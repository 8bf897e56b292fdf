/*
 * runner_bench: what a session costs, seen from apid's end of the channel:
 * SESSION_RUN, SESSION_WAIT and a read sent in one go until all is answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner_box.h"
#include "ulid.h"
#include "xmalloc.h"

static double
usec(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
by_value(const void *a, const void *b)
{
	double	x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void
show(const char *what, double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	(void)printf("%-40s min %6.0f  p50 %6.0f  p95 %6.0f us\n", what, v[0],
	    v[n / 2], v[n * 95 / 100]);
}

static double
one(struct box *b, const char *const *argv, double *ret_running)
{
	struct msg_session_run	run = { .attached = 1 };
	struct msg_session_wait	w = { 0 };
	struct msg_session_read	r = { .wait = 1, .attached = 1 };
	struct msg		m;
	double			t = usec();
	int			ended = 0, eof = 0;

	ulid_new(run.id);
	memcpy(w.id, run.id, sizeof(w.id));
	memcpy(r.id, run.id, sizeof(r.id));
	run.argv = box_list(argv);
	(void)chan_ask(&b->ch, MSG_SESSION_RUN, &run, -1, NULL);
	(void)chan_ask(&b->ch, MSG_SESSION_READ, &r, -1, NULL);
	(void)chan_ask(&b->ch, MSG_SESSION_WAIT, &w, -1, NULL);
	while (!ended || !eof) {
		if (box_recv(&b->ch, &m) != 1)
			abort();
		if (m.row->type == MSG_SESSION_RUNNING)
			*ret_running = usec() - t;
		else if (m.row->type == MSG_SESSION_EXIT)
			ended = 1;
		else if (m.row->type == MSG_SESSION_CHUNK) {
			eof = (int)m.body.session_chunk.eof;
			r.after = m.body.session_chunk.seq;
			if (!eof)
				(void)chan_ask(&b->ch, MSG_SESSION_READ, &r,
				    -1, NULL);
		} else if (m.row->type == MSG_ERROR) {
			(void)fprintf(stderr, "%s\n", m.body.error.detail);
			abort();
		}
	}
	return usec() - t;
}

int
main(int argc, char **argv)
{
	static const char *const true_argv[] = { "/bin/true", NULL };
	static const char *const echo_argv[] = { "/bin/echo", "hi", NULL };
	static double		 v[2000], r[2000];
	const char		*own[] = { NULL, NULL };
	struct box		 b;
	int			 i, n = 300;
	double			 t, first;

	if (box_unable() != NULL) {
		(void)printf("skipped: %s\n", box_unable());
		return 77;
	}
	t = usec();
	box_start(&b, 64 << 20);
	box_attach(&b);
	first = usec() - t;
	(void)printf("start until facts %.0f us; private %ld KiB, rss %ld "
	    "KiB\n", first, box_memory(b.pid, "Private_Dirty"),
	    box_memory(b.pid, "Rss"));
	for (i = 0; i < n; i++)
		v[i] = one(&b, true_argv, &r[i]);
	show("/bin/true: until running", r, n);
	show("/bin/true: until all is answered", v, n);
	for (i = 0; i < n; i++)
		v[i] = one(&b, echo_argv, &r[i]);
	show("/bin/echo", v, n);
	if (argc > 1) {
		own[0] = argv[1];
		for (i = 0; i < n; i++)
			v[i] = one(&b, own, &r[i]);
		show(argv[1], v, n);
	}
	(void)printf("after %d sessions: private %ld KiB, rss %ld KiB\n",
	    2 * n, box_memory(b.pid, "Private_Dirty"),
	    box_memory(b.pid, "Rss"));
	box_stop(&b);
	return 0;
}
