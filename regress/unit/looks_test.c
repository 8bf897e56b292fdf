/*
 * looks_test.c: lookups of one box; the test is resolve.c.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd.h"
#include "xmalloc.h"

#define MOST	16

struct lookup {
	void	(*cb)(void *, const struct resolved *);
	void	 *arg;
	char	 name[ALLOW_NAME];
	int	 any;
};

static struct lookup	*asked[64];	/* in order; NULL: answered */
static unsigned int	 nasked, ncancelled, ntold;
static struct looks	*looks;

static struct lookup *
asks(const char *name, int any, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	struct lookup	*l = xcalloc(1, sizeof(*l));

	ck_assert_uint_lt(nasked, 64);
	l->cb = cb;
	l->arg = arg;
	l->any = any;
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	return asked[nasked++] = l;
}

struct lookup *
resolve(const char *name, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	return asks(name, 0, cb, arg);
}

struct lookup *
resolve_any(const char *name, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	return asks(name, 1, cb, arg);
}

void
resolve_cancel(struct lookup *l)
{
	ncancelled++;
	free(l);
}

static void
answer(unsigned int i)
{
	const struct resolved	 r = { .n = 1 };
	struct lookup		*l = asked[i];

	asked[i] = NULL;
	l->cb(l->arg, &r);
	free(l);
}

static void
on_told(void *arg, const struct resolved *r)
{
	ck_assert_int_eq(r->n, 1);
	ntold++;
	*(int *)arg += 1;
}

static struct look *
ask(unsigned int i, int *told)
{
	char	name[32];

	(void)snprintf(name, sizeof(name), "h%u.example", i);
	return look_up(looks, name, 0, on_told, told);
}

static void
setup(void)
{
	looks = looks_new();
}

/* ---- tests --------------------------------------------------------------- */

/* Those for one name are one, until it is answered; each is told once. */
START_TEST(one_name)
{
	int	a = 0, b = 0, c = 0;

	(void)ask(1, &a);
	(void)ask(1, &b);
	ck_assert_uint_eq(nasked, 1);
	ck_assert_uint_eq(ntold, 0);
	answer(0);
	ck_assert_int_eq(a, 1);
	ck_assert_int_eq(b, 1);
	(void)ask(1, &c);
	ck_assert_uint_eq(nasked, 2);
	ck_assert_int_eq(c, 0);
	answer(1);
	ck_assert_int_eq(c, 1);
	ck_assert_int_eq(a, 1);
	looks_free(looks);
}
END_TEST

/* A proxy of the same name is held against nothing, a host is. */
START_TEST(kinds)
{
	int	a = 0;

	(void)ask(1, &a);
	(void)look_up(looks, "h1.example", 1, on_told, &a);
	ck_assert_uint_eq(nasked, 2);
	ck_assert_int_eq(asked[0]->any, 0);
	ck_assert_int_eq(asked[1]->any, 1);
	answer(1);
	ck_assert_int_eq(a, 1);
	answer(0);
	ck_assert_int_eq(a, 2);
	looks_free(looks);
}
END_TEST

/* Others wait, in order, also those that join who waits. */
START_TEST(many)
{
	int		told[MOST + 4] = { 0 }, again = 0;
	unsigned int	i;

	for (i = 0; i < MOST + 4; i++)
		(void)ask(i, &told[i]);
	(void)ask(MOST, &again);
	ck_assert_uint_eq(nasked, MOST);
	for (i = 0; i < MOST + 4; i++) {
		ck_assert_uint_eq(nasked, i + MOST < MOST + 4 ? i + MOST :
		    MOST + 4);
		answer(i);
		ck_assert_int_eq(told[i], 1);
	}
	ck_assert_int_eq(again, 1);
	looks_free(looks);
}
END_TEST

/* Who waits and goes is never asked for; what is under way is no more room. */
START_TEST(cancel)
{
	struct look	*l[MOST + 2];
	int		 told = 0;
	unsigned int	 i;

	for (i = 0; i < MOST + 2; i++)
		l[i] = ask(i, &told);
	look_cancel(l[MOST]);
	look_cancel(l[0]);
	ck_assert_uint_eq(nasked, MOST);
	ck_assert_uint_eq(ncancelled, 0);
	answer(0);
	ck_assert_int_eq(told, 0);
	ck_assert_uint_eq(nasked, MOST + 1);
	ck_assert_str_eq(asked[MOST]->name, "h17.example");
	for (i = 1; i < MOST; i++)
		look_cancel(l[i]);
	look_cancel(l[MOST + 1]);
	looks_free(looks);
	ck_assert_uint_eq(ncancelled, MOST);
	ck_assert_int_eq(told, 0);
}
END_TEST

static struct look	*other;

static void
on_first(void *arg, const struct resolved *r)
{
	(void)r;
	look_cancel(other);
	(void)ask(1, arg);
}

/* Within a call another of the same answer goes, and one for it comes. */
START_TEST(within)
{
	int	told = 0, never = 0;

	(void)look_up(looks, "h1.example", 0, on_first, &told);
	other = ask(1, &never);
	answer(0);
	ck_assert_int_eq(told, 0);
	ck_assert_uint_eq(nasked, 2);
	answer(1);
	ck_assert_int_eq(told, 1);
	ck_assert_int_eq(never, 0);
	looks_free(looks);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("looks");
	TCase	*t = tcase_create("looks");
	SRunner	*r;
	int	 failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, one_name);
	tcase_add_test(t, kinds);
	tcase_add_test(t, many);
	tcase_add_test(t, cancel);
	tcase_add_test(t, within);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
