/*
 * room_ends.c: room_test, archives that lie about what they have, that end
 * too early or too late, and such as are none.
 */
#include <sys/mman.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "room_rig.h"
#include "xmalloc.h"

START_TEST(size_lies)
{
	static const char *const v[] = { "1", "3000", "99999999",
	    "9223372036854775807", "18446744073709551615", "-1" };

	/* 600 bytes, in 1024, are there */
	char	text[600];

	memset(text, 'x', sizeof text);
	tar_pax_text("size", v[_i]);
	tar_head(&(struct tar_head){ .type = '0', .name = "f", .mode = 0644,
	    .size = 600, .uid = owner_uid, .gid = owner_gid });
	tar_data(text, sizeof text);
	tar_file("g", "");
	tar_end();
	most.bytes = INT64_MAX;
	ck_assert_int_eq(fill(), -1);
	ck_assert_str_ne(rep.why, "");
}
END_TEST

/* Wherever it is cut, it is refused. */
START_TEST(cut)
{
	long	size, at;

	tar_entry('5', "d", NULL, 0755);
	tar_pax_text("comment", "more");
	tar_file("d/f", "hello");
	tar_file("zero", "");
	size = ftell(tar);
	tar_end();
	fflush(tar);
	for (at = size; at >= 0; at -= 64) {
		ck_assert_int_eq(ftruncate(fileno(tar), at), 0);
		ck_assert_msg(fill() == -1, "cut at %ld", at);
		(void)unlinkat(tree, "d/f", 0);
		(void)unlinkat(tree, "zero", 0);
		(void)unlinkat(tree, "d", AT_REMOVEDIR);
	}
}
END_TEST

START_TEST(one_end_block)
{
	static const char	zero[512];

	tar_file("f", "hello");
	fwrite(zero, sizeof zero, 1, tar);
	taken();
}
END_TEST

START_TEST(padded)
{
	static const char	zero[10240];

	tar_file("f", "hello");
	fwrite(zero, sizeof zero, 1, tar);
	taken();
}
END_TEST

START_TEST(garbage)
{
	static const char	zero[200000];

	tar_file("f", "hello");
	tar_end();
	if (_i == 1)
		fwrite(zero, sizeof zero, 1, tar);
	fwrite("x", 1, 1, tar);
	if (_i == 2)
		fwrite(zero, sizeof zero, 1, tar);
	refused("has something after its end");
}
END_TEST

/* a second archive, which other programs would not see */
START_TEST(concatenated)
{
	tar_file("f", "hello");
	tar_end();
	tar_file("g", "hello");
	tar_end();
	refused("has something after its end");
}
END_TEST

START_TEST(other_formats)
{
	static const struct { const void *p; size_t len; } v[] = {
		{ "PK\003\004\024\0\0\0\0\0", 10 },
		{ "070701", 6 }, { "!<arch>\n", 8 },
		{ "7z\xbc\xaf\x27\x1c", 6 },
		{ "BZh91AY&SY", 10 }, { "\x1f\x8b\x08", 3 }, { "x", 1 },
		{ "\xfd" "7zXZ\0\0\4", 8 }, { "\x28\xb5\x2f\xfd", 4 },
		{ "ustar", 5 }, { "", 0 },
	};
	char	block[4096] = "";

	memcpy(block, v[_i].p, v[_i].len);
	fwrite(block, _i == 10 ? 0 : sizeof block, 1, tar);
	ck_assert_int_eq(fill(), -1);
	ck_assert_msg(strstr(rep.why, _i < 5 ? "expected a tar archive" :
	    _i == 10 ? "there is nothing in it" : "") != NULL, "%s", rep.why);
	ck_assert_str_ne(rep.why, "");
}
END_TEST

START_TEST(empty)
{
	tar_end();
	refused("there is nothing in it: no archive, or an empty one");
}
END_TEST

START_TEST(bad_checksum)
{
	tar_file("f", "hello");
	tar_file("g", "hello");
	tar_end();
	fseek(tar, 1024 + 2, SEEK_SET);
	fputc('!', tar);
	refused("cannot be read");
}
END_TEST

/* A record of pax that says nothing is passed over by many, not here. */
START_TEST(bad_pax)
{
	tar_pax_records("999 path=x\n");
	tar_file("f", "");
	tar_end();
	refused("cannot be read");
}
END_TEST

/* Whatever bit is turned over: it ends, and nothing gets out. */
START_TEST(bits)
{
	static const int	step = 37;
	uint8_t			*all, bit;
	char			 path[300];
	long			 len, i;
	int			 fd;

	snprintf(path, sizeof path, "%s/bits", tmp);
	tar_entry('5', "d", NULL, 0755);
	tar_pax_text("path", "d/longer");
	tar_file("f", "hello");
	tar_entry('1', "h", "d/longer", 0644);
	tar_entry('2', "l", "../outside", 0777);
	tar_end();
	len = ftell(tar);
	rewind(tar);
	all = xmalloc((size_t)len);
	ck_assert_int_eq(fread(all, 1, (size_t)len, tar), len);
	for (i = 0; i < len * 8; i += step) {
		bit = (uint8_t)(1U << (i % 8));
		all[i / 8] ^= bit;
		ck_assert_int_ne(fd = memfd_create("tar", 0), -1);
		ck_assert_int_eq(write(fd, all, (size_t)len), len);
		lseek(fd, 0, SEEK_SET);
		ck_assert_int_eq(mkdirat(top, "bits", 0755), 0);
		close(tree);
		tree = openat(top, "bits", O_RDONLY | O_DIRECTORY);
		(void)room_fill(fd, tree, &most, &rep);
		close(fd);
		all[i / 8] ^= bit;
		ck_assert_int_eq(rig_remove(path), 0);
	}
	free(all);
}
END_TEST

TCase *
ends_case(void)
{
	TCase	*t = tcase_create("ends");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, size_lies, 0, 6);
	tcase_add_test(t, cut);
	tcase_add_test(t, one_end_block);
	tcase_add_test(t, padded);
	tcase_add_loop_test(t, garbage, 0, 3);
	tcase_add_test(t, concatenated);
	tcase_add_loop_test(t, other_formats, 0, 11);
	tcase_add_test(t, empty);
	tcase_add_test(t, bad_checksum);
	tcase_add_test(t, bad_pax);
	tcase_add_test(t, bits);
	return t;
}
