/*
 * netd_allow.c: networks `allowlist' of the real netd, with the test in
 * proxyd's place: one that answers late, wrong, with an error or not at all;
 * that tells of boxes that are none of its; and networks that become others.
 */
#include <sys/socket.h>

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "denied.h"
#include "netd_allow.h"
#include "netd_names.h"
#include "netd_probe.h"
#include "xmalloc.h"

#define ID1	"01K8ZZZZZZZZZZZZZZZZZZZZZ1"
#define ID2	"01K8ZZZZZZZZZZZZZZZZZZZZZ2"
#define ID3	"01K8ZZZZZZZZZZZZZZZZZZZZZ3"

static struct world	w;
static struct names_box	box;

static void
setup(void)
{
	box = (struct names_box){ .netns = -1, .sock = { -1, -1, -1 } };
	world_make(&w);
	w.conf.egress_pool = 0;
	w.named = 1;
	world_start(&w);
}

static void
teardown(void)
{
	names_free(&box);
	world_free(&w);
}

static int
quiet(const struct chan *c, int ms)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

/* ---- in privd's and apid's places -------------------------------------- */

static uint32_t
ask_open(unsigned int k)
{
	struct msg_net_open	q = { .k = k };
	uint32_t		rid;

	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_OPEN, &q, -1, &rid), 0);
	return rid;
}

static char	why_not[256];		/* of the last answer */

/* The next answer on a channel is to this: its type, or an error's code. */
static unsigned int
answer(struct chan *c, uint32_t rid)
{
	struct msg	m;
	unsigned int	t = daemon_next(c, &m);

	ck_assert_uint_eq(m.rid, rid);
	(void)str_copy(why_not, t == MSG_ERROR ? m.body.error.detail : "",
	    sizeof(why_not));
	return t == MSG_ERROR ? (unsigned int)m.body.error.code : t;
}

static struct msg_net_status_is
status(const char *id)
{
	struct msg_net_status	q = { .wire_end = 0 };
	struct msg		m;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_uint_eq(daemon_ask(&w.apid, MSG_NET_STATUS, &q, -1, &m),
	    MSG_NET_STATUS_IS);
	return m.body.net_status_is;
}

static void
is(const char *id, uint64_t network, uint64_t state, uint64_t uplink)
{
	struct msg_net_status_is	s = status(id);

	ck_assert_uint_eq(s.network, network);
	ck_assert_uint_eq(s.state, state);
	ck_assert_uint_eq(s.uplink, uplink);
	ck_assert_uint_eq(s.whole, 1);
}

static void
until_served(const char *id)
{
	int	i;

	for (i = 0; status(id).uplink == 0; i++) {
		ck_assert_int_lt(i, 500);
		(void)poll(NULL, 0, 10);
	}
}

static uint32_t
ask_adopt(const struct names_box *b, uint64_t network, int open)
{
	struct msg_net_adopt	q = { .network = network,
				    .open = (uint64_t)open };
	uint32_t		rid;

	(void)str_copy(q.id, b->id, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(b->netns, F_DUPFD_CLOEXEC, 0), &rid), 0);
	return rid;
}

static uint32_t
ask_change(const char *id, uint64_t network)
{
	struct msg_net_change	q = { .network = network };
	uint32_t		rid;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_CHANGE, &q, -1, &rid), 0);
	return rid;
}

/* ---- in uplinkd's ------------------------------------------------------ */

static void
uplink_begins(void)
{
	struct msg_uplink_started	s = { .kept = 0 };
	struct msg			m;

	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), MSG_UPLINK_START);
	s.k = m.body.uplink_start.k;
	close(m.fd);
	ck_assert_int_eq(chan_send(&w.uplinkd, MSG_UPLINK_STARTED, m.rid, &s,
	    -1), 0);
}

static void
uplink_ends(void)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), MSG_UPLINK_END);
	ck_assert_int_eq(chan_ok(&w.uplinkd, m.rid), 0);
}

/* ---- opening ----------------------------------------------------------- */

