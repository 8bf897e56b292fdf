/*
 * client_test: the command line against servers that answer with what is
 * written here, right, wrong, cut and late; and the parts below it.
 *
 * Each case gives the answers, one per connection, and says what the program
 * must print, exit with, and have asked.
 */
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "client_rig.h"

/* ---- commands ------------------------------------------------------------ */

START_TEST(problems)
{
	with_input("", A(JSON("409", "{\"code\":\"name-taken\",\"field\":"
	    "\"name\",\"detail\":\"taken \\u001b[31m\"}")), "sandbox",
	    "create", "--name", "a", NULL);
	expect(125, "", "workbox sandbox create: name: taken \\x1b[31m "
	    "(name-taken)\n", "{\"name\":\"a\"}");
	with_input("", A(JSON("500", "{\"code\":\"create-failed\",\"detail\":"
	    "\"d\",\"launchLog\":[\"l1\",\"l2\"]}")), "sandbox", "create",
	    NULL);
	expect(125, "", "launch log: l2", NULL);
	/* Of several operands the one that it is about is named. */
	with_input("", A(JSON("404", NONE), JSON("204", ""),
	    JSON("404", NONE)), "sandbox", "rm", "d", "e", "l", NULL);
	expect(125, "", NULL, "DELETE /v1/sandboxes/l");
	ck_assert_str_eq(errout, "workbox sandbox rm: d: no (not-found)\n"
	    "workbox sandbox rm: l: no (not-found)\n");
	with_input("", A(JSON("404", NONE)), "sandbox", "logs", "b", "s",
	    NULL);
	expect(125, "", "sandbox logs: b s: no (not-found)\n", NULL);
	with_input("", A(JSON("404", NONE)), "sandbox", "exec", "b", "--",
	    "x", NULL);
	expect(125, "", "sandbox exec: b: no (not-found)\n", NULL);
	with_input("", A(JSON("500", "<html>")), "sandbox", "inspect", "a",
	    NULL);
	expect(125, "", "answered 500", NULL);
	with_input("", A(JSON("200", "<html>")), "sandbox", "inspect", "a",
	    NULL);
	expect(125, "", "without JSON", NULL);
}
END_TEST

/* What is refused before anything is asked. */
START_TEST(refused)
{
	static const char *const	cpus[] = { "0x2", "1e1", " 1", "+1",
	    "nan", "inf", "1.2.3", "", ".", "0" };
	size_t				i;

	for (i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
		with_input("", A(NULL), "sandbox", "create", "--cpus",
		    cpus[i], NULL);
		expect(125, "", "--cpus: expected a number of cores", NULL);
	}
	with_input("", A(NULL), "sandbox", "exec", "--timeout", "0x2", "b",
	    "--", "x", NULL);
	expect(125, "", "--timeout: expected seconds", NULL);
	with_input("", A(JSON("201", "{}")), "sandbox", "create", "--cpus",
	    ".5", NULL);
	expect(0, "{}\n", "", "{\"limits\":{\"cpus\":0.5}}");
	with_input("", A(NULL), "sandbox", "create", "--label", "a=1",
	    "--label", "b=1", "--label", "a=2", NULL);
	expect(125, "", "sandbox create: --label: a is given twice\n", NULL);
	with_input("", A(NULL), "sandbox", "exec", "--env", "A=1", "--env",
	    "A=1", "b", "--", "x", NULL);
	expect(125, "", "sandbox exec: --env: A is given twice\n", NULL);
}
END_TEST

/* The key goes nowhere but to the server that was named. */
START_TEST(redirect)
{
	with_input("", A("HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\n"
	    "Content-Length: 0\r\nConnection: close\r\n\r\n"), "sandbox",
	    "inspect", "a", NULL);
	expect(125, "", "answered 302", NULL);
}
END_TEST

