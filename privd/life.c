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
 * An entry keeps at most one asker (beside facts and health), one request of
 * each kind to the maker and one to netd.
 * When the set of daemons ends, askers and requests to netd are forgotten;
 * creates that were under way become `doomed': nobody will ask for their
 * end, so they go on to END, DOWN and PURGE by themselves.  Whatever else is
 * DOWN waits for the next apid to reconcile it.
 *
 * `sealed' (quarantined) is beside the phases: frozen, cut off, marked on
 * disk before it is frozen.  A release undoes it in two steps: `trial', in
 * which the box runs without its network and any end of the set, or ours,
 * seals it again, since the mark stands; then the mark goes.
 */
#include <sys/epoll.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "privd.h"

#define NET_MS		60000	/* netd's answer, behind many others */
#define START_MS	60000	/* from launch to a runner, likewise */
#define LOG_READS	16	/* of one turn: the writer may be hostile */
#define END_MS		1000	/* SIGKILL is sent again */
#define END_TRIES	10	/* then the asker is told */
#define PURGE_MS	20	/* doubled, at most 64 times */
#define RIDS		8192	/* more than requests to netd at one time */

static unsigned int	 by_rid[RIDS];	/* net_rid to number */

static void	 purge_step(struct entry *);

/* The asker's one answer; code 0: what was asked is done. */
static void __attribute__((format(printf, 3, 4)))
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

int
life_on_disk(const char *id)
{
	struct stat	st;

	return fstatat(PRIVD_FD_BOXES, id, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    errno != ENOENT;
}

static void
drop(struct entry *e)
{
	maker_forget(e);
	table_drop(e);
}

/* ---- netd -------------------------------------------------------------- */

/*
 * When its phase wants to be looked at, 0: never; beside it goes the moment
 * by which netd must have answered.
 */
static void
due(struct entry *e, uint64_t ms)
{
	e->due = ms;
	table_due(e, e->net_type != 0 && (ms == 0 || e->net_due < ms) ?
	    e->net_due : ms);
}

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
	due(e, e->due);
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

/*
 * The mark on disk and the network's opening go side by side: until both are
 * done the asker has no answer, and a box whose asker has none is removed by
 * whoever starts next.
 */
void
life_open(struct entry *e)
{
	struct msg_net_open	m = { .k = e->k };

	if (e->net != NET_THERE || e->net_type != 0) {
		answer(e, CODE_INTERNAL, "network namespace is not there");
		return;
	}
	maker_want(e, MK_OPENED);
	net_ask(e, MSG_NET_OPEN, &m, -1);
}

static void
open_step(struct entry *e)
{
	if (e->ask == ASK_NONCE && e->opened && e->net_type == 0)
		answer(e, 0, " ");
}

static void
on_opened(struct entry *e, const struct maker_ans *a)
{
	e->opened = a->error == 0;
	if (!e->opened && e->ask == ASK_NONCE)
		answer(e, CODE_INTERNAL, "%s", a->why);
	open_step(e);
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
		m.open = e->opened && !e->sealed;
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
		/* nobody seals or follows it, wherever it leads by now */
		if (!e->sealed)
			life_seal(e, "network", 0);
		set_adopted();
		break;
	default:
		if (type == MSG_NET_OPEN && e->sealed)
			break;		/* the asker waits for the cut */
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
	if (fds_send(e->netns_fd, "", 1, &e->netns, 1, 0) == -1)
		log_warn("box %s: pass network namespace", e->spec.id);
	fd_close(&e->netns_fd);		/* the child then sees the end */
}

int
life_netns(struct entry *e, int fd)
{
	struct stat	 st = { .st_ino = 0 };
	struct entry	*o;
	unsigned int	 i;

	e->netns = fd;
	if (fd != -1 && fstat(fd, &st) == -1)
		return -1;
	e->net_ino = st.st_ino;
	for (i = 0; fd != -1 && (o = table_at(i)) != NULL; i++)
		if (o != e && o->netns != -1 && o->net_ino == e->net_ino)
			return -1;
	return 0;
}

static int
net_made(struct entry *e, struct msg *m)
{
	e->net = NET_THERE;
	e->k = (uint32_t)m->body.net_made.k;
	memcpy(e->ruleset, m->body.net_made.ruleset, sizeof(e->ruleset));
	if ((e->phase == PH_MAKE || e->phase == PH_START) &&
	    life_netns(e, steal_fd(&m->fd)) == -1)
		return 0;
	netns_give(e);
	return 1;
}

/*
 * NET_MADE, NET_OPENED, OK or ERROR.  A compromised netd can answer what was
 * asked and nothing else: each request has one answer, of one type, for one
 * entry.  It may pass any netns that no box has; the maker holds its owner
 * against root's, and the box's own against this one.
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
	due(e, e->due);
	if (got == MSG_ERROR)
		net_refused(e, type, &m->body.error);
	else switch (type) {
	case MSG_NET_MAKE:
		if (!net_made(e, m))
			return 0;
		break;
	case MSG_NET_ADOPT:
		e->k = (uint32_t)m->body.net_opened.k;
		e->net = NET_THERE;
		set_adopted();
		/* FALLTHROUGH */
	case MSG_NET_OPEN:
		memcpy(e->ruleset, m->body.net_opened.ruleset,
		    sizeof(e->ruleset));
		e->network = m->body.net_opened.network;
		open_step(e);		/* whoever has waited for it */
		break;
	case MSG_NET_CUT:
		if (waits_for_net(e))
			answer(e, e->code, "quarantined");
		break;
	case MSG_NET_FREE:
		e->net = NET_NONE;
		break;
	}
	if (type == MSG_NET_OPEN && e->sealed && !maker_due(e, MK_SEAL))
		net_cut(e);		/* it was sealed meanwhile */
	if (e->phase == PH_PURGE)
		purge_step(e);
	return 1;
}

/* ---- end --------------------------------------------------------------- */

/* Of what was said the older half goes once; then nothing is heard any more. */
static void
log_drain(struct entry *e)
{
	char	buf[4096];
	ssize_t	n;
	int	i;

	for (i = 0; i < LOG_READS && e->log_fd != -1 &&
	    (n = read(e->log_fd, buf, sizeof(buf))) != -1; i++)
		if (n == 0 || boxlog_append(e, buf, (size_t)n) == -1)
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
	due(e, 0);
	if (e->ask == ASK_KILL)
		answer(e, 0, " ");
	if (e->doomed)
		life_purge(e);
}

/* Whether cgroup.events tells of a process; read, which ends the event. */
static int
populated(const struct entry *e)
{
	char		 buf[256];
	const char	*p;
	ssize_t		 n = pread(e->events_fd, buf, sizeof(buf) - 1, 0);

	if (n == -1)		/* no cgroup, or no more: ENODEV */
		return 0;
	buf[n] = '\0';
	return (p = strstr(buf, "populated ")) == NULL || p[10] != '0';
}

/* Dead is what the kernel calls so: pid 1 has ended, the cgroup is empty. */
static void
end_check(struct entry *e)
{
	int	left = populated(e);

	if (e->pidfd == -1 && !left && !maker_due(e, MK_KILL))
		down(e);
	else
		due(e, mono_ms() + END_MS);
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
	maker_want(e, MK_KILL);
	due(e, mono_ms() + END_MS);
}

static void
on_kill(struct entry *e, const struct maker_ans *a, int *fds)
{
	if (a->error != 0)
		log_warnx("box %s: %s", e->spec.id, a->why);
	if (e->phase != PH_END)
		return;
	if (e->events_fd == -1 && fds[0] != -1) {
		e->events_fd = steal_fd(&fds[0]);
		ev_add(e->events_fd, EV_CGROUP, e->n, EPOLLPRI);
	}
	end_check(e);
}

/* A launch that came to nothing: the asker is told, the rest is ended. */
static void
failed(struct entry *e, unsigned int code)
{
	log_drain(e);
	(void)boxlog_append(e, e->why, strlen(e->why));
	log_warnx("box %s: %s", e->spec.id, e->why);
	answer(e, code, "%s", e->why);
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
		failed(e, CODE_CREATE_FAILED);
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
		failed(e, CODE_CREATE_FAILED);
	else
		maker_want(e, MK_CONNECT);
}

/* ---- purge ------------------------------------------------------------- */

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
	due(e, mono_ms() + ((uint64_t)PURGE_MS << (e->tries < 6 ?
	    e->tries : 6)));
}

/* Whatever can be done next; called at each answer and by time. */
static void
purge_step(struct entry *e)
{
	struct msg_net_free	m = { .k = e->k };

	if (e->net == NET_THERE && e->net_type == 0)
		net_ask(e, MSG_NET_FREE, &m, -1);
	if (!e->cgroup_gone) {
		maker_want(e, MK_CGROUP);
		return;
	}
	if (!e->tree_gone) {
		if (e->tree_fd == -1)
			maker_want(e, MK_TREE);
		return;
	}
	if (e->net == NET_THERE || e->net_type != 0 || e->made != 0)
		return;
	answer(e, 0, " ");
	drop(e);
}

static void
on_cgroup_gone(struct entry *e, const struct maker_ans *a)
{
	e->cgroup_gone = a->error == 0;
	if (a->error != 0 && a->error != EAGAIN)
		purge_later(e, "remove cgroups", a->why);
	else
		purge_step(e);
}

static void
on_tree_begun(struct entry *e, const struct maker_ans *a, int *fds)
{
	if (a->error != 0) {
		purge_later(e, "remove tree", a->why);
		return;
	}
	if (fds[0] != -1) {
		e->tree_fd = steal_fd(&fds[0]);
		ev_add(e->tree_fd, EV_TREE, e->n, EPOLLIN);
		return;
	}
	e->tree_gone = 1;
	purge_step(e);
}

static void
on_tree(struct entry *e)
{
	if (e->phase != PH_PURGE || e->tree_fd == -1)
		return;
	ev_close(&e->tree_fd);
	e->tree_gone = !life_on_disk(e->spec.id);
	if (e->tree_gone)
		purge_step(e);
	else
		purge_later(e, "remove tree", "something is left");
}

/* ---- quarantine -------------------------------------------------------- */

void
life_seal(struct entry *e, const char *field, unsigned int code)
{
	log_warnx("box %s is quarantined: %s", e->spec.id, field);
	e->sealed = 1;
	e->trial = 0;
	e->nonce_live = 0;
	e->code = code;
	(void)str_copy(e->why, field, sizeof(e->why));
	maker_want(e, MK_SEAL);
}

static void
on_sealed(struct entry *e, const struct maker_ans *a)
{
	if (e->phase != PH_UP)
		return;			/* it is being ended */
	if (a->error == 0) {
		net_cut(e);
		return;
	}
	/* what cannot be held is ended */
	log_warnx("box %s: quarantine: %s", e->spec.id, a->why);
	answer(e, CODE_INTERNAL, "cannot be frozen, was ended");
	life_end(e);
}

static void
on_released(struct entry *e, const struct maker_ans *a)
{
	if (e->ask != ASK_RELEASE)
		return;			/* it is being sealed or ended */
	if (a->error != 0)
		answer(e, a->error == EPERM ? CODE_PROOF_DIFFERS : CODE_BUSY,
		    "%s", a->why);
	else if (e->trial) {
		e->trial = 0;
		e->ask = ASK_NONCE;	/* its network opens as then */
		life_open(e);
	} else {
		e->trial = 1;
		e->sealed = e->frozen = 0;
		answer(e, 0, " ");
	}
}

/* ---- attach ------------------------------------------------------------ */

static void
hand_over(struct entry *e)
{
	struct msg_box_attached	m = { .token = { e->token, BOX_TOKEN } };

	e->ask = ASK_NONE;
	to_apid(MSG_BOX_ATTACHED, e->rid, &m, steal_fd(&e->ctl_fd));
}

void
life_attach(struct entry *e)
{
	struct pollfd	pfd = { .fd = e->ctl_fd, .events = POLLIN };

	if (e->ctl_fd != -1 && poll(&pfd, 1, 0) != 0)
		fd_close(&e->ctl_fd);	/* the runner let go of it */
	if (e->ctl_fd != -1)
		hand_over(e);
	else
		maker_want(e, MK_CONNECT);
}

static void
on_connect(struct entry *e, const struct maker_ans *a, int *fds)
{
	if (a->error == 0 && (e->phase == PH_START || e->phase == PH_UP)) {
		fd_close(&e->ctl_fd);
		e->ctl_fd = steal_fd(&fds[0]);
	}
	if (e->phase == PH_START && a->error != 0) {
		(void)str_copy(e->why, a->why, sizeof(e->why));
		failed(e, CODE_CREATE_FAILED);
	} else if (e->phase == PH_START) {
		e->phase = PH_UP;
		due(e, 0);
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
on_launch(struct entry *e, const struct maker_ans *a, int *fds)
{
	e->file_fd = steal_fd(&fds[MK_RUN_FILE]);
	if (a->error != 0) {
		(void)str_copy(e->why, a->why, sizeof(e->why));
		failed(e, a->error == ENOMEM ? CODE_HOST_MEMORY :
		    a->error == ENOSPC ? CODE_DISK_FLOOR :
		    CODE_CREATE_FAILED);
		return;
	}
	life_watch(e, steal_fd(&fds[MK_RUN_PID]));
	e->ready_fd = steal_fd(&fds[MK_RUN_READY]);
	ev_add(e->ready_fd, EV_READY, e->n, EPOLLIN);
	e->log_fd = steal_fd(&fds[MK_RUN_LOG]);
	ev_add(e->log_fd, EV_LOG, e->n, EPOLLIN);
	e->netns_fd = steal_fd(&fds[MK_RUN_NETNS]);
	netns_give(e);
	e->phase = PH_START;
	due(e, mono_ms() + START_MS);
	if (e->doomed)
		life_end(e);
}

/* ---- what comes in ----------------------------------------------------- */

static void
on_maker(struct entry *e, struct maker_ans *a, int *fds)
{
	if (a->op == MK_LAUNCH)
		on_launch(e, a, fds);
	else if (a->op == MK_CONNECT)
		on_connect(e, a, fds);
	else if (a->op == MK_FACTS)
		handle_facts(e, a);
	else if (a->op == MK_HEALTH)
		handle_health(e, a);
	else if (a->op == MK_OPENED)
		on_opened(e, a);
	else if (a->op == MK_SEAL)
		on_sealed(e, a);
	else if (a->op == MK_RELEASE)
		on_released(e, a);
	else if (a->op == MK_KILL)
		on_kill(e, a, fds);
	else if (a->op == MK_CGROUP)
		on_cgroup_gone(e, a);
	else if (a->op == MK_TREE)
		on_tree_begun(e, a, fds);
	if (a->op != MK_CGROUP && a->op != MK_TREE && e->phase == PH_PURGE)
		purge_step(e);
}

void
life_on_maker(struct maker_ans *a, int *fds)
{
	struct entry	*e = table_number(a->n);

	if (e != NULL) {
		maker_done(e, a->op);
		on_maker(e, a, fds);
	}
	maker_pump();
}

void
life_on_event(enum ev ev, unsigned int n)
{
	struct entry	*e = table_number(n);

	if (e == NULL)
		return;			/* gone in this very turn */
	if (ev == EV_PID)
		on_pid(e);
	else if (ev == EV_READY)
		on_ready(e);
	else if (ev == EV_LOG)
		log_drain(e);
	else if (ev == EV_CGROUP && e->phase == PH_END)
		end_check(e);
	else if (ev == EV_TREE)
		on_tree(e);
}

void
life_on_due(struct entry *e)
{
	if (e->net_type != 0 && mono_ms() >= e->net_due) {
		set_fault("netd does not answer %s", proto_name(e->net_type));
		return;
	}
	due(e, 0);
	if (e->phase == PH_START) {
		(void)str_copy(e->why, "the runner is not up in time",
		    sizeof(e->why));
		failed(e, CODE_CREATE_FAILED);
	} else if (e->phase == PH_END) {
		if (++e->tries == END_TRIES)
			answer(e, CODE_INTERNAL, "processes do not end");
		maker_want(e, MK_KILL);
		end_check(e);
	} else if (e->phase == PH_PURGE)
		purge_step(e);
}

/* apid, who would have gone on with what is on trial, is not there. */
void
life_untried(void)
{
	struct entry	*e;
	unsigned int	 i;

	for (i = 0; (e = table_at(i)) != NULL; i++)
		if (e->trial || e->ask == ASK_RELEASE) {
			e->ask = ASK_NONE;
			life_seal(e, "as before", 0);
		}
}

void
life_set_down(void)
{
	struct entry	*e;
	unsigned int	 n;

	life_untried();
	for (n = 0; n < TABLE_MAX; n++) {
		if ((e = table_number(n)) == NULL)
			continue;
		e->ask = ASK_NONE;
		e->facts_rid = e->health_rid = 0;
		e->net_type = 0;
		e->net = NET_NONE;
		due(e, e->due);
		if (e->want & 1U << MK_LAUNCH) {
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
