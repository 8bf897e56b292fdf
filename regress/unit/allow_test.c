/*
 * allow_test.c: entries of a list of names as people write them, what is
 * refused and why, and what a list lets through.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allow.h"
#include "xmalloc.h"

#ifdef __SANITIZE_ADDRESS__
extern size_t	__sanitizer_get_current_allocated_bytes(void);
#endif

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define PORTS_16	"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"
#define LABEL_63	"a23456789012345678901234567890123456789012345678901" \
			"234567890123"

#define UE_10	"\303\274\303\274\303\274\303\274\303\274\303\274\303" \
			"\274\303\274\303\274\303\274"
#define UE_30	UE_10 UE_10 UE_10
#define UE_L8	"\303\274.\303\274.\303\274.\303\274.\303\274.\303\274." \
			"\303\274.\303\274."

/* ---- canonical forms ----------------------------------------------------- */

START_TEST(canon_good)
{
	static const struct { const char *text, *canon; } t[] = {
		{ "example.com", "example.com" },
		{ "Example.COM.", "example.com" },
		{ "localhost", "localhost" },
		{ "a-b.3com.x9", "a-b.3com.x9" },
		{ "r3---sn-x.example.com", "r3---sn-x.example.com" },
		{ "my_host.example.com", "my_host.example.com" },
		{ "1.2.3.4.example", "1.2.3.4.example" },
		{ "1.2.3.4x", "1.2.3.4x" },
		{ "*.Example.com", "*.example.com" },
		{ "*.example.com.:8443", "*.example.com:8443" },
		{ "*.a.b.c", "*.a.b.c" },
		/* ports */
		{ "example.com:443", "example.com:443" },
		{ "example.com:443,80", "example.com" },
		{ "example.com:80,443,80", "example.com" },
		{ "example.com:80", "example.com:80" },
		{ "example.com:9,65535,9,1", "example.com:1,9,65535" },
		{ "example.com:" PORTS_16, "example.com:" PORTS_16 },
		/* IDNA */
		{ "b\303\274cher.example", "xn--bcher-kva.example" },
		{ "B\303\234CHER.example", "xn--bcher-kva.example" },
		{ "bu\314\210cher.example", "xn--bcher-kva.example" },
		{ "XN--Bcher-KVA.example", "xn--bcher-kva.example" },
		{ "fa\303\237.de", "xn--fa-hia.de" },
		{ "\344\276\213\343\200\202\346\265\213\350\257\225",
		    "xn--fsq.xn--0zwm56d" },
		{ "\357\275\205xample.com", "example.com" },
		{ "example.com\343\200\202:25", "example.com:25" },
		{ "*.b\303\274cher.example", "*.xn--bcher-kva.example" },
		{ LABEL_63 ".x", LABEL_63 ".x" },
	};
	char		got[ALLOW_TEXT], again[ALLOW_TEXT];
	const char	*why;
	size_t		i;

	for (i = 0; i < COUNT(t); i++) {
		why = "";
		ck_assert_msg(allow_canon(t[i].text, got, &why) == 0,
		    "%s: %s", t[i].text, why);
		ck_assert_str_eq(got, t[i].canon);
		ck_assert_int_eq(allow_canon(got, again, &why), 0);
		ck_assert_str_eq(again, got);
	}
}
END_TEST

#define ADDRESS	"an address: for addresses there is the network egress, with " \
		"deny and except of workbox.conf(5)"

