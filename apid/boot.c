/*
 * boot.c: from a row to READY; nothing runs until the box has proved itself.
 *
 * Theory of operation (DESIGN 4).  One struct boot drives one box, from its
 * creation or for taking hold of one that outlived the daemons.  Steps, and
 * what moves on from each; nobody else moves a boot:
 *
 *   RECORD  the row is written (stored, durable)		-> MAKE
 *   MAKE    privd makes namespaces, mounts, filter, runner	-> ATTACH
 *   ATTACH  privd connects to the box's control socket		-> HELLO
 *   HELLO   host token to the runner, its nonce back		-> NONCE
 *   NONCE   privd consumes the nonce and opens the network	-> GO
 *   GO      the runner tells its facts, privd the host's (asked in NONCE
 *	    already: they are read while the network is opened)	-> SETTLE
 *   SETTLE  READY is written (stored, durable)			-> done
 *
 * A runner may be of an earlier server: an older one that still runs, or the
 * runtime that is installed.  Its version of the protocol is found in HELLO:
 * where it tells another than ours, or closes the channel on ours without a
 * word, ATTACH and HELLO are done once more in the other one that we speak
 * (boot_closed()).  One that speaks neither cannot be made; one that runs is
 * SUSPECT runner-version, runs on, and is tried again by the timer.
 *
 * Of a release (release.c) SETTLE is that file's, up to READY; any failure
 * before freezes the box again.
 *
 * A box that runs already begins at ATTACH, has no nonce to give any more
 * (an empty one is due; anything else condemns it) and needs no SETTLE.
 *
 * The way out is one of: done; boot_fail(), after which the box is removed
 * (or, when it was running, stays SUSPECT and is tried again by a timer);
 * box_quarantine(), after which it is frozen.  A runner that is late, closes
 * its channel or speaks nonsense is seen by its channel (runner.c), which
 * calls boot_lost() or box_quarantine(): the callbacks here ignore NULL.
 *
 * States: PROVISIONING is told when MAKE begins, BOOTSTRAPPING when the
 * nonce was consumed; neither waits for the disk.  REQUESTED does, before
 * anything is made, and READY, before anybody is answered.
 *
 * Must never: let a session start before SETTLE, or believe a fact that the
 * host did not see.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

#define ATTACH_AGAIN_MS	10		/* the control socket's queue is full */
#define FACTS_AGAIN_MS	250		/* it gets too little processor time */
#define AGAIN_MAX_MS	5000		/* in all */
#define RETRY_MAX_S	30
#define LOG_LINES	20		/* of launch.log, told to the client */

enum boot_step { B_RECORD, B_MAKE, B_ATTACH, B_HELLO, B_NONCE, B_GO,
    B_SETTLE, B_OVER };

struct boot {
	struct box		*box;		/* referenced */
	enum boot_step		 step;
	int			 attach;	/* the box runs already */
	unsigned int		 speaks;	/* of HELLO: the one tried */
	int			 tried;		/* the other one was */
	char			 actor[64], request[27];
	char			 aborted[128];	/* why, or "" */
	unsigned int		 waited_ms;	/* between the same questions */
	uint64_t		 since;		/* us, when it was asked for */
	struct event		 again;
	struct box_wait		 removed;

	int			 runner_told, host_told, host_asked;
	struct msg_runner_facts	 runner;	/* mounts owned */
	struct msg_box_facts_are host;		/* mounts owned */

	struct boot_result	 result;	/* log owned */
	void	(*recorded)(struct box *, enum wb_code, const char *, void *);
	void	(*done)(struct box *, const struct boot_result *, void *);
	void	(*attached)(struct box *, const char *, void *);
	void	*arg;				/* of all three */
	TAILQ_HEAD(, follower) followers;	/* owned */
};

/* Who came later and waits for the same. */
struct follower {
	TAILQ_ENTRY(follower) next;
	void	(*done)(struct box *, const struct boot_result *, void *);
	void	*arg;
};

static void	boot_attach_ask(struct boot *);
static void	boot_host_ask(struct boot *);
static void	boot_fail(struct boot *, enum wb_code, const char *);

/* ---- life of a boot ----------------------------------------------- */

