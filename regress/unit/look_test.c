/*
 * look_test: what doctor's checks compute from text: words, numbers, mounts,
 * ranges of ids, the clock; and that below a root no link leads out.
 */
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* before check.h, which has a fail() of its own */
#include "../../workbox/host.h"

#include <check.h>

#include "xmalloc.h"

START_TEST(words)
{
	ck_assert_int_eq(look_word("cpu memory pids\n", "memory"), 1);
	ck_assert_int_eq(look_word("cpu memory pids\n", "pids"), 1);
	ck_assert_int_eq(look_word("cpu memory pids", "pids"), 1);
	ck_assert_int_eq(look_word("cpu memoryx pids\n", "memory"), 0);
	ck_assert_int_eq(look_word("xmemory\n", "memory"), 0);
	ck_assert_int_eq(look_word("cpu\nmemory\n", "memory"), 0);
	ck_assert_int_eq(look_word("", "memory"), 0);
}
END_TEST

static int
fstype(const char *table, const char *path, char ret[16])
{
	FILE	*f = fmemopen((void *)(uintptr_t)table, strlen(table), "r");
	int	 rc;

	ck_assert_ptr_nonnull(f);
	rc = look_fstype(f, path, ret, 16);
	(void)fclose(f);	/* read only */
	return rc;
}

START_TEST(mounts)
{
	const char	*t = "/dev/a / ext4 rw 0 0\n"
	    "none /var tmpfs rw 0 0\n"
	    "none /var/lib/with\\040blank xfs rw 0 0\n"
	    "none /var/lib nfs rw 0 0\n"
	    "none /var/lib btrfs rw 0 0\n";
	char		 r[16] = "";

	ck_assert_int_eq(fstype(t, "/var/lib/workbox", r), 0);
	ck_assert_str_eq(r, "btrfs");		/* the one on top */
	ck_assert_int_eq(fstype(t, "/var/lib", r), 0);
	ck_assert_str_eq(r, "btrfs");
	ck_assert_int_eq(fstype(t, "/var/library", r), 0);
	ck_assert_str_eq(r, "tmpfs");		/* no part of a name */
	ck_assert_int_eq(fstype(t, "/var/lib/with blank/x", r), 0);
	ck_assert_str_eq(r, "xfs");
	ck_assert_int_eq(fstype(t, "/srv", r), 0);
	ck_assert_str_eq(r, "ext4");
	ck_assert_int_eq(fstype("none /proc proc rw 0 0\n", "/srv", r), -1);
	ck_assert_str_eq(r, "ext4");		/* untouched */
}
END_TEST

static const struct { struct id_range a, b; int want; } rows[] = {
	{ { 10, 10 }, { 20, 5 }, 0 },
	{ { 10, 10 }, { 19, 1 }, 1 },
	{ { 10, 10 }, { 0, 10 }, 0 },
	{ { 10, 10 }, { 0, 11 }, 1 },
	{ { 10, 10 }, { 12, 2 }, 1 },
	{ { 10, 10 }, { 0, 100 }, 1 },
	{ { 10, 10 }, { 12, 0 }, 0 },
	{ { 4294901760, 65535 }, { 4294967294, 4294967295 }, 1 },
	{ { 0, 0 }, { 0, 0 }, 0 },
};

START_TEST(overlap)
{
	ck_assert_int_eq(look_overlap(&rows[_i].a, &rows[_i].b),
	    rows[_i].want);
	ck_assert_int_eq(look_overlap(&rows[_i].b, &rows[_i].a),
	    rows[_i].want);
}
END_TEST

START_TEST(subid)
{
	static const char *const	bad[] = { "", "\n", "alice\n",
	    ":1:2\n", "alice:1\n", "alice:x:2\n", "alice:1:\n",
	    "alice:-1:2\n", "alice:1:2:3\n", "alice:1:2 \n", "# a:1:2\n",
	    "alice:4294967296:1\n", "alice:1:99999999999999999999\n",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	    ":1:2\n" };
	struct id_range			r = { 7, 7 };
	char				name[64] = "none";
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ck_assert_msg(look_subid(bad[i], name, &r) == -1, "%s",
		    bad[i]);
		ck_assert_uint_eq(r.first, 7);
		ck_assert_str_eq(name, "none");
	}
	ck_assert_int_eq(look_subid("alice:100000:65536\n", name, &r), 0);
	ck_assert_str_eq(name, "alice");
	ck_assert_uint_eq(r.first, 100000);
	ck_assert_uint_eq(r.count, 65536);
	ck_assert_int_eq(look_subid("1000:0:4294967295", name, &r), 0);
	ck_assert_str_eq(name, "1000");
	ck_assert_uint_eq(r.count, 4294967295);
}
END_TEST

START_TEST(clocks)
{
	ck_assert_int_eq(look_clock(0, 1), CLOCK_UNSET);
	ck_assert_int_eq(look_clock(1704067199, 1), CLOCK_UNSET);
	ck_assert_int_eq(look_clock(1704067200, 0), CLOCK_FREE);
	ck_assert_int_eq(look_clock(1704067200, 1), CLOCK_GOOD);
}
END_TEST

