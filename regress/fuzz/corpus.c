/*
 * corpus.c: see corpus.h.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "corpus.h"

int
corpus_next(FILE *f, uint8_t **ret, size_t *ret_len)
{
	uintmax_t	 n = 0;
	int		 c, digits = 0;
	uint8_t		*p;

	while ((c = getc(f)) >= '0' && c <= '9' && n <= CORPUS_INPUT) {
		n = n * 10 + (uintmax_t)(c - '0');
		digits++;
	}
	if (c == EOF && digits == 0)
		return ferror(f) ? -1 : 0;
	if (c != '\n' || digits == 0 || n > CORPUS_INPUT ||
	    (p = malloc(n > 0 ? (size_t)n : 1)) == NULL)
		return -1;
	if (fread(p, 1, (size_t)n, f) != n || getc(f) != '\n') {
		free(p);
		return -1;
	}
	*ret = p;
	*ret_len = (size_t)n;
	return 1;
}

int
corpus_put(FILE *f, const uint8_t *p, size_t len)
{
	if (fprintf(f, "%zu\n", len) < 0 || fwrite(p, 1, len, f) != len ||
	    putc('\n', f) == EOF)
		return -1;
	return 0;
}
