/*
 * commit.c: the committer, the one thread that writes.
 *
 * Theory of operation.  Jobs come by a queue; all that queued while the last
 * commit ran make the next batch: one LMDB transaction, one wait for the
 * disk.  Within the batch each job is applied in its order.
 *
 *	refused			answered at once; it changed nothing
 *	durable, applied	answered when the commit has returned
 *	not durable, applied	answered at once ("accepted")
 *
 * A batch in which nothing is durable stays open for HOLD_MS for more to
 * come, so that a chain of quick steps waits for the disk once: what lies
 * between the first and the last record of a create costs no commit, and none
 * is under way when the last one comes, that it would have to wait for.
 *
 * When a commit fails for want of space the transaction is gone: durable
 * jobs are answered DISK_FULL, and what was accepted is kept and applied
 * again, before all else, with the next batch and every RETRY_MS.  From a
 * failure until a commit succeeds every job counts as durable, so that no
 * more is accepted than a batch held.  The process goes on.  An error that
 * says that the database itself is broken ends it before anything is
 * answered.
 *
 * Must never: answer a durable job before its commit, call chan_*(), keep a
 * transaction open without a bound.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "stored.h"
#include "xmalloc.h"

#define BATCH_JOBS	1024
#define BATCH_BYTES	(4U << 20)
#define HOLD_MS		25		/* a create takes 10 to 20 */
#define RETRY_MS	1000
#define TELL_MS		10000
#define STACK_BYTES	(1U << 20)

struct committer {
	pthread_t		 thread;
	pthread_mutex_t		 lock;		/* guards up to the line */
	pthread_cond_t		 more;		/* CLOCK_MONOTONIC */
	struct job_queue	 in;		/* owned */
	struct answer_queue	 out;		/* owned */
	size_t			 load;		/* bytes not yet committed */
	int			 stop;
	struct head		 committed;
	int			 reserve_short;
	/* ---- the thread's own --------------------------------------- */
	struct job_queue	 batch;		/* owned; applied, in order */
	struct job_queue	 kept;		/* owned; accepted before */
	size_t			 njobs, nbytes;	/* of batch */
	int			 ndurable;
	int			 failing;
	int			 told;		/* that it fails, in the log */
	uint64_t		 tell_ms;	/* not again before */
	struct answer_queue	 done;		/* owned; not yet in out */
	int			 wake;		/* borrowed: eventfd */
	struct store		 s;
};

static size_t
job_bytes(const struct job *j)
{
	return sizeof(*j) + j->len;
}

/* ---- answers ----------------------------------------------------- */

static void
answer(struct committer *c, struct job *j, unsigned int code,
    const char *detail)
{
	struct answer	*a;

	j->answered = 1;
	if (j->asker == ASK_SELF)
		return;
	a = xcalloc(1, sizeof(*a));
	a->asker = j->asker;
	a->type = j->type;
	a->rid = j->rid;
	a->code = code;
	(void)str_copy(a->detail, detail, sizeof(a->detail)); /* cut */
	/* the number of what is only accepted may still change */
	a->seq = j->durable ? j->seq : 0;
	a->first = j->first;
	a->count = j->count;
	STAILQ_INSERT_TAIL(&c->done, a, next);
}

/* Hands over what is answered and wakes the main thread if there is news. */
static void
publish(struct committer *c, int news)
{
	const uint64_t	one = 1;

	if (STAILQ_EMPTY(&c->done) && !news)
		return;
	(void)pthread_mutex_lock(&c->lock);
	STAILQ_CONCAT(&c->out, &c->done);
	(void)pthread_mutex_unlock(&c->lock);
	while (write(c->wake, &one, sizeof(one)) == -1 && errno == EINTR)
		;	/* EAGAIN: it is awake */
}

static void
drop_job(struct committer *c, struct job *j)
{
	(void)pthread_mutex_lock(&c->lock);
	c->load -= job_bytes(j);
	(void)pthread_mutex_unlock(&c->lock);
	free(j);
}

