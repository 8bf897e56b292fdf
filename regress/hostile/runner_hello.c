/*
 * runner_hello.c: who may speak, and what comes of nonsense.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "older.h"
#include "runner_case.h"

/* ---- handshake ------------------------------------------------------- */

static void
hello(struct chan *c, const char *role, const uint8_t *token, struct msg *m)
{
	struct msg_runner_hello	h = { 0 };

	chan_init(c, box_dial(&b), A_APID, A_RUNNER, S_HELLO);
	ck_assert_int_ne(c->fd, -1);
	(void)str_copy(h.role, role, sizeof(h.role));
	h.token = (struct wire_bin){ token, 32 };
	box_call(c, MSG_RUNNER_HELLO, &h, m);
}

START_TEST(test_wrong_token)
{
	struct chan	c;
	struct msg	m;
	uint8_t		bad[32];
	int		i;

	for (i = 0; i < 32; i += 31) {
		memcpy(bad, b.token, sizeof(bad));
		bad[i] ^= 1;
		hello(&c, "host", bad, &m);
		ck_assert_uint_eq(m.row->type, MSG_ERROR);
		ck_assert_uint_eq(m.body.error.code, CODE_WRONG_TOKEN);
		ck_assert_int_eq(box_recv(&c, &m), -1);
		chan_close(&c);
	}
	hello(&c, "guest", b.token, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_WRONG_TOKEN);
	chan_close(&c);
	/* and none of that has cost the nonce */
	hello(&c, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_NONCE);
	ck_assert_uint_eq(m.body.runner_nonce.nonce.len, 32);
	ck_assert_mem_eq(m.body.runner_nonce.nonce.data, b.nonce, 32);
	chan_close(&c);
}
END_TEST

/* A host of another version learns which is spoken here, and no more. */
START_TEST(test_other_version)
{
	struct msg_runner_hello	h = { .role = "host",
	    .token = { b.token, 32 } };
	struct chan		c;
	struct msg		m;
	unsigned int		v;

	for (v = runner_version - 2; v <= runner_version + 1; v++) {
		if (v == runner_version)
			continue;
		chan_init(&c, box_dial(&b), A_APID, A_RUNNER, S_HELLO);
		chan_speak(&c, v);
		ck_assert_int_eq(chan_ask(&c, MSG_RUNNER_HELLO, &h, -1, NULL),
		    0);
		ck_assert_int_eq(box_recv(&c, &m), -1);
		ck_assert_int_eq(errno, EBADMSG);
		ck_assert_uint_eq(c.theirs, runner_version);
		ck_assert_int_eq(box_recv(&c, &m), -1);
		ck_assert_int_eq(errno, ECONNRESET);
		chan_close(&c);
	}
	hello(&c, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_NONCE);
	ck_assert_uint_eq(m.body.runner_nonce.nonce.len, 32);
	ck_assert_uint_gt(m.body.runner_nonce.sessions_max, 0);
	chan_close(&c);
}
END_TEST

START_TEST(test_nonce_once)
{
	struct chan	c;
	struct msg	m;

	hello(&c, "host", b.token, &m);
	ck_assert_uint_eq(m.body.runner_nonce.nonce.len, 32);
	chan_close(&c);
	hello(&c, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_NONCE);
	ck_assert_uint_eq(m.body.runner_nonce.nonce.len, 0);
	chan_close(&c);
}
END_TEST

