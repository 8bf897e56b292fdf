/*
 * client_exec.c: client_test, output that comes as it is made, cut and late.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_rig.h"
#include "xmalloc.h"

static int64_t
ms_now(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

START_TEST(exec_whole)
{
	with_input("", A("$" START CHUNK(1, "a\\n") "{\"seq\":2,\"stream\":"
	    "\"stdout\",\"data\":\"AP8=\",\"encoding\":\"base64\"}\n"
	    CHUNK(3, "\\u0000z") END(7)), EXEC);
	expect(7, NULL, "", "POST /v1/sandboxes/b/exec?stream=1 HTTP/1.1 "
	    "{\"argv\":[\"x\"]}");
	ck_assert_mem_eq(out, "a\n\0\377\0z", 6);
}
END_TEST

/* Cut anywhere after it began: taken up behind the last whole chunk. */
START_TEST(exec_cut)
{
	with_input("", A("$" START CHUNK(1, "one\\n") "{\"seq\":2,!",
	    "$" CHUNK(2, "two\\n") "!", "$" CHUNK(2, "two\\n")
	    CHUNK(3, "three\\n") END(0)), EXEC);
	expect(0, "one\ntwo\nthree\n", "", "/sessions/" SID
	    "/output?after=2&follow=1");
	ck_assert_ptr_nonnull(strstr(asked, "/output?after=1&follow=1"));
}
END_TEST

/* The same as frames, which are cut where they like. */
START_TEST(exec_frames)
{
	with_input("", A("&0 0 {\"start\":{\"sessionId\":\"" SID "\"}}\n"
	    "1 1 {\"not\": \"json\n2 2 told apart\n1 3 cut", "&1 3 cut,\n"
	    "!", "&1 3 cut,\n0 0 {\"gap\":{\"first\":4,\"last\":5,"
	    "\"bytes\":9}}\n1 6 end\n0 0 {\"end\":{\"exitCode\":4}}\n"), EXEC);
	expect(4, "{\"not\": \"jsoncut,end", "told apart", "/sessions/" SID
	    "/output?after=3&follow=1");
	ck_assert_ptr_nonnull(strstr(errout, "9 bytes of output were "
	    "dropped: chunks 4 to 5"));
	ck_assert_ptr_nonnull(strstr(asked, "/output?after=2&follow=1"));
	/* a server before frames: lines; one that is none: told so */
	with_input("", A("&3 1 of no stream\n"), EXEC);
	expect(125, "", "sent a line that is no output", NULL);
}
END_TEST

START_TEST(exec_restart)
{
	with_input("", A("$" START "!", JSON("503", "{}"), JSON("502", ""),
	    "", "$" CHUNK(1, "late\\n") END(0)), EXEC);
	expect(0, "late\n", "", "after=0");
}
END_TEST

/*
 * Whether it has started is not known: it is asked again under the same key,
 * which the server takes for one request; see box/sessions.sh.
 */
START_TEST(exec_once)
{
	static const char	post[] = "POST /v1/sandboxes/b/exec?stream=1";
	const char		*p;

	with_input("", A("", "$" START END(0)), EXEC);
	expect(0, "", "", post);
	p = strstr(asked, post) + 1;
	ck_assert_ptr_nonnull(strstr(p, post));
	with_input("", A("$!", "$" START END(3)), EXEC);
	expect(3, "", "", post);
	p = strstr(asked, post) + 1;
	ck_assert_ptr_nonnull(strstr(p, post));
	/* a server that is not ready for it */
	with_input("", A(JSON("503", "{\"code\":\"busy\",\"detail\":\"no\"}"),
	    JSON("502", ""), JSON("504", ""), "$" START END(4)), EXEC);
	expect(4, "", "", post);
	/* an answer is one */
	with_input("", A(JSON("500", "{\"code\":\"internal\",\"detail\":"
	    "\"no\"}"), "$" START END(0)), EXEC);
	expect(125, "", "no", post);
	p = strstr(asked, post) + 1;
	ck_assert_ptr_null(strstr(p, post));
}
END_TEST

