/*
 * daemons.c: the set of daemons, all for one.
 *
 * Theory of operation.  The set is one thing with one state:
 *
 *	WAIT	nothing runs; set_start() when the back-off is over
 *	SPAWN	the maker was asked for processes and channels
 *	START	they run and open what they need; READY is due from each
 *	ADOPT	netd, stored and proxyd serve; netd is being given the
 *		network namespaces that live on; apid and uplinkd, which then
 *		ends what netd did not keep, still wait
 *	RUN	all serve
 *	END	channels are closed, the processes have to end
 *	STOP	SIGTERM: apid ends first, then what it was releasing is
 *		sealed again and stored is told that the server stopped,
 *		then the others end, then privd
 *
 *	WAIT > SPAWN > START > ADOPT > RUN; any of the last four > END > WAIT;
 *	any > STOP (from RUN) or END (from others) > exit.  A fault is noted
 *	where it is found and END is entered from the loop (set_tick).
 *
 * A daemon that ends, breaks the protocol or does not answer in time is a
 * fault of the set: END.  More faults than restart-limit within a minute end
 * privd with status 1.  Boxes know nothing of all this.
 *
 * Must never: end because of what a daemon said.
 */
#include <sys/epoll.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privd.h"

#define READY_MS	30000	/* a daemon's start */
#define ADOPT_MS	60000	/* all adoptions */
#define EOF_MS		3000	/* from end of file to SIGKILL */
#define APID_STOP_MS	20000	/* apid answers what is open */
#define STOP_MS		5000	/* each later stage of a stop */
#define WINDOW_MS	60000	/* of restart-limit */
#define BACKOFF_MS	100	/* doubled with each fault in the window */
#define BACKOFF_MAX_MS	2000	/* runners hold output for 10 s */
#define BURST		32	/* messages of one channel in one turn */

enum set_state {
	SET_WAIT, SET_SPAWN, SET_START, SET_ADOPT, SET_RUN, SET_END, SET_STOP
};

struct daemon {
	struct chan	 chan;
	int		 pidfd;		/* owned; -1: has ended */
	int		 ready;		/* DAEMON_READY came */
	int		 out;		/* polled for writing */
	uint32_t	 rid;		/* of its DAEMON_READY */
	uint32_t	 stop_rid;	/* of our DAEMON_STOP */
};

static struct {
	enum set_state	 state;
	struct daemon	 d[D_N];
	uint64_t	 generation;
	uint64_t	 due;		/* of the state; 0: none */
	uint64_t	 faults[1000];	/* when, a ring; restart-limit's max */
	unsigned int	 nfaults;
	unsigned int	 adopting;	/* answers due */
	uint32_t	 event_rid;	/* EVENT_APPEND that is under way */
	int		 userns;	/* for the maker, until taken */
	int		 fault;		/* END is due, at the next tick */
	int		 told;		/* the service manager knows */
} set = { .state = SET_WAIT, .userns = -1, .d = {
	[D_NETD ... D_N - 1] = { .chan = { .fd = -1, .state = S_INIT },
	    .pidfd = -1 },
} };

static const struct {
	const char	*name;
	unsigned int	 actor;
} kinds[D_N] = {
	[D_NETD] = { "netd", A_NETD },
	[D_STORED] = { "stored", A_STORED },
	[D_APID] = { "apid", A_APID },
	[D_UPLINKD] = { "uplinkd", A_UPLINKD },
	[D_PROXYD] = { "proxyd", A_PROXYD },
};

static void	stop_next(void);

/* ---- sending ------------------------------------------------------------ */

