/*
 * client_complete.c: client_test, words that are not whole, and wrong ones.
 */
#include <string.h>

#include "client_rig.h"

START_TEST(completes)
{
	static const char	nasty[] = JSON("200", "{\"items\":[{\"name\":"
	    "\"good\",\"state\":\"RE\\u001bADY\"},{\"name\":\"$(id)\"},"
	    "{\"name\":\"a b\"},{\"name\":\"\\u001b\"},{\"name\":\"x;y\"},"
	    "{\"name\":\"--yes\"},{\"name\":\"\"}],\"nextCursor\":null}");

	/* Names that are more than a word to a shell are left out. */
	with_input("", A(nasty), "complete", "--", "sandbox", "rm", "", NULL);
	expect(0, "good\tRE\\x1bADY\n", "", "GET /v1/sandboxes ");
	with_input("", A(JSON("200", "{\"items\":[{\"name\":\"n1\",\"state\":"
	    "\"ended\"},{\"name\":null,\"sessionId\":\"" SID "\"}],"
	    "\"nextCursor\":null}")), "complete", "--", "sandbox", "wait",
	    "b", "", NULL);
	expect(0, "n1\tended\n" SID "\t\n", "",
	    "GET /v1/sandboxes/b/sessions ");
	with_input("", A(nasty), "complete", "--", "sandbox", "wait", "--",
	    "-", NULL);
	expect(0, "", "", "GET /v1/sandboxes ");
	with_input("", A(nasty), "complete", "--", "sandbox", "wait", "--",
	    "b", "", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes/b/sessions ");
	/* The server that the line names is asked, not another. */
	with_input("", A(nasty), "complete", "--", "sandbox", "rm",
	    "--server", "unix:/nonexistent", "", NULL);
	expect(0, "", "", NULL);
	ck_assert_str_eq(asked, "");
	/* Nothing is told, whatever is wrong. */
	with_input("", A(JSON("401", "{}")), "complete", "--", "sandbox",
	    "inspect", "", NULL);
	expect(0, "", "", NULL);
	client_file = "nonsense\n";
	with_input("", A(nasty), "complete", "--", "sandbox", "rm", "", NULL);
	expect(0, "", "", NULL);
}
END_TEST

#define WORDS(...)	{ "complete", "--", __VA_ARGS__, NULL }

/* Nobody is asked. */
START_TEST(completes_words)
{
	static const struct {
		const char	*words[10];
		const char	*want;		/* all of it, or NULL */
		const char	*with, *without;	/* parts, or NULL */
	}	t[] = {
		{ WORDS("sandbox", "l"), NULL,
		    "list\tList the sandboxes\n", "rm\t" },
		{ WORDS("sandbox", "list", "--format", ""),
		    "table\t\njson\t\n", NULL, NULL },
		{ WORDS("sandbox", "ls", "--format=j"),
		    "--format=json\t\n", NULL, NULL },
		/* One that was given is not given again; one that may be is. */
		{ WORDS("sandbox", "create", "--name", "x", "--label", "a=b",
		    "--"), NULL, "--label\t", "--name\t" },
		{ WORDS("sandbox", "list", "--state", "Q"),
		    "QUARANTINED\t\n", NULL, NULL },
		{ WORDS("sandbox", "list", "--token-file", ""),
		    ":files\n", NULL, NULL },
		/* What runs in the sandbox is not this host's to know. */
		{ WORDS("sandbox", "exec", "b", "--", "l"), "", NULL, NULL },
	};
	size_t	i;

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		with_words("", A(NULL), t[i].words);
		expect(0, t[i].want, "", NULL);
		if (t[i].with != NULL)
			ck_assert_ptr_nonnull(strstr(out, t[i].with));
		if (t[i].without != NULL)
			ck_assert_ptr_null(strstr(out, t[i].without));
	}
	with_input("", A(NULL), "complete", "--", "help", "sandbox", "proo",
	    NULL);
	ck_assert(strncmp(out, "proof\t", 6) == 0);
	with_input("", A(NULL), "complete", NULL);
	ck_assert_ptr_nonnull(strstr(out, "sandbox\t\n"));
	ck_assert_ptr_null(strstr(out, "complete"));
}
END_TEST

/* What was meant is asked, where anything is near to it. */
START_TEST(misspelt)
{
	static const struct { const char *a, *b, *want; }	t[] = {
		{ "sandbox", "lst", "\"sandbox lst\"; did you mean workbox "
		    "sandbox list?\n" },
		{ "sandbxo", "list", "\"sandbxo list\"; did you mean workbox "
		    "sandbox list?\n" },
		{ "sandbx", NULL, "\"sandbx\"; did you mean workbox "
		    "sandbox?\n" },
		{ "create", NULL, "\"create\"; did you mean workbox sandbox "
		    "create?\n" },
		{ "evnets", "tail", "\"evnets tail\"; did you mean workbox "
		    "events tail?\n" },
		{ "frobnicate", NULL, "\"frobnicate\"; try workbox --help\n" },
		{ "sandbox", "--json", "expected a command of sandbox before "
		    "--json; try workbox sandbox --help\n" },
	};
	size_t							i;

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		with_input("", A(NULL), t[i].a, t[i].b, NULL);
		expect(125, "", t[i].want, NULL);
	}
	with_input("", A(NULL), "sandbox", "create", "--memroy", "1G", NULL);
	expect(125, "", "unknown option --memroy; did you mean --memory?\n",
	    NULL);
	with_input("", A(NULL), "sandbox", "create", "-name", "x", NULL);
	expect(125, "", "unknown option -name; did you mean --name?\n", NULL);
	with_input("", A(NULL), "sandbox", "list", "--format", "xml", NULL);
	expect(125, "", "--format: expected table or json, not \"xml\"\n",
	    NULL);
}
END_TEST

TCase *
complete_case(void)
{
	TCase	*tc = tcase_create("complete");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, completes);
	tcase_add_test(tc, completes_words);
	tcase_add_test(tc, misspelt);
	return tc;
}
