/*
 * privd_quarantine.c: privd_test, boxes that are opened or stopped in the
 * middle.
 */
#include <sys/socket.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "privd_test.h"

/* ---- quarantine -------------------------------------------------------- */

static int
frozen(const char *id)
{
	char	path[200], c = '?';
	int	fd;

	(void)snprintf(path, sizeof(path),
	    "/sys/fs/cgroup/unified/%s/%s/cgroup.freeze", r.cgroup, id);
	if ((fd = open(path, O_RDONLY)) == -1) {
		(void)snprintf(path, sizeof(path),
		    "/sys/fs/cgroup/%s/%s/cgroup.freeze", r.cgroup, id);
		ck_assert_int_ne(fd = open(path, O_RDONLY), -1);
	}
	ck_assert_int_eq(read(fd, &c, 1), 1);
	(void)close(fd);
	return c == '1';
}

/*
 * A network that netd will not have back is nobody's: its box stands still,
 * whatever it was made with, for that may have been changed.
 */
START_TEST(not_adopted)
{
	struct pollfd	p = { .fd = -1 };
	int		fd, i;

	rig_start(&r);
	r.network = (uint64_t)_i;	/* each kind */
	fd = rig_box(&r, ID1, 1);
	(void)kill(r.d[R_STORED].pid, SIGKILL);
	for (i = 0; i < R_N; i++)
		fd_close(&r.d[i].sock);
	rig_set(&r);
	r.refuse = 1;
	ck_assert_uint_eq(rig_go(&r), 1);
	for (i = 0; i < 100 && !frozen(ID1); i++)
		(void)poll(&p, 1, 50);
	ck_assert_int_eq(frozen(ID1), 1);
	ck_assert_int_eq(rig_logged(&r, "is quarantined: network"), 1);
	(void)close(fd);
}
END_TEST

/* A late answer to the opening is not the answer to the end. */
START_TEST(killed_while_opening)
{
	struct msg_net_opened	o = { .k = 1, .ruleset = "late" };
	struct pollfd		p = { .events = POLLIN };
	struct msg		m;
	uint8_t			nonce[64];
	uint32_t		late;
	int			fd;
	BODY(a, box_attach, ID1);
	BODY(n, box_nonce, ID1);
	BODY(k, box_kill, ID1);

	rig_start(&r);
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	fd = m.fd;
	p.fd = fd;
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	n.nonce.len = (size_t)recv(fd, nonce, sizeof(nonce), 0);
	n.nonce.data = nonce;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_OPEN);
	late = m.rid;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_KILL, &k, -1,
	    NULL), 0);
	ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED, late,
	    &o, -1), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_ENDED);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	ck_assert_int_le(recv(fd, nonce, 1, 0), 0);	/* dead it is */
	(void)close(fd);
	purge_box(ID1, 1);
}
END_TEST

/* What a runner does while netd opens its network: it is cut again. */
/* 2 and 3: netd refuses to open it, which is no answer to the cut */
START_TEST(quarantined_while_opening)
{
	struct msg_net_opened		o = { .k = 1, .ruleset = "late" };
	struct msg_box_quarantine	q = { .id = ID1, .field = "protocol" };
	struct pollfd			p = { .events = POLLIN };
	struct msg			m;
	uint8_t				nonce[64];
	uint32_t			late;
	BODY(a, box_attach, ID1);
	BODY(n, box_nonce, ID1);

	rig_start(&r);
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m),
	    MSG_BOX_ATTACHED);
	p.fd = m.fd;
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	n.nonce.len = (size_t)recv(p.fd, nonce, sizeof(nonce), 0);
	n.nonce.data = nonce;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_OPEN);
	late = m.rid;
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	if (_i & 1)		/* netd answers after the box was frozen */
		while (!frozen(ID1))
			(void)poll(NULL, 0, 10);
	ck_assert_int_eq(_i < 2 ? chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED,
	    late, &o, -1) : chan_error(&r.d[R_NETD].chan, late, CODE_INTERNAL,
	    "no"), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert(frozen(ID1));
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	(void)close(p.fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* 0: wrong, 1: empty, 2: too short; 3: right but for the second time */
START_TEST(wrong_nonce)
{
	struct msg	m;
	static const uint8_t none[32];
	int		fd = -1;
	BODY(n, box_nonce, ID1);
	BODY(a, box_attach, ID1);
	BODY(f, box_facts, ID1);

	rig_start(&r);
	n.nonce.data = _i == 3 ? r.nonce : none;
	n.nonce.len = _i == 1 ? 0 : _i == 2 ? 31 : 32;
	if (_i < 3)
		ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	else
		fd = rig_box(&r, ID1, 1);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_NONCE, &n, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert(frozen(ID1));
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_WRONG_NONCE);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_NONCE, &n, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_FACTS, &f, &m),
	    MSG_BOX_FACTS_ARE);
	fd_close(&fd);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* Has it sealed. */