START_TEST(test_one_peer)
{
	struct chan		c, d;
	struct msg_runner_ping	p = { 0 };
	struct msg		m;

	hello(&c, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_NONCE);
	hello(&d, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_ERROR);
	ck_assert_uint_eq(m.body.error.code, CODE_PEER_TAKEN);
	ck_assert_int_eq(box_recv(&d, &m), -1);
	chan_close(&d);
	/* gone: the next one is welcome, however soon it comes */
	chan_close(&c);
	hello(&d, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_NONCE);
	chan_close(&d);
	box_attach(&b);
	box_call(&b.ch, MSG_RUNNER_PING, &p, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
}
END_TEST

/* Before its state, a message ends the connection; nothing runs. */
START_TEST(test_too_early)
{
	static const unsigned int	types[] = { MSG_RUNNER_GO,
					    MSG_RUNNER_PING, MSG_WB_STATUS };
	struct msg_runner_go		go = { 0 };
	struct msg_session_wait		w = { .id =
	    "01KTESTTESTTESTTESTTESTTES" };
	struct chan			c;
	struct msg			m;
	size_t				i;

	for (i = 0; i < 3; i++) {
		chan_init(&c, box_dial(&b), A_APID, A_RUNNER, S_HELLO);
		if (types[i] == MSG_WB_STATUS)
			c.self = A_WB;
		ck_assert_int_eq(chan_ask(&c, types[i], &go, -1, NULL), 0);
		c.self = A_APID;
		ck_assert_int_eq(box_recv(&c, &m), -1);
		chan_close(&c);
	}
	hello(&c, "host", b.token, &m);
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_NONCE);
	ck_assert_int_eq(chan_ask(&c, MSG_SESSION_WAIT, &w, -1, NULL), 0);
	ck_assert_int_eq(box_recv(&c, &m), -1);
	chan_close(&c);
}
END_TEST

START_TEST(test_stderr_until_go)
{
	struct pollfd	pfd = { .fd = b.err_fd };
	struct chan	c;
	struct msg	m;
	uint8_t		bad[32] = { 0 };
	char		line[256];
	ssize_t		n;

	hello(&c, "host", bad, &m);
	chan_close(&c);
	n = read(b.err_fd, line, sizeof(line) - 1);
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	ck_assert_ptr_nonnull(strstr(line, "wrong role or token"));
	box_attach(&b);
	ck_assert_int_eq(poll(&pfd, 1, 10000), 1);
	ck_assert_int_eq(read(b.err_fd, line, sizeof(line)), 0);
}
END_TEST

/* ---- nonsense -------------------------------------------------------- */

/* What is nonsense but for its version: else that alone is looked at. */
#define V	"\x03"
_Static_assert(PROTO_RUNNER_VERSION == 3, "V is the version that is spoken");

static const struct {
	const char	*what;
	const char	*bytes;
	size_t		 len;
} nonsense[] = {
	{ "text", "GET / HTTP/1.1\r\n\r\n", 18 },
	{ "a map of 4 billion", "\xdf\xff\xff\xff\xff", 5 },
	{ "an array of 4 billion", "\xdd\xff\xff\xff\xff", 5 },
	{ "a head, then 4 GiB of bin",
	    "\x94" V "\x78\x01\x82\xa4role\xc6\xff\xff\xff\xff", 14 },
	{ "a head, then 4 GiB of str",
	    "\x94" V "\x78\x01\x82\xdb\xff\xff\xff\xff", 10 },
	{ "deep nesting", "\x94" V "\x78\x01\x91\x91\x91\x91\x91\x91\x91\x91"
	    "\x91\x91\x91\x91\x91\x91\x91\x90", 20 },
	{ "another version", "\x94\x63\x78\x01\x80", 5 },
	{ "an unknown type", "\x94" V "\xcd\x7f\xff\x01\x80", 7 },
	{ "an answer", "\x94" V "\x01\x01\x80", 5 },
	{ "a float", "\x94" V "\x78\x01\x81\xa4role\xca\x00\x00\x00\x00", 15 },
	{ "one byte", "\x94", 1 },
	{ "nil", "\xc0", 1 },
};

