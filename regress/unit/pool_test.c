/*
 * pool_test.c: netd's pool when the host lacks memory, and when uplinkd does
 * not answer, with pool.c, pressure.c and uplink.c alone.  Urgent data on a
 * socket is what the kernel's trigger would be: both are EPOLLPRI.  The test is
 * nets.c, change.c, the maker, uplinkd and the clock.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <check.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../netd/netd.h"
#include "log.h"
#include "xmalloc.h"

#define POOL_SIZE	2
#define REST_MS		30000

struct nets			 nets;

static struct event_base	*base;
static int			 maker;		/* ours of the channel */
static int			 trigger, urgent; /* its two ends */
static uint64_t			 clock_ms;
static struct net		*net[NET_KMAX + 1]; /* by k; owned */
static unsigned int		 next_k, dropped, answered, changed;
static struct netns_made	 next;		/* the maker's next answer */
static int			 has_next;
static struct chan		 privd, uplinkd;

/* ---- in place of the others -------------------------------------------- */

uint64_t	__wrap_mono_ms(void);

uint64_t
__wrap_mono_ms(void)
{
	return clock_ms;
}

struct net *
net_new(unsigned int k, enum ruleset kind)
{
	struct net	*n = xcalloc(1, sizeof(*n));

	(void)k;
	n->k = ++next_k;
	n->kind = kind;
	n->netns = fcntl(maker, F_DUPFD_CLOEXEC, 0);
	nets.making[kind]++;
	return net[n->k] = n;
}

void
net_move(struct net *n, enum net_state to)
{
	nets.making[n->kind] -= n->state == MAKING;
	if (n->state == POOLED) {
		nets.pooled[n->kind]--;
		TAILQ_REMOVE(&nets.pool[n->kind], n, pool);
	}
	n->state = to;
	if (to == POOLED) {
		nets.pooled[n->kind]++;
		TAILQ_INSERT_TAIL(&nets.pool[n->kind], n, pool);
	}
}

void
net_own(struct net *n, const char *id, enum net_state to)
{
	(void)id;
	net_move(n, to);
}

uint64_t
net_network(const struct net *n)
{
	return n->kind == RULESET_EGRESS ? NETWORK_EGRESS : NETWORK_NONE;
}

void
net_drop(struct net *n)
{
	pool_lost(n);
	(void)uplink_end(n);
	net_move(n, DYING);
	net[n->k] = NULL;
	fd_close(&n->netns);
	free(n);
	dropped++;
}

void
net_leave(struct net *n)
{
	net_drop(n);
}

void
net_reserve(unsigned int k, int netns)
{
	(void)k;
	(void)netns;
	ck_abort();
}

struct net *
net_at(unsigned int k)
{
	return net[k];
}

struct net *
net_find(const char *id)
{
	(void)id;
	return NULL;
}

const char *
net_prepare(struct net *n, struct netns_made *m)
{
	(void)n;
	(void)m;
	return NULL;
}

enum ruleset
net_found(const struct netns_made *m, const char *id)
{
	(void)m;
	(void)id;
	ck_abort();
}

const char *
net_adopt(struct net *n, struct netns_made *m, const char *id, int open)
{
	(void)n;
	(void)m;
	(void)id;
	(void)open;
	ck_abort();
}

const char *
ruleset_hash(enum ruleset r)
{
	(void)r;
	return "hash";
}

struct net *
net_by_k(uint64_t k)
{
	struct net	*n = net_at((unsigned int)k);

	return n != NULL && (n->state == SEALED || n->state == OPEN) ? n :
	    NULL;
}

int
link_uplink6(int fd)
{
	(void)fd;
	return 0;
}

void
change_made(struct change *c, struct netns_made *m)
{
	(void)c;
	(void)m;
	ck_abort();
}

int
change_starts(const struct net *n)
{
	return n->change != NULL && n->change->at == CHANGE_STARTS;
}

void
change_uplinked(struct net *n, const char *why)
{
	ck_assert_ptr_ne(why, NULL);
	n->change = NULL;
	changed++;
}

void
change_ended(struct net *n)
{
	n->change = NULL;
	changed++;
}

unsigned int
change_wants(const struct change *c)
{
	(void)c;
	ck_abort();
}