/* Nothing passes before proxyd has said that it serves it. */
START_TEST(waits_for_proxyd)
{
	uint32_t	rid[NAMES_SOCKS], opens;

	names_made(&w, ID1, &box);
	is(ID1, NETWORK_ALLOWLIST, 0, 0);
	opens = ask_open(box.k);
	names_come(&w, &box, rid);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[1]), 0);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[0]), 0);
	ck_assert(quiet(&w.privd, 100));
	ck_assert_int_eq(world_box_result(world_box(box.netns, probe_dropped,
	    NULL)), 0);
	is(ID1, NETWORK_ALLOWLIST, 0, 0);
	/* one at a time */
	ck_assert_uint_eq(answer(&w.privd, ask_open(box.k)), CODE_BUSY);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[2]), 0);
	ck_assert_uint_eq(answer(&w.privd, opens), MSG_NET_OPENED);
	is(ID1, NETWORK_ALLOWLIST, 1, 1);
	/* again: it is, and proxyd is not asked */
	ck_assert_uint_eq(answer(&w.privd, ask_open(box.k)), MSG_NET_OPENED);
	ck_assert(quiet(&w.proxyd, 50));
}
END_TEST

START_TEST(error_of_proxyd)
{
	uint32_t	rid[NAMES_SOCKS], opens;
	int		fds;

	names_made(&w, ID1, &box);
	fds = world_fds(w.pid);
	opens = ask_open(box.k);
	names_come(&w, &box, rid);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[0]), 0);
	ck_assert_int_eq(chan_error(&w.proxyd, rid[2], CODE_INTERNAL,
	    "no list"), 0);
	names_ended(&w, ID1);
	names_close(&box);
	ck_assert_uint_eq(answer(&w.privd, opens), CODE_INTERNAL);
	ck_assert_ptr_ne(strstr(why_not, "no way out: no list"), NULL);
	is(ID1, NETWORK_ALLOWLIST, 0, 0);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[1]), 0);	/* too late */
	/* it is not tried again by itself; when it is asked for it is */
	ck_assert(quiet(&w.proxyd, 1500));
	opens = ask_open(box.k);
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	ck_assert_uint_eq(answer(&w.privd, opens), MSG_NET_OPENED);
	/* a socket for denials, for good */
	ck_assert_int_le(world_fds(w.pid), fds + 1 + 8);
}
END_TEST

/* It was before it was asked for; or was not, and is asked again then. */
START_TEST(served_before)
{
	uint32_t	rid[NAMES_SOCKS], opens;

	names_open(&w, ID1, &box);
	world_drop(&w, box.k);
	names_ended(&w, ID1);
	names_free(&box);
	names_made(&w, ID1, &box);
	names_come(&w, &box, rid);
	ck_assert_int_eq(chan_error(&w.proxyd, rid[0], CODE_INTERNAL, "no"),
	    0);
	names_ended(&w, ID1);
	names_close(&box);
	ck_assert(quiet(&w.proxyd, 1200));
	opens = ask_open(box.k);
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	ck_assert_uint_eq(answer(&w.privd, opens), MSG_NET_OPENED);
	ck_assert(!daemon_logged(w.log, "has a way out again"));
}
END_TEST

/* What it was not asked, or was once, counts for nothing. */
START_TEST(wrong_answers)
{
	struct msg_proxy_names_are	a = { .wire_end = 0 };
	uint32_t			rid[NAMES_SOCKS], opens;
	int				i;

	names_made(&w, ID1, &box);
	opens = ask_open(box.k);
	names_come(&w, &box, rid);
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(chan_ok(&w.proxyd, rid[0]), 0);
	ck_assert_int_eq(chan_ok(&w.proxyd, 0), 0);
	ck_assert_int_eq(chan_ok(&w.proxyd, 999), 0);
	ck_assert_int_eq(chan_error(&w.proxyd, 998, CODE_INTERNAL, "x"), 0);
	ck_assert_int_eq(chan_error(&w.proxyd, 0, CODE_INTERNAL, "x"), 0);
	ck_assert_int_eq(chan_send(&w.proxyd, MSG_PROXY_NAMES_ARE, 997, &a,
	    -1), 0);
	ck_assert_int_eq(chan_send(&w.proxyd, MSG_PROXY_NAMES_ARE, rid[1],
	    &a, -1), 0);
	ck_assert(quiet(&w.privd, 100));
	ck_assert(quiet(&w.apid, 0));
	is(ID1, NETWORK_ALLOWLIST, 0, 0);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[1]), 0);
	ck_assert_int_eq(chan_ok(&w.proxyd, rid[2]), 0);
	ck_assert_uint_eq(answer(&w.privd, opens), MSG_NET_OPENED);
}
END_TEST

