/*
 * secret.c: see xmalloc.h.
 */
#include "xmalloc.h"

int
secret_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
	volatile uint8_t	d = 0;
	size_t			i;

	for (i = 0; i < n; i++)
		d = (uint8_t)(d | (a[i] ^ b[i]));
	return d == 0;
}
