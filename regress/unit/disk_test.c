/*
 * disk_test.c: who is frozen when the disk fills, and who goes on.
 *
 * disk.c alone, with boxes and a clock that stand here; the test answers its
 * looks as privd would.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../../apid/disk.c"

#define MIB	(1024UL * 1024)
#define NBOX	16
#define FIRST	'A'		/* ids: A, B, C; in a crowd more */

struct apid	env;

static uint64_t		now;	/* mono_ms() */
static struct box	boxes[NBOX];
static uint64_t		wrote[NBOX], used[NBOX];
static uint64_t		hidden[NBOX];	/* bytes a second that none tells */
static uint64_t		works[NBOX];	/* bytes a second that are told */
static int		begun[NBOX];	/* seconds that a write goes on, frozen */
static uint64_t		usec[NBOX];	/* a second, when it writes */
static uint64_t		idle;		/* usec a second otherwise */
static uint64_t		outside;	/* the same, of no box */
static uint64_t		avail;
static int		sneaks;		/* of whom one look was answered; -1 */
static int		stubborn;	/* bits of boxes: neither way */
static int		ended;		/* who is looked at last has */
static int		still[NBOX];	/* seconds that it was frozen */
static char		record[4096];	/* "A-" frozen, "A+" goes on */
static unsigned int	hurried, attached, aborted, closed;	/* bits */

/* Looks that wait for their answer. */
static struct look {
	int	 box;
	unsigned int freeze;
	void	(*cb)(void *, const struct msg *);
	void	*arg;
} looks[4 * NBOX];
static int	nlooks;

/* ---- what disk.c stands on ------------------------------------------- */

uint64_t
mono_ms(void)
{
	return now;
}

static int
which(const struct box *b)
{
	return (int)(b - boxes);
}

struct box *
box_next(const char *tenant, const char *after)
{
	int	i;

	(void)tenant;
	for (i = 0; i < NBOX; i++)
		if (boxes[i].listed && strcmp(boxes[i].id, after) > 0)
			return &boxes[i];
	return NULL;
}

struct box *
box_ref(struct box *b)
{
	b->refs++;
	return b;
}

void
box_unref(struct box *b)
{
	ck_assert_uint_gt(b->refs, 0);
	b->refs--;
}

void
box_health(struct box *b, enum wb_health h, const char *part)
{
	b->health = h;
	(void)str_copy(b->part, part, sizeof(b->part));
}

void
boot_attach(struct box *b, void (*done)(struct box *, const char *, void *),
    void *arg)
{
	ck_assert_ptr_null(done);
	ck_assert_ptr_null(arg);
	attached |= 1U << which(b);
}

void
boot_abort(struct box *b, const char *why)
{
	ck_assert_ptr_nonnull(why);
	aborted |= 1U << which(b);
	b->boot = NULL;
}

void
remove_hurry(struct box *b)
{
	hurried |= 1U << which(b);
}

void
runner_close(struct box *b)
{
	closed |= 1U << which(b);
}

void
event_append(unsigned int type, const void *body, const char *actor,
    const char *sandbox, const char *session, const char *request,
    const char *outcome, const char *reason,
    void (*done)(void *, const struct msg *), void *arg)
{
	size_t	n = strlen(record);

	(void)body;
	(void)session;
	(void)request;
	(void)done;
	(void)arg;
	ck_assert_str_eq(actor, "apid");
	ck_assert_str_eq(outcome, type == EVENT_SANDBOX_FROZEN ? "denied" :
	    "ok");
	ck_assert_str_eq(reason, type == EVENT_SANDBOX_FROZEN ? "disk-floor" :
	    "");
	ck_assert_uint_lt(n + 2, sizeof(record));
	record[n] = sandbox[0];
	record[n + 1] = type == EVENT_SANDBOX_FROZEN ? '-' : '+';
}

