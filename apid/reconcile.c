/*
 * reconcile.c: what stored says there is, against what privd finds there.
 *
 * At each start, in this order: the greatest id ever given, all rows, all
 * boxes of privd.  Then each row is held against its box:
 *
 *   READY			alive: attached, proof compared again
 *				else: STOPPED, absent or host-restart
 *   REQUESTED ... BOOTSTRAPPING	removed, create-failed: never relaunched
 *   DRAINING, DELETING		the removal goes on
 *   QUARANTINED		frozen again
 *   STOPPED			stays, what lives of it is killed
 *   privd's, without a row	removed
 *
 * The API is served when all is known and attached, or after SERVE_MS; what
 * connects before waits in the listen queue.
 *
 * POST /v1/reconcile does the same again with what is in memory: boxes that
 * are neither being made nor removed are held against privd's; one that is
 * attached is looked at anew by health.c.
 *
 * Must never: start again what has ended.
 */
#include <string.h>
#include <time.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define SERVE_MS	3000		/* serve though not all are attached */
#define HOST_SLACK_MS	2000		/* between two clocks */

/* FOUND_MOVES: is being made or removed: not looked at. */
enum { FOUND_NOT, FOUND_DEAD, FOUND_ALIVE, FOUND_MOVES };

#define ASKERS_MAX	64

static struct {
	int		 running, again;	/* again: by request */
	char		 after[27];
	char		 newest[27];	/* boxes made later are not looked at */
	unsigned int	 due;		/* attaches */
	struct event_reconcile_done	n;
	struct event	 serve;
	json_t		*items;		/* owned: verdicts */
	uint64_t	 started_ms, finished_ms;
	char		 actor[64], request[27];
	struct http_req	*asker[ASKERS_MAX];
	size_t		 naskers;
} rec;

static void	rows_ask(void);
static void	found_ask(void);

/* ---- the verdicts ------------------------------------------------- */

static void
rec_begin(int again, const char *actor, const char *request)
{
	rec.running = 1;
	rec.again = again;
	rec.after[0] = '\0';
	memset(&rec.n, 0, sizeof(rec.n));
	json_decref(rec.items);
	rec.items = json_array();
	rec.started_ms = now_ms();
	(void)str_copy(rec.actor, actor, sizeof(rec.actor));
	(void)str_copy(rec.request, request, sizeof(rec.request));
}

/* It is on the record, or cannot be: then nobody is told that it was done. */
static void
rec_recorded(void *arg, const struct msg *m)
{
	size_t	i, n = rec.naskers;

	(void)arg;
	rec.running = 0;
	rec.naskers = 0;
	for (i = 0; i < n; i++)
		if (m->row->type == MSG_ERROR)
			api_fail(rec.asker[i], (enum wb_code)
			    m->body.error.code, m->body.error.detail);
		else
			http_reply_json(rec.asker[i], 200, json_pack(
			    "{sOsoso}", "items", rec.items,
			    "startedAt", time_json(rec.started_ms),
			    "finishedAt", time_json(rec.finished_ms)));
}

static void
rec_done(void)
{
	log_info("reconciled: %llu attached, %llu suspect, %llu absent, "
	    "%llu quarantined", (unsigned long long)rec.n.attached,
	    (unsigned long long)rec.n.suspect,
	    (unsigned long long)rec.n.absent,
	    (unsigned long long)rec.n.quarantined);
	rec.finished_ms = now_ms();
	event_append(EVENT_RECONCILE_DONE, &rec.n, rec.actor, "", "",
	    rec.request, "ok", "", rec_recorded, NULL);
	if (!rec.again) {
		(void)event_del(&rec.serve);
		apid_serve();
		health_start();
	}
}

/* One box's verdict, for who asks. */
static void
rec_item(const struct box *b, const char *verdict, const char *reason)
{
	(void)json_array_append_new(rec.items, json_pack("{ssssssso}",
	    "id", b->id, "name", b->name, "verdict", verdict,
	    "reason", text_json_or_null(reason)));
}

/* One that is news, and is counted on the record. */
static void
rec_verdict(const struct box *b, const char *verdict, const char *reason)
{
	if (strcmp(verdict, "attached") == 0)
		rec.n.attached++;
	else if (strcmp(verdict, "suspect") == 0)
		rec.n.suspect++;
	else if (strcmp(verdict, "quarantined") == 0)
		rec.n.quarantined++;
	else
		rec.n.absent++;
	rec_item(b, verdict, reason);
}