static void
sent(enum daemon_kind k, int r)
{
	struct daemon	*d = &set.d[k];
	int		 out;

	if (r == -1 && set.state == SET_STOP)
		return;			/* it has ended, or will be */
	if (r == -1 && errno == EINVAL)
		set_fault("send to %s: %s", kinds[k].name, d->chan.why);
	else if (r == -1)
		set_fault("send to %s: %s", kinds[k].name, strerror(errno));
	else if ((out = chan_pending(&d->chan)) != d->out) {
		d->out = out;
		ev_ctl(EPOLL_CTL_MOD, d->chan.fd, EV_CHAN, k,
		    EPOLLIN | (out ? EPOLLOUT : 0));
	}
}

void
to_apid(unsigned int type, uint32_t rid, const void *body, int fd)
{
	/* before GO it wants nothing but listeners; it will ask */
	if (set.fault || set.d[D_APID].chan.state != S_RUN)
		fd_close(&fd);
	else
		sent(D_APID, chan_send(&set.d[D_APID].chan, type, rid, body,
		    fd));
}

void
to_apid_ok(uint32_t rid)
{
	struct msg_ok	ok = { 0 };

	to_apid(MSG_OK, rid, &ok, -1);
}

void
to_apid_error(uint32_t rid, unsigned int code, const char *fmt, ...)
{
	char	text[256];
	va_list	ap;

	if (set.fault || set.d[D_APID].chan.state != S_RUN)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);	/* cut is fine */
	va_end(ap);
	sent(D_APID, chan_error(&set.d[D_APID].chan, rid, code, "%s", text));
}

int
to_netd(unsigned int type, const void *body, int fd_arg, uint32_t *ret_rid)
{
	auto_close int	fd = fd_arg;

	if (set.fault || set.d[D_NETD].chan.state != S_RUN)
		return -1;
	sent(D_NETD, chan_ask(&set.d[D_NETD].chan, type, body, steal_fd(&fd),
	    ret_rid));
	return 0;
}

/* A record of our own; data is a body of events.def. */
static void
event_append(unsigned int type, const void *data)
{
	static uint8_t		 buf[1024];
	struct msg_event_append	 m = { .type = type, .durable = 1,
				    .actor = "privd", .outcome = "ok" };
	ssize_t			 n;

	if ((n = wire_encode(event_find(type)->desc, data, buf,
	    sizeof(buf))) == -1)
		fatalx("own record: %s", wire_error());
	m.data.data = buf;
	m.data.len = (size_t)n;
	sent(D_STORED, chan_ask(&set.d[D_STORED].chan, MSG_EVENT_APPEND, &m,
	    -1, &set.event_rid));
}

/* ---- start ------------------------------------------------------------- */

void
set_userns(int fd)
{
	fd_close(&set.userns);
	set.userns = fd;
}

void
set_start(void)
{
	static struct maker_req	q = { .op = MK_SET, .n = TABLE_MAX };

	if (maker_ask(&q, &set.userns, 1) == -1) {
		set.due = mono_ms() + 10;	/* still WAIT */
		return;
	}
	fd_close(&set.userns);
	set.state = SET_SPAWN;
	set.due = 0;
}

void
set_on_maker(int *fds)
{
	struct msg_daemon_listener	m;
	enum daemon_kind		k;
	unsigned int			i, kind;
	int				fd;

	set.generation++;
	for (k = 0; k < D_N; k++) {
		struct daemon	*d = &set.d[k];

		memset(d, 0, sizeof(*d));
		chan_init(&d->chan, steal_fd(&fds[k]), A_PRIVD,
		    kinds[k].actor, S_INIT);
		d->pidfd = steal_fd(&fds[D_N + k]);
		ev_add(d->chan.fd, EV_CHAN, k, EPOLLIN);
		ev_add(d->pidfd, EV_DAEMON, k, EPOLLIN);
	}
	set.state = SET_START;
	set.due = mono_ms() + READY_MS;
	if (srv.stopping) {
		set_fault("stopped while starting");
		return;
	}
	for (i = 0; (fd = listener(i, &kind)) != -1; i++) {
		if ((fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) == -1)
			fatal("duplicate listener");
		memset(&m, 0, sizeof(m));
		m.kind = kind;
		sent(D_APID, chan_send(&set.d[D_APID].chan,
		    MSG_DAEMON_LISTENER, 0, &m, fd));
	}
}

