/*
 * life.c: how a box moves from one phase to the next.
 *
 * Theory of operation.
 *
 *	MAKE	create: the maker was asked to launch, netd to make the
 *		network namespace, at the same time
 *	START	the child builds the box and waits for that namespace;
 *		ready_fd tells when it has become the runner; then a
 *		connection proves who listens
 *	UP	the runner is pid 1 and was reachable
 *	END	SIGKILL was sent to all of it; some process is left
 *	DOWN	no process; cgroups and tree may be there
 *	PURGE	cgroups, netns and tree are being removed, in this order as
 *		far as the disk is concerned: a directory below sandboxes/
 *		outlives everything else of its box, so that a privd that
 *		starts again finds all there is by reading that directory
 *
 *	MAKE > START > UP; MAKE, START, UP > END > DOWN > PURGE > gone.
 *	A scan enters at UP or END.
 *
 * An entry keeps at most one asker, one request to the maker and one to netd.
 * When the set of daemons ends, askers and requests to netd are forgotten;
 * creates that were under way become `doomed': nobody will ask for their
 * end, so they go on to END, DOWN and PURGE by themselves.  Whatever else is
 * DOWN waits for the next apid to reconcile it.
 *
 * `sealed' (quarantined) is beside the phases: frozen, cut off, marked on
 * disk before it is frozen, never undone here.
 */
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "privd.h"
#include "ulid.h"
#include "xmalloc.h"

#define NET_MS		60000	/* netd's answer, behind many others */
#define START_MS	60000	/* from launch to a runner, likewise */
#define LOG_READS	16	/* of one turn: the writer may be hostile */
#define END_MS		1000	/* SIGKILL is sent again */
#define END_TRIES	10	/* then the asker is told */
#define PURGE_MS	20	/* doubled, at most 64 times */
#define RIDS		8192	/* more than requests to netd at one time */

static unsigned int	 nwant;		/* entries whose want is not sent */
static unsigned int	 by_rid[RIDS];	/* net_rid to number */

static void	 purge_step(struct entry *);

void
entry_ask(const struct entry *e, struct box_ask *ret)
{
	*ret = (struct box_ask){
		.id = e->spec.id, .name = e->spec.name,
		.rootfs = e->spec.rootfs,
		.network = (unsigned int)e->spec.network,
		.limits = { e->spec.memory_bytes, e->spec.cpu_milli,
		    e->spec.pids },
		.uid = e->uid,
	};
}

static void	 answer(struct entry *, unsigned int, const char *, ...)
		    __attribute__((format(printf, 3, 4)));

