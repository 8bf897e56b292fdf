/*
 * ring_test: chunks in, chunks out, blocks dropped, pages counted.
 */
#include <sys/mman.h>
#include <sys/uio.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#define BLOCK	65536UL
#define BLOCK_PAGES	(BLOCK / RING_PAGE)

static struct ring	r;

static void
setup(void)
{
	ring_limit(64UL << 20);
	ring_init(&r);
}

/* Pages that the kernel has there. */
static size_t
resident(const uint8_t *block)
{
	unsigned char	v[BLOCK_PAGES];
	size_t		i, n = 0;

	/* no const in its prototype; it only looks */
	ck_assert_int_eq(mincore((void *)(uintptr_t)block, BLOCK, v), 0);
	for (i = 0; i < BLOCK_PAGES; i++)
		n += v[i] & 1;
	return n;
}

static uint8_t *
room_of(struct ring *ring, size_t *ret_len)
{
	struct iovec	v;

	ck_assert_uint_eq(ring_room(ring, 1, &v), 1);
	*ret_len = v.iov_len;
	return v.iov_base;
}

/* A chunk whose bytes follow from its number. */
static void
put(size_t len, unsigned int stream)
{
	uint64_t	 seq = r.last_seq + 1;
	size_t		 room;
	uint8_t		*p = room_of(&r, &room);

	ck_assert_uint_ge(room, 256);
	ck_assert_uint_le(room, CHUNK_MAX);
	len = len > room ? room : len;
	memset(p, (int)(seq & 0xff), len);
	ring_commit(&r, stream, len);
	ck_assert_uint_eq(r.last_seq, seq);
}

static size_t
check(uint64_t seq)
{
	struct chunk	c;
	size_t		i;

	ck_assert_int_eq(ring_find(&r, seq, &c), 0);
	ck_assert_uint_eq(c.seq, seq);
	ck_assert_uint_ge(c.len, 1);
	for (i = 0; i < c.len; i += c.len > 64 ? c.len - 1 : 1)
		ck_assert_uint_eq(c.data[i], seq & 0xff);
	return c.len;
}

START_TEST(test_empty)
{
	struct chunk	c;

	ck_assert_uint_eq(ring_first(&r), 1);
	ck_assert_uint_eq(r.last_seq, 0);
	ck_assert_int_eq(ring_find(&r, 1, &c), -1);
	ck_assert_int_eq(ring_find(&r, 0, &c), -1);
	ck_assert_uint_eq(ring_oldest(&r), 0);
	ck_assert_uint_eq(ring_after(&r, 0), 0);
}
END_TEST

/* Sizes of every kind; found from front, back and by leaps. */
START_TEST(test_find)
{
	static const size_t	sizes[] = { 1, 3, 4, 5, 100, 4095, 4096,
				    32767, 32768, 7 };
	size_t			len[500], sum = 0;
	struct chunk		c;
	uint64_t		i;

	for (i = 0; i < 500; i++) {
		put(sizes[i % 10], 1 + i % 2);
		len[i] = check(i + 1);
		sum += len[i];
	}
	ck_assert_uint_eq(r.bytes, sum);
	for (i = 1; i <= 500; i++) {
		ck_assert_uint_eq(check(i), len[i - 1]);
		ck_assert_uint_eq(check(501 - i), len[500 - i]);
		ck_assert_uint_eq(check(1 + i * 7919 % 500),
		    len[i * 7919 % 500]);
	}
	ck_assert_int_eq(ring_find(&r, 2, &c), 0);
	ck_assert_uint_eq(c.end, len[0] + len[1]);
	ck_assert_uint_eq(c.stream, 2);
	ck_assert_int_eq(ring_find(&r, 500, &c), 0);
	ck_assert_uint_eq(c.end, sum);
	ck_assert_int_eq(ring_find(&r, 501, &c), -1);
	ring_free(&r);
	ck_assert_uint_eq(r.pages, 0);
	ck_assert(ring_fits((64UL << 20) / RING_PAGE));
}
END_TEST

START_TEST(test_drop)
{
	uint64_t	i, first = 1, bytes = 0, before;
	size_t		len[201];
	struct chunk	c;

	for (i = 1; i <= 200; i++) {
		put(10000, 1);
		len[i] = check(i);
	}
	while (r.pages > 0) {
		before = ring_oldest(&r);
		ck_assert_uint_eq(ring_first(&r), first);
		ck_assert_uint_eq(ring_start(&r), bytes);
		ring_drop(&r);
		while (first <= before) {
			ck_assert_int_eq(ring_find(&r, first, &c), -1);
			bytes += len[first++];
		}
		if (r.pages > 0)
			(void)check(first);
	}
	ck_assert_uint_eq(ring_first(&r), 201);
	ck_assert_uint_eq(ring_start(&r), r.bytes);
	/* and it goes on where it was */
	put(5, 2);
	ck_assert_uint_eq(ring_first(&r), 201);
	(void)check(201);
	ck_assert_int_eq(ring_find(&r, 201, &c), 0);
	ck_assert_uint_eq(c.end, bytes + 5);
	ring_free(&r);
}
END_TEST

