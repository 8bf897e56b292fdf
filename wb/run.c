/*
 * run.c: wb run: a session of its own, with our input and output.
 *
 * The command runs under pid 1, not under us: it has a cgroup, a number and a
 * place in the list of sessions, and outlives us.  We are its attached reader:
 * it is held back while we are, and nothing of its output is lost.
 *
 * A first SIGINT, SIGTERM or SIGHUP is passed on; at a second one we go, and
 * the command stays.  When our stdout is closed, the command gets the SIGPIPE
 * that it would have got.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wb.h"
#include "xmalloc.h"

#define AHEAD		4	/* reads that are out at one time */
#define PIECE		32768

struct run {
	struct chan	 ch;
	char		 id[27];
	uint64_t	 got;		/* last chunk written out */
	uint64_t	 asked;		/* highest `after' asked with */
	int		 eof;		/* output is whole */
	int		 ended;		/* code is set */
	int		 code;
	uint32_t	 in_rid;	/* input on its way; 0: none */
	uint64_t	 in_offset;
	int		 in_open;
	uint32_t	 sig_rid;
	int		 sig_sent;
	int		 out_closed;
};

static volatile sig_atomic_t	 caught;	/* last signal, 0: none */
static int			 wake[2] = { -1, -1 };

static void
on_signal(int sig)
{
	int	e = errno;

	caught = sig;
	(void)!write(wake[1], "", 1);	/* full: it wakes all the same */
	errno = e;
}

