/*
 * nl: netlink: batches with every acknowledgement read, and dumps.
 */
#ifndef COMMON_NL_H
#define COMMON_NL_H

#include <stddef.h>
#include <stdint.h>

#define NL_BATCH	8192	/* bytes of messages that are sent at once */

/*
 * Messages that go out in one sendto(2); each that asks for an
 * acknowledgement carries the next number from 1.  May be sent any number of
 * times, on any socket.
 */
struct nl_batch {
	uint8_t		*buf;		/* own, or borrowed: nl_start_in() */
	size_t		 size, len;
	size_t		 room;		/* of the message that is built */
	uint32_t	 acks;		/* acknowledgements to come */
	uint32_t	 seq;		/* last number used */
	int		 full;		/* a message did not fit */
	uint8_t		 own[NL_BATCH];
};

struct inet_diag_sockid;
struct nlmsghdr;

/*
 * Whether a whole message stands at the begin of len bytes; libmnl's own
 * takes a length from 2^31 on for a negative one.
 */
int		 nl_ok(const struct nlmsghdr *, int len);
void		 nl_start(struct nl_batch *);
/* The same in a larger place, which must live as long. */
void		 nl_start_in(struct nl_batch *, uint8_t *, size_t);
/* Where the next message is to be built, NL_ROOM bytes; never NULL. */
char		*nl_next(struct nl_batch *);
#define NL_ROOM		1024
/* The same with more room, at most NL_ROOM_MAX; more ends the process. */
char		*nl_room(struct nl_batch *, size_t);
#define NL_ROOM_MAX	32768
/*
 * Takes the message built there over; ack: the kernel is to answer it.  One
 * that is longer than its room ends the process: it has written beyond it.
 */
void		 nl_took(struct nl_batch *, const struct nlmsghdr *, int ack);
/*
 * Both below use one buffer, so no callback of theirs may call either; both
 * fail as well with what socket calls do, and with EBADMSG if a packet was
 * longer than that buffer.
 *
 * Sends and reads every acknowledgement.  0, or -1 with errno: the first
 * error that the kernel told (ret_seq, if not NULL, is then set: of which
 * message), EPROTO when one is missing, or EMSGSIZE, and nothing was sent:
 * the batch is full.
 */
int		 nl_send(int fd, const struct nl_batch *, uint32_t *ret_seq);
/*
 * Sends one dump request, whose flags and number it sets; calls cb for each
 * message of the answer, which is borrowed for the call; cb returns 0, or -1
 * to fail with its errno.  0, or -1 with errno: also what the kernel told,
 * EPROTO when the end is missing, EINTR: the dump was disturbed by a change,
 * ask again.
 */
int		 nl_dump(int fd, struct nlmsghdr *req,
		    int (*cb)(const struct nlmsghdr *, void *), void *arg);

#endif
