/*
 * own.c: descriptors and strings; see xmalloc.h.  Allocates nothing.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "xmalloc.h"

int
str_copy(char *dst, const char *src, size_t size)
{
	size_t	n = strnlen(src, size);

	if (n == size) {
		memcpy(dst, src, size - 1);
		dst[size - 1] = '\0';
		return -1;
	}
	memcpy(dst, src, n + 1);
	return 0;
}

void
fd_close(int *fd)
{
	int	e = errno;

	if (*fd != -1)
		(void)close(*fd);	/* the descriptor is gone in any case */
	*fd = -1;
	errno = e;
}
