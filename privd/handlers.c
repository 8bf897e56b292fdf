/*
 * handlers.c: what apid may ask.
 *
 * What came here has passed chan: it is whole, of a type that apid may send
 * in this state, each string within its length and charset, so that an id is
 * a ULID and a rootfs a plain name.  Above each handler stands why it is safe
 * when apid is in an attacker's hands.  In general: apid may make, end and
 * read any box, that is its work; it must not reach anything that is not a
 * box, get a box without its bounds, or make privd wait, grow or fail.
 */
#include <sys/random.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "privd.h"

#define LIST_MAX	256

/* ---- what every handler needs ------------------------------------------- */

/* The entry, or NULL after the answer NOT_FOUND. */
static struct entry *
known(const struct msg *m, const char *id)
{
	struct entry	*e = table_find(id);

	if (e == NULL)
		to_apid_error(m->rid, CODE_NOT_FOUND, "no such box");
	return e;
}

static void
busy(const struct msg *m)
{
	to_apid_error(m->rid, CODE_BUSY, "another request is under way");
}

/* The same, for what changes a box that is up: it has no other asker. */
static struct entry *
idle(const struct msg *m, const char *id)
{
	struct entry	*e = known(m, id);

	if (e == NULL)
		return NULL;
	if (e->sealed)
		to_apid_error(m->rid, CODE_QUARANTINED, "%s", e->why);
	else if (e->phase != PH_UP)
		to_apid_error(m->rid, CODE_NOT_READY, "the box is not up");
	else if (e->ask != ASK_NONE)
		busy(m);
	else
		return e;
	return NULL;
}

static void
ask_is(struct entry *e, enum ask ask, const struct msg *m)
{
	e->ask = ask;
	e->rid = m->rid;
}

/* ---- create ------------------------------------------------------------ */

/* One limit: 0 means the default.  -1 after the answer. */
static int
limit(const struct msg *m, const char *name, uint64_t *v, uint64_t dflt,
    uint64_t least, uint64_t most)
{
	if (*v == 0)
		*v = dflt < most ? dflt : most;
	if (*v > most)
		to_apid_error(m->rid, CODE_LIMIT_ABOVE_CEILING, "%s %" PRIu64
		    " is above the ceiling %" PRIu64, name, *v, most);
	else if (*v < least)
		to_apid_error(m->rid, CODE_BAD_REQUEST, "%s %" PRIu64 " is "
		    "below the least %" PRIu64, name, *v, least);
	else
		return 0;
	return -1;
}

