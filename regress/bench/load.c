/*
 * load.c: many clients at a time, one process with a connection for each: a
 * closed loop, every client asks again when it is answered.  P14 and P17.
 */
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <netinet/in.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"

#define CLIENTS_MAX	64
#define ANSWER_MAX	16384

struct client {
	struct http	 http;
	char		 buf[ANSWER_MAX + 1];
	size_t		 len;
};

struct load {
	struct client	 c[CLIENTS_MAX];
	unsigned int	 n;		/* clients */
	unsigned int	 per_run;	/* requests */
	int		 ep;
	int		 status;	/* wanted */
	const char	*method, *path, *json;
};

static int
load_open(struct load *l, const char *host)
{
	struct epoll_event	ev = { .events = EPOLLIN };
	unsigned int		i;

	if ((l->ep = epoll_create1(EPOLL_CLOEXEC)) == -1)
		return -1;
	for (i = 0; i < l->n; i++) {
		ev.data.u32 = i;
		if (http_open(&l->c[i].http, host, h.token) == -1 ||
		    epoll_ctl(l->ep, EPOLL_CTL_ADD, l->c[i].http.fd,
		    &ev) == -1)
			return -1;
	}
	return 0;
}

static void
load_close(struct load *l)
{
	unsigned int	i;

	for (i = 0; i < l->n; i++)
		http_shut(&l->c[i].http);
	close(l->ep);
}

/* 1: a whole answer with the wanted status; 0: not yet; -1: it is not. */
static int
client_read(const struct load *l, struct client *c)
{
	ssize_t	n = http_read(&c->http, c->buf + c->len, ANSWER_MAX - c->len);
	int	st;

	if (n <= 0)
		return -1;
	c->len += (size_t)n;
	c->buf[c->len] = '\0';
	if ((st = http_whole(c->buf, c->len)) == 0 || st == l->status)
		return st != 0;
	fprintf(stderr, "%s %s: %s\n", l->method, l->path, c->buf);
	return -1;
}

/* Time for one request, with all clients at work; -1. */
static double
load_run(void *arg)
{
	struct epoll_event	ev[CLIENTS_MAX];
	struct load		*l = arg;
	unsigned int		sent, done = 0;
	double			t0 = bench_usec();
	int			i, n, r;

	for (sent = 0; sent < l->n; sent++) {
		l->c[sent].len = 0;
		if (http_send(&l->c[sent].http, l->method, l->path,
		    l->json) == -1)
			return -1;
	}
	while (done < l->per_run) {
		n = epoll_wait(l->ep, ev, CLIENTS_MAX, -1);
		for (i = 0; i < n; i++) {
			struct client	*c = &l->c[ev[i].data.u32];

			if ((r = client_read(l, c)) == -1)
				return -1;
			if (r == 0)
				continue;
			done++;
			if (sent >= l->per_run)
				continue;
			c->len = 0;
			sent++;
			if (http_send(&c->http, l->method, l->path,
			    l->json) == -1)
				return -1;
		}
	}
	return (bench_usec() - t0) / l->per_run;
}

/* ---- P14 ---------------------------------------------------------------- */

#define LINE	330		/* bytes of such a record */
#define TXNS	8

static MDB_env	*env;
static MDB_dbi	 dbi;

static int
lmdb_open(void)
{
	char	 dir[300];
	MDB_txn	*txn;

	(void)snprintf(dir, sizeof(dir), "%s/lmdb", workdir);
	if (mkdir(dir, 0700) == 0 && mdb_env_create(&env) == 0 &&
	    mdb_env_set_mapsize(env, (size_t)1 << 34) == 0 &&
	    mdb_env_open(env, dir, 0, 0600) == 0 &&
	    mdb_txn_begin(env, NULL, 0, &txn) == 0 &&
	    mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi) == 0 &&
	    mdb_txn_commit(txn) == 0)
		return 0;
	fprintf(stderr, "%s: LMDB does not open\n", dir);
	return -1;
}

static double
lmdb_run(void *arg)
{
	static char	line[LINE];
	static uint64_t	key;
	double		t0 = bench_usec();
	int		i;

	(void)arg;
	for (i = 0; i < TXNS; i++) {
		MDB_val	 k = { sizeof(key), &key }, v = { LINE, line };
		MDB_txn	*txn;

		key++;
		if (mdb_txn_begin(env, NULL, 0, &txn) != 0 ||
		    mdb_put(txn, dbi, &k, &v, MDB_APPEND) != 0 ||
		    mdb_txn_commit(txn) != 0)
			return -1;
	}
	return (bench_usec() - t0) / TXNS;
}

/* The number of the last record of the log, or -1. */
static long
records(void)
{
	static struct http	c;
	static char		path[64];
	static long		known;
	const char		*p;

	if (http_open(&c, h.host, h.token) == -1)
		return -1;
	(void)snprintf(path, sizeof(path), "/v1/events?after=%ld", known);
	if (http_call(&c, "GET", path, NULL) == 200)
		for (p = c.body; (p = strstr(p, "{\"seq\":")) != NULL; p++)
			known = strtol(p + 7, NULL, 10);
	http_shut(&c);
	return known;
}

