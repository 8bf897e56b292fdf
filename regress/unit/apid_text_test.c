/*
 * apid_text_test.c: bytes as JSON, and the evidence of a boot.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../apid/apid.h"
#include "xmalloc.h"

struct apid	env;		/* proof.c and text.c use none of it */

/* ---- UTF-8 ----------------------------------------------------------- */

static const struct { const char *s; size_t len, whole; } utf8[] = {
	{ "", 0, 0 },
	{ "plain text of more than eight", 29, 29 },
	{ "\xc3\xa4", 2, 2 },
	{ "a\xc3", 2, 1 },			/* cut */
	{ "\xc0\x80", 2, 0 },			/* overlong NUL */
	{ "\xe0\x80\x80", 3, 0 },		/* overlong */
	{ "\xed\xa0\x80", 3, 0 },		/* a surrogate */
	{ "\xf0\x9f\x98\x80", 4, 4 },
	{ "\xf4\x90\x80\x80", 4, 0 },		/* above U+10FFFF */
	{ "\xf5\x80\x80\x80", 4, 0 },
	{ "12345678\x80", 9, 8 },
	{ "\xff", 1, 0 },
	{ "\0", 1, 1 },
};

START_TEST(utf8_prefixes)
{
	ck_assert_uint_eq(utf8_prefix((const uint8_t *)utf8[_i].s,
	    utf8[_i].len), utf8[_i].whole);
}
END_TEST

/* jansson is the judge: it takes exactly what is whole. */
START_TEST(utf8_judged)
{
	uint8_t	b[4];
	json_t	*j;
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		b[0] = (uint8_t)(rand() % 3 == 0 ? rand() : 0xe0 | rand());
		b[1] = (uint8_t)(0x80 | rand());
		b[2] = (uint8_t)rand();
		b[3] = (uint8_t)(rand() % 2 ? 'x' : 0x80 | rand());
		j = json_stringn((const char *)b, 4);
		ck_assert_int_eq(j != NULL, utf8_prefix(b, 4) == 4);
		json_decref(j);
	}
}
END_TEST

START_TEST(replaced)
{
	json_t	*j = text_json("a\xff\xc3" "b", 4);

	ck_assert_str_eq(json_string_value(j),
	    "a\xef\xbf\xbd\xef\xbf\xbd" "b");
	json_decref(j);
}
END_TEST

/* ---- a line of output --------------------------------------------------- */

static void
unbase64(const char *s, size_t len, uint8_t *out, size_t *ret_n)
{
	static const char	d[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t		w = 0;
	size_t			i, bits = 0, n = 0;

	for (i = 0; i < len && s[i] != '='; i++) {
		w = w << 6 | (uint32_t)(strchr(d, s[i]) - d);
		if ((bits += 6) >= 8)
			out[n++] = (uint8_t)(w >> (bits -= 8));
	}
	*ret_n = n;
}

/* The line is one object of JSON that holds the same bytes. */
static void
line_holds(const uint8_t *p, size_t len)
{
	static char	line[LINE_MAX_BYTES];
	static uint8_t	back[65536];
	size_t		n = chunk_line(line, 7, STREAM_STDERR, p, len), m;
	const char	*data, *enc;
	json_error_t	e;
	json_t		*o;

	ck_assert_uint_le(n, sizeof(line));
	ck_assert_ptr_eq(memchr(line, '\n', n), line + n - 1);
	o = json_loadb(line, n, JSON_ALLOW_NUL, &e);
	ck_assert_msg(o != NULL, "%s", e.text);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "seq")), 7);
	ck_assert_str_eq(json_string_value(json_object_get(o, "stream")),
	    "stderr");
	data = json_string_value(json_object_get(o, "data"));
	m = json_string_length(json_object_get(o, "data"));
	enc = json_string_value(json_object_get(o, "encoding"));
	if (strcmp(enc, "base64") == 0) {
		unbase64(data, m, back, &m);
		data = (const char *)back;
	}
	ck_assert_uint_eq(m, len);
	ck_assert_mem_eq(data, p, len);
	json_decref(o);
}

