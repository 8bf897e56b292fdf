/*
 * ring.c: what sessions have written, in memory.
 *
 * A ring is a list of blocks of 64 KiB, in each of which chunks stand one
 * behind the other, a word of length and stream before each.  Numbers are
 * not stored: a block knows the number of its first chunk.  Blocks come from
 * anonymous mappings that grow a MiB at a time and are never unmapped.  What
 * counts is pages that hold output: a session that says "ok" costs one.
 *
 * A block that is dropped is most often wanted again at once, and faults are
 * dear, so its pages stay.  They are resident and counted nowhere, as are
 * those that the next ring has not come to yet; all together are at most
 * SLACK_MAX.  Above it, and in a quiet turn, they go back to the kernel; a
 * ring begins with none of them, and keeps none when its session has ended.
 *
 * This file is mechanism: who has to drop what is decided in output.c.
 */
#include <sys/mman.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#define BLOCK		65536U
#define EXTENT		16UL		/* blocks */
#define HEAD		sizeof(uint32_t)
#define ROOM_MIN	256U		/* less room than this: next block */
#define WARM		2U		/* free blocks whose pages we keep */
#define SLACK_MAX	(RING_SLACK / RING_PAGE)
#define STREAM_SHIFT	24
#define LEN_MASK	0xffffffU

struct ring_block {
	TAILQ_ENTRY(ring_block)	 entry;
	uint8_t			*data;		/* BLOCK bytes */
	uint64_t		 seq;		/* of its first chunk */
	uint64_t		 start;		/* bytes of output before it */
	uint64_t		 count;		/* chunks */
	uint32_t		 used;		/* bytes, heads included */
	uint32_t		 dirty;		/* pages that may be resident */
};

static struct ring_blocks	 spare = TAILQ_HEAD_INITIALIZER(spare);
static size_t			 warm;		/* of spare, at its head */
static size_t			 slack;		/* resident beyond total */
static size_t			 total;		/* pages of all rings */
static size_t			 limit = BOX_RING / RING_PAGE;

void
ring_limit(size_t bytes)
{
	limit = bytes / RING_PAGE;
}

size_t
ring_bound(void)
{
	return limit * RING_PAGE;
}

int
ring_fits(size_t pages)
{
	return pages <= limit && total <= limit - pages;
}

void
ring_init(struct ring *r)
{
	memset(r, 0, sizeof(*r));
	TAILQ_INIT(&r->blocks);
}

static size_t
pages_of(size_t bytes)
{
	return (bytes + RING_PAGE - 1) / RING_PAGE;
}

/* ---- blocks --------------------------------------------------------- */

static int
extent_new(void)
{
	struct ring_block	*b;
	uint8_t			*p;
	unsigned int		 i;

	if ((b = calloc(EXTENT, sizeof(*b))) == NULL)
		return -1;
	p = mmap(NULL, EXTENT * BLOCK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		free(b);
		return -1;
	}
	/* a huge page would hold 2 MiB for one line; kernels without: fine */
	(void)madvise(p, EXTENT * BLOCK, MADV_NOHUGEPAGE);
	for (i = 0; i < EXTENT; i++) {
		b[i].data = p + (size_t)i * BLOCK;
		TAILQ_INSERT_TAIL(&spare, &b[i], entry);
	}
	return 0;
}

/* Gives back the pages that hold nothing. */
static void
block_trim(struct ring_block *b)
{
	uint32_t	n = (uint32_t)pages_of(b->used);

	if (b->dirty == n)
		return;
	/* cannot fail on a mapping of our own; else only resident */
	(void)madvise(b->data + n * RING_PAGE, (b->dirty - n) * RING_PAGE,
	    MADV_DONTNEED);
	slack -= b->dirty - n;
	b->dirty = n;
}

