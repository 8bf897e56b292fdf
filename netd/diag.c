/*
 * diag.c: ends the connections of a network namespace that lead out of it.
 *
 * The kernel lists the sockets of the namespace and ends those that it is
 * told (sock_diag(7); SOCK_DESTROY): whoever holds one sees ECONNABORTED.
 * What a box holds within itself is not touched.
 *
 * Safe if the box is hostile: it chose how many sockets there are, and their
 * addresses.  Each kind of socket is dumped twice at most, which goes once
 * through tables whose size is fixed and costs what the box's descriptors
 * allow; of a dump no more than ENDS are kept and ended.  None of it is what
 * keeps a packet inside: that is the ruleset, which was there before.
 *
 * Must never: end a connection whose both ends are the box's.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "netd.h"
#include "xmalloc.h"

#define ENDS		16384	/* of one dump */
#define CHUNK		64	/* in a batch: the answers fit the socket */
#define PASSES		2

#define STATE(s)	(1U << (s))
/* Of 1 to 12, the last being TCP_NEW_SYN_RECV, which libc does not name. */
#define CONNECTIONS	(STATE(13) - 2 - STATE(TCP_LISTEN))

static const struct { uint8_t family, proto; uint32_t states; } kinds[] = {
	{ AF_INET, IPPROTO_TCP, CONNECTIONS },
	{ AF_INET6, IPPROTO_TCP, CONNECTIONS },
	/* those that are connected */
	{ AF_INET, IPPROTO_UDP, STATE(TCP_ESTABLISHED) },
	{ AF_INET6, IPPROTO_UDP, STATE(TCP_ESTABLISHED) },
};
#define NKINDS	(sizeof(kinds) / sizeof(kinds[0]))

/* What one dump has found. */
struct found {
	uint8_t			 family;
	struct inet_diag_sockid	*v;		/* owned */
	size_t			 n, cap;
};

/* ---- who is at the other end ------------------------------------------- */

static int
is_addr(int family, const void *addr, const char *text)
{
	uint8_t	own[16];

	return inet_pton(family, text, own) == 1 &&
	    memcmp(addr, own, family == AF_INET ? 4 : 16) == 0;
}

/* Nobody, or the box itself. */
static int
is_own4(const uint8_t *a)
{
	return a[0] == 127 || is_addr(AF_INET, a, NONE_ADDR4) ||
	    is_addr(AF_INET, a, "0.0.0.0");
}

static int
is_own6(const uint8_t *a)
{
	struct in6_addr	a6;

	memcpy(&a6, a, sizeof(a6));
	if (IN6_IS_ADDR_V4MAPPED(&a6))
		return is_own4(a + 12);
	return is_addr(AF_INET6, a, "::1") ||
	    is_addr(AF_INET6, a, NONE_ADDR6) || is_addr(AF_INET6, a, "::");
}

/* ---- finding ------------------------------------------------------------ */

int
diag_take(const struct nlmsghdr *h, int family, struct inet_diag_sockid *ret)
{
	const struct inet_diag_msg	*m = mnl_nlmsg_get_payload(h);

	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*m) ||
	    m->idiag_family != family)
		return 0;
	if ((family == AF_INET ? is_own4 : is_own6)(
	    (const uint8_t *)m->id.idiag_dst))
		return 0;
	*ret = m->id;
	return 1;
}

static int
on_socket(const struct nlmsghdr *h, void *arg)
{
	struct inet_diag_sockid	 id;
	struct found		*f = arg;

	if (f->n == ENDS || !diag_take(h, f->family, &id))
		return 0;
	if (f->n == f->cap) {
		f->cap = f->cap * 2 + 64;
		f->v = xreallocarray(f->v, f->cap, sizeof(*f->v));
	}
	f->v[f->n++] = id;
	return 0;
}

static void
put_request(struct nlmsghdr *h, uint16_t type, size_t kind, uint32_t states,
    const struct inet_diag_sockid *id)
{
	struct inet_diag_req_v2	*q;

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST;
	q = mnl_nlmsg_put_extra_header(h, sizeof(*q));
	q->sdiag_family = kinds[kind].family;
	q->sdiag_protocol = kinds[kind].proto;
	q->idiag_states = states;
	if (id != NULL)
		q->id = *id;
}

/* ---- ending -------------------------------------------------------------- */

/* One that has gone meanwhile, or cannot be ended, keeps no other. */
static int
end_some(int fd, size_t kind, const struct inet_diag_sockid *v, size_t n)
{
	struct nl_batch	 b;
	struct nlmsghdr	*h;
	size_t		 i;

	nl_start(&b);
	for (i = 0; i < n; i++) {
		h = mnl_nlmsg_put_header(nl_room(&b, MNL_NLMSG_HDRLEN +
		    sizeof(struct inet_diag_req_v2)));
		put_request(h, SOCK_DESTROY, kind, 0, &v[i]);
		nl_took(&b, h, 1);
	}
	return nl_send(fd, &b, NULL) == 0 || errno == ENOENT ? 0 : -1;
}

static int
end_found(int fd, size_t kind, const struct found *f)
{
	size_t	i, n;

	for (i = 0; i < f->n; i += n) {
		n = f->n - i < CHUNK ? f->n - i : CHUNK;
		if (end_some(fd, kind, f->v + i, n) == -1)
			return -1;
	}
	return 0;
}

/* Those of one kind.  1: there may be more; 0: there were none; -1: errno. */
static int
end_kind(int fd, size_t kind)
{
	char		 buf[MNL_NLMSG_HDRLEN +
			    sizeof(struct inet_diag_req_v2)]
			    __attribute__((aligned(8)));
	struct found	 f = { .family = kinds[kind].family };
	struct nlmsghdr	*h = mnl_nlmsg_put_header(buf);
	int		 e, r;

	put_request(h, SOCK_DIAG_BY_FAMILY, kind, kinds[kind].states, NULL);
	r = nl_dump(fd, h, on_socket, &f);
	/* disturbed: what was seen is there all the same */
	if (r == 0 || errno == EINTR)
		r = end_found(fd, kind, &f);
	e = errno;
	if (r == 0 && f.n > 0)
		r = 1;
	free(f.v);
	errno = e;
	return r;
}

/* Once: it is the same for every network. */
static void
tell_lacking(const char *what)
{
	static int	told;

	if (!told++)
		log_warn("%s: connections that lead out of a network that "
		    "becomes none end at their next packet", what);
}

void
diag_end(int fd)
{
	size_t	kind;
	int	i, r;

	for (kind = 0; kind < NKINDS; kind++)
		for (i = 0; i < PASSES; i++) {
			if ((r = end_kind(fd, kind)) == 0)
				break;
			if (r == -1) {
				tell_lacking("end connections");
				break;
			}
		}
}