START_TEST(lines)
{
	static uint8_t	b[32768];
	size_t		len, i;
	int		kind;

	for (kind = 0; kind < 4; kind++)
		for (len = 1; len <= sizeof(b); len = len * 3 + 1) {
			for (i = 0; i < len; i++)
				b[i] = (uint8_t)(kind == 0 ? rand() :
				    kind == 1 ? rand() % 32 :
				    kind == 2 ? ' ' + rand() % 95 : '"');
			line_holds(b, len);
		}
	memset(b, 1, sizeof(b));	/* what grows most */
	line_holds(b, sizeof(b));
	memset(b, '\\', sizeof(b));
	line_holds(b, sizeof(b));
}
END_TEST

START_TEST(collected)
{
	const char	*enc;
	json_t		*j = bytes_json((const uint8_t *)"\xff\x00\x01", 3,
			    &enc);

	ck_assert_str_eq(enc, "base64");
	ck_assert_str_eq(json_string_value(j), "/wAB");
	json_decref(j);
	j = bytes_json((const uint8_t *)"a", 1, &enc);
	ck_assert_str_eq(enc, "utf-8");
	json_decref(j);
	j = bytes_json(NULL, 0, &enc);
	ck_assert_str_eq(json_string_value(j), "");
	json_decref(j);
}
END_TEST

/* ---- lists and names --------------------------------------------------- */

START_TEST(lists)
{
	json_t		*o = json_pack("{ssssss}", "a", "1", "b", "x=y", "c",
			    ""), *back;
	struct wire_list l = list_from_object(o), d = list_dup(&l);
	const char	*v;
	size_t		 n;

	ck_assert_uint_eq(d.n, 3);
	v = list_value(&d, "b", 1, &n);
	ck_assert_uint_eq(n, 3);
	ck_assert_mem_eq(v, "x=y", 3);
	ck_assert_ptr_nonnull(list_value(&d, "c", 1, &n));
	ck_assert_uint_eq(n, 0);
	ck_assert_ptr_null(list_value(&d, "", 0, &n));
	ck_assert_ptr_null(list_value(&d, "aa", 2, &n));
	back = list_to_object(&d);
	ck_assert(json_equal(o, back));
	json_decref(o);
	json_decref(back);
	list_free(&l);
	list_free(&d);
	ck_assert_ptr_null(d.v);
}
END_TEST

START_TEST(names)
{
	char	name[64], s[] = "cap_bnd_of_it";
	int	i;

	for (i = 0; i < 1000; i++) {
		text_name(name);
		ck_assert(wire_charset_ok(CS_NAME, name, strlen(name)));
		ck_assert_uint_ne(strlen(name), ULID_LEN);
	}
	text_camel(s);
	ck_assert_str_eq(s, "capBndOfIt");
}
END_TEST

START_TEST(signals)
{
	ck_assert_uint_eq(text_signal("TERM"), 15);
	ck_assert_uint_eq(text_signal("SIGKILL"), 9);
	ck_assert_uint_eq(text_signal("RTMIN"), 34);
	ck_assert_uint_eq(text_signal("SIGRTMIN+3"), 37);
	ck_assert_uint_eq(text_signal("RTMIN+31"), 0);
	ck_assert_uint_eq(text_signal("RTMIN+"), 0);
	ck_assert_uint_eq(text_signal("RTMIN+-1"), 0);
	ck_assert_uint_eq(text_signal("FOO"), 0);
	ck_assert_uint_eq(text_signal(""), 0);
	ck_assert_uint_eq(text_signal("SIG"), 0);
}
END_TEST

/* ---- evidence ---------------------------------------------------------- */

static uint8_t	same_mounts[] = "1 0 / /", other_mounts[] = "1 0 / /x";

static void
facts(struct msg_runner_facts *r, struct msg_box_facts_are *h)
{
	memset(r, 0, sizeof(*r));
	memset(h, 0, sizeof(*h));
	(void)str_copy(r->uid_map, "0 1 2", sizeof(r->uid_map));
	(void)str_copy(h->uid_map, "0 1 2", sizeof(h->uid_map));
	r->cap_bnd = h->cap_bnd = UINT64_MAX;
	r->mounts.data = h->mounts.data = same_mounts;
	r->mounts.len = h->mounts.len = 7;
}