/* For a ring that may never fill it: with no pages. */
static struct ring_block *
block_get(int clean)
{
	struct ring_block	*b;

	if (TAILQ_EMPTY(&spare) && extent_new() == -1)
		return NULL;
	b = clean ? TAILQ_LAST(&spare, ring_blocks) : TAILQ_FIRST(&spare);
	TAILQ_REMOVE(&spare, b, entry);
	if (b->dirty > 0)
		warm--;
	if (clean)
		block_trim(b);
	return b;
}

static void
block_put(struct ring_block *b)
{
	b->used = 0;
	b->count = 0;
	if (slack > SLACK_MAX)
		block_trim(b);
	if (b->dirty == 0) {
		TAILQ_INSERT_TAIL(&spare, b, entry);
		return;
	}
	warm++;
	TAILQ_INSERT_HEAD(&spare, b, entry);
}

void
ring_cool(void)
{
	struct ring_block	*b;

	for (; warm > WARM; warm--) {
		b = TAILQ_FIRST(&spare);
		TAILQ_REMOVE(&spare, b, entry);
		block_trim(b);
		TAILQ_INSERT_TAIL(&spare, b, entry);
	}
}

/* ---- writing -------------------------------------------------------- */

/* The block that the next chunk goes to, or NULL: a new one. */
static struct ring_block *
block_last(const struct ring *r)
{
	struct ring_block	*b = TAILQ_LAST(&r->blocks, ring_blocks);

	return b == NULL || BLOCK - b->used < HEAD + ROOM_MIN ? NULL : b;
}

/* Bytes of a chunk behind `used' of a block; 0: in none. */
static uint32_t
room_at(uint32_t used)
{
	uint32_t	n = BLOCK - used;

	if (n < HEAD + ROOM_MIN)
		return 0;
	return n - HEAD > CHUNK_MAX ? CHUNK_MAX : n - HEAD;
}

size_t
ring_want(const struct ring *r, size_t n)
{
	const struct ring_block	*b = block_last(r);
	uint32_t		 used = b == NULL ? 0 : b->used, len;
	size_t			 pages = 0, had = pages_of(used);

	for (; n > 0; n--) {
		if ((len = room_at(used)) == 0) {
			pages += pages_of(used) - had;
			used = had = 0;
			len = room_at(0);
		}
		used += (uint32_t)HEAD + len;
	}
	return pages + pages_of(used) - had;
}

size_t
ring_room(struct ring *r, size_t n, struct iovec *ret)
{
	struct ring_block	*b = r->fill = block_last(r);
	uint32_t		 used = b == NULL ? BLOCK : b->used, len;
	size_t			 i;

	for (i = 0; i < n; i++) {
		if ((len = room_at(used)) == 0) {
			if ((b = block_get(r->pages == 0)) == NULL)
				break;
			TAILQ_INSERT_TAIL(&r->blocks, b, entry);
			if (r->fill == NULL)
				r->fill = b;
			used = 0;
			len = room_at(0);
		}
		ret[i].iov_base = b->data + used + HEAD;
		ret[i].iov_len = len;
		used += (uint32_t)HEAD + len;
	}
	return i;
}

/* The next chunk, of len bytes that are there. */
static void
chunk_add(struct ring *r, struct ring_block *b, unsigned int stream,
    uint32_t len)
{
	uint32_t	head = len | stream << STREAM_SHIFT;
	size_t		before = pages_of(b->used), now;

	if (b->count++ == 0) {
		b->seq = r->last_seq + 1;
		b->start = r->bytes;
	}
	memcpy(b->data + b->used, &head, HEAD);
	b->used += (uint32_t)(HEAD + ((len + HEAD - 1) & ~(HEAD - 1)));
	now = pages_of(b->used);
	slack -= (now < b->dirty ? now : b->dirty) - before;
	if (now > b->dirty)
		b->dirty = (uint32_t)now;
	r->pages += now - before;
	total += now - before;
	r->last_seq++;
	r->bytes += len;
}

