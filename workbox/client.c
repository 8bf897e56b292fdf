/*
 * client: requests to the server, over TCP or a unix socket, by libcurl.
 *
 * All requests of the process go through one multi handle, so that
 * connections are used again; a request is run to its end by req_run(), or
 * started and moved on with others by multi_step().  Redirects are never
 * followed, and a proxy of the environment is never asked for this host, so
 * that the key goes nowhere else.
 */
#include <sys/types.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "workbox.h"
#include "xmalloc.h"

#define ANSWER_MAX	(32UL * 1024 * 1024)	/* bytes of a whole answer */
#define TOKEN_MAX	4096
#define CONNECT_MS	10000L
#define PAGES_MAX	10000			/* of a list */

struct req {
	CURL			*easy;		/* owned */
	struct curl_slist	*head;		/* owned */
	char			*answer;	/* owned */
	size_t			 len;
	int			(*sink)(const char *, size_t, void *);
	void			*arg;		/* borrowed: sink's */
	long			 status;
	CURLcode		 result;
	int			 added, done;
	char			 err[CURL_ERROR_SIZE];
};

static struct {
	CURLM		*multi;
	const char	*given;			/* borrowed: argv, environ */
	char		*base;			/* owned; without last slash */
	char		*auth;			/* owned; header, or NULL */
	const char	*sock;			/* borrowed: path, or NULL */
	int		 local;			/* this host */
	const char	*cacert;		/* borrowed; file, or NULL */
	long		 limit_ms;		/* of each request; 0: none */
	char		*about;			/* owned; "OPERAND: " or NULL */
	char		*(*field_fn)(const char *);	/* or NULL */
} cl;

/* ---- where and who ----------------------------------------------------- */

/* Holds the URL against what a server's may be. */
static int
check_url(const char *url)
{
	CURLU		*u = curl_url();
	char		*scheme = NULL, *host = NULL, *path = NULL,
			*more = NULL;
	int		 rc = -1;

	if (u == NULL || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
	    strcmp(path, "/") != 0 ||
	    curl_url_get(u, CURLUPART_QUERY, &more, 0) == CURLUE_OK ||
	    curl_url_get(u, CURLUPART_FRAGMENT, &more, 0) == CURLUE_OK ||
	    curl_url_get(u, CURLUPART_USER, &more, 0) == CURLUE_OK)
		goto out;
	cl.local = strcmp(host, "localhost") == 0 ||
	    strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
	if (!cl.local && strcmp(scheme, "http") == 0)
		note("the key goes to %s in clear", host);
	rc = 0;
out:
	curl_free(scheme);
	curl_free(host);
	curl_free(path);
	curl_free(more);
	curl_url_cleanup(u);
	return rc;
}

static int
set_server(const struct args *a)
{
	const char	*where, *server;
	size_t		 len;

	server = setting(a, "server", "WORKBOX_SERVER", SET_SERVER, &where);
	if (server == NULL)
		server = WB_SERVER;
	cl.given = server;
	if (strncmp(server, "unix:", 5) == 0) {
		cl.sock = server + 5;
		cl.local = 1;
		cl.base = xstrdup("http://localhost");
		if (*cl.sock != '\0')
			return 0;
	} else if (check_url(server) == 0) {
		cl.base = xstrdup(server);
		for (len = strlen(cl.base); cl.base[len - 1] == '/'; len--)
			cl.base[len - 1] = '\0';
		return 0;
	}
	return fail("%s: expected http://HOST:PORT, https://HOST:PORT "
	    "or unix:PATH, not \"%s\"", where, server);
}

/* Of a server that proves who it is; others have no use for it. */
static int
set_ca(const struct args *a)
{
	const char	*where, *ca;

	ca = setting(a, "cacert", "WORKBOX_CACERT", SET_CACERT, &where);
	if (ca == NULL || strncasecmp(cl.given, "https:", 6) != 0)
		return 0;
	if (access(ca, R_OK) == -1)
		return fail_errno("%s %s", where, ca);
	cl.cacert = ca;
	return 0;
}

