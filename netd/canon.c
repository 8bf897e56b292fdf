/*
 * canon.c: the canonical text of a ruleset, and its hash.
 *
 *	table FAMILY NAME FLAGS
 *	chain FAMILY TABLE NAME TYPE HOOK PRIORITY POLICY
 *	rule FAMILY TABLE CHAIN
 *	expr NAME KEY=VALUE ...		(each expression of the rule above)
 *
 * Numbers are decimal, data is hexadecimal, what is absent is left out.  An
 * expression or attribute that this file does not know is written as
 * unknown, so that it can equal nothing that netd wanted.
 */
#include <errno.h>
#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netd.h"
#include "xmalloc.h"

#define CANON_MAX	65536		/* more is nothing that netd made */

struct canon {
	char	*text;			/* owned */
	size_t	 len, cap;
};

enum kind { U8, U32, DATA, STR };

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
static const struct { const char *name; const struct attr *attr; } exprs[] = {
	{ "meta", attr_meta },
	{ "cmp", attr_cmp },
	{ "payload", attr_payload },
	{ "immediate", attr_immediate },
	{ "reject", attr_reject },
};

struct canon *
canon_new(void)
{
	return xcalloc(1, sizeof(struct canon));
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
	if (n < 0 || (size_t)n >= sizeof(buf) || c->len > CANON_MAX)
		return;			/* cut: equals nothing wanted */
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
	case U32:
		add(c, " %s=%u", a->key, nftnl_expr_get_u32(e, a->id));
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

const char *
canon_text(const struct canon *c)
{
	return c->text != NULL ? c->text : "";
}

void
canon_done(struct canon *c, char ret[NET_HASHLEN + 1])
{
	SHA2_CTX	ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)canon_text(c), c->len);
	(void)SHA256End(&ctx, ret);	/* fills ret, whose size is right */
	free(c->text);
	free(c);
}