/* Pages are counted where they are used, and given back. */
START_TEST(test_pages)
{
	struct ring	 many[300];
	size_t		 room, i;
	uint8_t		*p;

	for (i = 0; i < 300; i++) {
		ring_init(&many[i]);
		p = room_of(&many[i], &room);
		memcpy(p, "ok\n", 3);
		ring_commit(&many[i], 1, 3);
		ck_assert_uint_eq(many[i].pages, 1);
	}
	ring_limit(300 * RING_PAGE);
	ck_assert(ring_fits(0));
	ck_assert(!ring_fits(1));
	for (i = 0; i < 300; i++)
		ring_free(&many[i]);
	ck_assert(ring_fits(300));
	ck_assert(!ring_fits(301));
	ck_assert_uint_eq(ring_bound(), 300 * RING_PAGE);
}
END_TEST

/* Chunks of any size fill the pages that hold them: heads, and a little. */
START_TEST(test_dense)
{
	size_t		len = 1;
	uint64_t	blocks;

	while (r.bytes < 4UL << 20) {
		put(len, 1);
		len = len * 7 % 8191 + 1;
	}
	blocks = r.bytes / 65536 + 1;
	ck_assert_uint_le(r.pages * RING_PAGE, r.bytes + r.last_seq * 7 +
	    blocks * 260 + RING_PAGE);
	ring_free(&r);
}
END_TEST

/* Room that was asked for and not used leaves nothing behind. */
START_TEST(test_trim)
{
	size_t	room;

	(void)room_of(&r, &room);
	ring_commit(&r, 1, 0);
	ck_assert(TAILQ_EMPTY(&r.blocks));
	put(3, 1);
	(void)room_of(&r, &room);
	ring_commit(&r, 1, 0);
	(void)check(1);
	ck_assert_uint_eq(ring_want(&r, 1), (4 + 4 + 4 + 32768 + 4095) / 4096 -
	    1);
	ring_free(&r);
}
END_TEST

/*
 * Room for several chunks, of which any number of bytes is used: they lie
 * where the room was, numbered in their order, and what was not used is gone.
 */
START_TEST(test_several)
{
	struct iovec	 v[WIDE_CHUNKS];
	struct chunk	 c;
	size_t		 n, i, all, want, before, used;
	uint64_t	 seq, first;
	uint8_t		*p;

	for (used = 0; used < 400000; used += used < 40 ? 1 : 9973) {
		put(used * 31 % 70000 + 1, 1);	/* begins anywhere */
		before = r.pages;
		want = ring_want(&r, WIDE_CHUNKS);
		first = r.last_seq + 1;
		n = ring_room(&r, WIDE_CHUNKS, v);
		ck_assert_uint_eq(n, WIDE_CHUNKS);
		for (i = all = 0; i < n; i++) {
			ck_assert_uint_ge(v[i].iov_len, 256);
			ck_assert_uint_le(v[i].iov_len, CHUNK_MAX);
			memset(v[i].iov_base, (int)((first + i) & 0xff),
			    v[i].iov_len);
			all += v[i].iov_len;
		}
		all = used < all ? used : all;
		ring_commit(&r, 2, all);
		ck_assert_uint_le(r.pages - before, want);
		for (seq = first, i = 0; seq <= r.last_seq; seq++, i++) {
			ck_assert_uint_ge(check(seq), 1);
			ck_assert_int_eq(ring_find(&r, seq, &c), 0);
			ck_assert_uint_eq(c.stream, 2);
			p = v[i].iov_base;
			ck_assert_ptr_eq(c.data, p);
			all -= c.len;
		}
		ck_assert_uint_eq(all, 0);
		while (r.pages > 1024)
			ring_drop(&r);
		ring_cool();
	}
	ring_free(&r);
	ck_assert_uint_eq(r.pages, 0);
}
END_TEST

/* Room for all that a wide pipe holds, wherever in a block it begins. */
START_TEST(test_wide)
{
	struct iovec	v[WIDE_CHUNKS];
	size_t		n, i, all, begin;

	for (begin = 1; begin < 2 * BLOCK; begin += 13) {
		put(begin % CHUNK_MAX + 1, 1);
		n = ring_room(&r, WIDE_CHUNKS, v);
		for (i = all = 0; i < n; i++)
			all += v[i].iov_len;
		ring_commit(&r, 1, 0);
		ck_assert_uint_ge(all, WIDE_PIPE);
		while (r.pages > 1024)
			ring_drop(&r);
	}
	ring_free(&r);
}
END_TEST

