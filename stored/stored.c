/*
 * stored.c: the start, the fence and the loop of the daemon that keeps the
 * record.
 *
 * Descriptors from privd: 2 log, 3 channel to privd, 4 configuration, 5 channel
 * to apid, 6 to proxyd.  The database's directory becomes the root; LMDB is
 * opened behind the fence, as our own uid, so that nothing of what a database
 * may hold is ever read with more rights than those.
 *
 * apid and proxyd are not listened to before privd has said go, nor while much
 * of what was asked is still under way.  Nonsense from one of them ends its
 * channel, which makes it exit and privd start the daemons afresh; nothing that
 * a peer sends ends this process otherwise.  It ends when privd goes away, and,
 * after DAEMON_STOP, when apid has closed: first is committed what was taken.
 *
 * Must never: open a network socket, wait for the disk in this thread, answer
 * what is to last before it does.
 */
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "stored.h"
#include "stored_calls.h"
#include "xmalloc.h"

#define PRIVD_FD	3
#define APID_FD		5
#define PROXYD_FD	6
#define LOAD_HIGH	(8U << 20)	/* bytes under way: both wait */
#define LOAD_MAX	(16U << 20)	/* privd is told BUSY */
#define TURN_MSGS	64		/* messages per turn of the loop */
#define PURGE_SECONDS	60

/* ---- the fence --------------------------------------------------- */

static const struct confine_limit stored_limits[] = {
	{ RLIMIT_CORE, 0 },		/* memory holds env of boxes */
	{ RLIMIT_NOFILE, 64 },		/* the channels, LMDB's, the loop's */
};

static const struct confine stored_confine = {
	.root = confine_root_dir,	/* the database, nothing else */
	.caps = 0,			/* files are its own */
	.limits = stored_limits,
	.nlimits = sizeof(stored_limits) / sizeof(stored_limits[0]),
	.filter = stored_calls,
	.nfilter = sizeof(stored_calls) / sizeof(stored_calls[0]),
	.last_fd = PROXYD_FD,
};

/* ---- state ------------------------------------------------------- */

/* One that asks, and is told when what it asked has been done. */
struct client {
	const char		*name;
	struct chan		 chan;
	struct event		*in, *out;	/* owned; NULL: it is gone */
};

static struct {
	struct event_base	*base;		/* owned, as all below */
	struct db		 db;
	struct committer	*committer;
	struct replay		*replay;
	struct chan		 privd;
	struct event		*privd_in, *privd_out;
	struct client		 apid, proxyd;
	struct event		*wake_in, *again, *purge;
	int			 wake;		/* eventfd */
	int			 serving;	/* DAEMON_GO came */
	int			 stopping;	/* DAEMON_STOP came */
	int			 ending;	/* with this status */
	int			 status;
} st = { .wake = -1, .apid = { "apid" }, .proxyd = { "proxyd" } };

static void
finish(int status)
{
	if (!st.ending)
		st.status = status;
	st.ending = 1;
	(void)event_base_loopbreak(st.base);	/* a base of ours: fine */
}

static void
client_lost(struct client *c)
{
	event_free(c->in);
	event_free(c->out);
	c->in = c->out = NULL;
	chan_close(&c->chan);
	if (c != &st.apid)
		return;
	replay_drop(st.replay);
	if (st.stopping)
		finish(0);
}

static void
client_failed(struct client *c, const char *what)
{
	if (c->in == NULL)
		return;
	if (errno == ECONNRESET || errno == EPIPE)
		log_debug("%s is gone", c->name);
	else if (errno == EBADMSG || errno == EINVAL)
		log_errorx("%s %s: %s: channel closed", what, c->name,
		    c->chan.why);
	else
		log_warn("%s %s", what, c->name);
	client_lost(c);
}

static void
client_settle(struct client *c)
{
	int	busy;

	if (c->in == NULL)
		return;
	if (chan_pending(&c->chan))
		(void)event_add(c->out, NULL);
	busy = !st.serving || c->chan.queued >= CHAN_HIGH ||
	    committer_load(st.committer) >= LOAD_HIGH;
	if (busy)
		(void)event_del(c->in);
	else
		(void)event_add(c->in, NULL);
}

