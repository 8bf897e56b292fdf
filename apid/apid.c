/*
 * apid.c: the process that serves the API: start, fence, loop, end.
 *
 * Start: configuration, token and certificate are read, the fence is entered,
 * privd is told; it sends the listening sockets and then the word to go.  Rows
 * and boxes are reconciled (reconcile.c) before anybody is served.  A channel
 * to privd that closes is the end at once; one to stored or netd too, for
 * privd then starts the set afresh.
 *
 * Must never: open a file or a connection, or run without its fence.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid.h"
#include "apid_calls.h"
#include "confine.h"
#include "log.h"
#include "schema.h"
#include "xmalloc.h"

#define PRIVD_FD	3
#define STORED_FD	5
#define NETD_FD		6
#define TOKEN_FD	7
#define LISTENERS	32
#define STOP_S		5		/* removals that are under way */

struct apid	env;

static struct {
	int		fd[LISTENERS];
	unsigned int	kind[LISTENERS];
	unsigned int	n;
} listeners;

static const struct confine_limit limits[] = {
	{ RLIMIT_NPROC, 0 },		/* no process, no thread */
	{ RLIMIT_CORE, 0 },		/* the digest of the key is in here */
	{ RLIMIT_NOFILE, 8192 },	/* connections and boxes */
};

/* ---- the end ------------------------------------------------------ */

void
apid_lost(const char *who, const char *why)
{
	fatalx("%s: %s", who, why);
}

static void
stop_late(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	log_info("stopped; %u removals go on at the next start",
	    remove_under_way());
	exit(0);
}

void
apid_removed(void)
{
	if (!env.quiet)
		return;
	log_debug("stopped");
	exit(0);
}

/* Nobody is served any more; what was promised away goes first. */
static void
stopped(void *arg)
{
	static struct event	late;
	struct timeval		tv = { STOP_S, 0 };

	(void)arg;
	env.quiet = 1;
	if (remove_under_way() == 0)
		apid_removed();
	(void)evtimer_assign(&late, env.base, stop_late, NULL);
	if (event_add(&late, &tv) == -1)
		fatalx("add timer: out of memory");
}

static void
apid_stop(void)
{
	if (env.stopping)
		return;
	env.stopping = 1;
	log_debug("stopping");
	http_server_stop(env.http, stopped, NULL);
}

/* ---- peers -------------------------------------------------------- */

static void
privd_listener(struct msg *m)
{
	if (listeners.n == LISTENERS || env.serving) {
		fd_close(&m->fd);
		log_warnx("a listener too many");
		return;
	}
	listeners.kind[listeners.n] =
	    (unsigned int)m->body.daemon_listener.kind;
	listeners.fd[listeners.n++] = steal_fd(&m->fd);
}

/* The ceilings of limits, for who asks for what is none at all. */
static void
apid_ceilings(void)
{
	const struct conf	*c = env.conf;

	schema_ceiling("LimitsSpec", "memoryBytes",
	    json_integer((json_int_t)c->max_memory));
	schema_ceiling("LimitsSpec", "cpus",
	    json_real((double)c->max_cpu_milli / 1000));
	schema_ceiling("LimitsSpec", "pids",
	    json_integer((json_int_t)c->max_pids));
}

/* Who asks from now on is held to what the file says now. */
static void
apid_reload(int fd_arg)
{
	auto_close int	fd = fd_arg;

	if (conf_reload(fd, "apid") == -1)
		fatal("read the configuration");
	http_server_hosts(env.http, &env.conf->allowed_host,
	    &env.conf->trusted_proxy);
	apid_ceilings();
}

static void
privd_msg(struct peer *p, struct msg *m)
{
	struct box	*b;

	switch (m->row->type) {
	case MSG_DAEMON_LISTENER:
		privd_listener(m);
		break;
	case MSG_DAEMON_RELOAD:
		apid_reload(steal_fd(&m->fd));
		break;
	case MSG_DAEMON_KEYS:
		if (auth_load(m->fd) == -1)
			fatal("read the token");
		tls_again(m->fd);
		fd_close(&m->fd);
		break;
	case MSG_DAEMON_STOP:
		apid_stop();
		break;
	case MSG_BOX_ENDED:
		if ((b = box_by_id(m->body.box_ended.id)) != NULL)
			box_ended(b);
		break;
	default:
		fd_close(&m->fd);
		peer_fault(p, "%s: not expected", m->row->name);
	}
}

static void
privd_fault(struct peer *p, enum peer_end end, const char *why)
{
	(void)p;
	if (end == PEER_GONE)
		exit(0);		/* the end of privd is ours */
	fatalx("privd: %s", why);
}

static void
daemon_msg(struct peer *p, struct msg *m)
{
	fd_close(&m->fd);
	peer_fault(p, "%s: not expected", m->row->name);
}

static void
netd_msg(struct peer *p, struct msg *m)
{
	fd_close(&m->fd);
	if (m->row->type == MSG_NET_DENIED)
		denials_told(p, &m->body.net_denied);
	else
		peer_fault(p, "%s: not expected", m->row->name);
}

static void
daemon_fault(struct peer *p, enum peer_end end, const char *why)
{
	(void)end;
	apid_lost(peer_arg(p), why);
}

