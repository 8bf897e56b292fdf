/*
 * dns.c: queries of a box to the name service, and the answers to them (RFC
 * 1035, 6891).
 *
 * Must never read beyond a query, follow a pointer in one, or say more than
 * it was asked.
 *
 * A query is one question and nothing else but, perhaps, one OPT record.
 * The question goes back byte by byte as it came: who asks may compare it, in
 * upper and lower case.
 */
#include <string.h>

#include "proxyd.h"

#define HEAD		12		/* bytes of a header */
#define F_QR		0x8000		/* its flags */
#define F_OPCODE	0x7800
#define F_TC		0x0200
#define F_RD		0x0100
#define F_RA		0x0080
#define OPCODE_SHIFT	11
#define C_IN		1
#define T_OPT		41
#define LABEL_MAX	63
#define NAME_MAX_WIRE	255		/* bytes of a name in a message */
#define TO_QUESTION	0xc000		/* a name: the one at ... */

/* What is read of a message; p never leaves it. */
struct rest {
	const uint8_t	*p;
	size_t		 n;
};

static unsigned int
get16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static uint8_t *
put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* n bytes of it, or NULL. */
static const uint8_t *
take(struct rest *m, size_t n)
{
	const uint8_t	*p = m->p;

	if (n > m->n)
		return NULL;
	m->p += n;
	m->n -= n;
	return p;
}

/* ---- queries ------------------------------------------------------------- */

/*
 * A label as part of the text at *len, which has room: names in messages are
 * as long as in text.  What cannot be shown, and a dot that divides nothing,
 * is `?'; then no name can be right.
 */
static int
label_text(const uint8_t *p, size_t n, char *text, size_t *len)
{
	int	right = 1;
	size_t	i;

	for (i = 0; i < n; i++) {
		if (p[i] <= ' ' || p[i] > '~' || p[i] == '.') {
			text[(*len)++] = '?';
			right = 0;
		} else
			text[(*len)++] = (char)p[i];
	}
	text[(*len)++] = '.';
	return right;
}

/* 0, or -1: it is broken. */
static int
take_name(struct rest *m, struct dns_query *q)
{
	char		 text[NAME_MAX_WIRE + 1];
	const uint8_t	*p;
	size_t		 len = 0, n;
	int		 right = 1;

	for (;;) {
		if ((p = take(m, 1)) == NULL || (n = *p) > LABEL_MAX)
			return -1;
		if (n == 0)
			break;
		if (len + n + 2 > NAME_MAX_WIRE || (p = take(m, n)) == NULL)
			return -1;
		right &= label_text(p, n, text, &len);
	}
	q->is_name = right && len > 0 && allow_name(text, len, q->name) == 0;
	if (!q->is_name) {
		if (len > 1)
			len--;		/* the last dot */
		else
			text[len++] = '.'; /* the root */
		memcpy(q->name, text, len);
		q->name[len] = '\0';
	}
	return 0;
}

static enum dns_rcode
take_question(struct rest *m, struct dns_query *q)
{
	const uint8_t	*begin = m->p, *p;

	if (take_name(m, q) == -1 || (p = take(m, 4)) == NULL)
		return DNS_FORMERR;
	q->type = (uint16_t)get16(p);
	q->class = (uint16_t)get16(p + 2);
	q->question = begin;
	q->nquestion = (size_t)(m->p - begin);
	return q->class == C_IN ? DNS_NOERROR : DNS_NOTIMP;
}

/*
 * The OPT record: of the root, and options that are what they like (cookies
 * come): none of them is looked at.
 */
static enum dns_rcode
take_opt(struct rest *m, struct dns_query *q)
{
	const uint8_t	*p = take(m, 11);

	if (p == NULL || p[0] != 0 || get16(p + 1) != T_OPT ||
	    take(m, get16(p + 9)) == NULL)
		return DNS_FORMERR;
	q->edns = 1;
	return p[6] == 0 ? DNS_NOERROR : DNS_BADVERS;
}

static enum dns_rcode
take_all(const uint8_t *head, struct rest *m, struct dns_query *q)
{
	unsigned int	nadditional = get16(head + 10);
	enum dns_rcode	rcode;

	if (get16(head + 2) & F_TC || get16(head + 4) != 1 ||
	    get16(head + 6) != 0 || get16(head + 8) != 0 || nadditional > 1)
		return DNS_FORMERR;
	if ((rcode = take_question(m, q)) == DNS_NOERROR && nadditional == 1)
		rcode = take_opt(m, q);
	if (rcode == DNS_NOERROR && m->n > 0)
		rcode = DNS_FORMERR;
	return rcode;
}

int
dns_parse(const uint8_t *p, size_t n, struct dns_query *ret,
    enum dns_rcode *ret_rcode)
{
	struct dns_query	 q = { 0 }, none = { 0 };
	struct rest		 m = { p, n };
	const uint8_t		*head = take(&m, HEAD);
	enum dns_rcode		 rcode;
	unsigned int		 flags;

	if (head == NULL || (flags = get16(head + 2)) & F_QR)
		return 0;
	none.id = q.id = (uint16_t)get16(head);
	none.rd = q.rd = (flags & F_RD) != 0;
	none.opcode = (int)((flags & F_OPCODE) >> OPCODE_SHIFT);
	if (none.opcode != 0)
		rcode = DNS_NOTIMP;
	else if (n > DNS_QUERY_MAX)
		rcode = DNS_FORMERR;
	else
		rcode = take_all(head, &m, &q);
	if (rcode == DNS_NOERROR) {
		*ret = q;
		return 1;
	}
	none.edns = rcode == DNS_BADVERS;
	*ret = none;
	*ret_rcode = rcode;
	return -1;
}

/* ---- answers ------------------------------------------------------------- */

static uint8_t *
put_record(uint8_t *p, const uint8_t addr[4])
{
	p = put16(p, TO_QUESTION | HEAD);
	p = put16(p, DNS_T_A);
	p = put16(p, C_IN);
	p = put16(p, 0);
	p = put16(p, DNS_TTL);
	p = put16(p, 4);
	memcpy(p, addr, 4);
	return p + 4;
}

/* Its own size of messages, and what of a code the header has no room for. */
static uint8_t *
put_opt(uint8_t *p, enum dns_rcode rcode)
{
	*p++ = 0;
	p = put16(p, T_OPT);
	p = put16(p, DNS_MAX);
	p = put16(p, (unsigned int)rcode >> 4 << 8);
	p = put16(p, 0);
	return put16(p, 0);
}

size_t
dns_answer(const struct dns_query *q, enum dns_rcode rcode,
    const uint8_t addr[4], uint8_t ret[DNS_MAX])
{
	uint8_t	*p = ret;

	p = put16(p, q->id);
	p = put16(p, F_QR | F_RA | (q->rd ? F_RD : 0U) |
	    (unsigned int)q->opcode << OPCODE_SHIFT |
	    ((unsigned int)rcode & 0xf));
	p = put16(p, q->question != NULL);
	p = put16(p, q->question != NULL && addr != NULL);
	p = put16(p, 0);
	p = put16(p, q->edns != 0);
	if (q->question != NULL) {
		memcpy(p, q->question, q->nquestion);
		p += q->nquestion;
		if (addr != NULL)
			p = put_record(p, addr);
	}
	if (q->edns)
		p = put_opt(p, rcode);
	return (size_t)(p - ret);
}