/* A cut or an end wins over an opening; each is answered once. */
START_TEST(opening_is_lost)
{
	struct msg_net_cut	c;
	struct msg_net_free	f;
	uint32_t		gone, rid[NAMES_SOCKS], opens;
	int			i;

	for (i = 0; i < 2; i++) {
		names_made(&w, ID1, &box);
		opens = ask_open(box.k);
		names_come(&w, &box, rid);
		c.k = f.k = box.k;
		if (i == 0)
			ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_CUT, &c,
			    -1, &gone), 0);
		else
			ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_FREE, &f,
			    -1, &gone), 0);
		ck_assert_uint_eq(answer(&w.privd, opens),
		    CODE_BAD_TRANSITION);
		ck_assert_uint_eq(answer(&w.privd, gone), MSG_OK);
		names_ended(&w, ID1);
		names_say_ok(&w, rid);		/* too late */
		if (i == 0) {
			is(ID1, NETWORK_ALLOWLIST, 2, 0);
			world_drop(&w, box.k);
		}
		names_free(&box);
	}
	ck_assert(quiet(&w.privd, 50));
}
END_TEST

/* Its sockets are closed when proxyd has read of the end, not before. */
START_TEST(cut_and_opened)
{
	uint32_t	rid[NAMES_SOCKS], opens;

	names_open(&w, ID1, &box);
	world_cut(&w, box.k);
	names_ended(&w, ID1);
	is(ID1, NETWORK_ALLOWLIST, 2, 0);
	ck_assert(quiet(&w.proxyd, 1500));
	opens = ask_open(box.k);
	ck_assert(quiet(&w.proxyd, 300));	/* the ports are taken */
	names_close(&box);
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	ck_assert_uint_eq(answer(&w.privd, opens), MSG_NET_OPENED);
	is(ID1, NETWORK_ALLOWLIST, 1, 1);
	world_drop(&w, box.k);
	names_ended(&w, ID1);
}
END_TEST

#define CROWD	12
#define AT_ONCE	8

/* All at once: each has its own, and no more are under way than may be. */
START_TEST(many_at_once)
{
	static struct names_box	b[CROWD];
	static char		id[CROWD][27];
	uint32_t		rid[3 * CROWD];
	struct msg		m;
	unsigned int		come = 0, i;

	for (i = 0; i < CROWD; i++) {
		snprintf(id[i], sizeof(id[i]), "01K8ZZZZZZZZZZZZZZZZZZZZ%02u",
		    i);
		names_made(&w, id[i], &b[i]);
		(void)ask_open(b[i].k);
	}
	for (i = 0; i < 3 * CROWD; i++) {
		for (; !quiet(&w.proxyd, 200); come++) {
			ck_assert_uint_eq(daemon_next(&w.proxyd, &m),
			    MSG_PROXY_BOX);
			close(m.fd);
			rid[come] = m.rid;
		}
		/* one more for each that is served */
		ck_assert_uint_le(come, 3 * (AT_ONCE + i / 3));
		ck_assert_uint_gt(come, i);
		ck_assert_int_eq(chan_ok(&w.proxyd, rid[i]), 0);
	}
	for (i = 0; i < CROWD; i++)
		ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	for (i = 0; i < CROWD; i++)
		names_free(&b[i]);
}
END_TEST

/* ---- one that does not answer ------------------------------------------ */