/* Each fact, one after the other, is made to differ and is named. */
START_TEST(differences)
{
	const struct wire_desc		*d = &wire_msg_runner_facts;
	const struct wire_field		*f;
	struct msg_runner_facts		 r;
	struct msg_box_facts_are	 h;
	struct wire_bin			 b = { other_mounts, 7 };
	uint64_t			 v;
	size_t				 i;

	facts(&r, &h);
	ck_assert_ptr_null(proof_differs(&r, &h));
	for (i = 0; i < d->nfields; i++) {
		f = &d->field[i];
		facts(&r, &h);
		if (f->kind == WIRE_U64) {
			memcpy(&v, (char *)&r + f->off, sizeof(v));
			v ^= 1;
			memcpy((char *)&r + f->off, &v, sizeof(v));
		} else if (f->kind == WIRE_STR)
			((char *)&r)[f->off] ^= 'a';
		else {
			b.len = 8;
			memcpy((char *)&r + f->off, &b, sizeof(b));
		}
		ck_assert_str_eq(proof_differs(&r, &h), f->key);
	}
}
END_TEST

/* The host's value of a field that stands there once. */
static const char *
told_once(const json_t *proof, const char *field)
{
	const json_t	*facts = json_object_get(proof, "facts"), *f;
	const char	*host = NULL;
	size_t		 i, n = 0;

	for (i = 0; i < json_array_size(facts); i++) {
		f = json_array_get(facts, i);
		if (strcmp(json_string_value(json_object_get(f, "field")),
		    field) == 0) {
			host = json_string_value(json_object_get(f, "host"));
			n++;
		}
	}
	ck_assert_uint_eq(n, 1);
	return host == NULL ? "" : host;
}

START_TEST(evidence)
{
	struct msg_runner_facts		 r;
	struct msg_box_facts_are	 h;
	struct box			 b;
	static uint8_t			 big[12288];
	char				*t;
	json_t				*o;

	facts(&r, &h);
	memset(&b, 0, sizeof(b));
	(void)str_copy(b.id, "01K8ZZZZZZZZZZZZZZZZZZZZZ1", sizeof(b.id));
	h.network = NETWORK_ALLOWLIST;
	t = proof_text(&b, &r, &h, "cap_bnd", "", 1);
	ck_assert_ptr_nonnull(o = json_loads(t, 0, NULL));
	ck_assert_str_eq(json_string_value(json_object_get(o, "field")),
	    "capBnd");
	ck_assert_str_eq(json_string_value(json_object_get(o, "verdict")),
	    "failed");
	ck_assert_ptr_nonnull(strstr(t, "\"0xffffffffffffffff\""));
	ck_assert_str_eq(told_once(o, "network"), "allowlist");
	json_decref(o);
	free(t);
	memset(big, 0xff, sizeof(big));		/* triples as U+FFFD */
	r.mounts.data = h.mounts.data = big;
	r.mounts.len = h.mounts.len = sizeof(big);
	t = proof_text(&b, &r, &h, "", "", 1);
	ck_assert_uint_le(strlen(t), PROOF_MAX);
	ck_assert_ptr_nonnull(strstr(t, "\"sha256:"));
	ck_assert_ptr_nonnull(strstr(t, "\"verified\""));
	free(t);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("apid_text");
	TCase	*t = tcase_create("text");
	SRunner	*sr;
	int	 n;

	tcase_add_loop_test(t, utf8_prefixes, 0,
	    sizeof(utf8) / sizeof(utf8[0]));
	tcase_add_test(t, utf8_judged);
	tcase_add_test(t, replaced);
	tcase_add_test(t, lines);
	tcase_add_test(t, collected);
	tcase_add_test(t, lists);
	tcase_add_test(t, names);
	tcase_add_test(t, signals);
	tcase_add_test(t, differences);
	tcase_add_test(t, evidence);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	n = srunner_ntests_failed(sr);
	srunner_free(sr);
	return n == 0 ? 0 : 1;
}
