/*
 * apid_network.c: the network of a live box changed, as apid records it and
 * has netd do it; and what becomes of what cannot be done.
 */
#include <sys/wait.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_client.h"
#include "xmalloc.h"

static struct world	w;

static int
on(const char *method, const char *name, const char *rest, const char *body,
    char **ret_body)
{
	return world_on(&w, method, name, rest, body, ret_body);
}

static int
to(const char *name, const char *network, char **ret_body)
{
	char	body[64];

	(void)snprintf(body, sizeof(body), "{\"network\":\"%s\"}", network);
	return on("PUT", name, "/network", body, ret_body);
}

/* Until it is told of the box. */
static void
await(const char *name, const char *what)
{
	world_await(&w, name, "", what);
}

static void
setup(void)
{
	static const char *const	egress[] = { "good-e", "nochange-e",
					    "drifts-e", "last-word-e",
					    "good-s" };
	static const char *const	none[] = { "good-n", "nochange-n",
					    "short-network-n", "stayed-n",
					    "goes-n", "short-back-n",
					    "close-run-n" };
	size_t				i;

	world_make(&w);
	for (i = 0; i < sizeof(egress) / sizeof(egress[0]); i++) {
		world_row(&w, egress[i], strcmp(egress[i], "good-s") == 0 ?
		    BOX_STOPPED : BOX_READY, 2);
		world_row_network(&w, NETWORK_EGRESS);
	}
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		world_row(&w, none[i], BOX_READY, 2);
	world_start(&w);
	await("good-e", "\"state\":\"READY\"");
}

static void
teardown(void)
{
	ck_assert_msg(w.s->faults == 0, "apid: %s", w.s->fault);
	world_end(&w);
}

/* The fake netd faults where no row came before. */
START_TEST(there_and_back)
{
	auto_free char	*body = NULL, *back = NULL;

	ck_assert_int_eq(to("good-n", "egress", &body), 200);
	ck_has(body, "\"network\":\"egress\"");
	ck_assert_uint_eq(world_box(&w, "good-n")->network, NETWORK_EGRESS);
	ck_assert_int_eq(to("good-n", "none", &back), 200);
	ck_has(back, "\"network\":\"none\"");
	ck_has(back, "\"traffic\":null");
	ck_assert_uint_eq(world_box(&w, "good-n")->network, NETWORK_NONE);
	ck_assert_uint_eq(world_box(&w, "good-n")->networks, 2);
	ck_assert_str_eq(world_box(&w, "good-n")->network_why, "");
}
END_TEST

/* What it is already is nothing new. */
START_TEST(the_same)
{
	ck_assert_int_eq(to("good-e", "egress", NULL), 200);
	ck_assert_uint_eq(world_box(&w, "good-e")->networks, 0);
}
END_TEST

START_TEST(refused)
{
	auto_free char	*body = NULL, *state = NULL, *odd = NULL;

	ck_assert_int_eq(to("good-e", "vpn", &body), 422);
	ck_has(body, "\"field\":\"network\"");
	ck_has(body, "network-unsupported");
	ck_assert_int_eq(on("PUT", "good-e", "/network", "{}", &odd), 400);
	ck_has(odd, "\"field\":\"network\"");
	ck_assert_int_eq(to("good-s", "none", &state), 409);
	ck_has(state, "not-ready");
	ck_assert_int_eq(to("nobody", "none", NULL), 404);
	ck_assert_uint_eq(world_box(&w, "good-e")->networks, 0);
}
END_TEST

/* One that cannot be opened goes back, on the record as well. */
START_TEST(not_opened)
{
	auto_free char	*body = NULL;

	ck_assert_int_eq(to("nochange-n", "egress", &body), 500);
	ck_has(body, "cannot");
	ck_assert_uint_eq(world_box(&w, "nochange-n")->networks, 2);
	ck_assert_str_eq(world_box(&w, "nochange-n")->network_why, "cannot");
	await("nochange-n", "\"network\":\"none\"");
}
END_TEST

/* One that cannot be closed is never told as open again. */
START_TEST(not_closed)
{
	ck_assert_int_eq(to("nochange-e", "none", NULL), 500);
	ck_assert_uint_eq(world_box(&w, "nochange-e")->networks, 1);
	await("nochange-e", "\"healthReason\":\"network\"");
	await("nochange-e", "\"network\":\"none\"");
	/* who asks again is not told that it is so: netd says */
	ck_assert_int_eq(to("nochange-e", "none", NULL), 500);
	ck_assert_uint_eq(world_box(&w, "nochange-e")->networks, 1);
}
END_TEST

/* Nor does what was told as failed come true by itself. */
START_TEST(not_taken_back)
{
	struct world_box	*b = world_box(&w, "short-back-n");

	ck_assert_int_eq(to("short-back-n", "egress", NULL), 500);
	ck_assert_uint_eq(b->networks, 1);
	await("short-back-n", "\"network\":\"none\"");
	ck_assert_int_eq(world_http(&w, "POST", "/v1/reconcile", NULL, NULL),
	    200);
	ck_until(b->looks >= 2);
	ck_assert_uint_eq(b->network, NETWORK_NONE);
}
END_TEST

/* Privd knows the network of the opening: it is not held against the box. */
START_TEST(attached_again)
{
	struct world_box	*b = world_box(&w, "close-run-n");
	int			 attached = b->attached;

	ck_assert_int_eq(to("close-run-n", "egress", NULL), 200);
	(void)on("POST", "close-run-n", "/exec", "{\"argv\":[\"x\"]}", NULL);
	ck_until(b->attached > attached);
	await("close-run-n", "\"health\":\"HEALTHY\"");
	ck_assert_int_eq(world_http(&w, "POST", "/v1/reconcile", NULL, NULL),
	    200);
	ck_assert_uint_eq(b->changes, 1);
	await("close-run-n", "\"health\":\"HEALTHY\",\"healthReason\":null");
}
END_TEST

