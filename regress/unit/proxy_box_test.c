/*
 * proxy_box_test.c: the boxes that proxyd serves, by netd's messages over a
 * real channel.  The rig is netd, stored, the name service and the relay.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy_box_rig.h"
#include "xmalloc.h"

#define AGAIN		5		/* box.c */
#define DENIALS		32

/* ---- sockets ---------------------------------------------------------- */

START_TEST(any_order)
{
	static const unsigned int	order[6][3] = { { 0, 1, 2 },
	    { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	uint32_t			rid;

	rig_is_ok(rig_give(ID, order[_i][0]));
	rig_is_ok(rig_give(ID, order[_i][1]));
	ck_assert_uint_eq(rig.nasked, 0);
	rid = rig_give(ID, order[_i][2]);
	ck_assert(!rig_next());		/* its list is read first */
	ck_assert_uint_eq(rig.served, 0);
	ck_assert_uint_eq(rig.nasked, 1);
	ck_assert_str_eq(rig.asked[0].read.id, ID);
	ck_assert_uint_eq(rig.asked[0].read.generation, 0);
	ck_assert_uint_eq(rig.asked[0].read.page, 0);
	rig_one_page("a.example");
	rig_is_ok(rid);
	ck_assert_uint_eq(rig.served, 1);
	ck_assert_mem_eq(rig.given, rig.got, sizeof(rig.given));
	ck_assert_int_eq(allow_find(rig.last->allow, "a.example", 443),
	    ALLOW_YES);
	ck_assert_int_eq(allow_find(rig.last->allow, "b.example", 443),
	    ALLOW_NOT);
}
END_TEST

START_TEST(twice)
{
	rig_is_ok(rig_give(ID, BOX_UDP));
	rig_is_error(rig_give(ID, BOX_UDP), CODE_EXISTS, "has that socket");
	ck_assert(!rig_lives(BOX_UDP));
	rig_is_ok(rig_give(ID, BOX_RELAY));
	(void)rig_give(ID, BOX_TCP);
	rig_is_error(rig_give(ID, BOX_TCP), CODE_EXISTS, "has that socket");
	rig_one_page("a.example");
	ck_assert(rig_next());
	rig_is_error(rig_give(ID, BOX_RELAY), CODE_EXISTS, "has that socket");
	ck_assert_uint_eq(rig.served, 1);
	/* of another box they are others */
	rig_is_ok(rig_give(OTHER, BOX_UDP));
}
END_TEST

/* After so many sockets; 3: while its list is read; 4: served. */
START_TEST(ends)
{
	uint32_t	rid = 0, rid_end;
	unsigned int	i;

	for (i = 0; i < 3 && (int)i < _i; i++)
		rid = rig_give(ID, i);
	if (_i == 4)
		rig_one_page("a.example");
	for (i = 0; i < 3 && (int)i < _i; i++) {
		ck_assert(rig_lives(i));
		ck_assert(_i == 3 && i == 2 ? !rig_next() : rig_next());
	}
	rid_end = rig_end(ID);
	if (_i == 3)
		rig_is_error(rid, CODE_BAD_TRANSITION, "ended");
	rig_is_ok(rid_end);
	for (i = 0; i < 3 && (int)i < _i; i++)
		ck_assert(!rig_lives(i));
	ck_assert_uint_eq(rig.ended, _i == 4);
	rig_is_ok(rig_end(ID));
	rig_is_error(rig_list(ID), CODE_NOT_FOUND, "not served");
	if (_i == 3)
		rig_one_page("a.example");	/* late */
	ck_assert(!rig_next());
	/* and it may come again */
	rig_serve(ID);
	ck_assert_uint_eq(rig.served, _i == 4 ? 2 : 1);
}
END_TEST

/* The page of before does not become the list of the one that came after. */
START_TEST(late_page)
{
	(void)rig_give(ID, BOX_RELAY);
	(void)rig_give(ID, BOX_UDP);
	(void)rig_give(ID, BOX_TCP);
	(void)rig_end(ID);
	(void)rig_give(ID, BOX_RELAY);
	(void)rig_give(ID, BOX_UDP);
	(void)rig_give(ID, BOX_TCP);
	ck_assert_uint_eq(rig.nasked, 2);
	rig_one_page("old.example");
	ck_assert_uint_eq(rig.served, 0);
	rig_one_page("new.example");
	ck_assert_uint_eq(rig.served, 1);
	ck_assert_int_eq(allow_find(rig.last->allow, "old.example", 443),
	    ALLOW_NOT);
}
END_TEST

/* ---- lists ------------------------------------------------------------ */

static const char *const	abc[] = { "a.example", "b.example",
				    "c.example:22" };

/* All three have come; netd waits for this. */
static uint32_t
begin(void)
{
	(void)rig_give(ID, BOX_RELAY);
	(void)rig_give(ID, BOX_UDP);
	while (rig_next())
		;
	return rig_give(ID, BOX_TCP);
}

START_TEST(pages)
{
	uint32_t	rid = begin();

	rig_page(9, 2, 1, &abc[2]);
	rig_page(9, 1, 1, &abc[0]);
	ck_assert_uint_eq(rig.served, 0);
	ck_assert_uint_eq(rig.asked[2].read.generation, 9);
	ck_assert_uint_eq(rig.asked[2].read.page, 2);
	rig_page(9, 0, 1, &abc[1]);
	rig_is_ok(rid);
	ck_assert_uint_eq(allow_count(rig.last->allow), 3);
	ck_assert_int_eq(allow_find(rig.last->allow, "c.example", 443),
	    ALLOW_OTHER);
}
END_TEST

START_TEST(empty)
{
	uint32_t	rid = begin();

	rig_page(9, 0, 0, NULL);
	rig_is_ok(rid);
	ck_assert_uint_eq(allow_count(rig.last->allow), 0);
}
END_TEST

/* It became another in between: nothing of the one before is in it. */
START_TEST(generations)
{
	uint32_t	rid = begin();

	rig_page(9, 1, 1, &abc[0]);
	rig_fails(MSG_ALLOW_READ, CODE_NOT_FOUND);
	ck_assert_uint_eq(rig.asked[2].read.generation, 0);
	ck_assert_uint_eq(rig.asked[2].read.page, 0);
	rig_page(10, 1, 1, &abc[1]);
	ck_assert_uint_eq(rig.asked[3].read.generation, 10);
	rig_page(10, 0, 1, &abc[2]);
	rig_is_ok(rid);
	ck_assert_int_eq(allow_find(rig.last->allow, "a.example", 443),
	    ALLOW_NOT);
	ck_assert_uint_eq(allow_count(rig.last->allow), 2);
}
END_TEST

/* All the time: not for ever. */
START_TEST(generations_without_end)
{
	uint32_t	rid = begin();
	unsigned int	i;

	for (i = 0; i <= AGAIN; i++) {
		rig_page(9 + i, 1, 1, &abc[0]);
		rig_fails(MSG_ALLOW_READ, CODE_NOT_FOUND);
	}
	rig_is_error(rid, CODE_INTERNAL, "changes all the time");
	ck_assert_uint_eq(rig.served, 0);
}
END_TEST

/* Whatever goes wrong with a page. */
enum wrong { SILENT, ERROR, NONE, OTHERS, NO_ENTRY, LONG_ENTRY, TOO_MANY,
    NO_END, EMPTY_MORE, NWRONG };

static const char *
go_wrong(enum wrong how)
{
	static const char *const	bad = "A.example";
	static const char		*many[1000];
	static char			 text[1000][16], big[400];
	unsigned int			 i;

	switch (how) {
	case SILENT:
		rig_silent(MSG_ALLOW_READ);
		return "does not answer";
	case ERROR:
		rig_fails(MSG_ALLOW_READ, CODE_INTERNAL);
		return "stored says no";
	case NONE:			/* not even a first page */
		rig_fails(MSG_ALLOW_READ, CODE_NOT_FOUND);
		return "stored says no";
	case OTHERS:
		rig_page(9, 1, 1, &abc[0]);
		rig_page(10, 0, 1, &abc[1]);
		return "another's page";
	case NO_ENTRY:
		rig_page(9, 0, 1, &bad);
		return "an entry is none";
	case LONG_ENTRY:
		memset(big, 'a', sizeof(big) - 1);
		many[0] = big;
		rig_page(9, 0, 1, many);
		return "an entry is none";
	case TOO_MANY:
		for (i = 0; i < 1000; i++) {
			(void)snprintf(text[i], sizeof(text[i]), "h%u.x", i);
			many[i] = text[i];
		}
		for (i = 0; i < 10; i++)
			rig_page(9, 12 - i, 1000, many);
		rig_page(9, 0, 1, many);
		return "too long";
	case NO_END:
		for (i = 0; i < 1024; i++)
			rig_page(9, 1, 1, &abc[0]);
		return "do not end";
	case EMPTY_MORE:
		rig_page(9, 1, 0, NULL);
		return "do not end";
	case NWRONG:
		break;
	}
	ck_abort();
}

START_TEST(wrong_at_first)
{
	uint32_t	 rid = begin();
	const char	*why = go_wrong((enum wrong)_i);

	rig_is_error(rid, CODE_INTERNAL, why);
	ck_assert_uint_eq(rig.served, 0);
	ck_assert(!rig_lives(BOX_RELAY));
	ck_assert(!rig_lives(BOX_UDP));
	ck_assert(!rig_lives(BOX_TCP));
	rig_is_error(rig_list(ID), CODE_NOT_FOUND, "not served");
	rig_serve(ID);
}
END_TEST

/* What is served already goes on by the list that it has. */
START_TEST(wrong_later)
{
	const char	*why;
	uint32_t	 rid;

	rig_serve(ID);
	rid = rig_list(ID);
	ck_assert(!rig_next());
	why = go_wrong((enum wrong)_i);
	rig_is_error(rid, CODE_INTERNAL, why);
	ck_assert(rig_lives(BOX_RELAY));
	ck_assert_uint_eq(rig.judged, 0);
	ck_assert_uint_eq(rig.ended, 0);
	ck_assert_uint_eq(allow_count(rig.last->allow), 1);
	ck_assert_int_eq(allow_find(rig.last->allow, "a.example", 443),
	    ALLOW_YES);
	/* and may be read again */
	rid = rig_list(ID);
	rig_page(11, 0, 2, abc);
	rig_is_ok(rid);
	ck_assert_uint_eq(allow_count(rig.last->allow), 2);
}
END_TEST

START_TEST(anew)
{
	uint32_t	rid;

	rig_is_error(rig_list(ID), CODE_NOT_FOUND, "not served");
	(void)rig_give(ID, BOX_UDP);
	ck_assert(rig_next());
	rig_is_error(rig_list(ID), CODE_NOT_FOUND, "not served");
	(void)rig_end(ID);
	ck_assert(rig_next());
	rig_serve(ID);
	rid = rig_list(ID);
	rig_is_error(rig_list(ID), CODE_BUSY, "being read");
	ck_assert_int_eq(allow_find(rig.last->allow, "a.example", 443),
	    ALLOW_YES);			/* until the new one is whole */
	rig_page(8, 1, 1, &abc[1]);
	ck_assert_uint_eq(rig.judged, 0);
	rig_page(8, 0, 1, &abc[2]);
	rig_is_ok(rid);
	ck_assert_uint_eq(rig.judged, 1);
	ck_assert_uint_eq(rig.judged_n, 2);
	ck_assert_int_eq(allow_find(rig.last->allow, "a.example", 443),
	    ALLOW_NOT);
	/* a box that ends while it is read anew */
	rid = rig_list(ID);
	(void)rig_end(ID);
	rig_is_error(rid, CODE_BAD_TRANSITION, "ended");
	rig_page(9, 0, 1, &abc[0]);
	ck_assert_uint_eq(rig.judged, 1);
	ck_assert_uint_eq(rig.ended, 1);
}
END_TEST

/* ---- addresses -------------------------------------------------------- */

void		__wrap_log_warnx(const char *, ...)
		    __attribute__((format(printf, 1, 2)));

static unsigned int	told, nones, warned;
static uint32_t		addrs[512];

void
__wrap_log_warnx(const char *fmt, ...)
{
	(void)fmt;
	warned++;
}

static void
on_name(void *arg, struct named *n)
{
	uint32_t	*addr = arg;

	told++;
	nones += n == NULL;
	if (n != NULL && addr != NULL)
		*addr = named_addr(n);
}

static void
want(unsigned int from, unsigned int to)
{
	char	name[32];

	for (; from < to; from++) {
		(void)snprintf(name, sizeof(name), "h%u.example", from);
		box_name(rig.last, name, on_name, &addrs[from]);
	}
}

/* In blocks, and each has its own. */
START_TEST(blocks)
{
	unsigned int	i;

	rig_serve(ID);
	want(0, 3);
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(rig.nasked - rig.answered, 1);	/* for all */
	ck_assert_str_eq(rig.asked[rig.answered].take.id, ID);
	rig_taken(100, TAKE);
	ck_assert_uint_eq(told, 3);
	want(3, TAKE);				/* at once, from now on */
	ck_assert_uint_eq(told, TAKE);
	ck_assert_uint_eq(nones, 0);
	for (i = 0; i < TAKE; i++)
		ck_assert_uint_eq(addrs[i], NAMES_NET + 100 + i);
	want(0, 10);				/* are known */
	ck_assert_uint_eq(rig.nasked, rig.answered);
	ck_assert_uint_eq(addrs[9], NAMES_NET + 109);
	want(TAKE, TAKE + 1);
	ck_assert_uint_eq(rig.nasked - rig.answered, 1);
	rig_taken(1000, TAKE);
	ck_assert_uint_eq(addrs[TAKE], NAMES_NET + 1000);
}
END_TEST

/* Who asks again while it waits has the same. */
START_TEST(same_name)
{
	uint32_t	a = 0, b = 0;

	rig_serve(ID);
	box_name(rig.last, "h.example", on_name, &a);
	box_name(rig.last, "h.example", on_name, &b);
	rig_taken(1, TAKE);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(a, NAMES_NET + 1);
	ck_assert_uint_eq(a, b);
}
END_TEST

/* None is left: nobody is asked any more. */
START_TEST(used_up)
{
	rig_serve(ID);
	want(0, 2);
	ck_assert(!box_used_up(rig.last));
	rig_taken(65535, 0);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(nones, 2);
	ck_assert(box_used_up(rig.last));
	want(2, 5);
	ck_assert_uint_eq(nones, 5);
	ck_assert_uint_eq(rig.nasked, rig.answered);
}
END_TEST

/* There are numbers, but all names that live have connections. */
START_TEST(all_busy)
{
	struct named	*n = NULL;
	char		 name[32];
	unsigned int	 i;

	rig_serve(ID);
	for (i = 0; i <= NAMES_LIVE; i++) {
		(void)snprintf(name, sizeof(name), "h%u.example", i);
		box_name(rig.last, name, on_name, NULL);
		if (rig.nasked > rig.answered)
			rig_taken(i + 1, TAKE);
		if ((n = names_find(rig.last->names, name)) != NULL)
			n->open = 1;
	}
	ck_assert_ptr_eq(n, NULL);
	ck_assert_uint_eq(nones, 1);
	ck_assert(box_used_up(rig.last));
	for (n = names_next(rig.last->names, ""); n != NULL;
	    n = names_next(rig.last->names, n->name))
		n->open = 0;
}
END_TEST

/* Fewer than wait; and such as are no addresses, or were another's. */
START_TEST(too_few)
{
	rig_serve(ID);
	want(0, 4);
	rig_taken(10, 3);
	ck_assert_uint_eq(told, 4);
	ck_assert_uint_eq(nones, 1);
	ck_assert(!box_used_up(rig.last));
	ck_assert_uint_eq(warned, 0);
	want(3, 4);
	rig_taken(65535, 2);
	ck_assert_uint_eq(nones, 2);
	ck_assert_uint_eq(warned, 1);
	ck_assert(!box_used_up(rig.last));
	want(3, 4);
	rig_taken(11, 2);
	ck_assert_uint_eq(nones, 3);
	want(3, 4);
	rig_taken(13, 1);
	ck_assert_uint_eq(nones, 3);
	ck_assert_uint_eq(addrs[3], NAMES_NET + 13);
}
END_TEST

/* Stored does not give any: who waits is told, and the next asks again. */
START_TEST(not_given)
{
	rig_serve(ID);
	want(0, 2);
	if (_i == 0)
		rig_silent(MSG_NAMES_TAKE);
	else
		rig_fails(MSG_NAMES_TAKE, CODE_DISK_FULL);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(nones, 2);
	ck_assert(!box_used_up(rig.last));
	ck_assert_uint_eq(warned, 1);
	want(0, 2);
	rig_taken(5, TAKE);
	ck_assert_uint_eq(told, 4);
	ck_assert_uint_eq(nones, 2);
}
END_TEST

/* The box goes first: who waits is told at once, the answer is nobody's. */
START_TEST(given_late)
{
	rig_serve(ID);
	want(0, 2);
	(void)rig_end(ID);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(nones, 2);
	rig_taken(5, TAKE);
	ck_assert_uint_eq(told, 2);
	while (rig_next())
		;
	rig_serve(ID);			/* has none of these */
	want(0, 1);
	ck_assert_uint_eq(told, 2);
	rig_taken(500, TAKE);
	ck_assert_uint_eq(addrs[0], NAMES_NET + 500);
}
END_TEST

/* ---- denials ---------------------------------------------------------- */

static const struct msg_proxy_denied *
denied(void)
{
	const struct msg_proxy_denied	*d = &rig.heard.body.proxy_denied;

	ck_assert(rig_next());
	ck_assert_uint_eq(rig.heard.row->type, MSG_PROXY_DENIED);
	ck_assert_str_eq(d->id, ID);
	return d;
}

static void
deny(const char *name, unsigned int port)
{
	box_denied(rig.last, DENIED_NAME, name, NULL, 0, IPPROTO_TCP, port);
}

START_TEST(gathered)
{
	static const uint8_t		 v4[4] = { 10, 0, 0, 1 };
	static const uint8_t		 v6[16] = { 0xfd, [15] = 1 };
	const struct msg_proxy_denied	*d;
	uint64_t			 t0 = now_ms();
	int				 i;

	rig_serve(ID);
	for (i = 0; i < 10; i++)
		deny("x.example", 443);
	deny("x.example", 80);
	box_denied(rig.last, DENIED_SEALED, "x.example", v4, 0, IPPROTO_TCP,
	    443);
	box_denied(rig.last, DENIED_SEALED, "x.example", v6, 1, IPPROTO_TCP,
	    443);
	ck_assert(!rig_next());		/* not one by one */
	ck_assert_int_eq(event_base_loop(rig.base, EVLOOP_ONCE), 0);
	d = denied();
	ck_assert_uint_eq(d->rule, DENIED_NAME);
	ck_assert_uint_eq(d->count, 10);
	ck_assert_str_eq(d->name, "x.example");
	ck_assert_uint_eq(d->port, 443);
	ck_assert_uint_eq(d->protocol, IPPROTO_TCP);
	ck_assert_uint_eq(d->address.len, 0);
	ck_assert_uint_ge(d->since_ms, t0);
	ck_assert_uint_le(d->since_ms, now_ms());
	ck_assert_uint_eq(denied()->port, 80);
	d = denied();
	ck_assert_uint_eq(d->address.len, 4);
	ck_assert_mem_eq(d->address.data, v4, 4);
	d = denied();
	ck_assert_uint_eq(d->address.len, 16);
	ck_assert_mem_eq(d->address.data, v6, 16);
	ck_assert(!rig_next());
	/* told once */
	deny("x.example", 443);
	ck_assert_int_eq(event_base_loop(rig.base, EVLOOP_ONCE), 0);
	ck_assert_uint_eq(denied()->count, 1);
	ck_assert(!rig_next());
}
END_TEST

/* Of too many kinds the rule alone, with how many; sums add up. */
START_TEST(bounded)
{
	const struct msg_proxy_denied	*d;
	uint64_t			 sum = 0;
	int				 i;

	rig_serve(ID);
	for (i = 0; i < 10000; i++)
		deny("x.example", (unsigned int)i);
	box_denied(rig.last, DENIED_TLS, "y.example", NULL, 0, IPPROTO_TCP,
	    443);
	ck_assert_int_eq(event_base_loop(rig.base, EVLOOP_ONCE), 0);
	for (i = 0; i < DENIALS; i++)
		sum += denied()->count;
	ck_assert_uint_eq(sum, DENIALS);
	d = denied();
	ck_assert_uint_eq(d->rule, DENIED_NAME);
	ck_assert_uint_eq(d->count, 10000 - DENIALS);
	ck_assert_str_eq(d->name, "");
	ck_assert_uint_eq(d->port, 0);
	ck_assert_uint_eq(d->protocol, 0);
	d = denied();
	ck_assert_uint_eq(d->rule, DENIED_TLS);
	ck_assert_uint_eq(d->count, 1);
	ck_assert(!rig_next());
}
END_TEST

/* The last word of a box, before it is said to have ended. */
START_TEST(last_word)
{
	uint32_t	rid;

	rig_serve(ID);
	deny("x.example", 443);
	rid = rig_end(ID);
	ck_assert_uint_eq(denied()->count, 1);
	rig_is_ok(rid);
	ck_assert_int_eq(event_base_loop(rig.base, EVLOOP_NONBLOCK), 1);
	ck_assert(!rig_next());
}
END_TEST

/* ---- by name ---------------------------------------------------------- */

/* The names that are told, in order; how many. */
static size_t
names(const char *id)
{
	struct msg_proxy_names		 m = { .wire_end = 0 };
	const struct msg_proxy_names_are *a = &rig.heard.body.proxy_names_are;
	const struct wire_list		*l = &a->rows;
	char				 before[ALLOW_NAME] = "";
	struct row_named		 n;
	uint32_t			 rid;
	size_t				 i;

	(void)str_copy(m.id, id, sizeof(m.id));
	rid = rig_ask(MSG_PROXY_NAMES, &m, -1);
	ck_assert(rig_next());
	ck_assert_uint_eq(rig.heard.row->type, MSG_PROXY_NAMES_ARE);
	ck_assert_uint_eq(rig.heard.rid, rid);
	for (i = 0; i < l->n; i++) {
		ck_assert_int_ne(wire_decode_into(&wire_row_named,
		    l->v[i].data, l->v[i].len, NULL, 0, &n), -1);
		ck_assert_int_gt(strcmp(n.name, before), 0);
		(void)str_copy(before, n.name, sizeof(before));
		ck_assert_uint_eq(n.open, strcmp(n.name, "h1.example") == 0);
		ck_assert_uint_eq(n.connections, n.open * 3);
		ck_assert_uint_eq(n.sent_bytes, n.open * 4);
		ck_assert_uint_eq(n.received_bytes, n.open * 5);
	}
	return l->n;
}

START_TEST(names_told)
{
	struct named	*n;

	rig_serve(ID);
	ck_assert_uint_eq(names(ID), 0);
	want(0, 1);
	rig_taken(1, TAKE);
	want(1, TAKE);
	want(TAKE, TAKE + 1);
	rig_taken(TAKE + 1, TAKE);
	want(TAKE + 1, 2 * TAKE - 5);
	ck_assert_ptr_ne(n = names_find(rig.last->names, "h1.example"), NULL);
	n->open = 1;
	n->connections = 3;
	n->sent_bytes = 4;
	n->received_bytes = 5;
	ck_assert_uint_eq(names(ID), 256);
	ck_assert_uint_eq(names(OTHER), 0);
	n->open = 0;
}
END_TEST

/* Names as long as there are: an answer is cut by its bytes. */
START_TEST(names_long)
{
	char		name[ALLOW_NAME];
	size_t		n;
	unsigned int	i;

	rig_serve(ID);
	want(0, 1);
	rig_taken(1, TAKE);
	for (i = 0; i < TAKE - 1; i++) {
		memset(name, 'a', 253);
		name[63] = name[127] = name[191] = '.';
		(void)snprintf(name + 245, 9, "%08u", i);
		box_name(rig.last, name, on_name, NULL);
	}
	ck_assert_uint_eq(nones, 0);
	n = names(ID);
	ck_assert_uint_gt(n, 128);
	ck_assert_uint_lt(n, 256);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("proxy_box");
	TCase	*t = tcase_create("box");
	SRunner	*sr;
	int	 failed;

	tcase_add_checked_fixture(t, rig_setup, rig_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, any_order, 0, 6);
	tcase_add_test(t, twice);
	tcase_add_loop_test(t, ends, 0, 5);
	tcase_add_test(t, late_page);
	tcase_add_test(t, pages);
	tcase_add_test(t, empty);
	tcase_add_test(t, generations);
	tcase_add_test(t, generations_without_end);
	tcase_add_loop_test(t, wrong_at_first, 0, NWRONG);
	tcase_add_loop_test(t, wrong_later, 0, NWRONG);
	tcase_add_test(t, anew);
	tcase_add_test(t, blocks);
	tcase_add_test(t, same_name);
	tcase_add_test(t, used_up);
	tcase_add_test(t, all_busy);
	tcase_add_test(t, too_few);
	tcase_add_loop_test(t, not_given, 0, 2);
	tcase_add_test(t, given_late);
	tcase_add_test(t, gathered);
	tcase_add_test(t, bounded);
	tcase_add_test(t, last_word);
	tcase_add_test(t, names_told);
	tcase_add_test(t, names_long);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
