/*
 * disk.c: the host's state file system outlives its boxes.
 *
 * Theory of operation.  Each look at a box tells how much of the state
 * directory's file system is free and how much has to be kept; there is one
 * each second at least.  When what is free would fall under that within
 * HORIZON_S at the rate at which it falls, all boxes are looked at once a
 * second for what they have written, and the one that wrote most since is
 * frozen; then, if that was not enough, the next.  So a box that writes
 * without end is stopped while others can still be made.  What is frozen goes
 * on when there is more room again than there was then; until then it can be
 * looked at and removed.
 *
 * What a box has written is told by the kernel by process, and a process's
 * own count goes to who waits for it.  A box that has its children reaped by
 * nobody hides what they wrote, but not for as long as they live.
 *
 * Must never: freeze a box that does not write.
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
#define SAMPLE_MS	1000		/* few boxes are not polled as often */
#define STALE_MS	5000		/* a count so old says no rate */

static struct {
	uint64_t	 free, keep;	/* bytes; keep 0: not told yet */
	uint64_t	 at;		/* mono ms of the sample */
	uint64_t	 falls;		/* bytes a second */
	unsigned int	 due;		/* looks that are out */
	uint64_t	 looked;	/* mono ms: all boxes */
	unsigned int	 fresh, waited;	/* boxes without a rate yet; ticks */
	unsigned int	 watch;		/* ticks: look, short or not */
	char		 tried[27];	/* was to go on last */
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

void
disk_seen(struct box *b, const struct msg_box_health_is *h)
{
	uint64_t	enough;

	if (h->disk_keep == 0)
		return;			/* of a box that is not there */
	sample(h->disk_free, h->disk_keep);
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

	if (b->frozen) {
		log_warnx("box %s is frozen: the state directory has %llu "
		    "MiB left, and it writes %llu KiB a second", b->id,
		    (unsigned long long)disk.free >> 20,
		    (unsigned long long)b->writes >> 10);
		box_health(b, SUSPECT, code_name(CODE_DISK_FLOOR));
		event_append(EVENT_SANDBOX_FROZEN, &f, "apid", b->id, "", "",
		    "denied", code_name(CODE_DISK_FLOOR), NULL, NULL);
	} else {
		log_info("box %s goes on: there is room again", b->id);
		event_append(EVENT_SANDBOX_THAWED, &t, "apid", b->id, "", "",
		    "ok", "", NULL, NULL);
	}
}

static void
freeze_told(void *arg, const struct msg *m)
{
	struct box	*b = arg;
	int		 error = m->row->type == MSG_ERROR;

	b->polled = 0;
	if (!error && (int)m->body.box_health_is.frozen == b->frozen) {
		freeze_record(b);
		/* from here on: its rate is known at the next look */
		b->written = m->body.box_health_is.written;
		b->written_at = b->written != 0 ? mono_ms() : 0;
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
		if (most->state == BOX_READY)
			freeze(most, 1);
		else
			remove_hurry(most);	/* its time is over */
	}
}

/* ---- who writes ------------------------------------------------------ */

static void
written(struct box *b, uint64_t bytes)
{
	uint64_t	now = mono_ms();

	disk.fresh += b->written_at == 0;
	b->writes = b->written_at != 0 && now > b->written_at &&
	    now - b->written_at < STALE_MS && bytes > b->written ?
	    per_second(bytes - b->written, now - b->written_at) : 0;
	b->written = bytes;
	b->written_at = now;
}

static void
look_told(void *arg, const struct msg *m)
{
	struct box	*b = arg;

	b->polled = 0;
	if (m->row->type != MSG_ERROR) {
		disk_seen(b, &m->body.box_health_is);
		written(b, m->body.box_health_is.written);
	} else
		b->writes = 0;		/* busy, or gone */
	box_unref(b);
	if (--disk.due != 0 || !disk_short())
		return;
	/* the one that is new here may be the one */
	if (disk.fresh == 0 || ++disk.waited > WAIT_TICKS) {
		disk.waited = 0;
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
		if (!may_write(b) || b->polled)
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
		freeze(b, 0);
	}
}

static void
disk_tick(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (disk.due != 0)
		return;			/* a slow one is still out */
	if (disk_short() || disk.watch > 0 ||
	    mono_ms() - disk.at >= SAMPLE_MS)
		look_all();
	if (disk.watch > 0)
		disk.watch--;
	else if (!disk_short())
		thaw_one();
}

void
disk_start(void)
{
	struct timeval	tv = { 1, 0 };

	(void)event_assign(&disk.tick, env.base, -1, EV_PERSIST, disk_tick,
	    NULL);
	if (event_add(&disk.tick, &tv) == -1)
		fatalx("add timer: out of memory");
}