/* One prints without end; what others say is resident as it is counted. */
START_TEST(test_resident_small)
{
	struct ring	 many[256];
	uint8_t		*p;
	size_t		 room, i;

	for (i = 0; i < 256; i++) {
		while (r.pages < 512)
			put(CHUNK_MAX, 1);
		ring_drop(&r);
		ring_init(&many[i]);
		p = room_of(&many[i], &room);
		memcpy(p, "ok\n", 3);
		ring_commit(&many[i], 1, 3);
		ck_assert_uint_eq(resident(p - 4), many[i].pages);
	}
	for (i = 0; i < 256; i++)
		ring_free(&many[i]);
	ring_free(&r);
}
END_TEST

/* A ring that has just begun its second block: that. */
static uint8_t *
second_block(struct ring *ring)
{
	struct iovec	v[2];
	unsigned int	i;

	ring_init(ring);
	ck_assert_uint_eq(ring_room(ring, 2, v), 2);
	for (i = 0; i < 2; i++)
		memset(v[i].iov_base, 'x', v[i].iov_len);
	ring_commit(ring, 1, v[0].iov_len + v[1].iov_len);
	ck_assert_uint_eq(ring_room(ring, 1, v), 1);
	memset(v[0].iov_base, 'x', 3);
	ring_commit(ring, 1, 3);
	return (uint8_t *)v[0].iov_base - 4;
}

/*
 * The same of rings that have come to a second block: all together hold no
 * more beyond what counts than is said, and none when they have ended.
 */
START_TEST(test_resident_second)
{
	struct ring	 many[128];
	uint8_t		*second[128];
	size_t		 i, slack = 0;

	for (i = 0; i < 128; i++) {
		while (r.pages < 512)
			put(CHUNK_MAX, 1);
		ring_drop(&r);
		ring_drop(&r);
		second[i] = second_block(&many[i]);
	}
	for (i = 0; i < 128; i++)
		slack += resident(second[i]) - 1;
	ck_assert_uint_gt(slack, 0);	/* or this shows nothing */
	ck_assert_uint_le(slack, RING_SLACK / RING_PAGE);
	for (i = 0; i < 128; i++) {
		ring_trim(&many[i]);
		ck_assert_uint_eq(resident(second[i]), 1);
		ring_free(&many[i]);
	}
	ring_free(&r);
}
END_TEST

/* Much is dropped at once and no turn is quiet: it goes back all the same. */
START_TEST(test_resident_dropped)
{
	uint8_t		*block[64];
	struct chunk	 c;
	size_t		 i, n, left = 0;

	for (n = 0; n < 64;) {
		put(CHUNK_MAX, 1);
		ck_assert_int_eq(ring_find(&r, r.last_seq, &c), 0);
		if (r.last_seq % 2 == 1)
			block[n++] = (uint8_t *)(uintptr_t)c.data - 4;
	}
	for (i = 0; i + 1 < n; i++)
		ck_assert_uint_eq(resident(block[i]), BLOCK_PAGES);
	ring_free(&r);
	for (i = 0; i < n; i++)
		left += resident(block[i]);
	ck_assert_uint_gt(left, 0);	/* some stay warm */
	ck_assert_uint_le(left, RING_SLACK / RING_PAGE);
	ring_cool();
	for (i = left = 0; i < n; i++)
		left += resident(block[i]);
	ck_assert_uint_le(left, 2 * BLOCK_PAGES);
	/* and are good for the next */
	for (i = 0; i < 200; i++) {
		put(1000 + i, 1);
		(void)check(r.last_seq);
	}
	ring_free(&r);
}
END_TEST

START_TEST(test_after)
{
	int	i;

	for (i = 0; i < 10; i++)
		put(32768, 1);
	ck_assert_uint_eq(ring_after(&r, r.last_seq), 0);
	ck_assert_uint_eq(ring_after(&r, 0), r.pages * RING_PAGE);
	ck_assert_uint_le(ring_after(&r, r.last_seq - 1), 65536);
	ck_assert_uint_gt(ring_after(&r, r.last_seq - 1), 0);
	ring_free(&r);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("ring");
	TCase	*t = tcase_create("ring");
	SRunner	*sr;
	int	 failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, test_empty);
	tcase_add_test(t, test_find);
	tcase_add_test(t, test_drop);
	tcase_add_test(t, test_pages);
	tcase_add_test(t, test_dense);
	tcase_add_test(t, test_trim);
	tcase_add_test(t, test_several);
	tcase_add_test(t, test_wide);
	tcase_add_test(t, test_resident_small);
	tcase_add_test(t, test_resident_second);
	tcase_add_test(t, test_resident_dropped);
	tcase_add_test(t, test_after);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
