/*
 * pump.c: bytes from one socket to another, with no memory of our own.
 *
 * Bytes move by splice(2) through a pipe that is lent for as long as bytes
 * are in it.  Pipes are few, since a user may have 16,384 pages of them in
 * all before new ones get small.  When none is left, or who it is for has
 * enough of them, bytes are copied: looked at where they are, sent as far as
 * they can be, and only then taken.  So what a slow reader has not taken waits
 * in the sockets' own buffers, which the kernel bounds and charges, and a box
 * that stalls thousands of connections costs no more here than their sockets.
 *
 * Must never: take bytes that cannot be handed on at once, but for those in a
 * pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "proxyd.h"
#include "xmalloc.h"

#define PIPES		64
#define PIPE_BYTES	(256 * 1024)
#define LENT_MOST	8	/* to one box */

struct pipe {
	SLIST_ENTRY(pipe)	 next;
	int			 fd[2];		/* owned */
};

static SLIST_HEAD(, pipe)	free_pipes = SLIST_HEAD_INITIALIZER(free_pipes);
static unsigned int		npipes;		/* made */
static uint8_t			scratch[65536];

/* ---- pipes --------------------------------------------------------- */

static struct pipe *
pipe_lend(unsigned int *lent)
{
	struct pipe	*p = SLIST_FIRST(&free_pipes);

	if (*lent >= LENT_MOST)
		return NULL;
	if (p != NULL)
		SLIST_REMOVE_HEAD(&free_pipes, next);
	else {
		if (npipes == PIPES)
			return NULL;
		p = xcalloc(1, sizeof(*p));
		if (pipe2(p->fd, O_NONBLOCK | O_CLOEXEC) == -1) {
			free(p);	/* then bytes are copied */
			return NULL;
		}
		/* one that stays small is as right, if slower */
		(void)fcntl(p->fd[1], F_SETPIPE_SZ, PIPE_BYTES);
		npipes++;
	}
	(*lent)++;
	return p;
}

/* Empty, or closed with what is in it: nobody's bytes get to somebody else. */
void
half_end(struct half *h, unsigned int *lent)
{
	struct pipe	*p = steal_ptr(&h->pipe);

	if (p == NULL)
		return;
	(*lent)--;
	if (h->in_pipe == 0) {
		SLIST_INSERT_HEAD(&free_pipes, p, next);
		return;
	}
	h->in_pipe = 0;
	fd_close(&p->fd[0]);
	fd_close(&p->fd[1]);
	free(p);
	npipes--;
}

/* ---- moving -------------------------------------------------------- */

static int
is_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Once: the end of `from' becomes that of what `to' is sent. */
static enum moved
half_eof(struct half *h)
{
	h->eof = 1;
	if (shutdown(h->to, SHUT_WR) == -1)
		return MOVED_BROKEN;
	return MOVED_END;
}

enum moved
half_copy(struct half *h, size_t n, size_t *ret_n)
{
	ssize_t	r, w;

	*ret_n = 0;
	if (n > sizeof(scratch))
		n = sizeof(scratch);
	if ((r = recv(h->from, scratch, n, MSG_PEEK)) <= 0)
		return r == 0 ? MOVED_END : is_later() ? MOVED_ALL :
		    MOVED_BROKEN;
	if ((w = send(h->to, scratch, (size_t)r, MSG_NOSIGNAL)) == -1)
		return is_later() ? MOVED_ALL : MOVED_BROKEN;
	/* what was looked at is there: nobody else reads it */
	if (recv(h->from, scratch, (size_t)w, 0) != w)
		return MOVED_BROKEN;
	*ret_n = (size_t)w;
	return w < r ? MOVED_ALL : MOVED_SOME;
}

/* From the pipe on; all of it, or as much as there is room for. */
static enum moved
pipe_out(struct half *h, unsigned int *lent, uint64_t *ret_count)
{
	ssize_t	w;

	while (h->in_pipe > 0) {
		w = splice(h->pipe->fd[0], NULL, h->to, NULL, h->in_pipe,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (w <= 0)
			return w == -1 && is_later() ? MOVED_ALL :
			    MOVED_BROKEN;
		h->in_pipe -= (size_t)w;
		*ret_count += (uint64_t)w;
	}
	half_end(h, lent);
	return MOVED_SOME;
}

static enum moved
pipe_in(struct half *h, size_t n, unsigned int *lent)
{
	ssize_t	r = splice(h->from, NULL, h->pipe->fd[1], NULL, n,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	int	e = errno;

	if (r > 0) {
		h->in_pipe = (size_t)r;
		return MOVED_SOME;
	}
	half_end(h, lent);
	errno = e;
	return r == 0 || is_later() ? MOVED_ALL : MOVED_BROKEN;
}

static enum moved
step(struct half *h, size_t n, unsigned int *lent, uint64_t *ret_count)
{
	enum moved	m;
	size_t		copied;

	if (h->in_pipe > 0)
		return pipe_out(h, lent, ret_count);
	if ((h->pipe = pipe_lend(lent)) == NULL) {
		m = half_copy(h, n, &copied);
		*ret_count += copied;
		return m == MOVED_END ? half_eof(h) : m;
	}
	if ((m = pipe_in(h, n, lent)) == MOVED_SOME)
		return pipe_out(h, lent, ret_count);
	if (m != MOVED_ALL)
		return m;
	/*
	 * Or splice(2) stands before urgent data, which comes inline; behind
	 * the end it says 0 then.
	 */
	m = half_copy(h, n, &copied);
	*ret_count += copied;
	return m == MOVED_END ? half_eof(h) : m;
}

enum moved
half_move(struct half *h, size_t n, unsigned int *lent, uint64_t *ret_count)
{
	uint64_t	before = *ret_count;
	enum moved	m = MOVED_SOME;

	if (h->eof)
		return MOVED_END;
	while (m == MOVED_SOME && *ret_count - before < n)
		m = step(h, n, lent, ret_count);
	return m;
}
