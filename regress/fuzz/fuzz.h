/*
 * fuzz: what the harnesses have in common.
 *
 * A harness is one function that takes any bytes.  Built by clang it is a
 * libFuzzer target (run.sh); built like every other test, with replay.c, it
 * runs through its corpus.  What must hold is said by must(), which ends the
 * process, for a harness that only looks for crashes sees the smaller half.
 */
#ifndef REGRESS_FUZZ_H
#define REGRESS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define must(cond) do {							\
	if (!(cond)) {							\
		(void)fprintf(stderr, "%s:%d: must hold: %s\n",		\
		    __FILE__, __LINE__, #cond);				\
		abort();						\
	}								\
} while (0)

/* What is left of an input. */
struct bytes {
	const uint8_t	*p;
	size_t		 n;
};

/* The next byte, or 0 at the end. */
static inline unsigned int
take_u8(struct bytes *b)
{
	if (b->n == 0)
		return 0;
	b->n--;
	return *b->p++;
}

/* The next piece: two bytes of length (as much as there is), its bytes. */
static inline struct bytes
take_piece(struct bytes *b)
{
	struct bytes	r;
	size_t		n = take_u8(b) << 8;

	n |= take_u8(b);
	r.p = b->p;
	r.n = n < b->n ? n : b->n;
	b->p += r.n;
	b->n -= r.n;
	return r;
}

/*
 * Numbers that follow from the input as a whole (FNV-1a, then xorshift), for
 * choices that must not stand in its way: where it is cut into pieces.
 */
static inline uint32_t
dice_seed(const uint8_t *p, size_t n)
{
	uint32_t	h = 2166136261U;

	while (n-- > 0)
		h = (h ^ *p++) * 16777619U;
	return h == 0 ? 1 : h;
}

static inline uint32_t
dice(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

#endif
