/*
 * stored_hostile_test.c: the real stored against peers without manners, kill
 * at any moment, a full disk, a damaged database.
 *
 * link: stored/../regress/proto/storedrig.c
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stored_hostile.h"

struct rig	r;

static void
setup(void)
{
	rig_init(&r);
	rig_start(&r);
}

static void
teardown(void)
{
	rig_free(&r);
}

TCase *
rig_case(const char *name)
{
	TCase	*t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, SANITIZED ? 400 : 200);
	return t;
}

void
whole(uint64_t n)
{
	char	*log = rig_log(&r, "");

	ck_assert_uint_eq(rig_verify(log), n);
	free(log);
}

void
lives(void)
{
	struct msg_store_info	q = { 0 };
	struct msg		m;

	rig_ask(&r.privd, MSG_STORE_INFO, &q, &m);
	ck_assert_uint_eq(m.row->type, MSG_STORE_INFO_IS);
}

void
must_not_start(void)
{
	struct pollfd	pfd = { .events = POLLIN };
	int		st;

	rig_spawn(&r);
	/* one that starts all the same runs on */
	pfd.fd = (int)syscall(SYS_pidfd_open, r.pid, 0);
	ck_assert_int_ne(pfd.fd, -1);
	ck_assert_int_eq(poll(&pfd, 1, 20000), 1);
	(void)close(pfd.fd);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}

/* ---- a peer without manners -------------------------------------- */

static void
raw(struct chan *c, const void *data, size_t len)
{
	ck_assert_int_eq(send(c->fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* apid's channel ends, nothing else does. */
static void
cut_off(void)
{
	struct msg	m;

	while (rig_recv(&r.apid, &m) == 1)
		;
	lives();
	rig_kill(&r);
	rig_start(&r);
}

START_TEST(nonsense)
{
	static const struct { const char *s; size_t n; } pkts[] = {
		{ "x", 1 },
		{ "\x94", 1 },
		{ "\x94\x01\x62\x01", 4 },		/* no body */
		{ "\x94\x02\x62\x01\x80", 5 },		/* version */
		{ "\x94\x01\xcd\x03\xe7\x01\x80", 7 },	/* type 999 */
		{ "\x94\x01\x62\x01\x80\x00", 6 },	/* left over */
		{ "\x94\x01\x62\x01\x81\xa1x\x01", 8 },	/* unknown key */
		{ "\x94\x01\x0b\x01\x81\xaageneration\x01", 17 }, /* privd's */
		{ "\x94\x01\x01\x01\x80", 5 },		/* OK, to nothing */
		{ "\x94\x01\x54\x01\x81\xa3rid\xcb\0\0\0\0\0\0\0\0", 18 },
	};
	static char	big[70000];
	size_t		i;

	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	for (i = 0; i < sizeof(pkts) / sizeof(pkts[0]); i++) {
		raw(&r.apid, pkts[i].s, pkts[i].n);
		cut_off();
	}
	raw(&r.apid, big, sizeof(big));
	cut_off();
	whole(1);
}
END_TEST

START_TEST(descriptor)
{
	static const char	pkt[] = "\x94\x01\x62\x01\x80";
	union {
		char		b[CMSG_SPACE(sizeof(int))];
		struct cmsghdr	align;
	}		u = { { 0 } };
	struct iovec	iov = { (void *)(uintptr_t)pkt, sizeof(pkt) - 1 };
	struct msghdr	mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = u.b, .msg_controllen = sizeof(u.b) };
	struct cmsghdr	*cm = CMSG_FIRSTHDR(&mh);
	int		fd = 0;

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(r.apid.fd, &mh, 0), (ssize_t)iov.iov_len);
	cut_off();
}
END_TEST

/* Rows that lie: answered, and nothing of them is written. */
START_TEST(rows)
{
	static uint8_t			row[WIRE_MAX], bad[WIRE_MAX];
	struct row_sandbox		box = rig_box("a");
	struct msg_sandbox_create	c = { .actor = "t" };
	struct msg_session_put		p = { .actor = "t", .durable = 1 };
	struct msg_event_append		e = { .type = EVENT_AUTH_FAILED,
	    .actor = "t", .outcome = "ok" };
	size_t				n, i;
	unsigned int			code;

	n = (size_t)wire_encode(&wire_row_sandbox, &box, row, sizeof(row));
	c.row.data = bad;
	for (i = 1; i < n; i += 7) {
		memcpy(bad, row, n);
		c.row.len = i;			/* cut */
		rig_refused(&r.apid, MSG_SANDBOX_CREATE, &c,
		    CODE_BAD_MESSAGE);
		p.row = e.data = c.row;
		rig_refused(&r.apid, MSG_SESSION_PUT, &p, CODE_BAD_MESSAGE);
		rig_refused(&r.apid, MSG_EVENT_APPEND, &e, CODE_BAD_MESSAGE);
		c.row.len = n;			/* a bit turned */
		bad[i] ^= (uint8_t)(1 << i % 8);
		code = rig_code(&r.apid, MSG_SANDBOX_CREATE, &c);
		ck_assert(code == CODE_NONE || code == CODE_BAD_MESSAGE ||
		    code == CODE_NAME_TAKEN || code == CODE_EXISTS);
	}
	whole(rig_info(&r).last_seq);
}
END_TEST

START_TEST(privd_goes)
{
	int	st;

	chan_close(&r.privd);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	rig_spawn(&r);				/* also before the start */
	chan_close(&r.privd);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	rig_start(&r);
	raw(&r.privd, "x", 1);
	st = rig_wait(&r);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

START_TEST(apid_goes)
{
	chan_close(&r.apid);
	lives();
	rig_stop(&r);
}
END_TEST

/* apid may speak before privd has said go; it is heard afterwards. */
START_TEST(early)
{
	struct msg_store_info	q = { 0 };
	struct msg		m;
	uint32_t		rid;

	rig_stop(&r);
	rig_spawn(&r);
	ck_assert_int_eq(chan_ask(&r.apid, MSG_STORE_INFO, &q, -1, &rid), 0);
	rig_go(&r);
	ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
	ck_assert_uint_eq(m.rid, rid);
}
END_TEST

static long
rss_kib(void)
{
	char	path[64], line[256];
	FILE	*f;
	long	kib = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)r.pid);
	ck_assert_ptr_nonnull(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "RssAnon: %ld kB", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/*
 * 60,000 requests of a peer that does not read: memory stays bounded, every
 * one is answered once the peer reads.
 */
START_TEST(flood)
{
	struct msg_event_read	q = { .limit = 1000 };
	struct msg		m;
	unsigned int		i, answers = 0, asked = 0;
	struct pollfd		p = { .fd = r.apid.fd, .events = POLLOUT };

	for (i = 0; i < 2000; i++)
		ck_assert_uint_eq(rig_append(&r, "", i == 1999), CODE_NONE);
	/* until stored has stopped listening for a while */
	while (asked < 60000) {
		if (!chan_pending(&r.apid)) {
			ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_READ, &q,
			    -1, NULL), 0);
			asked++;
		}
		if (chan_flush(&r.apid) == 1 && poll(&p, 1, 300) == 0)
			break;
	}
	ck_assert_uint_lt(asked, 60000);
	if (!SANITIZED)
		ck_assert_int_lt(rss_kib(), 16 * 1024);
	lives();
	while (answers < asked) {
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_EVENT_PAGE);
		answers++;
	}
	whole(2000);
}
END_TEST

