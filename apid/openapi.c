/*
 * openapi: see openapi.h.  OpenAPI 3.1.0, whose schemas are JSON Schema
 * 2020-12.
 *
 * Must never say what the table does not say: routes are described by their
 * rows, and by what http_check.c does to all of them.
 */

#include <stdio.h>
#include <string.h>

#include "http.h"
#include "log.h"
#include "openapi.h"
#include "schema.h"
#include "xmalloc.h"

static json_t *
pack(json_t *o)
{
	if (o == NULL)
		fatalx("openapi: out of memory");
	return o;
}

static void
put(json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, pack(value)) == -1)
		fatalx("openapi: out of memory");
}

static json_t *
ref(const char *schema)
{
	char	path[96];

	(void)schema_find(schema);	/* fatal when it is not there */
	(void)snprintf(path, sizeof(path), "#/components/schemas/%s",
	    schema);
	return pack(json_pack("{s:s}", "$ref", path));
}

/* ---- parameters ------------------------------------------------------------------ */

static void
add_text(json_t *list, const char *s)
{
	if (json_array_append_new(list, json_string(s)) == -1)
		fatalx("openapi: out of memory");
}

/* The states of a sandbox that a list can have. */
static json_t *
state_schema(void)
{
	json_t		*list = pack(json_array());
	unsigned int	 i;

	for (i = 0; i < BOX_NSTATES; i++)
		if (i != BOX_DELETED)
			add_text(list, state_name(i));
	return pack(json_pack("{s:s, s:o}", "type", "string", "enum", list));
}

static json_t *
query_schema(const struct route_query *q)
{
	if (q->kind == RQ_U64)
		return pack(json_pack("{s:s, s:I, s:I}", "type", "integer",
		    "minimum", (json_int_t)q->lo,
		    "maximum", (json_int_t)q->hi));
	if (q->kind == RQ_STATE)
		return state_schema();
	if (q->kind == RQ_STR)
		return pack(json_pack("{s:s, s:I}", "type", "string",
		    "maxLength", (json_int_t)q->hi));
	return pack(json_pack("{s:s, s:i, s:{s:s, s:I}}", "type", "array",
	    "maxItems", 16, "items", "type", "string",
	    "maxLength", (json_int_t)q->hi));
}

static json_t *
query_list(const struct route *r)
{
	const struct route_query	*q;
	json_t				*list = pack(json_array());

	for (q = r->query; q->name != NULL; q++)
		(void)json_array_append_new(list, pack(json_pack(
		    "{s:s, s:s, s:b, s:s, s:o}", "name", q->name,
		    "in", "query", "required", q->required,
		    "description", q->doc, "schema", query_schema(q))));
	return list;
}

static json_t *
path_list(const char *path)
{
	json_t		*list = pack(json_array());
	const char	*b, *e;

	for (b = path; (b = strchr(b, '{')) != NULL; b = e) {
		if ((e = strchr(++b, '}')) == NULL)
			fatalx("openapi: %s", path);
		(void)json_array_append_new(list, pack(json_pack(
		    "{s:s%, s:s, s:b, s:s, s:{s:s, s:s}}",
		    "name", b, (size_t)(e - b), "in", "path", "required", 1,
		    "description", strncmp(b, "id", 2) == 0 ?
		    "id, unique prefix of it (12 or more), or name" :
		    "id, unique prefix of it (12 or more), or name: the newest "
		    "session of that name that runs, else that has ended",
		    "schema", "type", "string",
		    "pattern", "^[A-Za-z0-9._-]{1,63}$")));
	}
	return list;
}

/* ---- bodies and answers ------------------------------------------------------------ */

static json_t *
request_body(const struct route_body *b)
{
	if (b->schema != NULL)
		return pack(json_pack("{s:b, s:{s:{s:o}}}", "required", 1,
		    "content", "application/json", "schema",
		    ref(b->schema)));
	return pack(json_pack("{s:b, s:s, s:{s:{}}}", "required", 0,
	    "description", b->raw, "content", "application/octet-stream"));
}

/* The entry of a status, made when it is not there. */
static json_t *
status_entry(json_t *responses, int status, const char *doc)
{
	char	 key[16];
	json_t	*o;
	char	*joined;

	(void)snprintf(key, sizeof(key), "%d", status);
	if ((o = json_object_get(responses, key)) == NULL) {
		o = pack(json_pack("{s:s}", "description", doc));
		put(responses, key, o);
		return o;
	}
	joined = xasprintf("%s; %s",
	    json_string_value(json_object_get(o, "description")), doc);
	put(o, "description", json_string(joined));
	ptr_free(&joined);
	return o;
}

static void
add_content(json_t *entry, const char *type, json_t *schema)
{
	json_t	*content = json_object_get(entry, "content");

	if (content == NULL) {
		content = pack(json_object());
		put(entry, "content", content);
	}
	put(content, type, pack(json_pack("{s:o}", "schema", schema)));
}

static void
add_error(json_t *responses, enum wb_code code)
{
	json_t	*entry = status_entry(responses, code_http(code),
		    code_name(code));

	add_content(entry, "application/problem+json", ref("Problem"));
}

