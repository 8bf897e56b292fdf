/*
 * apid_client.c: see apid_client.h.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_client.h"
#include "xmalloc.h"

static int
client(const struct world *wd)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET };
	struct timeval		tv = { 20, 0 };
	int			fd;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_port = htons((uint16_t)wd->port);
	if ((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1)
		err(1, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == -1)
		err(1, "connect");
	return fd;
}

int
world_http(const struct world *wd, const char *method, const char *path,
    const char *body, char **ret_body)
{
	auto_close int	 fd = client(wd);
	auto_free char	*req = NULL, *in = xmalloc(8 * 1024 * 1024);
	size_t		 len = 0;
	ssize_t		 n;
	char		*p;

	req = xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Authorization: Bearer %s\r\nConnection: close\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    method, path, wd->port, wd->token, body == NULL ? 0 : strlen(body),
	    body == NULL ? "" : body);
	if (send(fd, req, strlen(req), MSG_NOSIGNAL) == -1)
		return -1;
	while (len < 8 * 1024 * 1024 - 1 && (n = recv(fd, in + len,
	    8 * 1024 * 1024 - 1 - len, 0)) > 0)
		len += (size_t)n;
	in[len] = '\0';
	if (len < 12 || strncmp(in, "HTTP/1.1 ", 9) != 0)
		return -1;
	if (ret_body != NULL) {
		p = strstr(in, "\r\n\r\n");
		*ret_body = xstrdup(p == NULL ? "" : p + 4);
	}
	return (int)strtol(in + 9, NULL, 10);
}

int
world_on(const struct world *wd, const char *method, const char *name,
    const char *rest, const char *body, char **ret_body)
{
	char	path[256];

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s%s", name, rest);
	return world_http(wd, method, path, body, ret_body);
}

void
world_await(const struct world *wd, const char *name, const char *rest,
    const char *what)
{
	auto_free char	*body = NULL;
	int		 i;

	for (i = 0; i < WORLD_TRIES; i++) {
		free(body);
		body = NULL;
		(void)world_on(wd, "GET", name, rest, NULL, &body);
		if (body != NULL && strstr(body, what) != NULL)
			return;
		(void)usleep(WORLD_PACE_US);
	}
	ck_abort_msg("%s%s: never %s: %s", name, rest, what, body);
}

int
world_run(Suite *s)
{
	SRunner	*sr;
	int	 failed;

	if (geteuid() != 0) {
		(void)puts("apid enters its fence as root");
		return 77;
	}
	if (access(WB_TOP_BUILDDIR "/apid/apid", X_OK) == -1) {
		(void)puts("apid is not built");
		return 77;
	}
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}

long
world_rss(const struct world *wd)
{
	char	 path[64], line[256];
	FILE	*f;
	long	 kib = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)wd->apid);
	if ((f = fopen(path, "r")) == NULL)
		return -1;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	(void)fclose(f);
	return kib;
}