int
change_proxies(const struct net *n)
{
	(void)n;
	ck_abort();
}

void
change_proxied(struct net *n, enum wb_code code, const char *why)
{
	(void)code;
	(void)n;
	(void)why;
	ck_abort();
}

void
netd_opens(struct net *n, const char *why)
{
	(void)n;
	(void)why;
	ck_abort();
}

void
proxy_start(struct net *n)
{
	(void)n;
	ck_abort();
}

void
proxy_made(struct proxied *p, struct netns_made *m)
{
	(void)p;
	(void)m;
	ck_abort();
}

int
netns_ask(int fd, unsigned int k, unsigned int want, int netns)
{
	(void)fd;
	(void)want;
	(void)netns;
	ck_assert(!has_next);
	next.k = k;
	has_next = 1;
	return 0;
}

int
netns_recv(int fd, struct netns_made *ret)
{
	char	b;

	(void)fd;
	if (read(fd, &b, 1) != 1 || !has_next)
		return 0;
	memset(ret, 0, sizeof(*ret));
	ret->k = next.k;
	has_next = 0;
	return 1;
}

void
netns_close(struct netns_made *m)
{
	(void)m;
}

void
netd_sent(struct chan *c, int result)
{
	ck_assert_int_eq(result, 0);
	answered += c == &privd;
}

/* ---- the rig ----------------------------------------------------------- */

static void
pair(int ret[2])
{
	struct sockaddr_in	sa = { .sin_family = AF_INET };
	socklen_t		len = sizeof(sa);
	int			l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
				    0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(l, (struct sockaddr *)&sa, len), 0);
	ck_assert_int_eq(listen(l, 1), 0);
	ck_assert_int_eq(getsockname(l, (struct sockaddr *)&sa, &len), 0);
	ck_assert_int_eq(connect(ret[0], (struct sockaddr *)&sa, len), 0);
	ck_assert_int_ne(ret[1] = accept(l, NULL, NULL), -1);
	close(l);
}

static int	theirs, told, to_uplinkd;

static int
chan(struct chan *c, unsigned int actor)
{
	int	sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    sv), 0);
	chan_init(c, sv[0], A_NETD, actor, S_RUN);
	return sv[1];
}

static void
setup(void)
{
	int	sv[2], i, ep;

	log_init("pool_test", LOG_L_ERROR, 0);
	clock_ms = 1000000;
	for (i = 0; i < RULESET_N; i++)
		TAILQ_INIT(&nets.pool[i]);
	ck_assert_ptr_ne(base = event_base_new(), NULL);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0, sv), 0);
	maker = sv[0];
	theirs = sv[1];
	pool_init(base, theirs, POOL_SIZE);
	pair(sv);
	urgent = sv[0];
	trigger = sv[1];
	ck_assert_int_ne(ep = pressure_watch(trigger), -1);
	pressure_init(base, ep, pool_drain);
	told = chan(&privd, A_PRIVD);
	to_uplinkd = chan(&uplinkd, A_UPLINKD);
	uplink_init(base, &uplinkd);
}

/* The pools are filled. */
static void
setup_full(void)
{
	setup();
	pool_go();
}

static void
turn(void)
{
	ck_assert_int_ne(event_base_loop(base, EVLOOP_NONBLOCK), -1);
}

/* So much later: the pool's timer is due, whenever it was set to. */
static void
later(uint64_t ms)
{
	clock_ms += ms;
	pool_stir(0);
}

/* uplinkd's answer to the last question of n. */
static void
up(struct net *n)
{
	struct msg	m;

	memset(&m, 0, sizeof(m));
	m.row = proto_find(MSG_UPLINK_STARTED);
	m.rid = n->uplink_rid;
	m.body.uplink_started.k = n->k;
	uplink_on(&m);
}

/* Does what the pool wants until it wants nothing; how many nets that made. */
static unsigned int
settle(void)
{
	unsigned int	n = 0;
	struct net	*e;

	for (;; n++) {
		later(1000);
		if (!has_next)
			return n;
		e = net_at(next.k);
		ck_assert_int_eq(write(maker, "", 1), 1);
		turn();
		if (e->kind != RULESET_EGRESS)
			continue;
		up(e);
	}
}