/* ---- the batch --------------------------------------------------- */

static void	broken(const char *, int) __attribute__((noreturn));

static void
broken(const char *what, int rc)
{
	fatalx("%s: %s", what, mdb_strerror(rc));
}

static void
batch_begin(struct committer *c)
{
	int	rc;

	c->njobs = c->nbytes = 0;
	c->ndurable = 0;
	c->s.head = c->committed;	/* only this thread changes it */
	rc = mdb_txn_begin(c->s.db->env, NULL, 0, &c->s.txn);
	if (rc != 0)
		broken("begin transaction", rc);
}

/* Applies one job; 0, or the code that spoilt the transaction. */
static int
batch_apply(struct committer *c, struct job *j)
{
	int	rc;

	if (c->failing && !j->answered)
		j->durable = 1;
	rc = apply(&c->s, j);
	if (rc != 0 && db_fault(rc) == DBF_BROKEN)
		broken("apply", rc);
	if (rc == 0 && j->code != CODE_NONE) {
		if (j->answered)
			log_warnx("accepted %s was refused when it was "
			    "applied again: %s", proto_name(j->type),
			    j->detail);
		else
			answer(c, j, j->code, j->detail);
		drop_job(c, j);
		return 0;
	}
	STAILQ_INSERT_TAIL(&c->batch, j, next);
	c->njobs++;
	c->nbytes += job_bytes(j);
	if (j->durable)
		c->ndurable++;
	else if (rc == 0 && !j->answered)
		answer(c, j, CODE_NONE, "");
	return rc;
}