void
peer_ask(struct peer *p, unsigned int type, const void *body,
    uint64_t timeout_ms, void (*cb)(void *, const struct msg *), void *arg)
{
	const struct msg_box_health	*m = body;

	(void)p;
	ck_assert_uint_eq(type, MSG_BOX_HEALTH);
	ck_assert_uint_eq(timeout_ms, T_PRIVD);
	ck_assert_uint_eq(m->written, 1);
	ck_assert_int_lt(nlooks, 4 * NBOX);
	looks[nlooks++] = (struct look){ m->id[0] - FIRST,
	    (unsigned int)m->freeze, cb, arg };
}

/* ---- time goes on ------------------------------------------------------- */

static int	kernel[NBOX];		/* frozen in truth */

static void
see(int box, struct msg_box_health_is *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->written = wrote[box];
	ret->cpu_usec = used[box];
	ret->frozen = (uint64_t)kernel[box];
	ret->disk_free = avail;
	ret->disk_keep = 512 * MIB;
}

/* As health.c: one box each second. */
static void
poll(void)
{
	static int			 i;
	struct msg_box_health_is	 is;
	int				 counts = disk_counts();

	do
		i = (i + 1) % NBOX;
	while (!boxes[i].listed);
	see(i, &is);
	if (!counts)
		is.written = 0;
	disk_seen(&boxes[i], &is, counts);
}

static void
lose(uint64_t n)
{
	avail -= n < avail ? n : avail;
}

static int
alone_on_trial(int box)
{
	int	i;

	for (i = 0; i < NBOX; i++)
		if (boxes[i].on_trial != (i == box))
			return 0;
	return !kernel[box];
}

/* Answers what is asked, in the order of asking, and what that asks for. */
static void
answer(void)
{
	static const struct proto_row	is = { .type = MSG_BOX_HEALTH_IS };
	struct look			l;
	struct msg			m;

	while (nlooks > 0) {
		l = looks[0];
		memmove(looks, looks + 1, sizeof(looks[0]) *
		    (size_t)--nlooks);
		if (l.freeze != FREEZE_KEEP && !(stubborn & 1 << l.box))
			kernel[l.box] = l.freeze == FREEZE_ON;
		m.row = &is;
		see(l.box, &m.body.box_health_is);
		if (l.box == sneaks && alone_on_trial(1)) {
			lose(50 * MIB);
			used[sneaks] += 10000;
			sneaks = -1;
		}
		if (ended && nlooks == 0)	/* privd tells nothing then */
			memset(&m.body.box_health_is, 0,
			    sizeof(m.body.box_health_is));
		l.cb(l.arg, &m);
	}
}

/* A second in which each that may writes so many bytes. */
static void
second(uint64_t a, uint64_t b, uint64_t c)
{
	static int	unstopped[NBOX];
	uint64_t	n[NBOX] = { a, b, c };
	int		i;

	now += 500;
	poll();
	now += 500;
	for (i = 0; i < NBOX; i++)
		if (!kernel[i]) {
			n[i] += works[i];
			wrote[i] += n[i];
			used[i] += n[i] + hidden[i] != 0 ? usec[i] : idle;
			lose(n[i] + hidden[i]);
			unstopped[i] = begun[i];
		} else {
			still[i]++;
			if (unstopped[i] > 0 && unstopped[i]--) {
				used[i] += usec[i];
				lose(hidden[i]);
			}
		}
	lose(outside);
	disk_tick(-1, 0, NULL);
	answer();
}

static void
setup(void)
{
	int	i;

	memset(&disk, 0, sizeof(disk));
	memset(boxes, 0, sizeof(boxes));
	ck_assert_ptr_nonnull(env.base = event_base_new());
	now = 1000000;
	avail = 2048 * MIB;
	nlooks = 0;
	for (i = 0; i < NBOX; i++) {
		boxes[i].id[0] = (char)(FIRST + i);
		boxes[i].state = BOX_READY;
		boxes[i].listed = i < 3;
		(void)event_assign(&boxes[i].retry, env.base, -1, 0, disk_tick,
		    NULL);
		wrote[i] = used[i] = MIB;
		hidden[i] = works[i] = 0;
		begun[i] = 0;
		usec[i] = 50000;
		kernel[i] = still[i] = 0;
	}
	outside = 0;
	idle = 10;
	sneaks = -1;
	stubborn = ended = 0;
	hurried = attached = aborted = closed = 0;
	memset(record, 0, sizeof(record));
	disk_start();
}

