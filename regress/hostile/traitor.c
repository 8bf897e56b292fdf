/*
 * traitor: a daemon in an attacker's hands, under the real server.
 *
 *	traitor PID privd ID LOST	as the apid PID: what it may ask of
 *					privd; the box LOST is lost by it
 *	traitor PID record ID		of stored
 *	traitor PID network ID		of netd
 *	traitor PID flood		asks without end, reads nothing
 *	traitor PID proxyd ID N		as proxyd: 0: what it may ask of
 *					stored; the others: one word that is
 *					not its; the number of them is told for
 *					N = list
 *	traitor PID break ROLE N	as ROLE: one break of the contract; the
 *					number of them is told for N = list
 *	traitor PID netns FILE		as the netd PID: gives this as the
 *					network namespace of the next box
 *
 * It stops the daemon, takes its channels by pidfd_getfd(2), says what it
 * likes, and kills it.  So it has all that a bug in the daemon could give
 * away, and what refuses it is the real other end.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chan.h"
#include "fds.h"
#include "ulid.h"
#include "xmalloc.h"

#define WAIT_MS	20000

static int		bad;
static int		pidfd = -1;
static const char	*victim = "", *lost = "";

/* ---- checks ------------------------------------------------------------ */

static void __attribute__((format(printf, 2, 3)))
check(int ok, const char *fmt, ...)
{
	va_list	ap;

	printf("%sok - ", ok ? "" : "not ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	bad |= !ok;
}

static void __attribute__((noreturn))
die(const char *what)
{
	printf("not ok - %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the daemon's channels --------------------------------------------- */

/* The number in the daemon is PRIVSEP's. */
static void
take(struct chan *c, int number, unsigned int self, unsigned int peer)
{
	int	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);

	if (fd == -1)
		die("take a channel");
	chan_init(c, fd, self, peer, S_RUN);
	c->rid = 1000000;	/* far from the daemon's own */
}

/* The next message; its type, or 0 when the other end is gone. */
static unsigned int
next(struct chan *c, struct msg *m)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };
	int		r;

	for (;;) {
		if (chan_pending(c) && chan_flush(c) == -1)
			return 0;
		if ((r = chan_recv(c, m)) == 1)
			return m->row->type;
		if (r == -1)
			return 0;
		p.events = (short)(POLLIN | (chan_pending(c) ? POLLOUT : 0));
		if (poll(&p, 1, WAIT_MS) != 1) {
			errno = ETIMEDOUT;
			die("wait for a message");
		}
	}
}

static unsigned int
ask(struct chan *c, unsigned int type, const void *body, struct msg *m)
{
	uint32_t	rid;
	unsigned int	got;

	if (chan_ask(c, type, body, -1, &rid) == -1)
		die("ask");
	while ((got = next(c, m)) != 0 && m->rid != rid)
		;
	return got;
}

static void
refused(struct chan *c, const char *what, unsigned int type, const void *body,
    unsigned int code)
{
	struct msg	m;
	unsigned int	got = ask(c, type, body, &m);

	check(got == MSG_ERROR && (code == 0 || m.body.error.code == code),
	    "%s: refused", what);
	if (got != MSG_ERROR)
		printf("#   got message %u\n", got);
	else if (code != 0 && m.body.error.code != code)
		printf("#   got code %d: %s\n", (int)m.body.error.code,
		    m.body.error.detail);
}

static void
granted(struct chan *c, const char *what, unsigned int type, const void *body,
    unsigned int answer, struct msg *m)
{
	unsigned int	got = ask(c, type, body, m);

	check(got == answer, "%s", what);
	if (got == MSG_ERROR)
		printf("#   %s\n", m->body.error.detail);
}

/* The other end closes. */
static int
gone(struct chan *c)
{
	struct msg	m;

	while (next(c, &m) != 0)
		;
	return 1;
}

#define ID(s, ident)	(void)str_copy((s).id, ident, sizeof((s).id))

/* ---- apid to privd ----------------------------------------------------- */

