/*
 * apid_allow.c: lists of `allowlist', from what is asked to what stored and
 * netd are told; what becomes of them when one of the two fails, or the box
 * goes, at each step; and what is told of names.
 */
#include <sys/wait.h>

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allow.h"
#include "apid_client.h"
#include "xmalloc.h"

#define LIST	"\"network\":\"allowlist\",\"allow\":"

static struct world	w;

static int
on(const char *method, const char *name, const char *rest, const char *body,
    char **ret_body)
{
	return world_on(&w, method, name, rest, body, ret_body);
}

static int
put(const char *name, const char *body, char **ret_body)
{
	return on("PUT", name, "/network", body, ret_body);
}

static int
create(const char *name, const char *rest, char **ret_body)
{
	auto_free char	*body = xasprintf("{\"name\":\"%s\",%s}", name, rest);

	return world_http(&w, "POST", "/v1/sandboxes", body, ret_body);
}

static struct world_box *
box(const char *name)
{
	return world_box(&w, name);
}

static int
reconcile(void)
{
	return world_http(&w, "POST", "/v1/reconcile", NULL, NULL);
}

/* The nth of these from now on, and those behind it unless once, fails so. */
static void
fail_at(enum world_step step, unsigned int nth, enum wb_code code, int once)
{
	w.s->at_seen = 0;
	w.s->at_nth = nth;
	w.s->at_code = code;
	w.s->at_once = once;
	w.s->at_step = step;
}

/* A list of n entries, numbers between the two, in no order: a JSON array. */
static char *
many(size_t n, const char *head, const char *tail)
{
	char	*s = xmalloc(n * 96 + 3);
	size_t	 i, len = 0;

	s[len++] = '[';
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(s + len, 96, "%s\"%s%zu%s\"",
		    i == 0 ? "" : ",", head, i * 7919 % n, tail);
	(void)str_copy(s + len, "]", 2);
	return s;
}

static void
setup(void)
{
	static const struct {
		const char	*name;
		unsigned int	 network;
	}	rows[] = {
		{ "good-e", NETWORK_EGRESS }, { "nochange-e", NETWORK_EGRESS },
		{ "good-n", NETWORK_NONE }, { "nochange-n", NETWORK_NONE },
		{ "good-a", NETWORK_ALLOWLIST },
		{ "good-b", NETWORK_ALLOWLIST },
		{ "nochange-a", NETWORK_ALLOWLIST },
	};
	size_t	i;

	world_make(&w);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_row(&w, rows[i].name, BOX_READY, 2);
		world_row_network(&w, rows[i].network);
	}
	world_start(&w);
	world_await(&w, "good-a", "", "\"health\":\"HEALTHY\"");
}

static void
teardown(void)
{
	ck_assert_msg(w.s->faults == 0, "apid: %s", w.s->fault);
	world_end(&w);
}

/* ---- created with a list ---------------------------------------------- */

/* The fake privd faults where the list was not recorded before. */
START_TEST(created)
{
	auto_free char	*body = NULL, *list = NULL;

	ck_assert_int_eq(create("good-c", LIST "[\"B.example.\","
	    "\"a.example:443,80\",\"b.example\",\"*.X.example:22,21,22\","
	    "\"b\xc3\xbc" "cher.example\"]", &body), 201);
	ck_has(body, "\"network\":\"allowlist\"");
	ck_assert_str_eq(box("good-c")->list, "*.x.example:21,22 a.example "
	    "b.example xn--bcher-kva.example");
	ck_assert_uint_eq(box("good-c")->puts, 1);
	ck_assert_uint_eq(box("good-c")->networks, 1);
	ck_assert_int_eq(on("GET", "good-c", "/network", NULL, &list), 200);
	ck_assert_str_eq(list, "{\"network\":\"allowlist\",\"allow\":["
	    "\"*.x.example:21,22\",\"a.example\",\"b.example\","
	    "\"xn--bcher-kva.example\"]}");
}
END_TEST