static void
teardown(void)
{
	event_base_free(env.base);
}

/* Until A has been frozen, which writes 200 MiB a second. */
static void
fill(void)
{
	int	i;

	for (i = 0; i < 10 && !boxes[0].frozen; i++)
		second(200 * MIB, MIB / 10, 0);
	ck_assert_int_eq(boxes[0].frozen, 1);
	ck_assert_str_eq(record, "A-");
	ck_assert_uint_ge(avail, 512 * MIB);
}

/* ---- who is frozen ------------------------------------------------------- */

START_TEST(who_fills_it)
{
	int	i;

	fill();
	ck_assert_int_eq(boxes[0].health, SUSPECT);
	ck_assert_str_eq(boxes[0].part, "disk-floor");
	ck_assert_uint_eq(closed, 1);
	for (i = 0; i < 60; i++)
		second(200 * MIB, MIB / 10, 0);
	ck_assert_str_eq(record, "A-");		/* nobody else, and no more */
	for (i = 0; i < NBOX; i++)
		ck_assert_uint_eq(boxes[i].refs, 0);
}
END_TEST

/* The only one, which health.c looks at each second. */
START_TEST(alone)
{
	boxes[1].listed = boxes[2].listed = 0;
	fill();
}
END_TEST

START_TEST(nobody_writes)
{
	int	i;

	avail = 100 * MIB;
	for (i = 0; i < 10; i++)
		second(0, 1000, 0);
	ck_assert_str_eq(record, "");
}
END_TEST

/* Somebody outside of boxes does: below what is kept each counts. */
START_TEST(hardly)
{
	int	i;

	usec[1] = idle = 0;
	for (i = 0; i < 4; i++) {
		avail -= 300 * MIB;
		second(0, MIB, 0);
	}
	ck_assert_str_eq(record, "");
	avail = 500 * MIB;
	second(0, MIB, 0);
	ck_assert_str_eq(record, "B-");
}
END_TEST

START_TEST(draining)
{
	boxes[0].state = BOX_DRAINING;
	while (hurried == 0 && avail > 0)
		second(200 * MIB, 0, 0);
	ck_assert_uint_eq(hurried, 1);
	ck_assert_uint_ge(avail, 512 * MIB);
	ck_assert_str_eq(record, "");
}
END_TEST

/* What the kernel refuses is tried again, and is not told as done. */
START_TEST(refused)
{
	int	i;

	stubborn = 1;
	for (i = 0; i < 5; i++)
		second(200 * MIB, 0, 0);
	ck_assert_str_eq(record, "");
	ck_assert_int_eq(boxes[0].frozen, 0);
	ck_assert_uint_eq(attached, 1);		/* its channel was closed */
	stubborn = 0;
	second(200 * MIB, 0, 0);
	second(200 * MIB, 0, 0);
	ck_assert_str_eq(record, "A-");
}
END_TEST

/* Frozen by an apid before this one. */
START_TEST(found)
{
	kernel[1] = 1;
	avail = 600 * MIB;
	second(0, 0, 0);
	ck_assert_int_eq(boxes[1].frozen, 1);
	ck_assert_str_eq(record, "");
	avail = 1000 * MIB;
	second(0, 0, 0);
	second(0, 0, 0);
	ck_assert_str_eq(record, "B+");
}
END_TEST

/* ---- who goes on ---------------------------------------------------------- */

