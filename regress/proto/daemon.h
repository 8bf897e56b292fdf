/*
 * daemon: the real netd, uplinkd or proxyd as the maker starts them, the first
 * two root of a user namespace U1, with the test at the other ends of their
 * channels.
 */
#ifndef REGRESS_DAEMON_H
#define REGRESS_DAEMON_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "chan.h"
#include "conf.h"

/* Every word at its default, and all that there is to say logged. */
void	 daemon_conf(struct conf *);
/* A user namespace owned by uid `owner', with these maps; a descriptor. */
int	 daemon_userns(uid_t owner, const char *map);
/* U1: root's own, with uid as its uid 0 and base on as its 1 and on. */
int	 daemon_u1(uid_t uid, uint32_t base);
/* Makes a file for its standard error; its name. */
void	 daemon_log(char ret[64], const char *name);
/* Whether that file holds this text. */
int	 daemon_logged(const char *log, const char *text);
void	 daemon_show(const char *log);		/* on standard error */

void	 daemon_pair(int ret[2]);
/*
 * In the child: root of U1 (-1: as it is) with /dev/null as 0 and 1, log as 2
 * and the n given from 3 on, and exec.  It exits with 90 to 99 when something
 * fails.
 */
void	 daemon_exec(int u1, int exe, const char *log, const int *fd, int n)
	    __attribute__((noreturn));

/* The next message, within 10 s; 0: the channel ended. */
unsigned int	 daemon_next(struct chan *, struct msg *ret);
/* Sends, takes fd, waits for the answer with the same rid.  Its type. */
unsigned int	 daemon_ask(struct chan *, unsigned int type,
		    const void *body, int fd, struct msg *ret);

#endif
