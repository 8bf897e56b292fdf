/*
 * xmalloc.c: see xmalloc.h.  A program that cannot have a few bytes has
 * nothing better to do than to end; its parent starts it again.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xmalloc.h"

static void *
xcheck(void *p)
{
	static const char	msg[] = "out of memory\n";

	if (p == NULL) {
		(void)!write(STDERR_FILENO, msg, sizeof(msg) - 1);
		abort();
	}
	return p;
}

void *
xmalloc(size_t n)
{
	return xcheck(malloc(n == 0 ? 1 : n));
}

void *
xcalloc(size_t n, size_t size)
{
	return xcheck(calloc(n == 0 ? 1 : n, size == 0 ? 1 : size));
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	if (size != 0 && n > SIZE_MAX / size)
		return xcheck(NULL);
	return xcheck(realloc(p, n * size == 0 ? 1 : n * size));
}

char *
xstrdup(const char *s)
{
	size_t	n = strlen(s) + 1;

	return memcpy(xmalloc(n), s, n);
}

char *
xasprintf(const char *fmt, ...)
{
	va_list	 ap;
	char	*s;
	int	 n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = xcheck(n < 0 ? NULL : malloc((size_t)n + 1));
	va_start(ap, fmt);
	(void)vsnprintf(s, (size_t)n + 1, fmt, ap); /* measured above */
	va_end(ap);
	return s;
}

void
ptr_free(void *pp)
{
	void	*p;

	memcpy(&p, pp, sizeof(p));
	free(p);
}
