/*
 * body_fuzz: JSON bodies of the API, from the text to the messages that they
 * become.
 *
 * input: a byte (bit 0: SessionSpec, else SandboxSpec; bit 1: a body of any
 * schema there is, only checked, chosen by the rest of it); the text
 *
 * apid ends itself rather than send a message that is out of its bounds, so
 * what a schema and a handler let pass must fit: a client could end apid else.
 */
#include <stdarg.h>

#include "../../apid/apid.h"
#include "fuzz.h"
#include "route.h"
#include "schema.h"

struct http_req { json_t *json; int answers; };	/* as far as we need one */

struct apid		env;
static struct conf	conf;
static struct box	box;
static uint8_t		buf[WIRE_MAX];

/* ---- what the handlers call ------------------------------------------ */

const json_t *
http_json(const struct http_req *r)
{
	return r->json;
}

const char *
http_tenant(const struct http_req *r)
{
	(void)r;
	return APID_TENANT;
}

const char *
http_actor(const struct http_req *r)
{
	(void)r;
	return "key";
}

const char *
http_id(const struct http_req *r)
{
	(void)r;
	return "01K8XXXXXXXXXXXXXXXXXXXXXX";
}

void
http_fail(struct http_req *r, enum wb_code code, const char *field,
    const char *fmt, ...)
{
	char	text[2048];
	va_list	ap;

	va_start(ap, fmt);
	must(vsnprintf(text, sizeof(text), fmt, ap) > 0);
	va_end(ap);
	must(code_http(code) >= 400 && code_http(code) < 500);
	must(field == NULL || field[0] != '\0');
	r->answers++;
}

struct box *
box_by_name(const char *tenant, const char *name)
{
	(void)tenant;
	return strcmp(name, "taken") == 0 ? &box : NULL;
}

struct box *
box_new(const char *id, const char *tenant, const char *by, const char *name)
{
	memset(&box, 0, sizeof(box));
	(void)snprintf(box.id, sizeof(box.id), "%s", id);
	(void)snprintf(box.tenant, sizeof(box.tenant), "%s", tenant);
	(void)snprintf(box.created_by, sizeof(box.created_by), "%s", by);
	(void)snprintf(box.name, sizeof(box.name), "%s", name);
	return &box;
}

static void
fits(unsigned int type, const void *body)
{
	const struct proto_row	*row = proto_find(type);

	must(wire_encode(row->desc, body, buf, sizeof(buf)) > 0);
}

/* As boot.c does it. */
void
boot_create(struct box *b, const char *actor, const char *request,
    const struct key *key,
    void (*recorded)(struct box *, enum wb_code, const char *, void *),
    void (*done)(struct box *, const struct boot_result *, void *), void *arg)
{
	static uint8_t			row_buf[WIRE_MAX];
	struct http_req			*r = arg;
	struct msg_sandbox_create	 m = { 0 };
	struct row_sandbox		 row = { .version = 1 };
	ssize_t				 n;

	(void)key;
	(void)recorded;
	(void)done;
	memcpy(row.id, b->id, sizeof(row.id));
	memcpy(row.tenant, b->tenant, sizeof(row.tenant));
	memcpy(row.created_by, b->created_by, sizeof(row.created_by));
	memcpy(row.name, b->name, sizeof(row.name));
	memcpy(row.rootfs, b->rootfs, sizeof(row.rootfs));
	row.memory_bytes = b->memory_bytes;
	row.cpu_milli = b->cpu_milli;
	row.pids = b->pids;
	must(row.memory_bytes > 0 && row.cpu_milli > 0 && row.pids > 0);
	row.labels = b->labels;
	row.env = b->env;
	n = wire_encode(&wire_row_sandbox, &row, row_buf, sizeof(row_buf));
	must(n > 0);
	(void)snprintf(m.actor, sizeof(m.actor), "%s", actor);
	(void)snprintf(m.request, sizeof(m.request), "%s", request);
	m.row.data = row_buf;
	m.row.len = (size_t)n;
	fits(MSG_SANDBOX_CREATE, &m);
	list_free(&b->labels);
	list_free(&b->env);
	r->answers++;
}

