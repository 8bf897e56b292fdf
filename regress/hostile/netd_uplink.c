/*
 * netd_uplink.c: networks `egress' of the real netd, with the test in
 * uplinkd's place: nothing is handed out or opened without a way out, and
 * one that was lost is asked for again; and networks that become such ones,
 * or cease to be.
 */
#include <sys/stat.h>

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netd_probe.h"
#include "netd_uplink.h"
#include "netd_world.h"
#include "xmalloc.h"

#define ID1	"01K8ZZZZZZZZZZZZZZZZZZZZZ1"
#define ID2	"01K8ZZZZZZZZZZZZZZZZZZZZZ2"
#define ID3	"01K8ZZZZZZZZZZZZZZZZZZZZZ3"
#define ID4	"01K8ZZZZZZZZZZZZZZZZZZZZZ4"

static struct world	w;

static void
setup(void)
{
	world_make(&w);
	w.conf.egress_pool = 0;
	world_start(&w);
}

/* In a host of our own. */
static void
setup_host(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	setup();
}

static void
teardown(void)
{
	world_free(&w);
}

/* ---- in uplinkd's place -------------------------------------------------- */

/* UPLINK_START for a netns, whose descriptor is *ret_netns; its rid. */
static uint32_t
asked(unsigned int *ret_k, int keep, int *ret_netns)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), MSG_UPLINK_START);
	ck_assert_uint_eq(m.body.uplink_start.keep, (uint64_t)keep);
	ck_assert_int_ne(m.fd, -1);
	if (ret_netns != NULL)
		*ret_netns = m.fd;
	else
		close(m.fd);
	*ret_k = (unsigned int)m.body.uplink_start.k;
	return m.rid;
}

static void
say_started(unsigned int k, uint32_t rid, int kept)
{
	struct msg_uplink_started	s = { .k = k, .kept = (uint64_t)kept };

	ck_assert_int_eq(chan_send(&w.uplinkd, MSG_UPLINK_STARTED, rid, &s,
	    -1), 0);
}

static void
say_down(unsigned int k)
{
	struct msg_uplink_down	d = { .k = k };

	ck_assert_int_eq(chan_send(&w.uplinkd, MSG_UPLINK_DOWN, 0, &d, -1),
	    0);
}

static unsigned int
ended(void)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), MSG_UPLINK_END);
	ck_assert_int_eq(chan_ok(&w.uplinkd, m.rid), 0);
	return (unsigned int)m.body.uplink_end.k;
}

static int
quiet(const struct chan *c, int ms)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

/* ---- in privd's and apid's ----------------------------------------------- */

static void
want(const char *id, uint32_t *ret_rid)
{
	struct msg_net_make	q = { .network = NETWORK_EGRESS };

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_MAKE, &q, -1, ret_rid),
	    0);
}

static int
made(uint32_t rid, unsigned int k)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_MADE);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(m.body.net_made.k, k);
	return m.fd;
}

/* One with a way out. */
static unsigned int
egress(const char *id, int *ret_netns)
{
	unsigned int	k;
	uint32_t	rid, up;
	int		netns;

	want(id, &rid);
	up = asked(&k, 0, NULL);
	say_started(k, up, 0);
	netns = made(rid, k);
	if (ret_netns != NULL)
		*ret_netns = netns;
	else
		close(netns);
	return k;
}