START_TEST(created_without)
{
	auto_free char	*list = NULL;

	ck_assert_int_eq(create("good-c", "\"network\":\"allowlist\"", NULL),
	    201);
	ck_assert_uint_eq(box("good-c")->puts, 1);
	ck_assert_uint_eq(box("good-c")->list_n, 0);
	ck_assert_int_eq(on("GET", "good-c", "/network", NULL, &list), 200);
	ck_assert_str_eq(list, "{\"network\":\"allowlist\",\"allow\":[]}");
}
END_TEST

/* As many as there may be, in pages; and read of them again. */
START_TEST(created_full)
{
	auto_free char	*rest = NULL, *array = many(ALLOW_MAX, "h", ".example");
	auto_free char	*list = NULL, *more = NULL;
	json_t		*o;

	rest = xasprintf(LIST "%s", array);
	ck_assert_int_eq(create("good-c", rest, NULL), 201);
	ck_assert_uint_eq(box("good-c")->list_n, ALLOW_MAX);
	ck_assert_uint_eq(box("good-c")->put_pages, 10);
	ck_assert_uint_eq(box("good-c")->put_most, 1000);
	ck_assert_int_eq(on("GET", "good-c", "/network", NULL, &list), 200);
	ck_assert_uint_eq(w.s->reads, 10);
	o = json_loads(list, 0, NULL);
	ck_assert_ptr_ne(o, NULL);
	ck_assert_uint_eq(json_array_size(json_object_get(o, "allow")),
	    ALLOW_MAX);
	json_decref(o);
	/* and one more is too many: there, and in a request */
	ck_assert_int_eq(put("good-c", "{\"network\":\"allowlist\","
	    "\"add\":[\"one.more.example\"]}", &more), 400);
	ck_has(more, "\"field\":\"add\"");
	ck_has(more, "at most 10000 entries");
	ck_assert_uint_eq(box("good-c")->networks, 1);
	ck_assert_int_eq(put("good-c", "{\"network\":\"allowlist\","
	    "\"add\":[\"one.more.example\"],\"remove\":[\"h1.example\"]}",
	    NULL), 200);
	ck_assert_uint_eq(box("good-c")->list_n, ALLOW_MAX);
}
END_TEST

START_TEST(too_many)
{
	auto_free char	*array = many(ALLOW_MAX + 1, "h", ".example");
	auto_free char	*body = NULL, *rest = xasprintf(LIST "%s", array);

	ck_assert_int_eq(create("good-c", rest, &body), 400);
	ck_has(body, "\"field\":\"allow\"");
	ck_assert_ptr_eq(box("good-c"), NULL);
}
END_TEST

/* Long ones: pages are cut by their bytes, too. */
START_TEST(created_long)
{
	auto_free char	*array = many(5000, "a23456789-123456789-123456789-"
			    "123456789-123456789-123456789.", ".example");
	auto_free char	*rest = xasprintf(LIST "%s", array);

	ck_assert_int_eq(create("good-c", rest, NULL), 201);
	ck_assert_uint_eq(box("good-c")->list_n, 5000);
	ck_assert_uint_lt(box("good-c")->put_most, 1000);
	ck_assert_uint_gt(box("good-c")->put_pages, 5);
}
END_TEST

/* Stored fails, first or last: the sandbox goes, and was never made. */
START_TEST(created_in_vain)
{
	static const struct {
		enum world_step	 step;
		unsigned int	 nth;
	}	steps[] = {
		{ WORLD_PUT, 1 }, { WORLD_PUT, 2 }, { WORLD_RECORD, 1 }
	};
	auto_free char	*array = many(1500, "h", ".example"), *body = NULL;
	auto_free char	*rest = xasprintf(LIST "%s", array);

	fail_at(steps[_i].step, steps[_i].nth, CODE_DISK_FULL, 1);
	ck_assert_int_eq(create("good-c", rest, &body), 507);
	ck_has(body, "disk-full");
	ck_has(body, "told to fail");
	ck_until(box("good-c")->state == BOX_DELETED);
	ck_assert_int_eq(box("good-c")->created, 0);
	ck_assert_str_eq(box("good-c")->reason, "create-failed");
	ck_assert_int_eq(box("good-c")->listed, 0);
	/* and the name is free */
	ck_assert_int_eq(create("good-c", rest, NULL), 201);
	ck_assert_uint_eq(box("good-c")->list_n, 1500);
}
END_TEST