static void
boot_again(int fd, short what, void *arg)
{
	struct boot	*o = arg;

	(void)fd;
	(void)what;
	if (o->step == B_ATTACH)
		boot_attach_ask(o);
	else if (o->step == B_GO)
		boot_host_ask(o);
}

static struct boot *
boot_new(struct box *b, int attach)
{
	struct boot	*o = xcalloc(1, sizeof(*o));

	o->box = box_ref(b);
	o->attach = attach;
	o->speaks = b->speaks != 0 && !b->misfit ? b->speaks : runner_version;
	o->since = mono_us();
	TAILQ_INIT(&o->followers);
	(void)evtimer_assign(&o->again, env.base, boot_again, o);
	b->boot = o;
	return o;
}

static void
boot_free(struct boot *o)
{
	struct box	*b = o->box;

	peer_forget(env.privd, o);
	peer_forget(env.stored, o);
	peer_forget(b->runner, o);
	(void)event_del(&o->again);
	if (b->boot == o)
		b->boot = NULL;
	free((void *)(uintptr_t)o->runner.mounts.data);
	free((void *)(uintptr_t)o->host.mounts.data);
	json_decref(o->result.log);
	free(o);
	box_unref(b);
}

/* Asks the same again after ms; 0, or -1: it was asked long enough. */
static int
boot_retry(struct boot *o, unsigned int ms)
{
	struct timeval	tv = { 0, ms * 1000L };

	if ((o->waited_ms += ms) > AGAIN_MAX_MS)
		return -1;
	if (event_add(&o->again, &tv) == -1)
		fatalx("add timer: out of memory");
	return 0;
}

/* Tells whoever waits, and ends the boot. */
static void
boot_over(struct boot *o, const char *verdict)
{
	void	(*done)(struct box *, const struct boot_result *, void *);
	void	(*attached)(struct box *, const char *, void *);
	struct follower	*f;

	done = o->done;
	attached = o->attached;
	o->done = NULL;
	o->attached = NULL;
	if (o->box->boot == o)
		o->box->boot = NULL;
	if (done != NULL)
		done(o->box, &o->result, o->arg);
	if (attached != NULL)
		attached(o->box, verdict, o->arg);
	while ((f = TAILQ_FIRST(&o->followers)) != NULL) {
		TAILQ_REMOVE(&o->followers, f, next);
		f->done(o->box, &o->result, f->arg);
		free(f);
	}
	remove_go_on(o->box);
	boot_free(o);
}

/* ---- failure ------------------------------------------------------ */

json_t *
log_lines(const struct wire_bin *text, size_t most)
{
	json_t		*a = json_array();
	const uint8_t	*p = text->data, *end, *nl;
	size_t		 n = 0;

	if (text->len == 0)
		return a;
	for (end = p + text->len; p < end; p = nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		(void)json_array_append_new(a, text_json(p,
		    (size_t)(nl - p)));
		if (++n > most)
			(void)json_array_remove(a, 0);
	}
	return a;
}

static void
boot_removed(struct box_wait *w, struct box *b)
{
	(void)b;
	boot_over(w->arg, "absent");
}

static void
boot_logged(void *arg, const struct msg *m)
{
	struct boot	*o = arg;
	struct box	*b = o->box;

	if (m->row->type == MSG_BOX_LOG_TAIL_IS)
		o->result.log = log_lines(&m->body.box_log_tail_is.text,
		    LOG_LINES);
	o->removed.fn = boot_removed;
	o->removed.arg = o;
	b->boot = NULL;		/* the removal does not wait for us */
	remove_box(b, 0, "create-failed", o->actor, o->request, &o->removed);
}

/* A box that runs: SUSPECT, and once more after some time. */
static void
attach_fail(struct boot *o, const char *detail)
{
	struct box	*b = o->box;
	struct timeval	 tv = { 1, 0 };

	log_warnx("box %s: attach: %s", b->id, detail);
	runner_close(b);
	box_unheard(b);
	tv.tv_sec = b->retries < 5 ? 1 << b->retries : RETRY_MAX_S;
	b->retries++;
	if (b->listed && event_add(&b->retry, &tv) == -1)
		fatalx("add timer: out of memory");
	boot_over(o, "suspect");
}

