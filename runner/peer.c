/*
 * peer.c: who is connected: hosts on the control socket, wb on runner.sock.
 *
 * A host's connection starts in S_HELLO and is nobody until it has shown the
 * token; then it is *the* host.  A peer is never freed in the middle of a
 * handler: peer_end() marks it, the loop frees it when it turns.
 *
 * Must never: block in a send, read more from a peer than it takes back,
 * let one peer's silence or noise cost another anything.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "runner.h"
#include "xmalloc.h"

#define REQUESTS	16	/* of one peer before others get a turn */
#define SNDBUF_WB	32768	/* the kernel doubles it */
#define REST_MS		100
#define CHUNK_HEAD	512	/* bytes of a SESSION_CHUNK without its own */
#define CHUNK_COPY	4096	/* fewer are copied as fast */

static struct peers	 peers = TAILQ_HEAD_INITIALIZER(peers);
static struct peer	*host;		/* borrowed: of peers, or NULL */
static unsigned int	 nwb, nhello;
static int		 any_dead;

/* A listening socket; at rest for a moment when accept fails. */
struct listener {
	int		 fd;		/* -1: not there yet */
	struct watch	 w;
	struct timer	 rest;
	void		(*accepted)(int);	/* takes the descriptor */
};

static void	on_control(int);
static void	on_wb(int);

static struct listener	 control_listener = { .fd = BOXFD_CONTROL,
    .w.fd = -1, .accepted = on_control };
static struct listener	 wb_listener = { .fd = -1, .w.fd = -1,
    .accepted = on_wb };

/* ---- listening ------------------------------------------------------- */

static void	on_accept(void *, short);

static void
on_rest(void *arg)
{
	struct listener	*l = arg;

	if (l->w.fd == -1 && loop_add(&l->w, l->fd, POLLIN, on_accept, l) ==
	    -1)
		timer_arm(&l->rest, REST_MS);
}

static void
listener_open(struct listener *l)
{
	l->rest.fn = on_rest;
	l->rest.arg = l;
	if (l->fd != -1)
		on_rest(l);
}

/* No descriptors left: a level-triggered socket would keep us spinning. */
static void
on_accept(void *arg, short events)
{
	struct listener	*l = arg;
	int		 fd;

	(void)events;
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd != -1) {
		l->accepted(fd);
		return;
	}
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	loop_del(&l->w);
	timer_arm(&l->rest, REST_MS);
}

struct peer *
peer_host(void)
{
	return host != NULL && !host->dead ? host : NULL;
}

int
peer_is_host(const struct peer *p)
{
	return p == host;
}

void
peer_set_host(struct peer *p)
{
	timer_stop(&p->hello);
	nhello--;
	p->ch.state = S_GO;
	host = p;
}

/* Whether the other end is still held by anyone. */
int
peer_alive(const struct peer *p)
{
	struct pollfd	pfd = { .fd = p->ch.fd };

	return !p->dead && poll(&pfd, 1, 0) == 0;
}

/* ---- sending --------------------------------------------------------- */

/*
 * What the socket does not take waits where it is: output in its ring, not
 * a second time in a queue.
 */
int
peer_full(const struct peer *p)
{
	return p->dead || chan_pending(&p->ch);
}

static void
peer_update(struct peer *p)
{
	short	ev = 0;

	if (p->dead)
		return;
	if (!peer_full(p))
		ev |= POLLIN;
	if (chan_pending(&p->ch))
		ev |= POLLOUT;
	loop_mod(&p->w, ev);
}

void
peer_end(struct peer *p)
{
	if (p->dead)
		return;
	p->dead = 1;
	any_dead = 1;
	loop_del(&p->w);
}

static void
peer_sent(struct peer *p, int r)
{
	if (r == -1 && errno == EINVAL) {
		/* never the peer's doing: say so, it must not wait for ever */
		runner_log("answer: %s", p->ch.why);
		r = 0;
	}
	if (r == -1)
		peer_end(p);
	else
		peer_update(p);
}

void
peer_send(struct peer *p, unsigned int type, uint32_t rid, const void *body)
{
	int	r;

	if (p->dead)
		return;
	r = chan_send(&p->ch, type, rid, body, -1);
	if (r == -1 && errno == EINVAL && rid != 0)
		(void)chan_error(&p->ch, rid, CODE_INTERNAL, "%s", p->ch.why);
	peer_sent(p, r);
}