static int
is_told_to_go(const char *name)
{
	auto_free char	*body = NULL;

	(void)put(name, "{\"network\":\"none\"}", &body);
	return strstr(body, "The sandbox is being removed.") != NULL;
}

/* It is asked away while its list is being put. */
START_TEST(created_and_gone)
{
	static const enum world_step	steps[] = { WORLD_PUT, WORLD_RECORD };
	struct world_box		*b;
	pid_t				 pid, away;
	int				 st;

	fail_at(steps[_i], 1, CODE_NONE, 1);
	if ((pid = fork()) == 0)
		_exit(create("good-c", LIST "[\"a.example\"]", NULL) != 500);
	ck_until(w.s->waits);
	b = box("good-c");
	if ((away = fork()) == 0)
		_exit(on("DELETE", "good-c", "?graceSeconds=0", NULL,
		    NULL) != 200);
	ck_until(is_told_to_go("good-c"));
	w.s->go_on = 1;
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
	ck_assert_int_eq(waitpid(away, &st, 0), away);
	ck_assert_int_eq(st, 0);
	ck_until(b->state == BOX_DELETED);
	ck_assert_int_eq(b->created, 0);
}
END_TEST

/* ---- what is none ----------------------------------------------------- */

#define E383	"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.a23456789.a23456789." \
		"a23456789.a23456789.a23456789.abc"

/* Each is the second of its list. */
static const struct {
	const char	*entry, *why;
}	no_entry[] = {
	{ "192.0.2.1", "not an address" },
	{ "0x7f.1", "not an address" },
	{ "[2001:db8::1]:443", "not an address" },
	{ "https://a.example", "without a scheme" },
	{ "u@a.example", "without a user" },
	{ "a.example/x", "without a path" },
	{ "a.example:0", "expected ports from 1" },
	{ "a.example:65536", "expected ports from 1" },
	{ "a.example:", "expected ports from 1" },
	{ "a.example:80,", "expected ports from 1" },
	{ "*", "network egress" },
	{ "a.*.example", "only as *." },
	{ "*.example", "two labels" },
	{ "a..example", "between two dots" },
	{ "-a.example", "without a hyphen" },
	{ "a b.example", "no blanks" },
	{ "a\xe2\x80\xae" "b.example", "form in the DNS" },
	{ E383 "d", "at most 383 bytes" },
	/* what is shown of it is cut between two characters */
	{ E383 "\xc3\xbc\xc3\xbc", "abc: expected at most 383 bytes" },
};

START_TEST(no_entries)
{
	auto_free char	*rest = NULL, *body = NULL, *again = NULL;
	json_t		*o;

	rest = xasprintf(LIST "[\"ok.example\",\"%s\"]", no_entry[_i].entry);
	ck_assert_int_eq(create("good-c", rest, &body), 400);
	ck_has(body, "\"field\":\"allow[1]\"");
	ck_has(body, no_entry[_i].why);
	ck_assert_ptr_ne(o = json_loads(body, 0, NULL), NULL);
	json_decref(o);
	ck_assert_ptr_eq(box("good-c"), NULL);
	free(rest);
	rest = xasprintf("{\"network\":\"allowlist\",\"remove\":[\"%s\"]}",
	    no_entry[_i].entry);
	ck_assert_int_eq(put("good-a", rest, &again), 400);
	ck_has(again, "\"field\":\"remove[0]\"");
	ck_assert_uint_eq(box("good-a")->puts, 0);
	/* and another may come behind it */
	ck_assert_int_eq(put("good-a", "{\"network\":\"allowlist\","
	    "\"allow\":[]}", NULL), 200);
}
END_TEST

