/*
 * exec: one command in a box, its output here as it comes, our input there.
 *
 * Theory of operation.  One request streams output (POST exec, and when that
 * connection breaks GET output?after=N&follow=1 from the last chunk that was
 * seen, so that nothing is lost or repeated).  Beside it at most one POST of
 * numbered input and at most one POST of a signal are under way.  Output
 * waits in one queue, in the order of its numbers; when more than QUEUE_HIGH
 * waits, the stream is paused, which holds the command back.  The first
 * SIGINT, SIGTERM or SIGHUP is passed on; the second ends this program and
 * leaves the command running.  A command is never started twice: the first
 * request has a key, with which it may be repeated where its answer was cut or
 * the server was not ready for it.
 */
#include <sys/stat.h>
#include <sys/types.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "workbox.h"
#include "xmalloc.h"

#define QUEUE_HIGH	(1024UL * 1024)	/* bytes: pause the stream */
#define QUEUE_LOW	(256UL * 1024)	/* bytes: go on */
#define INLINE_MAX	8192		/* bytes of input in the first call */
#define CHUNK_MAX	65536		/* bytes of one POST of input */
#define AGAIN_MS	200		/* before input is sent again */
#define FRAMES		"application/vnd.workbox.output"
#define ACCEPT		"Accept: " FRAMES ", application/x-ndjson;q=0.5"
#define FRAME_HEAD	16		/* bytes; workbox-api(7) */
#define FRAME_MOST	(LINE_MAX_BYTES / 2)	/* bytes behind it */

struct piece {
	struct piece	*next;			/* owned */
	int		 fd;
	size_t		 len, off;
	char		 bytes[];
};

struct exec {
	const char	*box;			/* borrowed */
	json_t		*body;			/* owned */
	char		 key[33];
	char		*sid;			/* owned; NULL: not known yet */
	struct req	*out, *in, *sig;	/* owned, NULL: none */
	struct lines	 lines;			/* or frames */
	json_t		*ended;			/* owned: the session */
	uint64_t	 after;			/* last chunk seen */
	struct piece	*first;			/* owned: the queue */
	struct piece	**last;			/* borrowed: its end */
	size_t		 queued;		/* bytes */
	size_t		 unit[3];		/* bytes per write, by fd */
	int		 paused;
	int64_t		 retry_at;		/* ms; 0: none */
	struct again	 away;
	/* input */
	int		 in_open;		/* the session takes input */
	int		 in_eof;		/* ours has ended */
	int64_t		 in_at;			/* ms: not before this */
	uint64_t	 in_off;
	size_t		 in_len;		/* in in_buf, not yet taken */
	char		 in_buf[CHUNK_MAX];
	/* signals */
	int		 sig_fd;		/* borrowed: signals_catch() */
	int		 sig_due;		/* to be passed on, or 0 */
	int		 sig_num;		/* under way */
	int64_t		 sig_at;		/* ms: not before this */
	struct again	 sig_away;
	int		 sig_seen;
	int		 rc;			/* -1: goes on */
};

/* ---- lines of output --------------------------------------------------- */

static int
b64_value(char c)
{
	static const char	set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char		*p = c != '\0' ? strchr(set, c) : NULL;

	return p == NULL ? -1 : (int)(p - set);
}

/* RFC 4648, section 4, padded.  The length, or -1. */
static ssize_t
b64_decode(const char *s, size_t len, char *ret)
{
	size_t	i, k, n = 0;
	int	v[4];

	if (len % 4 != 0)
		return -1;
	for (i = 0; i < len; i += 4) {
		for (k = 0; k < 4; k++) {
			v[k] = b64_value(s[i + k]);
			if (v[k] == -1 && (s[i + k] != '=' || k < 2 ||
			    i + 4 != len))
				return -1;
		}
		if (v[2] == -1 && v[3] != -1)
			return -1;
		ret[n++] = (char)(v[0] << 2 | v[1] >> 4);
		if (v[2] != -1)
			ret[n++] = (char)((v[1] & 15) << 4 | v[2] >> 2);
		if (v[3] != -1)
			ret[n++] = (char)((v[2] & 3) << 6 | v[3]);
	}
	return (ssize_t)n;
}

