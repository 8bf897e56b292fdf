/*
 * session.c: one command, from request to the last that is known of it.
 *
 *	QUEUED -> STARTING -> RUNNING -> ENDING -> ENDED
 *
 * QUEUED to STARTING: the loop hands it to the spawner.  STARTING to RUNNING:
 * exec has succeeded; where it has not, the session never was, and its
 * waiters are told.  RUNNING to ENDING: the leader was reaped; its exit code
 * is final.  ENDING to ENDED: its output is whole (output.c).  ENDED: kept
 * with its output until younger ones need the place, but never dropped while
 * processes that it left behind are in its cgroup.
 *
 * Live sessions are those before ENDED.
 */
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

struct table	table = {
	.all = TAILQ_HEAD_INITIALIZER(table.all),
	.lives = TAILQ_HEAD_INITIALIZER(table.lives),
	.ends = TAILQ_HEAD_INITIALIZER(table.ends),
};

static struct session *
session_find(const char *id)
{
	struct session	*s;

	TAILQ_FOREACH_REVERSE(s, &table.all, sessions, all)
		if (memcmp(s->id, id, ULID_LEN) == 0)
			break;
	return s;
}

struct session *
session_get(struct peer *p, uint32_t rid, const char *id)
{
	struct session	*s = session_find(id);

	if (s != NULL && (p->ch.peer == A_APID || p->uid == 0 ||
	    p->uid == s->uid))
		return s;
	peer_error(p, rid, CODE_NOT_FOUND, "session %s", id);
	return NULL;
}

/* ---- making and dropping --------------------------------------------- */

void
session_free(struct session *s)
{
	struct waiter	*w;

	while ((w = TAILQ_FIRST(&s->waiters)) != NULL) {
		peer_error(w->peer, w->rid, CODE_NOT_FOUND, "session %s",
		    s->id);
		waiter_free(w);
	}
	timer_stop(&s->t_attach);
	timer_stop(&s->t_limit);
	timer_stop(&s->t_late);
	input_close(s);
	output_close(s);
	ring_free(&s->ring);
	spawn_free(s->spawn);
	if (s->has_cgroup && cgroup_remove(s->id) == -1)
		finish_stale(s->id);
	oom_forget(s);
	TAILQ_REMOVE(&table.all, s, all);
	free(s);
}

static void
session_insert(struct session *s)
{
	struct session	*o;

	TAILQ_FOREACH_REVERSE(o, &table.all, sessions, all)
		if (memcmp(o->id, s->id, ULID_LEN) < 0)
			break;
	if (o == NULL)
		TAILQ_INSERT_HEAD(&table.all, s, all);
	else
		TAILQ_INSERT_AFTER(&table.all, o, s, all);
}

static struct session *
session_new(const struct session_ask *a)
{
	struct session	*s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	(void)str_copy(s->id, a->id, sizeof(s->id));	/* bounded by wire */
	(void)str_copy(s->name, a->name, sizeof(s->name));
	s->origin = a->origin;
	s->uid = a->uid;
	s->timeout_ms = a->timeout_ms;
	s->in.fd = s->out[0].fd = s->out[1].fd = -1;
	s->in.w.fd = s->out[0].w.fd = s->out[1].w.fd = -1;
	TAILQ_INIT(&s->waiters);
	ring_init(&s->ring);
	finish_init(s);
	session_insert(s);
	return s;
}

/* What the child needs to know.  0, or a code. */
static unsigned int
session_spawn(struct session *s, struct session_ask *a)
{
	struct spawn	*sp;

	if ((sp = calloc(1, sizeof(*sp))) == NULL)
		return CODE_INTERNAL;
	s->spawn = sp;
	sp->session = s;
	sp->fd[0] = sp->fd[1] = sp->fd[2] = -1;
	sp->uid = a->uid;
	sp->gid = a->gid;
	sp->groups = steal_ptr(&a->groups);
	sp->ngroups = a->ngroups;
	sp->argv = wire_list_argv(a->argv);
	sp->env = wire_list_argv(a->env);
	sp->cwd = strdup(a->cwd);
	if (sp->argv == NULL || sp->env == NULL || sp->cwd == NULL)
		return CODE_INTERNAL;
	if (!spawn_env_ok(sp->env))
		return CODE_BAD_REQUEST;
	return spawn_env(sp, a->user) == -1 ? CODE_INTERNAL : 0;
}

