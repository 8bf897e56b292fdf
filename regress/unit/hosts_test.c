/*
 * hosts_test.c: lists of hosts as the command line reads them, and the presets
 * that come with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "xmalloc.h"

/* Before check.h, which has a macro fail. */
#include "../../workbox/workbox.h"

#include <check.h>

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static FILE	*real;			/* standard error */
static char	*buf;			/* what is written there instead */
static size_t	 nbuf;
static char	*said;			/* the same, after said_by() */
static json_t	*list;

static void
begin(void)
{
	real = stderr;
	stderr = open_memstream(&buf, &nbuf);
	ck_assert_ptr_nonnull(stderr);
	list = json_array();
}

static void
end(void)
{
	(void)fclose(stderr);		/* memory */
	stderr = real;
	free(buf);
	free(said);
	json_decref(list);
}

/* The call's result; what it said is in said. */
static int
said_by(int rc)
{
	ck_assert_int_eq(fclose(stderr), 0);
	free(said);
	said = buf;
	stderr = open_memstream(&buf, &nbuf);
	ck_assert_ptr_nonnull(stderr);
	return rc;
}

static int
text(const char *s, size_t len)
{
	return said_by(hosts_text(list, "F", s, len));
}

static const char *
item(size_t i)
{
	const char	*s = json_string_value(json_array_get(list, i));

	return s == NULL ? "(none)" : s;
}