static enum line_kind
chunk(json_t *j, struct out_line *o)
{
	const json_t	*data = json_object_get(j, "data");
	const char	*stream = json_str(j, "stream");
	ssize_t		 n;

	o->seq = (uint64_t)json_integer_value(json_object_get(j, "seq"));
	if (strcmp(stream, "stdout") == 0)
		o->fd = STDOUT_FILENO;
	else if (strcmp(stream, "stderr") == 0)
		o->fd = STDERR_FILENO;
	else
		return LINE_BAD;
	if (!json_is_string(data))
		return LINE_BAD;
	o->bytes = json_string_value(data);
	o->len = json_string_length(data);
	if (strcmp(json_str(j, "encoding"), "base64") != 0)
		return LINE_CHUNK;
	o->buf = xmalloc(o->len + 1);
	if ((n = b64_decode(o->bytes, o->len, o->buf)) == -1)
		return LINE_BAD;
	o->bytes = o->buf;
	o->len = (size_t)n;
	return LINE_CHUNK;
}

enum line_kind
out_parse(const char *line, size_t len, struct out_line *o)
{
	json_t	*j;

	memset(o, 0, sizeof *o);
	j = o->json = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	if (j == NULL)
		o->kind = LINE_BAD;
	else if (json_is_integer(json_object_get(j, "seq")))
		o->kind = chunk(j, o);
	else if (json_is_object(json_object_get(j, "gap")))
		o->kind = LINE_GAP;
	else if (json_is_object(json_object_get(j, "end")))
		o->kind = LINE_ENDED;
	else if (json_is_object(json_object_get(j, "start")))
		o->kind = LINE_SESSION;
	else
		o->kind = LINE_OTHER;
	return o->kind;
}

void
out_free(struct out_line *o)
{
	json_decref(o->json);
	free(o->buf);
	memset(o, 0, sizeof *o);
}

int
out_gap(const json_t *line, uint64_t *after)
{
	const json_t	*gap = json_object_get(line, "gap");
	json_int_t	 first, last, bytes;

	first = json_integer_value(json_object_get(gap, "first"));
	last = json_integer_value(json_object_get(gap, "last"));
	bytes = json_integer_value(json_object_get(gap, "bytes"));
	if (last <= 0 || (uint64_t)last <= *after)
		return 0;
	note("%lld bytes of output were dropped: chunks %lld to %lld",
	    (long long)bytes, (long long)first, (long long)last);
	*after = (uint64_t)last;
	return 1;
}

int
session_code(const json_t *s)
{
	const json_t	*sig = json_object_get(s, "signal");
	const json_t	*code = json_object_get(s, "exitCode");
	const char	*reason = json_str(s, "reason");

	if (*reason != '\0')
		note("session %s: %s", json_str(s, "sessionId"), reason);
	if (json_is_integer(sig) && json_integer_value(sig) > 0)
		return EXIT_SIGNAL + (int)json_integer_value(sig);
	if (json_is_integer(code))
		return (int)json_integer_value(code);
	return problem_exit(reason);
}

void
left_running(const char *box, const char *sid, uint64_t after)
{
	char	from[40] = "";

	if (after != 0)
		(void)snprintf(from, sizeof from, " --after %llu",
		    (unsigned long long)after);
	note("left running: session %s of %s; workbox sandbox logs --follow%s "
	    "%s %s goes on with it", sid, box, from, box, sid);
}

/* ---- output ------------------------------------------------------------ */

static void
enqueue(struct exec *x, int fd, const char *bytes, size_t len)
{
	struct piece	*p;

	if (len == 0 || x->rc != -1)
		return;
	p = xmalloc(sizeof *p + len);
	p->fd = fd;
	p->len = len;
	p->off = 0;
	memcpy(p->bytes, bytes, len);
	p->next = NULL;
	*x->last = p;
	x->last = &p->next;
	x->queued += len;
}

static void
drop_first(struct exec *x)
{
	struct piece	*p = x->first;

	x->queued -= p->len - p->off;
	x->first = p->next;
	if (x->first == NULL)
		x->last = &x->first;
	free(p);
}

