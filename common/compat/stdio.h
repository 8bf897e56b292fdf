/*
 * stdio.h, with renameat2(2), which glibc has since 2.28, and with names of
 * streams that are no more than that: a field of a message is called so.
 */
#ifndef COMPAT_STDIO_H
#define COMPAT_STDIO_H

#include_next <stdio.h>

#include <linux/fs.h>

#undef stdin
#undef stdout
#undef stderr

int	renameat2(int from, const char *old, int to, const char *name,
	    unsigned int flags);

#endif
