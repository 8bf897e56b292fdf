/*
 * runner_case.c: see runner_case.h.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner_case.h"

struct box	b;

void
setup(void)
{
	box_start(&b, 64 * MIB);
}

void
setup_attached(void)
{
	box_start(&b, 64 * MIB);
	box_attach(&b);
}

void
setup_small(void)
{
	box_start(&b, 2 * MIB);
	box_attach(&b);
}

void
teardown(void)
{
	box_stop(&b);
}

void
ping(void)
{
	struct msg_runner_ping	p = { 0 };
	struct msg		m;

	box_call(&b.ch, MSG_RUNNER_PING, &p, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
}

/* Output of a shell command that must exit 0. */
char *
sh(const char *script)
{
	struct msg_session_exit	x;
	char			id[27], *out;

	box_sh(&b, script, 1, id);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	box_wait(&b, id, &x);
	ck_assert_msg(x.exit_code == 0, "%s: exit %" PRIu64 ": %s", script,
	    x.exit_code, out);
	return out;
}

void
run_error(const char *const *argv, const char *cwd, unsigned int code)
{
	struct msg_session_run	run = { 0 };
	struct msg_session_wait	w = { 0 };
	struct msg_session_read	r = { .wait = 1, .attached = 1 };
	struct msg		m;
	int			i;

	ulid_new(run.id);
	memcpy(w.id, run.id, sizeof(w.id));
	memcpy(r.id, run.id, sizeof(r.id));
	(void)str_copy(run.cwd, cwd, sizeof(run.cwd));
	run.argv = box_list(argv);
	/* all three at once, as apid does */
	ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN, &run, -1, NULL), 0);
	ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_READ, &r, -1, NULL), 0);
	ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_WAIT, &w, -1, NULL), 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(box_recv(&b.ch, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_ERROR);
		ck_assert_msg(m.body.error.code == (i == 0 ? code :
		    CODE_NOT_FOUND), "%s: %s (%s)", argv[0],
		    code_name((unsigned int)m.body.error.code),
		    m.body.error.detail);
	}
}

unsigned int
signal_session(const char *id, int sig)
{
	struct msg_session_signal	s = { .signal = (uint64_t)sig };
	struct msg			m;

	(void)str_copy(s.id, id, sizeof(s.id));
	box_call(&b.ch, MSG_SESSION_SIGNAL, &s, &m);
	return m.row->type == MSG_OK ? 0 : (unsigned int)m.body.error.code;
}

/* The row of a session, or 0. */
int
row_of(const char *id, struct row_rsession *ret)
{
	struct msg_runner_sessions	ask = { 0 };
	struct wire_bin			items[WIRE_ITEMS];
	struct msg			m;
	size_t				i, n;

	do {
		box_call(&b.ch, MSG_RUNNER_SESSIONS, &ask, &m);
		ck_assert_uint_eq(m.row->type, MSG_RUNNER_SESSIONS_ARE);
		n = m.body.runner_sessions_are.rows.n;
		for (i = 0; i < n; i++) {
			const struct wire_bin *v =
			    &m.body.runner_sessions_are.rows.v[i];

			ck_assert_int_eq(wire_decode_into(&wire_row_rsession,
			    v->data, v->len, items, WIRE_ITEMS, ret), 0);
			ck_assert_str_gt(ret->id, ask.after);
			(void)str_copy(ask.after, ret->id,
			    sizeof(ask.after));
			if (id != NULL && strcmp(ret->id, id) == 0)
				return 1;
		}
	} while (n > 0);
	return 0;
}

unsigned int
rows(void)
{
	struct msg_runner_sessions	ask = { 0 };
	struct row_rsession		row;
	struct wire_bin			items[WIRE_ITEMS];
	struct msg			m;
	size_t				i, n;
	unsigned int			sum = 0;

	do {
		box_call(&b.ch, MSG_RUNNER_SESSIONS, &ask, &m);
		n = m.body.runner_sessions_are.rows.n;
		for (i = 0; i < n; i++) {
			const struct wire_bin *v =
			    &m.body.runner_sessions_are.rows.v[i];

			ck_assert_int_eq(wire_decode_into(&wire_row_rsession,
			    v->data, v->len, items, WIRE_ITEMS, &row), 0);
			(void)str_copy(ask.after, row.id, sizeof(ask.after));
		}
		sum += (unsigned int)n;
	} while (n > 0);
	return sum;
}

int
cgroup_there(const char *id)
{
	char	path[512];

	(void)snprintf(path, sizeof(path), "%s/box/sessions/%.26s", b.cg2,
	    id);
	return access(path, F_OK) == 0;
}

void
expect_closed(int fd)
{
	struct pollfd	pfd = { .fd = fd, .events = POLLIN };
	char		buf[1024];
	ssize_t		n;

	do {
		ck_assert_int_eq(poll(&pfd, 1, 10000), 1);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	} while (n > 0);
	ck_assert_msg(n == 0 || errno == ECONNRESET, "recv: %s",
	    strerror(errno));
}

int
dial_wb(void)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	int			fd = socket(AF_UNIX, SOCK_SEQPACKET |
				    SOCK_CLOEXEC, 0);

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "/proc/%ld/root%s",
	    (long)b.pid, BOX_SOCK);
	ck_assert_int_ne(fd, -1);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == -1)
		fd_close(&fd);
	return fd;
}

void
expect_sh(const char *script, const char *expected)
{
	char	*out = sh(script);

	ck_assert_msg(strcmp(out, expected) == 0, "%s: %s", script, out);
	free(out);
}
