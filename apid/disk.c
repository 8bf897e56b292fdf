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
 * these counts for two looks on end, a round begins, which only what is seen
 * of boxes that run while the others are frozen decides:
 *
 *   HELD	All that were busy are frozen as suspects.  When the fall goes
 *		on, so are all that used the processor at all; when it still
 *		does, and nobody is left that can have done it, somebody
 *		outside of boxes writes: -> OVER.  When it has stopped: -> TRIED
 *   TRIED	The busier half of those that may be it runs.  When the fall is
 *		there again it is one of these: the others are cleared, which
 *		does not let them go on, -> HELD.  When that is one box alone,
 *		it is found: -> OVER.  When it is not there for a while, -> HELD
 *		for the other half; after that nobody is found: -> OVER.
 *   OVER	All but who was found go on, then no round is there.
 *
 * No box but those on trial can have lost what is lost then: each other one is
 * frozen, or has not used the processor enough for it, also by the look after
 * that.  If one has, it is frozen as well and nothing is decided.  So a box can
 * have no other box found.  What is frozen may still be in a write, which shows
 * as processor time: it is waited for.
 *
 * Who is quiet while it is tried is not found.  Each such round makes the next
 * one's trials twice as long, for some time.  Who is found stays until there
 * is more room, or, when nothing is lost and the floor is free, for a time that
 * doubles each time.  Where it shows that somebody outside writes by fits and
 * starts, who was found goes on, and calm has to last longer before a trial.
 *
 * Must never: leave a box frozen, but for the time of a round, that was not
 * seen to write or to be the only one that can have.
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
#define MOST_PER_USEC	(20UL * 1024)	/* bytes: no processor writes more */
#define PROOF_TICKS	2		/* of a fall, or of its end */
#define VAIN_TICKS	3		/* frozen, and it is there */
#define CALM_TICKS	20		/* no fall by fits and starts */
#define SURE_TICKS	4		/* of calm, so that one can be found */
#define TRIAL_TICKS	3
#define TRIALS_LONGER	3		/* times twice that */
#define STUCK_TICKS	15		/* cannot be frozen, or go on */
#define ROUND_TICKS	60		/* and four trials */
#define STRIKES_MS	600000UL	/* forgotten after */
#define FOUND_MS	60000		/* frozen for, the first time */
#define FOUND_LONGER	3		/* times twice that */
#define OUTSIDE_MS	60000		/* nobody is suspected, as above */
#define OUTSIDE_LONGER	4

enum phase { NO_ROUND, HELD, TRIED, OVER };

/* Who is suspected; each one is wider than that before. */
enum width { THE_BUSY, THE_AWAKE, EVERYBODY };

static struct {
	uint64_t	 free, keep;	/* bytes; keep 0: not told yet */
	uint64_t	 at;		/* mono ms of the sample */
	uint64_t	 falls;		/* bytes a second: the most, lately */
	uint64_t	 round_at, round_free; /* when all boxes were looked at */
	uint64_t	 fall, known;	/* bytes a second since, smoothed */
	uint64_t	 lost;		/* the fall before that */
	uint64_t	 rate;		/* at the last look, as it was */
	unsigned int	 due;		/* looks that are out */
	uint64_t	 looked;	/* mono ms: all boxes */
	unsigned int	 fresh, waited;	/* boxes without a rate yet; ticks */
	unsigned int	 watch;		/* ticks: look, short or not */
	char		 tried[27];	/* was to go on last */
	unsigned int	 strange, calm;	/* looks on end: whose fall; none */
	unsigned int	 blind;		/* ticks at which too little was known */
	enum phase	 phase;
	enum width	 width;
	unsigned int	 ticks;		/* in this phase */
	unsigned int	 vain;		/* looks at a fall of no box that runs */
	int		 half;		/* of the candidates: 0, 1 */
	unsigned int	 round_ticks;
	unsigned int	 let;		/* boxes on trial */
	struct box	*accused;	/* owned; NULL: none */
	uint64_t	 accused_of;	/* bytes a second */
	int		 tested;	/* HELD has ended once */
	unsigned int	 fruitless;	/* rounds, lately */
	uint64_t	 struck;	/* mono ms: the last suspicion; 0 */
	uint64_t	 outside, outside_to;	/* mono ms: it was nobody's */
	uint64_t	 outside_fall;
	unsigned int	 outsides;	/* times that it was, lately */
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
	b->frozen = b->hides = 1;
	b->struck = mono_ms();
	b->strikes = 0;
	enough = h->disk_keep + h->disk_keep / 2 - room();
	b->frozen_free = enough < h->disk_free ? enough : h->disk_free;
}