START_TEST(goes_on)
{
	int	i;

	fill();
	attached = 0;
	for (i = 0; i < 5; i++)
		second(0, 0, 0);
	ck_assert_str_eq(record, "A-");		/* no room has come */
	avail += 600 * MIB;
	for (i = 0; i < 12 && boxes[0].frozen; i++)
		second(0, 0, 0);
	ck_assert_str_eq(record, "A-A+");
	ck_assert_uint_eq(attached, 1);
	/* and it alone is stopped again, though B writes as well */
	for (i = 0; i < 10 && !boxes[0].frozen; i++)
		second(400 * MIB, MIB / 10, 0);
	ck_assert_str_eq(record, "A-A+A-");
	ck_assert_uint_ge(avail, 512 * MIB);
}
END_TEST

/* One that cannot go on does not keep the others. */
START_TEST(turns)
{
	int	i;

	for (i = 0; i < 20 && !(kernel[0] && kernel[1]); i++)
		second(150 * MIB, 150 * MIB, 0);
	ck_assert(kernel[0] && kernel[1]);
	memset(record, 0, sizeof(record));
	stubborn = 1;
	avail = 2000 * MIB;
	for (i = 0; i < 40; i++)
		second(0, 0, 0);
	ck_assert_str_eq(record, "B+");
	ck_assert_int_eq(boxes[0].frozen, 1);
	stubborn = 0;
	for (i = 0; i < 40; i++)
		second(0, 0, 0);
	ck_assert_str_eq(record, "B+A+");
}
END_TEST

/* Neither a condemned one, nor one that is being removed. */
START_TEST(stays)
{
	int	i;

	fill();
	boxes[0].condemned = 1;
	avail = 2000 * MIB;
	for (i = 0; i < 20; i++)
		second(0, 0, 0);
	boxes[0].condemned = 0;
	boxes[0].removing = REMOVE_KILL;
	for (i = 0; i < 20; i++)
		second(0, 0, 0);
	ck_assert_str_eq(record, "A-");
}
END_TEST

/* ---- what nobody tells ----------------------------------------------------- */

static void
seconds(int n)
{
	while (n-- > 0)
		second(0, MIB / 10, 0);
}

/* A hides it, B writes a little, C does nothing. */
START_TEST(hides)
{
	hidden[0] = 200 * MIB;
	seconds(60);
	ck_assert_int_eq(boxes[0].frozen, 1);
	ck_assert_int_eq(boxes[1].frozen, 0);
	ck_assert_ptr_null(strchr(record, 'C'));
	ck_assert_uint_ge(avail, 512 * MIB);
	ck_assert_uint_eq(boxes[0].refs + boxes[1].refs + boxes[2].refs, 0);
	/* with room it goes on, and is found again */
	memset(record, 0, sizeof(record));
	hidden[0] = 0;
	avail = 2000 * MIB;
	seconds(20);
	ck_assert_int_eq(boxes[0].frozen, 0);
	hidden[0] = 200 * MIB;
	seconds(40);
	ck_assert_int_eq(boxes[0].frozen, 1);
	ck_assert_int_eq(boxes[1].frozen, 0);
	ck_assert_uint_ge(avail, 512 * MIB);
}
END_TEST

/* So many boxes that are all busy, and write a little. */
static void
crowd(int n)
{
	int	i;

	for (i = 0; i < NBOX; i++) {
		boxes[i].listed = i < n;
		works[i] = i < n ? 10000 : 0;
	}
}

/* As second(), of which there are too many for the record. */
static void
crowd_second(void)
{
	second(0, 0, 0);
	memset(record, 0, sizeof(record));
}

/* B, which is one of them, was never taken for the one, nor stood long. */
static void
innocent(int box, int most)
{
	ck_assert_int_eq(boxes[box].strikes, 0);
	ck_assert_int_eq(boxes[box].hides, 0);
	ck_assert_int_eq(kernel[box], 0);
	ck_assert_int_le(still[box], most);
}

/* Nobody else waits long, wherever among them the one is. */
START_TEST(in_a_crowd)
{
	int	i;

	crowd(NBOX);
	hidden[_i] = 50 * MIB;
	for (i = 0; i < 100 && !boxes[_i].hides; i++)
		crowd_second();
	ck_assert_int_eq(boxes[_i].hides, 1);
	for (i = 0; i < 30; i++)
		crowd_second();
	for (i = 0; i < NBOX; i++)
		if (i != _i)
			innocent(i, 45);
	ck_assert_uint_ge(avail, 400 * MIB);
}
END_TEST

