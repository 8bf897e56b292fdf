/*
 * runner_storm.c: valid messages with random values, and the same with bits
 * flipped, from the host's end and from wb's, at sessions that exist and such
 * that do not.  Whatever comes of them, the runner goes on.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen.h"
#include "runner_case.h"

#define ROUNDS	3000

static const unsigned int	host_types[] = {
	MSG_RUNNER_GO, MSG_SESSION_RUN, MSG_SESSION_READ, MSG_SESSION_WAIT,
	MSG_SESSION_STDIN, MSG_SESSION_SIGNAL, MSG_RUNNER_SESSIONS,
	MSG_RUNNER_PING,
}, wb_types[] = {
	MSG_WB_STATUS, MSG_WB_RUN, MSG_SESSION_READ, MSG_SESSION_WAIT,
	MSG_SESSION_STDIN, MSG_SESSION_SIGNAL, MSG_RUNNER_SESSIONS,
};

/* The requests on sessions all begin with the id. */
static void
aim(unsigned int type, union proto_body *body, const char *id)
{
	switch (type) {
	case MSG_SESSION_READ:
		memcpy(body->session_read.id, id, 27);
		body->session_read.after = gen_rand() % 4;
		break;
	case MSG_SESSION_WAIT:
		memcpy(body->session_wait.id, id, 27);
		break;
	case MSG_SESSION_STDIN:
		memcpy(body->session_stdin.id, id, 27);
		body->session_stdin.offset = gen_rand() % 2;
		break;
	case MSG_SESSION_SIGNAL:
		memcpy(body->session_signal.id, id, 27);
		break;
	default:
		break;
	}
}

static size_t
packet(unsigned int type, const char *id, uint8_t *buf, size_t size)
{
	const struct proto_row	*row = proto_find(type);
	union proto_body	 body;
	uint32_t		 head[3] = { PROTO_RUNNER_VERSION, type,
				    gen_rand() };
	ssize_t			 h, n;

	gen_body(row->desc, &body, row->cap / 2);
	if (gen_rand() % 4 != 0)
		aim(type, &body, id);
	h = wire_head_encode(head, buf, size);
	n = wire_encode(row->desc, &body, buf + h, size - (size_t)h);
	ck_assert_msg(n != -1, "%s: %s", row->name, wire_error());
	if (gen_rand() % 3 == 0)	/* a bit or two */
		buf[gen_rand() % (size_t)(h + n)] ^= 1 << gen_rand() % 8;
	return (size_t)(h + n);
}

/* Takes what has come; whether the other end is still there. */
static int
soak(int fd)
{
	static uint8_t	buf[70000];
	ssize_t		n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		continue;
	return n == -1 && errno == EAGAIN;
}

static void
storm(int wb)
{
	static uint8_t	buf[WIRE_MAX];
	char		id[27];
	size_t		len;
	int		fd = -1, i;

	gen_seed((uint32_t)wb + 1);
	for (i = 0; i < ROUNDS; i++) {
		if (fd == -1 || !soak(fd)) {
			if (fd != -1 && fd != b.ch.fd)
				(void)close(fd);
			if (!wb || b.ch.fd == -1)
				box_attach(&b);
			if (i == 0)
				box_sh(&b, "cat; sleep 1000", 0, id);
			fd = wb ? dial_wb() : b.ch.fd;
			ck_assert_int_ne(fd, -1);
		}
		len = packet(wb ? wb_types[gen_rand() % 7] :
		    host_types[gen_rand() % 8], id, buf, sizeof(buf));
		(void)send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (wb)
		(void)close(fd);
	box_attach(&b);
	ping();
	free(sh("echo still there"));
}

START_TEST(test_storm_host)
{
	storm(0);
}
END_TEST

START_TEST(test_storm_wb)
{
	storm(1);
}
END_TEST

TCase *
case_storm(void)
{
	TCase	*t = tcase_create("storm");

	tcase_add_checked_fixture(t, setup_attached, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_storm_host);
	tcase_add_test(t, test_storm_wb);
	return t;
}