START_TEST(canon_bad)
{
	static const struct { const char *text, *why; } t[] = {
		{ "", "expected HOST[:PORT[,PORT...]]" },
		/* addresses, in every spelling */
		{ "1.2.3.4", ADDRESS }, { "1.2.3.4.", ADDRESS },
		{ "1.2.3.4:443", ADDRESS }, { "10.0.0.0/8", ADDRESS },
		{ "127.1", ADDRESS }, { "2130706433", ADDRESS },
		{ "0x7f.1", ADDRESS }, { "0X7F000001", ADDRESS },
		{ "0177.0.0.01", ADDRESS }, { "0", ADDRESS },
		{ "0x", ADDRESS }, { "256.256.256.256", ADDRESS },
		{ "1.2.3.4.5", ADDRESS }, { "example.123", ADDRESS },
		{ "*.2.3.4", ADDRESS },
		{ "\357\274\221.\357\274\222.3.4", ADDRESS },
		{ "127\343\200\2020\343\200\2020\343\200\2021", ADDRESS },
		{ "::1", ADDRESS }, { "[::1]", ADDRESS },
		{ "[2001:db8::1]:443", ADDRESS },
		{ "2001:DB8::1", ADDRESS }, { "fe80::1%eth0", ADDRESS },
		{ "2001:db8::/32", ADDRESS }, { "::ffff:10.0.0.1", ADDRESS },
		/* what is more than a host */
		{ "https://example.com", "without a scheme" },
		{ "https://example.com:443/x", "without a scheme" },
		{ "user@example.com", "without a user" },
		{ "user:pass@example.com:443", "without a user" },
		{ "example.com/", "without a path" },
		{ "example.com:443/x", "without a path" },
		{ "example.com?x", "without a path" },
		{ "example.com\\x", "without a path" },
		{ " example.com", "no blanks" },
		{ "example.com ", "no blanks" },
		{ "example.com: 443", "no blanks" },
		{ "exam\tple.com", "no blanks" }, { "a\x7f.com", "no blanks" },
		{ "example.com\n", "no blanks" },
		/* stars */
		{ "*", "the network egress" },
		{ "*:443", "the network egress" },
		{ "*.com", "two labels at least behind *." },
		{ "*.com.:443", "two labels at least behind *." },
		{ "*.", "the name of a host in front" },
		{ "a.*.b", "only as *. at the beginning" },
		{ "*a.example.com", "only as *. at the beginning" },
		{ "*.*.example.com", "only as *. at the beginning" },
		{ "a.*", "only as *. at the beginning" },
		{ "\357\274\212.example.com", "expected" },
		/* ports */
		{ "example.com:", "ports from 1 to 65535" },
		{ "example.com:0", "ports from 1 to 65535" },
		{ "example.com:65536", "ports from 1 to 65535" },
		{ "example.com:4294967739", "ports from 1 to 65535" },
		{ "example.com:0443", "without a 0 in front" },
		{ "example.com:+443", "ports from 1 to 65535" },
		{ "example.com:443,", "ports from 1 to 65535" },
		{ "example.com:,443", "ports from 1 to 65535" },
		{ "example.com:80,,443", "ports from 1 to 65535" },
		{ "example.com:80-443", "ports from 1 to 65535" },
		{ "example.com:https", "ports from 1 to 65535" },
		{ "example.com:80:443", "ports from 1 to 65535" },
		{ "example.com:" PORTS_16 ",17", "at most 16 ports" },
		{ ":443", "the name of a host in front" },
		/* names */
		{ ".", "a label between two dots" },
		{ ".example.com", "a label between two dots" },
		{ "example..com", "a label between two dots" },
		{ "example.com..", "a label between two dots" },
		{ "-a.example.com", "without a hyphen" },
		{ "a-.example.com", "without a hyphen" },
		{ "a.b-", "without a hyphen" },
		{ LABEL_63 "4.x", "labels of at most 63 bytes" },
		{ LABEL_63 "." LABEL_63 "." LABEL_63 "." LABEL_63,
		    "a name of at most 253 bytes" },
		/* these are short in UTF-8 */
		{ UE_30 UE_30 ".x", "labels of at most 63 bytes" },
		{ UE_L8 UE_L8 UE_L8 UE_L8 "x",
		    "a name of at most 253 bytes" },
		{ "exam!ple.com", "letters, digits and hyphens" },
		{ "example,com", "letters, digits and hyphens" },
		{ "example.com;443", "letters, digits and hyphens" },
		{ "\357\274\217etc.example", "expected" },	/* full / */
		{ "a\357\274\232" "443.example", "expected" },	/* full : */
		{ "\342\204\200.example", "expected" },		/* a/c */
		{ "\302\255", "expected" },			/* nothing */
		{ "\303\274\377.example", "a form in the DNS" },
		{ "\355\240\200.example", "a form in the DNS" },
		{ "xn--\303\274.example", "a form in the DNS" },
		{ "xn--a.example", "a form in the DNS" },
		{ "xn--.example", "a form in the DNS" },
	};
	char		got[ALLOW_TEXT] = "as it was";
	const char	*why;
	size_t		i;

	for (i = 0; i < COUNT(t); i++) {
		why = "";
		ck_assert_msg(allow_canon(t[i].text, got, &why) == -1,
		    "%s: %s", t[i].text, got);
		ck_assert_msg(strncmp(why, "expected ", 9) == 0 &&
		    strstr(why, t[i].why) != NULL, "%s: %s", t[i].text, why);
		ck_assert_str_eq(got, "as it was");
	}
}
END_TEST

