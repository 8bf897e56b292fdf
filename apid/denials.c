/*
 * denials.c: what the networks of boxes have denied, by netd's word.
 *
 * The newest RING of each box are kept in memory for who asks, and told to
 * the record (egress.denied).  The record is the smaller of the two: a box
 * may have BURST of them and then one in PERIOD_S seconds, and all together
 * ALL_BURST and ALL_RATE a second; what is left out is counted, and told by
 * rule once a minute.  A box of which there was none for QUIET_MS has its
 * next one whatever the others do, so that nobody's first is lost in the
 * noise of others.
 *
 * The list does not outlive this process: `since' says from when on it is
 * whole.  The totals are what netd makes of the kernel's counters.
 *
 * Safe if netd is hostile: what it tells is a destination in numbers and an
 * id; an id of no box that has or, in this run, had such a network is nobody's,
 * and is passed over, since a box may have gone while netd spoke.  It can make
 * up denials of boxes that are there, and no more than is bounded above.
 *
 * Must never: let what a box or netd says often decide how much is held,
 * recorded or done.
 */
#include <arpa/inet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "apid.h"
#include "denied.h"
#include "log.h"
#include "xmalloc.h"

#define RING		256	/* denials of a box */
#define RING_FIRST	8	/* room that is made at first */

/* Records. */
#define BURST		20	/* of one box */
#define PERIOD_S	5
#define ALL_BURST	200
#define ALL_RATE	20	/* a second */
#define QUIET_MS	60000
#define SUM_S		60

/* Messages of netd. */
#define MSG_BURST	20000
#define MSG_RATE	10000	/* a second */
#define PAUSE_MS	50

struct denied {
	uint64_t	 at_ms, last_ms, count;
	uint8_t		 addr[16], len;	/* 4, 16; 0: several */
	uint8_t		 rule, proto;
	uint16_t	 port;
	char		*name;		/* owned; NULL: none */
};

struct denials {
	struct box	*box;		/* borrowed: whose this is */
	struct denied	*ring;		/* owned */
	size_t		 cap, n, head;	/* head: the oldest, where it is full */
	uint64_t	 lost_ms;	/* the last one that fell out, or 0 */
	struct bucket	 rate;
	uint64_t	 recorded_at;	/* mono_ms() of the last, or 0 */
	uint64_t	 untold[DENIED_RULES];
	struct event	 sum;		/* tells these */
};

static uint64_t		started_ms;
static struct bucket	all, msgs, strays;

void
denials_start(void)
{
	started_ms = now_ms();
}

/* "" of several. */
static const char *
addr_text(const struct denied *d, char buf[INET6_ADDRSTRLEN])
{
	buf[0] = '\0';
	if (d->len != 0)	/* cannot fail: the family and size are right */
		(void)inet_ntop(d->len == 4 ? AF_INET : AF_INET6, d->addr,
		    buf, INET6_ADDRSTRLEN);
	return buf;
}

/* ---- the record ------------------------------------------------------ */

/* The entry that would have allowed it; "" where none would. */
static const char *
entry(const struct denied *d, char buf[ALLOW_TEXT])
{
	char	name[ALLOW_NAME];

	buf[0] = '\0';
	if (d->name == NULL || (d->rule != DENIED_NAME &&
	    d->rule != DENIED_PORT) ||
	    allow_name(d->name, strlen(d->name), name) == -1)
		return buf;
	if (d->port == 0)
		(void)snprintf(buf, ALLOW_TEXT, "%s", name);
	else
		(void)snprintf(buf, ALLOW_TEXT, "%s:%u", name, d->port);
	return buf;
}

static int
is_one(const struct denied *d)
{
	return d->len != 0 || d->name != NULL;
}

static void
append(const struct box *b, const struct denied *d, uint64_t count)
{
	struct event_egress_denied	e = { .port = d->port,
	    .count = count };
	char				addr[INET6_ADDRSTRLEN], buf[16],
					text[ALLOW_TEXT];

	(void)str_copy(e.address, addr_text(d, addr), sizeof(e.address));
	if (d->name != NULL)
		(void)str_copy(e.name, d->name, sizeof(e.name));
	(void)str_copy(e.entry, entry(d, text), sizeof(e.entry));
	if (is_one(d))
		(void)str_copy(e.protocol, denied_proto(d->proto, buf),
		    sizeof(e.protocol));
	event_append(EVENT_EGRESS_DENIED, &e, "netd", b->id, "", "",
	    "denied", denied_name(d->rule), NULL, NULL);
}

