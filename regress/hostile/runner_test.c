/*
 * runner_test: the real runner against a test that plays apid, wb and the
 * box's processes, well-behaved and not.
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sha2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boxfd.h"
#include "runner_box.h"
#include "ulid.h"
#include "xmalloc.h"

#define MIB	(1024UL * 1024)

static struct box	b;

static void
setup(void)
{
	box_start(&b, 64 * MIB);
}

static void
setup_attached(void)
{
	box_start(&b, 64 * MIB);
	box_attach(&b);
}

static void
setup_small(void)
{
	box_start(&b, 2 * MIB);
	box_attach(&b);
}

static void
teardown(void)
{
	box_stop(&b);
}

/* ---- helpers --------------------------------------------------------- */

static void
ping(void)
{
	struct msg_runner_ping	p = { 0 };
	struct msg		m;

	box_call(&b.ch, MSG_RUNNER_PING, &p, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
}

/* Output of a shell command that must exit 0. */
static char *
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

static void
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

static unsigned int
signal_session(const char *id, int sig)
{
	struct msg_session_signal	s = { .signal = (uint64_t)sig };
	struct msg			m;

	(void)str_copy(s.id, id, sizeof(s.id));
	box_call(&b.ch, MSG_SESSION_SIGNAL, &s, &m);
	return m.row->type == MSG_OK ? 0 : (unsigned int)m.body.error.code;
}

/* The row of a session, or 0. */
static int
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

static unsigned int
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

static int
cgroup_there(const char *id)
{
	char	path[512];

	(void)snprintf(path, sizeof(path), "%s/box/sessions/%.26s", b.cg2,
	    id);
	return access(path, F_OK) == 0;
}

/* Polls a condition of the kernel's that has no descriptor to wait for. */
#define EVENTUALLY(cond) do {						\
	uint64_t	ev_end = mono_ms() + 10000;			\
	while (!(cond)) {						\
		ck_assert_msg(mono_ms() < ev_end, "never: %s", #cond);	\
		(void)poll(NULL, 0, 5);					\
	}								\
} while (0)

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

START_TEST(test_facts)
{
	struct msg_runner_go	 go = { 0 };
	struct msg		 m;
	char			 link[64];
	ssize_t			 n;

	box_call(&b.ch, MSG_RUNNER_GO, &go, &m);	/* again: allowed */
	ck_assert_uint_eq(m.row->type, MSG_RUNNER_FACTS);
	ck_assert_uint_eq(m.body.runner_facts.nspid, 1);
	ck_assert_uint_gt(m.body.runner_facts.mounts.len, 10);
	n = readlink(({ static char p[64]; (void)snprintf(p, sizeof(p),
	    "/proc/%ld/ns/mnt", (long)b.pid); p; }), link, sizeof(link) - 1);
	ck_assert_int_gt(n, 5);
	link[n] = '\0';
	ck_assert_uint_eq(m.body.runner_facts.ns_mnt,
	    strtoull(strchr(link, '[') + 1, NULL, 10));
}
END_TEST

/* ---- nonsense -------------------------------------------------------- */

static const struct {
	const char	*what;
	const char	*bytes;
	size_t		 len;
} nonsense[] = {
	{ "text", "GET / HTTP/1.1\r\n\r\n", 18 },
	{ "a map of 4 billion", "\xdf\xff\xff\xff\xff", 5 },
	{ "an array of 4 billion", "\xdd\xff\xff\xff\xff", 5 },
	{ "a head, then 4 GiB of bin",
	    "\x94\x01\x78\x01\x82\xa4role\xc6\xff\xff\xff\xff", 14 },
	{ "a head, then 4 GiB of str",
	    "\x94\x01\x78\x01\x82\xdb\xff\xff\xff\xff", 10 },
	{ "deep nesting", "\x94\x01\x78\x01\x91\x91\x91\x91\x91\x91\x91\x91"
	    "\x91\x91\x91\x91\x91\x91\x91\x90", 20 },
	{ "another version", "\x94\x63\x78\x01\x80", 5 },
	{ "an unknown type", "\x94\x01\xcd\x7f\xff\x01\x80", 7 },
	{ "an answer", "\x94\x01\x01\x01\x80", 5 },
	{ "a float", "\x94\x01\x78\x01\x81\xa4role\xca\x00\x00\x00\x00", 15 },
	{ "one byte", "\x94", 1 },
	{ "nil", "\xc0", 1 },
};

static void
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

static int
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
			memcpy(buf, "\x94\x01\xcc\xa2\x01", 5);
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

/* A descriptor with a message that takes none is refused. */
START_TEST(test_descriptor)
{
	char		 cbuf[CMSG_SPACE(sizeof(int))] = { 0 };
	char		 pkt[] = "\x94\x01\xcc\xa0\x01\x80";
	struct iovec	 iov = { pkt, 6 };
	struct msghdr	 mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = cbuf, .msg_controllen = sizeof(cbuf) };
	struct cmsghdr	*cm = CMSG_FIRSTHDR(&mh);
	int		 fd, dir = open("/", O_RDONLY | O_DIRECTORY);

	box_attach(&b);
	ping();
	fd = dial_wb();
	ck_assert_int_ne(fd, -1);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &dir, sizeof(dir));
	ck_assert_int_eq(sendmsg(fd, &mh, 0), 6);
	expect_closed(fd);
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

/* A host that asks and never reads: bounded here, and whole afterwards. */
START_TEST(test_never_reads)
{
	struct msg_session_read	r = { .after = 0 };
	struct msg		m;
	char			id[27];
	uint32_t		rid;
	int			i, n = 0;

	box_sh(&b, "head -c 1048576 /dev/zero", 0, id);
	EVENTUALLY(({ struct row_rsession row; row_of(id, &row) &&
	    row.ended; }));
	(void)str_copy(r.id, id, sizeof(r.id));
	for (i = 0; i < 2000; i++)
		ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_READ, &r, -1,
		    &rid), 0);
	EVENTUALLY(chan_pending(&b.ch));
	ck_assert_int_lt(box_memory(b.pid, "Private_Dirty"), 4096);
	while (n < 2000) {
		ck_assert_int_eq(box_recv(&b.ch, &m), 1);
		n += m.row->type == MSG_SESSION_CHUNK;
	}
	ping();
	ck_assert_int_lt(box_memory(b.pid, "Private_Dirty"), 4096);
}
END_TEST