static int
nonblock(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Each pipe has one end of ours, non-blocking, and one of the child's. */
static int
session_pipes(struct session *s, const struct session_ask *a)
{
	int	in[2] = { -1, -1 }, out[2][2], ours[2], i, r = 0;

	if (a->input_open || a->input.len > 0) {
		if (pipe2(in, O_CLOEXEC) == -1)
			return -1;
		s->spawn->fd[0] = in[0];
		/* smaller than asked for is not possible, larger may be */
		(void)fcntl(in[1], F_SETPIPE_SZ, INPUT_PIPE);
		r |= nonblock(in[1]);
	}
	r |= input_init(s, in[1], a->input, a->input_open);
	for (i = 0; i < 2; i++) {
		if (pipe2(out[i], O_CLOEXEC) == -1)
			out[i][0] = out[i][1] = r = -1;
		else
			r |= nonblock(out[i][0]);
		ours[i] = out[i][0];
		s->spawn->fd[1 + i] = out[i][1];
	}
	return output_init(s, ours) | r;
}

struct session *
session_start(struct peer *p, uint32_t rid, struct session_ask *a)
{
	struct session	*s;
	unsigned int	 code;

	if (runner.draining)
		peer_error(p, rid, CODE_NOT_READY, "the box is ending");
	else if (session_find(a->id) != NULL)
		peer_error(p, rid, CODE_EXISTS, "session %s", a->id);
	else if (table.nlives + (a->origin == 1 ? SESSIONS_HOST : 0) >=
	    runner.lives_max)
		peer_error(p, rid, CODE_TOO_MANY, "%u sessions run",
		    table.nlives);
	else if (a->argv->n == 0)
		peer_error(p, rid, CODE_BAD_REQUEST, "no command");
	else if ((a->memory_bytes != 0 || a->pids != 0) && !cgroup_limits())
		peer_error(p, rid, CODE_LIMIT_UNSUPPORTED, "this host counts "
		    "memory and processes by sandbox, not by session "
		    "(cgroup v1)");
	else if ((s = session_new(a)) == NULL)
		peer_error(p, rid, CODE_INTERNAL, "out of memory");
	else {
		if ((code = session_spawn(s, a)) != 0)
			peer_error(p, rid, code, code == CODE_BAD_REQUEST ?
			    "env is not KEY=VALUE" : "out of memory");
		else if (session_pipes(s, a) == -1)
			peer_error(p, rid, CODE_INTERNAL, "pipes: %s",
			    strerror(errno));
		else if (cgroup_make(s->id, a->memory_bytes, a->pids) == -1)
			peer_error(p, rid, errno == EAGAIN ? CODE_TOO_MANY :
			    CODE_INTERNAL, "cgroup: %s", strerror(errno));
		else if (waiter_new(p, s, W_RUN, rid) != NULL) {
			s->has_cgroup = 1;
			s->state = SESSION_QUEUED;
			TAILQ_INSERT_TAIL(&table.lives, s, part);
			table.nlives++;
			table.nqueued++;
			if (a->attached)
				output_attach(s);
			return s;
		} else
			s->has_cgroup = 1;
		session_free(s);
	}
	return NULL;
}

/* ---- starting -------------------------------------------------------- */

int
session_queued(void)
{
	return table.nqueued > 0;
}

struct spawn *
session_next(void)
{
	struct session	*s;

	if (table.nqueued == 0)
		return NULL;
	TAILQ_FOREACH(s, &table.lives, part)
		if (s->state == SESSION_QUEUED)
			break;
	if (s == NULL)
		return NULL;
	table.nqueued--;
	s->state = SESSION_STARTING;
	return s->spawn;
}

void
session_abort(struct session *s, unsigned int code, const char *what,
    const char *why)
{
	struct waiter	*w = TAILQ_FIRST(&s->waiters);

	/* W_RUN was the first; its peer may have gone */
	if (w != NULL && w->kind == W_RUN) {
		peer_error(w->peer, w->rid, code, "%s: %s", what, why);
		waiter_free(w);
	}
	TAILQ_REMOVE(&table.lives, s, part);
	table.nlives--;
	session_free(s);
}

/* The child's errno as a word of the API. */
static unsigned int
spawn_code(const struct spawn *sp)
{
	switch ((enum spawn_step)sp->step) {
	case SPAWN_CWD:
		return CODE_BAD_CWD;
	case SPAWN_LOOKUP:
		return CODE_COMMAND_NOT_FOUND;
	case SPAWN_INTERPRETER:
		return CODE_COMMAND_NOT_EXECUTABLE;
	case SPAWN_CLONE:
		return CODE_TOO_MANY;
	case SPAWN_EXEC:
		break;
	case SPAWN_OK:
	case SPAWN_SETSID:
	case SPAWN_CGROUP:
	case SPAWN_STDIO:
	case SPAWN_LIMITS:
	case SPAWN_USER:
	default:
		return CODE_INTERNAL;
	}
	switch (sp->err) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return CODE_COMMAND_NOT_FOUND;
	case E2BIG:
		return CODE_BAD_REQUEST;
	case EAGAIN:
	case ENOMEM:
		return CODE_TOO_MANY;
	default:
		return CODE_COMMAND_NOT_EXECUTABLE;
	}
}

