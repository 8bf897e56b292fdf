/*
 * relay_ends.h: the ends of connections in relay_test.c, a box's and a host's,
 * and what is seen at them.  Part of that file, which has what it names.
 */
#ifndef REGRESS_RELAY_ENDS_H
#define REGRESS_RELAY_ENDS_H

/* The relay listens where the host does not: that has an address of its own. */
static int
host(unsigned int port)
{
	return listener(HOST, port, 128);
}

static void
timeout(int fd, int s)
{
	struct timeval	tv = { s, 0 };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv,
	    sizeof(tv)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv,
	    sizeof(tv)), 0);
}

static int
box_connect(unsigned int number, unsigned int port)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(NAMES_NET + number) };
	int			fd = socket(AF_INET, SOCK_STREAM |
				    SOCK_CLOEXEC, 0);

	ck_assert_int_ne(fd, -1);
	timeout(fd, 20);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)),
	    0);
	return fd;
}

static int
host_accept(int l)
{
	struct pollfd	p = { .fd = l, .events = POLLIN };
	int		fd;

	ck_assert_int_eq(poll(&p, 1, 20000), 1);
	fd = accept(l, NULL, NULL);
	ck_assert_int_ne(fd, -1);
	timeout(fd, 20);
	return fd;
}

static void
put(int fd, const void *data, size_t n)
{
	ck_assert_int_eq(send(fd, data, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void
get(int fd, const void *data, size_t n)
{
	auto_free char	*buf = xmalloc(n);

	ck_assert_int_eq(recv(fd, buf, n, MSG_WAITALL), (ssize_t)n);
	ck_assert_int_eq(memcmp(buf, data, n), 0);
}

static void
is_eof(int fd)
{
	char	c;

	ck_assert_int_eq(recv(fd, &c, 1, 0), 0);
}

static void
is_reset(int fd)
{
	char	c;

	ck_assert_int_eq(recv(fd, &c, 1, 0), -1);
	ck_assert_int_eq(errno, ECONNRESET);
}

/* Not a byte came: the connection, where one was made, is over. */
static void
got_nothing(int l)
{
	struct pollfd	p = { .fd = l, .events = POLLIN };
	char		c;
	int		fd;

	if (poll(&p, 1, 300) == 0)
		return;			/* it was refused before */
	fd = host_accept(l);
	ck_assert_int_le(recv(fd, &c, 1, 0), 0);
	(void)close(fd);
}

/* Asks the relay, which tells anew each time, until it is so. */
#define until(cond) do {						\
	int	until_i;						\
									\
	ask('S');							\
	for (until_i = 0; until_i < 5000 && !(cond); until_i++) {	\
		(void)poll(NULL, 0, 1);					\
		ask('S');						\
	}								\
	ck_assert_msg(cond, "never: %s", #cond);			\
} while (0)

static void
denied(enum denied_rule rule, const char *name, unsigned int port)
{
	until(sh->n > 0);
	ck_assert_uint_eq(sh->n, 1);
	ck_assert_uint_eq(sh->told[0].rule, rule);
	ck_assert_str_eq(sh->told[0].name, name);
	ck_assert_uint_eq(sh->told[0].port, port);
	ck_assert_int_eq(sh->told[0].addressed, rule == DENIED_SEALED ||
	    rule == DENIED_ADDRESS);
}

/* A ClientHello with no more than it must have; name NULL: none. */
static size_t
hello(const char *name, uint8_t *ret)
{
	static const uint8_t	fixed[] = { 0x00, 0x02, 0x13, 0x01, 0x01,
				    0x00 };
	size_t			n = name == NULL ? 0 : strlen(name),
				ext = name == NULL ? 0 : n + 9, len;
	uint8_t			*p = ret + 9;

	*p++ = 3;
	*p++ = 3;
	memset(p, 7, 32);
	p += 32;
	*p++ = 0;			/* no session */
	memcpy(p, fixed, sizeof(fixed));
	p += sizeof(fixed);
	*p++ = 0;
	*p++ = (uint8_t)ext;
	if (name != NULL) {
		memcpy(p, (uint8_t[]){ 0, 0, 0, (uint8_t)(n + 5), 0,
		    (uint8_t)(n + 3), 0, 0, (uint8_t)n }, 9);
		memcpy(p + 9, name, n);
		p += 9 + n;
	}
	len = (size_t)(p - ret) - 9;
	memcpy(ret, (uint8_t[]){ 22, 3, 1, 0, (uint8_t)(len + 4), 1, 0, 0,
	    (uint8_t)len }, 9);
	return len + 9;
}

#endif
