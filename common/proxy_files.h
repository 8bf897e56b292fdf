/*
 * proxy_files: how many descriptors proxyd may come to need: what it asks for
 * when it starts is what `workbox serve' makes room for, and what doctor looks
 * for.
 */
#ifndef COMMON_PROXY_FILES_H
#define COMMON_PROXY_FILES_H

#include <stdint.h>

#include "conf.h"

#define PROXY_SPARE		320	/* the loop, resolving, 64 pipes */
#define PROXY_BOX		3	/* of a box that rests */
#define PROXY_CONNECTION	3	/* while it is made, by two attempts */
#define PROXY_MOST		65536

/* As many connections for each box as one of `egress' may have. */
static inline uint64_t
proxy_files(const struct conf *c)
{
	const uint64_t	n = c->max_boxes * (PROXY_BOX + PROXY_CONNECTION *
			    c->egress_connections) + PROXY_SPARE;

	return n < PROXY_MOST ? n : PROXY_MOST;
}

#endif
