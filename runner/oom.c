/*
 * oom.c: whom the kernel's OOM killer has hit, and the end of that session.
 *
 * v2: memory.oom.group is set on each session's cgroup; the kernel ends the
 * whole session and counts it there.  Nothing is to be done but to tell.
 *
 * v1: it ends one process of all sessions' together, and counts for all.
 * So the count is looked at while sessions live, and what is new belongs to
 * the first of these that there is:
 *
 *	the leader that has just died of a SIGKILL which was not ours
 *	who has one pending now
 *	of these the one with most of it: who is missing or exiting, and was
 *	    large at the last look; and the session that has touched so much
 *	    more since then than it uses to: what came and went between two
 *	    looks is in the faults that its parent has waited for
 *	the session that has touched most since then, usual or not
 *	who is exiting now: what takes long to end was large
 *	the session that has waited for memory most since the last look
 *	    (memory.pressure of v2 counts by session on a hybrid host, too)
 *	who is missing
 *	the only one that has processes
 *
 * The rest of that session is killed.  A look costs about 20 us a process:
 * they are the further apart the more there are, and rare while there is room.
 *
 * Must never: kill outside of sessions/.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

#define PF_EXITING	4		/* of the kernel's linux/sched.h */

#define SEEN		1024		/* those beyond are not looked at */
#define LOOK_MS		200		/* and 1 ms for each process */
#define LOOK_EASY_MS	1000		/* less than half of it is in use */
#define LARGE		16		/* this part of the memory, or more */
#define TOUCHED_PART	4		/* of it, by faults beyond ... */
#define USUAL		2		/* times what it did before, or more */
#define PAGE		4096

enum evidence {
	NOTHING, MISSING, WAITED, EXITING, TOUCHED, MUCH, KILLED
};

static struct seen {
	pid_t		 pid;
	uint64_t	 bytes;
	struct session	*session;	/* borrowed; NULL: it was freed */
	int		 there;
} seen[SEEN];
static size_t		 nseen;
static uint64_t		 count;		/* oom_kill, as far as dealt with */

/* The best so far of those who may have been hit. */
static struct suspect {
	enum evidence	 evidence;
	uint64_t	 weight;
	struct session	*session;
	struct seen	*seen;		/* or NULL */
} best;

static void	on_look(void *);

static struct timer	 look_timer = { .fn = on_look };
static uint64_t		 looked_ms;	/* when that was last */

/* ---- looks ----------------------------------------------------------- */

struct task {
	uint64_t	 bytes;		/* resident */
	uint64_t	 touched;	/* bytes, by faults: its own, and those of
					 * children that it has waited for */
	int		 killed;	/* SIGKILL is pending */
	int		 exiting;
};

/* The fields of /proc/<pid>/stat; all 0 when it is gone. */
static struct task
task_read(pid_t pid)
{
	auto_close int	 fd = -1;
	struct task	 t = { 0 };
	char		 buf[1024], *p, *save;
	ssize_t		 n;
	int		 i;

	(void)snprintf(buf, sizeof(buf), "/proc/%ld/stat", (long)pid);
	if ((fd = open(buf, O_RDONLY | O_CLOEXEC)) == -1 ||
	    (n = read(fd, buf, sizeof(buf) - 1)) <= 0)
		return t;
	buf[n] = '\0';
	if ((p = strrchr(buf, ')')) == NULL)	/* its name may hold any */
		return t;
	p = strtok_r(p + 1, " ", &save);
	for (i = 3; p != NULL; p = strtok_r(NULL, " ", &save), i++)
		if (i == 9)
			t.exiting = (strtoul(p, NULL, 10) & PF_EXITING) != 0;
		else if (i == 10 || i == 11)
			t.touched += strtoull(p, NULL, 10) * PAGE;
		else if (i == 24)
			t.bytes = strtoull(p, NULL, 10) * PAGE;
		else if (i == 31)
			t.killed = (int)(strtoul(p, NULL, 10) >>
			    (SIGKILL - 1) & 1);
	return t;
}

static void
look_one(pid_t pid, void *arg)
{
	struct session	*s = arg;
	struct task	 t;

	if (nseen == SEEN)
		return;
	t = task_read(pid);
	s->touched += t.touched;
	seen[nseen++] = (struct seen){ pid, t.bytes, s, 0 };
}

