/*
 * client_session.c: client_test, sessions that are followed, waited for and
 * listed.
 */
#include <string.h>

#include "client_rig.h"

START_TEST(waits)
{
	with_input("", A(JSON("200", "{\"state\":\"running\"}"), "",
	    JSON("503", ""), JSON("200", "{\"state\":\"ended\","
	    "\"exitCode\":4}")), "sandbox", "wait", "b", "s", NULL);
	expect(4, NULL, "", "/sessions/s?wait=60");
	with_input("", A(JSON("200", "<html>")), "sandbox", "wait", "b", "s",
	    NULL);
	expect(125, "", "answered without JSON", NULL);
	with_input("", A(JSON("404", "{\"code\":\"not-found\",\"detail\":"
	    "\"no\"}")), "sandbox", "wait", "b", "s", NULL);
	expect(125, "", "no (not-found)", NULL);
}
END_TEST

START_TEST(wait_timeout)
{
	with_input("", A(JSON("200", "{\"state\":\"running\"}")), "sandbox",
	    "wait", "b", "s", "--timeout", "0", NULL);
	expect(124, "", "wait: b s: running after 0 s\n",
	    "/sessions/s?wait=0");
	with_input("", A(JSON("200", "{\"state\":\"running\"}"),
	    JSON("200", "{\"state\":\"ended\",\"exitCode\":4}")), "sandbox",
	    "wait", "b", "s", "--timeout", "30", NULL);
	expect(4, NULL, "", "/sessions/s?wait=30");
	/* Cut while it was asked for the first time, then not there. */
	with_input("", A(""), "sandbox", "wait", "b", "s", "--timeout", "1",
	    NULL);
	expect(124, "", "no answer after 1 s\n", NULL);
	/* One that is away for all of it, after it was there. */
	with_input("", A(JSON("200", "{\"state\":\"running\"}"), "", ""),
	    "sandbox", "wait", "b", "s", "--timeout", "1", NULL);
	expect(124, "", "no answer after 1 s\n", NULL);
	with_input("", A(NULL), "sandbox", "wait", "--server",
	    "unix:/nonexistent", "b", "s", NULL);
	expect(125, "", "reach unix:/nonexistent: No such file", NULL);
	with_input("", A(NULL), "sandbox", "wait", "b", "s", "--timeout",
	    "0.5", NULL);
	expect(125, "", "--timeout: expected seconds from 0 to", NULL);
}
END_TEST

#define CUTS	"", "", "", "", ""	/* 100 ms ... 1.6 s: more than 3 s */

/* Away for long: told once, and when it is back; not a byte comes twice. */
START_TEST(away)
{
	with_input("", A("$" CHUNK(1, "a") "!", CUTS, "$" CHUNK(2, "b")
	    END(3)), "sandbox", "logs", "-f", "b", "s", NULL);
	expect(0, "ab", NULL, "/output?after=1&follow=1");
	ck_assert_msg(
	    strstr(errout, "logs: http://127.0.0.1:") == errout + 16 &&
	    strstr(errout, " is away, trying again\nworkbox sandbox logs: "
	    "connected again\n") != NULL, "%s", errout);
	with_input("", A("$" START CHUNK(1, "a") "!", CUTS, "",
	    "$" CHUNK(2, "b") END(3)), EXEC);
	expect(3, "ab", "is away, trying again\nworkbox sandbox exec: "
	    "connected again\n", NULL);
	with_input("", A(JSON("200", "{\"state\":\"running\"}"), CUTS,
	    JSON("200", "{\"state\":\"ended\",\"exitCode\":4}")), "sandbox",
	    "wait", "b", "s", NULL);
	expect(4, NULL, "is away, trying again\nworkbox sandbox wait: "
	    "connected again\n", "?wait=1 ");
}
END_TEST

