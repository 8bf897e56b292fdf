/*
 * http_io: the bytes of a connection, as they are or in TLS.
 *
 * What http.c knows of a connection stays true in TLS: bytes leave `out' when
 * the kernel has them and not before, `moved' counts bytes of the socket, end
 * of file is the peer's last word and not the end of the answer.  Of one
 * connection OpenSSL holds a record that is being read and one that is being
 * written, 16 KiB each, and nothing while it is idle.
 *
 * A handshake is bytes and time of somebody who is not known: it has as long
 * as a head, there are few at a time, and all of them together have half of
 * the time (hello_may); who comes when it is spent is not looked at until
 * the slice is over.  A first message that says it is longer than HELLO_MAX
 * ends the connection at its first bytes (hello_read): OpenSSL has as much
 * for each already, and would take up to 131,396 bytes for what one claims.
 * No session is resumed: there is no key of tickets to be kept, and none that
 * opens what was said before.
 *
 * Must never: read or write without being told that the socket may, or go on
 * with a connection after an error of its TLS.
 */
#include <sys/socket.h>

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http_int.h"
#include "log.h"
#include "xmalloc.h"

#define RECORD		16384		/* bytes of a record, at most */
#define SLICE_US	20000		/* half of it is for handshakes */
#define HELLO_MAX	16384		/* bytes of a ClientHello */

/* ---- the context ------------------------------------------------------- */

