/*
 * proxy_names_test.c: the names of a box that have addresses: held against a
 * slow model of what proxyd.h says, and what an idle box costs.
 */
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxyd/proxyd.h"

static struct names	*s;

static void
setup(void)
{
	s = names_new();
}

static void
teardown(void)
{
	names_free(s);
}

static const char *
nth(unsigned int i)
{
	static char	name[32];

	(void)snprintf(name, sizeof(name), "n%u.example", i);
	return name;
}

START_TEST(simple)
{
	struct named	*a, *b;

	ck_assert_ptr_null(names_find(s, "a"));
	ck_assert_ptr_null(names_next(s, ""));
	ck_assert_ptr_null(names_give(s, "a"));	/* no number */
	ck_assert_uint_eq(names_left(s), 0);
	names_room(s, 7, 2);
	ck_assert_uint_eq(names_left(s), 2);
	ck_assert_ptr_nonnull(a = names_give(s, "b.example"));
	ck_assert_ptr_nonnull(b = names_give(s, "a.example"));
	ck_assert_uint_eq(a->number, 7);
	ck_assert_uint_eq(named_addr(a), 0xc6120007);
	ck_assert_uint_eq(b->number, 8);
	ck_assert_uint_eq(names_left(s), 0);
	ck_assert_ptr_null(names_give(s, "c.example"));
	ck_assert_ptr_eq(names_give(s, "b.example"), a);
	ck_assert_ptr_eq(names_find(s, "a.example"), b);
	ck_assert_ptr_null(names_find(s, "a.exampl"));
	ck_assert_ptr_eq(names_at(s, 0xc6120008), b);
	ck_assert_ptr_eq(names_next(s, ""), b);
	ck_assert_ptr_eq(names_next(s, "a.example"), a);
	ck_assert_ptr_eq(names_next(s, "a.examplf"), a);
	ck_assert_ptr_null(names_next(s, "b.example"));
}
END_TEST

/* Of the net and beside it. */
START_TEST(addresses)
{
	struct named	*d;

	names_room(s, 1, NAMES_LAST);
	ck_assert_ptr_nonnull(d = names_give(s, "a"));
	ck_assert_uint_eq(named_addr(d), 0xc6120001);
	ck_assert_ptr_eq(names_at(s, 0xc6120001), d);
	ck_assert_ptr_null(names_at(s, 0xc6120000));
	ck_assert_ptr_null(names_at(s, 0xc6120002));
	ck_assert_ptr_null(names_at(s, 0xc6130001));
	ck_assert_ptr_null(names_at(s, 0xc6110001));
	ck_assert_ptr_null(names_at(s, 1));
	ck_assert_ptr_null(names_at(s, 0xffffffff));
}
END_TEST

/* What stored never says: zero, beyond the last, again, backwards. */
START_TEST(numbers)
{
	names_room(s, 0, 0);
	ck_assert_uint_eq(names_left(s), 0);
	names_room(s, 0, 3);			/* 1, 2 */
	ck_assert_uint_eq(names_left(s), 2);
	names_room(s, 1, 2);
	ck_assert_uint_eq(names_left(s), 2);
	names_room(s, 1, 4);			/* 3, 4 */
	ck_assert_uint_eq(names_left(s), 4);
	names_room(s, NAMES_LAST + 1, 5);
	ck_assert_uint_eq(names_left(s), 4);
	names_room(s, 4294967295U, 4294967295U);
	ck_assert_uint_eq(names_left(s), 4);
	names_room(s, NAMES_LAST - 1, 4294967295U); /* 65534, 65535 */
	ck_assert_uint_eq(names_left(s), 6);
	names_room(s, 100, 5);
	ck_assert_uint_eq(names_left(s), 6);
	ck_assert_uint_eq(names_give(s, "a")->number, 1);
	ck_assert_uint_eq(names_give(s, "b")->number, 2);
	ck_assert_uint_eq(names_give(s, "c")->number, 3);
	ck_assert_uint_eq(names_give(s, "d")->number, 4);
	ck_assert_uint_eq(names_give(s, "e")->number, 65534);
	ck_assert_uint_eq(names_give(s, "f")->number, 65535);
	ck_assert_ptr_null(names_give(s, "g"));
}
END_TEST

/* All numbers there are, by names that are never asked for again. */
START_TEST(all_numbers)
{
	unsigned int	 i, live = 0;
	struct named	*d;
	const char	*name = "";

	names_room(s, 1, NAMES_LAST);
	for (i = 1; i <= NAMES_LAST; i++) {
		d = names_give(s, nth(i));
		ck_assert_ptr_nonnull(d);
		ck_assert_uint_eq(d->number, i);
		ck_assert_uint_eq(names_left(s), NAMES_LAST - i);
	}
	ck_assert_ptr_null(names_give(s, "another"));
	ck_assert_ptr_null(names_give(s, nth(1)));
	for (i = 1; i <= NAMES_LAST; i++)
		ck_assert_int_eq(names_at(s, NAMES_NET | i) != NULL,
		    i > NAMES_LAST - NAMES_LIVE);
	while ((d = names_next(s, name)) != NULL) {
		ck_assert_int_gt(strcmp(d->name, name), 0);
		name = d->name;
		live++;
	}
	ck_assert_uint_eq(live, NAMES_LIVE);
}
END_TEST