/* Takes what the batch has room for; 0 when nothing was there. */
static int
take_jobs(struct committer *c, struct job_queue *ret)
{
	size_t		 jobs = c->njobs, bytes = c->nbytes;
	struct job	*j;

	STAILQ_INIT(ret);
	(void)pthread_mutex_lock(&c->lock);
	while ((j = STAILQ_FIRST(&c->in)) != NULL && jobs < BATCH_JOBS &&
	    bytes < BATCH_BYTES) {
		STAILQ_REMOVE_HEAD(&c->in, next);
		STAILQ_INSERT_TAIL(ret, j, next);
		jobs++;
		bytes += job_bytes(j);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return !STAILQ_EMPTY(ret);
}

/* Applies the queue in order; on failure the rest joins the batch as is. */
static int
apply_all(struct committer *c, struct job_queue *q)
{
	struct job	*j;
	int		 rc = 0;

	while (rc == 0 && (j = STAILQ_FIRST(q)) != NULL) {
		STAILQ_REMOVE_HEAD(q, next);
		rc = batch_apply(c, j);
	}
	STAILQ_CONCAT(&c->batch, q);
	return rc;
}

static void
after_ms(struct timespec *ts, long ms)
{
	(void)clock_gettime(CLOCK_MONOTONIC, ts);	/* cannot fail */
	ts->tv_nsec += ms % 1000 * 1000000;
	ts->tv_sec += ms / 1000 + ts->tv_nsec / 1000000000;
	ts->tv_nsec %= 1000000000;
}

/* Waits for jobs until the time; 1: there are some (or the end). */
static int
wait_until(struct committer *c, const struct timespec *ts)
{
	int	r = 0;

	(void)pthread_mutex_lock(&c->lock);
	while (STAILQ_EMPTY(&c->in) && !c->stop && r == 0)
		r = ts == NULL ? pthread_cond_wait(&c->more, &c->lock) :
		    pthread_cond_timedwait(&c->more, &c->lock, ts);
	r = !STAILQ_EMPTY(&c->in) || c->stop;
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

/*
 * Applies what was kept, what is queued, and what comes while nothing in the
 * batch waits for the disk.
 */
static int
batch_fill(struct committer *c)
{
	struct job_queue	q;
	struct timespec		until;
	int			rc;

	after_ms(&until, HOLD_MS);
	if ((rc = apply_all(c, &c->kept)) != 0)
		return rc;
	while (take_jobs(c, &q)) {
		rc = apply_all(c, &q);
		publish(c, 0);
		if (rc != 0 || c->ndurable > 0 || c->njobs == 0)
			break;
		if (!wait_until(c, &until))
			break;
	}
	return rc;
}

static int
batch_commit(struct committer *c)
{
	int	rc = 0;

	if (c->s.head.seq != c->committed.seq ||
	    strcmp(c->s.head.last_id, c->committed.last_id) != 0)
		rc = db_put_head(c->s.db, c->s.txn, &c->s.head);
	if (rc == 0) {
		rc = mdb_txn_commit(c->s.txn);
		c->s.txn = NULL;	/* also when it failed */
	}
	if (rc != 0 && db_fault(rc) == DBF_BROKEN)
		broken("commit", rc);
	return rc;
}

static void
batch_done(struct committer *c)
{
	struct job	*j;

	if (c->failing && c->s.head.seq != c->committed.seq) {
		if (c->told)
			log_info("commits succeed again");
		c->failing = c->told = 0;
	}
	(void)pthread_mutex_lock(&c->lock);
	c->committed = c->s.head;
	(void)pthread_mutex_unlock(&c->lock);
	while ((j = STAILQ_FIRST(&c->batch)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->batch, next);
		if (!j->answered)
			answer(c, j, CODE_NONE, "");
		drop_job(c, j);
	}
}

/* Nothing of the batch is in the database. */
static void
batch_failed(struct committer *c, int rc)
{
	unsigned int	 code = db_fault(rc) == DBF_FULL ? CODE_DISK_FULL :
	    CODE_INTERNAL;
	struct job	*j;

	if (c->s.txn != NULL)
		mdb_txn_abort(c->s.txn);
	c->s.txn = NULL;
	/* on a nearly full disk small batches fit and large ones do not */
	if (!c->failing && mono_ms() >= c->tell_ms) {
		log_errorx("commit: %s; nothing of it is kept, changes are "
		    "refused until there is space", mdb_strerror(rc));
		c->told = 1;
		c->tell_ms = mono_ms() + TELL_MS;
	}
	c->failing = 1;
	c->s.purge_more = 0;
	while ((j = STAILQ_FIRST(&c->batch)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->batch, next);
		if (j->answered && j->asker != ASK_SELF) {
			STAILQ_INSERT_TAIL(&c->kept, j, next);
			continue;
		}
		if (!j->answered)
			answer(c, j, code, mdb_strerror(rc));
		drop_job(c, j);
	}
}

/* Between two batches, when nobody waits. */
static void
reserve_check(struct committer *c)
{
	int	is_short;

	c->s.reserve = db_reserve(c->s.db);
	is_short = c->s.reserve < DB_RESERVE - DB_SLACK;
	if (is_short != c->reserve_short)
		log_warnx("database: %s", is_short ? "the disk is full, "
		    "sandboxes cannot be created" : "space is reserved again");
	(void)pthread_mutex_lock(&c->lock);
	c->reserve_short = is_short;
	(void)pthread_mutex_unlock(&c->lock);
}

/* The purge goes on in a batch of its own, behind what is queued. */
static void
purge_again(struct committer *c)
{
	struct job	*j;

	if (!c->s.purge_more)
		return;
	c->s.purge_more = 0;
	j = xcalloc(1, sizeof(*j));
	j->asker = ASK_SELF;
	j->type = JOB_PURGE;
	committer_put(c, j);
}

static void
batch_run(struct committer *c)
{
	const uint64_t	before = c->committed.seq;
	int		rc;

	batch_begin(c);
	if ((rc = batch_fill(c)) == 0 && (rc = batch_commit(c)) == 0)
		batch_done(c);
	else
		batch_failed(c, rc);
	publish(c, c->committed.seq != before);
	reserve_check(c);
	purge_again(c);
}

/* What was accepted on a full disk and never found room. */
static void
count_lost(struct committer *c)
{
	struct job	*j;
	unsigned int	 n = 0;

	STAILQ_FOREACH(j, &c->kept, next)
		n++;
	if (n > 0)
		log_errorx("%u accepted changes are lost: no space", n);
}

static void *
committer_main(void *arg)
{
	struct committer	*c = arg;
	struct timespec		 ts;
	int			 stop;

	for (;;) {
		after_ms(&ts, RETRY_MS);
		(void)wait_until(c, STAILQ_EMPTY(&c->kept) &&
		    !c->reserve_short ? NULL : &ts);
		batch_run(c);
		(void)pthread_mutex_lock(&c->lock);
		stop = c->stop && STAILQ_EMPTY(&c->in);
		(void)pthread_mutex_unlock(&c->lock);
		if (stop)
			break;
	}
	count_lost(c);
	return NULL;
}

/* ---- the main thread's side -------------------------------------- */

static void
must(int e, const char *what)
{
	if (e != 0) {
		errno = e;
		fatal("%s", what);
	}
}

struct committer *
committer_start(struct db *db, const struct head *h, int hide_argv, int wake)
{
	struct committer	*c = xcalloc(1, sizeof(*c));
	pthread_condattr_t	 ca;
	pthread_attr_t		 ta;

	STAILQ_INIT(&c->in);
	STAILQ_INIT(&c->out);
	STAILQ_INIT(&c->batch);
	STAILQ_INIT(&c->kept);
	STAILQ_INIT(&c->done);
	c->wake = wake;
	c->committed = *h;
	c->s.db = db;
	c->s.hide_argv = hide_argv;
	c->s.reserve = db_reserve(db);
	c->reserve_short = c->s.reserve < DB_RESERVE - DB_SLACK;
	if (c->reserve_short)
		log_warnx("database: the disk is full, sandboxes cannot be "
		    "created");
	must(pthread_mutex_init(&c->lock, NULL), "mutex");
	must(pthread_condattr_init(&ca), "condition");
	must(pthread_condattr_setclock(&ca, CLOCK_MONOTONIC), "condition");
	must(pthread_cond_init(&c->more, &ca), "condition");
	must(pthread_attr_init(&ta), "thread");
	must(pthread_attr_setstacksize(&ta, STACK_BYTES), "thread");
	must(pthread_create(&c->thread, &ta, committer_main, c), "thread");
	return c;
}

void
committer_stop(struct committer *c)
{
	(void)pthread_mutex_lock(&c->lock);
	c->stop = 1;
	(void)pthread_cond_signal(&c->more);
	(void)pthread_mutex_unlock(&c->lock);
	must(pthread_join(c->thread, NULL), "join committer");
}

void
committer_put(struct committer *c, struct job *j)
{
	(void)pthread_mutex_lock(&c->lock);
	STAILQ_INSERT_TAIL(&c->in, j, next);
	c->load += job_bytes(j);
	(void)pthread_cond_signal(&c->more);
	(void)pthread_mutex_unlock(&c->lock);
}

size_t
committer_load(struct committer *c)
{
	size_t	n;

	(void)pthread_mutex_lock(&c->lock);
	n = c->load;
	(void)pthread_mutex_unlock(&c->lock);
	return n;
}

void
committer_take(struct committer *c, struct answer_queue *ret,
    uint64_t *ret_seq)
{
	STAILQ_INIT(ret);
	(void)pthread_mutex_lock(&c->lock);
	STAILQ_CONCAT(ret, &c->out);
	*ret_seq = c->committed.seq;
	(void)pthread_mutex_unlock(&c->lock);
}

void
committer_info(struct committer *c, struct msg_store_info_is *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)pthread_mutex_lock(&c->lock);
	memcpy(ret->last_id, c->committed.last_id, sizeof(ret->last_id));
	ret->last_seq = c->committed.seq;
	ret->reserve_short = c->reserve_short != 0;
	(void)pthread_mutex_unlock(&c->lock);
}
