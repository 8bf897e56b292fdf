/*
 * health.c: whether boxes are whole, by the kernel's word.
 *
 * Each box is looked at once in POLL_S seconds, a few at a time.  privd
 * reads its cgroup, limits and processes, netd lists its ruleset; only then
 * is the runner's own ping looked at, which can make things worse and never
 * better.  What ABSENT means for the state is runner.c's (box_ended).
 */
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define POLL_S		10
#define NET_IS_OPEN	1		/* net_status_is.state */

struct poll {
	struct box	*box;			/* referenced */
	unsigned int	 due;			/* answers */
	enum wb_health	 health;
	char		 part[64];
	const char	*net;			/* what is wrong, or NULL */
	int		 counted;		/* as disk_seen() wants to know */
	void		(*fn)(struct box *, void *);	/* or NULL */
	void		*arg;
};

static struct event	tick;
static char		cursor[27];		/* the last one looked at */

static int
poll_due(const struct box *b)
{
	return b->boot == NULL && b->removing < REMOVE_KILL && !b->polled &&
	    (b->state == BOX_READY || b->state == BOX_DRAINING ||
	    b->state == BOX_QUARANTINED);
}

static void
poll_tell(struct poll *p)
{
	struct box	*b = p->box;

	b->polled = 0;
	if (!poll_due(b))
		;			/* it moved on meanwhile */
	else if (p->health == ABSENT)
		box_ended(b);
	else if (b->state == BOX_QUARANTINED)
		box_health(b, UNKNOWN, "");	/* frozen: not observed */
	else if (b->frozen)
		box_health(b, SUSPECT, code_name(CODE_DISK_FLOOR));
	else if (p->health != HEALTHY)
		box_health(b, p->health, p->part);
	else if (p->net != NULL)
		box_health(b, SUSPECT, p->net);
	else if (b->runner == NULL)
		box_unheard(b);
	else if (b->pinged > 1)
		box_health(b, SUSPECT, "runner");
	else
		box_health(b, HEALTHY, "");
}

static void
poll_answered(struct poll *p)
{
	if (--p->due != 0)
		return;
	poll_tell(p);
	if (p->fn != NULL)
		p->fn(p->box, p->arg);
	box_unref(p->box);
	free(p);
}

static void
poll_privd(void *arg, const struct msg *m)
{
	struct poll	*p = arg;

	if (m->row->type == MSG_ERROR) {
		p->health = m->body.error.code == CODE_NOT_FOUND ? ABSENT :
		    SUSPECT;
		(void)str_copy(p->part, "privd", sizeof(p->part));
	} else {
		disk_seen(p->box, &m->body.box_health_is, p->counted);
		metrics_looked(p->box, &m->body.box_health_is);
		p->health = (enum wb_health)m->body.box_health_is.health;
		if (release_holds(p->box, m->body.box_health_is.part,
		    p->part) && p->health == SUSPECT)
			p->health = HEALTHY;
	}
	poll_answered(p);
}

static void
poll_netd(void *arg, const struct msg *m)
{
	struct poll				*p = arg;
	const struct msg_net_status_is		*n = &m->body.net_status_is;

	if (m->row->type != MSG_ERROR)
		denials_counted(p->box, n);
	if (p->box->counted)
		metrics_counted(p->box);
	if (m->row->type == MSG_ERROR || n->state != NET_IS_OPEN)
		p->net = "network";
	else if ((n->network != p->box->network || p->box->list_due) &&
	    p->box->changing != CHANGE_ASKED) {
		p->net = "network";
		network_amend(p->box);
	} else if (!n->whole || (p->box->ruleset[0] != '\0' &&	/* attached */
	    strcmp(n->ruleset, p->box->ruleset) != 0))
		p->net = "ruleset";
	else if (!n->uplink)
		p->net = "uplink";
	poll_answered(p);
}

static void
poll_pong(void *arg, const struct msg *m)
{
	struct box	*b = arg;

	(void)m;
	b->pinged = 0;
	box_unref(b);
}

static void
poll_ping(struct box *b)
{
	struct msg_runner_ping	m = { 0 };

	if (b->runner == NULL || b->frozen)
		return;
	/* one at a time; the second time round it is late */
	if (b->pinged++ == 0)
		peer_ask(b->runner, MSG_RUNNER_PING, &m, 0, poll_pong,
		    box_ref(b));
}

static void
poll_box(struct box *b, void (*fn)(struct box *, void *), void *arg)
{
	struct msg_box_health	 h = { 0 };
	struct msg_net_status	 n = { 0 };
	struct poll		*p = xcalloc(1, sizeof(*p));

	b->polled = 1;
	p->box = box_ref(b);
	p->due = 1;
	p->fn = fn;
	p->arg = arg;
	p->counted = disk_counts();
	h.written = (uint64_t)p->counted;
	(void)str_copy(h.id, b->id, sizeof(h.id));
	peer_ask(env.privd, MSG_BOX_HEALTH, &h, T_PRIVD, poll_privd, p);
	if (b->state == BOX_QUARANTINED)
		return;
	p->due++;
	(void)str_copy(n.id, b->id, sizeof(n.id));
	peer_ask(env.netd, MSG_NET_STATUS, &n, T_PRIVD, poll_netd, p);
	poll_ping(b);
}

static void
health_tick(int fd, short what, void *arg)
{
	struct box	*b;
	unsigned int	 n = (box_count() + POLL_S - 1) / POLL_S;

	(void)fd;
	(void)what;
	(void)arg;
	for (; n != 0; n--) {
		if ((b = box_next(NULL, cursor)) == NULL &&
		    (b = box_next(NULL, "")) == NULL)
			break;
		(void)str_copy(cursor, b->id, sizeof(cursor));
		if (poll_due(b))
			poll_box(b, NULL, NULL);
	}
}

void
health_look(struct box *b, void (*fn)(struct box *, void *), void *arg)
{
	if (poll_due(b))
		poll_box(b, fn, arg);
	else if (fn != NULL)
		fn(b, arg);
}

void
health_start(void)
{
	struct timeval	tv = { 1, 0 };

	(void)event_assign(&tick, env.base, -1, EV_PERSIST, health_tick,
	    NULL);
	if (event_add(&tick, &tv) == -1)
		fatalx("add timer: out of memory");
	disk_start();
}