/*
 * At the end of each callback: waits for room where there is more to send,
 * and listens to clients exactly while they may ask.
 */
static void
settle(void)
{
	if (chan_pending(&st.privd))
		(void)event_add(st.privd_out, NULL);
	client_settle(&st.apid);
	client_settle(&st.proxyd);
}

/* ---- what is asked ----------------------------------------------- */

static struct job *
job_new(enum asker asker, const struct msg *m, const struct wire_bin *data,
    uint64_t durable)
{
	struct job	*j = xmalloc(sizeof(*j) + data->len);

	memset(j, 0, sizeof(*j));
	j->asker = asker;
	j->type = m->row->type;
	j->rid = m->rid;
	j->durable = durable != 0;
	j->len = data->len;
	if (data->len > 0)
		memcpy(j->data, data->data, data->len);
	return j;
}

/* Its entries are the job's data, as they are kept. */
static struct job *
job_list(enum asker asker, const struct msg *m)
{
	const struct wire_list	*l = &m->body.allow_put.entries;
	static uint8_t		 text[WIRE_MAX + WIRE_ITEMS];
	struct wire_bin		 data = { text, 0 };
	struct job		*j;
	size_t			 i;

	for (i = 0; i < l->n; i++) {	/* bounded by its packet */
		memcpy(text + data.len, l->v[i].data, l->v[i].len);
		data.len += l->v[i].len;
		text[data.len++] = '\n';
	}
	j = job_new(asker, m, &data, 0);
	j->body.allow_put = m->body.allow_put;
	j->body.allow_put.entries = (struct wire_list){ NULL, 0 };
	return j;
}

/* What a client's key stood for, whose bytes the body borrows. */
static void
job_key(struct job *j, struct wire_bin *asked)
{
	if (asked->len == sizeof(j->asked))
		memcpy(j->asked, asked->data, sizeof(j->asked));
	asked->data = j->asked;
}

/* Queues what writes; 0: m is no such message. */
static int
on_job(enum asker asker, const struct msg *m)
{
	const struct wire_bin	 none = { NULL, 0 };
	struct job		*j;

	switch (m->row->type) {
	case MSG_EVENT_APPEND:
		j = job_new(asker, m, &m->body.event_append.data,
		    m->body.event_append.durable);
		j->body.event_append = m->body.event_append;
		break;
	case MSG_SANDBOX_CREATE:
		j = job_new(asker, m, &m->body.sandbox_create.row, 1);
		j->body.sandbox_create = m->body.sandbox_create;
		job_key(j, &j->body.sandbox_create.asked);
		break;
	case MSG_SANDBOX_MOVE:
		j = job_new(asker, m, &m->body.sandbox_move.proof,
		    m->body.sandbox_move.durable);
		j->body.sandbox_move = m->body.sandbox_move;
		break;
	case MSG_SANDBOX_NETWORK:
		j = job_new(asker, m, &none, 1);
		j->body.sandbox_network = m->body.sandbox_network;
		break;
	case MSG_SESSION_PUT:
		j = job_new(asker, m, &m->body.session_put.row,
		    m->body.session_put.durable);
		j->body.session_put = m->body.session_put;
		job_key(j, &j->body.session_put.asked);
		break;
	case MSG_ALLOW_PUT:
		j = job_list(asker, m);
		break;
	case MSG_NAMES_TAKE:
		j = job_new(asker, m, &none, 1);
		j->body.names_take = m->body.names_take;
		break;
	default:
		return 0;
	}
	committer_put(st.committer, j);
	return 1;
}

static int
on_store_info(struct chan *c, const struct msg *m)
{
	struct msg_store_info_is	is;

	committer_info(st.committer, &is);
	return chan_send(c, MSG_STORE_INFO_IS, m->rid, &is, -1);
}