/* ---- sessions -------------------------------------------------------- */

START_TEST(test_exit)
{
	struct msg_session_exit	x;
	char			id[27];

	box_sh(&b, "exit 7", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 7);
	ck_assert_uint_eq(x.signal, 0);
	box_sh(&b, "kill -9 $$", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	ck_assert_uint_eq(x.oom, 0);
	box_sh(&b, "sleep 0.1", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_uint_ge(x.wall_ms, 100);
	ck_assert_uint_ge(x.ended_ms, x.started_ms);
	EVENTUALLY(!cgroup_there(id));
}
END_TEST

START_TEST(test_output)
{
	struct msg_session_exit	x;
	char			id[27], *out;

	box_sh(&b, "printf a; printf b >&2; printf c", 1, id);
	box_wait(&b, id, &x);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "ac");
	free(out);
	out = box_output(&b, id, STREAM_STDERR, NULL);
	ck_assert_str_eq(out, "b");
	free(out);
	ck_assert_uint_eq(x.first_seq, 1);
	ck_assert_uint_ge(x.last_seq, 2);
}
END_TEST

static void
expect_sh(const char *script, const char *expected)
{
	char	*out = sh(script);

	ck_assert_msg(strcmp(out, expected) == 0, "%s: %s", script, out);
	free(out);
}

START_TEST(test_world)
{
	char	*out;

	expect_sh("ls /proc/$$/fd", "0\n1\n2\n");
	/* its own session, group; nothing blocked or ignored */
	expect_sh("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] "
	    "&& echo own", "own\n");
	expect_sh("grep -c '^Sig\\(Blk\\|Ign\\):.0*$' /proc/self/status",
	    "2\n");
	expect_sh("pwd", "/root\n");
	expect_sh("env | sort | cut -c1-12; echo $TERM",
	    "HOME=/root\nIS_SANDBOX=1\nLANG=C.UTF-8\nPATH=/usr/lo\n"
	    "PWD=/root\nTZ=UTC\nWORKBOX_SAND\nWORKBOX_SAND\n"
	    "container=wo\n\n");
	expect_sh("echo $WORKBOX_SANDBOX_NAME $WORKBOX_SANDBOX_ID $PATH",
	    "test 01KTESTTESTTESTTESTTESTTES /usr/local/sbin:/usr/local/bin:"
	    "/usr/sbin:/usr/bin:/sbin:/bin:/opt/workbox\n");
	expect_sh("read x && echo got || echo eof", "eof\n");
	expect_sh("umask; ulimit -n | grep -v 4096 | wc -l", "0022\n1\n");
	out = sh("cat /proc/self/cgroup");
	ck_assert_ptr_nonnull(strstr(out, "/box/sessions/01"));
	if (b.cg1[0][0] != '\0')
		ck_assert_ptr_nonnull(strstr(out, ":memory:/wb-runner-"));
	free(out);
}
END_TEST

START_TEST(test_environment)
{
	static const char *const argv[] = { "sh", "-c",
	    "echo $A $B $C; pwd; echo $HOME", NULL };
	static const char *const box[] = { "A=box", "B=box",
	    "HOME=/nowhere", NULL };
	static const char *const own[] = { "B=own", "C=own=1", NULL };
	static const char *const bad[] = { "NOVALUE", NULL };
	struct msg_runner_go	 go = { 0 };
	struct msg_session_run	 run = { 0 };
	struct msg		 m;
	char			*out;

	go.env = box_list(box);
	box_call(&b.ch, MSG_RUNNER_GO, &go, &m);
	ulid_new(run.id);
	run.argv = box_list(argv);
	run.env = box_list(own);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
	out = box_output(&b, run.id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "box own own=1\n/\n/nowhere\n");
	free(out);
	ulid_new(run.id);
	run.env = box_list(bad);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_BAD_REQUEST);
}
END_TEST

START_TEST(test_errors)
{
#define ARGV(...)	(const char *const[]){ __VA_ARGS__, NULL }
	char	noint[100], plain[100], closed[100];
	int	fd;

	(void)snprintf(noint, sizeof(noint), "%s/noint", b.dir);
	(void)snprintf(plain, sizeof(plain), "%s/plain", b.dir);
	(void)snprintf(closed, sizeof(closed), "%s/closed", b.dir);
	fd = open(noint, O_WRONLY | O_CREAT, 0755);
	ck_assert_int_gt(write(fd, "#!/nowhere/sh\n", 14), 0);
	(void)close(fd);
	fd = open(plain, O_WRONLY | O_CREAT, 0755);
	ck_assert_int_gt(write(fd, "echo hi\n", 8), 0);
	(void)close(fd);
	(void)close(open(closed, O_WRONLY | O_CREAT, 0644));

	run_error(ARGV("no-such-command"), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV(""), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV("/no/such/command"), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV("/etc/passwd/x"), "", CODE_COMMAND_NOT_FOUND);
	run_error(ARGV("/etc"), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV(noint), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV(plain), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV(closed), "", CODE_COMMAND_NOT_EXECUTABLE);
	run_error(ARGV("true"), "/no/such/dir", CODE_BAD_CWD);
	run_error(ARGV("true"), "relative", CODE_BAD_CWD);
	run_error(ARGV("true"), "/etc/passwd", CODE_BAD_CWD);
	run_error(ARGV("true"), "/proc/self/fd/3", CODE_BAD_CWD);
	run_error(ARGV("true"), "/proc/self/fd/5", CODE_BAD_CWD);
	run_error(ARGV("true"), "/proc/self/fd/7", CODE_BAD_CWD);
	(void)unlink(noint);
	(void)unlink(plain);
	(void)unlink(closed);
	ck_assert_uint_eq(rows(), 0);
	ping();
}
END_TEST

START_TEST(test_same_id)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_session_run	run = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	int			i;

	ulid_new(run.id);
	run.argv = box_list(argv);
	for (i = 0; i < 3; i++) {
		box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
		if (i == 0) {
			ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
			box_wait(&b, run.id, &x);
		} else {
			ck_assert_uint_eq(m.row->type, MSG_ERROR);
			ck_assert_uint_eq(m.body.error.code, CODE_EXISTS);
		}
	}
}
END_TEST

