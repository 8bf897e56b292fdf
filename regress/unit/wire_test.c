/*
 * wire_test.c: what must be refused however it is written: forms that our
 * encoder never uses, keys twice, keys unknown, keys missing, sizes that a
 * peer claims, bounds and character sets.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto.h"

static uint8_t	back[65536];

static int
decode(const struct wire_desc *d, const char *bytes, size_t n)
{
	/* exact, so that a read past the end is seen by a sanitizer */
	uint8_t	*p = malloc(n == 0 ? 1 : n);
	int	 r;

	memcpy(p, bytes, n);
	errno = 0;
	r = wire_decode(d, p, n, back);
	ck_assert(r == 0 || errno == EBADMSG);
	free(p);
	return r;
}
#define DEC(d, s)	decode(&wire_msg_##d, s, sizeof(s) - 1)

START_TEST(good)
{
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\x07"), 0);
	ck_assert_uint_eq(((struct msg_net_open *)(void *)back)->k, 7);
	/* another width of the same number is the same number */
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xcd\x00\x07"), 0);
	ck_assert_int_eq(DEC(ok, "\x80"), 0);
}
END_TEST

START_TEST(forms)
{
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xca\x40\xe0\x00\x00"), -1);
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xcb\0\0\0\0\0\0\0\0"), -1);
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xff"), -1);	/* -1 */
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xd0\x07"), -1); /* int 8 */
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xc0"), -1);	/* nil */
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xc3"), -1);	/* true */
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xd4\x01\x07"), -1);
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xa1\x37"), -1);
	ck_assert_int_eq(DEC(net_open, "\x91\x07"), -1);
	ck_assert_int_eq(DEC(net_open, "\x07"), -1);
	ck_assert_int_eq(DEC(net_open, ""), -1);
}
END_TEST

START_TEST(keys)
{
	ck_assert_int_eq(DEC(net_open, "\x80"), -1);
	ck_assert_int_eq(DEC(net_open, "\x81\xa1j\x07"), -1);
	ck_assert_int_eq(DEC(net_open, "\x82\xa1k\x07\xa1k\x07"), -1);
	ck_assert_int_eq(DEC(net_open, "\x82\xa1k\x07\xa1x\x07"), -1);
	ck_assert_int_eq(DEC(net_open, "\x81\x01\x07"), -1);
	ck_assert_int_eq(DEC(error, "\x82\xa4" "code\x01\xa4" "code\x01"), -1);
	ck_assert_int_eq(DEC(error, "\x82\xa6" "detail\xa1x\xa4" "code\x01"), 0);
}
END_TEST

/* Lengths and counts that are not there. */
START_TEST(claims)
{
	ck_assert_int_eq(DEC(ok, "\xdf\xff\xff\xff\xff"), -1);
	ck_assert_int_eq(DEC(ok, "\xde\xff\xff"), -1);
	ck_assert_int_eq(DEC(box_list_is,
	    "\x82\xa3ids\xdd\xff\xff\xff\xff"), -1);
	ck_assert_int_eq(DEC(box_list_is, "\x82\xa3ids\xdc\xff\xff"), -1);
	ck_assert_int_eq(DEC(box_list_is,
	    "\x82\xa3ids\xdb\xff\xff\xff\xff" "a"), -1);
	ck_assert_int_eq(DEC(box_list_is,
	    "\x82\xa3ids\x90\xa5" "alive\xc6\xff\xff\xff\xff"), -1);
	ck_assert_int_eq(DEC(box_list_is,
	    "\x82\xa3ids\x90\xa5" "alive\xc4\x00"), 0);
}
END_TEST

START_TEST(nesting)
{
	char	deep[4096];
	size_t	n;

	for (n = 1; n < sizeof(deep); n++) {
		memset(deep, '\x91', n);
		ck_assert_int_eq(decode(&wire_msg_ok, deep, n), -1);
	}
	/* a list of lists where a list of strings is due */
	ck_assert_int_eq(DEC(box_list_is,
	    "\x82\xa3ids\x91\x91\x90\xa5" "alive\xc4\x00"), -1);
}
END_TEST

START_TEST(bounds)
{
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\x00"), -1);
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xcd\xff\xff"), 0);
	ck_assert_int_eq(DEC(net_open, "\x81\xa1k\xce\x00\x01\x00\x00"), -1);
	ck_assert_int_eq(DEC(net_open,
	    "\x81\xa1k\xcf\x00\x00\x00\x01\x00\x00\x00\x07"), -1);
}
END_TEST

