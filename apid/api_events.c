/*
 * api_events.c: the record, byte for byte as stored has it.
 *
 * Pages are asked for one at a time, and only when the whole of one fits the
 * connection's queue.  A follower's last request waits in stored; it is
 * taken back when the client goes.
 */
#include <string.h>

#include "apid.h"
#include "xmalloc.h"

#define PAGE_BYTES	65000		/* proto.def, event_page.lines */
#define PAGE_LIMIT	1000		/* ... event_read.limit */

struct follow {
	struct http_req	*req;
	uint64_t	 after, left;	/* records that may still be told */
	uint64_t	 target;	/* not following: as far as this */
	int		 follow, targeted;
	int		 asked;
	uint32_t	 rid;
};

static void
follow_free(struct follow *f)
{
	struct msg_event_cancel	m = { .rid = f->rid };

	if (f->asked) {
		peer_forget(env.stored, f);
		if (f->follow)	/* its empty answer goes to nobody */
			peer_ask(env.stored, MSG_EVENT_CANCEL, &m, T_STORE,
			    NULL, NULL);
	}
	free(f);
}

static void
follow_end(struct follow *f, int whole)
{
	struct http_req	*r = f->req;

	follow_free(f);
	if (whole)
		http_end(r);
	else
		http_abort(r);
}

static uint64_t
count_lines(const struct wire_bin *b)
{
	const uint8_t	*p = b->data, *end = p + b->len;
	uint64_t	 n = 0;

	for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
	    p++)
		n++;
	return n;
}

static void	follow_ask(struct follow *);

static void
follow_page(void *arg, const struct msg *m)
{
	struct follow			*f = arg;
	const struct msg_event_page	*p = &m->body.event_page;

	f->asked = 0;
	if (m->row->type == MSG_ERROR) {
		follow_end(f, 0);
		return;
	}
	if (!f->targeted) {
		f->target = p->last;
		f->targeted = 1;
	}
	if (p->lines.len != 0 && http_write(f->req, p->lines.data,
	    p->lines.len) != 1) {
		follow_end(f, 0);
		return;
	}
	f->left -= count_lines(&p->lines);
	f->after = p->next;
	if (f->left == 0 || (!f->follow && (p->lines.len == 0 ||
	    f->after >= f->target)))
		follow_end(f, 1);
	else
		follow_ask(f);
}

static void
follow_ask(struct follow *f)
{
	struct msg_event_read	m = { .after = f->after };

	if (f->asked || http_room(f->req) < PAGE_BYTES)
		return;			/* again when there is room */
	m.limit = f->left < PAGE_LIMIT ? f->left : PAGE_LIMIT;
	m.wait = (uint64_t)f->follow;
	f->asked = 1;
	f->rid = peer_ask_rid(env.stored, MSG_EVENT_READ, &m,
	    f->follow ? 0 : T_STORE, follow_page, f);
}

static void
follow_drain(struct http_req *r, void *arg)
{
	(void)r;
	follow_ask(arg);
}

static void
follow_gone(struct http_req *r, enum http_gone why, void *arg)
{
	(void)r;
	(void)why;
	follow_end(arg, 0);
}

void
api_events(struct http_req *r)
{
	struct follow	*f = xcalloc(1, sizeof(*f));

	f->req = r;
	f->after = http_query_u64(r, "after", 0);
	f->left = http_query_u64(r, "limit", UINT64_MAX);
	f->follow = http_query_u64(r, "follow", 0) != 0;
	http_on_gone(r, follow_gone, f);
	http_on_drain(r, follow_drain, f);
	http_stream(r, 200, "application/x-ndjson");
	follow_ask(f);
}