static void
sum_tell(struct denials *dn)
{
	struct denied	d = { .len = 0 };

	for (d.rule = 0; d.rule < DENIED_RULES; d.rule++) {
		if (dn->untold[d.rule] == 0)
			continue;
		append(dn->box, &d, dn->untold[d.rule]);
		dn->untold[d.rule] = 0;
	}
}

static void
on_sum(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	sum_tell(arg);
}

static uint64_t
add(uint64_t a, uint64_t b)
{
	return a > WB_U63 - b ? WB_U63 : a + b;
}

/* A counter may have more than a number in JSON here has. */
static uint64_t
total(uint64_t n)
{
	return n > WB_U63 ? WB_U63 : n;
}

/* Whether this one may stand in the record. */
static int
may_record(struct denials *dn)
{
	uint64_t	now = mono_ms();
	int		quiet = dn->recorded_at == 0 ||
			    now - dn->recorded_at >= QUIET_MS;

	if (peer_full(env.stored) ||
	    !bucket_take_n(&dn->rate, BURST * PERIOD_S, 1, PERIOD_S))
		return 0;
	if (!bucket_take(&all, ALL_BURST, ALL_RATE) && !quiet)
		return 0;
	dn->recorded_at = now;
	return 1;
}

static void
record(struct denials *dn, const struct denied *d, uint64_t count)
{
	const struct timeval	tv = { SUM_S, 0 };

	if (may_record(dn)) {
		append(dn->box, d, count);
		return;
	}
	dn->untold[d->rule] = add(dn->untold[d->rule], count);
	if (!event_pending(&dn->sum, EV_TIMEOUT, NULL) &&
	    event_add(&dn->sum, &tv) == -1)
		fatalx("add timer: out of memory");
}

/* ---- the list -------------------------------------------------------- */

/* The i-th newest. */
static struct denied *
nth(const struct denials *dn, size_t i)
{
	return &dn->ring[(dn->head + dn->n - 1 - i) % dn->cap];
}

static int
has_name(const struct denied *d, const char *name)
{
	return d->name == NULL || name == NULL ? d->name == name :
	    strcmp(d->name, name) == 0;
}

/* The one of which netd tells once more, or NULL. */
static struct denied *
find(const struct denials *dn, const struct denied *d)
{
	struct denied	*o;
	size_t		 i;

	for (i = 0; i < dn->n && is_one(d); i++) {
		o = nth(dn, i);
		if (o->at_ms == d->at_ms && o->rule == d->rule &&
		    o->proto == d->proto && o->port == d->port &&
		    o->len == d->len && has_name(o, d->name) &&
		    memcmp(o->addr, d->addr, sizeof(o->addr)) == 0)
			return o;
	}
	return NULL;
}

/* Takes the name. */
static void
keep(struct denials *dn, struct denied *d)
{
	struct denied	*o = find(dn, d);

	if (o != NULL) {
		o->count = add(o->count, d->count);
		o->last_ms = d->last_ms;
		free(d->name);
		return;
	}
	if (dn->n == dn->cap && dn->cap < RING) {	/* head is 0 yet */
		dn->cap = dn->cap == 0 ? RING_FIRST : dn->cap * 2;
		dn->ring = xreallocarray(dn->ring, dn->cap,
		    sizeof(*dn->ring));
	}
	if (dn->n == RING) {
		/* the oldest came first, and may have been seen last */
		if (dn->lost_ms < dn->ring[dn->head].last_ms)
			dn->lost_ms = dn->ring[dn->head].last_ms;
		free(dn->ring[dn->head].name);
		dn->head = (dn->head + 1) % RING;
	} else
		dn->n++;
	*nth(dn, 0) = *d;
}

static struct denials *
denials_of(struct box *b)
{
	struct denials	*dn = b->denials;

	if (dn != NULL)
		return dn;
	dn = b->denials = xcalloc(1, sizeof(*dn));
	dn->box = b;
	(void)evtimer_assign(&dn->sum, env.base, on_sum, dn);
	return dn;
}

void
denials_free(struct box *b)
{
	struct denials	*dn = b->denials;
	size_t		 i;

	if (dn == NULL)
		return;
	b->denials = NULL;
	sum_tell(dn);		/* of what is no more this is the last word */
	(void)event_del(&dn->sum);
	for (i = 0; i < dn->n; i++)
		free(nth(dn, i)->name);
	free(dn->ring);
	free(dn);
}

/* ---- netd's word ----------------------------------------------------- */

