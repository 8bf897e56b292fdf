/*
 * disk.c: the host's state file system outlives its boxes.
 *
 * Theory of operation.  Each look at a box tells how much of the state
 * directory's file system is free and how much has to be kept; health.c takes
 * one each second at least.  When what is free would fall under that within
 * HORIZON_S at the rate at which it falls, all boxes are looked at once a
 * second for what they have written, and the one that wrote most since is
 * frozen; then, if that was not enough, the next.  So a box that writes
 * without end is stopped while others can still be made.  What is frozen goes
 * on when there is more room again than there was then; until then it can be
 * looked at and removed.
 *
 * What a box has written is told by the kernel by process, and a process's
 * own count goes to who waits for it.  So a box can hide it, in children that
 * nobody waits for, or in files that have no bytes: inodes count as what the
 * file system has of bytes for each.  When most of the fall is nobody's by
 * these counts for two looks on end, all that have used the processor are
 * frozen as suspects.  If it goes on all the same, somebody outside of boxes
 * writes: they are let go, and nobody is suspected for a while.  If it stops,
 * they are tried, one at a time: it goes on, and is the one when the fall
 * begins again.  Whoever was suspected STRIKES times stays, until there is
 * room.
 *
 * Must never: leave a box frozen that neither writes nor was there, busy,
 * each time that room was lost.
 */
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define HORIZON_S	6
#define LEAST_RATE	(64UL * 1024)	/* bytes a second: is writing */
#define LEAST_ROOM	(64UL * 1024 * 1024)
#define WAIT_TICKS	2
#define WATCH_TICKS	10		/* who goes on may write at once again */
#define LOOKED_MS	3000
#define STALE_MS	5000		/* a count so old says no rate */
#define SKEW_MS		700		/* between looks of one round */
#define LEAST_BUSY	5000		/* usec a second: may write unseen */
#define LEAST_FALL	(256UL * 1024)	/* bytes a second: worth a suspicion */
#define PROOF_TICKS	2		/* of a fall, or of its end */
#define OUTSIDE_TICKS	6		/* frozen, and it has not stopped */
#define TRIAL_TICKS	5
#define STRIKES		2
#define STRIKES_MS	600000		/* forgotten after */
#define OUTSIDE_MS	60000

static struct {
	uint64_t	 free, keep;	/* bytes; keep 0: not told yet */
	uint64_t	 at;		/* mono ms of the sample */
	uint64_t	 falls;		/* bytes a second: the most, lately */
	uint64_t	 round_at, round_free; /* when all boxes were looked at */
	uint64_t	 fall, known;	/* bytes a second since, smoothed */
	unsigned int	 due;		/* looks that are out */
	uint64_t	 looked;	/* mono ms: all boxes */
	unsigned int	 fresh, waited;	/* boxes without a rate yet; ticks */
	unsigned int	 watch;		/* ticks: look, short or not */
	char		 tried[27];	/* was to go on last */
	unsigned int	 strange, calm;	/* looks on end: whose fall; none */
	unsigned int	 blind;		/* ticks at which too little was known */
	unsigned int	 caught, in_vain; /* suspects; looks since on end */
	uint64_t	 struck;	/* mono ms: the last suspicion; 0 */
	char		 suspect[27];	/* was tried last */
	struct box	*trial;		/* owned: a suspect that goes on */
	unsigned int	 trial_ticks;
	uint64_t	 outside;	/* mono ms: it was nobody's; 0 */
	struct event	 tick;
} disk;

/* Room beside what is kept, for things to go on in. */
static uint64_t
room(void)
{
	return disk.keep / 16 > LEAST_ROOM ? disk.keep / 16 : LEAST_ROOM;
}

static int
disk_short(void)
{
	return disk.keep != 0 && (disk.free < disk.keep ||
	    disk.free - disk.keep < disk.falls * HORIZON_S);
}

static uint64_t
per_second(uint64_t bytes, uint64_t ms)
{
	return bytes / ms * 1000 + bytes % ms * 1000 / ms;
}

static void
sample(uint64_t avail, uint64_t keep)
{
	uint64_t	now = mono_ms(), ms = now - disk.at, rate;

	if (disk.keep != 0 && ms < 500)
		return;
	rate = disk.keep != 0 && avail < disk.free && ms < STALE_MS ?
	    per_second(disk.free - avail, ms) : 0;
	/* at once when it falls faster, by halves when slower */
	disk.falls = rate > disk.falls ? rate : (disk.falls + rate) / 2;
	disk.free = avail;
	disk.keep = keep;
	disk.at = now;
}