static void
drop_queue(struct exec *x)
{
	while (x->first != NULL)
		drop_first(x);
}

/* Its id becomes part of what a user is told to run. */
static int
on_start(struct exec *x, const json_t *start)
{
	const char	*sid = json_str(start, "sessionId");

	if (!args_ref_ok(sid)) {
		x->rc = fail("%s sent a line that is no output",
		    client_server());
		return -1;
	}
	free(x->sid);
	x->sid = xstrdup(sid);
	return 0;
}

/* Frees *o. */
static int
told(struct exec *x, struct out_line *o)
{
	int	rc = 0;

	switch (o->kind) {
	case LINE_SESSION:
		rc = on_start(x, json_object_get(o->json, "start"));
		break;
	case LINE_CHUNK:
		if (o->seq <= x->after)
			break;
		x->after = o->seq;
		x->away.failed = 0;
		enqueue(x, o->fd, o->bytes, o->len);
		break;
	case LINE_GAP:
		if (out_gap(o->json, &x->after))
			x->away.failed = 0;
		break;
	case LINE_ENDED:
		json_decref(x->ended);
		x->ended = json_incref(json_object_get(o->json, "end"));
		break;
	case LINE_BAD:
		x->rc = fail("%s sent a line that is no output",
		    client_server());
		rc = -1;
		break;
	case LINE_OTHER:
		break;
	}
	out_free(o);
	return rc;
}

static int
on_line(char *line, size_t len, void *arg)
{
	struct out_line	o;

	(void)out_parse(line, len, &o);
	return told(arg, &o);
}

static uint64_t
be(const char *p, size_t n)
{
	uint64_t	v = 0;

	while (n-- > 0)
		v = v << 8 | (uint8_t)*p++;
	return v;
}

/* One frame, whole. */
static int
on_frame(struct exec *x, const char *head, const char *data, size_t len)
{
	struct out_line	o;

	if (head[0] == 0) {
		(void)out_parse(data, len, &o);
		return told(x, &o);
	}
	memset(&o, 0, sizeof o);
	o.kind = head[0] == STDOUT_FILENO || head[0] == STDERR_FILENO ?
	    LINE_CHUNK : LINE_BAD;
	o.seq = be(head + 8, 8);
	o.fd = (unsigned char)head[0];
	o.bytes = data;
	o.len = len;
	return told(x, &o);
}

/* As lines_feed(): -1 also for a frame that is too long. */
static int
frames_feed(struct exec *x, const char *data, size_t n)
{
	struct lines	*l = &x->lines;
	size_t		 at = 0, len;
	int		 rc = 0;

	if (lines_add(l, data, n) == -1)
		return -1;
	while (rc == 0 && l->len - at >= FRAME_HEAD) {
		len = (size_t)be(l->buf + at + 4, 4);
		if (len > FRAME_MOST)
			return -1;
		if (l->len - at - FRAME_HEAD < len)
			break;
		rc = on_frame(x, l->buf + at, l->buf + at + FRAME_HEAD, len);
		at += FRAME_HEAD + len;
	}
	lines_cut(l, at);
	return rc;
}

static int
on_output(const char *data, size_t n, void *arg)
{
	struct exec	*x = arg;
	int		 frames, rc;

	if (x->queued > QUEUE_HIGH) {
		x->paused = 1;
		return 1;
	}
	frames = strcasecmp(req_type(x->out), FRAMES) == 0;
	rc = frames ? frames_feed(x, data, n) :
	    lines_feed(&x->lines, data, n, on_line, x);
	if (rc == -1 && x->rc == -1)
		x->rc = fail("%s sent a %s that is too long",
		    client_server(), frames ? "frame" : "line");
	return rc;
}

/* Our reader has gone: the command learns it as it would from a pipe. */
static void
reader_gone(struct exec *x, int fd)
{
	drop_queue(x);
	if (errno != EPIPE)
		x->rc = fail_errno("write standard %s",
		    fd == STDOUT_FILENO ? "output" : "error");
	else if (x->sig_due == 0 && x->sig == NULL) {
		x->sig_due = SIGPIPE;
		x->rc = EXIT_SIGNAL + SIGPIPE;
	}
}