/* A body that is out of its bounds is never sent either. */
START_TEST(own_faults)
{
	struct msg_net_open	o = { .k = 0 };
	struct msg_box_attach	a = { .id = "01ARZ3NDEKTSV4RRFFQ69G5FAv" };
	struct msg_box_list_is	l = { 0 };
	struct wire_bin		b = wire_cstr("01ARZ3NDEKTSV4RRFFQ69G5FAV");
	uint8_t			buf[256];

	ck_assert_int_eq(wire_encode(&wire_msg_net_open, &o, buf,
	    sizeof(buf)), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(wire_encode(&wire_msg_box_attach, &a, buf,
	    sizeof(buf)), -1);
	ck_assert_int_eq(errno, EINVAL);
	l.ids.v = &b;
	l.ids.n = 1;
	ck_assert_int_gt(wire_encode(&wire_msg_box_list_is, &l, buf,
	    sizeof(buf)), 0);
	ck_assert_int_eq(wire_encode(&wire_msg_box_list_is, &l, buf, 8), -1);
	ck_assert_int_eq(errno, EMSGSIZE);
}
END_TEST

static const struct { enum wire_charset cs; const char *s; int ok; } sets[] = {
	{ CS_NAME, "a", 1 }, { CS_NAME, "", 0 }, { CS_NAME0, "", 1 },
	{ CS_NAME, "a.b_c-9", 1 }, { CS_NAME, ".a", 0 }, { CS_NAME, "-a", 0 },
	{ CS_NAME, "A", 0 }, { CS_NAME, "a/b", 0 }, { CS_NAME, "..", 0 },
	{ CS_NAME, "a b", 0 }, { CS_NAME, "a\n", 0 },
	{ CS_ULID, "01ARZ3NDEKTSV4RRFFQ69G5FAV", 1 },
	{ CS_ULID, "81ARZ3NDEKTSV4RRFFQ69G5FAV", 0 },
	{ CS_ULID, "01ARZ3NDEKTSV4RRFFQ69G5FAU", 0 },
	{ CS_ULID, "01ARZ3NDEKTSV4RRFFQ69G5FA", 0 },
	{ CS_ULID, "", 0 }, { CS_ULID0, "", 1 },
	{ CS_PATH, "/a/b", 1 }, { CS_PATH, "/a b", 0 },
	{ CS_PRINT, "a b", 1 }, { CS_PRINT, "a\tb", 0 },
	{ CS_PRINT, "\xc3\xa9", 0 },
	{ CS_TEXT, "\xc3\xa9", 1 }, { CS_TEXT, "\xc3", 0 },
	{ CS_TEXT, "\xc0\x80", 0 }, { CS_TEXT, "\xe0\x80\x80", 0 },
	{ CS_TEXT, "\xed\xa0\x80", 0 }, { CS_TEXT, "\xf4\x90\x80\x80", 0 },
	{ CS_TEXT, "\xf0\x9f\x98\x80", 1 }, { CS_TEXT, "\xc2\x85", 0 },
	{ CS_TEXT, "a\nb", 0 }, { CS_TEXT, "\x7f", 0 }, { CS_TEXT, "\xff", 0 },
	{ CS_BYTES, "\xff\x01", 1 },
};

START_TEST(charsets)
{
	ck_assert_msg(wire_charset_ok(sets[_i].cs, sets[_i].s,
	    strlen(sets[_i].s)) == sets[_i].ok, "row %d", _i);
}
END_TEST

START_TEST(no_nul)
{
	enum wire_charset	cs;

	for (cs = CS_BYTES; cs <= CS_ULID0; cs++)
		ck_assert(!wire_charset_ok(cs, "a\0b", 3));
}
END_TEST

START_TEST(argv)
{
	struct wire_bin	 v[] = { wire_cstr("sh"), wire_cstr(""),
	    wire_cstr("x y") };
	struct wire_list l = { v, 3 };
	char		**a = wire_list_argv(&l);

	ck_assert_str_eq(a[0], "sh");
	ck_assert_str_eq(a[1], "");
	ck_assert_str_eq(a[2], "x y");
	ck_assert_ptr_null(a[3]);
	free(a);
}
END_TEST

START_TEST(heads)
{
	uint32_t	in[3] = { 1, 65535, UINT32_MAX }, out[3];
	uint8_t		b[32];
	ssize_t		n = wire_head_encode(in, b, sizeof(b)), k;

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(wire_head_decode(b, (size_t)n, out), n);
	ck_assert_mem_eq(in, out, sizeof(in));
	for (k = 0; k < n; k++)
		ck_assert_int_eq(wire_head_decode(b, (size_t)k, out), -1);
	ck_assert_int_eq(wire_head_encode(in, b, 4), -1);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("wire");
	TCase	*t = tcase_create("wire");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, good);
	tcase_add_test(t, forms);
	tcase_add_test(t, keys);
	tcase_add_test(t, claims);
	tcase_add_test(t, nesting);
	tcase_add_test(t, bounds);
	tcase_add_test(t, own_faults);
	tcase_add_loop_test(t, charsets, 0, sizeof(sets) / sizeof(sets[0]));
	tcase_add_test(t, no_nul);
	tcase_add_test(t, argv);
	tcase_add_test(t, heads);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
