/*
 * log_more.c: what not every program says; see log.h.
 */
#include "log.h"

void
log_adopt(int fd)
{
	log_fd = fd;
}

int
log_descriptor(void)
{
	return log_fd;
}

void
log_errorx(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_ERROR, 0);
}

void
log_info(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_INFO, 0);
}

void
log_debug(const char *fmt, ...)
{
	LOG_EMIT(LOG_L_DEBUG, 0);
}