static json_t *
responses(const struct route *r)
{
	const struct route_answer	*a;
	const enum wb_code		*code;
	json_t				*o = pack(json_object()), *entry;

	for (a = r->answer; a->status != 0; a++) {
		entry = status_entry(o, a->status, a->doc);
		if (a->kind == RA_FRAMES)
			add_content(entry, "application/vnd.workbox.output",
			    pack(json_pack("{s:s, s:s}", "type", "string",
			    "format", "binary")));
		else if (a->kind == RA_TEXT)
			add_content(entry, "text/plain",
			    pack(json_pack("{s:s}", "type", "string")));
		else if (a->kind != RA_EMPTY)
			add_content(entry, a->kind == RA_JSON ?
			    "application/json" : "application/x-ndjson",
			    ref(a->schema));
	}
	add_error(o, CODE_BAD_REQUEST);
	if (r->scope != SCOPE_PUBLIC) {
		add_error(o, CODE_UNAUTHORIZED);
		add_error(o, CODE_FORBIDDEN);
	}
	if (strchr(r->path, '{') != NULL)
		add_error(o, CODE_NOT_FOUND);
	if (r->body->max > 0) {
		add_error(o, CODE_BODY_TOO_LARGE);
		add_error(o, CODE_UNSUPPORTED_MEDIA_TYPE);
	}
	for (code = r->error; *code != CODE_NONE; code++)
		add_error(o, *code);
	entry = pack(json_pack("{s:s}", "description",
	    "Any other problem"));
	add_content(entry, "application/problem+json", ref("Problem"));
	put(o, "default", entry);
	return o;
}

/* ---- operations ---------------------------------------------------------------------- */

static const char *
tag(const struct route *r)
{
	if (strstr(r->path, "/sessions") != NULL ||
	    strstr(r->path, "/exec") != NULL)
		return "sessions";
	if (strstr(r->path, "/sandboxes") != NULL)
		return "sandboxes";
	return strstr(r->path, "/events") != NULL ? "events" : "service";
}

static json_t *
operation(const struct route *r)
{
	json_t	*o, *list;
	char	*doc;

	doc = xasprintf("Scope: %s.", scope_name(r->scope));
	o = pack(json_pack("{s:s, s:s, s:s, s:[s], s:o}",
	    "operationId", r->name, "summary", r->summary,
	    "description", doc, "tags", tag(r), "responses", responses(r)));
	ptr_free(&doc);
	list = query_list(r);
	if (*r->keyed)
		(void)json_array_append_new(list, pack(json_pack(
		    "{s:s, s:s, s:s, s:{s:s, s:i, s:i}}",
		    "name", "Idempotency-Key", "in", "header",
		    "description", "a repeat within a day makes nothing anew",
		    "schema", "type", "string", "minLength", 1,
		    "maxLength", 255)));
	if (json_array_size(list) > 0)
		put(o, "parameters", list);
	else
		json_decref(list);
	if (r->body->max > 0)
		put(o, "requestBody", request_body(r->body));
	if (r->scope == SCOPE_PUBLIC)
		put(o, "security", json_array());
	return o;
}

static json_t *
paths(void)
{
	static const char *const	methods[HTTP_M_COUNT] = {
		"get", "head", "post", "put", "patch", "delete", "options"
	};
	json_t				*all = pack(json_object()), *o, *list;
	size_t				 i;

	for (i = 0; i < nroutes; i++) {
		if ((o = json_object_get(all, routes[i].path)) == NULL) {
			o = pack(json_object());
			list = path_list(routes[i].path);
			if (json_array_size(list) > 0)
				put(o, "parameters", list);
			else
				json_decref(list);
			put(all, routes[i].path, o);
		}
		put(o, methods[routes[i].method], operation(&routes[i]));
	}
	return all;
}

/* What `code' of a problem may be. */
static void
problem_codes(json_t *schemas)
{
	static const char *const	codes[] = {
#define CODE(n, N, s, http)		s,
#include "proto.def"
	};
	json_t				*list = pack(json_array()), *code;
	size_t				 i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		add_text(list, codes[i]);
	code = json_object_get(json_object_get(json_object_get(schemas,
	    "Problem"), "properties"), "code");
	put(code, "enum", list);
}

json_t *
openapi_document(void)
{
	json_t	*o, *schemas = pack(json_deep_copy(schema_all()));

	problem_codes(schemas);
	o = json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], "
	    "s:[{s:[]}], s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}],"
	    " s:o, s:{s:o, s:{s:{s:s, s:s, s:s}}}}",
	    "openapi", "3.1.0",
	    "info", "title", "Workbox", "version", PACKAGE_VERSION,
	    "description", "Sandboxes on one ordinary Linux host.",
	    "license", "name", "ISC", "identifier", "ISC",
	    "servers", "url", "/",	/* whoever served it */
	    "security", "key",
	    "tags", "name", "service", "description", "The server itself",
	    "name", "sandboxes", "description", "Isolated machines",
	    "name", "sessions", "description", "Commands in a sandbox",
	    "name", "events", "description", "The record",
	    "paths", paths(),
	    "components", "schemas", schemas,
	    "securitySchemes", "key", "type", "http", "scheme", "bearer",
	    "description", "WORKBOX_TOKEN, or what the token file holds");
	return pack(o);
}

void
api_openapi(struct http_req *r)
{
	static char	*text;		/* owned, for ever */
	json_t		*o;

	if (text == NULL) {
		o = openapi_document();
		text = json_dumps(o, JSON_COMPACT);
		json_decref(o);
		if (text == NULL)
			fatalx("openapi: out of memory");
	}
	http_reply_bytes(r, 200, "application/json", text, strlen(text));
}
