/*
 * prefix: address prefixes as the configuration has them, and which of them
 * no configuration opens.
 */
#ifndef COMMON_PREFIX_H
#define COMMON_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#define PREFIX_FORMS	2

struct prefix {
	uint8_t	 addr[16];	/* network order; beyond len 0 */
	uint8_t	 len;		/* bytes of an address: 4, 16 */
	uint8_t	 bits;
};

/*
 * ADDRESS or ADDRESS/BITS.  -1 with EINVAL: it is neither; with EDOM: the
 * address has bits beyond its prefix.
 */
int		 prefix_parse(const char *, struct prefix *ret);
/* Whether they have an address in common. */
int		 prefix_meet(const struct prefix *, const struct prefix *);
/*
 * 1: it lies within ::ffff:0:0/96, and so means an IPv4 prefix, which no rule
 * of IPv6 ever sees.
 */
int		 prefix_mapped(const struct prefix *);
/* The forms in IPv6 of an IPv4 prefix that sealed.def speaks of. */
void		 prefix_forms(const struct prefix *v4,
		    struct prefix ret[PREFIX_FORMS]);
/*
 * Of sealed.def, what stays sealed and meets this one, or has a form that
 * does; static.  Or NULL.
 */
const char	*prefix_never(const struct prefix *);

#endif
