/*
 * uplinks.c: each slirp4netns from its start to its end.
 *
 * Theory of operation.  An uplink is known by k.  Its life:
 *
 *	FOUND		outlived the daemons of before; netd may keep it
 *	WAITING		for its turn to start
 *	STARTING	a child is on its way to be slirp4netns
 *	UP		it said that packets can go
 *	ENDING		SIGKILL was sent to all in its cgroup
 *
 *	(none) -> FOUND		at start
 *	(none) -> WAITING	by UPLINK_START
 *	WAITING -> STARTING	in their order, while fewer than STARTS are
 *	FOUND -> UP		by UPLINK_START with keep 1, if it had said so
 *	STARTING -> UP		by its word, within START_MS
 *	any -> ENDING		by UPLINK_END, by its death, by a failure;
 *				FOUND also by DAEMON_GO and another start;
 *				WAITING by DAEMON_STOP
 *	ENDING -> WAITING	as below, if a start was asked for since
 *	ENDING -> (none)	when its cgroup is empty, its child reaped,
 *				and the cgroup removed
 *
 * An UPLINK_START that meets an ENDING one waits for its end.  After the
 * death of very many all of them are asked for at once: they start by turns,
 * so that each has the processors, and the time that it may take.  One that
 * was on its way when its uplinkd ended is not kept: its word went nowhere,
 * and that it was heard stands in its cgroup (cgroup_up()).  What runs
 * where is asked of the kernel: an uplink is the processes in the cgroup k,
 * whoever is the parent of them; no pid is kept but that of a child that was
 * not reaped.
 *
 * Must never: tell that one is up which did not say so; signal a number.
 */
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "netns_owner.h"
#include "ulid.h"
#include "uplinkd.h"
#include "xmalloc.h"

#define START_MS	5000	/* until it says that packets can go */
#define STARTS		16	/* at one time: each takes one processor some
				 * 20 ms, and is a process of netd's uid until
				 * it has its own (RLIMIT_NPROC) */
#define AGAIN_MS	50	/* an end is looked after so often */
#define END_TRIES	100	/* then it is told as one that does not end */

enum state { FOUND, WAITING, STARTING, UP, ENDING };

struct uplink {
	TAILQ_ENTRY(uplink)	 entry;	/* of the list of its state */
	enum state		 state;
	unsigned int		 k;
	pid_t			 pid;	/* a child, not reaped; 0: none */
	int			 events; /* owned: cgroup.events */
	int			 ready;	/* owned: from the child, STARTING */
	int			 netns;	/* owned: for a start to come */
	int			 ipv6;
	int			 tell;	/* UPLINK_DOWN, when it has ended */
	unsigned int		 tries;	/* of an end */
	uint64_t		 due;
	uint32_t		 start_rid, end_rid;	/* to answer; 0: none */
};

TAILQ_HEAD(uplinks, uplink);

static struct uplink		*by_k[UPLINK_KMAX + 1];	/* owned */
static struct uplinks		 waiting = TAILQ_HEAD_INITIALIZER(waiting);
static struct uplinks		 busy = TAILQ_HEAD_INITIALIZER(busy);
static unsigned int		 nbusy, nstarting;	/* of nbusy */
static struct uplinks_conf	 conf;

/* ---- the table --------------------------------------------------------- */

static struct uplink *
up_new(unsigned int k)
{
	struct uplink	*u = xcalloc(1, sizeof(*u));

	u->k = k;
	u->events = u->ready = u->netns = -1;
	return by_k[k] = u;
}

static void
up_free(struct uplink *u)
{
	by_k[u->k] = NULL;
	/* epoll forgets them when no child of ours is left that has copies */
	fd_close(&u->events);
	fd_close(&u->ready);
	fd_close(&u->netns);
	free(u);
}

/* Those of this state, in the order in which they came there; NULL: none. */
static struct uplinks *
list_of(enum state s)
{
	return s == WAITING ? &waiting : s == STARTING || s == ENDING ? &busy :
	    NULL;
}

