/*
 * apid_denials.c: what netd tells of denials, as apid lists and records it;
 * and a netd that tells too much, of nobody, or nonsense.
 */
#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_client.h"
#include "apid_start.h"
#include "denied.h"
#include "ulid.h"
#include "xmalloc.h"

#define RING		256		/* denials.c */
#define BURST		20
#define ALL_BURST	200
#define CROWD		40	/* boxes */
#define ROUNDS		15	/* fewer than one may have */
#define SOON_MS		10000

#define UNNAMED	",\"name\":null,\"entry\":null}"

static struct world	w;

static int
on(const char *method, const char *name, const char *rest, char **ret_body)
{
	return world_on(&w, method, name, rest, NULL, ret_body);
}

static void
await(const char *name, const char *rest, const char *what)
{
	world_await(&w, name, rest, what);
}

static void
setup(void)
{
	char	name[64];
	int	i;

	world_make(&w);
	world_row(&w, "good-e", BOX_READY, 2);
	world_row_network(&w, NETWORK_EGRESS);
	world_row(&w, "good-f", BOX_READY, 2);
	world_row_network(&w, NETWORK_EGRESS);
	world_row(&w, "good-a", BOX_READY, 2);
	world_row_network(&w, NETWORK_ALLOWLIST);
	world_row(&w, "good-n", BOX_READY, 2);
	world_row(&w, "good-s", BOX_STOPPED, 1);
	world_row_network(&w, NETWORK_EGRESS);
	world_row(&w, "asks-1", BOX_READY, 2);
	world_row_network(&w, NETWORK_EGRESS);
	for (i = 0; i < CROWD; i++) {
		(void)snprintf(name, sizeof(name), "good-x%d", i);
		world_row(&w, name, BOX_READY, 2);
		world_row_network(&w, NETWORK_EGRESS);
	}
	world_start(&w);
	await("good-e", "", "\"state\":\"READY\"");	/* all are known */
}

/* Where memory is counted. */
static void
setup_lean(void)
{
	apid_lean = 1;
	setup();
}

static void
teardown(void)
{
	ck_assert_msg(w.s->faults == 0, "apid: %s", w.s->fault);
	world_end(&w);
}

static void
await_records(unsigned int n)
{
	ck_until(w.s->denied_records >= n);
}

/* Until the last record is of this one. */
static void
await_last(const char *id)
{
	ck_until_ms(SOON_MS, strcmp(w.s->denied_last.sandbox, id) == 0);
}

static const uint8_t	metadata[] = { 169, 254, 169, 254 };

static struct msg_net_denied
of(const char *name, uint64_t count)
{
	struct msg_net_denied	m = { .rule = DENIED_SEALED, .protocol = 6,
	    .port = 80, .count = count, .since_ms = now_ms() };

	(void)str_copy(m.id, world_box(&w, name)->id, sizeof(m.id));
	return m;
}

static unsigned int
count(const char *body, const char *what)
{
	unsigned int	n = 0;

	for (; (body = strstr(body, what)) != NULL; body++)
		n++;
	return n;
}

