/*
 * privd_hostile.c: privd_test, daemons that break the contract.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "privd_test.h"

/* ---- breaks of the contract -------------------------------------------- */

/* privd ends the set; with so many networks for the new netd to adopt. */
static void
expect_new_set_of(unsigned int adopted)
{
	struct msg	m;

	while (rig_next(&r, R_STORED, &m) != 0)
		continue;		/* it hangs up, not we */
	rig_set(&r);
	ck_assert_uint_eq(rig_go(&r), adopted);
}

static void
expect_new_set(void)
{
	expect_new_set_of(0);
}

/* A box with a network of a number that no kind has. */
static void
create_with_no_kind(void)
{
	static const uint8_t	key[] = "\xa7network\x02";
	struct msg_box_create	q = { .id = ID1, .name = "box",
				    .rootfs = "tiny",
				    .network = NETWORK_ALLOWLIST };
	struct chan		c;
	uint8_t			buf[512], *p;
	ssize_t			n;
	int			sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    sv), 0);
	chan_init(&c, sv[0], A_APID, A_PRIVD, S_RUN);
	ck_assert_int_eq(chan_ask(&c, MSG_BOX_CREATE, &q, -1, NULL), 0);
	ck_assert_int_gt(n = recv(sv[1], buf, sizeof(buf), 0), 0);
	p = memmem(buf, (size_t)n, key, sizeof(key) - 1);
	ck_assert_ptr_ne(p, NULL);
	p[sizeof(key) - 2]++;
	ck_assert_int_eq(send(r.d[R_APID].chan.fd, buf, (size_t)n, 0), n);
	chan_close(&c);
	(void)close(sv[1]);
}

START_TEST(hostile_answers)
{
	struct msg_net_made	made = { .k = 1, .ruleset = "x" };
	struct msg_net_opened	opened = { .k = 1, .ruleset = "x" };
	struct msg_event_appended seq = { .seq = 1 };
	struct msg_daemon_ready	ready = { .version = "twice" };
	struct msg_ok		ok = { 0 };

	rig_start(&r);
	switch (_i) {
	case 0:		/* nobody asked */
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE, 1,
		    &made, rig_netns(&r)), 0);
		break;
	case 1:
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_OPENED,
		    77, &opened, -1), 0);
		break;
	case 2:
		ck_assert_int_eq(chan_send(&r.d[R_STORED].chan,
		    MSG_EVENT_APPENDED, 99, &seq, -1), 0);
		break;
	case 3:
		ck_assert_int_eq(chan_send(&r.d[R_APID].chan, MSG_OK, 0, &ok,
		    -1), 0);
		break;
	case 4:
		r.d[R_APID].chan.state = S_INIT;
		(void)chan_ask(&r.d[R_APID].chan, MSG_DAEMON_READY, &ready,
		    -1, NULL);
		break;
	case 5:		/* not a message at all */
		ck_assert_int_eq(send(r.d[R_APID].chan.fd, "\xff\xff", 2, 0),
		    2);
		break;
	case 6:
		ck_assert_int_eq(send(r.d[R_NETD].chan.fd, "", 0, 0), 0);
		break;
	case 7:
		create_with_no_kind();
		break;
	}
	expect_new_set();
}
END_TEST

/* A byte and a descriptor; 0, or errno. */
static int
pass(int kind, int fd)
{
	return fds_send(r.d[kind].chan.fd, "x", 1, &fd, 1, 0) == -1 ? errno :
	    0;
}

/* Each daemon has one of STATE/lock; privd closes what is not due. */
START_TEST(lock_passed)
{
	auto_close int	fd = -1;
	char		path[100];

	rig_start(&r);
	(void)snprintf(path, sizeof(path), "%s/lock", r.dir);
	ck_assert_int_ne(fd = open(path, O_RDONLY), -1);
	ck_assert(rig_locked(&r));
	ck_assert_int_eq(pass(R_NETD, fd), 0);
	expect_new_set();
	ck_assert(rig_locked(&r));
}
END_TEST

/*
 * Closing a socket that lingers waits; so who has none to pass can pass none
 * (Linux 6.16).
 */
START_TEST(nothing_to_pass)
{
	auto_close int	fd = -1, box = -1;
	int		zero = 0, passes = 1;
	socklen_t	len = sizeof(passes);

	rig_start(&r);
	ck_assert_int_ne(fd = socket(AF_UNIX, SOCK_STREAM, 0), -1);
	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &zero, sizeof(zero)) ==
	    -1) {
		puts("nothing_to_pass: skipped: no SO_PASSRIGHTS");
		return;
	}
	ck_assert_int_eq(pass(R_APID, fd), EPERM);
	ck_assert_int_eq(pass(R_STORED, fd), EPERM);
	ck_assert(rig_quiet(&r, R_APID));
	/* nor can a runner pass apid one */
	box = rig_box(&r, ID1, 1);
	ck_assert_int_eq(getsockopt(box, SOL_SOCKET, SO_PASSRIGHTS, &passes,
	    &len), 0);
	ck_assert_int_eq(passes, 0);
	kill_box(ID1);
	purge_box(ID1, 1);
}
END_TEST

