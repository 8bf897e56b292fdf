/*
 * xmalloc: allocation that succeeds or ends the program, and ownership of
 * descriptors and heap by scope.
 */
#ifndef COMMON_XMALLOC_H
#define COMMON_XMALLOC_H

#include <stddef.h>
#include <stdint.h>

void	*xmalloc(size_t);
void	*xcalloc(size_t, size_t);
void	*xreallocarray(void *, size_t, size_t);
char	*xstrdup(const char *);
char	*xasprintf(const char *, ...) __attribute__((format(printf, 1, 2)));

/* Copies src into dst of size bytes; 0, or -1 when it did not fit (cut). */
int	 str_copy(char *dst, const char *src, size_t size);

/* Whether n bytes are equal, in a time that does not tell where they differ. */
int	 secret_equal(const uint8_t *, const uint8_t *, size_t n);

/* Closes *fd unless it is -1, sets it to -1, preserves errno. */
void	 fd_close(int *fd);
void	 ptr_free(void *pp);		/* free(*(void **)pp) */

#define auto_close	__attribute__((cleanup(fd_close)))
#define auto_free	__attribute__((cleanup(ptr_free)))

static inline int
steal_fd(int *fd)
{
	int	r = *fd;

	*fd = -1;
	return r;
}

#define steal_ptr(pp) __extension__ ({					\
	__typeof__(*(pp)) steal_r = *(pp);				\
	*(pp) = NULL;							\
	steal_r;							\
})

#endif