START_TEST(test_kept)
{
	struct msg_session_exit	x;
	struct msg_session_wait	w = { 0 };
	struct msg		m;
	char			first[27], id[27];
	int			i;

	box_sh(&b, "echo 1", 0, first);
	box_wait(&b, first, &x);
	for (i = 0; i < 300; i++) {
		box_sh(&b, ":", 0, id);
		box_wait(&b, id, &x);
	}
	ck_assert_uint_eq(rows(), 256);
	(void)str_copy(w.id, first, sizeof(w.id));
	box_call(&b.ch, MSG_SESSION_WAIT, &w, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_NOT_FOUND);
}
END_TEST

START_TEST(test_too_many)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	struct msg_session_run	run = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	char			first[27] = "";
	int			i;

	for (i = 0; i < 200; i++) {
		ulid_new(run.id);
		run.argv = box_list(argv);
		box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
		if (m.row->type != MSG_SESSION_RUNNING)
			break;
		if (i == 0)
			(void)str_copy(first, run.id, sizeof(first));
	}
	ck_assert_int_eq(i, 128);
	ck_assert_uint_eq(m.body.error.code, CODE_TOO_MANY);
	ck_assert_uint_eq(signal_session(first, SIGKILL), 0);
	box_wait(&b, first, &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	free(sh("echo room"));
}
END_TEST

/* ---- output ---------------------------------------------------------- */

/*
 * 64 MiB through a reader that dawdles: every byte, in order, and the runner
 * holds no more than the mark says.
 */
START_TEST(test_lossless)
{
	struct msg_session_read	r = { .wait = 1, .attached = 1 };
	struct msg_session_exit	x;
	struct msg		m;
	SHA2_CTX		ctx, ref;
	uint8_t			d1[32], d2[32];
	char			id[27], line[32];
	uint64_t		seq = 0, total = 0, asked = 0, n;
	long			max = 0, kb;

	box_sh(&b, "seq 1 9000000 | head -c 67108864", 1, id);
	(void)str_copy(r.id, id, sizeof(r.id));
	SHA256Init(&ctx);
	for (asked = 0; asked < 4; asked++) {
		r.after = asked;
		ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_READ, &r, -1,
		    NULL), 0);
	}
	for (;;) {
		ck_assert_int_eq(box_recv(&b.ch, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_SESSION_CHUNK);
		ck_assert_uint_eq(m.body.session_chunk.gap_bytes, 0);
		if (m.body.session_chunk.seq != 0) {
			ck_assert_uint_eq(m.body.session_chunk.seq, seq + 1);
			ck_assert_uint_le(m.body.session_chunk.bytes.len,
			    32768);
			SHA256Update(&ctx, m.body.session_chunk.bytes.data,
			    m.body.session_chunk.bytes.len);
			seq++;
			total += m.body.session_chunk.bytes.len;
		}
		if (m.body.session_chunk.eof)
			break;
		if (seq % 256 == 0) {
			(void)poll(NULL, 0, 50);	/* dawdle */
			kb = box_memory(b.pid, "Private_Dirty");
			max = kb > max ? kb : max;
		}
		r.after = asked++;
		ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_READ, &r, -1,
		    NULL), 0);
	}
	SHA256Final(d1, &ctx);
	ck_assert_uint_eq(total, 64 * MIB);
	SHA256Init(&ref);
	for (n = 1, total = 0; total < 64 * MIB; n++) {
		int	len = snprintf(line, sizeof(line), "%" PRIu64 "\n", n);

		if (total + (uint64_t)len > 64 * MIB)
			len = (int)(64 * MIB - total);
		SHA256Update(&ref, (const uint8_t *)line, (size_t)len);
		total += (uint64_t)len;
	}
	SHA256Final(d2, &ref);
	ck_assert_mem_eq(d1, d2, 32);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_int_lt(max, 9 * 1024);
}
END_TEST

