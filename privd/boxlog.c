/*
 * boxlog.c: launch.log, which lies in the box's directory on the host, where
 * the box cannot reach it.  Must never: grow beyond LAUNCH_LOG_MAX, interpret
 * what stands in it.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "privd.h"
#include "ulid.h"
#include "xmalloc.h"

#define TAIL_LINES	20

static int
log_open(const char *id, int flags)
{
	char	path[ULID_LEN + 16];

	(void)snprintf(path, sizeof(path), "%s/launch.log", id);
	return openat(box_dir(), path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int
boxlog_append(const char *id, const void *data, size_t len)
{
	static const char	 full[] = "(launch.log is full)\n";
	auto_close int		 fd = log_open(id, O_WRONLY | O_APPEND |
				    O_CREAT);
	struct stat		 st;
	size_t			 room;

	if (len == 0 || fd == -1 || fstat(fd, &st) == -1)
		return 0;		/* no directory: nothing to tell of */
	if (st.st_size + (off_t)sizeof(full) >= LAUNCH_LOG_MAX)
		return -1;
	room = LAUNCH_LOG_MAX - sizeof(full) - (size_t)st.st_size;
	if (write(fd, data, len < room ? len : room) == -1)
		log_warn("box %s: write launch.log", id);
	if (len >= room)
		(void)!write(fd, full, sizeof(full) - 1); /* it is said here */
	else if (((const char *)data)[len - 1] != '\n')
		(void)!write(fd, "\n", 1);	/* likewise */
	return len >= room ? -1 : 0;
}

size_t
boxlog_tail(const char *id, char *ret, size_t size)
{
	auto_close int	 fd = log_open(id, O_RDONLY);
	struct stat	 st;
	off_t		 at = 0;
	ssize_t		 n, i;
	int		 lines = 0;

	if (fd == -1 || fstat(fd, &st) == -1)
		return 0;
	if (st.st_size > (off_t)size)
		at = st.st_size - (off_t)size;
	if ((n = pread(fd, ret, size, at)) <= 0)
		return 0;
	for (i = n - 1; i > 0; i--)
		if (ret[i - 1] == '\n' && ++lines == TAIL_LINES)
			break;
	memmove(ret, ret + i, (size_t)(n - i));
	return (size_t)(n - i);
}