/* At the bounds of a name's length, with and without a star, in bytes. */
START_TEST(canon_long)
{
	char		text[1024] = "*.", got[ALLOW_TEXT];
	const char	*why;
	size_t		n;

	for (n = 0; n < 251; n++)
		text[2 + n] = n % 50 == 49 ? '.' : 'a';
	ck_assert_int_eq(allow_canon(text, got, &why), 0);
	ck_assert_uint_eq(strlen(got), 253);
	(void)strncat(text, "a", 2);
	ck_assert_int_eq(allow_canon(text, got, &why), -1);
	ck_assert_ptr_nonnull(strstr(why, "253 bytes"));
	ck_assert_int_eq(allow_canon(text + 2, got, &why), 0);
	(void)strncat(text, "aa", 3);
	ck_assert_int_eq(allow_canon(text + 2, got, &why), -1);
	ck_assert_ptr_nonnull(strstr(why, "253 bytes"));
	memset(text, 'a', 384);
	text[384] = '\0';
	ck_assert_int_eq(allow_canon(text, got, &why), -1);
	ck_assert_ptr_nonnull(strstr(why, "383 bytes"));
}
END_TEST

/* ---- names --------------------------------------------------------------- */

START_TEST(name_forms)
{
	static const struct { const char *text, *name; } t[] = {
		{ "Example.COM.", "example.com" }, { "a", "a" },
		{ "_a._tcp.example", "_a._tcp.example" }, { "a.b0", "a.b0" },
		{ "xn--a.example", "xn--a.example" }, { "1.b", "1.b" },
		{ "", NULL }, { ".", NULL }, { "a..", NULL }, { ".a", NULL },
		{ "a..b", NULL }, { "-a", NULL }, { "a-", NULL },
		{ "a b", NULL }, { "a:b", NULL }, { "*.a.b", NULL },
		{ "b\303\274cher", NULL }, { LABEL_63, LABEL_63 },
		{ LABEL_63 "4", NULL },
	};
	char		got[ALLOW_NAME] = "as it was";
	size_t		i;

	for (i = 0; i < COUNT(t); i++)
		if (t[i].name != NULL) {
			ck_assert_msg(allow_name(t[i].text, strlen(t[i].text),
			    got) == 0, "%s", t[i].text);
			ck_assert_str_eq(got, t[i].name);
		}
	(void)str_copy(got, "as it was", sizeof(got));
	for (i = 0; i < COUNT(t); i++)
		if (t[i].name == NULL)
			ck_assert_msg(allow_name(t[i].text,
			    strlen(t[i].text), got) == -1, "%s", t[i].text);
	ck_assert_int_eq(allow_name("a\0b", 3, got), -1);
	ck_assert_str_eq(got, "as it was");
}
END_TEST

/* Whatever inet_aton(3) takes: all short words of its letters. */
START_TEST(name_no_address)
{
	static const char	letters[] = "0189axX.fg";
	char			word[8], got[ALLOW_NAME];
	struct in_addr		addr;
	size_t			v, w, n, taken = 0, names = 0;

	for (v = 0; v < 1000000; v++) {
		for (w = v, n = 0; n < 6; n++, w /= 10)
			word[n] = letters[w % 10];
		for (word[n] = '\0'; n > 0; word[--n] = '\0')
			if (allow_name(word, n, got) == -1)
				taken += inet_aton(word, &addr) != 0;
			else {
				names++;
				ck_assert_msg(inet_aton(word, &addr) == 0,
				    "%s", word);
			}
	}
	ck_assert_uint_gt(taken, 10000);
	ck_assert_uint_gt(names, 10000);
}
END_TEST

/* ---- lists --------------------------------------------------------------- */

static struct allow *
list(const char *const *entry, size_t n)
{
	struct allow	*a = allow_new();
	size_t		 i;

	for (i = 0; i < n; i++)
		ck_assert_msg(allow_add(a, entry[i]) == 0, "%s", entry[i]);
	ck_assert_uint_eq(allow_count(a), n);
	allow_done(a);
	return a;
}
#define LIST(...) __extension__ ({					\
	static const char *const	e[] = { __VA_ARGS__ };		\
	list(e, COUNT(e));						\
})