static int
set_token(const struct args *a)
{
	auto_free char	*text = NULL;
	const char	*where, *file = args_get(a, "token-file");
	const char	*token = NULL, *p;
	size_t		 len;

	if (file == NULL)
		token = getenv("WORKBOX_TOKEN");
	if (token == NULL || *token == '\0') {
		file = setting(a, "token-file", NULL, SET_TOKEN_FILE, &where);
		text = text_file(file != NULL ? file : WB_TOKEN_FILE,
		    TOKEN_MAX, &len);
		if (text == NULL && file != NULL)
			return fail_errno("%s %s", where, file);
		if (text == NULL)
			return 0;	/* the server says that one is due */
		while (len > 0 && strchr("\r\n \t", text[len - 1]) != NULL)
			text[--len] = '\0';
		token = text;
	}
	for (p = token; *p > 0x20 && *p < 0x7f; p++)
		;
	if (*p != '\0' || p == token)
		return fail("%s: expected a key of printable characters",
		    text == NULL ? "WORKBOX_TOKEN" :
		    file != NULL ? file : WB_TOKEN_FILE);
	cl.auth = xasprintf("Authorization: Bearer %s", token);
	return 0;
}

int
client_init(const struct args *a)
{
	int	rc;

	if ((rc = settings_load()) != 0)
		return rc;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (cl.multi = curl_multi_init()) == NULL)
		return fail("start libcurl");
	if ((rc = set_server(a)) != 0 || (rc = set_ca(a)) != 0)
		return rc;
	if (a->noperand > 0)
		cl.about = xasprintf("%s%s%s: ", a->operand[0],
		    a->noperand > 1 ? " " : "",
		    a->noperand > 1 ? a->operand[1] : "");
	return set_token(a);
}

void
client_limit(long ms)
{
	cl.limit_ms = ms;
}

void
client_about(const char *operand)
{
	free(cl.about);
	cl.about = operand == NULL ? NULL : xasprintf("%s: ", operand);
}

const char *
client_server(void)
{
	return cl.given;
}

void
client_fields(char *(*fn)(const char *))
{
	cl.field_fn = fn;
}

/* ---- paths ------------------------------------------------------------- */

static char *
encode(const char *s)
{
	char	*enc = curl_easy_escape(NULL, s, 0), *ret;

	/* curl keeps dots: a part of only dots would be another path. */
	if (enc == NULL)
		ret = xstrdup("");
	else if (strcmp(enc, ".") == 0)
		ret = xstrdup("%2E");
	else if (strcmp(enc, "..") == 0)
		ret = xstrdup("%2E%2E");
	else
		ret = xstrdup(enc);
	curl_free(enc);
	return ret;
}

char *
client_path(const char *first, ...)
{
	char		*path = xstrdup(first), *enc, *next;
	const char	*part;
	va_list		 ap;

	va_start(ap, first);
	while ((part = va_arg(ap, const char *)) != NULL) {
		enc = encode(part);
		next = xasprintf("%s/%s", path, enc);
		free(enc);
		free(path);
		path = next;
	}
	va_end(ap);
	return path;
}

void
client_query(char **path, const char *key, const char *value)
{
	char	*enc = encode(value), *next;

	next = xasprintf("%s%c%s=%s", *path,
	    strchr(*path, '?') == NULL ? '?' : '&', key, enc);
	free(enc);
	free(*path);
	*path = next;
}

/* ---- requests ---------------------------------------------------------- */

static size_t
on_body(char *data, size_t one, size_t n, void *arg)
{
	struct req	*r = arg;
	int		 rc;

	(void)one;
	if (r->status == 0)
		(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE,
		    &r->status);
	if (r->sink != NULL && r->status / 100 == 2) {
		rc = r->sink(data, n, r->arg);
		return rc == 1 ? CURL_WRITEFUNC_PAUSE : rc == 0 ? n : 0;
	}
	if (n > ANSWER_MAX - r->len)
		return 0;
	r->answer = xreallocarray(r->answer, r->len + n + 1, 1);
	memcpy(r->answer + r->len, data, n);
	r->len += n;
	r->answer[r->len] = '\0';
	return n;
}

static void
header(struct req *r, const char *line)
{
	struct curl_slist	*more = curl_slist_append(r->head, line);

	if (more != NULL)
		r->head = more;
}

#define SET(r, o, v)	(void)curl_easy_setopt((r)->easy, o, v)