static void
boot_fail(struct boot *o, enum wb_code code, const char *detail)
{
	struct msg_box_log_tail	 m = { 0 };
	struct box		*b = o->box;

	if (o->step == B_OVER)
		return;
	o->step = B_OVER;
	peer_forget(env.privd, o);
	peer_forget(b->runner, o);
	(void)event_del(&o->again);
	if (b->release != NULL) {
		release_failed(b, code, detail);
		boot_over(o, "quarantined");
		return;
	}
	if (o->attach) {
		attach_fail(o, detail);
		return;
	}
	log_warnx("box %s: create: %s", b->id, detail);
	o->result.code = code;
	(void)str_copy(o->result.detail, detail, sizeof(o->result.detail));
	runner_close(b);
	(void)str_copy(m.id, b->id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_LOG_TAIL, &m, T_PRIVD, boot_logged, o);
}

/* Whether the caller has to stop: somebody wants the box away. */
static int
boot_is_aborted(struct boot *o)
{
	if (o->aborted[0] == '\0')
		return 0;
	boot_fail(o, CODE_CREATE_FAILED, o->aborted);
	return 1;
}

void
boot_abort(struct box *b, const char *why)
{
	struct boot	*o = b->boot;

	if (o == NULL || o->step == B_OVER)
		return;
	(void)str_copy(o->aborted, why, sizeof(o->aborted));	/* cut */
	/* what stored and privd have begun is waited for, a runner is not */
	if (o->step == B_ATTACH || o->step == B_HELLO || o->step == B_GO)
		(void)boot_is_aborted(o);
}

void
boot_lost(struct box *b, const char *why)
{
	struct boot	*o = b->boot;

	if (o == NULL || o->step == B_OVER || o->step == B_SETTLE)
		return;		/* SETTLE looks for itself */
	boot_fail(o, CODE_CREATE_FAILED, why);
}

/* Neither of ours: 0 where it has not said which. */
static void
boot_misfit(struct boot *o, unsigned int theirs)
{
	struct box	*b = o->box;
	char		 why[256], is[32] = "another one";

	if (theirs != 0)
		(void)snprintf(is, sizeof(is), "%u", theirs);
	(void)snprintf(why, sizeof(why), "the runner closed its channel, or "
	    "speaks version %s of the protocol, not %u or %u: %s", is,
	    runner_version, runner_version - 1, !o->attach ?
	    "`workbox runtime install' puts the one that does into place" :
	    theirs > runner_version ?
	    "serve with the newer release again, or remove it" :
	    "remove it, or serve once more with the release that made it");
	if (o->attach) {
		b->misfit = 1;
		b->speaks = theirs;
		b->runner_version[0] = '\0';
		b->sessions_max = 0;
	}
	boot_fail(o, CODE_CREATE_FAILED, why);
}

void
boot_closed(struct box *b, unsigned int theirs, const char *why)
{
	struct boot	*o = b->boot;
	unsigned int	 other;

	/* one that is known to speak ours has another reason */
	if (o == NULL || o->step != B_HELLO || o->aborted[0] != '\0' ||
	    (theirs == 0 && b->speaks != 0 && !b->misfit)) {
		boot_lost(b, why);
		return;
	}
	other = theirs != 0 ? theirs : runner_version - 1;
	if (o->tried || other + 1 < runner_version || other > runner_version ||
	    other == o->speaks) {
		boot_misfit(o, theirs);
		return;
	}
	o->tried = 1;
	o->speaks = other;
	boot_attach_ask(o);
}

int
boot_follow(struct box *b,
    void (*done)(struct box *, const struct boot_result *, void *), void *arg)
{
	struct boot	*o = b->boot;
	struct follower	*f;

	if (o == NULL || o->attach)
		return 0;
	f = xcalloc(1, sizeof(*f));
	f->done = done;
	f->arg = arg;
	TAILQ_INSERT_TAIL(&o->followers, f, next);
	return 1;
}

void
boot_unlisten(struct box *b, const void *arg)
{
	struct boot	*o = b->boot;

	if (o == NULL || o->arg != arg)
		return;
	o->recorded = NULL;
	o->done = NULL;
}

