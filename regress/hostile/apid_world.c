/*
 * apid_world.c: see apid_world.h.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_lists.h"
#include "apid_runner.h"
#include "apid_start.h"
#include "older.h"
#include "ulid.h"
#include "xmalloc.h"

#define SESSIONS	4096

static const char *const	act_names[] = {
#define A(N, s)	[ACT_##N] = s,
	ACTS
#undef A
};

/* The world's own state, in its process. */
static struct {
	struct world_shared	*s;
	struct chan		 privd, stored, netd;
	struct rn		 rn[WORLD_BOXES * 4];
	struct row_sandbox	 row[WORLD_BOXES];
	uint8_t			*proof[WORLD_BOXES];
	struct row_session	 sess[SESSIONS];
	unsigned int		 nsess;
	uint64_t		 seq;
	int			 listener;
	int			 found[WORLD_BOXES];	/* 0, 1 dead, 2 alive */
	int			 generation;
} w;

static enum act
act_of(const char *name)
{
	const char	*dash = strrchr(name, '-');
	size_t		 n = dash == NULL ? strlen(name) :
			    (size_t)(dash - name);
	unsigned int	 i;

	for (i = 0; i < ACT_N; i++)
		if (strlen(act_names[i]) == n &&
		    strncmp(act_names[i], name, n) == 0)
			return (enum act)i;
	return ACT_GOOD;
}

static void
fault(const char *who, const char *what)
{
	w.s->faults++;
	(void)snprintf(w.s->fault, sizeof(w.s->fault), "%s: %s", who, what);
}

static struct world_box *
by_id(const char *id)
{
	unsigned int	i;

	for (i = 0; i < w.s->nbox; i++)
		if (strcmp(w.s->box[i].id, id) == 0)
			return &w.s->box[i];
	return NULL;
}

static unsigned int
idx(const struct world_box *b)
{
	return (unsigned int)(b - w.s->box);
}

static const uint8_t	token[32] = "the token that privd has kept";

/* ---- privd ------------------------------------------------------------ */

static void
privd_attach(const struct msg *m, struct world_box *b)
{
	struct msg_box_attached	 a = { .token = { token, 32 } };
	struct rn		*r;
	int			 sv[2];

	for (r = w.rn; r->used; r++)
		;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		err(1, "socketpair");
	memset(r, 0, sizeof(*r));
	chan_init(&r->c, sv[1], A_RUNNER, A_APID, S_ALL);
	r->box = b;
	r->act = act_of(b->name);
	r->used = 1;
	if (r->act == ACT_OLDER)
		chan_speak(&r->c, PROTO_RUNNER_VERSION - 1);
	if (r->act == ACT_AGED || r->act == ACT_TELLS)
		chan_speak(&r->c, PROTO_RUNNER_VERSION - 2);
	if (r->act == ACT_NEWER || r->act == ACT_SWINGS)
		chan_speak(&r->c, PROTO_RUNNER_VERSION + 1);
	b->attached++;
	(void)chan_send(&w.privd, MSG_BOX_ATTACHED, m->rid, &a, sv[0]);
}

/* What netd told when the box was opened or adopted: no change since. */
static uint64_t
privd_network(struct world_box *b)
{
	if (act_of(b->name) == ACT_STAYED)
		return NETWORK_EGRESS;
	if (b->asked_facts == 0)
		b->opened = (unsigned int)w.row[idx(b)].network;
	return b->opened;
}

static void
privd_facts(const struct msg *m, struct world_box *b)
{
	struct msg_box_facts_are	f = { .ruleset = "absent",
	    .cgroup = "/wb/x", .runtime = "00", .host_pid = 4711 };

	FACTS(&f);
	f.memory_bytes = w.row[idx(b)].memory_bytes;
	f.network = privd_network(b);
	if (act_of(b->name) == ACT_HOST)
		(void)str_copy(f.verdict, "cap_bnd", sizeof(f.verdict));
	b->asked_facts++;
	if (b->nonce_rid != 0)
		(void)str_copy(f.ruleset, "sealed", sizeof(f.ruleset));
	(void)chan_send(&w.privd, MSG_BOX_FACTS_ARE, m->rid, &f, -1);
	if (b->nonce_rid != 0)
		(void)chan_ok(&w.privd, b->nonce_rid);
	b->nonce_rid = 0;
}