/* Nobody attached: the ring overwrites, and says exactly what. */
START_TEST(test_gap)
{
	struct msg_session_read	r = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	char			id[27];
	uint64_t		got = 0, gap = 0, n = 0;

	box_sh(&b, "head -c 20971520 /dev/zero", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_gt(x.first_seq, 1);
	(void)str_copy(r.id, id, sizeof(r.id));
	do {
		box_call(&b.ch, MSG_SESSION_READ, &r, &m);
		if (n++ == 0) {
			ck_assert_uint_eq(m.body.session_chunk.gap_first, 1);
			ck_assert_uint_eq(m.body.session_chunk.gap_last,
			    x.first_seq - 1);
			gap = m.body.session_chunk.gap_bytes;
			ck_assert_uint_eq(m.body.session_chunk.seq,
			    x.first_seq);
		} else
			ck_assert_uint_eq(m.body.session_chunk.gap_bytes, 0);
		r.after = m.body.session_chunk.seq;
		got += m.body.session_chunk.bytes.len;
	} while (!m.body.session_chunk.eof);
	ck_assert_uint_eq(got + gap, 20 * MIB);
	ck_assert_uint_le(got, 8 * MIB);
	ck_assert_uint_ge(got, 7 * MIB);
	ck_assert_uint_eq(r.after, x.last_seq);
	/* behind the end: nothing, at once */
	r.after = x.last_seq + 5;
	r.wait = 1;
	box_call(&b.ch, MSG_SESSION_READ, &r, &m);
	ck_assert_uint_eq(m.body.session_chunk.seq, 0);
	ck_assert_uint_eq(m.body.session_chunk.eof, 1);
	ck_assert_uint_eq(m.body.session_chunk.last_seq, x.last_seq);
}
END_TEST

/* A watcher that was at N is told what it missed from there on. */
START_TEST(test_gap_from)
{
	struct msg_session_read	 r = { .wait = 1 };
	struct msg_session_exit	 x;
	struct msg		 m;
	char			 id[27], go[100];
	char			*script;
	uint64_t		 seen = 0, got = 0;

	(void)snprintf(go, sizeof(go), "%s/go", b.dir);
	script = xasprintf("printf 12345; while [ ! -e %s ]; do sleep 0.01; "
	    "done; head -c 10000000 /dev/zero", go);
	box_sh(&b, script, 0, id);
	free(script);
	(void)str_copy(r.id, id, sizeof(r.id));
	box_call(&b.ch, MSG_SESSION_READ, &r, &m);
	ck_assert_uint_eq(m.body.session_chunk.seq, 1);
	seen = m.body.session_chunk.bytes.len;
	ck_assert_uint_eq(seen, 5);
	(void)close(open(go, O_WRONLY | O_CREAT, 0644));
	box_wait(&b, id, &x);
	(void)unlink(go);
	r.after = 1;
	do {
		box_call(&b.ch, MSG_SESSION_READ, &r, &m);
		if (r.after == 1) {
			ck_assert_uint_eq(m.body.session_chunk.gap_first, 2);
			got += m.body.session_chunk.gap_bytes;
		}
		got += m.body.session_chunk.bytes.len;
		r.after = m.body.session_chunk.seq;
	} while (!m.body.session_chunk.eof);
	ck_assert_uint_eq(got, 10000000);
}
END_TEST

/* One byte a write: what it costs stays within the bound. */
START_TEST(test_crumbs)
{
	struct msg_session_exit	x;
	char			id[27];

	box_sh(&b, "dd if=/dev/zero bs=1 count=200000 2>/dev/null", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_int_lt(box_memory(b.pid, "Private_Dirty"), 9 * 1024);
}
END_TEST

/* A small box: many sessions, one bound for all of them together. */
START_TEST(test_box_bound)
{
	struct msg_session_exit	x;
	char			id[40][27];
	int			i;

	for (i = 0; i < 20; i++)
		box_sh(&b, "head -c 1000000 /dev/zero", i % 2, id[i]);
	for (i = 0; i < 20; i += 2)
		box_wait(&b, id[i], &x);
	ck_assert_int_lt(box_memory(b.pid, "Private_Dirty"), 3500);
	/* the attached ones missed nothing */
	for (i = 1; i < 20; i += 2) {
		size_t	 len;
		char	*out = box_output(&b, id[i], STREAM_STDOUT, &len);

		ck_assert_uint_eq(len, 1000000);
		free(out);
		box_wait(&b, id[i], &x);
		ck_assert_uint_eq(x.exit_code, 0);
	}
}
END_TEST

/* The host goes in the middle and comes back: nothing is lost or repeated. */
START_TEST(test_host_gone)
{
	struct msg_session_read	r = { .wait = 1, .attached = 1 };
	struct msg_session_exit	x;
	struct msg		m;
	char			id[27];
	uint64_t		total = 0;

	box_sh(&b, "head -c 30000000 /dev/zero", 1, id);
	(void)str_copy(r.id, id, sizeof(r.id));
	do {
		if (r.after % 200 == 100)
			box_attach(&b);
		box_call(&b.ch, MSG_SESSION_READ, &r, &m);
		ck_assert_uint_eq(m.body.session_chunk.gap_bytes, 0);
		ck_assert_uint_eq(m.body.session_chunk.seq, r.after + 1);
		r.after = m.body.session_chunk.seq;
		total += m.body.session_chunk.bytes.len;
	} while (total < 30000000);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
}
END_TEST

/* Nothing heard of the reader for 10 s: the command goes on without it. */
START_TEST(test_attach_expires)
{
	struct msg_session_exit	x;
	uint64_t		t = mono_ms();
	char			id[27];

	box_sh(&b, "head -c 30000000 /dev/zero", 1, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_uint_ge(mono_ms() - t, 9900);
	ck_assert_uint_lt(mono_ms() - t, 15000);
	ck_assert_uint_gt(x.first_seq, 1);
}
END_TEST

/* ---- input ----------------------------------------------------------- */

static void
start_open(const char *script, char *id)
{
	const char *const	argv[] = { "sh", "-c", script, NULL };
	struct msg_session_run	run = { .attached = 1, .stdin_open = 1 };
	struct msg		m;

	ulid_new(run.id);
	(void)str_copy(id, run.id, 27);
	run.argv = box_list(argv);
	run.stdin = wire_cstr("first ");
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
}

static void
put(const char *id, uint64_t offset, const char *s, int eof, struct msg *m)
{
	struct msg_session_stdin	in = { .offset = offset,
	    .eof = (uint64_t)eof };

	(void)str_copy(in.id, id, sizeof(in.id));
	in.bytes = wire_cstr(s);
	box_call(&b.ch, MSG_SESSION_STDIN, &in, m);
}

START_TEST(test_input)
{
	struct msg_session_exit	x;
	struct msg		m;
	char			id[27], *out;

	start_open("cat", id);
	put(id, 6, "second ", 0, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_STDIN_AT);
	ck_assert_uint_eq(m.body.session_stdin_at.offset, 13);
	put(id, 6, "second ", 0, &m);		/* not twice */
	ck_assert_uint_eq(m.body.error.code, CODE_BAD_OFFSET);
	ck_assert_str_eq(m.body.error.detail, "13");
	put(id, 99, "x", 0, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_BAD_OFFSET);
	put(id, 13, "third", 1, &m);
	ck_assert_uint_eq(m.body.session_stdin_at.offset, 18);
	put(id, 18, "more", 0, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_ENDED);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "first second third");
	free(out);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
}
END_TEST

/* A command that does not read yet: answered when it does. */
START_TEST(test_input_slow)
{
	static uint8_t			 big[32768];
	struct msg_session_stdin	 in = { 0 };
	struct msg			 m;
	char				 id[27], go[100], *script, *out;
	uint32_t			 rid[4];
	uint64_t			 offset = 6;
	size_t				 len;
	int				 i;

	memset(big, 'x', sizeof(big));
	(void)snprintf(go, sizeof(go), "%s/go", b.dir);
	script = xasprintf("while [ ! -e %s ]; do sleep 0.01; done; cat", go);
	start_open(script, id);
	free(script);
	(void)str_copy(in.id, id, sizeof(in.id));
	in.bytes = (struct wire_bin){ big, sizeof(big) };
	for (i = 0; i < 4; i++) {	/* 16 KiB pipe, 64 KiB here */
		in.offset = offset;
		ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_STDIN, &in, -1,
		    &rid[i]), 0);
		offset += sizeof(big);
	}
	ck_assert_int_eq(box_recv(&b.ch, &m), 1);
	ck_assert_uint_eq(m.body.error.code, CODE_BUSY);
	ck_assert_uint_eq(m.rid, rid[2]);
	ck_assert_int_eq(box_recv(&b.ch, &m), 1);
	ck_assert_uint_eq(m.body.error.code, CODE_BAD_OFFSET);
	ping();
	(void)close(open(go, O_WRONLY | O_CREAT, 0644));
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(box_recv(&b.ch, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_SESSION_STDIN_AT);
		ck_assert_uint_eq(m.rid, rid[i]);
	}
	(void)unlink(go);
	put(id, 6 + 2 * sizeof(big), "", 1, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_STDIN_AT);
	out = box_output(&b, id, STREAM_STDOUT, &len);
	ck_assert_uint_eq(len, 6 + 2 * sizeof(big));
	free(out);
}
END_TEST

