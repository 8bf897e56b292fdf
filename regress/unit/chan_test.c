/*
 * chan_test.c: a channel against a peer that keeps no rule.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "older.h"

static struct chan	c;
static int		peer;

static void
setup(void)
{
	int	sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	chan_init(&c, sv[0], A_NETD, A_PRIVD, S_RUN);
	peer = sv[1];
}

static void
teardown(void)
{
	chan_close(&c);
	close(peer);
}

static int
open_fds(void)
{
	DIR	*d = opendir("/proc/self/fd");
	int	 n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* A NET_OPEN packet with n descriptors of standard input. */
static void
send_fds(int n)
{
	static uint8_t	pkt[] = "\x94\x01\x3e\x05\x81\xa1k\x07";
	union {
		char		b[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr	align;
	}		u = { { 0 } };
	struct iovec	iov = { pkt, sizeof(pkt) - 1 };
	struct msghdr	mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr	*cm;
	int		 i, fd = open("/dev/null", O_RDONLY);

	if (n > 0) {
		mh.msg_control = u.b;
		mh.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		for (i = 0; i < n; i++)
			memcpy(CMSG_DATA(cm) + i * (int)sizeof(int), &fd,
			    sizeof(fd));
	}
	ck_assert_int_eq(sendmsg(peer, &mh, 0), (ssize_t)sizeof(pkt) - 1);
	close(fd);
}

START_TEST(good)
{
	struct msg	m;

	ck_assert_int_eq(chan_recv(&c, &m), 0);
	send_fds(0);
	ck_assert_int_eq(chan_recv(&c, &m), 1);
	ck_assert_int_eq(m.row->type, MSG_NET_OPEN);
	ck_assert_uint_eq(m.body.net_open.k, 7);
	ck_assert_uint_eq(m.rid, 5);
	ck_assert_int_eq(m.fd, -1);
	ck_assert_int_eq(chan_recv(&c, &m), 0);
}
END_TEST

/* Descriptors that are not due are closed, however many there are. */
START_TEST(descriptors)
{
	struct msg	m;
	int		before = open_fds();

	send_fds(_i);
	ck_assert_int_eq(chan_recv(&c, &m), -1);
	ck_assert_int_eq(errno, EBADMSG);
	ck_assert_int_eq(open_fds(), before);
}
END_TEST

/* With a full descriptor table the kernel loses it: MSG_CTRUNC says so. */
START_TEST(full_table)
{
	struct rlimit	rl, low;
	struct msg	m;
	int		r, e;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	send_fds(1);
	low = rl;
	low.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	r = chan_recv(&c, &m);
	e = errno;
	/* first: without descriptors nothing can be asserted either */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
	ck_assert_int_eq(r, -1);
	ck_assert_int_eq(e, EBADMSG);
	ck_assert_ptr_nonnull(strstr(c.why, "descriptor"));
}
END_TEST

START_TEST(garbage)
{
	static uint8_t	big[WIRE_MAX + 10];
	struct msg	m;
	size_t		n;

	for (n = 1; n < 300; n++) {
		memset(big, (int)(n * 7), n);
		ck_assert_int_eq(send(peer, big, n, 0), (ssize_t)n);
		ck_assert_int_eq(chan_recv(&c, &m), -1);
		ck_assert_int_eq(errno, EBADMSG);
	}
	ck_assert_int_eq(send(peer, big, sizeof(big), 0),
	    (ssize_t)sizeof(big));
	ck_assert_int_eq(chan_recv(&c, &m), -1);
	ck_assert_int_eq(errno, EBADMSG);
}
END_TEST

START_TEST(gone)
{
	struct msg	m;

	ck_assert_int_eq(send(peer, "", 0, 0), 0);	/* reads as EOF */
	ck_assert_int_eq(chan_recv(&c, &m), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	close(peer);
	peer = -1;
	ck_assert_int_eq(chan_recv(&c, &m), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	ck_assert_int_eq(chan_ok(&c, 1), -1);
}
END_TEST

/* A peer that does not read: bounded, in order, and then a fault. */
START_TEST(queue)
{
	struct chan	p;
	struct msg	m;
	uint32_t	i, n = 0;
	int		r;

	for (i = 1; (r = chan_error(&c, i, CODE_BUSY, "%0200u", i)) == 0; i++)
		ck_assert_uint_lt(i, 100000);
	ck_assert_int_eq(errno, ENOBUFS);
	ck_assert(chan_pending(&c));
	ck_assert_uint_le(c.queued, CHAN_MAX);
	chan_init(&p, peer, A_PRIVD, A_NETD, S_RUN);
	do {
		while ((r = chan_recv(&p, &m)) == 1) {
			ck_assert_int_eq(m.row->type, MSG_ERROR);
			ck_assert_uint_eq(m.rid, ++n);
		}
		ck_assert_int_eq(r, 0);
	} while (chan_flush(&c) == 1 || (c.queued == 0 && n < i - 1 &&
	    chan_recv(&p, &m) == 1 && m.rid == ++n));
	while (chan_recv(&p, &m) == 1)
		n++;
	ck_assert_uint_eq(n, i - 1);
	ck_assert_uint_eq(c.queued, 0);
}
END_TEST

/* What small packets take beside their bytes is bounded, too. */
START_TEST(queue_of_small)
{
	unsigned int	n = 0;

	while (chan_ok(&c, 1) == 0)
		ck_assert_uint_lt(++n, CHAN_MAX / 24);
	ck_assert_int_eq(errno, ENOBUFS);
	ck_assert_uint_gt(n, 1000);
}
END_TEST

/* A body or a descriptor that the table forbids never leaves. */
START_TEST(own_faults)
{
	struct msg_net_made	made = { .k = 1 };
	int			before = open_fds();

	ck_assert_int_eq(chan_send(&c, MSG_NET_MADE, 1, &made, -1), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(chan_send(&c, MSG_OK, 1, &made,
	    open("/dev/null", O_RDONLY)), -1);
	ck_assert_int_eq(errno, EINVAL);
	made.k = 0;
	ck_assert_int_eq(chan_send(&c, MSG_NET_MADE, 1, &made,
	    open("/proc/self/ns/net", O_RDONLY)), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(open_fds(), before);
}
END_TEST

/* A packet of RUNNER_NONCE with every field that it has now. */
static size_t
nonce_packet(unsigned int version, uint8_t *buf, size_t cap)
{
	struct msg_runner_nonce	n = { .sessions_max = 9 };
	uint32_t		head[3] = { version, MSG_RUNNER_NONCE, 1 };
	ssize_t			h, l;

	ck_assert_int_gt(h = wire_head_encode(head, buf, cap), 0);
	ck_assert_int_gt(l = wire_encode(&wire_msg_runner_nonce, &n, buf + h,
	    cap - (size_t)h), 0);
	return (size_t)(h + l);
}

/* One that speaks an older version: without what came later, both ways. */
START_TEST(older)
{
	struct msg_runner_nonce	n = { .version = "1", .sessions_max = 9 };
	struct chan		host, run;
	struct msg		m;
	uint8_t			buf[256];
	int			sv[2];

	ck_assert_uint_eq(runner_version, PROTO_RUNNER_VERSION);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	chan_init(&host, sv[0], A_APID, A_RUNNER, S_HELLO);
	chan_init(&run, sv[1], A_RUNNER, A_APID, S_HELLO);
	chan_speak(&run, runner_version);
	ck_assert_int_eq(chan_send(&run, MSG_RUNNER_NONCE, 1, &n, -1), 0);
	ck_assert_int_eq(chan_recv(&host, &m), 1);
	ck_assert_uint_eq(m.body.runner_nonce.sessions_max, 9);
	chan_speak(&run, 2);
	ck_assert_int_eq(chan_send(&run, MSG_RUNNER_NONCE, 1, &n, -1), 0);
	ck_assert_int_eq(chan_recv(&host, &m), -1);
	ck_assert_int_eq(errno, EBADMSG);
	ck_assert_uint_eq(host.theirs, 2);
	chan_speak(&host, 2);
	ck_assert_int_eq(chan_send(&run, MSG_RUNNER_NONCE, 1, &n, -1), 0);
	ck_assert_int_eq(chan_recv(&host, &m), 1);
	ck_assert_str_eq(m.body.runner_nonce.version, "1");
	ck_assert_uint_eq(m.body.runner_nonce.sessions_max, 0);
	/* a field that it has not in that version is no field */
	ck_assert_int_gt(send(sv[1], buf, nonce_packet(2, buf, sizeof(buf)),
	    0), 0);
	ck_assert_int_eq(chan_recv(&host, &m), -1);
	ck_assert_int_eq(errno, EBADMSG);
	ck_assert_uint_eq(host.theirs, 2);
	chan_speak(&host, runner_version);
	ck_assert_int_gt(send(sv[1], buf, nonce_packet(runner_version, buf,
	    sizeof(buf)), 0), 0);
	ck_assert_int_eq(chan_recv(&host, &m), 1);
	chan_close(&host);
	chan_close(&run);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("chan");
	TCase	*t = tcase_create("chan");
	SRunner	*r;
	int	 failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, good);
	tcase_add_loop_test(t, descriptors, 1, 9);
	tcase_add_test(t, full_table);
	tcase_add_test(t, garbage);
	tcase_add_test(t, gone);
	tcase_add_test(t, queue);
	tcase_add_test(t, queue_of_small);
	tcase_add_test(t, own_faults);
	tcase_add_test(t, older);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