static void
privd_list(const struct msg *m)
{
	struct msg_box_list_is	 l = { .ids = { NULL, 0 } };
	struct wire_bin		 v[WORLD_BOXES];
	uint8_t			 alive[WORLD_BOXES];
	unsigned int		 i;

	l.ids.v = v;
	for (i = 0; i < w.s->nbox; i++) {
		if (w.found[i] == 0 || strcmp(w.s->box[i].id,
		    m->body.box_list.after) <= 0)
			continue;
		alive[l.ids.n] = w.found[i] == 2;
		v[l.ids.n++] = wire_cstr(w.s->box[i].id);
	}
	l.alive.data = alive;
	l.alive.len = l.ids.n;
	(void)chan_send(&w.privd, MSG_BOX_LIST_IS, m->rid, &l, -1);
}

static void
rn_drop(const struct world_box *b)
{
	struct rn	*r;

	for (r = w.rn; r < w.rn + WORLD_BOXES * 4; r++)
		if (r->used && r->box == b) {
			chan_close(&r->c);
			r->used = 0;
		}
}

/* Messages about one box. */
static void
privd_box(const struct msg *m, struct world_box *b)
{
	struct msg_box_created	c = { .rootfs = "minimal" };
	struct msg_box_log_tail_is t = { .text = { (const uint8_t *)
	    "first line\nlast line\n", 21 } };
	struct msg_box_health_is h = { .health = HEALTHY };
	enum act		act = act_of(b->name);

	switch (m->row->type) {
	case MSG_BOX_CREATE:
		if (w.row[idx(b)].network == NETWORK_ALLOWLIST && !b->listed)
			fault("privd", "a box of which no list is recorded");
		if (act == ACT_MAKE_FAILS || act == ACT_NO_ROOTFS) {
			(void)chan_error(&w.privd, m->rid,
			    act == ACT_NO_ROOTFS ? CODE_ROOTFS_UNKNOWN :
			    CODE_CREATE_FAILED, "no such thing");
			return;
		}
		b->created = 1;
		w.found[idx(b)] = 2;
		c.memory_bytes = m->body.box_create.memory_bytes;
		c.cpu_milli = m->body.box_create.cpu_milli;
		c.pids = m->body.box_create.pids;
		(void)chan_send(&w.privd, MSG_BOX_CREATED, m->rid, &c, -1);
		return;
	case MSG_BOX_ATTACH:
		if (act == ACT_SEALED)
			(void)chan_error(&w.privd, m->rid, CODE_QUARANTINED,
			    "nonce");
		else
			privd_attach(m, b);
		return;
	case MSG_BOX_NONCE:
		if (b->nonced || m->body.box_nonce.nonce.len != 32 ||
		    memcmp(m->body.box_nonce.nonce.data, nonce, 32) != 0) {
			(void)chan_error(&w.privd, m->rid, CODE_WRONG_NONCE,
			    "not the box's");
			return;
		}
		b->nonced = 1;
		if (act == ACT_FACTS_FIRST) {
			b->nonce_rid = m->rid;
			return;
		}
		break;
	case MSG_BOX_FACTS:
		privd_facts(m, b);
		return;
	case MSG_BOX_QUARANTINE:
		b->quarantined++;
		(void)str_copy(b->field, m->body.box_quarantine.field,
		    sizeof(b->field));
		break;
	case MSG_BOX_KILL:
		if (act == ACT_KILL_FAILS && b->killed++ == 0) {
			(void)chan_error(&w.privd, m->rid, CODE_BUSY,
			    "it does not die");
			return;
		}
		b->killed++;
		rn_drop(b);
		if (act == ACT_GOES && b->change_rid != 0)
			(void)chan_error(&w.netd, b->change_rid,
			    CODE_BAD_TRANSITION, "it was cut");
		break;
	case MSG_BOX_PURGE:
		b->purged++;
		w.found[idx(b)] = 0;
		break;
	case MSG_BOX_LOG_APPEND:
		b->log_lines++;
		break;
	case MSG_BOX_LOG_TAIL:
		(void)chan_send(&w.privd, MSG_BOX_LOG_TAIL_IS, m->rid, &t,
		    -1);
		return;
	case MSG_BOX_HEALTH:
		(void)chan_send(&w.privd, MSG_BOX_HEALTH_IS, m->rid, &h, -1);
		return;
	default:
		fault("privd", m->row->name);
	}
	(void)chan_ok(&w.privd, m->rid);
}

