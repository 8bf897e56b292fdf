/*
 * output.c: from a session's pipes to its ring, and from there to readers.
 *
 * Three bounds hold against each other:
 *	- a reader that is attached misses nothing: what it has not been sent
 *	  is not dropped, and the pipes of a session whose reader is
 *	  BEHIND_MAX bytes behind are not read;
 *	- one ring holds RING_SESSION, all together the box's bound; above it
 *	  the oldest goes, first that of sessions that have ended;
 *	- what is in the pipes when the leader ends is kept, whatever the first
 *	  bound says: it stays in the pipe until there is room.
 * Readers that are attached may bind half of all rings, so that sessions that
 * nobody waits for always find something to drop.
 *
 * A pipe that may not be read is not watched either (a hang-up cannot be
 * masked); it stands in no list, and each turn in which something was
 * delivered or dropped looks at all of them.
 */
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

#define DISCARD_MS	20	/* a pipe of left-behind: DISCARD_READS each */
#define DISCARD_READS	4	/* of discard_buf */
#define READS		2	/* of one pipe before others get a turn */
#define WIDES_MAX	64	/* 16 MiB of the 64 that a user's pipes have */

/* What the table says of bytes, to be held against ours. */
enum {
#define F_BIN(m, f, lo, hi) MOST_##m##_##f = hi,
#include "proto.def"
};
_Static_assert(MOST_session_chunk_bytes == CHUNK_MAX,
    "CHUNK_MAX is not the bound of session_chunk.bytes in proto.def");

static int	wake;		/* paused pipes may be able to go on */
static int	busy;		/* read in this turn: blocks are wanted again */
static unsigned int wides;	/* pipes that were made larger */

static void	on_readable(void *, short);

/* ---- room ------------------------------------------------------------ */

/* Bytes of memory that the attached reader binds. */
static size_t
behind(const struct session *s)
{
	return s->attached ? ring_after(&s->ring, s->att_seq) : 0;
}

static size_t
behind_all(void)
{
	struct session	*s;
	size_t		 sum = 0;

	TAILQ_FOREACH(s, &table.lives, part)
		sum += behind(s);
	TAILQ_FOREACH(s, &table.ends, part)
		sum += behind(s);
	return sum;
}

/* Whether the marks of lossless reading say to wait. */
static int
held_back(const struct session *s)
{
	size_t	b = behind(s);

	if (b >= BEHIND_MAX)
		return 1;
	return b > 2UL * CHUNK_MAX && behind_all() > ring_bound() / 2;
}

/*
 * How many chunks to read: no more than it takes for what is there, since
 * others lose output for them.  What readers bind stays below their half.
 */
static size_t
chunks_now(const struct outpipe *o)
{
	size_t	n;
	int	there;

	if (!o->wide || ioctl(o->fd, FIONREAD, &there) == -1 || there < 0)
		return 1;
	n = (size_t)there / CHUNK_MAX + 1;
	if (n > WIDE_CHUNKS)
		n = WIDE_CHUNKS;
	if (n > 1 && o->session->attached &&
	    behind_all() + n * CHUNK_MAX > ring_bound() / 2)
		return 1;
	return n;
}

/* Drops its oldest block, unless a reader must still see it. */
static int
drop_from(struct session *s)
{
	uint64_t	last = ring_oldest(&s->ring);

	if (last == 0 || (s->attached && last > s->att_seq))
		return 0;
	ring_drop(&s->ring);
	return 1;
}

/* Drops one block somewhere: of the longest ended, else of the largest. */
static int
drop_any(void)
{
	struct session	*s, *max = NULL;

	TAILQ_FOREACH(s, &table.ends, part)
		if (s->ring.pages > 0 && drop_from(s))
			return 1;
	TAILQ_FOREACH(s, &table.lives, part) {
		if (s->ring.pages == 0 || (s->attached &&
		    ring_oldest(&s->ring) > s->att_seq))
			continue;
		if (max == NULL || s->ring.pages > max->ring.pages)
			max = s;
	}
	return max != NULL && drop_from(max);
}

/* Room for n chunks, or for as many as fit; 0: not now. */
static size_t
room(struct session *s, size_t n, struct iovec *ret)
{
	while (s->ring.pages + ring_want(&s->ring, n) >
	    RING_SESSION / RING_PAGE)
		if (!drop_from(s))
			break;		/* its reader binds less than this */
	while (!ring_fits(ring_want(&s->ring, n)))
		if (!drop_any() && --n == 0)
			return 0;
	return ring_room(&s->ring, n, ret);
}