/* What no address has; the table's own bounds hold already. */
static const char *
wrong(const struct msg_net_denied *m)
{
	if (m->address.len != 0 && m->address.len != 4 && m->address.len != 16)
		return "address has neither 4 nor 16 bytes";
	if (m->address.len == 0 && m->name[0] == '\0' &&
	    (m->port != 0 || m->protocol != 0))
		return "a port or protocol without an address or name";
	return NULL;
}

/* When it was, as far as that can be true. */
static uint64_t
when(const struct box *b, uint64_t since_ms, uint64_t now)
{
	if (since_ms > now)
		return now;
	return since_ms < b->created_ms ? b->created_ms : since_ms;
}

static struct box *
box_of(const char *id)
{
	struct box	*b = box_by_id(id);

	/*
	 * also one whose processes have ended, or whose network is none since:
	 * the last word comes later
	 */
	if (b != NULL && (b->network != NETWORK_NONE || b->led_out) &&
	    b->state != BOX_REQUESTED)
		return b;
	if (bucket_take_n(&strays, 60, 1, 60))
		log_warnx("netd tells of denials of %s, which has no such "
		    "network", id);
	return NULL;
}

void
denials_told(struct peer *netd, const struct msg_net_denied *m)
{
	struct denied	 d = { .count = m->count, .rule = (uint8_t)m->rule,
	    .proto = (uint8_t)m->protocol, .port = (uint16_t)m->port };
	struct denials	*dn;
	struct box	*b;
	const char	*why;

	if ((why = wrong(m)) != NULL) {
		peer_fault(netd, "NET_DENIED: %s", why);
		return;
	}
	if (!bucket_take(&msgs, MSG_BURST, MSG_RATE))
		peer_pause(netd, PAUSE_MS);
	if ((b = box_of(m->id)) == NULL)
		return;
	d.len = (uint8_t)m->address.len;
	if (d.len != 0)
		memcpy(d.addr, m->address.data, d.len);
	d.last_ms = now_ms();
	d.at_ms = when(b, m->since_ms, d.last_ms);
	if (m->name[0] != '\0')
		d.name = xstrdup(m->name);
	b->denied_told[d.rule] = total(add(b->denied_told[d.rule], m->count));
	dn = denials_of(b);
	record(dn, &d, m->count);
	keep(dn, &d);
}

/* ---- who asks -------------------------------------------------------- */

json_t *
denials_totals(const struct box *b)
{
	if (!b->counted)
		return json_null();
	return json_pack("{sI sI sI sI sI sI sI sI sI sI}",
	    "sealed", (json_int_t)b->denied[DENIED_SEALED],
	    "host", (json_int_t)b->denied[DENIED_HOST],
	    "limited", (json_int_t)b->denied[DENIED_LIMITED],
	    "protocol", (json_int_t)b->denied[DENIED_PROTOCOL],
	    "address", (json_int_t)b->denied[DENIED_ADDRESS],
	    "name", (json_int_t)b->denied_told[DENIED_NAME],
	    "port", (json_int_t)b->denied_told[DENIED_PORT],
	    "tls", (json_int_t)b->denied_told[DENIED_TLS],
	    "http", (json_int_t)b->denied_told[DENIED_HTTP],
	    "namesExhausted", (json_int_t)b->denied_told[DENIED_EXHAUSTED]);
}

json_t *
denials_traffic(const struct box *b)
{
	if (!b->counted)
		return json_null();
	return json_pack("{sI sI sI sI sI sI}",
	    "connections", (json_int_t)b->connections,
	    "nameQueries", (json_int_t)b->names,
	    "sentBytes", (json_int_t)b->sent_bytes,
	    "sentPackets", (json_int_t)b->sent_packets,
	    "receivedBytes", (json_int_t)b->received_bytes,
	    "receivedPackets", (json_int_t)b->received_packets);
}

void
denials_counted(struct box *b, const struct msg_net_status_is *n)
{
	if (b->network == NETWORK_NONE || n->network != b->network)
		return;
	b->counted = 1;
	b->denied[DENIED_SEALED] = total(n->sealed);
	b->denied[DENIED_HOST] = total(n->host);
	b->denied[DENIED_LIMITED] = total(n->limited);
	b->denied[DENIED_PROTOCOL] = total(n->protocol);
	b->denied[DENIED_ADDRESS] = total(n->address);
	b->connections = total(n->connections);
	b->names = total(n->names);
	b->sent_bytes = total(n->sent_bytes);
	b->sent_packets = total(n->sent_packets);
	b->received_bytes = total(n->received_bytes);
	b->received_packets = total(n->received_packets);
}

