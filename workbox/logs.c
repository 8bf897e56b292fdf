/*
 * logs: sandbox logs and wait, and how run follows what it has started.
 *
 * A connection that breaks is made again behind the last chunk that was
 * written out, so that no byte is lost or comes twice.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

static int	wait_main(const struct args *);
static int	logs_main(const struct args *);

static const struct opt logs_opts[] = {
	{ "after", "NUMBER", "only what follows this chunk", 0, 0 },
	{ "follow", NULL, "go on until the output ends", 'f', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_logs = {
	.name = "sandbox logs",
	.operands = "SANDBOX SESSION",
	.doc = "Print the output of a session",
	.opts = logs_opts,
	.flags = CMD_CLIENT,
	.min = 2, .max = 2,
	.run = logs_main
};

static const struct opt wait_opts[] = {
	{ "timeout", "SECONDS", "wait no longer, and exit with 124 then", 0,
	    0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_wait = {
	.name = "sandbox wait",
	.operands = "SANDBOX SESSION",
	.doc = "Wait for a session's end, print it as JSON and exit with its "
	    "code",
	.opts = wait_opts,
	.flags = CMD_CLIENT,
	.min = 2, .max = 2,
	.run = wait_main
};

#define WAIT_SECONDS	60		/* of one request */
#define WAIT_MOST	31536000	/* a year, as a time limit's */
#define SLACK_MS	5000		/* for the answer at the deadline */

/* ---- wait -------------------------------------------------------------- */

static int
is_ended(const json_t *s)
{
	return strcmp(json_str(s, "state"), "ended") == 0;
}

/*
 * For how long the next request may wait: not long when the server was away,
 * since only its answer tells that it is back.
 */
static uint64_t
wait_seconds(const struct again *w, int64_t until)
{
	int64_t	left = until == 0 ? WAIT_SECONDS :
		    (until - again_now() + 999) / 1000;
	int64_t	most = w->since != 0 ? 1 : WAIT_SECONDS;

	return left < 0 ? 0 : (uint64_t)(left < most ? left : most);
}

/* One request: 0 with *ret (a new reference), 1: once more; else a code. */
static int
wait_once(const struct args *a, struct again *w, int64_t until, json_t **ret)
{
	char		*path = client_path("/v1/sandboxes", a->operand[0],
			    "sessions", a->operand[1], NULL), num[24];
	struct req	*r;
	int		 rc = 0;

	(void)snprintf(num, sizeof num, "%llu",
	    (unsigned long long)wait_seconds(w, until));
	client_query(&path, "wait", num);
	r = req_new("GET", path);
	free(path);
	if (again_run(w, r) == 0) {
		w->failed = 0;
		if ((*ret = req_answer(r)) == NULL)
			rc = fail("%s answered without JSON",
			    client_server());
	} else if (again_over(w) || again_pause(w, r))
		rc = 1;
	else if (!again_over(w))
		rc = req_fail(r);
	req_free(r);
	return rc;
}

static int
wait_main(const struct args *a)
{
	const char	*limit = args_get(a, "timeout");
	struct again	 w;
	json_t		*s = NULL;
	int64_t		 until = 0;
	uint64_t	 v;
	int		 rc, over = 0;

	memset(&w, 0, sizeof w);
	if (limit != NULL && text_u64(limit, 0, WAIT_MOST, &v) == -1)
		return fail("--timeout: expected seconds from 0 to %d, not "
		    "\"%s\"", WAIT_MOST, limit);
	if ((rc = client_init(a)) != 0)
		return rc;
	if (limit != NULL) {
		until = again_now() + (int64_t)v * 1000;
		w.deadline = until + SLACK_MS;
	}
	while (rc <= 1 && !is_ended(s) && !over) {
		json_decref(s);
		s = NULL;
		rc = wait_once(a, &w, until, &s);
		over = until != 0 && again_now() >= until;
	}
	if (rc <= 1 && !is_ended(s)) {
		note("%s %s: %s after %s s", a->operand[0], a->operand[1],
		    s != NULL ? json_str(s, "state") : "no answer", limit);
		rc = EXIT_LATE;
	} else if (rc == 0 && (rc = json_print(s)) == 0)
		rc = session_code(s);
	json_decref(s);
	return rc;
}