static void
privd_ready(const struct msg *m)
{
	struct msg_daemon_listener	l = { .kind = 0 };
	struct msg_daemon_go		g = { .generation = 1 };

	(void)chan_send(&w.privd, MSG_DAEMON_LISTENER, 0, &l,
	    fcntl(w.listener, F_DUPFD_CLOEXEC, 0));
	(void)chan_send(&w.privd, MSG_DAEMON_GO, m->rid, &g, -1);
	w.privd.state = S_RUN;
}

static void
privd_msg(const struct msg *m)
{
	struct world_box	*b;
	/* all of them begin with the id */
	const char		*id = m->body.box_create.id;

	if (m->row->type == MSG_DAEMON_READY)
		privd_ready(m);
	else if (m->row->type == MSG_BOX_LIST)
		privd_list(m);
	else if ((b = by_id(id)) != NULL)
		privd_box(m, b);
	else
		fault("privd", "a box that is not known");
}

/* ---- stored ----------------------------------------------------------- */

static void
stored_create(const struct msg *m)
{
	struct row_sandbox	 r;
	struct wire_bin		 items[512];
	struct world_box	*b;

	if (wire_decode_into(&wire_row_sandbox,
	    m->body.sandbox_create.row.data, m->body.sandbox_create.row.len,
	    items, 512, &r) == -1 || w.s->nbox == WORLD_BOXES) {
		fault("stored", wire_error());
		return;
	}
	if (act_of(r.name) == ACT_SHORT_CREATE) {
		(void)chan_error(&w.stored, m->rid, CODE_DISK_FULL, "full");
		return;
	}
	b = &w.s->box[w.s->nbox];
	memset(b, 0, sizeof(*b));
	(void)str_copy(b->id, r.id, sizeof(b->id));
	(void)str_copy(b->name, r.name, sizeof(b->name));
	r.labels.n = r.env.n = r.proof.len = 0;
	w.row[w.s->nbox++] = r;
	(void)chan_ok(&w.stored, m->rid);
}

static void
stored_move(const struct msg *m)
{
	const struct msg_sandbox_move	*q = &m->body.sandbox_move;
	struct world_box		*b = by_id(q->id);

	if (b == NULL || !state_move_ok(b->state, (unsigned int)q->to)) {
		fault("stored", "a move that is none");
		(void)chan_error(&w.stored, m->rid, CODE_BAD_TRANSITION,
		    "no");
		return;
	}
	if (act_of(b->name) == ACT_SHORT_READY && q->to == BOX_READY) {
		(void)chan_error(&w.stored, m->rid, CODE_DISK_FULL, "full");
		return;
	}
	b->state = (unsigned int)q->to;
	(void)str_copy(b->reason, q->reason, sizeof(b->reason));
	w.row[idx(b)].state = q->to;
	w.row[idx(b)].changed_ms = now_ms();
	(void)str_copy(w.row[idx(b)].reason, q->reason, 128);
	if (q->rootfs[0] != '\0')
		(void)str_copy(w.row[idx(b)].rootfs, q->rootfs, 64);
	if (q->proof.len != 0) {
		free(w.proof[idx(b)]);
		w.proof[idx(b)] = xmalloc(q->proof.len);
		memcpy(w.proof[idx(b)], q->proof.data, q->proof.len);
		w.row[idx(b)].proof.data = w.proof[idx(b)];
		w.row[idx(b)].proof.len = q->proof.len;
	}
	(void)chan_ok(&w.stored, m->rid);
}

static void
stored_network(const struct msg *m)
{
	const struct msg_sandbox_network	*q = &m->body.sandbox_network;
	struct world_box			*b = by_id(q->id);

	if (b == NULL) {
		fault("stored", "the network of nobody");
		return;
	}
	if (act_of(b->name) == ACT_SHORT_NETWORK ||
	    (act_of(b->name) == ACT_SHORT_BACK && b->networks == 1)) {
		(void)chan_error(&w.stored, m->rid, CODE_DISK_FULL, "full");
		return;
	}
	if (lists_step(w.s, WORLD_RECORD, &w.stored, m->rid))
		return;
	lists_recorded(b, w.s, q->network == NETWORK_ALLOWLIST);
	w.row[idx(b)].network = q->network;
	(void)str_copy(b->network_why, q->reason, 128);
	b->networks++;
	(void)chan_ok(&w.stored, m->rid);
}

