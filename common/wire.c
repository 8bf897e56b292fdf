/*
 * wire.c: bounded msgpack, by tables.
 *
 * Theory of operation.  A body is walked twice.  The first walk (scan) looks
 * at bytes only: it refuses every form that our encoder never writes (floats,
 * negative numbers, nil, bool, ext, 32-bit lengths), nesting, more objects
 * than a packet of ours can hold, and lengths beyond the end.  Only then does
 * msgpack-c see the bytes, so that nothing it allocates follows from a number
 * that a peer claims.  The second walk holds every key and value against the
 * table.
 *
 * Must never: allocate from a claimed length, log, trust that a string ends.
 */
#include <errno.h>
#include <msgpack.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define WIRE_DEPTH	3	/* body map, list, item; the packet adds one */
#define WIRE_OBJECTS	(WIRE_ITEMS + 256)
#define WIRE_STRUCT	16384	/* largest body struct, without a heap */

static _Thread_local char	wire_why[160];

static int	wire_fault(int, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

static int
wire_fault(int err, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(wire_why, sizeof(wire_why), fmt, ap); /* cut is fine */
	va_end(ap);
	errno = err;
	return -1;
}

const char *
wire_error(void)
{
	return wire_why;
}

/* ---- encoding ------------------------------------------------------- */

struct wire_out {
	uint8_t	*buf;
	size_t	 cap, len;
};

static int
out_write(void *arg, const char *p, size_t n)
{
	struct wire_out	*o = arg;

	if (n > o->cap - o->len)
		return -1;
	if (n > 0)
		memcpy(o->buf + o->len, p, n);
	o->len += n;
	return 0;
}

/* Holds one value against its row; the same for both directions. */
static int
value_check(const struct wire_desc *d, const struct wire_field *f,
    const uint8_t *s, size_t len)
{
	if (len < f->lo || len > f->hi)
		return wire_fault(EINVAL, "%s.%s: %zu bytes, expected %llu to "
		    "%llu", d->name, f->key, len, (unsigned long long)f->lo,
		    (unsigned long long)f->hi);
	if (f->kind == WIRE_STR && !wire_charset_ok(f->cs, s, len))
		return wire_fault(EINVAL, "%s.%s: character out of its set",
		    d->name, f->key);
	return 0;
}

static int
list_check(const struct wire_desc *d, const struct wire_field *f,
    const struct wire_list *l)
{
	size_t	i, bytes = 0;

	if (l->n > f->count)
		return wire_fault(EINVAL, "%s.%s: %zu items, expected at most "
		    "%zu", d->name, f->key, l->n, f->count);
	for (i = 0; i < l->n; i++) {
		bytes += l->v[i].len;
		if (l->v[i].len > f->hi || bytes > f->hi)
			return wire_fault(EINVAL, "%s.%s: more than %llu bytes",
			    d->name, f->key, (unsigned long long)f->hi);
		if (f->kind == WIRE_STRS &&
		    !wire_charset_ok(f->cs, l->v[i].data, l->v[i].len))
			return wire_fault(EINVAL, "%s.%s: character out of "
			    "its set", d->name, f->key);
	}
	return 0;
}

static int
pack_list(msgpack_packer *pk, const struct wire_field *f,
    const struct wire_list *l)
{
	size_t	i;
	int	r;

	r = msgpack_pack_array(pk, l->n);
	for (i = 0; i < l->n && r == 0; i++)
		if (f->kind == WIRE_STRS)
			r = msgpack_pack_str_with_body(pk, l->v[i].data,
			    l->v[i].len);
		else
			r = msgpack_pack_bin_with_body(pk, l->v[i].data,
			    l->v[i].len);
	return r;
}

static int
pack_field(msgpack_packer *pk, const struct wire_desc *d,
    const struct wire_field *f, const void *body)
{
	const uint8_t		*p = (const uint8_t *)body + f->off;
	const struct wire_bin	*b;
	uint64_t		 v;
	size_t			 len;

	switch (f->kind) {
	case WIRE_U64:
		memcpy(&v, p, sizeof(v));
		if (v < f->lo || v > f->hi)
			return wire_fault(EINVAL, "%s.%s: %llu out of range",
			    d->name, f->key, (unsigned long long)v);
		return msgpack_pack_uint64(pk, v);
	case WIRE_STR:
		len = strnlen((const char *)p, f->hi + 1);
		if (value_check(d, f, p, len) == -1)
			return -1;
		return msgpack_pack_str_with_body(pk, p, len);
	case WIRE_BIN:
		b = (const void *)p;
		if (value_check(d, f, b->data, b->len) == -1)
			return -1;
		return msgpack_pack_bin_with_body(pk, b->data, b->len);
	case WIRE_STRS:
	case WIRE_BINS:
		if (list_check(d, f, (const void *)p) == -1)
			return -1;
		return pack_list(pk, f, (const void *)p);
	}
	return -1;
}

ssize_t
wire_encode(const struct wire_desc *d, const void *body, uint8_t *buf,
    size_t cap)
{
	struct wire_out	 o = { buf, cap, 0 };
	msgpack_packer	 pk;
	size_t		 i;
	int		 r;

	wire_why[0] = '\0';
	errno = 0;
	msgpack_packer_init(&pk, &o, out_write);
	r = msgpack_pack_map(&pk, d->nfields);
	for (i = 0; i < d->nfields && r == 0; i++) {
		const struct wire_field *f = &d->field[i];

		r = msgpack_pack_str_with_body(&pk, f->key, strlen(f->key));
		if (r == 0)
			r = pack_field(&pk, d, f, body);
	}
	if (r == 0)
		return (ssize_t)o.len;
	if (errno != EINVAL)
		return wire_fault(EMSGSIZE, "%s: more than %zu bytes", d->name,
		    cap);
	return -1;
}

/* ---- the first walk: bytes ------------------------------------------ */

struct scan {
	const uint8_t	*p, *end;
	size_t		 objects;
};

static int
scan_be(struct scan *s, size_t n, size_t *ret)
{
	size_t	v = 0;

	if ((size_t)(s->end - s->p) < n)
		return -1;
	while (n-- > 0)
		v = v << 8 | *s->p++;
	*ret = v;
	return 0;
}

static int
scan_skip(struct scan *s, size_t n)
{
	if ((size_t)(s->end - s->p) < n)
		return -1;
	s->p += n;
	return 0;
}

static int	scan_object(struct scan *, int);

static int
scan_many(struct scan *s, size_t n, int depth)
{
	if (depth == 0 || n > WIRE_OBJECTS)
		return -1;
	while (n-- > 0)
		if (scan_object(s, depth - 1) == -1)
			return -1;
	return 0;
}

/* One object; recursion is bounded by WIRE_DEPTH. */
static int
scan_object(struct scan *s, int depth)
{
	uint8_t	t;
	size_t	n;

	if (s->p == s->end || ++s->objects > WIRE_OBJECTS)
		return -1;
	t = *s->p++;
	if (t < 0x80)
		return 0;
	if (t < 0x90)
		return scan_many(s, 2 * (size_t)(t & 0x0f), depth);
	if (t < 0xa0)
		return scan_many(s, t & 0x0f, depth);
	if (t < 0xc0)
		return scan_skip(s, t & 0x1f);
	switch (t) {
	case 0xc4:	/* bin 8, str 8 */
	case 0xd9:
		return scan_be(s, 1, &n) == -1 ? -1 : scan_skip(s, n);
	case 0xc5:	/* bin 16, str 16 */
	case 0xda:
		return scan_be(s, 2, &n) == -1 ? -1 : scan_skip(s, n);
	case 0xcc:	/* uint 8 to 64 */
	case 0xcd:
	case 0xce:
	case 0xcf:
		return scan_skip(s, (size_t)1 << (t - 0xcc));
	case 0xdc:	/* array 16, map 16 */
		return scan_be(s, 2, &n) == -1 ? -1 : scan_many(s, n, depth);
	case 0xde:
		return scan_be(s, 2, &n) == -1 ? -1 :
		    scan_many(s, 2 * n, depth);
	default:
		return -1;
	}
}

/* ---- the second walk: values ---------------------------------------- */

struct wire_in {
	const struct wire_desc	*d;
	struct wire_bin		*items;		/* borrowed: caller's */
	size_t			 nitems, used;
};

static int
take_list(struct wire_in *in, const struct wire_field *f,
    const msgpack_object *o, struct wire_list *ret)
{
	msgpack_object_type	 want = f->kind == WIRE_STRS ?
	    MSGPACK_OBJECT_STR : MSGPACK_OBJECT_BIN;
	struct wire_bin		*v = in->items + in->used;
	size_t			 i, n;

	if (o->type != MSGPACK_OBJECT_ARRAY)
		return wire_fault(EBADMSG, "%s.%s: not a list", in->d->name,
		    f->key);
	n = o->via.array.size;
	if (n > in->nitems - in->used)
		return wire_fault(EBADMSG, "%s.%s: too many items",
		    in->d->name, f->key);
	for (i = 0; i < n; i++) {
		const msgpack_object *e = &o->via.array.ptr[i];

		if (e->type != want)
			return wire_fault(EBADMSG, "%s.%s: item of another "
			    "type", in->d->name, f->key);
		/* str and bin have the same shape in msgpack_object */
		v[i].data = (const uint8_t *)(want == MSGPACK_OBJECT_STR ?
		    e->via.str.ptr : e->via.bin.ptr);
		v[i].len = want == MSGPACK_OBJECT_STR ? e->via.str.size :
		    e->via.bin.size;
	}
	ret->v = v;
	ret->n = n;
	in->used += n;
	return list_check(in->d, f, ret);
}

static int
take_value(struct wire_in *in, const struct wire_field *f,
    const msgpack_object *o, uint8_t *to)
{
	struct wire_bin		b;
	struct wire_list	l;

	switch (f->kind) {
	case WIRE_U64:
		if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    o->via.u64 < f->lo || o->via.u64 > f->hi)
			return wire_fault(EBADMSG, "%s.%s: not a number in "
			    "its range", in->d->name, f->key);
		memcpy(to, &o->via.u64, sizeof(o->via.u64));
		return 0;
	case WIRE_STR:
		if (o->type != MSGPACK_OBJECT_STR)
			return wire_fault(EBADMSG, "%s.%s: not a string",
			    in->d->name, f->key);
		if (value_check(in->d, f, (const uint8_t *)o->via.str.ptr,
		    o->via.str.size) == -1)
			return -1;
		memcpy(to, o->via.str.ptr, o->via.str.size);
		to[o->via.str.size] = '\0';
		return 0;
	case WIRE_BIN:
		if (o->type != MSGPACK_OBJECT_BIN)
			return wire_fault(EBADMSG, "%s.%s: not bytes",
			    in->d->name, f->key);
		b.data = (const uint8_t *)o->via.bin.ptr;
		b.len = o->via.bin.size;
		if (value_check(in->d, f, b.data, b.len) == -1)
			return -1;
		memcpy(to, &b, sizeof(b));
		return 0;
	case WIRE_STRS:
	case WIRE_BINS:
		if (take_list(in, f, o, &l) == -1)
			return -1;
		memcpy(to, &l, sizeof(l));
		return 0;
	}
	return -1;
}

