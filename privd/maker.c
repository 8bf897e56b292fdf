/*
 * maker.c: how privd asks its maker; see common/maker_ask.h.
 *
 * An entry has a set of operations that it wants and a set that was sent: one
 * of each kind at a time.  At most MAKER_UNDER_WAY requests are unanswered,
 * so that a send never waits; what is more stays wanted until an answer
 * comes.  When either program ends the other does too.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include <errno.h>
#include <sha256.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "privd.h"

static unsigned int	 under_way;
static unsigned int	 nwant;		/* operations that were not sent */

int
maker_ask(struct maker_req *req, const int *fds, size_t n)
{
	int	go[FDS_MAX];

	if (under_way >= MAKER_UNDER_WAY) {
		errno = EAGAIN;
		return -1;
	}
	n = fds_pack(fds, n, go, &req->places);
	if (fds_send(PRIVD_FD_MAKER, req, sizeof(*req), go, n, 0) == -1)
		fatal("ask the maker");
	under_way++;
	return 0;
}

int
maker_answer(struct maker_ans **ret, int **ret_fds, int block)
{
	static struct maker_ans	a;
	static int		fds[FDS_MAX];
	static int		used;
	size_t			n;
	ssize_t			r;

	for (n = 0; used && n < FDS_MAX; n++)
		fd_close(&fds[n]);	/* what nobody took */
	used = 0;
	if (block && under_way == 0)
		return 0;
	r = fds_recv(PRIVD_FD_MAKER, &a, sizeof(a), fds, &n, block ? 0 : MSG_DONTWAIT);
	if (r == -1 && errno == EAGAIN)
		return 0;
	if (r < (ssize_t)MAKER_LEN0)
		fatalx("the maker has ended");
	fds_unpack(fds, n, a.places);
	used = 1;
	if (a.op != MK_BOX)		/* of which one request has many */
		under_way--;
	*ret = &a;
	*ret_fds = fds;
	return 1;
}

/* ---- for a box --------------------------------------------------------- */

int
maker_due(const struct entry *e, enum maker_op op)
{
	return ((e->want | e->made) & 1U << op) != 0;
}

/* What its first process is told, and what a later privd reads. */
static void
fill_launch(const struct entry *e, struct maker_req *q)
{
	struct row_boot	 boot = { .version = 1,
			    .nonce = { e->nonce, BOX_NONCE },
			    .ring_bytes = box_ring(e->spec.memory_bytes),
			    .cgroup_v1 = srv.cgroup_v1 };
	uint8_t		 sha[SHA256_DIGEST_LENGTH];
	SHA2_CTX	 ctx;
	ssize_t		 b, s;

	SHA256Init(&ctx);
	SHA256Update(&ctx, e->token, BOX_TOKEN);
	SHA256Final(sha, &ctx);
	boot.token_sha256 = (struct wire_bin){ sha, sizeof(sha) };
	memcpy(boot.id, e->spec.id, sizeof(boot.id));
	memcpy(boot.name, e->spec.name, sizeof(boot.name));
	memcpy(q->u.launch.token, e->token, BOX_TOKEN);
	if ((b = wire_encode(&wire_row_boot, &boot, q->u.launch.boot,
	    sizeof(q->u.launch.boot))) == -1 ||
	    (s = wire_encode(&wire_row_spec, &e->spec, q->u.launch.spec,
	    sizeof(q->u.launch.spec))) == -1)
		fatalx("box %s: %s", e->spec.id, wire_error());
	q->u.launch.boot_len = (uint32_t)b;
	q->u.launch.spec_len = (uint32_t)s;
}

static int
entry_ask(const struct entry *e, enum maker_op op)
{
	static struct maker_req	q;
	int			fds[2] = { e->pidfd, e->netns }, r;

	q.op = op;
	q.n = e->n;
	q.uid = e->uid;
	q.spec = e->spec;
	if (op == MK_LAUNCH)
		fill_launch(e, &q);
	else if (op == MK_SEAL)
		(void)str_copy(q.u.text, e->why, sizeof(q.u.text));
	else if (op == MK_HEALTH) {
		q.u.look.freeze = e->sealed ? FREEZE_KEEP : e->freeze;
		q.u.look.written = e->written;
	} else if (op == MK_RELEASE)
		q.u.look.written = (uint32_t)e->trial;
	r = maker_ask(&q, fds, op == MK_FACTS || op == MK_HEALTH ||
	    op == MK_RELEASE ? 2 : op == MK_CONNECT || op == MK_KILL);
	explicit_bzero(&q.u, sizeof(q.u));	/* the token */
	return r;
}

static void
entry_try(struct entry *e)
{
	enum maker_op	op;

	for (op = 0; op < MK_N; op++)
		if (e->want & 1U << op && entry_ask(e, op) == 0) {
			e->want &= ~(1U << op);
			e->made |= 1U << op;
			nwant--;
		}
}

void
maker_want(struct entry *e, enum maker_op op)
{
	if (maker_due(e, op))
		return;
	e->want |= 1U << op;
	nwant++;
	entry_try(e);
}

void
maker_done(struct entry *e, enum maker_op op)
{
	if (!(e->made & 1U << op))
		fatalx("the maker answers what was not asked");
	e->made &= ~(1U << op);
}

void
maker_forget(struct entry *e)
{
	for (; e->want != 0; e->want &= e->want - 1)
		nwant--;
}

void
maker_pump(void)
{
	struct entry	*e;
	unsigned int	 i;

	for (i = 0; nwant > 0 && under_way < MAKER_UNDER_WAY &&
	    (e = table_at(i)) != NULL; i++)
		entry_try(e);
}

/* ---- start ------------------------------------------------------------- */

void
maker_init(void)
{
	static struct maker_req	 q = { .op = MK_INIT };
	struct maker_ans	*a;
	const int		 fds[] = { PRIVD_FD_LOCK, PRIVD_FD_CONF,
				    PRIVD_FD_TOKEN };
	int			*got;

	q.u.conf = *srv.conf;
	if (maker_ask(&q, fds, 3) == -1 || !maker_answer(&a, &got, 1))
		fatal("start the maker");
	if (a->error != 0)
		fatalx("%s", a->why);
	srv.cgroup_v1 = a->u.init.cgroup_v1;
	memcpy(srv.filter, a->u.init.filter, sizeof(srv.filter));
	if (a->u.init.note[0] != '\0')
		log_info("%s", a->u.init.note);
	(void)close(PRIVD_FD_CONF);	/* the maker has them now */
	(void)close(PRIVD_FD_TOKEN);
	ev_add(PRIVD_FD_MAKER, EV_MAKER, 0, EPOLLIN);
}