static void
stored_put(const struct msg *m)
{
	struct row_session	 r;
	struct wire_bin		 items[1024];
	struct world_box	*b;
	unsigned int		 i;

	if (wire_decode_into(&wire_row_session, m->body.session_put.row.data,
	    m->body.session_put.row.len, items, 1024, &r) == -1 ||
	    (b = by_id(r.sandbox)) == NULL || w.nsess == SESSIONS) {
		fault("stored", "a session that is none");
		return;
	}
	if (act_of(b->name) == ACT_SHORT_SESSION) {
		(void)chan_error(&w.stored, m->rid, CODE_DISK_FULL, "full");
		return;
	}
	r.argv.n = 0;
	for (i = 0; i < w.nsess; i++)
		if (strcmp(w.sess[i].id, r.id) == 0)
			break;
	if (i == w.nsess) {
		w.nsess++;
		b->started++;
	} else if (r.state == 2 && w.sess[i].state != 2)
		b->finished++;
	w.sess[i] = r;
	(void)chan_ok(&w.stored, m->rid);
}

/* Rows, encoded one after the other. */
static struct wire_bin
encoded(const struct wire_desc *d, const void *row)
{
	static uint8_t	 buf[WIRE_MAX * 2];
	static size_t	 at;
	struct wire_bin	 b;
	ssize_t		 n;

	if (at > WIRE_MAX)
		at = 0;
	if ((n = wire_encode(d, row, buf + at, sizeof(buf) - at)) == -1)
		errx(1, "encode: %s", wire_error());
	b.data = buf + at;
	b.len = (size_t)n;
	at += (size_t)n;
	return b;
}

static void
stored_rows(const struct msg *m)
{
	struct msg_sandbox_page	 p = { .rows = { NULL, 0 } };
	struct wire_bin		 v[8];
	struct row_sandbox	 r;
	unsigned int		 i;

	p.rows.v = v;
	for (i = 0; i < w.s->nbox && p.rows.n < 8; i++)
		if (strcmp(w.s->box[i].id, m->body.sandbox_list.after) > 0 &&
		    w.row[i].id[0] != '\0') {
			r = w.row[i];
			r.proof.len = 0;
			v[p.rows.n++] = encoded(&wire_row_sandbox, &r);
		}
	(void)chan_send(&w.stored, MSG_SANDBOX_PAGE, m->rid, &p, -1);
}

static void
stored_sessions(const struct msg *m)
{
	const struct msg_session_rows	*q = &m->body.session_rows;
	struct msg_session_page		 p = { .rows = { NULL, 0 } };
	struct wire_bin			 v[16];
	unsigned int			 i;

	p.rows.v = v;
	for (i = 0; i < w.nsess && p.rows.n < 16 && p.rows.n < q->limit; i++)
		if (strcmp(w.sess[i].sandbox, q->sandbox) == 0 &&
		    strcmp(w.sess[i].id, q->after) > 0 &&
		    (!q->open_only || w.sess[i].state != 2))
			v[p.rows.n++] = encoded(&wire_row_session,
			    &w.sess[i]);
	(void)chan_send(&w.stored, MSG_SESSION_PAGE, m->rid, &p, -1);
}

static void
stored_denied(const struct msg_event_append *q)
{
	struct event_egress_denied	e;

	if (wire_decode_into(&wire_event_egress_denied, q->data.data,
	    q->data.len, NULL, 0, &e) == -1) {
		fault("stored", wire_error());
		return;
	}
	w.s->denied_last = *q;
	w.s->denied_data = e;
	w.s->denied_count += e.count;
	w.s->denied_sums += e.address[0] == '\0';
	w.s->denied_records++;		/* last: the test waits for it */
}