static int
no_question(struct chan *c)
{
	/* an answer, and nothing was asked */
	(void)str_copy(c->why, "answer without a question", sizeof(c->why));
	errno = EBADMSG;
	return -1;
}

/* 0, or -1 with errno: the channel has failed.  So is the next. */
static int
stored_on_apid(const struct msg *m)
{
	if (on_job(ASK_APID, m))
		return 0;
	switch (m->row->type) {
	case MSG_EVENT_READ:
		return replay_on_read(st.replay, m);
	case MSG_EVENT_CANCEL:
		return replay_on_cancel(st.replay, m);
	case MSG_SANDBOX_LIST:
		return replay_on_sandbox_list(st.replay, m);
	case MSG_SANDBOX_GET:
		return replay_on_sandbox_get(st.replay, m);
	case MSG_KEY_GET:
		return replay_on_key_get(st.replay, m);
	case MSG_SESSION_ROWS:
		return replay_on_session_rows(st.replay, m);
	case MSG_ALLOW_READ:
		return replay_on_allow_read(st.replay, &st.apid.chan, m);
	case MSG_STORE_INFO:
		return on_store_info(&st.apid.chan, m);
	default:
		return no_question(&st.apid.chan);
	}
}

static int
stored_on_proxyd(const struct msg *m)
{
	if (on_job(ASK_PROXYD, m))
		return 0;
	if (m->row->type == MSG_ALLOW_READ)
		return replay_on_allow_read(st.replay, &st.proxyd.chan, m);
	return no_question(&st.proxyd.chan);
}

static void
stored_on_go(void)
{
	const struct timeval	tv = { .tv_sec = PURGE_SECONDS };

	st.serving = 1;
	st.privd.state = st.apid.chan.state = st.proxyd.chan.state = S_RUN;
	(void)event_add(st.purge, &tv);
	event_active(st.purge, EV_TIMEOUT, 0);	/* the first at once */
}

static int
stored_on_stop(const struct msg *m)
{
	int	r = chan_ok(&st.privd, m->rid);

	st.stopping = 1;
	if (st.apid.in == NULL || !st.serving)
		finish(0);
	return r;
}

static int
stored_on_privd(const struct msg *m)
{
	switch (m->row->type) {
	case MSG_DAEMON_GO:
		stored_on_go();
		return 0;
	case MSG_DAEMON_RELOAD:
		if (conf_reload(m->fd, "stored") == -1)
			fatal("read the configuration");
		return 0;
	case MSG_DAEMON_STOP:
		return stored_on_stop(m);
	case MSG_STORE_INFO:
		return on_store_info(&st.privd, m);
	case MSG_EVENT_APPEND:
		if (committer_load(st.committer) >= LOAD_MAX)
			return chan_error(&st.privd, m->rid, CODE_BUSY,
			    "too much under way");
		(void)on_job(ASK_PRIVD, m);	/* it is one */
		return 0;
	default:
		return no_question(&st.privd);
	}
}

/* ---- callbacks of the loop --------------------------------------- */

static void
privd_failed(const char *what)
{
	if (errno == ECONNRESET || errno == EPIPE) {
		finish(0);
		return;
	}
	if (errno == EBADMSG || errno == EINVAL)
		log_errorx("%s privd: %s", what, st.privd.why);
	else
		log_warn("%s privd", what);
	finish(1);
}

static void
privd_read(evutil_socket_t fd, short what, void *arg)
{
	struct msg	m;
	int		i, r = 0;

	(void)fd, (void)what, (void)arg;	/* the loop's shape */
	for (i = 0; i < TURN_MSGS && (r = chan_recv(&st.privd, &m)) == 1;
	    i++) {
		r = stored_on_privd(&m);
		fd_close(&m.fd);
		if (r == -1)
			break;
	}
	if (r == -1)
		privd_failed("read");
	else
		settle();
}

static void
privd_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (chan_flush(&st.privd) == -1)
		privd_failed("write");
	else
		settle();
}

