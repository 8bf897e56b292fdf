/*
 * http_fuzz: the HTTP server of apid, any bytes on a connection: the parser,
 * Host, Origin, X-Forwarded-For, paths, queries, bodies against schemas, and
 * answers, with handlers that tell what they were asked.
 *
 * input: a byte (bit 0: as from TCP, bit 1: the first line of a good request
 * is put before); what a client sends
 *
 * Sent at once and in pieces it is answered with the same; the answers are
 * HTTP with whole JSON in it; nothing is left when the client has gone.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <unistd.h>

#include "../../apid/http.h"
#include "../../apid/schema.h"
#include "fuzz.h"
#include "log.h"
#include "xmalloc.h"

#define INPUT		16384		/* bytes that are sent at most */
#define OUTPUT		(4 * 1024 * 1024)
#define QUIET		3		/* turns without a byte: settled */

struct answers { char text[OUTPUT + 1]; size_t len; };

static struct event_base	*base;
static struct http_server	*server;
static struct sockaddr_un	 name[2];	/* by enum http_listener */

/* ---- handlers ----------------------------------------------------------- */

static json_t *
told(struct http_req *r)
{
	const struct route_query	*q;
	json_t				*query = json_object();
	const char			*v;
	size_t				 len, i;

	for (q = http_route(r)->query; q->name != NULL; q++) {
		for (i = 0; (v = http_query_nth(r, q->name,
		    (unsigned int)i)) != NULL; i++)
			json_object_set_new(query, q->name, json_string(v));
		if (q->kind == RQ_U64 && http_query(r, q->name) != NULL)
			must(http_query_u64(r, q->name, 0) >= q->lo &&
			    http_query_u64(r, q->name, 0) <= q->hi);
	}
	(void)http_body(r, &len);
	must(len <= http_route(r)->body->max);
	must(http_route(r)->body->schema == NULL || http_json(r) != NULL);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:O?, s:I}",
	    "route", http_route(r)->name, "method", http_method(r),
	    "path", http_path(r), "peer", http_peer(r),
	    "id", http_param(r, "id"), "sid", http_param(r, "sid"),
	    "query", query, "json", http_json(r), "bodyLen",
	    (json_int_t)len);
}

#define TELL(n)								\
void									\
api_##n(struct http_req *r)						\
{									\
	http_reply_json(r, 200, told(r));				\
}
TELL(healthz)
TELL(openapi)
TELL(reconcile)
TELL(sandbox_create)
TELL(sandbox_list)
TELL(sandbox_get)
TELL(sandbox_delete)
TELL(sandbox_proof)
TELL(sandbox_launch_log)
TELL(sandbox_release)
TELL(sandbox_evidence)
TELL(sandbox_denials)
TELL(sandbox_network)
TELL(sandbox_network_get)
TELL(exec)
TELL(metrics)
TELL(session_create)
TELL(session_list)
TELL(session_stdin)
TELL(version)

void
api_session_signal(struct http_req *r)
{
	json_decref(told(r));
	http_reply_empty(r);
}

static void
later(struct http_req *r, void *arg)
{
	(void)arg;
	http_reply_json(r, 200, told(r));
}

static void
gone(struct http_req *r, enum http_gone why, void *arg)
{
	(void)why; (void)arg;
	http_fail(r, CODE_STOPPING, NULL, "gone");
}

void
api_session_get(struct http_req *r)
{
	http_on_gone(r, gone, NULL);
	http_timer(r, 0, later, NULL);
}

void
api_session_output(struct http_req *r)
{
	http_stream(r, 200, "application/x-ndjson");
	http_end(r);
}

void
api_events(struct http_req *r)
{
	uint64_t	n = http_query_u64(r, "limit", 1);

	http_stream(r, 200, "application/x-ndjson");
	while (n-- > 0 && http_write_json(r, told(r)) == 1)
		continue;
	http_end(r);
}

