/*
 * runner_box: starts the real runner in mount and pid namespaces of its own,
 * on real cgroups, and plays privd and apid towards it.  For tests as root.
 */
#ifndef RUNNER_BOX_H
#define RUNNER_BOX_H

#include <sys/types.h>

#include "chan.h"

struct box {
	pid_t		 pid;		/* of the runner, seen from here */
	int		 err_fd;	/* its stderr until the first go */
	char		 dir[64];	/* private, holds `control' */
	char		 cg2[256];	/* v2 directory, "" when none is left */
	char		 cg1[2][256];	/* memory, pids; "" on a v2 host */
	uint64_t	 ring_bytes;
	uint8_t		 token[32], nonce[32];
	struct chan	 ch;		/* the host's */
};

/* Why this machine cannot run it, or NULL. */
const char	*box_unable(void);
/* ring_bytes: as in boot.  Ends the test when it fails. */
void	box_start(struct box *, uint64_t ring_bytes);
void	box_stop(struct box *);
void	box_sweep(void);	/* at the end of a run: what failed tests left */
int	box_dial(struct box *);		/* a new connection, or -1 */
/* Dials, shows the token, takes the nonce, goes: b->ch is in S_RUN. */
void	box_attach(struct box *);
/* The next message, waiting at most 20 s; 1, 0 (time is up), -1 (gone). */
int	box_recv(struct chan *, struct msg *);
/* Asks and takes the answer with that number; others are thrown away. */
void	box_call(struct chan *, unsigned int type, const void *body,
	    struct msg *);
/* A session of a shell command; its id goes to ret_id (27 bytes). */
void	box_sh(struct box *, const char *script, int attached,
	    char *ret_id);
void	box_wait(struct box *, const char *id, struct msg_session_exit *);
/* All output from chunk 1, joined; NUL-terminated, to be freed. */
char	*box_output(struct box *, const char *id, unsigned int stream,
	    size_t *ret_len);
struct wire_list box_list(const char *const *v);	/* static storage */
const char	*box_program(const char *dir, const char *name);
/* A figure of /proc/pid/smaps_rollup in KiB; -1 under sanitizers. */
long	box_memory(pid_t, const char *what);

#endif
