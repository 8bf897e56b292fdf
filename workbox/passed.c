/*
 * passed.c: listening sockets that a service manager has opened, as
 * sd_listen_fds(3) has it: LISTEN_PID is ours, LISTEN_FDS the number of
 * descriptors from 3 on.  They outlive us, so that while no server is there
 * connections wait in them and none is refused.
 *
 * What is passed has to be what the configuration says: a socket on which
 * nobody would answer, that it does not know of, or to whose path any user can
 * connect, is refused by name.
 *
 * Must never: accept a connection; keep a descriptor that is not one of these.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

#define FIRST	3	/* SD_LISTEN_FDS_START */
#define MOST	(LISTEN_MAX + 1)
#define ABOVE	64	/* where start.c has no place for others */

union sock {
	struct sockaddr		sa;
	struct sockaddr_in	in4;
	struct sockaddr_in6	in6;
	struct sockaddr_un	un;
	struct sockaddr_storage	all;
};

static struct passed {
	int		 fd;		/* owned; -1: has been taken */
	union sock	 at;
	char		 name[160];	/* of at, for messages */
} passed[MOST];
static size_t	npassed;

static int
same(const union sock *a, const union sock *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return 0;
	if (a->sa.sa_family == AF_INET)
		return a->in4.sin_port == b->in4.sin_port &&
		    a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr;
	if (a->sa.sa_family == AF_INET6)
		return a->in6.sin6_port == b->in6.sin6_port &&
		    memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
		    sizeof a->in6.sin6_addr) == 0;
	return strcmp(a->un.sun_path, b->un.sun_path) == 0;
}

static void
name_it(struct passed *p)
{
	char	a[INET6_ADDRSTRLEN] = "";

	if (p->at.sa.sa_family == AF_UNIX) {
		/* empty: of no path, or an abstract one */
		(void)text_show(p->at.un.sun_path[0] != '\0' ?
		    p->at.un.sun_path : "a socket without a path", p->name,
		    sizeof p->name);
		return;
	}
	if (p->at.sa.sa_family == AF_INET)
		(void)snprintf(p->name, sizeof p->name, "%s:%u",
		    inet_ntop(AF_INET, &p->at.in4.sin_addr, a, sizeof a),
		    (unsigned int)ntohs(p->at.in4.sin_port));
	else
		(void)snprintf(p->name, sizeof p->name, "[%s]:%u",
		    inet_ntop(AF_INET6, &p->at.in6.sin6_addr, a, sizeof a),
		    (unsigned int)ntohs(p->at.in6.sin6_port));
}

/* 1: a stream socket of TCP or unix that listens; 0: not, with errno. */
static int
listens(int fd, union sock *ret)
{
	int		type, on, protocol;
	socklen_t	len = sizeof type;

	memset(ret, 0, sizeof *ret);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == -1)
		return 0;
	len = sizeof ret->all - 1;	/* a NUL stays behind a long path */
	if (getsockname(fd, &ret->sa, &len) == -1)
		return 0;
	errno = EINVAL;
	if (type != SOCK_STREAM || !on)
		return 0;
	if (ret->sa.sa_family == AF_INET || ret->sa.sa_family == AF_INET6)
		return protocol == IPPROTO_TCP;
	return ret->sa.sa_family == AF_UNIX;
}

/* One of [::] that took IPv4 as well would be more than listen says. */
static int
alone(int fd, const union sock *at)
{
	int		only = 0;
	socklen_t	len = sizeof only;

	return at->sa.sa_family != AF_INET6 || getsockopt(fd, IPPROTO_IPV6,
	    IPV6_V6ONLY, &only, &len) == -1 || only ||
	    !IN6_IS_ADDR_UNSPECIFIED(&at->in6.sin6_addr);
}

