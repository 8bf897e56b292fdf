/*
 * config_fuzz: workbox.conf.
 *
 * What is accepted fits the body that the daemons get; what is not is told
 * with a file and a line.
 */
#include <sys/socket.h>

#include "../../workbox/host.h"
#include "fuzz.h"

static void
lists_free(struct conf *c)
{
	struct wire_list	*lists[] = {
#define C_LIST(w, f, n, bytes, cs, doc)	&c->f,
#include "conf.def"
	};
	size_t			 i, k;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (k = 0; k < lists[i]->n; k++)
			free((void *)(uintptr_t)lists[i]->v[k].data);
		free((void *)(uintptr_t)lists[i]->v);
	}
}

/* What serve fills in. */
static void
fill(struct conf *c)
{
	uint64_t	*ids[] = {
		&c->uid_netd, &c->gid_netd, &c->uid_stored, &c->gid_stored,
		&c->uid_apid, &c->gid_apid, &c->uid_proxyd, &c->gid_proxyd
	};
	size_t		 i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		*ids[i] = 1 + i;
}

static void
taken(struct conf *c)
{
	static uint8_t		buf[WIRE_MAX];
	static struct wire_bin	items[512];
	struct conf		again;
	char			why[CONFIG_WHY] = "";
	struct sockaddr_storage	addr;
	ssize_t			n;
	size_t			i;

	if (config_check(c, why) == -1)
		must(why[0] != '\0');
	for (i = 0; i < c->listen.n; i++)
		must(strcmp((const char *)c->listen.v[i].data, "none") == 0 ||
		    config_listen((const char *)c->listen.v[i].data, &addr) ==
		    0);
	fill(c);
	n = wire_encode(&wire_conf, c, buf, sizeof(buf));
	must(n > 0);
	must(wire_decode_into(&wire_conf, buf, (size_t)n, items, 512,
	    &again) == 0);
	must(wire_differs(&wire_conf, c, &again) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct conf	 c;
	char		 why[CONFIG_WHY];
	char		*text = malloc(len + 1);

	must(text != NULL);
	memcpy(text, data, len);
	text[len] = '\0';
	if (config_parse("f", text, len, &c, why) == 0)
		taken(&c);
	else
		must(strncmp(why, "f:", 2) == 0);
	lists_free(&c);
	free(text);
	return 0;
}
