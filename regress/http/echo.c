/*
 * echo: the HTTP server of apid with handlers that tell what they were
 * asked, for the tests in this directory.
 *
 *	http_echo [-h head_ms] [-b body_ms] [-i idle_ms] [-m max_conns]
 *	    [-a allowed-host] [-p trusted-proxy] [-n] [-s bytes] [-t PEM]
 *	    unix|tcp PATH|PORT
 *
 * Prints the port (tcp; 0: any) or "ready" and serves until SIGTERM, which
 * stops it gracefully.  -n: at most 64 descriptors.  -s: what a connection's
 * socket holds back, SO_SNDBUF.  -t: TLS, by certificate and key of that file,
 * which SIGHUP reads again.
 *
 * events: ?limit=N writes N lines of 1,000 bytes, with the back-pressure of
 * http.h; without limit it lasts until the client goes.  session_get:
 * ?wait=N answers after N x 100 ms, or when the client goes.  healthz: the
 * counts of the server.
 */

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <netinet/in.h>

#include <err.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cert.h"
#include "http.h"
#include "log.h"
#include "schema.h"
#include "xmalloc.h"

static struct event_base	*base;
static struct http_server	*server;
static unsigned int		 gone[2], calls, drains;
static size_t			 most;
static const char		*tls_file;
static int			 sndbuf;

/* ---- handlers ------------------------------------------------------------ */

static json_t *
told(struct http_req *r)
{
	const struct route_query	*q;
	json_t				*query = json_object();
	const char			*v;
	size_t				 len;

	for (q = http_route(r)->query; q->name != NULL; q++)
		if ((v = http_query(r, q->name)) != NULL)
			json_object_set_new(query, q->name, json_string(v));
	(void)http_body(r, &len);
	calls++;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:O?, s:I}",
	    "route", http_route(r)->name, "method", http_method(r),
	    "path", http_path(r), "peer", http_peer(r),
	    "id", http_param(r, "id"), "sid", http_param(r, "sid"),
	    "query", query, "json", http_json(r), "bodyLen",
	    (json_int_t)len);
}

#define ECHO(n)								\
void									\
api_##n(struct http_req *r)						\
{									\
	http_reply_json(r, 200, told(r));				\
}
ECHO(sandbox_create)
ECHO(sandbox_list)
ECHO(sandbox_get)
ECHO(sandbox_delete)
ECHO(sandbox_proof)
ECHO(sandbox_launch_log)
ECHO(sandbox_release)
ECHO(sandbox_evidence)
ECHO(sandbox_denials)
ECHO(sandbox_network)
ECHO(sandbox_network_get)
ECHO(exec)
ECHO(metrics)
ECHO(reconcile)
ECHO(session_create)
ECHO(session_list)
ECHO(session_output)
ECHO(session_stdin)
ECHO(version)

void
api_session_signal(struct http_req *r)
{
	http_reply_empty(r);
}

void
api_healthz(struct http_req *r)
{
	unsigned int	conns, reqs;

	http_server_count(server, &conns, &reqs);
	http_reply_json(r, 200, json_pack(
	    "{s:i, s:i, s:i, s:i, s:i, s:i, s:I}", "conns", (int)conns,
	    "reqs", (int)reqs, "gone", (int)gone[HTTP_GONE_CLIENT],
	    "stopping", (int)gone[HTTP_GONE_STOPPING], "calls", (int)calls,
	    "drains", (int)drains, "most", (json_int_t)most));
}

static void
later_answer(struct http_req *r, void *arg)
{
	(void)arg;
	http_reply_json(r, 200, told(r));
}

static void
later_gone(struct http_req *r, enum http_gone why, void *arg)
{
	(void)arg;
	gone[why]++;
	http_fail(r, CODE_STOPPING, NULL, "gone: %d", (int)why);
}

void
api_session_get(struct http_req *r)
{
	http_on_gone(r, later_gone, NULL);
	http_timer(r, 100 * http_query_u64(r, "wait", 0), later_answer,
	    NULL);
}

static void
stream_some(struct http_req *r, void *arg)
{
	char		 line[1000];
	uintptr_t	 left = (uintptr_t)http_data(r);

	if (arg != NULL)
		drains++;
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	while (left > 0) {
		if (HTTP_QUEUE_MAX - http_room(r) > most)
			most = HTTP_QUEUE_MAX - http_room(r);
		switch (http_write(r, line, sizeof(line))) {
		case 0:
			http_set_data(r, (void *)left);
			return;
		case -1:
			http_end(r);
			return;
		default:
			left--;
			break;
		}
	}
	http_set_data(r, NULL);
	if (http_query(r, "limit") == NULL)
		return;
	if (http_query(r, "after") != NULL)
		http_abort(r);
	else
		http_end(r);
}

static void
stream_gone(struct http_req *r, enum http_gone why, void *arg)
{
	(void)arg;
	gone[why]++;
	http_abort(r);
}