/* ---- quarantine --------------------------------------------------- */

struct condemn {
	struct box	*box;		/* referenced */
	struct boot	*boot;		/* owned, or NULL */
};

static void
condemned_ok(void *arg, const struct msg *m)
{
	struct box	*b = arg;

	if (peer_code(m) != CODE_NONE)
		log_warnx("box %s: freeze: %s", b->id, peer_detail(m));
	box_unref(b);
}

static void
condemned(struct box *b, enum wb_code code, void *arg)
{
	struct boot	*o = arg;

	(void)code;	/* box_move() has logged it; frozen it is all the same */
	box_health(b, UNKNOWN, "");
	if (o != NULL)
		boot_over(o, "quarantined");
}

void
box_quarantine(struct box *b, const char *field, const char *proof,
    size_t len)
{
	struct msg_box_quarantine	 m = { 0 };
	struct move_more		 more = { 0 };
	struct boot			*o = b->boot;

	if (b->release != NULL && o != NULL) {	/* it stays what it is */
		if (!release_spoilt(b, field))
			boot_fail(o, CODE_PROOF_DIFFERS, field);
		return;
	}
	if (b->condemned || b->removing >= REMOVE_KILL || !b->listed ||
	    !state_move_ok(b->target, BOX_QUARANTINED))
		return;
	b->condemned = 1;
	log_warnx("box %s: quarantined: %s", b->id, field);
	if (o != NULL && o->step != B_OVER) {
		peer_forget(env.privd, o);
		o->step = B_OVER;
		if (o->result.code == CODE_NONE)
			o->result.code = CODE_QUARANTINED;
		(void)str_copy(o->result.detail, field,
		    sizeof(o->result.detail));
	} else
		o = NULL;
	runner_close(b);
	(void)str_copy(m.id, b->id, sizeof(m.id));
	(void)str_copy(m.field, field, sizeof(m.field));	/* cut */
	peer_ask(env.privd, MSG_BOX_QUARANTINE, &m, T_PRIVD, condemned_ok,
	    box_ref(b));
	more.proof = (const uint8_t *)proof;
	more.proof_len = len;
	box_move(b, BOX_QUARANTINED, field, 1, &more, condemned, o);
	remove_hurry(b);
}

/* ---- SETTLE ------------------------------------------------------- */

static void
boot_ready(struct boot *o)
{
	struct box	*b = o->box;
	/* what privd was told when it was opened, before any change */
	const int	 amiss = !b->net_told && b->changing == CHANGE_NOT &&
			    o->host.network != b->network;

	o->step = B_OVER;
	b->retries = 0;
	if (!b->net_told)
		(void)str_copy(b->ruleset, o->host.ruleset,
		    sizeof(b->ruleset));
	box_health(b, amiss ? SUSPECT : HEALTHY, amiss ? "network" : "");
	if (amiss)
		network_amend(b);
	if (o->attach)
		sessions_resume(b);
	else
		metrics_took(METRIC_READY, o->since);
	boot_over(o, "attached");
}

static void
boot_settled(struct box *b, enum wb_code code, void *arg)
{
	struct boot	*o = arg;

	if (b->boot != o || o->step != B_SETTLE)
		return;
	if (code != CODE_NONE)
		boot_fail(o, code, "READY could not be recorded");
	else if (b->runner == NULL)
		boot_fail(o, CODE_CREATE_FAILED, "the runner ended");
	else if (!boot_is_aborted(o))
		boot_ready(o);
}

void
boot_unproved(struct box *b, enum wb_code code, const char *detail)
{
	if (b->boot != NULL)
		boot_fail(b->boot, code, detail);
	else
		release_failed(b, code, detail);
}

void
boot_released(struct box *b)
{
	if (b->boot != NULL)
		boot_settled(b, CODE_NONE, b->boot);
}

