/*
 * route_test.c: from a path to its row, scopes against routes, and the
 * sentences that a wrong body is answered with.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "route.h"
#include "schema.h"

#define ROUTE(n, M, path, S, doc)					\
void									\
api_##n(struct http_req *r)						\
{									\
	(void)r;							\
	abort();							\
}
#include "routes.def"

static const char *
find(enum http_method m, const char *path)
{
	struct route_params	 p;
	unsigned int		 methods;
	const struct route	*r;

	r = route_find(m, path, strlen(path), &p, &methods);
	return r != NULL ? r->name : methods != 0 ? "405" : "404";
}

START_TEST(paths)
{
	struct route_params	 p;
	unsigned int		 methods;
	const char		*s = "/v1/sandboxes/ab/sessions/cde/output";

	ck_assert_str_eq(find(HTTP_M_GET, "/healthz"), "healthz");
	ck_assert_str_eq(find(HTTP_M_HEAD, "/healthz"), "healthz");
	ck_assert_str_eq(find(HTTP_M_POST, "/healthz"), "405");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1/sandboxes"), "sandbox_list");
	ck_assert_str_eq(find(HTTP_M_POST, "/v1/sandboxes"),
	    "sandbox_create");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1/sandboxes/x"), "sandbox_get");
	ck_assert_str_eq(find(HTTP_M_POST, "/v1/sandboxes/x/exec"), "exec");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1/sandboxes/exec"),
	    "sandbox_get");
	ck_assert_str_eq(find(HTTP_M_GET, "/"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "/healthz/"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "//healthz"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "/Healthz"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1/sandboxes/"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1/sandboxes//proof"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1/sandboxes/x/y"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, "/v1"), "404");
	ck_assert_str_eq(find(HTTP_M_GET, ""), "404");
	ck_assert_ptr_nonnull(route_find(HTTP_M_GET, s, strlen(s), &p,
	    &methods));
	ck_assert_uint_eq(p.n, 2);
	ck_assert_int_eq(strncmp(p.v[0].name, "id", p.v[0].name_len), 0);
	ck_assert_int_eq(strncmp(s + p.v[0].off, "ab", p.v[0].len), 0);
	ck_assert_int_eq(strncmp(p.v[1].name, "sid", p.v[1].name_len), 0);
	ck_assert_int_eq(strncmp(s + p.v[1].off, "cde", p.v[1].len), 0);
	ck_assert_ptr_null(route_find(HTTP_M_PUT, "/v1/sandboxes", 13, &p,
	    &methods));
	ck_assert_uint_eq(methods, 1 << HTTP_M_GET | 1 << HTTP_M_POST);
}
END_TEST

/* Every route against every scope, and every route has what it needs. */
START_TEST(scopes)
{
	const struct route	*r;
	unsigned int		 bit;
	size_t			 i;

	for (i = 0; i < nroutes; i++) {
		r = &routes[i];
		ck_assert_int_ne(r->scope, 0);
		ck_assert_str_ne(scope_name(r->scope), "unknown");
		ck_assert_int_eq(route_allows(r, 0), r->scope ==
		    SCOPE_PUBLIC);
		for (bit = SCOPE_SANDBOX_READ; bit <= SCOPE_ADMIN; bit <<= 1)
			ck_assert_int_eq(route_allows(r, bit),
			    r->scope == SCOPE_PUBLIC ||
			    r->scope == SCOPE_ANY || bit == SCOPE_ADMIN ||
			    bit == (unsigned int)r->scope);
		ck_assert_int_ne(r->answer[0].status, 0);
		ck_assert_int_eq(r->body->max > 0, r->method == HTTP_M_PUT ||
		    (r->method == HTTP_M_POST &&
		    strcmp(r->name, "reconcile") != 0));
		ck_assert_int_eq(*r->keyed, strcmp(r->name, "exec") == 0 ||
		    strstr(r->name, "_create") != NULL);
	}
}
END_TEST

static void
wrong(const char *schema, const char *text, const char *field,
    const char *why)
{
	struct schema_fault	 f;
	json_t			*v = json_loads(text, JSON_DECODE_ANY, NULL);

	ck_assert_ptr_nonnull(v);
	ck_assert_int_eq(schema_check(schema_find(schema), v, &f),
	    field == NULL ? 0 : -1);
	if (field != NULL) {
		ck_assert_str_eq(f.field, field);
		ck_assert_str_eq(f.why, why);
	}
	json_decref(v);
}

START_TEST(sentences)
{
	schema_init();
	wrong("SandboxSpec", "{}", NULL, NULL);
	wrong("SandboxSpec", "[]", "", "Expected: object.");
	wrong("SandboxSpec", "{\"x\": 1}", "x", "It is unknown. Expected: "
	    "name, rootfs, network, allow, limits, labels, env.");
	wrong("SandboxSpec", "{\"name\": \"A\"}", "name", "Expected: 1 to 63 "
	    "of a-z, 0-9 and . _ -, a letter or digit first.");
	wrong("SandboxSpec", "{\"network\": 1}", "network",
	    "Expected: string.");
	wrong("Sandbox", "{\"network\": \"x\"}", "network",
	    "Expected one of: none, egress, allowlist.");
	wrong("SandboxSpec", "{\"limits\": {\"pids\": 1}}", "limits.pids",
	    "Expected: 128 to 4194304.");
	wrong("SandboxSpec", "{\"limits\": {\"cpus\": 0}}", "limits.cpus",
	    "Expected: 0.01 to 1024.");
	wrong("SandboxSpec", "{\"limits\": {\"memoryBytes\": 0}}",
	    "limits.memoryBytes",
	    "Expected: 16777216 to 9223372036854775807.");
	wrong("SandboxSpec", "{\"limits\": {\"pids\": 400.0}}",
	    "limits.pids", "Expected: integer.");
	wrong("SessionSpec", "{}", "argv", "It is required.");
	wrong("SessionSpec", "{\"argv\": []}", "argv",
	    "Expected: 1 to 1024 items.");
	wrong("SessionSpec", "{\"argv\": [\"a\", null]}", "argv[1]",
	    "Expected: string.");
	wrong("SessionSpec", "{\"argv\": [\"a\"], \"cwd\": \"b\"}", "cwd",
	    "Expected: an absolute path.");
	wrong("SignalSpec", "{\"signal\": true}", "signal",
	    "Expected: a number from 1 to 64, or a name with or without SIG.");
	wrong("SandboxSpec", "{\"labels\": {\"-\": \"\"}}", "labels.-",
	    "Expected: a name of 1 to 63 letters, digits and . _ / -, a "
	    "letter or digit first.");
}
END_TEST

/* A long name is cut between characters: it stays UTF-8. */
START_TEST(long_name)
{
	struct schema_fault	 f;
	json_t			*v, *s;
	char			 name[401];
	size_t			 i;

	for (i = 0; i < 400; i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	name[400] = '\0';
	schema_init();
	v = json_pack("{s:{s:s}}", "labels", name, "");
	ck_assert_int_eq(schema_check(schema_find("SandboxSpec"), v, &f), -1);
	ck_assert_uint_lt(strlen(f.field), sizeof(f.field));
	ck_assert_uint_gt(strlen(f.field), sizeof(f.field) - 4);
	s = json_string(f.field);
	ck_assert_ptr_nonnull(s);
	json_decref(s);
	json_decref(v);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("route");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

	tcase_add_test(t, paths);
	tcase_add_test(t, scopes);
	tcase_add_test(t, sentences);
	tcase_add_test(t, long_name);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
