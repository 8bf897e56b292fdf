/*
 * gen: a body of random values within the bounds of its table, for tests.
 */
#ifndef REGRESS_GEN_H
#define REGRESS_GEN_H

#include "wire.h"

/*
 * Fills body (d->size bytes).  Lists and bytes point into a static arena
 * that the next call overwrites.  Sizes are kept below `budget' bytes.
 */
void		gen_body(const struct wire_desc *d, void *body, size_t budget);
uint32_t	gen_rand(void);
void		gen_seed(uint32_t);

#endif
