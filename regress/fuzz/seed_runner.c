/*
 * seed_runner.c: for runner_fuzz: a host that has shown its token, and wb,
 * who ask for all there is while commands print, read and end.
 */
#include <string.h>

#include "seed.h"
#include "steps.h"

#define TALKS	160		/* conversations */
#define TURNS	24		/* steps of one, below */
#define HOST	0		/* the peer that connects first */
#define WB	1

static _Alignas(max_align_t) uint8_t	body[SEED_STRUCT];
static uint32_t				rid;

static void
ask(struct seed *s, unsigned int peer, unsigned int type)
{
	seed_packet(s, RUNNER_PACKET, (int)peer, type, ++rid % 200, body);
}

static void
hello(struct seed *s, unsigned int peer)
{
	static uint8_t			 token[32];	/* runner_fuzz's */
	struct msg_runner_hello		*m = (void *)body;

	memset(token, 'T', sizeof(token));
	seed_body(&wire_msg_runner_hello, body);
	memcpy(m->role, "host", sizeof("host"));
	m->token = (struct wire_bin){ token, sizeof(token) };
	ask(s, peer, MSG_RUNNER_HELLO);
	seed_body(&wire_msg_runner_go, body);
	ask(s, peer, MSG_RUNNER_GO);
}

/* A host, and wb of two users. */
static void
begin(struct seed *s)
{
	s->n = 0;
	seed_step(s, RUNNER_CONTROL, 0);
	hello(s, HOST);
	seed_step(s, RUNNER_WB, 0);
	seed_step(s, RUNNER_WB, 1);
}

/* Session n of the host's; most of them as an honest apid asks. */
static void
run(struct seed *s, unsigned int n)
{
	struct msg_session_run	*m = (void *)body;

	seed_body(&wire_msg_session_run, body);
	step_id(n, m->id);
	if (!seed_chance(4)) {
		m->user[0] = m->cwd[0] = '\0';
		m->attached = 1;
	}
	ask(s, HOST, MSG_SESSION_RUN);
}

static void
wb_run(struct seed *s)
{
	seed_body(&wire_msg_wb_run, body);
	ask(s, WB + seed_below(2), MSG_WB_RUN);
}

/* Any message that this peer may send; what ends all comes seldom. */
static void
say_any(struct seed *s, unsigned int peer)
{
	unsigned int		 actor = peer == HOST ? A_APID : A_WB;
	const struct proto_row	*r;

	do
		r = &proto_rows[seed_below((unsigned int)proto_nrows)];
	while (!(r->from & actor) || !(r->to & A_RUNNER) ||
	    !(r->states & S_RUN) || (r->type % 2 == 1 && !seed_chance(40)) ||
	    (r->type == MSG_RUNNER_DRAIN && !seed_chance(8)));
	seed_body(r->desc, body);
	ask(s, peer, r->type);
}

/* What happens besides, of any sense. */
static void
happen(struct seed *s)
{
	static const unsigned int	often[] = { RUNNER_PRINT,
	    RUNNER_PRINT, RUNNER_PRINT, RUNNER_INPUT, RUNNER_HEAR,
	    RUNNER_HEAR, RUNNER_TIME, RUNNER_EXIT };
	unsigned int			kind, arg = seed_below(256);

	kind = seed_chance(4) ? 1 + seed_below(RUNNER_NSTEPS - 1) :
	    often[seed_below(sizeof(often) / sizeof(often[0]))];
	if (kind == RUNNER_HEAR)
		arg = seed_below(3);
	else if (kind >= RUNNER_PRINT && kind <= RUNNER_EXIT)
		arg = (arg & ~7U) | seed_below(4);	/* one that runs */
	seed_step(s, kind, arg);
}

static void
read_of(struct seed *s, unsigned int peer, unsigned int wait)
{
	struct msg_session_read	*m = (void *)body;

	seed_body(&wire_msg_session_read, body);
	step_id(0, m->id);
	m->after = 0;
	m->wait = wait;
	m->attached = peer == HOST;
	ask(s, peer, MSG_SESSION_READ);
}