static void
up_move(struct uplink *u, enum state to)
{
	struct uplinks	*from = list_of(u->state), *into = list_of(to);

	if (from != NULL)
		TAILQ_REMOVE(from, u, entry);
	if (into != NULL)
		TAILQ_INSERT_TAIL(into, u, entry);
	nbusy += (unsigned int)(into == &busy) - (unsigned int)(from == &busy);
	nstarting += (unsigned int)(to == STARTING) -
	    (unsigned int)(u->state == STARTING);
	u->state = to;
	u->due = mono_ms() + (to == STARTING ? START_MS : AGAIN_MS);
}

static int
watch(int fd, uint32_t what, enum ev ev, unsigned int k)
{
	struct epoll_event	e = { .events = what,
				    .data.u64 = EV_DATA(ev, k) };

	return fd == -1 ? -1 : epoll_ctl(conf.ep, EPOLL_CTL_ADD, fd, &e);
}

/* ---- answers ------------------------------------------------------------- */

static void
started(struct uplink *u, int kept)
{
	struct msg_uplink_started	m = { .k = u->k,
					    .kept = (uint64_t)kept,
					    .ipv6 = (uint64_t)u->ipv6 };

	uplinkd_sent(chan_send(conf.netd, MSG_UPLINK_STARTED, u->start_rid,
	    &m, -1));
	u->start_rid = 0;
}

static void
start_failed(struct uplink *u, const char *why)
{
	if (u->start_rid == 0)
		return;
	log_debug("uplink %u: %s", u->k, why);	/* netd tells of it */
	uplinkd_sent(chan_error(conf.netd, u->start_rid, CODE_INTERNAL, "%s",
	    why));
	u->start_rid = 0;
}

/* A start that has had no turn yet, if there is one, will have none. */
static void
start_drop(struct uplink *u, const char *why)
{
	start_failed(u, why);
	fd_close(&u->netns);
}

/* ---- the end --------------------------------------------------------------- */

/* Kills what is in it, and a child that is not there yet. */
static void
up_kill(struct uplink *u)
{
	if (u->pid != 0)	/* not reaped: its number is its own */
		(void)kill(u->pid, SIGKILL);	/* or by its cgroup */
	if (cgroup_kill(u->k) == -1)
		log_warnx("uplink %u: %s", u->k, cgroup_why());
}

static void
up_end(struct uplink *u)
{
	if (u->state != ENDING)
		u->tries = 0;
	up_move(u, ENDING);
	fd_close(&u->ready);
	up_kill(u);
}

/* Nothing of it is left. */
static void
up_gone(struct uplink *u)
{
	struct msg_uplink_down	m = { .k = u->k };

	if (u->end_rid != 0)
		uplinkd_sent(chan_ok(conf.netd, u->end_rid));
	else if (u->tell)
		uplinkd_sent(chan_send(conf.netd, MSG_UPLINK_DOWN, 0, &m,
		    -1));
	u->end_rid = 0;
	u->tell = 0;
	fd_close(&u->events);
	if (u->netns != -1) {
		up_move(u, WAITING);
		return;
	}
	up_move(u, FOUND);	/* out of the list */
	up_free(u);
}

/* Whether it has ended; if so it may be freed. */
static void
end_look(struct uplink *u)
{
	if (u->pid != 0 || cgroup_populated(u->events))
		return;
	if (cgroup_remove(u->k) == 0)
		up_gone(u);
}

static void
end_again(struct uplink *u)
{
	u->due = mono_ms() + AGAIN_MS;
	if (++u->tries % END_TRIES == 0) {
		log_warnx("uplink %u does not end: %s", u->k, cgroup_why());
		if (u->end_rid != 0)
			uplinkd_sent(chan_error(conf.netd, u->end_rid,
			    CODE_BUSY, "it does not end"));
		u->end_rid = 0;
		start_drop(u, "the one before does not end");
	}
	up_kill(u);
	end_look(u);
}

/* ---- the start ------------------------------------------------------------- */

/* The user namespace that owns a netns, if it is this k's; else -1. */
static int
owner(int netns, unsigned int k)
{
	unsigned int	is = 0;
	auto_close int	un = netns_owner(netns, &conf.u1, &is);

	return is == k ? steal_fd(&un) : -1;
}

