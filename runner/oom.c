/*
 * oom.c: whom the kernel's OOM killer has hit, and the end of that session.
 *
 * v2: memory.oom.group is set on each session's cgroup; the kernel ends the
 * whole session and counts it there.  Nothing is to be done but to tell.
 *
 * v1: it ends one process of all sessions' together, and counts for all.
 * So the count is looked at while sessions live, and what is new belongs to
 *
 *	the leader that has just died of a SIGKILL which was not ours; else
 *	the session that misses, of the processes of the last look, the one
 *	    that the kernel would have chosen first (/proc/<pid>/oom_score); else
 *	the one that has waited for memory most since (memory.pressure of v2
 *	    counts by session there, too, where the kernel has it); else
 *	the only one that has processes.
 *
 * The rest of that session is killed.  A look costs about 10 us a process:
 * they are the further apart the more there are, and rare while there is room.
 *
 * Must never: kill outside of sessions/.
 */
#include <signal.h>
#include <string.h>

#include "runner.h"

#define SEEN		1024		/* those beyond are not looked at */
#define LOOK_MS		200		/* and 1 ms for each process */
#define LOOK_EASY_MS	1000		/* less than half of it is in use */
#define DYING_MS	20		/* for the victim to be gone */

static struct seen {
	pid_t		 pid;
	int		 missing;
	uint64_t	 score;
	struct session	*session;	/* borrowed; NULL: it was freed */
} seen[SEEN];
static size_t		 nseen;
static uint64_t		 count;		/* oom_kill, as far as dealt with */
static int		 pending;	/* it has risen */

static void	on_look(void *);

static struct timer	 look_timer = { .fn = on_look };

/* ---- looks ----------------------------------------------------------- */

static void
look_one(pid_t pid, void *arg)
{
	if (nseen == SEEN)
		return;
	seen[nseen++] = (struct seen){ pid, 0, cgroup_score(pid), arg };
}

static void
look(void)
{
	struct session	*s;

	nseen = 0;
	TAILQ_FOREACH(s, &table.all, all) {
		if (!s->has_cgroup)
			continue;
		s->stall = cgroup_stall(s->id);
		(void)cgroup_each(s->id, look_one, s);
	}
}

static void
found_one(pid_t pid, void *arg)
{
	size_t	i;

	for (i = 0; i < nseen; i++)
		if (seen[i].pid == pid && seen[i].session == arg)
			seen[i].missing = 0;
}

static struct session *
victim_seen(void)
{
	struct seen	*best = NULL;
	size_t		 i;

	for (i = 0; i < nseen; i++)
		if (seen[i].missing && seen[i].session != NULL &&
		    (best == NULL || seen[i].score > best->score))
			best = &seen[i];
	if (best == NULL)
		return NULL;
	best->missing = 0;
	best->pid = 0;		/* found once */
	return best->session;
}

static struct session *
victim_waited(void)
{
	struct session	*s, *best = NULL, *only = NULL;
	uint64_t	 most = 0, now;
	unsigned int	 n = 0;

	TAILQ_FOREACH(s, &table.all, all) {
		if (!s->has_cgroup)
			continue;
		only = s;
		n++;
		if ((now = cgroup_stall(s->id)) - s->stall > most) {
			most = now - s->stall;
			best = s;
		}
	}
	return best != NULL ? best : n == 1 ? only : NULL;
}

static void
end_session(struct session *s)
{
	if (s->oom)
		return;
	s->oom = s->state != SESSION_ENDED;	/* else that was told */
	runner_log("session %s ends: out of memory", s->id);
	(void)cgroup_kill(s->id);	/* it may just have gone */
}

/* Finds an owner for each kill that has none yet. */
static void
settle(uint64_t now)
{
	struct session	*s;
	size_t		 i;

	for (i = 0; i < nseen; i++)
		seen[i].missing = seen[i].pid != 0;
	TAILQ_FOREACH(s, &table.all, all)
		if (s->has_cgroup)
			(void)cgroup_each(s->id, found_one, s);
	for (; count < now; count++) {
		if ((s = victim_seen()) == NULL)
			s = victim_waited();
		if (s != NULL)
			end_session(s);
		else
			runner_log("out of memory, in no session known");
	}
	pending = 0;
}

static void
on_look(void *arg)
{
	uint64_t	now = cgroup_oom_kills();

	(void)arg;
	if (now > count && !pending) {
		pending = 1;
		timer_arm(&look_timer, DYING_MS);
		return;
	}
	if (now > count)
		settle(now);
	look();
	if (table.nlives > 0 || table.nleft > 0)
		timer_arm(&look_timer, cgroup_pressed() ? LOOK_MS + nseen :
		    LOOK_EASY_MS + nseen);
}

/* ---- what others tell ------------------------------------------------ */

void
oom_init(void)
{
	count = cgroup_oom_kills();
}

void
oom_watch(void)
{
	if (cgroup_oom_shared() && look_timer.at == 0)
		timer_arm(&look_timer, LOOK_MS);
}

void
oom_forget(const struct session *s)
{
	size_t	i;

	for (i = 0; i < nseen; i++)
		if (seen[i].session == s)
			seen[i].session = NULL;
}

void
oom_exited(struct session *s, pid_t pid)
{
	uint64_t	now;
	size_t		i;

	if (!cgroup_oom_shared()) {
		s->oom |= (unsigned int)cgroup_oom(s->id);
		return;
	}
	for (i = 0; i < nseen; i++)
		if (seen[i].pid == pid)
			seen[i].pid = 0;
	if ((now = cgroup_oom_kills()) <= count)
		return;
	if (s->signal == SIGKILL && !s->killed && !s->oom) {
		count++;
		end_session(s);
	} else
		settle(now);
}