static unsigned int
open_is(unsigned int k)
{
	struct msg_net_open	q = { .k = k };
	struct msg		m;
	unsigned int		t;

	t = daemon_ask(&w.privd, MSG_NET_OPEN, &q, -1, &m);
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
until_up(const char *id)
{
	int	i;

	for (i = 0; status(id).uplink == 0; i++) {
		ck_assert_int_lt(i, 500);
		(void)poll(NULL, 0, 10);
	}
}

/* ---- tests -------------------------------------------------------------- */

/* The answer to NET_MAKE waits for uplinkd's; what it is asked is the same. */
START_TEST(waits_for_uplink)
{
	struct stat	a, b;
	unsigned int	k;
	uint32_t	rid, up;
	int		mine, theirs;

	want(ID1, &rid);
	up = asked(&k, 0, &theirs);
	ck_assert(quiet(&w.privd, 100));
	say_started(k, up, 0);
	mine = made(rid, k);
	ck_assert_int_eq(fstat(mine, &a), 0);
	ck_assert_int_eq(fstat(theirs, &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	ck_assert_uint_eq(status(ID1).state, 1);
	ck_assert_uint_eq(status(ID1).whole, 1);
	ck_assert_uint_eq(status(ID1).uplink, 1);
	world_drop(&w, k);
	ck_assert_uint_eq(ended(), k);
	close(mine);
	close(theirs);
}
END_TEST

#define NO_TAP	"its way out: no tap; `workbox doctor' tells what the " \
		"network egress needs"

START_TEST(no_uplink_no_network)
{
	struct msg	m;
	unsigned int	k;
	uint32_t	rid, up;

	want(ID1, &rid);
	up = asked(&k, 0, NULL);
	ck_assert_int_eq(chan_error(&w.uplinkd, up, CODE_INTERNAL, "no tap"),
	    0);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_ERROR);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(m.body.error.code, CODE_CREATE_FAILED);
	ck_assert_str_eq(m.body.error.detail, NO_TAP);
	/* `none' is not held up by it */
	(void)world_net(&w, ID2, NULL);
}
END_TEST

START_TEST(lost_and_found)
{
	unsigned int	k = egress(ID1, NULL), again;
	uint32_t	up;

	say_down(k);
	up = asked(&again, 0, NULL);
	ck_assert_uint_eq(again, k);
	ck_assert_uint_eq(status(ID1).uplink, 0);
	ck_assert_uint_eq(open_is(k), CODE_INTERNAL);
	/* it is asked for until there is one */
	ck_assert_int_eq(chan_error(&w.uplinkd, up, CODE_INTERNAL, "none"),
	    0);
	up = asked(&again, 0, NULL);
	ck_assert_uint_eq(again, k);
	say_started(k, up, 0);
	until_up(ID1);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	/* an open one stays open, and is told as not whole until then */
	say_down(k);
	ck_assert(quiet(&w.uplinkd, 400));	/* so soon again: not at once */
	up = asked(&again, 0, NULL);
	ck_assert_uint_eq(status(ID1).state, 1);
	ck_assert_uint_eq(status(ID1).uplink, 0);
	say_started(k, up, 0);
	until_up(ID1);
}
END_TEST

/* IPv6 was told but there is no tap: as if uplinkd had failed. */
START_TEST(no_tap)
{
	struct msg_uplink_started	s = { .ipv6 = 1 };
	struct msg			m;
	unsigned int			k;
	uint32_t			rid, up;

	want(ID1, &rid);
	up = asked(&k, 0, NULL);
	s.k = k;
	ck_assert_int_eq(chan_send(&w.uplinkd, MSG_UPLINK_STARTED, up, &s,
	    -1), 0);
	ck_assert_uint_eq(ended(), k);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_ERROR);
	ck_assert_uint_eq(m.rid, rid);
}
END_TEST

/* What nobody asked for changes nothing. */
START_TEST(hostile_uplinkd)
{
	unsigned int	k = egress(ID1, NULL), n = world_net(&w, ID2, NULL);

	say_started(n, 99, 0);
	say_started(k, 98, 0);
	say_started(65535, 97, 1);
	say_down(n);
	say_down(65535);
	ck_assert_int_eq(chan_error(&w.uplinkd, 96, CODE_INTERNAL, "x"), 0);
	ck_assert_int_eq(chan_ok(&w.uplinkd, 95), 0);
	world_open(&w, n, NULL);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	ck_assert_uint_eq(status(ID1).uplink, 1);
	ck_assert_uint_eq(status(ID2).uplink, 1);
	ck_assert(quiet(&w.uplinkd, 50));
}
END_TEST

/* After a restart: kept, or not there any more; the box lives either way. */
START_TEST(adopted)
{
	struct msg_net_adopt	q = { .network = NETWORK_EGRESS, .open = 1 };
	struct msg		m;
	unsigned int		k, again;
	uint32_t		rid, up;
	int			netns;

	k = egress(ID1, &netns);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	world_kill(&w);
	world_start(&w);
	(void)str_copy(q.id, ID1, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), &rid), 0);
	up = asked(&again, 1, NULL);
	ck_assert_uint_eq(again, k);
	ck_assert(quiet(&w.privd, 100));
	say_started(k, up, 1);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(status(ID1).uplink, 1);
	world_kill(&w);
	world_start(&w);
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), &rid), 0);
	up = asked(&again, 1, NULL);
	ck_assert_int_eq(chan_error(&w.uplinkd, up, CODE_INTERNAL, "none"),
	    0);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(status(ID1).uplink, 0);
	up = asked(&again, 0, NULL);
	say_started(k, up, 0);
	until_up(ID1);
	close(netns);
}
END_TEST

