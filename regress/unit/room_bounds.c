/*
 * room_bounds.c: room_test, archives of more than there may be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "room_rig.h"
#include "xmalloc.h"

START_TEST(ids)
{
	tar_head(&(struct tar_head){ .type = '0', .name = "f", .mode = 0644,
	    .uid = _i == 0 ? 65536 : owner_uid,
	    .gid = _i == 1 ? 65536 : owner_gid });
	tar_end();
	refused("expected ids up to 65535");
}
END_TEST

START_TEST(ids_by_pax)
{
	tar_pax_text(_i == 0 ? "uid" : "gid", "4294967296");
	tar_file("f", "");
	tar_end();
	refused("expected ids up to 65535");
}
END_TEST

START_TEST(too_large)
{
	most.bytes = 9;
	tar_file("a", "hello");
	tar_file("b", "world");
	tar_end();
	refused("\"b\" and what comes before are more than 9 bytes");
	absent("b");
}
END_TEST

START_TEST(exactly_as_large)
{
	most.bytes = 10;
	tar_file("a", "hello");
	tar_file("b", "world");
	tar_end();
	taken();
}
END_TEST

START_TEST(sparse_bomb)
{
	tar_pax_records("22 GNU.sparse.major=1\n"
	    "22 GNU.sparse.minor=0\n"
	    "28 GNU.sparse.name=realname\n"
	    "43 GNU.sparse.realsize=1152921504606846976\n");
	tar_head(&(struct tar_head){ .type = '0', .name = "x", .mode = 0644,
	    .size = 512 });
	tar_data("1\n0\n1\n", 512 - 506);
	tar_end();
	refused("(--max-size)");
}
END_TEST

START_TEST(too_many)
{
	most.entries = 3 - (uint64_t)_i;
	tar_file("a", "");
	tar_file("b", "");
	tar_file("c", "");
	tar_end();
	if (_i == 0)
		taken();
	else
		refused("has more than 2 entries");
}
END_TEST

/* Whatever they are, and what they lie in when nothing names it. */
START_TEST(too_many_of_any)
{
	static const char	types[] = "5126";
	char			name[2] = "b";

	tar_file("a", "");
	for (; *name < 'b' + 4; (*name)++)
		tar_entry(types[*name - 'b'], name, "a", 0755);
	tar_entry('5', "one/two/three", NULL, 0755);
	tar_file("one/more", "");
	tar_end();
	most.entries = 9 - (uint64_t)_i;
	if (_i == 0)
		taken();
	else
		refused("has more than 8 entries (--max-entries)");
}
END_TEST

START_TEST(attributes_count)
{
	char	val[100];

	memset(val, 'v', sizeof val);
	most.bytes = 5 + 106 - (uint64_t)_i;
	tar_file("a", "hello");
	tar_pax("SCHILY.xattr.user.a", val, sizeof val);
	tar_entry('5', "d", NULL, 0755);
	/* what is not kept takes nothing */
	tar_pax("SCHILY.xattr.trusted.a", val, sizeof val);
	tar_entry('5', "e", NULL, 0755);
	tar_end();
	if (_i == 0)
		taken();
	else
		refused("\"d\" and what comes before are more than 110 bytes");
}
END_TEST

START_TEST(links_count)
{
	most.bytes = 9 - (uint64_t)_i;
	tar_entry('2', "l", "somewhere", 0777);
	tar_end();
	if (_i == 0)
		taken();
	else
		refused("\"l\" and what comes before are more than 8 bytes");
}
END_TEST

/* Entries without a byte in them fill a disk, too. */
START_TEST(disk_full_of_entries)
{
	int	i;

	most.floor = UINT64_MAX;
	most.entries = 100000;
	for (i = 0; i < 16384; i++)
		tar_entry('5', "d", NULL, 0755);
	tar_end();
	refused("what follows would leave less");
}
END_TEST

/* Nor are directories that no entry names free: 140 times 126 of them. */
START_TEST(disk_full_of_unnamed)
{
	char	path[3 * 127 + 8];
	size_t	n;
	int	i;

	most.floor = UINT64_MAX;
	most.entries = 100000;
	for (i = 0; i < 140; i++) {
		n = (size_t)snprintf(path, sizeof path, "%03d", i);
		while (n < 4 + 2 * 125)
			n += (size_t)snprintf(path + n, sizeof path - n, "/d");
		tar_pax_text("path", path);
		tar_entry('6', "x", NULL, 0644);
	}
	tar_end();
	if (_i == 0)
		refused("what follows would leave less");
	else {
		most.floor = 0;
		taken();
	}
}
END_TEST

/* A directory that is named only after it was needed counts twice. */
START_TEST(named_late)
{
	most.entries = 3 - (uint64_t)_i;
	tar_file("d/a", "");
	tar_entry('5', "d", NULL, 0755);
	tar_end();
	if (_i == 0)
		taken();
	else
		refused("has more than 2 entries (--max-entries)");
}
END_TEST

START_TEST(disk_full)
{
	char	*p = xcalloc(1, 65 * MIB);

	most.floor = UINT64_MAX;
	most.bytes = 100 * MIB;
	tar_head(&(struct tar_head){ .type = '0', .name = "f", .mode = 0644,
	    .size = 65 * MIB });
	tar_data(p, 65 * MIB);
	tar_end();
	refused("of the disk free");
	free(p);
}
END_TEST

START_TEST(deep)
{
	char	path[600];
	size_t	i;

	for (i = 0; i < 258; i += 2)
		memcpy(path + i, "d/", 2);
	path[i] = '\0';
	tar_pax_text("path", path);
	tar_entry('5', "x", NULL, 0755);
	tar_end();
	refused("more than 128 directories deep");
}
END_TEST

TCase *
bounds_case(void)
{
	TCase	*t = tcase_create("bounds");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, ids, 0, 2);
	tcase_add_loop_test(t, ids_by_pax, 0, 2);
	tcase_add_test(t, too_large);
	tcase_add_test(t, exactly_as_large);
	tcase_add_test(t, sparse_bomb);
	tcase_add_loop_test(t, too_many, 0, 2);
	tcase_add_loop_test(t, too_many_of_any, 0, 2);
	tcase_add_loop_test(t, attributes_count, 0, 2);
	tcase_add_loop_test(t, links_count, 0, 2);
	tcase_add_test(t, disk_full_of_entries);
	tcase_add_loop_test(t, disk_full_of_unnamed, 0, 2);
	tcase_add_loop_test(t, named_late, 0, 2);
	tcase_add_test(t, disk_full);
	tcase_add_test(t, deep);
	return t;
}
