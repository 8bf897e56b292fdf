/*
 * cgroup.c: the sessions' cgroups, through descriptors of detached mounts.
 *
 * The v2 directory `sessions' is ours to make directories in, one per
 * session; on a hybrid host a few v1 directories can be joined beside it.
 * Names in here are ULIDs that were checked on arrival.
 *
 * Must never: follow a name from a peer, signal a process outside of sessions/.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

#define V1_MAX	(BOXFD_LAST - BOXFD_CGROUP1 + 1)
#define NAME	(ULID_LEN + 32)

static int	 sessions_fd = -1;	/* O_PATH */
static int	 v1_procs[V1_MAX];	/* cgroup.procs, open for writing */
static size_t	 v1_n;
static int	 v1_oom = -1, v1_usage = -1;	/* open for reading */
static uint64_t	 v1_limit;		/* bytes */
static int	 no_peak;		/* the file is not there */

static int	v1_memory_open(int);

int
cgroup_init(uint64_t v1)
{
	size_t	i;

	if (v1 > V1_MAX) {
		errno = EINVAL;
		return -1;
	}
	sessions_fd = openat(BOXFD_CGROUP2, "sessions",
	    O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sessions_fd == -1)
		return -1;
	for (i = 0; i < v1; i++) {
		v1_procs[i] = openat(BOXFD_CGROUP1 + (int)i, "cgroup.procs",
		    O_WRONLY | O_CLOEXEC);
		if (v1_procs[i] == -1)
			return -1;
		if (v1_memory_open(BOXFD_CGROUP1 + (int)i) == -1)
			return -1;
	}
	v1_n = (size_t)v1;
	return 0;
}

static void
join(char path[NAME], const char *sid, const char *file)
{
	memcpy(path, sid, ULID_LEN);
	path[ULID_LEN] = '/';
	(void)str_copy(path + ULID_LEN + 1, file, NAME - ULID_LEN - 1);
}

static int
open_file(const char *sid, const char *file, int flags)
{
	char	path[NAME];

	join(path, sid, file);
	return openat(sessions_fd, path, flags | O_CLOEXEC);
}

int
cgroup_limits(void)
{
	return v1_n == 0;
}

static int
put_number(const char *sid, const char *file, uint64_t v)
{
	auto_close int	 fd = open_file(sid, file, O_WRONLY);
	char		 buf[24];
	int		 n = snprintf(buf, sizeof(buf), "%llu",
			    (unsigned long long)v);

	return fd != -1 && write(fd, buf, (size_t)n) == n ? 0 : -1;
}

/* Where the kernel counts memory by session, it ends a session as a whole. */
int
cgroup_make(const char *sid, uint64_t memory_bytes, uint64_t pids)
{
	int	e;

	if (mkdirat(sessions_fd, sid, 0755) == -1)
		return -1;
	if ((cgroup_oom_shared() ||
	    put_number(sid, "memory.oom.group", 1) == 0 || errno == ENOENT) &&
	    (memory_bytes == 0 ||
	    put_number(sid, "memory.max", memory_bytes) == 0) &&
	    (pids == 0 || put_number(sid, "pids.max", pids) == 0))
		return 0;
	e = errno;
	(void)cgroup_remove(sid);	/* as if it had not been */
	errno = e;
	return -1;
}

/* v1 first: it asks that the uid has not changed yet.  In the child. */
__attribute__((no_sanitize("address", "undefined"))) int
cgroup_join(const char *sid)
{
	size_t	i;
	int	fd;

	for (i = 0; i < v1_n; i++)
		if (write(v1_procs[i], "0", 1) != 1)
			return -1;
	if ((fd = open_file(sid, "cgroup.procs", O_WRONLY)) == -1)
		return -1;
	return write(fd, "0", 1) == 1 ? 0 : -1;
}

int
cgroup_remove(const char *sid)
{
	if (unlinkat(sessions_fd, sid, AT_REMOVEDIR) == -1 && errno != ENOENT)
		return -1;
	return 0;
}

int
cgroup_kill(const char *sid)
{
	auto_close int	fd = open_file(sid, "cgroup.kill", O_WRONLY);

	return fd != -1 && write(fd, "1", 1) == 1 ? 0 : -1;
}

