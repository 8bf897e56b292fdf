/*
 * chan: one SOCK_SEQPACKET socket between two actors, non-blocking.
 *
 * A packet is a msgpack array [version, type, rid, body] with at most one
 * descriptor.  Everything a message must satisfy (size, version, type,
 * sender, state, descriptor, decode, bounds) is checked here and nowhere
 * else; handlers see decoded structs.  This module never logs.
 */
#ifndef COMMON_CHAN_H
#define COMMON_CHAN_H

#include <sys/queue.h>

#include "proto.h"

#define CHAN_HIGH	(1024UL * 1024)	/* bytes queued: stop producing */
#define CHAN_MAX	(8UL * 1024 * 1024) /* bytes queued: fault */

struct chan_pkt;			/* queued, owned */
STAILQ_HEAD(chan_queue, chan_pkt);

struct chan {
	int		 fd;		/* owned; -1 when closed */
	unsigned int	 self;		/* one enum actor */
	unsigned int	 peer;		/* one enum actor */
	unsigned int	 state;		/* one enum chan_state, owner's */
	unsigned int	 version;	/* packets carry and must carry it */
	unsigned int	 theirs;	/* the last packet's; 0: none came */
	/* proto_find(), or the like of an older version: chan_speak() */
	const struct proto_row *(*find)(unsigned int type);
	struct chan_queue out;		/* owned */
	size_t		 queued;	/* bytes in out */
	uint32_t	 rid;		/* last own request number */
	char		 why[160];	/* the last fault, for the log */
};

struct msg {
	const struct proto_row	*row;
	uint32_t		 rid;
	int			 fd;	/* owned by the receiver, or -1 */
	union proto_body	 body;
};

/* Takes fd (made non-blocking and close-on-exec). */
void	chan_init(struct chan *, int fd, unsigned int self,
	    unsigned int peer, unsigned int state);
/* Closes the descriptor and drops the queue; may be called twice. */
void	chan_close(struct chan *);

/*
 * Sends, or queues behind what is queued.  Takes fd in every case (-1: no
 * descriptor).  Returns 0, or -1: EINVAL (the body is out of its bounds: our
 * own fault), ENOBUFS (CHAN_MAX), EPIPE and other socket errors.
 */
int	chan_send(struct chan *, unsigned int type, uint32_t rid,
	    const void *body, int fd);
/* A request under a fresh number, told through ret_rid (may be NULL). */
int	chan_ask(struct chan *, unsigned int type, const void *body, int fd,
	    uint32_t *ret_rid);
int	chan_ok(struct chan *, uint32_t rid);
int	chan_error(struct chan *, uint32_t rid, unsigned int code,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Sends what is queued.  0: all sent; 1: more to send; -1: socket error. */
int	chan_flush(struct chan *);
/* Whether to poll for writing. */
int	chan_pending(const struct chan *);

/*
 * Receives one message.  1: *ret is filled; its borrowed pointers are valid
 * until the next chan_recv() of the process, its descriptor is the caller's.
 * 0: nothing there now.  -1: errno ECONNRESET for a peer that is gone,
 * EBADMSG for a violation (c->why says which), else a socket error.
 */
int	chan_recv(struct chan *, struct msg *ret);

#endif