void
api_events(struct http_req *r)
{
	http_on_gone(r, stream_gone, NULL);
	http_on_drain(r, stream_some, base);
	http_set_data(r, (void *)(uintptr_t)http_query_u64(r, "limit", 1));
	http_stream(r, 200, "application/x-ndjson");
	stream_some(r, NULL);
}

/* ---- the rest ---------------------------------------------------------- */

static int
authorize(struct http_req *r, void *arg)
{
	const char	*v = http_header(r, "Authorization");

	(void)arg;
	if (v == NULL || strcmp(v, "Bearer secret") != 0) {
		http_fail(r, CODE_UNAUTHORIZED, NULL, "a key is needed");
		return -1;
	}
	http_set_caller(r, "default", "key");
	return 0;
}

static int
listen_on(const char *kind, const char *where)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	struct sockaddr_in	in = { .sin_family = AF_INET,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t		len = sizeof(in);
	int			fd, on = 1, tcp = strcmp(kind, "tcp") == 0;

	fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (tcp)
		in.sin_port = htons((uint16_t)strtoul(where, NULL, 10));
	else if (str_copy(un.sun_path, where, sizeof(un.sun_path)) == -1)
		errx(2, "path too long");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (sndbuf != 0)	/* those of its connections are as its own */
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf,
		    sizeof(sndbuf));
	if (bind(fd, tcp ? (struct sockaddr *)&in : (struct sockaddr *)&un,
	    tcp ? sizeof(in) : sizeof(un)) == -1 || listen(fd, 1024) == -1)
		err(2, "%s", where);
	if (tcp && getsockname(fd, (struct sockaddr *)&in, &len) == 0)
		printf("%u\n", ntohs(in.sin_port));
	else
		puts("ready");
	(void)fflush(stdout);
	return fd;
}

static void
stopped(void *arg)
{
	(void)arg;
	(void)event_base_loopbreak(base);
}

static void
on_term(evutil_socket_t fd, short what, void *arg)
{
	(void)fd; (void)what; (void)arg;
	http_server_stop(server, stopped, NULL);
}

/* As apid's tls.c does. */
static void
on_hup(evutil_socket_t fd, short what, void *arg)
{
	static char	text[CERT_PEM_MAX];
	char		why[CERT_WHY];
	struct cert	c;
	enum cert_part	part;
	FILE		*fp = fopen(tls_file, "r");
	size_t		n;

	(void)fd; (void)what; (void)arg;
	if (fp == NULL)
		err(2, "%s", tls_file);
	n = fread(text, 1, sizeof(text), fp);
	(void)fclose(fp);	/* read only */
	if (cert_load(text, n, text, n, &c, &part, why) == -1)
		log_warnx("kept: %s", why);
	else
		http_server_tls(server, c.ctx);
}

int
main(int argc, char *argv[])
{
	struct http_conf	 conf = { .authorize = authorize };
	struct wire_bin		 host, proxy;
	struct rlimit		 few = { 64, 64 };
	struct event		*term, *hup;
	int			 ch;

	log_init("echo", LOG_L_WARN, 0);
	while ((ch = getopt(argc, argv, "a:b:h:i:m:np:s:t:")) != -1) {
		switch (ch) {
		case 'a':
			host = wire_cstr(optarg);
			conf.allowed_host = (struct wire_list){ &host, 1 };
			break;
		case 'b':
			conf.body_ms = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'h':
			conf.head_ms = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'i':
			conf.idle_ms = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'm':
			conf.max_conns = (unsigned int)strtoul(optarg, NULL,
			    10);
			break;
		case 'n':
			(void)setrlimit(RLIMIT_NOFILE, &few);
			break;
		case 'p':
			proxy = wire_cstr(optarg);
			conf.trusted_proxy = (struct wire_list){ &proxy, 1 };
			break;
		case 's':
			sndbuf = (int)strtol(optarg, NULL, 10);
			break;
		case 't':
			tls_file = optarg;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2)
		return 2;
	schema_init();
	base = conf.base = event_base_new();
	conf.stop_ms = 2000;
	server = http_server_new(&conf);
	term = evsignal_new(base, SIGTERM, on_term, NULL);
	(void)event_add(term, NULL);
	hup = evsignal_new(base, SIGHUP, on_hup, NULL);
	if (tls_file != NULL) {
		cert_init();
		on_hup(-1, 0, NULL);
		(void)event_add(hup, NULL);
		(void)signal(SIGPIPE, SIG_IGN);
	}
	ch = listen_on(argv[optind], argv[optind + 1]);
	if (http_server_listen(server, ch, strcmp(argv[optind], "tcp") == 0 ?
	    HTTP_TCP : HTTP_UNIX) == -1)
		err(2, "listen");
	(void)event_base_dispatch(base);
	event_free(term);
	event_free(hup);
	http_server_free(server);
	event_base_free(base);
	return 0;
}