START_TEST(text_lines)
{
	static const char	s[] = "# head\n\na.example\n \t "
	    "b.example:22\t\r\nc.example#why\n  # more\n#\n"
	    "*.d.example:1,2  # two\n"
	    "https://is.not.judged/\nlast.example";

	ck_assert_int_eq(text(s, strlen(s)), 0);
	ck_assert_uint_eq(json_array_size(list), 6);
	ck_assert_str_eq(item(0), "a.example");
	ck_assert_str_eq(item(1), "b.example:22");
	ck_assert_str_eq(item(2), "c.example");
	ck_assert_str_eq(item(3), "*.d.example:1,2");
	ck_assert_str_eq(item(4), "https://is.not.judged/");
	ck_assert_str_eq(item(5), "last.example");
	ck_assert_int_eq(text("", 0), 0);
	ck_assert_uint_eq(json_array_size(list), 6);
	ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(text_long)
{
	char	s[1024];
	size_t	n;

	for (n = 383; n <= 384; n++) {
		memset(s, 'a', sizeof(s));
		memcpy(s, "\n\n", 2);
		s[2 + n] = '#';		/* comments are not counted */
		ck_assert_int_eq(text(s, sizeof(s)), n == 383 ? 0 : EXIT_OURS);
	}
	ck_assert_uint_eq(strlen(item(0)), 383);
	ck_assert_ptr_nonnull(strstr(said, "F:3: expected HOST[:PORT"));
	ck_assert_ptr_nonnull(strstr(said, "at most 383 bytes, not 384\n"));
}
END_TEST

START_TEST(text_bad)
{
	ck_assert_int_eq(text("a\nb\0c\n", 6), EXIT_OURS);
	ck_assert_ptr_nonnull(strstr(said, "F:2: expected UTF-8\n"));
	ck_assert_int_eq(text("a\n\377\n", 4), EXIT_OURS);
	ck_assert_ptr_nonnull(strstr(said, "F:2: expected UTF-8\n"));
}
END_TEST

START_TEST(text_many)
{
	char	*s = xmalloc(2 * ALLOW_MAX + 2);
	size_t	 i;

	for (i = 0; i < 2 * ALLOW_MAX + 2; i += 2)
		memcpy(s + i, "a\n", 2);
	ck_assert_int_eq(text(s, 2 * ALLOW_MAX), 0);
	ck_assert_uint_eq(json_array_size(list), ALLOW_MAX);
	ck_assert_str_eq(said, "");
	json_array_clear(list);
	ck_assert_int_eq(text(s, 2 * ALLOW_MAX + 2), EXIT_OURS);
	ck_assert_ptr_nonnull(strstr(said, "F:10001: expected at most 10000 "
	    "entries in all\n"));
	free(s);
}
END_TEST

/* ---- presets ------------------------------------------------------------- */

static const char *const	presets[] = { "crates", "debian", "github",
    "go", "npm", "pypi" };

/* Each entry is canonical, none comes twice, and the source is told. */
START_TEST(preset_whole)
{
	const char	*name = presets[_i];
	auto_free char	*path = xasprintf("%s/%s", WB_PRESETDIR, name);
	auto_free char	*s = NULL;
	struct allow	*a = allow_new();
	char		 canon[ALLOW_TEXT];
	const char	*why = "";
	size_t		 i, len;

	ck_assert_int_eq(hosts_preset(list, WB_PRESETDIR, name), 0);
	ck_assert_uint_ge(json_array_size(list), 1);
	for (i = 0; i < json_array_size(list); i++) {
		ck_assert_msg(allow_canon(item(i), canon, &why) == 0,
		    "%s: %s: %s", name, item(i), why);
		ck_assert_str_eq(canon, item(i));
		ck_assert_int_eq(allow_add(a, item(i)), 0);
	}
	allow_done(a);
	ck_assert_uint_eq(allow_count(a), json_array_size(list));
	allow_free(a);
	s = text_file(path, 65536, &len);
	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_nonnull(strstr(s, "\n# https://"));
	ck_assert_ptr_nonnull(strstr(s, "\n# as of 20"));
}
END_TEST

/* Those that the page tells of, and no others. */
START_TEST(preset_names)
{
	auto_free char	*all = hosts_presets(WB_PRESETDIR, " ");
	auto_free char	*none = hosts_presets("/nonexistent", " ");

	ck_assert_str_eq(none, "");
	ck_assert_str_eq(all, "crates debian github go npm pypi");
}
END_TEST

START_TEST(preset_bad)
{
	static const char *const	names[] = { "nope", "",
	    "../presets/npm", "/etc/passwd", ".", "..", "npm/", "NPM" };
	size_t				i;

	ck_assert_int_eq(said_by(hosts_preset(list, WB_PRESETDIR,
	    names[_i])), EXIT_OURS);
	for (i = 0; i < COUNT(presets); i++)
		ck_assert_ptr_nonnull(strstr(said, presets[i]));
	ck_assert_uint_eq(json_array_size(list), 0);
}
END_TEST

/* ---- options ------------------------------------------------------------- */

static const struct opt		opts[] = { HOSTS_OPTS,
    { NULL, NULL, NULL, 0, 0 } };
static const struct cmd		cmd = { .name = "x", .operands = "", .doc = "",
    .opts = opts };

/* The body that `words' make, with --network KIND or NULL. */
static json_t *
body(const char *kind, char **words, int n, int want)
{
	json_t		*b = json_object();
	struct args	 a;

	ck_assert_int_eq(args_parse(&cmd, n, words, &a), 0);
	ck_assert_int_eq(said_by(hosts_list(&a, kind, b)), want);
	free(a.given);
	free(a.operand);
	return b;
}

START_TEST(options)
{
	char	*words[] = { (char[]){ "--preset" }, (char[]){ "npm" },
	    (char[]){ "--allow" }, (char[]){ "a.example" },
	    (char[]){ "--preset=pypi" } };
	json_t	*b = body(NULL, words, 5, 0);

	ck_assert_str_eq(json_str(b, "network"), "allowlist");
	json_decref(list);
	list = json_incref(json_object_get(b, "allow"));
	ck_assert_uint_eq(json_array_size(list), 4);
	ck_assert_str_eq(item(0), "a.example");
	ck_assert_str_eq(item(1), "registry.npmjs.org:443");
	ck_assert_str_eq(said, "");
	json_decref(b);
	b = body("none", words, 5, EXIT_OURS);
	ck_assert_ptr_nonnull(strstr(said, "--allow goes with the network "
	    "allowlist, not with \"none\"\n"));
	ck_assert_uint_eq(json_object_size(b), 0);
	json_decref(b);
	b = body("egress", NULL, 0, 0);
	ck_assert_uint_eq(json_object_size(b), 0);
	json_decref(b);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("hosts");
	TCase	*t = tcase_create("hosts");
	SRunner	*r;
	int	 bad;

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, text_lines);
	tcase_add_test(t, text_long);
	tcase_add_test(t, text_bad);
	tcase_add_test(t, text_many);
	tcase_add_loop_test(t, preset_whole, 0, COUNT(presets));
	tcase_add_test(t, preset_names);
	tcase_add_loop_test(t, preset_bad, 0, 8);
	tcase_add_test(t, options);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	bad = srunner_ntests_failed(r);
	srunner_free(r);
	return bad == 0 ? 0 : 1;
}
