/*
 * record_test.c: the bytes of records, written out by hand.
 *
 * link: stored/record.c
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../../stored/stored.h"

static char		line[RECORD_MAX + 1];
static uint8_t		zeros[RECORD_HASH];

/* A record with all of the envelope; data and type are the caller's. */
static struct record
full(unsigned int type, const void *data)
{
	struct record	r = {
		.seq = 7, .time_ms = 1767323045678, .type = event_find(type),
		.tenant = "default", .actor = "key:admin",
		.sandbox = "01K8ZZZZZZZZZZZZZZZZZZZZZZ",
		.session = "01K8YYYYYYYYYYYYYYYYYYYYYY",
		.request = "01K8XXXXXXXXXXXXXXXXXXXXXX",
		.outcome = "ok", .reason = "why \"not\"", .data = data,
		.prev = zeros,
	};

	return r;
}

static const char *
format(const struct record *r)
{
	ssize_t	n = record_format(r, line, RECORD_MAX);

	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	return line;
}

static struct wire_list
list(struct wire_bin *v, size_t n)
{
	struct wire_list	l = { v, n };

	return l;
}

/* The argv member alone, of one argument. */
static const char *
argv1(const void *s, size_t len)
{
	struct wire_bin			v = { s, len };
	struct event_session_started	ev = { .argv = list(&v, 1) };
	struct record			r = full(EVENT_SESSION_STARTED, &ev);
	static char			out[RECORD_MAX];
	const char			*p = strstr(format(&r), "\"argv\":[");
	const char			*end;

	ck_assert_ptr_nonnull(p);
	p += strlen("\"argv\":[");
	end = strstr(p, "],\"user\":null},\"prev\":");
	ck_assert_ptr_nonnull(end);
	memcpy(out, p, (size_t)(end - p));
	out[end - p] = '\0';
	return out;
}

START_TEST(envelope)
{
	struct event_sandbox_state	ev = { .from = "READY",
	    .to = "STOPPED", .reason = "absent" };
	struct record			r = full(EVENT_SANDBOX_STATE, &ev);

	memset(zeros, 0xab, sizeof(zeros));
	ck_assert_str_eq(format(&r),
	    "{\"seq\":7,\"time\":\"2026-01-02T03:04:05.678Z\","
	    "\"type\":\"sandbox.state\",\"tenant\":\"default\","
	    "\"actor\":\"key:admin\","
	    "\"sandboxId\":\"01K8ZZZZZZZZZZZZZZZZZZZZZZ\","
	    "\"sessionId\":\"01K8YYYYYYYYYYYYYYYYYYYYYY\","
	    "\"requestId\":\"01K8XXXXXXXXXXXXXXXXXXXXXX\","
	    "\"outcome\":\"ok\",\"reason\":\"why \\\"not\\\"\","
	    "\"data\":{\"from\":\"READY\",\"to\":\"STOPPED\","
	    "\"reason\":\"absent\",\"rootfs\":null},"
	    "\"prev\":\"abababababababababababababababab"
	    "abababababababababababababababab\"}");
	memset(zeros, 0, sizeof(zeros));
}
END_TEST

START_TEST(nulls)
{
	struct event_session_started	ev = { .argv = { NULL, 0 } };
	struct record			r = full(EVENT_SESSION_STARTED, &ev);

	r.tenant = r.actor = r.sandbox = r.session = r.request = "";
	r.outcome = r.reason = "";
	ck_assert_str_eq(format(&r),
	    "{\"seq\":7,\"time\":\"2026-01-02T03:04:05.678Z\","
	    "\"type\":\"session.started\",\"tenant\":null,\"actor\":null,"
	    "\"sandboxId\":null,\"sessionId\":null,\"requestId\":null,"
	    "\"outcome\":null,\"reason\":null,"
	    "\"data\":{\"name\":null,\"argv\":[],\"user\":null},"
	    "\"prev\":\"00000000000000000000000000000000"
	    "00000000000000000000000000000000\"}");
}
END_TEST