static void
go(enum daemon_kind k)
{
	struct msg_daemon_go	m = { .generation = set.generation };

	set.d[k].chan.state = S_RUN;
	sent(k, chan_send(&set.d[k].chan, MSG_DAEMON_GO, set.d[k].rid, &m,
	    -1));
}

static void
set_run(void)
{
	set.state = SET_RUN;
	set.due = 0;
	go(D_APID);
	go(D_UPLINKD);
	log_info("serving, generation %llu, %u boxes",
	    (unsigned long long)set.generation, table_up());
	if (!set.told)
		tell("READY=1");
	set.told = 1;
}

void
set_adopted(void)
{
	if (set.state == SET_ADOPT && set.adopting > 0 && --set.adopting == 0)
		set_run();
}

/* The name of one that has not said READY, or NULL. */
static const char *
late(void)
{
	enum daemon_kind	k;

	for (k = 0; k < D_N && set.d[k].ready; k++)
		;
	return k < D_N ? kinds[k].name : NULL;
}

static void
on_ready(enum daemon_kind k, const struct msg *m)
{
	struct event_server_started	ev = { .generation = set.generation };

	if (set.d[k].ready || set.state != SET_START) {
		set_fault("%s says ready twice", kinds[k].name);
		return;
	}
	log_debug("%s is ready, version %s", kinds[k].name,
	    m->body.daemon_ready.version);
	set.d[k].ready = 1;
	set.d[k].rid = m->rid;
	if (late() != NULL)
		return;
	set.state = SET_ADOPT;
	set.due = mono_ms() + ADOPT_MS;
	go(D_NETD);
	go(D_STORED);
	go(D_PROXYD);
	(void)str_copy(ev.version, PACKAGE_VERSION, sizeof(ev.version));
	event_append(EVENT_SERVER_STARTED, &ev);
	set.adopting = life_adopt() + 1;
	set_adopted();			/* the one more */
}

/* ---- end --------------------------------------------------------------- */

/* Whether all processes have ended. */
static int
set_gone(void)
{
	enum daemon_kind	k;

	for (k = 0; k < D_N && set.d[k].pidfd == -1; k++)
		;
	return k == D_N;
}

static void
set_kill(void)
{
	static struct maker_req	q = { .op = MK_SET_KILL, .n = TABLE_MAX };

	log_warnx("end daemons by force");
	(void)maker_ask(&q, NULL, 0);	/* EAGAIN: at the next tick */
}

static void
chan_end(enum daemon_kind k)
{
	ev_close(&set.d[k].chan.fd);
	chan_close(&set.d[k].chan);	/* its queue */
	set.d[k].chan.state = S_INIT;
}

/* Out by exit(): the last step of a stop; not before what was sealed is. */
static void __attribute__((noreturn))
leave(int status)
{
	static struct maker_req	 q = { .op = MK_LEAVE, .n = TABLE_MAX };
	struct maker_ans		*a;
	int				*fds;

	while (maker_answer(&a, &fds, 1))
		life_on_maker(a, fds);
	(void)maker_ask(&q, NULL, 0);	/* there is room */
	(void)maker_answer(&a, &fds, 1);
	log_info("stopped");
	exit(status);
}

/* All have ended: again, after a while, or not at all. */
static void
set_ended(void)
{
	uint64_t	now = mono_ms(), wait;
	unsigned int	i, n = 0;

	if (srv.stopping)
		leave(0);
	for (i = 0; i < 1000; i++)
		n += set.faults[i] != 0 && set.faults[i] + WINDOW_MS > now;
	if (n > srv.conf->restart_limit) {
		log_errorx("%u faults within a minute: giving up; %u boxes "
		    "run on", n, table_up());
		leave(1);
	}
	wait = n > 5 ? BACKOFF_MAX_MS : BACKOFF_MS << (n > 0 ? n - 1 : 0);
	set.state = SET_WAIT;
	set.due = now + wait;
}