START_TEST(pages)
{
	with_input("", A(JSON("200", "{\"items\":[{\"name\":\"a\"}],"
	    "\"nextCursor\":\"x y\"}"), JSON("200", "{\"items\":[{\"name\":"
	    "\"b\\u001b[1m\"}],\"nextCursor\":null}")), "sandbox", "ls",
	    "--label", "k=v w", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes?label=k%3Dv%20w&after=x%20y");
	ck_assert_ptr_nonnull(strstr(out, "\nb\\x1b[1m "));
}
END_TEST

START_TEST(paths)
{
	static const char *const	bad[] = { "", "a b", "../x", "..", ".",
	    "-", "a/b", "a?b", "Abc", "01ARZ3NDEKTSV4RRFFQ69G5FAVX",
	    "\303\244" };
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		with_input("", A(NULL), "sandbox", "inspect", "--", bad[i],
		    NULL);
		expect(125, "", "\": expected a name, ", NULL);
		with_input("", A(NULL), "sandbox", "wait", "--", "a", bad[i],
		    NULL);
		expect(125, "", "\": expected a name, ", NULL);
	}
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect",
	    "01ARZ3NDEKTSV4RRFFQ69G5FAV", NULL);
	expect(0, "{}\n", "", "GET /v1/sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV "
	    "HTTP");
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a..-_9",
	    NULL);
	expect(0, "{}\n", "", "GET /v1/sandboxes/a..-_9 HTTP");
}
END_TEST

START_TEST(version)
{
	with_input("", A(JSON("200", "{\"version\":\"9\"}"), JSON("200",
	    "{\"items\":[]}")), "version", NULL);
	ck_assert_ptr_nonnull(strstr(out, "\nserver 9 at http://"));
	expect(0, NULL, "", "GET /v1/version");
	expect(0, NULL, "", "GET /v1/sandboxes");
	with_input("", A(JSON("401", "{\"code\":\"unauthorized\",\"detail\":"
	    "\"no\"}")), "version", NULL);
	ck_assert_ptr_null(strstr(out, "server"));
	expect(0, NULL, "workbox version: no (unauthorized)\n", NULL);
	with_input("", A(JSON("200", "<html>")), "version", NULL);
	expect(0, NULL, "without JSON", NULL);
	with_input("", A(NULL), "version", "--server", "unix:/nonexistent",
	    NULL);
	expect(0, NULL, "reach unix:/nonexistent: No such file", NULL);
}
END_TEST

/* ---- records ------------------------------------------------------------- */

START_TEST(records)
{
	with_input("", A("$" "{\"seq\":1,\"a\":\"\303\244\"}\n"
	    "{\"seq\":2}\n"), "events", "export", NULL);
	ck_assert_int_eq(code, 125);	/* not a record: no comma */
	with_input("", A("$" "{\"seq\":1,\"a\":\"\303\244\"}\n"
	    "{\"seq\":2,\"b\":0}\n"), "events", "export", NULL);
	expect(0, "{\"seq\":1,\"a\":\"\303\244\"}\n{\"seq\":2,\"b\":0}\n", "",
	    NULL);
	with_input("", A("$" "{\"seq\":1,\"a\":0}\n{\"seq\":2,\"b\""),
	    "events", "export", NULL);
	expect(125, "{\"seq\":1,\"a\":0}\n", "ended within a line", NULL);
	with_input("", A("$" "{\"seq\":2,\"a\":0}\n{\"seq\":1,\"b\":0}\n"),
	    "events", "export", NULL);
	expect(125, "{\"seq\":2,\"a\":0}\n", "no record above 2", NULL);
	/* Cut in the middle: an export that is not whole is a failure. */
	with_input("", A("$" "{\"seq\":1,\"a\":0}\n!"), "events", "export",
	    NULL);
	expect(125, "{\"seq\":1,\"a\":0}\n", NULL, NULL);
}
END_TEST

