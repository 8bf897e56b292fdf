/*
 * canon.c: the canonical text of a ruleset, and its hash.
 *
 *	table FAMILY NAME FLAGS
 *	chain FAMILY TABLE NAME TYPE HOOK PRIORITY POLICY
 *	rule FAMILY TABLE CHAIN
 *	expr NAME KEY=VALUE ...		(each expression of the rule above)
 *	set FAMILY TABLE NAME FLAGS KEYTYPE KEYLEN
 *	object FAMILY TABLE NAME TYPE
 *	elements FAMILY TABLE SET COUNT HASH
 *
 * HASH is the SHA-256 of a set's elements in order: for each its length, 1
 * if it is an interval's end, and its bytes.  The lines of elements are not
 * in the text but have a hash of their own; see ruleset.c.
 *
 * Numbers are decimal, data is hexadecimal, what is absent is left out.  An
 * expression or attribute that this file does not know is written as
 * unknown, and what is too long as cut, so that it can equal nothing that
 * netd wanted.
 */
#include <errno.h>
#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter/nf_tables.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netd.h"
#include "sort.h"
#include "xmalloc.h"

#define CANON_MAX	65536		/* more is nothing that netd made */

struct canon {
	char	*text;			/* owned */
	size_t	 len, cap;
	SHA2_CTX elements;
};

enum kind { U8, U16, U32, U64, DATA, STR };

struct attr { uint16_t id; const char *key; enum kind kind; };

/* Every attribute that the library can give of these expressions. */
static const struct attr attr_meta[] = {
	{ NFTNL_EXPR_META_KEY, "key", U32 },
	{ NFTNL_EXPR_META_DREG, "dreg", U32 },
	{ NFTNL_EXPR_META_SREG, "sreg", U32 },
	{ 0, NULL, U32 }
};
static const struct attr attr_cmp[] = {
	{ NFTNL_EXPR_CMP_SREG, "sreg", U32 },
	{ NFTNL_EXPR_CMP_OP, "op", U32 },
	{ NFTNL_EXPR_CMP_DATA, "data", DATA },
	{ 0, NULL, U32 }
};
static const struct attr attr_payload[] = {
	{ NFTNL_EXPR_PAYLOAD_DREG, "dreg", U32 },
	{ NFTNL_EXPR_PAYLOAD_BASE, "base", U32 },
	{ NFTNL_EXPR_PAYLOAD_OFFSET, "offset", U32 },
	{ NFTNL_EXPR_PAYLOAD_LEN, "len", U32 },
	{ NFTNL_EXPR_PAYLOAD_SREG, "sreg", U32 },
	{ 0, NULL, U32 }
};
static const struct attr attr_immediate[] = {
	{ NFTNL_EXPR_IMM_DREG, "dreg", U32 },
	{ NFTNL_EXPR_IMM_DATA, "data", DATA },
	{ NFTNL_EXPR_IMM_VERDICT, "verdict", U32 },
	{ NFTNL_EXPR_IMM_CHAIN, "chain", STR },
	{ 0, NULL, U32 }
};
static const struct attr attr_reject[] = {
	{ NFTNL_EXPR_REJECT_TYPE, "type", U32 },
	{ NFTNL_EXPR_REJECT_CODE, "code", U8 },
	{ 0, NULL, U32 }
};
static const struct attr attr_bitwise[] = {
	{ NFTNL_EXPR_BITWISE_SREG, "sreg", U32 },
	{ NFTNL_EXPR_BITWISE_DREG, "dreg", U32 },
	{ NFTNL_EXPR_BITWISE_OP, "op", U32 },
	{ NFTNL_EXPR_BITWISE_LEN, "len", U32 },
	{ NFTNL_EXPR_BITWISE_MASK, "mask", DATA },
	{ NFTNL_EXPR_BITWISE_XOR, "xor", DATA },
	{ NFTNL_EXPR_BITWISE_DATA, "data", DATA },
	{ 0, NULL, U32 }
};
static const struct attr attr_lookup[] = {
	{ NFTNL_EXPR_LOOKUP_SREG, "sreg", U32 },
	{ NFTNL_EXPR_LOOKUP_DREG, "dreg", U32 },
	{ NFTNL_EXPR_LOOKUP_SET, "set", STR },
	{ NFTNL_EXPR_LOOKUP_FLAGS, "flags", U32 },
	{ 0, NULL, U32 }
};
static const struct attr attr_limit[] = {
	{ NFTNL_EXPR_LIMIT_RATE, "rate", U64 },
	{ NFTNL_EXPR_LIMIT_UNIT, "unit", U64 },
	{ NFTNL_EXPR_LIMIT_BURST, "burst", U32 },
	{ NFTNL_EXPR_LIMIT_TYPE, "type", U32 },
	{ NFTNL_EXPR_LIMIT_FLAGS, "flags", U32 },
	{ 0, NULL, U32 }
};
static const struct attr attr_objref[] = {
	{ NFTNL_EXPR_OBJREF_IMM_TYPE, "type", U32 },
	{ NFTNL_EXPR_OBJREF_IMM_NAME, "name", STR },
	{ NFTNL_EXPR_OBJREF_SET_SREG, "sreg", U32 },
	{ NFTNL_EXPR_OBJREF_SET_NAME, "set", STR },
	{ 0, NULL, U32 }
};
static const struct attr attr_log[] = {
	{ NFTNL_EXPR_LOG_PREFIX, "prefix", STR },
	{ NFTNL_EXPR_LOG_GROUP, "group", U16 },
	{ NFTNL_EXPR_LOG_SNAPLEN, "snaplen", U32 },
	{ NFTNL_EXPR_LOG_QTHRESHOLD, "qthreshold", U16 },
	{ NFTNL_EXPR_LOG_LEVEL, "level", U32 },
	{ NFTNL_EXPR_LOG_FLAGS, "flags", U32 },
	{ 0, NULL, U32 }
};
static const struct attr attr_socket[] = {
	{ NFTNL_EXPR_SOCKET_KEY, "key", U32 },
	{ NFTNL_EXPR_SOCKET_DREG, "dreg", U32 },
	{ NFTNL_EXPR_SOCKET_LEVEL, "level", U32 },
	{ 0, NULL, U32 }
};
static const struct attr attr_tproxy[] = {
	{ NFTNL_EXPR_TPROXY_FAMILY, "family", U32 },
	{ NFTNL_EXPR_TPROXY_REG_ADDR, "addr", U32 },
	{ NFTNL_EXPR_TPROXY_REG_PORT, "port", U32 },
	{ 0, NULL, U32 }
};
static const struct { const char *name; const struct attr *attr; } exprs[] = {
	{ "meta", attr_meta },
	{ "cmp", attr_cmp },
	{ "payload", attr_payload },
	{ "immediate", attr_immediate },
	{ "reject", attr_reject },
	{ "bitwise", attr_bitwise },
	{ "lookup", attr_lookup },
	{ "limit", attr_limit },
	{ "objref", attr_objref },
	{ "log", attr_log },
	{ "socket", attr_socket },
	{ "tproxy", attr_tproxy },
};

