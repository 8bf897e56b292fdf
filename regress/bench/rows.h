/*
 * rows.h: what the files of the table share: the server under test, and the
 * rows that are not in rows.c.  A row prints its lines and returns 0, or -1
 * after saying on stderr what failed.
 */
#ifndef ROWS_H
#define ROWS_H

#include "bench.h"

#define IDLE	50	/* boxes of a row on memory */
#define S(x)	(char *)(uintptr_t)(x)	/* of a literal, for an argv */

extern struct http	 h;		/* keep-alive, to the server */
extern const char	*root, *workdir;	/* BENCH_ROOT, BENCH_WORK */
extern int		 pairs;

/* A box with no network; json NULL: of the defaults.  0, or -1. */
int	create_as(const char *json, char *id, size_t n);
int	create(char *id, size_t n);
int	destroy(const char *id);
void	settle(const char *id);		/* until the tree of a removed one is gone */
long	host_pid(const char *id);	/* of its first process, or -1 */
pid_t	parent_of(pid_t);		/* or 0 */
/* nsenter's argv into a box: n is where the command begins. */
#define NSENTER	12
void	nsenter_argv(char **argv, long pid);
/* bwrap's argv: isolated as far as it can, until /ready has said so. */
#define BWRAP	16
void	bwrap_argv(char *argv[BWRAP]);
double	peer_bwrap(void *);
/* MiB that are available, once what was freed has come back. */
double	mem_settled(void);
/* Fewer pairs, of what takes long: at least one. */
int	pairs_of(int part);

int	row_p3(void);			/* egress.c */
int	row_p29(void);
int	row_p12(void);
int	row_p21(void);
int	row_p22(void);
int	row_p9(void);			/* flow.c */
int	row_p32(void);
int	row_p33(void);
int	row_p14(void);			/* load.c */
int	row_p17(void);
int	row_p26(void);			/* again.c */
int	row_p31(void);			/* work.c */

#endif