/* What is none by the schema, with the member that is meant. */
START_TEST(no_lists)
{
	static const struct {
		const char	*member, *field;
	}	bad[] = {
		{ "\"allow\":\"a.example\"", "allow" },
		{ "\"allow\":null", "allow" },
		{ "\"allow\":[7]", "allow[0]" },
		{ "\"allow\":[\"a.example\",\"\"]", "allow[1]" },
		{ "\"allow\":[\"a\\nb\"]", "allow[0]" },
		{ "\"allow\":[\"a\\u0000b\"]", NULL },
		{ "\"allow\":[\"\xff.example\"]", NULL },
		{ "\"add\":{}", "add" },
		{ "\"remove\":[[]]", "remove[0]" },
	};
	auto_free char	*b = NULL, *body = NULL, *field = NULL;

	b = xasprintf("{\"network\":\"allowlist\",%s}", bad[_i].member);
	ck_assert_int_eq(put("good-a", b, &body), 400);
	if (bad[_i].field != NULL) {
		field = xasprintf("\"field\":\"%s\"", bad[_i].field);
		ck_has(body, field);
	}
	ck_assert_uint_eq(box("good-a")->puts, 0);
}
END_TEST

/* A list where there can be none, or two of them. */
START_TEST(no_place)
{
	static const struct {
		const char	*box, *body, *field;
	}	bad[] = {
		{ "good-a", "\"network\":\"egress\",\"allow\":[]", "allow" },
		{ "good-a", "\"network\":\"none\",\"add\":[]", "add" },
		{ "good-n", "\"network\":\"none\",\"remove\":[]", "remove" },
		{ "good-n", "\"network\":\"allowlist\",\"add\":[]", "add" },
		{ "good-e", "\"network\":\"allowlist\",\"remove\":[]",
		    "remove" },
		{ "good-a", LIST "[],\"add\":[]", "allow" },
		{ "good-a", LIST "[],\"remove\":[]", "allow" },
	};
	auto_free char	*b = xasprintf("{%s}", bad[_i].body), *body = NULL;
	auto_free char	*field = xasprintf("\"field\":\"%s\"", bad[_i].field);

	ck_assert_int_eq(put(bad[_i].box, b, &body), 400);
	ck_has(body, field);
	ck_assert_uint_eq(box(bad[_i].box)->networks, 0);
	ck_assert_uint_eq(box(bad[_i].box)->changes, 0);
}
END_TEST

START_TEST(no_kind)
{
	static const char *const	kinds[] = { "\"network\":\"egress\",",
					    "\"network\":\"none\",", "" };
	auto_free char			*body = NULL, *rest = NULL;

	rest = xasprintf("%s\"allow\":[\"a.example\"]", kinds[_i]);
	ck_assert_int_eq(create("good-c", rest, &body), 400);
	ck_has(body, "\"field\":\"allow\"");
	ck_assert_ptr_eq(box("good-c"), NULL);
}
END_TEST

/* ---- changed ---------------------------------------------------------- */

START_TEST(changed)
{
	struct world_box	*b = box("good-a");
	auto_free char		*body = NULL, *list = NULL;

	ck_assert_int_eq(put("good-a", "{" LIST "[\"c.example\","
	    "\"A.example\"]}", &body), 200);
	ck_has(body, "\"network\":\"allowlist\"");
	ck_assert_str_eq(b->list, "a.example c.example");
	ck_assert_uint_eq(b->changes, 1);
	ck_assert_uint_eq(b->networks, 1);
	/* what goes and comes stays */
	ck_assert_int_eq(put("good-a", "{\"network\":\"allowlist\",\"add\":["
	    "\"b.example\",\"A.example:80,443\",\"c.example\"],"
	    "\"remove\":[\"c.example.\",\"never.example\"]}", NULL), 200);
	ck_assert_str_eq(b->list, "a.example b.example c.example");
	ck_assert_int_eq(put("good-a", "{\"network\":\"allowlist\","
	    "\"remove\":[\"a.example\",\"c.example:80\"]}", NULL), 200);
	ck_assert_str_eq(b->list, "b.example c.example");
	ck_assert_uint_eq(b->changes, 3);
	ck_assert_int_eq(on("GET", "good-a", "/network", NULL, &list), 200);
	ck_assert_str_eq(list, "{\"network\":\"allowlist\",\"allow\":["
	    "\"b.example\",\"c.example\"]}");
	/* none of it is another's */
	ck_assert_uint_eq(box("good-b")->puts, 0);
	/* the kind alone is nothing new, but netd says whether it is so */
	ck_assert_int_eq(put("good-a", "{\"network\":\"allowlist\"}", NULL),
	    200);
	ck_assert_uint_eq(b->puts, 3);
	ck_assert_uint_eq(b->networks, 3);
	ck_assert_uint_eq(b->changes, 4);
}
END_TEST