/* The asker's one answer; code 0: what was asked is done. */
static void
answer(struct entry *e, unsigned int code, const char *fmt, ...)
{
	struct msg_box_created	m = { .memory_bytes = e->spec.memory_bytes,
				    .cpu_milli = e->spec.cpu_milli,
				    .pids = e->spec.pids };
	enum ask		ask = e->ask;
	char			text[256];
	va_list			ap;

	if (ask == ASK_NONE)
		return;
	e->ask = ASK_NONE;
	if (code != 0) {
		va_start(ap, fmt);
		(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut is fine */
		va_end(ap);
		to_apid_error(e->rid, code, "%s", text);
	} else if (ask == ASK_CREATE) {
		(void)str_copy(m.rootfs, e->spec.rootfs, sizeof(m.rootfs));
		to_apid(MSG_BOX_CREATED, e->rid, &m, -1);
	} else
		to_apid_ok(e->rid);
}

/*
 * Whether the asker waits for netd to open or to cut; one who came between,
 * to end the box, does not.
 */
static int
waits_for_net(const struct entry *e)
{
	return e->ask == ASK_NONCE || e->ask == ASK_QUARANTINE;
}

/* ---- marks: what a privd that starts again has to know ------------------- */

static const char *
mark_path(const char *id, const char *name)
{
	static char	path[ULID_LEN + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", id, name);
	return path;
}

int
life_marked(const char *id, const char *name)
{
	struct stat	st;

	return fstatat(box_dir(), mark_path(id, name), &st,
	    AT_SYMLINK_NOFOLLOW) == 0;
}

static int
mark(const struct entry *e, const char *name, const char *text)
{
	if (box_file(box_dir(), mark_path(e->spec.id, name), 0600, text,
	    strlen(text)) == 0 || errno == EEXIST)
		return 0;
	log_warn("box %s: mark as %s", e->spec.id, name);
	return -1;
}

/* ---- the maker ---------------------------------------------------------- */

static void
maker_try(struct entry *e)
{
	struct maker_req	q = { .op = e->want, .n = e->n, .uid = e->uid,
				    .spec = e->spec };
	int			fd = -1;

	if (e->want == MK_LAUNCH)
		memcpy(q.nonce, e->nonce, sizeof(q.nonce));
	else if (e->want == MK_CONNECT)
		fd = e->pidfd;
	if (maker_ask(&q, fd) == 0) {
		e->made = e->want;
		e->want = MK_NONE;
		nwant--;
	}
	explicit_bzero(q.nonce, sizeof(q.nonce));
}

static void
maker_want(struct entry *e, enum maker_op op)
{
	e->want = op;
	nwant++;
	maker_try(e);
}

static void
drop(struct entry *e)
{
	if (e->want != MK_NONE)
		nwant--;
	table_drop(e);
}

/* ---- netd ----------------------------------------------------------------- */

/* Notes and sends; when there is no netd the set's end comes to the entry. */
static void
net_ask(struct entry *e, unsigned int type, const void *body, int fd)
{
	uint32_t	rid;

	if (to_netd(type, body, fd, &rid) == -1)
		return;
	e->net_type = type;
	e->net_rid = rid;
	e->net_due = mono_ms() + NET_MS;
	by_rid[rid % RIDS] = e->n;
	if (e->phase != PH_START)
		table_due(e, e->net_due);
}

void
life_create(struct entry *e)
{
	struct msg_net_make	m = { .network = e->spec.network };

	e->phase = PH_MAKE;
	memcpy(m.id, e->spec.id, sizeof(m.id));
	net_ask(e, MSG_NET_MAKE, &m, -1);
	maker_want(e, MK_LAUNCH);
}

void
life_open(struct entry *e)
{
	struct msg_net_open	m = { .k = e->k };

	if (e->net != NET_THERE || e->net_type != 0)
		answer(e, CODE_INTERNAL, "network namespace is not there");
	else if (mark(e, MARK_OPENED, "") == -1)
		answer(e, CODE_INTERNAL, "%s", strerror(errno));
	else
		net_ask(e, MSG_NET_OPEN, &m, -1);
}

/* Cuts if netd can; the answer of e->code follows. */
static void
net_cut(struct entry *e)
{
	struct msg_net_cut	m = { .k = e->k };

	if (e->net == NET_THERE && e->net_type == 0)
		net_ask(e, MSG_NET_CUT, &m, -1);
	if (e->net_type == 0)
		answer(e, e->code, "quarantined");
}

unsigned int
life_adopt(void)
{
	struct msg_net_adopt	 m;
	struct entry		*e;
	unsigned int		 i, n = 0;
	int			 fd;

	for (i = 0; (e = table_at(i)) != NULL; i++) {
		if (e->phase != PH_UP || e->netns == -1)
			continue;
		if ((fd = fcntl(e->netns, F_DUPFD_CLOEXEC, 0)) == -1)
			fatal("duplicate network namespace");
		memset(&m, 0, sizeof(m));
		memcpy(m.id, e->spec.id, sizeof(m.id));
		m.network = e->spec.network;
		m.open = life_marked(e->spec.id, MARK_OPENED) && !e->sealed;
		net_ask(e, MSG_NET_ADOPT, &m, fd);
		n += e->net_type == MSG_NET_ADOPT;
	}
	return n;
}

/* netd refuses: the code and text are ours to pass on, to apid and the log. */
static void
net_refused(struct entry *e, unsigned int type, const struct msg_error *m)
{
	log_warnx("box %s: netd: %s: %s: %s", e->spec.id, proto_name(type),
	    code_name((unsigned int)m->code), m->detail);
	switch (type) {
	case MSG_NET_MAKE:
		if (e->ask != ASK_CREATE)
			break;		/* it has failed already */
		answer(e, (unsigned int)m->code, "%s", m->detail);
		e->doomed = 1;
		if (e->phase == PH_START)
			life_end(e);
		break;
	case MSG_NET_FREE:
		e->net = NET_NONE;	/* it knows of none */
		break;
	case MSG_NET_ADOPT:
		e->net = NET_LOST;
		set_adopted();
		break;
	default:
		if (waits_for_net(e))
			answer(e, CODE_INTERNAL, "network: %s", m->detail);
	}
}

/* To the child that waits for it, when both are there. */
static void
netns_give(struct entry *e)
{
	if (e->netns == -1 || e->netns_fd == -1)
		return;
	if (box_give_netns(e->netns_fd, e->netns) == -1)
		log_warn("box %s: pass network namespace", e->spec.id);
	fd_close(&e->netns_fd);		/* the child then sees the end */
}

static void
net_made(struct entry *e, struct msg *m)
{
	e->net = NET_THERE;
	e->k = (uint32_t)m->body.net_made.k;
	memcpy(e->ruleset, m->body.net_made.ruleset, sizeof(e->ruleset));
	if (e->phase == PH_MAKE || e->phase == PH_START)
		e->netns = steal_fd(&m->fd);
	netns_give(e);
}

/*
 * NET_MADE, NET_OPENED, OK or ERROR.  A compromised netd can answer what was
 * asked and nothing else: each request has one answer, of one type, for one
 * entry.  It may pass any netns; what it may not do with it is decided by who
 * owns it, and the facts compare the box's with this one.
 */
int
life_on_net(struct msg *m)
{
	struct entry	*e = table_number(by_rid[m->rid % RIDS]);
	unsigned int	 type, got = m->row->type;

	if (e == NULL || e->net_type == 0 || e->net_rid != m->rid)
		return 0;
	type = e->net_type;
	if (got != MSG_ERROR && got != proto_find(type)->answer)
		return 0;
	e->net_type = 0;
	if (e->phase == PH_UP)
		table_due(e, 0);
	if (got == MSG_ERROR)
		net_refused(e, type, &m->body.error);
	else switch (type) {
	case MSG_NET_MAKE:
		net_made(e, m);
		break;
	case MSG_NET_OPEN:
		memcpy(e->ruleset, m->body.net_opened.ruleset,
		    sizeof(e->ruleset));
		if (waits_for_net(e))
			answer(e, 0, " ");
		break;
	case MSG_NET_ADOPT:
		memcpy(e->ruleset, m->body.net_opened.ruleset,
		    sizeof(e->ruleset));
		e->k = (uint32_t)m->body.net_opened.k;
		e->net = NET_THERE;
		set_adopted();
		break;
	case MSG_NET_CUT:
		if (waits_for_net(e))
			answer(e, e->code, "quarantined");
		break;
	case MSG_NET_FREE:
		e->net = NET_NONE;
		break;
	}
	if (e->phase == PH_PURGE)
		purge_step(e);
	return 1;
}

/* ---- end ------------------------------------------------------------------ */

/* What was said is cut where launch.log ends, and then heard no longer. */
static void
log_drain(struct entry *e)
{
	char	buf[4096];
	ssize_t	n;
	int	i;

	for (i = 0; i < LOG_READS && e->log_fd != -1 &&
	    (n = read(e->log_fd, buf, sizeof(buf))) != -1; i++)
		if (n == 0 || boxlog_append(e->spec.id, buf, (size_t)n) == -1)
			ev_close(&e->log_fd);
}

static void
down(struct entry *e)
{
	e->phase = PH_DOWN;
	ev_close(&e->events_fd);
	fd_close(&e->netns);
	log_drain(e);
	ev_close(&e->log_fd);
	table_due(e, 0);
	if (e->ask == ASK_KILL)
		answer(e, 0, " ");
	if (e->doomed)
		life_purge(e);
}

/* Dead is what the kernel calls so: pid 1 has ended, the cgroup is empty. */
static void
end_check(struct entry *e)
{
	/* always read: that is what ends the event */
	int	left = e->events_fd != -1 &&
		    cgroup_populated(e->events_fd) == 1;

	if (e->pidfd == -1 && !left)
		down(e);
	else
		table_due(e, mono_ms() + END_MS);
}

static void
end_kill(struct entry *e)
{
	if (cgroup_kill(e->spec.id) == -1)
		log_warnx("box %s: kill: %s", e->spec.id, box_error());
	/* a child that has not entered its cgroup yet; ESRCH is as good */
	if (e->pidfd != -1)
		(void)syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL,
		    0);
}

void
life_end(struct entry *e)
{
	e->phase = PH_END;
	e->tries = 0;
	e->nonce_live = 0;
	ev_close(&e->ready_fd);
	fd_close(&e->netns_fd);
	fd_close(&e->ctl_fd);
	if (e->events_fd == -1 &&
	    (e->events_fd = cgroup_events(e->spec.id)) != -1)
		ev_add(e->events_fd, EV_CGROUP, e->n, EPOLLPRI);
	end_kill(e);
	end_check(e);
}

/* A launch that came to nothing: the asker is told, the rest is ended. */
static void
failed(struct entry *e)
{
	log_drain(e);
	(void)boxlog_append(e->spec.id, e->why, strlen(e->why));
	log_warnx("box %s: %s", e->spec.id, e->why);
	answer(e, CODE_CREATE_FAILED, "%s", e->why);
	life_end(e);
}

/* What the child says of the step at which it failed, if anything. */
static int
ready_read(struct entry *e)
{
	char	buf[sizeof(e->why)];
	ssize_t	n;

	while ((n = read(e->ready_fd, buf, sizeof(buf) - 1)) > 0) {
		buf[n] = '\0';
		(void)str_copy(e->why, buf, sizeof(e->why)); /* cut is fine */
	}
	return n == 0;			/* end of file */
}

static void
on_pid(struct entry *e)
{
	struct pollfd		pfd = { .fd = e->pidfd, .events = POLLIN };
	struct msg_box_ended	m = { 0 };

	if (e->pidfd == -1 || poll(&pfd, 1, 0) != 1)
		return;			/* an event of an earlier box */
	ev_close(&e->pidfd);
	if (e->phase == PH_END) {
		end_check(e);
		return;
	}
	if (e->phase == PH_START) {
		if (e->ready_fd != -1)
			(void)ready_read(e);
		if (e->why[0] == '\0')
			(void)str_copy(e->why, "pid 1 has ended",
			    sizeof(e->why));
		failed(e);
		return;
	}
	log_info("box %s has ended", e->spec.id);
	answer(e, CODE_ENDED, "the box has ended");
	memcpy(m.id, e->spec.id, sizeof(m.id));
	to_apid(MSG_BOX_ENDED, 0, &m, -1);
	life_end(e);
}

static void
on_ready(struct entry *e)
{
	if (e->phase != PH_START || e->ready_fd == -1 || !ready_read(e))
		return;
	ev_close(&e->ready_fd);
	if (e->why[0] != '\0')
		failed(e);
	else
		maker_want(e, MK_CONNECT);
}

/* ---- purge ------------------------------------------------------------------ */

void
life_purge(struct entry *e)
{
	e->phase = PH_PURGE;
	e->tries = 0;
	purge_step(e);
}

static void
purge_later(struct entry *e, const char *what, const char *why)
{
	if (e->tries++ == 5) {
		log_warnx("box %s: %s: %s", e->spec.id, what, why);
		answer(e, CODE_INTERNAL, "%s: %s", what, why);
	}
	table_due(e, mono_ms() + ((uint64_t)PURGE_MS << (e->tries < 6 ?
	    e->tries : 6)));
}

/* Whatever can be done next; called at each answer and by time. */
static void
purge_step(struct entry *e)
{
	struct msg_net_free	m = { .k = e->k };

	if (e->net == NET_THERE && e->net_type == 0)
		net_ask(e, MSG_NET_FREE, &m, -1);
	if (!e->cgroup_gone && cgroup_remove(e->spec.id) == -1) {
		if (errno == EAGAIN)
			table_due(e, mono_ms());	/* next turn */
		else
			purge_later(e, "remove cgroups", box_error());
		return;
	}
	e->cgroup_gone = 1;
	if (!e->tree_gone) {
		if (e->tree_fd == -1 && e->want == MK_NONE &&
		    e->made == MK_NONE)
			maker_want(e, MK_REMOVE);
		return;
	}
	if (e->net == NET_THERE || e->net_type != 0 || e->made != MK_NONE)
		return;
	answer(e, 0, " ");
	drop(e);
}

static void
on_tree(struct entry *e)
{
	struct stat	st;

	if (e->phase != PH_PURGE || e->tree_fd == -1)
		return;
	ev_close(&e->tree_fd);
	if (fstatat(box_dir(), e->spec.id, &st, AT_SYMLINK_NOFOLLOW) == -1 &&
	    errno == ENOENT) {
		e->tree_gone = 1;
		purge_step(e);
	} else
		purge_later(e, "remove tree", "something is left");
}

/* ---- quarantine --------------------------------------------------------------- */

void
life_seal(struct entry *e, const char *field, unsigned int code)
{
	log_warnx("box %s is quarantined: %s", e->spec.id, field);
	e->sealed = 1;
	e->nonce_live = 0;
	e->code = code;
	(void)mark(e, MARK_SEALED, field);	/* logged; the freeze counts */
	if (cgroup_freeze(e->spec.id, 1) == -1) {
		/* what cannot be held is ended */
		log_warnx("box %s: freeze: %s", e->spec.id, box_error());
		answer(e, CODE_INTERNAL, "cannot be frozen, was ended");
		life_end(e);
		return;
	}
	net_cut(e);
}

/* ---- attach -------------------------------------------------------------------- */

static void
hand_over(struct entry *e)
{
	struct msg_box_attached	m;
	uint8_t			token[BOX_TOKEN];

	if (box_token(e->spec.id, token) == -1) {
		answer(e, CODE_INTERNAL, "host token: %s", strerror(errno));
		return;
	}
	memset(&m, 0, sizeof(m));
	m.token.data = token;
	m.token.len = sizeof(token);
	e->ask = ASK_NONE;
	to_apid(MSG_BOX_ATTACHED, e->rid, &m, steal_fd(&e->ctl_fd));
	explicit_bzero(token, sizeof(token));
}

void
life_attach(struct entry *e)
{
	struct pollfd	pfd = { .fd = e->ctl_fd, .events = POLLIN };

	if (e->ctl_fd != -1 && poll(&pfd, 1, 0) != 0)
		fd_close(&e->ctl_fd);	/* the runner let go of it */
	if (e->ctl_fd != -1)
		hand_over(e);
	else if (e->want == MK_NONE && e->made == MK_NONE)
		maker_want(e, MK_CONNECT);
}

static void
on_connect(struct entry *e, struct maker_ans *a)
{
	if (a->error == 0 && (e->phase == PH_START || e->phase == PH_UP)) {
		fd_close(&e->ctl_fd);
		e->ctl_fd = steal_fd(&a->fd[0]);
	}
	if (e->phase == PH_START && a->error != 0) {
		(void)str_copy(e->why, a->why, sizeof(e->why));
		failed(e);
	} else if (e->phase == PH_START) {
		e->phase = PH_UP;
		table_due(e, 0);
		answer(e, 0, " ");
	} else if (e->phase == PH_UP && e->ask == ASK_ATTACH) {
		if (a->error == 0)
			hand_over(e);
		else
			answer(e, a->error == EAGAIN ? CODE_BUSY :
			    CODE_NOT_READY, "%s", a->why);
	}
}

void
life_watch(struct entry *e, int pidfd)
{
	e->pidfd = pidfd;
	ev_add(pidfd, EV_PID, e->n, EPOLLIN);
}

static void
on_launch(struct entry *e, struct maker_ans *a)
{
	if (a->error != 0) {
		(void)str_copy(e->why, a->why, sizeof(e->why));
		failed(e);
		return;
	}
	life_watch(e, steal_fd(&a->fd[0]));
	e->ready_fd = steal_fd(&a->fd[1]);
	ev_add(e->ready_fd, EV_READY, e->n, EPOLLIN);
	e->log_fd = steal_fd(&a->fd[2]);
	ev_add(e->log_fd, EV_LOG, e->n, EPOLLIN);
	e->netns_fd = steal_fd(&a->fd[3]);
	netns_give(e);
	e->phase = PH_START;
	table_due(e, mono_ms() + START_MS);
	if (e->doomed)
		life_end(e);
}

/* ---- what comes in ---------------------------------------------------------------- */

static void
pump(void)
{
	struct entry	*e;
	unsigned int	 i;

	for (i = 0; nwant > 0 && (e = table_at(i)) != NULL; i++)
		if (e->want != MK_NONE)
			maker_try(e);
}

void
life_on_maker(struct maker_ans *a)
{
	struct entry	*e = table_number(a->n);

	if (e == NULL || e->made != a->op)
		fatalx("the maker answers what was not asked");
	e->made = MK_NONE;
	switch (a->op) {
	case MK_LAUNCH:
		on_launch(e, a);
		break;
	case MK_CONNECT:
		on_connect(e, a);
		break;
	case MK_REMOVE:
		if (a->error != 0) {
			purge_later(e, "remove tree", a->why);
			break;
		}
		e->tree_fd = steal_fd(&a->fd[0]);
		ev_add(e->tree_fd, EV_TREE, e->n, EPOLLIN);
		break;
	case MK_NONE:
	case MK_SET:
	default:
		break;
	}
	if (e->phase == PH_PURGE && a->op == MK_CONNECT)
		purge_step(e);
	pump();
}

void
life_on_event(enum ev ev, unsigned int n)
{
	struct entry	*e = table_number(n);

	if (e == NULL)
		return;			/* gone in this very turn */
	switch (ev) {
	case EV_PID:
		on_pid(e);
		break;
	case EV_READY:
		on_ready(e);
		break;
	case EV_LOG:
		log_drain(e);
		break;
	case EV_CGROUP:
		if (e->phase == PH_END)
			end_check(e);
		break;
	case EV_TREE:
		on_tree(e);
		break;
	case EV_SIGNAL:
	case EV_MAKER:
	case EV_CHAN:
	case EV_DAEMON:
		break;
	}
}

void
life_on_due(struct entry *e)
{
	if (e->net_type != 0 && mono_ms() >= e->net_due) {
		set_fault("netd does not answer %s", proto_name(e->net_type));
		return;
	}
	switch (e->phase) {
	case PH_START:
		(void)str_copy(e->why, "the runner is not up in time",
		    sizeof(e->why));
		failed(e);
		break;
	case PH_END:
		if (++e->tries == END_TRIES)
			answer(e, CODE_INTERNAL, "processes do not end");
		end_kill(e);
		end_check(e);
		break;
	case PH_PURGE:
		purge_step(e);
		break;
	case PH_FREE:
	case PH_MAKE:
	case PH_UP:
	case PH_DOWN:
		break;
	}
}

void
life_set_down(void)
{
	struct entry	*e;
	unsigned int	 n;

	for (n = 0; n < TABLE_MAX; n++) {
		if ((e = table_number(n)) == NULL)
			continue;
		e->ask = ASK_NONE;
		e->net_type = 0;
		e->net = NET_NONE;
		if (e->phase == PH_UP)
			table_due(e, 0);
		if (e->want == MK_LAUNCH) {
			drop(e);	/* nothing was made */
			continue;
		}
		if (e->phase == PH_MAKE || e->phase == PH_START)
			e->doomed = 1;
		if (e->phase == PH_START)
			life_end(e);
		else if (e->phase == PH_PURGE)
			purge_step(e);
	}
}
