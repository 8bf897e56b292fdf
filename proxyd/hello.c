/*
 * hello.c: the name in a ClientHello (RFC 8446, 5246, 6066), the first that a
 * client of TLS sends.
 *
 * Must never read beyond what has come, or take a name out of what a server
 * would read in another way: what is odd is refused.
 *
 * Records carry the hello in pieces of any size; of a hello whose end has not
 * come only the records' heads and its own are looked at.  Its last record
 * must end where it does, and no record of another kind may come before or
 * within.  Those behind it (early data, perhaps) are not looked at.
 */
#include <string.h>

#include "proxyd.h"

#define RECORD_HEAD	5		/* type, version, length */
#define RECORD_MAX	16384		/* bytes of one that is not encrypted */
#define T_FIRST		20		/* types of records */
#define T_HANDSHAKE	22
#define T_LAST		24
#define MAJOR		3		/* of the versions of all records */
#define MINOR_LAST	4
#define MSG_HEAD	4		/* type, length */
#define CLIENT_HELLO	1
#define RANDOM		32
#define SESSION_MAX	32
#define EXT_SERVER_NAME	0
#define HOST_NAME	0		/* a type of names */

/* What is read of a hello; p never leaves it. */
struct part {
	const uint8_t	*p;
	size_t		 n;
};