/* It costs less processor time than anybody's work. */
START_TEST(slow)
{
	int	i;

	crowd(3);
	avail = 700 * MIB;
	hidden[0] = 8 * MIB;
	usec[0] = (const uint64_t[]){ 4400, 2200, 40 }[_i];
	works[0] = works[2] = 0;
	for (i = 0; i < 80; i++)
		crowd_second();
	ck_assert_int_eq(boxes[0].hides, 1);
	innocent(1, 30);
	ck_assert_uint_ge(avail, 400 * MIB);
}
END_TEST

/* It is quiet after it was let go for as long as any trial takes. */
static void
sly(int quiet, int n)
{
	static int	wait;
	int		i;

	for (i = 0; i < n; i++) {
		wait = kernel[0] ? quiet : wait - (wait > 0);
		hidden[0] = wait > 0 ? 0 : 100 * MIB;
		crowd_second();
	}
}

START_TEST(impatient)
{
	crowd(3);
	sly(9, 400);
	ck_assert_int_eq(boxes[0].hides, 1);
	innocent(1, 60);
	innocent(2, 60);
	ck_assert_uint_ge(avail, 300 * MIB);
}
END_TEST

/* What it gets is seldom, and the others run for most of the time. */
START_TEST(patient)
{
	uint64_t	lost = 0;
	int		i;

	crowd(3);
	avail = 600 * MIB;
	for (i = 0; i < 1800; i++) {
		if (avail < 300 * MIB) {
			lost += 600 * MIB - avail;
			avail = 600 * MIB;
		}
		sly(30, 1);
	}
	ck_assert_int_eq(boxes[0].hides, 0);
	ck_assert_uint_le(lost, 1800 * 5 * MIB);
	ck_assert_int_le(still[1], 600);
	ck_assert_int_le(still[2], 800);
}
END_TEST

/* A is quiet while it is tried alone, and writes while B is. */
START_TEST(frames)
{
	int	i;

	crowd(3);
	for (i = 0; i < 3600; i++) {
		hidden[0] = i > 100 || boxes[0].on_trial ? 0 : 100 * MIB;
		crowd_second();
		ck_assert_int_eq(boxes[1].strikes, 0);
		ck_assert_int_eq(boxes[1].hides, 0);
		if (i == 100)
			ck_assert_int_le(still[1] + still[2], 160);
	}
	ck_assert(!kernel[0] && !kernel[1] && !kernel[2]);
}
END_TEST

/* C, and then more, write for a moment when B is tried alone. */
START_TEST(framed)
{
	int	i, next = 2, times = 0;

	crowd(8);
	hidden[0] = 100 * MIB;
	for (i = 2; i < 8; i++)
		works[i] = 0;
	for (i = 0; i < 120; i++) {
		hidden[next] = 0;
		hidden[0] = boxes[0].on_trial ? 0 : 100 * MIB;
		if (alone_on_trial(1) && times < _i) {
			while (next < 7 && kernel[next])
				next++;
			times++;
			hidden[next] = 50 * MIB;
		}
		crowd_second();
		ck_assert_int_eq(boxes[1].strikes, 0);
		ck_assert_int_eq(boxes[1].hides, 0);
		if (i == 60)
			hidden[0] = 100 * MIB;
	}
	ck_assert_int_eq(times, _i);
	ck_assert_int_le(still[1], 90);
}
END_TEST

/* C writes when it has just been looked at, and before the disk is. */
START_TEST(framed_between)
{
	int	i;

	crowd(4);
	works[2] = works[3] = 0;
	hidden[0] = 60 * MIB;
	sneaks = 2;
	for (i = 0; i < 60; i++) {
		if (boxes[0].on_trial)
			hidden[0] = 0;
		crowd_second();
		ck_assert_int_eq(boxes[1].strikes, 0);
		ck_assert_int_eq(boxes[1].hides, 0);
	}
	ck_assert_int_eq(sneaks, -1);
	innocent(1, 45);
}
END_TEST