static void
look(void)
{
	const uint64_t	 now = mono_ms(), ms = now - looked_ms;
	struct session	*s;
	uint64_t	 before;

	looked_ms = now;
	nseen = 0;
	TAILQ_FOREACH(s, &table.all, all) {
		if (!s->has_cgroup)
			continue;
		s->stall = cgroup_stall(s->id);
		before = s->touched;
		s->touched = 0;
		(void)cgroup_each(s->id, look_one, s);
		s->touches = s->touched > before && ms > 0 ?
		    (s->touched - before) / ms : 0;
	}
}

/* ---- whose it was ---------------------------------------------------- */

static uint64_t	 touched;		/* by the session in question, so far */

static void
suspect(enum evidence e, uint64_t weight, struct session *s, struct seen *o)
{
	if (e > best.evidence || (e == best.evidence && weight > best.weight))
		best = (struct suspect){ e, weight, s, o };
}

/* By its faults, of what it has touched by now. */
static void
suspect_touched(struct session *s, uint64_t now)
{
	const uint64_t	part = cgroup_limit() / TOUCHED_PART;
	const uint64_t	usual = USUAL * s->touches *
			    (mono_ms() - looked_ms) + part;

	s->now_touched = now;
	if (nseen == SEEN || now <= s->touched + part)
		return;
	if (now > s->touched + usual)
		suspect(MUCH, now - s->touched - usual, s, NULL);
	else
		suspect(TOUCHED, now - s->touched, s, NULL);
}

static void
suspect_one(pid_t pid, void *arg)
{
	struct task	 t = task_read(pid);
	struct seen	*o = NULL;
	size_t		 i;

	for (i = 0; i < nseen && o == NULL; i++)
		if (seen[i].pid == pid && seen[i].session == arg)
			o = &seen[i];
	if (o != NULL)
		o->there = !t.exiting;
	touched += t.touched;
	if (t.killed)
		suspect(KILLED, t.bytes, arg, o);
	else if (t.exiting)
		suspect(EXITING, t.bytes, arg, o);
}

static struct session *
victim(void)
{
	struct session	*s, *only = NULL;
	unsigned int	 n = 0;
	size_t		 i;

	best = (struct suspect){ NOTHING, 0, NULL, NULL };
	for (i = 0; i < nseen; i++)
		seen[i].there = 0;
	TAILQ_FOREACH(s, &table.all, all) {
		if (!s->has_cgroup)
			continue;
		only = s;
		n++;
		touched = 0;
		(void)cgroup_each(s->id, suspect_one, s);
		if (s->oom)
			continue;	/* it ends as it is */
		suspect_touched(s, touched);
		suspect(WAITED, cgroup_stall(s->id) - s->stall, s, NULL);
	}
	if (best.evidence == WAITED && best.weight == 0)
		best.evidence = NOTHING;
	for (i = 0; i < nseen; i++)
		if (!seen[i].there && seen[i].session != NULL)
			suspect(seen[i].bytes > cgroup_limit() / LARGE ?
			    MUCH : MISSING, seen[i].bytes,
			    seen[i].session, &seen[i]);
	if (best.seen != NULL)
		best.seen->session = NULL;	/* found once */
	if (best.evidence == MUCH || best.evidence == TOUCHED)
		best.session->touched = best.session->now_touched;
	return best.evidence != NOTHING ? best.session : n == 1 ? only : NULL;
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
settle(void)
{
	struct session	*s;
	uint64_t	 now = cgroup_oom_kills();

	for (; count < now; count++)
		if ((s = victim()) != NULL)
			end_session(s);
		else
			runner_log("out of memory, in no session known");
}

static void
on_look(void *arg)
{
	(void)arg;
	settle();
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
	size_t	i;

	if (!cgroup_oom_shared()) {
		s->oom |= (unsigned int)cgroup_oom(s->id);
		return;
	}
	for (i = 0; i < nseen; i++)
		if (seen[i].pid == pid)
			seen[i].session = NULL;
	if (s->signal == SIGKILL && !s->killed && !s->oom &&
	    cgroup_oom_kills() > count) {
		count++;
		end_session(s);
	} else
		settle();
}
