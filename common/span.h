/*
 * span: intervals of addresses.
 */
#ifndef COMMON_SPAN_H
#define COMMON_SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "prefix.h"

/* Network order; beyond the length of an address 0. */
struct span { uint8_t first[16], last[16]; };

struct spans {
	struct span	*v;		/* owned */
	size_t		 len;		/* bytes of an address: 4, 16 */
	size_t		 n, cap;
};

/* len: 4 or 16.  All below want it done, and prefixes of that length. */
void		 spans_init(struct spans *, size_t len);
void		 spans_free(struct spans *);		/* and empty again */
void		 span_of(const struct prefix *, struct span *ret);
/* At the end, in no order. */
void		 spans_add(struct spans *, const struct prefix *);
void		 spans_join(struct spans *to, const struct spans *from);
/* In order and disjoint: joins whatever overlaps or touches. */
void		 spans_merge(struct spans *);
/* The same of prefixes: leaves out what lies within another. */
void		 spans_nest(struct spans *);
/* Of what is in order and disjoint, here and below: takes a prefix out. */
void		 spans_cut(struct spans *, const struct prefix *);
/* 1: one interval holds all of it; 0: none does. */
int		 spans_hold(const struct spans *, const struct prefix *);
/* The intervals of a that b does not have just so, instead of ret's. */
void		 spans_less(const struct spans *a, const struct spans *b,
		    struct spans *ret);
/* Instead of what `to' had. */
void		 spans_copy(struct spans *to, const struct spans *from);
/* The address behind; -1: that was the last, and a is the first again. */
int		 addr_next(uint8_t *a, size_t len);

#endif