#define CUT201	"HTTP/1.1 201 X\r\nContent-Length: 900\r\n\r\n{\"name\":"
#define BOTH	A(CUT201, "", JSON("503", "{\"code\":\"stopping\"}"),	\
	JSON("201", "{\"name\":\"a\",\"sessionId\":\"" SID "\"}"))

/* What makes something is asked again likewise, and always with its key. */
START_TEST(made_once)
{
	with_input("", BOTH, "sandbox", "create", NULL);
	expect(0, NULL, "", "POST /v1/sandboxes HTTP/1.1 {}\n"
	    "POST /v1/sandboxes HTTP/1.1 {}\nPOST /v1/sandboxes HTTP/1.1 {}\n"
	    "POST /v1/sandboxes HTTP/1.1 {}\n");
	ck_assert_ptr_nonnull(strstr(out, "\"name\": \"a\""));
	with_input("", BOTH, "sandbox", "run", "b", "--", "x", NULL);
	expect(0, "{\"sessionId\": \"" SID "\"}\n", "", NULL);
	/* a full host is told at once */
	with_input("", A(JSON("503", "{\"code\":\"no-room\",\"detail\":"
	    "\"full\"}"), JSON("201", "{}")), "sandbox", "create", NULL);
	expect(125, "", "create: full (no-room)\n", NULL);
	/* what it answers when it is asked again is not all that is told */
	with_input("", A(JSON("503", "{\"code\":\"stopping\",\"detail\":"
	    "\"goes down\"}"), JSON("503", "{\"detail\":\"later\"}"),
	    JSON("500", "{\"code\":\"create-failed\",\"detail\":\"not "
	    "then\"}")), "sandbox", "create", NULL);
	expect(125, "", "create: not then (create-failed)\n", NULL);
	ck_assert_ptr_nonnull(strstr(errout, " answered first: goes down "
	    "(stopping)\n"));
	ck_assert_ptr_null(strstr(errout, "later"));
	with_input("", A(JSON("503", "{\"code\":\"c\",\"detail\":\"d\"}"),
	    JSON("500", "{\"code\":\"c\",\"detail\":\"d\"}")), "sandbox",
	    "create", NULL);
	expect(125, "", "create: d (c)\n", NULL);
	ck_assert_ptr_null(strstr(errout, "first"));
	/* and so is one that is no server of ours, or is not there */
	with_input("", A("", "SSH-2.0\r\n", JSON("201", "{}")), "sandbox",
	    "create", NULL);
	expect(125, "", "ask http://127.0.0.1:", NULL);
}
END_TEST

/* Breaks of one stream without a byte between; when it ends is again_test's. */
START_TEST(exec_quiet)
{
	with_input("", A("$" START "!", "$!", "$", "$!", "", "", "$!",
	    "$" CHUNK(1, "a") END(0)), EXEC);
	expect(0, "a", NULL, "output?after=0&follow=1");
	with_input("", A("$" CHUNK(1, "a") "!", "$!", "$", "$!", "", "", "$!",
	    "$" CHUNK(2, "b") END(0)), "sandbox", "logs", "-f", "b", "s",
	    NULL);
	expect(0, "ab", NULL, "output?after=1&follow=1");
}
END_TEST

/* Nothing that comes from a server becomes part of a command that is told. */
START_TEST(exec_bad_id)
{
	static const char *const	bad[] = { "", "$(id)", "x;id", "-x",
	    "01K8AAAAAAAAAAAAAAAAAAAAAA x" };
	char				text[200];
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		(void)snprintf(text, sizeof text,
		    "${\"start\":{\"sessionId\":\"%s\"}}\n!", bad[i]);
		with_input("", A(text), EXEC);
		expect(125, "", "sent a line that is no output\n", NULL);
		ck_assert_ptr_null(strstr(errout, "left running"));
		(void)snprintf(text, sizeof text, JSON("201",
		    "{\"sessionId\":\"%s\"}"), bad[i]);
		with_input("", A(text), "sandbox", "run", "-f", "b", "--", "x",
		    NULL);
		expect(125, "", "answered without the session's id\n", NULL);
		ck_assert_ptr_null(strstr(errout, "left running"));
	}
}
END_TEST

