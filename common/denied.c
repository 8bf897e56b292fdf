/*
 * denied.c: see denied.h.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "denied.h"

static const char *const	names[DENIED_RULES] = {
	[DENIED_SEALED] = "sealed",
	[DENIED_HOST] = "host",
	[DENIED_LIMITED] = "limited",
	[DENIED_PROTOCOL] = "protocol",
	[DENIED_ADDRESS] = "address",
	[DENIED_NAME] = "name",
	[DENIED_PORT] = "port",
	[DENIED_TLS] = "tls",
	[DENIED_HTTP] = "http",
	[DENIED_EXHAUSTED] = "names-exhausted",
};

const char *
denied_name(unsigned int rule)
{
	return rule < DENIED_RULES ? names[rule] : "unknown";
}

int
denied_find(const char *name, size_t len)
{
	int	i;

	for (i = 0; i < DENIED_RULES; i++)
		if (strlen(names[i]) == len &&
		    memcmp(names[i], name, len) == 0)
			return i;
	return -1;
}

const char *
denied_proto(unsigned int proto, char buf[16])
{
	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmpv6";
	}
	(void)snprintf(buf, 16, "%u", proto);
	return buf;
}