/* Output and input, a reader that waits and one who waits for the end. */
static void
whole(struct seed *s)
{
	struct msg_session_wait	*wt = (void *)body;

	begin(s);
	run(s, 0);
	seed_step(s, RUNNER_PRINT, 32);
	read_of(s, HOST, 1);
	seed_body(&wire_msg_session_wait, body);
	step_id(0, wt->id);
	ask(s, HOST, MSG_SESSION_WAIT);
	seed_step(s, RUNNER_HEAR, HOST);
	seed_step(s, RUNNER_EXIT, seed_below(2) * 8);
	seed_step(s, RUNNER_HEAR, HOST);
}

/* One who asks for much output and hears none of it for a while. */
static void
deaf(struct seed *s)
{
	unsigned int	i;

	begin(s);
	run(s, 0);
	seed_step(s, RUNNER_PRINT, 32);
	for (i = 0; i < 8; i++)
		read_of(s, WB, i % 2);
	seed_step(s, RUNNER_TIME, 128 + 20);
	for (i = 0; i < 4; i++)
		seed_step(s, RUNNER_HEAR, WB);
	seed_step(s, RUNNER_PRINT, 32);
	seed_step(s, RUNNER_TIME, 128 + 60);
	read_of(s, HOST, 0);
}

static void
feed(struct seed *s, uint64_t offset, unsigned int eof)
{
	struct msg_session_stdin	*m = (void *)body;

	seed_body(&wire_msg_session_stdin, body);
	step_id(0, m->id);
	m->offset = offset;
	m->bytes = (struct wire_bin){ (const uint8_t *)"input", 5 };
	m->eof = eof;
	ask(s, HOST, MSG_SESSION_STDIN);
}

/* A command that reads its input late. */
static void
late(struct seed *s)
{
	struct msg_session_run	*m = (void *)body;

	begin(s);
	seed_body(&wire_msg_session_run, body);
	step_id(0, m->id);
	m->user[0] = m->cwd[0] = '\0';
	m->stdin.len = 0;
	m->stdin_open = 1;
	ask(s, HOST, MSG_SESSION_RUN);
	feed(s, 0, 0);
	seed_step(s, RUNNER_FILL, 0);
	feed(s, 5, 0);
	feed(s, 10, seed_below(2));
	seed_step(s, RUNNER_INPUT, seed_below(2) * 64);
	seed_step(s, RUNNER_INPUT, 0);
	seed_step(s, RUNNER_HEAR, HOST);
}

static void
talk(struct seed *s)
{
	unsigned int	i, n = 0;

	begin(s);
	run(s, n++);
	for (i = seed_below(TURNS); i > 0; i--)
		switch (seed_below(8)) {
		case 0:
			if (n < 4)
				run(s, n++);
			break;
		case 1:
			wb_run(s);
			break;
		case 2:
		case 3:
			say_any(s, HOST);
			break;
		case 4:
			say_any(s, WB + seed_below(2));
			break;
		default:
			happen(s);
			break;
		}
}

/* Each message to the runner, behind a command that runs. */
static void
each(struct seed *s, const struct proto_row *r)
{
	unsigned int	peer = r->from & A_APID ? HOST : WB;

	begin(s);
	run(s, 0);
	seed_step(s, RUNNER_PRINT, 0);
	seed_body(r->desc, body);
	ask(s, peer, r->type);
	seed_step(s, RUNNER_HEAR, peer);
}

void
seed_runner(void)
{
	static struct seed	s;
	size_t			i;

	for (i = 0; i < proto_nrows; i++)
		if (proto_rows[i].to & A_RUNNER &&
		    proto_rows[i].from & (A_APID | A_WB)) {
			each(&s, &proto_rows[i]);
			seed_end(&s, "each", i);
		}
	for (i = 0; i < TALKS; i++) {
		if (i < 4)
			whole(&s);
		else if (i < 8)
			deaf(&s);
		else if (i < 12)
			late(&s);
		else
			talk(&s);
		seed_end(&s, "talk", i);
	}
}
