/* string.h, with sigabbrev_np(3), which glibc has since 2.32. */
#ifndef COMPAT_STRING_H
#define COMPAT_STRING_H

#include_next <string.h>

/* The name of a signal without SIG, or NULL.  Real-time ones have none. */
const char	*sigabbrev_np(int sig);

#endif