/* What is lost from here on is asked for. */
static void
compare_from(uint64_t avail)
{
	disk.round_at = mono_ms();
	disk.round_free = avail;
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
		    (unsigned long long)disk.lost >> 10);
	else if (b->frozen)
		log_warnx("box %s is frozen: the state directory has %llu "
		    "MiB left, and it writes %llu KiB a second", b->id,
		    (unsigned long long)disk.free >> 20,
		    (unsigned long long)b->writes >> 10);
	else
		log_info("box %s goes on: %s", b->id, b->on_trial ?
		    "it is tried" : b->suspect ? "it was not found" :
		    "there is room again, or nothing is lost");
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
		if (!b->frozen && !b->on_trial)
			b->suspect = 0;
		if (!b->frozen)
			b->hides = 0;
		b->looks = 0;
		b->writes = b->busy = 0;
		if (m->body.box_health_is.disk_keep != 0)
			compare_from(m->body.box_health_is.disk_free);
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
		most->suspect = most->on_trial = most->hides = 0;
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

	rate = ms > 0 && avail < disk.round_free ?
	    per_second(disk.round_free - avail, ms) : 0;
	if (disk.round_at == 0)
		ms = 0;			/* compared with from now on */
	compare_from(avail);
	if (ms == 0)
		return -1;
	disk.rate = rate;
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		known += b->writes;
		if (!may_write(b))
			continue;
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
	disk.lost = disk.fall != 0 ? disk.fall : disk.lost;
	disk.strange = 0;
	disk.calm = 0;
	disk.fall = disk.known = 0;
	disk.round_at = 0;
}

static int
in_round(const struct box *b)
{
	return b->suspect && b->state == BOX_READY && !b->condemned &&
	    b->removing == REMOVE_NOT;
}

/* 0: some still run, or it is not known. */
static int
all_held(void)
{
	struct box	*b;
	int		 held = 1;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		if (!in_round(b) || (b->frozen && !b->polled))
			continue;
		held = 0;
		b->on_trial = 0;
		if (b->boot != NULL)	/* it was let go a moment ago */
			boot_abort(b, "it is a suspect");
		else if (may_write(b) && !b->polled)
			freeze(b, 1);
	}
	return held;
}

/* What cannot go on is asked again, for some time by this round. */
static void
round_over(void)
{
	struct box	*b;
	int		 over = 1, stuck = ++disk.ticks > STUCK_TICKS;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		b->on_trial = b->cleared = 0;
		if (!b->frozen || stuck) {
			b->hides |= b->suspect && b->frozen;
			b->suspect = 0;
		} else if (in_round(b)) {
			over = 0;
			if (!b->polled)
				freeze(b, 0);
		}
	}
	if (over) {
		disk.phase = NO_ROUND;
		disk.vain = 0;
	}
}

static void
phase_begin(enum phase phase)
{
	disk.phase = phase;
	disk.ticks = 0;
	look_anew();
	if (phase == HELD)
		(void)all_held();
	else
		round_over();
}

static int
is_suspicious(const struct box *b, enum width width)
{
	return may_write(b) && !b->polled && !b->on_trial &&
	    ((width == EVERYBODY && b->state == BOX_READY) ||
	    (width != THE_BUSY && (b->busy != 0 || b->looks < 2)) ||
	    b->busy >= LEAST_BUSY);
}

/* All that may be the one. */
static unsigned int
freeze_all(enum width width)
{
	struct box	*b;
	unsigned int	 n = 0;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		if (is_suspicious(b, width)) {
			b->suspect = b->state == BOX_READY;
			b->cleared = 0;
			b->was_busy = b->busy;
			stop(b);
			n++;
		}
	if (n != 0) {
		disk.struck = mono_ms();
		disk.width = width;
		disk.half = 0;
		disk.vain = 0;
	}
	return n;
}

/*
 * Some box that is not on trial can have done it, or has come; also one that is
 * frozen in a write that goes on.
 */
static int
others_may(uint64_t fall)
{
	const struct box	*b;
	uint64_t		 most = 0;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		if (b->on_trial || b == disk.accused)
			continue;
		if (may_write(b) && b->looks < 2)
			return 1;
		most += b->busy * MOST_PER_USEC;
	}
	return most >= fall / 2;
}

/* It goes on though all that could do it are frozen. */
static void
outside_found(void)
{
	struct box	*b;
	uint64_t	 now = mono_ms();

	disk.outside_fall = disk.fall > disk.lost ? disk.fall : disk.lost;
	log_warnx("the state directory loses %llu KiB a second, and no box "
	    "that runs does it", (unsigned long long)disk.outside_fall >> 10);
	if (now - disk.outside > STRIKES_MS * 2)
		disk.outsides = 0;
	disk.outside = now;
	disk.outside_to = now + ((uint64_t)OUTSIDE_MS << disk.outsides);
	disk.outsides += disk.outsides < OUTSIDE_LONGER;
	/* who was found was so by the same signs */
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		if (b->frozen && b->hides) {
			b->hides = 0;
			b->strikes = 0;
			b->struck = 0;
			b->suspect = 1;
		}
	phase_begin(OVER);
}