/* A change of the list leaves what is known of the network alone. */
START_TEST(counters_stay)
{
	auto_free char	*body = NULL;

	world_await(&w, "good-a", "", "\"traffic\":{\"connections\":7,");
	ck_assert_int_eq(put("good-a", "{" LIST "[\"c.example\"]}", &body),
	    200);
	ck_has(body, "\"traffic\":{\"connections\":7,");
}
END_TEST

START_TEST(kinds)
{
	auto_free char	*list = NULL, *none = NULL, *egress = NULL;

	ck_assert_int_eq(put("good-n", "{" LIST "[\"a.example\"]}", NULL),
	    200);
	ck_assert_uint_eq(box("good-n")->network, NETWORK_ALLOWLIST);
	ck_assert_int_eq(on("GET", "good-n", "/network", NULL, &list), 200);
	ck_has(list, "[\"a.example\"]");
	ck_assert_int_eq(put("good-n", "{\"network\":\"none\"}", NULL), 200);
	ck_assert_uint_eq(box("good-n")->network, NETWORK_NONE);
	ck_assert_int_eq(on("GET", "good-n", "/network", NULL, &none), 200);
	ck_assert_str_eq(none, "{\"network\":\"none\",\"allow\":null}");
	/* without a list it has an empty one, not the one before */
	ck_assert_int_eq(put("good-n", "{\"network\":\"allowlist\"}", NULL),
	    200);
	ck_assert_uint_eq(box("good-n")->list_n, 0);
	ck_assert_int_eq(on("GET", "good-e", "/network", NULL, &egress), 200);
	ck_assert_str_eq(egress, "{\"network\":\"egress\",\"allow\":null}");
	ck_assert_int_eq(put("good-e", "{" LIST "[\"b.example\"]}", NULL),
	    200);
	ck_assert_str_eq(box("good-e")->list, "b.example");
	ck_assert_int_eq(put("good-e", "{\"network\":\"egress\"}", NULL), 200);
	ck_assert_uint_eq(box("good-e")->network, NETWORK_EGRESS);
}
END_TEST

/* One way out that cannot be opened goes back; one that narrows does not. */
START_TEST(kinds_in_vain)
{
	auto_free char	*list = NULL;

	ck_assert_int_eq(put("nochange-n", "{" LIST "[\"a.example\"]}", NULL),
	    500);
	ck_assert_uint_eq(box("nochange-n")->networks, 2);
	ck_assert_str_eq(box("nochange-n")->network_why, "cannot");
	ck_assert_int_eq(box("nochange-n")->listed, 0);
	world_await(&w, "nochange-n", "", "\"network\":\"none\"");

	ck_assert_int_eq(put("nochange-e", "{" LIST "[\"a.example\"]}", NULL),
	    500);
	ck_assert_uint_eq(box("nochange-e")->networks, 1);
	world_await(&w, "nochange-e", "/network", "[\"a.example\"]");

	ck_assert_int_eq(put("nochange-a", "{\"network\":\"egress\"}", NULL),
	    500);
	ck_assert_uint_eq(box("nochange-a")->networks, 2);
	ck_assert_int_eq(on("GET", "nochange-a", "/network", NULL, &list),
	    200);
	ck_assert_str_eq(list, "{\"network\":\"allowlist\",\"allow\":[]}");
}
END_TEST

/* Of two the second is told, whatever the first waits for. */
START_TEST(two_at_once)
{
	static const enum world_step	steps[] = { WORLD_READ, WORLD_PUT,
					    WORLD_RECORD, WORLD_CHANGE };
	static const char		add[] = "{\"network\":\"allowlist\","
					    "\"add\":[\"a.example\"]}";
	auto_free char			*body = NULL, *kind = NULL;
	pid_t				 pid;
	int				 st;

	fail_at(steps[_i], 1, CODE_NONE, 1);
	if ((pid = fork()) == 0)
		_exit(put("good-a", add, NULL) != 409);
	ck_until(w.s->waits);
	ck_assert_int_eq(put("good-a", add, &body), 503);
	ck_has(body, "\"busy\"");
	ck_assert_int_eq(put("good-a", "{\"network\":\"none\"}", &kind), 503);
	/* another's is nobody's business */
	ck_assert_int_eq(put("good-b", add, NULL), 200);
	w.s->go_on = 1;
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
	ck_assert_int_eq(put("good-a", add, NULL), 200);
	ck_assert_str_eq(box("good-a")->list, "a.example");
}
END_TEST

