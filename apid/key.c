/*
 * key.c: a client's Idempotency-Key: what was asked with it is done once.
 *
 * Theory of operation.  What a key made is written by stored in the same
 * transaction as the row of what it made, so that it is known exactly when
 * that exists, also after a crash.  A request with a key asks stored first.
 * Until what it makes is made known (key_used) or it has its answer, others
 * with the same key stand in its queue; then the next one asks stored in
 * turn, and finds what the first has made, or that it made nothing and may
 * try itself.
 *
 * A repeat is answered from what was made, as it is then; no answer is kept.
 */
#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define WAITING_MAX	4096	/* requests that wait for others, in all */

struct turn {
	TAILQ_ENTRY(turn)	 next;
	struct http_req		*req;
	struct use		*use;		/* borrowed; NULL: out of it */
	struct key		 key;
	void			(*fn)(struct http_req *, const struct key *,
				    const struct key_made *);
};

/* A key with which a request is under way. */
struct use {
	LIST_ENTRY(use)		 next;
	char			 tenant[64], text[256];
	TAILQ_HEAD(, turn)	 turns;		/* owned; the first has it */
};

static LIST_HEAD(, use)	 uses = LIST_HEAD_INITIALIZER(uses);
static unsigned int	 waiting;

static void	turn_ask(struct turn *);

static void
update(SHA2_CTX *c, const char *s)
{
	SHA256Update(c, (const uint8_t *)s, strlen(s) + 1);
}

/* Of method, path and body, whatever the order of its members. */
static void
digest(struct http_req *r, uint8_t ret[32])
{
	char		*body = json_dumps(http_json(r), JSON_COMPACT |
			    JSON_SORT_KEYS | JSON_ENCODE_ANY);
	SHA2_CTX	 c;

	if (body == NULL)
		fatalx("encode a body: out of memory");
	SHA256Init(&c);
	update(&c, http_method(r));
	update(&c, http_path(r));
	update(&c, body);
	SHA256Final(ret, &c);
	free(body);
}

static struct use *
use_of(const char *tenant, const char *text)
{
	struct use	*u;

	LIST_FOREACH(u, &uses, next)
		if (strcmp(u->text, text) == 0 &&
		    strcmp(u->tenant, tenant) == 0)
			return u;
	u = xcalloc(1, sizeof(*u));
	(void)str_copy(u->tenant, tenant, sizeof(u->tenant));
	(void)str_copy(u->text, text, sizeof(u->text));
	TAILQ_INIT(&u->turns);
	LIST_INSERT_HEAD(&uses, u, next);
	return u;
}

/* Out of the queue: the next one's turn. */
static void
turn_leave(struct turn *t)
{
	struct use	*u = t->use;
	struct turn	*first;
	int		 had;

	if (u == NULL)
		return;
	had = TAILQ_FIRST(&u->turns) == t;
	TAILQ_REMOVE(&u->turns, t, next);
	t->use = NULL;
	first = TAILQ_FIRST(&u->turns);
	if (first == NULL) {
		LIST_REMOVE(u, next);
		free(u);
	} else if (had)
		turn_ask(first);
}

/* The request is over, answered or not. */
static void
turn_over(void *arg)
{
	struct turn	*t = arg;

	peer_forget(env.stored, t);
	turn_leave(t);
	waiting--;
	free(t);
}

static void
turn_told(void *arg, const struct msg *m)
{
	struct turn	*t = arg;
	struct key_made	 made;

	if (m->row->type == MSG_ERROR) {
		api_fail(t->req, (enum wb_code)m->body.error.code,
		    m->body.error.detail);
		return;
	}
	if (env.stopping) {	/* the next one's turn is then, too */
		http_fail(t->req, CODE_STOPPING, NULL, "The server stops.");
		return;
	}
	if (m->body.key_is.sandbox[0] == '\0') {
		t->fn(t->req, &t->key, NULL);
		return;
	}
	if (m->body.key_is.asked.len != sizeof(t->key.asked) ||
	    memcmp(m->body.key_is.asked.data, t->key.asked,
	    sizeof(t->key.asked)) != 0) {
		http_fail(t->req, CODE_KEY_REUSED, "Idempotency-Key",
		    "This key was used for another request within the last "
		    "24 hours.");
		return;
	}
	(void)str_copy(made.sandbox, m->body.key_is.sandbox,
	    sizeof(made.sandbox));
	(void)str_copy(made.session, m->body.key_is.session,
	    sizeof(made.session));
	turn_leave(t);		/* however long the answer takes */
	t->fn(t->req, NULL, &made);
}

static void
turn_ask(struct turn *t)
{
	struct msg_key_get	m = { 0 };

	(void)str_copy(m.tenant, t->use->tenant, sizeof(m.tenant));
	(void)str_copy(m.key, t->key.text, sizeof(m.key));
	peer_ask(env.stored, MSG_KEY_GET, &m, T_STORE, turn_told, t);
}

void
key_begin(struct http_req *r, void (*fn)(struct http_req *,
    const struct key *, const struct key_made *))
{
	const char	*text = http_header(r, "Idempotency-Key");
	struct turn	*t;

	if (text == NULL) {
		fn(r, NULL, NULL);
		return;
	}
	if (waiting >= WAITING_MAX) {
		http_fail(r, CODE_BUSY, "Idempotency-Key", "Too many "
		    "requests with a key are under way.");
		return;
	}
	t = xcalloc(1, sizeof(*t));
	t->req = r;
	t->fn = fn;
	(void)str_copy(t->key.text, text, sizeof(t->key.text));
	digest(r, t->key.asked);
	t->use = use_of(http_tenant(r), text);
	TAILQ_INSERT_TAIL(&t->use->turns, t, next);
	waiting++;
	http_on_done(r, turn_over, t);
	if (TAILQ_FIRST(&t->use->turns) == t)
		turn_ask(t);
}

void
key_used(struct http_req *r)
{
	struct use	*u;
	struct turn	*t;

	LIST_FOREACH(u, &uses, next)
		if ((t = TAILQ_FIRST(&u->turns))->req == r) {
			turn_leave(t);
			return;
		}
}

void
key_put(const struct key *k, char text[256], struct wire_bin *asked)
{
	text[0] = '\0';
	asked->data = NULL;
	asked->len = 0;
	if (k == NULL)
		return;
	(void)str_copy(text, k->text, 256);
	asked->data = k->asked;
	asked->len = sizeof(k->asked);
}