/* Nobody can be suspected: a fall that lasts is somebody's outside. */
static int
round_begin(void)
{
	if (disk.phase != NO_ROUND || mono_ms() < disk.outside_to)
		return 0;
	if (mono_ms() - disk.struck > STRIKES_MS)
		disk.fruitless = 0;
	if (freeze_all(THE_BUSY) == 0 && freeze_all(THE_AWAKE) == 0) {
		if (++disk.vain > VAIN_TICKS)
			outside_found();
		return 0;
	}
	disk.tested = 0;
	disk.round_ticks = 0;
	phase_begin(HELD);
	return 1;
}

/* ---- a round --------------------------------------------------------- */

static unsigned int
candidates(void)
{
	const struct box	*b;
	unsigned int		 n = 0;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		n += in_round(b) && !b->cleared;
	return n;
}

/* How many candidates are likelier to be the one: busier, or as much so. */
static unsigned int
likelier(const struct box *than)
{
	const struct box	*b;
	unsigned int		 n = 0, before = 1;

	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		if (b == than)
			before = 0;
		else if (in_round(b) && !b->cleared)
			n += b->was_busy > than->was_busy ||
			    (before && b->was_busy == than->was_busy);
	}
	return n;
}

/* Half of those that may be the one, the likelier first; none of none. */
static void
let_half(void)
{
	struct box	*b;
	unsigned int	 n = candidates();

	disk.let = 0;
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		if (!in_round(b) || b->cleared ||
		    (likelier(b) < (n + 1) / 2) == disk.half)
			continue;
		b->on_trial = 1;
		freeze(b, 0);
		disk.let++;
	}
}

static void
drop_accused(void)
{
	if (disk.accused != NULL)
		box_unref(disk.accused);
	disk.accused = NULL;
}

static void
none_found(void)
{
	drop_accused();
	log_warnx("the state directory is lost to a box that hides it, and "
	    "to none while it was tried");
	disk.fruitless += disk.fruitless < TRIALS_LONGER;
	phase_begin(OVER);
}

/* Those that could have been it instead. */
static void
freeze_others(void)
{
	(void)freeze_all(disk.width == THE_BUSY ? THE_AWAKE : EVERYBODY);
	phase_begin(HELD);
}

static void
fell_held(void)
{
	if (others_may(disk.rate))
		freeze_others();
	else if (++disk.vain >= VAIN_TICKS) {
		/* they may be better at it than is believed here */
		if (disk.width == THE_BUSY && freeze_all(THE_AWAKE) != 0)
			phase_begin(HELD);
		else
			outside_found();
	}
}

/* That it stopped may be that somebody outside did, by fits and starts. */
static unsigned int
calm_needed(void)
{
	if (candidates() <= 2)		/* the next may be found */
		return SURE_TICKS * (1 + disk.outsides);
	return disk.tested ? 1 : PROOF_TICKS;
}

static void
convict(struct box *b)
{
	uint64_t	now = mono_ms();

	b->strikes = b->struck == 0 || now - b->struck > 2 * STRIKES_MS ? 0 :
	    b->strikes + 1;
	b->struck = now;
	b->suspect = b->on_trial = 0;
	b->hides = 1;
	disk.falls = 0;			/* that was its fall */
	log_warnx("box %s is frozen: the state directory has %llu MiB left, "
	    "and lost %llu KiB a second when no other box could write", b->id,
	    (unsigned long long)disk.free >> 20,
	    (unsigned long long)disk.accused_of >> 10);
	phase_begin(OVER);
}

/*
 * Who was looked at a moment before the disk was can have used that: this is
 * told by the next look at it.
 */
static int
is_cleared_late(void)
{
	if (disk.accused == NULL || !others_may(disk.accused_of))
		return 0;
	drop_accused();
	freeze_others();
	return 1;
}

static void
round_held(int strange)
{
	struct box	*b = disk.accused;

	if (is_cleared_late())
		return;
	if (strange) {
		/* or it writes on, until what was begun has ended */
		if (b == NULL || b->busy * MOST_PER_USEC < disk.rate / 2) {
			drop_accused();
			fell_held();
		}
		return;
	}
	if (b != NULL && in_round(b)) {
		if (disk.vain != 0)	/* it was there without any, too */
			outside_found();
		else
			convict(b);
		drop_accused();
		return;
	}
	drop_accused();
	if (disk.calm < calm_needed() || disk.free < room())
		return;
	disk.tested = 1;
	let_half();
	if (disk.let != 0) {
		disk.phase = TRIED;
		disk.ticks = 0;
	} else
		none_found();
}