/* So many that netd follows them no longer. */
static void
many_addrs(void)
{
	char	name[] = "/tmp/netd-addrs.XXXXXX", cmd[64];
	int	i, fd = mkstemp(name);

	ck_assert_int_ne(fd, -1);
	dprintf(fd, "link set lo up\n");
	for (i = 0; i < 1100; i++)	/* no two of which touch */
		dprintf(fd, "addr add 20.0.%d.%d/32 dev lo\n", i / 100,
		    i % 100 * 2);
	close(fd);
	snprintf(cmd, sizeof(cmd), "ip -batch %s", name);
	i = system(cmd);
	unlink(name);
	ck_assert_int_eq(i, 0);
	for (i = 0; !daemon_logged(w.log, "networks egress are sealed"); i++) {
		ck_assert_int_lt(i, 1000);
		(void)poll(NULL, 0, 10);
	}
}

/* Cut while its uplink starts: not told as what it was to be. */
START_TEST(adopted_and_cut)
{
	struct msg_net_adopt	q = { .id = ID1, .network = NETWORK_EGRESS,
				    .open = 1 };
	struct msg_net_status	s = { .id = ID1 };
	struct msg		m;
	unsigned int		k, again;
	uint32_t		rid, up;
	int			netns;

	k = egress(ID1, &netns);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	world_kill(&w);
	world_start(&w);
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), &rid), 0);
	up = asked(&again, 1, NULL);
	many_addrs();
	say_started(k, up, 1);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_ERROR);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert_uint_eq(m.body.error.code, CODE_INTERNAL);
	ck_assert_uint_eq(ended(), k);
	/* lo is up, but nothing comes; there was no real way out */
	ck_assert_int_eq(world_box_result(world_box(netns, probe_lo_down,
	    NULL)), 0);
	ck_assert_uint_eq(daemon_ask(&w.apid, MSG_NET_STATUS, &s, -1, &m),
	    MSG_ERROR);
	ck_assert_uint_eq(m.body.error.code, CODE_NOT_FOUND);
	close(netns);
}
END_TEST

/* ---- one becomes another ------------------------------------------------ */

static uint32_t
ask_change(const char *id, uint64_t network)
{
	struct msg_net_change	q = { .network = network };
	uint32_t		rid;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.apid, MSG_NET_CHANGE, &q, -1, &rid), 0);
	return rid;
}

static char	why_not[256];		/* of the last answer */

/* Its answer: the type, or an error's code. */
static unsigned int
changed(uint32_t rid)
{
	struct msg	m;
	unsigned int	t = daemon_next(&w.apid, &m);

	ck_assert_uint_eq(m.rid, rid);
	(void)str_copy(why_not, t == MSG_ERROR ? m.body.error.detail : "",
	    sizeof(why_not));
	return t == MSG_ERROR ? (unsigned int)m.body.error.code : t;
}

static void
to_egress(const char *id, unsigned int k)
{
	unsigned int	again;
	uint32_t	rid = ask_change(id, NETWORK_EGRESS), up;

	up = asked(&again, 0, NULL);
	ck_assert_uint_eq(again, k);
	ck_assert_uint_eq(status(id).network, NETWORK_NONE);
	ck_assert(quiet(&w.apid, 50));
	say_started(k, up, 0);
	ck_assert_uint_eq(changed(rid), MSG_NET_CHANGED);
	ck_assert_uint_eq(status(id).network, NETWORK_EGRESS);
	ck_assert_uint_eq(status(id).whole, 1);
	ck_assert_uint_eq(status(id).uplink, 1);
}

static void
to_none(const char *id, unsigned int k)
{
	uint32_t	rid = ask_change(id, NETWORK_NONE);

	ck_assert_uint_eq(ended(), k);
	ck_assert_uint_eq(changed(rid), MSG_NET_CHANGED);
	ck_assert_uint_eq(status(id).network, NETWORK_NONE);
	ck_assert_uint_eq(status(id).whole, 1);
}

