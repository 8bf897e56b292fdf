/*
 * seed: first inputs; what the parts of fuzz_seed have in common.
 */
#ifndef REGRESS_SEED_H
#define REGRESS_SEED_H

#include <stddef.h>
#include <stdint.h>

#include "proto.h"

#define SEED_MAX	4096		/* bytes of an input, as in run.sh */
#define SEED_STRUCT	16384		/* bytes of a body, decoded */
#define SEED_BUDGET	200		/* bytes of what is open-ended */

/* An input of steps.  What does not fit any more is left out, whole. */
struct seed {
	uint8_t	p[SEED_MAX];
	size_t	n;
};

void	seed_put(const char *name, size_t i, int k, const uint8_t *,
	    size_t len);
void	seed_end(struct seed *, const char *name, size_t i);
void	seed_step(struct seed *, unsigned int step, unsigned int arg);
/* A step, its argument (-1: it has none), and a piece. */
void	seed_piece(struct seed *, unsigned int step, int arg, const void *,
	    size_t len);
void	seed_packet(struct seed *, unsigned int step, int arg,
	    unsigned int type, uint32_t rid, const void *body);

/*
 * A body within its table as gen_body() makes it, in which what is looked up
 * can be found: ids of sessions, small numbers, variables, users.
 */
void	seed_body(const struct wire_desc *, void *ret_body);
int		seed_chance(unsigned int n);	/* true once in n times */
unsigned int	seed_below(unsigned int);

void	seed_runner(void);
void	seed_apid(void);
void	seed_store(void);

#endif