/* Who asks is told what became of the box, at each step. */
START_TEST(removed_meanwhile)
{
	static const enum world_step	steps[] = { WORLD_READ, WORLD_PUT,
					    WORLD_RECORD, WORLD_CHANGE };
	static const char		add[] = "{\"network\":\"allowlist\","
					    "\"add\":[\"a.example\"]}";
	auto_free char			*body = NULL;
	pid_t				 pid;
	int				 st;

	fail_at(steps[_i], 1, CODE_NONE, 1);
	if ((pid = fork()) == 0)
		_exit(put("good-a", add, &body) != 409 ? 1 :
		    strstr(body, "The sandbox is being removed.") == NULL);
	ck_until(w.s->waits);
	ck_assert_int_eq(on("DELETE", "good-a", "?graceSeconds=0", NULL,
	    NULL), 200);
	w.s->go_on = 1;
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
	ck_until(box("good-a")->state == BOX_DELETED);
}
END_TEST

/* Stored fails at each step: nothing has changed, and the next may come. */
START_TEST(not_stored)
{
	static const enum world_step	steps[] = { WORLD_READ, WORLD_PUT,
					    WORLD_RECORD };
	static const char		add[] = "{\"network\":\"allowlist\","
					    "\"add\":[\"a.example\"]}";
	auto_free char			*body = NULL;

	fail_at(steps[_i], 1, CODE_DISK_FULL, 1);
	ck_assert_int_eq(put("good-a", add, &body), 507);
	ck_has(body, "disk-full");
	ck_assert_uint_eq(box("good-a")->networks, 0);
	ck_assert_uint_eq(box("good-a")->changes, 0);
	world_await(&w, "good-a", "/network", "\"allow\":[]");
	ck_assert_int_eq(put("good-a", add, NULL), 200);
	ck_assert_str_eq(box("good-a")->list, "a.example");
}
END_TEST

/*
 * netd does not take it: it stands recorded, the box is told as SUSPECT until
 * netd has it, and netd is asked again.
 */
START_TEST(not_taken)
{
	struct world_box	*b = box("good-a");
	auto_free char		*body = NULL;

	fail_at(WORLD_CHANGE, 1, CODE_INTERNAL, 0);
	ck_assert_int_eq(put("good-a", "{" LIST "[\"a.example\"]}", &body),
	    500);
	ck_assert_uint_eq(b->networks, 1);
	world_await(&w, "good-a", "", "\"healthReason\":\"network\"");
	world_await(&w, "good-a", "/network", "[\"a.example\"]");
	/* looks do not make it good */
	ck_assert_int_eq(reconcile(), 200);
	ck_until(b->changes >= 2);
	ck_assert_int_eq(reconcile(), 200);
	world_await(&w, "good-a", "", "\"health\":\"SUSPECT\",\"healthReason"
	    "\":\"network\"");
	w.s->at_step = WORLD_NO_STEP;
	ck_assert_int_eq(reconcile(), 200);
	world_await(&w, "good-a", "", "\"health\":\"HEALTHY\"");
	ck_assert_uint_eq(b->networks, 1);
	ck_assert_str_eq(b->list, "a.example");
	/* once it is so, it is not asked for any more */
	b->changes = 0;
	ck_assert_int_eq(reconcile(), 200);
	ck_assert_uint_eq(b->changes, 0);
	world_await(&w, "good-b", "", "\"health\":\"HEALTHY\"");
}
END_TEST

