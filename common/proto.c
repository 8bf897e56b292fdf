/*
 * proto.c: the tables that expand from proto.def, events.def and states.def.
 */
#include <stddef.h>

#include "proto.h"

/* off_NAME: the struct in which the fields of NAME stand */
#define ROW(N, n)	typedef struct row_##n off_##n;
#define MSG(num, N, n, from, to, st, fd, cap, ans) typedef struct msg_##n off_##n;
#include "proto.def"
#define EVENT(num, N, n, s) typedef struct event_##n evoff_##n;
#include "events.def"

/* An empty row needs an element: it is not counted. */
#define WF_END		{ NULL, WIRE_U64, CS_BYTES, 0, 0, 0, 0 } };

#define ROW(N, n)	static const struct wire_field field_##n[] = {
#define MSG(num, N, n, from, to, st, fd, cap, ans) \
	static const struct wire_field field_##n[] = {
#define END(n)		WF_END
#define F_U64(m, f, lo, hi) \
	{ #f, WIRE_U64, CS_BYTES, offsetof(off_##m, f), lo, hi, 0 },
#define F_STR(m, f, max, cs) \
	{ #f, WIRE_STR, cs, offsetof(off_##m, f), 0, max, 0 },
#define F_BIN(m, f, lo, hi) \
	{ #f, WIRE_BIN, CS_BYTES, offsetof(off_##m, f), lo, hi, 0 },
#define F_STRS(m, f, n, bytes, cs) \
	{ #f, WIRE_STRS, cs, offsetof(off_##m, f), 0, bytes, n },
#define F_BINS(m, f, n, bytes) \
	{ #f, WIRE_BINS, CS_BYTES, offsetof(off_##m, f), 0, bytes, n },
#include "proto.def"

#define EVENT(num, N, n, s) static const struct wire_field evfield_##n[] = {
#define END(n)		WF_END
#define F_U64(m, f, lo, hi) \
	{ #f, WIRE_U64, CS_BYTES, offsetof(evoff_##m, f), lo, hi, 0 },
#define F_STR(m, f, max, cs) \
	{ #f, WIRE_STR, cs, offsetof(evoff_##m, f), 0, max, 0 },
#define F_BIN(m, f, lo, hi) \
	{ #f, WIRE_BIN, CS_BYTES, offsetof(evoff_##m, f), lo, hi, 0 },
#define F_STRS(m, f, n, bytes, cs) \
	{ #f, WIRE_STRS, cs, offsetof(evoff_##m, f), 0, bytes, n },
#include "events.def"

#define WD(str, arr, type) \
	{ str, arr, sizeof(arr) / sizeof((arr)[0]) - 1, sizeof(type) }

#define ROW(N, n) \
	const struct wire_desc wire_row_##n = WD(#n, field_##n, off_##n);
#define MSG(num, N, n, from, to, st, fd, cap, ans) \
	const struct wire_desc wire_msg_##n = WD(#n, field_##n, off_##n);
#include "proto.def"
#define EVENT(num, N, n, s) \
	const struct wire_desc wire_event_##n = WD(s, evfield_##n, evoff_##n);
#include "events.def"

const struct proto_row proto_rows[] = {
#define MSG(num, N, n, from, to, st, fd, cap, ans) \
	{ num, #N, from, to, st, fd, cap, ans, &wire_msg_##n },
#include "proto.def"
};
const size_t proto_nrows = sizeof(proto_rows) / sizeof(proto_rows[0]);

const struct event_row event_rows[] = {
#define EVENT(num, N, n, s) { num, s, &wire_event_##n },
#include "events.def"
};
const size_t event_nrows = sizeof(event_rows) / sizeof(event_rows[0]);

static const char *const codes[] = {
	[CODE_NONE] = "ok",
#define CODE(n, N, s, http) [n] = (s),
#include "proto.def"
};

const struct proto_row *
proto_find(unsigned int type)
{
	size_t	i;

	for (i = 0; i < proto_nrows; i++)
		if (proto_rows[i].type == type)
			return &proto_rows[i];
	return NULL;
}

const char *
proto_name(unsigned int type)
{
	const struct proto_row	*r = proto_find(type);

	return r == NULL ? "unknown" : r->name;
}

const struct event_row *
event_find(unsigned int type)
{
	size_t	i;

	for (i = 0; i < event_nrows; i++)
		if (event_rows[i].type == type)
			return &event_rows[i];
	return NULL;
}

const char *
code_name(unsigned int code)
{
	return code < sizeof(codes) / sizeof(codes[0]) &&
	    codes[code] != NULL ? codes[code] : "internal";
}

const char *
proto_refuse(const struct proto_row *r, unsigned int from, unsigned int to,
    unsigned int state, size_t len)
{
	if (r == NULL)
		return "type is not known";
	if ((r->from & from) == 0)
		return "sender may not send this";
	if ((r->to & to) == 0)
		return "receiver does not take this";
	if ((r->states & state) == 0)
		return "not in this state";
	if (len > r->cap)
		return "larger than its cap";
	return NULL;
}