/* From here on: its rates are known at the next look. */
static void
count_from(struct box *b, const struct msg_box_health_is *h)
{
	b->written = h->written;
	b->cpu_usec = h->cpu_usec;
	b->written_at = mono_ms();
	b->looks += b->looks < 2;
}

static void
written(struct box *b, const struct msg_box_health_is *h)
{
	uint64_t	ms = mono_ms() - b->written_at;
	int		known = b->written_at != 0 && ms > 0 && ms < STALE_MS;

	disk.fresh += b->written_at == 0;
	b->writes = known && h->written > b->written ?
	    per_second(h->written - b->written, ms) : 0;
	b->busy = known && h->cpu_usec > b->cpu_usec ?
	    per_second(h->cpu_usec - b->cpu_usec, ms) : 0;
	count_from(b, h);
}

void
disk_seen(struct box *b, const struct msg_box_health_is *h, int counted)
{
	uint64_t	enough;

	if (h->disk_keep == 0)
		return;			/* of a box that is not there */
	sample(h->disk_free, h->disk_keep);
	if (counted)
		written(b, h);
	if (!h->frozen || b->frozen || b->state != BOX_READY)
		return;
	/* by an apid before this one: there may have been room meanwhile */
	b->frozen = 1;
	enough = h->disk_keep + h->disk_keep / 2 - room();
	b->frozen_free = enough < h->disk_free ? enough : h->disk_free;
}

/* ---- freezing and letting go on ------------------------------------ */

/* It is as it was asked to be. */
static void
freeze_record(struct box *b)
{
	struct event_sandbox_frozen	 f = { .freeBytes = disk.free,
					    .bytesPerSecond = b->writes };
	struct event_sandbox_thawed	 t = { .freeBytes = disk.free };

	if (b->frozen && b->suspect)
		log_warnx("box %s is frozen as a suspect: the state directory "
		    "has %llu MiB left and loses %llu KiB a second", b->id,
		    (unsigned long long)disk.free >> 20,
		    (unsigned long long)disk.fall >> 10);
	else if (b->frozen)
		log_warnx("box %s is frozen: the state directory has %llu "
		    "MiB left, and it writes %llu KiB a second", b->id,
		    (unsigned long long)disk.free >> 20,
		    (unsigned long long)b->writes >> 10);
	else
		log_info("box %s goes on: %s", b->id, b->suspect ?
		    "it is tried" : "there is room again");
	if (b->frozen) {
		box_health(b, SUSPECT, code_name(CODE_DISK_FLOOR));
		event_append(EVENT_SANDBOX_FROZEN, &f, "apid", b->id, "", "",
		    "denied", code_name(CODE_DISK_FLOOR), NULL, NULL);
	} else
		event_append(EVENT_SANDBOX_THAWED, &t, "apid", b->id, "", "",
		    "ok", "", NULL, NULL);
}

static void
freeze_told(void *arg, const struct msg *m)
{
	struct box	*b = arg;
	int		 error = m->row->type == MSG_ERROR;

	b->polled = 0;
	if (!error && (int)m->body.box_health_is.frozen == b->frozen) {
		freeze_record(b);
		if (!b->frozen && disk.trial != b)
			b->suspect = 0;
		b->looks = 0;
		if (m->body.box_health_is.written != 0)
			count_from(b, &m->body.box_health_is);
		else		/* not told: that is none, or an error */
			b->written_at = 0;
		disk.watch = WATCH_TICKS;
	} else {
		log_warnx("box %s: %s: %s", b->id, b->frozen ? "freeze" :
		    "go on", error ? m->body.error.detail :
		    m->body.box_health_is.part);
		b->frozen = !b->frozen;	/* as it was; tried again */
	}
	if (!b->frozen && b->state == BOX_READY && b->listed &&
	    b->boot == NULL && b->runner == NULL &&
	    b->removing == REMOVE_NOT)
		boot_attach(b, NULL, NULL);
	box_unref(b);
}

static void
freeze(struct box *b, int on)
{
	struct msg_box_health	 m = { .freeze = on ? FREEZE_ON : FREEZE_OFF,
				    .written = 1 };

	b->polled = 1;			/* privd takes one look at a time */
	b->frozen = on;
	if (on)
		b->frozen_free = disk.free;
	(void)str_copy(m.id, b->id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_HEALTH, &m, T_PRIVD, freeze_told,
	    box_ref(b));
	if (on) {
		(void)event_del(&b->retry);
		runner_close(b);	/* else its silence would condemn it */
	}
}

static int
may_write(const struct box *b)
{
	return (b->state == BOX_READY || b->state == BOX_DRAINING) &&
	    !b->frozen && b->boot == NULL && b->removing < REMOVE_KILL;
}

