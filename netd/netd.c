/*
 * netd.c: network namespaces, made and programmed by an ordinary user.
 *
 * privd starts netd as root of a user namespace U1 that real root owns; on
 * the host it is the user _workbox-netd with no capability at all.  Its
 * power is over what it makes inside U1.
 *
 *	netd.c		start, fence, loop, dispatch
 *	requests.c	what privd and apid ask
 *	nets.c		the networks: their states, what the kernel has
 *	pool.c		prepared networks, questions to the maker
 *	pressure.c	when the host has no memory for the former
 *	uplink.c	ways out of `egress', questions to uplinkd
 *	proxy.c		ways out of `allowlist', questions to proxyd
 *	change.c	a box's network becomes another; diag.c: what ends then
 *	netns.c		the maker: namespaces, sockets in them, sysctls
 *	link.c		lo, addresses, routes; births and deaths
 *	denials.c	what networks deny; nflog.c: packets
 *	ruleset.c	what may pass; see there
 *	sealed.c	what `egress' never reaches; span.c: intervals
 *	hostaddr.c	the host's addresses; follow.c: into the networks
 *	nl.c		netlink
 *
 * netd's own network namespace is an empty one of U1: nothing of the host's
 * network can be reached from here.  Two sockets of the host's are left from
 * before, by which its addresses are read.
 *
 * Must never: execute a program; read of what a box sent more than the headers
 * of a packet that was denied (nflog.c); open a file or make a socket after
 * its fence (the maker does, see there).
 *
 * Descriptors: 3 privd, 4 the configuration, 5 apid, 6 uplinkd, 7 proxyd.
 * Where the last one is no socket there is no proxyd, and `allowlist' is
 * refused.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "netd.h"
#include "netd_calls.h"
#include "xmalloc.h"

/* As privd starts it; everything else is opened below FD_LAST. */
#define FD_PRIVD	3
#define FD_APID		5
#define FD_UPLINKD	6
#define FD_PROXYD	7
#define FD_LAST		15

