/*
 * record_fuzz: what stored does with an EVENT_APPEND: the row is decoded,
 * its data by the type's table, and a line is written.
 *
 * input: the body of EVENT_APPEND; its last byte, bit 0: argv is hidden
 *
 * The line fits, is one JSON object (jansson is the judge) that says what
 * was asked, and is found to be this tenant's and nobody else's.
 */
#include <jansson.h>

#include "../../stored/stored.h"
#include "fuzz.h"

union event_body {
#define EVENT(num, N, n, s)	struct event_##n n;
#include "events.def"
};

static const uint8_t	prev[RECORD_HASH] = { 0xab };

static unsigned int
b64(char c)
{
	static const char	set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char		*p = c == '\0' ? NULL : strchr(set, c);

	must(p != NULL);
	return (unsigned int)(p - set);
}

static void
is_base64(const char *s, const uint8_t *p, size_t len)
{
	uint32_t	v;
	size_t		i, n;

	must(strlen(s) == (len + 2) / 3 * 4);
	for (i = 0; i < len; i += 3, s += 4) {
		n = len - i < 3 ? len - i : 3;
		v = b64(s[0]) << 18 | b64(s[1]) << 12;
		v |= n > 1 ? b64(s[2]) << 6 : 0;
		v |= n > 2 ? b64(s[3]) : 0;
		must((n > 1 || s[2] == '=') && (n > 2 || s[3] == '='));
		must((uint8_t)(v >> 16) == p[i]);
		must(n < 2 || (uint8_t)(v >> 8) == p[i + 1]);
		must(n < 3 || (uint8_t)v == p[i + 2]);
	}
}

/* A value that may be any bytes. */
static void
is_bytes(const json_t *v, const uint8_t *p, size_t len)
{
	if (json_is_string(v)) {
		must(json_string_length(v) == len);
		must(len == 0 || memcmp(json_string_value(v), p, len) == 0);
		return;
	}
	must(json_is_object(v) && json_object_size(v) == 1);
	v = json_object_get(v, "base64");
	must(json_is_string(v));
	is_base64(json_string_value(v), p, len);
}

static void
is_text(const json_t *v, const char *s)
{
	if (*s == '\0')
		must(json_is_null(v));
	else
		is_bytes(v, (const uint8_t *)s, strlen(s));
}

static void
is_field(const json_t *v, const struct wire_field *f, const void *body)
{
	const void		*p = (const uint8_t *)body + f->off;
	const struct wire_list	*l = p;
	uint64_t		 n;
	size_t			 i;

	switch (f->kind) {
	case WIRE_U64:
		memcpy(&n, p, sizeof(n));
		must(json_is_integer(v));
		must((uint64_t)json_integer_value(v) == n);
		break;
	case WIRE_STR:
		is_text(v, p);
		break;
	case WIRE_BIN:
		is_bytes(v, ((const struct wire_bin *)p)->data,
		    ((const struct wire_bin *)p)->len);
		break;
	case WIRE_STRS:
	case WIRE_BINS:
		must(json_is_array(v) && json_array_size(v) == l->n);
		for (i = 0; i < l->n; i++)
			is_bytes(json_array_get(v, i), l->v[i].data,
			    l->v[i].len);
		break;
	}
}

static void
is_data(const json_t *data, const struct record *r)
{
	const struct wire_desc	*d = r->type->desc;
	const json_t		*v;
	size_t			 i;

	must(json_object_size(data) == d->nfields);
	for (i = 0; i < d->nfields; i++) {
		v = json_object_get(data, d->field[i].key);
		must(v != NULL);
		if (r->hide_argv && strcmp(d->field[i].key, "argv") == 0)
			must(json_is_null(v));
		else
			is_field(v, &d->field[i], r->data);
	}
}

static void
is_line(const char *line, size_t len, const struct record *r)
{
	json_t	*o = json_loadb(line, len, JSON_REJECT_DUPLICATES |
		    JSON_ALLOW_NUL, NULL);
	char	 other[80];

	must(o != NULL && memchr(line, '\n', len) == NULL);
	must(json_object_size(o) == 12);
	must((uint64_t)json_integer_value(json_object_get(o, "seq")) ==
	    r->seq);
	must(strlen(json_string_value(json_object_get(o, "time"))) == 24);
	must(strlen(json_string_value(json_object_get(o, "prev"))) == 64);
	is_text(json_object_get(o, "type"), r->type->name);
	is_text(json_object_get(o, "tenant"), r->tenant);
	is_text(json_object_get(o, "actor"), r->actor);
	is_text(json_object_get(o, "sandboxId"), r->sandbox);
	is_text(json_object_get(o, "sessionId"), r->session);
	is_text(json_object_get(o, "requestId"), r->request);
	is_text(json_object_get(o, "outcome"), r->outcome);
	is_text(json_object_get(o, "reason"), r->reason);
	is_data(json_object_get(o, "data"), r);
	json_decref(o);
	must(record_is_of(line, len, r->tenant) == (r->tenant[0] != '\0'));
	(void)snprintf(other, sizeof(other), "%sx", r->tenant);
	must(!record_is_of(line, len, other));
	must(!record_is_of(line, len, "null"));
}

static void
append(const struct msg_event_append *m, int hide)
{
	static char		line[RECORD_MAX], more[RECORD_MAX + 4096];
	static struct wire_bin	items[WIRE_ITEMS];
	static union event_body	body;
	const struct event_row	*row = event_find((unsigned int)m->type);
	struct record		r = {
		.seq = UINT64_C(1) << 53, .time_ms = 1767323045678,
		.tenant = m->tenant, .actor = m->actor,
		.sandbox = m->sandbox, .session = m->session,
		.request = m->request, .outcome = m->outcome,
		.reason = m->reason, .data = &body, .prev = prev,
		.hide_argv = hide,
	};
	ssize_t			n;

	if (row == NULL || wire_decode_into(row->desc, m->data.data,
	    m->data.len, items, WIRE_ITEMS, &body) == -1)
		return;
	r.type = row;
	n = record_format(&r, line, sizeof(line));
	must(n > 0);		/* events.def and RECORD_MAX say so */
	is_line(line, (size_t)n, &r);
	must(record_format(&r, more, sizeof(more)) == n);
	must(memcmp(line, more, (size_t)n) == 0);
	must(record_format(&r, more, (size_t)n) == n);
	must(record_format(&r, more, (size_t)n - 1) == -1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct msg_event_append	m;

	if (len > 0 && wire_decode(&wire_msg_event_append, data, len, &m) == 0)
		append(&m, data[len - 1] & 1);
	return 0;
}
