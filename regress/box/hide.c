/*
 * hide.c: fills a disk by what no count of a process tells.
 *
 * hide children|slowly|inodes DIRECTORY: without end, in children that nobody
 * waits for, many or few, or in directories with an attribute each.
 */
#include <sys/stat.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char	bytes[65536];

static void
child_write(void)
{
	int	fd = open("fill", O_CREAT | O_WRONLY | O_APPEND, 0600);

	if (fd == -1 || write(fd, bytes, sizeof(bytes)) == -1)
		_exit(1);
	_exit(0);
}

static void
children(useconds_t pause)
{
	(void)signal(SIGCHLD, SIG_IGN);
	for (;; (void)usleep(pause))
		if (vfork() == 0)
			child_write();
}

static void
inodes(void)
{
	char		name[64];
	unsigned long	n;

	for (n = 0;; n++) {
		(void)snprintf(name, sizeof(name), "d%lu", n / 1000);
		if (n % 1000 == 0)
			(void)mkdir(name, 0755);
		(void)snprintf(name, sizeof(name), "d%lu/e%lu", n / 1000, n);
		(void)snprintf(bytes, sizeof(bytes), "%lu", n);
		if (mkdir(name, 0755) == -1 ||
		    setxattr(name, "user.a", bytes, 3500, 0) == -1)
			(void)usleep(10000);
		(void)usleep(300);
	}
}

int
main(int argc, char *argv[])
{
	if (argc != 3 || chdir(argv[2]) == -1)
		return 2;
	if (strcmp(argv[1], "children") == 0)
		children(1000);		/* some 50 MB a second */
	if (strcmp(argv[1], "slowly") == 0)
		children(16000);	/* 4, with hardly any time */
	inodes();
	return 1;
}
