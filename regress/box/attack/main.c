/*
 * attack: what a hostile program does in a box, by hand.
 *
 *	attack WORD [ARG]	see `words' below
 *
 * Static: it is put into a box of any root file system.
 */
#include "attack.h"

#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int	failed;
char	mem[65536] __attribute__((aligned(4096)));

void
check(int good, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	printf(good ? "ok - " : "not ok - ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
	failed |= !good;
}

int
attempt(int (*fn)(void))
{
	int	status;
	pid_t	pid = fork();

	if (pid == 0) {
		alarm(5);
		_exit(fn());
	}
	if (pid == -1 || waitpid(pid, &status, 0) == -1)
		return 254;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

const char *
said(int r)
{
	return r == 0 ? "it works" : r > 199 ? "no answer" : strerror(r);
}

double
now(void)
{
	struct timespec	t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

ssize_t
slurp(const char *path)
{
	int	fd = open(path, O_RDONLY | O_NONBLOCK);
	ssize_t	n, all = 0;

	if (fd == -1)
		return -1;
	while ((n = read(fd, mem, sizeof(mem))) > 0)
		all += n;
	close(fd);
	return n == -1 && all == 0 ? -1 : all;
}

int
line_of(const char *file, const char *key, char *ret, size_t size)
{
	FILE	*f = fopen(file, "r");
	char	 buf[1024];
	int	 found = 0;

	while (f != NULL && !found && fgets(buf, sizeof(buf), f) != NULL)
		if (strncmp(buf, key, strlen(key)) == 0) {
			buf[strcspn(buf, "\n")] = '\0';
			snprintf(ret, size, "%s", buf + strlen(key));
			found = 1;
		}
	if (f != NULL)
		fclose(f);
	return found;
}

unsigned long
number_of(const char *file, const char *word)
{
	char	buf[256];

	return line_of(file, word, buf, sizeof(buf)) ?
	    strtoul(buf + strspn(buf, " :\t"), NULL, 10) : 0;
}

/* ---- words ------------------------------------------------------------- */

static const struct word {
	const char	*word;
	void		(*plain)(void);
	void		(*number)(int);
	void		(*text)(const char *);
} words[] = {
	/* calls that a box is refused; the same where nothing refuses them */
	{ "calls", calls_refused, NULL, NULL },
	{ "control", calls_control, NULL, NULL },
	/* each name of a list; what must go on working; one's own child */
	{ "listed", calls_listed, NULL, NULL },
	{ "work", calls_work, NULL, NULL },
	{ "own", calls_own, NULL, NULL },
	/* /proc and /sys, pid 1, fresh descriptors, a secret on stdin */
	{ "proc", proc_look, NULL, NULL },
	{ "pid1", proc_pid1, NULL, NULL },
	{ "fds", proc_fds, NULL, NULL },
	{ "find", NULL, NULL, proc_find },
	{ "dotdot", NULL, proc_dotdot, NULL },
	/* device nodes, a setuid program, links that move */
	{ "nodes", fs_nodes, NULL, NULL },
	{ "gain", NULL, NULL, fs_gain },
	{ "swap", NULL, NULL, fs_swap },
	{ "tree", NULL, NULL, fs_tree },
	{ "many", NULL, fs_many, NULL },
	/* interfaces, sockets of the host, descriptors out, buffers */
	{ "net", NULL, net_reach, NULL },
	{ "abstract", NULL, NULL, net_abstract },
	{ "path", NULL, NULL, net_path },
	{ "ping", NULL, NULL, net_ping },
	{ "pass", NULL, NULL, net_pass },
	{ "buffers", NULL, net_buffers, NULL },
	{ "connect", NULL, net_connect, NULL },
	/* memory of a kind, given as KIND:MIB; processor time */
	{ "mem", NULL, NULL, mem_take },
	{ "spin", NULL, mem_spin, NULL },
	/* what is counted per user: all of it, one of each */
	{ "take", NULL, NULL, storm_take },
	{ "give", storm_give, NULL, NULL },
	{ "watch", NULL, storm_watch, NULL },
	{ "freeze", NULL, storm_freeze, NULL },
	{ "orphans", NULL, storm_orphans, NULL },
	{ "zombies", NULL, NULL, storm_zombies },
	{ "files", NULL, NULL, storm_files },
	{ "forks", NULL, NULL, storm_forks },
	{ "churn", NULL, storm_churn, NULL },
	{ "kill", storm_kill, NULL, NULL },
};

int
main(int argc, char **argv)
{
	const char	*arg = argc > 2 ? argv[2] : "0";
	size_t		 i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < N(words) && argc > 1; i++) {
		if (strcmp(words[i].word, argv[1]) != 0)
			continue;
		if (words[i].plain != NULL)
			words[i].plain();
		else if (words[i].number != NULL)
			words[i].number((int)strtol(arg, NULL, 10));
		else
			words[i].text(arg);
		return failed;
	}
	return 64;
}