static int
is_gone(void)
{
	struct pollfd	p = { .fd = w.apid_out, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* ---- the list and the record ------------------------------------------ */

START_TEST(told)
{
	auto_free char		*body = NULL;
	struct msg_net_denied	 m;
	uint8_t			 v6[16] = { 0xfd, 0x12, [15] = 1 };
	char			 at[25], text[64];

	await("good-e", "/denials", "\"items\":[]");
	m = of("good-e", 1);
	world_denied(&w, &m, metadata, 4, 1);
	await("good-e", "/denials", "\"rule\":\"sealed\",\"address\":"
	    "\"169.254.169.254\",\"protocol\":\"tcp\",\"port\":80,"
	    "\"count\":1" UNNAMED "]");
	time_rfc3339(m.since_ms, at);
	(void)snprintf(text, sizeof(text), "\"items\":[{\"at\":\"%s\"", at);
	await("good-e", "/denials", text);
	await_records(1);
	ck_assert_str_eq(w.s->denied_last.sandbox, m.id);
	ck_assert_str_eq(w.s->denied_last.outcome, "denied");
	ck_assert_str_eq(w.s->denied_last.reason, "sealed");
	ck_assert_str_eq(w.s->denied_last.actor, "netd");
	ck_assert_str_eq(w.s->denied_data.address, "169.254.169.254");
	ck_assert_str_eq(w.s->denied_data.protocol, "tcp");
	ck_assert_uint_eq(w.s->denied_data.port, 80);
	ck_assert_uint_eq(w.s->denied_data.count, 1);
	/* the end of the window: the same one, so many more */
	m.count = 6;
	world_denied(&w, &m, metadata, 4, 1);
	await("good-e", "/denials", "\"port\":80,\"count\":7" UNNAMED "]");
	await_records(2);
	ck_assert_uint_eq(w.s->denied_data.count, 6);
	/* what is without a port, and a protocol without a name */
	m = of("good-e", 1);
	m.rule = DENIED_PROTOCOL;
	m.protocol = 132;
	m.port = 0;
	world_denied(&w, &m, v6, 16, 1);
	await("good-e", "/denials", "\"rule\":\"protocol\",\"address\":"
	    "\"fd12::1\",\"protocol\":\"132\",\"port\":null,\"count\":1"
	    UNNAMED ",");
	/* and what is left of many */
	m.protocol = 0;
	m.rule = DENIED_HOST;
	m.count = 4711;
	world_denied(&w, &m, v6, 0, 1);
	await("good-e", "/denials", "\"rule\":\"host\",\"address\":null,"
	    "\"protocol\":null,\"port\":null,\"count\":4711" UNNAMED ",");
	await_records(4);
	ck_assert_str_eq(w.s->denied_data.address, "");
	ck_assert_str_eq(w.s->denied_data.protocol, "");
	ck_assert_uint_eq(w.s->denied_count, 7 + 1 + 4711);
	/* all of it is this box's */
	ck_assert_int_eq(on("GET", "good-f", "/denials", &body), 200);
	ck_has(body, "\"items\":[]");
}
END_TEST

START_TEST(totals)
{
	auto_free char	*body = NULL;

	w.s->totals[DENIED_SEALED] = 7;
	w.s->totals[DENIED_HOST] = 3;
	w.s->totals[DENIED_LIMITED] = 1;
	w.s->totals[DENIED_PROTOCOL] = UINT64_MAX;
	await("good-e", "", "\"denied\":{\"sealed\":7,\"host\":3,"
	    "\"limited\":1,\"protocol\":9223372036854775807,");
	await("good-e", "/denials", "\"totals\":{\"sealed\":7,\"host\":3,");
	ck_assert_int_eq(on("GET", "good-n", "", &body), 200);
	ck_has(body, "\"denied\":null");
}
END_TEST

/* Since when a list is whole, as it stands in an answer. */
static const char *
since(const char *body)
{
	ck_has(body, "\"since\":\"");
	return strstr(body, "\"since\":\"") + 9;
}

START_TEST(newest)
{
	auto_free char		*begin = NULL, *body = NULL, *few = NULL;
	struct msg_net_denied	 m;
	uint8_t			 first[] = { 10, 0, 0, 0 };
	char			 at[25];

	ck_assert_int_eq(on("GET", "good-e", "/denials", &begin), 200);
	do {				/* later than the begin of it */
		m = of("good-e", 1);
		time_rfc3339(m.since_ms, at);
	} while (strncmp(since(begin), at, 24) >= 0);
	world_denied(&w, &m, first, 4, RING + 44);
	await("good-e", "/denials", "\"10.0.1.43\"");
	ck_assert_int_eq(on("GET", "good-e", "/denials", &body), 200);
	ck_assert_uint_eq(count(body, "\"count\":1" UNNAMED), RING);
	ck_has(body, "\"10.0.0.44\"");
	ck_has_not(body, "\"10.0.0.43\"");
	ck_assert(strstr(body, "\"10.0.1.43\"") <
	    strstr(body, "\"10.0.1.42\""));
	/* it is whole since the last that is not in it */
	ck_assert_int_ge(strncmp(since(body), at, 24), 0);
	ck_assert_int_eq(on("GET", "good-e", "/denials?limit=3", &few), 200);
	ck_assert_uint_eq(count(few, "\"count\":1" UNNAMED), 3);
	ck_has(few, "\"10.0.1.41\"");
	ck_has_not(few, "\"10.0.1.40\"");
	ck_assert_int_eq(on("GET", "good-e", "/denials?limit=257", NULL), 400);
}
END_TEST

/* In the box: its own, the newest; as often as it asks, at its own cost. */
START_TEST(asked)
{
	static const char	 run[] = "{\"argv\":[\"x\"]}";
	struct world_box	*b = world_box(&w, "asks-1");
	struct msg_net_denied	 m = of("asks-1", 5);
	uint8_t			 first[] = { 10, 0, 0, 0 };
	char			 path[128];
	unsigned int		 rule;

	/* by name: 5 of the first rule to 9 of the last */
	for (rule = DENIED_NAME; rule <= DENIED_EXHAUSTED; rule++) {
		m.rule = rule;
		(void)str_copy(m.name, "x.example", sizeof(m.name));
		world_denied(&w, &m, metadata, 0, 1);
		m.count++;
	}
	m = of("asks-1", 5);
	world_denied(&w, &m, first, 4, 100);
	m = of("good-e", 1);
	world_denied(&w, &m, metadata, 4, 1);
	await("asks-1", "/denials", "\"10.0.0.99\"");
	await("good-e", "/denials", "\"169.254.169.254\"");
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/asks-1/exec");
	ck_assert_int_eq(world_http(&w, "POST", path, run, NULL), 200);
	/* meanwhile others are served as ever */
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/good-n/exec");
	ck_assert_int_eq(world_http(&w, "POST", path, run, NULL), 200);
	ck_until(b->answers + b->refusals >= b->asks);
	printf("asked %u times: %u answers\n", b->asks, b->answers);
	ck_assert_uint_eq(b->asks, 5000);
	ck_assert_uint_eq(b->answers + b->refusals, b->asks);
	ck_assert_uint_gt(b->answers, 100);
	ck_assert_uint_eq(b->denied_rows, 64);
	ck_assert_uint_eq(b->denied_by_name, 98765);
	first[3] = 99;
	ck_assert_mem_eq(b->denied_addr, first, 4);
	ck_assert_uint_eq(b->denied_count, 5);
	ck_assert_int_eq(b->quarantined, 0);
}
END_TEST

/* The last word of a network whose box has ended. */
START_TEST(ended)
{
	struct msg_net_denied	m = of("good-s", 3);

	world_denied(&w, &m, metadata, 4, 1);
	await("good-s", "/denials", "\"count\":3" UNNAMED "]");
	await_records(1);
	ck_assert_str_eq(w.s->denied_last.sandbox, m.id);
}
END_TEST

/* ---- by name ---------------------------------------------------------- */

static struct msg_net_denied
named(const char *name, unsigned int rule, unsigned int port)
{
	struct msg_net_denied	m = of("good-a", 1);

	m.rule = rule;
	m.port = port;
	(void)str_copy(m.name, name, sizeof(m.name));
	return m;
}

static void
tell_named(const struct msg_net_denied *m)
{
	world_denied(&w, m, metadata, 0, 1);
}

START_TEST(by_name)
{
	struct msg_net_denied	m = named("x.example", DENIED_NAME, 0);

	m.protocol = 17;
	tell_named(&m);
	await("good-a", "/denials", "\"rule\":\"name\",\"address\":null,"
	    "\"protocol\":\"udp\",\"port\":null,\"count\":1,"
	    "\"name\":\"x.example\",\"entry\":\"x.example\"}]");
	await_records(1);
	ck_assert_str_eq(w.s->denied_last.reason, "name");
	ck_assert_str_eq(w.s->denied_data.name, "x.example");
	ck_assert_str_eq(w.s->denied_data.entry, "x.example");
	ck_assert_str_eq(w.s->denied_data.address, "");
	ck_assert_str_eq(w.s->denied_data.protocol, "udp");
	/* once more is the same one; another name, or none, is not */
	tell_named(&m);
	await("good-a", "/denials", "\"count\":2,\"name\":\"x.example\"");
	(void)str_copy(m.name, "y.example", sizeof(m.name));
	tell_named(&m);
	await("good-a", "/denials", "\"count\":1,\"name\":\"y.example\"");
	m.name[0] = '\0';
	m.protocol = 0;
	m.count = 9;
	tell_named(&m);
	await("good-a", "/denials", "\"protocol\":null,\"port\":null,"
	    "\"count\":9" UNNAMED ",");
	await("good-a", "/denials", "\"count\":1,\"name\":\"y.example\"");
	/* by another port */
	m = named("x.example", DENIED_PORT, 8443);
	tell_named(&m);
	await("good-a", "/denials", "\"rule\":\"port\",\"address\":null,"
	    "\"protocol\":\"tcp\",\"port\":8443,\"count\":1,"
	    "\"name\":\"x.example\",\"entry\":\"x.example:8443\"}");
	await_records(5);
	ck_assert_str_eq(w.s->denied_data.entry, "x.example:8443");
}
END_TEST

/* What no entry would have allowed has none. */
START_TEST(no_entry)
{
	static const struct {
		const char	*name;
		unsigned int	 rule;
		const char	*shown;
	}	of_them[] = {
		{ "x.example", DENIED_TLS, "\"x.example\"" },
		{ "x.example", DENIED_HTTP, "\"x.example\"" },
		{ "x.example", DENIED_EXHAUSTED, "\"x.example\"" },
		{ "x.example", DENIED_SEALED, "\"x.example\"" },
		{ "x.example", DENIED_LIMITED, "\"x.example\"" },
		{ "no name", DENIED_NAME, "\"no name\"" },
		{ "a\\\"b", DENIED_NAME, "\"a\\\\\\\"b\"" },
		{ "192.0.2.1", DENIED_NAME, "\"192.0.2.1\"" },
		{ "-", DENIED_PORT, "\"-\"" },
	};
	struct msg_net_denied	m = named(of_them[_i].name, of_them[_i].rule,
				    443);
	char			text[128];

	(void)snprintf(text, sizeof(text), "\"name\":%s,\"entry\":null}]",
	    of_them[_i].shown);
	tell_named(&m);
	await("good-a", "/denials", text);
	await_records(1);
	ck_assert_str_eq(w.s->denied_data.name, of_them[_i].name);
	ck_assert_str_eq(w.s->denied_data.entry, "");
}
END_TEST

/* With an address as well: what the name led to. */
START_TEST(led_to)
{
	struct msg_net_denied	m = named("x.example", DENIED_SEALED, 443);

	world_denied(&w, &m, metadata, 4, 1);
	await("good-a", "/denials", "\"address\":\"169.254.169.254\","
	    "\"protocol\":\"tcp\",\"port\":443,\"count\":1,"
	    "\"name\":\"x.example\",\"entry\":null}]");
	/* the same place by another name is another one */
	(void)str_copy(m.name, "y.example", sizeof(m.name));
	world_denied(&w, &m, metadata, 4, 1);
	await("good-a", "/denials", "\"count\":1,\"name\":\"x.example\"");
	await("good-a", "/denials", "\"count\":1,\"name\":\"y.example\"");
}
END_TEST

/* By rule: as told, where the kernel does not count; sums stay numbers. */
START_TEST(named_totals)
{
	struct msg_net_denied	m = named("x.example", DENIED_NAME, 0);

	w.s->totals[DENIED_ADDRESS] = 4;
	m.count = 3;
	world_denied(&w, &m, metadata, 0, 2);
	m.rule = DENIED_HTTP;
	m.count = INT64_MAX;
	world_denied(&w, &m, metadata, 0, 2);
	await("good-a", "", "\"address\":4,\"name\":6,\"port\":0,\"tls\":0,"
	    "\"http\":9223372036854775807,\"namesExhausted\":0}");
	/* and nobody else's */
	await("good-e", "", "\"address\":4,\"name\":0,\"port\":0,");
}
END_TEST

/* Many names: as many are held as of addresses, and records are bounded. */
START_TEST(names_many)
{
	struct msg_net_denied	m = named("", DENIED_NAME, 0);
	auto_free char		*body = NULL;
	int			 i;

	for (i = 0; i < RING + 20; i++) {
		(void)snprintf(m.name, sizeof(m.name), "n%d.%0240d", i, 0);
		tell_named(&m);
	}
	await("good-a", "/denials", "\"name\":\"n275.");
	ck_assert_int_eq(on("GET", "good-a", "/denials", &body), 200);
	ck_assert_uint_eq(count(body, "\"rule\":\"name\""), RING);
	ck_has(body, "\"n20.");
	ck_has_not(body, "\"n19.");
	ck_assert_uint_le(w.s->denied_records, BURST + 1 + 12);
}
END_TEST

/* ---- a netd that lies ------------------------------------------------- */

/* Of the time before, and of the time to come. */
START_TEST(times)
{
	auto_free char		*body = NULL;
	struct msg_net_denied	 m = of("good-e", 1);

	m.since_ms = 0;
	world_denied(&w, &m, metadata, 4, 1);
	m.since_ms = INT64_MAX;
	m.port = 81;
	world_denied(&w, &m, metadata, 4, 1);
	await("good-e", "/denials", "\"port\":81,");
	ck_assert_int_eq(on("GET", "good-e", "/denials", &body), 200);
	ck_has(body, "\"port\":80,");
	ck_has_not(body, "\"at\":\"1970");
	ck_assert_uint_eq(count(body, "\"at\":\"2"), 2);
	/* sums stay numbers */
	m.count = INT64_MAX;
	m.since_ms = 0;
	m.port = 80;
	world_denied(&w, &m, metadata, 4, 3);
	await("good-e", "/denials", "\"count\":9223372036854775807" UNNAMED);
}
END_TEST

#define MANY	100000U

/*
 * The records of one are bounded, and its memory; another's first is recorded
 * however many there are; and what is not recorded is counted.
 */
START_TEST(flooded)
{
	auto_free char		*body = NULL;
	struct msg_net_denied	 m = of("good-e", 1);
	uint8_t			 first[] = { 10, 0, 0, 0 };
	long			 rss;
	unsigned int		 n;

	await("good-n", "", "\"health\":\"HEALTHY\"");
	world_denied(&w, &m, first, 4, 1000);
	rss = world_rss(&w);
	world_denied(&w, &m, first, 4, MANY - 1000);
	m = of("good-f", 1);
	world_denied(&w, &m, metadata, 4, 1);
	await("good-f", "/denials", "\"169.254.169.254\"");
	await_last(m.id);
	n = w.s->denied_records;
	printf("%u told: %u records, %ld KiB more\n", MANY, n,
	    world_rss(&w) - rss);
	ck_assert_int_lt(world_rss(&w) - rss, 1024);
	ck_assert_uint_ge(n, 2);
	ck_assert_uint_le(n, BURST + 1 + 12);	/* a minute at most */
	/* when it goes, what was left out is told */
	ck_assert_int_eq(on("DELETE", "good-e", "?graceSeconds=0", &body),
	    200);
	await_records(n + 1);
	ck_assert_str_eq(w.s->denied_last.sandbox, world_box(&w,
	    "good-e")->id);
	ck_assert_uint_eq(w.s->denied_count, MANY + 1);
	ck_assert_uint_eq(w.s->denied_sums, 1);
}
END_TEST

/*
 * When many take all that all have, who had none for long has its next: it
 * comes among theirs, which take whatever there is again.
 */
START_TEST(crowded)
{
	struct msg_net_denied	m = of("good-f", 1);
	uint8_t			first[] = { 10, 0, 0, 0 };
	unsigned int		most;
	uint64_t		t0 = mono_ms();

	world_denied_crowd(&w, &m, first, 4, CROWD * ROUNDS + 1,
	    world_box(&w, "good-x0"), CROWD);
	await("good-f", "/denials", "\"10.0.2.");
	await_last(m.id);
	most = ALL_BURST + 2 + (unsigned int)(mono_ms() - t0) * 20 / 1000;
	printf("crowd: %u records, at most %u\n", w.s->denied_records, most);
	ck_assert_uint_ge(w.s->denied_records, ALL_BURST);
	ck_assert_uint_le(w.s->denied_records, most);
}
END_TEST

/* Names of a box that has none, and a rule that does not fit: as told. */
START_TEST(misfits)
{
	struct msg_net_denied	m = of("good-e", 1);

	m.rule = DENIED_NAME;
	(void)str_copy(m.name, "x.example", sizeof(m.name));
	world_denied(&w, &m, metadata, 4, 1);
	await("good-e", "/denials", "\"rule\":\"name\",\"address\":"
	    "\"169.254.169.254\",");
	m.rule = DENIED_ADDRESS;
	m.name[0] = '\0';
	m.port = m.protocol = 0;
	world_denied(&w, &m, metadata, 0, 1);
	await("good-e", "/denials", "\"rule\":\"address\",\"address\":null,");
	ck_assert(!is_gone());
}
END_TEST

/* Of nobody: the server goes on, and nobody has them. */
START_TEST(strays)
{
	auto_free char		*body = NULL;
	struct msg_net_denied	 m = of("good-n", 1);
	struct msg_net_denied	 e = of("good-e", 1);
	char			 id[27];

	world_denied(&w, &m, metadata, 4, 100);
	ulid_new(id);
	(void)str_copy(m.id, id, sizeof(m.id));
	world_denied(&w, &m, metadata, 4, 100);
	world_denied(&w, &e, metadata, 4, 1);
	await("good-e", "/denials", "\"169.254.169.254\"");
	await_records(1);
	ck_assert_uint_eq(w.s->denied_records, 1);
	ck_assert_int_eq(on("GET", "good-n", "/denials", &body), 200);
	ck_has(body, "\"totals\":null,\"items\":[]");
	ck_assert_int_eq(on("GET", id, "/denials", NULL), 404);
	ck_assert(!is_gone());
}
END_TEST

/* What no netd says ends all daemons, of which privd makes new ones. */
START_TEST(nonsense)
{
	static const uint8_t	garbage[] = { 0x94, 0x01, 0x4e, 0x00, 0xc1 };
	static const uint8_t	odd_len[] = { 1, 3, 5, 8, 15 };
	struct msg_net_denied	m = of("good-e", 1);
	const uint8_t		addr[16] = { 10 };

	if (_i < (int)sizeof(odd_len))
		world_denied(&w, &m, addr, odd_len[_i], 1);
	else if (_i == (int)sizeof(odd_len))
		world_denied(&w, &m, addr, 0, 1);	/* but a port */
	else if (_i == (int)sizeof(odd_len) + 1) {
		m.port = 0;
		world_denied(&w, &m, addr, 0, 1);	/* but a protocol */
	} else
		world_netd_says(&w, garbage, sizeof(garbage));
	ck_until_ms(SOON_MS, is_gone());
	ck_assert_uint_eq(w.s->denied_records, 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("apid denials");
	TCase	*t = tcase_create("denials"), *m = tcase_create("memory");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, told);
	tcase_add_test(t, totals);
	tcase_add_test(t, newest);
	tcase_add_test(t, asked);
	tcase_add_test(t, ended);
	tcase_add_test(t, by_name);
	tcase_add_loop_test(t, no_entry, 0, 9);
	tcase_add_test(t, led_to);
	tcase_add_test(t, named_totals);
	tcase_add_test(t, names_many);
	tcase_add_test(t, times);
	tcase_add_test(t, crowded);
	tcase_add_test(t, misfits);
	tcase_add_test(t, strays);
	tcase_add_loop_test(t, nonsense, 0, 8);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(m, setup_lean, teardown);
	tcase_set_timeout(m, 60);
	tcase_add_test(m, flooded);
	suite_add_tcase(s, m);
	return world_run(s);
}
