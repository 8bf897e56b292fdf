/*
 * apid_test.c: the real apid in its fence, between daemons and runners that
 * the test plays.
 *
 * Shows that a runner's nonsense costs its own box and nothing else; that
 * what fails to be made is removed and says why; that what a runner may say
 * unasked is bounded; and that a start finds for each row what is due.
 */
#include <sys/stat.h>

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_client.h"
#include "apid_start.h"
#include "xmalloc.h"

static struct world	w;

static void
setup(void)
{
	world_make(&w);
	world_start(&w);
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

/* ---- short ways -------------------------------------------------------- */

static int
create(const char *name, char **ret_body)
{
	char	body[256];

	(void)snprintf(body, sizeof(body),
	    "{\"name\":\"%s\",\"network\":\"none\"}", name);
	return world_http(&w, "POST", "/v1/sandboxes", body, ret_body);
}

static int
on(const char *method, const char *name, const char *rest, const char *body,
    char **ret_body)
{
	return world_on(&w, method, name, rest, body, ret_body);
}

static int
has(const char *name, const char *what)
{
	auto_free char	*body = NULL;

	(void)on("GET", name, "", NULL, &body);
	return body != NULL && strstr(body, what) != NULL;
}

static void
await(const char *name, const char *what)
{
	world_await(&w, name, "", what);
}

/* A neighbour is as well as ever. */
static void
neighbour(void)
{
	auto_free char	*body = NULL;

	if (world_box(&w, "good-n") == NULL)
		ck_assert_int_eq(create("good-n", NULL), 201);
	ck_assert_int_eq(on("POST", "good-n", "/exec",
	    "{\"argv\":[\"x\"]}", &body), 200);
	ck_has(body, "\"exitCode\":0");
	ck_has(body, "\"stdout\":\"xxxxxxxxxxxx\"");
}

/* ---- the path ---------------------------------------------------------- */

START_TEST(whole_path)
{
	auto_free char	*a = NULL, *b = NULL, *c = NULL, *d = NULL;
	struct world_box *x;

	ck_assert_int_eq(create("good-1", &a), 201);
	ck_has(a, "\"state\":\"READY\"");
	ck_has(a, "\"rootfs\":\"minimal\"");
	ck_assert_int_eq(create("good-1", &b), 409);
	ck_has(b, "name-taken");
	neighbour();
	x = world_box(&w, "good-1");
	ck_assert_int_eq(on("GET", x->id, "/proof", NULL, &c), 200);
	ck_has(c, "\"verdict\":\"verified\"");
	ck_assert_int_eq(on("DELETE", "good-1", "", NULL, &d), 200);
	ck_has(d, "DELET");
	ck_assert_int_eq(on("GET", "good-1", "", NULL, NULL), 404);
	await(x->id, "DELETED");
	ck_assert_int_eq(x->purged, 1);
	ck_assert_int_eq(create("good-1", NULL), 201);
}
END_TEST

/* ---- a runner that does not prove its box ------------------------------ */

static const struct { const char *name, *code, *field; } unproved[] = {
	{ "nonce-wrong-1", "wrong-nonce", "nonce" },
	{ "nonce-none-1", "wrong-nonce", "nonce" },
	{ "garbage-1", "quarantined", "protocol" },
	{ "huge-1", "quarantined", "protocol" },
	{ "empty-1", "quarantined", "protocol" },
	{ "cut-1", "quarantined", "protocol" },
	{ "long-1", "quarantined", "protocol" },
	{ "fd-1", "quarantined", "protocol" },
	{ "privd-1", "quarantined", "protocol" },
	{ "early-1", "quarantined", "protocol" },
	{ "lie-1", "proof-differs", "uid_map" },
	{ "host-1", "proof-differs", "cap_bnd" },
};

START_TEST(unproved_runner)
{
	auto_free char	*a = NULL, *b = NULL, *c = NULL, *d = NULL;
	const char	*name = unproved[_i].name;
	struct world_box *x;

	ck_assert_int_eq(create(name, &a), 409);
	ck_has(a, unproved[_i].code);
	ck_assert(has(name, "\"state\":\"QUARANTINED\""));
	ck_assert_ptr_nonnull(x = world_box(&w, name));
	ck_assert_str_eq(x->field, unproved[_i].field);
	ck_assert_str_eq(x->reason, unproved[_i].field);
	ck_assert_int_eq(x->quarantined, 1);
	ck_assert_int_eq(on("POST", name, "/exec", "{\"argv\":[\"x\"]}", &b),
	    409);
	ck_has(b, "quarantined");
	if (strcmp(unproved[_i].code, "proof-differs") == 0) {
		ck_assert_int_eq(on("GET", name, "/proof", NULL, &c), 200);
		ck_has(c, "\"verdict\":\"failed\"");
	}
	neighbour();
	ck_assert_int_eq(on("DELETE", name, "", NULL, &d), 200);
	await(x->id, "DELETED");
	ck_assert_int_eq(x->purged, 1);
}
END_TEST

START_TEST(stalled)
{
	static const char	*names[] = { "stall-1", "stall-go-1" };
	char			 body[256];
	size_t			 i;

	for (i = 0; i < 2; i++) {
		(void)snprintf(body, sizeof(body),
		    "{\"name\":\"%s\",\"network\":\"none\"}", names[i]);
		ck_assert_int_eq(world_http(&w, "POST",
		    "/v1/sandboxes?wait=0", body, NULL), 202);
	}
	neighbour();
	for (i = 0; i < 2; i++) {
		await(names[i], "\"state\":\"QUARANTINED\"");
		ck_assert_str_eq(world_box(&w, names[i])->field, "stall");
	}
	neighbour();
}
END_TEST

/* One that is removed while it stalls is gone at once. */
START_TEST(stalled_removed)
{
	ck_assert_int_eq(world_http(&w, "POST", "/v1/sandboxes?wait=0",
	    "{\"name\":\"stall-1\",\"network\":\"none\"}", NULL), 202);
	await("stall-1", "PROVISIONING");
	ck_assert_int_eq(on("DELETE", "stall-1", "", NULL, NULL), 200);
	ck_assert_int_eq(world_box(&w, "stall-1")->quarantined, 0);
	await(world_box(&w, "stall-1")->id, "DELETED");
}
END_TEST

/* ---- one that breaks protocol when it is READY ------------------------- */

static const char *const	broken[] = { "nonce-twice-1", "twice-1",
    "announce-id-1" };

START_TEST(broken_runner)
{
	const char	*name = broken[_i];

	(void)create(name, NULL);	/* READY or not, it was too late */
	await(name, "\"state\":\"QUARANTINED\"");
	ck_assert_str_eq(world_box(&w, name)->field, "protocol");
	neighbour();
}
END_TEST

static const char *const	lying[] = { "run-other-1", "exit-other-1",
    "chunk-other-1", "chunk-skip-1", "gap-odd-1" };

START_TEST(lying_runner)
{
	const char	*name = lying[_i];
	auto_free char	*a = NULL;

	ck_assert_int_eq(create(name, NULL), 201);
	ck_assert_int_ge(on("POST", name, "/exec", "{\"argv\":[\"x\"]}", &a),
	    400);
	await(name, "\"state\":\"QUARANTINED\"");
	ck_assert_str_eq(world_box(&w, name)->field, "protocol");
	neighbour();
}
END_TEST

static void
first_session(const char *name, char ret[27])
{
	auto_free char	*a = NULL;
	const char	*p;

	ck_assert_int_eq(on("POST", name, "/sessions",
	    "{\"argv\":[\"x\"],\"stdinOpen\":true}", &a), 201);
	ck_assert_ptr_nonnull(p = strstr(a, "\"sessionId\":\""));
	memcpy(ret, p + 13, 26);
	ret[26] = '\0';
}

START_TEST(stdin_odd)
{
	char	id[27], rest[128];

	ck_assert_int_eq(create("stdin-odd-1", NULL), 201);
	first_session("stdin-odd-1", id);
	(void)snprintf(rest, sizeof(rest), "/sessions/%s/stdin?offset=0", id);
	ck_assert_int_ge(on("POST", "stdin-odd-1", rest, "abc", NULL), 400);
	await("stdin-odd-1", "\"state\":\"QUARANTINED\"");
	neighbour();
}
END_TEST

/* Its channel closes: the box lives, and is attached again. */
START_TEST(closed)
{
	ck_assert_int_eq(create("close-run-1", NULL), 201);
	ck_assert_int_eq(on("POST", "close-run-1", "/exec",
	    "{\"argv\":[\"x\"]}", NULL), 500);
	await("close-run-1", "\"health\":\"HEALTHY\"");
	ck_assert(has("close-run-1", "\"state\":\"READY\""));
	ck_assert_int_eq(world_box(&w, "close-run-1")->attached, 2);
	ck_assert_int_eq(world_box(&w, "close-run-1")->quarantined, 0);
}
END_TEST

/* ---- bounds ------------------------------------------------------------ */

static int
flooded(void)
{
	return world_box(&w, "announce-1")->started >= 200;
}

START_TEST(announced)
{
	long	before;

	neighbour();
	before = world_rss(&w);
	ck_assert_int_eq(create("announce-1", NULL), 201);
	ck_until(flooded());
	neighbour();
	ck_assert(has("announce-1", "\"state\":\"READY\""));
	ck_assert_int_le(world_box(&w, "announce-1")->started, 1024);
	ck_assert_int_le(world_rss(&w) - before, 16 * 1024);
}
END_TEST

static int
logged(void)
{
	return world_box(&w, "logs-1")->log_lines >= 50;
}

START_TEST(lines)
{
	long	before;

	neighbour();
	before = world_rss(&w);
	ck_assert_int_eq(create("logs-1", NULL), 201);
	ck_until(logged());
	neighbour();
	ck_assert(has("logs-1", "\"state\":\"READY\""));
	ck_assert_int_le(world_box(&w, "logs-1")->log_lines, 200);
	ck_assert_int_le(world_rss(&w) - before, 8 * 1024);
}
END_TEST

/* What was told follows on what was told before, gaps and chunks alike. */
START_TEST(fading)
{
	unsigned long long	 told = 0, first, last, gaps = 0;
	auto_free char		*a = NULL;
	const char		*p;

	ck_assert_int_eq(create("fades-1", NULL), 201);
	ck_assert_int_eq(on("POST", "fades-1", "/exec?stream=1",
	    "{\"argv\":[\"x\"]}", &a), 200);
	for (p = a; (p = strchr(p, '{')) != NULL; p++) {
		if (sscanf(p, "{\"gap\":{\"first\":%llu,\"last\":%llu,", &first,
		    &last) == 2)
			gaps++;
		else if (sscanf(p, "{\"seq\":%llu,", &first) == 1)
			last = first;
		else
			continue;
		ck_assert_uint_eq(first, told + 1);
		told = last;
	}
	ck_assert_uint_eq(told, 60);
	ck_assert_uint_gt(gaps, 0);
	ck_assert_ptr_nonnull(strstr(a, "{\"end\":"));
	neighbour();
}
END_TEST

/* Answers may come in another order than they were asked for. */
START_TEST(early)
{
	auto_free char	*a = NULL, *b = NULL;

	ck_assert_int_eq(create("chunk-first-1", NULL), 201);
	ck_assert_int_eq(on("POST", "chunk-first-1", "/exec",
	    "{\"argv\":[\"x\"]}", &a), 200);
	ck_has(a, "\"stdout\":\"xxxxxxxxxxxx\"");
	ck_assert_int_eq(on("POST", "chunk-first-1", "/exec?stream=1",
	    "{\"argv\":[\"x\"]}", &b), 200);
	ck_has(b, "{\"start\":");
	ck_has(b, "{\"seq\":1,");
	ck_has(b, "{\"seq\":2,");
	ck_has(b, "{\"end\":");
	ck_assert(strstr(b, "\"start\"") < strstr(b, "\"seq\":1,"));
}
END_TEST

START_TEST(collected)
{
	auto_free char	*a = NULL;

	ck_assert_int_eq(create("big-1", NULL), 201);
	ck_assert_int_eq(on("POST", "big-1", "/exec", "{\"argv\":[\"x\"]}",
	    &a), 200);
	ck_has(a, "\"truncated\":true");
	ck_assert_int_ge((int)strlen(a), 1024 * 1024);
	ck_assert_int_le((int)strlen(a), 1024 * 1024 + 2048);
}
END_TEST

/* ---- what cannot be made ----------------------------------------------- */

static const struct { const char *name; int status; const char *code; }
failing[] = {
	{ "make-fails-1", 500, "create-failed" },
	{ "no-rootfs-1", 422, "rootfs-unknown" },
	{ "close-1", 500, "create-failed" },
	{ "aged-1", 500, "workbox runtime install" },
	{ "tells-1", 500, "speaks version 1 of the protocol" },
	{ "newer-1", 500, "speaks version 4 of the protocol" },
	{ "swings-1", 500, "create-failed" },
	{ "short-ready-1", 507, "disk-full" },
};

START_TEST(failed_create)
{
	auto_free char	*a = NULL;
	const char	*name = failing[_i].name;
	struct world_box *x;

	ck_assert_int_eq(create(name, &a), failing[_i].status);
	ck_has(a, failing[_i].code);
	if (failing[_i].status == 500)
		ck_has(a, "\"launchLog\":[\"first line\",\"last line\"]");
	if (failing[_i].status == 422) {	/* nobody asked for one */
		ck_has(a, "There is no default root file system");
		ck_has(a, "\"field\":\"rootfs\"");
	}
	ck_assert_ptr_nonnull(x = world_box(&w, name));
	ck_assert_int_eq(on("GET", name, "", NULL, NULL), 404);
	await(x->id, "\"state\":\"DELETED\",\"stateReason\":"
	    "\"create-failed\"");
	if (strcmp(name, "close-1") == 0)	/* made, never BOOTSTRAPPING */
		ck_assert(has(x->id, "\"rootfs\":\"minimal\""));
	ck_assert_int_eq(x->purged, 1);
	ck_assert_int_eq(x->quarantined, 0);
	neighbour();
}
END_TEST

/* Whether apid's log has them behind its first bytes. */
static int
log_has(long from, const char *what)
{
	char	line[1024];
	FILE	*fp = fopen(WORLD_LOG, "r");
	int	yes = 0;

	ck_assert_ptr_nonnull(fp);
	ck_assert_int_eq(fseek(fp, from, SEEK_SET), 0);
	while (fgets(line, sizeof(line), fp) != NULL)
		yes |= strstr(line, what) != NULL;
	(void)fclose(fp);	/* read only */
	return yes;
}

static const char *const	refusing[] = { "refuses-1", "refuses-go-1" };

/* What a runner says is told by a code, in our log and to who asked. */
START_TEST(refusing_runner)
{
	auto_free char	*a = NULL;
	const char	*name = refusing[_i];
	struct stat	 sb;

	ck_assert_int_eq(stat(WORLD_LOG, &sb), 0);
	ck_assert_int_eq(create(name, &a), 500);
	ck_has(a, "\"code\":\"create-failed\"");
	ck_has(a, "command-not-found");
	await(world_box(&w, name)->id, "\"state\":\"DELETED\"");
	ck_assert(log_has(sb.st_size, "create: command-not-found"));
	ck_assert(!log_has(sb.st_size, WORLD_WORDS));
	neighbour();
}
END_TEST

/* Facts that were read before the network was open are no proof. */
START_TEST(facts_first)
{
	auto_free char	*a = NULL;

	ck_assert_int_eq(create("facts-first-1", NULL), 201);
	ck_assert_int_eq(world_box(&w, "facts-first-1")->asked_facts, 2);
	ck_assert_int_eq(on("GET", "facts-first-1", "/proof", NULL, &a), 200);
	ck_has(a, "\"ruleset\",\"asked\":null,\"host\":\"absent\"");
	ck_assert_int_eq(create("good-1", NULL), 201);
	ck_assert_int_eq(world_box(&w, "good-1")->asked_facts, 1);
}
END_TEST

START_TEST(disk_full)
{
	auto_free char	*a = NULL, *b = NULL;

	ck_assert_int_eq(create("short-create-1", &a), 507);
	ck_assert_int_eq(on("GET", "short-create-1", "", NULL, NULL), 404);
	ck_assert_int_eq(create("short-session-1", NULL), 201);
	ck_assert_int_eq(on("POST", "short-session-1", "/exec",
	    "{\"argv\":[\"x\"]}", &b), 507);
	ck_has(b, "disk-full");
	neighbour();
}
END_TEST

START_TEST(command_missing)
{
	auto_free char	*a = NULL;

	ck_assert_int_eq(create("good-1", NULL), 201);
	ck_assert_int_eq(on("POST", "good-1", "/exec",
	    "{\"argv\":[\"nonesuch\"]}", &a), 422);
	ck_has(a, "command-not-found");
	ck_has(a, "\"field\":\"argv[0]\"");
	ck_assert_int_eq((int)world_box(&w, "good-1")->started, 1);
	ck_assert_int_eq((int)world_box(&w, "good-1")->finished, 1);
}
END_TEST

/* ---- ends -------------------------------------------------------------- */

START_TEST(kill_fails)
{
	ck_assert_int_eq(create("kill-fails-1", NULL), 201);
	ck_assert_int_eq(on("DELETE", "kill-fails-1", "?graceSeconds=0", NULL,
	    NULL), 503);
	await(world_box(&w, "kill-fails-1")->id, "DELETED");
}
END_TEST

START_TEST(died)
{
	auto_free char	*a = NULL;
	char		 id[27], rest[128];

	ck_assert_int_eq(create("silent-1", NULL), 201);
	first_session("silent-1", id);
	w.s->end_box = (int)(world_box(&w, "silent-1") - w.s->box) + 1;
	await("silent-1", "\"state\":\"STOPPED\",\"stateReason\":\"absent\"");
	ck_assert(has("silent-1", "\"health\":\"ABSENT\""));
	(void)snprintf(rest, sizeof(rest), "/sessions/%s?wait=10", id);
	ck_assert_int_eq(on("GET", "silent-1", rest, NULL, &a), 200);
	ck_has(a, "\"reason\":\"lost\"");
	ck_assert_int_eq(on("DELETE", "silent-1", "", NULL, NULL), 200);
}
END_TEST

START_TEST(signalled)
{
	auto_free char	*a = NULL, *b = NULL;
	char		 id[27], rest[128];

	ck_assert_int_eq(create("silent-1", NULL), 201);
	first_session("silent-1", id);
	(void)snprintf(rest, sizeof(rest), "/sessions/%s?wait=1", id);
	ck_assert_int_eq(on("GET", "silent-1", rest, NULL, &a), 200);
	ck_has(a, "\"state\":\"running\"");
	(void)snprintf(rest, sizeof(rest), "/sessions/%s/signal", id);
	ck_assert_int_eq(on("POST", "silent-1", rest,
	    "{\"signal\":\"TERM\"}", NULL), 204);
	ck_assert_int_eq((int)w.s->events[EVENT_SESSION_SIGNALLED], 1);
	(void)snprintf(rest, sizeof(rest), "/sessions/%s?wait=10", id);
	ck_assert_int_eq(on("GET", "silent-1", rest, NULL, &b), 200);
	ck_has(b, "\"state\":\"ended\"");
}
END_TEST

/* Refused, on the record, and no flood of records. */
START_TEST(unauthorized)
{
	auto_free char	*a = NULL;
	int		 i;

	w.token = "0123456789abcdef0123456789abcdeF";
	for (i = 0; i < 200; i++)
		ck_assert_int_eq(world_http(&w, "GET", "/v1/sandboxes", NULL,
		    NULL), 401);
	ck_assert_int_eq(world_http(&w, "POST", "/v1/sandboxes", "{}", &a),
	    401);
	ck_has(a, "unauthorized");
	ck_assert_int_eq(world_http(&w, "GET", "/healthz", NULL, NULL), 200);
	ck_assert_int_ge((int)w.s->events[EVENT_AUTH_FAILED], 20);
	ck_assert_int_le((int)w.s->events[EVENT_AUTH_FAILED], 60);
	w.token = WORLD_TOKEN;
	ck_assert_int_eq(world_http(&w, "GET", "/v1/sandboxes", NULL, NULL),
	    200);
}
END_TEST

/* ---- what a client may write ------------------------------------------- */

static const char *const	odd[] = {
	"a", "A", "0", "-", "%00", "%ff", "%2e%2e", "%2f", "good-1%20",
	"01K8ZZZZZZZZZZZZZZZZZZZZZ", "01K8ZZZZZZZZZZZZZZZZZZZZZZ",
	"01K8ZZZZZZZZZZZZZZZZZZZZZZZ", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
	"00000000000000000000000000", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
	"01k8zzzzzzzzzzzzzzzzzzzzzz", "01K8ZZZZZZZZ", "%c3%a4", "build",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static void
refused(const char *method, const char *path, const char *body)
{
	int	st = world_http(&w, method, path, body, NULL);

	ck_assert_msg(st >= 400 && st < 500, "%s %s: %d", method, path, st);
}

/* No word of a client's ends the process: it becomes 4xx. */
START_TEST(odd_words)
{
	char	p[256];
	size_t	i;

	ck_assert_int_eq(create("good-1", NULL), 201);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		(void)snprintf(p, sizeof(p), "/v1/sandboxes/%s", odd[i]);
		refused("GET", p, NULL);
		refused("DELETE", p, NULL);
		(void)snprintf(p, sizeof(p), "/v1/sandboxes/%s/exec", odd[i]);
		refused("POST", p, "{\"argv\":[\"x\"]}");
		(void)snprintf(p, sizeof(p), "/v1/sandboxes?after=%s",
		    odd[i]);
		(void)world_http(&w, "GET", p, NULL, NULL);
		(void)snprintf(p, sizeof(p),
		    "/v1/sandboxes/good-1/sessions?after=%s", odd[i]);
		(void)world_http(&w, "GET", p, NULL, NULL);
		(void)snprintf(p, sizeof(p),
		    "/v1/sandboxes/good-1/sessions/%s", odd[i]);
		refused("GET", p, NULL);
		(void)snprintf(p, sizeof(p),
		    "/v1/sandboxes/good-1/sessions/%s/output", odd[i]);
		refused("GET", p, NULL);
		(void)snprintf(p, sizeof(p),
		    "/v1/sandboxes/good-1/sessions/%s/stdin?offset=0",
		    odd[i]);
		refused("POST", p, "x");
		(void)snprintf(p, sizeof(p),
		    "/v1/sandboxes/good-1/sessions/%s/signal", odd[i]);
		refused("POST", p, "{\"signal\":9}");
	}
	neighbour();
}
END_TEST

#define BODY_MAX	(1024 * 1024)

static char	big[BODY_MAX];
static size_t	big_len;

static void	put(const char *, ...) __attribute__((format(printf, 1, 2)));

static void
put(const char *fmt, ...)
{
	va_list	ap;
	int	n;

	va_start(ap, fmt);
	n = vsnprintf(big + big_len, BODY_MAX - big_len, fmt, ap);
	va_end(ap);
	ck_assert(n >= 0 && big_len + (size_t)n < BODY_MAX);
	big_len += (size_t)n;
}

/* The largest that may be asked for fits every message on its way. */
START_TEST(largest)
{
	int	i;

	ck_assert_int_eq(create("good-1", NULL), 201);
	big_len = 0;
	put("{\"argv\":[\"x\"");
	for (i = 0; i < 1022; i++)
		put(",\"%032d\"", i);
	put("],\"env\":{");
	for (i = 0; i < 256; i++)
		put("%s\"E%d\":\"%054d\"", i == 0 ? "" : ",", i, i);
	put("},\"cwd\":\"/%01022d\",\"name\":\"%063d\",\"stdin\":"
	    "\"%0100000d\"}", 0, 0, 0);
	ck_assert_int_eq(on("POST", "good-1", "/exec", big, NULL), 200);
	/* counted in bytes, not in characters */
	big_len = 0;
	put("{\"argv\":[\"x\"],\"cwd\":\"/");
	for (i = 0; i < 600; i++)
		put("\xc3\xa4");
	put("\"}");
	ck_assert_int_eq(on("POST", "good-1", "/exec", big, NULL), 400);
	big_len = 0;
	put("{\"argv\":[\"x\",\"");
	for (i = 0; i < 20000; i++)
		put("\xc3\xa4");
	put("\"]}");
	ck_assert_int_eq(on("POST", "good-1", "/exec", big, NULL), 400);
	neighbour();
}
END_TEST

/* ---- the start --------------------------------------------------------- */

static void
setup_rows(void)
{
	world_make(&w);
	world_row(&w, "good-1", BOX_READY, 2);
	world_row(&w, "good-2", BOX_READY, 1);
	world_row(&w, "good-3", BOX_READY, 0);
	world_row(&w, "good-4", BOX_PROVISIONING, 2);
	world_row(&w, "good-5", BOX_DELETING, 1);
	world_row(&w, "good-6", BOX_QUARANTINED, 2);
	world_row(&w, "good-7", BOX_STOPPED, 1);
	world_row(&w, "lie-1", BOX_READY, 2);
	world_row(&w, "garbage-1", BOX_READY, 2);
	world_row(&w, "rows-1", BOX_READY, 2);
	world_row(&w, "sealed-1", BOX_READY, 2);
	world_row(&w, "good-8", BOX_NSTATES, 2);
	world_row(&w, "older-1", BOX_READY, 2);
	world_row(&w, "aged-1", BOX_READY, 2);
	world_row(&w, "tells-1", BOX_READY, 2);
	world_row(&w, "swings-1", BOX_READY, 2);
	world_start(&w);
}

/* A network whose way out is gone: the box is suspect, and says why. */
START_TEST(shut)
{
	ck_assert_int_eq(create("shut-1", NULL), 201);
	await("shut-1", "\"health\":\"SUSPECT\",\"healthReason\":"
	    "\"uplink\"");
	ck_assert_int_eq(on("POST", "shut-1", "/exec",
	    "{\"argv\":[\"x\"]}", NULL), 200);
}
END_TEST

static int
strays_gone(void)
{
	return world_box(&w, "good-8")->purged == 1 &&
	    world_box(&w, "good-4")->purged == 1 &&
	    world_box(&w, "good-5")->purged == 1;
}

START_TEST(reconciled)
{
	await("good-1", "\"state\":\"READY\"");
	await("good-1", "\"health\":\"HEALTHY\"");
	await("good-2", "\"state\":\"STOPPED\",\"stateReason\":\"absent\"");
	await("good-3", "\"state\":\"STOPPED\"");
	await(world_box(&w, "good-4")->id, "\"state\":\"DELETED\","
	    "\"stateReason\":\"create-failed\"");
	await(world_box(&w, "good-5")->id, "\"state\":\"DELETED\"");
	await("good-6", "\"state\":\"QUARANTINED\"");
	ck_assert_int_eq(world_box(&w, "good-6")->quarantined, 1);
	await("good-7", "\"state\":\"STOPPED\"");
	await("lie-1", "\"state\":\"QUARANTINED\"");
	await("garbage-1", "\"state\":\"QUARANTINED\"");
	await("rows-1", "\"state\":\"QUARANTINED\"");
	await("sealed-1", "\"state\":\"QUARANTINED\","
	    "\"stateReason\":\"nonce\"");
	ck_until(strays_gone());
	ck_assert_int_eq((int)w.s->events[EVENT_RECONCILE_DONE], 1);
	ck_assert_int_eq((int)w.s->attached, 3);	/* rows-1 lies later */
	ck_assert_int_eq((int)w.s->quarantined, 4);
	ck_assert_int_eq((int)w.s->absent, 3);
	ck_assert_int_eq(on("POST", "good-1", "/exec",
	    "{\"argv\":[\"x\"]}", NULL), 200);
}
END_TEST

#define SUSPECT_OF	"\"health\":\"SUSPECT\",\"healthReason\":"	\
			    "\"runner-version\""

/* What ran before the upgrade: one version ago is as good as new. */
START_TEST(adopted_older)
{
	await("older-1", "\"health\":\"HEALTHY\"");
	ck_assert(has("older-1", "\"runner\":{\"version\":\"0\","
	    "\"protocol\":2,\"sessionsMax\":null}"));
	ck_assert(has("good-1", "\"runner\":{\"version\":\"0\","
	    "\"protocol\":3,\"sessionsMax\":17}"));
	ck_assert_int_eq(world_box(&w, "older-1")->attached, 2);
	ck_assert_int_eq(on("POST", "older-1", "/exec",
	    "{\"argv\":[\"x\"]}", NULL), 200);
	ck_assert_int_eq(on("DELETE", "older-1", "", NULL, NULL), 200);
}
END_TEST

static const struct { const char *name, *runner; } misfits[] = {
	{ "aged-1", "\"protocol\":null" },
	{ "tells-1", "\"protocol\":1" },
	{ "swings-1", "\"health\"" },
};

/* Two: it is left alone, says what it is, and can be removed. */
START_TEST(adopted_misfit)
{
	const char	*name = misfits[_i].name;
	struct world_box *x = world_box(&w, name);
	auto_free char	*a = NULL, *d = NULL;

	await(name, SUSPECT_OF);
	ck_assert(has(name, "\"state\":\"READY\""));
	ck_assert(has(name, misfits[_i].runner));
	ck_assert_int_eq(x->quarantined, 0);
	ck_assert_int_eq(on("POST", name, "/exec", "{\"argv\":[\"x\"]}",
	    &a), 409);
	ck_has(a, "\"code\":\"runner-version\"");
	ck_has(a, "Remove the sandbox");
	ck_assert_int_eq(world_http(&w, "POST", "/v1/reconcile", NULL, &d),
	    200);
	ck_has(d, "\"verdict\":\"suspect\",\"reason\":\"runner-version\"");
	await(name, SUSPECT_OF);
	ck_assert_int_eq(on("DELETE", name, "", NULL, NULL), 200);
	await(x->id, "DELETED");
	ck_assert_int_eq(x->purged, 1);
}
END_TEST

/* ---- sessions by name ---------------------------------------------------- */

static void
sid_of(const char *body, char ret[27])
{
	const char	*at = strstr(body, "\"sessionId\":\"");

	ck_assert_msg(at != NULL, "%s", body);
	(void)snprintf(ret, 27, "%.26s", at + strlen("\"sessionId\":\""));
}

/* GET of that session: its status, and its id. */
static int
session(const char *ref, char ret[27])
{
	auto_free char	*body = NULL;
	char		 path[128];
	int		 status;

	(void)snprintf(path, sizeof(path), "/sessions/%s", ref);
	status = on("GET", "good-1", path, NULL, &body);
	if (status == 200)
		sid_of(body, ret);
	return status;
}

START_TEST(named)
{
	char	id[40][27], got[27];
	int	i;

	ck_assert_int_eq(create("good-1", NULL), 201);
	/* more than are kept in memory, the first under a name of its own */
	for (i = 0; i < 40; i++) {
		auto_free char	*body = NULL;

		ck_assert_int_eq(on("POST", "good-1", "/exec", i == 0 ?
		    "{\"argv\":[\"x\"],\"name\":\"first\"}" :
		    "{\"argv\":[\"x\"],\"name\":\"again\"}", &body), 200);
		sid_of(body, id[i]);
	}
	ck_assert_int_eq(session("again", got), 200);
	ck_assert_str_eq(got, id[39]);
	ck_assert_int_eq(session("first", got), 200);
	ck_assert_str_eq(got, id[0]);
	ck_assert_int_eq(session("none", got), 404);
	ck_assert_int_eq(session(id[0], got), 200);
	for (i = 0; i < 40; i++) {
		char	part[27];

		(void)str_copy(part, id[i], sizeof(part));
		part[25] = '\0';
		if ((i > 0 && strncmp(id[i - 1], part, 25) == 0) ||
		    (i < 39 && strncmp(id[i + 1], part, 25) == 0)) {
			ck_assert_int_eq(session(part, got), 400);
			continue;	/* made within a millisecond */
		}
		ck_assert_int_eq(session(part, got), 200);
		ck_assert_str_eq(got, id[i]);
	}
	id[0][11] = '\0';
	ck_assert_int_eq(session(id[0], got), 404);	/* too short */
}
END_TEST

/* What the runner says of its sessions is looked at when they are listed. */
START_TEST(listed)
{
	auto_free char	*body = NULL;

	ck_assert_int_eq(create("rows-1", NULL), 201);
	ck_assert_int_eq(on("GET", "rows-1", "/sessions", NULL, NULL), 200);
	neighbour();
	ck_assert_int_eq(on("POST", "rows-1", "/exec",
	    "{\"argv\":[\"x\"]}", NULL), 200);
	ck_assert_int_eq(on("GET", "rows-1", "/sessions", NULL, &body), 200);
	ck_has(body, "\"state\":\"ended\"");
	await("rows-1", "\"state\":\"QUARANTINED\"");
	neighbour();
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("apid");
	TCase	*t = tcase_create("runners"), *r = tcase_create("start"),
		*m = tcase_create("memory");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, whole_path);
	tcase_add_loop_test(t, unproved_runner, 0,
	    sizeof(unproved) / sizeof(unproved[0]));
	tcase_add_loop_test(t, broken_runner, 0,
	    sizeof(broken) / sizeof(broken[0]));
	tcase_add_loop_test(t, lying_runner, 0,
	    sizeof(lying) / sizeof(lying[0]));
	tcase_add_loop_test(t, failed_create, 0,
	    sizeof(failing) / sizeof(failing[0]));
	tcase_add_loop_test(t, refusing_runner, 0,
	    sizeof(refusing) / sizeof(refusing[0]));
	tcase_add_test(t, stalled);
	tcase_add_test(t, stalled_removed);
	tcase_add_test(t, stdin_odd);
	tcase_add_test(t, closed);
	tcase_add_test(t, named);
	tcase_add_test(t, listed);
	tcase_add_test(t, fading);
	tcase_add_test(t, early);
	tcase_add_test(t, collected);
	tcase_add_test(t, disk_full);
	tcase_add_test(t, facts_first);
	tcase_add_test(t, command_missing);
	tcase_add_test(t, kill_fails);
	tcase_add_test(t, died);
	tcase_add_test(t, signalled);
	tcase_add_test(t, unauthorized);
	tcase_add_test(t, odd_words);
	tcase_add_test(t, largest);
	tcase_add_test(t, shut);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(r, setup_rows, teardown);
	tcase_set_timeout(r, 60);
	tcase_add_test(r, reconciled);
	tcase_add_test(r, adopted_older);
	tcase_add_loop_test(r, adopted_misfit, 0,
	    sizeof(misfits) / sizeof(misfits[0]));
	suite_add_tcase(s, r);
	tcase_add_checked_fixture(m, setup_lean, teardown);
	tcase_set_timeout(m, 60);
	tcase_add_test(m, announced);
	tcase_add_test(m, lines);
	suite_add_tcase(s, m);
	return world_run(s);
}
