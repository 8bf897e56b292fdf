/*
 * denied.c: see denied.h.
 */
#include <string.h>

#include "denied.h"

static const char *const	names[DENIED_RULES] = {
	[DENIED_SEALED] = "sealed",
	[DENIED_HOST] = "host",
	[DENIED_LIMITED] = "limited",
	[DENIED_PROTOCOL] = "protocol",
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
