/*
 * proxyd: the one way out of boxes of the network `allowlist', by name.
 *
 *	proxyd.c	start, fence, loop, channels
 *	box.c		boxes: their lists, the addresses of their names
 *	ns.c		the name service of a box; dns.c: its messages
 *	names.c		which synthetic address is which name's
 *	relay.c		connections; hello.c, head.c: what they say
 *	dial.c, pump.c	connecting to a name; bytes from one to the other
 *	looks.c		lookups of one box, so many at a time
 *	resolve.c	names to addresses that may be connected to
 *
 * Descriptors as the maker gives them: 2 the log, 3 a channel to privd, 4 the
 * configuration, 5 to netd, which hands over the sockets that listen in a box's
 * network namespace, 6 to stored, which has the lists.
 *
 * It stays in the host's network namespace, from which it connects, an
 * ordinary user without a capability.  What c-ares and the host's addresses
 * need is opened before the fence: behind it there is no file at all, nor a
 * socket but of TCP and UDP.
 *
 * netd may ask before privd has said go, for it adopts networks then.  The end
 * of privd is ours; that of another daemon is privd's matter, which ends the
 * set: us, too, unless it has closed its channel alone.  Nonsense from any of
 * them ends this process, and so the set.
 *
 * Must never: connect for a box to an address that resolve.c has not checked;
 * open a file; let one box wait for another.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "proxy_files.h"
#include "proxyd.h"
#include "proxyd_calls.h"
#include "xmalloc.h"

#define FD_PRIVD	3
#define FD_NETD		5
#define FD_STORED	6

#define BURST		32		/* messages of a channel in one turn */
#define STORED_S	10		/* stored's answer */
#define ALONE_S		3		/* without stored */
#define BUCKETS		64

static const struct confine_limit	proxyd_limits[] = {
	{ RLIMIT_CORE, 0 },		/* what boxes send is in here */
	{ RLIMIT_NPROC, 0 },		/* no process, no thread */
};

static struct confine	proxyd_profile = {
	.root = confine_root_empty,	/* it needs no file any more */
	.caps = 0,			/* nothing that a box could gain */
	.landlock = confine_landlock,	/* no file, no port of its own */
	.landlock_connects = 1,		/* that is its work */
	.limits = proxyd_limits,
	.nlimits = sizeof(proxyd_limits) / sizeof(proxyd_limits[0]),
	.filter = proxyd_calls,
	.nfilter = sizeof(proxyd_calls) / sizeof(proxyd_calls[0]),
};

struct peer {
	struct chan	 chan;
	struct event	*in, *out;	/* owned */
	const char	*name;
};

/* What stored was asked; without a cb: nobody waits any more. */
struct question {
	LIST_ENTRY(question)	 next;
	uint32_t		 rid;
	unsigned int		 answer;	/* type that is due */
	struct event		*late;		/* owned */
	void			(*cb)(void *, const struct msg *);
	void			*arg;
};

static struct peer		 privd, netd, stored;
static struct event_base	*base;
static LIST_HEAD(, question)	 questions[BUCKETS];
static int			 untold;	/* netd takes nothing more */

/* ---- stored --------------------------------------------------------- */

static void
question_free(struct question *q)
{
	LIST_REMOVE(q, next);
	event_free(q->late);
	free(q);
}

static void
question_end(struct question *q, const struct msg *m)
{
	void	(*cb)(void *, const struct msg *) = q->cb;
	void	*arg = q->arg;

	q->cb = NULL;
	if (cb != NULL)
		cb(arg, m);
}

/* The answer may still come, where it was asked at all (rid not 0). */
static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	struct question	*q = arg;

	(void)fd;
	(void)what;
	if (q->rid != 0 && stored.chan.fd != -1) {
		log_warnx("stored does not answer");
		question_end(q, NULL);
		return;
	}
	question_end(q, NULL);
	question_free(q);
}

void
proxyd_ask_stored(unsigned int type, const void *body,
    void (*cb)(void *, const struct msg *), void *arg)
{
	struct timeval	 tv = { 0, 0 };
	struct question	*q = xcalloc(1, sizeof(*q));

	q->answer = proto_find(type)->answer;	/* one of proto.def */
	q->cb = cb;
	q->arg = arg;
	if ((q->late = event_new(base, -1, 0, on_late, q)) == NULL)
		fatalx("event_new");
	if (stored.chan.fd != -1 && stored.chan.queued < CHAN_HIGH) {
		tv.tv_sec = STORED_S;
		proxyd_sent(&stored.chan, chan_ask(&stored.chan, type, body,
		    -1, &q->rid));
	}
	/* else it is as if it did not answer */
	if (event_add(q->late, &tv) == -1)
		fatalx("event_add");
	LIST_INSERT_HEAD(&questions[q->rid % BUCKETS], q, next);
}