void
apid_serve(void)
{
	const struct box	*b;
	unsigned int		 i, n = 0;

	if (env.serving || env.stopping)
		return;
	env.serving = 1;
	denials_start();
	for (i = 0; i < listeners.n; i++)
		if (http_server_listen(env.http, listeners.fd[i],
		    listeners.kind[i] == 1 ? HTTP_UNIX : HTTP_TCP) == -1)
			fatal("listener %u", i);
	for (b = box_next(NULL, ""); b != NULL; b = box_next(NULL, b->id))
		n += b->removing == REMOVE_NOT;
	log_info("serving on %u sockets, %u boxes", listeners.n, n);
}

static void
privd_go(void *arg, const struct msg *m)
{
	(void)arg;
	if (m->row->type == MSG_ERROR)
		fatalx("privd: %s", m->body.error.detail);
	env.generation = m->body.daemon_go.generation;
	peer_state(env.privd, S_RUN);
	reconcile_start();
}

void
event_append(unsigned int type, const void *body, const char *actor,
    const char *sandbox, const char *session, const char *request,
    const char *outcome, const char *reason,
    void (*done)(void *, const struct msg *), void *arg)
{
	struct msg_event_append	 m = { .type = type };
	static uint8_t		 buf[WIRE_MAX];
	ssize_t			 n;

	if ((n = wire_encode(event_find(type)->desc, body, buf,
	    sizeof(buf))) == -1)
		fatalx("encode event: %s", wire_error());
	m.durable = done != NULL;
	(void)str_copy(m.tenant, APID_TENANT, sizeof(m.tenant));
	(void)str_copy(m.actor, actor, sizeof(m.actor));
	(void)str_copy(m.sandbox, sandbox, sizeof(m.sandbox));
	(void)str_copy(m.session, session, sizeof(m.session));
	(void)str_copy(m.request, request, sizeof(m.request));
	(void)str_copy(m.outcome, outcome, sizeof(m.outcome));
	(void)str_copy(m.reason, reason, sizeof(m.reason));
	m.data.data = buf;
	m.data.len = (size_t)n;
	peer_ask(env.stored, MSG_EVENT_APPEND, &m, T_STORE, done, arg);
}

/* ---- the start ---------------------------------------------------- */

/* The fence; a reason on each line. */
static void
apid_confine(void)
{
	int		fd = dup(STDERR_FILENO);
	struct confine	profile = {
		.root = confine_root_empty,	/* it needs no file */
		.uid = (uid_t)env.conf->uid_apid,
		.gid = (gid_t)env.conf->gid_apid,
		.caps = 0,			/* nothing a client gains */
		.landlock = conf_landlock(env.conf) ? confine_landlock : NULL,
		.limits = limits,
		.nlimits = sizeof(limits) / sizeof(limits[0]),
		.filter = apid_calls,
		.nfilter = sizeof(apid_calls) / sizeof(apid_calls[0]),
	};

	if (fd == -1)
		fatal("dup");
	profile.last_fd = (unsigned int)fd - 1;	/* epoll's, syslog's */
	(void)close(fd);
	if (confine_enter(&profile) == -1)
		fatalx("confine: %s", confine_error());
}

static void
apid_http(void)
{
	struct http_conf	c = {
		.base = env.base,
		.allowed_host = env.conf->allowed_host,
		.trusted_proxy = env.conf->trusted_proxy,
		.authorize = auth_request,
	};

	env.http = http_server_new(&c);
	tls_serve();
}

static char	stored_name[] = "stored", netd_name[] = "netd";

int
main(void)
{
	struct msg_daemon_ready	 ready = { .version = PACKAGE_VERSION };

	log_init("apid", LOG_L_INFO, 0);
	/* its answers have no check for NULL; http_check.c on what may fail */
	json_set_alloc_funcs(xmalloc, free);
	if ((env.conf = conf_read(CONF_FD)) == NULL)
		fatal("read the configuration");
	conf_log(env.conf, "apid");
	if (auth_load(TOKEN_FD) == -1)
		fatal("read the token");
	tls_load(TOKEN_FD);
	(void)close(TOKEN_FD);
	(void)close(CONF_FD);
	(void)signal(SIGPIPE, SIG_IGN);	/* a valid signal */
	schema_init();
	apid_ceilings();
	/* before the fence: it looks at its environment and its uids */
	if ((env.base = event_base_new()) == NULL)
		fatalx("make an event base: failed");
	apid_confine();
	box_init();
	apid_http();
	env.privd = peer_new("privd", PRIVD_FD, A_PRIVD, S_INIT, privd_msg,
	    privd_fault, NULL);
	env.stored = peer_new("stored", STORED_FD, A_STORED, S_RUN,
	    daemon_msg, daemon_fault, stored_name);
	env.netd = peer_new("netd", NETD_FD, A_NETD, S_RUN, netd_msg,
	    daemon_fault, netd_name);
	peer_ask(env.privd, MSG_DAEMON_READY, &ready, 0, privd_go, NULL);
	if (event_base_dispatch(env.base) == -1)
		fatalx("event loop failed");
	fatalx("event loop ended");
}
