/*
 * steps: what inputs of runner_fuzz, apid_fuzz and store_fuzz are made of,
 * for these harnesses and for seed.c: the numbers of their steps, and the
 * words for what only a run knows.
 */
#ifndef REGRESS_STEPS_H
#define REGRESS_STEPS_H

#include <stdint.h>
#include <string.h>

#include "proto.h"

/* A byte, and one more; PACKET: (runner: a peer,) a piece as fuzz.h has it. */
enum runner_step {
	RUNNER_PACKET, RUNNER_CONTROL, RUNNER_WB, RUNNER_HANG_UP,
	RUNNER_SPAWN, RUNNER_PRINT, RUNNER_INPUT, RUNNER_SILENT, RUNNER_EXIT,
	RUNNER_ORPHAN, RUNNER_LEFT, RUNNER_HEAR, RUNNER_TIME, RUNNER_FILL,
	RUNNER_NSTEPS
};

enum apid_step {
	APID_PACKET, APID_BOOT, APID_START, APID_READ, APID_UNREAD, APID_FEED,
	APID_UNFEED, APID_WAIT, APID_RESUME, APID_CLOSE, APID_FULL, APID_PING,
	APID_OLD, APID_GET, APID_ENDED, APID_NSTEPS
};

/* A byte: a number that is one of these modulo STORE_NJOBS, with flags. */
enum store_job {
	STORE_APPEND, STORE_CREATE, STORE_MOVE, STORE_SESSION, STORE_PURGE,
	STORE_NETWORK, STORE_LIST, STORE_TAKE, STORE_NJOBS
};
#define STORE_PRIVD	16		/* asks; else apid */
#define STORE_SHORT	32		/* of disk */
#define STORE_HOUR	64		/* has passed */
#define STORE_DAYS	128		/* two, have passed */

/* The id of session n (0 to 9): the real one takes its place. */
static inline void
step_id(unsigned int n, char ret[27])
{
	memcpy(ret, "00SESSN0000000000000000000", 27);
	ret[7] = (char)('0' + n % 10);
}

/*
 * Instead of a version in the head of a packet: the one that is spoken, so
 * that a corpus outlives it.
 */
#define STEP_VERSION	0

static inline void
step_version(uint8_t *p, size_t n)
{
	if (n > 1 && p[0] == 0x94 && p[1] == STEP_VERSION)
		p[1] = PROTO_RUNNER_VERSION;	/* the array's first */
}

/* The number of the request that the packet is an answer to. */
#define STEP_RID	0xffffff00U

#endif
