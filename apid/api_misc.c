/*
 * api_misc.c: the service itself, and what handlers share.
 */
#include <string.h>

#include "apid.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION	"0"
#endif

void
api_healthz(struct http_req *r)
{
	http_reply_json(r, 200, json_pack("{ss}", "status",
	    env.stopping ? "stopping" : "ok"));
}

void
api_version(struct http_req *r)
{
	http_reply_json(r, 200, json_pack("{ssss}", "version",
	    PACKAGE_VERSION, "api", "v1"));
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
		http_fail(r, CODE_NOT_FOUND, NULL, "There is no such "
		    "sandbox.");
	return NULL;
}

void
api_fail(struct http_req *r, enum wb_code code, const char *detail)
{
	http_fail(r, code, NULL, "%s", detail[0] == '\0' ? code_name(code) :
	    detail);
}

void
api_fail_session(struct http_req *r, enum wb_code code,
    const struct session *s, const char *why)
{
	http_fail_with(r, code, json_pack("{ssss}", "sessionId", s->id,
	    "sandboxId", s->sandbox), "%s", why);
}