START_TEST(test_input_unread)
{
	struct msg_session_exit	x;
	struct msg		m;
	char			id[27];

	start_open("exec <&-; sleep 0.3", id);
	do
		put(id, 6, "x", 0, &m);
	while (m.row->type == MSG_SESSION_STDIN_AT &&
	    (put(id, 7, "", 0, &m), 0));
	box_wait(&b, id, &x);
	put(id, 7, "x", 0, &m);
	ck_assert_uint_eq(m.row->type, MSG_ERROR);
	ck_assert(m.body.error.code == CODE_ENDED ||
	    m.body.error.code == CODE_BAD_OFFSET);
}
END_TEST

/* ---- ends ------------------------------------------------------------ */

START_TEST(test_left_behind)
{
	struct msg_session_exit	x;
	struct row_rsession	row;
	uint64_t		t = mono_ms();
	char			id[27];

	box_sh(&b, "sleep 1000 & echo ok", 1, id);
	box_wait(&b, id, &x);
	ck_assert_uint_lt(mono_ms() - t, 5000);
	ck_assert_uint_eq(x.exit_code, 0);
	ck_assert_uint_eq(x.left_behind, 1);
	ck_assert(row_of(id, &row));
	ck_assert_uint_eq(row.ended, 1);
	ck_assert_uint_eq(row.left_behind, 1);
	ck_assert(cgroup_there(id));
	ck_assert_uint_eq(signal_session(id, SIGTERM), 0);
	EVENTUALLY(!cgroup_there(id));
	EVENTUALLY(row_of(id, &row) && row.left_behind == 0);
	ck_assert_uint_eq(signal_session(id, SIGTERM), CODE_ENDED);
}
END_TEST

/* It writes on: neither killed by SIGPIPE nor blocked. */
START_TEST(test_left_behind_writes)
{
	struct msg_session_exit	 x;
	char			 id[27], mark[100], *script;

	(void)snprintf(mark, sizeof(mark), "%s/mark", b.dir);
	script = xasprintf("(sleep 0.4; head -c 300000 /dev/zero && "
	    "echo fine > %s) & echo ok", mark);
	box_sh(&b, script, 1, id);
	free(script);
	box_wait(&b, id, &x);
	ck_assert_uint_gt(x.left_behind, 0);
	EVENTUALLY(access(mark, F_OK) == 0);
	EVENTUALLY(!cgroup_there(id));
	(void)unlink(mark);
}
END_TEST

START_TEST(test_late)
{
	struct msg_session_exit	 x;
	uint64_t		 t;
	char			 id[27], *out;

	box_sh(&b, "(sleep 0.05; echo late) & echo early", 1, id);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "early\nlate\n");
	free(out);
	t = mono_ms();
	box_sh(&b, "(sleep 3; echo never) & echo early", 1, id);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "early\n");
	free(out);
	box_wait(&b, id, &x);
	ck_assert_uint_lt(mono_ms() - t, 2500);
}
END_TEST

/* What is in the pipe when the leader dies is kept, whatever the marks say. */
START_TEST(test_rest_is_kept)
{
	struct msg_session_exit	 x;
	size_t			 len;
	char			 id[27], *out;

	/* past the mark, so that the pipe is full when it exits */
	box_sh(&b, "head -c 4194304 /dev/zero; head -c 65536 /dev/zero", 1,
	    id);
	box_wait(&b, id, &x);
	out = box_output(&b, id, STREAM_STDOUT, &len);
	ck_assert_uint_eq(len, 4194304 + 65536);
	free(out);
}
END_TEST

START_TEST(test_limit)
{
	static const char *const soft[] = { "sleep", "1000", NULL };
	static const char *const hard[] = { "sh", "-c",
	    "trap '' TERM; while :; do sleep 1; done", NULL };
	struct msg_session_run	run = { .timeout_ms = 200 };
	struct msg_session_exit	x;
	struct msg		m;
	int			i;

	for (i = 0; i < 2; i++) {
		ulid_new(run.id);
		run.argv = box_list(i == 0 ? soft : hard);
		box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
		ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
		box_wait(&b, run.id, &x);
		ck_assert_uint_eq(x.timed_out, 1);
		ck_assert_uint_eq(x.signal, i == 0 ? SIGTERM : SIGKILL);
		ck_assert_uint_ge(x.wall_ms, i == 0 ? 200 : 2200);
		ck_assert_uint_lt(x.wall_ms, i == 0 ? 2000 : 6000);
		EVENTUALLY(!cgroup_there(run.id));
	}
}
END_TEST

START_TEST(test_limit_left_behind)
{
	static const char *const argv[] = { "sh", "-c",
	    "(trap '' TERM; while :; do sleep 1; done) & echo ok", NULL };
	struct msg_session_run	run = { .timeout_ms = 700 };
	struct msg_session_exit	x;
	struct msg		m;

	ulid_new(run.id);
	run.argv = box_list(argv);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	box_wait(&b, run.id, &x);
	ck_assert_uint_eq(x.timed_out, 0);
	ck_assert_uint_eq(x.exit_code, 0);
	EVENTUALLY(!cgroup_there(run.id));
}
END_TEST