/* Both sides have told their facts. */
static void
boot_compare(struct boot *o)
{
	struct move_more	 more = { o->actor, o->request, NULL, 0 };
	struct box		*b = o->box;
	auto_free char		*proof = NULL;
	const char		*field = o->host.verdict, *released = "";
	char			 rest[64];

	if (!o->runner_told || !o->host_told || boot_is_aborted(o))
		return;
	if (release_holds(b, field, rest)) {
		released = field;	/* the last that the maker looks at */
		field = "";
	} else
		field = rest;		/* that word of it which does not */
	if (field[0] == '\0' &&
	    (field = proof_differs(&o->runner, &o->host)) == NULL)
		field = "";
	proof = proof_text(b, &o->runner, &o->host, field, released,
	    now_ms());
	if (field[0] != '\0') {
		o->result.code = CODE_PROOF_DIFFERS;
		box_quarantine(b, field, proof, strlen(proof));
		return;
	}
	if (b->release != NULL) {
		o->step = B_SETTLE;
		release_proved(b, &o->host, proof);
		return;
	}
	if (o->attach) {
		boot_ready(o);
		return;
	}
	o->step = B_SETTLE;
	more.proof = (const uint8_t *)proof;
	more.proof_len = strlen(proof);
	box_move(b, BOX_READY, "", 1, &more, boot_settled, o);
}

/* ---- GO ----------------------------------------------------------- */

static struct wire_bin
bin_dup(const struct wire_bin *s)
{
	struct wire_bin	 ret = { NULL, s->len };
	uint8_t		*p;

	if (s->len != 0) {
		p = xmalloc(s->len);
		memcpy(p, s->data, s->len);
		ret.data = p;
	}
	return ret;
}

/* Its words are a box's: they are not for our log. */
static void
boot_refused(struct boot *o, const struct msg *m)
{
	boot_fail(o, CODE_CREATE_FAILED, code_name(m->body.error.code));
}

static void
boot_runner_facts(void *arg, const struct msg *m)
{
	struct boot	*o = arg;

	if (m == NULL || o->step != B_GO)
		return;
	if (m->row->type == MSG_ERROR) {
		boot_refused(o, m);
		return;
	}
	o->runner = m->body.runner_facts;
	o->runner.mounts = bin_dup(&m->body.runner_facts.mounts);
	o->runner_told = 1;
	peer_state(o->box->runner, S_RUN);
	boot_compare(o);
}

static void
boot_host_facts(void *arg, const struct msg *m)
{
	struct boot	*o = arg;

	if (o->step == B_NONCE) {	/* of the network as it was before */
		o->host_asked = 0;
		return;
	}
	if (m->row->type == MSG_ERROR) {
		/* busy: a box with little processor time stops late, too */
		if (m->body.error.code != CODE_BUSY ||
		    boot_retry(o, FACTS_AGAIN_MS) == -1)
			boot_fail(o, CODE_CREATE_FAILED,
			    m->body.error.detail);
		return;
	}
	o->host = m->body.box_facts_are;
	o->host.mounts = bin_dup(&m->body.box_facts_are.mounts);
	o->host_told = 1;
	boot_compare(o);
}

static void
boot_host_ask(struct boot *o)
{
	struct msg_box_facts	 m = { 0 };

	o->host_asked = 1;
	(void)str_copy(m.id, o->box->id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_FACTS, &m, T_PRIVD, boot_host_facts, o);
}

/* What one of the two says does not hang on the other. */
static void
boot_go(struct boot *o)
{
	struct msg_runner_go	 go = { .env = o->box->env };
	struct box		*b = o->box;

	o->step = B_GO;
	peer_state(b->runner, S_GO);
	peer_ask(b->runner, MSG_RUNNER_GO, &go, T_BOOT, boot_runner_facts, o);
	if (!o->host_asked)
		boot_host_ask(o);
}

/* ---- HELLO and NONCE ---------------------------------------------- */

static void
boot_consumed(void *arg, const struct msg *m)
{
	struct boot	*o = arg;

	if (m->row->type == MSG_ERROR) {
		if (m->body.error.code == CODE_WRONG_NONCE) {
			o->result.code = CODE_WRONG_NONCE;
			box_quarantine(o->box, "nonce", NULL, 0);
		} else
			boot_fail(o, CODE_CREATE_FAILED,
			    m->body.error.detail);
		return;
	}
	if (boot_is_aborted(o))
		return;
	boot_go(o);	/* first what takes time, then what is only noted */
	box_move(o->box, BOX_BOOTSTRAPPING, "", 0, NULL, NULL, NULL);
}