static const char *
spawn_what(const struct spawn *sp)
{
	static const char *const names[] = {
		[SPAWN_SETSID] = "setsid", [SPAWN_CGROUP] = "join cgroup",
		[SPAWN_STDIO] = "descriptors", [SPAWN_LIMITS] = "limits",
		[SPAWN_USER] = "change user", [SPAWN_CLONE] = "new process",
	};

	switch ((enum spawn_step)sp->step) {
	case SPAWN_CWD:
		return sp->cwd[0] != '\0' ? sp->cwd : "/";
	case SPAWN_LOOKUP:
	case SPAWN_EXEC:
	case SPAWN_INTERPRETER:
		return sp->argv[0];
	case SPAWN_OK:
	case SPAWN_SETSID:
	case SPAWN_CGROUP:
	case SPAWN_STDIO:
	case SPAWN_LIMITS:
	case SPAWN_USER:
	case SPAWN_CLONE:
	default:
		return names[sp->step];
	}
}

static const char *
spawn_why(const struct spawn *sp)
{
	if (sp->step == SPAWN_LOOKUP)
		return "not found in PATH";
	if (sp->step == SPAWN_INTERPRETER)
		return "its interpreter is missing";
	if (sp->step == SPAWN_CWD && sp->err == EINVAL)
		return "not an absolute path";
	return strerror(sp->err);
}

static void
session_announce(const struct session *s, const struct spawn *sp)
{
	static struct wire_bin		 argv[1024];
	struct msg_session_announce	 b = { 0 };
	struct peer			*p = peer_host();

	if (p == NULL || p->ch.state != S_RUN || peer_full(p))
		return;		/* it lists what it missed */
	(void)str_copy(b.id, s->id, sizeof(b.id));
	(void)str_copy(b.name, s->name, sizeof(b.name));
	b.argv.v = argv;
	for (; b.argv.n < 1024 && sp->argv[b.argv.n] != NULL; b.argv.n++)
		argv[b.argv.n] = wire_cstr(sp->argv[b.argv.n]);
	peer_send(p, MSG_SESSION_ANNOUNCE, 0, &b);
}

void
session_spawned(struct spawn *sp)
{
	struct msg_session_running	 b = { 0 };
	struct session			*s = sp->session;
	struct waiter			*w, *next;

	if (sp->step != SPAWN_OK) {
		session_abort(s, spawn_code(sp), spawn_what(sp),
		    spawn_why(sp));
		return;
	}
	s->pid = sp->pid;
	s->state = SESSION_RUNNING;
	s->started_ms = now_ms();
	s->started_mono = mono_ms();
	(void)str_copy(b.id, s->id, sizeof(b.id));
	b.pid = (uint64_t)s->pid;
	for (w = TAILQ_FIRST(&s->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, in_session);
		if (w->kind != W_RUN)
			continue;
		peer_send(w->peer, MSG_SESSION_RUNNING, w->rid, &b);
		waiter_free(w);
	}
	if (s->origin == 1)
		session_announce(s, sp);
	s->spawn = NULL;
	spawn_free(sp);		/* also the child's ends of the pipes */
	if (s->timeout_ms > 0)
		timer_arm(&s->t_limit, s->timeout_ms);
	oom_watch();
	finish_if_draining(s);
}

/* ---- requests -------------------------------------------------------- */

void
on_session_run(struct peer *p, const struct msg *m)
{
	const struct msg_session_run	*b = &m->body.session_run;
	const char			*why;
	struct user			 user = { 0 };
	unsigned int			 code;
	struct session_ask		 a = {
		.id = b->id,
		.name = b->name,
		.cwd = b->cwd,
		.argv = &b->argv,
		.env = &b->env,
		.input = b->stdin,
		.timeout_ms = b->timeout_ms,
		.memory_bytes = b->memory_bytes,
		.pids = b->pids,
		.input_open = (int)b->stdin_open,
		.attached = (int)b->attached,
	};

	if (b->user[0] != '\0') {
		code = user_find(b->user, &user, &why);
		a.user = &user;
		a.uid = user.uid;
		a.gid = user.gid;
		a.groups = steal_ptr(&user.groups);
		a.ngroups = user.ngroups;
		if (code != CODE_NONE) {
			peer_error(p, m->rid, code, "%s: %s", b->user,
			    code == CODE_INTERNAL ? "out of memory" : why);
			free(a.groups);
			return;
		}
	}
	(void)session_start(p, m->rid, &a);	/* it has answered */
	free(a.groups);
}
