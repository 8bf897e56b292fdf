/*
 * stored_full.c: stored_hostile_test, a disk that fills up.
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stored_hostile.h"

static void
fill(const char *path)
{
	static char	block[65536];
	int		fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	size_t		n;

	ck_assert_int_ne(fd, -1);
	for (n = sizeof(block); n >= 512; n /= 2)
		while (write(fd, block, n) > 0)
			;
	ck_assert_int_eq(errno, ENOSPC);
	close(fd);
}

/* Sends n denials at once; how many are in the log.  The others: DISK_FULL. */
static unsigned int
append_many(unsigned int n)
{
	struct event_auth_failed ev = { .method = "GET" };
	struct msg_event_append	w = { .type = EVENT_AUTH_FAILED,
	    .durable = 1, .actor = "t", .outcome = "denied" };
	uint8_t			buf[1024];
	struct msg		m;
	unsigned int		i, ok = 0;

	memset(ev.path, 'p', sizeof(ev.path) - 1);
	w.data.data = buf;
	w.data.len = (size_t)wire_encode(&wire_event_auth_failed, &ev, buf,
	    sizeof(buf));
	for (i = 0; i < n; i++)
		if (chan_ask(&r.apid, MSG_EVENT_APPEND, &w, -1, NULL) == -1)
			ck_abort_msg("ask: %s", r.apid.why);
	for (i = 0; i < n; i++) {
		if (rig_recv(&r.apid, &m) != 1)
			ck_abort_msg("closed");
		if (m.row->type == MSG_ERROR)
			ck_assert_uint_eq(m.body.error.code, CODE_DISK_FULL);
		else
			ok++;
	}
	return ok;
}

/*
 * Sends n new sessions at once, each about 64 KiB of rows and record; how
 * many are there.  The others: DISK_FULL.
 */
static unsigned int
put_many(const char *sandbox, unsigned int n)
{
	static char		arg[30000];
	static uint8_t		buf[WIRE_MAX];
	struct wire_bin		v = { (const uint8_t *)arg, sizeof(arg) };
	struct msg_session_put	p = { .actor = "t", .durable = 1 };
	struct row_session	row;
	struct msg		m;
	unsigned int		i, ok = 0;

	memset(arg, 'x', sizeof(arg));
	for (i = 0; i < n; i++) {
		row = rig_session(sandbox);
		row.argv.v = &v;
		row.argv.n = 1;
		p.row.len = (size_t)wire_encode(&wire_row_session, &row, buf,
		    sizeof(buf));
		p.row.data = buf;
		ck_assert_int_eq(chan_ask(&r.apid, MSG_SESSION_PUT, &p, -1,
		    NULL), 0);
	}
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		if (m.row->type == MSG_ERROR)
			ck_assert_uint_eq(m.body.error.code, CODE_DISK_FULL);
		else
			ok++;
	}
	return ok;
}

/*
 * The stages of a disk that fills up: creates are refused first, new sessions
 * when most of the reserve is used, removals and denials never before the
 * last byte; then every change; and all is well when there is space again.
 */