/* Whether the host has a route to the open internet; no packet is sent. */
static int
has_ipv6(void)
{
	struct sockaddr_in6	sa = { .sin6_family = AF_INET6,
				    .sin6_port = htons(9) };
	auto_close int		fd = socket(AF_INET6, SOCK_DGRAM |
				    SOCK_CLOEXEC, 0);

	sa.sin6_addr.s6_addr[0] = 0x20;		/* 2000::1 */
	sa.sin6_addr.s6_addr[15] = 1;
	return fd != -1 &&
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
}

static const char *
up_fork(struct uplink *u, int netns, int un)
{
	struct child	c = { .k = u->k, .netns = netns, .un = un,
			    .ipv6 = u->ipv6, .talk = conf.talk,
			    .connections = conf.connections };
	auto_close int	w = -1;
	int		p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1)
		return "pipe";
	u->ready = p[0];
	c.ready = w = p[1];
	if (watch(u->ready, EPOLLIN, EV_READY, u->k) == -1)
		return "watch it";
	if ((u->pid = fork()) == 0)
		child_run(&c);
	if (u->pid != -1)
		return NULL;
	u->pid = 0;
	return "fork";
}

/* Its turn has come; failing, it is ended and start_rid answered. */
static void
up_start(struct uplink *u)
{
	auto_close int	netns = steal_fd(&u->netns);
	auto_close int	un = owner(netns, u->k);
	const char	*step = NULL;

	up_move(u, STARTING);
	u->ipv6 = has_ipv6();
	if (un == -1) {
		start_failed(u, "the network namespace is not k's");
	} else if (cgroup_make(u->k) == -1) {
		start_failed(u, cgroup_why());
	} else {
		u->events = cgroup_events(u->k);
		if (watch(u->events, EPOLLPRI, EV_CGROUP, u->k) == -1)
			step = "watch its cgroup";
		else
			step = up_fork(u, netns, un);
		if (step == NULL)
			return;
		log_warn("uplink %u: %s", u->k, step);
		start_failed(u, step);
	}
	up_end(u);
	end_look(u);
}

/* "1": packets can go; other text tells what failed. */
static void
on_ready(struct uplink *u)
{
	char	buf[128];
	ssize_t	n = read(u->ready, buf, sizeof(buf) - 1);

	if (n == -1 && errno == EAGAIN)
		return;
	if (n == 1 && buf[0] == '1' && cgroup_up(u->k) == 0) {
		up_move(u, UP);
		fd_close(&u->ready);
		log_debug("uplink %u: up%s", u->k, u->ipv6 ? ", with IPv6" :
		    "");
		started(u, 0);
		return;
	}
	buf[n > 0 ? n : 0] = '\0';
	start_failed(u, n > 1 ? buf : n == 1 ? cgroup_why() :
	    "slirp4netns has ended before it was ready");
	up_end(u);
}

/* ---- what happens to them --------------------------------------------------- */

/* died: the child that became it; else its cgroup may be empty. */
static void
up_look(struct uplink *u, int died)
{
	if (u->state == STARTING)
		return;			/* its pipe tells, and why */
	if (u->state == WAITING)
		return;			/* it is of the one before */
	if (u->state != ENDING) {
		if (!died && cgroup_populated(u->events))
			return;
		u->tell = u->state == UP;
		if (u->tell)
			log_warnx("uplink %u: slirp4netns has ended", u->k);
		up_end(u);
	}
	end_look(u);
}

void
uplinks_event(enum ev ev, unsigned int k)
{
	struct uplink	*u = by_k[k];

	if (u == NULL)
		return;			/* gone in this very turn */
	if (ev == EV_CGROUP)
		up_look(u, 0);
	else if (u->state == STARTING)
		on_ready(u);
}

void
uplinks_reap(void)
{
	struct uplink	*u;
	unsigned int	 k;
	pid_t		 pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (k = 1; k <= UPLINK_KMAX; k++) {
			if ((u = by_k[k]) == NULL || u->pid != pid)
				continue;
			u->pid = 0;
			up_look(u, 1);
			break;
		}
}