/* From the loop alone: it changes boxes that a handler may hold. */
static void
set_end(void)
{
	enum daemon_kind	k;

	set.fault = 0;
	for (k = 0; k < D_N; k++)
		chan_end(k);
	set.state = SET_END;
	set.due = mono_ms() + EOF_MS;
	life_set_down();
	if (set_gone())
		set_ended();
}

void
set_fault(const char *fmt, ...)
{
	char	text[256];
	va_list	ap;

	if (set.fault || set.state == SET_END || set.state == SET_WAIT)
		return;			/* one fault brings others */
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);	/* cut is fine */
	va_end(ap);
	log_warnx("%s", text);
	if (!srv.stopping)
		set.faults[set.nfaults++ % 1000] = mono_ms();
	set.fault = 1;
}

void
set_on_pidfd(unsigned int k)
{
	ev_close(&set.d[k].pidfd);
	if (set.state == SET_STOP)
		stop_next();
	else if (set.state != SET_END)
		set_fault("%s has ended", kinds[k].name);
	else if (set_gone())
		set_ended();
}

/* ---- stop -------------------------------------------------------------- */

static void
stop_ask(enum daemon_kind k)
{
	struct msg_daemon_stop	m = { 0 };

	if (set.d[k].chan.fd != -1 && set.d[k].stop_rid == 0)
		sent(k, chan_ask(&set.d[k].chan, MSG_DAEMON_STOP, &m, -1,
		    &set.d[k].stop_rid));
}

/* The next stage, when the one before is done; called until it is over. */
static void
stop_next(void)
{
	struct event_server_stopped	ev = { .running = table_up() };
	static int			recorded;
	enum daemon_kind		k;

	if (set.d[D_APID].pidfd != -1)
		return;
	life_untried();
	if (set_gone())
		leave(0);
	if (set.d[D_STORED].pidfd != -1 && !recorded) {
		recorded = 1;
		set.due = mono_ms() + STOP_MS;
		event_append(EVENT_SERVER_STOPPED, &ev);
		return;
	}
	if (set.event_rid != 0 && set.d[D_STORED].pidfd != -1)
		return;
	set.due = mono_ms() + STOP_MS;
	for (k = 0; k < D_N; k++)
		stop_ask(k);	/* uplinkd waits for netd's last word */
}

void
set_stop(void)
{
	unsigned int	n = table_up();

	if (srv.stopping) {
		log_warnx("told to stop again: at once");
		set_fault("stop");
		set_kill();
		return;
	}
	srv.stopping = 1;
	tell("STOPPING=1");
	if (n > 0)
		log_info("%u %s running; the next `workbox serve' finds %s "
		    "again, `workbox sandbox rm NAME' then ends %s", n,
		    n == 1 ? "box keeps" : "boxes keep",
		    n == 1 ? "it" : "them", n == 1 ? "it" : "them");
	if (set.state == SET_WAIT)
		leave(0);
	if (set.state == SET_RUN) {
		set.state = SET_STOP;
		set.due = mono_ms() + APID_STOP_MS;
		stop_ask(D_APID);
	} else if (set.state != SET_SPAWN && set.state != SET_END)
		set.fault = 1;
}

/* ---- SIGHUP ------------------------------------------------------------ */