void
ring_commit(struct ring *r, unsigned int stream, size_t len)
{
	struct ring_block	*b = r->fill;
	uint32_t		 n;

	while (len > 0) {
		if ((n = room_at(b->used)) == 0) {
			b = TAILQ_NEXT(b, entry);
			continue;
		}
		if (n > len)
			n = (uint32_t)len;
		chunk_add(r, b, stream, n);
		len -= n;
	}
	while ((b = TAILQ_LAST(&r->blocks, ring_blocks)) != NULL &&
	    b->count == 0) {
		TAILQ_REMOVE(&r->blocks, b, entry);
		block_put(b);
	}
	r->fill = NULL;
}

/* ---- reading -------------------------------------------------------- */

uint64_t
ring_first(const struct ring *r)
{
	const struct ring_block	*b = TAILQ_FIRST(&r->blocks);

	return b == NULL || b->count == 0 ? r->last_seq + 1 : b->seq;
}

uint64_t
ring_start(const struct ring *r)
{
	const struct ring_block	*b = TAILQ_FIRST(&r->blocks);

	return b == NULL || b->count == 0 ? r->bytes : b->start;
}

uint64_t
ring_oldest(const struct ring *r)
{
	const struct ring_block	*b = TAILQ_FIRST(&r->blocks);

	return b == NULL ? 0 : b->seq + b->count - 1;
}

size_t
ring_after(const struct ring *r, uint64_t seq)
{
	const struct ring_block	*b;
	size_t			 pages = 0;

	TAILQ_FOREACH_REVERSE(b, &r->blocks, ring_blocks, entry) {
		if (b->seq + b->count <= seq + 1)
			break;
		pages += pages_of(b->used);
	}
	return pages * RING_PAGE;
}

/* Puts the cursor on a chunk at or before seq. */
static void
ring_seek(struct ring *r, uint64_t seq)
{
	struct ring_block	*b;

	if (r->cur != NULL && r->cur_seq <= seq &&
	    seq < r->cur->seq + r->cur->count)
		return;
	TAILQ_FOREACH_REVERSE(b, &r->blocks, ring_blocks, entry)
		if (b->seq <= seq)
			break;
	r->cur = b;
	r->cur_off = 0;
	r->cur_seq = b->seq;
	r->cur_start = b->start;
}

int
ring_find(struct ring *r, uint64_t seq, struct chunk *ret)
{
	uint32_t	head;

	if (seq < ring_first(r) || seq > r->last_seq)
		return -1;
	ring_seek(r, seq);
	for (;;) {
		memcpy(&head, r->cur->data + r->cur_off, HEAD);
		if (r->cur_seq == seq)
			break;
		r->cur_off += (uint32_t)(HEAD +
		    (((head & LEN_MASK) + HEAD - 1) & ~(HEAD - 1)));
		r->cur_start += head & LEN_MASK;
		r->cur_seq++;
	}
	ret->data = r->cur->data + r->cur_off + HEAD;
	ret->len = head & LEN_MASK;
	ret->stream = head >> STREAM_SHIFT;
	ret->seq = seq;
	ret->end = r->cur_start + ret->len;
	return 0;
}

/* ---- forgetting ----------------------------------------------------- */

void
ring_drop(struct ring *r)
{
	struct ring_block	*b = TAILQ_FIRST(&r->blocks);

	TAILQ_REMOVE(&r->blocks, b, entry);
	r->pages -= pages_of(b->used);
	total -= pages_of(b->used);
	slack += pages_of(b->used);
	if (r->cur == b)
		r->cur = NULL;
	block_put(b);
}

void
ring_trim(struct ring *r)
{
	struct ring_block	*b = TAILQ_LAST(&r->blocks, ring_blocks);

	if (b != NULL)
		block_trim(b);
}

void
ring_free(struct ring *r)
{
	while (!TAILQ_EMPTY(&r->blocks))
		ring_drop(r);
}