/*
 * Hostile: what answers nothing, or is another answer than was due, ends us;
 * what it says is box.c's to hold against its bounds.
 */
static void
on_stored(const struct msg *m)
{
	struct question	*q;

	LIST_FOREACH(q, &questions[m->rid % BUCKETS], next)
		if (q->rid == m->rid && m->rid != 0)
			break;
	if (q == NULL || (m->row->type != q->answer &&
	    m->row->type != MSG_ERROR))
		fatalx("stored: %s answers nothing", m->row->name);
	(void)event_del(q->late);	/* it may be over */
	question_end(q, m);
	question_free(q);
}

/* Whoever waits need not wait any longer. */
static void
stored_gone(void)
{
	struct question	*q;
	size_t		 i;

	for (i = 0; i < BUCKETS; i++)
		LIST_FOREACH(q, &questions[i], next)
			event_active(q->late, EV_TIMEOUT, 0);
}

/* ---- sending -------------------------------------------------------- */

void
proxyd_sent(struct chan *c, int result)
{
	struct peer	*p = c == &privd.chan ? &privd :
			    c == &netd.chan ? &netd : &stored;

	if (c->fd == -1)
		return;		/* it has gone */
	if (result == -1 && errno == EPIPE)
		return;		/* its end is read, not written */
	if (result == -1)
		fatal("send to %s: %s", p->name, c->why);
	if (chan_pending(c) && event_add(p->out, NULL) == -1)
		fatalx("event_add");
}

/* What netd does not take is lost: there is no end to what boxes try. */
void
proxyd_tell_netd(unsigned int type, const void *body)
{
	if (netd.chan.fd == -1)
		return;
	if (netd.chan.queued >= CHAN_HIGH) {
		if (!untold)
			log_warnx("netd does not take what it is told");
		untold = 1;
		return;
	}
	untold = 0;
	proxyd_sent(&netd.chan, chan_send(&netd.chan, type, 0, body, -1));
}

static void
ready(void)
{
	struct msg_daemon_ready	r = { .wire_end = 0 };

	(void)str_copy(r.version, PACKAGE_VERSION, sizeof(r.version));
	if (chan_ask(&privd.chan, MSG_DAEMON_READY, &r, -1, NULL) == -1)
		fatal("send READY");
}

/* ---- dispatch ------------------------------------------------------- */

/* Connections end with us; a new server's boxes make new ones. */
static void
on_stop(const struct msg *m)
{
	proxyd_sent(&privd.chan, chan_ok(&privd.chan, m->rid));
	log_debug("stop");
	exit(0);		/* an answer of 10 bytes is never queued */
}

static void
on_privd(const struct msg *m)
{
	if (m->row->type == MSG_DAEMON_GO)
		privd.chan.state = S_RUN;
	else if (m->row->type == MSG_DAEMON_RELOAD) {
		if (conf_reload(m->fd, "proxyd") == -1)
			fatal("read the configuration");
	} else if (m->row->type == MSG_DAEMON_STOP)
		on_stop(m);
	else
		fatalx("privd: %s is of no use here", m->row->name);
}

/* The permission table was walked by chan_recv(). */
static void
dispatch(struct peer *p, struct msg *m)
{
	if (p == &privd)
		on_privd(m);
	else if (p == &stored)
		on_stored(m);
	else if (m->row->type % 2 != 0)
		fatalx("netd: %s answers nothing", m->row->name);
	else
		box_on_netd(&p->chan, m);
	fd_close(&m->fd);
}

/* It has ended for us alone, by what it thinks of our words. */
static void
on_alone(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	fatalx("stored has closed its channel");
}

static void
peer_gone(struct peer *p)
{
	const struct timeval	tv = { ALONE_S, 0 };

	if (p == &privd)
		exit(0);		/* so are we */
	log_debug("%s is gone", p->name);	/* privd sees to the rest */
	(void)event_del(p->in);		/* these were added by us */
	(void)event_del(p->out);
	chan_close(&p->chan);
	if (p != &stored)
		return;
	stored_gone();
	if (event_base_once(base, -1, EV_TIMEOUT, on_alone, NULL, &tv) == -1)
		fatalx("event_base_once");
}

