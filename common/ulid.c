/*
 * ulid.c: ids that never go backwards.
 */
#include <sys/random.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ulid.h"

static const char	b32[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
static char		last[ULID_LEN + 1];

uint64_t
now_ms(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);	/* cannot fail */
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

uint64_t
ulid_ms(const char *s)
{
	const char	*p;
	uint64_t	 ms = 0;
	int		 i;

	for (i = 0; i < 10; i++) {
		if (s[i] == '\0' || (p = strchr(b32, s[i])) == NULL)
			return 0;
		ms = ms << 5 | (uint64_t)(p - b32);
	}
	return ms;
}

void
ulid_floor(const char *id)
{
	if (ulid_ok(id) && strcmp(id, last) > 0)
		memcpy(last, id, sizeof(last));
}

/* The next id after `last': the random part counted up by one. */
static void
ulid_step(void)
{
	const char	*p;
	int		 i;

	for (i = ULID_LEN - 1; i >= 0; i--) {
		p = strchr(b32, last[i]);
		if (*++p != '\0') {
			last[i] = *p;
			return;
		}
		last[i] = '0';
	}
}

void
ulid_new(char ret[ULID_LEN + 1])
{
	uint8_t		r[16];
	uint64_t	ms = now_ms();
	char		id[ULID_LEN + 1];
	int		i;

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		abort();	/* cannot be with 16 bytes; no id without it */
	for (i = 9; i >= 0; i--, ms >>= 5)
		id[i] = b32[ms & 31];
	for (i = 0; i < 16; i++)
		id[10 + i] = b32[r[i] & 31];
	id[ULID_LEN] = '\0';
	if (last[0] != '\0' && strcmp(id, last) <= 0)
		ulid_step();
	else
		memcpy(last, id, sizeof(last));
	memcpy(ret, last, sizeof(last));
}