START_TEST(mute)
{
	struct names_box	two = { .netns = -1 };
	struct msg_net_names	q = { .id = ID1 };
	struct msg		m;
	uint32_t		late, lists, names, opens, rid[NAMES_SOCKS];
	unsigned int		k;

	names_open(&w, ID1, &box);
	k = world_net(&w, ID3, NULL);
	names_made(&w, ID2, &two);
	opens = ask_open(two.k);
	names_come(&w, &two, rid);
	lists = ask_change(ID1, NETWORK_ALLOWLIST);
	ck_assert_uint_eq(daemon_next(&w.proxyd, &m), MSG_PROXY_LIST);
	late = m.rid;
	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_NAMES, &q, -1, &names), 0);
	ck_assert_uint_eq(daemon_next(&w.proxyd, &m), MSG_PROXY_NAMES);
	/* others go on */
	world_open(&w, k, NULL);
	ck_assert(quiet(&w.apid, 4000));
	ck_assert_uint_eq(answer(&w.apid, names), CODE_BUSY);
	ck_assert(quiet(&w.privd, 2000));
	ck_assert_uint_eq(answer(&w.privd, opens), CODE_INTERNAL);
	ck_assert_ptr_ne(strstr(why_not, "proxyd does not answer"), NULL);
	names_ended(&w, ID2);
	ck_assert_uint_eq(answer(&w.apid, lists), CODE_INTERNAL);
	ck_assert_str_eq(why_not, "its list: proxyd does not answer");
	is(ID1, NETWORK_ALLOWLIST, 1, 1);
	ck_assert(daemon_logged(w.log, "proxyd does not answer"));
	/* what comes too late says that it is awake, and no more */
	ck_assert_int_eq(chan_ok(&w.proxyd, late), 0);
	names_say_ok(&w, rid);
	is(ID2, NETWORK_ALLOWLIST, 0, 0);
	ck_assert(daemon_logged(w.log, "proxyd answers again"));
	names_close(&two);
	opens = ask_open(two.k);
	names_come(&w, &two, rid);
	names_say_ok(&w, rid);
	ck_assert_uint_eq(answer(&w.privd, opens), MSG_NET_OPENED);
	names_free(&two);
}
END_TEST

/* While it says nothing it gets no socket more. */
START_TEST(mute_and_asked)
{
	struct names_box	two = { .netns = -1 };
	struct msg		m;
	uint32_t		opens, rid[NAMES_SOCKS];

	names_made(&w, ID1, &box);
	opens = ask_open(box.k);
	names_come(&w, &box, rid);
	ck_assert(quiet(&w.privd, 9000));
	ck_assert_uint_eq(answer(&w.privd, opens), CODE_INTERNAL);
	names_close(&box);
	ck_assert_uint_eq(daemon_next(&w.proxyd, &m), MSG_PROXY_END);
	names_made(&w, ID2, &two);
	(void)ask_open(two.k);
	ck_assert(quiet(&w.proxyd, 1500));
	ck_assert_int_eq(chan_ok(&w.proxyd, m.rid), 0);
	names_come(&w, &two, rid);
	names_free(&two);
}
END_TEST

/* ---- what it says of boxes --------------------------------------------- */

static void
say_denied_by(enum denied_rule rule, const char *id, const char *name,
    size_t alen)
{
	static const uint8_t	addr[16] = { 198, 18, 3, 4 };
	struct msg_proxy_denied	d = { .rule = rule, .count = 3,
				    .since_ms = 7 };

	(void)str_copy(d.id, id, sizeof(d.id));
	(void)str_copy(d.name, name, sizeof(d.name));
	d.address.data = addr;
	d.address.len = alen;
	d.port = alen == 0 ? 0 : 443;
	d.protocol = alen == 0 ? 0 : 6;
	ck_assert_int_eq(chan_send(&w.proxyd, MSG_PROXY_DENIED, 0, &d, -1),
	    0);
}

static void
say_denied(const char *id, const char *name, size_t alen)
{
	say_denied_by(DENIED_TLS, id, name, alen);
}