static const struct {
	const char	*what, *name, *rootfs;
	uint64_t	 memory, cpu, pids;
	unsigned int	 code;
} creates[] = {
	{ "memory above the ceiling", "t", "default", UINT64_C(1) << 50, 0,
	    0, CODE_LIMIT_ABOVE_CEILING },
	{ "the greatest memory there is", "t", "default", WB_U63, 0, 0,
	    CODE_LIMIT_ABOVE_CEILING },
	{ "processors above the ceiling", "t", "default", 0, 1024000, 0,
	    CODE_LIMIT_ABOVE_CEILING },
	{ "processes above the ceiling", "t", "default", 0, 0, 4194304,
	    CODE_LIMIT_ABOVE_CEILING },
	{ "memory of a byte", "t", "default", 1, 0, 0, CODE_BAD_REQUEST },
	{ "no such rootfs", "t", "nowhere", 0, 0, 0, CODE_ROOTFS_UNKNOWN },
	{ "a rootfs that leads out", "t", "evil", 0, 0, 0,
	    CODE_ROOTFS_UNKNOWN },
};

/* What an own box, made behind the record's back, cannot be. */
static void
own_box(struct chan *c)
{
	struct msg_box_create	 q = { .name = "traitor", .rootfs = "default" };
	struct msg_box_facts	 f = { 0 };
	struct msg_box_attach	 a = { 0 };
	struct msg_box_nonce	 n = { 0 };
	struct msg_box_purge	 p = { 0 };
	struct msg_box_quarantine s = { .field = "x\ty" };
	struct msg_box_kill	 k = { 0 };
	struct msg		 m;
	uint8_t			 guess[32] = "a guess";

	ulid_new(q.id);
	ID(f, q.id);
	ID(a, q.id);
	ID(n, q.id);
	ID(p, q.id);
	ID(s, q.id);
	ID(k, q.id);
	granted(c, "a box of its own, with limits it did not ask for",
	    MSG_BOX_CREATE, &q, MSG_BOX_CREATED, &m);
	check(m.body.box_created.memory_bytes > 0 &&
	    m.body.box_created.cpu_milli > 0 && m.body.box_created.pids > 0,
	    "no limit of it is unlimited");
	refused(c, "the same id again", MSG_BOX_CREATE, &q, CODE_EXISTS);
	granted(c, "its facts", MSG_BOX_FACTS, &f, MSG_BOX_FACTS_ARE, &m);
	check(m.body.box_facts_are.verdict[0] == '\0' &&
	    strncmp(m.body.box_facts_are.uid_map, "         0          0", 21)
	    != 0 && m.body.box_facts_are.no_new_privs == 1 &&
	    m.body.box_facts_are.seccomp_filters == 2,
	    "it is a box like all");
	printf("#   verdict %s\n", m.body.box_facts_are.verdict);
	refused(c, "its tree while it runs", MSG_BOX_PURGE, &p,
	    CODE_NOT_READY);
	n.nonce.data = guess;
	n.nonce.len = sizeof(guess);
	refused(c, "a network for a guessed nonce", MSG_BOX_NONCE, &n,
	    CODE_WRONG_NONCE);
	refused(c, "to attach after that", MSG_BOX_ATTACH, &a,
	    CODE_QUARANTINED);
	refused(c, "to guess again", MSG_BOX_NONCE, &n, CODE_QUARANTINED);
	granted(c, "to end it", MSG_BOX_KILL, &k, MSG_OK, &m);
	granted(c, "to remove it", MSG_BOX_PURGE, &p, MSG_OK, &m);
}