/* ---- pipes ----------------------------------------------------------- */

/* As it was, for who is not read any more; when it is full, with its end. */
static void
pipe_narrow(struct outpipe *o)
{
	if (!o->wide || fcntl(o->fd, F_SETPIPE_SZ, 65536) == -1)
		return;
	o->wide = 0;
	wides--;
}

static void
pipe_close(struct outpipe *o)
{
	loop_del(&o->w);
	fd_close(&o->fd);
	o->paused = 0;
	o->must = 0;
	if (o->wide)
		wides--;
	o->wide = 0;
}

static void
pipe_pause(struct outpipe *o)
{
	loop_del(&o->w);
	o->paused = 1;
}

/*
 * One read.  1: there may be more; 0: not now.  Beyond what was there at the
 * leader's end the marks hold.
 */
static int
pipe_read(struct outpipe *o)
{
	struct session	*s = o->session;
	struct iovec	 v[WIDE_CHUNKS];
	size_t		 nv, len = 0, i;
	ssize_t		 n;

	if (o->must == 0 && held_back(s)) {
		pipe_pause(o);
		return 0;
	}
	if ((nv = room(s, chunks_now(o), v)) == 0) {
		pipe_pause(o);
		return 0;
	}
	for (i = 0; i < nv; i++)
		len += v[i].iov_len;
	do
		n = readv(o->fd, v, (int)nv);
	while (n == -1 && errno == EINTR);
	ring_commit(&s->ring, o->stream, n > 0 ? (size_t)n : 0);
	if (n > 0) {
		busy = 1;
		o->must -= (uint64_t)n < o->must ? (uint64_t)n : o->must;
		return (size_t)n == len;
	}
	if (n == 0 || errno != EAGAIN)
		pipe_close(o);
	return 0;
}

/*
 * Was found full: a larger one is emptied by one read, or else the command
 * and we wake each other for every 32 KiB.  Only then, and not for all: the
 * kernel counts what pipes may hold per user, and a user is a box, whose
 * commands have pipes of their own.
 */
static void
pipe_widen(struct outpipe *o)
{
	if (o->wide || wides >= WIDES_MAX ||
	    fcntl(o->fd, F_SETPIPE_SZ, WIDE_PIPE) == -1)
		return;		/* as it was */
	o->wide = 1;
	wides++;
}

static void
on_readable(void *arg, short events)
{
	struct outpipe	*o = arg;
	int		 i;

	if (!(events & POLLIN))
		pipe_close(o);		/* nothing in it, nobody to write */
	for (i = 0; i < READS && o->fd != -1 && pipe_read(o); i++)
		if (i == 1)
			pipe_widen(o);
	output_settle(o->session);
}

/* Readers first; then whether this was all. */
void
output_settle(struct session *s)
{
	struct outpipe	*o;
	int		 i, open = 0;

	output_serve(s);
	if (s->state != SESSION_ENDING)
		return;
	for (i = 0; i < 2; i++) {
		o = &s->out[i];
		if (o->fd != -1 && (o->must > 0 || !s->late_over))
			open = 1;
	}
	if (open)
		return;
	ring_trim(&s->ring);
	session_output_end(s);
}

int
output_init(struct session *s, const int fd[2])
{
	int	i, r = 0;

	for (i = 0; i < 2; i++) {
		s->out[i].fd = fd[i];
		s->out[i].w.fd = -1;
		s->out[i].session = s;
		s->out[i].stream = i == 0 ? STREAM_STDOUT : STREAM_STDERR;
		if (fd[i] != -1 && loop_add(&s->out[i].w, fd[i], POLLIN,
		    on_readable, &s->out[i]) == -1)
			r = -1;
	}
	return r;
}

static void
pipe_resume(struct outpipe *o)
{
	if (o->fd == -1 || !o->paused)
		return;
	if (loop_add(&o->w, o->fd, POLLIN, on_readable, o) == -1) {
		runner_log("watch output of %s: %s", o->session->id,
		    strerror(errno));
		pipe_close(o);	/* out of memory: better short than stuck */
		return;
	}
	o->paused = 0;
}