static void
stored_event(const struct msg *m)
{
	const struct msg_event_append	*q = &m->body.event_append;
	struct msg_event_appended	 a = { .seq = ++w.seq };
	struct event_reconcile_done	 e;
	const struct event_row		*row = event_find(
	    (unsigned int)q->type);

	if (row == NULL || q->type >= 64)
		fault("stored", "an event that is none");
	else
		w.s->events[q->type]++;
	if (q->type == EVENT_RECONCILE_DONE && wire_decode_into(row->desc,
	    q->data.data, q->data.len, NULL, 0, &e) == 0) {
		w.s->attached = (unsigned int)e.attached;
		w.s->suspect = (unsigned int)e.suspect;
		w.s->absent = (unsigned int)e.absent;
		w.s->quarantined = (unsigned int)e.quarantined;
	}
	if (q->type == EVENT_EGRESS_DENIED)
		stored_denied(q);
	(void)chan_send(&w.stored, MSG_EVENT_APPENDED, m->rid, &a, -1);
}

/* Both begin with the id. */
static void
stored_list(const struct msg *m)
{
	struct world_box	*b = by_id(m->body.allow_read.id);
	const char		*why;

	if (b == NULL)
		why = "a list of nobody's";
	else if (m->row->type == MSG_ALLOW_PUT)
		why = lists_put(b, w.s, &w.stored, m);
	else
		why = lists_read(b, w.s, &w.stored, m);
	if (why != NULL)
		fault("stored", why);
}

static void
stored_msg(const struct msg *m)
{
	struct msg_store_info_is	 info = { .last_id = "" };
	struct msg_sandbox_is		 is;
	struct msg_event_page		 page = { .next = 0 };
	struct world_box		*b;

	switch (m->row->type) {
	case MSG_STORE_INFO:
		(void)chan_send(&w.stored, MSG_STORE_INFO_IS, m->rid, &info,
		    -1);
		break;
	case MSG_SANDBOX_CREATE:
		stored_create(m);
		break;
	case MSG_SANDBOX_MOVE:
		stored_move(m);
		break;
	case MSG_SANDBOX_LIST:
		stored_rows(m);
		break;
	case MSG_SANDBOX_GET:
		if ((b = by_id(m->body.sandbox_get.id)) == NULL ||
		    w.row[idx(b)].id[0] == '\0') {
			(void)chan_error(&w.stored, m->rid, CODE_NOT_FOUND,
			    "no");
			break;
		}
		is.row = encoded(&wire_row_sandbox, &w.row[idx(b)]);
		(void)chan_send(&w.stored, MSG_SANDBOX_IS, m->rid, &is, -1);
		break;
	case MSG_SANDBOX_NETWORK:
		stored_network(m);
		break;
	case MSG_ALLOW_PUT:
	case MSG_ALLOW_READ:
		stored_list(m);
		break;
	case MSG_SESSION_PUT:
		stored_put(m);
		break;
	case MSG_SESSION_ROWS:
		stored_sessions(m);
		break;
	case MSG_EVENT_APPEND:
		stored_event(m);
		break;
	case MSG_EVENT_READ:
		if (m->body.event_read.wait == 0)
			(void)chan_send(&w.stored, MSG_EVENT_PAGE, m->rid,
			    &page, -1);
		break;
	default:
		(void)chan_ok(&w.stored, m->rid);
	}
}

/* ---- netd ------------------------------------------------------------- */

static void
netd_changed(struct world_box *b, uint32_t rid)
{
	struct msg_net_changed	c = { .ruleset = "absent" };
	enum act		act = act_of(b->name);

	b->amended += act == ACT_DRIFTS || act == ACT_STAYED;
	(void)chan_send(&w.netd, MSG_NET_CHANGED, rid, &c, -1);
}

/* Of what it was until now. */
static void
netd_last_word(const struct world_box *b)
{
	static const uint8_t	addr[] = { 169, 254, 169, 254 };
	struct msg_net_denied	d = { .rule = 0, .protocol = IPPROTO_TCP,
	    .port = 80, .count = 3, .since_ms = now_ms(),
	    .address = { addr, sizeof(addr) } };

	(void)str_copy(d.id, b->id, sizeof(d.id));
	(void)chan_send(&w.netd, MSG_NET_DENIED, 0, &d, -1);
}