START_TEST(change_refused)
{
	unsigned int	k = world_net(&w, ID1, NULL);
	uint32_t	rid, up;

	ck_assert_uint_eq(changed(ask_change(ID2, NETWORK_EGRESS)),
	    CODE_NOT_FOUND);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_EGRESS)),
	    CODE_BAD_TRANSITION);
	world_open(&w, k, NULL);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_ALLOWLIST)),
	    CODE_NETWORK_UNSUPPORTED);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_NONE)),
	    MSG_NET_CHANGED);
	rid = ask_change(ID1, NETWORK_EGRESS);
	up = asked(&k, 0, NULL);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_EGRESS)),
	    CODE_BUSY);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_NONE)), CODE_BUSY);
	say_started(k, up, 0);
	ck_assert_uint_eq(changed(rid), MSG_NET_CHANGED);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_EGRESS)),
	    MSG_NET_CHANGED);
	/* nor while it ends */
	rid = ask_change(ID1, NETWORK_NONE);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_EGRESS)),
	    CODE_BUSY);
	ck_assert_uint_eq(ended(), k);
	ck_assert_uint_eq(changed(rid), MSG_NET_CHANGED);
	world_cut(&w, k);
	ck_assert_uint_eq(changed(ask_change(ID1, NETWORK_EGRESS)),
	    CODE_BAD_TRANSITION);
	ck_assert(quiet(&w.uplinkd, 50));
}
END_TEST

/* What fails leaves all as it was, descriptors too. */
START_TEST(change_fails)
{
	unsigned int	again, k = world_net(&w, ID1, NULL);
	uint32_t	rid, up;
	int		fds;

	world_open(&w, k, NULL);
	to_egress(ID1, k);
	to_none(ID1, k);
	fds = world_fds(w.pid);
	rid = ask_change(ID1, NETWORK_EGRESS);
	up = asked(&again, 0, NULL);
	ck_assert_int_eq(chan_error(&w.uplinkd, up, CODE_INTERNAL, "no tap"),
	    0);
	ck_assert_uint_eq(changed(rid), CODE_INTERNAL);
	ck_assert_str_eq(why_not, NO_TAP);
	ck_assert_uint_eq(status(ID1).network, NETWORK_NONE);
	ck_assert_uint_eq(status(ID1).state, 1);
	ck_assert_uint_eq(status(ID1).whole, 1);
	ck_assert_int_eq(world_fds(w.pid), fds);
	/* and it is not asked for again by itself */
	ck_assert(quiet(&w.uplinkd, 1500));
	to_egress(ID1, k);
	/* one that is lost is still asked for, while it is of that kind */
	say_down(k);
	up = asked(&again, 0, NULL);
	to_none(ID1, k);
	say_started(k, up, 0);		/* too late */
	ck_assert_uint_eq(status(ID1).network, NETWORK_NONE);
	ck_assert(quiet(&w.uplinkd, 1500));
	ck_assert_int_eq(world_fds(w.pid), fds);
}
END_TEST

/* A cut or an end wins; each is answered once. */
START_TEST(change_lost)
{
	unsigned int	again, k = world_net(&w, ID1, NULL), i;
	uint32_t	rid, up;

	for (i = 0; i < 4; i++) {
		world_open(&w, k, NULL);
		rid = ask_change(ID1, NETWORK_EGRESS);
		up = asked(&again, 0, NULL);
		if (i == 3)
			world_drop(&w, k);
		else
			world_cut(&w, k);
		ck_assert_uint_eq(ended(), k);
		say_started(k, up, 0);	/* too late */
		ck_assert_uint_eq(changed(rid), CODE_BAD_TRANSITION);
	}
	/* whoever is asked first, the maker or netd for the cut */
	for (i = 0; i < 40; i++) {
		k = world_net(&w, ID1, NULL);
		world_open(&w, k, NULL);
		rid = ask_change(ID1, NETWORK_EGRESS);
		world_drop(&w, k);
		again = changed(rid);
		ck_assert(again == CODE_BAD_TRANSITION ||
		    again == CODE_NOT_FOUND);
	}
	ck_assert(quiet(&w.apid, 100));
}
END_TEST

static void
adopt_as(int netns, uint64_t made_as, int open, unsigned int k, int up)
{
	struct msg_net_adopt	q = { .id = ID1, .network = made_as,
				    .open = (uint64_t)open };
	struct msg		m;
	unsigned int		again;
	uint32_t		rid;

	world_kill(&w);
	world_start(&w);
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q,
	    fcntl(netns, F_DUPFD_CLOEXEC, 0), &rid), 0);
	if (up)
		say_started(k, asked(&again, 1, NULL), 1);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.rid, rid);
	ck_assert(quiet(&w.uplinkd, 50));
	ck_assert_uint_eq(status(ID1).whole, 1);
	ck_assert_uint_eq(status(ID1).state, open ? 1 : 2);
}