static int
take_map(struct wire_in *in, const msgpack_object *o, uint8_t *body)
{
	const struct wire_desc	*d = in->d;
	uint64_t		 seen = 0;
	size_t			 i, k;

	if (o->type != MSGPACK_OBJECT_MAP || o->via.map.size != d->nfields)
		return wire_fault(EBADMSG, "%s: not a map of %zu keys",
		    d->name, d->nfields);
	for (i = 0; i < d->nfields; i++) {
		const msgpack_object_kv *kv = &o->via.map.ptr[i];

		if (kv->key.type != MSGPACK_OBJECT_STR)
			return wire_fault(EBADMSG, "%s: key is no string",
			    d->name);
		for (k = 0; k < d->nfields; k++)
			if (strlen(d->field[k].key) == kv->key.via.str.size &&
			    memcmp(d->field[k].key, kv->key.via.str.ptr,
			    kv->key.via.str.size) == 0)
				break;
		if (k == d->nfields)
			return wire_fault(EBADMSG, "%s: unknown key", d->name);
		if (seen & UINT64_C(1) << k)
			return wire_fault(EBADMSG, "%s.%s: twice", d->name,
			    d->field[k].key);
		seen |= UINT64_C(1) << k;
		if (take_value(in, &d->field[k], &kv->val,
		    body + d->field[k].off) == -1)
			return -1;
	}
	return 0;
}