static void
stop(struct box *b)
{
	if (b->state == BOX_READY)
		freeze(b, 1);
	else
		remove_hurry(b);	/* its time is over */
}

static void
freeze_most(void)
{
	struct box	*b, *most = NULL;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		if (may_write(b) && !b->polled && b->writes >= LEAST_RATE &&
		    (most == NULL || b->writes > most->writes))
			most = b;
	/* one that hardly matters is spared while there is time */
	if (most != NULL && (disk.free < disk.keep ||
	    most->writes >= disk.falls / 16)) {
		most->suspect = 0;
		stop(most);
	}
}

/* ---- suspects -------------------------------------------------------- */

/*
 * 1: hardly any of the fall is known to be somebody's; 0: some is; -1: too
 * little is known.  Smoothed, since a box is not looked at in the moment in
 * which the disk is.
 */
static int
is_strange(uint64_t avail)
{
	const struct box	*b;
	uint64_t		 known = 0, rate, ms = mono_ms() - disk.round_at;

	rate = disk.round_at != 0 && ms > 0 && avail < disk.round_free ?
	    per_second(disk.round_free - avail, ms) : 0;
	disk.round_at = mono_ms();
	disk.round_free = avail;
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		if (!may_write(b))
			continue;
		known += b->writes;
		if ((b->looks < 2 || b->written_at + SKEW_MS < disk.looked) &&
		    disk.blind++ < WAIT_TICKS)
			return -1;
	}
	disk.blind = 0;
	disk.fall = (disk.fall + rate) / 2;
	disk.known = (disk.known + known) / 2;
	return rate >= LEAST_FALL && disk.fall / 8 > disk.known;
}

/* Once may be how it was counted, but not soon after another time. */
static int
is_proved(void)
{
	return disk.strange >= (disk.struck != 0 &&
	    mono_ms() - disk.struck < STRIKES_MS ? 1 : PROOF_TICKS);
}

/* What was seen so far was of those that are frozen now. */
static void
look_anew(void)
{
	disk.strange = 0;
	disk.calm = 0;
	disk.fall = disk.known = 0;
}

/* All that may be the one; at first without those that were not. */
static unsigned int
freeze_busy(int cleared)
{
	uint64_t	 now = mono_ms();
	struct box	*b;
	unsigned int	 n = 0;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		if (may_write(b) && !b->polled && b->cleared <= cleared &&
		    b->busy >= LEAST_BUSY) {
			if (now - b->struck > STRIKES_MS)
				b->strikes = 0;
			b->struck = now;
			b->strikes++;
			b->suspect = 1;
			b->cleared = 0;
			stop(b);
			n++;
		}
	if (n != 0) {
		disk.struck = now;
		disk.caught = 1;
		disk.in_vain = 0;
		look_anew();
	}
	return n;
}

/* One that may go on for a trial; for good, when it was somebody else. */
static struct box *
next_suspect(const char *after)
{
	struct box	*b = box_next(NULL, after);

	while (b != NULL && !(b->suspect && b->frozen && !b->polled &&
	    b->state == BOX_READY && !b->condemned &&
	    b->removing == REMOVE_NOT &&
	    (b->strikes <= STRIKES || disk.outside != 0)))
		b = box_next(NULL, b->id);
	return b;
}

static void
trial_end(int guilty)
{
	struct box	*b = disk.trial;

	disk.trial = NULL;
	b->suspect = 0;
	b->cleared = !guilty;
	if (guilty && may_write(b) && b->state == BOX_READY) {
		b->strikes = STRIKES + 1;
		freeze(b, 1);
		look_anew();
	}
	box_unref(b);
}

/* Some other box may be the one as well. */
static int
others_busy(void)
{
	const struct box	*b;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		if (b != disk.trial && may_write(b) && !b->cleared &&
		    (b->busy >= LEAST_BUSY || b->looks < 2))
			return 1;
	return 0;
}

static void
trial_go_on(void)
{
	if (disk.trial->polled)
		return;
	if (disk.trial->frozen) {	/* it could not, or was stopped */
		box_unref(disk.trial);
		disk.trial = NULL;
	} else if (is_proved() && others_busy()) {
		box_unref(disk.trial);		/* all of them again */
		disk.trial = NULL;
	} else if (is_proved())
		trial_end(1);
	else if (++disk.trial_ticks > TRIAL_TICKS)
		trial_end(0);
}

