/*
 * wire_list.c: decoding into memory of one's own, bodies that are compared,
 * lists that become an argv.  Apart
 * from wire.c, since privd needs none of it.
 */
#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

int
wire_decode_into(const struct wire_desc *d, const uint8_t *buf, size_t len,
    struct wire_bin *items, size_t nitems, void *ret_body)
{
	msgpack_zone	 zone;
	uint8_t		*scratch;
	int		 r, e;

	if (!msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE))
		return -1;
	if ((scratch = malloc(d->size)) == NULL) {
		msgpack_zone_destroy(&zone);
		return -1;
	}
	r = wire_decode_zone(&zone, d, buf, len, items, nitems, scratch, ret_body);
	e = errno;
	free(scratch);
	msgpack_zone_destroy(&zone);
	errno = e;
	return r;
}

static int
bin_differs(const struct wire_bin *a, const struct wire_bin *b)
{
	return a->len != b->len ||
	    (a->len > 0 && memcmp(a->data, b->data, a->len) != 0);
}

static int
field_differs(const struct wire_field *f, const void *pa, const void *pb)
{
	const struct wire_list	*la = pa, *lb = pb;
	size_t			 i;

	switch (f->kind) {
	case WIRE_U64:
		return memcmp(pa, pb, sizeof(uint64_t)) != 0;
	case WIRE_STR:
		return strncmp(pa, pb, f->hi + 1) != 0;
	case WIRE_BIN:
		return bin_differs(pa, pb);
	case WIRE_STRS:
	case WIRE_BINS:
		if (la->n != lb->n)
			return 1;
		for (i = 0; i < la->n; i++)
			if (bin_differs(&la->v[i], &lb->v[i]))
				return 1;
		return 0;
	}
	return 1;
}

const char *
wire_differs(const struct wire_desc *d, const void *a, const void *b)
{
	size_t	i;

	for (i = 0; i < d->nfields; i++)
		if (field_differs(&d->field[i],
		    (const uint8_t *)a + d->field[i].off,
		    (const uint8_t *)b + d->field[i].off))
			return d->field[i].key;
	return NULL;
}

char **
wire_list_argv(const struct wire_list *l)
{
	size_t	 i, bytes = (l->n + 1) * sizeof(char *);
	char	**v, *p;

	for (i = 0; i < l->n; i++)
		bytes += l->v[i].len + 1;
	if ((v = malloc(bytes)) == NULL)
		return NULL;
	p = (char *)(v + l->n + 1);
	for (i = 0; i < l->n; i++) {
		v[i] = p;
		if (l->v[i].len > 0)
			memcpy(p, l->v[i].data, l->v[i].len);
		p += l->v[i].len;
		*p++ = '\0';
	}
	v[l->n] = NULL;
	return v;
}