START_TEST(list_found)
{
	static const struct {
		const char	*name;
		unsigned int	 port;
		enum allow_is	 is;
	} t[] = {
		{ "example.com", 443, ALLOW_YES },
		{ "example.com", 80, ALLOW_YES },
		{ "example.com", 0, ALLOW_YES },
		{ "example.com", 22, ALLOW_OTHER },
		{ "example.com", 65979, ALLOW_OTHER },	/* + 65536 */
		{ "example.co", 443, ALLOW_NOT },
		{ "xample.com", 443, ALLOW_NOT },
		{ "example.com.x", 443, ALLOW_NOT },
		{ "a.example.com", 443, ALLOW_NOT },	/* no star */
		{ "", 443, ALLOW_NOT },
		{ ".", 443, ALLOW_NOT },
		{ ".w.example", 443, ALLOW_NOT },
		{ "a.b", 443, ALLOW_NOT },
		/* below a suffix, at any depth, not itself */
		{ "a.w.example", 443, ALLOW_YES },
		{ "w.example", 443, ALLOW_NOT },
		{ "a.b.c.d.w.example", 80, ALLOW_YES },
		{ "aw.example", 443, ALLOW_NOT },
		{ "a.w.example", 22, ALLOW_OTHER },
		/* two entries can match: the ports of both count */
		{ "g.git.example", 22, ALLOW_YES },
		{ "g.git.example", 443, ALLOW_YES },
		{ "g.git.example", 9418, ALLOW_YES },
		{ "g.git.example", 80, ALLOW_OTHER },
		{ "h.git.example", 9418, ALLOW_YES },
		{ "h.git.example", 22, ALLOW_OTHER },
		/* united */
		{ "u.example", 1, ALLOW_YES },
		{ "u.example", 65535, ALLOW_YES },
		{ "u.example", 80, ALLOW_YES },
		{ "u.example", 443, ALLOW_YES },
		{ "u.example", 2, ALLOW_OTHER },
		{ "u.example", 65534, ALLOW_OTHER },
		{ "v.example", 80, ALLOW_YES },
		{ "v.example", 443, ALLOW_YES },
		{ "v.example", 81, ALLOW_OTHER },
	};
	struct allow	*a = LIST("u.example:65535", "*.w.example",
	    "example.com", "g.git.example:22,443", "u.example",
	    "*.git.example:9418", "u.example:1", "v.example:443",
	    "v.example:80", "u.example:1");
	size_t		 i;

	ck_assert_uint_eq(allow_count(a), 6);
	for (i = 0; i < COUNT(t); i++)
		ck_assert_msg(allow_find(a, t[i].name, t[i].port) == t[i].is,
		    "%s %u", t[i].name, t[i].port);
	allow_free(a);
	allow_free(NULL);
}
END_TEST

START_TEST(list_bad)
{
	static const char *const	t[] = {
		"", ":443", "*", "*.", "*.com", "*example.com", "*.*.a.b",
		"a.*",
		"Example.com", "example.com.", "b\303\274cher.example",
		"1.2.3.4", "127.1", "::1", "a b", "a/", "*.a.b.",
		/* these ports have another form */
		"a:80,443", "a:443,80", "a:22,1", "a:1,1", "a:0", "a:01",
		"a:65536", "a:", "a:,", "a:1,", "a:,1", "a:1 ", "a:1:2",
		"a:4294967297", "a:" PORTS_16 ",17", "*.a.b:80,443",
	};
	struct allow	*a = allow_new();
	size_t		 i;

	for (i = 0; i < COUNT(t); i++) {
		errno = 0;
		ck_assert_msg(allow_add(a, t[i]) == -1 && errno == EINVAL,
		    "%s", t[i]);
	}
	ck_assert_uint_eq(allow_count(a), 0);
	ck_assert_int_eq(allow_add(a, "a:" PORTS_16), 0);
	ck_assert_int_eq(allow_find(a, "a", 1), ALLOW_NOT);	/* not yet */
	allow_done(a);
	ck_assert_int_eq(allow_find(a, "a", 16), ALLOW_YES);
	ck_assert_int_eq(allow_add(a, "b"), -1);	/* too late */
	allow_done(a);					/* as it is */
	ck_assert_int_eq(allow_find(a, "a", 16), ALLOW_YES);
	allow_free(a);
	a = allow_new();
	allow_done(a);
	ck_assert_uint_eq(allow_count(a), 0);
	ck_assert_int_eq(allow_find(a, "a", 0), ALLOW_NOT);
	allow_free(a);
}
END_TEST

/* ---- long lists ---------------------------------------------------------- */

static size_t
allocated(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __sanitizer_get_current_allocated_bytes();
#else
	struct mallinfo2	m = mallinfo2();

	return m.uordblks + m.hblkhd;
#endif
}