/* privd knows how it was made; what it has become since the kernel knows. */
START_TEST(change_adopted)
{
	unsigned int	k;
	int		netns;

	k = world_net(&w, ID1, &netns);
	world_open(&w, k, NULL);
	to_egress(ID1, k);
	adopt_as(netns, NETWORK_NONE, 1, k, 1);
	ck_assert_uint_eq(status(ID1).network, NETWORK_EGRESS);
	to_none(ID1, k);
	adopt_as(netns, NETWORK_EGRESS, 1, k, 0);
	ck_assert_uint_eq(status(ID1).network, NETWORK_NONE);
	to_egress(ID1, k);
	/* what is sealed is what it was made as, and says no more */
	adopt_as(netns, NETWORK_NONE, 0, k, 0);
	ck_assert_uint_eq(status(ID1).network, NETWORK_NONE);
	/* nor when it is to be open: without a tap it is the lesser one */
	adopt_as(netns, NETWORK_EGRESS, 1, k, 0);
	ck_assert_uint_eq(status(ID1).network, NETWORK_NONE);
	ck_assert(daemon_logged(w.log, "its ruleset is of no kind"));
	close(netns);
}
END_TEST

static uint32_t
ask_adopt(const char *id, uint64_t network, int netns)
{
	struct msg_net_adopt	q = { .network = network, .open = 1 };
	uint32_t		rid;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_ADOPT, &q, netns, &rid),
	    0);
	return rid;
}

/* It goes while it is adopted: both are answered, and nothing is waited for. */
START_TEST(adopted_and_freed)
{
	struct msg_net_free	f = { .wire_end = 0 };
	struct msg		m;
	unsigned int		again, k;
	uint32_t		adopt, gone;
	int			netns;

	k = egress(ID1, &netns);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	world_kill(&w);
	w.conf.max_boxes = 1;
	world_start(&w);
	adopt = ask_adopt(ID1, NETWORK_EGRESS, netns);
	(void)asked(&again, 1, NULL);
	ck_assert_uint_eq(again, k);
	f.k = k;
	ck_assert_int_eq(chan_ask(&w.privd, MSG_NET_FREE, &f, -1, &gone), 0);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_ERROR);
	ck_assert_uint_eq(m.rid, adopt);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_OK);
	ck_assert_uint_eq(m.rid, gone);
	ck_assert_uint_eq(ended(), k);
	/* there is room for one */
	(void)world_net(&w, ID2, NULL);
}
END_TEST

/* Nobody waits for one that does not answer; the box it stands for lives. */
START_TEST(mute)
{
	struct msg	m;
	unsigned int	k1, k3, k4, k;
	uint32_t	adopt, make, to, from, up;
	int		n1, n3, n4;

	k1 = egress(ID1, &n1);
	k3 = world_net(&w, ID3, &n3);
	k4 = egress(ID4, &n4);
	ck_assert_uint_eq(open_is(k1), MSG_NET_OPENED);
	ck_assert_uint_eq(open_is(k3), MSG_NET_OPENED);
	ck_assert_uint_eq(open_is(k4), MSG_NET_OPENED);
	world_kill(&w);
	world_start(&w);
	(void)ask_adopt(ID3, NETWORK_NONE, n3);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	(void)ask_adopt(ID4, NETWORK_EGRESS, n4);
	say_started(k4, asked(&k, 1, NULL), 1);
	ck_assert_uint_eq(daemon_next(&w.privd, &m), MSG_NET_OPENED);
	/* from here on nothing is answered */
	adopt = ask_adopt(ID1, NETWORK_EGRESS, n1);
	up = asked(&k, 1, NULL);
	ck_assert_uint_eq(k, k1);
	to = ask_change(ID3, NETWORK_EGRESS);
	(void)asked(&k, 0, NULL);
	ck_assert_uint_eq(k, k3);
	from = ask_change(ID4, NETWORK_NONE);
	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), MSG_UPLINK_END);
	want(ID2, &make);
	(void)asked(&k, 0, NULL);
	ck_assert(quiet(&w.apid, 8000));
	ck_assert(quiet(&w.privd, 0));
	for (k = 0; k < 2; k++)
		if (daemon_next(&w.privd, &m) == MSG_ERROR)
			ck_assert_uint_eq(m.rid, make);
		else
			ck_assert_uint_eq(m.rid, adopt);
	for (k = 0; k < 2; k++)
		if (daemon_next(&w.apid, &m) == MSG_ERROR)
			ck_assert_uint_eq(m.rid, to);
		else
			ck_assert_uint_eq(m.rid, from);
	ck_assert_uint_eq(status(ID1).state, 1);
	ck_assert_uint_eq(status(ID1).uplink, 0);
	ck_assert_uint_eq(status(ID3).network, NETWORK_NONE);
	ck_assert_uint_eq(status(ID3).whole, 1);
	ck_assert_uint_eq(status(ID4).network, NETWORK_NONE);
	ck_assert(daemon_logged(w.log, "uplinkd does not answer"));
	/* other kinds go on, and what comes late is welcome */
	(void)world_net(&w, ID2, NULL);
	say_started(k1, up, 1);
	until_up(ID1);
	ck_assert(daemon_logged(w.log, "uplinkd answers again"));
}
END_TEST