static void
rec_attached(struct box *b, const char *verdict, void *arg)
{
	(void)arg;
	rec_verdict(b, verdict, strcmp(verdict, "attached") == 0 ? "" :
	    strcmp(verdict, "suspect") == 0 ? b->part : b->reason);
	if (--rec.due == 0)
		rec_done();
}

/* Looked at anew: what its health is now. */
static void
rec_looked(struct box *b, void *arg)
{
	rec_attached(b, b->state == BOX_QUARANTINED ? "quarantined" :
	    b->state != BOX_READY || b->health == ABSENT ? "absent" :
	    b->health == HEALTHY ? "attached" : "suspect", arg);
}

/* Whether the host has started since the box was last heard of. */
static int
host_restarted(const struct box *b)
{
	struct timespec	ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts) == -1)
		return 0;
	return b->changed_ms + HOST_SLACK_MS < now_ms() -
	    ((uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000);
}

static void
rec_absent(struct box *b)
{
	const char	*why = host_restarted(b) ? "host-restart" : "absent";

	rec_verdict(b, "absent", why);
	box_health(b, ABSENT, "");
	sessions_forsaken(b);
	box_move(b, BOX_STOPPED, why, 1, NULL, NULL, NULL);
}

static void
rec_frozen(struct box *b)
{
	struct msg_box_quarantine	m = { 0 };

	rec_verdict(b, "quarantined", b->reason);
	b->condemned = 1;
	if (b->found != FOUND_ALIVE) {
		box_health(b, ABSENT, "");
		return;
	}
	(void)str_copy(m.id, b->id, sizeof(m.id));
	(void)str_copy(m.field, b->reason, sizeof(m.field));	/* cut */
	peer_ask(env.privd, MSG_BOX_QUARANTINE, &m, T_PRIVD, NULL, NULL);
}

static void
rec_box(struct box *b)
{
	struct msg_box_kill	m = { 0 };

	switch (b->state) {
	case BOX_READY:
		if (b->found != FOUND_ALIVE) {
			rec_absent(b);
			break;
		}
		rec.due++;
		boot_attach(b, rec_attached, NULL);
		break;
	case BOX_REQUESTED:
	case BOX_PROVISIONING:
	case BOX_BOOTSTRAPPING:
		rec_verdict(b, "absent", code_name(CODE_CREATE_FAILED));
		remove_box(b, 0, "create-failed", "apid", "", NULL);
		break;
	case BOX_DRAINING:
	case BOX_DELETING:
		remove_box(b, 0, b->reason, "apid", "", NULL);
		break;
	case BOX_QUARANTINED:
		rec_frozen(b);
		break;
	case BOX_STOPPED:
		rec_item(b, "absent", b->reason);
		box_health(b, ABSENT, "");
		if (b->found != FOUND_ALIVE)
			break;
		(void)str_copy(m.id, b->id, sizeof(m.id));
		peer_ask(env.privd, MSG_BOX_KILL, &m, 0, NULL, NULL);
		break;
	case BOX_DELETED:
		break;
	}
}

/* The same of a box that this process knows already. */
static void
rec_box_again(struct box *b)
{
	if (b->found == FOUND_MOVES || b->boot != NULL ||
	    b->removing != REMOVE_NOT || strcmp(b->id, rec.newest) > 0)
		return;
	if (b->condemned)	/* perhaps not on the disk yet */
		rec_verdict(b, "quarantined", b->reason);
	else if (b->state == BOX_STOPPED)
		rec_box(b);
	else if (b->state != BOX_READY)
		;
	else if (b->found != FOUND_ALIVE) {	/* privd tells, or has told */
		rec_verdict(b, "absent", "absent");
		box_ended(b);
	} else if (b->frozen)
		rec_verdict(b, "suspect", code_name(CODE_DISK_FLOOR));
	else if (b->runner == NULL)
		rec_box(b);
	else {
		rec.due++;
		health_look(b, rec_looked, NULL);
	}
}

static void
rec_all(void)
{
	struct box	*b, *next;

	rec.due = 1;
	for (b = box_next(NULL, ""); b != NULL; b = next) {
		next = box_next(NULL, b->id);
		if (rec.again)
			rec_box_again(b);
		else
			rec_box(b);
	}
	if (--rec.due == 0)
		rec_done();
}