int
uplinks_tick(void)
{
	struct uplink	*u, *next;
	uint64_t	 now = mono_ms(), least = UINT64_MAX;

	for (u = TAILQ_FIRST(&busy); u != NULL; u = next) {
		next = TAILQ_NEXT(u, entry);
		if (now < u->due)
			continue;
		if (u->state == STARTING) {
			start_failed(u, "slirp4netns is not ready in time");
			up_end(u);
		} else
			end_again(u);
	}
	while (nstarting < STARTS && (u = TAILQ_FIRST(&waiting)) != NULL)
		up_start(u);
	TAILQ_FOREACH(u, &busy, entry)
		least = u->due < least ? u->due : least;
	if (least == UINT64_MAX)
		return -1;
	return least <= now ? 0 : (int)(least - now);
}

unsigned int
uplinks_busy(void)
{
	return nbusy;
}

/* ---- requests ----------------------------------------------------------------- */

/*
 * Hostile: netd gets a slirp4netns with a constant command line for a netns
 * that belongs to a user namespace below U1, owned by the very k that it
 * names, which only netd's maker can make; one for each k, in the cgroup k,
 * as the uid k, so bounded in number, memory and processes.  What it gains
 * is what its boxes have anyway, the way out, in the host's network
 * namespace: whoever is netd reaches the host's own addresses and private
 * networks through it, and what answers on 127.0.0.0/8 not, but for port 53
 * of a resolver there.
 */
void
uplinkd_on_start(struct msg *m)
{
	const struct msg_uplink_start	*b = &m->body.uplink_start;
	struct uplink			*u = by_k[b->k];

	if (u != NULL && (u->start_rid != 0 || u->netns != -1 ||
	    u->state == UP)) {
		uplinkd_sent(chan_error(conf.netd, m->rid, CODE_EXISTS,
		    "uplink %u is there", u->k));
		return;
	}
	if (u == NULL) {
		u = up_new((unsigned int)b->k);
		u->start_rid = m->rid;
		u->netns = steal_fd(&m->fd);
		up_move(u, WAITING);
		return;
	}
	u->start_rid = m->rid;
	if (u->state == FOUND && b->keep != 0 && cgroup_was_up(u->k)) {
		u->ipv6 = has_ipv6();
		up_move(u, UP);
		started(u, 1);
		return;
	}
	u->netns = steal_fd(&m->fd);
	up_end(u);
	end_look(u);
}

/*
 * Hostile: ends what netd may have started or kept, in a cgroup of this
 * number that lies among ours; nothing else.
 */
void
uplinkd_on_end(const struct msg *m)
{
	struct uplink	*u = by_k[m->body.uplink_end.k];

	if (u == NULL) {
		uplinkd_sent(chan_ok(conf.netd, m->rid));
		return;
	}
	/* also one that waits for an end that was asked for before */
	start_drop(u, "it was ended while it was started");
	if (u->end_rid != 0) {
		uplinkd_sent(chan_error(conf.netd, m->rid, CODE_BUSY,
		    "uplink %u is being ended", u->k));
		return;
	}
	u->end_rid = m->rid;
	up_end(u);
	end_look(u);
}

/* ---- those of before ---------------------------------------------------------- */

static void
on_found(unsigned int k)
{
	struct uplink	*u;

	if (by_k[k] != NULL)
		return;			/* in another hierarchy, too */
	u = up_new(k);
	u->events = cgroup_events(k);
	if (watch(u->events, EPOLLPRI, EV_CGROUP, k) == 0 &&
	    cgroup_populated(u->events)) {
		u->state = FOUND;
		return;
	}
	up_move(u, ENDING);	/* empty, or not where it is tracked */
}

void
uplinks_init(const struct uplinks_conf *c)
{
	conf = *c;
	if (cgroup_list(on_found) == -1)
		fatalx("%s", cgroup_why());
}

void
uplinks_go(void)
{
	struct uplink	*u;
	unsigned int	 k, n = 0;

	for (k = 1; k <= UPLINK_KMAX; k++) {
		if ((u = by_k[k]) == NULL || u->state != FOUND)
			continue;
		n++;
		up_end(u);
		end_look(u);
	}
	if (n > 0)
		log_info("%u uplinks of nobody were ended", n);
}

void
uplinks_stop(void)
{
	struct uplink	*u;
	unsigned int	 k;

	for (k = 1; k <= UPLINK_KMAX; k++) {
		if ((u = by_k[k]) == NULL || u->netns == -1)
			continue;
		start_drop(u, "uplinkd was told to stop");
		if (u->state == WAITING) {
			up_end(u);
			end_look(u);
		}
	}
}