/* B writes as well, openly, but not what is lost. */
START_TEST(openly)
{
	int	i;

	crowd(3);
	hidden[0] = 50 * MIB;
	works[1] = 2 * MIB;
	for (i = 0; i < 60 && !boxes[0].hides; i++)
		crowd_second();
	ck_assert_int_eq(boxes[0].hides, 1);
	crowd_second();
	crowd_second();
	innocent(1, 45);
	ck_assert_uint_ge(avail, 512 * MIB);
}
END_TEST

/* It writes on when it is frozen, for a while: not outside, and not B. */
START_TEST(writes_on)
{
	int	i;

	crowd(3);
	begun[0] = 5;
	hidden[0] = 30 * MIB;
	for (i = 0; i < 100; i++) {
		crowd_second();
		ck_assert_int_eq(boxes[1].strikes, 0);
		ck_assert_int_eq(boxes[1].hides, 0);
		ck_assert_uint_eq(disk.outside, 0);
	}
	ck_assert_int_eq(boxes[0].hides, 1);
	innocent(1, 45);
	innocent(2, 45);
}
END_TEST

/* Two of them, together or by turns. */
START_TEST(pair)
{
	int	i;

	crowd(5);
	for (i = 0; i < 150; i++) {
		hidden[1] = _i == 0 || i / 5 % 2 == 0 ? 60 * MIB : 0;
		hidden[3] = _i == 0 || i / 5 % 2 == 1 ? 60 * MIB : 0;
		if (_i == 2)		/* while the other cannot */
			hidden[3] = kernel[1] ? 60 * MIB : 0;
		crowd_second();
		if (boxes[1].hides && boxes[3].hides)
			break;
	}
	ck_assert(boxes[1].hides && boxes[3].hides);
	for (i = 0; i < 20; i++)
		crowd_second();
	innocent(0, 60);
	innocent(2, 60);
	innocent(4, 60);
	ck_assert_uint_ge(avail, 100 * MIB);
}
END_TEST

/* Nothing is lost any more: it goes on, each time after longer. */
START_TEST(held)
{
	int	i, first;

	crowd(2);
	hidden[0] = 100 * MIB;
	for (i = 0; i < 40 && !boxes[0].hides; i++)
		crowd_second();
	ck_assert_uint_ge(avail, 512 * MIB);
	hidden[0] = 0;
	for (first = 0; first < 200 && boxes[0].frozen; first++)
		crowd_second();
	ck_assert_int_ge(first, 59);
	ck_assert_int_le(first, 90);
	avail = 1000 * MIB;
	hidden[0] = 100 * MIB;
	for (i = 0; i < 40 && !boxes[0].hides; i++)
		crowd_second();
	hidden[0] = 0;
	avail = 1000 * MIB;
	boxes[0].frozen_free = 1000 * MIB;
	for (i = 0; i < 300 && boxes[0].frozen; i++)
		crowd_second();
	ck_assert_int_ge(i, 119);
	ck_assert_int_le(i, 150);
	innocent(1, 60);
}
END_TEST

/* One whose time is over and that does not thaw at once is not forgotten. */
START_TEST(stuck)
{
	int	i;

	crowd(2);
	hidden[0] = 100 * MIB;
	for (i = 0; i < 40 && !boxes[0].hides; i++)
		crowd_second();
	hidden[0] = 0;
	stubborn = 1 << 0;
	for (i = 0; i < 100; i++)
		crowd_second();
	ck_assert_int_eq(boxes[0].frozen, 1);
	stubborn = 0;
	for (i = 0; i < 40 && boxes[0].frozen; i++)
		crowd_second();
	ck_assert_int_eq(boxes[0].frozen, 0);
}
END_TEST

