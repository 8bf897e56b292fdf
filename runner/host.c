/*
 * host.c: what apid asks of the runner itself, and the table of handlers.
 *
 * Messages arrive here decoded and permitted for the channel's state; what a
 * session's owner may do is checked in session_get().
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "runner.h"
#include "xmalloc.h"

#define ROWS_PAGE	128UL	/* sessions in one answer */
#define ROW_MAX		480	/* bytes of one, encoded */

/* What is told at the first go; read before it is asked for. */
struct told {
	struct row_facts	 facts;	/* mounts borrows from below */
	char			 mounts[FACTS_MOUNTS];
};
static struct told	*told;	/* owned; NULL: to be read */

/* NULL with errno; the caller's to free. */
static struct told *
facts_now(void)
{
	auto_close int	 proc = -1;
	struct told	*t = malloc(sizeof(*t));

	if (t != NULL && (proc = open("/proc/self", O_PATH | O_DIRECTORY |
	    O_CLOEXEC)) != -1 && facts_read(proc, t->mounts, &t->facts) == 0)
		return t;
	free(t);
	return NULL;
}

static void
on_runner_hello(struct peer *p, const struct msg *m)
{
	const struct msg_runner_hello	*b = &m->body.runner_hello;
	struct msg_runner_nonce		 answer = { 0 };
	uint8_t				 digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX			 ctx;
	struct peer			*old = peer_host();

	SHA256Init(&ctx);
	SHA256Update(&ctx, b->token.data, b->token.len);
	SHA256Final(digest, &ctx);
	explicit_bzero(&ctx, sizeof(ctx));
	if (strcmp(b->role, "host") != 0 ||
	    !secret_equal(digest, runner.token, sizeof(digest))) {
		runner_log("hello: wrong role or token");
		peer_error(p, m->rid, CODE_WRONG_TOKEN, "wrong role or token");
		peer_end(p);
		return;
	}
	if (old != NULL && peer_alive(old)) {
		runner_log("hello: a second control peer");
		peer_error(p, m->rid, CODE_PEER_TAKEN, "a peer is there");
		peer_end(p);
		return;
	}
	if (old != NULL)
		peer_end(old);
	peer_set_host(p);
	answer.nonce.data = runner.nonce;
	answer.nonce.len = runner.nonce_given ? 0 : sizeof(runner.nonce);
	answer.sessions_max = runner.lives_max;
	(void)str_copy(answer.version, PACKAGE_VERSION,
	    sizeof(answer.version));		/* fits */
	peer_send(p, MSG_RUNNER_NONCE, m->rid, &answer);
	explicit_bzero(runner.nonce, sizeof(runner.nonce));
	if (runner.nonce_given)
		return;
	runner.nonce_given = 1;
	/* while the nonce is on its way: nothing of the box can change yet */
	runner_prepare();
	told = facts_now();
}

/* The box may run things from here on. */
static void
first_go(void)
{
	runner.gone = 1;
	/* 1 is /dev/null: nobody is left who would read what we say there */
	if (dup2(STDOUT_FILENO, STDERR_FILENO) == -1)
		(void)close(STDERR_FILENO);
	if (peer_listen_wb() == -1)
		runner_log("listen on %s: %s", BOX_SOCK, strerror(errno));
}

static void
on_runner_go(struct peer *p, const struct msg *m)
{
	struct msg_runner_facts	 answer = { 0 };
	auto_free struct told	*t = steal_ptr(&told);
	char			**env;

	if ((env = wire_list_argv(&m->body.runner_go.env)) == NULL) {
		peer_error(p, m->rid, CODE_INTERNAL, "out of memory");
		return;
	}
	if (!spawn_env_ok(env)) {
		free(env);
		peer_error(p, m->rid, CODE_BAD_REQUEST,
		    "env is not KEY=VALUE");
		return;
	}
	if (runner.gone)
		free(runner.env);
	runner.env = env;
	if (t == NULL && (t = facts_now()) == NULL) {
		peer_error(p, m->rid, CODE_INTERNAL, "read facts: %s",
		    strerror(errno));
		return;
	}
	facts_put(&answer, &t->facts);
	peer_send(p, MSG_RUNNER_FACTS, m->rid, &answer);
	p->ch.state = S_RUN;
	if (!runner.gone)
		first_go();
}