/* It owes the answer to a cut when the box ends; nobody waits for ever. */
START_TEST(netd_silent)
{
	struct msg_box_quarantine q = { .id = ID1, .field = "x" };
	struct pollfd	p = { .events = POLLIN };
	struct msg	m;

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_KILL, &q, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	p.fd = r.d[R_NETD].chan.fd;
	ck_assert_int_eq(poll(&p, 1, 90000), 1);
	ck_assert(rig_logged(&r, "netd does not answer NET_CUT"));
	expect_new_set();
	purge_box(ID1, 0);
}
END_TEST

START_TEST(netd_wrong_answer)
{
	struct msg_box_create	c = { .id = ID1, .name = "box",
				    .rootfs = "default" };
	struct msg		m;

	rig_start(&r);
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE, &c, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	expect_new_set();
	all_gone();
}
END_TEST

/* One network for two boxes. */
START_TEST(netns_twice)
{
	struct msg_box_create	c = { .name = "box", .rootfs = "default" };
	struct msg_net_made	made = { .k = 1, .ruleset = "closed" };
	struct msg		m;
	int			fd, i;

	rig_start(&r);
	ck_assert_int_ne(fd = rig_netns(&r), -1);
	for (i = 0; i < 2; i++) {
		(void)str_copy(c.id, i == 0 ? ID1 : ID2, sizeof(c.id));
		ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_CREATE,
		    &c, -1, NULL), 0);
		ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_MAKE);
		ck_assert_int_eq(chan_send(&r.d[R_NETD].chan, MSG_NET_MADE,
		    m.rid, &made, fcntl(fd, F_DUPFD_CLOEXEC, 0)), 0);
		if (i == 0)
			ck_assert_int_eq(rig_next(&r, R_APID, &m),
			    MSG_BOX_CREATED);
	}
	(void)close(fd);
	expect_new_set_of(1);
	kill_box(ID1);
	purge_box(ID1, 1);
	kill_box(ID2);
	purge_box(ID2, 0);
	all_gone();
}
END_TEST

START_TEST(requests_do_not_mix)
{
	struct msg	m;
	BODY(p, box_purge, ID1);
	BODY(a, box_attach, ID1);
	BODY(n, box_nonce, ID1);
	BODY(k, box_kill, ID1);
	struct msg_box_quarantine q = { .id = ID1, .field = "x" };
	uint8_t		bytes[32] = { 0 };
	uint32_t	cut;

	rig_start(&r);
	(void)close(rig_box(&r, ID1, 1));
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_PURGE, &p, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_NOT_READY);
	/* while netd owes the answer to a cut, nothing else is begun */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_QUARANTINE, &q,
	    -1, NULL), 0);
	n.nonce.data = bytes;
	n.nonce.len = 32;
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_CUT);
	cut = m.rid;
	ck_assert_int_eq(rig_ask(&r, MSG_BOX_ATTACH, &a, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_QUARANTINED);
	/* but an end comes first; the asker before is told */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_KILL, &k, -1,
	    NULL), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_ERROR);
	ck_assert_uint_eq(error_of(&m), CODE_ENDED);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	/* netd's late answer hurts nobody: the purge waits for it */
	ck_assert_int_eq(chan_ask(&r.d[R_APID].chan, MSG_BOX_PURGE, &p, -1,
	    NULL), 0);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, cut), 0);
	ck_assert_int_eq(rig_next(&r, R_NETD, &m), MSG_NET_FREE);
	ck_assert_int_eq(chan_ok(&r.d[R_NETD].chan, m.rid), 0);
	ck_assert_int_eq(rig_next(&r, R_APID, &m), MSG_OK);
	ck_assert(!rig_file(&r, "sandboxes/%s", ID1));
}
END_TEST

TCase *
hostile_case(void)
{
	TCase	*t = tcase_create("hostile");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, hostile_answers, 0, 8);
	tcase_add_test(t, lock_passed);
	tcase_add_test(t, nothing_to_pass);
	tcase_add_test(t, netd_silent);
	tcase_add_test(t, netd_wrong_answer);
	tcase_add_test(t, netns_twice);
	tcase_add_test(t, requests_do_not_mix);
	return t;
}
