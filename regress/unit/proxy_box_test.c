/*
 * proxy_box_test.c: the boxes that proxyd serves, by netd's messages over a
 * real channel.  The test is netd, stored, the name service and the relay.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd.h"
#include "xmalloc.h"

#define ID		"01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OTHER		"01ARZ3NDEKTSV4RRFFQ69G5FAW"
#define WAITS		64		/* box.c */
#define AGAIN		5
#define TAKE		256
#define DENIALS		32
#define ASKS		2048

struct ns { int udp, tcp; };
struct relay { int listener; };

/* What stored was asked. */
struct asked {
	unsigned int	 type;
	struct msg_allow_read read;
	struct msg_names_take take;
	void		(*cb)(void *, const struct msg *);
	void		*arg;
};

static struct event_base	*base;
static struct chan		 netd, ours;
static struct asked		 asked[ASKS];
static unsigned int		 nasked, answered;
static struct box		*last;		/* that was served */
static unsigned int		 served, ended, judged;
static size_t			 judged_n;	/* entries at that time */
static ino_t			 given[BOX_NSOCKETS], got[BOX_NSOCKETS];
static int			 far[BOX_NSOCKETS];

/* ---- in place of the others ----------------------------------------------- */

static ino_t
inode(int fd)
{
	struct stat	st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

struct ns *
ns_new(struct event_base *b, struct box *x, int udp, int tcp)
{
	struct ns	*n = xcalloc(1, sizeof(*n));

	ck_assert_ptr_eq(b, base);
	ck_assert_ptr_ne(x->allow, NULL);
	last = x;
	got[BOX_UDP] = inode(n->udp = udp);
	got[BOX_TCP] = inode(n->tcp = tcp);
	return n;
}

void
ns_free(struct ns *n)
{
	if (n == NULL)
		return;
	(void)close(n->udp);
	(void)close(n->tcp);
	free(n);
	ended++;
}

struct relay *
relay_new(struct box *x, int listener)
{
	struct relay	*r = xcalloc(1, sizeof(*r));

	ck_assert_ptr_eq(x, last);
	got[BOX_RELAY] = inode(r->listener = listener);
	served++;
	return r;
}

void
relay_free(struct relay *r)
{
	if (r == NULL)
		return;
	(void)close(r->listener);
	free(r);
}

void
relay_judge(struct relay *r)
{
	ck_assert_ptr_eq(r, last->relay);
	judged++;
	judged_n = allow_count(last->allow);
}

void
proxyd_ask_stored(unsigned int type, const void *body,
    void (*cb)(void *, const struct msg *), void *arg)
{
	struct asked	*a = &asked[nasked++];

	ck_assert_uint_le(nasked, ASKS);
	a->type = type;
	if (type == MSG_ALLOW_READ)
		a->read = *(const struct msg_allow_read *)body;
	else if (type == MSG_NAMES_TAKE)
		a->take = *(const struct msg_names_take *)body;
	else
		ck_abort_msg("stored is asked %u", type);
	a->cb = cb;
	a->arg = arg;
}

void
proxyd_sent(struct chan *c, int result)
{
	ck_assert_ptr_eq(c, &ours);
	ck_assert_int_eq(result, 0);
}

void
proxyd_tell_netd(unsigned int type, const void *body)
{
	proxyd_sent(&ours, chan_send(&ours, type, 0, body, -1));
}

/* ---- netd ------------------------------------------------------------------- */

/* What netd said is heard. */
static void
hear(void)
{
	struct msg	m;

	while (chan_recv(&ours, &m) == 1) {
		box_on_netd(&ours, &m);
		if (m.fd != -1)
			(void)close(m.fd);
	}
}

static uint32_t
ask(unsigned int type, const void *body, int fd)
{
	uint32_t	rid;

	ck_assert_int_eq(chan_ask(&netd, type, body, fd, &rid), 0);
	hear();
	return rid;
}

/* A socket of a box's; the other end of it is kept. */
static uint32_t
give(const char *id, unsigned int which)
{
	struct msg_proxy_box	m = { .socket = which };
	int			sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	(void)str_copy(m.id, id, sizeof(m.id));
	given[which] = inode(sv[0]);
	if (far[which] != -1)
		(void)close(far[which]);
	far[which] = sv[1];
	return ask(MSG_PROXY_BOX, &m, sv[0]);
}

static uint32_t
list(const char *id)
{
	struct msg_proxy_list	m = { .wire_end = 0 };

	(void)str_copy(m.id, id, sizeof(m.id));
	return ask(MSG_PROXY_LIST, &m, -1);
}

static uint32_t
end(const char *id)
{
	struct msg_proxy_end	m = { .wire_end = 0 };

	(void)str_copy(m.id, id, sizeof(m.id));
	return ask(MSG_PROXY_END, &m, -1);
}

static struct msg	heard;

/* The next message that netd gets; 0: none is there. */
static int
next(void)
{
	return chan_recv(&netd, &heard) == 1;
}

static void
is_ok(uint32_t rid)
{
	ck_assert(next());
	ck_assert_uint_eq(heard.row->type, MSG_OK);
	ck_assert_uint_eq(heard.rid, rid);
}

static void
is_error(uint32_t rid, unsigned int code, const char *what)
{
	ck_assert(next());
	ck_assert_uint_eq(heard.row->type, MSG_ERROR);
	ck_assert_uint_eq(heard.rid, rid);
	ck_assert_uint_eq(heard.body.error.code, code);
	ck_assert_msg(strstr(heard.body.error.detail, what) != NULL, "%s",
	    heard.body.error.detail);
}

/* Whether the socket that was given lives here. */
static int
lives(unsigned int which)
{
	char	c;

	return recv(far[which], &c, 1, MSG_DONTWAIT) == -1 &&
	    errno == EAGAIN;
}

/* ---- stored ------------------------------------------------------------------ */

/* The question that is due. */
static struct asked *
due(unsigned int type)
{
	ck_assert_uint_lt(answered, nasked);
	ck_assert_uint_eq(asked[answered].type, type);
	return &asked[answered++];
}

static void
page(uint64_t generation, uint64_t more, size_t n, const char *const *entries)
{
	static struct wire_bin	 v[1024];
	struct msg		 m = { .row = proto_find(MSG_ALLOW_PAGE),
				    .fd = -1 };
	struct asked		*a = due(MSG_ALLOW_READ);
	size_t			 i;

	for (i = 0; i < n; i++)
		v[i] = wire_cstr(entries[i]);
	m.body.allow_page.generation = generation;
	m.body.allow_page.more = more;
	m.body.allow_page.entries = (struct wire_list){ v, n };
	a->cb(a->arg, &m);
}

static void
one_page(const char *entry)
{
	page(7, 0, 1, &entry);
}

static void
fails(unsigned int type, unsigned int code)
{
	struct msg	 m = { .row = proto_find(MSG_ERROR), .fd = -1 };
	struct asked	*a = due(type);

	m.body.error.code = code;
	(void)str_copy(m.body.error.detail, "stored says no",
	    sizeof(m.body.error.detail));
	a->cb(a->arg, &m);
}

static void
taken(uint64_t first, uint64_t count)
{
	struct msg	 m = { .row = proto_find(MSG_NAMES_TAKEN), .fd = -1 };
	struct asked	*a = due(MSG_NAMES_TAKE);

	ck_assert_uint_eq(a->take.count, TAKE);
	m.body.names_taken.first = first;
	m.body.names_taken.count = count;
	a->cb(a->arg, &m);
}

static void
silent(unsigned int type)
{
	struct asked	*a = due(type);

	a->cb(a->arg, NULL);
}

/* ---- */

static void
setup(void)
{
	int	sv[2], i;

	base = event_base_new();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	chan_init(&netd, sv[0], A_NETD, A_PROXYD, S_RUN);
	chan_init(&ours, sv[1], A_PROXYD, A_NETD, S_RUN);
	for (i = 0; i < BOX_NSOCKETS; i++)
		far[i] = -1;
	box_init(base);
}

static void
teardown(void)
{
	ck_assert_uint_eq(answered, nasked);
	(void)end(ID);
	(void)end(OTHER);
	event_base_free(base);
}

/* A box that is served, with one entry. */
static void
serve(const char *id)
{
	(void)give(id, BOX_RELAY);
	(void)give(id, BOX_UDP);
	(void)give(id, BOX_TCP);
	one_page("a.example");
	while (next())
		;
	ck_assert_ptr_ne(last, NULL);
	ck_assert_str_eq(last->id, id);
}

/* ---- sockets ------------------------------------------------------------------- */

START_TEST(any_order)
{
	static const unsigned int	order[6][3] = { { 0, 1, 2 },
	    { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	uint32_t			rid;

	is_ok(give(ID, order[_i][0]));
	is_ok(give(ID, order[_i][1]));
	ck_assert_uint_eq(nasked, 0);
	rid = give(ID, order[_i][2]);
	ck_assert(!next());		/* its list is read first */
	ck_assert_uint_eq(served, 0);
	ck_assert_uint_eq(nasked, 1);
	ck_assert_str_eq(asked[0].read.id, ID);
	ck_assert_uint_eq(asked[0].read.generation, 0);
	ck_assert_uint_eq(asked[0].read.page, 0);
	one_page("a.example");
	is_ok(rid);
	ck_assert_uint_eq(served, 1);
	ck_assert_mem_eq(given, got, sizeof(given));
	ck_assert_int_eq(allow_find(last->allow, "a.example", 443), ALLOW_YES);
	ck_assert_int_eq(allow_find(last->allow, "b.example", 443), ALLOW_NOT);
}
END_TEST

START_TEST(twice)
{
	is_ok(give(ID, BOX_UDP));
	is_error(give(ID, BOX_UDP), CODE_EXISTS, "has that socket");
	ck_assert(!lives(BOX_UDP));
	is_ok(give(ID, BOX_RELAY));
	(void)give(ID, BOX_TCP);
	is_error(give(ID, BOX_TCP), CODE_EXISTS, "has that socket");
	one_page("a.example");
	ck_assert(next());
	is_error(give(ID, BOX_RELAY), CODE_EXISTS, "has that socket");
	ck_assert_uint_eq(served, 1);
	/* of another box they are others */
	is_ok(give(OTHER, BOX_UDP));
}
END_TEST

/* After so many sockets; 3: while its list is read; 4: served. */
START_TEST(ends)
{
	uint32_t	rid = 0, rid_end;
	unsigned int	i;

	for (i = 0; i < 3 && (int)i < _i; i++)
		rid = give(ID, i);
	if (_i == 4)
		one_page("a.example");
	for (i = 0; i < 3 && (int)i < _i; i++) {
		ck_assert(lives(i));
		ck_assert(_i == 3 && i == 2 ? !next() : next());
	}
	rid_end = end(ID);
	if (_i == 3)
		is_error(rid, CODE_BAD_TRANSITION, "ended");
	is_ok(rid_end);
	for (i = 0; i < 3 && (int)i < _i; i++)
		ck_assert(!lives(i));
	ck_assert_uint_eq(ended, _i == 4);
	is_ok(end(ID));
	is_error(list(ID), CODE_NOT_FOUND, "not served");
	if (_i == 3)
		one_page("a.example");	/* late */
	ck_assert(!next());
	/* and it may come again */
	serve(ID);
	ck_assert_uint_eq(served, _i == 4 ? 2 : 1);
}
END_TEST

/* The page of before does not become the list of the one that came after. */
START_TEST(late_page)
{
	(void)give(ID, BOX_RELAY);
	(void)give(ID, BOX_UDP);
	(void)give(ID, BOX_TCP);
	(void)end(ID);
	(void)give(ID, BOX_RELAY);
	(void)give(ID, BOX_UDP);
	(void)give(ID, BOX_TCP);
	ck_assert_uint_eq(nasked, 2);
	one_page("old.example");
	ck_assert_uint_eq(served, 0);
	one_page("new.example");
	ck_assert_uint_eq(served, 1);
	ck_assert_int_eq(allow_find(last->allow, "old.example", 443),
	    ALLOW_NOT);
}
END_TEST

/* ---- lists ---------------------------------------------------------------------- */

static const char *const	abc[] = { "a.example", "b.example",
				    "c.example:22" };

/* All three have come; netd waits for this. */
static uint32_t
begin(void)
{
	(void)give(ID, BOX_RELAY);
	(void)give(ID, BOX_UDP);
	while (next())
		;
	return give(ID, BOX_TCP);
}

START_TEST(pages)
{
	uint32_t	rid = begin();

	page(9, 2, 1, &abc[2]);
	page(9, 1, 1, &abc[0]);
	ck_assert_uint_eq(served, 0);
	ck_assert_uint_eq(asked[2].read.generation, 9);
	ck_assert_uint_eq(asked[2].read.page, 2);
	page(9, 0, 1, &abc[1]);
	is_ok(rid);
	ck_assert_uint_eq(allow_count(last->allow), 3);
	ck_assert_int_eq(allow_find(last->allow, "c.example", 443),
	    ALLOW_OTHER);
}
END_TEST

START_TEST(empty)
{
	uint32_t	rid = begin();

	page(9, 0, 0, NULL);
	is_ok(rid);
	ck_assert_uint_eq(allow_count(last->allow), 0);
}
END_TEST

/* It became another in between: nothing of the one before is in it. */
START_TEST(generations)
{
	uint32_t	rid = begin();

	page(9, 1, 1, &abc[0]);
	fails(MSG_ALLOW_READ, CODE_NOT_FOUND);
	ck_assert_uint_eq(asked[2].read.generation, 0);
	ck_assert_uint_eq(asked[2].read.page, 0);
	page(10, 1, 1, &abc[1]);
	ck_assert_uint_eq(asked[3].read.generation, 10);
	page(10, 0, 1, &abc[2]);
	is_ok(rid);
	ck_assert_int_eq(allow_find(last->allow, "a.example", 443),
	    ALLOW_NOT);
	ck_assert_uint_eq(allow_count(last->allow), 2);
}
END_TEST

/* All the time: not for ever. */
START_TEST(generations_without_end)
{
	uint32_t	rid = begin();
	unsigned int	i;

	for (i = 0; i <= AGAIN; i++) {
		page(9 + i, 1, 1, &abc[0]);
		fails(MSG_ALLOW_READ, CODE_NOT_FOUND);
	}
	is_error(rid, CODE_INTERNAL, "changes all the time");
	ck_assert_uint_eq(served, 0);
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
		silent(MSG_ALLOW_READ);
		return "does not answer";
	case ERROR:
		fails(MSG_ALLOW_READ, CODE_INTERNAL);
		return "stored says no";
	case NONE:			/* not even a first page */
		fails(MSG_ALLOW_READ, CODE_NOT_FOUND);
		return "stored says no";
	case OTHERS:
		page(9, 1, 1, &abc[0]);
		page(10, 0, 1, &abc[1]);
		return "another's page";
	case NO_ENTRY:
		page(9, 0, 1, &bad);
		return "an entry is none";
	case LONG_ENTRY:
		memset(big, 'a', sizeof(big) - 1);
		many[0] = big;
		page(9, 0, 1, many);
		return "an entry is none";
	case TOO_MANY:
		for (i = 0; i < 1000; i++) {
			(void)snprintf(text[i], sizeof(text[i]), "h%u.x", i);
			many[i] = text[i];
		}
		for (i = 0; i < 10; i++)
			page(9, 12 - i, 1000, many);
		page(9, 0, 1, many);
		return "too long";
	case NO_END:
		for (i = 0; i < 1024; i++)
			page(9, 1, 1, &abc[0]);
		return "do not end";
	case EMPTY_MORE:
		page(9, 1, 0, NULL);
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

	is_error(rid, CODE_INTERNAL, why);
	ck_assert_uint_eq(served, 0);
	ck_assert(!lives(BOX_RELAY));
	ck_assert(!lives(BOX_UDP));
	ck_assert(!lives(BOX_TCP));
	is_error(list(ID), CODE_NOT_FOUND, "not served");
	serve(ID);
}
END_TEST

/* What is served already goes on by the list that it has. */
START_TEST(wrong_later)
{
	const char	*why;
	uint32_t	 rid;

	serve(ID);
	rid = list(ID);
	ck_assert(!next());
	why = go_wrong((enum wrong)_i);
	is_error(rid, CODE_INTERNAL, why);
	ck_assert(lives(BOX_RELAY));
	ck_assert_uint_eq(judged, 0);
	ck_assert_uint_eq(ended, 0);
	ck_assert_uint_eq(allow_count(last->allow), 1);
	ck_assert_int_eq(allow_find(last->allow, "a.example", 443),
	    ALLOW_YES);
	/* and may be read again */
	rid = list(ID);
	page(11, 0, 2, abc);
	is_ok(rid);
	ck_assert_uint_eq(allow_count(last->allow), 2);
}
END_TEST

START_TEST(anew)
{
	uint32_t	rid;

	is_error(list(ID), CODE_NOT_FOUND, "not served");
	(void)give(ID, BOX_UDP);
	ck_assert(next());
	is_error(list(ID), CODE_NOT_FOUND, "not served");
	(void)end(ID);
	ck_assert(next());
	serve(ID);
	rid = list(ID);
	is_error(list(ID), CODE_BUSY, "being read");
	ck_assert_int_eq(allow_find(last->allow, "a.example", 443),
	    ALLOW_YES);			/* until the new one is whole */
	page(8, 1, 1, &abc[1]);
	ck_assert_uint_eq(judged, 0);
	page(8, 0, 1, &abc[2]);
	is_ok(rid);
	ck_assert_uint_eq(judged, 1);
	ck_assert_uint_eq(judged_n, 2);
	ck_assert_int_eq(allow_find(last->allow, "a.example", 443),
	    ALLOW_NOT);
	/* a box that ends while it is read anew */
	rid = list(ID);
	(void)end(ID);
	is_error(rid, CODE_BAD_TRANSITION, "ended");
	page(9, 0, 1, &abc[0]);
	ck_assert_uint_eq(judged, 1);
	ck_assert_uint_eq(ended, 1);
}
END_TEST

/* ---- addresses -------------------------------------------------------------------- */

static unsigned int	told, nones;
static uint32_t		addrs[512];

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
		box_name(last, name, on_name, &addrs[from]);
	}
}

/* In blocks, and each has its own. */
START_TEST(blocks)
{
	unsigned int	i;

	serve(ID);
	want(0, 3);
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(nasked - answered, 1);	/* once for all */
	ck_assert_str_eq(asked[answered].take.id, ID);
	taken(100, TAKE);
	ck_assert_uint_eq(told, 3);
	want(3, TAKE);				/* at once, from now on */
	ck_assert_uint_eq(told, TAKE);
	ck_assert_uint_eq(nones, 0);
	for (i = 0; i < TAKE; i++)
		ck_assert_uint_eq(addrs[i], NAMES_NET + 100 + i);
	want(0, 10);				/* are known */
	ck_assert_uint_eq(nasked, answered);
	ck_assert_uint_eq(addrs[9], NAMES_NET + 109);
	want(TAKE, TAKE + 1);
	ck_assert_uint_eq(nasked - answered, 1);
	taken(1000, TAKE);
	ck_assert_uint_eq(addrs[TAKE], NAMES_NET + 1000);
}
END_TEST

/* Who asks again while it waits has the same. */
START_TEST(same_name)
{
	uint32_t	a = 0, b = 0;

	serve(ID);
	box_name(last, "h.example", on_name, &a);
	box_name(last, "h.example", on_name, &b);
	taken(1, TAKE);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(a, NAMES_NET + 1);
	ck_assert_uint_eq(a, b);
}
END_TEST

START_TEST(waits_bounded)
{
	serve(ID);
	want(0, WAITS);
	ck_assert_uint_eq(told, 0);
	want(WAITS, WAITS + 3);
	ck_assert_uint_eq(told, 3);
	ck_assert_uint_eq(nones, 3);
	ck_assert_uint_eq(nasked - answered, 1);
	taken(1, TAKE);
	ck_assert_uint_eq(told, WAITS + 3);
	ck_assert_uint_eq(nones, 3);
}
END_TEST

/* None is left: nobody is asked any more. */
START_TEST(used_up)
{
	serve(ID);
	want(0, 2);
	taken(65535, 0);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(nones, 2);
	want(2, 5);
	ck_assert_uint_eq(nones, 5);
	ck_assert_uint_eq(nasked, answered);
}
END_TEST

/* Fewer than wait; and such as are no addresses, or were another's. */
START_TEST(too_few)
{
	serve(ID);
	want(0, 4);
	taken(10, 3);
	ck_assert_uint_eq(told, 4);
	ck_assert_uint_eq(nones, 1);
	want(3, 4);
	taken(65535, 2);
	ck_assert_uint_eq(nones, 2);
	want(3, 4);
	taken(11, 2);
	ck_assert_uint_eq(nones, 3);
	want(3, 4);
	taken(13, 1);
	ck_assert_uint_eq(nones, 3);
	ck_assert_uint_eq(addrs[3], NAMES_NET + 13);
}
END_TEST

/* Stored does not give any: who waits is told, and the next asks again. */
START_TEST(not_given)
{
	serve(ID);
	want(0, 2);
	if (_i == 0)
		silent(MSG_NAMES_TAKE);
	else
		fails(MSG_NAMES_TAKE, CODE_DISK_FULL);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(nones, 2);
	want(0, 2);
	taken(5, TAKE);
	ck_assert_uint_eq(told, 4);
	ck_assert_uint_eq(nones, 2);
}
END_TEST

/* The box goes first: who waits is told at once, the answer is nobody's. */
START_TEST(given_late)
{
	serve(ID);
	want(0, 2);
	(void)end(ID);
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(nones, 2);
	taken(5, TAKE);
	ck_assert_uint_eq(told, 2);
	while (next())
		;
	serve(ID);			/* has none of these */
	want(0, 1);
	ck_assert_uint_eq(told, 2);
	taken(500, TAKE);
	ck_assert_uint_eq(addrs[0], NAMES_NET + 500);
}
END_TEST

/* ---- denials ------------------------------------------------------------------------ */

static const struct msg_proxy_denied *
denied(void)
{
	const struct msg_proxy_denied	*d = &heard.body.proxy_denied;

	ck_assert(next());
	ck_assert_uint_eq(heard.row->type, MSG_PROXY_DENIED);
	ck_assert_str_eq(d->id, ID);
	return d;
}

static void
deny(const char *name, unsigned int port)
{
	box_denied(last, DENIED_NAME, name, NULL, 0, IPPROTO_TCP, port);
}

START_TEST(gathered)
{
	static const uint8_t		 v4[4] = { 10, 0, 0, 1 };
	static const uint8_t		 v6[16] = { 0xfd, [15] = 1 };
	const struct msg_proxy_denied	*d;
	uint64_t			 t0 = now_ms();
	int				 i;

	serve(ID);
	for (i = 0; i < 10; i++)
		deny("x.example", 443);
	deny("x.example", 80);
	box_denied(last, DENIED_SEALED, "x.example", v4, 0, IPPROTO_TCP, 443);
	box_denied(last, DENIED_SEALED, "x.example", v6, 1, IPPROTO_TCP, 443);
	ck_assert(!next());		/* not one by one */
	ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
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
	ck_assert(!next());
	/* told once */
	deny("x.example", 443);
	ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	ck_assert_uint_eq(denied()->count, 1);
	ck_assert(!next());
}
END_TEST

/* Of too many kinds the rule alone, with how many; sums add up. */
START_TEST(bounded)
{
	const struct msg_proxy_denied	*d;
	uint64_t			 sum = 0;
	int				 i;

	serve(ID);
	for (i = 0; i < 10000; i++)
		deny("x.example", (unsigned int)i);
	box_denied(last, DENIED_TLS, "y.example", NULL, 0, IPPROTO_TCP, 443);
	ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
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
	ck_assert(!next());
}
END_TEST

/* The last word of a box, before it is said to have ended. */
START_TEST(last_word)
{
	uint32_t	rid;

	serve(ID);
	deny("x.example", 443);
	rid = end(ID);
	ck_assert_uint_eq(denied()->count, 1);
	is_ok(rid);
	ck_assert_int_eq(event_base_loop(base, EVLOOP_NONBLOCK), 1);
	ck_assert(!next());
}
END_TEST

/* ---- by name -------------------------------------------------------------------------- */

static char	after[ALLOW_NAME];

/* A page of names; how many, the last of them in after. */
static size_t
names(const char *id)
{
	struct msg_proxy_names		 m = { .wire_end = 0 };
	const struct wire_list		*l = &heard.body.proxy_names_are.rows;
	struct row_named		 n;
	uint32_t			 rid;
	size_t				 i;

	(void)str_copy(m.id, id, sizeof(m.id));
	(void)str_copy(m.after, after, sizeof(m.after));
	rid = ask(MSG_PROXY_NAMES, &m, -1);
	ck_assert(next());
	ck_assert_uint_eq(heard.row->type, MSG_PROXY_NAMES_ARE);
	ck_assert_uint_eq(heard.rid, rid);
	for (i = 0; i < l->n; i++) {
		ck_assert_int_ne(wire_decode_into(&wire_row_named,
		    l->v[i].data, l->v[i].len, NULL, 0, &n), -1);
		ck_assert_int_gt(strcmp(n.name, after), 0);
		(void)str_copy(after, n.name, sizeof(after));
		ck_assert_uint_eq(n.open, strcmp(n.name, "h7.example") == 0);
		ck_assert_uint_eq(n.connections, n.open * 3);
		ck_assert_uint_eq(n.sent_bytes, n.open * 4);
		ck_assert_uint_eq(n.received_bytes, n.open * 5);
	}
	return l->n;
}

START_TEST(name_pages)
{
	struct named	*n;

	serve(ID);
	ck_assert_uint_eq(names(ID), 0);
	want(0, 1);
	taken(1, TAKE);
	want(1, TAKE);
	want(TAKE, TAKE + 1);
	taken(TAKE + 1, TAKE);
	want(TAKE + 1, 2 * TAKE - 5);
	ck_assert_ptr_ne(n = names_find(last->names, "h7.example"), NULL);
	n->open = 1;
	n->connections = 3;
	n->sent_bytes = 4;
	n->received_bytes = 5;
	ck_assert_uint_eq(names(ID), 256);
	ck_assert_uint_eq(names(ID), TAKE - 5);
	ck_assert_uint_eq(names(ID), 0);
	after[0] = '\0';
	ck_assert_uint_eq(names(OTHER), 0);
	n->open = 0;
}
END_TEST

/* Names as long as there are: an answer is cut by its bytes. */
START_TEST(name_pages_long)
{
	char		name[ALLOW_NAME];
	size_t		n, sum = 0;
	unsigned int	i;

	serve(ID);
	want(0, 1);
	taken(1, TAKE);
	for (i = 0; i < TAKE - 1; i++) {
		memset(name, 'a', 253);
		name[63] = name[127] = name[191] = '.';
		(void)snprintf(name + 245, 9, "%08u", i);
		box_name(last, name, on_name, NULL);
	}
	ck_assert_uint_eq(nones, 0);
	while ((n = names(ID)) != 0) {
		ck_assert_uint_lt(n, 256);
		sum += n;
	}
	ck_assert_uint_eq(sum, TAKE);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("proxy_box");
	TCase	*t = tcase_create("box");
	SRunner	*sr;
	int	 failed;

	tcase_add_checked_fixture(t, setup, teardown);
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
	tcase_add_test(t, waits_bounded);
	tcase_add_test(t, used_up);
	tcase_add_test(t, too_few);
	tcase_add_loop_test(t, not_given, 0, 2);
	tcase_add_test(t, given_late);
	tcase_add_test(t, gathered);
	tcase_add_test(t, bounded);
	tcase_add_test(t, last_word);
	tcase_add_test(t, name_pages);
	tcase_add_test(t, name_pages_long);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
