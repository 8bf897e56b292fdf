/*
 * stored_start.c: stored_hostile_test, an end at any moment, and what is
 * looked at, left and taken at each start.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stored_hostile.h"

/* ---- kill at any moment ------------------------------------------ */

/* What was acknowledged is there, the chain is whole, numbers go on. */
START_TEST(killed)
{
	struct event_auth_failed ev = { .method = "GET" };
	struct msg_event_append	w = { .type = EVENT_AUTH_FAILED,
	    .durable = 1, .actor = "t", .outcome = "denied" };
	uint8_t			buf[512];
	struct msg		m;
	uint64_t		acked = 0, have = 0;
	unsigned int		round, sent;
	char			*log;

	w.data.data = buf;
	w.data.len = (size_t)wire_encode(&wire_event_auth_failed, &ev, buf,
	    sizeof(buf));
	for (round = 0; round < 30; round++) {
		for (sent = 0; sent < 40; sent++)
			ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_APPEND,
			    &w, -1, NULL), 0);
		for (sent = 0; sent < round; sent++) {
			ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
			ck_assert_uint_eq(m.row->type, MSG_EVENT_APPENDED);
			ck_assert_uint_gt(m.body.event_appended.seq, acked);
			acked = m.body.event_appended.seq;
		}
		rig_kill(&r);
		rig_start(&r);
		log = rig_log(&r, "");
		have = rig_verify(log);
		free(log);
		ck_assert_uint_ge(have, acked);
		acked = have;
	}
	ck_assert_uint_ge(have, 29);
}
END_TEST

/* ---- one database, one stored ------------------------------------ */

START_TEST(second)
{
	struct rig	other = r;
	int		st;

	chan_init(&other.privd, -1, A_PRIVD, A_STORED, S_INIT);
	chan_init(&other.apid, -1, A_APID, A_STORED, S_RUN);
	rig_spawn(&other);
	st = rig_wait(&other);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	whole(1);
}
END_TEST

/* The directory: not ours, open to others, a link. */
START_TEST(directory)
{
	char	db[160], to[170];

	rig_stop(&r);
	snprintf(db, sizeof(db), "%s/db", r.dir);
	ck_assert_int_eq(chmod(db, 0750), 0);
	must_not_start();
	ck_assert_int_eq(chmod(db, 0700), 0);
	ck_assert_int_eq(chown(db, 1, 1), 0);
	must_not_start();
	ck_assert_int_eq(chown(db, RIG_UID, RIG_UID), 0);
	snprintf(to, sizeof(to), "%s.real", db);
	ck_assert_int_eq(rename(db, to), 0);
	ck_assert_int_eq(symlink(to, db), 0);
	must_not_start();
	ck_assert_int_eq(unlink(db), 0);
	ck_assert_int_eq(rename(to, db), 0);
	rig_start(&r);
	whole(0);
}
END_TEST

/* ---- the fence --------------------------------------------------- */

static void
status_is(const char *key, const char *want)
{
	char	path[64], line[256];
	FILE	*f;
	int	seen = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)r.pid);
	ck_assert_ptr_nonnull(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0) {
			seen = 1;
			ck_assert_msg(strstr(line, want) != NULL, "%s", line);
		}
	ck_assert_int_eq(seen, 1);
	fclose(f);
}

START_TEST(fence)
{
	char		path[64], db[160], uid[64];
	struct stat	a, b;
	struct dirent	*e;
	DIR		*d;
	int		sockets = 0;

	snprintf(uid, sizeof(uid), "%d\t%d\t%d\t%d", RIG_UID, RIG_UID,
	    RIG_UID, RIG_UID);
	status_is("Uid:", uid);
	status_is("Gid:", uid);
	status_is("Groups:", "Groups:\t \n");
	status_is("CapPrm:", "0000000000000000");
	status_is("CapBnd:", "0000000000000000");
	status_is("NoNewPrivs:", "1");
	status_is("Threads:", SANITIZED ? "" : "2");
	status_is("Seccomp:", SANITIZED ? "0" : "2");
	snprintf(path, sizeof(path), "/proc/%d/root/.", (int)r.pid);
	snprintf(db, sizeof(db), "%s/db", r.dir);
	ck_assert_int_eq(stat(path, &a), 0);
	ck_assert_int_eq(stat(db, &b), 0);
	ck_assert(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
	/* not dumpable: its /proc files are root's */
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)r.pid);
	ck_assert_int_eq(stat(path, &a), 0);
	ck_assert_uint_eq(a.st_uid, 0);
	ck_assert_ptr_nonnull(d = opendir(path));
	while ((e = readdir(d)) != NULL) {
		char	l[128] = "";

		(void)!readlinkat(dirfd(d), e->d_name, l, sizeof(l) - 1);
		sockets += strncmp(l, "socket:", 7) == 0;
	}
	closedir(d);
	ck_assert_int_eq(sockets, 3);		/* privd, apid and proxyd */
}
END_TEST

TCase *
crash_case(void)
{
	TCase	*t = rig_case("crash");

	tcase_add_test(t, killed);
	return t;
}

TCase *
start_case(void)
{
	TCase	*t = rig_case("start");

	tcase_add_test(t, second);
	tcase_add_test(t, directory);
	tcase_add_test(t, fence);
	return t;
}
