/*
 * apid_fuzz: apid's end of a runner's channel, under a box that says what it
 * likes, while clients start commands, read, write, wait and go away.
 *
 * input: steps of a byte each (see steps[] below); APID_PACKET takes a piece
 * (two bytes of length, a packet as a runner sends it), the others a byte.
 * Ids in packets that are step_id()'s stand for those of the sessions that a
 * runner was told to run, in this order; a number from STEP_RID on stands for
 * the first (and so on) request that it would answer.
 *
 * Every asker hears exactly once how it ended, lines are JSON and say what
 * the runner said, and nothing is left of a box that is gone.
 */
#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <sha2.h>
#include <unistd.h>

#include "../../apid/apid.h"
#include "fuzz.h"
#include "log.h"
#include "steps.h"
#include "xmalloc.h"

#define SESSIONS	4
#define INPUT		40000		/* bytes that a client writes */
#define HEARD		64		/* requests that the runner recalls */
#define OLD		9		/* step_id() of the one before us */

struct apid	env;

/* A client's command: what was asked for and what has come of it. */
struct client {
	struct session		*s;		/* referenced, when it runs */
	struct reader		*reader;
	struct feed		*feed;
	struct session_wait	 wait;
	uint64_t		 told;		/* last chunk or gap */
	unsigned int		 started, done;	/* session_start() and its end */
	unsigned int		 waits, ended;
	int			 feeding;
};

static struct box	 box;
static struct client	 client[SESSIONS];
static unsigned int	 nclients;
static struct chan	 store, privd;		/* the far ends */
static struct chan	 far = { .fd = -1 };	/* of the runner's channel */
static int		 no_store;		/* the next start is refused */
static unsigned int	 old;			/* sessions that stored knows */
static unsigned int	 gets, gots;
static unsigned int	 asks, answers;		/* of the boot */
static int		 condemned, lost;

/* ---- what else there is of apid ---------------------------------------- */

struct box *
box_ref(struct box *b)
{
	b->refs++;
	return b;
}

void
box_unref(struct box *b)
{
	must(b->refs > 1);		/* the last one is ours */
	b->refs--;
}

enum wb_code
box_refuses(const struct box *b, const char **ret_why)
{
	*ret_why = "";
	return b->runner == NULL ? CODE_NOT_READY : CODE_NONE;
}

int
box_usable(const struct box *b)
{
	return b->runner != NULL;
}

void
box_health(struct box *b, enum wb_health h, const char *part)
{
	b->health = h;
	must(str_copy(b->part, part, sizeof(b->part)) == 0);
}

void
box_unheard(struct box *b)
{
	box_health(b, SUSPECT, "control");
}

void
box_move(struct box *b, enum box_state to, const char *reason, int durable,
    const struct move_more *more,
    void (*done)(struct box *, enum wb_code, void *), void *arg)
{
	(void)reason; (void)durable; (void)more; (void)done; (void)arg;
	b->state = to;
}

void
box_quarantine(struct box *b, const char *field, const char *proof,
    size_t len)
{
	must(strcmp(field, "protocol") == 0);	/* nothing here is late */
	(void)proof; (void)len;
	b->condemned = condemned = 1;
}

/* Nothing was denied. */
void
denials_ask(const struct box *b, struct peer *p, uint32_t rid)
{
	struct msg_box_denials_are	a = { .rows = { NULL, 0 } };

	must(b == &box && p == box.runner);
	peer_reply(p, MSG_BOX_DENIALS_ARE, rid, &a);
}

/* Nobody asks how long what took, nor how much there was. */
void
metrics_took(enum metric_time t, uint64_t since)
{
	must(t < METRIC_TIMES && since <= mono_us());
}

void
metrics_add(enum metric_count c, uint64_t n)
{
	must(c < METRIC_COUNTS && n < SIZE_MAX / 2);
}