/* Writes what the reader takes without making us wait. */
static void
drain(struct exec *x)
{
	struct piece	*p;
	struct pollfd	 pfd;
	ssize_t		 n;
	size_t		 len;

	while ((p = x->first) != NULL) {
		pfd.fd = p->fd;
		pfd.events = POLLOUT;
		if (poll(&pfd, 1, 0) <= 0)
			return;
		len = p->len - p->off;
		if (len > x->unit[p->fd])
			len = x->unit[p->fd];
		n = write(p->fd, p->bytes + p->off, len);
		if (n == -1 && (errno == EINTR || errno == EAGAIN))
			return;
		if (n == -1) {
			reader_gone(x, p->fd);
			return;
		}
		p->off += (size_t)n;
		x->queued -= (size_t)n;
		if (p->off == p->len)
			drop_first(x);
	}
}

/* A pipe that polls as writable takes PIPE_BUF; files take all. */
static size_t
write_unit(int fd)
{
	struct stat	st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 262144 :
	    PIPE_BUF;
}

/* ---- the stream -------------------------------------------------------- */

/* The command, at most once: again under the same key. */
static void
ask(struct exec *x)
{
	char	*path = client_path("/v1/sandboxes", x->box, "exec", NULL);

	client_query(&path, "stream", "1");
	x->out = req_new("POST", path);
	free(path);
	req_key(x->out, x->key);
	req_json(x->out, json_incref(x->body));
	req_header(x->out, ACCEPT);
	req_sink(x->out, on_output, x);
	again_start(&x->away, x->out);
	x->retry_at = 0;
}

struct req *
out_ask(const char *box, const char *sid, uint64_t after, int to_end)
{
	struct req	*r;
	char		*path, num[24];

	(void)snprintf(num, sizeof num, "%llu", (unsigned long long)after);
	path = client_path("/v1/sandboxes", box, "sessions", sid, "output",
	    NULL);
	client_query(&path, "after", num);
	if (to_end)
		client_query(&path, "follow", "1");
	r = req_new("GET", path);
	free(path);
	return r;
}

static void
follow(struct exec *x)
{
	x->out = out_ask(x->box, x->sid, x->after, 1);
	req_header(x->out, ACCEPT);
	req_sink(x->out, on_output, x);
	again_start(&x->away, x->out);
	x->retry_at = 0;
}

/* The stream has ended, whole or not, without the session's end. */
static void
stream_broke(struct exec *x)
{
	int	ms = again_delay(&x->away, x->out);

	lines_free(&x->lines);
	if (ms == -1) {
		x->rc = req_ok(x->out) ? fail("%s ended the answer early",
		    client_server()) : req_fail(x->out);
		if (x->sid != NULL)
			left_running(x->box, x->sid, 0);
	}
	req_free(x->out);
	x->out = NULL;
	if (ms != -1)
		x->retry_at = again_now() + ms;
}

/* ---- input ------------------------------------------------------------- */

static void
send_input(struct exec *x)
{
	char	*path, num[24];

	(void)snprintf(num, sizeof num, "%llu", (unsigned long long)x->in_off);
	path = client_path("/v1/sandboxes", x->box, "sessions", x->sid,
	    "stdin", NULL);
	client_query(&path, "offset", num);
	if (x->in_eof)
		client_query(&path, "eof", "1");
	x->in_at = 0;
	x->in = req_new("POST", path);
	free(path);
	req_bytes(x->in, x->in_buf, x->in_len);
	req_start(x->in);
}

/* Drops what the session has already: an answer was lost. */
static int
input_at(struct exec *x, uint64_t expected)
{
	size_t	n;

	if (expected <= x->in_off || expected > x->in_off + x->in_len)
		return -1;
	n = (size_t)(expected - x->in_off);
	x->in_len -= n;
	memmove(x->in_buf, x->in_buf + n, x->in_len);
	x->in_off = expected;
	return 0;
}

