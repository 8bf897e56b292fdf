/*
 * proof.c: the evidence of a boot: what was asked, what the host saw, what
 * the runner said.
 *
 * Walks the tables of proto.def, so that a fact that is added there is
 * compared and shown without a line here.
 *
 * Must never: leave out a fact, or compare anything but the bytes told.
 */
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

static const void *
at(const void *body, const struct wire_field *f)
{
	return (const uint8_t *)body + f->off;
}

static const struct wire_field *
field_find(const struct wire_desc *d, const char *key)
{
	size_t	i;

	for (i = 0; i < d->nfields; i++)
		if (strcmp(d->field[i].key, key) == 0)
			return &d->field[i];
	return NULL;
}

static int
same(const struct wire_field *f, const void *a, const void *b)
{
	const struct wire_bin	*x = a, *y = b;

	switch (f->kind) {
	case WIRE_U64:
		return memcmp(a, b, sizeof(uint64_t)) == 0;
	case WIRE_STR:
		return strcmp(a, b) == 0;
	case WIRE_BIN:
		return x->len == y->len && (x->len == 0 ||
		    memcmp(x->data, y->data, x->len) == 0);
	case WIRE_STRS:
	case WIRE_BINS:
		break;		/* no fact is a list */
	}
	fatalx("fact %s is of no kind that can be compared", f->key);
}

const char *
proof_differs(const struct msg_runner_facts *r,
    const struct msg_box_facts_are *h)
{
	const struct wire_desc	*rd = &wire_msg_runner_facts;
	const struct wire_field	*hf;
	size_t			 i;

	for (i = 0; i < rd->nfields; i++) {
		hf = field_find(&wire_msg_box_facts_are, rd->field[i].key);
		if (hf == NULL || hf->kind != rd->field[i].kind)
			fatalx("fact %s has no other side",
			    rd->field[i].key);
		if (!same(hf, at(r, &rd->field[i]), at(h, hf)))
			return rd->field[i].key;
	}
	return NULL;
}

/* ---- as JSON ------------------------------------------------------ */

/* Sets of bits, and what may not fit a JSON integer. */
static int
in_hex(const char *key)
{
	return strncmp(key, "cap_", 4) == 0;
}

static json_t *
digest_json(const struct wire_bin *b)
{
	char		hex[SHA256_DIGEST_STRING_LENGTH], buf[80];

	(void)SHA256Data(b->data, b->len, hex);
	(void)snprintf(buf, sizeof(buf), "sha256:%s", hex);
	return json_string_nocheck(buf);
}

/* whole 0: long texts as their digest. */
static json_t *
value_json(const struct wire_field *f, const void *p, int whole)
{
	const struct wire_bin	*b = p;
	uint64_t		 v;
	char			 buf[32];

	switch (f->kind) {
	case WIRE_U64:
		memcpy(&v, p, sizeof(v));
		if (!in_hex(f->key) && v <= WB_U63)
			return json_integer((json_int_t)v);
		(void)snprintf(buf, sizeof(buf), "0x%016llx",
		    (unsigned long long)v);
		return json_string_nocheck(buf);
	case WIRE_STR:
		return text_json(p, strlen(p));
	case WIRE_BIN:
		return whole ? text_json(b->data, b->len) : digest_json(b);
	case WIRE_STRS:
	case WIRE_BINS:
		break;
	}
	return json_null();
}

/* What was asked, where the request or the row says it; else null. */
static json_t *
asked_json(const struct box *b, const char *key)
{
	if (strcmp(key, "memory_bytes") == 0)
		return json_integer((json_int_t)b->memory_bytes);
	if (strcmp(key, "cpu_milli") == 0)
		return json_integer((json_int_t)b->cpu_milli);
	if (strcmp(key, "pids") == 0)
		return json_integer((json_int_t)b->pids);
	return json_null();
}

static void
fact_add(json_t *facts, const char *key, json_t *asked, json_t *host,
    json_t *runner)
{
	char	name[64];

	(void)str_copy(name, key, sizeof(name));	/* keys are short */
	text_camel(name);
	(void)json_array_append_new(facts, json_pack("{ss so so so}",
	    "field", name, "asked", asked, "host", host, "runner", runner));
}

static json_t *
facts_json(const struct box *b, const struct msg_runner_facts *r,
    const struct msg_box_facts_are *h, int whole)
{
	const struct wire_desc	*hd = &wire_msg_box_facts_are;
	const struct wire_field	*hf, *rf;
	json_t			*a = json_array();
	size_t			 i;

	fact_add(a, "rootfs", json_string(b->rootfs), json_null(),
	    json_null());
	fact_add(a, "network", json_string(network_name(b->network)),
	    json_string(network_name((unsigned int)h->network)), json_null());
	for (i = 0; i < hd->nfields; i++) {
		hf = &hd->field[i];
		if (strcmp(hf->key, "verdict") == 0 ||
		    strcmp(hf->key, "network") == 0)
			continue;	/* the latter stands above, by name */
		rf = field_find(&wire_msg_runner_facts, hf->key);
		fact_add(a, hf->key, asked_json(b, hf->key),
		    value_json(hf, at(h, hf), whole), rf == NULL ?
		    json_null() : value_json(rf, at(r, rf), whole));
	}
	return a;
}

json_t *
proof_host_json(const struct msg_box_facts_are *h)
{
	const struct wire_desc	*hd = &wire_msg_box_facts_are;
	json_t			*o = json_object();
	char			 name[64];
	size_t			 i;

	for (i = 0; i < hd->nfields; i++) {
		(void)str_copy(name, hd->field[i].key, sizeof(name));
		text_camel(name);
		if (strcmp(name, "verdict") != 0)
			(void)json_object_set_new(o, name,
			    value_json(&hd->field[i], at(h, &hd->field[i]),
			    1));
	}
	return o;
}

char *
proof_text(const struct box *b, const struct msg_runner_facts *r,
    const struct msg_box_facts_are *h, const char *field,
    const char *released, uint64_t ms)
{
	char	 name[64], free_of[64], *text;
	json_t	*o;
	int	 whole;

	(void)str_copy(name, field, sizeof(name));	/* cut is fine */
	text_camel(name);
	(void)str_copy(free_of, released, sizeof(free_of));
	text_camel(free_of);
	for (whole = 1; whole >= 0; whole--) {
		o = json_pack("{ss ss so so so so}", "sandboxId", b->id,
		    "verdict", field[0] == '\0' ? "verified" : "failed",
		    "field", text_json_or_null(name),
		    "released", text_json_or_null(free_of),
		    "at", time_json(ms),
		    "facts", facts_json(b, r, h, whole));
		if (o == NULL || (text = json_dumps(o, JSON_COMPACT)) == NULL)
			fatalx("evidence: out of memory");
		json_decref(o);
		if (strlen(text) <= PROOF_MAX)
			return text;
		free(text);
	}
	fatalx("box %s: the evidence is larger than %d bytes", b->id,
	    PROOF_MAX);
}
