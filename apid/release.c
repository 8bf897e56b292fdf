/*
 * release.c: out of QUARANTINED and SUSPECT, by an operator's word.
 *
 * Theory of operation.  The table of common/release.def says which verdicts
 * may be released; any other is refused by its name, whoever asks.  One that
 * may be goes, of a box that is QUARANTINED,
 *
 *   TRIAL   privd thaws it, without its network		-> PROOF
 *   PROOF   boot.c attaches and takes the proof in full	-> RECORD
 *   RECORD  sandbox.released is written (durable)		-> OPEN
 *   OPEN    privd looks again and opens its network		-> READY
 *   READY   is written with the new evidence (durable)		-> done
 *
 * and whatever goes wrong on the way freezes it again, as it was.  Should
 * this process end on the way, privd has it frozen, or stored has it as
 * QUARANTINED, which reconcile.c freezes.  A field of the proof that differs
 * and may be released is named in the reason of the state READY, which stored
 * keeps: it does not count any more, for as long as the box is READY.
 *
 * A box that is SUSPECT is attached anew and its proof taken in full; what
 * differs then quarantines it, as ever.
 *
 * Must never: let a box go on for whom a field differs that is not in the
 * table, or open its network before the proof.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define RELEASED	"released: "	/* the reason of such a state */
#define NOT_RELEASED	"It was not released: %s. It is frozen again."
#define WHY_MAX		255

struct release {
	struct box		*box;		/* referenced */
	struct http_req		*req;		/* who asked */
	int			 suspect;	/* it was not QUARANTINED */
	char			 from[64];	/* reason, or part */
	char			 fields[128];	/* "a,b" */
	char			 actor[64], request[27];
	char			 why[WHY_MAX + 1];
	char			*proof;		/* owned */
	int			 noted;		/* sandbox.released is written */
	int			 moving;	/* READY is being written */
	char			 spoilt[64];	/* meanwhile, by this; or "" */
};

static const struct {
	const char	*name;
	int		 may;
	const char	*why;
} table[] = {
#define MAY(n, why)	{ n, 1, why },
#define NEVER(n, why)	{ n, 0, why },
#include "release.def"
};

/* ---- the table ----------------------------------------------------- */

int
release_may(const char *name, const char **ret_why)
{
	size_t	i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i].name, name) == 0) {
			*ret_why = table[i].why;
			return table[i].may;
		}
	*ret_why = "it is not known to be harmless";
	return 0;
}

/* Whether a list of words with commas between has this one. */
static int
has_word(const char *list, const char *word)
{
	size_t	n = strlen(word);

	for (;; list++) {
		if (strncmp(list, word, n) == 0 &&
		    (list[n] == ',' || list[n] == '\0'))
			return 1;
		if ((list = strchr(list, ',')) == NULL)
			return 0;
	}
}

static int
holds(const struct box *b, const char *field)
{
	const size_t	 n = sizeof(RELEASED) - 1;
	const char	*why;

	if (!release_may(field, &why))
		return 0;
	return b->release != NULL || (b->state == BOX_READY &&
	    strncmp(b->reason, RELEASED, n) == 0 &&
	    has_word(b->reason + n, field));
}

/* The first word of a list, and its length; all of what is none. */
static size_t
first_word(const char *list, char ret[64])
{
	size_t	n = list[0] == ',' ? strlen(list) : strcspn(list, ",");

	(void)snprintf(ret, 64, "%.*s", (int)n, list);	/* fits: proto.def */
	return n;
}

int
release_holds(const struct box *b, const char *verdict, char ret[64])
{
	size_t	n;

	for (;; verdict += n + 1) {
		n = first_word(verdict, ret);
		if (!holds(b, ret))
			return 0;
		if (verdict[n] == '\0')
			return 1;
	}
}

static void
add_word(struct release *r, const char *word)
{
	size_t	n = strlen(r->fields);

	if (!has_word(r->fields, word) &&
	    n + strlen(word) + 2 <= sizeof(r->fields))
		(void)snprintf(r->fields + n, sizeof(r->fields) - n, "%s%s",
		    n == 0 ? "" : ",", word);
}

/* ---- the end of one -------------------------------------------------- */

static void
release_free(struct release *r)
{
	struct box	*b = r->box;

	peer_forget(env.privd, r);
	peer_forget(env.stored, r);
	b->release = NULL;
	free(r->proof);
	free(r);
	box_unref(b);
}

static void
refuse(struct http_req *req, const char *field)
{
	const char	*why;

	(void)release_may(field, &why);
	http_fail_with(req, CODE_NEVER_RELEASED, json_pack("{ss}", "field",
	    field), "%s can never be released: %s. `sandbox evidence' saves "
	    "what there is to see, `sandbox rm' removes it.", field, why);
}

