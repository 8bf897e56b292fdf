/*
 * stored.c: the start, the fence and the loop of the daemon that keeps the
 * record.
 *
 * Descriptors from privd: 2 log, 3 channel to privd, 4 configuration,
 * 5 channel to apid.  The database's directory becomes the root; LMDB is
 * opened behind the fence, as our own uid, so that nothing of what a database
 * may hold is ever read with more rights than those.
 *
 * apid is not listened to before privd has said go, nor while much of what it
 * asked is still under way.  Nonsense from apid ends its channel, which makes
 * it exit and privd start the daemons afresh; nothing that a peer sends ends
 * this process otherwise.  It ends when privd goes away, and, after
 * DAEMON_STOP, when apid has closed: first is committed what was taken.
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
#define LOAD_HIGH	(8U << 20)	/* bytes under way: apid waits */
#define LOAD_MAX	(16U << 20)	/* privd is told BUSY */
#define TURN_MSGS	64		/* messages per turn of the loop */
#define PURGE_SECONDS	60

/* ---- the fence --------------------------------------------------- */

static const struct confine_limit stored_limits[] = {
	{ RLIMIT_CORE, 0 },		/* memory holds env of boxes */
	{ RLIMIT_NOFILE, 64 },		/* two channels, LMDB's, the loop's */
};

static const struct confine stored_confine = {
	.root = confine_root_dir,	/* the database, nothing else */
	.caps = 0,			/* files are its own */
	.limits = stored_limits,
	.nlimits = sizeof(stored_limits) / sizeof(stored_limits[0]),
	.filter = stored_calls,
	.nfilter = sizeof(stored_calls) / sizeof(stored_calls[0]),
	.last_fd = APID_FD,
};

/* ---- state ------------------------------------------------------- */

static struct {
	struct event_base	*base;		/* owned, as all below */
	struct db		 db;
	struct committer	*committer;
	struct replay		*replay;
	struct chan		 privd, apid;
	struct event		*privd_in, *privd_out;
	struct event		*apid_in, *apid_out;	/* NULL: apid is gone */
	struct event		*wake_in, *again, *purge;
	int			 wake;		/* eventfd */
	int			 serving;	/* DAEMON_GO came */
	int			 stopping;	/* DAEMON_STOP came */
	int			 ending;	/* with this status */
	int			 status;
} st = { .wake = -1 };

static void
finish(int status)
{
	if (!st.ending)
		st.status = status;
	st.ending = 1;
	(void)event_base_loopbreak(st.base);	/* a base of ours: fine */
}

static void
apid_lost(void)
{
	event_free(st.apid_in);
	event_free(st.apid_out);
	st.apid_in = st.apid_out = NULL;
	chan_close(&st.apid);
	replay_drop(st.replay);
	if (st.stopping)
		finish(0);
}

static void
apid_failed(const char *what)
{
	if (st.apid_in == NULL)
		return;
	if (errno == ECONNRESET || errno == EPIPE)
		log_debug("apid is gone");
	else if (errno == EBADMSG || errno == EINVAL)
		log_errorx("%s apid: %s: channel closed", what, st.apid.why);
	else
		log_warn("%s apid", what);
	apid_lost();
}

/*
 * At the end of each callback: waits for room where there is more to send,
 * and listens to apid exactly while it may ask.
 */
static void
settle(void)
{
	int	busy;

	if (chan_pending(&st.privd))
		(void)event_add(st.privd_out, NULL);
	if (st.apid_in == NULL)
		return;
	if (chan_pending(&st.apid))
		(void)event_add(st.apid_out, NULL);
	busy = !st.serving || st.apid.queued >= CHAN_HIGH ||
	    committer_load(st.committer) >= LOAD_HIGH;
	if (busy)
		(void)event_del(st.apid_in);
	else
		(void)event_add(st.apid_in, NULL);
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

/* 0, or -1 with errno: the channel has failed. */
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
	case MSG_STORE_INFO:
		return on_store_info(&st.apid, m);
	default:
		/* an answer, and nothing was asked */
		(void)str_copy(st.apid.why, "answer without a question",
		    sizeof(st.apid.why));
		errno = EBADMSG;
		return -1;
	}
}

static void
stored_on_go(void)
{
	const struct timeval	tv = { .tv_sec = PURGE_SECONDS };

	st.serving = 1;
	st.privd.state = st.apid.state = S_RUN;
	(void)event_add(st.purge, &tv);
	event_active(st.purge, EV_TIMEOUT, 0);	/* the first at once */
}

