/*
 * attack.h: what the parts of `attack' have in common.
 *
 * Each part is one function per word of the command line; see main.c.  A
 * check prints `ok - ' or `not ok - ', as regress/box/lib.sh does.
 */
#ifndef ATTACK_H
#define ATTACK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/syscall.h>
#include <sys/types.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* errno of a system call, 0 when it is done */
#define S(...)	(syscall(__VA_ARGS__) == -1 ? errno : 0)
#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define MIB	(1UL << 20)

extern int	failed;
extern char	mem[65536];		/* scratch */

void	check(int good, const char *, ...)
	    __attribute__((format(printf, 2, 3)));
/*
 * In a process of its own: 0 when fn() was done, else the errno that it
 * returned; 254: no process, 255: killed or too long.
 */
int	attempt(int (*fn)(void));
const char *said(int);			/* that number as words */
double	now(void);			/* seconds, monotonic */
/* Bytes of a file, all read into mem, the last 64 KiB stay; or -1. */
ssize_t	slurp(const char *);
/* The rest of the line that begins with key: 1, or 0. */
int	line_of(const char *file, const char *key, char *ret, size_t);
/* Number behind a word in a file; 0 when it is not there. */
unsigned long number_of(const char *file, const char *word);

/* calls.c, listed.c */
void	calls_refused(void);
void	calls_control(void);
void	calls_listed(void);
void	calls_work(void);
void	calls_own(void);
int	c_socket(uint64_t family, uint64_t type, uint64_t proto);
/* proc.c, pid1.c */
void	proc_look(void);
void	proc_pid1(void);
void	proc_fds(void);
void	proc_find(const char *where);
void	proc_dotdot(int pid);
/* fs.c */
void	fs_nodes(void);
void	fs_gain(const char *file);
void	fs_swap(const char *link);
void	fs_tree(const char *dir);
void	fs_many(int n);
/* net.c, sock.c */
void	net_reach(int port);
void	net_abstract(const char *name);
void	net_path(const char *path);
void	net_ping(const char *address);
void	net_pass(const char *sock);
void	net_buffers(int kind);
void	net_connect(int);
/* mem.c */
void	mem_take(const char *what);
void	mem_spin(int seconds);
/* storm.c */
void	storm_watch(int seconds);
void	storm_take(const char *file);
void	storm_give(void);
void	storm_freeze(int seconds);
void	storm_orphans(int);
void	storm_zombies(const char *file);
void	storm_files(const char *file);
void	storm_forks(const char *file);
void	storm_churn(int seconds);
void	storm_kill(void);

#endif