void
output_turn(void)
{
	struct session	*s, *next;
	int		 i;

	if (!busy)
		ring_cool();
	busy = 0;
	if (!wake)
		return;
	wake = 0;
	for (s = TAILQ_FIRST(&table.lives); s != NULL; s = next) {
		next = TAILQ_NEXT(s, part);
		for (i = 0; i < 2; i++)
			if (s->out[i].paused && (s->out[i].must > 0 ||
			    !held_back(s)))
				pipe_resume(&s->out[i]);
		if (s->state == SESSION_ENDING)
			output_settle(s);
	}
}

/* The leader is dead: what is there now is kept, the rest has LATE_MS. */
void
output_leader_gone(struct session *s)
{
	struct outpipe	*o;
	int		 i, n;

	for (i = 0; i < 2; i++) {
		o = &s->out[i];
		if (o->fd == -1)
			continue;
		if (ioctl(o->fd, FIONREAD, &n) == -1 || n < 0)
			n = 0;
		o->must = (uint64_t)n;
		pipe_resume(o);
		while (o->fd != -1 && !o->paused && pipe_read(o) &&
		    o->must > 0)
			continue;
		/* most often nobody holds it any more: its end is there */
		if (o->fd != -1 && !o->paused && o->must == 0)
			(void)pipe_read(o);
	}
	output_settle(s);
}

/* ---- pipes of processes that were left behind ------------------------ */

static struct timer	 discard_timer;
static uint8_t		 discard_buf[16384];

static void
on_discard(void *arg, short events)
{
	struct outpipe	*o = arg;
	ssize_t		 n = 0;
	int		 i;

	(void)events;
	for (i = 0; i < DISCARD_READS; i++)
		if ((n = read(o->fd, discard_buf, sizeof(discard_buf))) <= 0)
			break;
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR)) {
		pipe_close(o);
		return;
	}
	/* slowly: it is only to keep them from blocking, or SIGPIPE */
	pipe_pause(o);
	if (discard_timer.at == 0)
		timer_arm(&discard_timer, DISCARD_MS);
}

static void
on_discard_timer(void *arg)
{
	struct session	*s;
	int		 i;

	(void)arg;
	TAILQ_FOREACH(s, &table.ends, part)
		for (i = 0; i < 2; i++) {
			if (s->out[i].fd == -1 || !s->out[i].paused)
				continue;
			if (loop_add(&s->out[i].w, s->out[i].fd, POLLIN,
			    on_discard, &s->out[i]) == -1)
				pipe_close(&s->out[i]);
			s->out[i].paused = 0;
		}
}

void
output_discard(struct session *s, int keep)
{
	int	i;

	discard_timer.fn = on_discard_timer;
	for (i = 0; i < 2; i++) {
		if (s->out[i].fd == -1)
			continue;
		if (!keep) {
			pipe_close(&s->out[i]);
			continue;
		}
		pipe_pause(&s->out[i]);
		pipe_narrow(&s->out[i]);
		if (discard_timer.at == 0)
			timer_arm(&discard_timer, DISCARD_MS);
	}
}

void
output_close(struct session *s)
{
	pipe_close(&s->out[0]);
	pipe_close(&s->out[1]);
}

/* ---- readers --------------------------------------------------------- */

/* Remembers where a reader stands, so that a gap can be counted in bytes. */
static void
mark_put(struct session *s, uint64_t seq, uint64_t end)
{
	unsigned int	i;

	for (i = 0; i < BOOKMARKS; i++)
		if (s->mark[i].seq != 0 && s->mark[i].seq + 1 == seq)
			break;
	if (i == BOOKMARKS)
		i = s->mark_next++ % BOOKMARKS;
	s->mark[i].seq = seq;
	s->mark[i].end = end;
}

/*
 * Bytes up to the end of chunk seq, which is not kept any more: as a reader
 * was told; of a number that none was given, the next lower that is known.
 */
static uint64_t
mark_get(const struct session *s, uint64_t seq)
{
	uint64_t	best = 0, end = 0;
	unsigned int	i;

	for (i = 0; i < BOOKMARKS; i++)
		if (s->mark[i].seq <= seq && s->mark[i].seq > best) {
			best = s->mark[i].seq;
			end = s->mark[i].end;
		}
	return end;
}

static void
attached_sent(struct session *s, const struct chunk *c)
{
	if (!s->attached || c->seq <= s->att_seq)
		return;
	s->att_seq = c->seq;
	wake = 1;
}

