/* unistd.h, with close_range(2), which glibc has since 2.34. */
#ifndef COMPAT_UNISTD_H
#define COMPAT_UNISTD_H

#include_next <unistd.h>

#include <linux/close_range.h>

int	close_range(unsigned int first, unsigned int last, int flags);

#endif