static void
as_apid_privd(void)
{
	struct msg_box_create	 q = { 0 };
	struct msg_box_nonce	 n = { 0 };
	struct msg_box_purge	 p = { 0 };
	struct msg_box_log_append l = { 0 };
	struct msg_box_facts	 f = { 0 };
	struct chan		 c;
	struct msg		 m;
	size_t			 i;
	int			 k;

	take(&c, 3, A_APID, A_PRIVD);
	for (i = 0; i < sizeof(creates) / sizeof(creates[0]); i++) {
		memset(&q, 0, sizeof(q));
		ulid_new(q.id);
		(void)str_copy(q.name, creates[i].name, sizeof(q.name));
		(void)str_copy(q.rootfs, creates[i].rootfs, sizeof(q.rootfs));
		q.memory_bytes = creates[i].memory;
		q.cpu_milli = creates[i].cpu;
		q.pids = creates[i].pids;
		refused(&c, creates[i].what, MSG_BOX_CREATE, &q,
		    creates[i].code);
	}
	own_box(&c);
	ID(p, victim);
	refused(&c, "the victim's tree while it runs", MSG_BOX_PURGE, &p,
	    CODE_NOT_READY);
	ID(q, victim);
	(void)str_copy(q.rootfs, "default", sizeof(q.rootfs));
	refused(&c, "another box in the victim's place", MSG_BOX_CREATE, &q,
	    0);
	ulid_new(f.id);
	refused(&c, "facts of a box that is none", MSG_BOX_FACTS, &f,
	    CODE_NOT_FOUND);
	ID(l, victim);
	memset(l.line, 'x', sizeof(l.line) - 1);
	for (k = 0; k < 5000; k++)
		if (ask(&c, MSG_BOX_LOG_APPEND, &l, &m) != MSG_OK)
			break;
	check(k == 5000, "5 MB into the victim's launch.log are taken");
	/* costs that box, which is what a guess costs */
	ID(n, lost);
	refused(&c, "a network once more", MSG_BOX_NONCE, &n,
	    CODE_WRONG_NONCE);
}

/* ---- apid to stored and netd ------------------------------------------- */

static void
as_apid_record(void)
{
	struct msg_sandbox_create q = { .actor = "traitor" };
	struct msg_sandbox_move	 v = { .actor = "traitor" };
	struct msg_session_put	 s = { .actor = "traitor" };
	struct msg_event_append	 e = { .type = 1, .actor = "traitor" };
	struct row_sandbox	 row = { .version = 1, .tenant = "default",
	    .created_by = "traitor", .name = "traitor" };
	struct row_session	 sess = { .version = 1, .tenant = "default" };
	static uint8_t		 buf[60000];
	struct chan		 c;
	ssize_t			 n;

	take(&c, 5, A_APID, A_STORED);
	(void)str_copy(row.id, victim, sizeof(row.id));
	if ((n = wire_encode(&wire_row_sandbox, &row, buf, sizeof(buf))) == -1)
		die("encode a row");
	q.row.data = buf;
	q.row.len = (size_t)n;
	refused(&c, "the victim's row anew", MSG_SANDBOX_CREATE, &q,
	    CODE_EXISTS);
	ulid_new(row.id);
	row.state = 3;			/* READY, with no way there */
	if ((n = wire_encode(&wire_row_sandbox, &row, buf, sizeof(buf))) == -1)
		die("encode a row");
	q.row.len = (size_t)n;
	refused(&c, "a row that begins in READY", MSG_SANDBOX_CREATE, &q, 0);
	q.row.len = (size_t)n - 1;
	refused(&c, "half a row", MSG_SANDBOX_CREATE, &q, 0);
	ID(v, victim);
	v.to = 0;
	refused(&c, "the victim back to REQUESTED", MSG_SANDBOX_MOVE, &v,
	    CODE_BAD_TRANSITION);
	v.to = 6;
	refused(&c, "the victim DELETED at once", MSG_SANDBOX_MOVE, &v,
	    CODE_BAD_TRANSITION);
	v.to = 15;
	refused(&c, "a state that is none", MSG_SANDBOX_MOVE, &v, 0);
	(void)str_copy(sess.sandbox, row.id, sizeof(sess.sandbox));
	ulid_new(sess.id);
	if ((n = wire_encode(&wire_row_session, &sess, buf, sizeof(buf))) ==
	    -1)
		die("encode a row");
	s.row.data = buf;
	s.row.len = (size_t)n;
	refused(&c, "a session of no box", MSG_SESSION_PUT, &s, 0);
	e.data.data = (const uint8_t *)"\x80";
	e.data.len = 1;
	refused(&c, "a record whose data is not its type's",
	    MSG_EVENT_APPEND, &e, 0);
	e.type = 65535;
	refused(&c, "a record of no type", MSG_EVENT_APPEND, &e, 0);
}