static void
seal(const char *field)
{
	struct msg			m;
	struct msg_box_quarantine	q = { .id = ID1 };

	(void)str_copy(q.field, field, sizeof(q.field));
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert(frozen(ID1));
}

/* It is also for the next privd, and still closed for the next netd. */
static void
still_sealed(void)
{
	struct msg	m;
	BODY(h, box_health, ID1);

	rig_privd(&r);
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), 1);
	ck_assert_int_eq(r.open, 0);
	ck_assert(frozen(ID1));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_HEALTH, &h, &m),
	    MSG_BOX_HEALTH_IS);
	ck_assert_str_eq(m.body.box_health_is.part, "quarantined");
}

START_TEST(quarantine)
{
	struct msg	m;
	BODY(h, box_health, ID1);

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	seal("ns_mnt");
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_HEALTH, &h, &m),
	    MSG_BOX_HEALTH_IS);
	ck_assert_uint_eq(m.body.box_health_is.health, SUSPECT);
	ck_assert_str_eq(m.body.box_health_is.part, "quarantined");
	rig_kill(&r);
	still_sealed();
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* The server is told to stop while one is on trial: it is sealed before. */
static void
stop_on_trial(void)
{
	struct msg	m;

	ck_assert_int_eq(kill(r.pid, SIGTERM), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_DAEMON_STOP);
	ck_assert_int_eq(chan_ok(&r.d[R_APID].chan, m.rid), 0);
	ck_assert(!frozen(ID1));	/* it may end this yet */
	chan_close(&r.d[R_APID].chan);
	fd_close(&r.d[R_APID].sock);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	stopped();
	ck_assert(frozen(ID1));
}

/*
 * 0: to its end; between the two steps privd 1: is killed, 2: stopped.
 */
START_TEST(release)
{
	struct msg_net_opened	o = { .k = 1, .ruleset = "again" };
	struct msg		m;
	BODY(s, box_release, ID1);
	BODY(h, box_health, ID1);

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	/* what is well is not released, nor what is not there */
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_RELEASE, &s, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NOT_READY);
	seal("pids");
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_RELEASE, &s, &m), MSG_OK);
	ck_assert(!frozen(ID1));
	if (_i != 0) {
		if (_i == 1)
			rig_kill(&r);
		else
			stop_on_trial();
		still_sealed();
	} else {
		ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_RELEASE,
		    &s, -1, NULL), 0);
		ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_OPEN);
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED,
		    m.rid, &o, -1), 0);
		ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
		ck_assert(!frozen(ID1));
		ck_assert_int_eq(rig_ask(&r, MSG_BOX_HEALTH, &h, &m),
		    MSG_BOX_HEALTH_IS);
		ck_assert_str_eq(m.body.box_health_is.part, "");
		ck_assert_int_eq(rig_ask(&r, MSG_BOX_RELEASE, &s, &m),
		    MSG_ERROR);
	}
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* One whose nonce never came has no way out but its end. */
START_TEST(release_unopened)
{
	struct msg	m;
	BODY(s, box_release, ID1);

	rig_start(&r);
	ck_assert_int_eq(rig_create(&r, ID1, 1, &m), MSG_BOX_CREATED);
	seal("pids");
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_RELEASE, &s, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NOT_READY);
	ck_assert(frozen(ID1));
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

TCase *
quarantine_case(void)
{
	TCase	*t = tcase_create("quarantine");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, wrong_nonce, 0, 4);
	tcase_add_loop_test(t, quarantined_while_opening, 0, 4);
	tcase_add_test(t, quarantine);
	tcase_add_loop_test(t, release, 0, 3);
	tcase_add_test(t, release_unopened);
	tcase_add_test(t, killed_while_opening);
	tcase_add_loop_test(t, not_adopted, 0, NETWORK_ALLOWLIST + 1);
	return t;
}
