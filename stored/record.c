/*
 * record.c: the exact bytes of a record, as they are stored, hashed and
 * exported.  See workbox-events(7).
 *
 * Strings are written as RFC 8785, section 3.2.2.2, has them: the escapes
 * \" \\ \b \t \n \f \r, \u00xx in lower case for the other control
 * characters, everything else as it is.  Bytes (CS_BYTES) are written so when
 * they are UTF-8 and that form is not longer than {"base64":"..."}, else as
 * that object: nothing is lost, one value has one form, and what a client
 * sends grows to at most 4/3 of its size and 16 bytes.
 *
 * Must never: change a form that has been written once; the hashes of every
 * log in the world depend on it.
 */
#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>

#include "stored.h"

struct out {
	char	*buf;		/* borrowed */
	size_t	 cap, len;
	int	 full;
};

static void
out_bytes(struct out *o, const void *s, size_t n)
{
	if (n > o->cap - o->len) {
		o->full = 1;
		return;
	}
	if (n > 0)
		memcpy(o->buf + o->len, s, n);
	o->len += n;
}

static void
out_text(struct out *o, const char *s)
{
	out_bytes(o, s, strlen(s));
}

static void
out_u64(struct out *o, uint64_t v)
{
	char	s[24] = "null";

	if (v <= WB_U63)		/* else it says that there is none */
		(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	out_text(o, s);
}

/* The escape of one byte into ret; its length, or 0 for none. */
static size_t
escape(uint8_t c, char ret[8])
{
	static const char	from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";
	const char		*p;

	if (c >= 0x20 && c != '"' && c != '\\')
		return 0;
	if (c != 0 && (p = strchr(from, c)) != NULL) {
		ret[0] = '\\';
		ret[1] = to[p - from];
		return 2;
	}
	return (size_t)snprintf(ret, 8, "\\u%04x", c);
}

/* Bytes that s takes as a JSON string, or 0: not UTF-8. */
static size_t
string_size(const uint8_t *s, size_t len)
{
	size_t	i, n, e, size = 2;
	char	esc[8];

	for (i = 0; i < len; i += n) {
		if ((n = wire_utf8_len(s + i, len - i)) == 0)
			return 0;
		e = escape(s[i], esc);
		size += e > 0 ? e : n;
	}
	return size;
}

static void
out_string(struct out *o, const uint8_t *s, size_t len)
{
	size_t	i, from = 0, e;
	char	esc[8];

	out_text(o, "\"");
	for (i = 0; i < len; i++) {
		if ((e = escape(s[i], esc)) == 0)
			continue;
		out_bytes(o, s + from, i - from);
		out_bytes(o, esc, e);
		from = i + 1;
	}
	if (len > from)
		out_bytes(o, s + from, len - from);
	out_text(o, "\"");
}

static void
out_base64(struct out *o, const uint8_t *s, size_t len)
{
	static const char	b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t		v;
	size_t			i, n;
	char			q[4];

	out_text(o, "{\"base64\":\"");
	for (i = 0; i < len; i += 3) {
		n = len - i < 3 ? len - i : 3;
		v = (uint32_t)s[i] << 16 | (n > 1 ? s[i + 1] : 0U) << 8 |
		    (n > 2 ? s[i + 2] : 0U);
		q[0] = b64[v >> 18];
		q[1] = b64[v >> 12 & 63];
		q[2] = n > 1 ? b64[v >> 6 & 63] : '=';
		q[3] = n > 2 ? b64[v & 63] : '=';
		out_bytes(o, q, sizeof(q));
	}
	out_text(o, "\"}");
}

/* Any bytes: see the head of this file. */
static void
out_any(struct out *o, const uint8_t *s, size_t len)
{
	const size_t	base64 = strlen("{\"base64\":\"\"}") +
	    (len + 2) / 3 * 4;
	size_t		size = string_size(s, len);

	if (size != 0 && size <= base64)
		out_string(o, s, len);
	else
		out_base64(o, s, len);
}

static void
out_cstr(struct out *o, const char *s)
{
	if (*s == '\0')
		out_text(o, "null");
	else
		out_string(o, (const uint8_t *)s, strlen(s));
}

static void
out_member(struct out *o, const char *key, const char *s)
{
	out_text(o, ",\"");
	out_text(o, key);
	out_text(o, "\":");
	out_cstr(o, s);
}

static void
out_list(struct out *o, const struct wire_list *l)
{
	size_t	i;

	out_text(o, "[");
	for (i = 0; i < l->n; i++) {
		if (i > 0)
			out_text(o, ",");
		out_any(o, l->v[i].data, l->v[i].len);
	}
	out_text(o, "]");
}

static void
out_field(struct out *o, const struct wire_field *f, const void *body)
{
	const uint8_t		*p = (const uint8_t *)body + f->off;
	const struct wire_bin	*b = (const void *)p;
	uint64_t		 v;

	switch (f->kind) {
	case WIRE_U64:
		memcpy(&v, p, sizeof(v));
		out_u64(o, v);
		break;
	case WIRE_STR:
		if (*p == '\0' || f->cs != CS_BYTES)
			out_cstr(o, (const char *)p);
		else
			out_any(o, p, strlen((const char *)p));
		break;
	case WIRE_BIN:
		out_any(o, b->data, b->len);
		break;
	case WIRE_STRS:
	case WIRE_BINS:
		out_list(o, (const void *)p);
		break;
	}
}

static void
out_data(struct out *o, const struct record *r)
{
	const struct wire_desc	*d = r->type->desc;
	size_t			 i;

	if (d->nfields == 0) {
		out_text(o, "null");
		return;
	}
	for (i = 0; i < d->nfields; i++) {
		out_text(o, i == 0 ? "{\"" : ",\"");
		out_text(o, d->field[i].key);
		out_text(o, "\":");
		if (r->hide_argv && strcmp(d->field[i].key, "argv") == 0)
			out_text(o, "null");
		else
			out_field(o, &d->field[i], r->data);
	}
	out_text(o, "}");
}

static void
hex(const uint8_t *s, size_t len, char *ret)
{
	static const char	digits[] = "0123456789abcdef";
	size_t			i;

	for (i = 0; i < len; i++) {
		*ret++ = digits[s[i] >> 4];
		*ret++ = digits[s[i] & 15];
	}
	*ret = '\0';
}

ssize_t
record_format(const struct record *r, char *buf, size_t cap)
{
	struct out	o = { buf, cap, 0, 0 };
	char		when[25], prev[2 * RECORD_HASH + 1];

	time_rfc3339(r->time_ms, when);
	hex(r->prev, RECORD_HASH, prev);
	out_text(&o, "{\"seq\":");
	out_u64(&o, r->seq);
	out_member(&o, "time", when);
	out_member(&o, "type", r->type->name);
	out_member(&o, "tenant", r->tenant);
	out_member(&o, "actor", r->actor);
	out_member(&o, "sandboxId", r->sandbox);
	out_member(&o, "sessionId", r->session);
	out_member(&o, "requestId", r->request);
	out_member(&o, "outcome", r->outcome);
	out_member(&o, "reason", r->reason);
	out_text(&o, ",\"data\":");
	out_data(&o, r);
	out_member(&o, "prev", prev);
	out_text(&o, "}");
	if (o.full) {
		errno = EMSGSIZE;
		return -1;
	}
	return (ssize_t)o.len;
}

void
record_hash(const void *line, size_t len, uint8_t ret[RECORD_HASH])
{
	static const uint8_t	leaf = 0;	/* RFC 6962, section 2.1 */
	SHA2_CTX		c;

	SHA256Init(&c);
	SHA256Update(&c, &leaf, sizeof(leaf));
	SHA256Update(&c, line, len);
	SHA256Final(ret, &c);
}

void
sha256_hex(const void *p, size_t len, char ret[65])
{
	uint8_t		h[RECORD_HASH];
	SHA2_CTX	c;

	SHA256Init(&c);
	SHA256Update(&c, p, len);
	SHA256Final(h, &c);
	hex(h, sizeof(h), ret);
}

/*
 * What stands before the tenant (a number, a time, a type) holds neither
 * quote nor escape, and a tenant neither (CS_NAME): the first match is it.
 */
int
record_is_of(const void *line, size_t len, const char *tenant)
{
	static const char	key[] = ",\"tenant\":";
	const char		*p, *end = (const char *)line + len;
	size_t			 n = strlen(tenant);

	p = memmem(line, len, key, sizeof(key) - 1);
	if (p == NULL)
		return 0;
	p += sizeof(key) - 1;
	return (size_t)(end - p) > n + 1 && p[0] == '"' &&
	    memcmp(p + 1, tenant, n) == 0 && p[n + 1] == '"';
}