/* No client here has a key. */
void
key_put(const struct key *k, char text[256], struct wire_bin *asked)
{
	must(k == NULL);
	text[0] = '\0';
	*asked = wire_cstr("");
}

void
boot_attach(struct box *b, void (*done)(struct box *, const char *, void *),
    void *arg)
{
	(void)b; (void)done; (void)arg;
}

void
boot_lost(struct box *b, const char *why)
{
	(void)b; (void)why;
	lost = 1;
}

void
boot_closed(struct box *b, unsigned int theirs, const char *why)
{
	(void)theirs;
	boot_lost(b, why);
}

void
remove_hurry(struct box *b)
{
	(void)b;
}

void
remove_idle(struct box *b)
{
	must(b->running <= SESSIONS + 64);
}

void
apid_lost(const char *who, const char *why)
{
	(void)fprintf(stderr, "%s: %s\n", who, why);
	abort();
}

/* ---- stored and privd -------------------------------------------------- */

/* The session of an apid before, as how says it; none behind it. */
static void
store_page(const struct msg *m)
{
	static struct wire_bin	argv = { (const uint8_t *)"old", 3 }, v;
	static uint8_t		buf[512];
	struct msg_session_page	page = { 0 };
	struct row_session	row = { .version = 1, .name = "old",
	    .argv = { &argv, 1 }, .origin = old & 1, .state = old >> 1 & 1 };
	ssize_t			n;

	memcpy(row.sandbox, box.id, sizeof(row.sandbox));
	memcpy(row.tenant, APID_TENANT, sizeof(APID_TENANT));
	step_id(OLD, row.id);
	if (old & 4 && !m->body.session_rows.open_only)
		row.state = SESSION_ENDED;
	if (old != 0 && strcmp(m->body.session_rows.after, row.id) < 0) {
		n = wire_encode(&wire_row_session, &row, buf, sizeof(buf));
		must(n != -1);
		v = (struct wire_bin){ buf, (size_t)n };
		page.rows = (struct wire_list){ &v, 1 };
	}
	must(chan_send(&store, MSG_SESSION_PAGE, m->rid, &page, -1) == 0);
}

static void
store_answer(const struct msg *m)
{
	int	starts;

	if (m->row->type == MSG_SESSION_ROWS) {
		store_page(m);
		return;
	}
	must(m->row->type == MSG_SESSION_PUT);
	starts = memmem(m->body.session_put.actor, 3, "key", 3) != NULL;
	if (starts && no_store)
		must(chan_error(&store, m->rid, CODE_DISK_FULL, "full") == 0);
	else
		must(chan_ok(&store, m->rid) == 0);
	no_store = starts ? 0 : no_store;
}

/* ---- what the runner heard ---------------------------------------- */

/* A request that it has not answered yet. */
struct heard {
	uint32_t	rid;
	unsigned int	answer;
	char		id[ULID_LEN + 1];	/* of its session, or "" */
};

static struct heard	 heard[HEARD];	/* the oldest first */
static size_t		 nheard;
static char		 ids[SESSIONS][ULID_LEN + 1];	/* as they were run */
static unsigned int	 nids;

static const char *
id_of(const struct msg *m)
{
	const struct wire_desc	*d = m->row->desc;
	size_t			 i;

	for (i = 0; i < d->nfields; i++)
		if (strcmp(d->field[i].key, "id") == 0)
			return (const char *)&m->body + d->field[i].off;
	return "";
}

static void
hear(const struct msg *m)
{
	const char	*id = id_of(m);

	must(m->row->answer != 0 && m->fd == -1);
	if (m->row->type == MSG_SESSION_RUN) {
		must(nids < SESSIONS);
		(void)str_copy(ids[nids++], id, sizeof(ids[0]));
	}
	if (nheard == HEARD)
		return;
	heard[nheard].rid = m->rid;
	heard[nheard].answer = m->row->answer;
	(void)str_copy(heard[nheard++].id, id, sizeof(heard[0].id));
}

