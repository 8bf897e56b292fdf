/*
 * boxlog.c: launch.log, which lies in the box's directory on the host, where
 * the box cannot reach it.  Must never: grow beyond LAUNCH_LOG_MAX, interpret
 * what stands in it.
 */
#include <sys/stat.h>

#include <unistd.h>

#include "privd.h"

/* The older half goes when there is no room: -1, once what is new is there. */
int
boxlog_append(const struct entry *e, const void *data, size_t len)
{
	static char		 half[LAUNCH_LOG_MAX / 2];
	struct stat		 st;
	ssize_t			 n = 0;

	if (len == 0 || fstat(e->file_fd, &st) == -1)
		return 0;		/* no file: nothing to tell of */
	if ((size_t)st.st_size + len >= LAUNCH_LOG_MAX) {
		n = pread(e->file_fd, half, sizeof(half),
		    st.st_size - (off_t)sizeof(half));
		if (n <= 0 || ftruncate(e->file_fd, 0) == -1)
			return -1;
		(void)!write(e->file_fd, "(older lines were cut)\n", 23);
		(void)!write(e->file_fd, half, (size_t)n);
	}
	if (write(e->file_fd, data, len) == -1)
		log_warn("box %s: write launch.log", e->spec.id);
	else if (((const char *)data)[len - 1] != '\n')
		(void)!write(e->file_fd, "\n", 1);	/* the first told */
	return n == 0 ? 0 : -1;
}