struct canon *
canon_new(void)
{
	struct canon	*c = xcalloc(1, sizeof(*c));

	SHA256Init(&c->elements);
	return c;
}

static void	add(struct canon *, const char *, ...)
		    __attribute__((format(printf, 2, 3)));

static void
add(struct canon *c, const char *fmt, ...)
{
	char	buf[512];
	va_list	ap;
	int	n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(buf))
		n = snprintf(buf, sizeof(buf), " cut\n");
	if (c->len > CANON_MAX)
		return;			/* longer than anything wanted */
	if (c->len + (size_t)n + 1 > c->cap) {
		c->cap = (c->cap + (size_t)n + 1) * 2;
		c->text = xreallocarray(c->text, c->cap, 1);
	}
	memcpy(c->text + c->len, buf, (size_t)n + 1);
	c->len += (size_t)n;
}

/* "-" for what the kernel did not say. */
static const char *
str(const char *s)
{
	return s == NULL || *s == '\0' ? "-" : s;
}

void
canon_table(struct canon *c, const struct nftnl_table *t)
{
	add(c, "table %u %s %u\n", nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY),
	    str(nftnl_table_get_str(t, NFTNL_TABLE_NAME)),
	    nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS));
}

void
canon_chain(struct canon *c, const struct nftnl_chain *ch)
{
	add(c, "chain %u %s %s", nftnl_chain_get_u32(ch, NFTNL_CHAIN_FAMILY),
	    str(nftnl_chain_get_str(ch, NFTNL_CHAIN_TABLE)),
	    str(nftnl_chain_get_str(ch, NFTNL_CHAIN_NAME)));
	if (nftnl_chain_is_set(ch, NFTNL_CHAIN_HOOKNUM))
		add(c, " %s %u %d %u",
		    str(nftnl_chain_get_str(ch, NFTNL_CHAIN_TYPE)),
		    nftnl_chain_get_u32(ch, NFTNL_CHAIN_HOOKNUM),
		    nftnl_chain_get_s32(ch, NFTNL_CHAIN_PRIO),
		    nftnl_chain_get_u32(ch, NFTNL_CHAIN_POLICY));
	add(c, "\n");
}