/* The nth that b answers, best one of a session that it names. */
static size_t
find_heard(unsigned int type, uint32_t nth, struct bytes b)
{
	size_t		i;
	uint32_t	n;
	int		named;

	for (named = 1; named >= 0; named--)
		for (i = n = 0; i < nheard; i++) {
			if (type != MSG_ERROR && heard[i].answer != type)
				continue;
			if (named && memmem(b.p, b.n, heard[i].id,
			    ULID_LEN) == NULL)
				continue;
			if (n++ == nth)
				return i;
		}
	return nheard;
}

/* Writes b to *to, with the number of what it answers. */
static void
real_rid(struct bytes b, struct bytes *to)
{
	static uint8_t	buf[64 + WIRE_MAX];
	uint32_t	head[3];
	ssize_t		h, n;
	size_t		i;

	*to = b;
	if ((h = wire_head_decode(b.p, b.n, head)) == -1 ||
	    head[2] < STEP_RID)
		return;
	i = find_heard(head[1], head[2] - STEP_RID, b);
	if (i == nheard)
		return;
	head[2] = heard[i].rid;
	memmove(&heard[i], &heard[i + 1], (--nheard - i) * sizeof(heard[0]));
	n = wire_head_encode(head, buf, sizeof(buf));
	must(n != -1);
	memcpy(buf + n, b.p + h, b.n - (size_t)h);
	to->p = buf;
	to->n = (size_t)n + b.n - (size_t)h;
}

/* Until nobody has anything to say. */
static void
pump(void)
{
	struct msg	m;
	int		quiet = 0;

	while (quiet < 2) {
		quiet++;
		must(event_base_loop(env.base, EVLOOP_NONBLOCK) != -1);
		while (chan_recv(&store, &m) == 1) {
			store_answer(&m);
			quiet = 0;
		}
		while (chan_recv(&privd, &m) == 1) {
			must(m.row->type == MSG_BOX_LOG_APPEND);
			must(chan_ok(&privd, m.rid) == 0);
			quiet = 0;
		}
		while (chan_recv(&far, &m) == 1) {
			hear(&m);
			quiet = 0;
		}
	}
}

static void
no_msg(struct peer *p, struct msg *m)
{
	(void)p;
	fd_close(&m->fd);
	abort();
}

static void
no_fault(struct peer *p, enum peer_end end, const char *why)
{
	(void)p; (void)end;
	(void)fprintf(stderr, "a daemon: %s\n", why);
	abort();
}

static struct peer *
daemon_new(const char *name, unsigned int actor, struct chan *ret)
{
	int	v[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, v) == 0);
	chan_init(ret, v[1], actor, A_APID, S_RUN);
	return peer_new(name, v[0], actor, S_RUN, no_msg, no_fault, NULL);
}

static void
prepare(void)
{
	if (env.base != NULL)
		return;
	log_init("apid_fuzz", LOG_L_ERROR, 0);
	must((env.base = event_base_new()) != NULL);
	env.stored = daemon_new("stored", A_STORED, &store);
	env.privd = daemon_new("privd", A_PRIVD, &privd);
}

/* ---- the box ----------------------------------------------------------- */

static void
box_open(void)
{
	int	v[2];

	memset(&box, 0, sizeof(box));
	box.refs = 1;
	box.listed = 1;
	box.state = box.target = BOX_READY;
	memcpy(box.id, "01K8ZZZZZZZZZZZZZZZZZZZZZZ", 27);
	memcpy(box.tenant, APID_TENANT, sizeof(APID_TENANT));
	LIST_INIT(&box.sessions);
	(void)evtimer_assign(&box.retry, env.base, NULL, NULL);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, v) == 0);
	chan_init(&far, v[1], A_RUNNER, A_APID, S_ALL);
	nheard = nids = 0;
	runner_open(&box, v[0]);
}