static int
authorize(struct http_req *r, void *arg)
{
	const char	*v = http_header(r, "Authorization");

	(void)arg;
	if (v == NULL || strcmp(v, "Bearer s") != 0) {
		http_fail(r, CODE_UNAUTHORIZED, NULL, "a key is needed");
		return -1;
	}
	http_set_caller(r, "default", "key");
	return 0;
}

/* ---- the connection ------------------------------------------------------ */

/* An abstract name: nothing is left of it. */
static void
listen_as(enum http_listener kind)
{
	struct sockaddr_un	*un = &name[kind];
	int			 fd = socket(AF_UNIX, SOCK_STREAM, 0);

	un->sun_family = AF_UNIX;
	(void)snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
	    "workbox-http-fuzz-%d-%d", (int)getpid(), (int)kind);
	must(bind(fd, (struct sockaddr *)un, sizeof(*un)) == 0);
	must(listen(fd, 16) == 0);
	must(http_server_listen(server, fd, kind) == 0);
}

static void
prepare(void)
{
	static struct wire_bin	hosts[2], proxies[3];
	struct http_conf	conf = { .authorize = authorize };

	if (base != NULL)
		return;
	log_init("http_fuzz", LOG_L_ERROR, 0);
	schema_init();
	hosts[0] = wire_cstr("box.example");
	hosts[1] = wire_cstr("[::2]:80");
	proxies[0] = wire_cstr("unix");
	proxies[1] = wire_cstr("::/64");	/* one without a name, too */
	proxies[2] = wire_cstr("10.0.0.0/9");
	must((conf.base = base = event_base_new()) != NULL);
	conf.allowed_host = (struct wire_list){ hosts, 2 };
	conf.trusted_proxy = (struct wire_list){ proxies, 3 };
	server = http_server_new(&conf);
	listen_as(HTTP_TCP);
	listen_as(HTTP_UNIX);
}

/* Turns until nothing comes any more. */
static void
settle(int fd, struct answers *a)
{
	ssize_t	n;
	int	quiet = 0;

	while (quiet < QUIET) {
		must(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
		n = fd == -1 ? -1 : recv(fd, a->text + a->len,
		    OUTPUT - a->len, MSG_DONTWAIT);
		if (n > 0) {
			a->len += (size_t)n;
			must(a->len < OUTPUT);
		}
		quiet = n > 0 ? 0 : quiet + 1;
	}
}

static void
talk(enum http_listener kind, const char *p, size_t len,
    size_t (*step)(size_t), struct answers *a)
{
	auto_close int	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	unsigned int	conns, reqs;
	size_t		n;

	a->len = 0;
	must(connect(fd, (struct sockaddr *)&name[kind],
	    sizeof(name[kind])) == 0);
	for (; len > 0; p += n, len -= n) {
		n = step(len);
		if (send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)n) {
			must(errno == EPIPE);	/* it was closed after an answer */
			break;
		}
		settle(fd, a);
	}
	(void)shutdown(fd, SHUT_WR);	/* may be closed */
	settle(fd, a);
	fd_close(&fd);
	settle(-1, a);
	http_server_count(server, &conns, &reqs);
	must(conns == 0 && reqs == 0);
	a->text[a->len] = '\0';
}

/* ---- answers ----------------------------------------------------------- */

static void
blot(struct answers *a, const char *mark, size_t n)
{
	char	*p = a->text, *end = a->text + a->len;
	size_t	 len = strlen(mark);

	while ((p = memmem(p, (size_t)(end - p), mark, len)) != NULL) {
		p += len;
		must((size_t)(end - p) >= n);
		memset(p, '-', n);
	}
}

/* Makes those alike that only time and chance tell apart. */
static void
plain(struct answers *a)
{
	static const char	go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const size_t		n = sizeof(go_on) - 1;
	char			*p, *end;

	blot(a, "\r\nDate: ", strlen("Sun, 06 Nov 1994 08:49:37 GMT"));
	blot(a, "\r\nX-Request-Id: ", 26);
	blot(a, "\"requestId\":\"", 26);
	end = a->text + a->len;
	p = a->text;
	while ((p = memmem(p, (size_t)(end - p), go_on, n)) != NULL) {
		memmove(p, p + n, (size_t)(end - p) - n + 1);
		end -= n;
	}
	a->len = (size_t)(end - a->text);
}