static void
client_read(evutil_socket_t fd, short what, void *arg)
{
	struct client	*c = arg;
	struct msg	 m;
	int		 i, r = 0;

	(void)fd, (void)what;
	for (i = 0; i < TURN_MSGS && (r = chan_recv(&c->chan, &m)) == 1; i++)
		if ((r = c == &st.apid ? stored_on_apid(&m) :
		    stored_on_proxyd(&m)) == -1)
			break;
	if (r == -1)
		client_failed(c, "read");
	settle();
}

static void
client_write(evutil_socket_t fd, short what, void *arg)
{
	struct client	*c = arg;

	(void)fd, (void)what;
	if (chan_flush(&c->chan) == -1 || (c == &st.apid &&
	    c->chan.queued < CHAN_HIGH && replay_run(st.replay, 0) == -1))
		client_failed(c, "write");
	settle();
}

static int
send_answer(struct chan *c, const struct answer *a)
{
	struct msg_event_appended	m = { .seq = a->seq };
	struct msg_names_taken		t = { .first = a->first,
					    .count = a->count };

	if (a->code == CODE_BAD_MESSAGE)
		log_warnx("%s from %s: %s", proto_name(a->type),
		    a->asker == ASK_APID ? "apid" : a->asker == ASK_PROXYD ?
		    "proxyd" : "privd", a->detail);
	if (a->code != CODE_NONE)
		return chan_error(c, a->rid, a->code, "%s", a->detail);
	if (a->type == MSG_EVENT_APPEND)
		return chan_send(c, MSG_EVENT_APPENDED, a->rid, &m, -1);
	if (a->type == MSG_NAMES_TAKE)
		return chan_send(c, MSG_NAMES_TAKEN, a->rid, &t, -1);
	return chan_ok(c, a->rid);
}

/* The committer has answers, or records have been committed. */
static void
committer_news(evutil_socket_t fd, short what, void *arg)
{
	struct answer_queue	 q;
	struct answer		*a;
	struct client		*c;
	uint64_t		 seq;

	(void)what, (void)arg;
	/* EAGAIN: read already */
	(void)!read(fd, &seq, sizeof(seq));
	committer_take(st.committer, &q, &seq);
	while ((a = STAILQ_FIRST(&q)) != NULL) {
		STAILQ_REMOVE_HEAD(&q, next);
		c = a->asker == ASK_PROXYD ? &st.proxyd : &st.apid;
		if (a->asker == ASK_PRIVD) {
			if (send_answer(&st.privd, a) == -1)
				privd_failed("write");
		} else if (c->in != NULL && send_answer(&c->chan, a) == -1)
			client_failed(c, "write");
		free(a);
	}
	if (st.apid.in != NULL && replay_run(st.replay, seq) == -1)
		client_failed(&st.apid, "write");
	settle();
}

static void
read_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (st.apid.in != NULL && replay_run(st.replay, 0) == -1)
		client_failed(&st.apid, "write");
	settle();
}

/* replay.c wants another round: after what else is ready. */
static void
want_again(void)
{
	const struct timeval	now = { 0, 0 };

	(void)event_add(st.again, &now);
}

static void
purge_due(evutil_socket_t fd, short what, void *arg)
{
	struct job	*j = xcalloc(1, sizeof(*j));

	(void)fd, (void)what, (void)arg;
	j->asker = ASK_SELF;
	j->type = JOB_PURGE;
	committer_put(st.committer, j);
}

/* ---- the start --------------------------------------------------- */

/* The directory exists, is a directory, and is its owner's alone. */
static void
dir_ready(const char *dir, uid_t uid, gid_t gid)
{
	auto_close int	fd = -1;
	struct stat	sb;

	if (mkdir(dir, 0700) == -1 && errno != EEXIST)
		fatal("mkdir %s", dir);
	fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &sb) == -1)
		fatal("open %s", dir);
	/* root's: made just now, here or before a start that was cut off */
	if (sb.st_uid == 0 && (fchownat(fd, "", uid, gid,
	    AT_EMPTY_PATH) == -1 || fstat(fd, &sb) == -1))
		fatal("chown %s", dir);
	if (sb.st_uid != uid || (sb.st_mode & 077) != 0)
		fatalx("%s: must belong to uid %u with mode 0700", dir,
		    (unsigned int)uid);
}