int
wire_decode_zone(void *zone, const struct wire_desc *d, const uint8_t *buf,
    size_t len, struct wire_bin *items, size_t nitems, uint8_t *body,
    void *ret_body)
{
	struct scan	 s = { buf, buf + len, 0 };
	struct wire_in	 in = { d, items, nitems, 0 };
	msgpack_object	 o;
	size_t		 off = 0;

	wire_why[0] = '\0';
	if (len > WIRE_MAX || scan_object(&s, WIRE_DEPTH) == -1)
		return wire_fault(EBADMSG, "%s: not msgpack within bounds",
		    d->name);
	if (s.p != s.end)
		return wire_fault(EBADMSG, "%s: %zu bytes left over", d->name,
		    (size_t)(s.end - s.p));
	if (msgpack_unpack((const char *)buf, len, &off, zone, &o) !=
	    MSGPACK_UNPACK_SUCCESS || off != len)
		return wire_fault(EBADMSG, "%s: not msgpack", d->name);
	memset(body, 0, d->size);
	if (take_map(&in, &o, body) == -1) {
		errno = EBADMSG;
		return -1;
	}
	memcpy(ret_body, body, d->size);
	return 0;
}

int
wire_decode(const struct wire_desc *d, const uint8_t *buf, size_t len,
    void *ret_body)
{
	static struct wire_bin	items[WIRE_ITEMS];
	static _Alignas(max_align_t) uint8_t scratch[WIRE_STRUCT];
	static msgpack_zone	zone;
	static int		ready;

	if (d->size > sizeof(scratch))
		return wire_fault(EINVAL, "%s: struct too large", d->name);
	if (!ready) {
		if (!msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE))
			return wire_fault(ENOMEM, "%s: no memory", d->name);
		ready = 1;
	}
	msgpack_zone_clear(&zone);
	return wire_decode_zone(&zone, d, buf, len, items, WIRE_ITEMS,
	    scratch, ret_body);
}

