/*
 * seed_apid.c: for apid_fuzz: what a runner says to an apid whose clients
 * start commands, read, write and wait: answers in their order and with what
 * is due, and some that are not.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "seed.h"
#include "steps.h"

#define TALKS		160		/* conversations */
#define TURNS		24		/* steps of one, below */
#define SESSIONS	4
#define OLD		9		/* what apid_fuzz calls the old one */

static _Alignas(max_align_t) uint8_t	body[SEED_STRUCT];
static uint64_t				last[SESSIONS];	/* chunk of each */

/* The one that is due, seldom another. */
static uint32_t
some_rid(void)
{
	return STEP_RID + (seed_chance(10) ? seed_below(4) : 0);
}

static void
say(struct seed *s, unsigned int type)
{
	seed_packet(s, APID_PACKET, -1, type, type % 2 == 1 ? some_rid() : 0,
	    body);
}

static void
running(struct seed *s, unsigned int n)
{
	struct msg_session_running	*m = (void *)body;

	seed_body(&wire_msg_session_running, body);
	step_id(n, m->id);
	say(s, MSG_SESSION_RUNNING);
}

/* Some were lost before it. */
static void
gap(struct msg_session_chunk *m, uint64_t *seq)
{
	m->gap_first = m->seq;
	m->gap_last = m->seq + 2;
	m->gap_bytes = 10;
	*seq = m->seq = m->last_seq = m->seq + 3;
}

/* The chunk that follows; one in eight is what gen_body() makes of it. */
static void
chunk(struct seed *s, unsigned int n, unsigned int more)
{
	struct msg_session_chunk	*m = (void *)body;

	seed_body(&wire_msg_session_chunk, body);
	step_id(n, m->id);
	if (!seed_chance(8)) {
		m->seq = ++last[n];
		m->stream = STREAM_STDOUT + seed_below(2);
		m->bytes = (struct wire_bin){ (const uint8_t *)"\xc3\n\"",
		    1 + seed_below(3) };
		m->gap_first = m->gap_last = m->gap_bytes = 0;
		m->first_seq = 1;
		m->last_seq = m->seq + more;
		m->eof = seed_chance(8);
		if (seed_chance(8))
			gap(m, &last[n]);
	}
	say(s, MSG_SESSION_CHUNK);
}

static void
end(struct seed *s, unsigned int n)
{
	struct msg_session_exit	*m = (void *)body;

	seed_body(&wire_msg_session_exit, body);
	step_id(n, m->id);
	m->last_seq = n < SESSIONS ? last[n] : 0;
	say(s, MSG_SESSION_EXIT);
}

static void
taken(struct seed *s)
{
	static const uint64_t		offsets[] = { 3, 3, 32768, 40000, 2 };
	struct msg_session_stdin_at	*m = (void *)body;

	seed_body(&wire_msg_session_stdin_at, body);
	m->offset = offsets[seed_below(5)];
	say(s, MSG_SESSION_STDIN_AT);
}

static void
refusal(struct seed *s)
{
	static const unsigned int	codes[] = { CODE_NOT_FOUND,
	    CODE_BUSY, CODE_BAD_OFFSET, CODE_ENDED, CODE_COMMAND_NOT_FOUND,
	    CODE_BAD_CWD };
	struct msg_error		*m = (void *)body;

	seed_body(&wire_msg_error, body);
	m->code = codes[seed_below(sizeof(codes) / sizeof(codes[0]))];
	(void)snprintf(m->detail, sizeof(m->detail), "%u", seed_below(9));
	seed_packet(s, APID_PACKET, -1, MSG_ERROR, STEP_RID + seed_below(4),
	    body);
}

/* Sessions of wb, as a runner announces and lists them. */
static void
wb_id(unsigned int n, char ret[27])
{
	memcpy(ret, "01K8Z000000000000000000000", 27);
	ret[25] = (char)('0' + n);
}

static void
announce(struct seed *s)
{
	struct msg_session_announce	*m = (void *)body;

	seed_body(&wire_msg_session_announce, body);
	wb_id(seed_below(3), m->id);
	say(s, MSG_SESSION_ANNOUNCE);
}

static void
listed(struct seed *s)
{
	static uint8_t			 rows[4][512];
	static struct wire_bin		 v[4];
	struct msg_runner_sessions_are	*m = (void *)body;
	struct row_rsession		 r;
	unsigned int			 i, n = seed_below(4);
	ssize_t				 len;

	for (i = 0; i < n; i++) {
		seed_body(&wire_row_rsession, &r);
		if (i == 0)
			step_id(seed_chance(2) ? 0 : OLD, r.id);
		else
			wb_id(i, r.id);
		len = wire_encode(&wire_row_rsession, &r, rows[i],
		    sizeof(rows[i]));
		if (len == -1)
			errx(1, "%s", wire_error());
		v[i] = (struct wire_bin){ rows[i], (size_t)len };
	}
	seed_body(&wire_msg_runner_sessions_are, body);
	m->rows = (struct wire_list){ v, n };
	say(s, MSG_RUNNER_SESSIONS_ARE);
}