START_TEST(denied_of_others)
{
	struct msg	m;
	uint32_t	change;

	world_open(&w, world_net(&w, ID2, NULL), NULL);
	names_open(&w, ID1, &box);
	say_denied(ID2, "a.example", 4);	/* `none' */
	say_denied(ID3, "a.example", 4);	/* nobody's */
	ck_assert(quiet(&w.apid, 100));
	change = ask_change(ID2, NETWORK_EGRESS);
	uplink_begins();
	ck_assert_uint_eq(answer(&w.apid, change), MSG_NET_CHANGED);
	say_denied(ID2, "a.example", 4);	/* which tells its own */
	ck_assert(quiet(&w.apid, 100));
	say_denied(ID1, "b.example", 4);
	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_NET_DENIED);
	ck_assert_str_eq(m.body.net_denied.id, ID1);
	ck_assert_str_eq(m.body.net_denied.name, "b.example");
	ck_assert_uint_eq(m.body.net_denied.rule, DENIED_TLS);
	ck_assert_uint_eq(m.body.net_denied.address.len, 4);
	ck_assert_uint_eq(m.body.net_denied.port, 443);
	ck_assert_uint_eq(m.body.net_denied.protocol, 6);
	ck_assert_uint_eq(m.body.net_denied.count, 3);
	ck_assert_uint_eq(m.body.net_denied.since_ms, 7);
	say_denied(ID1, "c.example", 0);
	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_NET_DENIED);
	ck_assert_uint_eq(m.body.net_denied.address.len, 0);
	/* and by rules of the kernel's, with whose counts it is counted */
	ck_assert_uint_eq(status(ID1).host, 0);
	say_denied_by(DENIED_HOST, ID1, "c.example", 4);
	say_denied_by(DENIED_HOST, ID1, "d.example", 4);
	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_NET_DENIED);
	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_NET_DENIED);
	ck_assert_uint_eq(status(ID1).host, 6);
	ck_assert_uint_eq(status(ID1).sealed, 0);
	/* nor of one that it serves no more */
	world_cut(&w, box.k);
	say_denied(ID1, "d.example", 4);
	ck_assert(quiet(&w.apid, 100));
}
END_TEST

/* What is no address ends netd, so that all start afresh. */
START_TEST(denied_without_sense)
{
	int	st;

	names_open(&w, ID1, &box);
	say_denied(ID1, "a.example", 5);
	st = world_wait(&w);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	ck_assert(daemon_logged(w.log, "neither 4 nor 16 bytes"));
}
END_TEST

/* NET_OPEN {k: 7}, which only privd may say. */
START_TEST(open_from_proxyd)
{
	int	st;

	ck_assert_int_eq(send(w.proxyd.fd, "\x94\x01\x3e\x05\x81\xa1k\x07", 8,
	    0), 8);
	st = world_wait(&w);
	ck_assert(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}
END_TEST

START_TEST(proxyd_ends)
{
	int	i;

	names_open(&w, ID1, &box);
	chan_close(&w.proxyd);
	for (i = 0; status(ID1).uplink == 1; i++) {
		ck_assert_int_lt(i, 500);
		(void)poll(NULL, 0, 10);
	}
	is(ID1, NETWORK_ALLOWLIST, 1, 0);
	(void)world_net(&w, ID2, NULL);
	ck_assert(daemon_logged(w.log, "proxyd is gone"));
}
END_TEST

/* ---- names ------------------------------------------------------------- */

static uint32_t
ask_names(const char *id)
{
	struct msg_net_names	q = { .wire_end = 0 };
	uint32_t		rid;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_NAMES, &q, -1, &rid), 0);
	return rid;
}

#define ASKED_MOST	16

