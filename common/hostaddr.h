/*
 * hostaddr: the addresses of the host, by rtnetlink.
 */
#ifndef COMMON_HOSTADDR_H
#define COMMON_HOSTADDR_H

#include <stddef.h>

#include "prefix.h"
#include "span.h"

struct nlmsghdr;

#define HOST_MAX	1024	/* beside those that are sealed anyway */

/* In order and disjoint; v6 with the forms of v4. */
struct hosts { struct spans v4, v6; };

void		 hosts_init(struct hosts *);
void		 hosts_free(struct hosts *);		/* and empty again */
/*
 * Adds those of another.  0, or -1 (E2BIG): they are more than HOST_MAX now,
 * and only to be freed.
 */
int		 hosts_join(struct hosts *, const struct hosts *more);
/*
 * Sockets of the network namespace that the caller is in, which are its to
 * close: the first does not block.  0, or -1 with the errno of socket calls.
 */
int		 hostaddr_open(int *ret_news, int *ret_ask);
/*
 * Reads what has been announced since.  1: the addresses may have changed;
 * 0: they have not; -1: errno of recvmsg(2).
 */
int		 hostaddr_news(int fd);
/*
 * All of them, for hosts_free(); *ret need not be initialised.  After
 * sealed_init(), for what is sealed is left out.  0, or -1 with errno, that
 * of nl_dump(), or E2BIG: more than HOST_MAX.  EINTR, ENOBUFS: tried again
 * and again, they do not rest.
 */
int		 hostaddr_ask(int fd, struct hosts *ret);
/*
 * One message of a dump, which is whole: nl_ok().  1: it is an address of
 * the host; 0: it is none.
 */
int		 hostaddr_take(const struct nlmsghdr *, struct prefix *ret);
/* 1: messages of a group may be news; size bytes, aligned to 4. */
int		 hostaddr_heard(const void *, size_t size);

#endif