START_TEST(test_nonsense)
{
	int	fd;

	fd = box_dial(&b);
	ck_assert_int_eq(send(fd, nonsense[_i].bytes, nonsense[_i].len, 0),
	    (ssize_t)nonsense[_i].len);
	expect_closed(fd);
	(void)close(fd);
	box_attach(&b);
	ping();
	fd = dial_wb();
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(send(fd, nonsense[_i].bytes, nonsense[_i].len, 0),
	    (ssize_t)nonsense[_i].len);
	expect_closed(fd);
	(void)close(fd);
	ping();
}
END_TEST

/* Packets of every size from a seeded generator, and one too large. */
START_TEST(test_noise)
{
	static uint8_t	buf[70000];
	uint32_t	x = 2463534242U;
	size_t		len, i;
	int		fd, n, size = 1 << 20;

	box_attach(&b);
	ping();
	for (n = 0; n < 200; n++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		len = n == 0 ? sizeof(buf) : 1 + x % 4096;
		for (i = 0; i < len; i++)
			buf[i] = (uint8_t)(x >> (i % 24)) ^ (uint8_t)i;
		if (n % 2)	/* past the head */
			memcpy(buf, "\x94" V "\xcc\xa2\x01", 5);
		fd = dial_wb();
		ck_assert_int_ne(fd, -1);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size,
		    sizeof(size));
		ck_assert_int_eq(send(fd, buf, len, 0), (ssize_t)len);
		expect_closed(fd);
		(void)close(fd);
	}
	ping();
}
END_TEST

/*
 * A descriptor with a message that takes none is refused: by the kernel,
 * where it can be told to (Linux 6.16), since closing what came might wait.
 */
START_TEST(test_descriptor)
{
	char		 cbuf[CMSG_SPACE(sizeof(int))] = { 0 };
	char		 pkt[] = "\x94" V "\xcc\xa0\x01\x80";
	struct iovec	 iov = { pkt, 6 };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = cbuf, .msg_controllen = sizeof(cbuf) };
	struct cmsghdr	*cm = CMSG_FIRSTHDR(&mh);
	int		 fd, dir = open("/", O_RDONLY | O_DIRECTORY), zero = 0;

	box_attach(&b);
	ping();
	fd = dial_wb();
	ck_assert_int_ne(fd, -1);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &dir, sizeof(dir));
	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &zero, sizeof(zero)) ==
	    0) {
		ck_assert_int_eq(sendmsg(fd, &mh, 0), -1);
		ck_assert_int_eq(errno, EPERM);
	} else {
		ck_assert_int_eq(sendmsg(fd, &mh, 0), 6);
		expect_closed(fd);
	}
	(void)close(fd);
	(void)close(dir);
	ping();
}
END_TEST

/* More clients than there is room for, none of which says anything. */
START_TEST(test_many_peers)
{
	int	fd[80], i;

	for (i = 0; i < 30; i++)
		ck_assert_int_ne(fd[i] = box_dial(&b), -1);
	box_attach(&b);
	for (i = 30; i < 80; i++) {
		fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (fd[i] != -1)
			(void)close(fd[i]);
		fd[i] = i < 62 ? dial_wb() : -1;
	}
	ping();
	free(sh("echo still there"));
	for (i = 0; i < 80; i++)
		if (fd[i] != -1)
			(void)close(fd[i]);
	/* and there is room again */
	ck_assert_int_ne(fd[0] = dial_wb(), -1);
	(void)close(fd[0]);
	ping();
}
END_TEST

TCase *
case_hello(void)
{
	TCase	*t = tcase_create("hello");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_wrong_token);
	tcase_add_test(t, test_other_version);
	tcase_add_test(t, test_nonce_once);
	tcase_add_test(t, test_one_peer);
	tcase_add_test(t, test_too_early);
	tcase_add_test(t, test_stderr_until_go);
	tcase_add_test(t, test_noise);
	tcase_add_test(t, test_descriptor);
	tcase_add_test(t, test_many_peers);
	tcase_add_loop_test(t, test_nonsense, 0,
	    (int)(sizeof(nonsense) / sizeof(nonsense[0])));
	return t;
}
