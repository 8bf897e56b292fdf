/*
 * room_test: archives that strangers make, byte by byte, and what becomes of
 * them in a directory.
 *
 * Each refusal is by its reason, and shows what it must not have touched: a
 * directory `outside' beside the tree, with one file.  The whole command, its
 * fence and its cleaning up are box/rootfs.sh's.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../workbox/room.h"
#include "xmalloc.h"

#include <check.h>

#define MIB	(1024UL * 1024)

static char			tmp[] = WB_TOP_BUILDDIR "/regress/roomXXXXXX";
static int			top = -1, tree = -1;	/* the test's, its tree */
static FILE			*tar;
static struct room_limits	most;
static struct room_report	rep;

/* ---- a tree and an archive ----------------------------------------------- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)f;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void
setup(void)
{
	/* what a test left that failed */
	(void)nftw(tmp, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	ck_assert_int_eq(mkdir(tmp, 0755), 0);
	ck_assert_int_ne(top = open(tmp, O_RDONLY | O_DIRECTORY), -1);
	ck_assert_int_eq(mkdirat(top, "tree", 0755), 0);
	ck_assert_int_eq(mkdirat(top, "outside", 0755), 0);
	ck_assert_int_ne(tree = openat(top, "tree", O_RDONLY | O_DIRECTORY),
	    -1);
	close(openat(top, "outside/file", O_WRONLY | O_CREAT, 0600));
	ck_assert_ptr_nonnull(tar = tmpfile());
	most = (struct room_limits){ 8 * MIB, 1000, 0 };
	umask(022);
}

