/*
 * evidence: all that there is to see of a sandbox, in one archive.
 *
 * What the API tells is asked of it, by which it does not matter in which
 * state the sandbox is; what it has changed is listed from its upper layer
 * (changes.c), on the server's own host and by root alone.  What cannot be had
 * is named in the manifest, and the rest is saved all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle.h"
#include "host.h"
#include "workbox.h"
#include "xmalloc.h"

#define TRIES		10		/* of what privd reads for another */
#define TRY_MS		300

static int	evidence_main(const struct args *);

static const struct opt evidence_opts[] = {
	{ "output", "FILE", "a file that is not there yet, or - for standard "
	    "output; evidence-ID.tar if left out", 'o', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_evidence = {
	.name = "sandbox evidence",
	.operands = "SANDBOX",
	.doc = "Save what there is to see of a sandbox, in whatever state, as "
	    "a tar archive",
	.opts = evidence_opts,
	.flags = CMD_CLIENT | CMD_STATE,
	.min = 1, .max = 1,
	.run = evidence_main
};

/* ---- answers of the API ------------------------------------------------- */

/* A member from an answer; the answer, or NULL. */
static json_t *
take(struct bundle *b, const char *id, const char *part, const char *name)
{
	char		*path = client_path("/v1/sandboxes", id, part, NULL);
	struct req	*r = req_new("GET", path);
	json_t		*o = NULL;

	free(path);
	if (req_run(r) == 0 && (o = req_answer(r)) != NULL)
		bundle_json(b, name, json_incref(o));
	else
		bundle_miss(b, name, "the server answered %ld",
		    req_status(r));
	req_free(r);
	return o;
}

/* What the kernel tells; privd reads a box for one asker at a time. */
static void
take_kernel(struct bundle *b, const char *id)
{
	json_t	*o = NULL;
	int	 i, rc = 0;

	for (i = 0; i < TRIES; i++) {
		json_decref(o);
		o = NULL;
		if (i > 0)
			(void)poll(NULL, 0, TRY_MS);
		rc = client_call("GET", client_path("/v1/sandboxes", id,
		    "evidence", NULL), NULL, &o);
		if (rc != 0 || (!json_is_null(json_object_get(o, "facts")) &&
		    !json_is_null(json_object_get(o, "use"))))
			break;
	}
	if (rc != 0) {
		bundle_miss(b, "kernel.json", "the server did not tell");
		return;
	}
	if (json_is_string(json_object_get(o, "launchLog")))
		bundle_text(b, "launch.log", json_str(o, "launchLog"));
	else
		bundle_miss(b, "launch.log", "it could not be read");
	bundle_json(b, "kernel.json", o);
}

/* ---- records ----------------------------------------------------------- */

struct records {
	const char	*id;
	struct lines	 lines;
	FILE		*own, *chain;
	char		*own_text, *chain_text;
	size_t		 own_len, chain_len;
	size_t		 n, bytes;	/* own; and written of both */
};

/*
 * The hash of every record since the sandbox's first, so that each of its own
 * can be held against the chain: `prev' is the hash of the one before.
 */
static int
record(char *s, size_t len, void *arg)
{
	struct records	*r = arg;
	json_t		*o = json_loadb(s, len, 0, NULL);
	const char	*of = json_str(o, "sandboxId");
	int		 own = strcmp(of, r->id) == 0;
	char		 hex[SHA256_DIGEST_STRING_LENGTH];
	SHA2_CTX	 sha;

	if (own && r->bytes < BUNDLE_BYTES) {
		r->n++;
		(void)fprintf(r->own, "%.*s\n", (int)len, s);
	}
	if (r->n > 0 && r->bytes < BUNDLE_BYTES) {
		SHA256Init(&sha);
		SHA256Update(&sha, (const uint8_t *)"", 1);
		SHA256Update(&sha, (const uint8_t *)s, len);
		(void)SHA256End(&sha, hex);
		(void)fprintf(r->chain, "%lld %s\n", (long long)
		    json_integer_value(json_object_get(o, "seq")), hex);
		r->bytes += sizeof hex + (own ? len : 0);
	}
	json_decref(o);
	return 0;
}

static int
record_bytes(const char *data, size_t n, void *arg)
{
	struct records	*r = arg;

	return lines_feed(&r->lines, data, n, record, r);
}

static void
take_records(struct bundle *b, const char *id)
{
	struct records	 r = { .id = id };
	struct req	*q = req_new("GET", "/v1/events");
	int		 ok;

	if ((r.own = open_memstream(&r.own_text, &r.own_len)) == NULL ||
	    (r.chain = open_memstream(&r.chain_text, &r.chain_len)) == NULL)
		abort();		/* out of memory */
	req_sink(q, record_bytes, &r);
	ok = req_run(q) == 0 && r.lines.len == 0 && r.bytes < BUNDLE_BYTES;
	(void)fclose(r.own);		/* in memory */
	(void)fclose(r.chain);
	bundle_add(b, "records.ndjson", r.own_text, r.own_len);
	bundle_add(b, "chain.txt", r.chain_text, r.chain_len);
	if (!ok)
		bundle_miss(b, "records.ndjson", "not all: the server "
		    "answered %ld", req_status(q));
	req_free(q);
	lines_free(&r.lines);
}

/* ---- what it has changed ----------------------------------------------- */

static int
dir_at(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

/* STATE/SUB/NAME[/LAST]; names are checked: no part of them is a path. */
static int
dir_of(const struct conf *c, const char *sub, const char *name,
    const char *last)
{
	auto_free char	*path = xasprintf("%s/%s", c->state_dir, sub);
	auto_close int	 top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int	 fd = top == -1 ? -1 : dir_at(top, name);

	if (fd == -1 || last == NULL)
		return steal_fd(&fd);
	return dir_at(fd, last);
}

static void
take_changes(struct bundle *b, const struct args *a, const json_t *box)
{
	static struct conf	 c;
	auto_close int		 upper = -1, lower = -1;
	const char		*id = json_str(box, "id");
	const char		*rootfs = json_str(box, "rootfs");
	char			*s;
	size_t			 len = 0;

	if (geteuid() != 0 || config_load(a, &c) != 0 || !args_ref_ok(id) ||
	    (upper = dir_of(&c, "sandboxes", id, "upper")) == -1) {
		bundle_miss(b, "changes.ndjson", "its files are not to be "
		    "reached from here: expected root, on the server's host, "
		    "with its --config or --state");
		return;
	}
	if (args_ref_ok(rootfs))
		lower = dir_of(&c, "rootfs", rootfs, NULL);
	if ((s = changes_read(upper, lower, &len)) == NULL)
		bundle_miss(b, "changes.ndjson", "%s", strerror(errno));
	else
		bundle_add(b, "changes.ndjson", s, len);
}

static int
evidence_main(const struct args *a)
{
	static struct bundle	 b;
	const char		*file = args_get(a, "output"), *id;
	auto_free char		*dir = NULL, *name = NULL;
	json_t			*box, *proof;
	int			 rc;

	if ((rc = client_init(a)) != 0 || (rc = client_call("GET",
	    client_path("/v1/sandboxes", a->operand[0], NULL), NULL,
	    &box)) != 0)
		return rc;
	id = json_str(box, "id");
	if (!args_ref_ok(id)) {
		json_decref(box);
		return fail("%s told of a sandbox without id",
		    client_server());
	}
	dir = xasprintf("evidence-%s", id);
	name = xasprintf("%s.tar", dir);
	bundle_init(&b, dir);
	bundle_json(&b, "sandbox.json", json_incref(box));
	if ((proof = take(&b, id, "proof", "proof.json")) != NULL)
		json_decref(proof);
	take_kernel(&b, id);
	take_records(&b, id);
	take_changes(&b, a, box);
	rc = bundle_write(&b, json_pack("{s:s, s:s}", "sandboxId", id,
	    "client", PACKAGE_VERSION), file != NULL ? file : name, 0);
	if (rc == 0 && file == NULL)
		printf("%s\n", name);
	bundle_free(&b);
	json_decref(box);
	return rc;
}