static void
disk_full(void)
{
	struct row_sandbox	a = rig_box("a"), b = rig_box("b"), got;
	unsigned int		sessions = 0, denials = 0, full = 0, n, i;
	char			path[160];

	rig_ready(&r, &a);
	ck_assert_uint_eq(rig_list(&r, a.id, 0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(rig_info(&r).reserve_short, 0);
	snprintf(path, sizeof(path), "%s/fill", r.dir);
	fill(path);
	/* the space behind the file is still there */
	while ((n = put_many(a.id, 20)) == 20)
		sessions += n;
	ck_assert_uint_gt(sessions, 300);
	ck_assert_uint_eq(rig_info(&r).reserve_short, 1);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_DISK_FULL);
	ck_assert_int_eq(rig_get(&r, b.id, &got), 0);
	ck_assert_uint_eq(rig_list(&r, a.id, 1, "b.example"),
	    CODE_DISK_FULL);
	/* what must go on goes on */
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	ck_assert_uint_eq(rig_network(&r, a.id, NETWORK_ALLOWLIST, ""),
	    CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DRAINING, "", NULL),
	    CODE_NONE);
	/* down to the last page */
	while ((n = append_many(300)) == 300)
		denials += n;
	ck_assert_uint_gt(denials, 1000);
	for (i = 0; i < 20; i++)		/* it lives, it says so */
		full += append_many(300) < 300;
	ck_assert_uint_gt(full, 0);
	ck_assert_int_eq(unlink(path), 0);
	/* recovery without help: the reserve is looked at every second */
	while (rig_info(&r).reserve_short == 1)
		(void)rig_append(&r, "", 1);
	ck_assert_uint_eq(rig_move(&r, a.id, BOX_DELETING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_create(&r, &b), CODE_NONE);
	rig_stop(&r);
	rig_start(&r);
	ck_assert_int_eq(rig_get(&r, a.id, &got), 1);
	ck_assert_uint_eq(got.state, BOX_DELETING);
	whole(rig_info(&r).last_seq);
}

/* stored again, on 160 MiB. */
static void
start_on_tmpfs(void)
{
	rig_stop(&r);
	ck_assert_int_eq(mount("none", r.dir, "tmpfs", 0,
	    "size=160m,mode=755"), 0);
	rig_start(&r);
}

START_TEST(full_tmpfs)
{
	start_on_tmpfs();
	disk_full();
	rig_stop(&r);
	ck_assert_int_eq(umount(r.dir), 0);
}
END_TEST

/* The same on ext4, where there is a loop device. */
START_TEST(full_ext4)
{
	char	cmd[1024];

	rig_stop(&r);
	snprintf(cmd, sizeof(cmd), "truncate -s 200M %s.img && "
	    "mkfs.ext4 -q -m 0 %s.img && mount -o loop %s.img %s", r.dir,
	    r.dir, r.dir, r.dir);
	if (system(cmd) != 0) {
		printf("skipped: full_ext4: no loop device or mkfs.ext4\n");
		snprintf(cmd, sizeof(cmd), "rm -f %s.img", r.dir);
		ck_assert_int_eq(system(cmd), 0);
		return;
	}
	ck_assert_int_eq(chmod(r.dir, 0755), 0);
	rig_start(&r);
	disk_full();
	rig_stop(&r);
	snprintf(cmd, sizeof(cmd), "umount %s && rm %s.img", r.dir, r.dir);
	ck_assert_int_eq(system(cmd), 0);
}
END_TEST

/* The reserve is taken away from outside: what is left is little. */
static void
give_up_reserve(void)
{
	char		path[160];
	struct stat	st;

	snprintf(path, sizeof(path), "%s/db/data.mdb", r.dir);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size), 0);
}

/*
 * What was accepted and not yet on disk when it filled up is kept, and is
 * there, in its order, when there is space again.
 */
START_TEST(full_accepted)
{
	struct row_sandbox	a = rig_box("a"), got;
	struct msg_sandbox_move	m = { .actor = "t" };
	struct msg		ans;
	unsigned int		i, ok = 0, full = 0, k;
	char			path[160];
	static const unsigned int steps[] = { BOX_DRAINING, BOX_DELETING };

	start_on_tmpfs();
	rig_ready(&r, &a);
	snprintf(path, sizeof(path), "%s/fill", r.dir);
	fill(path);
	give_up_reserve();
	fill(path);
	/* in one breath: two steps that do not wait for the disk */
	RIG_COPY(m.id, a.id);
	for (i = 0; i < 2; i++) {
		m.to = steps[i];
		ck_assert_int_eq(chan_ask(&r.apid, MSG_SANDBOX_MOVE, &m, -1,
		    NULL), 0);
	}
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_recv(&r.apid, &ans), 1);
		ok += ans.row->type == MSG_OK;
	}
	for (k = 0; k < 50 && full == 0; k++)
		full += rig_append(&r, "", 1) == CODE_DISK_FULL;
	ck_assert_int_eq(unlink(path), 0);
	while (rig_append(&r, "", 1) != CODE_NONE)
		;
	ck_assert_int_eq(rig_get(&r, a.id, &got), 1);
	ck_assert_uint_eq(ok, 2);
	ck_assert_uint_eq(got.state, BOX_DELETING);
	whole(rig_info(&r).last_seq);
	rig_stop(&r);
	ck_assert_int_eq(umount(r.dir), 0);
}
END_TEST

TCase *
full_case(void)
{
	TCase	*t = rig_case("full");

	tcase_add_test(t, full_tmpfs);
	tcase_add_test(t, full_ext4);
	tcase_add_test(t, full_accepted);
	return t;
}
