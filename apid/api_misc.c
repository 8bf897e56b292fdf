/*
 * api_misc.c: the service itself, and what handlers share.
 */
#include <stdint.h>
#include <string.h>

#include "apid.h"
#include "xmalloc.h"

void
api_healthz(struct http_req *r)
{
	http_reply_json(r, 200, json_pack("{ss}", "status",
	    env.stopping ? "stopping" : "ok"));
}

void
api_version(struct http_req *r)
{
	http_reply_json(r, 200, json_pack("{ss ss sI sI}", "version",
	    PACKAGE_VERSION, "api", "v1",
	    "protocol", (json_int_t)runner_version,
	    "protocolOldest", (json_int_t)runner_version - 1));
}

struct ask_log {
	struct http_req	*req;
	char		 id[27];
};

static void
log_told(void *arg, const struct msg *m)
{
	struct ask_log	*a = arg;

	if (m->row->type != MSG_BOX_LOG_TAIL_IS)
		api_fail(a->req, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
	else
		http_reply_json(a->req, 200, json_pack("{ss so}", "sandboxId",
		    a->id, "lines", log_lines(&m->body.box_log_tail_is.text,
		    SIZE_MAX)));
	free(a);
}

void
api_sandbox_launch_log(struct http_req *r)
{
	struct msg_box_log_tail	 m = { 0 };
	struct box		*b = api_box(r);
	struct ask_log		*a;

	if (b == NULL)
		return;
	a = xcalloc(1, sizeof(*a));
	a->req = r;
	(void)str_copy(a->id, b->id, sizeof(a->id));
	(void)str_copy(m.id, b->id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_LOG_TAIL, &m, T_PRIVD, log_told, a);
}

struct box *
api_box(struct http_req *r)
{
	struct box	*b;
	int		 many;

	b = box_find(http_tenant(r), http_param(r, "id"), &many);
	if (b != NULL)
		return b;
	if (many)
		http_fail(r, CODE_BAD_REQUEST, "id", "This prefix fits more "
		    "than one sandbox: write more of the id.");
	else
		api_no_box(r);
	return NULL;
}

/* A member of a path is letters, digits and . _ - only: http_check.c. */
void
api_no_box(struct http_req *r)
{
	http_fail(r, CODE_NOT_FOUND, NULL, "There is no sandbox \"%s\".",
	    http_param(r, "id"));
}

void
api_no_session(struct http_req *r, enum wb_code code)
{
	if (code == CODE_NOT_FOUND)
		http_fail(r, code, NULL, "There is no session \"%s\" in this "
		    "sandbox.", http_param(r, "sid"));
	else if (code == CODE_BAD_REQUEST)
		http_fail(r, code, "sid", "This prefix fits more than one "
		    "session: write more of the id.");
	else
		http_fail(r, code, NULL, "The session \"%s\" could not be "
		    "looked up.", http_param(r, "sid"));
}

enum wb_code
code_find(const char *name)
{
	unsigned int	i;

	for (i = 1; i < 64; i++)	/* those of messages */
		if (strcmp(code_name(i), name) == 0)
			return (enum wb_code)i;
	return CODE_NONE;
}

const char *
api_field(enum wb_code code)
{
	switch ((int)code) {
	case CODE_BAD_CWD:
		return "cwd";
	case CODE_COMMAND_NOT_FOUND:
	case CODE_COMMAND_NOT_EXECUTABLE:
		return "argv[0]";
	case CODE_LIMIT_UNSUPPORTED:
		return "limits";
	case CODE_NAME_TAKEN:
		return "name";
	case CODE_ROOTFS_UNKNOWN:
		return "rootfs";
	case CODE_USER_UNKNOWN:
		return "user";
	default:
		return NULL;
	}
}

void
api_fail(struct http_req *r, enum wb_code code, const char *detail)
{
	http_fail(r, code, api_field(code), "%s", detail[0] == '\0' ?
	    code_name(code) : detail);
}

void
api_fail_session(struct http_req *r, enum wb_code code,
    const struct session *s, const char *why)
{
	const char	*field = api_field(code);
	json_t		*m = json_pack("{ssss}", "sessionId", s->id,
			    "sandboxId", s->sandbox);

	if (field != NULL)	/* fails only without memory */
		(void)json_object_set_new(m, "field", json_string(field));
	http_fail_with(r, code, m, "%s", why);
}
