/*
 * stored_lists_test.c: the real stored, asked for lists of `allowlist' and for
 * addresses of names, by apid and proxyd.
 *
 * link: stored/../regress/proto/storedrig.c
 */
#include <check.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "storedrig.h"
#include "xmalloc.h"

static struct rig		r;
static struct row_sandbox	box;

static void
setup(void)
{
	rig_init(&r);
	rig_start(&r);
	box = rig_box("demo");
}

static void
teardown(void)
{
	rig_free(&r);
}

/* ---- asking ------------------------------------------------------ */

static unsigned int
put(const char *id, unsigned int page, size_t n, const char *const *entries)
{
	struct wire_bin		v[1024];
	struct msg_allow_put	m = { .page = page, .entries = { v, n } };
	size_t			i;

	RIG_COPY(m.id, id);
	for (i = 0; i < n; i++)
		v[i] = wire_cstr(entries[i]);
	return rig_code(&r.apid, MSG_ALLOW_PUT, &m);
}

#define PUT(page, ...) put(box.id, page,				\
	sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *),	\
	(const char *[]){ __VA_ARGS__ })

static unsigned int
become(unsigned int network, const char *reason)
{
	return rig_network(&r, box.id, network, reason);
}

/* The message that answers; its entries are there until the next. */
static unsigned int
get(struct chan *c, uint64_t generation, uint64_t page,
    struct msg_allow_page *ret)
{
	struct msg_allow_read	q = { .generation = generation,
				    .page = page };
	static struct msg	m;

	RIG_COPY(q.id, box.id);
	rig_ask(c, MSG_ALLOW_READ, &q, &m);
	if (m.row->type == MSG_ERROR)
		return (unsigned int)m.body.error.code;
	ck_assert_uint_eq(m.row->type, MSG_ALLOW_PAGE);
	*ret = m.body.allow_page;
	return CODE_NONE;
}

/* Page 0 has these entries in all, for both who may read. */
static uint64_t
has(uint64_t more, size_t n, const char *const *entries)
{
	struct chan		*ask[] = { &r.apid, &r.proxyd };
	struct msg_allow_page	 p;
	size_t			 i, k;

	for (k = 0; k < 2; k++) {
		ck_assert_uint_eq(get(ask[k], 0, 0, &p), CODE_NONE);
		ck_assert_uint_eq(p.more, more);
		ck_assert_uint_eq(p.entries.n, n);
		for (i = 0; i < n; i++) {
			ck_assert_uint_eq(p.entries.v[i].len,
			    strlen(entries[i]));
			ck_assert_mem_eq(p.entries.v[i].data, entries[i],
			    strlen(entries[i]));
		}
	}
	return p.generation;
}

#define HAS(more, ...) has(more,					\
	sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *),	\
	(const char *[]){ __VA_ARGS__ })

static void
has_none(void)
{
	struct msg_allow_page	p;

	ck_assert_uint_eq(get(&r.apid, 0, 0, &p), CODE_NOT_FOUND);
	ck_assert_uint_eq(get(&r.proxyd, 0, 0, &p), CODE_NOT_FOUND);
}

/* The last record says so; text: all entries, a newline behind each. */
static void
recorded(const char *from, const char *to, unsigned int entries,
    const char *text, const char *outcome)
{
	char	want[400], hash[SHA256_DIGEST_STRING_LENGTH], tail[160];
	char	*log = rig_log(&r, ""), *last = strstr(log, "");
	char	*p;

	(void)rig_verify(log);
	for (p = log; (p = strstr(p, "\"type\":\"sandbox.network\"")) != NULL;
	    p++)
		last = p;
	if (text == NULL)
		(void)snprintf(tail, sizeof(tail),
		    "\"entries\":null,\"sha256\":null}");
	else
		(void)snprintf(tail, sizeof(tail),
		    "\"entries\":%u,\"sha256\":\"%s\"}", entries,
		    SHA256Data((const uint8_t *)text, strlen(text), hash));
	(void)snprintf(want, sizeof(want), "\"data\":{\"from\":%s,"
	    "\"to\":\"%s\",%s", from, to, tail);
	ck_assert_msg(strstr(last, want) != NULL, "%s lacks %s", last, want);
	(void)snprintf(want, sizeof(want), "\"outcome\":\"%s\"", outcome);
	ck_assert_ptr_nonnull(strstr(last, want));
	free(log);
}