/* A number above what the API can tell says that there is none. */
START_TEST(no_number)
{
	struct event_sandbox_network	ev = { .from = "none",
	    .to = "allowlist", .sha256 = "00" };
	struct record			r = full(EVENT_SANDBOX_NETWORK, &ev);

	ck_assert_ptr_nonnull(strstr(format(&r), "\"data\":{\"from\":\"none\","
	    "\"to\":\"allowlist\",\"entries\":0,\"sha256\":\"00\"}"));
	ev.entries = WB_U63;
	ck_assert_ptr_nonnull(strstr(format(&r),
	    "\"entries\":9223372036854775807,"));
	ev.entries = (uint64_t)WB_U63 + 1;
	ck_assert_ptr_nonnull(strstr(format(&r), "\"entries\":null,"));
	ev.entries = UINT64_MAX;
	ev.from[0] = ev.sha256[0] = '\0';
	ck_assert_ptr_nonnull(strstr(format(&r), "\"data\":{\"from\":null,"
	    "\"to\":\"allowlist\",\"entries\":null,\"sha256\":null}"));
}
END_TEST

START_TEST(numbers)
{
	struct event_session_ended	ev = { .exitCode = 137, .signal = 9,
	    .leftBehind = 4194304 };
	struct record			r = full(EVENT_SESSION_ENDED, &ev);

	r.seq = INT64_MAX;
	ck_assert_ptr_nonnull(strstr(format(&r), "\"data\":{\"exitCode\":137,"
	    "\"signal\":9,\"leftBehind\":4194304},"));
	ck_assert_int_eq(strncmp(line, "{\"seq\":9223372036854775807,", 27), 0);
}
END_TEST

START_TEST(escapes)
{
	ck_assert_str_eq(argv1("", 0), "\"\"");
	ck_assert_str_eq(argv1("a b", 3), "\"a b\"");
	ck_assert_str_eq(argv1("printf '%s\\n' \"$x\"\n", 19),
	    "\"printf '%s\\\\n' \\\"$x\\\"\\n\"");
	ck_assert_str_eq(argv1("\b\t\n\f\r tail", 10),
	    "\"\\b\\t\\n\\f\\r tail\"");
	/* lower case, and no escape where none is needed */
	ck_assert_str_eq(argv1("a long text \x1f\x7f/", 15),
	    "\"a long text \\u001f\x7f/\"");
	ck_assert_str_eq(argv1("\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9", 9),
	    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9\"");
}
END_TEST

/* Not UTF-8: the object, whatever is around it. */
START_TEST(bytes)
{
	static const struct { const char *s; size_t n; const char *want; } t[] = {
		{ "\xff", 1, "{\"base64\":\"/w==\"}" },
		{ "a\xff", 2, "{\"base64\":\"Yf8=\"}" },
		{ "ab\xff", 3, "{\"base64\":\"YWL/\"}" },
		{ "\xc0\x80", 2, "{\"base64\":\"wIA=\"}" },	/* overlong */
		{ "\xed\xa0\x80", 3, "{\"base64\":\"7aCA\"}" },	/* surrogate */
		{ "\xf4\x90\x80\x80", 4, "{\"base64\":\"9JCAgA==\"}" },
		{ "\xe2\x82", 2, "{\"base64\":\"4oI=\"}" },	/* cut */
		/* UTF-8, but longer than the object would be */
		{ "\1\1\1\1\1\1\1\1\1", 9, "{\"base64\":\"AQEBAQEBAQEB\"}" },
		/* UTF-8, and not longer */
		{ "\1\1", 2, "\"\\u0001\\u0001\"" },
		/* what looks like the object is a string */
		{ "{\"base64\":\"/w==\"}", 17,
		    "\"{\\\"base64\\\":\\\"/w==\\\"}\"" },
	};
	size_t	i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		ck_assert_str_eq(argv1(t[i].s, t[i].n), t[i].want);
}
END_TEST