static void
is_json(const char *p, size_t len)
{
	json_t	*o = json_loadb(p, len, JSON_REJECT_DUPLICATES, NULL);

	must(o != NULL && json_is_object(o));
	json_decref(o);
}

/* NDJSON in chunks, each of them a line.  Where the message ends. */
static const char *
chunks(const char *p, const char *end)
{
	char	*data;
	size_t	 n;

	for (;;) {
		n = strtoul(p, &data, 16);
		must(data > p && data[0] == '\r' && data[1] == '\n');
		p = data + 2;
		must((size_t)(end - p) >= n + 2);
		must(p[n] == '\r' && p[n + 1] == '\n');
		p += n + 2;
		if (n == 0)
			return p;
		must(p[-3] == '\n');
		is_json(p - n - 2, n);
	}
}

static const char *
field(const char *head, const char *end, const char *f)
{
	const char	*p = memmem(head, (size_t)(end - head), f, strlen(f));

	return p == NULL ? NULL : p + strlen(f);
}

/* One answer from p on; where it ends. */
static const char *
answer(const char *p, const char *end)
{
	const char	*body = memmem(p, (size_t)(end - p), "\r\n\r\n", 4), *v;
	unsigned long	 status;
	size_t		 n;

	must(body != NULL && strncmp(p, "HTTP/1.1 ", 9) == 0);
	status = strtoul(p + 9, NULL, 10);
	must(status == 200 || status == 204 || (status >= 400 &&
	    status < 600));
	for (v = p; v < body; v++)
		must((*v >= ' ' && *v <= '~') || (v[0] == '\r' && v[1] ==
		    '\n') || (v > p && v[-1] == '\r' && v[0] == '\n'));
	body += 2;			/* its last line ends before */
	v = field(p, body, "\r\nContent-Length: ");
	p = body + 2;
	if (p == end || strncmp(p, "HTTP/1.1 ", 9) == 0)
		return p;		/* to HEAD, or empty */
	if (v != NULL) {
		n = strtoul(v, NULL, 10);
		must(n <= (size_t)(end - p));
		is_json(p, n);
		return p + n;
	}
	if (*p == '{')
		return end;		/* to HTTP/1.0, until it closes */
	return chunks(p, end);
}

static void
well_formed(const struct answers *a)
{
	const char	*p = a->text, *end = a->text + a->len;

	while (p < end)
		p = answer(p, end);
}

/* ---- one input --------------------------------------------------------- */

static uint32_t	cuts;

static size_t
step_all(size_t left)
{
	return left;
}

static size_t
step_some(size_t left)
{
	uint32_t	v = dice(&cuts);
	size_t		n = 1 + (v & 1 ? v >> 8 & 7 : v >> 8 & 255);

	return n < left ? n : left;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char	good[] = "POST /v1/sandboxes HTTP/1.1\r\n"
	    "Host: localhost\r\nAuthorization: Bearer s\r\n"
	    "Content-Type: application/json\r\n";
	static struct answers	whole, split;
	static char		text[sizeof(good) + INPUT];
	struct bytes		b = { data, len };
	unsigned int		how = take_u8(&b);
	enum http_listener	kind = how & 1 ? HTTP_TCP : HTTP_UNIX;
	size_t			n = how & 2 ? sizeof(good) - 1 : 0;

	if (b.n > INPUT)
		return 0;
	prepare();
	memcpy(text, good, n);
	if (b.n > 0)
		memcpy(text + n, b.p, b.n);
	n += b.n;
	cuts = dice_seed(data, len);
	talk(kind, text, n, step_all, &whole);
	talk(kind, text, n, step_some, &split);
	plain(&whole);
	plain(&split);
	must(whole.len == split.len);
	must(memcmp(whole.text, split.text, whole.len) == 0);
	well_formed(&whole);
	return 0;
}
