/*
 * egress_slow.c: the host's addresses, and the namespaces that are left, when
 * reading them takes long, fails, or is disturbed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "egress_rig.h"

/* ---- time ------------------------------------------------------------ */

#define SLOW_MS		600
#define LONG_MS		(5 * SLOW_MS)

static int
slow_once(unsigned int n, struct hosts *h)
{
	(void)h;
	return n == 0 ? poll(NULL, 0, SLOW_MS) : 0;
}

/* What reading took is waited for after it, and not hours later. */
START_TEST(rested)
{
	long	us;

	(void)live_box();
	(void)until("203.0.113.50", 0, "before");
	asked_anew(slow_once);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until_in("203.0.113.50", ECONNREFUSED, "read slowly", LONG_MS);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	us = until_in("203.0.113.50", 0, "at once after", LONG_MS);
	ck_assert_int_gt(us, SLOW_MS * 1000 / 2);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "and again");
	asked_anew(slow_once);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	(void)until_in("203.0.113.50", 0, "read slowly", LONG_MS);
	pump(SLOW_MS * 1500);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until_in("203.0.113.50", ECONNREFUSED, "after a rest",
	    SLOW_MS / 2);
}
END_TEST

/* ---- failure --------------------------------------------------------- */

static unsigned int	fails;
static int		fail_errno;

static int
failing(unsigned int n, struct hosts *h)
{
	(void)h;
	errno = fail_errno;
	return n < fails ? -1 : 0;
}

static void
fail_times(int e, unsigned int n)
{
	fail_errno = e;
	fails = n;
	asked_anew(failing);
}

/* Some failures are none, many are; what is too many is at once. */
START_TEST(failures)
{
	struct net	*n = live_box();
	long		 t0;

	fail_times(ENOMEM, 4);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "out of memory");
	ck_assert_int_eq(n->state, OPEN);
	fail_times(EBADMSG, 8);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	for (t0 = lab_us(); n->state == OPEN; pump(5000))
		ck_assert_int_lt(lab_us() - t0, 1000000);
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, all_dropped, NULL), 0);
	/* by itself, since there is no news */
	for (t0 = lab_us(); net_set(n, RULESET_EGRESS) != NULL; pump(50000))
		ck_assert_int_lt(lab_us() - t0, 8000000);
	net_move(n, OPEN);
	(void)until("203.0.113.50", 0, "after");
	fail_times(E2BIG, 1);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	for (t0 = lab_us(); n->state == OPEN; pump(5000))
		ck_assert_int_lt(lab_us() - t0, 1000000);
	/* now that it is tried again in a second, news is sooner */
	ck_assert_uint_eq(asked, 1);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	for (t0 = lab_us(); asked < 2; pump(5000))
		ck_assert_int_lt(lab_us() - t0, 500000);
	ck_assert_ptr_eq(net_set(n, RULESET_EGRESS), NULL);
}
END_TEST

/* ---- disturbed ------------------------------------------------------- */

static int	left_out;		/* whether it was */

/* As if a dump had missed it, for something else went meanwhile. */
static void
leave_out(struct hosts *h, const char *text)
{
	struct prefix	p;

	ck_assert_int_eq(prefix_parse(text, &p), 0);
	left_out = spans_hold(&h->v4, &p);
	spans_cut(&h->v4, &p);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.99/32", 0);
}

static int
seen_refused(void *to)
{
	return lab_tcp(to, LAB_PORT, NULL) == ECONNREFUSED ? 0 : 1;
}

static int
disturbed(unsigned int n, struct hosts *h)
{
	char	to[] = "203.0.113.50";

	if (n == 0)
		leave_out(h, to);
	/* nor is it open until the second look */
	ck_assert_int_eq(lab_in(&lab, LAB_BOX, seen_refused, to), 0);
	return 0;
}

START_TEST(missed_by_one)
{
	long	t0;

	(void)live_box();
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	(void)until("203.0.113.50", ECONNREFUSED, "before");
	asked_anew(disturbed);
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.60/32", 0);
	for (t0 = lab_us(); asked < 2; pump(1000))
		ck_assert_int_lt(lab_us() - t0, 1000000);
	ck_assert_int_eq(left_out, 1);
	ask_hook = NULL;
	(void)until("203.0.113.99", ECONNREFUSED, "what disturbed");
	ck_assert_int_eq(is_whole(), 1);
	/* and what goes is taken away in the end */
	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 1);
	(void)until("203.0.113.50", 0, "gone");
}
END_TEST

static int
from_the_first(unsigned int n, struct hosts *h)
{
	if (n == 0)
		leave_out(h, "203.0.113.50");
	return 0;
}

/* With nothing known before, such a dump is none. */
START_TEST(missed_at_first)
{
	struct net	*n;
	long		 t0;

	lab_addr(&lab, LAB_HOST, "net0", "203.0.113.50/32", 0);
	asked_anew(from_the_first);
	live();
	ck_assert_int_eq(left_out, 1);
	n = sealed_net(ID(1), fcntl(lab.netns[LAB_BOX], F_DUPFD_CLOEXEC, 0),
	    fcntl(lab.nft, F_DUPFD_CLOEXEC, 0));
	ck_assert_ptr_ne(net_set(n, RULESET_EGRESS), NULL);
	for (t0 = lab_us(); net_set(n, RULESET_EGRESS) != NULL; pump(1000))
		ck_assert_int_lt(lab_us() - t0, 1000000);
	net_move(n, OPEN);
	(void)until("203.0.113.50", ECONNREFUSED, "after");
}
END_TEST

/* ---- who is left ------------------------------------------------------- */

int	__real_link_deaths(int, void (*)(unsigned int));
int	__wrap_link_deaths(int, void (*)(unsigned int));
int	__real_link_alive(int, void (*)(unsigned int));
int	__wrap_link_alive(int, void (*)(unsigned int));

static unsigned int	deaf, unread;	/* how often each is to fail yet */

int
__wrap_link_deaths(int fd, void (*dead)(unsigned int))
{
	int	r = __real_link_deaths(fd, dead);

	if (r == -1 || deaf == 0)
		return r;
	deaf--;
	errno = ENOBUFS;
	return -1;
}

int
__wrap_link_alive(int fd, void (*alive)(unsigned int))
{
	if (unread == 0)
		return __real_link_alive(fd, alive);
	unread--;
	errno = EINTR;
	return -1;
}

/* Announcements were lost, and the list was disturbed: it is read again. */
START_TEST(uncounted)
{
	struct net	*n = live_box();
	unsigned int	 k = n->k;
	long		 t0;

	n->named = 1;		/* or so it seems: its end was missed */
	net_drop(n);
	ck_assert_ptr_ne(net_at(k), NULL);
	deaf = 1;
	unread = 2;
	/* an announcement, which is lost */
	ck_assert_int_eq(link_name(nets.home, NET_KMAX,
	    lab.netns[LAB_INET]), 0);
	for (t0 = lab_us(); unread == 2; pump(1000))
		ck_assert_int_lt(lab_us() - t0, 1000000);
	ck_assert_ptr_ne(net_at(k), NULL);
	for (; net_at(k) != NULL; pump(10000))
		ck_assert_int_lt(lab_us() - t0, 5000000);
	ck_assert_uint_eq(unread, 0);
}
END_TEST

TCase *
slow_tests(void)
{
	TCase	*t = tcase_create("slow");

	tcase_add_checked_fixture(t, rig_setup, rig_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, rested);
	tcase_add_test(t, failures);
	tcase_add_test(t, missed_by_one);
	tcase_add_test(t, missed_at_first);
	tcase_add_test(t, uncounted);
	return t;
}