/* Of any type that a runner may send, answers of any time with them. */
static void
say_any(struct seed *s)
{
	const struct proto_row	*r;

	do
		r = &proto_rows[seed_below((unsigned int)proto_nrows)];
	while (!(r->from & A_RUNNER) || !(r->to & A_APID));
	seed_body(r->desc, body);
	say(s, r->type);
}

/* A channel that has come to run; one in four by its own words. */
static void
begin(struct seed *s)
{
	s->n = 0;
	memset(last, 0, sizeof(last));
	if (!seed_chance(4)) {
		seed_step(s, APID_BOOT, 1);
		return;
	}
	seed_step(s, APID_BOOT, 0);
	seed_body(&wire_msg_runner_nonce, body);
	say(s, MSG_RUNNER_NONCE);
	seed_body(&wire_msg_runner_facts, body);
	say(s, MSG_RUNNER_FACTS);
}

static void
start(struct seed *s, unsigned int n)
{
	seed_step(s, APID_START, seed_below(4) | (seed_chance(4) ? 4 : 0));
	if (!seed_chance(6))
		running(s, n);
}

static void
client(struct seed *s)
{
	static const unsigned int	often[] = { APID_READ, APID_READ,
	    APID_FEED, APID_WAIT, APID_PING, APID_UNREAD, APID_UNFEED,
	    APID_OLD, APID_RESUME, APID_GET };
	unsigned int			kind, arg = seed_below(256);

	kind = seed_chance(6) ? 1 + seed_below(APID_NSTEPS - 1) :
	    often[seed_below(sizeof(often) / sizeof(often[0]))];
	if (seed_chance(2))	/* the first, from the beginning */
		arg &= 0xc;
	seed_step(s, kind, arg);
}

static void
answer(struct seed *s, unsigned int n)
{
	static const struct msg_ok	ok;

	switch (seed_below(10)) {
	case 0:
	case 1:
	case 2:
		chunk(s, n, seed_below(4));
		break;
	case 3:
	case 4:
		taken(s);
		break;
	case 5:
		end(s, seed_chance(4) ? OLD : n);
		break;
	case 6:
		refusal(s);
		break;
	case 7:
		listed(s);
		break;
	case 8:
		memcpy(body, &ok, sizeof(ok));
		say(s, MSG_OK);
		break;
	default:
		running(s, n);
		break;
	}
}

/* One command, read and waited for until it has ended. */
static void
whole(struct seed *s)
{
	unsigned int	i;

	begin(s);
	start(s, 0);
	seed_step(s, APID_WAIT, 0);
	seed_step(s, APID_FEED, 2 << 4 | 4 | 8);
	for (i = 0; i < 6; i++)
		chunk(s, 0, seed_below(3));
	taken(s);
	end(s, 0);
	seed_step(s, APID_PING, 0);
}

/* A box that has died, with a session of before. */
static void
dead(struct seed *s, unsigned int how)
{
	s->n = 0;
	memset(last, 0, sizeof(last));
	if (how & 1) {
		seed_step(s, APID_BOOT, 1);
		start(s, 0);
	}
	seed_step(s, APID_OLD, how);
	if (how & 2)
		seed_step(s, APID_RESUME, 0);
	seed_step(s, APID_ENDED, how >> 2 & 1);
	seed_step(s, APID_ENDED, 0);
}

static void
talk(struct seed *s)
{
	unsigned int	i, n = 1;

	begin(s);
	start(s, 0);
	for (i = seed_below(TURNS); i > 0; i--)
		switch (seed_below(10)) {
		case 0:
			if (n < SESSIONS)
				start(s, n++);
			break;
		case 1:
			announce(s);
			break;
		case 2:
			if (seed_chance(4))
				say_any(s);
			break;
		case 3:
		case 4:
		case 5:
			client(s);
			break;
		default:
			answer(s, seed_below(n));
			break;
		}
}

/* Each message of a runner, as the answer that is due where it is one. */
static void
each(struct seed *s, const struct proto_row *r)
{
	begin(s);
	start(s, 0);
	seed_step(s, APID_FEED, 0);
	seed_step(s, APID_PING, 0);
	seed_step(s, APID_RESUME, 0);
	seed_body(r->desc, body);
	say(s, r->type);
}

void
seed_apid(void)
{
	static struct seed	s;
	size_t			i;

	for (i = 0; i < proto_nrows; i++)
		if (proto_rows[i].from & A_RUNNER &&
		    proto_rows[i].to & A_APID) {
			each(&s, &proto_rows[i]);
			seed_end(&s, "each", i);
		}
	for (i = 0; i < TALKS; i++) {
		if (i < 8)
			whole(&s);
		else if (i < 16)
			dead(&s, (unsigned int)i % 8);
		else
			talk(&s);
		seed_end(&s, "talk", i);
	}
}