static void
record(struct release *r, const char *outcome,
    void (*done)(void *, const struct msg *))
{
	struct event_sandbox_released	e = { 0 };

	(void)str_copy(e.from, r->suspect ? "SUSPECT" : "QUARANTINED",
	    sizeof(e.from));
	(void)str_copy(e.fields, r->fields, sizeof(e.fields));
	(void)str_copy(e.why, r->why, sizeof(e.why));
	event_append(EVENT_SANDBOX_RELEASED, &e, r->actor, r->box->id, "",
	    r->request, outcome, "", done, done == NULL ? NULL : r);
}

static void
frozen_again(void *arg, const struct msg *m)
{
	struct box	*b = arg;

	if (peer_code(m) != CODE_NONE && b->removing == REMOVE_NOT)
		log_warnx("box %s: freeze again: %s", b->id, peer_detail(m));
	box_unref(b);
}

void
release_failed(struct box *b, enum wb_code code, const char *detail)
{
	struct msg_box_quarantine	 m = { 0 };
	struct release			*r = b->release;

	log_warnx("box %s: not released: %s", b->id, detail);
	runner_close(b);
	(void)str_copy(m.id, b->id, sizeof(m.id));
	(void)str_copy(m.field, b->reason, sizeof(m.field));	/* cut */
	peer_ask(env.privd, MSG_BOX_QUARANTINE, &m, T_PRIVD, frozen_again,
	    box_ref(b));
	if (r->noted)
		record(r, "failed", NULL);
	http_fail(r->req, code, NULL, NOT_RELEASED, detail);
	release_free(r);
}

int
release_spoilt(struct box *b, const char *field)
{
	struct release	*r = b->release;

	if (r->moving)
		(void)str_copy(r->spoilt, field, sizeof(r->spoilt)); /* cut */
	return r->moving;
}

/* ---- READY, OPEN, RECORD --------------------------------------------- */

/* READY stands in the record, and what came meanwhile takes it back. */
static void
ready_spoilt(struct release *r)
{
	struct box	*b = r->box;
	struct http_req	*req = r->req;
	char		 spoilt[64];

	memcpy(spoilt, r->spoilt, sizeof(spoilt));
	record(r, "failed", NULL);
	release_free(r);
	box_quarantine(b, spoilt, NULL, 0);
	http_fail(req, CODE_PROOF_DIFFERS, NULL, NOT_RELEASED, spoilt);
}

static void
ready_recorded(struct box *b, enum wb_code code, void *arg)
{
	struct release	*r = arg;
	struct http_req	*req = r->req;

	r->moving = 0;
	if (code != CODE_NONE) {
		boot_unproved(b, code, "READY could not be recorded");
		return;
	}
	b->condemned = 0;
	if (r->spoilt[0] != '\0') {
		ready_spoilt(r);
		return;
	}
	/* who did is in the record: behind a proxy it is a person's name */
	log_info("box %s: released: %s", b->id, r->fields);
	release_free(r);
	boot_released(b);
	api_reply_box(req, 200, b);
}

static void
opened(void *arg, const struct msg *m)
{
	struct release		*r = arg;
	struct move_more	 more = { r->actor, r->request, NULL, 0 };
	char			 reason[128];

	if (peer_code(m) != CODE_NONE) {
		boot_unproved(r->box, peer_code(m), peer_detail(m));
		return;
	}
	(void)snprintf(reason, sizeof(reason), RELEASED "%.100s", r->fields);
	more.proof = (const uint8_t *)r->proof;
	more.proof_len = strlen(r->proof);
	r->moving = 1;
	box_move(r->box, BOX_READY, reason, 1, &more, ready_recorded, r);
}

static void
recorded(void *arg, const struct msg *m)
{
	struct msg_box_release	 q = { 0 };
	struct release		*r = arg;

	if (peer_code(m) != CODE_NONE) {
		boot_unproved(r->box, peer_code(m), peer_detail(m));
		return;
	}
	r->noted = 1;
	(void)str_copy(q.id, r->box->id, sizeof(q.id));
	peer_ask(env.privd, MSG_BOX_RELEASE, &q, T_PRIVD, opened, r);
}

void
release_proved(struct box *b, const struct msg_box_facts_are *host,
    const char *proof)
{
	struct release	*r = b->release;
	const char	*s = host->verdict;
	char		 word[64];

	for (; *s != '\0'; s += strspn(s, ",")) {
		s += first_word(s, word);
		add_word(r, word);
	}
	r->proof = xstrdup(proof);
	record(r, "ok", recorded);
}

/* ---- PROOF, TRIAL ------------------------------------------------------- */

static void
thawed(void *arg, const struct msg *m)
{
	struct release	*r = arg;
	struct http_req	*req = r->req;
	char		 field[64];
	enum wb_code	 code = peer_code(m);

	if (code == CODE_NONE && r->box->removing != REMOVE_NOT) {
		release_failed(r->box, CODE_ENDED, "it is being removed");
		return;
	}
	if (code == CODE_NONE) {
		boot_attach(r->box, NULL, NULL);
		return;
	}
	/* the field comes first in what privd says */
	(void)snprintf(field, sizeof(field), "%.*s",
	    (int)strcspn(peer_detail(m), ":"), peer_detail(m));
	log_warnx("box %s: not released: %s", r->box->id, peer_detail(m));
	if (code == CODE_PROOF_DIFFERS)
		refuse(req, field);
	else
		api_fail(req, code, peer_detail(m));
	release_free(r);	/* it was not thawed */
}