START_TEST(test_signals)
{
	struct msg_session_exit	x;
	char			id[27], *out;

	box_sh(&b, "trap 'echo usr; exit 3' USR1; echo up; "
	    "while :; do sleep 0.01; done", 1, id);
	EVENTUALLY(({ struct row_rsession r; row_of(id, &r) &&
	    r.last_seq > 0; }));
	ck_assert_uint_eq(signal_session(id, SIGUSR1), 0);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 3);
	out = box_output(&b, id, STREAM_STDOUT, NULL);
	ck_assert_str_eq(out, "up\nusr\n");
	free(out);
	ck_assert_uint_eq(signal_session(id, SIGUSR1), CODE_ENDED);
	/* the whole of it */
	box_sh(&b, "setsid sh -c 'trap \"\" TERM; sleep 1000; :' & "
	    "trap '' TERM; while :; do sleep 1; done", 0, id);
	ck_assert_uint_eq(signal_session(id, SIGKILL), 0);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	EVENTUALLY(!cgroup_there(id));
}
END_TEST

START_TEST(test_drain)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_runner_drain	drain = { .grace_ms = 500 };
	struct msg_session_run	run = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	char			id[3][27];
	uint64_t		t;

	box_sh(&b, "sleep 1000", 0, id[0]);
	box_sh(&b, "trap '' TERM; while :; do sleep 1; done", 0, id[1]);
	box_sh(&b, "sleep 1000 & :", 0, id[2]);
	box_wait(&b, id[2], &x);
	t = mono_ms();
	box_call(&b.ch, MSG_RUNNER_DRAIN, &drain, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
	ck_assert_uint_ge(mono_ms() - t, 500);
	box_wait(&b, id[0], &x);
	ck_assert_uint_eq(x.signal, SIGTERM);
	box_wait(&b, id[1], &x);
	ck_assert_uint_eq(x.signal, SIGKILL);
	ulid_new(run.id);
	run.argv = box_list(argv);
	box_call(&b.ch, MSG_SESSION_RUN, &run, &m);
	ck_assert_uint_eq(m.body.error.code, CODE_NOT_READY);
	drain.grace_ms = 0;
	box_call(&b.ch, MSG_RUNNER_DRAIN, &drain, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
}
END_TEST

/* ---- hostile processes ----------------------------------------------- */

/* Orphans by the hundred: all reaped, and the runner answers meanwhile. */
START_TEST(test_orphans)
{
	struct msg_session_exit	x;
	char			id[27], *out;
	int			i;

	box_sh(&b, "i=0; while [ $i -lt 500 ]; do (:&) ; i=$((i+1)); done",
	    0, id);
	for (i = 0; i < 20; i++)
		ping();
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 0);
	EVENTUALLY(!cgroup_there(id));
	out = sh("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || :");
	ck_assert_str_eq(out, "0\n");
	free(out);
}
END_TEST

START_TEST(test_kill_all)
{
	struct msg_session_exit	x;
	char			id[27];

	box_sh(&b, "kill -KILL -1; kill -KILL 1; kill -STOP 1; kill -TERM 1;"
	    "exit 5", 0, id);
	box_wait(&b, id, &x);
	ck_assert_uint_eq(x.exit_code, 5);
	ping();
}
END_TEST

/*
 * Every process but pid 1 is stopped over and over, also those that the
 * runner is just making: it is never held up for long by one of them.
 */
START_TEST(test_stop_all)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_session_run	run = { 0 };
	char			id[27];
	uint64_t		t, worst = 0;
	int			i;

	box_sh(&b, "while :; do kill -STOP -1; done 2>/dev/null", 0, id);
	for (i = 0; i < 30; i++) {
		ulid_new(run.id);
		run.argv = box_list(argv);
		ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN, &run, -1,
		    NULL), 0);
		t = mono_ms();
		ping();
		t = mono_ms() - t;
		worst = t > worst ? t : worst;
	}
	if (getenv("RUNNER_VERBOSE") != NULL)
		(void)printf("held up for %" PRIu64 " ms at most\n", worst);
	ck_assert_uint_lt(worst, 2000);
	ck_assert_uint_eq(signal_session(id, SIGKILL), 0);
	free(sh("echo still there"));
}
END_TEST

static void
freeze(int on)
{
	char	path[400];
	int	fd;

	(void)snprintf(path, sizeof(path), "%s/box/sessions/cgroup.freeze",
	    b.cg2);
	ck_assert_int_ne(fd = open(path, O_WRONLY), -1);
	ck_assert_int_eq(write(fd, on ? "1" : "0", 1), 1);
	(void)close(fd);
}

/* The process that is in a session's cgroup, as seen from here. */
static pid_t
pid_of(const char *id)
{
	char	path[400];
	int	pid = 0;
	FILE	*f;

	(void)snprintf(path, sizeof(path), "%s/box/sessions/%s/cgroup.procs",
	    b.cg2, id);
	if ((f = fopen(path, "re")) != NULL) {
		if (fscanf(f, "%d", &pid) != 1)
			pid = 0;
		(void)fclose(f);
	}
	return pid;
}

/*
 * A child that is held up between clone and exec (here it freezes when it
 * joins its cgroup) holds nobody up; those behind it start when it is gone.
 */
START_TEST(test_held_up)
{
	static const char *const argv[] = { "true", NULL };
	struct msg_session_run	run[3] = { 0 };
	struct msg_session_exit	x;
	struct msg		m;
	uint32_t		rid[3];
	uint64_t		t;
	int			i, round;

	for (round = 0; round < 6; round++) {
		freeze(1);
		for (i = 0; i < 3; i++) {
			ulid_new(run[i].id);
			run[i].argv = box_list(argv);
			ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN,
			    &run[i], -1, &rid[i]), 0);
		}
		t = mono_ms();
		ping();
		ck_assert_uint_lt(mono_ms() - t, 1000);
		EVENTUALLY(pid_of(run[0].id) > 0);
		ck_assert_int_eq(pid_of(run[1].id), 0);
		if (round % 2 == 1)	/* then it is stopped, too */
			ck_assert_int_eq(kill(pid_of(run[0].id), SIGSTOP), 0);
		if (round == 4)		/* or killed */
			ck_assert_int_eq(kill(pid_of(run[0].id), SIGKILL), 0);
		freeze(0);
		for (i = 0; i < 3; i++) {
			ck_assert_int_eq(box_recv(&b.ch, &m), 1);
			ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
			ck_assert_uint_eq(m.rid, rid[i]);
		}
		for (i = 0; i < 3; i++) {
			box_wait(&b, run[i].id, &x);
			ck_assert_uint_eq(x.signal, i == 0 && (round % 2 ==
			    1 || round == 4) ? SIGKILL : 0);
			EVENTUALLY(!cgroup_there(run[i].id));
		}
	}
}
END_TEST