/* No SA_RESTART: a write that blocks is to come back. */
static void
catch_signals(void)
{
	static const int	sigs[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction	sa = { .sa_handler = on_signal };
	struct sigaction	ign = { .sa_handler = SIG_IGN }, old;
	size_t			i;

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) == -1)
		exit(wb_fail("pipe: %s", strerror(errno)));
	(void)sigaction(SIGPIPE, &ign, NULL);	/* cannot fail */
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		if (sigaction(sigs[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)	/* nohup */
			(void)sigaction(sigs[i], &sa, NULL);
}

static int
ask(struct run *r, unsigned int type, const void *body, uint32_t *ret_rid)
{
	if (chan_ask(&r->ch, type, body, -1, ret_rid) == -1)
		return wb_fail("%s: %s", proto_name(type),
		    errno == EINVAL ? r->ch.why : strerror(errno));
	return 0;
}

static int
ask_read(struct run *r, uint64_t after)
{
	struct msg_session_read	b = { .after = after, .wait = 1,
	    .attached = 1 };

	memcpy(b.id, r->id, sizeof(b.id));
	if (after > r->asked)
		r->asked = after;
	return ask(r, MSG_SESSION_READ, &b, NULL);
}

static int
pass_signal(struct run *r, int sig)
{
	struct msg_session_signal	b = { .signal = (uint64_t)sig };

	memcpy(b.id, r->id, sizeof(b.id));
	return ask(r, MSG_SESSION_SIGNAL, &b, &r->sig_rid);
}

static int
take_signal(struct run *r)
{
	char	buf[64];
	int	sig = caught;

	while (read(wake[0], buf, sizeof(buf)) > 0)
		continue;
	caught = 0;
	if (sig == 0)
		return 0;
	if (!r->sig_sent) {
		r->sig_sent = 1;
		return pass_signal(r, sig);
	}
	(void)wb_fail("session %s goes on", r->id);
	return EXIT_SIGNAL + sig;
}

/* All of it, whatever it takes; a second signal ends that too. */
static int
write_out(struct run *r, int fd, struct wire_bin b)
{
	struct pollfd	pfd = { .fd = fd, .events = POLLOUT };
	size_t		off = 0;
	ssize_t		n;
	int		e;

	while (off < b.len && !r->out_closed) {
		if ((n = write(fd, b.data + off, b.len - off)) != -1)
			off += (size_t)n;
		else if (errno == EAGAIN)
			(void)poll(&pfd, 1, -1);	/* or a signal */
		else if (errno != EINTR) {
			r->out_closed = 1;
			return pass_signal(r, SIGPIPE);
		}
		if (caught != 0 && (e = take_signal(r)) != 0)
			return e;
	}
	return 0;
}

static int
on_chunk(struct run *r, const struct msg_session_chunk *b)
{
	int	e;

	if (b->gap_last > r->got)
		wb_gap(b);
	if (b->eof)
		r->eof = 1;
	if (b->seq > r->got) {
		r->got = b->seq;
		e = write_out(r, b->stream == STREAM_STDERR ? STDERR_FILENO :
		    STDOUT_FILENO, b->bytes);
		if (e != 0)
			return e;
	}
	if (r->eof)
		return 0;
	return ask_read(r, r->asked < r->got ? r->got : r->asked + 1);
}

static int
on_message(struct run *r, const struct msg *m)
{
	switch (m->row->type) {
	case MSG_SESSION_CHUNK:
		return on_chunk(r, &m->body.session_chunk);
	case MSG_SESSION_EXIT:
		r->ended = 1;
		r->code = wb_ended(&m->body.session_exit);
		return 0;
	case MSG_SESSION_STDIN_AT:
		r->in_rid = 0;
		r->in_offset = m->body.session_stdin_at.offset;
		return 0;
	case MSG_OK:
		return 0;		/* the signal's */
	case MSG_ERROR:
		if (m->rid == r->sig_rid)
			return 0;	/* it ended first */
		if (m->rid == r->in_rid) {
			r->in_rid = 0;
			r->in_open = 0;	/* it reads no more */
			return 0;
		}
		return wb_refused(&m->body.error);
	default:
		return wb_fail("runner: %s was not asked for", m->row->name);
	}
}

static int
send_input(struct run *r)
{
	static uint8_t			buf[PIECE];
	struct msg_session_stdin	b = { .offset = r->in_offset };
	ssize_t				n;

	if ((n = read(STDIN_FILENO, buf, sizeof(buf))) == -1) {
		if (errno == EINTR || errno == EAGAIN)
			return 0;
		n = 0;			/* no terminal any more, or so */
	}
	memcpy(b.id, r->id, sizeof(b.id));
	b.bytes.data = buf;
	b.bytes.len = (size_t)n;
	b.eof = n == 0;
	if (n == 0)
		r->in_open = 0;
	return ask(r, MSG_SESSION_STDIN, &b, &r->in_rid);
}

/* What has come, then what may go. */
static int
turn(struct run *r)
{
	struct pollfd	pfd[3] = {
		{ .fd = r->ch.fd, .events = POLLIN },
		{ .fd = wake[0], .events = POLLIN },
		{ .fd = r->in_open && r->in_rid == 0 ? STDIN_FILENO : -1,
		    .events = POLLIN },
	};
	struct msg	m;
	int		e, n;

	if (chan_pending(&r->ch))
		pfd[0].events |= POLLOUT;
	if (poll(pfd, 3, -1) == -1 && errno != EINTR)
		return wb_fail("poll: %s", strerror(errno));
	if ((e = take_signal(r)) != 0)
		return e;
	if (chan_flush(&r->ch) == -1)
		return wb_fail("runner: %s", strerror(errno));
	while ((n = chan_recv(&r->ch, &m)) == 1)
		if ((e = on_message(r, &m)) != 0)
			return e;
	if (n == -1)
		return wb_fail("runner: %s", errno == EBADMSG ? r->ch.why :
		    strerror(errno));
	return pfd[2].revents != 0 ? send_input(r) : 0;
}

static int
relay(struct run *r)
{
	struct msg_session_wait	w = { 0 };
	uint64_t		i;
	int			e = 0;

	memcpy(w.id, r->id, sizeof(w.id));
	e = ask(r, MSG_SESSION_WAIT, &w, NULL);
	for (i = 0; i < AHEAD && e == 0; i++)
		e = ask_read(r, i);
	while (e == 0 && !(r->eof && r->ended))
		e = turn(r);
	return e != 0 ? e : r->code;
}

/* *ret_v: owned by the caller, borrowed by the list. */
static struct wire_list
list_of(char **v, struct wire_bin **ret_v)
{
	struct wire_list	 l = { 0 };
	struct wire_bin		*b;
	size_t			 n = 0;

	while (v[n] != NULL)
		n++;
	*ret_v = b = xcalloc(n, sizeof(*b));
	for (l.n = 0; l.n < n; l.n++)
		b[l.n] = wire_cstr(v[l.n]);
	l.v = b;
	return l;
}

static int
run(int argc, char **argv)
{
	static const struct option	longs[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "detach", no_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 }
	};
	struct msg_wb_run		b = { .stdin_open = 1, .attached = 1 };
	struct run			r = { .in_open = 1 };
	auto_free struct wire_bin	*argv_v = NULL, *env_v = NULL;
	struct msg			m;
	int				c, e;

	while ((c = wb_option(&cmd_run, argc, argv, "+:d", longs)) != -1)
		if (c == 'd')
			b.stdin_open = b.attached = 0;
		else if (c != 'n')
			return EXIT_WB;
		else if (!wire_charset_ok(CS_NAME, optarg, strlen(optarg)) ||
		    str_copy(b.name, optarg, sizeof(b.name)) == -1)
			return wb_usage(&cmd_run, "--name: expected at most "
			    "63 of a-z 0-9 . _ -, not \"%s\"", optarg);
	if (optind == argc)
		return wb_usage(&cmd_run, "expected a command");
	if (getcwd(b.cwd, sizeof(b.cwd)) == NULL)
		return wb_fail("current directory: %s", strerror(errno));
	b.argv = list_of(argv + optind, &argv_v);
	b.env = list_of(environ, &env_v);
	if (b.attached)
		catch_signals();
	wb_connect(&r.ch);
	e = wb_call(&r.ch, MSG_WB_RUN, &b, MSG_SESSION_RUNNING, &m);
	if (e != 0)
		return e;
	memcpy(r.id, m.body.session_running.id, sizeof(r.id));
	if (b.attached)
		return relay(&r);
	return puts(r.id) != EOF && fflush(stdout) == 0 ? 0 :
	    wb_fail("session %s runs; stdout: write error", r.id);
}

const struct command	cmd_run = {
	"run", "[--name NAME] [-d | --detach] [--] COMMAND [ARGUMENT ...]",
	"run a command as a session of its own; its exit code is ours\n"
	"\t--detach: print the session's id, and leave it running", run
};