/* The next one, by turns; all of them when it was somebody else. */
static void
trial_begin(void)
{
	struct box	*b;

	if (disk.in_vain > OUTSIDE_TICKS) {
		log_warnx("the state directory loses %llu KiB a second, and "
		    "no box that was busy does it",
		    (unsigned long long)disk.fall >> 10);
		disk.outside = mono_ms();
		disk.caught = disk.in_vain = 0;
	}
	if ((b = next_suspect(disk.suspect)) == NULL) {
		disk.suspect[0] = '\0';
		return;
	}
	if (disk.outside == 0 && (disk.calm < PROOF_TICKS ||
	    disk.free < room()))
		return;
	(void)str_copy(disk.suspect, b->id, sizeof(disk.suspect));
	if (disk.outside == 0) {
		disk.trial = box_ref(b);
		disk.trial_ticks = 0;
	}
	freeze(b, 0);
}

/* All have been looked at. */
static void
suspects_seen(uint64_t avail)
{
	int	strange = is_strange(avail);

	if (strange == -1)
		return;
	disk.strange = strange ? disk.strange + 1 : 0;
	disk.calm = strange ? 0 : disk.calm + 1;
	disk.in_vain = strange && disk.caught ? disk.in_vain + 1 : 0;
	if (disk.outside != 0 && mono_ms() - disk.outside > OUTSIDE_MS)
		disk.outside = 0;
	if (disk.trial != NULL)
		trial_go_on();
	else
		trial_begin();
}

/* ---- who writes ------------------------------------------------------ */

static void
look_told(void *arg, const struct msg *m)
{
	struct box	*b = arg;

	b->polled = 0;
	if (m->row->type != MSG_ERROR) {
		disk_seen(b, &m->body.box_health_is, 1);
	} else
		b->writes = b->busy = 0;	/* not to be had, or gone */
	box_unref(b);
	if (--disk.due != 0)
		return;
	if (m->row->type != MSG_ERROR && m->body.box_health_is.disk_keep != 0)
		suspects_seen(m->body.box_health_is.disk_free);
	if (!disk_short())
		return;
	/* the one that is new here may be the one */
	if (disk.fresh == 0 || ++disk.waited > WAIT_TICKS) {
		disk.waited = 0;
		if (!is_proved() || disk.outside != 0 ||
		    disk.trial != NULL || (freeze_busy(0) == 0 &&
		    freeze_busy(1) == 0))
			freeze_most();
	}
}

static void
look_all(void)
{
	struct msg_box_health	 m = { .written = 1 };
	struct box		*b;

	disk.fresh = 0;
	disk.looked = mono_ms();
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		/* a suspect, so that there is an answer when all are some */
		if ((!may_write(b) && !(b->frozen && b->suspect)) || b->polled)
			continue;
		disk.due++;
		b->polled = 1;
		(void)str_copy(m.id, b->id, sizeof(m.id));
		peer_ask(env.privd, MSG_BOX_HEALTH, &m, T_PRIVD, look_told,
		    box_ref(b));
	}
}

static int
may_go_on(const struct box *b)
{
	return b->frozen && b->state == BOX_READY && !b->condemned &&
	    !b->polled && b->removing == REMOVE_NOT &&
	    disk.free >= b->frozen_free &&
	    disk.free - b->frozen_free >= room();
}

/*
 * One at a time, so that what it does then is seen before the next; by turns,
 * since one that cannot is tried again.
 */
static void
thaw_one(void)
{
	struct box	*b = box_next(NULL, disk.tried);

	while (b != NULL && !may_go_on(b))
		b = box_next(NULL, b->id);
	if (b == NULL) {
		disk.tried[0] = '\0';
		return;
	}
	/* what the others have written is known first, to be compared with */
	if (mono_ms() - disk.looked > LOOKED_MS)
		look_all();
	else {
		(void)str_copy(disk.tried, b->id, sizeof(disk.tried));
		b->suspect = 0;
		b->strikes = 0;
		freeze(b, 0);
	}
}

int
disk_counts(void)
{
	return disk_short() || disk.watch > 0 || disk.trial != NULL ||
	    next_suspect("") != NULL;
}

static void
disk_tick(int fd, short what, void *arg)
{
	struct timeval	tv = { 1, 0 };

	(void)fd;
	(void)what;
	(void)arg;
	(void)event_add(&disk.tick, &tv);	/* was added before: no memory */
	if (disk.due != 0)
		return;			/* a slow one is still out */
	if (disk_counts())
		look_all();
	if (disk.watch > 0)
		disk.watch--;
	else if (!disk_short())
		thaw_one();
}

void
disk_start(void)
{
	struct timeval	tv = { 0, 500000 };	/* between health.c's looks */

	(void)event_assign(&disk.tick, env.base, -1, 0, disk_tick, NULL);
	if (event_add(&disk.tick, &tv) == -1)
		fatalx("add timer: out of memory");
}