START_TEST(argv_hidden)
{
	struct wire_bin			v = { (const uint8_t *)"secret", 6 };
	struct event_session_started	ev = { .name = "build",
	    .argv = list(&v, 1) };
	struct record			r = full(EVENT_SESSION_STARTED, &ev);

	r.hide_argv = 1;
	ck_assert_ptr_nonnull(strstr(format(&r),
	    "\"data\":{\"name\":\"build\",\"argv\":null,\"user\":null}"));
	ck_assert_ptr_null(strstr(line, "secret"));
}
END_TEST

/* The worst that the bounds of events.def admit fits a record and a page. */
START_TEST(largest)
{
	static uint8_t			raw[32768];
	static struct wire_bin		v[1024];
	struct event_session_started	ev = { .argv = list(v, 1024) };
	struct record			r = full(EVENT_SESSION_STARTED, &ev);
	static char			q[128];
	static const uint8_t		fill[] = { '"', 1, 0xff, 'a' };
	size_t				i, k, n, most = 0;

	memset(q, '"', 127);
	memset(ev.name, 'n', 63);
	memset(ev.user, '"', 64);
	r.seq = INT64_MAX;
	r.reason = q;
	r.actor = q + 64;
	for (k = 0; k < sizeof(fill); k++) {
		memset(raw, fill[k], sizeof(raw));
		/* many small ones, and one large one with many empty ones */
		for (i = 0; i < 1024; i++) {
			v[i].data = raw;
			v[i].len = 32;
		}
		n = strlen(format(&r));
		most = n > most ? n : most;
		for (i = 0; i < 1024; i++)
			v[i].len = i == 0 ? 32768 - 1023 : 1;
		n = strlen(format(&r));
		most = n > most ? n : most;
	}
	ck_assert_uint_lt(most, RECORD_MAX);
	ck_assert_uint_gt(most, 60000);		/* it was the worst */
	ck_assert_int_eq(record_format(&r, line, 1000), -1);
}
END_TEST

/* SHA-256(0x00 || "abc"), from sha256sum. */
START_TEST(hash)
{
	static const uint8_t	want[RECORD_HASH] =
	    "\x60\x9f\x6e\x36\xd2\x40\x55\x85\x18\x8d\x5c\xfd\x76\x1f\x40\x7c"
	    "\x7c\xc4\x6a\x7d\x3f\x31\x4c\x88\x27\x04\x69\xdd\xe3\x15\xfc\xd1";
	uint8_t			h[RECORD_HASH];
	char			hex[65];

	record_hash("abc", 3, h);
	ck_assert_mem_eq(h, want, sizeof(h));
	sha256_hex("abc", 3, hex);
	ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223"
	    "b00361a396177a9cb410ff61f20015ad");
}
END_TEST

START_TEST(tenants)
{
	struct event_auth_failed	ev = { .method = "GET",
	    .path = "/x?,\"tenant\":\"other\",", .peer = "127.0.0.1" };
	struct record			r = full(EVENT_AUTH_FAILED, &ev);
	size_t				n;

	n = strlen(format(&r));
	ck_assert(record_is_of(line, n, "default"));
	ck_assert(!record_is_of(line, n, "defaul"));
	ck_assert(!record_is_of(line, n, "defaultx"));
	ck_assert(!record_is_of(line, n, "other"));
	r.tenant = "";
	n = strlen(format(&r));
	ck_assert(!record_is_of(line, n, "other"));
	ck_assert(!record_is_of(line, n, "default"));
	ck_assert(!record_is_of(line, 20, "default"));
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("record");
	TCase	*t = tcase_create("record");
	SRunner	*r;
	int	 bad;

	tcase_add_test(t, envelope);
	tcase_add_test(t, nulls);
	tcase_add_test(t, no_number);
	tcase_add_test(t, numbers);
	tcase_add_test(t, escapes);
	tcase_add_test(t, bytes);
	tcase_add_test(t, argv_hidden);
	tcase_add_test(t, largest);
	tcase_add_test(t, hash);
	tcase_add_test(t, tenants);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	bad = srunner_ntests_failed(r);
	srunner_free(r);
	return bad != 0;
}
