/*
 * runner_flow.c: output and input: every byte, in order, within bounds.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sha2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner_case.h"

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

/*
 * Whoever reads a session from its start holds it back, also one that was
 * started for nobody, and comes back to where it was.
 */
START_TEST(test_attach_later)
{
	struct msg_session_read	r = { .wait = 1, .attached = 1 };
	struct msg		m;
	char			id[27];
	uint64_t		got = 0;

	box_sh(&b, "head -c 20971520 /dev/zero", 0, id);
	(void)str_copy(r.id, id, sizeof(r.id));
	do {
		box_call(&b.ch, MSG_SESSION_READ, &r, &m);
		ck_assert_uint_eq(m.body.session_chunk.gap_bytes, 0);
		got += m.body.session_chunk.bytes.len;
		r.after = m.body.session_chunk.seq;
		if (r.after == 3)	/* all of it would be written by then */
			(void)poll(NULL, 0, 1000);
	} while (!m.body.session_chunk.eof);
	ck_assert_uint_eq(got, 20 * MIB);
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

	/* one write: its pipe is found full, and made larger; then crumbs */
	box_sh(&b, "dd if=/dev/zero bs=20971517 count=1 2>/dev/null; "
	    "echo; echo; echo", 0, id);
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
	/* but for a block, a chunk's room and the ends of blocks */
	ck_assert_uint_ge(got, 8 * MIB - 192 * 1024);
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

/* One prints without end: what is kept of others costs what it counts. */
START_TEST(test_beside_endless)
{
	struct row_rsession	row;
	char			id[27];
	int			i;

	box_sh(&b, "exec yes", 0, id);
	/* it overwrites by now */
	EVENTUALLY(row_of(id, &row) && row.first_seq > 1);
	for (i = 0; i < 200; i++)
		free(sh("echo ok"));
	/* 8 MiB of yes, 200 pages, what RING_SLACK allows, the rest */
	ck_assert_int_lt(box_memory(b.pid, "Private_Dirty"), 11 * 1024);
	ck_assert_uint_eq(signal_session(id, SIGKILL), 0);
}
END_TEST

/* Pipes of the runner of which a word is true. */
static int
pipes(int (*fn)(int fd))
{
	char		 path[64];
	struct dirent	*e;
	DIR		*d;
	int		 fd, n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)b.pid);
	ck_assert_ptr_nonnull(d = opendir(path));
	while ((e = readdir(d)) != NULL) {
		fd = openat(dirfd(d), e->d_name,
		    O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd == -1)
			continue;
		n += fn(fd);
		(void)close(fd);
	}
	(void)closedir(d);
	return n;
}

/* It was made larger; only what is a pipe has such a size. */
static int
is_wide(int fd)
{
	return fcntl(fd, F_GETPIPE_SZ) == 262144;
}

/* It was not, and holds all that it can. */
static int
is_full(int fd)
{
	int	there;

	return fcntl(fd, F_GETPIPE_SZ) == 65536 &&
	    ioctl(fd, FIONREAD, &there) == 0 && there == 65536;
}

#define FULL	"dd if=/dev/zero bs=1000000 count=1 2>/dev/null; exec sleep 1000"

/* A user's pipes may hold so much: a part of it is for larger ones of ours. */
START_TEST(test_wide_pipes)
{
	struct msg_session_exit	x;
	struct row_rsession	row;
	char			id[80][27];
	int			i;

	ck_assert_int_eq(pipes(is_wide), 0);
	for (i = 0; i < 80; i++)
		box_sh(&b, "until grep -q ') T' /proc/1/stat; do sleep 0.05; "
		    "done; " FULL, 0, id[i]);
	/* it holds no writing end of the last one any more */
	ping();
	/* all are full before one is read */
	ck_assert_int_eq(kill(b.pid, SIGSTOP), 0);
	EVENTUALLY(pipes(is_full) == 80);
	ck_assert_int_eq(kill(b.pid, SIGCONT), 0);
	/* each is read, whether or not its pipe was made larger */
	for (i = 0; i < 80; i++)
		EVENTUALLY(row_of(id[i], &row) &&
		    row.last_seq >= 1000000 / 32768);
	ck_assert_int_eq(pipes(is_wide), 64);
	for (i = 0; i < 80; i++) {
		ck_assert_uint_eq(signal_session(id[i], SIGKILL), 0);
		box_wait(&b, id[i], &x);
	}
	ck_assert_int_eq(pipes(is_wide), 0);
	/* those that are gone do not count */
	box_sh(&b, FULL, 0, id[0]);
	EVENTUALLY(pipes(is_wide) == 1);
	ck_assert_uint_eq(signal_session(id[0], SIGKILL), 0);
}
END_TEST

/* One byte through a pipe that was once full costs others no more than one. */
START_TEST(test_wide_crumb)
{
	struct msg_session_read	r = { .wait = 1 };
	struct msg_session_exit	x;
	struct msg		m;
	char			kept[27], id[27], go[100], *script;
	uint64_t		n = 0;

	(void)snprintf(go, sizeof(go), "%s/go", b.dir);
	box_sh(&b, "head -c 1000000 /dev/zero", 0, kept);
	box_wait(&b, kept, &x);
	ck_assert_uint_eq(x.first_seq, 1);
	/* 2 MiB less these leave less than a wide pipe holds */
	script = xasprintf("dd if=/dev/zero bs=970000 count=1 2>/dev/null; "
	    "while [ ! -e %s ]; do sleep 0.01; done; echo", go);
	box_sh(&b, script, 0, id);
	free(script);
	(void)str_copy(r.id, id, sizeof(r.id));
	for (; n < 970000; n += m.body.session_chunk.bytes.len) {
		box_call(&b.ch, MSG_SESSION_READ, &r, &m);
		r.after = m.body.session_chunk.seq;
	}
	ck_assert_int_eq(pipes(is_wide), 1);
	(void)close(open(go, O_WRONLY | O_CREAT, 0644));
	box_wait(&b, id, &x);
	(void)unlink(go);
	ck_assert_uint_eq(x.first_seq, 1);
	r.after = 0;
	(void)str_copy(r.id, kept, sizeof(r.id));
	box_call(&b.ch, MSG_SESSION_READ, &r, &m);
	ck_assert_uint_eq(m.body.session_chunk.gap_bytes, 0);
	ck_assert_uint_eq(m.body.session_chunk.seq, 1);
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

TCase *
case_flow(void)
{
	TCase	*t = tcase_create("flow");

	tcase_add_checked_fixture(t, setup_attached, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_lossless);
	tcase_add_test(t, test_attach_later);
	tcase_add_test(t, test_gap);
	tcase_add_test(t, test_gap_from);
	tcase_add_test(t, test_crumbs);
	tcase_add_test(t, test_beside_endless);
	tcase_add_test(t, test_wide_pipes);
	tcase_add_test(t, test_host_gone);
	tcase_add_test(t, test_attach_expires);
	tcase_add_test(t, test_never_reads);
	tcase_add_test(t, test_input);
	tcase_add_test(t, test_input_slow);
	tcase_add_test(t, test_input_unread);
	return t;
}

TCase *
case_small(void)
{
	TCase	*t = tcase_create("small");

	tcase_add_checked_fixture(t, setup_small, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_test(t, test_box_bound);
	tcase_add_test(t, test_wide_crumb);
	return t;
}
