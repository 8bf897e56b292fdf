/*
 * dns_fuzz: any bytes as a query to the name service of a box.  What is taken
 * must be what the C library reads in it as well, and each answer one that
 * the C library takes.
 */
#include <arpa/nameser.h>

#include "../../proxyd/proxyd.h"
#include "fuzz.h"

static const uint8_t	addr[4] = { 198, 18, 1, 2 };

/* Letters that are no letters of names have a backslash there: not ours. */
static void
same_name(const struct dns_query *q, ns_msg *m)
{
	char	name[ALLOW_NAME];
	ns_rr	rr;

	must(ns_parserr(m, ns_s_qd, 0, &rr) == 0);
	must(q->type == ns_rr_type(rr) && q->class == ns_rr_class(rr));
	if (!q->is_name)
		return;
	must(allow_name(ns_rr_name(rr), strlen(ns_rr_name(rr)), name) == 0);
	must(strcmp(name, q->name) == 0);
}

static void
answer(const struct dns_query *q, enum dns_rcode rcode, const uint8_t *a)
{
	uint8_t		 buf[DNS_MAX], *own;
	size_t		 n = dns_answer(q, rcode, a, buf);
	ns_msg		 m;

	must(n >= 12 && n <= DNS_MAX);
	must((own = malloc(n)) != NULL);
	memcpy(own, buf, n);
	must(ns_initparse(own, (int)n, &m) == 0);
	must(ns_msg_id(m) == q->id && ns_msg_getflag(m, ns_f_qr) == 1);
	must(ns_msg_getflag(m, ns_f_rcode) == ((int)rcode & 15));
	must(ns_msg_count(m, ns_s_qd) == (q->question != NULL));
	must(ns_msg_count(m, ns_s_an) == (a != NULL));
	must(ns_msg_count(m, ns_s_ns) == 0);
	must(ns_msg_count(m, ns_s_ar) == (q->edns != 0));
	if (q->question != NULL) {
		must(memcmp(own + 12, q->question, q->nquestion) == 0);
		same_name(q, &m);
	}
	free(own);
}

static void
taken(const uint8_t *data, size_t size, const struct dns_query *q)
{
	ns_msg	m;
	size_t	i;

	must(size <= DNS_QUERY_MAX);
	must(q->question == data + 12 && q->nquestion <= size - 12);
	must(strlen(q->name) > 0 && q->opcode == 0);
	for (i = 0; q->name[i] != '\0'; i++)
		must(q->name[i] > ' ' && q->name[i] <= '~');
	must(ns_initparse(data, (int)size, &m) == 0);
	must(ns_msg_id(m) == q->id && ns_msg_count(m, ns_s_qd) == 1);
	same_name(q, &m);
	answer(q, DNS_NOERROR, addr);
	answer(q, DNS_NOERROR, NULL);
	answer(q, DNS_NXDOMAIN, NULL);
	answer(q, DNS_SERVFAIL, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query	q;
	enum dns_rcode		rcode;

	switch (dns_parse(data, size, &q, &rcode)) {
	case 1:
		taken(data, size, &q);
		break;
	case -1:
		must(q.question == NULL && rcode != DNS_NOERROR);
		must(size >= 12);
		answer(&q, rcode, NULL);
		break;
	default:
		must(size < 12 || data[2] & 0x80);
		break;
	}
	return 0;
}