/* ---- a list ------------------------------------------------------ */

START_TEST(pages)
{
	struct msg_allow_page	p;
	uint64_t		g;

	rig_ready(&r, &box);
	has_none();
	ck_assert_uint_eq(PUT(0, "a.example", "*.b.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(1, "c.example:22"), CODE_NONE);
	has_none();		/* nobody's until it is said to be */
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	g = HAS(1, "a.example", "*.b.example");
	ck_assert_uint_eq(get(&r.proxyd, g, 1, &p), CODE_NONE);
	ck_assert_uint_eq(p.generation, g);
	ck_assert_uint_eq(p.more, 0);
	ck_assert_uint_eq(p.entries.n, 1);
	ck_assert_mem_eq(p.entries.v[0].data, "c.example:22", 12);
	/* no page behind the last, none without its list's number */
	ck_assert_uint_eq(get(&r.proxyd, g, 2, &p), CODE_NOT_FOUND);
	ck_assert_uint_eq(get(&r.proxyd, 0, 1, &p), CODE_NOT_FOUND);
	ck_assert_uint_eq(get(&r.proxyd, g + 1, 0, &p), CODE_NOT_FOUND);
	recorded("\"none\"", "allowlist", 3,
	    "a.example\n*.b.example\nc.example:22\n", "ok");
}
END_TEST

/* Who reads page after page never gets two lists in one. */
START_TEST(another)
{
	struct msg_allow_page	p;
	uint64_t		g, h;

	rig_ready(&r, &box);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(1, "b.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	g = HAS(1, "a.example");
	ck_assert_uint_eq(PUT(0, "c.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(1, "d.example"), CODE_NONE);
	ck_assert_uint_eq(HAS(1, "a.example"), g);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	ck_assert_uint_eq(get(&r.proxyd, g, 1, &p), CODE_NOT_FOUND);
	h = HAS(1, "c.example");
	ck_assert_uint_ne(g, h);
	recorded("\"allowlist\"", "allowlist", 2, "c.example\nd.example\n",
	    "ok");
	/* what was put in part is gone with the next page 0 */
	ck_assert_uint_eq(PUT(0, "e.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(1, "f.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(0, "g.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	(void)HAS(0, "g.example");
	/* nothing was put: it is what it was */
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	(void)HAS(0, "g.example");
	recorded("\"allowlist\"", "allowlist", 1, "g.example\n", "ok");
}
END_TEST

START_TEST(other_kinds)
{
	uint64_t	g;

	rig_ready(&r, &box);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NOT_FOUND);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, "back"), CODE_NOT_FOUND);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	g = HAS(0, "a.example");
	ck_assert_uint_eq(become(NETWORK_EGRESS, ""), CODE_NONE);
	recorded("\"allowlist\"", "egress", 0, NULL, "ok");
	has_none();
	/* only what could not be done is taken back */
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NOT_FOUND);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, "no tap"), CODE_NONE);
	ck_assert_uint_eq(HAS(0, "a.example"), g);
	recorded("\"egress\"", "allowlist", 1, "a.example\n", "failed");
	/* what was put goes with the kind; the list itself with the next */
	ck_assert_uint_eq(PUT(0, "b.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_NONE, ""), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NOT_FOUND);
	ck_assert_uint_eq(PUT(0, "c.example"), CODE_NONE);
	has_none();
	ck_assert_uint_eq(become(NETWORK_NONE, ""), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, "back"), CODE_NOT_FOUND);
}
END_TEST

/* A box that is made is of the kind that it is, and gets its list. */
START_TEST(made)
{
	box.network = NETWORK_ALLOWLIST;
	ck_assert_uint_eq(rig_create(&r, &box), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NOT_FOUND);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_EGRESS, ""), CODE_BAD_TRANSITION);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	recorded("null", "allowlist", 1, "a.example\n", "ok");
	(void)HAS(0, "a.example");
	ck_assert_uint_eq(rig_move(&r, box.id, BOX_PROVISIONING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_NONE, ""), CODE_BAD_TRANSITION);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	(void)HAS(0, "a.example");

	box = rig_box("other");
	box.network = NETWORK_EGRESS;
	ck_assert_uint_eq(rig_create(&r, &box), CODE_NONE);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_BAD_TRANSITION);
}
END_TEST