static void
press(void)
{
	ck_assert_int_eq(send(urgent, "!", 1, MSG_OOB), 1);
	turn();
}

/* A create, which is answered once. */
static struct net *
create(int slow)
{
	struct net	*n;

	answered = 0;
	pool_give(&privd, 1, "01K8ZZZZZZZZZZZZZZZZZZZZZ1", RULESET_EGRESS);
	ck_assert_int_eq(has_next, slow);
	n = slow ? net_at(next.k) : NULL;
	if (slow) {
		ck_assert_uint_eq(answered, 0);
		ck_assert_int_eq(write(maker, "", 1), 1);
		turn();
		up(n);
		ck_assert_int_eq(n->state, SEALED);
	}
	ck_assert_uint_eq(answered, 1);
	return n;
}

/* ---- tests ------------------------------------------------------------- */

START_TEST(drained)
{
	unsigned int	none;

	(void)create(1);
	ck_assert_uint_ge(settle(), POOL_SIZE);
	ck_assert_uint_eq(nets.pooled[RULESET_EGRESS], POOL_SIZE);
	none = nets.pooled[RULESET_NONE];
	ck_assert_uint_gt(none, 0);
	ck_assert_uint_eq(pressure_rest(), 0);
	press();
	ck_assert_uint_eq(nets.pooled[RULESET_EGRESS], 0);
	ck_assert_uint_eq(nets.pooled[RULESET_NONE], none);
	ck_assert_uint_eq(dropped, POOL_SIZE);
	ck_assert_uint_eq(pressure_rest(), REST_MS);
}
END_TEST

/* A create has what it wants, if slowly, and nothing is put by. */
START_TEST(slow_path)
{
	(void)create(1);
	(void)settle();
	press();
	(void)create(1);
	ck_assert_uint_eq(settle(), 0);
	ck_assert_uint_eq(nets.pooled[RULESET_EGRESS], 0);
}
END_TEST

/* Each word renews it; the pool is full again when it is over. */
START_TEST(comes_back)
{
	int	i;

	(void)create(1);
	(void)settle();
	for (i = 0; i < 3; i++) {
		press();
		ck_assert_uint_eq(pressure_rest(), REST_MS);
		later(REST_MS - 2000);
		ck_assert_uint_eq(settle(), 0);
	}
	ck_assert_uint_eq(dropped, POOL_SIZE);
	later(2000);
	ck_assert_uint_eq(settle(), POOL_SIZE);
	ck_assert_uint_eq(nets.pooled[RULESET_EGRESS], POOL_SIZE);
	(void)create(0);
}
END_TEST

/* The pool's own timer leads there, not only what happens by chance. */
START_TEST(by_itself)
{
	(void)create(1);
	(void)settle();
	clock_ms += 60000;
	/* so that it is set for less than a real second from here */
	press();
	clock_ms += REST_MS - 100;
	pool_stir(0);
	clock_ms += 200;
	ck_assert(!has_next);
	ck_assert_int_ne(event_base_loop(base, EVLOOP_ONCE), -1);
	ck_assert(has_next);
}
END_TEST

/* What was being prepared when memory ran short is not kept. */
START_TEST(on_its_way)
{
	struct net	*n;

	(void)create(1);
	while (later(1000), !has_next || net_at(next.k)->kind !=
	    RULESET_EGRESS) {
		ck_assert(has_next);
		ck_assert_int_eq(write(maker, "", 1), 1);
		turn();
	}
	n = net_at(next.k);
	ck_assert_int_eq(write(maker, "", 1), 1);
	turn();
	ck_assert_int_eq(n->uplink, UPLINK_ASKED);
	press();
	ck_assert_uint_eq(dropped, 0);
	up(n);
	ck_assert_uint_eq(dropped, 1);
	ck_assert_uint_eq(nets.pooled[RULESET_EGRESS], 0);
}
END_TEST

/* ---- an uplinkd that does not answer ----------------------------------- */

#define LATE_MS		10000
#define MOST_MS		20000
#define MANY		100