/* The same as at a start, to all that run; the maker keeps it for the next. */
static void
reload(void)
{
	static struct maker_req		q = { .op = MK_RELOAD, .n = TABLE_MAX };
	const struct msg_daemon_reload	m = { 0 };
	enum daemon_kind		k;

	conf_take(srv.fresh[READER_SERVER]);
	q.u.conf = *srv.conf;
	if (maker_ask(&q, &srv.fresh[READER_CONF], 2) == -1)
		return;			/* at the next tick */
	for (k = 0; k < D_N; k++)
		sent(k, chan_send(&set.d[k].chan, MSG_DAEMON_RELOAD, 0, &m,
		    fcntl(srv.fresh[READER_CONF], F_DUPFD_CLOEXEC, 0)));
	/* a copy that failed is a fault of the set, which starts with these */
	sent(D_APID, chan_send(&set.d[D_APID].chan, MSG_DAEMON_KEYS, 0, &m,
	    steal_fd(&srv.fresh[READER_TOKEN])));
	fd_close(&srv.fresh[READER_SERVER]);
	fd_close(&srv.fresh[READER_CONF]);
}

/* ---- the loop's calls -------------------------------------------------- */

uint64_t
set_due(void)
{
	return set.fault ? 1 : set.due;
}

void
set_tick(uint64_t now)
{
	if (set.fault)
		set_end();
	if (srv.fresh[0] != -1 && set.state == SET_RUN)
		reload();
	if (set.due == 0 || now < set.due)
		return;
	set.due = 0;
	switch (set.state) {
	case SET_WAIT:
		set_start();
		break;
	case SET_START:
	case SET_ADOPT:
		set_fault("daemons are not ready in time: %s",
		    set.state == SET_ADOPT ? "netd adopts" : late());
		break;
	case SET_STOP:
		log_warnx("daemons do not stop in time");
		set_end();
		/* FALLTHROUGH */
	case SET_END:
		set_kill();
		set.due = now + EOF_MS;
		break;
	case SET_SPAWN:
	case SET_RUN:
		break;			/* they have no end */
	}
}

/* OK and ERROR that answer something of this file; 0: they do not. */
static int
on_answer(enum daemon_kind k, const struct msg *m)
{
	if (m->rid == 0)
		return 0;
	if (m->rid == set.d[k].stop_rid)
		return 1;
	if (k != D_STORED || m->rid != set.event_rid)
		return 0;
	set.event_rid = 0;
	if (m->row->type == MSG_ERROR)
		log_warnx("stored does not record: %s: %s",
		    code_name((unsigned int)m->body.error.code),
		    m->body.error.detail);
	if (set.state == SET_STOP)
		stop_next();
	return 1;
}

static void
dispatch(enum daemon_kind k, struct msg *m)
{
	int	known;

	log_debug("%s: %s", kinds[k].name, m->row->name);
	switch (m->row->type) {
	case MSG_DAEMON_READY:
		on_ready(k, m);
		return;
	case MSG_OK:
	case MSG_ERROR:
	case MSG_EVENT_APPENDED:
		known = on_answer(k, m) || (k == D_NETD && life_on_net(m));
		break;
	case MSG_NET_MADE:
	case MSG_NET_OPENED:
		known = life_on_net(m);
		break;
	default:
		known = handle_box(m);
	}
	if (!known)
		set_fault("%s: %s answers nothing", kinds[k].name,
		    m->row->name);
}

void
set_on_chan(unsigned int kind, uint32_t events)
{
	enum daemon_kind	 k = (enum daemon_kind)kind;
	struct daemon		*d = &set.d[k];
	struct msg		 m;
	int			 i, r;

	if (events & EPOLLOUT && d->chan.fd != -1)
		sent(k, chan_flush(&d->chan) == -1 ? -1 : 0);
	for (i = 0; i < BURST && d->chan.fd != -1 && !set.fault; i++) {
		if ((r = chan_recv(&d->chan, &m)) == 0)
			return;
		if (r == -1 && errno == EBADMSG) {
			set_fault("%s breaks the protocol: %s", kinds[k].name,
			    d->chan.why);
			return;
		}
		if (r == -1) {
			/* its end follows; in a stop that is as it should be */
			chan_end(k);
			if (set.state != SET_STOP)
				set_fault("%s has closed its channel",
				    kinds[k].name);
			return;
		}
		dispatch(k, &m);
		fd_close(&m.fd);
	}
}