static void
as_apid_network(void)
{
	struct msg_net_status	 q = { 0 };
	struct msg_net_change	 n = { .network = NETWORK_ALLOWLIST };
	struct msg_net_status_is was;
	struct chan		 c;
	struct msg		 m;

	take(&c, 6, A_APID, A_NETD);
	ID(q, victim);
	granted(&c, "the state of the victim's network", MSG_NET_STATUS, &q,
	    MSG_NET_STATUS_IS, &m);
	check(m.body.net_status_is.whole == 1, "and it is whole");
	was = m.body.net_status_is;
	ulid_new(q.id);
	refused(&c, "of a box that is none", MSG_NET_STATUS, &q,
	    CODE_NOT_FOUND);
	ID(n, victim);
	refused(&c, "a way out by name for the victim, which has no list",
	    MSG_NET_CHANGE, &n, CODE_INTERNAL);
	ID(q, victim);
	granted(&c, "the state of the victim's network once more",
	    MSG_NET_STATUS, &q, MSG_NET_STATUS_IS, &m);
	check(m.body.net_status_is.network == was.network &&
	    m.body.net_status_is.state == was.state &&
	    m.body.net_status_is.whole == 1 &&
	    strcmp(m.body.net_status_is.ruleset, was.ruleset) == 0,
	    "and it is what it was");
	ulid_new(n.id);
	n.network = NETWORK_EGRESS;
	refused(&c, "a way out of a box that is none", MSG_NET_CHANGE, &n,
	    CODE_NOT_FOUND);
}

/* ---- proxyd ------------------------------------------------------------ */

/* What apid and privd may say, on its channels; body: of the victim. */
static const struct word {
	const char	*what;
	int		 number;	/* PRIVSEP's */
	unsigned int	 to, self, type;
} words[] = {
	{ "a list for the victim", 6, A_STORED, A_APID, MSG_ALLOW_PUT },
	{ "the victim's row", 6, A_STORED, A_APID, MSG_SANDBOX_GET },
	{ "another kind of network", 6, A_STORED, A_APID,
	    MSG_SANDBOX_NETWORK },
	{ "a record", 6, A_STORED, A_APID, MSG_EVENT_APPEND },
	{ "an answer of stored's own", 6, A_STORED, A_STORED,
	    MSG_NAMES_TAKEN },
	{ "the victim's end", 3, A_PRIVD, A_APID, MSG_BOX_KILL },
	{ "a network that is open", 3, A_PRIVD, A_NETD, MSG_NET_OPENED },
	{ "the victim's network, cut", 5, A_NETD, A_PRIVD, MSG_NET_CUT },
	{ "a denial to apid", 5, A_NETD, A_NETD, MSG_NET_DENIED },
	{ "another kind, of netd", 5, A_NETD, A_APID, MSG_NET_CHANGE },
};
#define NWORDS	(sizeof(words) / sizeof(words[0]))

static void
word_body(union proto_body *b, unsigned int type)
{
	switch (type) {
	case MSG_ALLOW_PUT:
		ID(b->allow_put, victim);
		break;
	case MSG_SANDBOX_GET:
		ID(b->sandbox_get, victim);
		break;
	case MSG_SANDBOX_NETWORK:
		ID(b->sandbox_network, victim);
		break;
	case MSG_EVENT_APPEND:
		b->event_append.type = EVENT_EGRESS_DENIED;
		break;
	case MSG_NAMES_TAKEN:
		b->names_taken.first = 1;
		break;
	case MSG_BOX_KILL:
		ID(b->box_kill, victim);
		break;
	case MSG_NET_OPENED:
		b->net_opened.k = 1;
		break;
	case MSG_NET_CUT:
		b->net_cut.k = 1;
		break;
	case MSG_NET_DENIED:
		ID(b->net_denied, victim);
		b->net_denied.count = 1;
		break;
	case MSG_NET_CHANGE:
		ID(b->net_change, victim);
		break;
	}
}

