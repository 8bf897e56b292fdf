/*
 * client_terminal.c: client_test, what is asked and shown on a terminal, and
 * what is not without one.
 */
#include <string.h>

#include "client_rig.h"

#define BOX(id, n, st, h) "{\"id\":\"" id "\",\"name\":\"" n "\",\"state\":" \
	"\"" st "\",\"health\":\"" h "\"}"
#define ID1	"01K8AAAAAAAAAAAAAAAAAAAAA1"
#define ID2	"01K8AAAAAAAAAAAAAAAAAAAAA2"
#define ID3	"01K8AAAAAAAAAAAAAAAAAAAAA3"
#define THREE	JSON("200", "{\"items\":[" BOX(ID1, "a", "READY", \
	"HEALTHY") "," BOX(ID2, "b", "QUARANTINED", "SUSPECT") "," \
	BOX(ID3, "c", "DELETING", "ABSENT") "],\"nextCursor\":null}")

START_TEST(rm_all)
{
	/* Each is removed by its id, and a failure keeps no other. */
	with_input("", A(THREE, JSON("200", "{}"), JSON("409", "{\"code\":"
	    "\"bad-transition\",\"detail\":\"no\"}"), JSON("200", "{}")),
	    "sandbox", "rm", "--all", "--yes", "--grace", "0", NULL);
	expect(125, "", NULL, "DELETE /v1/sandboxes/" ID1 "?graceSeconds=0 ");
	ck_assert_ptr_nonnull(strstr(asked, "DELETE /v1/sandboxes/" ID3));
	ck_assert_str_eq(errout,
	    "workbox sandbox rm: b: no (bad-transition)\n");
	/* One that somebody else has removed is gone: that was the wish. */
	with_input("", A(THREE, JSON("200", "{}"), JSON("404", NONE),
	    JSON("200", "{}")), "sandbox", "delete", "-y", "--all", NULL);
	expect(0, "", "", "DELETE /v1/sandboxes/" ID3);
	with_input("", A(JSON("200", "{\"items\":[],\"nextCursor\":null}")),
	    "sandbox", "rm", "--all", NULL);
	expect(0, "", "there are no sandboxes", NULL);
	/* Nobody to ask, nothing to be removed, nothing said twice. */
	with_input("y\n", A(THREE), "sandbox", "rm", "--all", NULL);
	expect(125, "", "expected --yes, or a terminal to ask on; nothing was "
	    "removed", NULL);
	ck_assert_ptr_null(strstr(asked, "DELETE"));
	with_input("", A(NULL), "sandbox", "rm", "--all", "a", NULL);
	expect(125, "", "expected SANDBOX ... or --all, not both", NULL);
	with_input("", A(NULL), "sandbox", "rm", NULL);
	expect(125, "", "expected SANDBOX ... or --all;", NULL);
	with_input("", A(NULL), "sandbox", "rm", "--yes", "a", NULL);
	expect(125, "", "--yes goes with --all", NULL);
	/* Ids that are none would be other paths. */
	with_input("", A(JSON("200", "{\"items\":[" BOX(ID1, "a", "READY",
	    "HEALTHY") "," BOX("../x", "b", "READY", "HEALTHY") "],"
	    "\"nextCursor\":null}")), "sandbox", "rm", "--all", "-y", NULL);
	expect(125, "", "a sandbox without id; nothing was removed", NULL);
	ck_assert_ptr_null(strstr(asked, "DELETE"));
}
END_TEST

/* On a terminal it lists them and asks; all but y and yes is no. */
START_TEST(rm_asks)
{
	static const char *const	no[] = { "\n", "n\n", "yep\n",
	    "\004", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n" };
	size_t				i;

	on_terminal = 1;
	with_input("y\n", A(THREE, JSON("200", "{}"), JSON("200", "{}"),
	    JSON("200", "{}")), "sandbox", "rm", "--all", NULL);
	expect(0, NULL, NULL, "DELETE /v1/sandboxes/" ID3);
	ck_assert_ptr_nonnull(strstr(out, "\na "));
	ck_assert_ptr_nonnull(strstr(out, ID2));
	ck_assert_ptr_nonnull(strstr(out,
	    "Remove these 3 sandboxes, and all that is in them? [y/N] "));
	for (i = 0; i < sizeof no / sizeof no[0]; i++) {
		with_input(no[i], A(THREE), "sandbox", "rm", "--all", NULL);
		expect(125, NULL, NULL, NULL);
		ck_assert_ptr_nonnull(strstr(out, "nothing was removed"));
		ck_assert_ptr_null(strstr(asked, "DELETE"));
	}
}
END_TEST

/* ---- on a terminal ----------------------------------------------------- */

START_TEST(colours)
{
	on_terminal = 1;
	with_input("", A(THREE), "sandbox", "list", NULL);
	expect(0, NULL, NULL, NULL);
	/* padded behind the colour, so that columns hold */
	ck_assert_ptr_nonnull(strstr(out, "\033[32mREADY\033[0m        "
	    "\033[32mHEALTHY\033[0m  "));
	ck_assert_ptr_nonnull(strstr(out, "\033[31mQUARANTINED\033[0m  "
	    "\033[33mSUSPECT\033[0m  "));
	ck_assert_ptr_nonnull(strstr(out, "  DELETING  "));
	no_color = "1";
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	no_color = "";
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_nonnull(strchr(out, '\033'));
	term = "dumb";
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	term = "xterm";
	on_terminal = 0;
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	ck_assert_ptr_nonnull(strstr(out, "  READY        HEALTHY  "));
}
END_TEST

/* Whatever a server says, it is text; into a pipe it goes as it came. */
START_TEST(hostile_text)
{
	static const char	list[] = JSON("200", "{\"items\":[{\"name\":"
	    "\"\302\233" "31m\\u001b[31m\342\200\256\"}],\"nextCursor\":null}");
	static const char	record1[] = "$" "{\"seq\":1,\"a\":\"\302\233 "
	    "\033[31m\"}\n";

	on_terminal = 1;
	no_color = "1";
	with_input("", A(list), "sandbox", "list", NULL);
	ck_assert_ptr_nonnull(strstr(out,
	    "\n\\u009b31m\\x1b[31m\\u202e  "));
	with_input("", A(list), "sandbox", "list", "--format", "json", NULL);
	ck_assert_ptr_nonnull(strstr(out, "\"\\u009b31m\\u001B[31m\\u202e\""));
	with_input("", A(record1), "events", "export", NULL);
	expect(0, "{\"seq\":1,\"a\":\"\\u009b \\x1b[31m\"}\n", NULL, NULL);
	with_input("", A(JSON("200", "{\"version\":\"\\u001b[1m\"}"),
	    JSON("200", "{\"items\":[]}")), "version", NULL);
	ck_assert_ptr_nonnull(strstr(out, "server \\x1b[1m at "));
	with_input("", A(JSON("201", "{\"sessionId\":\"\\u001b[1m\"}")),
	    "sandbox", "run", "b", "--", "x", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	on_terminal = 0;
	with_input("", A(record1), "events", "export", NULL);
	expect(0, record1 + 1, "", NULL);
}
END_TEST

TCase *
terminal_case(void)
{
	TCase	*tc = tcase_create("terminal");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, rm_all);
	tcase_add_test(tc, rm_asks);
	tcase_add_test(tc, colours);
	tcase_add_test(tc, hostile_text);
	return tc;
}