/* Or who wants it asks again. */
START_TEST(taken_by_asking)
{
	struct world_box	*b = box("good-a");

	fail_at(WORLD_CHANGE, 1, CODE_INTERNAL, 1);
	ck_assert_int_eq(put("good-a", "{" LIST "[\"a.example\"]}", NULL),
	    500);
	ck_assert_int_eq(put("good-a", "{\"network\":\"allowlist\"}", NULL),
	    200);
	b->changes = 0;
	ck_assert_int_eq(reconcile(), 200);
	ck_assert_uint_eq(b->changes, 0);
}
END_TEST

/* What costs much is done in turns: others are answered in between. */
START_TEST(in_turns)
{
	auto_free char	*array = many(9000, "b\xc3\xbc" "cher",
			    ".ex\xc3\xa4mple.com");
	auto_free char	*body = xasprintf("{" LIST "%s}", array);
	unsigned int	 between = 0;
	pid_t		 pid;
	int		 st = -1;

	if ((pid = fork()) == 0)
		_exit(put("good-a", body, NULL) != 200);
	while (waitpid(pid, &st, WNOHANG) == 0)
		if (put("good-a", "{\"network\":\"allowlist\",\"add\":"
		    "[\"://\"]}", NULL) == 503 && box("good-a")->puts == 0)
			between++;
	printf("%u were told that it is being changed\n", between);
	ck_assert_int_eq(st, 0);
	ck_assert_uint_eq(box("good-a")->list_n, 9000);
	ck_assert_uint_ge(between, 3);
}
END_TEST

/* ---- looked at -------------------------------------------------------- */

/* It has changed between two pages: it is read from the begin. */
START_TEST(read_again)
{
	auto_free char	*array = many(2500, "h", ".example"), *list = NULL;
	auto_free char	*body = xasprintf("{" LIST "%s}", array);
	json_t		*o;

	ck_assert_int_eq(put("good-a", body, NULL), 200);
	fail_at(WORLD_READ, 2, CODE_NOT_FOUND, 1);
	ck_assert_int_eq(on("GET", "good-a", "/network", NULL, &list), 200);
	ck_assert_uint_eq(w.s->reads, 2 + 3);
	ck_assert_ptr_ne(o = json_loads(list, 0, NULL), NULL);
	ck_assert_uint_eq(json_array_size(json_object_get(o, "allow")), 2500);
	json_decref(o);
}
END_TEST

START_TEST(read_fails)
{
	auto_free char	*body = NULL, *none = NULL;

	fail_at(WORLD_READ, 1, CODE_INTERNAL, 1);
	ck_assert_int_eq(on("GET", "good-a", "/network", NULL, &body), 500);
	fail_at(WORLD_READ, 1, CODE_NOT_FOUND, 1);
	ck_assert_int_eq(on("GET", "good-a", "/network", NULL, &none), 500);
	ck_assert_int_eq(on("GET", "nobody", "/network", NULL, NULL), 404);
}
END_TEST

/* The box, or its list, goes while that is read. */
START_TEST(read_late)
{
	pid_t	pid;
	int	st;

	fail_at(WORLD_READ, 1, CODE_NONE, 1);
	if ((pid = fork()) == 0)
		_exit(_i == 0 ? on("GET", "good-a", "/network", NULL,
		    NULL) != 404 : on("GET", "good-a", "/network", NULL,
		    NULL) != 200);
	ck_until(w.s->waits);
	if (_i == 0) {
		ck_assert_int_eq(on("DELETE", "good-a", "?graceSeconds=0",
		    NULL, NULL), 200);
		ck_until(box("good-a")->purged);
		ck_until(on("GET", "good-a", "", NULL, NULL) == 404);
	} else
		ck_assert_int_eq(put("good-a", "{\"network\":\"none\"}",
		    NULL), 200);
	w.s->go_on = 1;
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
}
END_TEST

#define A_NAME	"{\"name\":\"a.example\",\"connections\":5,\"open\":1," \
		"\"sentBytes\":10,\"receivedBytes\":15}"
#define B_NAME	"{\"name\":\"b.example\",\"connections\":7,\"open\":1," \
		"\"sentBytes\":14,\"receivedBytes\":21}"

