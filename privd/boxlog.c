/*
 * boxlog.c: launch.log, which lies in the box's directory on the host, where
 * the box cannot reach it.  Must never: grow beyond LAUNCH_LOG_MAX, interpret
 * what stands in it.
 */
#include <sys/stat.h>

#include <string.h>
#include <unistd.h>

#include "privd.h"

#define TAIL_LINES	20

int
boxlog_append(const struct entry *e, const void *data, size_t len)
{
	static const char	 full[] = "(launch.log is full)\n";
	struct stat		 st;
	size_t			 room;

	if (len == 0 || fstat(e->file_fd, &st) == -1)
		return 0;		/* no file: nothing to tell of */
	if (st.st_size + (off_t)sizeof(full) >= LAUNCH_LOG_MAX)
		return -1;
	room = LAUNCH_LOG_MAX - sizeof(full) - (size_t)st.st_size;
	if (write(e->file_fd, data, len < room ? len : room) == -1)
		log_warn("box %s: write launch.log", e->spec.id);
	if (len >= room)
		(void)!write(e->file_fd, full, sizeof(full) - 1);
	else if (((const char *)data)[len - 1] != '\n')
		(void)!write(e->file_fd, "\n", 1);	/* the first told */
	return len >= room ? -1 : 0;
}

size_t
boxlog_tail(const struct entry *e, char *ret, size_t size)
{
	struct stat	 st;
	off_t		 at = 0;
	ssize_t		 n, i;
	int		 lines = 0;

	if (fstat(e->file_fd, &st) == -1)
		return 0;
	if (st.st_size > (off_t)size)
		at = st.st_size - (off_t)size;
	if ((n = pread(e->file_fd, ret, size, at)) <= 0)
		return 0;
	for (i = n - 1; i > 0; i--)
		if (ret[i - 1] == '\n' && ++lines == TAIL_LINES)
			break;
	memmove(ret, ret + i, (size_t)(n - i));
	return (size_t)(n - i);
}