/* The directory that a rootfs's name means: its own, or a link's (default). */
static int
rootfs_find(const char *name, char ret[64])
{
	struct stat	 st;
	char		 to[64];
	ssize_t		 n = readlinkat(PRIVD_FD_ROOTFS, name, to, sizeof(to));

	if (n != -1) {
		if (n == sizeof(to) || !wire_charset_ok(CS_NAME, to,
		    (size_t)n))
			return -1;
		to[n] = '\0';
		name = to;
	}
	if (fstatat(PRIVD_FD_ROOTFS, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		return -1;
	return str_copy(ret, name, 64);
}

/* The specification as it is made, from what was asked. */
static int
specify(const struct msg *m, struct row_spec *spec)
{
	const struct msg_box_create	*c = &m->body.box_create;
	const struct box_limits		*most = &srv.conf->most,
					*dflt = &srv.conf->dflt;

	memset(spec, 0, sizeof(*spec));
	spec->version = 1;
	spec->network = c->network;
	spec->memory_bytes = c->memory_bytes;
	spec->cpu_milli = c->cpu_milli;
	spec->pids = c->pids;
	memcpy(spec->id, c->id, sizeof(spec->id));
	memcpy(spec->name, c->name, sizeof(spec->name));
	memcpy(spec->filter, srv.filter, sizeof(spec->filter));
	if (limit(m, "memory", &spec->memory_bytes, dflt->memory_bytes,
	    BOX_MEMORY_LEAST, most->memory_bytes) == -1 ||
	    limit(m, "cpu", &spec->cpu_milli, dflt->cpu_milli, 10,
	    most->cpu_milli) == -1 ||
	    limit(m, "pids", &spec->pids, dflt->pids, BOX_PIDS_LEAST,
	    most->pids) == -1)
		return -1;
	/* whole pages, as the kernel keeps it */
	spec->memory_bytes -= spec->memory_bytes %
	    (uint64_t)sysconf(_SC_PAGESIZE);
	if (rootfs_find(c->rootfs, spec->rootfs) == -1) {
		to_apid_error(m->rid, CODE_ROOTFS_UNKNOWN, "no root file "
		    "system %s: `workbox rootfs list' tells which there are",
		    c->rootfs);
		return -1;
	}
	return 0;
}

/*
 * Hostile: limits are held against the ceilings of the configuration and a 0
 * is a default, so no box is without bounds; whatever its kind, netd seals the
 * network until the nonce comes; the rootfs is a plain name that leads to a
 * directory of the rootfs directory; an id that is on disk or in the table is
 * refused, so nothing is overwritten; the number of boxes is bounded here,
 * memory and disk by the maker; the uid range, token and nonce are made here
 * and not asked for.
 */
static void
on_create(struct msg *m)
{
	struct row_spec	 spec;
	struct entry	*e;
	uint32_t	 uid;

	if (specify(m, &spec) == -1)
		return;
	if (table_find(spec.id) != NULL || life_on_disk(spec.id)) {
		to_apid_error(m->rid, CODE_EXISTS, "id is in use");
		return;
	}
	if (table_count() >= srv.conf->max_boxes || (uid = table_uid()) == 0 ||
	    (e = table_add(&spec)) == NULL) {
		to_apid_error(m->rid, CODE_NO_SPACE_FOR_BOX, "%u boxes are "
		    "the most", srv.conf->max_boxes);
		return;
	}
	e->uid = uid;
	if (getrandom(e->nonce, sizeof(e->nonce), 0) != sizeof(e->nonce) ||
	    getrandom(e->token, sizeof(e->token), 0) != sizeof(e->token))
		fatal("random numbers");
	e->nonce_live = 1;
	ask_is(e, ASK_CREATE, m);
	life_create(e);
}

/* ---- the boot ---------------------------------------------------------- */

/*
 * Hostile: apid gets a connection to a box and that box's token, which is its
 * work; never to anything else, since the maker holds what listens against
 * the pid 1 of that box.  A box that is frozen or quarantined is not attached:
 * its silence would be taken for a fault of its own.
 */
static void
on_attach(struct msg *m)
{
	struct entry	*e = idle(m, m->body.box_attach.id);

	if (e == NULL)
		return;
	if (e->frozen)
		to_apid_error(m->rid, CODE_DISK_FLOOR, "the box is frozen");
	else {
		ask_is(e, ASK_ATTACH, m);
		life_attach(e);
	}
}

/*
 * Hostile: the nonce is 32 random bytes, compared in constant time, good for
 * one box and one time.  Whoever guesses, repeats or mixes up loses the box:
 * that is apid's own harm, and any runner's that lies to it.
 */
static void
on_nonce(struct msg *m)
{
	const struct wire_bin	*n = &m->body.box_nonce.nonce;
	struct entry		*e = idle(m, m->body.box_nonce.id);

	if (e == NULL)
		return;
	ask_is(e, ASK_NONCE, m);
	if (!e->nonce_live || n->len != sizeof(e->nonce) ||
	    !secret_equal(n->data, e->nonce, sizeof(e->nonce))) {
		life_seal(e, "nonce", CODE_WRONG_NONCE);
		return;
	}
	e->nonce_live = 0;
	explicit_bzero(e->nonce, sizeof(e->nonce));
	life_open(e);
}

/*
 * Hostile: reads a box that is up and changes nothing; one question of a box
 * at a time.  What is read was written by the kernel about a process whose
 * pidfd we hold.
 */
static void
on_facts(struct msg *m)
{
	struct entry	*e = known(m, m->body.box_facts.id);

	if (e == NULL)
		return;
	if (e->phase != PH_UP)
		to_apid_error(m->rid, CODE_NOT_READY, "the box is not up");
	else if (e->facts_rid != 0 || maker_due(e, MK_FACTS))
		to_apid_error(m->rid, CODE_BUSY, "facts are being read");
	else {
		e->facts_rid = m->rid;
		maker_want(e, MK_FACTS);
	}
}

void
handle_facts(struct entry *e, struct maker_ans *a)
{
	struct msg_box_facts_are	*f = &a->u.facts.facts;
	uint32_t			 rid = e->facts_rid;

	e->facts_rid = 0;
	if (rid == 0)
		return;			/* who asked is gone */
	if (a->error != 0) {
		to_apid_error(rid, a->error == ETIMEDOUT ? CODE_BUSY :
		    CODE_INTERNAL, "%s", a->why);
		return;
	}
	f->mounts.data = (const uint8_t *)a->u.facts.mounts;
	memcpy(f->ruleset, e->ruleset, sizeof(f->ruleset));
	f->network = e->network;
	to_apid(MSG_BOX_FACTS_ARE, rid, f, -1);
}

/*
 * Hostile: as facts.  Freezing takes from a box what ending it would, and is
 * undone by who may ask for it; a quarantined box stays frozen.
 */
static void
on_health(struct msg *m)
{
	struct msg_box_health_is	 r = { .health = UNKNOWN };
	struct entry			*e = known(m, m->body.box_health.id);

	if (e == NULL)
		return;
	if (e->phase == PH_DOWN || e->phase == PH_PURGE)
		r.health = ABSENT;
	if (e->phase != PH_UP)
		to_apid(MSG_BOX_HEALTH_IS, m->rid, &r, -1);
	else if (e->health_rid != 0 || maker_due(e, MK_HEALTH))
		to_apid_error(m->rid, CODE_BUSY, "health is being read");
	else {
		e->health_rid = m->rid;
		e->freeze = (uint32_t)m->body.box_health.freeze;
		e->frozen |= e->freeze == FREEZE_ON;	/* from now on */
		e->written = (uint32_t)m->body.box_health.written;
		maker_want(e, MK_HEALTH);
	}
}

void
handle_health(struct entry *e, const struct maker_ans *a)
{
	struct msg_box_health_is	 r = a->u.health;
	uint32_t			 rid = e->health_rid;
	const char			*part = a->error != 0 ? "cgroup" :
					    e->sealed ? "quarantined" :
					    e->net != NET_THERE ? "network" :
					    NULL;

	e->health_rid = 0;
	e->freeze = FREEZE_KEEP;
	if (a->error == 0)
		e->frozen = (int)r.frozen;
	else
		memset(&r, 0, sizeof(r));
	if (rid == 0)
		return;			/* who asked is gone */
	if (part != NULL)
		(void)str_copy(r.part, part, sizeof(r.part));
	r.health = e->phase != PH_UP ? UNKNOWN :
	    r.part[0] != '\0' ? SUSPECT : HEALTHY;
	to_apid(MSG_BOX_HEALTH_IS, rid, &r, -1);
}

/* ---- the end ----------------------------------------------------------- */

/*
 * Hostile: only ever takes away from a box.  `field' is printable and short;
 * it goes to a file of the box's directory and to the log, escaped.
 */
static void
on_quarantine(struct msg *m)
{
	struct entry	*e = known(m, m->body.box_quarantine.id);

	if (e == NULL)
		return;
	if (e->phase != PH_UP)
		to_apid_error(m->rid, CODE_NOT_READY, "the box is not up");
	else if (e->ask == ASK_QUARANTINE || e->ask == ASK_KILL)
		busy(m);
	else {
		if (e->ask != ASK_NONE)	/* to attach, or to open the network */
			to_apid_error(e->rid, CODE_QUARANTINED, "quarantined");
		ask_is(e, ASK_QUARANTINE, m);
		life_seal(e, m->body.box_quarantine.field, 0);
	}
}

/*
 * Hostile: lets a box go on that the maker then finds to be, by the kernel's
 * word, what was asked but for its limits: once without its network, and once
 * more with it, when its filters were read, too.  One that never was open is
 * not opened by this.
 */
static void
on_release(struct msg *m)
{
	struct entry	*e = known(m, m->body.box_release.id);

	if (e == NULL)
		return;
	if (e->phase != PH_UP || (!e->sealed && !e->trial) || !e->opened ||
	    e->net != NET_THERE || e->net_type != 0 || e->ask != ASK_NONE ||
	    maker_due(e, MK_SEAL))
		to_apid_error(m->rid, CODE_NOT_READY, "not to be released now");
	else {
		ask_is(e, ASK_RELEASE, m);
		maker_want(e, MK_RELEASE);
	}
}

/*
 * Hostile: ends a box, by its cgroup and pidfd, never by a number of apid's.
 * Comes before any other request about the box, so that nothing keeps an
 * operator from ending it.  A box that is not there is dead.
 */
static void
on_kill(struct msg *m)
{
	struct entry	*e = table_find(m->body.box_kill.id);

	if (e == NULL || e->phase == PH_DOWN || e->phase == PH_PURGE)
		to_apid_ok(m->rid);
	else if (e->phase == PH_MAKE || e->ask == ASK_KILL)
		busy(m);
	else {
		if (e->ask != ASK_NONE)
			to_apid_error(e->rid, CODE_ENDED, "the box is ended");
		ask_is(e, ASK_KILL, m);
		if (e->phase != PH_END)
			life_end(e);
	}
}

/*
 * Hostile: removes what belongs to a box that is dead, and to no other: names
 * are ids, and the child that removes the tree never leaves it.
 */
static void
on_purge(struct msg *m)
{
	struct entry	*e = table_find(m->body.box_purge.id);

	if (e == NULL)
		to_apid_ok(m->rid);
	else if (e->ask != ASK_NONE)
		busy(m);
	else if (e->phase != PH_DOWN && e->phase != PH_PURGE)
		to_apid_error(m->rid, CODE_NOT_READY, "processes are left");
	else {
		ask_is(e, ASK_PURGE, m);
		if (e->phase == PH_DOWN)
			life_purge(e);
	}
}

/* ---- lists and logs ---------------------------------------------------- */

/* Hostile: reads the table; at most LIST_MAX ids an answer. */
static void
on_list(struct msg *m)
{
	static struct wire_bin	 ids[LIST_MAX];
	static uint8_t		 alive[LIST_MAX];
	struct msg_box_list_is	 r = { .ids = { ids, 0 },
				    .alive = { alive, 0 } };
	struct entry		*e;
	unsigned int		 i = table_above(m->body.box_list.after);

	for (; r.ids.n < LIST_MAX && (e = table_at(i)) != NULL; i++) {
		ids[r.ids.n] = wire_cstr(e->spec.id);
		alive[r.ids.n++] = e->pidfd != -1;
	}
	r.alive.len = r.ids.n;
	to_apid(MSG_BOX_LIST_IS, m->rid, &r, -1);
}

/* Hostile: a file of bounded size in the box's directory is filled. */
static void
on_log_append(struct msg *m)
{
	const struct msg_box_log_append	*a = &m->body.box_log_append;
	struct entry			*e = known(m, a->id);

	if (e == NULL)
		return;
	(void)boxlog_append(e, a->line, strlen(a->line));
	to_apid_ok(m->rid);
}

/* Hostile: reads that file and no other. */
static void
on_log_tail(struct msg *m)
{
	static uint8_t			 text[LAUNCH_LOG_MAX];
	struct msg_box_log_tail_is	 r;
	struct entry			*e = known(m, m->body.box_log_tail.id);

	ssize_t				 n;

	if (e == NULL)
		return;
	n = pread(e->file_fd, text, sizeof(text), 0);
	r.text = (struct wire_bin){ text, n > 0 ? (size_t)n : 0 };
	to_apid(MSG_BOX_LOG_TAIL_IS, m->rid, &r, -1);
}

static const struct {
	unsigned int	 type;
	void		(*fn)(struct msg *);
} handlers[] = {
	{ MSG_BOX_CREATE, on_create },
	{ MSG_BOX_ATTACH, on_attach },
	{ MSG_BOX_NONCE, on_nonce },
	{ MSG_BOX_FACTS, on_facts },
	{ MSG_BOX_HEALTH, on_health },
	{ MSG_BOX_QUARANTINE, on_quarantine },
	{ MSG_BOX_RELEASE, on_release },
	{ MSG_BOX_KILL, on_kill },
	{ MSG_BOX_PURGE, on_purge },
	{ MSG_BOX_LIST, on_list },
	{ MSG_BOX_LOG_APPEND, on_log_append },
	{ MSG_BOX_LOG_TAIL, on_log_tail },
};

int
handle_box(struct msg *m)
{
	size_t	i;

	for (i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (handlers[i].type == m->row->type) {
			handlers[i].fn(m);
			return 1;
		}
	return 0;
}