/* By name, of one sandbox; rows that are none are left out. */
START_TEST(names)
{
	auto_free char	*body = NULL, *egress = NULL, *all = NULL;
	auto_free char	*made = NULL, *changed_to = NULL, *list = NULL;

	w.s->odd_names = _i;
	ck_assert_int_eq(on("GET", "good-a", "", NULL, &body), 200);
	ck_has(body, "\"names\":[" A_NAME "," B_NAME "]");
	ck_assert_int_eq(on("GET", "good-e", "", NULL, &egress), 200);
	ck_has(egress, "\"names\":null");
	ck_assert_int_eq(world_http(&w, "GET", "/v1/sandboxes", NULL, &all),
	    200);
	ck_has_not(all, "a.example");
	/* and whenever one is told of alone */
	ck_assert_int_eq(create("good-c", LIST "[\"c.example\"]", &made),
	    201);
	ck_has(made, "\"names\":[" A_NAME "," B_NAME "]");
	ck_assert_int_eq(put("good-a", "{" LIST "[\"c.example\"]}", &list),
	    200);
	ck_has(list, "\"names\":[" A_NAME "," B_NAME "]");
	ck_assert_int_eq(put("good-n", "{" LIST "[\"c.example\"]}",
	    &changed_to), 200);
	ck_has(changed_to, "\"names\":[" A_NAME "," B_NAME "]");
}
END_TEST

/* netd does not tell, or late: the rest is told all the same. */
START_TEST(names_fail)
{
	auto_free char	*body = NULL;

	fail_at(WORLD_NAMES, 1, CODE_INTERNAL, 1);
	ck_assert_int_eq(on("GET", "good-a", "", NULL, &body), 200);
	ck_has(body, "\"names\":null");
	ck_has(body, "\"state\":\"READY\"");
}
END_TEST

START_TEST(names_late)
{
	auto_free char	*body = NULL;
	pid_t		 pid;
	int		 st;

	fail_at(WORLD_NAMES, 1, CODE_NONE, 1);
	if ((pid = fork()) == 0)
		_exit(on("GET", "good-a", "", NULL, &body) != 200 ||
		    strstr(body, "\"names\":null") == NULL ||
		    strstr(body, _i == 0 ? "READY" : "DELET") == NULL);
	ck_until(w.s->waits);
	ck_assert_int_eq(on("GET", "good-b", "", NULL, NULL), 200);
	if (_i == 1)
		ck_assert_int_eq(on("DELETE", "good-a", "?graceSeconds=0",
		    NULL, NULL), 200);
	w.s->go_on = 1;
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
}
END_TEST

#define N(a)	((int)(sizeof(a) / sizeof((a)[0])))

int
main(void)
{
	Suite	*s = suite_create("apid_allow");
	TCase	*t = tcase_create("allow");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, created);
	tcase_add_test(t, created_without);
	tcase_add_test(t, created_full);
	tcase_add_test(t, created_long);
	tcase_add_test(t, too_many);
	tcase_add_loop_test(t, created_in_vain, 0, 3);
	tcase_add_loop_test(t, created_and_gone, 0, 2);
	tcase_add_loop_test(t, no_entries, 0, N(no_entry));
	tcase_add_loop_test(t, no_lists, 0, 9);
	tcase_add_loop_test(t, no_place, 0, 7);
	tcase_add_loop_test(t, no_kind, 0, 3);
	tcase_add_test(t, changed);
	tcase_add_test(t, counters_stay);
	tcase_add_test(t, kinds);
	tcase_add_test(t, kinds_in_vain);
	tcase_add_loop_test(t, two_at_once, 0, 4);
	tcase_add_loop_test(t, removed_meanwhile, 0, 4);
	tcase_add_loop_test(t, not_stored, 0, 3);
	tcase_add_test(t, not_taken);
	tcase_add_test(t, taken_by_asking);
	tcase_add_test(t, in_turns);
	tcase_add_test(t, read_again);
	tcase_add_test(t, read_fails);
	tcase_add_loop_test(t, read_late, 0, 2);
	tcase_add_loop_test(t, names, 0, 2);
	tcase_add_test(t, names_fail);
	tcase_add_loop_test(t, names_late, 0, 2);
	suite_add_tcase(s, t);
	return world_run(s);
}