/* stored tells it lists, of any box, and gives numbers; it asks for no more. */
static void
as_proxyd_stored(void)
{
	struct msg_allow_read	 q = { .page = 0 };
	struct msg_names_take	 n = { .count = 65535 };
	struct chan		 c;
	struct msg		 m;

	take(&c, 6, A_PROXYD, A_STORED);
	ID(q, victim);
	ID(n, victim);
	refused(&c, "the list of a box that has none", MSG_ALLOW_READ, &q,
	    CODE_NOT_FOUND);
	granted(&c, "all addresses that names of the victim may have",
	    MSG_NAMES_TAKE, &n, MSG_NAMES_TAKEN, &m);
	granted(&c, "once more", MSG_NAMES_TAKE, &n, MSG_NAMES_TAKEN, &m);
	check(m.body.names_taken.count == 0, "there are none");
	ulid_new(n.id);
	refused(&c, "addresses for a box that is none", MSG_NAMES_TAKE, &n,
	    CODE_NOT_FOUND);
}

static void
as_proxyd(const char *text)
{
	static union proto_body	 body;
	const struct word	*w;
	struct chan		 c;
	unsigned int		 n = (unsigned int)strtoul(text, NULL, 10);

	if (n == 0) {
		as_proxyd_stored();
		return;
	}
	if (n > NWORDS)
		die("no such word");
	w = &words[n - 1];
	word_body(&body, w->type);
	take(&c, w->number, w->self, w->to);
	if (w->self == w->to)		/* a word of its own, come back */
		c.peer = proto_find(w->type)->to & -proto_find(w->type)->to;
	check(chan_send(&c, w->type, 4242, &body, -1) == 0, "%s: said",
	    w->what);
	c.self = A_PROXYD;
	c.peer = w->to;
	check(gone(&c), "%s: the other end ends it", w->what);
}

/* ---- without end ------------------------------------------------------- */

static long
rss_kib(pid_t pid)
{
	char	path[64], line[128];
	long	kib = -1;
	FILE	*f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		die("read privd's status");
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	(void)fclose(f);
	return kib;
}

/* Asks and does not read; who answers must not grow without bound. */
static void
as_apid_flood(pid_t privd)
{
	struct msg_box_list	 q = { .after = "" };
	struct chan		 c;
	long			 before = rss_kib(privd), after;
	unsigned int		 i;
	int			 r = 0;

	take(&c, 3, A_APID, A_PRIVD);
	for (i = 0; i < 400000 && r != -1; i++) {
		r = chan_ask(&c, MSG_BOX_LIST, &q, -1, NULL);
		while (r != -1 && chan_pending(&c)) {
			struct pollfd	p = { .fd = c.fd, .events = POLLOUT };

			if (poll(&p, 1, 500) != 1 || chan_flush(&c) == -1)
				r = -1;		/* it takes no more, or ended */
		}
	}
	after = rss_kib(privd);
	check(after - before < 12 * 1024, "%u questions, no answer read: "
	    "privd has grown by less than 12 MiB", i);
	printf("#   %ld to %ld KiB\n", before, after);
}

/* ---- breaks of the contract -------------------------------------------- */

static const struct way {
	const char	*what;
	unsigned int	 self, peer;	/* whose words on whose channel */
	unsigned int	 type;
} ways[] = {
	{ "a word of netd's", A_NETD, A_PRIVD, MSG_NET_OPENED },
	{ "an answer to nothing", A_PRIVD, A_APID, MSG_BOX_CREATED },
	{ "READY once more", A_APID, A_PRIVD, MSG_DAEMON_READY },
	{ "a runner's word", A_RUNNER, A_APID, MSG_SESSION_ANNOUNCE },
	{ "a word to netd", A_PRIVD, A_NETD, MSG_NET_FREE },
	{ "a word of stored's", A_STORED, A_APID, MSG_STORE_INFO_IS },
	{ "a number that is no message", 0, 0, 0 },
	{ "another version", 0, 0, 1 },
	{ "a packet with nothing in it", 0, 0, 2 },
	{ "64 KiB of 0xc1", 0, 0, 3 },
	{ "a map of 4 Gi members", 0, 0, 4 },
	{ "a byte too much", 0, 0, 5 },
	{ "a descriptor", 0, 0, 6 },
};
#define NWAYS	(sizeof(ways) / sizeof(ways[0]))

