/*
 * wire_fuzz: every table that is decoded by wire.c, under any bytes.
 *
 * input: two bytes choose the table, the rest is the body
 *
 * What is decoded lies within its bounds, for it can be encoded again and
 * then says the same; what is not leaves the caller's struct as it was.
 */
#include <errno.h>

#include "conf.h"
#include "fuzz.h"
#include "proto.h"

#define STRUCT_MAX	16384

static const struct wire_desc *const tables[] = {
#define ROW(N, n)	&wire_row_##n,
#include "proto.def"
#define MSG(num, N, n, from, to, st, fd, cap, ans) &wire_msg_##n,
#include "proto.def"
#define EVENT(num, N, n, s)	&wire_event_##n,
#include "events.def"
	&wire_conf,
};

static _Alignas(max_align_t) uint8_t	first[STRUCT_MAX], again[STRUCT_MAX];
static struct wire_bin			items[2][WIRE_ITEMS];

static void
refused(const struct wire_desc *d)
{
	size_t	i;

	must(errno == EBADMSG);
	must(wire_error()[0] != '\0');
	for (i = 0; i < d->size; i++)
		must(first[i] == 0xa5 && again[i] == 0xa5);
}

static void
taken(const struct wire_desc *d, size_t len)
{
	static uint8_t	buf[WIRE_MAX + 1];
	ssize_t		n;

	must(wire_differs(d, first, again) == NULL);
	n = wire_encode(d, first, buf, WIRE_MAX);
	must(n > 0 && (size_t)n <= len);
	must(wire_decode_into(d, buf, (size_t)n, items[1], WIRE_ITEMS,
	    again) == 0);
	must(wire_differs(d, first, again) == NULL);
	must(wire_decode_into(d, buf, (size_t)n - 1, items[1], WIRE_ITEMS,
	    again) == -1);
	buf[n] = 0;
	must(wire_decode_into(d, buf, (size_t)n + 1, items[1], WIRE_ITEMS,
	    again) == -1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes		 b = { data, len };
	size_t			 t = take_u8(&b) << 8;
	const struct wire_desc	*d;
	int			 r;

	t |= take_u8(&b);
	d = tables[t % (sizeof(tables) / sizeof(tables[0]))];
	must(d->size <= STRUCT_MAX);
	memset(first, 0xa5, d->size);
	memset(again, 0xa5, d->size);
	errno = 0;
	r = wire_decode_into(d, b.p, b.n, items[0], WIRE_ITEMS, first);
	must(wire_decode(d, b.p, b.n, again) == r);
	if (r == -1)
		refused(d);
	else
		taken(d, b.n);
	return 0;
}
