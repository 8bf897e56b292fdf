/*
 * apid_start.c: see apid_start.h.
 */
#include <sys/mman.h>

#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_start.h"
#include "apid_world.h"
#include "conf.h"
#include "xmalloc.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	""	/* a default that is of no use here */
#endif

static int
conf_fd(void)
{
	static struct conf	c;

	memset(&c, 0, sizeof(c));
#define C_STR(word, f, max, cs, d, doc) (void)str_copy(c.f, d, sizeof(c.f));
#define C_U64(word, f, lo, hi, d, doc)	c.f = d;
#define C_BOOL(word, f, d, doc)		c.f = d;
#define X_U64(f, lo, hi)		c.f = lo;
#include "conf.def"
	c.uid_apid = c.gid_apid = 64123;
	(void)str_copy(c.log_level, "debug", sizeof(c.log_level));
	return conf_seal(&c);
}

static int
token_fd(void)
{
	int	fd = memfd_create("token", MFD_ALLOW_SEALING);

	if (fd == -1 || write(fd, WORLD_TOKEN, strlen(WORLD_TOKEN)) == -1)
		err(1, "token");
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK |
	    F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

int	apid_lean;

void
apid_exec(int privd, int stored, int netd, int log)
{
	static char	 path[] = WB_TOP_BUILDDIR "/apid/apid";
	static char	 asan[] = "ASAN_OPTIONS=quarantine_size_mb=0:"
			    "thread_local_quarantine_size_kb=0";
	char		*argv[] = { path, NULL };
	char		*envp[] = { apid_lean ? asan : NULL, NULL };
	int		 fd[8], i;

	fd[0] = open("/dev/null", O_RDWR);
	fd[1] = fd[0];
	fd[2] = log;
	fd[3] = privd;
	fd[4] = conf_fd();
	fd[5] = stored;
	fd[6] = netd;
	fd[7] = token_fd();
	for (i = 0; i < 8; i++)
		if ((fd[i] = fcntl(fd[i], F_DUPFD, 100)) == -1)
			err(1, "dup");
	for (i = 0; i < 8; i++)
		if (dup2(fd[i], i) == -1)
			err(1, "dup2");
	(void)close_range(8, ~0U, 0);
	(void)execve(path, argv, envp);
	_exit(127);
}
