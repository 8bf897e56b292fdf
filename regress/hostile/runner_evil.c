/*
 * runner_evil: pid 1 of a box, with the nonce and the socket of the runner,
 * hostile in the way that the box's name says; regress/box/hostile.sh starts
 * it under the real server.  As `good-' it becomes the real runner, which
 * the test has put in the place of wb.
 */
#include <sys/socket.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boxfd.h"
#include "chan.h"
#include "facts.h"
#include "ulid.h"
#include "xmalloc.h"

static struct row_boot	boot;
static struct chan	c;

static int
is(const char *act)
{
	size_t	n = strlen(act);

	return strncmp(boot.name, act, n) == 0 && boot.name[n] == '-';
}

static void
wait_ms(int ms)
{
	(void)poll(NULL, 0, ms);
}

/* A message as chan makes it; its bytes are the caller's to spoil. */
static size_t
packet(unsigned int type, uint32_t rid, const void *body, uint8_t *buf,
    size_t size)
{
	struct chan	mine;
	int		s[2];
	ssize_t		n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == -1)
		return 0;
	chan_init(&mine, s[0], A_RUNNER, A_APID, c.state);
	(void)chan_send(&mine, type, rid, body, -1);
	n = recv(s[1], buf, size, MSG_DONTWAIT);
	chan_close(&mine);
	(void)close(s[1]);
	return n > 0 ? (size_t)n : 0;
}

static void
raw(const void *buf, size_t len)
{
	(void)send(c.fd, buf, len, MSG_NOSIGNAL);
}

/* Its descriptor 0, with bytes that are a message. */
static void
raw_fd(const void *buf, size_t len)
{
	union { char b[CMSG_SPACE(sizeof(int))]; struct cmsghdr h; } u;
	struct iovec	 v = { (void *)(uintptr_t)buf, len };
	struct msghdr	 m = { .msg_iov = &v, .msg_iovlen = 1,
			    .msg_control = &u, .msg_controllen = sizeof(u) };

	memset(&u, 0, sizeof(u));
	u.h.cmsg_level = SOL_SOCKET;
	u.h.cmsg_type = SCM_RIGHTS;
	u.h.cmsg_len = CMSG_LEN(sizeof(int));
	(void)sendmsg(c.fd, &m, MSG_NOSIGNAL);
}

/* What is nonsense but for its version: else that alone is looked at. */
#define V	"\x03"
_Static_assert(PROTO_RUNNER_VERSION == 3, "V is the version that is spoken");

static void
on_hello(uint32_t rid)
{
	struct msg_runner_nonce	n = { .version = "0" };
	struct msg_box_ended	e = { .id = "01K8ZZZZZZZZZZZZZZZZZZZZZ9" };
	uint8_t			guess[32] = "not that nonce", buf[4096];
	size_t			len;

	n.nonce = (struct wire_bin){ is("guess") ? guess : boot.nonce.data,
	    is("none") ? 0 : is("short") ? 31 : 32 };
	len = packet(MSG_RUNNER_NONCE, is("rid") ? rid + 2 : rid, &n, buf,
	    sizeof(buf));
	if (is("late"))
		wait_ms(15000);
	if (is("garbage"))
		raw("\xff\xff\xff\xff", 4);
	else if (is("huge"))		/* [version, 121, rid, 4 GiB */
		raw("\x94" V "\x79\x01\xc6\xff\xff\xff\xff", 9);
	else if (is("empty"))
		raw("", 0);
	else if (is("partial"))
		raw(buf, len / 2);
	else if (is("longer")) {
		buf[len] = 0xc0;
		raw(buf, len + 1);
	} else if (is("fd"))
		raw_fd(buf, len);
	else if (is("privd")) {
		c.self = A_PRIVD;	/* else our own check would refuse */
		(void)chan_send(&c, MSG_BOX_ENDED, 0, &e, -1);
		c.self = A_RUNNER;
	} else if (!is("stall"))
		raw(buf, len);
	if (is("twice"))
		raw(buf, len);
}

static void
flood(void)
{
	struct msg_session_announce	a = { .name = "" };
	struct msg_runner_log		l = { .line = "a line of its own" };
	uint8_t				buf[4096];
	size_t				n;
	int				i;

	for (i = 0; i < 200000; i++) {
		ulid_new(a.id);
		n = i & 1 ? packet(MSG_RUNNER_LOG, 0, &l, buf, sizeof(buf)) :
		    packet(MSG_SESSION_ANNOUNCE, 0, &a, buf, sizeof(buf));
		while (send(c.fd, buf, n, MSG_NOSIGNAL) == -1)
			wait_ms(1);
	}
}

static void
on_go(uint32_t rid)
{
	static char		mounts[FACTS_MOUNTS];
	struct row_facts	f;
	struct msg_runner_facts	m = { 0 };
	struct msg_session_exit	x = { .id = "01K8ZZZZZZZZZZZZZZZZZZZZZ9" };
	int			proc = open("/proc/self", O_PATH);

	if (facts_read(proc, mounts, &f) == -1)
		_exit(3);
	if (is("uids"))
		(void)str_copy(f.uid_map, "0 0 4294967295",
		    sizeof(f.uid_map));
	if (is("caps"))
		f.cap_bnd |= 1 << 21;
	if (is("filters"))
		f.seccomp_filters++;
	facts_put(&m, &f);
	if (is("stallgo"))
		return;
	(void)chan_send(&c, MSG_RUNNER_FACTS, rid, &m, -1);
	c.state = S_RUN;
	if (is("again"))
		(void)chan_send(&c, MSG_RUNNER_FACTS, rid, &m, -1);
	if (is("forge"))		/* a session of another box's */
		(void)chan_send(&c, MSG_SESSION_EXIT, rid + 2, &x, -1);
	if (is("flood"))
		flood();
	if (is("deaf"))
		for (;;)
			wait_ms(1000);
}

static void
serve(void)
{
	struct pollfd	p = { .fd = c.fd, .events = POLLIN };
	struct msg	m;

	for (;;) {
		(void)poll(&p, 1, -1);
		switch (chan_recv(&c, &m)) {
		case 0:
			continue;
		case -1:
			return;
		}
		if (m.row->type == MSG_RUNNER_HELLO) {
			on_hello(m.rid);
			c.state = S_GO;
		} else if (m.row->type == MSG_RUNNER_GO)
			on_go(m.rid);
		else
			(void)chan_ok(&c, m.rid);
	}
}

int
main(void)
{
	static uint8_t	 buf[4096];
	char		*argv[] = { (char *)(uintptr_t)"runner", NULL };
	char		*env[] = { NULL };
	struct pollfd	 p = { .fd = BOXFD_CONTROL, .events = POLLIN };
	ssize_t		 n = pread(BOXFD_BOOT, buf, sizeof(buf), 0);
	int		 fd;

	if (n <= 0 || wire_decode(&wire_row_boot, buf, (size_t)n, &boot) == -1)
		return 4;
	if (is("good")) {
		(void)execve(BOX_RUNTIME "/wb", argv, env);
		return 5;
	}
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		(void)poll(&p, 1, -1);
		if ((fd = accept(BOXFD_CONTROL, NULL, NULL)) == -1)
			continue;
		chan_init(&c, fd, A_RUNNER, A_APID, S_HELLO);
		serve();
		chan_close(&c);
	}
}