/* What is asked stands in the row before, but for what drifted. */
static void
netd_change(const struct msg *m, struct world_box *b)
{
	const struct msg_net_change	*q = &m->body.net_change;
	enum act			 act = act_of(b->name);

	if (w.row[idx(b)].network != q->network)
		fault("netd", "a network of which there is no record");
	b->changes++;
	if (lists_step(w.s, WORLD_CHANGE, &w.netd, m->rid))
		return;
	if (act == ACT_NOCHANGE || act == ACT_SHORT_BACK) {
		(void)chan_error(&w.netd, m->rid, CODE_INTERNAL, "cannot");
		return;
	}
	b->network = (unsigned int)q->network;
	if (act == ACT_STAYED || act == ACT_GOES) {
		b->early = b->looks;
		b->change_rid = m->rid;
		return;
	}
	if (act == ACT_LAST_WORD && q->network == NETWORK_NONE)
		netd_last_word(b);
	netd_changed(b, m->rid);
}

/* As the row has it, but for what drifts, and what the row did not take back. */
static uint64_t
netd_network(const struct world_box *b)
{
	if (b == NULL || act_of(b->name) == ACT_SHORT_BACK)
		return NETWORK_NONE;
	if (act_of(b->name) == ACT_DRIFTS && b->amended == 0)
		return NETWORK_NONE;
	if (act_of(b->name) == ACT_STAYED && b->amended == 0)
		return NETWORK_EGRESS;
	return w.row[idx(b)].network;
}

static void
netd_let_go(void)
{
	struct world_box	*b;

	for (b = w.s->box; w.s->let_go && b < w.s->box + w.s->nbox; b++)
		if (b->change_rid != 0) {
			netd_changed(b, b->change_rid);
			b->change_rid = 0;
		}
}

static void
netd_msg(const struct msg *m)
{
	struct world_box		*b = by_id(m->body.net_status.id);
	struct msg_net_status_is	 n = { .state = 1,
	    .ruleset = "absent", .whole = 1,
	    .uplink = b == NULL || act_of(b->name) != ACT_SHUT,
	    .sealed = w.s->totals[0], .host = w.s->totals[1],
	    .limited = w.s->totals[2], .protocol = w.s->totals[3],
	    .address = w.s->totals[4],
	    .network = netd_network(b),
	    .connections = 7, .names = 12, .sent_bytes = 8, .sent_packets = 9,
	    .received_bytes = UINT64_MAX, .received_packets = 11 };

	if (m->row->type == MSG_NET_NAMES) {
		lists_names(w.s, &w.netd, m);
		return;
	}
	if (m->row->type == MSG_NET_CHANGE) {
		if (b == NULL)
			fault("netd", "a network of nobody's");
		else
			netd_change(m, b);
		return;
	}
	if (b != NULL)
		b->looks++;
	(void)chan_send(&w.netd, MSG_NET_STATUS_IS, m->rid, &n, -1);
}

/* Unasked. */
static void
netd_tell(void)
{
	struct msg_net_denied	m = w.s->denied;
	unsigned int		i;

	for (i = 0; i < 1000 && w.s->denied_left > 0 &&
	    w.netd.queued < CHAN_HIGH; i++) {
		if (w.s->denied_crowd != 0)
			(void)str_copy(m.id, w.s->denied_left == 1 ?
			    w.s->denied.id : w.s->box[w.s->denied_first +
			    w.s->denied_left % w.s->denied_crowd].id,
			    sizeof(m.id));
		m.address.data = w.s->denied_addr;
		m.address.len = w.s->denied_len;
		(void)chan_send(&w.netd, MSG_NET_DENIED, 0, &m, -1);
		if (m.address.len != 0 &&
		    ++w.s->denied_addr[m.address.len - 1] == 0)
			w.s->denied_addr[m.address.len - 2]++;
		w.s->denied_left--;
	}
	if (w.s->netd_len == 0)
		return;
	(void)send(w.netd.fd, w.s->netd_says, w.s->netd_len, MSG_NOSIGNAL);
	w.s->netd_len = 0;
}

/* ---- the loop --------------------------------------------------------- */

