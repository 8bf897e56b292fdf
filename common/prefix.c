/*
 * prefix.c: see prefix.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "prefix.h"

/* Decimal, without sign, blank or leading zero; -1: it is not. */
static int
bits_parse(const char *s, unsigned int most)
{
	unsigned int	v = 0;
	const char	*p;

	for (p = s; *p >= '0' && *p <= '9' && p - s < 3; p++)
		v = v * 10 + (unsigned int)(*p - '0');
	if (p == s || *p != '\0' || v > most || (*s == '0' && p - s > 1))
		return -1;
	return (int)v;
}

/* Whether every bit from `bits' on is 0. */
static int
is_clean(const struct prefix *p)
{
	unsigned int	i;

	for (i = p->bits; i < p->len * 8U; i++)
		if (p->addr[i / 8] & 0x80U >> i % 8)
			return 0;
	return 1;
}

int
prefix_parse(const char *s, struct prefix *ret)
{
	struct prefix	 p = { .bits = 0 };
	char		 addr[INET6_ADDRSTRLEN];
	const char	*slash = strchr(s, '/');
	size_t		 n = slash == NULL ? strlen(s) : (size_t)(slash - s);
	int		 bits;

	errno = EINVAL;
	if (n >= sizeof(addr))
		return -1;
	memcpy(addr, s, n);
	addr[n] = '\0';
	p.len = strchr(addr, ':') == NULL ? 4 : 16;
	if (inet_pton(p.len == 4 ? AF_INET : AF_INET6, addr, p.addr) != 1)
		return -1;
	bits = slash == NULL ? p.len * 8 : bits_parse(slash + 1, p.len * 8U);
	if (bits == -1)
		return -1;
	p.bits = (uint8_t)bits;
	errno = EDOM;
	if (!is_clean(&p))
		return -1;
	*ret = p;
	return 0;
}

int
prefix_meet(const struct prefix *a, const struct prefix *b)
{
	unsigned int	n = a->bits < b->bits ? a->bits : b->bits;
	unsigned int	rest = n % 8;

	if (a->len != b->len || memcmp(a->addr, b->addr, n / 8) != 0)
		return 0;
	return rest == 0 ||
	    (a->addr[n / 8] ^ b->addr[n / 8]) >> (8 - rest) == 0;
}

void
prefix_forms(const struct prefix *v4, struct prefix ret[PREFIX_FORMS])
{
	static const struct prefix	forms[PREFIX_FORMS] = {
		{ { 0x20, 0x02 }, 16, 16 },
		{ { 0x00, 0x64, 0xff, 0x9b }, 16, 96 },
	};
	size_t				i;

	for (i = 0; i < PREFIX_FORMS; i++) {
		ret[i] = forms[i];
		memcpy(ret[i].addr + forms[i].bits / 8, v4->addr, 4);
		ret[i].bits = (uint8_t)(forms[i].bits + v4->bits);
	}
}

int
prefix_mapped(const struct prefix *p)
{
	static const struct prefix	mapped = {
		{ [10] = 0xff, [11] = 0xff }, 16, 96
	};

	return p->bits >= mapped.bits && prefix_meet(p, &mapped);
}

static int
form_meets(const struct prefix *v4, const struct prefix *p)
{
	struct prefix	forms[PREFIX_FORMS];

	if (v4->len != 4)
		return 0;
	prefix_forms(v4, forms);
	return prefix_meet(&forms[0], p) || prefix_meet(&forms[1], p);
}

const char *
prefix_never(const struct prefix *p)
{
	static const char *const	never[] = {
#define SEALED_EVER(text, why)	text,
#include "sealed.def"
	};
	const size_t			n = sizeof(never) / sizeof(never[0]);
	struct prefix			q;
	size_t				i;

	for (i = 0; i < n; i++)
		if (prefix_parse(never[i], &q) == 0 && prefix_meet(p, &q))
			return never[i];
	for (i = 0; i < n; i++)
		if (prefix_parse(never[i], &q) == 0 && form_meets(&q, p))
			return never[i];
	return NULL;
}