START_TEST(names)
{
	struct wire_bin			row[2] = { wire_cstr("one"),
					    wire_cstr("two") };
	struct msg_proxy_names_are	a = { .rows = { row, 2 } };
	struct msg			m;
	uint32_t			rid[ASKED_MOST], to[ASKED_MOST];
	unsigned int			i;

	names_open(&w, ID1, &box);
	world_open(&w, world_net(&w, ID2, NULL), NULL);
	/* of another kind: none; of nobody */
	rid[0] = ask_names(ID2);
	ck_assert_uint_eq(daemon_next(&w.apid, &m), MSG_NET_NAMES_ARE);
	ck_assert_uint_eq(m.rid, rid[0]);
	ck_assert_uint_eq(m.body.net_names_are.rows.n, 0);
	ck_assert_uint_eq(answer(&w.apid, ask_names(ID3)),
	    CODE_NOT_FOUND);
	/* many at once, answered the other way round, to whom they are */
	for (i = 0; i < ASKED_MOST; i++) {
		rid[i] = ask_names(ID1);
		ck_assert_uint_eq(daemon_next(&w.proxyd, &m),
		    MSG_PROXY_NAMES);
		ck_assert_str_eq(m.body.proxy_names.id, ID1);
		to[i] = m.rid;
	}
	ck_assert_uint_eq(answer(&w.apid, ask_names(ID1)), CODE_BUSY);
	ck_assert(quiet(&w.proxyd, 50));
	for (i = ASKED_MOST; i-- > 1;) {
		ck_assert_int_eq(chan_send(&w.proxyd, MSG_PROXY_NAMES_ARE,
		    to[i], &a, -1), 0);
		ck_assert_uint_eq(daemon_next(&w.apid, &m),
		    MSG_NET_NAMES_ARE);
		ck_assert_uint_eq(m.rid, rid[i]);
		ck_assert_uint_eq(m.body.net_names_are.rows.n, 2);
		ck_assert_mem_eq(m.body.net_names_are.rows.v[1].data, "two",
		    3);
	}
	ck_assert_int_eq(chan_error(&w.proxyd, to[0], CODE_NOT_FOUND, "no"),
	    0);
	ck_assert_uint_eq(answer(&w.apid, rid[0]), CODE_INTERNAL);
	/* a second answer is nobody's */
	ck_assert_int_eq(chan_send(&w.proxyd, MSG_PROXY_NAMES_ARE, to[1], &a,
	    -1), 0);
	ck_assert(quiet(&w.apid, 50));
	world_cut(&w, box.k);
	ck_assert_uint_eq(answer(&w.apid, ask_names(ID1)), CODE_BUSY);
}
END_TEST

/* ---- adoption ---------------------------------------------------------- */

START_TEST(adopted)
{
	uint32_t	adopt, rid[NAMES_SOCKS];
	char		hash[65];
	int		i;

	names_open(&w, ID1, &box);
	(void)str_copy(hash, status(ID1).ruleset, sizeof(hash));
	/* whatever it was made as: the kernel says what it is */
	for (i = 0; i < 2; i++) {
		world_kill(&w);
		names_close(&box);
		world_start(&w);
		adopt = ask_adopt(&box, i == 0 ? NETWORK_ALLOWLIST :
		    NETWORK_NONE, 1);
		names_come(&w, &box, rid);
		ck_assert(quiet(&w.privd, 50));
		names_say_ok(&w, rid);
		ck_assert_uint_eq(answer(&w.privd, adopt), MSG_NET_OPENED);
		is(ID1, NETWORK_ALLOWLIST, 1, 1);
		ck_assert_str_eq(status(ID1).ruleset, hash);
		ck_assert(!daemon_logged(w.log, "made anew"));
	}
	/* to be cut: nobody serves it before it is opened */
	world_kill(&w);
	names_close(&box);
	world_start(&w);
	adopt = ask_adopt(&box, NETWORK_ALLOWLIST, 0);
	ck_assert_uint_eq(answer(&w.privd, adopt), MSG_NET_OPENED);
	is(ID1, NETWORK_ALLOWLIST, 2, 0);
	ck_assert(quiet(&w.proxyd, 1200));
	adopt = ask_open(box.k);
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	ck_assert_uint_eq(answer(&w.privd, adopt), MSG_NET_OPENED);
	is(ID1, NETWORK_ALLOWLIST, 1, 1);
}
END_TEST