struct req *
req_new(const char *method, const char *path)
{
	struct req	*r = xcalloc(1, sizeof *r);
	char		*url = xasprintf("%s%s", cl.base, path);

	if ((r->easy = curl_easy_init()) == NULL)
		abort();	/* out of memory, as for xmalloc */
	SET(r, CURLOPT_URL, url);
	free(url);
	SET(r, CURLOPT_CUSTOMREQUEST, method);
	SET(r, CURLOPT_PRIVATE, (void *)r);
	SET(r, CURLOPT_ERRORBUFFER, r->err);
	SET(r, CURLOPT_WRITEFUNCTION, on_body);
	SET(r, CURLOPT_WRITEDATA, (void *)r);
	SET(r, CURLOPT_NOSIGNAL, 1L);
	SET(r, CURLOPT_PATH_AS_IS, 1L);
	SET(r, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(r, CURLOPT_USERAGENT, "workbox/" PACKAGE_VERSION);
	SET(r, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	SET(r, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(r, CURLOPT_TCP_KEEPIDLE, 30L);
	SET(r, CURLOPT_TCP_KEEPINTVL, 10L);
	SET(r, CURLOPT_BUFFERSIZE, 262144L);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(r, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(r, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	if (cl.sock != NULL)
		SET(r, CURLOPT_UNIX_SOCKET_PATH, cl.sock);
	if (cl.local)
		SET(r, CURLOPT_NOPROXY, "*");
	if (cl.cacert != NULL)
		SET(r, CURLOPT_CAINFO, cl.cacert);
	if (cl.limit_ms != 0)
		SET(r, CURLOPT_TIMEOUT_MS, cl.limit_ms);
	if (cl.auth != NULL)
		header(r, cl.auth);
	header(r, "Expect:");
	if (strcmp(method, "POST") == 0)
		SET(r, CURLOPT_POSTFIELDSIZE, 0L);
	return r;
}

void
req_free(struct req *r)
{
	if (r == NULL)
		return;
	if (r->added)
		(void)curl_multi_remove_handle(cl.multi, r->easy);
	curl_easy_cleanup(r->easy);
	curl_slist_free_all(r->head);
	free(r->answer);
	free(r);
}

void
req_bytes(struct req *r, const void *data, size_t len)
{
	SET(r, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	SET(r, CURLOPT_COPYPOSTFIELDS, (const char *)data);
	header(r, "Content-Type: application/octet-stream");
}

void
key_new(char ret[33])
{
	unsigned char	 b[16];
	FILE		*fp = fopen("/dev/urandom", "r");
	size_t		 i;

	if (fp == NULL || fread(b, sizeof b, 1, fp) != 1)
		exit(fail("/dev/urandom: expected random bytes"));
	(void)fclose(fp);
	for (i = 0; i < sizeof b; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", b[i]);
}

void
req_key(struct req *r, const char *key)
{
	char	*line = xasprintf("Idempotency-Key: %s", key);

	header(r, line);
	free(line);
}

void
req_json(struct req *r, json_t *j)
{
	char	*text = json_dumps(j, JSON_COMPACT);

	json_decref(j);
	if (text == NULL)
		abort();	/* out of memory, as for xmalloc */
	SET(r, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
	SET(r, CURLOPT_COPYPOSTFIELDS, text);
	header(r, "Content-Type: application/json");
	free(text);
}

void
req_sink(struct req *r, int (*fn)(const char *, size_t, void *), void *arg)
{
	r->sink = fn;
	r->arg = arg;
}

void
req_header(struct req *r, const char *line)
{
	header(r, line);
}

const char *
req_type(const struct req *r)
{
	char	*type = NULL;

	(void)curl_easy_getinfo(r->easy, CURLINFO_CONTENT_TYPE, &type);
	return type == NULL ? "" : type;
}

void
req_resume(struct req *r)
{
	(void)curl_easy_pause(r->easy, CURLPAUSE_CONT);
}

void
req_start(struct req *r)
{
	SET(r, CURLOPT_HTTPHEADER, r->head);
	r->added = curl_multi_add_handle(cl.multi, r->easy) == CURLM_OK;
	if (!r->added) {
		r->result = CURLE_FAILED_INIT;
		r->done = 1;
	}
}

/* Takes up what has ended. */
static void
collect(void)
{
	CURLMsg		*m;
	struct req	*r;
	char		*p;
	int		 left;

	while ((m = curl_multi_info_read(cl.multi, &left)) != NULL) {
		if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle,
		    CURLINFO_PRIVATE, &p) != CURLE_OK)
			continue;
		r = (struct req *)(void *)p;
		r->result = m->data.result;
		(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE,
		    &r->status);
		r->done = 1;
	}
}

/*
 * Waits first: between the caller's choice of what to wait for and the wait
 * no sink may run, else what it has just queued would not be waited for.  A
 * request that was just started or resumed does not make this wait.
 */
void
multi_step(struct curl_waitfd *fds, unsigned int n, int ms)
{
	int	running;

	(void)curl_multi_poll(cl.multi, fds, n, ms, NULL);
	(void)curl_multi_perform(cl.multi, &running);
	collect();
}

int
req_run(struct req *r)
{
	req_start(r);
	while (!r->done)
		multi_step(NULL, 0, 60000);
	return req_ok(r) ? 0 : -1;
}

int
req_done(const struct req *r)
{
	return r->done;
}

int
req_ok(const struct req *r)
{
	return r->done && r->result == CURLE_OK && r->status / 100 == 2;
}

long
req_status(const struct req *r)
{
	long	status = r->status;

	if (!r->done)
		(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE,
		    &status);
	return status;
}

int
req_unsent(const struct req *r)
{
	return r->result == CURLE_COULDNT_CONNECT ||
	    r->result == CURLE_COULDNT_RESOLVE_HOST;
}

/* A refusal that stands: the host has no place for what is asked. */
static int
is_full(const struct req *r)
{
	json_t		*j = req_answer(r);
	const char	*code = json_str(j, "code");
	int		 full = strcmp(code, "host-memory") == 0 ||
			    strcmp(code, "no-room") == 0;

	json_decref(j);
	return full;
}

int
req_retry(const struct req *r)
{
	switch ((int)r->result) {
	case CURLE_OK:
		return r->status == 502 || r->status == 504 ||
		    (r->status == 503 && !is_full(r));
	case CURLE_COULDNT_CONNECT:
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_OPERATION_TIMEDOUT:
		return 1;
	default:
		return 0;
	}
}

json_t *
req_answer(const struct req *r)
{
	if (r->answer == NULL)
		return NULL;
	return json_loadb(r->answer, r->len, JSON_ALLOW_NUL, NULL);
}

/* ---- what went wrong --------------------------------------------------- */

int
problem_exit(const char *code)
{
	if (strcmp(code, "command-not-found") == 0)
		return EXIT_MISSING;
	if (strcmp(code, "command-not-executable") == 0 ||
	    strcmp(code, "bad-cwd") == 0 ||
	    strcmp(code, "user-unknown") == 0)
		return EXIT_CANNOT;
	return EXIT_OURS;
}

static const char *
about(void)
{
	return cl.about != NULL ? cl.about : "";
}

/* The lines with which a create that failed says why. */
static void
launch_log(const json_t *log)
{
	const json_t	*line;
	size_t		 i;

	if (json_is_string(log))
		note("launch log: %s", json_string_value(log));
	for (i = 0; i < json_array_size(log); i++) {
		line = json_array_get(log, i);
		if (json_is_string(line))
			note("launch log: %s", json_string_value(line));
	}
}

static int
problem(const struct req *r)
{
	json_t		*j = req_answer(r);
	const char	*code = json_str(j, "code");
	const char	*detail = json_str(j, "detail");
	const char	*field = json_str(j, "field");
	auto_free char	*words = cl.field_fn == NULL ? NULL :
			    cl.field_fn(field);
	int		 rc = problem_exit(code);

	if (words != NULL)
		field = words;
	if (*detail == '\0')
		detail = json_str(j, "title");
	if (*detail != '\0')
		(void)fail("%s%s%s%s%s%s%s", about(), field,
		    *field != '\0' ? ": " : "", detail, *code != '\0' ?
		    " (" : "", code, *code != '\0' ? ")" : "");
	else
		(void)fail("%s%s answered %ld", about(), cl.given,
		    r->status);
	if (r->status == 401 && cl.auth == NULL)
		note("no key: set WORKBOX_TOKEN or give --token-file");
	launch_log(json_object_get(j, "launchLog"));
	json_decref(j);
	return rc;
}

/* Of a connection that was not made; 0: not known. */
static int
os_errno(const struct req *r)
{
	long	err = 0;

	return curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &err) ==
	    CURLE_OK ? (int)err : 0;
}

/* What curl says; of a unix socket it would name a port that is none. */
static const char *
curl_why(const struct req *r)
{
	int	err = os_errno(r);

	if (cl.sock != NULL && err != 0)
		return strerror(err);
	return *r->err != '\0' && cl.sock == NULL ? r->err :
	    curl_easy_strerror(r->result);
}

/*
 * Which check a server's certificate did not stand, with what to do: by
 * OpenSSL's number where libcurl has it (X509_V_ERR_*, stable), else what
 * libcurl says stands alone.
 */
static const char *
cert_cure(const struct req *r)
{
	long	v = 0;

	(void)curl_easy_getinfo(r->easy, CURLINFO_SSL_VERIFYRESULT, &v);
	switch (v) {
	case 0: case 1:			/* not known, or it came later */
		return strstr(r->err, "name") == NULL ?
		    "--cacert FILE says whom to trust" :
		    "the certificate is for another name: ask by one of its "
		    "names";
	case 9:
		return "the certificate is not valid yet: is the clock "
		    "right, here and there?";
	case 10:
		return "the certificate has expired: the server needs a new "
		    "one";
	case 2: case 18: case 19: case 20: case 21:
		return "nobody who is trusted has signed the certificate: "
		    "--cacert FILE says whom to trust";
	default:
		return "the certificate does not fit";
	}
}

int
req_fail(const struct req *r)
{
	if (r->result == CURLE_OK)
		return problem(r);
	if (cl.sock != NULL && req_unsent(r) && os_errno(r) == EACCES)
		return fail("%sreach %s: %s; only root and the group "
		    "workbox may", about(), cl.given, curl_why(r));
	if (req_unsent(r))
		return fail("%sreach %s: %s; is \"workbox serve\" running "
		    "there?", about(), cl.given, curl_why(r));
	if (r->result == CURLE_PEER_FAILED_VERIFICATION)
		return fail("%sask %s: %s; %s", about(), cl.given,
		    curl_why(r), cert_cure(r));
	if (r->result == CURLE_SSL_CACERT_BADFILE)
		return fail("%s%s: expected certificates in PEM", about(),
		    cl.cacert != NULL ? cl.cacert : "the system's trust");
	if (r->result == CURLE_SSL_CONNECT_ERROR)
		return fail("%sask %s: %s; does it speak TLS?", about(),
		    cl.given, curl_why(r));
	return fail("%sask %s: %s", about(), cl.given, curl_why(r));
}

int
client_call(const char *method, char *path, json_t *body, json_t **ret)
{
	struct req	*r = req_new(method, path);
	json_t		*answer = NULL;
	int		 rc = 0;

	free(path);
	if (body != NULL)
		req_json(r, body);
	if (req_run(r) == -1)
		rc = req_fail(r);
	else if (ret != NULL && (answer = req_answer(r)) == NULL)
		rc = fail("%s%s answered %ld without JSON", about(),
		    cl.given, r->status);
	req_free(r);
	if (rc == 0 && ret != NULL)
		*ret = answer;
	return rc;
}

int
client_list(char *path, json_t **ret)
{
	auto_free char	*base = path;
	json_t		*all = json_array(), *page = NULL;
	char		*at;
	int		 rc, pages = 0;

	do {
		at = xstrdup(base);
		if (page != NULL)
			client_query(&at, "after", json_str(page,
			    "nextCursor"));
		json_decref(page);
		page = NULL;
		if ((rc = client_call("GET", at, NULL, &page)) != 0)
			break;
		if (json_array_extend(all, json_object_get(page, "items")) ==
		    -1)
			rc = fail("%s answered without items", cl.given);
		else if (++pages > PAGES_MAX)
			rc = fail("%s does not come to the end of its list",
			    cl.given);
	} while (rc == 0 && *json_str(page, "nextCursor") != '\0');
	json_decref(page);
	if (rc == 0)
		*ret = all;
	else
		json_decref(all);
	return rc;
}

/* ---- lines ------------------------------------------------------------- */

int
lines_add(struct lines *l, const char *data, size_t n)
{
	if (n > LINE_MAX_BYTES - l->len)
		return -1;
	if (l->len + n > l->room) {
		l->room = l->len + n < 65536 ? 65536 : l->len + n;
		l->buf = xreallocarray(l->buf, l->room, 1);
	}
	memcpy(l->buf + l->len, data, n);
	l->len += n;
	return 0;
}

void
lines_cut(struct lines *l, size_t n)
{
	l->len -= n;
	memmove(l->buf, l->buf + n, l->len);
}

int
lines_feed(struct lines *l, const char *data, size_t n,
    int (*fn)(char *, size_t, void *), void *arg)
{
	char	*nl;
	size_t	 start = 0, len;
	int	 rc = 0;

	if (lines_add(l, data, n) == -1)
		return -1;
	while (rc == 0 && (nl = memchr(l->buf + start, '\n',
	    l->len - start)) != NULL) {
		*nl = '\0';
		len = (size_t)(nl - (l->buf + start));
		rc = fn(l->buf + start, len, arg);
		start += len + 1;
	}
	lines_cut(l, start);
	return rc;
}

void
lines_free(struct lines *l)
{
	free(l->buf);
	memset(l, 0, sizeof *l);
}
