/*
 * again_test: when a request is made again, and for how long, by requests
 * that end as is written here.
 */
#include <stdlib.h>
#include <string.h>

/* Before check.h, which has a macro fail. */
#include "../../workbox/workbox.h"

#include <check.h>
#include <curl/curl.h>

/* ---- in the place of client.c and text.c --------------------------------- */

struct req {
	long	status;		/* 0: none */
	int	ok, retry, unsent;
};

long		req_status(const struct req *r) { return r->status; }
int		req_ok(const struct req *r) { return r->ok; }
int		req_retry(const struct req *r) { return r->retry; }
int		req_unsent(const struct req *r) { return r->unsent; }
int		req_done(const struct req *r) { return r != NULL; }
int		req_fail(const struct req *r) { return r->ok; }
json_t		*req_answer(const struct req *r) { (void)r; return NULL; }
void		req_start(struct req *r) { (void)r; }
void		req_free(struct req *r) { (void)r; }
void		req_key(struct req *r, const char *key) { (void)r, (void)key; }
void		req_json(struct req *r, json_t *j) { (void)r; json_decref(j); }
void		key_new(char ret[33]) { *ret = '\0'; }
const char	*client_server(void) { return "it"; }
int		(fail)(const char *fmt, ...) { return *fmt != '\0'; }

static int	noted;

void
note(const char *fmt, ...)
{
	(void)fmt;
	noted++;
}

struct req *
req_new(const char *method, const char *path)
{
	static struct req	none;

	(void)method, (void)path;
	return &none;
}

void
multi_step(struct curl_waitfd *fds, unsigned int n, int ms)
{
	(void)fds, (void)n, (void)ms;
}

static const struct req	cut = { 200, 0, 1, 0 }, ended = { 200, 1, 0, 0 };
static const struct req	away = { 0, 0, 1, 1 }, wrong = { 404, 0, 0, 0 };
static const struct req	untrusted = { 0, 0, 0, 0 };

/* ---- how long ------------------------------------------------------------ */

START_TEST(delays)
{
	static const int	want[] = { 100, 200, 400, 800, 1600, 2000 };
	struct again		a = { .begun = again_now() };
	int			i;

	for (i = 0; i < 40; i++)
		ck_assert_int_eq(again_delay(&a, i % 2 ? &cut : &ended),
		    want[i < 5 ? i : 5]);
	ck_assert_int_eq(again_delay(&a, &cut), -1);
}
END_TEST

/* A stream of which nothing comes holds, and is cut, for as long as it is. */
START_TEST(steady)
{
	struct again	a = { .begun = again_now() };
	int		i;

	for (i = 0; i < 200; i++) {
		a.begun = again_now() - 10000;
		ck_assert_int_eq(again_delay(&a, &cut), 100);
		again_back(&a);
	}
	/* but a connection that is not made is none, however long it takes */
	a.begun = again_now() - 10000;
	ck_assert_int_eq(again_delay(&a, &away), 200);
}
END_TEST

START_TEST(too_long)
{
	struct again	a = { .met = 1, .begun = again_now() };

	ck_assert_int_eq(again_delay(&a, &away), 100);
	a.since -= 59000;
	ck_assert_int_eq(again_delay(&a, &away), 200);
	a.since -= 1000;
	ck_assert_int_eq(again_delay(&a, &away), -1);
	/* it was back meanwhile */
	a.since = 0;
	ck_assert_int_eq(again_delay(&a, &cut), 800);
}
END_TEST

START_TEST(for_nothing)
{
	struct again	a = { .begun = again_now() };

	ck_assert_int_eq(again_delay(&a, &away), -1);
	ck_assert_int_eq(again_delay(&a, &untrusted), -1);
	ck_assert_int_eq(again_delay(&a, &wrong), -1);
	a.failed = 0;
	ck_assert_int_eq(again_delay(&a, &cut), 100);
	/* it was there by then */
	ck_assert_int_eq(again_delay(&a, &away), 200);
	a.sig = 2;
	ck_assert_int_eq(again_delay(&a, &cut), -1);
	a.sig = 0;
	a.deadline = again_now();
	ck_assert_int_eq(again_delay(&a, &cut), -1);
}
END_TEST

START_TEST(told_once)
{
	struct again	a = { .met = 1, .begun = again_now() };

	noted = 0;
	ck_assert_int_gt(again_delay(&a, &away), 0);
	ck_assert_int_eq(again_ms(&a, 100), 100);
	ck_assert_int_eq(noted, 0);
	a.since -= 3000;
	(void)again_ms(&a, 100);
	(void)again_ms(&a, 100);
	ck_assert_int_eq(noted, 1);
	again_back(&a);
	ck_assert_int_eq(noted, 2);
	again_back(&a);
	ck_assert_int_eq(noted, 2);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("again");
	TCase	*t = tcase_create("again");
	SRunner	*sr;
	int	 failed;

	tcase_add_test(t, delays);
	tcase_add_test(t, steady);
	tcase_add_test(t, too_long);
	tcase_add_test(t, for_nothing);
	tcase_add_test(t, told_once);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