/* The pool: filled once a box of the kind was there, ended by a stop. */
START_TEST(pool)
{
	struct msg_daemon_stop	 q = { 0 };
	struct msg		 m;
	unsigned int		 k, pooled, next, taken;
	uint32_t		 rid, up;
	int			 i;

	world_kill(&w);
	w.conf.egress_pool = 1;
	world_start(&w);
	ck_assert(quiet(&w.uplinkd, 400));
	k = egress(ID1, NULL);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	up = asked(&pooled, 0, NULL);
	say_started(pooled, up, 0);
	ck_assert(quiet(&w.uplinkd, 400));
	/* handed out at once, and another is prepared */
	want(ID2, &rid);
	close(made(rid, pooled));
	ck_assert_uint_eq(open_is(pooled), MSG_NET_OPENED);
	up = asked(&next, 0, NULL);
	say_started(next, up, 0);
	for (i = 0; quiet(&w.uplinkd, 50) == 0; i++)
		ck_assert_int_lt(i, 100);
	/* one that dies in the pool is not handed out */
	say_down(next);
	up = asked(&taken, 0, NULL);
	ck_assert_uint_ne(taken, next);
	say_started(taken, up, 0);
	(void)status(ID1);
	(void)poll(NULL, 0, 50);
	ck_assert_int_eq(chan_ask(&w.privd, MSG_DAEMON_STOP, &q, -1, NULL),
	    0);
	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), MSG_UPLINK_END);
	ck_assert_uint_eq(m.body.uplink_end.k, taken);
	ck_assert_uint_eq(daemon_next(&w.uplinkd, &m), 0);
	ck_assert_int_eq(world_wait(&w), 0);
}
END_TEST

/* A large pool beside few boxes has descriptors of its own. */
START_TEST(large_pool)
{
	unsigned int	i, k, pooled;
	uint32_t	up;

	world_kill(&w);
	w.conf.max_boxes = 1;
	w.conf.egress_pool = 40;
	world_start(&w);
	k = egress(ID1, NULL);
	ck_assert_uint_eq(open_is(k), MSG_NET_OPENED);
	for (i = 0; i < 40; i++) {
		up = asked(&pooled, 0, NULL);
		say_started(pooled, up, 0);
	}
	ck_assert(quiet(&w.uplinkd, 400));
	ck_assert_uint_eq(status(ID1).whole, 1);
}
END_TEST

TCase *
uplink_host_tests(void)
{
	TCase	*t = tcase_create("uplinks of a host");

	tcase_add_checked_fixture(t, setup_host, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, adopted_and_cut);
	return t;
}

void
uplink_tests(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, waits_for_uplink);
	tcase_add_test(t, no_uplink_no_network);
	tcase_add_test(t, lost_and_found);
	tcase_add_test(t, no_tap);
	tcase_add_test(t, hostile_uplinkd);
	tcase_add_test(t, adopted);
	tcase_add_test(t, change_refused);
	tcase_add_test(t, change_fails);
	tcase_add_test(t, change_lost);
	tcase_add_test(t, change_adopted);
	tcase_add_test(t, adopted_and_freed);
	tcase_add_test(t, mute);
	tcase_add_test(t, pool);
	tcase_add_test(t, large_pool);
}