/* A drain and a signal reach one that is held up. */
START_TEST(test_held_up_drain)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	struct msg_runner_drain	drain = { .grace_ms = 300 };
	struct msg_session_run	run = { 0 };
	struct msg		m;
	uint32_t		rid, drid;
	int			seen = 0;

	freeze(1);
	ulid_new(run.id);
	run.argv = box_list(argv);
	ck_assert_int_eq(chan_ask(&b.ch, MSG_SESSION_RUN, &run, -1, &rid), 0);
	EVENTUALLY(pid_of(run.id) > 0);
	ck_assert_int_eq(chan_ask(&b.ch, MSG_RUNNER_DRAIN, &drain, -1, &drid),
	    0);
	while (seen != 3) {
		ck_assert_int_eq(box_recv(&b.ch, &m), 1);
		seen |= m.rid == rid ? 1 : m.rid == drid ? 2 : 0;
	}
	freeze(0);
	ping();
}
END_TEST

/* A file that is slow to exec, a pipe, a device: none holds it up. */
START_TEST(test_odd_commands)
{
	char	fifo[100];

	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", b.dir);
	ck_assert_int_eq(mkfifo(fifo, 0755), 0);
	run_error((const char *const[]){ fifo, NULL }, "",
	    CODE_COMMAND_NOT_EXECUTABLE);
	run_error((const char *const[]){ "/dev/null", NULL }, "",
	    CODE_COMMAND_NOT_EXECUTABLE);
	(void)unlink(fifo);
	ping();
}
END_TEST

/* ---- wb -------------------------------------------------------------- */

static char *
with_wb(const char *fmt)
{
	char	*s = xasprintf("W=%s; wb() { $W \"$@\"; }; %s",
		    box_program("wb", "wb"), fmt);

	return s;
}

static void
expect_wb(const char *script, const char *expected)
{
	char	*s = with_wb(script);

	expect_sh(s, expected);
	free(s);
}

START_TEST(test_wb)
{
	char	*s, *out;

	expect_wb("wb run -- sh -c 'exit 7'; echo $?", "7\n");
	expect_wb("wb run sh -c 'kill -9 $$'; echo $?", "137\n");
	expect_wb("wb run -- no-such 2>/dev/null; echo $?", "127\n");
	expect_wb("wb run -- /etc/passwd 2>/dev/null; echo $?", "126\n");
	expect_wb("wb run 2>/dev/null; echo $?", "125\n");
	expect_wb("wb nonsense 2>/dev/null; echo $?", "125\n");
	expect_wb("echo hello | wb run --name x -- tr a-z A-Z", "HELLO\n");
	expect_wb("cd /tmp; X=1 wb run -- sh -c 'echo $X; pwd; echo e >&2' "
	    "2>&1 | sort", "/tmp\n1\ne\n");
	expect_wb("seq 1000000 | wb run -- cat | cksum > /tmp/$$; "
	    "seq 1000000 | cksum | cmp - /tmp/$$ && rm /tmp/$$", "");
	s = with_wb("wb status");
	out = sh(s);
	ck_assert_ptr_nonnull(strstr(out, "name     test\n"));
	ck_assert_ptr_nonnull(strstr(out, "host     attached\n"));
	free(out);
	free(s);
}
END_TEST

static void
dial_wb_as(struct chan *c, uid_t uid)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	char			dir[64];
	int			fd = socket(AF_UNIX, SOCK_SEQPACKET |
				    SOCK_CLOEXEC, 0);

	(void)snprintf(dir, sizeof(dir), "/proc/%ld/root" BOX_RUN,
	    (long)b.pid);
	ck_assert_int_eq(chdir(dir), 0);
	(void)str_copy(un.sun_path, "runner.sock", sizeof(un.sun_path));
	ck_assert_int_eq(seteuid(uid), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chdir("/"), 0);
	chan_init(c, fd, A_WB, A_RUNNER, S_RUN);
}

static unsigned int
code_of(const struct msg *m)
{
	return m->row->type == MSG_ERROR ? (unsigned int)m->body.error.code :
	    CODE_NONE;
}