static void
is_json(const char *s, size_t len)
{
	json_t	*o = json_loadb(s, len, JSON_REJECT_DUPLICATES |
		    JSON_ALLOW_NUL, NULL);

	must(json_is_object(o));
	json_decref(o);
}

static void
is_whole(json_t *o)
{
	char	*s = json_dumps(o, JSON_COMPACT);

	must(s != NULL);
	is_json(s, strlen(s));
	free(s);
	json_decref(o);
}

static void
boot_facts(const struct msg_runner_facts *f)
{
	static struct msg_box_facts_are	h;
	const char			*differs;
	char				*text;

	differs = proof_differs(f, &h);
	text = proof_text(&box, f, &h, differs == NULL ? "" : differs, "",
	    1);
	must(strlen(text) <= PROOF_MAX);
	is_json(text, strlen(text));
	free(text);
}

/* As boot.c goes: nonce, facts, then it runs. */
static void
boot_answer(void *arg, const struct msg *m)
{
	struct msg_runner_go	go = { 0 };
	unsigned int		due = (unsigned int)(uintptr_t)arg;

	answers++;
	if (m == NULL || m->row->type == MSG_ERROR)
		return;
	must(m->row->type == due);
	if (due == MSG_RUNNER_NONCE) {
		peer_state(box.runner, S_GO);
		asks++;
		peer_ask(box.runner, MSG_RUNNER_GO, &go, 0, boot_answer,
		    (void *)(uintptr_t)MSG_RUNNER_FACTS);
	} else if (due == MSG_RUNNER_FACTS) {
		boot_facts(&m->body.runner_facts);
		peer_state(box.runner, S_RUN);
	}
}

static void
step_boot(unsigned int arg)
{
	static const uint8_t	token[32];
	struct msg_runner_hello	m = { .role = "host",
	    .token = { token, sizeof(token) } };

	if (box.runner == NULL)
		return;
	if (arg & 1) {			/* what boots is not tested */
		peer_state(box.runner, S_RUN);
		return;
	}
	asks++;
	peer_ask(box.runner, MSG_RUNNER_HELLO, &m, 0, boot_answer,
	    (void *)(uintptr_t)MSG_RUNNER_NONCE);
}

static void
step_ping(unsigned int arg)
{
	static const struct msg_runner_ping	ping;
	static const struct msg_runner_drain	drain = { .grace_ms = 1 };

	if (box.runner == NULL)
		return;
	asks++;
	if (arg & 1)
		peer_ask(box.runner, MSG_RUNNER_DRAIN, &drain, 0,
		    boot_answer, (void *)(uintptr_t)MSG_OK);
	else
		peer_ask(box.runner, MSG_RUNNER_PING, &ping, 0, boot_answer,
		    (void *)(uintptr_t)MSG_OK);
}

/* ---- clients ----------------------------------------------------------- */

static size_t
reader_room(void *arg)
{
	(void)arg;
	return 4;
}

static void
reader_chunk(void *arg, const struct msg_session_chunk *c)
{
	static char	line[LINE_MAX_BYTES];
	struct client	*cl = arg;
	size_t		 n;

	if (c->gap_last != 0) {
		must(c->gap_first <= c->gap_last && c->gap_last > cl->told);
		cl->told = c->gap_last;
	}
	if (c->seq == 0)
		return;
	must(c->seq > cl->told && c->bytes.len > 0);
	cl->told = c->seq;
	n = chunk_line(line, c->seq, (unsigned int)c->stream, c->bytes.data,
	    c->bytes.len);
	must(n <= sizeof(line) && line[n - 1] == '\n');
	is_json(line, n);
}

static void
reader_end(void *arg, enum wb_code code)
{
	struct client	*cl = arg;

	(void)code;
	reader_free(cl->reader);
	cl->reader = NULL;
}

static const struct reader_ops	ops = { reader_room, reader_chunk,
    reader_end };

