/*
 * ulid: 26 characters of Crockford's base 32: 48 bits of milliseconds since
 * 1970 and 80 random bits.  Source: github.com/ulid/spec.
 */
#ifndef COMMON_ULID_H
#define COMMON_ULID_H

#include <stdint.h>
#include <string.h>

#include "wire.h"

#define ULID_LEN	26

/*
 * A new id into ret (27 bytes), greater than every one that this process
 * gave and than `floor' as set by ulid_floor(), also when the clock steps
 * back.  Uses getrandom(2).
 */
void		ulid_new(char ret[ULID_LEN + 1]);
void		ulid_floor(const char *id);	/* "" is ignored */
uint64_t	ulid_ms(const char *);		/* its time */
uint64_t	now_ms(void);			/* CLOCK_REALTIME */
uint64_t	mono_ms(void);			/* CLOCK_MONOTONIC */
uint64_t	mono_us(void);
/* RFC 3339, UTC, milliseconds: "2026-01-02T03:04:05.678Z", 25 bytes. */
void		time_rfc3339(uint64_t ms, char ret[25]);

/* Whether it is well-formed and 26 long. */
static inline int
ulid_ok(const char *s)
{
	return wire_ascii_ok(CS_ULID, s, strnlen(s, ULID_LEN + 1));
}

#endif
