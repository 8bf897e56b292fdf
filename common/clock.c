/*
 * clock.c: times, as numbers and as text, and whether text is an id.  See
 * ulid.h; what makes ids is apart, since few programs do.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ulid.h"
#include "wire.h"

uint64_t
now_ms(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);	/* cannot fail */
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t
mono_ms(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);	/* cannot fail */
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
time_rfc3339(uint64_t ms, char ret[25])
{
	time_t		t = (time_t)(ms / 1000);
	struct tm	tm;
	char		buf[64];

	if (gmtime_r(&t, &tm) == NULL)
		memset(&tm, 0, sizeof(tm));
	(void)snprintf(buf, sizeof(buf), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
	    tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
	    tm.tm_min, tm.tm_sec, (int)(ms % 1000));
	memcpy(ret, buf, 24);
	ret[24] = '\0';
}

int
ulid_ok(const char *s)
{
	return wire_charset_ok(CS_ULID, s, strnlen(s, ULID_LEN + 1));
}
