/*
 * room_test: archives that strangers make, byte by byte, and what becomes of
 * them in a directory.
 *
 * Each refusal is by its reason, and shows what it must not have touched: a
 * directory `outside' beside the tree, with one file.  The whole command, its
 * fence and its cleaning up are box/rootfs.sh's.
 */
#include <sys/stat.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "room_rig.h"

/* ---- names --------------------------------------------------------------- */

START_TEST(names)
{
	static const struct { const char *in, *out; } v[] = {
		{ ".", "" }, { "./", "" }, { "a", "a" }, { "./a/", "a" },
		{ "a//b/./c/.", "a/b/c" }, { "...", "..." }, { "a..", "a.." },
		{ " ", " " }, { "a\nb", "a\nb" }, { "\xff", "\xff" },
		{ "", NULL }, { "/", NULL }, { "/a", NULL }, { "..", NULL },
		{ "a/..", NULL }, { "../a", NULL }, { "a/../b", NULL },
		{ "a/b/..", NULL }, { "./../a", NULL }, { "a//..//b", NULL },
	};
	char	ret[ROOM_NAME];
	size_t	i;

	for (i = 0; i < sizeof v / sizeof v[0]; i++) {
		const char *bad = room_name(v[i].in, ret);

		ck_assert_msg((bad == NULL) == (v[i].out != NULL), "%s",
		    v[i].in);
		if (bad == NULL)
			ck_assert_str_eq(ret, v[i].out);
	}
}
END_TEST

START_TEST(long_names)
{
	char	in[2 * ROOM_NAME], ret[ROOM_NAME];
	size_t	i;

	memset(in, 'a', sizeof in);
	in[255] = '\0';
	ck_assert_ptr_null(room_name(in, ret));
	in[255] = 'a', in[256] = '\0';
	ck_assert_ptr_nonnull(room_name(in, ret));
	for (i = 0; i < 256; i += 2)
		memcpy(in + i, "a/", 2);
	in[255] = '\0';			/* 128 parts */
	ck_assert_ptr_null(room_name(in, ret));
	memcpy(in + 255, "/a", 3);
	ck_assert_ptr_nonnull(room_name(in, ret));
	memset(in, 'b', sizeof in);
	for (i = 100; i < ROOM_NAME; i += 101)
		in[i] = '/';
	in[ROOM_NAME - 1] = '\0';
	ck_assert_ptr_null(room_name(in, ret));
	ck_assert_str_eq(in, ret);
	memcpy(in + ROOM_NAME - 1, "b", 2);
	ck_assert_ptr_nonnull(room_name(in, ret));
}
END_TEST

/* ---- what is taken ------------------------------------------------------- */

START_TEST(plain)
{
	char		link[16] = "";
	struct stat	st;

	tar_entry('5', "./", NULL, 0750);
	tar_entry('5', "./d/", NULL, 0555);
	tar_file("d/f", "hello");
	tar_entry('1', "d/h", "./d/f", 0644);
	tar_entry('2', "s", "../outside/file", 0777);
	tar_entry('6', "p", NULL, 0640);
	tar_entry('0', "suid", NULL, 06755);
	tar_file("not/named/parent", "x");
	tar_entry('5', "d", NULL, 0711);
	tar_end();
	taken();
	ck_assert_int_eq(rep.entries, 9);
	ck_assert_int_eq(rep.bytes, 6 + 15);	/* files, and the link */
	st = look("d");
	ck_assert_int_eq(st.st_mode, S_IFDIR | 0711);
	ck_assert_int_eq(st.st_mtime, 1000000000);
	ck_assert_int_eq(look("d/f").st_ino, look("d/h").st_ino);
	ck_assert_int_eq(look("d/f").st_size, 5);
	ck_assert_int_eq(readlinkat(tree, "s", link, sizeof link), 15);
	ck_assert_int_eq(memcmp(link, "../outside/file", 15), 0);
	ck_assert_int_eq(look("s").st_mtime, 1000000000);
	ck_assert_int_eq(look("p").st_mode, S_IFIFO | 0640);
	ck_assert_int_eq(look("suid").st_mode, S_IFREG | 06755);
	ck_assert_int_eq(look("not").st_mode, S_IFDIR | 0755);
	ck_assert_int_eq(fstat(tree, &st), 0);
	ck_assert_int_eq(st.st_mode, S_IFDIR | 0750);
	ck_assert_int_eq(st.st_mtime, 1000000000);
}
END_TEST

START_TEST(odd_names)
{
	char	longest[256];

	tar_file("new\nline", "");
	tar_file("\xff\xfe", "");
	/* two forms of one letter */
	tar_pax_text("path", "e\xcc\x81t\xc3\xa9");
	tar_file("x", "");
	memset(longest, 'n', 255);
	longest[255] = '\0';
	tar_pax_text("path", longest);
	tar_file("y", "");
	tar_pax_text("linkpath", "to/\xc3\xa9/\xff");
	tar_entry('2', "l", "x", 0777);
	tar_end();
	taken();
	look("new\nline");
	look("\xff\xfe");
	look("e\xcc\x81t\xc3\xa9");
	look(longest);
	ck_assert_int_eq(look("l").st_size, 7);
}
END_TEST

