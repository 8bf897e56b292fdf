/*
 * runner.c: the channel to the pid 1 of a box.
 *
 * The other end is the box's: root inside, and perhaps hostile.  What comes
 * was checked by chan; here it is decided what a fault costs: that box, and
 * nothing else.  A channel that closes leaves the box SUSPECT (its pid 1 may
 * live, and is tried again by a timer); one that is late or speaks nonsense
 * condemns it (box_quarantine).  What a runner says unasked is rate-limited:
 * above the rate nothing is read from it for a while, so that it is its own
 * queue that fills.
 *
 * Which version of the protocol is spoken the hello finds out (boot.c).
 *
 * Must never: log a runner's words through our own log, or keep them.
 */
#include <stdio.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define MSG_BURST	2000		/* unasked messages */
#define MSG_RATE	500		/* ... a second */
#define LOG_BURST	50
#define LOG_RATE	10
#define PAUSE_MS	100
#define AGAIN_S		5

static void
log_append(struct box *b, const char *line)
{
	struct msg_box_log_append	m = { 0 };

	(void)str_copy(m.id, b->id, sizeof(m.id));
	(void)str_copy(m.line, line, sizeof(m.line));
	/* nobody waits: a log that cannot be written is privd's to tell */
	peer_ask(env.privd, MSG_BOX_LOG_APPEND, &m, T_PRIVD, NULL, NULL);
}

void
runner_log(struct box *b, const char *line)
{
	char	dropped[64];

	if (!bucket_take(&b->log_rate, LOG_BURST, LOG_RATE)) {
		b->dropped++;
		return;
	}
	if (b->dropped != 0) {
		(void)snprintf(dropped, sizeof(dropped),
		    "(%u lines dropped)", b->dropped);
		b->dropped = 0;
		log_append(b, dropped);
	}
	log_append(b, line);
}

static void
runner_msg(struct peer *p, struct msg *m)
{
	struct box				*b = peer_arg(p);
	const struct msg_session_announce	*a;

	fd_close(&m->fd);		/* none is due; chan holds to it */
	if (!bucket_take(&b->msg_rate, MSG_BURST, MSG_RATE))
		peer_pause(p, PAUSE_MS);
	switch (m->row->type) {
	case MSG_RUNNER_LOG:
		runner_log(b, m->body.runner_log.line);
		return;
	case MSG_SESSION_ANNOUNCE:
		a = &m->body.session_announce;
		session_announced(b, a->id, a->name, &a->argv);
		return;
	case MSG_BOX_DENIALS:
		denials_ask(b, p, m->rid);
		return;
	default:
		peer_fault(p, "%s: not expected", m->row->name);
	}
}

/* At once, but not as often as a runner likes that closes again. */
static void
runner_again(struct box *b)
{
	struct timeval	tv = { AGAIN_S, 0 };

	box_unheard(b);
	if (bucket_take(&b->attach_rate, 3, 1))
		boot_attach(b, NULL, NULL);
	else if (event_add(&b->retry, &tv) == -1)
		fatalx("add timer: out of memory");
}

static void
runner_fault(struct peer *p, enum peer_end end, const char *why)
{
	struct box	*b = box_ref(peer_arg(p));
	unsigned int	 theirs;

	if (end == PEER_GONE || end == PEER_VERSION) {
		theirs = end == PEER_VERSION ? peer_theirs(p) : 0;
		log_info("box %s: runner: %s", b->id, why);
		runner_close(b);
		if (b->boot != NULL)
			boot_closed(b, theirs, why);
		else if (b->removing != REMOVE_NOT)
			remove_hurry(b);
		else if (b->state == BOX_READY && b->listed)
			runner_again(b);
	} else {
		log_warnx("box %s: runner: %s", b->id, why);
		box_quarantine(b, end == PEER_LATE ? "stall" : "protocol",
		    NULL, 0);
		runner_close(b);	/* also where quarantine is too late */
	}
	box_unref(b);
}

void
runner_open(struct box *b, int fd)
{
	runner_close(b);
	b->runner = peer_new("runner", fd, A_RUNNER, S_HELLO, runner_msg,
	    runner_fault, box_ref(b));
}

void
runner_close(struct box *b)
{
	struct peer	*p = b->runner;
	struct session	*s;

	if (p == NULL)
		return;
	b->runner = NULL;
	peer_free(p);
	LIST_FOREACH(s, &b->sessions, by_box)	/* none leaves the list */
		readers_lost(s);
	box_unref(b);
}

void
box_ended(struct box *b)
{
	if (!b->listed || b->removing >= REMOVE_KILL || b->state == BOX_STOPPED)
		return;
	log_info("box %s: its processes have ended", b->id);
	box_ref(b);
	runner_close(b);
	boot_lost(b, "the runner ended");
	remove_hurry(b);
	if (b->boot == NULL && b->removing == REMOVE_NOT) {
		sessions_lost(b);
		box_health(b, ABSENT, "");
		(void)event_del(&b->retry);
		if (b->target == BOX_READY || b->target == BOX_DRAINING)
			box_move(b, BOX_STOPPED, "absent", 1, NULL, NULL,
			    NULL);
	}
	box_unref(b);
}