/* A request without a key. */
void
key_begin(struct http_req *r, void (*fn)(struct http_req *,
    const struct key *, const struct key_made *))
{
	fn(r, NULL, NULL);
}

void
key_used(struct http_req *r)
{
	(void)r;
}

/* ---- one body ---------------------------------------------------------- */

/* As session.c does it. */
static void
session(struct http_req *r)
{
	struct msg_session_run	m = { .id = "01K8XXXXXXXXXXXXXXXXXXXXXX" };
	struct row_session	row = { .version = 1,
	    .sandbox = "01K8XXXXXXXXXXXXXXXXXXXXXX",
	    .id = "01K8XXXXXXXXXXXXXXXXXXXXXX", .tenant = APID_TENANT };
	const struct box	b = { .memory_bytes = WB_U63, .pids = 4194304 };
	struct session_spec	sp;
	ssize_t			n;

	if (api_spec(r, &b, NULL, &sp) == -1) {
		must(r->answers == 1);
		return;
	}
	must(strlen(sp.name) < sizeof(m.name));
	must(strlen(sp.cwd) < sizeof(m.cwd));
	memcpy(m.name, sp.name, strlen(sp.name));
	memcpy(m.cwd, sp.cwd, strlen(sp.cwd));
	must(strlen(sp.user) < sizeof(m.user));
	memcpy(m.user, sp.user, strlen(sp.user));
	m.memory_bytes = sp.memory_bytes;
	m.pids = sp.pids;
	m.argv = sp.argv;
	m.env = sp.env;
	m.timeout_ms = sp.timeout_ms;
	m.stdin_open = (uint64_t)sp.stdin_open;
	m.stdin.data = sp.input;
	m.stdin.len = sp.input_len;
	must(m.argv.n > 0 && m.argv.v[0].len > 0);
	fits(MSG_SESSION_RUN, &m);
	memcpy(row.name, m.name, sizeof(row.name));
	row.argv = sp.argv;
	row.labels = sp.labels;
	memcpy(row.user, m.user, sizeof(row.user));
	n = wire_encode(&wire_row_session, &row, buf, sizeof(buf));
	must(n > 0 && n <= 46080);	/* SESSION_PUT's row */
	api_spec_free(&sp);
	must(r->answers == 0);
}

static const json_t *
schema_nth(unsigned int nth)
{
	const json_t	*s = NULL;
	const char	*key;

	nth %= (unsigned int)json_object_size(schema_all());
	json_object_foreach((json_t *)(uintptr_t)schema_all(), key, s)
		if (nth-- == 0)
			break;
	return s;
}

static void
prepare(void)
{
	if (env.conf != NULL)
		return;
	schema_init();
	conf.default_memory = UINT64_C(1) << 30;
	conf.default_cpu_milli = 2000;
	conf.default_pids = 4096;
	conf.max_memory = UINT64_C(1) << 40;
	conf.max_cpu_milli = 64000;
	conf.max_pids = 32768;
	env.conf = &conf;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes		b = { data, len };
	unsigned int		how = take_u8(&b);
	struct http_req		r = { NULL, 0 };
	struct schema_fault	fault;
	const json_t		*schema;

	prepare();
	schema = how & 2 ? schema_nth(how >> 2) :
	    schema_find(how & 1 ? "SessionSpec" : "SandboxSpec");
	r.json = json_loadb((const char *)b.p, b.n, JSON_REJECT_DUPLICATES |
	    (how & 2 ? JSON_DECODE_ANY : 0), NULL);
	if (r.json == NULL)
		return 0;
	if (schema_check(schema, r.json, &fault) == -1)
		must(fault.why[0] != '\0' && wire_charset_ok(CS_BYTES,
		    fault.field, strlen(fault.field)));
	else if (how & 2)
		must(fault.field[0] == '\0');
	else if (how & 1)
		session(&r);
	else {
		api_sandbox_create(&r);
		must(r.answers == 1);
	}
	json_decref(r.json);
	return 0;
}