static void
on_in(evutil_socket_t fd, short what, void *arg)
{
	struct peer	*p = arg;
	struct msg	 m;
	int		 i, r = 0;

	(void)fd;
	(void)what;
	for (i = 0; i < BURST && (r = chan_recv(&p->chan, &m)) == 1; i++)
		dispatch(p, &m);
	if (r != -1)
		return;
	if (errno == ECONNRESET)
		peer_gone(p);
	else if (errno == EBADMSG)
		fatalx("message of %s: %s", p->name, p->chan.why);
	else
		fatal("receive message of %s", p->name);
}

static void
on_out(evutil_socket_t fd, short what, void *arg)
{
	struct peer	*p = arg;

	(void)fd;
	(void)what;
	proxyd_sent(&p->chan, chan_flush(&p->chan) == -1 ? -1 : 0);
}

/* ---- start ---------------------------------------------------------- */

/* netd asks, and stored is asked, before GO. */
static void
peer_init(struct peer *p, const char *name, int fd, unsigned int actor,
    unsigned int state)
{
	chan_init(&p->chan, fd, A_PROXYD, actor, state);
	p->name = name;
	p->in = event_new(base, fd, EV_READ | EV_PERSIST, on_in, p);
	p->out = event_new(base, fd, EV_WRITE, on_out, p);
	if (p->in == NULL || p->out == NULL || event_add(p->in, NULL) == -1)
		fatalx("event_new");
}

/* Signals are privd's to send on, and may reach its whole group. */
static void
signals(void)
{
	const int	ignored[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE };
	size_t		i;

	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);	/* valid numbers */
}

/*
 * As many connections for each box as one of `egress' may have.  How many
 * there may be in all.
 */
static unsigned int
room(const struct conf *conf)
{
	rlim_t		want = proxy_files(conf);
	struct rlimit	rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("getrlimit");
	if (rl.rlim_max < want)
		log_info("descriptor limit of %ju is less than the %ju that "
		    "max-boxes and egress-connections need",
		    (uintmax_t)rl.rlim_max, (uintmax_t)want);
	rl.rlim_cur = rl.rlim_max = want < rl.rlim_max ? want : rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("setrlimit");
	want = conf->max_boxes * PROXY_BOX + PROXY_SPARE;
	return rl.rlim_cur > 2 * want ? (unsigned int)(rl.rlim_cur - want) /
	    PROXY_CONNECTION : (unsigned int)rl.rlim_cur / 4;
}

static void
fence(const struct conf *conf)
{
	int	fd = dup(STDERR_FILENO);

	if (fd == -1)
		fatal("dup");
	/* of the loop, of resolve.c; syslog's */
	proxyd_profile.last_fd = (unsigned int)fd - 1;
	(void)close(fd);
	proxyd_profile.uid = (uid_t)conf->uid_proxyd;
	proxyd_profile.gid = (gid_t)conf->gid_proxyd;
	if (!conf_landlock(conf))
		proxyd_profile.landlock = NULL;
	if (confine_enter(&proxyd_profile) == -1)
		fatalx("enter fence: %s", confine_error());
}

int
main(void)
{
	const struct conf	*conf;
	unsigned int		 all;

	log_init("proxyd", LOG_L_INFO, 0);
	if ((conf = conf_read(CONF_FD)) == NULL)
		fatal("read configuration");
	conf_log(conf, "proxyd");
	(void)close(CONF_FD);		/* read and mapped by nobody else */
	signals();
	all = room(conf);
	/* before the fence: it looks at its environment and its uids */
	if ((base = event_base_new()) == NULL)
		fatalx("event_base_new");
	upstream_init(conf);
	resolve_open(conf);
	fence(conf);

	peer_init(&privd, "privd", FD_PRIVD, A_PRIVD, S_INIT);
	peer_init(&netd, "netd", FD_NETD, A_NETD, S_RUN);
	peer_init(&stored, "stored", FD_STORED, A_STORED, S_RUN);
	box_init(base);
	relay_init(base, (unsigned int)conf->egress_connections, all);
	resolve_init(base);
	ready();
	(void)event_base_dispatch(base);
	fatalx("event loop ended");
}