/* It is there again: it is one of those on trial, if nobody else ran. */
static void
trial_proved(void)
{
	struct box	*b, *one = NULL;

	if (others_may(disk.rate)) {
		freeze_others();
		return;
	}
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id)) {
		b->cleared |= !b->on_trial;
		if (b->on_trial && in_round(b))
			one = b;
	}
	disk.half = 0;
	if (disk.let == 1 && one != NULL) {
		disk.accused = box_ref(one);
		disk.accused_of = disk.rate;
	}
	phase_begin(HELD);
}

static void
round_tried(void)
{
	if (is_proved())
		trial_proved();
	else if (++disk.ticks > (unsigned int)TRIAL_TICKS << disk.fruitless) {
		if (disk.half) {
			none_found();
			return;
		}
		disk.half = 1;
		phase_begin(HELD);
	}
}

/* Whatever a box does to spoil it, a round ends. */
static int
is_long(void)
{
	return disk.phase != NO_ROUND && disk.phase != OVER &&
	    ++disk.round_ticks > ROUND_TICKS +
	    4 * ((unsigned int)TRIAL_TICKS << disk.fruitless);
}

/* All have been looked at: what is_strange() says. */
static int
suspects_seen(uint64_t avail)
{
	int	strange;

	if (is_long() && disk.free >= room())
		none_found();
	if (disk.phase == HELD && !all_held()) {
		look_anew();
		if (!is_cleared_late() && ++disk.ticks > STUCK_TICKS)
			none_found();
		return -1;
	}
	if (disk.phase == OVER)
		round_over();
	if ((strange = is_strange(avail)) == -1)
		return -1;
	disk.strange = strange ? disk.strange + 1 : 0;
	disk.calm = strange ? 0 : disk.calm + 1;
	if (disk.phase == NO_ROUND && disk.calm > CALM_TICKS)
		disk.vain = 0;
	if (disk.fall / 2 > disk.outside_fall)
		disk.outside_to = 0;	/* more than that was */
	if (disk.phase == HELD)
		round_held(strange);
	else if (disk.phase == TRIED)
		round_tried();
	return strange;
}

/* ---- who writes ------------------------------------------------------ */

static void
look_told(void *arg, const struct msg *m)
{
	struct box	*b = arg;
	int		 strange = 0;

	b->polled = 0;
	if (m->row->type != MSG_ERROR) {
		disk_seen(b, &m->body.box_health_is, 1);
	} else
		b->writes = b->busy = 0;	/* not to be had, or gone */
	box_unref(b);
	if (--disk.due != 0)
		return;
	if (m->row->type != MSG_ERROR && m->body.box_health_is.disk_keep != 0)
		strange = suspects_seen(m->body.box_health_is.disk_free);
	if (!disk_short())
		return;
	/* the one that is new here may be the one */
	if (disk.fresh == 0 || ++disk.waited > WAIT_TICKS) {
		disk.waited = 0;
		/* who writes openly is not to blame for what is hidden */
		if (!(is_proved() && round_begin()) &&
		    (strange == 0 || disk.free < disk.keep ||
		    mono_ms() < disk.outside_to))
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
		/* a write that was begun goes on when its box is frozen */
		if ((!may_write(b) && !b->frozen) || b->polled)
			continue;
		disk.due++;
		b->polled = 1;
		(void)str_copy(m.id, b->id, sizeof(m.id));
		peer_ask(env.privd, MSG_BOX_HEALTH, &m, T_PRIVD, look_told,
		    box_ref(b));
	}
}

/* For good in the end only where there is no room. */
static int
was_held(const struct box *b)
{
	unsigned int	n = b->strikes < FOUND_LONGER ? b->strikes :
			    FOUND_LONGER;

	return b->hides && disk.free >= disk.keep &&
	    mono_ms() - b->struck >= (uint64_t)FOUND_MS << n;
}

static int
may_go_on(const struct box *b)
{
	return b->frozen && b->state == BOX_READY && !b->condemned &&
	    !b->polled && b->removing == REMOVE_NOT &&
	    ((disk.free >= b->frozen_free &&
	    disk.free - b->frozen_free >= room()) || was_held(b));
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
		freeze(b, 0);
	}
}

int
disk_counts(void)
{
	return disk_short() || disk.watch > 0 || disk.phase != NO_ROUND;
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
	else if (!disk_short() && disk.phase == NO_ROUND)
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