static void
read_from(struct client *cl, unsigned int how)
{
	if (cl->s == NULL || cl->reader != NULL)
		return;
	cl->told = how >> 4;
	cl->reader = reader_new(cl->s, how >> 4, (how & 1) != 0,
	    (how & 2) != 0, &ops, cl);
}

static void
start_sent(struct session *s, void *arg)
{
	struct client	*cl = arg;

	must(cl->s == NULL);
	cl->s = session_ref(s);
	read_from(cl, 3);
}

static void
start_done(struct session *s, enum wb_code code, const char *detail, void *arg)
{
	struct client	*cl = arg;

	must(++cl->done == 1);
	must(code == CODE_NONE || detail != NULL);
	must(code != CODE_NONE || s != NULL);
	if (s == NULL)
		return;
	must(cl->s == NULL || cl->s == s);
	is_whole(session_json(s));
	if (cl->s == NULL)
		cl->s = session_ref(s);
}

static void
step_start(unsigned int arg)
{
	static struct wire_bin	argv[2];
	struct session_spec	sp = { .name = arg & 1 ? "x" : "",
	    .cwd = "", .user = "", .input = (const uint8_t *)"in",
	    .input_len = 2,
	    .actor = "key", .request = "", .attached = 1 };

	if (nclients == SESSIONS)
		return;
	argv[0] = wire_cstr("a");
	argv[1] = wire_cstr("\xff");
	sp.argv = (struct wire_list){ argv, 2 };
	sp.stdin_open = (arg & 2) != 0;
	client[nclients].started = 1;
	session_start(&box, &sp, arg & 4 ? NULL : start_sent, start_done,
	    &client[nclients++]);
}

static struct client *
client_of(unsigned int arg)
{
	return &client[arg % SESSIONS];
}

static void
step_read(unsigned int arg)
{
	read_from(client_of(arg), arg >> 2);
}

static void
step_unread(unsigned int arg)
{
	struct client	*cl = client_of(arg);

	reader_free(cl->reader);
	cl->reader = NULL;
}

static void
fed(void *arg, enum wb_code code, uint64_t offset, const char *detail)
{
	struct client	*cl = arg;

	(void)code; (void)offset;
	must(cl->feeding && detail != NULL);
	cl->feeding = 0;
	cl->feed = NULL;
}

static void
step_feed(unsigned int arg)
{
	static const uint8_t	data[INPUT];
	struct client		*cl = client_of(arg);

	if (cl->s == NULL || cl->feed != NULL)
		return;
	cl->feed = feed_new(cl->s, arg >> 4, data, arg & 4 ? sizeof(data) : 3,
	    (arg & 8) != 0, fed, cl);
	cl->feeding = cl->feed != NULL;
}

static void
step_unfeed(unsigned int arg)
{
	struct client	*cl = client_of(arg);

	feed_free(cl->feed);
	cl->feed = NULL;
	cl->feeding = 0;
}

static void
wait_over(struct session_wait *w, struct session *s)
{
	struct client	*cl = w->arg;

	must(s == cl->s && s->state == SESSION_ENDED);
	is_whole(session_json(s));
	cl->ended++;
}

static void
step_wait(unsigned int arg)
{
	struct client	*cl = client_of(arg);

	if (cl->s == NULL || cl->waits != 0)
		return;
	cl->waits = 1;
	cl->wait.fn = wait_over;
	cl->wait.arg = cl;
	session_wait(cl->s, &cl->wait);
}

static void
step_resume(unsigned int arg)
{
	(void)arg;
	sessions_resume(&box);
}

static void
step_close(unsigned int arg)
{
	(void)arg;
	chan_close(&far);
}

static void
step_full(unsigned int arg)
{
	(void)arg;
	no_store = 1;
}

static void
step_old(unsigned int arg)
{
	old = arg & 7;
}

static void
got(struct session *s, enum wb_code code, void *arg)
{
	(void)arg;
	must((s != NULL) == (code == CODE_NONE));
	gots++;
	if (s != NULL)
		is_whole(session_json(s));
}

