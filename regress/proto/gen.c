/*
 * gen.c: bodies for tests; a xorshift, so that a failure can be repeated.
 */
#include <stdlib.h>
#include <string.h>

#include "gen.h"

static uint8_t		arena[4 * WIRE_MAX];
static size_t		used;
static struct wire_bin	items[WIRE_ITEMS];
static size_t		nitems;
static uint32_t		state = 2463534242U;

void
gen_seed(uint32_t s)
{
	state = s == 0 ? 1 : s;
}

uint32_t
gen_rand(void)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static uint64_t
gen_range(uint64_t lo, uint64_t hi)
{
	uint64_t	r = (uint64_t)gen_rand() << 32 | gen_rand();

	switch (gen_rand() % 4) {
	case 0:
		return lo;
	case 1:
		return hi;
	case 2:
		if (hi - lo > 255)
			return lo + r % 256;
		break;
	default:
		break;
	}
	return hi - lo == UINT64_MAX ? r : lo + r % (hi - lo + 1);
}

static void
gen_chars(enum wire_charset cs, uint8_t *p, size_t len)
{
	static const char	b32[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	static const char	name[] = "abcdefghijklmnopqrstuvwxyz0123456789"
	    "._-";
	size_t			i;

	for (i = 0; i < len; i++)
		switch (cs) {
		case CS_BYTES:
			p[i] = (uint8_t)(1 + gen_rand() % 255);
			break;
		case CS_TEXT:
		case CS_PRINT:
			p[i] = (uint8_t)(0x20 + gen_rand() % 95);
			break;
		case CS_PATH:
			p[i] = (uint8_t)('0' + gen_rand() % 10);
			break;
		case CS_NAME:
		case CS_NAME0:
			p[i] = (uint8_t)name[gen_rand() % (i == 0 ? 36 : 39)];
			break;
		case CS_ULID:
		case CS_ULID0:
			p[i] = (uint8_t)b32[gen_rand() % (i == 0 ? 8 : 32)];
			break;
		}
}

static size_t
gen_len(const struct wire_field *f, size_t budget)
{
	uint64_t	lo = f->lo, hi = f->hi < budget ? f->hi : budget;

	if (f->kind == WIRE_STR || f->kind == WIRE_STRS) {
		if (f->cs == CS_ULID)
			return 26;
		if (f->cs == CS_ULID0)
			return gen_rand() % 2 ? 26 : 0;
		if (f->cs == CS_NAME && lo == 0)
			lo = 1;
	}
	if (hi < lo)
		hi = lo;
	return (size_t)gen_range(lo, hi);
}

static uint8_t *
gen_bytes(enum wire_charset cs, size_t len)
{
	uint8_t	*p = arena + used;

	used += len;
	gen_chars(cs, p, len);
	return p;
}

static void
gen_list(const struct wire_field *f, size_t budget, struct wire_list *l)
{
	size_t	i, left = f->hi < budget ? f->hi : budget;
	size_t	n = gen_rand() % (f->count < 20 ? f->count + 1 : 20);

	l->v = items + nitems;
	l->n = 0;
	for (i = 0; i < n; i++) {
		size_t len = gen_len(f, 40);

		if (len > left)
			break;
		left -= len;
		items[nitems].data = gen_bytes(f->kind == WIRE_STRS ? f->cs :
		    CS_BYTES, len);
		items[nitems++].len = len;
		l->n++;
	}
}

void
gen_body(const struct wire_desc *d, void *body, size_t budget)
{
	size_t	i;

	used = nitems = 0;
	memset(body, 0, d->size);
	for (i = 0; i < d->nfields; i++) {
		const struct wire_field	*f = &d->field[i];
		uint8_t			*p = (uint8_t *)body + f->off;
		struct wire_bin		 b;
		struct wire_list	 l;
		uint64_t		 v;
		size_t			 len;

		switch (f->kind) {
		case WIRE_U64:
			v = gen_range(f->lo, f->hi);
			memcpy(p, &v, sizeof(v));
			break;
		case WIRE_STR:
			len = gen_len(f, 64);
			gen_chars(f->cs, p, len);
			p[len] = '\0';
			break;
		case WIRE_BIN:
			b.len = gen_len(f, budget);
			b.data = gen_bytes(CS_BYTES, b.len);
			memcpy(p, &b, sizeof(b));
			break;
		case WIRE_STRS:
		case WIRE_BINS:
			gen_list(f, budget, &l);
			memcpy(p, &l, sizeof(l));
			break;
		}
	}
}