START_TEST(refused)
{
	static const char *const	wrong[] = { "", "A.example",
	    "a.example.", "*.example", "10.0.0.1", "a.example:443,80", "a.example:80,443",
	    "a b", "a.example:0", "*" };
	char				long_name[300];
	size_t				i;

	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NOT_FOUND);
	rig_ready(&r, &box);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(PUT(0, "a.example", wrong[i]) ==
		    CODE_BAD_MESSAGE, "\"%s\" was taken", wrong[i]);
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	ck_assert_uint_eq(PUT(0, long_name), CODE_BAD_MESSAGE);
	/* pages one after the other; only the first may be empty */
	ck_assert_uint_eq(PUT(1, "a.example"), CODE_BAD_REQUEST);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(2, "a.example"), CODE_BAD_REQUEST);
	ck_assert_uint_eq(put(box.id, 1, 0, NULL), CODE_BAD_REQUEST);
	ck_assert_uint_eq(PUT(1, "b.example"), CODE_NONE);
	ck_assert_uint_eq(PUT(1, "b.example"), CODE_BAD_REQUEST);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	(void)HAS(1, "a.example");
	/* and it is closed: nothing is added to it */
	ck_assert_uint_eq(PUT(2, "c.example"), CODE_BAD_REQUEST);
}
END_TEST

