/*
 * room_packed.c: room_test, archives that are compressed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "room_rig.h"
#include "xmalloc.h"

static const char *const	filters[] = { "gzip", "xz", "zstd" };

/* One file of five bytes. */
static void
small(const char *by)
{
	tar_file("f", "hello");
	tar_end();
	tar_pack(by);
}

START_TEST(compressed)
{
	small(filters[_i]);
	taken();
	look("f");
}
END_TEST

START_TEST(compressed_garbage)
{
	small(filters[_i]);
	fwrite("garbage", 7, 1, tar);
	ck_assert_int_eq(fill(), -1);
	ck_assert_str_ne(rep.why, "");
}
END_TEST

START_TEST(compressed_cut)
{
	long	at;

	small(filters[_i]);
	for (at = ftell(tar) - 1; at >= 0; at -= 3) {
		ck_assert_int_eq(ftruncate(fileno(tar), at), 0);
		ck_assert_msg(fill() == -1, "cut at %ld", at);
		(void)unlinkat(tree, "f", 0);
	}
}
END_TEST

/* every bit of the sum at the end counts; libarchive's gzip has none */
START_TEST(compressed_damaged)
{
	int	c;

	small("gzip");
	fseek(tar, -1 - _i, SEEK_END);
	c = fgetc(tar);
	fseek(tar, -1 - _i, SEEK_END);
	fputc(c ^ 1, tar);
	refused("incorrect");
}
END_TEST

/* gzip's may be several, one behind the other */
START_TEST(compressed_in_members)
{
	FILE	*all = tmpfile();
	char	 buf[4096];
	size_t	 n;
	int	 i;

	for (i = 0; i < 2; i++) {
		if (i == 0)
			tar_file("f", "hello");
		else
			tar_end();
		tar_pack("gzip");
		rewind(tar);
		while ((n = fread(buf, 1, sizeof buf, tar)) > 0)
			fwrite(buf, 1, n, all);
		fclose(tar);
		ck_assert_ptr_nonnull(tar = tmpfile());
	}
	fclose(tar);
	tar = all;
	if (_i == 0) {
		taken();
		return;
	}
	/* the second one is cut anywhere, or just begun */
	fflush(tar);
	ck_assert_int_eq(ftruncate(fileno(tar), ftell(tar) - _i), 0);
	refused("cut short");
}
END_TEST

START_TEST(compressed_twice)
{
	small(filters[_i]);
	tar_pack(_i == 0 ? "xz" : "gzip");
	refused(_i == 0 ? "expected a tar archive" :
	    "is compressed more than once");
}
END_TEST

/* 16 MiB of zeros, in a few kilobytes */
START_TEST(bomb)
{
	char	*p = xcalloc(1, 16 * MIB);

	tar_head(&(struct tar_head){ .type = '0', .name = "f", .mode = 0644,
	    .size = 16 * MIB });
	tar_data(p, 16 * MIB);
	tar_end();
	free(p);
	tar_pack(filters[_i]);
	refused("(--max-size)");
	absent("f");
}
END_TEST

TCase *
packed_case(void)
{
	TCase	*t = tcase_create("packed");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, compressed, 0, 3);
	tcase_add_loop_test(t, compressed_garbage, 0, 3);
	tcase_add_loop_test(t, compressed_cut, 0, 3);
	tcase_add_loop_test(t, compressed_damaged, 0, 8);
	tcase_add_loop_test(t, compressed_in_members, 0, 20);
	tcase_add_loop_test(t, compressed_twice, 0, 3);
	tcase_add_loop_test(t, bomb, 0, 3);
	return t;
}