/* The box lives without it, and has it as soon as there is one. */
START_TEST(adopted_without)
{
	uint32_t	adopt, rid[NAMES_SOCKS];

	names_open(&w, ID1, &box);
	world_kill(&w);
	names_close(&box);
	world_start(&w);
	adopt = ask_adopt(&box, NETWORK_ALLOWLIST, 1);
	names_come(&w, &box, rid);
	ck_assert_int_eq(chan_error(&w.proxyd, rid[0], CODE_INTERNAL, "no"),
	    0);
	ck_assert_uint_eq(answer(&w.privd, adopt), MSG_NET_OPENED);
	is(ID1, NETWORK_ALLOWLIST, 1, 0);
	names_ended(&w, ID1);
	names_close(&box);
	/* tried each second, told once */
	names_come(&w, &box, rid);
	ck_assert_int_eq(chan_error(&w.proxyd, rid[0], CODE_INTERNAL, "no"),
	    0);
	names_ended(&w, ID1);
	names_close(&box);
	names_come(&w, &box, rid);
	names_say_ok(&w, rid);
	until_served(ID1);
	is(ID1, NETWORK_ALLOWLIST, 1, 1);
}
END_TEST

/* It is cut while it is adopted: who adopts it is told, and once. */
START_TEST(adopted_and_cut)
{
	struct msg_net_cut	c;
	struct msg		m;
	uint32_t		adopt, cut, rid[NAMES_SOCKS];

	names_open(&w, ID1, &box);
	world_kill(&w);
	names_close(&box);
	world_start(&w);
	adopt = ask_adopt(&box, NETWORK_ALLOWLIST, 1);
	names_come(&w, &box, rid);
	c.k = box.k;
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_CUT, &c, -1, &cut), 0);
	ck_assert_uint_eq(answer(&w.privd, cut), MSG_OK);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_ERROR);
	ck_assert_uint_eq(m.rid, adopt);
	names_ended(&w, ID1);
	ck_assert(quiet(&w.privd, 1200));
}
END_TEST

/* ---- changes ----------------------------------------------------------- */

static uint64_t	now_is;

static void
becomes(uint64_t network)
{
	uint32_t	change = ask_change(ID1, network), rid[NAMES_SOCKS];

	if (network == NETWORK_ALLOWLIST) {
		names_come(&w, &box, rid);
		is(ID1, now_is, 1, 1);		/* until it is served */
		ck_assert(quiet(&w.apid, 50));
		names_say_ok(&w, rid);
	}
	if (network == NETWORK_EGRESS)
		uplink_begins();
	else if (now_is == NETWORK_EGRESS)
		uplink_ends();
	ck_assert_uint_eq(answer(&w.apid, change), MSG_NET_CHANGED);
	if (now_is == NETWORK_ALLOWLIST) {
		names_ended(&w, ID1);
		names_close(&box);
	}
	now_is = network;
	is(ID1, network, 1, 1);
}

/* From each kind to each other one. */
START_TEST(all_ways)
{
	static const uint64_t	ways[] = { NETWORK_ALLOWLIST, NETWORK_NONE,
				    NETWORK_EGRESS, NETWORK_ALLOWLIST,
				    NETWORK_EGRESS, NETWORK_NONE,
				    NETWORK_ALLOWLIST, NETWORK_NONE };
	size_t			i;
	int			fds, round;

	box.id = ID1;
	box.sock[0] = box.sock[1] = box.sock[2] = -1;
	box.k = world_net(&w, ID1, &box.netns);
	world_open(&w, box.k, NULL);
	now_is = NETWORK_NONE;
	fds = world_fds(w.pid);
	for (round = 0; round < 2; round++)
		for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			becomes(ways[i]);
	/* a pool's worth may come or go meanwhile */
	ck_assert_int_le(world_fds(w.pid), fds + 8);
	ck_assert_int_eq(world_box_result(world_box(box.netns, probe_open,
	    NULL)), 0);
	becomes(NETWORK_ALLOWLIST);
	world_drop(&w, box.k);
	names_ended(&w, ID1);
}
END_TEST