/* 1: gone; 0: the socket is full, or something else to be seen again. */
static int
chunk_now(struct peer *p, uint32_t rid, const struct msg_session_chunk *b)
{
	static const uint8_t	 none[] = "\xa5" "bytes" "\xc4";	/* and 0 */
	struct msg_session_chunk m = *b;
	uint32_t		 head[3] = { p->ch.version, MSG_SESSION_CHUNK,
				    rid };
	uint8_t			 buf[CHUNK_HEAD], *cut, *end;
	uint8_t			 size[3] = { 0xc5, (uint8_t)(b->bytes.len >> 8),
				    (uint8_t)b->bytes.len };
	struct iovec		 v[4];
	struct msghdr		 mh = { .msg_iov = v, .msg_iovlen = 4 };
	ssize_t			 h, n;

	m.bytes.len = 0;
	if ((h = wire_head_encode(head, buf, sizeof(buf))) == -1 ||
	    (n = wire_encode(p->ch.find(MSG_SESSION_CHUNK)->desc, &m, buf + h,
	    sizeof(buf) - (size_t)h)) == -1)
		return 0;
	end = buf + h + n;
	if ((cut = memmem(buf, (size_t)(end - buf), none, sizeof(none))) ==
	    NULL)
		return 0;
	cut += sizeof(none) - 2;
	v[0] = (struct iovec){ buf, (size_t)(cut - buf) };
	v[1] = (struct iovec){ size, sizeof(size) };
	v[2] = (struct iovec){ (void *)(uintptr_t)b->bytes.data,
	    b->bytes.len };
	v[3] = (struct iovec){ cut + 2, (size_t)(end - cut) - 2 };
	return sendmsg(p->ch.fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) != -1;
}

/*
 * From the ring to the socket: the message is encoded without its bytes, and
 * they are put in where they belong.  What is not sent so is copied.
 */
void
peer_send_chunk(struct peer *p, uint32_t rid,
    const struct msg_session_chunk *b)
{
	if (peer_full(p) || b->bytes.len < CHUNK_COPY ||
	    b->bytes.len > CHUNK_MAX || !chunk_now(p, rid, b))
		peer_send(p, MSG_SESSION_CHUNK, rid, b);
}

void
peer_ok(struct peer *p, uint32_t rid)
{
	struct msg_ok	ok = { 0 };

	peer_send(p, MSG_OK, rid, &ok);
}

void
peer_error(struct peer *p, uint32_t rid, unsigned int code, const char *fmt,
    ...)
{
	char	detail[256];
	va_list	ap;

	if (p->dead)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof(detail), fmt, ap); /* cut is fine */
	va_end(ap);
	peer_sent(p, chan_error(&p->ch, rid, code, "%s", detail));
}

/* ---- waiting --------------------------------------------------------- */

struct waiter *
waiter_new(struct peer *p, struct session *s, enum waiter_kind kind,
    uint32_t rid)
{
	struct waiter	*w = NULL;

	if (p->nwaiters < (p->ch.peer == A_APID ? WAITERS_HOST : WAITERS_WB))
		w = calloc(1, sizeof(*w));
	if (w == NULL) {
		peer_error(p, rid, CODE_TOO_MANY, "too many requests wait");
		return NULL;
	}
	w->peer = p;
	w->session = s;
	w->kind = kind;
	w->rid = rid;
	TAILQ_INSERT_TAIL(&p->waiters, w, in_peer);
	p->nwaiters++;
	if (s != NULL)
		TAILQ_INSERT_TAIL(&s->waiters, w, in_session);
	return w;
}

void
waiter_free(struct waiter *w)
{
	TAILQ_REMOVE(&w->peer->waiters, w, in_peer);
	w->peer->nwaiters--;
	if (w->session != NULL) {
		TAILQ_REMOVE(&w->session->waiters, w, in_session);
		if (w->attached)
			output_unread(w->session);
	}
	free(w);
}

struct waiter *
waiter_any(enum waiter_kind kind)
{
	struct peer	*p;
	struct waiter	*w;

	TAILQ_FOREACH(p, &peers, entry)
		TAILQ_FOREACH(w, &p->waiters, in_peer)
			if (!p->dead && w->kind == kind)
				return w;
	return NULL;
}

/* ---- coming and going ------------------------------------------------ */

static void
peer_free(struct peer *p)
{
	struct waiter	*w;

	TAILQ_REMOVE(&peers, p, entry);
	denied_lost(p);
	while ((w = TAILQ_FIRST(&p->waiters)) != NULL)
		waiter_free(w);
	if (p == host)
		host = NULL;
	if (p->ch.peer == A_WB)
		nwb--;
	else if (p->ch.state == S_HELLO)
		nhello--;
	if (nwb == PEERS_WB - 1)
		listener_open(&wb_listener);
	timer_stop(&p->hello);
	loop_del(&p->w);
	chan_close(&p->ch);
	free(p);
}

