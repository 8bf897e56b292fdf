/*
 * absent.c: in the place of head.c and ns.c, without which no box can
 * be served: whoever wants one served is told so by our end.
 */
#include <stddef.h>

#include "log.h"
#include "proxyd.h"

enum head_is
head_read(struct head *h, const uint8_t *data, size_t n, const char *name,
    unsigned int port, size_t *ret_pass, char ret_host[ALLOW_NAME])
{
	(void)h;
	(void)data;
	(void)n;
	(void)name;
	(void)port;
	(void)ret_pass;
	(void)ret_host;
	return HEAD_BAD;
}

int
head_answer(struct head *h, const uint8_t *data, size_t n)
{
	(void)h;
	(void)data;
	(void)n;
	return -1;
}

struct ns *
ns_new(struct event_base *base, struct box *b, int udp, int tcp)
{
	(void)base;
	(void)b;
	(void)udp;
	(void)tcp;
	fatalx("no box is served by this build");
}

void
ns_free(struct ns *n)
{
	(void)n;
}