static const struct {
	const char	*role;
	unsigned int	 actor;
	struct { int number; unsigned int actor; } ch[4];
} roles[] = {
	{ "apid", A_APID, { { 3, A_PRIVD }, { 5, A_STORED }, { 6, A_NETD } } },
	{ "stored", A_STORED, { { 3, A_PRIVD }, { 5, A_APID },
	    { 6, A_PROXYD } } },
	{ "netd", A_NETD, { { 3, A_PRIVD }, { 5, A_APID }, { 6, A_UPLINKD },
	    { 7, A_PROXYD } } },
	{ "uplinkd", A_UPLINKD, { { 3, A_PRIVD }, { 5, A_NETD } } },
	{ "proxyd", A_PROXYD, { { 3, A_PRIVD }, { 5, A_NETD },
	    { 6, A_STORED } } },
};
#define NROLES	(sizeof(roles) / sizeof(roles[0]))

/* Returns whether it could be sent. */
static int
raw_break(struct chan *c, unsigned int kind)
{
	static uint8_t	big[65536];
	static const uint8_t
	    none[] = { 0x94, 0x01, 0xcd, 0xff, 0xff, 0x01, 0x80 },
	    version[] = { 0x94, 0x09, 0x01, 0x01, 0x80 },
	    many[] = { 0x94, 0x01, 0x01, 0x01, 0xdf, 0xff, 0xff, 0xff, 0xff },
	    longer[] = { 0x94, 0x01, 0x01, 0x01, 0x80, 0x00 },
	    ok[] = { 0x94, 0x01, 0x01, 0x01, 0x80 };
	const int	in = STDIN_FILENO;

	switch (kind) {
	case 0:
		return fds_send(c->fd, none, sizeof(none), NULL, 0, 0) == 0;
	case 1:
		return fds_send(c->fd, version, sizeof(version), NULL, 0, 0)
		    == 0;
	case 2:
		return send(c->fd, "", 0, MSG_NOSIGNAL) == 0;
	case 3:
		memset(big, 0xc1, sizeof(big));
		return fds_send(c->fd, big, sizeof(big), NULL, 0, 0) == 0;
	case 4:
		return fds_send(c->fd, many, sizeof(many), NULL, 0, 0) == 0;
	case 5:
		return fds_send(c->fd, longer, sizeof(longer), NULL, 0, 0) ==
		    0;
	default:
		return fds_send(c->fd, ok, sizeof(ok), &in, 1, 0) == 0;
	}
}

static int
way_break(struct chan *c, const struct way *y)
{
	static union proto_body	 body;
	uint32_t		 rid = 4242;

	if (y->self == 0)
		return raw_break(c, y->type);
	memset(&body, 0, sizeof(body));
	switch (y->type) {
	case MSG_NET_OPENED:
		body.net_opened.k = 1;
		break;
	case MSG_BOX_CREATED:
		(void)str_copy(body.box_created.rootfs, "x", 64);
		break;
	case MSG_NET_FREE:
		body.net_free.k = 1;
		break;
	case MSG_SESSION_ANNOUNCE:
		ulid_new(body.session_announce.id);
		rid = 0;
		break;
	default:
		break;
	}
	c->self = y->self;
	c->peer = y->peer;
	c->state = y->type == MSG_DAEMON_READY ? S_INIT : S_RUN;
	return chan_send(c, y->type, rid, &body, -1) == 0;
}