static struct release *
release_new(struct http_req *req, struct box *b, const char *from)
{
	struct release	*r = xcalloc(1, sizeof(*r));
	const char	*why = json_string_value(json_object_get(
			    http_json(req), "reason"));

	r->box = box_ref(b);
	r->req = req;
	(void)str_copy(r->from, from, sizeof(r->from));	/* cut is fine */
	(void)str_copy(r->actor, http_actor(req), sizeof(r->actor));
	(void)str_copy(r->request, http_id(req), sizeof(r->request));
	if (why != NULL)
		(void)str_copy(r->why, why, sizeof(r->why)); /* schema */
	add_word(r, r->from);
	return r;
}

/* ---- SUSPECT -------------------------------------------------------------- */

static void
suspect_recorded(void *arg, const struct msg *m)
{
	struct release	*r = arg;

	if (peer_code(m) != CODE_NONE)
		api_fail(r->req, peer_code(m), peer_detail(m));
	else
		api_reply_box(r->req, 200, r->box);
	free(r->proof);
	box_unref(r->box);
	free(r);
}

static void
suspect_looked(struct box *b, void *arg)
{
	struct release	*r = arg;

	if (b->state == BOX_READY && b->health == HEALTHY) {
		record(r, "ok", suspect_recorded);
		return;
	}
	if (b->condemned)
		http_fail(r->req, CODE_QUARANTINED, NULL, "Its proof was taken "
		    "again and differs: %s. It is quarantined now.",
		    b->state == BOX_QUARANTINED ? b->reason : "see its state");
	else
		http_fail(r->req, CODE_BAD_TRANSITION, NULL, "It was looked "
		    "at again and is still %s: %s.", health_name(b->health),
		    b->part[0] == '\0' ? state_name(b->state) : b->part);
	box_unref(b);
	free(r);
}

static void
suspect_attached(struct box *b, const char *verdict, void *arg)
{
	(void)verdict;
	health_look(b, suspect_looked, arg);
}

/* ---- from outside ------------------------------------------------------------ */

static void
release_suspect(struct http_req *req, struct box *b)
{
	struct release	*r;
	const char	*why;

	if (!release_may(b->part, &why))
		refuse(req, b->part);
	else if (b->boot != NULL || b->frozen)
		http_fail(req, CODE_BUSY, NULL, "It is being attached, or "
		    "frozen: try again.");
	else {
		r = release_new(req, b, b->part);
		r->suspect = 1;
		(void)event_del(&b->retry);
		runner_close(b);
		boot_attach(b, suspect_attached, r);
	}
}

static void
release_quarantined(struct http_req *req, struct box *b)
{
	struct msg_box_release	 q = { 0 };
	const char		*why;

	if (!release_may(b->reason, &why)) {
		refuse(req, b->reason);
		return;
	}
	if (b->health == ABSENT) {
		http_fail(req, CODE_NOT_READY, NULL, "None of its processes "
		    "is left: remove it.");
		return;
	}
	b->release = release_new(req, b, b->reason);
	(void)str_copy(q.id, b->id, sizeof(q.id));
	peer_ask(env.privd, MSG_BOX_RELEASE, &q, T_PRIVD, thawed, b->release);
}

/* The schema counts characters, and does not see all controls. */
static int
why_text(struct http_req *req)
{
	const char	*s = json_string_value(json_object_get(http_json(req),
			    "reason"));

	if (s == NULL || (strlen(s) <= WHY_MAX &&
	    wire_charset_ok(CS_TEXT, s, strlen(s))))
		return 0;
	http_fail(req, CODE_BAD_REQUEST, "reason", "Expected: at most %d bytes "
	    "of text without control characters.", WHY_MAX);
	return -1;
}

void
api_sandbox_release(struct http_req *req)
{
	struct box	*b = api_box(req);

	if (b == NULL || why_text(req) == -1)
		return;
	if (b->release != NULL || b->boot != NULL || env.stopping)
		http_fail(req, CODE_BUSY, NULL, "It is on its way already, or "
		    "the server stops: try again.");
	else if (b->removing != REMOVE_NOT)
		http_fail(req, CODE_BAD_TRANSITION, NULL, "The sandbox is "
		    "being removed.");
	else if (b->state == BOX_QUARANTINED)
		release_quarantined(req, b);
	else if (b->state == BOX_READY && b->health == SUSPECT)
		release_suspect(req, b);
	else
		http_fail(req, CODE_BAD_TRANSITION, NULL, "There is nothing "
		    "to release: the sandbox is %s and %s.",
		    state_name(b->state), health_name(b->health));
}