static double
cpu(void)
{
	struct timespec	t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Entry i of many, in no order of theirs; all names are equally long. */
static void
many(unsigned int i, char ret[ALLOW_TEXT], const char *ports)
{
	(void)snprintf(ret, ALLOW_TEXT, "%shost-%05u.some.example%s",
	    i % 2 == 0 ? "*." : "", i * 7919 % 10000, ports);
}

START_TEST(list_full)
{
	struct allow	*a;
	char		 text[ALLOW_TEXT];
	size_t		 before = allocated(), names = 0, used;
	unsigned int	 i;

	a = allow_new();
	for (i = 0; i < ALLOW_MAX; i++) {
		many(i, text, "");
		names += strlen(text);
		ck_assert_int_eq(allow_add(a, text), 0);
	}
	errno = 0;
	ck_assert_int_eq(allow_add(a, "one.more"), -1);
	ck_assert_int_eq(errno, E2BIG);
	allow_done(a);
	ck_assert_uint_eq(allow_count(a), ALLOW_MAX);
	used = allocated() - before;
	ck_assert_uint_ge(used, names);		/* it is measured at all */
	ck_assert_msg((used - names) / ALLOW_MAX < 10, "%zu bytes an entry, "
	    "%zu of them names", used / ALLOW_MAX, names / ALLOW_MAX);
	for (i = 0; i < ALLOW_MAX; i++) {
		many(i, text, "");
		if (*text == '*')
			*text = 'x';
		ck_assert_msg(allow_find(a, text, 443) == ALLOW_YES, "%s",
		    text);
		text[strlen(text) - 1] = 'f';
		ck_assert_int_eq(allow_find(a, text, 443), ALLOW_NOT);
	}
	allow_free(a);
}
END_TEST

/*
 * A name of 127 labels that is not there, in a full list: some 1,800 pairs of
 * strings are compared, not 10,000.
 */
START_TEST(list_fast)
{
	struct allow	*a = allow_new();
	char		 text[ALLOW_TEXT], deep[ALLOW_NAME];
	unsigned int	 i;
	double		 t;

	for (i = 0; i < ALLOW_MAX; i++) {
		many(i, text, "");
		ck_assert_int_eq(allow_add(a, text), 0);
	}
	allow_done(a);
	for (i = 0; i < 127; i++)
		memcpy(deep + 2 * i, "h.", 2);
	deep[253] = '\0';
	t = cpu();
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(allow_find(a, deep, 443), ALLOW_NOT);
	t = cpu() - t;
	ck_assert_msg(t < 1.0, "%.0f us each", t * 1000);
	allow_free(a);
}
END_TEST

/* Lists that are written to be slow: all equal, in order, and far ports. */
START_TEST(list_slow)
{
	struct allow	*a;
	char		 text[ALLOW_TEXT];
	unsigned int	 i, how;
	double		 t;

	for (how = 0; how < 3; how++) {
		a = allow_new();
		for (i = 0; i < ALLOW_MAX; i++) {
			if (how == 0)
				(void)snprintf(text, sizeof(text),
				    "a.example:%u", i + 1);
			else if (how == 1)
				(void)snprintf(text, sizeof(text),
				    "%05u.example", i);
			else
				(void)snprintf(text, sizeof(text),
				    "%05u.example:%u", i / 2, 65535 - i % 2);
			ck_assert_int_eq(allow_add(a, text), 0);
		}
		t = cpu();
		allow_done(a);
		t = cpu() - t;
		ck_assert_msg(t < 1.0, "list %u: %.2f s", how, t);
		ck_assert_uint_eq(allow_count(a), how == 0 ? 1 : how == 1 ?
		    ALLOW_MAX : ALLOW_MAX / 2);
		if (how == 0)
			for (i = 1; i <= 65535; i++)
				ck_assert_int_eq(allow_find(a, "a.example",
				    i), i <= ALLOW_MAX ? ALLOW_YES :
				    ALLOW_OTHER);
		else
			ck_assert_int_eq(allow_find(a, "04999.example", how ==
			    1 ? 80 : 65534), ALLOW_YES);
		allow_free(a);
	}
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("allow");
	TCase	*t = tcase_create("allow");
	SRunner	*r;
	int	 bad;

	tcase_add_test(t, canon_good);
	tcase_add_test(t, canon_bad);
	tcase_add_test(t, canon_long);
	tcase_add_test(t, name_forms);
	tcase_add_test(t, name_no_address);
	tcase_add_test(t, list_found);
	tcase_add_test(t, list_bad);
	tcase_add_test(t, list_full);
	tcase_add_test(t, list_fast);
	tcase_add_test(t, list_slow);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	bad = srunner_ntests_failed(r);
	srunner_free(r);
	return bad == 0 ? 0 : 1;
}
