/*
 * netd_names.c: see netd_names.h.
 */
#include <check.h>
#include <string.h>
#include <unistd.h>

#include "netd_names.h"
#include "xmalloc.h"

void
names_made(struct world *w, const char *id, struct names_box *ret)
{
	struct msg_net_make	q = { .network = NETWORK_ALLOWLIST };
	struct msg		m;
	int			i;

	(void)str_copy(q.id, id, sizeof(q.id));
	ck_assert_uint_eq(daemon_ask(&w->privd, MSG_NET_MAKE, &q, -1, &m),
	    MSG_NET_MADE);
	ret->id = id;
	ret->k = (unsigned int)m.body.net_made.k;
	ret->netns = m.fd;
	for (i = 0; i < NAMES_SOCKS; i++)
		ret->sock[i] = -1;
}

void
names_come(struct world *w, struct names_box *b, uint32_t *ret_rid)
{
	struct msg	m;
	unsigned int	i;

	for (i = 0; i < NAMES_SOCKS; i++) {
		ck_assert_uint_eq(daemon_next(&w->proxyd, &m), MSG_PROXY_BOX);
		ck_assert_str_eq(m.body.proxy_box.id, b->id);
		ck_assert_uint_eq(m.body.proxy_box.socket, i);
		ck_assert_int_eq(b->sock[i], -1);
		b->sock[i] = m.fd;
		ret_rid[i] = m.rid;
	}
}

void
names_say_ok(struct world *w, const uint32_t *rid)
{
	int	i;

	for (i = 0; i < NAMES_SOCKS; i++)
		ck_assert_int_eq(chan_ok(&w->proxyd, rid[i]), 0);
}

void
names_open(struct world *w, const char *id, struct names_box *ret)
{
	struct msg_net_open	q = { .wire_end = 0 };
	struct msg		m;
	uint32_t		rid[NAMES_SOCKS], opens;

	names_made(w, id, ret);
	names_come(w, ret, rid);
	names_say_ok(w, rid);
	q.k = ret->k;
	ck_assert_int_eq(chan_ask(&w->privd, MSG_NET_OPEN, &q, -1, &opens),
	    0);
	ck_assert_uint_eq(daemon_next(&w->privd, &m), MSG_NET_OPENED);
	ck_assert_uint_eq(m.rid, opens);
	ck_assert_uint_eq(m.body.net_opened.network, NETWORK_ALLOWLIST);
}

void
names_ended(struct world *w, const char *id)
{
	struct msg	m;

	ck_assert_uint_eq(daemon_next(&w->proxyd, &m), MSG_PROXY_END);
	ck_assert_str_eq(m.body.proxy_end.id, id);
	ck_assert_int_eq(chan_ok(&w->proxyd, m.rid), 0);
}

void
names_close(struct names_box *b)
{
	int	i;

	for (i = 0; i < NAMES_SOCKS; i++)
		fd_close(&b->sock[i]);
}

void
names_free(struct names_box *b)
{
	names_close(b);
	fd_close(&b->netns);
}