/* ---- what privd has ----------------------------------------------- */

static void
found_page(void *arg, const struct msg *m)
{
	const struct msg_box_list_is	*l = &m->body.box_list_is;
	struct box			*b;
	char				 id[27];
	size_t				 i;

	(void)arg;
	if (m->row->type == MSG_ERROR)
		apid_lost("privd", m->body.error.detail);
	for (i = 0; i < l->ids.n; i++) {
		memcpy(id, l->ids.v[i].data, ULID_LEN);	/* CS_ULID */
		id[ULID_LEN] = '\0';
		(void)str_copy(rec.after, id, sizeof(rec.after));
		if ((b = box_by_id(id)) == NULL) {
			if (strcmp(id, rec.newest) <= 0 || !rec.again)
				remove_stray(id);
		} else if (b->found != FOUND_MOVES)
			b->found = i < l->alive.len &&
			    l->alive.data[i] != 0 ? FOUND_ALIVE : FOUND_DEAD;
	}
	if (l->ids.n != 0)
		found_ask();
	else
		rec_all();
}

static void
found_ask(void)
{
	struct msg_box_list	m = { 0 };

	(void)str_copy(m.after, rec.after, sizeof(m.after));
	peer_ask(env.privd, MSG_BOX_LIST, &m, T_PRIVD, found_page, NULL);
}

/* ---- what stored has ---------------------------------------------- */

static void
rows_page(void *arg, const struct msg *m)
{
	const struct wire_list	*rows = &m->body.sandbox_page.rows;
	struct row_sandbox	 r;
	struct wire_bin		 items[512];
	size_t			 i;

	(void)arg;
	if (m->row->type == MSG_ERROR)
		apid_lost("stored", m->body.error.detail);
	for (i = 0; i < rows->n; i++) {
		if (wire_decode_into(&wire_row_sandbox, rows->v[i].data,
		    rows->v[i].len, items, 512, &r) == -1)
			fatalx("sandbox row of stored: %s", wire_error());
		(void)str_copy(rec.after, r.id, sizeof(rec.after));
		if (r.state != BOX_DELETED)
			(void)box_load(&r);
	}
	if (rows->n != 0) {
		rows_ask();
		return;
	}
	rec.after[0] = '\0';
	found_ask();
}

static void
rows_ask(void)
{
	struct msg_sandbox_list	m = { 0 };

	(void)str_copy(m.after, rec.after, sizeof(m.after));
	peer_ask(env.stored, MSG_SANDBOX_LIST, &m, T_STORE, rows_page, NULL);
}

static void
rec_info(void *arg, const struct msg *m)
{
	(void)arg;
	if (m->row->type == MSG_ERROR)
		apid_lost("stored", m->body.error.detail);
	ulid_floor(m->body.store_info_is.last_id);
	if (m->body.store_info_is.reserve_short)
		log_warnx("the disk is short: creates will be refused");
	rows_ask();
}

static void
rec_serve(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	log_info("serving; %u boxes are not attached yet", rec.due);
	apid_serve();
}

void
reconcile_start(void)
{
	struct msg_store_info	m = { 0 };
	struct timeval		tv = { SERVE_MS / 1000,
				    SERVE_MS % 1000 * 1000L };

	(void)evtimer_assign(&rec.serve, env.base, rec_serve, NULL);
	if (event_add(&rec.serve, &tv) == -1)
		fatalx("add timer: out of memory");
	rec_begin(0, "apid", "");
	peer_ask(env.stored, MSG_STORE_INFO, &m, T_STORE, rec_info, NULL);
}

void
api_reconcile(struct http_req *r)
{
	struct box	*b;

	if (rec.naskers == ASKERS_MAX) {
		http_fail(r, CODE_BUSY, NULL, "Too many ask for it now.");
		return;
	}
	rec.asker[rec.naskers++] = r;
	if (rec.running)
		return;		/* that one's answer will do */
	rec_begin(1, http_actor(r), http_id(r));
	ulid_new(rec.newest);
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		b->found = b->boot != NULL || b->removing != REMOVE_NOT ?
		    FOUND_MOVES : FOUND_NOT;
	found_ask();
}