static void
canon_attr(struct canon *c, const struct nftnl_expr *e, const struct attr *a)
{
	const uint8_t	*p;
	uint32_t	 i, len = 0;

	if (!nftnl_expr_is_set(e, a->id))
		return;
	switch (a->kind) {
	case U8:
		add(c, " %s=%u", a->key, nftnl_expr_get_u8(e, a->id));
		return;
	case U16:
		add(c, " %s=%u", a->key, nftnl_expr_get_u16(e, a->id));
		return;
	case U32:
		add(c, " %s=%u", a->key, nftnl_expr_get_u32(e, a->id));
		return;
	case U64:
		add(c, " %s=%ju", a->key,
		    (uintmax_t)nftnl_expr_get_u64(e, a->id));
		return;
	case STR:
		add(c, " %s=%s", a->key, str(nftnl_expr_get_str(e, a->id)));
		return;
	case DATA:
		p = nftnl_expr_get(e, a->id, &len);
		add(c, " %s=", a->key);
		for (i = 0; p != NULL && i < len; i++)
			add(c, "%02x", p[i]);
		return;
	}
}

static int
canon_expr(struct nftnl_expr *e, void *arg)
{
	struct canon		*c = arg;
	const struct attr	*a;
	const char		*name = str(nftnl_expr_get_str(e,
				    NFTNL_EXPR_NAME));
	size_t			 i;

	add(c, "expr %s", name);
	for (i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++)
		if (strcmp(exprs[i].name, name) == 0)
			break;
	if (i == sizeof(exprs) / sizeof(exprs[0])) {
		add(c, " unknown\n");
		return 0;
	}
	for (a = exprs[i].attr; a->key != NULL; a++)
		canon_attr(c, e, a);
	add(c, "\n");
	return 0;
}

void
canon_rule(struct canon *c, const struct nftnl_rule *r)
{
	add(c, "rule %u %s %s\n", nftnl_rule_get_u32(r, NFTNL_RULE_FAMILY),
	    str(nftnl_rule_get_str(r, NFTNL_RULE_TABLE)),
	    str(nftnl_rule_get_str(r, NFTNL_RULE_CHAIN)));
	/* the library's walk is not const, but changes nothing; always 0 */
	(void)nftnl_expr_foreach((struct nftnl_rule *)(uintptr_t)r,
	    canon_expr, c);
}

/* ---- sets ------------------------------------------------------------ */

void
canon_set(struct canon *c, const struct nftnl_set *s)
{
	/* what a set of ours never has */
	static const uint16_t	others[] = { NFTNL_SET_DATA_TYPE,
		NFTNL_SET_OBJ_TYPE, NFTNL_SET_TIMEOUT, NFTNL_SET_GC_INTERVAL,
		NFTNL_SET_DESC_CONCAT, NFTNL_SET_EXPR, NFTNL_SET_EXPRESSIONS };
	size_t			i;

	add(c, "set %u %s %s %u %u %u",
	    nftnl_set_get_u32(s, NFTNL_SET_FAMILY),
	    str(nftnl_set_get_str(s, NFTNL_SET_TABLE)),
	    str(nftnl_set_get_str(s, NFTNL_SET_NAME)),
	    nftnl_set_get_u32(s, NFTNL_SET_FLAGS),
	    nftnl_set_get_u32(s, NFTNL_SET_KEY_TYPE),
	    nftnl_set_get_u32(s, NFTNL_SET_KEY_LEN));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (nftnl_set_is_set(s, others[i]))
			add(c, " unknown=%u", others[i]);
	add(c, "\n");
}