static int
stored_on_stop(const struct msg *m)
{
	int	r = chan_ok(&st.privd, m->rid);

	st.stopping = 1;
	if (st.apid_in == NULL || !st.serving)
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
		(void)str_copy(st.privd.why, "answer without a question",
		    sizeof(st.privd.why));
		errno = EBADMSG;
		return -1;
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
	for (i = 0; i < TURN_MSGS && (r = chan_recv(&st.privd, &m)) == 1; i++)
		if ((r = stored_on_privd(&m)) == -1)
			break;
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
apid_read(evutil_socket_t fd, short what, void *arg)
{
	struct msg	m;
	int		i, r = 0;

	(void)fd, (void)what, (void)arg;
	for (i = 0; i < TURN_MSGS && (r = chan_recv(&st.apid, &m)) == 1; i++)
		if ((r = stored_on_apid(&m)) == -1)
			break;
	if (r == -1)
		apid_failed("read");
	settle();
}

static void
apid_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (chan_flush(&st.apid) == -1 ||
	    (st.apid.queued < CHAN_HIGH && replay_run(st.replay, 0) == -1))
		apid_failed("write");
	settle();
}

static int
send_answer(struct chan *c, const struct answer *a)
{
	struct msg_event_appended	m = { .seq = a->seq };

	if (a->code == CODE_BAD_MESSAGE)
		log_warnx("%s from %s: %s", proto_name(a->type),
		    a->asker == ASK_APID ? "apid" : "privd", a->detail);
	if (a->code != CODE_NONE)
		return chan_error(c, a->rid, a->code, "%s", a->detail);
	if (a->type == MSG_EVENT_APPEND)
		return chan_send(c, MSG_EVENT_APPENDED, a->rid, &m, -1);
	return chan_ok(c, a->rid);
}

/* The committer has answers, or records have been committed. */
static void
committer_news(evutil_socket_t fd, short what, void *arg)
{
	struct answer_queue	 q;
	struct answer		*a;
	uint64_t		 seq;

	(void)what, (void)arg;
	/* EAGAIN: read already */
	(void)!read(fd, &seq, sizeof(seq));
	committer_take(st.committer, &q, &seq);
	while ((a = STAILQ_FIRST(&q)) != NULL) {
		STAILQ_REMOVE_HEAD(&q, next);
		if (a->asker == ASK_PRIVD) {
			if (send_answer(&st.privd, a) == -1)
				privd_failed("write");
		} else if (st.apid_in != NULL &&
		    send_answer(&st.apid, a) == -1)
			apid_failed("write");
		free(a);
	}
	if (st.apid_in != NULL && replay_run(st.replay, seq) == -1)
		apid_failed("write");
	settle();
}

static void
read_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (st.apid_in != NULL && replay_run(st.replay, 0) == -1)
		apid_failed("write");
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
event_made(int fd, short what, event_callback_fn cb)
{
	struct event	*ev = event_new(st.base, fd, what, cb, NULL);

	if (ev == NULL)
		fatalx("event_new: out of memory");
	return ev;
}

static void
loop_ready(void)
{
	if ((st.base = event_base_new()) == NULL)
		fatalx("event_base_new failed");
	st.privd_in = event_made(PRIVD_FD, EV_READ | EV_PERSIST, privd_read);
	st.privd_out = event_made(PRIVD_FD, EV_WRITE, privd_write);
	st.apid_in = event_made(APID_FD, EV_READ | EV_PERSIST, apid_read);
	st.apid_out = event_made(APID_FD, EV_WRITE, apid_write);
	st.wake_in = event_made(st.wake, EV_READ | EV_PERSIST,
	    committer_news);
	st.again = event_made(-1, EV_TIMEOUT, read_again);
	st.purge = event_made(-1, EV_TIMEOUT | EV_PERSIST, purge_due);
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
	chan_init(&st.apid, APID_FD, A_STORED, A_APID, S_INIT);
	loop_ready();
	st.committer = committer_start(&st.db, &head, !conf->audit_argv,
	    st.wake);
	st.replay = replay_new(&st.db, &st.apid, want_again);
	say_ready();
	if (!st.ending)
		(void)event_base_dispatch(st.base);	/* logs by itself */
	committer_stop(st.committer);
	db_close(&st.db);
	return st.status;
}