static void
teardown(void)
{
	struct stat	st;

	ck_assert_int_eq(fstatat(top, "outside/file", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_int_eq(st.st_nlink, 1);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(unlinkat(top, "outside/file", 0), 0);
	ck_assert_int_eq(unlinkat(top, "outside", AT_REMOVEDIR), 0);
	fclose(tar);
	close(tree);
	close(top);
	ck_assert_int_eq(nftw(tmp, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

struct head {
	char	type;
	const char *name, *link;
	uint64_t mode, uid, gid, size;
	int64_t	mtime;
	const char *size_text;		/* instead of size */
};

static void
octal(char *to, size_t width, uint64_t v)
{
	snprintf(to, width, "%0*" PRIo64, (int)width - 1, v);
}

/* ustar: the 512 bytes of a header; the caller adds what follows. */
static void
head(const struct head *h)
{
	char		b[512] = "";
	unsigned int	i, sum = 0;

	strncpy(b, h->name, 100);
	octal(b + 100, 8, h->mode);
	octal(b + 108, 8, h->uid);
	octal(b + 116, 8, h->gid);
	octal(b + 124, 12, h->size);
	if (h->size_text != NULL)
		memcpy(b + 124, h->size_text, 12);
	octal(b + 136, 12, (uint64_t)h->mtime);
	b[156] = h->type;
	if (h->link != NULL)
		strncpy(b + 157, h->link, 100);
	memcpy(b + 257, "ustar\00000", 8);
	memset(b + 148, ' ', 8);
	for (i = 0; i < sizeof b; i++)
		sum += (unsigned char)b[i];
	snprintf(b + 148, 8, "%06o", sum);
	fwrite(b, sizeof b, 1, tar);
}

static void
data(const void *p, size_t len)
{
	static const char	zero[512];

	fwrite(p, 1, len, tar);
	fwrite(zero, 1, (512 - len % 512) % 512, tar);
}

static void
end(void)
{
	static const char	zero[1024];

	fwrite(zero, sizeof zero, 1, tar);
}

static void
pax(const char *key, const void *val, size_t len)
{
	char	*rec;
	size_t	 n = strlen(key) + len + 3, digits = 1, all;

	for (all = n + digits; all >= (digits == 1 ? 10 : digits == 2 ? 100 :
	    digits == 3 ? 1000 : 10000); all = n + ++digits)
		;
	rec = xmalloc(all + 1);
	n = (size_t)sprintf(rec, "%zu %s=", all, key);
	memcpy(rec + n, val, len);
	rec[all - 1] = '\n';
	head(&(struct head){ .type = 'x', .name = "pax", .mode = 0644,
	    .size = all });
	data(rec, all);
	free(rec);
}

static void
pax_text(const char *key, const char *val)
{
	pax(key, val, strlen(val));
}

static void
pax_records(const char *all)
{
	head(&(struct head){ .type = 'x', .name = "pax",
	    .size = strlen(all) });
	data(all, strlen(all));
}

static uint64_t	owner_uid, owner_gid;

static void
entry(char type, const char *name, const char *link, uint64_t mode)
{
	head(&(struct head){ .type = type, .name = name, .link = link,
	    .mode = mode, .uid = owner_uid, .gid = owner_gid,
	    .mtime = 1000000000 });
}

static void
file(const char *name, const char *text)
{
	head(&(struct head){ .type = '0', .name = name, .mode = 0644,
	    .uid = owner_uid, .gid = owner_gid, .size = strlen(text) });
	data(text, strlen(text));
}

static int
fill(void)
{
	fflush(tar);
	rewind(tar);
	return room_fill(fileno(tar), tree, &most, &rep);
}

/* The archive is refused, and why has the text in it. */
static void
refused(const char *text)
{
	ck_assert_int_eq(fill(), -1);
	ck_assert_int_eq((int)rep.ok, 0);
	ck_assert_msg(strstr(rep.why, text) != NULL, "got: %s; expected: %s",
	    rep.why, text);
}

static void
taken(void)
{
	ck_assert_msg(fill() == 0, "%s", rep.why);
	ck_assert_int_eq((int)rep.ok, 1);
	ck_assert_str_eq(rep.why, "");
}

static struct stat
look(const char *name)
{
	struct stat	st;

	ck_assert_msg(fstatat(tree, name, &st, AT_SYMLINK_NOFOLLOW) == 0,
	    "%s: %s", name, strerror(errno));
	return st;
}

static void
absent(const char *name)
{
	struct stat	st;

	ck_assert_int_eq(fstatat(tree, name, &st, AT_SYMLINK_NOFOLLOW), -1);
}

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

	entry('5', "./", NULL, 0750);
	entry('5', "./d/", NULL, 0555);
	file("d/f", "hello");
	entry('1', "d/h", "./d/f", 0644);
	entry('2', "s", "../outside/file", 0777);
	entry('6', "p", NULL, 0640);
	entry('0', "suid", NULL, 06755);
	file("not/named/parent", "x");
	entry('5', "d", NULL, 0711);
	end();
	taken();
	ck_assert_int_eq(rep.entries, 9);
	ck_assert_int_eq(rep.bytes, 6);
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

	file("new\nline", "");
	file("\xff\xfe", "");
	pax_text("path", "e\xcc\x81t\xc3\xa9");	/* two forms of one letter */
	file("x", "");
	memset(longest, 'n', 255);
	longest[255] = '\0';
	pax_text("path", longest);
	file("y", "");
	pax_text("linkpath", "to/\xc3\xa9/\xff");
	entry('2', "l", "x", 0777);
	end();
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
	pax_text("mtime", "-86400");
	file("before", "");
	pax_text("mtime", "1234567890.123456789");
	file("fine", "");
	end();
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
	pax_records("22 GNU.sparse.major=1\n"
	    "22 GNU.sparse.minor=0\n"
	    "28 GNU.sparse.name=realname\n"
	    "31 GNU.sparse.realsize=2097152\n");
	head(&(struct head){ .type = '0', .name = "x", .mode = 0644,
	    .size = 517, .uid = owner_uid, .gid = owner_gid });
	data(map, sizeof map);
	end();
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

	pax("SCHILY.xattr.user.a", "v\0w", 3);
	file("f", "");
	pax("SCHILY.xattr.trusted.overlay.redirect", "/etc", 4);
	file("t", "");
	pax("SCHILY.xattr.security.capability", "\1\0\0\2\0\4\0\0\0\0\0\0"
	    "\0\0\0\0\0\0\0\0", 20);
	file("c", "");
	pax("SCHILY.xattr.security.selinux", "label", 5);
	file("l", "");
	pax_text("SCHILY.acl.access", "user::rw-,user:1000:rw-,group::r--,"
	    "mask::rw-,other::r--");
	file("acl", "");
	pax("SCHILY.xattr.trusted.x", "y", 1);
	entry('5', "d", NULL, 0755);
	pax("SCHILY.xattr.user.a", "v", 1);
	entry('2', "s", "f", 0777);
	end();
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
	entry('3', "dev/null", NULL, 0666);
	entry('4', "sda", NULL, 0660);
	file("f", "");
	end();
	taken();
	ck_assert_int_eq(rep.left[LEFT_DEVICE], 2);
	absent("dev/null");
	absent("sda");
	look("f");
}
END_TEST

/* ---- ways out ------------------------------------------------------------ */

START_TEST(absolute)
{
	file("/etc/x", "");
	end();
	refused("\"/etc/x\" has an absolute name");
}
END_TEST

START_TEST(dots)
{
	file("a/../../outside/file", "evil");
	end();
	refused("has `..' in its name");
}
END_TEST

START_TEST(absolute_by_pax)
{
	char	path[300];

	snprintf(path, sizeof path, "%s/outside/file", tmp);
	pax_text("path", path);
	file("fine", "evil");
	end();
	refused("has an absolute name");
}
END_TEST

START_TEST(through_link)
{
	entry('2', "l", "../outside", 0777);
	file("l/file", "evil");
	end();
	refused("\"l/file\" leads through something that is not a directory");
}
END_TEST

START_TEST(through_absolute_link)
{
	char	path[300];

	snprintf(path, sizeof path, "%s/outside", tmp);
	pax_text("linkpath", path);
	entry('2', "l", "x", 0777);
	file("l/new", "evil");
	end();
	refused("leads through something");
}
END_TEST

/* also where the link leads nowhere bad */
START_TEST(through_link_within)
{
	entry('5', "d/deep", NULL, 0755);
	entry('2', "l", "d", 0777);
	file("l/deep/f", "x");
	end();
	refused("leads through something");
}
END_TEST

START_TEST(through_chain)
{
	entry('2', "a", ".", 0777);
	entry('2', "a/b", "..", 0777);
	file("b/outside/file", "x");
	end();
	refused("leads through something");
}
END_TEST

START_TEST(onto_link)
{
	entry('2', "l", "../outside/file", 0777);
	file("l", "evil");
	end();
	refused("\"l\" is in the archive twice");
}
END_TEST

START_TEST(directory_onto_link)
{
	entry('2', "l", "../outside", 0777);
	entry('5', "l", NULL, 0777);
	file("l/file", "evil");
	end();
	refused("\"l\" is in the archive twice");
}
END_TEST

START_TEST(link_onto_directory)
{
	entry('5', "d", NULL, 0755);
	entry('2', "d", "../outside", 0777);
	file("d/file", "evil");
	end();
	refused("\"d\" is in the archive twice");
}
END_TEST

START_TEST(file_onto_directory)
{
	entry('5', "d", NULL, 0755);
	file("d/x", "");
	file("d", "");
	end();
	refused("\"d\" is in the archive twice");
}
END_TEST

START_TEST(directory_onto_file)
{
	file("d", "");
	entry('5', "d", NULL, 0755);
	end();
	refused("\"d\" is in the archive twice");
}
END_TEST

START_TEST(below_file)
{
	file("d", "");
	file("d/x", "");
	end();
	refused("leads through something");
}
END_TEST

START_TEST(file_twice)
{
	file("d/x", "1");
	file("./d//x", "2");
	end();
	refused("is in the archive twice");
}
END_TEST

START_TEST(root_is_file)
{
	file("./", "");
	entry('2', ".", "/", 0777);
	end();
	refused("is the root, and not a directory");
}
END_TEST

START_TEST(hard_outside)
{
	entry('1', "h", "../outside/file", 0777);
	end();
	refused("is a hard link to what has `..' in its name");
}
END_TEST

START_TEST(hard_absolute)
{
	entry('1', "h", "/etc/passwd", 0777);
	end();
	refused("is a hard link to what has an absolute name");
}
END_TEST

START_TEST(hard_through_link)
{
	entry('2', "l", "../outside", 0777);
	entry('1', "h", "l/file", 0777);
	end();
	refused("is a hard link to what is not there");
}
END_TEST

/* a link to a link is one, and writes nowhere */
START_TEST(hard_to_link)
{
	entry('2', "l", "../outside/file", 0777);
	entry('1', "h", "l", 0666);
	end();
	taken();
	ck_assert_int_eq(look("h").st_ino, look("l").st_ino);
}
END_TEST

START_TEST(hard_to_link_written)
{
	entry('2', "l", "../outside/file", 0777);
	entry('1', "h", "l", 0666);
	file("h", "evil");
	end();
	refused("\"h\" is in the archive twice");
}
END_TEST

START_TEST(hard_missing)
{
	entry('1', "h", "later", 0644);
	file("later", "");
	end();
	refused("is a hard link to what is not there, or not yet");
}
END_TEST

START_TEST(hard_directory)
{
	entry('5', "d", NULL, 0755);
	entry('1', "h", "d", 0644);
	end();
	refused("is a hard link to a directory");
}
END_TEST

START_TEST(hard_root)
{
	entry('1', "h", ".", 0644);
	end();
	refused("is a hard link to");
}
END_TEST

START_TEST(mount_point_link)
{
	entry('5', "opt", NULL, 0755);
	entry('2', "opt/workbox", "/etc", 0777);
	end();
	refused("expected directories");
}
END_TEST

START_TEST(mount_point_parent)
{
	entry('2', "proc", "/", 0777);
	end();
	refused("expected directories");
}
END_TEST

/* ---- bounds -------------------------------------------------------------- */

START_TEST(ids)
{
	head(&(struct head){ .type = '0', .name = "f", .mode = 0644,
	    .uid = _i == 0 ? 65536 : owner_uid,
	    .gid = _i == 1 ? 65536 : owner_gid });
	end();
	refused("expected ids up to 65535");
}
END_TEST

START_TEST(ids_by_pax)
{
	pax_text(_i == 0 ? "uid" : "gid", "4294967296");
	file("f", "");
	end();
	refused("expected ids up to 65535");
}
END_TEST

START_TEST(too_large)
{
	most.bytes = 9;
	file("a", "hello");
	file("b", "world");
	end();
	refused("\"b\" and what comes before are more than 9 bytes");
	absent("b");
}
END_TEST

START_TEST(exactly_as_large)
{
	most.bytes = 10;
	file("a", "hello");
	file("b", "world");
	end();
	taken();
}
END_TEST

START_TEST(sparse_bomb)
{
	pax_records("22 GNU.sparse.major=1\n"
	    "22 GNU.sparse.minor=0\n"
	    "28 GNU.sparse.name=realname\n"
	    "43 GNU.sparse.realsize=1152921504606846976\n");
	head(&(struct head){ .type = '0', .name = "x", .mode = 0644,
	    .size = 512 });
	data("1\n0\n1\n", 512 - 506);
	end();
	refused("(--max-size)");
}
END_TEST

START_TEST(too_many)
{
	most.entries = 3 - (uint64_t)_i;
	file("a", "");
	file("b", "");
	file("c", "");
	end();
	if (_i == 0)
		taken();
	else
		refused("has more than 2 entries");
}
END_TEST

START_TEST(disk_full)
{
	char	*p = xcalloc(1, 65 * MIB);

	most.floor = UINT64_MAX;
	most.bytes = 100 * MIB;
	head(&(struct head){ .type = '0', .name = "f", .mode = 0644,
	    .size = 65 * MIB });
	data(p, 65 * MIB);
	end();
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
	pax_text("path", path);
	entry('5', "x", NULL, 0755);
	end();
	refused("more than 128 directories deep");
}
END_TEST

/* ---- lies and ends ------------------------------------------------------- */

START_TEST(size_lies)
{
	static const char *const v[] = { "1", "3000", "99999999",
	    "9223372036854775807", "18446744073709551615", "-1" };

	/* 600 bytes, in 1024, are there */
	char	text[600];

	memset(text, 'x', sizeof text);
	pax_text("size", v[_i]);
	head(&(struct head){ .type = '0', .name = "f", .mode = 0644,
	    .size = 600, .uid = owner_uid, .gid = owner_gid });
	data(text, sizeof text);
	file("g", "");
	end();
	most.bytes = INT64_MAX;
	ck_assert_int_eq(fill(), -1);
	ck_assert_str_ne(rep.why, "");
}
END_TEST

/* Wherever it is cut, it is refused. */
START_TEST(cut)
{
	long	size, at;

	entry('5', "d", NULL, 0755);
	pax_text("comment", "more");
	file("d/f", "hello");
	file("zero", "");
	size = ftell(tar);
	end();
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

	file("f", "hello");
	fwrite(zero, sizeof zero, 1, tar);
	taken();
}
END_TEST

START_TEST(padded)
{
	static const char	zero[10240];

	file("f", "hello");
	fwrite(zero, sizeof zero, 1, tar);
	taken();
}
END_TEST

START_TEST(garbage)
{
	static const char	zero[200000];

	file("f", "hello");
	end();
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
	file("f", "hello");
	end();
	file("g", "hello");
	end();
	refused("has something after its end");
}
END_TEST

START_TEST(other_formats)
{
	static const struct { const void *p; size_t len; } v[] = {
		{ "PK\003\004\024\0\0\0\0\0", 10 },
		{ "070701", 6 }, { "!<arch>\n", 8 }, { "7z\xbc\xaf\x27\x1c", 6 },
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
	end();
	refused("there is nothing in it");
}
END_TEST

START_TEST(bad_checksum)
{
	file("f", "hello");
	file("g", "hello");
	end();
	fseek(tar, 1024 + 2, SEEK_SET);
	fputc('!', tar);
	refused("cannot be read");
}
END_TEST

/* A record of pax that says nothing is passed over by many, not here. */
START_TEST(bad_pax)
{
	pax_records("999 path=x\n");
	file("f", "");
	end();
	refused("cannot be read");
}
END_TEST

/* ---- compressed ---------------------------------------------------------- */

static void
packed(const char *by)
{
	FILE	*to = tmpfile();
	int	 st;
	pid_t	 pid;

	fflush(tar);
	rewind(tar);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0) {
		(void)dup2(fileno(tar), 0);
		(void)dup2(fileno(to), 1);
		(void)execlp(by, by, "-c", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_msg(st == 0, "%s: %#x", by, (unsigned int)st);
	fclose(tar);
	tar = to;
	fseek(tar, 0, SEEK_END);
}

static const char *const	filters[] = { "gzip", "xz", "zstd" };

START_TEST(compressed)
{
	file("f", "hello");
	end();
	packed(filters[_i]);
	taken();
	look("f");
}
END_TEST

START_TEST(compressed_garbage)
{
	file("f", "hello");
	end();
	packed(filters[_i]);
	fwrite("garbage", 7, 1, tar);
	ck_assert_int_eq(fill(), -1);
	ck_assert_str_ne(rep.why, "");
}
END_TEST

START_TEST(compressed_cut)
{
	long	at;

	file("f", "hello");
	end();
	packed(filters[_i]);
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

	file("f", "hello");
	end();
	packed("gzip");
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
			file("f", "hello");
		else
			end();
		packed("gzip");
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
	file("f", "hello");
	end();
	packed(filters[_i]);
	packed(_i == 0 ? "xz" : "gzip");
	refused(_i == 0 ? "expected a tar archive" :
	    "is compressed more than once");
}
END_TEST

/* 16 MiB of zeros, in a few kilobytes */
START_TEST(bomb)
{
	char	*p = xcalloc(1, 16 * MIB);

	head(&(struct head){ .type = '0', .name = "f", .mode = 0644,
	    .size = 16 * MIB });
	data(p, 16 * MIB);
	end();
	free(p);
	packed(filters[_i]);
	refused("(--max-size)");
	absent("f");
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
	entry('5', "d", NULL, 0755);
	pax_text("path", "d/longer");
	file("f", "hello");
	entry('1', "h", "d/longer", 0644);
	entry('2', "l", "../outside", 0777);
	end();
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
		ck_assert_int_eq(nftw(path, remove_one, 16, FTW_DEPTH |
		    FTW_PHYS), 0);
	}
	free(all);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("room");
	TCase	*t = tcase_create("room");
	SRunner	*r;
	int	 failed;

	owner_uid = getuid();
	owner_gid = getgid();
	if (owner_uid > 65535 || owner_gid > 65535) {
		printf("skip: ids of this user are above 65535\n");
		return 77;
	}
	if (mkdtemp(tmp) == NULL) {
		perror(tmp);
		return 1;
	}
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
#define T(f)	tcase_add_test(t, f)
	T(names); T(long_names); T(plain); T(odd_names); T(times); T(sparse);
	T(attributes); T(devices);
	T(absolute); T(dots); T(absolute_by_pax); T(through_link);
	T(through_absolute_link); T(through_link_within); T(through_chain);
	T(onto_link); T(directory_onto_link); T(link_onto_directory);
	T(file_onto_directory); T(directory_onto_file); T(below_file);
	T(file_twice); T(root_is_file);
	T(hard_outside); T(hard_absolute); T(hard_through_link);
	T(hard_to_link); T(hard_to_link_written); T(hard_missing);
	T(hard_directory); T(hard_root);
	T(mount_point_link); T(mount_point_parent);
	T(too_large); T(exactly_as_large); T(sparse_bomb); 
	T(disk_full); T(deep); T(cut); T(one_end_block); T(padded);
	T(concatenated); T(empty); T(bad_checksum); T(bad_pax); T(bits);
#undef T
	tcase_add_loop_test(t, ids, 0, 2);
	tcase_add_loop_test(t, ids_by_pax, 0, 2);
	tcase_add_loop_test(t, size_lies, 0, 6);
	tcase_add_loop_test(t, too_many, 0, 2);
	tcase_add_loop_test(t, garbage, 0, 3);
	tcase_add_loop_test(t, other_formats, 0, 11);
	tcase_add_loop_test(t, compressed, 0, 3);
	tcase_add_loop_test(t, compressed_garbage, 0, 3);
	tcase_add_loop_test(t, compressed_cut, 0, 3);
	tcase_add_loop_test(t, compressed_twice, 0, 3);
	tcase_add_loop_test(t, compressed_damaged, 0, 8);
	tcase_add_loop_test(t, compressed_in_members, 0, 20);
	tcase_add_loop_test(t, bomb, 0, 3);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	(void)nftw(tmp, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed == 0 ? 0 : 1;
}