/* Whoever names protocols names ours, or is told that there is no other. */
static int
on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
    const unsigned char *in, unsigned int len, void *arg)
{
	static const unsigned char	ours[] = "\010http/1.1";
	unsigned char			*out;

	(void)ssl; (void)arg;
	if (SSL_select_next_proto(&out, ret_len, ours, sizeof(ours) - 1, in,
	    len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = out;
	return SSL_TLSEXT_ERR_OK;
}

void
http_server_tls(struct http_server *s, SSL_CTX *ctx)
{
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
	    SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
	    SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
	    SSL_OP_IGNORE_UNEXPECTED_EOF);	/* messages tell their length */
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	/* what is no data ends a read: the next connection's turn */
	(void)SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
		fatalx("TLS: this OpenSSL cannot do what is needed");
	SSL_CTX_free(s->tls);	/* connections hold theirs */
	s->tls = ctx;
}

/* ---- the first message ------------------------------------------------- */

/* Takes bytes that are missing of a head; how many there were. */
static size_t
head_part(uint8_t *head, unsigned int *have, size_t want, const uint8_t *p,
    size_t n)
{
	if (n > want - *have)
		n = want - *have;
	memcpy(head + *have, p, n);
	*have += (unsigned int)n;
	return n;
}

/* What a record of a handshake holds, its messages' heads among it. */
static void
watch_messages(struct http_watch *w, const uint8_t *p, size_t n)
{
	size_t	used;

	while (n > 0 && !w->bad) {
		if (w->nmsg < sizeof(w->msg)) {
			used = head_part(w->msg, &w->nmsg, sizeof(w->msg), p,
			    n);
			w->msg_left = (size_t)w->msg[1] << 16 |
			    (size_t)w->msg[2] << 8 | w->msg[3];
			w->bad = w->nmsg == sizeof(w->msg) &&
			    w->msg[0] == SSL3_MT_CLIENT_HELLO &&
			    w->msg_left > HELLO_MAX;
		} else {
			used = n < w->msg_left ? n : w->msg_left;
			w->msg_left -= used;
		}
		if (w->nmsg == sizeof(w->msg) && w->msg_left == 0)
			w->nmsg = 0;
		p += used;
		n -= used;
	}
}

/*
 * A ClientHello is never encrypted, also not the second one, that TLS 1.3
 * may ask for; before 1.3 what follows ChangeCipherSpec is, and there is
 * none any more.  What is no record at all OpenSSL refuses by itself.
 */
static void
watch_record(struct http_conn *c)
{
	struct http_watch	*w = &c->watch;

	w->rec_left = (size_t)w->rec[3] << 8 | w->rec[4];
	switch (w->rec[0]) {
	case SSL3_RT_CHANGE_CIPHER_SPEC:
		w->off = SSL_version(c->ssl) < TLS1_3_VERSION;
		break;
	case SSL3_RT_HANDSHAKE:
	case SSL3_RT_ALERT:
	case SSL3_RT_APPLICATION_DATA:
		break;
	default:
		w->off = 1;
	}
}

static void
watch_bytes(struct http_conn *c, const uint8_t *p, size_t n)
{
	struct http_watch	*w = &c->watch;
	size_t			 used;

	while (n > 0 && !w->off && !w->bad) {
		if (w->nrec < sizeof(w->rec)) {
			used = head_part(w->rec, &w->nrec, sizeof(w->rec), p,
			    n);
			if (w->nrec == sizeof(w->rec))
				watch_record(c);
		} else {
			used = n < w->rec_left ? n : w->rec_left;
			w->rec_left -= used;
			if (w->rec[0] == SSL3_RT_HANDSHAKE)
				watch_messages(w, p, used);
		}
		if (w->nrec == sizeof(w->rec) && w->rec_left == 0)
			w->nrec = 0;
		p += used;
		n -= used;
	}
}

/* Sees what OpenSSL reads before OpenSSL does: BIO_set_callback_ex(3). */
static long
hello_read(BIO *b, int what, const char *p, size_t len, int argi, long argl,
    int ret, size_t *done)
{
	struct http_conn	*c = (void *)BIO_get_callback_arg(b);

	(void)len; (void)argi; (void)argl;
	if (what != (BIO_CB_READ | BIO_CB_RETURN) || ret <= 0 || done == NULL)
		return ret;
	watch_bytes(c, (const uint8_t *)p, *done);
	if (!c->watch.bad)
		return ret;
	BIO_clear_retry_flags(b);
	return -1;
}

void
http_io_new(struct http_conn *c)
{
	BIO	*b;

	if ((c->ssl = SSL_new(c->server->tls)) == NULL ||
	    SSL_set_fd(c->ssl, c->fd) != 1)
		fatalx("out of memory");
	SSL_set_accept_state(c->ssl);
	b = SSL_get_rbio(c->ssl);
	BIO_set_callback_arg(b, (char *)c);
	BIO_set_callback_ex(b, hello_read);
}

void
http_io_free(struct http_conn *c)
{
	SSL_free(c->ssl);
	c->ssl = NULL;
}

/* ---- reading and writing ----------------------------------------------- */

/*
 * What an operation that was not done left: 0, or -1 with errno; *waits
 * where it is the socket that has no room.
 */
static ssize_t
tls_left(struct http_conn *c, int r, int *waits)
{
	switch (SSL_get_error(c->ssl, r)) {
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_WANT_WRITE:
		*waits = 1;
		/* FALLTHROUGH */
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	default:
		SSL_set_quiet_shutdown(c->ssl, 1);	/* it has ended */
		errno = EPROTO;
		return -1;
	}
}

ssize_t
http_io_recv(struct http_conn *c, void *buf, size_t len)
{
	int	r;

	if (c->ssl == NULL)
		return recv(c->fd, buf, len, MSG_DONTWAIT);
	ERR_clear_error();
	r = SSL_read(c->ssl, buf, len < RECORD ? (int)len : RECORD);
	return r > 0 ? r : tls_left(c, r, &c->io_waits);
}

size_t
http_io_held(const struct http_conn *c)
{
	return c->ssl == NULL ? 0 : (size_t)SSL_pending(c->ssl);
}

static void
moved(struct http_conn *c, size_t n)
{
	c->moved += n;
	if (n > 0)
		c->stalled_ms = 0;
}

/*
 * One record.  Where the kernel takes a part of it the same bytes are given
 * again, and perhaps more: `out' grows at its end alone.
 */
static ssize_t
tls_send(struct http_conn *c)
{
	BIO		*b = SSL_get_wbio(c->ssl);
	uint64_t	 before = BIO_number_written(b);
	size_t		 len = evbuffer_get_length(c->out);
	unsigned char	*p;
	ssize_t		 n;
	int		 r, waits = 0;

	if (len > RECORD)
		len = RECORD;
	if ((p = evbuffer_pullup(c->out, (ssize_t)len)) == NULL)
		fatalx("out of memory");
	ERR_clear_error();
	r = SSL_write(c->ssl, p, (int)len);
	moved(c, (size_t)(BIO_number_written(b) - before));
	if (r > 0)
		return r;
	/* reading goes on meanwhile: it is how the peer's end is seen */
	n = tls_left(c, r, &waits);
	/* nothing is negotiated while data flows: it can only want to write */
	if (n == 0 || (errno == EAGAIN && !waits))
		errno = EPROTO;
	return -1;
}

static ssize_t
plain_send(struct http_conn *c)
{
	struct evbuffer_iovec	v[8];
	struct msghdr		m = { .msg_iov = (struct iovec *)v };
	ssize_t			r;
	int			n;

	n = evbuffer_peek(c->out, -1, NULL, v, 8);
	m.msg_iovlen = n < 8 ? (size_t)n : 8;
	r = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (r > 0)
		moved(c, (size_t)r);
	return r;
}

int
http_io_send(struct http_conn *c)
{
	ssize_t	n;

	while (evbuffer_get_length(c->out) > 0) {
		n = c->ssl == NULL ? plain_send(c) : tls_send(c);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		(void)evbuffer_drain(c->out, (size_t)n);
	}
	return 0;
}

int
http_io_put(struct http_conn *c, struct iovec *v, size_t n)
{
	struct msghdr	m = { .msg_iov = v, .msg_iovlen = n };
	size_t		done, part;
	ssize_t		r;

	if (c->ssl != NULL)
		return 0;	/* by way of `out': records want one piece */
	do
		r = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (r == -1 && errno == EINTR);
	if (r == -1)
		return errno == EAGAIN ? 0 : -1;
	moved(c, (size_t)r);
	for (done = (size_t)r; done > 0; v++) {
		part = v->iov_len < done ? v->iov_len : done;
		v->iov_base = (char *)v->iov_base + part;
		v->iov_len -= part;
		done -= part;
	}
	return 0;
}

int
http_io_end(struct http_conn *c)
{
	int	r;

	if (c->ssl != NULL) {
		ERR_clear_error();
		r = SSL_shutdown(c->ssl);
		if (r < 0 && tls_left(c, r, &c->io_waits) == -1)
			return errno == EAGAIN && c->io_waits ? 0 : -1;
	}
	return c->eof || shutdown(c->fd, SHUT_WR) == -1 ? -1 : 1;
}

/* ---- the handshake ----------------------------------------------------- */

/* A signature is the dearest thing that a stranger can ask for. */
static int
hello_may(struct http_server *s, uint64_t now)
{
	if (now - s->slice_at >= SLICE_US) {
		s->slice_at = now;
		s->slice_us = 0;
	}
	return s->slice_us < SLICE_US / 2;
}

/* A socket that stays readable would keep the loop busy until then. */
static void
hello_later(struct http_server *s, uint64_t now)
{
	uint64_t	left = s->slice_at + SLICE_US - now;

	if (!event_pending(s->ev_slice, EV_TIMEOUT, NULL))
		(void)event_add(s->ev_slice,
		    &(struct timeval){ .tv_usec = (suseconds_t)left });
}

void
http_io_slice(int fd, short what, void *arg)
{
	struct http_server	*s = arg;
	struct http_conn	*c;
	uint64_t		 now = mono_us();

	(void)fd; (void)what;
	if (!hello_may(s, now)) {	/* the loop's clock is a coarse one */
		hello_later(s, now);
		return;
	}
	TAILQ_FOREACH(c, &s->conns[HTTP_HELLO], entry)
		if (c->io_later)
			event_active(c->ev_read, EV_READ, 0);
}

enum http_hello
http_io_hello(struct http_conn *c)
{
	struct http_server	*s = c->server;
	uint64_t		 begun = mono_us();
	unsigned long		 e;
	int			 r;

	c->io_later = !hello_may(s, begun);
	if (c->io_later) {
		hello_later(s, begun);
		return HTTP_HELLO_MORE;
	}
	c->io_waits = 0;
	ERR_clear_error();
	r = SSL_do_handshake(c->ssl);
	s->slice_us += mono_us() - begun;
	if (r == 1) {
		BIO_set_callback_ex(SSL_get_rbio(c->ssl), NULL);
		return HTTP_HELLO_DONE;
	}
	if (tls_left(c, r, &c->io_waits) == -1 && errno == EAGAIN)
		return HTTP_HELLO_MORE;
	e = ERR_peek_last_error();
	log_debug("TLS handshake: %s", c->watch.bad ? "a hello too long" :
	    e == 0 ? "the peer has gone" : ERR_reason_error_string(e));
	return ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) ==
	    SSL_R_HTTP_REQUEST ? HTTP_HELLO_PLAIN : HTTP_HELLO_BAD;
}