static void
boot_nonce(void *arg, const struct msg *m)
{
	struct boot		*o = arg;
	struct msg_box_nonce	 n = { 0 };
	struct box		*b = o->box;

	if (m == NULL || o->step != B_HELLO)
		return;
	if (m->row->type == MSG_ERROR) {
		boot_refused(o, m);
		return;
	}
	b->speaks = o->speaks;
	b->misfit = 0;
	(void)str_copy(b->runner_version, m->body.runner_nonce.version,
	    sizeof(b->runner_version));		/* fits: proto.def */
	b->sessions_max = m->body.runner_nonce.sessions_max;
	/* the first time there is one, and never again */
	if ((m->body.runner_nonce.nonce.len == 0) != o->attach) {
		o->result.code = CODE_WRONG_NONCE;
		box_quarantine(b, "nonce", NULL, 0);
		return;
	}
	if (o->attach) {
		boot_go(o);
		return;
	}
	o->step = B_NONCE;
	(void)str_copy(n.id, b->id, sizeof(n.id));
	n.nonce = m->body.runner_nonce.nonce;
	peer_ask(env.privd, MSG_BOX_NONCE, &n, T_PRIVD, boot_consumed, o);
	boot_host_ask(o);	/* good when it is answered after that */
}

/* ---- ATTACH ------------------------------------------------------- */

static void
boot_attached(void *arg, const struct msg *m)
{
	struct boot		*o = arg;
	struct msg_runner_hello	 hello = { .role = "host" };
	struct box		*b = o->box;

	if (m->row->type == MSG_ERROR) {
		/* of an apid before this one, that did not come to the row */
		if (m->body.error.code == CODE_QUARANTINED && !b->condemned)
			box_quarantine(b, m->body.error.detail, NULL, 0);
		else if (m->body.error.code != CODE_BUSY || o->attach ||
		    boot_retry(o, ATTACH_AGAIN_MS) == -1)
			boot_fail(o, CODE_CREATE_FAILED,
			    m->body.error.detail);
		return;
	}
	o->step = B_HELLO;
	o->waited_ms = 0;
	runner_open(b, m->fd);
	peer_speak(b->runner, o->speaks);
	hello.token = m->body.box_attached.token;
	peer_ask(b->runner, MSG_RUNNER_HELLO, &hello, T_BOOT, boot_nonce, o);
}

static void
boot_attach_ask(struct boot *o)
{
	struct msg_box_attach	 m = { 0 };

	o->step = B_ATTACH;
	(void)str_copy(m.id, o->box->id, sizeof(m.id));
	peer_ask(env.privd, MSG_BOX_ATTACH, &m, T_PRIVD, boot_attached, o);
}

void
boot_attach(struct box *b, void (*done)(struct box *, const char *, void *),
    void *arg)
{
	struct boot	*o = boot_new(b, 1);

	o->attached = done;
	o->arg = arg;
	boot_attach_ask(o);
}

/* ---- RECORD and MAKE ---------------------------------------------- */

static void
boot_made(void *arg, const struct msg *m)
{
	struct boot			*o = arg;
	const struct msg_box_created	*c = &m->body.box_created;
	struct box			*b = o->box;

	if (m->row->type == MSG_ERROR) {
		/* privd names the link, which nobody has asked for */
		boot_fail(o, (enum wb_code)m->body.error.code,
		    b->rootfs[0] == '\0' &&
		    m->body.error.code == CODE_ROOTFS_UNKNOWN ?
		    "There is no default root file system: `workbox rootfs "
		    "build' makes one." : m->body.error.detail);
		return;
	}
	b->made = 1;
	(void)str_copy(b->rootfs, c->rootfs, sizeof(b->rootfs));
	b->memory_bytes = c->memory_bytes;
	b->cpu_milli = c->cpu_milli;
	b->pids = c->pids;
	if (!boot_is_aborted(o))
		boot_attach_ask(o);
}

