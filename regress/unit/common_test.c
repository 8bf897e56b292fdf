/*
 * common_test.c: ids, times, order, which session is meant, the sealed
 * configuration, ownership helpers.
 */
#include <sys/mman.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "sort.h"
#include "sref.h"
#include "ulid.h"
#include "xmalloc.h"

START_TEST(ids_ascend)
{
	char	a[ULID_LEN + 1], b[ULID_LEN + 1];
	int	i;

	ulid_new(a);
	for (i = 0; i < 100000; i++) {
		ulid_new(b);
		ck_assert(ulid_ok(b));
		ck_assert_int_gt(strcmp(b, a), 0);
		memcpy(a, b, sizeof(a));
	}
	/* the floor is an id of a clock that has stepped back */
	ulid_floor("7ZZZZZZZZZZZZZZZZZZZZZZZZY");
	ulid_new(b);
	ck_assert_str_eq(b, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
}
END_TEST

START_TEST(times)
{
	char	s[25];

	time_rfc3339(0, s);
	ck_assert_str_eq(s, "1970-01-01T00:00:00.000Z");
	time_rfc3339(1767225599999ULL, s);
	ck_assert_str_eq(s, "2025-12-31T23:59:59.999Z");
	ck_assert_uint_eq(ulid_ms("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
	    1469922850259ULL);
}
END_TEST

#define SORTED	2000

struct element { uint32_t key, was; char rest[SORT_SIZE - 8]; };

static unsigned int	ncompared;

static int
element_cmp(const void *a, const void *b, const void *arg)
{
	const struct element	*x = a, *y = b;

	ck_assert_ptr_eq(arg, &ncompared);
	ncompared++;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Keys in any order, in order, the other way round, all the same, two. */
static uint32_t
key(int how, unsigned int i)
{
	return how == 0 ? (i * 2654435761U) >> 7 : how == 1 ? i : how == 2 ?
	    SORTED - i : how == 3 ? 7 : i % 2;
}

START_TEST(in_order)
{
	static struct element	v[SORTED + 1];
	static char		seen[SORTED];
	unsigned int		n, i;

	for (n = 0; n <= SORTED; n = n < 20 ? n + 1 : n * 10) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i <= n; i++) {
			v[i] = (struct element){ key(_i, i), i, "" };
			memset(v[i].rest, (int)i, sizeof(v[i].rest));
		}
		v[n].key = 0;			/* is not among them */
		ncompared = 0;
		sort(v, n, sizeof(*v), element_cmp, &ncompared);
		ck_assert_uint_eq(v[n].was, n);
		ck_assert_uint_le(ncompared, 2 * n * 11 + 2 * n);
		for (i = 0; i < n; i++) {
			ck_assert(i == 0 || v[i - 1].key <= v[i].key);
			ck_assert_uint_eq(v[i].key, key(_i, v[i].was));
			ck_assert_int_eq(v[i].rest[SORT_SIZE - 9],
			    (char)v[i].was);
			ck_assert(!seen[v[i].was]);
			seen[v[i].was] = 1;
		}
	}
}
END_TEST

START_TEST(sealed_conf)
{
	struct conf		 c = { 0 };
	const struct conf	*back;
	struct wire_bin		 l[] = { wire_cstr("127.0.0.1:1"),
	    wire_cstr("[::1]:2") };
	int			 fd, plain;

	(void)str_copy(c.state_dir, "/x", sizeof(c.state_dir));
	c.listen.v = l;
	c.listen.n = 2;
	ck_assert_int_eq(conf_seal(&c), -1);	/* values below their least */
#define C_U64(w, f, lo, hi, d, doc)	c.f = d;
#define X_U64(f, lo, hi)		c.f = hi;
#include "conf.def"
	fd = conf_seal(&c);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	back = conf_read(fd);
	ck_assert_ptr_nonnull(back);
	ck_assert_ptr_null(wire_differs(&wire_conf, &c, back));
	/* the same bytes without seals are refused */
	plain = memfd_create("plain", MFD_ALLOW_SEALING);
	ck_assert_int_eq(write(plain, "\x80", 1), 1);
	ck_assert_ptr_null(conf_read(plain));
	close(plain);
	close(fd);
}
END_TEST

START_TEST(copies)
{
	char	b[4];

	ck_assert_int_eq(str_copy(b, "abc", sizeof(b)), 0);
	ck_assert_int_eq(str_copy(b, "abcd", sizeof(b)), -1);
	ck_assert_str_eq(b, "abc");
	ck_assert_int_eq(str_copy(b, "", sizeof(b)), 0);
	ck_assert_str_eq(b, "");
}
END_TEST

/* What a peer sent is escaped, a line is one line, and cut. */
START_TEST(log_lines)
{
	char	got[4096], big[3000];
	int	p[2], save = dup(STDERR_FILENO);
	ssize_t	n;

	memset(big, '\x01', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(dup2(p[1], STDERR_FILENO), STDERR_FILENO);
	log_init("test", LOG_L_INFO, 0);
	errno = ENOENT;
	log_warn("open %s", "a\nb\x1b[2J");
	ck_assert_int_eq(errno, ENOENT);
	log_debug("not shown");
	log_info("%s", big);
	ck_assert_int_eq(dup2(save, STDERR_FILENO), STDERR_FILENO);
	close(save);
	close(p[1]);
	for (n = 0; ; ) {
		ssize_t r = read(p[0], got + n, sizeof(got) - 1 - (size_t)n);

		if (r <= 0)
			break;
		n += r;
	}
	got[n] = '\0';
	close(p[0]);
	ck_assert_ptr_nonnull(strstr(got, "]: warning: open a\\x0ab\\x1b[2J: "
	    "No such file or directory\n"));
	ck_assert_ptr_null(strstr(got, "not shown"));
	ck_assert_int_lt(n, 1400);
	ck_assert_int_eq(got[n - 1], '\n');
}
END_TEST

/* ---- which session is meant -------------------------------------------- */

static const struct seen { const char *id, *name; int ended; } seen[] = {
	{ "01K8AAAAAAAAAAAAAAAAAAAAA1", "build", 0 },
	{ "01K8AAAAAAAABAAAAAAAAAAAA2", "build", 0 },
	{ "01K8BBBBBBBBBBBBBBBBBBBBB3", "build", 1 },
	{ "01K8BBBBBBBBBBBBBBBBBBBBB4", "over", 1 },
	{ "01K8BBBBBBBBBBBBBBBBBBBBB5", "over", 1 },
	{ "01K8CCCCCCCCCCCCCCCCCCCCC6", "", 0 },
	{ "01234567890123456789012347", "x", 0 },
	{ "01K8DDDDDDDDDDDDDDDDDDDDD8", "012345678901234", 0 },
	{ "01K8DDDDDDDDDDDDDDDDDDDDD9", "112345678901234", 0 },
};
#define NSEEN	(sizeof(seen) / sizeof(seen[0]))

static const struct { const char *ref, *id; int many; } meant[] = {
	{ "01K8AAAAAAAAAAAAAAAAAAAAA1", "01K8AAAAAAAAAAAAAAAAAAAAA1", 0 },
	{ "01K8AAAAAAAAAAAAAAAAAAAAA9", NULL, 0 },
	{ "01K8AAAAAAAA", NULL, 1 },
	{ "01K8AAAAAAAAB", "01K8AAAAAAAABAAAAAAAAAAAA2", 0 },
	{ "01K8CCCCCCCC", "01K8CCCCCCCCCCCCCCCCCCCCC6", 0 },
	{ "build", "01K8AAAAAAAABAAAAAAAAAAAA2", 0 },	/* the newest runs */
	{ "over", "01K8BBBBBBBBBBBBBBBBBBBBB5", 0 },
	{ "ove", NULL, 0 },
	/* digits: an id's beginning before a name */
	{ "012345678901234", "01234567890123456789012347", 0 },
	{ "112345678901234", "01K8DDDDDDDDDDDDDDDDDDDDD9", 0 },
};

/* In any order, and twice. */
START_TEST(sessions_meant)
{
	struct sref	f;
	const char	*id;
	size_t		 i, k, at;

	for (i = 0; i < sizeof(meant) / sizeof(meant[0]); i++)
		for (k = 0; k < 2 * NSEEN; k++) {
			ck_assert_int_eq(sref_init(&f, meant[i].ref), 0);
			for (at = 0; at < NSEEN + k; at++)
				sref_see(&f, seen[(at + k) % NSEEN].id,
				    seen[(at + k) % NSEEN].name,
				    seen[(at + k) % NSEEN].ended);
			id = sref_id(&f);
			ck_assert_int_eq(f.many, meant[i].many);
			ck_assert_str_eq(id == NULL ? "" : id,
			    meant[i].id == NULL ? "" : meant[i].id);
		}
}
END_TEST

START_TEST(sessions_none)
{
	static const char *const	bad[] = { "", "01K8AAAAAAA", "a b",
	    "-x", "../x", "Build", "a/b", "01K8AAAAAAAAAAAAAAAAAAAAA1Z",
	    "01K8AAAAAAAAU", "a234567890123456789012345678901234567890"
	    "123456789012345678901234" };
	struct sref			f;
	size_t				i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(sref_init(&f, bad[i]) == -1, "%s", bad[i]);
	/* one without a name is nobody's name */
	ck_assert_int_eq(sref_init(&f, "x"), 0);
	sref_see(&f, seen[5].id, "", 0);
	ck_assert_ptr_null(sref_id(&f));
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("common");
	TCase	*t = tcase_create("common");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, ids_ascend);
	tcase_add_test(t, times);
	tcase_add_loop_test(t, in_order, 0, 5);
	tcase_add_test(t, sealed_conf);
	tcase_add_test(t, copies);
	tcase_add_test(t, log_lines);
	tcase_add_test(t, sessions_meant);
	tcase_add_test(t, sessions_none);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