/* It goes on behind what was read; a moment away is not told. */
START_TEST(tail)
{
	with_input("", A("$" "{\"seq\":1,\"a\":0}\n!", "", JSON("503", ""),
	    "$" "{\"seq\":2,\"a\":0}\n!", JSON("401", "{\"code\":"
	    "\"unauthorized\",\"detail\":\"no\"}")), "events", "tail", NULL);
	expect(125, "{\"seq\":1,\"a\":0}\n{\"seq\":2,\"a\":0}\n", NULL,
	    "GET /v1/events?after=1&follow=1");
	ck_assert_str_eq(errout,
	    "workbox events tail: no (unauthorized)\n");
	/* One that was never there is not waited for. */
	with_input("", A(NULL), "events", "tail", "--server",
	    "unix:/nonexistent", NULL);
	expect(125, "", "reach unix:/nonexistent: No such file", NULL);
}
END_TEST

/* ---- parts ------------------------------------------------------------- */

START_TEST(numbers)
{
	uint64_t	v = 0;

	ck_assert_int_eq(text_bytes("1", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, 1);
	ck_assert_int_eq(text_bytes("2k", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, 2048);
	ck_assert_int_eq(text_bytes("3GiB", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, UINT64_C(3) << 30);
	ck_assert_int_eq(text_bytes("18446744073709551615", 0, UINT64_MAX,
	    &v), 0);
	ck_assert_int_eq(text_bytes("16777216T", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_bytes("1 K", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_bytes("1KX", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_bytes("", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_u64("18446744073709551616", 0, UINT64_MAX, &v),
	    -1);
	ck_assert_int_eq(text_u64("-1", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_u64(" 1", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_u64("5", 6, 7, &v), -1);
}
END_TEST

START_TEST(times)
{
	ck_assert_int_eq(text_time("1970-01-01T00:00:00.000Z"), 0);
	ck_assert_int_eq(text_time("2000-02-29T12:34:56.789Z"), 951827696);
	ck_assert_int_eq(text_time("2026-11-29T14:00:00.000Z"), 1795960800);
	ck_assert_int_eq(text_time("2038-01-19T03:14:08.000Z"), 2147483648);
	ck_assert_int_eq(text_time("yesterday"), -1);
	ck_assert_int_eq(text_time(""), -1);
	ck_assert_int_eq(text_signal("TERM"), SIGTERM);
	ck_assert_int_eq(text_signal("SIGKILL"), 9);
	ck_assert_int_eq(text_signal("15"), 15);
	ck_assert_int_eq(text_signal("65"), 0);
	ck_assert_int_eq(text_signal("NOPE"), 0);
	ck_assert_str_eq(text_signal_name(SIGINT), "INT");
}
END_TEST

#define DENIALS	"{\"sandboxId\":\"" SID "\",\"since\":" \
	"\"2026-01-01T00:00:00.000Z\",\"totals\":null,\"items\":[" \
	"{\"at\":\"2026-01-01T00:00:01.000Z\",\"lastAt\":" \
	"\"2026-01-01T00:00:02.000Z\",\"rule\":\"host\",\"address\":" \
	"\"2001:db8:1::2\",\"protocol\":\"tcp\",\"port\":443,\"count\":7}," \
	"{\"at\":\"2026-01-01T00:00:01.000Z\",\"lastAt\":" \
	"\"2026-01-01T00:00:02.000Z\",\"rule\":\"sealed\",\"address\":null," \
	"\"protocol\":null,\"port\":null,\"count\":4711}]}"

/* A table: what is not told one by one is (others), and "-" what is none. */
START_TEST(denials)
{
	with_input("", A(JSON("200", DENIALS)), "sandbox", "denials", "b",
	    "--limit", "2", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes/b/denials?limit=2 ");
	ck_assert_ptr_nonnull(strstr(out, "LAST"));
	ck_assert_ptr_nonnull(strstr(out, "  host    2001:db8:1::2  443   "
	    "tcp       7\n"));
	ck_assert_ptr_nonnull(strstr(out, "  sealed  (others)       -     "
	    "-         4711\n"));
	with_input("", A(JSON("200", DENIALS)), "sandbox", "denials", "b",
	    "--format", "json", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes/b/denials ");
	ck_assert_ptr_nonnull(strstr(out, "\"totals\": null"));
	with_input("", A(JSON("200", "[]")), "sandbox", "denials", "b", NULL);
	expect(0, "[]\n", "", NULL);
	with_input("", A(NULL), "sandbox", "denials", "b", "--limit", "257",
	    NULL);
	expect(125, "", "--limit: expected a number from 1 to 256, not "
	    "\"257\"", NULL);
	with_input("", A(NULL), "sandbox", "denials", NULL);
	expect(125, "", "SANDBOX", NULL);
}
END_TEST

#define NAMED(rule, name, port, entry) "{\"lastAt\":" \
	"\"2026-01-01T00:00:02.000Z\",\"rule\":\"" rule "\",\"name\":" name \
	",\"address\":null,\"protocol\":\"tcp\",\"port\":" port "," \
	"\"entry\":" entry ",\"count\":1}"
#define NAMES	"{\"items\":[" \
	NAMED("name", "\"z.example\"", "443", "\"z.example:443\"") "," \
	NAMED("name", "\"a.example\"", "22", "\"a.example:22\"") "," \
	NAMED("sni", "\"a.example\"", "22", "\"a.example:22\"") "," \
	NAMED("name", "\"-x.example\"", "443", "\"-x.example\"") "," \
	NAMED("name", "\"q\"", "443", "\"q.w;rm\"") "," \
	NAMED("name", "\"q\"", "443", "\"q.w\\nr\"") "," \
	NAMED("name", "\"one\"", "null", "\"one\"") "," \
	NAMED("port", "\"two\"", "81", "\"two:81\"") "," \
	NAMED("name", "\"4.in-addr.arpa\"", "null", "\"4.in-addr.arpa\"") "," \
	NAMED("name", "\"f.ip6.arpa\"", "null", "\"f.ip6.arpa\"") "," \
	NAMED("name", "\"x.home.arpa\"", "null", "\"x.home.arpa\"") "," \
	NAMED("name", "\"myip6.arpa\"", "null", "\"myip6.arpa\"") "," \
	NAMED("sealed", "null", "null", "null") "]}"

/* Those of allowlist have a name, and say what would have let them through. */
START_TEST(denials_by_name)
{
	with_input("", A(JSON("200", NAMES)), "sandbox", "denials", "b", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes/b/denials ");
	ck_assert_ptr_nonnull(strstr(out, "  RULE    NAME            ADDRESS   "
	    "PORT  PROTOCOL  COUNT\n"));
	ck_assert_ptr_nonnull(strstr(out, "  sni     a.example       -         "
	    "22    tcp       1\n"));
	ck_assert_ptr_nonnull(strstr(out, "  sealed  -               (others)  "
	    "-     tcp       1\n"));
	with_input("", A(JSON("200", NAMES)), "sandbox", "denials", "b",
	    "--suggest", NULL);
	expect(0, "a.example:22\nmyip6.arpa\ntwo:81\nx.home.arpa\n"
	    "z.example:443\n", "", NULL);
	with_input("", A(JSON("200", DENIALS), JSON("200",
	    "{\"network\": \"egress\"}")), "sandbox", "denials", "b",
	    "--suggest", NULL);
	expect(0, "", "nothing to suggest: the network is egress, which has "
	    "no list of hosts", "GET /v1/sandboxes/b ");
	with_input("", A(JSON("200", DENIALS), JSON("200",
	    "{\"network\": \"allowlist\"}")), "sandbox", "denials", "b",
	    "--suggest", NULL);
	expect(0, "", "nothing to suggest: what was denied no entry", NULL);
	with_input("", A(NULL), "sandbox", "denials", "b", "--suggest",
	    "--format", "json", NULL);
	expect(125, "", "--suggest prints lines: expected it without "
	    "--format json", NULL);
}
END_TEST

/* What is sent of a list of hosts: as it was written, in its order. */
START_TEST(allowlist)
{
	with_input("", A(JSON("201", "{}")), "sandbox", "create", "--allow",
	    " B\303\274cher.example:443 ", "--network", "allowlist", "--allow",
	    "a.example", NULL);
	expect(0, "{}\n", "", "{\"network\":\"allowlist\",\"allow\":["
	    "\"B\303\274cher.example:443\",\"a.example\"]}");
	with_input("# mine\n\n a.example:22 # ssh\r\n*.b.example",
	    A(JSON("201", "{}")), "sandbox", "create", "--allow-file", "-",
	    "--name", "x", NULL);
	expect(0, "{}\n", "", "{\"name\":\"x\",\"network\":\"allowlist\","
	    "\"allow\":[\"a.example:22\",\"*.b.example\"]}");
	with_input("", A(JSON("201", "{}")), "sandbox", "create", "--network",
	    "allowlist", NULL);
	expect(0, "{}\n", "no entry is given: the sandbox will reach nobody",
	    "{\"network\":\"allowlist\",\"allow\":[]}");
	with_input("", A(JSON("200", "{}")), "sandbox", "network", "b",
	    "allowlist", "--allow", "a.example", NULL);
	expect(0, "", "", "PUT /v1/sandboxes/b/network ");
	expect(0, "", "", "{\"network\":\"allowlist\",\"allow\":["
	    "\"a.example\"]}");
	with_input("", A(JSON("200", "{}")), "sandbox", "network", "b",
	    "--allow", "a.example", NULL);
	expect(0, "", "", "{\"network\":\"allowlist\",\"allow\":["
	    "\"a.example\"]}");
	with_input("", A(JSON("200", "{}")), "sandbox", "network", "b", "none",
	    NULL);
	expect(0, "", "", "{\"network\":\"none\"}");
}
END_TEST

#define LIST	JSON("200", "{\"network\":\"allowlist\",\"allow\":[" \
		"\"*.w.example\",\"a.example\",\"p.example:22,8000\"," \
		"\"q.example:1\"]}")
#define EMPTY	JSON("200", "{\"network\":\"allowlist\",\"allow\":[]}")
#define NO_LIST	JSON("200", "{\"network\":\"none\",\"allow\":null}")
#define OK	JSON("200", "{}")

/* A sandbox alone: what it has, in a form that --allow-file takes. */
START_TEST(network_told)
{
	with_input("", A(LIST), "sandbox", "network", "b", NULL);
	expect(0, "# allowlist, 4 entries\n*.w.example\na.example\n"
	    "p.example:22,8000\nq.example:1\n", "",
	    "GET /v1/sandboxes/b/network ");
	with_input("", A(EMPTY), "sandbox", "network", "b", NULL);
	expect(0, "# allowlist, 0 entries: reaches nobody\n", "", NULL);
	with_input("", A(NO_LIST), "sandbox", "network", "b", NULL);
	expect(0, "# none\n", "", NULL);
	with_input("", A(EMPTY), "sandbox", "network", "b", "--format", "json",
	    NULL);
	expect(0, "{\n  \"network\": \"allowlist\",\n  \"allow\": []\n}\n",
	    "", NULL);
	with_input("", A(JSON("200", "{\"network\":\"allowlist\",\"allow\":"
	    "[\"a\\u001b[31m\"]}")), "sandbox", "network", "b", NULL);
	expect(0, "# allowlist, 1 entry\na\\x1b[31m\n", "", NULL);
	with_input("", A(JSON("404", NONE)), "sandbox", "network", "b", NULL);
	expect(125, "", "b: no (not-found)", NULL);
}
END_TEST

/* The kind alone leaves the list as it is. */
START_TEST(network_kept)
{
	with_input("", A(LIST, OK), "sandbox", "network", "b", "allowlist",
	    NULL);
	expect(0, "", "", "GET /v1/sandboxes/b/network ");
	expect(0, "", "", "{\"network\":\"allowlist\"}");
	ck_assert_ptr_null(strstr(asked, "allow\":"));
	with_input("", A(EMPTY, OK), "sandbox", "network", "b", "allowlist",
	    NULL);
	expect(0, "", "b has no entry on its list: it reaches nobody", NULL);
	with_input("", A(NO_LIST, OK), "sandbox", "network", "b", "allowlist",
	    NULL);
	expect(0, "", "b has no entry on its list: it reaches nobody", NULL);
}
END_TEST

START_TEST(network_changed)
{
	static const char *const	there[] = { "a.example", "A.example.",
	    "a.example:443,80", "*.W.example", "p.example:8000,22,22",
	    "B\303\274cher.example" /* who knows */ };
	size_t				i;

	with_input("", A(LIST, OK), "sandbox", "network", "b",
	    "--remove", "a.example", "--add", "b.example", "--add", "c.example",
	    NULL);
	expect(0, "", "", "{\"network\":\"allowlist\",\"add\":["
	    "\"b.example\",\"c.example\"],\"remove\":[\"a.example\"]}");
	for (i = 0; i < sizeof there / sizeof there[0]; i++) {
		with_input("", A(LIST, OK), "sandbox", "network", "b",
		    "allowlist", "--remove", there[i], NULL);
		expect(0, "", "", NULL);
	}
	with_input("", A(LIST, OK), "sandbox", "network", "b", "--remove",
	    "w.example", NULL);
	expect(0, "", "--remove w.example: was not on the list\n", NULL);
	with_input("", A(LIST, OK), "sandbox", "network", "b", "--remove",
	    "p.example:22", "--remove", "q.example", NULL);
	expect(0, "", "--remove p.example:22: was not on the list, which has "
	    "p.example:22,8000\n", "\"remove\":[\"p.example:22\","
	    "\"q.example\"]");
	expect(0, "", "--remove q.example: was not on the list, which has "
	    "q.example:1\n", NULL);
	with_input("# more\nb.example\n", A(LIST, OK), "sandbox", "network",
	    "b", "--add-file", "-", "--add", "a.example", NULL);
	expect(0, "", "", "{\"network\":\"allowlist\",\"add\":["
	    "\"a.example\",\"b.example\"]}");
	with_input("# none\n", A(NULL), "sandbox", "network", "b",
	    "--add-file", "-", NULL);
	expect(125, "", "--add-file -: has no entry", NULL);
	with_input("", A(NO_LIST), "sandbox", "network", "b", "--add",
	    "a.example", NULL);
	expect(125, "", "--add: the network of b is none and has no list: "
	    "expected allowlist, with --allow, --allow-file or --preset",
	    NULL);
}
END_TEST

#define BAD(f)	JSON("400", "{\"code\":\"bad-request\",\"field\":\"" f "\"," \
		"\"detail\":\"why\"}")

/* What a server says of an entry is told of where that was written. */
START_TEST(entry_places)
{
	with_input("a.example\n# b\n\nc.example\n", A(BAD("allow[2]")),
	    "sandbox", "create", "--allow", "x.example", "--allow-file", "-",
	    NULL);
	expect(125, "", "create: standard input:4: why (bad-request)\n", NULL);
	with_input("a.example\n", A(BAD("allow[0]")), "sandbox", "network",
	    "b", "allowlist", "--allow", "x.example", "--allow-file", "-",
	    NULL);
	expect(125, "", "network: b: --allow: why (bad-request)\n", NULL);
	with_input("", A(LIST, BAD("add[1]")), "sandbox", "network", "b",
	    "--add", "x.example", "--add", "y.example", NULL);
	expect(125, "", "network: b: --add: why (bad-request)\n", NULL);
	with_input("a.example\n\nb.example\n", A(LIST, BAD("add[2]")),
	    "sandbox", "network", "b", "--add", "x.example", "--add-file", "-",
	    NULL);
	expect(125, "", "network: b: standard input:3: why (bad-request)\n",
	    NULL);
	with_input("", A(LIST, BAD("remove[0]")), "sandbox", "network", "b",
	    "--remove", "x.example", NULL);
	expect(125, "", "network: b: --remove: why (bad-request)\n", NULL);
	/* What it cannot have meant stays as it said it. */
	with_input("", A(BAD("allow[7]")), "sandbox", "create", "--allow",
	    "x.example", NULL);
	expect(125, "", "create: allow[7]: why (bad-request)\n", NULL);
	with_input("", A(BAD("allow[99999999999999999999]")), "sandbox",
	    "create", "--allow", "x.example", NULL);
	expect(125, "", "create: allow[99999999999999999999]: why", NULL);
}
END_TEST

/* Contradictions, and what cannot be read, are told before anything is sent. */
START_TEST(allowlist_bad)
{
	with_input("", A(NULL), "sandbox", "create", "--network", "egress",
	    "--allow", "a.example", NULL);
	expect(125, "", "--allow goes with the network allowlist, not with "
	    "\"egress\"", NULL);
	with_input("", A(NULL), "sandbox", "network", "b", "none", "--preset",
	    "npm", NULL);
	expect(125, "", "--preset goes with the network allowlist, not with "
	    "\"none\"", NULL);
	with_input("", A(NULL), "sandbox", "network", "b", "egress",
	    "--remove", "a.example", NULL);
	expect(125, "", "--remove goes with the network allowlist, not with "
	    "\"egress\"", NULL);
	with_input("", A(NULL), "sandbox", "network", "b", "--add",
	    "a.example", "--allow-file", "-", NULL);
	expect(125, "", "--add changes the list that there is, --allow-file "
	    "gives another: expected one of the two", NULL);
	with_input("", A(NULL), "sandbox", "network", "b", "--add",
	    "a\tb.example", NULL);
	expect(125, "", "--add: expected one HOST[:PORT[,PORT...]] or "
	    "*.SUFFIX, without blanks and control characters, not "
	    "\"a\\x09b.example\"\n", NULL);
	with_input("a.example\nb.example c.example\n", A(NULL), "sandbox",
	    "create", "--allow-file", "-", NULL);
	expect(125, "", "standard input:2: expected one HOST", NULL);
	with_input("", A(NULL), "sandbox", "network", "b", "--add", " ", NULL);
	expect(125, "", "--add: expected HOST[:PORT[,PORT...]]", NULL);
	with_input("", A(NULL), "sandbox", "create", "--allow-file",
	    "/nonexistent", NULL);
	expect(125, "", "read /nonexistent: No such file or directory", NULL);
	with_input("a.example\n\n\303(\n", A(NULL), "sandbox", "create",
	    "--allow-file", "-", NULL);
	expect(125, "", "standard input:3: expected UTF-8", NULL);
	with_input("", A(NULL), "sandbox", "create", "--preset", "../x", NULL);
	expect(125, "", "--preset: there ", NULL);
}
END_TEST

static TCase *
command_case(void)
{
	TCase	*tc = tcase_create("command");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, problems);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, redirect);
	tcase_add_test(tc, pages);
	tcase_add_test(tc, paths);
	tcase_add_test(tc, version);
	tcase_add_test(tc, records);
	tcase_add_test(tc, denials);
	tcase_add_test(tc, denials_by_name);
	tcase_add_test(tc, allowlist);
	tcase_add_test(tc, allowlist_bad);
	tcase_add_test(tc, network_told);
	tcase_add_test(tc, network_kept);
	tcase_add_test(tc, network_changed);
	tcase_add_test(tc, entry_places);
	tcase_add_test(tc, tail);
	tcase_add_test(tc, numbers);
	tcase_add_test(tc, times);
	return tc;
}

int
main(void)
{
	Suite	*s = suite_create("client");
	SRunner	*sr;
	int	 failed;

	if (rig_make() == -1)
		return 99;
	suite_add_tcase(s, command_case());
	suite_add_tcase(s, exec_case());
	suite_add_tcase(s, session_case());
	suite_add_tcase(s, terminal_case());
	suite_add_tcase(s, file_case());
	suite_add_tcase(s, complete_case());
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	rig_sweep();
	return failed != 0;
}