static size_t
get16(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* n bytes of it into *ret; 0 or -1. */
static int
take(struct part *m, size_t n, struct part *ret)
{
	if (n > m->n)
		return -1;
	*ret = (struct part){ m->p, n };
	m->p += n;
	m->n -= n;
	return 0;
}

/* A vector of RFC 8446 3.4: its length in `bytes' bytes, 1 or 2, before it. */
static int
take_vector(struct part *m, unsigned int bytes, size_t least, size_t most,
    struct part *ret)
{
	struct part	len;
	size_t		n;

	if (take(m, bytes, &len) == -1)
		return -1;
	n = bytes == 1 ? len.p[0] : get16(len.p);
	return n < least || n > most ? -1 : take(m, n, ret);
}

/* ---- records ------------------------------------------------------------- */

/* The head of a record, or what has come of it: could be the hello's. */
static int
record_ok(const uint8_t *p, size_t n)
{
	size_t	len;

	if (n > 0 && p[0] != T_HANDSHAKE)
		return 0;
	if (n > 1 && p[1] != MAJOR)
		return 0;
	if (n > 2 && p[2] > MINOR_LAST)
		return 0;
	if (n < RECORD_HEAD)
		return 1;
	len = get16(p + 3);
	return len > 0 && len <= RECORD_MAX;
}

/* The head of the hello, or what has come of it. */
static int
message_ok(const uint8_t *p, size_t n)
{
	if (n > 0 && p[0] != CLIENT_HELLO)
		return 0;
	if (n > 1 && p[1] != 0)
		return 0;
	return n < MSG_HEAD || get16(p + 2) <= HELLO_MAX - RECORD_HEAD -
	    MSG_HEAD;
}

static size_t
message_len(const uint8_t *p)
{
	return MSG_HEAD + get16(p + 2);
}

/*
 * The hello out of its records, into buf of HELLO_MAX.  HELLO_NAMED: it is
 * whole, and *ret_len long.
 */
static enum hello
unpack(const uint8_t *p, size_t n, uint8_t *buf, size_t *ret_len)
{
	size_t	len = 0, some, left;

	for (;;) {
		if (!record_ok(p, n))
			return HELLO_BAD;
		if (n < RECORD_HEAD)
			return HELLO_MORE;
		left = get16(p + 3);
		p += RECORD_HEAD;
		n -= RECORD_HEAD;
		some = left < n ? left : n;
		memcpy(buf + len, p, some);
		len += some;
		p += some;
		n -= some;
		left -= some;
		if (!message_ok(buf, len))
			return HELLO_BAD;
		if (len >= MSG_HEAD && len + left > message_len(buf))
			return HELLO_BAD;
		if (left > 0)
			return HELLO_MORE;
		if (len >= MSG_HEAD && len == message_len(buf))
			break;
	}
	*ret_len = len;
	return HELLO_NAMED;
}

/* ---- the hello ----------------------------------------------------------- */

/* RFC 6066 3: one name, that of a host. */
static enum hello
server_name(struct part m, char ret_name[ALLOW_NAME])
{
	struct part	list, type, name;

	if (take_vector(&m, 2, 1, UINT16_MAX, &list) == -1 || m.n > 0 ||
	    take(&list, 1, &type) == -1 || type.p[0] != HOST_NAME ||
	    take_vector(&list, 2, 1, UINT16_MAX, &name) == -1 || list.n > 0)
		return HELLO_BAD;
	return allow_name((const char *)name.p, name.n, ret_name) == 0 ?
	    HELLO_NAMED : HELLO_BAD;
}

static enum hello
extensions(struct part m, char ret_name[ALLOW_NAME])
{
	uint8_t		seen[(UINT16_MAX + 1) / 8] = { 0 };
	struct part	type, data;
	enum hello	r = HELLO_NAMELESS;
	size_t		t;

	while (m.n > 0) {
		if (take(&m, 2, &type) == -1 ||
		    take_vector(&m, 2, 0, UINT16_MAX, &data) == -1)
			return HELLO_BAD;
		t = get16(type.p);
		if (seen[t / 8] & 1U << t % 8)
			return HELLO_BAD;
		seen[t / 8] |= (uint8_t)(1U << t % 8);
		if (t == EXT_SERVER_NAME &&
		    (r = server_name(data, ret_name)) == HELLO_BAD)
			return HELLO_BAD;
	}
	return r;
}

/* m: behind the message's head. */
static enum hello
client_hello(struct part m, char ret_name[ALLOW_NAME])
{
	struct part	version, some, ciphers;

	if (take(&m, 2, &version) == -1 || version.p[0] != MAJOR ||
	    take(&m, RANDOM, &some) == -1 ||
	    take_vector(&m, 1, 0, SESSION_MAX, &some) == -1 ||
	    take_vector(&m, 2, 2, UINT16_MAX - 1, &ciphers) == -1 ||
	    ciphers.n % 2 != 0 ||
	    take_vector(&m, 1, 1, UINT8_MAX, &some) == -1)
		return HELLO_BAD;
	if (m.n == 0)
		return HELLO_NAMELESS;	/* as before there were extensions */
	if (take_vector(&m, 2, 0, UINT16_MAX, &some) == -1 || m.n > 0)
		return HELLO_BAD;
	return extensions(some, ret_name);
}

/*
 * Whether no server of TLS would go on with it: a record of another type
 * (some servers pass over an alert) is as bad as a broken hello.
 */
static int
is_not_tls(const uint8_t *p, size_t n)
{
	if (p[0] == T_HANDSHAKE)
		return 0;
	return p[0] < T_FIRST || p[0] > T_LAST || (n > 1 && p[1] != MAJOR);
}

enum hello
hello_read(const uint8_t *p, size_t n, char ret_name[ALLOW_NAME])
{
	uint8_t		buf[HELLO_MAX];
	char		name[ALLOW_NAME];
	size_t		len;
	enum hello	r;

	if (n == 0)
		return HELLO_MORE;
	if (is_not_tls(p, n))
		return HELLO_NOT;
	if (p[0] != T_HANDSHAKE)
		return n < 2 ? HELLO_MORE : HELLO_BAD;
	if (n > HELLO_MAX)
		n = HELLO_MAX;
	r = unpack(p, n, buf, &len);
	if (r == HELLO_MORE && n == HELLO_MAX)
		return HELLO_BAD;
	if (r != HELLO_NAMED)
		return r;
	r = client_hello((struct part){ buf + MSG_HEAD, len - MSG_HEAD },
	    name);
	if (r == HELLO_NAMED)
		memcpy(ret_name, name, sizeof(name));
	return r;
}