/* n: 0 is the first way on the first channel, and so on. */
static void
as_any_break(const char *role, const char *text)
{
	struct chan	 c;
	const struct way *y;
	unsigned int	 n = (unsigned int)strtoul(text, NULL, 10), ch, i;
	int		 sent;

	for (i = 0; i < NROLES && strcmp(roles[i].role, role) != 0; i++)
		;
	ch = n / NWAYS;
	y = &ways[n % NWAYS];
	if (i == NROLES || ch > 3 || roles[i].ch[ch].number == 0)
		die("no such break");
	take(&c, roles[i].ch[ch].number, roles[i].actor,
	    roles[i].ch[ch].actor);
	sent = way_break(&c, y);
	if (!sent && y->self == 0 && y->type == 6) {
		check(errno == EPERM, "%s, channel %u: %s: the kernel refuses "
		    "it", role, ch, y->what);
		return;
	}
	c.self = roles[i].actor;
	c.peer = roles[i].ch[ch].actor;
	c.state = S_RUN;
	check(sent && gone(&c), "%s, channel %u: %s: the other end ends it",
	    role, ch, y->what);
}

static void
list_breaks(const char *role)
{
	unsigned int	i, n = 0;

	for (i = 0; i < NROLES; i++)
		if (strcmp(roles[i].role, role) == 0)
			while (n < 4 && roles[i].ch[n].number != 0)
				n++;
	printf("%zu\n", n * NWAYS);
	exit(0);
}

/* ---- netd's gifts ------------------------------------------------------ */

static void
as_netd_give(const char *file)
{
	struct msg_net_made	 made = { .k = 40000, .ruleset = "sealed" };
	struct msg_net_opened	 open_ = { .ruleset = "sealed" };
	struct chan		 c;
	struct msg		 m;
	unsigned int		 type;
	int			 fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		die(file);
	take(&c, 3, A_NETD, A_PRIVD);
	puts("ready");
	(void)fflush(stdout);	/* the create may begin */
	while ((type = next(&c, &m)) != MSG_NET_MAKE && type != 0)
		;
	check(type == MSG_NET_MAKE &&
	    chan_send(&c, MSG_NET_MADE, m.rid, &made, fd) == 0, "given");
	/* goes on like netd until it is ended */
	while ((type = next(&c, &m)) != 0 && m.row != NULL) {
		if (type == MSG_NET_OPEN) {
			open_.k = m.body.net_open.k;
			(void)chan_send(&c, MSG_NET_OPENED, m.rid, &open_, -1);
		} else if (m.row->answer != 0)
			(void)chan_ok(&c, m.rid);
		if (type == MSG_NET_FREE)
			break;
	}
}

/* ---- main -------------------------------------------------------------- */

int
main(int argc, char *argv[])
{
	pid_t	pid;

	if (argc < 3) {
		fputs("usage: traitor PID WHAT [ARGUMENT...]\n", stderr);
		return 2;
	}
	if (argc == 5 && strcmp(argv[4], "list") == 0 &&
	    strcmp(argv[2], "proxyd") == 0) {
		printf("%zu\n", NWORDS + 1);
		return 0;
	}
	if (argc == 5 && strcmp(argv[4], "list") == 0)
		list_breaks(argv[3]);
	pid = (pid_t)strtol(argv[1], NULL, 10);
	if ((pidfd = (int)syscall(SYS_pidfd_open, pid, 0)) == -1 ||
	    kill(pid, SIGSTOP) == -1)
		die("stop the daemon");
	if (argc > 3)
		victim = argv[3];
	if (argc > 4)
		lost = argv[4];
	if (strcmp(argv[2], "privd") == 0)
		as_apid_privd();
	else if (strcmp(argv[2], "record") == 0)
		as_apid_record();
	else if (strcmp(argv[2], "network") == 0)
		as_apid_network();
	else if (strcmp(argv[2], "flood") == 0)
		as_apid_flood((pid_t)strtol(victim, NULL, 10));
	else if (strcmp(argv[2], "proxyd") == 0 && argc == 5)
		as_proxyd(argv[4]);
	else if (strcmp(argv[2], "break") == 0 && argc == 5)
		as_any_break(argv[3], argv[4]);
	else if (strcmp(argv[2], "netns") == 0)
		as_netd_give(victim);
	else
		die("no such part");
	/* the set ends with it, when it has not ended yet */
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	return bad;
}