/* PROVISIONING did not come to the disk: nor would anything after it. */
static void
boot_provisioned(struct box *b, enum wb_code code, void *arg)
{
	struct boot	*o = arg;

	if (code != CODE_NONE && b->boot == o && o->step != B_OVER)
		(void)str_copy(o->aborted, "the record could not be written",
		    sizeof(o->aborted));
}

static void
boot_make(struct boot *o)
{
	struct msg_box_create	 m = { 0 };
	struct box		*b = o->box;

	o->step = B_MAKE;
	(void)str_copy(m.id, b->id, sizeof(m.id));
	(void)str_copy(m.name, b->name, sizeof(m.name));
	(void)str_copy(m.rootfs, b->rootfs[0] == '\0' ? "default" :
	    b->rootfs, sizeof(m.rootfs));	/* privd reads the link */
	m.network = b->network;
	m.memory_bytes = b->memory_bytes;
	m.cpu_milli = b->cpu_milli;
	m.pids = b->pids;
	peer_ask(env.privd, MSG_BOX_CREATE, &m, T_PRIVD, boot_made, o);
	box_move(b, BOX_PROVISIONING, "", 0, NULL, boot_provisioned, o);
}

/* ---- its list, where it has one: after the row, before it is made ------ */

static void
boot_listed(void *arg, const struct msg *m)
{
	struct boot	*o = arg;

	if (peer_code(m) != CODE_NONE)
		boot_fail(o, peer_code(m), peer_detail(m));
	else if (!boot_is_aborted(o))
		boot_make(o);
}

/* The step is RECORD: nobody ends a boot while stored is asked. */
static void
boot_list_put(void *arg, enum wb_code code, const char *detail)
{
	struct msg_sandbox_network	 m = { .network = NETWORK_ALLOWLIST };
	struct boot			*o = arg;

	if (code != CODE_NONE) {
		boot_fail(o, code, detail);
		return;
	}
	(void)str_copy(m.id, o->box->id, sizeof(m.id));
	(void)str_copy(m.actor, o->actor, sizeof(m.actor));
	(void)str_copy(m.request, o->request, sizeof(m.request));
	peer_ask(env.stored, MSG_SANDBOX_NETWORK, &m, T_STORE, boot_listed, o);
}

static void
boot_recorded(void *arg, const struct msg *m)
{
	struct boot	*o = arg;
	struct box	*b = o->box;
	enum wb_code	 code = peer_code(m);

	if (code != CODE_NONE) {
		log_warnx("box %s: record REQUESTED: %s", b->id,
		    peer_detail(m));
		if (o->recorded != NULL)
			o->recorded(b, code, peer_detail(m), o->arg);
		box_gone(b);
		boot_free(o);
		return;
	}
	metrics_took(METRIC_COMMIT, o->since);
	if (o->recorded != NULL)
		o->recorded(b, CODE_NONE, "", o->arg);
	if (b->list != NULL)
		allowlist_put(b->id, steal_ptr(&b->list), boot_list_put, o);
	else if (!boot_is_aborted(o))
		boot_make(o);
}

void
boot_create(struct box *b, const char *actor, const char *request,
    const struct key *key,
    void (*recorded)(struct box *, enum wb_code, const char *, void *),
    void (*done)(struct box *, const struct boot_result *, void *), void *arg)
{
	struct msg_sandbox_create	 m = { 0 };
	struct row_sandbox		 row;
	struct boot			*o = boot_new(b, 0);
	static uint8_t			 buf[WIRE_MAX];
	ssize_t				 n;

	(void)str_copy(o->actor, actor, sizeof(o->actor));
	(void)str_copy(o->request, request, sizeof(o->request));
	o->recorded = recorded;
	o->done = done;
	o->arg = arg;
	box_row(b, &row);
	if ((n = wire_encode(&wire_row_sandbox, &row, buf,
	    sizeof(buf))) == -1)
		fatalx("encode sandbox: %s", wire_error());
	(void)str_copy(m.actor, actor, sizeof(m.actor));
	(void)str_copy(m.request, request, sizeof(m.request));
	key_put(key, m.key, &m.asked);
	m.row.data = buf;
	m.row.len = (size_t)n;
	o->step = B_RECORD;
	peer_ask(env.stored, MSG_SANDBOX_CREATE, &m, T_STORE, boot_recorded,
	    o);
}