static void
pump(struct chan *c, void (*fn)(const struct msg *), const char *who)
{
	struct msg	m;
	int		r;

	(void)chan_flush(c);
	while ((r = chan_recv(c, &m)) == 1)
		fn(&m);
	if (r == -1 && errno == EBADMSG)
		fault(who, c->why);
	if (r == -1)
		chan_close(c);
}

/* It is asked in a version that it does not speak. */
static void
rn_version(struct rn *r)
{
	if (r->act == ACT_SWINGS)
		chan_speak(&r->c, PROTO_RUNNER_VERSION - 1 +
		    (r->c.theirs != PROTO_RUNNER_VERSION));
	if (r->act == ACT_SWINGS || r->act == ACT_TELLS ||
	    r->act == ACT_NEWER)
		(void)chan_error(&r->c, 0, CODE_RUNNER_VERSION, "not mine");
}

static void
pump_rn(struct rn *r)
{
	struct msg	m;
	int		n = 0;

	(void)chan_flush(&r->c);
	while (r->used && (n = chan_recv(&r->c, &m)) == 1)
		rn_msg(r, &m);
	if (!r->used || n != -1)
		return;
	if (errno == EBADMSG && r->c.theirs == r->c.version)
		fault("runner", r->c.why);
	else if (errno == EBADMSG)
		rn_version(r);
	chan_close(&r->c);
	r->used = 0;
}

static nfds_t
watch(struct pollfd *p, nfds_t n, const struct chan *c)
{
	p[n].fd = c->fd;
	p[n].events = (short)(POLLIN | (chan_pending(c) ? POLLOUT : 0));
	p[n].revents = 0;
	return n + (c->fd != -1);
}

static void
world_loop(void)
{
	struct pollfd		p[WORLD_BOXES * 4 + 4];
	struct msg_box_ended	e;
	struct rn		*r;
	nfds_t			n;

	while (w.privd.fd != -1) {
		n = watch(p, 0, &w.privd);
		n = watch(p, n, &w.stored);
		n = watch(p, n, &w.netd);
		for (r = w.rn; r < w.rn + WORLD_BOXES * 4; r++)
			if (r->used)
				n = watch(p, n, &r->c);
		if (poll(p, n, w.s->denied_left > 0 ? 1 : 50) == -1 &&
		    errno != EINTR)
			err(1, "poll");
		pump(&w.privd, privd_msg, "privd");
		pump(&w.stored, stored_msg, "stored");
		pump(&w.netd, netd_msg, "netd");
		if (w.netd.fd != -1)
			netd_tell();
		netd_let_go();
		lists_let_go(w.s);
		for (r = w.rn; r < w.rn + WORLD_BOXES * 4; r++)
			if (r->used)
				pump_rn(r);
		if (w.s->end_box != 0) {
			memset(&e, 0, sizeof(e));
			(void)str_copy(e.id, w.s->box[w.s->end_box - 1].id,
			    sizeof(e.id));
			rn_drop(&w.s->box[w.s->end_box - 1]);
			(void)chan_send(&w.privd, MSG_BOX_ENDED, 0, &e, -1);
			w.s->end_box = 0;
		}
	}
}

/* ---- starting apid ---------------------------------------------------- */

static pid_t
apid_start(int log)
{
	int	sv[3][2], i;
	pid_t	pid;

	for (i = 0; i < 3; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		    sv[i]) == -1)
			err(1, "socketpair");
	if ((pid = fork()) == -1)
		err(1, "fork");
	if (pid == 0)
		apid_exec(sv[0][0], sv[1][0], sv[2][0], log);
	for (i = 0; i < 3; i++)
		(void)close(sv[i][0]);
	chan_init(&w.privd, sv[0][1], A_PRIVD, A_APID, S_INIT);
	chan_init(&w.stored, sv[1][1], A_STORED, A_APID, S_RUN);
	chan_init(&w.netd, sv[2][1], A_NETD, A_APID, S_RUN);
	return pid;
}

