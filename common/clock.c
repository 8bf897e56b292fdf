/*
 * clock.c: the time as a number.
 */
#include <time.h>

#include "ulid.h"

uint64_t
mono_us(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);	/* cannot fail */
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
mono_ms(void)
{
	return mono_us() / 1000;
}