/* ---- logs -------------------------------------------------------------- */

struct logs {
	const char	*box, *sid;		/* borrowed */
	struct lines	 lines;
	uint64_t	 after;
	int		 follow;
	json_t		*end;			/* owned: the session */
	int		 moved;			/* since the last connection */
	int		 rc;
	struct again	 away;
};

/* All of it; -1: it could not be, or a signal came. */
static int
write_all(struct logs *l, int fd, const char *p, size_t len)
{
	struct pollfd	pfd = { fd, POLLOUT, 0 };
	ssize_t		n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n == -1 && errno == EAGAIN)
			(void)poll(&pfd, 1, -1);	/* or a signal */
		else if (n == -1 && errno != EINTR) {
			l->rc = fail_errno("write standard %s",
			    fd == STDOUT_FILENO ? "output" : "error");
			return -1;
		}
		if (l->away.sig == 0)
			l->away.sig = signals_take();
		if (l->away.sig != 0)
			return -1;
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int
log_line(char *line, size_t len, void *arg)
{
	struct logs	*l = arg;
	struct out_line	 o;
	int		 rc = 0;

	switch (out_parse(line, len, &o)) {
	case LINE_CHUNK:
		if (o.seq <= l->after)
			break;
		l->moved = 1;
		if ((rc = write_all(l, o.fd, o.bytes, o.len)) == 0)
			l->after = o.seq;
		break;
	case LINE_GAP:
		if (out_gap(o.json, &l->after))
			l->moved = 1;
		break;
	case LINE_ENDED:
		l->end = json_incref(json_object_get(o.json, "end"));
		break;
	case LINE_BAD:
		l->rc = fail("%s sent a line that is no output",
		    client_server());
		rc = -1;
		break;
	case LINE_SESSION:
	case LINE_OTHER:
		break;
	}
	out_free(&o);
	return rc;
}

static int
log_bytes(const char *data, size_t n, void *arg)
{
	struct logs	*l = arg;
	int		 rc = lines_feed(&l->lines, data, n, log_line, l);

	if (rc == -1 && l->rc == 0 && l->away.sig == 0)
		l->rc = fail("%s sent a line that is too long",
		    client_server());
	return rc;
}

static struct req *
logs_ask(struct logs *l)
{
	struct req	*r = out_ask(l->box, l->sid, l->after, l->follow);

	req_sink(r, log_bytes, l);
	l->moved = 0;
	return r;
}

/* One connection.  0: all is read, or rc or a signal says why not. */
static int
logs_once(struct logs *l)
{
	struct req	*r = logs_ask(l);
	int		 got = again_run(&l->away, r), more = 0;

	if (l->moved)
		l->away.failed = 0;
	if (l->rc == 0 && l->away.sig == 0 && l->end == NULL &&
	    (got == -1 || l->follow)) {
		more = l->follow && again_pause(&l->away, r);
		if (!more && l->away.sig == 0)
			l->rc = req_ok(r) ? fail("%s keeps ending the answer",
			    client_server()) : req_fail(r);
	}
	req_free(r);
	lines_free(&l->lines);
	return more;
}

int
logs_run(const char *box, const char *sid)
{
	static struct logs	 l;
	int			 rc;

	l.box = box;
	l.sid = sid;
	l.follow = 1;
	l.away.met = 1;
	(void)signals_catch();
	while (logs_once(&l))
		;
	if (l.end != NULL && l.rc == 0 && l.away.sig == 0)
		rc = session_code(l.end);
	else {
		left_running(box, sid, l.after);
		rc = l.away.sig != 0 ? EXIT_SIGNAL + l.away.sig : l.rc;
	}
	json_decref(l.end);
	return rc;
}

static int
logs_main(const struct args *a)
{
	static struct logs	 l;
	const char		*s = args_get(a, "after");
	int			 rc;

	if (s != NULL && text_u64(s, 0, INT64_MAX, &l.after) == -1)
		return fail("--after: expected a number, not \"%s\"", s);
	if ((rc = client_init(a)) != 0)
		return rc;
	l.box = a->operand[0];
	l.sid = a->operand[1];
	l.follow = args_get(a, "follow") != NULL;
	while (logs_once(&l))
		;
	json_decref(l.end);
	return l.rc;
}
