/*
 * http.c: the least client that can drive the API: one connection, answers
 * with Content-Length or chunked, read whole.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

int
http_open(struct http *h, const char *host_port, const char *token)
{
	struct sockaddr_in	sa = { .sin_family = AF_INET };
	const char		*colon = strrchr(host_port, ':');
	int			 one = 1;

	memset(h, 0, sizeof(*h));
	(void)snprintf(h->host, sizeof(h->host), "%s", host_port);
	(void)snprintf(h->token, sizeof(h->token), "%s", token);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sa.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	if ((h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1 ||
	    connect(h->fd, (struct sockaddr *)&sa, sizeof(sa)) == -1) {
		perror("connect");
		return -1;
	}
	(void)setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

void
http_shut(struct http *h)
{
	close(h->fd);
	free(h->body);
	h->body = NULL;
}

static int
send_all(int fd, const char *p, size_t n)
{
	ssize_t	w;

	for (; n > 0; p += w, n -= (size_t)w)
		if ((w = send(fd, p, n, MSG_NOSIGNAL)) <= 0)
			return -1;
	return 0;
}

/* Reads more behind *len into *buf; grows it; keeps it terminated. */
static int
more(struct http *h, char **buf, size_t *len, size_t *cap)
{
	ssize_t	n;

	if (*len + 65536 > *cap) {
		*cap = *cap * 2 + 65536 * 2;
		if ((*buf = realloc(*buf, *cap + 1)) == NULL)
			return -1;
	}
	if ((n = recv(h->fd, *buf + *len, *cap - *len, 0)) <= 0)
		return -1;
	*len += (size_t)n;
	(*buf)[*len] = '\0';
	return 0;
}

ssize_t
http_unchunk(char *p, size_t len, char *out)
{
	char	*end = p + len, *nl;
	size_t	 n, o = 0;

	for (;;) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			return -1;
		n = strtoul(p, NULL, 16);
		if ((size_t)(end - nl) < n + 3)
			return -1;
		if (n == 0)
			return (ssize_t)o;
		memcpy(out + o, nl + 1, n);
		o += n;
		p = nl + 1 + n + 2;
	}
}

int
http_send(struct http *h, const char *method, const char *path,
    const char *json)
{
	static char	req[65536];
	int		n;

	n = snprintf(req, sizeof(req), "%s %s HTTP/1.1\r\nHost: %s\r\n"
	    "Authorization: Bearer %s\r\n%s%s%s%sContent-Length: %zu\r\n"
	    "\r\n%s", method, path, h->host, h->token,
	    h->accept == NULL ? "" : "Accept: ",
	    h->accept == NULL ? "" : h->accept,
	    h->accept == NULL ? "" : "\r\n", json == NULL ? "" :
	    "Content-Type: application/json\r\n",
	    json == NULL ? 0 : strlen(json), json == NULL ? "" : json);
	return send_all(h->fd, req, (size_t)n);
}

ssize_t
http_read(struct http *h, char *buf, size_t n)
{
	return recv(h->fd, buf, n, 0);
}

int
http_whole(const char *buf, size_t len)
{
	const char	*body = strstr(buf, "\r\n\r\n");
	const char	*p = strcasestr(buf, "\nContent-Length:");
	size_t		 want = 0;

	if (body == NULL)
		return 0;
	if (p != NULL && p < body)
		want = strtoul(p + 16, NULL, 10);
	if (len < (size_t)(body + 4 - buf) + want)
		return 0;
	return (int)strtol(buf + 9, NULL, 10);
}

int
http_call(struct http *h, const char *method, const char *path,
    const char *json)
{
	char		*buf = NULL, *body, *cl;
	size_t		 len = 0, cap = 0, want;
	int		 n, status, chunked;

	if (http_send(h, method, path, json) == -1)
		return -1;
	do {
		if (more(h, &buf, &len, &cap) == -1) {
			free(buf);
			return -1;
		}
	} while ((body = strstr(buf, "\r\n\r\n")) == NULL);
	status = (int)strtol(buf + 9, NULL, 10);
	*body = '\0';
	cl = strcasestr(buf, "\nContent-Length:");
	chunked = strcasestr(buf, "\nTransfer-Encoding: chunked") != NULL;
	want = cl != NULL ? strtoul(cl + 16, NULL, 10) : 0;
	free(h->body);
	h->body = NULL;
	n = (int)(body + 4 - buf);
	if (chunked) {
		ssize_t	r;
		char	*out = NULL;

		for (;;) {
			out = realloc(out, len + 1);
			if ((r = http_unchunk(buf + n, len - (size_t)n, out)) != -1)
				break;
			if (more(h, &buf, &len, &cap) == -1)
				break;
		}
		h->body = out;
		h->len = r < 0 ? 0 : (size_t)r;
	} else {
		while (len < (size_t)n + want)
			if (more(h, &buf, &len, &cap) == -1) {
				free(buf);
				return -1;
			}
		h->body = malloc(want + 1);
		memcpy(h->body, buf + n, want);
		h->len = want;
	}
	h->body[h->len] = '\0';
	free(buf);
	return status;
}

const char *
http_member(const struct http *h, const char *name)
{
	static char	 val[256];
	char		 key[64];
	const char	*p;
	size_t		 n = 0;

	(void)snprintf(key, sizeof(key), "\"%s\":", name);
	if ((p = strstr(h->body, key)) == NULL)
		return NULL;
	p += strlen(key);
	while (*p == ' ' || *p == '"')
		p++;
	while (*p != '\0' && strchr("\",}\n", *p) == NULL && n < 255)
		val[n++] = *p++;
	val[n] = '\0';
	return val;
}