static void
on_runner_sessions(struct peer *p, const struct msg *m)
{
	const char			*after = m->body.runner_sessions.after;
	struct msg_runner_sessions_are	 answer = { 0 };
	struct wire_bin			 rows[ROWS_PAGE];
	struct row_rsession		 row;
	struct session			*s;
	auto_free uint8_t		*buf = NULL;
	ssize_t				 n;

	if ((buf = malloc(ROWS_PAGE * ROW_MAX)) == NULL) {
		peer_error(p, m->rid, CODE_INTERNAL, "out of memory");
		return;
	}
	answer.rows.v = rows;
	TAILQ_FOREACH(s, &table.all, all) {
		if (strcmp(s->id, after) <= 0 ||
		    (p->ch.peer == A_WB && p->uid != 0 && p->uid != s->uid))
			continue;
		if (answer.rows.n == ROWS_PAGE)
			break;
		session_row(s, &row);
		rows[answer.rows.n].data = buf + answer.rows.n * ROW_MAX;
		n = wire_encode(&wire_row_rsession, &row,
		    buf + answer.rows.n * ROW_MAX, ROW_MAX);
		if (n == -1) {
			peer_error(p, m->rid, CODE_INTERNAL, "%s",
			    wire_error());
			return;
		}
		rows[answer.rows.n++].len = (size_t)n;
	}
	peer_send(p, MSG_RUNNER_SESSIONS_ARE, m->rid, &answer);
}

static void
on_runner_drain(struct peer *p, const struct msg *m)
{
	if (waiter_new(p, NULL, W_DRAIN, m->rid) == NULL)
		return;
	session_drain(m->body.runner_drain.grace_ms);
}

void
host_drained(void)
{
	struct peer	*p = peer_host();
	struct waiter	*w, *next;

	if (p == NULL)
		return;
	for (w = TAILQ_FIRST(&p->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, in_peer);
		if (w->kind != W_DRAIN)
			continue;
		peer_ok(p, w->rid);
		waiter_free(w);
	}
}

static void
on_runner_ping(struct peer *p, const struct msg *m)
{
	peer_ok(p, m->rid);
}

static const struct {
	unsigned int	  type;
	void		(*fn)(struct peer *, const struct msg *);
} handlers[] = {
	{ MSG_SESSION_READ,	on_session_read },
	{ MSG_SESSION_STDIN,	on_session_stdin },
	{ MSG_SESSION_RUN,	on_session_run },
	{ MSG_SESSION_WAIT,	on_session_wait },
	{ MSG_SESSION_SIGNAL,	on_session_signal },
	{ MSG_RUNNER_PING,	on_runner_ping },
	{ MSG_RUNNER_SESSIONS,	on_runner_sessions },
	{ MSG_RUNNER_HELLO,	on_runner_hello },
	{ MSG_RUNNER_GO,	on_runner_go },
	{ MSG_RUNNER_DRAIN,	on_runner_drain },
	{ MSG_WB_STATUS,	wbcmd_status },
	{ MSG_WB_RUN,		wbcmd_run },
	{ MSG_WB_DENIALS,	wbcmd_denials },
	{ MSG_BOX_DENIALS_ARE,	denied_told },
	{ MSG_ERROR,		denied_refused },
};

void
host_handle(struct peer *p, const struct msg *m)
{
	size_t	i;

	for (i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (handlers[i].type == m->row->type) {
			handlers[i].fn(p, m);
			return;
		}
	/* an answer to what we never ask */
	runner_log("%s was not asked for", m->row->name);
	peer_end(p);
}