static void
input_done(struct exec *x)
{
	struct req	*r = x->in;
	json_t		*j = req_answer(r), *at;

	x->in = NULL;
	at = json_object_get(j, "expected");
	if (req_ok(r)) {
		x->in_off += x->in_len;
		x->in_len = 0;
		x->in_open = !x->in_eof;
	} else if (req_status(r) == 409 && json_is_integer(at) &&
	    input_at(x, (uint64_t)json_integer_value(at)) == 0)
		/* The same bytes again; an end that was taken is ENDED. */
		;
	else if (!req_retry(r)) {
		/* 409 ended: the command reads no more; it is no fault. */
		if (strcmp(json_str(j, "code"), "ended") != 0)
			(void)req_fail(r);
		x->in_open = 0;
		x->in_len = 0;
	} else
		x->in_at = again_now() + AGAIN_MS;
	json_decref(j);
	req_free(r);
}

static void
read_input(struct exec *x)
{
	ssize_t	n = read(STDIN_FILENO, x->in_buf, sizeof x->in_buf);

	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == -1)
		(void)fail_errno("read standard input");
	if (n <= 0)
		x->in_eof = 1;
	else
		x->in_len = (size_t)n;
}

/*
 * What is there before the command starts goes with the request, all of it
 * when it is short and text.
 */
static void
first_input(struct exec *x, json_t *body)
{
	struct pollfd	 pfd = { STDIN_FILENO, POLLIN, 0 };
	ssize_t		 n;

	while (x->in_len < INLINE_MAX && !x->in_eof) {
		if (poll(&pfd, 1, 0) <= 0)
			break;
		n = read(STDIN_FILENO, x->in_buf + x->in_len,
		    INLINE_MAX - x->in_len);
		if (n == -1 && (errno == EINTR || errno == EAGAIN))
			break;
		if (n <= 0)
			x->in_eof = 1;
		else
			x->in_len += (size_t)n;
	}
	x->in_open = !x->in_eof || x->in_len > 0;
	if (x->in_eof && x->in_len > 0 && memchr(x->in_buf, 0, x->in_len) ==
	    NULL && json_object_set_new(body, "stdin",
	    json_stringn(x->in_buf, x->in_len)) == 0) {
		x->in_open = 0;
		x->in_len = 0;
	}
	if (x->in_open)
		json_object_set_new(body, "stdinOpen", json_true());
}

/* ---- signals ----------------------------------------------------------- */

static void
take_signals(struct exec *x)
{
	int	num;

	while ((num = signals_take()) != 0) {
		if (x->sig_seen++ == 0) {
			x->sig_due = num;
			continue;
		}
		x->rc = EXIT_SIGNAL + num;
		if (x->sid != NULL)
			left_running(x->box, x->sid, 0);
		else
			note("left running in %s: its session is not known "
			    "yet", x->box);
	}
}

static void
send_signal(struct exec *x)
{
	char	*path = client_path("/v1/sandboxes", x->box, "sessions",
	    x->sid, "signal", NULL);

	x->sig = req_new("POST", path);
	free(path);
	req_json(x->sig, json_pack("{s:s}", "signal",
	    text_signal_name(x->sig_due)));
	again_start(&x->sig_away, x->sig);
	x->sig_num = x->sig_due;
	x->sig_due = 0;
	x->sig_at = 0;
}

static void
signal_done(struct exec *x)
{
	int	ms = -1, gone = x->sig_num == SIGPIPE;

	/* where the answer was cut, twice is less harm than never */
	x->sig_away.met = 1;
	/* nobody reads us any more, and a pipeline waits for us */
	if (req_retry(x->sig) && !gone)
		ms = again_delay(&x->sig_away, x->sig);
	else
		memset(&x->sig_away, 0, sizeof x->sig_away);
	if (ms != -1) {
		x->sig_at = again_now() + ms;
		if (x->sig_due == 0)
			x->sig_due = x->sig_num;
	} else if (!req_ok(x->sig) && req_status(x->sig) != 409) {
		/* A command that has just ended needs none. */
		(void)req_fail(x->sig);
		if (gone)
			left_running(x->box, x->sid, 0);
	}
	req_free(x->sig);
	x->sig = NULL;
}

/* ---- the loop ---------------------------------------------------------- */