void
world_make(struct world *wd)
{
	memset(wd, 0, sizeof(*wd));
	memset(&w, 0, sizeof(w));
	wd->s = mmap(NULL, sizeof(*wd->s), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (wd->s == MAP_FAILED)
		err(1, "mmap");
	w.s = wd->s;
	wd->token = WORLD_TOKEN;
}

void
world_row(struct world *wd, const char *name, unsigned int state, int found)
{
	struct world_box	*b = &wd->s->box[wd->s->nbox];
	struct row_sandbox	*r = &w.row[wd->s->nbox];

	ulid_new(b->id);
	(void)str_copy(b->name, name, sizeof(b->name));
	b->state = state;
	b->nonced = state >= BOX_BOOTSTRAPPING;
	w.found[wd->s->nbox++] = found;
	if (state == BOX_NSTATES)
		return;			/* privd's alone */
	r->version = 1;
	(void)str_copy(r->id, b->id, sizeof(r->id));
	(void)str_copy(r->tenant, "default", sizeof(r->tenant));
	(void)str_copy(r->created_by, "token", sizeof(r->created_by));
	(void)str_copy(r->name, name, sizeof(r->name));
	(void)str_copy(r->rootfs, "minimal", sizeof(r->rootfs));
	r->memory_bytes = 1 << 30;
	r->cpu_milli = 1000;
	r->pids = 512;
	r->state = state;
	r->created_ms = r->changed_ms = now_ms();
}

void
world_row_network(struct world *wd, unsigned int network)
{
	struct world_box	*b = &wd->s->box[wd->s->nbox - 1];

	w.row[wd->s->nbox - 1].network = network;
	lists_recorded(b, wd->s, network == NETWORK_ALLOWLIST);
}

void
world_denied(struct world *wd, const struct msg_net_denied *m,
    const void *addr, size_t len, unsigned int n)
{
	world_denied_crowd(wd, m, addr, len, n, wd->s->box, 0);
}

void
world_denied_crowd(struct world *wd, const struct msg_net_denied *m,
    const void *addr, size_t len, unsigned int n,
    const struct world_box *from, unsigned int boxes)
{
	wd->s->denied = *m;
	memcpy(wd->s->denied_addr, addr, len);
	wd->s->denied_len = len;
	wd->s->denied_first = (unsigned int)(from - wd->s->box);
	wd->s->denied_crowd = boxes;
	wd->s->denied_left = n;
	while (wd->s->denied_left > 0 && kill(wd->pid, 0) == 0)
		(void)usleep(1000);
}

void
world_netd_says(struct world *wd, const void *says, size_t len)
{
	wd->s->netd_says = says;
	wd->s->netd_len = len;
}

static void
world_listen(struct world *wd)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET };
	socklen_t		len = sizeof(sin);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w.listener == -1 || bind(w.listener, (struct sockaddr *)&sin,
	    sizeof(sin)) == -1 || listen(w.listener, 64) == -1 ||
	    getsockname(w.listener, (struct sockaddr *)&sin, &len) == -1)
		err(1, "listen");
	wd->port = ntohs(sin.sin_port);
}

void
world_start(struct world *wd)
{
	int	tell[2], log;

	world_listen(wd);
	if (pipe(tell) == -1)
		err(1, "pipe");
	(void)fflush(NULL);
	if ((wd->pid = fork()) == -1)
		err(1, "fork");
	if (wd->pid != 0) {
		(void)close(tell[1]);
		(void)close(w.listener);
		if (read(tell[0], &wd->apid, sizeof(wd->apid)) !=
		    sizeof(wd->apid))
			errx(1, "the world did not start");
		wd->apid_out = tell[0];
		return;
	}
	log = open(WORLD_LOG, O_WRONLY | O_CREAT | O_APPEND, 0644);
	wd->apid = apid_start(log == -1 ? STDERR_FILENO : log);
	if (write(tell[1], &wd->apid, sizeof(wd->apid)) == -1)
		err(1, "write");
	world_loop();
	(void)waitpid(wd->apid, NULL, 0);
	_exit(0);
}

void
world_end(struct world *wd)
{
	if (wd->pid > 0) {
		/* apid sees its channels close and goes */
		(void)kill(wd->pid, SIGKILL);
		(void)waitpid(wd->pid, NULL, 0);
	}
	(void)close(wd->apid_out);
	(void)munmap(wd->s, sizeof(*wd->s));
}

struct world_box *
world_box(struct world *wd, const char *name)
{
	unsigned int	i;

	for (i = wd->s->nbox; i-- > 0;)
		if (strcmp(wd->s->box[i].name, name) == 0)
			return &wd->s->box[i];
	return NULL;
}