START_TEST(follow)
{
	with_input("", A(JSON("201", "{\"sessionId\":\"" SID "\"}")),
	    "sandbox", "run", "--name", "n", "b", "--", "x", NULL);
	expect(0, "{\"sessionId\": \"" SID "\"}\n", "", "{\"argv\":[\"x\"],"
	    "\"name\":\"n\"}");
	with_input("", A(JSON("201", "{\"sessionId\":\"" SID "\"}"),
	    "$" CHUNK(1, "a") "!", "$" CHUNK(2, "b") END(9)), "sandbox",
	    "run", "-f", "b", "--", "x", NULL);
	expect(9, "ab", "session " SID "\n", "/output?after=1&follow=1");
	/* It cannot be followed: it runs all the same, which is told. */
	with_input("", A(JSON("201", "{\"sessionId\":\"" SID "\"}"),
	    "$" CHUNK(7, "a") "!", JSON("410", "{\"code\":\"gone\","
	    "\"detail\":\"d\"}")), "sandbox", "run", "-f", "b", "--", "x",
	    NULL);
	expect(125, "a", "left running: session " SID " of b; workbox "
	    "sandbox logs --follow --after 7 b " SID " goes on with it\n",
	    NULL);
	ck_assert_ptr_nonnull(strstr(errout, "d (gone)"));
	with_input("", A("$" START END(0)), "sandbox", "exec", "--name", "n",
	    "b", "--", "x", NULL);
	expect(0, "", "", "{\"argv\":[\"x\"],\"name\":\"n\"}");
}
END_TEST

#define S(id, st, more) "{\"sessionId\":\"" id "\",\"state\":\"" st "\"" \
	more "}"

START_TEST(ps)
{
	static const char	page[] = JSON("200", "{\"items\":["
	    S("A", "running", ",\"name\":\"n\",\"argv\":[\"x\",{\"base64\":"
	    "\"/w==\"},\"\\u001b[1m\"],\"firstSeq\":2,\"lastSeq\":9") ","
	    S("B", "ended", ",\"exitCode\":3,\"leftBehind\":0") ","
	    S("C", "ended", ",\"signal\":9,\"exitCode\":null,\"reason\":"
	    "\"oom\",\"leftBehind\":2") "],\"nextCursor\":null}");

	with_input("", A(page), "sandbox", "ps", "b", NULL);
	expect(0, "ID  STATE    EXIT  AGE  OUTPUT  LEFT  NAME  COMMAND\n"
	    "A   running  -     -    2-9     0     n     x ? \\x1b[1m\n"
	    "C   oom      137   -    -       2     -     -\n", "",
	    "GET /v1/sandboxes/b/sessions HTTP");
	with_input("", A(page), "sandbox", "ps", "-a", "b", NULL);
	ck_assert_ptr_nonnull(strstr(out, "\nB   ended    3 "));
	with_input("", A(page), "sandbox", "ps", "--format", "json", "b",
	    NULL);
	ck_assert_ptr_nonnull(strstr(out, "\"sessionId\": \"C\""));
	ck_assert_ptr_null(strstr(out, "\"sessionId\": \"B\""));
	with_input("", A(JSON("200", "{\"items\":[" S("A", "running",
	    ",\"argv\":[\"1234567890123456789012345678901234567890123456"
	    "\303\244\303\244\"]") "],\"nextCursor\":null}")), "sandbox",
	    "ps", "b", NULL);
	ck_assert_ptr_nonnull(strstr(out, "23456\303\244...\n"));
}
END_TEST

START_TEST(kills)
{
	static const char *const	bad[] = { "0", "65", "NOPE", "", "9x",
	    "-1" };
	size_t				i;

	with_input("", A(JSON("204", "")), "sandbox", "kill", "b", "s", NULL);
	expect(0, "", "", "POST /v1/sandboxes/b/sessions/s/signal HTTP/1.1 "
	    "{\"signal\":\"TERM\"}");
	with_input("", A(JSON("204", "")), "sandbox", "kill", "b", "s", "-s",
	    "SIGINT", NULL);
	expect(0, "", "", "{\"signal\":\"SIGINT\"}");
	with_input("", A(JSON("204", "")), "sandbox", "kill", "b", "s",
	    "--signal", "15", NULL);
	expect(0, "", "", "{\"signal\":15}");
	with_input("", A(JSON("409", "{\"code\":\"ended\",\"detail\":"
	    "\"no process is left\"}")), "sandbox", "kill", "b", "s", NULL);
	expect(125, "", "kill: b s: no process is left (ended)\n", NULL);
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		with_input("", A(NULL), "sandbox", "kill", "b", "s",
		    "--signal", bad[i], NULL);
		expect(125, "", "--signal: expected TERM, KILL, INT", NULL);
	}
}
END_TEST

TCase *
session_case(void)
{
	TCase	*tc = tcase_create("session");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, waits);
	tcase_add_test(tc, wait_timeout);
	tcase_add_test(tc, away);
	tcase_add_test(tc, follow);
	tcase_add_test(tc, ps);
	tcase_add_test(tc, kills);
	return tc;
}