/* ---- the packet's head ---------------------------------------------- */

static int
head_uint(struct scan *s, size_t *ret)
{
	uint8_t	t;

	if (s->p == s->end)
		return -1;
	t = *s->p++;
	if (t < 0x80) {
		*ret = t;
		return 0;
	}
	if (t < 0xcc || t > 0xce)
		return -1;
	return scan_be(s, (size_t)1 << (t - 0xcc), ret);
}

ssize_t
wire_head_decode(const uint8_t *buf, size_t len, uint32_t ret[3])
{
	struct scan	s = { buf, buf + len, 0 };
	size_t		v[3];
	int		i;

	if (len == 0 || *s.p++ != 0x94)
		return wire_fault(EBADMSG, "packet: not an array of 4");
	for (i = 0; i < 3; i++)
		if (head_uint(&s, &v[i]) == -1)
			return wire_fault(EBADMSG, "packet: bad head");
	for (i = 0; i < 3; i++)
		ret[i] = (uint32_t)v[i];
	return s.p - buf;
}

ssize_t
wire_head_encode(const uint32_t head[3], uint8_t *buf, size_t cap)
{
	struct wire_out	 o = { buf, cap, 0 };
	msgpack_packer	 pk;
	int		 i;

	msgpack_packer_init(&pk, &o, out_write);
	if (msgpack_pack_array(&pk, 4) != 0)
		return wire_fault(EMSGSIZE, "packet: no room for a head");
	for (i = 0; i < 3; i++)
		if (msgpack_pack_uint32(&pk, head[i]) != 0)
			return wire_fault(EMSGSIZE, "packet: no room for a "
			    "head");
	return (ssize_t)o.len;
}