/* Who was busier is tried before the other, and alone when it is that. */
START_TEST(busier)
{
	int	i;

	crowd(2);
	usec[0] = 10000;
	hidden[1] = 100 * MIB;
	for (i = 0; i < 40 && !boxes[1].hides; i++) {
		crowd_second();
		ck_assert_int_eq(boxes[0].on_trial, 0);
	}
	ck_assert_int_eq(boxes[1].hides, 1);
	ck_assert_int_le(i, 20);
}
END_TEST

/* One that is let go and does not answer is frozen all the same. */
START_TEST(deaf)
{
	static struct boot	*boot;
	int			 i;

	crowd(2);
	hidden[0] = 50 * MIB;
	for (i = 0; i < 40 && !boxes[0].on_trial; i++)
		crowd_second();
	boxes[0].boot = (struct boot *)&boot;
	for (i = 0; i < 20 && !kernel[0]; i++)
		crowd_second();
	ck_assert_uint_eq(aborted, 1);
	ck_assert_int_eq(kernel[0], 1);
}
END_TEST

/* The answer about a box that ended just now says nothing of the disk. */
START_TEST(ends)
{
	int	i;

	avail = 500 * MIB;
	disk.struck = now;		/* one look is a proof then */
	for (i = 0; i < 10; i++) {
		used[1] += 50000;
		ended = i == 7;	/* C, which health.c has just seen */
		second(0, 0, 0);
	}
	ck_assert_str_eq(record, "");
}
END_TEST

/* Nobody's: busy boxes stand still for a moment, and no more. */
START_TEST(somebody_else)
{
	int	i;

	crowd(3);
	avail = 1024 * MIB;
	outside = 30 * MIB;
	for (i = 0; i < 60; i++)
		crowd_second();
	ck_assert_int_gt(still[1], 0);
	innocent(1, 12);
	/* and not again and again */
	for (i = 0; i < 1200; i++)
		crowd_second();
	innocent(1, 60);
	innocent(2, 60);
}
END_TEST

/* By fits and starts: it is not laid to whoever ran then. */
START_TEST(fits)
{
	int	i;

	crowd(4);
	avail = 1024 * MIB;
	for (i = 0; i < 600; i++) {
		outside = i % (_i + 2) < 1 + _i / 4 ? 60 * MIB : 0;
		crowd_second();
		if (avail < 300 * MIB)
			avail = 700 * MIB;
	}
	outside = 0;
	for (i = 0; i < 120; i++)
		crowd_second();
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(kernel[i], 0);
		ck_assert_int_le(still[i], 180);
	}
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("disk");
	TCase	*t = tcase_create("disk");
	SRunner	*sr;
	int	 n;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, who_fills_it);
	tcase_add_test(t, alone);
	tcase_add_test(t, nobody_writes);
	tcase_add_test(t, hardly);
	tcase_add_test(t, draining);
	tcase_add_test(t, refused);
	tcase_add_test(t, found);
	tcase_add_test(t, goes_on);
	tcase_add_test(t, turns);
	tcase_add_test(t, stays);
	tcase_add_test(t, hides);
	tcase_add_loop_test(t, in_a_crowd, 0, NBOX);
	tcase_add_loop_test(t, slow, 0, 3);
	tcase_add_test(t, impatient);
	tcase_add_test(t, patient);
	tcase_add_test(t, frames);
	tcase_add_loop_test(t, framed, 0, 4);
	tcase_add_test(t, framed_between);
	tcase_add_test(t, openly);
	tcase_add_test(t, writes_on);
	tcase_add_loop_test(t, pair, 0, 3);
	tcase_add_test(t, held);
	tcase_add_test(t, stuck);
	tcase_add_test(t, busier);
	tcase_add_test(t, deaf);
	tcase_add_test(t, ends);
	tcase_add_test(t, somebody_else);
	tcase_add_loop_test(t, fits, 0, 12);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	n = srunner_ntests_failed(sr);
	srunner_free(sr);
	return n == 0 ? 0 : 1;
}