static void
put(const char *path, const char *text)
{
	int	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

/* A number behind lines of any length; not in the middle of one. */
static void
long_lines(void)
{
	char		*text = xmalloc(100100);
	uint64_t	 v;

	memset(text, '7', 100000);
	memcpy(text + 50000, " btime 1 ", 9);
	memcpy(text + 255 * 255, "btime 2 ", 8);
	memcpy(text + 100000, "\nbtime 3\nbtime 4\n", 18);
	put("in/long", text);
	ck_assert_int_eq(look_number("/long", "btime", &v), 0);
	ck_assert_uint_eq(v, 3);
	free(text);
}

/* What opening it would do cannot be told from an errno: none is opened. */
static void
not_opened(const char *name)
{
	char	buf[512];
	int	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;

	ck_assert_int_ne(inotify_add_watch(watch, "in", IN_OPEN), -1);
	ck_assert_int_eq(look_read(name), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_ne(fd = open("in", O_PATH | O_DIRECTORY), -1);
	ck_assert_int_eq(look_read_in(fd, name + 1), -1);
	ck_assert_int_eq(errno, EINVAL);
	(void)close(fd);
	ck_assert_int_eq(read(watch, buf, sizeof buf), -1);
	ck_assert_int_eq(errno, EAGAIN);
	(void)close(fd = look_read("/number"));
	ck_assert_int_ne(fd, -1);
	ck_assert_int_gt(read(watch, buf, sizeof buf), 0);
	(void)close(watch);
}

static void
nodes(void)
{
	ck_assert_int_eq(mkfifo("in/node", 0600), 0);
	not_opened("/node");
	ck_assert_int_eq(unlink("in/node"), 0);
	ck_assert_int_eq(mknod("in/node", S_IFSOCK | 0600, 0), 0);
	not_opened("/node");
	ck_assert_int_eq(unlink("in/node"), 0);
	/* /dev/full; who may make none has none to fear here */
	if (mknod("in/node", S_IFCHR | 0600, makedev(1, 7)) == -1)
		return;
	not_opened("/node");
	ck_assert_int_eq(unlink("in/node"), 0);
}

/* By whole names, and whatever the root is. */
static void
behind(void)
{
	ck_assert_str_eq(look_behind("in/a"), "/a");
	ck_assert_str_eq(look_behind("in"), "");
	ck_assert_ptr_null(look_behind("inner/a"));
	ck_assert_ptr_null(look_behind("i"));
	ck_assert_ptr_null(look_behind("(unreachable)/in/a"));
	ck_assert_int_eq(look_at("/"), 0);
	ck_assert_str_eq(look_behind("/a"), "/a");
	ck_assert_ptr_null(look_behind("(unreachable)/a"));
}

/* dir/in is the root; dir/out lies beside it. */
START_TEST(files)
{
	char		dir[] = "/tmp/look_test.XXXXXX", buf[8];
	uint64_t	v = 7;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(mkdir("in", 0700), 0);
	put("out", "secret\n");
	put("in/number", "a: x\nb:  123 kB\nc: 99999999999999999999\nd: -1\n");
	put("in/long", "0123456789\n");
	put("in/empty", "");
	ck_assert_int_eq(symlink("../out", "in/up"), 0);
	ck_assert_int_eq(symlink("/number", "in/abs"), 0);
	ck_assert_int_eq(look_at("in"), 0);
	ck_assert_str_eq(look_root(), "in");
	ck_assert_int_eq(look_number("/number", "b:", &v), 0);
	ck_assert_uint_eq(v, 123);
	ck_assert_int_eq(look_number("/abs", "b:", &v), 0);
	v = 7;
	ck_assert_int_eq(look_number("/number", "a:", &v), -1);
	ck_assert_int_eq(look_number("/number", "c:", &v), -1);
	ck_assert_int_eq(look_number("/number", "d:", &v), -1);
	ck_assert_int_eq(look_number("/number", "e:", &v), -1);
	ck_assert_int_eq(look_number("/nothing", "", &v), -1);
	ck_assert_uint_eq(v, 7);
	ck_assert_int_eq(look_text("/long", buf, sizeof buf), 7);
	ck_assert_str_eq(buf, "0123456");
	ck_assert_int_eq(look_text("/empty", buf, sizeof buf), 0);
	ck_assert_str_eq(buf, "");
	ck_assert_int_eq(look_text("/up", buf, sizeof buf), -1);
	ck_assert_int_eq(look_text("/../out", buf, sizeof buf), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(look_read("/"), -1);
	ck_assert_int_eq(errno, EISDIR);
	nodes();
	long_lines();
	behind();
	ck_assert_int_eq(unlink("in/number") | unlink("in/long") |
	    unlink("in/empty") | unlink("in/up") | unlink("in/abs") |
	    unlink("out") | rmdir("in") | rmdir(dir), 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("look");
	TCase	*t = tcase_create("look");
	SRunner	*r = srunner_create(s);
	int	 bad;

	tcase_add_test(t, words);
	tcase_add_test(t, mounts);
	tcase_add_loop_test(t, overlap, 0, sizeof rows / sizeof rows[0]);
	tcase_add_test(t, subid);
	tcase_add_test(t, clocks);
	tcase_add_test(t, files);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	bad = srunner_ntests_failed(r);
	srunner_free(r);
	return bad != 0;
}