/* As another user it is that user, and sees only what is its own. */
START_TEST(test_wb_user)
{
	static const char *const	 argv[] = { "cat", NULL };
	struct msg_session_read		 r = { 0 };
	struct msg_session_wait		 w = { 0 };
	struct msg_session_signal	 k = { .signal = SIGKILL };
	struct msg_session_stdin	 in = { 0 };
	struct msg_runner_sessions	 l = { 0 };
	struct msg_wb_run		 run = { .stdin_open = 1,
	    .cwd = "/" };
	struct msg			 m;
	struct chan			 c, d;
	char				 id[27], *s;

	s = xasprintf("cd /; setpriv --reuid 1000 --regid 1000 --groups "
	    "1001,1002 %s run -- sh -c 'id -u; id -g; id -G; grep -c "
	    "CapEff:.0000000000000000 /proc/self/status'",
	    box_program("wb", "wb"));
	expect_sh(s, "1000\n1000\n1000 1001 1002\n1\n");
	free(s);
	box_sh(&b, "sleep 1000", 0, id);
	dial_wb_as(&c, 1000);
	memcpy(r.id, id, sizeof(r.id));
	memcpy(w.id, id, sizeof(w.id));
	memcpy(k.id, id, sizeof(k.id));
	memcpy(in.id, id, sizeof(in.id));
	box_call(&c, MSG_SESSION_READ, &r, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	box_call(&c, MSG_SESSION_WAIT, &w, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	box_call(&c, MSG_SESSION_SIGNAL, &k, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	box_call(&c, MSG_SESSION_STDIN, &in, &m);
	ck_assert_uint_eq(code_of(&m), CODE_NOT_FOUND);
	run.argv = box_list(argv);
	box_call(&c, MSG_WB_RUN, &run, &m);
	ck_assert_uint_eq(code_of(&m), 0);
	box_call(&c, MSG_RUNNER_SESSIONS, &l, &m);
	/* its own two, of which one is the setpriv above */
	ck_assert_uint_eq(m.body.runner_sessions_are.rows.n, 2);
	dial_wb_as(&d, 1001);
	box_call(&d, MSG_RUNNER_SESSIONS, &l, &m);
	ck_assert_uint_eq(m.body.runner_sessions_are.rows.n, 0);
	chan_close(&d);
	dial_wb_as(&d, 0);
	box_call(&d, MSG_SESSION_SIGNAL, &k, &m);
	ck_assert_uint_eq(code_of(&m), 0);
	chan_close(&d);
	chan_close(&c);
}
END_TEST

/* A session that wb starts is announced, and listed for who was not there. */
START_TEST(test_announce)
{
	static const char *const argv[] = { "true", "one", NULL };
	struct msg_wb_run	 run = { .name = "mine", .cwd = "/" };
	struct row_rsession	 row;
	struct msg		 m;
	struct chan		 c;
	char			 id[27];

	ping();
	dial_wb_as(&c, 0);
	run.argv = box_list(argv);
	box_call(&c, MSG_WB_RUN, &run, &m);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_RUNNING);
	memcpy(id, m.body.session_running.id, sizeof(id));
	chan_close(&c);
	ck_assert_int_eq(box_recv(&b.ch, &m), 1);
	ck_assert_uint_eq(m.row->type, MSG_SESSION_ANNOUNCE);
	ck_assert_str_eq(m.body.session_announce.id, id);
	ck_assert_str_eq(m.body.session_announce.name, "mine");
	ck_assert_uint_eq(m.body.session_announce.argv.n, 2);
	ck_assert(row_of(id, &row));
	ck_assert_uint_eq(row.origin, 1);
	ck_assert_str_eq(row.name, "mine");
}
END_TEST

/* Its stdout is closed: SIGPIPE, as in any pipe. */
START_TEST(test_wb_pipe)
{
	expect_wb("(wb run -- yes; echo $? > /tmp/$$) | head -n 1; "
	    "cat /tmp/$$; rm /tmp/$$", "y\n141\n");
}
END_TEST

/* The first signal is the command's, the second is wb's own. */
START_TEST(test_wb_signals)
{
	expect_wb("$W run -- sh -c 'trap \"echo caught; exit 9\" TERM; echo up;"
	    " while :; do sleep 0.01; done' > /tmp/$$ & w=$!; "
	    "until grep -q up /tmp/$$; do sleep 0.01; done; kill $w; "
	    "wait $w; echo $?; cat /tmp/$$; rm /tmp/$$", "9\nup\ncaught\n");
	expect_wb("$W run -- sh -c 'trap \"echo no\" TERM; echo up;"
	    " while :; do sleep 0.01; done' > /tmp/$$ 2>/dev/null & w=$!; "
	    "until grep -q up /tmp/$$; do sleep 0.01; done; kill $w; "
	    "until grep -q no /tmp/$$; do sleep 0.01; done; kill $w; "
	    "wait $w; echo $?; rm /tmp/$$; wb status | grep running",
	    "143\nrunning  2\n");
}
END_TEST

static Suite *
suite(void)
{
	Suite	*s = suite_create("runner");
	TCase	*t;

	t = tcase_create("handshake");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_wrong_token);
	tcase_add_test(t, test_nonce_once);
	tcase_add_test(t, test_one_peer);
	tcase_add_test(t, test_too_early);
	tcase_add_test(t, test_stderr_until_go);
	tcase_add_loop_test(t, test_nonsense, 0,
	    (int)(sizeof(nonsense) / sizeof(nonsense[0])));
	tcase_add_test(t, test_noise);
	tcase_add_test(t, test_descriptor);
	tcase_add_test(t, test_many_peers);
	suite_add_tcase(s, t);

	t = tcase_create("sessions");
	tcase_add_checked_fixture(t, setup_attached, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_facts);
	tcase_add_test(t, test_never_reads);
	tcase_add_test(t, test_exit);
	tcase_add_test(t, test_output);
	tcase_add_test(t, test_world);
	tcase_add_test(t, test_environment);
	tcase_add_test(t, test_errors);
	tcase_add_test(t, test_same_id);
	tcase_add_test(t, test_kept);
	tcase_add_test(t, test_too_many);
	tcase_add_test(t, test_lossless);
	tcase_add_test(t, test_gap);
	tcase_add_test(t, test_gap_from);
	tcase_add_test(t, test_crumbs);
	tcase_add_test(t, test_host_gone);
	tcase_add_test(t, test_attach_expires);
	tcase_add_test(t, test_input);
	tcase_add_test(t, test_input_slow);
	tcase_add_test(t, test_input_unread);
	tcase_add_test(t, test_left_behind);
	tcase_add_test(t, test_left_behind_writes);
	tcase_add_test(t, test_late);
	tcase_add_test(t, test_rest_is_kept);
	tcase_add_test(t, test_limit);
	tcase_add_test(t, test_limit_left_behind);
	tcase_add_test(t, test_signals);
	tcase_add_test(t, test_drain);
	tcase_add_test(t, test_orphans);
	tcase_add_test(t, test_kill_all);
	tcase_add_test(t, test_stop_all);
	tcase_add_test(t, test_held_up);
	tcase_add_test(t, test_held_up_drain);
	tcase_add_test(t, test_odd_commands);
	tcase_add_test(t, test_wb);
	tcase_add_test(t, test_wb_user);
	tcase_add_test(t, test_announce);
	tcase_add_test(t, test_wb_pipe);
	tcase_add_test(t, test_wb_signals);
	suite_add_tcase(s, t);

	t = tcase_create("small");
	tcase_add_checked_fixture(t, setup_small, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_box_bound);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner	*r;
	int	 failed;

	if (box_unable() != NULL) {
		(void)printf("skipped: %s\n", box_unable());
		return 77;
	}
	r = srunner_create(suite());
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