static int
p14_load(struct load *l, char *path, size_t n)
{
	static char	box[64];
	const char	*v;

	if (create(box, sizeof(box)) == -1)
		return -1;
	(void)snprintf(path, n, "/v1/sandboxes/%s/sessions", box);
	if (http_call(&h, "POST", path, "{\"argv\":[\"sleep\",\"100000\"]}")
	    != 201 || (v = http_member(&h, "sessionId")) == NULL) {
		fprintf(stderr, "session: %s\n", h.body);
		return -1;
	}
	(void)snprintf(path, n, "/v1/sandboxes/%s/sessions/%s/signal", box,
	    v);
	l->n = CLIENTS_MAX;
	l->per_run = 10 * CLIENTS_MAX;
	l->status = 204;
	l->method = "POST";
	l->path = path;
	l->json = "{\"signal\":\"URG\"}";	/* nobody minds it */
	return load_open(l, h.host);
}

int
row_p14(void)
{
	static struct load	l;
	struct bench_stat	a, b;
	static char		path[200];
	long			before, told;

	if (lmdb_open() == -1 || p14_load(&l, path, sizeof(path)) == -1 ||
	    (before = records()) == -1 ||
	    bench_pairs(load_run, &l, lmdb_run, NULL, 2, pairs, &a, &b) == -1)
		return -1;
	load_close(&l);
	told = records() - before;
	if (told < (long)l.per_run * (pairs + 2)) {
		fprintf(stderr, "P14: %ld records, %ld answers\n", told,
		    (long)l.per_run * (pairs + 2));
		return -1;
	}
	bench_rate("P14", "durable records, 64 clients, /s", 1e6, &a, &b,
	    "LMDB, one transaction each", 4, 10);
	mdb_env_close(env);
	path[strlen("/v1/sandboxes/") + 26] = '\0';
	return destroy(path + strlen("/v1/sandboxes/"));
}

/* ---- P17 ---------------------------------------------------------------- */

static void
hello(struct evhttp_request *r, void *arg)
{
	static char	*text;
	size_t		 n = *(size_t *)arg;
	struct evbuffer	*b = evbuffer_new();

	if (text == NULL) {
		text = malloc(n);
		memset(text, 'x', n);
	}
	(void)evhttp_add_header(evhttp_request_get_output_headers(r),
	    "Content-Type", "application/json");
	(void)evbuffer_add(b, text, n);
	evhttp_send_reply(r, 200, "OK", b);
	evbuffer_free(b);
}

/* A server of one loop, as ours is; its port, and *ret_pid. */
static unsigned int
hello_start(size_t n, pid_t *ret_pid)
{
	struct event_base		*base = event_base_new();
	struct evhttp			*s = evhttp_new(base);
	struct evhttp_bound_socket	*b;
	struct sockaddr_in		 sa = { 0 };
	socklen_t			 salen = sizeof(sa);

	b = evhttp_bind_socket_with_handle(s, "127.0.0.1", 0);
	if (b == NULL || getsockname(evhttp_bound_socket_get_fd(b),
	    (struct sockaddr *)&sa, &salen) == -1)
		return 0;
	evhttp_set_gencb(s, hello, &n);
	if ((*ret_pid = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);	/* not left behind */
		(void)event_reinit(base);
		_exit(event_base_dispatch(base));
	}
	evhttp_free(s);
	event_base_free(base);
	return *ret_pid == -1 ? 0 : ntohs(sa.sin_port);
}

/* Bytes of one answer as it comes off the wire. */
static size_t
answer_size(struct load *l)
{
	l->per_run = l->n;
	return load_run(l) < 0 ? 0 : l->c[0].len;
}

/* The peer, with as many bytes an answer as ours, to a few. */
static int
p17_peer(struct load *l, size_t size, pid_t *ret_pid)
{
	char		host[32];
	size_t		head;
	unsigned int	port;

	if ((port = hello_start(100, ret_pid)) == 0)
		return -1;
	(void)snprintf(host, sizeof(host), "127.0.0.1:%u", port);
	if (load_open(l, host) == -1)
		return -1;
	head = answer_size(l);
	load_close(l);
	peer_end(*ret_pid);
	if (head < 100 || head > size)
		return -1;
	if ((port = hello_start(size - (head - 100), ret_pid)) == 0)
		return -1;
	(void)snprintf(host, sizeof(host), "127.0.0.1:%u", port);
	return load_open(l, host);
}

int
row_p17(void)
{
	static struct load	l, peer;
	struct bench_stat	a, b;
	static char		box[64], path[128];
	pid_t			pid = -1;
	int			r = -1;

	if (create(box, sizeof(box)) == -1)
		return -1;
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", box);
	l.n = 32;
	l.status = 200;
	l.method = "GET";
	l.path = path;
	peer = l;
	if (load_open(&l, h.host) == 0 && p17_peer(&peer, answer_size(&l),
	    &pid) == 0) {
		l.per_run = peer.per_run = 100 * l.n;
		r = bench_pairs(load_run, &l, load_run, &peer, 2, pairs, &a,
		    &b);
	}
	if (r == 0)
		bench_rate("P17", "GET of a sandbox, 32 clients, /s", 1e6,
		    &a, &b, "libevent's evhttp, as large", 0.6, 1.0);
	load_close(&l);
	load_close(&peer);
	if (pid > 0)
		peer_end(pid);
	return destroy(box) == -1 ? -1 : r;
}