/* Nothing is opened of which there is no record. */
START_TEST(not_recorded)
{
	auto_free char	*body = NULL;

	ck_assert_int_eq(to("short-network-n", "egress", &body), 507);
	ck_has(body, "disk-full");
	ck_assert_uint_eq(world_box(&w, "short-network-n")->network,
	    NETWORK_NONE);
	await("short-network-n", "\"network\":\"none\"");
}
END_TEST

/* netd has another kind than the row: it is asked for this one, once. */
START_TEST(drifted)
{
	ck_until(world_box(&w, "drifts-e")->amended != 0);
	await("drifts-e", "\"health\":\"HEALTHY\"");
	ck_assert_uint_eq(world_box(&w, "drifts-e")->amended, 1);
	ck_assert_uint_eq(world_box(&w, "drifts-e")->networks, 0);
}
END_TEST

/* Who asks is told what became of the box, not of the network. */
START_TEST(removed_meanwhile)
{
	struct world_box	*b = world_box(&w, "goes-n");
	auto_free char		*body = NULL;
	pid_t			 pid = fork();
	int			 st;

	if (pid == 0)
		_exit(to("goes-n", "egress", &body) != 409 ? 1 :
		    strstr(body, "\"not-ready\"") == NULL ? 2 :
		    strstr(body, "The sandbox is being removed.") == NULL);
	ck_assert_int_gt(pid, 0);
	ck_until(b->change_rid != 0);
	ck_assert_int_eq(on("DELETE", "goes-n", "", NULL, NULL), 200);
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
}
END_TEST

/*
 * The row says none, and the box was attached as egress: it is asked for at
 * once, before any look at it, and the box is not told as whole until it is
 * none.
 */
START_TEST(stayed)
{
	struct world_box	*b = world_box(&w, "stayed-n");
	auto_free char		*body = NULL;

	await("stayed-n", "\"healthReason\":\"network\"");
	ck_until(b->change_rid != 0);
	ck_assert_uint_eq(b->early, 0);
	/* a look that is over */
	ck_assert_int_eq(world_http(&w, "POST", "/v1/reconcile", NULL, NULL),
	    200);
	ck_assert_uint_ne(b->looks, 0);
	ck_assert_int_eq(on("GET", "stayed-n", "", NULL, &body), 200);
	ck_has(body, "\"health\":\"SUSPECT\",\"healthReason\":\"network\"");
	w.s->let_go = 1;
	await("stayed-n", "\"health\":\"HEALTHY\"");
	ck_assert_uint_eq(b->amended, 1);
	ck_assert_uint_eq(b->network, NETWORK_NONE);
	ck_assert_uint_eq(b->networks, 0);
}
END_TEST

/* Another's request is being handled beside the one that asks for that. */
static int
two_asked(void)
{
	auto_free char	*body = NULL;

	return world_http(&w, "GET", "/metrics", NULL, &body) == 200 &&
	    strstr(body, "\nworkbox_http_requests 2\n") != NULL;
}

/* Who changes a network while apid amends it is not sent away. */
START_TEST(asked_while_amended)
{
	struct world_box	*b = world_box(&w, "stayed-n");
	pid_t			 pid;
	int			 st;

	ck_until(b->change_rid != 0);
	if ((pid = fork()) == 0)
		_exit(to("stayed-n", "egress", NULL) != 200);
	ck_assert_int_gt(pid, 0);
	ck_until(two_asked());
	ck_assert_int_eq(waitpid(pid, &st, WNOHANG), 0);
	ck_assert_uint_eq(b->networks, 0);
	w.s->let_go = 1;
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
	ck_assert_uint_eq(b->changes, 2);
	ck_assert_uint_eq(b->networks, 1);
	ck_assert_uint_eq(b->network, NETWORK_EGRESS);
}
END_TEST

/* What was denied last is told while the row says none already. */
START_TEST(last_word)
{
	auto_free char	*body = NULL;

	ck_assert_int_eq(to("last-word-e", "none", NULL), 200);
	ck_assert_int_eq(on("GET", "last-word-e", "/denials", NULL, &body),
	    200);
	ck_has(body, "\"totals\":null");
	ck_has(body, "\"address\":\"169.254.169.254\"");
	ck_has(body, "\"count\":3");
	ck_assert_uint_eq(w.s->denied_records, 1);
	ck_assert_uint_eq(w.s->denied_count, 3);
	ck_assert_str_eq(w.s->denied_last.sandbox,
	    world_box(&w, "last-word-e")->id);
}
END_TEST

/* A counter may have more than JSON's numbers here. */
START_TEST(counted)
{
	await("good-e", "\"traffic\":{\"connections\":7,\"nameQueries\":12,"
	    "\"sentBytes\":8,\"sentPackets\":9,\"receivedBytes\":9223372036854775807,"
	    "\"receivedPackets\":11}");
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("apid_network");
	TCase	*t = tcase_create("network");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, there_and_back);
	tcase_add_test(t, the_same);
	tcase_add_test(t, refused);
	tcase_add_test(t, not_opened);
	tcase_add_test(t, not_closed);
	tcase_add_test(t, not_taken_back);
	tcase_add_test(t, attached_again);
	tcase_add_test(t, not_recorded);
	tcase_add_test(t, drifted);
	tcase_add_test(t, removed_meanwhile);
	tcase_add_test(t, stayed);
	tcase_add_test(t, asked_while_amended);
	tcase_add_test(t, last_word);
	tcase_add_test(t, counted);
	suite_add_tcase(s, t);
	return world_run(s);
}
