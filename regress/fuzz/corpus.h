/*
 * corpus: many small inputs as one file: of each, its length in decimal, a
 * newline, its bytes, a newline.
 */
#ifndef REGRESS_CORPUS_H
#define REGRESS_CORPUS_H

#include <stdint.h>
#include <stdio.h>

#define CORPUS_INPUT	(1024 * 1024)	/* bytes of one input */

/*
 * The next input, allocated to its exact size so that a sanitizer sees what
 * reads beyond it.  1; 0: the end; -1: the file is not in that form.
 */
int	corpus_next(FILE *, uint8_t **ret, size_t *ret_len);
int	corpus_put(FILE *, const uint8_t *, size_t len);	/* 0 or -1 */

#endif
