/*
 * input.c: numbered input to a session.
 *
 * Bytes are taken in order, each once: a request says how many were taken
 * before it.  What does not fit into the pipe waits here, bounded per session
 * and in all, and the request is answered when its last byte is in the pipe.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

static size_t	held;		/* bytes waiting, all sessions */

/* Drops n bytes from the front of what waits. */
static void
input_taken(struct input *in, size_t n)
{
	in->len -= n;
	held -= n;
	if (in->len > 0) {
		memmove(in->buf, in->buf + n, in->len);
		return;
	}
	free(in->buf);
	in->buf = NULL;
}

static int
input_keep(struct input *in, const uint8_t *data, size_t len)
{
	uint8_t	*p;

	if ((p = realloc(in->buf, in->len + len)) == NULL)
		return -1;
	memcpy(p + in->len, data, len);
	in->buf = p;
	in->len += len;
	held += len;
	return 0;
}

/* Answers the requests whose bytes are all in the pipe. */
static void
input_answer(struct session *s)
{
	struct msg_session_stdin_at	 at = { 0 };
	struct waiter			*w, *next;

	for (w = TAILQ_FIRST(&s->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, in_session);
		if (w->kind != W_STDIN)
			continue;
		if (w->at <= s->in.taken - s->in.len) {
			at.offset = w->at;
			peer_send(w->peer, MSG_SESSION_STDIN_AT, w->rid, &at);
		} else if (s->in.fd == -1)
			peer_error(w->peer, w->rid, CODE_ENDED,
			    "input is closed");
		else
			continue;
		waiter_free(w);
	}
}

void
input_close(struct session *s)
{
	loop_del(&s->in.w);
	fd_close(&s->in.fd);
	input_answer(s);
	if (s->in.len > 0)
		input_taken(&s->in, s->in.len);
}

/* As much as the pipe takes; -1: nobody reads it any more. */
static ssize_t
input_write(struct input *in, const uint8_t *data, size_t len)
{
	ssize_t	n;

	if (len == 0)
		return 0;
	do
		n = write(in->fd, data, len);
	while (n == -1 && errno == EINTR);
	return n == -1 && errno == EAGAIN ? 0 : n;
}

static void
on_writable(void *arg, short events)
{
	struct session	*s = arg;
	struct input	*in = &s->in;
	ssize_t		 n;

	(void)events;
	if ((n = input_write(in, in->buf, in->len)) == -1) {
		input_close(s);
		return;
	}
	if (n > 0)
		input_taken(in, (size_t)n);
	if (in->len == 0) {
		loop_del(&in->w);
		if (in->eof) {
			input_close(s);
			return;
		}
	}
	input_answer(s);
}

/* Takes bytes: into the pipe, the rest aside.  0, or a code. */
static unsigned int
input_take(struct session *s, struct wire_bin b, int eof)
{
	struct input	*in = &s->in;
	ssize_t		 n = 0;

	if (in->len + b.len > INPUT_MAX || held + b.len > INPUT_TOTAL)
		return CODE_BUSY;
	if (in->len == 0 && (n = input_write(in, b.data, b.len)) == -1) {
		input_close(s);
		return CODE_ENDED;
	}
	if (b.len > (size_t)n &&
	    input_keep(in, b.data + n, b.len - (size_t)n) == -1) {
		/* what the pipe has taken stays taken: the next offset says */
		in->taken += (uint64_t)n;
		return CODE_BUSY;
	}
	in->taken += b.len;
	in->eof = eof;
	if (in->len > 0 && in->w.fd == -1 && loop_add(&in->w, in->fd, POLLOUT,
	    on_writable, s) == -1) {
		input_close(s);
		return CODE_INTERNAL;
	}
	if (in->len == 0 && eof)
		input_close(s);
	return 0;
}

int
input_init(struct session *s, int fd, struct wire_bin first, int open)
{
	s->in.fd = fd;
	s->in.w.fd = -1;
	if (fd == -1)
		return 0;
	return input_take(s, first, !open) == 0 ? 0 : -1;
}

void
on_session_stdin(struct peer *p, const struct msg *m)
{
	const struct msg_session_stdin	*b = &m->body.session_stdin;
	struct session			*s;
	struct waiter			*w;
	unsigned int			 code;

	if ((s = session_get(p, m->rid, b->id)) == NULL)
		return;
	if (b->offset != s->in.taken) {
		peer_error(p, m->rid, CODE_BAD_OFFSET, "%" PRIu64,
		    s->in.taken);
		return;
	}
	if (s->in.fd == -1 || s->in.eof) {
		peer_error(p, m->rid, CODE_ENDED, "input is closed");
		return;
	}
	if ((w = waiter_new(p, s, W_STDIN, m->rid)) == NULL)
		return;
	w->at = b->offset + b->bytes.len;
	if ((code = input_take(s, b->bytes, (int)b->eof)) == 0) {
		input_answer(s);
		return;
	}
	if (s->in.fd == -1)
		return;		/* input_close() has answered */
	waiter_free(w);
	peer_error(p, m->rid, code, "too much input waits; %" PRIu64
	    " bytes were taken", s->in.taken);
}