#define FD_SPARE	64	/* descriptors that belong to no box nor to the
				 * pool of `egress' */

static const struct confine_limit	netd_limits[] = {
	{ RLIMIT_CORE, 0 },		/* rulesets are no one's business */
	{ RLIMIT_NPROC, 0 },		/* the maker is there already */
};

static struct confine	netd_profile = {
	.root = confine_root_empty,	/* pivot_root: a chroot would bar the
					 * maker from user namespaces */
	.uid = 0,			/* of U1: an ordinary user outside */
	.caps = 1 << CAP_NET_ADMIN,	/* rules and links of the boxes */
	.landlock = confine_landlock,	/* it opens no file ever again */
	.limits = netd_limits,
	.nlimits = sizeof(netd_limits) / sizeof(netd_limits[0]),
	.filter = netd_calls,
	.nfilter = sizeof(netd_calls) / sizeof(netd_calls[0]),
	.last_fd = FD_LAST,
};

struct peer {
	struct chan	 chan;
	struct event	*in, *out;	/* owned */
};

static struct peer		 privd, apid, uplinkd, proxyd;
static struct event_base	*base;

/* ---- dispatch ----------------------------------------------------------- */

static void
on_stop(struct chan *c, const struct msg *m)
{
	pool_stop();
	netd_sent(c, chan_ok(c, m->rid));
	log_debug("stop");
	exit(0);		/* an answer of 10 bytes is never queued */
}

static void
on_go(const struct msg *m)
{
	log_debug("generation %ju", (uintmax_t)m->body.daemon_go.generation);
	privd.chan.state = S_RUN;
	apid.chan.state = S_RUN;
	if (event_add(apid.in, NULL) == -1 ||
	    event_add(uplinkd.in, NULL) == -1 ||
	    (proxyd.in != NULL && event_add(proxyd.in, NULL) == -1))
		fatalx("event_add");
	pool_go();
}

/* The permission table was walked by chan_recv(). */
static void
dispatch(struct chan *c, struct msg *m)
{
	switch (m->row->type) {
	case MSG_DAEMON_GO:
		on_go(m);
		return;
	case MSG_DAEMON_RELOAD:
		if (conf_reload(m->fd, "netd") == -1)
			fatal("read the configuration");
		return;
	case MSG_DAEMON_STOP:
		on_stop(c, m);
		return;
	case MSG_NET_MAKE:
		netd_on_net_make(c, m);
		return;
	case MSG_NET_OPEN:
		netd_on_net_open(c, m);
		return;
	case MSG_NET_CUT:
		netd_on_net_cut(c, m);
		return;
	case MSG_NET_FREE:
		netd_on_net_free(c, m);
		return;
	case MSG_NET_ADOPT:
		netd_on_net_adopt(c, m);
		return;
	case MSG_NET_CHANGE:
		netd_on_net_change(c, m);
		return;
	case MSG_NET_NAMES:
		netd_on_net_names(c, m);
		return;
	case MSG_NET_STATUS:
		netd_on_net_status(c, m);
		return;
	}
	/* an answer to what was never asked, or an error to READY */
	fatalx("%s is of no use here", m->row->name);
}

/* privd sees to the rest. */
static void
hung_up(struct peer *p)
{
	log_info("%s is gone", p == &apid ? "apid" : p == &proxyd ? "proxyd" :
	    "uplinkd");
	(void)event_del(p->in);
	(void)event_del(p->out);
	chan_close(&p->chan);
	if (p == &proxyd)
		proxy_gone();
}

static void
on_in(evutil_socket_t fd, short what, void *arg)
{
	struct peer	*p = arg;
	struct msg	 m;
	int		 r;

	(void)fd;
	(void)what;
	while ((r = chan_recv(&p->chan, &m)) == 1) {
		if (p == &uplinkd)
			uplink_on(&m);
		else if (p == &proxyd)
			proxy_on(&m);
		else
			dispatch(&p->chan, &m);
		fd_close(&m.fd);
	}
	if (r == 0)
		return;
	if (errno == ECONNRESET && p == &privd)
		exit(0);		/* privd is gone: so are we */
	if (errno == ECONNRESET) {
		hung_up(p);
		return;
	}
	if (errno == EBADMSG)
		fatalx("message: %s", p->chan.why);
	fatal("receive message");
}

static void
on_out(evutil_socket_t fd, short what, void *arg)
{
	struct peer	*p = arg;

	(void)fd;
	(void)what;
	netd_sent(&p->chan, chan_flush(&p->chan) == -1 ? -1 : 0);
}

void
netd_sent(struct chan *c, int result)
{
	struct peer	*p = c == &privd.chan ? &privd :
			    c == &apid.chan ? &apid :
			    c == &proxyd.chan ? &proxyd : &uplinkd;

	if (c->fd == -1)
		return;		/* it has gone */
	if (result == -1 && errno == EPIPE)
		return;		/* its end is read, not written */
	if (result == -1)
		fatal("send message: %s", c->why);
	if (chan_pending(c) && event_add(p->out, NULL) == -1)
		fatalx("event_add");
}

/* What apid has not taken yet delays its answers, so this is little. */
#define TOLD_MAX	65536		/* bytes queued */

int
netd_tell(unsigned int type, const void *body)
{
	if (apid.chan.fd == -1 || apid.chan.state != S_RUN ||
	    apid.chan.queued > TOLD_MAX)
		return -1;
	netd_sent(&apid.chan, chan_send(&apid.chan, type, 0, body, -1));
	return 0;
}

/* ---- start ----------------------------------------------------------- */

static void
peer_init(struct peer *p, int fd, unsigned int actor)
{
	chan_init(&p->chan, fd, A_NETD, actor, S_INIT);
	p->in = event_new(base, fd, EV_READ | EV_PERSIST, on_in, p);
	p->out = event_new(base, fd, EV_WRITE, on_out, p);
	if (p->in == NULL || p->out == NULL)
		fatalx("event_new");
}

/*
 * Boxes that the descriptor table has room for, and of the pool what is left
 * then; it is grown if it may.
 */
static unsigned int
room(const struct conf *conf, unsigned int *ret_pool)
{
	struct rlimit	rl;
	rlim_t		boxes, want = (conf->max_boxes + conf->egress_pool) *
			    NET_FDS + FD_SPARE;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("getrlimit");
	rl.rlim_cur = want < rl.rlim_max ? want : rl.rlim_max;
	rl.rlim_max = rl.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("setrlimit");
	if (rl.rlim_cur < FD_SPARE + NET_FDS)
		fatalx("descriptor limit of %ju is too low",
		    (uintmax_t)rl.rlim_cur);
	want = (rl.rlim_cur - FD_SPARE) / NET_FDS;
	boxes = want < conf->max_boxes ? want : conf->max_boxes;
	if (boxes < conf->max_boxes)
		log_warnx("descriptor limit of %ju bounds the boxes to %ju",
		    (uintmax_t)rl.rlim_cur, (uintmax_t)boxes);
	*ret_pool = (unsigned int)(want - boxes);
	return (unsigned int)boxes;
}

/* A pool that has none prepared has no use for it. */
static int
pressure_start(unsigned int egress)
{
	int	ep, fd = egress != 0 ? pressure_open() : -1;

	if (egress == 0)
		return -1;
	if (fd == -1) {
		log_info("memory pressure is not watched, prepared networks "
		    "stay: %s", strerror(errno));
		return -1;
	}
	if ((ep = pressure_watch(fd)) == -1)
		fatal("watch memory pressure");
	return ep;
}

static int
is_socket(int fd)
{
	struct stat	st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void
ready(void)
{
	struct msg_daemon_ready	r = { .wire_end = 0 };

	(void)str_copy(r.version, PACKAGE_VERSION, sizeof(r.version));
	if (chan_ask(&privd.chan, MSG_DAEMON_READY, &r, -1, NULL) == -1)
		fatal("send READY");
}

int
main(void)
{
	const struct conf	*conf;
	struct nets_fds		 fds;
	const int		 ignored[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE };
	unsigned int		 i, n, pool;
	int			 absent, landlock, named, pressure;

	/* privd says when to stop; these may reach its whole group */
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);	/* valid numbers */
	named = is_socket(FD_PROXYD);	/* before it can be another */
	if ((conf = conf_read(CONF_FD)) == NULL)
		fatal("read configuration");
	conf_log(conf, "netd");
	absent = strcmp(conf->netfilter, "none") == 0;
	if (absent)
		log_warnx("no netfilter, as the configuration says");
	(void)close(CONF_FD);		/* read and mapped by nobody else */
	landlock = conf_landlock(conf);
	if (sealed_init(&conf->deny, &conf->except) == -1)
		fatal("deny and except of the configuration");
	fds.news = fds.ask = -1;
	/* here, for netns_start() leaves the host's network */
	if (!absent && hostaddr_open(&fds.news, &fds.ask) == -1)
		fatal("open sockets for the host's addresses");
	fds.maker = netns_start(conf, landlock);
	n = room(conf, &pool);
	pressure = pressure_start(pool);
	if ((fds.watch = link_watch()) == -1)
		fatal("watch network namespaces");
	if ((fds.home = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
	    NETLINK_ROUTE)) == -1)
		fatal("netlink");
	if ((base = event_base_new()) == NULL)
		fatalx("event_base_new");
	if (!landlock)
		netd_profile.landlock = NULL;
	if (confine_enter(&netd_profile) == -1)
		fatalx("enter fence: %s", confine_error());

	if (ruleset_init(absent) == -1)
		fatal("build rulesets");
	peer_init(&privd, FD_PRIVD, A_PRIVD);
	peer_init(&apid, FD_APID, A_APID);
	peer_init(&uplinkd, FD_UPLINKD, A_UPLINKD);
	uplinkd.chan.state = S_RUN;	/* it has no other */
	if (named) {
		peer_init(&proxyd, FD_PROXYD, A_PROXYD);
		proxyd.chan.state = S_RUN;
	}
	nets_init(base, &fds, absent, n);
	uplink_init(base, &uplinkd.chan);
	proxy_init(base, named ? &proxyd.chan : NULL);
	pool_init(base, fds.maker, pool);
	pressure_init(base, pressure, pool_drain);
	if (event_add(privd.in, NULL) == -1)
		fatalx("event_add");
	ready();
	(void)event_base_dispatch(base);
	fatalx("event loop ended");
}