/* A counter has no properties; another type has some that are not looked at. */
void
canon_object(struct canon *c, const struct nftnl_obj *o)
{
	/* the library's getters are not const, but change nothing */
	struct nftnl_obj	*w = (struct nftnl_obj *)(uintptr_t)o;
	uint32_t		 type = nftnl_obj_get_u32(w, NFTNL_OBJ_TYPE);

	add(c, "object %u %s %s %u%s\n",
	    nftnl_obj_get_u32(w, NFTNL_OBJ_FAMILY),
	    str(nftnl_obj_get_str(w, NFTNL_OBJ_TABLE)),
	    str(nftnl_obj_get_str(w, NFTNL_OBJ_NAME)), type,
	    type == NFT_OBJECT_COUNTER ? "" : " unknown");
}

struct elem { uint8_t len, end, key[16]; };

struct elems {
	struct elem	*v;		/* owned */
	size_t		 n, cap;
	int		 unknown;	/* one is no address */
};

static int
elem_cmp(const void *a, const void *b, const void *arg)
{
	const struct elem	*x = a, *y = b;
	int			 r = memcmp(x->key, y->key, sizeof(x->key));

	(void)arg;
	return r != 0 ? r : y->end - x->end;
}

static int
elem_take(struct nftnl_set_elem *e, void *arg)
{
	static const uint16_t	others[] = { NFTNL_SET_ELEM_VERDICT,
		NFTNL_SET_ELEM_CHAIN, NFTNL_SET_ELEM_DATA,
		NFTNL_SET_ELEM_TIMEOUT, NFTNL_SET_ELEM_USERDATA,
		NFTNL_SET_ELEM_EXPR, NFTNL_SET_ELEM_OBJREF,
		NFTNL_SET_ELEM_KEY_END, NFTNL_SET_ELEM_EXPRESSIONS };
	struct elems		*l = arg;
	struct elem		 x = { 0, 0, { 0 } };
	const void		*key;
	uint32_t		 flags, len = 0;
	size_t			 i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (nftnl_set_elem_is_set(e, others[i]))
			l->unknown = 1;
	/* the library does not look whether it is there */
	flags = nftnl_set_elem_is_set(e, NFTNL_SET_ELEM_FLAGS) ?
	    nftnl_set_elem_get_u32(e, NFTNL_SET_ELEM_FLAGS) : 0;
	key = nftnl_set_elem_get(e, NFTNL_SET_ELEM_KEY, &len);
	if (key == NULL || len > sizeof(x.key) ||
	    (flags & ~(uint32_t)NFT_SET_ELEM_INTERVAL_END) != 0) {
		l->unknown = 1;
		return 0;
	}
	x.len = (uint8_t)len;
	x.end = flags != 0;
	memcpy(x.key, key, len);
	if (l->n == l->cap) {
		l->cap = l->cap * 2 + 64;
		l->v = xreallocarray(l->v, l->cap, sizeof(*l->v));
	}
	l->v[l->n++] = x;
	return 0;
}

void
canon_elements(struct canon *c, const struct nftnl_set *s)
{
	struct elems	l = { .v = NULL };
	SHA2_CTX	ctx;
	size_t		was = c->len;
	char		hash[NET_HASHLEN + 1];

	/* not const either */
	(void)nftnl_set_elem_foreach((struct nftnl_set *)(uintptr_t)s,
	    elem_take, &l);
	sort(l.v, l.n, sizeof(*l.v), elem_cmp, NULL);
	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)l.v, l.n * sizeof(*l.v));
	(void)SHA256End(&ctx, hash);	/* fills hash, whose size is right */
	add(c, "elements %u %s %s %zu %s%s\n",
	    nftnl_set_get_u32(s, NFTNL_SET_FAMILY),
	    str(nftnl_set_get_str(s, NFTNL_SET_TABLE)),
	    str(nftnl_set_get_str(s, NFTNL_SET_NAME)), l.n, hash,
	    l.unknown ? " unknown" : "");
	free(l.v);
	if (c->len == was)
		return;
	SHA256Update(&c->elements, (const uint8_t *)c->text + was,
	    c->len - was);
	c->len = was;
	c->text[was] = '\0';
}

const char *
canon_text(const struct canon *c)
{
	return c->text != NULL ? c->text : "";
}

void
canon_done(struct canon *c, struct ruleset_seen *ret)
{
	SHA2_CTX	ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)canon_text(c), c->len);
	(void)SHA256End(&ctx, ret->hash);	/* the size is right */
	(void)SHA256End(&c->elements, ret->elements);
	free(c->text);
	free(c);
}
