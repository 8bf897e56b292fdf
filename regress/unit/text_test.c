/*
 * text_test: the parts of the command line that need no server: misspelt
 * names, the columns that text takes, tables, JSON, and the client file.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Before check.h, which has a macro fail. */
#include "../../workbox/workbox.h"
#include "xmalloc.h"

#include <check.h>

/* ---- nearest ----------------------------------------------------------- */

START_TEST(edits)
{
	ck_assert_uint_eq(nearest_edits("", ""), 0);
	ck_assert_uint_eq(nearest_edits("", "abc"), 3);
	ck_assert_uint_eq(nearest_edits("abc", ""), 3);
	ck_assert_uint_eq(nearest_edits("list", "list"), 0);
	ck_assert_uint_eq(nearest_edits("lst", "list"), 1);	/* more */
	ck_assert_uint_eq(nearest_edits("lisst", "list"), 1);	/* fewer */
	ck_assert_uint_eq(nearest_edits("lost", "list"), 1);	/* another */
	ck_assert_uint_eq(nearest_edits("lsit", "list"), 1);	/* swapped */
	ck_assert_uint_eq(nearest_edits("ab", "ba"), 1);
	ck_assert_uint_eq(nearest_edits("ca", "abc"), 3);	/* not 2 */
	ck_assert_uint_eq(nearest_edits("kitten", "sitting"), 3);
	/* 48 letters are compared, 49 are not */
	ck_assert_uint_eq(nearest_edits("a",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 47);
	ck_assert_uint_eq(nearest_edits("a",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	    NEAREST_FAR);
}
END_TEST

static void
hint_is(const char *word, const char *want)
{
	static const char *const	names[] = { "memory", "name", "env",
	    "label", "pids", "cpus", "rm", "network" };
	struct nearest			n = { .count = 0 };
	char				*hint;
	size_t				 i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		nearest_try(&n, word, names[i], names[i]);
	hint = nearest_hint(&n, "--", "try");
	ck_assert_str_eq(hint, want);
	free(hint);
}

START_TEST(hints)
{
	struct nearest	 n = { .count = 0 };
	char		*hint;

	hint_is("memory", "; did you mean --memory?");
	hint_is("memroy", "; did you mean --memory?");
	hint_is("memory-limit", "; did you mean --memory?");
	hint_is("mmry", "; try");			/* two of four */
	hint_is("mem", "; did you mean --memory?");	/* its beginning */
	hint_is("m", "; try");
	hint_is("rn", "; try");				/* too short to tell */
	hint_is("frobnicate", "; try");
	hint_is("", "; try");
	/* as many as are equally near, each once, three at most */
	nearest_try(&n, "cat", "cut", "cut");
	nearest_try(&n, "cat", "car", "car");
	nearest_try(&n, "cat", "cut", "cut");
	nearest_try(&n, "cat", "bat", "bat");
	nearest_try(&n, "cat", "can", "can");
	hint = nearest_hint(&n, "", "try");
	ck_assert_str_eq(hint, "; did you mean cut, car or bat?");
	free(hint);
	/* a nearer one takes the place of all */
	nearest_try(&n, "cat", "cat", "cat");
	hint = nearest_hint(&n, "", "try");
	ck_assert_str_eq(hint, "; did you mean cat?");
	free(hint);
}
END_TEST

/* ---- characters -------------------------------------------------------- */

static void
shows(const char *src, const char *want, size_t cols)
{
	char	got[256];

	ck_assert_uint_eq(text_show(src, got, sizeof got), cols);
	ck_assert_str_eq(got, want);
}

START_TEST(utf8)
{
	static const char *const	bad[] = { "\x80", "\xc0\x80",
	    "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe2\x82",
	    "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
	    "\xf5\x80\x80\x80", "\xff" };
	uint32_t			c;
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_uint_eq(text_utf8(bad[i], &c), 0);
	ck_assert_uint_eq(text_utf8("a", &c), 1);
	ck_assert_uint_eq(c, 'a');
	ck_assert_uint_eq(text_utf8("\xc3\xa4", &c), 2);
	ck_assert_uint_eq(c, 0xe4);
	ck_assert_uint_eq(text_utf8("\xe4\xb8\x80", &c), 3);
	ck_assert_uint_eq(c, 0x4e00);
	ck_assert_uint_eq(text_utf8("\xf4\x8f\xbf\xbf", &c), 4);
	ck_assert_uint_eq(c, 0x10ffff);
}
END_TEST

START_TEST(widths)
{
	shows("plain", "plain", 5);
	shows("a\x1b[31mb\x7f", "a\\x1b[31mb\\x7f", 14);
	shows("\tx\n", "\\x09x\\x0a", 9);
	shows("\xc3\xa4", "\xc3\xa4", 1);
	shows("\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", 4);
	shows("e\xcc\x81!", "e\xcc\x81!", 2);		/* combining */
	shows("\xcc\x81!", "\\u0301!", 7);		/* with nothing */
	shows("\xc2\x9b" "31m", "\\u009b31m", 9);	/* CSI in one */
	shows("\x9b" "31m", "\\x9b31m", 7);
	shows("a\xe2\x80\xae" "b", "a\\u202eb", 8);	/* right to left */
	shows("a\xe2\x80\x8b", "a\\u200b", 7);		/* no width */
	shows("\xef\xbb\xbf", "\\ufeff", 6);
	shows("\xf3\xa0\x81\x81", "\\U000e0041", 10);	/* tags */
	shows("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", 2);
	shows("\xff\xc3", "\\xff\\xc3", 8);
}
END_TEST

/* A locale that cannot show it gets it by number. */
START_TEST(widths_ascii)
{
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C"));
	shows("\xc3\xa4 a", "\\u00e4 a", 8);
	shows("\xe6\x97\xa5", "\\u65e5", 6);
	shows("\xff", "\\xff", 4);
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
}
END_TEST

/* Every byte, in whatever locale, and whole. */
START_TEST(ascii)
{
	char	all[256], want[4 * sizeof all], *got, *p = want;
	int	i;

	for (i = 1; i < 256; i++) {
		all[i - 1] = (char)i;
		p += snprintf(p, 5, i >= 0x20 && i < 0x7f ? "%c" : "\\x%02x",
		    i);
	}
	all[255] = '\0';
	got = text_ascii(all);
	ck_assert_str_eq(got, want);
	free(got);
	got = text_ascii("\xc3\xa4 \xe2\x80\xae");
	ck_assert_str_eq(got, "\\xc3\\xa4 \\xe2\\x80\\xae");
	free(got);
}
END_TEST

/* Cut between characters, never within, and never beyond the end. */
START_TEST(cut)
{
	char	buf[64];
	size_t	size;

	for (size = 1; size < sizeof buf; size++) {
		memset(buf, 'X', sizeof buf);
		(void)text_show("\xe6\x97\xa5\x1b\xf3\xa0\x81\x81"
		    "abcdefghijklmnop", buf, size);
		ck_assert_ptr_nonnull(memchr(buf, '\0', size));
		if (size < sizeof buf - 1)
			ck_assert_int_eq(buf[size], 'X');
		ck_assert(strlen(buf) < 3 || memcmp(buf, "\xe6\x97\xa5", 3)
		    == 0);
	}
}
END_TEST

/* ---- tables and JSON --------------------------------------------------- */

static char	*printed;
static size_t	 printed_len;

START_TEST(tables)
{
	FILE		*f = open_memstream(&printed, &printed_len);
	struct table	 t;

	table_init(&t, 3, "NAME", "STATE", "LAST");
	table_add(&t, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
	table_add(&t, "READY");
	table_add(&t, "x");
	table_add(&t, "e\xcc\x81");
	table_add(&t, "");
	table_add(&t, "\x1b]0;t\x07");
	table_print(&t, f);
	(void)fclose(f);
	/* no colour: it is no terminal */
	ck_assert_str_eq(printed,
	    "NAME    STATE  LAST\n"
	    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e  READY  x\n"
	    "e\xcc\x81       -      \\x1b]0;t\\x07\n");
	free(printed);
}
END_TEST

START_TEST(json)
{
	static const char	in[] = "{\"k\":\"\xc3\xa4 \\u001b \x7f "
	    "\xc2\x9b \xe2\x80\xae \xf3\xa0\x81\x81\",\"n\":1}";
	json_t			*j = json_loads(in, 0, NULL), *again;
	char			 got[512];
	FILE			*f = freopen("text_test.out", "w+", stdout);
	size_t			 n;

	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(j);
	ck_assert_int_eq(json_print(j), 0);
	rewind(stdout);
	n = fread(got, 1, sizeof got - 1, stdout);
	got[n] = '\0';
	(void)unlink("text_test.out");
	ck_assert_str_eq(got, "{\n  \"k\": \"\xc3\xa4 \\u001B \\u007f \\u009b "
	    "\\u202e \\udb40\\udc41\",\n  \"n\": 1\n}\n");
	again = json_loads(got, 0, NULL);
	ck_assert(json_equal(j, again));
	json_decref(j);
	json_decref(again);
}
END_TEST

/* ---- the client file --------------------------------------------------- */

static struct settings	set;
static char		why[SETTINGS_WHY];

static void
good(const char *text)
{
	settings_free(&set);
	ck_assert_msg(settings_parse("f", text, strlen(text), "/home/u", &set,
	    why) == 0, "%s: %s", text, why);
}

static void
refused(const char *text, const char *want)
{
	settings_free(&set);
	ck_assert_int_eq(settings_parse("f", text, strlen(text), "/home/u",
	    &set, why), -1);
	ck_assert_str_eq(why, want);
}

START_TEST(settings_good)
{
	good("");
	ck_assert_ptr_null(set.key[SET_SERVER].val);
	good("# all\n\n  server=unix:/run/x  # why\n"
	    "\ttoken-file = '/a b#c\"'\t\n"
	    "cacert = \"~/ca.pem\"# x\ndefault-rootfs = debian");
	ck_assert_str_eq(set.key[SET_SERVER].val, "unix:/run/x");
	ck_assert_int_eq(set.key[SET_SERVER].line, 3);
	ck_assert_str_eq(set.key[SET_TOKEN_FILE].val, "/a b#c\"");
	ck_assert_str_eq(set.key[SET_CACERT].val, "/home/u/ca.pem");
	ck_assert_str_eq(set.key[SET_ROOTFS].val, "debian");
	ck_assert_int_eq(set.key[SET_ROOTFS].line, 6);
}
END_TEST

START_TEST(settings_refused)
{
	refused("sever = x\n", "f:1: there is no key \"sever\"; did you mean "
	    "server?");
	refused("\n\nrootfs = x\n", "f:3: there is no key \"rootfs\"; "
	    "expected server, token-file, cacert or default-rootfs");
	refused("server\n", "f:1: expected KEY = VALUE");
	refused("= x\n", "f:1: there is no key \"\"; expected server, "
	    "token-file, cacert or default-rootfs");
	refused("server =\n", "f:1: server: expected a value");
	refused("server = \"\"\n", "f:1: server: expected a value");
	refused("server = # x\n", "f:1: server: expected a value");
	refused("server = a b\n", "f:1: server: expected one value, between "
	    "quotes where it has blanks");
	refused("server = \"a\" b\n", "f:1: server: expected one value, "
	    "between quotes where it has blanks");
	refused("server = \"a\n", "f:1: server: expected the same quote at "
	    "the end");
	refused("server = a\"b\"\n", "f:1: server: expected quotes around the "
	    "whole value");
	refused("cacert = \"/a\\\"b\"\n", "f:1: cacert: expected no \\ "
	    "between double quotes");
	refused("cacert = \"/${HOME}/b\"\n", "f:1: cacert: expected no ${ "
	    "between double quotes");
	refused("server = a\n#\nserver = a\n", "f:3: server is given twice, "
	    "first in line 1");
	refused("cacert = x.pem\n", "f:1: cacert: expected an absolute path, "
	    "or one that begins with ~/, not \"x.pem\"");
	refused("token-file = ~u/x\n", "f:1: token-file: expected an absolute "
	    "path, or one that begins with ~/, not \"~u/x\"");
	refused("default-rootfs = ../x\n", "f:1: default-rootfs: expected a "
	    "name, of at most 63 of a-z 0-9 . _ -, not \"../x\"");
	refused("default-rootfs = ABC\n", "f:1: default-rootfs: expected a "
	    "name, of at most 63 of a-z 0-9 . _ -, not \"ABC\"");
	refused("server = a\x1b\n", "f:1: expected no control characters");
	refused("server = a\r\n", "f:1: expected no control characters");
	settings_free(&set);
	ck_assert_int_eq(settings_parse("f", "server = a\0b\n", 13, NULL,
	    &set, why), -1);
	ck_assert_str_eq(why, "f:1: expected text");
	/* no home, no ~ */
	settings_free(&set);
	ck_assert_int_eq(settings_parse("f", "cacert = ~/x", 12, NULL, &set,
	    why), -1);
}
END_TEST

/* Of any bytes either a file or one line that says why not. */
START_TEST(settings_any)
{
	static const char	letters[] =
	    "server=cacert \t#\"'\\\n~/x\0${}\xff";
	char			text[48];
	unsigned int		seed = 1, i, k, n;

	for (i = 0; i < 200000; i++) {
		n = (unsigned int)rand_r(&seed) % sizeof text;
		for (k = 0; k < n; k++)
			text[k] = letters[(unsigned int)rand_r(&seed) %
			    (sizeof letters - 1)];
		settings_free(&set);
		*why = '\0';
		if (settings_parse("f", text, n, "/h", &set, why) == -1)
			ck_assert(strncmp(why, "f:", 2) == 0);
	}
	settings_free(&set);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("text");
	TCase	*tc = tcase_create("text");
	SRunner	*sr;
	int	 failed;

	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
		printf("no locale C.UTF-8\n");
		return 77;
	}
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, edits);
	tcase_add_test(tc, hints);
	tcase_add_test(tc, utf8);
	tcase_add_test(tc, widths);
	tcase_add_test(tc, widths_ascii);
	tcase_add_test(tc, ascii);
	tcase_add_test(tc, cut);
	tcase_add_test(tc, tables);
	tcase_add_test(tc, json);
	tcase_add_test(tc, settings_good);
	tcase_add_test(tc, settings_refused);
	tcase_add_test(tc, settings_any);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