/* What is behind `after', if anything is to be said now. */
static int
chunk_after(struct session *s, uint64_t after, int attached,
    struct msg_session_chunk *ret)
{
	uint64_t	first = ring_first(&s->ring), last = s->ring.last_seq;
	uint64_t	seq = after < first - 1 ? first : after + 1, most;
	struct chunk	c;

	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->id, s->id, sizeof(ret->id));	/* fits */
	ret->first_seq = first;
	ret->last_seq = last;
	if (seq - 1 > after && last > after) {
		ret->gap_first = after + 1;
		ret->gap_last = first - 1;
		ret->gap_bytes = ring_start(&s->ring) - mark_get(s, after);
		/* where no mark is near, no more than so many can have had */
		most = (ret->gap_last - after) * CHUNK_MAX;
		if (ret->gap_bytes > most)
			ret->gap_bytes = most;
	}
	if (ring_find(&s->ring, seq, &c) == 0) {
		ret->seq = seq;
		ret->stream = c.stream;
		ret->bytes.data = c.data;
		ret->bytes.len = c.len;
		mark_put(s, seq, c.end);
		if (attached)
			attached_sent(s, &c);
	}
	ret->eof = s->state == SESSION_ENDED && seq >= last;
	return ret->seq != 0 || ret->eof;
}

void
output_serve(struct session *s)
{
	struct msg_session_chunk	 b;
	struct waiter			*w, *next;

	for (w = TAILQ_FIRST(&s->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, in_session);
		if (w->kind != W_READ || peer_full(w->peer) ||
		    !chunk_after(s, w->at, w->attached, &b))
			continue;
		peer_send_chunk(w->peer, w->rid, &b);
		waiter_free(w);
	}
}

void
output_serve_peer(struct peer *p)
{
	struct msg_session_chunk	 b;
	struct waiter			*w, *next;

	for (w = TAILQ_FIRST(&p->waiters); w != NULL && !peer_full(p);
	    w = next) {
		next = TAILQ_NEXT(w, in_peer);
		if (w->kind != W_READ || !chunk_after(w->session, w->at,
		    w->attached, &b))
			continue;
		peer_send_chunk(p, w->rid, &b);
		waiter_free(w);
	}
}

/* ---- the attached reader --------------------------------------------- */

static void
on_attach_timer(void *arg)
{
	output_detach(arg);
}

void
output_detach(struct session *s)
{
	timer_stop(&s->t_attach);
	s->attached = 0;
	wake = 1;
}

/* Heard of now.  With a request open it is there as long as that is. */
static void
attached_seen(struct session *s)
{
	if (!s->attached)
		return;
	if (s->att_waits > 0) {
		timer_stop(&s->t_attach);
		return;
	}
	s->t_attach.fn = on_attach_timer;
	s->t_attach.arg = s;
	timer_arm(&s->t_attach, ATTACH_MS);
}

void
output_attach(struct session *s)
{
	s->attached = 1;
	attached_seen(s);
}

void
output_unread(struct session *s)
{
	s->att_waits--;
	attached_seen(s);
}

/*
 * A reader that comes, or comes back, says from where; it may ask for some
 * again.  Who asked for the session need not be who reads it from its start.
 */
static void
attached_at(struct session *s, uint64_t after)
{
	if (s->att_waits > 0 || after > s->ring.last_seq ||
	    after + 1 < ring_first(&s->ring))
		return;		/* what is gone is gone, and will be told */
	if (!s->attached && (s->state == SESSION_ENDED ||
	    after > s->att_seq))
		return;		/* it comes too late, or in the middle */
	s->attached = 1;
	s->att_seq = after;
	wake = 1;
}

void
on_session_read(struct peer *p, const struct msg *m)
{
	const struct msg_session_read	*b = &m->body.session_read;
	struct msg_session_chunk	 answer;
	struct session			*s;
	struct waiter			*w;

	if ((s = session_get(p, m->rid, b->id)) == NULL)
		return;
	if (b->attached) {
		attached_at(s, b->after);
		attached_seen(s);
	}
	if (b->wait && (s->state != SESSION_ENDED || peer_full(p))) {
		if ((w = waiter_new(p, s, W_READ, m->rid)) == NULL)
			return;
		w->at = b->after;
		w->attached = (int)b->attached;
		if (w->attached) {
			s->att_waits++;
			attached_seen(s);
		}
		output_serve(s);
		return;
	}
	(void)chunk_after(s, b->after, (int)b->attached, &answer);
	peer_send_chunk(p, m->rid, &answer);
}