static void
signals_off(void)
{
	const int	ignored[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE };
	size_t		i;

	/* privd says when to stop, by message or by going away */
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);	/* valid numbers */
}

static void
fence(const struct conf *conf)
{
	auto_free char	*dir = xasprintf("%s/db", conf->state_dir);
	struct confine	 c = stored_confine;

	dir_ready(dir, (uid_t)conf->uid_stored, (gid_t)conf->gid_stored);
	c.dir = dir;
	c.uid = (uid_t)conf->uid_stored;
	c.gid = (gid_t)conf->gid_stored;
	if (confine_enter(&c) == -1)
		fatalx("fence: %s", confine_error());
}

/* Held until the process ends: one stored per database. */
static void
take_lock(void)
{
	int	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		fatal("open database directory");
	if (flock(fd, LOCK_EX | LOCK_NB) == -1)
		fatal("lock database directory");
}

static struct event *
event_made(int fd, short what, event_callback_fn cb, void *arg)
{
	struct event	*ev = event_new(st.base, fd, what, cb, arg);

	if (ev == NULL)
		fatalx("event_new: out of memory");
	return ev;
}

static void
client_ready(struct client *c, int fd, unsigned int actor)
{
	chan_init(&c->chan, fd, A_STORED, actor, S_INIT);
	c->in = event_made(fd, EV_READ | EV_PERSIST, client_read, c);
	c->out = event_made(fd, EV_WRITE, client_write, c);
}

static void
loop_ready(void)
{
	if ((st.base = event_base_new()) == NULL)
		fatalx("event_base_new failed");
	st.privd_in = event_made(PRIVD_FD, EV_READ | EV_PERSIST, privd_read,
	    NULL);
	st.privd_out = event_made(PRIVD_FD, EV_WRITE, privd_write, NULL);
	client_ready(&st.apid, APID_FD, A_APID);
	client_ready(&st.proxyd, PROXYD_FD, A_PROXYD);
	st.wake_in = event_made(st.wake, EV_READ | EV_PERSIST,
	    committer_news, NULL);
	st.again = event_made(-1, EV_TIMEOUT, read_again, NULL);
	st.purge = event_made(-1, EV_TIMEOUT | EV_PERSIST, purge_due, NULL);
	if (event_add(st.privd_in, NULL) == -1 ||
	    event_add(st.wake_in, NULL) == -1)
		fatalx("event_add failed");
}

static void
say_ready(void)
{
	struct msg_daemon_ready	m = { 0 };

	(void)str_copy(m.version, PACKAGE_VERSION, sizeof(m.version));
	if (chan_ask(&st.privd, MSG_DAEMON_READY, &m, -1, NULL) == -1)
		privd_failed("write");
}

int
main(void)
{
	const struct conf	*conf;
	struct head		 head;

	log_init("stored", LOG_L_INFO, 0);
	if ((conf = conf_read(CONF_FD)) == NULL)
		fatal("read configuration");
	conf_log(conf, "stored");
	signals_off();
	(void)mallopt(M_ARENA_MAX, 1);	/* two threads need one heap */
	fence(conf);
	take_lock();
	if (db_open(&st.db, "/", &head) == -1)
		return 1;
	if ((st.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == -1)
		fatal("eventfd");
	chan_init(&st.privd, PRIVD_FD, A_STORED, A_PRIVD, S_INIT);
	loop_ready();
	st.committer = committer_start(&st.db, &head, !conf->audit_argv,
	    st.wake);
	st.replay = replay_new(&st.db, &st.apid.chan, want_again);
	say_ready();
	if (!st.ending)
		(void)event_base_dispatch(st.base);	/* logs by itself */
	committer_stop(st.committer);
	db_close(&st.db);
	return st.status;
}