#define TOLD		64	/* rows of an answer; proto.def */
#define ROW_MAX		448	/* bytes of one */
#define ROWS_BYTES	10000	/* of all; proto.def */

static size_t
row_put(const struct denied *d, uint8_t *buf)
{
	struct row_denied	row = { .at_ms = d->at_ms,
	    .last_ms = d->last_ms, .rule = d->rule,
	    .address = { d->addr, d->len }, .protocol = d->proto,
	    .port = d->port, .count = d->count };
	ssize_t			n;

	if (d->name != NULL)
		(void)str_copy(row.name, d->name, sizeof(row.name));
	if ((n = wire_encode(&wire_row_denied, &row, buf, ROW_MAX)) == -1)
		fatalx("encode denial: %s", wire_error());
	return (size_t)n;
}

/* A runner that does not take answers is told no more of them. */
void
denials_ask(const struct box *b, struct peer *p, uint32_t rid)
{
	static uint8_t			 buf[ROWS_BYTES];
	size_t				 used = 0;
	const struct denials		*dn = b->denials;
	struct msg_box_denials_are	 a = {
	    .network = b->network, .counted = (uint64_t)b->counted,
	    .sealed = b->denied[DENIED_SEALED],
	    .host = b->denied[DENIED_HOST],
	    .limited = b->denied[DENIED_LIMITED],
	    .protocol = b->denied[DENIED_PROTOCOL],
	    .address = b->denied[DENIED_ADDRESS],
	    .connections = b->connections, .names = b->names,
	    .sent_bytes = b->sent_bytes, .sent_packets = b->sent_packets,
	    .received_bytes = b->received_bytes,
	    .received_packets = b->received_packets,
	    .name = b->denied_told[DENIED_NAME],
	    .port = b->denied_told[DENIED_PORT],
	    .tls = b->denied_told[DENIED_TLS],
	    .http = b->denied_told[DENIED_HTTP],
	    .exhausted = b->denied_told[DENIED_EXHAUSTED],
	};
	struct msg_error		 e = { .code = CODE_BUSY,
					    .detail = "read what was told" };
	struct wire_bin			 v[TOLD];
	size_t				 n;

	if (peer_full(p)) {
		peer_reply(p, MSG_ERROR, rid, &e);
		return;
	}
	for (a.rows.v = v; dn != NULL && a.rows.n < dn->n &&
	    a.rows.n < TOLD && used + ROW_MAX <= sizeof(buf); a.rows.n++) {
		n = row_put(nth(dn, a.rows.n), buf + used);
		v[a.rows.n].data = buf + used;
		v[a.rows.n].len = n;
		used += n;
	}
	peer_reply(p, MSG_BOX_DENIALS_ARE, rid, &a);
}

static json_t *
denied_json(const struct denied *d)
{
	char	addr[INET6_ADDRSTRLEN], buf[16], text[ALLOW_TEXT];

	return json_pack("{so so ss so so so sI so so}",
	    "at", time_json(d->at_ms), "lastAt", time_json(d->last_ms),
	    "rule", denied_name(d->rule),
	    "address", text_json_or_null(addr_text(d, addr)),
	    "protocol", !is_one(d) ? json_null() :
		json_string(denied_proto(d->proto, buf)),
	    "port", d->port == 0 ? json_null() : json_integer(d->port),
	    "count", (json_int_t)d->count,
	    "name", d->name == NULL ? json_null() : json_string(d->name),
	    "entry", text_json_or_null(entry(d, text)));
}

/* From when on the list has all that netd told. */
static uint64_t
whole_since(const struct box *b)
{
	uint64_t	ms = started_ms;

	if (ms < b->created_ms)
		ms = b->created_ms;
	return b->denials != NULL && b->denials->lost_ms > ms ?
	    b->denials->lost_ms : ms;
}

void
api_sandbox_denials(struct http_req *r)
{
	uint64_t	 limit = http_query_u64(r, "limit", RING);
	struct box	*b = api_box(r);
	json_t		*items;
	size_t		 i;

	if (b == NULL)
		return;
	items = json_array();
	for (i = 0; b->denials != NULL && i < b->denials->n && i < limit; i++)
		(void)json_array_append_new(items,	/* only w/o memory */
		    denied_json(nth(b->denials, i)));
	http_reply_json(r, 200, json_pack("{ss so so so}", "sandboxId", b->id,
	    "since", time_json(whole_since(b)), "totals", denials_totals(b),
	    "items", items));
}
