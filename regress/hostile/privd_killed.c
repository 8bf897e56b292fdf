/*
 * privd_killed.c: privd_test, sudden death of apid and of privd itself.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "privd_test.h"

/* ---- apid dies in the middle ---------------------------------------------------- */

/* 0: netd is at work; 1: netd has just answered */
START_TEST(create_in_flight)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg_net_made	made = { .k = 1, .ruleset = "x" };
	struct msg		m;
	int			i;

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	if (_i == 1)
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE,
		    m.rid, &made, rig_netns(&r)), 0);
	(void)kill(r.d[R_APID].pid, SIGKILL);
	for (i = 0; i < R_N; i++)
		fd_close(&r.d[i].sock);
	rig_set(&r);
	/* what was being made is gone, or known and ended by the asker */
	ck_assert_uint_eq(rig_go(&r), 0);
	all_gone();
}
END_TEST

/* ---- privd dies ------------------------------------------------------------------- */

static ino_t
userns_of_netd(void)
{
	char		path[64];
	struct stat	st;

	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/user",
	    (long)r.d[R_NETD].pid);
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

START_TEST(killed_with_boxes)
{
	struct msg	m;
	char		ids[4][27];
	int		alive[4], fd;
	ino_t		u1;
	BODY(a, box_attach, ID1);
	BODY(f, box_facts, ID2);

	rig_start(&r);
	(void)close(rig_box(&r, ID2, 2));
	(void)close(rig_box(&r, ID1, 1));
	u1 = userns_of_netd();
	rig_kill(&r);
	/* daemons of the old set that do not mind its end are ended */
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 2);
	ck_assert_int_eq(r.open, 1);
	ck_assert_uint_eq(userns_of_netd(), u1);
	ck_assert_uint_eq(listed(ids, alive), 2);
	ck_assert_str_eq(ids[0], ID1);
	ck_assert_str_eq(ids[1], ID2);
	ck_assert(alive[0] && alive[1]);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &f, &m),
	    MSG_BOX_FACTS_ARE);
	ck_assert_str_eq(m.body.box_facts_are.verdict, "");
	ck_assert_uint_eq(m.body.box_facts_are.network, NETWORK_ALLOWLIST);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	fd = m.fd;
	(void)close(fd);
	kill_box(ID1);
	purge_box(ID1, 1);
	kill_box(ID2);
	purge_box(ID2, 1);
}
END_TEST

/* In another cgroup a box that runs would be taken for dead. */
START_TEST(another_cgroup)
{
	char	was[sizeof(r.conf.cgroup)];

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	rig_kill(&r);
	(void)str_copy(was, r.conf.cgroup, sizeof(was));
	(void)snprintf(r.conf.cgroup, sizeof(r.conf.cgroup), "%s/other",
	    r.cgroup);
	rig_privd(&r);
	ck_assert_int_eq(WEXITSTATUS(rig_wait(&r)), 9);
	ck_assert(rig_logged(&r, "1 boxes are in cgroup wb-privd-"));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/memory/%s", r.conf.cgroup));
	ck_assert(!rig_file(&r, "/sys/fs/cgroup/%s", r.conf.cgroup));
	(void)str_copy(r.conf.cgroup, was, sizeof(was));
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* The owner of its / is whom the box's root likes; who made it wrote down. */
START_TEST(given_away)
{
	struct stat	st;
	char		path[150];

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	(void)snprintf(path, sizeof(path), "%s/sandboxes/%s/upper", r.dir,
	    ID1);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(chown(path, st.st_uid + 1000, st.st_uid + 1000), 0);
	rig_kill(&r);
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* A range that lies across two of the new pool is in use in both. */
START_TEST(another_uid_base)
{
	struct msg	m;
	struct stat	a, b;
	char		path[150];

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	rig_kill(&r);
	r.conf.uid_base -= 32768 + _i * 65536;
	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_int_eq(rig_create(&r, ID2, 2, &m), MSG_BOX_CREATED);
	(void)snprintf(path, sizeof(path), "%s/sandboxes/%s/upper", r.dir,
	    ID1);
	ck_assert_int_eq(stat(path, &a), 0);
	path[strlen(path) - strlen("1/upper")] = '2';
	ck_assert_int_eq(stat(path, &b), 0);
	ck_assert_uint_ge(a.st_uid < b.st_uid ? b.st_uid - a.st_uid :
	    a.st_uid - b.st_uid, 65536);
	kill_box(ID1);
	purge_box(ID1, 1);
	kill_box(ID2);
	purge_box(ID2, 1);
}
END_TEST

/* A set that is replaced adopts too; boxes and their connections live on. */
START_TEST(set_restart_with_box)
{
	struct msg	m;
	int		fd, i;
	ino_t		u1;
	BODY(a, box_attach, ID1);

	rig_start(&r);
	fd = rig_box(&r, ID1, 1);
	u1 = userns_of_netd();
	(void)kill(r.d[R_STORED].pid, SIGKILL);
	for (i = 0; i < R_N; i++)
		fd_close(&r.d[i].sock);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_uint_eq(userns_of_netd(), u1);
	(void)close(fd);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	(void)close(m.fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* Killed while a box is made and removed, at many moments. */
START_TEST(killed_at_any_time)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg_net_made	made = { .k = 1, .ruleset = "x" };
	struct msg		m;
	char			ids[4][27];
	int			alive[4];
	unsigned int		adopted, n;
	struct timespec		ts = { 0, 150000L * _i };

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE, m.rid,
	    &made, rig_netns(&r)), 0);
	(void)nanosleep(&ts, NULL);	/* the moment is what is varied */
	rig_kill(&r);
	rig_privd(&r);
	rig_set(&r);
	adopted = rig_go(&r);
	n = listed(ids, alive);
	ck_assert_uint_le(n, 1);
	if (n == 1) {
		kill_box(ID1);
		purge_box(ID1, alive[0]);
	}
	ck_assert_uint_eq(adopted, n == 1 && alive[0]);
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}
END_TEST

TCase *
killed_case(void)
{
	TCase	*t = tcase_create("killed");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, create_in_flight, 0, 2);
	tcase_add_test(t, killed_with_boxes);
	tcase_add_test(t, another_cgroup);
	tcase_add_test(t, given_away);
	tcase_add_loop_test(t, another_uid_base, -1, 2);
	tcase_add_test(t, set_restart_with_box);
	tcase_add_loop_test(t, killed_at_any_time, 0, 20);
	return t;
}