static void
step_get(unsigned int arg)
{
	static const char *const	refs[] = { "x", "old", "no",
	    "00SESSN90000", "01K000000000", "?", "" };
	char				id[ULID_LEN + 1];
	const char			*ref = id;

	if (arg & 8)
		ref = refs[(arg & 7) % (sizeof(refs) / sizeof(refs[0]))];
	else if (arg & 4 || client_of(arg)->s == NULL)
		step_id(OLD, id);
	else
		(void)str_copy(id, client_of(arg)->s->id, sizeof(id));
	gets++;
	session_get(&box, ref, got, NULL);
}

/* The box has died; or nobody ever saw it live. */
static void
step_ended(unsigned int arg)
{
	if (arg & 1)
		sessions_forsaken(&box);
	else
		box_ended(&box);
}

/* ---- the runner -------------------------------------------------------- */

/* Puts the sessions' ids where their names stand. */
static void
real_ids(uint8_t *p, size_t n)
{
	char		name[ULID_LEN + 1];
	unsigned int	i;
	uint8_t		*q, *end = p + n;

	for (i = 0; i < nids; i++) {
		step_id(i, name);
		for (q = p; (q = memmem(q, (size_t)(end - q), name,
		    ULID_LEN)) != NULL; q += ULID_LEN)
			memcpy(q, ids[i], ULID_LEN);
	}
}

static void
packet(struct bytes b)
{
	uint8_t		*copy;
	struct bytes	 to;

	if (far.fd == -1 || b.n == 0)
		return;
	must((copy = malloc(b.n)) != NULL);
	memcpy(copy, b.p, b.n);
	step_version(copy, b.n);
	real_ids(copy, b.n);
	real_rid((struct bytes){ copy, b.n }, &to);
	/* it may be closed, or full: apid reads no more */
	(void)!send(far.fd, to.p, to.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(copy);
}

static void	(*const steps[APID_NSTEPS])(unsigned int) = {
	[APID_PACKET] = NULL,
	[APID_BOOT] = step_boot,
	[APID_START] = step_start,
	[APID_READ] = step_read,
	[APID_UNREAD] = step_unread,
	[APID_FEED] = step_feed,
	[APID_UNFEED] = step_unfeed,
	[APID_WAIT] = step_wait,
	[APID_RESUME] = step_resume,
	[APID_CLOSE] = step_close,
	[APID_FULL] = step_full,
	[APID_PING] = step_ping,
	[APID_OLD] = step_old,
	[APID_GET] = step_get,
	[APID_ENDED] = step_ended,
};

static void
all_over(void)
{
	struct client	*cl;

	no_store = 0;
	runner_close(&box);
	chan_close(&far);
	pump();
	sessions_lost(&box);
	pump();
	for (cl = client; cl < client + SESSIONS; cl++)
		while (cl->feeding)	/* it was to try again soon */
			must(event_base_loop(env.base, EVLOOP_ONCE) == 0);
	for (cl = client; cl < client + SESSIONS; cl++) {
		must(cl->done == cl->started);
		must(cl->reader == NULL && !cl->feeding);
		must(cl->ended == cl->waits);
		if (cl->s != NULL)
			session_unref(cl->s);
	}
	must(box.running == 0);
	sessions_drop(&box);
	must(box.refs == 1 && asks == answers && gets == gots);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes	b = { data, len };
	unsigned int	step;

	prepare();
	memset(client, 0, sizeof(client));
	nclients = asks = answers = gets = gots = old = 0;
	condemned = lost = no_store = 0;
	box_open();
	while (b.n > 0) {
		step = take_u8(&b) % APID_NSTEPS;
		if (step == APID_PACKET)
			packet(take_piece(&b));
		else
			steps[step](take_u8(&b));
		pump();
	}
	all_over();
	return 0;
}