/* The least recently used goes, unless it has connections. */
START_TEST(forgotten)
{
	unsigned int	i;

	names_room(s, 1, NAMES_LAST);
	for (i = 1; i <= NAMES_LIVE; i++)
		ck_assert_ptr_nonnull(names_give(s, nth(i)));
	ck_assert_ptr_nonnull(names_find(s, nth(1)));
	ck_assert_ptr_nonnull(names_at(s, NAMES_NET | 2));
	ck_assert_ptr_nonnull(names_give(s, nth(3)));
	names_next(s, "")->open = 0;		/* a look is no use */
	names_at(s, NAMES_NET | 4)->open = 1;
	for (i = 5; i <= NAMES_LIVE; i++)
		ck_assert_ptr_nonnull(names_find(s, nth(i)));
	/* 1, 2, 3, 4, 5 ... */
	ck_assert_uint_eq(names_give(s, "x1")->number, NAMES_LIVE + 1);
	ck_assert_ptr_null(names_at(s, NAMES_NET | 1));
	ck_assert_uint_eq(names_give(s, "x2")->number, NAMES_LIVE + 2);
	ck_assert_ptr_null(names_at(s, NAMES_NET | 2));
	ck_assert_uint_eq(names_give(s, "x3")->number, NAMES_LIVE + 3);
	ck_assert_ptr_null(names_at(s, NAMES_NET | 3));
	ck_assert_uint_eq(names_give(s, "x4")->number, NAMES_LIVE + 4);
	ck_assert_ptr_nonnull(names_at(s, NAMES_NET | 4));
	ck_assert_ptr_null(names_at(s, NAMES_NET | 5));
	/* what comes back has another number */
	ck_assert_uint_eq(names_give(s, nth(1))->number, NAMES_LIVE + 5);
}
END_TEST

START_TEST(all_busy)
{
	unsigned int	i, left;

	names_room(s, 1, NAMES_LAST);
	for (i = 1; i <= NAMES_LIVE; i++)
		names_give(s, nth(i))->open = 1;
	left = names_left(s);
	ck_assert_ptr_null(names_give(s, "more"));
	ck_assert_uint_eq(names_left(s), left);	/* none was lost for it */
	ck_assert_ptr_nonnull(names_find(s, nth(77)));
	names_at(s, NAMES_NET | 77)->open = 0;
	ck_assert_ptr_nonnull(names_give(s, "more"));
	ck_assert_ptr_null(names_find(s, nth(77)));
}
END_TEST

/* ---- a model ----------------------------------------------------------- */

#define NMODEL	6000

static struct { unsigned int number, at, open; } model[NMODEL];
static unsigned int	nlive, now, next_number;

static unsigned int
oldest(void)
{
	unsigned int	i, r = NMODEL;

	for (i = 0; i < NMODEL; i++)
		if (model[i].number != 0 && model[i].open == 0 &&
		    (r == NMODEL || model[i].at < model[r].at))
			r = i;
	return r;
}

static void
model_give(unsigned int i)
{
	unsigned int	 o;
	struct named	*d;

	if (model[i].number == 0) {
		if (nlive == NAMES_LIVE) {
			o = oldest();
			ck_assert_uint_lt(o, NMODEL);
			model[o].number = 0;
			nlive--;
		}
		model[i].number = next_number++;
		nlive++;
	}
	model[i].at = ++now;
	ck_assert_ptr_nonnull(d = names_give(s, nth(i)));
	ck_assert_uint_eq(d->number, model[i].number);
	ck_assert_str_eq(d->name, nth(i));
	ck_assert_uint_eq(d->open, model[i].open);
}

static void
model_look(unsigned int i, int by_number)
{
	struct named	*d;

	if (by_number && model[i].number == 0)
		return;
	d = by_number ? names_at(s, NAMES_NET | model[i].number) :
	    names_find(s, nth(i));
	ck_assert_int_eq(d != NULL, model[i].number != 0);
	if (d == NULL)
		return;
	ck_assert_str_eq(d->name, nth(i));
	model[i].at = ++now;
	if (now % 5 == 0)
		d->open = model[i].open = now % 3 == 0;
}

START_TEST(as_the_model)
{
	unsigned int	i, k;

	srandom(6);
	names_room(s, 1, NAMES_LAST);
	next_number = 1;
	for (k = 0; k < 30000; k++) {
		i = (unsigned int)random() % NMODEL;
		if (random() % 2 == 0 && next_number < NAMES_LAST)
			model_give(i);
		else
			model_look(i, random() % 2 == 0);
	}
	ck_assert_uint_eq(nlive, NAMES_LIVE);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__		/* its memory is not malloc(3)'s */
/* A box that asks for nothing, and one that asks for all it may. */
START_TEST(memory)
{
	size_t		 before, idle;
	unsigned int	 i;

	before = mallinfo2().uordblks;
	names_free(s);
	s = names_new();
	names_room(s, 1, NAMES_LAST);
	idle = mallinfo2().uordblks;
	ck_assert_uint_lt(idle, before + 512);
	for (i = 0; i < NAMES_LIVE; i++)
		ck_assert_ptr_nonnull(names_give(s, nth(i)));
	ck_assert_uint_lt(mallinfo2().uordblks - idle, NAMES_LIVE * 128);
}
END_TEST
#endif

int
main(void)
{
	Suite	*u = suite_create("proxy_names");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, simple);
	tcase_add_test(t, addresses);
	tcase_add_test(t, numbers);
	tcase_add_test(t, all_numbers);
	tcase_add_test(t, forgotten);
	tcase_add_test(t, all_busy);
	tcase_add_test(t, as_the_model);
#ifndef __SANITIZE_ADDRESS__
	tcase_add_test(t, memory);
#endif
	suite_add_tcase(u, t);
	r = srunner_create(u);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
