/*
 * hostaddr_fuzz: what rtnetlink says of the host's addresses.
 *
 * input: messages as they stand in a packet
 */
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include "../../netd/netd.h"
#include "fuzz.h"

static void
one_prefix(const struct prefix *p)
{
	struct prefix	forms[PREFIX_FORMS];
	struct span	v;
	unsigned int	i;

	must(p->len == 4 || p->len == 16);
	must(p->bits <= p->len * 8);
	for (i = p->bits; i < sizeof(p->addr) * 8; i++)
		must((p->addr[i / 8] & 0x80U >> i % 8) == 0);
	span_of(p, &v);
	must(memcmp(v.first, v.last, sizeof(v.first)) <= 0);
	if (p->len != 4)
		return;
	prefix_forms(p, forms);
	for (i = 0; i < PREFIX_FORMS; i++)
		one_prefix(&forms[i]);
}

/* What a dump would take for an address is news when it is announced. */
static int
one_message(const struct nlmsghdr *h, struct spans *s)
{
	struct prefix	p;

	if (!hostaddr_take(h, &p))
		return 0;
	must(hostaddr_heard(h, h->nlmsg_len) == 1);
	one_prefix(&p);
	spans_add(&s[p.len == 16], &p);
	return 1;
}

/* In order, and none within another. */
static void
in_order(struct spans *s)
{
	size_t	i;

	spans_nest(s);
	for (i = 1; i < s->n; i++)
		must(memcmp(s->v[i - 1].last, s->v[i].first, s->len) < 0);
	spans_merge(s);
	for (i = 1; i < s->n; i++)
		must(memcmp(s->v[i - 1].last, s->v[i].first, s->len) < 0);
	spans_free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nlmsghdr	*h;
	struct spans		 s[2];
	/* netd's own ends at a multiple of 4, too; malloc(3) aligns */
	uint8_t			*buf = calloc(1, (size + 4) & ~(size_t)3);
	int			 any = 0, len = (int)size;

	must(buf != NULL);
	memcpy(buf, data, size);
	spans_init(&s[0], 4);
	spans_init(&s[1], 16);
	for (h = (const struct nlmsghdr *)(const void *)buf;
	    nl_ok(h, len); h = mnl_nlmsg_next(h, &len))
		any |= one_message(h, s);
	must(!any || hostaddr_heard(buf, size) == 1);
	in_order(&s[0]);
	in_order(&s[1]);
	free(buf);
	return 0;
}
