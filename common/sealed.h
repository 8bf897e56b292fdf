/*
 * sealed: what no network of a box leads to; sealed.def.
 */
#ifndef COMMON_SEALED_H
#define COMMON_SEALED_H

#include "prefix.h"
#include "span.h"
#include "wire.h"

/* In order and disjoint; no two touch. */
extern struct sealed { struct spans v4, v6; } sealed;

/*
 * From sealed.def and the configuration, whose words it does not keep; may
 * be called again.  0, or -1 with errno: EINVAL or EDOM as prefix_parse(),
 * EPERM: `except' has what nothing opens, or `deny' what it cannot deny; what
 * is sealed then is not to be used.
 */
int		 sealed_init(const struct wire_list *deny,
		    const struct wire_list *except);
/* 1: all of it is sealed; 0: some is not. */
int		 sealed_holds(const struct prefix *);

#endif