/* proxyd can not: it is what it was. */
START_TEST(change_fails)
{
	uint32_t	change, rid[NAMES_SOCKS];
	int		i;

	box.id = ID1;
	box.sock[0] = box.sock[1] = box.sock[2] = -1;
	box.k = world_net(&w, ID1, &box.netns);
	world_open(&w, box.k, NULL);
	now_is = NETWORK_NONE;
	for (i = 0; i < 2; i++) {
		change = ask_change(ID1, NETWORK_ALLOWLIST);
		names_come(&w, &box, rid);
		ck_assert_uint_eq(answer(&w.apid, ask_change(ID1,
		    NETWORK_NONE)), CODE_BUSY);
		ck_assert_int_eq(chan_error(&w.proxyd, rid[2], CODE_INTERNAL,
		    "no list"), 0);
		names_ended(&w, ID1);
		names_close(&box);
		ck_assert_uint_eq(answer(&w.apid, change), CODE_INTERNAL);
		ck_assert_str_eq(why_not, "its way out: no list");
		is(ID1, now_is, 1, 1);
		/* and it is not tried by itself */
		ck_assert(quiet(&w.proxyd, 1200));
		if (i == 0)
			becomes(NETWORK_EGRESS);
	}
	/* nor when it is cut meanwhile */
	change = ask_change(ID1, NETWORK_ALLOWLIST);
	names_come(&w, &box, rid);
	world_cut(&w, box.k);
	ck_assert_uint_eq(answer(&w.apid, change), CODE_BAD_TRANSITION);
	names_ended(&w, ID1);
	names_say_ok(&w, rid);
	is(ID1, NETWORK_EGRESS, 2, 1);
}
END_TEST

/* The list of one that stays what it is. */
START_TEST(list_changes)
{
	struct msg	m;
	uint32_t	change;
	int		i;

	names_open(&w, ID1, &box);
	for (i = 0; i < 2; i++) {
		change = ask_change(ID1, NETWORK_ALLOWLIST);
		ck_assert_uint_eq(daemon_next(&w.proxyd, &m),
		    MSG_PROXY_LIST);
		ck_assert_str_eq(m.body.proxy_list.id, ID1);
		ck_assert(quiet(&w.apid, 50));
		ck_assert_uint_eq(answer(&w.apid, ask_change(ID1,
		    NETWORK_ALLOWLIST)), CODE_BUSY);
		if (i == 0)
			ck_assert_int_eq(chan_ok(&w.proxyd, m.rid), 0);
		else
			ck_assert_int_eq(chan_error(&w.proxyd, m.rid,
			    CODE_INTERNAL, "it is broken"), 0);
		ck_assert_uint_eq(answer(&w.apid, change), i == 0 ?
		    MSG_NET_CHANGED : CODE_INTERNAL);
	}
	ck_assert_str_eq(why_not, "its list: it is broken");
	is(ID1, NETWORK_ALLOWLIST, 1, 1);
	/* a cut wins */
	change = ask_change(ID1, NETWORK_ALLOWLIST);
	ck_assert_uint_eq(daemon_next(&w.proxyd, &m), MSG_PROXY_LIST);
	world_cut(&w, box.k);
	ck_assert_uint_eq(answer(&w.apid, change), CODE_BAD_TRANSITION);
	ck_assert_int_eq(chan_ok(&w.proxyd, m.rid), 0);
	ck_assert(quiet(&w.apid, 50));
}
END_TEST

void
allow_tests(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, waits_for_proxyd);
	tcase_add_test(t, error_of_proxyd);
	tcase_add_test(t, served_before);
	tcase_add_test(t, wrong_answers);
	tcase_add_test(t, opening_is_lost);
	tcase_add_test(t, cut_and_opened);
	tcase_add_test(t, many_at_once);
	tcase_add_test(t, mute);
	tcase_add_test(t, mute_and_asked);
	tcase_add_test(t, denied_of_others);
	tcase_add_test(t, denied_without_sense);
	tcase_add_test(t, open_from_proxyd);
	tcase_add_test(t, proxyd_ends);
	tcase_add_test(t, names);
	tcase_add_test(t, adopted);
	tcase_add_test(t, adopted_without);
	tcase_add_test(t, adopted_and_cut);
	tcase_add_test(t, all_ways);
	tcase_add_test(t, change_fails);
	tcase_add_test(t, list_changes);
}