START_TEST(exec_gap)
{
	with_input("", A("$" START CHUNK(1, "a") "{\"gap\":{\"first\":2,"
	    "\"last\":9,\"bytes\":100}}\n" CHUNK(10, "b") END(0)), EXEC);
	expect(0, "ab", "100 bytes of output were dropped: "
	    "chunks 2 to 9\n", NULL);
}
END_TEST

/* One that ends before what was seen moves nothing back, and is not told. */
START_TEST(exec_gap_back)
{
	static const char *const	bad[] = { "{\"first\":2,\"last\":4,",
	    "{\"first\":5,\"last\":5,", "{\"first\":1,\"last\":-1,",
	    "{" };
	char				text[400];
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		(void)snprintf(text, sizeof text, "$" START CHUNK(5, "a")
		    "{\"gap\":%s\"bytes\":100}}\n!", bad[i]);
		with_input("", A(text, "$" CHUNK(6, "b") END(0)), EXEC);
		expect(0, "ab", "", "/output?after=5&follow=1");
		(void)snprintf(text, sizeof text, "$" CHUNK(5, "a")
		    "{\"gap\":%s\"bytes\":100}}\n!", bad[i]);
		with_input("", A(text, "$" CHUNK(6, "b") END(0)), "sandbox",
		    "logs", "-f", "b", "s", NULL);
		expect(0, "ab", "", "/output?after=5&follow=1");
	}
}
END_TEST

/* What was seen is no progress: the waits get longer, to 800 ms. */
START_TEST(exec_no_progress)
{
	static const char	old[] = "$" CHUNK(3, "a")
	    "{\"gap\":{\"first\":1,\"last\":2,\"bytes\":9}}\n!";
	int64_t			begun = ms_now();

	with_input("", A("$" START CHUNK(3, "a") "!", old, old, old,
	    "$" CHUNK(4, "b") END(0)), EXEC);
	expect(0, "ab", NULL, NULL);
	ck_assert_int_ge(ms_now() - begun, 1500);
	begun = ms_now();
	with_input("", A(old, old, old, old, "$" CHUNK(4, "b") END(0)),
	    "sandbox", "logs", "-f", "b", "s", NULL);
	expect(0, "ab", NULL, NULL);
	ck_assert_int_ge(ms_now() - begun, 1500);
}
END_TEST

/* The reader has gone, and the server goes: the signal is sent once. */
START_TEST(exec_no_reader)
{
	const char	*p;
	int64_t		 begun = ms_now();

	no_reader = 1;
	with_input("", A("$" START CHUNK(1, "a") "~!", ""), EXEC);
	expect(141, "", "left running: session " SID " of b", "/signal "
	    "HTTP/1.1 {\"signal\":\"PIPE\"}");
	ck_assert_int_lt(ms_now() - begun, 30000);
	with_input("", A("$" START CHUNK(1, "a") "~~", JSON("503", "{}"),
	    JSON("200", "{}")), EXEC);
	expect(141, "", "left running", NULL);
	p = strstr(asked, "/signal ");
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_null(strstr(p + 1, "/signal "));
	with_input("", A("$" START CHUNK(1, "a") "~" END(0), JSON("200",
	    "{}")), EXEC);
	expect(141, "", "", NULL);
	no_reader = 0;
}
END_TEST