static int
take_one(int fd)
{
	struct passed	*p = &passed[npassed];
	size_t		 i;
	int		 flags;

	if ((flags = fcntl(fd, F_GETFL)) == -1)
		return fail_errno("LISTEN_FDS: descriptor %d", fd);
	if (!listens(fd, &p->at))
		return fail("LISTEN_FDS: descriptor %d: expected a stream "
		    "socket that listens, of TCP or a path", fd);
	name_it(p);
	if (!alone(fd, &p->at))
		return fail("LISTEN_FDS: %s: expected a socket of IPv6 alone, "
		    "as BindIPv6Only=ipv6-only makes it", p->name);
	for (i = 0; i < npassed; i++)
		if (same(&passed[i].at, &p->at))
			return fail("LISTEN_FDS: %s: expected it once",
			    p->name);
	/* the description is the manager's, too, which waits by poll(2) */
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1 ||
	    (p->fd = fcntl(fd, F_DUPFD_CLOEXEC, ABOVE)) == -1)
		return fail_errno("LISTEN_FDS: %s", p->name);
	npassed++;
	(void)close(fd);		/* the other one is open */
	return 0;
}

/* The variables, which nothing that is started from here shall see. */
static int
read_words(const char *fds, const char *pid, uint64_t *ret_n)
{
	uint64_t	us;

	*ret_n = 0;
	if (fds == NULL || pid == NULL)
		return 0;
	if (text_u64(pid, 1, INT_MAX, &us) == -1)
		return fail("LISTEN_PID: expected a process id, not \"%s\"",
		    pid);
	if (us != (uint64_t)getpid())
		return 0;		/* they are another's */
	if (text_u64(fds, 1, MOST, ret_n) == -1)
		return fail("LISTEN_FDS: expected the number of descriptors, "
		    "1 to %d, not \"%s\"", MOST, fds);
	return 0;
}

int
passed_take(int ready_fd)
{
	uint64_t	n, i;
	int		rc;

	if ((rc = read_words(getenv("LISTEN_FDS"), getenv("LISTEN_PID"),
	    &n)) != 0)
		return rc;
	(void)unsetenv("LISTEN_FDS");	/* no name is invalid */
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	if (ready_fd >= FIRST && ready_fd < FIRST + (int)n)
		return fail("--ready-fd: expected none of LISTEN_FDS, not %d",
		    ready_fd);
	for (i = 0; rc == 0 && i < n; i++)
		rc = take_one(FIRST + (int)i);
	return rc;
}

static int
wanted(const struct passed *p, const struct start *st, const char *path)
{
	union sock	at = { 0 };
	size_t		i;

	for (i = 0; i < st->naddr; i++)
		if (config_listen(st->addr[i], &at.all) == 0 &&
		    same(&at, &p->at))
			return 1;
	return p->at.sa.sa_family == AF_UNIX &&
	    strcmp(path, p->at.un.sun_path) == 0;
}

/* Who comes by a path is let in by its mode: no other user may. */
static int
closed_to_others(const struct passed *p)
{
	struct stat	st;

	if (p->at.sa.sa_family != AF_UNIX)
		return 0;
	if (lstat(p->at.un.sun_path, &st) == -1)
		return fail_errno("LISTEN_FDS: %s", p->name);
	if (!S_ISSOCK(st.st_mode) || (st.st_mode & S_IWOTH))
		return fail("LISTEN_FDS: %s: expected a socket to which no "
		    "other user can connect, as SocketMode=0660 makes it, not "
		    "mode %04o", p->name,
		    (unsigned int)st.st_mode & 07777);
	return 0;
}

int
passed_agree(const struct start *st, const char *path)
{
	size_t	i;
	int	rc;

	for (i = 0; i < npassed; i++)
		if (!wanted(&passed[i], st, path))
			return fail("LISTEN_FDS: %s: expected what the "
			    "configuration has as listen or socket: give "
			    "both the same", passed[i].name);
		else if ((rc = closed_to_others(&passed[i])) != 0)
			return rc;
	return 0;
}

static int
find(const union sock *at)
{
	size_t	i;

	for (i = 0; i < npassed; i++)
		if (passed[i].fd != -1 && same(&passed[i].at, at))
			return steal_fd(&passed[i].fd);
	return -1;
}

int
passed_tcp(const struct sockaddr_storage *sa)
{
	union sock	at = { .all = *sa };

	return find(&at);
}

int
passed_unix(const char *path)
{
	union sock	at = { .un.sun_family = AF_UNIX };

	return str_copy(at.un.sun_path, path, sizeof at.un.sun_path) == 0 ?
	    find(&at) : -1;
}