START_TEST(many_waiters)
{
	struct msg_event_read	q = { .limit = 10, .wait = 1 };
	struct msg		m;
	unsigned int		i, pages = 0, refused = 0;

	for (i = 0; i < 4200; i++)
		ck_assert_int_eq(chan_ask(&r.apid, MSG_EVENT_READ, &q, -1,
		    NULL), 0);
	while (refused < 4200 - 4096) {
		ck_assert_int_eq(rig_recv(&r.apid, &m), 1);
		ck_assert_uint_eq(m.row->type, MSG_ERROR);
		ck_assert_uint_eq(m.body.error.code, CODE_TOO_MANY);
		refused++;
	}
	(void)rig_append(&r, "", 1);	/* skips pages that come before */
	ck_assert_uint_eq(rig_append(&r, "", 1), CODE_NONE);
	for (pages = 0; rig_info(&r).last_seq != 2; pages++)
		;
	whole(2);
}
END_TEST

static TCase *
peer_case(void)
{
	TCase	*t = rig_case("peer");

	tcase_add_test(t, nonsense);
	tcase_add_test(t, descriptor);
	tcase_add_test(t, rows);
	tcase_add_test(t, privd_goes);
	tcase_add_test(t, apid_goes);
	tcase_add_test(t, early);
	tcase_add_test(t, flood);
	tcase_add_test(t, many_waiters);
	return t;
}

int
main(void)
{
	Suite	*s = suite_create("stored_hostile");
	SRunner	*sr;
	int	 bad;

	rig_check();
	/* mounts of these tests are theirs and go with them */
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1) {
		printf("skipped: no mount namespace\n");
		return 77;
	}
	/* CK_RUN_CASE runs one of these alone */
	suite_add_tcase(s, peer_case());
	suite_add_tcase(s, crash_case());
	suite_add_tcase(s, start_case());
	suite_add_tcase(s, database_case());
	suite_add_tcase(s, full_case());
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	bad = srunner_ntests_failed(sr);
	srunner_free(sr);
	return bad != 0;
}