/* Asked for; the maker has answered. */
static struct net *
want(void)
{
	struct net	*n;

	answered = 0;
	pool_give(&privd, 1, "01K8ZZZZZZZZZZZZZZZZZZZZZ1", RULESET_EGRESS);
	ck_assert(has_next);
	n = net_at(next.k);
	ck_assert_int_eq(write(maker, "", 1), 1);
	turn();
	return n;
}

/* So much later, and netd has looked for what is late: by the real clock. */
static void
looked(uint64_t ms)
{
	struct timeval	tv = { 1, 200000 };

	clock_ms += ms;
	ck_assert_int_eq(event_base_loopexit(base, &tv), 0);
	ck_assert_int_ne(event_base_dispatch(base), -1);
}

static struct net *
box(enum change_at at)
{
	static struct change	c[2];
	struct net		*n = net_new(0, RULESET_EGRESS);

	net_own(n, "", OPEN);
	uplink_start(n, 0);
	c[at == CHANGE_ENDS].at = at;
	n->change = &c[at == CHANGE_ENDS];
	if (at == CHANGE_ENDS)
		(void)uplink_end(n);
	return n;
}

START_TEST(mute)
{
	struct net	*n = want();

	(void)box(CHANGE_STARTS);
	(void)box(CHANGE_ENDS);
	ck_assert_int_eq(n->uplink, UPLINK_ASKED);
	looked(LATE_MS - 1);
	ck_assert_uint_eq(answered, 0);
	ck_assert_uint_eq(changed, 0);
	looked(1);
	ck_assert_uint_eq(answered, 1);
	ck_assert_uint_eq(dropped, 1);
	ck_assert_uint_eq(changed, 2);
}
END_TEST

/* Its turn may be long in coming, but not for ever. */
START_TEST(others_have_their_turn)
{
	struct net	*n, *o = box(CHANGE_HELD);
	int		 i;

	(void)want();
	for (i = 0; i < 2; i++) {
		clock_ms += LATE_MS - 1000;
		up(o);
		n = o;
		(void)uplink_end(n);
		uplink_start(n, 0);
		looked(0);
		ck_assert_uint_eq(answered, 0);
	}
	clock_ms += MOST_MS - 2 * (LATE_MS - 1000) - 1;
	up(o);
	looked(0);
	ck_assert_uint_eq(answered, 0);
	looked(1);
	ck_assert_uint_eq(answered, 1);
}
END_TEST

static unsigned int
packets(int fd)
{
	char		b[256];
	unsigned int	n = 0;

	while (recv(fd, b, sizeof(b), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

/* It is not sent more and more; when it answers all is as before. */
START_TEST(not_flooded)
{
	struct net	*n;
	unsigned int	 i;

	for (i = 0; i < MANY; i++) {
		(void)want();
		ck_assert_uint_eq(answered, 0);
	}
	ck_assert_uint_eq(packets(to_uplinkd), MANY);
	looked(LATE_MS);
	ck_assert_uint_eq(answered, MANY);
	ck_assert_uint_eq(packets(to_uplinkd), MANY);
	for (i = 0; i < 10; i++) {
		(void)want();
		ck_assert_uint_eq(answered, 1);
	}
	ck_assert_uint_eq(packets(to_uplinkd), 0);
	/* what is adopted is asked for */
	n = net_new(0, RULESET_EGRESS);
	net_own(n, "", OPEN);
	uplink_start(n, 1);
	ck_assert_int_eq(n->uplink, UPLINK_ASKED);
	ck_assert_uint_eq(packets(to_uplinkd), 1);
	up(n);
	ck_assert_int_eq(n->uplink, UPLINK_UP);
	n = want();
	ck_assert_uint_eq(answered, 0);
	up(n);
	ck_assert_uint_eq(answered, 1);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("pool");
	TCase	*t = tcase_create("pressure");
	SRunner	*r;
	int	 failed;

	tcase_add_checked_fixture(t, setup_full, NULL);
	tcase_add_test(t, drained);
	tcase_add_test(t, slow_path);
	tcase_add_test(t, comes_back);
	tcase_add_test(t, by_itself);
	tcase_add_test(t, on_its_way);
	suite_add_tcase(s, t);
	t = tcase_create("uplinkd");
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, mute);
	tcase_add_test(t, others_have_their_turn);
	tcase_add_test(t, not_flooded);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