/* Starts what is due. */
static void
start_due(struct exec *x)
{
	if (x->paused && x->queued < QUEUE_LOW && x->out != NULL) {
		x->paused = 0;
		req_resume(x->out);
	}
	if (x->retry_at != 0 && again_now() >= x->retry_at) {
		if (x->sid == NULL)
			ask(x);
		else
			follow(x);
	}
	if (x->sid == NULL)
		return;
	if (x->sig_due != 0 && x->sig == NULL && again_now() >= x->sig_at)
		send_signal(x);
	if (x->in == NULL && x->in_open && (x->in_len > 0 || x->in_eof) &&
	    again_now() >= x->in_at)
		send_input(x);
}

/* Milliseconds from now to at, at most ms. */
static int
until(int64_t at, int ms)
{
	int64_t	left = at - again_now();

	return left < 0 ? 0 : left < ms ? (int)left : ms;
}

static void
wait_step(struct exec *x)
{
	struct curl_waitfd	 w[3];
	struct pollfd		 in = { STDIN_FILENO, POLLIN, 0 };
	unsigned int		 n = 0;
	int			 reads, ms = 60000;

	memset(w, 0, sizeof w);
	w[n].fd = x->sig_fd;
	w[n++].events = CURL_WAIT_POLLIN;
	reads = x->in_open && !x->in_eof && x->in == NULL && x->in_len == 0 &&
	    x->sid != NULL;
	if (reads) {
		w[n].fd = STDIN_FILENO;
		w[n++].events = CURL_WAIT_POLLIN;
	}
	if (x->first != NULL) {
		w[n].fd = x->first->fd;
		w[n++].events = CURL_WAIT_POLLOUT;
	}
	if (x->retry_at != 0)
		ms = until(x->retry_at, ms);
	if (x->in == NULL && x->in_at != 0)
		ms = until(x->in_at, ms);
	if (x->sig_due != 0 && x->sig == NULL && x->sig_at != 0)
		ms = until(x->sig_at, ms);
	multi_step(w, n, again_ms(&x->away, ms));
	/* Asked again: curl does not tell that the other end hung up. */
	if (reads && poll(&in, 1, 0) > 0)
		read_input(x);
}

static void
step(struct exec *x)
{
	start_due(x);
	drain(x);	/* what resuming has delivered */
	wait_step(x);
	take_signals(x);
	drain(x);
	if (x->away.since != 0 && x->out != NULL &&
	    req_status(x->out) / 100 == 2)
		again_back(&x->away);
	if (x->sig != NULL && req_done(x->sig))
		signal_done(x);
	if (x->in != NULL && req_done(x->in))
		input_done(x);
	if (x->out != NULL && req_done(x->out) && x->ended == NULL &&
	    x->rc == -1)
		stream_broke(x);
}

/* After the verdict: what was read is still written, a signal still sent. */
static int
unfinished(const struct exec *x)
{
	if (x->sig_seen > 1)
		return 0;
	if (x->rc == EXIT_SIGNAL + SIGPIPE)
		return x->sid != NULL && (x->sig_due != 0 || x->sig != NULL);
	if (x->rc != -1)
		return 0;
	return x->ended == NULL || x->first != NULL;
}

int
exec_run(const char *box, json_t *body, int use_stdin)
{
	static struct exec	 x;

	memset(&x, 0, sizeof x);
	x.box = box;
	x.rc = -1;
	x.unit[STDOUT_FILENO] = write_unit(STDOUT_FILENO);
	x.unit[STDERR_FILENO] = write_unit(STDERR_FILENO);
	x.last = &x.first;
	x.sig_fd = signals_catch();
	if (use_stdin)
		first_input(&x, body);
	x.body = body;
	key_new(x.key);
	ask(&x);
	while (unfinished(&x))
		step(&x);
	if (x.rc == -1)
		x.rc = session_code(x.ended);
	req_free(x.out);
	req_free(x.in);
	req_free(x.sig);
	drop_queue(&x);
	lines_free(&x.lines);
	json_decref(x.ended);
	json_decref(x.body);
	free(x.sid);
	return x.rc;
}