START_TEST(exec_nonsense)
{
	static const char *const	bad[] = {
		"$" START "nonsense\n",
		"$" START "{\"seq\":1,\"stream\":\"stdin\",\"data\":\"\"}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":7}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":\"A\","
		    "\"encoding\":\"base64\"}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":\"A=B=\","
		    "\"encoding\":\"base64\"}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\","
		    "\"data\":\"AAA\001\",\"encoding\":\"base64\"}\n",
	};
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		with_input("", A(bad[i]), EXEC);
		expect(125, "", "sent a line that is no output", NULL);
	}
	/* What a later server may add is no fault. */
	with_input("", A("$" START "{\"new\":1}\n" END(0)), EXEC);
	expect(0, "", "", NULL);
}
END_TEST

START_TEST(exec_long_line)
{
	char	*text = xmalloc((2 << 20) + 64);
	size_t	 n = strlen("$" START);

	memcpy(text, "$" START, n);
	memset(text + n, 'x', 2 << 20);
	text[n + (2 << 20)] = '\0';
	with_input("", A(text), EXEC);
	expect(125, "", "sent a line that is too long", NULL);
	free(text);
}
END_TEST

START_TEST(exec_codes)
{
	with_input("", A(JSON("422", "{\"code\":\"command-not-found\","
	    "\"detail\":\"x\"}")), EXEC);
	expect(127, "", "x (command-not-found)", NULL);
	with_input("", A(JSON("422", "{\"code\":\"command-not-executable\","
	    "\"detail\":\"x\"}")), EXEC);
	expect(126, "", NULL, NULL);
	with_input("", A("$" START "{\"end\":{\"sessionId\":\"s\","
	    "\"exitCode\":null,\"signal\":9,\"reason\":\"oom\"}}\n"), EXEC);
	expect(137, "", "session s: oom", NULL);
	with_input("", A("$" START "{\"end\":{\"sessionId\":\"s\","
	    "\"exitCode\":null,\"signal\":null,\"reason\":\"lost\"}}\n"),
	    EXEC);
	expect(125, "", "session s: lost", NULL);
}
END_TEST

START_TEST(exec_input)
{
	with_input("hello\n", A("$" START END(0)), EXEC);
	expect(0, "", "", "{\"argv\":[\"x\"],\"stdin\":\"hello\\n\"}");
	with_input("\377\377", A("$" START "~" END(0), JSON("200",
	    "{\"offset\":2}")), EXEC);
	expect(0, "", "", "\"stdinOpen\":true");
	ck_assert_ptr_nonnull(strstr(asked, "/stdin?offset=0&eof=1"));
	/* Taken in part, or taken with the answer lost: the rest, once. */
	with_input("\377abc", A("$" START "~~" END(0), JSON("409",
	    "{\"code\":\"bad-offset\",\"expected\":2}"), JSON("200",
	    "{\"offset\":4}")), EXEC);
	expect(0, "", "", "/stdin?offset=2&eof=1 HTTP/1.1 bc");
	with_input("\377abc", A("$" START "~~" END(0), "", JSON("200",
	    "{\"offset\":4}")), EXEC);
	expect(0, "", "", "/stdin?offset=0&eof=1");
	/* A command that reads no more is no fault. */
	with_input("\377", A("$" START "~" END(3), JSON("409",
	    "{\"code\":\"ended\",\"detail\":\"x\"}")), EXEC);
	expect(3, "", "", NULL);
}
END_TEST

TCase *
exec_case(void)
{
	TCase	*tc = tcase_create("exec");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, exec_whole);
	tcase_add_test(tc, exec_cut);
	tcase_add_test(tc, exec_frames);
	tcase_add_test(tc, exec_restart);
	tcase_add_test(tc, exec_once);
	tcase_add_test(tc, made_once);
	tcase_add_test(tc, exec_quiet);
	tcase_add_test(tc, exec_bad_id);
	tcase_add_test(tc, exec_gap);
	tcase_add_test(tc, exec_gap_back);
	tcase_add_test(tc, exec_no_progress);
	tcase_add_test(tc, exec_no_reader);
	tcase_add_test(tc, exec_nonsense);
	tcase_add_test(tc, exec_long_line);
	tcase_add_test(tc, exec_codes);
	tcase_add_test(tc, exec_input);
	return tc;
}