START_TEST(times)
{
	tar_pax_text("mtime", "-86400");
	tar_file("before", "");
	tar_pax_text("mtime", "1234567890.123456789");
	tar_file("fine", "");
	tar_end();
	taken();
	ck_assert_int_eq(look("before").st_mtime, -86400);
	ck_assert_int_eq(look("fine").st_mtim.tv_nsec, 123456789);
}
END_TEST

START_TEST(sparse)
{
	/* GNU 1.0 by pax: a map of one piece of 5 bytes at 1 MiB */
	struct stat	st;
	char		map[517] = "1\n1048576\n5\n";

	memcpy(map + 512, "hello", 5);
	tar_pax_records("22 GNU.sparse.major=1\n"
	    "22 GNU.sparse.minor=0\n"
	    "28 GNU.sparse.name=realname\n"
	    "31 GNU.sparse.realsize=2097152\n");
	tar_head(&(struct tar_head){ .type = '0', .name = "x", .mode = 0644,
	    .size = 517, .uid = owner_uid, .gid = owner_gid });
	tar_data(map, sizeof map);
	tar_end();
	taken();
	st = look("realname");
	ck_assert_int_eq(st.st_size, 2097152);
	ck_assert_int_lt(st.st_blocks * 512, 65536);
	ck_assert_int_eq(rep.bytes, 2097152);
}
END_TEST

START_TEST(attributes)
{
	char	val[8];
	int	fd;

	tar_pax("SCHILY.xattr.user.a", "v\0w", 3);
	tar_file("f", "");
	tar_pax("SCHILY.xattr.trusted.overlay.redirect", "/etc", 4);
	tar_file("t", "");
	tar_pax("SCHILY.xattr.security.capability", "\1\0\0\2\0\4\0\0\0\0\0\0"
	    "\0\0\0\0\0\0\0\0", 20);
	tar_file("c", "");
	tar_pax("SCHILY.xattr.security.selinux", "label", 5);
	tar_file("l", "");
	tar_pax_text("SCHILY.acl.access", "user::rw-,user:1000:rw-,group::r--,"
	    "mask::rw-,other::r--");
	tar_file("acl", "");
	tar_pax("SCHILY.xattr.trusted.x", "y", 1);
	tar_entry('5', "d", NULL, 0755);
	tar_pax("SCHILY.xattr.user.a", "v", 1);
	tar_entry('2', "s", "f", 0777);
	tar_end();
	taken();
	ck_assert_int_ne(fd = openat(tree, "f", O_RDONLY), -1);
	ck_assert_int_eq(fgetxattr(fd, "user.a", val, sizeof val), 3);
	ck_assert_int_eq(memcmp(val, "v\0w", 3), 0);
	ck_assert_int_eq(flistxattr(fd, NULL, 0), 7);
	close(fd);
	for (const char *const *p = (const char *const[]){ "t", "c", "l",
	    "acl", "d", NULL }; *p != NULL; p++) {
		ck_assert_int_ne(fd = openat(tree, *p, O_RDONLY), -1);
		ck_assert_msg(flistxattr(fd, NULL, 0) == 0, "%s has "
		    "attributes", *p);
		close(fd);
	}
	ck_assert_int_eq(rep.left[LEFT_TRUSTED], 2);
	ck_assert_int_eq(rep.left[LEFT_SECURITY], 2);
	ck_assert_int_eq(rep.left[LEFT_ACL], 1);
	ck_assert_int_eq(rep.left[LEFT_OTHER], 1);	/* a link's */
	ck_assert_int_eq(rep.left[LEFT_DEVICE], 0);
}
END_TEST

START_TEST(devices)
{
	tar_entry('3', "dev/null", NULL, 0666);
	tar_entry('4', "sda", NULL, 0660);
	tar_file("f", "");
	tar_end();
	taken();
	ck_assert_int_eq(rep.left[LEFT_DEVICE], 2);
	absent("dev/null");
	absent("sda");
	look("f");
}
END_TEST

static TCase *
taken_case(void)
{
	TCase	*t = tcase_create("taken");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, names);
	tcase_add_test(t, long_names);
	tcase_add_test(t, plain);
	tcase_add_test(t, odd_names);
	tcase_add_test(t, times);
	tcase_add_test(t, sparse);
	tcase_add_test(t, attributes);
	tcase_add_test(t, devices);
	return t;
}

int
main(void)
{
	Suite	*s = suite_create("room");
	SRunner	*r;
	int	 failed = rig_make();

	if (failed != 0)
		return failed;
	suite_add_tcase(s, taken_case());
	suite_add_tcase(s, escape_case());
	suite_add_tcase(s, bounds_case());
	suite_add_tcase(s, ends_case());
	suite_add_tcase(s, packed_case());
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	rig_sweep();
	return failed == 0 ? 0 : 1;
}