START_TEST(nothing_allowed)
{
	rig_ready(&r, &box);
	ck_assert_uint_eq(put(box.id, 0, 0, NULL), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	(void)has(0, 0, NULL);
	recorded("\"none\"", "allowlist", 0, "", "ok");
}
END_TEST

/* As many as there may be, and one more. */
START_TEST(most)
{
	static char	 text[1000][64];
	const char	*v[1000];
	const size_t	 room = (size_t)ALLOW_MAX * 64;
	char		*all = xcalloc(room, 1);
	unsigned int	 page, i;
	size_t		 at = 0;

	rig_ready(&r, &box);
	for (page = 0; page < ALLOW_MAX / 1000; page++) {
		for (i = 0; i < 1000; i++) {
			(void)snprintf(text[i], sizeof(text[i]),
			    "h%u-%u.a-name-of-some-length.example", page, i);
			v[i] = text[i];
			at += (size_t)snprintf(all + at, room - at, "%s\n",
			    text[i]);
		}
		ck_assert_uint_eq(put(box.id, page, 1000, v), CODE_NONE);
	}
	ck_assert_uint_eq(PUT(page, "one.more"), CODE_BAD_REQUEST);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	recorded("\"none\"", "allowlist", ALLOW_MAX, all, "ok");
	free(all);
}
END_TEST

START_TEST(lasts)
{
	uint64_t	g;

	rig_ready(&r, &box);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	g = HAS(0, "a.example");
	rig_kill(&r);
	rig_start(&r);
	ck_assert_uint_eq(HAS(0, "a.example"), g);
	ck_assert_uint_eq(PUT(0, "b.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	ck_assert_uint_gt(HAS(0, "b.example"), g);
}
END_TEST

START_TEST(removed)
{
	struct msg_names_take	q = { .count = 1 };

	rig_ready(&r, &box);
	RIG_COPY(q.id, box.id);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	ck_assert_uint_eq(PUT(0, "b.example"), CODE_NONE);
	ck_assert_uint_eq(rig_move(&r, box.id, BOX_DRAINING, "", NULL),
	    CODE_NONE);
	(void)HAS(0, "a.example");
	ck_assert_uint_eq(rig_move(&r, box.id, BOX_DELETING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(PUT(0, "c.example"), CODE_BAD_TRANSITION);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_BAD_TRANSITION);
	rig_refused(&r.proxyd, MSG_NAMES_TAKE, &q, CODE_BAD_TRANSITION);
	ck_assert_uint_eq(rig_move(&r, box.id, BOX_DELETED, "", NULL),
	    CODE_NONE);
	has_none();
}
END_TEST

/* ---- addresses --------------------------------------------------- */

static void
take(const char *id, uint64_t want, uint64_t first, uint64_t count)
{
	struct msg_names_take	q = { .count = want };
	struct msg		m;

	RIG_COPY(q.id, id);
	rig_ask(&r.proxyd, MSG_NAMES_TAKE, &q, &m);
	ck_assert_uint_eq(m.row->type, MSG_NAMES_TAKEN);
	ck_assert_uint_eq(m.body.names_taken.first, first);
	ck_assert_uint_eq(m.body.names_taken.count, count);
}

/* Never a number twice, whatever happens to lists, to stored, to the box. */
START_TEST(numbers)
{
	struct msg_names_take	q = { .count = 1 };
	struct row_sandbox	other = rig_box("other");

	ulid_new(q.id);
	rig_refused(&r.proxyd, MSG_NAMES_TAKE, &q, CODE_NOT_FOUND);
	rig_ready(&r, &box);
	rig_ready(&r, &other);
	take(box.id, 256, 1, 256);
	take(other.id, 1, 1, 1);
	ck_assert_uint_eq(PUT(0, "a.example"), CODE_NONE);
	ck_assert_uint_eq(become(NETWORK_ALLOWLIST, ""), CODE_NONE);
	take(box.id, 10, 257, 10);
	rig_kill(&r);
	rig_start(&r);
	take(box.id, 1, 267, 1);
	ck_assert_uint_eq(become(NETWORK_NONE, ""), CODE_NONE);
	take(box.id, 60000, 268, 60000);
	take(box.id, 65535, 60268, 5268);	/* what is left */
	take(box.id, 1, 65535, 0);
	take(box.id, 65535, 65535, 0);
	take(other.id, 65535, 2, 65534);
	take(other.id, 1, 65535, 0);
}
END_TEST

/* ---- a proxyd without manners ------------------------------------ */

/* Its channel is closed, and stored serves on. */
START_TEST(bad_proxyd)
{
	struct msg_sandbox_get	 get_box = { .id = "" };
	struct msg_store_info	 info = { 0 };
	struct msg_names_taken	 taken = { .first = 1 };
	struct msg_allow_put	 p = { .page = 0 };
	struct msg		 m;
	const struct { unsigned int self, peer, type; const void *body; }
	    words[] = {
		{ A_APID, A_STORED, MSG_SANDBOX_GET, &get_box },
		{ A_APID, A_STORED, MSG_ALLOW_PUT, &p },
		{ A_PRIVD, A_STORED, MSG_STORE_INFO, &info },
		{ A_STORED, A_PROXYD, MSG_NAMES_TAKEN, &taken },
	    };
	size_t			 i;

	rig_ready(&r, &box);
	RIG_COPY(get_box.id, box.id);
	RIG_COPY(p.id, box.id);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		r.proxyd.self = words[i].self;
		r.proxyd.peer = words[i].peer;
		ck_assert_int_eq(chan_send(&r.proxyd, words[i].type, 7,
		    words[i].body, -1), 0);
		r.proxyd.self = A_PROXYD;
		r.proxyd.peer = A_STORED;
		ck_assert_int_eq(rig_recv(&r.proxyd, &m), 0);
		(void)rig_info(&r);
		rig_kill(&r);
		rig_start(&r);
	}
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("stored_lists");
	TCase	*t = tcase_create("lists");
	SRunner	*sr;
	int	 bad;

	rig_check();
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, pages);
	tcase_add_test(t, another);
	tcase_add_test(t, other_kinds);
	tcase_add_test(t, made);
	tcase_add_test(t, refused);
	tcase_add_test(t, nothing_allowed);
	tcase_add_test(t, most);
	tcase_add_test(t, lasts);
	tcase_add_test(t, removed);
	tcase_add_test(t, numbers);
	tcase_add_test(t, bad_proxyd);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	bad = srunner_ntests_failed(sr);
	srunner_free(sr);
	return bad != 0;
}