uint64_t
cgroup_each(const char *sid, void (*fn)(pid_t, void *), void *arg)
{
	auto_close int	 fd = open_file(sid, "cgroup.procs", O_RDONLY);
	char		 buf[4096];
	uint64_t	 n = 0, pid = 0;
	ssize_t		 len, i;

	while (fd != -1 && (len = read(fd, buf, sizeof(buf))) > 0)
		for (i = 0; i < len; i++) {
			if (buf[i] != '\n') {
				pid = pid * 10 + (uint64_t)(buf[i] - '0');
				continue;
			}
			n++;
			if (fn != NULL && pid > 1)
				fn((pid_t)pid, arg);
			pid = 0;
		}
	return n;
}

static void
signal_one(pid_t pid, void *sig)
{
	(void)kill(pid, *(int *)sig);	/* it may have gone meanwhile */
}

void
cgroup_signal(const char *sid, int sig)
{
	(void)cgroup_each(sid, signal_one, &sig);
}

uint64_t
cgroup_count(const char *sid)
{
	return cgroup_each(sid, NULL, NULL);
}

/* ---- memory ---------------------------------------------------------- */

/* A file's text: at most one page of numbers. */
static int
read_text(int fd, char *buf, size_t size)
{
	ssize_t	n;

	if (fd == -1 || (n = pread(fd, buf, size - 1, 0)) == -1)
		return -1;
	buf[n] = '\0';
	return 0;
}

/* The number behind a word at the start of a line, or 0. */
static uint64_t
number_of(const char *text, const char *word)
{
	size_t	len = strlen(word);

	for (; text != NULL; text = strchr(text, '\n')) {
		if (*text == '\n')
			text++;
		if (strncmp(text, word, len) == 0 && text[len] == ' ')
			return strtoull(text + len + 1, NULL, 10);
	}
	return 0;
}

uint64_t
cgroup_peak(const char *sid)
{
	auto_close int	 fd = -1;
	char		 buf[32];

	if (no_peak)
		return 0;
	fd = open_file(sid, "memory.peak", O_RDONLY);
	no_peak = fd == -1 && errno == ENOENT;
	if (read_text(fd, buf, sizeof(buf)) == -1)
		return 0;
	return strtoull(buf, NULL, 10);
}

/* The v1 directory that counts memory, if it is this one. */
static int
v1_memory_open(int dir)
{
	auto_close int	 fd = -1;
	char		 buf[32];

	if (faccessat(dir, "memory.oom_control", R_OK, 0) == -1)
		return 0;
	v1_oom = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	v1_usage = openat(dir, "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC);
	fd = openat(dir, "memory.limit_in_bytes", O_RDONLY | O_CLOEXEC);
	if (v1_oom == -1 || v1_usage == -1 ||
	    read_text(fd, buf, sizeof(buf)) == -1)
		return -1;
	v1_limit = strtoull(buf, NULL, 10);
	return 0;
}

int
cgroup_oom_shared(void)
{
	return v1_oom != -1;
}

uint64_t
cgroup_oom_kills(void)
{
	char	 buf[256];

	return read_text(v1_oom, buf, sizeof(buf)) == -1 ? 0 :
	    number_of(buf, "oom_kill");
}

uint64_t
cgroup_limit(void)
{
	return v1_limit;
}

int
cgroup_pressed(void)
{
	char	 buf[32];

	return read_text(v1_usage, buf, sizeof(buf)) == 0 &&
	    strtoull(buf, NULL, 10) > v1_limit / 2;
}

int
cgroup_oom(const char *sid)
{
	auto_close int	 fd = open_file(sid, "memory.events", O_RDONLY);
	char		 buf[512];

	return read_text(fd, buf, sizeof(buf)) == 0 &&
	    number_of(buf, "oom_kill") > 0;
}

uint64_t
cgroup_stall(const char *sid)
{
	auto_close int	 fd = open_file(sid, "memory.pressure", O_RDONLY);
	char		 buf[256], *p;

	if (read_text(fd, buf, sizeof(buf)) == -1 ||
	    (p = strstr(buf, "total=")) == NULL)
		return 0;
	return strtoull(p + 6, NULL, 10);
}