void
peer_reap(void)
{
	struct peer	*p, *next;

	if (!any_dead)
		return;
	any_dead = 0;
	for (p = TAILQ_FIRST(&peers); p != NULL; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->dead)
			peer_free(p);
	}
}

/* A host of another version learns ours; it has not shown a token yet. */
static void
peer_version(struct peer *p)
{
	if (p->ch.state == S_HELLO && p->ch.theirs != p->ch.version &&
	    runner_version >= RUNNER_TELLS)
		peer_error(p, 0, CODE_RUNNER_VERSION, "version %u is spoken "
		    "here", p->ch.version);
}

static void
peer_read(struct peer *p)
{
	struct msg	m;
	int		i, r;

	for (i = 0; i < REQUESTS && !peer_full(p); i++) {
		if ((r = chan_recv(&p->ch, &m)) == 0)
			return;
		if (r == 1) {
			host_handle(p, &m);
			continue;
		}
		if (errno == EBADMSG) {
			runner_log("%s: %s", p->ch.peer == A_APID ? "host" :
			    "wb", p->ch.why);
			peer_version(p);
		}
		peer_end(p);
	}
}

static void
on_peer(void *arg, short events)
{
	struct peer	*p = arg;

	if (events & POLLOUT) {
		if (chan_flush(&p->ch) == -1)
			peer_end(p);
		else if (!peer_full(p))
			output_serve_peer(p);
	}
	if (!p->dead && (events & POLLIN))
		peer_read(p);
	else if (events & (POLLHUP | POLLERR))
		peer_end(p);
	peer_update(p);
}

static void
on_hello_late(void *arg)
{
	peer_end(arg);
}

static struct peer *
peer_new(int fd, unsigned int who, unsigned int state)
{
	struct peer	*p;

	if ((p = calloc(1, sizeof(*p))) == NULL) {
		fd_close(&fd);
		return NULL;
	}
	chan_init(&p->ch, fd, A_RUNNER, who, state);
	chan_speak(&p->ch, runner_version);
	TAILQ_INIT(&p->waiters);
	p->hello.fn = on_hello_late;
	p->hello.arg = p;
	if (loop_add(&p->w, fd, POLLIN, on_peer, p) == -1) {
		chan_close(&p->ch);
		free(p);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&peers, p, entry);
	return p;
}

/* One more that has shown nothing yet takes the place of the oldest such. */
static void
on_control(int fd)
{
	struct peer	*p, *old;

	if (nhello >= PEERS_HELLO)
		TAILQ_FOREACH(old, &peers, entry)
			if (old->ch.state == S_HELLO && !old->dead) {
				peer_end(old);
				break;
			}
	if ((p = peer_new(fd, A_APID, S_HELLO)) == NULL)
		return;
	nhello++;
	timer_arm(&p->hello, HELLO_MS);
}

static void
on_wb(int fd)
{
	struct ucred	 uc;
	socklen_t	 len = sizeof(uc);
	struct peer	*p;
	int		 size = SNDBUF_WB;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &uc, &len) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == -1) {
		fd_close(&fd);
		return;
	}
	if ((p = peer_new(fd, A_WB, S_RUN)) == NULL)
		return;
	p->uid = uc.uid;
	p->gid = uc.gid;
	if (++nwb == PEERS_WB)
		loop_del(&wb_listener.w);	/* others wait in the queue */
}

int
peer_init(void)
{
	socklen_t	len = sizeof(int);
	int		v;

	/* not ours to make: it has to be what privd promised */
	if (getsockopt(BOXFD_CONTROL, SOL_SOCKET, SO_ACCEPTCONN, &v, &len) ==
	    -1)
		return -1;
	listener_open(&control_listener);
	return 0;
}

/* Any uid of the box may connect; what it may do goes by that uid. */
int
peer_listen_wb(void)
{
	struct sockaddr_un	 un = { .sun_family = AF_UNIX };
	auto_close int		 fd = -1;

	_Static_assert(sizeof(BOX_SOCK) <= sizeof(un.sun_path), "path");
	memcpy(un.sun_path, BOX_SOCK, sizeof(BOX_SOCK));
	if (mkdir(BOX_RUN, 0755) == -1 && errno != EEXIST)
		return -1;
	if (unlink(BOX_SOCK) == -1 && errno != ENOENT)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	fds_refuse(fd);			/* each connection inherits it */
	if (fd == -1 ||
	    bind(fd, (struct sockaddr *)&un, sizeof(un)) == -1 ||
	    chmod(BOX_SOCK, 0666) == -1 || listen(fd, PEERS_WB) == -1)
		return -1;
	wb_listener.fd = steal_fd(&fd);
	listener_open(&wb_listener);
	return 0;
}
